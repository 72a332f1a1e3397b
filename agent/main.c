/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elasticrun: the process that srun starts on every node of an elastic job.
 *
 * Its place in the job decides what it is: an extra task (which ends at once), an agent, or the
 * agent that also leads. See doc/internals/architecture.md, "Roles of elasticrun". */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>
#include <uv.h>

#include "agent/agent.h"
#include "agent/container.h"
#include "agent/farewell.h"
#include "agent/job_policy.h"
#include "agent/leader_places.h"
#include "agent/options.h"
#include "agent/paths.h"
#include "agent/place.h"
#include "agent/program_signals.h"
#include "agent/state_dir.h"
#include "agent/successor.h"
#include "agent/supervise.h"
#include "agent/workers/workers.h"
#include "common/conf_file.h"
#include "common/files.h"
#include "common/log.h"
#include "common/release_own.h"
#include "common/roles_file.h"
#include "common/slurm_client.h"
#include "lib/drain_notices.h"
#include "lib/s3_place.h"
#include "lib/text.h"
#include "lib/world_names.h"

#define BASE_CONNECT_MS      60000   /* how long agents of the base wait for the leader */
#define EXTENSION_CONNECT_MS 10000   /* an extension whose base is gone gives its nodes back */
#define FAREWELL_MS          20000   /* for the other agents of a job that cannot start */
#define AT_ONCE              16      /* agents that may ask Slurm at the same moment */
#define TURN_US              5000    /* … and 200 in a second */
#define TURNS_US             5000000 /* nobody waits longer */
/* libuv's own number is 4. munged, slurmctld, the name service and a few file systems may all hang
 * at once. */
#define THREADS "16"

enum exit_status { EXIT_USAGE = 2 };

struct run {
    uv_loop_t loop;
    struct options options;
    struct conf *conf;
    struct policy policy;
    struct roles *roles; /* of the job; NULL: there are none */
    char *roles_text;    /* … as it travels */
    struct place place;
    struct agent_options agent_options;
    struct agent *agent;                   /* NULL: not begun yet */
    struct leader_places leaders;          /* of an extension */
    struct agent_handover *agent_handover; /* NULL: nobody starts this agent again */
    uv_signal_t term, interrupt, notice;
    struct program_signals program_signals;
    char *address, *state_dir, *checkpoint_dir, *cluster, *user;
    char *expected_dir; /* the leader's state_dir, as each agent of the base finds it */
    uid_t slurm_user;
    char cwd[PATH_MAX];
    mode_t umask; /* the user's, for workers */
    bool agreed;  /* what all tasks of the step find alike is right */
    bool lost;    /* the leader could not start, and the others do not know */
    int code;
};

/* ---- directories ----------------------------------------------------------------------------- */

static char *user_name(void)
{
    const struct passwd *pw = getpwuid(getuid());

    return strdup(pw != NULL ? pw->pw_name : "?");
}

/* When it was submitted is for Slurm to say. Without an answer whatever is there is taken for the
 * job's own. */
static void describe_job(const struct run *run, struct job_record *record)
{
    struct job_info *info = NULL;
    struct error err = {""};

    *record = (struct job_record){.job = run->place.job, .restarts = run->place.restarts};
    snprintf(record->cluster, sizeof(record->cluster), "%s",
             run->cluster != NULL ? run->cluster : "cluster");
    snprintf(record->user, sizeof(record->user), "%s", run->user);
    if (slurm_client_job(run->place.job, &info, &err) == 0 && info != NULL)
        record->submit = info->submit;
    else
        log_debug("job %u: its time of submission is not known: %s", run->place.job, err.text);
    job_info_free(info);
}

/* The state directory is the same on all nodes. NULL: not known. */
static char *find_state_dir(const struct run *run, const char *cluster)
{
    const struct passwd *pw = getenv("HOME") == NULL ? getpwuid(getuid()) : NULL;
    const char *home = getenv("HOME") != NULL ? getenv("HOME") : pw != NULL ? pw->pw_dir : "/tmp";
    const char *dir = run->options.state_dir;
    char job[16];

    snprintf(job, sizeof(job), "%u", run->place.job);
    if (dir != NULL)
        return dir[0] == '/' ? strdup(dir) : realpath(dir, NULL);
    return run->user != NULL && cluster != NULL
               ? conf_expand(run->conf->state_dir, home, run->user, job, cluster)
               : NULL;
}

/* Where checkpoints on S3 are, for workers on all nodes; what is flushed stays in STATE_DIR. */
static int say_checkpoint_url(const struct run *run, struct error *err)
{
    const char *place = run->options.checkpoint_dir;
    const char *url = place != NULL && s3_place_is(place) ? place : NULL;
    int rc = url != NULL ? setenv(WORLD_CHECKPOINT_URL, url, 1) : unsetenv(WORLD_CHECKPOINT_URL);

    return rc == 0 ? 0 : error_set(err, "out of memory");
}

static int make_directories(struct run *run, struct error *err)
{
    const char *checkpoints = run->options.checkpoint_dir;
    bool named = checkpoints != NULL && !s3_place_is(checkpoints);
    struct job_record record;

    run->state_dir = find_state_dir(run, run->cluster != NULL ? run->cluster : "cluster");
    if (run->state_dir == NULL || run->state_dir[0] != '/')
        return error_set(err, "--state-dir must be an absolute path");
    if (named)
        run->checkpoint_dir = strdup(run->options.checkpoint_dir);
    else if (asprintf(&run->checkpoint_dir, "%s/checkpoint", run->state_dir) < 0)
        run->checkpoint_dir = NULL;
    if (run->checkpoint_dir == NULL || run->user == NULL)
        return error_set(err, "out of memory");
    describe_job(run, &record);
    if (state_dir_take(run->state_dir, run->options.state_dir != NULL, &record, err) != 0)
        return -1;
    return named ? state_dir_take_checkpoints(run->checkpoint_dir, &record, err)
                 : dir_make(run->checkpoint_dir, err);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void on_done(int code, void *arg)
{
    struct run *run = arg;

    run->code = code;
    uv_close((uv_handle_t *)&run->term, NULL);
    uv_close((uv_handle_t *)&run->interrupt, NULL);
    uv_close((uv_handle_t *)&run->notice, NULL);
    program_signals_stop(&run->program_signals);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct run *run = handle->data;

    agent_leave(run->agent, number == SIGINT ? "interrupted" : "terminated");
}

/* From job_submit/elastic. */
static void on_notice(uv_signal_t *handle, int number)
{
    struct run *run = handle->data;

    (void)number;
    agent_notice(run->agent);
}

static void on_program_signal(int number, void *arg)
{
    struct run *run = arg;

    agent_pass_signal(run->agent, number);
}

static char *first_step_node(void)
{
    const char *list = getenv("SLURM_STEP_NODELIST");
    char **nodes = list != NULL ? slurm_client_expand(list) : NULL;
    char *first = nodes != NULL && nodes[0] != NULL ? strdup(nodes[0]) : NULL;

    for (char **node = nodes; node != NULL && *node != NULL; node++)
        free(*node);
    free(nodes);
    return first;
}

static const char *step_id(void)
{
    const char *id = getenv("SLURM_STEP_ID");

    return id != NULL ? id : "batch";
}

/* What workers of the world are. Where the roles have no world, there are none. */
static char **program_of_roles(const struct roles *roles)
{
    int world = roles_world(roles);

    return roles->list[world >= 0 ? world : roles_leader(roles)].run;
}

static int world_nodes(const struct roles *roles)
{
    int world = roles_world(roles);

    return world >= 0 ? roles->list[world].min : 0;
}

/* What is the same for whoever leads the job. */
static struct leader_options describe_lead(struct run *run)
{
    return (struct leader_options){
        .job = run->place.job,
        .restarts = run->place.restarts,
        .conf = run->conf,
        .policy = &run->policy,
        .roles = run->roles,
        .roles_text = run->roles_text,
        .argv = run->roles != NULL ? program_of_roles(run->roles) : run->options.argv,
        .env = environ,
        .program = paths_program(),
        .state_dir_named = run->options.state_dir != NULL,
        .user = run->user,
        .step = step_id(),
        .node = run->place.node,
        .nodeid = run->place.nodeid,
        .base_nodes = run->place.nodes,
        .world_nodes = run->roles == NULL ? run->place.nodes : world_nodes(run->roles),
        .slots = run->agent_options.member.slots,
        .label = run->options.label || run->roles != NULL,
        .fail_pattern = run->options.fail_pattern,
        .pre_train = run->options.pre_train,
        .post_train = run->options.post_train,
        .early_start = run->options.early_start,
        .mode = run->options.mode,
        .pmix = run->options.pmix,
        .umask = run->umask,
        .contained = !run->options.extension && container_is_entered(),
    };
}

static int start_leader(struct run *run, struct error *err)
{
    struct leader_options lead;
    struct error ignored;

    if (slurm_client_site(&run->slurm_user, &run->cluster, &ignored) != 0)
        run->slurm_user = 0;
    if (make_directories(run, err) != 0)
        return -1;
    if (getcwd(run->cwd, sizeof(run->cwd)) == NULL)
        return error_set(err, "current directory: %s", strerror(errno));
    lead = run->agent_options.lead;
    lead.address = run->address;
    lead.slurm_user = run->slurm_user;
    lead.cwd = run->cwd;
    lead.state_dir = run->state_dir;
    lead.checkpoint_dir = run->checkpoint_dir;
    return agent_lead(run->agent, &lead, err);
}

/* ELASTIC_LEADER=ADDRESS:PORT,… and ELASTIC_BASE=JOB.RESTARTS, from the leader that submitted this
 * job. */
static int read_leader(struct run *run, struct error *err)
{
    const char *leader = getenv("ELASTIC_LEADER"), *base = getenv("ELASTIC_BASE");
    struct member_options *m = &run->agent_options.member;
    struct error why;

    if (leader == NULL || base == NULL ||
        sscanf(base, "%u.%u", &m->base_job, &m->base_restarts) != 2)
        return error_set(err, "--extension is for jobs that elasticrun submits itself");
    if (leader_places_parse(&run->leaders, leader, &why) != 0)
        return error_set(err, "ELASTIC_LEADER=%s", why.text);
    m->leaders = &run->leaders;
    m->port = run->leaders.list[0].port;
    run->address = strdup(run->leaders.list[0].address);
    return run->address != NULL ? 0 : error_set(err, "out of memory");
}

/* Tasks would wait for an interface that nobody serves. */
static int check_api(const struct run *run, struct error *err)
{
    for (int i = 0; i < run->roles->count; i++)
        if (run->roles->list[i].api && access(paths_of(PATHS_HTTP), X_OK) != 0)
            return error_set(err,
                             "role %s: api: there is no %s; slurm-elastic has it if it is built "
                             "with libmicrohttpd",
                             run->roles->list[i].name, paths_of(PATHS_HTTP));
    return 0;
}

/* run->roles stays NULL where there are none. */
static int read_roles(struct run *run, struct error *err)
{
    const char *file = run->options.roles, *text = run->options.roles_text;

    if (file == NULL && text == NULL)
        return 0;
    run->roles = file != NULL ? roles_file_load(file, run->conf->roles_dir, err)
                              : roles_text_read(text, err);
    if (run->roles == NULL)
        return file != NULL ? -1 : error_prefix(err, ROLES_VARIABLE);
    if (check_api(run, err) == 0)
        return 0;
    return error_prefix(err, "%s", file != NULL ? file : ROLES_VARIABLE);
}

/* NULL: those of the job. */
static int set_pools(struct policy *policy, char *const *pools, struct error *err)
{
    char text[POLICY_POOLS_MAX * (WORLD_NAME_MAX + 1)] = "";

    for (; pools != NULL && *pools != NULL; pools++)
        text_append(text, sizeof(text), "%s%s", text[0] != '\0' ? "," : "", *pools);
    return text[0] != '\0' ? policy_set(policy, "pool", text, err) : 0;
}

/* Sizes are those of its world, or of the step. */
static int load_roles(struct run *run, struct error *err)
{
    const struct role *world;
    char nodes[32];

    if (read_roles(run, err) != 0)
        return -1;
    if (run->roles == NULL)
        return 0;
    if ((run->roles_text = roles_text(run->roles, err)) == NULL)
        return -1;
    unsetenv(ROLES_VARIABLE); /* it is long, and tasks have no use for it */
    unsetenv(ROLES_NODES_VARIABLE);
    snprintf(nodes, sizeof(nodes), "%d", run->place.nodes);
    if (roles_world(run->roles) < 0)
        return policy_set(&run->options.policy, "elastic", nodes, err);
    world = &run->roles->list[roles_world(run->roles)];
    snprintf(nodes, sizeof(nodes), "%d:%d", world->min, world->max);
    if (world->min > run->place.nodes)
        return error_set(err, "role %s needs %d nodes to start, this step has %d; use srun -N%d",
                         world->name, world->min, run->place.nodes, world->min);
    if (policy_set(&run->options.policy, "elastic", nodes, err) != 0 ||
        (world->asks && policy_set(&run->options.policy, "grow", "ask", err) != 0))
        return -1;
    return set_pools(&run->options.policy, world->pools, err);
}

/* All agents of the base ask Slurm for the address of the leader's node as they start. Not at the
 * same moment, if they are many. */
static void await_turn(const struct place *place)
{
    if (place->nodes > AT_ONCE)
        usleep((useconds_t)((long)place->nodeid * TURN_US % TURNS_US));
}

static int start(struct run *run, struct error *err)
{
    struct member_options *m = &run->agent_options.member;
    char *first;

    /* Whoever leads, now or later, writes files that are the user's alone. */
    run->umask = umask(077);
    m->node = run->place.node;
    m->job = run->place.job;
    m->restarts = run->place.restarts;
    m->nodeid = run->place.nodeid;
    m->base = !run->options.extension;
    m->conf = run->conf;
    m->program = paths_program();
    m->lib = paths_library;
    m->python = paths_python();
    m->shield = paths_shield();
    m->bind = run->options.bind;
    m->pmix = run->options.pmix;
    m->slots = place_slots(&run->place, &run->options, err);
    m->connect_timeout_ms = run->options.extension ? EXTENSION_CONNECT_MS : BASE_CONNECT_MS;
    if (m->slots < 1)
        return -1;
    if (run->options.extension) {
        if (read_leader(run, err) != 0)
            return -1;
    } else {
        /* All agents of the base check this, so that no agent waits for a leader that has refused.
         * One of them reports it. */
        if (load_roles(run, err) != 0 ||
            job_policy_build(&run->policy, &run->options, run->roles, run->conf, err) != 0 ||
            (run->roles == NULL && job_policy_check_size(&run->policy, run->place.nodes, err) != 0))
            return -1;
        m->base_job = m->job;
        m->base_restarts = m->restarts;
        first = run->place.in_step ? first_step_node() : NULL;
        await_turn(&run->place);
        run->address = slurm_client_node_address(first != NULL ? first : run->place.node);
        free(first);
        if (run->address == NULL)
            return error_set(err, "out of memory");
    }
    run->agreed = true;
    m->agent_handover = run->agent_handover;
    m->address = run->address;
    if (m->base) {
        /* Slurm is not asked for the cluster's name: all nodes would ask at once. */
        run->user = user_name();
        run->expected_dir = find_state_dir(run, getenv("SLURM_CLUSTER_NAME"));
        m->state_dir = run->expected_dir;
    }
    if (!run->options.extension && say_checkpoint_url(run, err) != 0)
        return -1;
    run->agent_options.lead = describe_lead(run);
    run->agent = agent_create(&run->loop, &run->agent_options, on_done, run);
    if (run->agent == NULL)
        return error_set(err, "out of memory");
    if (m->base && run->place.nodeid == 0 &&
        (run->agent_handover == NULL || run->agent_handover->starts == 1) &&
        start_leader(run, err) != 0) {
        run->lost = true;
        return -1;
    }
    return agent_join(run->agent, err);
}

static void do_nothing(uv_work_t *work)
{
    (void)work;
}

static void done_nothing(uv_work_t *work, int status)
{
    (void)work;
    (void)status;
}

/* libuv reads the number from the environment when it starts its threads. Workers inherit the
 * environment, and are not to have it from here. */
static void start_threads(uv_loop_t *loop)
{
    static uv_work_t work;

#ifdef M_ARENA_MAX
    /* Each thread would keep memory of its own. What they do is little. */
    mallopt(M_ARENA_MAX, 2);
#endif
    if (getenv("UV_THREADPOOL_SIZE") != NULL || setenv("UV_THREADPOOL_SIZE", THREADS, 1) != 0)
        return;
    uv_queue_work(loop, &work, do_nothing, done_nothing);
    unsetenv("UV_THREADPOOL_SIZE");
}

static int run_loop(struct run *run)
{
    struct error err = {""};

    uv_loop_init(&run->loop);
    start_threads(&run->loop);
    uv_signal_init(&run->loop, &run->term);
    uv_signal_init(&run->loop, &run->interrupt);
    uv_signal_init(&run->loop, &run->notice);
    run->term.data = run->interrupt.data = run->notice.data = run;
    uv_signal_start(&run->term, on_signal, SIGTERM);
    uv_signal_start(&run->interrupt, on_signal, SIGINT);
    uv_signal_start(&run->notice, on_notice, DRAIN_NOTICES_SIGNAL);
    if (run->place.in_step)
        program_signals_start(&run->program_signals, &run->loop, on_program_signal, run);
    if (start(run, &err) != 0) {
        if (run->agreed && run->place.nodeid != 0)
            log_error("%s: %s", run->place.node, err.text);
        else if (run->place.nodeid == 0)
            log_error("%s", err.text);
        if (run->lost)
            farewell(&(struct farewell_options){.job = run->place.job,
                                                .restarts = run->place.restarts,
                                                .conf = run->conf,
                                                .state_dir = run->expected_dir,
                                                .others = run->place.nodes - 1,
                                                .timeout_ms = FAREWELL_MS});
        return 1;
    }
    uv_run(&run->loop, UV_RUN_DEFAULT);
    agent_destroy(run->agent);
    uv_loop_close(&run->loop);
    return run->code;
}

/* All tasks of the step find the same mistake; only the first reports it. */
static bool first_task(void)
{
    const char *id = getenv("SLURM_STEP_ID") != NULL ? getenv("SLURM_PROCID") : NULL;

    return id == NULL || strcmp(id, "0") == 0;
}

/* Otherwise a socket of ours could get the number of a closed standard descriptor, and workers'
 * output would go into that socket. */
static void open_standard_files(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
            abort();
}

int main(int argc, char **argv)
{
    static struct run run;
    struct error err = {""};
    char used[PATH_MAX + 32];
    int code;

    if (argc > 1 && strcmp(argv[1], "--exec-worker") == 0)
        return workers_exec_shim(argc, argv);
    open_standard_files();
    log_init("elasticrun");
    signal(SIGPIPE, SIG_IGN);
    switch (options_parse(&run.options, argc, argv, &err)) {
    case OPTIONS_DONE:
        return 0;
    case OPTIONS_ERROR:
        if (first_task())
            log_error("%s", err.text);
        return EXIT_USAGE;
    default:
        break;
    }
    policy_init(&run.policy);
    if (sodium_init() < 0) {
        log_error("libsodium cannot be initialised");
        return 1;
    }
    if (place_read(&run.place, &err) != 0 || (run.conf = conf_file_load(NULL, &err)) == NULL) {
        if (first_task())
            log_error("%s", err.text);
        else if (getenv("ELASTIC_SPANK") != NULL) /* job_submit/elastic has read a good one */
            log_error("%s: %s (this is elasticrun %s)", run.place.node, err.text,
                      release_own()->name);
        return EXIT_USAGE;
    }
    log_debug("%s: elastic.conf: %s", run.place.node, conf_file_used(run.conf, used, sizeof(used)));
    if (run.place.in_step && run.place.localid > 0)
        return 0; /* the node's first task is its agent */
    if (run.place.in_step && !run.options.extension)
        run.agent_handover = supervise(run.conf->heartbeat_timeout);
    code = run_loop(&run);
    policy_clear(&run.policy);
    options_clear(&run.options);
    conf_destroy(run.conf);
    roles_destroy(run.roles);
    free(run.roles_text);
    free(run.address);
    free(run.state_dir);
    free(run.expected_dir);
    free(run.checkpoint_dir);
    free(run.cluster);
    free(run.user);
    return code;
}
