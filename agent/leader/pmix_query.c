/* SPDX-License-Identifier: GPL-2.0-or-later */
/* "state": what a PMIx query wants to know of the job (pmix_query.h). */
#include <stdio.h>
#include <string.h>

#include "agent/leader/allocation.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/pmix_query.h"
#include "agent/leader/pmix_world.h"
#include "agent/leader/roster.h"
#include "agent/leader/slurm_look.h"

static void add_number(json_object *answer, const char *key, int64_t value)
{
    json_object_object_add(answer, key, json_object_new_int64(value));
}

/* The lines that `selastic show` has below "Why". */
static void add_reason(json_object *answer, const struct leader *leader)
{
    char next[256];
    const char *const lines[][2] = {
        {"Why this size", leader->why.size},
        {"Why not more", leader->why.not_more},
        {"Next", change_next(leader->change)->world != NULL
                     ? change_next_text(leader->change, next, sizeof(next))
                     : ""}};
    char text[1024] = "";

    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        size_t len = strlen(text);

        if (lines[i][1][0] != '\0')
            snprintf(text + len, sizeof(text) - len, "%s%s: %s", len > 0 ? "\n" : "", lines[i][0],
                     lines[i][1]);
    }
    json_object_object_add(answer, "reason", json_object_new_string(text));
}

void pmix_query_answer(const struct pmix_world *pmix_world, struct leader_member *m,
                       json_object *msg)
{
    const struct leader *leader = pmix_world->leader;
    const struct sizes *sizes = &leader->options->policy->sizes;
    const struct job_info *base = slurm_look_base(leader);
    json_object *answer = json_object_new_object();
    char text[256];

    json_object_object_add(answer, "sizes",
                           json_object_new_string(sizes_format(sizes, text, sizeof(text))));
    add_number(answer, "nodes",
               change_world(leader->change) != NULL ? change_world(leader->change)->node_count : 0);
    add_number(answer, "target", allocation_target(leader));
    add_number(answer, "generation", change_generation(leader->change));
    json_object_object_add(answer, "why_not_more", json_object_new_string(leader->why.not_more));
    add_reason(answer, leader);
    /* Slurm has told no time that is its end. */
    if (base != NULL && base->end > 0 && base->time_limit != UINT32_MAX) {
        double left = (double)base->end - unix_now();

        add_number(answer, "time_remaining", left > 0 ? (int64_t)left : 0);
    }
    pmix_world_answer(pmix_world, m, msg, answer);
}
