/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slurm's public headers, and the differences between the versions that we build with.
 *
 * All code of ours that calls libslurm includes this header and no header of Slurm itself, so that
 * no other file has an #if about a version. Here a job is named by its number, as it was in each
 * version before 25.11; since then Slurm wants more and more often the id of a step. */
#ifndef ELASTIC_SLURM_COMPAT_H
#define ELASTIC_SLURM_COMPAT_H

/* slurm.h has a struct of this name, as common/slurm_client.h does; our files write
 * slurm_job_info_t for the one of Slurm. */
#define job_info slurm_job_info
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/slurm_version.h>
#include <slurm/slurmdb.h>
#undef job_info

#define SLURM_SINCE(year, month) (SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(year, month, 0))

#if !SLURM_SINCE(22, 5)
#error "slurm-elastic needs Slurm 22.05 or newer"
#endif

struct error;
struct slurm_switch;

/* A pointer to struct hostlist is hostlist_t in Slurm before 23.11, and hostlist_t * later. */
typedef struct hostlist slurm_hostlist;

/* ---- jobs by number -------------------------------------------------------------------------- */

#if SLURM_SINCE(25, 11)
static inline slurm_step_id_t slurm_compat_step(uint32_t job_id)
{
    slurm_step_id_t step = SLURM_STEP_ID_INITIALIZER;

    step.job_id = job_id;
    return step;
}
#endif

#if SLURM_SINCE(26, 5)
#define SLURM_COMPAT_JOB(job_id) slurm_compat_step(job_id)
#else
#define SLURM_COMPAT_JOB(job_id) (job_id)
#endif

static inline int slurm_compat_load_job(job_info_msg_t **msg, uint32_t job_id, uint16_t flags)
{
    return slurm_load_job(msg, SLURM_COMPAT_JOB(job_id), flags);
}

static inline int slurm_compat_requeue(uint32_t job_id)
{
    return slurm_requeue(SLURM_COMPAT_JOB(job_id), 0);
}

static inline int slurm_compat_kill(uint32_t job_id, uint16_t signal)
{
    return slurm_kill_job(SLURM_COMPAT_JOB(job_id), signal, 0);
}

static inline int slurm_compat_complete(uint32_t job_id, uint32_t status)
{
#if SLURM_SINCE(25, 11)
    slurm_step_id_t step = slurm_compat_step(job_id);

    return slurm_complete_job(&step, status);
#else
    return slurm_complete_job(job_id, status);
#endif
}

/* The job that an update is about, and the job that an answer is about. */
#if SLURM_SINCE(25, 11)
#define SLURM_COMPAT_SET_JOB(desc, id) ((desc)->step_id = slurm_compat_step(id))
#define SLURM_COMPAT_JOB_OF(answer)    ((answer)->step_id.job_id)
#else
#define SLURM_COMPAT_SET_JOB(desc, id) ((desc)->job_id = (id))
#define SLURM_COMPAT_JOB_OF(answer)    ((answer)->job_id)
#endif

/* As slurm_allocate_resources_blocking(), without a function that is told of the wait. */
static inline resource_allocation_response_msg_t *slurm_compat_allocate(const job_desc_msg_t *desc,
                                                                        time_t patience)
{
#if SLURM_SINCE(26, 5)
    return slurm_allocate_resources_blocking(desc, patience, NULL, -1);
#else
    return slurm_allocate_resources_blocking(desc, patience, NULL);
#endif
}

/* ---- what has another name, or none in a header ---------------------------------------------- */

#if SLURM_SINCE(26, 5)
#define slurm_free_ctl_conf slurm_free_conf
#endif

/* Slurm's word for the reason for which a job waits, or has ended: a new string, NULL if there is
 * none. May change the record. */
char *slurm_compat_reason(slurm_job_info_t *job);

/* slurm_client_switches(), between slurm_client_enter() and slurm_client_leave(). */
int slurm_compat_switches(struct slurm_switch **list, int *count, struct error *err);

#endif
