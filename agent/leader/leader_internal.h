/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The leader as its own files see it: what all of them need, and its parts, each of which has a
 * header of its own. */
#ifndef ELASTIC_AGENT_LEADER_LEADER_INTERNAL_H
#define ELASTIC_AGENT_LEADER_LEADER_INTERNAL_H

#include <json-c/json.h>
#include <uv.h>

#include "agent/leader/leader.h"
#include "agent/leader/pmix_world.h"
#include "agent/leader/roster.h"
#include "agent/output.h"
#include "common/link.h"
#include "common/slurm_client.h"
#include "lib/change.h"

/* All that parts below have done by parts above them (README.md); leader.c fills it in. */
struct leader_above {
    /* An action of the change of worlds is to be carried out (act.c). */
    void (*act)(struct leader *leader, const struct change_action *action);
    uv_timer_cb plan;     /* it is time to (decide.c) */
    uv_timer_cb deadline; /* of the change of worlds; at the end: look what is left (leader.c) */
    /* A look for srun is over (srun_notify.c). */
    void (*srun_looked)(struct leader *leader, bool there);
    /* What the roles need may be another thing for the world beside them (roles_world.c), and for
     * the service (leader_service.c). */
    void (*roles_looked)(struct leader *leader);
    /* elastic-mlflow asks what is new after that generation (control_mlflow.c). */
    void (*mlflow_asks)(struct leader *leader, int after);
};

struct leader {
    uv_loop_t *loop;
    const struct leader_options *options;
    const struct leader_above *above;
    struct link_server *server;
    struct link_owner nobody; /* of links on which nobody has joined */
    struct output *output;
    struct {
        uv_timer_t plan;     /* (again) */
        uv_timer_t deadline; /* of the change of worlds; at the end: look what is left */
        uv_timer_t poll;     /* Slurm, srun */
    } timers;
    int open_handles;

    /* Its parts, from the lowest. */
    struct roster *roster;
    struct planning *planning;
    struct post *post;
    struct leader_lease *lease;
    struct job_pools *job_pools;
    struct slurm_look *slurm_look;
    struct scancel *scancel;
    struct extensions *extensions;
    struct exclude *exclude;
    struct allocation *allocation;
    struct costs *costs;
    struct market *market;
    struct heritage *heritage;
    struct submit *submit;
    struct report *report;
    struct leader_roles *roles;
    struct {
        struct role_reports *reports;
        struct leader_service *service;
    } of_roles;
    struct {
        struct measures *measures;
        struct hang_watch *hang;
        struct straggler_watch *straggler;
        struct mlflow_run *mlflow;
    } watches;
    struct pmix_publish *pmix_publish;
    struct world_store *world_store;
    struct requeue *requeue;
    struct srun_lost *srun_lost;
    struct srun *srun;
    struct members *members;
    struct end *end;
    struct operators *operators;

    /* The change of worlds. */
    struct change_options change_options;
    struct change *change;
    struct pmix_relay relay;      /* of the present world */
    struct pmix_relay next_relay; /* of the world that is being prepared */

    struct {
        char size[200], not_more[600];
    } why; /* what the latest plan says */

    struct {
        int code;
        void (*done)(int code, void *arg);
        void *arg;
    } exit;
};

double leader_now(const struct leader *leader);
double unix_now(void);
/* A moment on the leader's clock as Unix time. */
double leader_unix(const struct leader *leader, double at);
json_object *leader_message(const char *type, int generation);
void leader_send(struct leader_member *member, json_object *msg);

/* A timer that a part of the leader owns, and its end: the leader is over when all have ended. */
void leader_timer_init(struct leader *leader, uv_timer_t *timer);
void leader_timer_close(uv_timer_t *timer);
/* The same for what is no timer. */
void leader_handle_gone(struct leader *leader);
/* The deadline of the change of worlds may be another one now. */
void leader_set_deadline(struct leader *leader);
/* Members are being told that the job is over. */
bool leader_has_ended(const struct leader *leader);
/* Called whenever something that the end waits for is over: in so many milliseconds it looks what
 * is left. Without effect before the end. */
void leader_look_at_end(struct leader *leader, int ms);

#endif
