/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a job file says, and what of it fits (job_plan.h). */
#include "cmd/job_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/terminal_text.h"
#include "lib/json_get.h"
#include "lib/roles_base.h"
#include "lib/text.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

json_object *job_plan(const char *file, const struct roles *roles)
{
    json_object *plan = text_need(json_object_new_object());
    json_object *guaranteed = text_need(json_object_new_object());
    struct roles_need need;

    roles_need(roles, &need);
    json_object_object_add(guaranteed, "tasks", json_object_new_int64(need.tasks));
    json_object_object_add(guaranteed, "cpus", json_object_new_int64(need.cpus));
    json_object_object_add(guaranteed, "gpus", json_object_new_int64(need.gpus));
    json_object_object_add(guaranteed, "memory", json_object_new_int64(need.memory));
    json_object_object_add(guaranteed, "world", json_object_new_int(need.world));
    json_object_object_add(plan, "file", json_from_string(file));
    json_object_object_add(plan, "job", text_need(roles_json(roles)));
    json_object_object_add(plan, "guaranteed", guaranteed);
    return plan;
}

/* ---- nodes of a partition -------------------------------------------------------------------- */

int job_plan_gpus(const char *gres)
{
    int gpus = 0;

    while (gres != NULL && *gres != '\0') {
        size_t len = strcspn(gres, ",("), name = strcspn(gres, ":,(");
        const char *colon = memrchr(gres, ':', len);

        if (name == 3 && strncmp(gres, "gpu", 3) == 0)
            gpus += colon != NULL ? (int)strtol(colon + 1, NULL, 10) : 1;
        gres += len;
        /* "(S:0,2)" has a comma of its own. */
        if (*gres == '(')
            gres += strcspn(gres, ")");
        gres += strcspn(gres, ",");
        gres += *gres == ',' ? 1 : 0;
    }
    return gpus;
}

/* The size that all nodes have. False: they differ; then it is the largest of each. */
static bool common_size(const struct slots_node *nodes, int count, struct slots_size *size)
{
    bool same = true;

    *size = count > 0 ? nodes[0].free : (struct slots_size){0};
    for (int i = 1; i < count; i++) {
        const struct slots_size *node = &nodes[i].free;

        same &= node->cpus == size->cpus && node->gpus == size->gpus &&
                node->memory == size->memory;
        size->cpus = node->cpus > size->cpus ? node->cpus : size->cpus;
        size->gpus = node->gpus > size->gpus ? node->gpus : size->gpus;
        size->memory = node->memory > size->memory ? node->memory : size->memory;
    }
    return same;
}

/* How many fit, and why there are not more. */
static json_object *fit_json(const struct role *role, const char *partition,
                             const struct slots_node *nodes, int count,
                             const struct slots_size *most)
{
    json_object *entry = text_need(json_object_new_object());
    int fits = roles_fit(role, nodes, count);
    struct error why = {""};

    text_need(fits >= 0 ? entry : NULL);
    if (fits == 0 && role_check_node(role, most, partition, &why) == 0)
        error_set(&why, "no nodes of %s have room for it", partition);
    else if (fits > 0 && fits < role->max)
        error_set(&why, "%d wanted, and %s has no room for more", role->max, partition);
    json_object_object_add(entry, "role", json_from_string(role->name));
    json_object_object_add(entry, "fits", json_object_new_int(fits));
    json_object_object_add(entry, "why", json_from_string(why.text[0] != '\0' ? why.text : NULL));
    return entry;
}

/* A word for a shell. */
static void append_word(char *line, size_t size, const char *word)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+=,:@%";

    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        text_append(line, size, "%s", word);
        return;
    }
    text_append(line, size, "'");
    for (; *word != '\0'; word++) {
        if (*word == '\'')
            text_append(line, size, "'\\''");
        else
            text_append(line, size, "%c", *word);
    }
    text_append(line, size, "'");
}

static void write_sbatch(char *line, size_t size, const char *file, const struct roles *roles,
                         const char *partition, int base, const struct slots_size *taken)
{
    int world = roles_world(roles);

    text_append(line, size, "sbatch --elastic-roles=");
    append_word(line, size, file);
    text_append(line, size, " --partition=");
    append_word(line, size, partition);
    text_append(line, size, " --nodes=%d --ntasks-per-node=1", base);
    if (world >= 0 && roles->list[world].gang.size.cpus == 0) {
        text_append(line, size, " --exclusive");
    } else {
        text_append(line, size, " --cpus-per-task=%d", taken->cpus);
        if (taken->memory > 0)
            text_append(line, size, " --mem=%" PRId64 "M", taken->memory);
    }
    if (taken->gpus > 0)
        text_append(line, size, " --gpus-per-node=%d", taken->gpus);
}

int job_plan_add(json_object *plan, const struct roles *roles, const char *partition,
                 const struct slots_node *nodes, int count)
{
    json_object *part = text_need(json_object_new_object());
    json_object *list = text_need(json_object_new_array());
    struct slots_size most, taken = {0};
    bool same = common_size(nodes, count, &most);
    struct error why = {""};
    char line[5000] = "";
    int base = roles_base_nodes(roles, &most, partition, &taken, &why);

    if (base > count) {
        error_set(&why, "what is guaranteed needs %d nodes, and %s has %d", base, partition, count);
        base = -1;
    }
    if (base > 0)
        write_sbatch(line, sizeof(line), json_get_string(plan, "file"), roles, partition, base,
                     &taken);
    if (base > 0 && !same)
        error_set(&why, "the nodes of %s differ; these %d are as the largest ones", partition,
                  base);
    for (int i = 0; i < roles->count; i++)
        json_object_array_add(list, fit_json(&roles->list[i], partition, nodes, count, &most));
    json_object_object_add(part, "name", json_from_string(partition));
    json_object_object_add(part, "nodes", json_object_new_int(count));
    json_object_object_add(part, "base", base > 0 ? json_object_new_int(base) : NULL);
    json_object_object_add(part, "sbatch", json_from_string(line[0] != '\0' ? line : NULL));
    json_object_object_add(part, "why", json_from_string(why.text[0] != '\0' ? why.text : NULL));
    json_object_object_add(part, "roles", list);
    json_object_object_add(plan, "partition", part);
    return base > 0 ? 0 : -1;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void joined_cell(struct table *table, json_object *strings)
{
    char text[256] = "";

    for (size_t i = 0; strings != NULL && i < json_object_array_length(strings); i++)
        text_append(text, sizeof(text), "%s%s", i > 0 ? " " : "",
                    json_object_get_string(json_object_array_get_idx(strings, i)));
    table_cell(table, text[0] != '\0' ? text : NULL);
}

/* The first key of `ready` is the probe. */
static const char *probe_of(json_object *role)
{
    json_object *ready = json_object_object_get(role, "ready");

    if (ready == NULL)
        return NULL;
    json_object_object_foreach (ready, name, value) {
        (void)value;
        return name;
    }
    return NULL;
}

static void role_cells(struct table *table, const char *name, json_object *role)
{
    const char *kind = json_get_string(role, "kind");
    bool world = strcmp(kind, "world") == 0;
    int64_t tasks = 1, cpus = 0, gpus = 0;
    char text[64];

    json_get_int(role, "tasks", 1, INT32_MAX, &tasks);
    json_get_int(role, "cpus", 0, INT32_MAX, &cpus);
    json_get_int(role, "gpus", 0, INT32_MAX, &gpus);
    table_cell(table, name);
    snprintf(text, sizeof(text), "%s%s", kind,
             json_get_bool(role, "leads", false) ? ", leads" : "");
    table_cell(table, text);
    table_cell(table, json_get_string(role, world ? "nodes" : "replicas"));
    table_number(table, tasks);
    if (world && cpus == 0)
        table_cell(table, "all");
    else
        table_number(table, cpus);
    table_number(table, gpus);
    table_cell(table, json_get_string(role, "memory"));
    table_cell(table, probe_of(role));
    joined_cell(table, json_object_object_get(role, "after"));
    joined_cell(table, json_object_object_get(role, "run"));
}

static void put_roles(FILE *out, json_object *roles, int width)
{
    static const struct table_column columns[] = {
        {"ROLE", TABLE_LEFT},    {"KIND", TABLE_LEFT},  {"SIZE", TABLE_RIGHT},
        {"TASKS", TABLE_RIGHT},  {"CPUS", TABLE_RIGHT}, {"GPUS", TABLE_RIGHT},
        {"MEMORY", TABLE_RIGHT}, {"READY", TABLE_LEFT}, {"AFTER", TABLE_LEFT},
        {"RUN", TABLE_LEFT},
    };
    struct table *table = table_create(columns, COUNT(columns));

    json_object_object_foreach (roles, name, role) {
        role_cells(table, name, role);
    }
    table_print(table, out, width);
    table_destroy(table);
}

static int64_t number_of(json_object *object, const char *key)
{
    int64_t number = 0;

    json_get_int(object, key, 0, INT64_MAX, &number);
    return number;
}

static void put_guaranteed(FILE *out, json_object *need)
{
    int64_t tasks = number_of(need, "tasks"), world = number_of(need, "world");
    int64_t cpus = number_of(need, "cpus"), gpus = number_of(need, "gpus");

    fprintf(out, "\nguaranteed: %" PRId64 " %s", tasks, tasks == 1 ? "task" : "tasks");
    if (world > 0)
        fprintf(out, " and a world on %" PRId64 " %s", world, world == 1 ? "node" : "nodes");
    fprintf(out, ", with %" PRId64 " %s, %" PRId64 " %s and %" PRId64 " MiB of memory\n", cpus,
            cpus == 1 ? "CPU" : "CPUs", gpus, gpus == 1 ? "GPU" : "GPUs",
            number_of(need, "memory"));
}

static void put_partition(FILE *out, json_object *part, int width)
{
    static const struct table_column columns[] = {
        {"ROLE", TABLE_LEFT}, {"FITS", TABLE_RIGHT}, {"WHY NOT MORE", TABLE_LEFT}};
    json_object *list = json_object_object_get(part, "roles");
    struct table *table = table_create(columns, COUNT(columns));
    char *name = text_clean(json_get_string(part, "name"), 0), *line;

    fprintf(out, "\neach role alone on the %" PRId64 " nodes of %s, when they are empty:\n",
            number_of(part, "nodes"), name);
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *entry = json_object_array_get_idx(list, i);

        table_cell(table, json_get_string(entry, "role"));
        table_number(table, number_of(entry, "fits"));
        table_cell(table, json_get_string(entry, "why"));
    }
    table_print(table, out, width);
    table_destroy(table);
    if (number_of(part, "base") > 0)
        fprintf(out, "\nbase: %" PRId64 " of its nodes\n", number_of(part, "base"));
    else
        fputs("\nno base\n", out);
    if (json_get_string(part, "why") != NULL) {
        line = text_clean(json_get_string(part, "why"), 0);
        fprintf(out, "%s\n", line);
        free(line);
    }
    if (json_get_string(part, "sbatch") != NULL) {
        line = text_clean(json_get_string(part, "sbatch"), 0);
        fprintf(out, "%s\n", line);
        free(line);
    }
    free(name);
}

char *render_plan(json_object *plan, const struct render_options *options)
{
    json_object *job = json_object_object_get(plan, "job");
    json_object *part = json_object_object_get(plan, "partition");
    char *text = NULL;
    size_t size = 0;
    FILE *out = text_need(open_memstream(&text, &size));

    put_roles(out, json_object_object_get(job, "roles"), options->width);
    put_guaranteed(out, json_object_object_get(plan, "guaranteed"));
    if (part != NULL)
        put_partition(out, part, options->width);
    fclose(out);
    return text_need(text);
}
