/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a node has for replicas (node_room.h). */
#include "agent/node_room.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/number.h"
#include "lib/text.h"

#define GPUS_MAX 1024
#define CPUS_MAX 65536
#define AMD_GPUS "/dev/kfd" /* the device of ROCm's programs */

struct node_room {
    struct slots_size size;
    char **ids;
    bool *taken;
    bool cuda, rocr;
};

void node_machine_read(struct node_machine *machine)
{
    int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    *machine = (struct node_machine){
        .cpus = (int)sysconf(_SC_NPROCESSORS_ONLN),
        .memory = pages > 0 && page > 0 ? pages * page / (1 << 20) : 0,
        .amd = access(AMD_GPUS, F_OK) == 0,
    };
}

/* ---- the environment ------------------------------------------------------------------------- */

/* A list of GPUs; NULL: there are none. */
static const char *gpu_list(char *const *env, const char *name)
{
    const char *list = strings_filled_value(env, name);

    /* Slurm before 20.11 writes this for a job without GPUs. */
    return list != NULL && strcmp(list, "NoDevFiles") != 0 ? list : NULL;
}

static int number_of(char *const *env, const char *name, int max, int fallback)
{
    const char *text = strings_filled_value(env, name);
    int value;

    return text != NULL && number_parse(text, strlen(text), 1, max, &value) == 0 ? value : fallback;
}

static char **split(const char *list)
{
    size_t count = 1, at = 0;
    char **ids;

    for (const char *c = list; *c != '\0'; c++)
        count += *c == ',';
    ids = calloc(count + 1, sizeof(*ids));
    while (ids != NULL && at < count) {
        size_t len = strcspn(list, ",");

        ids[at] = strndup(list, len);
        if (ids[at++] == NULL) {
            strings_free(ids);
            return NULL;
        }
        list += len + (list[len] == ',');
    }
    return ids;
}

static char **numbered(int count)
{
    char **ids = calloc((size_t)count + 1, sizeof(*ids));

    for (int i = 0; ids != NULL && i < count; i++)
        if (asprintf(&ids[i], "%d", i) < 0) {
            ids[i] = NULL;
            strings_free(ids);
            return NULL;
        }
    return ids;
}

char **node_gpus(char *const *env)
{
    const char *list = gpu_list(env, "CUDA_VISIBLE_DEVICES");

    if (list == NULL)
        list = gpu_list(env, "ROCR_VISIBLE_DEVICES");
    if (list != NULL)
        return split(list);
    return numbered(number_of(env, "SLURM_GPUS_ON_NODE", GPUS_MAX, 0));
}

char **node_env_without_gpus(char *const *env)
{
    /* Names of lib/world_env.c that describe the GPUs of a node. */
    static const char *const names[] = {
        "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES", "SLURM_GPUS_ON_NODE",
        "SLURM_JOB_GPUS",       "SLURM_STEP_GPUS",    "ZE_AFFINITY_MASK",     NULL,
    };

    return strings_without(env, names);
}

/* ---- the room -------------------------------------------------------------------------------- */

static int64_t memory_of(char *const *env, const struct node_machine *machine, int cpus)
{
    int64_t memory = number_of(env, "SLURM_MEM_PER_NODE", INT_MAX, 0);

    if (memory == 0) /* so, too, of a job with all memory of the node */
        memory = (int64_t)cpus * number_of(env, "SLURM_MEM_PER_CPU", INT_MAX, 0);
    return memory > 0 ? memory : machine->memory;
}

struct node_room *node_room_create(char *const *env, const struct node_machine *machine)
{
    struct node_room *room = calloc(1, sizeof(*room));
    bool cuda = gpu_list(env, "CUDA_VISIBLE_DEVICES") != NULL;
    bool rocr = gpu_list(env, "ROCR_VISIBLE_DEVICES") != NULL;

    if (room == NULL || (room->ids = node_gpus(env)) == NULL) {
        free(room);
        return NULL;
    }
    room->size.gpus = (int)strings_count(room->ids);
    room->taken = calloc((size_t)room->size.gpus + 1, sizeof(*room->taken));
    if (room->taken == NULL) {
        node_room_destroy(room);
        return NULL;
    }
    room->size.cpus = number_of(env, "SLURM_CPUS_ON_NODE", CPUS_MAX, machine->cpus);
    room->size.memory = memory_of(env, machine, room->size.cpus);
    /* Where Slurm has not been told whose GPUs they are, it sets both. */
    room->rocr = room->size.gpus > 0 && (cuda ? rocr && machine->amd : rocr || machine->amd);
    room->cuda = room->size.gpus > 0 && !room->rocr;
    return room;
}

void node_room_destroy(struct node_room *room)
{
    if (room == NULL)
        return;
    strings_free(room->ids);
    free(room->taken);
    free(room);
}

void node_room_size(const struct node_room *room, struct slots_size *size)
{
    *size = room->size;
}

char *node_room_take(struct node_room *room, int gpus, struct error *err)
{
    char *list = NULL;
    size_t size = 0;
    int left = 0, given = 0;
    FILE *out;

    for (int i = 0; i < room->size.gpus; i++)
        left += !room->taken[i];
    if (left < gpus) {
        error_set(err, "it needs %d GPU%s, and %d of the %d of this node are free", gpus,
                  gpus == 1 ? "" : "s", left, room->size.gpus);
        return NULL;
    }
    out = open_memstream(&list, &size);
    if (out == NULL) {
        error_set(err, "out of memory");
        return NULL;
    }
    for (int i = 0; given < gpus; i++) {
        if (room->taken[i])
            continue;
        room->taken[i] = true;
        fprintf(out, "%s%s", given++ > 0 ? "," : "", room->ids[i]);
    }
    fclose(out);
    return list;
}

void node_room_give(struct node_room *room, const char *ids)
{
    while (ids != NULL && *ids != '\0') {
        size_t len = strcspn(ids, ",");

        for (int i = 0; i < room->size.gpus; i++)
            if (strlen(room->ids[i]) == len && strncmp(room->ids[i], ids, len) == 0)
                room->taken[i] = false;
        ids += len + (ids[len] == ',');
    }
}

bool node_room_cuda(const struct node_room *room)
{
    return room->cuda;
}

bool node_room_rocr(const struct node_room *room)
{
    return room->rocr;
}
