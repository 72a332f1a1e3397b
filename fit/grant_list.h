/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The grants of all fits of this user (fit/grant.h). */
#ifndef FIT_GRANT_LIST_H
#define FIT_GRANT_LIST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <json-c/json.h>

#include "fit/home.h"
#include "lib/error.h"

/* One process at a time changes who has access: it waits for others for a few seconds. What is to
 * be closed in the end; -1 with err, errno EAGAIN: another process takes longer. */
int grant_lock(struct error *err);

/* Call each() for every fit that has a grant.json; all are tried. -1 with the last err. */
int grant_each(int (*each)(const struct home *home, int64_t id, void *arg, struct error *err),
               void *arg, struct error *err);

/* Does the grant of another fit than this one let that user at the path? */
bool grant_is_held(const char *path, uid_t uid, const struct home *home, int64_t id);

#endif
