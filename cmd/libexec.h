/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Other programs of this package that selastic starts. */
#ifndef SELASTIC_LIBEXEC_H
#define SELASTIC_LIBEXEC_H

/* The path of a program in libexec: beside this one, so that an installation can be moved, else
 * where it was configured. It is there until the next call. */
const char *libexec_find(const char *name);

#endif
