/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Workers that do not behave: they ignore signals, leave daemons, flood, cannot be executed,
 * spoil their files. None may survive, and none may take the agent along. */
#include "tests/unit/workers_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/workers/exec_worker.h"
#include "agent/workers/process_tree.h"

/* ---- not to be executed ---------------------------------------------------------------------- */

static void expect_failure(char *command, const char *cwd, int code, const char *message)
{
    struct run *run = run_create(2);
    char *argv[] = {command, "argument", NULL};

    run->options.argv = argv;
    run->options.cwd = cwd;
    run_start(run);
    AWAIT(run, run->drained > 0);
    assert_int_equal(run->ready, 0);
    for (int rank = 0; rank < 2; rank++) {
        assert_int_equal(run->endings[rank].count, 1);
        assert_int_equal(run->endings[rank].code, code);
        assert_false(run->endings[rank].told);
        assert_string_equal(run->endings[rank].message, message);
        assert_one_line(run->endings[rank].message);
    }
    run_destroy(run);
}

static void test_not_executable(void **state)
{
    char file[] = "/tmp/elastic-test-XXXXXX", message[128];
    int fd = mkstemp(file);

    (void)state;
    assert_true(fd >= 0);
    close(fd);
    snprintf(message, sizeof(message), "%s: Permission denied", file);
    expect_failure("python4", "/tmp", 127, "python4: No such file or directory");
    expect_failure("/nowhere/python", "/tmp", 127, "/nowhere/python: No such file or directory");
    expect_failure("", "/tmp", 127, ": No such file or directory");
    expect_failure("/tmp/", "/tmp", 126, "/tmp/: Is a directory");
    expect_failure(file, "/tmp", 126, message);
    assert_int_equal(chmod(file, 0700), 0);
    fd = open(file, O_WRONLY | O_CLOEXEC);
    assert_int_equal(write(fd, "#!/nowhere/python\n", 18), 18);
    close(fd);
    snprintf(message, sizeof(message),
             "%s: the interpreter that its first line names does not exist", file);
    expect_failure(file, "/tmp", 127, message);
    expect_failure("true", "/nowhere", 126,
                   "working directory /nowhere: No such file or directory");
    unlink(file);
}

/* By name on PATH: nowhere, while PATH has a directory that nobody may search, and there, but not
 * executable. */
static void test_not_on_path(void **state)
{
    char dir[] = "/tmp/elastic-test-XXXXXX", file[64], path[128], *kept = strdup(getenv("PATH"));

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(file, sizeof(file), "%s/here", dir);
    snprintf(path, sizeof(path), "%s/here/no-directory:%s:/usr/bin:/bin", dir, dir);
    close(open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    setenv("PATH", path, 1);
    expect_failure("here", "/tmp", 126, "here: Permission denied");
    expect_failure("python4", "/tmp", 127, "python4: No such file or directory");
    unlink(file);
    chmod(dir, 0);
    expect_failure("python4", "/tmp", 127, "python4: No such file or directory");
    setenv("PATH", kept, 1);
    free(kept);
    rmdir(dir);
}

/* 127 that the user's own command returns is no failure to execute it. */
static void test_own_127(void **state)
{
    struct run *run = run_create(1);
    char *argv[] = {"sh", "-c", "exit 127", NULL};

    (void)state;
    run->options.argv = argv;
    run_start(run);
    AWAIT(run, run->drained > 0);
    assert_int_equal(run->ready, 1);
    assert_int_equal(run->endings[0].code, 127);
    assert_string_equal(run->endings[0].message, "");
    run_destroy(run);
}

/* The shim itself cannot be started: Linux takes no argument of more than 128 KiB. */
static void test_no_shim(void **state)
{
    struct run *run = run_create(2);
    static char large[256 * 1024];
    char *argv[] = {"true", large, NULL};

    (void)state;
    memset(large, 'x', sizeof(large) - 1);
    run->options.argv = argv;
    run_start(run);
    AWAIT(run, run->drained > 0);
    assert_int_equal(run->ready, 0);
    assert_int_equal(run->endings[1].code, 126);
    assert_string_equal(run->endings[1].message,
                        "worker could not be started: argument list too long");
    run_destroy(run);
}

/* An upgrade may have put another program there. */
static void test_shim_is_this_program(void **state)
{
    struct run *run = run_create(1);
    char *argv[] = {"true", NULL};

    (void)state;
    run->options.program = "/bin/false";
    run->options.argv = argv;
    run_start(run);
    AWAIT(run, run->drained > 0);
    assert_int_equal(run->ready, 1);
    assert_int_equal(run->endings[0].code, 0);
    run_destroy(run);
}

static void test_no_run_dir(void **state)
{
    struct run *run = run_create(2);
    struct workers_handlers handlers = {0};
    struct error err = {""};
    char *argv[] = {"true", NULL};

    (void)state;
    run->options.argv = argv;
    run->options.place.run_dir = "/nowhere";
    assert_null(workers_start(&run->loop, run->world, &run->options, &handlers, run, &err));
    assert_string_equal(err.text,
                        "/nowhere/worker-0.event: cannot be created: No such file or directory");
    run_destroy(run);
}

static void test_shim_by_hand(void **state)
{
    static const char *const lines[] = {
        "",
        "true",
        "--agent=1 --status=2 -- true",
        "--agent=x --status=3 -- true",
        "--agent=1 --status=3 --umask=9 -- true",
        "--agent=1 --status=3 --what -- true",
        "--agent=1 --status=3 --",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(lines); i++) {
        char command[8192];

        snprintf(command, sizeof(command), "%s --exec-worker %s 2>/dev/null", run_program(),
                 lines[i]);
        assert_int_equal(WEXITSTATUS(system(command)), 2);
    }
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void test_signals(void **state)
{
    static const int signals[] = {SIGSEGV, SIGKILL, SIGABRT, SIGTERM, SIGBUS, SIGUSR1, SIGPIPE};

    (void)state;
    for (size_t i = 0; i < COUNT(signals); i++) {
        struct run *run = run_create(1);
        char number[16];

        snprintf(number, sizeof(number), "%d", signals[i]);
        run_start_act(run, "raise", number);
        AWAIT(run, run->drained > 0);
        assert_int_equal(run->endings[0].signal, signals[i]);
        assert_int_equal(run->endings[0].code, 0);
        assert_false(run->endings[0].told);
        run_destroy(run);
    }
}

static void test_error_files(void **state)
{
    static const struct {
        const char *what, *message, *extra;
    } cases[] = {
        {"{\"message\": {\"message\": \"ValueError: no\", \"extraInfo\": {\"timestamp\": \"17\"}}}",
         "ValueError: no", "{\"timestamp\":\"17\"}"},
        {"{\"message\": {\"message\": \"without more\"}}", "without more", "null"},
        {"{\"message\": \"plain\"}", "plain", "null"},
        {"{\"message\": 3}", "", ""},
        {"{\"message\": {\"message\": [1]}}", "", ""},
        {"[\"message\"]", "", ""},
        {"{\"message\": \"cut", "", ""},
        {"\"message\"", "", ""},
        {"", "", ""},
        {"{\"message\": \"\xff\xfe\"}", "", ""},
        {"large", "", ""},
        {"directory", "", ""},
        {"fifo", "", ""},
        {"link", "", ""},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct run *run = run_create(1);
        char path[128];

        run_start_act(run, "error-file", cases[i].what);
        AWAIT(run, run->drained > 0);
        assert_int_equal(run->endings[0].code, 1);
        assert_string_equal(run->endings[0].message, cases[i].message);
        assert_string_equal(run->endings[0].extra, cases[i].extra);
        snprintf(path, sizeof(path), "%s/worker-0.error.json", run->dir);
        rmdir(path); /* the one case in which something stays for run_dir_remove */
        run_destroy(run);
    }
}

/* ---- who does not want to go ----------------------------------------------------------------- */

static void test_ignores_term(void **state)
{
    struct run *run = run_create(2);
    uint64_t began;

    (void)state;
    run_start_act(run, "ignore-term", "");
    AWAIT(run, run_number(run, 0, "here") == 1 && run_number(run, 1, "here") == 1);
    began = uv_now(&run->loop);
    workers_stop(run->workers, SIGTERM, 0.5);
    workers_stop(run->workers, SIGTERM, 100); /* does not put it off */
    AWAIT(run, run->drained > 0);
    assert_int_equal(run->endings[0].signal, SIGKILL);
    assert_true(run->endings[0].told);
    assert_true(run->endings[0].at - began >= 450);
    assert_true(run->endings[0].at - began < 5000);
    run_destroy(run);
}

/* Only a live worker that has not passed its last boundary is too early. */
static void test_ends_with_0(void **state)
{
    struct run *run = run_create(4);

    (void)state;
    run_start_act(run, "end-live", "");
    AWAIT(run, run->exits == 3 && workers_ask(run->workers));
    assert_false(run->endings[0].early);
    assert_true(run->endings[1].early);
    assert_false(run->endings[2].early);
    workers_tear(run->workers, "one was too early");
    AWAIT(run, run->drained > 0);
    assert_false(workers_ask(run->workers)); /* it is not there any more */
    for (int i = 0; i < 4; i++)
        assert_int_equal(run->endings[i].code, 0);
    run_destroy(run);
}

/* Slurm has signalled the agent only, or the processes of a worker, too: a worker gets it once. */
static void test_passed_signal(void **state)
{
    struct run *run = run_create(2);
    pid_t slurm;

    (void)state;
    run_start_act(run, "count-usr1", "");
    AWAIT(run, run_number(run, 0, "shim") > 0 && run_number(run, 1, "shim") > 0);
    slurm = fork();
    assert_true(slurm >= 0);
    if (slurm == 0)
        _exit(kill(run_number(run, 1, "shim"), SIGUSR1)); /* the copy for the command is left out */
    waitpid(slurm, NULL, 0);
    workers_pass_signal(run->workers, SIGUSR1);
    workers_signal(run->workers, -1, SIGUSR2, false);
    AWAIT(run, run_number(run, 0, "count") > 0 && run_number(run, 1, "count") > 0);
    assert_int_equal(run_number(run, 0, "count"), 2);
    assert_int_equal(run_number(run, 1, "count"), 1);
    run_destroy(run);
}

/* As slurmstepd does it. */
static void signal_by_another(pid_t pid, int number)
{
    pid_t slurm = fork();
    int status;

    assert_true(slurm >= 0);
    if (slurm == 0)
        _exit(kill(pid, number));
    assert_int_equal(waitpid(slurm, &status, 0), slurm);
    assert_int_equal(status, 0);
}

/* Slurm has signalled the shim, too, which has not run since. The second shim can have no signal
 * queued: none of these has its sender. */
static void test_term_while_the_shim_has_slurms(void **state)
{
    struct run *run = run_create(2);
    const struct rlimit none = {0, 0};

    (void)state;
    run_start_act(run, "count", "");
    for (int i = 0; i < 2; i++) {
        pid_t shim;

        AWAIT(run, run_number(run, i, "here") == 1);
        shim = run_number(run, i, "shim");
        if (i == 1)
            assert_int_equal(prlimit(shim, RLIMIT_SIGPENDING, &none, NULL), 0);
        assert_int_equal(kill(shim, SIGSTOP), 0);
        AWAIT(run, process_stopped(shim));
        signal_by_another(shim, SIGTERM);
    }
    workers_stop(run->workers, SIGTERM, 1000);
    for (int i = 0; i < 2; i++)
        assert_int_equal(kill(run_number(run, i, "shim"), SIGCONT), 0);
    AWAIT(run, run->drained > 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(run->endings[i].code, 0);
    run_destroy(run);
}

/* Slurm's SIGTERM is not the end of a shielded command: it is to get the shim's as well, whenever
 * it takes them. */
static void test_term_while_the_command_has_slurms(void **state)
{
    struct run *run = run_create(2);

    (void)state;
    run_start_act(run, "take-term", "");
    AWAIT(run, run_number(run, 0, "shim") > 0 && run_number(run, 1, "shim") > 0);
    signal_by_another(run_number(run, 0, "self"), SIGTERM);
    workers_stop(run->workers, SIGTERM, 1000);
    for (int i = 0; i < 2; i++)
        AWAIT(run, !process_has_pending(run_number(run, i, "shim"), EXEC_WORKER_TERM));
    assert_int_equal(workers_signal(run->workers, -1, SIGUSR1, false), 2);
    AWAIT(run, run->drained > 0);
    assert_int_equal(run_number(run, 0, "first"), 2);
    assert_int_equal(run_number(run, 0, "second"), 1);
    assert_int_equal(run_number(run, 1, "first"), 1);
    assert_int_equal(run_number(run, 1, "second"), 0);
    run_destroy(run);
}

/* A command that takes no SIGTERM is killed as ever, in time and by request. */
static void test_term_that_is_never_taken(void **state)
{
    struct run *run = run_create(2);

    (void)state;
    run_start_act(run, "take-term", "");
    AWAIT(run, run_number(run, 0, "shim") > 0 && run_number(run, 1, "shim") > 0);
    for (int i = 0; i < 2; i++)
        signal_by_another(run_number(run, i, "self"), SIGTERM);
    workers_stop(run->workers, SIGTERM, 0.5);
    assert_int_equal(workers_signal(run->workers, 1, SIGKILL, false), 1);
    AWAIT(run, run->drained > 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(run->endings[i].signal, SIGKILL);
    run_destroy(run);
}

/* Another program of the job has it signalled: that is no end of ours. */
static void test_signalled(void **state)
{
    struct run *run = run_create(2);

    (void)state;
    run_start_act(run, "ignore-term", "");
    AWAIT(run, run_number(run, 0, "here") == 1 && run_number(run, 1, "here") == 1);
    assert_int_equal(workers_signal(run->workers, 2, SIGKILL, false), 0);
    assert_int_equal(workers_signal(run->workers, -1, SIGTERM, false), 2); /* is ignored */
    assert_int_equal(workers_signal(run->workers, 1, SIGKILL, false), 1);
    AWAIT(run, run->exits == 1);
    assert_int_equal(run->endings[1].signal, SIGKILL);
    assert_false(run->endings[1].told);
    assert_int_equal(workers_signal(run->workers, 1, SIGKILL, false), 0);
    assert_int_equal(workers_signal(run->workers, -1, SIGKILL, true), 1);
    AWAIT(run, run->drained > 0);
    assert_false(run->endings[0].told);
    run_destroy(run);
}

static void test_may_signal(void **state)
{
    const int refused[] = {-1, 0,     SIGSTOP, SIGCHLD, 32, 33, EXEC_WORKER_KILL, EXEC_WORKER_TERM,
                           65, 100000};
    const int allowed[] = {SIGHUP, SIGKILL, SIGTERM, SIGCONT, SIGSYS, SIGRTMIN, SIGRTMAX};

    (void)state;
    for (size_t i = 0; i < COUNT(refused); i++)
        assert_false(workers_may_signal(refused[i]));
    for (size_t i = 0; i < COUNT(allowed); i++)
        assert_true(workers_may_signal(allowed[i]));
}

/* Its pid is the command's, whatever else the shim has for children. */
static void test_process(void **state)
{
    struct run *run = run_create(2);
    struct worker_process process;

    (void)state;
    run_start_act(run, "daemonise", "wait");
    AWAIT(run, run_number(run, 0, "daemon") > 0 && run_number(run, 1, "daemon") > 0 &&
                   run_number(run, 0, "self") > 0 && run_number(run, 1, "self") > 0);
    for (int i = 0; i < 2; i++) {
        assert_true(workers_process(run->workers, i, &process));
        assert_int_equal(process.rank, i);
        assert_int_equal(process.pid, run_number(run, i, "self"));
        assert_false(process.ended);
    }
    assert_false(workers_process(run->workers, 2, &process));
    workers_stop(run->workers, SIGKILL, 0);
    AWAIT(run, run->drained > 0);
    assert_true(workers_process(run->workers, 0, &process));
    assert_true(process.ended);
    assert_int_equal(process.pid, 0);
    run_destroy(run);
}

static void test_stopped_worker(void **state)
{
    struct run *run = run_create(1);

    (void)state;
    run_start_act(run, "stop-self", "");
    AWAIT(run, process_stopped(run_number(run, 0, "here")));
    workers_stop(run->workers, SIGTERM, 0.2);
    AWAIT(run, run->drained > 0);
    assert_int_equal(run->endings[0].signal, SIGKILL);
    run_destroy(run);
}

/* Turn the loop for so long, and look for stopped ones as an agent does with each of its beats. */
static void beat_for(struct run *run, uint64_t ms, double seconds)
{
    uint64_t until = uv_now(&run->loop) + ms;

    run_await_begin(run);
    while (uv_now(&run->loop) < until) {
        assert_true(run_turn(run));
        workers_end_stopped(run->workers, seconds);
    }
}

/* As dead as one that has died, after a while; not if it goes on, or the agent was asleep as
 * well. */
static void test_one_that_stays_stopped_is_killed(void **state)
{
    struct run *run = run_create(2);
    pid_t pids[2];

    (void)state;
    run_start_act(run, "attach", "training");
    AWAIT(run, run_number(run, 0, "here") == 1 && run_number(run, 1, "here") == 1);
    for (int i = 0; i < 2; i++) {
        struct worker_process process;

        assert_true(workers_process(run->workers, i, &process) && process.pid > 0);
        pids[i] = process.pid;
        assert_int_equal(kill(pids[i], SIGSTOP), 0);
        AWAIT(run, process_stopped(pids[i]));
    }
    beat_for(run, 60, 1000);
    workers_forgive_stopped(run->workers);
    workers_end_stopped(run->workers, 0.05); /* seen for the first time */
    beat_for(run, 1, 1000);
    kill(pids[0], SIGCONT);
    AWAIT(run, !process_stopped(pids[0]));
    run_await_begin(run);
    while (run->exits == 0) {
        assert_true(run_turn(run));
        workers_end_stopped(run->workers, 0.3);
    }
    assert_int_equal(run->endings[1].count, 1);
    assert_int_equal(run->endings[1].signal, SIGKILL);
    assert_false(run->endings[1].told);
    assert_non_null(strstr(run->endings[1].message, "it had been stopped (SIGSTOP) for 0 s"));
    assert_one_line(run->endings[1].message);
    beat_for(run, 100, 0.02);
    assert_int_equal(run->exits, 1);
    assert_false(process_gone(pids[0]));
    run_destroy(run);
}

static void test_states_of_processes(void **state)
{
    pid_t pid = fork();
    int status;

    (void)state;
    if (pid == 0) {
        raise(SIGSTOP);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_int_equal(process_state(pid), 'T');
    kill(pid, SIGKILL);
    while (process_state(pid) != 0) /* until it is a zombie */
        usleep(1000);
    assert_int_equal(kill(pid, 0), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(process_state(pid), 0);
    assert_int_equal(process_state(getpid()), 'R');
    assert_int_equal(process_state(0), 0);
}

/* Of those that are sent to the process, as kill() does it. */
static void test_pending_signals(void **state)
{
    sigset_t some, before;

    (void)state;
    sigemptyset(&some);
    sigaddset(&some, SIGUSR1);
    sigaddset(&some, SIGUSR2);
    sigaddset(&some, SIGRTMAX);
    sigprocmask(SIG_BLOCK, &some, &before);
    assert_false(process_has_pending(getpid(), SIGUSR1));
    raise(SIGUSR2); /* to this thread */
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGRTMAX);
    assert_true(process_has_pending(getpid(), SIGUSR1));
    assert_true(process_has_pending(getpid(), SIGRTMAX));
    assert_false(process_has_pending(getpid(), SIGUSR2));
    assert_false(process_has_pending(getpid(), SIGTERM));
    assert_false(process_has_pending(0, SIGUSR1));
    for (int i = 0; i < 3; i++)
        assert_true(sigwaitinfo(&some, NULL) > 0);
    assert_false(process_has_pending(getpid(), SIGUSR1));
    sigprocmask(SIG_SETMASK, &before, NULL);
}

static void test_family_is_killed(void **state)
{
    struct run *run = run_create(1);
    pid_t child, grandchild;

    (void)state;
    run_start_act(run, "family", "");
    AWAIT(run, run_number(run, 0, "grandchild") > 0 && run_number(run, 0, "child") > 0);
    child = run_number(run, 0, "child");
    grandchild = run_number(run, 0, "grandchild");
    workers_stop(run->workers, SIGKILL, 10);
    AWAIT(run, run->drained > 0);
    assert_true(process_gone(child));
    assert_true(process_gone(grandchild));
    run_destroy(run);
}

/* A daemon without session, parent and environment of its worker goes with it, however the
 * worker ends. */
static void test_daemon_is_killed(void **state)
{
    static const struct {
        const char *then;
        int code, signal;
    } cases[] = {{"0", 0, 0}, {"3", 3, 0}, {"crash", 0, SIGKILL}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct run *run = run_create(1);
        uint64_t began;

        run_start_act(run, "daemonise", cases[i].then);
        AWAIT(run, run_number(run, 0, "daemon") > 0);
        began = uv_now(&run->loop);
        AWAIT(run, run->drained > 0);
        assert_int_equal(run->endings[0].code, cases[i].code);
        assert_int_equal(run->endings[0].signal, cases[i].signal);
        assert_true(process_gone(run_number(run, 0, "daemon")));
        /* It holds the pipes; the end is seen without waiting for them to be given up. */
        assert_true(uv_now(&run->loop) - began < 900);
        run_destroy(run);
    }
}

static void test_daemon_killed_by_stop(void **state)
{
    struct run *run = run_create(1);

    (void)state;
    run_start_act(run, "daemonise", "wait");
    AWAIT(run, run_number(run, 0, "self") > 0 && run_number(run, 0, "daemon") > 0);
    workers_stop(run->workers, SIGKILL, 0);
    AWAIT(run, run->drained > 0);
    assert_true(process_gone(run_number(run, 0, "daemon")));
    assert_true(process_gone(run_number(run, 0, "self")));
    run_destroy(run);
}

/* The set is destroyed while its workers run. */
static void test_destroy_running(void **state)
{
    struct run *run = run_create(2);
    pid_t daemon;

    (void)state;
    run_start_act(run, "daemonise", "wait");
    AWAIT(run, run_number(run, 1, "daemon") > 0);
    daemon = run_number(run, 1, "daemon");
    run_destroy(run); /* returns when the loop has nothing left */
    assert_true(process_gone(daemon));
}

/* A pipe kept open by a process that is none of the worker's: here, by this test. */
static void test_pipe_held_open(void **state)
{
    struct run *run = run_create(1);
    char path[64];
    uint64_t began;
    int held;

    (void)state;
    run_start_act(run, "stop-self", "");
    AWAIT(run, process_stopped(run_number(run, 0, "here")));
    snprintf(path, sizeof(path), "/proc/%d/fd/1", run_number(run, 0, "here"));
    held = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(held >= 0);
    began = uv_now(&run->loop);
    workers_stop(run->workers, SIGKILL, 0);
    AWAIT(run, run->drained > 0);
    assert_true(uv_now(&run->loop) - began >= 900);
    assert_true(uv_now(&run->loop) - began < 5000);
    close(held);
    run_destroy(run);
}

/* An agent that is killed takes its workers, and their daemons, along. */
static void test_agent_is_killed(void **state)
{
    char command[8192], line[256], dir[128] = "", file[160];
    pid_t worker = 0, daemon = 0, agent = 0;
    FILE *out;

    (void)state;
    snprintf(command, sizeof(command), "echo agent=$$; exec %s --act agent x", run_program());
    out = popen(command, "re");
    assert_non_null(out);
    while (fgets(line, sizeof(line), out) != NULL && strcmp(line, "end=1\n") != 0) {
        sscanf(line, "agent=%d", &agent);
        sscanf(line, "self=%d", &worker);
        sscanf(line, "daemon=%d", &daemon);
        sscanf(line, "dir=%127s", dir);
    }
    assert_true(agent > 0 && worker > 0 && daemon > 0);
    assert_false(process_gone(daemon));
    kill(agent, SIGKILL);
    pclose(out);
    for (int i = 0; i < 12000 && !(process_gone(worker) && process_gone(daemon)); i++)
        usleep(10000);
    assert_true(process_gone(worker));
    assert_true(process_gone(daemon));
    snprintf(file, sizeof(file), "%s/worker-0.event", dir);
    unlink(file);
    assert_int_equal(rmdir(dir), 0);
}

/* ---- output ---------------------------------------------------------------------------------- */

static void test_flood(void **state)
{
    struct run *run = run_create(2);

    (void)state;
    run_start_act(run, "flood", "10000000");
    AWAIT(run, run->drained > 0);
    for (int rank = 0; rank < 2; rank++) {
        assert_int_equal(run->texts[rank][1].bytes, 10000000);
        assert_int_equal(run->endings[rank].code, 0);
    }
    assert_true(run->largest_chunk <= 65536);
    run_destroy(run);
}

static void test_closes_output(void **state)
{
    struct run *run = run_create(1);

    (void)state;
    run_start_act(run, "close-output", "");
    AWAIT(run, run->ready > 0);
    for (int turn = 0; turn < 10; turn++)
        run_turn(run);
    assert_int_equal(run->exits, 0); /* it runs, though its pipes are at their end */
    workers_stop(run->workers, SIGTERM, 10);
    AWAIT(run, run->drained > 0);
    assert_int_equal(run->endings[0].signal, SIGTERM);
    run_destroy(run);
}

/* ---- the page -------------------------------------------------------------------------------- */

static void test_spoilt_page(void **state)
{
    static const char *const ways[] = {"truncate", "unlink", "garbage"};

    (void)state;
    for (size_t i = 0; i < COUNT(ways); i++) {
        struct run *run = run_create(1);
        struct workers_held held;

        run_start_act(run, "spoil", ways[i]);
        AWAIT(run, run_number(run, 0, "here") == 1);
        for (int turn = 0; turn < 10; turn++) /* the pages are polled meanwhile */
            run_turn(run);
        assert_true(workers_step(run->workers) == 0);
        workers_hold(run->workers, "grow", "a reason", 3, 0, &held);
        assert_int_equal(held.running, 1);
        assert_int_equal(held.training, strcmp(ways[i], "unlink") == 0);
        workers_run_to(run->workers, 3);
        workers_stop(run->workers, SIGTERM, 5);
        AWAIT(run, run->drained > 0);
        assert_int_equal(run->endings[0].signal, SIGTERM);
        run_destroy(run);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_executable),
        cmocka_unit_test(test_not_on_path),
        cmocka_unit_test(test_own_127),
        cmocka_unit_test(test_no_shim),
        cmocka_unit_test(test_shim_is_this_program),
        cmocka_unit_test(test_no_run_dir),
        cmocka_unit_test(test_shim_by_hand),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_error_files),
        cmocka_unit_test(test_ignores_term),
        cmocka_unit_test(test_ends_with_0),
        cmocka_unit_test(test_signalled),
        cmocka_unit_test(test_passed_signal),
        cmocka_unit_test(test_term_while_the_shim_has_slurms),
        cmocka_unit_test(test_term_while_the_command_has_slurms),
        cmocka_unit_test(test_term_that_is_never_taken),
        cmocka_unit_test(test_may_signal),
        cmocka_unit_test(test_process),
        cmocka_unit_test(test_stopped_worker),
        cmocka_unit_test(test_family_is_killed),
        cmocka_unit_test(test_states_of_processes),
        cmocka_unit_test(test_pending_signals),
        cmocka_unit_test(test_one_that_stays_stopped_is_killed),
        cmocka_unit_test(test_daemon_is_killed),
        cmocka_unit_test(test_daemon_killed_by_stop),
        cmocka_unit_test(test_destroy_running),
        cmocka_unit_test(test_pipe_held_open),
        cmocka_unit_test(test_agent_is_killed),
        cmocka_unit_test(test_flood),
        cmocka_unit_test(test_closes_output),
        cmocka_unit_test(test_spoilt_page),
    };

    run_dispatch(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
