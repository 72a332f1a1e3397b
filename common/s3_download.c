/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Objects that come from S3, by several connections if they are large (s3.h). Each has a range of
 * the object in memory, until all before it were taken. */
#include "common/s3.h"

#include <stdlib.h>
#include <string.h>

#include "common/crew.h"
#include "common/s3_private.h"

struct download {
    struct s3 *s3;
    const char *key;
    char etag[S3_ETAG_SIZE];
    int64_t bytes;
    struct s3_parts parts;
    int (*take)(const void *data, size_t len, void *arg, struct error *err);
    void *arg;
    char *buffers[S3_LANES];
};

struct range {
    char *buffer;
    size_t len;
};

static int keep(const void *data, size_t len, void *arg, struct error *err)
{
    struct range *range = arg;

    (void)err;
    memcpy(range->buffer + range->len, data, len);
    range->len += len;
    return 0;
}

static enum s3_result get_part(struct download *download, struct s3 *s3, int index,
                               struct range *range, struct error *err)
{
    const struct s3_request request = {
        .what = "get",
        .method = "GET",
        .key = download->key,
        .take = keep,
        .arg = range,
        .bytes = s3_parts_size(&download->parts, download->bytes, index),
        .version = download->etag,
        .offset = download->parts.part * index,
    };
    struct s3_reply reply;
    enum s3_result result = s3_ask(s3, &request, &reply, err);

    s3_reply_clear(&reply);
    return result;
}

static int get_one(struct crew *crew, int lane, size_t piece, void *arg, struct error *err)
{
    struct download *download = arg;
    struct s3 *s3 = s3_lane(download->s3, lane);
    char **buffer = &download->buffers[lane];
    struct range range;
    int rc;

    if (*buffer == NULL)
        *buffer = malloc((size_t)download->parts.part);
    if (s3 == NULL || *buffer == NULL)
        return error_set(err, "out of memory");
    range = (struct range){.buffer = *buffer};
    if (get_part(download, s3, (int)piece, &range, err) != S3_OK || !crew_turn(crew, piece))
        return -1;
    rc = download->take(range.buffer, range.len, download->arg, err);
    if (rc != 0)
        error_prefix(err, "get %s", error_path(download->key).text);
    crew_pass(crew);
    return rc;
}

static enum s3_result get_whole(const struct download *download, struct error *err)
{
    const struct s3_request request = {.what = "get",
                                       .method = "GET",
                                       .key = download->key,
                                       .take = download->take,
                                       .arg = download->arg,
                                       .bytes = download->bytes};
    struct s3_reply reply;
    enum s3_result result = s3_ask(download->s3, &request, &reply, err);

    s3_reply_clear(&reply);
    return result;
}

enum s3_result s3_get(struct s3 *s3, const char *key, int64_t bytes,
                      int (*take)(const void *data, size_t len, void *arg, struct error *err),
                      void *arg, struct error *err)
{
    struct download download = {.s3 = s3, .key = key, .bytes = bytes, .take = take, .arg = arg};
    enum s3_result result;
    int rc;

    download.parts = s3_parts_plan(bytes);
    if (download.parts.count == 1)
        return get_whole(&download, err);
    result = s3_head(s3, key, download.etag, err);
    if (result != S3_OK)
        return result;
    if (download.etag[0] == '\0') /* ranges could be of several versions */
        return get_whole(&download, err);
    rc = crew_run(s3_parts_lanes(&download.parts), (size_t)download.parts.count, get_one, &download,
                  err);
    for (int i = 0; i < S3_LANES; i++)
        free(download.buffers[i]);
    return rc == 0 ? S3_OK : S3_FAILED;
}
