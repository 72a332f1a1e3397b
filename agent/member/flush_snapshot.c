/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Flushing a snapshot after a fault, before the next world starts.
 *
 * A fault has ended the world of this node's workers, and the next world starts from the newest
 * checkpoint. The workers' state in a snapshot is flushed before the leader is told that the
 * workers are gone. So the leader can make that snapshot a checkpoint (promote.c). */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/member/member_internal.h"
#include "agent/paths.h"
#include "common/log.h"

/* Seconds. The leader counts a node as lost if its workers are not gone within ten seconds after
 * they should have been killed. */
#define LIMIT 8
/* After this many more seconds the flush waits for a file system, and no signal frees it: the agent
 * stops waiting for it. */
#define LATE 1

struct flushing {
    uv_process_t process;
    uv_timer_t timer;
    struct member *member;
    int started;
    int open; /* handles */
};

static bool has_snapshot(const struct member *m)
{
    char path[600];
    struct stat st;

    snprintf(path, sizeof(path), "%s/snapshot", m->run_dir);
    return stat(path, &st) == 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct flushing *flushing = handle->data;
    struct member *m = flushing->member;

    if (--flushing->open > 0)
        return;
    free(flushing);
    member_piece_gone(m);
}

static void end(struct flushing *flushing)
{
    uv_close((uv_handle_t *)&flushing->timer, on_closed);
    uv_close((uv_handle_t *)&flushing->process, on_closed);
}

static void on_ended(uv_process_t *process, int64_t status, int number)
{
    struct flushing *flushing = process->data;

    if (status != 0 || number != 0)
        log_error("%s: its snapshot could not be brought to the checkpoints",
                  flushing->member->options->node);
    member_send_drained(flushing->member, flushing->started);
    end(flushing);
}

static void on_late(uv_timer_t *timer)
{
    struct flushing *flushing = timer->data;

    log_error("%s: its snapshot is not at the checkpoints after %d s: nobody waits for it",
              flushing->member->options->node, LIMIT + LATE);
    uv_process_kill(&flushing->process, SIGKILL);
    member_send_drained(flushing->member, flushing->started);
    end(flushing);
}

bool flush_snapshot(struct member *m, int started)
{
    char limit[32], *args[] = {(char *)paths_of(PATHS_FLUSH), limit, m->run_dir, NULL};
    uv_stdio_container_t files[] = {
        {.flags = UV_IGNORE},
        {.flags = UV_IGNORE},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO}, /* why it failed */
    };
    uv_process_options_t options = {
        .file = args[0], .args = args, .exit_cb = on_ended, .stdio = files, .stdio_count = 3};
    struct flushing *flushing;
    int rc;

    if (m->ending || !has_snapshot(m) || (flushing = calloc(1, sizeof(*flushing))) == NULL)
        return false;
    snprintf(limit, sizeof(limit), "--keep-time=%d", LIMIT);
    flushing->member = m;
    flushing->started = started;
    flushing->process.data = flushing->timer.data = flushing;
    flushing->open = 2;
    m->open_handles++;
    uv_timer_init(m->loop, &flushing->timer);
    rc = uv_spawn(m->loop, &flushing->process, &options);
    if (rc == 0) {
        uv_timer_start(&flushing->timer, on_late, (LIMIT + LATE) * 1000, 0);
        return true;
    }
    log_error("%s: %s: %s", m->options->node, args[0], uv_strerror(rc));
    end(flushing);
    return false;
}
