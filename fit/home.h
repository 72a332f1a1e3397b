/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The fits of a service, in its directory: who else reads and writes them is another process,
 * perhaps on another node.
 *
 *     fits/000003/run.json       what is to be done; never changed (fit/spec.h)
 *     fits/000003/config.json    … a part of what the training is told
 *     fits/000003/call-12.0.7.json  all of it, for one attempt
 *     fits/000003/status.json    how far it is; only the runner writes it
 *     fits/000003/cancel         somebody wants it to end: a reason
 *     fits/000003/trainer.json   where the trainer of it runs
 *     fits/000003/world.json     of which job the world trains, and how many have begun
 *     fits/000003/attempt.1      the training has been started so often
 *     fits/000003/stage.json, fit.json    how these programs ended
 *     fits/000003/log            what they have printed
 *     fits/runners/7             claims: the runner that made the highest number writes
 *
 * All functions that return int return 0, or -1 with err. */
#ifndef FIT_HOME_H
#define FIT_HOME_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include <json-c/json.h>

#include "fit/new_state.h"
#include "fit/pin.h"
#include "lib/error.h"
#include "lib/fit.h"

#define HOME_FILE_MAX     ((size_t)4 << 20)
#define HOME_RUN_FILE     "run.json"
#define HOME_CALL_FILE    "call.json" /* of a training for a guest, in its own directory */
#define HOME_CONFIG_FILE  "config.json"
#define HOME_STATUS_FILE  "status.json"
#define HOME_CANCEL_FILE  "cancel"
#define HOME_TRAINER_FILE "trainer.json"
#define HOME_WORLD_FILE   "world.json"
#define HOME_STAGE_FILE   "stage.json"
#define HOME_FIT_FILE     "fit.json"
#define HOME_LOG_FILE     "log"

struct home {
    char dir[PATH_MAX - 320]; /* of the service */
};

/* The service's. */
int home_open(struct home *home, const char *service, struct error *err);

/* A path in the directory of a fit. */
struct home_path {
    char text[PATH_MAX];
};
struct home_path home_path(const struct home *home, int64_t id, const char *file);

/* A file of a fit as JSON. NULL with err; errno is ENOENT if there is none, and EINVAL if it is not
 * one that home_write() has written. */
json_object *home_read(const struct home *home, int64_t id, const char *file, struct error *err);
/* json is put in any case. What would be longer than home_read() reads is refused. */
int home_write(const struct home *home, int64_t id, const char *file, json_object *json,
               struct error *err);
bool home_has(const struct home *home, int64_t id, const char *file);
/* Make an empty file that is not there yet. False: it is, or cannot be made. */
bool home_make(const struct home *home, int64_t id, const char *file);

/* The numbers of all fits, ascending: a new array, *count of them. NULL with err. Without a
 * directory there are none. */
int64_t *home_list(const struct home *home, size_t *count, struct error *err);

/* A new fit of that run, whose number is the next one. json is put. */
int home_add(const struct home *home, json_object *run, int64_t *id, struct error *err);

/* ---- the record ------------------------------------------------------------------------------ */

#define HOME_HISTORY_MAX 16

struct home_record {
    struct fit fit;
    int64_t state;    /* the number of the new one; 0: not chosen */
    bool made;        /* … its directory has been made */
    int64_t previous; /* that the training gets; 0: none */
    int64_t before;   /* that counted before the new one did; 0: none */
    int64_t training; /* the number that the trainer of another user has for it; 0: none */
    int64_t stored;   /* … on S3, where states are there; 0: none */
    int64_t left;     /* in the name of what the trainer has left; 0: not chosen */
    char attempt[NEW_STATE_ATTEMPT_MAX + 1]; /* whose files it has (fit/new_state.h); "": none's */
    char waits[256];                         /* for what */
    struct {
        struct pin partial, previous, incoming; /* directories: of what the names above were */
    } pins;
    struct {
        enum fit_status status;
        double at;
    } history[HOME_HISTORY_MAX];
    int steps; /* of history */
};

/* -1 with err; errno is ENOENT if nobody has begun it. */
int home_record_read(const struct home *home, int64_t id, struct home_record *record,
                     struct error *err);
int home_record_write(const struct home *home, int64_t id, struct home_record *record,
                      struct error *err);

/* ---- one runner ------------------------------------------------------------------------------ */

/* From now on this process writes: *claim. */
int home_claim(const struct home *home, int64_t *claim, struct error *err);
/* Has nobody else claimed it since? */
bool home_claimed(const struct home *home, int64_t claim);

#endif
