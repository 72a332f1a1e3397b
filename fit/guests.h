/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Trainings for other users, in the directory of the service that trains. Who writes what:
 *
 *     guests/fits/000003/run.json      who has asked, for which fit of which service: the desk
 *     guests/fits/000003/begin.json    what is to be trained, and by which program: the desk
 *     guests/fits/000003/keys          for S3; the replica that trains can read it: the desk
 *     guests/fits/000003/looked        its time: when the user has asked last: the desk
 *     guests/fits/000003/end           it is to end: the desk, or the runner
 *     guests/fits/000003/chosen        its turn has come: the runner
 *     guests/fits/000003/waits         for what it waits: the runner
 *     guests/fits/000003/over          its replica has ended: the runner
 *     …/trainer.json, attempt.1, fit.json, log    as of a fit of the service: the trainer
 */
#ifndef FIT_GUESTS_H
#define FIT_GUESTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <json-c/json.h>

#include "fit/home.h"
#include "lib/error.h"

#define GUEST_BEGIN_FILE  "begin.json"
#define GUEST_KEYS_FILE   "keys"
#define GUEST_LOOKED_FILE "looked"
#define GUEST_END_FILE    "end"
#define GUEST_CHOSEN_FILE "chosen"
#define GUEST_WAITS_FILE  "waits"
#define GUEST_OVER_FILE   "over"

#define GUEST_LOG_MOST (16 << 20) /* what a guest sees of it */

#define GUEST_LIMIT  3600.0 /* seconds of a training, if the service says nothing */
#define GUEST_SILENT 60.0   /* seconds without a look after which a training ends */

/* The fits for guests of the service of home. */
int guests_home(const struct home *home, struct home *guests, struct error *err);

/* Who has asked. -1 with err. */
int guest_uid(const struct home *guests, int64_t id, uid_t *uid, struct error *err);
/* … under that name (a new string), for an account. NULL: not known. */
char *guest_user(const struct home *guests, int64_t id);

/* Write a text to one of the files. */
int guest_write(const struct home *guests, int64_t id, const char *file, const char *text,
                struct error *err);

/* The answer to a message of a guest: `whole` is as agent/leader/fit_desk.c makes it. A new
 * object. */
json_object *guest_answer(const struct home *guests, json_object *whole);

#endif
