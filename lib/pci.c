/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kind of a PCI device (pci.h). */
#include "lib/pci.h"

#define CLASS_ETHERNET   0x0200
#define CLASS_VGA        0x0300
#define CLASS_XGA        0x0301 /* long gone */
#define CLASS_INFINIBAND 0x0c06
#define BASE_NETWORK     0x02
#define BASE_DISPLAY     0x03
#define BASE_ACCELERATOR 0x12
#define VENDOR_AMD       0x1002
#define VENDOR_NVIDIA    0x10de

bool pci_is_gpu(unsigned class_id, unsigned vendor_id)
{
    if (class_id == CLASS_VGA)
        return vendor_id == VENDOR_AMD || vendor_id == VENDOR_NVIDIA;
    return (class_id >> 8 == BASE_DISPLAY && class_id != CLASS_XGA) ||
           class_id >> 8 == BASE_ACCELERATOR;
}

bool pci_is_nic(unsigned class_id)
{
    return class_id >> 8 == BASE_NETWORK || class_id == CLASS_INFINIBAND;
}

bool pci_is_ethernet(unsigned class_id)
{
    return class_id == CLASS_ETHERNET;
}
