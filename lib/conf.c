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

#include "lib/conf_value.h"
#include "lib/text.h"

#define SITE_KEY(name, kind, field, min, max, builtin)                                             \
    {                                                                                              \
        name, kind, offsetof(struct conf, field), min, max, builtin, NULL, NULL                    \
    }
#define SITE_CHOICE(name, field, words)                                                            \
    {                                                                                              \
        name, CONF_KIND_CHOICE, offsetof(struct conf, field), 0, 0, NULL, NULL, words              \
    }
#define POOL_KEY(name, kind, field, min, max, builtin)                                             \
    {                                                                                              \
        name, kind, offsetof(struct pool, field), min, max, builtin, NULL, NULL                    \
    }

static const char *const advices[] = {
    [CONF_ADVICE_IGNORE] = "ignore", [CONF_ADVICE_REPLACE] = "replace", NULL};
static const char *const drains[] = {[CONF_DRAIN_NONE] = "none",
                                     [CONF_DRAIN_DRAIN] = "drain",
                                     [CONF_DRAIN_POWER_DOWN] = "power_down",
                                     NULL};

/* Keys that are no defaults of job options: those come from the table of lib/policy.h. */
static const struct conf_key site_keys[] = {
    SITE_KEY("max_pending", CONF_KIND_NUMBER, max_pending, 1, 1000, "2"),
    SITE_KEY("max_nodes", CONF_KIND_NUMBER, max_nodes, 0, SIZES_NODES_MAX, "0"),
    SITE_KEY("max_grace", CONF_KIND_SECONDS, max_grace, 0, POLICY_SECONDS_MAX, "0"),
    SITE_KEY("port_range", CONF_KIND_PORTS, port_first, 1024, 65535, "23000-27999"),
    SITE_KEY("heartbeat_timeout", CONF_KIND_SECONDS, heartbeat_timeout, 1, 3600, "2"),
    SITE_KEY("newcomer_timeout", CONF_KIND_SECONDS, newcomer_timeout, 1, 86400, "60"),
    SITE_KEY("node_backoff", CONF_KIND_SECONDS, node_backoff, 0, 86400, "60"),
    SITE_KEY("drain_look", CONF_KIND_SECONDS, drain_look, 0, 3600, "0"),
    SITE_KEY("state_dir", CONF_KIND_PATTERN, state_dir, 0, 0, "%h/.slurm-elastic/%c-%j"),
    SITE_KEY("snapshot_dir", CONF_KIND_PATH, snapshot_dir, 0, 0, "/run/slurm-elastic"),
    SITE_KEY("munge_socket", CONF_KIND_PATH, munge_socket, 0, 0, NULL),
    SITE_KEY("shapes", CONF_KIND_PATH, shapes_file, 0, 0, NULL),
    SITE_KEY("roles_dir", CONF_KIND_PATH, roles_dir, 0, 0, NULL),
    SITE_KEY("reclaim", CONF_KIND_RECLAIM, reclaim, 0, 0, "none"),
    SITE_KEY("reclaim_endpoint", CONF_KIND_URL, reclaim.endpoint, 0, 0, NULL),
    SITE_KEY("reclaim_program", CONF_KIND_PATH, reclaim.program, 0, 0, NULL),
    SITE_KEY("reclaim_url", CONF_KIND_URL, reclaim.url, 0, 0, NULL),
    SITE_KEY("reclaim_header", CONF_KIND_TEXT, reclaim.header, 0, 0, NULL),
    SITE_KEY("reclaim_answer", CONF_KIND_TEXT, reclaim.answer, 0, 0, NULL),
    SITE_CHOICE("reclaim_advice", reclaim.advice, advices),
    SITE_CHOICE("reclaim_drain", reclaim.drain, drains),
    SITE_KEY("prices", CONF_KIND_PATH, prices, 0, 0, NULL),
    SITE_KEY("pool_backoff", CONF_KIND_SPAN, pool_backoff_first, 1, 86400, "60-600"),
    SITE_KEY("epilog_flush", CONF_KIND_SECONDS, epilog_flush, 0, 3600, "20"),
    SITE_KEY("snapshot_keep", CONF_KIND_SECONDS, snapshot_keep, 60, 8640000, "86400"),
};

static const struct conf_key pool_keys[] = {
    POOL_KEY("partition", CONF_KIND_WORD, partition, 0, 0, NULL),
    POOL_KEY("qos", CONF_KIND_WORD, qos, 0, 0, NULL),
    POOL_KEY("constraint", CONF_KIND_EXPRESSION, constraint, 0, 0, NULL),
    POOL_KEY("grace", CONF_KIND_SECONDS, grace, 0, POLICY_SECONDS_MAX, "0"),
    POOL_KEY("time_min", CONF_KIND_MINUTES, time_min, 1, POLICY_SECONDS_MAX / 60, "15"),
    POOL_KEY("max_time", CONF_KIND_MINUTES, max_time, 0, POLICY_SECONDS_MAX / 60, "0"),
    POOL_KEY("wake", CONF_KIND_YES_NO, wake, 0, 0, "no"),
    POOL_KEY("fallback", CONF_KIND_YES_NO, fallback, 0, 0, "no"),
    POOL_KEY("reclaim", CONF_KIND_YES_NO, reclaim, 0, 0, NULL),
    POOL_KEY("price", CONF_KIND_AMOUNT, price, 0, 0, NULL),
    POOL_KEY("max_nodes", CONF_KIND_NUMBER, max_nodes, 0, SIZES_NODES_MAX, "0"),
    POOL_KEY("max_resume", CONF_KIND_NUMBER, max_resume, 1, SIZES_NODES_MAX, "8"),
    POOL_KEY("zone", CONF_KIND_WORD, zone, 0, 0, NULL),
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define KEYS_MAX     (COUNT(site_keys) + POLICY_OPTIONS_MAX)

/* The keys of one kind of section, where their values go, and the lines that have set them (0: none
 * yet). */
struct section {
    struct conf_key keys[KEYS_MAX];
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
        free(conf->pools[i].zone);
    }
    free(conf->pools);
    free(conf->path);
    free(conf->state_dir);
    free(conf->snapshot_dir);
    free(conf->munge_socket);
    free(conf->shapes_file);
    free(conf->roles_dir);
    free(conf->prices);
    free(conf->reclaim.endpoint);
    free(conf->reclaim.program);
    free(conf->reclaim.url);
    free(conf->reclaim.header);
    free(conf->reclaim.answer);
    policy_clear(&conf->defaults);
    free(conf);
}

/* Give the fields at base what holds without their keys. */
static int set_builtins(const struct conf_key *keys, size_t count, char *base, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (keys[i].builtin != NULL &&
            conf_value_set(&keys[i], base + keys[i].offset, keys[i].builtin, err) < 0)
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

static void add_keys(struct section *section, const struct conf_key *keys, size_t count)
{
    memcpy(section->keys + section->count, keys, count * sizeof(*keys));
    section->count += count;
}

/* The keys that set defaults of job options. */
static void add_option_keys(struct section *section)
{
    for (const struct policy_option *option = policy_options; option->json != NULL; option++) {
        if (option->conf != NULL)
            section->keys[section->count++] = (struct conf_key){
                .name = option->conf,
                .kind = CONF_KIND_POLICY,
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

    text += strspn(text, CONF_BLANKS);
    len = strlen(text);
    while (len > 0 && strchr(CONF_BLANKS, text[len - 1]) != NULL)
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
    if (conf_value_set(&section->keys[index], section->base + section->keys[index].offset, value,
                       err) < 0)
        return error_prefix(err, "%s", name);
    return 0;
}

struct pool *conf_add_pool(struct conf *conf, const char *name, struct error *err)
{
    struct pool *pool = realloc(conf->pools, ((size_t)conf->pool_count + 1) * sizeof(*pool));

    if (pool == NULL) {
        error_set(err, "out of memory");
        return NULL;
    }
    conf->pools = pool;
    pool += conf->pool_count++;
    *pool = (struct pool){.price = -1};
    text_append(pool->name, sizeof(pool->name), "%s", name);
    if (set_builtins(pool_keys, COUNT(pool_keys), (char *)pool, err) < 0 ||
        conf_value_set_text(&pool->partition, name, err) < 0)
        return NULL;
    return pool;
}

static bool has_notices(const struct conf_reclaim *reclaim)
{
    return reclaim->cloud != CONF_CLOUD_NONE || reclaim->program != NULL || reclaim->url != NULL;
}

/* What follows from all the keys of a pool, and from those of the site, which stand above it. */
static void finish_pool(struct parser *parser)
{
    struct section *section = &parser->pool;
    struct pool *pool = (struct pool *)(void *)section->base;

    if (pool != NULL && section->lines[find_key(section, "reclaim")] == 0)
        pool->reclaim = has_notices(&parser->conf->reclaim) && !pool->fallback;
}

static int parse_section(struct parser *parser, char *text, struct error *err)
{
    struct conf *conf = parser->conf;
    size_t len = strlen(text);
    struct pool *pool;
    const char *name;

    if (text[len - 1] != ']' || strncmp(text + 1, "pool", 4) != 0 ||
        strchr(CONF_BLANKS, text[5]) == NULL || text[5] == '\0')
        return error_set(err, "unknown section '%s'; write [pool NAME]", error_value(text).text);
    text[len - 1] = '\0';
    name = trim(text + 5);
    if (policy_check_pool_name(name, err) < 0)
        return -1;
    if (conf_pool(conf, name) != NULL)
        return error_set(err, "pool '%s' is there already; give each pool one section", name);
    finish_pool(parser);
    pool = conf_add_pool(conf, name, err);
    if (pool == NULL)
        return -1;
    parser->pool.base = (char *)pool;
    memset(parser->pool.lines, 0, sizeof(parser->pool.lines));
    parser->current = &parser->pool;
    return 0;
}

static int parse_line(struct parser *parser, char *text, unsigned int line, struct error *err)
{
    char *comment = strchr(text, '#');

    /* A '#' inside a word belongs to it. */
    while (comment != NULL && comment > text && strchr(CONF_BLANKS, comment[-1]) == NULL)
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

    finish_pool(parser);
    if (check_reclaim(parser, name, err) < 0)
        return -1;
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

bool conf_has_prices(const struct conf *conf)
{
    bool found = conf->prices != NULL;

    for (int i = 0; i < conf->pool_count; i++)
        found = found || conf->pools[i].price >= 0;
    return found;
}

char *conf_pool_names(const struct conf *conf, char *buf, size_t size)
{
    if (size > 0)
        buf[0] = '\0';
    for (int i = 0; i < conf->pool_count; i++)
        text_append(buf, size, "%s%s", i > 0 ? ", " : "", conf->pools[i].name);
    return buf;
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
