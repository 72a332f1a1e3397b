/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text of a job's history.jsonl (doc/internals/protocol.md, "Files of a job") as a history.
 * Pure. */
#ifndef SELASTIC_HISTORY_FILE_H
#define SELASTIC_HISTORY_FILE_H

#include <stddef.h>
#include <stdint.h>

#include <json-c/json.h>

#define HISTORY_FILE_MAX (16 * 1024 * 1024) /* bytes */

/* A new object of the shape that shape_history makes. Pauses are merged into their generations;
 * each generation ends where the next one begins. *skipped counts lines that are neither: torn by a
 * crash, or garbage. */
json_object *history_file_parse(uint32_t job, const char *text, size_t len, int *skipped);

/* Set the end of the last generation to this Unix time, unless its end is known already or would be
 * before its start. */
void history_end(json_object *history, double when);

#endif
