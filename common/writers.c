/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who may write into a file or directory (writers.h). */
#include "common/writers.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#define ENTRY_MAX 16384 /* bytes of an entry; a group of so many members is no user's own */

/* Does more than the mode say who may write? */
static bool has_acl(int fd)
{
    char path[48];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return getxattr(path, "system.posix_acl_access", NULL, 0) >= 0 ||
           (errno != ENODATA && errno != ENOTSUP);
}

static bool is_own_group(gid_t gid)
{
    char user_text[ENTRY_MAX], group_text[ENTRY_MAX];
    struct passwd user, *found_user = NULL;
    struct group group, *found_group = NULL;

    if (getpwuid_r(geteuid(), &user, user_text, sizeof(user_text), &found_user) != 0 ||
        found_user == NULL || user.pw_gid != gid ||
        getgrgid_r(gid, &group, group_text, sizeof(group_text), &found_group) != 0 ||
        found_group == NULL || strcmp(group.gr_name, user.pw_name) != 0)
        return false;
    for (char **member = group.gr_mem; *member != NULL; member++)
        if (strcmp(*member, user.pw_name) != 0)
            return false;
    return true;
}

static bool is_own(struct writers *writers, gid_t gid)
{
    if (!writers->known || writers->gid != gid)
        *writers = (struct writers){.known = true, .own = is_own_group(gid), .gid = gid};
    return writers->own;
}

bool writers_are_others(struct writers *writers, int fd, const struct stat *st)
{
    if ((st->st_mode & 022) == 0)
        return false;
    return (st->st_mode & 002) != 0 || st->st_uid != geteuid() || has_acl(fd) ||
           !is_own(writers, st->st_gid);
}
