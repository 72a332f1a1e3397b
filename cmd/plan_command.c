/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic plan`: read and check a job file, and say what fits on the nodes of a partition. */
#include <stdlib.h>
#include <string.h>

#include "cmd/command.h"
#include "cmd/deadline.h"
#include "cmd/job_file.h"
#include "cmd/job_plan.h"
#include "cmd/terminal_text.h"
#include "common/slurm_client.h"

static bool is_in(const struct slurm_node *node, const char *partition)
{
    for (char **name = node->partitions; name != NULL && *name != NULL; name++)
        if (strcmp(*name, partition) == 0)
            return true;
    return false;
}

/* The nodes of a partition, as if nothing ran there. A new array; NULL with err. */
static struct slots_node *find_nodes(const char *partition, int *count, struct error *err)
{
    struct slurm_node *list = NULL;
    int all = 0;
    deadline_enter_slurm();
    int result = slurm_client_nodes(&list, &all, err);
    deadline_leave();
    if (result < 0)
        return NULL;
    struct slots_node *nodes = text_need(calloc((size_t)all + 1, sizeof(*nodes)));
    *count = 0;
    for (int i = 0; i < all; i++)
        if (is_in(&list[i], partition))
            nodes[(*count)++].free = (struct slots_size){
                .cpus = list[i].cpus,
                .gpus = job_plan_gpus(list[i].gres),
                .memory = (int64_t)list[i].memory,
            };
    slurm_node_free_list(list, all);
    if (*count > 0)
        return nodes;
    free(nodes);
    error_set(err, "no partition '%s' that is up has nodes; sinfo lists them",
              error_value(partition).text);
    return NULL;
}

static enum exit_status plan(const struct arguments *arguments, const struct roles *roles)
{
    json_object *object = job_plan(arguments->file, roles);
    enum exit_status status = STATUS_OK;
    struct error err;
    if (arguments->partition != NULL) {
        int count;
        struct slots_node *nodes = find_nodes(arguments->partition, &count, &err);
        if (nodes == NULL) {
            json_object_put(object);
            return failed(&err);
        }
        if (job_plan_add(object, roles, arguments->partition, nodes, count) < 0)
            status = STATUS_FAILED;
        free(nodes);
    }
    if (arguments->json) {
        print_json(object, false);
    } else {
        struct render_options options = {.width = terminal_width()};
        print_text(render_plan(object, &options));
        json_object_put(object);
    }
    return status;
}

static enum exit_status run(const struct arguments *arguments)
{
    struct error err;
    deadline_start();
    struct roles *roles = job_file_load(arguments->file, &err);
    if (roles == NULL)
        return failed(&err);
    enum exit_status status = plan(arguments, roles);
    roles_destroy(roles);
    return status;
}

const struct command plan_command = {
    .name = "plan",
    .summary = "check a job file, and say what of it fits",
    .help =
        "Usage: selastic plan FILE [--partition P] [--json]\n"
        "\n"
        "Check the job file of a job with roles, and print what it says and what it\n"
        "guarantees. Nothing is submitted.\n"
        "\n"
        "      --partition P  ask Slurm for the nodes of this partition. Print how many\n"
        "                     replicas fit there when nothing else runs, and the line for sbatch\n"
        "      --json         print JSON\n"
        "  -h, --help         print this text\n"
        "\n"
        "Exit status 1: the file is wrong, or what it guarantees does not fit.\n",
    .run = run,
};
