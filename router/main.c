/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elastic-router: drives a haproxy by the table of routes of a service (doc/internals/serve.md).
 *
 * It is not in the way of requests: those go through haproxy, which goes on when this process is
 * killed, and is found by the next one. */
#include "config.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>
#include <uv.h>

#include "common/conf_file.h"
#include "common/files.h"
#include "common/log.h"
#include "lib/json_text.h"
#include "lib/route_tokens.h"
#include "router/driver.h"
#include "router/home.h"
#include "router/haproxy.h"
#include "router/router_arguments.h"
#include "router/sources.h"
#include "router/status.h"
#include "router/watch.h"

#define FINISH_MS    30000
#define TOKENS_MS    2000
#define STATUS_MS    200
#define STATUS_BYTES (16 << 20)
#define PATH_SIZE    4096

enum status { STATUS_OK = 0, STATUS_FAILED = 1, STATUS_USAGE = 2 };

/* That end it. */
static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
#define SIGNALS (sizeof(signals) / sizeof(*signals))

struct router {
    uv_loop_t loop;
    struct router_arguments arguments;
    struct home home;
    struct conf *conf;
    char *program;
    char directory[PATH_SIZE], tokens_path[PATH_SIZE], id[512];
    struct driver *driver;
    struct sources *sources;
    struct watch *tokens;
    int token_count; /* -1: none are needed */
    uv_signal_t signals[SIGNALS];
    bool finishing;
    char *status; /* as it was written */
    uint64_t status_time;
};

static void print_help(void)
{
    printf(
        "Usage: %1$s SERVICE --listen=ADDRESS:PORT [OPTION]...\n"
        "       %1$s SERVICE --status [--json]\n"
        "\n"
        "Gives a service of models one address. haproxy takes the requests; the routes come from "
        "the\n"
        "leader of the service, whichever job that is. Ends with SIGTERM: requests that are there\n"
        "end first, for %2$d seconds at most.\n"
        "\n"
        "      --listen=ADDRESS:PORT  where clients ask; without ADDRESS everywhere\n"
        "      --tokens=FILE          one token a line; default: the file tokens of the service\n"
        "      --no-tokens            everybody who reaches the address may ask\n"
        "      --route-by=HOW         where requests name the model: json:$.model, header:NAME, "
        "or\n"
        "                             path:/v2/models/ (what is before it); default: as the "
        "leader\n"
        "                             says\n"
        "      --directory=DIR        of the service; default: ~/.slurm-elastic/services/SERVICE\n"
        "      --table=FILE           the routes come from this file, not from a leader\n"
        "      --run-dir=DIR          for files and sockets of haproxy on this machine\n"
        "      --wait                 wait for the directory of the service, and its tokens\n"
        "      --haproxy=PROGRAM      default: the one in PATH\n"
        "      --status               print what the router on this machine does\n"
        "      --json                 print it as JSON\n"
        "  -h, --help                 print this text\n"
        "\n"
        "Exit status: 0 success, 1 failed, 2 wrong command line.\n",
        program_invocation_short_name, FINISH_MS / 1000);
}

/* ---- what others see ------------------------------------------------------------------------- */

static void write_status(struct router *router, const struct driver_view *view)
{
    json_object *json;
    const char *text;
    struct error err = {""};

    if (uv_now(&router->loop) < router->status_time + STATUS_MS)
        return;
    json = status_json(view, router->arguments.service, router->arguments.listen,
                       sources_words(router->sources), router->token_count);
    text = json_object_to_json_string(json);
    if (router->status == NULL || strcmp(router->status, text) != 0) {
        router->status_time = uv_now(&router->loop);
        free(router->status);
        router->status = strdup(text);
        if (file_replace(router->home.status, text, strlen(text), 0600, &err) != 0)
            log_error("%s", err.text);
    }
    json_object_put(json);
}

static void on_looked(void *arg)
{
    struct router *router = arg;
    struct driver_view view;

    if (router->sources == NULL)
        return;
    sources_choose(
        router->sources); /* before the view: the driver's table may be another one then */
    view = driver_view(router->driver);
    sources_report(router->sources, &view);
    write_status(router, &view);
}

static void on_table(struct route_table *table, void *arg)
{
    struct router *router = arg;

    if (router->driver != NULL)
        driver_set_table(router->driver, table);
}

static void on_tokens(const char *text, size_t length, const char *why, void *arg)
{
    struct router *router = arg;
    struct error err = {""};
    char *digests;

    if (text == NULL) {
        log_error("tokens: %s", why);
        return;
    }
    digests = route_tokens_digests(text, length, &router->token_count, &err);
    if (digests == NULL)
        log_error("tokens: %s: %s", error_path(router->tokens_path).text, err.text);
    else if (router->driver != NULL)
        driver_set_tokens(router->driver, digests);
    free(digests);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* A signal that comes from here on is too late: libuv gives it back the effect of ending this
 * process, whose status would then say so. */
static void block_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < SIGNALS; i++)
        sigaddset(&set, signals[i]);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void close_all(struct router *router)
{
    block_signals();
    watch_destroy(router->tokens);
    sources_destroy(router->sources);
    driver_destroy(router->driver);
    router->tokens = NULL;
    router->sources = NULL;
    router->driver = NULL;
    for (size_t i = 0; i < SIGNALS; i++)
        if (router->signals[i].data != NULL)
            uv_close((uv_handle_t *)&router->signals[i], NULL);
    /* Other threads, as of libuv, do not block them. */
    for (size_t i = 0; i < SIGNALS; i++)
        signal(signals[i], SIG_IGN);
}

static void on_ended(void *arg)
{
    struct router *router = arg;

    home_clear(&router->home);
    close_all(router);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct router *router = handle->data;
    bool again = router->finishing;

    if (router->driver == NULL)
        return;
    log_info("signal %d: %s", number, again ? "haproxy is killed" : "haproxy ends its requests");
    router->finishing = true;
    driver_finish(router->driver, again ? 0 : FINISH_MS);
}

/* ---- the beginning --------------------------------------------------------------------------- */

static int find_directory(struct router *router, struct error *err)
{
    const struct router_arguments *a = &router->arguments;
    const char *home = getenv("HOME");
    struct stat st;

    if (a->table != NULL)
        return 0;
    if (a->directory != NULL)
        snprintf(router->directory, sizeof(router->directory), "%.4000s", a->directory);
    else
        snprintf(router->directory, sizeof(router->directory), "%.3000s/.slurm-elastic/services/%s",
                 home != NULL ? home : "", a->service);
    if (lstat(router->directory, &st) != 0)
        return error_set(err, "there is no service %s (%s: %s); its job makes it", a->service,
                         error_path(router->directory).text, strerror(errno));
    if (!S_ISDIR(st.st_mode) || st.st_uid != getuid() || (st.st_mode & 022) != 0)
        return error_set(err, "%s has to be a directory of yours that nobody else can write to",
                         error_path(router->directory).text);
    return 0;
}

static int find_tokens(struct router *router, struct error *err)
{
    const struct router_arguments *a = &router->arguments;

    router->token_count = -1;
    if (a->no_tokens)
        return 0;
    if (a->tokens != NULL)
        snprintf(router->tokens_path, sizeof(router->tokens_path), "%.4000s", a->tokens);
    else if (router->directory[0] != '\0')
        snprintf(router->tokens_path, sizeof(router->tokens_path), "%.4000s/tokens",
                 router->directory);
    if (router->tokens_path[0] == '\0' || access(router->tokens_path, F_OK) != 0)
        return error_set(err,
                         "%s%sthere are no tokens: give --tokens=FILE, or --no-tokens if everybody "
                         "may ask who reaches %s",
                         router->tokens_path, router->tokens_path[0] != '\0' ? ": " : "",
                         a->listen);
    router->token_count = 0;
    return 0;
}

/* Nothing has begun so far: a signal ends the program. */
static int find_service(struct router *router, struct error *err)
{
    for (bool told = false;; told = true) {
        errno = 0;
        if (find_directory(router, err) == 0 && find_tokens(router, err) == 0)
            return 0;
        if (!router->arguments.wait || errno != ENOENT)
            return -1;
        if (!told)
            log_info("%s; it is waited for", err->text);
        sleep(1);
    }
}

static int prepare(struct router *router, struct error *err)
{
    const struct router_arguments *a = &router->arguments;
    char host[256] = "";

    gethostname(host, sizeof(host) - 1);
    snprintf(router->id, sizeof(router->id), "%s/%s", host, a->listen);
    router->program = haproxy_program(a->haproxy, err);
    if (router->program == NULL || find_service(router, err) != 0)
        return -1;
    if (a->table == NULL && (router->conf = conf_file_load(NULL, err)) == NULL)
        return -1;
    return home_find(&router->home, a->run_dir, a->service, err) != 0
               ? -1
               : home_open(&router->home, a->service, err);
}

static int begin(struct router *router, struct error *err)
{
    const struct router_arguments *a = &router->arguments;
    struct driver_options driver = {.home = &router->home,
                                    .program = router->program,
                                    .listen = a->listen,
                                    .by = a->by,
                                    .what = a->what,
                                    .has_tokens = router->tokens_path[0] != '\0',
                                    .looked = on_looked,
                                    .ended = on_ended,
                                    .arg = router};
    struct sources_options sources = {.service = a->service,
                                      .id = router->id,
                                      .table = a->table,
                                      .directory = router->directory,
                                      .conf = router->conf,
                                      .table_changed = on_table,
                                      .arg = router};

    for (size_t i = 0; i < SIGNALS; i++) {
        uv_signal_init(&router->loop, &router->signals[i]);
        router->signals[i].data = router;
        uv_signal_start(&router->signals[i], on_signal, signals[i]);
    }
    router->driver = driver_create(&router->loop, &driver);
    router->sources = sources_create(&router->loop, &sources);
    if (driver.has_tokens)
        router->tokens = watch_create(&router->loop, router->tokens_path, ROUTE_TOKENS_TEXT_MAX,
                                      true, TOKENS_MS, on_tokens, router);
    if (router->driver == NULL || router->sources == NULL ||
        (driver.has_tokens && router->tokens == NULL))
        return error_set(err, "out of memory");
    return 0;
}

static int run(struct router *router, struct error *err)
{
    int status = prepare(router, err);

    uv_loop_init(&router->loop);
    if (status == 0) {
        status = begin(router, err);
        if (status != 0)
            close_all(router);
    }
    uv_run(&router->loop, UV_RUN_DEFAULT);
    uv_loop_close(&router->loop);
    home_close(&router->home);
    conf_destroy(router->conf);
    free(router->program);
    free(router->status);
    return status;
}

/* ---- what a router does ---------------------------------------------------------------------- */

static int show(const struct router_arguments *arguments, struct error *err)
{
    struct home home;
    json_object *json;
    char *text;
    size_t length;

    if (home_find(&home, arguments->run_dir, arguments->service, err) != 0)
        return -1;
    if (!home_is_held(&home))
        return error_set(err, "no router of service %s runs on this machine (%s)",
                         arguments->service, home.dir);
    text = file_read(home.status, STATUS_BYTES, &length, err);
    json = text != NULL ? json_text_parse(text, length, err) : NULL;
    free(text);
    if (json == NULL)
        return -1;
    if (arguments->json)
        puts(json_object_to_json_string_ext(json, JSON_C_TO_STRING_PRETTY));
    else
        status_print(json, stdout);
    json_object_put(json);
    return 0;
}

int main(int argc, char **argv)
{
    static struct router router = {.home.lock = -1};
    struct error err = {""};
    int status;

    setlocale(LC_CTYPE, "");
    umask(077);
    log_init(program_invocation_short_name);
    if (router_arguments_read(argc, argv, &router.arguments, &err) != 0) {
        log_error("%s", err.text);
        return STATUS_USAGE;
    }
    if (router.arguments.help) {
        print_help();
        return STATUS_OK;
    }
    if (sodium_init() < 0)
        return STATUS_FAILED;
    signal(SIGPIPE, SIG_IGN);
    status = router.arguments.status ? show(&router.arguments, &err) : run(&router, &err);
    if (status == 0 && fflush(stdout) == 0)
        return STATUS_OK;
    log_error("%s", status != 0 ? err.text : "cannot write the output");
    return STATUS_FAILED;
}
