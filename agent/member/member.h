/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent half of elasticrun: joins the leader, runs the workers of each generation on this node, leaves when told. */
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
struct member;

/* What is done where a member has another leader. Each may be NULL. */
struct member_hooks {
    /* The member follows a leader. Returns the port at which it can be reached by others that lose theirs, 0: at none. */
    int (*followed)(struct member *member, void *arg);
    void (*lost)(void *arg); /* … and does not any more */
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
    int connect_timeout_ms;
    const struct conf *conf;
    const char *program; /* path of this elasticrun */
    const char *lib;     /* path of libelastic.so */
    bool bind;
    bool pmix; /* of a base member: its workers will have a PMIx server */
    struct agent_handover *
        agent_handover; /* for the agent that is started in place of this one, or of the one before; NULL: none is */
    struct member_hooks hooks;
};

/* What the leader has said of the job: all that another one has to know. */
struct member_command {
    char *const *argv, *const *env;
    const char *cwd;
    mode_t umask;
    const char *state_dir, *checkpoint_dir;
    const char *address; /* of this node, as the leader sees it */
    uid_t slurm_user;
    struct handover handover;
};

/* Join. done(code, arg) is called once, from the loop, when this member has nothing left to do: its workers are gone, its files removed and
 * the process should exit with code. Everything in options must outlive the member. */
struct member *member_create(uv_loop_t *loop, const struct member_options *options,
                             void (*done)(int code, void *arg), void *arg, struct error *err);

/* Slurm sent SIGTERM (or the user SIGINT): tell the leader and go when it says so. */
void member_leave(struct member *member, const char *reason);

/* Known once followed() has been called; borrowed. */
void member_command(const struct member *member, struct member_command *command);
/* Whom it follows, or did last; address NULL: not known. */
void member_leader(const struct member *member, const char **address, int *port, int *term);

/* followed() may have another answer now: the leader is told. */
void member_listens(struct member *member);

/* Free; only after done. */
void member_destroy(struct member *member);

#endif
