/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nodes that preempting jobs wait for (waiting.h). */
#include "plugins/select/compat.h"

#include "plugins/select/waiting.h"

#include <time.h>

#include "plugins/select/jobs.h"

#define JOBS_MAX 32  /* that wait at the same time; a new one takes the place of the oldest */
#define NEWS_MAX 300 /* seconds after which a job that Slurm no longer tests is forgotten */

struct entry {
    uint32_t job; /* 0: none */
    time_t noted;
    bitstr_t *nodes;
};

/* Slurm's plugin calls have no cookie. They are made under slurmctld's locks. */
static struct entry entries[JOBS_MAX];

static void drop(struct entry *entry)
{
    if (entry->nodes)
        bit_free(entry->nodes);
    *entry = (struct entry){0};
}

static struct entry *place_for(uint32_t job)
{
    struct entry *oldest = &entries[0];

    for (int i = 0; i < JOBS_MAX; i++) {
        if (entries[i].job == job)
            return &entries[i];
        if (entries[i].noted < oldest->noted)
            oldest = &entries[i];
    }
    return oldest;
}

void waiting_note(const job_record_t *job, bitstr_t *nodes)
{
    struct entry *entry = place_for(job->job_id);

    drop(entry);
    *entry = (struct entry){job->job_id, time(NULL), bit_copy(nodes)};
}

/* Could the job start as soon as its nodes are free? Not one that is held, or that waits for
 * another job, for its time, or for a limit. Slurm looks at that, and writes down the reason, each
 * time before it tests jobs. What the user has just changed counts at once. */
static bool is_eligible(const job_record_t *job)
{
    return IS_JOB_PENDING(job) && job->priority != 0 && !(job->bit_flags & JOB_DEPENDENT) &&
           job->details != NULL && job->details->begin_time <= time(NULL) &&
           (job->state_reason == WAIT_NO_REASON || job->state_reason == WAIT_RESOURCES ||
            job->state_reason == WAIT_PRIORITY);
}

/* The job that still waits for the nodes of this entry. NULL: none does. */
static const job_record_t *waiting_job(const struct entry *entry)
{
    const job_record_t *job = entry->job != 0 ? find_job_record(entry->job) : NULL;

    return job != NULL && is_eligible(job) && time(NULL) - entry->noted < NEWS_MAX ? job : NULL;
}

void waiting_keep_off(const job_record_t *extension, bitstr_t *nodes)
{
    for (int i = 0; i < JOBS_MAX; i++) {
        const job_record_t *job = waiting_job(&entries[i]);

        if (job == NULL || bit_size(entries[i].nodes) != bit_size(nodes)) {
            drop(&entries[i]);
        } else if (jobs_priority(job) > jobs_priority(extension) &&
                   bit_overlap_any(nodes, entries[i].nodes)) {
            debug("select/elastic_cons_tres: JobId=%u keeps off nodes that JobId=%u waits for",
                  extension->job_id, job->job_id);
            bit_and_not(nodes, entries[i].nodes);
        }
    }
}

void waiting_forget(void)
{
    for (int i = 0; i < JOBS_MAX; i++)
        drop(&entries[i]);
}
