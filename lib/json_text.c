/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Strict JSON documents (json_text.h), over json-c's tokener.
 *
 * Even when strict, json-c accepts some wrong texts. Of two equal keys it keeps the last and says
 * nothing: a person who has written "grace" twice believes in the dropped one. It takes strings in
 * single quotes, and UTF-8 in overlong forms. It passes numbers like "1." on to the workers, whose
 * own parsers refuse them. So a text that the tokener has accepted is checked once more. */
#include "lib/json_text.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json_visit.h>

#include "lib/text.h"

/* Put the place of text[offset] before the message; columns count bytes. Returns -1. */
static int error_at(const char *text, size_t offset, struct error *err)
{
    unsigned int line = 1, column = 1;

    for (size_t i = 0; i < offset; i++) {
        column++;
        if (text[i] == '\n') {
            line++;
            column = 1;
        }
    }
    return error_prefix(err, "line %u, column %u", line, column);
}

/* The first byte at or after text[at] that is no blank, or len. */
static size_t skip_blanks(const char *text, size_t at, size_t len)
{
    while (at < len && memchr(" \t\r\n", text[at], 4) != NULL)
        at++;
    return at;
}

/* Remember the key in quotes at text[from..to] as a key of object. -1: object has that key
 * already. */
static int add_key(json_object *object, const char *text, size_t from, size_t to, struct error *err)
{
    struct json_tokener *tok = json_tokener_new();
    json_object *key = NULL;
    const char *name;
    int rc = -1;

    if (tok != NULL)
        key = json_tokener_parse_ex(tok, text + from, (int)(to - from + 1));
    name = json_object_get_string(key);
    if (name == NULL)
        error_set(err, "out of memory");
    else if (strlen(name) != (size_t)json_object_get_string_len(key))
        error_set(err, "a key with \\u0000 in it is not allowed");
    else if (json_object_object_get_ex(object, name, NULL))
        error_set(err, "\"%s\" is there twice in one object; leave one of them out",
                  error_value(name).text);
    else
        rc = json_object_object_add(object, name, NULL);
    json_object_put(key);
    if (tok != NULL)
        json_tokener_free(tok);
    return rc;
}

/* The closing quote of the string that begins at text[at]; len if a raw control character is in
 * it. */
static size_t string_end(const char *text, size_t at, size_t len)
{
    for (at++; at < len && text[at] != '"'; at++) {
        if ((unsigned char)text[at] < 0x20)
            return len;
        if (text[at] == '\\')
            at++;
    }
    return at < len ? at : len;
}

static bool is_digit(const char *text, size_t at, size_t len)
{
    return at < len && text[at] >= '0' && text[at] <= '9';
}

/* "1." and "-.5" at their point, "05" and "-05" at their zero. */
static bool is_loose_number(const char *text, size_t at, size_t len)
{
    if (text[at] == '.')
        return at == 0 || !is_digit(text, at - 1, len) || !is_digit(text, at + 1, len);
    if (text[at] != '0' || !is_digit(text, at + 1, len))
        return false;
    if (at > 0 && text[at - 1] == '-')
        at--;
    /* Not the first digit: inside, behind the point, or of an exponent. */
    return at == 0 || (!is_digit(text, at - 1, len) && memchr(".eE+", text[at - 1], 4) == NULL);
}

/* The open objects around a place in the text, each with the keys that it has had so far. */
struct walk {
    json_object *open[JSON_TEXT_DEPTH];
    int depth;
};

/* Look at the token at text[at]. Returns the index of its last byte, or len with err set. */
static size_t walk_token(struct walk *walk, const char *text, size_t at, size_t len,
                         struct error *err)
{
    size_t end = at, next;

    if (text[at] == '{' && walk->depth < JSON_TEXT_DEPTH) {
        walk->open[walk->depth++] = json_object_new_object();
    } else if (text[at] == '}' && walk->depth > 0) {
        json_object_put(walk->open[--walk->depth]);
    } else if (text[at] == '\'') {
        error_set(err, "a single quote; JSON writes names and strings in double quotes");
        return len;
    } else if (is_loose_number(text, at, len)) {
        error_set(err,
                  "a number with a needless zero in front, or no digit on both sides of its point");
        return len;
    } else if (text[at] == '"') {
        end = string_end(text, at, len);
        if (end == len) {
            error_set(err,
                      "a raw line break or control character in a string; write \\n, \\t, ...");
            return len;
        }
        next = skip_blanks(text, end + 1, len);
        if (next < len && text[next] == ':' && walk->depth > 0 &&
            add_key(walk->open[walk->depth - 1], text, at, end, err) < 0)
            return len;
    }
    return end;
}

/* Find the mistakes that the tokener accepts, in a text that it has accepted. */
static int check_text(const char *text, size_t len, struct error *err)
{
    struct walk walk = {0};
    size_t at, end = 0;

    for (at = 0; at < len; at = end + 1) {
        end = walk_token(&walk, text, at, len, err);
        if (end == len)
            break;
    }
    while (walk.depth > 0)
        json_object_put(walk.open[--walk.depth]);
    return at < len ? error_at(text, at, err) : 0;
}

struct saturated {
    bool found;
    const char *key; /* NULL: in an array */
};

/* json-c silently replaces a number that is too large by the nearest one that it can hold. */
static int find_saturated(json_object *value, int flags, json_object *parent, const char *key,
                          size_t *index, void *arg)
{
    struct saturated *number = arg;
    bool saturated = false;

    if (json_object_is_type(value, json_type_double))
        saturated = !isfinite(json_object_get_double(value));
    else if (json_object_is_type(value, json_type_int))
        saturated = json_object_get_int64(value) == INT64_MIN ||
                    json_object_get_uint64(value) == UINT64_MAX;
    number->found = saturated;
    number->key = key;
    return saturated ? JSON_C_VISIT_RETURN_STOP : JSON_C_VISIT_RETURN_CONTINUE;
}

static int check_numbers(json_object *root, struct error *err)
{
    struct saturated number = {0};

    json_c_visit(root, 0, find_saturated, &number);
    if (!number.found)
        return 0;
    error_set(err, "NaN, Infinity and numbers that need more than 64 bits are not allowed");
    return number.key != NULL ? error_prefix(err, "\"%s\"", error_value(number.key).text) : -1;
}

static bool is_ascii(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] >= 0x80)
            return false;
    return true;
}

/* json-c 0.18 takes such bytes for control characters (its issue 875). So first it judges the text
 * without them; nothing else depends on which byte stands there. */
json_object *json_text_strict(struct json_tokener *tok, int flags, const char *text, size_t len)
{
    json_object *root;
    char *ascii;

    json_tokener_set_flags(tok, JSON_TOKENER_STRICT | flags);
    if (is_ascii(text, len))
        return json_tokener_parse_ex(tok, text, (int)len);
    ascii = malloc(len);
    if (ascii == NULL)
        return NULL;
    for (size_t i = 0; i < len; i++)
        ascii[i] = (unsigned char)text[i] >= 0x80 ? '?' : text[i];
    root = json_tokener_parse_ex(tok, ascii, (int)len);
    free(ascii);
    if (json_tokener_get_error(tok) != json_tokener_success)
        return root;
    json_object_put(root);
    json_tokener_reset(tok);
    json_tokener_set_flags(tok, flags);
    return json_tokener_parse_ex(tok, text, (int)len);
}

static const char *syntax_message(enum json_tokener_error code)
{
    if (code == json_tokener_continue)
        return "the text ends too early; a bracket, brace or quote is not closed";
    if (code == json_tokener_error_depth)
        return "nested too deeply; at most 32 arrays and objects in each other are allowed";
    return json_tokener_error_desc(code);
}

/* json-c finds some mistakes itself since 0.17 (numbers) and 0.18 (control characters), and says
 * less of them. Returns -1 with err for such a mistake, 0 for others. */
static int explain(enum json_tokener_error code, const char *text, size_t len, struct error *err)
{
    struct json_tokener *tok;
    json_object *root;
    int rc;

    if (code == json_tokener_error_parse_string)
        return check_text(text, len, err);
    tok = code == json_tokener_error_parse_number ? json_tokener_new_ex(JSON_TEXT_DEPTH) : NULL;
    if (tok == NULL)
        return 0;
    root = json_tokener_parse_ex(tok, text, (int)len);
    rc = json_tokener_get_error(tok) == json_tokener_success ? check_numbers(root, err) : 0;
    json_object_put(root);
    json_tokener_free(tok);
    return rc;
}

/* Parse a text that begins with a brace and has no NUL in it. */
static json_object *parse_object(struct json_tokener *tok, const char *text, size_t len,
                                 struct error *err)
{
    json_object *root = json_text_strict(tok, JSON_TOKENER_ALLOW_TRAILING_CHARS, text, len);
    enum json_tokener_error code = json_tokener_get_error(tok);
    size_t end = json_tokener_get_parse_end(tok);

    if (code != json_tokener_success) {
        if (explain(code, text, len, err) < 0)
            return NULL;
        error_set(err, "%s", syntax_message(code));
        error_at(text, end < len ? end : len, err);
        return NULL;
    }
    end = skip_blanks(text, end, len);
    if (end < len) {
        error_set(err, "there is text behind the end of the JSON object");
        error_at(text, end, err);
    } else if (check_text(text, len, err) == 0 && check_numbers(root, err) == 0) {
        return root;
    }
    json_object_put(root);
    return NULL;
}

static int check_characters(const char *text, size_t len, struct error *err)
{
    size_t length;

    for (size_t at = 0; at < len; at += length) {
        length = text_utf8_length(text + at, len - at);
        if (length > 0 && text[at] != '\0')
            continue;
        error_set(err, length == 0 ? "this is not UTF-8" : "a NUL byte; JSON is text");
        return error_at(text, at, err);
    }
    return 0;
}

/* json-c knows strings in both kinds of quotes. */
bool json_text_has_few(const char *text, size_t len, size_t max)
{
    size_t count = 0;
    char quote = '\0';

    for (size_t i = 0; i < len && count <= max; i++) {
        if (quote != '\0' && text[i] == '\\')
            i++;
        else if (quote != '\0')
            quote = text[i] == quote ? '\0' : quote;
        else if (text[i] == '"' || text[i] == '\'')
            quote = text[i];
        else
            count += text[i] == '{' || text[i] == '[';
    }
    return count <= max;
}

json_object *json_text_parse(const char *text, size_t len, struct error *err)
{
    size_t begin = skip_blanks(text, 0, len);
    size_t containers = JSON_TEXT_CONTAINERS + len / JSON_TEXT_CONTAINER_BYTES;
    struct json_tokener *tok;
    json_object *root;

    if (check_characters(text, len, err) < 0)
        return NULL;
    if (begin == len || text[begin] != '{' || len > INT_MAX) {
        error_set(err, "%s; write {\"key\": value, ...}",
                  begin == len ? "there is nothing in it" : "this is not a JSON object");
        return NULL;
    }
    if (!json_text_has_few(text, len, containers)) {
        error_set(err,
                  "there are too many arrays and objects in it: at most %zu are allowed in a "
                  "text of this length",
                  containers);
        return NULL;
    }
    tok = json_tokener_new_ex(JSON_TEXT_DEPTH);
    if (tok == NULL) {
        error_set(err, "out of memory");
        return NULL;
    }
    /* Trailing bytes are looked for here, for a better message than "unexpected character". */
    root = parse_object(tok, text, len, err);
    json_tokener_free(tok);
    return root;
}

const char *json_text_type(json_object *value)
{
    switch (json_object_get_type(value)) {
    case json_type_boolean:
        return "true or false";
    case json_type_double:
        return "a number with a fraction";
    case json_type_int:
        return "a number";
    case json_type_object:
        return "an object";
    case json_type_array:
        return "an array";
    case json_type_string:
        return "a string";
    case json_type_null:
    default:
        return "null";
    }
}
