/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a grant opens (grant_plan.h). */
#include "fit/grant_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/entry.h"
#include "fit/acl.h"
#include "fit/grant_list.h"
#include "fit/grant_tree.h"
#include "fit/pin.h"
#include "lib/json_get.h"

#define GROUPS_MAX 1024

static const char *const reach_names[GRANT_REACHES] = {"pass", "read", "write"};

/* A plan in the making. */
struct plan {
    const struct home *home;
    int64_t id;
    const struct grant_order *order;
    json_object *paths;
    struct acl_user user; /* who gets access */
};

static int failed(const char *path, struct error *err)
{
    if (errno == ELOOP)
        return error_set(err, "%s: there is a link in it", error_path(path).text);
    return error_set(err, "%s: %s", error_path(path).text, strerror(errno));
}

/* ---- what a path is -------------------------------------------------------------------------- */

enum grant_reach grant_reach_of(json_object *one)
{
    const char *name = json_get_string(one, "reach");
    int reach = 0;

    while (reach < GRANT_REACHES && (name == NULL || strcmp(name, reach_names[reach]) != 0))
        reach++;
    return (enum grant_reach)reach;
}

void grant_describe(json_object *one, const struct stat *st)
{
    const struct pin pin = pin_of(st);

    pin_add(one, &pin);
}

bool grant_is_same(json_object *one, const struct stat *st)
{
    const struct pin pin = pin_read(one);

    return pin_is(&pin, st);
}

/* ---- paths ----------------------------------------------------------------------------------- */

static void add(const struct plan *plan, const char *path, enum grant_reach reach,
                const struct stat *st)
{
    json_object *one = json_object_new_object();

    json_object_object_add(one, "path", json_object_new_string(path));
    json_object_object_add(one, "reach", json_object_new_string(reach_names[reach]));
    grant_describe(one, st);
    json_object_array_add(plan->paths, one);
}

/* An entry that is there would be taken away at the end. */
static int check_new(const struct grant_walk *walk, int fd, const char *path, const struct stat *st,
                     struct error *err)
{
    bool has;

    (void)st;
    if (acl_has_user(fd, path, walk->uid, &has, err) != 0)
        return -1;
    return has ? error_set(err,
                           "%s: its ACL names the trainer's user already; another fit has given "
                           "that, or take it away",
                           error_path(path).text)
               : 0;
}

static bool is_listed(json_object *paths, const char *path)
{
    for (size_t i = 0; i < json_object_array_length(paths); i++) {
        const char *its = json_get_string(json_object_array_get_idx(paths, i), "path");

        if (its != NULL && strcmp(its, path) == 0)
            return true;
    }
    return false;
}

/* REPOSITORY and what is below it, of REPOSITORY/MODEL/STATE.partial/.incoming: it was made for its
 * user only. */
static bool is_of_repository(const char *path, const char *incoming)
{
    size_t length = strlen(path);
    const char *rest = incoming + length;
    int below = 0;

    if (strncmp(incoming, path, length) != 0 || *rest != '/')
        return false;
    for (; *rest != '\0'; rest++)
        below += *rest == '/';
    return below <= 3;
}

/* Others may do nothing with it, nor may the trainer by its groups, or by an entry of its ACL. */
static int check_closed(const struct plan *plan, int dir, const char *name, const char *path,
                        struct error *err)
{
    const char *user = plan->order->user;
    bool may = false;
    struct stat st;
    int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), rc;

    if (fd < 0)
        return errno == ENOENT ? 0 : failed(path, err);
    rc = fstat(fd, &st) == 0 ? 0 : failed(path, err);
    if (rc == 0 && !S_ISLNK(st.st_mode) && (st.st_mode & S_IRWXO) != 0)
        rc = error_set(err,
                       "%s/%s: others may open it, but cannot pass the directory above; %s will "
                       "pass that one, so take it from others (chmod o-rwx)",
                       error_path(path).text, error_value(name).text, user);
    else if (rc == 0 && !S_ISLNK(st.st_mode))
        rc = acl_lets(fd, path, &plan->user, &may, err);
    close(fd);
    return may ? error_set(err,
                           "%s/%s: its group or its ACL lets %s in, who cannot pass the directory "
                           "above now, and will; take that away (chmod g-rwx, setfacl -b)",
                           error_path(path).text, error_value(name).text, user)
               : rc;
}

/* What the trainer may open once it can pass the directory: it is not only its own data that lies
 * there. */
static int check_below(const struct plan *plan, int fd, const char *path, struct error *err)
{
    DIR *list = entry_list(fd);
    const char *name;
    int rc = 0;

    if (list == NULL)
        return failed(path, err);
    while (rc == 0 && (name = entry_next(list)) != NULL)
        rc = check_closed(plan, dirfd(list), name, path, err);
    closedir(list);
    return rc;
}

/* Can the trainer pass it by an entry that is there? One of another fit is of this one, too: the
 * last of them takes it away. */
static int look_at_pass(const struct plan *plan, int fd, const char *path, bool own,
                        const struct stat *st, bool *has, struct error *err)
{
    const struct grant_order *order = plan->order;

    if (acl_has_user(fd, path, order->uid, has, err) != 0)
        return -1;
    if (!*has)
        return own ? check_below(plan, fd, path, err) : 0;
    if (own && grant_is_held(path, order->uid, plan->home, plan->id))
        add(plan, path, GRANT_PASS, st);
    return 0;
}

/* A directory of this user that lets nobody through. Others than those of the repository stay so:
 * all below them that others may read would be open, too. */
static int pass(const struct plan *plan, const char *path, struct error *err)
{
    const struct grant_order *order = plan->order;
    bool has = false, own = order->write != NULL && is_of_repository(path, order->write);
    struct stat st;
    int rc, fd = entry_open_path(path, &st);

    if (fd < 0)
        return failed(path, err);
    rc = look_at_pass(plan, fd, path, own, &st, &has, err);
    close(fd);
    if (rc != 0 || has)
        return rc;
    if (!own)
        return error_set(err,
                         "%s: others cannot pass this directory, so %s would not reach what is "
                         "below; let others pass it (chmod o+x), or use another place",
                         error_path(path).text, order->user);
    add(plan, path, GRANT_PASS, &st);
    return 0;
}

static int pass_above(const struct plan *plan, const char *path, struct error *err)
{
    char part[PATH_MAX];

    for (const char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        struct stat st;

        snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
        if (is_listed(plan->paths, part) || stat(part, &st) != 0 || st.st_uid != geteuid() ||
            (st.st_mode & S_IXOTH) != 0)
            continue;
        if (pass(plan, part, err) != 0)
            return -1;
    }
    return 0;
}

static int open_own(const char *path, struct stat *st, struct error *err)
{
    int fd = entry_open_path(path, st);

    if (fd < 0)
        return failed(path, err);
    if (st->st_uid == geteuid())
        return fd;
    close(fd);
    return error_set(err, "%s: it is not yours; a trainer of another user opens only what is",
                     error_path(path).text);
}

int grant_check(const char *path, struct pin_data *data, struct error *err)
{
    struct stat st;
    int fd = open_own(path, &st, err);

    if (fd < 0)
        return -1;
    *data = pin_data_of(fd, &st);
    close(fd);
    return 0;
}

/* Who may rename in a directory above could put something else there that is this user's. */
static bool is_other(int fd, const struct stat *st, const struct pin_data *before)
{
    const struct pin_data now = pin_data_of(fd, st);

    return !pin_data_is(before, &now);
}

static bool is_other_dir(const struct stat *st, const struct pin *pin)
{
    return pin != NULL && !pin_is_dir(st, pin);
}

/* What is planned is what is opened later, by its inode. A directory with a pin has been chosen by
 * the fit, not by its path. */
static int add_read(const struct plan *plan, int which, struct error *err)
{
    const struct pin *pin = plan->order->read[which].pin;
    const struct grant_walk walk = {
        .uid = plan->order->uid, .each = check_new, .above = pin == NULL || pin->inode == 0};
    const char *path = plan->order->read[which].path;
    struct stat st;
    int rc, fd = open_own(path, &st, err);

    if (fd < 0)
        return -1;
    rc = is_other(fd, &st, &plan->order->read[which].data) || is_other_dir(&st, pin)
             ? error_set(err, "%s: it is another one than when the fit was started",
                         error_path(path).text)
             : grant_walk_tree(&walk, fd, path, &st, true, err);
    close(fd);
    if (rc != 0 || pass_above(plan, path, err) != 0)
        return -1;
    add(plan, path, GRANT_READ, &st);
    return 0;
}

static int add_write(const struct plan *plan, const char *path, struct error *err)
{
    struct stat st;
    int fd = open_own(path, &st, err);

    if (fd < 0)
        return -1;
    close(fd);
    if (is_other_dir(&st, plan->order->made))
        return error_set(err, "%s: it is another one than the fit has made", error_path(path).text);
    if (pass_above(plan, path, err) != 0)
        return -1;
    add(plan, path, GRANT_WRITE, &st);
    return 0;
}

/* ---- all ------------------------------------------------------------------------------------- */

/* The number of groups. Without an entry for the user none is known. */
static int groups_of(uid_t uid, gid_t groups[GROUPS_MAX])
{
    const struct passwd *entry = getpwuid(uid);
    int count = GROUPS_MAX;

    if (entry == NULL)
        return 0;
    return getgrouplist(entry->pw_name, entry->pw_gid, groups, &count) >= 0 ? count : GROUPS_MAX;
}

json_object *grant_plan(const struct home *home, int64_t id, const struct grant_order *order,
                        struct error *err)
{
    gid_t groups[GROUPS_MAX];
    const struct plan plan = {
        .home = home,
        .id = id,
        .order = order,
        .paths = json_object_new_array(),
        .user = {.uid = order->uid, .groups = groups, .count = groups_of(order->uid, groups)}};
    int rc = 0;

    for (int i = 0; rc == 0 && i < GRANT_READ_MAX; i++)
        if (order->read[i].path != NULL)
            rc = add_read(&plan, i, err);
    if (rc == 0 && order->write != NULL)
        rc = add_write(&plan, order->write, err);
    if (rc == 0)
        return plan.paths;
    json_object_put(plan.paths);
    return NULL;
}
