/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes the server of a shard load its models (loader.h).
 *
 *   timer ─► the file, in a thread ─► another list? ─► request ─► answer ─► request …
 *
 * One request is under way at a time. A new list waits for its answer. */
#include "agent/member/loader.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/member/http.h"
#include "common/files.h"
#include "common/log.h"
#include "lib/shard_commands.h"

#define FILE_MAX (64 << 20)

/* A look at the file. */
struct reading {
    uv_work_t work;
    struct loader *loader; /* NULL: nobody waits for it any more */
    char *path;
    struct stat seen, now;
    char *text; /* NULL: it is as it was, or cannot be read */
    size_t length;
    int rc;
    struct error err;
};

struct loader {
    uv_loop_t *loop;
    struct loader_options options;
    char *name, *file, *links, *address;
    void (*changed)(const struct model_load_state *state, json_object *sizes, void *arg);
    void *arg;
    struct model_load *load;
    struct http *http;
    uv_timer_t timer;
    struct reading *reading; /* NULL: none is under way */
    struct stat seen;        /* of the list that there is */
    char *list;              /* the next one, which waits for an answer */
    size_t list_length;
    char unlink[SHARD_NAME_MAX + 1]; /* the model that is being unloaded; "": none is */
    bool asking, destroyed, unreadable;
    int64_t told_version;
    int told_failures;
    json_object *told_sizes;
    int open; /* handles in the loop */
};

static void go_on(struct loader *l);

static void free_if_over(struct loader *l)
{
    if (l->open > 0)
        return;
    model_load_destroy(l->load);
    json_object_put(l->told_sizes);
    free(l->name);
    free(l->file);
    free(l->links);
    free(l->address);
    free(l->list);
    free(l);
}

/* ---- the server's directory ------------------------------------------------------------------ */

/* A link takes the place of the one before at once. The directory is the node's own. */
static int set_link(const struct loader *l, const char *name, const char *target)
{
    char path[PATH_MAX], next[PATH_MAX];

    if (snprintf(path, sizeof(path), "%s/%s", l->links, name) >= (int)sizeof(path) ||
        snprintf(next, sizeof(next), "%s/.next", l->links) >= (int)sizeof(next)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (unlink(next) != 0 && errno != ENOENT)
        return -1;
    return symlink(target, next) == 0 ? rename(next, path) : -1;
}

static void remove_link(const struct loader *l, const char *name)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof(path), "%s/%s", l->links, name) < (int)sizeof(path))
        unlink(path);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* False: the loader is not any more. */
static bool tell(struct loader *l)
{
    struct model_load_state state = model_load_state(l->load);

    json_object *sizes = model_load_sizes(l->load);
    bool sized = sizes != NULL && !json_object_equal(sizes, l->told_sizes);

    if (state.version == l->told_version && state.failures == l->told_failures && !sized) {
        json_object_put(sizes);
        return true;
    }
    if (state.failures > l->told_failures)
        log_error("%s: %s", l->name, state.why);
    l->told_version = state.version;
    l->told_failures = state.failures;
    json_object_put(l->told_sizes);
    l->told_sizes = sizes;
    l->changed(&state, sizes, l->arg);
    return !l->destroyed;
}

static double now_of(const struct loader *l)
{
    return (double)uv_now(l->loop) / 1000 + 1;
}

static int ask(struct loader *l, const struct model_load_request *request)
{
    bool six = strchr(l->address, ':') != NULL;
    struct http_request http = {.timeout = l->options.patience, .post = request->body};
    char *url;
    int rc;

    if (request->link != NULL && set_link(l, request->link, request->target) != 0) {
        log_error("%s: %s/%s: %s", l->name, l->links, request->link, strerror(errno));
        return -1;
    }
    if (asprintf(&url, "http://%s%s%s:%d%s", six ? "[" : "", l->address, six ? "]" : "",
                 l->options.port, request->path) < 0)
        return -1;
    http.url = url;
    rc = http_ask(l->http, &http);
    free(url);
    snprintf(l->unlink, sizeof(l->unlink), "%s", request->unlink != NULL ? request->unlink : "");
    return rc;
}

static void take_list(struct loader *l)
{
    struct error err = {""};

    if (l->list == NULL)
        return;
    if (model_load_want(l->load, l->list, l->list_length, &err) != 0)
        log_error("%s: %s: %s", l->name, l->file, err.text);
    else
        l->told_failures = 0;
    free(l->list);
    l->list = NULL;
}

static void answered(const struct http_answer *answer, void *arg)
{
    struct loader *l = arg;

    l->asking = false;
    if (l->unlink[0] != '\0' && answer->status >= 200 && answer->status < 300)
        remove_link(l, l->unlink);
    model_load_answered(l->load, now_of(l), answer->status, answer->text, answer->length);
    go_on(l);
}

static void go_on(struct loader *l)
{
    struct model_load_request request;

    if (l->asking || l->destroyed)
        return;
    take_list(l);
    while (!l->asking && model_load_next(l->load, now_of(l), &request)) {
        if (ask(l, &request) == 0)
            l->asking = true;
        else
            model_load_answered(l->load, now_of(l), 0, "", 0);
    }
    if (!l->asking)
        tell(l);
}

/* ---- the file -------------------------------------------------------------------------------- */

static bool same(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* It is replaced at once. What is between the two questions is read again at the next look. */
static void read_in_thread(uv_work_t *work)
{
    struct reading *reading = work->data;

    if (stat(reading->path, &reading->now) != 0)
        reading->rc = error_set(&reading->err, "%s: %s", error_path(reading->path).text,
                                strerror(errno));
    else if (!same(&reading->now, &reading->seen))
        reading->text = file_read(reading->path, FILE_MAX, &reading->length, &reading->err);
    if (reading->text == NULL && reading->err.text[0] != '\0')
        reading->rc = -1;
}

static void take_reading(struct loader *l, struct reading *reading)
{
    l->reading = NULL;
    if (reading->rc != 0 && !l->unreadable)
        log_error("%s: %s; its models stay as they are", l->name, reading->err.text);
    l->unreadable = reading->rc != 0;
    if (reading->text == NULL)
        return;
    free(l->list);
    l->list = reading->text;
    l->list_length = reading->length;
    l->seen = reading->now;
    reading->text = NULL;
    go_on(l);
}

static void after_reading(uv_work_t *work, int status)
{
    struct reading *reading = work->data;

    if (status != 0)
        reading->rc = error_set(&reading->err, "%s", uv_strerror(status));
    if (reading->loader != NULL)
        take_reading(reading->loader, reading);
    free(reading->text);
    free(reading->path);
    free(reading);
}

static void look_at_file(struct loader *l)
{
    struct reading *reading = calloc(1, sizeof(*reading));

    if (reading == NULL)
        return;
    reading->loader = l;
    reading->seen = l->seen;
    reading->work.data = reading;
    reading->path = strdup(l->file);
    if (reading->path == NULL ||
        uv_queue_work(l->loop, &reading->work, read_in_thread, after_reading) != 0) {
        free(reading->path);
        free(reading);
        return;
    }
    l->reading = reading;
}

static void on_timer(uv_timer_t *timer)
{
    struct loader *l = timer->data;

    if (l->reading == NULL)
        look_at_file(l);
    go_on(l);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int copy_strings(struct loader *l)
{
    l->name = strdup(l->options.name);
    l->file = strdup(l->options.file);
    l->address = strdup(l->options.address);
    l->links = l->options.links != NULL ? strdup(l->options.links) : NULL;
    return l->name != NULL && l->file != NULL && l->address != NULL &&
                   (l->links != NULL || l->options.links == NULL)
               ? 0
               : -1;
}

struct loader *loader_create(uv_loop_t *loop, const struct loader_options *options,
                             void (*changed)(const struct model_load_state *state,
                                             json_object *sizes, void *arg),
                             void *arg)
{
    struct loader *l = calloc(1, sizeof(*l));
    uint64_t every = (uint64_t)(options->every * 1000);

    if (l == NULL)
        return NULL;
    l->loop = loop;
    l->options = *options;
    l->changed = changed;
    l->arg = arg;
    l->load = model_load_create(options->api, options->patience);
    if (l->load == NULL || copy_strings(l) != 0 ||
        (l->http = http_create(loop, MODEL_LOAD_ANSWER_MAX, answered, l)) == NULL) {
        free_if_over(l);
        return NULL;
    }
    uv_timer_init(loop, &l->timer);
    l->timer.data = l;
    l->open = 2;
    uv_timer_start(&l->timer, on_timer, 0, every);
    return l;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct loader *l = handle->data;

    l->open--;
    free_if_over(l);
}

static void on_http_closed(void *arg)
{
    struct loader *l = arg;

    l->open--;
    free_if_over(l);
}

void loader_destroy(struct loader *l)
{
    if (l == NULL || l->destroyed)
        return;
    l->destroyed = true;
    if (l->reading != NULL)
        l->reading->loader = NULL;
    uv_close((uv_handle_t *)&l->timer, on_timer_closed);
    http_destroy(l->http, on_http_closed);
}
