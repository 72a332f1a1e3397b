/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program that is run for what it prints, within a time and a size. */
#ifndef ELASTIC_COMMON_CAPTURE_H
#define ELASTIC_COMMON_CAPTURE_H

#include <stddef.h>

#include <uv.h>

struct look;

struct look_options {
    const char *program;
    char *const *args; /* with its name first */
    const char *input; /* what it reads: others see arguments; NULL: nothing */
    int limit_ms;
    size_t most; /* bytes */
    /* Called once, from the loop. The text ends with NUL, and is taken over; NULL: it has printed
     * nothing. status: its exit status; -1: it has not come to its end. */
    void (*done)(char *text, size_t size, int status, void *arg);
    void *arg;
};

/* NULL: it cannot be run, which has been said; done is not called. */
struct look *look_begin(uv_loop_t *loop, const struct look_options *options);
/* It is ended, and done is not called. */
void look_cancel(struct look *look);

#endif
