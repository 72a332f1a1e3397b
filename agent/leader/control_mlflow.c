/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What elastic-mlflow asks the leader (control_mlflow.h). */
#include "agent/leader/control_mlflow.h"

#include "agent/leader/control.h"
#include "agent/leader/control_metrics.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/mlflow_run.h"
#include "agent/leader/report.h"
#include "agent/leader/requeue.h"

#define KNOWN_MAY_CHANGE 8 /* generations whose reason or pause may come later */

static const char *end_of(const struct leader *leader)
{
    if (requeue_wanted(leader))
        return "requeued";
    return leader->exit.code == 0 ? "finished" : "failed";
}

/* A leader that may not lead says nothing of the job: it asks again later. */
void control_mlflow(struct leader *leader, int after)
{
    json_object *said;

    if (!control_leads(leader)) {
        mlflow_run_say(leader, leader_message("later", -1));
        return;
    }
    said = control_metrics_json(leader);
    json_object_object_add(said, "t", json_object_new_string("state"));
    json_object_object_add(said, "policy", policy_to_json(leader->options->policy));
    json_object_object_add(said, "history", report_history_json(leader, after - KNOWN_MAY_CHANGE));
    if (leader_has_ended(leader))
        json_object_object_add(said, "ended", json_object_new_string(end_of(leader)));
    mlflow_run_say(leader, said);
}
