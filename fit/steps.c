/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The actions of a fit, carried out (steps.h). */
#include "fit/steps.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/log.h"
#include "common/stop.h"
#include "fit/new_state.h"
#include "fit/s3_states.h"
#include "fit/steps_multi.h"
#include "fit/steps_serve.h"
#include "fit/training.h"
#include "lib/json_get.h"
#include "lib/roles.h"
#include "lib/states.h"
#include "state/place.h"

#define TRAIN_PAUSE 2.0 /* seconds between two looks at the replica that trains … */
#define WORLD_PAUSE 0.5 /* … at a world, of which only its leader knows that it has ended */
#define NUMBERS_MAX 20
#define SEALED      "sealed" /* the attempt of a world that has ended */

struct new_state steps_new_state(const struct steps *steps)
{
    return (struct new_state){.place = steps->spec->place,
                              .number = steps->record->state,
                              .previous = steps->record->previous,
                              .pin = &steps->record->pins.partial};
}

/* ---- prepare --------------------------------------------------------------------------------- */

/* Which state is passed on to the training: without a word the one that counts. */
static int choose_previous(struct steps *steps, const struct states *states, int64_t counts,
                           struct error *err)
{
    const char *from = steps->spec->from;
    int64_t number = counts;
    bool partial;
    int rc = 0;

    if (from != NULL)
        number = strcmp(from, "none") == 0 ? 0 : state_number(from, &partial);
    steps->record->previous = number;
    if (from != NULL && number > 0 && steps->spec->states != NULL)
        rc = store_check(steps->spec->states, number, err);
    else if (from != NULL && number > 0)
        rc = states_check_use(states, number, err);
    return rc == 0 ? 0 : error_prefix(err, "--from=%s", error_value(from).text);
}

/* The state that counts, and a number that no state has: on S3, too. */
static int look_at_states(const struct steps *steps, const struct states *states, int64_t *latest,
                          int64_t *next, struct error *err)
{
    const struct state *state = states_latest(states);
    int64_t own = states_next(states);

    *latest = state != NULL ? state->number : 0;
    *next = own;
    if (steps->spec->states != NULL && store_look(steps->spec->states, latest, next, err) != 0)
        return -1;
    if (*next > 0 && own > 0) {
        *next = own > *next ? own : *next;
        return 0;
    }
    return error_set(err, "%s: there is no number after the last state",
                     error_path(steps->spec->place).text);
}

static int choose(struct steps *steps, struct error *err)
{
    struct place *place = place_open(steps->spec->place, NULL, err);
    struct states states = {0};
    int rc = place != NULL ? place_list(place, &states, err) : -1;
    int64_t latest = 0, next = 0;

    if (rc == 0)
        rc = look_at_states(steps, &states, &latest, &next, err);
    if (rc == 0)
        rc = choose_previous(steps, &states, latest, err);
    if (rc == 0)
        steps->record->state = next;
    states_clear(&states);
    place_close(place);
    return rc;
}

/* An empty directory of a number that the record has is the one that was made before a crash. */
static bool is_own(const struct new_state *state)
{
    struct new_state_path path = new_state_path(state->place, state->number, false);

    return rmdir(path.text) == 0;
}

/* On S3, too. Who has claimed a number that the record has was this fit, before a crash. */
static enum place_result claim(const struct steps *steps, bool resumed, struct error *err)
{
    enum place_result result = PLACE_OK;

    if (steps->spec->states != NULL)
        result = store_claim(steps->spec->states, steps->record->state, err);
    return result == PLACE_CLASH && resumed ? PLACE_OK : result;
}

static enum step make_state(struct steps *steps, struct error *err)
{
    struct pin *pin = &steps->record->pins.partial;

    for (int i = 0; i < NUMBERS_MAX; i++) {
        bool resumed = steps->record->state > 0;
        struct new_state state;

        if (!resumed && (choose(steps, err) != 0 || steps->save(steps, err) != 0))
            return STEP_FAILED;
        state = steps_new_state(steps);
        switch (claim(steps, resumed, err)) {
        case PLACE_FAILED:
            return STEP_FAILED;
        case PLACE_CLASH:
            steps->record->state = 0;
            continue;
        case PLACE_OK:
            break;
        }
        if (new_state_make(&state, pin, err) == 0 ||
            (errno == EEXIST && resumed && is_own(&state) &&
             new_state_make(&state, pin, err) == 0)) {
            steps->record->made = true;
            return steps->save(steps, err) == 0 ? STEP_DONE : STEP_FAILED;
        }
        if (errno != EEXIST)
            return STEP_FAILED;
        if (steps->spec->states != NULL && /* it was claimed there for nothing */
            store_remove(steps->spec->states, steps->record->state, false, err) != 0)
            return STEP_FAILED;
        steps->record->state = 0; /* somebody else has taken it */
    }
    return STEP_FAILED;
}

static int write_config(const struct steps *steps, struct error *err)
{
    json_object *config = json_object_object_get(steps->spec->json, "config");

    return config == NULL
               ? 0
               : home_write(steps->home, steps->id, HOME_CONFIG_FILE, json_object_get(config), err);
}

/* Which one is opened for a trainer of another user. */
static int pin_previous(const struct steps *steps, struct error *err)
{
    struct new_state_path path = new_state_path(steps->spec->place, steps->record->previous, true);
    struct stat st;
    int fd;

    if (steps->spec->mode != FIT_MULTI || steps->spec->states != NULL ||
        steps->record->previous == 0 || steps->record->pins.previous.inode != 0)
        return 0;
    fd = entry_open_path(path.text, &st);
    if (fd < 0)
        return error_set(err, "%s: %s", error_path(path.text).text,
                         errno == ELOOP ? "there is a link in it" : strerror(errno));
    close(fd);
    steps->record->pins.previous = pin_of(&st);
    return 0;
}

static enum step prepare(struct steps *steps, double now, struct error *err)
{
    (void)now;
    if (!steps->record->made) {
        enum step step = make_state(steps, err);

        if (step != STEP_DONE)
            return step;
    }
    if (steps->spec->states != NULL && steps->record->previous > 0 &&
        store_fetch(steps->spec->states, steps->record->previous, steps->spec->place, err) != 0)
        return STEP_FAILED;
    return pin_previous(steps, err) == 0 && write_config(steps, err) == 0 ? STEP_DONE : STEP_FAILED;
}

/* ---- the replica that trains ----------------------------------------------------------------- */

/* The role: what the job file names, or that of its own. */
static const char *role_of(const struct steps *steps)
{
    return steps->spec->role != NULL ? steps->spec->role : ROLES_FIT_ROLE;
}

/* There is a place for it, or there will be. Also after another leader, or another job, has come
 * between. Always waits. */
static enum step keep_trainer(struct steps *steps, double now, double pause, struct error *err)
{
    struct service_trainer *replica = &steps->replica;

    if (now >= steps->trained + pause) {
        steps->trained = now;
        if (service_train(steps->link, role_of(steps), 1, replica, err) != 0)
            snprintf(steps->why, sizeof(steps->why), "%.255s", err->text);
        else if (replica->there == 0 || (steps->spec->world && !replica->ready))
            snprintf(steps->why, sizeof(steps->why), "a place for the training%s%.220s",
                     replica->why[0] != '\0' ? ": " : "", replica->why);
        else
            steps->why[0] = '\0';
    }
    error_set(err, "%s", steps->why);
    return STEP_WAITS;
}

/* How a program has ended that the trainer runs. */
static enum step ended(const struct steps *steps, const char *file, const char *what,
                       struct error *err)
{
    json_object *json = home_read(steps->home, steps->id, file, err);
    const char *why;
    int64_t code = -1;

    if (json == NULL) {
        return errno == ENOENT ? STEP_WAITS : STEP_FAILED;
    }
    why = json_get_string(json, "why");
    json_get_int(json, "exit", 0, 255, &code);
    if (code != 0)
        error_set(err, "%s: %s", what, why != NULL && why[0] != '\0' ? why : "it has failed");
    json_object_put(json);
    return code == 0 ? STEP_DONE : STEP_FAILED;
}

/* ---- a world that trains --------------------------------------------------------------------- */

/* What a job's world writes is one attempt. */
struct attempt {
    char name[24];
};

static struct attempt attempt_of(int64_t job)
{
    struct attempt attempt;

    snprintf(attempt.name, sizeof(attempt.name), "%lld", (long long)job);
    return attempt;
}

/* It is begun once in a job: the job has it train on, also when it comes back from the queue. The
 * next job of the service begins anew, in another directory. */
static enum step begin_world(struct steps *steps, struct error *err)
{
    struct attempt attempt = attempt_of(steps->job);
    struct new_state state = steps_new_state(steps);
    json_object *json = home_read(steps->home, steps->id, HOME_WORLD_FILE, err);
    int64_t job = 0, begun = 0;

    if (json == NULL && errno != ENOENT)
        return STEP_FAILED;
    json_get_int(json, "job", 0, UINT32_MAX, &job);
    json_get_int(json, "begun", 0, INT32_MAX, &begun);
    json_object_put(json);
    if (job == steps->job)
        return STEP_DONE;
    if (begun == TRAINING_ATTEMPTS) {
        error_set(err, "the training: " TRAINING_LOST, TRAINING_ATTEMPTS);
        return STEP_FAILED;
    }
    state.attempt = attempt.name;
    if (new_state_begin(&state, err) != 0 ||
        training_call(steps->home, steps->id, steps->spec, steps->record, attempt.name, err) != 0)
        return STEP_FAILED;
    json = json_object_new_object();
    json_object_object_add(json, "job", json_object_new_int64(steps->job));
    json_object_object_add(json, "begun", json_object_new_int64(begun + 1));
    return home_write(steps->home, steps->id, HOME_WORLD_FILE, json, err) == 0 ? STEP_DONE
                                                                               : STEP_FAILED;
}

static enum step keep_world(struct steps *steps, double now, double pause, struct error *err)
{
    enum step step = begin_world(steps, err);

    return step == STEP_DONE ? keep_trainer(steps, now, pause, err) : step;
}

static enum step world_dedicate(struct steps *steps, double now, struct error *err)
{
    enum step step = keep_world(steps, now, 0, err);

    return step == STEP_WAITS && (steps->replica.ready || steps->replica.ended) ? STEP_DONE : step;
}

static enum step world_fit(struct steps *steps, double now, struct error *err)
{
    enum step step = keep_world(steps, now, WORLD_PAUSE, err);

    if (step != STEP_WAITS || !steps->replica.ended)
        return step;
    if (steps->replica.status == 0)
        return STEP_DONE;
    error_set(err, "the training: %s has ended with %d; the output of the job has what it said",
              steps->spec->role, steps->replica.status);
    return STEP_FAILED;
}

/* ---- the training ---------------------------------------------------------------------------- */

/* A role's own `ready` says when. What has failed by then says so. */
static enum step dedicate(struct steps *steps, double now, struct error *err)
{
    bool here = home_has(steps->home, steps->id, HOME_TRAINER_FILE);

    if (steps->spec->world)
        return world_dedicate(steps, now, err);
    if (steps->spec->role == NULL)
        return here ? STEP_DONE : keep_trainer(steps, now, TRAIN_PAUSE, err);
    if (ended(steps, HOME_FIT_FILE, "the training", err) == STEP_FAILED)
        return STEP_FAILED;
    keep_trainer(steps, now, 0, err);
    if (here && steps->replica.ready)
        return STEP_DONE;
    if (steps->why[0] == '\0')
        error_set(err, "%s gets ready", steps->spec->role);
    return STEP_WAITS;
}

static enum step stage(struct steps *steps, double now, struct error *err)
{
    enum step step;

    if (steps->spec->stage == NULL || steps->spec->mode == FIT_MULTI) /* the trainer does */
        return STEP_DONE;
    if (ended(steps, HOME_FIT_FILE, "the training", err) == STEP_FAILED)
        return STEP_FAILED;
    step = ended(steps, HOME_STAGE_FILE, "the program that gets the data", err);
    return step == STEP_WAITS ? keep_trainer(steps, now, TRAIN_PAUSE, err) : step;
}

static enum step fit(struct steps *steps, double now, struct error *err)
{
    enum step step;

    if (steps->spec->mode == FIT_MULTI)
        return multi_fit(steps, now, err);
    if (steps->spec->world)
        return world_fit(steps, now, err);
    step = ended(steps, HOME_FIT_FILE, "the training", err);
    return step == STEP_WAITS ? keep_trainer(steps, now, TRAIN_PAUSE, err) : step;
}

static enum step end_replica(struct steps *steps, double now, struct error *err)
{
    struct service_trainer replica;

    (void)now;
    if (service_train(steps->link, role_of(steps), 0, &replica, err) != 0)
        return STEP_WAITS;
    if (replica.there == 0)
        return STEP_DONE;
    error_set(err, "the end of the trainer");
    return STEP_WAITS;
}

/* ---- the new state --------------------------------------------------------------------------- */

/* A worker that still lives, on a node that is cut off, does not find the directory any more. */
static int seal_world(const struct steps *steps, struct error *err)
{
    json_object *json = home_read(steps->home, steps->id, HOME_WORLD_FILE, err);
    struct new_state state = steps_new_state(steps);
    struct attempt attempt;
    int64_t job = 0;

    if (json == NULL)
        return -1;
    json_get_int(json, "job", 0, UINT32_MAX, &job);
    json_object_put(json);
    attempt = attempt_of(job);
    state.attempt = attempt.name;
    if (new_state_seal(&state, SEALED, err) != 0)
        return -1;
    snprintf(steps->record->attempt, sizeof(steps->record->attempt), SEALED);
    return 0;
}

/* Of a world nobody knows better than the runner that it has written all. */
static int finish_world(const struct steps *steps, const struct new_state *state, struct error *err)
{
    struct new_state whole = *state;
    char run[64];

    whole.attempt = NULL;
    snprintf(run, sizeof(run), "fit %lld of %.24s", (long long)steps->id, steps->spec->service);
    return new_state_finish(&whole, run, err) == 0 ? 0 : error_prefix(err, "the training");
}

/* Which attempt has ended with 0. Without a word what lies in the state's directory is meant. */
static int read_attempt(const struct steps *steps, struct error *err)
{
    json_object *json = home_read(steps->home, steps->id, HOME_FIT_FILE, err);
    const char *name = json_get_string(json, "attempt");

    if (json == NULL)
        return -1;
    snprintf(steps->record->attempt, sizeof(steps->record->attempt), "%s",
             name != NULL ? name : "");
    json_object_put(json);
    return 0;
}

/* It is in the record before the first file of it is moved: files of two are not mixed, whoever
 * else says that it has ended. */
static int choose_attempt(struct steps *steps, struct error *err)
{
    int rc = steps->spec->world ? seal_world(steps, err) : read_attempt(steps, err);

    return rc == 0 && steps->record->attempt[0] != '\0' ? steps->save(steps, err) : rc;
}

static enum step complete(struct steps *steps, double now, struct error *err)
{
    struct new_state state = steps_new_state(steps);

    if (steps->spec->mode == FIT_MULTI)
        return multi_complete(steps, now, err);
    if (steps->record->attempt[0] == '\0' && choose_attempt(steps, err) != 0)
        return STEP_FAILED;
    state.attempt = steps->record->attempt[0] != '\0' ? steps->record->attempt : NULL;
    if (new_state_take(&state, err) != 0 ||
        (steps->spec->world && finish_world(steps, &state, err) != 0))
        return STEP_FAILED;
    return new_state_check(&state, err) == 0 ? STEP_DONE : STEP_FAILED;
}

/* ---- the end of one that fails --------------------------------------------------------------- */

/* What somebody else has put to its place stays: it may be anything of this user. Before `made` it
 * can only be empty. */
static int remove_state(struct steps *steps, const struct new_state *state, struct error *err)
{
    struct new_state_path path = new_state_path(state->place, state->number, false);

    if (!steps->record->made) {
        rmdir(path.text);
        return 0;
    }
    if (new_state_is_other(state)) {
        log_error("fit %lld: %s: it is another one than the fit has made: it stays",
                  (long long)steps->id, error_path(path.text).text);
        return 0;
    }
    if (new_state_discard(state, err) == 0)
        return 0;
    if (stop_was_asked()) /* the next runner goes on with it */
        return -1;
    return steps->spec->mode == FIT_MULTI && multi_leave(steps, err) == 0
               ? new_state_discard(state, err)
               : -1;
}

/* Nobody writes there any more once the trainer has ended. */
static enum step discard(struct steps *steps, double now, struct error *err)
{
    struct new_state state = steps_new_state(steps);
    enum step step = steps->record->fit.dedicated ? end_replica(steps, now, err) : STEP_DONE;

    if (step != STEP_DONE || state.number == 0)
        return step;
    if (remove_state(steps, &state, err) != 0)
        return STEP_FAILED;
    if (steps->spec->states != NULL && steps->record->made &&
        store_remove(steps->spec->states, state.number, false, err) != 0)
        return STEP_FAILED;
    rmdir(steps->spec->place); /* of a model that has nothing else */
    return STEP_DONE;
}

/* ---- all ------------------------------------------------------------------------------------- */

static enum step nothing(struct steps *steps, double now, struct error *err)
{
    (void)steps;
    (void)now;
    (void)err;
    return STEP_DONE;
}

enum step steps_run(struct steps *steps, double now, struct error *err)
{
    static enum step (*const actions[FIT_ACTIONS])(struct steps *, double, struct error *) = {
        [FIT_DO_NOTHING] = nothing,
        [FIT_DO_PREPARE] = prepare,
        [FIT_DO_DEDICATE] = dedicate,
        [FIT_DO_ENSURE] = multi_ensure,
        [FIT_DO_STAGE] = stage,
        [FIT_DO_GRANT] = multi_grant,
        [FIT_DO_FIT] = fit,
        [FIT_DO_COMPLETE] = complete,
        [FIT_DO_COUNT] = serve_count,
        [FIT_DO_POINT] = serve_point,
        [FIT_DO_REPLACE] = serve_replace,
        [FIT_DO_REVOKE] = multi_revoke,
        [FIT_DO_POINT_BACK] = serve_point_back,
        [FIT_DO_RESTORE] = serve_restore,
        [FIT_DO_DISCARD] = discard,
        [FIT_DO_END_REPLICA] = end_replica,
    };

    return actions[steps->record->fit.action](steps, now, err);
}
