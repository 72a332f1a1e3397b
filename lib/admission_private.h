/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of admission share: base jobs (admission.c), extensions (admission_extension.c),
 * and what a job is (admission_job.c). */
#ifndef ELASTIC_ADMISSION_PRIVATE_H
#define ELASTIC_ADMISSION_PRIVATE_H

#include "lib/admission.h"
#include "lib/policy.h"
#include "lib/roles.h"

#define ADMISSION_OPTION_EXTEND "elastic-extend"
#define ADMISSION_OPTION_ROLES  "elastic-roles"

/* Before the name of a pool in admission_note(). */
#define ADMISSION_POOL_WORD "pool="

/* The value that the user gave to an option of spank_elastic.so, NULL if there is none. */
const char *admission_option_text(const struct admission_env *env, const char *option);

/* The value that the client has merged from all layers, NULL if there is none. */
const char *admission_merged_text(const struct admission_env *env,
                                  const struct policy_option *option);

/* The sizes of an elastic job as text, NULL if it has none. */
const char *admission_sizes_text(const struct admission_env *env);

/* The roles of a job that has some, which its site and this release allow; free with
 * roles_destroy. NULL with err. */
struct roles *admission_roles(const struct conf *conf, const struct admission_env *env,
                              struct error *err);

/* Can this base ever hold what its roles guarantee? -1 with err: it cannot. 0: it may. Then
 * warnings is one line about what the user may not have meant, or empty. */
int admission_check_roles(const struct admission_request *request, const struct roles *roles,
                          struct error *warnings, struct error *err);

/* Nothing is changed. */
void admission_changes_init(struct admission_changes *changes);

/* -1 with err set: a refusal for want of memory. */
int admission_no_memory(struct admission_changes *changes, struct error *err);

/* Is it one plain job? 0, or -1 with err, which names the option. */
int admission_check_kind(const struct admission_request *request, const char *option,
                         struct error *err);

#endif
