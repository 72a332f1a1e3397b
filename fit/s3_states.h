/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The states of a model on S3, of which the repository of the service has copies.
 *
 * A fit claims the number of its state there before it trains, as each writer does. The state comes
 * there when the training has ended: what a killed runner has left is removed first.
 *
 * All functions that return int return 0, or -1 with err. */
#ifndef FIT_S3_STATES_H
#define FIT_S3_STATES_H

#include <stdint.h>

#include "lib/error.h"
#include "state/place.h"

/* The state that counts there, 0: none; and the number for another one. */
int store_look(const char *url, int64_t *latest, int64_t *next, struct error *err);

/* There is a complete state of that number. */
int store_check(const char *url, int64_t number, struct error *err);

/* From now on nobody else writes this number. PLACE_CLASH: somebody does, perhaps this fit. */
enum place_result store_claim(const char *url, int64_t number, struct error *err);

/* Does somebody write that state? */
int store_is_claimed(const char *url, int64_t number, bool *claimed, struct error *err);

/* The repository has a copy of that state. */
int store_fetch(const char *url, int64_t number, const char *place, struct error *err);

/* Write the files of a directory that has a complete.json as that state, and make it the current
 * one. Also if that has been done already. */
int store_push(const char *url, int64_t number, const char *directory, struct error *err);

int store_use(const char *url, int64_t number, struct error *err);

/* Remove the state. With `whole` also if it is complete. */
int store_remove(const char *url, int64_t number, bool whole, struct error *err);

/* So many complete ones stay, and number `own`. */
int store_prune(const char *url, int keep, int64_t own, struct error *err);

#endif
