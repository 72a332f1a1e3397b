/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elastic.conf (conf.h).
 *
 * This is an own parser, because libinih does not fit, as Debian builds it:
 * - its handler gets no line numbers;
 * - it does not report a section without keys, and a pool may have no keys;
 * - it cuts long names of sections without an error, and long lines in two;
 * - it takes an indented line as the continuation of the line before;
 * - behind a value it knows only comments that begin with ';';
 * - it keeps its settings in variables of the process, and the process can be slurmctld. */
#include "lib/conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/number.h"
#include "lib/text.h"

#define BLANKS " \t"

enum kind {
    KIND_NUMBER,  /* int, min..max */
    KIND_SECONDS, /* the same, and messages say "of seconds" */
    KIND_MINUTES,
    KIND_POLICY,     /* a default of a job option, in struct policy */
    KIND_PORTS,      /* port_first and the int behind it */
    KIND_PATH,       /* char *, absolute */
    KIND_PATTERN,    /* char *, absolute after expansion */
    KIND_WORD,       /* char *, one name */
    KIND_EXPRESSION, /* char *, no blanks */
    KIND_URL,        /* char *, http or https */
    KIND_TEXT,       /* char * */
    KIND_YES_NO,     /* bool */
    KIND_RECLAIM,    /* struct conf_reclaim: a cloud, a program or an address */
    KIND_ADVICE,     /* enum conf_advice */
    KIND_DRAIN,      /* enum conf_drain */
};

struct key {
    const char *name;
    enum kind kind;
    /* Of the field in struct conf or struct pool. */
    size_t offset;
    int min, max;
    /* What holds without the key, as it would be written. NULL: nothing. */
    const char *builtin;
    /* Of KIND_POLICY: the row of the table of job options. */
    const struct policy_option *option;
};

#define SITE_KEY(name, kind, field, min, max, builtin)                                             \
    {                                                                                              \
        name, kind, offsetof(struct conf, field), min, max, builtin, NULL                          \
    }
#define POOL_KEY(name, kind, field, min, max, builtin)                                             \
    {                                                                                              \
        name, kind, offsetof(struct pool, field), min, max, builtin, NULL                          \
    }

/* Keys that are no defaults of job options: those come from the table of lib/policy.h. */
static const struct key site_keys[] = {
    SITE_KEY("max_pending", KIND_NUMBER, max_pending, 1, 1000, "2"),
    SITE_KEY("max_nodes", KIND_NUMBER, max_nodes, 0, SIZES_NODES_MAX, "0"),
    SITE_KEY("max_grace", KIND_SECONDS, max_grace, 0, POLICY_SECONDS_MAX, "0"),
    SITE_KEY("port_range", KIND_PORTS, port_first, 1024, 65535, "23000-27999"),
    SITE_KEY("heartbeat_timeout", KIND_SECONDS, heartbeat_timeout, 1, 3600, "2"),
    SITE_KEY("newcomer_timeout", KIND_SECONDS, newcomer_timeout, 1, 86400, "60"),
    SITE_KEY("node_backoff", KIND_SECONDS, node_backoff, 0, 86400, "60"),
    SITE_KEY("drain_look", KIND_SECONDS, drain_look, 0, 3600, "0"),
    SITE_KEY("state_dir", KIND_PATTERN, state_dir, 0, 0, "%h/.slurm-elastic/%c-%j"),
    SITE_KEY("snapshot_dir", KIND_PATH, snapshot_dir, 0, 0, "/run/slurm-elastic"),
    SITE_KEY("munge_socket", KIND_PATH, munge_socket, 0, 0, NULL),
    SITE_KEY("shapes", KIND_PATH, shapes_file, 0, 0, NULL),
    SITE_KEY("reclaim", KIND_RECLAIM, reclaim, 0, 0, "none"),
    SITE_KEY("reclaim_endpoint", KIND_URL, reclaim.endpoint, 0, 0, NULL),
    SITE_KEY("reclaim_program", KIND_PATH, reclaim.program, 0, 0, NULL),
    SITE_KEY("reclaim_url", KIND_URL, reclaim.url, 0, 0, NULL),
    SITE_KEY("reclaim_header", KIND_TEXT, reclaim.header, 0, 0, NULL),
    SITE_KEY("reclaim_answer", KIND_TEXT, reclaim.answer, 0, 0, NULL),
    SITE_KEY("reclaim_advice", KIND_ADVICE, reclaim.advice, 0, 0, "ignore"),
    SITE_KEY("reclaim_drain", KIND_DRAIN, reclaim.drain, 0, 0, "none"),
    SITE_KEY("epilog_flush", KIND_SECONDS, epilog_flush, 0, 3600, "20"),
    SITE_KEY("snapshot_keep", KIND_SECONDS, snapshot_keep, 60, 8640000, "86400"),
};

static const struct key pool_keys[] = {
    POOL_KEY("partition", KIND_WORD, partition, 0, 0, NULL),
    POOL_KEY("qos", KIND_WORD, qos, 0, 0, NULL),
    POOL_KEY("constraint", KIND_EXPRESSION, constraint, 0, 0, NULL),
    POOL_KEY("grace", KIND_SECONDS, grace, 0, POLICY_SECONDS_MAX, "0"),
    POOL_KEY("time_min", KIND_MINUTES, time_min, 1, POLICY_SECONDS_MAX / 60, "15"),
    POOL_KEY("wake", KIND_YES_NO, wake, 0, 0, "no"),
};

/* The values of reclaim that name a cloud. */
static const char *const clouds[] = {
    [CONF_CLOUD_NONE] = "none",       [CONF_CLOUD_AWS] = "aws",
    [CONF_CLOUD_GCP] = "gcp",         [CONF_CLOUD_AZURE] = "azure",
    [CONF_CLOUD_ALIBABA] = "alibaba", [CONF_CLOUD_TENCENT] = "tencent",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define KEYS_MAX     (COUNT(site_keys) + POLICY_OPTIONS_MAX)

/* The keys of one kind of section, where their values go, and the lines that have set them (0: none
 * yet). */
struct section {
    struct key keys[KEYS_MAX];
    size_t count;
    char *base;
    unsigned int lines[KEYS_MAX];
};

struct parser {
    struct conf *conf;
    struct section site;
    /* The current pool; base is NULL before the first. */
    struct section pool;
    struct section *current;
};

void conf_destroy(struct conf *conf)
{
    if (conf == NULL)
        return;
    for (int i = 0; i < conf->pool_count; i++) {
        free(conf->pools[i].partition);
        free(conf->pools[i].qos);
        free(conf->pools[i].constraint);
    }
    free(conf->pools);
    free(conf->path);
    free(conf->state_dir);
    free(conf->snapshot_dir);
    free(conf->munge_socket);
    free(conf->shapes_file);
    free(conf->reclaim.endpoint);
    free(conf->reclaim.program);
    free(conf->reclaim.url);
    free(conf->reclaim.header);
    free(conf->reclaim.answer);
    policy_clear(&conf->defaults);
    free(conf);
}

static int set_number(int *number, const struct key *key, const char *value, const char *unit,
                      struct error *err)
{
    if (number_parse(value, strlen(value), key->min, key->max, number) == 0)
        return 0;
    return error_set(err, "'%s' is not a number%s; allowed are whole numbers from %d to %d",
                     error_value(value).text, unit, key->min, key->max);
}

static int set_ports(int ports[2], const struct key *key, const char *value, struct error *err)
{
    const char *dash = strchr(value, '-');
    int first, last;

    if (dash == NULL ||
        number_parse(value, (size_t)(dash - value), key->min, key->max, &first) < 0 ||
        number_parse(dash + 1, strlen(dash + 1), key->min, key->max, &last) < 0 ||
        last - first + 1 < CONF_PORTS_MIN)
        return error_set(
            err,
            "'%s' is not a range of ports; write FIRST-LAST with %d <= FIRST, LAST <= %d "
            "and at least %d ports, such as 23000-27999",
            error_value(value).text, key->min, key->max, CONF_PORTS_MIN);
    ports[0] = first;
    ports[1] = last;
    return 0;
}

static int set_text(char **text, const char *value, struct error *err)
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
    return set_text(text, value, err);
}

static int set_path(char **text, const char *value, struct error *err)
{
    if (value[0] != '/')
        return error_set(err, "'%s' is not an absolute path; write one that begins with /",
                         error_value(value).text);
    return set_text(text, value, err);
}

static int set_url(char **text, const char *value, struct error *err)
{
    if (strncmp(value, "http://", 7) != 0 && strncmp(value, "https://", 8) != 0)
        return error_set(err, "'%s' is not an address; write http://… or https://…",
                         error_value(value).text);
    return set_word(text, value, BLANKS, err);
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
    return set_text(text, value, err);
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

static int set_advice(enum conf_advice *advice, const char *value, struct error *err)
{
    if (strcmp(value, "ignore") != 0 && strcmp(value, "replace") != 0)
        return error_set(err, "'%s' is not allowed; write ignore or replace",
                         error_value(value).text);
    *advice = strcmp(value, "replace") == 0 ? CONF_ADVICE_REPLACE : CONF_ADVICE_IGNORE;
    return 0;
}

static int set_drain(enum conf_drain *drain, const char *value, struct error *err)
{
    if (strcmp(value, "none") == 0)
        *drain = CONF_DRAIN_NONE;
    else if (strcmp(value, "drain") == 0)
        *drain = CONF_DRAIN_DRAIN;
    else if (strcmp(value, "power_down") == 0)
        *drain = CONF_DRAIN_POWER_DOWN;
    else
        return error_set(err, "'%s' is not allowed; write none, drain or power_down",
                         error_value(value).text);
    return 0;
}

static int set_value(const struct key *key, void *field, const char *value, struct error *err)
{
    switch (key->kind) {
    case KIND_NUMBER:
        return set_number(field, key, value, "", err);
    case KIND_SECONDS:
        return set_number(field, key, value, " of seconds", err);
    case KIND_MINUTES:
        return set_number(field, key, value, " of minutes", err);
    case KIND_POLICY:
        return policy_option_set(field, key->option, value, err);
    case KIND_PORTS:
        return set_ports(field, key, value, err);
    case KIND_PATH:
        return set_path(field, value, err);
    case KIND_PATTERN:
        return set_pattern(field, value, err);
    case KIND_WORD:
        return set_word(field, value, BLANKS ",", err);
    case KIND_EXPRESSION:
        return set_word(field, value, BLANKS, err);
    case KIND_URL:
        return set_url(field, value, err);
    case KIND_TEXT:
        return set_text(field, value, err);
    case KIND_YES_NO:
        return set_yes_no(field, value, err);
    case KIND_RECLAIM:
        return set_reclaim(field, value, err);
    case KIND_ADVICE:
        return set_advice(field, value, err);
    case KIND_DRAIN:
        return set_drain(field, value, err);
    }
    return error_set(err, "no such kind of key");
}

/* Give the fields at base what holds without their keys. */
static int set_builtins(const struct key *keys, size_t count, char *base, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (keys[i].builtin != NULL &&
            set_value(&keys[i], base + keys[i].offset, keys[i].builtin, err) < 0)
            return -1;
    }
    return 0;
}

struct conf *conf_create(void)
{
    struct conf *conf = calloc(1, sizeof(*conf));

    if (conf == NULL)
        return NULL;
    policy_init(&conf->defaults);
    policy_defaults(&conf->defaults);
    if (set_builtins(site_keys, COUNT(site_keys), (char *)conf, NULL) == 0)
        return conf;
    conf_destroy(conf);
    return NULL;
}

static void add_keys(struct section *section, const struct key *keys, size_t count)
{
    memcpy(section->keys + section->count, keys, count * sizeof(*keys));
    section->count += count;
}

/* The keys that set defaults of job options. */
static void add_option_keys(struct section *section)
{
    for (const struct policy_option *option = policy_options; option->json != NULL; option++) {
        if (option->conf != NULL)
            section->keys[section->count++] = (struct key){
                .name = option->conf,
                .kind = KIND_POLICY,
                .offset = offsetof(struct conf, defaults),
                .option = option,
            };
    }
}

static char *key_names(const struct section *section, char *buf, size_t size)
{
    buf[0] = '\0';
    for (size_t i = 0; i < section->count; i++)
        text_append(buf, size, "%s%s", i > 0 ? ", " : "", section->keys[i].name);
    return buf;
}

/* The index of a key in section, or section->count. */
static size_t find_key(const struct section *section, const char *name)
{
    size_t i = 0;

    while (i < section->count && strcmp(section->keys[i].name, name) != 0)
        i++;
    return i;
}

static int unknown_key(const struct parser *parser, const char *name, struct error *err)
{
    const struct section *site = &parser->site;
    char names[1024];

    if (parser->current != site && find_key(site, name) < site->count)
        return error_set(
            err,
            "'%s' is no key of a pool; move it above the first [pool NAME]. Keys of a pool: %s",
            name, key_names(parser->current, names, sizeof(names)));
    if (parser->current == site && find_key(&parser->pool, name) < parser->pool.count)
        return error_set(
            err, "'%s' is a key of a pool; move it under its [pool NAME]. Keys of the site: %s",
            name, key_names(site, names, sizeof(names)));
    return error_set(err, "unknown key '%s'; known keys%s: %s", error_value(name).text,
                     parser->current == site ? "" : " of a pool",
                     key_names(parser->current, names, sizeof(names)));
}

/* Cut the blanks around text, in place. */
static char *trim(char *text)
{
    size_t len;

    text += strspn(text, BLANKS);
    len = strlen(text);
    while (len > 0 && strchr(BLANKS, text[len - 1]) != NULL)
        text[--len] = '\0';
    return text;
}

static int parse_assignment(struct parser *parser, char *text, unsigned int line, struct error *err)
{
    struct section *section = parser->current;
    char *equals = strchr(text, '=');
    const char *name, *value;
    size_t index;

    if (equals == NULL)
        return error_set(err, "'%s' is neither 'key = value' nor [pool NAME]",
                         error_value(text).text);
    *equals = '\0';
    name = trim(text);
    value = trim(equals + 1);
    index = find_key(section, name);
    if (index == section->count)
        return unknown_key(parser, name, err);
    if (section->lines[index] != 0)
        return error_set(err, "%s is set already in line %u; leave one of them out", name,
                         section->lines[index]);
    section->lines[index] = line;
    if (value[0] == '\0')
        return error_set(err, "%s has no value; write one, or leave the line out for the default",
                         name);
    if (set_value(&section->keys[index], section->base + section->keys[index].offset, value, err) <
        0)
        return error_prefix(err, "%s", name);
    return 0;
}

static int parse_section(struct parser *parser, char *text, struct error *err)
{
    struct conf *conf = parser->conf;
    size_t len = strlen(text);
    struct pool *pool;
    const char *name;

    if (text[len - 1] != ']' || strncmp(text + 1, "pool", 4) != 0 ||
        strchr(BLANKS, text[5]) == NULL || text[5] == '\0')
        return error_set(err, "unknown section '%s'; write [pool NAME]", error_value(text).text);
    text[len - 1] = '\0';
    name = trim(text + 5);
    if (policy_check_pool_name(name, err) < 0)
        return -1;
    if (conf_pool(conf, name) != NULL)
        return error_set(err, "pool '%s' is there already; give each pool one section", name);
    pool = realloc(conf->pools, ((size_t)conf->pool_count + 1) * sizeof(*pool));
    if (pool == NULL)
        return error_set(err, "out of memory");
    conf->pools = pool;
    pool += conf->pool_count++;
    memset(pool, 0, sizeof(*pool));
    text_append(pool->name, sizeof(pool->name), "%s", name);
    parser->pool.base = (char *)pool;
    memset(parser->pool.lines, 0, sizeof(parser->pool.lines));
    parser->current = &parser->pool;
    return set_builtins(pool_keys, COUNT(pool_keys), parser->pool.base, err);
}

static int parse_line(struct parser *parser, char *text, unsigned int line, struct error *err)
{
    char *comment = strchr(text, '#');

    /* A '#' inside a word belongs to it. */
    while (comment != NULL && comment > text && strchr(BLANKS, comment[-1]) == NULL)
        comment = strchr(comment + 1, '#');
    if (comment != NULL)
        *comment = '\0';
    text = trim(text);
    if (text[0] == '\0')
        return 0;
    if (text[0] == '[')
        return parse_section(parser, text, err);
    return parse_assignment(parser, text, line, err);
}

/* The length of the line at text, without its end; *skip is with it. Lines end as in Unix or
 * DOS. */
static size_t line_length(const char *text, size_t len, size_t *skip)
{
    const char *newline = memchr(text, '\n', len);
    size_t length = newline != NULL ? (size_t)(newline - text) : len;

    *skip = newline != NULL ? length + 1 : length;
    if (newline != NULL && length > 0 && text[length - 1] == '\r')
        length--;
    return length;
}

static int parse_lines(struct parser *parser, const char *name, const char *text, size_t len,
                       struct error *err)
{
    size_t skip;

    for (unsigned int line = 1; len > 0; line++, text += skip, len -= skip) {
        size_t length = line_length(text, len, &skip);
        char *copy = strndup(text, length);
        int rc;

        if (copy == NULL)
            return error_set(err, "out of memory");
        if (strlen(copy) != length)
            rc = error_set(err, "a NUL byte; elastic.conf is text");
        else
            rc = parse_line(parser, copy, line, err);
        free(copy);
        if (rc < 0)
            return error_prefix(err, "%s:%u", error_path(name).text, line);
    }
    return 0;
}

/* The line that has set a key of the site, 0 if none. */
static unsigned int line_of(const struct parser *parser, const char *key)
{
    return parser->site.lines[find_key(&parser->site, key)];
}

/* Keys beside reclaim that do nothing without it. */
static int check_reclaim_effects(const struct parser *parser, const char *name, struct error *err)
{
    const struct conf_reclaim *reclaim = &parser->conf->reclaim;
    bool switched = line_of(parser, "reclaim") != 0; /* off, perhaps: the keys may stay */

    if (line_of(parser, "reclaim_endpoint") != 0 && (reclaim->named || !switched))
        return error_set(err,
                         "%s:%u: reclaim_endpoint: it is the address of the service of a cloud; "
                         "write reclaim = aws, gcp, azure, alibaba or tencent as well",
                         error_path(name).text, line_of(parser, "reclaim_endpoint"));
    if (reclaim->advice == CONF_ADVICE_REPLACE &&
        (reclaim->named || !switched || reclaim->cloud > CONF_CLOUD_GCP))
        return error_set(err,
                         "%s:%u: reclaim_advice: only aws and gcp give advice; write reclaim = aws "
                         "or gcp as well, or reclaim_advice = ignore",
                         error_path(name).text, line_of(parser, "reclaim_advice"));
    if (reclaim->drain != CONF_DRAIN_NONE && reclaim->url == NULL &&
        (!switched || reclaim->program != NULL))
        return error_set(err,
                         "%s:%u: reclaim_drain: the epilog asks a cloud or an address, and runs no "
                         "program; write reclaim = aws, gcp, azure, alibaba, tencent or http://… "
                         "as well",
                         error_path(name).text, line_of(parser, "reclaim_drain"));
    return 0;
}

/* Keys beside reclaim that say the same again. */
static int check_reclaim(const struct parser *parser, const char *name, struct error *err)
{
    const struct conf_reclaim *reclaim = &parser->conf->reclaim;
    static const char *const others[] = {"reclaim_program", "reclaim_url", "reclaim_header",
                                         "reclaim_answer"};
    /* A header and an answer belong to an address, whichever key has named it. */
    size_t refused = reclaim->named && reclaim->url != NULL ? 2 : COUNT(others);

    if (check_reclaim_effects(parser, name, err) < 0)
        return -1;
    if (!reclaim->named && reclaim->cloud == CONF_CLOUD_NONE)
        return 0;
    for (size_t i = 0; i < refused; i++) {
        if (line_of(parser, others[i]) != 0)
            return error_set(err, "%s:%u: %s: reclaim is set already in line %u; leave one out",
                             error_path(name).text, line_of(parser, others[i]), others[i],
                             line_of(parser, "reclaim"));
    }
    return 0;
}

/* Names and limits that fit only once the whole file is read. */
static int finish(struct parser *parser, const char *name, struct error *err)
{
    struct conf *conf = parser->conf;
    struct policy *defaults = &conf->defaults;
    char names[256];

    if (check_reclaim(parser, name, err) < 0)
        return -1;
    for (int i = 0; i < conf->pool_count; i++) {
        if (conf->pools[i].partition == NULL &&
            set_text(&conf->pools[i].partition, conf->pools[i].name, err) < 0)
            return -1;
    }
    for (int i = 0; i < defaults->pool_count; i++) {
        if (conf_pool(conf, defaults->pools[i]) == NULL)
            return error_set(
                err, "%s:%u: default_pool: unknown pool '%s'; pools in this file: %s",
                error_path(name).text, line_of(parser, "default_pool"), defaults->pools[i],
                conf->pool_count > 0 ? conf_pool_names(conf, names, sizeof(names)) : "none");
    }
    if (defaults->pool_count == 0 && conf->pool_count > 0)
        policy_option_set(defaults, policy_find("pool"), conf->pools[0].name, NULL);
    if (conf->max_grace == 0 || defaults->grace <= conf->max_grace)
        return 0;
    if (line_of(parser, "grace") != 0)
        return error_set(err,
                         "%s:%u: grace: %d is larger than max_grace (%d in line %u); lower it or "
                         "raise max_grace",
                         error_path(name).text, line_of(parser, "grace"), defaults->grace,
                         conf->max_grace, line_of(parser, "max_grace"));
    /* The built-in default must not make every job that says nothing a refused one. */
    defaults->grace = conf->max_grace;
    return 0;
}

struct conf *conf_parse(const char *name, const char *text, size_t len, struct error *err)
{
    struct parser parser = {.conf = conf_create()};

    if (parser.conf == NULL) {
        error_set(err, "out of memory");
        return NULL;
    }
    add_keys(&parser.site, site_keys, COUNT(site_keys));
    add_option_keys(&parser.site);
    add_keys(&parser.pool, pool_keys, COUNT(pool_keys));
    parser.site.base = (char *)parser.conf;
    parser.current = &parser.site;
    if (parse_lines(&parser, name, text, len, err) == 0 && finish(&parser, name, err) == 0)
        return parser.conf;
    conf_destroy(parser.conf);
    return NULL;
}

const struct pool *conf_pool(const struct conf *conf, const char *name)
{
    for (int i = 0; i < conf->pool_count; i++) {
        if (strcmp(conf->pools[i].name, name) == 0)
            return &conf->pools[i];
    }
    return NULL;
}

char *conf_pool_names(const struct conf *conf, char *buf, size_t size)
{
    if (size > 0)
        buf[0] = '\0';
    for (int i = 0; i < conf->pool_count; i++)
        text_append(buf, size, "%s%s", i > 0 ? ", " : "", conf->pools[i].name);
    return buf;
}

int conf_check_policy(const struct conf *conf, const struct policy *policy, struct error *err)
{
    char text[256];

    if (conf->max_nodes > 0 && policy->sizes.max > conf->max_nodes) {
        sizes_format(&policy->sizes, text, sizeof(text));
        return error_set(
            err,
            "--elastic=%s: MAX %d is larger than the %d nodes that this site allows an elastic job "
            "(max_nodes in elastic.conf)",
            error_value(text).text, policy->sizes.max, conf->max_nodes);
    }
    if (conf->max_grace > 0 && policy->grace > conf->max_grace)
        return error_set(
            err,
            "--elastic-grace=%d: this site allows at most %d seconds (max_grace in elastic.conf)",
            policy->grace, conf->max_grace);
    for (int i = 0; i < policy->pool_count && conf->pool_count > 0; i++) {
        if (conf_pool(conf, policy->pools[i]) == NULL)
            return error_set(err, "--elastic-pool=%s: unknown pool; pools of this site: %s",
                             policy->pools[i], conf_pool_names(conf, text, sizeof(text)));
    }
    return 0;
}

/* What %LETTER stands for, NULL if for nothing. */
static const char *replacement(char letter, const char *const values[4])
{
    static const char letters[] = "hujc";
    const char *found = letter != '\0' ? strchr(letters, letter) : NULL;

    if (letter == '%')
        return "%";
    return found != NULL ? values[found - letters] : NULL;
}

char *conf_expand(const char *pattern, const char *home, const char *user, const char *job,
                  const char *cluster)
{
    const char *const values[4] = {home, user, job, cluster};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (out == NULL)
        return NULL;
    for (const char *at = pattern; *at != '\0'; at++) {
        const char *value = *at == '%' ? replacement(at[1], values) : NULL;

        if (value != NULL) {
            fputs(value, out);
            at++;
        } else {
            fputc(*at, out);
        }
    }
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}
