/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A leader that says what it is told to: `fake_leader ANSWERS.json [silent|break]`, run in a job
 * by srun.
 *
 * ANSWERS.json holds an answer for each request by its type, or a list of answers: one after the
 * other, the last one from then on. Requests are printed, one a line.
 * silent: authenticates whoever asks, and says nothing more. break: closes the connection
 * instead of answering. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/conf_file.h"
#include "common/link.h"
#include "common/log.h"
#include "lib/json_get.h"

struct leader {
    json_object *answers;
    const char *mode;
};

static void on_open(struct link *link, void *arg)
{
}

static json_object *next_of(json_object *answers)
{
    json_object *first;
    if (!json_object_is_type(answers, json_type_array))
        return json_object_get(answers);
    first = json_object_get(json_object_array_get_idx(answers, 0));
    if (json_object_array_length(answers) > 1)
        json_object_array_del_idx(answers, 0, 1);
    return first;
}

static void on_message(struct link *link, json_object *msg, void *arg)
{
    const struct leader *leader = arg;
    const char *type = json_get_string(msg, "t");
    json_object *answer = NULL;
    puts(json_object_to_json_string_ext(msg, JSON_C_TO_STRING_PLAIN));
    fflush(stdout);
    if (strcmp(leader->mode, "break") == 0)
        link_close(link, "as told");
    else if (strcmp(leader->mode, "silent") != 0 && type &&
             json_object_object_get_ex(leader->answers, type, &answer))
        link_send(link, next_of(answer));
}

static void on_closed(struct link *link, const char *why, void *arg)
{
}

static uint32_t number_from_environment(const char *name)
{
    const char *text = getenv(name);
    return text ? (uint32_t)strtoul(text, NULL, 10) : 0;
}

int main(int argc, char **argv)
{
    static const struct link_handlers handlers = {
        .open = on_open, .message = on_message, .closed = on_closed};
    struct leader leader = {.mode = argc > 2 ? argv[2] : ""};
    struct error err = {"usage: fake_leader ANSWERS.json [silent|break]"};
    struct conf *conf = conf_file_load(NULL, &err);
    uv_loop_t loop;
    log_init("fake_leader");
    leader.answers = argc > 1 ? json_object_from_file(argv[1]) : NULL;
    if (conf == NULL || leader.answers == NULL || uv_loop_init(&loop) != 0) {
        log_error("%s", err.text);
        return 1;
    }
    struct link_server_options options = {
        .job_id = number_from_environment("SLURM_JOB_ID"),
        .restarts = number_from_environment("SLURM_RESTART_COUNT"),
        .munge_socket = conf->munge_socket,
        .port_first = conf->port_first,
        .port_last = conf->port_last,
    };
    struct link_server *server = link_server_create(&loop, &options, &handlers, &leader, &err);
    if (server == NULL) {
        log_error("%s", err.text);
        return 1;
    }
    printf("listening on %d\n", link_server_port(server));
    fflush(stdout);
    return uv_run(&loop, UV_RUN_DEFAULT);
}
