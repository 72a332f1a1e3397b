/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Access for a trainer of another user (grant.h). */
#include "fit/grant.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "common/entry.h"
#include "common/log.h"
#include "fit/acl.h"
#include "fit/grant_list.h"
#include "fit/grant_plan.h"
#include "fit/grant_tree.h"
#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/text.h"

#define LOST_MAX 1000

/* The grant of one fit. */
struct grant {
    const struct home *home;
    int64_t id;
    json_object *json; /* NULL: there is none */
};

static int failed(const char *path, struct error *err)
{
    if (errno == ELOOP)
        return error_set(err, "%s: there is a link in it", error_path(path).text);
    return error_set(err, "%s: %s", error_path(path).text, strerror(errno));
}

static json_object *list_of(json_object *json, const char *key)
{
    json_object *list = json_object_object_get(json, key);

    return json_object_is_type(list, json_type_array) ? list : NULL;
}

/* A name need not be UTF-8, and JSON is nothing else: such a path is in the file by its
 * bytes, too. */
static void add_path(json_object *one, const char *path)
{
    size_t len = strnlen(path, PATH_MAX - 1), done = 0, next;
    char hex[2 * PATH_MAX];

    while ((next = text_utf8_length(path + done, len - done)) > 0)
        done += next;
    if (done == len) {
        json_object_object_add(one, "path", json_object_new_string(path));
        return;
    }
    json_object_object_add(one, "path", json_object_new_string(error_path(path).text));
    sodium_bin2hex(hex, sizeof(hex), (const unsigned char *)path, len);
    json_object_object_add(one, "bytes", json_object_new_string(hex));
}

/* false: it has none. */
static bool path_of(json_object *one, char path[PATH_MAX])
{
    const char *hex = json_get_string(one, "bytes"), *text = json_get_string(one, "path");
    size_t len = 0;

    if (hex == NULL)
        return text != NULL && (size_t)snprintf(path, PATH_MAX, "%s", text) < PATH_MAX;
    if (sodium_hex2bin((unsigned char *)path, PATH_MAX - 1, hex, strlen(hex), NULL, &len, NULL) !=
        0)
        return false;
    path[len] = '\0';
    return true;
}

static size_t length_of(json_object *json, const char *key)
{
    json_object *list = list_of(json, key);

    return list != NULL ? json_object_array_length(list) : 0;
}

/* ---- giving ---------------------------------------------------------------------------------- */

static int give_pass(const struct grant_walk *walk, int fd, const char *path, const struct stat *st,
                     struct error *err)
{
    return (st->st_mode & S_IXOTH) == 0 ? acl_let(fd, path, walk->uid, ACL_X, err) : 0;
}

/* What all may read needs nothing. */
static int give_read(const struct grant_walk *walk, int fd, const char *path, const struct stat *st,
                     struct error *err)
{
    bool dir = S_ISDIR(st->st_mode);
    mode_t all = dir ? S_IROTH | S_IXOTH : S_IROTH;

    return (st->st_mode & all) == all
               ? 0
               : acl_let(fd, path, walk->uid, dir ? ACL_R | ACL_X : ACL_R, err);
}

static int give_write(const struct grant_walk *walk, int fd, const char *path,
                      const struct stat *st, struct error *err)
{
    (void)st;
    return acl_let_only(fd, path, walk->uid, err);
}

static int give_one(json_object *one, uid_t uid, struct error *err)
{
    static int (*const gives[GRANT_REACHES])(const struct grant_walk *, int, const char *,
                                             const struct stat *, struct error *) = {
        [GRANT_PASS] = give_pass, [GRANT_READ] = give_read, [GRANT_WRITE] = give_write};
    const char *path = json_get_string(one, "path");
    enum grant_reach reach = grant_reach_of(one);
    struct grant_walk walk = {.uid = uid};
    struct stat st;
    int rc, fd;

    if (path == NULL || path[0] != '/' || reach == GRANT_REACHES)
        return 0;
    fd = entry_open_path(path, &st);
    if (fd < 0)
        return errno == ENOENT ? 0 : failed(path, err);
    walk.each = gives[reach];
    rc = grant_is_same(one, &st)
             ? grant_walk_tree(&walk, fd, path, &st, reach == GRANT_READ, err)
             : error_set(err, "%s: it is another one than when access was given",
                         error_path(path).text);
    close(fd);
    return rc;
}

/* What is above others opens after them: whoever comes in finds all of it open. */
static int give_all(json_object *json, struct error *err)
{
    json_object *paths = list_of(json, "paths");
    int64_t uid = -1;
    int rc = 0;

    if (!json_get_int(json, "uid", 0, UINT32_MAX, &uid))
        return error_set(err, HOME_GRANT_FILE ": this is no grant");
    for (size_t i = length_of(json, "paths"); rc == 0 && i-- > 0;)
        rc = give_one(json_object_array_get_idx(paths, i), (uid_t)uid, err);
    return rc;
}

/* ---- taking back ----------------------------------------------------------------------------- */

/* One path that is taken back. */
struct withdrawal {
    const struct grant *grant;
    json_object *one, *lost;
    uid_t uid;
    bool again;            /* it was lost before */
    struct error *refusal; /* the first one of an ACL that may not be changed now; "": none */
};

/* Of an immutable file, or where the file system is read-only: the end of a fit does not wait for
 * that. */
static int refused(const struct grant_walk *walk, const struct error *why)
{
    const struct withdrawal *withdrawal = walk->arg;

    if (errno != EPERM && errno != EROFS)
        return -1;
    if (withdrawal->refusal->text[0] == '\0')
        *withdrawal->refusal = *why;
    return 0;
}

static int withdraw(const struct grant_walk *walk, int fd, const char *path, const struct stat *st,
                    struct error *err)
{
    (void)st;
    return acl_withdraw(fd, path, walk->uid, err) == 0 ? 0 : refused(walk, err);
}

static int withdraw_write(const struct grant_walk *walk, int fd, const char *path,
                          const struct stat *st, struct error *err)
{
    (void)st;
    return acl_withdraw(fd, path, walk->uid, err) == 0 &&
                   acl_withdraw_below(fd, path, walk->uid, err) == 0
               ? 0
               : refused(walk, err);
}

static bool is_among(json_object *list, json_object *one)
{
    for (size_t i = 0; i < json_object_array_length(list); i++)
        if (json_object_equal(json_object_array_get_idx(list, i), one))
            return true;
    return false;
}

/* Where it is now is not known, or it cannot be opened, or not be changed. What is below it may be
 * lost by itself already. */
static void lose(const struct withdrawal *withdrawal, json_object *one, const char *why)
{
    const char *path = json_get_string(one, "path");

    json_object_object_add(one, "uid", json_object_new_int64(withdrawal->uid));
    json_object_object_add(one, "why", json_object_new_string(why));
    if (!withdrawal->again)
        log_error("%s cannot be closed (%s): it may stay open for uid %u",
                  error_path(path != NULL ? path : "").text, why, withdrawal->uid);
    if (json_object_array_length(withdrawal->lost) < LOST_MAX && !is_among(withdrawal->lost, one))
        json_object_array_add(withdrawal->lost, json_object_get(one));
}

static void lose_below(const struct grant_walk *walk, const char *path, const struct stat *st)
{
    const struct withdrawal *withdrawal = walk->arg;
    const char *why = strerror(errno);
    json_object *one = json_object_new_object();

    add_path(one, path);
    json_object_object_add(one, "reach", json_object_new_string("read"));
    grant_describe(one, st);
    lose(withdrawal, one, why);
    json_object_put(one);
}

/* Has this user removed it? Nobody else can do so where nobody else may write. */
static bool is_gone(const char *path)
{
    char above[PATH_MAX], *slash;
    struct stat st;
    int fd;

    snprintf(above, sizeof(above), "%s", path);
    do {
        slash = strrchr(above, '/');
        if (slash == NULL || slash == above)
            return false;
        *slash = '\0';
        fd = entry_open_path(above, &st);
    } while (fd < 0 && errno == ENOENT);
    if (fd < 0)
        return false;
    close(fd);
    return st.st_uid == geteuid() && (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* The end of a fit does not wait for that. */
static int not_reached(const struct withdrawal *withdrawal, const char *path, struct error *err)
{
    int reason = errno;

    if (reason != ENOENT && reason != ELOOP && reason != ENOTDIR && reason != EACCES &&
        reason != ENOTCONN)
        return failed(path, err);
    if (reason != ENOENT || grant_reach_of(withdrawal->one) == GRANT_READ || !is_gone(path))
        lose(withdrawal, withdrawal->one, strerror(reason));
    return 0;
}

static int withdraw_open(const struct withdrawal *withdrawal, int fd, const char *path,
                         const struct stat *st, struct error *err)
{
    enum grant_reach reach = grant_reach_of(withdrawal->one);
    const struct grant_walk walk = {.uid = withdrawal->uid,
                                    .each = reach == GRANT_WRITE ? withdraw_write : withdraw,
                                    .withdraws = true,
                                    .lose = lose_below,
                                    .arg = (void *)(uintptr_t)withdrawal};
    int rc;

    if (!grant_is_same(withdrawal->one, st)) {
        lose(withdrawal, withdrawal->one, "something else is there now");
        return 0;
    }
    if (reach == GRANT_PASS &&
        grant_is_held(path, withdrawal->uid, withdrawal->grant->home, withdrawal->grant->id))
        return 0;
    rc = grant_walk_tree(&walk, fd, path, st, reach == GRANT_READ, err);
    if (rc == 0 && withdrawal->refusal->text[0] != '\0')
        lose(withdrawal, withdrawal->one, withdrawal->refusal->text);
    return rc;
}

static int withdraw_one(const struct withdrawal *withdrawal, struct error *err)
{
    enum grant_reach reach = grant_reach_of(withdrawal->one);
    char path[PATH_MAX];
    struct stat st;
    int rc, fd;

    if (!path_of(withdrawal->one, path) || path[0] != '/' || reach == GRANT_REACHES) {
        if (withdrawal->again)
            lose(withdrawal, withdrawal->one, "what it has opened is not known");
        return 0;
    }
    fd = entry_open_path(path, &st);
    if (fd < 0)
        return not_reached(withdrawal, path, err);
    rc = withdraw_open(withdrawal, fd, path, &st, err);
    close(fd);
    return rc;
}

/* trees: those, or all but those. */
static int withdraw_some(const struct grant *grant, const char *key, bool trees, json_object *lost,
                         struct error *err)
{
    json_object *list = list_of(grant->json, key);
    int64_t uid = -1;
    int rc = 0;

    json_get_int(grant->json, "uid", 0, UINT32_MAX, &uid);
    for (size_t i = 0; i < length_of(grant->json, key); i++) {
        struct error why, refusal = {""};
        struct withdrawal withdrawal = {.grant = grant,
                                        .one = json_object_array_get_idx(list, i),
                                        .lost = lost,
                                        .again = strcmp(key, "lost") == 0,
                                        .refusal = &refusal};
        int64_t its = uid;

        if ((grant_reach_of(withdrawal.one) == GRANT_READ) != trees)
            continue;
        json_get_int(withdrawal.one, "uid", 0, UINT32_MAX, &its);
        withdrawal.uid = (uid_t)its;
        if (withdraw_one(&withdrawal, &why) == 0 || rc != 0)
            continue;
        if (err != NULL)
            *err = why;
        rc = -1;
    }
    return rc;
}

/* All are tried; trees, which take their time, come last. err is the first failure. */
static int withdraw_list(const struct grant *grant, const char *key, json_object *lost,
                         struct error *err)
{
    int rc = withdraw_some(grant, key, false, lost, err);

    return withdraw_some(grant, key, true, lost, rc == 0 ? err : NULL) == 0 ? rc : -1;
}

/* What is left of it. */
static int keep(const struct grant *grant, json_object *lost, bool all, struct error *err)
{
    bool same = json_object_array_length(lost) == length_of(grant->json, "lost") &&
                (!all || length_of(grant->json, "paths") == 0);

    json_object_object_add(grant->json, "lost", json_object_get(lost));
    if (all)
        json_object_object_add(grant->json, "paths", json_object_new_array());
    if (length_of(grant->json, "lost") > 0 || length_of(grant->json, "paths") > 0)
        return same ? 0
                    : home_write(grant->home, grant->id, HOME_GRANT_FILE,
                                 json_object_get(grant->json), err);
    return unlink(home_path(grant->home, grant->id, HOME_GRANT_FILE).text) == 0 || errno == ENOENT
               ? 0
               : failed(HOME_GRANT_FILE, err);
}

/* all: or only what was lost. */
static int take_back(const struct grant *grant, bool all, struct error *err)
{
    json_object *lost = json_object_new_array();
    int rc = withdraw_list(grant, "lost", lost, err);

    if (all && withdraw_list(grant, "paths", lost, rc == 0 ? err : NULL) != 0)
        rc = -1;
    if (rc == 0)
        rc = keep(grant, lost, all, err);
    json_object_put(lost);
    return rc;
}

/* ---- grant.json ------------------------------------------------------------------------------ */

/* Nobody can tell what it has opened. The end of a fit does not wait for that, either. */
static int set_aside(const struct grant *grant, struct error *err)
{
    struct home_path broken = home_path(grant->home, grant->id, HOME_GRANT_BROKEN);
    json_object *json = json_object_new_object(), *lost = json_object_new_array(),
                *one = json_object_new_object();

    if (rename(home_path(grant->home, grant->id, HOME_GRANT_FILE).text, broken.text) != 0)
        failed(HOME_GRANT_FILE, err);
    log_error("%s: this is no grant: what it names may stay open", error_path(broken.text).text);
    json_object_object_add(one, "path", json_object_new_string(broken.text));
    json_object_object_add(one, "why", json_object_new_string("this is no grant"));
    json_object_array_add(lost, one);
    json_object_object_add(json, "kind", json_object_new_string("acl"));
    json_object_object_add(json, "paths", json_object_new_array());
    json_object_object_add(json, "lost", lost);
    return home_write(grant->home, grant->id, HOME_GRANT_FILE, json, err);
}

static bool is_grant(json_object *json)
{
    int64_t uid;

    return list_of(json, "paths") != NULL &&
           (length_of(json, "paths") == 0 || json_get_int(json, "uid", 0, UINT32_MAX, &uid));
}

/* What cannot be understood is none. -1 with err: it cannot be read. */
static int open_grant(struct grant *grant, const struct home *home, int64_t id, struct error *err)
{
    *grant = (struct grant){.home = home, .id = id};
    grant->json = home_read(home, id, HOME_GRANT_FILE, err);
    if (grant->json == NULL && errno != EINVAL)
        return errno == ENOENT ? 0 : -1;
    if (is_grant(grant->json))
        return 0;
    json_object_put(grant->json);
    grant->json = NULL;
    return set_aside(grant, err);
}

static void stamp(json_object *json, const struct grant_order *order)
{
    json_object_object_add(json, "user", json_object_new_string(order->user));
    json_object_object_add(json, "uid", json_object_new_int64(order->uid));
    json_object_object_add(json, "until", json_object_new_double(order->until));
    json_object_object_add(json, "job", json_object_new_int64(order->job));
    json_object_object_add(json, "restarts", json_object_new_int64(order->restarts));
    json_object_object_add(json, "cluster", json_from_string(order->cluster));
    json_object_object_add(json, "claim", json_object_new_int64(order->claim));
}

/* ---- of a fit -------------------------------------------------------------------------------- */

/* What was lost may be there again. */
static int plan(struct grant *grant, const struct grant_order *order, struct error *err)
{
    json_object *paths;

    if (length_of(grant->json, "paths") > 0)
        return 0;
    if (length_of(grant->json, "lost") > 0 && take_back(grant, true, err) != 0)
        return -1;
    paths = grant_plan(grant->home, grant->id, order, err);
    if (paths == NULL)
        return -1;
    if (grant->json == NULL)
        grant->json = json_object_new_object();
    json_object_object_add(grant->json, "kind", json_object_new_string("acl"));
    json_object_object_add(grant->json, "paths", paths);
    return 0;
}

static int give(const struct home *home, int64_t id, const struct grant_order *order,
                struct error *err)
{
    struct grant grant;
    int rc;

    if (open_grant(&grant, home, id, err) != 0)
        return -1;
    rc = plan(&grant, order, err);
    if (rc == 0) {
        stamp(grant.json, order);
        rc = home_write(home, id, HOME_GRANT_FILE, json_object_get(grant.json), err);
    }
    if (rc == 0)
        rc = give_all(grant.json, err);
    json_object_put(grant.json);
    return rc;
}

int grant_give(const struct home *home, int64_t id, const struct grant_order *order,
               struct error *err)
{
    int rc, lock = grant_lock(err);

    if (lock < 0)
        return -1;
    rc = give(home, id, order, err);
    close(lock);
    errno = EINVAL;
    return rc;
}

static int revoke_one(const struct home *home, int64_t id, int64_t claim, struct error *err)
{
    struct grant grant;
    int64_t its = 0;
    int rc;

    if (open_grant(&grant, home, id, err) != 0)
        return -1;
    json_get_int(grant.json, "claim", 0, INT64_MAX, &its);
    if (grant.json == NULL)
        rc = 0;
    else if (claim != 0 && its > claim)
        rc = error_set(err, "another process runs the fits of this service now");
    else
        rc = take_back(&grant, true, err);
    json_object_put(grant.json);
    return rc;
}

int grant_revoke(const struct home *home, int64_t id, int64_t claim, struct error *err)
{
    int rc, lock;

    if (!home_has(home, id, HOME_GRANT_FILE))
        return 0;
    lock = grant_lock(err);
    if (lock < 0)
        return -1;
    rc = revoke_one(home, id, claim, err);
    close(lock);
    return rc;
}

bool grant_is_open(const struct home *home, int64_t id)
{
    json_object *json = home_read(home, id, HOME_GRANT_FILE, NULL);
    bool open = json != NULL ? length_of(json, "paths") > 0 : errno != ENOENT;

    json_object_put(json);
    return open;
}

json_object *grant_lost(const struct home *home, int64_t id)
{
    json_object *json = home_read(home, id, HOME_GRANT_FILE, NULL), *all = NULL;

    for (size_t i = 0; i < length_of(json, "lost"); i++) {
        json_object *one = json_object_array_get_idx(list_of(json, "lost"), i),
                    *said = json_object_new_object();

        json_object_object_add(said, "path", json_from_string(json_get_string(one, "path")));
        json_object_object_add(said, "why", json_from_string(json_get_string(one, "why")));
        if (all == NULL)
            all = json_object_new_array();
        json_object_array_add(all, said);
    }
    json_object_put(json);
    return all;
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

struct all {
    const struct grant_run *run;
    double now;
    int count; /* that are open no more */
};

/* *due: what is open is to be closed. Else it is only tried again what was lost. */
static bool is_work(json_object *json, const struct all *all, bool *due)
{
    *due = length_of(json, "paths") > 0 && is_due(json, all->run, all->now);
    return *due || length_of(json, "lost") > 0;
}

static int revoke_due(const struct home *home, int64_t id, struct all *all, struct error *err)
{
    struct grant grant;
    bool due;
    int rc;

    if (open_grant(&grant, home, id, err) != 0)
        return -1;
    rc = is_work(grant.json, all, &due) ? take_back(&grant, due, err) : 0;
    all->count += rc == 0 && due;
    json_object_put(grant.json);
    return rc;
}

/* Most are none of its business: others are not kept from theirs for that. */
static int look(const struct home *home, int64_t id, void *arg, struct error *err)
{
    struct all *all = arg;
    json_object *json = home_read(home, id, HOME_GRANT_FILE, NULL);
    bool due, work = json != NULL ? !is_grant(json) || is_work(json, all, &due) : errno == EINVAL;
    int rc, lock;

    json_object_put(json);
    if (!work)
        return 0;
    lock = grant_lock(err);
    if (lock < 0)
        return -1;
    rc = revoke_due(home, id, all, err);
    close(lock);
    return rc;
}

int grant_revoke_all(const struct grant_run *run, double now, int *count, struct error *err)
{
    struct all all = {.run = run, .now = now};
    int rc = grant_each(look, &all, err);

    *count = all.count;
    return rc;
}
