/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which node has which shape (topology_map.h). */
#include "cmd/topology_map.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/shape.h"
#include "cmd/terminal_text.h"
#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/world.h"

void topology_map_clear(struct topology_map *map)
{
    for (int i = 0; i < map->entry_count; i++)
        free(map->entries[i].node);
    free(map->entries);
    free(map->shapes);
    *map = (struct topology_map){0};
}

/* Room for one more element in an array of count elements: the array is doubled whenever count is a
 * power of two. */
static void *grow(void *array, int count, size_t size)
{
    if (count > 0 && (count & (count - 1)) != 0)
        return array;
    return text_need(realloc(array, (size_t)(count > 0 ? 2 * count : 1) * size));
}

/* Where the node is, or would be. */
static int place_of(const struct topology_map *map, const char *node, bool *there)
{
    int low = 0, high = map->entry_count;
    *there = false;
    while (low < high) {
        int middle = low + (high - low) / 2;
        int order = strverscmp(map->entries[middle].node, node);
        if (order == 0) {
            *there = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void put(struct topology_map *map, const char *node, int shape)
{
    bool there;
    int at = place_of(map, node, &there);
    if (!there) {
        map->entries = grow(map->entries, map->entry_count, sizeof(*map->entries));
        memmove(map->entries + at + 1, map->entries + at,
                (size_t)(map->entry_count - at) * sizeof(*map->entries));
        map->entry_count++;
        map->entries[at].node = text_need(strdup(node));
    }
    map->entries[at].shape = shape;
}

static int find_shape(const struct topology_map *map, const char *name)
{
    for (int i = 0; i < map->shape_count; i++)
        if (strcmp(map->shapes[i].name, name) == 0)
            return i;
    return -1;
}

static int add_shape(struct topology_map *map, const char *name, const struct machine *machine)
{
    struct topology_shape *shape;
    map->shapes = grow(map->shapes, map->shape_count, sizeof(*map->shapes));
    shape = &map->shapes[map->shape_count];
    shape->machine = *machine;
    snprintf(shape->name, sizeof(shape->name), "%s", name);
    return map->shape_count++;
}

void topology_map_set(struct topology_map *map, const char *node, const struct machine *machine)
{
    char name[MACHINE_NAME_MAX];
    int shape;
    machine_name(machine, name, sizeof(name));
    shape = find_shape(map, name);
    put(map, node, shape >= 0 ? shape : add_shape(map, name, machine));
}

const struct topology_shape *topology_map_find(const struct topology_map *map, const char *node)
{
    bool there;
    int at = place_of(map, node, &there);
    return there ? &map->shapes[map->entries[at].shape] : NULL;
}

char *topology_map_nodes(const struct topology_map *map, int shape, topology_compress *compress,
                         int *count)
{
    char **names = text_need(calloc((size_t)map->entry_count + 1, sizeof(*names)));
    *count = 0;
    for (int i = 0; i < map->entry_count; i++)
        if (map->entries[i].shape == shape)
            names[(*count)++] = map->entries[i].node;
    char *text = text_need(compress(names, *count));
    free(names);
    return text;
}

char *topology_map_format(const struct topology_map *map, topology_compress *compress)
{
    json_object *file = text_need(json_object_new_object());
    json_object *shapes = text_need(json_object_new_object());
    json_object *nodes = text_need(json_object_new_object());
    for (int i = 0; i < map->shape_count; i++) {
        int count;
        char *names = topology_map_nodes(map, i, compress, &count);
        if (count > 0) {
            json_object_object_add(shapes, map->shapes[i].name,
                                   machine_to_json(&map->shapes[i].machine));
            json_object_object_add(nodes, names, json_object_new_string(map->shapes[i].name));
        }
        free(names);
    }
    json_object_object_add(file, "format", json_object_new_int(TOPOLOGY_FORMAT));
    json_object_object_add(file, "shapes", shapes);
    json_object_object_add(file, "nodes", nodes);
    char *json = shape_serialize(file, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE);
    char *text = NULL;
    if (asprintf(&text, "%s\n", json) < 0)
        text = NULL;
    free(json);
    json_object_put(file);
    return text_need(text);
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool is_name(const char *name)
{
    size_t length = strlen(name);
    return length > 0 && length < MACHINE_NAME_MAX &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") ==
               length;
}

static int read_shapes(struct topology_map *map, json_object *shapes, struct error *err)
{
    json_object_object_foreach (shapes, name, description) {
        struct machine machine;
        if (!is_name(name))
            return error_set(err, "'%s' is not the name of a shape", error_value(name).text);
        if (machine_from_json(description, &machine, err) < 0)
            return error_prefix(err, "shape %s", name);
        add_shape(map, name, &machine);
    }
    return 0;
}

static int put_nodes(struct topology_map *map, char *const *names, int shape, struct error *err)
{
    for (; *names != NULL; names++) {
        if (!world_name_ok(*names))
            return error_set(err, "'%s' is not the name of a node", error_value(*names).text);
        if (topology_map_find(map, *names) != NULL)
            return error_set(err, "node %s is there twice", *names);
        put(map, *names, shape);
    }
    return 0;
}

static int read_nodes(struct topology_map *map, json_object *nodes, topology_expand *expand,
                      struct error *err)
{
    json_object_object_foreach (nodes, hostlist, name) {
        const char *wanted = json_object_is_type(name, json_type_string)
                                 ? json_object_get_string(name)
                                 : "";
        int shape = find_shape(map, wanted);
        char **names = shape >= 0 ? expand(hostlist) : NULL;
        int rc = names != NULL ? put_nodes(map, names, shape, err)
                               : error_set(err, "nodes '%s': %s", error_value(hostlist).text,
                                           shape >= 0 ? "cannot be understood"
                                                      : "there is no description of their shape");
        strings_free(names);
        if (rc < 0)
            return -1;
    }
    return 0;
}

static int read_file(struct topology_map *map, json_object *file, topology_expand *expand,
                     struct error *err)
{
    json_object *shapes = NULL, *nodes = NULL;
    int64_t format;
    if (!json_get_int(file, "format", TOPOLOGY_FORMAT, TOPOLOGY_FORMAT, &format))
        return error_set(err, "not a file of shapes: 'format' is not %d", TOPOLOGY_FORMAT);
    json_object_object_get_ex(file, "shapes", &shapes);
    json_object_object_get_ex(file, "nodes", &nodes);
    if (!json_object_is_type(shapes, json_type_object) ||
        !json_object_is_type(nodes, json_type_object))
        return error_set(err, "'shapes' and 'nodes' must be objects");
    return read_shapes(map, shapes, err) < 0 ? -1 : read_nodes(map, nodes, expand, err);
}

int topology_map_parse(struct topology_map *map, const char *text, size_t len,
                       topology_expand *expand, struct error *err)
{
    json_object *file = json_text_parse(text, len, err);
    int rc = file != NULL ? read_file(map, file, expand, err) : -1;
    json_object_put(file);
    if (rc < 0)
        topology_map_clear(map);
    return rc;
}
