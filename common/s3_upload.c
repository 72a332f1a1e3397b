/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that go to S3, in parts by several connections if they are large (s3.h). A part is in
 * memory while it is sent, so that it can be sent again as it was signed. */
#include "common/s3.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/crew.h"
#include "common/s3_private.h"
#include "common/stop.h"
#include "lib/s3_parts.h"

#define PART_LINE 320 /* bytes of the XML about one part */
#define NUMBER    16
#define CLEAN_UP  10 /* seconds, after a signal or the end of the time */

struct upload {
    struct s3 *s3;
    const char *key;
    int fd;
    int64_t bytes;
    struct s3_parts parts;
    void (*saw)(const void *data, size_t len, void *arg);
    void *arg;
    char *buffers[S3_LANES]; /* of one part each */
    char *id;
    char (*etags)[S3_ETAG_SIZE];
};

static int read_part(struct upload *upload, int index, char *buffer, size_t *len, struct error *err)
{
    int64_t at = upload->parts.part * index;

    *len = (size_t)s3_parts_size(&upload->parts, upload->bytes, index);
    for (size_t got = 0; got < *len;) {
        ssize_t n = pread(upload->fd, buffer + got, *len - got, at + (int64_t)got);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return error_set(err, "put %s: %s", error_path(upload->key).text,
                             n < 0 ? strerror(errno) : "the file became shorter meanwhile");
        got += (size_t)n;
    }
    upload->saw(buffer, *len, upload->arg);
    return 0;
}

static enum s3_result send_part(struct upload *upload, struct s3 *s3, int index, const void *body,
                                size_t len, struct error *err)
{
    char number[NUMBER];
    const struct s3_parameter parameters[] = {
        {"partNumber", number}, {"uploadId", upload->id}, {0}};
    const struct s3_request request = {.what = "put",
                                       .method = "PUT",
                                       .key = upload->key,
                                       .parameters = upload->id != NULL ? parameters : NULL,
                                       .body = body,
                                       .body_len = len,
                                       .most = S3_ANSWER_MAX,
                                       .object = upload->id == NULL};
    struct s3_reply reply;
    enum s3_result result;

    snprintf(number, sizeof(number), "%d", index + 1);
    result = s3_ask(s3, &request, &reply, err);
    if (upload->etags != NULL)
        memcpy(upload->etags[index], reply.etag, S3_ETAG_SIZE);
    s3_reply_clear(&reply);
    return result == S3_ABSENT ? S3_FAILED : result;
}

/* Parts are read in their order, and sent at one time. */
static int put_part(struct crew *crew, int lane, size_t piece, void *arg, struct error *err)
{
    struct upload *upload = arg;
    struct s3 *s3 = s3_lane(upload->s3, lane);
    char **buffer = &upload->buffers[lane];
    size_t len;

    if (*buffer == NULL)
        *buffer = malloc((size_t)upload->parts.part);
    if (s3 == NULL || *buffer == NULL)
        return error_set(err, "out of memory");
    if (!crew_turn(crew, piece) || read_part(upload, (int)piece, *buffer, &len, err) != 0)
        return -1;
    crew_pass(crew);
    return send_part(upload, s3, (int)piece, *buffer, len, err) == S3_OK ? 0 : -1;
}

static enum s3_result begin(struct upload *upload, struct error *err)
{
    const struct s3_parameter parameters[] = {{"uploads", ""}, {0}};
    const struct s3_request request = {.what = "put",
                                       .method = "POST",
                                       .key = upload->key,
                                       .parameters = parameters,
                                       .body = "",
                                       .most = S3_ANSWER_MAX,
                                       .object = true};
    struct s3_reply reply;
    enum s3_result result = s3_ask(upload->s3, &request, &reply, err);

    if (result == S3_OK) {
        upload->id = s3_upload_parse(reply.text != NULL ? reply.text : "", reply.len, err);
        upload->etags = calloc((size_t)upload->parts.count, sizeof(*upload->etags));
        if (upload->id == NULL || upload->etags == NULL)
            result = S3_FAILED;
    }
    s3_reply_clear(&reply);
    return result;
}

/* One that is not there any more is ended. */
/* What is left of an upload would cost its owner for ever. */
static void give_up(struct upload *upload)
{
    if (stop_asked())
        stop_watch(CLEAN_UP);
    s3_end_upload(upload->s3, upload->key, upload->id, NULL);
}

static char *describe_parts(const struct upload *upload)
{
    size_t size = 64 + (size_t)upload->parts.count * PART_LINE, at;
    char *text = malloc(size);

    if (text == NULL)
        return NULL;
    at = (size_t)snprintf(text, size, "<CompleteMultipartUpload>");
    for (int i = 0; i < upload->parts.count; i++)
        at += (size_t)snprintf(text + at, size - at,
                               "<Part><PartNumber>%d</PartNumber><ETag>%s</ETag></Part>", i + 1,
                               upload->etags[i]);
    snprintf(text + at, size - at, "</CompleteMultipartUpload>");
    return text;
}

/* A try whose answer was lost may have completed it: the upload is gone then, the object is there.
 * Keys of states are written once, so it is this one. */
static bool is_done(struct upload *upload, const struct s3_reply *reply)
{
    char etag[S3_ETAG_SIZE];

    return reply->repeated && strcmp(reply->fault.code, "NoSuchUpload") == 0 &&
           s3_head(upload->s3, upload->key, etag, NULL) == S3_OK;
}

static enum s3_result complete(struct upload *upload, struct error *err)
{
    const struct s3_parameter parameters[] = {{"uploadId", upload->id}, {0}};
    char *text = describe_parts(upload);
    const struct s3_request request = {.what = "put",
                                       .method = "POST",
                                       .key = upload->key,
                                       .parameters = parameters,
                                       .body = text,
                                       .body_len = text != NULL ? strlen(text) : 0,
                                       .most = S3_ANSWER_MAX,
                                       .late = true};
    struct s3_reply reply;
    enum s3_result result;

    if (text == NULL) {
        error_set(err, "out of memory");
        return S3_FAILED;
    }
    result = s3_ask(upload->s3, &request, &reply, err);
    if (result != S3_OK && is_done(upload, &reply))
        result = S3_OK;
    s3_reply_clear(&reply);
    free(text);
    return result;
}

static enum s3_result put_parts(struct upload *upload, struct error *err)
{
    enum s3_result result = begin(upload, err);

    if (result == S3_OK && crew_run(s3_parts_lanes(&upload->parts), (size_t)upload->parts.count,
                                    put_part, upload, err) != 0)
        result = S3_FAILED;
    if (result == S3_OK)
        result = complete(upload, err);
    if (result != S3_OK && upload->id != NULL)
        give_up(upload);
    return result;
}

static enum s3_result put_whole(struct upload *upload, struct error *err)
{
    char *buffer = upload->buffers[0] = malloc((size_t)upload->bytes + 1);
    size_t len;

    if (buffer == NULL) {
        error_set(err, "out of memory");
        return S3_FAILED;
    }
    if (read_part(upload, 0, buffer, &len, err) != 0)
        return S3_FAILED;
    return send_part(upload, upload->s3, 0, buffer, len, err);
}

enum s3_result s3_put_file(struct s3 *s3, const char *key, int fd, int64_t bytes,
                           void (*saw)(const void *data, size_t len, void *arg), void *arg,
                           struct error *err)
{
    struct upload upload = {.s3 = s3, .key = key, .fd = fd, .bytes = bytes, .saw = saw, .arg = arg};
    enum s3_result result;

    if (bytes > S3_BYTES_MAX) {
        error_set(err, "put %s: larger than S3 takes", error_path(key).text);
        return S3_FAILED;
    }
    upload.parts = s3_parts_plan(bytes);
    result = upload.parts.count == 1 ? put_whole(&upload, err) : put_parts(&upload, err);
    for (int i = 0; i < S3_LANES; i++)
        free(upload.buffers[i]);
    free(upload.id);
    free(upload.etags);
    return result;
}
