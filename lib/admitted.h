/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Extensions that were admitted a moment ago, and that Slurm may not have among its jobs yet.
 *
 * slurmctld asks about a submission before there is a job. So many submissions at once could each
 * be admitted as the only one. Each admission has a number, which the job carries in its
 * AdminComment: only Slurm's administrators and plugins can write there. An admission counts until
 * its job is seen, or until it is too old: then Slurm itself has refused the job.
 *
 * Slurm does not tell which it refuses. So a longer time would keep a leader from asking once more,
 * in another pool, after each refusal. In a shorter time slurmctld may not have come to the job:
 * its scheduler has the locks for two seconds at a time. Where it takes longer than ours, several
 * submissions at once have more nodes than MAX.
 *
 * So many admissions are remembered at most. Where there is no place left, the oldest admission of
 * the user who has most is forgotten. So no user drives out those of users who have fewer. Pure. */
#ifndef ELASTIC_ADMITTED_H
#define ELASTIC_ADMITTED_H

#include <stddef.h>
#include <stdint.h>

#define ADMITTED_MAX      1024    /* admissions that are remembered */
#define ADMITTED_LIMIT    5000000 /* microseconds in which an admission becomes a job */
#define ADMITTED_MARK_MAX 48      /* bytes of a mark */

struct admitted_entry {
    uint64_t number; /* 0: none */
    int64_t since;
    uint32_t uid, base, restarts;
    int pool; /* an index, less than 0: none */
    int nodes;
};

/* All zero: nothing has been admitted. */
struct admitted {
    struct admitted_entry entries[ADMITTED_MAX];
    uint64_t last;
};

/* Remember an extension of a user, a run of a base and a pool; number and since are ignored. now:
 * microseconds of the real time, so that numbers differ from those before a restart of slurmctld.
 * Returns its number. */
uint64_t admitted_add(struct admitted *admitted, const struct admitted_entry *extension,
                      int64_t now);

/* Slurm has the job with that number. 0 is the number of no job. Of a job that was admitted long
 * ago nothing is remembered, and nothing is searched. */
void admitted_seen(struct admitted *admitted, uint64_t number, int64_t now);

/* Nodes of the extensions of this run of a base that have not been seen. */
int64_t admitted_nodes(const struct admitted *admitted, uint32_t base, uint32_t restarts,
                       int64_t now);

/* … of those, the nodes of one pool. */
int64_t admitted_pool_nodes(const struct admitted *admitted, uint32_t base, uint32_t restarts,
                            int pool, int64_t now);

/* The text in an AdminComment that has the number. Returns buf. */
char *admitted_mark(uint64_t number, char *buf, size_t size);

/* The number in an AdminComment, which may be NULL. 0: it has none. */
uint64_t admitted_number(const char *admin_comment);

#endif
