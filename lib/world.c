/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One generation and the texts that follow from it: wire form, host files (world.h). The
 * environment is in world_env.c, lists of nodes are in world_list.c. */
#include "lib/world.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json_get.h"
#include "lib/sizes.h"

#define RESTARTS_MAX 1000000

static const char name_characters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

/* Names go into a shell script, host files and lists that are split at commas. So only characters
 * are allowed that Slurm allows in a NodeName. */
bool world_name_ok(const char *name)
{
    size_t len = name != NULL ? strlen(name) : 0;

    return len > 0 && len <= WORLD_NAME_MAX && name[0] != '-' &&
           strspn(name, name_characters) == len;
}

/* A host name or a numeric address of either family, with an IPv6 zone. */
static bool address_ok(const char *address)
{
    char plain[WORLD_NAME_MAX + 1];
    size_t len = strlen(address);

    if (len > WORLD_NAME_MAX)
        return false;
    for (size_t i = 0; i <= len; i++)
        plain[i] = address[i] == ':' || address[i] == '%' ? '.' : address[i];
    return world_name_ok(plain);
}

struct world *world_create(int generation, int node_count)
{
    struct world *world;

    if (node_count < 1 || node_count > SIZES_NODES_MAX)
        return NULL;
    world = calloc(1, sizeof(*world));
    if (world == NULL)
        return NULL;
    world->nodes = calloc((size_t)node_count, sizeof(*world->nodes));
    if (world->nodes == NULL) {
        free(world);
        return NULL;
    }
    world->generation = generation;
    world->node_count = node_count;
    world->replica = 1;
    return world;
}

static void unfold(struct world *world)
{
    free(world->folded_names);
    free(world->folded_slots);
    world->folded_names = world->folded_slots = NULL;
}

void world_fold(struct world *world)
{
    unfold(world);
    world->folded_names = world_fold_names(world, true);
    world->folded_slots = world_fold_slots(world);
    world->folded_size = world_first_rank(world, world->node_count);
}

void world_destroy(struct world *world)
{
    if (world == NULL)
        return;
    unfold(world);
    for (int i = 0; i < world->node_count; i++)
        free(world->nodes[i].name);
    free(world->nodes);
    free(world->kind);
    free(world->reason);
    free(world->master_addr);
    free(world);
}

int world_set_node(struct world *world, int index, const char *name, int slots)
{
    char *copy;

    if (index < 0 || index >= world->node_count || slots < 1 || slots > WORLD_SLOTS_MAX ||
        !world_name_ok(name))
        return -1;
    copy = strdup(name);
    if (copy == NULL)
        return -1;
    unfold(world);
    free(world->nodes[index].name);
    world->nodes[index].name = copy;
    world->nodes[index].slots = slots;
    return 0;
}

int world_first_rank(const struct world *world, int node_index)
{
    int rank = 0;

    for (int i = 0; i < node_index && i < world->node_count; i++)
        rank += world->nodes[i].slots;
    return rank;
}

int world_size(const struct world *world)
{
    return world->folded_slots != NULL ? world->folded_size
                                       : world_first_rank(world, world->node_count);
}

int world_node_of(const struct world *world, int64_t rank)
{
    int64_t first = 0;

    for (int i = 0; rank >= 0 && i < world->node_count; i++) {
        first += world->nodes[i].slots;
        if (rank < first)
            return i;
    }
    return -1;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void add_string(json_object *obj, const char *key, const char *value)
{
    json_object_object_add(obj, key, json_object_new_string(value != NULL ? value : ""));
}

static void add_int(json_object *obj, const char *key, int value)
{
    json_object_object_add(obj, key, json_object_new_int(value));
}

/* Free a list and return its folded text. */
static void add_list(json_object *obj, const char *key, char *list)
{
    add_string(obj, key, list);
    free(list);
}

json_object *world_to_json(const struct world *world)
{
    json_object *msg = json_object_new_object();

    add_int(msg, "gen", world->generation);
    add_int(msg, "world", world_size(world));
    if (world->folded_names != NULL && world->folded_slots != NULL) {
        add_string(msg, "nodes", world->folded_names);
        add_string(msg, "slots", world->folded_slots);
    } else {
        add_list(msg, "nodes", world_fold_names(world, true));
        add_list(msg, "slots", world_fold_slots(world));
    }
    add_string(msg, "master_addr", world->master_addr);
    add_int(msg, "master_port", world->master_port);
    add_int(msg, "restarts", world->restarts);
    if (world->replica > 1)
        add_int(msg, "unit_nodes", world->replica);
    add_string(msg, "kind", world->kind);
    add_string(msg, "reason", world->reason);
    return msg;
}

static int compare_names(const void *a, const void *b)
{
    const struct world_node *const *left = a, *const *right = b;

    return strcmp((*left)->name, (*right)->name);
}

/* The nodes in the order of their names: a new array of pointers into world, NULL when out of
 * memory. */
static const struct world_node **sorted_nodes(const struct world *world)
{
    const struct world_node **nodes = calloc((size_t)world->node_count, sizeof(*nodes));

    if (nodes == NULL)
        return NULL;
    for (int i = 0; i < world->node_count; i++)
        nodes[i] = &world->nodes[i];
    qsort(nodes, (size_t)world->node_count, sizeof(*nodes), compare_names);
    return nodes;
}

static int check_distinct(const struct world *world, struct error *err)
{
    const struct world_node **nodes = sorted_nodes(world);
    int rc = 0;

    if (nodes == NULL)
        return error_set(err, "out of memory");
    for (int i = 1; i < world->node_count && rc == 0; i++)
        if (strcmp(nodes[i - 1]->name, nodes[i]->name) == 0)
            rc = error_set(err, "node %s is listed twice", nodes[i]->name);
    free(nodes);
    return rc;
}

/* A copy of text as one line: a byte that is neither printable ASCII nor part of UTF-8 becomes a
 * blank. */
static char *one_line(const char *text)
{
    char *copy = strdup(text);

    for (char *c = copy; c != NULL && *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
    return copy;
}

static int fill_from_json(struct world *world, json_object *msg, struct error *err)
{
    const char *address = json_get_string(msg, "master_addr");
    const char *kind = json_get_string(msg, "kind"), *reason = json_get_string(msg, "reason");
    int64_t port, restarts, size, replica = 1;

    if (address == NULL || !address_ok(address))
        return error_set(err, "master_addr: a host name or address is expected");
    if (!json_get_int(msg, "master_port", 0, 65535, &port))
        return error_set(err, "master_port: a number of 0 to 65535 is expected");
    if (!json_get_int(msg, "restarts", 0, RESTARTS_MAX, &restarts))
        return error_set(err, "restarts: a number of 0 to %d is expected", RESTARTS_MAX);
    if (json_object_object_get_ex(msg, "unit_nodes", NULL) &&
        (!json_get_int(msg, "unit_nodes", 1, SIZES_NODES_MAX, &replica) ||
         world->node_count % replica != 0))
        return error_set(err, "unit_nodes: a number that divides the %d nodes is expected",
                         world->node_count);
    if (kind == NULL || reason == NULL)
        return error_set(err, "kind and reason: texts are expected");
    if (!json_get_int(msg, "world", 1, INT32_MAX, &size) || size != world_size(world))
        return error_set(err, "world: %d is expected, the sum of the nodes' slots",
                         world_size(world));
    world->master_addr = strdup(address);
    world->kind = one_line(kind);
    world->reason = one_line(reason);
    world->master_port = (int)port;
    world->restarts = (int)restarts;
    world->replica = (int)replica;
    if (world->master_addr == NULL || world->kind == NULL || world->reason == NULL)
        return error_set(err, "out of memory");
    return check_distinct(world, err);
}

struct world *world_from_json(json_object *msg, struct error *err)
{
    const char *nodes = json_get_string(msg, "nodes"), *slots = json_get_string(msg, "slots");
    struct world *world;
    int64_t generation;

    if (!json_get_int(msg, "gen", 0, INT32_MAX, &generation)) {
        error_set(err, "gen: a number of 0 or more is expected");
        return NULL;
    }
    if (nodes == NULL || slots == NULL) {
        error_set(err, "nodes and slots: texts are expected");
        return NULL;
    }
    world = world_unfold((int)generation, nodes, slots, err);
    if (world != NULL && fill_from_json(world, msg, err) != 0) {
        world_destroy(world);
        return NULL;
    }
    return world;
}

static json_object *nodes_to_json(const struct world *world)
{
    json_object *nodes = json_object_new_array_ext(world->node_count);

    for (int i = 0; i < world->node_count; i++) {
        json_object *node = json_object_new_object();

        add_string(node, "name", world->nodes[i].name);
        add_int(node, "slots", world->nodes[i].slots);
        json_object_array_add(nodes, node);
    }
    return nodes;
}

char *world_generation_json(const struct world *world, const char *incarnation, double unix_time)
{
    json_object *obj = json_object_new_object();
    char *text = NULL, seconds[32];

    snprintf(seconds, sizeof(seconds), "%.3f", unix_time);
    add_int(obj, "generation", world->generation);
    add_string(obj, "incarnation", incarnation);
    json_object_object_add(obj, "time", json_object_new_double_s(unix_time, seconds));
    add_string(obj, "kind", world->kind);
    add_string(obj, "reason", world->reason);
    json_object_object_add(obj, "nodes", nodes_to_json(world));
    add_int(obj, "world_size", world_size(world));
    add_string(obj, "master_addr", world->master_addr);
    add_int(obj, "master_port", world->master_port);
    if (asprintf(&text, "%s\n",
                 json_object_to_json_string_ext(obj, JSON_C_TO_STRING_PRETTY |
                                                         JSON_C_TO_STRING_SPACED |
                                                         JSON_C_TO_STRING_NOSLASHESCAPE)) < 0)
        text = NULL;
    json_object_put(obj);
    return text;
}

/* ---- host files ------------------------------------------------------------------------------ */

/* head, then "BEFORE name MIDDLE slots AFTER" per node in the order of names. */
static char *host_lines(const struct world *world, const char *head, const char *before,
                        const char *middle, const char *after)
{
    const struct world_node **nodes = sorted_nodes(world);
    char *text = NULL;
    size_t len = 0;
    FILE *out = nodes != NULL ? open_memstream(&text, &len) : NULL;

    if (out == NULL) {
        free(nodes);
        return NULL;
    }
    fputs(head, out);
    for (int i = 0; i < world->node_count; i++)
        fprintf(out, "%s%s%s%d%s", before, nodes[i]->name, middle, nodes[i]->slots, after);
    free(nodes);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

char *world_discover_hosts(const struct world *world)
{
    return host_lines(
        world, "#!/bin/sh\n# The hosts of this generation, for Horovod. Written by elasticrun.\n",
        "echo '", ":", "'\n");
}

char *world_hostfile_openmpi(const struct world *world)
{
    return host_lines(world, "", "", " slots=", "\n");
}

char *world_hostfile_mpich(const struct world *world)
{
    return host_lines(world, "", "", ":", "\n");
}
