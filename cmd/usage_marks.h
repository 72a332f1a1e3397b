/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which running jobs are elastic, as slurmctld says: slurmdbd hears of it at the end of a job. */
#ifndef SELASTIC_USAGE_MARKS_H
#define SELASTIC_USAGE_MARKS_H

#include <sys/types.h>

#include "common/slurm_client.h"
#include "lib/usage.h"

struct usage_marks {
    struct job_info *jobs; /* the comments are theirs */
    int job_count;
    struct usage_mark *list; /* in the order of jobs */
    size_t count;
};

/* Ask for the jobs of a user ((uid_t)-1: of all). -1 with err also if slurmctld does not answer in
 * time. A thread may then still wait for it, until the program ends. Once in a program. */
int usage_marks_ask(uid_t uid, struct usage_marks *marks, struct error *err);
/* A job that has begun may be seconds late in the accounting: slurmctld tells slurmdbd of it with
 * others. Add what is missing in the records of sacct, as sacct would write it, but for GPUs. Only
 * jobs of that account (NULL: any), and with alive only such as have not ended. A new string. */
char *usage_marks_add(const char *records, const char *separator, const struct usage_marks *marks,
                      const char *account, bool alive);
void usage_marks_clear(struct usage_marks *marks);

#endif
