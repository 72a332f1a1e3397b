/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is asked for metrics (control_metrics.h). It is answered every few seconds, so it says less
 * than "show": counts of members in place of each, and no texts. */
#include "agent/leader/control_metrics.h"

#include "agent/leader/control.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/leader_roles.h"
#include "agent/leader/leader_service.h"
#include "agent/leader/measures.h"

json_object *control_metrics_json(struct leader *leader)
{
    static const char *const texts[] = {"members", "policy",     "why_size",  "why_not_more",
                                        "pmix",    "next_world", "newcomers", "checkpoint_dir",
                                        "conf",    "state_dir",  "left_out",  "advised"};
    json_object *said = control_state(leader), *roles;

    json_object_object_add(said, "t", json_object_new_string("metrics"));
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        json_object_object_del(said, texts[i]);
    json_object_object_add(said, "measures", measures_json(leader));
    json_object_object_del(said, "roles");
    if (leader_roles_any(leader)) {
        roles = json_object_new_object();
        leader_roles_describe(leader, roles);
        json_object_object_add(said, "roles", roles);
    }
    if (leader_service_any(leader))
        leader_service_counts(leader, said);
    return said;
}

void control_metrics(struct leader *leader, struct link *link, json_object *msg)
{
    bool leading = control_leads(leader);

    (void)msg;
    control_say(link, control_metrics_json(leader), leading);
}
