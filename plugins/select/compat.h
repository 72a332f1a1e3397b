/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What differs between the versions of Slurm, for select/elastic_cons_tres. */
#ifndef ELASTIC_SELECT_COMPAT_H
#define ELASTIC_SELECT_COMPAT_H

#include "plugins/slurmctld.h"

#if SLURM_SINCE(23, 2)
#include "src/interfaces/gres.h"
#include "src/interfaces/preempt.h"
#include "src/interfaces/select.h"
#include "src/interfaces/topology.h"
#else
#include "src/common/gres.h"
#include "src/common/select.h"
#include "src/common/slurm_topology.h"
#include "src/slurmctld/preempt.h"
#endif

/* ---- types ----------------------------------------------------------------------------------- */

/* Slurm has these names itself since 23.02; before, List and ListIterator are pointers to them. */
typedef struct xlist list_t;
typedef struct listIterator list_itr_t;

/* struct job_details before 23.11, job_details_t since. */
typedef __typeof__(*((job_record_t *)NULL)->details) details_t;

/* Cores that a job must not use. */
#if SLURM_SINCE(23, 11)
typedef resv_exc_t excluded_cores_t;
#else
typedef bitstr_t excluded_cores_t;
#endif

/* Since 24.11 a test can be about a time in the future. WITH_TIMES(...) are its arguments then. */
#if SLURM_SINCE(24, 11)
typedef will_run_data_t times_t;
#define WITH_TIMES(...)       , __VA_ARGS__
#define TIMES_BEGIN_AT(times) ((times) != NULL ? (times)->start : 0)
#else
typedef void times_t;
#define WITH_TIMES(...)
#define TIMES_BEGIN_AT(times) ((void)(times), 0)
#endif

/* ---- this plugin ----------------------------------------------------------------------------- */

#if SLURM_SINCE(25, 5)
/* Only slurmctld knows the id, which asks by it whether the plugin is select/cons_tres. */
#define PLUGIN_ID SELECT_PLUGIN_CONS_TRES
#else
/* The id goes over the wire with each node. It differs from the ids of Slurm's own plugins, and is
 * at least 100. */
#define PLUGIN_ID 209
#endif

/* ---- functions of select plugins ------------------------------------------------------------- */

/* The functions select_p_NAME of this Slurm, as X(TYPE, NAME, PARAMETERS, ARGUMENTS). This plugin
 * adds something to those in OURS, and only hands on those in STRAIGHT. */

#define JOB_TEST(X)                                                                                \
    X(int, job_test,                                                                               \
      (job_record_t * job, bitstr_t * nodes, uint32_t min_nodes, uint32_t max_nodes,               \
       uint32_t req_nodes, uint16_t mode, list_t * candidates, list_t * *victims,                  \
       excluded_cores_t * cores WITH_TIMES(times_t * times)),                                      \
      (job, nodes, min_nodes, max_nodes, req_nodes, mode, candidates, victims,                     \
       cores WITH_TIMES(times)))

#if SLURM_SINCE(25, 5)
#define JOB_INIT(X)
#define BEFORE_25_05(X)
#else
#define JOB_INIT(X) X(int, job_init, (list_t * jobs), (jobs))
#define BEFORE_25_05(X)                                                                            \
    X(int, state_save, (char *dir), (dir))                                                         \
    X(int, state_restore, (char *dir), (dir))                                                      \
    X(bitstr_t *, step_pick_nodes,                                                                 \
      (job_record_t * job, select_jobinfo_t * info, uint32_t count, bitstr_t * *available),        \
      (job, info, count, available))                                                               \
    X(int, step_start, (step_record_t * step), (step))                                             \
    X(int, step_finish, (step_record_t * step, bool killing), (step, killing))                     \
    X(int, select_nodeinfo_pack, (select_nodeinfo_t * info, buf_t * buffer, uint16_t version),     \
      (info, buffer, version))                                                                     \
    X(int, select_nodeinfo_unpack, (select_nodeinfo_t * *info, buf_t * buffer, uint16_t version),  \
      (info, buffer, version))                                                                     \
    X(select_nodeinfo_t *, select_nodeinfo_alloc, (void), ())                                      \
    X(int, select_nodeinfo_free, (select_nodeinfo_t * info), (info))                               \
    X(int, select_nodeinfo_get,                                                                    \
      (select_nodeinfo_t * info, enum select_nodedata_type type, enum node_states state,           \
       void *data),                                                                                \
      (info, type, state, data))                                                                   \
    X(select_jobinfo_t *, select_jobinfo_alloc, (void), ())                                        \
    X(int, select_jobinfo_free, (select_jobinfo_t * info), (info))                                 \
    X(int, select_jobinfo_set,                                                                     \
      (select_jobinfo_t * info, enum select_jobdata_type type, void *data), (info, type, data))    \
    X(int, select_jobinfo_get,                                                                     \
      (select_jobinfo_t * info, enum select_jobdata_type type, void *data), (info, type, data))    \
    X(select_jobinfo_t *, select_jobinfo_copy, (select_jobinfo_t * info), (info))                  \
    X(int, select_jobinfo_pack, (select_jobinfo_t * info, buf_t * buffer, uint16_t version),       \
      (info, buffer, version))                                                                     \
    X(int, select_jobinfo_unpack, (select_jobinfo_t * *info, buf_t * buffer, uint16_t version),    \
      (info, buffer, version))                                                                     \
    X(int, get_info_from_plugin,                                                                   \
      (enum select_plugindata_info type, job_record_t * job, void *data), (type, job, data))
#endif

#if SLURM_SINCE(23, 2)
#define BEFORE_23_02(X)
#else
#define BEFORE_23_02(X)                                                                            \
    X(int, job_signal, (job_record_t * job, int signal), (job, signal))                            \
    X(char *, select_jobinfo_sprint, (select_jobinfo_t * info, char *text, size_t size, int mode), \
      (info, text, size, mode))                                                                    \
    X(char *, select_jobinfo_xstrdup, (select_jobinfo_t * info, int mode), (info, mode))           \
    X(int, update_node_config, (int index), (index))
#endif

#if SLURM_SINCE(23, 11)
#define BEFORE_23_11(X)
#else
#define BEFORE_23_11(X)                                                                            \
    X(bitstr_t *, resv_test,                                                                       \
      (resv_desc_msg_t * reservation, uint32_t count, bitstr_t * available, bitstr_t * *cores),    \
      (reservation, count, available, cores))
#endif

#if SLURM_SINCE(26, 5)
#define SINCE_26_05(X) X(void, job_mem_reduce, (job_record_t * job), (job))
#else
#define SINCE_26_05(X)
#endif

#define OURS(X)                                                                                    \
    X(int, node_init, (void), ())                                                                  \
    X(int, reconfigure, (void), ())                                                                \
    JOB_INIT(X)                                                                                    \
    JOB_TEST(X)                                                                                    \
    X(int, job_begin, (job_record_t * job), (job))                                                 \
    X(int, job_expand, (job_record_t * from, job_record_t * to), (from, to))                       \
    X(int, job_resized, (job_record_t * job, node_record_t * node), (job, node))                   \
    X(int, job_fini, (job_record_t * job), (job))

#define STRAIGHT(X)                                                                                \
    X(int, job_ready, (job_record_t * job), (job))                                                 \
    X(int, job_suspend, (job_record_t * job, bool indefinite), (job, indefinite))                  \
    X(int, job_resume, (job_record_t * job, bool indefinite), (job, indefinite))                   \
    X(int, select_nodeinfo_set_all, (void), ())                                                    \
    X(int, select_nodeinfo_set, (job_record_t * job), (job))                                       \
    BEFORE_25_05(X) BEFORE_23_11(X) BEFORE_23_02(X) SINCE_26_05(X)

#endif
