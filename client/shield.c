/* SPDX-License-Identifier: GPL-2.0-or-later */
/* libelastic-shield.so: an unmodified program does not notice the SIGTERM of its slurmstepd.
 *
 * When Slurm wants a node, slurmstepd signals every process of the step. A server that has had no
 * part in that would begin to end, before those who send it work know. So LD_PRELOAD names this
 * library in the environment of a task, and ELASTIC_SHIELD names slurmstepd's pid. The library
 * installs a handler of its own, and keeps what the program wants to happen on SIGTERM: that
 * follows a SIGTERM of all other senders.
 *
 * An ignored SIGTERM stays ignored by the kernel: it is inherited over exec, as a handler is not. A
 * program that has been started by another has the library, too, and begins anew.
 *
 * Caveats:
 * - Not seen are programs that are linked statically, or that call the kernel without libc (Go);
 *   SIGTERM by sigwait() or signalfd(); set-user-ID programs.
 * - A handler runs, so a call that never restarts (poll, sleep, …) returns EINTR, or early.
 * - Of the SIGTERMs that a program has not yet taken the kernel keeps one: slurmstepd's may hide
 *   that of another sender. The shim of an agent waits (agent/workers/exec_worker.c). */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/term_signal.h"

#define NO_PID (-1) /* of a slurmstepd that is not in this pid namespace */

/* Module globals, since libc's functions and signal handlers have no argument for them. */

/* 0: the library does nothing. */
static pid_t stepd;
/* The process that this memory belongs to. A child of vfork() works on that of its parent, and must
 * change nothing in it. */
static pid_t owner;
/* Held with all signals blocked: a handler may call sigaction(). */
static atomic_flag busy = ATOMIC_FLAG_INIT;
/* What the program wants on SIGTERM, for as long as on_term() is installed. */
static _Atomic(sighandler_t) wanted = SIG_DFL;
static atomic_int wanted_flags;
/* Bit N - 1: siginterrupt() has said that signal() is to interrupt calls by signal N. */
static _Atomic uint64_t interrupting;

static void lock(sigset_t *before)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, before);
    while (atomic_flag_test_and_set(&busy))
        sched_yield();
}

static void unlock(const sigset_t *before)
{
    atomic_flag_clear(&busy);
    sigprocmask(SIG_SETMASK, before, NULL);
}

/* ---- what the kernel has, and what the program wants ----------------------------------------- */

static int change(int number, const struct sigaction *action, struct sigaction *old);

static void on_term(int number, siginfo_t *info, void *context)
{
    static const struct sigaction reset = {.sa_handler = SIG_DFL};
    /* A handler of one argument is called with three, too, as the kernel does it. */
    struct sigaction next = {.sa_handler = atomic_load(&wanted), .sa_flags = SA_SIGINFO};

    if (term_signal_is_stepds(info, stepd))
        return;
    if ((atomic_load(&wanted_flags) & (int)SA_RESETHAND) != 0) {
        if (getpid() == owner)
            next.sa_handler = atomic_exchange(&wanted, SIG_DFL);
        change(number, &reset, NULL);
    }
    term_signal_pass(&next, number, info, context);
}

/* What is installed when the program has asked for this. */
static struct sigaction shielded(const struct sigaction *asked)
{
    struct sigaction action = *asked;

    if (asked->sa_handler == SIG_IGN)
        return action;
    action.sa_sigaction = on_term;
    if (asked->sa_handler == SIG_DFL) {
        /* As little as can be is to be seen of it. */
        action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
        sigemptyset(&action.sa_mask);
    } else {
        action.sa_flags = (asked->sa_flags | SA_SIGINFO) & (int)~SA_RESETHAND;
    }
    return action;
}

static void tell(struct sigaction *old, const struct sigaction *was)
{
    *old = *was;
    if ((was->sa_flags & SA_SIGINFO) == 0 || was->sa_sigaction != on_term)
        return;
    old->sa_handler = atomic_load(&wanted);
    old->sa_flags = atomic_load(&wanted_flags);
}

static int change_term(const struct sigaction *action, struct sigaction *old)
{
    struct sigaction next, was;
    sigset_t before;
    int rc;

    lock(&before);
    rc = term_signal_action(SIGTERM, NULL, &was);
    if (rc == 0 && old != NULL)
        tell(old, &was);
    if (rc == 0 && action != NULL) {
        next = shielded(action);
        if (action->sa_handler != SIG_IGN) {
            atomic_store(&wanted, action->sa_handler);
            atomic_store(&wanted_flags, action->sa_flags);
        }
        rc = term_signal_action(SIGTERM, &next, NULL);
    }
    unlock(&before);
    return rc;
}

/* sigaction(2) for a program that does not know of this library. */
static int change(int number, const struct sigaction *action, struct sigaction *old)
{
    struct sigaction was, asked;
    int rc;

    if (action != NULL)
        asked = *action; /* it may be *old */
    if (number == SIGTERM && stepd != 0 && getpid() == owner)
        return change_term(action != NULL ? &asked : NULL, old);
    rc = term_signal_action(number, action, old != NULL ? &was : NULL);
    if (rc == 0 && old != NULL)
        tell(old, &was);
    return rc;
}

/* ---- libc's functions ------------------------------------------------------------------------ */

int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    return change(number, action, old);
}

static sighandler_t simple_change(int number, sighandler_t handler, int flags, bool masked)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags}, old;

    sigemptyset(&action.sa_mask);
    if (handler == SIG_ERR || (masked && sigaddset(&action.sa_mask, number) != 0)) {
        errno = EINVAL;
        return SIG_ERR;
    }
    return change(number, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

static uint64_t bit_of(int number)
{
    return number >= 1 && number <= 64 ? UINT64_C(1) << (number - 1) : 0;
}

sighandler_t signal(int number, sighandler_t handler)
{
    bool interrupts = (atomic_load(&interrupting) & bit_of(number)) != 0;

    return simple_change(number, handler, interrupts ? 0 : SA_RESTART, true);
}

sighandler_t bsd_signal(int number, sighandler_t handler);
sighandler_t bsd_signal(int number, sighandler_t handler)
{
    return signal(number, handler);
}

sighandler_t ssignal(int number, sighandler_t handler)
{
    return signal(number, handler);
}

sighandler_t sysv_signal(int number, sighandler_t handler)
{
    return simple_change(number, handler, (int)SA_RESETHAND | SA_NODEFER, false);
}

/* signal() of programs that are compiled for strict POSIX. */
sighandler_t __sysv_signal(int number, sighandler_t handler)
{
    return sysv_signal(number, handler);
}

int siginterrupt(int number, int interrupts)
{
    struct sigaction action;

    if (change(number, NULL, &action) != 0)
        return -1;
    if (interrupts) {
        atomic_fetch_or(&interrupting, bit_of(number));
        action.sa_flags &= ~SA_RESTART;
    } else {
        atomic_fetch_and(&interrupting, ~bit_of(number));
        action.sa_flags |= SA_RESTART;
    }
    return change(number, &action, NULL);
}

int sigignore(int number)
{
    return simple_change(number, SIG_IGN, 0, false) != SIG_ERR ? 0 : -1;
}

sighandler_t sigset(int number, sighandler_t handler)
{
    struct sigaction action = {.sa_handler = handler}, old;
    sigset_t one, before;
    int rc;

    sigemptyset(&one);
    if (handler == SIG_ERR || sigaddset(&one, number) != 0) {
        errno = EINVAL;
        return SIG_ERR;
    }
    if (handler == SIG_HOLD) {
        rc = sigprocmask(SIG_BLOCK, &one, &before);
        if (rc == 0)
            rc = change(number, NULL, &old);
    } else {
        rc = change(number, &action, &old);
        if (rc == 0)
            rc = sigprocmask(SIG_UNBLOCK, &one, &before);
    }
    if (rc != 0)
        return SIG_ERR;
    return sigismember(&before, number) == 1 ? SIG_HOLD : old.sa_handler;
}

/* ---- the beginning --------------------------------------------------------------------------- */

static pid_t read_pid(const char *text)
{
    char *end = NULL;
    long pid = text != NULL ? strtol(text, &end, 10) : 0;

    return pid > 1 && pid <= INT_MAX && *end == '\0' ? (pid_t)pid : 0;
}

static void in_child(void)
{
    owner = getpid();
    atomic_flag_clear(&busy); /* a thread of the parent may hold it */
}

/* In another pid namespace that pid is nobody's, or will be somebody else's. */
static __attribute__((constructor)) void start(void)
{
    pid_t pid = read_pid(getenv("ELASTIC_SHIELD"));
    int error = errno;
    struct sigaction now;

    if (pid == 0 || pthread_atfork(NULL, NULL, in_child) != 0)
        return;
    owner = getpid();
    stepd = kill(pid, 0) == 0 || errno != ESRCH ? pid : NO_PID;
    /* As the program has inherited it, or as another library has it already. */
    if (term_signal_action(SIGTERM, NULL, &now) == 0)
        change_term(&now, NULL);
    errno = error;
}
