/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists of users and groups (allowed_users.h). */
#include "common/allowed_users.h"

#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX   ((size_t)64 << 10)
#define GROUPS_MAX 1024

static bool is_member(const struct passwd *user, const char *group)
{
    char *text = malloc(TEXT_MAX);
    gid_t *groups = calloc(GROUPS_MAX, sizeof(*groups));
    struct group entry, *found = NULL;
    int count = GROUPS_MAX;
    bool member = false;

    if (text != NULL && groups != NULL && getgrnam_r(group, &entry, text, TEXT_MAX, &found) == 0 &&
        found != NULL && getgrouplist(user->pw_name, user->pw_gid, groups, &count) >= 0)
        for (int i = 0; i < count; i++)
            member = member || groups[i] == found->gr_gid;
    free(groups);
    free(text);
    return member;
}

bool user_is_allowed(uid_t uid, char *const *allow)
{
    char *text = allow != NULL ? malloc(TEXT_MAX) : NULL;
    struct passwd entry, *user = NULL;
    bool allowed = false;

    if (text != NULL && getpwuid_r(uid, &entry, text, TEXT_MAX, &user) == 0 && user != NULL)
        for (char *const *one = allow; *one != NULL && !allowed; one++)
            allowed = (*one)[0] == '@' ? is_member(user, *one + 1)
                                       : strcmp(*one, user->pw_name) == 0;
    free(text);
    return allowed;
}
