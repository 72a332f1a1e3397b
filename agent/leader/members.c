/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who joins, what members say, who leaves, who is lost (members.h). */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "agent/leader/exclude.h"
#include "agent/leader/extensions.h"
#include "agent/leader/facts.h"
#include "agent/leader/hang_watch.h"
#include "agent/leader/heritage.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/leader_roles.h"
#include "agent/leader/lease.h"
#include "agent/leader/market.h"
#include "agent/leader/members.h"
#include "agent/leader/planning.h"
#include "agent/leader/pmix_relay.h"
#include "agent/leader/post.h"
#include "agent/leader/report.h"
#include "agent/leader/roles_world.h"
#include "agent/leader/roster.h"
#include "agent/leader/slurm_look.h"
#include "agent/leader/slurm_update.h"
#include "agent/leader/srun_notify.h"
#include "agent/leader/straggler_watch.h"
#include "common/log.h"
#include "common/release_own.h"
#include "lib/json_get.h"
#include "lib/roles.h"
#include "lib/tree_order.h"

#define AWAKE_PERIOD 1.0 /* seconds between two calls of members_awake() */

struct members {
    uv_timer_t silence; /* of a member */
    double silence_due;
    double awake; /* when this process was last seen to be awake; 0: never */
};

/* ---- who leaves ------------------------------------------------------------------------------ */

void members_send_release(struct leader_member *member, const char *reason)
{
    json_object *msg = leader_message("release", -1);

    json_object_object_add(msg, "reason", json_object_new_string(reason));
    leader_send(member, msg);
}

void members_lose(struct leader *leader, struct leader_member *member, const char *why)
{
    struct change_fact gone = {.kind = CHANGE_FACT_GONE, .member = member->id};
    char reason[WORLD_NAME_MAX + 16];

    if (member->link != NULL) {
        struct link *link = member->link;

        /* If it can still read this it leaves in order, and does not take the leader for dead. A
         * node of the base comes back. */
        if (!member->part->base)
            members_send_release(member, why);
        roster_unlink(leader, member);
        link_set_arg(link, &leader->nobody);
        link_close(link, why);
    }
    if (leader_has_ended(leader)) {
        leader_look_at_end(leader, 0);
        return;
    }
    if (!change_is_left(member->part) && !member->part->released) {
        log_info("job %u: node %s is lost: %s", leader->options->job, member->part->node, why);
        snprintf(reason, sizeof(reason), "node %s lost", member->part->node);
        gone.text = reason;
        exclude_lost(leader, member);
        if (!member->part->reclaimed)
            planning_setback(leader);
    }
    lease_member_lost(leader, member);
    pmix_relay_member_gone(leader, member);
    extensions_member_gone(leader, member);
    leader_roles_member_gone(leader, member);
    post_fact(leader, gone);
}

/* ---- who joins ------------------------------------------------------------------------------- */

/* What an agent says of itself when it joins. */
struct join {
    const char *node, *switches;
    int role; /* for whose replicas its job is; -1: for the world */
    bool base, leaving;
    uint32_t job, restarts;
    int nodeid, slots;
    int64_t pid; /* 0: it has not said it */
    struct release release;
};

/* Who keeps it from its node. A node has room for several extensions of roles. */
static struct leader_member *in_its_way(const struct leader *leader, const struct join *join)
{
    for (int i = 0; i < roster_count(leader); i++) {
        struct leader_member *m = roster_at(leader, i);

        if (m->link != NULL && strcmp(m->part->node, join->node) == 0 &&
            (!leader_roles_any(leader) || m->part->job == join->job))
            return m;
    }
    return NULL;
}

/* The most nodes that the job may have now. */
static int nodes_allowed(struct leader *leader)
{
    if (!leader_roles_any(leader))
        return leader->options->policy->sizes.max + market_surplus(leader);
    return leader->options->roles->max_nodes > 0 ? leader->options->roles->max_nodes : INT_MAX;
}

/* Is there no place for one more node of an extension? A node that takes the place of another one
 * joins first. */
static bool is_full(struct leader *leader)
{
    int nodes = leader->options->base_nodes - exclude_base_lost(leader);

    for (int i = 0; i < roster_count(leader); i++)
        nodes += roster_at(leader, i)->link != NULL && !roster_at(leader, i)->part->base &&
                 !change_is_left(roster_at(leader, i)->part) &&
                 !extensions_to_go(leader, roster_at(leader, i)->part->job);
    return nodes >= nodes_allowed(leader);
}

/* Returns 0: welcome, or -1 with the reason why not. */
static int refuse(struct leader *leader, const struct join *join, struct error *why)
{
    const struct leader_member *other;
    const struct extension *ext;

    if (change_is_ending(leader->change) || change_stopping(leader->change))
        return error_set(why, "the job is ending");
    if (join->leaving)
        return error_set(why, "its job is already being preempted");
    if (join->base && join->job != leader->options->job)
        return error_set(why, "not a node of the base job");
    other = in_its_way(leader, join);
    if (other != NULL)
        return error_set(why, "node %s already works for this job (job %u)", join->node,
                         other->part->job);
    if (join->base)
        return 0;
    ext = extensions_find(leader, join->job);
    if (ext != NULL && ext->state == PLAN_LEAVING)
        return error_set(why, "this extension is no longer needed");
    if (is_full(leader))
        return error_set(why, "the job has its %d nodes (MAX)", nodes_allowed(leader));
    return 0;
}

void members_welcome(struct leader *leader, struct leader_member *member, bool keep)
{
    const struct leader_options *o = leader->options;
    json_object *msg = leader_message("welcome", -1);

    json_object_object_add(msg, "argv", json_from_strings(o->argv));
    json_object_object_add(msg, "env", json_from_strings(o->env));
    json_object_object_add(msg, "cwd", json_object_new_string(o->cwd));
    json_object_object_add(msg, "umask", json_object_new_int((int)o->umask));
    json_object_object_add(msg, "label", json_object_new_boolean(o->label));
    if (o->fail_pattern != NULL)
        json_object_object_add(msg, "fail_pattern", json_object_new_string(o->fail_pattern));
    if (o->pre_train != NULL)
        json_object_object_add(msg, "pre_train", json_from_strings(o->pre_train));
    if (o->post_train != NULL)
        json_object_object_add(msg, "post_train", json_from_strings(o->post_train));
    json_object_object_add(msg, "state_dir", json_object_new_string(o->state_dir));
    json_object_object_add(msg, "checkpoint_dir", json_object_new_string(o->checkpoint_dir));
    json_object_object_add(msg, "min_nodes", json_object_new_int(o->policy->sizes.min));
    json_object_object_add(msg, "max_nodes", json_object_new_int(o->policy->sizes.max));
    json_object_object_add(msg, "pmix", json_object_new_boolean(o->pmix));
    json_object_object_add(msg, "max_restarts", json_object_new_int(o->policy->restarts.restarts));
    leader_roles_add(leader, msg);
    if (o->policy->scale_config != NULL)
        json_object_object_add(msg, "scale_config", json_object_get(o->policy->scale_config));
    json_object_object_add(msg, "term", json_object_new_int(lease_term(leader)));
    json_object_object_add(msg, "address", json_object_new_string(o->address));
    json_object_object_add(msg, "port", json_object_new_int(leader_port(leader)));
    json_object_object_add(msg, "successors", json_object_get(lease_successors(leader)));
    json_object_object_add(msg, "you", json_object_new_string(link_peer_address(member->link)));
    json_object_object_add(msg, "slurm_user", json_object_new_int64(o->slurm_user));
    json_object_object_add(msg, "keep", json_object_new_boolean(keep));
    release_write(msg, release_own());
    leader_send(member, msg);
    if (member->part->base)
        heritage_tell(leader, member);
    srun_forward(leader, member);
}

/* An agent that has lost its link to us comes back before we have noticed. */
static void lose_former(struct leader *leader, const char *node, uint32_t job, int64_t pid)
{
    for (int i = 0; i < roster_count(leader); i++) {
        struct leader_member *m = roster_at(leader, i);

        if (m->link == NULL || m->part->job != job || m->pid != pid ||
            strcmp(m->part->node, node) != 0)
            continue;
        members_lose(leader, m, "it has joined again");
        return;
    }
}

/* A job without roles has none to join for. */
static int role_of(const struct leader *leader, json_object *msg)
{
    const char *role = json_get_string(msg, "role");

    return role != NULL && leader_roles_any(leader) ? roles_find(leader->options->roles, role) : -1;
}

static bool read_join(const struct leader *leader, json_object *msg, struct join *join)
{
    int64_t job, restarts, nodeid, slots;

    *join = (struct join){
        .node = json_get_string(msg, "node"),
        .switches = json_get_string(msg, "switches"),
        .base = json_get_bool(msg, "base", false),
        .leaving = json_get_bool(msg, "leaving", false),
    };
    if (!world_name_ok(join->node) || !json_get_int(msg, "job", 1, UINT32_MAX, &job) ||
        !json_get_int(msg, "restarts", 0, UINT32_MAX, &restarts) ||
        !json_get_int(msg, "nodeid", 0, SIZES_NODES_MAX, &nodeid) ||
        !json_get_int(msg, "slots", 1, WORLD_SLOTS_MAX, &slots))
        return false;
    if (!json_get_int(msg, "pid", 1, INT32_MAX, &join->pid))
        join->pid = 0;
    release_read(msg, &join->release);
    join->role = role_of(leader, msg);
    join->job = (uint32_t)job;
    join->restarts = (uint32_t)restarts;
    join->nodeid = (int)nodeid;
    join->slots = (int)slots;
    return true;
}

/* A new member at the end of the list. NULL: out of memory. */
static struct leader_member *add_member(struct leader *leader, struct link *link,
                                        const struct join *join)
{
    struct leader_member *m = roster_add(leader, link);

    if (m == NULL)
        return NULL;
    m->restarts = join->restarts;
    if (join->switches != NULL && strlen(join->switches) < TREE_PATH_MAX)
        m->switches = strdup(join->switches);
    m->pid = join->pid;
    m->joined = m->last_heard = leader_now(leader);
    m->seen = m->joined - leader->options->conf->heartbeat_timeout / 2.0; /* nothing of ours yet */
    m->heard = true; /* if it is not any more when that is looked at first, it has been lost */
    return m;
}

/* What an agent says of its workers, if it comes from the leader before this one. */
static void read_former(json_object *msg, struct change_join *join)
{
    json_object *said = NULL;
    struct error err = {""};
    int64_t number = 0;

    if (json_get_int(msg, "gen", 0, INT32_MAX - 1, &number))
        join->last_world = (int)number;
    if (json_get_int(msg, "completed", 1, INT32_MAX, &number))
        join->completed_world = (int)number;
    if (!json_object_object_get_ex(msg, "group", &said) ||
        !json_get_int(said, "started", 1, INT32_MAX, &number))
        return;
    join->started = (int)number;
    join->live = json_get_bool(said, "live", false);
    join->through = json_get_bool(said, "through", false);
    join->stateful = json_get_bool(said, "stateful", false);
    if (!json_get_int(said, "shape", 0, INT64_MAX, &join->signature))
        join->signature = 0;
    if (json_get_int(said, "slowest", 0, UINT32_MAX, &number))
        join->slowest = (uint32_t)number;
    if (join->live)
        join->was_in = world_from_json(said, &err);
}

/* An agent of another release that does not understand this leader. The next extension may come to
 * such a node, too: growth pauses, longer each time. Without a node of the base there is no world
 * at all. */
static void reject_release(struct leader *leader, const struct join *join, const struct error *why)
{
    struct extension *ext = extensions_find(leader, join->job);

    if (join->base && change_world(leader->change) == NULL) {
        log_error("job %u cannot start: %s", leader->options->job, why->text);
        post_stop(leader, why->text);
    } else if (!join->base) {
        log_info("job %u: extension job %u: %s", leader->options->job, join->job, why->text);
        exclude_node(leader, join->node);
        if (ext == NULL || ext->state != PLAN_LEAVING) /* another of its nodes has not said it */
            extensions_failed(leader, ext != NULL ? ext->pool : NULL, why->text);
        extensions_cancel(leader, join->job, true, why->text);
    }
}

static int check_release(struct leader *leader, const struct join *join, struct error *why)
{
    char ours[WORLD_NAME_MAX + 32], theirs[WORLD_NAME_MAX + 32];

    snprintf(theirs, sizeof(theirs), "elasticrun on %s", join->node);
    snprintf(ours, sizeof(ours), "elasticrun on %s", leader->options->node);
    if (release_agree(release_own(), ours, &join->release, theirs, why) == 0)
        return 0;
    reject_release(leader, join, why);
    return -1;
}

/* False: out of memory. Else the member has its part in the change of worlds. */
static bool post_join(struct leader *leader, struct leader_member *m, const struct join *join,
                      json_object *msg)
{
    struct change_join joined = {.id = m->id,
                                 .node = join->node,
                                 .address = link_peer_address(m->link),
                                 .job = join->job,
                                 .base = join->base,
                                 .nodeid = join->nodeid,
                                 .slots = join->slots};

    read_former(msg, &joined);
    /* Which nodes of the base are the world's is decided when all are there; or had been. */
    joined.apart = roles_world_any(leader) &&
                   (join->base ? joined.last_world == 0 : join->role >= 0);
    post_fact(leader, (struct change_fact){.kind = CHANGE_FACT_JOINED, .join = &joined});
    return m->part != NULL;
}

void members_join(struct leader *leader, struct link *link, json_object *msg)
{
    struct leader_member *m;
    struct error why = {""};
    struct join join;

    if (!read_join(leader, msg, &join)) {
        link_close(link, "a join that cannot be understood");
        return;
    }
    if (join.pid != 0)
        lose_former(leader, join.node, join.job, join.pid);
    if (lease_deposed(leader)) { /* and is not to be refused: another node leads */
        link_close(link, "this node does not lead the job any more");
        return;
    }
    /* SIGTERM has reached this node of the base before it could join: the job ends. */
    if (join.base && join.leaving && !leader_has_ended(leader) && !change_stopping(leader->change))
        leader_roles_stop(leader, "terminated");
    if (refuse(leader, &join, &why) != 0 || check_release(leader, &join, &why) != 0) {
        json_object *answer = leader_message("refuse", -1);

        json_object_object_add(answer, "reason", json_object_new_string(why.text));
        link_send(link, answer);
        link_close(link, why.text);
        return;
    }
    m = add_member(leader, link, &join);
    if (m == NULL) {
        link_close(link, "out of memory");
        return;
    }
    log_debug("node %s of job %u joins", join.node, join.job);
    if (!post_join(leader, m, &join, msg)) {
        roster_drop_newest(leader);
        link_close(link, "out of memory");
        return;
    }
    if (!join.base)
        extensions_joined(leader, m, join.role);
}

/* ---- what they say --------------------------------------------------------------------------- */

void members_leaving(struct leader *leader, struct leader_member *m, json_object *msg)
{
    const char *reason = json_get_string(msg, "reason");
    bool known = change_is_left(m->part);
    struct extension *ext;
    uint32_t job = m->part->job;

    if (m->part->base) {
        post_fact(leader, (struct change_fact){.kind = CHANGE_FACT_LEAVING,
                                               .member = m->id,
                                               .notice = CHANGE_CALLED});
        if (!known)
            leader_roles_stop(leader, reason != NULL ? reason : "ending");
        return;
    }
    if (known) { /* we have told it before, or Slurm has */
        post_fact(leader, (struct change_fact){.kind = CHANGE_FACT_LEAVING,
                                               .member = m->id,
                                               .notice = CHANGE_CALLED});
        return;
    }
    ext = extensions_find(leader, job);
    planning_taken_back(leader, ext != NULL ? ext->asked : -1);
    if (ext != NULL)
        ext->look = leader_now(leader);
    log_info("job %u: Slurm takes extension job %u back", leader->options->job, job);
    /* Slurm takes the whole job: its other nodes need not wait for their own signal. */
    extensions_make_leave(leader, job, CHANGE_CALLED, "not in use");
    /* Slurm knows why; by the time that the next world is formed so do we. */
    slurm_update_poll(leader);
    extensions_member_gone(leader, m);
}

static void ack_output(size_t bytes, void *arg)
{
    struct leader_member *m = arg;
    json_object *msg = leader_message("ack", -1);

    m->unwritten--;
    json_object_object_add(msg, "bytes", json_object_new_int64((int64_t)bytes));
    leader_send(m, msg);
}

void members_out(struct leader *leader, struct leader_member *m, json_object *msg)
{
    const char *data = json_get_string(msg, "data"), *name = json_get_string(msg, "name");
    int64_t rank, fd;
    size_t len;
    unsigned char *bytes;

    if (data == NULL || !json_get_int(msg, "rank", 0, INT32_MAX, &rank) ||
        !json_get_int(msg, "fd", 1, 2, &fd))
        return;
    if (name != NULL) /* of a task of a replica */
        output_label(leader->output, (int)rank, name);
    bytes = malloc(strlen(data) + 1);
    /* Acknowledged when written: so what waits here for a slow reader is bounded by the members'
     * windows. */
    if (bytes != NULL && sodium_base642bin(bytes, strlen(data) + 1, data, strlen(data), NULL, &len,
                                           NULL, sodium_base64_VARIANT_ORIGINAL) == 0) {
        m->unwritten++;
        output_write(leader->output, (int)rank, (int)fd, (char *)bytes, len, ack_output, m);
    }
    free(bytes);
}

void members_beat(struct leader *leader, struct leader_member *m, json_object *msg)
{
    int64_t step, gen;

    if (json_get_int(msg, "step", 0, INT64_MAX, &step))
        m->step = (uint64_t)step;
    /* Before its workers have made a first step of this world, it tells of the world before. */
    if (m->part->stepping && json_get_int(msg, "gen", 1, INT32_MAX, &gen) &&
        gen == change_generation(leader->change))
        report_step(leader, m->step);
    report_progress(leader, m, msg);
    straggler_watch_beat(leader, m, msg);
    lease_beat(leader, m, msg);
    facts_beat(leader, m, msg);
    if (lease_may_act(leader) && change_phase(leader->change) == CHANGE_RUNNING)
        heritage_watch(leader);
}

void members_link_closed(struct leader *leader, struct leader_member *m, const char *why)
{
    roster_unlink(leader, m);
    members_lose(leader, m, why);
}

/* ---- who is silent --------------------------------------------------------------------------- */

static void on_silence(uv_timer_t *timer);

/* This process has been asleep, as a job that is suspended is. What members sent meanwhile is still
 * to be read, and they may have been asleep, too. */
static void forgive(struct leader *leader)
{
    for (int i = 0; i < roster_count(leader); i++)
        if (roster_at(leader, i)->link != NULL)
            roster_at(leader, i)->last_heard = leader_now(leader);
}

void members_awake(struct leader *leader)
{
    double now = leader_now(leader), asleep = now - leader->members->awake;

    if (leader->members->awake > 0 && asleep > AWAKE_PERIOD * 1.4 &&
        asleep > leader->options->conf->heartbeat_timeout / 4)
        forgive(leader);
    leader->members->awake = now;
}

/* The timer is due when somebody could have been silent for too long, not before: an idle job is
 * not to wake up for nothing. */
static void watch(struct leader *leader)
{
    double limit = leader->options->conf->heartbeat_timeout, now = leader_now(leader);
    double due = now + limit;

    for (int i = 0; i < roster_count(leader); i++) {
        const struct leader_member *m = roster_at(leader, i);

        if (m->link != NULL && !roster_is_own(leader, m) && m->last_heard + limit < due)
            due = m->last_heard + limit;
    }
    leader->members->silence_due = due;
    uv_timer_start(&leader->members->silence, on_silence,
                   due > now ? (uint64_t)((due - now) * 1000) + 1 : 1, 0);
}

static void on_silence(uv_timer_t *timer)
{
    struct leader *leader = timer->data;
    double now = leader_now(leader), limit = leader->options->conf->heartbeat_timeout;

    members_awake(leader);
    if (now - leader->members->silence_due > limit / 4)
        forgive(leader);
    for (int i = roster_count(leader) - 1; i >= 0; i--) {
        struct leader_member *m = roster_at(leader, i);

        if (m->link == NULL || roster_is_own(leader, m))
            continue;
        if (now - m->last_heard >= limit) {
            srun_silent(leader, m);
            members_lose(leader, m, "no heartbeat");
            i = roster_count(leader); /* the list has changed */
        }
    }
    post_fact(leader, (struct change_fact){.kind = CHANGE_FACT_WATCH});
    hang_watch(leader);
    straggler_watch(leader);
    if (!uv_is_closing((uv_handle_t *)timer)) /* all can be over now */
        watch(leader);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct members *members_create(void)
{
    return calloc(1, sizeof(struct members));
}

void members_open(struct leader *leader)
{
    leader_timer_init(leader, &leader->members->silence);
    watch(leader);
}

void members_close(struct leader *leader)
{
    leader_timer_close(&leader->members->silence);
}

void members_destroy(struct members *members)
{
    free(members);
}
