/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Templates of the site: keys that roles have by default (roles.h). */
#include "lib/roles_private.h"

#include <stdlib.h>
#include <string.h>

/* Without the places of the template's file: messages then name the role that uses it. */
static int copy_part(json_object *from, json_object *parent, const char *key, size_t index,
                     json_object **copy)
{
    int rc = json_c_shallow_copy_default(from, parent, key, index, copy);

    /* 2: the data of the user is not to be copied. */
    return rc < 0 ? rc : 2;
}

static int fill(const struct roles_reader *reader, const struct roles_part *role,
                json_object *template)
{
    json_object_object_foreach (template, name, value) {
        json_object *copy = NULL;

        if (json_object_object_get_ex(role->value, name, NULL))
            continue;
        if (json_object_deep_copy(value, &copy, copy_part) < 0 ||
            json_object_object_add(role->value, name, copy) < 0) {
            json_object_put(copy);
            return roles_no_memory(reader, role);
        }
    }
    return 0;
}

static int use_template(const struct roles_reader *reader, const struct roles_part *role,
                        roles_template *load, void *load_arg)
{
    struct roles_part part = roles_member(role, "template");
    struct error err = {""};
    json_object *template;
    const char *name;
    int rc;

    if (!json_object_is_type(part.value, json_type_string))
        return roles_fail(reader, &part, "it is not a text; write the name of a template");
    name = json_object_get_string(part.value);
    if (!role_is_name(name) || strlen(name) != (size_t)json_object_get_string_len(part.value))
        return roles_fail(reader, &part, "'%s' is no name of a template; " ROLE_NAME_FORM,
                          error_value(name).text);
    template = load(name, load_arg, &err);
    if (template == NULL)
        return roles_fail(reader, &part, "%s", err.text);
    rc = fill(reader, role, template);
    json_object_put(template);
    if (rc == 0)
        json_object_object_del(role->value, "template");
    return rc;
}

/* With compat: di-engine a job has the site's aggregators, if it has none of its own: a role that
 * names the template. */
static void add_aggregator(const struct roles_part *job, const struct roles_part *roles,
                           roles_has_template *has, void *arg)
{
    static const char name[] = "aggregator";
    struct roles_part compat = roles_member(job, "compat");
    json_object *role;

    if (!json_object_is_type(compat.value, json_type_string) ||
        strcmp(json_object_get_string(compat.value), "di-engine") != 0 ||
        !json_object_object_get_ex(roles->value, "learner", NULL) ||
        json_object_object_get_ex(roles->value, name, NULL) || !has(name, arg))
        return;
    role = json_object_new_object();
    json_object_object_add(role, "template", json_object_new_string(name));
    json_object_object_add(roles->value, name, role);
}

int roles_use_templates(json_object *tree, roles_where *where, void *arg, roles_template *load,
                        roles_has_template *has, void *load_arg, struct error *err)
{
    struct roles_reader reader = {where, arg, err};
    struct roles_part job = {tree, NULL, NULL}, roles;

    /* What is not a map is roles_create()'s to refuse. */
    if (!json_object_is_type(tree, json_type_object))
        return 0;
    roles = roles_member(&job, "roles");
    if (!json_object_is_type(roles.value, json_type_object))
        return 0;
    add_aggregator(&job, &roles, has, load_arg);
    json_object_object_foreach (roles.value, name, value) {
        struct roles_part role = {value, &roles, name};

        if (json_object_is_type(value, json_type_object) &&
            json_object_object_get_ex(value, "template", NULL) &&
            use_template(&reader, &role, load, load_arg) < 0)
            return -1;
    }
    return 0;
}
