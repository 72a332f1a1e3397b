/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A world, as the PMIx servers of its nodes see it (pmix_world.h). */
#include "agent/leader/pmix_world.h"

#include "agent/leader/leader_internal.h"
#include "agent/leader/roster.h"
#include "lib/json_get.h"

int pmix_world_place(const struct pmix_world *pmix_world, const struct leader_member *m)
{
    return pmix_world->next ? m->part->next_place : m->part->place;
}

struct leader_member *pmix_world_member(const struct pmix_world *pmix_world, int place)
{
    for (int i = 0; i < roster_count(pmix_world->leader); i++)
        if (pmix_world_place(pmix_world, roster_at(pmix_world->leader, i)) == place)
            return roster_at(pmix_world->leader, i);
    return NULL;
}

json_object *pmix_world_message(const struct pmix_world *pmix_world, const char *type)
{
    json_object *msg = leader_message(type, -1);

    json_object_object_add(msg, "attempt", json_object_new_int(pmix_world->relay->attempt));
    return msg;
}

void pmix_world_answer(const struct pmix_world *pmix_world, struct leader_member *m,
                       json_object *question, json_object *answer)
{
    int64_t id;

    json_object_object_add(answer, "t", json_object_new_string("answer"));
    json_object_object_add(answer, "attempt", json_object_new_int(pmix_world->relay->attempt));
    if (json_get_int(question, "id", 0, INT64_MAX, &id))
        json_object_object_add(answer, "id", json_object_new_int64(id));
    leader_send(m, answer);
}
