/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent's side of a worker's event page (client/event_page.h; doc/internals/protocol.md, "A
 * worker's event page").
 *
 * The page is a file of the user's own, so that a worker finds it by its name: through an exec,
 * a shell, a container. The worker can therefore truncate it, and then touching the mapping
 * raises SIGBUS in the agent. Every access here survives that: the page counts as unused from
 * then on. */
#ifndef ELASTIC_AGENT_WORKERS_EVENT_H
#define ELASTIC_AGENT_WORKERS_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "client/event_page.h"
#include "lib/error.h"

struct event;

/* What a worker has written on its page. */
struct event_status {
    enum event_page_state state;
    uint64_t step; /* in flight */
    bool told;
    bool waits; /* it has waited for an event, so it is at work even if it makes no steps */
    enum event_gate_place place;
    bool live;        /* it can go on in another world */
    bool finished;    /* it has passed its last boundary; step is 0 then */
    uint32_t slowest; /* milliseconds of its longest step */
    /* An exchange with other workers has failed, and it waits to hear that its world is torn. */
    bool asks;
    uint64_t moved;     /* bytes of its state that it has exchanged with others */
    uint64_t signature; /* of the model that it trains, 0: not said */
    /* Signal that makes a process show its stacks; 0: there is none. The process is stacks_pid. */
    int stacks_signal;
    int stacks_pid;
};

/* What a worker itself has needed for its steps in this world. */
struct event_own {
    uint64_t steps;
    uint64_t microseconds;
};

/* The progress that a worker has reported. */
struct event_progress {
    uint32_t number; /* another number with each report; 0: no report */
    int64_t done;
    int64_t total; /* 0: unknown */
    char unit[EVENT_UNIT_BYTES];
};

struct event_world {
    int generation, rank, size, local_rank, local_size, nodes, attempt;
    /* Milliseconds after which agents notice the loss of a node or worker of the world; 0: not
     * said. */
    int patience_ms;
};

/* Create the file (0600; one of the same name is replaced) and map it. */
struct event *event_create(const char *path, int generation, struct error *err);

/* Unmap; the file stays (event_unlink). NULL is accepted. */
void event_destroy(struct event *event);
void event_unlink(struct event *event);
const char *event_path(const struct event *event);

struct event_status event_read(struct event *event);
/* False: nothing has been reported, or is being reported at this moment, or makes no sense. */
bool event_read_progress(struct event *event, struct event_progress *progress);

/* Zero: it has reported nothing. */
struct event_own event_read_own(struct event *event);

/* The world as this worker is to see it: before it can look. */
void event_set_world(struct event *event, const struct event_world *world);
/* Say what comes after this world: the page of the next world, in the same directory. NULL: the
 * worker is to leave; with save after it has saved a checkpoint for all. */
void event_set_next(struct event *event, const struct event *next, bool save);
/* This world will not go on, for this reason. */
void event_tear(struct event *event, const char *reason);

/* Let the worker wait at its gate (before it is started), and let it go on. */
void event_close_gate(struct event *event);
void event_open_gate(struct event *event);

/* Publish the event and set HOLD. Returns what the worker is committed to: step is the step in
 * flight when HOLD was set. A second call changes nothing: the first event stands. deadline_ms:
 * CLOCK_REALTIME, 0: none. */
struct event_status event_hold(struct event *event, enum event_kind kind, const char *reason,
                               int next_nodes, int64_t deadline_ms);

/* Let a held worker run to this step. */
void event_run_to(struct event *event, uint64_t step);

/* The kind by its name in messages ("grow", "shrink", "fault", "stop"); any other name is
 * EVENT_STOP: all workers are to save and leave. */
enum event_kind event_kind_of(const char *name);

#endif
