/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whom to ask next of many users' jobs (survey_plan.h). */
#include "lib/survey_plan.h"

#include <stdlib.h>
#include <string.h>

/* json-c's: an empty object or array has room for some entries. */
#define OBJECT_WEIGHT 16
#define ARRAY_WEIGHT  8
#define TEXT_WEIGHT   32 /* bytes of text that weigh as much as a number */

struct user {
    uid_t uid;
    int asking;  /* questions under way */
    long weight; /* of the answers that are kept */
    bool refused;
};

struct row {
    int user;
    bool asked;
};

struct survey_plan {
    uid_t self;
    struct row *rows;
    struct user *users;
    int count, user_count;
    int asking;
    long weight; /* of all answers that are kept, but for the asker's own */
};

/* ---- weights --------------------------------------------------------------------------------- */

long survey_weight(json_object *value)
{
    long weight = 1;

    if (json_object_is_type(value, json_type_object)) {
        weight = OBJECT_WEIGHT;
        json_object_object_foreach (value, key, each)
            weight += 1 + (long)strlen(key) / TEXT_WEIGHT + survey_weight(each);
    } else if (json_object_is_type(value, json_type_array)) {
        weight = ARRAY_WEIGHT;
        for (size_t i = 0; i < json_object_array_length(value); i++)
            weight += survey_weight(json_object_array_get_idx(value, i));
    } else if (json_object_is_type(value, json_type_string))
        weight += json_object_get_string_len(value) / TEXT_WEIGHT;
    return weight;
}

/* ---- the plan -------------------------------------------------------------------------------- */

static int find_user(struct survey_plan *plan, uid_t uid)
{
    for (int i = 0; i < plan->user_count; i++)
        if (plan->users[i].uid == uid)
            return i;
    plan->users[plan->user_count].uid = uid;
    return plan->user_count++;
}

struct survey_plan *survey_plan_create(const uid_t *users, int count, uid_t self)
{
    struct survey_plan *plan = calloc(1, sizeof(*plan));

    if (plan == NULL)
        return NULL;
    plan->self = self;
    plan->count = count;
    plan->rows = calloc((size_t)count + 1, sizeof(*plan->rows));
    plan->users = calloc((size_t)count + 1, sizeof(*plan->users));
    if (plan->rows == NULL || plan->users == NULL) {
        survey_plan_destroy(plan);
        return NULL;
    }
    for (int i = 0; i < count; i++)
        plan->rows[i].user = find_user(plan, users[i]);
    return plan;
}

void survey_plan_destroy(struct survey_plan *plan)
{
    if (plan == NULL)
        return;
    free(plan->rows);
    free(plan->users);
    free(plan);
}

static bool may_ask(const struct survey_plan *plan, const struct user *user)
{
    return user->uid == plan->self || user->asking < SURVEY_USER_AT_A_TIME;
}

int survey_plan_next(struct survey_plan *plan, bool *refused)
{
    for (int i = 0; i < plan->count && plan->asking < SURVEY_AT_A_TIME; i++) {
        struct user *user = &plan->users[plan->rows[i].user];

        if (plan->rows[i].asked || !may_ask(plan, user))
            continue;
        plan->rows[i].asked = true;
        plan->asking++;
        user->asking++;
        *refused = user->refused;
        return i;
    }
    return -1;
}

bool survey_plan_done(struct survey_plan *plan, int row, json_object *answer)
{
    struct user *user = &plan->users[plan->rows[row].user];
    long weight;

    plan->asking--;
    user->asking--;
    if (answer == NULL || user->uid == plan->self)
        return true;
    if (user->refused)
        return false;
    weight = survey_weight(answer);
    user->refused = user->weight + weight > SURVEY_USER_WEIGHT_MAX ||
                    (plan->weight + weight > SURVEY_WEIGHT_MAX &&
                     user->weight + weight > SURVEY_WEIGHT_MAX / plan->user_count);
    if (user->refused)
        return false;
    user->weight += weight;
    plan->weight += weight;
    return true;
}
