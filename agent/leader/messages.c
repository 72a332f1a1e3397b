/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The leader's messages: who may send each, what it must match, and who handles it
 * (doc/internals/protocol.md).
 *
 * A message that does not match is dropped without an answer: it was sent before its sender knew
 * of the present world, or of the present plans. */
#include <string.h>

#include "agent/leader/control.h"
#include "agent/leader/control_metrics.h"
#include "agent/leader/control_roles.h"
#include "agent/leader/control_service.h"
#include "agent/leader/exclude.h"
#include "agent/leader/facts.h"
#include "agent/leader/control_fits.h"
#include "agent/leader/fit_desk.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/leader_roles.h"
#include "agent/leader/route_waiters.h"
#include "agent/leader/lease.h"
#include "agent/leader/members.h"
#include "agent/leader/messages.h"
#include "agent/leader/operators.h"
#include "agent/leader/pmix_relay.h"
#include "agent/leader/role_reports.h"
#include "agent/leader/role_tasks.h"
#include "agent/leader/pmix_world.h"
#include "agent/leader/roster.h"
#include "agent/leader/srun_notify.h"
#include "agent/leader/straggler_watch.h"
#include "agent/leader/world_store.h"
#include "lib/json_get.h"
#include "lib/text.h"

enum sender {
    AGENT,   /* … that has not joined */
    MEMBER,  /* an agent that has */
    CONTROL, /* selastic */
};

enum match {
    ANY,
    /* "gen": the present generation, and the member has a place in its world. */
    GENERATION,
    /* lib/change sees whether the message is about workers, or a preparation, that it knows. */
    CHANGE,
    /* No other leader may act: until then it waits. */
    LEADS,
    /* "attempt": the present or the next world, in which the member has a place. */
    WORLD,
};

struct message {
    const char *type;
    enum sender sender;
    enum match match;
    /* One of these. */
    void (*link)(struct leader *leader, struct link *link, json_object *msg);
    void (*member)(struct leader *leader, struct leader_member *m, json_object *msg);
    void (*pmix)(const struct pmix_world *pmix_world, struct leader_member *m, json_object *msg);
};

/* clang-format off */
static const struct message table[] = {
    /* selastic */
    {"show",       CONTROL, ANY,        .link = control_show},
    {"history",    CONTROL, ANY,        .link = control_history},
    {"metrics",    CONTROL, ANY,        .link = control_metrics},
    {"resize",     CONTROL, ANY,        .link = control_resize},
    {"roles",      CONTROL, ANY,        .link = control_roles},
    {"scale",      CONTROL, ANY,        .link = control_scale},
    {"fail",       CONTROL, ANY,        .link = control_fail},
    {"remove",     CONTROL, ANY,        .link = control_remove},
    {"report",     CONTROL, ANY,        .link = control_report},
    {"reports",    CONTROL, ANY,        .link = control_reports},
    {"shards",     CONTROL, ANY,        .link = control_shards},
    {"apply",      CONTROL, ANY,        .link = control_apply},
    {"flush",      CONTROL, ANY,        .link = control_flush},
    {"repack",     CONTROL, ANY,        .link = control_repack},
    {"move",       CONTROL, ANY,        .link = control_move},
    {"place",      CONTROL, ANY,        .link = control_place},
    {"withdraw",   CONTROL, ANY,        .link = control_withdraw},
    {"serve",      CONTROL, ANY,        .link = control_serve},
    {"hand-over",  CONTROL, ANY,        .link = control_hand_over},
    /* routers */
    {"routes",     CONTROL, ANY,        .link = control_routes},
    {"routed",     CONTROL, ANY,        .link = control_routed},
    /* users whom the service trains for: all that they may say */
    {"fit-ask",    CONTROL, ANY,        .link = control_fits},
    {"fit-begin",  CONTROL, ANY,        .link = control_fits},
    {"fit-look",   CONTROL, ANY,        .link = control_fits},
    {"fit-end",    CONTROL, ANY,        .link = control_fits},
    /* members, and what happens to their nodes */
    {"join",       AGENT,   ANY,        .link = members_join},
    {"beat",       MEMBER,  ANY,        .member = members_beat},
    {"leaving",    MEMBER,  ANY,        .member = members_leaving},
    {"out",        MEMBER,  ANY,        .member = members_out},
    {"listen",     MEMBER,  ANY,        .member = lease_listens},
    {"notice",     MEMBER,  ANY,        .member = exclude_noticed},
    {"reclaim",    MEMBER,  ANY,        .member = exclude_reclaimed},
    {"advice",     MEMBER,  ANY,        .member = exclude_advised},
    {"health",     MEMBER,  ANY,        .member = straggler_watch_health},
    {"silence",    MEMBER,  ANY,        .member = exclude_silence},
    {"unwatched",  MEMBER,  ANY,        .member = srun_unwatched},
    {"end",        MEMBER,  ANY,        .member = facts_end},
    /* the next world */
    {"reserved",   MEMBER,  CHANGE,     .member = facts_reserved},
    {"parked",     MEMBER,  CHANGE,     .member = facts_parked},
    {"unprepared", MEMBER,  CHANGE,     .member = facts_unprepared},
    /* the present world */
    {"ready",      MEMBER,  GENERATION, .member = facts_ready},
    {"listening",  MEMBER,  GENERATION, .member = facts_listening},
    {"begun",      MEMBER,  GENERATION, .member = facts_begun},
    {"stepping",   MEMBER,  GENERATION, .member = facts_stepping},
    {"held",       MEMBER,  GENERATION, .member = facts_held},
    {"exit",       MEMBER,  CHANGE,     .member = facts_exit},
    {"drained",    MEMBER,  CHANGE,     .member = facts_drained},
    /* replicas of roles */
    {"room",         MEMBER, LEADS,     .member = role_tasks_room},
    {"task_port",    MEMBER, LEADS,     .member = role_tasks_port},
    {"task_running", MEMBER, LEADS,     .member = role_tasks_running},
    {"task_ready",   MEMBER, LEADS,     .member = role_tasks_ready},
    {"task_unready", MEMBER, LEADS,     .member = role_tasks_unready},
    {"task_models",  MEMBER, LEADS,     .member = role_tasks_models},
    {"task_exit",    MEMBER, LEADS,     .member = role_tasks_exit},
    /* what its processes have to say to each other; "store" is answered whatever its world */
    {"store",      MEMBER,  ANY,        .member = world_store_request},
    {"unstore",    MEMBER,  ANY,        .member = world_store_withdraw},
    {"gather",     MEMBER,  WORLD,      .pmix = pmix_relay_gather},
    {"ungather",   MEMBER,  WORLD,      .pmix = pmix_relay_ungather},
    {"no_pmix",    MEMBER,  WORLD,      .pmix = pmix_relay_no_pmix},
    {"relay",      MEMBER,  WORLD,      .pmix = pmix_relay_relay},
    {"ask",        MEMBER,  WORLD,      .pmix = pmix_relay_ask},
};
/* clang-format on */

static const struct message *find(const char *type, enum sender sender)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (table[i].sender == sender && strcmp(table[i].type, type) == 0)
            return &table[i];
    return NULL;
}

static bool matches(enum match match, const struct leader *leader, const struct leader_member *m,
                    json_object *msg)
{
    int64_t number;

    return match != GENERATION ||
           (m->part->place >= 0 && json_get_int(msg, "gen", 0, INT32_MAX, &number) &&
            number == change_generation(leader->change));
}

/* All of selastic. */
static void answer_unknown(struct leader *leader, struct link *link, const char *type)
{
    char known[512] = "";

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (table[i].sender == CONTROL)
            text_append(known, sizeof(known), "%s%s", known[0] != '\0' ? ", " : "", table[i].type);
    control_say(link, control_answer("error", "unknown request '%.40s'; known are %s", type, known),
                control_leads(leader));
}

static void on_open(struct link *link, void *arg)
{
    (void)link;
    (void)arg;
}

static void on_message(struct link *link, json_object *msg, void *arg)
{
    const struct link_owner *owner = arg;
    struct leader *leader = owner->leader;
    struct leader_member *m = owner->member;
    const char *type = json_get_string(msg, "t");
    bool control = strcmp(link_role(link), LINK_ROLE_CONTROL) == 0;
    enum sender sender = control ? CONTROL : m != NULL ? MEMBER : AGENT;
    const struct message *message;
    struct pmix_world pmix_world;

    if (type == NULL)
        return;
    if (sender == MEMBER)
        m->last_heard = leader_now(leader);
    /* A guest who goes on to ask would have us keep questions, or answers. */
    if (sender == CONTROL && link_is_guest(link) &&
        (link_queued(link) > 0 || fit_desk_asks(leader, link))) {
        link_close(link, "a guest asks before it has read its answer");
        return;
    }
    if (sender == CONTROL && !control_understands(leader, link, msg))
        return;
    message = find(type, sender);
    if (sender == CONTROL && link_is_guest(link) &&
        (message == NULL || message->link != control_fits)) {
        control_say(link,
                    control_answer("error", "not permitted: the service trains for you, and "
                                            "nothing else"),
                    true);
        return;
    }
    if (message == NULL && sender == CONTROL)
        answer_unknown(leader, link, type);
    if (message == NULL)
        return;
    if (message->link != NULL)
        message->link(leader, link, msg);
    else if (message->match == WORLD && pmix_relay_find(leader, m, msg, &pmix_world))
        message->pmix(&pmix_world, m, msg);
    else if (message->match == LEADS)
        leader_roles_take(leader, m, message->member, msg);
    else if (message->match != WORLD && matches(message->match, leader, m, msg))
        message->member(leader, m, msg);
}

static void on_link_closed(struct link *link, const char *why, void *arg)
{
    const struct link_owner *owner = arg;

    role_reports_closed(owner->leader, link);
    route_waiters_closed(owner->leader, link);
    fit_desk_closed(owner->leader, link);
    if (owner->member != NULL)
        members_link_closed(owner->leader, owner->member, why);
}

static void on_stranger(uid_t uid, void *arg)
{
    operators_stranger(((const struct link_owner *)arg)->leader, uid);
}

const struct link_handlers messages_handlers = {
    .open = on_open, .message = on_message, .closed = on_link_closed, .stranger = on_stranger};

void leader_adopt(struct leader *leader, struct link *link, json_object *said)
{
    for (size_t i = 0; i < json_object_array_length(said); i++) {
        struct leader_member *m = roster_by_link(leader, link);

        on_message(link, json_object_array_get_idx(said, i),
                   m != NULL ? &m->owner : &leader->nobody);
    }
}
