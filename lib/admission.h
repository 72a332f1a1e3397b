/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which elastic jobs and extension jobs Slurm accepts, and which values it sets on them.
 *
 * Pure: the caller describes the request, the base job and the extensions that exist. The answer is
 * a refusal with one line of reason, or a set of changes. The main caller is job_submit/elastic,
 * which runs under the locks of slurmctld. So nothing here waits, and nothing costs more than a few
 * strings. */
#ifndef ELASTIC_ADMISSION_H
#define ELASTIC_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/conf.h"
#include "lib/error.h"
#include "lib/policy.h"
#include "lib/slots.h"

#define ADMISSION_UNSET     (-1)      /* the user has not said */
#define ADMISSION_UNLIMITED INT32_MAX /* of a time limit */

/* The job control environment, as Slurm keeps it with a job: NAME=VALUE entries. Slurm has put
 * "SPANK_" in front of some of the names. */
struct admission_env {
    char *const *entries;
    size_t count;
};

/* The value of an entry, NULL if there is none among the first ADMISSION_ENV_COUNT. */
const char *admission_env_get(const struct admission_env *env, const char *name);

/* slurmd hands that environment to each prolog and epilog. One that is too large for the kernel
 * keeps these from running, and Slurm drains the node. So this holds for all jobs, rigid ones too.
 * Returns -1 with err set if it is too large. */
#define ADMISSION_ENV_ENTRY ((size_t)96 << 10) /* bytes; the kernel takes 128 KiB */
#define ADMISSION_ENV_ALL   ((size_t)256 << 10)
/* Entries, empty ones too: each question about a job looks at all of them, under slurmctld's
 * locks. Where job_submit/elastic is not used, jobs have as many as they like. */
#define ADMISSION_ENV_COUNT ((size_t)1000)
int admission_check_env(const struct admission_env *env, struct error *err);

enum admission_role {
    ADMISSION_RIGID,
    ADMISSION_BASE,
    ADMISSION_EXTENSION,
};

/* What a job is, by the options that it was submitted with. */
enum admission_role admission_role(const struct admission_env *env);

/* The base that an extension names, 0 if that is not the id of a job. */
uint32_t admission_base_of(const struct admission_env *env);

/* The pool that an extension names; the text may be a list, for one that no leader has submitted.
 * NULL: none. */
const char *admission_pool_of(const struct admission_env *env);

/* How the comment of an extension begins, and the AdminComment of a base. */
#define ADMISSION_MARKER    "elastic-extension-of="
#define ADMISSION_BASE_MARK "elastic="

/* Does this comment mark an extension ("elastic-extension-of=JOBID.RESTARTS")? Of which job? The
 * second function returns 0 if JOBID is not the id of a job. An extension that comes without the
 * option --elastic-extend is known by its comment alone. */
bool admission_is_marked(const char *comment);
uint32_t admission_marked_base(const char *comment);
/* What the AdminComment of an extension says of its base and its pool, which may be NULL. Returns
 * buf. */
#define ADMISSION_NOTE_MAX 160
char *admission_note(uint32_t base, uint32_t restarts, const char *pool, char *buf, size_t size);

/* What a job is, by its options and its comment. */
enum admission_role admission_role_of_job(const struct admission_env *env, const char *comment);

/* The jobs that a job with this --dependency may be merged into, which gives such a job more nodes.
 * A dependency can name several. *id becomes the first of them (0: its text is no number); returns
 * the text behind it, for the next call. NULL: there is none. */
const char *admission_merged_into(const char *dependency, uint32_t *id);

/* The sizes that an elastic job was submitted with. */
int admission_sizes(const struct admission_env *env, struct sizes *sizes, struct error *err);

/* Was the job submitted with --elastic-roles? Its base is as large as Slurm makes it. */
bool admission_has_roles(const struct admission_env *env);

/* The MAX of an elastic job, of its sizes or of its roles; 0: its roles have none. */
int admission_max(const struct admission_env *env, int *max, struct error *err);

/* A job as it was asked for. Strings may be NULL and belong to the caller. */
struct admission_request {
    struct admission_env env;
    uint32_t uid;
    bool array, heterogeneous;
    /* Each of these may be ADMISSION_UNSET. */
    int min_nodes, max_nodes;
    int tasks, tasks_per_node, cpus_per_task;
    int min_cpus;
    /* 0, 1 or ADMISSION_UNSET. */
    int requeue;
    /* Minutes, ADMISSION_UNSET or ADMISSION_UNLIMITED. */
    int time_limit;
    int time_min;
    /* Of an extension: nodes that its base job still works on, as the user says. ADMISSION_UNSET:
     * all nodes that Slurm counts. */
    int base_left;
    const char *comment, *admin_comment, *excluded;
    /* Of the base: its partitions with commas, and its features. */
    const char *partitions, *features;
    /* Seconds since the epoch. */
    double now;
    /* The most nodes that any of its partitions lets a job have; ADMISSION_UNSET: not known. */
    int partition_nodes;
    /* The name of that partition, for the message. */
    const char *partition_name;
    /* The most CPUs and memory that a job may have of a node of its partitions. Without CPUs:
     * neither is known; without memory: that is not. */
    struct slots_size partition_node;
    /* It gets all CPUs and all memory of its nodes. */
    bool whole_nodes;
};

/* The job that an extension names. */
struct admission_job {
    uint32_t id, restarts, uid;
    bool known, running, pending;
    enum admission_role role;
    /* Of an extension: its base. */
    uint32_t extends;
    struct admission_env env;
    const char *name, *nodes, *features;
    int node_count;
    /* Of these nodes, the number that Slurm itself has as down, drained or not responding. */
    int lost;
    /* --exclusive. */
    bool whole_nodes;
    /* ADMISSION_UNLIMITED: no time limit. */
    int minutes_left;
};

/* The extensions of that job that are pending, or that run. One that is about to leave does not
 * count: by preemption, or because its time runs out. */
struct admission_siblings {
    int64_t node_count;
    /* Of these, nodes of extensions that run and that others may replace. */
    int64_t replaced_count;
    /* … nodes of extensions that wait, of pools without fallback. A fallback comes before them. */
    int64_t waiting_count;
    /* … nodes of the pool that the extension would be put into (admission_pool). */
    int64_t pool_count;
    /* Nodes of the extensions that run. NULL: none, or they are not needed
     * (admission_needs_nodes). */
    const char *nodes;
};

enum admission_refusal {
    /* A value that cannot work. */
    ADMISSION_REFUSE_VALUE,
    ADMISSION_REFUSE_NODES,
    /* Arrays, heterogeneous jobs. */
    ADMISSION_REFUSE_KIND,
    /* There is no such base job. */
    ADMISSION_REFUSE_JOB,
    ADMISSION_REFUSE_OWNER,
    /* Out of memory, or elastic.conf is wrong. */
    ADMISSION_REFUSE_SITE,
};

/* What to set on the job: fields that are ADMISSION_UNSET or NULL stay as they are. Strings are
 * owned. */
struct admission_changes {
    /* The reason of a refusal. Without a refusal it means nothing. */
    enum admission_refusal refusal;
    int min_nodes, max_nodes, tasks, min_cpus;
    int kill_on_node_fail, requeue;
    int time_limit, time_min;
    /* Of an extension: the nodes that count against the limits. ADMISSION_UNSET: there is none. */
    int counted;
    /* Slurm is to take as few nodes as it can. */
    bool few_nodes;
    char *admin_comment, *name, *partition, *qos, *features, *excluded;
    /* One line for the user of a job that is accepted. NULL: there is nothing to say. */
    char *warning;
};

void admission_changes_clear(struct admission_changes *changes);

/* Decide on an elastic job. 0 with changes set, to be cleared by the caller; -1 with
 * changes->refusal and err set, and nothing to clear. */
int admission_base(const struct conf *conf, const struct admission_request *request,
                   struct admission_changes *changes, struct error *err);

/* Does an extension of this base have to keep off the nodes of other extensions? */
bool admission_needs_nodes(const struct admission_job *base);

/* So many seconds before the end of an extension its successor is accepted. boot: seconds that its
 * nodes may take to power up, 0 where they are up. A leader asks for it that early. */
int admission_succession(int boot);

/* An extension that runs: seconds that are left of its time (less than 0: it is over), its whole
 * time, admission_succession() of its nodes, and seconds that its base has (INT64_MAX: no limit).
 * Does it no longer count against MAX, so that its successor can come? It does so in the first half
 * of its time: else extensions that live shortly would never count. And it counts once more where
 * Slurm has let it go on (OverTimeLimit). */
bool admission_ends_soon(int64_t left, int64_t life, int succession, int64_t base_left);

/* The index in conf->pools of the pool that an extension with this environment is put into. -1:
 * there is none. An extension of a job that is not elastic for Slurm is put into no pool. */
int admission_pool(const struct conf *conf, const struct admission_env *env,
                   const struct admission_job *base);

/* The same for one of many extensions of that base. pool: admission_pool() of one that names none.
 * The environment of the base is not looked at again. */
int admission_pool_or(const struct conf *conf, const struct admission_env *env,
                      const struct admission_job *base, int pool);

/* The same for an extension whose AdminComment is admission_note(): the pool that it was put
 * into. The comment is short, and no user writes it. */
int admission_pool_noted(const struct conf *conf, const char *admin_comment);

/* Is an extension in this pool (admission_pool()) in one with fallback? May others replace it, and
 * join before it leaves? Where its pool is a fallback, or where its cloud advises to replace its
 * nodes. */
bool admission_is_fallback(const struct conf *conf, int pool);
bool admission_is_replaced(const struct conf *conf, int pool);

/* Decide on an extension of base, as admission_base. The extension is known by the option or by its
 * comment alone. In the second case, the base may not be elastic for Slurm. Then only its leader
 * knows MAX, and the extension is accepted as it is. But all of them together have no more nodes
 * than the site allows as MAX. */
int admission_extension(const struct conf *conf, const struct admission_request *request,
                        const struct admission_job *base, const struct admission_siblings *siblings,
                        struct admission_changes *changes, struct error *err);

/* The most nodes that an extension may get which asks for so many nodes and tasks. 0 or
 * ADMISSION_UNSET: it has not said. */
int admission_most_nodes(int min_nodes, int max_nodes, int tasks);

/* An extension may run for `most` minutes where it is put (ADMISSION_UNLIMITED: any time): it asks
 * for no more. Slurm would refuse it, or let it wait for ever. */
void admission_shorten(const struct admission_request *request, int most,
                       struct admission_changes *changes);

/* What a user wants to change of an elastic job or an extension. */
struct admission_update {
    enum admission_role role;
    bool pending;
    /* The numbers of nodes that the user asks for: the least, the most, and the length of a list.
     * ADMISSION_UNSET: it stays. */
    int min_nodes, max_nodes, listed;
    /* MIN of the base, or the nodes of a base with roles that runs; 0 for an extension. */
    int min;
    /* Partition, QOS or constraint. */
    bool placement;
    /* The new comment. NULL: it stays. */
    const char *comment;
    /* The change would give the nodes of this job to an elastic job or an extension. */
    bool merges;
    /* It is a base with roles. */
    bool roles;
    /* Tasks, or CPUs, GPUs and memory of the whole job: with these an extension could get more
     * nodes. */
    bool needs;
    /* A longer time limit. */
    bool longer;
};

/* May a user make this change of any job? 0, or -1 with err. Administrators may change anything, so
 * the caller does not ask about them. */
int admission_update(const struct admission_update *update, struct error *err);

#endif
