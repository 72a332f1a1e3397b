/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The leader's life (leader.h): all its parts come together here, and none calls this file. */
#include "agent/leader/act.h"
#include "agent/leader/allocation.h"
#include "agent/leader/costs.h"
#include "agent/leader/decide.h"
#include "agent/leader/end.h"
#include "agent/leader/exclude.h"
#include "agent/leader/extensions.h"
#include "agent/leader/hang_watch.h"
#include "agent/leader/heritage.h"
#include "agent/leader/job_pools.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/leader_roles.h"
#include "agent/leader/leader_service.h"
#include "agent/leader/lease.h"
#include "agent/leader/control_mlflow.h"
#include "agent/leader/market.h"
#include "agent/leader/measures.h"
#include "agent/leader/members.h"
#include "agent/leader/messages.h"
#include "agent/leader/mlflow_run.h"
#include "agent/leader/operators.h"
#include "agent/leader/planning.h"
#include "agent/leader/pmix_publish.h"
#include "agent/leader/pmix_relay.h"
#include "agent/leader/post.h"
#include "agent/leader/report.h"
#include "agent/leader/requeue.h"
#include "agent/leader/role_reports.h"
#include "agent/leader/roles_world.h"
#include "agent/leader/roster.h"
#include "agent/leader/scancel.h"
#include "agent/leader/slurm_look.h"
#include "agent/leader/slurm_update.h"
#include "agent/leader/srun_lost.h"
#include "agent/leader/srun_notify.h"
#include "agent/leader/straggler_watch.h"
#include "agent/leader/submit.h"
#include "agent/leader/world_store.h"

#include <stdlib.h>

#include "agent/listen.h"
#include "client/event_page.h"
#include "common/files.h"
#include "common/log.h"

/* ---- what parts below have done here --------------------------------------------------------- */

/* Of the change of worlds; when the job is over: of its end. */
static void on_deadline(uv_timer_t *timer)
{
    struct leader *leader = timer->data;

    if (leader_has_ended(leader))
        end_look(leader);
    else
        post_fact(leader, (struct change_fact){.kind = CHANGE_FACT_TIME});
}

static void on_roles(struct leader *leader)
{
    roles_world_watch(leader);
    leader_service_look(leader);
}

static const struct leader_above above = {
    .act = act_carry_out,
    .plan = decide_now,
    .deadline = on_deadline,
    .srun_looked = srun_looked,
    .roles_looked = on_roles,
    .mlflow_asks = control_mlflow,
};

/* ---- life ------------------------------------------------------------------------------------ */

static void on_poll(uv_timer_t *timer)
{
    members_awake(timer->data);
    slurm_update_poll(timer->data);
    srun_watch(timer->data);
}

static void destroy_parts(struct leader *leader)
{
    operators_destroy(leader->operators);
    end_destroy(leader->end);
    members_destroy(leader->members);
    srun_destroy(leader->srun);
    srun_lost_destroy(leader->srun_lost);
    requeue_destroy(leader->requeue);
    world_store_destroy(leader->world_store);
    pmix_publish_destroy(leader->pmix_publish);
    straggler_watch_destroy(leader->watches.straggler);
    mlflow_run_destroy(leader->watches.mlflow);
    hang_watch_destroy(leader->watches.hang);
    leader_service_destroy(leader->of_roles.service);
    role_reports_destroy(leader->of_roles.reports);
    leader_roles_destroy(leader->roles);
    report_destroy(leader->report);
    submit_destroy(leader->submit);
    market_destroy(leader->market);
    costs_destroy(leader->costs);
    heritage_destroy(leader->heritage);
    allocation_destroy(leader->allocation);
    exclude_destroy(leader->exclude);
    extensions_destroy(leader->extensions);
    scancel_destroy(leader->scancel);
    slurm_look_destroy(leader->slurm_look);
    job_pools_destroy(leader->job_pools);
    lease_destroy(leader->lease);
    post_destroy(leader->post);
    planning_destroy(leader->planning);
    measures_destroy(leader->watches.measures);
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
        .no_world = leader_roles_any(leader) && !roles_world_any(leader),
        .world_nodes = roles_world_any(leader) ? o->world_nodes : 0,
        .rests = roles_world_rests(leader),
        .whole = roles_world_fits(leader),
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
    report_inherit(leader, o->handover.steps);
    if (o->handover.target > 0)
        allocation_set_user_target(leader, o->handover.target);
    srun_lost_look(leader, false);
    log_info("job %u: the leading node is lost: %s leads now (term %d)", o->job, o->node, o->term);
}

static int create_parts(struct leader *leader, struct error *err)
{
    const struct leader_options *options = leader->options;

    if ((leader->roster = roster_create()) == NULL ||
        (leader->watches.measures = measures_create()) == NULL ||
        (leader->planning = planning_create()) == NULL || (leader->post = post_create()) == NULL ||
        (leader->lease = lease_create(options)) == NULL ||
        (leader->job_pools = job_pools_create(options)) == NULL ||
        (leader->slurm_look = slurm_look_create(options)) == NULL ||
        (leader->scancel = scancel_create()) == NULL ||
        (leader->extensions = extensions_create()) == NULL ||
        (leader->exclude = exclude_create(options)) == NULL ||
        (leader->allocation = allocation_create(options)) == NULL ||
        (leader->heritage = heritage_create()) == NULL ||
        (leader->costs = costs_create()) == NULL || (leader->market = market_create()) == NULL ||
        (leader->submit = submit_create()) == NULL ||
        (leader->report = report_create(leader)) == NULL ||
        (leader->roles = leader_roles_create(options)) == NULL ||
        (leader->of_roles.reports = role_reports_create()) == NULL ||
        (leader->of_roles.service = leader_service_create(options)) == NULL ||
        (leader->watches.hang = hang_watch_create()) == NULL ||
        (leader->watches.straggler = straggler_watch_create()) == NULL ||
        (leader->watches.mlflow = mlflow_run_create()) == NULL ||
        (leader->pmix_publish = pmix_publish_create()) == NULL ||
        (leader->world_store = world_store_create()) == NULL ||
        (leader->requeue = requeue_create()) == NULL ||
        (leader->srun_lost = srun_lost_create()) == NULL ||
        (leader->srun = srun_create(options)) == NULL ||
        (leader->members = members_create()) == NULL || (leader->end = end_create()) == NULL ||
        (leader->operators = operators_create()) == NULL)
        return error_set(err, "out of memory");
    return create_change(leader, err);
}

/* The job's first leader listens; one that follows has been listening. */
static struct link_server *listen_or_take_over(struct leader *leader, struct error *err)
{
    const struct leader_options *options = leader->options;
    struct link_server_options server = listen_options(
        options->conf, options->job, options->restarts, options->state_dir, options->slurm_user);

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
    leader->above = &above;
    leader->exit.done = done;
    leader->exit.arg = arg;
    leader->nobody.leader = leader;
    if (create_parts(leader, err) != 0 ||
        (leader->server = listen_or_take_over(leader, err)) == NULL) {
        destroy_parts(leader);
        free(leader);
        return NULL;
    }
    leader->output = output_create(loop, options->label, NULL, leader);
    leader->open_handles++;
    leader_timer_init(leader, &leader->timers.plan);
    leader_timer_init(leader, &leader->timers.deadline);
    leader_timer_init(leader, &leader->timers.poll);
    members_open(leader);
    leader_roles_open(leader);
    leader_service_open(leader);
    mlflow_run_open(leader);
    pmix_publish_open(leader);
    world_store_open(leader);
    uv_timer_start(&leader->timers.poll, on_poll, 0, 1000);
    leader_set_deadline(leader);
    if (options->server != NULL)
        take_over(leader);
    return leader;
}

void leader_destroy(struct leader *leader)
{
    struct error err = {""};
    bool cleans;

    if (leader == NULL)
        return;
    pmix_relay_end(leader, &leader->relay);
    pmix_relay_end(leader, &leader->next_relay);
    cleans = end_cleans(leader);
    destroy_parts(leader);
    if (cleans && dir_remove(leader->options->state_dir, &err) != 0)
        log_error("job %u: %s", leader->options->job, err.text);
    free(leader);
}
