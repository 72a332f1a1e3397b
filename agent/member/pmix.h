/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The PMIx server of this agent's node: the process elasticrun-pmix (doc/internals/pmix.md).
 *
 * The agent starts it and talks to it. */
#ifndef ELASTIC_AGENT_MEMBER_PMIX_H
#define ELASTIC_AGENT_MEMBER_PMIX_H

#include <json-c/json.h>
#include <uv.h>

#include "lib/error.h"
#include "lib/world.h"

struct pmix;

struct pmix_options {
    const char *program; /* path of elasticrun-pmix */
    const char *node;
    int nodeid;
    const char *job;     /* "12.0" */
    const char *run_dir; /* its files go below */
};

struct pmix_handlers {
    /* Workers of that attempt can be started. env has an array of "NAME=VALUE" for each worker,
     * which its environment needs. NULL: they start without PMIx, for that reason. Called once for
     * each pmix_world(), later. */
    void (*space)(int attempt, json_object *env, const char *reason, void *arg);
    /* For the leader; taken over. */
    void (*send)(json_object *msg, void *arg);
    /* A worker has called PMIx_Abort. */
    void (*abort)(int attempt, int rank, int status, const char *message, void *arg);
    /* A worker has initialised PMIx. */
    void (*joined)(int attempt, int rank, void *arg);
    /* A worker says how it wants to be told to leave: by an event (pmix_alert), or by this signal
     * (0: the usual one). */
    void (*declare)(int attempt, int rank, bool by_event, int signal, void *arg);
    /* A worker has saved all that it wants to save. */
    void (*complete)(int attempt, int rank, void *arg);
    /* A worker has something to say on fd 1 or 2, in whole lines. False: not now. */
    bool (*log)(int attempt, int rank, int fd, const char *text, size_t len, void *arg);
    /* A worker or a tool wants workers of that attempt to be signalled ("control"), or asks for
     * their process ids ("processes"). pmix_answer() is called, now or later. */
    void (*control)(int attempt, json_object *msg, void *arg);
};

/* Start the process. Failures are reported by handlers.space. NULL: out of memory. */
struct pmix *pmix_create(uv_loop_t *loop, const struct pmix_options *options,
                         const struct pmix_handlers *handlers, void *arg);

/* A world whose workers on node index are about to be started. cpus: the CPUs of each worker, NULL:
 * not bound. One world at a time: the next after handlers.space has been called. */
void pmix_world(struct pmix *pmix, const struct world *world, int index, int attempt,
                const char *cwd, char *const *cpus);
/* None of its workers is left. */
void pmix_world_gone(struct pmix *pmix, int attempt);

/* Tell the workers of that attempt by events that they have that many seconds to save and leave,
 * because of a change of that kind. */
void pmix_alert(struct pmix *pmix, int attempt, const char *kind, const char *reason,
                double seconds);

/* Answer the server's question of that number with reply, which is taken over. NULL: nothing to
 * say. */
void pmix_answer(struct pmix *pmix, int attempt, int64_t id, json_object *reply);

/* Handle a message of the leader. False: it is not about PMIx. */
bool pmix_on_message(struct pmix *pmix, const char *type, json_object *msg);

/* End the process and free. gone(arg) is called when nothing of it is left in the loop. */
void pmix_destroy(struct pmix *pmix, void (*gone)(void *arg), void *arg);

#endif
