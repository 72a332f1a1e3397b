/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What users ask of roles, by selastic or HTTP (role_orders.h). */
#include "agent/leader/role_orders.h"

#include "agent/leader/leader_internal.h"
#include "agent/leader/leader_roles.h"

int role_orders_target(const struct leader *leader, const char *role)
{
    const struct roles_view *view = leader_roles_view(leader);
    int index = roles_find(view->roles, role);

    return index >= 0 ? reconcile_target(view->reconcile, index) : -1;
}

static int check_size(const struct role *role, int64_t wanted, struct error *err)
{
    if (role->leads || role->kind == ROLE_WORLD)
        return error_set(err, "the size of %s cannot be set: %s", role->name,
                         role->kind == ROLE_WORLD ? "it is the world; selastic resize sets it"
                                                  : "it leads the job");
    if (wanted < role->min || wanted > role->max)
        return error_set(err, "%lld replicas of %s: allowed are %d to %d", (long long)wanted,
                         role->name, role->min, role->max);
    return 0;
}

/* What is said of needs, as a gang of that role. */
static int read_gang(const struct roles_view *view, int role, const struct role_needs *needs,
                     struct slots_gang *gang, struct error *err)
{
    *gang = view->roles->list[role].gang;
    if (role_needs_apply(needs, gang, err) != 0)
        return error_prefix(err, "%s", view->roles->list[role].name);
    if (reconcile_can_have(view->reconcile, role, gang))
        return 0;
    return error_set(err, "replicas of %s have %d different needs already, which is the most",
                     view->roles->list[role].name, RECONCILE_FORMS);
}

int role_orders_scale(struct leader *leader, const char *role, bool relative, int number,
                      const struct role_needs *needs, int *size, int *before, struct error *err)
{
    const struct roles_view *view = leader_roles_view(leader);
    int index = roles_find(view->roles, role);
    struct slots_gang gang;
    int64_t wanted;

    if (index < 0)
        return error_set(err, "there is no role '%.40s'", role);
    *before = reconcile_target(view->reconcile, index);
    wanted = relative ? (int64_t)*before + number : number;
    if (check_size(&view->roles->list[index], wanted, err) != 0 ||
        read_gang(view, index, needs, &gang, err) != 0)
        return -1;
    *size = (int)wanted;
    (wanted == *before ? leader_roles_feed : leader_roles_resize)(
        leader, (struct reconcile_fact){
                    .kind = RECONCILE_SCALE, .role = index, .count = (int)wanted, .gang = &gang});
    return 0;
}

int role_orders_end(struct leader *leader, const char *name, bool replace, const char *why,
                    struct error *err)
{
    const struct roles_view *view = leader_roles_view(leader);
    const struct replica *replica = name != NULL ? reconcile_named(view->reconcile, name) : NULL;
    struct reconcile_fact fact = {.kind = replace ? RECONCILE_FAIL : RECONCILE_REMOVE,
                                  .text = why != NULL && why[0] != '\0' ? why : "a user has asked"};
    bool runs;

    if (replica == NULL)
        return error_set(err, "there is no replica '%.80s'", name != NULL ? name : "");
    fact.replica = replica->id;
    runs = replica->state == REPLICA_STARTING || replica->state == REPLICA_READY;
    if (replace ? !runs : replica->leaves)
        return error_set(err, "%s does not run: it is %s", name,
                         replica_state_text(replica->state));
    if (!replace && check_size(&view->roles->list[replica->role],
                               reconcile_target(view->reconcile, replica->role) - 1, err) != 0)
        return -1;
    (replace ? leader_roles_feed : leader_roles_resize)(leader, fact);
    return 0;
}
