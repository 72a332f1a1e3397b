/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Entries for one more user in the POSIX ACL of a file or directory of this user. Each function
 * returns 0, or -1 with err. */
#ifndef FIT_ACL_H
#define FIT_ACL_H

#include <stdbool.h>
#include <sys/types.h>

#include "lib/error.h"

#define ACL_R 4U
#define ACL_W 2U
#define ACL_X 1U

/* Has the ACL an entry for the user? */
int acl_has_user(int fd, const char *path, uid_t uid, bool *has, struct error *err);

struct acl_user {
    uid_t uid;
    const gid_t *groups;
    int count;
};

/* Does the ACL let the user do anything, by an entry for that user, or for a group of that user?
 * fd may be one of O_PATH. */
int acl_lets(int fd, const char *path, const struct acl_user *user, bool *may, struct error *err);

/* Does the ACL name anybody else than this user who may write? fd may be one of O_PATH. */
int acl_names_writer(int fd, const char *path, uid_t uid, bool *named, struct error *err);

/* The user may do that (ACL_R, …), and nobody else more than before. */
int acl_let(int fd, const char *path, uid_t uid, unsigned int rights, struct error *err);
/* Only this user and that user may open the directory, and what is made in it, whoever makes it. */
int acl_let_only(int fd, const char *path, uid_t uid, struct error *err);
/* Take the user's entry away. Nobody else has more or less than before. */
int acl_withdraw(int fd, const char *path, uid_t uid, struct error *err);
/* … and of what is made in a directory of acl_let_only(): all is its own there. */
int acl_withdraw_below(int fd, const char *path, uid_t uid, struct error *err);

#endif
