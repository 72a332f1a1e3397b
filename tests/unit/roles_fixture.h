/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Roles of the text of a job file, for tests. */
#ifndef ELASTIC_TESTS_ROLES_FIXTURE_H
#define ELASTIC_TESTS_ROLES_FIXTURE_H

#include "common/yaml_file.h"
#include "lib/roles.h"
#include "tests/unit/support.h"

/* The text has to be right. */
static inline struct roles *create(const char *text)
{
    struct error err = {""};
    json_object *tree = yaml_parse(text, strlen(text), &err);
    struct roles *roles = tree != NULL ? roles_create(tree, yaml_where, NULL, &err) : NULL;

    json_object_put(tree);
    if (roles == NULL)
        fail_msg("%s\n%s", text, err.text);
    return roles;
}

#endif
