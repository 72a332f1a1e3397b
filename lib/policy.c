/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The policy of an elastic job (policy.h). */
#include "lib/policy.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lib/json_text.h"
#include "lib/number.h"
#include "lib/text.h"

#define SIGNAL_MAX 64
#define RESTARTS   3 /* after failures, unless something else is said */
#define SIGNAL_FORM                                                                                \
    "write a name such as USR1 or SIGTERM, a number from 1 to 64, or none; KILL and STOP cannot "  \
    "be caught"
#define REQUEUE_FORM  "write limit, fault, limit,fault or none"
#define GROW_FORM     "write auto or ask"
#define RESTARTS_FORM "write a number, or \"N/SECONDS\" for N within any so many seconds"
#define POOL_FORM     "write NAME or NAME,NAME without blanks"

static const char *const grow_words[] = {[POLICY_GROW_AUTO] = "auto", [POLICY_GROW_ASK] = "ask"};

/* The times: fields that are read, merged and written alike. */
static const struct time_field {
    const char *option;
    const char *key;
    size_t offset;
    int builtin; /* seconds */
} time_fields[] = {
    {"grace", "grace", offsetof(struct policy, grace), 600},
    {"grow-delay", "grow_delay", offsetof(struct policy, grow_delay), 60},
    {"snooze", "snooze", offsetof(struct policy, snooze), 0},
    {"fault-wait", "fault_wait", offsetof(struct policy, fault_wait), 30},
    {"hang-wait", "hang_wait", offsetof(struct policy, hang_wait), 0},
};
#define TIME_FIELDS (sizeof(time_fields) / sizeof(time_fields[0]))

static int *time_of(struct policy *policy, const struct time_field *field)
{
    return (int *)(void *)((char *)policy + field->offset);
}

static int time_value(const struct policy *policy, const struct time_field *field)
{
    return *(const int *)(const void *)((const char *)policy + field->offset);
}

void policy_init(struct policy *policy)
{
    memset(policy, 0, sizeof(*policy));
    for (size_t i = 0; i < TIME_FIELDS; i++)
        *time_of(policy, &time_fields[i]) = POLICY_UNSET;
    policy->signal = POLICY_UNSET;
    policy->grow = POLICY_UNSET;
    policy->requeue = POLICY_UNSET;
    policy->restarts.restarts = POLICY_UNSET;
}

void policy_clear(struct policy *policy)
{
    json_object_put(policy->scale_config);
    policy_init(policy);
}

static int set_time(int *seconds, const char *value, struct error *err)
{
    if (number_parse(value, strlen(value), 0, POLICY_SECONDS_MAX, seconds) == 0)
        return 0;
    return error_set(err, "'%s' is not a number of seconds; allowed are whole numbers from 0 to %d",
                     error_value(value).text, POLICY_SECONDS_MAX);
}

/* The number of a signal's name without SIG, in any case; 0 if there is none. */
static int signal_by_name(const char *name)
{
    for (int number = 1; number <= SIGNAL_MAX; number++) {
        const char *known = sigabbrev_np(number);

        if (known != NULL && strcasecmp(known, name) == 0)
            return number;
    }
    return 0;
}

static int set_signal(int *signal_number, const char *value, struct error *err)
{
    int number = 0;

    if (strcasecmp(value, "none") == 0) {
        *signal_number = 0;
        return 0;
    }
    if (number_parse(value, strlen(value), 1, SIGNAL_MAX, &number) < 0)
        number = signal_by_name(strncasecmp(value, "SIG", 3) == 0 ? value + 3 : value);
    if (number == 0)
        return error_set(err, "'%s' is not a signal; " SIGNAL_FORM, error_value(value).text);
    if (number == SIGKILL || number == SIGSTOP)
        return error_set(err, "a worker cannot catch SIG%s; " SIGNAL_FORM, sigabbrev_np(number));
    /* glibc keeps the first real-time signals for its threads: sigaction refuses them. */
    if (number > SIGSYS && number < SIGRTMIN)
        return error_set(
            err, "a worker cannot catch signal %d, which the C library uses itself; " SIGNAL_FORM,
            number);
    *signal_number = number;
    return 0;
}

static int set_grow(int *grow, const char *value, struct error *err)
{
    for (int i = POLICY_GROW_AUTO; i <= POLICY_GROW_ASK; i++)
        if (strcmp(value, grow_words[i]) == 0) {
            *grow = i;
            return 0;
        }
    return error_set(err, "'%s' is not allowed; " GROW_FORM, error_value(value).text);
}

static const char *const requeue_words[] = {
    [0] = "none",
    [POLICY_REQUEUE_LIMIT] = "limit",
    [POLICY_REQUEUE_FAULT] = "fault",
    [POLICY_REQUEUE_LIMIT | POLICY_REQUEUE_FAULT] = "limit,fault",
};

static int set_requeue(int *requeue, const char *value, struct error *err)
{
    if (strcmp(value, "fault,limit") == 0)
        value = requeue_words[POLICY_REQUEUE_LIMIT | POLICY_REQUEUE_FAULT];
    for (int i = 0; i <= (POLICY_REQUEUE_LIMIT | POLICY_REQUEUE_FAULT); i++)
        if (strcmp(value, requeue_words[i]) == 0) {
            *requeue = i;
            return 0;
        }
    return error_set(err, "'%s' is not allowed; " REQUEUE_FORM, error_value(value).text);
}

/* Names become arguments of sbatch and parts of messages, so they are kept to what Slurm's own
 * names are made of. */
static bool is_pool_name(const char *name, size_t len)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

    if (len == 0 || len > POLICY_POOL_NAME_MAX || strchr(letters, name[0]) == NULL)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (strchr(letters, name[i]) == NULL && strchr("-.+", name[i]) == NULL)
            return false;
    }
    return true;
}

static int pool_name_error(const char *name, size_t len, struct error *err)
{
    char shown[POLICY_POOL_NAME_MAX + 8] = "";

    if (len == 0)
        return error_set(err, "a pool's name is missing; " POOL_FORM);
    text_append(shown, sizeof(shown), "%.*s", (int)(len < sizeof(shown) ? len : sizeof(shown)),
                name);
    return error_set(
        err,
        "'%s' is not a pool's name; " POOL_FORM
        ", with 1 to %d letters, digits and _ - . + in a name, a letter, digit or _ first",
        error_value(shown).text, POLICY_POOL_NAME_MAX);
}

int policy_check_pool_name(const char *name, struct error *err)
{
    return is_pool_name(name, strlen(name)) ? 0 : pool_name_error(name, strlen(name), err);
}

static int add_pool(struct policy *policy, const char *name, size_t len, struct error *err)
{
    char *slot;

    if (!is_pool_name(name, len))
        return pool_name_error(name, len, err);
    for (int i = 0; i < policy->pool_count; i++) {
        if (strlen(policy->pools[i]) == len && memcmp(policy->pools[i], name, len) == 0)
            return error_set(err, "pool '%s' is named twice; name each once", policy->pools[i]);
    }
    if (policy->pool_count == POLICY_POOLS_MAX)
        return error_set(err, "more than %d pools; name at most so many", POLICY_POOLS_MAX);
    slot = policy->pools[policy->pool_count++];
    memcpy(slot, name, len);
    slot[len] = '\0';
    return 0;
}

static int set_pools(struct policy *policy, const char *value, struct error *err)
{
    for (;;) {
        size_t len = strcspn(value, ",");

        if (add_pool(policy, value, len, err) < 0)
            return -1;
        if (value[len] == '\0')
            return 0;
        value += len + 1;
    }
}

static void copy_pools(struct policy *to, const struct policy *from)
{
    to->pool_count = from->pool_count;
    memcpy(to->pools, from->pools, sizeof(to->pools));
}

int policy_set_value(struct policy *policy, const char *name, const char *value, struct error *err)
{
    struct policy pools = {0};

    if (strcmp(name, "elastic") == 0)
        return sizes_parse(value, &policy->sizes, err);
    if (strcmp(name, "signal") == 0)
        return set_signal(&policy->signal, value, err);
    if (strcmp(name, "grow") == 0)
        return set_grow(&policy->grow, value, err);
    if (strcmp(name, "requeue") == 0)
        return set_requeue(&policy->requeue, value, err);
    if (strcmp(name, "max-restarts") == 0)
        return budget_parse(value, &policy->restarts, err);
    if (strcmp(name, "pool") == 0) {
        if (set_pools(&pools, value, err) < 0)
            return -1;
        copy_pools(policy, &pools);
        return 0;
    }
    for (size_t i = 0; i < TIME_FIELDS; i++) {
        if (strcmp(name, time_fields[i].option) == 0)
            return set_time(time_of(policy, &time_fields[i]), value, err);
    }
    return error_set(err, "there is no option of this name");
}

int policy_set(struct policy *policy, const char *name, const char *value, struct error *err)
{
    if (policy_set_value(policy, name, value, err) == 0)
        return 0;
    if (strcmp(name, "elastic") == 0)
        return error_prefix(err, "--elastic=%s", error_value(value).text);
    return error_prefix(err, "--elastic-%s=%s", name, error_value(value).text);
}

bool policy_is_set(const struct policy *policy, const char *name)
{
    if (strcmp(name, "elastic") == 0)
        return policy->sizes.min != 0;
    if (strcmp(name, "signal") == 0)
        return policy->signal != POLICY_UNSET;
    if (strcmp(name, "grow") == 0)
        return policy->grow != POLICY_UNSET;
    if (strcmp(name, "requeue") == 0)
        return policy->requeue != POLICY_UNSET;
    if (strcmp(name, "max-restarts") == 0)
        return policy->restarts.restarts != POLICY_UNSET;
    if (strcmp(name, "pool") == 0)
        return policy->pool_count > 0;
    for (size_t i = 0; i < TIME_FIELDS; i++) {
        if (strcmp(name, time_fields[i].option) == 0)
            return time_value(policy, &time_fields[i]) != POLICY_UNSET;
    }
    return false;
}

/* A string without NUL, or NULL: what can be treated like the text of an option. */
static const char *plain_string(json_object *value)
{
    const char *text;

    if (!json_object_is_type(value, json_type_string))
        return NULL;
    text = json_object_get_string(value);
    return strlen(text) == (size_t)json_object_get_string_len(value) ? text : NULL;
}

static int read_text(struct policy *policy, const char *option, json_object *value,
                     const char *form, struct error *err)
{
    const char *text = plain_string(value);

    if (text == NULL)
        return error_set(err, "%s is not allowed here; %s",
                         json_object_is_type(value, json_type_string)
                             ? "a string with \\u0000 in it"
                             : json_text_type(value),
                         form);
    if (policy_set_value(policy, option, text, err) < 0)
        return error_prefix(err, "'%s'", error_value(text).text);
    return 0;
}

static int read_time(int *seconds, json_object *value, struct error *err)
{
    int64_t number;

    if (!json_object_is_type(value, json_type_int))
        return error_set(err,
                         "%s is not allowed here; write a whole number of seconds from 0 to %d",
                         json_text_type(value), POLICY_SECONDS_MAX);
    number = json_object_get_int64(value);
    if (number < 0 || number > POLICY_SECONDS_MAX)
        return error_set(err,
                         "%lld is out of range; allowed are whole numbers of seconds from 0 to %d",
                         (long long)number, POLICY_SECONDS_MAX);
    *seconds = (int)number;
    return 0;
}

/* What may be written as a number, too. */
static int read_text_or_number(struct policy *policy, const char *option, json_object *value,
                               const char *form, struct error *err)
{
    char digits[24];

    if (!json_object_is_type(value, json_type_int))
        return read_text(policy, option, value, form, err);
    snprintf(digits, sizeof(digits), "%lld", (long long)json_object_get_int64(value));
    return policy_set_value(policy, option, digits, err);
}

static int read_pools(struct policy *policy, json_object *value, struct error *err)
{
    struct policy pools = {0};
    size_t count;

    if (!json_object_is_type(value, json_type_array))
        return read_text(policy, "pool", value, "write \"a,b\" or [\"a\", \"b\"]", err);
    count = json_object_array_length(value);
    if (count == 0)
        return error_set(err, "the list is empty; name a pool, or leave the key out");
    for (size_t i = 0; i < count; i++) {
        json_object *entry = json_object_array_get_idx(value, i);
        const char *name = plain_string(entry);

        if (name == NULL)
            return error_set(err,
                             "entry %zu of the list is %s; write names, such as [\"a\", \"b\"]",
                             i + 1, json_text_type(entry));
        if (add_pool(&pools, name, strlen(name), err) < 0)
            return -1;
    }
    copy_pools(policy, &pools);
    return 0;
}

static const char *entry_text(json_object *entry)
{
    return json_object_to_json_string_ext(entry, JSON_C_TO_STRING_PLAIN);
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

static int read_scale_config(struct policy *policy, json_object *value, struct error *err)
{
    if (!json_object_is_type(value, json_type_object))
        return error_set(err, "%s is not allowed here; write {\"WORLD_SIZE\": {...}, ...}",
                         json_text_type(value));
    json_object_object_foreach (value, key, entry) {
        if (check_scale_entry(key, entry, err) < 0)
            return -1;
    }
    json_object_put(policy->scale_config);
    policy->scale_config = json_object_get(value);
    return 0;
}

static int read_member(struct policy *policy, const char *key, json_object *value,
                       struct error *err)
{
    if (strcmp(key, "nodes") == 0)
        return read_text(policy, "elastic", value,
                         "write a string such as \"2:8\", \"2:8:2\" or \"2,4,8\"", err);
    if (strcmp(key, "pool") == 0)
        return read_pools(policy, value, err);
    if (strcmp(key, "signal") == 0)
        return read_text_or_number(policy, "signal", value, SIGNAL_FORM, err);
    if (strcmp(key, "max_restarts") == 0)
        return read_text_or_number(policy, "max-restarts", value, RESTARTS_FORM, err);
    if (strcmp(key, "grow") == 0)
        return read_text(policy, "grow", value, GROW_FORM, err);
    if (strcmp(key, "requeue") == 0)
        return read_text(policy, "requeue", value, REQUEUE_FORM, err);
    if (strcmp(key, "scale_config") == 0)
        return read_scale_config(policy, value, err);
    for (size_t i = 0; i < TIME_FIELDS; i++) {
        if (strcmp(key, time_fields[i].key) == 0)
            return read_time(time_of(policy, &time_fields[i]), value, err);
    }
    return error_set(
        err, "unknown key; known keys: nodes, grace, grow_delay, snooze, fault_wait, hang_wait, "
             "max_restarts, pool, signal, grow, requeue, scale_config");
}

int policy_parse_json(struct policy *policy, const char *text, size_t len, struct error *err)
{
    struct policy parsed;
    json_object *root = json_text_parse(text, len, err);
    int rc = 0;

    if (root == NULL)
        return -1;
    policy_init(&parsed);
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

static json_object *signal_to_json(int number)
{
    const char *name = sigabbrev_np(number);

    if (number == 0)
        return json_object_new_string("none");
    return name != NULL ? json_object_new_string(name) : json_object_new_int(number);
}

static json_object *restarts_to_json(const struct budget *budget)
{
    char text[32];

    return budget->seconds > 0 ? json_object_new_string(budget_format(budget, text, sizeof(text)))
                               : json_object_new_int(budget->restarts);
}

json_object *policy_to_json(const struct policy *policy)
{
    json_object *obj = json_object_new_object();
    char text[SIZES_TEXT_MAX];

    if (policy->sizes.min != 0)
        json_object_object_add(
            obj, "nodes", json_object_new_string(sizes_format(&policy->sizes, text, sizeof(text))));
    for (size_t i = 0; i < TIME_FIELDS; i++) {
        if (time_value(policy, &time_fields[i]) != POLICY_UNSET)
            json_object_object_add(obj, time_fields[i].key,
                                   json_object_new_int(time_value(policy, &time_fields[i])));
    }
    if (policy->restarts.restarts != POLICY_UNSET)
        json_object_object_add(obj, "max_restarts", restarts_to_json(&policy->restarts));
    if (policy->pool_count > 0) {
        json_object *pools = json_object_new_array();

        for (int i = 0; i < policy->pool_count; i++)
            json_object_array_add(pools, json_object_new_string(policy->pools[i]));
        json_object_object_add(obj, "pool", pools);
    }
    if (policy->signal != POLICY_UNSET)
        json_object_object_add(obj, "signal", signal_to_json(policy->signal));
    if (policy->grow != POLICY_UNSET)
        json_object_object_add(obj, "grow", json_object_new_string(grow_words[policy->grow]));
    if (policy->requeue != POLICY_UNSET)
        json_object_object_add(obj, "requeue",
                               json_object_new_string(requeue_words[policy->requeue]));
    if (policy->scale_config != NULL)
        json_object_object_add(obj, "scale_config", json_object_get(policy->scale_config));
    return obj;
}

void policy_merge(struct policy *policy, const struct policy *lower)
{
    if (policy->sizes.min == 0)
        policy->sizes = lower->sizes;
    for (size_t i = 0; i < TIME_FIELDS; i++) {
        int *seconds = time_of(policy, &time_fields[i]);

        if (*seconds == POLICY_UNSET)
            *seconds = time_value(lower, &time_fields[i]);
    }
    if (policy->signal == POLICY_UNSET)
        policy->signal = lower->signal;
    if (policy->grow == POLICY_UNSET)
        policy->grow = lower->grow;
    if (policy->requeue == POLICY_UNSET)
        policy->requeue = lower->requeue;
    if (policy->restarts.restarts == POLICY_UNSET)
        policy->restarts = lower->restarts;
    if (policy->pool_count == 0)
        copy_pools(policy, lower);
    if (policy->scale_config == NULL)
        policy->scale_config = json_object_get(lower->scale_config);
}

void policy_defaults(struct policy *policy)
{
    for (size_t i = 0; i < TIME_FIELDS; i++) {
        int *seconds = time_of(policy, &time_fields[i]);

        if (*seconds == POLICY_UNSET)
            *seconds = time_fields[i].builtin;
    }
    if (policy->signal == POLICY_UNSET)
        policy->signal = 0;
    if (policy->grow == POLICY_UNSET)
        policy->grow = POLICY_GROW_AUTO;
    if (policy->requeue == POLICY_UNSET)
        policy->requeue = 0;
    if (policy->restarts.restarts == POLICY_UNSET)
        policy->restarts = (struct budget){.restarts = RESTARTS};
}

const char *policy_scale_config(const struct policy *policy, int world_size)
{
    char key[16];
    json_object *entry = NULL;

    snprintf(key, sizeof(key), "%d", world_size);
    if (policy->scale_config == NULL ||
        !json_object_object_get_ex(policy->scale_config, key, &entry))
        return "{}";
    return entry_text(entry);
}
