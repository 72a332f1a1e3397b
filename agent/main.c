/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elasticrun: the process that srun starts on every node of an elastic job.
 *
 * Its place in the job decides what it is: an extra task (which ends at once), an agent, or the
 * agent that also leads. See doc/architecture.md, "Roles of elasticrun". */
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

#include "agent/leader/leader.h"
#include "agent/job_policy.h"
#include "agent/member/member.h"
#include "agent/options.h"
#include "agent/paths.h"
#include "agent/place.h"
#include "agent/successor.h"
#include "agent/supervise.h"
#include "agent/workers/workers.h"
#include "common/conf_file.h"
#include "common/files.h"
#include "common/log.h"
#include "common/slurm_client.h"

#define BASE_CONNECT_MS      60000 /* how long agents of the base wait for the leader */
#define EXTENSION_CONNECT_MS 10000 /* an extension whose base is gone gives its nodes back */

enum exit_status { EXIT_USAGE = 2 };

struct run {
    uv_loop_t loop;
    struct options options;
    struct conf *conf;
    struct policy policy;
    struct place place;
    struct leader_options lead;
    struct leader *leader;
    struct member *member;
    struct member_options member_options;
    struct successor *successor; /* NULL: this agent cannot follow the leader */
    struct successor_options follow;
    struct member_command command;         /* from the leader before this one */
    struct agent_handover *agent_handover; /* NULL: nobody starts this agent again */
    /* Leaders of this process that have ended, since other nodes led. Their work may still be in
     * threads. */
    struct leader **formers;
    int former_count;
    uv_signal_t term, interrupt;
    char *address, *state_dir, *checkpoint_dir, *cluster, *user;
    char *own_address; /* by which others reach this node */
    uid_t slurm_user;
    char cwd[PATH_MAX];
    bool agreed; /* the checks that all tasks of the step make alike have passed */
    int pending; /* leader and member still to end */
    int code;
};

/* ---- directories ----------------------------------------------------------------------------- */

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
    run->user = user_name();
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

/* ---- life ------------------------------------------------------------------------------------ */

static void finish_if_idle(struct run *run)
{
    if (--run->pending > 0)
        return;
    uv_close((uv_handle_t *)&run->term, NULL);
    uv_close((uv_handle_t *)&run->interrupt, NULL);
}

static void part_done(int code, void *arg)
{
    struct run *run = arg;

    if (code > run->code)
        run->code = code;
    finish_if_idle(run);
}

static void member_done(int code, void *arg)
{
    struct run *run = arg;

    successor_destroy(run->successor);
    run->successor = NULL;
    part_done(code, run);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct run *run = handle->data;

    if (run->member != NULL)
        member_leave(run->member, number == SIGINT ? "interrupted" : "terminated");
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

/* Options that are the same for every leader of the job. */
static void describe_lead(struct run *run)
{
    run->lead = (struct leader_options){
        .job = run->place.job,
        .restarts = run->place.restarts,
        .conf = run->conf,
        .policy = &run->policy,
        .argv = run->options.argv,
        .env = environ,
        .address = run->own_address,
        .program = paths_program(),
        .user = run->user,
        .slurm_user = run->slurm_user,
        .step = step_id(),
        .node = run->place.node,
        .nodeid = run->place.nodeid,
        .base_nodes = run->place.nodes,
        .slots = run->member_options.slots,
        .label = run->options.label,
        .fail_pattern = run->options.fail_pattern,
        .early_start = run->options.early_start,
        .mode = run->options.mode,
        .pmix = run->options.pmix,
    };
}

static void leader_done(int code, void *arg)
{
    struct run *run = arg;

    struct leader **grown = realloc(run->formers,
                                    ((size_t)run->former_count + 1) * sizeof(struct leader *));

    if (grown != NULL) {
        run->formers = grown;
        run->formers[run->former_count++] = run->leader;
    }
    run->leader = NULL;
    if (run->member != NULL)
        member_listens(run->member);
    part_done(code, run);
}

static int start_leader(struct run *run, struct error *err)
{
    struct error ignored;

    if (slurm_client_site(&run->slurm_user, &run->cluster, &ignored) != 0)
        run->slurm_user = 0;
    if (make_directories(run, err) != 0)
        return -1;
    if (getcwd(run->cwd, sizeof(run->cwd)) == NULL)
        return error_set(err, "current directory: %s", strerror(errno));
    run->own_address = strdup(run->address);
    if (run->own_address == NULL)
        return error_set(err, "out of memory");
    describe_lead(run);
    run->lead.cwd = run->cwd;
    run->lead.state_dir = run->state_dir;
    run->lead.checkpoint_dir = run->checkpoint_dir;
    run->lead.umask = umask(077);
    run->leader = leader_create(&run->loop, &run->lead, leader_done, run, err);
    if (run->leader == NULL)
        return -1;
    run->pending++;
    return 0;
}

/* ---- another node leads, and may be lost (doc/takeover.md) ----------------------------------- */

static void lead(struct link_server *server, int term, const struct vote *votes, int count,
                 void *arg)
{
    struct run *run = arg;
    struct error err = {""};

    describe_lead(run);
    /* The member may have heard more since it followed. */
    member_command(run->member, &run->command);
    run->lead.argv = run->command.argv;
    run->lead.env = run->command.env;
    run->lead.cwd = run->command.cwd;
    run->lead.umask = run->command.umask;
    run->lead.state_dir = run->command.state_dir;
    run->lead.checkpoint_dir = run->command.checkpoint_dir;
    run->lead.handover = run->command.handover;
    run->lead.server = server;
    run->lead.term = term;
    run->leader = leader_create(&run->loop, &run->lead, leader_done, run, &err);
    if (run->leader == NULL) {
        /* Out of memory. The other agents find that this node is lost, and it is. */
        log_error("%s: cannot lead: %s", run->place.node, err.text);
        exit(1);
    }
    run->pending++;
    for (int i = 0; i < count; i++)
        leader_adopt(run->leader, votes[i].link, votes[i].said);
    successor_destroy(run->successor);
    run->successor = NULL;
}

static struct successor *start_successor(struct run *run)
{
    struct error err = {""};
    struct successor *successor;

    if (run->user == NULL)
        run->user = user_name();
    /* Slurm is not asked here: its answer may take long. */
    if (run->command.address == NULL || run->user == NULL)
        return NULL;
    if (run->own_address == NULL && (run->own_address = strdup(run->command.address)) == NULL)
        return NULL;
    run->slurm_user = run->command.slurm_user;
    run->follow = (struct successor_options){
        .job = run->place.job,
        .restarts = run->place.restarts,
        .step = step_id(),
        .node = run->place.node,
        .state_dir = run->command.state_dir,
        .base_nodes = run->place.nodes,
        .slurm_user = run->slurm_user,
        .conf = run->conf,
    };
    successor = successor_create(&run->loop, &run->follow, lead, run, &err);
    if (successor == NULL)
        log_error("%s: cannot lead if the leader is lost: %s", run->place.node, err.text);
    return successor;
}

static int followed(struct member *member, void *arg)
{
    struct run *run = arg;
    const char *address;
    int port, term;

    if (run->leader != NULL || run->place.nodes < 2 || run->place.nodeid > SUCCESSORS_MAX)
        return 0;
    member_command(member, &run->command);
    member_leader(member, &address, &port, &term);
    if (run->successor == NULL)
        run->successor = start_successor(run);
    if (run->successor == NULL)
        return 0;
    successor_follow(run->successor, address, port, term);
    return successor_port(run->successor);
}

static void lost(void *arg)
{
    struct run *run = arg;

    if (run->successor != NULL)
        successor_seek(run->successor);
}

/* ELASTIC_LEADER=ADDRESS:PORT and ELASTIC_BASE=JOB.RESTARTS, from the leader that submitted this
 * job. */
static int read_leader(struct run *run, struct error *err)
{
    const char *leader = getenv("ELASTIC_LEADER"), *base = getenv("ELASTIC_BASE");
    const char *colon = leader != NULL ? strrchr(leader, ':') : NULL;
    struct member_options *m = &run->member_options;

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
    struct member_options *m = &run->member_options;
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
    m->slots = place_slots(&run->options, err);
    m->connect_timeout_ms = run->options.extension ? EXTENSION_CONNECT_MS : BASE_CONNECT_MS;
    if (m->slots < 1)
        return -1;
    if (run->options.extension) {
        if (read_leader(run, err) != 0)
            return -1;
    } else {
        /* All agents of the base check this, so that no agent waits for a leader that has refused.
         * One of them reports it. */
        if (job_policy_build(&run->policy, &run->options, run->conf, err) != 0 ||
            job_policy_check_size(&run->policy, run->place.nodes, err) != 0)
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
    if (m->base && run->place.nodeid == 0 &&
        (run->agent_handover == NULL || run->agent_handover->starts == 1)) {
        if (start_leader(run, err) != 0)
            return -1;
        m->port = leader_port(run->leader);
    }
    m->address = run->address;
    if (m->base)
        m->hooks = (struct member_hooks){.followed = followed, .lost = lost, .arg = run};
    run->member = member_create(&run->loop, m, member_done, run, err);
    if (run->member == NULL)
        return -1;
    run->pending++;
    return 0;
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
    member_destroy(run->member);
    leader_destroy(run->leader);
    for (int i = 0; i < run->former_count; i++)
        leader_destroy(run->formers[i]);
    free(run->formers);
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
    free(run.own_address);
    free(run.state_dir);
    free(run.checkpoint_dir);
    free(run.cluster);
    free(run.user);
    return code;
}
