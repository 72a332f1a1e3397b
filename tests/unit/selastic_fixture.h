/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the tests of selastic's output need: files in tests/unit/selastic, texts to compare. */
#ifndef ELASTIC_TESTS_SELASTIC_FIXTURE_H
#define ELASTIC_TESTS_SELASTIC_FIXTURE_H

#include <stddef.h>

#include <json-c/json.h>

#include "cmd/render.h"

#define NOW 1700000150 /* 2023-11-14 22:15:50 UTC */

extern const struct render_options terminal, pipe_options;

/* A file of that folder. New. */
char *read_sample(const char *name);
json_object *read_json(const char *name);

/* It is what that file has. Freed. */
void assert_golden(char *text, const char *name);
/* As selastic prints JSON. New. */
char *serialize(json_object *object);

/* No line is longer. */
void assert_width(const char *text, size_t width);
/* No byte but newlines may be a control character, whatever a leader answers. */
void assert_harmless(const char *text);

#endif
