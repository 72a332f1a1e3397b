/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elastic-mlflow: tells an MLflow server of an elastic job.
 *
 * The leader starts it, with a socket over which it is asked what is new, and told which run there
 * is (doc/internals/mlflow.md). It asks the leader at its own pace: a server that is away or slow
 * keeps nobody but this process. It ends with the leader. */
#include "config.h"

#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include <curl/curl.h>
#include <sodium.h>

#include "agent/member/http.h"
#include "common/files.h"
#include "common/link.h"
#include "common/log.h"
#include "lib/job_record.h"
#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/mlflow.h"
#include "lib/number.h"
#include "lib/text.h"

#define AGENT_FD   3
#define LOOK_MS    10000
#define ANSWER_S   10.0
#define END_MS     3000 /* for what is left when the job has ended */
#define KEPT_FILE  "mlflow.json"
#define KEPT_MAX   4096
#define HEADER_MAX 8192

struct arguments {
    int job;
    const char *uri, *experiment, *run_name, *run_id, *state_dir; /* NULL: not given */
};

struct process {
    uv_loop_t loop;
    struct arguments arguments;
    struct mlflow *run;
    struct http *http;
    struct link *leader; /* NULL: gone */
    uv_timer_t look, wake, limit;
    char *header; /* who we are, for the server; NULL: it asks nobody */
    char *url;    /* of the request under way */
    bool asking;  /* the server */
    bool looking; /* the leader is asked */
    bool ending, over;
    char kept[80];  /* the run that mlflow.json has */
    char told[80];  /* … that the leader knows */
    bool confirmed; /* … and that the server has */
    char said[768]; /* the trouble that has been told of */
};

static void go_on(struct process *p);

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_REALTIME, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* ---- command line ---------------------------------------------------------------------------- */

static const struct option long_options[] = {
    {"job", required_argument, NULL, 'j'},
    {"uri", required_argument, NULL, 'u'},
    {"run-id", required_argument, NULL, 'i'},
    {"experiment", required_argument, NULL, 'e'},
    {"run-name", required_argument, NULL, 'n'},
    {"state-dir", required_argument, NULL, 's'},
    {NULL, 0, NULL, 0},
};

static int read_option(struct arguments *a, int option)
{
    switch (option) {
    case 'j':
        return number_parse(optarg, strlen(optarg), 1, INT32_MAX, &a->job);
    case 'u':
        a->uri = optarg;
        return 0;
    case 'i':
        a->run_id = optarg;
        return 0;
    case 'e':
        a->experiment = optarg;
        return 0;
    case 'n':
        a->run_name = optarg;
        return 0;
    case 's':
        a->state_dir = optarg;
        return 0;
    default:
        return -1;
    }
}

static int read_arguments(struct arguments *a, int argc, char **argv)
{
    int option;

    opterr = 0;
    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
        if (read_option(a, option) != 0)
            return -1;
    return optind == argc && a->job > 0 && a->uri != NULL && a->state_dir != NULL ? 0 : -1;
}

/* ---- files of the job ------------------------------------------------------------------------ */

static json_object *read_json(const char *path, size_t max)
{
    size_t len = 0;
    char *text = file_read(path, max, &len, NULL);
    json_object *root = text != NULL ? json_text_parse(text, len, NULL) : NULL;

    free(text);
    return root;
}

/* Slurm may give a number again: the time of the first submission belongs to it. */
static void identify(const struct process *p, char *identity, size_t size)
{
    char path[PATH_MAX];
    struct job_record record;
    size_t len = 0;
    char *text;

    snprintf(path, sizeof(path), "%s/" JOB_RECORD_FILE, p->arguments.state_dir);
    text = file_read(path, JOB_RECORD_MAX, &len, NULL);
    if (text != NULL && job_record_parse(text, len, &record, NULL) == 0)
        snprintf(identity, size, "%s/%u/%lld", record.cluster, record.job, (long long)record.first);
    else
        snprintf(identity, size, "%d", p->arguments.job);
    free(text);
}

static void kept_path(const struct process *p, char *path, size_t size)
{
    snprintf(path, size, "%s/" KEPT_FILE, p->arguments.state_dir);
}

/* The run of this job on this server, before a takeover or a requeue. */
static void read_kept(struct process *p)
{
    char path[PATH_MAX];
    json_object *root;
    const char *uri, *run;

    kept_path(p, path, sizeof(path));
    root = read_json(path, KEPT_MAX);
    uri = root != NULL ? json_get_string(root, "tracking_uri") : NULL;
    run = root != NULL ? json_get_string(root, "run_id") : NULL;
    if (uri != NULL && run != NULL && strcmp(uri, p->arguments.uri) == 0)
        snprintf(p->kept, sizeof(p->kept), "%s", run);
    json_object_put(root);
}

static void write_kept(const struct process *p)
{
    json_object *root = json_object_new_object();
    char path[PATH_MAX];
    struct error err;
    const char *text;

    json_object_object_add(root, "tracking_uri", json_object_new_string(p->arguments.uri));
    json_object_object_add(root, "run_id", json_object_new_string(mlflow_run(p->run)));
    text = json_object_to_json_string_ext(root, JSON_C_TO_STRING_PLAIN);
    kept_path(p, path, sizeof(path));
    if (file_replace(path, text, strlen(text), 0600, &err) != 0)
        log_error("job %d: MLflow: %s; another leader would look for the run on the server",
                  p->arguments.job, err.text);
    json_object_put(root);
}

/* ---- the leader ------------------------------------------------------------------------------ */

static void tell(struct process *p, const char *type, const char *run)
{
    json_object *msg = json_object_new_object();

    json_object_object_add(msg, "t", json_object_new_string(type));
    if (run != NULL)
        json_object_object_add(msg, "run", json_object_new_string(run));
    if (p->leader != NULL)
        link_send(p->leader, msg);
    else
        json_object_put(msg);
}

static void tell_run(struct process *p)
{
    const char *run = mlflow_run(p->run);

    if (run == NULL)
        return;
    if (strcmp(run, p->told) != 0)
        tell(p, "run", run);
    snprintf(p->told, sizeof(p->told), "%s", run);
    if (p->confirmed || !mlflow_confirmed(p->run))
        return;
    p->confirmed = true;
    if (strcmp(run, p->kept) != 0)
        write_kept(p);
    log_info("job %d: MLflow run %s at %s", p->arguments.job, run, p->arguments.uri);
}

static void say_trouble(struct process *p)
{
    const char *trouble = mlflow_trouble(p->run);

    if (strcmp(trouble, p->said) == 0)
        return;
    if (trouble[0] != '\0')
        log_error("job %d: %s: %s", p->arguments.job, p->arguments.uri, trouble);
    else
        log_info("job %d: %s: MLflow goes on", p->arguments.job, p->arguments.uri);
    snprintf(p->said, sizeof(p->said), "%s", trouble);
    if (trouble[0] != '\0' && p->told[0] == '\0')
        tell(p, "away", NULL);
}

static void look(struct process *p)
{
    json_object *msg;

    if (p->looking || p->leader == NULL)
        return;
    p->looking = true;
    msg = json_object_new_object();
    json_object_object_add(msg, "t", json_object_new_string("look"));
    json_object_object_add(msg, "after", json_object_new_int(mlflow_seen(p->run)));
    link_send(p->leader, msg);
}

static void on_look(uv_timer_t *timer)
{
    look(timer->data);
}

/* ---- its end --------------------------------------------------------------------------------- */

static void on_http_closed(void *arg)
{
    (void)arg;
}

static void finish(struct process *p)
{
    if (p->over)
        return;
    p->over = true;
    http_destroy(p->http, on_http_closed);
    uv_close((uv_handle_t *)&p->look, NULL);
    uv_close((uv_handle_t *)&p->wake, NULL);
    uv_close((uv_handle_t *)&p->limit, NULL);
    if (p->leader != NULL)
        link_close(p->leader, "the end");
}

static void on_limit(uv_timer_t *timer)
{
    finish(timer->data);
}

/* "ended": finished, failed or requeued. */
static void take_end(struct process *p, const char *how)
{
    if (how == NULL || p->ending)
        return;
    p->ending = true;
    mlflow_end(p->run,
               strcmp(how, "finished") == 0   ? MLFLOW_FINISHED
               : strcmp(how, "requeued") == 0 ? MLFLOW_REQUEUED
                                              : MLFLOW_FAILED,
               now());
    uv_timer_start(&p->limit, on_limit, END_MS, 0);
}

/* {"t": "state", …}: what control_mlflow.c says. */
static void on_message(struct link *link, json_object *msg, void *arg)
{
    struct process *p = arg;
    const char *type = json_get_string(msg, "t");

    (void)link;
    if (p->over || type == NULL)
        return;
    if (strcmp(type, "news") == 0) {
        look(p);
        return;
    }
    p->looking = false;
    if (strcmp(type, "state") != 0)
        return; /* "later": it may not lead yet */
    mlflow_take(p->run, msg, now());
    take_end(p, json_get_string(msg, "ended"));
    go_on(p);
}

static void on_closed(struct link *link, const char *why, void *arg)
{
    struct process *p = arg;

    (void)link;
    (void)why;
    p->leader = NULL;
    finish(p);
}

/* ---- the server ------------------------------------------------------------------------------ */

static void on_answer(const struct http_answer *answer, void *arg)
{
    struct process *p = arg;

    p->asking = false;
    mlflow_answered(p->run, answer->status, answer->text, answer->length, now());
    go_on(p);
}

static void on_wake(uv_timer_t *timer)
{
    go_on(timer->data);
}

static void ask(struct process *p)
{
    struct mlflow_request next;
    struct http_request request = {.header = p->header, .timeout = ANSWER_S, .far = true};
    const char *uri = p->arguments.uri;
    int slash = uri[strlen(uri) - 1] == '/';

    if (p->asking || !mlflow_next(p->run, now(), &next))
        return;
    free(p->url);
    if (asprintf(&p->url, "%s%s%s", uri, slash ? "" : "/", next.path) < 0)
        p->url = NULL;
    request.url = p->url;
    request.post = next.body;
    p->asking = true;
    if (p->url == NULL || http_ask(p->http, &request) != 0) {
        p->asking = false;
        mlflow_answered(p->run, 0, NULL, 0, now());
    }
}

/* Whatever has happened: what is to be done now? */
static void go_on(struct process *p)
{
    double pause;

    if (p->over)
        return;
    ask(p);
    tell_run(p);
    say_trouble(p);
    if (mlflow_over(p->run) && !p->asking) {
        finish(p);
        return;
    }
    pause = mlflow_pause(p->run, now());
    if (pause >= 0)
        uv_timer_start(&p->wake, on_wake, (uint64_t)(pause * 1000) + 1, 0);
}

/* As MLflow's own clients are told who they are. */
static char *make_header(void)
{
    const char *token = getenv("MLFLOW_TRACKING_TOKEN"), *user = getenv("MLFLOW_TRACKING_USERNAME"),
               *password = getenv("MLFLOW_TRACKING_PASSWORD");
    char pair[HEADER_MAX / 2], base64[HEADER_MAX], *header = NULL;
    size_t len;

    if (token != NULL && token[0] != '\0' && strpbrk(token, "\r\n") == NULL)
        return asprintf(&header, "Authorization: Bearer %s", token) >= 0 ? header : NULL;
    if (user == NULL || user[0] == '\0')
        return NULL;
    len = (size_t)snprintf(pair, sizeof(pair), "%s:%s", user, password != NULL ? password : "");
    if (len >= sizeof(pair) ||
        sodium_base64_encoded_len(len, sodium_base64_VARIANT_ORIGINAL) > sizeof(base64))
        return NULL;
    sodium_bin2base64(base64, sizeof(base64), (const unsigned char *)pair, len,
                      sodium_base64_VARIANT_ORIGINAL);
    return asprintf(&header, "Authorization: Basic %s", base64) >= 0 ? header : NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

static struct mlflow *make_run(struct process *p)
{
    const struct arguments *a = &p->arguments;
    const char *name = getenv("SLURM_JOB_NAME");
    char identity[256], own_name[128];
    struct mlflow_options options = {.identity = identity,
                                     .experiment = a->experiment,
                                     .run_name = a->run_name,
                                     .user = getenv("SLURM_JOB_USER"),
                                     .run_id = a->run_id,
                                     .kept_id = p->kept};

    identify(p, identity, sizeof(identity));
    read_kept(p);
    snprintf(own_name, sizeof(own_name), "%.100s %d", name != NULL ? name : "job", a->job);
    if (options.run_name == NULL)
        options.run_name = own_name;
    return mlflow_create(&options);
}

static int begin(struct process *p, struct error *err)
{
    static const struct link_handlers handlers = {.message = on_message, .closed = on_closed};

    p->run = make_run(p);
    p->http = http_create(&p->loop, MLFLOW_ANSWER_MAX, on_answer, p);
    if (p->run == NULL || p->http == NULL)
        return error_set(err, "out of memory");
    p->header = make_header();
    p->leader = link_adopt(&p->loop, AGENT_FD, false, &handlers, p, err);
    if (p->leader == NULL)
        return -1;
    uv_timer_init(&p->loop, &p->look);
    uv_timer_init(&p->loop, &p->wake);
    uv_timer_init(&p->loop, &p->limit);
    p->look.data = p->wake.data = p->limit.data = p;
    uv_timer_start(&p->look, on_look, 0, LOOK_MS);
    go_on(p);
    return 0;
}

int main(int argc, char **argv)
{
    struct process p = {.leader = NULL};
    struct error err = {""};

    log_init("elastic-mlflow");
    if (read_arguments(&p.arguments, argc, argv) != 0) {
        log_error("elasticrun starts this program; there is nothing to be done with it by hand");
        return 2;
    }
    if (sodium_init() < 0)
        return 1;
    /* Slurm signals every process of a step; the leader decides when this process ends. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    uv_loop_init(&p.loop);
    if (begin(&p, &err) != 0) {
        log_error("%s", err.text);
        return 1;
    }
    uv_run(&p.loop, UV_RUN_DEFAULT);
    mlflow_destroy(p.run);
    free(p.header);
    free(p.url);
    return 0;
}
