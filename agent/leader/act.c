/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The actions of the change of worlds become messages and calls (act.h). What is done here may post
 * facts, which wait until all actions have been carried out (post.c). */
#include "agent/leader/act.h"

#include "agent/leader/allocation.h"
#include "agent/leader/end.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/members.h"
#include "agent/leader/planning.h"
#include "agent/leader/pmix_relay.h"
#include "agent/leader/post.h"
#include "agent/leader/promote.h"
#include "agent/leader/report.h"
#include "agent/leader/requeue.h"
#include "agent/leader/roster.h"
#include "agent/leader/world_store.h"
#include "common/log.h"

/* ---- messages about worlds ------------------------------------------------------------------- */

/* Tell the agent of the node at that place to start the world's workers: early ("prepare"), or
 * because the world begins ("start"). */
static json_object *world_message(const char *type, const struct world *world, int place,
                                  int attempt)
{
    json_object *msg = world_to_json(world);

    json_object_object_add(msg, "t", json_object_new_string(type));
    json_object_object_add(msg, "node_index", json_object_new_int(place));
    json_object_object_add(msg, "attempt", json_object_new_int(attempt));
    return msg;
}

static json_object *live_message(const char *type, const struct world *world, int place,
                                 int attempt)
{
    json_object *msg = world_message(type, world, place, attempt);

    json_object_object_add(msg, "live", json_object_new_boolean(true));
    return msg;
}

static void send_prepare(struct leader *leader, struct leader_member *m,
                         const struct change_action *action)
{
    const struct world *world = change_world_of(leader->change, action->number);

    if (world == NULL || m->part->next_place < 0)
        return; /* it has been given up by the same fact */
    leader_send(m, action->flag
                       ? live_message("prepare", world, m->part->next_place, action->number)
                       : world_message("prepare", world, m->part->next_place, action->number));
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
        msg = live_message("start", world, m->part->place, action->number);
        json_object_object_add(msg, "started", json_object_new_int(action->started));
    } else {
        msg = world_message("start", world, m->part->place, action->number);
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

/* To the next world, or out of the present one; before that, if a step is named, to that step. */
static void send_next(struct leader *leader, struct leader_member *m,
                      const struct change_action *action)
{
    json_object *msg = leader_message(action->kind == CHANGE_RUN_TO_NEXT ? "run_to" : "next",
                                      action->generation);
    const struct world *world = change_world_of(leader->change, action->number);
    bool stays = world != NULL && m->part->place >= 0;

    if (action->step != 0)
        json_object_object_add(msg, "step", json_object_new_int64((int64_t)action->step));
    json_object_object_add(msg, "next",
                           stays ? live_message("next", world, m->part->place, action->number)
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

    (void)leader;
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

static void relay(struct leader *leader, struct leader_member *m,
                  const struct change_action *action)
{
    const struct world *world = change_world_of(leader->change, action->number);

    (void)m;
    if (world != NULL && pmix_relay_begin(leader, &leader->next_relay, world, action->number) != 0)
        log_error("job %u: out of memory", leader->options->job);
}

static void relay_end(struct leader *leader, struct leader_member *m,
                      const struct change_action *action)
{
    (void)m;
    (void)action;
    pmix_relay_end(leader, &leader->next_relay);
}

static void relay_taken(struct leader *leader, struct leader_member *m,
                        const struct change_action *action)
{
    const struct world *world = change_world_of(leader->change, action->number);

    (void)m;
    if (world != NULL && pmix_relay_begin(leader, &leader->relay, world, action->number) != 0)
        log_error("job %u: out of memory", leader->options->job);
}

static void store_end(struct leader *leader, struct leader_member *m,
                      const struct change_action *action)
{
    (void)m;
    (void)action;
    world_store_end(leader, &leader->relay);
}

static void begin_world(struct leader *leader, struct leader_member *m,
                        const struct change_action *action)
{
    (void)m;
    pmix_relay_end(leader, &leader->relay);
    leader->relay = leader->next_relay;
    leader->next_relay = (struct pmix_relay){0};
    report_generation(leader, action->seconds);
    uv_update_time(leader->loop);
    post_fact(leader, (struct change_fact){.kind = CHANGE_FACT_WRITTEN});
}

static void stepped(struct leader *leader, struct leader_member *m,
                    const struct change_action *action)
{
    (void)m;
    report_stepping(leader, action->flag);
}

static void promote(struct leader *leader, struct leader_member *m,
                    const struct change_action *action)
{
    (void)m;
    (void)action;
    promote_begin(leader);
}

static void setback(struct leader *leader, struct leader_member *m,
                    const struct change_action *action)
{
    (void)m;
    (void)action;
    planning_setback(leader);
}

static void requeue(struct leader *leader, struct leader_member *m,
                    const struct change_action *action)
{
    (void)m;
    (void)action;
    requeue_after_fault(leader);
}

static void end_requests(struct leader *leader, struct leader_member *m,
                         const struct change_action *action)
{
    (void)m;
    (void)action;
    allocation_stop(leader);
}

static void decide(struct leader *leader, struct leader_member *m,
                   const struct change_action *action)
{
    (void)m;
    planning_later(leader, action->seconds);
}

static void finish(struct leader *leader, struct leader_member *m,
                   const struct change_action *action)
{
    (void)m;
    end_begin(leader, action->number);
}

static void abandon(struct leader *leader, struct leader_member *m,
                    const struct change_action *action)
{
    (void)m;
    end_without(leader, action->number);
}

static void say(struct leader *leader, struct leader_member *m, const struct change_action *action)
{
    (void)m;
    log_info("job %u: %s", leader->options->job, action->text);
}

static void say_error(struct leader *leader, struct leader_member *m,
                      const struct change_action *action)
{
    (void)m;
    log_error("job %u: %s", leader->options->job, action->text);
}

static void say_debug(struct leader *leader, struct leader_member *m,
                      const struct change_action *action)
{
    (void)m;
    log_debug("job %u: %s", leader->options->job, action->text);
}

/* ---- the table ------------------------------------------------------------------------------- */

/* m is NULL for actions that are about no member. */
typedef void action_handler(struct leader *leader, struct leader_member *m,
                            const struct change_action *action);

static action_handler *const handlers[] = {
    [CHANGE_WELCOME] = welcome,
    [CHANGE_RELEASE] = send_release,
    [CHANGE_RESERVE] = send_attempt,
    [CHANGE_PREPARE] = send_prepare,
    [CHANGE_DISCARD] = send_attempt,
    [CHANGE_START] = send_start,
    [CHANGE_ENTER] = send_start,
    [CHANGE_OPEN] = send_open,
    [CHANGE_HOLD] = send_hold,
    [CHANGE_RUN_TO] = send_run_to,
    [CHANGE_RUN_TO_NEXT] = send_next,
    [CHANGE_NEXT] = send_next,
    [CHANGE_LEAVE] = send_leave,
    [CHANGE_ABORT] = send_abort,
    [CHANGE_SIGNAL] = send_signal,
    [CHANGE_RELAY] = relay,
    [CHANGE_RELAY_END] = relay_end,
    [CHANGE_RELAY_TAKEN] = relay_taken,
    [CHANGE_STORE_END] = store_end,
    [CHANGE_BEGIN_WORLD] = begin_world,
    [CHANGE_STEPPED] = stepped,
    [CHANGE_PROMOTE] = promote,
    [CHANGE_SETBACK] = setback,
    [CHANGE_CAUSE] = say_error,
    [CHANGE_REQUEUE] = requeue,
    [CHANGE_END_REQUESTS] = end_requests,
    [CHANGE_DECIDE] = decide,
    [CHANGE_LOSE] = lose,
    [CHANGE_FINISH] = finish,
    [CHANGE_ABANDON] = abandon,
    [CHANGE_SAY] = say,
    [CHANGE_SAY_ERROR] = say_error,
    [CHANGE_SAY_DEBUG] = say_debug,
};

void act_carry_out(struct leader *leader, const struct change_action *action)
{
    struct leader_member *m = action->member != 0 ? roster_by_id(leader, action->member) : NULL;

    if (action->member == 0 || m != NULL)
        handlers[action->kind](leader, m, action);
}
