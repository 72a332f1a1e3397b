/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where something is on S3: s3://BUCKET/PREFIX, and the URLs of requests. Pure. */
#ifndef ELASTIC_S3_PLACE_H
#define ELASTIC_S3_PLACE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/error.h"

#define S3_BUCKET_MAX 255
#define S3_KEY_MAX    1024 /* bytes, as S3 has it */
#define S3_PREFIX_MAX 768  /* what is below a prefix has the rest */

struct s3_place {
    char bucket[S3_BUCKET_MAX + 1];
    char prefix[S3_PREFIX_MAX + 2]; /* "", or with one slash at its end and none in front */
};

/* Does the text mean a place on S3, right or wrong: does it begin with "s3:"? */
bool s3_place_is(const char *text);

/* Parse s3://BUCKET[/PREFIX]. A slash at the end makes no difference. -1 with err. */
int s3_place_parse(const char *text, struct s3_place *place, struct error *err);

/* May a key have this part behind a prefix? Components without control characters, none of them
 * empty, "." or "..". */
bool s3_key_ok(const char *key);

/* Has a key a component "." or ".."? Whoever resolves URLs would make another key of it. */
bool s3_key_has_dots(const char *key);

/* Percent-encode for a signature: all but letters, digits and "-._~". Slashes stay if asked for. A
 * new string, NULL when out of memory. */
char *s3_encode(const char *text, bool keep_slashes);

/* Undo it in place; a plus is a blank, as servers write keys in a listing. False: a wrong escape,
 * or a NUL byte. */
bool s3_decode(char *text);

struct s3_parameter {
    const char *name, *value;
};

/* The URL of a request. endpoint is http[s]://HOST[:PORT] without a slash at the end; the bucket
 * comes first in the path. NULL: Amazon's endpoint of the region; the bucket is part of its name if
 * it can be. The parameters (name NULL after the last one) are sorted and encoded, as they are
 * signed. A new string, NULL when out of memory. */
char *s3_request_url(const char *endpoint, const char *region, const char *bucket, const char *key,
                     const struct s3_parameter *parameters);

/* The URL of the service that gives session credentials (STS). */
char *s3_sts_url(const char *endpoint, const char *region);

/* Is it an endpoint? http://HOST or https://HOST, with a port or without, and no path. */
bool s3_endpoint_ok(const char *endpoint);

/* Does what is said to it go over a network as it is? http:// to another machine. */
bool s3_endpoint_is_open(const char *endpoint);

#endif
