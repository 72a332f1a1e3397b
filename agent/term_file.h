/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that can be made only once, by which an agent takes a term (doc/internals/takeover.md).
 *
 * To lead a term, an agent has to make two files (lib/succession.h). The first says which agent may
 * lead the term. The second, the seal, says that this agent leads it. If another agent makes the
 * seal, no agent ever leads the term. */
#ifndef ELASTIC_AGENT_TERM_FILE_H
#define ELASTIC_AGENT_TERM_FILE_H

#include <stdint.h>

#include <uv.h>

enum term_file_what {
    TERM_FILE_CLAIM,
    TERM_FILE_SEAL,
    TERM_FILE_BOTH, /* one after the other: the agent leads already */
};

enum term_file_result {
    TERM_FILE_MADE,   /* by this agent: no other agent has made it, or ever will */
    TERM_FILE_LOST,   /* another agent has made it */
    TERM_FILE_FAILED, /* not known: it has to be tried again */
};

struct term_file;

struct term_file_options {
    const char *state_dir; /* of the job, the same on all nodes */
    uint32_t job, restarts;
    const char *step; /* Slurm's id of the step */
    const char *node; /* this node: file names may be made of it */
    int term;
    enum term_file_what what;
};

/* Try to make the files, in a thread: the file system may hang. done() is called from the loop,
 * with one line in why unless the files are made. NULL: nothing could be tried. */
struct term_file *term_file_begin(uv_loop_t *loop, const struct term_file_options *options,
                                  void (*done)(enum term_file_result result, const char *why,
                                               void *arg),
                                  void *arg);
/* The result is not wanted any more: done() is not called. NULL is accepted. */
void term_file_forget(struct term_file *claim);

#endif
