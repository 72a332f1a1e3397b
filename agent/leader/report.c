/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What files and the log are told about a job: host files, history, progress, the cause of a
 * failure. */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/leader/leader_internal.h"
#include "agent/leader/measures.h"
#include "agent/leader/report.h"
#include "agent/leader/roster.h"
#include "agent/leader/scribe.h"
#include "client/event_page.h"
#include "common/files.h"
#include "common/log.h"
#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/text.h"

#define GENERATION_MAX ((size_t)16 << 20) /* bytes of generation.json */

/* One line of the job's history. */
struct generation_record {
    int generation, size, workers;
    /* When the world before had been held, on the leader's clock; < 0: there was none. */
    double pause_from;
    double time, until, pause; /* Unix time, seconds; until and pause < 0: not known (yet) */
    struct costs_total total;  /* of the job until then */
    char kind[16];
    int64_t steps; /* made in it; -1: it has not ended */
    char *reason;
    char **nodes, **pools;
    char **stragglers; /* what was said of slow workers; NULL: nothing */
};

/* Of so many of the latest changes report_pause() tells the longest. */
#define PAUSES 8

/* What the program has reported of its progress, of the node with the lowest ranks that reports.
 * Kept over a change, until the new world reports. */
struct progress {
    int generation; /* 0: nothing has been reported */
    int position;   /* the node */
    int64_t done, total;
    char unit[EVENT_UNIT_BYTES];
    int64_t first_done; /* at first_at (leader_now), the first report of this generation */
    double first_at;
    double at;    /* Unix time */
    double heard; /* the same, leader_now */
};

struct report {
    struct generation_record *history;
    int history_count;
    double started; /* Unix time */
    /* Steps of the worlds before, and of the present one, as far as they are known. */
    int64_t steps_before, steps;
    bool unwritable; /* the state directory: has been said */
    struct scribe *scribe;
    struct progress progress;
};

/* ---- files ----------------------------------------------------------------------------------- */

/* The state directory may be gone, full or read-only: the job needs no file of it to go on. That is
 * said once, until a file can be written again. */
static void note_written(struct leader *leader, int rc, const struct error *err)
{
    if (rc != 0 && !leader->report->unwritable)
        log_error("job %u: %s; the job goes on without files in its state directory",
                  leader->options->job, err->text);
    leader->report->unwritable = rc != 0;
}

static void scribe_wrote(int rc, const struct error *err, void *arg)
{
    note_written(arg, rc, err);
    leader_look_at_end(arg, 0);
}

/* At once, for the workers of the world that begins may read it. */
static void write_file(struct leader *leader, const char *name, char *text, mode_t mode)
{
    char path[PATH_MAX];
    struct error err = {"out of memory"};
    int rc = -1;

    snprintf(path, sizeof(path), "%s/%s", leader->options->state_dir, name);
    if (text != NULL)
        rc = file_replace(path, text, strlen(text), mode, &err);
    note_written(leader, rc, &err);
    free(text);
}

void report_write(struct leader *leader, const char *name, char *text)
{
    scribe_replace(leader->report->scribe, name, text);
}

bool report_busy(const struct leader *leader)
{
    return scribe_busy(leader->report->scribe);
}

static void append_history(struct leader *leader, json_object *line)
{
    scribe_append(leader->report->scribe, "history.jsonl",
                  strdup(json_object_to_json_string_ext(line, JSON_C_TO_STRING_PLAIN)));
    json_object_put(line);
}

static json_object *record_json(const struct generation_record *r)
{
    json_object *obj = json_object_new_object();

    json_object_object_add(obj, "generation", json_object_new_int(r->generation));
    json_object_object_add(obj, "time", json_object_new_double(r->time));
    json_object_object_add(obj, "kind", json_object_new_string(r->kind));
    json_object_object_add(obj, "size", json_object_new_int(r->size));
    json_object_object_add(obj, "workers", json_object_new_int(r->workers));
    json_object_object_add(obj, "nodes", json_from_strings(r->nodes));
    json_object_object_add(obj, "pools", json_from_strings(r->pools));
    json_object_object_add(obj, "reason",
                           json_object_new_string(r->reason != NULL ? r->reason : ""));
    if (r->total.cost >= 0)
        json_object_object_add(obj, "cost", json_object_new_double(r->total.cost));
    if (r->total.on_demand_hours >= 0)
        json_object_object_add(obj, "on_demand_hours",
                               json_object_new_double(r->total.on_demand_hours));
    return obj;
}

static struct generation_record *last_record(const struct leader *leader)
{
    return leader->report->history_count > 0
               ? &leader->report->history[leader->report->history_count - 1]
               : NULL;
}

static json_object *steps_json(const struct generation_record *r)
{
    json_object *line = json_object_new_object();

    json_object_object_add(line, "generation", json_object_new_int(r->generation));
    json_object_object_add(line, "steps", json_object_new_int64(r->steps));
    return line;
}

static void end_record(struct leader *leader, struct generation_record *r)
{
    r->until = unix_now();
    r->steps = leader->report->steps;
    leader->report->steps_before += r->steps;
    leader->report->steps = 0;
}

static int add_record(struct leader *leader, double pause_from, struct costs_total total,
                      char **pools)
{
    struct generation_record *grown, *r;
    const struct world *world = change_world(leader->change);

    grown = realloc(leader->report->history,
                    ((size_t)leader->report->history_count + 1) * sizeof(*grown));
    if (grown == NULL) {
        strings_free(pools);
        return -1;
    }
    leader->report->history = grown;
    if ((r = last_record(leader)) != NULL && r->until < 0) {
        end_record(leader, r);
        append_history(leader, steps_json(r));
    }
    r = &leader->report->history[leader->report->history_count++];
    memset(r, 0, sizeof(*r));
    r->generation = world->generation;
    r->size = world->node_count;
    r->workers = world_size(world);
    r->time = unix_now();
    r->until = r->pause = -1;
    r->pause_from = pause_from;
    r->steps = -1;
    r->pools = pools;
    r->total = total;
    snprintf(r->kind, sizeof(r->kind), "%s", world->kind);
    r->reason = strdup(world->reason);
    r->nodes = calloc((size_t)world->node_count + 1, sizeof(*r->nodes));
    for (int i = 0; r->nodes != NULL && i < world->node_count; i++)
        r->nodes[i] = strdup(world->nodes[i].name);
    return 0;
}

int report_last_generation(const struct leader_options *options)
{
    char path[PATH_MAX], incarnation[32], *text = NULL;
    json_object *root = NULL;
    const char *of;
    int64_t generation = 0;
    size_t len = 0;

    snprintf(path, sizeof(path), "%s/generation.json", options->state_dir);
    snprintf(incarnation, sizeof(incarnation), "%u.%u", options->job, options->restarts);
    text = file_read(path, GENERATION_MAX, &len, NULL);
    if (text != NULL)
        root = json_text_parse(text, len, NULL);
    of = json_get_string(root, "incarnation");
    if (of == NULL || strcmp(of, incarnation) != 0 ||
        !json_get_int(root, "generation", 1, EVENT_GENERATION_MASK / 2, &generation))
        generation = 0;
    json_object_put(root);
    free(text);
    return (int)generation;
}

void report_generation(struct leader *leader, double pause_from, struct costs_total total,
                       char **pools)
{
    const struct world *world = change_world(leader->change);
    char incarnation[32];
    char *nodes = NULL, **names = calloc((size_t)world->node_count + 1, sizeof(*names));

    snprintf(incarnation, sizeof(incarnation), "%u.%u", leader->options->job,
             leader->options->restarts);
    for (int i = 0; names != NULL && i < world->node_count; i++)
        names[i] = world->nodes[i].name;
    if (names != NULL)
        nodes = slurm_client_compress(names, world->node_count);
    log_info("job %u: generation %d: %d node%s, %d worker%s (%s: %s) on %s", leader->options->job,
             world->generation, world->node_count, world->node_count == 1 ? "" : "s",
             world_size(world), world_size(world) == 1 ? "" : "s", world->kind, world->reason,
             nodes != NULL ? nodes : "?");
    free(names);
    free(nodes);
    measures_world(leader, world->kind);
    if (add_record(leader, pause_from, total, pools) == 0)
        append_history(leader, record_json(last_record(leader)));
    /* A full disk must not stop a training that needs no host file; the log has said it. */
    write_file(leader, "generation.json", world_generation_json(world, incarnation, unix_now()),
               0600);
    write_file(leader, "discover_hosts.sh", world_discover_hosts(world), 0700);
    write_file(leader, "hostfile.openmpi", world_hostfile_openmpi(world), 0600);
    write_file(leader, "hostfile.mpich", world_hostfile_mpich(world), 0600);
}

void report_stepping(struct leader *leader, bool aware)
{
    struct generation_record *r = last_record(leader);
    json_object *line;

    if (r == NULL || r->pause >= 0 || r->pause_from < 0)
        return;
    r->pause = (aware ? leader_now(leader) : change_ready_at(leader->change)) - r->pause_from;
    measures_pause(leader, r->pause);
    line = json_object_new_object();
    json_object_object_add(line, "generation", json_object_new_int(r->generation));
    json_object_object_add(line, "pause", json_object_new_double(r->pause));
    append_history(leader, line);
}

void report_left(struct leader *leader, uint32_t job, const char *why)
{
    char unknown[64], text[256];

    snprintf(unknown, sizeof(unknown), CHANGE_LEAVING_TEXT, job);
    for (int i = leader->report->history_count - 1; i >= 0; i--) {
        struct generation_record *r = &leader->report->history[i];
        json_object *line;

        if (r->reason == NULL || strcmp(r->reason, unknown) != 0)
            continue;
        snprintf(text, sizeof(text), "extension job %u %s", job, why);
        free(r->reason);
        r->reason = strdup(text);
        log_info("job %u: generation %d: %s", leader->options->job, r->generation, text);
        line = json_object_new_object();
        json_object_object_add(line, "generation", json_object_new_int(r->generation));
        json_object_object_add(line, "reason", json_object_new_string(text));
        append_history(leader, line);
        return;
    }
}

/* A pause belongs to the generation that follows it, and its nodes were the job's, too. */
static void say_totals(const struct leader *leader)
{
    const struct report *report = leader->report;
    double hours = 0, pauses = 0;
    char text[128] = "";

    for (int i = 0; i < report->history_count; i++) {
        const struct generation_record *r = &report->history[i];

        hours += r->until > r->time ? (r->until - r->time) * r->size / 3600 : 0;
        pauses += r->pause > 0 ? r->pause : 0;
    }
    text_append(text, sizeof(text), "%d generation%s", report->history_count,
                report->history_count == 1 ? "" : "s");
    if (report->steps_before > 0)
        text_append(text, sizeof(text), ", %lld steps", (long long)report->steps_before);
    if (pauses > 0)
        text_append(text, sizeof(text), ", training paused for %.1f s", pauses);
    log_info("job %u: %s%s, %.2f node hours", leader->options->job,
             leader->options->term > 0 ? "since this node leads: " : "", text, hours);
}

void report_straggler(struct leader *leader, const char *text)
{
    struct generation_record *r = last_record(leader);
    json_object *line;

    if (r == NULL)
        return;
    strings_append(&r->stragglers, (char *[]){(char *)(uintptr_t)text, NULL});
    line = json_object_new_object();
    json_object_object_add(line, "generation", json_object_new_int(r->generation));
    json_object_object_add(line, "straggler", json_object_new_string(text));
    append_history(leader, line);
}

void report_end(struct leader *leader)
{
    struct generation_record *r = last_record(leader);
    json_object *line;

    if (r == NULL || r->until >= 0)
        return;
    end_record(leader, r);
    line = steps_json(r);
    json_object_object_add(line, "until", json_object_new_double(r->until));
    append_history(leader, line);
    say_totals(leader);
}

json_object *report_history_json(const struct leader *leader, int after)
{
    json_object *array = json_object_new_array();

    for (int i = 0; i < leader->report->history_count; i++) {
        const struct generation_record *r = &leader->report->history[i];
        json_object *obj;

        if (r->generation <= after)
            continue;
        obj = record_json(r);
        if (r->stragglers != NULL)
            json_object_object_add(obj, "stragglers", json_from_strings(r->stragglers));
        json_object_object_add(obj, "pause",
                               r->pause >= 0 ? json_object_new_double(r->pause) : NULL);
        json_object_object_add(obj, "until",
                               r->until >= 0 ? json_object_new_double(r->until) : NULL);
        json_object_object_add(
            obj, "steps", json_object_new_int64(r->until >= 0 ? r->steps : leader->report->steps));
        json_object_array_add(array, obj);
    }
    return array;
}

double report_pause(const struct leader *leader)
{
    double longest = -1;

    for (int i = leader->report->history_count - 1, n = 0; i >= 0 && n < PAUSES; i--, n++)
        if (leader->report->history[i].pause > longest)
            longest = leader->report->history[i].pause;
    return longest;
}

double report_since(const struct leader *leader)
{
    const struct generation_record *r = last_record(leader);

    return r != NULL ? r->time : leader->report->started;
}

struct report *report_create(struct leader *leader)
{
    struct report *report = calloc(1, sizeof(*report));

    if (report == NULL)
        return NULL;
    report->started = unix_now();
    report->scribe = scribe_create(leader->loop, leader->options->state_dir, scribe_wrote, leader);
    if (report->scribe != NULL)
        return report;
    free(report);
    return NULL;
}

void report_destroy(struct report *report)
{
    if (report == NULL)
        return;
    for (int i = 0; i < report->history_count; i++) {
        free(report->history[i].reason);
        strings_free(report->history[i].nodes);
        strings_free(report->history[i].pools);
        strings_free(report->history[i].stragglers);
    }
    free(report->history);
    scribe_destroy(report->scribe);
    free(report);
}

/* ---- failures -------------------------------------------------------------------------------- */

void report_failure(const char *node, const struct change_fact *exited, json_object *msg,
                    char *text, size_t size)
{
    const char *what = NULL, *name = sigabbrev_np(exited->signal);
    json_object *error = NULL;
    char how[64];

    if (json_object_object_get_ex(msg, "error", &error))
        what = json_get_string(error, "message");
    if (exited->signal != 0)
        snprintf(how, sizeof(how), "SIG%s", name != NULL ? name : "?");
    else
        snprintf(how, sizeof(how), "exit code %d", exited->code);
    snprintf(text, size, "rank %d on %s failed: %s%s%s%s", exited->rank, node,
             what != NULL ? what : how, what != NULL ? " (" : "", what != NULL ? how : "",
             what != NULL ? ")" : "");
}

/* ---- progress -------------------------------------------------------------------------------- */

void report_step(struct leader *leader, uint64_t step)
{
    if (step <= INT64_MAX && (int64_t)step > leader->report->steps)
        leader->report->steps = (int64_t)step;
}

void report_inherit(struct leader *leader, int64_t steps)
{
    leader->report->steps_before = steps;
}

int64_t report_steps(const struct leader *leader)
{
    return leader->report->steps_before + leader->report->steps;
}

void report_progress(struct leader *leader, const struct leader_member *m, json_object *beat)
{
    struct progress *p = &leader->report->progress;
    json_object *said = NULL;
    int64_t gen, done, total;
    const char *unit;

    if (!json_object_object_get_ex(beat, "progress", &said) || m->part->place < 0 ||
        !json_get_int(beat, "gen", 1, INT32_MAX, &gen) ||
        gen != change_generation(leader->change) ||
        !json_get_int(said, "done", 0, INT64_MAX, &done) ||
        !json_get_int(said, "total", 0, INT64_MAX, &total) ||
        (unit = json_get_string(said, "unit")) == NULL ||
        (p->generation == gen && p->position < m->part->place))
        return;
    if (p->generation != gen || p->position != m->part->place || done < p->first_done) {
        p->generation = (int)gen;
        p->position = m->part->place;
        p->first_done = done;
        p->first_at = leader_now(leader);
    }
    p->done = done;
    p->total = total;
    snprintf(p->unit, sizeof(p->unit), "%s", unit);
    p->at = unix_now();
    p->heard = leader_now(leader);
    measures_progress(leader, (int)gen, done);
}

bool report_work(const struct leader *leader, double *done, double *total, double *at)
{
    const struct progress *p = &leader->report->progress;

    if (p->generation == 0)
        return false;
    *done = (double)p->done;
    *total = (double)p->total;
    *at = p->heard;
    return true;
}

/* The rate is that of the present world: another has another. */
json_object *report_progress_json(const struct leader *leader)
{
    const struct progress *p = &leader->report->progress;
    double seconds = leader_now(leader) - p->first_at;
    json_object *obj;

    if (p->generation == 0)
        return NULL;
    obj = json_object_new_object();
    json_object_object_add(obj, "done", json_object_new_int64(p->done));
    json_object_object_add(obj, "total", p->total > 0 ? json_object_new_int64(p->total) : NULL);
    json_object_object_add(obj, "unit", json_object_new_string(p->unit));
    json_object_object_add(obj, "time", json_object_new_double(p->at));
    json_object_object_add(obj, "rate",
                           p->generation == change_generation(leader->change) &&
                                   p->done > p->first_done && seconds > 0
                               ? json_object_new_double((double)(p->done - p->first_done) / seconds)
                               : NULL);
    return obj;
}
