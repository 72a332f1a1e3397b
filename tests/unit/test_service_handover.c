/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Handing a service over: each state with each fact, and two jobs with their failures. */
#include "lib/service_handover.h"
#include "tests/unit/support.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define HISTORIES RANDOM_ROUNDS(300)

static struct service_handover at(enum service_handover_state state, uint32_t successor)
{
    struct service_handover handover;

    service_handover_init(&handover);
    handover.state = state;
    handover.successor = successor;
    return handover;
}

/* What follows of one step. */
static void test_steps(void **state)
{
    static const struct {
        const char *what;
        enum service_handover_state from;
        struct service_handover_facts facts;
        enum service_handover_act act;
        enum service_handover_state to;
    } rows[] = {
        {"there is time",
         HANDOVER_FAR,
         {.left = 601, .before = 600},
         HANDOVER_NOTHING,
         HANDOVER_FAR},
        {"the time has come",
         HANDOVER_FAR,
         {.left = 600, .before = 600},
         HANDOVER_SUBMIT,
         HANDOVER_SUBMITS},
        {"no time limit",
         HANDOVER_FAR,
         {.left = -1, .before = 600},
         HANDOVER_NOTHING,
         HANDOVER_FAR},
        {"no handover", HANDOVER_FAR, {.left = 10}, HANDOVER_NOTHING, HANDOVER_FAR},
        {"too late", HANDOVER_FAR, {.left = 59, .before = 600}, HANDOVER_NOTHING, HANDOVER_FAR},
        {"it is asked for, and there is time",
         HANDOVER_FAR,
         {.left = 601, .before = 600, .asked = true},
         HANDOVER_SUBMIT,
         HANDOVER_SUBMITS},
        {"… without a time limit, and without handover",
         HANDOVER_FAR,
         {.left = -1, .asked = true},
         HANDOVER_SUBMIT,
         HANDOVER_SUBMITS},
        {"… too late", HANDOVER_FAR, {.left = 59, .asked = true}, HANDOVER_NOTHING, HANDOVER_FAR},
        {"a successor of the leader before",
         HANDOVER_FAR,
         {.left = 300, .before = 600, .announced = 8, .silent = 1},
         HANDOVER_FREEZE,
         HANDOVER_OFFERS},
        {"… that has gone",
         HANDOVER_FAR,
         {.left = 300, .before = 600, .announced = 8, .silent = 40},
         HANDOVER_SUBMIT,
         HANDOVER_SUBMITS},
        {"it is there before sbatch says so",
         HANDOVER_SUBMITS,
         {.announced = 7},
         HANDOVER_FREEZE,
         HANDOVER_OFFERS},
        {"sbatch runs",
         HANDOVER_SUBMITS,
         {.left = 300, .before = 600},
         HANDOVER_NOTHING,
         HANDOVER_SUBMITS},
        {"it waits for nodes",
         HANDOVER_AWAITS,
         {.left = 300, .before = 600},
         HANDOVER_NOTHING,
         HANDOVER_AWAITS},
        {"it is there",
         HANDOVER_AWAITS,
         {.announced = 7, .silent = 39},
         HANDOVER_FREEZE,
         HANDOVER_OFFERS},
        {"another one is there",
         HANDOVER_AWAITS,
         {.announced = 9},
         HANDOVER_FREEZE,
         HANDOVER_OFFERS},
        {"it does not claim yet",
         HANDOVER_OFFERS,
         {.announced = 7, .silent = 39},
         HANDOVER_NOTHING,
         HANDOVER_OFFERS},
        {"it is silent",
         HANDOVER_OFFERS,
         {.announced = 7, .silent = 40},
         HANDOVER_WITHDRAW,
         HANDOVER_AWAITS},
        {"another one is there now",
         HANDOVER_OFFERS,
         {.announced = 9, .silent = 1},
         HANDOVER_WITHDRAW,
         HANDOVER_AWAITS},
        {"it has claimed",
         HANDOVER_OFFERS,
         {.claimed = true, .announced = 7, .silent = 40},
         HANDOVER_FREEZE,
         HANDOVER_HANDED},
        {"somebody has claimed, unasked",
         HANDOVER_FAR,
         {.claimed = true},
         HANDOVER_FREEZE,
         HANDOVER_HANDED},
        {"its replicas start",
         HANDOVER_HANDED,
         {.claimed = true, .unused = true},
         HANDOVER_NOTHING,
         HANDOVER_HANDED},
        {"its table is out",
         HANDOVER_HANDED,
         {.now = 5, .claimed = true, .serves = true},
         HANDOVER_NOTHING,
         HANDOVER_HANDED},
        {"routers have left",
         HANDOVER_HANDED,
         {.claimed = true, .serves = true, .unused = true},
         HANDOVER_STOP,
         HANDOVER_STOPS},
        {"it stops", HANDOVER_STOPS, {.claimed = true}, HANDOVER_NOTHING, HANDOVER_STOPS},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct service_handover handover = at(rows[i].from, 7);
        enum service_handover_act act = service_handover_step(&handover, &rows[i].facts);

        if (act != rows[i].act || handover.state != rows[i].to)
            fail_msg("%s: act %d, then %s", rows[i].what, (int)act,
                     service_handover_word(handover.state));
    }
}

static void test_failures(void **state)
{
    struct service_handover handover = at(HANDOVER_SUBMITS, 0);
    struct service_handover_facts facts = {.now = 1000, .left = 3000, .before = 3600};

    (void)state;
    service_handover_submitted(&handover, 0, facts.now);
    assert_int_equal(handover.state, HANDOVER_FAR);
    assert_int_equal(service_handover_step(&handover, &facts), HANDOVER_NOTHING);
    assert_true(service_handover_deadline(&handover, &facts) == 1060);
    facts.now = 1060;
    assert_int_equal(service_handover_step(&handover, &facts), HANDOVER_SUBMIT);
    service_handover_submitted(&handover, 12, facts.now);
    assert_int_equal(handover.state, HANDOVER_AWAITS);
    service_handover_gone(&handover, 11, facts.now); /* another one */
    assert_int_equal(handover.state, HANDOVER_AWAITS);
    service_handover_gone(&handover, 12, facts.now);
    assert_int_equal(handover.state, HANDOVER_FAR);
    assert_true(service_handover_deadline(&handover, &facts) == 1180);
    /* Asked for, it waits for that pause, too. */
    facts = (struct service_handover_facts){.now = 1100, .left = -1, .asked = true};
    assert_int_equal(service_handover_step(&handover, &facts), HANDOVER_NOTHING);
    assert_true(service_handover_deadline(&handover, &facts) == 1180);
    facts.asked = false;
    assert_true(service_handover_deadline(&handover, &facts) == 0);
    /* A job that announces itself while sbatch runs: its number is no news. */
    handover = at(HANDOVER_OFFERS, 12);
    service_handover_submitted(&handover, 0, facts.now);
    assert_int_equal(handover.state, HANDOVER_OFFERS);
    service_handover_back(&handover, facts.now);
    assert_int_equal(handover.state, HANDOVER_FAR);
    assert_int_equal(handover.successor, 0);
    /* Routers that do not leave are waited for, but not for ever. */
    handover = at(HANDOVER_HANDED, 12);
    facts = (struct service_handover_facts){.now = 10, .claimed = true, .serves = true};
    assert_int_equal(service_handover_step(&handover, &facts), HANDOVER_NOTHING);
    assert_true(service_handover_deadline(&handover, &facts) == 70);
    facts.now = 70;
    assert_int_equal(service_handover_step(&handover, &facts), HANDOVER_STOP);
    /* A table that is no longer out begins the time anew. */
    handover = at(HANDOVER_HANDED, 12);
    facts.now = 10;
    service_handover_step(&handover, &facts);
    facts = (struct service_handover_facts){.now = 30, .claimed = true};
    service_handover_step(&handover, &facts);
    facts.serves = true;
    facts.now = 75;
    assert_int_equal(service_handover_step(&handover, &facts), HANDOVER_NOTHING);
}

static void test_hold(void **state)
{
    (void)state;
    assert_int_equal(service_handover_hold(true, 500, 600), SERVICE_HOLD_WHOLE);
    assert_int_equal(service_handover_hold(true, -1, 600), SERVICE_HOLD_WHOLE);
    assert_int_equal(service_handover_hold(true, 61, 600), SERVICE_HOLD_WHOLE);
    assert_int_equal(service_handover_hold(true, 60, 600), SERVICE_HOLD_ENOUGH);
    assert_int_equal(service_handover_hold(true, 31, 120), SERVICE_HOLD_WHOLE);
    assert_int_equal(service_handover_hold(true, 30, 120), SERVICE_HOLD_ENOUGH);
    assert_int_equal(service_handover_hold(false, 500, 600), SERVICE_HOLD_NONE);
}

/* ---- two jobs -------------------------------------------------------------------------------- */

/* The old job and its successors, with sbatch that fails, successors that never start, die, and are
 * two. At most one is frozen for nobody, and the old job stops only when somebody serves. */
struct sim {
    uint64_t seed;
    struct service_handover old;
    struct service_handover_facts facts;
    uint32_t jobs, pending, holder; /* the last job; one that is not there yet; who has the term */
    double dies;                    /* when the holder or the announced one is gone; 0: never */
    int submissions;
    bool frozen, stopped;
};

static int roll(struct sim *m, int sides)
{
    return (int)random_below(&m->seed, (uint32_t)sides);
}

static void act_on(struct sim *m, enum service_handover_act act)
{
    switch (act) {
    case HANDOVER_NOTHING:
        return;
    case HANDOVER_SUBMIT:
        assert_true(m->facts.left >= HANDOVER_LAST && m->facts.left <= m->facts.before);
        assert_false(m->frozen);
        m->submissions++;
        if (roll(m, 3) == 0) {
            service_handover_submitted(&m->old, 0, m->facts.now);
            return;
        }
        m->pending = ++m->jobs;
        if (roll(m, 5) > 0) /* else it is there before sbatch says so */
            service_handover_submitted(&m->old, m->pending, m->facts.now);
        return;
    case HANDOVER_FREEZE:
        m->frozen = true;
        return;
    case HANDOVER_WITHDRAW:
        assert_true(m->frozen && m->holder == 0);
        m->frozen = false;
        return;
    case HANDOVER_STOP:
        assert_true(m->frozen && m->holder > 0 && m->facts.serves);
        m->stopped = true;
        return;
    }
}

static void successors(struct sim *m)
{
    m->facts.silent += 1;
    if (m->pending > 0 && roll(m, 10) == 0) { /* it starts, or has ended */
        if (roll(m, 4) == 0) {
            service_handover_submitted(&m->old, m->pending, m->facts.now);
            service_handover_gone(&m->old, m->pending, m->facts.now);
        } else {
            m->facts.announced = m->pending;
            m->facts.silent = 0;
            m->dies = roll(m, 2) == 0 ? m->facts.now + roll(m, 60) : 0;
        }
        m->pending = 0;
    }
    if (m->facts.announced > 0 && m->holder == 0 && (m->dies == 0 || m->facts.now < m->dies)) {
        m->facts.silent = 0;
        if (m->old.state == HANDOVER_OFFERS && m->old.successor == m->facts.announced &&
            roll(m, 4) == 0) {
            assert_true(m->frozen);
            m->holder = m->facts.announced;
            m->facts.claimed = true;
        }
    }
    if (m->holder > 0 && roll(m, 20) == 0)
        m->facts.serves = true;
    m->facts.unused = m->facts.serves && roll(m, 10) == 0;
    if (m->holder > 0 && m->dies > 0 && m->facts.now >= m->dies + HANDOVER_SILENT && !m->stopped) {
        service_handover_back(&m->old, m->facts.now);
        m->holder = m->facts.announced = 0;
        m->facts.claimed = m->facts.serves = m->facts.unused = m->frozen = false;
        m->dies = 0;
    }
}

static void test_random(void **state)
{
    int handed = 0;

    (void)state;
    for (int history = 1; history <= HISTORIES; history++) {
        struct sim m = {.seed = (uint64_t)history * 2654435761u,
                        .facts = {.before = 1800, .left = 2000},
                        .jobs = 100};

        service_handover_init(&m.old);
        while (m.facts.left > 0 && !m.stopped) {
            m.facts.now += 1;
            m.facts.left -= 1;
            successors(&m);
            act_on(&m, service_handover_step(&m.old, &m.facts));
            /* Frozen for nobody: no longer than a job may be silent. */
            assert_true(m.frozen == (m.old.state >= HANDOVER_OFFERS));
        }
        assert_true(m.submissions > 0 && m.submissions < 30);
        handed += m.stopped;
    }
    assert_true(handed > HISTORIES / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_hold),
        cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
