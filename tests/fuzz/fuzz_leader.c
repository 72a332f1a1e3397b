/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fuzz target: what authenticated agents, and users with selastic, send to the leader. Whatever
 * they do, it ends once all have left.
 *
 * The input is text, a line for each event: "a" an agent connects, "c" a control connection;
 * "3{...}" the fourth connection sends this; "x3" it breaks; "t25" 2.5 s pass; "l" another node
 * has claimed the next term; "T" as the first line: this leader follows another one; "R": the job
 * has roles; "W": one of them is a world; "TR", "TW": both.
 * The clock and what says nothing are the simulator's (tests/sim). Connections, Slurm and files
 * are replaced here, by what answers at once (the linker takes what is defined here first). So each
 * run is the same. */
#include <errno.h>
#include <stdbool.h>

#include <sodium.h>

#include "tests/fuzz/fuzz.h"

#include "agent/term_file.h"
#include "agent/leader/leader.h"
#include "common/files.h"
#include "common/link.h"
#include "common/link_auth.h"
#include "common/roles_file.h"
#include "common/slurm_client.h"
#include "lib/conf.h"
#include "tests/sim/clock.h"

#define LINES_MAX     100
#define LINKS_MAX     10
#define PATIENCE_S    2000 /* by then a leader that is alone has given up */
#define MESSAGE_DEPTH 32
#define WORK_MS       20 /* in which what has been begun is done */

/* ---- the clock ------------------------------------------------------------------------------- */

struct host *host_now; /* the simulator has many processes, this target one */

struct host *host_of_loop(const uv_loop_t *loop)
{
    (void)loop;
    return NULL;
}

void sim_bug(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
    abort();
}

/* ---- connections ----------------------------------------------------------------------------- */

struct link {
    const char *role;
    void *arg;
    bool used, closing;
};

static struct link links[LINKS_MAX];
static int link_count;
static struct link_handlers link_handlers;
static void *server_arg;

struct link_server *link_server_create(uv_loop_t *loop, const struct link_server_options *options,
                                       const struct link_handlers *handlers, void *arg,
                                       struct error *err)
{
    static int server;

    (void)loop;
    (void)options;
    (void)err;
    link_handlers = *handlers;
    server_arg = arg;
    return (struct link_server *)&server;
}

int link_server_port(const struct link_server *server)
{
    (void)server;
    return 23000;
}

void link_server_admit(struct link_server *server, uid_t uid, bool guest, uint64_t ms)
{
    (void)server;
    (void)uid;
    (void)guest;
    (void)ms;
}

void link_server_lead(struct link_server *server, const struct link_handlers *handlers, void *arg)
{
    (void)server;
    link_handlers = *handlers;
    server_arg = arg;
}

void link_server_destroy(struct link_server *server)
{
    (void)server;
    for (int i = 0; i < link_count; i++)
        links[i].closing = links[i].used;
}

int link_send(struct link *link, json_object *msg)
{
    MUST(link->used);
    MUST(json_object_to_json_string_ext(msg, JSON_C_TO_STRING_PLAIN) != NULL);
    json_object_put(msg);
    return link->closing ? -1 : 0;
}

void link_close(struct link *link, const char *why)
{
    MUST(link->used && why != NULL);
    link->closing = true;
}

void link_set_arg(struct link *link, void *arg)
{
    link->arg = arg;
}

const char *link_role(const struct link *link)
{
    return link->role;
}

bool link_is_guest(const struct link *link)
{
    (void)link;
    return false;
}

uid_t link_peer_uid(const struct link *link)
{
    (void)link;
    return 1000;
}

const char *link_peer_address(const struct link *link)
{
    (void)link;
    return "192.0.2.1";
}

size_t link_queued(const struct link *link)
{
    (void)link;
    return 0;
}

static void end_links(void)
{
    for (int i = 0; i < link_count; i++) {
        if (!links[i].closing)
            continue;
        links[i].used = links[i].closing = false;
        link_handlers.closed(&links[i], "closed", links[i].arg);
    }
}

static void open_link(const char *role)
{
    if (link_count == LINKS_MAX)
        return;
    links[link_count] = (struct link){.role = role, .arg = server_arg, .used = true};
    link_count++;
    link_handlers.open(&links[link_count - 1], server_arg);
}

static void deliver(struct link *link, const char *text)
{
    json_object *msg = json_parse_exact(text, strlen(text), MESSAGE_DEPTH);

    if (json_object_is_type(msg, json_type_object) && link->used && !link->closing)
        link_handlers.message(link, msg, link->arg);
    json_object_put(msg);
}

/* ---- Slurm, files, processes ----------------------------------------------------------------- */

int slurm_client_job(uint32_t job_id, struct job_info **info, struct error *err)
{
    (void)err;
    *info = calloc(1, sizeof(**info));
    MUST(*info != NULL);
    (*info)->id = job_id;
    (*info)->uid = 1000;
    (*info)->state = JOB_KIND_RUNNING;
    (*info)->base_state = "RUNNING";
    (*info)->name = strdup("train");
    (*info)->partition = strdup("batch");
    (*info)->nodes = strdup("n[1-2]");
    (*info)->num_nodes = 2;
    (*info)->billing = 3;
    (*info)->cpus_per_node = 4;
    (*info)->exclusive = true;
    (*info)->time_limit = 60;
    return 0;
}

int slurm_client_jobs(uid_t uid, struct job_info **list, int *count, struct error *err)
{
    (void)uid;
    (void)err;
    *list = NULL;
    *count = 0;
    return 0;
}

int slurm_client_cancel(uint32_t job_id, struct error *err)
{
    (void)job_id;
    (void)err;
    return 0;
}

int slurm_client_requeue(uint32_t job_id, struct error *err)
{
    (void)job_id;
    (void)err;
    return 0;
}

int slurm_client_complete(uint32_t job_id, int code, struct error *err)
{
    (void)job_id;
    (void)code;
    (void)err;
    return 0;
}

int slurm_client_node_reason(const char *nodes, char *text, size_t size)
{
    (void)nodes;
    if (size > 0)
        text[0] = '\0';
    return 1;
}

int slurm_client_unwell(char *const *nodes, bool *unwell, struct error *err)
{
    (void)err;
    for (int i = 0; nodes[i] != NULL; i++)
        unwell[i] = nodes[i][strlen(nodes[i]) - 1] == '3';
    return 0;
}

int slurm_client_set_time_min(uint32_t job_id, uint32_t minutes, struct error *err)
{
    (void)job_id;
    (void)minutes;
    (void)err;
    return 0;
}

int slurm_client_is_operator(uid_t uid, bool *is_operator, struct error *err)
{
    (void)err;
    *is_operator = uid % 2 != 0;
    return 0;
}

int slurm_client_cancel_extensions(uint32_t base_id, uint32_t restarts, uid_t uid,
                                   struct error *err)
{
    (void)base_id;
    (void)restarts;
    (void)uid;
    (void)err;
    return 0;
}

int slurm_client_limits(const char *partition, struct slurm_limits *limits, struct error *err)
{
    (void)partition;
    (void)err;
    *limits = (struct slurm_limits){.minutes = 30, .boot_seconds = 60, .billing = 2};
    return 0;
}

/* Of each kind of answer some. */
int slurm_client_power(const char *partition, bool obeyed, struct slurm_power *power,
                       struct error *err)
{
    static unsigned turn;

    (void)partition;
    (void)obeyed;
    power->saves = ++turn % 3 == 0;
    power->up = power->asleep = NULL;
    if (turn % 3 == 1)
        return error_set(err, "nobody tells");
    if (power->saves) {
        power->up = slurm_client_expand("n1,n2,n3");
        power->asleep = slurm_client_expand("n4,n5");
    }
    return 0;
}

int slurm_client_stay_off(uint32_t job_id, char *const *nodes, char *const *no_longer,
                          struct error *err)
{
    (void)job_id;
    (void)nodes;
    (void)no_longer;
    (void)err;
    return 0;
}

int slurm_client_idle_nodes(const char *partition, bool planned, struct error *err)
{
    (void)partition;
    (void)planned;
    (void)err;
    return 3;
}

int file_replace(const char *path, const void *data, size_t len, mode_t mode, struct error *err)
{
    (void)path;
    (void)data;
    (void)len;
    (void)mode;
    (void)err;
    return 0;
}

int file_append(const char *path, const char *line, struct error *err)
{
    (void)path;
    (void)line;
    (void)err;
    return 0;
}

int uv_spawn(uv_loop_t *loop, uv_process_t *process, const uv_process_options_t *options)
{
    (void)loop;
    (void)process;
    (void)options;
    return UV_ENOENT;
}

/* ---- claims ---------------------------------------------------------------------------------- */

static struct {
    void (*done)(enum term_file_result result, const char *why,
                 void *arg); /* NULL: none is under way */
    void *arg;
    enum term_file_result result;
} claims;

struct term_file *term_file_begin(uv_loop_t *loop, const struct term_file_options *options,
                                  void (*handler)(enum term_file_result result, const char *why,
                                                  void *arg),
                                  void *arg)
{
    (void)loop;
    MUST(options->term > 0 && claims.done == NULL);
    claims.done = handler;
    claims.arg = arg;
    return (struct term_file *)&claims;
}

void term_file_forget(struct term_file *claim)
{
    if (claim != NULL)
        claims.done = NULL;
}

static void finish_claim(void)
{
    void (*handler)(enum term_file_result, const char *, void *) = claims.done;

    claims.done = NULL;
    if (handler != NULL)
        handler(claims.result, "why", claims.arg);
}

/* ---- the leader ------------------------------------------------------------------------------ */

static void done(int code, void *arg)
{
    MUST(code >= 0 && code < 256);
    *(bool *)arg = true;
}

/* What the loop does meanwhile is done at once, if it takes no longer. */
static void pass(uint64_t ms)
{
    uint64_t until = clock_now() + (ms > WORK_MS ? ms : WORK_MS) * MS;

    do {
        end_links();
        finish_claim();
    } while (clock_step(until));
    clock_reach(until);
}

static void happen(char *line)
{
    int number = line[0] != '\0' ? atoi(line + 1) : 0;

    if (line[0] == 'a' || line[0] == 'c')
        open_link(line[0] == 'a' ? LINK_ROLE_AGENT : LINK_ROLE_CONTROL);
    else if (line[0] == 'x' && number >= 0 && number < link_count)
        links[number].closing = links[number].used;
    else if (line[0] == 'l')
        claims.result = TERM_FILE_LOST;
    else if (line[0] >= '0' && line[0] <= '9' && line[0] - '0' < link_count)
        deliver(&links[line[0] - '0'], line + 1);
    else if (line[0] == 't' && number > 0 && number <= 300)
        pass((uint64_t)number * 100);
    pass(0);
}

static void lead(uv_loop_t *loop, const struct leader_options *options, char **lines, int count)
{
    struct error err = {""};
    bool ended = false;
    struct leader *leader = leader_create(loop, options, done, &ended, &err);

    MUST(leader != NULL);
    pass(0);
    for (int i = 0; i < count && !ended; i++)
        happen(lines[i]);
    for (int i = 0; i < link_count; i++)
        links[i].closing = links[i].used;
    for (int i = 0; i < PATIENCE_S && !ended; i++)
        pass(1000);
    MUST(ended);
    pass(0);
    leader_destroy(leader);
    MUST(clock_waiting() == 0); /* nothing of it is to follow */
}

#define REPLICAS                                                                                   \
    "\"head\": {\"leads\": true, \"run\": [\"head\"]}, \"server\": {\"run\": [\"server\"], "       \
    "\"replicas\": \"1:3\", \"ports\": [\"http\"], \"ready\": {\"tcp\": true}, "                   \
    "\"after\": [\"head\"]}, \"pair\": {\"run\": [\"pair\"], \"tasks\": 2, \"per-node\": 1}"

static const char *const ROLES[] = {
    "{\"roles\": {" REPLICAS "}}",
    "{\"roles\": {" REPLICAS ", \"train\": {\"kind\": \"world\", \"nodes\": \"1:3\", \"cpus\": 1, "
    "\"run\": [\"train\"]}}}"};

/* What the first line says of the job. */
struct first_line {
    bool follows; /* another leader was before this one */
    const struct roles *roles;
    const char *text; /* of the roles */
};

static struct first_line read_first(const char *line)
{
    static struct roles *roles[2];
    struct first_line first = {.follows = line[0] == 'T'};

    if (strchr("TRW", line[0]) == NULL)
        return first;
    for (int i = 0; i < 2; i++) {
        if (roles[i] == NULL)
            roles[i] = roles_text_read(ROLES[i], NULL);
        MUST(roles[i] != NULL);
        if (strchr(line, "RW"[i]) != NULL) {
            first.roles = roles[i];
            first.text = ROLES[i];
        }
    }
    return first;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const argv[] = {"true", NULL};
    static struct conf *conf;
    static int server;
    char *text = fuzz_text(data, size), *lines[LINES_MAX + 1];
    int count = fuzz_lines(text, lines, LINES_MAX);
    struct first_line first = read_first(count > 0 && lines[0][0] != '\0' ? lines[0] : "-");
    struct policy policy;
    uv_loop_t loop = {0};

    if (conf == NULL)
        conf = conf_parse("elastic.conf", "[pool elastic]\n", 15, NULL);
    policy_init(&policy);
    MUST(conf != NULL && sodium_init() >= 0);
    MUST(policy_set(&policy, "elastic", "1:4", NULL) == 0);
    MUST(policy_set(&policy, "pool", "elastic", NULL) == 0);
    policy_merge(&policy, &conf->defaults);
    policy_defaults(&policy);
    clock_begin(1);
    link_count = 0;
    claims.done = NULL;
    claims.result = TERM_FILE_MADE;
    lead(&loop,
         &(struct leader_options){
             .job = 12,
             .conf = conf,
             .policy = &policy,
             .roles = first.roles,
             .roles_text = first.text,
             .argv = (char *const *)argv,
             .cwd = "/",
             .address = "192.0.2.1",
             .program = "/nowhere/elasticrun",
             .state_dir = "/nowhere",
             .checkpoint_dir = "/nowhere",
             .user = "u",
             .env = (char *const *)argv,
             .step = "0",
             .node = "n1",
             .server = first.follows ? (struct link_server *)&server : NULL,
             .term = first.follows,
             .base_nodes = 2,
             .world_nodes = first.roles == NULL ? 2 : first.text == ROLES[1],
             .slots = 1,
         },
         lines, count);
    policy_clear(&policy);
    free(text);
    return 0;
}
