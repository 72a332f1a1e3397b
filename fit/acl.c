/* SPDX-License-Identifier: GPL-2.0-or-later */
/* POSIX ACLs by libacl (acl.h). */
#include "fit/acl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <acl/libacl.h>
#include <sys/acl.h>
#include <sys/stat.h>
#include <unistd.h>

#define FD_PATH_MAX 40

/* errno stays. */
static int failed(const char *path, struct error *err)
{
    int reason = errno;

    if (reason == ENOTSUP)
        error_set(err, "%s: its file system has no POSIX ACLs", error_path(path).text);
    else
        error_set(err, "%s: its ACL: %s", error_path(path).text, strerror(reason));
    errno = reason;
    return -1;
}

/* The path of an open file: libacl has default ACLs by path only. */
static void path_of(int fd, char path[FD_PATH_MAX])
{
    snprintf(path, FD_PATH_MAX, "/proc/self/fd/%d", fd);
}

/* ---- entries --------------------------------------------------------------------------------- */

/* The entry of a kind, and of that user if it is of users. False: there is none. */
static bool find(acl_t acl, acl_tag_t wanted, uid_t uid, acl_entry_t *entry)
{
    int which = ACL_FIRST_ENTRY;

    while (acl_get_entry(acl, which, entry) == 1) {
        acl_tag_t tag = ACL_UNDEFINED_TAG;
        uid_t *of;
        bool same;

        which = ACL_NEXT_ENTRY;
        acl_get_tag_type(*entry, &tag);
        if (tag != wanted)
            continue;
        if (tag != ACL_USER)
            return true;
        of = acl_get_qualifier(*entry);
        same = of != NULL && *of == uid;
        acl_free(of);
        if (same)
            return true;
    }
    return false;
}

static unsigned int rights_of(acl_entry_t entry)
{
    acl_permset_t set;

    if (acl_get_permset(entry, &set) != 0)
        return 0;
    return (acl_get_perm(set, ACL_READ) > 0 ? ACL_R : 0) |
           (acl_get_perm(set, ACL_WRITE) > 0 ? ACL_W : 0) |
           (acl_get_perm(set, ACL_EXECUTE) > 0 ? ACL_X : 0);
}

static int set_rights(acl_entry_t entry, unsigned int rights)
{
    acl_permset_t set;

    if (acl_get_permset(entry, &set) != 0 || acl_clear_perms(set) != 0 ||
        ((rights & ACL_R) != 0 && acl_add_perm(set, ACL_READ) != 0) ||
        ((rights & ACL_W) != 0 && acl_add_perm(set, ACL_WRITE) != 0) ||
        ((rights & ACL_X) != 0 && acl_add_perm(set, ACL_EXECUTE) != 0))
        return -1;
    return acl_set_permset(entry, set);
}

/* A new entry; uid is that of a user's. */
static int add(acl_t *acl, acl_tag_t tag, uid_t uid, unsigned int rights)
{
    acl_entry_t entry;

    if (acl_create_entry(acl, &entry) != 0 || acl_set_tag_type(entry, tag) != 0 ||
        (tag == ACL_USER && acl_set_qualifier(entry, &uid) != 0))
        return -1;
    return set_rights(entry, rights);
}

static bool has_names(acl_t acl)
{
    acl_entry_t entry;
    acl_tag_t tag;

    for (int which = ACL_FIRST_ENTRY; acl_get_entry(acl, which, &entry) == 1;
         which = ACL_NEXT_ENTRY)
        if (acl_get_tag_type(entry, &tag) == 0 && (tag == ACL_USER || tag == ACL_GROUP))
            return true;
    return false;
}

/* Is the entry for that user, or for a group of that user? */
static bool is_for(acl_entry_t entry, acl_tag_t tag, const struct acl_user *user, gid_t group)
{
    void *of = tag == ACL_USER || tag == ACL_GROUP ? acl_get_qualifier(entry) : NULL;
    bool same = tag == ACL_USER && of != NULL && *(uid_t *)of == user->uid;

    if (tag == ACL_GROUP && of != NULL)
        group = *(gid_t *)of;
    for (int i = 0; i < user->count && (tag == ACL_GROUP_OBJ || (tag == ACL_GROUP && of != NULL));
         i++)
        same = same || user->groups[i] == group;
    acl_free(of);
    return same;
}

static bool lets(acl_t acl, const struct acl_user *user, gid_t group)
{
    acl_entry_t entry, mask;
    unsigned int most = find(acl, ACL_MASK, 0, &mask) ? rights_of(mask) : ~0U;
    acl_tag_t tag;

    for (int which = ACL_FIRST_ENTRY; acl_get_entry(acl, which, &entry) == 1;
         which = ACL_NEXT_ENTRY)
        if (acl_get_tag_type(entry, &tag) == 0 && (rights_of(entry) & most) != 0 &&
            is_for(entry, tag, user, group))
            return true;
    return false;
}

/* ---- one user more --------------------------------------------------------------------------- */

int acl_has_user(int fd, const char *path, uid_t uid, bool *has, struct error *err)
{
    acl_t acl = acl_get_fd(fd);
    acl_entry_t entry;

    *has = false;
    if (acl == NULL)
        return errno == ENOTSUP ? 0 : failed(path, err);
    *has = find(acl, ACL_USER, uid, &entry);
    acl_free(acl);
    return 0;
}

int acl_lets(int fd, const char *path, const struct acl_user *user, bool *may, struct error *err)
{
    char of[FD_PATH_MAX];
    struct stat st;
    acl_t acl;

    if (fstat(fd, &st) != 0)
        return failed(path, err);
    path_of(fd, of);
    acl = acl_get_file(of, ACL_TYPE_ACCESS);
    if (acl == NULL && errno == ENOTSUP)
        acl = acl_from_mode(st.st_mode);
    if (acl == NULL)
        return failed(path, err);
    *may = lets(acl, user, st.st_gid);
    acl_free(acl);
    return 0;
}

static bool has_writer(acl_t acl, uid_t uid)
{
    const struct acl_user user = {.uid = uid};
    acl_entry_t entry, mask;
    acl_tag_t tag;

    if (!find(acl, ACL_MASK, 0, &mask) || (rights_of(mask) & ACL_W) == 0)
        return false;
    for (int which = ACL_FIRST_ENTRY; acl_get_entry(acl, which, &entry) == 1;
         which = ACL_NEXT_ENTRY)
        if (acl_get_tag_type(entry, &tag) == 0 && (tag == ACL_USER || tag == ACL_GROUP) &&
            (rights_of(entry) & ACL_W) != 0 && !is_for(entry, tag, &user, 0))
            return true;
    return false;
}

int acl_names_writer(int fd, const char *path, uid_t uid, bool *named, struct error *err)
{
    char of[FD_PATH_MAX];
    acl_t acl;

    path_of(fd, of);
    acl = acl_get_file(of, ACL_TYPE_ACCESS);
    *named = false;
    if (acl == NULL)
        return errno == ENOTSUP ? 0 : failed(path, err);
    *named = has_writer(acl, uid);
    acl_free(acl);
    return 0;
}

/* The mask holds for all names and for the group. Without one, it begins as what the group has. To
 * widen one that is there would let others in. */
static int fit_mask(acl_t *acl, unsigned int rights, const char *path, struct error *err)
{
    acl_entry_t mask, group;
    unsigned int now;

    if (!find(*acl, ACL_MASK, 0, &mask)) {
        now = find(*acl, ACL_GROUP_OBJ, 0, &group) ? rights_of(group) : 0;
        return add(acl, ACL_MASK, 0, now | rights) == 0 ? 0 : failed(path, err);
    }
    now = rights_of(mask);
    if ((now & rights) == rights)
        return 0;
    return error_set(err, "%s: the mask of its ACL lets nobody in who is named there",
                     error_path(path).text);
}

int acl_let(int fd, const char *path, uid_t uid, unsigned int rights, struct error *err)
{
    acl_t acl = acl_get_fd(fd);
    acl_entry_t entry;
    int rc;

    if (acl == NULL)
        return failed(path, err);
    rc = find(acl, ACL_USER, uid, &entry) ? set_rights(entry, rights)
                                          : add(&acl, ACL_USER, uid, rights);
    if (rc != 0)
        rc = failed(path, err);
    else
        rc = fit_mask(&acl, rights, path, err);
    if (rc == 0 && acl_set_fd(fd, acl) != 0)
        rc = failed(path, err);
    acl_free(acl);
    return rc;
}

/* Only the owner, and these users: own is this one's, who need not be the owner of what is made. */
static acl_t acl_of_two(uid_t own, uid_t uid)
{
    unsigned int all = ACL_R | ACL_W | ACL_X;
    acl_t acl = acl_init(6);

    if (acl == NULL || add(&acl, ACL_USER_OBJ, 0, all) != 0 ||
        (uid != own && add(&acl, ACL_USER, own, all) != 0) || add(&acl, ACL_USER, uid, all) != 0 ||
        add(&acl, ACL_GROUP_OBJ, 0, 0) != 0 || add(&acl, ACL_MASK, 0, all) != 0 ||
        add(&acl, ACL_OTHER, 0, 0) != 0) {
        acl_free(acl);
        return NULL;
    }
    return acl;
}

int acl_let_only(int fd, const char *path, uid_t uid, struct error *err)
{
    acl_t below = acl_of_two(geteuid(), uid), acl = acl_of_two(uid, uid);
    char of[FD_PATH_MAX];
    int rc;

    path_of(fd, of);
    rc = below != NULL && acl != NULL && acl_set_file(of, ACL_TYPE_DEFAULT, below) == 0 &&
                 acl_set_fd(fd, acl) == 0
             ? 0
             : failed(path, err);
    acl_free(below);
    acl_free(acl);
    return rc;
}

/* Without other names there is no mask. What it has kept from the group stays so. */
static int take_out(acl_t acl, acl_entry_t entry)
{
    acl_entry_t mask, group;

    if (acl_delete_entry(acl, entry) != 0)
        return -1;
    if (has_names(acl) || !find(acl, ACL_MASK, 0, &mask))
        return 0;
    if (find(acl, ACL_GROUP_OBJ, 0, &group) &&
        set_rights(group, rights_of(group) & rights_of(mask)) != 0)
        return -1;
    return acl_delete_entry(acl, mask);
}

/* In the place of acl_free(): errno stays. */
static void release(acl_t acl)
{
    int reason = errno;

    acl_free(acl);
    errno = reason;
}

int acl_withdraw(int fd, const char *path, uid_t uid, struct error *err)
{
    acl_t acl = acl_get_fd(fd);
    acl_entry_t entry;
    int rc = 0;

    if (acl == NULL)
        return errno == ENOTSUP ? 0 : failed(path, err);
    if (find(acl, ACL_USER, uid, &entry) && (take_out(acl, entry) != 0 || acl_set_fd(fd, acl) != 0))
        rc = failed(path, err);
    release(acl);
    return rc;
}

int acl_withdraw_below(int fd, const char *path, uid_t uid, struct error *err)
{
    char of[FD_PATH_MAX];
    acl_entry_t entry;
    acl_t acl;
    int rc = 0;

    path_of(fd, of);
    acl = acl_get_file(of, ACL_TYPE_DEFAULT);
    if (acl == NULL)
        return errno == ENOTSUP ? 0 : failed(path, err);
    if (find(acl, ACL_USER, uid, &entry) && acl_delete_def_file(of) != 0)
        rc = failed(path, err);
    release(acl);
    return rc;
}
