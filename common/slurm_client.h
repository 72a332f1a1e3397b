/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The one module over libslurm that elasticrun and selastic share.
 *
 * Every call here may block for as long as slurmctld does (10 s and more: MessageTimeout and
 * retries): never from a loop, but from a thread (slurm_queue.h). Calls from several threads are
 * safe, and wait for each other.
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
    JOB_KIND_STARTING, /* configuring */
    JOB_KIND_RUNNING,
    JOB_KIND_SUSPENDED,
    JOB_KIND_ENDING, /* completing */
    JOB_KIND_ENDED,
};

struct job_info {
    uint32_t id;
    uint32_t restarts;
    uid_t uid;
    gid_t gid;
    enum job_state_kind state;
    char state_name[32]; /* Slurm's word: RUNNING, PREEMPTED, … */
    char reason[64];     /* why pending, Slurm's word */
    char *name, *partition, *qos, *account, *reservation, *features, *comment, *admin_comment,
        *cluster;
    char *nodes; /* hostlist expression, NULL when none */
    char *excluded;
    char *batch_host;
    char *gres_per_node; /* what each node has, as for sbatch --gres; NULL: none. Of a pending job
                             only what was asked for by node */
    char *work_dir;
    int num_nodes;
    int cpus_per_node;     /* allocated or requested */
    uint64_t mem_per_node; /* MB, 0: not specified */
    uint64_t mem_per_cpu;  /* MB, 0: not specified */
    bool exclusive;
    time_t submit, start, end; /* end: expected or real */
    time_t preempt_time;       /* 0: not being preempted */
    uint32_t time_limit;       /* minutes; UINT32_MAX: unlimited */
    uint32_t time_min;         /* minutes; 0: none */
};

void job_info_free(struct job_info *info); /* accepts NULL */
void job_info_free_list(struct job_info *list, int count);

/* One job. *info is NULL with 0 returned when Slurm does not know it. */
int slurm_client_job(uint32_t job_id, struct job_info **info, struct error *err);

/* All jobs of a user (uid (uid_t)-1: everybody), as an array that job_info_free_list frees. */
int slurm_client_jobs(uid_t uid, struct job_info **list, int *count, struct error *err);

/* Expand a hostlist expression into a NULL-terminated array (free each and the array); empty if it
 * is none. NULL if out of memory. */
char **slurm_client_expand(const char *hostlist);
/* Compress names into a hostlist expression (new string), in the order given. */
char *slurm_client_compress(char *const *names, int count);

/* The address that Slurm uses for a node (NodeAddr), new string; falls back to the name itself. */
char *slurm_client_node_address(const char *node);

/* Cancel a job. Success when it is already gone. */
int slurm_client_cancel(uint32_t job_id, struct error *err);

/* Put a running batch job back into the queue: its processes are ended, and it starts again with another incarnation. */
int slurm_client_requeue(uint32_t job_id, struct error *err);
/* End a job whose batch script cannot do so any more, with that exit status. Its steps, that of the
 * caller among them, are ended. */
int slurm_client_complete(uint32_t job_id, int code, struct error *err);
/* Where the batch script's output goes: a new string. -1: there is no such job, or no such file. */
int slurm_client_stdout(uint32_t job_id, char **path, struct error *err);

/* Let Slurm start one's own pending job for less than its time limit, but for so many minutes at least (TimeMin). */
int slurm_client_set_time_min(uint32_t job_id, uint32_t minutes, struct error *err);

/* Cancel every pending or running extension job of this base incarnation that belongs to uid (by
 * its comment, architecture.md). Returns the number, -1 on error. */
int slurm_client_cancel_extensions(uint32_t base_id, uint32_t restarts, uid_t uid,
                                   struct error *err);

/* A node as Slurm has it configured, and whether a job could be given one more CPU of it now. */
struct slurm_node {
    char *name;
    char *features, *gres; /* NULL: none */
    char **partitions;     /* that are up, as Slurm lists them; NULL-terminated */
    int cpus, sockets, cores, threads;
    uint64_t memory; /* MB */
    bool ready;
    bool reserved;     /* … but only for jobs of a reservation */
    bool completing;   /* not ready because a job has just ended on it */
    const char *state; /* in a few words */
};

/* All nodes, in Slurm's order. */
int slurm_client_nodes(struct slurm_node **list, int *count, struct error *err);
void slurm_node_free_list(struct slurm_node *list, int count);

/* A switch of Slurm's topology. */
struct slurm_switch {
    char *name;
    int level;      /* 0: a leaf */
    char *nodes;    /* below it, a hostlist expression; NULL: none */
    char *switches; /* right below it, likewise */
};

/* All switches; none where Slurm has no tree (TopologyPlugin). */
int slurm_client_switches(struct slurm_switch **list, int *count, struct error *err);
void slurm_switch_free_list(struct slurm_switch *list, int count);

/* uid of SlurmUser and the cluster's name (new string). */
int slurm_client_site(uid_t *slurm_user, char **cluster, struct error *err);

/* Whether Slurm is taking each of these nodes (NULL-terminated) out of service: drained, down, failing. unwell has room for one answer each; a node that Slurm does not know
 * is well. -1: nothing is known, err says why. */
int slurm_client_unwell(char *const *nodes, bool *unwell, struct error *err);

/* Nodes of a partition that could take a job right now: idle, up, not drained, powered down or
 * reserved; planned: also those that another job is going to have, which are free until then. 0 when
 * the partition is down; -1 on error. */
int slurm_client_idle_nodes(const char *partition, bool planned, struct error *err);

#endif
