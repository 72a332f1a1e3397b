/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Differences between the PMIx versions that we build with: 4.2 to 7.
 *
 * All code here that touches PMIx includes this header and no header of PMIx itself. */
#ifndef ELASTIC_PMIX_COMPAT_H
#define ELASTIC_PMIX_COMPAT_H

#include <stdbool.h>
#include <string.h>

#include <pmix_server.h>

/* Separate from pmix_server.h: PMIx_Error_string, the info lists. */
#include <pmix.h>

#include <pmix_version.h>

/* This name exists since 4.2.3; the key is the same. */
#ifndef PMIX_PROC_INFO_ARRAY
#define PMIX_PROC_INFO_ARRAY PMIX_PROC_DATA
#endif

/* Since 5.0. */
#ifndef PMIX_ALLOC_REQ_CANCEL
#define PMIX_ALLOC_REQ_CANCEL 5
#endif

/* In no release yet: how an accepted allocation request has ended. */
#ifndef PMIX_DVM_IS_READY
#define PMIX_DVM_IS_READY (-195)
#endif
#ifndef PMIX_ERR_DVM_MOD
#define PMIX_ERR_DVM_MOD (-196)
#endif

/* PMIX_CHECK_KEY is a function of libpmix since 5.0. This one is for code that is not linked with
 * libpmix, but opens it. */
static inline bool pmix_compat_is_key(const pmix_info_t *info, const char *key)
{
    return strncmp(info->key, key, PMIX_MAX_KEYLEN) == 0;
}

/* A key of our own in PMIx_Query_info, beside PMIx's keys: why a request was refused (qualifier
 * PMIX_ALLOC_REQ_ID). */
#define ELASTIC_PMIX_REFUSAL "elastic.refusal"

#endif
