/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lists of users and groups, as a job file has them. */
#ifndef ELASTIC_COMMON_ALLOWED_USERS_H
#define ELASTIC_COMMON_ALLOWED_USERS_H

#include <stdbool.h>
#include <sys/types.h>

/* Is the user named in the list (NULL: nobody is), or a member of a group that is, "@GROUP"? It
 * may wait for the service that knows users. */
bool user_is_allowed(uid_t uid, char *const *allow);

#endif
