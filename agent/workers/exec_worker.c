/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The worker shim: `elasticrun --exec-worker`, one process between the agent and each worker.
 *
 * The shim starts the user's command in a session of its own and stays its parent, as a subreaper:
 * all processes that the command starts, even daemons, remain below the shim. So when the command
 * ends, or the agent dies, the shim can kill all that is left. Then the shim ends as the command
 * did, which is what the agent sees. Signals from the agent are passed on to the command.
 *
 * The shim uses no library, so that a worker costs little and inherits nothing of the agent. */
#include "agent/workers/exec_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/workers/process_tree.h"
#include "agent/workers/workers.h"

#define CPUS_MAX 65536
/* For killed processes to disappear; a process that hangs longer is left to Slurm. */
#define CLEAN_SECONDS 2
/* Until the shim looks again whether the command has taken its last SIGTERM. */
#define DUE_MS 20

struct shim {
    pid_t agent;
    int status_fd;
    mode_t umask;
    const char *cwd;
    const char *cpus;
    char **argv;
    pid_t worker;
    bool ended;
    bool term_due;  /* the command is to get a SIGTERM */
    bool signalled; /* Slurm signals each process of the step */
    int status;     /* of the worker, as waitpid returns it */
};

static void say_failure(const struct shim *shim, enum exec_worker_stage stage, int error)
{
    struct exec_worker_failure failure = {.stage = (int32_t)stage, .error = error};
    ssize_t written;

    do
        written = write(shim->status_fd, &failure, sizeof(failure));
    while (written < 0 && errno == EINTR);
}

/* ---- options --------------------------------------------------------------------------------- */

static bool read_number(const char *text, int base, long max, long *value)
{
    char *end;

    errno = 0;
    *value = strtol(text, &end, base);
    return errno == 0 && end != text && *end == '\0' && *value >= 0 && *value <= max;
}

static int parse_options(struct shim *shim, int argc, char **argv)
{
    static const struct option options[] = {
        {"agent", required_argument, NULL, 'a'}, {"status", required_argument, NULL, 's'},
        {"umask", required_argument, NULL, 'u'}, {"cwd", required_argument, NULL, 'd'},
        {"cpus", required_argument, NULL, 'c'},  {0},
    };
    long value = 0;
    int option;

    opterr = 0;
    optind = 2; /* after --exec-worker */
    while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
        bool valid = true;

        switch (option) {
        case 'a':
            valid = read_number(optarg, 10, INT32_MAX, &value);
            shim->agent = (pid_t)value;
            break;
        case 's':
            valid = read_number(optarg, 10, 1 << 20, &value);
            shim->status_fd = (int)value;
            break;
        case 'u':
            valid = read_number(optarg, 8, 0777, &value);
            shim->umask = (mode_t)value;
            break;
        case 'd':
            shim->cwd = optarg;
            break;
        case 'c':
            shim->cpus = optarg;
            break;
        default:
            valid = false;
        }
        if (!valid)
            return -1;
    }
    shim->argv = argv + optind;
    return optind < argc && shim->agent > 0 && shim->status_fd > 2 ? 0 : -1;
}

/* ---- binding --------------------------------------------------------------------------------- */

/* Bind to a list like "0-3,8". A binding that the kernel refuses costs speed, not correctness:
 * the worker runs unbound. */
static void bind_cpus(const char *list)
{
    size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
    cpu_set_t *set = CPU_ALLOC(CPUS_MAX);
    const char *at = list;

    if (set == NULL)
        return;
    CPU_ZERO_S(size, set);
    while (*at != '\0') {
        char *end;
        unsigned long first = strtoul(at, &end, 10), last = first;

        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        if (end == at || last >= CPUS_MAX)
            break;
        for (unsigned long cpu = first; cpu <= last; cpu++)
            CPU_SET_S(cpu, size, set);
        at = *end == ',' ? end + 1 : end;
    }
    if (*at == '\0')
        sched_setaffinity(0, size, set);
    CPU_FREE(set);
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Is there a file of this name in a directory of PATH? */
static bool on_path(const char *command)
{
    const char *path = getenv("PATH");
    bool found = false;

    while (path != NULL && !found) {
        size_t len = strcspn(path, ":");
        char *file;

        if (asprintf(&file, "%.*s/%s", (int)len, path, command) >= 0) {
            found = access(file, F_OK) == 0;
            free(file);
        }
        path = path[len] == ':' ? path + len + 1 : NULL;
    }
    return found;
}

/* Exec says "Permission denied" also for a directory, and for a missing command when PATH names a
 * directory that this user may not search. */
static int exec_error(const char *command, int error)
{
    struct stat st;

    if (error != EACCES)
        return error;
    if (strchr(command, '/') == NULL)
        return on_path(command) ? EACCES : ENOENT;
    return stat(command, &st) == 0 && S_ISDIR(st.st_mode) ? EISDIR : EACCES;
}

/* Exec says "No such file" also for a script whose interpreter is missing. */
static bool no_interpreter(const char *command, int error)
{
    if (error != ENOENT || command[0] == '\0')
        return false;
    return strchr(command, '/') != NULL ? access(command, F_OK) == 0 : on_path(command);
}

/* In the child. The kernel kills the group if the shim is killed. */
static void __attribute__((noreturn)) become_command(const struct shim *shim, pid_t parent)
{
    sigset_t none;
    int error;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    setsid();
    umask(shim->umask);
    if (shim->cwd != NULL && chdir(shim->cwd) != 0) {
        say_failure(shim, EXEC_WORKER_CHDIR, errno);
        _exit(126);
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvp(shim->argv[0], shim->argv);
    error = exec_error(shim->argv[0], errno);
    say_failure(shim,
                no_interpreter(shim->argv[0], error) ? EXEC_WORKER_INTERPRETER : EXEC_WORKER_EXEC,
                error);
    _exit(error == ENOENT ? 127 : 126);
}

/* Close descriptors that Slurm or a library left open without close-on-exec. Old kernels lack the
 * call. */
static void close_above(int fd)
{
#ifdef SYS_close_range
    syscall(SYS_close_range, (unsigned)fd + 1, ~0U, 0);
#else
    (void)fd;
#endif
}

/* The shim keeps no end of the worker's pipes: so they end with the last process that writes to
 * them. */
static void let_go_of_pipes(struct shim *shim)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int fd = 0; fd <= 2 && null >= 0; fd++)
        dup2(null, fd);
    if (null > 2)
        close(null);
    close(shim->status_fd);
}

static int start_command(struct shim *shim)
{
    pid_t self = getpid();

    close_above(shim->status_fd);
    fcntl(shim->status_fd, F_SETFD, FD_CLOEXEC);
    shim->worker = fork();
    if (shim->worker == 0)
        become_command(shim, self);
    if (shim->worker < 0) {
        say_failure(shim, EXEC_WORKER_FORK, errno);
        return -1;
    }
    let_go_of_pipes(shim);
    return 0;
}

/* ---- supervision ----------------------------------------------------------------------------- */

/* Reap all ended processes. False when no child is left. */
static bool reap(struct shim *shim)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != shim->worker)
            continue;
        shim->ended = true;
        shim->status = status;
    }
    return pid == 0;
}

static bool agent_gone(const struct shim *shim)
{
    return getppid() != shim->agent;
}

/* What is to be done with a signal other than SIGCHLD? When Slurm signals each process of a step,
 * the command has its own (client/term_guard.c): it does not need the agent's copy as well. */
static bool is_for_command(struct shim *shim, const siginfo_t *info)
{
    if (info->si_pid != shim->agent) {
        shim->signalled = shim->signalled || info->si_code == SI_USER;
        return false;
    }
    return info->si_code != SI_QUEUE || info->si_value.sival_int != EXEC_WORKER_PASSED ||
           !shim->signalled;
}

/* A signal for the command, which is not reaped yet: so the pid is its own. */
static void signal_command(const struct shim *shim, int number)
{
    if (!shim->ended && !agent_gone(shim))
        kill(shim->worker, number);
}

/* Not while the command has another one to take: the kernel would drop this one, and the other may
 * be Slurm's, of which a shielded command takes no notice (client/shield.c). */
static void send_due_term(struct shim *shim)
{
    if (!shim->term_due || process_has_pending(shim->worker, SIGTERM))
        return;
    shim->term_due = false;
    signal_command(shim, SIGTERM);
}

/* Until the command has ended, or is to be killed. All signals are blocked, so none is lost
 * between two waits. */
static void supervise(struct shim *shim, const sigset_t *all)
{
    const struct timespec step = {.tv_nsec = DUE_MS * 1000 * 1000};

    while (!shim->ended && !agent_gone(shim)) {
        siginfo_t info;
        int number = shim->term_due ? sigtimedwait(all, &info, &step) : sigwaitinfo(all, &info);

        if (number == EXEC_WORKER_KILL)
            return;
        if (number == SIGCHLD)
            reap(shim);
        else if (number == EXEC_WORKER_TERM)
            shim->term_due = true; /* has no sender if the user may queue no more */
        else if (number > 0 && is_for_command(shim, &info))
            signal_command(shim, number);
        send_due_term(shim);
    }
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Kill and reap the command and all that it has left; orphans become children of the shim as their
 * parents die. The command itself is waited for as long as the agent asks for its end. */
static void clean_up(struct shim *shim, const sigset_t *all)
{
    const struct timespec step = {.tv_nsec = 50 * 1000 * 1000};
    double until = seconds() + CLEAN_SECONDS;

    while (reap(shim)) {
        process_tree_kill(getpid());
        if (seconds() > until && (shim->ended || agent_gone(shim)))
            break;
        sigtimedwait(all, NULL, &step); /* SIGCHLD comes much sooner */
    }
}

/* End as the command did, without a second core file. */
static int end_alike(const struct shim *shim)
{
    sigset_t one;
    int number;

    if (!shim->ended)
        return 1; /* the agent is gone: nobody asks */
    if (WIFEXITED(shim->status))
        return WEXITSTATUS(shim->status);
    number = WTERMSIG(shim->status);
    prctl(PR_SET_DUMPABLE, 0);
    signal(number, SIG_DFL);
    kill(getpid(), number);
    sigemptyset(&one);
    sigaddset(&one, number);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    return 128 + number;
}

int workers_exec_shim(int argc, char **argv)
{
    struct shim shim = {.status_fd = -1, .umask = 022};
    sigset_t all;

    if (parse_options(&shim, argc, argv) != 0) {
        fputs("elasticrun: --exec-worker is for elasticrun itself\n", stderr);
        return 2;
    }
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    prctl(PR_SET_NAME, "elasticrun"); /* not "exe" */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* wakes supervise, which then looks at its parent */
    if (agent_gone(&shim))
        return 1;
    if (shim.cpus != NULL)
        bind_cpus(shim.cpus);
    if (start_command(&shim) != 0)
        return 126;
    supervise(&shim, &all);
    clean_up(&shim, &all);
    return end_alike(&shim);
}
