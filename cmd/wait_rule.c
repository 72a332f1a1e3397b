/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `selastic wait` waits for, and whether it has come (wait_rule.h). */
#include "cmd/wait_rule.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/shape.h"
#include "lib/json_get.h"
#include "lib/number.h"
#include "lib/sizes.h"

#define PAUSE_MAX 30
#define STEP_BITS 18 /* digits of a step that an int64_t holds in any case */

static const char *const states[] = {"pending", "waiting", "running", "switching", "ending"};

int wait_goal_size(struct wait_goal *goal, const char *text, struct error *err)
{
    size_t first = strcspn(text, ":");
    const char *second = text[first] == ':' ? text + first + 1 : text;
    int min, max;
    if (number_parse(text, first, 1, SIZES_NODES_MAX, &min) < 0 ||
        number_parse(second, strlen(second), min, SIZES_NODES_MAX, &max) < 0)
        return error_set(err,
                         "--size=%s is not allowed; give nodes from 1 to %d (4), or MIN:MAX (4:8)",
                         error_value(text).text, SIZES_NODES_MAX);
    goal->min = min;
    goal->max = max;
    return 0;
}

int wait_goal_step(struct wait_goal *goal, const char *text, struct error *err)
{
    size_t digits = strspn(text, "0123456789");
    goal->step = digits <= STEP_BITS ? strtoll(text, NULL, 10) : 0;
    if (text[digits] != '\0' || goal->step < 1)
        return error_set(err, "--step=%s is not allowed; give a step from 1 on",
                         error_value(text).text);
    return 0;
}

int wait_goal_state(struct wait_goal *goal, const char *text, struct error *err)
{
    for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++)
        if (strcmp(text, states[i]) == 0) {
            goal->state = states[i];
            return 0;
        }
    return error_set(err,
                     "--state=%s is not allowed; give pending, waiting, running, switching or "
                     "ending (--ended: the job has ended)",
                     error_value(text).text);
}

int wait_goal_check(const struct wait_goal *goal, struct error *err)
{
    bool other = goal->min > 0 || goal->step > 0 || goal->state != NULL;
    if (!other && !goal->ended)
        return error_set(err, "'wait' takes one of --size, --step, --state and --ended at least");
    if (other && goal->ended)
        return error_set(err, "--ended cannot be given with --size, --step or --state");
    if (goal->state != NULL && strcmp(goal->state, "pending") == 0 &&
        (goal->min > 0 || goal->step > 0))
        return error_set(err, "a pending job has no size and no step: give --state=pending alone");
    return 0;
}

/* A job with roles has no allowed sizes: its "max" is that of its world, or 0. */
static bool has_sizes(json_object *state)
{
    return json_get_string(state, "roles") == NULL && field_int(state, "max", 0) > 0;
}

static enum wait_verdict never(const struct wait_goal *goal, json_object *state, struct error *err)
{
    int64_t least = field_int(state, "min", 0), most = field_int(state, "max", 0);
    if (goal->min == 0 || !has_sizes(state) || (goal->min <= most && goal->max >= least))
        return WAIT_ON;
    error_set(err, "the job never has this size: it allows %lld to %lld nodes", (long long)least,
              (long long)most);
    return WAIT_NEVER;
}

static bool holds(const struct wait_goal *goal, json_object *state)
{
    const char *phase = json_get_string(state, "phase");
    int64_t size = field_int(state, "size", 0);
    return (goal->min == 0 || (size >= goal->min && size <= goal->max)) &&
           (goal->step == 0 || field_int(state, "steps", 0) >= goal->step) &&
           (goal->state == NULL || (phase != NULL && strcmp(phase, goal->state) == 0));
}

static bool is_pending(enum job_state_kind kind)
{
    return kind == JOB_KIND_PENDING || kind == JOB_KIND_BOOTING || kind == JOB_KIND_STARTING;
}

enum wait_verdict wait_decide(const struct wait_goal *goal, enum job_state_kind kind,
                              json_object *state, struct error *err)
{
    if (kind == JOB_KIND_ENDED || kind == JOB_KIND_UNKNOWN)
        return goal->ended ? WAIT_REACHED : WAIT_ENDED;
    if (goal->ended)
        return WAIT_ON;
    if (goal->state != NULL && strcmp(goal->state, "pending") == 0)
        return is_pending(kind) ? WAIT_REACHED : WAIT_ON;
    if (state == NULL)
        return WAIT_ON;
    return holds(goal, state) ? WAIT_REACHED : never(goal, state, err);
}

int wait_pause(int n)
{
    return n < 5 ? 1 << n : PAUSE_MAX;
}
