/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The place of this task in its job, from the environment that Slurm gives it (place.h). */
#include "agent/place.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/node_room.h"
#include "lib/sizes.h"
#include "lib/tasks.h"
#include "lib/text.h"

static bool env_number(const char *name, long min, long max, long *value)
{
    const char *text = getenv(name);
    char *end;
    long number;

    if (text == NULL || text[0] == '\0')
        return false;
    errno = 0;
    number = strtol(text, &end, 10);
    if (errno != 0 || *end != '\0' || number < min || number > max)
        return false;
    *value = number;
    return true;
}

/* What some versions of Slurm give a task, and others do not. */
static void make_alike(void)
{
    const char *step = getenv("SLURM_STEP_ID");
    sigset_t children;

    /* Since 26.05 a batch script has the id of the batch step, which no srun has started. */
    if (step != NULL && step[0] == '-')
        unsetenv("SLURM_STEP_ID");
    /* 25.05, and 25.11.0, start tasks with this signal blocked: the end of no child would be
     * heard of. */
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_UNBLOCK, &children, NULL);
}

int place_read(struct place *place, struct error *err)
{
    long value;

    make_alike();
    if (!env_number("SLURM_JOB_ID", 1, UINT32_MAX, &value))
        return error_set(err, "not inside a Slurm job; submit one: sbatch --elastic=MIN:MAX with "
                              "`srun elasticrun python train.py` in its script");
    /* Its tasks have the number of its first component, and Slurm's cgroups that of their own. */
    if (getenv("SLURM_HET_SIZE") != NULL || getenv("SLURM_HET_JOB_ID") != NULL)
        return error_set(err, "elasticrun does not work in heterogeneous jobs; submit one job");
    place->job = (uint32_t)value;
    place->restarts = env_number("SLURM_RESTART_COUNT", 0, UINT32_MAX, &value) ? (uint32_t)value
                                                                               : 0;
    place->nodeid = env_number("SLURM_NODEID", 0, SIZES_NODES_MAX, &value) ? (int)value : 0;
    place->localid = env_number("SLURM_LOCALID", 0, INT_MAX, &value) ? (int)value : 0;
    place->node = getenv("SLURMD_NODENAME");
    place->in_step = getenv("SLURM_STEP_ID") != NULL;
    if (place->in_step)
        place->nodes = env_number("SLURM_STEP_NUM_NODES", 1, SIZES_NODES_MAX, &value) ? (int)value
                                                                                      : 1;
    else
        place->nodes = env_number("SLURM_JOB_NUM_NODES", 1, SIZES_NODES_MAX, &value) ? (int)value
                                                                                     : 1;
    if (place->node == NULL)
        return error_set(err, "SLURMD_NODENAME is not set; start elasticrun with srun: srun "
                              "elasticrun python train.py");
    if (!place->in_step && place->nodes > 1)
        return error_set(err,
                         "the job has %d nodes and elasticrun runs on one of them only; start it "
                         "with srun: srun elasticrun ...",
                         place->nodes);
    return 0;
}

static int count_gpus(void)
{
    char **gpus = node_gpus(environ);
    size_t count = strings_count(gpus);

    strings_free(gpus);
    return (int)count;
}

int place_slots(const struct place *place, const struct options *o, struct error *err)
{
    const char *tasks = getenv("SLURM_STEP_TASKS_PER_NODE");
    int gpus = count_gpus();
    long cpus = sysconf(_SC_NPROCESSORS_ONLN), value;

    if (o->extension)
        return env_number("ELASTIC_SLOTS", 1, 65536, &value) ? (int)value : 1;
    switch (o->nproc_kind) {
    case NPROC_NUMBER:
        return o->nproc;
    case NPROC_CPU:
        return env_number("SLURM_CPUS_ON_NODE", 1, 65536, &value) ? (int)value : (int)cpus;
    case NPROC_GPU:
        if (gpus == 0)
            error_set(
                err,
                "--nproc-per-node=gpu: this job has no GPUs; ask for them with --gpus-per-node");
        return gpus;
    case NPROC_AUTO:
        if (gpus > 0)
            return gpus;
        return env_number("SLURM_CPUS_ON_NODE", 1, 65536, &value) ? (int)value : (int)cpus;
    default:
        /* Where any node has several tasks, their numbers are meant: also a single one. */
        if (tasks_most(tasks) > 1 && tasks_of_node(tasks, place->nodeid) > 0)
            return tasks_of_node(tasks, place->nodeid);
        return gpus > 0 ? gpus : 1;
    }
}
