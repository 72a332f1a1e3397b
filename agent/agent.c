/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The member, the leader and the successor of one elasticrun, and how one becomes the other
 * (agent.h, doc/internals/takeover.md). */
#include "agent/agent.h"

#include <stdlib.h>
#include <string.h>

#include "agent/successor.h"
#include "common/log.h"

struct agent {
    uv_loop_t *loop;
    const struct agent_options *options;
    struct leader_options lead;
    struct member_options member_options;
    struct leader *leader;
    struct member *member;
    struct successor *successor; /* NULL: this agent cannot follow the leader */
    struct successor_options follow;
    struct member_command command; /* of the leader before this one */
    /* Have ended, since other nodes led: work of theirs may still be in threads. */
    struct leader **formers;
    int former_count;
    char *own_address; /* by which others reach this node */
    int pending;       /* leader and member still to end */
    int code;
    void (*done)(int code, void *arg);
    void *arg;
};

static void part_done(struct agent *agent, int code)
{
    if (code > agent->code)
        agent->code = code;
    if (--agent->pending == 0)
        agent->done(agent->code, agent->arg);
}

static void member_done(int code, void *arg)
{
    struct agent *agent = arg;

    successor_destroy(agent->successor);
    agent->successor = NULL;
    part_done(agent, code);
}

static void leader_done(int code, void *arg)
{
    struct agent *agent = arg;
    struct leader **grown = realloc(agent->formers,
                                    ((size_t)agent->former_count + 1) * sizeof(*grown));

    if (grown != NULL) {
        agent->formers = grown;
        agent->formers[agent->former_count++] = agent->leader;
    }
    agent->leader = NULL;
    if (agent->member != NULL)
        member_listens(agent->member);
    part_done(agent, code);
}

/* ---- another node leads, and may be lost ----------------------------------------------------- */

static void lead(struct link_server *server, int term, const struct vote *votes, int count,
                 void *arg)
{
    struct agent *agent = arg;
    struct error err = {""};

    agent->lead = agent->options->lead;
    /* The member may have heard more since it followed. */
    member_command(agent->member, &agent->command);
    agent->lead.address = agent->own_address;
    agent->lead.slurm_user = agent->command.slurm_user;
    agent->lead.argv = agent->command.argv;
    agent->lead.env = agent->command.env;
    agent->lead.cwd = agent->command.cwd;
    agent->lead.umask = agent->command.umask;
    agent->lead.state_dir = agent->command.state_dir;
    agent->lead.checkpoint_dir = agent->command.checkpoint_dir;
    agent->lead.handover = agent->command.handover;
    agent->lead.server = server;
    agent->lead.term = term;
    agent->leader = leader_create(agent->loop, &agent->lead, leader_done, agent, &err);
    if (agent->leader == NULL) {
        /* Out of memory. The others find that this node is lost, and it is. */
        log_error("%s: cannot lead: %s", agent->lead.node, err.text);
        exit(1);
    }
    agent->pending++;
    for (int i = 0; i < count; i++)
        leader_adopt(agent->leader, votes[i].link, votes[i].said);
    successor_destroy(agent->successor);
    agent->successor = NULL;
}

static struct successor *start_successor(struct agent *agent)
{
    const struct leader_options *o = &agent->options->lead;
    struct error err = {""};
    struct successor *successor;

    if (agent->command.address == NULL || o->user == NULL)
        return NULL;
    if (agent->own_address == NULL && (agent->own_address = strdup(agent->command.address)) == NULL)
        return NULL;
    agent->follow = (struct successor_options){
        .job = o->job,
        .restarts = o->restarts,
        .step = o->step,
        .node = o->node,
        .state_dir = agent->command.state_dir,
        .base_nodes = o->base_nodes,
        /* Not asked of Slurm here: it may take its time. */
        .slurm_user = agent->command.slurm_user,
        .conf = o->conf,
    };
    successor = successor_create(agent->loop, &agent->follow, lead, agent, &err);
    if (successor == NULL)
        log_error("%s: cannot lead if the leader is lost: %s", o->node, err.text);
    return successor;
}

static int followed(struct member *member, void *arg)
{
    struct agent *agent = arg;
    const struct leader_options *o = &agent->options->lead;
    const char *address;
    int port, term;

    if (agent->leader != NULL || o->base_nodes < 2 || o->nodeid > SUCCESSORS_MAX)
        return 0;
    member_command(member, &agent->command);
    member_leader(member, &address, &port, &term);
    if (agent->successor == NULL)
        agent->successor = start_successor(agent);
    if (agent->successor == NULL)
        return 0;
    successor_follow(agent->successor, address, port, term);
    return successor_port(agent->successor);
}

static void lost(void *arg)
{
    struct agent *agent = arg;

    if (agent->successor != NULL)
        successor_seek(agent->successor);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct agent *agent_create(uv_loop_t *loop, const struct agent_options *options,
                           void (*done)(int code, void *arg), void *arg)
{
    struct agent *agent = calloc(1, sizeof(*agent));

    if (agent == NULL)
        return NULL;
    agent->loop = loop;
    agent->options = options;
    agent->member_options = options->member;
    agent->done = done;
    agent->arg = arg;
    return agent;
}

int agent_lead(struct agent *agent, const struct leader_options *options, struct error *err)
{
    agent->own_address = strdup(options->address);
    if (agent->own_address == NULL)
        return error_set(err, "out of memory");
    agent->lead = *options;
    agent->lead.address = agent->own_address;
    agent->leader = leader_create(agent->loop, &agent->lead, leader_done, agent, err);
    if (agent->leader == NULL)
        return -1;
    agent->member_options.port = leader_port(agent->leader);
    agent->pending++;
    return 0;
}

int agent_join(struct agent *agent, struct error *err)
{
    if (agent->member_options.base)
        agent->member_options.hooks = (struct member_hooks){
            .followed = followed, .lost = lost, .arg = agent};
    agent->member = member_create(agent->loop, &agent->member_options, member_done, agent, err);
    if (agent->member == NULL)
        return -1;
    agent->pending++;
    return 0;
}

void agent_leave(struct agent *agent, const char *reason)
{
    if (agent->member != NULL)
        member_leave(agent->member, reason);
}

void agent_notice(struct agent *agent)
{
    if (agent != NULL && agent->member != NULL)
        member_notice(agent->member);
}

void agent_pass_signal(struct agent *agent, int number)
{
    if (agent->member != NULL)
        member_pass_signal(agent->member, number);
}

void agent_destroy(struct agent *agent)
{
    if (agent == NULL)
        return;
    member_destroy(agent->member);
    leader_destroy(agent->leader);
    for (int i = 0; i < agent->former_count; i++)
        leader_destroy(agent->formers[i]);
    free(agent->formers);
    free(agent->own_address);
    free(agent);
}
