/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Objects of a bucket (s3.h). Files are put by s3_upload.c, and got by s3_download.c. What is below
 * a prefix goes by s3_remove.c. */
#include "common/s3.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/s3_private.h"
#include "common/stop.h"

#define PAGES_MAX   100000 /* of a listing; of a thousand keys each, but for strange servers */
#define ENTRIES_MAX 1000000

/* ---- reading --------------------------------------------------------------------------------- */

enum s3_result s3_get_text(struct s3 *s3, const char *key, size_t max, char **text, size_t *len,
                           char etag[S3_ETAG_SIZE], struct error *err)
{
    const struct s3_request request = {.what = "get", .method = "GET", .key = key, .most = max};
    struct s3_reply reply;
    enum s3_result result = s3_ask(s3, &request, &reply, err);

    *text = NULL;
    if (result == S3_OK && etag != NULL)
        memcpy(etag, reply.etag, S3_ETAG_SIZE);
    if (result == S3_OK && reply.text == NULL)
        reply.text = calloc(1, 1);
    if (result == S3_OK && reply.text == NULL) {
        error_set(err, "out of memory");
        return S3_FAILED;
    }
    if (result == S3_OK) {
        *text = reply.text;
        *len = reply.len;
    } else {
        s3_reply_clear(&reply);
    }
    return result;
}

enum s3_result s3_size(struct s3 *s3, const char *key, char etag[S3_ETAG_SIZE], int64_t *bytes,
                       struct error *err)
{
    const struct s3_request request = {.what = "look at", .method = "HEAD", .key = key};
    struct s3_reply reply;
    enum s3_result result = s3_ask(s3, &request, &reply, err);

    memcpy(etag, reply.etag, S3_ETAG_SIZE);
    *bytes = reply.bytes;
    s3_reply_clear(&reply);
    return result;
}

enum s3_result s3_head(struct s3 *s3, const char *key, char etag[S3_ETAG_SIZE], struct error *err)
{
    int64_t bytes;

    return s3_size(s3, key, etag, &bytes, err);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* An earlier try may have been the one that made the condition false. Then the object is ours. */
static bool is_ours(struct s3 *s3, const char *key, const char *text, size_t len,
                    char etag[S3_ETAG_SIZE])
{
    char *found = NULL;
    size_t found_len = 0;
    bool ours = s3_get_text(s3, key, len, &found, &found_len, etag, NULL) == S3_OK &&
                found_len == len && memcmp(found, text, len) == 0;

    free(found);
    return ours;
}

enum s3_result s3_put_text(struct s3 *s3, const char *key, const char *text, size_t len,
                           const struct s3_condition *condition, char etag[S3_ETAG_SIZE],
                           struct error *err)
{
    char line[S3_ETAG_SIZE + 16] = "If-None-Match: *", found[S3_ETAG_SIZE];
    struct s3_request request = {.what = "put",
                                 .method = "PUT",
                                 .key = key,
                                 .body = text,
                                 .body_len = len,
                                 .object = true,
                                 .most = S3_ANSWER_MAX};
    struct s3_reply reply;
    enum s3_result result;

    /* Without its quotes: RADOS gateways compare it as it is, and Amazon takes both. */
    if (condition != NULL && condition->etag != NULL)
        snprintf(line, sizeof(line), "If-Match: %.*s",
                 (int)strcspn(condition->etag + (condition->etag[0] == '"'), "\""),
                 condition->etag + (condition->etag[0] == '"'));
    if (condition != NULL && (condition->absent || condition->etag != NULL))
        request.headers[0] = line;
    result = s3_ask(s3, &request, &reply, err);
    memcpy(found, reply.etag, sizeof(found));
    if (result == S3_CLASH && reply.repeated && is_ours(s3, key, text, len, found))
        result = S3_OK;
    if (result == S3_OK && etag != NULL)
        memcpy(etag, found, sizeof(found));
    s3_reply_clear(&reply);
    return result;
}

enum s3_result s3_delete(struct s3 *s3, const char *key, struct error *err)
{
    const struct s3_request request = {
        .what = "delete", .method = "DELETE", .key = key, .most = S3_ANSWER_MAX};
    struct s3_reply reply;
    enum s3_result result = s3_ask(s3, &request, &reply, err);

    s3_reply_clear(&reply);
    return result == S3_ABSENT ? S3_OK : result;
}

/* ---- listing --------------------------------------------------------------------------------- */

enum s3_result s3_ask_list(struct s3 *s3, const char *what, const struct s3_parameter *parameters,
                           struct s3_reply *reply, struct error *err)
{
    const struct s3_request request = {
        .what = what, .method = "GET", .key = "", .parameters = parameters, .most = S3_ANSWER_MAX};
    enum s3_result result = s3_ask(s3, &request, reply, err);

    return result == S3_ABSENT ? S3_FAILED : result;
}

/* *next, the token of the page, becomes that of the following one; NULL at the end. */
static enum s3_result list_page(struct s3 *s3, const char *prefix, bool shallow, char **next,
                                struct s3_listing *listing, struct error *err)
{
    struct s3_parameter parameters[] = {
        {"list-type", "2"}, {"encoding-type", "url"}, {"prefix", prefix}, {0}, {0}, {0}};
    int count = 3;
    struct s3_reply reply;
    enum s3_result result;

    if (shallow)
        parameters[count++] = (struct s3_parameter){"delimiter", "/"};
    if (*next != NULL)
        parameters[count++] = (struct s3_parameter){"continuation-token", *next};
    result = s3_ask_list(s3, "list", parameters, &reply, err);
    free(*next);
    *next = NULL;
    if (result == S3_OK && s3_listing_parse(reply.text, reply.len, listing, err) != 0)
        result = S3_FAILED;
    s3_reply_clear(&reply);
    if (result == S3_OK) {
        *next = listing->next;
        listing->next = NULL;
    }
    return result;
}

static int check_length(int pages, size_t entries, size_t most, struct error *err)
{
    if (stop_asked())
        return error_set(err, "stopped, or out of time");
    if (pages >= PAGES_MAX)
        return error_set(err, "the listing of s3 has no end");
    return entries <= most ? 0 : error_set(err, "the listing of s3 has more than %zu keys", most);
}

/* Whoever lists in order to delete must not be given keys that were not asked for. */
static int hand_over(const struct s3_listing *listing, const char *prefix,
                     int (*each)(const struct s3_entry *entry, void *arg, struct error *err),
                     void *arg, struct error *err)
{
    for (size_t i = 0; i < listing->count; i++) {
        const struct s3_entry *entry = &listing->entries[i];

        if (strncmp(entry->key, prefix, strlen(prefix)) != 0)
            return error_set(err, "the server lists what was not asked for: %s",
                             error_path(entry->key).text);
        if (each(entry, arg, err) != 0)
            return -1;
    }
    return 0;
}

static enum s3_result list_pages(struct s3 *s3, const char *prefix, bool shallow, size_t most,
                                 int (*each)(const struct s3_entry *entry, void *arg,
                                             struct error *err),
                                 void *arg, struct error *err)
{
    enum s3_result result = S3_OK;
    size_t entries = 0;
    char *next = NULL;

    for (int pages = 0; result == S3_OK && (pages == 0 || next != NULL); pages++) {
        struct s3_listing listing = {0};

        result = list_page(s3, prefix, shallow, &next, &listing, err);
        entries += listing.count;
        if (result == S3_OK && (check_length(pages, entries, most, err) != 0 ||
                                hand_over(&listing, prefix, each, arg, err) != 0))
            result = S3_FAILED;
        s3_listing_clear(&listing);
    }
    free(next);
    return result;
}

enum s3_result s3_list(struct s3 *s3, const char *prefix, bool shallow,
                       int (*each)(const struct s3_entry *entry, void *arg, struct error *err),
                       void *arg, struct error *err)
{
    return list_pages(s3, prefix, shallow, ENTRIES_MAX, each, arg, err);
}

enum s3_result s3_list_all(struct s3 *s3, const char *prefix, bool shallow,
                           int (*each)(const struct s3_entry *entry, void *arg, struct error *err),
                           void *arg, struct error *err)
{
    return list_pages(s3, prefix, shallow, SIZE_MAX, each, arg, err);
}
