/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `elastic-fit train`: the replica that trains (command.h). It takes no requests of clients.
 *
 * It looks at the record of the fit and does what is the present action, once: how that has ended
 * is in a file, which the runner finds. So neither minds when the other one is started anew.
 *
 * What trains is a program, which ends; or a server of a role, which is called. Of a role there may
 * be several tasks (fit/gang.h): task 0 does all that the runner hears of. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/log.h"
#include "common/monotonic.h"
#include "common/stop.h"
#include "fit/fit_command.h"
#include "fit/gang.h"
#include "fit/guest_trainer.h"
#include "fit/home.h"
#include "fit/new_state.h"
#include "fit/server_call.h"
#include "fit/spec.h"
#include "fit/training.h"
#include "fit/user_program.h"

#define LOOK_NS     50000000L
#define IDLE_NS     500000000L /* when there is nothing to train */
#define UNWANTED_MS 1000
#define END_MS      1000 /* from the end of its connections to that of a process */

struct trainer {
    struct home home;
    const struct fit_arguments *arguments;
    struct gang gang;
    int64_t id; /* 0: no fit is under way */
    struct spec spec;
    struct home_record record;
    struct training_scratch staged; /* the directory for data on this node */
    bool has_data;
    int attempt;  /* that it has begun; 0: none */
    pid_t server; /* of a role that is called; 0: there is none */
    bool served;  /* … it has been started for this fit */
    long long looked;
};

/* ---- which fit ------------------------------------------------------------------------------- */

static void remove_staged(struct trainer *trainer)
{
    training_scratch_remove(&trainer->staged);
    trainer->has_data = false;
}

static bool always(void *arg)
{
    (void)arg;
    return true;
}

/* It is asked to, if it has not done so by itself. */
static void end_server(struct trainer *trainer, int *code, struct error *why)
{
    const struct program program = {.argv = trainer->arguments->program, .unwanted = always};

    program_await(&program, trainer->server, code, why);
    trainer->server = 0;
}

static void leave(struct trainer *trainer)
{
    int code;

    if (trainer->server > 0)
        end_server(trainer, &code, NULL);
    trainer->served = false;
    trainer->attempt = 0;
    remove_staged(trainer);
    spec_clear(&trainer->spec);
    trainer->id = 0;
}

static bool still_wanted(struct trainer *trainer)
{
    struct home_record record;

    if (home_record_read(&trainer->home, trainer->id, &record, NULL) != 0)
        return errno != ENOENT; /* a file system that does not answer has not said so */
    trainer->record = record;
    return training_is_wanted(&record.fit);
}

/* It was taken for lost, as its node may be cut off: another start has the word now. */
static bool is_followed(const struct trainer *trainer)
{
    return trainer->attempt > 0 &&
           training_is_followed(&trainer->home, trainer->id, trainer->attempt);
}

/* Also if another task has failed, or another start has begun: what this one does is for nothing
 * then. */
static bool unwanted(void *arg)
{
    struct trainer *trainer = arg;
    long long now = monotonic_ms();

    if (stop_asked())
        return true;
    if (now < trainer->looked + UNWANTED_MS)
        return false;
    trainer->looked = now;
    return !still_wanted(trainer) || is_followed(trainer) ||
           gang_has_failed(&trainer->gang, &trainer->home, trainer->id, NULL);
}

/* Where this start of the training writes: no other one does. */
static struct new_state new_state(const struct trainer *trainer)
{
    return (struct new_state){.place = trainer->spec.place,
                              .number = trainer->record.state,
                              .previous = trainer->record.previous,
                              .pin = &trainer->record.pins.partial,
                              .attempt = trainer->gang.start};
}

static int enter(struct trainer *trainer, struct error *err)
{
    struct new_state state = new_state(trainer);

    if (training_call(&trainer->home, trainer->id, &trainer->spec, &trainer->record,
                      trainer->gang.start, err) != 0)
        return -1;
    if (trainer->gang.task > 0)
        return 0;
    return new_state_begin(&state, err) == 0 ? training_here(&trainer->home, trainer->id, NULL, err)
                                             : -1;
}

/* What cannot be entered is found once more. */
static int find_fit(struct trainer *trainer, struct error *err)
{
    int64_t id;

    if (training_find(&trainer->home, &id, &trainer->spec, &trainer->record, err) != 0)
        return -1;
    if (id == 0)
        return 0;
    trainer->id = id;
    if (enter(trainer, err) == 0)
        return 0;
    leave(trainer);
    return -1;
}

/* ---- programs -------------------------------------------------------------------------------- */

/* Begins it. -1 with code and why. */
static pid_t begin(struct trainer *trainer, char *const *argv, const char *staged,
                   struct program *program, int *code, struct error *why)
{
    struct home_path log = home_path(&trainer->home, trainer->id, HOME_LOG_FILE);
    struct training_added added = training_environment(
        &trainer->home, trainer->id, &trainer->spec, &trainer->record, trainer->gang.start, staged);
    pid_t child;

    *program = (struct program){
        .argv = argv, .added = added.list, .log = log.text, .unwanted = unwanted, .arg = trainer};
    child = program_start(program, code, why);
    training_added_clear(&added);
    program->added = NULL;
    program->log = NULL;
    return child;
}

static bool run(struct trainer *trainer, char *const *argv, const char *staged, int *code,
                struct error *why)
{
    struct program program;
    pid_t child = begin(trainer, argv, staged, &program, code, why);

    return child < 0 || program_await(&program, child, code, why);
}

/* ---- the data -------------------------------------------------------------------------------- */

static int make_staged(struct trainer *trainer, struct error *err)
{
    return trainer->staged.path[0] != '\0' ? 0 : training_scratch_make(&trainer->staged, err);
}

/* True: the data is there, or need not be. False: code and why, or it is not wanted any more. */
static bool get_data(struct trainer *trainer, int *code, struct error *why)
{
    *code = 1;
    if (trainer->spec.stage == NULL || trainer->has_data)
        return true;
    if (make_staged(trainer, why) != 0)
        return false;
    if (!run(trainer, trainer->spec.stage, trainer->staged.path, code, why)) {
        why->text[0] = '\0';
        return false;
    }
    trainer->has_data = *code == 0;
    return trainer->has_data;
}

static int stage(struct trainer *trainer, struct error *err)
{
    struct error why = {""};
    int code = 0;

    if (home_has(&trainer->home, trainer->id, HOME_STAGE_FILE))
        return 0;
    if (!get_data(trainer, &code, &why) && why.text[0] == '\0')
        return 0;
    return training_say(&trainer->home, trainer->id, HOME_STAGE_FILE, trainer->has_data ? 0 : code,
                        &why, err);
}

/* ---- a server -------------------------------------------------------------------------------- */

/* Once for a fit: it gets ready while there is time for the start. */
static int start_server(struct trainer *trainer, const char *staged, struct error *err)
{
    struct program program;
    int code;

    if (trainer->served || trainer->arguments->call == NULL)
        return 0;
    trainer->server = begin(trainer, trainer->arguments->program, staged, &program, &code, err);
    trainer->served = trainer->server > 0;
    return trainer->served ? 0 : -1;
}

/* Has it ended by itself? Then code, which is not 0, and why. */
static bool server_has_ended(struct trainer *trainer, int *code, struct error *why)
{
    if (trainer->server <= 0 || !program_has_ended(trainer->server))
        return false;
    end_server(trainer, code, why);
    if (*code == 0)
        error_set(why, "its server has ended before it has trained");
    else
        error_prefix(why, "its server");
    *code = *code != 0 ? *code : 1;
    return true;
}

/* A process that ends closes its connections first. */
static void await_end(const struct trainer *trainer)
{
    const struct timespec time = {.tv_nsec = LOOK_NS / 5};
    long long until = monotonic_ms() + END_MS;

    while (!program_has_ended(trainer->server) && !stop_asked() && monotonic_ms() < until)
        nanosleep(&time, NULL);
}

static bool call_unwanted(void *arg)
{
    struct trainer *trainer = arg;

    return unwanted(arg) || trainer->server <= 0 || program_has_ended(trainer->server);
}

/* As run(). */
static bool call_server(struct trainer *trainer, int *code, struct error *why)
{
    const struct home_record *record = &trainer->record;
    struct new_state_path to = new_state_attempt_path(trainer->spec.place, record->state,
                                                      trainer->gang.start);
    struct new_state_path from = new_state_path(trainer->spec.place, record->previous, true);
    json_object *body = spec_call(&trainer->spec, to.text, record->previous > 0 ? from.text : NULL,
                                  trainer->staged.path[0] != '\0' ? trainer->staged.path : NULL);
    const struct server_call call = {
        .path = trainer->arguments->call,
        .port = trainer->arguments->port,
        .address = getenv("MASTER_ADDR"),
        .body = json_object_to_json_string_ext(body, JSON_C_TO_STRING_PLAIN |
                                                         JSON_C_TO_STRING_NOSLASHESCAPE),
        .unwanted = call_unwanted,
        .arg = trainer,
    };
    enum fit_call answer = server_call(&call, why);

    json_object_put(body);
    *code = answer == FIT_CALL_DONE ? 0 : 1;
    if (answer == FIT_CALL_DONE)
        return true;
    /* How it has ended says more than that it does not answer. */
    if (answer == FIT_CALL_FAILED && trainer->server > 0)
        await_end(trainer);
    return server_has_ended(trainer, code, why) || answer == FIT_CALL_FAILED;
}

/* Before it is called. True: that has been said, or could not be (*rc). */
static bool server_is_lost(struct trainer *trainer, int *rc, struct error *err)
{
    struct error why = {""};
    int code;

    *rc = 0;
    if (!server_has_ended(trainer, &code, &why) ||
        home_has(&trainer->home, trainer->id, HOME_FIT_FILE))
        return false;
    *rc = training_say(&trainer->home, trainer->id, HOME_FIT_FILE, code, &why, err);
    return true;
}

/* ---- the training ---------------------------------------------------------------------------- */

static int finish(const struct trainer *trainer, const struct new_state *state, struct error *err)
{
    struct error why = {""};
    char name[64];

    snprintf(name, sizeof(name), "fit %" PRId64 " of %.24s", trainer->id, trainer->spec.service);
    return new_state_finish(state, name, &why) == 0
               ? training_done(&trainer->home, trainer->id, state->attempt, err)
               : training_say(&trainer->home, trainer->id, HOME_FIT_FILE, 1, &why, err);
}

/* The other tasks of a gang have to end with 0, too. False: it is not wanted any more. */
static bool await_others(struct trainer *trainer)
{
    while (!gang_is_done(&trainer->gang, &trainer->home, trainer->id)) {
        const struct timespec time = {.tv_nsec = LOOK_NS};

        if (unwanted(trainer))
            return false;
        nanosleep(&time, NULL);
    }
    return true;
}

/* It is what one task, or all of them, do. False: it is not wanted any more. */
static bool do_training(struct trainer *trainer, int *code, struct error *why)
{
    bool called = trainer->arguments->call != NULL, wanted;

    if (called)
        wanted = call_server(trainer, code, why);
    else
        wanted = run(trainer,
                     trainer->arguments->program != NULL ? trainer->arguments->program
                                                         : trainer->spec.run,
                     trainer->staged.path, code, why);
    if (wanted && *code == 0 && !called)
        wanted = await_others(trainer);
    if (!wanted && gang_has_failed(&trainer->gang, &trainer->home, trainer->id, why)) {
        *code = 1;
        return true;
    }
    return wanted;
}

static int train(struct trainer *trainer, struct error *err)
{
    struct new_state state = new_state(trainer);
    struct error why = {""};
    int code, attempt;

    if (home_has(&trainer->home, trainer->id, HOME_FIT_FILE) || is_followed(trainer))
        return 0;
    if (!get_data(trainer, &code, &why))
        return why.text[0] == '\0'
                   ? 0
                   : training_say(&trainer->home, trainer->id, HOME_FIT_FILE, code, &why, err);
    if (!training_attempt(&trainer->home, trainer->id, &attempt)) {
        if (errno != EEXIST)
            return error_set(err, "fit %" PRId64 ": %s", trainer->id, strerror(errno));
        error_set(&why, TRAINING_LOST, TRAINING_ATTEMPTS);
        return training_say(&trainer->home, trainer->id, HOME_FIT_FILE, 1, &why, err);
    }
    if (trainer->attempt > 0 && new_state_begin(&state, err) != 0)
        return -1;
    trainer->attempt = attempt;
    if (trainer->gang.tasks > 1 && gang_begin(&trainer->gang, &trainer->home, trainer->id, attempt,
                                              trainer->staged.path, err) != 0)
        return -1;
    log_info("fit %" PRId64 " of %s: trains%s", trainer->id, trainer->spec.model,
             attempt > 1 ? " once more" : "");
    if (!do_training(trainer, &code, &why) || is_followed(trainer))
        return 0;
    return code == 0 ? finish(trainer, &state, err)
                     : training_say(&trainer->home, trainer->id, HOME_FIT_FILE, code, &why, err);
}

/* ---- all ------------------------------------------------------------------------------------- */

/* What task 0 does. */
static int lead(struct trainer *trainer, struct error *err)
{
    int rc;

    if (trainer->arguments->call != NULL && trainer->spec.stage != NULL &&
        make_staged(trainer, err) != 0)
        return -1;
    if (start_server(trainer, trainer->staged.path, err) != 0 || server_is_lost(trainer, &rc, err))
        return -1;
    if (trainer->record.fit.action == FIT_DO_STAGE)
        return stage(trainer, err);
    return trainer->record.fit.action == FIT_DO_FIT ? train(trainer, err) : 0;
}

/* What the others do. A server of theirs runs as long as the fit. */
static int follow(struct trainer *trainer, struct error *err)
{
    char staged[PATH_MAX];
    bool begun = gang_has_begun(&trainer->gang, &trainer->home, trainer->id, staged,
                                sizeof(staged));
    struct error why = {""};
    int code = 0;

    if (begun)
        trainer->attempt = trainer->gang.attempt;
    if (start_server(trainer, "", err) != 0)
        return -1;
    if (trainer->arguments->call != NULL) {
        if (!begun || !server_has_ended(trainer, &code, &why))
            return 0;
    } else if (!begun || !run(trainer, trainer->arguments->program, staged, &code, &why)) {
        return 0;
    }
    return gang_say(&trainer->gang, &trainer->home, trainer->id, code, &why, err);
}

static int work(struct trainer *trainer, struct error *err)
{
    if (trainer->id == 0 && find_fit(trainer, err) != 0)
        return -1;
    if (trainer->id == 0)
        return 0;
    if (!still_wanted(trainer)) {
        leave(trainer);
        return 0;
    }
    return trainer->gang.task == 0 ? lead(trainer, err) : follow(trainer, err);
}

/* Until it is told to end. */
static void loop(struct trainer *trainer, struct guest_trainer *guest, struct error *err)
{
    struct error before = {""};

    while (!stop_asked()) {
        struct timespec time = {.tv_nsec = IDLE_NS};

        if ((work(trainer, err) != 0 ||
             (trainer->id == 0 && guest != NULL && guest_trainer_look(guest, err) != 0)) &&
            strcmp(before.text, err->text) != 0) {
            log_error("%s; tries again", err->text);
            before = *err;
        }
        if (trainer->id != 0 || (guest != NULL && guest->id != 0))
            time.tv_nsec = LOOK_NS;
        nanosleep(&time, NULL);
    }
    leave(trainer);
}

/* Guests have what the job file's fit runs; a role trains for its service only. */
int fit_train(const struct fit_arguments *arguments, struct error *err)
{
    struct trainer trainer = {.arguments = arguments, .gang = gang_here()};
    struct guest_trainer guest = {0};

    log_init("elastic-fit");
    stop_watch(0);
    if (home_open(&trainer.home, arguments->service, err) != 0 ||
        guests_home(&trainer.home, &guest.home, err) != 0)
        return -1;
    guest.key = s3_box_key_create();
    if (guest.key == NULL)
        return error_set(err, "out of memory");
    training_scratch_sweep();
    loop(&trainer, arguments->program == NULL ? &guest : NULL, err);
    s3_box_key_destroy(guest.key);
    return 0;
}
