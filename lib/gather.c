/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Collectives among nodes of a world (gather.h). */
#include "lib/gather.h"

#include <stdlib.h>
#include <string.h>

struct part {
    char *data;
    size_t len;
    bool given; /* the part is complete */
};

struct collective {
    char *key;
    int *nodes;
    struct part *parts; /* in the order of nodes */
    int count, missing;
    struct collective *next;
};

struct gather {
    int node_count;
    int *open;     /* for each node: waiting collectives to which it has begun to give its part */
    size_t *bytes; /* bytes that each node has given */
    struct collective *first;
};

struct gather *gather_create(int node_count)
{
    struct gather *gather = calloc(1, sizeof(*gather));

    if (gather == NULL)
        return NULL;
    gather->node_count = node_count;
    gather->open = calloc((size_t)node_count, sizeof(*gather->open));
    gather->bytes = calloc((size_t)node_count, sizeof(*gather->bytes));
    if (gather->open == NULL || gather->bytes == NULL) {
        gather_destroy(gather);
        return NULL;
    }
    return gather;
}

static void collective_free(struct collective *c)
{
    for (int i = 0; c->parts != NULL && i < c->count; i++)
        free(c->parts[i].data);
    free(c->parts);
    free(c->nodes);
    free(c->key);
    free(c);
}

void gather_destroy(struct gather *gather)
{
    if (gather == NULL)
        return;
    for (struct collective *c = gather->first, *next; c != NULL; c = next) {
        next = c->next;
        collective_free(c);
    }
    free(gather->open);
    free(gather->bytes);
    free(gather);
}

static struct collective *find(const struct gather *gather, const char *key)
{
    struct collective *c = gather->first;

    while (c != NULL && strcmp(c->key, key) != 0)
        c = c->next;
    return c;
}

/* -1: the node takes no part. */
static int place_of(const struct collective *c, int node)
{
    int low = 0, high = c->count - 1;

    while (low <= high) {
        int middle = low + (high - low) / 2;

        if (c->nodes[middle] == node)
            return middle;
        if (c->nodes[middle] < node)
            low = middle + 1;
        else
            high = middle - 1;
    }
    return -1;
}

static bool nodes_ok(const struct gather *gather, const int *nodes, int count)
{
    if (count < 1 || count > gather->node_count)
        return false;
    for (int i = 0; i < count; i++)
        if (nodes[i] < 0 || nodes[i] >= gather->node_count || (i > 0 && nodes[i] <= nodes[i - 1]))
            return false;
    return true;
}

static struct collective *collective_create(const char *key, const int *nodes, int count)
{
    struct collective *c = calloc(1, sizeof(*c));

    if (c == NULL)
        return NULL;
    c->count = c->missing = count;
    c->key = strdup(key);
    c->nodes = malloc((size_t)count * sizeof(*nodes));
    c->parts = calloc((size_t)count, sizeof(*c->parts));
    if (c->key == NULL || c->nodes == NULL || c->parts == NULL) {
        collective_free(c);
        return NULL;
    }
    memcpy(c->nodes, nodes, (size_t)count * sizeof(*nodes));
    return c;
}

static int part_append(struct part *part, const void *data, size_t len)
{
    char *grown;

    if (len == 0)
        return 0;
    grown = realloc(part->data, part->len + len);
    if (grown == NULL)
        return -1;
    memcpy(grown + part->len, data, len);
    part->data = grown;
    part->len += len;
    return 0;
}

enum gather_result gather_add(struct gather *gather, const char *key, const int *nodes, int count,
                              int node, const void *data, size_t len, bool last, struct error *err)
{
    struct collective *c = find(gather, key), *fresh = NULL;
    struct part *part;
    int place;
    bool begins;

    if (len == 0 && !last)
        return error_set(err, "an empty piece of a part");
    if (!nodes_ok(gather, nodes, count))
        return error_set(err, "a collective of nodes that this world does not have");
    if (c == NULL && (c = fresh = collective_create(key, nodes, count)) == NULL)
        return error_set(err, "out of memory");
    place = place_of(c, node);
    if (place < 0)
        error_set(err, "node %d takes no part in this collective", node);
    else if (c->count != count || memcmp(c->nodes, nodes, (size_t)count * sizeof(*nodes)) != 0)
        place = error_set(err, "the nodes of a collective do not agree on who takes part");
    else if (c->parts[place].given)
        place = error_set(err, "node %d has given its part already", node);
    if (place < 0)
        goto refuse;
    part = &c->parts[place];
    begins = part->len == 0;
    if ((begins && gather->open[node] >= GATHER_OPEN_MAX) ||
        len > GATHER_BYTES_MAX - gather->bytes[node]) {
        error_set(err, "node %d waits in %d collectives with %zu bytes: no more", node,
                  gather->open[node], gather->bytes[node]);
        goto refuse;
    }
    if (part_append(part, data, len) != 0) {
        error_set(err, "out of memory");
        goto refuse;
    }
    if (fresh != NULL) {
        fresh->next = gather->first;
        gather->first = fresh;
    }
    gather->open[node] += begins;
    gather->bytes[node] += len;
    part->given = last;
    c->missing -= last;
    return c->missing == 0 ? GATHER_COMPLETE : GATHER_WAITING;
refuse:
    if (fresh != NULL)
        collective_free(fresh);
    return GATHER_REFUSED;
}

const int *gather_nodes(const struct gather *gather, const char *key, int *count)
{
    const struct collective *c = find(gather, key);

    *count = c != NULL ? c->count : 0;
    return c != NULL ? c->nodes : NULL;
}

const void *gather_part(const struct gather *gather, const char *key, int node, size_t *len)
{
    const struct collective *c = find(gather, key);
    int place = c != NULL ? place_of(c, node) : -1;

    *len = place >= 0 ? c->parts[place].len : 0;
    return place >= 0 ? c->parts[place].data : NULL;
}

bool gather_has_given(const struct gather *gather, const char *key, int node)
{
    const struct collective *c = find(gather, key);
    int place = c != NULL ? place_of(c, node) : -1;

    return place >= 0 && c->missing > 0 && c->parts[place].given;
}

void gather_remove(struct gather *gather, const char *key)
{
    struct collective **at = &gather->first, *c;

    while (*at != NULL && strcmp((*at)->key, key) != 0)
        at = &(*at)->next;
    if ((c = *at) == NULL)
        return;
    *at = c->next;
    for (int i = 0; i < c->count; i++) {
        gather->open[c->nodes[i]] -= c->parts[i].given || c->parts[i].len > 0;
        gather->bytes[c->nodes[i]] -= c->parts[i].len;
    }
    collective_free(c);
}

const char *gather_with(const struct gather *gather, int node)
{
    for (const struct collective *c = gather->first; c != NULL; c = c->next)
        if (c->missing > 0 && place_of(c, node) >= 0)
            return c->key;
    return NULL;
}
