/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reconciler: replicas of a role with needs of their own (reconcile_private.h).
 *
 * A form is what some replicas of a role need. How many of them there should be belongs to the size
 * of the role. A form that nobody needs makes room for another one. */
#include <stdlib.h>
#include <string.h>

#include "lib/reconcile_private.h"

/* Room for an answer of lib/slots about such a gang. */
static bool widen(struct reconcile *r, int tasks)
{
    int *where;

    if (tasks <= r->spots.where_room)
        return true;
    where = realloc(r->spots.where, (size_t)tasks * sizeof(*where));
    if (where == NULL) {
        r->no_memory = true;
        return false;
    }
    r->spots.where = where;
    r->spots.where_room = tasks;
    r->spots.where[0] = -1;
    return true;
}

static void set(struct form *form, const struct slots_gang *gang)
{
    *form = (struct form){.gang = *gang, .asked = -1, .setbacks = {.last = -1}};
}

bool form_begin(struct reconcile *r, int role)
{
    const struct role *of = &r->roles->list[role];

    set(&r->role[role].forms[0], &of->gang);
    r->role[role].form_count = 1;
    return widen(r, of->gang.tasks) && (of->kind != ROLE_WORLD || widen(r, of->min));
}

static bool is_used(const struct reconcile *r, int role, int form)
{
    if (r->role[role].forms[form].count > 0)
        return true;
    FOR_ENTRIES (r, e)
        if (e->replica.role == role && e->replica.form == form)
            return true;
    for (int i = 0; i < r->request_count; i++)
        if (r->requests[i].role == role && r->requests[i].form == form)
            return true;
    return false;
}

/* Where these needs are, or could be; -1: nowhere. */
static int place_of(const struct reconcile *r, int role, const struct slots_gang *gang)
{
    const struct role_state *state = &r->role[role];

    for (int form = 0; form < state->form_count; form++)
        if (slots_equal(&state->forms[form].gang, gang))
            return form;
    for (int form = 1; form < state->form_count; form++)
        if (!is_used(r, role, form))
            return form;
    return state->form_count < RECONCILE_FORMS ? state->form_count : -1;
}

bool reconcile_can_have(const struct reconcile *r, int role, const struct slots_gang *gang)
{
    return place_of(r, role, gang) >= 0;
}

int form_find(struct reconcile *r, int role, const struct slots_gang *gang)
{
    struct role_state *state = &r->role[role];
    int form = gang != NULL ? place_of(r, role, gang) : 0;

    if (gang != NULL && gang->owned && !(r->roles->pairs.any && role == r->roles->pairs.owned))
        return -1;
    if (form <= 0)
        return form;
    if (form < state->form_count && slots_equal(&state->forms[form].gang, gang))
        return form;
    if (!widen(r, gang->tasks))
        return -1;
    set(&state->forms[form], gang);
    if (form == state->form_count)
        state->form_count++;
    return form;
}

const struct slots_gang *reconcile_gang(const struct reconcile *r, int role, int form)
{
    return &r->role[role].forms[form].gang;
}

int reconcile_target_of(const struct reconcile *r, int role, int form, struct slots_gang *gang)
{
    if (form >= r->role[role].form_count)
        return 0;
    *gang = r->role[role].forms[form].gang;
    return size_wanted(r, role, form);
}
