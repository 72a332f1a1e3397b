/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nodes are asked by a job step (doctor_step.h): one task on each runs `selastic doctor --here`. */
#include "cmd/doctor_step.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/shape.h"
#include "cmd/terminal_text.h"
#include "common/program.h"
#include "common/slurm_client.h"
#include "lib/doctor_nodes.h"
#include "lib/doctor_rules.h"
#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/text.h"

#define ANSWER_MAX ((size_t)16 << 20)
#define LABEL_MAX  256

/* The lines that nodes have printed, as NODE → object. srun --label cannot be used: it numbers
 * tasks. */
static json_object *read_answers(const char *text)
{
    json_object *answers = text_need(json_object_new_object());
    for (const char *line = text; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        const char *blank = memchr(line, ' ', length);
        if (blank != NULL && blank - line < LABEL_MAX) {
            char *name = text_need(strndup(line, (size_t)(blank - line)));
            json_object *answer = json_text_parse(blank + 1, length - (size_t)(blank + 1 - line),
                                                  NULL);
            if (answer != NULL)
                json_object_object_add(answers, name, answer);
            free(name);
        }
        line += length + (line[length] == '\n');
    }
    return answers;
}

static struct doctor_node node_of(const char *name, json_object *answers)
{
    json_object *answer = NULL;
    json_object_object_get_ex(answers, name, &answer);
    const char *release = json_get_string(answer, "release"),
               *conf = json_get_string(answer, "conf");
    return (struct doctor_node){
        .name = name,
        .answered = answer != NULL && release != NULL && conf != NULL,
        .release = release,
        .conf = conf,
        .time = field_double(answer, "time"),
        .sees_state = json_get_bool(answer, "sees", true),
    };
}

/* A mistake of one node, with its name. What several have is said for each. */
static void add_findings(const char *name, json_object *answers, struct doctor *doctor)
{
    json_object *answer = NULL;
    json_object_object_get_ex(answers, name, &answer);
    json_object *findings = field_array(answer, "findings");
    for (size_t i = 0; i < field_count(answer, "findings"); i++) {
        json_object *one = json_object_array_get_idx(findings, i);
        const char *what = json_get_string(one, "what"), *level = json_get_string(one, "level");
        const char *remedy = json_get_string(one, "remedy");
        if (what == NULL || level == NULL || strcmp(level, "mistake") != 0)
            continue;
        struct doctor_finding *f = doctor_add(
            doctor, DOCTOR_MISTAKE, "nodes-mistake",
            "what is wrong on a node hits the jobs that run there");
        doctor_what(f, "%s: %s", name, what);
        doctor_remedy(f, "%s", remedy != NULL ? remedy : "selastic doctor on the node says it");
    }
}

/* A file in the directory of job states, which the nodes look for. NULL: none can be made. The
 * directory is not made: as root's it would keep users from making theirs in it. */
static char *make_token(const char *state_dir)
{
    char *path = NULL, *slash;
    if (state_dir == NULL)
        return NULL;
    char *dir = text_need(strdup(state_dir));
    if ((slash = strrchr(dir, '/')) != NULL && slash != dir)
        *slash = '\0';
    if (asprintf(&path, "%s/.doctor.XXXXXX", dir) < 0)
        path = NULL;
    int fd = mkstemp(text_need(path));
    free(dir);
    if (fd < 0) {
        free(path);
        return NULL;
    }
    close(fd);
    return path;
}

/* Each task says its node's name first: a step's tasks print into one stream. */
static int run_step(const struct arguments *arguments, int count, const char *token, char **text,
                    struct error *err)
{
    static const char script[] = "answer=$(\"$1\" doctor --json --here ${2:+--token \"$2\"})\n"
                                 "printf '%s %s\\n' \"$SLURMD_NODENAME\" \"$answer\"";
    char self[PATH_MAX], immediate[32], nodes[32], tasks[32], list[PATH_MAX], partition[256],
        minutes[32];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[length > 0 ? length : 0] = '\0';
    /* So that no job is left in the queue. */
    snprintf(immediate, sizeof(immediate), "--immediate=%d", arguments->timeout);
    snprintf(nodes, sizeof(nodes), "--nodes=%d", count);
    snprintf(tasks, sizeof(tasks), "--ntasks=%d", count);
    snprintf(list, sizeof(list), "--nodelist=%s", arguments->hostlist);
    snprintf(minutes, sizeof(minutes), "--time=%d", arguments->timeout / 60 + 2);
    snprintf(partition, sizeof(partition), "--partition=%s",
             arguments->partition != NULL ? arguments->partition : "");
    char *const argv[] = {"srun",
                          "--quiet",
                          "--job-name=selastic-doctor",
                          nodes,
                          tasks,
                          "--ntasks-per-node=1",
                          "--cpus-per-task=1",
                          immediate,
                          "--chdir=/",
                          list,
                          minutes,
                          arguments->partition != NULL ? partition : "--quiet",
                          "/bin/sh",
                          "-c",
                          (char *)script,
                          "sh",
                          self,
                          token != NULL ? (char *)token : "",
                          NULL};
    int rc = program_output(argv, arguments->timeout * 1000, ANSWER_MAX, text, err);
    /* A node with mistakes has status 1, and an answer. */
    if (rc > 0 && *text != NULL && (*text)[0] == '\0') {
        free(*text);
        *text = NULL;
        return -1;
    }
    return rc < 0 ? -1 : 0;
}

int doctor_step(const struct arguments *arguments, const struct doctor_facts *facts,
                const char *conf, struct doctor *doctor, struct error *err)
{
    char **names = slurm_client_expand(arguments->hostlist);
    int count = (int)strings_count(names);
    const struct doctor_node here = {
        .name = "this host", .answered = true, .release = facts->release, .conf = conf};
    double began = (double)time(NULL);
    char *text = NULL, *token;
    if (count == 0) {
        strings_free(names);
        return error_set(err, "--nodes=%s names no nodes; write it as Slurm does (n[1-8],n12)",
                         error_value(arguments->hostlist).text);
    }
    token = make_token(facts->state_dir);
    int rc = run_step(arguments, count, token, &text, err);
    if (token != NULL)
        unlink(token);
    if (rc == 0) {
        json_object *answers = read_answers(text);
        struct doctor_node *nodes = text_need(calloc((size_t)count, sizeof(*nodes)));
        for (int i = 0; i < count; i++) {
            nodes[i] = node_of(names[i], answers);
            add_findings(names[i], answers, doctor);
        }
        doctor_compare(&here, nodes, count, began, (double)time(NULL),
                       token != NULL ? facts->state_dir : NULL, doctor);
        free(nodes);
        json_object_put(answers);
    }
    free(token);
    free(text);
    strings_free(names);
    return rc;
}
