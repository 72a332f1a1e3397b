/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The leader's life: its begin, the deadlines of its phases, its end (leader.h). */
#include "agent/leader/allocation.h"
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

#include <signal.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/log.h"

#define ASSEMBLE_LIMIT 120.0 /* seconds for the base's own members to join */
#define CLOSE_LIMIT    3.0   /* seconds for members to end when the job has ended */
#define END_POLL_MS    200   /* between looks at what the end still waits for */

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

const char *phase_name(enum phase phase)
{
    static const char *const names[] = {"waiting",   "running",   "switching", "switching",
                                        "switching", "switching", "ending"};

    return names[phase];
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

void leader_setback(struct leader *leader)
{
    leader->last_setback = leader_now(leader);
    leader->last_increments = 0;
}

/* ---- phases ---------------------------------------------------------------------------------- */

static void on_deadline(uv_timer_t *timer)
{
    struct leader *leader = timer->data;

    if (leader->phase == PHASE_ENDING) {
        leader_handle_closed(leader);
        return;
    }
    if (!lease_may_act(leader) || takeover_assembles(leader)) {
        leader_restart_deadline(leader, 1.0);
        return;
    }
    if (leader->finish_due) {
        change_finish(leader, leader->finish_code);
        return;
    }
    if (leader->phase != PHASE_WAITING) {
        change_deadline(leader);
        return;
    }
    if (leader->torn && leader->next.world != NULL) {
        leader_restart_deadline(leader,
                                1.0); /* newcomers are starting, who have a limit of their own */
        return;
    }
    log_error("job %u: %s; gave up after %.0f s", leader->options->job,
              leader->why_size[0] ? leader->why_size : "no member has joined",
              leader_now(leader) - leader->phase_since);
    requeue_after_fault(leader);
    if (!abort_end(leader, 1))
        change_finish(leader, 1);
}

void leader_restart_deadline(struct leader *leader, double seconds)
{
    uv_timer_start(&leader->deadline, on_deadline, (uint64_t)(seconds * 1000) + 1, 0);
}

void leader_set_phase(struct leader *leader, enum phase phase, double deadline)
{
    leader->phase = phase;
    leader->phase_since = leader_now(leader);
    leader->killed = false;
    for (int i = 0; i < roster_count(leader); i++)
        roster_at(leader, i)->answered = false;
    if (deadline > 0)
        leader_restart_deadline(leader, deadline);
    else
        uv_timer_stop(&leader->deadline);
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

static bool any_linked(const struct leader *leader)
{
    for (int i = 0; i < roster_count(leader); i++)
        if (roster_at(leader, i)->link != NULL)
            return true;
    return false;
}

/* What the end of the job still waits for, in words. NULL: nothing is left, or it has been waited
 * for as long as it may be. */
static const char *what_is_left(const struct leader *leader)
{
    double since = leader_now(leader) - leader->phase_since;

    if (requeue_asking(leader))
        return "Slurm to put the job back into the queue";
    if (any_linked(leader) && since < CLOSE_LIMIT)
        return "the agents to leave";
    if (srun_is_looked_for(leader))
        return "an answer of srun";
    if (srun_busy(leader) && since < 2 * CLOSE_LIMIT)
        return "srun to be told of lost nodes";
    if ((!submit_cleaned(leader) || submit_busy(leader) || slurm_look_busy(leader)) &&
        since < 4 * CLOSE_LIMIT)
        return "Slurm to answer about extensions";
    return NULL;
}

static void close_all(struct leader *leader)
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

/* Called whenever something of the end is over, and by a timer while something is left. The last
 * step is to tell Slurm that the job has ended, where srun does not. */
void leader_handle_closed(struct leader *leader)
{
    const char *left;

    if (leader->server == NULL)
        return;
    left = what_is_left(leader);
    if (left != NULL && left != leader->end_waits_for)
        log_debug("job %u: the end waits for %s", leader->options->job, left);
    leader->end_waits_for = left;
    if (left != NULL)
        uv_timer_start(&leader->deadline, on_deadline, END_POLL_MS, 0);
    else if (!srun_lost_ends(leader))
        close_all(leader);
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
    roster_destroy(leader->roster);
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
    return 0;
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
    };

    if (options->server == NULL)
        return link_server_create(leader->loop, &server, &messages_handlers, leader, err);
    link_server_lead(options->server, &messages_handlers, leader);
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
    leader->generation_since = leader->last_setback = leader->pause_from = -1;
    leader->stop_code = 128 + SIGTERM;
    leader->last_generation = report_last_generation(options);
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
    leader_set_phase(leader, PHASE_WAITING, ASSEMBLE_LIMIT);
    if (options->server != NULL)
        takeover_begin(leader);
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
    world_destroy(leader->world);
    world_destroy(leader->next.world);
    pmix_relay_end(leader, &leader->relay);
    pmix_relay_end(leader, &leader->next.relay);
    destroy_parts(leader);
    free(leader);
}
