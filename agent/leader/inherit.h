/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What an extension job does with each option that its base could be submitted with. */
#ifndef ELASTIC_AGENT_LEADER_INHERIT_H
#define ELASTIC_AGENT_LEADER_INHERIT_H

#include <stdbool.h>

struct argv;
struct job_info;

enum inherit_rule {
    INHERIT_BASE,  /* what the base has is asked for */
    INHERIT_WORLD, /* … for the world; replicas of roles have needs of their own */
    INHERIT_OWN,   /* an extension has its own value (extension_argv.c) */
    INHERIT_NONE,  /* left out */
};

struct inherit_option {
    /* Of sbatch, without "--". */
    const char *name;
    enum inherit_rule rule;
    /* Of the first two: the option that the extension is submitted with. NULL: the same. */
    const char *as;
    /* Of the others: the reason. */
    const char *why;
    /* Adds the option as far as the base has it. NULL: another row does. */
    void (*add)(struct argv *argv, const struct job_info *base);
};

/* Ends with a row without a name. */
extern const struct inherit_option inherit_options[];

/* Add all that is inherited: by an extension for the world, or for a role. */
void inherit_add(struct argv *argv, const struct job_info *base, bool world);

#endif
