/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The only module over libslurm; elasticrun and selastic share it.
 *
 * Every call here may block for as long as slurmctld does (10 s and more: MessageTimeout and
 * retries). So no loop may call it, only a thread (slurm_queue.h); slurm_client_expand and
 * slurm_client_compress never block. Calls from several threads are safe, and wait for each other.
 * libslurm ends the process ("fatal: ...") when it finds no usable slurm.conf. */
#ifndef ELASTIC_SLURM_CLIENT_H
#define ELASTIC_SLURM_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "lib/error.h"

enum job_state_kind {
    JOB_KIND_UNKNOWN, /* Slurm does not know the job (any more) */
    JOB_KIND_PENDING,
    JOB_KIND_BOOTING,  /* its nodes power up */
    JOB_KIND_STARTING, /* configuring */
    JOB_KIND_RUNNING,
    JOB_KIND_SUSPENDED,
    JOB_KIND_ENDING, /* completing */
    JOB_KIND_ENDED,
};

/* What a job has asked for beside nodes and CPUs, as far as it concerns its nodes. */
struct job_request {
    /* MB. At most one of the two per CPU and per GPU is set; with neither, it is per node, and 0
     * means all memory of the node, as for sbatch --mem. */
    uint64_t mem_per_node, mem_per_cpu, mem_per_gpu;
    uint32_t tmp_disk;      /* MB, 0: none */
    uint32_t nice;          /* 0: none, or a higher priority */
    int threads_per_core;   /* 0: not said */
    int core_spec;          /* reserved cores, -1: not said */
    const char *sharing;    /* "--exclusive=user" and the like; NULL: not said, or exclusive */
    const char *gres_flags; /* as for sbatch --gres-flags; NULL: none */
    char *gres_per_node;    /* as for sbatch --gres; NULL: none. Of a pending job only what was
                                * asked for by node */
    char *prefer, *wckey;   /* NULL: none */
};

struct job_info {
    uint32_t id;
    uint32_t restarts;
    uid_t uid;
    gid_t gid;
    enum job_state_kind state;
    char state_name[32];    /* Slurm's word: RUNNING, PREEMPTED, … */
    const char *base_state; /* … without flags: CANCELLED, and not COMPLETING */
    char reason[160];       /* why it is pending; of an extension: why it has ended. Slurm's word */
    char *name, *partition, *qos, *account, *reservation, *features, *comment, *admin_comment;
    char *nodes; /* hostlist expression, NULL when none */
    char *excluded;
    char *batch_host;
    struct job_request request;
    char *work_dir;
    int num_nodes;
    int cpus_per_node; /* allocated or requested */
    double billing;    /* Slurm's, of each of its nodes; < 0: not known */
    bool exclusive;
    time_t submit, start, end; /* end: expected or real */
    time_t deadline;           /* sbatch --deadline; 0: none */
    time_t preempt_time;       /* 0: not being preempted */
    uint32_t time_limit;       /* minutes; UINT32_MAX: unlimited */
    uint32_t time_min;         /* minutes; 0: none */
};

void job_info_free(struct job_info *info); /* accepts NULL */
void job_info_free_list(struct job_info *list, int count);

/* Questions to slurmctld and orders that this process has sent so far, by functions of this file.
 * One may need several RPCs. Never blocks. */
int64_t slurm_client_calls(void);

/* Ask for one job. *info is NULL with 0 returned when Slurm does not know the job. */
int slurm_client_job(uint32_t job_id, struct job_info **info, struct error *err);

/* Ask for all jobs of a user (uid (uid_t)-1: of all users). The array is freed by
 * job_info_free_list. */
int slurm_client_jobs(uid_t uid, struct job_info **list, int *count, struct error *err);

/* What a partition lets its jobs have. */
struct slurm_limits {
    uint32_t minutes;         /* for a job; UINT32_MAX: no limit, or no such partition */
    uint32_t boot_seconds;    /* for a node to power up (ResumeTimeout); 0: no limit */
    uint32_t suspend_seconds; /* that an idle node stays up (SuspendTime); 0: for ever */
    double billing;           /* of a whole node; < 0: the partition has no TRESBillingWeights */
};

int slurm_client_limits(const char *partition, struct slurm_limits *limits, struct error *err);

/* Expand a hostlist expression into a NULL-terminated array of new strings, to be freed with the
 * array. The array is empty if the expression is none. NULL: out of memory. Never blocks. */
char **slurm_client_expand(const char *hostlist);
/* Compress names into a hostlist expression (new string), in the order given. Never blocks. */
char *slurm_client_compress(char *const *names, int count);

/* The address that Slurm uses for a node (NodeAddr), a new string; the name itself if there is
 * none. */
char *slurm_client_node_address(const char *node);

/* The same for many nodes, of which Slurm is asked once. */
struct slurm_addresses;
struct slurm_addresses *slurm_client_addresses(struct error *err); /* NULL: see err */
void slurm_addresses_destroy(struct slurm_addresses *addresses);   /* accepts NULL */
/* A new string; the name itself if Slurm does not know the node. */
char *slurm_addresses_find(const struct slurm_addresses *addresses, const char *node);

/* Cancel a job. Success also when the job is already gone. */
int slurm_client_cancel(uint32_t job_id, struct error *err);

/* Put a running batch job back into the queue: its processes are ended, and the job starts again as
 * another incarnation. */
int slurm_client_requeue(uint32_t job_id, struct error *err);
/* End a job whose batch script cannot end it any more, with that exit status. All steps of the job
 * are ended, with the caller's step. */
int slurm_client_complete(uint32_t job_id, int code, struct error *err);
/* Once srun has heard that a node of its step is lost, does it end with status 1, however well the
 * tasks end? Never blocks. */
bool slurm_client_srun_fails_with_node(void);
/* The file for the output of the batch script: a new string. -1: there is no such job, or no such
 * file. */
int slurm_client_stdout(uint32_t job_id, char **path, struct error *err);

/* Let Slurm start a pending job of this user for less than its time limit, but for at least that
 * many minutes (TimeMin). */
int slurm_client_set_time_min(uint32_t job_id, uint32_t minutes, struct error *err);

/* Set the comment of a job of this user. */
int slurm_client_set_comment(uint32_t job_id, const char *comment, struct error *err);

/* Cancel all pending and running extension jobs of this incarnation of the base that belong to uid.
 * Their comment marks them (doc/admin/pools.md). Returns their number, -1 on error. */
int slurm_client_cancel_extensions(uint32_t base_id, uint32_t restarts, uid_t uid,
                                   struct error *err);

/* Which nodes of a partition are powered up. */
struct slurm_power {
    bool saves;   /* a job that starts can make Slurm power nodes up; else there are no lists */
    time_t as_of; /* what the caller's lists are from, by Slurm's clock; 0: there are none */
    /* NULL-terminated, the caller's (strings_free). asleep: all that are not up, or not for long,
     * also those that Slurm hides. Both NULL: no node has changed since as_of. */
    char **up, **asleep;
};

/* obeyed: select/elastic_cons_tres keeps these extensions off such nodes, where the site has it, as
 * if no node were ever powered up. power->as_of is set by the caller. */
int slurm_client_power(const char *partition, bool obeyed, struct slurm_power *power,
                       struct error *err);
/* A pending job of this user is to stay off some nodes (--exclude), and no longer off others. Other
 * nodes that it excludes stay so. A job that is not pending stays as it is. Both are
 * NULL-terminated. */
int slurm_client_stay_off(uint32_t job_id, char *const *nodes, char *const *no_longer,
                          struct error *err);

/* A node as Slurm has it configured, and whether a job could have one more CPU of it now. */
struct slurm_node {
    char *name;
    char *features, *gres; /* NULL: none */
    char **partitions;     /* partitions that are up, in Slurm's order; NULL-terminated */
    int cpus, sockets, cores, threads;
    uint64_t memory; /* a job could have one more CPU of the node now */
    bool ready;
    bool reserved;     /* `ready` is only for jobs of a reservation */
    bool completing;   /* not ready because a job has just ended on the node */
    const char *state; /* in a few words */
};

/* All nodes, in Slurm's order. */
int slurm_client_nodes(struct slurm_node **list, int *count, struct error *err);
void slurm_node_free_list(struct slurm_node *list, int count);

/* A switch of Slurm's topology. */
struct slurm_switch {
    char *name;
    int level;      /* 0: a leaf */
    char *nodes;    /* hostlist expression of all nodes below; NULL: none */
    char *switches; /* hostlist expression of the switches right below; NULL: none */
};

/* All switches; none where Slurm has no tree (TopologyPlugin). */
int slurm_client_switches(struct slurm_switch **list, int *count, struct error *err);
void slurm_switch_free_list(struct slurm_switch *list, int count);

/* uid of SlurmUser and the cluster's name (new string). */
int slurm_client_site(uid_t *slurm_user, char **cluster, struct error *err);

/* What scontrol or sacctmgr print, as lib/doctor.h reads it. Needs no slurm_queue: each program is
 * killed after 15 s. user: of the association. A new string; NULL with err. */
enum slurm_show {
    SLURM_SHOW_CONFIG,
    SLURM_SHOW_PARTITIONS,
    SLURM_SHOW_QOS,
    SLURM_SHOW_ASSOCIATION
};
char *slurm_client_show(enum slurm_show what, const char *user, struct error *err);

/* Is the user an operator or an administrator of the accounting database (AdminLevel)? slurmctld
 * answers by itself. Where PrivateData has "users" it tells nobody of others: then, and without
 * accounting, nobody is an operator. */
int slurm_client_is_operator(uid_t uid, bool *is_operator, struct error *err);

/* What somebody, such as the daemon of a cloud, has told Slurm of a node that is out of service.
 * The first text of the nodes of this hostlist expression, "" if there is none. Returns how many
 * nodes Slurm was asked for. */
int slurm_client_node_reason(const char *nodes, char *text, size_t size);

/* For each of the nodes (NULL-terminated): is Slurm taking it out of service, as drained, down or
 * failing? unwell has one element for each node. A node that Slurm does not know counts as well.
 * -1: nothing is known, err says why. */
int slurm_client_unwell(char *const *nodes, bool *unwell, struct error *err);
/* The same from Slurm's list of all nodes: one question, whatever their number. *as_of: when the
 * caller's knowledge is from, by Slurm's clock (0: there is none); it is updated. Slurm sends no
 * list if no node has changed since: then *changed is false, and unwell is not set. A node that is
 * not in the list does not count. */
int slurm_client_unwell_since(char *const *nodes, bool *unwell, time_t *as_of, bool *changed,
                              struct error *err);

/* The number of nodes of a partition that could take a job now: idle, up, not drained, powered down
 * or reserved. planned: count also nodes that are free now, but planned for another job. 0 when the
 * partition is down; -1 on error. The answer is remembered: Slurm sends its lists of partitions and
 * nodes only if they have changed since. */
int slurm_client_idle_nodes(const char *partition, bool planned, struct error *err);

#endif
