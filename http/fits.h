/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests about trainings of the job's service: the leader says which service it is, and
 * elastic-fit does the rest. */
#ifndef ELASTIC_HTTP_FITS_H
#define ELASTIC_HTTP_FITS_H

#include <uv.h>

#include "common/courier.h"
#include "http/desk.h"
#include "lib/fit_request.h"

struct fits;

#define FITS_MAX 8 /* requests at once: each is a process */

/* program: elastic-fit, which is copied. hold_ms: for a leader to be there. NULL: out of memory. */
struct fits *fits_create(uv_loop_t *loop, struct courier *courier, const char *program,
                         int hold_ms);
bool fits_is_full(const struct fits *fits);
/* The request is taken over. done is called once. -1: out of memory, and it is not called. */
int fits_take(struct fits *fits, struct fit_request *request, desk_done *done, void *arg);
/* Nobody waits any more for what was taken with this arg: done is not called. A program that runs
 * comes to its end, since it may have begun a training. */
void fits_withdraw(struct fits *fits, const void *arg);
/* All that wait are refused now. */
void fits_destroy(struct fits *fits); /* accepts NULL */

#endif
