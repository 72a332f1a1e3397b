/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program of the user that the trainer runs: its output goes to the log of the fit. */
#ifndef FIT_USER_PROGRAM_H
#define FIT_USER_PROGRAM_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/error.h"

struct program {
    char *const *argv;
    char *const *added; /* "K=V", besides the environment of this process */
    const char *log;
    /* Asked again and again: is it to end? */
    bool (*unwanted)(void *arg);
    void *arg;
};

/* Run it to its end, or end it. False: it was ended because it was not wanted any more. Otherwise
 * *code is its exit status (128 and the signal if one has ended it), and why says it in words. */
bool program_run(const struct program *program, int *code, struct error *why);

/* The same in three parts, for a program beside which something else goes on. -1 with why: it has
 * not been started, and *code says so. */
pid_t program_start(const struct program *program, int *code, struct error *why);
bool program_has_ended(pid_t child);
bool program_await(const struct program *program, pid_t child, int *code, struct error *why);

#endif
