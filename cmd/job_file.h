/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The job file that a user names, with the templates of the site. */
#ifndef SELASTIC_JOB_FILE_H
#define SELASTIC_JOB_FILE_H

#include "lib/error.h"
#include "lib/roles.h"

/* NULL with err: it is wrong, or the site does not allow it. */
struct roles *job_file_load(const char *file, struct error *err);

#endif
