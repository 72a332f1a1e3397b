/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Access for a trainer of another user (grant.h). */
#include "fit/grant.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/log.h"
#include "common/service_dir.h"
#include "fit/acl.h"
#include "lib/json_get.h"
#include "lib/json_text.h"

#define DEPTH_MAX 32

/* How a path is let at. */
enum reach { REACH_PASS, REACH_READ, REACH_WRITE, REACHES };

static const char *const reach_names[REACHES] = {"pass", "read", "write"};

static int failed(const char *path, struct error *err)
{
    if (errno == ELOOP)
        return error_set(err, "%s: there is a link in it", error_path(path).text);
    return error_set(err, "%s: %s", error_path(path).text, strerror(errno));
}

/* What was a directory on the way may be a link by now, to other files of this user. */
static int open_path(const char *path, struct stat *st)
{
    struct open_how how = {.flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY,
                           .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

    if (fd >= 0 && fstat(fd, st) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* ---- a tree ---------------------------------------------------------------------------------- */

struct walk {
    uid_t uid;
    int (*each)(const struct walk *walk, int fd, const char *path, const struct stat *st,
                struct error *err);
};

static int walk_tree(const struct walk *walk, int fd, const char *path, const struct stat *st,
                     int depth, struct error *err);

static int withdraw(const struct walk *walk, int fd, const char *path, const struct stat *st,
                    struct error *err);

/* One thing that stays open is no reason for others to stay open. */
static bool goes_on(const struct walk *walk)
{
    return walk->each == withdraw;
}

/* Links and devices are left out: nobody is let at what they name. So is what others have there, if
 * it cannot be opened: it may hide nothing that access was given to. */
static int walk_entry(const struct walk *walk, int dir, const char *name, const char *path,
                      int depth, struct error *err)
{
    struct stat st;
    bool own;
    int fd, rc;

    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : failed(path, err);
    own = st.st_uid == geteuid();
    if (!S_ISDIR(st.st_mode) && (!S_ISREG(st.st_mode) || !own))
        return 0;
    fd = entry_open(dir, name, st.st_mode & S_IFMT, &st, err);
    if (fd < 0)
        return errno == ENOENT || errno == ELOOP || errno == ENOTDIR || !own
                   ? 0
                   : error_prefix(err, "%s", error_path(path).text);
    rc = walk_tree(walk, fd, path, &st, depth, err);
    close(fd);
    return rc;
}

static int walk_tree(const struct walk *walk, int fd, const char *path, const struct stat *st,
                     int depth, struct error *err)
{
    const char *name;
    DIR *list;
    int rc = st->st_uid == geteuid() ? walk->each(walk, fd, path, st, err) : 0;

    if ((rc != 0 && !goes_on(walk)) || !S_ISDIR(st->st_mode))
        return rc;
    if (depth == DEPTH_MAX) /* access is given to nothing that is deeper */
        return goes_on(walk) ? rc
                             : error_set(err, "%s: more than %d directories deep",
                                         error_path(path).text, DEPTH_MAX);
    list = entry_list(fd);
    if (list == NULL)
        return failed(path, err);
    while ((rc == 0 || goes_on(walk)) && (name = entry_next(list)) != NULL) {
        char below[PATH_MAX];
        struct error why;

        if ((snprintf(below, sizeof(below), "%s/%s", path, name) < (int)sizeof(below)
                 ? walk_entry(walk, fd, name, below, depth + 1, &why)
                 : error_set(&why, "%s: too long", error_path(path).text)) == 0 ||
            rc != 0)
            continue;
        *err = why;
        rc = -1;
    }
    closedir(list);
    return rc;
}

/* Somebody who may rename in a directory above has put something else there. The end of a fit does
 * not wait for that. */
static bool is_lost(const struct walk *walk, const char *path)
{
    if (errno == ENOENT)
        return true;
    if (walk->each != withdraw || (errno != ELOOP && errno != ENOTDIR && errno != EACCES))
        return false;
    log_error("%s cannot be reached any more (%s): it may stay open for uid %u",
              error_path(path).text, strerror(errno), walk->uid);
    return true;
}

static int walk_path(const struct walk *walk, const char *path, bool tree, struct error *err)
{
    struct stat st;
    int rc, fd = open_path(path, &st);

    if (fd < 0)
        return is_lost(walk, path) ? 0 : failed(path, err);
    rc = tree ? walk_tree(walk, fd, path, &st, 0, err) : walk->each(walk, fd, path, &st, err);
    close(fd);
    return rc;
}

/* ---- what is to be given --------------------------------------------------------------------- */

static void add(json_object *paths, const char *path, enum reach reach)
{
    json_object *one = json_object_new_object();

    json_object_object_add(one, "path", json_object_new_string(path));
    json_object_object_add(one, "reach", json_object_new_string(reach_names[reach]));
    json_object_array_add(paths, one);
}

/* An entry that is there would be taken away at the end. */
static int check_new(const struct walk *walk, int fd, const char *path, const struct stat *st,
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

/* What others may open once they can pass the directory: it is not only the trainer's that is
 * trained. */
static int check_below(int fd, const char *path, const struct grant_order *order, struct error *err)
{
    DIR *list = entry_list(fd);
    const char *name;
    struct stat st;
    int rc = 0;

    if (list == NULL)
        return failed(path, err);
    while (rc == 0 && (name = entry_next(list)) != NULL)
        if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISLNK(st.st_mode) &&
            (st.st_mode & S_IRWXO) != 0)
            rc = error_set(err,
                           "%s/%s: others may open it, but cannot pass the directory above; %s "
                           "will pass that one, so take it from others (chmod o-rwx)",
                           error_path(path).text, error_value(name).text, order->user);
    closedir(list);
    return rc;
}

/* A directory of this user that lets nobody through. Others than those of the repository stay so:
 * all below them that others may read would be open, too. */
static int pass(json_object *paths, const struct grant_order *order, const char *path,
                struct error *err)
{
    struct stat st;
    bool has = false;
    int rc, fd = open_path(path, &st);

    if (fd < 0)
        return failed(path, err);
    rc = acl_has_user(fd, path, order->uid, &has, err);
    if (rc == 0 && !has && order->write != NULL && is_of_repository(path, order->write))
        rc = check_below(fd, path, order, err);
    close(fd);
    if (rc != 0 || has)
        return rc;
    if (order->write == NULL || !is_of_repository(path, order->write))
        return error_set(err,
                         "%s: others cannot pass this directory, so %s would not reach what is "
                         "below; let others pass it (chmod o+x), or use another place",
                         error_path(path).text, order->user);
    add(paths, path, REACH_PASS);
    return 0;
}

static int pass_above(json_object *paths, const struct grant_order *order, const char *path,
                      struct error *err)
{
    char part[PATH_MAX];

    for (const char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        struct stat st;

        snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
        if (is_listed(paths, part) || stat(part, &st) != 0 || st.st_uid != geteuid() ||
            (st.st_mode & S_IXOTH) != 0)
            continue;
        if (pass(paths, order, part, err) != 0)
            return -1;
    }
    return 0;
}

int grant_check(const char *path, int64_t *inode, struct error *err)
{
    struct stat st;
    int fd = open_path(path, &st);

    if (fd < 0)
        return failed(path, err);
    close(fd);
    *inode = (int64_t)st.st_ino;
    return st.st_uid == geteuid()
               ? 0
               : error_set(err, "%s: it is not yours; a trainer of another user opens only what is",
                           error_path(path).text);
}

/* Who may rename in a directory above could put something else there that is this user's. */
static int add_read(json_object *paths, const struct grant_order *order, const char *path,
                    int64_t inode, const struct walk *walk, struct error *err)
{
    int64_t now;

    if (grant_check(path, &now, err) != 0)
        return -1;
    if (inode != 0 && now != inode)
        return error_set(err, "%s: it is another one than when the fit was started",
                         error_path(path).text);
    if (walk_path(walk, path, true, err) != 0 || pass_above(paths, order, path, err) != 0)
        return -1;
    add(paths, path, REACH_READ);
    return 0;
}

/* A new array; NULL with err. */
static json_object *plan(const struct grant_order *order, struct error *err)
{
    const struct walk walk = {.uid = order->uid, .each = check_new};
    json_object *paths = json_object_new_array();
    int rc = 0;

    for (int i = 0; rc == 0 && i < GRANT_READ_MAX; i++)
        if (order->read[i].path != NULL)
            rc = add_read(paths, order, order->read[i].path, order->read[i].inode, &walk, err);
    if (rc == 0 && order->write != NULL)
        rc = pass_above(paths, order, order->write, err);
    if (rc == 0 && order->write != NULL)
        add(paths, order->write, REACH_WRITE);
    if (rc == 0)
        return paths;
    json_object_put(paths);
    return NULL;
}

/* ---- giving ---------------------------------------------------------------------------------- */

static int give_pass(const struct walk *walk, int fd, const char *path, const struct stat *st,
                     struct error *err)
{
    return (st->st_mode & S_IXOTH) == 0 ? acl_let(fd, path, walk->uid, ACL_X, err) : 0;
}

/* What all may read needs nothing. */
static int give_read(const struct walk *walk, int fd, const char *path, const struct stat *st,
                     struct error *err)
{
    bool dir = S_ISDIR(st->st_mode);
    mode_t all = dir ? S_IROTH | S_IXOTH : S_IROTH;

    return (st->st_mode & all) == all
               ? 0
               : acl_let(fd, path, walk->uid, dir ? ACL_R | ACL_X : ACL_R, err);
}

static int give_write(const struct walk *walk, int fd, const char *path, const struct stat *st,
                      struct error *err)
{
    (void)st;
    return acl_let_below(fd, path, walk->uid, err) == 0
               ? acl_let(fd, path, walk->uid, ACL_R | ACL_W | ACL_X, err)
               : -1;
}

static int withdraw(const struct walk *walk, int fd, const char *path, const struct stat *st,
                    struct error *err)
{
    (void)st;
    return acl_withdraw(fd, path, walk->uid, err);
}

static enum reach reach_of(json_object *one)
{
    const char *name = json_get_string(one, "reach");
    int reach = 0;

    while (reach < REACHES && (name == NULL || strcmp(name, reach_names[reach]) != 0))
        reach++;
    return (enum reach)reach;
}

/* give: or take away. What is at hand is done in any case; err is the first failure. */
static int carry_out(json_object *grant, bool give, struct error *err)
{
    static int (*const gives[REACHES])(const struct walk *, int, const char *, const struct stat *,
                                       struct error *) = {
        [REACH_PASS] = give_pass, [REACH_READ] = give_read, [REACH_WRITE] = give_write};
    json_object *paths = json_object_object_get(grant, "paths");
    int64_t uid = -1;
    int rc = 0;

    if (!json_object_is_type(paths, json_type_array) ||
        !json_get_int(grant, "uid", 0, UINT32_MAX, &uid))
        return error_set(err, HOME_GRANT_FILE ": this is no grant");
    for (size_t i = 0; i < json_object_array_length(paths); i++) {
        json_object *one = json_object_array_get_idx(paths, i);
        const char *path = json_get_string(one, "path");
        enum reach reach = reach_of(one);
        struct walk walk = {.uid = (uid_t)uid, .each = withdraw};
        struct error why;

        if (path == NULL || path[0] != '/' || reach == REACHES)
            continue;
        if (give)
            walk.each = gives[reach];
        if (walk_path(&walk, path, reach == REACH_READ, &why) == 0)
            continue;
        if (rc == 0 && err != NULL)
            *err = why;
        rc = -1;
        if (give)
            break;
    }
    return rc;
}

/* ---- of a fit -------------------------------------------------------------------------------- */

static int make_incoming(const char *path, struct error *err)
{
    return mkdir(path, 0700) == 0 || errno == EEXIST ? 0 : failed(path, err);
}

static void stamp(json_object *grant, const struct grant_order *order)
{
    json_object_object_add(grant, "job", json_object_new_int64(order->job));
    json_object_object_add(grant, "restarts", json_object_new_int64(order->restarts));
    json_object_object_add(grant, "cluster", json_from_string(order->cluster));
}

static json_object *grant_new(const struct grant_order *order, struct error *err)
{
    json_object *paths = plan(order, err), *grant;

    if (paths == NULL)
        return NULL;
    grant = json_object_new_object();
    json_object_object_add(grant, "kind", json_object_new_string("acl"));
    json_object_object_add(grant, "user", json_object_new_string(order->user));
    json_object_object_add(grant, "uid", json_object_new_int64(order->uid));
    json_object_object_add(grant, "until", json_object_new_double(order->until));
    json_object_object_add(grant, "paths", paths);
    return grant;
}

int grant_give(const struct home *home, int64_t id, const struct grant_order *order,
               struct error *err)
{
    json_object *grant = home_read(home, id, HOME_GRANT_FILE, err);
    int rc;

    if (grant == NULL && errno != ENOENT)
        return -1;
    if (order->write != NULL && make_incoming(order->write, err) != 0) {
        json_object_put(grant);
        return -1;
    }
    if (grant == NULL)
        grant = grant_new(order, err);
    if (grant == NULL)
        return -1;
    stamp(grant, order);
    rc = home_write(home, id, HOME_GRANT_FILE, json_object_get(grant), err);
    if (rc == 0)
        rc = carry_out(grant, true, err);
    json_object_put(grant);
    return rc;
}

int grant_revoke(const struct home *home, int64_t id, struct error *err)
{
    json_object *grant = home_read(home, id, HOME_GRANT_FILE, err);
    int rc;

    if (grant == NULL)
        return errno == ENOENT ? 0 : -1;
    rc = carry_out(grant, false, err);
    json_object_put(grant);
    if (rc == 0 && unlink(home_path(home, id, HOME_GRANT_FILE).text) != 0 && errno != ENOENT)
        rc = failed(HOME_GRANT_FILE, err);
    return rc;
}

bool grant_is_open(const struct home *home, int64_t id)
{
    return home_has(home, id, HOME_GRANT_FILE);
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Clusters that share a home number their jobs alike. */
static bool is_of_cluster(json_object *grant, const struct grant_run *run)
{
    const char *its = json_get_string(grant, "cluster");

    return its == NULL || run->cluster == NULL || strcasecmp(its, run->cluster) == 0;
}

/* Has that run of the job given it, or is its time over? */
static bool is_due(json_object *grant, const struct grant_run *run, double now)
{
    int64_t its = 0, restarts = 0;

    json_get_int(grant, "job", 0, UINT32_MAX, &its);
    json_get_int(grant, "restarts", 0, UINT32_MAX, &restarts);
    return json_get_double(grant, "until", 0) < now ||
           (run != NULL && its == run->job && restarts <= run->restarts &&
            is_of_cluster(grant, run));
}

static int revoke_of_service(const struct home *home, const struct grant_run *run, double now,
                             int *count, struct error *err)
{
    size_t fits;
    int64_t *list = home_list(home, &fits, err);
    int rc = list != NULL ? 0 : -1;

    for (size_t i = 0; list != NULL && i < fits; i++) {
        json_object *grant = home_read(home, list[i], HOME_GRANT_FILE, NULL);
        bool due = grant != NULL && is_due(grant, run, now);

        json_object_put(grant);
        if (!due)
            continue;
        if (grant_revoke(home, list[i], err) == 0)
            ++*count;
        else
            rc = -1;
    }
    free(list);
    return rc;
}

int grant_revoke_all(const struct grant_run *run, double now, int *count, struct error *err)
{
    char path[PATH_MAX];
    struct dirent *entry;
    DIR *list;
    int rc = 0;

    *count = 0;
    if (service_dir_all(path, sizeof(path), err) != 0)
        return -1;
    list = opendir(path);
    if (list == NULL)
        return errno == ENOENT ? 0 : failed(path, err);
    while ((entry = readdir(list)) != NULL) {
        struct home home;

        if (entry->d_name[0] == '.' || home_open(&home, entry->d_name, err) != 0)
            continue;
        if (revoke_of_service(&home, run, now, count, err) != 0)
            rc = -1;
    }
    closedir(list);
    return rc;
}
