/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program for test_shield.c, which knows nothing of the library that is preloaded into it.
 *
 * shield_program HOW: install a handler of SIGTERM in this way, say "ready", and then "alive" for
 * each byte of standard input. The handler says "term". A read() that is interrupted by nothing
 * that the program has asked for is told. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHANGES 20000 /* of the handler, by each of the threads */
#define THREADS 4

/* As <signal.h> declares it for programs of strict POSIX only. */
sighandler_t bsd_signal(int number, sighandler_t handler);

/* siginterrupt() and sigset(): old programs have them. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static volatile sig_atomic_t seen;

static void say(const char *line)
{
    if (write(STDOUT_FILENO, line, strlen(line)) < 0)
        _exit(90);
}

static void on_term(int number)
{
    seen = 1;
    say(number == SIGTERM ? "term\n" : "another signal\n");
}

static void on_other_term(int number)
{
    on_term(number);
}

static void on_term_of(int number, siginfo_t *info, void *context)
{
    if (context == NULL || info->si_pid != getppid())
        say("nobody's ");
    on_term(number);
}

static void expect(bool it, const char *what)
{
    if (!it) {
        fprintf(stderr, "shield_program: not so: %s\n", what);
        _exit(91);
    }
}

static void ask(int flags, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags}, old;

    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGUSR1);
    expect(sigaction(SIGTERM, &action, NULL) == 0, "sigaction");
    expect(sigaction(SIGTERM, NULL, &old) == 0, "sigaction again");
    expect(old.sa_handler == handler && old.sa_flags == flags, "the handler and its flags");
    expect(sigismember(&old.sa_mask, SIGUSR1) == 1, "its mask");
}

static void with_sigaction(void)
{
    struct sigaction action = {.sa_sigaction = on_term_of, .sa_flags = SA_SIGINFO}, old;

    expect(sigaction(SIGTERM, &action, &old) == 0, "sigaction");
    expect(old.sa_handler == SIG_DFL && old.sa_flags == 0, "the default before");
    expect(sigaction(SIGTERM, NULL, &old) == 0, "sigaction again");
    expect(old.sa_sigaction == on_term_of && old.sa_flags == SA_SIGINFO, "the handler");
}

static void with_signal(void)
{
    expect(signal(SIGTERM, on_other_term) == SIG_DFL, "the default");
    expect(signal(SIGTERM, SIG_IGN) == on_other_term, "what signal() had installed");
    expect(signal(SIGTERM, SIG_DFL) == SIG_IGN, "ignored");
    expect(signal(SIGTERM, on_other_term) == SIG_DFL, "the default again");
    expect(bsd_signal(SIGTERM, on_term) == on_other_term, "bsd_signal");
    expect(ssignal(SIGTERM, on_term) == on_term, "ssignal");
    expect(signal(SIGTERM, SIG_ERR) == SIG_ERR && errno == EINVAL, "no handler");
    expect(signal(SIGKILL, on_term) == SIG_ERR && errno == EINVAL, "SIGKILL");
    expect(signal(99, on_term) == SIG_ERR && errno == EINVAL, "no signal");
    expect(signal(SIGUSR2, on_term) == SIG_DFL, "another signal");
    expect(signal(SIGUSR2, SIG_DFL) == on_term, "another signal's handler");
}

static void with_siginterrupt(void)
{
    struct sigaction action;

    expect(siginterrupt(SIGTERM, 1) == 0, "siginterrupt");
    expect(signal(SIGTERM, on_term) == SIG_DFL, "signal");
    expect(sigaction(SIGTERM, NULL, &action) == 0 && (action.sa_flags & SA_RESTART) == 0, "off");
    expect(siginterrupt(SIGTERM, 0) == 0, "siginterrupt again");
    expect(sigaction(SIGTERM, NULL, &action) == 0 && (action.sa_flags & SA_RESTART) != 0, "on");
}

static void with_sigset(void)
{
    expect(sigset(SIGTERM, on_term) == SIG_DFL, "sigset");
    expect(sigset(SIGTERM, SIG_HOLD) == on_term, "held");
    expect(sigset(SIGTERM, on_term) == SIG_HOLD, "was held");
    expect(sigignore(SIGTERM) == 0, "sigignore");
    expect(sigset(SIGTERM, on_term) == SIG_IGN, "was ignored");
}

static void with_vfork(void)
{
    int status;
    pid_t pid;

    ask(0, on_term);
    pid = vfork();
    if (pid == 0) {
        signal(SIGTERM, SIG_DFL); /* NOLINT: what programs do before they exec */
        _exit(0);
    }
    expect(waitpid(pid, &status, 0) == pid && status == 0, "the child of vfork");
}

static void with_fork(void)
{
    int status;
    pid_t pid;

    ask(0, on_term);
    pid = fork();
    if (pid == 0) {
        expect(signal(SIGTERM, SIG_DFL) == on_term, "the handler in the child");
        raise(SIGTERM);
        _exit(92);
    }
    expect(waitpid(pid, &status, 0) == pid, "the child of fork");
    expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM, "the child's end");
}

static void *change_often(void *arg)
{
    for (int i = 0; i < CHANGES; i++)
        signal(SIGTERM, i % 2 == 0 ? on_other_term : on_term);
    return arg;
}

static void with_threads(void)
{
    pthread_t threads[THREADS];

    signal(SIGTERM, on_term);
    say("begun\n");
    for (int i = 0; i < THREADS; i++)
        expect(pthread_create(&threads[i], NULL, change_often, NULL) == 0, "a thread");
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    expect(!seen, "no signal");
}

static void with_default(void)
{
}

static void with_reset(void)
{
    ask((int)SA_RESETHAND | SA_RESTART, on_term);
}

static void with_sysv(void)
{
    expect(sysv_signal(SIGTERM, on_other_term) == SIG_DFL, "sysv_signal");
    expect(__sysv_signal(SIGTERM, on_term) == on_other_term, "__sysv_signal");
}

static void with_ignored(void)
{
    expect(signal(SIGTERM, SIG_IGN) == SIG_IGN, "ignored before");
}

static const struct {
    const char *name;
    void (*install)(void);
} ways[] = {
    {"default", with_default}, {"fork", with_fork},           {"ignored", with_ignored},
    {"reset", with_reset},     {"sigaction", with_sigaction}, {"siginterrupt", with_siginterrupt},
    {"signal", with_signal},   {"sigset", with_sigset},       {"sysv", with_sysv},
    {"threads", with_threads}, {"vfork", with_vfork},
};

int main(int argc, char **argv)
{
    bool known = false;
    char byte;

    for (size_t i = 0; argc == 2 && i < sizeof(ways) / sizeof(ways[0]); i++) {
        if (strcmp(argv[1], ways[i].name) != 0)
            continue;
        known = true;
        ways[i].install();
    }
    if (!known)
        return 2;
    say("ready\n");
    for (;;) {
        ssize_t got = read(STDIN_FILENO, &byte, 1);

        if (got == 0)
            return 0;
        if (got == 1)
            say("alive\n");
        else if (!seen)
            say("interrupted\n");
        seen = 0;
    }
}
