/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elasticrun's command line: ours, and torchrun's spellings. */
#ifndef ELASTIC_OPTIONS_H
#define ELASTIC_OPTIONS_H

#include <stdbool.h>

#include "lib/error.h"
#include "lib/policy.h"

/* How workers get from one world to the next. */
enum worker_mode {
    MODE_AUTO,    /* those that can go on do so, others are started anew */
    MODE_LIVE,    /* the job ends if they cannot */
    MODE_RESTART, /* all are started anew */
};

enum nproc_kind { NPROC_DEFAULT, NPROC_NUMBER, NPROC_AUTO, NPROC_GPU, NPROC_CPU };

struct options {
    struct policy policy; /* what the command line says; unset elsewhere */
    const char *config;   /* --elastic-config, NULL */
    enum nproc_kind nproc_kind;
    int nproc;
    bool label;
    const char *fail_pattern; /* NULL: none */
    bool early_start;
    enum worker_mode mode;
    bool pmix;
    bool bind;
    bool extension;                         /* internal: agent of an extension job */
    const char *state_dir, *checkpoint_dir; /* NULL: default */
    char **argv;                            /* the command to run, NULL-terminated, owned */
};

enum options_result { OPTIONS_RUN, OPTIONS_DONE /* help or version was printed */, OPTIONS_ERROR };

/* Parse. Points into argv. Notices about accepted but unused torchrun options are printed as log lines. */
enum options_result options_parse(struct options *options, int argc, char **argv,
                                  struct error *err);
void options_clear(struct options *options);

#endif
