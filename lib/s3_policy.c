/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Policies of S3 (s3_policy.h). */
#include "lib/s3_policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/json_get.h"

#define PART_MAX (S3_ARN_MAX + S3_BUCKET_MAX + S3_PREFIX_MAX + 16)

/* ---- names ----------------------------------------------------------------------------------- */

/* arn:PARTITION:iam:REGION:ACCOUNT:WHAT/NAME */
enum s3_grant_kind s3_grant_kind(const char *arn)
{
    const char *at = arn;

    if (strncmp(arn, "arn:", 4) != 0 || strlen(arn) >= S3_ARN_MAX)
        return S3_GRANT_NONE;
    for (const char *c = arn; *c != '\0'; c++)
        if (*c <= ' ' || *c > '~' || *c == '"' || *c == '*' || *c == '?')
            return S3_GRANT_NONE;
    for (int i = 0; i < 5 && at != NULL; i++) {
        at = strchr(at, ':');
        at = at != NULL ? at + 1 : NULL;
        if (i == 1 && at != NULL && strncmp(at, "iam:", 4) != 0)
            return S3_GRANT_NONE;
    }
    if (at == NULL)
        return S3_GRANT_NONE;
    if (strncmp(at, "role/", 5) == 0 && at[5] != '\0')
        return S3_GRANT_STS;
    return strncmp(at, "user/", 5) == 0 && at[5] != '\0' ? S3_GRANT_POLICY : S3_GRANT_NONE;
}

int s3_scope_check(const struct s3_place *place, struct error *err)
{
    return strpbrk(place->prefix, "*?$") == NULL
               ? 0
               : error_set(err, "s3://%s/%s: a '*', '?' or '$' in it would open more than that",
                           place->bucket, error_path(place->prefix).text);
}

struct s3_place s3_proof_place(const struct s3_place *place)
{
    struct s3_place above = *place;
    size_t len = strlen(above.prefix);

    if (len > 0)
        len--; /* the slash at its end */
    while (len > 0 && above.prefix[len - 1] != '/')
        len--;
    above.prefix[len] = '\0';
    return above;
}

static int add_place(struct s3_place *places, int count, const struct s3_place *place)
{
    places[count] = s3_proof_place(place);
    for (int i = 0; i < count; i++)
        if (strcmp(places[i].bucket, places[count].bucket) == 0 &&
            strcmp(places[i].prefix, places[count].prefix) == 0)
            return count;
    return count + 1;
}

int s3_proof_places(const struct s3_scope *scope, struct s3_place places[S3_READS_MAX + 1])
{
    int count = 0;

    for (int i = 0; i < scope->reads; i++)
        count = add_place(places, count, &scope->read[i]);
    return scope->writes ? add_place(places, count, &scope->write) : count;
}

/* ---- statements ------------------------------------------------------------------------------ */

struct statement {
    json_object *to; /* an array */
    const char *arn;
    const char *sid; /* NULL: of a session */
    char until[40];  /* "": it has no end of its own */
};

static json_object *texts(const char *const *list)
{
    json_object *array = json_object_new_array();

    for (; *list != NULL; list++)
        json_object_array_add(array, json_object_new_string(*list));
    return array;
}

/* A resource of the partition that the ARN is of. */
static json_object *resource(const struct statement *statement, const struct s3_place *place,
                             const char *behind)
{
    const char *partition = statement->arn + strlen("arn:");
    char text[PART_MAX];

    snprintf(text, sizeof(text), "arn:%.*s:s3:::%s%s%s", (int)strcspn(partition, ":"), partition,
             place->bucket, behind[0] != '\0' ? "/" : "", behind);
    return json_object_new_string(text);
}

static void add_condition(json_object *to, const char *how, const char *what, const char *value)
{
    json_object *one = json_object_new_object();

    json_object_object_add(one, what, json_object_new_string(value));
    json_object_object_add(to, how, one);
}

/* prefix: of a listing; NULL: any. */
static void add_conditions(const struct statement *statement, json_object *one, const char *prefix)
{
    json_object *when = json_object_new_object();

    if (prefix != NULL)
        add_condition(when, "StringLike", "s3:prefix", prefix);
    if (statement->until[0] != '\0')
        add_condition(when, "DateLessThan", "aws:CurrentTime", statement->until);
    if (json_object_object_length(when) > 0)
        json_object_object_add(one, "Condition", when);
    else
        json_object_put(when);
}

static void add(const struct statement *statement, json_object *actions, json_object *resources,
                const char *prefix)
{
    json_object *one = json_object_new_object();
    size_t number = json_object_array_length(statement->to);

    if (statement->sid != NULL) {
        json_object *principal = json_object_new_object();
        char sid[S3_SID_MAX + 24];

        snprintf(sid, sizeof(sid), "%.*sn%zu", S3_SID_MAX, statement->sid, number);
        json_object_object_add(one, "Sid", json_object_new_string(sid));
        json_object_object_add(principal, "AWS", texts((const char *[]){statement->arn, NULL}));
        json_object_object_add(one, "Principal", principal);
    }
    json_object_object_add(one, "Effect", json_object_new_string("Allow"));
    json_object_object_add(one, "Action", actions);
    json_object_object_add(one, "Resource", resources);
    add_conditions(statement, one, prefix);
    json_object_array_add(statement->to, one);
}

/* An object of that name, or all below it. */
static void add_read(const struct statement *statement, const struct s3_place *place)
{
    static const char *const get[] = {"s3:GetObject", NULL}, *const list[] = {"s3:ListBucket",
                                                                              NULL};
    json_object *below = json_object_new_array(), *bucket = json_object_new_array();
    size_t len = strlen(place->prefix);
    char text[S3_PREFIX_MAX + 4];

    snprintf(text, sizeof(text), "%s*", place->prefix);
    json_object_array_add(below, resource(statement, place, text));
    json_object_array_add(bucket, resource(statement, place, ""));
    add(statement, texts(list), bucket, text);
    if (len > 0) {
        text[len - 1] = '\0'; /* without the slash */
        json_object_array_add(below, resource(statement, place, text));
    }
    add(statement, texts(get), below, NULL);
}

/* What another user puts is to belong to the owner of the bucket, too: that takes an ACL. With a
 * session it does. */
static void add_write(const struct statement *statement, const struct s3_place *place)
{
    const char *const actions[] = {"s3:PutObject",
                                   "s3:GetObject",
                                   "s3:AbortMultipartUpload",
                                   "s3:ListMultipartUploadParts",
                                   statement->sid != NULL ? "s3:PutObjectAcl" : NULL,
                                   NULL};
    json_object *below = json_object_new_array();
    char text[S3_PREFIX_MAX + 4];

    snprintf(text, sizeof(text), "%s*", place->prefix);
    json_object_array_add(below, resource(statement, place, text));
    add(statement, texts(actions), below, NULL);
}

static void add_keys(const struct statement *statement, const struct s3_scope *scope,
                     const char *bucket, const char *behind, const char *const *actions)
{
    json_object *resources = json_object_new_array();
    struct s3_place places[S3_READS_MAX + 1];
    int count = s3_proof_places(scope, places);
    char text[S3_PREFIX_MAX + S3_SID_MAX + sizeof(S3_PROOF) + sizeof(S3_ASKED)];

    for (int i = 0; i < count; i++) {
        if (strcmp(places[i].bucket, bucket) != 0)
            continue;
        snprintf(text, sizeof(text), "%s" S3_PROOF "%.*s%s", places[i].prefix, S3_SID_MAX,
                 statement->sid, behind);
        json_object_array_add(resources, resource(statement, &places[i], text));
    }
    add(statement, texts(actions), resources, NULL);
}

static void add_proofs(const struct statement *statement, const struct s3_scope *scope,
                       const char *bucket)
{
    static const char *const get[] = {"s3:GetObject", NULL}, *const put[] = {"s3:PutObject",
                                                                             "s3:PutObjectAcl",
                                                                             NULL};

    add_keys(statement, scope, bucket, "", get);
    add_keys(statement, scope, bucket, S3_ASKED, put);
}

static void add_scope(const struct statement *statement, const struct s3_scope *scope,
                      const char *bucket)
{
    for (int i = 0; i < scope->reads; i++)
        if (bucket == NULL || strcmp(scope->read[i].bucket, bucket) == 0)
            add_read(statement, &scope->read[i]);
    if (scope->writes && (bucket == NULL || strcmp(scope->write.bucket, bucket) == 0))
        add_write(statement, &scope->write);
}

/* ---- policies -------------------------------------------------------------------------------- */

char *s3_session_policy(const struct s3_scope *scope, const char *arn)
{
    json_object *policy = json_object_new_object();
    const struct statement statement = {.to = json_object_new_array(), .arn = arn};
    const char *text;
    char *copy;

    json_object_object_add(policy, "Version", json_object_new_string("2012-10-17"));
    json_object_object_add(policy, "Statement", statement.to);
    add_scope(&statement, scope, NULL);
    text = json_object_to_json_string_ext(policy,
                                          JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
    copy = text != NULL ? strdup(text) : NULL;
    json_object_put(policy);
    return copy;
}

json_object *s3_bucket_statements(const struct s3_scope *scope, const char *bucket, const char *arn,
                                  const char *sid, double until)
{
    struct statement statement = {.to = json_object_new_array(), .arn = arn, .sid = sid};
    time_t seconds = (time_t)until;
    struct tm utc;

    strftime(statement.until, sizeof(statement.until), "%Y-%m-%dT%H:%M:%SZ",
             gmtime_r(&seconds, &utc));
    add_scope(&statement, scope, bucket);
    if (json_object_array_length(statement.to) > 0)
        add_proofs(&statement, scope, bucket);
    return statement.to;
}

size_t s3_policy_remove(json_object *policy, const char *sid)
{
    json_object *list = json_object_object_get(policy, "Statement");
    size_t i = 0;

    if (!json_object_is_type(list, json_type_array))
        return 0;
    while (i < json_object_array_length(list)) {
        const char *its = json_get_string(json_object_array_get_idx(list, i), "Sid");

        if (its != NULL && strncmp(its, sid, strlen(sid)) == 0)
            json_object_array_del_idx(list, i, 1);
        else
            i++;
    }
    return i;
}
