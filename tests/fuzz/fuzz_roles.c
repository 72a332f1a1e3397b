/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fuzz target: a job file, in YAML or JSON. What is accepted is within its limits, and written and
 * read again it is the same. */
#include "tests/fuzz/fuzz.h"

#include "common/roles_file.h"
#include "common/yaml_file.h"

static void check_role(const struct roles *roles, const struct role *role)
{
    const struct slots_size node = {64, 8, 1 << 20};
    const int ports[ROLES_PORTS_MAX] = {0};
    const struct role_task task = {"a-1", 0, ports, NULL};
    struct error err = {""};

    MUST(role->run != NULL && role->run[0] != NULL);
    MUST(role->min >= 0 && role->min <= role->max && role->max >= 1);
    MUST(role->gang.tasks >= 1 && role->gang.tasks <= ROLES_TASKS_MAX);
    MUST(role->gang.per_node >= 0 && role->gang.per_node <= role->gang.tasks);
    MUST(role->gang.size.cpus >= 0 && role->gang.size.gpus >= 0 && role->gang.size.memory >= 0);
    MUST(role->ready.within > 0 && role->ready.every > 0 && role->drain.within >= 0);
    MUST(role->drain.signal > 0 && role->restart.max >= 0 && role->restart.first_pause > 0);
    MUST(role->restart.first_pause <= role->restart.max_pause);
    for (int i = 0; i < role->after_count; i++)
        MUST(role->after[i] >= 0 && role->after[i] < roles->count);
    for (char **argument = role->run; *argument != NULL; argument++) {
        char *text = role_argument(role, *argument, &task);

        MUST(text != NULL);
        free(text);
    }
    if (role_check_node(role, &node, "p", &err) < 0)
        fuzz_check_refusal(&err);
}

static void check_again(const struct roles *roles)
{
    struct error err = {""};
    char *text = roles_text(roles, &err), *other;
    struct roles *again;

    if (text == NULL) {
        fuzz_check_refusal(&err);
        return;
    }
    again = roles_text_read(text, &err);
    if (again == NULL)
        fprintf(stderr, "%s: %s\n", text, err.text);
    MUST(again != NULL);
    other = roles_text(again, &err);
    MUST(other != NULL && strcmp(text, other) == 0);
    free(other);
    free(text);
    roles_destroy(again);
}

static void check(const json_object *tree)
{
    struct error err = {""};
    struct roles *roles = roles_create(tree, yaml_where, NULL, &err);

    if (roles == NULL) {
        fuzz_check_refusal(&err);
        MUST(err.text[0] >= '1' && err.text[0] <= '9');
        return;
    }
    MUST(roles->count >= 1 && roles->count <= ROLES_MAX);
    MUST(roles->list[roles_leader(roles)].leads);
    for (int i = 0; i < roles->count; i++) {
        MUST(roles_find(roles, roles->list[i].name) == i);
        check_role(roles, &roles->list[i]);
    }
    check_again(roles);
    roles_destroy(roles);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct error err = {""};
    json_object *tree = yaml_parse(text, size, &err);

    if (tree != NULL) {
        check(tree);
        if (roles_check_template(tree, yaml_where, NULL, &err) < 0)
            fuzz_check_refusal(&err);
    } else {
        fuzz_check_refusal(&err);
        MUST(err.text[0] >= '1' && err.text[0] <= '9');
    }
    json_object_put(tree);
    free(text);
    return 0;
}
