/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The text of a job's history.jsonl (doc/internals/protocol.md, "Files of a job") as a history.
 * Pure. */
#ifndef SELASTIC_HISTORY_FILE_H
#define SELASTIC_HISTORY_FILE_H

#include <stddef.h>
#include <stdint.h>

#include <json-c/json.h>

#define HISTORY_FILE_MAX (16 * 1024 * 1024) /* bytes */
/* What is kept of a file, which a user may fill as it likes: some 200 MB of memory. A generation
 * has its own weight and one for each name. A leader's file is full before that. */
#define HISTORY_WEIGHT_MAX        3000000
#define HISTORY_GENERATION_WEIGHT 50

struct history_losses {
    int skipped;  /* lines that were torn by a crash, or are garbage */
    int left_out; /* the oldest generations: there are too many */
};

/* A new object of the shape that shape_history makes. Pauses are merged into their generations;
 * each generation ends where the next one begins. */
json_object *history_file_parse(uint32_t job, const char *text, size_t len,
                                struct history_losses *losses);

/* Set the end of the last generation to this Unix time, unless its end is known already or would be
 * before its start. */
void history_end(json_object *history, double when);

#endif
