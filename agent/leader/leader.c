/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The leader's life, and the deadline of the change of worlds (leader.h). */
#include "agent/leader/act.h"
#include "agent/leader/allocation.h"
#include "agent/leader/decide.h"
#include "agent/leader/exclude.h"
#include "agent/leader/extensions.h"
#include "agent/leader/hang_watch.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/lease.h"
#include "agent/leader/messages.h"
#include "agent/leader/pmix_publish.h"
#include "agent/leader/pmix_relay.h"
#include "agent/leader/report.h"
#include "agent/leader/requeue.h"
#include "agent/leader/roster.h"
#include "agent/leader/slurm_look.h"
#include "agent/leader/srun.h"
#include "agent/leader/submit.h"
#include "agent/leader/world_store.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/event_page.h"
#include "common/log.h"

double leader_now(const struct leader *leader)
{
    return (double)uv_now(leader->loop) / 1000.0;
}

double unix_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

json_object *leader_message(const char *type, int generation)
{
    json_object *msg = json_object_new_object();

    json_object_object_add(msg, "t", json_object_new_string(type));
    if (generation >= 0)
        json_object_object_add(msg, "gen", json_object_new_int(generation));
    return msg;
}

void leader_send(struct leader_member *member, json_object *msg)
{
    if (member->link != NULL)
        link_send(member->link, msg);
    else
        json_object_put(msg);
}

/* ---- the deadline of the change of worlds ---------------------------------------------------- */

static void on_deadline(uv_timer_t *timer)
{
    act_post(timer->data, (struct change_fact){.kind = CHANGE_FACT_TIME});
}

void leader_set_deadline(struct leader *leader)
{
    double due = change_deadline(leader->change), left = due - leader_now(leader);

    if (leader_has_ended(leader))
        return; /* the timer is the end's now */
    if (due == 0)
        uv_timer_stop(&leader->deadline);
    else
        uv_timer_start(&leader->deadline, on_deadline, left > 0 ? (uint64_t)(left * 1000) + 1 : 1,
                       0);
}

bool leader_has_ended(const struct leader *leader)
{
    return change_phase(leader->change) == CHANGE_ENDING;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void on_poll(uv_timer_t *timer)
{
    slurm_look_poll(timer->data);
    srun_watch(timer->data);
}

static void handle_closed(uv_handle_t *handle)
{
    struct leader *leader = handle->data;

    if (--leader->open_handles == 0) {
        leader->done(leader->exit_code, leader->arg);
    }
}

void leader_timer_close(uv_timer_t *timer)
{
    uv_close((uv_handle_t *)timer, handle_closed);
}

static void output_gone(void *arg)
{
    struct leader *leader = arg;

    if (--leader->open_handles == 0) {
        leader->done(leader->exit_code, leader->arg);
    }
}

void leader_close(struct leader *leader)
{
    link_server_destroy(leader->server);
    leader->server = NULL;
    leader_timer_close(&leader->evaluate);
    leader_timer_close(&leader->deadline);
    roster_close(leader);
    leader_timer_close(&leader->poll);
    pmix_publish_close(leader);
    world_store_close(leader);
    output_destroy(leader->output, 2000, output_gone, leader);
    leader->output = NULL;
}

void leader_timer_init(struct leader *leader, uv_timer_t *timer)
{
    uv_timer_init(leader->loop, timer);
    timer->data = leader;
    leader->open_handles++;
}

static void destroy_parts(struct leader *leader)
{
    pmix_publish_destroy(leader->pmix_publish);
    world_store_destroy(leader->world_store);
    lease_destroy(leader->lease);
    srun_destroy(leader->srun);
    srun_lost_destroy(leader->srun_lost);
    requeue_destroy(leader->requeue);
    submit_destroy(leader->submit);
    extensions_destroy(leader->extensions);
    slurm_look_destroy(leader->slurm_look);
    allocation_destroy(leader->allocation);
    report_destroy(leader->report);
    exclude_destroy(leader->exclude);
    hang_watch_destroy(leader->hang_watch);
    change_destroy(leader->change);
    roster_destroy(leader->roster);
}

static int create_change(struct leader *leader, struct error *err)
{
    const struct leader_options *o = leader->options;

    leader->change_options = (struct change_options){
        .job = o->job,
        .policy = o->policy,
        .recovery = exclude_recovery(leader),
        .mode = o->mode == MODE_RESTART ? CHANGE_RESTART
                : o->mode == MODE_LIVE  ? CHANGE_LIVE
                                        : CHANGE_AUTO,
        .base_nodes = o->base_nodes,
        .nodeid = o->nodeid,
        .address = o->address,
        .early_start = o->early_start,
        .newcomer_timeout = o->conf->newcomer_timeout,
        .last_generation = report_last_generation(o),
        .ask = {.plan = decide_plan, .may_act = decide_may_act, .arg = leader},
        .term = o->term,
        .faults = o->handover.faults,
        .step_end = EVENT_STEP_MASK,
    };
    leader->change = change_create(&leader->change_options, leader_now(leader));
    return leader->change != NULL ? 0 : error_set(err, "out of memory");
}

/* This leader follows another one, whose node is lost. */
static void take_over(struct leader *leader)
{
    const struct leader_options *o = leader->options;

    lease_inherit(leader, o->term);
    exclude_inherit(leader, o->handover.counted);
    if (o->handover.target > 0)
        allocation_set_user_target(leader, o->handover.target);
    srun_lost_look(leader, false);
    log_info("job %u: the leading node is lost: %s leads now (term %d)", o->job, o->node, o->term);
}

static int create_parts(struct leader *leader, struct error *err)
{
    const struct leader_options *options = leader->options;

    if ((leader->roster = roster_create()) == NULL ||
        (leader->lease = lease_create(options)) == NULL ||
        (leader->srun = srun_create(options)) == NULL ||
        (leader->srun_lost = srun_lost_create()) == NULL ||
        (leader->requeue = requeue_create()) == NULL ||
        (leader->submit = submit_create()) == NULL ||
        (leader->extensions = extensions_create()) == NULL ||
        (leader->slurm_look = slurm_look_create()) == NULL ||
        (leader->allocation = allocation_create(options)) == NULL ||
        (leader->report = report_create()) == NULL ||
        (leader->exclude = exclude_create(options)) == NULL ||
        (leader->hang_watch = hang_watch_create()) == NULL ||
        (leader->pmix_publish = pmix_publish_create()) == NULL ||
        (leader->world_store = world_store_create()) == NULL)
        return error_set(err, "out of memory");
    return create_change(leader, err);
}

/* The job's first leader listens; one that follows has been listening. */
static struct link_server *listen_or_take_over(struct leader *leader, struct error *err)
{
    const struct leader_options *options = leader->options;
    struct link_server_options server = {
        .job_id = options->job,
        .restarts = options->restarts,
        .munge_socket = options->conf->munge_socket,
        .slurm_user = options->slurm_user,
        .port_first = options->conf->port_first,
        .port_last = options->conf->port_last,
        .state_dir = options->state_dir,
    };

    if (options->server == NULL)
        return link_server_create(leader->loop, &server, &messages_handlers, &leader->nobody, err);
    link_server_lead(options->server, &messages_handlers, &leader->nobody);
    return options->server;
}

struct leader *leader_create(uv_loop_t *loop, const struct leader_options *options,
                             void (*done)(int code, void *arg), void *arg, struct error *err)
{
    struct leader *leader = calloc(1, sizeof(*leader));

    if (leader == NULL) {
        error_set(err, "out of memory");
        return NULL;
    }
    leader->loop = loop;
    leader->options = options;
    leader->done = done;
    leader->arg = arg;
    decide_forget_setback(leader);
    leader->facts_end = &leader->facts;
    leader->nobody.leader = leader;
    if (create_parts(leader, err) != 0 ||
        (leader->server = listen_or_take_over(leader, err)) == NULL) {
        destroy_parts(leader);
        free(leader);
        return NULL;
    }
    leader->output = output_create(loop, options->label, NULL, leader);
    leader->open_handles++;
    leader_timer_init(leader, &leader->evaluate);
    leader_timer_init(leader, &leader->deadline);
    leader_timer_init(leader, &leader->poll);
    roster_open(leader);
    pmix_publish_open(leader);
    world_store_open(leader);
    uv_timer_start(&leader->poll, on_poll, 0, 1000);
    leader_set_deadline(leader);
    if (options->server != NULL)
        take_over(leader);
    return leader;
}

int leader_port(const struct leader *leader)
{
    return link_server_port(leader->server);
}

void leader_destroy(struct leader *leader)
{
    if (leader == NULL)
        return;
    pmix_relay_end(leader, &leader->relay);
    pmix_relay_end(leader, &leader->next_relay);
    destroy_parts(leader);
    free(leader);
}
