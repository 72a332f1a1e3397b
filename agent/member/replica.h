/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One start of a replica: its tasks on this node. */
#ifndef ELASTIC_AGENT_MEMBER_REPLICA_H
#define ELASTIC_AGENT_MEMBER_REPLICA_H

#include <json-c/json.h>
#include <uv.h>

#include "agent/node_room.h"
#include "agent/workers/workers.h"
#include "lib/error.h"
#include "lib/roles.h"

struct replica;

/* Handlers come from the loop only. */
struct replica_hooks {
    /* A message to the leader, which is taken over. */
    void (*send)(json_object *msg, void *arg);
    /* … which it hears after a while, so that it does not start the replica again at once. */
    void (*send_late)(json_object *msg, void *arg);
    /* Output of a task: stream is its number, which no other task of the job has now, and name what
     * its lines begin with. output_ended() follows when there is no more. */
    void (*output)(const char *name, int stream, int fd, const char *data, size_t len, void *arg);
    void (*output_ended)(int stream, void *arg);
    /* No task is left here. The replica is to be destroyed. */
    void (*drained)(struct replica *replica, void *arg);
};

struct replica_options {
    uv_loop_t *loop;
    const struct role *role;
    struct slots_gang gang; /* what it needs, in place of what the role says */
    const char *owner;      /* the replica that owns it; NULL: none does */
    int owner_port;
    const char *models; /* of a shard: the file with its models; NULL: it is of none … */
    int64_t version;    /* … and its version */
    char *const *run;   /* its command; NULL: that of the role … */
    int64_t program;    /* … and the number of that */
    int64_t id, start;
    const char *name;             /* "collector-3" */
    const struct world *world;    /* the gang */
    int node_index;               /* of this node in it */
    int master_fd;                /* holds its MASTER_PORT, taken over; -1: another node does */
    struct node_room *room;       /* has the GPUs */
    const char *api, *api_socket; /* of a role that has it (lib/role_task.h); NULL: none */
    const char *shared;           /* the job's directory; NULL: none */
    const char *namespace;        /* of compat: di-engine, a string of common; NULL: without */
    const char *address;          /* of this node; NULL: not known */
    const char *shield; /* path of libelastic-shield.so; NULL: Slurm's SIGTERM is theirs, too */
    /* What all workers of this node have in common. Its strings outlive the replica. */
    const struct workers_options *common;
    bool *no_port; /* is set if it cannot be created because a port is missing */
};

/* Choose the ports, take the GPUs, and start the tasks. What options point to is copied, but for
 * role, room and the strings of common, which must outlive the replica. NULL with err: nothing has
 * been started. */
struct replica *replica_create(const struct replica_options *options,
                               const struct replica_hooks *hooks, void *arg, struct error *err);
/* Kill what is left of it, without a word. NULL is accepted. */
void replica_destroy(struct replica *replica);

bool replica_is(const struct replica *replica, int64_t id, int64_t start);
/* Ask its tasks to end, and kill them after so many seconds. */
void replica_drain(struct replica *replica, int signal, double seconds);
/* Every now and then: do its ports belong to another user's program? Then it ends. */
void replica_look(struct replica *replica);
/* The leader does not know it: say nothing of it any more. */
void replica_disown(struct replica *replica);
/* For a new leader: what runs here, as an element of "replicas" in "room" (a new object). NULL: the
 * replica cannot go on under it: it is on other nodes, too, or is ending. */
json_object *replica_describe(const struct replica *replica);
/* … of a leading one all of whose tasks have ended, though nobody has told them to: "result" in
 * "room". The leader before may have died before it heard of that. NULL: it is none. */
json_object *replica_result(const struct replica *replica);

/* As the functions of workers.h. */
void replica_pause_output(struct replica *replica, bool pause);
void replica_pass_signal(struct replica *replica, int signal);
void replica_end_stopped(struct replica *replica, double seconds);
void replica_forgive_stopped(struct replica *replica);

/* The message of that name about a start of a replica, for the leader. */
json_object *replica_message(const char *type, int64_t id, int64_t start);
/* A task has ended, or could not be started. lost: it is not to blame, as if its node were lost. */
json_object *replica_exit_message(int64_t id, int64_t start, int task, int status, bool lost,
                                  const char *text);

#endif
