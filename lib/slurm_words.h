/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What Slurm's words mean for a user: why an extension was refused, and why it has ended. Pure. */
#ifndef ELASTIC_SLURM_WORDS_H
#define ELASTIC_SLURM_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* The reason in what sbatch has written to its standard error, "" if it has written nothing.
 *
 * The last line is often an advice, or a general sentence for which a line before it has the
 * reason. */
void slurm_words_refusal(const char *text, char *buf, size_t size);

/* Does it say that the job would have more nodes than MAX? */
bool slurm_words_full(const char *text);

/* Does it say that slurmctld did not answer? Then it may have taken the job all the same. */
bool slurm_words_unsure(const char *text);

/* Why an extension goes, as the end of a sentence: "cancelled". state: Slurm's word for the state
 * without flags such as COMPLETING. overdue: its end has come. NULL: nothing is known. */
/* Is it a reason for waiting that may last, whatever nodes become free? */
bool slurm_words_blocks(const char *reason);
const char *slurm_words_end(const char *state, bool preempted, bool overdue);

/* The value of NAME=VALUE among the words of a line, as scontrol prints them: a new string. NULL:
 * there is none, or it is empty. */
char *slurm_words_value(const char *line, const char *name);

/* The number of NAME in a list of TRES such as "cpu=8,mem=8000M,billing=12"; < 0: there is none. */
double slurm_words_tres(const char *tres, const char *name);

#endif
