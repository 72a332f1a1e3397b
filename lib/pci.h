/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a PCI device is, from its numbers (PCI Code and ID Assignment). */
#ifndef ELASTIC_PCI_H
#define ELASTIC_PCI_H

#include <stdbool.h>

/* class_id: base class and subclass, 0x0302. A device that computes: a 3D or other display controller,
 * a processing accelerator; a VGA controller only of who makes GPUs, for most servers have another one
 * that draws their console. */
bool pci_is_gpu(unsigned class_id, unsigned vendor_id);

/* A network controller, also an InfiniBand one. */
bool pci_is_nic(unsigned class_id);

/* A NIC for Ethernet. */
bool pci_is_ethernet(unsigned class_id);

#endif
