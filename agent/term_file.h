/* SPDX-License-Identifier: GPL-2.0-or-later */
/* To lead a term, two files that can be made only once have to be made (lib/succession.h, doc/takeover.md): the first says who may lead it, and
 * the second, the seal, that this one does. If another one makes that, nobody ever does. */
#ifndef ELASTIC_AGENT_TERM_FILE_H
#define ELASTIC_AGENT_TERM_FILE_H

#include <stdint.h>

#include <uv.h>

enum term_file_what {
    TERM_FILE_CLAIM,
    TERM_FILE_SEAL,
    TERM_FILE_BOTH, /* one after the other: it leads already */
};

enum term_file_result {
    TERM_FILE_MADE,   /* by us: nobody else has, or ever will */
    TERM_FILE_LOST,   /* somebody else has made it */
    TERM_FILE_FAILED, /* not known: it has to be tried again */
};

struct term_file;

struct term_file_options {
    const char *state_dir; /* of the job, the same one on all nodes */
    uint32_t job, restarts;
    const char *step; /* Slurm's id of the step */
    const char *node; /* this one: file names may be made of it */
    int term;
    enum term_file_what what;
};

/* Try to, in a thread: the file system may hang. done() is called from the loop, with one line in why unless it is made. NULL: it cannot even be
 * tried. */
struct term_file *term_file_begin(uv_loop_t *loop, const struct term_file_options *options,
                                  void (*done)(enum term_file_result result, const char *why,
                                               void *arg),
                                  void *arg);
/* Nobody wants to know any more: done() is not called. NULL is accepted. */
void term_file_forget(struct term_file *claim);

#endif
