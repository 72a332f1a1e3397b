/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What differs between the PMIx versions that we build with (4.2 of Debian 12, 5.0 of Debian 13). Everything here that
 * touches PMIx includes this and nothing of PMIx itself. */
#ifndef ELASTIC_PMIX_COMPAT_H
#define ELASTIC_PMIX_COMPAT_H

#include <pmix_server.h>

/* Separate from pmix_server.h: PMIx_Error_string, the info lists. */
#include <pmix.h>

#include <pmix_version.h>

/* A name since 4.2.3; the key is the same. */
#ifndef PMIX_PROC_INFO_ARRAY
#define PMIX_PROC_INFO_ARRAY PMIX_PROC_DATA
#endif

#endif
