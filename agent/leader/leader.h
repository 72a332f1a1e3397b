/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The leader half of elasticrun: it owns the generation, asks Slurm for extensions, and decides who
 * takes part. */
#ifndef ELASTIC_AGENT_LEADER_LEADER_H
#define ELASTIC_AGENT_LEADER_LEADER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <uv.h>

#include "agent/handover.h"
#include "agent/options.h"
#include "lib/conf.h"
#include "lib/error.h"
#include "lib/policy.h"

struct leader;
struct link;
struct link_server;

struct leader_options {
    uint32_t job, restarts; /* of the base */
    const struct conf *conf;
    const struct policy *policy; /* merged and complete */
    const struct roles *roles;   /* of the job file; NULL: the job has none */
    const char *roles_text;      /* … as it travels (roles_text()) */
    char *const *argv;           /* the user's command */
    const char *cwd;
    mode_t umask;
    const char *address;                    /* by which members reach this node */
    const char *program;                    /* path of elasticrun */
    const char *state_dir, *checkpoint_dir; /* exist */
    bool state_dir_named;                   /* by the user: it is not ours to remove */
    const char *user;
    uid_t slurm_user;
    char *const *env; /* the user's, as the step has got it */
    const char *step; /* Slurm's id of it */
    const char *node; /* Slurm's name of this node */
    int nodeid;       /* … and its number in the step */
    int base_nodes;   /* nodes of the base's step */
    int world_nodes;  /* … with which the world begins; 0: the roles have no world */
    int slots;        /* workers per node */
    bool label;
    const char *fail_pattern;                   /* NULL: none */
    char *const *pre_train, *const *post_train; /* argv of scripts around training; NULL: none */
    enum worker_mode mode;
    bool contained;   /* elasticrun runs in a container; an extension's would not */
    bool pmix;        /* members have a PMIx server for their workers */
    bool early_start; /* of the next world's workers, where the script has a gate */
    /* Of one that follows another leader. */
    struct link_server *server; /* where its voters are; taken over; NULL: the job's first leader */
    int term;
    struct handover handover;
};

/* Listen and wait for the base's members. done(code, arg) is called once, from the loop, when the
 * job has ended, all members have been told, and no extension is left that the leader knows of. */
struct leader *leader_create(uv_loop_t *loop, const struct leader_options *options,
                             void (*done)(int code, void *arg), void *arg, struct error *err);
int leader_port(const struct leader *leader);
/* A voter's link, which link_server_lead() is still to be called for, and what it has said. */
void leader_adopt(struct leader *leader, struct link *link, json_object *said);

/* Free; only after done. */
void leader_destroy(struct leader *leader);

#endif
