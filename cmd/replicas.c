/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Roles of a job and their replicas (replicas.h). */
#include "cmd/replicas.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/render_parts.h"
#include "cmd/shape.h"
#include "cmd/terminal_text.h"
#include "lib/json_get.h"
#include "lib/roles.h"
#include "lib/text.h"
#include "lib/world.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define NODES_COLUMNS 20 /* on a terminal: a gang may have many */

static bool is_text(json_object *object, const char *key, const char *text)
{
    const char *value = json_get_string(object, key);
    return value != NULL && strcmp(value, text) == 0;
}

/* ---- the replicas of one role ---------------------------------------------------------------- */

/* -1 with err, which names the roles that the job has. */
static int check_role(json_object *answer, const char *role, struct error *err)
{
    json_object *shaped = shape_roles(answer), *roles = field_array(shaped, "roles");
    char known[400] = "";
    bool found = false;
    for (size_t i = 0; i < field_count(shaped, "roles") && !found; i++) {
        json_object *entry = json_object_array_get_idx(roles, i);
        const char *name = json_get_string(entry, "name");
        found = is_text(entry, "name", role);
        text_append(known, sizeof(known), "%s%s", i > 0 ? ", " : "", name != NULL ? name : "-");
    }
    if (!found)
        error_set(err, "job %" PRId64 " has no role '%s'; its roles: %s",
                  field_int(shaped, "job", 0), error_value(role).text, known);
    json_object_put(shaped);
    return found ? 0 : -1;
}

json_object *replicas_of(json_object *answer, const char *role, struct error *err)
{
    if (role != NULL && check_role(answer, role, err) < 0)
        return NULL;
    json_object *replicas = shape_replicas(answer), *list = field_array(replicas, "replicas");
    for (size_t i = field_count(replicas, "replicas"); role != NULL && i-- > 0;)
        if (!is_text(json_object_array_get_idx(list, i), "role", role))
            json_object_array_del_idx(list, i, 1);
    return replicas;
}

/* ---- tables with lines between their rows ---------------------------------------------------- */

/* A text below a row of a table. */
struct line {
    const char *label; /* NULL ends the list */
    const char *key;
};

static void put_rows(FILE *out, const char *rows, json_object *list, const struct line *lines,
                     int width)
{
    for (size_t i = 0; *rows != '\0'; i++) {
        size_t length = strcspn(rows, "\n");
        fprintf(out, "%.*s\n", (int)length, rows);
        rows += length + (rows[length] == '\n');
        /* Row 0 has the titles. */
        for (const struct line *line = lines; i > 0 && line->label != NULL; line++)
            render_line(out, line->label,
                        json_get_string(json_object_array_get_idx(list, i - 1), line->key), width);
    }
}

/* The table, whose rows are the objects of the list, with the lines below each. The table is
 * destroyed. */
static char *render_rows(struct table *table, json_object *list, const struct line *lines,
                         int width)
{
    char *rows = NULL, *text = NULL;
    size_t rows_size = 0, size = 0;
    FILE *out = text_need(open_memstream(&rows, &rows_size));
    table_print(table, out, width);
    table_destroy(table);
    fclose(out);
    out = text_need(open_memstream(&text, &size));
    put_rows(out, text_need(rows), list, lines, width);
    free(rows);
    fclose(out);
    return text_need(text);
}

/* ---- roles ----------------------------------------------------------------------------------- */

static void kind_cell(struct table *table, json_object *role)
{
    const char *kind = json_get_string(role, "kind");
    char text[64];
    snprintf(text, sizeof(text), "%.40s%s", kind != NULL ? kind : "-",
             json_get_bool(role, "leads", false) ? ", leads" : "");
    table_cell(table, text);
}

/* "8/10" */
static void ready_cell(struct table *table, json_object *role)
{
    int64_t ready = field_int(role, "ready", -1), target = field_int(role, "target", -1);
    char text[64];
    snprintf(text, sizeof(text), "%" PRId64 "/%" PRId64, ready, target);
    table_cell(table, ready >= 0 && target >= 0 ? text : NULL);
}

char *render_roles(json_object *roles, const struct render_options *options)
{
    static const struct table_column columns[] = {
        {"NAME", TABLE_LEFT},
        {"KIND", TABLE_LEFT},
        {"READY", TABLE_RIGHT},
        {"MIN:MAX", TABLE_LEFT},
    };
    static const struct line lines[] = {
        {"Why this size", "size"}, {"Why not more", "more"}, {NULL, NULL}};
    json_object *list = field_array(roles, "roles");
    struct table *table = table_create(columns, COUNT(columns));
    for (size_t i = 0; i < field_count(roles, "roles"); i++) {
        json_object *role = json_object_array_get_idx(list, i);
        render_text_cell(table, role, "name");
        kind_cell(table, role);
        ready_cell(table, role);
        render_bounds_cell(table, role);
    }
    return render_rows(table, list, lines, options->width);
}

/* ---- replicas -------------------------------------------------------------------------------- */

/* The nodes of a gang, each once, as Slurm writes them: "n[1-3]". The tasks of a node are
 * neighbours. NULL: none is known. */
static char *fold_nodes(json_object *replica)
{
    json_object *tasks = field_array(replica, "tasks");
    size_t count = field_count(replica, "tasks");
    if (count < 1 || count > ROLES_TASKS_MAX)
        return NULL;
    struct world *world = text_need(world_create(0, (int)count));
    const char *last = "";
    int nodes = 0;
    for (size_t i = 0; i < count; i++) {
        const char *node = json_get_string(json_object_array_get_idx(tasks, i), "node");
        if (!world_name_ok(node) || strcmp(last, node) == 0)
            continue;
        last = node;
        if (world_set_node(world, nodes++, node, 1) < 0)
            text_need(NULL);
    }
    world->node_count = nodes;
    char *names = text_need(world_fold_names(world, false));
    world_destroy(world);
    return names;
}

static void nodes_cell(struct table *table, json_object *replica, int width)
{
    char *names = fold_nodes(replica);
    char *clean = text_clean(names, width > 0 ? NODES_COLUMNS : 0);
    table_cell(table, clean);
    free(clean);
    free(names);
}

/* "http=31234 api=31235" of the first task. "..." stands for those of the others. */
static void ports_cell(struct table *table, json_object *replica)
{
    json_object *first = json_object_array_get_idx(field_array(replica, "tasks"), 0);
    json_object *ports = NULL;
    char text[512] = "";
    json_object_object_get_ex(first, "ports", &ports);
    if (ports != NULL) {
        json_object_object_foreach (ports, name, port) {
            text_append(text, sizeof(text), "%s%s=%" PRId64, text[0] != '\0' ? " " : "", name,
                        json_object_get_int64(port));
        }
    }
    if (text[0] != '\0' && field_count(replica, "tasks") > 1)
        text_append(text, sizeof(text), " ...");
    table_cell(table, text);
}

char *render_replicas(json_object *replicas, const struct render_options *options)
{
    static const struct table_column columns[] = {
        {"NAME", TABLE_LEFT},   {"STATE", TABLE_LEFT}, {"SINCE", TABLE_LEFT},
        {"START", TABLE_RIGHT}, {"NODES", TABLE_LEFT}, {"PORTS", TABLE_LEFT},
    };
    static const struct line lines[] = {{"Why this state", "reason"}, {NULL, NULL}};
    json_object *list = field_array(replicas, "replicas");
    struct table *table = table_create(columns, COUNT(columns));
    for (size_t i = 0; i < field_count(replicas, "replicas"); i++) {
        json_object *replica = json_object_array_get_idx(list, i);
        render_text_cell(table, replica, "name");
        render_text_cell(table, replica, "state");
        render_duration_cell(table, (double)options->now - field_double(replica, "since"));
        render_number_cell(table, replica, "start");
        nodes_cell(table, replica, options->width);
        ports_cell(table, replica);
    }
    return render_rows(table, list, lines, options->width);
}
