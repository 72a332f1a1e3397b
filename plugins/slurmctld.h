/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slurm's inner headers, and what differs between its versions for all plugins of slurmctld.
 *
 * Files of the plugins include this header, or select/compat.h, before all others, and no header of
 * Slurm themselves. */
#ifndef ELASTIC_PLUGINS_SLURMCTLD_H
#define ELASTIC_PLUGINS_SLURMCTLD_H

/* Since 26.05 a function of Slurm has this name, as one of lib/conf.h does. */
#define conf_parse slurm_own_conf_parse

#include "config.h"

#include "src/common/slurm_xlator.h"

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

#include "src/common/assoc_mgr.h"
#include "src/common/bitstring.h"
#include "src/common/list.h"
#include "src/common/log.h"
#include "src/common/node_conf.h"
#include "src/common/plugin.h"
#include "src/common/read_config.h"
#include "src/common/xmalloc.h"
#include "src/common/xstring.h"
#include "src/slurmctld/locks.h"
#include "src/slurmctld/slurmctld.h"

#undef conf_parse

#define SLURM_SINCE(year, month) (SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(year, month, 0))

/* A pointer to struct hostlist is hostlist_t before 23.11, and hostlist_t * later. */
typedef struct hostlist slurm_hostlist;

/* Since 23.02 job_modify() can tell the user why. WITH_ERROR_TEXT(...) are its arguments then, and
 * ERROR_TEXT(...) is where the text belongs. Before, the user sees only the code.
 *
 * UPDATE_REFUSAL(IS_OWNER) is that code. All who are not the owner are coordinators of the job's
 * account since 23.02. Before, the plugin is asked about strangers too: they get the code that
 * Slurm has for them where the plugin has no objection. */
#if SLURM_SINCE(23, 2)
#define WITH_ERROR_TEXT(...)     , __VA_ARGS__
#define ERROR_TEXT(err_msg)      (err_msg)
#define UPDATE_REFUSAL(is_owner) ESLURM_NOT_SUPPORTED
#else
#define WITH_ERROR_TEXT(...)
#define ERROR_TEXT(err_msg)      NULL
#define UPDATE_REFUSAL(is_owner) ((is_owner) ? ESLURM_NOT_SUPPORTED : ESLURM_USER_ID_MISSING)
#endif

/* In select_type_param: memory is counted. */
#if SLURM_SINCE(25, 11)
#define COUNTS_MEMORY SELECT_MEMORY
#else
#define COUNTS_MEMORY CR_MEMORY
#endif

#endif
