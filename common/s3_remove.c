/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is below a prefix of a bucket goes (s3.h). Others may have put there what they like. */
#include "common/s3.h"

#include <stdlib.h>
#include <string.h>

#include "common/crew.h"
#include "common/s3_private.h"

#define DOOMED_MAX       1000
#define UPLOAD_PAGES_MAX 100000

/* ---- objects --------------------------------------------------------------------------------- */

/* Keys that were listed, and are deleted together. */
struct doomed {
    struct s3 *s3;
    s3_stuck *stuck;
    void *arg; /* of stuck */
    char *keys[DOOMED_MAX];
    size_t count;
};

static int delete_one(struct crew *crew, int lane, size_t piece, void *arg, struct error *err)
{
    const struct doomed *doomed = arg;
    struct s3 *s3 = s3_lane(doomed->s3, lane);

    (void)crew;
    if (s3 == NULL)
        return error_set(err, "out of memory");
    if (s3_delete(s3, doomed->keys[piece], err) == S3_OK)
        return 0;
    return doomed->stuck != NULL ? doomed->stuck(s3, doomed->keys[piece], doomed->arg, err) : -1;
}

static int delete_all(struct doomed *doomed, struct error *err)
{
    int rc = crew_run(S3_LANES, doomed->count, delete_one, doomed, err);

    while (doomed->count > 0)
        free(doomed->keys[--doomed->count]);
    return rc;
}

static int doom(const struct s3_entry *entry, void *arg, struct error *err)
{
    struct doomed *doomed = arg;

    if (doomed->count == DOOMED_MAX && delete_all(doomed, err) != 0)
        return -1;
    doomed->keys[doomed->count] = strdup(entry->key);
    return doomed->keys[doomed->count++] != NULL ? 0 : error_set(err, "out of memory");
}

/* Deleting while a listing goes on is safe: a page begins behind the last key of the one before. */
enum s3_result s3_delete_below(struct s3 *s3, const char *prefix, s3_stuck *stuck, void *arg,
                               struct error *err)
{
    struct doomed doomed = {.s3 = s3, .stuck = stuck, .arg = arg};

    if (s3_list_all(s3, prefix, false, doom, &doomed, err) == S3_OK)
        return delete_all(&doomed, err) == 0 ? S3_OK : S3_FAILED;
    while (doomed.count > 0)
        free(doomed.keys[--doomed.count]);
    return S3_FAILED;
}

/* ---- uploads --------------------------------------------------------------------------------- */

enum s3_result s3_end_upload(struct s3 *s3, const char *key, const char *id, struct error *err)
{
    const struct s3_parameter parameters[] = {{"uploadId", id}, {0}};
    const struct s3_request request = {.what = "give up",
                                       .method = "DELETE",
                                       .key = key,
                                       .parameters = parameters,
                                       .most = S3_ANSWER_MAX};
    struct s3_reply reply;
    enum s3_result result = s3_ask(s3, &request, &reply, err);

    if (strcmp(reply.fault.code, "NoSuchUpload") == 0)
        result = S3_OK;
    s3_reply_clear(&reply);
    return result == S3_ABSENT ? S3_OK : result;
}

static bool has_marker(const struct s3_uploads *uploads)
{
    return uploads->key != NULL && uploads->key[0] != '\0';
}

/* Those behind the markers that *uploads has, if it has any; they become those of this page. */
static enum s3_result list_uploads(struct s3 *s3, const char *prefix, struct s3_uploads *uploads,
                                   struct error *err)
{
    struct s3_parameter parameters[] = {
        {"uploads", ""}, {"encoding-type", "url"}, {"prefix", prefix}, {0}, {0}, {0}};
    struct s3_reply reply;
    enum s3_result result;

    if (has_marker(uploads))
        parameters[3] = (struct s3_parameter){"key-marker", uploads->key};
    if (has_marker(uploads) && uploads->id != NULL && uploads->id[0] != '\0')
        parameters[4] = (struct s3_parameter){"upload-id-marker", uploads->id};
    result = s3_ask_list(s3, "list uploads of", parameters, &reply, err);
    s3_uploads_clear(uploads);
    if (result == S3_OK &&
        s3_uploads_parse(reply.text != NULL ? reply.text : "", reply.len, uploads, err) != 0)
        result = S3_FAILED;
    s3_reply_clear(&reply);
    return result;
}

/* Of one page. Keys that were not asked for are left. *some: there are others that stay. */
static enum s3_result end_uploads(struct s3 *s3, const char *prefix,
                                  const struct s3_uploads *uploads, s3_stuck *stuck, void *arg,
                                  bool *some, struct error *err)
{
    *some = false;
    for (size_t i = 0; i < uploads->count; i++) {
        const struct s3_upload *one = &uploads->list[i];

        if (strncmp(one->key, prefix, strlen(prefix)) != 0 ||
            s3_end_upload(s3, one->key, one->id, err) == S3_OK)
            continue;
        *some = true;
        if (stuck == NULL || stuck(s3, one->key, arg, err) != 0)
            return S3_FAILED;
    }
    return S3_OK;
}

/* Where a server does not say how to go on, the first page is that of those that are left: then
 * some that stay are the end. */
enum s3_result s3_give_up_below(struct s3 *s3, const char *prefix, s3_stuck *stuck, void *arg,
                                struct error *err)
{
    struct s3_uploads uploads = {0};
    enum s3_result result = S3_OK;
    bool more = true, some = false;

    for (int pages = 0; result == S3_OK && more && pages < UPLOAD_PAGES_MAX; pages++) {
        result = list_uploads(s3, prefix, &uploads, err);
        if (result == S3_OK)
            result = end_uploads(s3, prefix, &uploads, stuck, arg, &some, err);
        more = uploads.more && uploads.count > 0 && (has_marker(&uploads) || !some);
    }
    s3_uploads_clear(&uploads);
    return result;
}
