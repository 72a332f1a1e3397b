/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One request to an S3 server, and its repetition (s3_private.h). */
#include "common/s3_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <curl/curl.h>
#include <sodium.h>

#include "common/stop.h"
#include "lib/retry.h"

#define PAUSE_FIRST 0.2
#define PAUSE_MAX   8.0
#define HOST_SIZE   256
#define HEX_SIZE    (2 * crypto_hash_sha256_BYTES + 1)
#define RANGE_SIZE  64
#define SLOWEST     (64 * 1024L)  /* bytes a second, of a body with a time limit */
#define BUFFER      (256 * 1024L) /* of a connection with large objects */

struct s3 {
    CURL *easy;
    const struct s3_account *account;
    char bucket[S3_BUCKET_MAX + 1];
    char host[HOST_SIZE];
    char scope[128]; /* for CURLOPT_AWS_SIGV4 */
    bool gives;      /* what is put to the owner of the bucket */
    bool sts;        /* the service that gives credentials, and no bucket */
    struct s3_limits limits;
    struct s3 *lanes[S3_LANES]; /* of lane 0: the others, as far as they were needed */
};

/* One try. */
struct attempt {
    struct s3 *s3;
    const struct s3_request *request;
    struct s3_reply *reply;
    struct error *err;
    int64_t *got; /* bytes that take() has had, in all tries */
    int64_t from; /* of them, before this try */
    size_t sent;  /* bytes of the body */
    bool refused; /* by take(), or the answer is too long: err says it */
    double ahead; /* of the server's clock */
};

/* ---- what libcurl calls ---------------------------------------------------------------------- */

static int keep_answer(struct attempt *attempt, const void *data, size_t len, size_t most)
{
    struct s3_reply *reply = attempt->reply;
    char *grown;

    if (len > most - reply->len) {
        error_set(attempt->err, "the answer is longer than %zu bytes", most);
        return -1;
    }
    grown = realloc(reply->text, reply->len + len + 1);
    if (grown == NULL) {
        error_set(attempt->err, "out of memory");
        return -1;
    }
    memcpy(grown + reply->len, data, len);
    reply->text = grown;
    reply->len += len;
    grown[reply->len] = '\0';
    return 0;
}

static int take_content(struct attempt *attempt, const void *data, size_t len)
{
    const struct s3_request *request = attempt->request;

    if ((int64_t)len > request->bytes - *attempt->got)
        return error_set(attempt->err, "it has more than %lld bytes", (long long)request->bytes);
    *attempt->got += (int64_t)len;
    return request->take(data, len, request->arg, attempt->err);
}

static bool is_range(const struct attempt *attempt)
{
    return attempt->from > 0 || attempt->request->version != NULL;
}

static size_t on_data(char *data, size_t size, size_t count, void *arg)
{
    struct attempt *attempt = arg;
    const struct s3_request *request = attempt->request;
    size_t len = size * count;
    long status = 0;
    int rc;

    curl_easy_getinfo(attempt->s3->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 200 && status < 300 && request->take != NULL)
        rc = status == (is_range(attempt) ? 206 : status)
                 ? take_content(attempt, data, len)
                 : error_set(attempt->err, "the server does not go on where it was cut");
    else
        rc = keep_answer(attempt, data, len,
                         status >= 200 && status < 300 ? request->most : S3_ANSWER_MAX);
    attempt->refused = rc != 0;
    return rc == 0 ? len : 0;
}

static size_t on_body(char *to, size_t size, size_t count, void *arg)
{
    struct attempt *attempt = arg;
    size_t room = size * count, left = attempt->request->body_len - attempt->sent;

    if (left > room)
        left = room;
    if (left > 0)
        memcpy(to, (const char *)attempt->request->body + attempt->sent, left);
    attempt->sent += left;
    return left;
}

/* libcurl begins anew on another connection. */
static int on_seek(void *arg, curl_off_t offset, int origin)
{
    struct attempt *attempt = arg;

    if (origin != SEEK_SET || offset < 0 || offset > (curl_off_t)attempt->request->body_len)
        return CURL_SEEKFUNC_FAIL;
    attempt->sent = (size_t)offset;
    return CURL_SEEKFUNC_OK;
}

static int on_progress(void *arg, curl_off_t down_all, curl_off_t down, curl_off_t up_all,
                       curl_off_t up)
{
    (void)arg;
    (void)down_all;
    (void)down;
    (void)up_all;
    (void)up;
    return stop_asked() != 0;
}

/* ---- one try --------------------------------------------------------------------------------- */

static int add_header(struct curl_slist **list, const char *name, const char *value)
{
    struct curl_slist *grown;
    char *line = NULL;

    if (asprintf(&line, "%s: %s", name, value) < 0)
        return -1;
    grown = curl_slist_append(*list, line);
    free(line);
    if (grown == NULL)
        return -1;
    *list = grown;
    return 0;
}

/* What was got is of one version of the object: the rest has to be of the same. */
static int add_range(struct curl_slist **list, const struct attempt *attempt)
{
    const struct s3_request *request = attempt->request;
    const char *version = request->version != NULL ? request->version : attempt->reply->etag;
    char range[RANGE_SIZE];

    if (!is_range(attempt))
        return 0;
    snprintf(range, sizeof(range), "bytes=%lld-%lld", (long long)(request->offset + attempt->from),
             (long long)(request->offset + request->bytes - 1));
    return add_header(list, "Range", range) != 0 || add_header(list, "If-Match", version) != 0 ? -1
                                                                                               : 0;
}

/* NULL when out of memory. */
static struct curl_slist *make_headers(const struct attempt *attempt)
{
    const struct s3_request *request = attempt->request;
    const char *token = attempt->s3->account->token;
    unsigned char hash[crypto_hash_sha256_BYTES];
    struct curl_slist *list = NULL;
    char hex[HEX_SIZE];
    int rc;

    crypto_hash_sha256(hash, request->body != NULL ? request->body : (const void *)"",
                       request->body_len);
    sodium_bin2hex(hex, sizeof(hex), hash, sizeof(hash));
    rc = add_header(&list, "x-amz-content-sha256", hex);
    if (rc == 0 && token != NULL)
        rc = add_header(&list, "x-amz-security-token", token);
    for (int i = 0; rc == 0 && i < S3_HEADERS_MAX && request->headers[i] != NULL; i++) {
        struct curl_slist *grown = curl_slist_append(list, request->headers[i]);

        rc = grown != NULL ? 0 : -1;
        list = grown != NULL ? grown : list;
    }
    if (rc == 0 && request->object && attempt->s3->gives)
        rc = add_header(&list, "x-amz-acl", "bucket-owner-full-control");
    if (rc == 0)
        rc = add_range(&list, attempt);
    if (rc == 0)
        return list;
    curl_slist_free_all(list);
    return NULL;
}

static void set_body(CURL *easy, struct attempt *attempt)
{
    const struct s3_request *request = attempt->request;

    if (strcmp(request->method, "HEAD") == 0)
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    if (request->body == NULL) {
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
        return;
    }
    curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
    curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)request->body_len);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_READDATA, attempt);
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_seek);
    curl_easy_setopt(easy, CURLOPT_SEEKDATA, attempt);
}

/* Seconds for the whole try; 0: there is no limit. What goes into a file takes its time, and so
 * does an answer that comes late. */
static long whole_limit(const struct s3 *s3, const struct s3_request *request)
{
    if (request->take != NULL || request->late || s3->limits.answer == 0)
        return 0;
    return s3->limits.answer + (long)(request->body_len / SLOWEST);
}

static void set_request(struct attempt *attempt, const char *url, struct curl_slist *headers)
{
    const struct s3 *s3 = attempt->s3;
    const char *authorities = getenv("AWS_CA_BUNDLE"), *key = attempt->request->key;
    CURL *easy = s3->easy;

    curl_easy_reset(easy); /* connections stay */
    curl_easy_setopt(easy, CURLOPT_URL, url);
    /* Else libcurl would resolve a ".." that a server has in a listing. Since 8 libcurl refuses to
     * sign such a request; so no other one is marked. */
    if (key != NULL && s3_key_has_dots(key))
        curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_AWS_SIGV4, s3->scope);
    curl_easy_setopt(easy, CURLOPT_USERNAME, s3->account->key);
    curl_easy_setopt(easy, CURLOPT_PASSWORD, s3->account->secret);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)s3->limits.connect);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, (long)s3->limits.stall);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT, whole_limit(s3, attempt->request));
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, attempt);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    if (authorities != NULL && authorities[0] != '\0')
        curl_easy_setopt(easy, CURLOPT_CAINFO, authorities);
    if (attempt->request->bytes > BUFFER)
        curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, BUFFER);
    if (attempt->request->body_len > BUFFER)
        curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, BUFFER);
    set_body(easy, attempt);
}

static void read_headers(struct attempt *attempt)
{
    struct s3_reply *reply = attempt->reply;
    CURL *easy = attempt->s3->easy;
    struct curl_header *header;
    curl_off_t length = -1;
    time_t date;

    if (curl_easy_header(easy, "ETag", 0, CURLH_HEADER, -1, &header) == CURLHE_OK &&
        strlen(header->value) < sizeof(reply->etag))
        snprintf(reply->etag, sizeof(reply->etag), "%s", header->value);
    reply->bytes = -1;
    if (curl_easy_getinfo(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length) == CURLE_OK)
        reply->bytes = (int64_t)length;
    attempt->ahead = 0;
    if (curl_easy_header(easy, "Date", 0, CURLH_HEADER, -1, &header) != CURLHE_OK)
        return;
    date = curl_getdate(header->value, NULL);
    if (date > 0)
        attempt->ahead = difftime(time(NULL), date);
}

/* CURLE_OK: there is an answer with a status. */
static CURLcode try_once(struct attempt *attempt)
{
    static const struct s3_parameter none[] = {{0}};
    const struct s3_request *request = attempt->request;
    struct s3 *s3 = attempt->s3;
    char *url = s3->sts ? s3_sts_url(s3->account->endpoint, s3->account->region)
                        : s3_request_url(s3->account->endpoint, s3->account->region, s3->bucket,
                                         request->key,
                                         request->parameters != NULL ? request->parameters : none);
    struct curl_slist *headers;
    CURLcode rc = CURLE_OUT_OF_MEMORY;
    long status = 0;

    attempt->from = *attempt->got;
    attempt->sent = 0;
    attempt->refused = false;
    attempt->reply->len = 0;
    if (attempt->reply->text != NULL)
        attempt->reply->text[0] = '\0';
    headers = make_headers(attempt);
    if (url != NULL && headers != NULL) {
        set_request(attempt, url, headers);
        rc = curl_easy_perform(s3->easy);
        curl_easy_getinfo(s3->easy, CURLINFO_RESPONSE_CODE, &status);
        read_headers(attempt);
    }
    attempt->reply->status = (int)status;
    curl_slist_free_all(headers);
    free(url);
    return rc;
}

/* ---- again ----------------------------------------------------------------------------------- */

static bool may_pass(CURLcode rc)
{
    switch (rc) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
        return true;
    default:
        return false;
    }
}

/* Many nodes that were refused together do not come back together. */
static void wait_seconds(double seconds)
{
    double left = seconds * (0.5 + 0.5 * randombytes_uniform(1000) / 1000.0);

    while (left > 0 && !stop_asked()) {
        double step = left < 0.1 ? left : 0.1;
        struct timespec pause = {.tv_nsec = (long)(step * 1e9)};

        nanosleep(&pause, NULL);
        left -= step;
    }
}

static enum s3_result stopped(const char *what, struct error *err)
{
    error_set(err, "%s: %s", what, "stopped, or out of time");
    return S3_FAILED;
}

/* No answer: why, after how many tries. */
static enum s3_result no_answer(const struct attempt *attempt, CURLcode rc, const char *what,
                                int tries)
{
    long limit = whole_limit(attempt->s3, attempt->request);
    double took = 0;

    if (rc == CURLE_ABORTED_BY_CALLBACK)
        return stopped(what, attempt->err);
    curl_easy_getinfo(attempt->s3->easy, CURLINFO_TOTAL_TIME, &took);
    if (attempt->refused)
        error_prefix(attempt->err, "%s", what);
    else if (rc == CURLE_OPERATION_TIMEDOUT && limit > 0 && took > (double)limit - 0.5)
        error_set(attempt->err, "%s: %s has not answered in full within %ld s (%d tries)", what,
                  attempt->s3->host, limit, tries);
    else if (rc == CURLE_OPERATION_TIMEDOUT)
        error_set(attempt->err, "%s: %s is silent for %d s (%d tries)", what, attempt->s3->host,
                  attempt->s3->limits.stall, tries);
    else
        error_set(attempt->err, "%s: %s: %s (%d tr%s)", what, attempt->s3->host,
                  curl_easy_strerror(rc), tries, tries == 1 ? "y" : "ies");
    return S3_FAILED;
}

static void describe(const struct s3 *s3, const struct s3_request *request, char *what, size_t size)
{
    snprintf(what, size, "%s %s%s%s%s", request->what, s3->sts ? "" : "s3://", s3->bucket,
             s3->sts ? "" : "/", error_path(request->key).text);
}

static enum s3_result judge(struct attempt *attempt, const char *what)
{
    const struct s3 *s3 = attempt->s3;
    const struct s3_reply *reply = attempt->reply;
    const struct s3_asker asker = {
        .what = what,
        .bucket = s3->bucket,
        .host = s3->host,
        .region = s3->account->region,
        .key = s3->account->key,
        .source = s3->account->source,
        .ahead = (int64_t)attempt->ahead,
    };

    if (s3_fault_is_absence(reply->status, &reply->fault)) {
        error_set(attempt->err, "%s: there is no such object", what);
        return S3_ABSENT;
    }
    if (s3_fault_is_clash(reply->status, &reply->fault)) {
        error_set(attempt->err, "%s: somebody else has changed it meanwhile", what);
        return S3_CLASH;
    }
    s3_fault_line(&asker, reply->status, &reply->fault, attempt->err);
    return S3_FAILED;
}

/* The connection ended behind the last byte. */
static bool has_all(const struct attempt *attempt)
{
    return *attempt->got > 0 && *attempt->got == attempt->request->bytes;
}

/* Without an ETag the rest could be of another version of the object. */
static bool may_try_again(const struct attempt *attempt)
{
    return !attempt->refused && (*attempt->got == 0 || attempt->request->version != NULL ||
                                 attempt->reply->etag[0] != '\0');
}

static bool says_error(const struct s3_request *request, const struct s3_reply *reply)
{
    struct s3_fault fault = {0};

    if (request->late)
        s3_fault_parse(reply->text, reply->len, &fault);
    return fault.code[0] != '\0';
}

static enum s3_result complete(const struct attempt *attempt, const char *what)
{
    if (attempt->request->take == NULL || *attempt->got == attempt->request->bytes)
        return S3_OK;
    error_set(attempt->err, "%s: it has %lld bytes of %lld", what, (long long)*attempt->got,
              (long long)attempt->request->bytes);
    return S3_FAILED;
}

enum s3_result s3_ask(struct s3 *s3, const struct s3_request *request, struct s3_reply *reply,
                      struct error *err)
{
    struct retry retry = {.first = PAUSE_FIRST, .max = PAUSE_MAX};
    struct error own = {""};
    int64_t got = 0;
    struct attempt attempt = {
        .s3 = s3, .request = request, .reply = reply, .got = &got, .err = err != NULL ? err : &own};
    char what[S3_KEY_MAX];

    *reply = (struct s3_reply){0};
    describe(s3, request, what, sizeof(what));
    for (int tries = 1;; tries++) {
        CURLcode rc = try_once(&attempt);
        bool answered = rc == CURLE_OK;
        bool good = answered && reply->status >= 200 && reply->status < 300 &&
                    !says_error(request, reply);

        /* The pauses follow each other, so the time between them does not matter. */
        if (good || (may_pass(rc) && has_all(&attempt)))
            return complete(&attempt, what);
        s3_fault_parse(reply->text, answered ? reply->len : 0, &reply->fault);
        if (tries >= s3->limits.tries || !may_try_again(&attempt) ||
            !(answered ? s3_fault_passes(reply->status, &reply->fault) : may_pass(rc)))
            return answered ? judge(&attempt, what) : no_answer(&attempt, rc, what, tries);
        reply->repeated = true;
        wait_seconds(retry_failed(&retry, retry.after));
        if (stop_asked())
            return stopped(what, attempt.err);
    }
}

void s3_reply_clear(struct s3_reply *reply)
{
    free(reply->text);
    reply->text = NULL;
    reply->len = 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void name_host(struct s3 *s3)
{
    const char *endpoint = s3->account->endpoint;

    if (endpoint != NULL)
        snprintf(s3->host, sizeof(s3->host), "%s", strstr(endpoint, "//") + 2);
    else
        snprintf(s3->host, sizeof(s3->host), "s3.%s.amazonaws.com", s3->account->region);
}

struct s3 *s3_open(const struct s3_account *account, const char *bucket,
                   const struct s3_limits *limits, struct error *err)
{
    struct s3 *s3 = calloc(1, sizeof(*s3));

    if (s3 != NULL && curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
        s3->easy = curl_easy_init();
    if (s3 == NULL || s3->easy == NULL) {
        free(s3);
        error_set(err, "cannot ask S3: %s", curl_easy_strerror(CURLE_FAILED_INIT));
        return NULL;
    }
    s3->account = account;
    s3->limits = *limits;
    snprintf(s3->bucket, sizeof(s3->bucket), "%s", bucket);
    snprintf(s3->scope, sizeof(s3->scope), "aws:amz:%s:s3", account->region);
    name_host(s3);
    return s3;
}

struct s3 *s3_open_sts(const struct s3_account *account, const struct s3_limits *limits,
                       struct error *err)
{
    struct s3 *s3 = s3_open(account, "", limits, err);

    if (s3 == NULL)
        return NULL;
    s3->sts = true;
    snprintf(s3->scope, sizeof(s3->scope), "aws:amz:%s:sts", account->region);
    if (account->endpoint == NULL)
        snprintf(s3->host, sizeof(s3->host), "sts.%s.amazonaws.com", account->region);
    return s3;
}

struct s3 *s3_lane(struct s3 *s3, int lane)
{
    struct s3 **own = &s3->lanes[lane];

    if (lane == 0)
        return s3;
    if (*own == NULL)
        *own = s3_open(s3->account, s3->bucket, &s3->limits, NULL);
    if (*own != NULL)
        (*own)->gives = s3->gives;
    return *own;
}

void s3_give_owner(struct s3 *s3)
{
    s3->gives = true;
}

void s3_close(struct s3 *s3)
{
    if (s3 == NULL)
        return;
    for (int i = 1; i < S3_LANES; i++)
        s3_close(s3->lanes[i]);
    curl_easy_cleanup(s3->easy);
    free(s3);
}
