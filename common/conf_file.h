/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading elastic.conf and policy files from disk, with bounds. */
#ifndef ELASTIC_CONF_FILE_H
#define ELASTIC_CONF_FILE_H

#include <stdbool.h>

#include "lib/conf.h"

/* The path of elastic.conf: $ELASTIC_CONF, else conf_file_beside($SLURM_CONF), else
 * /etc/slurm/elastic.conf. An empty variable counts as not set. New string, NULL if out of
 * memory. */
char *conf_file_path(void);

/* The elastic.conf beside slurm_conf; if that does not exist and standard does, standard. In a
 * configless cluster $SLURM_CONF names slurmd's cache, which holds Slurm's own files only. New
 * string, NULL if out of memory. */
char *conf_file_beside(const char *slurm_conf, const char *standard);

/* The path of the shapes file (lib/shapes.h): the one that conf, which may be NULL, names, else
 * elastic-shapes.json beside elastic.conf. New string, NULL if out of memory. */
char *conf_file_shapes(const struct conf *conf);

/* Read and parse elastic.conf. path NULL: conf_file_path(). A file that does not exist gives the
 * built-in values, unless $ELASTIC_CONF names it. conf->path and conf->was_read say which file it
 * was. */
struct conf *conf_file_load(const char *path, struct error *err);

/* For people: the path of conf's file, or that there was none. Returns buf. */
const char *conf_file_used(const struct conf *conf, char *buf, size_t size);

/* Read a policy file over policy (policy_parse_json). Only a regular file of at most
 * POLICY_FILE_MAX bytes is read; anything else is an error that names the file. Returns -1 with
 * policy unchanged. */
int policy_file_load(const char *path, struct policy *policy, struct error *err);

/* Fill the options that are not set in policy from their environment variables (ELASTIC_GRACE, …;
 * ELASTIC_SIZES only if with_sizes). An empty variable is not read, nor is one whose option is set
 * already. */
int policy_from_environment(struct policy *policy, bool with_sizes, struct error *err);

#endif
