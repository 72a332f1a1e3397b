/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What haproxy is told of a service with shards (haproxy_text.h). */
#include "lib/haproxy_text.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/shard_commands.h"
#include "lib/shard_plan.h"
#include "lib/text.h"
#include "lib/world.h"

#define PORT_MAX 65535
/* How a server is checked. One that is added later does not get them from the configuration. */
#define CHECKS "check inter 200ms fall 2 rise 1 observe layer4 error-limit 1 on-error mark-down"

/* A path that servers read in different ways, as it comes: with parameters, control characters,
 * what would be decoded twice or be another sign of a URL, overlong UTF-8, or . and .. */
#define ODD                                                                                        \
    "[;#\\\\]|%([01][0-9a-f]|7f|2[35]|3[bf]|5c|c[01]|e0%[89]|f0%8)|"                               \
    "(/|%2f)(\\.|%2e)(\\.|%2e)?(/|%2f|$)"
/* Where a server of either API (lib/model_load.h) is told to load and to unload models: the leader
 * does that, and no client. All that begins so, in a path that is decoded and not odd. */
#define MANAGES                                                                                    \
    "/(un)?load_lora_adapter|/v2/+(repository|systemsharedmemory|cudasharedmemory|logging|trace)|" \
    "^/+api/+(pull|push|create|copy|delete)(/|$)|" ENGINE
/* Where vLLM and SGLang let anybody halt, empty or overwrite them, for all their models. */
#define ENGINE                                                                                     \
    "^/+((sleep|wake_up|pause|resume)(/|$)|abort_request|update_weight|init_weight|"               \
    "reset_[a-z]+_cache|flush_cache|collective_rpc|scale_elastic_ep|(start|stop)_profile|"         \
    "(release|resume)_memory|(pause|continue)_generation|configure_logging|set_internal_state)"
/* What a key that goes nowhere has in the map. */
#define NOWHERE "none"
/* So long after a request its key is asked for. */
#define ASKED "5s"

/* ---- what may be in a text ------------------------------------------------------------------- */

static bool is_ipv6(const char *address)
{
    struct in6_addr parsed;

    return address != NULL && inet_pton(AF_INET6, address, &parsed) == 1;
}

static bool is_ipv4(const char *address)
{
    struct in_addr parsed;

    return address != NULL && inet_pton(AF_INET, address, &parsed) == 1;
}

static int check_shard(int number, struct error *err)
{
    if (number < 1 || number > SHARD_PLAN_SHARDS_MAX)
        return error_set(err, "shard_%d is no shard: 1 to %d", number, SHARD_PLAN_SHARDS_MAX);
    return 0;
}

static int check_name(const struct haproxy_server *server, struct error *err)
{
    if (!world_name_ok(server->name))
        return error_set(err, "'%s' is no name of a replica", error_value(server->name).text);
    return 0;
}

static int check_server(const struct haproxy_server *server, struct error *err)
{
    if (check_name(server, err) != 0)
        return -1;
    if (!is_ipv4(server->address) && !is_ipv6(server->address))
        return error_set(err, "replica %s has no address that is a number: '%s'", server->name,
                         error_value(server->address).text);
    if (server->port < 1 || server->port > PORT_MAX)
        return error_set(err, "replica %s has no port from 1 to %d: %d", server->name, PORT_MAX,
                         server->port);
    return 0;
}

static int check_route(const struct haproxy_route *route, struct error *err)
{
    if (!shard_key_ok(route->key))
        return error_set(err, "'%s' is no key of a model", error_value(route->key).text);
    return route->shard == 0 ? 0 : check_shard(route->shard, err);
}

static int check_health(const char *path, struct error *err)
{
    if (!haproxy_path_ok(path))
        return error_set(err,
                         "'%s' is no path of letters, digits and /._- that begins with /, so "
                         "nobody can be asked there whether he is ready",
                         error_value(path).text);
    return 0;
}

static int check_config(const struct haproxy_config *config, struct error *err)
{
    if (!text_made_of(config->bind, ".:[]*") || strchr(config->bind, ':') == NULL)
        return error_set(err, "'%s' is no ADDRESS:PORT", error_value(config->bind).text);
    if (!haproxy_path_ok(config->socket) || !haproxy_path_ok(config->map) ||
        (config->tokens != NULL && !haproxy_path_ok(config->tokens)))
        return error_set(err,
                         "'%s', '%s' or '%s' is no path of letters, digits and /._- that begins "
                         "with /",
                         error_value(config->socket).text, error_value(config->map).text,
                         error_value(config->tokens).text);
    if (check_health(config->health, err) != 0)
        return -1;
    if (!haproxy_what_ok(config->by, config->what))
        return error_set(err,
                         "'%s' says not where requests carry their key: a header, a path that ends "
                         "with /, or a member of the body such as $.model",
                         error_value(config->what).text);
    return 0;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* A text that is being written. */
struct sheet {
    char *text;
    size_t size;
    FILE *stream;
};

static bool begin(struct sheet *sheet)
{
    *sheet = (struct sheet){0};
    sheet->stream = open_memstream(&sheet->text, &sheet->size);
    return sheet->stream != NULL;
}

/* NULL: out of memory, or it failed. */
static char *end(struct sheet *sheet, int status, struct error *err)
{
    if (sheet->stream == NULL || fclose(sheet->stream) != 0)
        status = error_set(err, "out of memory");
    if (status == 0)
        return sheet->text;
    free(sheet->text);
    return NULL;
}

static void write_entry(FILE *out, const struct haproxy_route *route)
{
    if (route->shard == 0)
        fprintf(out, "%s " NOWHERE "\n", route->key);
    else
        fprintf(out, "%s shard_%d\n", route->key, route->shard);
}

static void write_key(FILE *out, const struct haproxy_config *config)
{
    int segments = 1;

    fputs("    http-request set-var(txn.key) ", out);
    switch (config->by) {
    case HAPROXY_HEADER:
        fprintf(out, "req.hdr(%s)\n", config->what);
        break;
    case HAPROXY_PATH:
        for (const char *c = config->what; *c != '\0'; c++)
            segments += *c == '/';
        fprintf(out, "path,field(%d,/) if { path_beg %s }\n", segments, config->what);
        break;
    case HAPROXY_JSON:
        fprintf(out, "req.body,json_query('%s')\n", config->what);
        break;
    }
}

/* A key that goes nowhere by now is not one that nobody knows. */
static void write_route(FILE *out, const struct haproxy_config *config)
{
    fprintf(out, "    http-request set-var(txn.shard) var(txn.key),map_str(%s)\n", config->map);
    if (config->on_demand)
        fputs("    stick-table type string len 256 size 100k expire " ASKED "\n"
              "    http-request return status 404 unless { var(txn.shard) -m found }\n"
              "    http-request track-sc0 var(txn.key)\n"
              "    http-request return status 503 hdr Retry-After 2 if { var(txn.shard) -m "
              "str " NOWHERE " }\n",
              out);
    else
        fputs("    http-request return status 503 hdr Retry-After 2 unless "
              "{ var(txn.shard) -m found }\n",
              out);
    fputs("    use_backend %[var(txn.shard)]\n", out);
}

static void write_head(FILE *out, const struct haproxy_config *config)
{
    fprintf(out,
            "# Written by slurm-elastic, and written anew when shards change.\n"
            "global\n"
            "    stats socket %s mode 600 level admin expose-fd listeners\n"
            "    tune.bufsize %d\n"
            "    hard-stop-after %ds\n\n"
            "defaults\n"
            "    mode http\n"
            "    balance leastconn\n"
            "    timeout connect 2s\n"
            "    timeout check 2s\n" /* else 200 ms: a busy node is not one that is gone */
            "    timeout client 60s\n"
            "    timeout http-request 10s\n"
            "    timeout http-keep-alive 15s\n"
            "    timeout server 300s\n"
            "    retries 3\n"
            "    option redispatch 1\n"
            "    retry-on conn-failure empty-response response-timeout 503\n\n"
            "backend clients\n"
            "    stick-table type ipv6 size %d expire 10s store conn_cur\n\n"
            "frontend requests\n"
            "    bind %s\n"
            "    maxconn %d\n"
            "    tcp-request connection track-sc1 src table clients\n"
            "    tcp-request connection reject if { sc1_conn_cur gt %d }\n"
            /* Else a connection is as many requests as it likes, each with buffers of its own. */
            "    option disable-h2-upgrade\n"
            "    option idle-close-on-response\n",
            config->socket, HAPROXY_BUFFER, HAPROXY_OLD_MAX, 2 * HAPROXY_CONNECTIONS, config->bind,
            HAPROXY_CONNECTIONS, HAPROXY_CLIENT);
    if (config->tokens != NULL)
        fprintf(out,
                "    http-request return status 401 hdr WWW-Authenticate Bearer unless "
                "{ http_auth_bearer,sha2(256),hex -m str -f %s }\n"
                "    http-request del-header Authorization\n",
                config->tokens);
    /* What cannot be decoded matches nothing, and would pass the lines after the first. Another
     * protocol would be a tunnel, whose requests nobody looks at. */
    fputs("    http-request return status 400 unless { path,url_dec -m found }\n"
          "    http-request return status 400 if { path -m reg -i '" ODD "' }\n"
          "    http-request return status 403 if { path,url_dec -m reg -i '" MANAGES "' }\n"
          "    http-request del-header Upgrade\n"
          "    http-request del-header HTTP2-Settings\n",
          out);
    /* Only now: nobody without a token has a body in memory. */
    if (config->by == HAPROXY_JSON)
        fputs("    http-request wait-for-body time 30s\n", out);
    write_key(out, config);
    write_route(out, config);
}

static void write_address(FILE *out, const struct haproxy_server *server)
{
    fprintf(out, is_ipv6(server->address) ? "[%s]:%d" : "%s:%d", server->address, server->port);
}

static int write_shard(FILE *out, const struct haproxy_config *config,
                       const struct haproxy_shard *shard, struct error *err)
{
    const char *health = shard->health != NULL ? shard->health : config->health;

    if (check_shard(shard->number, err) != 0 || check_health(health, err) != 0)
        return -1;
    fprintf(out, "\nbackend shard_%d\n    option httpchk GET %s\n", shard->number, health);
    for (int i = 0; i < shard->count; i++) {
        const struct haproxy_server *server = &shard->servers[i];

        if (check_server(server, err) != 0)
            return -1;
        fprintf(out, "    server %s ", server->name);
        write_address(out, server);
        fputs(" " CHECKS "\n", out);
    }
    return 0;
}

char *haproxy_config_text(const struct haproxy_config *config, const struct haproxy_shard *shards,
                          int count, struct error *err)
{
    struct sheet sheet;
    int status = check_config(config, err);

    if (status != 0)
        return NULL;
    if (begin(&sheet)) {
        write_head(sheet.stream, config);
        for (int i = 0; i < count && status == 0; i++)
            status = write_shard(sheet.stream, config, &shards[i], err);
    }
    return end(&sheet, status, err);
}

char *haproxy_map_text(const struct haproxy_route *routes, int count, struct error *err)
{
    struct sheet sheet;
    int status = 0;

    if (begin(&sheet))
        for (int i = 0; i < count && status == 0; i++) {
            status = check_route(&routes[i], err);
            if (status == 0)
                write_entry(sheet.stream, &routes[i]);
        }
    return end(&sheet, status, err);
}

/* ---- the runtime API ------------------------------------------------------------------------- */

char *haproxy_server_command(enum haproxy_verb verb, const struct haproxy_config *config, int shard,
                             const struct haproxy_server *server, struct error *err)
{
    static const struct {
        const char *before, *after;
    } forms[] = {
        [HAPROXY_ADD] = {"add server", " "},
        [HAPROXY_ENABLE] = {"enable server", ""},
        [HAPROXY_CHECK] = {"enable health", ""},
        [HAPROXY_DRAIN] = {"set server", " state drain"},
        [HAPROXY_READY] = {"set server", " state ready"},
        [HAPROXY_MAINT] = {"set server", " state maint"},
        [HAPROXY_DELETE] = {"del server", ""},
    };
    struct sheet sheet;

    if (check_config(config, err) != 0 || check_shard(shard, err) != 0 ||
        (verb == HAPROXY_ADD ? check_server : check_name)(server, err) != 0)
        return NULL;
    if (begin(&sheet)) {
        fprintf(sheet.stream, "%s shard_%d/%s%s", forms[verb].before, shard, server->name,
                forms[verb].after);
        if (verb == HAPROXY_ADD) {
            write_address(sheet.stream, server);
            fputs(" " CHECKS, sheet.stream);
        }
        fputc('\n', sheet.stream);
    }
    return end(&sheet, 0, err);
}

static char *map_command(const struct haproxy_config *config, const char *verb, int64_t version,
                         struct error *err)
{
    struct sheet sheet;

    if (check_config(config, err) != 0)
        return NULL;
    if (begin(&sheet)) {
        fprintf(sheet.stream, "%s map ", verb);
        if (version >= 0)
            fprintf(sheet.stream, "@%" PRId64 " ", version);
        fprintf(sheet.stream, "%s\n", config->map);
    }
    return end(&sheet, 0, err);
}

char *haproxy_prepare(const struct haproxy_config *config, struct error *err)
{
    return map_command(config, "prepare", -1, err);
}

char *haproxy_commit(const struct haproxy_config *config, int64_t version, struct error *err)
{
    return map_command(config, "commit", version, err);
}

/* One piece from *next on. */
static char *piece(const struct haproxy_config *config, int64_t version,
                   const struct haproxy_route *routes, int count, int *next, struct error *err)
{
    struct sheet sheet;
    int status = 0;
    /* The longest line that may follow. */
    const long most = HAPROXY_PIECE - SHARD_KEY_MAX - (long)sizeof(" shard_10000\n\n");

    if (begin(&sheet)) {
        fprintf(sheet.stream, "add map @%" PRId64 " %s <<\n", version, config->map);
        while (status == 0 && *next < count && ftell(sheet.stream) <= most) {
            const struct haproxy_route *route = &routes[(*next)++];

            status = check_route(route, err);
            if (status == 0)
                write_entry(sheet.stream, route);
        }
        fputc('\n', sheet.stream);
    }
    return end(&sheet, status, err);
}

char **haproxy_pieces(const struct haproxy_config *config, int64_t version,
                      const struct haproxy_route *routes, int count, struct error *err)
{
    char **pieces = calloc((size_t)count + 1, sizeof(*pieces));
    int number = 0;

    if (pieces == NULL) {
        error_set(err, "out of memory");
        return NULL;
    }
    if (check_config(config, err) != 0) {
        strings_free(pieces);
        return NULL;
    }
    for (int next = 0; next < count;) {
        pieces[number] = piece(config, version, routes, count, &next, err);
        if (pieces[number++] == NULL) {
            strings_free(pieces);
            return NULL;
        }
    }
    return pieces;
}

/* ---- answers --------------------------------------------------------------------------------- */

static int64_t number_at(const char *text)
{
    int64_t number = 0;
    const char *c = text;

    for (; isdigit((unsigned char)*c) && number < INT64_MAX / 100; c++)
        number = number * 10 + (*c - '0');
    return c == text || isdigit((unsigned char)*c) ? -1 : number;
}

int64_t haproxy_version_of(const char *answer)
{
    static const char words[] = "New version created: ";

    if (strncmp(answer, words, sizeof(words) - 1) != 0)
        return -1;
    return number_at(answer + sizeof(words) - 1);
}

int64_t haproxy_entries_of(const char *answer, const char *map)
{
    static const char words[] = " entry_cnt=";
    size_t length = strlen(map);

    for (const char *line = answer; line != NULL; line = strchr(line, '\n')) {
        const char *name, *stop, *found;

        line += *line == '\n';
        stop = line + strcspn(line, "\n");
        name = memchr(line, '(', (size_t)(stop - line));
        if (name == NULL || (size_t)(stop - name) < length + 2 ||
            strncmp(name + 1, map, length) != 0 || name[length + 1] != ')')
            continue;
        found = memmem(name, (size_t)(stop - name), words, sizeof(words) - 1);
        return found != NULL ? number_at(found + sizeof(words) - 1) : -1;
    }
    return -1;
}
