/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a trainer of another user may open for a fit: by POSIX ACLs, from before the training until
 * the end of the fit.
 *
 * The list of it is written before the first ACL is changed: grant.json. So whoever comes after
 * can take all of it back: the runner, the epilog, or a later fit. What is there by then has to be
 * what was there. What is out of reach, or may not be changed, is kept as "lost", and tried again
 * by whoever comes after. */
#ifndef FIT_GRANT_H
#define FIT_GRANT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <json-c/json.h>

#include "fit/home.h"
#include "fit/pin.h"
#include "lib/error.h"

#define HOME_GRANT_FILE   "grant.json"
#define HOME_GRANT_BROKEN "grant.broken" /* one that could not be read */
#define GRANT_INCOMING    ".incoming"    /* in the partial state: the trainer writes there */
#define GRANT_READ_MAX    4

struct grant_order {
    const char *user; /* who gets access */
    uid_t uid;
    /* Files and directories. */
    struct {
        const char *path; /* NULL: none */
        struct pin_data data;
        const struct pin *pin; /* a directory, and which; NULL: it may be a file */
    } read[GRANT_READ_MAX];
    const char *write;      /* a directory that the fit has made; NULL: none */
    const struct pin *made; /* … which one; NULL: not known */
    uint32_t job, restarts; /* of the service: its epilog takes all back */
    const char *cluster;    /* … of that job; NULL: not known */
    int64_t claim;          /* of the runner (home_claim); 0: none */
    double until;           /* by then it is over in any case */
};

/* May a trainer of another user be let at this path: is it this user's, and no link on the way?
 * *data is which it is. -1 with err. */
int grant_check(const char *path, struct pin_data *data, struct error *err);

/* Give access; once more if it was given before. -1 with err: some of it may be given. errno is
 * EAGAIN if another process is at work there. */
int grant_give(const struct home *home, int64_t id, const struct grant_order *order,
               struct error *err);
/* Take all of it back, but for what a runner with a later claim has given (claim 0: that, too).
 * What is lost is no failure. Also if nothing is given. -1 with err; it is to be tried again. */
int grant_revoke(const struct home *home, int64_t id, int64_t claim, struct error *err);
bool grant_is_open(const struct home *home, int64_t id);
/* What could not be taken back, an array of {"path", "why"}; NULL: nothing. A new object. */
json_object *grant_lost(const struct home *home, int64_t id);

/* A run of a job that has ended. */
struct grant_run {
    uint32_t job, restarts;
    const char *cluster; /* NULL: not known, and so it may be any */
};

/* Of all services of this user: what that run has given, or an earlier one, what is over by now,
 * and what was lost. run NULL: only the latter two. *count: so many are open no more. */
int grant_revoke_all(const struct grant_run *run, double now, int *count, struct error *err);

#endif
