/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a program prints, with a time limit (program.h). */
#include "common/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/monotonic.h"

#define ERRORS_MAX 4096
#define TERM_MS    3000
#define KILL_MS    1000

/* What has come from one end of a pipe. */
struct stream {
    int fd; /* -1: it has ended */
    char *text;
    size_t used, max;
};

static void end_stream(struct stream *stream)
{
    if (stream->fd >= 0)
        close(stream->fd);
    stream->fd = -1;
}

/* What is more than max is read and dropped. */
static void take(struct stream *stream)
{
    char chunk[4096];
    ssize_t count = read(stream->fd, chunk, sizeof(chunk));

    if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN))
        end_stream(stream);
    for (ssize_t i = 0; i < count && stream->used < stream->max; i++)
        stream->text[stream->used++] = chunk[i] != '\0' ? chunk[i] : ' ';
}

/* Until both have ended, or the time is over. */
static void collect(struct stream *out, struct stream *errors, long long end)
{
    while (out->fd >= 0 || errors->fd >= 0) {
        struct pollfd polled[2] = {{.fd = out->fd, .events = POLLIN},
                                   {.fd = errors->fd, .events = POLLIN}};
        long long left = end - monotonic_ms();

        if (left <= 0 || (poll(polled, 2, (int)left) < 0 && errno != EINTR))
            return;
        if (polled[0].revents != 0)
            take(out);
        if (polled[1].revents != 0)
            take(errors);
    }
}

/* Its status. What has not ended by then is told to end, as srun has to end its job, and killed
 * after a while; *late says so. */
static int wait_for(pid_t pid, long long end, bool *late)
{
    const struct timespec pause = {.tv_nsec = 5 * 1000000};
    int status = 0;

    *late = false;
    for (;;) {
        pid_t done = waitpid(pid, &status, WNOHANG);
        long long now = monotonic_ms();

        /* What a file system keeps in the kernel does not end by SIGKILL either. */
        if (done == pid || (done < 0 && errno != EINTR) || now >= end + TERM_MS + KILL_MS)
            return status;
        if (!*late && now >= end) {
            *late = true;
            kill(pid, SIGTERM);
        } else if (*late && now >= end + TERM_MS) {
            kill(pid, SIGKILL);
        }
        nanosleep(&pause, NULL);
    }
}

static int start(char *const *argv, int out, int errors, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    int rc = posix_spawn_file_actions_init(&actions);

    if (rc != 0)
        return rc;
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
    posix_spawn_file_actions_addchdir_np(&actions, "/");
    rc = posix_spawnp(pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}

static void last_line(char *text, struct error *err, const char *name)
{
    char *line;

    while (text[0] != '\0' && text[strlen(text) - 1] == '\n')
        text[strlen(text) - 1] = '\0';
    line = strrchr(text, '\n');
    line = line != NULL ? line + 1 : text;
    if (line[0] != '\0')
        error_set(err, "%.400s", line);
    else
        error_set(err, "%s has failed without a word", name);
}

/* Both pipes, close-on-exec. */
static int open_pipes(int out[2], int errors[2])
{
    if (pipe2(out, O_CLOEXEC) != 0)
        return -1;
    if (pipe2(errors, O_CLOEXEC) == 0)
        return 0;
    close(out[0]);
    close(out[1]);
    return -1;
}

int program_output(char *const *argv, int timeout_ms, size_t max, char **text, struct error *err)
{
    struct stream out = {.fd = -1, .max = max}, errors = {.fd = -1, .max = ERRORS_MAX};
    long long end = monotonic_ms() + timeout_ms;
    int out_pipe[2], error_pipe[2], rc, status;
    bool late;
    pid_t pid;

    *text = NULL;
    out.text = calloc(1, max + 1);
    errors.text = calloc(1, ERRORS_MAX + 1);
    if (out.text == NULL || errors.text == NULL || open_pipes(out_pipe, error_pipe) != 0) {
        free(out.text);
        free(errors.text);
        return error_set(err, "%s: %s", argv[0], strerror(errno));
    }
    rc = start(argv, out_pipe[1], error_pipe[1], &pid);
    close(out_pipe[1]);
    close(error_pipe[1]);
    out.fd = out_pipe[0];
    errors.fd = error_pipe[0];
    if (rc == 0) {
        collect(&out, &errors, end);
        status = wait_for(pid, end, &late);
        if (late)
            rc = error_set(err, "%s does not answer within %g s", argv[0], timeout_ms / 1000.0);
        else if (!WIFEXITED(status))
            rc = error_set(err, "%s was killed by signal %d", argv[0], WTERMSIG(status));
        else if ((rc = WEXITSTATUS(status)) != 0)
            last_line(errors.text, err, argv[0]);
    } else
        rc = error_set(err, "%s: %s", argv[0], strerror(rc));
    end_stream(&out);
    end_stream(&errors);
    free(errors.text);
    if (rc >= 0)
        *text = out.text;
    else
        free(out.text);
    return rc;
}
