/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One attempt to flush a run directory (attempt.h). */
#include "flush/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/stop.h"
#include "flush/buffer.h"
#include "flush/guard.h"
#include "flush/target.h"
#include "flush/workers.h"

#define GRACE 10 /* seconds more, in which the process removes what it has written */

/* The run directory, in the process. */
struct work {
    const struct attempt *attempt;
    struct told *told; /* shared with the parent */
    struct buffer buffers[BUFFERS];
    int count; /* buffers */
    struct error torn;
};

/* ---- the buffers ----------------------------------------------------------------------------- */

/* The index last: the process may be killed meanwhile. */
static void tell_buffer(struct told *told, const struct buffer *buffer)
{
    told->index = -1;
    if (buffer == NULL)
        return;
    told->count = buffer->snapshot->count;
    for (int i = 0; i < told->count; i++)
        snprintf(told->files[i], sizeof(told->files[i]), "%s", buffer->snapshot->files[i].name);
    told->index = buffer->index;
}

static void open_buffers(struct work *work)
{
    const struct attempt *attempt = work->attempt;

    work->torn.text[0] = '\0';
    work->count = buffers_open(attempt->dir, attempt->limit, work->buffers, &work->torn);
    tell_buffer(work->told, work->count > 0 ? &work->buffers[0] : NULL);
}

/* Wait for another flush of the same directory, so that this one finds its result. Where the file
 * system has no such locks, both write. The lock is the parent's, too. */
static void wait_for_others(struct work *work)
{
    if (flock(work->attempt->dir, LOCK_EX | LOCK_NB) == 0)
        return;
    open_buffers(work); /* for the case that this takes all the time */
    buffers_close(work->buffers, work->count);
    while (!stop_asked() && flock(work->attempt->dir, LOCK_EX) != 0 && errno == EINTR)
        ;
}

/* ---- flushing -------------------------------------------------------------------------------- */

static enum flush_result copy_files(const struct buffer *buffer, struct target *target,
                                    struct error *err)
{
    const struct snapshot *snapshot = buffer->snapshot;
    enum flush_result result = FLUSH_DONE;

    for (int i = 0; result == FLUSH_DONE && i < snapshot->count; i++) {
        int fd = buffer_open_file(buffer, &snapshot->files[i], err);

        if (fd < 0)
            return FLUSH_TORN;
        result = target_add(target, fd, &snapshot->files[i], err);
        close(fd);
    }
    return result;
}

/* For FLUSH_DONE err says what was done, for any other result why. */
static enum flush_result flush_buffer(const struct buffer *buffer, const struct attempt *attempt,
                                      struct error *err)
{
    const struct snapshot *snapshot = buffer->snapshot;
    const char *name = NULL;
    struct target *target = target_open(snapshot->checkpoint, &snapshot->key, attempt->run->node,
                                        attempt->to_disk, err);
    enum flush_result result = FLUSH_FAILED;

    if (target != NULL)
        result = target_begin(target, err);
    if (result == FLUSH_DONE)
        result = copy_files(buffer, target, err);
    if (result == FLUSH_DONE)
        result = target_publish(target, snapshot, &name, err);
    if (result == FLUSH_DONE)
        error_set(err, "%" PRId64 " bytes in %s/%s", snapshot->bytes,
                  error_path(target_path(target)).text, name);
    target_close(target);
    return result;
}

/* Compose the line "flushed: snapshot/1 of 12.0, generation 3, step 1234: WHY; TORN". TORN is about
 * the buffers that were looked at before. */
static void say(struct work *work, const char *what, const struct buffer *buffer,
                const char *reason)
{
    const struct snapshot_key *key = &buffer->snapshot->key;
    const struct error *torn = &work->torn;

    error_set(&work->told->line,
              "%s: snapshot/%d of %u.%u, generation %d, step %" PRId64 ": %s%s%s", what,
              buffer->index, key->job, key->restarts, key->generation, key->step, reason,
              torn->text[0] != '\0' ? "; not used: " : "", torn->text);
}

/* Returns the exit status. */
static int flush_newest(struct work *work)
{
    for (int i = 0; i < work->count && !stop_asked(); i++) {
        const struct buffer *buffer = &work->buffers[i];
        struct error err = {""};

        switch (flush_buffer(buffer, work->attempt, &err)) {
        case FLUSH_DONE:
            say(work, "flushed", buffer, err.text);
            return STATUS_OK;
        case FLUSH_COVERED:
            say(work, "dropped", buffer, err.text);
            return STATUS_OK;
        case FLUSH_TORN:
            buffer_add_reason(&work->torn, buffer->index, err.text);
            tell_buffer(work->told, i + 1 < work->count ? buffer + 1 : NULL);
            break;
        case FLUSH_STOPPED:
            return STATUS_ERROR;
        case FLUSH_FAILED:
        default:
            say(work, "not flushed", buffer, err.text);
            return STATUS_ERROR;
        }
    }
    if (stop_asked())
        return STATUS_ERROR;
    if (work->torn.text[0] != '\0') {
        error_set(&work->told->line, "no snapshot can be used: %s", work->torn.text);
        work->told->lost = true;
        return STATUS_ERROR;
    }
    error_set(&work->told->line, "nothing to flush: there is no complete snapshot");
    return STATUS_OK;
}

static int out_of_time(int seconds, struct error *line)
{
    error_set(line, "out of time after %d s; nothing was flushed", seconds);
    return STATUS_TIME;
}

static void flush(struct work *work)
{
    const struct attempt *attempt = work->attempt;
    struct told *told = work->told;

    if (attempt->kill)
        workers_kill(attempt->path);
    wait_for_others(work);
    open_buffers(work);
    told->status = flush_newest(work);
    if (told->status == STATUS_OK || !stop_asked())
        return;
    if (stop_asked() == SIGALRM)
        told->status = out_of_time(attempt->seconds, &told->line);
    else
        error_set(&told->line, "ended by signal %d; nothing was flushed", stop_asked());
}

/* ---- the process ----------------------------------------------------------------------------- */

/* Who reads the parent's output waits for the parent only: this process may hang. */
static void leave_output(void)
{
    int none = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int fd = STDIN_FILENO; none >= 0 && fd <= STDERR_FILENO; fd++)
        dup2(none, fd);
}

/* It ends with the parent. */
static _Noreturn void run(const struct attempt *attempt, struct told *told, pid_t parent)
{
    struct work work = {.attempt = attempt, .told = told};

    prctl(PR_SET_NAME, "elastic-attempt");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    leave_output();
    stop_watch(attempt->seconds);
    flush(&work);
    told->ended = true;
    _exit(0);
}

/* What it has told before its end. It may have gone wrong in any way. */
static void take(const struct told *shared, struct told *told)
{
    *told = *shared;
    told->begun = true;
    told->line.text[sizeof(told->line.text) - 1] = '\0';
    if (told->index < 0 || told->index >= BUFFERS || told->count < 1 ||
        told->count > SNAPSHOT_FILES_MAX)
        told->index = -1;
    for (int i = 0; i < SNAPSHOT_FILES_MAX; i++)
        told->files[i][SNAPSHOT_FILE_SIZE - 1] = '\0';
}

static void say_how_it_ended(enum guarded guarded, int seconds, struct told *told)
{
    told->lost = false;
    told->status = STATUS_ERROR;
    told->stuck = guarded == GUARD_STUCK;
    if (guarded == GUARD_LATE || guarded == GUARD_STUCK)
        told->status = out_of_time(seconds, &told->line);
    else
        error_set(&told->line, "not flushed: its process was %s",
                  guarded == GUARD_STOPPED ? "stopped by another one of the user" : "killed");
}

static void flush_shared(const struct attempt *attempt, struct told *shared, struct told *told)
{
    const pid_t parent = getpid();
    enum guarded guarded;
    pid_t pid = fork();

    if (pid == 0)
        run(attempt, shared, parent);
    if (pid < 0) {
        error_set(&told->line, "not flushed: fork: %s", strerror(errno));
        return;
    }
    guarded = guard_wait(pid, attempt->seconds > 0 ? attempt->seconds + GRACE : INT_MAX);
    take(shared, told);
    if (!told->ended)
        say_how_it_ended(guarded, attempt->seconds, told);
}

void attempt_flush(const struct attempt *attempt, struct told *told)
{
    struct told *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    *told = (struct told){.status = STATUS_ERROR, .index = -1};
    if (shared == MAP_FAILED) {
        error_set(&told->line, "not flushed: mmap: %s", strerror(errno));
        return;
    }
    *shared = *told;
    flush_shared(attempt, shared, told);
    munmap(shared, sizeof(*shared));
}
