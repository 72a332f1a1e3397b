/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What no key of a job file alone can tell: who leads, who waits for whom, ports, placeholders, and
 * what fits on a node (roles.h, roles_private.h). */
#include "lib/roles_private.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/s3_place.h"
#include "lib/text.h"

#define HANDOVER_MIN 120 /* seconds */

#define PLACEHOLDER_MAX 64

/* ---- placeholders ---------------------------------------------------------------------------- */

/* {word} or {word:name} in an argument. {{word}} stands for the text {word}; other braces are what
 * they are. */
struct placeholder {
    const char *begin, *end; /* with its braces */
    char name[PLACEHOLDER_MAX];
    bool quoted; /* in two pairs of braces */
};

/* The one that begins at text, which is a brace. */
static bool placeholder_at(const char *text, struct placeholder *found)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-:";
    int braces = text[1] == '{' ? 2 : 1;
    size_t len = strspn(text + braces, letters);

    if (len == 0 || len >= sizeof(found->name) || text[braces] < 'a' || text[braces] > 'z' ||
        strncmp(text + braces + len, "}}", (size_t)braces) != 0)
        return false;
    found->begin = text;
    found->end = text + len + 2 * (size_t)braces;
    found->quoted = braces == 2;
    memcpy(found->name, text + braces, len);
    found->name[len] = '\0';
    return true;
}

static bool next_placeholder(const char *text, struct placeholder *found)
{
    for (text = strchr(text, '{'); text != NULL; text = strchr(text + 1, '{')) {
        if (placeholder_at(text, found))
            return true;
    }
    return false;
}

static int find_port(const struct role *role, const char *name)
{
    for (int i = 0; role->ports != NULL && role->ports[i] != NULL; i++) {
        if (strcmp(role->ports[i], name) == 0)
            return i;
    }
    return -1;
}

/* The index of the port that a placeholder names; -1: it names none that is there. */
static int port_of(const struct role *role, const char *name)
{
    if (strcmp(name, "port") == 0)
        return role->ports != NULL ? 0 : -1;
    return strncmp(name, "port:", 5) == 0 ? find_port(role, name + 5) : -1;
}

char *role_argument(const struct role *role, const char *text, const struct role_task *task)
{
    struct placeholder found;
    char *result = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&result, &size);

    if (out == NULL)
        return NULL;
    while (next_placeholder(text, &found)) {
        int port = port_of(role, found.name);

        fwrite(text, 1, (size_t)(found.begin - text), out);
        if (found.quoted)
            fprintf(out, "{%s}", found.name);
        else if (strcmp(found.name, "replica") == 0)
            fputs(task->replica, out);
        else if (strcmp(found.name, "task") == 0)
            fprintf(out, "%d", task->task);
        else if (strcmp(found.name, "models") == 0 && task->models != NULL)
            fputs(task->models, out);
        else if (strcmp(found.name, "shard") == 0)
            fprintf(out, "shard_%d", role->shards.number);
        else if (port >= 0)
            fprintf(out, "%d", task->ports[port]);
        text = found.end;
    }
    fputs(text, out);
    if (fclose(out) == 0)
        return result;
    free(result);
    return NULL;
}

static const char *port_names(const struct role *role, char *buf, size_t size)
{
    buf[0] = '\0';
    for (int i = 0; role->ports != NULL && role->ports[i] != NULL; i++)
        text_append(buf, size, "%s%s", i > 0 ? ", " : "", role->ports[i]);
    return buf;
}

static int check_placeholder(const struct roles_reader *reader, const struct roles_part *part,
                             const struct role *role, const char *name)
{
    bool port = strcmp(name, "port") == 0 || strncmp(name, "port:", 5) == 0;
    bool shards = strcmp(name, "models") == 0 || strcmp(name, "shard") == 0;
    bool known = port || strcmp(name, "replica") == 0 || strcmp(name, "task") == 0;
    char names[640];

    if (role->kind == ROLE_WORLD && known)
        return roles_fail(reader, part,
                          "a role of kind world has no {%s}; leave it out, or write {{%s}} for "
                          "that text",
                          name, name);
    if (role->kind == ROLE_WORLD)
        return 0;
    if (shards && role->kind != ROLE_SHARDS)
        return roles_fail(reader, part,
                          "only a role of kind shards has {%s}; write {{%s}} for that "
                          "text",
                          name, name);
    if (shards)
        return 0;
    if (!known)
        return roles_fail(reader, part,
                          "there is no {%s}; write {port}, {port:NAME}, {replica} or {task}, or "
                          "{{%s}} for that text",
                          name, name);
    if (!port || port_of(role, name) >= 0)
        return 0;
    if (role->ports == NULL)
        return roles_fail(reader, part, "{%s}, but the role has no ports; write ports: [NAME]",
                          name);
    return roles_fail(reader, part, "{%s}: there is no such port; ports: %s", name,
                      port_names(role, names, sizeof(names)));
}

/* The arguments of a command, which part is. */
static int check_command(const struct roles_reader *reader, const struct roles_part *part,
                         const struct role *role, char *const *command)
{
    for (size_t i = 0; command != NULL && command[i] != NULL; i++) {
        struct roles_part argument = {json_object_array_get_idx(part->value, i), part, NULL};
        struct placeholder found;

        for (const char *text = command[i]; next_placeholder(text, &found); text = found.end) {
            if (!found.quoted && check_placeholder(reader, &argument, role, found.name) < 0)
                return -1;
        }
    }
    return 0;
}

/* ---- a role ---------------------------------------------------------------------------------- */

static int check_ready(const struct roles_reader *reader, const struct roles_part *part,
                       const struct role *role)
{
    struct roles_part ready = roles_member(part, "ready"), exec, port;
    bool asks = role->ready.how == ROLE_PROBE_HTTP || role->ready.how == ROLE_PROBE_TCP;
    char names[640];

    if (!json_object_is_type(ready.value, json_type_object))
        return 0;
    exec = roles_member(&ready, "exec");
    port = roles_member(&ready, "port");
    if (asks && role->ports == NULL)
        return roles_fail(reader, &ready, "the role has no ports to ask; write ports: [NAME]");
    if (role->ready.port != NULL && !asks)
        return roles_fail(reader, &port, "only http and tcp ask a port; leave it out");
    if (role->ready.port != NULL && find_port(role, role->ready.port) < 0)
        return roles_fail(reader, &port, "there is no port '%s'; ports: %s", role->ready.port,
                          port_names(role, names, sizeof(names)));
    return role->ready.how == ROLE_PROBE_EXEC ? check_command(reader, &exec, role, role->ready.run)
                                              : 0;
}

static int check_shards(const struct roles_reader *reader, const struct roles_part *part,
                        const struct role *role)
{
    struct roles_part update = roles_member(part, "update"), scale = roles_member(part, "scale");
    struct roles_part capacity, load;
    bool asks = role->ready.how == ROLE_PROBE_HTTP || role->ready.how == ROLE_PROBE_TCP;
    struct rollout_limits limits;
    struct error err = {""};

    load = roles_member(part, "load");
    if (role->shards.load != 0 && !asks)
        return roles_fail(reader, &load,
                          "models are loaded at the port that ready asks; write ready: {http: "
                          "PATH}, or {tcp: yes}");
    capacity = roles_member(part, "capacity");
    if (role->shards.capacity == 0)
        return roles_fail(reader, &capacity,
                          "a shard has no room for models; write capacity: and "
                          "memory such as 36G");
    if (role->ports == NULL)
        return roles_fail(reader, part,
                          "its replicas have no port for requests; write ports: "
                          "[NAME]");
    if (role->ready.how == ROLE_PROBE_NONE)
        return roles_fail(reader, part,
                          "nothing says when a replica has its models; write ready: "
                          "{http: PATH}, or another way");
    if ((role->shards.sessions > 0) != (role->shards.most > 0))
        return roles_fail(reader, &scale, "max and sessions go together; write both, or none");
    if (role->shards.most > 0 && role->shards.most < role->max)
        return roles_fail(reader, &scale, "max %d is less than replicas, %d, which is the least",
                          role->shards.most, role->max);
    if (rollout_limits(role->max, &role->shards.surge, &role->shards.unavailable, &limits, &err) <
        0)
        return roles_fail(reader, &update, "%s", err.text);
    return 0;
}

static int check_role(const struct roles_reader *reader, const struct roles_part *part,
                      const struct role *role)
{
    struct roles_part run = roles_member(part, "run"), replicas = roles_member(part, "replicas");
    struct roles_part per_node = roles_member(part, "per-node");

    if (role->leads && role->kind != ROLE_WORLD && (role->min != 1 || role->max != 1))
        return roles_fail(reader, &replicas, "the role that leads has 1 replica; write 1");
    if (role->gang.per_node > role->gang.tasks)
        return roles_fail(reader, &per_node, "%d on a node is more than the %d tasks of a replica",
                          role->gang.per_node, role->gang.tasks);
    if (role->gang.size.cpus == 0 && role->gang.size.gpus == 0 && role->kind != ROLE_WORLD) {
        struct roles_part cpus = roles_member(part, "cpus");

        return roles_fail(reader, &cpus,
                          "a task without CPUs and GPUs has no place; write at "
                          "least 1");
    }
    if (role->kind != ROLE_ROUTER && check_command(reader, &run, role, role->run) < 0)
        return -1;
    if (role->kind == ROLE_SHARDS && check_shards(reader, part, role) < 0)
        return -1;
    return check_ready(reader, part, role);
}

int role_check_node(const struct role *role, const struct slots_size *node, const char *pool,
                    struct error *err)
{
    const struct slots_size most = {INT_MAX, INT_MAX, INT64_MAX};
    struct slots_size one[] = {most, most, most};
    char text[64], has[64];

    one[0].cpus = node->cpus;
    one[1].gpus = node->gpus;
    one[2].memory = node->memory;
    for (int i = 0; i < 3; i++) {
        if (slots_too_large(&one[i], &role->gang, text, sizeof(text)) == NULL)
            continue;
        if (i == 2)
            snprintf(has, sizeof(has), "%" PRId64 " MiB", node->memory);
        else
            snprintf(has, sizeof(has), "%d", i == 0 ? node->cpus : node->gpus);
        return error_set(err, "%s needs %s on a node, those of %s have %s", role->name, text, pool,
                         has);
    }
    return 0;
}

/* ---- all roles ------------------------------------------------------------------------------- */

/* The roles on the way, each of which waits for the next one. */
struct way {
    int roles[ROLES_MAX + 1]; /* with the one that is there twice */
    int length;
    bool done[ROLES_MAX]; /* it does not lead into a circle */
};

/* Follow what a role waits for. False: the way comes back to where it has been; it is its last
 * role. */
static bool follow(const struct roles *roles, int role, struct way *way)
{
    bool been = false;

    if (way->done[role])
        return true;
    for (int i = 0; i < way->length; i++)
        been = been || way->roles[i] == role;
    way->roles[way->length++] = role;
    if (been)
        return false;
    for (int i = 0; i < roles->list[role].after_count; i++) {
        if (!follow(roles, roles->list[role].after[i], way))
            return false;
    }
    way->length--;
    way->done[role] = true;
    return true;
}

static int check_circles(const struct roles_reader *reader, const struct roles_part *part,
                         const struct roles *roles)
{
    struct way way = {0};
    char text[384] = "";

    for (int i = 0; i < roles->count; i++) {
        struct roles_part role, after;
        int from = 0;

        if (follow(roles, i, &way))
            continue;
        while (way.roles[from] != way.roles[way.length - 1])
            from++;
        role = roles_member(part, roles_said_name(&roles->list[way.roles[from]]));
        after = roles_member(&role, "after");
        for (int k = from + 1; k < way.length; k++)
            text_append(text, sizeof(text), "%s%s", k == from + 1 ? "" : ", which waits for ",
                        roles->list[way.roles[k]].name);
        return roles_fail(reader, &after, "it waits for %s; none of them would ever start", text);
    }
    return 0;
}

/* The second role that leads or is a world is refused, as is none that leads. */
static int check_single(const struct roles_reader *reader, const struct roles_part *part,
                        const struct roles *roles)
{
    const char *leader = NULL, *world = NULL, *shards = NULL, *router = NULL;
    struct roles_part service = roles_member(part->in, "service");
    struct roles_part models = roles_member(part->in, "models");
    struct roles_part handover = roles_member(part->in, "handover");
    struct roles_part fit = roles_member(part->in, "fit");

    for (int i = 0; i < roles->count; i++) {
        const struct role *role = &roles->list[i];
        struct roles_part map = roles_member(part, roles_said_name(role));
        struct roles_part leads = roles_member(&map, "leads"), kind = roles_member(&map, "kind");

        if (role->leads && leader != NULL)
            return roles_fail(reader, &leads, "%s leads already; only one role leads", leader);
        if (role->kind == ROLE_WORLD && world != NULL)
            return roles_fail(reader, &kind, "%s is a world already; a job has at most one", world);
        if (role->shards.number == 1 && shards != NULL)
            return roles_fail(reader, &kind, "%s is of kind shards already; a job has at most one",
                              shards);
        if (role->kind == ROLE_ROUTER && router != NULL)
            return roles_fail(reader, &kind, "%s is a router already; a job has at most one",
                              router);
        leader = role->leads ? role->name : leader;
        router = role->kind == ROLE_ROUTER ? role->name : router;
        shards = role->shards.number == 1 ? role->shards.of : shards;
        world = role->kind == ROLE_WORLD ? role->name : world;
    }
    if (shards != NULL && roles->service == NULL)
        return roles_fail(reader, part->in,
                          "%s is of kind shards, but the service has no name; "
                          "write service: NAME",
                          shards);
    if (shards == NULL && roles->service != NULL)
        return roles_fail(reader, &service,
                          "no role is of kind shards; give one of them kind: "
                          "shards, or leave service out");
    if (shards == NULL && roles->models.repository != NULL)
        return roles_fail(reader, &models, "no role is of kind shards; leave models out");
    if (shards != NULL && roles->models.repository == NULL)
        return roles_fail(reader, part->in,
                          "the service has no models; write models: "
                          "{repository: DIRECTORY}");
    if (roles->fit.run != NULL && roles->models.repository != NULL &&
        s3_place_is(roles->models.repository))
        return roles_fail(reader, &fit, "a fit needs models in a directory, and not on S3");
    if (roles->handover > 0 && (shards == NULL || roles->handover < HANDOVER_MIN))
        return roles_fail(reader, &handover, "%s",
                          shards == NULL ? "no role is of kind shards; leave handover out"
                                         : "that is too short; write 2m or more");
    if (leader == NULL && shards == NULL)
        return roles_fail(reader, part, "none of them leads; give one of them leads: yes");
    return 0;
}

static int check_most(const struct roles_reader *reader, const struct roles_part *part,
                      const struct roles *roles)
{
    int world = roles_world(roles);
    struct roles_part most = roles_member(part->in, "max-nodes");

    if (world < 0 || roles->max_nodes == 0 || roles->max_nodes >= roles->list[world].min)
        return 0;
    return roles_fail(reader, &most, "%d is less than the %d nodes that %s begins with",
                      roles->max_nodes, roles->list[world].min, roles->list[world].name);
}

int roles_check(const struct roles_reader *reader, const struct roles_part *part,
                const struct roles *roles)
{
    for (int i = 0; i < roles->count; i++) {
        struct roles_part role = roles_member(part, roles_said_name(&roles->list[i]));

        if (roles_find(roles, roles->list[i].name) != i)
            return roles_fail(reader, &role,
                              "a shard has the name %s, too; give the role another "
                              "one",
                              roles->list[i].name);
        /* All shards of a role are alike. */
        if (roles->list[i].shards.number <= 1 && check_role(reader, &role, &roles->list[i]) < 0)
            return -1;
    }
    if (check_single(reader, part, roles) < 0 || check_circles(reader, part, roles) < 0)
        return -1;
    return check_most(reader, part, roles);
}
