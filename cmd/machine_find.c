/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From hwloc's tree of objects to the shape of a node (machine_find.h). */
#include "cmd/machine_find.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <hwloc.h>

#include "lib/pci.h"

#define SYSFS "/sys"

/* ---- loading --------------------------------------------------------------------------------- */

/* The knowledge of drivers about devices is not needed, and takes seconds to get. */
static int configure(hwloc_topology_t topology)
{
    static const char *const slow[] = {"cuda", "nvml", "opencl", "rsmi", "levelzero", "gl"};

    for (size_t i = 0; i < sizeof(slow) / sizeof(slow[0]); i++)
        hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, slow[i]);
    if (hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0)
        return -1;
    /* Accelerators are not among the devices that hwloc calls important. */
    return hwloc_topology_set_type_filter(topology, HWLOC_OBJ_PCI_DEVICE,
                                          HWLOC_TYPE_FILTER_KEEP_ALL);
}

static int load(hwloc_topology_t topology, const char *description)
{
    int rc = 0;

    if (description != NULL && description[0] == '<')
        rc = hwloc_topology_set_xmlbuffer(topology, description, (int)strlen(description) + 1);
    else if (description != NULL)
        rc = hwloc_topology_set_synthetic(topology, description);
    return rc == 0 && configure(topology) == 0 ? hwloc_topology_load(topology) : -1;
}

/* ---- CPUs and memory ------------------------------------------------------------------------- */

static int count_in(hwloc_topology_t topology, hwloc_const_cpuset_t cpus, hwloc_obj_type_t type)
{
    return cpus != NULL ? hwloc_get_nbobjs_inside_cpuset_by_type(topology, cpus, type) : 0;
}

static void find_domains(hwloc_topology_t topology, struct machine *m)
{
    hwloc_obj_t node = NULL;

    while (m->domain_count < MACHINE_DOMAINS_MAX &&
           (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != NULL)
        m->domains[m->domain_count++] = (struct machine_domain){
            .cores = count_in(topology, node->cpuset, HWLOC_OBJ_CORE),
            .threads = count_in(topology, node->cpuset, HWLOC_OBJ_PU),
            .memory_mib = (int64_t)(node->attr->numanode.local_memory >> 20),
        };
}

static struct machine_cache find_cache(hwloc_topology_t topology, hwloc_obj_type_t type)
{
    struct machine_cache cache = {0, 0};
    hwloc_obj_t object = NULL;

    while ((object = hwloc_get_next_obj_by_type(topology, type, object)) != NULL) {
        int kib = (int)(object->attr->cache.size >> 10);

        cache.count++;
        if (kib > cache.kib)
            cache.kib = kib;
    }
    return cache;
}

/* hwloc counts from the slowest on. */
static void find_kinds(hwloc_topology_t topology, struct machine *m)
{
    int kinds = hwloc_cpukinds_get_nr(topology, 0);
    hwloc_bitmap_t cpus = hwloc_bitmap_alloc();

    for (int i = 0; i < kinds && i < MACHINE_KINDS_MAX && cpus != NULL; i++) {
        if (hwloc_cpukinds_get_info(topology, (unsigned)i, cpus, NULL, NULL, NULL, 0) != 0)
            break;
        m->kinds[m->kind_count++] = (struct machine_kind){
            .cores = count_in(topology, cpus, HWLOC_OBJ_CORE),
            .threads = count_in(topology, cpus, HWLOC_OBJ_PU),
        };
    }
    hwloc_bitmap_free(cpus);
}

static void find_cpu(hwloc_topology_t topology, struct machine *m)
{
    hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
    const char *name = package != NULL ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;

    if (name == NULL)
        name = hwloc_obj_get_info_by_name(hwloc_get_root_obj(topology), "CPUModel");
    snprintf(m->cpu, sizeof(m->cpu), "%s", name != NULL ? name : "");
}

/* Some virtual machines show no packages, or no cores: the objects that they show stand for
 * these. */
static int count_or(hwloc_topology_t topology, hwloc_obj_type_t type, int otherwise)
{
    int count = hwloc_get_nbobjs_by_type(topology, type);

    return count > 0 ? count : otherwise;
}

/* ---- devices --------------------------------------------------------------------------------- */

static uint64_t find_near(hwloc_topology_t topology, hwloc_obj_t device)
{
    hwloc_obj_t place = hwloc_get_non_io_ancestor_obj(topology, device), node = NULL;
    uint64_t near = 0;
    int i = 0;

    if (place == NULL || place->nodeset == NULL)
        return 0;
    for (; i < MACHINE_DOMAINS_MAX &&
           (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != NULL;
         i++)
        if (hwloc_bitmap_isset(place->nodeset, node->os_index))
            near |= UINT64_C(1) << i;
    return near;
}

/* A part of another device, which programs have made and may remove again. */
static bool is_virtual(const char *bus)
{
    char path[128];

    snprintf(path, sizeof(path), SYSFS "/bus/pci/devices/%s/physfn", bus);
    return access(path, F_OK) == 0;
}

static void add_device(hwloc_topology_t topology, hwloc_obj_t object, struct machine *m)
{
    const struct hwloc_pcidev_attr_s *pci = &object->attr->pcidev;
    bool gpu = pci_is_gpu(pci->class_id, pci->vendor_id);
    struct machine_device *device = &m->devices[m->device_count];
    char bus[32];

    if (!gpu && !pci_is_nic(pci->class_id))
        return;
    snprintf(bus, sizeof(bus), "%04x:%02x:%02x.%01x", pci->domain, pci->bus, pci->dev, pci->func);
    *device = (struct machine_device){
        .kind = gpu ? MACHINE_GPU : MACHINE_NIC,
        .vendor = pci->vendor_id,
        .model = pci->device_id,
        .near = find_near(topology, object),
        .link = (int)((double)pci->linkspeed * 1000 + 0.5),
    };
    /* Where hwloc describes another machine, the kernel of this one knows nothing about it. */
    if (hwloc_topology_is_thissystem(topology)) {
        if (is_virtual(bus))
            return;
        device->link = machine_pci_link(SYSFS, bus, gpu);
        device->rate = gpu ? 0 : machine_port_rate(SYSFS, bus);
    }
    m->device_count++;
}

static void find_devices(hwloc_topology_t topology, struct machine *m)
{
    hwloc_obj_t device = NULL;

    while (m->device_count < MACHINE_DEVICES_MAX &&
           (device = hwloc_get_next_pcidev(topology, device)) != NULL)
        add_device(topology, device, m);
}

int machine_find(const char *description, struct machine *m, struct error *err)
{
    hwloc_topology_t topology;

    *m = (struct machine){0};
    if (hwloc_topology_init(&topology) != 0)
        return error_set(err, "out of memory");
    if (load(topology, description) != 0) {
        hwloc_topology_destroy(topology);
        return error_set(err, "hwloc: the topology cannot be loaded");
    }
    find_cpu(topology, m);
    m->threads = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
    m->cores = count_or(topology, HWLOC_OBJ_CORE, m->threads);
    m->packages = count_or(topology, HWLOC_OBJ_PACKAGE, 1);
    m->l2 = find_cache(topology, HWLOC_OBJ_L2CACHE);
    m->l3 = find_cache(topology, HWLOC_OBJ_L3CACHE);
    find_kinds(topology, m);
    find_domains(topology, m);
    find_devices(topology, m);
    hwloc_topology_destroy(topology);
    machine_reduce(m);
    return 0;
}
