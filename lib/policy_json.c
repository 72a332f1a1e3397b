/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Policy files: the options of an elastic job as JSON (policy.h). */
#include "lib/policy.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/amount.h"
#include "lib/json_text.h"
#include "lib/number.h"
#include "lib/text.h"

static const char *entry_text(json_object *entry)
{
    return json_object_to_json_string_ext(entry, JSON_C_TO_STRING_PLAIN);
}

/* ---- values from a policy file --------------------------------------------------------------- */

/* A string without NUL, or NULL: what can be treated like the text of an option. */
static const char *plain_string(json_object *value)
{
    const char *text;

    if (!json_object_is_type(value, json_type_string))
        return NULL;
    text = json_object_get_string(value);
    return strlen(text) == (size_t)json_object_get_string_len(value) ? text : NULL;
}

static int read_text(struct policy *policy, const struct policy_option *option, json_object *value,
                     struct error *err)
{
    const char *text = plain_string(value);

    if (text == NULL)
        return error_set(err, "%s is not allowed here; write %s",
                         json_object_is_type(value, json_type_string)
                             ? "a string with \\u0000 in it"
                             : json_text_type(value),
                         option->allowed);
    if (policy_option_set(policy, option, text, err) < 0)
        return error_prefix(err, "'%s'", error_value(text).text);
    return 0;
}

/* A whole number, of a value that a user may write as one. */
static int read_digits(struct policy *policy, const struct policy_option *option, int64_t number,
                       struct error *err)
{
    char digits[24];

    snprintf(digits, sizeof(digits), "%lld", (long long)number);
    return policy_option_set(policy, option, digits, err);
}

static int read_number(struct policy *policy, const struct policy_option *option,
                       json_object *value, struct error *err)
{
    const char *of = option->unit != NULL ? " of " : "";
    const char *unit = option->unit != NULL ? option->unit : "";
    int64_t number;

    if (!json_object_is_type(value, json_type_int))
        return error_set(err, "%s is not allowed here; write a whole number%s%s from %d to %d",
                         json_text_type(value), of, unit, option->min, option->max);
    number = json_object_get_int64(value);
    if (number < option->min || number > option->max)
        return error_set(err, "%lld is out of range; allowed are whole numbers%s%s from %d to %d",
                         (long long)number, of, unit, option->min, option->max);
    return read_digits(policy, option, number, err);
}

/* An amount as a number is one also with a fraction. */
static int read_amount(struct policy *policy, const struct policy_option *option,
                       json_object *value, struct error *err)
{
    if (json_object_is_type(value, json_type_double) || json_object_is_type(value, json_type_int))
        return policy_option_set(policy, option, json_object_to_json_string(value), err);
    return read_text(policy, option, value, err);
}

static int read_text_or_number(struct policy *policy, const struct policy_option *option,
                               json_object *value, struct error *err)
{
    if (json_object_is_type(value, json_type_int))
        return read_digits(policy, option, json_object_get_int64(value), err);
    return read_text(policy, option, value, err);
}

/* The names of the list, with commas. */
static int join_pools(json_object *list, char *names, size_t size, struct error *err)
{
    size_t count = json_object_array_length(list);

    if (count == 0)
        return error_set(err, "the list is empty; name a pool, or leave the key out");
    for (size_t i = 0; i < count; i++) {
        json_object *entry = json_object_array_get_idx(list, i);
        const char *name = plain_string(entry);

        if (name == NULL)
            return error_set(err,
                             "entry %zu of the list is %s; write names, such as [\"a\", \"b\"]",
                             i + 1, json_text_type(entry));
        if (policy_check_pool_name(name, err) < 0)
            return -1;
        text_append(names, size, "%s%s", i > 0 ? "," : "", name);
    }
    return 0;
}

static int read_pools(struct policy *policy, const struct policy_option *option, json_object *value,
                      struct error *err)
{
    /* Room for one name too many, which is then refused. */
    char names[(POLICY_POOLS_MAX + 1) * (POLICY_POOL_NAME_MAX + 1) + 1] = "";

    if (!json_object_is_type(value, json_type_array))
        return read_text(policy, option, value, err);
    if (join_pools(value, names, sizeof(names), err) < 0)
        return -1;
    return policy_option_set(policy, option, names, err);
}

static int check_scale_entry(const char *key, json_object *entry, struct error *err)
{
    int world;

    if (key[0] == '0' || number_parse(key, strlen(key), 1, POLICY_SCALE_MAX, &world) < 0)
        return error_set(err, "'%s' is not a world size; write a number of workers from 1 to %d",
                         error_value(key).text, POLICY_SCALE_MAX);
    if (!json_object_is_type(entry, json_type_object))
        return error_set(err, "the entry of world size %d is %s; write an object: {\"%d\": {...}}",
                         world, json_text_type(entry), world);
    if (strlen(entry_text(entry)) > POLICY_SCALE_TEXT_MAX)
        return error_set(err, "the entry of world size %d has %zu bytes; at most %d are allowed",
                         world, strlen(entry_text(entry)), POLICY_SCALE_TEXT_MAX);
    return 0;
}

static int read_scale_config(struct policy *policy, const struct policy_option *option,
                             json_object *value, struct error *err)
{
    if (!json_object_is_type(value, json_type_object))
        return error_set(err, "%s is not allowed here; write %s", json_text_type(value),
                         option->allowed);
    json_object_object_foreach (value, key, entry) {
        if (check_scale_entry(key, entry, err) < 0)
            return -1;
    }
    json_object_put(policy->scale_config);
    policy->scale_config = json_object_get(value);
    return 0;
}

static int read_value(struct policy *policy, const struct policy_option *option, json_object *value,
                      struct error *err)
{
    switch (option->kind) {
    case POLICY_KIND_NUMBER:
        return read_number(policy, option, value, err);
    case POLICY_KIND_RESTARTS:
    case POLICY_KIND_SIGNAL:
    case POLICY_KIND_NUMBER_OR_WORD:
        return read_text_or_number(policy, option, value, err);
    case POLICY_KIND_AMOUNT:
        return read_amount(policy, option, value, err);
    case POLICY_KIND_POOLS:
        return read_pools(policy, option, value, err);
    case POLICY_KIND_SCALE_CONFIG:
        return read_scale_config(policy, option, value, err);
    case POLICY_KIND_SIZES:
    case POLICY_KIND_WORD:
    case POLICY_KIND_WORDS:
    case POLICY_KIND_TIME:
    case POLICY_KIND_TEXT:
        break;
    }
    return read_text(policy, option, value, err);
}

static int read_member(struct policy *policy, const char *key, json_object *value,
                       struct error *err)
{
    char known[512] = "";

    for (const struct policy_option *option = policy_options; option->json != NULL; option++) {
        if (strcmp(key, option->json) == 0)
            return read_value(policy, option, value, err);
        text_append(known, sizeof(known), "%s%s", known[0] != '\0' ? ", " : "", option->json);
    }
    return error_set(err, "unknown key; known keys: %s", known);
}

int policy_parse_json(struct policy *policy, const char *text, size_t len, struct error *err)
{
    struct policy parsed;
    json_object *root = json_text_parse(text, len, err);
    int rc = 0;

    if (root == NULL)
        return -1;
    policy_init(&parsed);
    parsed.now = policy->now;
    json_object_object_foreach (root, key, value) {
        rc = read_member(&parsed, key, value, err);
        if (rc < 0) {
            error_prefix(err, "\"%s\"", error_value(key).text);
            break;
        }
    }
    if (rc == 0) {
        policy_merge(&parsed, policy);
        policy_clear(policy);
        *policy = parsed;
    } else {
        policy_clear(&parsed);
    }
    json_object_put(root);
    return rc;
}

/* ---- values to JSON -------------------------------------------------------------------------- */

static json_object *pools_to_json(const struct policy *policy)
{
    json_object *pools = json_object_new_array();

    for (int i = 0; i < policy->pool_count; i++)
        json_object_array_add(pools, json_object_new_string(policy->pools[i]));
    return pools;
}

/* A value is a number in JSON where its text is one: 600 and 12.5, but "3/3600" and "USR1". */
static json_object *text_to_json(const struct policy *policy, const struct policy_option *option)
{
    char *text = policy_option_text(policy, option);
    json_object *value = NULL;
    double amount;
    int number;

    if (text == NULL)
        return NULL;
    if (option->kind != POLICY_KIND_TEXT &&
        number_parse(text, strlen(text), 0, INT_MAX, &number) == 0)
        value = json_object_new_int(number);
    else if (option->kind == POLICY_KIND_AMOUNT && amount_parse(text, strlen(text), &amount) == 0)
        value = json_object_new_double_s(amount, text);
    else
        value = json_object_new_string(text);
    free(text);
    return value;
}

static json_object *value_to_json(const struct policy *policy, const struct policy_option *option)
{
    if (option->kind == POLICY_KIND_POOLS)
        return pools_to_json(policy);
    if (option->kind == POLICY_KIND_SCALE_CONFIG)
        return json_object_get(policy->scale_config);
    return text_to_json(policy, option);
}

json_object *policy_to_json(const struct policy *policy)
{
    json_object *obj = json_object_new_object();

    for (const struct policy_option *option = policy_options; option->json != NULL; option++) {
        if (policy_option_is_set(policy, option))
            json_object_object_add(obj, option->json, value_to_json(policy, option));
    }
    return obj;
}
