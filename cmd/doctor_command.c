/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic doctor`: what is wrong with a site, on this host or on some nodes as well. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/doctor_job.h"
#include "cmd/doctor_look.h"
#include "cmd/doctor_ports.h"
#include "cmd/doctor_step.h"
#include "cmd/node_answers.h"
#include "cmd/shape.h"
#include "cmd/terminal_text.h"
#include "common/conf_file.h"
#include "common/files.h"
#include "common/release_own.h"
#include "lib/json_get.h"

#define CONF_MAX ((size_t)1 << 20)

/* FNV-1a: only to see that two files are the same. */
static void hash_of(const char *path, char hash[17])
{
    uint64_t sum = 14695981039346656037u;
    size_t length = 0;
    char *text = path != NULL ? file_read(path, CONF_MAX, &length, NULL) : NULL;
    for (size_t i = 0; i < length && text != NULL; i++)
        sum = (sum ^ (unsigned char)text[i]) * 1099511628211u;
    hash[0] = '\0';
    if (text != NULL)
        snprintf(hash, 17, "%016llx", (unsigned long long)sum);
    free(text);
}

static json_object *findings_json(const struct doctor *doctor)
{
    static const char *const levels[] = {[DOCTOR_NOTE] = "note", [DOCTOR_MISTAKE] = "mistake"};
    json_object *list = text_need(json_object_new_array());
    for (int i = 0; i < doctor->count; i++) {
        const struct doctor_finding *f = &doctor->findings[i];
        json_object *object = text_need(json_object_new_object());
        json_object_object_add(object, "id", json_from_string(f->id));
        json_object_object_add(object, "level", json_from_string(levels[f->level]));
        json_object_object_add(object, "what", json_from_string(f->what));
        json_object_object_add(object, "why", json_from_string(f->why));
        json_object_object_add(object, "remedy", json_from_string(f->remedy));
        json_object_array_add(list, object);
    }
    return list;
}

static void host_name(char name[256])
{
    if (gethostname(name, 256) != 0)
        name[0] = '\0';
    name[255] = '\0';
}

static json_object *ports_json(const char *peers, const struct conf *conf)
{
    json_object *object;
    struct doctor_ports ports = {.peer = NULL};
    if (peers == NULL || conf == NULL)
        return NULL;
    doctor_ports_try(peers, conf, &ports);
    object = text_need(json_object_new_object());
    json_object_object_add(object, "listens", json_object_new_boolean(ports.listens));
    json_object_object_add(object, "peer",
                           ports.peer != NULL ? json_from_string(ports.peer) : NULL);
    json_object_object_add(object, "port", json_object_new_int(ports.port));
    json_object_object_add(object, "why", ports.why != NULL ? json_from_string(ports.why) : NULL);
    doctor_ports_clear(&ports);
    return object;
}

/* What doctor_step.c reads from each node is the same. */
static json_object *report_json(const struct doctor *doctor, const struct doctor_facts *facts,
                                const struct arguments *arguments)
{
    const char *token = arguments->token;
    json_object *report = text_need(json_object_new_object());
    char host[256], conf[17];
    hash_of(facts->conf_path, conf);
    host_name(host);
    json_object_object_add(report, "host", json_from_string(host));
    json_object_object_add(report, "release", json_from_string(release_own()->name));
    json_object_object_add(report, "conf", json_from_string(conf));
    json_object_object_add(report, "time", shape_double((double)time(NULL)));
    if (token != NULL)
        json_object_object_add(report, "sees", json_object_new_boolean(access(token, F_OK) == 0));
    if (arguments->peers != NULL)
        json_object_object_add(report, "ports", ports_json(arguments->peers, facts->conf));
    json_object_object_add(report, "mistakes", json_object_new_int(doctor_mistakes(doctor)));
    json_object_object_add(report, "findings", findings_json(doctor));
    return report;
}

static void print_clean(const char *prefix, const char *text)
{
    char *clean = text_clean(text, 0);
    printf("%s%s\n", prefix, clean);
    free(clean);
}

static void print_findings(const struct doctor *doctor)
{
    int mistakes = doctor_mistakes(doctor);
    for (int level = DOCTOR_MISTAKE; level >= DOCTOR_NOTE; level--)
        for (int i = 0; i < doctor->count; i++) {
            const struct doctor_finding *f = &doctor->findings[i];
            if ((int)f->level != level)
                continue;
            print_clean(level == DOCTOR_MISTAKE ? "mistake  " : "note     ", f->what);
            print_clean("         why: ", f->why);
            print_clean("         ->   ", f->remedy);
        }
    if (mistakes > 0)
        printf("mistakes: %d\n", mistakes);
    else
        puts("no mistakes");
}

static void print_pieces(const struct doctor *doctor, const struct doctor_facts *facts,
                         const struct arguments *arguments)
{
    json_object *report = report_json(doctor, facts, arguments);
    char *node = node_answer_own_name();
    node_answer_print(stdout, node, report);
    free(node);
    json_object_put(report);
}

static enum exit_status run_site(const struct arguments *arguments)
{
    struct doctor_look *look = doctor_look_create();
    const struct doctor_facts *facts = doctor_look_facts(look);
    struct doctor doctor;
    struct error err;
    int rc = 0;
    doctor_examine(facts, arguments->here, &doctor);
    if (arguments->hostlist != NULL) {
        char conf[17];
        hash_of(facts->conf_path, conf);
        rc = doctor_step(arguments, facts, conf, &doctor, &err);
    }
    if (rc == 0 && arguments->pieces)
        print_pieces(&doctor, facts, arguments);
    else if (rc == 0 && arguments->json)
        print_json(report_json(&doctor, facts, arguments), arguments->here);
    else if (rc == 0)
        print_findings(&doctor);
    doctor_look_destroy(look);
    if (rc < 0)
        return failed(&err);
    return doctor_mistakes(&doctor) > 0 ? STATUS_FAILED : STATUS_OK;
}

static enum exit_status run(const struct arguments *arguments)
{
    return arguments->job_id != 0 ? doctor_job(arguments) : run_site(arguments);
}

const struct command doctor_command = {
    .name = "doctor",
    .summary = "find what is wrong with a site, or say what keeps a job from growing",
    .help =
        "Usage: selastic doctor [--here [--token FILE] [--peers LIST] [--pieces]] [--json]\n"
        "       selastic doctor --nodes LIST [--partition P] [--timeout S] [--json]\n"
        "       selastic doctor --job JOB [--json]\n"
        "\n"
        "Look whether slurm-elastic works on this host with this Slurm, and change nothing.\n"
        "Each finding says what is wrong, why it matters, and the line to change. Run it on\n"
        "the host of slurmctld, on a login node and on a compute node, as root or as any\n"
        "user: root sees more of files, a user his own limits.\n"
        "\n"
        "      --here         only this host: say nothing of Slurm's configuration; with --json\n"
        "                     on one line\n"
        "      --token FILE   with --here: say also whether FILE is there (--nodes uses it)\n"
        "      --peers LIST   with --here in a job step on these nodes: connect to the next one\n"
        "                     (--nodes uses it)\n"
        "      --pieces       with --here: print short lines, in the form that --nodes reads\n"
        "      --nodes LIST   ask these nodes as well, by a job step: are they like this host?\n"
        "                     and can they connect to each other?\n"
        "      --partition P  run that step in this partition\n"
        "      --timeout S    wait S seconds for the nodes (default 60)\n"
        "      --job JOB      five lines: the size of a job, why, why not more, and what has\n"
        "                     happened last\n"
        "      --json         print JSON\n"
        "  -h, --help         print this text\n"
        "\n"
        "Exit status: 0 no mistakes, 1 there are some (notes are none).\n",
    .run = run,
};
