/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/s3_place, s3_parts, s3_profile, s3_answer: places, URLs, parts, profiles, answers. */
#include "tests/unit/support.h"

#include <stdlib.h>
#include <string.h>

#include "lib/s3_answer.h"
#include "lib/s3_parts.h"
#include "lib/s3_place.h"
#include "lib/s3_policy.h"
#include "lib/s3_profile.h"

static void test_places(void **unused)
{
    static const struct {
        const char *text, *bucket, *prefix;
    } good[] = {
        {"s3://bucket", "bucket", ""},
        {"s3://bucket/", "bucket", ""},
        {"s3://bucket/a", "bucket", "a/"},
        {"s3://My_old.bucket-1/a b/c+ü/", "My_old.bucket-1", "a b/c+ü/"},
    };
    static const char *const bad[] = {"s3:",
                                      "s3:/bucket/a",
                                      "s3://",
                                      "s3://ab",
                                      "s3://../a",
                                      "s3://a?b",
                                      "s3://bucket//a",
                                      "s3://bucket/./",
                                      "s3://bucket/../x",
                                      "s3://bucket/a//b",
                                      "s3://-abc",
                                      "s3://bucket/\n",
                                      "s3://bucket/\xff",
                                      "s3://bucket/a/.."};
    struct s3_place place;
    struct error err;
    char text[2 * S3_PREFIX_MAX];
    (void)unused;

    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        assert_true(s3_place_is(good[i].text));
        assert_int_equal(s3_place_parse(good[i].text, &place, &err), 0);
        assert_string_equal(place.bucket, good[i].bucket);
        assert_string_equal(place.prefix, good[i].prefix);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        assert_true(s3_place_is(bad[i]));
        err.text[0] = '\0';
        assert_int_equal(s3_place_parse(bad[i], &place, &err), -1);
        assert_true(err.text[0] != '\0');
    }
    assert_false(s3_place_is("/s3://a"));
    snprintf(text, sizeof(text), "s3://bucket/%0*d", S3_PREFIX_MAX, 1);
    assert_int_equal(s3_place_parse(text, &place, &err), 0);
    snprintf(text, sizeof(text), "s3://bucket/%0*d", S3_PREFIX_MAX + 1, 1);
    assert_int_equal(s3_place_parse(text, &place, &err), -1);
}

static void expect_url(const char *endpoint, const char *bucket, const char *key,
                       const struct s3_parameter *parameters, const char *expected)
{
    char *url = s3_request_url(endpoint, "eu-central-1", bucket, key, parameters);

    assert_string_equal(url, expected);
    free(url);
}

static void test_urls(void **unused)
{
    static const struct s3_parameter none[] = {{0}};
    static const struct s3_parameter list[] = {
        {"prefix", "m/2 +/"}, {"list-type", "2"}, {"delimiter", "/"}, {0}};
    static const struct s3_parameter uploads[] = {{"uploads", ""}, {0}};
    (void)unused;

    expect_url("http://h:1", "b-b", "a b/c+%~ü", none, "http://h:1/b-b/a%20b/c%2B%25~%C3%BC");
    expect_url("http://h:1", "b", "", list,
               "http://h:1/b/?delimiter=%2F&list-type=2&prefix=m%2F2%20%2B%2F");
    expect_url(NULL, "bucket", "k", uploads,
               "https://bucket.s3.eu-central-1.amazonaws.com/k?uploads=");
    expect_url(NULL, "with.dot", "k", none, "https://s3.eu-central-1.amazonaws.com/with.dot/k");
    assert_true(s3_endpoint_ok("https://s3.example.org:9000"));
    assert_true(s3_endpoint_ok("http://[::1]:9000"));
    assert_false(s3_endpoint_ok("s3.example.org"));
    assert_false(s3_endpoint_ok("https://"));
    assert_false(s3_endpoint_ok("https://a/b"));
    assert_false(s3_endpoint_ok("https://user@host"));
}

static void test_dots(void **unused)
{
    static const char *const with[] = {".", "..", "./a", "a/..", "a/./b", "a//../b"};
    static const char *const without[] = {"", "a", "a//b", "/a", "a/", "...", "a/.b/..c/d..", ".a"};
    (void)unused;

    for (size_t i = 0; i < sizeof(with) / sizeof(*with); i++)
        assert_true(s3_key_has_dots(with[i]));
    for (size_t i = 0; i < sizeof(without) / sizeof(*without); i++)
        assert_false(s3_key_has_dots(without[i]));
}

static void test_decoding(void **unused)
{
    char text[] = "a%20b+c%2Bd%2f", wrong[] = "%4", hex[] = "%zz", nul[] = "%00";
    (void)unused;

    assert_true(s3_decode(text));
    assert_string_equal(text, "a b c+d/");
    assert_false(s3_decode(wrong));
    assert_false(s3_decode(hex));
    assert_false(s3_decode(nul));
}

static void test_grants(void **unused)
{
    static const struct {
        const char *arn;
        enum s3_grant_kind kind;
    } cases[] = {
        {"arn:aws:iam::123:role/fit", S3_GRANT_STS}, {"arn:aws:iam:::user/anna", S3_GRANT_POLICY},
        {"arn:aws:iam::123:role/", S3_GRANT_NONE},   {"arn:aws:s3:::role/fit", S3_GRANT_NONE},
        {"arn:aws:iam::1:user/*", S3_GRANT_NONE},    {"role/fit", S3_GRANT_NONE},
        {"arn:aws:iam::1:role/a\"b", S3_GRANT_NONE}, {"", S3_GRANT_NONE},
    };
    struct s3_scope scope = {.reads = 1, .writes = true};
    struct s3_place wild;
    json_object *list;
    char *text;
    (void)unused;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_int_equal(s3_grant_kind(cases[i].arn), cases[i].kind);
    assert_int_equal(s3_place_parse("s3://bbb/in", &scope.read[0], NULL), 0);
    assert_int_equal(s3_place_parse("s3://ccc/out/new", &scope.write, NULL), 0);
    assert_int_equal(s3_place_parse("s3://bbb/a*", &wild, NULL), 0);
    assert_int_equal(s3_scope_check(&scope.write, NULL), 0);
    assert_int_equal(s3_scope_check(&wild, NULL), -1);
    text = s3_session_policy(&scope, "arn:x:iam:::role/r");
    assert_non_null(strstr(text, "\"arn:x:s3:::bbb/in/*\",\"arn:x:s3:::bbb/in\""));
    assert_non_null(strstr(text, "\"StringLike\":{\"s3:prefix\":\"in/*\"}"));
    assert_non_null(strstr(text, "\"arn:x:s3:::ccc/out/new/*\""));
    assert_null(strchr(text, ' '));
    assert_null(strstr(text, "Principal"));
    /* Its objects are the owner's, who alone says who else opens them. */
    assert_non_null(strstr(text, "PutObject"));
    assert_null(strstr(text, "PutObjectAcl"));
    free(text);
    list = s3_bucket_statements(&scope, "ccc", "arn:x:iam:::user/u", "Sid7", 0);
    text = strdup(json_object_to_json_string_ext(list, JSON_C_TO_STRING_PLAIN |
                                                           JSON_C_TO_STRING_NOSLASHESCAPE));
    assert_null(strstr(text, ":bbb/in"));
    assert_non_null(strstr(text, "PutObjectAcl"));
    assert_non_null(strstr(text, "\"aws:CurrentTime\":\"1970-01-01T00:00:00Z\""));
    assert_non_null(strstr(text, "\"arn:x:s3:::ccc/out/" S3_PROOF "Sid7\""));
    assert_non_null(strstr(text, "\"arn:x:s3:::ccc/out/" S3_PROOF "Sid7" S3_ASKED "\""));
    assert_null(strstr(text, "ccc/" S3_PROOF));
    free(text);
    json_object_put(list);
    list = s3_bucket_statements(&scope, "d", "arn:x:iam:::user/u", "Sid7", 0);
    assert_int_equal(json_object_array_length(list), 0);
    json_object_put(list);
    list = json_tokener_parse("{\"Statement\": [{\"Sid\": \"Sid7n0\"}, {\"Sid\": \"a\"}, {}]}");
    assert_int_equal(s3_policy_remove(list, "Sid7"), 2);
    json_object_put(list);
}

/* Every byte is in one part, and S3's limits are kept. */
static void test_parts(void **unused)
{
    static const int64_t sizes[] = {0,
                                    1,
                                    S3_PART_BYTES,
                                    S3_PART_BYTES + 1,
                                    3 * S3_PART_BYTES,
                                    S3_PART_BYTES * S3_PARTS_MAX,
                                    S3_PART_BYTES * S3_PARTS_MAX + 1,
                                    S3_BYTES_MAX - 1,
                                    S3_BYTES_MAX};
    (void)unused;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        struct s3_parts parts = s3_parts_plan(sizes[i]);
        int64_t sum = 0;

        assert_in_range(parts.count, 1, S3_PARTS_MAX);
        for (int part = 0; part < parts.count; part++) {
            int64_t size = s3_parts_size(&parts, sizes[i], part);

            assert_true(part + 1 == parts.count ? size <= parts.part : size == parts.part);
            assert_true(size > 0 || sizes[i] == 0);
            sum += size;
        }
        assert_in_range(s3_parts_lanes(&parts), 1, S3_LANES);
        assert_true(s3_parts_lanes(&parts) <= parts.count);
        assert_true(s3_parts_lanes(&parts) == 1 ||
                    s3_parts_lanes(&parts) * parts.part <= S3_LANES * S3_PART_BYTES);
        assert_true(sum == sizes[i]);
        assert_true(parts.part >= (int64_t)5 << 20);
    }
    assert_int_equal(s3_parts_plan(S3_PART_BYTES).count, 1);
    assert_int_equal(s3_parts_plan(S3_PART_BYTES + 1).count, 2);
}

static void expect_setting(const char *text, const char *profile, bool config, const char *key,
                           const char *expected)
{
    char *value = s3_profile_value(text, profile, config, key);

    if (expected == NULL)
        assert_null(value);
    else
        assert_string_equal(value, expected);
    free(value);
}

static void test_profiles(void **unused)
{
    static const char text[] = "# of mine\n"
                               "[default]\r\n"
                               "aws_access_key_id=ONE\r\n"
                               " [ fit ] \n"
                               "aws_access_key_id = TWO\n"
                               ";region = none\n"
                               "s3 =\n"
                               "  region = of a block\n"
                               "region = eu\n"
                               "empty =\n"
                               "[profile far]\n"
                               "region = us\n"
                               "[last]\n"
                               "region = end";
    (void)unused;

    expect_setting(text, "default", false, "aws_access_key_id", "ONE");
    expect_setting(text, "fit", false, "aws_access_key_id", "TWO");
    expect_setting(text, "fit", false, "region", "eu");
    expect_setting(text, "fit", false, "empty", NULL);
    expect_setting(text, "far", false, "region", NULL);
    expect_setting(text, "far", true, "region", "us");
    expect_setting(text, "last", true, "region", "end");
    expect_setting(text, "none", true, "region", NULL);
    expect_setting("", "none", true, "region", NULL);
    expect_setting("[", "", true, "", NULL);
}

#define LIST(content) "<ListBucketResult xmlns=\"http://s3/\">" content "</ListBucketResult>"

static void test_listings(void **unused)
{
    static const char text[] = LIST(
        "<Name>b</Name><IsTruncated>true</IsTruncated><Contents><Key>a%20b</Key>"
        "<Size>5</Size><ETag>&quot;e&quot;</ETag><Owner><ID>Key</ID></Owner></Contents>"
        "<NextContinuationToken>t&amp;/+=</NextContinuationToken>"
        "<CommonPrefixes><Prefix>p%2F</Prefix></CommonPrefixes>");
    struct s3_listing listing;
    struct error err;
    (void)unused;

    assert_int_equal(s3_listing_parse(text, strlen(text), &listing, &err), 0);
    assert_int_equal(listing.count, 2);
    assert_string_equal(listing.entries[0].key, "a b");
    assert_true(listing.entries[0].bytes == 5);
    assert_string_equal(listing.entries[0].etag, "\"e\"");
    assert_string_equal(listing.entries[1].key, "p/");
    assert_true(listing.entries[1].bytes == -1);
    assert_string_equal(listing.next, "t&/+=");
    s3_listing_clear(&listing);
}

static void test_bad_listings(void **unused)
{
    static const char *const bad[] = {
        "",
        "no xml",
        "<Other></Other>",
        LIST("<IsTruncated>true</IsTruncated>"),
        LIST("<NextContinuationToken>x</NextContinuationToken>"),
        LIST("<Contents><Key>a</Key></Contents>"),
        LIST("<Contents><Size>1</Size></Contents>"),
        LIST("<Contents><Key>a</Key><Size>-1</Size></Contents>"),
        LIST("<Contents><Key>a</Key><Size>99999999999999999999</Size></Contents>"),
        LIST("<Contents><Key>a</Key><Key>b</Key><Size>1</Size></Contents>"),
        LIST("<Contents><Key>%zz</Key><Size>1</Size></Contents>"),
        LIST("<CommonPrefixes></CommonPrefixes>"),
        LIST("<Contents>"),
        "<!DOCTYPE x [<!ENTITY a \"b\">]>" LIST("&a;"),
        "<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a>",
    };
    (void)unused;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct error err = {""};
        struct s3_listing listing;

        assert_int_equal(s3_listing_parse(bad[i], strlen(bad[i]), &listing, &err), -1);
        assert_true(err.text[0] != '\0');
        assert_null(listing.entries);
    }
}

static void test_uploads(void **unused)
{
    static const char good[] = "<InitiateMultipartUploadResult><Bucket>b</Bucket>"
                               "<UploadId>2~x/y</UploadId></InitiateMultipartUploadResult>";
    static const char bad[] = "<InitiateMultipartUploadResult></InitiateMultipartUploadResult>";
    struct error err = {""};
    char *id = s3_upload_parse(good, strlen(good), &err);
    (void)unused;

    assert_string_equal(id, "2~x/y");
    free(id);
    assert_null(s3_upload_parse(bad, strlen(bad), &err));
    assert_string_equal(err.text, "the answer has no UploadId");
}

static void expect_line(int status, const char *body, int64_t ahead, const char *expected)
{
    const struct s3_asker asker = {
        .what = "get s3://b/k",
        .bucket = "b",
        .host = "h:1",
        .region = "us-east-1",
        .key = "KEY",
        .source = "profile x",
        .ahead = ahead,
    };
    struct s3_fault fault;
    struct error err;

    s3_fault_parse(body, strlen(body), &fault);
    assert_int_equal(s3_fault_line(&asker, status, &fault, &err), -1);
    assert_string_equal(err.text, expected);
}

static void test_faults(void **unused)
{
    (void)unused;
    expect_line(403, "<Error><Code>RequestTimeTooSkewed</Code></Error>", -3600,
                "get s3://b/k: the clock of this machine is 3600 s behind that of h:1: set it");
    expect_line(403, "", 901,
                "get s3://b/k: the clock of this machine is 901 s ahead of that of h:1: set it");
    expect_line(403, "<Error><Code>SignatureDoesNotMatch</Code></Error>", 0,
                "get s3://b/k: h:1 does not accept the keys of KEY (profile x, "
                "SignatureDoesNotMatch): check both keys");
    expect_line(403, "<Error><Code>InvalidAccessKeyId</Code></Error>", 0,
                "get s3://b/k: h:1 does not accept the keys of KEY (profile x, "
                "InvalidAccessKeyId): check both keys");
    expect_line(400, "<Error><Code>ExpiredToken</Code></Error>", 0,
                "get s3://b/k: the session credentials (profile x) have ended or are wrong: get "
                "new ones");
    expect_line(
        400, "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region></Error>",
        0,
        "get s3://b/k: the bucket b is not in region us-east-1 but in eu-west-1: set "
        "AWS_REGION");
    expect_line(301, "", 0,
                "get s3://b/k: the bucket b is not in region us-east-1: set AWS_REGION");
    expect_line(404, "<Error><Code>NoSuchBucket</Code></Error>", 0,
                "get s3://b/k: h:1 has no bucket b");
    expect_line(403, "<Error><Code>AccessDenied</Code></Error>", 0,
                "get s3://b/k: h:1 refuses the keys of KEY (profile x): they are wrong, or not "
                "allowed to");
    expect_line(500, "<Error><Code>X</Code><Message>two\nlines</Message></Error>", 0,
                "get s3://b/k: h:1 answers 500 X: two?lines");
    expect_line(418, "tea", 0, "get s3://b/k: h:1 answers 418");
}

static void test_kinds_of_faults(void **unused)
{
    static const char *const passing[] = {"SlowDown", "InternalError", "RequestTimeout"};
    struct s3_fault fault = {0};
    (void)unused;

    assert_true(s3_fault_passes(503, &fault));
    assert_true(s3_fault_passes(429, &fault));
    assert_false(s3_fault_passes(403, &fault));
    assert_false(s3_fault_passes(404, &fault));
    assert_true(s3_fault_is_absence(404, &fault));
    assert_true(s3_fault_is_clash(412, &fault));
    assert_false(s3_fault_is_clash(409, &fault));
    for (size_t i = 0; i < sizeof(passing) / sizeof(*passing); i++) {
        snprintf(fault.code, sizeof(fault.code), "%s", passing[i]);
        assert_true(s3_fault_passes(400, &fault));
    }
    snprintf(fault.code, sizeof(fault.code), "NoSuchBucket");
    assert_false(s3_fault_is_absence(404, &fault));
    snprintf(fault.code, sizeof(fault.code), "ConditionalRequestConflict");
    assert_true(s3_fault_is_clash(409, &fault));
}

static void test_open_endpoints(void **state)
{
    static const struct {
        const char *endpoint;
        bool open;
    } cases[] = {
        {"https://s3.example.org", false}, {"http://s3.example.org", true},
        {"http://10.0.0.1:9000", true},    {"http://127.0.0.1:9000", false},
        {"http://127.0.0.1", false},       {"http://127.0.0.1.example.org", true},
        {"http://localhost:9000", false},  {"http://localhost2", true},
        {"http://[::1]:9000", false},      {"http://[::1", true},
        {"http://[fd00::2]:9000", true},
    };
    (void)state;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_int_equal(s3_endpoint_is_open(cases[i].endpoint), cases[i].open);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_endpoints),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_urls),
        cmocka_unit_test(test_dots),
        cmocka_unit_test(test_decoding),
        cmocka_unit_test(test_grants),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_profiles),
        cmocka_unit_test(test_listings),
        cmocka_unit_test(test_bad_listings),
        cmocka_unit_test(test_uploads),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_kinds_of_faults),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
