/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The replicas of this node: what the leader tells of them, and what it hears. */
#ifndef ELASTIC_AGENT_MEMBER_REPLICAS_H
#define ELASTIC_AGENT_MEMBER_REPLICAS_H

#include <stdbool.h>

#include <json-c/json.h>
#include <uv.h>

#include "agent/workers/workers.h"
#include "lib/error.h"

struct replicas;

struct replicas_hooks {
    /* Fill in what all workers of this node have in common. The strings stay. */
    void (*describe)(struct workers_options *options, void *arg);
    /* A message to the leader, which is taken over. */
    void (*send)(json_object *msg, void *arg);
    /* As in struct replica_hooks. */
    void (*output)(const char *name, int stream, int fd, const char *data, size_t len, void *arg);
    void (*output_ended)(int stream, void *arg);
    /* The HTTP interface of this node, which is opened when a role needs it: its URL, and its
     * socket. -1 with err. */
    int (*api)(const char **url, const char **socket, struct error *err, void *arg);
    /* The last replica has ended; comes from the loop. */
    void (*none)(void *arg);
};

/* roles is the text of the job's roles (common/roles_file.h), env the environment that Slurm has
 * given this process; env must outlive the replicas. NULL with err. */
struct replicas *replicas_create(uv_loop_t *loop, const char *roles, char *const *env,
                                 const struct replicas_hooks *hooks, void *arg, struct error *err);
/* Kill what is left, without a word. NULL is accepted. */
void replicas_destroy(struct replicas *all);

/* The path of libelastic-shield.so, which stays the caller's; NULL: it is not there. */
void replicas_set_shield(struct replicas *all, const char *library);

/* The node follows a leader, which knows nothing of the replicas that run here. The leader hears
 * what room there is, and which replicas have part of it. Those that cannot go on under it are
 * killed before. address: of this node, NULL: not known. */
void replicas_welcomed(struct replicas *all, const char *address);

/* Handle a message about replicas. False: it is another message. */
bool replicas_on_message(struct replicas *all, const char *type, json_object *msg);

/* What workers of the world have besides that all workers have, if the world is a role. base: it
 * shares the node with replicas, and has its own GPUs. The strings stay. -1 with err. */
int replicas_describe_world(struct replicas *all, bool base, struct workers_options *options,
                            struct error *err);

bool replicas_any(const struct replicas *all);
/* Ask all tasks to end, kill them after so many seconds, and start no more. */
void replicas_stop(struct replicas *all, int signal, double seconds);

/* As the functions of workers.h. A replica that is started later has its output paused, too. */
void replicas_pause_output(struct replicas *all, bool pause);
void replicas_pass_signal(struct replicas *all, int signal);
void replicas_end_stopped(struct replicas *all, double seconds);
void replicas_forgive_stopped(struct replicas *all);

#endif
