/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/reconcile: one rule at a time. What it does is written down as words, and compared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/reconcile.h"

#define ROLES_HERE 3

static struct role list[ROLES_HERE];
static struct roles roles;
static struct reconcile *r;
static double now;
static char log_text[4096];

/* ---- what was done, in words ----------------------------------------------------------------- */

static void add(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void add(const char *fmt, ...)
{
    size_t length = strlen(log_text);
    va_list args;

    va_start(args, fmt);
    vsnprintf(log_text + length, sizeof(log_text) - length, fmt, args);
    va_end(args);
}

static const char *name_of(int replica)
{
    static char name[64];
    const struct replica *found = reconcile_find(r, replica);

    if (found == NULL)
        return "?";
    snprintf(name, sizeof(name), "%s-%d", list[found->role].name, found->index);
    return name;
}

static void note(const struct reconcile_action *a)
{
    switch (a->kind) {
    case RECONCILE_START:
        add("start %s on %d; ", name_of(a->replica), a->node);
        break;
    case RECONCILE_DRAIN:
        add("drain %s %g s; ", name_of(a->replica), a->seconds);
        break;
    case RECONCILE_KILL:
        add("kill %s; ", name_of(a->replica));
        break;
    case RECONCILE_ASK:
        add("ask %s %d%s; ", list[a->role].name, a->count, a->safe ? " safe" : "");
        break;
    case RECONCILE_WITHDRAW:
        add("withdraw %u; ", a->job);
        break;
    case RECONCILE_GIVE_BACK:
        add("give back %u; ", a->job);
        break;
    case RECONCILE_FINISH:
        add("finish %d; ", a->status);
        break;
    case RECONCILE_SAY:
        add("say: %s; ", a->text);
        break;
    case RECONCILE_ENDPOINTS:
        break;
    }
}

static void take(struct reconcile_actions *out)
{
    for (int i = 0; i < out->count; i++)
        note(&out->list[i]);
    free(out->list);
}

static void feed(struct reconcile_fact fact)
{
    struct reconcile_actions out = {0};

    fact.now = now;
    assert_int_equal(reconcile_feed(r, &fact, &out), 0);
    take(&out);
}

/* All that is done at that moment. */
static void run_at(double at)
{
    struct reconcile_actions out = {0};

    now = at;
    assert_int_equal(reconcile_run(r, now, &out), 0);
    take(&out);
}

static void expect(const char *want)
{
    size_t length = strlen(log_text);

    if (length > 2)
        log_text[length - 2] = '\0'; /* "; " */
    assert_string_equal(log_text, want);
    log_text[0] = '\0';
}

/* ---- facts ----------------------------------------------------------------------------------- */

static void node(int id, uint32_t job, int cpus, int role)
{
    struct reconcile_node joins = {id, job, {cpus, 0, 1000}, job == 0, role, false};

    feed((struct reconcile_fact){.kind = RECONCILE_NODE, .joins = &joins});
}

static void of_task(enum reconcile_fact_kind kind, const char *name, int status)
{
    const struct replica *replica = reconcile_named(r, name);

    assert_non_null(replica);
    feed((struct reconcile_fact){.kind = kind,
                                 .replica = replica->id,
                                 .start = replica->start,
                                 .status = status,
                                 .text = "exit"});
}

static void ready(const char *name)
{
    of_task(RECONCILE_RUNNING, name, 0);
    of_task(RECONCILE_TASK_READY, name, 0);
}

static void ended(const char *name, int status)
{
    of_task(RECONCILE_EXITED, name, status);
}

static void scale(int role, int count)
{
    feed((struct reconcile_fact){.kind = RECONCILE_SCALE, .role = role, .count = count});
}

/* … and those that are more need so many CPUs. */
static void scale_with(int role, int count, int cpus)
{
    struct slots_gang gang = {{cpus, 0, 0}, 1, 0, false};

    feed((struct reconcile_fact){
        .kind = RECONCILE_SCALE, .role = role, .count = count, .gang = &gang});
}

static void granted(int role, uint32_t job, int nodes)
{
    feed((struct reconcile_fact){.kind = RECONCILE_REQUESTED, .role = role, .job = job});
    feed((struct reconcile_fact){.kind = RECONCILE_GRANTED, .job = job, .count = nodes});
}

/* ---- a job ----------------------------------------------------------------------------------- */

/* "lead", and two more roles: "one" 1:4 and "two" 0:4, a CPU each. Tests change them first. */
static int set_up(void **state)
{
    static char *const names[ROLES_HERE] = {(char *)"lead", (char *)"one", (char *)"two"};

    (void)state;
    memset(list, 0, sizeof(list));
    for (int i = 0; i < ROLES_HERE; i++) {
        list[i] = (struct role){.name = names[i], .min = i < 2, .max = 4, .asks = true};
        list[i].gang = (struct slots_gang){{1, 0, 0}, 1, 0, false};
        list[i].ready.how = ROLE_PROBE_TOLD;
        list[i].ready.within = 60;
        list[i].drain.within = 30;
        list[i].restart.max = 3;
        list[i].restart.first_pause = 1;
        list[i].restart.max_pause = 60;
    }
    list[0].leads = true;
    list[0].max = 1;
    roles = (struct roles){.list = list, .count = ROLES_HERE};
    now = 0;
    log_text[0] = '\0';
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    reconcile_destroy(r);
    r = NULL;
    return 0;
}

static void create(int first_start)
{
    struct reconcile_options options = {
        .roles = &roles, .grow_delay = 5, .max_pending = 2, .first_start = first_start};

    r = reconcile_create(&options);
    assert_non_null(r);
}

/* The job begins with a base of one node with so many CPUs. */
static void begin(int cpus)
{
    create(0);
    node(1, 0, cpus, -1);
    run_at(0);
    expect(""); /* not before all of the base is there */
    feed((struct reconcile_fact){.kind = RECONCILE_BASE_DONE});
    run_at(0);
}

static void starts_the_least_sizes(void **state)
{
    (void)state;
    begin(4);
    expect("start lead-0 on 1; start one-0 on 1");
    ready("lead-0");
    ready("one-0");
    run_at(1);
    expect("");
    assert_int_equal(reconcile_in_state(r, 1, REPLICA_READY), 1);
}

static void a_role_comes_after_another(void **state)
{
    static int after[] = {0};

    (void)state;
    list[1].after = after;
    list[1].after_count = 1;
    begin(4);
    expect("start lead-0 on 1");
    assert_string_equal(reconcile_named(r, "one-0")->reason, "waits for lead");
    ready("lead-0");
    run_at(1);
    expect("start one-0 on 1");
}

static void auto_fills_what_is_free_and_asks_for_more(void **state)
{
    (void)state;
    list[1].asks = false;
    begin(3);
    expect("start lead-0 on 1; start one-0 on 1; start one-1 on 1; ask one 2");
}

static void a_request_gets_smaller_and_is_withdrawn(void **state)
{
    (void)state;
    begin(2);
    expect("start lead-0 on 1; start one-0 on 1");
    scale(1, 4);
    run_at(1);
    expect("ask one 3");
    feed((struct reconcile_fact){.kind = RECONCILE_REQUESTED, .role = 1, .job = 7});
    run_at(10);
    expect("");
    assert_true(reconcile_deadline(r) == 11);
    run_at(11);
    expect("withdraw 7");
    feed((struct reconcile_fact){.kind = RECONCILE_DENIED, .job = 7});
    run_at(11);
    expect("ask one 2");
    feed((struct reconcile_fact){.kind = RECONCILE_REQUESTED, .role = 1, .job = 8});
    scale(1, 1);
    run_at(12);
    expect("withdraw 8");
}

static void an_extension_is_used_and_goes_back(void **state)
{
    (void)state;
    begin(2);
    scale(1, 3);
    run_at(1);
    expect("start lead-0 on 1; start one-0 on 1; ask one 2");
    ready("one-0");
    granted(1, 7, 1);
    run_at(2);
    expect("");
    node(2, 7, 2, 1);
    run_at(3);
    expect("start one-1 on 2; start one-2 on 2");
    ready("one-1");
    ready("one-2");
    scale(1, 2);
    run_at(4);
    expect("drain one-2 30 s");
    scale(1, 1);
    run_at(5);
    expect("drain one-1 30 s");
    ended("one-1", 0);
    run_at(6);
    expect("");
    ended("one-2", 143);
    run_at(7);
    expect("give back 7");
}

static void a_role_shrinks_by_whole_extensions(void **state)
{
    (void)state;
    list[1].max = 5;
    begin(2);
    scale(1, 4);
    run_at(1);
    granted(1, 7, 1);
    node(2, 7, 1, 1);
    run_at(2);
    granted(1, 8, 1); /* of the next request */
    node(3, 8, 2, 1);
    run_at(3);
    for (int i = 0; i < 4; i++) {
        char name[16];

        snprintf(name, sizeof(name), "one-%d", i);
        ready(name);
    }
    log_text[0] = '\0';
    scale(1, 3); /* one-1 is alone on its extension, one-3 has the highest index */
    run_at(4);
    expect("drain one-1 30 s");
}

static void who_is_not_ready_goes_first(void **state)
{
    (void)state;
    begin(8);
    scale(1, 3);
    run_at(1);
    ready("one-0");
    ready("one-2");
    log_text[0] = '\0';
    scale(1, 2);
    run_at(2);
    expect("drain one-1 30 s");
}

static void a_preempted_node_is_drained_in_its_time(void **state)
{
    (void)state;
    begin(2);
    scale(1, 2);
    run_at(1);
    granted(1, 7, 1);
    node(2, 7, 2, 1);
    run_at(2);
    ready("one-1");
    log_text[0] = '\0';
    feed((struct reconcile_fact){
        .kind = RECONCILE_NODE_GOES, .node = 2, .grace = 10, .text = "preempted"});
    expect("drain one-1 10 s");
    run_at(3); /* another is asked for in its place */
    expect("ask one 1");
    ended("one-1", 0);
    feed((struct reconcile_fact){.kind = RECONCILE_NODE_GONE, .node = 2, .text = "gone"});
    run_at(4);
    expect("");
    assert_null(reconcile_named(r, "one-1"));
}

static void a_failed_replica_waits_longer_each_time(void **state)
{
    char size[100], more[200];

    (void)state;
    begin(4);
    ready("lead-0");
    log_text[0] = '\0';
    ended("one-0", 1);
    run_at(0.5);
    expect("");
    run_at(1);
    expect("start one-0 on 1");
    ended("one-0", 1);
    run_at(2);
    expect("");
    assert_true(reconcile_deadline(r) == 3);
    run_at(3);
    expect("start one-0 on 1");
    ended("one-0", 1);
    run_at(7);
    expect("start one-0 on 1");
    ended("one-0", 1);
    run_at(100);
    expect("say: one-0 is not started again: exit, and no restart is left");
    run_at(1000);
    expect("");
    reconcile_why(r, 1, now, size, sizeof(size), more, sizeof(more));
    assert_string_equal(size, "0 of 1 ready");
    assert_string_equal(more, "one-0 is not started again: exit, and no restart is left");
}

static void what_has_long_been_ready_does_not_wait_longer(void **state)
{
    (void)state;
    list[1].restart.max = 100;
    begin(4);
    ready("lead-0");
    ready("one-0");
    log_text[0] = '\0';
    for (int i = 1; i <= 3; i++) {
        now = 100 * i;
        ended("one-0", 1);
        run_at(now + 1);
        expect("start one-0 on 1");
        ready("one-0");
    }
}

static void status_127_is_final(void **state)
{
    (void)state;
    begin(4);
    log_text[0] = '\0';
    ended("one-0", 127);
    expect("say: one-0 is not started again: exit, which is final");
}

static void a_lost_node_costs_no_restart(void **state)
{
    (void)state;
    begin(4);
    node(2, 0, 4, -1);
    log_text[0] = '\0';
    for (int i = 0; i < 5; i++) {
        feed((struct reconcile_fact){
            .kind = RECONCILE_NODE_GONE, .node = i + 1, .text = "its link is closed"});
        node(i + 3, 0, 4, -1);
        run_at(i + 1);
    }
    assert_int_equal(reconcile_named(r, "lead-0")->start, 11);
    assert_int_equal(reconcile_named(r, "one-0")->state, REPLICA_STARTING);
}

static void who_is_not_ready_in_time_has_failed(void **state)
{
    (void)state;
    begin(4);
    ready("lead-0");
    log_text[0] = '\0';
    run_at(60);
    expect("say: one-0: not ready within 60 s; kill one-0");
    assert_string_equal(reconcile_named(r, "one-0")->reason, "not ready within 60 s");
    run_at(70); /* nobody says that it has ended */
    expect("say: nothing is heard of one-0, which was to be killed");
    run_at(71);
    expect("start one-0 on 1");
}

/* Its probe says so. Nobody else tells the log. */
static void who_is_not_ready_any_more_has_failed(void **state)
{
    (void)state;
    begin(4);
    ready("lead-0");
    ready("one-0");
    log_text[0] = '\0';
    of_task(RECONCILE_UNREADY, "one-0", 0);
    expect("say: one-0: exit; kill one-0");
    assert_int_equal(reconcile_named(r, "one-0")->state, REPLICA_FAILED);
    of_task(RECONCILE_UNREADY, "one-0", 0);
    expect("");
    ended("one-0", 137);
    run_at(1);
    expect("start one-0 on 1");
}

static void who_does_not_drain_is_killed(void **state)
{
    (void)state;
    begin(4);
    scale(1, 2);
    run_at(1);
    ready("one-0");
    ready("one-1");
    log_text[0] = '\0';
    scale(1, 1);
    run_at(2);
    expect("drain one-1 30 s");
    run_at(31);
    expect("");
    run_at(32);
    expect("kill one-1");
    ended("one-1", 137);
    assert_null(reconcile_named(r, "one-1"));
}

static void a_gang_fails_as_a_whole(void **state)
{
    const struct replica *one;

    (void)state;
    list[1].gang.tasks = 2;
    begin(4);
    one = reconcile_named(r, "one-0");
    log_text[0] = '\0';
    for (int task = 0; task < 2; task++)
        feed((struct reconcile_fact){
            .kind = RECONCILE_TASK_READY, .replica = one->id, .start = one->start, .task = task});
    assert_int_equal(one->state, REPLICA_READY);
    ended("one-0", 1); /* task 0 */
    expect("kill one-0");
    assert_int_equal(one->state, REPLICA_FAILED);
    feed((struct reconcile_fact){.kind = RECONCILE_EXITED,
                                 .replica = one->id,
                                 .start = one->start,
                                 .task = 1,
                                 .status = 137,
                                 .text = "signal 9"});
    run_at(1);
    expect("start one-0 on 1; start one-0 on 1");
}

static void who_ends_with_0_is_finished(void **state)
{
    (void)state;
    begin(4);
    log_text[0] = '\0';
    ended("one-0", 0);
    run_at(1);
    expect("");
    assert_int_equal(reconcile_target(r, 1), 0);
}

static void the_job_ends_as_its_leading_role(void **state)
{
    (void)state;
    begin(4);
    log_text[0] = '\0';
    ended("lead-0", 3);
    run_at(1);
    expect("say: lead-0 has ended with 3; drain one-0 30 s");
    ended("one-0", 0);
    run_at(2);
    expect("finish 3");
    run_at(3);
    expect("");
}

static void clean_none_lets_the_others_end(void **state)
{
    (void)state;
    roles.clean = ROLES_CLEAN_NONE;
    begin(4);
    log_text[0] = '\0';
    ended("lead-0", 0);
    run_at(1);
    expect("say: lead-0 has ended with 0");
    ended("one-0", 1);
    run_at(2);
    expect("finish 0");
}

static void guaranteed_ones_get_the_room_of_others(void **state)
{
    (void)state;
    begin(4);
    scale(2, 2);
    run_at(1);
    expect("start lead-0 on 1; start one-0 on 1; start two-0 on 1; start two-1 on 1");
    node(2, 0, 1, -1);
    feed((struct reconcile_fact){.kind = RECONCILE_NODE_GONE, .node = 2, .text = "gone"});
    of_task(RECONCILE_FAIL, "two-1", 0);
    expect("drain two-1 30 s");
    list[1].min = 2; /* as if one more were guaranteed from now on */
    scale(1, 2);
    run_at(2);
    expect("ask one 1"); /* the slot of two-1 is about to be free: nobody else makes way */
    ended("two-1", 0);
    run_at(3);
    expect("start one-1 on 1; ask two 1");
}

static void named_ones_go_and_failed_ones_come_back(void **state)
{
    (void)state;
    begin(4);
    scale(1, 3);
    run_at(1);
    log_text[0] = '\0';
    of_task(RECONCILE_REMOVE, "one-0", 0);
    expect("drain one-0 30 s");
    run_at(2);
    expect("");
    assert_int_equal(reconcile_target(r, 1), 2);
    of_task(RECONCILE_FAIL, "one-1", 0);
    expect("drain one-1 30 s");
    ended("one-1", 0);
    run_at(3);
    expect("start one-1 on 1");
}

static void a_refused_request_is_made_later(void **state)
{
    char size[100], more[200];

    (void)state;
    begin(2);
    scale(1, 2);
    run_at(1);
    log_text[0] = '\0';
    feed(
        (struct reconcile_fact){.kind = RECONCILE_REFUSED, .role = 1, .text = "AssocGrpNodeLimit"});
    run_at(2);
    expect("");
    reconcile_why(r, 1, now, size, sizeof(size), more, sizeof(more));
    assert_string_equal(size, "0 of 2 ready, 1 starting");
    assert_string_equal(more, "1 are missing, asked for in 4 s: AssocGrpNodeLimit");
    run_at(6.5);
    expect("ask one 1");
}

/* Slurm has no such nodes: fewer are asked for at once, and a pause follows when it is one. */
static void a_refused_request_is_made_smaller(void **state)
{
    (void)state;
    list[1].max = 6;
    begin(2);
    scale(1, 6);
    run_at(1);
    expect("start lead-0 on 1; start one-0 on 1; ask one 5");
    feed((struct reconcile_fact){.kind = RECONCILE_REFUSED, .role = 1, .text = "too many"});
    run_at(1);
    expect("ask one 3");
    feed((struct reconcile_fact){.kind = RECONCILE_REFUSED, .role = 1, .text = "too many"});
    run_at(1);
    expect("ask one 2");
    feed((struct reconcile_fact){.kind = RECONCILE_REFUSED, .role = 1, .text = "too many"});
    run_at(1);
    expect("ask one 1");
    granted(1, 7, 1);
    run_at(2);
    expect("ask one 1"); /* two were too many */
    granted(1, 8, 1);
    ready("lead-0");
    ready("one-0");
    node(2, 7, 1, 1);
    run_at(700);
    expect("start one-1 on 2; ask one 3"); /* they may not be by now */
    for (int count = 2; count > 0; count--) {
        feed((struct reconcile_fact){.kind = RECONCILE_REFUSED, .role = 1, .text = "too many"});
        run_at(700);
        expect(count == 2 ? "ask one 2" : "ask one 1");
    }
    feed((struct reconcile_fact){.kind = RECONCILE_REFUSED, .role = 1, .text = "a limit"});
    run_at(701);
    expect("");
    run_at(710);
    expect("ask one 1");
}

/* Two tasks on each of two nodes: the extension comes and goes with its gang. */
static void a_gang_on_several_nodes_has_an_extension_of_its_own(void **state)
{
    (void)state;
    list[1].gang.tasks = 4;
    list[1].gang.per_node = 2;
    list[1].min = 0;
    begin(1);
    scale(1, 3);
    run_at(1);
    expect("start lead-0 on 1; ask one 1");
}

static void a_request_that_is_passed_on_is_made_anew(void **state)
{
    (void)state;
    begin(2);
    scale(1, 2);
    run_at(1);
    expect("start lead-0 on 1; start one-0 on 1; ask one 1");
    feed((struct reconcile_fact){.kind = RECONCILE_REQUESTED, .role = 1, .job = 7});
    run_at(20);
    expect("");
    feed((struct reconcile_fact){.kind = RECONCILE_PASSED, .job = 7});
    run_at(20);
    expect("ask one 1");
    granted(1, 8, 1);
    feed((struct reconcile_fact){.kind = RECONCILE_PASSED, .job = 8}); /* too late */
    feed((struct reconcile_fact){.kind = RECONCILE_DENIED, .job = 7});
    run_at(21);
    expect("");
}

/* The leader before this one has asked for it. */
static void an_extension_from_before_a_takeover_goes_back(void **state)
{
    (void)state;
    begin(2);
    run_at(1);
    expect("start lead-0 on 1; start one-0 on 1");
    granted(1, 7, 1);
    node(2, 7, 2, 1);
    run_at(2);
    expect("give back 7");
    feed((struct reconcile_fact){.kind = RECONCILE_DENIED, .job = 7});
    granted(0, 8, 1); /* whose nodes have not joined so far */
    run_at(3);
    expect("give back 8");
}

static int cpus_of(const char *name)
{
    const struct replica *replica = reconcile_named(r, name);

    return replica != NULL ? replica->gang->size.cpus : 0;
}

static void replicas_have_needs_of_their_own(void **state)
{
    (void)state;
    begin(8);
    run_at(1);
    expect("start lead-0 on 1; start one-0 on 1");
    scale_with(1, 3, 3);
    run_at(1);
    /* The first one takes three of the six CPUs that are free, the other one the rest. */
    expect("start one-1 on 1; start one-2 on 1");
    assert_int_equal(cpus_of("one-0"), 1);
    assert_int_equal(cpus_of("one-1"), 3);
    scale(1, 4);
    run_at(1);
    expect("ask one 1"); /* nothing is left, also not for a small one */
    ended("one-1", 0);   /* finished: its needs go with it, and its room is another one's */
    run_at(2);
    expect("start one-3 on 1");
    assert_int_equal(cpus_of("one-3"), 1);
    assert_int_equal(reconcile_target(r, 1), 3);
}

/* What has needs that no node fulfils does not keep others from their room, and each has a request
 * of its own. */
static void other_needs_wait_for_themselves(void **state)
{
    struct slots_gang gang;

    (void)state;
    begin(4);
    run_at(1);
    expect("start lead-0 on 1; start one-0 on 1");
    scale_with(1, 2, 9);
    run_at(1);
    expect("ask one 1");
    scale(1, 3);
    run_at(1);
    expect("start one-2 on 1");
    scale(1, 4);
    run_at(1);
    expect("start one-3 on 1");
    feed((struct reconcile_fact){
        .kind = RECONCILE_REFUSED, .role = 1, .form = 1, .text = "too large"});
    run_at(1);
    expect("");
    assert_int_equal(reconcile_target_of(r, 1, 1, &gang), 1);
    assert_int_equal(gang.size.cpus, 9);
    scale(1, 3); /* what is not ready goes first */
    run_at(1);
    expect("");
    assert_int_equal(reconcile_target_of(r, 1, 1, &gang), 0);
    assert_null(reconcile_named(r, "one-1"));
}

static void there_are_so_many_different_needs(void **state)
{
    struct slots_gang gang = {{90, 0, 0}, 1, 0, false};

    (void)state;
    list[1].max = 100;
    begin(2);
    for (int i = 1; i < RECONCILE_FORMS; i++) {
        assert_true(reconcile_can_have(r, 1, &gang));
        scale_with(1, reconcile_target(r, 1) + 1, 10 + i);
    }
    assert_false(reconcile_can_have(r, 1, &gang));
    scale_with(1, 50, 90); /* nothing happens */
    assert_int_equal(reconcile_target(r, 1), RECONCILE_FORMS);
    gang.size.cpus = 12;
    assert_true(reconcile_can_have(r, 1, &gang));
    scale(1, 1); /* what nobody needs any more makes room */
    run_at(1);
    gang.size.cpus = 90;
    assert_true(reconcile_can_have(r, 1, &gang));
    log_text[0] = '\0';
}

/* They come after the guaranteed replicas of all roles. */
static void other_needs_make_way(void **state)
{
    (void)state;
    list[2].min = 1;
    begin(4);
    run_at(1);
    expect("start lead-0 on 1; start one-0 on 1; start two-0 on 1");
    scale(2, 0);
    run_at(1);
    expect("drain two-0 30 s");
    ended("two-0", 0);
    scale_with(1, 2, 2);
    run_at(1);
    expect("start one-1 on 1");
    ready("one-1");
    scale(2, 1);
    run_at(2);
    expect("drain one-1 30 s; ask one 1; ask two 1");
}

static void adopt(int replica, int start, int role, int index, int on)
{
    feed((struct reconcile_fact){.kind = RECONCILE_ADOPT,
                                 .replica = replica,
                                 .start = start,
                                 .role = role,
                                 .index = index,
                                 .node = on});
}

/* Replicas of "two" own gangs of "one". */
static void begin_pairs(int cpus)
{
    roles.pairs.any = true;
    roles.pairs.owner = 2;
    roles.pairs.owned = 1;
    list[1].min = list[2].min = 0;
    begin(cpus);
    run_at(1);
    expect("start lead-0 on 1");
}

/* … so many of them, with two tasks of a CPU each. */
static void scale_pairs(int count)
{
    struct slots_gang gang = {{1, 0, 0}, 2, 0, true};

    feed(
        (struct reconcile_fact){.kind = RECONCILE_SCALE, .role = 1, .count = count, .gang = &gang});
}

static void both_tasks(enum reconcile_fact_kind kind, const char *name, int status)
{
    const struct replica *replica = reconcile_named(r, name);
    int id = replica->id, start = replica->start;

    for (int task = 0; task < 2; task++)
        feed((struct reconcile_fact){.kind = kind,
                                     .replica = id,
                                     .start = start,
                                     .task = task,
                                     .status = status,
                                     .text = "exit"});
}

static void pair_ready(void)
{
    scale_pairs(1);
    run_at(2);
    expect("start two-0 on 1");
    assert_string_equal(reconcile_named(r, "one-0")->reason, "waits for two-0");
    ready("two-0");
    run_at(2);
    expect("start one-0 on 1; start one-0 on 1");
    both_tasks(RECONCILE_RUNNING, "one-0", 0);
    both_tasks(RECONCILE_TASK_READY, "one-0", 0);
    run_at(3);
    expect("");
    assert_int_equal(reconcile_named(r, "one-0")->state, REPLICA_READY);
    assert_int_equal(reconcile_target(r, 2), 1);
}

static void a_gang_starts_with_its_owner(void **state)
{
    (void)state;
    begin_pairs(8);
    pair_ready();
    scale(2, 3); /* nobody says how many owners there are */
    run_at(4);
    expect("");
    scale(1, 0);
    run_at(5);
    expect("drain one-0 30 s; drain one-0 30 s; drain two-0 30 s");
}

static void an_owner_that_fails_takes_its_gang_along(void **state)
{
    (void)state;
    begin_pairs(8);
    pair_ready();
    ended("two-0", 1);
    run_at(3.5);
    expect("drain one-0 30 s; drain one-0 30 s");
    both_tasks(RECONCILE_EXITED, "one-0", 0);
    run_at(5);
    expect("start two-0 on 1");
    ready("two-0");
    run_at(6);
    expect("start one-0 on 1; start one-0 on 1");
}

static void a_gang_that_fails_keeps_its_owner(void **state)
{
    (void)state;
    begin_pairs(8);
    pair_ready();
    feed((struct reconcile_fact){.kind = RECONCILE_EXITED,
                                 .replica = reconcile_named(r, "one-0")->id,
                                 .start = reconcile_named(r, "one-0")->start,
                                 .task = 1,
                                 .status = 1,
                                 .text = "exit"});
    run_at(4);
    expect("kill one-0");
    both_tasks(RECONCILE_EXITED, "one-0", 137);
    run_at(5);
    expect("start one-0 on 1; start one-0 on 1");
}

static void a_pair_goes_with_its_owner(void **state)
{
    (void)state;
    begin_pairs(8);
    pair_ready();
    scale(1, 2); /* a plain one beside it */
    run_at(4);
    expect("start one-1 on 1");
    feed((struct reconcile_fact){
        .kind = RECONCILE_REMOVE, .replica = reconcile_named(r, "two-0")->id, .text = "asked"});
    run_at(5);
    expect("drain one-0 30 s; drain one-0 30 s; drain two-0 30 s");
    assert_int_equal(reconcile_target(r, 1), 1);
    assert_int_equal(reconcile_target(r, 2), 0);
}

static void plain_ones_go_first(void **state)
{
    (void)state;
    begin_pairs(8);
    pair_ready();
    scale(1, 2);
    run_at(4);
    expect("start one-1 on 1");
    ready("one-1");
    scale(1, 1);
    run_at(5);
    expect("drain one-1 30 s");
}

/* Its owner is on a node that goes: there is another one. */
static void an_owner_whose_node_goes_is_replaced(void **state)
{
    (void)state;
    begin_pairs(3); /* no room for the owner and its gang beside each other */
    scale_pairs(1);
    run_at(2);
    expect("start two-0 on 1; ask one 1");
    granted(1, 7, 1);
    node(2, 7, 2, 1);
    ready("two-0");
    run_at(3);
    expect("start one-0 on 2; start one-0 on 2");
    both_tasks(RECONCILE_RUNNING, "one-0", 0);
    both_tasks(RECONCILE_TASK_READY, "one-0", 0);
    node(3, 0, 1, -1);
    feed((struct reconcile_fact){.kind = RECONCILE_NODE_GOES, .node = 1, .text = "taken"});
    expect("drain two-0 30 s; drain lead-0 30 s");
    run_at(4);
    expect("drain one-0 30 s; drain one-0 30 s; start two-1 on 3");
    both_tasks(RECONCILE_EXITED, "one-0", 0);
    ready("two-1");
    run_at(5);
    expect("start one-0 on 2; start one-0 on 2");
}

static void adopt_gang(int replica, int start, int index, int on, int owner)
{
    struct slots_gang gang = {{1, 0, 0}, 2, 0, true};
    struct reconcile_fact fact = {.kind = RECONCILE_ADOPT,
                                  .replica = replica,
                                  .start = start,
                                  .role = 1,
                                  .index = index,
                                  .node = on,
                                  .gang = &gang,
                                  .owner = owner};

    feed(fact);
    for (fact.task = 0; fact.task < 2; fact.task++) {
        fact.kind = RECONCILE_RUNNING;
        feed(fact);
        fact.kind = RECONCILE_TASK_READY;
        feed(fact);
    }
}

static void begin_again(void)
{
    roles.pairs.any = true;
    roles.pairs.owner = 2;
    roles.pairs.owned = 1;
    list[1].min = list[2].min = 0;
    create(1000);
    node(1, 0, 9, -1);
    run_at(0);
    scale_pairs(2);
    adopt(1, 1, 0, 0, 1);
}

/* In whatever order they come. */
static void pairs_go_on_after_a_takeover(void **state)
{
    (void)state;
    begin_again();
    adopt_gang(5, 25, 4, 1, 1);
    adopt(6, 20, 2, 1, 1);
    adopt(7, 21, 2, 0, 1);
    adopt_gang(8, 26, 3, 1, 0);
    ready("two-0");
    ready("two-1");
    feed((struct reconcile_fact){.kind = RECONCILE_BASE_DONE});
    run_at(1);
    expect("");
    assert_int_equal(reconcile_find(r, 5)->pair, 6);
    assert_int_equal(reconcile_find(r, 7)->pair, 8);
}

/* The owner of one is lost, and the gang of the other one: they do not become a pair that runs. */
static void halves_of_pairs_after_a_takeover(void **state)
{
    (void)state;
    begin_again();
    adopt_gang(5, 25, 4, 1, 1);
    adopt(7, 21, 2, 0, 1);
    ready("two-0");
    feed((struct reconcile_fact){.kind = RECONCILE_BASE_DONE});
    run_at(1);
    expect("drain one-4 30 s; drain one-4 30 s; start two-1 on 1");
    both_tasks(RECONCILE_EXITED, "one-4", 0);
    run_at(2);
    expect("start one-4 on 1; start one-4 on 1");
    ready("two-1");
    run_at(3);
    expect("start one-0 on 1; start one-0 on 1");
}

static void replicas_go_on_after_a_takeover(void **state)
{
    (void)state;
    list[1].min = 3;
    create(1000);
    node(1, 0, 2, -1);
    run_at(0);
    expect("");
    adopt(7, 70, 0, 0, 1);
    adopt(4, 90, 1, 2, 1);
    assert_int_equal(reconcile_tasks_on(r, 1), 2);
    ready("lead-0");
    ready("one-2");
    assert_int_equal(reconcile_in_state(r, 1, REPLICA_READY), 1);
    /* Not twice, not by another's name or number, and not by what this leader has given out. */
    adopt(4, 90, 1, 1, 1);
    adopt(5, 91, 1, 2, 1);
    adopt(1001, 92, 1, 1, 1);
    adopt(6, 1001, 1, 1, 1);
    adopt(6, 93, 1, 1, 99);
    adopt(6, 93, 9, 1, 1);
    adopt(6, 93, 1, -1, 1);
    assert_int_equal(reconcile_tasks_on(r, 1), 2);
    feed((struct reconcile_fact){.kind = RECONCILE_BASE_DONE});
    node(2, 0, 2, -1);
    run_at(1);
    expect("start one-0 on 2; start one-1 on 2");
    assert_true(reconcile_named(r, "one-0")->id > 1000);
    assert_true(reconcile_named(r, "one-0")->start > 1000);
    ended("one-2", 1); /* as any other */
    run_at(1);
    expect("");
    run_at(2);
    expect("start one-2 on 1");
}

/* Another one would be no better. */
static void no_more_is_asked_for_while_an_extension_is_of_no_use(void **state)
{
    (void)state;
    list[1].gang.size.cpus = 2;
    begin(3);
    scale(1, 2);
    run_at(1);
    expect("start lead-0 on 1; start one-0 on 1; ask one 1");
    granted(1, 7, 1);
    node(2, 7, 1, 1); /* too small */
    run_at(2);
    expect("");
    run_at(32);
    expect("give back 7");
    feed((struct reconcile_fact){.kind = RECONCILE_DENIED, .job = 7});
    run_at(33);
    expect(""); /* not at once */
    run_at(40);
    expect("ask one 1");
}

/* Its place is kept while it waits to be started again. */
static void an_extension_outlives_the_failure_of_its_replica(void **state)
{
    (void)state;
    begin(2);
    scale(1, 2);
    run_at(1);
    expect("start lead-0 on 1; start one-0 on 1; ask one 1");
    granted(1, 7, 1);
    node(2, 7, 1, 1);
    run_at(2);
    expect("start one-1 on 2");
    ready("one-0");
    ready("lead-0");
    ready("one-1");
    ended("one-1", 1);
    run_at(2);
    expect("");
    run_at(3.5);
    expect("start one-1 on 2");
}

static void an_extension_that_boots_goes_back_if_nobody_needs_it(void **state)
{
    (void)state;
    begin(2);
    scale(1, 2);
    run_at(1);
    expect("start lead-0 on 1; start one-0 on 1; ask one 1");
    granted(1, 7, 1);
    scale(1, 1);
    run_at(2);
    expect("give back 7");
}

/* How many nodes it has is known only later. */
static void what_slurm_has_granted_may_change(void **state)
{
    (void)state;
    begin(2);
    scale(1, 4);
    run_at(1);
    expect("start lead-0 on 1; start one-0 on 1; ask one 3");
    granted(1, 7, 1);
    node(2, 7, 1, 1);
    run_at(2);
    expect("start one-1 on 2; ask one 2"); /* no more seem to come */
    feed((struct reconcile_fact){.kind = RECONCILE_REFUSED, .role = 1, .text = "no"});
    feed((struct reconcile_fact){.kind = RECONCILE_GRANTED, .job = 7, .count = 3});
    run_at(2);
    expect(""); /* the other two are on their way */
}

static void tasks_on_a_node_are_counted(void **state)
{
    (void)state;
    begin(2);
    assert_int_equal(reconcile_tasks_on(r, 1), 2);
    ended("one-0", 1);
    assert_int_equal(reconcile_tasks_on(r, 1), 1);
    assert_int_equal(reconcile_tasks_on(r, 99), 0);
}

/* Role "two" is a world, whose nodes take so much; 0: what is left. */
static void be_world(int nodes, int cpus)
{
    list[2].kind = ROLE_WORLD;
    list[2].min = nodes;
    list[2].gang.size = (struct slots_size){cpus, 0, 0};
}

static void world_is_over(int status)
{
    feed((struct reconcile_fact){.kind = RECONCILE_WORLD_OVER, .status = status});
}

static void the_world_takes_what_is_left(void **state)
{
    (void)state;
    be_world(1, 0);
    begin(8);
    expect("start lead-0 on 1; start one-0 on 1");
    assert_true(reconcile_has_world(r, 1));
    scale(1, 2);
    run_at(1); /* no room beside it */
    expect("ask one 1");
}

static void a_world_without_room_ends_the_job(void **state)
{
    (void)state;
    be_world(1, 9);
    begin(8);
    expect("say: the base has no 1 nodes with room for two");
    world_is_over(143); /* it has been told */
    run_at(1);
    expect("say: two has ended; finish 1");
}

/* Else the job would wait for ever: who would end it? */
static void a_leading_role_without_room_beside_the_world_ends_the_job(void **state)
{
    (void)state;
    be_world(1, 2);
    begin(2);
    expect("say: the base has no room for lead");
    world_is_over(143);
    run_at(1);
    expect("say: two has ended; finish 1");
}

/* … and takes the node on which the world has no room. */
static void the_world_leaves_room_for_the_leading_role(void **state)
{
    (void)state;
    for (int large = 1; large <= 2; large++) {
        be_world(2, 2);
        create(0);
        node(1, 0, large == 1 ? 3 : 2, -1);
        node(2, 0, large == 2 ? 3 : 2, -1);
        feed((struct reconcile_fact){.kind = RECONCILE_BASE_DONE});
        run_at(0);
        assert_int_equal(reconcile_named(r, "lead-0")->tasks[0].node, large);
        reconcile_destroy(r);
        r = NULL;
        log_text[0] = '\0';
    }
}

/* Its node is lost with the world's: it comes before the world. */
static void the_leading_role_comes_back_before_the_world(void **state)
{
    (void)state;
    be_world(2, 2);
    list[1].min = 0;
    create(1 << 20);
    node(1, 0, 2, -1);
    feed((struct reconcile_fact){.kind = RECONCILE_BASE_DONE});
    run_at(1);
    expect("start lead-0 on 1");
    assert_false(reconcile_has_world(r, 1));
}

static void a_leading_role_without_room_ends_the_job(void **state)
{
    (void)state;
    list[0].gang.size.cpus = 9;
    begin(8);
    expect("say: the base has no room for lead; finish 1");
}

/* After a takeover nodes may be missing that come back. */
static void what_has_run_waits_for_room(void **state)
{
    (void)state;
    list[0].gang.size.cpus = 9;
    create(1 << 20);
    node(1, 0, 8, -1);
    feed((struct reconcile_fact){
        .kind = RECONCILE_ADOPT, .replica = 5, .start = 5, .role = 1, .node = 1});
    feed((struct reconcile_fact){.kind = RECONCILE_BASE_DONE});
    run_at(1);
    expect("");
    node(2, 0, 9, -1);
    run_at(2);
    expect("start lead-0 on 2");
}

static void the_job_is_not_over_before_its_world(void **state)
{
    (void)state;
    be_world(1, 2);
    begin(8);
    expect("start lead-0 on 1; start one-0 on 1");
    ready("lead-0");
    ended("lead-0", 3);
    expect("say: lead-0 has ended with 3; drain one-0 30 s");
    ended("one-0", 0);
    run_at(1);
    expect("");
    assert_false(reconcile_world_is_over(r));
    world_is_over(0);
    assert_true(reconcile_world_is_over(r));
    run_at(1);
    expect("say: two has ended; finish 3");
}

static void a_world_that_leads_ends_the_job(void **state)
{
    (void)state;
    list[0].leads = false;
    be_world(1, 2);
    list[2].leads = true;
    begin(8);
    expect("start lead-0 on 1; start one-0 on 1");
    world_is_over(7);
    expect("say: two has ended with 7; drain one-0 30 s; drain lead-0 30 s");
    ended("one-0", 0);
    ended("lead-0", 0);
    world_is_over(8); /* once more */
    run_at(1);
    expect("finish 7");
}

/* What waits for the world may start when it trains, and when it has ended well. */
static void a_role_comes_after_the_world(void **state)
{
    static int after[] = {2};

    (void)state;
    for (int way = 0; way < 3; way++) {
        be_world(1, 2);
        list[1].after = after;
        list[1].after_count = 1;
        begin(8);
        expect("start lead-0 on 1");
        assert_string_equal(reconcile_named(r, "one-0")->reason, "waits for two");
        if (way == 0)
            feed((struct reconcile_fact){.kind = RECONCILE_WORLD, .count = 1});
        else
            world_is_over(way - 1);
        run_at(1);
        expect(way == 0   ? "start one-0 on 1"
               : way == 1 ? "say: two has ended with 0; start one-0 on 1"
                          : "say: two has ended with 1");
        reconcile_destroy(r);
        r = NULL;
    }
}

/* Its slots are others' then. */
static void the_slots_of_a_world_that_is_over(void **state)
{
    (void)state;
    for (int cpus = 0; cpus <= 5; cpus += 5) {
        be_world(1, cpus);
        begin(7);
        expect("start lead-0 on 1; start one-0 on 1");
        assert_true(reconcile_has_world(r, 1));
        scale(1, 3);
        run_at(1);
        expect("ask one 2");
        world_is_over(0);
        run_at(2);
        assert_false(reconcile_has_world(r, 1));
        assert_int_equal(reconcile_tasks_on(r, 1), 4);
        log_text[0] = '\0';
        reconcile_destroy(r);
        r = NULL;
    }
}

/* A fit needs it, and then another one: each gets the nodes that have room then. */
static void a_world_that_a_fit_trains(void **state)
{
    int status;

    (void)state;
    be_world(1, 5);
    list[2].trains = true;
    begin(7);
    expect("start lead-0 on 1; start one-0 on 1");
    assert_true(reconcile_world_is_over(r) && !reconcile_has_world(r, 1));
    assert_false(reconcile_world_has_ended(r, &status));
    for (int code = 0; code < 2; code++) {
        scale(2, 1);
        run_at(1);
        assert_true(reconcile_has_world(r, 1) && !reconcile_world_is_over(r));
        assert_int_equal(reconcile_world_nodes(r), 1);
        scale(2, 2); /* there is one */
        assert_int_equal(reconcile_target(r, 2), 1);
        world_is_over(code);
        run_at(2);
        assert_true(reconcile_world_has_ended(r, &status));
        assert_int_equal(status, code);
        assert_false(reconcile_has_world(r, 1));
        scale(2, 1); /* it is that already */
        assert_true(reconcile_world_is_over(r));
        scale(2, 0);
        assert_false(reconcile_world_has_ended(r, &status));
    }
    expect("say: two has ended with 0; say: two has ended with 1");
    /* It is told to end. */
    scale(2, 1);
    run_at(3);
    scale(2, 0);
    assert_false(reconcile_world_is_over(r));
    world_is_over(143);
    assert_false(reconcile_world_has_ended(r, &status));
    /* Replicas have its room: it waits, and takes no part of what it needs. */
    log_text[0] = '\0';
    scale(1, 3);
    run_at(4);
    scale(2, 1);
    run_at(5);
    assert_int_equal(reconcile_world_nodes(r), 0);
    scale(1, 1);
    for (int i = 1; i <= 2; i++)
        ended(i == 1 ? "one-1" : "one-2", 143);
    run_at(6);
    assert_int_equal(reconcile_world_nodes(r), 1);
}

static void the_world_gets_another_node_of_the_base(void **state)
{
    (void)state;
    be_world(2, 4);
    create(0);
    for (int id = 1; id <= 3; id++)
        node(id, 0, 6, -1);
    feed((struct reconcile_fact){.kind = RECONCILE_BASE_DONE});
    run_at(0);
    log_text[0] = '\0';
    assert_true(reconcile_has_world(r, 1) && reconcile_has_world(r, 2));
    assert_false(reconcile_has_world(r, 3));
    feed((struct reconcile_fact){.kind = RECONCILE_NODE_GONE, .node = 2, .text = "gone"});
    run_at(1);
    assert_true(reconcile_has_world(r, 1) && reconcile_has_world(r, 3));
    feed((struct reconcile_fact){.kind = RECONCILE_NODE_GONE, .node = 3, .text = "gone"});
    log_text[0] = '\0';
    run_at(2); /* no node has room: the world goes on with less, or grows elsewhere */
    assert_false(reconcile_stopping(r));
    node(4, 0, 4, -1); /* its agent is back */
    run_at(3);
    assert_true(reconcile_has_world(r, 4));
}

/* A node that the world had before is the world's, whatever else fits. */
static void the_world_keeps_its_nodes_at_a_takeover(void **state)
{
    (void)state;
    for (int cpus = 0; cpus <= 4; cpus += 4) {
        struct reconcile_node joins = {2, 0, {6, 0, 1000}, true, -1, true};

        be_world(1, cpus);
        create(1 << 20);
        node(1, 0, 6, -1);
        feed((struct reconcile_fact){.kind = RECONCILE_NODE, .joins = &joins});
        feed((struct reconcile_fact){
            .kind = RECONCILE_ADOPT, .replica = 5, .start = 5, .role = 1, .node = 2});
        feed((struct reconcile_fact){.kind = RECONCILE_BASE_DONE});
        run_at(0);
        assert_true(reconcile_has_world(r, 2));
        assert_false(reconcile_has_world(r, 1));
        scale(1, 4);
        run_at(1);
        assert_int_equal(reconcile_tasks_on(r, 2), 2);
        reconcile_destroy(r);
        r = NULL;
        log_text[0] = '\0';
    }
}

static void max_nodes_ends_growth(void **state)
{
    (void)state;
    roles.max_nodes = 1;
    begin(2);
    scale(1, 4);
    run_at(1);
    expect("start lead-0 on 1; start one-0 on 1");
}

/* Two nodes, of which the first one is always the fuller one. Each update has a new replica beside
 * the old ones; then an old one leaves. */
static void replicas_of_a_shard_are_on_different_nodes(void **state)
{
    char *names[] = {(char *)"one-0", (char *)"one-1", (char *)"one-2"};
    int version[3] = {1, 1, 0}, updates = 0;

    (void)state;
    list[1].kind = ROLE_SHARDS;
    list[1].min = 0;
    list[1].max = 2;
    create(0);
    node(1, 0, 8, -1);
    node(2, 0, 20, -1);
    feed((struct reconcile_fact){.kind = RECONCILE_BASE_DONE});
    feed((struct reconcile_fact){.kind = RECONCILE_OPEN, .role = 1});
    scale(1, 2);
    run_at(0);
    expect("start lead-0 on 1; start one-0 on 1; start one-1 on 2");
    ready("one-0");
    ready("one-1");
    for (int new = 2; updates < 10; updates++) {
        int node_of[3], count = 0, old = (new + 1) % 3;

        scale(1, 3);
        run_at(1);
        ready(names[new]);
        version[new] = updates + 2;
        if (version[old] > version[3 - new - old])
            old = 3 - new - old;
        feed((struct reconcile_fact){.kind = RECONCILE_REMOVE,
                                     .replica = reconcile_named(r, names[old])->id,
                                     .text = "old"});
        ended(names[old], 0);
        run_at(1);
        for (int i = 0; i < 3; i++) {
            const struct replica *left = reconcile_named(r, names[i]);

            if (left != NULL)
                node_of[count++] = left->tasks[0].node;
        }
        assert_int_equal(count, 2);
        assert_int_not_equal(node_of[0], node_of[1]);
        new = old;
    }
    log_text[0] = '\0';
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(starts_the_least_sizes),
        TEST(a_role_comes_after_another),
        TEST(auto_fills_what_is_free_and_asks_for_more),
        TEST(a_request_gets_smaller_and_is_withdrawn),
        TEST(an_extension_is_used_and_goes_back),
        TEST(a_role_shrinks_by_whole_extensions),
        TEST(who_is_not_ready_goes_first),
        TEST(a_preempted_node_is_drained_in_its_time),
        TEST(a_failed_replica_waits_longer_each_time),
        TEST(what_has_long_been_ready_does_not_wait_longer),
        TEST(status_127_is_final),
        TEST(a_lost_node_costs_no_restart),
        TEST(who_is_not_ready_in_time_has_failed),
        TEST(who_is_not_ready_any_more_has_failed),
        TEST(who_does_not_drain_is_killed),
        TEST(a_gang_fails_as_a_whole),
        TEST(who_ends_with_0_is_finished),
        TEST(the_job_ends_as_its_leading_role),
        TEST(clean_none_lets_the_others_end),
        TEST(guaranteed_ones_get_the_room_of_others),
        TEST(named_ones_go_and_failed_ones_come_back),
        TEST(a_refused_request_is_made_later),
        TEST(a_refused_request_is_made_smaller),
        TEST(a_gang_on_several_nodes_has_an_extension_of_its_own),
        TEST(a_request_that_is_passed_on_is_made_anew),
        TEST(replicas_have_needs_of_their_own),
        TEST(other_needs_wait_for_themselves),
        TEST(there_are_so_many_different_needs),
        TEST(other_needs_make_way),
        TEST(a_gang_starts_with_its_owner),
        TEST(an_owner_that_fails_takes_its_gang_along),
        TEST(a_gang_that_fails_keeps_its_owner),
        TEST(a_pair_goes_with_its_owner),
        TEST(plain_ones_go_first),
        TEST(an_owner_whose_node_goes_is_replaced),
        TEST(pairs_go_on_after_a_takeover),
        TEST(halves_of_pairs_after_a_takeover),
        TEST(an_extension_from_before_a_takeover_goes_back),
        TEST(replicas_go_on_after_a_takeover),
        TEST(no_more_is_asked_for_while_an_extension_is_of_no_use),
        TEST(an_extension_outlives_the_failure_of_its_replica),
        TEST(an_extension_that_boots_goes_back_if_nobody_needs_it),
        TEST(what_slurm_has_granted_may_change),
        TEST(tasks_on_a_node_are_counted),
        TEST(the_world_takes_what_is_left),
        TEST(a_world_without_room_ends_the_job),
        TEST(a_leading_role_without_room_beside_the_world_ends_the_job),
        TEST(the_world_leaves_room_for_the_leading_role),
        TEST(the_leading_role_comes_back_before_the_world),
        TEST(a_leading_role_without_room_ends_the_job),
        TEST(what_has_run_waits_for_room),
        TEST(the_job_is_not_over_before_its_world),
        TEST(a_world_that_leads_ends_the_job),
        TEST(a_role_comes_after_the_world),
        TEST(the_slots_of_a_world_that_is_over),
        TEST(a_world_that_a_fit_trains),
        TEST(the_world_gets_another_node_of_the_base),
        TEST(the_world_keeps_its_nodes_at_a_takeover),
        TEST(max_nodes_ends_growth),
        TEST(replicas_of_a_shard_are_on_different_nodes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
