/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What elastic jobs have used (usage_list.h). */
#include "cmd/usage_list.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/shape.h"
#include "cmd/terminal_text.h"
#include "lib/json_get.h"

#define HOUR 3600.0

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Of a node and hour; < 0: not known. The base costs what the pool of its partition costs. */
static double price_of(const struct conf *conf, const struct usage_job *job, const char *name)
{
    for (int i = 0; conf != NULL && i < conf->pool_count; i++) {
        const struct pool *pool = &conf->pools[i];
        bool is_base = strcmp(name, USAGE_BASE) == 0;

        if (strcmp(is_base ? pool->partition : pool->name, is_base ? job->partition : name) == 0)
            return pool->price;
    }
    return -1;
}

static void add_hours(json_object *object, const struct usage_part *part, double cost)
{
    json_object_object_add(object, "node_hours", shape_double(part->node_s / HOUR));
    json_object_object_add(object, "cpu_hours", shape_double(part->cpu_s / HOUR));
    json_object_object_add(object, "gpu_hours", shape_double(part->gpu_s / HOUR));
    json_object_object_add(object, "cost", isnan(cost) ? NULL : shape_double(cost));
}

static json_object *job_json(const struct usage_job *job, const struct conf *conf, double *cost)
{
    json_object *object = text_need(json_object_new_object());
    json_object *pools = text_need(json_object_new_array());
    struct usage_part sum = usage_sum(job);
    int least, most;

    *cost = 0;
    for (int i = 0; i < job->part_count; i++) {
        const struct usage_part *part = &job->parts[i];
        json_object *entry = text_need(json_object_new_object());
        double price = price_of(conf, job, part->pool);
        double own = price < 0 ? NAN : price * part->node_s / HOUR;

        json_object_object_add(entry, "pool", json_from_string(part->pool));
        json_object_object_add(entry, "jobs", json_object_new_int(part->jobs));
        add_hours(entry, part, own);
        json_object_array_add(pools, entry);
        *cost += own;
    }
    json_object_object_add(object, "job", json_object_new_int64(job->job));
    json_object_object_add(object, "name", json_from_string(job->name));
    json_object_object_add(object, "user", json_from_string(job->user));
    json_object_object_add(object, "account", json_from_string(job->account));
    json_object_object_add(object, "state",
                           job->state[0] != '\0' ? json_from_string(job->state) : NULL);
    json_object_object_add(object, "start", job->start > 0 ? shape_double(job->start) : NULL);
    json_object_object_add(object, "runs", json_object_new_int(job->runs));
    json_object_object_add(object, "extensions", json_object_new_int(job->extensions));
    json_object_object_add(object, "seconds", shape_double(job->base_s));
    usage_sizes(job, &least, &most);
    json_object_object_add(object, "least_nodes", json_object_new_int(least));
    json_object_object_add(object, "most_nodes", json_object_new_int(most));
    add_hours(object, &sum, *cost);
    json_object_object_add(object, "pools", pools);
    return object;
}

json_object *usage_json(const struct usage *usage, const struct conf *conf, uint32_t job)
{
    json_object *object = text_need(json_object_new_object());
    json_object *jobs = text_need(json_object_new_array());
    struct usage_part all = {.jobs = 0};
    double cost = 0, own;

    for (int i = 0; i < usage->count; i++) {
        struct usage_part sum = usage_sum(&usage->jobs[i]);

        if (job != 0 && usage->jobs[i].job != job)
            continue;
        json_object_array_add(jobs, job_json(&usage->jobs[i], conf, &own));
        all.node_s += sum.node_s;
        all.cpu_s += sum.cpu_s;
        all.gpu_s += sum.gpu_s;
        cost += own;
    }
    json_object_object_add(object, "jobs", jobs);
    add_hours(object, &all, cost);
    return object;
}

/* ---- text ------------------------------------------------------------------------------------ */

static const struct table_column columns[] = {
    {"JOB", TABLE_RIGHT},        {"NAME", TABLE_LEFT},       {"USER", TABLE_LEFT},
    {"STATE", TABLE_LEFT},       {"RUNS", TABLE_RIGHT},      {"EXTENSIONS", TABLE_RIGHT},
    {"NODE-HOURS", TABLE_RIGHT}, {"CPU-HOURS", TABLE_RIGHT}, {"GPU-HOURS", TABLE_RIGHT},
    {"COST", TABLE_RIGHT},
};

#define COLUMNS ((int)(sizeof(columns) / sizeof(columns[0])))

static void put_number(struct table *table, json_object *object, const char *key)
{
    double value = field_double(object, key);
    char text[32] = "-";

    if (!isnan(value))
        snprintf(text, sizeof(text), "%.2f", value);
    table_cell(table, text);
}

static void put_hours(struct table *table, json_object *object)
{
    put_number(table, object, "node_hours");
    put_number(table, object, "cpu_hours");
    put_number(table, object, "gpu_hours");
    put_number(table, object, "cost");
}

static void put_pools(struct table *table, json_object *job)
{
    json_object *pools = field_array(job, "pools");

    for (size_t i = 0; i < field_count(job, "pools"); i++) {
        json_object *pool = json_object_array_get_idx(pools, i);
        const char *name = json_get_string(pool, "pool");
        bool is_base = name != NULL && strcmp(name, USAGE_BASE) == 0;

        table_cell(table, " ");
        table_cell(table, name);
        table_cell(table, " ");
        table_cell(table, " ");
        for (int column = 0; column < 2; column++) {
            if (is_base == (column == 0))
                table_number(table, field_int(pool, "jobs", 0));
            else
                table_cell(table, " ");
        }
        put_hours(table, pool);
    }
}

char *render_usage(json_object *usage, bool pools, const struct render_options *options)
{
    json_object *jobs = field_array(usage, "jobs");
    struct table *table = table_create(columns, COLUMNS);
    char *text = NULL;
    size_t size, count = field_count(usage, "jobs");
    FILE *out = text_need(open_memstream(&text, &size));

    for (size_t i = 0; i < count; i++) {
        json_object *job = json_object_array_get_idx(jobs, i);

        table_number(table, field_int(job, "job", 0));
        table_cell(table, json_get_string(job, "name"));
        table_cell(table, json_get_string(job, "user"));
        table_cell(table, json_get_string(job, "state"));
        table_number(table, field_int(job, "runs", 0));
        table_number(table, field_int(job, "extensions", 0));
        put_hours(table, job);
        if (pools)
            put_pools(table, job);
    }
    if (count > 1) {
        table_cell(table, " ");
        table_cell(table, "all");
        for (int i = 2; i < 6; i++)
            table_cell(table, " ");
        put_hours(table, usage);
    }
    table_print(table, out, options->width);
    table_destroy(table);
    fclose(out);
    return text_need(text);
}
