/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What follows a failure: how often workers are started again, after which exit status they are not, and which nodes are left out
 * for a while. Pure; times are seconds on one monotonic clock. */
#ifndef ELASTIC_RECOVERY_H
#define ELASTIC_RECOVERY_H

#include <stdbool.h>

#include "lib/error.h"

#define RECOVERY_RESTARTS_MAX 1000000

/* A program that ends with it says that it is of no use to try again (as to HyperPod). */
#define RECOVERY_STATUS_FINAL 93

/* Each time that a node is left out it is for twice as long as before, but for no longer than this, in seconds. */
#define RECOVERY_AVOID_MAX 3600.0

/* So many failures are followed by another start. */
struct budget {
    int restarts;
    int seconds; /* … within any so many seconds; 0: in all */
};

/* "3", or "3/3600". -1: it is neither; the message says what is allowed, the option is the caller's to add. */
int budget_parse(const char *text, struct budget *budget, struct error *err);
/* The same backwards. Returns text. */
char *budget_format(const struct budget *budget, char *text, int size);

/* Is another start of no use after this exit status? 93, and what shells and exec say of a command that cannot be executed: 126, 127. */
bool recovery_is_final(int status);

struct recovery;

/* avoid: for so many seconds a node is left out the first time; 0: none ever is. NULL: out of memory. */
struct recovery *recovery_create(const struct budget *budget, double avoid);
void recovery_destroy(struct recovery *recovery); /* accepts NULL */

/* A failure of workers. True: within the budget. */
bool recovery_count(struct recovery *recovery, double now);
/* How many count now; and so many count as of now, for one who follows another leader and does not know when they were. */
int recovery_counted(struct recovery *recovery, double now);
void recovery_inherit(struct recovery *recovery, int counted, double now);

/* This node was lost, or Slurm says that it is not well: it is left out at once. */
void recovery_lost(struct recovery *recovery, const char *node, double now);
/* A worker on this node was the first to fail, in a world of so many nodes. Where it is the same of several nodes a second time in a row, it is left out. */
void recovery_failed(struct recovery *recovery, const char *node, int nodes, double now);

/* For how many more seconds the node is left out; 0: it is not. */
double recovery_avoids(const struct recovery *recovery, const char *node, double now);
/* The names of all that are, "n3,n7", "" if none: the caller's to free. NULL: out of memory. */
char *recovery_excluded(const struct recovery *recovery, double now);
/* The k-th node that is or has lately been left out, from 0; NULL: there are fewer. */
const char *recovery_suspect(const struct recovery *recovery, int k);
/* Seconds until the first of them is not any more; 0: there is none. */
double recovery_next(const struct recovery *recovery, double now);

#endif
