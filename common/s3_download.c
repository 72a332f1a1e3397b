/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Objects that come from S3, by several connections if they are large (s3.h). Each has a range of
 * the object in memory, until all before it were taken. What needs no order does not wait for
 * that. */
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
    const struct s3_sink *sink;
    char *buffers[S3_LANES];
};

struct range {
    const struct s3_sink *sink;
    int64_t at; /* where it begins */
    char *buffer;
    size_t len;
};

int s3_sink_feed(const struct s3_sink *sink, const void *data, size_t len, int64_t *at,
                 struct error *err)
{
    if ((sink->put != NULL && sink->put(data, len, *at, sink->arg, err) != 0) ||
        (sink->take != NULL && sink->take(data, len, sink->arg, err) != 0))
        return -1;
    *at += (int64_t)len;
    return 0;
}

static int keep(const void *data, size_t len, void *arg, struct error *err)
{
    struct range *range = arg;
    const struct s3_sink *sink = range->sink;

    if (sink->put != NULL &&
        sink->put(data, len, range->at + (int64_t)range->len, sink->arg, err) != 0)
        return -1;
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
        .offset = range->at,
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
    range = (struct range){
        .sink = download->sink, .at = download->parts.part * (int64_t)piece, .buffer = *buffer};
    if (get_part(download, s3, (int)piece, &range, err) != S3_OK || !crew_turn(crew, piece))
        return -1;
    rc = download->sink->take != NULL
             ? download->sink->take(range.buffer, range.len, download->sink->arg, err)
             : 0;
    if (rc != 0)
        error_prefix(err, "get %s", error_path(download->key).text);
    crew_pass(crew);
    return rc;
}

struct whole {
    const struct s3_sink *sink;
    int64_t at;
};

static int pass(const void *data, size_t len, void *arg, struct error *err)
{
    struct whole *whole = arg;

    return s3_sink_feed(whole->sink, data, len, &whole->at, err);
}

static enum s3_result get_whole(const struct download *download, struct error *err)
{
    struct whole whole = {.sink = download->sink};
    const struct s3_request request = {.what = "get",
                                       .method = "GET",
                                       .key = download->key,
                                       .take = pass,
                                       .arg = &whole,
                                       .bytes = download->bytes};
    struct s3_reply reply;
    enum s3_result result = s3_ask(download->s3, &request, &reply, err);

    s3_reply_clear(&reply);
    return result;
}

enum s3_result s3_get(struct s3 *s3, const char *key, int64_t bytes, const struct s3_sink *sink,
                      struct error *err)
{
    struct download download = {.s3 = s3, .key = key, .bytes = bytes, .sink = sink};
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
