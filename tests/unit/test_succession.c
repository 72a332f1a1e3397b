/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/succession: a table, and random sequences of losses and partitions, in which no two agents
 * may ever act at the same time. */
#include "lib/succession.h"

#include "tests/unit/support.h"

static void test_half_of_the_base_may_claim(void **state)
{
    (void)state;
    assert_false(succession_may_claim(1, 0));
    assert_true(succession_may_claim(2, 1));
    assert_false(succession_may_claim(3, 1));
    assert_true(succession_may_claim(3, 2));
    assert_true(succession_may_claim(4, 2));
    assert_false(succession_may_claim(5, 2));
}

static void test_a_lease(void **state)
{
    static const struct {
        double now;
        int heard;
        bool lost, claimed;
        enum lease_state state;
        double wait;
    } table[] = {
        {0, 1, false, false, LEASE_HOLDS, 0},    /* it comes together: nobody could vote */
        {1, 4, false, false, LEASE_HOLDS, 0},    /* all are there */
        {2, 3, true, false, LEASE_HOLDS, 0},     /* most are */
        {3, 2, true, false, LEASE_WAITS, 1},     /* half: another may follow */
        {3.5, 2, false, false, LEASE_WAITS, .5}, /* … in this time */
        {4, 2, false, false, LEASE_CLAIM, 0},    /* … and has not */
        {4, 2, false, true, LEASE_HOLDS, 0},     /* claimed: until the next is lost */
        {5, 1, true, false, LEASE_WAITS, 10},    /* which it is: the others may go first */
        {9, 1, true, false, LEASE_WAITS, 6},     /* another one was back for a moment */
        {12, 2, false, false, LEASE_CLAIM, 0},   /* it is back, but may have voted */
        {13, 1, true, false, LEASE_WAITS, 2},    /* the claim has not been made in time */
        {15, 1, false, false, LEASE_CLAIM, 0},   /* the others have had their time */
        {16, 3, false, false, LEASE_CLAIM, 0},   /* they are back, but may have voted */
        {17, 3, false, true, LEASE_HOLDS, 0},    /* claimed */
        {18, 1, true, false, LEASE_WAITS, 10},   /* two are lost at once */
    };
    struct lease lease = {.nodes = 4, .settle = 1, .patience = 10};
    double wait;

    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (table[i].claimed)
            lease_claimed(&lease);
        assert_int_equal(
            lease_look(&lease, table[i].now, table[i].heard, table[i].lost, false, &wait),
            table[i].state);
        assert_float_equal(wait, table[i].wait, 1e-9);
    }
    assert_int_equal(lease.term, 2);
    /* The others have gone on without more than they are. */
    assert_int_equal(lease_look(&lease, 18, 1, false, true, &wait), LEASE_CLAIM);

    /* A cut-off leader that finds the silence of the other three one by one does not claim on
     * its way. */
    lease = (struct lease){.nodes = 4, .settle = 1, .patience = 10};
    assert_int_equal(lease_look(&lease, 0, 3, true, false, &wait), LEASE_HOLDS);
    assert_int_equal(lease_look(&lease, 0.1, 2, true, false, &wait), LEASE_WAITS);
    assert_int_equal(lease_look(&lease, 0.4, 1, true, false, &wait), LEASE_WAITS);
    assert_float_equal(wait, 9.7, 1e-9);
    /* Of two there is no other one to be lost. */
    lease = (struct lease){.nodes = 2, .settle = 1, .patience = 10};
    assert_int_equal(lease_look(&lease, 0, 1, true, false, &wait), LEASE_CLAIM);
}

/* ---- a base of agents --------------------------------------------------------------------- */

/* Links break, agents stop, and a term can be claimed once on the file system. */

#define NODES_MAX 6
#define BEAT      0.5
#define HEARTBEAT 2.0 /* without word from it for so long, a leader does not count an agent */
#define SILENCE   6.0 /* … and without word from the leader, an agent votes */
#define TICK      0.1
#define TERMS_MAX 4096

struct agent {
    bool stopped, cut; /* does nothing; is not reached */
    bool leads;
    struct lease lease;
    double seen[NODES_MAX]; /* as a leader: the newest time of ours that each has sent back */
    bool counted[NODES_MAX];
    bool follows[NODES_MAX]; /* … who has joined, and has not been lost */
    int leader;              /* whom it follows, -1: nobody */
    int term;                /* known */
    double heard;            /* from the leader */
    double leader_time;      /* as it has said it then */
    int vote;                /* for whom, -1: none */
    int refused;             /* the term that another one has claimed */
    double refused_at;
    bool confirmed; /* that it leads its term, before it acts */
};

struct base {
    int nodes;
    double now;
    struct agent agents[NODES_MAX];
    bool claimed[TERMS_MAX];
    bool sealed[TERMS_MAX]; /* by who leads it, or by who has found that nobody does */
    bool more; /* leaders reach so many extensions that they need not let others go first */
    int passed_over;
    int acts; /* how often somebody could, and had a majority or a claim */
};

static bool connected(const struct base *b, int i, int k)
{
    return i == k || (!b->agents[i].stopped && !b->agents[k].stopped && !b->agents[i].cut &&
                      !b->agents[k].cut);
}

static void follow(struct base *b, int i, int leader)
{
    struct agent *a = &b->agents[i], *l = &b->agents[leader];

    a->leader = leader;
    a->term = l->lease.term;
    a->heard = b->now;
    a->leader_time = l->seen[i] = b->now;
    a->vote = -1;
    l->follows[i] = l->counted[i] = true;
}

static void take_lead(struct base *b, int i, int term)
{
    struct agent *a = &b->agents[i];

    a->leads = true;
    a->confirmed = term == 0;
    a->lease = (struct lease){
        .nodes = b->nodes, .settle = HEARTBEAT / 2, .patience = 2 * SILENCE, .term = term};
    memset(a->follows, 0, sizeof(a->follows));
    memset(a->counted, 0, sizeof(a->counted));
    for (int k = 0; k < b->nodes; k++)
        if (k == i || b->agents[k].vote == i)
            follow(b, k, i);
}

static void beat(struct base *b, int i)
{
    struct agent *a = &b->agents[i], *l;

    if (a->leader < 0 || a->leader == i || !connected(b, i, a->leader))
        return;
    l = &b->agents[a->leader];
    if (!l->leads || !l->follows[i])
        return;
    l->seen[i] = a->leader_time; /* what it had said last */
    a->leader_time = a->heard = b->now;
}

/* May this leader act? Claims if it has to. */
static bool acts(struct base *b, int i)
{
    struct agent *a = &b->agents[i];
    bool lost = false;
    int heard = 0;
    double wait;

    for (int k = 0; k < b->nodes; k++) {
        bool is = k == i || (a->follows[k] && b->now - a->seen[k] <= HEARTBEAT);

        lost = lost || (a->counted[k] && !is);
        if (a->counted[k] && !is)
            a->follows[k] = false; /* its link is closed */
        a->counted[k] = is;
        heard += is;
    }
    if (!a->confirmed && b->sealed[a->lease.term]) {
        a->leads = false;
        a->leader = -1;
        return false;
    }
    a->confirmed = b->sealed[a->lease.term] = true;
    switch (lease_look(&a->lease, b->now, heard, lost, b->more, &wait)) {
    case LEASE_HOLDS:
        return true;
    case LEASE_CLAIM:
        if (b->claimed[a->lease.term + 1]) {
            a->leads = false; /* deposed */
            a->leader = -1;
            return false;
        }
        b->claimed[a->lease.term + 1] = b->sealed[a->lease.term + 1] = true;
        lease_claimed(&a->lease);
        return true;
    default:
        return false;
    }
}

static void seek(struct base *b, int i)
{
    struct agent *a = &b->agents[i];
    int known = 0, votes = 0;

    if (a->leader == i && a->leads)
        return;
    if (a->leader >= 0) {
        const struct agent *l = &b->agents[a->leader];
        /* It has closed the link, or is silent. */
        bool closed = connected(b, i, a->leader) && (!l->leads || !l->follows[i]);

        if (!closed && b->now - a->heard < SILENCE)
            return;
        a->leader = -1;
    }
    for (int k = 0; k < b->nodes; k++)
        if (connected(b, i, k) && b->agents[k].leads && k != i &&
            b->agents[k].lease.term >= a->term) {
            follow(b, i, k);
            return;
        }
    a->vote = -1;
    for (int k = 0; k < b->nodes && a->vote < 0; k++)
        if (connected(b, i, k) && (b->agents[k].leader < 0 || k == i))
            a->vote = k;
    for (int k = 0; k < b->nodes; k++)
        if (b->agents[k].vote == i && b->agents[k].leader < 0 && connected(b, i, k)) {
            votes++;
            known = b->agents[k].term > known ? b->agents[k].term : known;
        }
    if (a->vote != i || !succession_may_claim(b->nodes, votes))
        return;
    if (known < a->refused) {
        if (b->now - a->refused_at < SILENCE || b->sealed[a->refused])
            return;
        known = a->refused;
        b->sealed[known] = true;
        b->passed_over++;
    }
    if (b->claimed[known + 1]) {
        a->refused = known + 1;
        a->refused_at = b->now;
        return;
    }
    b->claimed[known + 1] = true;
    if (rand() % 4 == 0)
        a->stopped = true;
    if (!a->stopped || rand() % 2) /* it may begin to lead, as far as it knows, when it goes on */
        take_lead(b, i, known + 1);
}

static void disturb(struct base *b)
{
    struct agent *a = &b->agents[rand() % b->nodes];

    if (rand() % 2)
        a->cut = !a->cut;
    else
        a->stopped = !a->stopped;
}

static void step(struct base *b)
{
    int acting = -1;

    b->now += TICK;
    if (rand() % 60 == 0)
        disturb(b);
    for (int n = 0, first = rand() % b->nodes; n < b->nodes; n++) {
        int i = (first + n) % b->nodes;
        struct agent *a = &b->agents[i];

        if (a->stopped)
            continue;
        if (rand() % (int)(BEAT / TICK) == 0)
            beat(b, i);
        seek(b, i);
    }
    for (int i = 0; i < b->nodes; i++) {
        if (b->agents[i].stopped || !b->agents[i].leads || !acts(b, i))
            continue;
        if (acting >= 0)
            fail_msg("%d (term %d) and %d (term %d) act at %.1f", acting,
                     b->agents[acting].lease.term, i, b->agents[i].lease.term, b->now);
        acting = i;
        b->acts++;
    }
}

static void test_no_two_act_at_the_same_time(void **state)
{
    int acts_in_all = 0, terms = 0, passed_over = 0;

    (void)state;
    for (int round = 0; round < 300; round++) {
        static struct base b;

        srand((unsigned)round);
        memset(&b, 0, sizeof(b));
        b.nodes = 2 + round % (NODES_MAX - 1);
        b.more = round % 3 == 0;
        for (int i = 0; i < b.nodes; i++)
            b.agents[i] = (struct agent){.leader = -1, .vote = -1};
        take_lead(&b, 0, 0);
        for (int i = 1; i < b.nodes; i++)
            follow(&b, i, 0);
        for (int i = 0; i < 3000; i++)
            step(&b);
        acts_in_all += b.acts;
        passed_over += b.passed_over;
        for (int t = 0; t < TERMS_MAX; t++)
            terms += b.claimed[t];
    }
    /* Not because nobody ever does anything. */
    assert_true(acts_in_all > 300 * 3000 / 4);
    assert_true(terms > 300);
    assert_true(passed_over > 5);
    print_message("# %d %% of the time somebody led, %d terms, %d of them passed over\n",
                  acts_in_all / (300 * 3000 / 100), terms, passed_over);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_half_of_the_base_may_claim),
        cmocka_unit_test(test_a_lease),
        cmocka_unit_test(test_no_two_act_at_the_same_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
