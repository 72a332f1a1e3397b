/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading elastic.conf and policy files from disk, with bounds. */
#ifndef ELASTIC_CONF_FILE_H
#define ELASTIC_CONF_FILE_H

#include <stdbool.h>

#include "lib/conf.h"

/* The path of elastic.conf: $ELASTIC_CONF, else beside $SLURM_CONF, else /etc/slurm/elastic.conf.
 * New string, NULL if out of memory. A variable that is empty counts as not set. */
char *conf_file_path(void);

/* The path of the shapes file (lib/shapes.h): the one that conf, which may be NULL, names, else
 * elastic-shapes.json beside elastic.conf. New string, NULL if out of memory. */
char *conf_file_shapes(const struct conf *conf);

/* Read and parse elastic.conf. path NULL: conf_file_path(). A file that does not exist gives the
 * built-in values, unless $ELASTIC_CONF names it. */
struct conf *conf_file_load(const char *path, struct error *err);

/* Read a policy file over policy (policy_parse_json): regular files of at most POLICY_FILE_MAX
 * bytes; a directory, FIFO, missing or larger file is one clear error, which names the file. -1
 * with policy unchanged. */
int policy_file_load(const char *path, struct policy *policy, struct error *err);

/* Fill unset fields of policy from the environment (ELASTIC_GRACE, …; ELASTIC_SIZES only if
 * with_sizes). A variable that is empty, or whose field is set already, is not looked at. */
int policy_from_environment(struct policy *policy, bool with_sizes, struct error *err);

#endif
