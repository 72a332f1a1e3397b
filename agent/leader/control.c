/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What users ask the leader with selastic: show, history, resize. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "agent/leader/allocation.h"
#include "agent/leader/control.h"
#include "agent/leader/exclude.h"
#include "agent/leader/extensions.h"
#include "agent/leader/job_pools.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/leader_roles.h"
#include "agent/leader/lease.h"
#include "agent/leader/market.h"
#include "agent/leader/new_program.h"
#include "agent/leader/planning.h"
#include "agent/leader/post.h"
#include "agent/leader/report.h"
#include "agent/leader/roles_world.h"
#include "agent/leader/roster.h"
#include "agent/leader/slurm_look.h"
#include "agent/leader/straggler_watch.h"
#include "agent/run_dir.h"
#include "common/conf_file.h"
#include "common/release_own.h"
#include "lib/frame.h"
#include "lib/json_get.h"
#include "lib/roles.h"
#include "lib/text.h"
#include "lib/world_names.h"

/* A message with more cannot be sent. */
#define HISTORY_MAX (FRAME_KEYED_MAX - 65536)

static const char *member_state(const struct leader *leader, const struct leader_member *m,
                                const struct extension *ext)
{
    if (change_is_left(m->part) || m->part->released || (ext != NULL && ext->state == PLAN_LEAVING))
        return "leaving";
    if (m->part->place >= 0)
        return "training";
    if (m->room > 0)
        return "working";
    return change_world(leader->change) != NULL ? "parked" : "joining";
}

static json_object *members_json(struct leader *leader)
{
    json_object *array = json_object_new_array();

    for (int position = -1, pass = 0; pass < roster_count(leader) + 1; pass++, position++) {
        for (int i = 0; i < roster_count(leader); i++) {
            struct leader_member *m = roster_at(leader, i);
            struct extension *ext;
            json_object *obj;

            /* In rank order, those without a place before them. */
            if (m->link == NULL ||
                (position >= 0 ? m->part->place != position : pass != 0 || m->part->place >= 0))
                continue;
            ext = m->part->base ? NULL : extensions_find(leader, m->part->job);
            obj = json_object_new_object();
            json_object_object_add(obj, "node", json_object_new_string(m->part->node));
            json_object_object_add(obj, "job", json_object_new_int64(m->part->job));
            json_object_object_add(obj, "role",
                                   json_object_new_string(m->part->base ? "base" : "extension"));
            json_object_object_add(
                obj, "pool",
                ext != NULL && ext->pool != NULL ? json_object_new_string(ext->pool->name) : NULL);
            json_object_object_add(obj, "slots", json_object_new_int(m->part->slots));
            json_object_object_add(
                obj, "first_rank",
                json_object_new_int(
                    m->part->place >= 0 && change_world(leader->change) != NULL
                        ? world_first_rank(change_world(leader->change), m->part->place)
                        : -1));
            json_object_object_add(obj, "state",
                                   json_object_new_string(member_state(leader, m, ext)));
            json_object_object_add(obj, "taken",
                                   m->part->taken > 0
                                       ? json_object_new_double(leader_unix(leader, m->part->taken))
                                       : NULL);
            json_object_array_add(array, obj);
        }
    }
    return array;
}

/* In a job with roles. */
static const char *role_of(const struct leader *leader, const struct extension *ext)
{
    const struct roles *roles = leader->options->roles;
    int role = ext->role >= 0 ? ext->role : roles_world(roles);

    return role >= 0 ? roles->list[role].name : "";
}

static json_object *extensions_json(struct leader *leader)
{
    static const char *const states[] = {"pending",  "pending", "booting",
                                         "starting", "joined",  "leaving"};
    json_object *array = json_object_new_array();

    for (int i = 0; i < extensions_count(leader); i++) {
        const struct extension *ext = extensions_at(leader, i);
        json_object *obj = json_object_new_object();
        double begin = ext->begin > leader_now(leader) ? leader_unix(leader, ext->begin) : 0;

        json_object_object_add(obj, "job", json_object_new_int64(ext->job));
        json_object_object_add(obj, "nodes",
                               ext->nodes > 0 ? json_object_new_int(ext->nodes) : NULL);
        json_object_object_add(obj, "pool",
                               ext->pool != NULL ? json_object_new_string(ext->pool->name) : NULL);
        if (leader_roles_any(leader))
            json_object_object_add(obj, "role", json_object_new_string(role_of(leader, ext)));
        json_object_object_add(obj, "state", json_object_new_string(states[ext->state]));
        json_object_object_add(obj, "reason", json_object_new_string(ext->reason));
        json_object_object_add(obj, "begin", json_object_new_double(begin));
        json_object_object_add(obj, "since",
                               json_object_new_double(leader_unix(leader, ext->since)));
        json_object_array_add(array, obj);
    }
    return array;
}

static uint64_t highest_step(const struct leader *leader)
{
    uint64_t step = 0;

    for (int i = 0; i < roster_count(leader); i++)
        if (roster_at(leader, i)->part->place >= 0 && roster_at(leader, i)->step > step)
            step = roster_at(leader, i)->step;
    return step;
}

/* Where tools find a PMIx server of the job, or why there is none. */
static json_object *pmix_json(const struct leader *leader)
{
    const struct leader_options *o = leader->options;
    char path[512];

    if (!o->pmix)
        return json_object_new_string("none (--pmix=no)");
    if (leader->relay.without[0] != '\0')
        return json_object_new_string(leader->relay.without);
    for (int i = 0; i < roster_count(leader); i++) {
        const struct leader_member *m = roster_at(leader, i);
        char text[1024];

        if (!m->part->base || m->part->nodeid != 0 ||
            run_dir_find(path, sizeof(path), o->conf, o->job, o->restarts, m->part->node) != 0)
            continue;
        snprintf(text, sizeof(text), "on each node; on %s: PMIX_SYSTEM_TMPDIR=%s", m->part->node,
                 path);
        return json_object_new_string(text);
    }
    return NULL;
}

/* Of a job whose roles have no world: its nodes run replicas. */
static const char *phase_text(const struct leader *leader)
{
    return leader_roles_run(leader) && !roles_world_any(leader) && !change_is_ending(leader->change)
               ? "running"
               : change_phase_text(leader->change);
}

static int node_count(const struct leader *leader)
{
    const struct world *world = change_world(leader->change);
    int count = 0;

    if (!leader_roles_any(leader))
        return world != NULL ? world->node_count : 0;
    for (int i = 0; i < roster_count(leader); i++)
        count += (roster_at(leader, i)->room > 0 || roster_at(leader, i)->part->place >= 0) &&
                 roster_at(leader, i)->link != NULL;
    return count;
}

json_object *control_state(struct leader *leader)
{
    const struct leader_options *o = leader->options;
    const struct world *world = change_world(leader->change);
    json_object *msg = leader_message("state", -1);
    char text[512], left_out[256];
    const char *url;

    json_object_object_add(msg, "job", json_object_new_int64(o->job));
    snprintf(text, sizeof(text), "%u.%u", o->job, o->restarts);
    json_object_object_add(msg, "incarnation", json_object_new_string(text));
    json_object_object_add(msg, "user", json_object_new_string(o->user));
    json_object_object_add(msg, "name",
                           json_object_new_string(slurm_look_base(leader) != NULL &&
                                                          slurm_look_base(leader)->name != NULL
                                                      ? slurm_look_base(leader)->name
                                                      : ""));
    json_object_object_add(msg, "phase", json_object_new_string(phase_text(leader)));
    json_object_object_add(msg, "generation",
                           json_object_new_int(change_generation(leader->change)));
    json_object_object_add(msg, "size", json_object_new_int(node_count(leader)));
    json_object_object_add(
        msg, "sizes", json_object_new_string(sizes_format(&o->policy->sizes, text, sizeof(text))));
    json_object_object_add(msg, "min", json_object_new_int(o->policy->sizes.min));
    json_object_object_add(msg, "max", json_object_new_int(o->policy->sizes.max));
    json_object_object_add(msg, "target", json_object_new_int(allocation_target(leader)));
    json_object_object_add(msg, "world_size",
                           json_object_new_int(world != NULL ? world_size(world) : 0));
    json_object_object_add(msg, "step", json_object_new_int64((int64_t)highest_step(leader)));
    json_object_object_add(msg, "steps", json_object_new_int64(report_steps(leader)));
    json_object_object_add(msg, "progress", report_progress_json(leader));
    json_object_object_add(msg, "since", json_object_new_double(report_since(leader)));
    json_object_object_add(msg, "restarts", json_object_new_int(change_faults(leader->change)));
    json_object_object_add(msg, "members", members_json(leader));
    json_object_object_add(msg, "extensions", extensions_json(leader));
    json_object_object_add(msg, "pools", market_pools_json(leader));
    json_object_object_add(msg, "cost", market_cost_json(leader));
    json_object_object_add(msg, "deadline", market_deadline_json(leader));
    if (leader_roles_any(leader)) {
        leader_roles_summary(leader, text, sizeof(text));
        new_program_add(leader, text, sizeof(text));
        json_object_object_add(msg, "roles", json_object_new_string(text));
        if (leader->options->roles->group != NULL)
            json_object_object_add(msg, "group",
                                   json_object_new_string(leader->options->roles->group));
    }
    json_object_object_add(msg, "why_size", json_object_new_string(leader->why.size));
    if (change_next(leader->change)->world != NULL)
        json_object_object_add(
            msg, "next_world",
            json_object_new_string(change_next_text(leader->change, text, sizeof(text))));
    json_object_object_add(msg, "why_not_more", json_object_new_string(leader->why.not_more));
    json_object_object_add(msg, "newcomers",
                           json_object_new_string(change_newcomer_error(leader->change)));
    exclude_describe(leader, left_out, sizeof(left_out));
    json_object_object_add(msg, "left_out", json_object_new_string(left_out));
    exclude_describe_advised(leader, left_out, sizeof(left_out));
    json_object_object_add(msg, "advised", json_object_new_string(left_out));
    json_object_object_add(msg, "stragglers", straggler_watch_json(leader));
    json_object_object_add(msg, "leader", json_object_new_string(o->node));
    json_object_object_add(msg, "term", json_object_new_int(lease_term(leader)));
    json_object_object_add(msg, "policy", policy_to_json(o->policy));
    json_object_object_add(msg, "state_dir", json_object_new_string(o->state_dir));
    url = strings_filled_value(o->env, WORLD_CHECKPOINT_URL);
    json_object_object_add(msg, "checkpoint_dir",
                           json_object_new_string(url != NULL ? url : o->checkpoint_dir));
    json_object_object_add(msg, "pmix", pmix_json(leader));
    json_object_object_add(msg, "conf",
                           json_object_new_string(conf_file_used(o->conf, text, sizeof(text))));
    return msg;
}

static json_object *history_json(struct leader *leader)
{
    json_object *msg = leader_message("history", -1), *array = NULL;
    size_t size = 0;

    /* Without an array the file is read instead. What was before another leader is only there. */
    if (leader->options->term == 0) {
        array = report_history_json(leader, 0);
        json_object_to_json_string_length(array, JSON_C_TO_STRING_PLAIN, &size);
    }
    if (size > HISTORY_MAX) {
        json_object_put(array);
        array = NULL;
    }
    json_object_object_add(msg, "generations", array);
    return msg;
}

json_object *control_answer(const char *type, const char *fmt, ...)
{
    json_object *msg = leader_message(type, -1);
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    json_object_object_add(msg, "message", json_object_new_string(text));
    return msg;
}

static json_object *resize(struct leader *leader, json_object *msg)
{
    const struct sizes *sizes = &leader->options->policy->sizes;
    const struct world *world = change_world(leader->change);
    const uint32_t job = leader->options->job;
    const int base = leader->options->world_nodes, size = world != NULL ? world->node_count : 0;
    const int old = allocation_user_target(leader);
    int64_t nodes, delta;
    const char *plural;
    char text[256];

    sizes_format(sizes, text, sizeof(text));
    if (change_is_ending(leader->change) || change_stopping(leader->change))
        return control_answer("error", "job %u is ending", job);
    if (base == 0)
        return control_answer(
            "error", "job %u has roles: `selastic scale %u ROLE=N` sets their sizes", job, job);
    if (!json_get_int(msg, "nodes", INT32_MIN, INT32_MAX, &nodes)) {
        if (!json_get_int(msg, "delta", -SIZES_NODES_MAX, SIZES_NODES_MAX, &delta))
            return control_answer("error", "a resize needs a number of nodes");
        nodes = (world != NULL ? size : base) + delta;
    }
    if (nodes < base && sizes_allowed(sizes, (int)nodes))
        return control_answer(
            "error", "%lld nodes: %s has %d", (long long)nodes,
            leader_roles_any(leader) ? "on the base job the world" : "the base job itself", base);
    if (nodes < 0 || !sizes_allowed(sizes, (int)nodes))
        return control_answer("error", "%lld node%s: allowed are %s", (long long)nodes,
                              nodes == 1 ? "" : "s", text);
    allocation_set_user_target(leader, (int)nodes);
    job_pools_retry_now(leader);
    if (nodes > old)
        planning_forget_setback(leader); /* the user wants them now */
    if (size != nodes)
        post_reason(leader, "resize to %d by selastic", (int)nodes);
    planning_later(leader, 0);
    plural = nodes == 1 ? "" : "s";
    if (size == nodes)
        return control_answer("done", "job %u has %d node%s", job, (int)nodes, plural);
    return control_answer("done", "job %u: %s to %d node%s", job,
                          size > nodes ? "shrinks" : "grows, as nodes become free,", (int)nodes,
                          plural);
}

/* A leader that may have been followed by another one says so, with what it knows, and changes
 * nothing. */
bool control_leads(struct leader *leader)
{
    return leader_has_ended(leader) || lease_may_act(leader);
}

void control_say(struct link *link, json_object *said, bool leading)
{
    release_write(said, release_own());
    if (!leading)
        json_object_object_add(said, "elsewhere", json_object_new_boolean(true));
    link_send(link, said);
}

void control_show(struct leader *leader, struct link *link, json_object *msg)
{
    bool leading = control_leads(leader);

    (void)msg;
    control_say(link, control_state(leader), leading);
}

void control_history(struct leader *leader, struct link *link, json_object *msg)
{
    bool leading = control_leads(leader);

    (void)msg;
    control_say(link, history_json(leader), leading);
}

bool control_may_change(struct leader *leader, struct link *link)
{
    if (control_leads(leader))
        return true;
    control_say(link,
                control_answer("error",
                               "%s may not lead the job any more, and no other node says that it "
                               "does; try again in some seconds",
                               leader->options->node),
                false);
    return false;
}

void control_resize(struct leader *leader, struct link *link, json_object *msg)
{
    if (control_may_change(leader, link))
        control_say(link, resize(leader, msg), true);
}

bool control_understands(const struct leader *leader, struct link *link, json_object *msg)
{
    char ours[WORLD_NAME_MAX + 32];
    struct release theirs;
    struct error why;

    release_read(msg, &theirs);
    snprintf(ours, sizeof(ours), "elasticrun on %s", leader->options->node);
    if (release_agree(release_own(), ours, &theirs, "selastic", &why) == 0)
        return true;
    control_say(link, control_answer("error", "%s", why.text), true);
    return false;
}
