/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pieces of what selastic shows, for the files that render. */
#ifndef SELASTIC_RENDER_PARTS_H
#define SELASTIC_RENDER_PARTS_H

#include <stdio.h>

#include <json-c/json.h>

#include "cmd/terminal_text.h"

/* "  LABEL            text" and the end of the line, broken at blanks; nothing for no text. */
void render_line(FILE *out, const char *label, const char *text, int width);

/* Lines for slow workers: of a state, and of all generations of a history. */
void render_stragglers(FILE *out, json_object *state, int width);
void render_slow_history(FILE *out, json_object *generations, int width);

/* Cells with the value under a key; "-" where there is none. */
void render_number_cell(struct table *table, json_object *object, const char *key);
void render_text_cell(struct table *table, json_object *object, const char *key);
/* MIN:MAX. */
void render_bounds_cell(struct table *table, json_object *object);

void render_duration_cell(struct table *table, double seconds);

#endif
