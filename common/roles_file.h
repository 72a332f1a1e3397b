/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading a job file (lib/roles.h) with the templates of the site. */
#ifndef ELASTIC_ROLES_FILE_H
#define ELASTIC_ROLES_FILE_H

#include "lib/roles.h"

/* roles_dir has the templates, NAME.yaml; NULL: there are none. NULL with err in one line:
 * "rl.yaml:12:5: …". */
struct roles *roles_file_load(const char *path, const char *roles_dir, struct error *err);

/* The text that travels with the job, for roles_text_read(): a new string. NULL with err: it would
 * be longer than ROLES_TEXT_MAX. */
char *roles_text(const struct roles *roles, struct error *err);
struct roles *roles_text_read(const char *text, struct error *err);

#endif
