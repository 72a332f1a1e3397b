/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A JSON document from outside, taken literally: RFC 8259 and nothing that json-c allows beyond
 * it. */
#ifndef ELASTIC_JSON_TEXT_H
#define ELASTIC_JSON_TEXT_H

#include <stddef.h>

#include <json-c/json.h>

#include "lib/error.h"

#define JSON_TEXT_DEPTH 32 /* of arrays and objects in each other */

/* Parse len bytes that hold one JSON object. Refused, with a text that names line and column where
 * there is one: anything else at the top, trailing bytes, a key that appears twice in one object,
 * NUL bytes, text that is not UTF-8, NaN and Infinity, deeper nesting. New object for
 * json_object_put, or NULL. */
json_object *json_text_parse(const char *text, size_t len, struct error *err);

/* "a string", "an object", …: the type of a value for messages. */
const char *json_text_type(json_object *value);

#endif
