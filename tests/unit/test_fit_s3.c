/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a trainer gets and puts on S3 for another user: fit/s3_box, s3_grant, s3_foreign and
 * put_list, with a server that is a JSON object and fails when it is told to. The real one is in
 * tests/system/fit_s3.bats. */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <sodium.h>

#include "common/files.h"
#include "common/s3.h"
#include "common/s3_session.h"
#include "fit/put_list.h"
#include "fit/s3_box.h"
#include "fit/s3_bucket_grant.h"
#include "fit/s3_foreign.h"
#include "fit/s3_grant.h"
#include "fit/s3_left.h"
#include "lib/json_get.h"
#include "lib/json_text.h"
#include "state/place.h"
#include "tests/unit/fit_fixture.h"

/* ---- the server ------------------------------------------------------------------------------ */

struct s3 {
    const struct s3_account *account;
};

static json_object *objects; /* keys and texts */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool long_manifests; /* each is as long as one may be */
static bool opens, takes_lists, deletes, upload_stays;
static int opened, sessions, policies;
static void (*on_put)(void);
static void (*on_text)(const char *key);
static char used[64]; /* the key of the account that has put last */

struct s3 *__wrap_s3_open(const struct s3_account *account, const char *bucket,
                          const struct s3_limits *limits, struct error *err);
void __wrap_s3_close(struct s3 *s3);
enum s3_result __wrap_s3_put_file(struct s3 *s3, const char *key, int fd, int64_t bytes,
                                  void (*saw)(const void *data, size_t len, void *arg), void *arg,
                                  struct error *err);
enum s3_result __wrap_s3_put_text(struct s3 *s3, const char *key, const char *text, size_t len,
                                  const struct s3_condition *condition, char etag[S3_ETAG_SIZE],
                                  struct error *err);
enum s3_result __wrap_s3_get_text(struct s3 *s3, const char *key, size_t max, char **text,
                                  size_t *len, char etag[S3_ETAG_SIZE], struct error *err);
enum s3_result __wrap_s3_get(struct s3 *s3, const char *key, int64_t bytes,
                             const struct s3_sink *sink, struct error *err);
enum s3_result __wrap_s3_list(struct s3 *s3, const char *prefix, bool shallow,
                              int (*each)(const struct s3_entry *entry, void *arg,
                                          struct error *err),
                              void *arg, struct error *err);
enum s3_result __wrap_s3_list_all(struct s3 *s3, const char *prefix, bool shallow,
                                  int (*each)(const struct s3_entry *entry, void *arg,
                                              struct error *err),
                                  void *arg, struct error *err);
enum s3_result __wrap_s3_delete(struct s3 *s3, const char *key, struct error *err);
enum s3_result __wrap_s3_give_up_below(struct s3 *s3, const char *prefix, s3_stuck *stuck,
                                       void *arg, struct error *err);
struct s3 *__wrap_s3_lane(struct s3 *s3, int lane);
int __wrap_s3_session_begin(const struct s3_account *account, const struct s3_session_order *order,
                            struct s3_account *session, struct error *err);
int __wrap_s3_bucket_give(const struct s3_bucket_order *order, const struct s3_scope *scope,
                          struct error *err);

struct s3 *__wrap_s3_open(const struct s3_account *account, const char *bucket,
                          const struct s3_limits *limits, struct error *err)
{
    struct s3 *s3 = opens ? calloc(1, sizeof(*s3)) : NULL;

    (void)bucket;
    (void)limits;
    opened++;
    if (s3 != NULL)
        s3->account = account;
    else
        error_set(err, "the server is away");
    return s3;
}

void __wrap_s3_close(struct s3 *s3)
{
    free(s3);
}

enum s3_result __wrap_s3_put_file(struct s3 *s3, const char *key, int fd, int64_t bytes,
                                  void (*saw)(const void *data, size_t len, void *arg), void *arg,
                                  struct error *err)
{
    char text[64] = "";

    (void)saw;
    (void)arg;
    (void)err;
    assert_true(bytes < (int64_t)sizeof(text) && read(fd, text, sizeof(text)) == bytes);
    snprintf(used, sizeof(used), "%s", s3->account->key);
    json_object_object_add(objects, key, json_object_new_string(text));
    if (on_put != NULL)
        on_put();
    return S3_OK;
}

enum s3_result __wrap_s3_put_text(struct s3 *s3, const char *key, const char *text, size_t len,
                                  const struct s3_condition *condition, char etag[S3_ETAG_SIZE],
                                  struct error *err)
{
    (void)s3;
    (void)condition;
    (void)etag;
    if (!takes_lists) {
        error_set(err, "the connection is cut");
        return S3_FAILED;
    }
    json_object_object_add(objects, key, json_object_new_string_len(text, (int)len));
    if (on_text != NULL)
        on_text(key);
    return S3_OK;
}

enum s3_result __wrap_s3_get_text(struct s3 *s3, const char *key, size_t max, char **text,
                                  size_t *len, char etag[S3_ETAG_SIZE], struct error *err)
{
    const char *found = json_get_string(objects, key);

    (void)s3;
    if (long_manifests && strstr(key, "/" STATE_MANIFEST) != NULL) {
        static const char begin[] = "{\"format\": 1, \"files\": {\"a\": 1}";

        *len = max;
        *text = malloc(max + 1);
        memset(*text, ' ', max);
        memcpy(*text, begin, strlen(begin));
        strcpy(*text + max - 1, "}");
        return S3_OK;
    }
    (void)etag;
    if (found == NULL) {
        error_set(err, "there is no such object");
        return S3_ABSENT;
    }
    *text = strdup(found);
    *len = strlen(found);
    return S3_OK;
}

enum s3_result __wrap_s3_get(struct s3 *s3, const char *key, int64_t bytes,
                             const struct s3_sink *sink, struct error *err)
{
    const char *found = json_get_string(objects, key);

    (void)s3;
    return found != NULL && sink->take(found, (size_t)bytes, sink->arg, err) == 0 ? S3_OK
                                                                                  : S3_FAILED;
}

/* In the order in which they were put, which makes no difference; what is deleted meanwhile was
 * listed before. */
enum s3_result __wrap_s3_list_all(struct s3 *s3, const char *prefix, bool shallow,
                                  int (*each)(const struct s3_entry *entry, void *arg,
                                              struct error *err),
                                  void *arg, struct error *err)
{
    json_object *listed = NULL;
    enum s3_result result = S3_OK;

    (void)s3;
    (void)shallow;
    assert_int_equal(json_object_deep_copy(objects, &listed, NULL), 0);
    json_object_object_foreach (listed, name, value) {
        struct s3_entry entry = {.key = name, .bytes = json_object_get_string_len(value)};

        if (result == S3_OK && strncmp(name, prefix, strlen(prefix)) == 0 &&
            each(&entry, arg, err) != 0)
            result = S3_FAILED;
    }
    json_object_put(listed);
    return result;
}

enum s3_result __wrap_s3_list(struct s3 *s3, const char *prefix, bool shallow,
                              int (*each)(const struct s3_entry *entry, void *arg,
                                          struct error *err),
                              void *arg, struct error *err)
{
    return __wrap_s3_list_all(s3, prefix, shallow, each, arg, err);
}

/* By several threads. */
enum s3_result __wrap_s3_delete(struct s3 *s3, const char *name, struct error *err)
{
    enum s3_result result = S3_OK;

    (void)s3;
    pthread_mutex_lock(&lock);
    if (!deletes || strstr(name, "/../") != NULL) {
        error_set(err, "delete %s: it is refused", name);
        result = S3_FAILED;
    } else {
        json_object_object_del(objects, name);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

enum s3_result __wrap_s3_give_up_below(struct s3 *s3, const char *prefix, s3_stuck *stuck,
                                       void *arg, struct error *err)
{
    (void)prefix;
    error_set(err, "give up in/../x: it is refused");
    return !upload_stays || stuck(s3, "in/../x", arg, err) == 0 ? S3_OK : S3_FAILED;
}

struct s3 *__wrap_s3_lane(struct s3 *s3, int lane)
{
    (void)lane;
    return s3;
}

int __wrap_s3_session_begin(const struct s3_account *account, const struct s3_session_order *order,
                            struct s3_account *session, struct error *err)
{
    (void)order;
    sessions++;
    *session = (struct s3_account){0};
    return opens ? s3_account_copy(account, session) : error_set(err, "the server is away");
}

int __wrap_s3_bucket_give(const struct s3_bucket_order *order, const struct s3_scope *scope,
                          struct error *err)
{
    (void)order;
    (void)scope;
    (void)err;
    policies++;
    return 0;
}

/* ---- the places ------------------------------------------------------------------------------ */

#define ENDPOINT "http://127.0.0.1:1"

static struct s3_box_key *key;

static bool has(const char *name)
{
    return access(at(name), F_OK) == 0;
}

static int begin(void **state)
{
    (void)state;
    objects = json_object_new_object();
    opens = takes_lists = deletes = true;
    upload_stays = false;
    opened = sessions = policies = 0;
    on_put = NULL;
    on_text = NULL;
    key = s3_box_key_create();
    return key != NULL && make_dir() && setenv("HOME", dir, 1) == 0 &&
                   setenv("AWS_ENDPOINT_URL", ENDPOINT, 1) == 0 &&
                   setenv("AWS_ACCESS_KEY_ID", "own", 1) == 0 &&
                   setenv("AWS_SECRET_ACCESS_KEY", "secret", 1) == 0 &&
                   mkdir(at("from"), 0700) == 0 && mkdir(at("to"), 0700) == 0
               ? 0
               : -1;
}

static int end(void **state)
{
    (void)state;
    s3_box_key_destroy(key);
    json_object_put(objects);
    remove_dir();
    return 0;
}

/* ---- boxes ----------------------------------------------------------------------------------- */

static struct s3_box a_box(const char *name, double until)
{
    return (struct s3_box){.account = {.key = (char *)(uintptr_t)name,
                                       .secret = (char *)(uintptr_t) "s",
                                       .region = (char *)(uintptr_t) "r",
                                       .endpoint = (char *)(uintptr_t)ENDPOINT},
                           .until = until};
}

static void test_box(void **state)
{
    struct s3_box_key *other = s3_box_key_create();
    const struct s3_box box = a_box("KEY", 17);
    struct s3_box got;
    struct error err = {""};
    char *text = s3_box_seal(&box, s3_box_key_name(key), &err);

    (void)state;
    assert_non_null(text);
    assert_null(strstr(text, "KEY"));
    assert_int_equal(s3_box_open(text, key, &got, &err), 0);
    assert_string_equal(got.account.key, "KEY");
    assert_string_equal(got.account.endpoint, ENDPOINT);
    assert_null(got.account.token);
    assert_true(got.until == 17);
    s3_box_clear(&got);
    expect_error(s3_box_open(text, other, &got, &err), &err, "for another process");
    text[strlen(text) / 2] ^= 1;
    expect_error(s3_box_open(text, key, &got, &err), &err, "for another process");
    expect_error(s3_box_open("", key, &got, &err), &err, "for another process");
    expect_error(s3_box_open("!", key, &got, &err), &err, "for another process");
    free(text);
    s3_box_key_destroy(other);
}

/* Who seals a box may be anybody. */
static void test_what_is_no_box(void **state)
{
    static const struct {
        const char *key, *region, *endpoint, *sid;
    } rows[] = {
        {"a b", "r", ENDPOINT, ""},         {"a\nX-Evil: 1", "r", ENDPOINT, ""},
        {"a", "r.evil.example/", NULL, ""}, {"a", "r", "file:///etc/passwd", ""},
        {"a", "r", ENDPOINT, "../x"},       {"a", NULL, ENDPOINT, ""},
    };
    struct error err = {""};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct s3_box box = a_box(rows[i].key, 17), got;
        char *text;

        box.account.region = (char *)(uintptr_t)rows[i].region;
        box.account.endpoint = (char *)(uintptr_t)rows[i].endpoint;
        snprintf(box.sid, sizeof(box.sid), "%s", rows[i].sid);
        text = s3_box_seal(&box, s3_box_key_name(key), &err);
        assert_non_null(text);
        expect_error(s3_box_open(text, key, &got, &err), &err, "are none");
        free(text);
    }
}

static void test_key_names(void **state)
{
    const struct s3_box box = a_box("KEY", 17);
    struct error err = {""};
    char name[80];

    (void)state;
    assert_true(s3_box_key_ok(s3_box_key_name(key)));
    snprintf(name, sizeof(name), "%s", s3_box_key_name(key));
    name[3] = 'g';
    assert_false(s3_box_key_ok(name));
    assert_null(s3_box_seal(&box, name, &err));
    name[3] = '\0';
    assert_false(s3_box_key_ok(name) || s3_box_key_ok(""));
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void test_lists(void **state)
{
    static const char *const wrong[] = {
        "",
        "[]",
        "{}",
        "{\"attempt\": \"0123456789abcdef\", \"files\": []}",
        "{\"attempt\": \"0123456789abcdef\", \"files\": [1]}",
        "{\"attempt\": \"0123456789abcdef\", \"files\": [\"../x\"]}",
        "{\"attempt\": \"0123456789abcdef\", \"files\": [\"complete.json\"]}",
        "{\"attempt\": \"0123456789abcdef\", \"files\": [\".incoming/x\"]}",
        "{\"attempt\": \"../../../../../x\", \"files\": [\"x\"]}",
        "{\"attempt\": \"0123\", \"files\": [\"x\"]}",
    };
    struct put_list list, again;
    struct error err;
    char *text;

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        assert_int_equal(put_list_parse(wrong[i], strlen(wrong[i]), &list, &err), -1);
    put_list_begin(&list);
    assert_null(put_list_text(&list, &err));
    json_object_array_add(list.names, json_object_new_string("a/b"));
    text = put_list_text(&list, &err);
    assert_int_equal(put_list_parse(text, strlen(text), &again, &err), 0);
    assert_string_equal(list.attempt, again.attempt);
    assert_int_equal(json_object_array_length(again.names), 1);
    put_list_clear(&again);
    put_list_begin(&again);
    assert_string_not_equal(list.attempt, again.attempt);
    put_list_clear(&again);
    put_list_clear(&list);
    free(text);
}

/* ---- the trainer ----------------------------------------------------------------------------- */

static bool never(void *arg)
{
    (void)arg;
    return false;
}

static void send_box(const char *name, double later)
{
    const struct s3_box box = a_box(name, (double)time(NULL) + later);
    char *text = s3_box_seal(&box, s3_box_key_name(key), NULL);

    assert_non_null(text);
    put("keys", text);
    free(text);
}

static int put_all(struct error *err)
{
    char keys[128];
    struct s3_source source = {.key = key, .path = keys, .unwanted = never};
    int rc;

    snprintf(keys, sizeof(keys), "%s", at("keys"));
    rc = s3_foreign_put(&source, at("from"), "s3://bbb/in", err);
    s3_source_clear(&source);
    return rc;
}

/* What data has taken, targets do not get once more: also as files of the same trainer. */
static void test_one_room(void **state)
{
    struct room room = {.found = true, .bytes = 10, .files = 10};
    char keys[128], result[PATH_MAX];
    struct s3_source source = {.key = key, .path = keys, .unwanted = never, .room = &room};
    struct error err = {""};

    (void)state;
    send_box("ONE", 3600);
    snprintf(keys, sizeof(keys), "%s", at("keys"));
    json_object_object_add(objects, "data/x", json_object_new_string("123456"));
    assert_int_equal(s3_foreign_get(&source, "s3://bbb/data", at("copy"), result, &err), 0);
    assert_int_equal(room.bytes, 4);
    expect_error(s3_foreign_get(&source, "s3://bbb/data", at("other"), result, &err), &err,
                 "no room for a copy");
    source.room = NULL;
    assert_int_equal(s3_foreign_get(&source, "s3://bbb/data", at("other"), result, &err), 0);
    s3_source_clear(&source);
}

/* A box for a server that this user has not named is refused each time that somebody looks. */
static void test_another_server(void **state)
{
    char keys[128], result[PATH_MAX];
    struct s3_source source = {.key = key, .path = keys, .unwanted = never};
    struct error err = {""};

    (void)state;
    json_object_object_add(objects, "data/x", json_object_new_string("123456"));
    snprintf(keys, sizeof(keys), "%s", at("keys"));
    send_box("ONE", 3600);
    assert_int_equal(setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:2", 1), 0);
    for (int i = 0; i < 2; i++)
        expect_error(s3_foreign_get(&source, "s3://bbb/data", at("copy"), result, &err), &err,
                     "uses the S3 server");
    assert_int_equal(opened, 0);
    s3_source_clear(&source);
}

/* An attempt that was broken off has put other files, and puts them still. */
static void test_second_attempt(void **state)
{
    struct error err = {""};

    (void)state;
    send_box("first", 1000);
    put("from/a", "old");
    put("from/b", "old");
    takes_lists = false;
    expect_error(put_all(&err), &err, "cut");
    assert_int_equal(json_object_object_length(objects), 2);
    expect_error(s3_foreign_take("s3://bbb/in", at("to"), &err), &err,
                 "the list of what the trainer has put");
    takes_lists = true;
    assert_int_equal(unlink(at("from/b")), 0);
    put("from/a", "new");
    assert_int_equal(put_all(&err), 0);
    json_object_object_add(objects, "in/stray", json_object_new_string("x"));
    assert_int_equal(s3_foreign_take("s3://bbb/in", at("to"), &err), 0);
    assert_true(has("to/a") && !has("to/b") && !has("to/stray"));
}

static void forget_one(void)
{
    json_object *kept = objects;

    objects = json_object_new_object(); /* nobody has it any more */
    json_object_put(kept);
    on_put = NULL;
}

static void test_named_and_not_put(void **state)
{
    struct error err = {""};

    (void)state;
    send_box("first", 1000);
    put("from/a", "a");
    on_put = forget_one;
    assert_int_equal(put_all(&err), 0);
    expect_error(s3_foreign_take("s3://bbb/in", at("to"), &err), &err,
                 "the trainer has not put what it names: \"a\"");
    assert_false(has("to/a"));
}

static void add_object(const char *name)
{
    json_object_object_add(objects, name, json_object_new_string("x"));
}

/* A trainer has put keys that cannot be deleted: the others are, and the fit goes on. */
static void test_what_stays(void **state)
{
    struct error err = {""};

    (void)state;
    for (int i = 0; i < 2500; i++) {
        char name[32];

        snprintf(name, sizeof(name), i % 100 == 0 ? "in/../%d" : "in/%d", i);
        add_object(name);
    }
    add_object("in/directory/");
    add_object("in/files.json");
    add_object("other/a");
    upload_stays = true;
    if (s3_foreign_clear("s3://bbb/in", &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(json_object_object_length(objects), 25 + 1);
    assert_non_null(json_get_string(objects, "in/../0"));
    assert_non_null(json_get_string(objects, "other/a"));
}

/* … but not if nothing can be deleted. */
static void test_nothing_goes(void **state)
{
    struct error err = {""};

    (void)state;
    add_object("in/a");
    deletes = false;
    expect_error(s3_foreign_clear("s3://bbb/in", &err), &err, "it is refused");
    assert_int_equal(json_object_object_length(objects), 1);
    upload_stays = true;
    expect_error(s3_foreign_clear("s3://bbb/in", &err), &err, "it is refused");
    deletes = true;
    assert_int_equal(s3_foreign_clear("s3://bbb/in", &err), 0);
    assert_int_equal(json_object_object_length(objects), 0);
}

static bool away;

static void renew(void)
{
    send_box("second", 2000);
    opens = !away;
    on_put = NULL;
}

static void put_two(bool is_away)
{
    struct error err = {""};

    away = is_away;
    send_box("first", 1000);
    opened = 0;
    on_put = renew;
    if (put_all(&err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(opened, 2); /* not for each file */
}

/* The server is away when new keys come: the old ones last. */
static void test_new_keys(void **state)
{
    (void)state;
    put("from/a", "a");
    put("from/b", "b");
    put_two(false);
    assert_string_equal(used, "second");
    put_two(true);
    assert_string_equal(used, "first");
}

/* ---- proofs ---------------------------------------------------------------------------------- */

#define PROOF S3_PROOF "Sid7"

static int asked;

static bool at_once(void *arg)
{
    (void)arg;
    return true;
}

static int prove_at(const char *bucket, const char *prefix, struct error *err)
{
    char secret[S3_BOX_SECRET_SIZE];
    struct s3_place place = {"", ""};
    const struct s3_bucket_asker asker = {.prefix = prefix,
                                          .sid = "Sid7",
                                          .key_name = s3_box_key_name(key),
                                          .secret = secret,
                                          .unwanted = at_once};
    struct s3 s3 = {0};

    snprintf(place.bucket, sizeof(place.bucket), "%s", bucket);
    snprintf(place.prefix, sizeof(place.prefix), "%s", prefix);
    s3_box_key_secret(key, &place, "Sid7", secret);
    return s3_bucket_check_proof(&s3, &asker, err);
}

static int prove(const char *bucket, struct error *err)
{
    return prove_at(bucket, "", err);
}

/* As the runner of a guest who may read what the trainer has put. */
static void reads_it(const char *name)
{
    json_object *buckets = json_object_new_array();
    struct s3_account account = {0};

    if (strcmp(name, PROOF S3_ASKED) == 0) {
        asked++;
        json_object_array_add(buckets, json_object_new_string("bbb"));
        s3_bucket_answer(&account, buckets, "Sid7", s3_box_key_name(key));
        assert_int_equal(json_object_array_length(buckets), 0);
    }
    json_object_put(buckets);
}

static void reads_anna(const char *name)
{
    json_object *places = json_object_new_array();
    struct s3_account account = {0};

    if (strcmp(name, "anna/" PROOF S3_ASKED) == 0) {
        json_object_array_add(places, json_object_new_string("bbb/anna/"));
        s3_bucket_answer(&account, places, "Sid7", s3_box_key_name(key));
        assert_int_equal(json_object_array_length(places), 0);
    }
    json_object_put(places);
}

/* As one who may only write: it says something. */
static void guesses(const char *name)
{
    char text[256];

    if (strcmp(name, PROOF S3_ASKED) != 0)
        return;
    snprintf(text, sizeof(text), "%s %064d", s3_box_key_name(key), 0);
    json_object_object_add(objects, PROOF, json_object_new_string(text));
}

/* A bucket into which everybody may write is not everybody's to read. */
static void test_proofs(void **state)
{
    struct s3_box_key *other = s3_box_key_create();
    struct error err = {""};

    (void)state;
    asked = 0;
    json_object_object_add(objects, PROOF, json_object_new_string(s3_box_key_name(other)));
    expect_error(prove("bbb", &err), &err, "is another's");
    json_object_object_add(objects, PROOF, json_object_new_string(s3_box_key_name(key)));
    expect_error(prove("bbb", &err), &err, "nobody has read there");
    on_text = guesses;
    expect_error(prove("bbb", &err), &err, "nobody has read there");
    takes_lists = false;
    expect_error(prove("bbb", &err), &err, "does not let this trainer in: the connection is cut");
    takes_lists = true;
    on_text = reads_it;
    if (prove("bbb", &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(asked, 1);
    assert_int_equal(prove("bbb", &err), 0); /* it is there */
    assert_int_equal(asked, 1);
    /* What was read in one bucket says nothing of another one. */
    on_text = NULL;
    expect_error(prove("ccc", &err), &err, "nobody has read there");
    s3_box_key_destroy(other);
}

/* Who may write and read in one place of a bucket has proved nothing for another one. */
static void test_proofs_of_places(void **state)
{
    struct error err = {""};

    (void)state;
    asked = 0;
    json_object_object_add(objects, PROOF, json_object_new_string(s3_box_key_name(key)));
    on_text = reads_it;
    assert_int_equal(prove_at("bbb", "", &err), 0);
    assert_int_equal(prove_at("bbb", "anna/", &err), -1);
    json_object_object_add(objects, "anna/" PROOF, json_object_new_string(s3_box_key_name(key)));
    expect_error(prove_at("bbb", "anna/", &err), &err, "beside anna/" PROOF);
    /* The runner answers there if that is one of its places. */
    on_text = reads_anna;
    assert_int_equal(prove_at("bbb", "anna/", &err), 0);
}

/* ---- the runner ------------------------------------------------------------------------------ */

static struct home home;
static struct spec spec;

static struct s3_grant *a_grant(const char *service, const char *arn)
{
    static const char text[] = "{\"trainData\": \"s3://bbb/data\"}";
    int64_t id;

    assert_int_equal(home_open(&home, service, NULL), 0);
    assert_int_equal(home_add(&home, json_object_new_object(), &id, NULL), 0);
    json_object_put(spec.json);
    spec = (struct spec){.json = json_text_parse(text, strlen(text), NULL),
                         .service = "s",
                         .grant = arn,
                         .grant_time = 100};
    return s3_grant_create(&home, 1, &spec);
}

/* STS is away when a session is renewed: that is tried from time to time. */
static void test_renewal(void **state)
{
    struct s3_grant *grant = a_grant("s", "arn:aws:iam::1:role/fit");
    const char *name = s3_box_key_name(key);
    const struct home_record record = {0};
    double now = (double)time(NULL);
    struct error err = {""};
    char *box;

    (void)state;
    assert_int_equal(s3_grant_give(grant, &record, name, now - 60, &err), 0);
    assert_int_equal(sessions, 1);
    opens = false;
    assert_null(s3_grant_box(grant, &record, name, now, &err));
    assert_string_equal(err.text, "the server is away");
    assert_int_equal(sessions, 2);
    assert_null(s3_grant_box(grant, &record, name, (double)time(NULL), &err));
    assert_string_equal(err.text, "the server is away");
    assert_int_equal(sessions, 2);
    opens = true;
    now = (double)time(NULL) + 10;
    box = s3_grant_box(grant, &record, name, now, &err);
    assert_non_null(box);
    free(box);
    s3_grant_delivered(grant, name);
    assert_null(s3_grant_box(grant, &record, name, now, &err));
    assert_string_equal(err.text, "");
    s3_grant_destroy(grant);
}

/* What the log says when sessions are asked of that server; "": the one of the objects. */
static char *log_of_session(const char *server, const char *arn)
{
    struct s3_grant *grant = a_grant("s", arn);
    const struct home_record record = {0};
    double now = (double)time(NULL);
    int log = open(at("log"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), own = dup(2);
    struct error err = {""};
    char *text;

    assert_int_equal(setenv("AWS_ENDPOINT_URL_STS", server, 1), 0);
    assert_int_equal(dup2(log, 2), 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(s3_grant_give(grant, &record, s3_box_key_name(key), now + i * 90, &err),
                         0);
    assert_int_equal(dup2(own, 2), 2);
    close(own);
    close(log);
    unsetenv("AWS_ENDPOINT_URL_STS");
    s3_grant_destroy(grant);
    assert_int_equal(dir_remove(home.dir, NULL), 0);
    text = file_read(at("log"), 4096, NULL, NULL);
    assert_non_null(text);
    return text;
}

/* The secret of a session is in what the server says. */
static void test_keys_in_clear(void **state)
{
    static const char role[] = "arn:aws:iam::1:role/fit";
    char *text = log_of_session("http://sts.example.org", role);
    const char *note = strstr(text, "note: http://sts.example.org is not encrypted");

    (void)state;
    assert_non_null(note);
    assert_null(strstr(note + 1, "note:")); /* once */
    free(text);
    assert_int_equal(setenv("AWS_ENDPOINT_URL", "http://s3.example.org", 1), 0);
    text = log_of_session("", role);
    assert_non_null(strstr(text, "note: http://s3.example.org is"));
    free(text);
    text = log_of_session("https://sts.example.org", role);
    assert_string_equal(text, "");
    free(text);
    text = log_of_session("http://127.0.0.1:9000", role);
    assert_string_equal(text, "");
    free(text);
    /* No secret comes. */
    text = log_of_session("", "arn:aws:iam:::user/anna");
    assert_string_equal(text, "");
    free(text);
}

/* A trainer names another key each second: the buckets' policies do not change as often. */
static void test_other_keys(void **state)
{
    struct s3_grant *grant = a_grant("s", "arn:aws:iam:::user/anna");
    struct s3_box_key *other = s3_box_key_create();
    const struct home_record record = {0};
    double now = (double)time(NULL);
    struct error err = {""};
    char *box;

    (void)state;
    box = s3_grant_box(grant, &record, s3_box_key_name(key), now, &err);
    assert_non_null(box);
    free(box);
    assert_null(s3_grant_box(grant, &record, s3_box_key_name(other), (double)time(NULL), &err));
    assert_non_null(strstr(err.text, "another key"));
    assert_int_equal(policies, 1);
    box = s3_grant_box(grant, &record, s3_box_key_name(other), (double)time(NULL) + 10, &err);
    assert_non_null(box);
    free(box);
    assert_int_equal(policies, 2);
    s3_box_key_destroy(other);
    s3_grant_destroy(grant);
}

static char *sid_of(const char *service, struct s3_grant *grant)
{
    const struct home_record record = {0};
    json_object *json;
    char *sid;

    assert_int_equal(home_open(&home, service, NULL), 0);
    assert_int_equal(s3_grant_give(grant, &record, s3_box_key_name(key), (double)time(NULL), NULL),
                     0);
    json = home_read(&home, 1, HOME_S3_GRANT_FILE, NULL);
    sid = strdup(json_get_string(json, "sid"));
    json_object_put(json);
    s3_grant_destroy(grant);
    return sid;
}

/* Homes of two clusters may have the same path. */
static void test_sids(void **state)
{
    char *first = sid_of("s", a_grant("s", "arn:aws:iam:::user/anna")), *again, *other;

    (void)state;
    again = sid_of("s", s3_grant_create(&home, 1, &spec));
    assert_string_equal(first, again);
    assert_int_equal(dir_remove(home.dir, NULL), 0);
    other = sid_of("s", a_grant("s", "arn:aws:iam:::user/anna"));
    assert_string_not_equal(first, other);
    free(first);
    free(again);
    free(other);
}

/* ---- after the end --------------------------------------------------------------------------- */

/* A fit of that status, whose result was to be state 7, and whose trainer has keys until then. */
static int64_t a_fit(const char *service, enum fit_status status, double until)
{
    static const char text[] = "{\"mode\": \"multi\", \"service\": \"s\", \"model\": \"m\","
                               " \"place\": \"/m\", \"states\": \"s3://bbb/m\","
                               " \"trainer\": {\"service\": \"t\", \"user\": \"anna\"},"
                               " \"within\": {\"start\": 1, \"fit\": 1, \"target\": 1}}";
    struct home_record record = {.fit = {.status = status}, .state = 7, .made = true};
    json_object *grant = json_object_new_object();
    int64_t id;

    assert_int_equal(home_open(&home, service, NULL), 0);
    assert_int_equal(home_add(&home, json_text_parse(text, strlen(text), NULL), &id, NULL), 0);
    assert_int_equal(home_record_write(&home, id, &record, NULL), 0);
    json_object_object_add(grant, "until", json_object_new_double(until));
    assert_int_equal(home_write(&home, id, HOME_S3_GRANT_FILE, grant, NULL), 0);
    return id;
}

/* Until the session ends, its trainer puts more, and each later fit removes that. */
static void test_put_later(void **state)
{
    (void)state;
    assert_int_equal(a_fit("s", FIT_FAILED, 100), 1);
    assert_int_equal(a_fit("s", FIT_WAIT_FOR_FIT, 100), 2);
    add_object("m/.incoming-000007-1/late");
    add_object("m/.incoming-000007-2/a");
    add_object("m/.incoming-000007-3/of another service");
    s3_left_clear(&home, 50);
    assert_int_equal(json_object_object_length(objects), 2);
    assert_null(json_get_string(objects, "m/.incoming-000007-1/late"));
    add_object("m/.incoming-000007-1/later");
    deletes = false;
    s3_left_clear(&home, 150);
    assert_true(home_has(&home, 1, HOME_S3_GRANT_FILE));
    deletes = true;
    s3_left_clear(&home, 150);
    assert_int_equal(json_object_object_length(objects), 2);
    assert_false(home_has(&home, 1, HOME_S3_GRANT_FILE));
    assert_true(home_has(&home, 2, HOME_S3_GRANT_FILE)); /* it is not over */
}

/* A number that another service has claimed meanwhile, for a fit of the same number. */
static void test_claimed_by_others(void **state)
{
    (void)state;
    a_fit("s", FIT_FAILED, 100);
    add_object("m/000007.partial");
    add_object("m/.incoming-000007-1/of another service");
    s3_left_clear(&home, 50);
    assert_int_equal(json_object_object_length(objects), 2);
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, begin, end)

/* ---- states ---------------------------------------------------------------------------------- */

/* Each counts as if it were so many, so that few are read. test_states.c knows the exact sum. */
#define HEAVY 8

int __wrap_states_weigh(struct states *states, const struct state *state, size_t len,
                        struct error *err);
int __real_states_weigh(struct states *states, const struct state *state, size_t len,
                        struct error *err);

int __wrap_states_weigh(struct states *states, const struct state *state, size_t len,
                        struct error *err)
{
    return __real_states_weigh(states, state, long_manifests ? HEAVY * len : len, err);
}

/* They stay in memory, of all states. */
static void test_long_manifests(void **state)
{
    const struct s3_limits limits = S3_LIMITS;
    struct states states = {0};
    struct error err = {""};
    struct place *place = place_open("s3://bbb/m", &limits, &err);
    size_t most = STATES_TEXT_MAX / STATE_MANIFEST_MAX / HEAVY;

    (void)state;
    assert_non_null(place);
    long_manifests = true;
    for (size_t i = 1; i <= most + 1; i++) {
        char name[64];

        snprintf(name, sizeof(name), "m/%06zu", i);
        json_object_object_add(objects, name, json_object_new_string("")); /* as a prefix */
        strcat(name, "/a");
        json_object_object_add(objects, name, json_object_new_string("x"));
        if (i < most)
            continue;
        if (i == most) {
            assert_int_equal(place_list(place, &states, &err), 0);
            assert_int_equal(states.list[0].kind, STATE_IS_COMPLETE);
            states_clear(&states);
        } else {
            assert_int_equal(place_list(place, &states, &err), -1);
            assert_string_equal(err.text, "the manifests of all states have more than 256 MiB");
        }
    }
    long_manifests = false;
    place_close(place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SERVER(test_box),
        WITH_SERVER(test_what_is_no_box),
        WITH_SERVER(test_key_names),
        cmocka_unit_test(test_lists),
        WITH_SERVER(test_second_attempt),
        WITH_SERVER(test_named_and_not_put),
        WITH_SERVER(test_what_stays),
        WITH_SERVER(test_nothing_goes),
        WITH_SERVER(test_new_keys),
        WITH_SERVER(test_proofs),
        WITH_SERVER(test_proofs_of_places),
        WITH_SERVER(test_renewal),
        WITH_SERVER(test_keys_in_clear),
        WITH_SERVER(test_other_keys),
        WITH_SERVER(test_sids),
        WITH_SERVER(test_put_later),
        WITH_SERVER(test_claimed_by_others),
        WITH_SERVER(test_one_room),
        WITH_SERVER(test_another_server),
        WITH_SERVER(test_long_manifests),
    };

    return sodium_init() >= 0 ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
