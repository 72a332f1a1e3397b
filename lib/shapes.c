/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The shapes file (shapes.h). */
#include "lib/shapes.h"

#include <stdlib.h>
#include <string.h>

#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/world.h"

struct node {
    char *name;
    int shape;
};

struct shapes {
    int count, node_count;
    char **names;
    struct node *nodes; /* sorted by name */
};

void shapes_destroy(struct shapes *shapes)
{
    if (shapes == NULL)
        return;
    for (int i = 0; i < shapes->count; i++)
        free(shapes->names[i]);
    for (int i = 0; i < shapes->node_count; i++)
        free(shapes->nodes[i].name);
    free(shapes->names);
    free(shapes->nodes);
    free(shapes);
}

/* The object under key, NULL with err. */
static json_object *object_at(json_object *file, const char *key, struct error *err)
{
    json_object *value = NULL;

    if (json_object_object_get_ex(file, key, &value) &&
        json_object_is_type(value, json_type_object))
        return value;
    error_set(err, "\"%s\" is %s; it must be an object", key,
              value != NULL ? json_text_type(value) : "missing");
    return NULL;
}

static int check_format(json_object *file, struct error *err)
{
    int64_t format;

    if (!json_get_int(file, "format", 0, INT32_MAX, &format))
        return error_set(err, "\"format\" is missing or no number; it must be %d", SHAPES_FORMAT);
    if (format != SHAPES_FORMAT)
        return error_set(err, "\"format\" is %d; known is %d: collect the shapes again",
                         (int)format, SHAPES_FORMAT);
    return 0;
}

static int read_names(struct shapes *shapes, json_object *described, struct error *err)
{
    int count = json_object_object_length(described);

    if (count > SHAPES_MAX)
        return error_set(err, "%d shapes; at most %d are allowed", count, SHAPES_MAX);
    if ((shapes->names = calloc((size_t)count + 1, sizeof(*shapes->names))) == NULL)
        return error_set(err, "out of memory");
    json_object_object_foreach (described, name, value) {
        if (!json_object_is_type(value, json_type_object))
            return error_set(err, "shape %s is %s; it must be an object", error_value(name).text,
                             json_text_type(value));
        if ((shapes->names[shapes->count] = strdup(name)) == NULL)
            return error_set(err, "out of memory");
        shapes->count++;
    }
    return 0;
}

static int find_name(const struct shapes *shapes, const char *name)
{
    for (int i = 0; i < shapes->count; i++)
        if (strcmp(shapes->names[i], name) == 0)
            return i;
    return -1;
}

/* Takes the names of the nodes out of world. */
static int add_nodes(struct shapes *shapes, struct world *world, int shape)
{
    size_t count = (size_t)shapes->node_count + (size_t)world->node_count;
    struct node *grown = realloc(shapes->nodes, (count + 1) * sizeof(*grown));

    if (grown == NULL)
        return -1;
    shapes->nodes = grown;
    for (int i = 0; i < world->node_count; i++) {
        shapes->nodes[shapes->node_count++] = (struct node){world->nodes[i].name, shape};
        world->nodes[i].name = NULL;
    }
    return 0;
}

static int read_entry(struct shapes *shapes, const char *names, json_object *value,
                      struct error *err)
{
    struct world *world;
    int shape, rc;

    if (!json_object_is_type(value, json_type_string))
        return error_set(err, "the shape of %s is %s; it must be a string", error_value(names).text,
                         json_text_type(value));
    if ((shape = find_name(shapes, json_object_get_string(value))) < 0)
        return error_set(err, "%s has the shape %s, which is not in \"shapes\"",
                         error_value(names).text, error_value(json_object_get_string(value)).text);
    if ((world = world_unfold_names(names, err)) == NULL)
        return -1;
    rc = add_nodes(shapes, world, shape);
    world_destroy(world);
    return rc < 0 ? error_set(err, "out of memory") : 0;
}

static int compare_nodes(const void *a, const void *b)
{
    return strcmp(((const struct node *)a)->name, ((const struct node *)b)->name);
}

static int sort_nodes(struct shapes *shapes, struct error *err)
{
    if (shapes->node_count == 0)
        return 0;
    qsort(shapes->nodes, (size_t)shapes->node_count, sizeof(*shapes->nodes), compare_nodes);
    for (int i = 1; i < shapes->node_count; i++)
        if (strcmp(shapes->nodes[i - 1].name, shapes->nodes[i].name) == 0)
            return error_set(err, "node %s is there twice", shapes->nodes[i].name);
    return 0;
}

static int read_file(struct shapes *shapes, json_object *file, struct error *err)
{
    json_object *described, *nodes;

    if (check_format(file, err) < 0 || (described = object_at(file, "shapes", err)) == NULL ||
        (nodes = object_at(file, "nodes", err)) == NULL || read_names(shapes, described, err) < 0)
        return -1;
    json_object_object_foreach (nodes, names, value) {
        if (read_entry(shapes, names, value, err) < 0)
            return -1;
    }
    return sort_nodes(shapes, err);
}

struct shapes *shapes_parse(const char *text, size_t len, struct error *err)
{
    json_object *file = json_text_parse(text, len, err);
    struct shapes *shapes;

    if (file == NULL)
        return NULL;
    if ((shapes = calloc(1, sizeof(*shapes))) == NULL) {
        error_set(err, "out of memory");
    } else if (read_file(shapes, file, err) < 0) {
        shapes_destroy(shapes);
        shapes = NULL;
    }
    json_object_put(file);
    return shapes;
}

int shapes_count(const struct shapes *shapes)
{
    return shapes->count;
}

const char *shapes_name(const struct shapes *shapes, int shape)
{
    return shapes->names[shape];
}

int shapes_nodes(const struct shapes *shapes)
{
    return shapes->node_count;
}

int shapes_of(const struct shapes *shapes, const char *node)
{
    struct node key = {(char *)(uintptr_t)node, 0}, *found = NULL;

    if (shapes != NULL && shapes->node_count > 0)
        found = bsearch(&key, shapes->nodes, (size_t)shapes->node_count, sizeof(key),
                        compare_nodes);
    return found != NULL ? found->shape : -1;
}
