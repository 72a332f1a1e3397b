/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What selastic shows to people: JSON of a known shape (shape.h) in, text out. Pure. */
#include "cmd/render.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/render_parts.h"
#include "cmd/shape.h"
#include "cmd/terminal_text.h"
#include "lib/json_get.h"
#include "lib/policy.h"

#define NAME_COLUMNS_MAX 64
#define LINE_COLUMNS_MAX 1000 /* of a line that is not part of a table */
#define LABEL_COLUMNS    17

static void put_clean(FILE *out, const char *text, int columns)
{
    char *clean = text_clean(text, columns);
    fputs(clean, out);
    free(clean);
}

static const char *plural(int64_t count, const char *many, const char *one)
{
    return count == 1 ? one : many;
}

void render_number_cell(struct table *table, json_object *object, const char *key)
{
    int64_t number = field_int(object, key, -1);
    if (number < 0)
        table_cell(table, NULL);
    else
        table_number(table, number);
}

void render_text_cell(struct table *table, json_object *object, const char *key)
{
    table_cell(table, json_get_string(object, key));
}

void render_duration_cell(struct table *table, double seconds)
{
    char text[48];
    table_cell(table, text_duration(seconds, text, sizeof(text)));
}

/* "  Label            " */
static void put_label(FILE *out, const char *label)
{
    fprintf(out, "  %-*s", LABEL_COLUMNS, label);
}

/* A job of several programs; its training, if there is one, is one of them. */
static bool has_roles(json_object *state)
{
    const char *roles = json_get_string(state, "roles");

    return roles != NULL && roles[0] != '\0';
}

static void put_heading(FILE *out, json_object *state)
{
    int64_t size = field_int(state, "size", 0);
    int64_t workers = field_int(state, "world_size", 0);
    fputs("Job ", out);
    put_clean(out, json_get_string(state, "incarnation"), NAME_COLUMNS_MAX);
    const char *name = json_get_string(state, "name");
    if (name && *name) {
        fputs(" (", out);
        put_clean(out, name, NAME_COLUMNS_MAX);
        fputs(")", out);
    }
    if (json_get_string(state, "user")) {
        fputs(" of ", out);
        put_clean(out, json_get_string(state, "user"), NAME_COLUMNS_MAX);
    }
    fputs(": ", out);
    put_clean(out, json_get_string(state, "phase"), NAME_COLUMNS_MAX);
    fprintf(out, ", %" PRId64 " %s", size, plural(size, "nodes", "node"));
    if (!has_roles(state))
        fprintf(out, ", %" PRId64 " %s", workers, plural(workers, "workers", "worker"));
    fputs("\n\n", out);
}

static void put_size(FILE *out, json_object *state)
{
    int64_t size = field_int(state, "size", 0);
    int64_t target = field_int(state, "target", size);
    put_label(out, "Size");
    fprintf(out, "%" PRId64 " %s, allowed ", size, plural(size, "nodes", "node"));
    put_clean(out, json_get_string(state, "sizes"), NAME_COLUMNS_MAX);
    if (target != size)
        fprintf(out, ", on the way to %" PRId64, target);
    fputc('\n', out);
}

/* "1200 of 5000 steps (24 %), 3.20 a second, 19 min 48 s left" */
static void put_progress(FILE *out, json_object *state)
{
    json_object *progress = NULL;
    if (!json_object_object_get_ex(state, "progress", &progress) || progress == NULL)
        return;
    int64_t done = field_int(progress, "done", -1), total = field_int(progress, "total", 0);
    double rate = field_double(progress, "rate");
    const char *unit = json_get_string(progress, "unit");
    if (done < 0)
        return;
    put_label(out, "Progress");
    fprintf(out, "%" PRId64, done);
    if (total > 0)
        fprintf(out, " of %" PRId64, total);
    if (unit && *unit) {
        fputc(' ', out);
        put_clean(out, unit, NAME_COLUMNS_MAX);
    }
    if (total > 0)
        fprintf(out, " (%.0f %%)", floor(100 * ((double)done / (double)total)));
    if (rate > 0) {
        fprintf(out, rate < 10 ? ", %.2f a second" : ", %.6g a second", rate);
        char left[48];
        if (total > done)
            fprintf(out, ", %s left",
                    text_duration((double)(total - done) / rate, left, sizeof(left)));
    }
    fputc('\n', out);
}

static void put_generation(FILE *out, json_object *state, const struct render_options *options)
{
    char clock[32], lasting[48];
    double since = field_double(state, "since");
    put_label(out, "Generation");
    fprintf(out, "%" PRId64, field_int(state, "generation", 0));
    if (since > 0)
        fprintf(out, ", since %s (%s)", text_clock(since, options->now, clock, sizeof(clock)),
                text_duration((double)options->now - since, lasting, sizeof(lasting)));
    fputc('\n', out);
    if (field_int(state, "step", -1) >= 0) {
        put_label(out, "Step");
        fprintf(out, "%" PRId64 "\n", field_int(state, "step", 0));
    }
    put_progress(out, state);
    if (field_int(state, "restarts", 0) > 0) {
        put_label(out, "Restarts");
        fprintf(out, "%" PRId64 " after failures\n", field_int(state, "restarts", 0));
    }
}

void render_line(FILE *out, const char *label, const char *text, int width)
{
    if (text == NULL || *text == '\0')
        return;
    char *clean = text_clean(text, LINE_COLUMNS_MAX);
    put_label(out, label);
    text_print_wrapped(out, clean, LABEL_COLUMNS + 2, width);
    fputc('\n', out);
    free(clean);
}

/* A value of the policy as a user writes it on the command line. */
static void put_policy_value(FILE *out, json_object *value)
{
    if (json_object_is_type(value, json_type_array)) {
        for (size_t i = 0; i < json_object_array_length(value); i++) {
            fputs(i ? "," : "", out);
            put_policy_value(out, json_object_array_get_idx(value, i));
        }
        return;
    }
    put_clean(out, value ? json_object_get_string(value) : NULL, NAME_COLUMNS_MAX);
}

static void put_policy(FILE *out, json_object *state, int width)
{
    json_object *policy = NULL, *value = NULL;
    if (!json_object_object_get_ex(state, "policy", &policy) || policy == NULL)
        return;
    const char *separator = "";
    char *text = NULL;
    size_t size = 0;
    FILE *line = text_need(open_memstream(&text, &size));
    for (const struct policy_option *option = policy_options; option->json != NULL; option++) {
        if (option->label == NULL || !json_object_object_get_ex(policy, option->json, &value) ||
            value == NULL)
            continue;
        fprintf(line, "%s%s ", separator, option->label);
        put_policy_value(line, value);
        if (option->symbol != NULL && json_object_is_type(value, json_type_int))
            fprintf(line, " %s", option->symbol);
        separator = ", ";
    }
    json_object_object_get_ex(policy, "scale_config", &value);
    if (json_object_is_type(value, json_type_object))
        fprintf(line, "%sscale_config for %d world sizes", separator,
                json_object_object_length(value));
    fclose(line);
    render_line(out, "Policy", text_need(text), width);
    free(text);
}

/* "4", "2-5", or "-" when the member takes no part. */
static void ranks_cell(struct table *table, json_object *member)
{
    int64_t first = field_int(member, "first_rank", -1);
    int64_t slots = field_int(member, "slots", 0);
    char text[64];
    if (first < 0 || slots < 1 || slots > INT32_MAX || first > INT32_MAX)
        snprintf(text, sizeof(text), "-");
    else if (slots == 1)
        snprintf(text, sizeof(text), "%" PRId64, first);
    else
        snprintf(text, sizeof(text), "%" PRId64 "-%" PRId64, first, first + slots - 1);
    table_cell(table, text);
}

/* "3.98" */
static const char *money(double amount, char *buf, size_t size)
{
    snprintf(buf, size, amount < 1e15 ? "%.2f" : "%.3g", amount);
    return buf;
}

/* "12.30 so far, 3.98 an hour, 40.10 expected, budget 50.00" */
static void put_cost(FILE *out, json_object *state, int width)
{
    static const struct {
        const char *key, *before, *behind;
    } parts[] = {{"so_far", "", " so far"},
                 {"per_hour", ", ", " an hour"},
                 {"expected", ", ", " expected at the end"},
                 {"budget", ", budget ", ""}};
    json_object *cost = NULL;
    char text[256] = "", amount[32];
    size_t len = 0;
    if (!json_object_object_get_ex(state, "cost", &cost) || cost == NULL)
        return;
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        double value = field_double(cost, parts[i].key);
        if (value >= 0)
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s%s", parts[i].before,
                                    money(value, amount, sizeof(amount)), parts[i].behind);
    }
    render_line(out, "Cost", text, width);
}

/* "2026-12-01T08:00:00, expected end 07:10:00: in time (spot nodes are enough)" */
static void put_deadline(FILE *out, json_object *state, const struct render_options *options)
{
    json_object *deadline = NULL;
    char text[512], clock[32], end[32];
    if (!json_object_object_get_ex(state, "deadline", &deadline) || deadline == NULL)
        return;
    double expected = field_double(deadline, "expected");
    const char *why = json_get_string(deadline, "why");
    size_t len = (size_t)snprintf(
        text, sizeof(text), "%s",
        text_clock(field_double(deadline, "time"), options->now, clock, sizeof(clock)));
    if (expected > 0)
        len += (size_t)snprintf(text + len, sizeof(text) - len, ", expected end %s: %s",
                                text_clock(expected, options->now, end, sizeof(end)),
                                json_get_bool(deadline, "in_time", true) ? "in time" : "late");
    if (why != NULL)
        snprintf(text + len, sizeof(text) - len, " (%.200s)", why);
    render_line(out, "Deadline", text, options->width);
}

/* What the node is about, and for how long yet. */
static void member_state_cell(struct table *table, json_object *member,
                              const struct render_options *options)
{
    double left = field_double(member, "taken") - (double)options->now;
    const char *said = json_get_string(member, "state");
    char text[96], lasting[48];
    if (!(left >= 0) || said == NULL) {
        table_cell(table, said);
        return;
    }
    snprintf(text, sizeof(text), "%.40s, taken in %s", said,
             text_duration(left, lasting, sizeof(lasting)));
    table_cell(table, text);
}

/* A node that powers up may do so for minutes. */
static void extension_state_cell(struct table *table, json_object *extension,
                                 const struct render_options *options)
{
    double since = field_double(extension, "since");
    const char *said = json_get_string(extension, "state");
    char text[96], lasting[48];
    if (said == NULL || strcmp(said, "booting") != 0 || !(since > 0)) {
        table_cell(table, said);
        return;
    }
    snprintf(text, sizeof(text), "powering up, %s",
             text_duration((double)options->now - since, lasting, sizeof(lasting)));
    table_cell(table, text);
}

/* Whether it is asked for nodes, or why not. */
static void pool_state_cell(struct table *table, json_object *pool,
                            const struct render_options *options)
{
    double until = field_double(pool, "paused_until");
    const char *failure = json_get_string(pool, "failure");
    char text[400], clock[32];
    if (!(until > (double)options->now)) {
        render_text_cell(table, pool, "why");
        return;
    }
    snprintf(text, sizeof(text), "paused until %s%s%.250s",
             text_clock(until, options->now, clock, sizeof(clock)), failure != NULL ? ": " : "",
             failure != NULL ? failure : "");
    table_cell(table, text);
}

static void amount_cell(struct table *table, json_object *object, const char *key)
{
    double value = field_double(object, key);
    char text[32];
    table_cell(table, value >= 0 ? money(value, text, sizeof(text)) : NULL);
}

/* Of a job with one pool and no prices everything is in the other tables. */
static bool pools_matter(json_object *state)
{
    json_object *pools = field_array(state, "pools");
    if (field_count(state, "pools") != 1)
        return field_count(state, "pools") > 1;
    json_object *pool = json_object_array_get_idx(pools, 0);
    return field_double(pool, "price") >= 0 || field_double(pool, "paused_until") > 0;
}

static void put_pools(FILE *out, json_object *state, const struct render_options *options)
{
    static const struct table_column columns[] = {
        {"POOL", TABLE_LEFT},        {"ZONE", TABLE_LEFT},     {"PRICE", TABLE_RIGHT},
        {"READY", TABLE_RIGHT},      {"BOOTING", TABLE_RIGHT}, {"PENDING", TABLE_RIGHT},
        {"NODE-HOURS", TABLE_RIGHT}, {"STATE", TABLE_LEFT},
    };
    json_object *pools = field_array(state, "pools");
    if (!pools_matter(state))
        return;
    struct table *table = table_create(columns, sizeof(columns) / sizeof(*columns));
    for (size_t i = 0; i < json_object_array_length(pools); i++) {
        json_object *pool = json_object_array_get_idx(pools, i);
        render_text_cell(table, pool, "pool");
        render_text_cell(table, pool, "zone");
        amount_cell(table, pool, "price");
        render_number_cell(table, pool, "ready");
        render_number_cell(table, pool, "booting");
        render_number_cell(table, pool, "pending");
        amount_cell(table, pool, "node_hours");
        pool_state_cell(table, pool, options);
    }
    fputc('\n', out);
    table_print(table, out, options->width);
    table_destroy(table);
}

static void put_members(FILE *out, json_object *state, const struct render_options *options)
{
    static const struct table_column columns[] = {
        {"NODE", TABLE_LEFT},  {"JOB", TABLE_RIGHT},     {"ROLE", TABLE_LEFT},
        {"POOL", TABLE_LEFT},  {"WORKERS", TABLE_RIGHT}, {"RANKS", TABLE_LEFT},
        {"STATE", TABLE_LEFT},
    };
    static const struct table_column of_roles[] = {
        {"NODE", TABLE_LEFT}, {"JOB", TABLE_RIGHT},  {"PART", TABLE_LEFT},
        {"POOL", TABLE_LEFT}, {"STATE", TABLE_LEFT},
    };
    bool roles = has_roles(state);
    json_object *members = field_array(state, "members");
    size_t count = field_count(state, "members");
    if (count == 0)
        return;
    struct table *table = roles ? table_create(of_roles, sizeof(of_roles) / sizeof(*of_roles))
                                : table_create(columns, sizeof(columns) / sizeof(*columns));
    for (size_t i = 0; i < count; i++) {
        json_object *member = json_object_array_get_idx(members, i);
        render_text_cell(table, member, "node");
        render_number_cell(table, member, "job");
        render_text_cell(table, member, "role");
        render_text_cell(table, member, "pool");
        if (!roles) {
            render_number_cell(table, member, "slots");
            ranks_cell(table, member);
        }
        member_state_cell(table, member, options);
    }
    fputc('\n', out);
    table_print(table, out, options->width);
    table_destroy(table);
}

static void put_extensions(FILE *out, json_object *state, const struct render_options *options)
{
    static const struct table_column columns[] = {
        {"EXTENSION", TABLE_RIGHT}, {"NODES", TABLE_RIGHT}, {"POOL", TABLE_LEFT},
        {"STATE", TABLE_LEFT},      {"BEGINS", TABLE_LEFT}, {"REASON", TABLE_LEFT},
    };
    static const struct table_column of_roles[] = {
        {"EXTENSION", TABLE_RIGHT}, {"ROLE", TABLE_LEFT},  {"NODES", TABLE_RIGHT},
        {"POOL", TABLE_LEFT},       {"STATE", TABLE_LEFT}, {"BEGINS", TABLE_LEFT},
        {"REASON", TABLE_LEFT},
    };
    bool roles = has_roles(state);
    json_object *extensions = field_array(state, "extensions");
    size_t count = field_count(state, "extensions");
    if (count == 0)
        return;
    struct table *table = roles ? table_create(of_roles, sizeof(of_roles) / sizeof(*of_roles))
                                : table_create(columns, sizeof(columns) / sizeof(*columns));
    for (size_t i = 0; i < count; i++) {
        json_object *extension = json_object_array_get_idx(extensions, i);
        double begin = field_double(extension, "begin");
        char clock[32];
        render_number_cell(table, extension, "job");
        if (roles)
            render_text_cell(table, extension, "role");
        render_number_cell(table, extension, "nodes");
        render_text_cell(table, extension, "pool");
        extension_state_cell(table, extension, options);
        /* A time that has passed tells nothing: from then on the reason is shown. */
        table_cell(table, begin > (double)options->now
                              ? text_clock(begin, options->now, clock, sizeof(clock))
                              : NULL);
        render_text_cell(table, extension, "reason");
    }
    fputc('\n', out);
    table_print(table, out, options->width);
    table_destroy(table);
}

/* The first node is not mentioned. */
static void put_leader(FILE *out, json_object *state, int width)
{
    const char *leader = json_get_string(state, "leader");
    int64_t term = field_int(state, "term", 0);
    char text[320];
    if (leader == NULL || term <= 0)
        return;
    snprintf(text, sizeof(text), "%.250s, since the leading node was lost (term %lld)", leader,
             (long long)term);
    render_line(out, "Leader", text, width);
}

/* Only if it is another one. One that is older than such words does not say it. */
static void put_release(FILE *out, json_object *state, const struct render_options *options)
{
    const char *release = json_get_string(state, "release");
    char text[128];
    if (options->release == NULL || release == NULL || strcmp(release, options->release) == 0)
        return;
    snprintf(text, sizeof(text), "%.40s leads the job, this selastic is of %.40s", release,
             options->release);
    render_line(out, "Release", text, options->width);
}

char *render_state(json_object *state, const struct render_options *options)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = text_need(open_memstream(&text, &size));
    put_heading(out, state);
    if (has_roles(state)) {
        render_line(out, "Roles", json_get_string(state, "roles"), options->width);
    } else {
        put_size(out, state);
        put_generation(out, state, options);
    }
    render_line(out, "Why this size", json_get_string(state, "why_size"), options->width);
    render_line(out, "Why not more", json_get_string(state, "why_not_more"), options->width);
    put_deadline(out, state, options);
    put_cost(out, state, options->width);
    render_line(out, "Newcomers", json_get_string(state, "newcomers"), options->width);
    put_leader(out, state, options->width);
    put_release(out, state, options);
    render_line(out, "Left out", json_get_string(state, "left_out"), options->width);
    render_line(out, "To be replaced", json_get_string(state, "advised"), options->width);
    render_stragglers(out, state, options->width);
    render_line(out, "Next", json_get_string(state, "next_world"), options->width);
    put_policy(out, state, options->width);
    render_line(out, "State directory", json_get_string(state, "state_dir"), options->width);
    render_line(out, "Checkpoints", json_get_string(state, "checkpoint_dir"), options->width);
    render_line(out, "PMIx", json_get_string(state, "pmix"), options->width);
    render_line(out, "elastic.conf", json_get_string(state, "conf"), options->width);
    put_members(out, state, options);
    put_extensions(out, state, options);
    put_pools(out, state, options);
    fclose(out);
    return text_need(text);
}

void render_bounds_cell(struct table *table, json_object *job)
{
    char text[64];
    int64_t min = field_int(job, "min", -1), max = field_int(job, "max", -1);
    const char *sizes = json_get_string(job, "sizes");
    if (min < 0 || max < 0)
        snprintf(text, sizeof(text), "%s",
                 sizes != NULL && strcmp(sizes, "roles") == 0 ? sizes : "-");
    else
        snprintf(text, sizeof(text), "%" PRId64 ":%" PRId64, min, max);
    table_cell(table, text);
}

char *render_list(json_object *list, const struct render_options *options)
{
    static const struct table_column columns[] = {
        {"JOBID", TABLE_RIGHT}, {"NAME", TABLE_LEFT},     {"USER", TABLE_LEFT},
        {"STATE", TABLE_LEFT},  {"SIZE", TABLE_RIGHT},    {"MIN:MAX", TABLE_LEFT},
        {"GEN", TABLE_RIGHT},   {"PENDING", TABLE_RIGHT}, {"WHY", TABLE_LEFT},
    };
    json_object *jobs = field_array(list, "jobs");
    size_t count = field_count(list, "jobs");
    char *text = NULL;
    size_t size = 0;
    struct table *table = table_create(columns, sizeof(columns) / sizeof(*columns));
    for (size_t i = 0; i < count; i++) {
        json_object *job = json_object_array_get_idx(jobs, i);
        char *name = text_clean(json_get_string(job, "name"), 20);
        render_number_cell(table, job, "job");
        table_cell(table, name);
        render_text_cell(table, job, "user");
        render_text_cell(table, job, "state");
        render_number_cell(table, job, "size");
        render_bounds_cell(table, job);
        render_number_cell(table, job, "generation");
        render_number_cell(table, job, "pending");
        render_text_cell(table, job, "why");
        free(name);
    }
    FILE *out = text_need(open_memstream(&text, &size));
    table_print(table, out, options->width);
    table_destroy(table);
    fclose(out);
    return text_need(text);
}

/* "512 B", "1.5 GB" */
static void bytes_cell(struct table *table, double bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    char text[32];
    size_t unit = 0;
    for (; bytes >= 1000 && unit + 1 < sizeof(units) / sizeof(*units); unit++)
        bytes /= 1000;
    snprintf(text, sizeof(text), unit > 0 && bytes < 10 ? "%.1f %s" : "%.0f %s", bytes,
             units[unit]);
    table_cell(table, text);
}

char *render_clean(json_object *list, const struct render_options *options)
{
    static const struct table_column columns[] = {
        {"JOBID", TABLE_RIGHT}, {"CHANGED", TABLE_LEFT},   {"SIZE", TABLE_RIGHT},
        {"ACTION", TABLE_LEFT}, {"DIRECTORY", TABLE_LEFT}, {"WHY", TABLE_LEFT},
    };
    json_object *directories = field_array(list, "directories");
    char *text = NULL;
    size_t size = 0;
    struct table *table = table_create(columns, sizeof(columns) / sizeof(*columns));
    for (size_t i = 0; i < field_count(list, "directories"); i++) {
        json_object *directory = json_object_array_get_idx(directories, i);
        render_number_cell(table, directory, "job");
        render_duration_cell(table, (double)options->now - field_double(directory, "changed"));
        bytes_cell(table, (double)field_int(directory, "bytes", 0));
        render_text_cell(table, directory, "action");
        render_text_cell(table, directory, "directory");
        render_text_cell(table, directory, "why");
    }
    FILE *out = text_need(open_memstream(&text, &size));
    table_print(table, out, options->width);
    table_destroy(table);
    fclose(out);
    return text_need(text);
}

/* Seconds from the start of a generation to its end, or to now; NAN when they are not known. */
static double lasted(json_object *generation, const struct render_options *options)
{
    double until = field_double(generation, "until");
    if (isnan(until) && !options->over)
        until = (double)options->now;
    return until - field_double(generation, "time");
}

/* Totals under the table: what all the changes have cost. The start of the job is not a change. */
static void put_totals(FILE *out, json_object *generations, size_t count)
{
    double paused = 0;
    size_t known = 0;
    char text[48];
    for (size_t i = 1; i < count; i++) {
        double pause = field_double(json_object_array_get_idx(generations, i), "pause");
        if (isnan(pause))
            continue;
        paused += pause;
        known++;
    }
    fprintf(out, "\n%zu %s", count - 1, count == 2 ? "change" : "changes");
    if (known > 0)
        fprintf(out, ", training paused for %s %s", text_duration(paused, text, sizeof(text)),
                known == count - 1 ? "in all" : "in those of which it is known");
    fputs(".\n", out);
}

/* Has a generation that number? Only jobs whose nodes have prices, or that have on-demand pools. */
static bool have_numbers(json_object *generations, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (!isnan(field_double(json_object_array_get_idx(generations, i), key)))
            return true;
    return false;
}

static void generation_row(struct table *table, json_object *generation, bool costs, bool on_demand,
                           const struct render_options *options)
{
    char clock[32], text[32];
    double cost = field_double(generation, "cost");
    double hours = field_double(generation, "on_demand_hours");
    render_number_cell(table, generation, "generation");
    table_cell(table,
               text_clock(field_double(generation, "time"), options->now, clock, sizeof(clock)));
    render_text_cell(table, generation, "kind");
    render_number_cell(table, generation, "size");
    render_number_cell(table, generation, "workers");
    render_duration_cell(table, lasted(generation, options));
    render_duration_cell(table, field_double(generation, "pause"));
    if (costs)
        table_cell(table, cost >= 0 ? money(cost, text, sizeof(text)) : NULL);
    snprintf(text, sizeof(text), "%.2f h", hours);
    if (on_demand)
        table_cell(table, hours >= 0 ? text : NULL);
    render_text_cell(table, generation, "reason");
}

char *render_history(json_object *history, const struct render_options *options)
{
    json_object *generations = field_array(history, "generations");
    size_t count = field_count(history, "generations");
    bool costs = have_numbers(generations, count, "cost");
    bool on_demand = have_numbers(generations, count, "on_demand_hours");
    struct table_column columns[10] = {
        {"GEN", TABLE_RIGHT},   {"TIME", TABLE_LEFT},     {"KIND", TABLE_LEFT},
        {"NODES", TABLE_RIGHT}, {"WORKERS", TABLE_RIGHT}, {"LASTED", TABLE_RIGHT},
        {"PAUSE", TABLE_RIGHT},
    };
    int column_count = 7;
    char *text = NULL;
    size_t size = 0;
    FILE *out = text_need(open_memstream(&text, &size));
    struct table *table;
    if (costs)
        columns[column_count++] = (struct table_column){"COST", TABLE_RIGHT};
    if (on_demand)
        columns[column_count++] = (struct table_column){"ON-DEMAND", TABLE_RIGHT};
    columns[column_count++] = (struct table_column){"REASON", TABLE_LEFT};
    table = table_create(columns, column_count);
    for (size_t i = 0; i < count; i++)
        generation_row(table, json_object_array_get_idx(generations, i), costs, on_demand, options);
    table_print(table, out, options->width);
    table_destroy(table);
    if (count > 0)
        put_totals(out, generations, count);
    if (count > 0)
        render_slow_history(out, generations, options->width);
    fclose(out);
    return text_need(text);
}
