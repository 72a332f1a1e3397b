/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading members of a JSON object from outside: type and bounds are checked, nothing is
 * converted. */
#ifndef ELASTIC_JSON_GET_H
#define ELASTIC_JSON_GET_H

#include <stdbool.h>
#include <stdint.h>

#include <json-c/json.h>

#include "lib/text.h" /* strings_free */

/* The string under key. NULL: the string is missing, of another type, or contains NUL. Borrowed
 * from obj. */
const char *json_get_string(json_object *obj, const char *key);

/* true with *value set if key holds an integer within min..max. */
bool json_get_int(json_object *obj, const char *key, int64_t min, int64_t max, int64_t *value);

/* The number under key (integer or double), fallback if it is missing or no number. */
double json_get_double(json_object *obj, const char *key, double fallback);

bool json_get_bool(json_object *obj, const char *key, bool fallback);

/* The array of strings under key as a NULL-terminated array of copies (free with strings_free).
 * NULL: the array is missing, holds something else than strings, or has more than max entries. */
char **json_get_strings(json_object *obj, const char *key, int max);

/* The text as JSON; null for NULL. */
json_object *json_from_string(const char *text);

/* A JSON array of the strings. */
json_object *json_from_strings(char *const *strings);

#endif
