/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The environment that the PMIx library starts with. */
#ifndef ELASTIC_PMIX_ENVIRONMENT_H
#define ELASTIC_PMIX_ENVIRONMENT_H

/* Remove all variables of PMIx, and set those of this server. To be called before the library
 * starts. */
void environment_prepare(void);

#endif
