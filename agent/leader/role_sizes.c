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
#include "lib/role_needs.h"

#define SIZES_FILE     "roles.json"
#define SIZES_FILE_MAX (1 << 20)

/* The replicas with needs of their own: how many, and what they need. */
static json_object *forms_json(const struct roles_view *view, int role)
{
    json_object *list = json_object_new_array();

    for (int form = 1; form < RECONCILE_FORMS; form++) {
        struct slots_gang gang;
        int count = reconcile_target_of(view->reconcile, role, form, &gang);
        json_object *one;

        if (count == 0)
            continue;
        one = json_object_new_object();
        json_object_object_add(one, "count", json_object_new_int(count));
        role_needs_add(one, &gang);
        json_object_array_add(list, one);
    }
    return list;
}

/* The world has trained for a fit, which may not know that yet. */
static void add_end(const struct roles_view *view, json_object *file)
{
    int world = roles_world(view->roles), status;
    json_object *ended;

    if (world < 0 || !view->roles->list[world].trains ||
        !reconcile_world_has_ended(view->reconcile, &status))
        return;
    ended = json_object_new_object();
    json_object_object_add(ended, view->roles->list[world].name, json_object_new_int(status));
    json_object_object_add(file, "ended", ended);
}

void role_sizes_write(struct leader *leader, const struct roles_view *view)
{
    const struct roles *roles = view->roles;
    json_object *file = json_object_new_object(), *sizes = json_object_new_object(),
                *needs = json_object_new_object();

    for (int i = 0; i < roles->count; i++) {
        json_object *forms = forms_json(view, i);

        json_object_object_add(sizes, roles->list[i].name,
                               json_object_new_int(reconcile_target(view->reconcile, i)));
        if (json_object_array_length(forms) > 0)
            json_object_object_add(needs, roles->list[i].name, forms);
        else
            json_object_put(forms);
    }
    json_object_object_add(file, "sizes", sizes);
    json_object_object_add(file, "needs", needs);
    add_end(view, file);
    report_write(leader, SIZES_FILE,
                 strdup(json_object_to_json_string_ext(file, JSON_C_TO_STRING_PLAIN)));
    json_object_put(file);
}

static void feed(const struct roles_view *view, const struct reconcile_fact *fact)
{
    struct reconcile_actions none = {0};

    reconcile_feed(view->reconcile, fact, &none);
    free(none.list);
}

static void set_size(const struct roles_view *view, int role, int size,
                     const struct slots_gang *gang)
{
    feed(view, &(struct reconcile_fact){
                   .kind = RECONCILE_SCALE, .role = role, .count = size, .gang = gang});
}

/* It does not begin once more. */
static void read_end(const struct roles_view *view, json_object *ended)
{
    int world = roles_world(view->roles);
    int64_t status;

    if (world >= 0 && view->roles->list[world].trains &&
        json_get_int(ended, view->roles->list[world].name, 0, 255, &status))
        feed(view, &(struct reconcile_fact){.kind = RECONCILE_WORLD_OVER, .status = (int)status});
}

/* One element of "needs". Its number of replicas; 0: it is no such thing. */
static int read_form(const struct roles_view *view, int role, json_object *one,
                     struct slots_gang *gang)
{
    int64_t count;

    *gang = view->roles->list[role].gang;
    return json_get_int(one, "count", 1, ROLES_REPLICAS_MAX, &count) && role_needs_read(one, gang)
               ? (int)count
               : 0;
}

/* The size of a role. Those with needs of their own come on top of the others. */
static void read_role(const struct roles_view *view, int role, int size, json_object *needs)
{
    size_t forms = json_object_is_type(needs, json_type_array) ? json_object_array_length(needs)
                                                               : 0;
    struct slots_gang gang;
    int rest = size;

    for (size_t i = 0; i < forms; i++)
        rest -= read_form(view, role, json_object_array_get_idx(needs, i), &gang);
    if (rest < 0) /* not as it has been written */
        forms = 0;
    set_size(view, role, forms > 0 ? rest : size, NULL);
    for (size_t i = 0; i < forms; i++) {
        int count = read_form(view, role, json_object_array_get_idx(needs, i), &gang);

        set_size(view, role, reconcile_target(view->reconcile, role) + count, &gang);
    }
}

void role_sizes_read(const struct roles_view *view, const char *state_dir)
{
    char path[PATH_MAX];
    struct error err;
    json_object *file = NULL, *sizes = NULL, *needs = NULL, *own = NULL;
    size_t len;
    char *text;

    snprintf(path, sizeof(path), "%s/%s", state_dir, SIZES_FILE);
    text = file_read(path, SIZES_FILE_MAX, &len, &err);
    if (text == NULL)
        return;
    file = json_text_parse(text, len, &err);
    json_object_object_get_ex(file, "needs", &needs);
    if (json_object_object_get_ex(file, "sizes", &sizes))
        for (int i = 0; i < view->roles->count; i++) {
            const char *name = view->roles->list[i].name;
            int64_t size;

            if (!json_get_int(sizes, name, 0, view->roles->list[i].max, &size))
                continue;
            if (!json_object_object_get_ex(needs, name, &own))
                own = NULL;
            read_role(view, i, (int)size, own);
        }
    read_end(view, json_object_object_get(file, "ended"));
    json_object_put(file);
    free(text);
}
