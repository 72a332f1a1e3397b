/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent's side of a worker's event page (client/event_page.h; architecture.md, "A worker's
 * event page").
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
    bool waits; /* it has waited for an event: a worker that makes no steps is at work as well */
    enum event_gate_place place;
    bool live;        /* it can go on in another world */
    bool finished;    /* it has passed its last boundary; step is 0 then */
    uint32_t slowest; /* milliseconds of its longest step */
    bool asks; /* an exchange with others has failed: it waits for word that its world is torn */
    uint64_t signature; /* of what it trains, 0: not said */
    int stacks_signal;  /* has it show its stacks; 0: none does. Of this process, so it says: */
    int stacks_pid;
};

/* What a worker has reported of its progress. */
struct event_progress {
    uint32_t number; /* another one with each report; 0: none */
    int64_t done;
    int64_t total; /* 0: unknown */
    char unit[EVENT_UNIT_BYTES];
};

struct event_world {
    int generation, rank, size, local_rank, local_size, nodes, attempt;
    int patience_ms; /* in which agents notice that one of the world is lost; 0: not said */
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

/* The world as this worker is to see it: before it can look. */
void event_set_world(struct event *event, const struct event_world *world);
/* What comes after it: the page of the next one, in the same directory; NULL: nothing, leave, with save after a checkpoint. */
void event_set_next(struct event *event, const struct event *next, bool save);
/* This world will not go on, for this reason. */
void event_tear(struct event *event, const char *reason);

/* Let the worker wait at its gate (before it is started), and let it go on. */
void event_close_gate(struct event *event);
void event_open_gate(struct event *event);

/* Publish the event and set HOLD. Returns what the worker is committed to: step is the one in
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
