/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The nodes of a world as one text, as Slurm writes it: names "n[1-3,7],m1", workers "2(x3),1".
 *
 * The leader sends the whole world to each of its members, so the length of the text counts
 * squared. The order is the order of ranks: neighbours are folded, nothing is sorted. */
#include "lib/world.h"

#include <ctype.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/number.h"
#include "lib/sizes.h"

#define DIGITS_MAX 9  /* of a number that is folded: it fits an int */
#define SHOWN      64 /* characters of a bad text in a message about it */

/* ---- folding --------------------------------------------------------------------------------- */

/* Names that differ in one number: the text before the number, and the text after it. */
struct family {
    const char *example;
    size_t prefix;      /* bytes of example */
    const char *suffix; /* in example */
};

static size_t digits_at(const char *text)
{
    return strspn(text, "0123456789");
}

static bool number_fits(size_t digits)
{
    return digits > 0 && digits <= DIGITS_MAX;
}

/* The family of two names, false if they have none. */
static bool family_of(struct family *family, const char *a, const char *b, bool suffixes)
{
    size_t at = 0;

    while (a[at] != '\0' && a[at] == b[at])
        at++;
    while (at > 0 && isdigit((unsigned char)a[at - 1]))
        at--;
    *family = (struct family){a, at, a + at + digits_at(a + at)};
    return number_fits(digits_at(a + at)) && number_fits(digits_at(b + at)) &&
           strcmp(family->suffix, b + at + digits_at(b + at)) == 0 &&
           (suffixes || family->suffix[0] == '\0');
}

/* The digits of a name's number, NULL if it is of another family. */
static const char *member_number(const struct family *family, const char *name)
{
    const char *number = name + family->prefix;

    if (strncmp(name, family->example, family->prefix) != 0 || !number_fits(digits_at(number)) ||
        strcmp(number + digits_at(number), family->suffix) != 0)
        return NULL;
    return number;
}

/* Is the number at next the number at first plus `more`, padded to the same width? */
static bool is_more_by(const char *first, const char *next, int more)
{
    char expected[16];
    int width = (int)digits_at(first), length;

    length = snprintf(expected, sizeof(expected), "%0*ld", width, strtol(first, NULL, 10) + more);
    return length <= DIGITS_MAX && digits_at(next) == (size_t)length &&
           strncmp(expected, next, (size_t)length) == 0;
}

/* The end of the run that begins with node i: names of the family whose numbers rise by one. */
static int run_end(const struct world *world, int i, const struct family *family)
{
    const char *first = member_number(family, world->nodes[i].name), *number;
    int end = i + 1;

    for (; end < world->node_count; end++) {
        number = member_number(family, world->nodes[end].name);
        if (number == NULL || !is_more_by(first, number, end - i))
            break;
    }
    return end;
}

/* Write node i and the nodes behind it that are of its family: "n[1-3,7]". Returns the index of the
 * next node. */
static int write_family(FILE *out, const struct world *world, int i, const struct family *family)
{
    const char *number = member_number(family, world->nodes[i].name), *last;
    char before = '[';

    fprintf(out, "%.*s", (int)family->prefix, family->example);
    while (number != NULL) {
        int end = run_end(world, i, family);

        last = member_number(family, world->nodes[end - 1].name);
        fprintf(out, "%c%.*s", before, (int)digits_at(number), number);
        if (end - i > 1)
            fprintf(out, "-%.*s", (int)digits_at(last), last);
        before = ',';
        i = end;
        number = i < world->node_count ? member_number(family, world->nodes[i].name) : NULL;
    }
    fprintf(out, "]%s", family->suffix);
    return i;
}

char *world_fold_names(const struct world *world, bool suffixes)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    struct family family;

    if (out == NULL)
        return NULL;
    for (int i = 0; i < world->node_count;) {
        const char *name = world->nodes[i].name;

        if (i > 0)
            fputc(',', out);
        if (i + 1 < world->node_count &&
            family_of(&family, name, world->nodes[i + 1].name, suffixes)) {
            i = write_family(out, world, i, &family);
        } else {
            fputs(name, out);
            i++;
        }
    }
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

char *world_fold_slots(const struct world *world)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    int next;

    if (out == NULL)
        return NULL;
    for (int i = 0; i < world->node_count; i = next) {
        for (next = i + 1; next < world->node_count; next++)
            if (world->nodes[next].slots != world->nodes[i].slots)
                break;
        fprintf(out, "%s%d", i > 0 ? "," : "", world->nodes[i].slots);
        if (next - i > 1)
            fprintf(out, "(x%d)", next - i);
    }
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* ---- unfolding ------------------------------------------------------------------------------- */

/* The text comes from outside, and a few bytes of it may stand for any number of names. So it is
 * read twice: first the names are counted, then they are made, if they are not too many. */
struct names {
    struct world *world; /* NULL: only count */
    int count;
};

/* A name with a number in it: "n", [, 08, ], "-ib". */
struct pattern {
    const char *prefix, *suffix;
    int prefix_length, suffix_length;
};

static int bad_list(const char *what, const char *at, struct error *err)
{
    return error_set(err, "%s: a list as Slurm writes it is expected, got %.*s", what, SHOWN, at);
}

static int take_name(struct names *names, const char *name, struct error *err)
{
    if (names->count >= SIZES_NODES_MAX)
        return error_set(err, "nodes: more than %d", SIZES_NODES_MAX);
    if (!world_name_ok(name))
        return error_set(err, "nodes: a name of [A-Za-z0-9._-] is expected, got %.*s", SHOWN, name);
    if (names->world != NULL && world_set_node(names->world, names->count, name, 1) != 0)
        return error_set(err, "out of memory");
    names->count++;
    return 0;
}

/* Take the names of one range, "7" or "08-11", which is len bytes of text. */
static int take_range(struct names *names, const struct pattern *pattern, const char *text,
                      size_t len, struct error *err)
{
    size_t width = digits_at(text), rest = len - width;
    int first, last, rc = 0;

    if (width > DIGITS_MAX || number_parse(text, width, 0, INT_MAX, &first) != 0)
        return bad_list("nodes", text, err);
    last = first;
    if (rest > 0 && (text[width] != '-' || rest - 1 > DIGITS_MAX || rest - 1 < width ||
                     number_parse(text + width + 1, rest - 1, first, INT_MAX, &last) != 0 ||
                     (rest - 1 > width && text[width + 1] == '0')))
        return bad_list("nodes", text, err);
    if (last - first >= SIZES_NODES_MAX - names->count)
        return error_set(err, "nodes: more than %d", SIZES_NODES_MAX);
    for (int i = first; i <= last && rc == 0; i++) {
        char name[2 * WORLD_NAME_MAX + DIGITS_MAX + 1];

        snprintf(name, sizeof(name), "%.*s%0*d%.*s", pattern->prefix_length, pattern->prefix,
                 (int)width, i, pattern->suffix_length, pattern->suffix);
        rc = take_name(names, name, err);
    }
    return rc;
}

/* Take "n[1-3,7]-ib", whose bracket is at open. Returns the text behind it, NULL on error. */
static const char *take_family(struct names *names, const char *text, const char *open,
                               struct error *err)
{
    const char *close = strchr(open, ']'), *end;
    struct pattern pattern;

    if (close == NULL || open - text > WORLD_NAME_MAX) {
        bad_list("nodes", text, err);
        return NULL;
    }
    end = close + 1 + strcspn(close + 1, "[],");
    if (end - close > WORLD_NAME_MAX || *end == '[' || *end == ']') {
        bad_list("nodes", text, err);
        return NULL;
    }
    pattern = (struct pattern){text, close + 1, (int)(open - text), (int)(end - close - 1)};
    for (const char *at = open; at < close;) {
        size_t len = strcspn(at + 1, ",]");

        if (take_range(names, &pattern, at + 1, len, err) != 0)
            return NULL;
        at += len + 1;
    }
    return end;
}

static int take_names(struct names *names, const char *text, struct error *err)
{
    for (const char *at = text;; at++) {
        const char *end = at + strcspn(at, "[],");
        char name[WORLD_NAME_MAX + 2];

        if (*end == '[') {
            end = take_family(names, at, end, err);
            if (end == NULL)
                return -1;
        } else {
            snprintf(name, sizeof(name), "%.*s",
                     (int)(end - at < WORLD_NAME_MAX + 1 ? end - at : WORLD_NAME_MAX + 1), at);
            if (*end == ']' || take_name(names, name, err) != 0)
                return *end == ']' ? bad_list("nodes", at, err) : -1;
        }
        if (*end == '\0')
            return 0;
        at = end;
    }
}

/* Takes "2(x3),1" for the workers of all nodes. */
static int take_slots(struct world *world, const char *text, struct error *err)
{
    int done = 0;

    for (const char *at = text;; at++) {
        size_t digits = digits_at(at), more = 0;
        int slots, times = 1;

        if (number_parse(at, digits, 1, WORLD_SLOTS_MAX, &slots) != 0)
            return error_set(err, "slots: 1 to %d for a node are expected, got %.*s",
                             WORLD_SLOTS_MAX, SHOWN, at);
        at += digits;
        if (strncmp(at, "(x", 2) == 0) {
            more = digits_at(at + 2);
            if (number_parse(at + 2, more, 1, SIZES_NODES_MAX, &times) != 0 || at[2 + more] != ')')
                return bad_list("slots", at, err);
            at += 2 + more + 1;
        }
        if (times > world->node_count - done)
            return error_set(err, "slots: for more than the %d nodes", world->node_count);
        for (; times > 0; times--)
            world->nodes[done++].slots = slots;
        if (*at == '\0')
            break;
        if (*at != ',')
            return bad_list("slots", at, err);
    }
    if (done < world->node_count)
        return error_set(err, "slots: for %d of %d nodes", done, world->node_count);
    return 0;
}

struct world *world_unfold_names(const char *names, struct error *err)
{
    struct names counted = {0}, made = {0};

    if (take_names(&counted, names, err) != 0)
        return NULL;
    made.world = world_create(0, counted.count);
    if (made.world == NULL) {
        error_set(err, "out of memory");
        return NULL;
    }
    if (take_names(&made, names, err) != 0) {
        world_destroy(made.world);
        return NULL;
    }
    return made.world;
}

struct world *world_unfold(int generation, const char *names, const char *slots, struct error *err)
{
    struct world *world = world_unfold_names(names, err);

    if (world == NULL)
        return NULL;
    world->generation = generation;
    if (take_slots(world, slots, err) != 0) {
        world_destroy(world);
        return NULL;
    }
    return world;
}
