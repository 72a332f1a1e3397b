/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The leader: its members, its clock, its decisions (leader.h).
 *
 * Everything that happens (a member joins, leaves, is lost; Slurm says something new; a user asks; time passes) ends in
 * leader_schedule: a little later lib/plan is asked once what should be, and the difference to what is gets carried out. */
#include "agent/leader_internal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sodium.h>

#include "common/log.h"
#include "lib/json_get.h"
#include "lib/tree_order.h"

#define ASSEMBLE_LIMIT 120.0 /* seconds for the base's own members to join */
#define STEP_WAIT      60.0 /* growth waits until the current world has made a step, at most so long */
#define FORM_WAIT      10.0 /* and any change, until live workers have met */
#define LEAVE_WAIT     0.05 /* for others that Slurm preempts with the first: one change for all */
#define CLOSE_LIMIT    3.0  /* seconds for members to end when the job has ended */
#define LEASE_PATIENCE                                                                             \
    6 /* times heartbeat_timeout for others to claim the lead: they notice after three */
#define REQUEUE_LIMIT 60.0 /* for slurmctld to answer that the job is back in the queue */

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

struct leader_member *leader_member_by_id(struct leader *leader, int id)
{
    for (int i = 0; i < leader->member_count; i++)
        if (leader->members[i]->id == id)
            return leader->members[i];
    return NULL;
}

void leader_setback(struct leader *leader)
{
    leader->last_setback = leader_now(leader);
    leader->last_increments = 0;
}

/* ---- deciding ---------------------------------------------------------------------------------------------------------- */

int leader_base_lost(const struct leader *leader)
{
    int there = 0;

    for (int i = 0; i < leader->member_count; i++) {
        const struct leader_member *m = leader->members[i];

        there += m->base && m->link != NULL && !m->leaving && !avoid_member(leader, m);
    }
    return (leader->generation > 0 || leader->lease.term > 0) && there < leader->options->base_nodes
               ? leader->options->base_nodes - there
               : 0;
}

static int fill_plan_input(struct leader *leader, struct plan_input *in,
                           struct plan_member **members, struct plan_extension **extensions)
{
    *members = calloc((size_t)leader->member_count + 1, sizeof(**members));
    *extensions = calloc((size_t)leader->extension_count + 1, sizeof(**extensions));
    if (*members == NULL || *extensions == NULL)
        return -1;
    for (int i = 0; i < leader->member_count; i++) {
        const struct leader_member *m = leader->members[i];

        (*members)[i] = (struct plan_member){
            .id = m->id,
            .job = m->job,
            .base = m->base,
            .usable = m->link != NULL && !m->leaving && !m->released && m->departing == 0 &&
                      leader_now(leader) >= m->shunned_until && !avoid_member(leader, m) &&
                      (!leader->only_warm || m->position >= 0 || m->warm),
            .position = m->position,
            .nodeid = m->nodeid,
            .switches = m->switches,
            .joined = m->joined,
        };
    }
    for (int i = 0; i < leader->extension_count; i++) {
        const struct extension *ext = &leader->extensions[i];

        (*extensions)[i] = (struct plan_extension){
            .job = ext->job,
            .nodes = ext->nodes,
            .state = ext->state,
            .since = ext->since,
            .begin = ext->begin,
            .leaves = ext->leaves,
            .pool = ext->pool != NULL ? ext->pool->name : NULL,
            .reason = ext->reason[0] != '\0' ? ext->reason : NULL,
        };
    }
    *in = (struct plan_input){
        .now = leader_now(leader),
        .sizes = &leader->options->policy->sizes,
        .base_nodes = leader->options->base_nodes,
        .base_lost = leader_base_lost(leader),
        .target = allocate_target(leader),
        .asks = leader->options->policy->grow == POLICY_GROW_ASK &&
                leader->target == leader->options->base_nodes,
        /* Two that share nodes with others could start on the same node: one after the other. */
        .max_pending = leader->base != NULL && !leader->base->exclusive
                           ? 1
                           : leader->options->conf->max_pending,
        .grow_delay = leader->options->policy->grow_delay,
        .snooze = leader->options->policy->snooze,
        .generation_since = leader->generation_since,
        .last_setback = leader->last_setback,
        .last_increments = leader->last_increments,
        .no_pool = extensions_pool(leader) == NULL,
        .submit_error = leader->submit_error[0] != '\0' ? leader->submit_error : NULL,
        .members = *members,
        .member_count = leader->member_count,
        .extensions = *extensions,
        .extension_count = leader->extension_count,
    };
    return 0;
}

static int decide(struct leader *leader, struct plan_output *out)
{
    struct plan_input in;
    struct plan_member *members = NULL;
    struct plan_extension *extensions = NULL;
    int rc = -1;

    if (fill_plan_input(leader, &in, &members, &extensions) == 0)
        rc = plan_decide(&in, out);
    free(members);
    free(extensions);
    return rc;
}

int leader_plan(struct leader *leader, int **order, int *size)
{
    struct plan_output out;

    if (decide(leader, &out) != 0)
        return -1;
    *order = out.order;
    *size = out.size;
    leader->next_size = out.size;
    return 0;
}

/* Has the base come together for the first time? Before that nothing is formed, even if MIN would be met without some. */
static bool assembled(const struct leader *leader)
{
    int base = 0;

    for (int i = 0; i < leader->member_count; i++)
        base += leader->members[i]->base;
    return base >= leader->options->base_nodes || leader->lease.term > 0;
}

/* A world that ends need not grow any more. */
static bool any_completed(const struct leader *leader)
{
    for (int i = 0; i < leader->member_count; i++)
        if (leader->members[i]->position >= 0 && leader->members[i]->completed > 0)
            return true;
    return false;
}

/* A world of live workers that have not met yet. Left alone they will have in a moment, even if some are to leave; told of the next world now, those
 * that have read it are missed by those that wait for them, who find out only when their patience is over. */
static bool is_forming(const struct leader *leader)
{
    return leader_now(leader) < leader->generation_since + FORM_WAIT && live_possible(leader) &&
           !change_all_stepping(leader);
}

/* Does somebody else wait for a node of this world? We do not, for one that we give back, and Slurm does not, for one that it drains. */
static bool is_pressed(const struct leader *leader)
{
    for (int i = 0; i < leader->member_count; i++) {
        const struct leader_member *m = leader->members[i];

        if (m->position >= 0 && (m->link == NULL || m->reclaimed || (m->leaving && !m->unneeded)))
            return true;
    }
    return false;
}

/* Those that stay train on until newcomers are warm, if without these they would have to be started anew. */
static bool is_urgent(struct leader *leader, const struct plan_output *out)
{
    return out->urgent &&
           (is_pressed(leader) || !live_possible(leader) || prepare_warm_suffice(leader));
}

static void change_when_prepared(struct leader *leader, const struct plan_output *out)
{
    double wait = leader->generation_since + STEP_WAIT - leader_now(leader);
    bool urgent = is_urgent(leader, out);

    if (is_forming(leader)) {
        leader_schedule(leader, 0.5);
        return;
    }
    if (leader_now(leader) < leader->leave_at) {
        leader_schedule(leader, leader->leave_at - leader_now(leader));
        return;
    }
    if (!urgent && any_completed(leader))
        return;
    if (!urgent && !change_all_stepping(leader) && wait > 0) {
        leader_schedule(leader, 0.5);
        return;
    }
    /* More nodes than were planned for come with the next change, unless that costs nobody its start. */
    prepare_widen(leader, out->size);
    if (!prepare_usable(leader) || leader->next.world->node_count > out->size)
        prepare_discard(leader);
    if (!urgent && leader->next.world == NULL && prepare_early(leader))
        prepare_begin(leader);
    if (urgent || leader->next.world == NULL)
        change_begin(leader);
    else if (!prepare_done(leader, &wait))
        leader_schedule(leader, wait);
    else if (leader->next.live && !prepare_ready(leader))
        live_give_up(leader);
    else
        change_begin(leader);
}

static void carry_out(struct leader *leader, struct plan_output *out)
{
    double now = leader_now(leader);

    leader->next_size = out->size;
    for (int i = 0; i < out->cancel_count; i++)
        extensions_cancel(leader, out->cancel[i], out->cancel_failed[i], "no longer needed");
    if (out->submit > 0 && leader->submission == NULL && leader->base != NULL &&
        leader->generation > 0 && !leader->stopping) {
        if (now >= leader->submit_after)
            submit_extension(leader, out->submit, out->submit_increments, out->submit_delay);
        else
            leader_schedule(leader, leader->submit_after - now);
    }
    if (leader->torn) {
        tear_form(leader);
        return;
    }
    if (!out->change) {
        if (leader->phase == PHASE_RUNNING)
            prepare_discard(leader); /* what it was for has passed */
        return;
    }
    if (leader->phase == PHASE_WAITING && out->size > 0 &&
        (leader->generation > 0 || assembled(leader))) {
        change_form(leader);
    } else if (leader->phase == PHASE_RUNNING) {
        change_when_prepared(leader, out);
    }
}

static void on_evaluate(uv_timer_t *timer)
{
    struct leader *leader = timer->data;
    struct plan_output out;

    if (leader->phase == PHASE_ENDING || !lease_may_act(leader) || takeover_assembles(leader))
        return;
    if (leader->finish_due)
        change_finish(leader, leader->finish_code);
    lease_watch_heritage(leader);
    allocate_update(leader);
    avoid_watch(leader);
    requeue_watch(leader);
    if (leader->phase == PHASE_ENDING)
        return;
    if (decide(leader, &out) != 0)
        return;
    snprintf(leader->why_size, sizeof(leader->why_size), "%s", out.why_size);
    snprintf(leader->why_not_more, sizeof(leader->why_not_more), "%s", out.why_not_more);
    if (out.wake > 0)
        leader_schedule(leader, out.wake);
    carry_out(leader, &out);
    plan_clear(&out);
}

void leader_schedule(struct leader *leader, double seconds)
{
    uint64_t ms = seconds <= 0 ? 0 : (uint64_t)(seconds * 1000) + 1;

    if (uv_is_closing((uv_handle_t *)&leader->evaluate))
        return;
    if (uv_is_active((uv_handle_t *)&leader->evaluate) &&
        uv_timer_get_due_in(&leader->evaluate) <= ms)
        return;
    uv_timer_start(&leader->evaluate, on_evaluate, ms, 0);
}

/* ---- phases ------------------------------------------------------------------------------------------------------------ */

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
    if (!tear_end(leader, 1))
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
    for (int i = 0; i < leader->member_count; i++)
        leader->members[i]->answered = false;
    if (deadline > 0)
        leader_restart_deadline(leader, deadline);
    else
        uv_timer_stop(&leader->deadline);
}

/* ---- members ----------------------------------------------------------------------------------------------------------- */

static struct leader_member *member_of(struct leader *leader, struct link *link)
{
    for (int i = 0; i < leader->member_count; i++)
        if (leader->members[i]->link == link)
            return leader->members[i];
    return NULL;
}

static void member_free(struct leader_member *member)
{
    world_destroy(member->was_in);
    free(member->node);
    free(member->switches);
    free(member);
}

/* Forget members that have gone and are in no generation. */
static void prune(struct leader *leader)
{
    int kept = 0;

    for (int i = 0; i < leader->member_count; i++) {
        struct leader_member *m = leader->members[i];

        if (m->link == NULL && m->unwritten == 0 && (m->position < 0 || leader->world == NULL))
            member_free(m);
        else
            leader->members[kept++] = m;
    }
    leader->member_count = kept;
}

static void send_release(struct leader_member *member, const char *reason)
{
    json_object *msg = leader_message("release", -1);

    json_object_object_add(msg, "reason", json_object_new_string(reason));
    leader_send(member, msg);
}

void leader_release(struct leader *leader, struct leader_member *member, const char *reason)
{
    (void)leader;
    send_release(member, reason);
    member->released = true;
}

void leader_lose(struct leader *leader, struct leader_member *member, const char *why)
{
    if (member->link != NULL) {
        struct link *link = member->link;

        /* If it can still read this it leaves in order, and does not take the leader for dead. One of the base comes back. */
        if (!member->base)
            send_release(member, why);
        member->link = NULL;
        link_close(link, why);
    }
    if (leader->phase == PHASE_ENDING) {
        leader_handle_closed(leader);
        return;
    }
    if (!member->leaving && !member->released) {
        log_info("job %u: node %s is lost: %s", leader->options->job, member->node, why);
        snprintf(leader->next_reason, sizeof(leader->next_reason), "node %s lost", member->node);
        recovery_lost(leader->recovery, member->node, leader_now(leader));
        leader_setback(leader);
    }
    leader->lost_base = leader->lost_base || member->base;
    exchange_member_gone(leader, member);
    member->torn = member->position >= 0 && !member->drained;
    member->drained = true;
    extensions_member_gone(leader, member);
    change_member_gone(leader, member);
    prepare_again(leader);
    prune(leader);
    leader_schedule(leader, 0);
}

/* NULL: welcome; else why not. */
static const char *refusal(struct leader *leader, const char *node, uint32_t job, bool base,
                           bool leaving)
{
    static char text[200];

    if (leader->phase == PHASE_ENDING || leader->stopping)
        return "the job is ending";
    if (base && leaving) {
        /* SIGTERM came before the join. */
        change_stop_job(leader, "terminated");
        return "the job is ending";
    }
    if (leaving)
        return "its job is already being preempted";
    if (base && job != leader->options->job)
        return "not a node of the base job";
    for (int i = 0; i < leader->member_count; i++) {
        if (leader->members[i]->link == NULL || strcmp(leader->members[i]->node, node) != 0)
            continue;
        snprintf(text, sizeof(text), "node %s already works for this job (job %u)", node,
                 leader->members[i]->job);
        return text;
    }
    if (!base) {
        struct extension *ext = extensions_find(leader, job);
        int nodes = leader->options->base_nodes - leader_base_lost(leader);

        if (ext != NULL && ext->state == PLAN_LEAVING)
            return "this extension is no longer needed";
        for (int i = 0; i < leader->member_count; i++)
            nodes += leader->members[i]->link != NULL && !leader->members[i]->base &&
                     !leader->members[i]->leaving &&
                     !extensions_near_limit(leader, leader->members[i]->job);
        if (nodes + 1 > leader->options->policy->sizes.max) {
            snprintf(text, sizeof(text), "the job has its %d nodes (MAX)",
                     leader->options->policy->sizes.max);
            return text;
        }
    }
    return NULL;
}

static void send_welcome(struct leader *leader, struct leader_member *member, bool keep)
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
    json_object_object_add(msg, "state_dir", json_object_new_string(o->state_dir));
    json_object_object_add(msg, "checkpoint_dir", json_object_new_string(o->checkpoint_dir));
    json_object_object_add(msg, "min_nodes", json_object_new_int(o->policy->sizes.min));
    json_object_object_add(msg, "max_nodes", json_object_new_int(o->policy->sizes.max));
    json_object_object_add(msg, "pmix", json_object_new_boolean(o->pmix));
    json_object_object_add(msg, "max_restarts", json_object_new_int(o->policy->restarts.restarts));
    if (o->policy->scale_config != NULL)
        json_object_object_add(msg, "scale_config", json_object_get(o->policy->scale_config));
    json_object_object_add(msg, "term", json_object_new_int(leader->lease.term));
    json_object_object_add(msg, "address", json_object_new_string(o->address));
    json_object_object_add(msg, "port", json_object_new_int(leader_port(leader)));
    json_object_object_add(msg, "successors", json_object_get(leader->successors));
    json_object_object_add(msg, "you", json_object_new_string(link_peer_address(member->link)));
    json_object_object_add(msg, "slurm_user", json_object_new_int64(o->slurm_user));
    json_object_object_add(msg, "keep", json_object_new_boolean(keep));
    leader_send(member, msg);
    if (member->base)
        lease_tell_heritage(leader, member);
    orphan_tell(leader, member);
}

/* An agent that has lost its link to us comes back before we have noticed. */
static void lose_former(struct leader *leader, const char *node, uint32_t job, int64_t pid)
{
    for (int i = 0; i < leader->member_count; i++) {
        struct leader_member *m = leader->members[i];

        if (m->link == NULL || m->job != job || m->pid != pid || strcmp(m->node, node) != 0)
            continue;
        leader_lose(leader, m, "it has joined again");
        return;
    }
}

static void handle_join(struct leader *leader, struct link *link, json_object *msg)
{
    const char *node = json_get_string(msg, "node");
    const char *switches = json_get_string(msg, "switches");
    bool base = json_get_bool(msg, "base", false);
    int64_t job, restarts, nodeid, slots, pid = 0;
    const char *refused;
    struct leader_member *m, **grown;

    if (!world_name_ok(node) || !json_get_int(msg, "job", 1, UINT32_MAX, &job) ||
        !json_get_int(msg, "restarts", 0, UINT32_MAX, &restarts) ||
        !json_get_int(msg, "nodeid", 0, SIZES_NODES_MAX, &nodeid) ||
        !json_get_int(msg, "slots", 1, WORLD_SLOTS_MAX, &slots)) {
        link_close(link, "a join that cannot be understood");
        return;
    }
    if (json_get_int(msg, "pid", 1, INT32_MAX, &pid))
        lose_former(leader, node, (uint32_t)job, pid);
    if (leader->deposed) { /* and is not to be refused: another node leads */
        link_close(link, "this node does not lead the job any more");
        return;
    }
    refused = refusal(leader, node, (uint32_t)job, base, json_get_bool(msg, "leaving", false));
    if (refused != NULL) {
        json_object *answer = leader_message("refuse", -1);

        json_object_object_add(answer, "reason", json_object_new_string(refused));
        link_send(link, answer);
        link_close(link, refused);
        return;
    }
    grown = realloc(leader->members, ((size_t)leader->member_count + 1) * sizeof(*grown));
    if (grown != NULL)
        leader->members = grown;
    m = grown != NULL ? calloc(1, sizeof(*m)) : NULL;
    if (m == NULL || (m->node = strdup(node)) == NULL) {
        free(m);
        link_close(link, "out of memory");
        return;
    }
    m->id = leader->next_id++;
    m->link = link;
    m->job = (uint32_t)job;
    m->restarts = (uint32_t)restarts;
    m->base = base;
    m->nodeid = (int)nodeid;
    m->slots = (int)slots;
    m->switches = switches != NULL && strlen(switches) < TREE_PATH_MAX ? strdup(switches) : NULL;
    m->pid = pid;
    m->joined = m->last_heard = leader_now(leader);
    m->seen = m->joined - leader->options->conf->heartbeat_timeout / 2.0; /* nothing of ours yet */
    m->heard = true; /* if it is not any more when that is looked at first, it has been lost */
    m->position = m->next_position = -1;
    leader->members[leader->member_count++] = m;
    log_debug("node %s of job %u joins", m->node, m->job);
    send_welcome(leader, m, takeover_joined(leader, m, msg));
    if (!base)
        extensions_joined(leader, m);
    leader_schedule(leader, 0);
}

static void handle_leaving(struct leader *leader, struct leader_member *m, json_object *msg)
{
    const char *reason = json_get_string(msg, "reason");

    if (m->leaving && m->unneeded) {
        m->unneeded = false; /* it had time until now */
        leader_schedule(leader, 0);
    }
    if (m->leaving)
        return;
    m->leaving = true;
    if (m->base) {
        change_stop_job(leader, reason != NULL ? reason : "ending");
        return;
    }
    leader_setback(leader);
    leader->leave_at = leader_now(leader) + LEAVE_WAIT;
    /* Slurm takes the whole job: its other nodes need not wait for their own signal. */
    for (int i = 0; i < leader->member_count; i++) {
        struct leader_member *each = leader->members[i];

        if (each->job != m->job)
            continue;
        log_info("job %u: Slurm takes node %s back", leader->options->job, each->node);
        each->leaving = true;
        if (each->position < 0 || leader->world == NULL || each->drained)
            leader_release(leader, each, "not in use");
        else
            leader->leaving_job = m->job;
    }
    if (leader->leaving_job == m->job) {
        snprintf(leader->next_reason, sizeof(leader->next_reason), "extension job %u has to leave",
                 m->job);
        /* Slurm knows why; by the time that the next world is formed so do we. */
        leader->last_poll = 0;
        extensions_poll(leader);
    }
    extensions_member_gone(leader, m);
    prepare_again(leader);
    leader_schedule(leader, 0);
}

static void ack_output(size_t bytes, void *arg)
{
    struct leader_member *m = arg;
    json_object *msg = leader_message("ack", -1);

    m->unwritten--;
    json_object_object_add(msg, "bytes", json_object_new_int64((int64_t)bytes));
    leader_send(m, msg);
}

static void handle_out(struct leader *leader, struct leader_member *m, json_object *msg)
{
    const char *data = json_get_string(msg, "data");
    int64_t rank, fd;
    size_t len;
    unsigned char *bytes;

    if (data == NULL || !json_get_int(msg, "rank", 0, INT32_MAX, &rank) ||
        !json_get_int(msg, "fd", 1, 2, &fd))
        return;
    bytes = malloc(strlen(data) + 1);
    /* Acknowledged when written: so what waits here for a slow reader is bounded by the members' windows. */
    if (bytes != NULL && sodium_base642bin(bytes, strlen(data) + 1, data, strlen(data), NULL, &len,
                                           NULL, sodium_base64_VARIANT_ORIGINAL) == 0) {
        m->unwritten++;
        output_write(leader->output, (int)rank, (int)fd, (char *)bytes, len, ack_output, m);
    }
    free(bytes);
}

static void on_open(struct link *link, void *arg)
{
    (void)link;
    (void)arg;
}

static void on_message(struct link *link, json_object *msg, void *arg)
{
    struct leader *leader = arg;
    const char *type = json_get_string(msg, "t");
    struct leader_member *m = member_of(leader, link);

    if (type == NULL)
        return;
    if (strcmp(link_role(link), LINK_ROLE_CONTROL) == 0) {
        report_control(leader, link, type, msg);
        return;
    }
    if (m == NULL) {
        if (strcmp(type, "join") == 0)
            handle_join(leader, link, msg);
        return;
    }
    m->last_heard = leader_now(leader);
    if (strcmp(type, "end") == 0) {
        const char *reason = json_get_string(msg, "reason");

        change_stop_job(leader, reason != NULL ? reason : "a program has asked for it");
    } else if (strcmp(type, "unwatched") == 0) {
        srun_unwatched(leader, m, msg);
    } else if (strcmp(type, "reclaim") == 0) {
        avoid_reclaimed(leader, m);
    } else if (strcmp(type, "leaving") == 0) {
        handle_leaving(leader, m, msg);
    } else if (strcmp(type, "out") == 0) {
        handle_out(leader, m, msg);
    } else if (strcmp(type, "beat") == 0) {
        int64_t step, slowest;

        if (json_get_int(msg, "step", 0, INT64_MAX, &step))
            m->step = (uint64_t)step;
        if (json_get_int(msg, "slowest", 0, UINT32_MAX, &slowest))
            m->slowest = (uint32_t)slowest;
        report_progress(leader, m, msg);
        lease_beat(leader, m, msg);
        tear_hear(leader, m, msg);
    } else if (strcmp(type, "listen") == 0) {
        lease_listens(leader, m, msg);
    } else if (!store_on_message(leader, m, type, msg) &&
               !exchange_on_message(leader, m, type, msg)) {
        change_on_message(leader, m, type, msg);
    }
}

static void on_link_closed(struct link *link, const char *why, void *arg)
{
    struct leader *leader = arg;
    struct leader_member *m = member_of(leader, link);

    if (m == NULL)
        return;
    m->link = NULL;
    leader_lose(leader, m, why);
}

static const struct link_handlers handlers = {
    .open = on_open, .message = on_message, .closed = on_link_closed};

static void on_silence(uv_timer_t *timer);

/* The timer is due when somebody could have been silent for too long, not before: an idle job is not to wake up for nothing. */
static void watch_silence(struct leader *leader)
{
    double limit = leader->options->conf->heartbeat_timeout, now = leader_now(leader);
    double due = now + limit;

    for (int i = 0; i < leader->member_count; i++)
        if (leader->members[i]->link != NULL && leader->members[i]->last_heard + limit < due)
            due = leader->members[i]->last_heard + limit;
    leader->silence_due = due;
    uv_timer_start(&leader->silence, on_silence, due > now ? (uint64_t)((due - now) * 1000) + 1 : 1,
                   0);
}

static void on_silence(uv_timer_t *timer)
{
    struct leader *leader = timer->data;
    double now = leader_now(leader), limit = leader->options->conf->heartbeat_timeout;
    /* Have we been asleep ourselves (a slow disk, a stopped process)? Then what was sent meanwhile is still to be read. */
    bool late = now - leader->silence_due > limit / 4;

    for (int i = leader->member_count - 1; i >= 0; i--) {
        struct leader_member *m = leader->members[i];

        if (m->link == NULL)
            continue;
        if (late)
            m->last_heard = now;
        if (now - m->last_heard >= limit) {
            srun_silent(leader, m);
            leader_lose(leader, m, "no heartbeat");
            i = leader->member_count; /* the list has changed */
        }
    }
    live_watch(leader);
    hang_watch(leader);
    if (!uv_is_closing((uv_handle_t *)timer)) /* all can be over now */
        watch_silence(leader);
}

static void on_poll(uv_timer_t *timer)
{
    extensions_poll(timer->data);
    srun_watch(timer->data);
}

/* ---- life -------------------------------------------------------------------------------------------------------------- */

static void handle_closed(uv_handle_t *handle)
{
    struct leader *leader = handle->data;

    if (--leader->open_handles == 0) {
        leader->done_called = true;
        leader->done(leader->exit_code, leader->arg);
    }
}

static void output_gone(void *arg)
{
    struct leader *leader = arg;

    if (--leader->open_handles == 0) {
        leader->done_called = true;
        leader->done(leader->exit_code, leader->arg);
    }
}

/* Called when a member's link has ended or the last extension is cancelled while the job ends: finished once nobody is left or time is up. */
void leader_handle_closed(struct leader *leader)
{
    double since = leader_now(leader) - leader->phase_since;

    if (leader->server == NULL)
        return;
    if (leader->requeueing && since < REQUEUE_LIMIT) {
        uv_timer_start(&leader->deadline, on_deadline, 200, 0);
        return;
    }
    for (int i = 0; i < leader->member_count; i++)
        if (leader->members[i]->link != NULL && since < CLOSE_LIMIT)
            return;
    if (leader->looking_for_srun || (srun_busy(leader) && since < 2 * CLOSE_LIMIT)) {
        uv_timer_start(&leader->deadline, on_deadline, 200, 0);
        return;
    }
    if ((!leader->cleaned || leader->cancelling > 0 || leader->polling ||
         leader->submission != NULL) &&
        since < 4 * CLOSE_LIMIT) {
        uv_timer_start(&leader->deadline, on_deadline, 200, 0);
        return;
    }
    if (orphan_ends(leader))
        return;
    link_server_destroy(leader->server);
    leader->server = NULL;
    uv_close((uv_handle_t *)&leader->evaluate, handle_closed);
    uv_close((uv_handle_t *)&leader->deadline, handle_closed);
    uv_close((uv_handle_t *)&leader->silence, handle_closed);
    uv_close((uv_handle_t *)&leader->poll, handle_closed);
    uv_close((uv_handle_t *)&leader->lookups, handle_closed);
    uv_close((uv_handle_t *)&leader->store_due, handle_closed);
    output_destroy(leader->output, 2000, output_gone, leader);
    leader->output = NULL;
}

static void init_timer(struct leader *leader, uv_timer_t *timer)
{
    uv_timer_init(leader->loop, timer);
    timer->data = leader;
    leader->open_handles++;
}

static struct leader *discard(struct leader *leader)
{
    if (leader == NULL)
        return NULL;
    requests_destroy(leader->requests);
    recovery_destroy(leader->recovery);
    json_object_put(leader->successors);
    free(leader);
    return NULL;
}

struct leader *leader_create(uv_loop_t *loop, const struct leader_options *options,
                             void (*done)(int code, void *arg), void *arg, struct error *err)
{
    struct leader *leader = calloc(1, sizeof(*leader));
    struct link_server_options server = {
        .job_id = options->job,
        .restarts = options->restarts,
        .munge_socket = options->conf->munge_socket,
        .slurm_user = options->slurm_user,
        .port_first = options->conf->port_first,
        .port_last = options->conf->port_last,
    };

    if (leader != NULL) {
        leader->requests = requests_create();
        leader->recovery = recovery_create(&options->policy->restarts, options->conf->node_backoff);
    }
    if (leader != NULL)
        leader->successors = json_object_new_array();
    if (leader == NULL || leader->requests == NULL || leader->recovery == NULL) {
        error_set(err, "out of memory");
        return discard(leader);
    }
    leader->loop = loop;
    leader->options = options;
    leader->done = done;
    leader->arg = arg;
    /* By itself to MAX, or from where it is when somebody asks. */
    leader->target = options->policy->grow == POLICY_GROW_ASK ? options->base_nodes
                                                              : options->policy->sizes.max;
    leader->generation_since = leader->last_setback = leader->pause_from = -1;
    leader->started = unix_now();
    leader->submit_backoff = 2;
    leader->stop_code = 128 + SIGTERM;
    leader->last_generation = report_last_generation(options);
    leader->lease.nodes = options->base_nodes;
    leader->lease.patience = LEASE_PATIENCE * options->conf->heartbeat_timeout;
    leader->server = options->server != NULL
                         ? options->server
                         : link_server_create(loop, &server, &handlers, leader, err);
    if (leader->server == NULL)
        return discard(leader);
    if (options->server != NULL)
        link_server_lead(leader->server, &handlers, leader);
    leader->output = output_create(loop, options->label, NULL, leader);
    leader->open_handles++;
    init_timer(leader, &leader->evaluate);
    init_timer(leader, &leader->deadline);
    init_timer(leader, &leader->silence);
    init_timer(leader, &leader->poll);
    init_timer(leader, &leader->lookups);
    init_timer(leader, &leader->store_due);
    watch_silence(leader);
    uv_timer_start(&leader->poll, on_poll, 0, 1000);
    leader_set_phase(leader, PHASE_WAITING, ASSEMBLE_LIMIT);
    if (options->server != NULL)
        takeover_begin(leader);
    return leader;
}

void leader_adopt(struct leader *leader, struct link *link, json_object *said)
{
    for (size_t i = 0; i < json_object_array_length(said); i++)
        on_message(link, json_object_array_get_idx(said, i), leader);
}

int leader_port(const struct leader *leader)
{
    return link_server_port(leader->server);
}

void leader_destroy(struct leader *leader)
{
    if (leader == NULL)
        return;
    claim_forget(leader->claim);
    store_free(leader);
    for (int i = 0; i < leader->member_count; i++)
        member_free(leader->members[i]);
    free(leader->members);
    extensions_free(leader);
    report_free(leader);
    world_destroy(leader->world);
    world_destroy(leader->next.world);
    exchange_end(leader, &leader->exchange);
    exchange_end(leader, &leader->next.exchange);
    publish_free(leader);
    srun_free(leader);
    job_info_free(leader->base);
    discard(leader);
}
