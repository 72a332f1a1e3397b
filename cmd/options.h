/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options of a program that has commands: elastic-state, elastic-fit. */
#ifndef CMD_OPTIONS_H
#define CMD_OPTIONS_H

#include <getopt.h>

#include "lib/error.h"

struct options_syntax {
    const struct option *list; /* 'h' is --help: help() prints it, and the process ends with 0 */
    void (*help)(void);
    /* One of the list, whose value is in optarg. -1 with err. */
    int (*read)(void *to, int option, struct error *err);
};

/* All that is left of argv, from optind, are words. -1 with err. */
int options_read(int argc, char **argv, const struct options_syntax *syntax, void *to,
                 struct error *err);

#endif
