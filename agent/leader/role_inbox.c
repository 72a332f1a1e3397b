/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What members say of replicas, while another leader may act (role_inbox.h). */
#include "agent/leader/role_inbox.h"

#include <stdlib.h>

#include "agent/leader/roster.h"

struct waiting {
    int member;
    role_take *take;
    json_object *msg;
};

struct role_inbox {
    struct waiting *list;
    size_t count, room;
};

struct role_inbox *role_inbox_create(void)
{
    return calloc(1, sizeof(struct role_inbox));
}

void role_inbox_destroy(struct role_inbox *own)
{
    if (own == NULL)
        return;
    for (size_t i = 0; i < own->count; i++)
        json_object_put(own->list[i].msg);
    free(own->list);
    free(own);
}

bool role_inbox_any(const struct role_inbox *own)
{
    return own->count > 0;
}

bool role_inbox_add(struct role_inbox *own, int member, role_take *take, json_object *msg)
{
    if (own->count == own->room) {
        size_t room = own->room > 0 ? 2 * own->room : 16;
        struct waiting *more = realloc(own->list, room * sizeof(*more));

        if (more == NULL)
            return false;
        own->list = more;
        own->room = room;
    }
    own->list[own->count++] = (struct waiting){member, take, json_object_get(msg)};
    return true;
}

/* Nothing is added meanwhile: messages come from the loop. */
void role_inbox_empty(struct leader *leader, struct role_inbox *own)
{
    for (size_t i = 0; i < own->count; i++) {
        struct leader_member *m = roster_by_id(leader, own->list[i].member);

        if (m != NULL)
            own->list[i].take(leader, m, own->list[i].msg);
        json_object_put(own->list[i].msg);
    }
    own->count = 0;
}
