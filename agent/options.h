/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line of elasticrun: its own options, and the spellings of torchrun. */
#ifndef ELASTIC_OPTIONS_H
#define ELASTIC_OPTIONS_H

#include <stdbool.h>

#include "lib/error.h"
#include "lib/policy.h"

/* How workers get from one world to the next. */
enum worker_mode {
    /* Workers that can go on keep running; the others are started anew. */
    MODE_AUTO,
    /* All workers keep running; the job ends if they cannot. */
    MODE_LIVE,
    /* All workers are started anew. */
    MODE_RESTART,
};

enum nproc_kind { NPROC_DEFAULT, NPROC_NUMBER, NPROC_AUTO, NPROC_GPU, NPROC_CPU };

struct options {
    /* Only what the command line says. */
    struct policy policy;
    /* --elastic-config. NULL: not given. */
    const char *config;
    /* --roles: the job file, which names the programs. NULL: not given. */
    const char *roles;
    /* The text of the job file of `sbatch --elastic-roles`; --roles wins. NULL: there is none. With
     * neither there is one program, argv. */
    const char *roles_text;
    enum nproc_kind nproc_kind;
    int nproc;
    bool label;
    /* NULL: none. */
    const char *fail_pattern;
    /* The scripts around training, with their arguments, ended by NULL. Owned. NULL: none. */
    char **pre_train, **post_train;
    /* … as the command line says. */
    struct {
        const char *pre, *post, *pre_args, *post_args;
    } scripts;
    bool early_start;
    enum worker_mode mode;
    bool pmix;
    bool bind;
    /* Internal: this is the agent of an extension job. */
    bool extension;
    /* NULL: the default. */
    const char *state_dir, *checkpoint_dir;
    /* The command to run, ended by NULL. Owned. NULL: roles or roles_text says what to run. */
    char **argv;
};

enum options_result {
    OPTIONS_RUN,
    /* Help or version was printed. */
    OPTIONS_DONE,
    OPTIONS_ERROR,
};

/* Parse the command line. Strings in options belong to argv. Options of torchrun that elasticrun
 * accepts but does not need are named in a line of the log. */
enum options_result options_parse(struct options *options, int argc, char **argv,
                                  struct error *err);
void options_clear(struct options *options);

#endif
