/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values of keys of a job file, read by their kind (roles_private.h).
 *
 * In YAML each scalar is a text, and in JSON from elsewhere it may be a number or a boolean: both
 * are read from their text. */
#include "lib/roles_private.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/number.h"
#include "lib/policy.h"
#include "lib/recovery.h"
#include "lib/role_time.h"
#include "lib/route_by.h"
#include "lib/text.h"

#define ARGUMENTS_MAX 1000
#define LABEL_MAX     63
#define PATH_LENGTH   4095
/* 1 PiB: nobody has more, and sums of it do not overflow. */
#define MEMORY_MAX (INT64_C(1) << 30) /* MiB */

#define POOL_FORM "write 1 to 63 letters, digits and _ - . +, a letter, digit or _ first"

/* ---- texts ----------------------------------------------------------------------------------- */

/* The text of a scalar. NULL with err, which says what it should be. */
static const char *scalar(const struct roles_reader *reader, const struct roles_part *part,
                          const char *should)
{
    json_object *value = part->value;
    const char *text;

    if (value == NULL || json_object_is_type(value, json_type_object) ||
        json_object_is_type(value, json_type_array)) {
        roles_fail(reader, part, "%s is no value for it; write %s",
                   value == NULL                                  ? "null"
                   : json_object_is_type(value, json_type_object) ? "a map"
                                                                  : "a list",
                   should);
        return NULL;
    }
    text = json_object_get_string(value);
    if (text == NULL) {
        roles_no_memory(reader, part);
        return NULL;
    }
    if (json_object_is_type(value, json_type_string) &&
        strlen(text) != (size_t)json_object_get_string_len(value)) {
        roles_fail(reader, part, "a NUL byte in it is not allowed");
        return NULL;
    }
    return text;
}

static int refuse(const struct roles_reader *reader, const struct roles_part *part,
                  const char *text, const char *should)
{
    return roles_fail(reader, part, "'%s' is not allowed; %s", error_value(text).text, should);
}

static int put_text(const struct roles_reader *reader, const struct roles_part *part, char **field,
                    const char *text)
{
    char *copy = strdup(text);

    if (copy == NULL)
        return roles_no_memory(reader, part);
    free(*field);
    *field = copy;
    return 0;
}

bool role_is_name(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz-0123456789";
    size_t len = strlen(text);

    return len >= 1 && len <= ROLE_NAME_MAX && text[0] >= 'a' && text[0] <= 'z' &&
           strspn(text, letters) == len;
}

static bool is_label(const char *text)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.+";
    size_t len = strlen(text);

    return len >= 1 && len <= LABEL_MAX && strspn(text, letters) == len && text[0] != '-';
}

static bool is_path(const char *text)
{
    size_t len = strlen(text);

    if (len == 0 || len > PATH_LENGTH)
        return false;
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return false;
    }
    return true;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static int set_number(const struct roles_reader *reader, const struct roles_part *part,
                      const struct role_key *key, int *number)
{
    char should[64] = "";
    const char *text;

    text_append(should, sizeof(should), "a whole number from %d to %d", key->min, key->max);
    text = scalar(reader, part, should);
    if (text == NULL)
        return -1;
    if (number_parse(text, strlen(text), key->min, key->max, number) == 0)
        return 0;
    return roles_fail(reader, part, "'%s' is not %s", error_value(text).text, should);
}

static int set_version(const struct roles_reader *reader, const struct roles_part *part,
                       const struct role_key *key)
{
    const char *text = scalar(reader, part, key->builtin);
    int version;

    if (text == NULL)
        return -1;
    if (number_parse(text, strlen(text), key->min, key->max, &version) == 0)
        return 0;
    return roles_fail(reader, part, "'%s' is not a known version; write %s", error_value(text).text,
                      key->builtin);
}

static int set_range(const struct roles_reader *reader, const struct roles_part *part,
                     const struct role_key *key, struct role *role)
{
    const char *what = key->only_world ? "nodes" : "replicas", *text, *colon;
    int min, max;

    text = scalar(reader, part, "N or MIN:MAX");
    if (text == NULL)
        return -1;
    colon = strchr(text, ':');
    if (number_parse(text, colon != NULL ? (size_t)(colon - text) : strlen(text), key->min,
                     key->max, &min) < 0 ||
        number_parse(colon != NULL ? colon + 1 : text, strlen(colon != NULL ? colon + 1 : text),
                     key->min, key->max, &max) < 0)
        return roles_fail(reader, part,
                          "'%s' is not a number of %s; write N or MIN:MAX, each from %d to %d",
                          error_value(text).text, what, key->min, key->max);
    if (min > max)
        return roles_fail(reader, part, "MIN %d is larger than MAX %d; write MIN:MAX", min, max);
    if (max == 0)
        return roles_fail(reader, part, "%s is no role at all; write a MAX of at least 1", text);
    role->min = min;
    role->max = max;
    return 0;
}

static int set_memory(const struct roles_reader *reader, const struct roles_part *part,
                      int64_t *memory)
{
    static const char should[] = "memory such as 3G or 512M; K, M, G and T are known, and without "
                                 "one of them it is M";
    const char *text = scalar(reader, part, should);
    int64_t mebibytes = 0;
    char unit = 'M';
    size_t len;
    int shift;

    if (text == NULL)
        return -1;
    len = strspn(text, "0123456789");
    if (text[len] != '\0')
        unit = text[len] >= 'a' ? (char)(text[len] - 'a' + 'A') : text[len];
    if (len == 0 || (text[len] != '\0' && text[len + 1] != '\0') || strchr("KMGT", unit) == NULL)
        return roles_fail(reader, part, "'%s' is no amount of memory; write %s",
                          error_value(text).text, should);
    for (size_t i = 0; i < len && mebibytes <= MEMORY_MAX * 1024; i++)
        mebibytes = mebibytes * 10 + (text[i] - '0');
    if (unit == 'K')
        mebibytes = (mebibytes + 1023) / 1024;
    shift = unit == 'G' ? 10 : unit == 'T' ? 20 : 0;
    if (mebibytes > MEMORY_MAX >> shift)
        return roles_fail(reader, part, "'%s' is more than 1024T; write less",
                          error_value(text).text);
    *memory = mebibytes << shift;
    return 0;
}

static int set_amount(const struct roles_reader *reader, const struct roles_part *part,
                      struct rollout_amount *amount)
{
    static const char should[] = "a number from 0 to 10000, or 0% to 100%";
    const char *text = scalar(reader, part, should);

    if (text == NULL)
        return -1;
    if (rollout_amount_parse(text, strlen(text), amount) == 0)
        return 0;
    return roles_fail(reader, part, "'%s' is not %s", error_value(text).text, should);
}

/* "1:16" as well: other numbers have it, and there is no service without a shard. */
static int set_shards(const struct roles_reader *reader, const struct roles_part *part,
                      const struct role_key *key, int *number)
{
    char should[64] = "";
    const char *text, *most;

    text_append(should, sizeof(should), "N or 1:N, N from %d to %d", key->min, key->max);
    text = scalar(reader, part, should);
    if (text == NULL)
        return -1;
    most = strncmp(text, "1:", 2) == 0 ? text + 2 : text;
    if (number_parse(most, strlen(most), key->min, key->max, number) == 0)
        return 0;
    return roles_fail(reader, part, "'%s' is not allowed; write %s", error_value(text).text,
                      should);
}

/* ---- times ----------------------------------------------------------------------------------- */

static int set_time(const struct roles_reader *reader, const struct roles_part *part,
                    const struct role_key *key, double *seconds)
{
    const char *text = scalar(reader, part, "a time such as 30s");
    char least[32];
    int64_t time;

    if (text == NULL)
        return -1;
    time = role_time_parse(text, strlen(text));
    if (time < key->min)
        return roles_fail(
            reader, part, "'%s' is not a time from %s to 365 days; write a time such as %s or 1d",
            error_value(text).text, role_time_format(key->min / 1e3, least, sizeof(least)),
            role_time_examples(key->min));
    *seconds = (double)time / 1e3;
    return 0;
}

static int set_pauses(const struct roles_reader *reader, const struct roles_part *part,
                      const struct role_key *key, struct role *role)
{
    const char *text = scalar(reader, part, "FIRST..MOST, such as 1s..60s"), *dots;
    int64_t first, most;
    char least[32];

    if (text == NULL)
        return -1;
    dots = strstr(text, "..");
    first = role_time_parse(text, dots != NULL ? (size_t)(dots - text) : strlen(text));
    most = dots != NULL ? role_time_parse(dots + 2, strlen(dots + 2)) : first;
    if (first < key->min || most < first)
        return roles_fail(reader, part,
                          "'%s' is not FIRST..MOST; write two times from %s on, the shorter one "
                          "first, such as %s",
                          error_value(text).text,
                          role_time_format(key->min / 1e3, least, sizeof(least)), key->builtin);
    role->restart.first_pause = (double)first / 1e3;
    role->restart.max_pause = (double)most / 1e3;
    return 0;
}

static int set_budget(const struct roles_reader *reader, const struct roles_part *part,
                      struct role *role)
{
    const char *text = scalar(reader, part, "N or N/SECONDS");
    struct budget budget;
    struct error err = {""};

    if (text == NULL)
        return -1;
    if (budget_parse(text, &budget, &err) < 0)
        return roles_fail(reader, part, "%s", err.text);
    role->restart.max = budget.restarts;
    role->restart.window = budget.seconds;
    return 0;
}

static int set_signal(const struct roles_reader *reader, const struct roles_part *part, int *number)
{
    static const char should[] = "a signal that a program can catch, by its name such as TERM or "
                                 "INT, or by its number";
    const char *text = scalar(reader, part, should);
    struct policy policy;

    if (text == NULL)
        return -1;
    policy_init(&policy);
    if (policy_option_set(&policy, policy_find("elastic-signal"), text, NULL) < 0 ||
        policy.signal == 0)
        return roles_fail(reader, part, "'%s' is not %s", error_value(text).text, should);
    *number = policy.signal;
    return 0;
}

/* ---- words ----------------------------------------------------------------------------------- */

static int set_word(const struct roles_reader *reader, const struct roles_part *part,
                    const struct role_key *key, int *index)
{
    char words[128] = "";
    const char *text;

    for (int i = 0; i < ROLES_WORDS_MAX && key->words[i] != NULL; i++)
        text_append(words, sizeof(words), "%s%s",
                    i == 0                                                  ? ""
                    : i + 1 == ROLES_WORDS_MAX || key->words[i + 1] == NULL ? " or "
                                                                            : ", ",
                    key->words[i]);
    text = scalar(reader, part, words);
    if (text == NULL)
        return -1;
    for (int i = 0; i < ROLES_WORDS_MAX && key->words[i] != NULL; i++) {
        if (strcasecmp(text, key->words[i]) == 0) {
            *index = i;
            return 0;
        }
    }
    return roles_fail(reader, part, "'%s' is not allowed; write %s", error_value(text).text, words);
}

static int set_yes_no(const struct roles_reader *reader, const struct roles_part *part, bool *flag)
{
    static const char *const words[] = {"no", "yes", "false", "true", "off", "on"};
    const char *text = scalar(reader, part, "yes or no");

    if (text == NULL)
        return -1;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(text, words[i]) == 0) {
            *flag = i % 2 == 1;
            return 0;
        }
    }
    return refuse(reader, part, text, "write yes or no");
}

static int set_text(const struct roles_reader *reader, const struct roles_part *part,
                    const struct role_key *key, char **field)
{
    const char *text = scalar(reader, part, "a text"), *what;
    enum haproxy_key by;

    if (text == NULL)
        return -1;
    if (key->kind == ROLES_KIND_LABEL && !is_label(text))
        return refuse(reader, part, text,
                      "write 1 to 63 letters, digits and _ - . +, and no '-' first");
    if (key->kind == ROLES_KIND_PATH && !is_path(text))
        return refuse(reader, part, text,
                      "write a path of 1 to 4095 bytes without control characters");
    if (key->kind == ROLES_KIND_ROUTE_BY && !route_by_parse(text, &by, &what))
        return refuse(reader, part, text, "write " ROUTE_BY_FORM);
    if (key->kind == ROLES_KIND_NAME && !role_is_name(text))
        return refuse(reader, part, text, ROLE_NAME_FORM);
    if (key->kind == ROLES_KIND_POOL && policy_check_pool_name(text, NULL) < 0)
        return refuse(reader, part, text, POOL_FORM);
    return put_text(reader, part, field, text);
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* The i-th part of a list, or the value itself, which is a list of one. */
static struct roles_part list_part(const struct roles_part *list, size_t i)
{
    json_object *value = list->value;

    if (!json_object_is_type(value, json_type_array))
        return *list;
    return (struct roles_part){json_object_array_get_idx(value, i), list, NULL};
}

/* The texts of a list of at most max. NULL with err. */
static char **read_list(const struct roles_reader *reader, const struct roles_part *part, int max,
                        const char *should)
{
    json_object *value = part->value;
    bool is_list = json_object_is_type(value, json_type_array);
    size_t count = is_list ? json_object_array_length(value) : 1;
    char **texts;

    if (count == 0 || count > (size_t)max) {
        roles_fail(reader, part, "%zu values; write 1 to %d", count, max);
        return NULL;
    }
    texts = calloc(count + 1, sizeof(*texts));
    if (texts == NULL) {
        roles_no_memory(reader, part);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        struct roles_part entry = list_part(part, i);
        const char *text = scalar(reader, &entry, should);

        if (text != NULL && (texts[i] = strdup(text)) == NULL)
            roles_no_memory(reader, &entry);
        if (texts[i] == NULL) {
            strings_free(texts);
            return NULL;
        }
    }
    return texts;
}

static int set_command(const struct roles_reader *reader, const struct roles_part *part,
                       char ***field)
{
    static const char should[] =
        "the program and its arguments as a list, such as [python3, train.py]";
    json_object *value = part->value;
    char **texts;

    if (!json_object_is_type(value, json_type_array)) {
        const char *text = scalar(reader, part, should);

        return text != NULL ? roles_fail(reader, part, "'%s' is one text; write %s",
                                         error_value(text).text, should)
                            : -1;
    }
    texts = read_list(reader, part, ARGUMENTS_MAX, "a text");
    if (texts == NULL)
        return -1;
    if (texts[0][0] == '\0') {
        strings_free(texts);
        return roles_fail(reader, part, "the program has no name; write %s", should);
    }
    strings_free(*field);
    *field = texts;
    return 0;
}

/* Names that are well formed and different. NULL with err. */
static char **read_names(const struct roles_reader *reader, const struct roles_part *part, int max,
                         bool pools)
{
    char **names = read_list(reader, part, max, "a name");

    for (size_t i = 0; names != NULL && names[i] != NULL; i++) {
        struct roles_part entry = list_part(part, i);
        int rc = 0;

        if (pools && policy_check_pool_name(names[i], NULL) < 0)
            rc = refuse(reader, &entry, names[i], POOL_FORM);
        else if (!pools && !role_is_name(names[i]))
            rc = refuse(reader, &entry, names[i], ROLE_NAME_FORM);
        for (size_t k = 0; rc == 0 && k < i; k++) {
            if (strcmp(names[k], names[i]) == 0)
                rc = roles_fail(reader, &entry, "'%s' is there twice; name each once", names[i]);
        }
        if (rc == 0)
            continue;
        strings_free(names);
        return NULL;
    }
    return names;
}

char **role_value_names(const struct roles_reader *reader, const struct roles_part *part)
{
    return read_names(reader, part, ROLES_MAX, false);
}

static int set_names(const struct roles_reader *reader, const struct roles_part *part,
                     const struct role_key *key, char ***field)
{
    char **names = read_names(reader, part, key->max, key->kind == ROLES_KIND_POOLS);

    if (names == NULL)
        return -1;
    strings_free(*field);
    *field = names;
    return 0;
}

/* ---- ready ----------------------------------------------------------------------------------- */

static int set_http(const struct roles_reader *reader, const struct roles_part *part,
                    struct role *role)
{
    const char *text = scalar(reader, part, "a path such as /healthz");

    if (text == NULL)
        return -1;
    if (text[0] != '/' || !is_path(text) || strchr(text, ' ') != NULL)
        return refuse(reader, part, text, "write a path such as /healthz, without blanks");
    return put_text(reader, part, &role->ready.what, text);
}

static int set_file(const struct roles_reader *reader, const struct roles_part *part,
                    struct role *role)
{
    const char *text = scalar(reader, part, "the name of a file");

    if (text == NULL)
        return -1;
    if (!is_path(text))
        return refuse(reader, part, text, "write the name of a file");
    return put_text(reader, part, &role->ready.what, text);
}

static int set_probe(const struct roles_reader *reader, const struct roles_part *part,
                     const struct role_key *key, struct role *role)
{
    bool yes = true;
    int rc;

    if (role->ready.how != ROLE_PROBE_NONE)
        return roles_fail(reader, part,
                          "a second way to know that a task is ready; write one of http, tcp, "
                          "file, exec and told");
    if (key->probe == ROLE_PROBE_HTTP)
        rc = set_http(reader, part, role);
    else if (key->probe == ROLE_PROBE_FILE)
        rc = set_file(reader, part, role);
    else if (key->probe == ROLE_PROBE_EXEC)
        rc = set_command(reader, part, &role->ready.run);
    else
        rc = set_yes_no(reader, part, &yes);
    if (rc < 0)
        return -1;
    if (!yes)
        return roles_fail(reader, part, "'no' says nothing; write yes, or leave the key out");
    role->ready.how = key->probe;
    return 0;
}

/* ---- all kinds ------------------------------------------------------------------------------- */

int role_value_set(const struct roles_reader *reader, const struct roles_part *part,
                   const struct role_key *key, void *base)
{
    void *field = (char *)base + key->offset;
    int index, rc;

    switch (key->kind) {
    case ROLES_KIND_VERSION:
        return set_version(reader, part, key);
    case ROLES_KIND_NUMBER:
        return set_number(reader, part, key, field);
    case ROLES_KIND_RANGE:
        return set_range(reader, part, key, base);
    case ROLES_KIND_MEMORY:
        return set_memory(reader, part, field);
    case ROLES_KIND_TIME:
        return set_time(reader, part, key, field);
    case ROLES_KIND_YES_NO:
        return set_yes_no(reader, part, field);
    case ROLES_KIND_FLAG:
        rc = set_word(reader, part, key, &index);
        if (rc == 0)
            *(bool *)field = index == 1;
        return rc;
    case ROLES_KIND_WORD:
        return set_word(reader, part, key, field);
    case ROLES_KIND_LABEL:
    case ROLES_KIND_PATH:
    case ROLES_KIND_ROUTE_BY:
    case ROLES_KIND_NAME:
    case ROLES_KIND_POOL:
        return set_text(reader, part, key, field);
    case ROLES_KIND_COMMAND:
        return set_command(reader, part, field);
    case ROLES_KIND_NAMES:
    case ROLES_KIND_POOLS:
        return set_names(reader, part, key, field);
    case ROLES_KIND_SIGNAL:
        return set_signal(reader, part, field);
    case ROLES_KIND_BUDGET:
        return set_budget(reader, part, base);
    case ROLES_KIND_PAUSES:
        return set_pauses(reader, part, key, base);
    case ROLES_KIND_AMOUNT:
        return set_amount(reader, part, field);
    case ROLES_KIND_SHARDS:
        return set_shards(reader, part, key, field);
    case ROLES_KIND_NOT_BUILT:
        return roles_fail(reader, part, "it is not built yet; leave it out");
    case ROLES_KIND_PROBE:
        return set_probe(reader, part, key, base);
    case ROLES_KIND_TEMPLATE:
        return roles_fail(reader, part, "there are no templates here; write the role's keys");
    case ROLES_KIND_ROLE_NAMES:
    case ROLES_KIND_ROLES:
    case ROLES_KIND_READY:
    case ROLES_KIND_DRAIN:
    case ROLES_KIND_RESTART:
    case ROLES_KIND_UPDATE:
    case ROLES_KIND_SCALE:
    case ROLES_KIND_MODELS:
    case ROLES_KIND_FIT:
    case ROLES_KIND_WITHIN:
        break;
    }
    return roles_fail(reader, part, "no such kind of key");
}
