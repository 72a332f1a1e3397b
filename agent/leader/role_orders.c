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

static int check_size(const struct roles *roles, int index, int64_t wanted, struct error *err)
{
    const struct role *role = &roles->list[index];

    if (roles->pairs.any && roles->pairs.owner == index)
        return error_set(err, "the size of %s cannot be set: %s has it", role->name,
                         roles->list[roles->pairs.owned].name);
    if (role->kind == ROLE_SHARDS)
        return error_set(err, "the size of %s cannot be set: its service sets it", role->name);
    if (role->kind == ROLE_WORLD && role->trains)
        return wanted >= 0 && wanted <= 1
                   ? 0
                   : error_set(err, "%s is a world that a fit trains: 1 begins it, 0 ends it",
                               role->name);
    if (role->leads || role->kind == ROLE_WORLD)
        return error_set(err, "the size of %s cannot be set: %s", role->name,
                         role->kind == ROLE_WORLD ? "it is the world; selastic resize sets it"
                                                  : "it leads the job");
    if (wanted < role->min || wanted > role->max)
        return error_set(err, "%lld replicas of %s: allowed are %d to %d", (long long)wanted,
                         role->name, role->min, role->max);
    return 0;
}

/* As many tasks on a node as most nodes of the job have GPUs. */
static void spread(const struct roles_view *view, struct slots_gang *gang)
{
    int gpus = reconcile_majority(view->reconcile);

    gang->per_node = gpus < gang->tasks ? gpus : gang->tasks;
}

/* What is said of needs, as a gang of that role. */
static int read_gang(const struct roles_view *view, int role, const struct role_needs *needs,
                     struct slots_gang *gang, struct error *err)
{
    *gang = view->roles->list[role].gang;
    if (role_needs_apply(needs, gang, err) != 0)
        return error_prefix(err, "%s", view->roles->list[role].name);
    if (gang->owned && (!view->roles->pairs.any || view->roles->pairs.owned != role))
        return error_set(err,
                         "%s with more than one GPU needs a role 'aggregator', of the job file or "
                         "of the site's template",
                         view->roles->list[role].name);
    if (gang->owned)
        spread(view, gang);
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
    if (check_size(view->roles, index, wanted, err) != 0 ||
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
    int counts;

    if (replica == NULL)
        return error_set(err, "there is no replica '%.80s'", name != NULL ? name : "");
    fact.replica = replica->id;
    runs = replica->state == REPLICA_STARTING || replica->state == REPLICA_READY;
    if (replace ? !runs : replica->leaves)
        return error_set(err, "%s does not run: it is %s", name,
                         replica_state_text(replica->state));
    /* With an owner its gang goes, of which there are fewer then. */
    counts = view->roles->pairs.any && replica->role == view->roles->pairs.owner
                 ? view->roles->pairs.owned
                 : replica->role;
    if (!replace &&
        check_size(view->roles, counts, reconcile_target(view->reconcile, counts) - 1, err) != 0)
        return -1;
    (replace ? leader_roles_feed : leader_roles_resize)(leader, fact);
    return 0;
}
