/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elastic-mlflow beside the leader (mlflow_run.h).
 *
 * The process asks, the leader answers: the leader has no queue for it, and waits for nothing but,
 * once, for a new run's id, since workers inherit it. A process that hangs is never answered. */
#include "agent/leader/mlflow_run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/leader/leader_internal.h"
#include "agent/leader/planning.h"
#include "agent/paths.h"
#include "common/log.h"
#include "lib/json_get.h"

#define WAIT           3.0  /* seconds that the first world waits for a run's id */
#define PAUSE_FIRST_MS 1000 /* before the process is started again; twice as long each time */
#define PAUSE_MAX_MS   60000
#define THEIR_FD       3
#define ARGS_MAX       16

/* It outlives its place in struct mlflow_run until it is reaped and its link is closed. */
struct child {
    struct leader *leader;
    uv_process_t process;
    struct link *link;
    bool ended, linked;
};

struct mlflow_run {
    struct child *child; /* NULL: there is none */
    uv_timer_t again;
    int pause_ms;
    char id[POLICY_ID_MAX + 1]; /* "": not known */
    double since;               /* leader_now, of the first start */
    bool away;                  /* no id is to be waited for */
    bool closed;
};

static void start(struct leader *leader);

static bool is_wanted(const struct leader *leader)
{
    const char *uri = leader->options->policy->mlflow_tracking_uri;

    return uri[0] != '\0' && strcmp(uri, "none") != 0;
}

/* ---- its end --------------------------------------------------------------------------------- */

static void free_if_over(struct child *child)
{
    struct leader *leader = child->leader;

    if (!child->ended || child->linked)
        return;
    free(child);
    leader_handle_gone(leader);
}

static void on_again(uv_timer_t *timer)
{
    start(timer->data);
}

static void start_again(struct leader *leader)
{
    struct mlflow_run *own = leader->watches.mlflow;

    if (own->closed || leader_has_ended(leader))
        return;
    uv_timer_start(&own->again, on_again, (uint64_t)own->pause_ms, 0);
    own->pause_ms = 2 * own->pause_ms < PAUSE_MAX_MS ? 2 * own->pause_ms : PAUSE_MAX_MS;
}

static void on_process_closed(uv_handle_t *handle)
{
    struct child *child = handle->data;

    child->ended = true;
    free_if_over(child);
}

/* With status 0 it has nothing more to tell. */
static void on_exit_of_child(uv_process_t *process, int64_t code, int signal)
{
    struct child *child = process->data;
    struct leader *leader = child->leader;
    struct mlflow_run *own = leader->watches.mlflow;

    if (own->child == child) {
        own->child = NULL;
        own->away = true;
        if (child->link != NULL)
            link_close(child->link, "it has ended");
        if (code != 0 || signal != 0)
            start_again(leader);
        planning_later(leader, 0);
        leader_look_at_end(leader, 0);
    }
    uv_close((uv_handle_t *)process, on_process_closed);
}

static void on_closed(struct link *link, const char *why, void *arg)
{
    struct child *child = arg;

    (void)link;
    (void)why;
    child->link = NULL;
    child->linked = false;
    free_if_over(child);
}

/* ---- what it says ---------------------------------------------------------------------------- */

static void take_id(struct leader *leader, const char *id)
{
    struct mlflow_run *own = leader->watches.mlflow;

    if (id == NULL || strlen(id) > POLICY_ID_MAX || !text_made_of(id, "-_"))
        return;
    snprintf(own->id, sizeof(own->id), "%s", id);
    planning_later(leader, 0);
}

static void on_message(struct link *link, json_object *msg, void *arg)
{
    const struct child *child = arg;
    struct leader *leader = child->leader;
    struct mlflow_run *own = leader->watches.mlflow;
    const char *type = json_get_string(msg, "t");
    int64_t after;

    (void)link;
    if (own->child != child || type == NULL)
        return;
    if (strcmp(type, "run") == 0) {
        take_id(leader, json_get_string(msg, "run"));
    } else if (strcmp(type, "away") == 0) {
        own->away = true;
        planning_later(leader, 0);
    } else if (strcmp(type, "look") == 0 && json_get_int(msg, "after", 0, INT32_MAX, &after)) {
        leader->above->mlflow_asks(leader, (int)after);
    }
}

/* ---- its beginning --------------------------------------------------------------------------- */

static void add_option(const char **args, int *count, const char *name, const char *value)
{
    if (value == NULL || value[0] == '\0')
        return;
    args[(*count)++] = name;
    args[(*count)++] = value;
}

static int spawn(struct child *child, int theirs)
{
    const struct leader_options *o = child->leader->options;
    const struct policy *policy = o->policy;
    const char *args[ARGS_MAX] = {"elastic-mlflow"};
    char job[16];
    int count = 1;
    uv_stdio_container_t stdio[] = {
        {.flags = UV_IGNORE},
        {.flags = UV_INHERIT_FD, .data.fd = STDOUT_FILENO},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
        {.flags = UV_INHERIT_FD, .data.fd = theirs},
    };
    uv_process_options_t options = {
        .exit_cb = on_exit_of_child,
        .file = paths_of(PATHS_MLFLOW),
        .args = (char **)args,
        .stdio_count = THEIR_FD + 1,
        .stdio = stdio,
    };

    snprintf(job, sizeof(job), "%u", o->job);
    add_option(args, &count, "--job", job);
    add_option(args, &count, "--state-dir", o->state_dir);
    add_option(args, &count, "--uri", policy->mlflow_tracking_uri);
    add_option(args, &count, "--experiment", policy->mlflow_experiment_name);
    add_option(args, &count, "--run-name", policy->mlflow_run_name);
    add_option(args, &count, "--run-id", policy->mlflow_run_id);
    return uv_spawn(child->leader->loop, &child->process, &options);
}

static void cannot(struct leader *leader, const char *why)
{
    leader->watches.mlflow->away = true;
    log_error("job %u: elastic-mlflow cannot be run: %s; the job goes on without MLflow",
              leader->options->job, why);
}

static void start(struct leader *leader)
{
    static const struct link_handlers handlers = {.message = on_message, .closed = on_closed};
    struct mlflow_run *own = leader->watches.mlflow;
    struct child *child = calloc(1, sizeof(*child));
    struct error err = {""};
    int ends[2], rc;

    if (child == NULL || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        free(child);
        start_again(leader);
        return;
    }
    child->leader = leader;
    child->process.data = child;
    leader->open_handles++;
    rc = spawn(child, ends[1]);
    close(ends[1]);
    if (rc != 0) {
        close(ends[0]);
        uv_close((uv_handle_t *)&child->process, on_process_closed);
        cannot(leader, uv_strerror(rc));
        return;
    }
    own->child = child;
    child->link = link_adopt(leader->loop, ends[0], true, &handlers, child, &err);
    child->linked = child->link != NULL;
    if (child->link == NULL)
        uv_process_kill(&child->process, SIGKILL); /* on_exit_of_child goes on */
}

/* ---- what others ask ------------------------------------------------------------------------- */

double mlflow_run_awaited(const struct leader *leader)
{
    const struct mlflow_run *own = leader->watches.mlflow;
    double left = own->since + WAIT - leader_now(leader);

    return own->child != NULL && own->id[0] == '\0' && !own->away && left > 0 ? left : 0;
}

void mlflow_run_add(const struct leader *leader, json_object *msg)
{
    const struct mlflow_run *own = leader->watches.mlflow;

    if (own->id[0] == '\0')
        return;
    json_object_object_add(msg, "mlflow_uri",
                           json_object_new_string(leader->options->policy->mlflow_tracking_uri));
    json_object_object_add(msg, "mlflow_run", json_object_new_string(own->id));
}

void mlflow_run_say(struct leader *leader, json_object *msg)
{
    const struct child *child = leader->watches.mlflow->child;

    if (child != NULL && child->link != NULL)
        link_send(child->link, msg);
    else
        json_object_put(msg);
}

void mlflow_run_news(struct leader *leader)
{
    mlflow_run_say(leader, leader_message("news", -1));
}

bool mlflow_run_busy(const struct leader *leader)
{
    return leader->watches.mlflow->child != NULL;
}

void mlflow_run_drop(struct leader *leader)
{
    struct child *child = leader->watches.mlflow->child;

    leader->watches.mlflow->child = NULL;
    if (child == NULL)
        return;
    if (child->link != NULL)
        link_close(child->link, "the end");
    uv_process_kill(&child->process, SIGKILL);
}

/* ---- life ------------------------------------------------------------------------------------ */

void mlflow_run_open(struct leader *leader)
{
    struct mlflow_run *own = leader->watches.mlflow;

    leader_timer_init(leader, &own->again);
    own->since = leader_now(leader);
    if (is_wanted(leader))
        start(leader);
}

void mlflow_run_close(struct leader *leader)
{
    leader->watches.mlflow->closed = true;
    mlflow_run_drop(leader);
    leader_timer_close(&leader->watches.mlflow->again);
}

struct mlflow_run *mlflow_run_create(void)
{
    struct mlflow_run *own = calloc(1, sizeof(*own));

    if (own != NULL)
        own->pause_ms = PAUSE_FIRST_MS;
    return own;
}

void mlflow_run_destroy(struct mlflow_run *own)
{
    free(own);
}
