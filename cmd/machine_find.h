/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The shape of this node, by hwloc and sysfs. */
#ifndef SELASTIC_MACHINE_FIND_H
#define SELASTIC_MACHINE_FIND_H

#include <stdbool.h>

#include "lib/machine.h"

/* Find it out, reduced. All CPUs of the node count, whatever this process may use. description NULL: this node, or what hwloc's own
 * HWLOC_XMLFILE, HWLOC_SYNTHETIC say instead; for tests also hwloc's synthetic description or XML (begins with '<'). -1 with err. */
int machine_find(const char *description, struct machine *machine, struct error *err);

/* What the kernel says of a PCI device's link. sysfs is its directory ("/sys"), bus the device ("0000:17:00.0"). MB/s of the link as wide as it
 * is now; as fast as the device can (for a GPU, which slows it down while it is idle), or as it is now. 0: not known. */
int machine_pci_link(const char *sysfs, const char *bus, bool fastest);

/* Mbit/s of its best port, as network interface or InfiniBand device. 0: not known, or no link. */
int machine_port_rate(const char *sysfs, const char *bus);

#endif
