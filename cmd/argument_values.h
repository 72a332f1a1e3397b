/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What single words of a command line mean: operands, and values of options. Pure.
 *
 * Functions that return int return 0, or -1 with a message that says what would be right. Strings
 * are not copied. */
#ifndef SELASTIC_ARGUMENT_VALUES_H
#define SELASTIC_ARGUMENT_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/arguments.h"
#include "lib/error.h"

/* A job id as Slurm prints it. */
int value_job(const char *text, uint32_t *job_id, struct error *err);
/* "6", "+2" or "-2". */
int value_size(const char *text, bool *relative, int *nodes, struct error *err);
/* Names of roles and replicas have no other characters. */
bool value_is_name(const char *text, size_t length);
int value_role(const char *text, const char **role, struct error *err);
/* ROLE-INDEX. */
int value_replica(const char *text, const char **replica, struct error *err);
/* "collector=8", "collector=+2" or "collector=-2". */
int value_scale(const char *text, struct scale *scale, struct error *err);
/* text NULL: the option had no value. */
int value_watch(const char *text, double *seconds, struct error *err);
/* most: seconds. */
int value_timeout(const char *text, int most, int *seconds, struct error *err);
int value_port(const char *text, int *port, struct error *err);
int value_address(const char *text, const char **address, struct error *err);
int value_jobs(const char *text, int *jobs, struct error *err);
int value_interval(const char *text, int *seconds, struct error *err);
int value_after(const char *text, int *after, struct error *err);
int value_days(const char *text, int *days, struct error *err);
int value_format(const char *text, enum endpoints_format *format, struct error *err);
/* A name of a user or an account. */
int value_who(const char *text, const char **name, struct error *err);
/* A time for sacct, which reads it. */
int value_time(const char *text, const char **time, struct error *err);

#endif
