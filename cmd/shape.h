/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The JSON that selastic prints: each answer is copied field by field.
 *
 * So programs get the documented keys with the documented types, whatever a leader or a file
 * says. */
#ifndef SELASTIC_SHAPE_H
#define SELASTIC_SHAPE_H

#include <stdint.h>

#include <json-c/json.h>

/* The `state` answer of a leader as a new object with exactly the documented keys. A value that is
 * missing or of another type is null (an empty array for arrays). */
json_object *shape_state(json_object *answer);

/* The same of a `roles` answer: {"job", "epoch", "roles": [...]} and {"job", "epoch", "replicas":
 * [...]}. */
json_object *shape_roles(json_object *answer);
json_object *shape_replicas(json_object *answer);

/* The same of one generation of a `history` answer or of history.jsonl. NULL: it has no number or
 * time. */
json_object *shape_generation(json_object *generation);

/* The same of a `history` answer: {"job", "generations": [...]}, in the order of the answer. */
json_object *shape_history(uint32_t job, json_object *answer);

/* Serialise as plain ASCII, so that no string can move a terminal's cursor. A new string. */
char *shape_serialize(json_object *object, int json_flags);

/* A number that is serialised with as many digits as its text had. */
json_object *shape_double(double value);

/* Readers that lib/json_get.h does not have. For values that are missing or of another type they
 * return the given value, NAN, NULL and 0. */
int64_t field_int(json_object *object, const char *key, int64_t missing);
double field_double(json_object *object, const char *key);
json_object *field_array(json_object *object, const char *key);
size_t field_count(json_object *object, const char *key);

#endif
