/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The odd node in a group that should be alike (topology_check.h). */
#include "cmd/topology_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/shape.h"
#include "cmd/terminal_text.h"
#include "lib/json_get.h"

#define GROUP_MIN 3 /* two nodes that differ do not tell which is odd */

/* How near to each other the nodes of a group are. */
enum level { LEVEL_LEAF, LEVEL_PARTITIONS, LEVEL_KIND, LEVELS };

/* A node with a shape. */
struct candidate {
    const struct topology_peer *peer;
    const struct topology_shape *shape;
    const struct topology_shape *usual; /* NULL: not decided */
    enum level level;                   /* of the group that decided */
    int nodes, alike;
};

/* ---- groups ---------------------------------------------------------------------------------- */

static int compare_groups(const struct candidate *a, const struct candidate *b, enum level level)
{
    int order = strcmp(a->peer->kind, b->peer->kind);
    if (order == 0 && level < LEVEL_KIND)
        order = strcmp(a->peer->partitions, b->peer->partitions);
    if (order == 0 && level == LEVEL_LEAF)
        order = strcmp(a->peer->leaf, b->peer->leaf);
    return order;
}

static int compare_nodes(const struct candidate *a, const struct candidate *b)
{
    return strverscmp(a->peer->node, b->peer->node);
}

/* Within a group by shape, within a shape by node. */
static int compare_at(const void *x, const void *y, void *level)
{
    const struct candidate *a = x, *b = y;
    int order = compare_groups(a, b, *(enum level *)level);
    if (order == 0)
        order = strcmp(a->shape->name, b->shape->name);
    return order != 0 ? order : compare_nodes(a, b);
}

static int compare_candidates(const void *x, const void *y)
{
    return compare_nodes(x, y);
}

static int group_end(const struct candidate *list, int from, int count, enum level level)
{
    int end = from;
    while (end < count && compare_groups(&list[from], &list[end], level) == 0)
        end++;
    return end;
}

static int shape_end(const struct candidate *list, int from, int end)
{
    int at = from;
    while (at < end && list[at].shape == list[from].shape)
        at++;
    return at;
}

/* The group is list[from..end): sorted by shape. */
static void decide_group(struct candidate *list, int from, int end, enum level level)
{
    int most = 0;
    const struct topology_shape *usual = NULL;
    for (int at = from, next; at < end; at = next) {
        next = shape_end(list, at, end);
        if (next - at > most) {
            most = next - at;
            usual = list[at].shape;
        }
    }
    if (end - from < GROUP_MIN || most * 2 <= end - from)
        return;
    for (int i = from; i < end; i++)
        if (list[i].usual == NULL) {
            list[i].usual = usual;
            list[i].level = level;
            list[i].nodes = end - from;
            list[i].alike = most;
        }
}

static void decide(struct candidate *list, int count)
{
    for (enum level level = LEVEL_LEAF; level < LEVELS; level++) {
        qsort_r(list, (size_t)count, sizeof(*list), compare_at, &level);
        for (int at = 0, next; at < count; at = next) {
            next = group_end(list, at, count, level);
            decide_group(list, at, next, level);
        }
    }
}

/* ---- answers --------------------------------------------------------------------------------- */

static json_object *differences_json(const struct topology_shape *shape,
                                     const struct topology_shape *usual)
{
    char **lines = text_need(machine_differences(&shape->machine, &usual->machine));
    json_object *list = json_from_strings(lines);
    strings_free(lines);
    return list;
}

static json_object *group_json(const struct candidate *node)
{
    char *text = NULL;
    int rc = 0;
    if (node->level == LEVEL_KIND)
        return json_object_new_string("all that Slurm has configured alike");
    if (node->level == LEVEL_LEAF && node->peer->leaf[0] != '\0')
        rc = asprintf(&text, "switch %s, partitions %s", node->peer->leaf, node->peer->partitions);
    else
        rc = asprintf(&text, "partitions %s", node->peer->partitions);
    text_need(rc < 0 ? NULL : text);
    json_object *json = json_object_new_string(text);
    free(text);
    return json;
}

static json_object *odd_json(const struct candidate *node)
{
    json_object *json = text_need(json_object_new_object());
    json_object_object_add(json, "node", json_object_new_string(node->peer->node));
    json_object_object_add(json, "shape", json_object_new_string(node->shape->name));
    json_object_object_add(json, "usual", json_object_new_string(node->usual->name));
    json_object_object_add(json, "group", group_json(node));
    json_object_object_add(json, "nodes", json_object_new_int(node->nodes));
    json_object_object_add(json, "alike", json_object_new_int(node->alike));
    json_object_object_add(json, "differences", differences_json(node->shape, node->usual));
    return json;
}

static json_object *names_json(const struct candidate *list, int count, topology_compress *compress)
{
    char **names = text_need(calloc((size_t)count + 1, sizeof(*names)));
    for (int i = 0; i < count; i++)
        names[i] = (char *)list[i].peer->node;
    char *text = text_need(compress(names, count));
    json_object *json = json_object_new_string(text);
    free(text);
    free(names);
    return json;
}

static json_object *shape_json(const struct candidate *list, int count, topology_compress *compress)
{
    json_object *shape = text_need(json_object_new_object());
    json_object_object_add(shape, "shape", json_object_new_string(list->shape->name));
    json_object_object_add(shape, "nodes", names_json(list, count, compress));
    return shape;
}

/* The entry about nodes for which no group has decided; NULL when all of them have one shape. The
 * shape of most nodes comes first. */
static json_object *undecided_json(const struct candidate *list, int from, int end,
                                   topology_compress *compress)
{
    int first = from, second = -1;
    for (int at = from; at < end; at = shape_end(list, at, end))
        if (shape_end(list, at, end) - at > shape_end(list, first, end) - first)
            first = at;
    json_object *json = text_need(json_object_new_object());
    json_object *shapes = text_need(json_object_new_array());
    json_object_array_add(shapes,
                          shape_json(list + first, shape_end(list, first, end) - first, compress));
    for (int at = from, next; at < end; at = next) {
        next = shape_end(list, at, end);
        if (at == first)
            continue;
        if (second < 0)
            second = at;
        json_object_array_add(shapes, shape_json(list + at, next - at, compress));
    }
    json_object_object_add(json, "shapes", shapes);
    if (second >= 0) {
        json_object_object_add(json, "differences",
                               differences_json(list[second].shape, list[first].shape));
        return json;
    }
    json_object_put(json);
    return NULL;
}

/* list is sorted by kind. */
static json_object *all_undecided(const struct candidate *list, int count,
                                  topology_compress *compress)
{
    json_object *all = text_need(json_object_new_array());
    for (int at = 0, next; at < count; at = next) {
        next = group_end(list, at, count, LEVEL_KIND);
        bool open = false;
        for (int i = at; i < next; i++)
            open = open || list[i].usual == NULL;
        json_object *json = open ? undecided_json(list, at, next, compress) : NULL;
        if (json != NULL)
            json_object_array_add(all, json);
    }
    return all;
}

static json_object *all_odd(const struct candidate *list, int count)
{
    json_object *all = text_need(json_object_new_array());
    for (int i = 0; i < count; i++)
        if (list[i].usual != NULL && list[i].usual != list[i].shape)
            json_object_array_add(all, odd_json(&list[i]));
    return all;
}

static json_object *not_collected(const struct topology_map *map, const struct topology_peer *peers,
                                  int count, topology_compress *compress)
{
    char **names = text_need(calloc((size_t)count + 1, sizeof(*names)));
    int missing = 0;
    for (int i = 0; i < count; i++)
        if (topology_map_find(map, peers[i].node) == NULL)
            names[missing++] = (char *)peers[i].node;
    char *text = missing > 0 ? text_need(compress(names, missing)) : NULL;
    json_object *json = json_from_string(text);
    free(text);
    free(names);
    return json;
}

json_object *topology_check(const struct topology_map *map, const struct topology_peer *peers,
                            int count, topology_compress *compress)
{
    struct candidate *list = text_need(calloc((size_t)count + 1, sizeof(*list)));
    json_object *found = text_need(json_object_new_object());
    int known = 0;
    for (int i = 0; i < count; i++) {
        const struct topology_shape *shape = topology_map_find(map, peers[i].node);
        if (shape != NULL)
            list[known++] = (struct candidate){.peer = &peers[i], .shape = shape};
    }
    decide(list, known);
    json_object *undecided = all_undecided(list, known, compress);
    qsort(list, (size_t)known, sizeof(*list), compare_candidates);
    json_object_object_add(found, "odd", all_odd(list, known));
    json_object_object_add(found, "undecided", undecided);
    json_object_object_add(found, "not_collected", not_collected(map, peers, count, compress));
    free(list);
    return found;
}

bool topology_check_odd(json_object *found)
{
    return field_count(found, "odd") + field_count(found, "undecided") > 0;
}

/* ---- words ----------------------------------------------------------------------------------- */

static void print_differences(FILE *out, json_object *of)
{
    json_object *list = field_array(of, "differences");
    for (size_t i = 0; i < field_count(of, "differences"); i++)
        fprintf(out, "    %s\n", json_object_get_string(json_object_array_get_idx(list, i)));
}

static void print_odd(FILE *out, json_object *odd)
{
    fprintf(out, "%s: %s, unlike %lld of %lld nodes (%s), which are %s\n",
            json_get_string(odd, "node"), json_get_string(odd, "shape"),
            (long long)field_int(odd, "alike", 0), (long long)field_int(odd, "nodes", 0),
            json_get_string(odd, "group"), json_get_string(odd, "usual"));
    print_differences(out, odd);
}

static void print_undecided(FILE *out, json_object *undecided)
{
    json_object *shapes = field_array(undecided, "shapes");
    fprintf(out, "configured alike, but no shape is usual:\n");
    for (size_t i = 0; i < field_count(undecided, "shapes"); i++) {
        json_object *shape = json_object_array_get_idx(shapes, i);
        fprintf(out, "    %s: %s\n", json_get_string(shape, "nodes"),
                json_get_string(shape, "shape"));
    }
    fprintf(out, "  the second has, unlike the first:\n");
    print_differences(out, undecided);
}

char *topology_check_text(json_object *found)
{
    const char *missing = json_get_string(found, "not_collected");
    char *text = NULL;
    size_t size = 0;
    FILE *out = text_need(open_memstream(&text, &size));
    for (size_t i = 0; i < field_count(found, "odd"); i++)
        print_odd(out, json_object_array_get_idx(field_array(found, "odd"), i));
    for (size_t i = 0; i < field_count(found, "undecided"); i++)
        print_undecided(out, json_object_array_get_idx(field_array(found, "undecided"), i));
    if (!topology_check_odd(found))
        fprintf(out, "nodes that should be alike are\n");
    if (missing != NULL)
        fprintf(out, "not collected yet: %s\n", missing);
    fclose(out);
    return text_need(text);
}
