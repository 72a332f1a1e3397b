/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Scripts of the user before and after workers (train_script.h). */
#include "agent/member/train_script.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "agent/member/member_internal.h"
#include "common/log.h"
#include "lib/json_get.h"

/* Milliseconds. The leader takes a node for lost whose workers are not there after 60 s, or are not
 * gone 10 s after they were to be. */
#define BEFORE_MS 50000
#define AFTER_MS  8000
#define WORDS_MAX 1024

struct run {
    LIST_ENTRY(run) entry;
    uv_process_t process;
    uv_timer_t limit;
    struct member *member;
    bool before;
    int attempt;    /* of the workers that are to be started, or have ended */
    int generation; /* of their world */
    bool torn;      /* after: a snapshot may have to be flushed */
    bool dropped;   /* nobody waits for it any more */
    bool late;
    int open; /* handles */
};

struct train_script {
    char **before, **after; /* argv; NULL: none */
    LIST_HEAD(, run) runs;  /* a world may end while the script for the next one runs */
    struct run *run;        /* before workers, that messages wait for; NULL: none */
    json_object *waiting;   /* these messages, in order */
    bool holds;             /* there is a start among them */
    int passed;             /* attempt for which the script has ended well */
};

struct train_script *train_script_create(json_object *welcome)
{
    struct train_script *scripts = calloc(1, sizeof(*scripts));

    if (scripts == NULL)
        return NULL;
    scripts->before = json_get_strings(welcome, "pre_train", WORDS_MAX);
    scripts->after = json_get_strings(welcome, "post_train", WORDS_MAX);
    if ((scripts->before != NULL && scripts->before[0] != NULL) ||
        (scripts->after != NULL && scripts->after[0] != NULL))
        return scripts;
    train_script_destroy(scripts);
    return NULL;
}

/* With all that it has started. */
static void kill_all(const struct run *run)
{
    if (run->process.pid > 0)
        kill(-run->process.pid, SIGKILL);
}

static void drop(struct run *run)
{
    LIST_REMOVE(run, entry);
    run->dropped = true;
    kill_all(run);
}

/* The one before workers. */
static void drop_first(struct train_script *scripts)
{
    if (scripts->run != NULL)
        drop(scripts->run);
    scripts->run = NULL;
    scripts->holds = false;
    json_object_put(scripts->waiting);
    scripts->waiting = NULL;
}

void train_script_destroy(struct train_script *scripts)
{
    if (scripts == NULL)
        return;
    drop_first(scripts);
    while (!LIST_EMPTY(&scripts->runs))
        drop(LIST_FIRST(&scripts->runs));
    strings_free(scripts->before);
    strings_free(scripts->after);
    free(scripts);
}

/* ---- its end --------------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *handle)
{
    struct run *run = handle->data;
    struct member *m = run->member;

    if (--run->open > 0)
        return;
    free(run);
    member_piece_gone(m);
}

static void describe(const struct run *run, int64_t status, int number, struct error *err)
{
    const struct train_script *scripts = run->member->scripts;
    const char *name = run->before ? "--pre-train-script" : "--post-train-script";
    const struct error_value path = error_path((run->before ? scripts->before : scripts->after)[0]);

    if (run->late)
        error_set(err, "%s %s has not ended after %d s", name, path.text,
                  (run->before ? BEFORE_MS : AFTER_MS) / 1000);
    else if (number != 0)
        error_set(err, "%s %s was ended by signal %d", name, path.text, number);
    else
        error_set(err, "%s %s ended with exit code %d", name, path.text, (int)status);
}

static void go_on(struct member *m, const struct run *run, const struct error *err)
{
    struct train_script *scripts = m->scripts;
    json_object *waiting = scripts->waiting;

    scripts->waiting = NULL;
    scripts->holds = false;
    if (err == NULL)
        scripts->passed = run->attempt;
    for (size_t i = 0; i < json_object_array_length(waiting); i++) {
        json_object *msg = json_object_array_get_idx(waiting, i);
        const char *type = json_get_string(msg, "t");

        if (err == NULL || (strcmp(type, "start") != 0 && strcmp(type, "prepare") != 0)) {
            if (!member_pmix_waits(m, type, msg))
                member_handle(m, msg);
        } else if (strcmp(type, "start") == 0) {
            m->generation = run->generation;
            member_unstartable(m, run->attempt, err);
        } else {
            member_say_unprepared(m, run->attempt, err->text);
        }
    }
    json_object_put(waiting);
}

static void after_workers(struct member *m, const struct run *run, const struct error *err)
{
    if (err != NULL)
        member_say_failure(m, run->attempt, err);
    if (!run->torn || !flush_snapshot(m, run->attempt))
        member_send_drained(m, run->attempt);
}

static void on_ended(uv_process_t *process, int64_t status, int number)
{
    struct run *run = process->data;
    struct member *m = run->member;
    struct error err = {""};
    bool failed = status != 0 || number != 0;

    if (!run->dropped) {
        LIST_REMOVE(run, entry);
        if (m->scripts->run == run)
            m->scripts->run = NULL;
        if (failed) {
            describe(run, status, number, &err);
            log_error("%s: %s", m->options->node, err.text);
        }
        if (run->before)
            go_on(m, run, failed ? &err : NULL);
        else
            after_workers(m, run, failed ? &err : NULL);
    }
    uv_close((uv_handle_t *)&run->limit, on_closed);
    uv_close((uv_handle_t *)&run->process, on_closed);
}

static void on_late(uv_timer_t *timer)
{
    struct run *run = timer->data;

    run->late = true;
    kill_all(run);
}

/* ---- its beginning --------------------------------------------------------------------------- */

/* As that of the first worker of this node. */
static char **environment(struct member *m, const struct world *world, int index, int attempt)
{
    struct workers_options options;

    group_describe(m, &options);
    options.place.node_index = index;
    options.place.attempt = attempt;
    options.place.scale_config = "{}";
    return world_environment(world, &options.place, options.user_env, options.own_env);
}

static int start(struct run *run, const struct world *world, int index, struct error *err)
{
    struct member *m = run->member;
    char **argv = run->before ? m->scripts->before : m->scripts->after;
    char **env = environment(m, world, index, run->attempt);
    uv_stdio_container_t files[] = {
        {.flags = UV_IGNORE},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
    };
    uv_process_options_t options = {.file = argv[0],
                                    .args = argv,
                                    .env = env,
                                    .cwd = m->job.cwd,
                                    .flags = UV_PROCESS_DETACHED,
                                    .exit_cb = on_ended,
                                    .stdio = files,
                                    .stdio_count = 3};
    int rc;

    run->process.data = run->limit.data = run;
    run->open = 2;
    m->open_handles++;
    uv_timer_init(m->loop, &run->limit);
    rc = env != NULL ? uv_spawn(m->loop, &run->process, &options) : UV_ENOMEM;
    strings_free(env);
    if (rc == 0) {
        uv_timer_start(&run->limit, on_late, run->before ? BEFORE_MS : AFTER_MS, 0);
        LIST_INSERT_HEAD(&m->scripts->runs, run, entry);
        if (run->before)
            m->scripts->run = run;
        return 0;
    }
    error_set(err, "%s %s: %s", run->before ? "--pre-train-script" : "--post-train-script",
              error_path(argv[0]).text, uv_strerror(rc));
    log_error("%s: %s", m->options->node, err->text);
    uv_close((uv_handle_t *)&run->limit, on_closed);
    if (env != NULL)
        uv_close((uv_handle_t *)&run->process, on_closed);
    else
        run->open--;
    return -1;
}

static bool keep(struct train_script *scripts, const char *type, json_object *msg)
{
    scripts->holds = scripts->holds || strcmp(type, "start") == 0;
    json_object_array_add(scripts->waiting, json_object_get(msg));
    return true;
}

/* True: it waits, or the world cannot be started here, which has been said. */
static bool before(struct member *m, const char *type, json_object *msg)
{
    struct error err = {""};
    struct world *world = world_from_json(msg, &err);
    struct run *run = calloc(1, sizeof(*run));
    int64_t attempt, index;
    bool waits;

    if (run == NULL || world == NULL || !json_get_int(msg, "attempt", 1, INT32_MAX, &attempt) ||
        !json_get_int(msg, "node_index", 0, world->node_count - 1, &index)) {
        world_destroy(world);
        free(run);
        return false; /* what is wrong is said elsewhere */
    }
    *run = (struct run){
        .member = m, .before = true, .attempt = (int)attempt, .generation = world->generation};
    waits = start(run, world, (int)index, &err) == 0;
    world_destroy(world);
    m->scripts->waiting = json_object_new_array();
    keep(m->scripts, type, msg);
    if (!waits)
        go_on(m, run, &err); /* the handles free it later */
    return true;
}

/* Workers that wait at their gates, or live ones, have had theirs. */
static bool starts_workers(const struct member *m, const char *type, json_object *msg,
                           int64_t *attempt)
{
    int64_t started;

    if (!json_get_int(msg, "attempt", 1, INT32_MAX, attempt) || *attempt == m->scripts->passed)
        return false;
    if (strcmp(type, "prepare") == 0)
        return true;
    return strcmp(type, "start") == 0 && m->group == NULL &&
           !json_get_int(msg, "started", 1, INT32_MAX, &started) &&
           (m->next == NULL ||
            (!json_get_bool(msg, "live", false) && m->next->attempt != *attempt));
}

bool train_script_waits(struct member *m, const char *type, json_object *msg)
{
    struct train_script *scripts = m->scripts;
    bool is_before = scripts != NULL && scripts->run != NULL;
    int64_t attempt;

    if (scripts == NULL || scripts->before == NULL || type == NULL || m->ending ||
        strcmp(type, "finish") == 0 || strcmp(type, "release") == 0)
        return false;
    if (is_before && scripts->holds)
        return keep(scripts, type, msg);
    if (is_before && strcmp(type, "start") == 0 &&
        json_get_int(msg, "attempt", 1, INT32_MAX, &attempt) && attempt == scripts->run->attempt)
        return keep(scripts, type, msg);
    if (is_before && strcmp(type, "discard") == 0)
        drop_first(scripts); /* there is one next world at most */
    if (!starts_workers(m, type, msg, &attempt))
        return false;
    if (is_before)
        drop_first(scripts);
    return before(m, type, msg);
}

bool train_script_after(struct member *m, const struct group *group)
{
    struct error err = {""};
    struct run *run;
    int index = 0;

    if (m->scripts == NULL || m->scripts->after == NULL || m->ending ||
        (run = calloc(1, sizeof(*run))) == NULL)
        return false;
    while (index < group->world->node_count - 1 &&
           strcmp(group->world->nodes[index].name, m->options->node) != 0)
        index++;
    *run = (struct run){.member = m,
                        .attempt = group->started,
                        .generation = group->world->generation,
                        .torn = group->torn};
    if (start(run, group->world, index, &err) == 0)
        return true;
    member_say_failure(m, group->started, &err);
    return false;
}
