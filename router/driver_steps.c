/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Carries out a batch of a plan, one command after the other. The first that fails ends the batch:
 * then haproxy is looked at again. */
#include "router/driver_private.h"

#include <stdlib.h>
#include <string.h>

#include "common/files.h"
#include "common/log.h"
#include "lib/text.h"

#define RELOAD_MS      10000
#define RELOAD_LOOK_MS 20
#define SHUT_LOOK_MS   200
#define SHOW_MAPS      "show map\n"

static void next_step(struct driver *d);

/* ---- files ----------------------------------------------------------------------------------- */

void driver_config(const struct driver *d, const struct route_table *table,
                   struct haproxy_config *config)
{
    *config = (struct haproxy_config){
        .bind = d->options.listen,
        .socket = d->options.home->socket,
        .map = d->options.home->map,
        .by = d->options.what != NULL ? d->options.by : table->by,
        .what = d->options.what != NULL ? d->options.what : table->what,
        .health = table->shard_count > 0 ? table->shards[0].check : "/",
        .on_demand = table->on_demand,
        .tokens = d->options.has_tokens ? d->options.home->tokens : NULL,
    };
}

/* The text is kept, and written if it is another one than before. */
static int replace(const char *path, char **before, char *text, struct error *err)
{
    if (*before != NULL && strcmp(*before, text) == 0) {
        free(text);
        return 0;
    }
    if (file_replace(path, text, strlen(text), 0600, err) != 0) {
        free(text);
        return -1;
    }
    free(*before);
    *before = text;
    return 0;
}

static int write_tokens(const struct driver *d, struct error *err)
{
    if (!d->options.has_tokens)
        return 0;
    return file_replace(d->options.home->tokens, d->tokens, strlen(d->tokens), 0600, err);
}

int driver_write_files(struct driver *d, bool loads, struct error *err)
{
    const struct home *home = d->options.home;
    struct haproxy_config config;
    char *text, *map;

    driver_config(d, d->table, &config);
    map = haproxy_map_text(d->plan.routes, d->plan.route_count, err);
    if (map == NULL || replace(home->map, &d->map, map, err) != 0)
        return -1;
    text = haproxy_config_text(&config, d->plan.shards, d->plan.shard_count, err);
    if (text == NULL || replace(home->config, &d->config, text, err) != 0)
        return -1;
    if (!loads)
        return 0;
    if (write_tokens(d, err) != 0)
        return -1;
    free(d->loaded);
    d->loaded = strdup(d->config);
    d->outdated = false;
    return 0;
}

/* ---- the batch ------------------------------------------------------------------------------- */

void driver_drop_plan(struct driver *d)
{
    if (d->planned)
        router_plan_clear(&d->plan);
    d->planned = false;
    strings_free(d->pieces);
    d->pieces = NULL;
}

/* haproxy says no, perhaps because something has changed since it was looked at. */
static void refused(struct driver *d, const char *command, const char *answer)
{
    log_debug("haproxy refuses '%.*s': %s", (int)strcspn(command, "\n"), command, answer);
    driver_drop_plan(d);
    driver_look_in(d, 200);
}

static void over(struct driver *d)
{
    driver_drop_plan(d);
    driver_look_in(d, 0);
}

/* ---- routes ---------------------------------------------------------------------------------- */

/* The map has them from now on, so requests that come by older ones are looked for. */
static void keep_routes(struct driver *d)
{
    int count = d->plan.route_count;
    struct haproxy_route *copy = calloc((size_t)count + 1, sizeof(*copy));

    haproxy_routes_free(d->routes, d->route_count);
    d->routes = copy;
    d->route_count = 0;
    d->routes_known = copy != NULL;
    for (int i = 0; copy != NULL && i < count; i++) {
        copy[i] = (struct haproxy_route){strdup(d->plan.routes[i].key), d->plan.routes[i].shard};
        if (copy[i].key == NULL) {
            d->routes_known = false;
            return;
        }
        d->route_count++;
    }
}

static void on_committed(const char *answer, const char *why, void *arg)
{
    struct driver *d = arg;

    d->talk = NULL;
    if (answer == NULL || strcmp(answer, "\n") != 0) {
        d->routes_known = false; /* nobody knows which ones hold, and since when */
        d->switched = d->older = true;
        d->limit = -1;
        driver_failed(d, "commit map", answer != NULL ? answer : why);
        return;
    }
    keep_routes(d);
    d->switched = d->older = true;
    d->limit = -1;
    log_info("%d route%s hold%s, of epoch %lld%s", d->plan.route_count,
             d->plan.route_count == 1 ? "" : "s", d->plan.route_count == 1 ? "s" : "",
             (long long)d->table->epoch, d->plan.why.text[0] != '\0' ? " (not all yet)" : "");
    d->step++;
    next_step(d);
}

static void on_counted(const char *answer, const char *why, void *arg)
{
    struct driver *d = arg;
    struct haproxy_config config;
    struct error err = {""};
    char *command;

    d->talk = NULL;
    if (answer == NULL) {
        driver_failed(d, "show map", why);
        return;
    }
    if (haproxy_entries_of(answer, d->options.home->map) != d->entries + d->plan.route_count) {
        driver_failed(d, "add map", "not all routes have arrived");
        return;
    }
    driver_config(d, d->table, &config);
    command = haproxy_commit(&config, d->version, &err);
    driver_ask(d, d->options.home->socket, command, on_committed);
    free(command);
}

static void next_piece(struct driver *d);

static void on_piece(const char *answer, const char *why, void *arg)
{
    struct driver *d = arg;

    d->talk = NULL;
    if (answer == NULL || strcmp(answer, "\n") != 0) {
        driver_failed(d, "add map", answer != NULL ? answer : why);
        return;
    }
    d->piece++;
    next_piece(d);
}

static void next_piece(struct driver *d)
{
    const char *piece = d->pieces[d->piece];

    driver_ask(d, d->options.home->socket, piece != NULL ? piece : SHOW_MAPS,
               piece != NULL ? on_piece : on_counted);
}

static void on_entries(const char *answer, const char *why, void *arg)
{
    struct driver *d = arg;
    struct haproxy_config config;
    struct error err = {""};

    d->talk = NULL;
    d->entries = answer != NULL ? haproxy_entries_of(answer, d->options.home->map) : -1;
    if (d->entries < 0) {
        driver_failed(d, "show map", answer != NULL ? "it does not say how many there are" : why);
        return;
    }
    driver_config(d, d->table, &config);
    d->pieces = haproxy_pieces(&config, d->version, d->plan.routes, d->plan.route_count, &err);
    d->piece = 0;
    if (d->pieces == NULL)
        driver_failed(d, "routes", err.text);
    else
        next_piece(d);
}

static void on_prepared(const char *answer, const char *why, void *arg)
{
    struct driver *d = arg;

    d->talk = NULL;
    d->version = answer != NULL ? haproxy_version_of(answer) : -1;
    if (d->version < 0)
        driver_failed(d, "prepare map", answer != NULL ? answer : why);
    else
        driver_ask(d, d->options.home->socket, SHOW_MAPS, on_entries);
}

static void switch_routes(struct driver *d)
{
    struct haproxy_config config;
    struct error err = {""};
    char *command;

    driver_config(d, d->table, &config);
    command = haproxy_prepare(&config, &err);
    driver_ask(d, d->options.home->socket, command, on_prepared);
    free(command);
}

/* ---- reload, servers ------------------------------------------------------------------------- */

static void reload(struct driver *d)
{
    struct error err = {""};

    if (driver_write_files(d, true, &err) != 0) {
        log_error("haproxy cannot be reloaded: %s", err.text);
        driver_drop_plan(d);
        driver_look_in(d, 1000);
        return;
    }
    log_info("haproxy is reloaded: %d shard%s", d->plan.shard_count,
             d->plan.shard_count == 1 ? "" : "s");
    d->reloads++;
    d->reload_from = d->workers.worker;
    d->reload_limit = uv_now(d->loop) + RELOAD_MS;
    haproxy_reload(d->haproxy);
    driver_drop_plan(d);
    driver_look_in(d, RELOAD_LOOK_MS);
}

static bool is_done(enum haproxy_verb verb, const char *answer)
{
    switch (verb) {
    case HAPROXY_ADD:
        return strstr(answer, "New server registered.") != NULL;
    case HAPROXY_DELETE:
        return strstr(answer, "Server deleted.") != NULL;
    default:
        return strcmp(answer, "\n") == 0;
    }
}

static char *command_of(struct driver *d, const struct router_step *step, struct error *err)
{
    struct haproxy_config config;

    driver_config(d, d->table, &config);
    return haproxy_server_command(step->verb, &config, step->shard, &step->server, err);
}

static void on_server(const char *answer, const char *why, void *arg)
{
    struct driver *d = arg;
    const struct router_step *step = &d->plan.steps[d->step];
    struct error err = {""};
    char *command;

    d->talk = NULL;
    if (answer == NULL) {
        driver_failed(d, "a command for a server", why);
        return;
    }
    if (is_done(step->verb, answer)) {
        d->step++;
        next_step(d);
        return;
    }
    command = command_of(d, step, &err);
    refused(d, command != NULL ? command : "", answer);
    free(command);
}

static void tell_server(struct driver *d)
{
    struct error err = {""};
    char *command = command_of(d, &d->plan.steps[d->step], &err);

    driver_ask(d, d->options.home->socket, command, on_server);
    free(command);
}

/* ---- older requests -------------------------------------------------------------------------- */

/* Who has ended meanwhile is not found, and the next look says who has not. */
static void on_shut(const char *answer, const char *why, void *arg)
{
    struct driver *d = arg;

    d->talk = NULL;
    if (answer == NULL) {
        driver_failed(d, "shutdown session", why);
        return;
    }
    driver_drop_plan(d);
    driver_look_in(d, SHUT_LOOK_MS);
}

static void on_older(const char *answer, const char *why, void *arg)
{
    struct driver *d = arg;
    struct error err = {""};
    char *command;
    int count = 0;

    d->talk = NULL;
    command = answer != NULL ? haproxy_shut_command(answer, driver_overdue(d), &count, &err) : NULL;
    if (command == NULL) {
        driver_failed(d, "show sess", answer == NULL ? why : err.text);
        return;
    }
    if (count == 0) {
        over(d);
    } else {
        log_info("%d request%s that came by older routes %s shut after %d s", count,
                 count == 1 ? "" : "s", count == 1 ? "is" : "are", HAPROXY_OLD_MAX);
        driver_ask(d, d->options.home->socket, command, on_shut);
    }
    free(command);
}

static void next_step(struct driver *d)
{
    if (d->step == d->plan.count) {
        over(d);
        return;
    }
    switch (d->plan.steps[d->step].kind) {
    case ROUTER_RELOAD:
        reload(d);
        return;
    case ROUTER_ROUTES:
        switch_routes(d);
        return;
    case ROUTER_SERVER:
        tell_server(d);
        return;
    case ROUTER_SHUT:
        driver_ask(d, d->options.home->socket, HAPROXY_SHOW_STREAMS, on_older);
        return;
    }
}

void driver_carry_out(struct driver *d)
{
    d->step = 0;
    next_step(d);
}
