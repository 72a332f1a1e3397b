/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A role of the file is the training of its service: it is checked, and there only while a fit
 * needs it. Its tasks run elastic-fit, which runs what the role says. */
#include "lib/roles_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/text.h"

/* Some port of it is asked. */
static bool can_be_ready(const struct role *role)
{
    return role->ports != NULL && role->ready.how != ROLE_PROBE_NONE;
}

static int check_call(const struct roles_reader *reader, const struct roles_part *part,
                      const struct roles *roles, const struct role *role)
{
    struct roles_part call = roles_member(part, "call");
    const char *path = roles->fit.call;

    if (path == NULL)
        return 0;
    if (path[0] != '/' || strpbrk(path, " {}#?") != NULL)
        return roles_fail(reader, &call,
                          "'%s' is no path of a server; write one such as /fit, without spaces and "
                          "{}#?",
                          error_value(path).text);
    if (role->kind == ROLE_WORLD)
        return roles_fail(reader, &call, "%s is a world, which is not called; leave it out",
                          role->name);
    if (!can_be_ready(role))
        return roles_fail(reader, &call,
                          "nothing says when %s can be called; give it ports: [NAME], and ready: "
                          "{http: PATH}, or another way",
                          role->name);
    return 0;
}

/* The program that gets the data does so on one node. */
static int check_stage(const struct roles_reader *reader, const struct roles_part *part,
                       const struct roles *roles, const struct role *role)
{
    struct roles_part stage = roles_member(part, "stage");

    if (roles->fit.stage == NULL ||
        (role->kind != ROLE_WORLD &&
         (role->gang.tasks == 1 || role->gang.per_node == role->gang.tasks)))
        return 0;
    return roles_fail(reader, &stage,
                      role->kind == ROLE_WORLD
                          ? "it gets the data onto one node, and %s is a world; leave it out"
                          : "it gets the data onto one node; give %s per-node: %d, or leave it out",
                      role->name, role->gang.tasks);
}

/* Who waits for it would wait for a fit. */
static int check_after(const struct roles_reader *reader, const struct roles *roles, int index,
                       const struct roles_part *list)
{
    for (int i = 0; i < roles->count; i++)
        for (int k = 0; k < roles->list[i].after_count; k++) {
            struct roles_part role = roles_member(list, roles_said_name(&roles->list[i]));
            struct roles_part after = roles_member(&role, "after");

            if (roles->list[i].after[k] == index)
                return roles_fail(reader, &after,
                                  "%s is there only while a fit needs it; leave it "
                                  "out",
                                  roles->list[index].name);
        }
    return 0;
}

/* list: the roles; its own part is `name` there. */
static int check_trainer(const struct roles_reader *reader, const struct roles_part *part,
                         const struct roles_part *list, const struct roles *roles, int index)
{
    const struct role *role = &roles->list[index];
    struct roles_part named = roles_member(part, "role"), own = roles_member(list, role->name);
    struct roles_part leads = roles_member(&own, "leads"),
                      replicas = roles_member(&own, "replicas");

    if (role->kind != ROLE_REPLICAS && role->kind != ROLE_WORLD)
        return roles_fail(reader, &named,
                          "%s serves, and does not train; name a role of kind replicas or world",
                          roles->fit.role);
    if (role->leads)
        return roles_fail(reader, &leads, "%s is there only while a fit needs it; leave leads out",
                          role->name);
    if (roles->pairs.any && (index == roles->pairs.owner || index == roles->pairs.owned))
        return roles_fail(reader, &named, "the coordinator has %s; name another role", role->name);
    if (role->kind == ROLE_REPLICAS && !(role->max == 1 && role->min >= 0))
        return roles_fail(reader, &replicas,
                          "a training has one replica; write tasks: %d for so many processes",
                          role->max > 1 ? role->max : 1);
    return check_call(reader, part, roles, role) == 0 && check_stage(reader, part, roles, role) == 0
               ? check_after(reader, roles, index, list)
               : -1;
}

/* What a task of it runs, with placeholders. */
static int set_command(struct roles *roles, struct role *role)
{
    const char *port = role->ready.port != NULL ? role->ready.port
                       : role->ports != NULL    ? role->ports[0]
                                                : "";
    char *const words[] = {ROLES_FIT_PROGRAM, role->kind == ROLE_WORLD ? "become" : "train",
                           roles->service, NULL};
    char *call[] = {NULL, NULL, NULL}, *const rest[] = {"--", NULL};
    int rc = strings_append(&role->training, words);

    if (rc == 0 && roles->fit.call != NULL) {
        if (asprintf(&call[0], "--call=%s", roles->fit.call) < 0)
            call[0] = NULL;
        if (asprintf(&call[1], "--port={port:%s}", port) < 0)
            call[1] = NULL;
        rc = call[0] != NULL && call[1] != NULL ? strings_append(&role->training, call) : -1;
        free(call[0]);
        free(call[1]);
    }
    if (rc == 0)
        rc = strings_append(&role->training, rest);
    return rc == 0 ? strings_append(&role->training, role->run) : -1;
}

int roles_take_trainer(const struct roles_reader *reader, const struct roles_part *part,
                       struct roles *roles)
{
    struct roles_part list = roles_member(part->in, "roles"), named = roles_member(part, "role");
    int index = roles_find(roles, roles->fit.role);
    char known[256] = "";
    struct role *role;

    for (int i = 0; i < roles->count && index < 0; i++) {
        const struct role *other = &roles->list[i];

        if (other->shards.number == 0 && other->kind != ROLE_ROUTER)
            text_append(known, sizeof(known), "%s%s", known[0] != '\0' ? ", " : "", other->name);
    }
    for (int i = 0; i < roles->count && index < 0; i++)
        if (roles->list[i].shards.number == 1 &&
            strcmp(roles->list[i].shards.of, roles->fit.role) == 0)
            index = i;
    if (index < 0)
        return roles_fail(reader, &named, "there is no role '%s'; roles that can train: %s",
                          roles->fit.role, known[0] != '\0' ? known : "none");
    if (check_trainer(reader, part, &list, roles, index) < 0)
        return -1;
    role = &roles->list[index];
    role->trains = true;
    if (role->kind == ROLE_REPLICAS) {
        role->min = 0;
        role->max = 1;
        role->asks = true;
    }
    return set_command(roles, role) == 0 ? 0 : roles_no_memory(reader, &named);
}
