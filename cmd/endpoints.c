/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Endpoints in forms that people and other programs read (endpoints.h). */
#include "cmd/endpoints.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/shape.h"
#include "cmd/terminal_text.h"
#include "lib/json_get.h"
#include "lib/world.h"

#define COUNT(array)     (sizeof(array) / sizeof((array)[0]))
#define ADDRESS_TEXT_MAX (WORLD_NAME_MAX + 16) /* with brackets and a port */

static bool is_ipv6(const char *text)
{
    struct in6_addr address;
    return inet_pton(AF_INET6, text, &address) == 1;
}

/* "10.0.0.2:31234", "[fd00::2]:31234" */
static const char *put_address(char *text, json_object *entry, json_object *port)
{
    const char *address = json_get_string(entry, "address");
    bool ipv6 = is_ipv6(address);
    snprintf(text, ADDRESS_TEXT_MAX, "%s%s%s:%" PRId64, ipv6 ? "[" : "", address, ipv6 ? "]" : "",
             json_object_get_int64(port));
    return text;
}

char *endpoints_text(json_object *endpoints, const struct render_options *options)
{
    static const struct table_column columns[] = {
        {"ROLE", TABLE_LEFT}, {"REPLICA", TABLE_LEFT}, {"TASK", TABLE_RIGHT},
        {"PORT", TABLE_LEFT}, {"ADDRESS", TABLE_LEFT},
    };
    json_object *list = field_array(endpoints, "endpoints");
    struct table *table = table_create(columns, COUNT(columns));
    char *text = NULL, address[ADDRESS_TEXT_MAX];
    size_t size = 0;
    for (size_t i = 0; i < field_count(endpoints, "endpoints"); i++) {
        json_object *entry = json_object_array_get_idx(list, i);
        json_object_object_foreach (json_object_object_get(entry, "ports"), name, port) {
            table_cell(table, json_get_string(entry, "role"));
            table_cell(table, json_get_string(entry, "replica"));
            table_number(table, field_int(entry, "task", 0));
            table_cell(table, name);
            table_cell(table, put_address(address, entry, port));
        }
    }
    FILE *out = text_need(open_memstream(&text, &size));
    table_print(table, out, options->width);
    table_destroy(table);
    fclose(out);
    return text_need(text);
}

/* The lines of the first task of each replica. */
static char *put_first_tasks(json_object *endpoints, void (*put)(FILE *out, json_object *entry))
{
    json_object *list = field_array(endpoints, "endpoints");
    const char *last = "";
    char *text = NULL;
    size_t size = 0;
    FILE *out = text_need(open_memstream(&text, &size));
    for (size_t i = 0; i < field_count(endpoints, "endpoints"); i++) {
        json_object *entry = json_object_array_get_idx(list, i);
        const char *replica = json_get_string(entry, "replica");
        if (strcmp(last, replica) != 0)
            put(out, entry);
        last = replica;
    }
    fclose(out);
    return text_need(text);
}

/* Of a gang the other tasks have names, too: they may be on other nodes. */
char *endpoints_hosts(json_object *endpoints)
{
    json_object *list = field_array(endpoints, "endpoints");
    char *text = NULL;
    size_t size = 0;
    FILE *out = text_need(open_memstream(&text, &size));
    for (size_t i = 0; i < field_count(endpoints, "endpoints"); i++) {
        json_object *entry = json_object_array_get_idx(list, i);
        int64_t task = field_int(entry, "task", 0);
        fprintf(out, "%s %s", json_get_string(entry, "address"), json_get_string(entry, "replica"));
        if (task > 0)
            fprintf(out, ".%" PRId64, task);
        fputc('\n', out);
    }
    fclose(out);
    return text_need(text);
}

static void put_server(FILE *out, json_object *entry)
{
    char address[ADDRESS_TEXT_MAX];
    json_object_object_foreach (json_object_object_get(entry, "ports"), name, port) {
        (void)name;
        fprintf(out, "server %s %s\n", json_get_string(entry, "replica"),
                put_address(address, entry, port));
        return;
    }
}

char *endpoints_haproxy(json_object *endpoints)
{
    return put_first_tasks(endpoints, put_server);
}

/* Values of labels are texts. */
static json_object *number_text(int64_t number)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRId64, number);
    return json_from_string(text);
}

static json_object *target_of(int64_t job, json_object *entry, const char *name, json_object *port)
{
    char address[ADDRESS_TEXT_MAX];
    json_object *target = text_need(json_object_new_object());
    json_object *targets = text_need(json_object_new_array());
    json_object *labels = text_need(json_object_new_object());
    json_object_array_add(targets, json_from_string(put_address(address, entry, port)));
    json_object_object_add(labels, "job", number_text(job));
    json_object_object_add(labels, "role", json_from_string(json_get_string(entry, "role")));
    json_object_object_add(labels, "replica", json_from_string(json_get_string(entry, "replica")));
    json_object_object_add(labels, "task", number_text(field_int(entry, "task", 0)));
    json_object_object_add(labels, "port", json_from_string(name));
    json_object_object_add(target, "targets", targets);
    json_object_object_add(target, "labels", labels);
    return target;
}

json_object *endpoints_prometheus(json_object *endpoints)
{
    json_object *list = field_array(endpoints, "endpoints");
    json_object *targets = text_need(json_object_new_array());
    int64_t job = field_int(endpoints, "job", 0);
    for (size_t i = 0; i < field_count(endpoints, "endpoints"); i++) {
        json_object *entry = json_object_array_get_idx(list, i);
        json_object_object_foreach (json_object_object_get(entry, "ports"), name, port) {
            json_object_array_add(targets, target_of(job, entry, name, port));
        }
    }
    return targets;
}
