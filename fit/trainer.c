/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `elastic-fit train`: the replica that trains (command.h). It takes no requests of clients.
 *
 * It looks at the record of the fit and does what is the present action, once: how that has ended
 * is in a file, which the runner finds. So neither minds when the other one is started anew. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/files.h"
#include "common/log.h"
#include "common/stop.h"
#include "fit/fit_command.h"
#include "fit/home.h"
#include "fit/new_state.h"
#include "fit/user_program.h"
#include "fit/spec.h"
#include "lib/json_get.h"

#define LOOK_NS     50000000L
#define ATTEMPTS    2 /* starts of a training: it may lose its node once */
#define ADDED_MAX   12
#define UNWANTED_MS 1000

struct trainer {
    struct home home;
    int64_t id; /* 0: no fit is under way */
    struct spec spec;
    struct home_record record;
    char staged[PATH_MAX]; /* the directory for data on this node; "": not made */
    bool has_data;
    struct timespec looked;
};

/* ---- which fit ------------------------------------------------------------------------------- */

static bool is_for_us(const struct fit *fit)
{
    return fit->dedicated && !fit->cleaning && !fit_is_over(fit);
}

static void remove_staged(struct trainer *trainer)
{
    if (trainer->staged[0] != '\0')
        dir_remove(trainer->staged, NULL);
    trainer->staged[0] = '\0';
    trainer->has_data = false;
}

static void leave(struct trainer *trainer)
{
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
    return is_for_us(&record.fit);
}

static bool unwanted(void *arg)
{
    struct trainer *trainer = arg;
    struct timespec now;
    long ms;

    if (stop_asked())
        return true;
    clock_gettime(CLOCK_MONOTONIC, &now);
    ms = (now.tv_sec - trainer->looked.tv_sec) * 1000 +
         (now.tv_nsec - trainer->looked.tv_nsec) / 1000000;
    if (ms < UNWANTED_MS)
        return false;
    trainer->looked = now;
    return !still_wanted(trainer);
}

/* Where it is, so that people find it. The runner goes on by that. */
static int say_here(struct trainer *trainer, struct error *err)
{
    json_object *here = json_object_new_object();
    char host[256] = "";

    gethostname(host, sizeof(host) - 1);
    json_object_object_add(here, "node", json_object_new_string(host));
    json_object_object_add(here, "pid", json_object_new_int(getpid()));
    json_object_object_add(here, "at", json_object_new_int64((int64_t)time(NULL)));
    return home_write(&trainer->home, trainer->id, HOME_TRAINER_FILE, here, err);
}

static int find_fit(struct trainer *trainer, struct error *err)
{
    size_t count;
    int64_t *list = home_list(&trainer->home, &count, err);
    int rc = list != NULL ? 0 : -1;

    while (rc == 0 && trainer->id == 0 && count-- > 0) {
        struct home_record record;

        if (home_record_read(&trainer->home, list[count], &record, NULL) != 0 ||
            !is_for_us(&record.fit))
            continue;
        rc = spec_read(&trainer->home, list[count], &trainer->spec, err);
        if (rc != 0)
            break;
        trainer->id = list[count];
        trainer->record = record;
        rc = say_here(trainer, err);
    }
    free(list);
    return rc;
}

/* ---- what programs are told ------------------------------------------------------------------ */

struct added {
    char *list[ADDED_MAX + 1];
    int count;
};

static void add(struct added *added, const char *name, const char *value)
{
    if (value == NULL || added->count == ADDED_MAX)
        return;
    if (asprintf(&added->list[added->count], "%s=%s", name, value) < 0)
        added->list[added->count] = NULL;
    else
        added->count++;
}

static void clear_added(struct added *added)
{
    for (int i = 0; i < added->count; i++)
        free(added->list[i]);
}

static struct added environment(const struct trainer *trainer)
{
    const struct home *home = &trainer->home;
    json_object *json = trainer->spec.json;
    struct new_state_path to = new_state_path(trainer->spec.place, trainer->record.state, false);
    struct new_state_path from = new_state_path(trainer->spec.place, trainer->record.previous,
                                                true);
    struct added added = {0};
    char id[24];

    snprintf(id, sizeof(id), "%" PRId64, trainer->id);
    add(&added, "ELASTIC_FIT", home_path(home, trainer->id, HOME_CALL_FILE).text);
    add(&added, "ELASTIC_FIT_ID", id);
    add(&added, "ELASTIC_MODEL_DIR", to.text);
    add(&added, "ELASTIC_PREVIOUS_MODEL_DIR", trainer->record.previous > 0 ? from.text : NULL);
    add(&added, "ELASTIC_TRAIN_DATA", json_get_string(json, "trainData"));
    add(&added, "ELASTIC_TARGETS_DATA", json_get_string(json, "targetsData"));
    if (home_has(home, trainer->id, HOME_CONFIG_FILE))
        add(&added, "ELASTIC_FIT_CONFIG", home_path(home, trainer->id, HOME_CONFIG_FILE).text);
    add(&added, "ELASTIC_STAGED", trainer->staged[0] != '\0' ? trainer->staged : NULL);
    return added;
}

static bool run(struct trainer *trainer, char *const *argv, int *code, struct error *why)
{
    struct home_path log = home_path(&trainer->home, trainer->id, HOME_LOG_FILE);
    struct added added = environment(trainer);
    struct program program = {
        .argv = argv, .added = added.list, .log = log.text, .unwanted = unwanted, .arg = trainer};
    bool wanted = program_run(&program, code, why);

    clear_added(&added);
    return wanted;
}

static int say(const struct trainer *trainer, const char *file, int code, const struct error *why,
               struct error *err)
{
    json_object *json = json_object_new_object();

    json_object_object_add(json, "exit", json_object_new_int(code));
    json_object_object_add(json, "why", json_object_new_string(why->text));
    return home_write(&trainer->home, trainer->id, file, json, err);
}

/* ---- the data -------------------------------------------------------------------------------- */

static int make_staged(struct trainer *trainer, struct error *err)
{
    const char *tmp = getenv("TMPDIR");

    if (trainer->staged[0] != '\0')
        return 0;
    snprintf(trainer->staged, sizeof(trainer->staged), "%.3900s/elastic-fit-XXXXXX",
             tmp != NULL && tmp[0] == '/' ? tmp : "/tmp");
    if (mkdtemp(trainer->staged) != NULL)
        return 0;
    error_set(err, "%s: %s", error_path(trainer->staged).text, strerror(errno));
    trainer->staged[0] = '\0';
    return -1;
}

/* True: the data is there, or need not be. False: code and why, or it is not wanted any more. */
static bool get_data(struct trainer *trainer, int *code, struct error *why)
{
    *code = 1;
    if (trainer->spec.stage == NULL || trainer->has_data)
        return true;
    if (make_staged(trainer, why) != 0)
        return false;
    if (!run(trainer, trainer->spec.stage, code, why)) {
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
    return say(trainer, HOME_STAGE_FILE, trainer->has_data ? 0 : code, &why, err);
}

/* ---- the training ---------------------------------------------------------------------------- */

/* This start is the first, or the second after the first has gone with its node. False: there have
 * been enough. */
static bool take_attempt(const struct trainer *trainer, int *attempt)
{
    for (*attempt = 1; *attempt <= ATTEMPTS; (*attempt)++) {
        char file[24];

        snprintf(file, sizeof(file), "attempt.%d", *attempt);
        if (home_make(&trainer->home, trainer->id, file))
            return true;
        if (errno != EEXIST)
            return false;
    }
    errno = EEXIST;
    return false;
}

static int finish(const struct trainer *trainer, const struct new_state *state, struct error *err)
{
    struct error why = {""};
    char name[64];
    int code;

    snprintf(name, sizeof(name), "fit %" PRId64 " of %.24s", trainer->id, trainer->spec.service);
    code = new_state_finish(state, name, &why) == 0 ? 0 : 1;
    return say(trainer, HOME_FIT_FILE, code, &why, err);
}

static int train(struct trainer *trainer, struct error *err)
{
    struct new_state state = {.place = trainer->spec.place,
                              .number = trainer->record.state,
                              .previous = trainer->record.previous};
    struct error why = {""};
    int code, attempt;

    if (home_has(&trainer->home, trainer->id, HOME_FIT_FILE))
        return 0;
    if (!get_data(trainer, &code, &why))
        return why.text[0] == '\0' ? 0 : say(trainer, HOME_FIT_FILE, code, &why, err);
    if (!take_attempt(trainer, &attempt)) {
        if (errno != EEXIST)
            return error_set(err, "fit %" PRId64 ": %s", trainer->id, strerror(errno));
        error_set(&why, "it was lost with its node or its replica, %d times", ATTEMPTS);
        return say(trainer, HOME_FIT_FILE, 1, &why, err);
    }
    if (attempt > 1 && new_state_again(&state, err) != 0)
        return -1;
    log_info("fit %" PRId64 " of %s: trains%s", trainer->id, trainer->spec.model,
             attempt > 1 ? " once more" : "");
    if (!run(trainer, trainer->spec.run, &code, &why))
        return 0;
    return code == 0 ? finish(trainer, &state, err) : say(trainer, HOME_FIT_FILE, code, &why, err);
}

/* ---- all ------------------------------------------------------------------------------------- */

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
    if (trainer->record.fit.action == FIT_DO_STAGE)
        return stage(trainer, err);
    return trainer->record.fit.action == FIT_DO_FIT ? train(trainer, err) : 0;
}

int fit_train(const struct fit_arguments *arguments, struct error *err)
{
    struct trainer trainer = {0};
    struct error before = {""};

    log_init("elastic-fit");
    stop_watch(0);
    if (home_open(&trainer.home, arguments->service, err) != 0)
        return -1;
    while (!stop_asked()) {
        struct timespec time = {.tv_nsec = LOOK_NS};

        if (work(&trainer, err) != 0 && strcmp(before.text, err->text) != 0) {
            log_error("%s; tries again", err->text);
            before = *err;
        }
        nanosleep(&time, NULL);
    }
    leave(&trainer);
    return 0;
}
