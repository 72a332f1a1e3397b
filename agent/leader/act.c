/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The actions of the change of worlds become messages and calls (act.h). What is done here may post
 * facts, which wait until all actions have been carried out (post.c). */
#include <string.h>

#include "agent/leader/act.h"
#include "agent/leader/allocation.h"
#include "agent/leader/costs.h"
#include "agent/leader/end.h"
#include "agent/leader/extensions.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/members.h"
#include "agent/leader/mlflow_run.h"
#include "agent/leader/planning.h"
#include "agent/leader/pmix_relay.h"
#include "agent/leader/post.h"
#include "agent/leader/promote.h"
#include "agent/leader/report.h"
#include "agent/leader/requeue.h"
#include "agent/leader/roles_world.h"
#include "agent/leader/roster.h"
#include "agent/leader/world_store.h"
#include "client/event_page.h"
#include "common/log.h"

/* ---- messages about worlds ------------------------------------------------------------------- */

/* Tell the agent of the node at that place to start the world's workers: early ("prepare"), or
 * because the world begins ("start"). */
static json_object *world_message(const struct leader *leader, const char *type,
                                  const struct world *world, int place, int attempt)
{
    json_object *msg = world_to_json(world);

    json_object_object_add(msg, "t", json_object_new_string(type));
    json_object_object_add(msg, "node_index", json_object_new_int(place));
    json_object_object_add(msg, "attempt", json_object_new_int(attempt));
    mlflow_run_add(leader, msg);
    return msg;
}

static json_object *live_message(const struct leader *leader, const char *type,
                                 const struct world *world, int place, int attempt)
{
    json_object *msg = world_message(leader, type, world, place, attempt);

    json_object_object_add(msg, "live", json_object_new_boolean(true));
    return msg;
}

static void send_prepare(struct leader *leader, struct leader_member *m,
                         const struct change_action *action)
{
    const struct world *world = change_world_of(leader->change, action->number);

    if (world == NULL || m->part->next_place < 0)
        return; /* it has been given up by the same fact */
    leader_send(m,
                action->flag
                    ? live_message(leader, "prepare", world, m->part->next_place, action->number)
                    : world_message(leader, "prepare", world, m->part->next_place, action->number));
}

static void send_attempt(struct leader *leader, struct leader_member *m,
                         const struct change_action *action)
{
    json_object *msg = leader_message(action->kind == CHANGE_RESERVE ? "reserve" : "discard",
                                      action->generation);

    (void)leader;
    json_object_object_add(msg, "attempt", json_object_new_int(action->number));
    leader_send(m, msg);
}

static void send_start(struct leader *leader, struct leader_member *m,
                       const struct change_action *action)
{
    const struct world *world = change_world_of(leader->change, action->number);
    json_object *msg;

    if (world == NULL || m->part->place < 0)
        return;
    if (action->kind == CHANGE_ENTER) {
        msg = live_message(leader, "start", world, m->part->place, action->number);
        json_object_object_add(msg, "started", json_object_new_int(action->started));
    } else {
        msg = world_message(leader, "start", world, m->part->place, action->number);
        json_object_object_add(msg, "gate", json_object_new_boolean(action->flag));
    }
    leader_send(m, msg);
}

static json_object *leave_message(bool with_save, bool save)
{
    json_object *next = json_object_new_object();

    json_object_object_add(next, "leave", json_object_new_boolean(true));
    if (with_save)
        json_object_object_add(next, "save", json_object_new_boolean(save));
    return next;
}

/* The present world ends with this step, if that is one that workers can come to. */
static void note_last_step(struct leader *leader, const struct change_action *action)
{
    if (action->step < EVENT_STEP_MASK)
        report_step(leader, action->step);
}

/* To the next world, or out of the present one; before that, if a step is named, to that step. */
static void send_next(struct leader *leader, struct leader_member *m,
                      const struct change_action *action)
{
    json_object *msg = leader_message(action->kind == CHANGE_RUN_TO_NEXT ? "run_to" : "next",
                                      action->generation);
    const struct world *world = change_world_of(leader->change, action->number);
    bool stays = world != NULL && m->part->place >= 0;

    if (action->kind == CHANGE_RUN_TO_NEXT) /* also to step 0, of a world that has made none */
        json_object_object_add(msg, "step", json_object_new_int64((int64_t)action->step));
    note_last_step(leader, action);
    json_object_object_add(msg, "next",
                           stays
                               ? live_message(leader, "next", world, m->part->place, action->number)
                               : leave_message(false, false));
    leader_send(m, msg);
}

static void send_leave(struct leader *leader, struct leader_member *m,
                       const struct change_action *action)
{
    json_object *msg = leader_message("next", action->generation);

    (void)leader;
    json_object_object_add(msg, "next", leave_message(true, action->flag));
    leader_send(m, msg);
}

/* ---- messages about the present world -------------------------------------------------------- */

static void send_open(struct leader *leader, struct leader_member *m,
                      const struct change_action *action)
{
    (void)leader;
    leader_send(m, leader_message("open", action->generation));
}

static void send_hold(struct leader *leader, struct leader_member *m,
                      const struct change_action *action)
{
    json_object *msg = leader_message("hold", action->generation);

    json_object_object_add(msg, "kind", json_object_new_string(change_kind(leader->change)));
    json_object_object_add(msg, "reason", json_object_new_string(change_reason(leader->change)));
    json_object_object_add(msg, "nodes", json_object_new_int(action->number));
    json_object_object_add(msg, "deadline", json_object_new_double(action->seconds));
    leader_send(m, msg);
}

static void send_run_to(struct leader *leader, struct leader_member *m,
                        const struct change_action *action)
{
    json_object *msg = leader_message("run_to", action->generation);

    note_last_step(leader, action);
    json_object_object_add(msg, "step", json_object_new_int64((int64_t)action->step));
    leader_send(m, msg);
}

static void send_abort(struct leader *leader, struct leader_member *m,
                       const struct change_action *action)
{
    json_object *msg = leader_message("torn", action->generation);

    json_object_object_add(msg, "reason", json_object_new_string(change_reason(leader->change)));
    leader_send(m, msg);
}

static void send_signal(struct leader *leader, struct leader_member *m,
                        const struct change_action *action)
{
    json_object *msg = leader_message("stop", action->generation);

    json_object_object_add(msg, "signal", json_object_new_int(action->number));
    json_object_object_add(msg, "grace", json_object_new_double(action->seconds));
    json_object_object_add(msg, "notice", json_object_new_boolean(action->flag));
    if (action->flag) {
        json_object_object_add(msg, "kind", json_object_new_string(change_kind(leader->change)));
        json_object_object_add(msg, "reason",
                               json_object_new_string(change_reason(leader->change)));
    }
    leader_send(m, msg);
}

/* ---- what is done to members ----------------------------------------------------------------- */

static void welcome(struct leader *leader, struct leader_member *m,
                    const struct change_action *action)
{
    m->part = change_member(leader->change, m->id);
    members_welcome(leader, m, action->flag);
}

static void send_release(struct leader *leader, struct leader_member *m,
                         const struct change_action *action)
{
    (void)leader;
    members_send_release(m, action->text);
}

static void lose(struct leader *leader, struct leader_member *m, const struct change_action *action)
{
    members_lose(leader, m, action->text);
}

/* ---- what the leader does itself ------------------------------------------------------------- */

static void relay(struct leader *leader, const struct change_action *action)
{
    const struct world *world = change_world_of(leader->change, action->number);

    if (world != NULL && pmix_relay_begin(leader, &leader->next_relay, world, action->number) != 0)
        log_error("job %u: out of memory", leader->options->job);
}

static void relay_end(struct leader *leader)
{
    pmix_relay_end(leader, &leader->next_relay);
}

static void relay_taken(struct leader *leader, const struct change_action *action)
{
    const struct world *world = change_world_of(leader->change, action->number);

    if (world != NULL && pmix_relay_begin(leader, &leader->relay, world, action->number) != 0)
        log_error("job %u: out of memory", leader->options->job);
}

static void store_end(struct leader *leader)
{
    world_store_end(leader, &leader->relay);
}

/* The pool of each node of the world (report.h). NULL: memory was not there. */
static char **pools_of_world(struct leader *leader)
{
    const struct world *world = change_world(leader->change);
    char **pools = calloc((size_t)world->node_count + 1, sizeof(*pools));

    for (int place = 0; pools != NULL && place < world->node_count; place++) {
        const char *pool = "-";

        for (int i = 0; i < roster_count(leader); i++) {
            const struct leader_member *m = roster_at(leader, i);
            const struct extension *ext;

            if (m->part->place != place)
                continue;
            ext = m->part->base ? NULL : extensions_find(leader, m->part->job);
            pool = m->part->base ? "" : ext != NULL && ext->pool != NULL ? ext->pool->name : "-";
        }
        pools[place] = strdup(pool);
    }
    return pools;
}

static void begin_world(struct leader *leader, const struct change_action *action)
{
    pmix_relay_end(leader, &leader->relay);
    leader->relay = leader->next_relay;
    leader->next_relay = (struct pmix_relay){0};
    report_generation(leader, action->seconds, costs_total(leader), pools_of_world(leader));
    mlflow_run_news(leader);
    uv_update_time(leader->loop);
    post_fact(leader, (struct change_fact){.kind = CHANGE_FACT_WRITTEN});
}

static void stepped(struct leader *leader, const struct change_action *action)
{
    report_stepping(leader, action->flag);
}

static void decide(struct leader *leader, const struct change_action *action)
{
    planning_later(leader, action->seconds);
}

static void finish(struct leader *leader, const struct change_action *action)
{
    end_begin(leader, action->number);
}

static void world_over(struct leader *leader, const struct change_action *action)
{
    roles_world_over(leader, action->number);
}

/* The end of a world that does not lead is not the job's. */
static void requeue_after_fault_of_world(struct leader *leader)
{
    if (!roles_world_any(leader) || roles_world_leads(leader))
        requeue_after_fault(leader);
}

static void abandon(struct leader *leader, const struct change_action *action)
{
    end_without(leader, action->number);
}

static void say(struct leader *leader, const struct change_action *action)
{
    log_info("job %u: %s", leader->options->job, action->text);
}

static void say_error(struct leader *leader, const struct change_action *action)
{
    log_error("job %u: %s", leader->options->job, action->text);
}

static void say_debug(struct leader *leader, const struct change_action *action)
{
    log_debug("job %u: %s", leader->options->job, action->text);
}

/* ---- the table ------------------------------------------------------------------------------- */

struct handler {
    /* One of these. */
    void (*member)(struct leader *leader, struct leader_member *m,
                   const struct change_action *action);
    void (*job)(struct leader *leader, const struct change_action *action);
    void (*call)(struct leader *leader);
};

/* clang-format off */
static const struct handler handlers[] = {
    /* members */
    [CHANGE_WELCOME]      = {.member = welcome},
    [CHANGE_RELEASE]      = {.member = send_release},
    [CHANGE_LOSE]         = {.member = lose},
    /* … and the next world */
    [CHANGE_RESERVE]      = {.member = send_attempt},
    [CHANGE_PREPARE]      = {.member = send_prepare},
    [CHANGE_DISCARD]      = {.member = send_attempt},
    [CHANGE_START]        = {.member = send_start},
    [CHANGE_ENTER]        = {.member = send_start},
    /* … and the present world */
    [CHANGE_OPEN]         = {.member = send_open},
    [CHANGE_HOLD]         = {.member = send_hold},
    [CHANGE_RUN_TO]       = {.member = send_run_to},
    [CHANGE_RUN_TO_NEXT]  = {.member = send_next},
    [CHANGE_NEXT]         = {.member = send_next},
    [CHANGE_LEAVE]        = {.member = send_leave},
    [CHANGE_ABORT]        = {.member = send_abort},
    [CHANGE_SIGNAL]       = {.member = send_signal},
    /* worlds */
    [CHANGE_RELAY]        = {.job = relay},
    [CHANGE_RELAY_END]    = {.call = relay_end},
    [CHANGE_RELAY_TAKEN]  = {.job = relay_taken},
    [CHANGE_STORE_END]    = {.call = store_end},
    [CHANGE_BEGIN_WORLD]  = {.job = begin_world},
    [CHANGE_STEPPED]      = {.job = stepped},
    [CHANGE_PROMOTE]      = {.call = promote_begin},
    /* plans, and the end */
    [CHANGE_DECIDE]       = {.job = decide},
    [CHANGE_SETBACK]      = {.call = planning_setback},
    [CHANGE_REQUEUE]      = {.call = requeue_after_fault_of_world},
    [CHANGE_END_REQUESTS] = {.call = allocation_stop},
    [CHANGE_WORLD_OVER]   = {.job = world_over},
    [CHANGE_FINISH]       = {.job = finish},
    [CHANGE_ABANDON]      = {.job = abandon},
    /* the log */
    [CHANGE_CAUSE]        = {.job = say_error},
    [CHANGE_SAY]          = {.job = say},
    [CHANGE_SAY_ERROR]    = {.job = say_error},
    [CHANGE_SAY_DEBUG]    = {.job = say_debug},
};
/* clang-format on */

void act_carry_out(struct leader *leader, const struct change_action *action)
{
    const struct handler *handler = &handlers[action->kind];
    struct leader_member *m = action->member != 0 ? roster_by_id(leader, action->member) : NULL;

    if (handler->call != NULL)
        handler->call(leader);
    else if (handler->job != NULL)
        handler->job(leader, action);
    else if (m != NULL)
        handler->member(leader, m, action);
}
