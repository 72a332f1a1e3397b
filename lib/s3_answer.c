/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Answers of an S3 server (s3_answer.h). */
#include "lib/s3_answer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <expat.h>

#include "lib/s3_place.h"

#define DEPTH_MAX   16
#define TEXT_MAX    ((size_t)8 << 10)
#define ENTRIES_MAX 10000
#define SKEW_MIN    60 /* seconds: below, another reason is likelier */

/* ---- reading XML ----------------------------------------------------------------------------- */

/* Elements are known by their own name and that of the one around them. */
struct reader {
    XML_Parser parser;
    void (*element)(struct reader *reader, const char *parent, const char *name, char *text);
    void (*begin)(struct reader *reader, const char *name); /* may be NULL */
    void *arg;
    char names[DEPTH_MAX][32];
    int depth;
    char text[TEXT_MAX + 1];
    size_t text_len;
    const char *wrong; /* NULL: nothing */
};

static void stop(struct reader *reader, const char *why)
{
    if (reader->wrong == NULL)
        reader->wrong = why;
    XML_StopParser(reader->parser, XML_FALSE);
}

static void XMLCALL on_start(void *arg, const XML_Char *name, const XML_Char **attributes)
{
    struct reader *reader = arg;
    const char *colon = strrchr(name, ':');

    (void)attributes;
    if (reader->depth == DEPTH_MAX) {
        stop(reader, "too deep");
        return;
    }
    snprintf(reader->names[reader->depth], sizeof(reader->names[0]), "%s",
             colon != NULL ? colon + 1 : name);
    if (reader->begin != NULL)
        reader->begin(reader, reader->names[reader->depth]);
    reader->depth++;
    reader->text_len = 0;
}

static void XMLCALL on_text(void *arg, const XML_Char *text, int len)
{
    struct reader *reader = arg;

    if ((size_t)len > TEXT_MAX - reader->text_len) {
        stop(reader, "an element is too long");
        return;
    }
    memcpy(reader->text + reader->text_len, text, (size_t)len);
    reader->text_len += (size_t)len;
}

static void XMLCALL on_end(void *arg, const XML_Char *name)
{
    struct reader *reader = arg;

    (void)name;
    reader->depth--;
    reader->text[reader->text_len] = '\0';
    reader->element(reader, reader->depth > 0 ? reader->names[reader->depth - 1] : "",
                    reader->names[reader->depth], reader->text);
    reader->text_len = 0;
}

static void XMLCALL on_doctype(void *arg, const XML_Char *name, const XML_Char *system,
                               const XML_Char *public, int internal)
{
    (void)name;
    (void)system;
    (void)public;
    (void)internal;
    stop(arg, "a document type");
}

static int read_xml(struct reader *reader, const char *text, size_t len, struct error *err)
{
    enum XML_Status status;

    if (len > S3_ANSWER_MAX)
        return error_set(err, "the answer is longer than %zu bytes", S3_ANSWER_MAX);
    reader->parser = XML_ParserCreate("UTF-8");
    if (reader->parser == NULL)
        return error_set(err, "out of memory");
    XML_SetUserData(reader->parser, reader);
    XML_SetElementHandler(reader->parser, on_start, on_end);
    XML_SetCharacterDataHandler(reader->parser, on_text);
    XML_SetStartDoctypeDeclHandler(reader->parser, on_doctype);
    status = XML_Parse(reader->parser, text, (int)len, XML_TRUE);
    if (status != XML_STATUS_OK && reader->wrong == NULL)
        reader->wrong = XML_ErrorString(XML_GetErrorCode(reader->parser));
    XML_ParserFree(reader->parser);
    return reader->wrong == NULL
               ? 0
               : error_set(err, "the answer is no XML of an S3 server: %s", reader->wrong);
}

/* ---- listings -------------------------------------------------------------------------------- */

struct listing_reader {
    struct s3_listing *listing;
    bool is_listing, truncated;
};

static void begin_entry(struct reader *reader, const char *name)
{
    struct listing_reader *own = reader->arg;
    struct s3_listing *listing = own->listing;
    struct s3_entry *grown;

    if (reader->depth == 0)
        own->is_listing = strcmp(name, "ListBucketResult") == 0;
    if (reader->depth != 1 ||
        (strcmp(name, "Contents") != 0 && strcmp(name, "CommonPrefixes") != 0))
        return;
    grown = listing->count < ENTRIES_MAX
                ? reallocarray(listing->entries, listing->count + 1, sizeof(*grown))
                : NULL;
    if (grown == NULL) {
        stop(reader, "too many entries");
        return;
    }
    listing->entries = grown;
    listing->entries[listing->count++] = (struct s3_entry){.bytes = -1};
}

static void set_text(struct reader *reader, char **to, char *text, bool encoded)
{
    if (*to != NULL || (encoded && !s3_decode(text))) {
        stop(reader, "a key");
        return;
    }
    *to = strdup(text);
    if (*to == NULL)
        stop(reader, "out of memory");
}

static void set_bytes(struct reader *reader, struct s3_entry *entry, const char *text)
{
    char *end = NULL;

    errno = 0;
    entry->bytes = text[0] >= '0' && text[0] <= '9' ? strtoll(text, &end, 10) : -1;
    if (entry->bytes < 0 || *end != '\0' || errno != 0)
        stop(reader, "a size");
}

static void listing_element(struct reader *reader, const char *parent, const char *name, char *text)
{
    struct listing_reader *own = reader->arg;
    struct s3_listing *listing = own->listing;
    struct s3_entry *last = listing->count > 0 ? &listing->entries[listing->count - 1] : NULL;
    bool in_contents = strcmp(parent, "Contents") == 0 && last != NULL;

    if (reader->depth == 1 && strcmp(name, "IsTruncated") == 0)
        own->truncated = strcmp(text, "true") == 0;
    else if (reader->depth == 1 && strcmp(name, "NextContinuationToken") == 0)
        set_text(reader, &listing->next, text, false);
    else if (in_contents && strcmp(name, "Key") == 0)
        set_text(reader, &last->key, text, true);
    else if (in_contents && strcmp(name, "Size") == 0)
        set_bytes(reader, last, text);
    else if (in_contents && strcmp(name, "ETag") == 0 && strlen(text) < sizeof(last->etag))
        strcpy(last->etag, text);
    else if (strcmp(parent, "CommonPrefixes") == 0 && strcmp(name, "Prefix") == 0 && last != NULL)
        set_text(reader, &last->key, text, true);
    else if (strcmp(name, "Contents") == 0 && (last == NULL || last->bytes < 0))
        stop(reader, "a key without a size");
    if (reader->depth == 1 && last != NULL && last->key == NULL &&
        (strcmp(name, "Contents") == 0 || strcmp(name, "CommonPrefixes") == 0))
        stop(reader, "an entry without a key");
}

int s3_listing_parse(const char *text, size_t len, struct s3_listing *listing, struct error *err)
{
    struct listing_reader own = {.listing = listing};
    struct reader reader = {.element = listing_element, .begin = begin_entry, .arg = &own};
    int rc;

    *listing = (struct s3_listing){0};
    rc = read_xml(&reader, text, len, err);
    if (rc == 0 && !own.is_listing)
        rc = error_set(err, "the answer is no listing");
    if (rc == 0 && own.truncated != (listing->next != NULL))
        rc = error_set(err, "the listing has no token for its rest");
    if (rc != 0)
        s3_listing_clear(listing);
    return rc;
}

void s3_listing_clear(struct s3_listing *listing)
{
    for (size_t i = 0; i < listing->count; i++)
        free(listing->entries[i].key);
    free(listing->entries);
    free(listing->next);
    *listing = (struct s3_listing){0};
}

/* ---- uploads --------------------------------------------------------------------------------- */

static void upload_element(struct reader *reader, const char *parent, const char *name, char *text)
{
    if (strcmp(parent, "InitiateMultipartUploadResult") == 0 && strcmp(name, "UploadId") == 0)
        set_text(reader, reader->arg, text, false);
}

char *s3_upload_parse(const char *text, size_t len, struct error *err)
{
    char *id = NULL;
    struct reader reader = {.element = upload_element, .arg = &id};

    if (read_xml(&reader, text, len, err) == 0 && id == NULL)
        error_set(err, "the answer has no UploadId");
    if (reader.wrong != NULL) {
        free(id);
        id = NULL;
    }
    return id;
}

static void begin_upload(struct reader *reader, const char *name)
{
    struct s3_uploads *uploads = reader->arg;
    struct s3_upload *grown;

    if (reader->depth != 1 || strcmp(name, "Upload") != 0)
        return;
    grown = uploads->count < ENTRIES_MAX
                ? reallocarray(uploads->list, uploads->count + 1, sizeof(*grown))
                : NULL;
    if (grown == NULL) {
        stop(reader, "too many uploads");
        return;
    }
    uploads->list = grown;
    uploads->list[uploads->count++] = (struct s3_upload){0};
}

static void uploads_element(struct reader *reader, const char *parent, const char *name, char *text)
{
    struct s3_uploads *uploads = reader->arg;
    struct s3_upload *last = uploads->count > 0 ? &uploads->list[uploads->count - 1] : NULL;

    if (reader->depth == 1 && strcmp(name, "IsTruncated") == 0)
        uploads->more = strcmp(text, "true") == 0;
    else if (reader->depth == 1 && strcmp(name, "NextKeyMarker") == 0)
        set_text(reader, &uploads->key, text, true);
    else if (reader->depth == 1 && strcmp(name, "NextUploadIdMarker") == 0)
        set_text(reader, &uploads->id, text, false);
    else if (strcmp(parent, "Upload") == 0 && strcmp(name, "Key") == 0 && last != NULL)
        set_text(reader, &last->key, text, true);
    else if (strcmp(parent, "Upload") == 0 && strcmp(name, "UploadId") == 0 && last != NULL)
        set_text(reader, &last->id, text, false);
    else if (reader->depth == 1 && strcmp(name, "Upload") == 0 &&
             (last == NULL || last->key == NULL || last->id == NULL))
        stop(reader, "an upload without a key");
    else if (reader->depth == 0 && strcmp(name, "ListMultipartUploadsResult") != 0)
        stop(reader, "no listing of uploads");
}

int s3_uploads_parse(const char *text, size_t len, struct s3_uploads *uploads, struct error *err)
{
    struct reader reader = {.element = uploads_element, .begin = begin_upload, .arg = uploads};
    int rc;

    *uploads = (struct s3_uploads){0};
    rc = read_xml(&reader, text, len, err);
    if (rc != 0)
        s3_uploads_clear(uploads);
    return rc;
}

void s3_uploads_clear(struct s3_uploads *uploads)
{
    for (size_t i = 0; i < uploads->count; i++) {
        free(uploads->list[i].key);
        free(uploads->list[i].id);
    }
    free(uploads->list);
    free(uploads->key);
    free(uploads->id);
    *uploads = (struct s3_uploads){0};
}

/* ---- credentials ----------------------------------------------------------------------------- */

static void credentials_element(struct reader *reader, const char *parent, const char *name,
                                char *text)
{
    struct s3_credentials *credentials = reader->arg;

    if (strcmp(parent, "Credentials") != 0)
        return;
    if (strcmp(name, "AccessKeyId") == 0)
        set_text(reader, &credentials->key, text, false);
    else if (strcmp(name, "SecretAccessKey") == 0)
        set_text(reader, &credentials->secret, text, false);
    else if (strcmp(name, "SessionToken") == 0)
        set_text(reader, &credentials->token, text, false);
}

int s3_credentials_parse(const char *text, size_t len, struct s3_credentials *credentials,
                         struct error *err)
{
    struct reader reader = {.element = credentials_element, .arg = credentials};
    int rc;

    *credentials = (struct s3_credentials){0};
    rc = read_xml(&reader, text, len, err);
    if (rc == 0 &&
        (credentials->key == NULL || credentials->secret == NULL || credentials->token == NULL))
        rc = error_set(err, "the answer has no credentials");
    if (rc != 0)
        s3_credentials_clear(credentials);
    return rc;
}

void s3_credentials_clear(struct s3_credentials *credentials)
{
    if (credentials->secret != NULL)
        explicit_bzero(credentials->secret, strlen(credentials->secret));
    free(credentials->key);
    free(credentials->secret);
    free(credentials->token);
    *credentials = (struct s3_credentials){0};
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void fault_element(struct reader *reader, const char *parent, const char *name, char *text)
{
    struct s3_fault *fault = reader->arg;

    if (strcmp(parent, "Error") != 0)
        return;
    error_clean(text);
    if (strcmp(name, "Code") == 0)
        snprintf(fault->code, sizeof(fault->code), "%s", text);
    else if (strcmp(name, "Message") == 0)
        snprintf(fault->message, sizeof(fault->message), "%s", text);
    else if (strcmp(name, "Region") == 0)
        snprintf(fault->region, sizeof(fault->region), "%s", text);
}

void s3_fault_parse(const char *text, size_t len, struct s3_fault *fault)
{
    struct reader reader = {.element = fault_element, .arg = fault};

    *fault = (struct s3_fault){0};
    if (len > 0 && read_xml(&reader, text, len, NULL) != 0)
        *fault = (struct s3_fault){0};
    error_clean(fault->message); /* may have been cut within a character */
}

static bool has_code(const struct s3_fault *fault, const char *const *codes)
{
    for (; *codes != NULL; codes++)
        if (strcmp(fault->code, *codes) == 0)
            return true;
    return false;
}

bool s3_fault_passes(int status, const struct s3_fault *fault)
{
    static const char *const codes[] = {
        "RequestTimeout",      "SlowDown",         "InternalError",          "Throttling",
        "ThrottlingException", "OperationAborted", "ConcurrentModification", NULL};

    return status == 429 || status == 500 || status == 502 || status == 503 || status == 504 ||
           has_code(fault, codes);
}

bool s3_fault_is_absence(int status, const struct s3_fault *fault)
{
    return status == 404 && strcmp(fault->code, "NoSuchBucket") != 0 &&
           strcmp(fault->code, "NoSuchUpload") != 0;
}

bool s3_fault_is_clash(int status, const struct s3_fault *fault)
{
    return status == 412 ||
           (status == 409 && strcmp(fault->code, "ConditionalRequestConflict") == 0);
}

static int clock_line(const struct s3_asker *asker, struct error *err)
{
    return error_set(err, "%s: the clock of this machine is %" PRId64 " s %s that of %s: set it",
                     asker->what, asker->ahead < 0 ? -asker->ahead : asker->ahead,
                     asker->ahead < 0 ? "behind" : "ahead of", asker->host);
}

int s3_fault_line(const struct s3_asker *asker, int status, const struct s3_fault *fault,
                  struct error *err)
{
    static const char *const clocks[] = {"RequestTimeTooSkewed", "RequestExpired", NULL};
    static const char *const keys[] = {"SignatureDoesNotMatch", "InvalidAccessKeyId", NULL};
    static const char *const tokens[] = {"ExpiredToken", "InvalidToken", "TokenRefreshRequired",
                                         NULL};
    static const char *const regions[] = {"AuthorizationHeaderMalformed", "PermanentRedirect",
                                          "IllegalLocationConstraintException", NULL};
    bool skewed = asker->ahead >= SKEW_MIN || asker->ahead <= -SKEW_MIN;

    if (has_code(fault, clocks) || (skewed && (status == 400 || status == 403)))
        return clock_line(asker, err);
    if (has_code(fault, keys))
        return error_set(err, "%s: %s does not accept the keys of %s (%s, %s): check both keys",
                         asker->what, asker->host, error_value(asker->key).text, asker->source,
                         fault->code);
    if (has_code(fault, tokens))
        return error_set(err,
                         "%s: the session credentials (%s) have ended or are wrong: get new "
                         "ones",
                         asker->what, asker->source);
    if (has_code(fault, regions) || status == 301)
        return error_set(err, "%s: the bucket %s is not in region %s%s%s: set AWS_REGION",
                         asker->what, asker->bucket, asker->region,
                         fault->region[0] != '\0' ? " but in " : "", fault->region);
    if (strcmp(fault->code, "NoSuchBucket") == 0)
        return error_set(err, "%s: %s has no bucket %s", asker->what, asker->host, asker->bucket);
    if (status == 403)
        return error_set(err,
                         "%s: %s refuses the keys of %s (%s): they are wrong, or not allowed to",
                         asker->what, asker->host, error_value(asker->key).text, asker->source);
    return error_set(err, "%s: %s answers %d%s%s%s%s", asker->what, asker->host, status,
                     fault->code[0] != '\0' ? " " : "", fault->code,
                     fault->message[0] != '\0' ? ": " : "", fault->message);
}
