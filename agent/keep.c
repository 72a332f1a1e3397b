/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The workers of this node have been torn out of a world by a fault, and those of the next one start from the newest checkpoint: what they had in a
 * snapshot is flushed before the leader is told that they are gone, so that it can make that a checkpoint (promote.c). */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/member_internal.h"
#include "agent/paths.h"
#include "common/log.h"

/* Seconds. The leader takes a node for lost if its workers are not gone within ten after they should have been killed. */
#define LIMIT 8

struct keeping {
    uv_process_t process;
    struct member *member;
    int started;
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
    struct keeping *keeping = handle->data;
    struct member *m = keeping->member;

    free(keeping);
    member_piece_gone(m);
}

static void on_ended(uv_process_t *process, int64_t status, int number)
{
    struct keeping *keeping = process->data;

    if (status != 0 || number != 0)
        log_error("%s: its snapshot could not be brought to the checkpoints",
                  keeping->member->options->node);
    member_send_drained(keeping->member, keeping->started);
    uv_close((uv_handle_t *)process, on_closed);
}

bool keep_snapshot(struct member *m, int started)
{
    char limit[32], *args[] = {(char *)paths_flush(), limit, m->run_dir, NULL};
    uv_stdio_container_t files[] = {
        {.flags = UV_IGNORE},
        {.flags = UV_IGNORE},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO}, /* why it failed */
    };
    uv_process_options_t options = {
        .file = args[0], .args = args, .exit_cb = on_ended, .stdio = files, .stdio_count = 3};
    struct keeping *keeping;
    int rc;

    if (m->ending || !has_snapshot(m) || (keeping = calloc(1, sizeof(*keeping))) == NULL)
        return false;
    snprintf(limit, sizeof(limit), "--keep-time=%d", LIMIT);
    keeping->member = m;
    keeping->started = started;
    keeping->process.data = keeping;
    rc = uv_spawn(m->loop, &keeping->process, &options);
    m->open_handles++;
    if (rc == 0)
        return true;
    log_error("%s: %s: %s", m->options->node, args[0], uv_strerror(rc));
    uv_close((uv_handle_t *)&keeping->process, on_closed);
    return false;
}
