/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is counted for metrics (measures.h). */
#include "agent/leader/measures.h"

#include <stdlib.h>
#include <string.h>

#include "agent/leader/leader_internal.h"
#include "lib/goodput.h"

/* All kinds of worlds that lib/change has names for, and some room. */
#define KINDS      8
#define KIND_BYTES 16

struct measures {
    struct goodput goodput;
    struct {
        char name[KIND_BYTES];
        int worlds;
    } kinds[KINDS];
    int64_t submits;
};

struct measures *measures_create(void)
{
    return calloc(1, sizeof(struct measures));
}

void measures_destroy(struct measures *measures)
{
    free(measures);
}

/* Workers that are to run to an agreed step still train. */
static enum goodput_use use_of(const struct leader *leader)
{
    switch (change_phase(leader->change)) {
    case CHANGE_ASSEMBLING:
    case CHANGE_WAITING:
    case CHANGE_REPLACING:
        return GOODPUT_WAITING;
    case CHANGE_RUNNING:
    case CHANGE_HOLDING:
        return change_all_stepping(leader->change) ? GOODPUT_PRODUCTIVE : GOODPUT_CHANGING;
    default:
        return GOODPUT_CHANGING;
    }
}

void measures_phase(struct leader *leader)
{
    goodput_enter(&leader->watches.measures->goodput, leader_now(leader), use_of(leader));
}

void measures_world(struct leader *leader, const char *kind)
{
    struct measures *measures = leader->watches.measures;

    for (int i = 0; i < KINDS; i++) {
        if (measures->kinds[i].worlds == 0)
            snprintf(measures->kinds[i].name, KIND_BYTES, "%s", kind);
        if (strcmp(measures->kinds[i].name, kind) != 0)
            continue;
        measures->kinds[i].worlds++;
        return;
    }
}

void measures_pause(struct leader *leader, double seconds)
{
    goodput_paused(&leader->watches.measures->goodput, seconds);
}

void measures_progress(struct leader *leader, int generation, int64_t done)
{
    goodput_report(&leader->watches.measures->goodput, leader_now(leader), generation, done);
}

void measures_submitted(struct leader *leader)
{
    leader->watches.measures->submits++;
}

static json_object *time_json(const struct goodput *goodput)
{
    json_object *obj = json_object_new_object();

    for (int i = 0; i < GOODPUT_USES; i++)
        json_object_object_add(obj, goodput_names[i], json_object_new_double(goodput->seconds[i]));
    return obj;
}

/* With the bounds: who reads may be of another release. */
static json_object *pauses_json(const struct goodput *goodput)
{
    json_object *obj = json_object_new_object(), *bounds = json_object_new_array(),
                *counts = json_object_new_array();

    for (int i = 0; i < GOODPUT_BUCKETS; i++) {
        json_object_array_add(bounds, json_object_new_double(goodput_bounds[i]));
        json_object_array_add(counts, json_object_new_int64(goodput->pauses[i]));
    }
    json_object_object_add(obj, "bounds", bounds);
    json_object_object_add(obj, "counts", counts);
    json_object_object_add(obj, "count", json_object_new_int64(goodput->pause_count));
    json_object_object_add(obj, "sum", json_object_new_double(goodput->pause_sum));
    return obj;
}

static json_object *worlds_json(const struct measures *measures)
{
    json_object *obj = json_object_new_object();

    for (int i = 0; i < KINDS && measures->kinds[i].worlds > 0; i++)
        json_object_object_add(obj, measures->kinds[i].name,
                               json_object_new_int(measures->kinds[i].worlds));
    return obj;
}

static json_object *slurm_json(const struct measures *measures)
{
    json_object *obj = json_object_new_object();

    json_object_object_add(obj, "library", json_object_new_int64(slurm_client_calls()));
    json_object_object_add(obj, "sbatch", json_object_new_int64(measures->submits));
    return obj;
}

json_object *measures_json(struct leader *leader)
{
    const struct measures *measures = leader->watches.measures;
    json_object *obj = json_object_new_object();

    measures_phase(leader);
    /* Replicas have no steps. */
    if (leader->options->world_nodes > 0) {
        json_object_object_add(obj, "time", time_json(&measures->goodput));
        json_object_object_add(obj, "pauses", pauses_json(&measures->goodput));
        json_object_object_add(obj, "worlds", worlds_json(measures));
    }
    if (measures->goodput.world > 0)
        json_object_object_add(obj, "lost", json_object_new_int64(measures->goodput.lost));
    json_object_object_add(obj, "slurm", slurm_json(measures));
    return obj;
}
