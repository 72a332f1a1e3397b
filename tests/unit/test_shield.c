/* SPDX-License-Identifier: GPL-2.0-or-later */
/* libelastic-shield.so in real programs. A process of the test stands for slurmstepd; the test
 * itself is another sender, as the agent's shim is. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/support.h"

#define LIMIT    120 /* seconds for each program, which ends by SIGALRM else */
#define NOBODY   65534
#define TERM_BIT (UINT64_C(1) << (SIGTERM - 1))

static char library[4096], program_file[4096];

/* Writes a pid there, and reads a byte when that pid has been signalled. */
static struct sender {
    pid_t pid;
    int to, from;
} stepd;

struct program {
    pid_t pid;
    int in, out;
};

/* ---- senders --------------------------------------------------------------------------------- */

static void be_sender(int in, int out)
{
    pid_t pid;

    while (read(in, &pid, sizeof(pid)) == sizeof(pid)) {
        kill(pid, SIGTERM);
        if (write(out, "", 1) != 1)
            break;
    }
    _exit(0);
}

static struct sender start_sender(uid_t user)
{
    int to[2], from[2];
    struct sender sender;

    assert_int_equal(pipe2(to, O_CLOEXEC), 0);
    assert_int_equal(pipe2(from, O_CLOEXEC), 0);
    sender = (struct sender){.pid = fork(), .to = to[1], .from = from[0]};
    assert_true(sender.pid >= 0);
    if (sender.pid == 0) {
        close(to[1]);
        close(from[0]);
        if (user != 0 && setuid(user) != 0)
            _exit(1);
        be_sender(to[0], from[1]);
    }
    close(to[0]);
    close(from[1]);
    return sender;
}

static void term_by(const struct sender *sender, pid_t pid)
{
    char byte;

    assert_int_equal(write(sender->to, &pid, sizeof(pid)), sizeof(pid));
    assert_int_equal(read(sender->from, &byte, 1), 1);
}

static void end_sender(struct sender *sender)
{
    close(sender->to);
    close(sender->from);
    assert_int_equal(waitpid(sender->pid, NULL, 0), sender->pid);
}

static int begin(void **state)
{
    (void)state;
    stepd = start_sender(0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    end_sender(&stepd);
    return 0;
}

/* ---- programs -------------------------------------------------------------------------------- */

struct how {
    bool unshielded, ignores, elsewhere;
};

/* In the child. */
static void become(const char *const *argv, struct how how)
{
    char pid[16];

    snprintf(pid, sizeof(pid), "%d", (int)stepd.pid);
    setenv("LD_PRELOAD", library, 1);
    if (how.unshielded)
        unsetenv("ELASTIC_SHIELD");
    else
        setenv("ELASTIC_SHIELD", pid, 1);
    signal(SIGTERM, how.ignores ? SIG_IGN : SIG_DFL);
    alarm(LIMIT);
    if (!how.elsewhere || setuid(NOBODY) == 0)
        execvp(argv[0], (char *const *)argv);
    _exit(127);
}

static struct program start_how(const char *const *argv, struct how how)
{
    struct program p;
    int in[2], out[2], own = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);

    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    if (how.elsewhere)
        assert_int_equal(unshare(CLONE_NEWPID), 0); /* for children */
    p = (struct program){.pid = fork(), .in = in[1], .out = out[0]};
    assert_true(p.pid >= 0);
    if (p.pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        become(argv, how);
    }
    /* Other children of this process, such as LeakSanitizer's, are to be where it is. */
    if (how.elsewhere)
        assert_int_equal(setns(own, CLONE_NEWPID), 0);
    close(own);
    close(in[0]);
    close(out[1]);
    return p;
}

/* One line, without its end. "": there is none any more. */
static const char *line(const struct program *p)
{
    static char text[256];
    size_t len = 0;

    while (len + 1 < sizeof(text) && read(p->out, text + len, 1) == 1 && text[len] != '\n')
        len++;
    text[len] = '\0';
    return text;
}

static struct program start(const char *const *argv)
{
    struct program p = start_how(argv, (struct how){0});

    assert_string_equal(line(&p), "ready");
    return p;
}

static struct program start_own(const char *mode)
{
    return start((const char *[]){program_file, mode, NULL});
}

/* How waitpid() tells its end; 0 - SIGNAL for a signal. */
static int end_of(struct program *p)
{
    int status;

    while (waitpid(p->pid, &status, 0) < 0)
        assert_int_equal(errno, EINTR);
    close(p->in);
    close(p->out);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

struct status {
    bool asleep;
    bool is_sleep;            /* the program, sleep(1) */
    uint64_t caught, pending; /* bits of signals */
};

static uint64_t bits(const char *text, const char *name)
{
    const char *at = strstr(text, name);

    return at != NULL ? strtoull(at + strlen(name), NULL, 16) : 0;
}

/* False if it has ended. */
static bool read_status(pid_t pid, struct status *status)
{
    char path[64], text[4096];
    size_t len;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    len = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[len] = '\0';
    status->asleep = strstr(text, "\nState:\tS") != NULL;
    status->is_sleep = strstr(text, "Name:\tsleep\n") != NULL;
    status->caught = bits(text, "\nSigCgt:\t");
    status->pending = bits(text, "\nSigPnd:\t") | bits(text, "\nShdPnd:\t");
    return len > 0 && strstr(text, "\nState:\tZ") == NULL && strstr(text, "\nState:\tX") == NULL;
}

/* sleep(1) says nothing. Its shell has a handler, too, and is the same process before its exec. */
static void wait_for_sleep(pid_t pid)
{
    struct status status = {0};

    while (!status.is_sleep || !status.asleep || (status.caught & TERM_BIT) == 0) {
        assert_true(read_status(pid, &status));
        usleep(1000);
    }
}

/* False if the process has ended. Else it has taken all its signals, and waits again. */
static bool settled_alive(pid_t pid)
{
    struct status status;

    while (read_status(pid, &status)) {
        if (status.asleep && (status.pending & TERM_BIT) == 0)
            return true;
        usleep(1000);
    }
    return false;
}

static void assert_answers(const struct program *p)
{
    assert_int_equal(write(p->in, "\n", 1), 1);
    assert_string_equal(line(p), "alive");
}

static void assert_unmoved(const struct program *p)
{
    for (int i = 0; i < 3; i++) {
        term_by(&stepd, p->pid);
        assert_true(settled_alive(p->pid));
        assert_answers(p);
    }
}

static void assert_ends_by_default(struct program *p)
{
    assert_int_equal(kill(p->pid, SIGTERM), 0);
    assert_string_equal(line(p), "");
    assert_int_equal(end_of(p), -SIGTERM);
}

/* Of a program that has not asked that calls go on. */
static void assert_interrupted(const struct program *p)
{
    assert_true(settled_alive(p->pid)); /* it reads */
    term_by(&stepd, p->pid);
    assert_string_equal(line(p), "interrupted");
}

static void assert_handles(const struct program *p)
{
    /* A signal that comes just before Python reads is heard by its handler after the next line. */
    assert_true(settled_alive(p->pid));
    assert_int_equal(kill(p->pid, SIGTERM), 0);
    assert_string_equal(line(p), "term");
}

static void assert_ends_with_input(struct program *p)
{
    close(p->in);
    p->in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_string_equal(line(p), "");
    assert_int_equal(end_of(p), 0);
}

/* It has a handler, says "term", and goes on. */
static void assert_handled_alone(struct program p)
{
    assert_unmoved(&p);
    assert_handles(&p);
    assert_unmoved(&p);
    assert_handles(&p);
    assert_ends_with_input(&p);
}

/* ---- programs of others ---------------------------------------------------------------------- */

static void sleep_ends_by_others_only(void **state)
{
    struct program p = start_how((const char *[]){"sleep", "1000", NULL}, (struct how){0});

    (void)state;
    wait_for_sleep(p.pid);
    term_by(&stepd, p.pid);
    assert_true(settled_alive(p.pid));
    assert_ends_by_default(&p);
}

static void python_ends_by_others_only(void **state)
{
    struct program p = start((const char *[]){"/usr/bin/python3", "-c",
                                              "import sys\n"
                                              "print('ready', flush=True)\n"
                                              "for _ in sys.stdin: print('alive', flush=True)",
                                              NULL});

    (void)state;
    assert_unmoved(&p);
    assert_ends_by_default(&p);
}

static void a_handler_of_python_hears_others_only(void **state)
{
    (void)state;
    assert_handled_alone(start(
        (const char *[]){"/usr/bin/python3", "-c",
                         "import signal, sys\n"
                         "assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL\n"
                         "signal.signal(signal.SIGTERM, lambda *_: print('term', flush=True))\n"
                         "print('ready', flush=True)\n"
                         "for _ in sys.stdin: print('alive', flush=True)",
                         NULL}));
}

static void a_trap_of_bash_hears_others_only(void **state)
{
    (void)state;
    assert_handled_alone(start((const char *[]){
        "bash", "-c",
        "trap 'echo term' TERM; echo ready; while read -r; do echo alive; done; exit 0", NULL}));
}

static void what_bash_starts_is_shielded_too(void **state)
{
    struct program p = start(
        (const char *[]){"bash", "-c",
                         "trap 'echo term' TERM; sleep 1000 & echo ready; echo $!; "
                         "while read -r; do echo alive; done; wait $!; echo $?",
                         NULL});
    pid_t child = atoi(line(&p));

    (void)state;
    assert_true(child > 1);
    assert_unmoved(&p);
    wait_for_sleep(child);
    term_by(&stepd, child);
    assert_true(settled_alive(child));
    assert_int_equal(kill(child, SIGTERM), 0);
    close(p.in);
    p.in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_string_equal(line(&p), "143");
    assert_int_equal(end_of(&p), 0);
}

/* A program that bash becomes by exec, though it had a trap. */
static void a_program_that_follows_by_exec_has_the_default(void **state)
{
    struct program p = start((const char *[]){
        "bash", "-c", "trap 'echo term' TERM; exec \"$0\" default", program_file, NULL});

    (void)state;
    assert_unmoved(&p);
    assert_ends_by_default(&p);
}

static void node_ends_by_others_only(void **state)
{
    struct program p;

    (void)state;
    if (access("/usr/bin/node", X_OK) != 0) {
        print_message("# no node here\n");
        skip();
    }
    p = start((const char *[]){
        "/usr/bin/node", "-e",
        "process.stdin.on('data', () => console.log('alive')); console.log('ready')", NULL});
    assert_unmoved(&p);
    assert_ends_by_default(&p);
    assert_handled_alone(
        start((const char *[]){"/usr/bin/node", "-e",
                               "process.on('SIGTERM', () => console.log('term'));"
                               "process.stdin.on('data', () => console.log('alive'));"
                               "process.stdin.on('end', () => process.exit(0));"
                               "require('child_process').spawnSync('true'); console.log('ready')",
                               NULL}));
}

/* ---- a program of ours ----------------------------------------------------------------------- */

static void the_default_is_the_end_by_the_signal(void **state)
{
    struct program p = start_own("default");

    (void)state;
    assert_unmoved(&p); /* read() goes on: it says when it is interrupted */
    assert_ends_by_default(&p);
}

static void handlers_hear_others_only(void **state)
{
    (void)state;
    assert_handled_alone(start_own("signal"));
    assert_handled_alone(start_own("siginterrupt"));
}

/* They have not asked that calls go on: these are interrupted. */
static void handlers_without_restart_hear_others_only(void **state)
{
    static const char *const ways[] = {"sigaction", "sigset"};

    (void)state;
    for (size_t i = 0; i < COUNT(ways); i++) {
        struct program p = start_own(ways[i]);

        assert_interrupted(&p);
        assert_handles(&p);
        assert_answers(&p);
        assert_ends_with_input(&p);
    }
}

static void a_handler_for_once_is_for_others(void **state)
{
    static const char *const ways[] = {"reset", "sysv"};

    (void)state;
    for (size_t i = 0; i < COUNT(ways); i++) {
        struct program p = start_own(ways[i]);

        if (strcmp(ways[i], "sysv") == 0)
            assert_interrupted(&p);
        else
            assert_unmoved(&p);
        assert_handles(&p);
        assert_unmoved(&p);
        assert_ends_by_default(&p);
    }
}

static void an_ignored_signal_stays_ignored(void **state)
{
    struct program p = start_how((const char *[]){program_file, "ignored", NULL},
                                 (struct how){.ignores = true});

    (void)state;
    assert_string_equal(line(&p), "ready");
    assert_unmoved(&p);
    assert_int_equal(kill(p.pid, SIGTERM), 0);
    assert_true(settled_alive(p.pid));
    assert_answers(&p);
    assert_ends_with_input(&p);
}

static void children_change_nothing_in_their_parent(void **state)
{
    static const char *const ways[] = {"fork", "vfork"};

    (void)state;
    for (size_t i = 0; i < COUNT(ways); i++) {
        struct program p = start_own(ways[i]);

        assert_true(settled_alive(p.pid)); /* it reads: else what it has seen is told too late */
        assert_handles(&p);
        assert_interrupted(&p);
        assert_answers(&p);
        assert_ends_with_input(&p);
    }
}

static void threads_may_change_the_handler_at_any_time(void **state)
{
    struct program p = start_how((const char *[]){program_file, "threads", NULL}, (struct how){0});

    (void)state;
    assert_string_equal(line(&p), "begun");
    for (int i = 0; i < 500; i++)
        term_by(&stepd, p.pid);
    assert_string_equal(line(&p), "ready");
    term_by(&stepd, p.pid);
    assert_true(settled_alive(p.pid));
    assert_answers(&p);
    assert_handles(&p);
    assert_ends_with_input(&p);
}

/* ---- limits ---------------------------------------------------------------------------------- */

static void without_a_pid_the_library_does_nothing(void **state)
{
    struct program p = start_how((const char *[]){program_file, "default", NULL},
                                 (struct how){.unshielded = true});

    (void)state;
    assert_string_equal(line(&p), "ready");
    term_by(&stepd, p.pid);
    assert_string_equal(line(&p), "");
    assert_int_equal(end_of(&p), -SIGTERM);
}

/* slurmstepd is root, the agent has the user of the program. */
static void in_another_pid_namespace_the_sender_is_told_by_its_user(void **state)
{
    struct sender agent;
    struct program p;

    (void)state;
    if (getuid() != 0) {
        print_message("# needs root\n");
        skip();
    }
    agent = start_sender(NOBODY);
    p = start_how((const char *[]){"bash", "-c",
                                   "trap 'echo term' TERM; echo ready; "
                                   "while read -r; do echo alive; done; exit 0",
                                   NULL},
                  (struct how){.elsewhere = true});
    assert_string_equal(line(&p), "ready");
    assert_unmoved(&p);
    term_by(&agent, p.pid);
    assert_string_equal(line(&p), "term");
    assert_ends_with_input(&p);
    end_sender(&agent);
}

static bool make_static_program(const char *file)
{
    char command[512];
    FILE *compiler;

    snprintf(command, sizeof(command), "cc -x c -static -o %s - 2>/dev/null", file);
    compiler = popen(command, "we");
    if (compiler == NULL)
        return false;
    fputs("#include <unistd.h>\n"
          "int main(void) { return write(1, \"ready\\n\", 6) + pause(); }\n",
          compiler);
    return pclose(compiler) == 0;
}

static void a_static_program_is_not_shielded(void **state)
{
    char dir[] = "/tmp/test-shield.XXXXXX", file[64];
    struct program p;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(file, sizeof(file), "%s/static", dir);
    if (!make_static_program(file)) {
        rmdir(dir);
        print_message("# no static libc here\n");
        skip();
    }
    p = start((const char *[]){file, NULL});
    term_by(&stepd, p.pid);
    assert_string_equal(line(&p), "");
    assert_int_equal(end_of(&p), -SIGTERM);
    unlink(file);
    rmdir(dir);
}

/* The last test leaves this process unable to make threads: the leak checker would be one. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sleep_ends_by_others_only),
        cmocka_unit_test(python_ends_by_others_only),
        cmocka_unit_test(a_handler_of_python_hears_others_only),
        cmocka_unit_test(a_trap_of_bash_hears_others_only),
        cmocka_unit_test(what_bash_starts_is_shielded_too),
        cmocka_unit_test(a_program_that_follows_by_exec_has_the_default),
        cmocka_unit_test(node_ends_by_others_only),
        cmocka_unit_test(the_default_is_the_end_by_the_signal),
        cmocka_unit_test(handlers_hear_others_only),
        cmocka_unit_test(handlers_without_restart_hear_others_only),
        cmocka_unit_test(a_handler_for_once_is_for_others),
        cmocka_unit_test(an_ignored_signal_stays_ignored),
        cmocka_unit_test(children_change_nothing_in_their_parent),
        cmocka_unit_test(threads_may_change_the_handler_at_any_time),
        cmocka_unit_test(without_a_pid_the_library_does_nothing),
        cmocka_unit_test(a_static_program_is_not_shielded),
        cmocka_unit_test(in_another_pid_namespace_the_sender_is_told_by_its_user),
    };
    const char *top = getenv("top_builddir");

    alarm(600);
    signal(SIGPIPE, SIG_IGN);
    snprintf(library, sizeof(library), "%s/client/.libs/libelastic-shield.so",
             top != NULL ? top : ".");
    snprintf(program_file, sizeof(program_file), "%s/tests/unit/shield_program",
             top != NULL ? top : ".");
    return cmocka_run_group_tests(tests, begin, end);
}
