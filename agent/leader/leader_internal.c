/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What all files of the leader need (leader_internal.h). */
#include "agent/leader/leader_internal.h"

#include <time.h>

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

double leader_unix(const struct leader *leader, double at)
{
    return unix_now() + at - leader_now(leader);
}

int leader_port(const struct leader *leader)
{
    return link_server_port(leader->server);
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

/* ---- timers ---------------------------------------------------------------------------------- */

void leader_handle_gone(struct leader *leader)
{
    if (--leader->open_handles == 0)
        leader->exit.done(leader->exit.code, leader->exit.arg);
}

void leader_timer_init(struct leader *leader, uv_timer_t *timer)
{
    uv_timer_init(leader->loop, timer);
    timer->data = leader;
    leader->open_handles++;
}

static void on_timer_closed(uv_handle_t *handle)
{
    leader_handle_gone(handle->data);
}

void leader_timer_close(uv_timer_t *timer)
{
    uv_close((uv_handle_t *)timer, on_timer_closed);
}

/* ---- the deadline of the change of worlds, and the end --------------------------------------- */

bool leader_has_ended(const struct leader *leader)
{
    return change_phase(leader->change) == CHANGE_ENDING;
}

void leader_set_deadline(struct leader *leader)
{
    double due = change_deadline(leader->change), left = due - leader_now(leader);

    if (leader_has_ended(leader))
        return; /* the timer is the end's now */
    if (due == 0)
        uv_timer_stop(&leader->timers.deadline);
    else
        uv_timer_start(&leader->timers.deadline, leader->above->deadline,
                       left > 0 ? (uint64_t)(left * 1000) + 1 : 1, 0);
}

void leader_look_at_end(struct leader *leader, int ms)
{
    if (leader->server != NULL && leader_has_ended(leader))
        uv_timer_start(&leader->timers.deadline, leader->above->deadline, (uint64_t)ms, 0);
}
