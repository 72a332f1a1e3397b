/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files with rules share (doctor.h). */
#ifndef ELASTIC_DOCTOR_RULES_H
#define ELASTIC_DOCTOR_RULES_H

#include "lib/doctor.h"

/* A new finding; its texts are filled in by the two functions below. Never NULL: what is too much
 * overwrites the last one. */
struct doctor_finding *doctor_add(struct doctor *doctor, enum doctor_level level, const char *id,
                                  const char *why);
void doctor_what(struct doctor_finding *finding, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void doctor_remedy(struct doctor_finding *finding, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* A value of slurm.conf, of a numbered key the first. Returns buf. */
const char *doctor_setting(const struct doctor_facts *facts, const char *key, char *buf,
                           size_t size);
/* … that begins with a number; missing: it does not, or there is none. */
int doctor_number(const struct doctor_facts *facts, const char *key, int missing);
/* Is it one of the words of a list with commas? */
bool doctor_has_word(const char *list, const char *word);

/* The rules of doctor_host.c and doctor_slurm.c, in order, with NULL at the end. */
typedef void doctor_rule(const struct doctor_facts *facts, struct doctor *doctor);
extern doctor_rule *const doctor_host_rules[], *const doctor_slurm_rules[];

#endif
