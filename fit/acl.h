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
/* The user may do that (ACL_R, …), and nobody else more than before. */
int acl_let(int fd, const char *path, uid_t uid, unsigned int rights, struct error *err);
/* What is made in this directory is this user's and that user's, whoever makes it. */
int acl_let_below(int fd, const char *path, uid_t uid, struct error *err);
/* Both are taken away. The ACL is as it was before. */
int acl_withdraw(int fd, const char *path, uid_t uid, struct error *err);

#endif
