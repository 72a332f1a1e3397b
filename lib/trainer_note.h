/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the comment of a job says of it as a trainer of models of other users. Pure.
 *
 *     TEXT elastic-trainer=SERVICE payer=USER runner=USER
 *
 * TEXT is what the user has written, and stays. The payer is whose model is trained now; without
 * one nobody's is. */
#ifndef ELASTIC_TRAINER_NOTE_H
#define ELASTIC_TRAINER_NOTE_H

#include <stdbool.h>

/* The comment with that note instead of the one that it may have: a new text. comment, payer and
 * runner may be NULL. NULL: out of memory. */
char *trainer_note(const char *comment, const char *service, const char *payer, const char *runner);

/* Is the job with that comment (may be NULL) a trainer of this service? */
bool trainer_note_names(const char *comment, const char *service);

/* "SERVICE@USER" or "SERVICE": the service, and the user ("" without one). False: it is neither. */
#define TRAINER_NAME_MAX 64
struct trainer_name {
    char service[TRAINER_NAME_MAX], user[TRAINER_NAME_MAX];
};
bool trainer_name_read(const char *text, struct trainer_name *name);

#endif
