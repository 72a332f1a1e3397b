/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What elastic jobs have used, from the records of Slurm's accounting: each job as a whole, its
 * runs and its extensions together. Pure.
 *
 * The records come from sacct. A name or comment may have anything in it, lines too. So the fields
 * are separated by a word that nobody can know in advance. */
#ifndef ELASTIC_USAGE_H
#define ELASTIC_USAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"

#define USAGE_NAME_MAX 63
/* The fields of a record, as sacct --format takes them. The first has no line end in it. Times are
 * seconds (SLURM_TIME_FORMAT=%s). */
#define USAGE_FIELDS                                                                               \
    "JobIDRaw,User,Account,Partition,State,Start,ElapsedRaw,NNodes,AllocTRES,AdminComment,"        \
    "Comment,JobName"
#define USAGE_FIELD_COUNT 12
/* The pool of the nodes that a job begins with. */
#define USAGE_BASE "base"

/* What slurmctld knows of a job that has not ended. slurmdbd hears of comments at the end only. */
struct usage_mark {
    uint32_t job;
    const char *admin_comment, *comment; /* NULL: none */
};

/* A job of Slurm that had nodes: a run of the base, or an extension. */
struct usage_span {
    double begin, end; /* Unix time */
    int nodes, part;   /* part: an index in the parts of its job */
};

/* What a job has used of one pool. */
struct usage_part {
    char pool[USAGE_NAME_MAX + 1];
    int jobs;                    /* of Slurm: runs of the base, or extensions */
    double node_s, cpu_s, gpu_s; /* seconds of a node, a CPU, a GPU */
};

struct usage_job {
    uint32_t job; /* the base */
    char user[USAGE_NAME_MAX + 1], account[USAGE_NAME_MAX + 1], partition[USAGE_NAME_MAX + 1];
    char name[USAGE_NAME_MAX + 1]; /* cut where it is longer */
    char state[24]; /* Slurm's word, of the latest run; "" if the base has no record */
    double start;   /* Unix time, of the first that had nodes; 0: none had */
    int runs, extensions;
    double base_s;            /* seconds that it ran */
    struct usage_part *parts; /* that of the base first, the others as they came */
    int part_count;
    struct usage_span *spans; /* in the order of sacct */
    int span_count;
};

struct usage {
    struct usage_job *jobs; /* by number */
    int count;
};

/* Does the text have records of jobs that have not ended, for which marks are needed? */
bool usage_needs_marks(const char *text, const char *separator);

/* Add up the records in text, which sacct has written with this separator, with marks in the order
 * of their jobs. Jobs that are not elastic are left out. -1 with err: the text is not what sacct
 * writes, or memory ran out. */
int usage_read(const char *text, const char *separator, const struct usage_mark *marks,
               size_t mark_count, struct usage *usage, struct error *err);
void usage_clear(struct usage *usage);

/* NULL: it has no record, or is not elastic. */
const struct usage_job *usage_find(const struct usage *usage, uint32_t job);

/* Of all its parts. */
struct usage_part usage_sum(const struct usage_job *job);

/* The fewest and most nodes that it has had at a time, while a run of it was there. Both 0: it has
 * had none. */
void usage_sizes(const struct usage_job *job, int *least, int *most);

#endif
