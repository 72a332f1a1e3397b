/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Root opens another user's files as that user: links there may lead anywhere, to devices too, and
 * a home directory on NFS may be closed to root. */
#ifndef SELASTIC_AS_OWNER_H
#define SELASTIC_AS_OWNER_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/error.h"

struct as_owner {
    bool became; /* another user */
    int count;   /* of groups */
    gid_t group;
    gid_t *groups;
};

/* Become the owner of files, if this is root's process and he is not root. -1 with err: this is
 * still root. For a process without other threads that need root's rights meanwhile. */
int as_owner_begin(struct as_owner *self, const char *user, uid_t uid, gid_t gid,
                   struct error *err);
/* Be root again. -1 with err: it cannot be, so end. */
int as_owner_end(struct as_owner *self, struct error *err);

#endif
