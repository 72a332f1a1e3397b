/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writing snapshots (snapshot.h).
 *
 * There are two buffers, snapshot/0 and snapshot/1 below the node's run directory, which is in
 * memory. They are written in turn. A buffer is complete as long as its complete.json is there: the
 * file is removed first, and comes last, by rename. So whenever this process is killed, the buffer
 * that it does not write to is whole. slurm_elastic._snapshot does the same.
 *
 * libsodium is loaded by the first snapshot and never linked, as libpmix is: a program that keeps
 * no snapshots does not need it. */
#include "client/snapshot.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <sodium.h>

#include "common/memory.h"

#define FORMAT    1 /* as in lib/snapshot.c */
#define MANIFEST  "complete.json"
#define TEMPORARY ".complete.json"
#define DIGEST    32 /* bytes of the BLAKE2b of a file */
#define BLOCK     ((size_t)1 << 20)
#define SPARE     10 /* a tenth of the free memory is left to other programs */

static struct {
    __typeof__(sodium_init) *init;
    __typeof__(crypto_generichash_init) *begin;
    __typeof__(crypto_generichash_update) *update;
    __typeof__(crypto_generichash_final) *end;
} hash;

/* A snapshot that is being written. */
struct job {
    char snapshot[PATH_MAX]; /* the directory of the buffers */
    char checkpoint[PATH_MAX];
    char incarnation[32];
    int32_t generation;
    int64_t step;
    int count;
    size_t size; /* of all parts */
    struct {
        char name[ELASTIC_NAME_BYTES];
        const char *data;
        size_t size;
        uint8_t digest[DIGEST];
    } parts[ELASTIC_PARTS_MAX];
};

/* Of the process, since the process is one worker. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* of the monotonic clock */
    bool ready;             /* the condition and libsodium are */
    bool writing;
    int outcome; /* of the last snapshot */
    struct event_client_error why;
    int newest; /* the buffer that was completed last; -1: none by this process */
    char *copy; /* all parts, one behind the other; the next snapshot uses it again */
    size_t room;
} snapshots = {.lock = PTHREAD_MUTEX_INITIALIZER, .newest = -1};

static int fail(struct event_client_error *err, const char *what)
{
    event_client_fail(err, "no snapshot: %s: %s", what, strerror(errno));
    return ELASTIC_ERROR_SNAPSHOT;
}

/* ---- libsodium ------------------------------------------------------------------------------- */

static int load_hash(struct event_client_error *err)
{
    static const char *const names[] = {"libsodium.so.23", "libsodium.so.26"};
    void *library = NULL;

    for (size_t i = 0; library == NULL && i < sizeof(names) / sizeof(names[0]); i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (library != NULL) {
        hash.init = (__typeof__(hash.init))dlsym(library, "sodium_init");
        hash.begin = (__typeof__(hash.begin))dlsym(library, "crypto_generichash_init");
        hash.update = (__typeof__(hash.update))dlsym(library, "crypto_generichash_update");
        hash.end = (__typeof__(hash.end))dlsym(library, "crypto_generichash_final");
        if (hash.init != NULL && hash.begin != NULL && hash.update != NULL && hash.end != NULL &&
            hash.init() >= 0)
            return 0;
    }
    event_client_fail(err, "no snapshot: %s cannot be loaded; install libsodium", names[0]);
    return ELASTIC_ERROR_SNAPSHOT;
}

/* With the lock held. */
static int prepare(struct event_client_error *err)
{
    pthread_condattr_t attributes;

    if (snapshots.ready)
        return 0;
    if (load_hash(err) != 0)
        return ELASTIC_ERROR_SNAPSHOT;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&snapshots.changed, &attributes);
    pthread_condattr_destroy(&attributes);
    snapshots.ready = true;
    return 0;
}

/* ---- a buffer -------------------------------------------------------------------------------- */

static int write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t wrote = write(fd, data, len);

        if (wrote < 0 && errno != EINTR)
            return -1;
        data += wrote > 0 ? wrote : 0;
        len -= wrote > 0 ? (size_t)wrote : 0;
    }
    return 0;
}

static int create(int dir, const char *name)
{
    return openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* Remove all files in the buffer, beginning with the manifest. */
static void empty(int dir)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;

    unlinkat(dir, MANIFEST, 0);
    while (list != NULL && (entry = readdir(list)) != NULL)
        unlinkat(dir, entry->d_name, 0); /* fails for "." and ".." */
    if (list != NULL)
        closedir(list);
    else if (fd >= 0)
        close(fd);
}

/* An empty directory; made if it is missing. -1 with errno. */
static int open_empty(int parent, const char *name)
{
    int dir;

    if (mkdirat(parent, name, 0700) != 0 && errno != EEXIST)
        return -1;
    dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir >= 0)
        empty(dir);
    return dir;
}

/* The digest covers the bytes that are written. */
static int write_part(const struct job *job, int fd, int index, uint8_t digest[DIGEST])
{
    const char *data = job->parts[index].data;
    size_t left = job->parts[index].size;
    crypto_generichash_state state;

    hash.begin(&state, NULL, 0, DIGEST);
    if (left > 0) {
        errno = posix_fallocate(fd, 0, (off_t)left); /* a full file system says so here */
        if (errno != 0)
            return -1;
    }
    while (left > 0) {
        size_t len = left < BLOCK ? left : BLOCK;

        hash.update(&state, (const unsigned char *)data, len);
        if (write_all(fd, data, len) != 0)
            return -1;
        data += len;
        left -= len;
    }
    hash.end(&state, digest, DIGEST);
    return 0;
}

static int write_parts(struct job *job, int dir, struct event_client_error *err)
{
    for (int i = 0; i < job->count; i++) {
        int fd = create(dir, job->parts[i].name);
        int rc = fd >= 0 ? write_part(job, fd, i, job->parts[i].digest) : -1;

        if (rc != 0)
            fail(err, job->parts[i].name);
        if (fd >= 0)
            close(fd);
        if (rc != 0)
            return -1;
    }
    return 0;
}

/* Write a path as a JSON string. */
static void print_path(FILE *file, const char *path)
{
    for (; *path != '\0'; path++) {
        if (*path == '"' || *path == '\\')
            fprintf(file, "\\%c", *path);
        else if ((unsigned char)*path < ' ')
            fprintf(file, "\\u%04x", (unsigned)*path);
        else
            fputc(*path, file);
    }
}

static void print_manifest(FILE *file, const struct job *job)
{
    fprintf(file,
            "{\"format\": %d, \"incarnation\": \"%s\", \"generation\": %" PRId32
            ", \"step\": %" PRId64 ", \"checkpoint\": \"",
            FORMAT, job->incarnation, job->generation, job->step);
    print_path(file, job->checkpoint);
    fputs("\", \"files\": {", file);
    for (int i = 0; i < job->count; i++) {
        fprintf(file, "%s\"%s\": {\"bytes\": %zu, \"blake2b\": \"", i > 0 ? ", " : "",
                job->parts[i].name, job->parts[i].size);
        for (int k = 0; k < DIGEST; k++)
            fprintf(file, "%02x", job->parts[i].digest[k]);
        fputs("\"}", file);
    }
    fputs("}}\n", file);
}

static int write_manifest(const struct job *job, int dir, struct event_client_error *err)
{
    int fd = create(dir, TEMPORARY);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    bool failed;

    if (file == NULL) {
        fail(err, MANIFEST);
        if (fd >= 0)
            close(fd);
        return -1;
    }
    print_manifest(file, job);
    failed = ferror(file) != 0;
    if (fclose(file) == 0 && !failed && renameat(dir, TEMPORARY, dir, MANIFEST) == 0)
        return 0;
    return fail(err, MANIFEST);
}

/* ---- which one ------------------------------------------------------------------------------- */

/* When the buffer was completed; -1: it is not complete. */
static int64_t completed(int parent, int index)
{
    char path[sizeof("0/" MANIFEST)];
    struct stat st;

    snprintf(path, sizeof(path), "%d/" MANIFEST, index & 1);
    if (fstatat(parent, path, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return -1;
    return (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
}

/* Choose a buffer, but never the newest snapshot that there is, whoever has written it. */
static int choose(int parent)
{
    if (snapshots.newest >= 0)
        return 1 - snapshots.newest;
    return completed(parent, 0) <= completed(parent, 1) ? 0 : 1;
}

static bool fits(size_t size)
{
    uint64_t left = memory_available("");

    return size <= left - left / SPARE;
}

static int too_large(size_t size, struct event_client_error *err)
{
    event_client_fail(err, "no snapshot: %zu bytes do not fit into the memory that is left", size);
    return ELASTIC_ERROR_SNAPSHOT;
}

static int fill(struct job *job, int dir, struct event_client_error *err)
{
    if (!fits(job->size))
        return too_large(job->size, err);
    return write_parts(job, dir, err) != 0 || write_manifest(job, dir, err) != 0
               ? ELASTIC_ERROR_SNAPSHOT
               : 0;
}

static int write_snapshot(struct job *job, struct event_client_error *err)
{
    int parent, dir, index, rc;

    if (mkdir(job->snapshot, 0700) != 0 && errno != EEXIST)
        return fail(err, job->snapshot);
    parent = open(job->snapshot, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (parent < 0)
        return fail(err, job->snapshot);
    index = choose(parent);
    dir = open_empty(parent, index == 0 ? "0" : "1");
    rc = dir >= 0 ? fill(job, dir, err) : fail(err, job->snapshot);
    if (rc == 0)
        snapshots.newest = index;
    else if (dir >= 0)
        empty(dir); /* other programs need its memory more */
    if (dir >= 0)
        close(dir);
    close(parent);
    return rc;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void *write_in_thread(void *arg)
{
    struct event_client_error err = {""};
    struct job *job = arg;
    int rc = write_snapshot(job, &err);

    free(job);
    pthread_mutex_lock(&snapshots.lock);
    snapshots.outcome = rc;
    snapshots.why = err;
    snapshots.writing = false;
    pthread_cond_broadcast(&snapshots.changed);
    pthread_mutex_unlock(&snapshots.lock);
    return NULL;
}

/* Signals are for the program's own threads. */
static int start(struct job *job, struct event_client_error *err)
{
    sigset_t all, before;
    pthread_t thread;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    errno = pthread_create(&thread, NULL, write_in_thread, job);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (errno != 0)
        return fail(err, "a thread cannot be started");
    pthread_detach(thread);
    return 0;
}

/* ---- what is asked for ----------------------------------------------------------------------- */

static bool name_ok(const char *name)
{
    size_t len = name != NULL ? strnlen(name, ELASTIC_NAME_BYTES) : 0;

    if (len < 1 || len >= ELASTIC_NAME_BYTES || name[0] == '.' || strcmp(name, MANIFEST) == 0)
        return false;
    for (const char *at = name; *at != '\0'; at++)
        if (*at <= ' ' || *at > '~' || strchr("\"\\/", *at) != NULL)
            return false;
    return true;
}

static int bad_argument(struct event_client_error *err, const char *text)
{
    event_client_fail(err, "no snapshot: %s", text);
    return ELASTIC_ERROR_ARGUMENT;
}

static int check_parts(const struct elastic_part *parts, int count, struct event_client_error *err)
{
    if (parts == NULL || count < 1 || count > ELASTIC_PARTS_MAX)
        return bad_argument(err, "it must have 1 to 64 parts");
    for (int i = 0; i < count; i++) {
        if (!name_ok(parts[i].name))
            return bad_argument(err, "the name of a part has 1 to 127 printable ASCII characters, "
                                     "no blank, '/', '\"' or '\\', and does not begin with '.'");
        if (parts[i].size > 0 && parts[i].data == NULL)
            return bad_argument(err, "a part has no data");
        for (int k = 0; k < i; k++)
            if (strcmp(parts[i].name, parts[k].name) == 0)
                return bad_argument(err, "two parts have the same name");
    }
    return 0;
}

/* Directories of the present moment: a job that runs later has others. */
static int describe(struct job *job, const struct snapshot_place *place,
                    struct event_client_error *err)
{
    char here[PATH_MAX] = "";
    const char *between = "/";

    if (place->checkpoint[0] == '/')
        between = "";
    else if (getcwd(here, sizeof(here)) == NULL)
        return fail(err, "the working directory");
    job->generation = place->generation;
    job->step = place->step;
    snprintf(job->incarnation, sizeof(job->incarnation), "%s", place->incarnation);
    if (snprintf(job->snapshot, sizeof(job->snapshot), "%s/snapshot", place->run_dir) < PATH_MAX &&
        snprintf(job->checkpoint, sizeof(job->checkpoint), "%s%s%s", here, between,
                 place->checkpoint) < PATH_MAX)
        return 0;
    errno = ENAMETOOLONG;
    return fail(err, place->checkpoint);
}

static void add_parts(struct job *job, const struct elastic_part *parts, int count)
{
    job->count = count;
    for (int i = 0; i < count; i++) {
        snprintf(job->parts[i].name, sizeof(job->parts[i].name), "%s", parts[i].name);
        job->parts[i].data = parts[i].data;
        job->parts[i].size = parts[i].size;
        job->size += parts[i].size;
    }
}

/* With the lock held. */
static int make_room(size_t size, struct event_client_error *err)
{
    char *larger;

    if (size <= snapshots.room)
        return 0;
    if (!fits(size - snapshots.room))
        return too_large(size, err);
    free(snapshots.copy);
    larger = malloc(size);
    snapshots.copy = larger;
    snapshots.room = larger != NULL ? size : 0;
    return larger != NULL ? 0 : too_large(size, err);
}

/* With the lock held. */
static int copy_parts(struct job *job, struct event_client_error *err)
{
    char *at;
    int rc = make_room(job->size, err);

    if (rc != 0)
        return rc;
    at = snapshots.copy;
    for (int i = 0; i < job->count; i++) {
        if (job->parts[i].size == 0)
            continue;
        memcpy(at, job->parts[i].data, job->parts[i].size);
        job->parts[i].data = at;
        at += job->parts[i].size;
    }
    return 0;
}

/* With the lock held. */
static int begin(const struct snapshot_place *place, const struct elastic_part *parts, int count,
                 int flags, struct event_client_error *err)
{
    struct job *job;
    int rc;

    if (snapshots.writing)
        return ELASTIC_PENDING;
    rc = prepare(err);
    if (rc != 0)
        return rc;
    job = calloc(1, sizeof(*job));
    if (job == NULL)
        return fail(err, "it cannot be begun");
    add_parts(job, parts, count);
    rc = describe(job, place, err);
    if (rc == 0 && (flags & ELASTIC_IN_PLACE) == 0)
        rc = copy_parts(job, err);
    if (rc == 0)
        rc = start(job, err);
    if (rc == 0)
        snapshots.writing = true; /* the thread takes the lock before it clears this */
    else
        free(job);
    return rc;
}

int snapshot_client_keep(const struct snapshot_place *place, const struct elastic_part *parts,
                         int count, int flags, struct event_client_error *err)
{
    int rc = check_parts(parts, count, err);

    if (rc == 0 && (flags & ~ELASTIC_IN_PLACE) != 0)
        rc = bad_argument(err, "flags must be 0 or ELASTIC_IN_PLACE");
    if (rc != 0)
        return rc;
    pthread_mutex_lock(&snapshots.lock);
    rc = begin(place, parts, count, flags, err);
    pthread_mutex_unlock(&snapshots.lock);
    return rc;
}

static struct timespec after_ms(int ms)
{
    struct timespec at = {0};

    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += ms / 1000;
    at.tv_nsec += (long)(ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

int snapshot_client_wait(int timeout_ms, struct event_client_error *err)
{
    struct timespec end = after_ms(timeout_ms > 0 ? timeout_ms : 0);
    int rc = 0;

    pthread_mutex_lock(&snapshots.lock);
    while (snapshots.writing && rc != ETIMEDOUT)
        rc = timeout_ms < 0 ? pthread_cond_wait(&snapshots.changed, &snapshots.lock)
                            : pthread_cond_timedwait(&snapshots.changed, &snapshots.lock, &end);
    rc = snapshots.writing ? ELASTIC_PENDING : snapshots.outcome;
    if (rc < 0)
        *err = snapshots.why;
    pthread_mutex_unlock(&snapshots.lock);
    return rc;
}

void snapshot_client_close(void)
{
    struct event_client_error err;

    snapshot_client_wait(-1, &err);
    pthread_mutex_lock(&snapshots.lock);
    free(snapshots.copy);
    snapshots.copy = NULL;
    snapshots.room = 0;
    snapshots.outcome = 0;
    snapshots.newest = -1;
    pthread_mutex_unlock(&snapshots.lock);
}
