/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A snapshot that was flushed becomes a checkpoint (lib/promotion.h), before a world is started
 * that reads the newest one: when the job begins, and after a world whose workers have all
 * ended. In a thread, since the file system may take its time, or stand still. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <sodium.h>

#include "agent/leader/leader_internal.h"
#include "agent/leader/post.h"
#include "agent/leader/promote.h"
#include "common/log.h"
#include "common/checkpoints.h"
#include "common/entry.h"
#include "lib/promotion.h"

/* A run that was put back into the queue may start while what its predecessor had in memory is
 * still being written. */
#define LOOK_MS     1000
#define LOOKS_MAX   600
#define IDLE_MAX    30  /* looks in which nothing has become more: whoever has written is dead */
#define RECENT_SECS 120 /* by the file server's clock, which may be another one */

struct promoting {
    uv_work_t req;
    uv_timer_t timer;
    struct leader *leader;
    const char *path;
    uint32_t job, restarts;
    uint64_t seen; /* of what is being written */
    int looks, idle;
    bool waits;
    struct promotion_entry *entries;
    int count;
    struct error said; /* "": nothing has been done */
    bool failed;
};

/* ---- in the thread --------------------------------------------------------------------------- */

static int add_entry(struct promoting *promoting, const char *name)
{
    struct promotion_entry *grown = realloc(promoting->entries,
                                            ((size_t)promoting->count + 1) * sizeof(*grown));

    if (grown == NULL)
        return -1;
    promoting->entries = grown;
    grown += promoting->count++;
    memset(grown, 0, sizeof(*grown));
    snprintf(grown->name, sizeof(grown->name), "%s", name);
    return 0;
}

/* How many of the job were flushed: most often none, and then nothing else is looked at. -1: it
 * cannot be read. */
static int list(struct promoting *promoting, int dir)
{
    DIR *entries = entry_list(dir);
    const char *name;
    int flushed = 0, rc = entries != NULL ? 0 : -1;

    while (rc == 0 && (name = entry_next(entries)) != NULL) {
        bool ours = snapshot_is_flushed_name(name, promoting->job);

        if (strlen(name) >= SNAPSHOT_NAME_SIZE || (!ours && snapshot_checkpoint_number(name) < 0) ||
            checkpoints_is_stranger(dir, name))
            continue;
        flushed += ours;
        rc = add_entry(promoting, name);
    }
    if (entries != NULL)
        closedir(entries);
    return rc == 0 ? flushed : -1;
}

/* Before the rename: if this is the end of us, the link names a number that there is not, and
 * all that are there count. The other way round nobody would read what it should name. */
static int point_latest(int dir, const char *number)
{
    char link[64];
    int rc, reason;

    snprintf(link, sizeof(link), ".new-latest-%d", (int)getpid());
    unlinkat(dir, link, 0);
    rc = symlinkat(number, dir, link);
    if (rc != 0 && errno == EEXIST) { /* somebody else has taken the name */
        snprintf(link, sizeof(link), ".new-latest-%08" PRIx32, randombytes_random());
        rc = symlinkat(number, dir, link);
    }
    if (rc != 0)
        return -1;
    if (renameat(dir, link, dir, "latest") == 0)
        return 0;
    reason = errno;
    unlinkat(dir, link, 0);
    errno = reason;
    return checkpoints_is_stranger(dir, "latest") ? 0 : -1; /* nobody reads that one */
}

/* The next one that nobody has taken: strangers' do not count otherwise. */
static void choose_number(int dir, int64_t number, char text[32])
{
    do {
        snprintf(text, 32, "%08" PRId64, number++);
    } while (!checkpoints_is_free(dir, text));
}

static int give_number(int dir, const struct promotion *promotion, char number[32])
{
    choose_number(dir, promotion->number, number);
    if (point_latest(dir, number) != 0 || renameat(dir, promotion->chosen->name, dir, number) != 0)
        return -1;
    return fsync(dir) == 0 || errno == EINVAL ? 0 : -1;
}

static int carry_out(struct promoting *promoting, int dir)
{
    struct promotion promotion;
    struct error err = {""};
    char number[32];

    for (int i = 0; i < promoting->count; i++) {
        struct promotion_entry *entry = &promoting->entries[i];

        entry->complete = checkpoint_is_complete(dir, entry->name, &entry->key);
    }
    if (promotion_decide(promoting->job, checkpoints_latest(dir), promoting->entries,
                         promoting->count, &promotion, &err) != 0)
        return error_set(&promoting->said, "%s: %s", error_path(promoting->path).text, err.text);
    if (promotion.chosen != NULL) {
        const struct snapshot_key *key = &promotion.chosen->key;

        if (give_number(dir, &promotion, number) != 0)
            return error_set(&promoting->said, "%s: %s cannot become a checkpoint: %s",
                             error_path(promoting->path).text, promotion.chosen->name,
                             strerror(errno));
        error_set(
            &promoting->said,
            "goes on from a snapshot of run %" PRIu32 ", generation %d, step %" PRId64 ": %s/%s",
            key->restarts, key->generation, key->step, error_path(promoting->path).text, number);
    }
    for (int i = 0; i < promoting->count; i++)
        if (promoting->entries[i].remove)
            entry_remove(dir, promoting->entries[i].name);
    return 0;
}

/* A number that changes when something in the directory does; *newest is when something has last.
 * 0: it is not there, or of somebody else, who could let the job wait. */
static uint64_t content_of(int dir, const char *name, time_t *newest)
{
    struct stat st;
    int fd = checkpoints_open(dir, name, &st);
    uint64_t sum = 1;
    const char *file;
    DIR *list;

    if (fd < 0)
        return 0;
    list = entry_list(fd);
    if (st.st_mtime > *newest)
        *newest = st.st_mtime;
    while (list != NULL && (file = entry_next(list)) != NULL) {
        if (fstatat(fd, file, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        sum += (uint64_t)st.st_size + (uint64_t)st.st_mtim.tv_nsec + 1;
        *newest = st.st_mtime > *newest ? st.st_mtime : *newest;
    }
    if (list != NULL)
        closedir(list);
    close(fd);
    return sum;
}

/* Is something of an earlier run being written, as far as can be seen from here? The writer may
 * be on any node. */
static bool is_being_flushed(struct promoting *promoting, int dir)
{
    DIR *list = promoting->restarts > 0 ? entry_list(dir) : NULL;
    uint64_t seen = 0;
    time_t newest = 0;
    const char *name;

    while (list != NULL && (name = entry_next(list)) != NULL)
        if (snapshot_is_flushing_name(name, promoting->job, promoting->restarts))
            seen += content_of(dir, name, &newest);
    if (list != NULL)
        closedir(list);
    promoting->idle = seen == promoting->seen ? promoting->idle + 1 : 0;
    promoting->seen = seen;
    return seen != 0 && promoting->looks++ < LOOKS_MAX && promoting->idle < IDLE_MAX &&
           (promoting->looks > 1 || newest > time(NULL) - RECENT_SECS);
}

static void work(uv_work_t *req)
{
    struct promoting *promoting = req->data;
    int dir = open(promoting->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), flushed;

    promoting->waits = dir >= 0 && is_being_flushed(promoting, dir);
    if (dir < 0 || promoting->waits) {
        if (dir >= 0)
            close(dir);
        return; /* the workers will say so if they need it */
    }
    flushed = list(promoting, dir);
    if (flushed < 0)
        promoting->failed = error_set(&promoting->said, "cannot read %s: %s",
                                      error_path(promoting->path).text, strerror(errno)) != 0;
    else if (flushed > 0)
        promoting->failed = carry_out(promoting, dir) != 0;
    close(dir);
}

/* ---- in the loop ----------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *timer)
{
    struct promoting *promoting = timer->data;

    free(promoting->entries);
    free(promoting);
}

static void finish(struct promoting *promoting)
{
    struct leader *leader = promoting->leader;

    if (promoting->failed)
        log_error("job %" PRIu32 ": %s", promoting->job, promoting->said.text);
    else if (promoting->said.text[0] != '\0')
        log_info("job %" PRIu32 ": %s", promoting->job, promoting->said.text);
    uv_close((uv_handle_t *)&promoting->timer, on_closed);
    post_fact(leader, (struct change_fact){.kind = CHANGE_FACT_PROMOTED});
}

/* Is the world that waits for this still to begin? */
static bool is_waited_for(const struct leader *leader)
{
    enum change_phase phase = change_phase(leader->change);

    return phase == CHANGE_PROMOTING || phase == CHANGE_RESERVING;
}

static void on_look(uv_timer_t *timer);

static void done(uv_work_t *req, int status)
{
    struct promoting *promoting = req->data;

    (void)status;
    if (!promoting->waits || !is_waited_for(promoting->leader)) {
        finish(promoting);
        return;
    }
    if (promoting->looks == 1)
        log_info("job %" PRIu32 ": waits for a snapshot of an earlier run, which is being written "
                 "to %s",
                 promoting->job, error_path(promoting->path).text);
    uv_timer_start(&promoting->timer, on_look, LOOK_MS, 0);
}

static void on_look(uv_timer_t *timer)
{
    struct promoting *promoting = timer->data;

    if (is_waited_for(promoting->leader))
        uv_queue_work(promoting->leader->loop, &promoting->req, work, done);
    else
        finish(promoting);
}

void promote_begin(struct leader *leader)
{
    struct promoting *promoting = calloc(1, sizeof(*promoting));

    if (promoting == NULL) {
        post_fact(leader, (struct change_fact){.kind = CHANGE_FACT_PROMOTED});
        return;
    }
    promoting->leader = leader;
    promoting->path = leader->options->checkpoint_dir;
    promoting->job = leader->options->job;
    promoting->restarts = leader->options->restarts;
    promoting->req.data = promoting;
    promoting->timer.data = promoting;
    uv_timer_init(leader->loop, &promoting->timer);
    uv_queue_work(leader->loop, &promoting->req, work, done);
}
