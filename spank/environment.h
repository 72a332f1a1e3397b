/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How an elastic job's policy travels from the client to the job: the names of environment
 * variables.
 *
 * The client merges all layers and puts each value into the job control environment under its own
 * name. Slurm keeps that with the job, shows it to the prolog and epilog as SPANK_<name>, and
 * hands it to the job's environment as SLURM_SPANK_<name>, which survives --export=NONE. There
 * slurmstepd, which then needs no parser, takes the prefix off again. */
#ifndef ELASTIC_SPANK_ENVIRONMENT_H
#define ELASTIC_SPANK_ENVIRONMENT_H

/* What Slurm puts before the names of the job control environment. */
#define ENVIRONMENT_TRAVEL_PREFIX "SLURM_SPANK_"

#define ENVIRONMENT_SIZES  "ELASTIC_SIZES"
#define ENVIRONMENT_EXTEND "ELASTIC_EXTEND"
#define ENVIRONMENT_POLICY "ELASTIC_POLICY"
#define ENVIRONMENT_MARK   "ELASTIC_SPANK"

/* The longest value that travels, in bytes. One variable may have 128 KiB (Linux, MAX_ARG_STRLEN),
 * and slurmctld keeps the value for as long as it remembers the job. */
#define ENVIRONMENT_VALUE_MAX 65536

struct environment_name {
    const char *name;
    const char *key; /* of the policy's JSON form */
};

/* The policy's values; the last has no name. */
extern const struct environment_name environment_names[];

struct environment_input {
    const char *name;
    const char *value;
};

/* What the sruns of an elastic job read: a step outlives a node and a task. The last has no name.
 * */
extern const struct environment_input environment_inputs[];

#endif
