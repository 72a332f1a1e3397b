/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The member, the leader and the successor of one elasticrun, and how one becomes the other
 * (roles.h, doc/internals/takeover.md). */
#include "agent/roles.h"

#include <stdlib.h>
#include <string.h>

#include "agent/successor.h"
#include "common/log.h"

struct roles {
    uv_loop_t *loop;
    const struct roles_options *options;
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

static void part_done(struct roles *roles, int code)
{
    if (code > roles->code)
        roles->code = code;
    if (--roles->pending == 0)
        roles->done(roles->code, roles->arg);
}

static void member_done(int code, void *arg)
{
    struct roles *roles = arg;

    successor_destroy(roles->successor);
    roles->successor = NULL;
    part_done(roles, code);
}

static void leader_done(int code, void *arg)
{
    struct roles *roles = arg;
    struct leader **grown = realloc(roles->formers,
                                    ((size_t)roles->former_count + 1) * sizeof(*grown));

    if (grown != NULL) {
        roles->formers = grown;
        roles->formers[roles->former_count++] = roles->leader;
    }
    roles->leader = NULL;
    if (roles->member != NULL)
        member_listens(roles->member);
    part_done(roles, code);
}

/* ---- another node leads, and may be lost ----------------------------------------------------- */

static void lead(struct link_server *server, int term, const struct vote *votes, int count,
                 void *arg)
{
    struct roles *roles = arg;
    struct error err = {""};

    roles->lead = roles->options->lead;
    /* The member may have heard more since it followed. */
    member_command(roles->member, &roles->command);
    roles->lead.address = roles->own_address;
    roles->lead.slurm_user = roles->command.slurm_user;
    roles->lead.argv = roles->command.argv;
    roles->lead.env = roles->command.env;
    roles->lead.cwd = roles->command.cwd;
    roles->lead.umask = roles->command.umask;
    roles->lead.state_dir = roles->command.state_dir;
    roles->lead.checkpoint_dir = roles->command.checkpoint_dir;
    roles->lead.handover = roles->command.handover;
    roles->lead.server = server;
    roles->lead.term = term;
    roles->leader = leader_create(roles->loop, &roles->lead, leader_done, roles, &err);
    if (roles->leader == NULL) {
        /* Out of memory. The others find that this node is lost, and it is. */
        log_error("%s: cannot lead: %s", roles->lead.node, err.text);
        exit(1);
    }
    roles->pending++;
    for (int i = 0; i < count; i++)
        leader_adopt(roles->leader, votes[i].link, votes[i].said);
    successor_destroy(roles->successor);
    roles->successor = NULL;
}

static struct successor *start_successor(struct roles *roles)
{
    const struct leader_options *o = &roles->options->lead;
    struct error err = {""};
    struct successor *successor;

    if (roles->command.address == NULL || o->user == NULL)
        return NULL;
    if (roles->own_address == NULL && (roles->own_address = strdup(roles->command.address)) == NULL)
        return NULL;
    roles->follow = (struct successor_options){
        .job = o->job,
        .restarts = o->restarts,
        .step = o->step,
        .node = o->node,
        .state_dir = roles->command.state_dir,
        .base_nodes = o->base_nodes,
        /* Not asked of Slurm here: it may take its time. */
        .slurm_user = roles->command.slurm_user,
        .conf = o->conf,
    };
    successor = successor_create(roles->loop, &roles->follow, lead, roles, &err);
    if (successor == NULL)
        log_error("%s: cannot lead if the leader is lost: %s", o->node, err.text);
    return successor;
}

static int followed(struct member *member, void *arg)
{
    struct roles *roles = arg;
    const struct leader_options *o = &roles->options->lead;
    const char *address;
    int port, term;

    if (roles->leader != NULL || o->base_nodes < 2 || o->nodeid > SUCCESSORS_MAX)
        return 0;
    member_command(member, &roles->command);
    member_leader(member, &address, &port, &term);
    if (roles->successor == NULL)
        roles->successor = start_successor(roles);
    if (roles->successor == NULL)
        return 0;
    successor_follow(roles->successor, address, port, term);
    return successor_port(roles->successor);
}

static void lost(void *arg)
{
    struct roles *roles = arg;

    if (roles->successor != NULL)
        successor_seek(roles->successor);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct roles *roles_create(uv_loop_t *loop, const struct roles_options *options,
                           void (*done)(int code, void *arg), void *arg)
{
    struct roles *roles = calloc(1, sizeof(*roles));

    if (roles == NULL)
        return NULL;
    roles->loop = loop;
    roles->options = options;
    roles->member_options = options->member;
    roles->done = done;
    roles->arg = arg;
    return roles;
}

int roles_lead(struct roles *roles, const struct leader_options *options, struct error *err)
{
    roles->own_address = strdup(options->address);
    if (roles->own_address == NULL)
        return error_set(err, "out of memory");
    roles->lead = *options;
    roles->lead.address = roles->own_address;
    roles->leader = leader_create(roles->loop, &roles->lead, leader_done, roles, err);
    if (roles->leader == NULL)
        return -1;
    roles->member_options.port = leader_port(roles->leader);
    roles->pending++;
    return 0;
}

int roles_join(struct roles *roles, struct error *err)
{
    if (roles->member_options.base)
        roles->member_options.hooks = (struct member_hooks){
            .followed = followed, .lost = lost, .arg = roles};
    roles->member = member_create(roles->loop, &roles->member_options, member_done, roles, err);
    if (roles->member == NULL)
        return -1;
    roles->pending++;
    return 0;
}

void roles_leave(struct roles *roles, const char *reason)
{
    if (roles->member != NULL)
        member_leave(roles->member, reason);
}

void roles_destroy(struct roles *roles)
{
    if (roles == NULL)
        return;
    member_destroy(roles->member);
    leader_destroy(roles->leader);
    for (int i = 0; i < roles->former_count; i++)
        leader_destroy(roles->formers[i]);
    free(roles->formers);
    free(roles->own_address);
    free(roles);
}
