/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What lib/doctor.h wants to know of files. */
#ifndef SELASTIC_DOCTOR_FILES_H
#define SELASTIC_DOCTOR_FILES_H

#include <sys/types.h>
#include <time.h>

#include "lib/doctor.h"

/* The text of plugstack.conf and of the files that it includes: a new string. NULL: it cannot be
 * read. */
char *doctor_files_plugstack(const char *path);

/* Does a slurmd run here? */
bool doctor_files_node(void);

/* Which of the scripts that Slurm starts as Prolog or Epilog starts ours. */
void doctor_files_hook(const char *config, const char *name, struct doctor_hook *hook);

/* The first of our programs that is not there. */
bool doctor_files_missing(const char *libexec, char *path, size_t size);

/* Programs, plugins, hooks that slurm.conf names, and directories above them: the first that others
 * than its owner may change, and the first of neither root nor a user of Slurm's. Empty: none.
 * Without config nobody knows the users of Slurm's, and none is. */
struct doctor_risk {
    char writable[512], owned[512];
    uid_t owner;
};
void doctor_files_risk(const char *libexec, const char *plugins, const char *config,
                       struct doctor_risk *risk);
/* The same of one file: whether nobody but these and this user may change it. If not, why. */
bool doctor_files_safe(const char *path, const char *config, char *why, size_t size);
int doctor_files_mode(const char *path); /* -1: not there */

/* Of this user's services. */
void doctor_files_grants(time_t now, struct doctor_grants *grants);

/* The directory for snapshots, and those above it. */
enum doctor_snapshot_state doctor_files_snapshot(const char *dir, char *why, size_t size);

#endif
