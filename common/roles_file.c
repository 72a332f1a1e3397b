/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Job files and templates (roles_file.h). */
#include "common/roles_file.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/yaml_file.h"

/* NAME.yaml of roles_dir, which is arg: a roles_template of lib/roles.h. */
static json_object *load_template(const char *name, void *arg, struct error *err)
{
    const char *dir = arg;
    json_object *tree;
    char *path = NULL;

    if (dir == NULL) {
        error_set(err, "there is no template '%s': elastic.conf has no roles_dir", name);
        return NULL;
    }
    if (asprintf(&path, "%s/%s.yaml", dir, name) < 0) {
        error_set(err, "out of memory");
        return NULL;
    }
    tree = yaml_load(path, err);
    if (tree != NULL && roles_check_template(tree, yaml_where, NULL, err) < 0) {
        error_set(err, "%s:%s", error_path(path).text, err->text);
        json_object_put(tree);
        tree = NULL;
    }
    free(path);
    return tree;
}

/* A roles_has_template of lib/roles.h. One that cannot be read is there: an error later. */
static bool has_template(const char *name, void *arg)
{
    const char *dir = arg;
    char *path = NULL;
    bool has;

    if (dir == NULL || asprintf(&path, "%s/%s.yaml", dir, name) < 0)
        return false;
    has = access(path, F_OK) == 0;
    free(path);
    return has;
}

struct roles *roles_file_load(const char *path, const char *roles_dir, struct error *err)
{
    json_object *tree = yaml_load(path, err);
    struct error wrong = {""};
    struct roles *roles = NULL;
    char *text;

    if (tree == NULL)
        return NULL;
    if (roles_use_templates(tree, yaml_where, NULL, load_template, has_template,
                            (void *)(uintptr_t)roles_dir, &wrong) == 0)
        roles = roles_create(tree, yaml_where, NULL, &wrong);
    json_object_put(tree);
    if (roles == NULL)
        error_set(err, "%s:%s", error_path(path).text, wrong.text);
    else if ((text = roles_text(roles, &wrong)) != NULL)
        free(text);
    else {
        error_set(err, "%s: %s", error_path(path).text, wrong.text);
        roles_destroy(roles);
        return NULL;
    }
    return roles;
}

char *roles_text(const struct roles *roles, struct error *err)
{
    json_object *tree = roles_json(roles);
    const char *text = tree != NULL ? json_object_to_json_string_ext(tree, JSON_C_TO_STRING_PLAIN)
                                    : NULL;
    char *copy = text != NULL ? strdup(text) : NULL;

    json_object_put(tree);
    if (copy == NULL) {
        error_set(err, "out of memory");
        return NULL;
    }
    if (strlen(copy) <= ROLES_TEXT_MAX)
        return copy;
    error_set(err, "the roles with all their values have %zu bytes; %d travel with a job",
              strlen(copy), ROLES_TEXT_MAX);
    free(copy);
    return NULL;
}

struct roles *roles_text_read(const char *text, struct error *err)
{
    json_object *tree = yaml_parse(text, strlen(text), err);
    struct roles *roles = tree != NULL ? roles_create(tree, yaml_where, NULL, err) : NULL;

    json_object_put(tree);
    return roles;
}
