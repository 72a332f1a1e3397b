/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a router does (status.h). */
#include "router/status.h"

#include <inttypes.h>
#include <string.h>

#include <unistd.h>

#include "lib/json_get.h"

static const char *const state_words[] = {[HAPROXY_IN_MAINT] = "out",
                                          [HAPROXY_IN_DRAIN] = "drain",
                                          [HAPROXY_IS_DOWN] = "down",
                                          [HAPROXY_IS_UP] = "up"};

static void add_text(json_object *json, const char *key, const char *text)
{
    json_object_object_add(json, key, json_object_new_string(text));
}

static void add_number(json_object *json, const char *key, int64_t number)
{
    json_object_object_add(json, key, json_object_new_int64(number));
}

static json_object *table_json(const struct route_table *table)
{
    json_object *json = json_object_new_object();
    int routes = 0;

    for (int i = 0; i < table->route_count; i++)
        routes += table->routes[i].shard > 0;
    add_text(json, "job", table->job);
    add_number(json, "term", table->term);
    add_number(json, "revision", table->revision);
    add_number(json, "epoch", table->epoch);
    add_number(json, "routes", routes);
    return json;
}

static json_object *servers_json(const struct haproxy_stat *stat)
{
    json_object *list = json_object_new_array();
    char name[32];

    for (int i = 0; i < stat->count; i++) {
        const struct haproxy_row *row = &stat->rows[i];
        json_object *json = json_object_new_object();

        snprintf(name, sizeof(name), "shard_%d", row->shard);
        add_text(json, "shard", name);
        add_text(json, "server", row->name);
        add_text(json, "state", state_words[row->state]);
        add_number(json, "requests", row->sessions);
        json_object_array_add(list, json);
    }
    return list;
}

json_object *status_json(const struct driver_view *view, const char *service, const char *listen,
                         const char *source, int tokens)
{
    json_object *json = json_object_new_object(), *haproxy = json_object_new_object();

    add_text(json, "service", service);
    add_text(json, "listen", listen);
    add_number(json, "pid", getpid());
    add_text(json, "source", source);
    if (tokens >= 0)
        add_number(json, "tokens", tokens);
    if (view->table != NULL)
        json_object_object_add(json, "table", table_json(view->table));
    add_number(json, "true-epoch", view->confirmed);
    add_text(json, "waits", view->why);
    add_number(haproxy, "pid", view->master);
    add_number(haproxy, "worker", view->worker);
    add_number(haproxy, "old-workers", view->old);
    add_number(haproxy, "starts", view->starts);
    add_number(haproxy, "reloads", view->reloads);
    json_object_object_add(json, "haproxy", haproxy);
    json_object_object_add(json, "servers", servers_json(view->stat));
    return json;
}

/* ---- as lines -------------------------------------------------------------------------------- */

static const char *text_of(json_object *json, const char *key)
{
    const char *text = json_get_string(json, key);

    return text != NULL ? text : "";
}

static int64_t number_of(json_object *json, const char *key)
{
    int64_t number = -1;

    json_get_int(json, key, -1, INT64_MAX, &number);
    return number;
}

static void print_table(json_object *status, FILE *out)
{
    json_object *table = NULL;
    int64_t epoch;

    if (!json_object_object_get_ex(status, "table", &table)) {
        fprintf(out, "no table of routes yet\n");
        return;
    }
    epoch = number_of(table, "epoch");
    fprintf(out, "%" PRId64 " routes of job %s, term %" PRId64 ", epoch %" PRId64 "%s\n",
            number_of(table, "routes"), text_of(table, "job"), number_of(table, "term"), epoch,
            epoch == number_of(status, "true-epoch") ? "" : " (not true yet)");
}

void status_print(json_object *status, FILE *out)
{
    json_object *haproxy = NULL, *servers = NULL;
    const char *waits = text_of(status, "waits");

    fprintf(out, "service %s at %s: %s\n", text_of(status, "service"), text_of(status, "listen"),
            text_of(status, "source"));
    print_table(status, out);
    if (json_object_object_get_ex(status, "haproxy", &haproxy))
        fprintf(out, "haproxy %" PRId64 ": started %" PRId64 " times, reloaded %" PRId64 " times\n",
                number_of(haproxy, "pid"), number_of(haproxy, "starts"),
                number_of(haproxy, "reloads"));
    if (waits[0] != '\0')
        fprintf(out, "waits: %s\n", waits);
    if (!json_object_object_get_ex(status, "servers", &servers) ||
        !json_object_is_type(servers, json_type_array))
        return;
    for (size_t i = 0; i < json_object_array_length(servers); i++) {
        json_object *server = json_object_array_get_idx(servers, i);

        fprintf(out, "%-10s %-40s %-5s %" PRId64 " requests\n", text_of(server, "shard"),
                text_of(server, "server"), text_of(server, "state"), number_of(server, "requests"));
    }
}
