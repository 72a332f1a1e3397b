/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whom to ask next, where the leaders of many users' jobs are asked, and whose answers are kept.
 *
 * A leader is a program of its user's, and may answer what it likes: a large answer takes the asker
 * much memory, and time in which nobody else is heard. So a user other than the asker's has few
 * questions under way, and his answers together may weigh so much only. Pure. */
#ifndef ELASTIC_SURVEY_PLAN_H
#define ELASTIC_SURVEY_PLAN_H

#include <stdbool.h>
#include <sys/types.h>

#include <json-c/json.h>

#define SURVEY_AT_A_TIME      32 /* questions under way */
#define SURVEY_USER_AT_A_TIME 4  /* … to jobs of one user, unless it is the asker */
/* Of one user's answers, unless it is the asker. A job with 10,000 replicas answers "metrics" with
 * less than half of it. Some 25 MB of memory. */
#define SURVEY_USER_WEIGHT_MAX 400000
/* Of all such users together. Once it is reached, nobody keeps more than an equal share of it. */
#define SURVEY_WEIGHT_MAX (10L * SURVEY_USER_WEIGHT_MAX)

struct survey_plan;

/* Rows by the users of their jobs; self is who asks. NULL: out of memory. */
struct survey_plan *survey_plan_create(const uid_t *users, int count, uid_t self);
void survey_plan_destroy(struct survey_plan *plan); /* accepts NULL */

/* The row to be asked now, in the order of the rows as far as that goes; each row once. It counts
 * as asked until survey_plan_done(). -1: none, or not now. *refused: that user's answers have been
 * too much, so it need not be asked. */
int survey_plan_next(struct survey_plan *plan, bool *refused);

/* A row has got its answer; NULL: none, or it was not asked. Returns whether the answer may be
 * kept. */
bool survey_plan_done(struct survey_plan *plan, int row, json_object *answer);

/* What a value weighs: about a sixtieth of its bytes in memory. */
long survey_weight(json_object *value);

#endif
