/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a grant opens (fit/grant.h), found out before anything is opened. */
#ifndef FIT_GRANT_PLAN_H
#define FIT_GRANT_PLAN_H

#include <stdbool.h>
#include <sys/stat.h>

#include <json-c/json.h>

#include "fit/grant.h"
#include "lib/error.h"

/* How a path is let at. */
enum grant_reach {
    GRANT_PASS,  /* what is below can be reached */
    GRANT_READ,  /* all below it */
    GRANT_WRITE, /* a directory that was made for that */
    GRANT_REACHES
};

/* A path of a plan, or of grant.json: {"path", "reach", "inode", "device", "boot"}. GRANT_REACHES:
 * it is none. */
enum grant_reach grant_reach_of(json_object *one);
/* Is that what was there when it was planned? */
bool grant_is_same(json_object *one, const struct stat *st);
/* Describe that. */
void grant_describe(json_object *one, const struct stat *st);

/* The paths, a new array: what is above others comes before them. NULL with err. home and id: whose
 * it is. */
json_object *grant_plan(const struct home *home, int64_t id, const struct grant_order *order,
                        struct error *err);

#endif
