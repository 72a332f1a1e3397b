/* SPDX-License-Identifier: GPL-2.0-or-later */
/* YAML documents (yaml_file.h), over the events of libyaml.
 *
 * libyaml's own tree (yaml_parser_load) says nothing of keys that appear twice, keeps no positions
 * of keys, and has no limits; so the events are taken. An alias becomes a copy of what its anchor
 * is at, and each copy counts: what grows beyond the limits is refused while it grows. */
#include "common/yaml_file.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "common/files.h"
#include "lib/text.h"

#define ANCHORS_MAX 100
#define EMPTY       "there is nothing in it; write KEY: VALUE"

struct place {
    int line, column; /* from 1 */
};

/* A list or map that is not complete. */
struct level {
    json_object *value;
    char *key; /* of a map: of the value that comes; NULL: a key comes */
    char *anchor;
    struct place place; /* of that key */
};

struct reader {
    yaml_parser_t parser;
    struct level levels[YAML_DEPTH_MAX];
    int depth;
    int nodes;
    json_object *root; /* once it is complete */
    struct {
        char *name;
        json_object *value;
    } anchors[ANCHORS_MAX];
    int anchor_count;
    struct error *err;
};

/* ---- places ---------------------------------------------------------------------------------- */

static struct place place_of(const yaml_mark_t *mark)
{
    return (struct place){(int)mark->line + 1, (int)mark->column + 1};
}

/* A value's place is in the pointer that json-c keeps for its user: nothing is to be freed. Where
 * pointers are small, what is far away is said to be as far as can be said.
 *
 * json-c 0.19 follows that pointer when a list or map is freed, unless it is freed with what it is
 * in. So the map of all has no place, and drop() takes away that of others. */
#define COLUMN_BITS (sizeof(uintptr_t) > 4 ? 31 : 12)
#define COLUMN_MOST (((uintptr_t)1 << COLUMN_BITS) - 1)
#define LINE_MOST   (UINTPTR_MAX >> (COLUMN_BITS + 1))

static int set_place(json_object *value, struct place place)
{
    uintptr_t line = (uintptr_t)place.line, column = (uintptr_t)place.column;

    if (value == NULL)
        return -1;
    line = line < LINE_MOST ? line : LINE_MOST;
    column = column < COLUMN_MOST ? column : COLUMN_MOST;
    json_object_set_userdata(value, (void *)(line << COLUMN_BITS | column), NULL);
    return 0;
}

static void drop(json_object *value)
{
    if (value != NULL)
        json_object_set_userdata(value, NULL, NULL);
    json_object_put(value);
}

/* 0: none. */
static uintptr_t get_place(json_object *value)
{
    /* json-c's own parser keeps the text of a double there. */
    return json_object_is_type(value, json_type_double)
               ? 0
               : (uintptr_t)json_object_get_userdata(value);
}

/* The map of all is where its first key is; without one, at the beginning. */
bool yaml_where(const json_object *part, int *line, int *column, void *arg)
{
    /* It only reads the object. */
    json_object *value = (json_object *)(uintptr_t)part;
    uintptr_t place = value != NULL ? get_place(value) : 0;

    if (place == 0 && json_object_is_type(value, json_type_object)) {
        struct json_object_iterator first = json_object_iter_begin(value);

        place = json_object_object_length(value) > 0
                    ? get_place(json_object_iter_peek_value(&first))
                    : (uintptr_t)1 << COLUMN_BITS | 1;
    }
    if (place == 0)
        return false;
    *line = (int)(place >> COLUMN_BITS);
    *column = (int)(place & COLUMN_MOST);
    return true;
}

/* ---- errors ---------------------------------------------------------------------------------- */

static int fail_at(struct error *err, struct place place)
{
    if (err == NULL)
        return -1;
    return error_set(err, "%d:%d: %s", place.line, place.column, err->text);
}

static int fail(struct reader *reader, struct place place, const char *text)
{
    error_set(reader->err, "%s", text);
    return fail_at(reader->err, place);
}

static int no_memory(struct reader *reader, struct place place)
{
    return fail(reader, place, "out of memory");
}

/* The place of text[offset]; columns count characters, as libyaml's do. */
static struct place place_at(const char *text, size_t offset)
{
    struct place place = {1, 1};

    for (size_t i = 0; i < offset; i++) {
        place.column += ((unsigned char)text[i] & 0xc0) != 0x80 ? 1 : 0;
        if (text[i] == '\n')
            place = (struct place){place.line + 1, 1};
    }
    return place;
}

/* What libyaml says. It reads ahead: of bytes that it refuses it knows the offset only. */
static int parser_error(struct reader *reader, const char *text)
{
    const yaml_parser_t *parser = &reader->parser;

    if (parser->error == YAML_MEMORY_ERROR)
        return no_memory(reader, place_of(&parser->mark));
    if (parser->error == YAML_READER_ERROR) {
        error_set(reader->err, "%s (#x%02x)", parser->problem, (unsigned int)parser->problem_value);
        return fail_at(reader->err, place_at(text, parser->problem_offset));
    }
    if (parser->context != NULL)
        error_set(reader->err, "%s, %s", parser->problem, parser->context);
    else
        error_set(reader->err, "%s", parser->problem);
    return fail_at(reader->err, place_of(&parser->problem_mark));
}

/* ---- building the tree ----------------------------------------------------------------------- */

static int count_node(struct reader *reader, struct place place)
{
    if (reader->nodes++ < YAML_NODES_MAX)
        return 0;
    error_set(reader->err, "more than %d values, with what aliases stand for; write fewer",
              YAML_NODES_MAX);
    return fail_at(reader->err, place);
}

static int key_error(struct reader *reader, struct place place, const char *key, const char *text)
{
    error_set(reader->err, "'%s' %s", error_value(key).text, text);
    return fail_at(reader->err, place);
}

static int take_key(struct reader *reader, struct level *level, const yaml_event_t *event)
{
    const char *key = (const char *)event->data.scalar.value;
    struct place place = place_of(&event->start_mark);

    if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && strcmp(key, "<<") == 0)
        return fail(reader, place,
                    "merge keys (<<) are not allowed; write the keys here, or use a template");
    if (json_object_object_get_ex(level->value, key, NULL))
        return key_error(reader, place, key, "is there twice in one map; leave one of them out");
    level->key = strdup(key);
    level->place = place;
    return level->key != NULL ? 0 : no_memory(reader, place);
}

/* Let the anchor be for value, which stays the tree's. A later one of that name counts. */
static int remember(struct reader *reader, const char *anchor, json_object *value,
                    struct place place)
{
    int i = 0;

    if (anchor == NULL)
        return 0;
    while (i < reader->anchor_count && strcmp(reader->anchors[i].name, anchor) != 0)
        i++;
    if (i == ANCHORS_MAX)
        return fail(reader, place, "more than 100 anchors; use fewer");
    if (i == reader->anchor_count) {
        reader->anchors[i].name = strdup(anchor);
        if (reader->anchors[i].name == NULL)
            return no_memory(reader, place);
        reader->anchor_count++;
    }
    reader->anchors[i].value = value;
    return 0;
}

/* Put a complete value, which is taken over also if this fails, where it belongs. */
static int place_value(struct reader *reader, json_object *value, const char *anchor,
                       struct place place)
{
    struct level *level = reader->depth > 0 ? &reader->levels[reader->depth - 1] : NULL;
    int rc;

    if (value == NULL)
        return no_memory(reader, place);
    if (level == NULL) {
        reader->root = value;
        json_object_set_userdata(value, NULL, NULL);
        rc = 0;
    } else if (json_object_is_type(level->value, json_type_array)) {
        rc = json_object_array_add(level->value, value);
        if (rc != 0)
            drop(value);
        else
            rc = set_place(value, place);
    } else {
        rc = json_object_object_add(level->value, level->key, value);
        if (rc != 0)
            drop(value);
        else
            rc = set_place(value, level->place);
        free(level->key);
        level->key = NULL;
    }
    return rc != 0 ? no_memory(reader, place) : remember(reader, anchor, value, place);
}

/* Is a value expected, not a key? */
static bool wants_value(const struct reader *reader)
{
    const struct level *level = reader->depth > 0 ? &reader->levels[reader->depth - 1] : NULL;

    return level == NULL || json_object_is_type(level->value, json_type_array) ||
           level->key != NULL;
}

static bool is_nothing(const yaml_event_t *event)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};
    const char *value = (const char *)event->data.scalar.value;

    if (event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(value, words[i]) == 0)
            return true;
    }
    return false;
}

static int take_scalar(struct reader *reader, const yaml_event_t *event)
{
    const char *value = (const char *)event->data.scalar.value;
    const char *anchor = (const char *)event->data.scalar.anchor;
    struct place place = place_of(&event->start_mark);

    if (strlen(value) != event->data.scalar.length)
        return fail(reader, place, "a NUL byte (\\0) in a text is not allowed");
    if (!wants_value(reader)) {
        if (anchor != NULL)
            return fail(reader, place, "an anchor at a key is not allowed");
        return take_key(reader, &reader->levels[reader->depth - 1], event);
    }
    if (is_nothing(event)) {
        /* Where nothing is written, the key is the better place. */
        if (reader->depth > 0 && reader->levels[reader->depth - 1].key != NULL)
            return key_error(reader, reader->levels[reader->depth - 1].place,
                             reader->levels[reader->depth - 1].key,
                             "has no value; write one, or leave the key out");
        return fail(reader, place, "a value is missing; write one, or \"null\" for that text");
    }
    return place_value(reader, json_object_new_string_len(value, (int)event->data.scalar.length),
                       anchor, place);
}

static int begin(struct reader *reader, const yaml_event_t *event, bool is_map)
{
    const yaml_char_t *anchor = is_map ? event->data.mapping_start.anchor
                                       : event->data.sequence_start.anchor;
    struct place place = place_of(&event->start_mark);
    struct level *level = &reader->levels[reader->depth];

    if (!wants_value(reader))
        return fail(reader, place, "a list or map as a key is not allowed; write a text");
    if (reader->depth == YAML_DEPTH_MAX) {
        error_set(reader->err, "more than %d lists and maps within each other", YAML_DEPTH_MAX);
        return fail_at(reader->err, place);
    }
    if (reader->depth == 0 && !is_map)
        return fail(reader, place, "a list, where keys and values should be: write KEY: VALUE");
    *level = (struct level){.place = place};
    level->value = is_map ? json_object_new_object() : json_object_new_array();
    level->anchor = anchor != NULL ? strdup((const char *)anchor) : NULL;
    reader->depth++;
    return level->value != NULL && (anchor == NULL) == (level->anchor == NULL) &&
                   set_place(level->value, place) == 0
               ? 0
               : no_memory(reader, place);
}

static int end(struct reader *reader)
{
    struct level level = reader->levels[--reader->depth];
    struct place place = {1, 1};
    int rc;

    /* Where it began is what it says of itself until its place is that of its key. */
    yaml_where(level.value, &place.line, &place.column, NULL);
    rc = place_value(reader, level.value, level.anchor, place);
    free(level.anchor);
    free(level.key);
    return rc;
}

/* A copy for an alias at that place. NULL with err. */
static json_object *copy_value(struct reader *reader, json_object *from, struct place at, int depth)
{
    json_object *copy = NULL, *part;
    struct place place = at;
    int rc = 0;

    if (count_node(reader, at) < 0)
        return NULL;
    if (depth > YAML_DEPTH_MAX) {
        fail(reader, at, "an alias makes more than 64 lists and maps within each other");
        return NULL;
    }
    yaml_where(from, &place.line, &place.column, NULL);
    if (json_object_is_type(from, json_type_string)) {
        copy = json_object_new_string_len(json_object_get_string(from),
                                          json_object_get_string_len(from));
    } else if (json_object_is_type(from, json_type_array)) {
        copy = json_object_new_array();
        for (size_t i = 0; copy != NULL && rc == 0 && i < json_object_array_length(from); i++) {
            part = copy_value(reader, json_object_array_get_idx(from, i), at, depth + 1);
            rc = part != NULL ? json_object_array_add(copy, part) : -2;
        }
    } else {
        copy = json_object_new_object();
        json_object_object_foreach (from, key, value) {
            if (copy == NULL || rc != 0)
                break;
            part = count_node(reader, at) == 0 ? copy_value(reader, value, at, depth + 1) : NULL;
            rc = part != NULL ? json_object_object_add(copy, key, part) : -2;
        }
    }
    if (copy != NULL && rc == 0 && set_place(copy, place) == 0)
        return copy;
    if (rc != -2)
        no_memory(reader, at);
    json_object_put(copy);
    return NULL;
}

static int take_alias(struct reader *reader, const yaml_event_t *event)
{
    const char *name = (const char *)event->data.alias.anchor;
    struct place place = place_of(&event->start_mark);
    json_object *copy;

    if (!wants_value(reader))
        return fail(reader, place, "an alias as a key is not allowed; write the text");
    for (int i = 0; i < reader->anchor_count; i++) {
        if (strcmp(reader->anchors[i].name, name) != 0)
            continue;
        copy = copy_value(reader, reader->anchors[i].value, place, reader->depth);
        return copy != NULL ? place_value(reader, copy, NULL, place) : -1;
    }
    return key_error(reader, place, name, "is no anchor of a value that is complete here");
}

/* ---- the document ---------------------------------------------------------------------------- */

static bool has_tag(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return event->data.scalar.tag != NULL;
    case YAML_SEQUENCE_START_EVENT:
        return event->data.sequence_start.tag != NULL;
    case YAML_MAPPING_START_EVENT:
        return event->data.mapping_start.tag != NULL;
    default:
        return false;
    }
}

static int take_event(struct reader *reader, const yaml_event_t *event)
{
    struct place place = place_of(&event->start_mark);

    if (has_tag(event))
        return fail(reader, place, "tags (!…) are not allowed; the key says what a value is");
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        if (reader->depth == 0 && is_nothing(event))
            return fail(reader, place, EMPTY);
        if (reader->depth == 0)
            return fail(reader, place, "a text, where keys and values should be: write KEY: VALUE");
        return count_node(reader, place) < 0 ? -1 : take_scalar(reader, event);
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        return count_node(reader, place) < 0
                   ? -1
                   : begin(reader, event, event->type == YAML_MAPPING_START_EVENT);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return end(reader);
    case YAML_ALIAS_EVENT:
        return take_alias(reader, event);
    case YAML_DOCUMENT_START_EVENT:
        if (reader->root != NULL)
            return fail(reader, place, "a second document begins; write one only");
        return 0;
    default:
        return 0;
    }
}

static int read_events(struct reader *reader, const char *text)
{
    yaml_event_type_t type = YAML_NO_EVENT;

    while (type != YAML_STREAM_END_EVENT) {
        yaml_event_t event;
        int rc;

        if (yaml_parser_parse(&reader->parser, &event) == 0)
            return parser_error(reader, text);
        type = event.type;
        rc = take_event(reader, &event);
        yaml_event_delete(&event);
        if (rc < 0)
            return -1;
    }
    if (reader->root == NULL)
        return fail(reader, (struct place){1, 1}, EMPTY);
    return 0;
}

/* libyaml would take UTF-16, and stop at a NUL. */
static int check_bytes(const char *text, size_t len, struct error *err)
{
    for (size_t at = 0, length; at < len; at += length) {
        length = text_utf8_length(text + at, len - at);
        if (length > 0 && text[at] != '\0')
            continue;
        error_set(err,
                  length == 0 ? "a byte that is not UTF-8 (#x%02x); save the file as UTF-8"
                              : "a NUL byte (#x%02x); it should be text",
                  (unsigned char)text[at]);
        return fail_at(err, place_at(text, at));
    }
    return 0;
}

static void clean_up(struct reader *reader)
{
    yaml_parser_delete(&reader->parser);
    while (reader->depth > 0) {
        struct level *level = &reader->levels[--reader->depth];

        drop(level->value);
        free(level->key);
        free(level->anchor);
    }
    for (int i = 0; i < reader->anchor_count; i++)
        free(reader->anchors[i].name);
}

json_object *yaml_parse(const char *text, size_t len, struct error *err)
{
    struct reader reader = {.err = err};

    if (len > YAML_TEXT_MAX) {
        error_set(err, "1:1: it has %zu bytes; allowed are %d", len, YAML_TEXT_MAX);
        return NULL;
    }
    if (check_bytes(text, len, err) < 0)
        return NULL;
    if (yaml_parser_initialize(&reader.parser) == 0) {
        error_set(err, "1:1: out of memory");
        return NULL;
    }
    yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, len);
    if (read_events(&reader, text) < 0) {
        json_object_put(reader.root);
        reader.root = NULL;
    }
    clean_up(&reader);
    return reader.root;
}

json_object *yaml_load(const char *path, struct error *err)
{
    size_t len;
    char *text = file_read(path, YAML_TEXT_MAX, &len, err);
    json_object *tree;

    if (text == NULL)
        return NULL;
    tree = yaml_parse(text, len, err);
    if (tree == NULL && err != NULL)
        error_set(err, "%s:%s", error_path(path).text, err->text);
    free(text);
    return tree;
}
