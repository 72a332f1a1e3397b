/* SPDX-License-Identifier: GPL-2.0-or-later */
/* To lead a term, two files that can be made only once have to be made (lib/succession.h, doc/takeover.md): the first says who may lead it, and
 * the second, the seal, that this one does. If another one makes that, nobody ever does. */
#ifndef ELASTIC_CLAIM_H
#define ELASTIC_CLAIM_H

#include <stdint.h>

#include <uv.h>

enum claim_what {
    CLAIM_TERM,
    CLAIM_SEAL,
    CLAIM_BOTH, /* one after the other: it leads already */
};

enum claim_result {
    CLAIM_MADE,   /* by us: nobody else has, or ever will */
    CLAIM_LOST,   /* somebody else has made it */
    CLAIM_FAILED, /* not known: it has to be tried again */
};

struct claim;

struct claim_options {
    const char *state_dir; /* of the job, the same one on all nodes */
    uint32_t job, restarts;
    const char *step; /* Slurm's id of the step */
    const char *node; /* this one: file names may be made of it */
    int term;
    enum claim_what what;
};

/* Try to, in a thread: the file system may hang. done() is called from the loop, with one line in why unless it is made. NULL: it cannot even be
 * tried. */
struct claim *claim_begin(uv_loop_t *loop, const struct claim_options *options,
                          void (*done)(enum claim_result result, const char *why, void *arg),
                          void *arg);
/* Nobody wants to know any more: done() is not called. NULL is accepted. */
void claim_forget(struct claim *claim);

#endif
