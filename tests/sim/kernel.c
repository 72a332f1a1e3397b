/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a process asks of its node, and of the file system that the job's nodes share. */
#include <errno.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#include "agent/paths.h"
#include "agent/port.h"
#include "agent/run_dir.h"
#include "agent/srun_port.h"
#include "agent/member/health.h"
#include "agent/member/reclaim.h"
#include "agent/member/store_server.h"
#include "agent/term_file.h"
#include "common/files.h"
#include "common/log.h"
#include "common/memory.h"
#include "common/tcp_sockets.h"
#include "lib/json_get.h"
#include "lib/ledger.h"
#include "tests/sim/sim.h"

#define TERMS_MAX 256
#define EPOCH     INT64_C(1700000000) /* seconds of Unix time at which the virtual clock begins */

struct term_made {
    uint32_t job, restarts;
    int term;
    bool seal;
    struct node *by;
};

static struct {
    bool files_everywhere;
    struct term_made made[TERMS_MAX];
    int made_count;
} files;

void (*kernel_history)(struct job *job, const char *line);
void (*kernel_said)(const char *line);

void kernel_begin(bool files_everywhere)
{
    files.files_everywhere = files_everywhere;
    files.made_count = 0;
}

/* The file server stands where Slurm's controller does. */
static bool has_files(const struct node *node)
{
    return node->up && (files.files_everywhere || node->island == 0);
}

/* ---- counters of a node ---------------------------------------------------------------------- */

void health_read(const char *root, struct node_health *health)
{
    (void)root;
    *health = (struct node_health)NODE_HEALTH_NONE;
}

/* ---- the process ----------------------------------------------------------------------------- */

char *getenv(const char *name)
{
    static char list[4096];
    const struct job *base;

    if (host_now == NULL || strncmp(name, "SLURM_", 6) != 0 || !host_now->base)
        return NULL;
    base = host_now->job;
    if (strcmp(name, "SLURM_STEP_ID") == 0)
        return (char *)"0";
    if (strcmp(name, "SLURM_SRUN_COMM_HOST") == 0)
        return base->nodes[0]->name;
    if (strcmp(name, "SLURM_SRUN_COMM_PORT") == 0)
        return (char *)"1";
    if (strcmp(name, "SLURM_STEP_NODELIST") != 0 || base->count > 64)
        return NULL;
    list[0] = '\0';
    for (int i = 0; i < base->count; i++)
        sprintf(list + strlen(list), "%s%s", i > 0 ? "," : "", base->nodes[i]->name);
    return list;
}

pid_t getpid(void)
{
    return host_now != NULL ? 1000 + host_now->number : 1;
}

const char *paths_program(void)
{
    return "/nowhere/elasticrun";
}

const char *paths_of(enum paths_part part)
{
    static const char *const paths[PATHS_PARTS] = {
        [PATHS_EXTENSION_SCRIPT] = "/nowhere/extension.sh",
        [PATHS_FLUSH] = "/nowhere/elastic-flush",
        [PATHS_MLFLOW] = "/nowhere/elastic-mlflow",
        [PATHS_NODE_FAIL] = "elastic-node-fail",
    };

    return paths[part];
}

uint64_t memory_available(const char *root)
{
    (void)root;
    return UINT64_C(1) << 40;
}

/* Rank 0 does so as soon as it is past its gate. */
enum tcp_listener tcp_listener(int port)
{
    (void)port;
    if (host_now->node->squatted) {
        host_now->node->squatted = false;
        return TCP_STRANGER;
    }
    for (const struct workers *set = host_now->node->sets; set != NULL; set = set->next_on_node)
        if (set->state >= SET_MEETING && set->state < SET_ENDED)
            return TCP_OURS;
    return TCP_NOBODY;
}

int port_reserve(int *port, struct error *err)
{
    (void)err;
    *port = 30000;
    return 1 << 20; /* no descriptor: nothing happens when it is closed */
}

int close(int fd)
{
    if (fd >= 1 << 20)
        return 0;
    return (int)syscall(3 /* close */, fd);
}

bool srun_port_answers(const char *host, const char *port)
{
    (void)port;
    return host != NULL && host_now->job->srun &&
           network_reaches(host_now->node, host_now->job->nodes[0]);
}

bool supervise_lost(const struct agent_handover *handover, bool *spoiled)
{
    *spoiled = false;
    return handover->stepd_gone;
}

char *run_dir_make(const struct conf *conf, uint32_t job, uint32_t restarts, const char *node,
                   struct error *err)
{
    (void)conf;
    (void)job;
    (void)restarts;
    (void)node;
    (void)err;
    return strdup("/nowhere/run");
}

void run_dir_leave(const char *path, bool needless)
{
    (void)path;
    (void)needless;
}

/* ---- the time of day ------------------------------------------------------------------------- */

time_t time(time_t *now)
{
    time_t seconds = (time_t)(EPOCH + (int64_t)(clock_now() / SECOND));

    if (now != NULL)
        *now = seconds;
    return seconds;
}

/* Only the wall clock: what measures the simulator itself has others. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (clock != CLOCK_REALTIME) {
        errno = EINVAL;
        return -1;
    }
    now->tv_sec = time(NULL);
    now->tv_nsec = (long)(clock_now() % SECOND * 1000);
    return 0;
}

/* ---- pieces that only call back when they are gone ------------------------------------------- */

struct store_server *store_server_create(uv_loop_t *loop, const char *run_dir, int workers,
                                         int (*send)(json_object *msg, void *arg), void *arg,
                                         struct error *err)
{
    static int store;

    (void)loop;
    (void)run_dir;
    (void)workers;
    (void)send;
    (void)arg;
    (void)err;
    return (struct store_server *)&store;
}

const char *store_server_path(const struct store_server *server)
{
    (void)server;
    return "/nowhere/store";
}

bool store_server_on_message(struct store_server *server, json_object *msg)
{
    (void)server;
    (void)msg;
    return false;
}

void store_server_lost(struct store_server *server)
{
    (void)server;
}

void store_server_destroy(struct store_server *server, void (*gone)(void *arg), void *arg)
{
    (void)server;
    clock_goodbye(gone, arg);
}

struct reclaim *reclaim_create(uv_loop_t *loop, const struct conf *conf,
                               const struct reclaim_handlers *handlers, void *arg)
{
    struct host *host = host_of_loop(loop);

    (void)conf;
    host->reclaim = handlers;
    host->reclaim_arg = arg;
    return (struct reclaim *)host;
}

void reclaim_destroy(struct reclaim *reclaim, void (*closed)(void *arg))
{
    struct host *host = (struct host *)reclaim;

    host->reclaim = NULL;
    clock_goodbye(closed, host->reclaim_arg);
}

/* ---- the shared file system ------------------------------------------------------------------ */

/* NULL: nobody reads it here. */
static char **file_of(const char *path)
{
    struct training *training = host_now->job->training;

    return strstr(path, "generation.json") != NULL ? &training->world_file
           : strstr(path, LEDGER_FILE) != NULL     ? &training->ledger
                                                   : NULL;
}

int file_replace(const char *path, const void *data, size_t len, mode_t mode, struct error *err)
{
    struct training *training = host_now->job->training;
    char **file = file_of(path);

    (void)mode;
    if (!has_files(host_now->node))
        return error_set(err, "%s: Input/output error", path);
    if (file == NULL)
        return 0;
    free(*file);
    *file = strndup(data, len);
    if (file == &training->ledger)
        invariants_cost(training);
    return 0;
}

int file_append(const char *path, const char *line, struct error *err)
{
    if (!has_files(host_now->node))
        return error_set(err, "%s: Input/output error", path);
    trace("%-5s history %s", host_name(host_now), line);
    if (kernel_history != NULL)
        kernel_history(host_now->job, line);
    return 0;
}

char *file_read(const char *path, size_t max, size_t *len, struct error *err)
{
    char **own = file_of(path);
    const char *file = setup_conf->prices != NULL && strcmp(path, setup_conf->prices) == 0
                           ? cloud_prices()
                       : own != NULL ? *own
                                     : NULL;

    (void)max;
    if (file == NULL) {
        error_set(err, "%s: No such file or directory", path);
        return NULL;
    }
    *len = strlen(file);
    return strdup(file);
}

/* ---- terms ----------------------------------------------------------------------------------- */

struct term_file {
    struct host *host;
    struct term_file_options wanted;
    enum term_file_result result;
    void (*done)(enum term_file_result result, const char *why, void *arg);
    void *arg;
};

static enum term_file_result make(const struct term_file *file, bool seal)
{
    const struct term_file_options *o = &file->wanted;

    for (int i = 0; i < files.made_count; i++) {
        const struct term_made *made = &files.made[i];

        if (made->job == o->job && made->restarts == o->restarts && made->term == o->term &&
            made->seal == seal)
            return TERM_FILE_LOST;
    }
    MUST(files.made_count < TERMS_MAX);
    files.made[files.made_count++] = (struct term_made){o->job, o->restarts, o->term, seal,
                                                        file->host->node};
    trace("%-5s makes the file of term %d%s", host_name(file->host), o->term,
          seal ? ", its seal" : "");
    return TERM_FILE_MADE;
}

static void tell_result(void *arg)
{
    struct term_file *file = arg, copy = *file;
    static const char *const why[] = {"", "somebody else has made it", "Input/output error"};

    free(file);
    if (copy.done != NULL)
        copy.done(copy.result, why[copy.result], copy.arg);
}

static void carry_out(void *arg)
{
    struct term_file *file = arg;

    if (!has_files(file->host->node)) {
        file->result = TERM_FILE_FAILED;
        clock_in(chance_between(10 * MS, 2 * SECOND), file->host, tell_result, file);
        return;
    }
    file->result = TERM_FILE_MADE;
    if (file->wanted.what != TERM_FILE_SEAL)
        file->result = make(file, false);
    if (file->result == TERM_FILE_MADE && file->wanted.what != TERM_FILE_CLAIM)
        file->result = make(file, true);
    clock_in(chance_between(MS, 20 * MS), file->host, tell_result, file);
}

struct term_file *term_file_begin(uv_loop_t *loop, const struct term_file_options *wanted,
                                  void (*done)(enum term_file_result result, const char *why,
                                               void *arg),
                                  void *arg)
{
    struct term_file *file = calloc(1, sizeof(*file));

    MUST(file != NULL);
    *file = (struct term_file){
        .host = host_of_loop(loop), .wanted = *wanted, .done = done, .arg = arg};
    clock_in(chance_between(MS, 20 * MS), file->host, carry_out, file);
    return file;
}

void term_file_forget(struct term_file *file)
{
    if (file != NULL)
        file->done = NULL;
}

/* ---- the log --------------------------------------------------------------------------------- */

static void __attribute__((format(printf, 2, 0))) say(const char *kind, const char *fmt, va_list ap)
{
    char text[1024];

    if (!trace_on && kernel_said == NULL)
        return;
    vsnprintf(text, sizeof(text), fmt, ap);
    if (kernel_said != NULL)
        kernel_said(text);
    trace("%-5s %s%s", host_name(host_now), kind, text);
}

void log_init(const char *program)
{
    (void)program;
}

void log_info(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say("says: ", fmt, ap);
    va_end(ap);
}

void log_error(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say("error: ", fmt, ap);
    va_end(ap);
}

void log_debug(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say("debug: ", fmt, ap);
    va_end(ap);
}
