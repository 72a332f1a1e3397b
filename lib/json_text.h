/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A JSON document from outside, read strictly: RFC 8259 without the extensions of json-c. */
#ifndef ELASTIC_JSON_TEXT_H
#define ELASTIC_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include <json-c/json.h>

#include "lib/error.h"

#define JSON_TEXT_DEPTH 32 /* levels of arrays and objects within each other */
/* Arrays and objects in all: so many, and one more for each so many bytes. A file of thousands of
 * shapes of nodes has some hundred thousand of them. */
#define JSON_TEXT_CONTAINERS      131072
#define JSON_TEXT_CONTAINER_BYTES 32

/* Parse len bytes that hold one JSON object. Returns a new object for json_object_put, or NULL with
 * err. The text of err names line and column where there is one.
 *
 * Refused are: anything else at the top, trailing bytes, a key that appears twice in one object,
 * NUL bytes, text that is not UTF-8, NaN and Infinity, deeper nesting, and more arrays and objects
 * than fit a text of that length. */
json_object *json_text_parse(const char *text, size_t len, struct error *err);

/* Are there no more than max arrays and objects in the text? Each takes hundreds of times the two
 * bytes that it has there. Strings may hold as many brackets as they like. */
bool json_text_has_few(const char *text, size_t len, size_t max);

/* json_tokener_parse_ex() with JSON_TOKENER_STRICT and these flags, for every version of json-c:
 * 0.18 refuses each byte that is not ASCII when it is strict. */
json_object *json_text_strict(struct json_tokener *tok, int flags, const char *text, size_t len);

/* "a string", "an object", …: the type of a value for messages. */
const char *json_text_type(json_object *value);

#endif
