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
#include "fit/guest_trainer.h"
#include "fit/new_state.h"
#include "fit/spec.h"
#include "fit/training.h"
#include "fit/user_program.h"
#include "lib/json_get.h"

#define LOOK_NS     50000000L
#define IDLE_NS     500000000L /* when there is nothing to train */
#define UNWANTED_MS 1000

struct trainer {
    struct home home;
    int64_t id; /* 0: no fit is under way */
    struct spec spec;
    struct home_record record;
    struct training_scratch staged; /* the directory for data on this node */
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
    training_scratch_remove(&trainer->staged);
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
        rc = training_here(&trainer->home, trainer->id, NULL, err);
    }
    free(list);
    return rc;
}

/* ---- what programs are told ------------------------------------------------------------------ */

static struct training_added environment(const struct trainer *trainer)
{
    const struct home *home = &trainer->home;
    json_object *json = trainer->spec.json;
    struct new_state_path to = new_state_path(trainer->spec.place, trainer->record.state, false);
    struct new_state_path from = new_state_path(trainer->spec.place, trainer->record.previous,
                                                true);
    struct training_added added = {0};
    char id[24];

    snprintf(id, sizeof(id), "%" PRId64, trainer->id);
    training_add(&added, "ELASTIC_FIT", home_path(home, trainer->id, HOME_CALL_FILE).text);
    training_add(&added, "ELASTIC_FIT_ID", id);
    training_add(&added, "ELASTIC_MODEL_DIR", to.text);
    training_add(&added, "ELASTIC_PREVIOUS_MODEL_DIR",
                 trainer->record.previous > 0 ? from.text : NULL);
    training_add(&added, "ELASTIC_TRAIN_DATA", json_get_string(json, "trainData"));
    training_add(&added, "ELASTIC_TARGETS_DATA", json_get_string(json, "targetsData"));
    if (home_has(home, trainer->id, HOME_CONFIG_FILE))
        training_add(&added, "ELASTIC_FIT_CONFIG",
                     home_path(home, trainer->id, HOME_CONFIG_FILE).text);
    training_add(&added, "ELASTIC_STAGED",
                 trainer->staged.path[0] != '\0' ? trainer->staged.path : NULL);
    return added;
}

static bool run(struct trainer *trainer, char *const *argv, int *code, struct error *why)
{
    struct home_path log = home_path(&trainer->home, trainer->id, HOME_LOG_FILE);
    struct training_added added = environment(trainer);
    struct program program = {
        .argv = argv, .added = added.list, .log = log.text, .unwanted = unwanted, .arg = trainer};
    bool wanted = program_run(&program, code, why);

    training_added_clear(&added);
    return wanted;
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
    return training_say(&trainer->home, trainer->id, HOME_STAGE_FILE, trainer->has_data ? 0 : code,
                        &why, err);
}

/* ---- the training ---------------------------------------------------------------------------- */

static int finish(const struct trainer *trainer, const struct new_state *state, struct error *err)
{
    struct error why = {""};
    char name[64];
    int code;

    snprintf(name, sizeof(name), "fit %" PRId64 " of %.24s", trainer->id, trainer->spec.service);
    code = new_state_finish(state, name, &why) == 0 ? 0 : 1;
    return training_say(&trainer->home, trainer->id, HOME_FIT_FILE, code, &why, err);
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
        return why.text[0] == '\0'
                   ? 0
                   : training_say(&trainer->home, trainer->id, HOME_FIT_FILE, code, &why, err);
    if (!training_attempt(&trainer->home, trainer->id, &attempt)) {
        if (errno != EEXIST)
            return error_set(err, "fit %" PRId64 ": %s", trainer->id, strerror(errno));
        error_set(&why, TRAINING_LOST, TRAINING_ATTEMPTS);
        return training_say(&trainer->home, trainer->id, HOME_FIT_FILE, 1, &why, err);
    }
    if (attempt > 1 && new_state_again(&state, err) != 0)
        return -1;
    log_info("fit %" PRId64 " of %s: trains%s", trainer->id, trainer->spec.model,
             attempt > 1 ? " once more" : "");
    if (!run(trainer, trainer->spec.run, &code, &why))
        return 0;
    return code == 0 ? finish(trainer, &state, err)
                     : training_say(&trainer->home, trainer->id, HOME_FIT_FILE, code, &why, err);
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
    struct guest_trainer guest = {0};
    struct error before = {""};

    log_init("elastic-fit");
    stop_watch(0);
    if (home_open(&trainer.home, arguments->service, err) != 0 ||
        guests_home(&trainer.home, &guest.home, err) != 0)
        return -1;
    guest.key = s3_box_key_create();
    if (guest.key == NULL)
        return error_set(err, "out of memory");
    training_scratch_sweep();
    while (!stop_asked()) {
        struct timespec time = {.tv_nsec = IDLE_NS};

        if ((work(&trainer, err) != 0 ||
             (trainer.id == 0 && guest_trainer_look(&guest, err) != 0)) &&
            strcmp(before.text, err->text) != 0) {
            log_error("%s; tries again", err->text);
            before = *err;
        }
        if (trainer.id != 0 || guest.id != 0)
            time.tv_nsec = LOOK_NS;
        nanosleep(&time, NULL);
    }
    leave(&trainer);
    s3_box_key_destroy(guest.key);
    return 0;
}
