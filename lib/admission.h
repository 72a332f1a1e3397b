/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which elastic jobs and extension jobs are let in, and what is set on them.
 *
 * Pure: the caller describes the request, the base job and the extensions that exist; the answer
 * is a refusal with one line of reason, or a set of changes. job_submit/elastic is the caller that
 * matters; it runs under slurmctld's locks, so nothing here waits, and nothing costs more than a
 * few strings. */
#ifndef ELASTIC_ADMISSION_H
#define ELASTIC_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/conf.h"
#include "lib/error.h"
#include "lib/policy.h"

#define ADMISSION_UNSET     (-1)      /* the user has not said */
#define ADMISSION_UNLIMITED INT32_MAX /* of a time limit */

/* The job control environment, as Slurm keeps it with a job: NAME=VALUE entries, where Slurm has
 * put "SPANK_" in front of the names of some. */
struct admission_env {
    char *const *entries;
    size_t count;
};

/* The value of an entry, NULL if there is none. */
const char *admission_env_get(const struct admission_env *env, const char *name);

enum admission_role {
    ADMISSION_RIGID,
    ADMISSION_BASE,
    ADMISSION_EXTENSION,
};

/* What a job is, by the options that it was submitted with. */
enum admission_role admission_role(const struct admission_env *env);

/* The base that an extension names, 0 if that is not the id of a job. */
uint32_t admission_base_of(const struct admission_env *env);

/* Does this comment mark an extension ("elastic-extension-of=JOBID.RESTARTS"), and of which job; 0 if
 * that is not the id of a job. Extensions that come without the option are known by it alone. */
bool admission_is_marked(const char *comment);
uint32_t admission_marked_base(const char *comment);

/* The sizes that an elastic job was submitted with. */
int admission_sizes(const struct admission_env *env, struct sizes *sizes, struct error *err);

/* A job as it was asked for. Strings may be NULL and belong to the caller. */
struct admission_request {
    struct admission_env env;
    uint32_t uid;
    bool array, heterogeneous;
    int min_nodes, max_nodes; /* ADMISSION_UNSET each */
    int tasks, tasks_per_node;
    int min_cpus;
    int requeue;    /* 0, 1 or ADMISSION_UNSET */
    int time_limit; /* minutes, ADMISSION_UNSET or ADMISSION_UNLIMITED */
    int time_min;
    int base_left; /* of an extension: nodes that its base still works on, ADMISSION_UNSET: all that Slurm counts */
    const char *comment, *admin_comment, *excluded;
    /* The most nodes that any of its partitions lets a job have; ADMISSION_UNSET: not known. */
    int partition_nodes;
    const char *partition_name; /* the partition that this is, for the message */
};

/* The job that an extension names. */
struct admission_job {
    uint32_t id, restarts, uid;
    bool known, running, pending;
    struct admission_env env;
    const char *name, *nodes, *features;
    int node_count;
    bool whole_nodes; /* --exclusive */
    int minutes_left; /* ADMISSION_UNLIMITED: no time limit */
};

/* The extensions of that job that are pending, or run and are not about to leave: by preemption, or
 * because their time runs out. */
struct admission_siblings {
    int node_count;    /* of all */
    const char *nodes; /* of those that run; NULL: none */
};

enum admission_refusal {
    ADMISSION_REFUSE_VALUE, /* a value that cannot work */
    ADMISSION_REFUSE_NODES,
    ADMISSION_REFUSE_KIND, /* arrays, heterogeneous jobs */
    ADMISSION_REFUSE_JOB,  /* no such base job */
    ADMISSION_REFUSE_OWNER,
    ADMISSION_REFUSE_SITE, /* out of memory, elastic.conf */
};

/* What to set on the job: fields that are ADMISSION_UNSET or NULL stay as they are. Strings are
 * owned. */
struct admission_changes {
    enum admission_refusal refusal; /* why it was refused; only then */
    int min_nodes, max_nodes, tasks, min_cpus;
    int kill_on_node_fail, requeue;
    int time_limit, time_min;
    char *admin_comment, *name, *partition, *qos, *features, *excluded;
};

void admission_changes_clear(struct admission_changes *changes);

/* Decide on an elastic job. 0 with changes set, to be cleared by the caller; -1 with
 * changes->refusal and err set, and nothing to clear. */
int admission_base(const struct conf *conf, const struct admission_request *request,
                   struct admission_changes *changes, struct error *err);

/* Decide on an extension of base, known by the option or by its comment alone. As admission_base. One
 * of the second kind whose base is not elastic for Slurm is let in as it is: its leader decides. */
int admission_extension(const struct conf *conf, const struct admission_request *request,
                        const struct admission_job *base, const struct admission_siblings *siblings,
                        struct admission_changes *changes, struct error *err);

/* May a user change this of an elastic job or an extension? 0 or -1 with err; admins may do
 * anything, ask before. nodes: the number asked for, ADMISSION_UNSET if it is not to change. */
struct admission_update {
    enum admission_role role;
    bool pending;
    int nodes;
    int min;        /* MIN of the base, 0 for an extension */
    bool placement; /* partition, QOS or constraint is to change */
    bool comment;
};
int admission_update(const struct admission_update *update, struct error *err);

#endif
