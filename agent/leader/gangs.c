/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Gangs of replicas: what is told to their nodes, and what these say (gangs.h). */
#include "agent/leader/gangs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/leader/leader_internal.h"
#include "agent/leader/roster.h"
#include "lib/json_get.h"
#include "lib/role_needs.h"
#include "lib/world.h"

struct gang {
    int replica, start, tasks;
    struct slots_gang needs;
    char *name; /* "collector-3" */
    const struct role *role;
    struct world *world;
    int *members; /* the id of each node of the world */
    int told;     /* so many nodes have been told to start it, from the first */
    int *ports;   /* of each task as many as the role has; 0: not known */
    char *owner;  /* name of the replica that owns it; NULL: none does */
    int owner_port;
    int64_t version;  /* of its shard; 0: it has none */
    json_object *run; /* the command of its shard; NULL: that of the role … */
    int64_t program;  /* … and its number */
    struct {
        int64_t version;
        int failures;
        char why[320];
    } tried; /* what it could not load */
    struct gang *next;
};

#define BUCKETS 1024 /* a job may have 10,000 replicas of a role */

struct gangs {
    const struct roles *roles;
    struct gang *buckets[BUCKETS]; /* by the id of the replica */
    struct {
        char *path; /* NULL: the role is no shard, or has no models so far */
        int64_t version;
        json_object *run;
        int64_t program;
    } shards[ROLES_MAX]; /* by role */
};

/* ---- one gang -------------------------------------------------------------------------------- */

static void gang_free(struct gang *gang)
{
    world_destroy(gang->world);
    free(gang->members);
    free(gang->ports);
    free(gang->name);
    free(gang->owner);
    json_object_put(gang->run);
    free(gang);
}

static struct gang *find(const struct gangs *gangs, const struct replica *replica)
{
    struct gang *each = gangs->buckets[replica->id % BUCKETS];

    while (each != NULL && (each->replica != replica->id || each->start != replica->start))
        each = each->next;
    return each;
}

static int place_of(const struct gang *gang, int node)
{
    for (int i = 0; i < gang->world->node_count; i++)
        if (gang->members[i] == node)
            return i;
    return -1;
}

static int count_ports(const struct role *role)
{
    return role->ports != NULL ? (int)strings_count(role->ports) : 0;
}

/* Tasks of a node follow each other (lib/slots). */
static int count_nodes(const struct replica *replica, int tasks)
{
    int count = 0;

    for (int i = 0; i < tasks; i++)
        count += i == 0 || replica->tasks[i].node != replica->tasks[i - 1].node;
    return count;
}

/* False: out of memory, or a node has just gone. */
static bool fill_world(struct leader *leader, struct gang *gang, const struct replica *replica)
{
    int place = -1, first = 0;

    for (int i = 0; i <= gang->tasks; i++) {
        const struct leader_member *m;

        if (i > 0 && i < gang->tasks && replica->tasks[i].node == replica->tasks[i - 1].node)
            continue;
        if (place >= 0) {
            m = roster_by_room(leader, gang->members[place]);
            if (m == NULL || world_set_node(gang->world, place, m->part->node, i - first) != 0)
                return false;
        }
        if (i == gang->tasks)
            break;
        gang->members[++place] = replica->tasks[i].node;
        first = i;
        m = roster_by_room(leader, replica->tasks[i].node);
        if (m == NULL ||
            (place == 0 && (gang->world->master_addr = strdup(m->part->address)) == NULL))
            return false;
    }
    world_fold(gang->world);
    return true;
}

static struct gang *gang_new(struct leader *leader, const struct gangs *gangs,
                             const struct replica *replica)
{
    struct gang *gang = calloc(1, sizeof(*gang));
    int nodes;

    if (gang == NULL)
        return NULL;
    gang->role = &gangs->roles->list[replica->role];
    gang->replica = replica->id;
    gang->start = replica->start;
    gang->tasks = replica->gang->tasks;
    gang->needs = *replica->gang;
    nodes = count_nodes(replica, gang->tasks);
    gang->world = world_create(replica->start, nodes);
    gang->members = calloc((size_t)nodes, sizeof(*gang->members));
    gang->ports = calloc((size_t)(gang->tasks * count_ports(gang->role)) + 1, sizeof(*gang->ports));
    gang->name = strdup(replica_name(gang->role, replica).text);
    if (gang->world == NULL || gang->members == NULL || gang->ports == NULL || gang->name == NULL ||
        (gang->world->kind = strdup("start")) == NULL ||
        (gang->world->reason = strdup(gang->name)) == NULL || !fill_world(leader, gang, replica)) {
        gang_free(gang);
        return NULL;
    }
    return gang;
}

/* ---- to members ------------------------------------------------------------------------------ */

static json_object *task_message(const char *type, int replica, int start)
{
    json_object *msg = leader_message(type, -1);

    json_object_object_add(msg, "replica", json_object_new_int(replica));
    json_object_object_add(msg, "start", json_object_new_int(start));
    return msg;
}

static void send_start(struct leader *leader, const struct gangs *gangs, const struct gang *gang,
                       int place)
{
    const char *models = gangs->shards[gang->role - gangs->roles->list].path;
    struct leader_member *m = roster_by_room(leader, gang->members[place]);
    json_object *msg = world_to_json(gang->world);

    json_object_object_add(msg, "t", json_object_new_string("task_start"));
    json_object_object_add(msg, "replica", json_object_new_int(gang->replica));
    json_object_object_add(msg, "start", json_object_new_int(gang->start));
    json_object_object_add(msg, "role", json_object_new_string(gang->role->name));
    json_object_object_add(msg, "name", json_object_new_string(gang->name));
    json_object_object_add(msg, "node_index", json_object_new_int(place));
    role_needs_add(msg, &gang->needs);
    if (gang->owner != NULL) {
        json_object_object_add(msg, "owner", json_object_new_string(gang->owner));
        json_object_object_add(msg, "owner_port", json_object_new_int(gang->owner_port));
    }
    if (models != NULL) {
        json_object_object_add(msg, "models", json_object_new_string(models));
        json_object_object_add(msg, "version", json_object_new_int64(gang->version));
        json_object_object_add(msg, "program", json_object_new_int64(gang->program));
    }
    if (gang->run != NULL)
        json_object_object_add(msg, "run", json_object_get(gang->run));
    if (m != NULL)
        leader_send(m, msg);
    else
        json_object_put(msg); /* it has just gone, which is about to be said */
}

/* Its first node knows of it, or hears of it now. NULL: out of memory. */
static struct gang *gang_add(struct leader *leader, struct gangs *gangs,
                             const struct replica *replica)
{
    struct gang *gang = gang_new(leader, gangs, replica), **bucket;

    if (gang == NULL)
        return NULL;
    bucket = &gangs->buckets[replica->id % BUCKETS];
    gang->next = *bucket;
    *bucket = gang;
    gang->told = 1;
    return gang;
}

int gangs_start(struct leader *leader, struct gangs *gangs, const struct replica *replica,
                const struct replica *owner)
{
    struct gang *gang = gang_add(leader, gangs, replica);
    const struct gang *of_owner = owner != NULL ? find(gangs, owner) : NULL;

    if (gang == NULL)
        return -1;
    if (of_owner != NULL) {
        gang->owner = strdup(of_owner->name);
        gang->owner_port = count_ports(of_owner->role) > 0 ? of_owner->ports[0] : 0;
    }
    gang->version = gangs->shards[replica->role].version;
    gang->run = json_object_get(gangs->shards[replica->role].run);
    gang->program = gangs->shards[replica->role].program;
    send_start(leader, gangs, gang, 0);
    return 0;
}

int gangs_adopt(struct leader *leader, struct gangs *gangs, const struct replica *replica,
                json_object *said)
{
    struct gang *gang = gang_add(leader, gangs, replica);

    if (gang == NULL)
        return -1;
    json_get_int(said, "version", 0, INT64_MAX, &gang->version);
    json_get_int(said, "program", 0, INT64_MAX, &gang->program);
    gangs_running(gangs, replica, replica->tasks[0].node, said);
    return 0;
}

bool gangs_end(struct leader *leader, struct gangs *gangs, const struct replica *replica, int node,
               double seconds)
{
    struct gang *gang = find(gangs, replica);
    struct leader_member *m = roster_by_room(leader, node);
    json_object *msg;

    if (gang == NULL || place_of(gang, node) >= gang->told)
        return false;
    msg = task_message(seconds > 0 ? "task_drain" : "task_kill", replica->id, replica->start);
    if (seconds > 0) {
        json_object_object_add(msg, "signal", json_object_new_int(gang->role->drain.signal));
        json_object_object_add(msg, "within", json_object_new_double(seconds));
    }
    if (m != NULL)
        leader_send(m, msg);
    else
        json_object_put(msg);
    return true;
}

/* ---- from members ---------------------------------------------------------------------------- */

void gangs_port(struct leader *leader, struct gangs *gangs, const struct replica *replica,
                json_object *msg)
{
    struct gang *gang = find(gangs, replica);
    int64_t port;

    /* Of a replica that is to end the rest is not started any more. */
    if (gang == NULL || gang->told > 1 || replica->state != REPLICA_STARTING ||
        !json_get_int(msg, "port", 1, 65535, &port))
        return;
    gang->world->master_port = (int)port;
    for (int place = 1; place < gang->world->node_count; place++)
        send_start(leader, gangs, gang, place);
    gang->told = gang->world->node_count;
}

void gangs_running(struct gangs *gangs, const struct replica *replica, int node, json_object *msg)
{
    struct gang *gang = find(gangs, replica);
    int place = gang != NULL ? place_of(gang, node) : -1, count, first;
    json_object *tasks;

    if (place < 0 || !json_object_object_get_ex(msg, "ports", &tasks) ||
        !json_object_is_type(tasks, json_type_array))
        return;
    count = count_ports(gang->role);
    first = world_first_rank(gang->world, place);
    for (int i = 0; i < gang->world->nodes[place].slots; i++) {
        json_object *ports = json_object_array_get_idx(tasks, (size_t)i);

        for (int port = 0; port < count && json_object_is_type(ports, json_type_array); port++) {
            int number = json_object_get_int(json_object_array_get_idx(ports, (size_t)port));

            gang->ports[(first + i) * count + port] = number > 0 && number < 65536 ? number : 0;
        }
    }
}

int gangs_port_of(const struct gangs *gangs, const struct replica *replica, int task, int port)
{
    const struct gang *gang = find(gangs, replica);

    return gang != NULL ? gang->ports[task * count_ports(gang->role) + port] : 0;
}

int gangs_set_shard(struct gangs *gangs, int role, const struct gangs_shard *shard)
{
    char *copy = strdup(shard->path);

    if (copy == NULL)
        return -1;
    free(gangs->shards[role].path);
    json_object_put(gangs->shards[role].run);
    gangs->shards[role].path = copy;
    gangs->shards[role].version = shard->version;
    gangs->shards[role].program = shard->program;
    gangs->shards[role].run = json_object_get(shard->run);
    return 0;
}

int64_t gangs_version_of(const struct gangs *gangs, const struct replica *replica)
{
    const struct gang *gang = find(gangs, replica);

    return gang != NULL ? gang->version : 0;
}

int64_t gangs_program_of(const struct gangs *gangs, const struct replica *replica)
{
    const struct gang *gang = find(gangs, replica);

    return gang != NULL ? gang->program : 0;
}

void gangs_loaded(struct gangs *gangs, const struct replica *replica, json_object *msg)
{
    struct gang *gang = find(gangs, replica);
    const char *why = json_get_string(msg, "text");
    int64_t version = 0, failures = 0;

    if (gang == NULL)
        return;
    if (json_get_int(msg, "version", 1, INT64_MAX, &version))
        gang->version = version;
    if (!json_get_int(msg, "failures", 1, INT32_MAX, &failures))
        return;
    gang->tried.failures += gang->tried.failures < INT32_MAX;
    json_get_int(msg, "tried", 1, INT64_MAX, &gang->tried.version);
    snprintf(gang->tried.why, sizeof(gang->tried.why), "%s", why != NULL ? why : "");
    error_clean(gang->tried.why);
}

struct gangs_tried gangs_tried(const struct gangs *gangs, const struct replica *replica)
{
    const struct gang *gang = find(gangs, replica);

    return gang != NULL
               ? (struct gangs_tried){gang->tried.version, gang->tried.failures, gang->tried.why}
               : (struct gangs_tried){0};
}

/* ---- life ------------------------------------------------------------------------------------ */

static void prune(struct gang **bucket, const struct reconcile *reconcile)
{
    for (struct gang **each = bucket; *each != NULL;) {
        struct gang *gang = *each;
        const struct replica *replica = reconcile_find(reconcile, gang->replica);

        if (replica != NULL && replica->start == gang->start && replica->state != REPLICA_WANTED) {
            each = &gang->next;
            continue;
        }
        *each = gang->next;
        gang_free(gang);
    }
}

void gangs_prune(struct gangs *gangs, const struct reconcile *reconcile)
{
    for (int i = 0; i < BUCKETS; i++)
        prune(&gangs->buckets[i], reconcile);
}

struct gangs *gangs_create(const struct roles *roles)
{
    struct gangs *gangs = calloc(1, sizeof(*gangs));

    if (gangs != NULL)
        gangs->roles = roles;
    return gangs;
}

void gangs_destroy(struct gangs *gangs)
{
    if (gangs == NULL)
        return;
    for (int i = 0; i < BUCKETS; i++)
        while (gangs->buckets[i] != NULL) {
            struct gang *gang = gangs->buckets[i];

            gangs->buckets[i] = gang->next;
            gang_free(gang);
        }
    for (int i = 0; i < ROLES_MAX; i++) {
        free(gangs->shards[i].path);
        json_object_put(gangs->shards[i].run);
    }
    free(gangs);
}
