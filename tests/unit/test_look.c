/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When Slurm is asked what. */
#include "tests/unit/support.h"

#include "lib/look.h"

#define START 1000.0

struct played {
    int questions, jobs, nodes, lists, relaxed, all;
    int of[8]; /* jobs */
};

/* Polls each second, as the leader does; each answer comes after `seconds`. */
static struct played play(struct look *look, struct look_input *in, struct look_job *jobs,
                          double from, double until, double seconds)
{
    struct played played = {0};

    for (double now = from; now < until; now += 1) {
        struct look_output out;
        int questions;

        in->now = now;
        look_next(look, in, &out);
        if (out.at > now)
            continue;
        questions = out.job_count + (out.nodes != LOOK_NO_NODE) + out.list + 2 * out.relax;
        assert_true(questions > 0);
        played.questions += questions;
        played.jobs += out.job_count;
        played.nodes += out.nodes == LOOK_NODE_IN_TURN;
        played.all += out.nodes == LOOK_ALL_NODES;
        played.lists += out.list;
        played.relaxed += out.relax;
        for (int i = 0; i < out.job_count; i++) {
            jobs[out.jobs[i]].seen = now;
            played.of[out.jobs[i] % 8]++;
        }
        if (out.relax)
            in->relaxed = now;
        if (out.nodes == LOOK_ALL_NODES)
            in->drain_looked = now;
        in->list = false;
        look_asked(look, &out, now, questions, seconds * questions, true);
    }
    return played;
}

static struct look_input input(const struct look_job *jobs, int count, int nodes)
{
    return (struct look_input){.jobs = jobs,
                               .job_count = count,
                               .node_count = nodes,
                               .drain_looked = LOOK_NEVER,
                               .notice_looked = LOOK_NEVER,
                               .relax_since = LOOK_NEVER,
                               .relaxed = LOOK_NEVER};
}

static struct look_job job(enum look_phase phase, double since)
{
    return (struct look_job){.phase = phase, .since = since, .seen = LOOK_NEVER};
}

static void test_budgets(void **state)
{
    static const struct {
        const char *what;
        int extensions, nodes;
        enum look_phase phase;
        double seconds; /* of an answer */
        bool relax;
        int first, rest, per_minute; /* questions at most */
    } rows[] = {
        {"a base alone", 0, 1, LOOK_IS_SETTLED, 0.001, false, 4, 60, 2},
        {"four nodes at rest", 2, 4, LOOK_IS_SETTLED, 0.001, false, 5, 60, 2},
        {"250 nodes at rest", 249, 250, LOOK_IS_SETTLED, 0.001, false, 300, 60, 2},
        {"one pending", 1, 4, LOOK_IS_PENDING, 0.001, false, 20, 150, 5},
        {"eight pending", 8, 4, LOOK_IS_PENDING, 0.001, false, 60, 150, 5},
        {"pending, and less time would do", 2, 4, LOOK_IS_PENDING, 0.001, true, 40, 180, 6},
        {"starting", 1, 4, LOOK_IS_STARTING, 0.001, false, 30, 150, 5},
        {"one powers up", 1, 4, LOOK_IS_BOOTING, 0.001, false, 25, 500, 18},
        {"thirty power up", 30, 4, LOOK_IS_BOOTING, 0.001, false, 600, 600, 45},
        {"thirty leave", 30, 4, LOOK_IS_LEAVING, 0.001, false, 700, 150, 5},
        {"slurmctld is slow", 8, 4, LOOK_IS_PENDING, 2, false, 24, 20, 2},
    };

    (void)state;
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++)
        for (uint32_t seed = 1; seed <= 20; seed++) {
            struct look look = {.seed = seed};
            struct look_job jobs[260] = {job(LOOK_IS_SETTLED, START)};
            struct look_input in = input(jobs, rows[row].extensions + 1, rows[row].nodes);
            struct played played;

            for (int i = 1; i <= rows[row].extensions; i++) {
                jobs[i] = job(rows[row].phase, START);
                jobs[i].checks[0] = START + 1;
            }
            if (rows[row].relax)
                in.relax_since = START + 30;
            played = play(&look, &in, jobs, START, START + 60, rows[row].seconds);
            if (played.questions > rows[row].first)
                fail_msg("%s: %d questions in the first minute", rows[row].what, played.questions);
            played = play(&look, &in, jobs, START + 60, START + 600, rows[row].seconds);
            played = play(&look, &in, jobs, START + 600, START + 2400, rows[row].seconds);
            if (played.questions > rows[row].rest)
                fail_msg("%s: %d questions in 30 minutes", rows[row].what, played.questions);
            for (int minute = 0; minute < 20; minute++) {
                double from = START + 2400 + minute * 60;

                played = play(&look, &in, jobs, from, from + 60, rows[row].seconds);
                if (played.questions > rows[row].per_minute)
                    fail_msg("%s: %d questions in a minute", rows[row].what, played.questions);
            }
            assert_int_equal(played.lists, 0);
        }
}

/* Which nodes are powered down: soon where an extension is to be submitted; while one waits in the
 * queue, each 30 s at most. */
static void test_power(void **state)
{
    static const struct {
        double seconds; /* of an answer */
        int least, most;
    } rows[] = {{0.001, 12, 20}, {2, 1, 4}};

    (void)state;
    for (size_t row = 0; row < COUNT(rows); row++)
        for (uint32_t seed = 1; seed <= 20; seed++) {
            struct look look = {.seed = seed};
            struct look_job jobs[1] = {job(LOOK_IS_SETTLED, START)};
            struct look_input in = input(jobs, 1, 4);
            int asked = 0;

            play(&look, &in, jobs, START, START + 100, rows[row].seconds);
            in.power_wanted = START + 100;
            for (double now = START + 100, last = 0; now < START + 700; now += 1) {
                struct look_output out;

                in.now = now;
                look_next(&look, &in, &out);
                if (out.at > now)
                    continue;
                if (out.job_count > 0)
                    jobs[0].seen = now;
                if (out.power) {
                    if (asked++ == 0)
                        assert_true(now <= START + 108);
                    else if (now - last < 30)
                        fail_msg("again after %g s", now - last);
                    in.power_looked = last = now;
                    in.power_pending = true;
                }
                look_asked(&look, &out, now, 1, rows[row].seconds, true);
            }
            assert_in_range(asked, rows[row].least, rows[row].most);
            in.power_pending = false;
            for (in.now = START + 700; in.now < START + 800; in.now += 1) {
                struct look_output out;

                look_next(&look, &in, &out);
                assert_false(out.power);
            }
        }
}

static void test_rest_is_for_nodes_and_jobs(void **state)
{
    struct look look = {.seed = 7};
    struct look_job jobs[4] = {job(LOOK_IS_SETTLED, START)};
    struct look_input in = input(jobs, 4, 4);
    struct played played;

    (void)state;
    for (int i = 1; i < 4; i++)
        jobs[i] = job(LOOK_IS_SETTLED, START);
    played = play(&look, &in, jobs, START, START + 3600, 0.001);
    assert_in_range(played.nodes, 50, 70);
    assert_in_range(played.jobs, 20, 35);
    for (int i = 0; i < 4; i++)
        assert_in_range(played.of[i], 4, 10);
}

/* What an event makes necessary is asked for at the next poll. */
static void test_checks(void **state)
{
    struct look look = {.seed = 3};
    struct look_job jobs[2] = {job(LOOK_IS_SETTLED, START), job(LOOK_IS_SETTLED, START)};
    struct look_input in = input(jobs, 2, 2);
    struct look_output out;

    (void)state;
    jobs[1].seen = START;
    play(&look, &in, jobs, START, START + 300, 0.001);
    jobs[1].checks[0] = START + 302;
    jobs[1].checks[1] = START + 320;
    in.now = START + 301;
    look_next(&look, &in, &out);
    assert_int_equal(out.job_count, 0);
    in.now = START + 302;
    look_next(&look, &in, &out);
    assert_int_equal(out.job_count, 1);
    assert_int_equal(out.jobs[0], 1);
    jobs[1].seen = START + 302.1;
    look_asked(&look, &out, START + 302.1, 1, 0.1, true);
    in.now = START + 304;
    look_next(&look, &in, &out);
    assert_int_equal(out.job_count, 0);
    assert_true(out.at <= START + 320);
    in.now = START + 320;
    look_next(&look, &in, &out);
    assert_int_equal(out.jobs[0], 1);
}

/* Slurm takes an extension back just after a look: why it does is wanted before the next world. */
static void test_the_first_check_is_urgent(void **state)
{
    struct look look = {.seed = 3};
    struct look_job jobs[2] = {job(LOOK_IS_SETTLED, START), job(LOOK_IS_SETTLED, START)};
    struct look_input in = input(jobs, 2, 2);
    struct look_output out;

    (void)state;
    jobs[1].seen = START;
    play(&look, &in, jobs, START, START + 300, 0.001);
    jobs[1].checks[1] = START + 301;
    in.now = START + 301;
    look_next(&look, &in, &out);
    assert_int_equal(out.job_count, 1);
    jobs[1].seen = START + 301.01;
    look_asked(&look, &out, START + 301.01, 1, 0.001, true);
    jobs[1].checks[1] = START + 301.1;
    in.now = START + 301.1;
    look_next(&look, &in, &out);
    assert_true(out.at > in.now);
    jobs[1].checks[0] = START + 301.1;
    look_next(&look, &in, &out);
    assert_int_equal(out.job_count, 1);
    assert_int_equal(out.jobs[0], 1);
}

/* The next question about a job whose phase is so old, after so many seconds at most. */
static void test_changes_are_seen_soon(void **state)
{
    static const struct {
        enum look_phase phase;
        double age, within;
    } rows[] = {
        {LOOK_IS_STARTING, 0, 2},  {LOOK_IS_STARTING, 4, 3},    {LOOK_IS_STARTING, 29, 13},
        {LOOK_IS_LEAVING, 0, 2},   {LOOK_IS_LEAVING, 3, 3},     {LOOK_IS_LEAVING, 50, 49},
        {LOOK_IS_PENDING, 0, 2},   {LOOK_IS_PENDING, 10, 8},    {LOOK_IS_PENDING, 50, 49},
        {LOOK_IS_PENDING, 61, 49}, {LOOK_IS_PENDING, 4000, 49},
    };

    (void)state;
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++)
        for (uint32_t seed = 1; seed <= 20; seed++) {
            struct look look = {.seed = seed, .count = 1};
            struct look_job jobs[2] = {job(LOOK_IS_SETTLED, START), job(rows[row].phase, START)};
            struct look_input in = input(jobs, 2, 0);
            double now = START + rows[row].age;
            struct look_output out;

            jobs[0].seen = now;
            look.last = look.rest = look.waited = now;
            jobs[1].seen = rows[row].age > 0 ? now : LOOK_NEVER;
            in.now = now + 0.1;
            look_next(&look, &in, &out);
            in.now = now + rows[row].within;
            look_next(&look, &in, &out);
            if (out.job_count != 1 || out.jobs[0] != 1)
                fail_msg("phase %d, %g s old: not seen within %g s", (int)rows[row].phase,
                         rows[row].age, rows[row].within);
        }
}

static void test_leaders_do_not_ask_together(void **state)
{
    double least = START + 1e6, most = 0;

    (void)state;
    for (uint32_t seed = 1; seed <= 50; seed++) {
        struct look look = {.seed = seed, .count = 1, .rest = START, .last = START};
        struct look_job jobs[1] = {{.since = START, .seen = START}};
        struct look_input in = input(jobs, 1, 4);
        struct look_output out;

        in.now = START + 1;
        look_next(&look, &in, &out);
        least = out.at < least ? out.at : least;
        most = out.at > most ? out.at : most;
    }
    assert_true(least >= START + LOOK_REST * (1 - LOOK_JITTER));
    assert_true(most <= START + LOOK_REST * (1 + LOOK_JITTER));
    assert_true(most - least > LOOK_REST * LOOK_JITTER);
}

/* 1,000 jobs that have begun at the same moment, each with two extensions; then slurmctld is away
 * for two minutes. */
static void test_thousand_leaders(void **state)
{
    enum { LEADERS = 1000, SECONDS = 2400, AWAY = 1200, BACK = 1320 };
    static struct look looks[LEADERS];
    static struct look_job jobs[LEADERS][3];
    static int asked[SECONDS];
    int sum = 0, most = 0, most_back = 0;

    (void)state;
    for (int i = 0; i < LEADERS; i++) {
        looks[i] = (struct look){.seed = 31 * (uint32_t)i};
        for (int k = 0; k < 3; k++)
            jobs[i][k] = job(LOOK_IS_SETTLED, START);
    }
    for (int second = 0; second < SECONDS; second++)
        for (int i = 0; i < LEADERS; i++) {
            bool answered = second < AWAY || second >= BACK;
            struct look_input in = input(jobs[i], 3, 4);
            struct look_output out;

            in.now = START + second;
            look_next(&looks[i], &in, &out);
            if (out.at > in.now)
                continue;
            asked[second] += out.job_count + (out.nodes != LOOK_NO_NODE);
            for (int k = 0; answered && k < out.job_count; k++)
                jobs[i][out.jobs[k]].seen = in.now;
            look_asked(&looks[i], &out, in.now, 1, answered ? 0.01 : 10, answered);
        }
    for (int second = 600; second < AWAY; second++) {
        sum += asked[second];
        most = asked[second] > most ? asked[second] : most;
    }
    for (int second = BACK; second < SECONDS; second++)
        most_back = asked[second] > most_back ? asked[second] : most_back;
    assert_in_range(sum * 60 / (AWAY - 600), 1000, 2 * LEADERS);
    assert_in_range(most, 1, 70);
    assert_in_range(most_back, 1, 100);
}

static void test_silence(void **state)
{
    struct look look = {.seed = 5};
    struct look_job jobs[3] = {job(LOOK_IS_SETTLED, START), job(LOOK_IS_STARTING, START),
                               job(LOOK_IS_STARTING, START)};
    struct look_input in = input(jobs, 3, 4);
    struct look_output out;
    double pauses[8];
    int failures = 0;

    (void)state;
    for (double now = START, last = START; failures < 8; now += 0.5) {
        in.now = now;
        look_next(&look, &in, &out);
        if (out.at > now)
            continue;
        assert_true(out.job_count + (out.nodes != LOOK_NO_NODE) == 1 || failures == 0);
        pauses[failures++] = now - last;
        look_asked(&look, &out, now, 1, 10, false);
        last = now;
    }
    assert_true(pauses[1] <= 3);
    assert_true(pauses[2] >= 3);
    assert_true(pauses[7] >= 48 && pauses[7] <= 73);
    look_asked(&look, &out, 2 * START, 1, 0.001, true);
    in.now = 2 * START + 1;
    look_next(&look, &in, &out);
    assert_int_equal(out.job_count, 3);
}

static void test_list_of_nodes(void **state)
{
    struct look look = {.seed = 9};
    struct look_job jobs[1] = {job(LOOK_IS_SETTLED, START)};
    struct look_input in = input(jobs, 1, 30);
    struct played played;

    (void)state;
    in.drain_look = 5;
    played = play(&look, &in, jobs, START, START + 600, 0.001);
    assert_int_equal(played.nodes, 0);
    assert_in_range(played.all, 119, 151);
    in.list = true;
    played = play(&look, &in, jobs, START + 600, START + 660, 0.001);
    assert_int_equal(played.lists, 1);
}

static void test_drain_notices(void **state)
{
    static const struct {
        const char *what;
        int count;          /* members that have been told */
        double first, last; /* notices: when, in seconds from the start, and so often … */
        double pause;       /* … between them */
        double seconds;     /* of an answer */
        int all, most;      /* lists of nodes; looks at nodes because of notices, at most */
        double within;      /* of the first one */
    } rows[] = {
        {"one member", 1, 100, 100, 1, 0.001, 0, 1, 2},
        {"an extension of eight", LOOK_FEW, 100, 100, 1, 0.001, 0, 1, 2},
        {"a large base", LOOK_FEW + 1, 100, 100, 1, 0.001, 1, 1, 2},
        {"again and again", 1, 100, 160, 1, 0.001, 0, 14, 2},
        {"slurmctld is slow", 1, 100, 160, 1, 1, 0, 4, 7},
    };

    (void)state;
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++)
        for (uint32_t seed = 1; seed <= 20; seed++) {
            struct look look = {.seed = seed};
            struct look_job jobs[1] = {job(LOOK_IS_SETTLED, START)};
            struct look_input in = input(jobs, 1, 30);
            int all = 0, looks = 0;
            double first = -1, next = START + rows[row].first;

            play(&look, &in, jobs, START, START + 95, rows[row].seconds);
            for (double now = START + 95; now < START + 200; now += 0.5) {
                struct look_output out;

                if (now >= next && next <= START + rows[row].last) {
                    next += rows[row].pause;
                    if (in.noticed_count == 0)
                        in.noticed = now;
                    in.noticed_count = rows[row].count;
                }
                in.now = now;
                look_next(&look, &in, &out);
                if (out.at > now)
                    continue;
                if (out.job_count > 0)
                    jobs[0].seen = now;
                if (out.nodes == LOOK_ALL_NODES || out.nodes == LOOK_NOTICED_NODES) {
                    assert_true(in.noticed_count > 0);
                    if (first < 0)
                        first = now - START - rows[row].first;
                    all += out.nodes == LOOK_ALL_NODES;
                    looks++;
                    in.noticed_count = 0;
                    in.notice_looked = now;
                }
                look_asked(&look, &out, now, 1, rows[row].seconds, true);
            }
            if (first < 0 || first > rows[row].within || looks > rows[row].most ||
                all != rows[row].all || in.noticed_count > 0)
                fail_msg("%s: after %g s, %d looks, %d lists, %d left", rows[row].what, first,
                         looks, all, in.noticed_count);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_budgets),
        cmocka_unit_test(test_power),
        cmocka_unit_test(test_rest_is_for_nodes_and_jobs),
        cmocka_unit_test(test_checks),
        cmocka_unit_test(test_the_first_check_is_urgent),
        cmocka_unit_test(test_changes_are_seen_soon),
        cmocka_unit_test(test_leaders_do_not_ask_together),
        cmocka_unit_test(test_thousand_leaders),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_list_of_nodes),
        cmocka_unit_test(test_drain_notices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
