/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The two buffers of a run directory (buffer.h). */
#include "flush/buffer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/entry.h"

/* Some file systems keep the contents of a small file in its inode, and count no blocks for it. */
#define INLINE_MAX 4096

int buffer_open_file(const struct buffer *buffer, const struct snapshot_file *file,
                     struct error *err)
{
    struct stat st;
    int fd = entry_open_own_same(buffer->dir, file->name, S_IFREG, &st, err);

    if (fd < 0)
        return -1;
    if (st.st_size != file->bytes)
        error_set(err, "%s: it has %" PRId64 " bytes of %" PRId64, error_value(file->name).text,
                  (int64_t)st.st_size, file->bytes);
    else if (st.st_size > INLINE_MAX && (int64_t)st.st_blocks < (st.st_size - 1) / 512 + 1)
        error_set(err, "%s: there are holes in it", error_value(file->name).text);
    else
        return fd;
    close(fd);
    return -1;
}

static int check_files(const struct buffer *buffer, int64_t limit, struct error *err)
{
    const struct snapshot *snapshot = buffer->snapshot;

    if (limit > 0 && snapshot->bytes > limit)
        return error_set(err, "its files have %" PRId64 " bytes, and %" PRId64 " are allowed",
                         snapshot->bytes, limit);
    for (int i = 0; i < snapshot->count; i++) {
        int fd = buffer_open_file(buffer, &snapshot->files[i], err);

        if (fd < 0)
            return -1;
        close(fd);
    }
    return 0;
}

/* 1: the manifest has been read; 0: it is not there; -1 with err. */
static int read_manifest(struct buffer *buffer, struct error *err)
{
    struct stat st;
    size_t len = 0;
    int fd = entry_open_own_same(buffer->dir, SNAPSHOT_MANIFEST, S_IFREG, &st, err);
    char *text;

    if (fd < 0)
        return errno == ENOENT ? 0 : -1;
    buffer->written = st.st_mtim;
    text = entry_text(fd, SNAPSHOT_MANIFEST_MAX, &len, err);
    if (text != NULL)
        buffer->snapshot = snapshot_parse(text, len, err);
    free(text);
    close(fd);
    return buffer->snapshot != NULL ? 1 : error_prefix(err, SNAPSHOT_MANIFEST);
}

/* 1: the buffer is open; 0: it is not there; -1 with err. */
static int open_buffer(struct buffer *buffer, int parent, int64_t limit, struct error *err)
{
    const char name[] = {(char)('0' + buffer->index), '\0'};
    struct stat st;
    int rc;

    buffer->dir = entry_open_own_same(parent, name, S_IFDIR, &st, err);
    if (buffer->dir < 0)
        return errno == ENOENT ? 0 : -1;
    rc = read_manifest(buffer, err);
    return rc > 0 && check_files(buffer, limit, err) != 0 ? -1 : rc;
}

void buffer_add_reason(struct error *torn, int index, const char *reason)
{
    error_set(torn, "%s%ssnapshot/%d: %s", torn->text, torn->text[0] != '\0' ? "; " : "", index,
              reason);
}

static int newest_first(const void *a, const void *b)
{
    const struct buffer *one = a, *other = b;

    int order = snapshot_key_compare(&other->snapshot->key, &one->snapshot->key);

    /* The same if the program does not report its steps, or not any more. */
    if (order == 0)
        order = other->written.tv_sec != one->written.tv_sec
                    ? (other->written.tv_sec > one->written.tv_sec) -
                          (other->written.tv_sec < one->written.tv_sec)
                    : (other->written.tv_nsec > one->written.tv_nsec) -
                          (other->written.tv_nsec < one->written.tv_nsec);
    return order;
}

int buffers_open(int run_dir, int64_t limit, struct buffer buffers[BUFFERS], struct error *torn)
{
    struct error err = {""};
    struct stat st;
    int parent = entry_open_own_same(run_dir, "snapshot", S_IFDIR, &st, &err);
    int count = 0;

    if (parent < 0) {
        if (errno != ENOENT)
            *torn = err;
        return 0;
    }
    for (int i = 0; i < BUFFERS; i++) {
        struct buffer *buffer = &buffers[count];
        int rc;

        *buffer = (struct buffer){.index = i, .dir = -1};
        rc = open_buffer(buffer, parent, limit, &err);
        if (rc > 0) {
            count++;
            continue;
        }
        if (rc < 0)
            buffer_add_reason(torn, i, err.text);
        buffers_close(buffer, 1);
    }
    close(parent);
    qsort(buffers, (size_t)count, sizeof(*buffers), newest_first);
    return count;
}

void buffers_close(struct buffer *buffers, int count)
{
    for (int i = 0; i < count; i++) {
        snapshot_destroy(buffers[i].snapshot);
        if (buffers[i].dir >= 0)
            close(buffers[i].dir);
    }
}
