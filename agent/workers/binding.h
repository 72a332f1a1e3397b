/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which CPUs each worker of a node gets: a share of the CPUs that Slurm gave this process, whole
 * cores, close together, near its GPU, or near the NIC. */
#ifndef ELASTIC_AGENT_WORKERS_BINDING_H
#define ELASTIC_AGENT_WORKERS_BINDING_H

#include "lib/error.h"

struct binding;

/* The machine's topology, cut down to the CPUs that this process may use. Takes tens of
 * milliseconds. */
struct binding *binding_create(struct error *err);

/* The same from text, for tests: hwloc's synthetic description ("node:2 core:4 pu:2") or XML
 * (begins with '<'); allowed is a list of CPUs, NULL: all. */
struct binding *binding_create_from(const char *description, const char *allowed,
                                    struct error *err);

void binding_destroy(struct binding *binding);

/* The topology of this machine, loaded at first use and kept for the life of the process. NULL: it
 * cannot be loaded. */
const struct binding *binding_of_machine(void);

/* Split the CPUs among slots workers: slots + 1 new strings, each a list of CPUs ("0-3,8"), the
 * last NULL; free with strings_free. gpus is Slurm's list of the node's GPUs in the order of the
 * workers ("0,1,2,3", numbered as on the PCI bus), NULL when unknown: worker i is then put near GPU
 * i. Without them the shares near the NIC come first. NULL when there is nothing to bind: one
 * worker, or fewer cores than workers. */
char **binding_split(const struct binding *binding, int slots, const char *gpus);

#endif
