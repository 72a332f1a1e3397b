/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `selastic topology show` prints (topology_render.h). */
#include "cmd/topology_render.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/shape.h"
#include "cmd/terminal_text.h"
#include "lib/json_get.h"

#define DEPTH_MAX 16 /* levels of the tree that are drawn */

/* ---- JSON ------------------------------------------------------------------------------------ */

/* The nodes for which wanted() is true, as a hostlist expression; NULL if there are none. */
static json_object *names_json(const struct topology_site *site,
                               bool (*wanted)(const struct topology_site *, int, const void *),
                               const void *arg)
{
    char **names = text_need(calloc((size_t)site->node_count + 1, sizeof(*names)));
    int count = 0;
    for (int i = 0; i < site->node_count; i++)
        if (wanted(site, i, arg))
            names[count++] = site->nodes[i].name;
    char *text = count > 0 ? text_need(slurm_client_compress(names, count)) : NULL;
    json_object *json = json_from_string(text);
    free(text);
    free(names);
    return json;
}

static bool has_none(const struct topology_site *site, int i, const void *arg)
{
    (void)arg;
    return topology_map_find(&site->map, site->nodes[i].name) == NULL;
}

/* Nodes of a leaf with a shape. */
struct filter {
    const char *const *leaves;
    const char *leaf;
    const struct topology_shape *shape;
};

static bool is_on_leaf(const struct topology_site *site, int i, const void *arg)
{
    const struct filter *filter = arg;
    return strcmp(filter->leaves[i], filter->leaf) == 0 &&
           topology_map_find(&site->map, site->nodes[i].name) == filter->shape;
}

static json_object *shapes_json(const struct topology_site *site)
{
    json_object *list = text_need(json_object_new_array());
    for (int i = 0; i < site->map.shape_count; i++) {
        const struct topology_shape *shape = &site->map.shapes[i];
        char summary[256];
        int count;
        char *nodes = topology_map_nodes(&site->map, i, slurm_client_compress, &count);
        if (count > 0) {
            json_object *json = text_need(json_object_new_object());
            json_object_object_add(json, "shape", json_object_new_string(shape->name));
            json_object_object_add(json, "nodes", json_object_new_string(nodes));
            json_object_object_add(json, "count", json_object_new_int(count));
            machine_describe(&shape->machine, summary, sizeof(summary));
            json_object_object_add(json, "summary", json_object_new_string(summary));
            json_object_object_add(json, "description", machine_to_json(&shape->machine));
            json_object_array_add(list, json);
        }
        free(nodes);
    }
    return list;
}

static json_object *leaf_shapes_json(const struct topology_site *site, const char *const *leaves,
                                     const char *leaf)
{
    json_object *list = text_need(json_object_new_array());
    for (int i = 0; i <= site->map.shape_count; i++) {
        const struct topology_shape *shape = i < site->map.shape_count ? &site->map.shapes[i]
                                                                       : NULL;
        struct filter filter = {leaves, leaf, shape};
        json_object *nodes = names_json(site, is_on_leaf, &filter);
        if (nodes == NULL)
            continue;
        json_object *json = text_need(json_object_new_object());
        json_object_object_add(json, "shape", json_from_string(shape != NULL ? shape->name : NULL));
        json_object_object_add(json, "nodes", nodes);
        json_object_array_add(list, json);
    }
    return list;
}

static json_object *switches_json(const struct topology_site *site, const char *const *leaves)
{
    json_object *list = text_need(json_object_new_array());
    int top = 0;
    for (int i = 0; i < site->switch_count; i++)
        if (site->switches[i].level > top)
            top = site->switches[i].level;
    for (int level = top; level >= 0; level--)
        for (int i = 0; i < site->switch_count; i++) {
            const struct slurm_switch *each = &site->switches[i];
            if (each->level != level)
                continue;
            json_object *json = text_need(json_object_new_object());
            json_object_object_add(json, "switch", json_object_new_string(each->name));
            json_object_object_add(json, "level", json_object_new_int(level));
            json_object_object_add(json, "nodes", json_from_string(each->nodes));
            json_object_object_add(json, "switches", json_from_string(each->switches));
            json_object_object_add(json, "shapes",
                                   level == 0 ? leaf_shapes_json(site, leaves, each->name) : NULL);
            json_object_array_add(list, json);
        }
    return list;
}

json_object *topology_shown(const struct topology_site *site, const char *const *leaves)
{
    json_object *shown = text_need(json_object_new_object());
    json_object_object_add(shown, "shapes", shapes_json(site));
    json_object_object_add(shown, "without_shape", names_json(site, has_none, NULL));
    json_object_object_add(shown, "switches", switches_json(site, leaves));
    return shown;
}

/* ---- words ----------------------------------------------------------------------------------- */

static void print_shapes(FILE *out, json_object *list, int width)
{
    static const struct table_column columns[] = {{"SHAPE", TABLE_LEFT},
                                                  {"COUNT", TABLE_RIGHT},
                                                  {"NODES", TABLE_LEFT},
                                                  {"WHAT IT IS", TABLE_LEFT}};
    struct table *table = table_create(columns, 4);
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *shape = json_object_array_get_idx(list, i);
        table_cell(table, json_get_string(shape, "shape"));
        table_number(table, field_int(shape, "count", 0));
        table_cell(table, json_get_string(shape, "nodes"));
        table_cell(table, json_get_string(shape, "summary"));
    }
    table_print(table, out, width);
    table_destroy(table);
}

static void print_leaf(FILE *out, json_object *leaf, int depth)
{
    json_object *shapes = field_array(leaf, "shapes");
    for (size_t i = 0; i < field_count(leaf, "shapes"); i++) {
        json_object *entry = json_object_array_get_idx(shapes, i);
        const char *shape = json_get_string(entry, "shape");
        char *nodes = text_clean(json_get_string(entry, "nodes"), 0);
        fprintf(out, "%*s%s: %s\n", 2 * depth, "", nodes, shape != NULL ? shape : "not collected");
        free(nodes);
    }
}

static json_object *find_switch(json_object *list, const char *name)
{
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *each = json_object_array_get_idx(list, i);
        if (strcmp(json_get_string(each, "switch"), name) == 0)
            return each;
    }
    return NULL;
}

/* drawn: the switches that are below another switch that has been drawn. */
static void print_switch(FILE *out, json_object *list, json_object *each, int depth,
                         json_object *drawn)
{
    const char *below = json_get_string(each, "switches"), *name = json_get_string(each, "switch");
    char *clean = text_clean(name, 0);
    fprintf(out, "%*s%s\n", 2 * depth, "", clean);
    free(clean);
    json_object_object_add(drawn, name, NULL);
    print_leaf(out, each, depth + 1);
    char **names = below != NULL ? text_need(slurm_client_expand(below)) : NULL;
    for (int i = 0; names != NULL && names[i] != NULL && depth < DEPTH_MAX; i++) {
        json_object *child = find_switch(list, names[i]);
        if (child != NULL)
            print_switch(out, list, child, depth + 1, drawn);
    }
    strings_free(names);
}

static void print_tree(FILE *out, json_object *list)
{
    json_object *drawn = text_need(json_object_new_object());
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *each = json_object_array_get_idx(list, i);
        if (!json_object_object_get_ex(drawn, json_get_string(each, "switch"), NULL))
            print_switch(out, list, each, 0, drawn);
    }
    json_object_put(drawn);
}

char *topology_shown_text(json_object *shown, int width)
{
    const char *without = json_get_string(shown, "without_shape");
    char *text = NULL;
    size_t size;
    FILE *out = text_need(open_memstream(&text, &size));
    print_shapes(out, field_array(shown, "shapes"), width);
    if (without != NULL)
        fprintf(out, "\nNot collected: %s\n", without);
    if (field_count(shown, "switches") > 0) {
        fprintf(out, "\nSwitches:\n");
        print_tree(out, field_array(shown, "switches"));
    } else {
        fprintf(out, "\nSlurm has no tree of switches.\n");
    }
    fclose(out);
    return text_need(text);
}
