/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Another program for the shards of a job that runs (roles_program.h). */
#include "lib/roles_program.h"

#include <stdlib.h>
#include <string.h>

#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/roles_private.h"
#include "lib/text.h"

char *roles_program(const struct roles *roles)
{
    json_object *program = json_object_new_object();
    char *text;

    json_object_object_add(program, "run", json_from_strings(roles->list[roles_shards(roles)].run));
    text = strdup(json_object_to_json_string_ext(program, JSON_C_TO_STRING_PLAIN |
                                                              JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(program);
    return text;
}

json_object *roles_program_run(const char *program)
{
    json_object *json = program != NULL ? json_text_parse(program, strlen(program), NULL) : NULL;
    json_object *run = json_object_get(json_object_object_get(json, "run"));

    json_object_put(json);
    return run;
}

/* The shards in the tree of the file. */
static json_object *shards_in(json_object *tree, const struct roles *roles)
{
    return json_object_object_get(json_object_object_get(tree, "roles"),
                                  roles_said_name(&roles->list[roles_shards(roles)]));
}

char *roles_program_text(const struct roles *roles, json_object *run)
{
    json_object *tree = roles_json(roles);
    char *text = NULL;

    if (tree != NULL &&
        json_object_object_add(shards_in(tree, roles), "run", json_object_get(run)) == 0)
        text = strdup(json_object_to_json_string_ext(tree, JSON_C_TO_STRING_PLAIN));
    json_object_put(tree);
    return text;
}

/* The tree of the file without what may be another one. */
static json_object *rest_of(const struct roles *roles)
{
    json_object *tree = roles_json(roles);

    if (tree != NULL)
        json_object_object_del(shards_in(tree, roles), "run");
    return tree;
}

struct found {
    char path[160];
    json_object *in_job, *in_next;
};

/* The first key that is another one: true. */
static bool differs(json_object *job, json_object *next, struct found *found)
{
    size_t length = strlen(found->path);

    if (json_object_equal(job, next))
        return false;
    found->in_job = job;
    found->in_next = next;
    if (!json_object_is_type(job, json_type_object) || !json_object_is_type(next, json_type_object))
        return true;
    for (int turn = 0; turn < 2; turn++) {
        json_object_object_foreach (turn == 0 ? job : next, key, value) {
            (void)value;
            text_append(found->path, sizeof(found->path), "%s%s", length > 0 ? "." : "", key);
            if (differs(json_object_object_get(job, key), json_object_object_get(next, key), found))
                return true;
            found->path[length] = '\0';
        }
    }
    return true;
}

static struct error_value value_of(json_object *value)
{
    return error_value(value != NULL
                           ? json_object_to_json_string_ext(
                                 value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE)
                           : "not set");
}

int roles_program_check(const struct roles *job, const struct roles *next, struct error *err)
{
    struct found found = {.path = ""};
    json_object *of_job, *of_next;
    int rc = 0;

    if (roles_shards(next) < 0)
        return error_set(err, "it has no role of kind shards");
    of_job = rest_of(job);
    of_next = rest_of(next);
    if (of_job == NULL || of_next == NULL)
        rc = error_set(err, "out of memory");
    else if (differs(of_job, of_next, &found))
        rc = error_set(err,
                       "%s is %s, and %s in the job that runs: only run of its shards may be "
                       "another one; the next job of the service reads the rest",
                       found.path, value_of(found.in_next).text, value_of(found.in_job).text);
    json_object_put(of_job);
    json_object_put(of_next);
    return rc;
}
