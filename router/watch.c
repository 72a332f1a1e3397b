/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A small file that others replace (watch.h). */
#include "router/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/entry.h"

struct identity {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec time;
};

struct watch {
    uv_timer_t timer;
    uv_work_t work;
    bool timer_open, working;
    watch_changed *changed; /* NULL: nobody wants to know */
    void *arg;
    char *path;
    size_t max;
    bool secret;
    uint64_t ms;
    /* Of the thread, while it works. */
    struct identity seen; /* the last one that was read */
    char *text;
    size_t length;
    bool new_text;
    struct error err, told; /* why it cannot be read; what has been said */
};

static void dispose(struct watch *watch)
{
    if (watch->timer_open || watch->working)
        return;
    free(watch->text);
    free(watch->path);
    free(watch);
}

/* ---- in the thread --------------------------------------------------------------------------- */

/* What has been looked at is what is read: where others may write, another file may have the name
 * by now. */
static int read_it(struct watch *watch, int fd, const struct stat *st)
{
    struct identity identity = {st->st_dev, st->st_ino, st->st_size, st->st_mtim};

    if (!S_ISREG(st->st_mode))
        return error_set(&watch->err, "%s is no file", error_path(watch->path).text);
    if (st->st_uid != getuid() && st->st_uid != 0)
        return error_set(&watch->err, "%s belongs to uid %u, who is neither you nor root",
                         error_path(watch->path).text, (unsigned)st->st_uid);
    if (watch->secret && (st->st_mode & 077) != 0)
        return error_set(&watch->err, "%s may be read by others: chmod 600",
                         error_path(watch->path).text);
    if (memcmp(&identity.time, &watch->seen.time, sizeof(identity.time)) == 0 &&
        identity.inode == watch->seen.inode && identity.device == watch->seen.device &&
        identity.size == watch->seen.size)
        return 0;
    watch->text = entry_text(fd, watch->max, &watch->length, &watch->err);
    if (watch->text == NULL)
        return error_prefix(&watch->err, "%s", error_path(watch->path).text);
    watch->seen = identity;
    watch->new_text = true;
    return 0;
}

static void look(uv_work_t *work)
{
    struct watch *watch = work->data;
    int fd = open(watch->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat st;

    watch->err.text[0] = '\0';
    watch->new_text = false;
    if (fd < 0 || fstat(fd, &st) != 0)
        error_set(&watch->err, "%s: %s", error_path(watch->path).text, strerror(errno));
    else
        read_it(watch, fd, &st);
    if (fd >= 0)
        close(fd);
}

/* ---- in the loop ----------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer);

static void tell(struct watch *watch)
{
    if (watch->new_text)
        watch->changed(watch->text, watch->length, NULL, watch->arg);
    else if (watch->err.text[0] != '\0' && strcmp(watch->err.text, watch->told.text) != 0)
        watch->changed(NULL, 0, watch->err.text, watch->arg);
    watch->told = watch->err;
}

static void looked(uv_work_t *work, int status)
{
    struct watch *watch = work->data;

    watch->working = false;
    if (status == 0 && watch->changed != NULL)
        tell(watch);
    free(watch->text);
    watch->text = NULL;
    if (watch->timer_open && watch->changed != NULL)
        uv_timer_start(&watch->timer, on_timer, watch->ms, 0);
    dispose(watch);
}

static void on_timer(uv_timer_t *timer)
{
    struct watch *watch = timer->data;

    watch->work.data = watch;
    watch->working = uv_queue_work(timer->loop, &watch->work, look, looked) == 0;
    if (!watch->working)
        uv_timer_start(timer, on_timer, watch->ms, 0);
}

struct watch *watch_create(uv_loop_t *loop, const char *path, size_t max, bool secret, uint64_t ms,
                           watch_changed *changed, void *arg)
{
    struct watch *watch = calloc(1, sizeof(*watch));

    if (watch == NULL || (watch->path = strdup(path)) == NULL) {
        free(watch);
        return NULL;
    }
    watch->max = max;
    watch->secret = secret;
    watch->ms = ms;
    watch->changed = changed;
    watch->arg = arg;
    uv_timer_init(loop, &watch->timer);
    watch->timer.data = watch;
    watch->timer_open = true;
    uv_timer_start(&watch->timer, on_timer, 0, 0);
    return watch;
}

static void on_closed(uv_handle_t *handle)
{
    struct watch *watch = handle->data;

    watch->timer_open = false;
    dispose(watch);
}

void watch_destroy(struct watch *watch)
{
    if (watch == NULL)
        return;
    watch->changed = NULL;
    if (watch->working)
        uv_cancel((uv_req_t *)&watch->work);
    uv_close((uv_handle_t *)&watch->timer, on_closed);
}
