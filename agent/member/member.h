/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent half of elasticrun: a member of the job.
 *
 * It joins the leader, runs the workers of each generation on this node, and leaves when the leader
 * says so. */
#ifndef ELASTIC_AGENT_MEMBER_MEMBER_H
#define ELASTIC_AGENT_MEMBER_MEMBER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <uv.h>

#include "agent/handover.h"
#include "lib/conf.h"
#include "lib/error.h"

struct agent_handover;
struct leader_places;
struct member;

/* Calls when a member finds or loses a leader. Each may be NULL. */
struct member_hooks {
    /* The member follows a leader. Returns the port at which agents that lose their leader can
     * reach this one, 0: there is none. */
    int (*followed)(struct member *member, void *arg);
    void (*lost)(void *arg); /* the member has lost its leader */
    void *arg;
};

struct member_options {
    const char *node;       /* Slurm's name of this node */
    uint32_t job, restarts; /* of this member's own job */
    int nodeid;             /* within its step */
    bool base;
    int slots; /* workers on this node */
    uint32_t base_job, base_restarts;
    const char *address; /* of the leader */
    int port;            /* 0: the candidate ports */
    /* Of an extension: the leader that has asked for it, and the successors of that leader. NULL,
     * or no successor: nobody else is to be found. */
    const struct leader_places *leaders;
    /* Of the job, where the leader says its port if it is none of them; NULL: not known. */
    const char *state_dir;
    int connect_timeout_ms;
    const struct conf *conf;
    const char *program; /* path of this elasticrun */
    /* Path of libelastic.so, which an upgrade may change. */
    const char *(*lib)(void);
    const char *python; /* directory of the Python package, NULL: not there */
    const char *shield; /* path of libelastic-shield.so, NULL: not there */
    bool bind;
    bool pmix; /* of a base member: its workers will have a PMIx server */
    /* For the agent that is started in place of this agent, or of the one before; NULL: none is. */
    struct agent_handover *agent_handover;
    struct member_hooks hooks;
};

/* What the leader has said about the job: all that another leader has to know. */
struct member_command {
    char *const *argv, *const *env;
    const char *cwd;
    mode_t umask;
    const char *state_dir, *checkpoint_dir;
    const char *roles;   /* the text of the job's roles (common/roles_file.h); NULL: it has none */
    const char *address; /* of this node, as the leader sees it */
    uid_t slurm_user;
    struct handover handover;
};

/* Join. done(code, arg) is called once, from the loop, when this member has nothing left to do. Its
 * workers are gone then, its files are removed, and the process should exit with code. Everything
 * in options must outlive the member. */
struct member *member_create(uv_loop_t *loop, const struct member_options *options,
                             void (*done)(int code, void *arg), void *arg, struct error *err);

/* Slurm has sent SIGTERM (or the user SIGINT): tell the leader, and leave when it says so. */
void member_leave(struct member *member, const char *reason);

/* A node of this job is drained, or no longer: have the leader ask Slurm. */
void member_notice(struct member *member);

/* Slurm or the user has sent a signal for the training program: hand it to the workers here. */
void member_pass_signal(struct member *member, int number);

/* What the leader has said so far, borrowed. Known once followed() has been called. */
void member_command(const struct member *member, struct member_command *command);
/* The leader that the member follows, or has followed last. address NULL: not known. */
void member_leader(const struct member *member, const char **address, int *port, int *term);

/* followed() may return another port now: tell the leader. */
void member_listens(struct member *member);

/* Free; only after done. */
void member_destroy(struct member *member);

#endif
