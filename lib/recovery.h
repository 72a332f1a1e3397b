/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What follows a failure of workers or nodes. Pure; times are seconds on one monotonic clock.
 *
 * How often workers are started again, after which exit status they are not, and which nodes are
 * left out for a while. */
#ifndef ELASTIC_RECOVERY_H
#define ELASTIC_RECOVERY_H

#include <stdbool.h>

#include "lib/error.h"

#define RECOVERY_RESTARTS_MAX 1000000

/* A program that ends with this status says that another start is of no use (as to HyperPod). */
#define RECOVERY_STATUS_FINAL 93

/* Each time that a node is left out, it is left out twice as long as before, up to this many
 * seconds. */
#define RECOVERY_AVOID_MAX 3600.0

/* This many failures are followed by another start. */
struct budget {
    int restarts;
    int seconds; /* the failures within any so many seconds count; 0: all failures count */
};

/* "3", or "3/3600". -1: the text is neither. The message says what is allowed; the caller adds the
 * option's name. */
int budget_parse(const char *text, struct budget *budget, struct error *err);
/* The text that budget_parse reads. Returns text. */
char *budget_format(const struct budget *budget, char *text, int size);

/* Is another start of no use after this exit status? It is after 93, and after 126 and 127: with
 * these, shells and exec report a command that cannot be executed. */
bool recovery_is_final(int status);

struct recovery;

/* avoid: seconds for which a node is left out the first time; 0: no node is ever left out. NULL:
 * out of memory. */
struct recovery *recovery_create(const struct budget *budget, double avoid);
void recovery_destroy(struct recovery *recovery); /* accepts NULL */

/* Count a failure of workers. True: the budget allows another start. */
bool recovery_count(struct recovery *recovery, double now);
/* The number of failures that count now. A leader that follows another leader does not know when
 * they were: recovery_inherit() makes `counted` failures count from now on. */
int recovery_counted(struct recovery *recovery, double now);
void recovery_inherit(struct recovery *recovery, int counted, double now);

/* This node was lost, or Slurm says that it does not work well: the node is left out at once. */
void recovery_lost(struct recovery *recovery, const char *node, double now);
/* This node is left out for good. */
void recovery_shun(struct recovery *recovery, const char *node, double now);
/* A worker on this node was the first to fail, in a world of `nodes` nodes. A node of several that
 * is the first to fail twice in a row is left out. */
void recovery_failed(struct recovery *recovery, const char *node, int nodes, double now);

/* For how many more seconds the node is left out; 0: it is not; INFINITY: for good. */
double recovery_avoids(const struct recovery *recovery, const char *node, double now);
/* The names of all nodes that are left out, "n3,n7", "" if there are none; the caller frees the
 * text. NULL: out of memory. */
char *recovery_excluded(const struct recovery *recovery, double now);
/* The k-th node that is left out, or has lately been, from 0. NULL: there are fewer. */
const char *recovery_suspect(const struct recovery *recovery, int k);
/* Seconds until the next of these nodes is not left out any more; 0: there is none. */
double recovery_next(const struct recovery *recovery, double now);

#endif
