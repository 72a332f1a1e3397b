/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Workers that behave: started, watched, held at a step, stopped (agent/workers/workers.c,
 * agent/workers/exec_worker.c). */
#include "tests/unit/workers_fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "client/event_page.h"

static void assert_line(const struct run *run, int rank, const char *line)
{
    if (strstr(run->texts[rank][1].head, line) == NULL)
        fail_msg("\"%s\" is not in the output of rank %d: \"%s\"", line, rank,
                 run->texts[rank][1].head);
}

static void test_start_and_end(void **state)
{
    struct run *run = run_create(2);
    char *argv[] = {"sh", "-c", "echo out $RANK; echo err $LOCAL_RANK >&2; exit $RANK", NULL};

    (void)state;
    run->options.argv = argv;
    run_start(run);
    AWAIT(run, run->drained > 0);
    assert_int_equal(run->ready, 1);
    assert_int_equal(run->exits, 2);
    for (int rank = 0; rank < 2; rank++) {
        char out[16], err[16];

        snprintf(out, sizeof(out), "out %d\n", rank);
        snprintf(err, sizeof(err), "err %d\n", rank);
        assert_string_equal(run->texts[rank][1].head, out);
        assert_string_equal(run->texts[rank][2].head, err);
        assert_int_equal(run->endings[rank].count, 1);
        assert_int_equal(run->endings[rank].code, rank);
        assert_int_equal(run->endings[rank].signal, 0);
        assert_false(run->endings[rank].told);
        assert_string_equal(run->endings[rank].message, "");
    }
    run_destroy(run);
}

/* The tasks of a replica have different ports. */
static void test_a_command_each(void **state)
{
    struct run *run = run_create(2);
    char *first[] = {"echo", "one", NULL}, *second[] = {"sh", "-c", "echo two; exit 4", NULL};
    char *const *argvs[] = {first, second};

    (void)state;
    run->options.argvs = argvs;
    run_start(run);
    AWAIT(run, run->drained > 0);
    assert_string_equal(run->texts[0][1].head, "one\n");
    assert_string_equal(run->texts[1][1].head, "two\n");
    assert_int_equal(run->endings[0].code, 0);
    assert_int_equal(run->endings[1].code, 4);
    run_destroy(run);
}

/* Handlers may destroy the set: member.c does so from drained. */
static void test_destroy_when_drained(void **state)
{
    struct run *run = run_create(3);
    char *argv[] = {"true", NULL};

    (void)state;
    run->destroy_when_drained = true;
    run->options.argv = argv;
    run_start(run);
    AWAIT(run, run->drained > 0);
    assert_int_equal(run->exits, 3);
    run_destroy(run);
}

static void test_what_a_worker_finds(void **state)
{
    struct run *run = run_create(1);
    char event[128];

    (void)state;
    run_start_act(run, "look", "");
    AWAIT(run, run->drained > 0);
    assert_int_equal(run->endings[0].code, 0);
    snprintf(event, sizeof(event), "event: %s/worker-0.event\n", run->dir);
    assert_line(run, 0, event);
    assert_line(run, 0, "stdin: /dev/null\n");
    assert_line(run, 0, "cwd: /tmp\n");
    assert_line(run, 0, "umask: 027\n");
    assert_line(run, 0, "rank: 0\n");
    assert_line(run, 0, "open: 0\n");
    assert_line(run, 0, "leader: 1\n");
    assert_line(run, 0, "blocked: 0\n");
    assert_line(run, 0, "sigpipe: 1\n");
    run_destroy(run);
}

/* Scripts write to /dev/stdout, which a socket would refuse. */
static void test_reopen_stdout(void **state)
{
    struct run *run = run_create(1);

    (void)state;
    run_start_act(run, "reopen", "");
    AWAIT(run, run->drained > 0);
    assert_int_equal(run->endings[0].code, 0);
    assert_string_equal(run->texts[0][1].head, "reopened\n");
    run_destroy(run);
}

static void test_stepping(void **state)
{
    struct run *run = run_create(2);

    (void)state;
    run_start_act(run, "train", "100000");
    AWAIT(run, run->stepping > 0);
    assert_int_equal(run->ready, 1);
    AWAIT(run, workers_step(run->workers) > 20);
    assert_int_equal(run->stepping, 1);
    run_destroy(run); /* kills */
}

/* Started early: they wait, nothing of their output is seen, and no time passes for them. */
static void test_gate(void **state)
{
    struct run *run = run_create(2);

    (void)state;
    run->options.gated = true;
    run->options.unaware_ms = 1;
    run->options.files = "next";
    run_start_act(run, "gate", "");
    AWAIT(run, run->parked > 0);
    assert_int_equal(run->ready, 1);
    assert_int_equal(workers_gate(run->workers), EVENT_AT_GATE);
    assert_true(workers_memory(run->workers) > 100000);
    for (int turn = 0; turn < 15; turn++)
        run_turn(run);
    assert_int_equal(run->parked, 1);
    assert_int_equal(run->stepping, 0);
    assert_int_equal(run->texts[0][1].bytes + run->texts[1][1].bytes, 0);
    workers_open(run->workers, false);
    AWAIT(run, run->stepping > 0);
    AWAIT(run, run_number(run, 0, "through") == 1 && run_number(run, 1, "before") == 1);
    for (int turn = 0; turn < 5; turn++)
        run_turn(run);
    assert_int_equal(run_number(run, 1, "through"), 0);
    workers_open(run->workers, true);
    AWAIT(run, run_number(run, 0, "through") == 1 && run_number(run, 1, "through") == 1);
    assert_int_equal(run_number(run, 0, "before"), 1);
    assert_int_equal(workers_gate(run->workers), EVENT_PASSED_INIT);
    assert_int_equal(run->parked + run->stepping + run->ready, 3);
    run_destroy(run);
}

/* Given up at the very moment at which they could be seen to wait: nobody is told any more. */
static void test_destroy_at_the_gate(void **state)
{
    struct run *run = run_create(1);
    const struct timespec nap = {.tv_nsec = 1000000};

    (void)state;
    run->options.gated = true;
    run_start_act(run, "gate", "");
    AWAIT(run, run->ready > 0);
    for (int i = 0; i < 120000 && workers_gate(run->workers) < EVENT_AT_GATE; i++)
        nanosleep(&nap, NULL);
    assert_int_equal(workers_gate(run->workers), EVENT_AT_GATE);
    for (int i = 0; i < 200; i++)
        nanosleep(&nap, NULL); /* the next look is due */
    workers_destroy(run->workers);
    run->workers = NULL;
    for (int turn = 0; turn < 20; turn++)
        run_turn(run);
    assert_int_equal(run->parked, 0);
    run_destroy(run);
}

static void test_end_before_the_gate(void **state)
{
    struct run *run = run_create(2);

    (void)state;
    run->options.gated = true;
    run_start_act(run, "gate", "end");
    AWAIT(run, run->drained > 0);
    assert_int_equal(run->exits, 2);
    assert_int_equal(run->endings[1].code, 3);
    assert_int_equal(run->parked, 0);
    run_destroy(run);
}

/* A script that never attaches counts as stepping after a while; one that has attached does not
 * until it steps. */
static void test_unaware(void **state)
{
    static const struct {
        const char *act, *argument;
        int stepping;
    } cases[] = {{"ignore-term", "", 1}, {"attach", "attached", 0}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct run *run = run_create(2);
        uint64_t until;

        run->options.unaware_ms = 400;
        run_start_act(run, cases[i].act, cases[i].argument);
        AWAIT(run, run_number(run, 0, "here") == 1 && run_number(run, 1, "here") == 1);
        assert_int_equal(run->stepping, 0);
        until = uv_now(&run->loop) + 700;
        AWAIT(run, uv_now(&run->loop) > until);
        assert_int_equal(run->stepping, cases[i].stepping);
        assert_int_equal(workers_unheard(run->workers),
                         cases[i].stepping); /* seconds, rounded up */
        run_destroy(run);
    }
}

/* All run to the step that the fastest is committed to, are given the event there, and leave. */
static void test_hold_and_run_to(void **state)
{
    struct run *run = run_create(3);
    struct workers_held held, again;

    (void)state;
    run_start_act(run, "train", "100000");
    for (int rank = 0; rank < 3; rank++)
        AWAIT(run, run_number(run, rank, "here") == 1);
    AWAIT(run, workers_step(run->workers) > 10);
    workers_hold(run->workers, "shrink", "node n3 is wanted by Slurm", 2, 0, &held);
    assert_int_equal(held.attached, 3);
    assert_int_equal(held.training, 3);
    assert_int_equal(held.running, 3);
    assert_int_equal(held.finished, 0);
    assert_true(held.step > 10);
    /* Nobody goes on before S is known; asked again, the answer is the same and the first event
     * stands. */
    workers_hold(run->workers, "grow", "another reason", 9, 0, &again);
    assert_int_equal(again.step, held.step);
    assert_int_equal(run->exits, 0);
    workers_run_to(run->workers, held.step + 3);
    AWAIT(run, run->drained > 0);
    for (int rank = 0; rank < 3; rank++) {
        assert_int_equal(run->endings[rank].code, 0);
        assert_true(run->endings[rank].told);
        assert_int_equal(run_number(run, rank, "stopped"), held.step + 3);
        assert_int_equal(run_number(run, rank, "kind"), EVENT_SHRINK);
        assert_int_equal(run_number(run, rank, "nodes"), 2);
        assert_line(run, rank, "reason: node n3 is wanted by Slurm\n");
    }
    workers_run_to(run->workers, held.step + 4); /* nobody is there any more */
    workers_hold(run->workers, "stop", "", 0, 0, &held);
    assert_int_equal(held.running, 0);
    assert_int_equal(held.finished, 3);
    run_destroy(run);
}

/* ---- from world to world --------------------------------------------------------------------- */

/* This node is the second. */
static struct world *next_world(int generation, int before, int after)
{
    struct world *world = world_create(generation, 3);

    assert_int_equal(world_set_node(world, 0, "node0", before), 0);
    assert_int_equal(world_set_node(world, 1, "node1", 2), 0);
    assert_int_equal(world_set_node(world, 2, "node2", after), 0);
    return world;
}

/* What a worker has said of a world. Its output is that of its new rank from the moment at which
 * it is moved. */
static int said(const struct run *run, int rank, int generation, const char *name)
{
    char key[32];

    snprintf(key, sizeof(key), "%d.%s", generation, name);
    return run_number(run, rank, key);
}

static bool in_world(const struct run *run, int rank, int generation)
{
    return said(run, rank, generation, "nodes") > 0;
}

static void assert_place(const struct run *run, int generation, int rank, int size)
{
    for (int i = 0; i < 2; i++) {
        assert_int_equal(said(run, rank + i, generation, "rank"), rank + i);
        assert_int_equal(said(run, rank + i, generation, "size"), size);
        assert_int_equal(said(run, rank + i, generation, "local"), i * 10 + 2);
        assert_int_equal(said(run, rank + i, generation, "nodes"), 3);
    }
}

/* Both have made a step: a number of 0 would look as if nothing had been said. */
static void start_live(struct run *run)
{
    run_start_act(run, "live", "77");
    AWAIT(run,
          run->stepping == 1 && said(run, 0, 7, "stepped") > 0 && said(run, 1, 7, "stepped") > 0);
    assert_true(workers_live(run->workers));
    assert_int_equal(workers_signature(run->workers), 77);
}

static uint64_t hold(struct run *run)
{
    struct workers_held held;

    workers_hold(run->workers, "grow", "more", 3, 0, &held);
    return held.step;
}

static void move(struct run *run, const struct world *world, int attempt)
{
    struct error err = {""};
    char files[32];

    snprintf(files, sizeof(files), "worker-%d", world->generation);
    assert_int_equal(workers_move(run->workers, world, 1, attempt, files, &err), 0);
    assert_string_equal(err.text, "");
}

/* Rank 0 of the first world is slow to leave it. */
static void slow_down(const struct run *run, bool slow)
{
    char path[sizeof(run->dir) + 8];

    snprintf(path, sizeof(path), "%s/slow", run->dir);
    if (slow)
        close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    else
        assert_int_equal(unlink(path), 0);
}

static int files_of(const struct run *run)
{
    int count = 0;
    struct dirent *entry;
    DIR *dir = opendir(run->dir);

    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL)
        count += strstr(entry->d_name, ".event") != NULL;
    closedir(dir);
    return count;
}

/* They keep their processes, are ready once all have come, and train there; then back, then out. */
static void test_move(void **state)
{
    struct run *run = run_create(2);
    struct world *larger = next_world(8, 1, 3), *other = next_world(9, 2, 1);
    struct worker_process before, after;
    uint64_t step;

    (void)state;
    start_live(run);
    AWAIT(run, workers_process(run->workers, 0, &before) && before.pid > 0);
    step = hold(run) + 2;
    move(run, larger, 3);
    assert_int_equal(run->ready, 1);
    assert_int_equal(workers_step(run->workers), 0); /* of the world that begins */
    workers_run_to(run->workers, step);
    AWAIT(run, run->ready == 2);
    AWAIT(run, run->stepping == 2 && in_world(run, 1, 8) && in_world(run, 2, 8));
    assert_place(run, 8, 1, 6);
    for (int rank = 1; rank <= 2; rank++)
        assert_int_equal(said(run, rank, 7, "stopped"), step);
    assert_int_equal(files_of(run), 2);
    assert_true(workers_live(run->workers));
    assert_int_equal(workers_signature(run->workers), 77);

    step = hold(run);
    move(run, other, 4);
    workers_run_to(run->workers, step);
    AWAIT(run, run->stepping == 3 && in_world(run, 2, 9) && in_world(run, 3, 9));
    assert_place(run, 9, 2, 5);
    assert_true(workers_process(run->workers, 0, &after));
    assert_int_equal(after.pid, before.pid);

    step = hold(run);
    workers_dismiss(run->workers, false);
    workers_run_to(run->workers, step);
    AWAIT(run, run->drained > 0);
    for (int rank = 2; rank <= 3; rank++) {
        assert_int_equal(run_number(run, rank, "left"), 1);
        assert_int_equal(run->endings[rank].code, 0);
        assert_true(run->endings[rank].told);
    }
    world_destroy(larger);
    world_destroy(other);
    run_destroy(run);
}

/* Another world follows while some have not come to the one before: who is there, who is on the
 * way and who still trains find it. */
static void test_move_on_from_a_world_not_entered(void **state)
{
    struct run *run = run_create(2);
    struct world *first = next_world(8, 1, 1), *second = next_world(9, 2, 1);
    uint64_t step;

    (void)state;
    start_live(run);
    slow_down(run, true);
    step = hold(run) + 3;
    move(run, first, 3);
    workers_run_to(run->workers, step);
    AWAIT(run, in_world(run, 2, 8) && said(run, 1, 7, "stopped") > 0);
    assert_int_equal(run->ready, 1);
    assert_in_range(files_of(run), 3, 4); /* the old page of the one that is there may be gone */
    hold(run);
    move(run, second, 4);
    workers_run_to(run->workers, 5);
    slow_down(run, false);
    AWAIT(run, run->ready == 2 && run->stepping == 2 && in_world(run, 2, 9) && in_world(run, 3, 9));
    assert_place(run, 9, 2, 5);
    assert_int_equal(files_of(run), 2);
    for (int rank = 1; rank <= 2; rank++) /* what they were told first */
        assert_int_equal(said(run, rank, 7, "stopped"), step);
    world_destroy(first);
    world_destroy(second);
    run_destroy(run);
}

/* One world is torn, and the next one while some have not come there, which is torn, too: from
 * page to page they find the third. */
static void test_torn_worlds(void **state)
{
    struct run *run = run_create(2);
    struct world *first = next_world(8, 1, 1), *second = next_world(9, 2, 1);

    (void)state;
    start_live(run);
    assert_int_equal(workers_slowest(run->workers), 993);
    slow_down(run, true);
    workers_tear(run->workers, "node node0 lost");
    AWAIT(run, said(run, 0, 7, "stopped") > 0 && said(run, 1, 7, "stopped") > 0);
    move(run, first, 3);
    AWAIT(run, in_world(run, 2, 8));
    assert_int_equal(run->ready, 1);
    assert_in_range(files_of(run), 3, 4); /* the old page of the one that is there may be gone */
    workers_tear(run->workers, "node node2 lost");
    move(run, second, 4);
    slow_down(run, false);
    AWAIT(run, run->ready == 2 && run->stepping == 2 && in_world(run, 2, 9) && in_world(run, 3, 9));
    assert_place(run, 9, 2, 5);
    assert_int_equal(files_of(run), 2);
    assert_int_equal(workers_slowest(run->workers), 993); /* in the world before the last */
    /* The third is whole. */
    AWAIT(run, workers_step(run->workers) > 3);
    assert_int_equal(run->exits, 0);
    workers_tear(run->workers, "");
    workers_dismiss(run->workers, true);
    AWAIT(run, run->drained > 0);
    for (int rank = 2; rank <= 3; rank++) {
        assert_int_equal(run_number(run, rank, "left"), 1);
        assert_int_equal(run_number(run, rank, "saved"), rank == 2);
        assert_int_equal(run->endings[rank].code, 0);
        assert_true(run->endings[rank].told);
    }
    world_destroy(first);
    world_destroy(second);
    run_destroy(run);
}

/* Whoever ends while its world is torn was not asked to: it is to live on. */
static void test_an_end_in_a_torn_world(void **state)
{
    struct run *run = run_create(2);
    struct worker_process process;

    (void)state;
    start_live(run);
    workers_tear(run->workers, "node node0 lost");
    AWAIT(run, said(run, 0, 7, "stopped") > 0 && said(run, 1, 7, "stopped") > 0);
    assert_true(workers_told(run->workers, 1));
    assert_true(workers_process(run->workers, 1, &process) && process.pid > 0);
    assert_int_equal(kill(process.pid, SIGKILL), 0);
    AWAIT(run, run->exits == 1);
    assert_int_equal(run->endings[1].signal, SIGKILL);
    assert_false(run->endings[1].told);
    assert_false(workers_live(run->workers));
    /* The other is told to leave, and does. */
    workers_dismiss(run->workers, false);
    AWAIT(run, run->drained > 0);
    assert_int_equal(run->endings[0].code, 0);
    assert_true(run->endings[0].told);
    assert_int_equal(run_number(run, 0, "saved"), 0);
    run_destroy(run);
}

/* Workers that wait at their gates are told another place than the one that they were started
 * for. */
static void test_place(void **state)
{
    struct run *run = run_create(2);
    struct world *world = next_world(11, 1, 1);

    (void)state;
    run->options.gated = true;
    run_start_act(run, "live", "78");
    AWAIT(run, run->parked > 0);
    assert_int_equal(workers_signature(run->workers), 78);
    workers_place(run->workers, world, 1, 6);
    workers_open(run->workers, true);
    AWAIT(run, in_world(run, 1, 11) && in_world(run, 2, 11) && run->stepping == 1);
    assert_place(run, 11, 1, 4);
    assert_false(in_world(run, 0, 7));
    world_destroy(world);
    run_destroy(run);
}

/* One of them is not live, or trains something else. */
static void test_not_live(void **state)
{
    struct run *run = run_create(2);

    (void)state;
    run_start_act(run, "train", "100000");
    AWAIT(run, run->stepping > 0);
    assert_false(workers_live(run->workers));
    assert_int_equal(workers_signature(run->workers), 0);
    run_destroy(run);
}

/* One trains, one never attaches, one has finished, one has crashed. */
static void test_hold_mixed(void **state)
{
    struct run *run = run_create(4);
    struct workers_held held;

    (void)state;
    run_start_act(run, "mixed", "100000");
    AWAIT(run,
          run->exits == 2 && workers_step(run->workers) > 5 && run_number(run, 1, "here") == 1);
    assert_int_equal(run->endings[2].code, 0);
    assert_int_equal(run->endings[3].code, 5);
    assert_false(run->endings[3].told);
    workers_hold(run->workers, "fault", "", 0, 0, &held);
    assert_int_equal(held.attached, 1);
    assert_int_equal(held.training, 1);
    assert_int_equal(held.running, 2);
    assert_int_equal(held.finished, 1);
    assert_true(held.step > 5);
    workers_run_to(run->workers, held.step);
    AWAIT(run, run->drained > 0);
    assert_int_equal(run_number(run, 0, "stopped"), held.step);
    /* The one that cannot see the step is stopped by a signal. */
    assert_int_equal(run->endings[1].signal, SIGTERM);
    assert_true(run->endings[1].told);
    run_destroy(run);
}

static void test_hold_before_training(void **state)
{
    static const struct {
        const char *argument;
        int attached, training;
    } cases[] = {{"attached", 2, 0}, {"training", 2, 2}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct run *run = run_create(2);
        struct workers_held held;

        run_start_act(run, "attach", cases[i].argument);
        AWAIT(run, run_number(run, 0, "here") == 1 && run_number(run, 1, "here") == 1);
        workers_hold(run->workers, "grow", "", 4, 0, &held);
        assert_int_equal(held.attached, cases[i].attached);
        assert_int_equal(held.training, cases[i].training);
        assert_int_equal(held.step, 0);
        assert_int_equal(run->stepping, 0);
        run_destroy(run);
    }
}

/* The signal reaches the script itself, whichever it is, once. */
static void test_stop_by_signal(void **state)
{
    static const int signals[] = {SIGTERM, SIGUSR1, SIGUSR2, SIGINT, SIGHUP, SIGCONT};

    (void)state;
    for (size_t i = 0; i < COUNT(signals); i++) {
        struct run *run = run_create(1);
        char number[16];

        snprintf(number, sizeof(number), "%d", signals[i]);
        run_start_act(run, "catch", number);
        AWAIT(run, run_number(run, 0, "here") == 1);
        workers_stop(run->workers, signals[i], 30);
        AWAIT(run, run->drained > 0);
        assert_int_equal(run_number(run, 0, "caught"), signals[i]);
        assert_int_equal(run->endings[0].code, 0);
        assert_true(run->endings[0].told);
        run_destroy(run);
    }
}

/* The leader may ask again; a script that takes a second signal for impatience is not to see
 * one. */
static void test_same_signal_once(void **state)
{
    struct run *run = run_create(1);

    (void)state;
    run_start_act(run, "count", "");
    AWAIT(run, run_number(run, 0, "here") == 1);
    workers_stop(run->workers, SIGUSR1, 30);
    AWAIT(run, run_number(run, 0, "caught") == 1);
    workers_stop(run->workers, SIGUSR1, 30);
    workers_stop(run->workers, SIGTERM, 30);
    AWAIT(run, run->drained > 0);
    assert_int_equal(run_number(run, 0, "total"), 1);
    run_destroy(run);
}

/* Slurm signals every process of a step, the shim and the command alike. */
static void test_signals_of_others(void **state)
{
    struct run *run = run_create(1);
    char command[64];

    (void)state;
    run_start_act(run, "count", "");
    AWAIT(run, run_number(run, 0, "here") == 1);
    snprintf(command, sizeof(command), "kill -USR1 %d", run_number(run, 0, "shim"));
    assert_int_equal(system(command), 0);
    workers_stop(run->workers, SIGTERM, 30);
    AWAIT(run, run->drained > 0);
    assert_int_equal(run->endings[0].code, 0);
    assert_non_null(strstr(run->texts[0][1].head, "total=0\n"));
    run_destroy(run);
}

/* PMIx_Abort(7) by a worker that then waits is the end with 7; with 0 it is no success. */
static void test_abort_and_wait(void **state)
{
    static const struct {
        int status, code, signal;
    } table[] = {{7, 7, 0}, {-1, 255, 0}, {0, 0, SIGKILL}};

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct run *run = run_create(1);

        run_start_act(run, "ignore-term", "");
        AWAIT(run, run_number(run, 0, "here") == 1);
        workers_abort(run->workers, 0, table[i].status);
        AWAIT(run, run->drained > 0);
        assert_int_equal(run->endings[0].code, table[i].code);
        assert_int_equal(run->endings[0].signal, table[i].signal);
        assert_false(run->endings[0].told);
        run_destroy(run);
    }
}

static void test_default_action_of_signal(void **state)
{
    struct run *run = run_create(1);

    (void)state;
    run_start_act(run, "attach", "attached");
    AWAIT(run, run_number(run, 0, "here") == 1);
    workers_stop(run->workers, SIGTERM, 30);
    AWAIT(run, run->drained > 0);
    assert_int_equal(run->endings[0].code, 0);
    assert_int_equal(run->endings[0].signal, SIGTERM);
    assert_true(run->endings[0].told);
    run_destroy(run);
}

/* A stop that comes before the command runs, or even the shim. */
static void test_stop_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        struct run *run = run_create(2);

        run_start_act(run, "attach", "attached");
        for (int turn = 0; turn < i; turn++)
            uv_run(&run->loop, UV_RUN_NOWAIT);
        workers_stop(run->workers, i % 2 == 0 ? SIGTERM : SIGKILL, i % 2 == 0 ? 5 : 0);
        AWAIT(run, run->drained > 0);
        assert_int_equal(run->exits, 2);
        assert_true(run->endings[0].told);
        assert_true(run->endings[0].signal == SIGTERM || run->endings[0].signal == SIGKILL);
        run_destroy(run);
    }
}

/* Output stops coming while it is paused, none is lost, and a worker's end does not wait for
 * ever. */
static void test_pause_output(void **state)
{
    struct run *run = run_create(1);
    size_t before;

    (void)state;
    run_start_act(run, "flood", "3000000");
    AWAIT(run, run->texts[0][1].bytes > 0);
    workers_pause_output(run->workers, true);
    before = run->texts[0][1].bytes;
    for (int turn = 0; turn < 10; turn++)
        run_turn(run);
    assert_int_equal(run->texts[0][1].bytes, before);
    assert_int_equal(run->exits, 0);
    workers_pause_output(run->workers, false);
    AWAIT(run, run->drained > 0);
    assert_int_equal(run->texts[0][1].bytes, 3000000);
    run_destroy(run);
}

static void test_paused_worker_ends(void **state)
{
    struct run *run = run_create(1);

    (void)state;
    run_start_act(run, "flood", "60000"); /* fits into the pipe */
    workers_pause_output(run->workers, true);
    AWAIT(run, run->drained > 0);
    assert_int_equal(run->texts[0][1].bytes, 60000);
    run_destroy(run);
}

static void test_binding(void **state)
{
    struct run *run = run_create(2);
    char *argv[] = {"sh", "-c", "grep Cpus_allowed_list /proc/self/status", NULL};
    bool two = sysconf(_SC_NPROCESSORS_ONLN) >= 2;
    char **cpus = workers_cpus(2, environ);

    (void)state;
    assert_null(workers_cpus(1, environ)); /* it has the node to itself */
    run->options.cpus = cpus;
    run->options.argv = argv;
    run_start(run);
    AWAIT(run, run->drained > 0);
    assert_line(run, 0, "Cpus_allowed_list:");
    /* With one core there is nothing to share; test_binding tells more. */
    if (two && strchr(run->texts[0][1].head, '-') == NULL)
        assert_string_not_equal(run->texts[0][1].head, run->texts[1][1].head);
    run_destroy(run);
    strings_free(cpus);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_start_and_end),
        cmocka_unit_test(test_a_command_each),
        cmocka_unit_test(test_destroy_when_drained),
        cmocka_unit_test(test_what_a_worker_finds),
        cmocka_unit_test(test_reopen_stdout),
        cmocka_unit_test(test_stepping),
        cmocka_unit_test(test_gate),
        cmocka_unit_test(test_destroy_at_the_gate),
        cmocka_unit_test(test_end_before_the_gate),
        cmocka_unit_test(test_unaware),
        cmocka_unit_test(test_hold_and_run_to),
        cmocka_unit_test(test_move),
        cmocka_unit_test(test_move_on_from_a_world_not_entered),
        cmocka_unit_test(test_torn_worlds),
        cmocka_unit_test(test_an_end_in_a_torn_world),
        cmocka_unit_test(test_place),
        cmocka_unit_test(test_not_live),
        cmocka_unit_test(test_hold_mixed),
        cmocka_unit_test(test_hold_before_training),
        cmocka_unit_test(test_stop_by_signal),
        cmocka_unit_test(test_same_signal_once),
        cmocka_unit_test(test_signals_of_others),
        cmocka_unit_test(test_abort_and_wait),
        cmocka_unit_test(test_default_action_of_signal),
        cmocka_unit_test(test_stop_at_once),
        cmocka_unit_test(test_pause_output),
        cmocka_unit_test(test_paused_worker_ends),
        cmocka_unit_test(test_binding),
    };

    run_dispatch(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
