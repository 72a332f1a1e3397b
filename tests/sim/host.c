/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nodes, and the agents on them: what elasticrun's main() and the process that watches it do. */
#include <signal.h>

#include "agent/agent.h"
#include "agent/member/reclaim.h"
#include "common/link.h"
#include "tests/sim/sim.h"

#define SRUN_TIMEOUT         (10 * SECOND)
#define BASE_CONNECT_MS      60000 /* as in agent/main.c */
#define EXTENSION_CONNECT_MS 10000
#define AGAIN_MAX            3 /* times that an agent which was killed is started again */

struct host *host_now;

static struct node *nodes;
static int count, next_number;
static struct host *hosts;

/* ---- nodes ----------------------------------------------------------------------------------- */

void host_begin(int nodes_wanted)
{
    static int room;

    if (nodes_wanted > room) {
        nodes = realloc(nodes, (size_t)nodes_wanted * sizeof(*nodes));
        room = nodes_wanted;
    }
    MUST(nodes != NULL);
    memset(nodes, 0, (size_t)nodes_wanted * sizeof(*nodes));
    count = nodes_wanted;
    hosts = NULL;
    next_number = 0;
    for (int i = 0; i < count; i++) {
        nodes[i].number = i;
        nodes[i].up = true;
        snprintf(nodes[i].name, sizeof(nodes[i].name), "n%d", i + 1);
    }
}

int node_count(void)
{
    return count;
}

struct node *node_at(int number)
{
    return number >= 0 && number < count ? &nodes[number] : NULL;
}

struct node *node_named(const char *name)
{
    return name != NULL && name[0] == 'n' ? node_at(atoi(name + 1) - 1) : NULL;
}

struct host *host_of_loop(const uv_loop_t *loop)
{
    return loop->data;
}

struct host *host_list(void)
{
    return hosts;
}

bool host_alive(const struct host *host)
{
    return host->state != HOST_ENDED;
}

const char *host_name(const struct host *host)
{
    return host != NULL ? host->node->name : "slurm";
}

/* ---- an agent's life ------------------------------------------------------------------------- */

static void finish(void *arg)
{
    struct host *host = arg;

    if (host->waiting > 0 || network_busy(host)) {
        clock_in(20 * MS, NULL, finish, host);
        return;
    }
    if (host->state == HOST_ENDED)
        return;
    host_now = host;
    agent_destroy(host->agent);
    host_now = NULL;
    host->agent = NULL;
    trace("%-5s ends with %d", host_name(host), host->code);
    host_end(host, false);
}

static void on_done(int code, void *arg)
{
    struct host *host = arg;

    host->done = true;
    host->done_at = clock_now();
    host->code = code;
    clock_in(0, NULL, finish, host);
}

static const char *const command[] = {"train", NULL};
static const char *const environment[] = {"SLURM_STEP_ID=0", NULL};

static const char *library(void)
{
    return "/nowhere/libelastic.so.0";
}

static void describe(struct host *host)
{
    struct agent_options *o = calloc(1, sizeof(*o));
    const struct job *base = host->base ? host->job : host->job->of;

    MUST(o != NULL);
    host->agent_options = o;
    o->lead = (struct leader_options){
        .job = base->id,
        .restarts = host->restarts_of_base,
        .conf = setup_conf,
        .policy = host->job->training->policy,
        .argv = (char *const *)command,
        .env = (char *const *)environment,
        .program = "/nowhere/elasticrun",
        .user = "u",
        .step = "0",
        .node = host->node->name,
        .nodeid = host->nodeid,
        .base_nodes = base->count,
        .world_nodes = base->count,
        .slots = host->job->training->slots,
        .early_start = host->job->training->early_start,
        .mode = host->job->training->mode,
    };
    o->member = (struct member_options){
        .node = host->node->name,
        .job = host->job->id,
        .restarts = host->job->restarts,
        .nodeid = host->nodeid,
        .base = host->base,
        .slots = host->job->training->slots,
        .base_job = base->id,
        .base_restarts = host->restarts_of_base,
        .address = base->nodes[0]->name,
        .connect_timeout_ms = host->base ? BASE_CONNECT_MS : EXTENSION_CONNECT_MS,
        .conf = setup_conf,
        .program = "/nowhere/elasticrun",
        .lib = library,
        .agent_handover = host->handover,
    };
}

static void take_leader_address(struct host *host)
{
    struct member_options *member = &host->agent_options->member;
    struct error err;

    MUST(leader_places_parse(&host->leaders, host->job->leader, &err) == 0);
    member->leaders = &host->leaders;
    member->address = host->leaders.list[0].address;
    member->port = host->leaders.list[0].port;
}

static int begin_leader(struct host *host, struct error *err)
{
    struct leader_options lead = host->agent_options->lead;

    lead.address = host->node->name;
    lead.cwd = "/";
    lead.state_dir = "/nowhere";
    lead.checkpoint_dir = "/nowhere";
    lead.umask = 077;
    return agent_lead(host->agent, &lead, err);
}

static void never_began(void *arg)
{
    host_end(arg, false);
}

/* srun cannot ask slurmctld for the step. */
static bool gets_no_step(const struct host *host)
{
    return !host->base && setup_now->slurm.slow == SLOW_SRUN && !slurm_answers(host->node);
}

static void begin(void *arg)
{
    struct host *host = arg;
    struct error err = {""};

    if (gets_no_step(host)) {
        host->code = 1;
        clock_in(SRUN_TIMEOUT, NULL, never_began, host);
        return;
    }
    if (host->job->state != SLURM_RUNNING &&
        (host->base || setup_now->slurm.slow != SLOW_AGENT)) { /* no step of it begins any more */
        clock_in(0, NULL, never_began, host);
        return;
    }
    describe(host);
    if (!host->base)
        take_leader_address(host);
    host->agent = agent_create(&host->loop, host->agent_options, on_done, host);
    MUST(host->agent != NULL);
    trace("%-5s elasticrun starts (job %u, %s)", host_name(host), host->job->id,
          host->base ? "base" : "extension");
    if (host->base && host->nodeid == 0 && host->handover->starts == 1)
        MUST(begin_leader(host, &err) == 0);
    MUST(agent_join(host->agent, &err) == 0);
}

struct host *host_start(struct node *node, struct job *job, int nodeid,
                        struct agent_handover *handover)
{
    struct host *host = calloc(1, sizeof(*host));
    bool slow = !job->base && setup_now->slurm.slow != SLOW_NOTHING &&
                setup_now->slurm.slow != SLOW_NETWORK;

    MUST(host != NULL);
    host->loop.data = host;
    host->number = next_number++;
    host->node = node;
    host->job = job;
    host->restarts = job->restarts;
    host->restarts_of_base = job->base ? job->restarts : job->of_restarts;
    host->nodeid = nodeid;
    host->base = job->base;
    host->handover = handover;
    host->term = -1;
    host->state = node->frozen ? HOST_STOPPED : HOST_RUNNING;
    host->next_on_node = node->hosts;
    node->hosts = host;
    host->next = hosts;
    hosts = host;
    clock_in(chance_between(5 * MS, 300 * MS) + (slow ? setup_now->slurm.slow_time : 0), host,
             begin, host);
    return host;
}

/* ---- how it ends ----------------------------------------------------------------------------- */

void host_end(struct host *host, bool with_node)
{
    struct host **place;

    if (host->state == HOST_ENDED)
        return;
    host->state = HOST_ENDED;
    network_host_gone(host, with_node);
    workers_host_gone(host);
    for (place = &host->node->hosts; *place != host; place = &(*place)->next_on_node)
        ;
    *place = host->next_on_node;
    for (place = &hosts; *place != host; place = &(*place)->next)
        ;
    *place = host->next;
    slurm_host_ended(host);
    training_changed();
}

struct again {
    struct node *node;
    struct job *job;
    uint32_t restarts;
    int nodeid;
    struct agent_handover *handover;
};

static void start_again(void *arg)
{
    struct again *again = arg;

    if (again->node->up && again->job->state == SLURM_RUNNING &&
        again->job->restarts == again->restarts) {
        again->handover->starts++;
        host_start(again->node, again->job, again->nodeid, again->handover);
    }
    free(again);
}

static bool is_watched(const struct host *host)
{
    return host->handover != NULL && host->handover->known && host->handover->starts <= AGAIN_MAX &&
           !host->done;
}

void host_kill(struct host *host)
{
    struct again *again;

    if (host->state == HOST_ENDED)
        return;
    trace("%-5s agent is killed", host_name(host));
    host->code = 128 + SIGKILL;
    if (host->base && is_watched(host)) {
        MUST((again = calloc(1, sizeof(*again))) != NULL);
        *again = (struct again){host->node, host->job, host->restarts, host->nodeid,
                                host->handover};
        host->handover = NULL; /* its task has not ended */
        clock_in((uint64_t)setup_now->heartbeat * SECOND, NULL, start_again, again);
    }
    host_end(host, false);
}

static void on_sigterm(void *arg)
{
    struct host *host = arg;

    if (host->agent != NULL && !host->done)
        agent_leave(host->agent, "terminated");
}

void host_signal(struct host *host)
{
    if (host->state != HOST_ENDED && host->agent != NULL)
        clock_in(0, host, on_sigterm, host);
}

static void on_notice(void *arg)
{
    struct host *host = arg;

    if (host->agent != NULL && !host->done)
        agent_notice(host->agent);
}

void host_notice(struct host *host)
{
    if (host->state != HOST_ENDED && host->agent != NULL)
        clock_in(0, host, on_notice, host);
}

void host_stop(struct host *host)
{
    if (host->state == HOST_RUNNING) {
        host->state = HOST_STOPPED;
        trace("%-5s agent is stopped", host_name(host));
    }
}

void host_continue(struct host *host)
{
    if (host->state != HOST_STOPPED || host->node->frozen)
        return;
    host->state = HOST_RUNNING;
    trace("%-5s agent goes on", host_name(host));
    clock_resume(host);
}

/* ---- what happens to nodes ------------------------------------------------------------------- */

void node_crash(struct node *node)
{
    if (!node->up)
        return;
    trace("%-5s node crashes", node->name);
    node->up = false;
    node->frozen = false;
    while (node->hosts != NULL) {
        struct host *host = node->hosts;

        host->code = 128 + SIGKILL;
        host_end(host, true);
    }
    slurm_node_changed(node);
    training_changed();
}

void node_return(struct node *node)
{
    if (node->up)
        return;
    trace("%-5s node comes back", node->name);
    node->up = true;
    slurm_node_changed(node);
    network_changed();
    training_changed();
}

void node_freeze(struct node *node, bool frozen)
{
    if (!node->up || node->frozen == frozen)
        return;
    trace("%-5s node %s", node->name, frozen ? "stops" : "goes on");
    node->frozen = frozen;
    for (struct host *host = node->hosts; host != NULL; host = host->next_on_node)
        frozen ? host_stop(host) : host_continue(host);
    training_changed();
}

void node_cut(struct node *node, int island)
{
    if (node->island == island)
        return;
    trace("%-5s node is %s", node->name, island != 0 ? "cut off" : "reached again");
    node->island = island;
    network_changed();
    slurm_answer_changed();
    slurm_node_changed(node);
    training_changed();
}

static void notice(void *arg)
{
    struct host *host = arg;
    uint64_t at = host->node->taken_at;

    if (host->reclaim != NULL)
        host->reclaim->notice("the scenario", at > 0 ? (double)(at - clock_now()) / SECOND : -1,
                              host->reclaim_arg);
}

static void advice(void *arg)
{
    struct host *host = arg;

    if (host->reclaim != NULL)
        host->reclaim->advice("the scenario", host->reclaim_arg);
}

static void silence(void *arg)
{
    struct host *host = arg;

    if (host->reclaim != NULL)
        host->reclaim->silence("nobody will say (reclaim)", false, host->reclaim_arg);
}

/* Its metadata service has something to tell each agent there. */
static void tell(struct node *node, void (*told)(void *arg))
{
    for (struct host *host = node->hosts; host != NULL; host = host->next_on_node)
        if (host->reclaim != NULL)
            clock_in(0, host, told, host);
}

static void take(void *arg)
{
    struct node *node = arg;

    if (!node->up || node->taken_at != clock_now())
        return;
    fault_hurt(node); /* another job may be there by now */
    node_crash(node);
    cloud_taken(node);
}

void node_reclaim(struct node *node, int left)
{
    trace("%-5s node is about to be taken away", node->name);
    node->noticed = true;
    node->taken_at = left > 0 ? clock_now() + (uint64_t)left * SECOND : 0;
    if (left > 0)
        clock_at(node->taken_at, NULL, take, node);
    tell(node, notice);
}

void node_advise(struct node *node)
{
    trace("%-5s node had better be replaced", node->name);
    tell(node, advice);
}

void node_mute(struct node *node)
{
    trace("%-5s node has no metadata service", node->name);
    tell(node, silence);
}
