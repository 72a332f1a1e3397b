/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which fit is meant, and what there is to say about it. */
#ifndef FIT_FIT_SHOW_H
#define FIT_FIT_SHOW_H

#include "fit/fit_command.h"
#include "fit/home.h"

/* *id 0 becomes the latest. -1 with err: there is no such fit. */
int look_find(const struct home *home, int64_t *id, struct error *err);
/* Print arguments->id. */
int look_print(const struct fit_arguments *arguments, const struct home *home, struct error *err);

#endif
