/* SPDX-License-Identifier: GPL-2.0-or-later */
/* To lead a term, a file that can be made only once has to be made (lib/succession.h). */
#ifndef ELASTIC_CLAIM_H
#define ELASTIC_CLAIM_H

#include <stdint.h>

#include <uv.h>

enum claim_result {
    CLAIM_MADE,   /* nobody else leads that term, or ever will */
    CLAIM_LOST,   /* somebody else has claimed it */
    CLAIM_FAILED, /* not known: it has to be tried again */
};

struct claim;

struct claim_options {
    const char *state_dir; /* of the job, the same one on all nodes */
    uint32_t job, restarts;
    const char *step; /* Slurm's id of the step */
    const char *node; /* this one: file names may be made of it */
    int term;
};

/* Try to, in a thread: the file system may hang. done() is called from the loop, with one line in why unless it is made. NULL: it cannot even be
 * tried. */
struct claim *claim_begin(uv_loop_t *loop, const struct claim_options *options,
                          void (*done)(enum claim_result result, const char *why, void *arg),
                          void *arg);
/* Nobody wants to know any more: done() is not called. NULL is accepted. */
void claim_forget(struct claim *claim);

#endif
