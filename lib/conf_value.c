/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Values of elastic.conf (conf_value.h). */
#include "lib/conf_value.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/amount.h"
#include "lib/number.h"
#include "lib/text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The values of reclaim that name a cloud. */
static const char *const clouds[] = {
    [CONF_CLOUD_NONE] = "none",       [CONF_CLOUD_AWS] = "aws",
    [CONF_CLOUD_GCP] = "gcp",         [CONF_CLOUD_AZURE] = "azure",
    [CONF_CLOUD_ALIBABA] = "alibaba", [CONF_CLOUD_TENCENT] = "tencent",
};

static int set_number(int *number, const struct conf_key *key, const char *value, const char *unit,
                      struct error *err)
{
    if (number_parse(value, strlen(value), key->min, key->max, number) == 0)
        return 0;
    return error_set(err, "'%s' is not a number%s; allowed are whole numbers from %d to %d",
                     error_value(value).text, unit, key->min, key->max);
}

/* FIRST-LAST. Returns -1 with numbers unchanged. */
static int parse_range(int numbers[2], const struct conf_key *key, const char *value)
{
    const char *dash = strchr(value, '-');
    int first, last;

    if (dash == NULL ||
        number_parse(value, (size_t)(dash - value), key->min, key->max, &first) < 0 ||
        number_parse(dash + 1, strlen(dash + 1), first, key->max, &last) < 0)
        return -1;
    numbers[0] = first;
    numbers[1] = last;
    return 0;
}

static int set_ports(int ports[2], const struct conf_key *key, const char *value, struct error *err)
{
    int range[2];

    if (parse_range(range, key, value) < 0 || range[1] - range[0] + 1 < CONF_PORTS_MIN)
        return error_set(
            err,
            "'%s' is not a range of ports; write FIRST-LAST with %d <= FIRST, LAST <= %d "
            "and at least %d ports, such as 23000-27999",
            error_value(value).text, key->min, key->max, CONF_PORTS_MIN);
    memcpy(ports, range, sizeof(range));
    return 0;
}

static int set_span(int seconds[2], const struct conf_key *key, const char *value,
                    struct error *err)
{
    if (parse_range(seconds, key, value) == 0)
        return 0;
    return error_set(err,
                     "'%s' is not FIRST-MOST; write two numbers of seconds from %d to %d, the "
                     "smaller one first, such as %s",
                     error_value(value).text, key->min, key->max, key->builtin);
}

static int set_choice(int *index, const struct conf_key *key, const char *value, struct error *err)
{
    char words[128] = "";

    for (int i = 0; key->words[i] != NULL; i++) {
        if (strcmp(value, key->words[i]) == 0) {
            *index = i;
            return 0;
        }
        text_append(words, sizeof(words), "%s%s",
                    i == 0                      ? ""
                    : key->words[i + 1] == NULL ? " or "
                                                : ", ",
                    key->words[i]);
    }
    return error_set(err, "'%s' is not allowed; write %s", error_value(value).text, words);
}

static int set_amount(double *amount, const char *value, struct error *err)
{
    if (amount_parse(value, strlen(value), amount) == 0)
        return 0;
    return error_set(err, "'%s' is not an amount from 0 to %d; " AMOUNT_FORM,
                     error_value(value).text, AMOUNT_MAX);
}

int conf_value_set_text(char **text, const char *value, struct error *err)
{
    char *copy = strdup(value);

    if (copy == NULL)
        return error_set(err, "out of memory");
    free(*text);
    *text = copy;
    return 0;
}

static int set_word(char **text, const char *value, const char *refused, struct error *err)
{
    if (value[strcspn(value, refused)] != '\0' || value[0] == '-')
        return error_set(err, "'%s' is not allowed; write it without %s, and no '-' first",
                         error_value(value).text,
                         strchr(refused, ',') != NULL ? "blanks and commas" : "blanks");
    return conf_value_set_text(text, value, err);
}

static int set_path(char **text, const char *value, struct error *err)
{
    if (value[0] != '/')
        return error_set(err, "'%s' is not an absolute path; write one that begins with /",
                         error_value(value).text);
    return conf_value_set_text(text, value, err);
}

static int set_url(char **text, const char *value, struct error *err)
{
    if (strncmp(value, "http://", 7) != 0 && strncmp(value, "https://", 8) != 0)
        return error_set(err, "'%s' is not an address; write http://… or https://…",
                         error_value(value).text);
    return set_word(text, value, CONF_BLANKS, err);
}

static int set_pattern(char **text, const char *value, struct error *err)
{
    const char *known =
        "write an absolute path, in which %h is the user's home, %u the user, %j the job id, "
        "%c the cluster's name and %% a percent sign";
    bool has_job = false;

    if (value[0] != '/' && strncmp(value, "%h", 2) != 0)
        return error_set(err, "'%s' does not begin with / or %%h; %s", error_value(value).text,
                         known);
    for (const char *at = strchr(value, '%'); at != NULL; at = strchr(at + 2, '%')) {
        if (at[1] == '\0' || strchr("hujc%", at[1]) == NULL)
            return error_set(err, "'%s' has a %% that means nothing; %s", error_value(value).text,
                             known);
        has_job = has_job || at[1] == 'j';
    }
    if (!has_job)
        return error_set(err, "'%s' has no %%j, so that two jobs would share it; %s",
                         error_value(value).text, known);
    return conf_value_set_text(text, value, err);
}

static int set_yes_no(bool *flag, const char *value, struct error *err)
{
    if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
        return error_set(err, "'%s' is not allowed; write yes or no", error_value(value).text);
    *flag = strcmp(value, "yes") == 0;
    return 0;
}

static int set_reclaim(struct conf_reclaim *reclaim, const char *value, struct error *err)
{
    for (size_t i = 0; i < COUNT(clouds); i++) {
        if (strcmp(value, clouds[i]) == 0) {
            reclaim->cloud = (enum conf_cloud)i;
            return 0;
        }
    }
    reclaim->named = true;
    if (value[0] == '/')
        return set_path(&reclaim->program, value, err);
    if (strncmp(value, "http", 4) == 0)
        return set_url(&reclaim->url, value, err);
    return error_set(err,
                     "'%s' is not allowed; write none, aws, gcp, azure, alibaba, tencent, "
                     "the absolute path of a program, or http://…",
                     error_value(value).text);
}

int conf_value_set(const struct conf_key *key, void *field, const char *value, struct error *err)
{
    switch (key->kind) {
    case CONF_KIND_NUMBER:
        return set_number(field, key, value, "", err);
    case CONF_KIND_SECONDS:
        return set_number(field, key, value, " of seconds", err);
    case CONF_KIND_MINUTES:
        return set_number(field, key, value, " of minutes", err);
    case CONF_KIND_POLICY:
        return policy_option_set(field, key->option, value, err);
    case CONF_KIND_PORTS:
        return set_ports(field, key, value, err);
    case CONF_KIND_PATH:
        return set_path(field, value, err);
    case CONF_KIND_PATTERN:
        return set_pattern(field, value, err);
    case CONF_KIND_WORD:
        return set_word(field, value, CONF_BLANKS ",", err);
    case CONF_KIND_EXPRESSION:
        return set_word(field, value, CONF_BLANKS, err);
    case CONF_KIND_URL:
        return set_url(field, value, err);
    case CONF_KIND_TEXT:
        return conf_value_set_text(field, value, err);
    case CONF_KIND_YES_NO:
        return set_yes_no(field, value, err);
    case CONF_KIND_CHOICE:
        return set_choice(field, key, value, err);
    case CONF_KIND_AMOUNT:
        return set_amount(field, value, err);
    case CONF_KIND_SPAN:
        return set_span(field, key, value, err);
    case CONF_KIND_RECLAIM:
        return set_reclaim(field, value, err);
    }
    return error_set(err, "no such kind of key");
}
