/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Access to S3 for a trainer of another user (s3_grant.h). */
#include "fit/s3_grant.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sodium.h>

#include "common/log.h"
#include "common/s3_session.h"
#include "fit/grant.h"
#include "fit/s3_box.h"
#include "fit/s3_bucket_grant.h"
#include "lib/json_get.h"
#include "lib/s3_policy.h"
#include "lib/states.h"
#include "lib/text.h"

/* Seconds between two changes, whatever the trainer says, and whatever fails; and at most that part
 * of the time for which access is given. */
#define AGAIN      10.0
#define LOOK_PAUSE 5.0 /* seconds between two looks whether the replica asks for a proof */
#define AGAIN_PART 0.1
#define SID        "ElasticFit"

struct s3_grant {
    const struct home *home;
    const struct spec *spec;
    int64_t id;
    struct s3_box box; /* its time is over: nothing is given yet */
    char *key;         /* the name of the key that access was given to last; NULL: to none */
    bool delivered;    /* the replica with that key has the box */
    bool noted;        /* that its keys can be read on their way */
    json_object *open; /* … the places where it has not asked for a proof yet; NULL: in none */
    double looked;     /* … when that was looked at last */
    double tried;      /* when it was given last, or could not be … */
    struct error why;  /* … for that reason */
};

/* ---- places ---------------------------------------------------------------------------------- */

static bool is_on_s3(const struct spec *spec, const char *key)
{
    const char *text = json_get_string(spec->json, key);

    return text != NULL && s3_place_is(text);
}

bool s3_grant_is_needed(const struct spec *spec)
{
    return spec->states != NULL || is_on_s3(spec, "trainData") || is_on_s3(spec, "targetsData");
}

/* Each fit has one of its own: a session of one that has ended may hold for a while. */
struct home_path s3_grant_incoming(const struct spec *spec, int64_t id, int64_t state)
{
    struct home_path path = {""};
    char name[STATE_NAME_SIZE];

    state_name(name, state);
    if (spec->states != NULL)
        snprintf(path.text, sizeof(path.text), "%.2048s/" GRANT_INCOMING "-%s-%" PRId64,
                 spec->states, name, id);
    return path;
}

struct home_path s3_grant_previous(const struct spec *spec, int64_t previous)
{
    struct home_path path = {""};
    char name[STATE_NAME_SIZE];

    state_name(name, previous);
    if (spec->states != NULL && previous > 0)
        snprintf(path.text, sizeof(path.text), "%.2048s/%s", spec->states, name);
    return path;
}

static int add_read(struct s3_scope *scope, const char *url, struct error *err)
{
    if (url == NULL || !s3_place_is(url))
        return 0;
    return s3_place_parse(url, &scope->read[scope->reads++], err) == 0
               ? s3_scope_check(&scope->read[scope->reads - 1], err)
               : -1;
}

static int scope_of(const struct spec *spec, int64_t id, int64_t state, int64_t previous,
                    struct s3_scope *scope, struct error *err)
{
    struct home_path to = s3_grant_incoming(spec, id, state);

    *scope = (struct s3_scope){.writes = to.text[0] != '\0'};
    if (add_read(scope, json_get_string(spec->json, "trainData"), err) != 0 ||
        add_read(scope, json_get_string(spec->json, "targetsData"), err) != 0 ||
        add_read(scope, s3_grant_previous(spec, previous).text, err) != 0)
        return -1;
    if (!scope->writes)
        return 0;
    return s3_place_parse(to.text, &scope->write, err) == 0 ? s3_scope_check(&scope->write, err)
                                                            : -1;
}

int s3_grant_check(const struct spec *spec, struct error *err)
{
    struct s3_scope scope;

    if (spec->grant == NULL || s3_grant_kind(spec->grant) == S3_GRANT_NONE)
        return error_set(err, "data or states are on S3: for a trainer of another user the job "
                              "file needs grant in fit, such as "
                              "arn:aws:iam::123456789012:role/fit");
    return scope_of(spec, 1, STATE_NUMBER_MAX, 1, &scope, err);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct s3_grant *s3_grant_create(const struct home *home, int64_t id, const struct spec *spec)
{
    struct s3_grant *grant = calloc(1, sizeof(*grant));

    if (grant != NULL)
        *grant = (struct s3_grant){.home = home, .spec = spec, .id = id};
    return grant;
}

static void forget(struct s3_grant *grant)
{
    s3_box_clear(&grant->box);
    free(grant->key);
    grant->key = NULL;
    grant->delivered = false;
    json_object_put(grant->open);
    grant->open = NULL;
}

void s3_grant_destroy(struct s3_grant *grant)
{
    if (grant == NULL)
        return;
    forget(grant);
    free(grant);
}

/* ---- giving ---------------------------------------------------------------------------------- */

static bool is_by_policy(const struct s3_grant *grant)
{
    return s3_grant_kind(grant->spec->grant) == S3_GRANT_POLICY;
}

static bool is_for(const struct s3_grant *grant, const char *key_name)
{
    return grant->key != NULL && strcmp(grant->key, key_name) == 0;
}

/* Policies name the key; a session is for whoever has it. */
static bool lasts(const struct s3_grant *grant, const char *key_name, double now)
{
    return now < grant->box.until - grant->spec->grant_time / 2 &&
           (!is_by_policy(grant) || is_for(grant, key_name));
}

/* The same in each process that gives it once more, and of no other fit of anybody. */
static void make_sid(const struct s3_grant *grant, char sid[S3_SID_MAX + 1])
{
    json_object *json = home_read(grant->home, grant->id, HOME_S3_GRANT_FILE, NULL);
    const char *its = json_get_string(json, "sid");
    unsigned char bytes[16];
    char hex[2 * sizeof(bytes) + 1];

    randombytes_buf(bytes, sizeof(bytes));
    sodium_bin2hex(hex, sizeof(hex), bytes, sizeof(bytes));
    if (its != NULL && strlen(its) <= S3_SID_MAX && strncmp(its, SID, strlen(SID)) == 0 &&
        text_made_of(its, ""))
        snprintf(sid, S3_SID_MAX + 1, "%s", its);
    else
        snprintf(sid, S3_SID_MAX + 1, SID "%s", hex);
    json_object_put(json);
}

/* Before it is given: so the file never says too little. */
static int note(const struct s3_grant *grant, const struct s3_scope *scope, const char *sid,
                double until, struct error *err)
{
    json_object *json = json_object_new_object();

    json_object_object_add(json, "kind",
                           json_object_new_string(is_by_policy(grant) ? "policy" : "sts"));
    json_object_object_add(json, "to", json_object_new_string(grant->spec->grant));
    json_object_object_add(json, "until", json_object_new_double(until));
    if (is_by_policy(grant)) {
        json_object_object_add(json, "sid", json_object_new_string(sid));
        json_object_object_add(json, "buckets", s3_bucket_places(scope));
    }
    return home_write(grant->home, grant->id, HOME_S3_GRANT_FILE, json, err);
}

/* As state/place_bucket.c does for states. The keys that come open no more than the trainer may. */
static void note_if_open(struct s3_grant *grant, const struct s3_account *own)
{
    const char *server = s3_session_server(own);

    if (grant->noted || server == NULL || !s3_endpoint_is_open(server))
        return;
    grant->noted = true;
    log_info("fit %" PRId64 ": note: %s is not encrypted: whoever is on the way can read the keys "
             "that the trainer gets, with their secret; use https",
             grant->id, error_value(server).text);
}

static int begin_session(struct s3_grant *grant, const struct s3_account *own,
                         const struct s3_scope *scope, struct s3_box *box, struct error *err)
{
    char name[64], *policy = s3_session_policy(scope, grant->spec->grant);
    const struct s3_session_order order = {.role = grant->spec->grant,
                                           .name = name,
                                           .policy = policy,
                                           .seconds = (int)grant->spec->grant_time};
    int rc;

    snprintf(name, sizeof(name), "fit-%" PRId64 "-%.32s", grant->id, grant->spec->service);
    note_if_open(grant, own);
    rc = policy != NULL ? s3_session_begin(own, &order, &box->account, err)
                        : error_set(err, "out of memory");
    free(policy);
    return rc;
}

/* The trainer has keys: it is told which server. */
static int change_policies(const struct s3_grant *grant, const struct s3_account *own,
                           const struct s3_scope *scope, const char *key_name, struct s3_box *box,
                           struct error *err)
{
    const struct s3_bucket_order order = {.account = own,
                                          .arn = grant->spec->grant,
                                          .sid = box->sid,
                                          .key_name = key_name,
                                          .until = box->until};

    return s3_bucket_give(&order, scope, err) == 0 ? s3_account_load_server(&box->account, err)
                                                   : -1;
}

static int give(struct s3_grant *grant, const struct s3_scope *scope, const char *key_name,
                double now, struct error *err)
{
    struct s3_box box = {.until = now + grant->spec->grant_time};
    struct s3_account own;
    int rc = s3_account_load(&own, err);

    if (rc != 0)
        return -1;
    if (is_by_policy(grant))
        make_sid(grant, box.sid);
    rc = note(grant, scope, box.sid, box.until, err);
    if (rc == 0)
        rc = is_by_policy(grant) ? change_policies(grant, &own, scope, key_name, &box, err)
                                 : begin_session(grant, &own, scope, &box, err);
    s3_account_clear(&own);
    if (rc != 0)
        return -1;
    forget(grant);
    grant->box = box;
    grant->key = strdup(key_name);
    return 0;
}

int s3_grant_give(struct s3_grant *grant, const struct home_record *record, const char *key_name,
                  double now, struct error *err)
{
    struct s3_scope scope;

    if (lasts(grant, key_name, now))
        return 0;
    return scope_of(grant->spec, grant->id, record->state, record->previous, &scope, err) == 0
               ? give(grant, &scope, key_name, now, err)
               : -1;
}

/* Is it too early for one more change? What was given before lasts for a while. */
static bool is_early(struct s3_grant *grant, double now, struct error *err)
{
    double part = AGAIN_PART * grant->spec->grant_time;

    if (now < grant->tried || now >= grant->tried + (part < AGAIN ? part : AGAIN))
        return false;
    if (grant->why.text[0] != '\0')
        *err = grant->why;
    else
        error_set(err, "the trainer has another key for S3 again; access follows");
    return true;
}

/* err.text is empty if there was no failure. */
static int give_again(struct s3_grant *grant, const struct home_record *record,
                      const char *key_name, double now, struct error *err)
{
    int rc;

    if (is_early(grant, now, err))
        return -1;
    rc = s3_grant_give(grant, record, key_name, now, err);
    grant->tried = (double)time(NULL);
    grant->why = rc == 0 ? (struct error){""} : *err;
    return rc;
}

/* A session need not be given once more for another key. */
static int set_key(struct s3_grant *grant, const char *key_name, struct error *err)
{
    if (is_for(grant, key_name))
        return 0;
    free(grant->key);
    grant->key = strdup(key_name);
    grant->delivered = false;
    return grant->key != NULL ? 0 : error_set(err, "out of memory");
}

/* The replica opens one place after the other, and asks beside each of them. If that cannot be read
 * now, it waits for a while. */
static void answer(struct s3_grant *grant, const struct home_record *record, double now)
{
    struct s3_scope scope;
    struct s3_account own;
    struct error err;

    if (!is_by_policy(grant) || (now >= grant->looked && now < grant->looked + LOOK_PAUSE))
        return;
    grant->looked = now;
    if (grant->open == NULL &&
        scope_of(grant->spec, grant->id, record->state, record->previous, &scope, &err) == 0)
        grant->open = s3_bucket_places(&scope);
    if (grant->open == NULL || json_object_array_length(grant->open) == 0 ||
        s3_account_load(&own, &err) != 0)
        return;
    s3_bucket_answer(&own, grant->open, grant->box.sid, grant->key);
    s3_account_clear(&own);
}

char *s3_grant_box(struct s3_grant *grant, const struct home_record *record, const char *key_name,
                   double now, struct error *err)
{
    bool same = lasts(grant, key_name, now);

    err->text[0] = '\0';
    if (same && grant->delivered && is_for(grant, key_name)) {
        answer(grant, record, now);
        return NULL;
    }
    if ((!same && give_again(grant, record, key_name, now, err) != 0) ||
        set_key(grant, key_name, err) != 0)
        return NULL;
    return s3_box_seal(&grant->box, key_name, err);
}

void s3_grant_delivered(struct s3_grant *grant, const char *key_name)
{
    grant->delivered = is_for(grant, key_name);
}

/* ---- its end --------------------------------------------------------------------------------- */

/* What holds no more needs not be taken back, if that cannot be done. */
static int take_back(json_object *json, double now, struct error *err)
{
    struct s3_account own;
    const char *sid = json_get_string(json, "sid");
    int rc;

    if (sid == NULL)
        return 0;
    rc = s3_account_load(&own, err);
    if (rc == 0) {
        rc = s3_bucket_take_back(&own, json_object_object_get(json, "buckets"), sid, err);
        s3_account_clear(&own);
    }
    return rc == 0 || now > json_get_double(json, "until", 0) ? 0 : -1;
}

/* A session cannot be: its file stays, and says when it ends. */
int s3_grant_revoke(struct s3_grant *grant, double now, struct error *err)
{
    json_object *json = home_read(grant->home, grant->id, HOME_S3_GRANT_FILE, NULL);
    int rc = take_back(json, now, err);

    forget(grant);
    if (rc == 0 && json_get_string(json, "sid") != NULL)
        unlink(home_path(grant->home, grant->id, HOME_S3_GRANT_FILE).text);
    json_object_put(json);
    return rc;
}

bool s3_grant_is_open(const struct home *home, int64_t id, double now, double *until)
{
    json_object *json = home_read(home, id, HOME_S3_GRANT_FILE, NULL);

    *until = json_get_double(json, "until", 0);
    json_object_put(json);
    return *until > now;
}
