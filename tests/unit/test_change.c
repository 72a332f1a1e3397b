/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/change: passages through the table, and random histories. */
#include "tests/unit/support.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/change_fixture.h"

/* A base of two, in its first world, which has made a step. */
static void begin_trained(struct job *job, const char *sizes, enum change_mode mode)
{
    job_begin(job, sizes, 2, mode);
    job_join(job, true);
    job_join(job, true);
    job_start(job);
    job_pass(job, 100); /* nothing waits for a first step any more */
}

/* Live mode: a newcomer joins, and its workers come to their gates. Returns its id. */
static int warm_newcomer(struct job *job)
{
    int id = job_join(job, false);
    struct change_fact parked = job_fact(job, CHANGE_FACT_PARKED, id);

    job_plan(job);
    parked.attempt = change_next(job->change)->attempt;
    parked.live = true;
    parked.signature = 7;
    job_feed(job, &parked);
    job_forget(job);
    return id;
}

/* Live mode: a world of three, of which member 3 is an extension's. */
static void begin_grown_live(struct job *job, const char *sizes)
{
    begin_trained(job, sizes, CHANGE_AUTO);
    warm_newcomer(job);
    job_plan(job);
    job_hold(job, 12);
    job_ready(job);
    job_step(job);
    job_pass(job, 100);
}

/* Slurm takes the member's node, and the change that follows begins. */
static void call_node(struct job *job, int id)
{
    struct change_fact leaving = job_fact(job, CHANGE_FACT_LEAVING, id);

    leaving.notice = CHANGE_CALLED;
    job_feed(job, &leaving);
    job_pass(job, 0.1);
    job_plan(job);
}

/* ---- a world begins -------------------------------------------------------------------------- */

static void test_first_world(void **state)
{
    struct job job;
    struct change_fact reserved;

    (void)state;
    job_begin(&job, "2:4", 2, CHANGE_AUTO);
    job_join(&job, true);
    job_plan(&job);
    in_phase(&job, "ASSEMBLING");
    job_join(&job, true);
    job_forget(&job);
    job_plan(&job);
    said(&job, "RELAY, RESERVE 1");
    in_phase(&job, "RESERVING");
    reserved = job_fact(&job, CHANGE_FACT_RESERVED, 1);
    reserved.port = 4000;
    reserved.attempt = change_next(job.change)->attempt + 1;
    job_feed(&job, &reserved); /* of another attempt */
    in_phase(&job, "RESERVING");
    reserved.attempt--;
    job_feed(&job, &reserved);
    said(&job, "PROMOTE");
    job_tell(&job, CHANGE_FACT_PROMOTED, 0);
    said(&job, "BEGIN_WORLD, START 1, START 2");
    in_phase(&job, "STARTING");
    job_say(&job, CHANGE_FACT_LISTENING, 1);
    said(&job, "OPEN 2");
    job_say(&job, CHANGE_FACT_READY, 1);
    in_phase(&job, "STARTING");
    job_say(&job, CHANGE_FACT_READY, 2);
    in_phase(&job, "RUNNING");
    assert_int_equal(change_generation(job.change), 1);
    assert_string_equal(change_world(job.change)->nodes[1].name, "n2");
    job_end(&job);
}

static void test_no_base(void **state)
{
    struct job job;

    (void)state;
    job_begin(&job, "2:4", 2, CHANGE_AUTO);
    job_join(&job, true);
    job_pass(&job, 119);
    in_phase(&job, "ASSEMBLING");
    job_pass(&job, 2);
    in_phase(&job, "ENDING");
    assert_int_equal(job.code, 1);
    job_end(&job);
}

static void test_port_is_not_said(void **state)
{
    struct job job;

    (void)state;
    job_begin(&job, "1:4", 2, CHANGE_AUTO);
    job_join(&job, true);
    job_join(&job, true);
    job_plan(&job);
    job_forget(&job);
    job_pass(&job, 5.1);
    said(&job, "LOSE 1");
    job_tell(&job, CHANGE_FACT_GONE, 1);
    in_phase(&job, "RESERVING");
    said(&job, "RELAY_END, RELAY, RESERVE 2");
    job_end(&job);
}

/* ---- restart mode ---------------------------------------------------------------------------- */

static void test_grow(void **state)
{
    struct job job;

    (void)state;
    begin_trained(&job, "2:4", CHANGE_RESTART);
    job_join(&job, false);
    job_forget(&job);
    job_plan(&job);
    in_phase(&job, "HOLDING");
    said(&job, "HOLD 1, HOLD 2");
    job_hold(&job, 41);
    said(&job, "RUN_TO 1, RUN_TO 2");
    assert_int_equal(job.out.list[0].step, 41);
    in_phase(&job, "DRAINING");
    job_leave(&job);
    in_phase(&job, "RESERVING");
    job_start(&job);
    assert_int_equal(change_world(job.change)->node_count, 3);
    assert_string_equal(change_world(job.change)->kind, "grow");
    job_end(&job);
}

/* No worker has attached in time: the user hears once what that means, unless he has said the
 * mode. */
static void test_unheard_script(void **state)
{
    static const struct {
        enum change_mode mode;
        int seconds;
        bool said;
    } cases[] = {{CHANGE_AUTO, 15, true}, {CHANGE_AUTO, 0, false}, {CHANGE_RESTART, 15, false}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct job job;
        struct change_fact fact;

        begin_trained(&job, "2:4", cases[i].mode);
        fact = job_fact(&job, CHANGE_FACT_STEPPING, 1);
        fact.generation = 1;
        fact.unheard = cases[i].seconds;
        for (int time = 0; time < 2; time++) {
            int lines = 0;

            job_feed(&job, &fact);
            for (int k = 0; k < job.out.count; k++)
                lines += job.out.list[k].kind == CHANGE_SAY;
            assert_int_equal(lines, time == 0 && cases[i].said);
        }
        job_end(&job);
    }
}

static void test_early_start(void **state)
{
    struct job job;
    struct change_fact fact;

    (void)state;
    begin_trained(&job, "2:4", CHANGE_RESTART);
    fact = job_fact(&job, CHANGE_FACT_STEPPING, 1);
    fact.generation = 1;
    fact.gate = true;
    job_feed(&job, &fact);
    job_join(&job, false);
    job_forget(&job);
    job_plan(&job);
    in_phase(&job, "RUNNING");
    said(&job, "RELAY, RESERVE 1");
    fact = job_fact(&job, CHANGE_FACT_RESERVED, 1);
    fact.attempt = change_next(job.change)->attempt;
    fact.port = 4001;
    job_feed(&job, &fact);
    said(&job, "PREPARE 1, PREPARE 2, PREPARE 3");
    for (int id = 1; id <= 3; id++) {
        fact = job_fact(&job, CHANGE_FACT_PARKED, id);
        fact.attempt = change_next(job.change)->attempt;
        job_feed(&job, &fact);
    }
    job_plan(&job);
    in_phase(&job, "HOLDING");
    job_hold(&job, 9);
    job_forget(&job);
    job_leave(&job);
    said(&job, "PROMOTE");
    job_tell(&job, CHANGE_FACT_PROMOTED, 0);
    said(&job, "BEGIN_WORLD, START 1, START 2, START 3");
    job_end(&job);
}

static void test_workers_do_not_leave(void **state)
{
    struct job job;

    (void)state;
    begin_trained(&job, "2:4", CHANGE_RESTART);
    job_join(&job, false);
    job_plan(&job);
    job_hold(&job, 41);
    job_forget(&job);
    job_pass(&job, 601);
    in_phase(&job, "KILLING");
    said(&job, "SIGNAL 1, SIGNAL 2");
    assert_int_equal(job.out.list[job.out.count - 1].number, SIGKILL);
    job_pass(&job, 10.5);
    said(&job, "LOSE 2");
    job_end(&job);
}

static void test_worker_fails(void **state)
{
    struct job job;

    (void)state;
    begin_trained(&job, "2:4", CHANGE_RESTART);
    assert_int_equal(failed_exit(&job, 2, 1, 0), CHANGE_KILLING);
    said(&job, "SIGNAL 1, SIGNAL 2, STORE_END");
    job_leave(&job);
    said(&job, "CAUSE, RELAY, RESERVE 1");
    in_phase(&job, "RESERVING");
    assert_int_equal(change_faults(job.change), 1);
    job_end(&job);
}

/* Another user has taken MASTER_PORT. */
static void lose_port(struct job *job)
{
    struct change_fact fact = job_fact(job, CHANGE_FACT_EXITED, 1);

    fact.started = change_member(job->change, 1)->started;
    fact.signal = SIGKILL;
    fact.stolen = true;
    job_feed(job, &fact);
    job_leave(job);
}

static void test_port_is_stolen(void **state)
{
    struct job job;

    (void)state;
    begin_trained(&job, "2:4", CHANGE_RESTART);
    for (int i = 0; i < 30; i++) {
        lose_port(&job);
        in_phase(&job, "RESERVING");
        job_start(&job);
    }
    assert_int_equal(change_faults(job.change), 0);
    /* What follows counts. */
    failed_exit(&job, 2, 1, 0);
    job_leave(&job);
    assert_int_equal(change_faults(job.change), 1);
    job_end(&job);
}

/* Nothing else ever happens. */
static void test_ports_are_stolen_for_ever(void **state)
{
    struct job job;
    int starts = 0;

    (void)state;
    begin_trained(&job, "2:4", CHANGE_RESTART);
    for (; !job.finished && starts < 100; starts++) {
        lose_port(&job);
        if (!job.finished)
            job_form(&job);
    }
    assert_int_equal(starts, 20 + job.policy.restarts.restarts + 1);
    job_end(&job);
}

static void test_final_status(void **state)
{
    struct job job;

    (void)state;
    begin_trained(&job, "2:4", CHANGE_RESTART);
    failed_exit(&job, 2, RECOVERY_STATUS_FINAL, 0);
    job_leave(&job);
    assert_true(job.finished);
    assert_int_equal(job.code, RECOVERY_STATUS_FINAL);
    job_end(&job);
}

static void test_sigterm_settles(void **state)
{
    struct job job;

    (void)state;
    begin_trained(&job, "2:4", CHANGE_RESTART);
    failed_exit(&job, 2, 0, SIGTERM);
    job_leave(&job);
    in_phase(&job, "SETTLING");
    job_pass(&job, 0.5);
    in_phase(&job, "SETTLING");
    job_pass(&job, 0.6);
    in_phase(&job, "RESERVING");
    job_end(&job);
}

static void test_all_end(void **state)
{
    struct job job;

    (void)state;
    begin_trained(&job, "2:4", CHANGE_AUTO);
    for (int id = 1; id <= 2; id++) {
        failed_exit(&job, id, 0, 0);
        job_say(&job, CHANGE_FACT_DRAINED, id);
    }
    assert_true(job.finished);
    assert_int_equal(job.code, 0);
    job_end(&job);
}

/* The agent dies after it has said that its workers have ended with 0, and before it has said that
 * none is left. */
static void test_all_end_and_an_agent_dies(void **state)
{
    struct job job;

    (void)state;
    begin_trained(&job, "2:4", CHANGE_AUTO);
    failed_exit(&job, 1, 0, 0);
    failed_exit(&job, 2, 0, 0);
    job_say(&job, CHANGE_FACT_DRAINED, 1);
    job_tell(&job, CHANGE_FACT_GONE, 2);
    for (int i = 0; i < 100 && !job.finished; i++) {
        job_plan(&job);
        job_pass(&job, 1);
    }
    assert_true(job.finished);
    assert_int_equal(job.code, 0);
    job_end(&job);
}

static void test_lost_node_is_replaced(void **state)
{
    struct job job;

    (void)state;
    begin_trained(&job, "1:2", CHANGE_RESTART);
    job_tell(&job, CHANGE_FACT_GONE, 2);
    job_plan(&job);
    in_phase(&job, "KILLING");
    job_leave(&job);
    assert_int_equal(change_phase(job.change) == CHANGE_WAITING ||
                         change_phase(job.change) == CHANGE_REPLACING,
                     1);
    job_plan(&job);
    in_phase(&job, "REPLACING");
    job_pass(&job, 31);
    job_plan(&job);
    in_phase(&job, "RESERVING");
    job_end(&job);
}

/* The last answer to hold is the end of a node, and all others have ended since they answered. */
static void test_all_end_while_held(void **state)
{
    struct job job;
    struct change_fact held;

    (void)state;
    begin_trained(&job, "2:4", CHANGE_RESTART);
    job_join(&job, false);
    job_plan(&job);
    in_phase(&job, "HOLDING");
    held = job_fact(&job, CHANGE_FACT_HELD, 1);
    held.generation = 1;
    held.held = (struct change_held){1, 1, 1, 0, 40};
    job_feed(&job, &held);
    for (int id = 1; id <= 2; id++) {
        failed_exit(&job, id, 0, 0);
        job_say(&job, CHANGE_FACT_DRAINED, id);
    }
    assert_true(job.finished);
    assert_int_equal(job.code, 0);
    job_end(&job);
}

/* A leader that was stopped while workers were held asks whether it still leads. */
static void test_held_without_lease(void **state)
{
    struct job job;

    (void)state;
    begin_trained(&job, "2:4", CHANGE_RESTART);
    job_join(&job, false);
    job_plan(&job);
    job_forget(&job);
    job.may_act = false;
    job_hold(&job, 41);
    said(&job, "");
    in_phase(&job, "HOLDING");
    job_pass(&job, 3);
    said(&job, "");
    job.may_act = true;
    job_pass(&job, 1.5);
    said(&job, "RUN_TO 1, RUN_TO 2");
    job_end(&job);
}

/* Slurm takes a node while its workers leave for another reason: they have only its grace time. */
static void test_called_while_draining(void **state)
{
    struct job job;
    struct change_fact leaving;

    (void)state;
    begin_trained(&job, "2:4", CHANGE_RESTART);
    job_join(&job, false);
    job_plan(&job);
    job_hold(&job, 9);
    job_leave(&job);
    job_start(&job);
    job_pass(&job, 100);
    leaving = job_fact(&job, CHANGE_FACT_RECLAIMED, 3);
    job_feed(&job, &leaving);
    job.target = 2;
    job_plan(&job);
    job_hold(&job, 20);
    in_phase(&job, "DRAINING");
    assert_true(change_deadline(job.change) > job.now + 500);
    leaving = job_fact(&job, CHANGE_FACT_LEAVING, 3);
    leaving.notice = CHANGE_CALLED;
    leaving.grace = 15;
    job_feed(&job, &leaving);
    assert_true(change_deadline(job.change) <= job.now + 13);
    job_end(&job);
}

/* A cloud takes a node: workers that leave have only the time until then, less a moment. */
static void test_taken_while_draining(void **state)
{
    static const struct {
        double left, most; /* seconds */
    } table[] = {{30, 28}, {1, 1}, {10000, 600}, {0, 600}};

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct job job;
        struct change_fact taken;

        begin_trained(&job, "2:4", CHANGE_RESTART);
        job_join(&job, false);
        job_plan(&job);
        job_hold(&job, 9);
        job_leave(&job);
        job_start(&job);
        job_pass(&job, 100);
        taken = job_fact(&job, CHANGE_FACT_RECLAIMED, 3);
        taken.grace = table[i].left;
        job_feed(&job, &taken);
        job.target = 2;
        job_plan(&job);
        job_hold(&job, 20);
        in_phase(&job, "DRAINING");
        assert_true(change_deadline(job.change) <= job.now + table[i].most);
        assert_true(change_deadline(job.change) > job.now + table[i].most - 1);
        /* Another node, which goes sooner. */
        taken = job_fact(&job, CHANGE_FACT_RECLAIMED, 2);
        taken.grace = 5;
        job_feed(&job, &taken);
        assert_true(change_deadline(job.change) <= job.now + 3);
        job_end(&job);
    }
}

/* Nodes go one after the other, and the reason of the second one has come before the first has
 * gone: it is told all the same. A node that goes for another reason that nobody remembers has not
 * joined, either. */
static void test_reasons_of_nodes_that_go(void **state)
{
    struct job job;
    struct change_fact taken;

    (void)state;
    begin_trained(&job, "2:5", CHANGE_RESTART);
    for (int i = 0; i < 3; i++)
        job_join(&job, false);
    job_plan(&job);
    job_hold(&job, 9);
    job_leave(&job);
    job_start(&job);
    job_pass(&job, 100);
    taken = job_fact(&job, CHANGE_FACT_RECLAIMED, 5);
    job_feed(&job, &taken);
    job.target = 4;
    job_plan(&job);
    taken = job_fact(&job, CHANGE_FACT_RECLAIMED, 4);
    job_feed(&job, &taken);
    job_hold(&job, 20);
    job_leave(&job);
    job_start(&job);
    assert_int_equal(change_world(job.change)->node_count, 4);
    job_pass(&job, 100);
    for (job.target = 3; job.target >= 2; job.target--) {
        job_plan(&job);
        job_hold(&job, 30);
        job_leave(&job);
        job_start(&job);
        assert_string_equal(change_world(job.change)->kind, "shrink");
        assert_string_equal(change_world(job.change)->reason,
                            job.target == 3 ? "n4 is about to be taken away" : "1 node left out");
        job_pass(&job, 100);
    }
    job_end(&job);
}

/* ---- live mode ------------------------------------------------------------------------------- */

static void test_live_grow(void **state)
{
    struct job job;

    (void)state;
    begin_trained(&job, "2:4", CHANGE_AUTO);
    assert_int_equal(warm_newcomer(&job), 3);
    job_plan(&job);
    said(&job, "HOLD 1, HOLD 2");
    job_hold(&job, 12);
    said(&job, "RUN_TO_NEXT 1, RUN_TO_NEXT 2, ENTER 3, BEGIN_WORLD");
    in_phase(&job, "SWITCHING");
    job_ready(&job);
    in_phase(&job, "RUNNING");
    assert_int_equal(change_world(job.change)->node_count, 3);
    job_end(&job);
}

static void test_live_shrink(void **state)
{
    struct job job;

    (void)state;
    begin_grown_live(&job, "2:4");
    job_forget(&job);
    call_node(&job, 3);
    said(&job, "HOLD 1, HOLD 2, HOLD 3, RELAY");
    job_hold(&job, 90);
    said(&job, "RUN_TO_NEXT 1, RUN_TO_NEXT 2, RUN_TO_NEXT 3, BEGIN_WORLD");
    assert_int_equal(change_member(job.change, 3)->state, CHANGE_AWAITED);
    job_ready(&job);
    assert_int_equal(change_member(job.change, 3)->state, CHANGE_DEPARTING);
    said(&job, "");
    job_say(&job, CHANGE_FACT_DRAINED, 3);
    said(&job, "RELEASE 3");
    job_end(&job);
}

/* A worker that leaves gives away its part of the state, which takes long. */
static void test_live_leaver_gives_its_state(void **state)
{
    struct change_fact beat;
    struct job job;

    (void)state;
    begin_grown_live(&job, "2:4");
    call_node(&job, 3);
    job_hold(&job, 90);
    job_ready(&job);
    assert_int_equal(change_member(job.change, 3)->state, CHANGE_DEPARTING);
    job_forget(&job);
    beat = job_fact(&job, CHANGE_FACT_BEAT, 3);
    for (int i = 0; i < 5; i++) {
        job.now += 8;
        beat.now = job.now;
        beat.moved += (int64_t)1 << 30;
        job_feed(&job, &beat);
        job_tell(&job, CHANGE_FACT_WATCH, 0);
        assert_int_equal(change_member(job.change, 3)->state, CHANGE_DEPARTING);
    }
    said(&job, "");
    for (int i = 0; i < 2; i++) { /* nothing moves any more */
        job.now += 6;
        beat.now = job.now;
        job_feed(&job, &beat);
        job_tell(&job, CHANGE_FACT_WATCH, 0);
    }
    said(&job, "RELEASE 3");
    job_end(&job);
}

/* No step has been made that a worker knows of: the leaver takes part in the first one. */
static void test_live_shrink_at_step_0(void **state)
{
    struct job job;

    (void)state;
    begin_grown_live(&job, "2:4");
    job_forget(&job);
    call_node(&job, 3);
    job_hold(&job, 0);
    said(&job,
         "HOLD 1, HOLD 2, HOLD 3, RELAY, RUN_TO_NEXT 1, RUN_TO_NEXT 2, RUN_TO_NEXT 3, BEGIN_WORLD");
    assert_int_equal(change_member(job.change, 3)->state, CHANGE_AWAITED);
    job_end(&job);
}

/* Nobody waits for the node of member 3, and its replacement comes: one change, when that is
 * warm. */
static void test_live_replacement(void **state)
{
    struct change_fact fact;
    struct job job;
    int id;

    (void)state;
    begin_grown_live(&job, "2:3");
    id = job_join(&job, false);
    job_forget(&job);
    fact = job_fact(&job, CHANGE_FACT_LEAVING, 3);
    fact.notice = CHANGE_UNNEEDED;
    job_feed(&job, &fact);
    job_plan(&job);
    said(&job, "RELAY, PREPARE 4");
    in_phase(&job, "RUNNING");
    fact = job_fact(&job, CHANGE_FACT_PARKED, id);
    fact.attempt = change_next(job.change)->attempt;
    fact.live = true;
    fact.signature = 7;
    job_feed(&job, &fact);
    job_plan(&job);
    said(&job, "HOLD 1, HOLD 2, HOLD 3");
    job_hold(&job, 90);
    job_ready(&job);
    assert_int_equal(change_world(job.change)->node_count, 3);
    assert_int_equal(change_generation(job.change), 3);
    job_end(&job);
}

static void test_live_worker_dies(void **state)
{
    struct job job;

    (void)state;
    begin_trained(&job, "1:4", CHANGE_AUTO);
    assert_int_equal(failed_exit(&job, 2, 0, SIGKILL), CHANGE_SWITCHING);
    said(&job, "CAUSE, ABORT 1, SIGNAL 2, STORE_END, RELAY, NEXT 1, BEGIN_WORLD");
    job_ready(&job);
    in_phase(&job, "RUNNING");
    assert_int_equal(change_world(job.change)->node_count, 1);
    job_end(&job);
}

static void test_live_below_min(void **state)
{
    struct job job;

    (void)state;
    begin_trained(&job, "2:4", CHANGE_AUTO);
    failed_exit(&job, 2, 0, SIGKILL);
    in_phase(&job, "ABORTED");
    job_forget(&job);
    job_pass(&job, 31);
    said(&job, "REQUEUE, LEAVE 1");
    in_phase(&job, "SAVING");
    job_leave(&job);
    assert_true(job.finished);
    assert_int_equal(job.code, 1);
    job_end(&job);
}

static void test_live_last_step_is_lost(void **state)
{
    struct job job;

    (void)state;
    begin_grown_live(&job, "2:4");
    call_node(&job, 3);
    job_hold(&job, 90);
    job_forget(&job);
    job_tell(&job, CHANGE_FACT_GONE, 3);
    said(&job, "ABORT 1, ABORT 2, STORE_END, RELAY, NEXT 1, NEXT 2, BEGIN_WORLD");
    job_end(&job);
}

/* Workers that leave are not needed any more when the world is aborted before their last step. */
static void test_live_leavers_are_killed(void **state)
{
    struct job job;

    (void)state;
    begin_grown_live(&job, "1:4");
    call_node(&job, 3);
    job_hold(&job, 90);
    job_forget(&job);
    failed_exit(&job, 2, 0, SIGKILL);
    said(&job, "CAUSE, ABORT 1, SIGNAL 2, SIGNAL 3, STORE_END, RELAY, NEXT 1, BEGIN_WORLD");
    assert_int_equal(change_member(job.change, 3)->state, CHANGE_DEPARTING);
    job_end(&job);
}

static void test_live_does_not_come_out(void **state)
{
    struct job job;

    (void)state;
    begin_trained(&job, "1:4", CHANGE_AUTO);
    warm_newcomer(&job);
    job_plan(&job);
    job_hold(&job, 12);
    job_say(&job, CHANGE_FACT_READY, 1);
    job_forget(&job);
    job_pass(&job, 599);
    in_phase(&job, "SWITCHING");
    job_pass(&job, 10);
    in_phase(&job, "SWITCHING"); /* the next world, of the member that came out */
    assert_int_equal(change_world(job.change)->node_count, 1);
    assert_int_equal(change_generation(job.change), 3);
    job_end(&job);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void test_stop(void **state)
{
    struct job job;

    (void)state;
    begin_trained(&job, "2:4", CHANGE_AUTO);
    job_tell(&job, CHANGE_FACT_STOP, 0);
    said(&job, "END_REQUESTS, HOLD 1, HOLD 2");
    job_hold(&job, 5);
    said(&job, "RUN_TO 1, RUN_TO 2");
    job_leave(&job);
    assert_true(job.finished);
    assert_int_equal(job.code, 128 + SIGTERM);
    job_end(&job);
}

/* Workers that enter a world have not made a step of it, and have their state all the same. */
static void test_stop_while_a_live_world_is_entered(void **state)
{
    struct job job;

    (void)state;
    begin_trained(&job, "2:4", CHANGE_AUTO);
    warm_newcomer(&job);
    job_plan(&job);
    job_hold(&job, 12);
    job_ready(&job);
    in_phase(&job, "RUNNING");
    job_forget(&job);
    job_tell(&job, CHANGE_FACT_STOP, 0);
    in_phase(&job, "SAVING");
    assert_non_null(strstr(job.said, "LEAVE 1"));
    assert_null(strstr(job.said, "SIGNAL"));
    job_leave(&job);
    assert_true(job.finished);
    assert_int_equal(job.code, 128 + SIGTERM);
    job_end(&job);
}

/* Live mode: a node leaves after a last step, and the only other one fails before that. */
static void test_all_that_stay_fail(void **state)
{
    struct job job;

    (void)state;
    job_begin(&job, "1:2", 1, CHANGE_AUTO);
    job_join(&job, true);
    job_start(&job);
    job_pass(&job, 100);
    warm_newcomer(&job);
    job_plan(&job);
    job_hold(&job, 12);
    job_ready(&job);
    job_step(&job);
    job_pass(&job, 100);
    call_node(&job, 2);
    job_hold(&job, 20);
    in_phase(&job, "SWITCHING");
    job_forget(&job);
    failed_exit(&job, 1, 0, SIGKILL);
    assert_non_null(strstr(job.said, "SIGNAL 2"));
    job_end(&job);
}

/* A member of the base joins another leader. live: with workers that wait in the world of two that
 * was. */
static void join_again(struct job *job, bool live, bool through)
{
    char node[16];
    struct change_join join = {.id = ++job->last_id,
                               .node = node,
                               .address = "192.0.2.2",
                               .job = 12,
                               .base = true,
                               .slots = 1,
                               .last_world = 1,
                               .started = 1,
                               .live = live,
                               .stateful = live,
                               .through = through};
    struct change_fact fact = job_fact(job, CHANGE_FACT_JOINED, 0);

    snprintf(node, sizeof(node), "n%d", join.id);
    join.nodeid = join.id;
    fact.join = &join;
    job_feed(job, &fact);
}

static void test_all_end_while_another_takes_over(void **state)
{
    for (int live = 0; live < 2; live++) {
        struct job job;

        (void)state;
        begin_trained(&job, "2:4", live ? CHANGE_AUTO : CHANGE_RESTART);
        job_take_over(&job);
        join_again(&job, live, false);
        join_again(&job, live, false);
        in_phase(&job, "TAKING_OVER");
        end_well(&job, 1);
        job_pass(&job, 1);
        in_phase(&job, "TAKING_OVER"); /* the other one is likely to follow */
        end_well(&job, 2);
        job_pass(&job, 0.2);
        assert_true(job.finished);
        assert_int_equal(job.code, 0);
        job_end(&job);
    }
}

/* Workers that are through may write their result for long. */
static void test_through_when_another_takes_over(void **state)
{
    struct job job;

    (void)state;
    begin_trained(&job, "2:4", CHANGE_RESTART);
    job_take_over(&job);
    join_again(&job, false, true);
    join_again(&job, false, true);
    job_pass(&job, 10);
    in_phase(&job, "TAKING_OVER");
    assert_null(strstr(job.said, "SIGNAL"));
    end_well(&job, 1);
    end_well(&job, 2);
    job_pass(&job, 0.2);
    assert_true(job.finished);
    assert_int_equal(job.code, 0);
    job_end(&job);
}

/* One of them does not end: the newest checkpoint is what counts. */
static void test_some_end_while_another_takes_over(void **state)
{
    struct job job;

    (void)state;
    begin_trained(&job, "2:4", CHANGE_RESTART);
    job_take_over(&job);
    join_again(&job, false, true);
    join_again(&job, false, false);
    end_well(&job, 1);
    failed_exit(&job, 2, 1, 0);
    for (int i = 0; i < 30; i++)
        job_pass(&job, 0.1);
    in_phase(&job, "WAITING");
    assert_false(job.finished);
    job_end(&job);
}

static void test_lease_is_not_held(void **state)
{
    struct job job;

    (void)state;
    begin_trained(&job, "2:4", CHANGE_AUTO);
    job.may_act = false;
    for (int id = 1; id <= 2; id++) {
        failed_exit(&job, id, 0, 0);
        job_say(&job, CHANGE_FACT_DRAINED, id);
    }
    in_phase(&job, "FINISHING");
    assert_false(job.finished);
    job_pass(&job, 10);
    assert_false(job.finished);
    job.may_act = true;
    job_pass(&job, 1);
    assert_true(job.finished);
    assert_int_equal(job.code, 0);
    job_end(&job);
}

/* Another node leads: this leader ends with the status that the fact has, and tells no member
 * anything that could be wrong by now. */
static void test_deposed(void **state)
{
    struct change_fact deposed;
    struct job job;

    (void)state;
    begin_trained(&job, "2:4", CHANGE_AUTO);
    deposed = job_fact(&job, CHANGE_FACT_DEPOSED, 0);
    deposed.code = 1;
    job_feed(&job, &deposed);
    said(&job, "ABANDON");
    assert_int_equal(job.out.list[0].number, 1);
    in_phase(&job, "ENDING");
    assert_false(job.finished);
    job_end(&job);
}

/* ---- random histories ------------------------------------------------------------------------ */

#define HISTORIES RANDOM_ROUNDS(3000) /* of each mode */

static unsigned long long seed;
static int current_run;

static unsigned draw(unsigned below)
{
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(seed >> 33) % below;
}

static void check_places(const struct job *job)
{
    const struct world *world = change_world(job->change);
    bool taken[JOB_MEMBERS_MAX] = {false};

    for (int i = 0; i < job_member_count(job); i++) {
        const struct change_member *m = job_member_at(job, i);

        if (m->place < 0)
            continue;
        assert_non_null(world);
        assert_in_range(m->place, 0, world->node_count - 1);
        assert_false(taken[m->place]);
        taken[m->place] = true;
        assert_string_equal(world->nodes[m->place].name, m->node);
        assert_true(m->state == CHANGE_IN_WORLD || m->state == CHANGE_DRAINED ||
                    m->state == CHANGE_LOST);
        assert_true(m->there || m->state != CHANGE_IN_WORLD);
    }
}

/* Nothing waits without a deadline, but for those who train, and for a search on disk. */
static void check_deadline(const struct job *job)
{
    switch (change_phase(job->change)) {
    case CHANGE_RUNNING:
    case CHANGE_PROMOTING:
    case CHANGE_ENDING:
        break;
    default:
        assert_true(change_deadline(job->change) > 0);
    }
}

static void forget_gone(struct job *job)
{
    for (int i = job_member_count(job) - 1; i >= 0; i--) {
        const struct change_member *m = job_member_at(job, i);

        if (!m->there)
            change_forget(job->change, m->id);
    }
}

/* Something that an agent may say, whether it fits or not. */
static void say_anything(struct job *job)
{
    static const enum change_fact_kind kinds[] = {
        CHANGE_FACT_RESERVED, CHANGE_FACT_PARKED,   CHANGE_FACT_UNPREPARED, CHANGE_FACT_READY,
        CHANGE_FACT_READY,    CHANGE_FACT_STEPPING, CHANGE_FACT_HELD,       CHANGE_FACT_HELD,
        CHANGE_FACT_EXITED,   CHANGE_FACT_DRAINED,  CHANGE_FACT_DRAINED,    CHANGE_FACT_BEAT,
        CHANGE_FACT_LEAVING,  CHANGE_FACT_GONE,     CHANGE_FACT_BEGUN,      CHANGE_FACT_LISTENING};
    int count = job_member_count(job);
    const struct change_member *m;
    struct change_fact fact;

    if (count == 0)
        return;
    m = job_member_at(job, (int)draw((unsigned)count));
    if (!m->there)
        return;
    fact = job_fact(job, kinds[draw(sizeof(kinds) / sizeof(kinds[0]))], m->id);
    fact.generation = change_generation(job->change) - (draw(8) == 0);
    fact.started = m->started;
    fact.attempt = draw(2) == 0 && m->warming != 0 ? m->warming : change_next(job->change)->attempt;
    fact.port = 4000;
    fact.live = draw(4) != 0;
    fact.signature = 7;
    fact.gate = draw(2) == 0;
    fact.told = draw(2) == 0;
    fact.early = draw(4) == 0;
    fact.asks = draw(4) == 0;
    fact.code = draw(3) == 0;
    fact.signal = draw(4) == 0 ? SIGKILL : 0;
    fact.notice = draw(2) == 0 ? CHANGE_CALLED : CHANGE_UNNEEDED;
    fact.held = (struct change_held){1, (int)draw(2), (int)draw(2), draw(10) == 0, draw(100)};
    job_feed(job, &fact);
}

static void happen(struct job *job)
{
    switch (draw(12)) {
    case 0:
        if (job_member_count(job) < JOB_MEMBERS_MAX && !change_is_ending(job->change))
            job_join(job, job->last_id < 2);
        break;
    case 1:
    case 2:
        job_plan(job);
        break;
    case 3:
        job_pass(job, draw(100) / 10.0);
        break;
    case 4:
        job_tell(job, draw(3) == 0 ? CHANGE_FACT_WATCH : CHANGE_FACT_PROMOTED, 0);
        break;
    case 5:
        if (draw(200) == 0)
            job_tell(job, CHANGE_FACT_STOP, 0);
        else
            job->may_act = draw(10) != 0;
        break;
    default:
        say_anything(job);
    }
}

/* All members are lost, and time passes: the job ends. */
static void check_end(struct job *job)
{
    job->may_act = true;
    for (int i = job_member_count(job) - 1; i >= 0; i--) {
        const struct change_member *m = job_member_at(job, i);

        if (m->there)
            job_tell(job, CHANGE_FACT_GONE, m->id);
        forget_gone(job);
        if (i > job_member_count(job))
            i = job_member_count(job);
    }
    for (int i = 0; i < 200 && !change_is_ending(job->change); i++) {
        job_plan(job);
        job_tell(job, CHANGE_FACT_PROMOTED, 0);
        job_pass(job, 10);
    }
    if (!change_is_ending(job->change))
        fail_msg("does not end: %s (seed began at run %d)", job_phase(job), current_run);
}

static void random_histories(enum change_mode mode, int runs)
{
    struct job job;

    for (int run = 0; run < runs; run++) {
        current_run = run;
        seed = (unsigned long long)run + 1;
        job_begin(&job, draw(2) == 0 ? "1:4" : "2:4:2", 2, mode);
        for (int i = 0; i < 300; i++) {
            job_forget(&job);
            happen(&job);
            check_places(&job);
            check_deadline(&job);
            forget_gone(&job);
        }
        check_end(&job);
        job_end(&job);
    }
}

static void test_random_restart(void **state)
{
    (void)state;
    random_histories(CHANGE_RESTART, HISTORIES);
}

static void test_random_live(void **state)
{
    (void)state;
    random_histories(CHANGE_AUTO, HISTORIES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_world),
        cmocka_unit_test(test_no_base),
        cmocka_unit_test(test_port_is_not_said),
        cmocka_unit_test(test_grow),
        cmocka_unit_test(test_unheard_script),
        cmocka_unit_test(test_early_start),
        cmocka_unit_test(test_workers_do_not_leave),
        cmocka_unit_test(test_worker_fails),
        cmocka_unit_test(test_port_is_stolen),
        cmocka_unit_test(test_ports_are_stolen_for_ever),
        cmocka_unit_test(test_final_status),
        cmocka_unit_test(test_sigterm_settles),
        cmocka_unit_test(test_all_end),
        cmocka_unit_test(test_all_end_and_an_agent_dies),
        cmocka_unit_test(test_lost_node_is_replaced),
        cmocka_unit_test(test_called_while_draining),
        cmocka_unit_test(test_taken_while_draining),
        cmocka_unit_test(test_reasons_of_nodes_that_go),
        cmocka_unit_test(test_held_without_lease),
        cmocka_unit_test(test_all_end_while_held),
        cmocka_unit_test(test_live_grow),
        cmocka_unit_test(test_live_shrink),
        cmocka_unit_test(test_live_leaver_gives_its_state),
        cmocka_unit_test(test_live_shrink_at_step_0),
        cmocka_unit_test(test_live_replacement),
        cmocka_unit_test(test_live_worker_dies),
        cmocka_unit_test(test_live_below_min),
        cmocka_unit_test(test_live_last_step_is_lost),
        cmocka_unit_test(test_live_leavers_are_killed),
        cmocka_unit_test(test_live_does_not_come_out),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_stop_while_a_live_world_is_entered),
        cmocka_unit_test(test_all_that_stay_fail),
        cmocka_unit_test(test_all_end_while_another_takes_over),
        cmocka_unit_test(test_through_when_another_takes_over),
        cmocka_unit_test(test_some_end_while_another_takes_over),
        cmocka_unit_test(test_lease_is_not_held),
        cmocka_unit_test(test_deposed),
        cmocka_unit_test(test_random_restart),
        cmocka_unit_test(test_random_live),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
