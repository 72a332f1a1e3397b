/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of a job whose leader cannot start (farewell.h).
 *
 * The other agents would look for the leader for a minute: that a task of the step has ended says
 * nothing to them. */
#include "agent/farewell.h"

#include <string.h>

#include <uv.h>

#include "agent/listen.h"
#include "common/link.h"
#include "common/log.h"
#include "lib/json_get.h"

struct scene {
    const struct farewell_options *options;
    struct link_server *server;
    uv_timer_t timer;
    int told;
};

static void end(struct scene *scene)
{
    if (scene->server == NULL)
        return;
    link_server_destroy(scene->server);
    scene->server = NULL;
    uv_close((uv_handle_t *)&scene->timer, NULL);
}

static void on_time(uv_timer_t *timer)
{
    end(timer->data);
}

static void on_open(struct link *link, void *arg)
{
    (void)link;
    (void)arg;
}

static void on_message(struct link *link, json_object *msg, void *arg)
{
    const char *type = json_get_string(msg, "t");
    struct scene *scene = arg;
    json_object *answer;

    if (type == NULL || strcmp(type, "join") != 0 || !json_get_bool(msg, "base", false))
        return;
    answer = json_object_new_object();
    json_object_object_add(answer, "t", json_object_new_string("finish"));
    json_object_object_add(answer, "code", json_object_new_int(1));
    json_object_object_add(answer, "well", json_object_new_boolean(false));
    link_send(link, answer);
    link_close(link, "the leader could not start");
    scene->told++;
}

static void on_closed(struct link *link, const char *why, void *arg)
{
    struct scene *scene = arg;

    (void)link;
    (void)why;
    if (scene->told >= scene->options->others)
        end(scene);
}

void farewell(const struct farewell_options *options)
{
    static const struct link_handlers handlers = {
        .open = on_open, .message = on_message, .closed = on_closed};
    struct link_server_options server = listen_options(options->conf, options->job,
                                                       options->restarts, options->state_dir, 0);
    struct scene scene = {.options = options};
    struct error err = {""};
    uv_loop_t loop;

    if (options->others < 1 || uv_loop_init(&loop) != 0)
        return;
    scene.server = link_server_create(&loop, &server, &handlers, &scene, &err);
    if (scene.server == NULL) {
        log_error("the other nodes cannot be told: %s", err.text);
    } else {
        uv_timer_init(&loop, &scene.timer);
        scene.timer.data = &scene;
        uv_timer_start(&scene.timer, on_time, (uint64_t)options->timeout_ms, 0);
        uv_run(&loop, UV_RUN_DEFAULT);
    }
    uv_loop_close(&loop);
}
