/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elasticrun: the process that srun starts on every node of an elastic job.
 *
 * By its place in the job it is an extra task (which ends at once), an agent, or the agent that also leads; see
 * doc/architecture.md, "Roles of elasticrun". */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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

#include "agent/options.h"
#include "agent/paths.h"
#include "agent/roles.h"
#include "agent/successor.h"
#include "agent/supervise.h"
#include "agent/workers/workers.h"
#include "common/conf_file.h"
#include "common/files.h"
#include "common/log.h"
#include "common/slurm_client.h"

#define BASE_CONNECT_MS      60000 /* the base's agents wait for the leader so long */
#define EXTENSION_CONNECT_MS 10000 /* an extension whose base is gone gives its nodes back */

enum exit_status { EXIT_USAGE = 2 };

/* What the environment says about this task's place. */
struct place {
    uint32_t job, restarts;
    int nodeid, localid, nodes;
    const char *node;
    bool in_step;
};

struct run {
    uv_loop_t loop;
    struct options options;
    struct conf *conf;
    struct policy policy;
    struct place place;
    struct roles_options roles_options;
    struct roles *roles;                   /* NULL: not begun yet */
    struct agent_handover *agent_handover; /* NULL: nobody starts this agent again */
    uv_signal_t term, interrupt;
    char *address, *state_dir, *checkpoint_dir, *cluster, *user;
    uid_t slurm_user;
    char cwd[PATH_MAX];
    bool agreed; /* what all tasks of the step find alike is right */
    int code;
};

static bool env_number(const char *name, long min, long max, long *value)
{
    const char *text = getenv(name);
    char *end;
    long number;

    if (text == NULL || text[0] == '\0')
        return false;
    errno = 0;
    number = strtol(text, &end, 10);
    if (errno != 0 || *end != '\0' || number < min || number > max)
        return false;
    *value = number;
    return true;
}

static int read_place(struct place *place, struct error *err)
{
    long value;

    if (!env_number("SLURM_JOB_ID", 1, UINT32_MAX, &value))
        return error_set(err, "not inside a Slurm job; submit one: sbatch --elastic=MIN:MAX with "
                              "`srun elasticrun python train.py` in its script");
    place->job = (uint32_t)value;
    place->restarts = env_number("SLURM_RESTART_COUNT", 0, UINT32_MAX, &value) ? (uint32_t)value
                                                                               : 0;
    place->nodeid = env_number("SLURM_NODEID", 0, SIZES_NODES_MAX, &value) ? (int)value : 0;
    place->localid = env_number("SLURM_LOCALID", 0, INT_MAX, &value) ? (int)value : 0;
    place->node = getenv("SLURMD_NODENAME");
    place->in_step = getenv("SLURM_STEP_ID") != NULL;
    if (place->in_step)
        place->nodes = env_number("SLURM_STEP_NUM_NODES", 1, SIZES_NODES_MAX, &value) ? (int)value
                                                                                      : 1;
    else
        place->nodes = env_number("SLURM_JOB_NUM_NODES", 1, SIZES_NODES_MAX, &value) ? (int)value
                                                                                     : 1;
    if (place->node == NULL)
        return error_set(err, "SLURMD_NODENAME is not set; start elasticrun with srun: srun "
                              "elasticrun python train.py");
    if (!place->in_step && place->nodes > 1)
        return error_set(err,
                         "the job has %d nodes and elasticrun runs on one of them only; start it "
                         "with srun: srun elasticrun ...",
                         place->nodes);
    return 0;
}

/* ---- workers per node -------------------------------------------------------------------------------------------------- */

static int count_gpus(void)
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    long value;
    int count = 1;

    if (list == NULL || list[0] == '\0')
        list = getenv("ROCR_VISIBLE_DEVICES");
    if (list == NULL || list[0] == '\0')
        return env_number("SLURM_GPUS_ON_NODE", 1, 1024, &value) ? (int)value : 0;
    for (const char *c = list; *c != '\0'; c++)
        count += *c == ',';
    return count;
}

/* The first number of "2(x3),1" is this node's when it is the first, and the largest for all others: srun's default layout. */
static int tasks_per_node(void)
{
    const char *text = getenv("SLURM_STEP_TASKS_PER_NODE");
    int tasks = text != NULL ? atoi(text) : 1;

    return tasks > 1 ? tasks : 1;
}

static int choose_slots(const struct options *o, struct error *err)
{
    int gpus = count_gpus();
    long cpus = sysconf(_SC_NPROCESSORS_ONLN), value;

    if (o->extension)
        return env_number("ELASTIC_SLOTS", 1, 65536, &value) ? (int)value : 1;
    switch (o->nproc_kind) {
    case NPROC_NUMBER:
        return o->nproc;
    case NPROC_CPU:
        return env_number("SLURM_CPUS_ON_NODE", 1, 65536, &value) ? (int)value : (int)cpus;
    case NPROC_GPU:
        if (gpus == 0)
            error_set(
                err,
                "--nproc-per-node=gpu: this job has no GPUs; ask for them with --gpus-per-node");
        return gpus;
    case NPROC_AUTO:
        if (gpus > 0)
            return gpus;
        return env_number("SLURM_CPUS_ON_NODE", 1, 65536, &value) ? (int)value : (int)cpus;
    default:
        if (tasks_per_node() > 1)
            return tasks_per_node();
        return gpus > 0 ? gpus : 1;
    }
}

/* ---- policy and directories -------------------------------------------------------------------------------------------- */

/* Without elastic.conf a pool's name is a partition's; with none named, the base's own. */
static int invent_pools(struct run *run, struct error *err)
{
    struct conf *conf = run->conf;
    const char *own = getenv("SLURM_JOB_PARTITION");

    if (conf->pool_count > 0)
        return 0;
    if (run->policy.pool_count == 0 &&
        (own == NULL || policy_set(&run->policy, "pool", own, err) != 0))
        return 0;
    conf->pools = calloc((size_t)run->policy.pool_count, sizeof(*conf->pools));
    if (conf->pools == NULL)
        return error_set(err, "out of memory");
    conf->pool_count = run->policy.pool_count;
    for (int i = 0; i < conf->pool_count; i++) {
        snprintf(conf->pools[i].name, sizeof(conf->pools[i].name), "%s", run->policy.pools[i]);
        conf->pools[i].partition = strdup(run->policy.pools[i]);
        conf->pools[i].time_min = 15;
    }
    return 0;
}

/* scale_config comes through sbatch as ELASTIC_POLICY. */
static int merge_scale_config(struct policy *policy, struct error *err)
{
    const char *value = getenv("ELASTIC_POLICY");
    struct policy lower;
    char *text;
    int len, rc;

    if (value == NULL || value[0] == '\0')
        return 0;
    len = asprintf(&text, "{\"scale_config\":%s}", value);
    if (len < 0)
        return error_set(err, "out of memory");
    policy_init(&lower);
    rc = policy_parse_json(&lower, text, (size_t)len, err);
    if (rc == 0)
        policy_merge(policy, &lower);
    else
        error_prefix(err, "ELASTIC_POLICY");
    policy_clear(&lower);
    free(text);
    return rc;
}

static int build_policy(struct run *run, struct error *err)
{
    struct policy *policy = &run->policy, lower;
    const char *config = run->options.config != NULL ? run->options.config
                                                     : getenv("ELASTIC_CONFIG");
    int rc = -1;

    policy_init(&lower);
    policy_merge(policy, &run->options.policy);
    if (policy_from_environment(policy, true, err) != 0 || merge_scale_config(policy, err) != 0)
        goto done;
    if (config != NULL && config[0] != '\0') {
        if (policy_file_load(config, &lower, err) != 0)
            goto done;
        policy_merge(policy, &lower);
    }
    policy_merge(policy, &run->conf->defaults);
    policy_defaults(policy);
    if (policy->sizes.min == 0) {
        error_set(err, "no size given: submit with sbatch --elastic=MIN:MAX, or say elasticrun "
                       "--elastic=MIN:MAX");
        goto done;
    }
    if (invent_pools(run, err) != 0 || conf_check_policy(run->conf, policy, err) != 0)
        goto done;
    rc = 0;
done:
    policy_clear(&lower);
    return rc;
}

static int check_size(struct run *run, struct error *err)
{
    const struct sizes *sizes = &run->policy.sizes;
    char text[256];

    sizes_format(sizes, text, sizeof(text));
    if (run->place.nodes < sizes->min)
        return error_set(err,
                         "--elastic=%s needs %d nodes to start, this step has %d; use srun -N%d in "
                         "a job of %d nodes",
                         text, sizes->min, run->place.nodes, sizes->min, sizes->min);
    if (!sizes_allowed(sizes, run->place.nodes))
        return error_set(err,
                         "--elastic=%s does not allow the %d nodes of this step; use srun -N%d",
                         text, run->place.nodes, sizes_floor(sizes, run->place.nodes));
    return 0;
}

static char *user_name(void)
{
    const struct passwd *pw = getpwuid(getuid());

    return strdup(pw != NULL ? pw->pw_name : "?");
}

static int make_directories(struct run *run, struct error *err)
{
    const struct passwd *pw = getpwuid(getuid());
    const char *home = getenv("HOME") != NULL ? getenv("HOME") : pw != NULL ? pw->pw_dir : "/tmp";
    char job[16];

    snprintf(job, sizeof(job), "%u", run->place.job);
    if (run->options.state_dir != NULL)
        run->state_dir = strdup(run->options.state_dir);
    else
        run->state_dir = conf_expand(run->conf->state_dir, home, run->user, job,
                                     run->cluster != NULL ? run->cluster : "cluster");
    if (run->state_dir == NULL ||
        (run->state_dir[0] != '/' && (run->state_dir = realpath(run->state_dir, NULL)) == NULL))
        return error_set(err, "--state-dir must be an absolute path");
    if (run->options.checkpoint_dir != NULL)
        run->checkpoint_dir = strdup(run->options.checkpoint_dir);
    else if (asprintf(&run->checkpoint_dir, "%s/checkpoint", run->state_dir) < 0)
        run->checkpoint_dir = NULL;
    if (run->checkpoint_dir == NULL || run->user == NULL)
        return error_set(err, "out of memory");
    return dir_make(run->state_dir, err) != 0 || dir_make(run->checkpoint_dir, err) != 0 ? -1 : 0;
}

/* ---- life -------------------------------------------------------------------------------------------------------------- */

static void on_done(int code, void *arg)
{
    struct run *run = arg;

    run->code = code;
    uv_close((uv_handle_t *)&run->term, NULL);
    uv_close((uv_handle_t *)&run->interrupt, NULL);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct run *run = handle->data;

    roles_leave(run->roles, number == SIGINT ? "interrupted" : "terminated");
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

/* What is the same for whoever leads the job. */
static struct leader_options describe_lead(struct run *run)
{
    return (struct leader_options){
        .job = run->place.job,
        .restarts = run->place.restarts,
        .conf = run->conf,
        .policy = &run->policy,
        .argv = run->options.argv,
        .env = environ,
        .program = paths_program(),
        .user = run->user,
        .step = step_id(),
        .node = run->place.node,
        .nodeid = run->place.nodeid,
        .base_nodes = run->place.nodes,
        .slots = run->roles_options.member.slots,
        .label = run->options.label,
        .fail_pattern = run->options.fail_pattern,
        .early_start = run->options.early_start,
        .mode = run->options.mode,
        .pmix = run->options.pmix,
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
    lead = run->roles_options.lead;
    lead.address = run->address;
    lead.slurm_user = run->slurm_user;
    lead.cwd = run->cwd;
    lead.state_dir = run->state_dir;
    lead.checkpoint_dir = run->checkpoint_dir;
    lead.umask = umask(077);
    return roles_lead(run->roles, &lead, err);
}

/* ELASTIC_LEADER=ADDRESS:PORT and ELASTIC_BASE=JOB.RESTARTS, from the leader that submitted us. */
static int read_leader(struct run *run, struct error *err)
{
    const char *leader = getenv("ELASTIC_LEADER"), *base = getenv("ELASTIC_BASE");
    const char *colon = leader != NULL ? strrchr(leader, ':') : NULL;
    struct member_options *m = &run->roles_options.member;

    if (colon == NULL || base == NULL ||
        sscanf(base, "%u.%u", &m->base_job, &m->base_restarts) != 2)
        return error_set(err, "--extension is for jobs that elasticrun submits itself");
    m->port = atoi(colon + 1);
    run->address = strndup(leader, (size_t)(colon - leader));
    return run->address != NULL && m->port > 0 && m->port < 65536
               ? 0
               : error_set(err, "ELASTIC_LEADER=%s: not ADDRESS:PORT", leader);
}

static int start(struct run *run, struct error *err)
{
    struct member_options *m = &run->roles_options.member;
    char *first;

    m->node = run->place.node;
    m->job = run->place.job;
    m->restarts = run->place.restarts;
    m->nodeid = run->place.nodeid;
    m->base = !run->options.extension;
    m->conf = run->conf;
    m->program = paths_program();
    m->lib = paths_library();
    m->bind = run->options.bind;
    m->pmix = run->options.pmix;
    m->slots = choose_slots(&run->options, err);
    m->connect_timeout_ms = run->options.extension ? EXTENSION_CONNECT_MS : BASE_CONNECT_MS;
    if (m->slots < 1)
        return -1;
    if (run->options.extension) {
        if (read_leader(run, err) != 0)
            return -1;
    } else {
        /* All agents of the base check, so that none waits for a leader that has refused; one of them says it. */
        if (build_policy(run, err) != 0 || check_size(run, err) != 0)
            return -1;
        m->base_job = m->job;
        m->base_restarts = m->restarts;
        first = run->place.in_step ? first_step_node() : NULL;
        run->address = slurm_client_node_address(first != NULL ? first : run->place.node);
        free(first);
        if (run->address == NULL)
            return error_set(err, "out of memory");
    }
    run->agreed = true;
    m->agent_handover = run->agent_handover;
    m->address = run->address;
    if (m->base && run->place.nodeid <= SUCCESSORS_MAX) /* others never lead */
        run->user = user_name();
    run->roles_options.lead = describe_lead(run);
    run->roles = roles_create(&run->loop, &run->roles_options, on_done, run);
    if (run->roles == NULL)
        return error_set(err, "out of memory");
    if (m->base && run->place.nodeid == 0 &&
        (run->agent_handover == NULL || run->agent_handover->starts == 1) &&
        start_leader(run, err) != 0)
        return -1;
    return roles_join(run->roles, err);
}

static int run_loop(struct run *run)
{
    struct error err = {""};

    uv_loop_init(&run->loop);
    uv_signal_init(&run->loop, &run->term);
    uv_signal_init(&run->loop, &run->interrupt);
    run->term.data = run->interrupt.data = run;
    uv_signal_start(&run->term, on_signal, SIGTERM);
    uv_signal_start(&run->interrupt, on_signal, SIGINT);
    if (start(run, &err) != 0) {
        if (run->agreed && run->place.nodeid != 0)
            log_error("%s: %s", run->place.node, err.text);
        else if (run->place.nodeid == 0)
            log_error("%s", err.text);
        return 1;
    }
    uv_run(&run->loop, UV_RUN_DEFAULT);
    roles_destroy(run->roles);
    uv_loop_close(&run->loop);
    return run->code;
}

/* Of the tasks that all find the same mistake one says it. */
static bool first_task(void)
{
    const char *id = getenv("SLURM_STEP_ID") != NULL ? getenv("SLURM_PROCID") : NULL;

    return id == NULL || strcmp(id, "0") == 0;
}

/* A closed one would be taken by a socket of ours, and workers' output written into that. */
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
    if (read_place(&run.place, &err) != 0 || (run.conf = conf_file_load(NULL, &err)) == NULL) {
        if (first_task())
            log_error("%s", err.text);
        return EXIT_USAGE;
    }
    if (run.place.in_step && run.place.localid > 0)
        return 0; /* the node's first task is its agent */
    if (run.place.in_step && !run.options.extension)
        run.agent_handover = supervise(run.conf->heartbeat_timeout);
    code = run_loop(&run);
    policy_clear(&run.policy);
    options_clear(&run.options);
    conf_destroy(run.conf);
    free(run.address);
    free(run.state_dir);
    free(run.checkpoint_dir);
    free(run.cluster);
    free(run.user);
    return code;
}
