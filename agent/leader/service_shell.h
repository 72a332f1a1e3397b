/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of the leader's side of a service share (leader_service.h). */
#ifndef ELASTIC_AGENT_LEADER_SERVICE_SHELL_H
#define ELASTIC_AGENT_LEADER_SERVICE_SHELL_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <uv.h>

#include "agent/leader/route_waiters.h"
#include "agent/leader/service_store.h"
#include "lib/roles.h"
#include "lib/service.h"
#include "lib/service_gone.h"
#include "lib/service_handover.h"

#define SERVICE_WRITE_PAUSE 1.0 /* seconds between two tries to write a file */

struct fit_desk;
struct fit_runner;
struct model_copies;

enum phase { PHASE_NONE, PHASE_CLAIMS, PHASE_WAITS, PHASE_SERVES, PHASE_HANDED, PHASE_LOST };

/* A router that waits for another table. */
struct waiter {
    TAILQ_ENTRY(waiter) entry;
    struct link *link;
    route_waiters_told *told;
    int64_t after;
    double until;
};

/* The job that has the service next, or had it before (service_next.h). */
struct service_next {
    struct service_handover handover;
    struct service_gone gone;            /* the other job, as Slurm knows it */
    struct service_task *program, *look; /* NULL: none */
    struct service_question *question;   /* to Slurm; NULL: none */
    double looks, asks;                  /* when that is due */
    struct service_seen seen;            /* what the other job has written … */
    double seen_at;                      /* … as it was looked at then */
    bool serves;                         /* the other job's table is out */
    bool asked;                          /* the user wants it now */
    bool stopped;                        /* this job has been told to end */
    uint32_t old;                        /* the job before this one; 0: none */
    double old_end;                      /* … its end (Unix time); 0: never, or not known */
    double claimed; /* this job's claim; of one that has handed the service over: when the other
                       one's table was not out yet */
};

struct leader_service {
    const struct role *role; /* of the first shard; NULL: the job has no service */
    enum phase phase;
    uv_timer_t timer;
    uv_timer_cb on_timer;
    char dir[PATH_MAX], repository[PATH_MAX], job[32];
    int64_t term;
    struct service *service;
    struct service_actions actions; /* that are being carried out … */
    int next;                       /* … from that one on */
    bool running, again;
    struct service_task *task; /* of claim and files; NULL: none */
    struct service_task *scan;
    struct service_task *beat;
    double claims, beats, scans, retries; /* when that is due; 0: now */
    bool scan_copies;                     /* no copies come while this look goes on */
    bool scanned, scan_now, unwritable, unreadable, said_waits;
    bool said_left_out;
    bool flush_found, flushes; /* what the next look finds does not wait; … what this one finds */
    bool ended;                /* … leader.json says so, or is about to */
    struct fit_runner *fit;
    struct fit_desk *desk;
    struct model_copies *copies; /* of a repository on S3: repository is their directory */
    struct service_next next_job;
    json_object *table; /* as routers are told … */
    char *text;         /* … as a text */
    int64_t revision;
    TAILQ_HEAD(, waiter) waiters;
    int waiting;
};

/* The timer comes in so many seconds, at the latest. */
void service_run_in(struct leader *leader, double seconds);
/* A thread's work for this service. NULL: out of memory. */
struct service_task *service_new_task(struct leader *leader, enum service_task_kind kind,
                                      void (*done)(void *owner, struct service_task *task));
/* Begin it; *place is it until its end. */
void service_begin(struct leader *leader, struct service_task *task, struct service_task **place);
/* Another job has claimed the service: it is handed over, or lost. */
void service_taken(struct leader *leader, const char *why);
/* Nothing is changed any more. */
void service_lose(struct leader *leader, const char *why);
/* A file has been written, or not: said once, until it works again. */
void service_note_written(struct leader *leader, const struct service_task *task);

#endif
