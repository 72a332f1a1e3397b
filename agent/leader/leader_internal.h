/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The leader as its own files see it: what all of them need, and its parts, each of which has a
 * header of its own. */
#ifndef ELASTIC_AGENT_LEADER_LEADER_INTERNAL_H
#define ELASTIC_AGENT_LEADER_LEADER_INTERNAL_H

#include <json-c/json.h>
#include <uv.h>

#include "agent/leader/leader.h"
#include "agent/leader/pmix_relay.h"
#include "agent/leader/roster.h"
#include "agent/output.h"
#include "common/link.h"
#include "common/slurm_client.h"
#include "lib/change.h"

struct waiting_fact;

struct leader {
    uv_loop_t *loop;
    const struct leader_options *options;
    struct link_server *server;
    struct link_owner nobody; /* of links on which nobody has joined */
    struct output *output;
    uv_timer_t evaluate; /* plan (again) */
    uv_timer_t deadline; /* of the change of worlds; at the end: look what is left */
    uv_timer_t poll;     /* Slurm, srun */
    int open_handles;

    /* Its parts. */
    struct roster *roster;
    struct leader_lease *lease;
    struct srun *srun;
    struct srun_lost *srun_lost;
    struct requeue *requeue;
    struct submit *submit;
    struct extensions *extensions;
    struct slurm_look *slurm_look;
    struct allocation *allocation;
    struct report *report;
    struct exclude *exclude;
    struct hang_watch *hang_watch;
    struct pmix_publish *pmix_publish;
    struct world_store *world_store;

    /* The change of worlds (act.c). */
    struct change_options change_options;
    struct change *change;
    bool acting;                /* actions are being carried out */
    struct waiting_fact *facts; /* posted meanwhile, in order */
    struct waiting_fact **facts_end;
    struct pmix_relay relay;      /* of the present world */
    struct pmix_relay next_relay; /* of the world that is being prepared */

    /* The plan (decide.c). */
    double planned_at;   /* when it was last asked for */
    double last_setback; /* since then growth waits; < 0: it does not */
    int last_increments; /* of the last extension that was asked for */
    char why_size[200], why_not_more[240];

    /* The end (end.c). */
    double end_since;
    const char *end_waits_for; /* in words; NULL: nothing has been waited for yet */
    int exit_code;
    void (*done)(int code, void *arg);
    void *arg;
};

double leader_now(const struct leader *leader);
double unix_now(void);
json_object *leader_message(const char *type, int generation);
void leader_send(struct leader_member *member, json_object *msg);

/* A timer that a part of the leader owns, and its end: the leader is over when all have ended. */
void leader_timer_init(struct leader *leader, uv_timer_t *timer);
void leader_timer_close(uv_timer_t *timer);
/* The deadline of the change of worlds may be another one now. */
void leader_set_deadline(struct leader *leader);
/* Members are being told that the job is over. */
bool leader_has_ended(const struct leader *leader);
/* Nothing is left: close everything. */
void leader_close(struct leader *leader);

#endif
