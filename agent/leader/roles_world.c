/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The world beside other roles (roles_world.h). */
#include "agent/leader/roles_world.h"

#include "agent/leader/extensions.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/leader_roles.h"
#include "agent/leader/post.h"
#include "agent/leader/role_sizes.h"
#include "agent/leader/roster.h"

bool roles_world_any(const struct leader *leader)
{
    return leader_roles_any(leader) && leader->options->world_nodes > 0;
}

bool roles_world_leads(const struct leader *leader)
{
    const struct roles *roles = leader_roles_view(leader)->roles;

    return roles->list[roles_world(roles)].leads;
}

static bool is_over(const struct leader *leader)
{
    return reconcile_world_is_over(leader_roles_view(leader)->reconcile);
}

bool roles_world_fits(const struct leader *leader)
{
    const struct roles *roles = leader_roles_view(leader)->roles;

    return roles_world_any(leader) && roles->list[roles_world(roles)].trains;
}

bool roles_world_rests(const struct leader *leader)
{
    return roles_world_any(leader) && is_over(leader);
}

/* It shares the node with replicas of other roles. */
static void send_room(const struct leader *leader, struct leader_member *m)
{
    const struct slots_size *size = reconcile_size_of_world(leader_roles_view(leader)->reconcile,
                                                            m->room);
    json_object *msg = leader_message("world_room", -1);

    json_object_object_add(msg, "gpus", json_object_new_int(size->gpus));
    leader_send(m, msg);
}

static void admit(struct leader *leader)
{
    const struct reconcile *reconcile = leader_roles_view(leader)->reconcile;

    for (int i = 0; i < roster_count(leader); i++) {
        struct leader_member *m = roster_at(leader, i);

        if (m->room > 0 && m->part->apart && reconcile_has_world(reconcile, m->room)) {
            send_room(leader, m);
            post_fact(leader, (struct change_fact){.kind = CHANGE_FACT_ADMITTED, .member = m->id});
        }
    }
}

/* Roles that come after it wait for its first step. */
static void tell(struct leader *leader)
{
    bool trains = change_phase(leader->change) == CHANGE_RUNNING &&
                  change_all_stepping(leader->change);

    if (trains == reconcile_world_trains(leader_roles_view(leader)->reconcile))
        return;
    leader_roles_feed(leader,
                      (struct reconcile_fact){.kind = RECONCILE_WORLD, .count = trains ? 1 : 0});
}

/* A fit needs it, or does not any more. */
static void follow_fit(struct leader *leader)
{
    const struct roles_view *view = leader_roles_view(leader);
    int world = roles_world(view->roles);

    if (!view->roles->list[world].trains || reconcile_stopping(view->reconcile))
        return;
    if (change_phase(leader->change) == CHANGE_RESTING)
        post_fact(leader, (struct change_fact){.kind = CHANGE_FACT_AGAIN});
    if (reconcile_target(view->reconcile, world) == 0 && !change_stopping(leader->change))
        post_fact(leader, (struct change_fact){.kind = CHANGE_FACT_STOP,
                                               .code = CHANGE_STOPS_WORLD,
                                               .text = "no fit needs it"});
}

void roles_world_watch(struct leader *leader)
{
    const struct roles_view *view = leader_roles_view(leader);

    if (!roles_world_any(leader) || is_over(leader))
        return;
    follow_fit(leader);
    if (is_over(leader))
        return;
    admit(leader);
    tell(leader);
    if (reconcile_stopping(view->reconcile) && view->roles->clean != ROLES_CLEAN_NONE &&
        !change_stopping(leader->change))
        post_stop(leader, "the job ends");
}

/* Replicas get its GPUs. */
static void give_room(struct leader *leader)
{
    for (int i = 0; i < roster_count(leader); i++) {
        struct leader_member *m = roster_at(leader, i);
        json_object *msg;

        if (m->room == 0 || m->link == NULL || !m->part->base)
            continue;
        msg = leader_message("world_room", -1);
        json_object_object_add(msg, "gpus", json_object_new_int(0));
        json_object_object_add(msg, "over", json_object_new_boolean(true));
        leader_send(m, msg);
    }
}

void roles_world_over(struct leader *leader, int code)
{
    const struct roles_view *view = leader_roles_view(leader);

    give_room(leader);
    for (int i = extensions_count(leader) - 1; i >= 0; i--) {
        const struct extension *ext = extensions_at(leader, i);

        if (ext->role < 0 && ext->job != 0)
            extensions_cancel(leader, ext->job, false, "the world is over");
    }
    leader_roles_feed(leader,
                      (struct reconcile_fact){.kind = RECONCILE_WORLD_OVER, .status = code & 0xff});
    if (view->roles->list[roles_world(view->roles)].trains) /* the next leader has to know */
        role_sizes_write(leader, view);
}
