/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The shape of a node: the hardware that decides how fast a worker runs on it. Pure.
 *
 * Nothing else is part of the shape, so that nodes with the same hardware have the same shape. */
#ifndef ELASTIC_MACHINE_H
#define ELASTIC_MACHINE_H

#include <stddef.h>
#include <stdint.h>

#include <json-c/json.h>

#include "lib/error.h"

#define MACHINE_DOMAINS_MAX 64  /* NUMA domains */
#define MACHINE_DEVICES_MAX 256 /* GPUs and NICs */
#define MACHINE_KINDS_MAX   8   /* of cores */
#define MACHINE_CPU_MAX     64  /* bytes of the CPU's name, with its end */
#define MACHINE_NAME_MAX    64  /* bytes of a shape's name, with its end */

enum machine_device_kind { MACHINE_GPU, MACHINE_NIC };

struct machine_device {
    enum machine_device_kind kind;
    unsigned vendor, model; /* PCI's numbers */
    uint64_t near;          /* bit i: NUMA domain i is among the nearest */
    int link;               /* MB/s of its PCI link, 0: not known */
    int rate;               /* Mbit/s of a NIC's best port, 0: not known or no link */
};

struct machine_domain {
    int cores, threads;
    int64_t memory_mib;
};

struct machine_kind {
    int cores, threads;
};

struct machine_cache {
    int count;
    int kib; /* of each cache; of different caches the largest */
};

struct machine {
    char cpu[MACHINE_CPU_MAX]; /* its name, "" if not known */
    int packages, cores, threads;
    struct machine_cache l2, l3;
    /* Cores of different efficiency, the slowest first; 0 or 1 kind: all are alike. */
    struct machine_kind kinds[MACHINE_KINDS_MAX];
    int kind_count;
    struct machine_domain domains[MACHINE_DOMAINS_MAX];
    int domain_count;
    struct machine_device devices[MACHINE_DEVICES_MAX];
    int device_count;
};

/* Bring the hardware found on a node into a form that is the same on all nodes with that hardware.
 * Memory is rounded up to a size that DIMMs can make, because a kernel keeps a few percent for
 * itself, and not the same on every node. Empty NUMA domains are left out. Devices get an order
 * that does not depend on the bus. The CPU's name loses characters that could harm a terminal. */
void machine_reduce(struct machine *machine);

/* MiB of installed memory of a node on which `mib` can be used: rounded up by 7.5 percent at
 * most. */
int64_t machine_round_memory(int64_t mib);

/* A reduced machine as a new JSON object, and the way back. Values outside of the bounds above are
 * refused: -1. */
json_object *machine_to_json(const struct machine *machine);
int machine_from_json(json_object *object, struct machine *machine, struct error *err);

/* "2x32c-512g-8gpu-1a2b3c": packages, cores of each package, GiB, GPUs, and a hash of the whole
 * shape. The hash gives the same shape the same name in every file. */
void machine_name(const struct machine *machine, char *name, size_t size);

/* "2 packages, 8 NUMA domains, 64 cores, 128 threads, 512 GiB, 8 GPUs, 9 NICs". Returns text. */
char *machine_describe(const struct machine *machine, char *text, size_t size);

/* How `machine` differs from `usual`: each difference is one line of text in a new NULL-terminated
 * array (strings_free). The array is empty if there is no difference. NULL when out of memory. */
char **machine_differences(const struct machine *machine, const struct machine *usual);

#endif
