/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For a program that has the rights of a user, and is in no cgroup of a job. */
#ifndef ELASTIC_COMMON_UNTRACED_H
#define ELASTIC_COMMON_UNTRACED_H

/* From now on no other process of the user can trace this one. A program that the user may not
 * read, and that is started without capabilities, is so from its first instruction on. */
void untraced_begin(void);

#endif
