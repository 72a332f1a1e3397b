/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sizes of roles that users have asked for, in a file of the job (role_sizes.h). */
#include "agent/leader/role_sizes.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/leader/report.h"
#include "common/files.h"
#include "lib/json_get.h"
#include "lib/json_text.h"

#define SIZES_FILE     "roles.json"
#define SIZES_FILE_MAX 65536

void role_sizes_write(struct leader *leader, const struct roles_view *view)
{
    const struct roles *roles = view->roles;
    json_object *file = json_object_new_object(), *sizes = json_object_new_object();

    for (int i = 0; i < roles->count; i++)
        json_object_object_add(sizes, roles->list[i].name,
                               json_object_new_int(reconcile_target(view->reconcile, i)));
    json_object_object_add(file, "sizes", sizes);
    report_write(leader, SIZES_FILE,
                 strdup(json_object_to_json_string_ext(file, JSON_C_TO_STRING_PLAIN)));
    json_object_put(file);
}

void role_sizes_read(const struct roles_view *view, const char *state_dir)
{
    char path[PATH_MAX];
    struct error err;
    struct reconcile_actions none = {0};
    json_object *file = NULL, *sizes = NULL;
    size_t len;
    char *text;

    snprintf(path, sizeof(path), "%s/%s", state_dir, SIZES_FILE);
    text = file_read(path, SIZES_FILE_MAX, &len, &err);
    if (text == NULL)
        return;
    file = json_text_parse(text, len, &err);
    if (json_object_object_get_ex(file, "sizes", &sizes))
        for (int i = 0; i < view->roles->count; i++) {
            int64_t size;

            if (json_get_int(sizes, view->roles->list[i].name, 0, view->roles->list[i].max, &size))
                reconcile_feed(view->reconcile,
                               &(struct reconcile_fact){
                                   .kind = RECONCILE_SCALE, .role = i, .count = (int)size},
                               &none);
        }
    free(none.list);
    json_object_put(file);
    free(text);
}
