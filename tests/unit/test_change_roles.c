/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/change in a job with roles: without a world, and with a world beside other roles. */
#include "tests/unit/support.h"

#include <signal.h>

#include "tests/unit/change_fixture.h"

static void over(struct job *job, int code)
{
    struct change_fact fact = job_fact(job, CHANGE_FACT_OVER, 0);

    fact.code = code;
    job_feed(job, &fact);
}

/* ---- without a world ------------------------------------------------------------------------- */

static void test_no_world(void **state)
{
    struct job job;

    (void)state;
    job_begin(&job, "2", 2, CHANGE_AUTO);
    job.options.no_world = true;
    job_join(&job, true);
    assert_true(change_deadline(job.change) > 0);
    job_join(&job, true);
    assert_true(change_deadline(job.change) == 0);
    job_tell(&job, CHANGE_FACT_GONE, 2);
    assert_true(change_forget(job.change, 2));
    assert_true(change_has_begun(job.change)); /* once is enough */
    over(&job, 7);
    in_phase(&job, "ENDING");
    assert_int_equal(job.code, 7);
    job_end(&job);
}

/* The extension's agent goes when its replicas have ended, and not before. */
static void test_no_world_and_a_busy_extension(void **state)
{
    static const enum change_notice notices[] = {CHANGE_CALLED, CHANGE_UNNEEDED};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct job job;
        struct change_fact busy, leaving;

        job_begin(&job, "1", 1, CHANGE_AUTO);
        job.options.no_world = true;
        job_join(&job, true);
        job_join(&job, false);
        busy = job_fact(&job, CHANGE_FACT_BUSY, 2);
        busy.code = 1;
        job_feed(&job, &busy);
        leaving = job_fact(&job, CHANGE_FACT_LEAVING, 2);
        leaving.notice = notices[i];
        leaving.text = "it goes back";
        job_forget(&job);
        job_feed(&job, &leaving);
        job_tell(&job, CHANGE_FACT_WATCH, 0);
        said(&job, "");
        busy.code = 0;
        job_feed(&job, &busy);
        said(&job, "RELEASE 2");
        job_feed(&job, &busy);
        said(&job, "");
        job_end(&job);
    }
}

static void test_no_world_and_a_node_that_never_joins(void **state)
{
    struct job job;

    (void)state;
    job_begin(&job, "2", 2, CHANGE_AUTO);
    job.options.no_world = true;
    job_join(&job, true);
    job_pass(&job, 121);
    in_phase(&job, "ENDING");
    assert_int_equal(job.code, 1);
    job_end(&job);
}

static void test_no_world_after_a_takeover(void **state)
{
    struct job job;

    (void)state;
    job_begin(&job, "2", 2, CHANGE_AUTO);
    job.options.no_world = true;
    job_join(&job, true);
    job_join(&job, true);
    job_take_over(&job);
    in_phase(&job, "TAKING_OVER");
    job_join(&job, true);
    job_pass(&job, 30);
    in_phase(&job, "WAITING");
    assert_true(change_deadline(job.change) == 0);
    job_end(&job);
}

/* ---- beside other roles ---------------------------------------------------------------------- */

/* A base of two. The world begins on node 2, and trains. */
static void begin_beside(struct job *job, const char *sizes, enum change_mode mode)
{
    job_begin(job, sizes, 2, mode);
    job->options.world_nodes = 1;
    job_join_apart(job, true);
    job_join_apart(job, true);
    job_tell(job, CHANGE_FACT_ADMITTED, 2);
    job_start(job);
    job_pass(job, 100);
    job_forget(job);
}

/* Then the other roles have not begun, either. */
static void test_ends_without_its_base(void **state)
{
    (void)state;
    for (int way = 0; way < 2; way++) {
        struct job job;

        job_begin(&job, "1:2", 2, CHANGE_AUTO);
        job.options.world_nodes = 1;
        job_join_apart(&job, true);
        if (way == 0)
            job_pass(&job, 121);
        else
            job_tell(&job, CHANGE_FACT_STOP, 0);
        in_phase(&job, "ENDING");
        assert_int_equal(job.code, way == 0 ? 1 : 143);
        job_end(&job);
    }
}

static void test_begins_on_the_nodes_it_is_given(void **state)
{
    struct job job;

    (void)state;
    job_begin(&job, "1:2", 2, CHANGE_AUTO);
    job.options.world_nodes = 1;
    job_join_apart(&job, true);
    job_plan(&job);
    in_phase(&job, "ASSEMBLING");
    assert_false(change_has_begun(job.change));
    job_pass(&job, 100);
    job_join_apart(&job, true);
    assert_true(change_has_begun(job.change));
    job_pass(&job, 100); /* choosing its nodes has time of its own */
    job_forget(&job);
    job_plan(&job);
    said(&job, "");
    in_phase(&job, "ASSEMBLING");
    job_tell(&job, CHANGE_FACT_ADMITTED, 2);
    job_plan(&job);
    said(&job, "RELAY, RESERVE 2");
    job_start(&job);
    assert_int_equal(change_world(job.change)->node_count, 1);
    assert_int_equal(change_member(job.change, 1)->place, -1);
    job_end(&job);
}

static void stop_world(struct job *job)
{
    struct change_fact fact = job_fact(job, CHANGE_FACT_STOP, 0);

    fact.code = CHANGE_STOPS_WORLD;
    fact.text = "no fit needs it";
    job_feed(job, &fact);
}

/* A world that a fit trains: twice, on other nodes. */
static void test_waits_for_a_fit(void **state)
{
    struct job job;

    (void)state;
    job_begin(&job, "1:2", 2, CHANGE_AUTO);
    job.options.world_nodes = 1;
    job.options.rests = true;
    job_join_apart(&job, true);
    in_phase(&job, "ASSEMBLING");
    job_join_apart(&job, true);
    in_phase(&job, "RESTING");
    assert_true(change_deadline(job.change) == 0);
    assert_true(change_has_begun(job.change));
    stop_world(&job);
    for (int id = 1; id <= 2; id++) {
        job_tell(&job, CHANGE_FACT_AGAIN, 0);
        in_phase(&job, "WAITING");
        assert_true(change_begins_again(job.change) && change_deadline(job.change) == 0);
        job_plan(&job); /* no node is its own so far */
        in_phase(&job, "WAITING");
        assert_true(change_stands_since(job.change) < 0);
        job_tell(&job, CHANGE_FACT_ADMITTED, id);
        job_start(&job);
        assert_string_equal(change_kind(job.change), "start");
        assert_string_equal(change_reason(job.change), "a fit begins");
        assert_false(change_begins_again(job.change));
        assert_int_equal(change_world(job.change)->node_count, 1);
        assert_int_equal(change_member(job.change, id)->place, 0);
        end_well(&job, id);
        in_phase(&job, "RESTING");
        assert_int_equal(job.code, 0);
        assert_false(change_stopping(job.change));
    }
    over(&job, 4);
    in_phase(&job, "ENDING");
    assert_int_equal(job.code, 4);
    job_end(&job);
}

/* The fit is cancelled; then another one begins; then the job is. */
static void test_a_fit_ends_early(void **state)
{
    struct job job;

    (void)state;
    begin_beside(&job, "1:2", CHANGE_RESTART);
    stop_world(&job);
    job_hold(&job, 12);
    job_leave(&job);
    in_phase(&job, "RESTING");
    assert_int_equal(job.code, 128 + SIGTERM);
    assert_false(change_stopping(job.change));
    job_tell(&job, CHANGE_FACT_AGAIN, 0);
    stop_world(&job); /* before it has nodes */
    in_phase(&job, "RESTING");
    assert_false(change_stopping(job.change));
    job_tell(&job, CHANGE_FACT_AGAIN, 0);
    job_tell(&job, CHANGE_FACT_ADMITTED, 1);
    job_start(&job);
    stop_world(&job);
    job_tell(&job, CHANGE_FACT_STOP, 0);
    job_hold(&job, 12);
    job_leave(&job);
    in_phase(&job, "RESTING");
    assert_true(change_stopping(job.change)); /* the job's end is not forgotten */
    job_end(&job);
}

static void test_no_fit_after_a_takeover(void **state)
{
    struct job job;

    (void)state;
    begin_beside(&job, "1:2", CHANGE_LIVE);
    job_take_over(&job);
    job.options.rests = true;
    job_join(&job, true);
    job_pass(&job, 30);
    in_phase(&job, "RESTING");
    job_end(&job);
}

/* The node that led is lost, and on the one that is left all workers have ended with 0: that is the
 * end of a training, but those of the lost node may not have written their part of a result. */
static void test_result_after_a_takeover(void **state)
{
    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        struct change_join left = {.id = 1,
                                   .node = "n2",
                                   .address = "192.0.2.2",
                                   .job = 7,
                                   .base = true,
                                   .nodeid = 1,
                                   .slots = 1,
                                   .last_world = 1,
                                   .completed_world = 1};
        struct change_fact fact;
        struct job job;

        begin_beside(&job, "1:2", CHANGE_RESTART);
        job_take_over(&job);
        job.options.whole = whole == 1;
        fact = job_fact(&job, CHANGE_FACT_JOINED, 0);
        fact.join = &left;
        job_feed(&job, &fact);
        job_pass(&job, 30);
        in_phase(&job, whole == 1 ? "WAITING" : "RESTING");
        job_end(&job);
    }
}

/* Nobody says which nodes are its own. */
static void test_gets_no_node(void **state)
{
    struct job job;

    (void)state;
    job_begin(&job, "1:2", 1, CHANGE_AUTO);
    job.options.world_nodes = 1;
    job_join_apart(&job, true);
    job_forget(&job);
    job_pass(&job, 130);
    said(&job, "REQUEUE, WORLD_OVER");
    in_phase(&job, "RESTING");
    assert_int_equal(job.code, 1);
    job_end(&job);
}

/* It grows into nodes that are its own, and not into those of other roles. */
static void test_grows_beside(void **state)
{
    struct job job;
    int id;

    (void)state;
    begin_beside(&job, "1:2", CHANGE_RESTART);
    job_join_apart(&job, false);
    job_forget(&job);
    job_plan(&job);
    said(&job, "");
    id = job_join(&job, false);
    job_plan(&job);
    job_hold(&job, 12);
    job_leave(&job);
    job_start(&job);
    assert_int_equal(change_world(job.change)->node_count, 2);
    assert_true(change_member(job.change, id)->place >= 0);
    assert_int_equal(change_member(job.change, 3)->place, -1);
    job_end(&job);
}

/* Nodes of other roles come and go, and the world is as it was. */
static void test_others_leave(void **state)
{
    struct job job;
    struct change_fact busy, leaving;

    (void)state;
    begin_beside(&job, "1:2", CHANGE_AUTO);
    job_join_apart(&job, false);
    job_join_apart(&job, false);
    busy = job_fact(&job, CHANGE_FACT_BUSY, 3);
    busy.code = 1;
    job_feed(&job, &busy);
    leaving = job_fact(&job, CHANGE_FACT_LEAVING, 3);
    leaving.notice = CHANGE_CALLED;
    leaving.grace = 5;
    job_forget(&job);
    job_feed(&job, &leaving);
    said(&job, "");
    assert_string_equal(change_next_reason(job.change), "");
    leaving.member = 4; /* nothing runs there */
    job_feed(&job, &leaving);
    said(&job, "RELEASE 4");
    busy.code = 0;
    job_feed(&job, &busy);
    said(&job, "RELEASE 3");
    job_tell(&job, CHANGE_FACT_GONE, 3);
    job_tell(&job, CHANGE_FACT_GONE, 1);
    job_plan(&job);
    said(&job, "");
    in_phase(&job, "RUNNING");
    assert_int_equal(change_generation(job.change), 1);
    job_end(&job);
}

/* The world is over, and the job is not before its other roles are. */
static void test_world_is_over_first(void **state)
{
    struct job job;

    (void)state;
    begin_beside(&job, "1:2", CHANGE_AUTO);
    end_well(&job, 2);
    in_phase(&job, "RESTING");
    assert_int_equal(job.code, 0);
    assert_false(job.finished);
    assert_null(change_world(job.change));
    assert_true(change_deadline(job.change) == 0);
    assert_false(change_is_ending(job.change));
    assert_string_equal(change_phase_text(job.change), "running");
    job_forget(&job);
    end_well(&job, 2); /* once more */
    job_plan(&job);
    job_tell(&job, CHANGE_FACT_STOP, 0);
    job_join_apart(&job, false);
    said(&job, "WELCOME 3");
    in_phase(&job, "RESTING");
    over(&job, 3);
    in_phase(&job, "ENDING");
    assert_true(job.finished);
    assert_int_equal(job.code, 3);
    job_end(&job);
}

static void test_world_is_stopped(void **state)
{
    struct job job;

    (void)state;
    begin_beside(&job, "1:2", CHANGE_AUTO);
    over(&job, 3); /* it trains: nobody can know that it is over */
    in_phase(&job, "RUNNING");
    job_tell(&job, CHANGE_FACT_STOP, 0);
    job_hold(&job, 12);
    job_leave(&job);
    in_phase(&job, "RESTING");
    assert_int_equal(job.code, 128 + 15);
    over(&job, 0);
    assert_true(job.finished);
    assert_int_equal(job.code, 0);
    job_end(&job);
}

static void test_stopped_before_it_begins(void **state)
{
    struct job job;

    (void)state;
    job_begin(&job, "1:2", 1, CHANGE_AUTO);
    job.options.world_nodes = 1;
    job_join_apart(&job, true);
    job_tell(&job, CHANGE_FACT_STOP, 0);
    in_phase(&job, "RESTING");
    over(&job, 1);
    assert_true(job.finished);
    job_end(&job);
}

/* Another node may lead by now. */
static void test_world_is_over_and_the_lease(void **state)
{
    struct job job;

    (void)state;
    begin_beside(&job, "1:2", CHANGE_AUTO);
    job.may_act = false;
    end_well(&job, 2);
    in_phase(&job, "FINISHING");
    job.may_act = true;
    job_pass(&job, 1);
    in_phase(&job, "RESTING");
    job.may_act = false;
    over(&job, 3);
    in_phase(&job, "FINISHING");
    job.may_act = true;
    job_pass(&job, 1);
    in_phase(&job, "ENDING");
    assert_int_equal(job.code, 3);
    job_end(&job);
}

/* The new leader does not know which nodes are the world's before they have said so. */
static void test_beside_and_a_takeover(void **state)
{
    struct job job;

    (void)state;
    begin_beside(&job, "1:2", CHANGE_AUTO);
    job_take_over(&job);
    job_join_apart(&job, true);
    job_pass(&job, 5);
    in_phase(&job, "WAITING");
    job_plan(&job);
    in_phase(&job, "WAITING");
    job_join(&job, true);
    job_start(&job);
    assert_int_equal(change_world(job.change)->node_count, 1);
    job_end(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_world),
        cmocka_unit_test(test_no_world_and_a_busy_extension),
        cmocka_unit_test(test_no_world_and_a_node_that_never_joins),
        cmocka_unit_test(test_no_world_after_a_takeover),
        cmocka_unit_test(test_ends_without_its_base),
        cmocka_unit_test(test_begins_on_the_nodes_it_is_given),
        cmocka_unit_test(test_waits_for_a_fit),
        cmocka_unit_test(test_a_fit_ends_early),
        cmocka_unit_test(test_no_fit_after_a_takeover),
        cmocka_unit_test(test_result_after_a_takeover),
        cmocka_unit_test(test_gets_no_node),
        cmocka_unit_test(test_grows_beside),
        cmocka_unit_test(test_others_leave),
        cmocka_unit_test(test_world_is_over_first),
        cmocka_unit_test(test_world_is_stopped),
        cmocka_unit_test(test_stopped_before_it_begins),
        cmocka_unit_test(test_world_is_over_and_the_lease),
        cmocka_unit_test(test_beside_and_a_takeover),
    };

    return cmocka_run_group_tests_name("change_roles", tests, NULL, NULL);
}
