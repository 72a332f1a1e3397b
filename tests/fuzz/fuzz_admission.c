/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fuzz target: what slurmctld decides on a job by its job control environment, in which a client
 * can send anything. Lines: numbers of the request, the comment, then entries of the environment
 * of the job, and behind an empty line of its base. */
#include "tests/fuzz/fuzz.h"

#include <stdbool.h>

#include "lib/admission.h"

#define LINES_MAX 64

static const char conf_text[] = "max_nodes = 100\nmax_grace = 1000\n"
                                "[pool low]\npartition = elastic\n[pool spare]\n";

static void check_base(const struct conf *conf, const struct admission_request *request)
{
    struct admission_changes changes;
    struct error err = {""};

    if (admission_base(conf, request, &changes, &err) != 0) {
        fuzz_check_refusal(&err);
        return;
    }
    if (admission_has_roles(&request->env)) {
        MUST(changes.min_nodes == ADMISSION_UNSET && changes.max_nodes == ADMISSION_UNSET);
    } else {
        MUST(changes.min_nodes >= 1 && changes.min_nodes <= 100);
        MUST(changes.min_nodes == changes.max_nodes);
    }
    admission_changes_clear(&changes);
}

static void check_extension(const struct conf *conf, const struct admission_request *request,
                            const struct admission_job *base)
{
    const struct admission_siblings siblings = {.node_count = 1, .nodes = "n3"};
    struct admission_changes changes;
    struct error err = {""};

    if (admission_extension(conf, request, base, &siblings, &changes, &err) != 0) {
        fuzz_check_refusal(&err);
        return;
    }
    MUST(base->uid == request->uid && base->running);
    if (admission_role(&base->env) == ADMISSION_BASE) {
        MUST(changes.partition != NULL);
        MUST(changes.counted >= 1);
        MUST(admission_has_roles(&base->env) ||
             (changes.min_nodes >= 1 && changes.min_nodes == changes.max_nodes));
    }
    admission_changes_clear(&changes);
}

/* The fields of line 1, separated by blanks; what is missing is not set. */
static void read_numbers(char *line, struct admission_request *request, struct admission_job *base)
{
    int *fields[] = {&request->min_nodes,      &request->max_nodes, &request->tasks,
                     &request->tasks_per_node, &request->min_cpus,  &request->requeue,
                     &request->time_limit,     &request->time_min,  &request->partition_nodes,
                     &base->node_count,        &base->minutes_left, &request->base_left};
    size_t i = 0;

    for (char *word; i < sizeof(fields) / sizeof(fields[0]) && (word = strsep(&line, " ")); i++) {
        long number = strtol(word, NULL, 10);

        /* Slurm's numbers are unsigned, or not set. */
        *fields[i] = number < 0 || number > INT32_MAX ? ADMISSION_UNSET : (int)number;
    }
    if (base->node_count < 0 || base->node_count > 65533)
        base->node_count = 2;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct conf *conf;
    char *text = fuzz_text(data, size), *lines[LINES_MAX + 1];
    int count = fuzz_lines(text, lines, LINES_MAX), own = 2;
    struct admission_request request = {.uid = 1000, .partition_name = "batch"};
    struct admission_job base = {.id = 12, .uid = 1000, .name = "train", .nodes = "n[1-2]"};

    if (conf == NULL)
        conf = conf_parse("elastic.conf", conf_text, strlen(conf_text), NULL);
    MUST(conf != NULL);
    request.min_nodes = request.max_nodes = request.tasks = request.tasks_per_node = -1;
    request.min_cpus = request.requeue = request.time_limit = request.time_min = -1;
    request.base_left = request.partition_nodes = base.minutes_left = base.node_count = -1;
    base.known = base.running = true;
    if (count > 0)
        read_numbers(lines[0], &request, &base);
    if (count > 1)
        request.comment = lines[1];
    while (own < count && lines[own][0] != '\0')
        own++;
    if (count > 2) {
        request.env = (struct admission_env){lines + 2, (size_t)(own - 2)};
        base.env = (struct admission_env){lines + own, (size_t)(count - own)};
    }
    base.role = admission_role(&base.env);
    switch (admission_role(&request.env)) {
    case ADMISSION_BASE:
        check_base(conf, &request);
        break;
    case ADMISSION_EXTENSION:
        base.id = admission_base_of(&request.env);
        check_extension(conf, &request, &base);
        break;
    case ADMISSION_RIGID:
        base.id = admission_marked_base(request.comment);
        if (admission_is_marked(request.comment))
            check_extension(conf, &request, &base);
        break;
    }
    free(text);
    return 0;
}
