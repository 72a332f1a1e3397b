/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kind of a PCI device, from its numbers (PCI Code and ID Assignment). */
#ifndef ELASTIC_PCI_H
#define ELASTIC_PCI_H

#include <stdbool.h>

/* Is the device a GPU? class_id: base class and subclass, such as 0x0302. GPUs are 3D and other
 * display controllers and processing accelerators. A VGA controller is a GPU only if its vendor
 * makes GPUs: most servers have another VGA controller for their console. */
bool pci_is_gpu(unsigned class_id, unsigned vendor_id);

/* Is the device a network controller? InfiniBand controllers are, too. */
bool pci_is_nic(unsigned class_id);

/* Is the device a NIC for Ethernet? */
bool pci_is_ethernet(unsigned class_id);

#endif
