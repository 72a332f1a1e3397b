/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The process haproxy (haproxy.h).
 *
 * A haproxy that this process has started is its child. One that a router of before has started is
 * not: the kernel tells of its end by a descriptor of the process. */
#include "router/haproxy.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/files.h"
#include "common/log.h"

/* Where Debian, and who builds it himself, have it. They need not be in a user's PATH. */
#define ELSEWHERE "/usr/sbin:/usr/local/sbin"
#define PROC_MAX  65536 /* bytes of a file of /proc */

struct haproxy {
    uv_loop_t *loop;
    const struct home *home;
    const char *program;
    void (*ended)(void *arg);
    void *arg;
    pid_t pid;
    uv_process_t *child; /* NULL: it is none of this process */
    uv_poll_t *watch;    /* of another's child; NULL: none */
    int descriptor;      /* of that process */
};

/* ---- the program ----------------------------------------------------------------------------- */

static bool is_program(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static char *find_in(const char *path)
{
    char candidate[4096];

    for (const char *dir = path; dir != NULL && *dir != '\0';) {
        size_t length = strcspn(dir, ":");

        snprintf(candidate, sizeof(candidate), "%.*s/haproxy", (int)length, dir);
        if (*dir == '/' && is_program(candidate))
            return strdup(candidate);
        dir += length + (dir[length] == ':');
    }
    return NULL;
}

char *haproxy_program(const char *given, struct error *err)
{
    char *found;

    if (given != NULL && is_program(given))
        return strdup(given);
    if (given != NULL) {
        error_set(err, "%s: there is no such program", error_path(given).text);
        return NULL;
    }
    found = find_in(getenv("PATH"));
    if (found == NULL)
        found = find_in(ELSEWHERE);
    if (found == NULL)
        error_set(err, "there is no haproxy: install the package haproxy (2.6 or later)");
    return found;
}

/* ---- one of before --------------------------------------------------------------------------- */

/* When a process began, in the kernel's ticks: with its number it means this process and no other.
 * 0: there is none. */
static unsigned long long start_of(pid_t pid)
{
    char path[64], *text, *word;
    unsigned long long start = 0;
    struct error err;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    text = file_read(path, PROC_MAX, NULL, &err);
    /* The name may have anything in it, but it ends with the last ')'. Field 22. */
    word = text != NULL ? strrchr(text, ')') : NULL;
    for (int field = 2; word != NULL && field < 22; field++)
        word = strchr(word + 1, ' ');
    if (word != NULL)
        start = strtoull(word, NULL, 10);
    free(text);
    return start;
}

static void note_process(const struct haproxy *haproxy)
{
    char text[64];
    struct error err = {""};

    snprintf(text, sizeof(text), "%d %llu\n", (int)haproxy->pid, start_of(haproxy->pid));
    if (file_replace(haproxy->home->process, text, strlen(text), 0600, &err) != 0)
        log_error("%s", err.text);
}

/* 0: nobody. */
static pid_t left_process(const struct haproxy *haproxy)
{
    struct error err;
    char *text = file_read(haproxy->home->process, PROC_MAX, NULL, &err);
    unsigned long long start = 0;
    int pid = 0;

    if (text == NULL || sscanf(text, "%d %llu", &pid, &start) != 2 || pid <= 1 || start == 0 ||
        start_of(pid) != start)
        pid = 0;
    free(text);
    return pid;
}

bool haproxy_is_left(const struct haproxy *haproxy)
{
    return left_process(haproxy) > 0;
}

void haproxy_end_left(const struct haproxy *haproxy)
{
    pid_t master = left_process(haproxy);
    char path[64], *children, *save = NULL;
    struct error err;

    if (master <= 0)
        return;
    log_info("haproxy (process %d) does not answer, and is ended", (int)master);
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)master, (int)master);
    children = file_read(path, PROC_MAX, NULL, &err);
    for (char *word = children != NULL ? strtok_r(children, " \n", &save) : NULL; word != NULL;
         word = strtok_r(NULL, " \n", &save))
        if (atoi(word) > 1)
            kill(atoi(word), SIGKILL);
    free(children);
    kill(master, SIGKILL);
}

/* ---- its end --------------------------------------------------------------------------------- */

static void on_child_closed(uv_handle_t *handle)
{
    free(handle);
}

static void gone(struct haproxy *haproxy)
{
    haproxy->pid = 0;
    haproxy->ended(haproxy->arg);
}

static void on_exit_of_child(uv_process_t *child, int64_t status, int signal)
{
    struct haproxy *haproxy = child->data;

    uv_close((uv_handle_t *)child, on_child_closed);
    if (haproxy == NULL || haproxy->child != child)
        return;
    haproxy->child = NULL;
    if (signal != 0)
        log_info("haproxy was ended by signal %d", signal);
    else if (status != 0)
        log_info("haproxy has ended with exit status %d", (int)status);
    gone(haproxy);
}

static void on_watch_closed(uv_handle_t *handle)
{
    close((int)(intptr_t)handle->data);
    free(handle);
}

static void stop_watching(struct haproxy *haproxy)
{
    if (haproxy->watch == NULL)
        return;
    haproxy->watch->data = (void *)(intptr_t)haproxy->descriptor;
    uv_close((uv_handle_t *)haproxy->watch, on_watch_closed);
    haproxy->watch = NULL;
}

static void on_end_of_other(uv_poll_t *watch, int status, int events)
{
    struct haproxy *haproxy = watch->data;

    (void)status;
    (void)events;
    stop_watching(haproxy);
    log_info("haproxy has ended");
    gone(haproxy);
}

/* ---- its life -------------------------------------------------------------------------------- */

struct haproxy *haproxy_create(uv_loop_t *loop, const struct home *home, const char *program,
                               void (*ended)(void *arg), void *arg)
{
    struct haproxy *haproxy = calloc(1, sizeof(*haproxy));

    if (haproxy == NULL)
        return NULL;
    *haproxy = (struct haproxy){
        .loop = loop, .home = home, .program = program, .ended = ended, .arg = arg};
    return haproxy;
}

void haproxy_destroy(struct haproxy *haproxy)
{
    if (haproxy == NULL)
        return;
    stop_watching(haproxy);
    if (haproxy->child != NULL) {
        haproxy->child->data = NULL;
        uv_unref((uv_handle_t *)haproxy->child);
    }
    free(haproxy);
}

int haproxy_start(struct haproxy *haproxy, struct error *err)
{
    char master[HOME_PATH + 16], config[HOME_PATH];
    /* By its path: at a reload it executes itself, and may not be in the user's PATH. */
    char *argv[] = {(char *)haproxy->program, "-W", "-S", master, "-f", config, NULL};
    uv_stdio_container_t stdio[] = {
        {.flags = UV_IGNORE},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
    };
    uv_process_options_t options = {
        .exit_cb = on_exit_of_child,
        .file = haproxy->program,
        .args = argv,
        .cwd = "/",
        .flags = UV_PROCESS_DETACHED, /* what a terminal sends is for the router */
        .stdio_count = 3,
        .stdio = stdio,
    };
    int code;

    snprintf(master, sizeof(master), "%s,mode,600", haproxy->home->master);
    snprintf(config, sizeof(config), "%s", haproxy->home->config);
    haproxy->child = calloc(1, sizeof(*haproxy->child));
    if (haproxy->child == NULL)
        return error_set(err, "out of memory");
    haproxy->child->data = haproxy;
    code = uv_spawn(haproxy->loop, haproxy->child, &options);
    if (code != 0) {
        uv_close((uv_handle_t *)haproxy->child, on_child_closed);
        haproxy->child = NULL;
        return error_set(err, "%s cannot be started: %s", haproxy->program, uv_strerror(code));
    }
    haproxy->pid = haproxy->child->pid;
    note_process(haproxy);
    return 0;
}

int haproxy_adopt(struct haproxy *haproxy, pid_t master, struct error *err)
{
    int fd = (int)syscall(SYS_pidfd_open, master, 0);

    if (fd < 0)
        return error_set(err, "haproxy (process %d): %s", (int)master, strerror(errno));
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    haproxy->watch = calloc(1, sizeof(*haproxy->watch));
    if (haproxy->watch == NULL || uv_poll_init(haproxy->loop, haproxy->watch, fd) != 0) {
        free(haproxy->watch);
        haproxy->watch = NULL;
        close(fd);
        return error_set(err, "haproxy (process %d) cannot be watched", (int)master);
    }
    haproxy->watch->data = haproxy;
    haproxy->descriptor = fd;
    haproxy->pid = master;
    uv_poll_start(haproxy->watch, UV_READABLE, on_end_of_other);
    return 0;
}

pid_t haproxy_pid(const struct haproxy *haproxy)
{
    return haproxy->pid;
}

/* Never to another process that has got its number meanwhile. */
static void send_signal(struct haproxy *haproxy, int number)
{
    if (haproxy->child != NULL)
        uv_process_kill(haproxy->child, number);
    else if (haproxy->watch != NULL)
        syscall(SYS_pidfd_send_signal, haproxy->descriptor, number, NULL, 0);
}

void haproxy_reload(struct haproxy *haproxy)
{
    send_signal(haproxy, SIGUSR2);
}

void haproxy_finish(struct haproxy *haproxy)
{
    send_signal(haproxy, SIGUSR1);
}

void haproxy_kill(struct haproxy *haproxy, pid_t worker)
{
    /* While its master is there, nobody else has the worker's number. */
    if (haproxy->pid > 0 && worker > 0)
        kill(worker, SIGKILL);
    send_signal(haproxy, SIGKILL);
}
