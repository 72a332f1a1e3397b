/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The shape of this node, by hwloc and sysfs. */
#ifndef SELASTIC_MACHINE_FIND_H
#define SELASTIC_MACHINE_FIND_H

#include <stdbool.h>

#include "lib/machine.h"

/* Find the machine's shape, reduced. All CPUs of the node count, whatever this process may use.
 * description NULL: this node, or the machine that hwloc's own HWLOC_XMLFILE or HWLOC_SYNTHETIC
 * names. Tests may give hwloc's synthetic description, or XML (begins with '<'). -1 with err. */
int machine_find(const char *description, struct machine *machine, struct error *err);

/* The speed of a PCI device's link in MB/s, as the kernel reports it. sysfs is the kernel's
 * directory ("/sys"), bus the device ("0000:17:00.0"). The width is the present one. fastest: as
 * fast as the device can be (for a GPU, which slows its link down while idle); else as it is now.
 * 0: not known. */
int machine_pci_link(const char *sysfs, const char *bus, bool fastest);

/* Mbit/s of its best port, as network interface or InfiniBand device. 0: not known, or no link. */
int machine_port_rate(const char *sysfs, const char *bus);

#endif
