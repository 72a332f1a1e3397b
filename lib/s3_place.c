/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Places on S3 and URLs of requests (s3_place.h). */
#include "lib/s3_place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/text.h"

#define SCHEME         "s3://"
#define BUCKET_MIN     3
#define PARAMETERS_MAX 8
#define LETTERS        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

/* ---- places ---------------------------------------------------------------------------------- */

bool s3_place_is(const char *text)
{
    return strncmp(text, "s3:", 3) == 0;
}

static bool bucket_ok(const char *bucket, size_t len)
{
    return len >= BUCKET_MIN && len <= S3_BUCKET_MAX && bucket[0] != '.' && bucket[0] != '-' &&
           strspn(bucket, LETTERS "._-") >= len;
}

static bool is_dots(const char *text, size_t len)
{
    return (len == 1 && text[0] == '.') || (len == 2 && memcmp(text, "..", 2) == 0);
}

static bool component_ok(const char *text, size_t len)
{
    if (len == 0 || is_dots(text, len))
        return false;
    for (size_t at = 0, step; at < len; at += step) {
        step = text_utf8_length(text + at, len - at);
        if (step == 0 || (unsigned char)text[at] < ' ' || text[at] == 0x7f)
            return false;
    }
    return true;
}

static bool path_ok(const char *path, size_t len)
{
    const char *end = path + len, *slash;

    for (; (slash = memchr(path, '/', (size_t)(end - path))) != NULL; path = slash + 1)
        if (!component_ok(path, (size_t)(slash - path)))
            return false;
    return component_ok(path, (size_t)(end - path));
}

bool s3_key_ok(const char *key)
{
    return path_ok(key, strlen(key));
}

bool s3_key_has_dots(const char *key)
{
    for (;; key++) {
        size_t len = strcspn(key, "/");

        if (is_dots(key, len))
            return true;
        key += len;
        if (*key == '\0')
            return false;
    }
}

int s3_place_parse(const char *text, struct s3_place *place, struct error *err)
{
    size_t len = strlen(SCHEME), bucket_len, prefix_len;
    const char *bucket = text + len, *prefix;

    *place = (struct s3_place){0};
    if (strncmp(text, SCHEME, len) != 0)
        return error_set(err, "%s: a place on S3 is s3://BUCKET/PREFIX", error_value(text).text);
    bucket_len = strcspn(bucket, "/");
    if (!bucket_ok(bucket, bucket_len))
        return error_set(err,
                         "%s: the name of a bucket has %d to %d letters, digits, '.', '_' and '-'",
                         error_value(text).text, BUCKET_MIN, S3_BUCKET_MAX);
    prefix = bucket + bucket_len + (bucket[bucket_len] == '/');
    prefix_len = strlen(prefix);
    if (prefix_len > 0 && prefix[prefix_len - 1] == '/')
        prefix_len--;
    if (prefix_len > S3_PREFIX_MAX)
        return error_set(err, "%s: the prefix is longer than %d bytes", error_value(text).text,
                         S3_PREFIX_MAX);
    if (prefix_len > 0 && !path_ok(prefix, prefix_len))
        return error_set(err,
                         "%s: a prefix is names with '/' between them, in UTF-8; none is empty, "
                         "'.' or '..'",
                         error_value(text).text);
    memcpy(place->bucket, bucket, bucket_len);
    memcpy(place->prefix, prefix, prefix_len);
    if (prefix_len > 0)
        place->prefix[prefix_len] = '/';
    return 0;
}

/* ---- encoding -------------------------------------------------------------------------------- */

char *s3_encode(const char *text, bool keep_slashes)
{
    static const char digits[] = "0123456789ABCDEF";
    char *encoded = malloc(3 * strlen(text) + 1), *to = encoded;

    if (encoded == NULL)
        return NULL;
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;

        if (strchr(LETTERS "-._~", byte) != NULL || (byte == '/' && keep_slashes)) {
            *to++ = *text;
        } else {
            *to++ = '%';
            *to++ = digits[byte >> 4];
            *to++ = digits[byte & 15];
        }
    }
    *to = '\0';
    return encoded;
}

static int hex_value(char digit)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    const char *at = digit != '\0' ? strchr(digits, digit) : NULL;

    if (at == NULL)
        return -1;
    return (int)(at - digits) < 16 ? (int)(at - digits) : (int)(at - digits) - 6;
}

bool s3_decode(char *text)
{
    char *to = text;

    for (; *text != '\0'; text++) {
        int high, low;

        if (*text != '%') {
            *to++ = *text == '+' ? ' ' : *text;
            continue;
        }
        high = hex_value(text[1]);
        low = high >= 0 ? hex_value(text[2]) : -1;
        if (low < 0 || high + low == 0)
            return false;
        *to++ = (char)(16 * high + low);
        text += 2;
    }
    *to = '\0';
    return true;
}

/* ---- URLs ------------------------------------------------------------------------------------ */

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "name=value", both encoded; NULL when out of memory. */
static char *encode_parameter(const struct s3_parameter *parameter)
{
    char *name = s3_encode(parameter->name, false), *value = s3_encode(parameter->value, false);
    char *text = NULL;

    if (name != NULL && value != NULL && asprintf(&text, "%s=%s", name, value) < 0)
        text = NULL;
    free(name);
    free(value);
    return text;
}

/* Returns a new string that is empty, or begins with '?'. Names are plain letters and '-', which
 * sort before '=': so the pairs sort as the names do. */
static char *make_query(const struct s3_parameter *parameters)
{
    char *pairs[PARAMETERS_MAX], *query = NULL;
    size_t size = 1, count = 0;
    bool complete = true;

    for (; complete && parameters[count].name != NULL && count < PARAMETERS_MAX; count++) {
        pairs[count] = encode_parameter(&parameters[count]);
        complete = pairs[count] != NULL;
        size += complete ? strlen(pairs[count]) + 1 : 0;
    }
    if (complete)
        query = calloc(1, size);
    if (query != NULL) {
        qsort(pairs, count, sizeof(*pairs), compare);
        for (size_t i = 0; i < count; i++)
            text_append(query, size, "%c%s", i == 0 ? '?' : '&', pairs[i]);
    }
    for (size_t i = 0; i < count; i++)
        free(pairs[i]);
    return query;
}

/* A bucket with a dot in its name has no certificate of its own; other names are no host names. */
static bool is_host_name(const char *bucket)
{
    return strspn(bucket, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(bucket) &&
           strlen(bucket) <= 63;
}

char *s3_request_url(const char *endpoint, const char *region, const char *bucket, const char *key,
                     const struct s3_parameter *parameters)
{
    char *path = s3_encode(key, true), *query = make_query(parameters), *url = NULL;
    int rc = -1;

    if (path != NULL && query != NULL && endpoint != NULL)
        rc = asprintf(&url, "%s/%s/%s%s", endpoint, bucket, path, query);
    else if (path != NULL && query != NULL && is_host_name(bucket))
        rc = asprintf(&url, "https://%s.s3.%s.amazonaws.com/%s%s", bucket, region, path, query);
    else if (path != NULL && query != NULL)
        rc = asprintf(&url, "https://s3.%s.amazonaws.com/%s/%s%s", region, bucket, path, query);
    free(path);
    free(query);
    return rc >= 0 ? url : NULL;
}

char *s3_sts_url(const char *endpoint, const char *region)
{
    char *url = NULL;
    int rc = endpoint != NULL ? asprintf(&url, "%s/", endpoint)
                              : asprintf(&url, "https://sts.%s.amazonaws.com/", region);

    return rc >= 0 ? url : NULL;
}

bool s3_endpoint_ok(const char *endpoint)
{
    const char *host = NULL;

    if (strncmp(endpoint, "http://", 7) == 0)
        host = endpoint + 7;
    else if (strncmp(endpoint, "https://", 8) == 0)
        host = endpoint + 8;
    return host != NULL && host[0] != '\0' && strspn(host, LETTERS ".-:[]") == strlen(host);
}

bool s3_endpoint_is_open(const char *endpoint)
{
    static const char *const here[] = {"localhost", "127.0.0.1", "[::1]"};
    const char *host = endpoint + strlen("http://");
    size_t len;

    if (strncmp(endpoint, "http://", strlen("http://")) != 0)
        return false;
    len = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    for (size_t i = 0; i < sizeof(here) / sizeof(*here); i++)
        if (strlen(here[i]) == len && strncmp(host, here[i], len) == 0)
            return false;
    return true;
}
