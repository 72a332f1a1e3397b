/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options of an elastic job (policy.h). */
#include "lib/policy.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/amount.h"
#include "lib/number.h"
#include "lib/text.h"
#include "lib/when.h"

#define SIGNAL_MAX 64
#define POOL_FORM  "write NAME or NAME,NAME without blanks"

/* How Slurm names the variable of an option of the plugin "elastic". */
#define VARIABLE_PREFIX "_SLURM_SPANK_OPTION_elastic_"

#define POLICY_INT(field, ...)   {.offset = offsetof(struct policy, field), __VA_ARGS__},
#define POLICY_OTHER(field, ...) {.offset = offsetof(struct policy, field), __VA_ARGS__},
const struct policy_option policy_options[] = {
#include "lib/policy_options.h"
    {.json = NULL},
};

_Static_assert(sizeof(policy_options) / sizeof(policy_options[0]) <= POLICY_OPTIONS_MAX,
               "raise POLICY_OPTIONS_MAX");

/* ---- one value, by the kind of its option ---------------------------------------------------- */

/* The value of an option of a kind that is an int. */
static int *int_of(struct policy *policy, const struct policy_option *option)
{
    return (int *)(void *)((char *)policy + option->offset);
}

static int int_value(const struct policy *policy, const struct policy_option *option)
{
    return *(const int *)(const void *)((const char *)policy + option->offset);
}

/* … and of a kind that is a double. */
static double *double_of(struct policy *policy, const struct policy_option *option)
{
    return (double *)(void *)((char *)policy + option->offset);
}

static double double_value(const struct policy *policy, const struct policy_option *option)
{
    return *(const double *)(const void *)((const char *)policy + option->offset);
}

/* … and of a kind that is a text. */
static char *text_of(struct policy *policy, const struct policy_option *option)
{
    return (char *)policy + option->offset;
}

static const char *text_value(const struct policy *policy, const struct policy_option *option)
{
    return (const char *)policy + option->offset;
}

bool policy_option_is_set(const struct policy *policy, const struct policy_option *option)
{
    switch (option->kind) {
    case POLICY_KIND_SIZES:
        return policy->sizes.min != 0;
    case POLICY_KIND_RESTARTS:
        return policy->restarts.restarts != POLICY_UNSET;
    case POLICY_KIND_POOLS:
        return policy->pool_count > 0;
    case POLICY_KIND_SCALE_CONFIG:
        return policy->scale_config != NULL;
    case POLICY_KIND_AMOUNT:
    case POLICY_KIND_TIME:
        return double_value(policy, option) > 0;
    case POLICY_KIND_TEXT:
        return text_value(policy, option)[0] != '\0';
    case POLICY_KIND_NUMBER:
    case POLICY_KIND_NUMBER_OR_WORD:
    case POLICY_KIND_SIGNAL:
    case POLICY_KIND_WORD:
    case POLICY_KIND_WORDS:
        break;
    }
    return int_value(policy, option) != POLICY_UNSET;
}

static void copy_pools(struct policy *to, const struct policy *from)
{
    to->pool_count = from->pool_count;
    memcpy(to->pools, from->pools, sizeof(to->pools));
}

static void copy(struct policy *to, const struct policy *from, const struct policy_option *option)
{
    switch (option->kind) {
    case POLICY_KIND_SIZES:
        to->sizes = from->sizes;
        return;
    case POLICY_KIND_RESTARTS:
        to->restarts = from->restarts;
        return;
    case POLICY_KIND_POOLS:
        copy_pools(to, from);
        return;
    case POLICY_KIND_SCALE_CONFIG:
        to->scale_config = json_object_get(from->scale_config);
        return;
    case POLICY_KIND_AMOUNT:
    case POLICY_KIND_TIME:
        *double_of(to, option) = double_value(from, option);
        return;
    case POLICY_KIND_TEXT:
        memcpy(text_of(to, option), text_value(from, option), POLICY_TEXT_MAX + 1);
        return;
    case POLICY_KIND_NUMBER:
    case POLICY_KIND_NUMBER_OR_WORD:
    case POLICY_KIND_SIGNAL:
    case POLICY_KIND_WORD:
    case POLICY_KIND_WORDS:
        break;
    }
    *int_of(to, option) = int_value(from, option);
}

/* Where a number is the whole value; of others, nothing is their "unset" and their default. */
static void put_number(struct policy *policy, const struct policy_option *option, int number)
{
    switch (option->kind) {
    case POLICY_KIND_SIZES:
    case POLICY_KIND_POOLS:
    case POLICY_KIND_AMOUNT:
    case POLICY_KIND_TIME:
    case POLICY_KIND_TEXT:
    case POLICY_KIND_SCALE_CONFIG:
        return;
    case POLICY_KIND_RESTARTS:
        policy->restarts = (struct budget){.restarts = number};
        return;
    case POLICY_KIND_NUMBER:
    case POLICY_KIND_NUMBER_OR_WORD:
    case POLICY_KIND_SIGNAL:
    case POLICY_KIND_WORD:
    case POLICY_KIND_WORDS:
        break;
    }
    *int_of(policy, option) = number;
}

int policy_check_deadline(const struct policy *policy, double now, struct error *err)
{
    char text[WHEN_TEXT_MAX];

    if (policy->deadline <= 0 || policy->deadline > now)
        return 0;
    when_format((int64_t)policy->deadline, text, sizeof(text));
    return error_set(err, "--elastic-deadline=%s has passed already; name a time to come", text);
}

int policy_keep_together(struct policy *policy, struct error *err)
{
    if (policy->replica <= 1)
        return 0;
    if (policy->sizes.min == 0)
        return error_set(err,
                         "--elastic-replica=%d is about the sizes of a training: it needs "
                         "--elastic=MIN:MAX",
                         policy->replica);
    if (sizes_keep_together(&policy->sizes, policy->replica, err) == 0)
        return 0;
    return error_prefix(err, "--elastic-replica=%d", policy->replica);
}

/* ---- layers ---------------------------------------------------------------------------------- */

void policy_init(struct policy *policy)
{
    memset(policy, 0, sizeof(*policy));
    for (const struct policy_option *option = policy_options; option->json != NULL; option++)
        put_number(policy, option, POLICY_UNSET);
}

void policy_clear(struct policy *policy)
{
    double now = policy->now;

    json_object_put(policy->scale_config);
    policy_init(policy);
    policy->now = now;
}

void policy_merge(struct policy *policy, const struct policy *lower)
{
    for (const struct policy_option *option = policy_options; option->json != NULL; option++) {
        if (!policy_option_is_set(policy, option))
            copy(policy, lower, option);
    }
}

void policy_defaults(struct policy *policy)
{
    for (const struct policy_option *option = policy_options; option->json != NULL; option++) {
        if (!policy_option_is_set(policy, option))
            put_number(policy, option, option->builtin);
    }
}

/* ---- values from text ------------------------------------------------------------------------ */

/* " of seconds", or nothing where the option has no unit. */
static const char *of_unit(const struct policy_option *option, char *buf, size_t size)
{
    buf[0] = '\0';
    if (option->unit != NULL)
        text_append(buf, size, " of %s", option->unit);
    return buf;
}

static int set_number(int *number, const struct policy_option *option, const char *value,
                      struct error *err)
{
    char unit[32];

    if (number_parse(value, strlen(value), option->min, option->max, number) == 0)
        return 0;
    return error_set(err, "'%s' is not a number%s; allowed are whole numbers from %d to %d",
                     error_value(value).text, of_unit(option, unit, sizeof(unit)), option->min,
                     option->max);
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

static int set_signal(int *signal_number, const struct policy_option *option, const char *value,
                      struct error *err)
{
    int number = 0;

    if (strcasecmp(value, "none") == 0) {
        *signal_number = 0;
        return 0;
    }
    if (number_parse(value, strlen(value), 1, SIGNAL_MAX, &number) < 0)
        number = signal_by_name(strncasecmp(value, "SIG", 3) == 0 ? value + 3 : value);
    if (number == 0)
        return error_set(err, "'%s' is not a signal; write %s", error_value(value).text,
                         option->allowed);
    if (number == SIGKILL || number == SIGSTOP)
        return error_set(err, "a worker cannot catch SIG%s; write %s", sigabbrev_np(number),
                         option->allowed);
    /* glibc keeps the first real-time signals for its threads: sigaction refuses them. */
    if (number > SIGSYS && number < SIGRTMIN)
        return error_set(err,
                         "a worker cannot catch signal %d, which the C library uses itself; "
                         "write %s",
                         number, option->allowed);
    /* To the shim of a worker they say something else (agent/workers/exec_worker.h). */
    if (number == SIGRTMAX - 1 || number == SIGRTMAX - 2)
        return error_set(err, "signal %d is elasticrun's own; write %s", number, option->allowed);
    *signal_number = number;
    return 0;
}

/* The index of the word of len bytes, -1 if it is not one of the option's. */
static int find_word(const struct policy_option *option, const char *text, size_t len)
{
    for (int i = 0; i < POLICY_WORDS_MAX && option->words[i] != NULL; i++) {
        if (strlen(option->words[i]) == len && memcmp(option->words[i], text, len) == 0)
            return i;
    }
    return -1;
}

static int word_error(const struct policy_option *option, const char *value, struct error *err)
{
    return error_set(err, "'%s' is not allowed; write %s", error_value(value).text,
                     option->allowed);
}

static int set_word(int *index, const struct policy_option *option, const char *value,
                    struct error *err)
{
    int found = find_word(option, value, strlen(value));

    if (found < 0)
        return word_error(option, value, err);
    *index = found;
    return 0;
}

static int set_number_or_word(int *number, const struct policy_option *option, const char *value,
                              struct error *err)
{
    int found = find_word(option, value, strlen(value));

    if (found < 0)
        return number_parse(value, strlen(value), option->min, option->max, number) == 0
                   ? 0
                   : word_error(option, value, err);
    *number = -2 - found;
    return 0;
}

/* Nothing at all would be the value "not set". */
static int set_amount(double *amount, const char *value, struct error *err)
{
    double number;

    if (amount_parse(value, strlen(value), &number) < 0)
        return error_set(err, "'%s' is not an amount up to %d; " AMOUNT_FORM,
                         error_value(value).text, AMOUNT_MAX);
    if (number <= 0)
        return error_set(err,
                         "'%s' allows nothing; write an amount greater than 0, or leave the "
                         "option out",
                         error_value(value).text);
    *amount = number;
    return 0;
}

static int set_time(double *moment, const char *value, double now, struct error *err)
{
    int64_t when;

    if (when_parse(value, (int64_t)now, &when, err) < 0)
        return -1;
    *moment = (double)when;
    return 0;
}

/* A user and a password in a URL would be in the job's record, which others can read. */
static bool is_url(const char *text)
{
    const char *host = strstr(text, "://");

    if (strcmp(text, "none") == 0)
        return true;
    if (host == NULL || (strncmp(text, "http://", 7) != 0 && strncmp(text, "https://", 8) != 0))
        return false;
    host += strlen("://");
    return host[0] != '\0' && strchr("/?#:", host[0]) == NULL &&
           strpbrk(text, "@?#\\ \"'<>") == NULL;
}

static bool is_line(const char *text)
{
    size_t len = strlen(text);

    for (size_t at = 0, bytes; at < len; at += bytes) {
        bytes = text_utf8_length(text + at, len - at);
        if (bytes == 0 || (unsigned char)text[at] < ' ' || text[at] == 0x7f)
            return false;
    }
    return len > 0;
}

static bool is_of_form(enum policy_form form, const char *text)
{
    if (strlen(text) > (form == POLICY_FORM_ID ? POLICY_ID_MAX : POLICY_TEXT_MAX) || !is_line(text))
        return false;
    if (form == POLICY_FORM_ID)
        return text_made_of(text, "-_");
    return form != POLICY_FORM_URL || is_url(text);
}

static int set_text(char *text, const struct policy_option *option, const char *value,
                    struct error *err)
{
    if (!is_of_form(option->form, value))
        return word_error(option, value, err);
    snprintf(text, POLICY_TEXT_MAX + 1, "%s", value);
    return 0;
}

static int set_words(int *bits, const struct policy_option *option, const char *value,
                     struct error *err)
{
    const char *at = value;
    int found = 0;

    if (strcmp(value, "none") == 0) {
        *bits = 0;
        return 0;
    }
    for (;;) {
        size_t len = strcspn(at, ",");
        int index = find_word(option, at, len);

        if (index < 0 || (found & 1 << index) != 0)
            return word_error(option, value, err);
        found |= 1 << index;
        if (at[len] == '\0')
            break;
        at += len + 1;
    }
    *bits = found;
    return 0;
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

/* Into a list of its own first: a wrong name leaves the list as it was. */
static int replace_pools(struct policy *policy, const char *value, struct error *err)
{
    struct policy pools = {0};

    if (set_pools(&pools, value, err) < 0)
        return -1;
    copy_pools(policy, &pools);
    return 0;
}

int policy_option_set(struct policy *policy, const struct policy_option *option, const char *value,
                      struct error *err)
{
    switch (option->kind) {
    case POLICY_KIND_SIZES:
        return sizes_parse(value, &policy->sizes, err);
    case POLICY_KIND_NUMBER:
        return set_number(int_of(policy, option), option, value, err);
    case POLICY_KIND_RESTARTS:
        return budget_parse(value, &policy->restarts, err);
    case POLICY_KIND_SIGNAL:
        return set_signal(int_of(policy, option), option, value, err);
    case POLICY_KIND_WORD:
        return set_word(int_of(policy, option), option, value, err);
    case POLICY_KIND_WORDS:
        return set_words(int_of(policy, option), option, value, err);
    case POLICY_KIND_POOLS:
        return replace_pools(policy, value, err);
    case POLICY_KIND_NUMBER_OR_WORD:
        return set_number_or_word(int_of(policy, option), option, value, err);
    case POLICY_KIND_AMOUNT:
        return set_amount(double_of(policy, option), value, err);
    case POLICY_KIND_TIME:
        return set_time(double_of(policy, option), value, policy->now, err);
    case POLICY_KIND_TEXT:
        return set_text(text_of(policy, option), option, value, err);
    case POLICY_KIND_SCALE_CONFIG:
        break;
    }
    return error_set(err, "%s can only be given in a policy file", option->json);
}

/* ---- options by name ------------------------------------------------------------------------- */

const struct policy_option *policy_find(const char *name)
{
    static const char prefix[] = "elastic-";

    for (const struct policy_option *option = policy_options; option->json != NULL; option++) {
        if (option->option == NULL)
            continue;
        if (strcmp(name, option->option) == 0)
            return option;
        if (strncmp(option->option, prefix, strlen(prefix)) == 0 &&
            strcmp(name, option->option + strlen(prefix)) == 0)
            return option;
    }
    return NULL;
}

int policy_set(struct policy *policy, const char *name, const char *value, struct error *err)
{
    const struct policy_option *option = policy_find(name);

    if (option == NULL)
        return error_set(err, "--elastic-%s=%s: there is no option of this name", name,
                         error_value(value).text);
    if (policy_option_set(policy, option, value, err) == 0)
        return 0;
    return error_prefix(err, "--%s=%s", option->option, error_value(value).text);
}

char *policy_option_variable(const char *option, char *buf, size_t size)
{
    buf[0] = '\0';
    text_append(buf, size, VARIABLE_PREFIX "%s", option);
    for (char *c = buf; *c != '\0'; c++) {
        if (*c == '-')
            *c = '_';
    }
    return buf;
}

/* ---- values as text -------------------------------------------------------------------------- */

static void write_signal(FILE *out, int number)
{
    const char *name = sigabbrev_np(number);

    if (number == 0)
        fputs("none", out);
    else if (name != NULL)
        fputs(name, out);
    else
        fprintf(out, "%d", number);
}

static void write_words(FILE *out, const struct policy_option *option, int bits)
{
    const char *separator = "";

    if (bits == 0)
        fputs("none", out);
    for (int i = 0; i < POLICY_WORDS_MAX && option->words[i] != NULL; i++) {
        if ((bits & 1 << i) == 0)
            continue;
        fprintf(out, "%s%s", separator, option->words[i]);
        separator = ",";
    }
}

static void write_number_or_word(FILE *out, const struct policy_option *option, int value)
{
    if (value < POLICY_UNSET)
        fputs(option->words[-2 - value], out);
    else
        fprintf(out, "%d", value);
}

static void write_value(FILE *out, const struct policy *policy, const struct policy_option *option)
{
    char text[SIZES_TEXT_MAX];

    switch (option->kind) {
    case POLICY_KIND_SIZES:
        fputs(sizes_format(&policy->sizes, text, sizeof(text)), out);
        break;
    case POLICY_KIND_NUMBER:
        fprintf(out, "%d", int_value(policy, option));
        break;
    case POLICY_KIND_RESTARTS:
        fputs(budget_format(&policy->restarts, text, sizeof(text)), out);
        break;
    case POLICY_KIND_SIGNAL:
        write_signal(out, int_value(policy, option));
        break;
    case POLICY_KIND_WORD:
        fputs(option->words[int_value(policy, option)], out);
        break;
    case POLICY_KIND_WORDS:
        write_words(out, option, int_value(policy, option));
        break;
    case POLICY_KIND_POOLS:
        for (int i = 0; i < policy->pool_count; i++)
            fprintf(out, "%s%s", i > 0 ? "," : "", policy->pools[i]);
        break;
    case POLICY_KIND_NUMBER_OR_WORD:
        write_number_or_word(out, option, int_value(policy, option));
        break;
    case POLICY_KIND_AMOUNT:
        fputs(amount_format(double_value(policy, option), text, sizeof(text)), out);
        break;
    case POLICY_KIND_TIME:
        fputs(when_format((int64_t)double_value(policy, option), text, sizeof(text)), out);
        break;
    case POLICY_KIND_TEXT:
        fputs(text_value(policy, option), out);
        break;
    case POLICY_KIND_SCALE_CONFIG:
        fputs(json_object_to_json_string_ext(policy->scale_config, JSON_C_TO_STRING_PLAIN), out);
        break;
    }
}

char *policy_option_text(const struct policy *policy, const struct policy_option *option)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out;

    if (!policy_option_is_set(policy, option))
        return NULL;
    out = open_memstream(&text, &size);
    if (out == NULL)
        return NULL;
    write_value(out, policy, option);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

char *policy_option_default(const struct policy_option *option)
{
    struct policy policy;

    policy_init(&policy);
    put_number(&policy, option, option->builtin);
    return policy_option_text(&policy, option);
}
