/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The environment of a program that libelastic-shield.so is to protect (client/shield.c). Pure. */
#ifndef ELASTIC_LIB_SHIELD_H
#define ELASTIC_LIB_SHIELD_H

#include <sys/types.h>

/* "LD_PRELOAD=…" and "ELASTIC_SHIELD=…", NULL after the last; free with strings_free. They replace
 * entries of these names. user: the environment of the program, whose own LD_PRELOAD is kept in
 * front: so the library sees what the user's libraries install. stepd: slurmstepd's pid as the
 * agent sees it.
 *
 * No entries if stepd is not known (1 or less), or if the library's path has a character that
 * separates names there. NULL: out of memory. */
char **shield_environment(char *const *user, const char *library, pid_t stepd);

#endif
