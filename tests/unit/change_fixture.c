/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A job around the change machine, for its tests (change_fixture.h). */
#include "tests/unit/support.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/text.h"
#include "tests/unit/change_fixture.h"

#define BASE_JOB 12
#define STEP_END 1000000

int job_member_count(const struct job *job)
{
    int count = 0;

    for (int id = 1; id <= job->last_id; id++)
        count += change_member(job->change, id) != NULL;
    return count;
}

const struct change_member *job_member_at(const struct job *job, int index)
{
    for (int id = 1; id <= job->last_id; id++) {
        const struct change_member *m = change_member(job->change, id);

        if (m != NULL && index-- == 0)
            return m;
    }
    return NULL;
}

/* ---- the questions --------------------------------------------------------------------------- */

static int base_of_world(const struct job *job)
{
    return job->options.world_nodes > 0 ? job->options.world_nodes : job->options.base_nodes;
}

static int make_plan(void *arg, bool only_warm, struct plan_output *out)
{
    struct job *job = arg;
    struct plan_member members[JOB_MEMBERS_MAX];
    struct plan_extension extensions[JOB_MEMBERS_MAX];
    int count = job_member_count(job), there = 0, base = base_of_world(job);
    bool any = change_any_stateful(job->change);
    static const struct plan_pool pool = {.name = "elastic", .room = SIZES_NODES_MAX};
    struct plan_input in = {.now = job->now,
                            .sizes = &job->policy.sizes,
                            .base_nodes = base,
                            .target = job->target > 0 ? job->target : job->policy.sizes.max,
                            .max_pending = 1,
                            .generation_since = change_since(job->change),
                            .setbacks.last = -1,
                            .stands_since = -1,
                            .pools = &pool,
                            .pool_count = 1,
                            .members = members,
                            .extensions = extensions};

    for (int i = 0; i < count; i++) {
        const struct change_member *m = job_member_at(job, i);

        if (m->apart)
            continue;
        if (!m->base && m->there)
            extensions[in.extension_count++] = (struct plan_extension){
                .job = m->job,
                .nodes = 1,
                .since = job->now - 50,
                .state = m->notice == CHANGE_STAYS ? PLAN_JOINED : PLAN_LEAVING};
        there += m->base && m->there && m->notice == CHANGE_STAYS;
        members[in.member_count++] = (struct plan_member){
            .id = m->id,
            .job = m->job,
            .base = m->base,
            .usable = change_is_usable(m, job->now) &&
                      (!only_warm || m->place >= 0 || m->state == CHANGE_WARM),
            .has_state = change_has_state(job->change, m, any),
            .position = m->place,
            .nodeid = m->nodeid,
            .joined = job->now - 100,
        };
    }
    if (change_generation(job->change) > 0 && there < base)
        in.base_lost = base - there;
    in.before_loss = change_nodes_before_loss(job->change, &in.replace_until);
    return plan_decide(&in, out);
}

static bool may_act(void *arg)
{
    return ((const struct job *)arg)->may_act;
}

/* ---- its life -------------------------------------------------------------------------------- */

void job_begin(struct job *job, const char *sizes, int base, enum change_mode mode)
{
    struct error err = {""};

    memset(job, 0, sizeof(*job));
    policy_init(&job->policy);
    if (policy_set(&job->policy, "elastic", sizes, &err) != 0)
        fail_msg("%s", err.text);
    policy_defaults(&job->policy);
    job->recovery = recovery_create(&job->policy.restarts, 60);
    assert_non_null(job->recovery);
    job->now = 1000;
    job->may_act = true;
    job->options = (struct change_options){.job = BASE_JOB,
                                           .policy = &job->policy,
                                           .recovery = job->recovery,
                                           .mode = mode,
                                           .base_nodes = base,
                                           .address = "192.0.2.1",
                                           .early_start = true,
                                           .newcomer_timeout = 60,
                                           .step_end = STEP_END,
                                           .ask = {make_plan, may_act, job}};
    job->change = change_create(&job->options, job->now);
    assert_non_null(job->change);
}

void job_take_over(struct job *job)
{
    change_destroy(job->change);
    job->options.term = 1;
    job->change = change_create(&job->options, job->now);
    assert_non_null(job->change);
    job->last_id = 0;
    job_forget(job);
}

void job_end(struct job *job)
{
    change_actions_clear(&job->out);
    change_destroy(job->change);
    recovery_destroy(job->recovery);
    policy_clear(&job->policy);
}

/* ---- facts ----------------------------------------------------------------------------------- */

struct change_fact job_fact(const struct job *job, enum change_fact_kind kind, int member)
{
    return (struct change_fact){.kind = kind, .now = job->now, .member = member, .text = "why"};
}

static void note(struct job *job, const struct change_action *action)
{
    if (action->kind == CHANGE_FINISH) {
        assert_false(job->finished);
        job->finished = true;
        job->code = action->number;
    }
    /* A row of the table that names too few phases says so. */
    if (action->kind == CHANGE_SAY_ERROR && strstr(action->text, "is not to be followed") != NULL)
        fail_msg("%s", action->text);
    if (action->kind == CHANGE_WORLD_OVER)
        job->code = action->number;
    if (action->kind >= CHANGE_DECIDE && action->kind != CHANGE_FINISH &&
        action->kind != CHANGE_WORLD_OVER && action->kind != CHANGE_ABANDON &&
        action->kind != CHANGE_LOSE)
        return;
    text_append(job->said, sizeof(job->said), "%s%s", job->said[0] != '\0' ? ", " : "",
                job_action_name(action->kind));
    if (action->member != 0)
        text_append(job->said, sizeof(job->said), " %d", action->member);
}

void job_feed(struct job *job, const struct change_fact *fact)
{
    change_actions_clear(&job->out);
    assert_int_equal(change_feed(job->change, fact, &job->out), 0);
    for (int i = 0; i < job->out.count; i++)
        note(job, &job->out.list[i]);
}

void job_tell(struct job *job, enum change_fact_kind kind, int member)
{
    struct change_fact fact = job_fact(job, kind, member);

    job_feed(job, &fact);
}

void job_say(struct job *job, enum change_fact_kind kind, int member)
{
    struct change_fact fact = job_fact(job, kind, member);

    fact.generation = change_generation(job->change);
    fact.started = change_member(job->change, member)->started;
    fact.live = job->options.mode != CHANGE_RESTART;
    fact.signature = 7;
    fact.aware = true;
    job_feed(job, &fact);
}

static int join(struct job *job, bool base, bool apart)
{
    char node[16];
    struct change_join join = {.id = ++job->last_id,
                               .node = node,
                               .address = "192.0.2.2",
                               .base = base,
                               .apart = apart,
                               .slots = 1};
    struct change_fact fact = job_fact(job, CHANGE_FACT_JOINED, 0);

    snprintf(node, sizeof(node), "n%d", join.id);
    join.job = base ? BASE_JOB : (uint32_t)(100 + join.id);
    join.nodeid = base ? join.id - 1 : 0;
    fact.join = &join;
    job_feed(job, &fact);
    return join.id;
}

int job_join(struct job *job, bool base)
{
    return join(job, base, false);
}

int job_join_apart(struct job *job, bool base)
{
    return join(job, base, true);
}

void job_plan(struct job *job)
{
    struct change_fact fact = job_fact(job, CHANGE_FACT_PLAN, 0);
    struct plan_output plan;

    assert_int_equal(make_plan(job, false, &plan), 0);
    fact.plan = &plan;
    job_feed(job, &fact);
    plan_clear(&plan);
}

void job_pass(struct job *job, double seconds)
{
    double until = job->now + seconds, due;

    while ((due = change_deadline(job->change)) > 0 && due <= until) {
        job->now = due > job->now ? due : job->now;
        job_tell(job, CHANGE_FACT_TIME, 0);
    }
    job->now = until;
}

void job_forget(struct job *job)
{
    job->said[0] = '\0';
}

/* ---- passages -------------------------------------------------------------------------------- */

/* For each member with a place in the present world that is there. */
static void say_all(struct job *job, enum change_fact_kind kind)
{
    for (int i = 0; i < job_member_count(job); i++) {
        const struct change_member *m = job_member_at(job, i);

        if (m->place >= 0 && m->there && m->state == CHANGE_IN_WORLD)
            job_say(job, kind, m->id);
    }
}

void job_ready(struct job *job)
{
    say_all(job, CHANGE_FACT_READY);
}

void job_step(struct job *job)
{
    say_all(job, CHANGE_FACT_STEPPING);
}

static int first_of_next(const struct job *job)
{
    for (int i = 0; i < job_member_count(job); i++)
        if (job_member_at(job, i)->next_place == 0)
            return job_member_at(job, i)->id;
    return 0;
}

void job_form(struct job *job)
{
    if (change_next(job->change)->world == NULL)
        job_plan(job);
    if (change_phase(job->change) == CHANGE_RESERVING) {
        struct change_fact fact = job_fact(job, CHANGE_FACT_RESERVED, first_of_next(job));

        fact.attempt = change_next(job->change)->attempt;
        fact.port = 4000;
        job_feed(job, &fact);
    }
    if (change_phase(job->change) == CHANGE_PROMOTING)
        job_tell(job, CHANGE_FACT_PROMOTED, 0);
    job_ready(job);
    assert_string_equal(job_phase(job), "RUNNING");
}

void job_start(struct job *job)
{
    job_form(job);
    job_step(job);
    job_forget(job);
}

void job_hold(struct job *job, uint64_t step)
{
    for (int i = 0; i < job_member_count(job); i++) {
        const struct change_member *m = job_member_at(job, i);
        struct change_fact fact = job_fact(job, CHANGE_FACT_HELD, m->id);

        if (m->place < 0 || !m->there || m->state != CHANGE_IN_WORLD)
            continue;
        fact.generation = change_generation(job->change);
        fact.held = (struct change_held){.attached = 1, .training = 1, .running = 1, .step = step};
        job_feed(job, &fact);
    }
}

void job_leave(struct job *job)
{
    for (int i = 0; i < job_member_count(job); i++) {
        const struct change_member *m = job_member_at(job, i);
        struct change_fact fact = job_fact(job, CHANGE_FACT_EXITED, m->id);

        if (m->place < 0 || !m->there || m->state != CHANGE_IN_WORLD)
            continue;
        fact.started = m->started;
        fact.told = true;
        job_feed(job, &fact);
        job_say(job, CHANGE_FACT_DRAINED, m->id);
        i = -1; /* what that was followed by may have changed every place */
        if (change_phase(job->change) != CHANGE_DRAINING &&
            change_phase(job->change) != CHANGE_KILLING &&
            change_phase(job->change) != CHANGE_SAVING)
            return;
    }
}

/* ---- ends ---------------------------------------------------------------------------------- */

int failed_exit(struct job *job, int id, int code, int signal)
{
    struct change_fact fact = job_fact(job, CHANGE_FACT_EXITED, id);

    fact.started = change_member(job->change, id)->started;
    fact.code = code;
    fact.signal = signal;
    job_feed(job, &fact);
    return change_phase(job->change);
}

void end_well(struct job *job, int id)
{
    struct change_fact drained = job_fact(job, CHANGE_FACT_DRAINED, id);

    failed_exit(job, id, 0, 0);
    drained.started = change_member(job->change, id)->started;
    drained.completed = true;
    job_feed(job, &drained);
}

/* ---- words ----------------------------------------------------------------------------------- */

const char *job_phase(const struct job *job)
{
    return change_phase_name(change_phase(job->change));
}

const char *job_action_name(enum change_action_kind kind)
{
    static const char *const names[] = {[CHANGE_WELCOME] = "WELCOME",
                                        [CHANGE_RELEASE] = "RELEASE",
                                        [CHANGE_RESERVE] = "RESERVE",
                                        [CHANGE_PREPARE] = "PREPARE",
                                        [CHANGE_DISCARD] = "DISCARD",
                                        [CHANGE_START] = "START",
                                        [CHANGE_ENTER] = "ENTER",
                                        [CHANGE_OPEN] = "OPEN",
                                        [CHANGE_HOLD] = "HOLD",
                                        [CHANGE_RUN_TO] = "RUN_TO",
                                        [CHANGE_RUN_TO_NEXT] = "RUN_TO_NEXT",
                                        [CHANGE_NEXT] = "NEXT",
                                        [CHANGE_LEAVE] = "LEAVE",
                                        [CHANGE_ABORT] = "ABORT",
                                        [CHANGE_SIGNAL] = "SIGNAL",
                                        [CHANGE_RELAY] = "RELAY",
                                        [CHANGE_RELAY_END] = "RELAY_END",
                                        [CHANGE_RELAY_TAKEN] = "RELAY_TAKEN",
                                        [CHANGE_STORE_END] = "STORE_END",
                                        [CHANGE_BEGIN_WORLD] = "BEGIN_WORLD",
                                        [CHANGE_STEPPED] = "STEPPED",
                                        [CHANGE_PROMOTE] = "PROMOTE",
                                        [CHANGE_SETBACK] = "SETBACK",
                                        [CHANGE_CAUSE] = "CAUSE",
                                        [CHANGE_REQUEUE] = "REQUEUE",
                                        [CHANGE_END_REQUESTS] = "END_REQUESTS",
                                        [CHANGE_LOSE] = "LOSE",
                                        [CHANGE_FINISH] = "FINISH",
                                        [CHANGE_WORLD_OVER] = "WORLD_OVER",
                                        [CHANGE_ABANDON] = "ABANDON"};

    return names[kind];
}

void said(struct job *job, const char *expected)
{
    assert_string_equal(job->said, expected);
    job_forget(job);
}

void in_phase(const struct job *job, const char *phase)
{
    assert_string_equal(job_phase(job), phase);
}
