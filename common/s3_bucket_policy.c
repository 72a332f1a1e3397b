/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The policy of a bucket (s3_bucket_policy.h). */
#include "common/s3_bucket_policy.h"

#include <string.h>

#include "common/s3_private.h"
#include "lib/json_text.h"

#define POLICY_MAX ((size_t)64 << 10) /* servers take 20 KB */

static const struct s3_parameter parameters[] = {{"policy", ""}, {0}};

static json_object *none(void)
{
    json_object *policy = json_object_new_object();

    json_object_object_add(policy, "Version", json_object_new_string("2012-10-17"));
    json_object_object_add(policy, "Statement", json_object_new_array());
    return policy;
}

/* One statement may stand there without its brackets. */
static int make_list(json_object *policy, struct error *err)
{
    json_object *statement = json_object_object_get(policy, "Statement"), *list;

    if (json_object_is_type(statement, json_type_array))
        return 0;
    if (!json_object_is_type(statement, json_type_object))
        return error_set(err, "the policy of the bucket has no statements");
    list = json_object_new_array();
    json_object_array_add(list, json_object_get(statement));
    json_object_object_add(policy, "Statement", list);
    return 0;
}

json_object *s3_bucket_policy_read(struct s3 *s3, struct error *err)
{
    const struct s3_request request = {.what = "get the policy of",
                                       .method = "GET",
                                       .key = "",
                                       .parameters = parameters,
                                       .most = POLICY_MAX};
    struct s3_reply reply;
    enum s3_result result = s3_ask(s3, &request, &reply, err);
    json_object *policy = NULL;

    if (result == S3_ABSENT)
        policy = none();
    else if (result == S3_OK)
        policy = json_text_parse(reply.text != NULL ? reply.text : "", reply.len, err);
    s3_reply_clear(&reply);
    if (policy == NULL || make_list(policy, err) == 0)
        return policy;
    json_object_put(policy);
    return NULL;
}

int s3_bucket_policy_write(struct s3 *s3, json_object *policy, struct error *err)
{
    bool empty = json_object_array_length(json_object_object_get(policy, "Statement")) == 0;
    const char *text = json_object_to_json_string_ext(policy, JSON_C_TO_STRING_PLAIN |
                                                                  JSON_C_TO_STRING_NOSLASHESCAPE);
    const struct s3_request request = {.what = empty ? "remove the policy of"
                                                     : "change the policy of",
                                       .method = empty ? "DELETE" : "PUT",
                                       .key = "",
                                       .parameters = parameters,
                                       .body = empty ? NULL : text,
                                       .body_len = empty || text == NULL ? 0 : strlen(text),
                                       .most = S3_ANSWER_MAX};
    struct s3_reply reply;
    enum s3_result result;

    if (text == NULL)
        return error_set(err, "out of memory");
    result = s3_ask(s3, &request, &reply, err);
    s3_reply_clear(&reply);
    return result == S3_OK || (empty && result == S3_ABSENT) ? 0 : -1;
}
