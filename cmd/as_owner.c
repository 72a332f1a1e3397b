/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Root opens another user's files as that user (as_owner.h). */
#include "cmd/as_owner.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/terminal_text.h"

/* What seteuid() and the others change is of all threads of the process. */
static int become(const char *user, uid_t uid, gid_t gid)
{
    return initgroups(user, gid) < 0 || setegid(gid) < 0 || seteuid(uid) < 0 ? -1 : 0;
}

int as_owner_begin(struct as_owner *self, const char *user, uid_t uid, gid_t gid, struct error *err)
{
    *self = (struct as_owner){.group = getegid()};
    if (geteuid() != 0 || user == NULL || uid == 0)
        return 0;
    self->groups = text_need(calloc(NGROUPS_MAX, sizeof(*self->groups)));
    self->count = getgroups(NGROUPS_MAX, self->groups);
    self->became = true;
    if (self->count >= 0 && become(user, uid, gid) == 0)
        return 0;
    error_set(err, "cannot become %s to read the file: %s", user, strerror(errno));
    struct error ignored;
    as_owner_end(self, &ignored);
    return -1;
}

int as_owner_end(struct as_owner *self, struct error *err)
{
    int rc = 0;
    if (self->became && (seteuid(0) < 0 || setegid(self->group) < 0 ||
                         (self->count >= 0 && setgroups((size_t)self->count, self->groups) < 0)))
        rc = error_set(err, "cannot become root again: %s", strerror(errno));
    free(self->groups);
    *self = (struct as_owner){0};
    return rc;
}
