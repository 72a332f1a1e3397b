/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The actions of a fit at the service, whose replicas get the new state (steps_serve.h). */
#include "fit/steps_serve.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/files.h"
#include "common/log.h"
#include "fit/new_state.h"
#include "fit/s3_states.h"
#include "lib/states.h"
#include "state/place.h"

#define FLUSH_PAUSE 5.0  /* seconds between two requests to look at the repository */
#define PATIENCE    10.0 /* what the leader says may be of before its look at the repository */
#define START_PAUSE 60.0 /* in which replicas of a job that has just begun should be ready */

/* ---- the new state --------------------------------------------------------------------------- */

/* A service whose job, or node, was lost just now has its replicas again in a while: they count. */
static bool starts(const struct steps *steps, const struct service_look *look, double now)
{
    return look->ready < look->wanted && now < steps->began + START_PAUSE;
}

/* What there is now, and what comes back if the new state fails. */
enum step serve_count(struct steps *steps, double now, struct error *err)
{
    struct service_look look;
    struct states states;
    struct place *place;
    int64_t next;
    int rc;

    if (service_look(steps->link, steps->spec->model, &look, err) != 0)
        return STEP_WAITS;
    if (starts(steps, &look, now)) {
        error_set(err, "%d of %d replicas are ready", look.ready, look.wanted);
        return STEP_WAITS;
    }
    place = place_open(steps->spec->place, NULL, err);
    rc = place != NULL ? place_list(place, &states, err) : -1;
    if (rc == 0) {
        const struct state *latest = states_latest(&states);

        steps->record->before = latest != NULL ? latest->number : 0;
        steps->count = look.routed ? look.ready : 0;
        states_clear(&states);
    }
    place_close(place);
    if (rc == 0 && steps->spec->states != NULL)
        rc = store_look(steps->spec->states, &steps->record->stored, &next, err);
    return rc == 0 ? STEP_DONE : STEP_FAILED;
}

/* The pointer of the model names that state. */
static int use(const struct steps *steps, int64_t number, struct error *err)
{
    struct place *place = place_open(steps->spec->place, NULL, err);
    struct states states = {0};
    const struct state *state;
    int rc = place != NULL ? place_list(place, &states, err) : -1;

    if (rc == 0)
        rc = states_check_use(&states, number, err);
    state = rc == 0 ? states_find(&states, number) : NULL;
    if (state != NULL && states.current != number &&
        place_use(place, states.current, state, err) != PLACE_OK)
        rc = -1;
    states_clear(&states);
    place_close(place);
    return rc;
}

static void flush(struct steps *steps, double now)
{
    struct error err;

    if (now < steps->flushed + FLUSH_PAUSE)
        return;
    if (service_flush(steps->link, &err) == 0)
        steps->flushed = now;
}

/* First to S3: what others can see there is served here, too, in the end. */
static int push(const struct steps *steps, const struct new_state *state, struct error *err)
{
    char path[64];
    int rc, dir = new_state_open_done(state, err);

    if (dir < 0)
        return -1;
    snprintf(path, sizeof(path), "/proc/self/fd/%d/.", dir); /* its path may lead elsewhere */
    rc = store_push(steps->spec->states, state->number, path, err);
    close(dir);
    return rc;
}

enum step serve_point(struct steps *steps, double now, struct error *err)
{
    struct new_state state = steps_new_state(steps);

    (void)now;
    if (steps->spec->states != NULL && push(steps, &state, err) != 0)
        return STEP_FAILED;
    return new_state_publish(&state, err) == 0 && use(steps, state.number, err) == 0 ? STEP_DONE
                                                                                     : STEP_FAILED;
}

/* ---- the replicas ---------------------------------------------------------------------------- */

/* Have all replicas of the model that state? err: for what that waits. */
static bool all_have(const struct steps *steps, const struct service_look *look, int64_t number,
                     int replicas, struct error *err)
{
    char name[STATE_NAME_SIZE];

    state_name(name, number);
    if (strcmp(look->version, name) != 0)
        error_set(err, "the service looks at its repository");
    else if (strcmp(look->has, name) != 0 || !look->routed)
        error_set(err, "a shard gets %s", name);
    else if (look->updating)
        error_set(err, "the replicas are replaced");
    else if (look->ready < replicas)
        error_set(err, "%d of %d replicas are ready", look->ready, replicas);
    else
        return true;
    return false;
}

/* Why the new state is not served, and will not be. NULL: it may be in a while. What the leader
 * says may be of before: unless it names the state, it has some time to say something else. */
static const char *refusal(const struct steps *steps, const struct service_look *look, double now)
{
    bool patient = now <= steps->began + PATIENCE;
    char name[STATE_NAME_SIZE];

    state_name(name, steps->record->state);
    if (strcmp(look->version, name) == 0 && strcmp(look->has, name) != 0 && look->why[0] != '\0' &&
        (!patient || strstr(look->why, name) != NULL))
        return look->why;
    return look->refused[0] != '\0' && !patient ? look->refused : NULL;
}

/* A service that has seen the state is not asked again: it would try one that has failed. */
static void have_it_look(struct steps *steps, const struct service_look *look, int64_t number,
                         double now)
{
    char name[STATE_NAME_SIZE];

    state_name(name, number);
    if (steps->flushed == 0 || strcmp(look->version, name) != 0)
        flush(steps, now);
}

enum step serve_replace(struct steps *steps, double now, struct error *err)
{
    const struct home_record *record = steps->record;
    struct service_look look;
    const char *why;

    if (service_look(steps->link, steps->spec->model, &look, err) != 0)
        return STEP_WAITS;
    why = refusal(steps, &look, now);
    if (why != NULL) {
        error_set(err, "%s", why);
        return STEP_FAILED;
    }
    have_it_look(steps, &look, record->state, now);
    return all_have(steps, &look, record->state, fit_target(&record->fit), err) ? STEP_DONE
                                                                                : STEP_WAITS;
}

/* Without a state before, the model has none at all. */
static int forget(const struct steps *steps, struct error *err)
{
    const struct dir_removal how = {.is = pin_is_dir, .is_arg = &steps->record->pins.partial};
    char pointer[PATH_MAX];

    snprintf(pointer, sizeof(pointer), "%.4000s/" STATE_POINTER, steps->spec->place);
    if (dir_remove_so(new_state_path(steps->spec->place, steps->record->state, true).text, &how,
                      err) != 0)
        return -1;
    if (unlink(pointer) != 0 && errno != ENOENT)
        return error_set(err, "%s: %s", error_path(pointer).text, strerror(errno));
    return 0;
}

enum step serve_point_back(struct steps *steps, double now, struct error *err)
{
    int rc = steps->record->before > 0 ? use(steps, steps->record->before, err)
                                       : forget(steps, err);

    if (rc == 0 && steps->spec->states != NULL)
        rc = steps->record->stored > 0
                 ? store_use(steps->spec->states, steps->record->stored, err)
                 : store_remove(steps->spec->states, steps->record->state, true, err);
    if (rc != 0)
        return STEP_FAILED;
    steps->flushed = 0;
    flush(steps, now);
    return STEP_DONE;
}

enum step serve_restore(struct steps *steps, double now, struct error *err)
{
    const struct home_record *record = steps->record;
    struct service_look look;

    if (record->before == 0)
        rmdir(steps->spec->place); /* a directory without states is a model that cannot be used */
    if (service_look(steps->link, steps->spec->model, &look, err) != 0)
        return STEP_WAITS;
    have_it_look(steps, &look, record->before, now);
    if (record->before == 0 && (!look.known || !look.routed))
        return STEP_DONE;
    if (record->before == 0) {
        error_set(err, "the model has no route any more");
        return STEP_WAITS;
    }
    return all_have(steps, &look, record->before, record->fit.count, err) ? STEP_DONE : STEP_WAITS;
}

/* ---- older states ---------------------------------------------------------------------------- */

void steps_prune(struct steps *steps)
{
    struct error err = {""};
    struct place *place = steps->spec->keep > 0 ? place_open(steps->spec->place, NULL, &err) : NULL;
    struct states states = {0};

    if (place != NULL && place_list(place, &states, &err) == 0)
        place_prune(place, &states, steps->spec->keep, steps->record->state);
    if (steps->spec->keep > 0 && steps->spec->states != NULL)
        store_prune(steps->spec->states, steps->spec->keep, steps->record->state, &err);
    if (err.text[0] != '\0')
        log_error("fit %lld: older states stay: %s", (long long)steps->id, err.text);
    states_clear(&states);
    place_close(place);
}
