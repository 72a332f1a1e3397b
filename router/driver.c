/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Drives haproxy to what the table of routes says (driver.h): its life, looks, and plans. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "router/driver_private.h"

#define TALK_MS      2000
#define FAILURES_MAX 3    /* … in a row, and haproxy is killed */
#define START_MS     5000 /* until it answers */
#define SOON_MS      20   /* while it starts */
#define WAIT_MS      50   /* while something is waited for */
#define REST_MS      1000 /* else */
#define FAILED_MS    200
#define STEADY_MS    10000 /* who lived so long has not failed to start */
#define ASKED_MAX    2000  /* keys of a report */

/* ---- questions ------------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer);

void driver_look_in(struct driver *d, uint64_t ms)
{
    if (!d->destroyed)
        uv_timer_start(&d->timer, on_timer, ms, 0);
}

void driver_failed(struct driver *d, const char *what, const char *why)
{
    driver_drop_plan(d);
    log_debug("haproxy: %s: %s", what, why);
    if (uv_now(d->loop) < d->start_limit) {
        driver_look_in(d, SOON_MS);
        return;
    }
    if (++d->failures < FAILURES_MAX) {
        driver_look_in(d, FAILED_MS);
        return;
    }
    log_error("haproxy does not answer as it should, and is started anew: %s: %s", what, why);
    d->failures = 0;
    haproxy_kill(d->haproxy, d->workers.worker);
    driver_look_in(d, REST_MS);
}

void driver_ask(struct driver *d, const char *socket, const char *command, talk_done *done)
{
    if (command != NULL)
        d->talk = talk_begin(d->loop, socket, command, TALK_MS, done, d);
    if (command == NULL || d->talk == NULL)
        driver_failed(d, "a command", command == NULL ? "it cannot be written" : "out of memory");
}

/* ---- its life -------------------------------------------------------------------------------- */

static void forget(struct driver *d)
{
    if (d->talk != NULL)
        talk_cancel(d->talk);
    d->talk = NULL;
    driver_drop_plan(d);
    haproxy_stat_clear(&d->stat);
    haproxy_routes_free(d->routes, d->route_count);
    d->routes = NULL;
    d->route_count = 0;
    d->routes_known = d->switched = d->older = false;
    json_object_put(d->asked);
    d->asked = NULL;
    d->reload_from = 0;
    d->overdue = false;
    d->patience = (struct router_patience){false};
    d->failures = 0;
    d->workers = (struct haproxy_workers){0};
}

static void on_ended(void *arg)
{
    struct driver *d = arg;
    uint64_t now = uv_now(d->loop);
    double pause;

    forget(d);
    if (d->finishing) {
        uv_timer_stop(&d->timer);
        d->options.ended(d->options.arg);
        return;
    }
    if (now > d->started + STEADY_MS)
        retry_reset(&d->retry);
    pause = retry_failed(&d->retry, (double)now / 1000);
    log_info("haproxy is started again in %.1f s", pause);
    driver_look_in(d, (uint64_t)(1000 * pause));
}

static int write_first(struct driver *d, struct error *err)
{
    const struct router_has nothing = {.stat = &d->stat, .cold = true};

    if (router_plan(&nothing, d->table, &d->plan) != 0)
        return error_set(err, "out of memory");
    d->planned = true;
    return driver_write_files(d, true, err);
}

static void start(struct driver *d)
{
    struct error err = {""};
    bool failed = write_first(d, &err) != 0;

    driver_drop_plan(d);
    if (failed || haproxy_start(d->haproxy, &err) != 0) {
        log_error("%s", err.text);
        driver_look_in(d,
                       (uint64_t)(1000 * retry_failed(&d->retry, (double)uv_now(d->loop) / 1000)));
        return;
    }
    uv_update_time(d->loop);
    d->starts++;
    d->started = uv_now(d->loop);
    d->start_limit = d->started + START_MS;
    driver_look_in(d, SOON_MS);
}

/* ---- looking --------------------------------------------------------------------------------- */

static bool is_outdated(const struct driver *d)
{
    struct haproxy_config config;
    struct error err = {""};
    const char *from;
    char *head, section[600];
    bool same;

    if (d->outdated || d->loaded == NULL)
        return true;
    driver_config(d, d->table, &config);
    head = haproxy_config_text(&config, NULL, 0, &err);
    same = head != NULL && strncmp(d->loaded, head, strlen(head)) == 0;
    free(head);
    from = d->loaded;
    for (int i = 0; i < d->table->shard_count && same; i++) {
        const struct route_shard *shard = &d->table->shards[i];

        if (!haproxy_stat_has_shard(&d->stat, shard->number))
            continue;
        snprintf(section, sizeof(section), "\nbackend shard_%d\n    option httpchk GET %s\n",
                 shard->number, shard->check);
        from = strstr(from, section);
        same = from != NULL;
    }
    return !same;
}

static double seconds(const struct driver *d)
{
    return (double)uv_now(d->loop) / 1000;
}

int64_t driver_overdue(const struct driver *d)
{
    return router_patience_overdue(&d->patience, seconds(d));
}

static void confirm(struct driver *d)
{
    int64_t epoch = router_patience_look(&d->patience, &d->plan, d->table->epoch, d->limit,
                                         seconds(d));

    if (d->plan.holds ? epoch != d->confirmed : epoch > d->confirmed) {
        d->confirmed = epoch;
        log_info("epoch %lld is true", (long long)d->confirmed);
    }
    snprintf(d->why, sizeof(d->why), "%s", d->plan.why.text);
}

/* At rest, the files are as haproxy is, for the next start. */
static void rest(struct driver *d)
{
    struct error err = {""};

    if (uv_now(d->loop) >= d->saved + REST_MS) {
        d->saved = uv_now(d->loop);
        if (driver_write_files(d, false, &err) != 0)
            log_error("%s", err.text);
    }
    driver_drop_plan(d);
    if (d->next != NULL || d->outdated) /* it has come while haproxy was looked at */
        driver_look_in(d, 0);
    else
        driver_look_in(d, d->why[0] != '\0' || d->older || d->workers.old > 0 ? WAIT_MS : REST_MS);
}

static void decide(struct driver *d)
{
    struct router_has has = {.stat = &d->stat,
                             .routes = d->routes,
                             .route_count = d->route_count,
                             .older = d->older || d->workers.old > 0,
                             .overdue = d->overdue,
                             .outdated = is_outdated(d)};

    d->failures = 0;
    d->start_limit = 0;
    if (router_plan(&has, d->table, &d->plan) != 0) {
        driver_look_in(d, FAILED_MS);
        return;
    }
    d->planned = true;
    confirm(d);
    d->options.looked(d->options.arg);
    if (d->plan.count > 0)
        driver_carry_out(d);
    else
        rest(d);
}

static void on_asked(const char *answer, const char *why, void *arg)
{
    struct driver *d = arg;

    d->talk = NULL;
    if (answer == NULL) {
        driver_failed(d, "show table", why);
        return;
    }
    json_object_put(d->asked);
    d->asked = haproxy_asked_read(answer, ASKED_MAX, &d->asked_more);
    decide(d);
}

static void look_at_asked(struct driver *d)
{
    if (d->table->on_demand) {
        driver_ask(d, d->options.home->socket, HAPROXY_SHOW_ASKED, on_asked);
        return;
    }
    json_object_put(d->asked);
    d->asked = NULL;
    decide(d);
}

static void on_streams(const char *answer, const char *why, void *arg)
{
    struct driver *d = arg;
    struct haproxy_streams streams;
    struct error err = {""};

    d->talk = NULL;
    if (answer == NULL || haproxy_streams_read(answer, d->limit, &streams, &err) != 0) {
        driver_failed(d, "show sess", answer == NULL ? why : err.text);
        return;
    }
    if (d->limit < 0) { /* the first look after the switch: who is here is older */
        d->limit = streams.latest;
        haproxy_streams_read(answer, d->limit, &streams, &err);
    }
    d->older = streams.older > 0;
    d->switched = d->older;
    d->overdue = haproxy_streams_read(answer, driver_overdue(d), &streams, &err) == 0 &&
                 streams.older > 0;
    look_at_asked(d);
}

static void look_at_streams(struct driver *d)
{
    d->overdue = false;
    if (d->switched)
        driver_ask(d, d->options.home->socket, HAPROXY_SHOW_STREAMS, on_streams);
    else
        look_at_asked(d);
}

static void on_map(const char *answer, const char *why, void *arg)
{
    struct driver *d = arg;
    struct error err = {""};

    d->talk = NULL;
    haproxy_routes_free(d->routes, d->route_count);
    d->routes = NULL;
    d->route_count = 0;
    if (answer == NULL || haproxy_map_read(answer, &d->routes, &d->route_count, &err) != 0) {
        driver_failed(d, "show map", answer == NULL ? why : err.text);
        return;
    }
    d->routes_known = true;
    look_at_streams(d);
}

static void on_stat(const char *answer, const char *why, void *arg)
{
    struct driver *d = arg;
    struct haproxy_stat stat;
    struct error err = {""};
    char command[HOME_PATH + 16];

    d->talk = NULL;
    if (answer == NULL || haproxy_stat_read(answer, &stat, &err) != 0) {
        driver_failed(d, "show stat", answer == NULL ? why : err.text);
        return;
    }
    haproxy_stat_clear(&d->stat);
    d->stat = stat;
    if (d->routes_known) {
        look_at_streams(d);
        return;
    }
    snprintf(command, sizeof(command), "show map %s\n", d->options.home->map);
    driver_ask(d, d->options.home->socket, command, on_map);
}

/* Another worker has taken over: its map is that of the file, or nobody knows. */
static void meet_worker(struct driver *d, const struct haproxy_workers *workers)
{
    bool reloaded = d->reload_from != 0;

    if (workers->worker == d->workers.worker)
        return;
    d->routes_known = false;
    d->switched = d->older = !reloaded;
    d->limit = d->patience.limit = -1;
    d->reload_from = 0;
}

static void look_at_worker(struct driver *d, const struct haproxy_workers *workers)
{
    meet_worker(d, workers);
    d->workers = *workers;
    driver_ask(d, d->options.home->socket, HAPROXY_SHOW_STAT, on_stat);
}

/* The worker of before answers until the new one has its sockets. If it were told to go earlier,
 * the sockets would be closed. */
static void on_info(const char *answer, const char *why, void *arg)
{
    struct driver *d = arg;

    d->talk = NULL;
    if (answer != NULL && haproxy_worker_read(answer) == d->reload_to.worker)
        look_at_worker(d, &d->reload_to);
    else if (uv_now(d->loop) < d->reload_limit)
        driver_look_in(d, SOON_MS);
    else
        driver_failed(d, "show info", answer == NULL ? why : "the worker of before answers");
}

static void on_workers(const char *answer, const char *why, void *arg)
{
    struct driver *d = arg;
    struct haproxy_workers workers;
    struct error err = {""};
    bool reloading;

    d->talk = NULL;
    reloading = d->reload_from != 0 && uv_now(d->loop) < d->reload_limit;
    if (answer != NULL && haproxy_workers_read(answer, &workers, &err) == 0 && workers.worker > 0 &&
        (!reloading || workers.worker != d->reload_from)) {
        if (d->reload_from != 0 && workers.worker == d->reload_from) {
            log_error("haproxy has not taken its new configuration");
            d->outdated = true;
            d->reload_from = 0;
        }
        d->reload_to = workers;
        if (d->reload_from != 0)
            driver_ask(d, d->options.home->socket, HAPROXY_SHOW_INFO, on_info);
        else
            look_at_worker(d, &workers);
    } else if (reloading) {
        driver_look_in(d, SOON_MS);
    } else {
        driver_failed(d, "show proc", answer == NULL ? why : err.text);
    }
}

/* Those of another term are others. */
static void forget_epochs(struct driver *d)
{
    d->confirmed = -1;
    d->patience.waits = false;
}

static void take_table(struct driver *d)
{
    if (d->next == NULL)
        return;
    if (d->table != NULL && d->table->term != d->next->term)
        forget_epochs(d);
    route_table_destroy(d->table);
    d->table = d->next;
    d->next = NULL;
}

/* ---- a haproxy that is there ----------------------------------------------------------------- */

static void on_first_workers(const char *answer, const char *why, void *arg)
{
    struct driver *d = arg;
    struct haproxy_workers workers = {0};
    struct error err = {""};

    (void)why;
    d->talk = NULL;
    if (answer != NULL && haproxy_workers_read(answer, &workers, &err) == 0 &&
        haproxy_adopt(d->haproxy, workers.master, &err) == 0) {
        log_info("haproxy (process %d) goes on", workers.master);
        d->started = uv_now(d->loop);
    } else if (haproxy_is_left(d->haproxy) && ++d->failures < FAILURES_MAX) {
        driver_look_in(d, FAILED_MS);
        return;
    } else {
        haproxy_end_left(d->haproxy);
    }
    d->failures = 0;
    d->greeted = true;
    driver_look_in(d, 0);
}

static void on_timer(uv_timer_t *timer)
{
    struct driver *d = timer->data;

    if (d->talk != NULL)
        return;
    if (d->finishing) {
        haproxy_kill(d->haproxy, d->workers.worker);
        return;
    }
    if (!d->greeted) {
        driver_ask(d, d->options.home->master, HAPROXY_SHOW_WORKERS, on_first_workers);
        return;
    }
    take_table(d);
    if (d->table == NULL || (d->options.has_tokens && d->tokens == NULL)) {
        if (haproxy_pid(d->haproxy) == 0)
            d->options.looked(d->options.arg);
        return; /* who brings them starts the timer */
    }
    if (haproxy_pid(d->haproxy) == 0)
        start(d);
    else
        driver_ask(d, d->options.home->master, HAPROXY_SHOW_WORKERS, on_workers);
}

/* ---- what others call ------------------------------------------------------------------------ */

static void look_now(struct driver *d)
{
    if (d->talk == NULL && !d->planned && !d->finishing && d->greeted &&
        !(haproxy_pid(d->haproxy) == 0 && d->starts > 0))
        driver_look_in(d, 0);
}

void driver_set_table(struct driver *d, struct route_table *table)
{
    route_table_destroy(d->next);
    d->next = route_table_share(table);
    look_now(d);
}

void driver_set_tokens(struct driver *d, const char *digests)
{
    char *copy = strdup(digests);

    if (copy == NULL || (d->tokens != NULL && strcmp(copy, d->tokens) == 0)) {
        free(copy);
        return;
    }
    free(d->tokens);
    d->tokens = copy;
    d->outdated = true;
    look_now(d);
}

struct driver_view driver_view(const struct driver *d)
{
    return (struct driver_view){
        .table = d->table,
        .stat = &d->stat,
        .confirmed = d->confirmed,
        .leaving = d->workers.old > 0 || d->reload_from != 0,
        .master = haproxy_pid(d->haproxy),
        .worker = d->workers.worker,
        .old = d->workers.old,
        .starts = d->starts,
        .reloads = d->reloads,
        .why = d->why,
        .asked = d->asked,
        .asked_more = d->asked_more,
    };
}

void driver_finish(struct driver *d, uint64_t ms)
{
    d->finishing = true;
    if (haproxy_pid(d->haproxy) == 0) {
        uv_timer_stop(&d->timer);
        d->options.ended(d->options.arg);
        return;
    }
    if (d->talk != NULL)
        talk_cancel(d->talk);
    d->talk = NULL;
    driver_drop_plan(d);
    haproxy_finish(d->haproxy);
    driver_look_in(d, ms);
}

struct driver *driver_create(uv_loop_t *loop, const struct driver_options *options)
{
    struct driver *d = calloc(1, sizeof(*d));

    if (d == NULL)
        return NULL;
    d->loop = loop;
    d->options = *options;
    d->confirmed = -1;
    d->retry = (struct retry){.first = 0.1, .max = 10};
    d->haproxy = haproxy_create(loop, options->home, options->program, on_ended, d);
    if (d->haproxy == NULL) {
        free(d);
        return NULL;
    }
    uv_timer_init(loop, &d->timer);
    d->timer.data = d;
    d->timer_open = true;
    /* One that a router of before has left behind goes on. */
    driver_look_in(d, 0);
    return d;
}

static void on_timer_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void driver_destroy(struct driver *d)
{
    if (d == NULL)
        return;
    d->destroyed = true;
    forget(d);
    route_table_destroy(d->table);
    route_table_destroy(d->next);
    free(d->tokens);
    free(d->loaded);
    free(d->config);
    free(d->map);
    haproxy_destroy(d->haproxy);
    uv_close((uv_handle_t *)&d->timer, on_timer_closed);
}
