/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the versions of Slurm tell in different ways (slurm_compat.h). */
#include "common/slurm_compat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/slurm_private.h"
#include "lib/slurm_words.h"

/* ---- srun ------------------------------------------------------------------------------------ */

bool slurm_client_srun_fails_with_node(void)
{
    return SLURM_SINCE(23, 2);
}

/* ---- reasons --------------------------------------------------------------------------------- */

#if SLURM_SINCE(24, 5)
/* libslurm exports it since 24.05. No public header has it. */
extern const char *slurm_job_state_reason_string(enum job_state_reason reason);

char *slurm_compat_reason(slurm_job_info_t *job)
{
    if (job->state_reason == WAIT_NO_REASON)
        return NULL;
    return slurm_client_copy(slurm_job_state_reason_string(job->state_reason));
}
#else
/* The only public function that knows the words prints the whole job, and takes the flags off its
 * memory fields as it does so. It is gone since 24.11. */
char *slurm_compat_reason(slurm_job_info_t *job)
{
    char *text = NULL, *word = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    if (out == NULL)
        return NULL;
    slurm_print_job_info(out, job, 1);
    fclose(out);
    if (text != NULL)
        word = slurm_words_value(text, "Reason");
    free(text);
    return word;
}
#endif

/* ---- the topology ---------------------------------------------------------------------------- */

#if SLURM_SINCE(23, 11)
/* The answer to slurm_load_topo() is one of several kinds since, which libslurm cannot read without
 * Slurm's topology plugins. scontrol can: it prints a line for each switch. */
#define SHOW_TOPOLOGY "scontrol --oneliner show topology"

static int append(struct slurm_switch **list, int *count, const char *line)
{
    char *name = slurm_words_value(line, "SwitchName"), *level = slurm_words_value(line, "Level");
    struct slurm_switch *longer;
    int rc = 0;

    /* Other topologies than trees have other lines. */
    if (name != NULL && level != NULL) {
        longer = realloc(*list, ((size_t)*count + 1) * sizeof(*longer));
        if (longer != NULL) {
            longer[(*count)++] = (struct slurm_switch){
                .name = name,
                .level = atoi(level),
                .nodes = slurm_words_value(line, "Nodes"),
                .switches = slurm_words_value(line, "Switches"),
            };
            *list = longer;
            name = NULL;
        } else {
            rc = -1;
        }
    }
    free(name);
    free(level);
    return rc;
}

int slurm_compat_switches(struct slurm_switch **list, int *count, struct error *err)
{
    FILE *lines = popen(SHOW_TOPOLOGY, "re");
    char *line = NULL;
    size_t size = 0;
    int rc = 0;

    while (lines != NULL && rc == 0 && getline(&line, &size, lines) > 0)
        rc = append(list, count, line);
    free(line);
    if (lines == NULL || pclose(lines) != 0 || rc < 0) {
        slurm_switch_free_list(*list, *count);
        *list = NULL;
        *count = 0;
        return error_set(err, "Slurm cannot tell its topology: '" SHOW_TOPOLOGY "' has failed");
    }
    return 0;
}
#else
int slurm_compat_switches(struct slurm_switch **list, int *count, struct error *err)
{
    topo_info_response_msg_t *msg = NULL;

    if (slurm_load_topo(&msg) != SLURM_SUCCESS)
        return slurm_client_failed(err, "tell its topology");
    *list = calloc((size_t)msg->record_count + 1, sizeof(**list));
    for (uint32_t i = 0; *list != NULL && i < msg->record_count; i++) {
        const topo_info_t *info = &msg->topo_array[i];

        (*list)[(*count)++] = (struct slurm_switch){
            .name = strdup(info->name != NULL ? info->name : ""),
            .level = info->level,
            .nodes = slurm_client_copy(info->nodes),
            .switches = slurm_client_copy(info->switches),
        };
    }
    slurm_free_topo_info_msg(msg);
    return *list != NULL ? 0 : error_set(err, "out of memory");
}
#endif
