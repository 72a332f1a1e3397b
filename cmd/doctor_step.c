/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nodes are asked by a job step (doctor_step.h): one task on each runs `selastic doctor --here`. */
#include "cmd/doctor_step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/node_steps.h"
#include "cmd/shape.h"
#include "cmd/terminal_text.h"
#include "common/slurm_client.h"
#include "lib/doctor_nodes.h"
#include "lib/doctor_rules.h"
#include "lib/json_get.h"
#include "lib/text.h"

static int keep_answer(void *owner, const char *node, json_object *answer, struct error *err)
{
    (void)err;
    json_object_object_add(owner, node, json_object_get(answer));
    return 0;
}

static struct doctor_node node_of(const char *name, json_object *answers)
{
    json_object *answer = NULL, *ports = NULL;
    json_object_object_get_ex(answers, name, &answer);
    json_object_object_get_ex(answer, "ports", &ports);
    const char *release = json_get_string(answer, "release"),
               *conf = json_get_string(answer, "conf");
    return (struct doctor_node){
        .name = name,
        .answered = answer != NULL && release != NULL && conf != NULL,
        .release = release,
        .conf = conf,
        .time = field_double(answer, "time"),
        .sees_state = json_get_bool(answer, "sees", true),
        .listens = json_get_bool(ports, "listens", false),
        .peer = json_get_string(ports, "peer"),
        .port = (int)field_int(ports, "port", 0),
        .unreached = json_get_string(ports, "why"),
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

/* The tasks' answers, as NODE → object. -1 with err: there is none. */
static int ask(const struct arguments *arguments, char **names, int count, const char *token,
               json_object *answers, struct error *err)
{
    const char *const words[] = {"doctor",
                                 "--here",
                                 "--pieces",
                                 "--peers",
                                 arguments->hostlist,
                                 token != NULL ? "--token" : NULL,
                                 token,
                                 NULL};
    const struct node_question question = {"selastic-doctor", words};
    const struct node_step step = {arguments->partition, names, count};
    struct node_answers lines;
    node_answers_begin(&lines, names, count, keep_answer, answers);
    int rc = node_steps_run(&question, &step, 1, arguments->timeout, &lines, err);
    if (rc == 0 && json_object_object_length(answers) == 0) {
        struct node_answer *first = node_answers_find(&lines, names[0]);
        const char *reason = first != NULL && first->reason != NULL ? first->reason : "no answer";
        rc = error_set(err, "no node has answered: %s", reason);
    }
    node_answers_clear(&lines);
    return rc;
}

int doctor_step(const struct arguments *arguments, const struct doctor_facts *facts,
                const char *conf, struct doctor *doctor, struct error *err)
{
    char **names = slurm_client_expand(arguments->hostlist);
    int count = (int)strings_count(names);
    const struct doctor_node here = {
        .name = "this host", .answered = true, .release = facts->release, .conf = conf};
    double began = (double)time(NULL);
    json_object *answers = text_need(json_object_new_object());
    if (count == 0) {
        strings_free(names);
        json_object_put(answers);
        return error_set(err, "--nodes=%s names no nodes; write it as Slurm does (n[1-8],n12)",
                         error_value(arguments->hostlist).text);
    }
    char *token = make_token(facts->state_dir);
    int rc = ask(arguments, names, count, token, answers, err);
    if (token != NULL)
        unlink(token);
    if (rc == 0) {
        struct doctor_node *nodes = text_need(calloc((size_t)count, sizeof(*nodes)));
        for (int i = 0; i < count; i++) {
            nodes[i] = node_of(names[i], answers);
            add_findings(names[i], answers, doctor);
        }
        doctor_compare(&here, nodes, count, began, (double)time(NULL),
                       token != NULL ? facts->state_dir : NULL, doctor);
        free(nodes);
    }
    json_object_put(answers);
    free(token);
    strings_free(names);
    return rc;
}
