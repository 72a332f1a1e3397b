/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A training for a guest (guest_trainer.h). */
#include "fit/guest_trainer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/files.h"
#include "common/log.h"
#include "common/monotonic.h"
#include "common/stop.h"
#include "fit/foreign.h"
#include "fit/s3_foreign.h"
#include "fit/training.h"
#include "fit/user_program.h"
#include "lib/json_get.h"
#include "lib/s3_place.h"
#include "lib/text.h"

#define ARGUMENTS_MAX 1000
#define UNWANTED_MS   500
#define PATIENCE      120 /* seconds for access: the guest's next job may give it again */

/* One start of it. */
struct attempt {
    struct guest_trainer *trainer;
    json_object *begun, *call; /* call: what the program is told, with its own paths */
    struct s3_source source;   /* keys for S3 */
    struct foreign foreign;
    struct room room;                /* for all that is copied before the program begins */
    struct training_scratch scratch; /* below it: data, targets, previous, model, staged */
};

static bool is_ended(const struct guest_trainer *trainer)
{
    return home_has(&trainer->home, trainer->id, GUEST_END_FILE) ||
           home_has(&trainer->home, trainer->id, GUEST_OVER_FILE);
}

/* It was taken for lost: another start has the word now. */
static bool is_followed(const struct guest_trainer *trainer)
{
    return trainer->attempt > 0 &&
           training_is_followed(&trainer->home, trainer->id, trainer->attempt);
}

static bool unwanted(void *arg)
{
    struct guest_trainer *trainer = arg;
    long long now = monotonic_ms();

    if (stop_asked())
        return true;
    if (now - trainer->looked < UNWANTED_MS)
        return false;
    trainer->looked = now;
    return is_ended(trainer) || is_followed(trainer);
}

/* Nobody waits for what it says. */
static bool is_over(const struct guest_trainer *trainer)
{
    return stop_asked() || is_ended(trainer) || is_followed(trainer);
}

/* ---- what the program is told ---------------------------------------------------------------- */

static void below(char path[PATH_MAX], const struct attempt *attempt, const char *name)
{
    snprintf(path, PATH_MAX, "%.4000s/%s", attempt->scratch.path, name);
}

/* What the call names becomes a copy, and the call names that one. */
static int get(struct attempt *attempt, const char *key, const char *name, struct error *err)
{
    const char *path = json_get_string(attempt->call, key);
    char to[PATH_MAX], result[PATH_MAX];

    if (path == NULL)
        return 0;
    below(to, attempt, name);
    if (s3_place_is(path) ? s3_foreign_get(&attempt->source, path, to, result, err) != 0
                          : foreign_copy(path, &attempt->foreign, to, result, err) != 0)
        return -1;
    json_object_object_add(attempt->call, key, json_object_new_string(result));
    return 0;
}

static int write_file(const struct attempt *attempt, const char *name, json_object *json,
                      struct error *err)
{
    const char *text = json_object_to_json_string_ext(json, JSON_C_TO_STRING_PRETTY);
    char path[PATH_MAX];

    below(path, attempt, name);
    return text != NULL ? file_replace(path, text, strlen(text), 0600, err)
                        : error_set(err, "out of memory");
}

static int prepare(struct attempt *attempt, struct error *err)
{
    json_object *config = json_object_object_get(attempt->call, "config");
    char model[PATH_MAX], staged[PATH_MAX];

    below(model, attempt, "model");
    below(staged, attempt, "staged");
    json_object_object_add(attempt->call, "modelDir", json_object_new_string(model));
    json_object_object_add(attempt->call, "stagedDir", json_object_new_string(staged));
    if (dir_make(model, err) != 0 || dir_make(staged, err) != 0 ||
        get(attempt, "trainData", "data", err) != 0 ||
        get(attempt, "targetsData", "targets", err) != 0 ||
        get(attempt, "previousModelDir", "previous", err) != 0 ||
        write_file(attempt, HOME_CALL_FILE, attempt->call, err) != 0)
        return -1;
    return config != NULL ? write_file(attempt, HOME_CONFIG_FILE, config, err) : 0;
}

static struct training_added environment(const struct attempt *attempt)
{
    static const struct {
        const char *variable, *key;
    } same[] = {{"ELASTIC_MODEL_DIR", "modelDir"},
                {"ELASTIC_PREVIOUS_MODEL_DIR", "previousModelDir"},
                {"ELASTIC_TRAIN_DATA", "trainData"},
                {"ELASTIC_TARGETS_DATA", "targetsData"},
                {"ELASTIC_STAGED", "stagedDir"}};
    struct training_added added = {0};
    char path[PATH_MAX], id[24];

    for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++)
        training_add(&added, same[i].variable, json_get_string(attempt->call, same[i].key));
    snprintf(id, sizeof(id), "%" PRId64, attempt->trainer->id);
    training_add(&added, "ELASTIC_FIT_ID", id);
    below(path, attempt, HOME_CALL_FILE);
    training_add(&added, "ELASTIC_FIT", path);
    below(path, attempt, HOME_CONFIG_FILE);
    if (json_object_object_get(attempt->call, "config") != NULL)
        training_add(&added, "ELASTIC_FIT_CONFIG", path);
    return added;
}

/* ---- its run --------------------------------------------------------------------------------- */

/* 1: it is not wanted any more. Else its exit status is in code. */
static int run(const struct attempt *attempt, const char *key, int *code, struct error *why)
{
    struct guest_trainer *trainer = attempt->trainer;
    struct home_path log = home_path(&trainer->home, trainer->id, HOME_LOG_FILE);
    struct training_added added = environment(attempt);
    char **argv = json_get_strings(attempt->begun, key, ARGUMENTS_MAX);
    struct program program = {
        .argv = argv, .added = added.list, .log = log.text, .unwanted = unwanted, .arg = trainer};
    bool wanted = true;

    *code = 0;
    if (argv != NULL && argv[0] != NULL)
        wanted = program_run(&program, code, why);
    training_added_clear(&added);
    strings_free(argv);
    return wanted ? 0 : 1;
}

static int put(struct attempt *attempt, const char *to, struct error *err)
{
    char model[PATH_MAX];

    below(model, attempt, "model");
    attempt->foreign.room = NULL; /* it is elsewhere */
    return s3_place_is(to) ? s3_foreign_put(&attempt->source, model, to, err)
                           : foreign_put(model, to, &attempt->foreign, err);
}

/* 1: it is not wanted any more. */
static int carry_out(struct attempt *attempt, int *code, struct error *why)
{
    char to[PATH_MAX];
    const char *there = json_get_string(attempt->call, "modelDir");

    snprintf(to, sizeof(to), "%s", there != NULL ? there : "");
    *code = 1;
    if (prepare(attempt, why) != 0)
        return is_over(attempt->trainer) ? 1 : 0;
    if (run(attempt, "stage", code, why) != 0)
        return 1;
    if (*code != 0) {
        error_prefix(why, "the program that gets the data");
        return 0;
    }
    if (run(attempt, "run", code, why) != 0)
        return 1;
    if (*code != 0)
        return 0;
    *code = put(attempt, to, why) == 0 ? 0 : 1;
    return *code != 0 && is_over(attempt->trainer) ? 1 : 0;
}

static int train(struct guest_trainer *trainer, json_object *begun, struct error *err)
{
    struct home_path keys = home_path(&trainer->home, trainer->id, GUEST_KEYS_FILE);
    struct attempt attempt = {
        .trainer = trainer,
        .begun = begun,
        .foreign = {
            .owner = trainer->uid, .stops = unwanted, .arg = trainer, .patience = PATIENCE}};
    struct error why = {""};
    int number, code = 1, rc;

    if (!training_attempt(&trainer->home, trainer->id, &number)) {
        if (errno != EEXIST)
            return error_set(err, "training %" PRId64 ": %s", trainer->id, strerror(errno));
        error_set(&why, TRAINING_LOST, TRAINING_ATTEMPTS);
        return training_say(&trainer->home, trainer->id, HOME_FIT_FILE, 1, &why, err);
    }
    trainer->attempt = number;
    attempt.call = json_object_get(json_object_object_get(begun, "call"));
    if (training_scratch_make(&attempt.scratch, err) != 0) {
        json_object_put(attempt.call);
        return -1;
    }
    log_info("training %" PRId64 " for uid %u", trainer->id, trainer->uid);
    attempt.foreign.room = &attempt.room;
    attempt.source = (struct s3_source){.key = trainer->key,
                                        .path = keys.text,
                                        .unwanted = unwanted,
                                        .arg = trainer,
                                        .room = &attempt.room};
    rc = carry_out(&attempt, &code, &why);
    s3_source_clear(&attempt.source);
    training_scratch_remove(&attempt.scratch);
    json_object_put(attempt.call);
    return rc == 0 && !is_followed(trainer)
               ? training_say(&trainer->home, trainer->id, HOME_FIT_FILE, code, &why, err)
               : 0;
}

/* ---- whom it trains for ---------------------------------------------------------------------- */

static int find(struct guest_trainer *trainer, struct error *err)
{
    size_t count;
    int64_t *list = home_list(&trainer->home, &count, err);
    int rc = list != NULL ? 0 : -1;

    for (size_t i = 0; rc == 0 && i < count && trainer->id == 0; i++) {
        trainer->id = list[i];
        if (!home_has(&trainer->home, trainer->id, GUEST_CHOSEN_FILE) || is_ended(trainer))
            trainer->id = 0;
        else
            rc = guest_uid(&trainer->home, trainer->id, &trainer->uid, err);
        if (rc == 0 && trainer->id != 0)
            rc = training_here(&trainer->home, trainer->id, s3_box_key_name(trainer->key), err);
    }
    free(list);
    return rc;
}

int guest_trainer_look(struct guest_trainer *trainer, struct error *err)
{
    json_object *begun;
    int rc = 0;

    if (trainer->id != 0 && is_ended(trainer))
        trainer->id = trainer->attempt = 0;
    if (trainer->id == 0 && find(trainer, err) != 0) {
        trainer->id = 0;
        return -1;
    }
    if (trainer->id == 0 || home_has(&trainer->home, trainer->id, HOME_FIT_FILE) ||
        is_followed(trainer) || !home_has(&trainer->home, trainer->id, GUEST_BEGIN_FILE))
        return 0;
    begun = home_read(&trainer->home, trainer->id, GUEST_BEGIN_FILE, err);
    if (begun == NULL)
        return -1;
    rc = train(trainer, begun, err);
    json_object_put(begun);
    return rc;
}
