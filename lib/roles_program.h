/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Another program for the shards of a job that runs: what its job file may say anew. Pure. */
#ifndef ELASTIC_ROLES_PROGRAM_H
#define ELASTIC_ROLES_PROGRAM_H

#include "lib/error.h"
#include "lib/roles.h"

/* The program of the shards as a text, for struct service_options: {"run": ["serve"]}. A new
 * string. NULL: out of memory. */
char *roles_program(const struct roles *roles);
/* The command in such a text, as an array of strings: a new reference. NULL: it has none. */
json_object *roles_program_run(const char *program);

/* The text of the job file (common/roles_file.h) with that command for its shards, which nobody has
 * checked. A new string. NULL: out of memory. */
char *roles_program_text(const struct roles *roles, json_object *run);

/* Is the job file `next` that of the job, but for the command of its shards? -1 with err: it says
 * the first key that is another one, and what both say. */
int roles_program_check(const struct roles *job, const struct roles *next, struct error *err);

#endif
