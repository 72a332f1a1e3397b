/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shares of a node's CPUs by hwloc (binding.h).
 *
 * hwloc_distrib spreads workers over the tree of packages, NUMA nodes, caches and cores, so that a
 * share lies in as few of each as possible. Where GPUs are known, workers whose GPUs hang on the
 * same part of the machine divide that part among them. Where no GPUs are known, the first workers
 * are those near the NIC. Hyperthreads of a core always stay together. */
#include "agent/workers/binding.h"

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <hwloc.h>

#include "lib/json_get.h"
#include "lib/pci.h"

#define GPUS_MAX 64

struct binding {
    hwloc_topology_t topology;
};

/* ---- topology -------------------------------------------------------------------------------- */

/* PCI devices are needed for GPUs. What drivers know about them beyond that is not needed, and NVML
 * alone takes seconds. */
static int configure(hwloc_topology_t topology)
{
    static const char *const slow[] = {"cuda", "nvml", "opencl", "rsmi", "levelzero", "gl"};

    for (size_t i = 0; i < sizeof(slow) / sizeof(slow[0]); i++)
        hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, slow[i]);
    /* Accelerators are not among the devices that hwloc calls important. */
    return hwloc_topology_set_type_filter(topology, HWLOC_OBJ_PCI_DEVICE,
                                          HWLOC_TYPE_FILTER_KEEP_ALL);
}

static struct binding *discard(struct binding *binding, struct error *err, const char *what)
{
    error_set(err, "hwloc: %s", what);
    binding_destroy(binding);
    return NULL;
}

static struct binding *load(const char *description, struct error *err)
{
    struct binding *binding = calloc(1, sizeof(*binding));
    int rc = 0;

    if (binding == NULL || hwloc_topology_init(&binding->topology) != 0) {
        free(binding);
        error_set(err, "out of memory");
        return NULL;
    }
    if (description != NULL && description[0] == '<')
        rc = hwloc_topology_set_xmlbuffer(binding->topology, description,
                                          (int)strlen(description) + 1);
    else if (description != NULL)
        rc = hwloc_topology_set_synthetic(binding->topology, description);
    if (rc != 0 || configure(binding->topology) != 0 || hwloc_topology_load(binding->topology) != 0)
        return discard(binding, err, "the topology cannot be loaded");
    return binding;
}

struct binding *binding_create(struct error *err)
{
    struct binding *binding = load(NULL, err);
    hwloc_bitmap_t cpus;
    int rc;

    if (binding == NULL)
        return NULL;
    /* Slurm may have bound this task without a cgroup, which hwloc would not see. */
    cpus = hwloc_bitmap_alloc();
    rc = cpus == NULL || hwloc_get_cpubind(binding->topology, cpus, HWLOC_CPUBIND_PROCESS) != 0 ||
         hwloc_topology_restrict(binding->topology, cpus, 0) != 0;
    hwloc_bitmap_free(cpus);
    return rc == 0 ? binding : discard(binding, err, "the CPUs of this process are not known");
}

struct binding *binding_create_from(const char *description, const char *allowed, struct error *err)
{
    struct binding *binding = load(description, err);
    hwloc_bitmap_t cpus;
    int rc;

    if (binding == NULL || allowed == NULL)
        return binding;
    cpus = hwloc_bitmap_alloc();
    rc = cpus == NULL || hwloc_bitmap_list_sscanf(cpus, allowed) != 0 ||
         hwloc_topology_restrict(binding->topology, cpus, 0) != 0;
    hwloc_bitmap_free(cpus);
    return rc == 0 ? binding : discard(binding, err, "no such CPUs");
}

void binding_destroy(struct binding *binding)
{
    if (binding == NULL)
        return;
    hwloc_topology_destroy(binding->topology);
    free(binding);
}

const struct binding *binding_of_machine(void)
{
    /* A fact about the machine that is needed at each generation and slow to find: so it is kept in
     * a static variable. */
    static struct binding *machine;
    static bool tried;

    if (!tried)
        machine = binding_create(NULL);
    tried = true;
    return machine;
}

/* ---- GPUs ------------------------------------------------------------------------------------ */

/* The part of the machine that the n-th GPU on the PCI bus hangs on; NULL if there is no such
 * GPU. */
static hwloc_obj_t part_of_gpu(const struct binding *binding, unsigned long n)
{
    hwloc_obj_t device = NULL;

    while ((device = hwloc_get_next_pcidev(binding->topology, device)) != NULL) {
        hwloc_obj_t part;

        if (!pci_is_gpu(device->attr->pcidev.class_id, device->attr->pcidev.vendor_id))
            continue;
        if (n-- > 0)
            continue;
        part = hwloc_get_non_io_ancestor_obj(binding->topology, device);
        /* A part of which this process has no CPU is no place for a worker. */
        return part != NULL && part->cpuset != NULL && !hwloc_bitmap_iszero(part->cpuset) ? part
                                                                                          : NULL;
    }
    return NULL;
}

/* Find the parts for "0,1,2,3": parts[i] for worker i. False when the list is anything else
 * (UUIDs, fewer than slots), or a GPU is not found. */
static bool find_parts(const struct binding *binding, int slots, const char *gpus,
                       hwloc_obj_t *parts)
{
    const char *at = gpus;

    for (int i = 0; i < slots; i++) {
        char *end;
        unsigned long number = strtoul(at, &end, 10);

        if (end == at || *at == '-' || (*end != ',' && *end != '\0') ||
            (*end == '\0' && i < slots - 1))
            return false;
        parts[i] = part_of_gpu(binding, number);
        if (parts[i] == NULL)
            return false;
        at = *end == ',' ? end + 1 : end;
    }
    return true;
}

/* ---- shares ---------------------------------------------------------------------------------- */

static int cores_in(const struct binding *binding, hwloc_const_cpuset_t cpus)
{
    int cores = hwloc_get_nbobjs_inside_cpuset_by_type(binding->topology, cpus, HWLOC_OBJ_CORE);

    /* Some virtual machines show no cores. */
    return cores > 0
               ? cores
               : hwloc_get_nbobjs_inside_cpuset_by_type(binding->topology, cpus, HWLOC_OBJ_PU);
}

static void free_sets(hwloc_cpuset_t *sets, int count)
{
    for (int i = 0; i < count; i++) {
        hwloc_bitmap_free(sets[i]);
        sets[i] = NULL;
    }
}

static bool disjoint(hwloc_cpuset_t *sets, int count)
{
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i; k++)
            if (hwloc_bitmap_intersects(sets[i], sets[k]))
                return false;
    return true;
}

/* Give count workers disjoint shares of root. False, with nothing in sets, when root has too few
 * cores. */
static bool share(const struct binding *binding, hwloc_obj_t root, int count, hwloc_cpuset_t *sets)
{
    int depth = hwloc_get_type_or_below_depth(binding->topology, HWLOC_OBJ_CORE);

    if (cores_in(binding, root->cpuset) < count ||
        hwloc_distrib(binding->topology, &root, 1, sets, (unsigned)count, depth, 0) != 0)
        return false;
    if (disjoint(sets, count))
        return true;
    free_sets(sets, count);
    return false;
}

/* The workers of each part divide that part. Only if all parts together are the whole machine and
 * do not overlap: else CPUs would be idle, or be given twice. */
static bool share_near_gpus(const struct binding *binding, int slots, hwloc_obj_t *parts,
                            hwloc_cpuset_t *sets)
{
    hwloc_bitmap_t covered = hwloc_bitmap_alloc();
    bool good = covered != NULL;

    for (int i = 0; i < slots && good; i++) {
        hwloc_cpuset_t group[GPUS_MAX];
        int count = 0;

        if (sets[i] != NULL)
            continue;
        good = !hwloc_bitmap_intersects(covered, parts[i]->cpuset);
        for (int k = i; k < slots; k++)
            count += parts[k] == parts[i];
        good = good && share(binding, parts[i], count, group);
        for (int k = i, next = 0; k < slots && good; k++)
            if (parts[k] == parts[i])
                sets[k] = group[next++];
        hwloc_bitmap_or(covered, covered, parts[i]->cpuset);
    }
    good = good && hwloc_bitmap_isequal(covered, hwloc_get_root_obj(binding->topology)->cpuset);
    hwloc_bitmap_free(covered);
    if (!good)
        free_sets(sets, slots);
    return good;
}

/* ---- NICs ------------------------------------------------------------------------------------ */

/* Of two NICs, the one that probably carries the job: InfiniBand rather than Ethernet, then the
 * faster link where that is known. */
static bool better_nic(hwloc_obj_t nic, hwloc_obj_t than)
{
    bool infiniband = !pci_is_ethernet(nic->attr->pcidev.class_id);

    if (than == NULL || infiniband == pci_is_ethernet(than->attr->pcidev.class_id))
        return than == NULL || infiniband;
    return nic->attr->pcidev.linkspeed > than->attr->pcidev.linkspeed;
}

/* The CPUs near the best NICs; empty if there is none. */
static void find_near_nics(const struct binding *binding, hwloc_bitmap_t near)
{
    hwloc_obj_t device = NULL, best = NULL;

    while ((device = hwloc_get_next_pcidev(binding->topology, device)) != NULL) {
        hwloc_obj_t part = hwloc_get_non_io_ancestor_obj(binding->topology, device);

        if (!pci_is_nic(device->attr->pcidev.class_id) || part == NULL || part->cpuset == NULL)
            continue;
        if (better_nic(device, best)) {
            hwloc_bitmap_zero(near);
            best = device;
        }
        if (!better_nic(best, device))
            hwloc_bitmap_or(near, near, part->cpuset);
    }
}

/* Shares near the NIC that carries the job come first, because the first worker of a node
 * communicates for the node. Workers with GPUs already have their places. */
static void put_near_nics_first(const struct binding *binding, int slots, hwloc_cpuset_t *sets)
{
    hwloc_bitmap_t near = hwloc_bitmap_alloc();
    int first = 0;

    if (near != NULL)
        find_near_nics(binding, near);
    for (int i = 0; i < slots && near != NULL; i++) {
        hwloc_cpuset_t set = sets[i];

        if (!hwloc_bitmap_intersects(set, near))
            continue;
        memmove(sets + first + 1, sets + first, (size_t)(i - first) * sizeof(*sets));
        sets[first++] = set;
    }
    hwloc_bitmap_free(near);
}

static char **to_lists(hwloc_cpuset_t *sets, int slots)
{
    char **lists = calloc((size_t)slots + 1, sizeof(*lists));

    for (int i = 0; i < slots && lists != NULL; i++) {
        if (hwloc_bitmap_list_asprintf(&lists[i], sets[i]) < 0) {
            lists[i] = NULL;
            strings_free(lists);
            lists = NULL;
        }
    }
    return lists;
}

char **binding_split(const struct binding *binding, int slots, const char *gpus)
{
    hwloc_obj_t parts[GPUS_MAX];
    hwloc_cpuset_t *sets;
    char **lists = NULL;
    bool done = false;

    if (binding == NULL || slots < 2 || (sets = calloc((size_t)slots, sizeof(*sets))) == NULL)
        return NULL;
    if (gpus != NULL && slots <= GPUS_MAX && find_parts(binding, slots, gpus, parts))
        done = share_near_gpus(binding, slots, parts, sets);
    if (!done && (done = share(binding, hwloc_get_root_obj(binding->topology), slots, sets)))
        put_near_nics_first(binding, slots, sets);
    if (done)
        lists = to_lists(sets, slots);
    free_sets(sets, slots);
    free(sets);
    return lists;
}
