/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The worker's side of its event page (event_page.h; doc/internals/protocol.md, "A worker's event
 * page"). */
#ifndef ELASTIC_CLIENT_EVENT_H
#define ELASTIC_CLIENT_EVENT_H

#include <stdbool.h>

#include "client/elastic.h"
#include "client/event_page.h"

struct event_client;

struct event_client_error {
    char text[512];
};

void event_client_fail(struct event_client_error *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Map the page of this name, which the agent has made. NULL with the reason in err. A page belongs
 * to the first process that opens it, for as long as that process lives: one that this process
 * starts, and that has inherited its environment, is no worker: errno is EBUSY then, and for no
 * other reason. Such a process is guarded against SIGTERM all the same (term_guard.h). */
struct event_client *event_client_open(const char *path, struct event_client_error *err);

const char *event_client_path(const struct event_client *client);

/* Unmap; the file stays. NULL is accepted. */
void event_client_close(struct event_client *client);

/* Forget a mapping, in a forked child, which does not have it. */
void event_client_forget(struct event_client *client);

/* elastic_event_test(), elastic_training(), elastic_generation(). */
int event_client_boundary(struct event_client *client, struct elastic_event *event,
                          struct event_client_error *err);
/* elastic_finish() */
int event_client_finish(struct event_client *client, struct elastic_event *event,
                        struct event_client_error *err);
/* elastic_event_wait() */
int event_client_wait(struct event_client *client, struct elastic_event *event, int timeout_ms,
                      struct event_client_error *err);
void event_client_training(struct event_client *client);
/* Whether a change is under way: a boundary would be held, or has been. */
bool event_client_held(const struct event_client *client);
/* elastic_report_progress(), of good values. Not by two threads at once. */
void event_client_progress(struct event_client *client, int64_t done, int64_t total,
                           const char *unit);
/* elastic_report_step_time(), of good values. Not by two threads at once. */
void event_client_step_time(struct event_client *client, int64_t microseconds);
/* Wait until the gate is open, and remember by which call the worker first passed it. Returns 0 or
 * ELASTIC_ERROR_AGENT. */
int event_client_gate(struct event_client *client, enum event_gate_place passed,
                      struct event_client_error *err);
int event_client_generation(const struct event_client *client);

/* elastic_live(), elastic_model_signature(), elastic_world(): live mode. */
void event_client_live(struct event_client *client);
void event_client_signature(struct event_client *client, uint64_t signature);
/* Boundaries passed in its world. */
uint64_t event_client_step(const struct event_client *client);
/* elastic_moved() */
void event_client_moved(struct event_client *client, uint64_t bytes);

/* elastic_stacks() */
void event_client_stacks(struct event_client *client, int number);
void event_client_world(const struct event_client *client, struct elastic_world *world);

/* Wait until this world is torn. Returns 1 when it is; 0 after timeout_ms (-1: as long as agents
 * take to notice a loss); or an error. */
int event_client_torn(const struct event_client *client, int timeout_ms,
                      struct event_client_error *err);
/* A futex that is 0 until the world is torn. It lives as long as the client. */
_Atomic uint32_t *event_client_torn_word(const struct event_client *client);

/* Wait for what comes after the world of this client. Returns 1 with *next: the client of the next
 * world, or NULL if this worker is to leave, after it has saved if *save is true. Returns 0 after
 * timeout_ms (-1: never), or an error. */
int event_client_next(const struct event_client *client, int timeout_ms, struct event_client **next,
                      bool *save, struct event_client_error *err);

#endif
