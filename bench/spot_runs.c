/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The runs of bench/spot: a job on a cloud as traces tell, by lib/pools and by its peers.
 *
 * spot_runs KEY=VALUE... TRACE.json...: prints a JSON object for each first sample in `starts`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "tests/unit/cloud.h"

/* {"metadata": {"gap_seconds": G}, "data": [NODES, ...]} */
static int read_trace(const char *path, struct cloud_trace *trace)
{
    json_object *root = json_object_from_file(path), *metadata, *gap, *data;

    if (root == NULL || !json_object_object_get_ex(root, "metadata", &metadata) ||
        !json_object_object_get_ex(metadata, "gap_seconds", &gap) ||
        !json_object_object_get_ex(root, "data", &data) ||
        !json_object_is_type(data, json_type_array) || json_object_get_int(gap) <= 0 ||
        json_object_array_length(data) == 0) {
        fprintf(stderr,
                "%s: not a trace; it should be {\"metadata\": {\"gap_seconds\": 300}, "
                "\"data\": [16, ...]}\n",
                path);
        json_object_put(root);
        return -1;
    }
    trace->gap = json_object_get_int(gap);
    trace->count = (int)json_object_array_length(data);
    trace->nodes = calloc((size_t)trace->count, sizeof(*trace->nodes));
    for (int i = 0; trace->nodes != NULL && i < trace->count; i++)
        trace->nodes[i] = json_object_get_int(json_object_array_get_idx(data, (size_t)i));
    json_object_put(root);
    return trace->nodes == NULL ? -1 : 0;
}

static char sizes[32] = "1:32";
static const char *starts = "0", *policy = "elastic";

static int set(struct cloud_job *job, const char *key, const char *value)
{
    const struct {
        const char *key;
        double *number;
    } numbers[] = {
        {"hours", &job->hours},
        {"deadline", &job->deadline},
        {"boot", &job->boot},
        {"boot-spread", &job->boot_spread},
        {"pause", &job->pause},
        {"suspend", &job->suspend},
        {"spot-price", &job->spot_price},
        {"overhead", &job->overhead},
        {"budget", &job->budget},
    };
    const struct {
        const char *key;
        int *number;
    } whole[] = {{"nodes", &job->nodes},
                 {"base", &job->base},
                 {"max-resume", &job->max_resume},
                 {"zone-nodes", &job->zone_nodes}};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (strcmp(key, numbers[i].key) == 0)
            return *numbers[i].number = atof(value), 0;
    for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++)
        if (strcmp(key, whole[i].key) == 0)
            return *whole[i].number = atoi(value), 0;
    if (strcmp(key, "sizes") == 0)
        return snprintf(sizes, sizeof(sizes), "%s", value) < 0 ? -1 : 0;
    if (strcmp(key, "waits") == 0)
        return job->waits = atoi(value) != 0, 0;
    if (strcmp(key, "starts") == 0)
        return starts = value, 0;
    if (strcmp(key, "policy") == 0)
        return policy = value, 0;
    fprintf(stderr, "spot_runs: there is no %s\n", key);
    return -1;
}

static int run(const struct cloud_job *job)
{
    struct cloud_result r = {.done = true};
    struct sizes parsed;
    struct error err;

    if (strcmp(policy, "greedy") == 0)
        cloud_run_rigid(job, CLOUD_GREEDY, &r);
    else if (strcmp(policy, "uniform") == 0)
        cloud_run_rigid(job, CLOUD_UNIFORM, &r);
    else if (strcmp(policy, "bound") == 0 && sizes_parse(sizes, &parsed, &err) == 0)
        r.cost = cloud_bound(job, parsed.max);
    else if (cloud_run(job, &r) < 0)
        return -1;
    printf("{\"start\": %d, \"cost\": %.4f, \"hours\": %.4f, \"late\": %s, \"spot\": %.3f, "
           "\"demand\": %.3f, \"changes\": %d, \"decisions\": %d}\n",
           job->first, r.cost / (job->nodes * job->hours), r.hours,
           r.done && r.hours <= job->deadline ? "false" : "true", r.spot_hours, r.demand_hours,
           r.changes, r.decisions);
    return 0;
}

int main(int argc, char **argv)
{
    static struct cloud_trace traces[CLOUD_ZONES_MAX];
    struct cloud_job job = {.nodes = 16,
                            .hours = 48,
                            .deadline = 60,
                            .boot = 360,
                            .pause = 2,
                            .spot_price = 0.92 / 3.06,
                            .mode = POOLS_DEADLINE,
                            .sizes = sizes};
    char *end;
    int rc = 0;

    for (int i = 1; i < argc; i++) {
        char *equals = strchr(argv[i], '=');

        if (equals != NULL) {
            *equals = '\0';
            if (set(&job, argv[i], equals + 1) < 0)
                return 2;
        } else if (job.zone_count == CLOUD_ZONES_MAX ||
                   read_trace(argv[i], &traces[job.zone_count]) < 0) {
            return 2;
        } else {
            job.zones[job.zone_count] = &traces[job.zone_count];
            job.zone_count++;
        }
    }
    for (const char *at = starts; rc == 0 && *at != '\0'; at = *end == ',' ? end + 1 : end) {
        job.first = (int)strtol(at, &end, 10);
        if (end == at)
            return 2;
        job.seed = (uint64_t)job.first + 1;
        rc = run(&job);
    }
    for (int i = 0; i < job.zone_count; i++)
        free(traces[i].nodes);
    return rc < 0 ? 1 : 0;
}
