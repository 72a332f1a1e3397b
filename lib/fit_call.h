/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A server trains because it is asked over HTTP (doc/user/fit.md): what its answers mean. Pure. */
#ifndef ELASTIC_FIT_CALL_H
#define ELASTIC_FIT_CALL_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/error.h"

#define FIT_CALL_PAUSE    1.0  /* seconds between two questions whether it goes on */
#define FIT_CALL_PATIENCE 30.0 /* seconds without any answer to these */

enum fit_call {
    FIT_CALL_DONE,    /* the training has succeeded */
    FIT_CALL_GOES_ON, /* it is to be asked again, by GET */
    FIT_CALL_FAILED,
};

/* An answer. status 0: there was none, or not to its end. asked: by GET, so that the training has
 * been begun by an answer before. silent: seconds since the last answer. With FIT_CALL_FAILED why
 * says the reason, with the first line of the text. */
enum fit_call fit_call_judge(bool asked, int status, const char *text, size_t len, double silent,
                             struct error *why);

#endif
