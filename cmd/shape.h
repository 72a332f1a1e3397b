/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The JSON that selastic prints: each answer is copied field by field, so that whatever a leader or a file
 * says, programs get the documented keys with the documented types. */
#ifndef SELASTIC_SHAPE_H
#define SELASTIC_SHAPE_H

#include <stdint.h>

#include <json-c/json.h>

/* The `state` answer of a leader as a new object with exactly the documented keys; what is missing or of
 * another type is null (an empty array for arrays). */
json_object *shape_state(json_object *answer);

/* One generation of a `history` answer or of history.jsonl, likewise. NULL when it has no number or time. */
json_object *shape_generation(json_object *generation);

/* A `history` answer, likewise: {"job", "generations": [...]}, in the order of the answer. */
json_object *shape_history(uint32_t job, json_object *answer);

/* Serialise as plain ASCII, so that no string of anybody can move a terminal's cursor: new string. */
char *shape_serialize(json_object *object, int json_flags);

/* A number that is serialised with as many digits as it was written with. */
json_object *shape_double(double value);

/* Reading what lib/json_get.h has no word for. Missing or of another type: the given value, NAN, NULL and 0. */
int64_t field_int(json_object *object, const char *key, int64_t missing);
double field_double(json_object *object, const char *key);
json_object *field_array(json_object *object, const char *key);
size_t field_count(json_object *object, const char *key);

#endif
