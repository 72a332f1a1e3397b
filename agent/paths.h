/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the other parts of this installation are.
 *
 * They are found from the place of the running program, so that an installation can be moved. */
#ifndef ELASTIC_PATHS_H
#define ELASTIC_PATHS_H

/* All return strings that live as long as the process. */
const char *paths_program(void);          /* this elasticrun */
const char *paths_extension_script(void); /* batch script of extension jobs */
const char *paths_successor_script(void); /* submits the next job of a service */
const char *paths_library(void);          /* libelastic.so.0, without links and "..": a container
                                           * can bind it */
const char *paths_shield(void);           /* libelastic-shield.so, in the same way; NULL: none */
const char *paths_python(void);           /* the directory that has slurm_elastic; NULL: none */
const char *paths_flush(void);            /* elastic-flush */
const char *paths_node_fail(void);        /* elastic-node-fail; may not be there */
const char *paths_pmix(void);             /* elasticrun-pmix */
const char *paths_http(void);             /* elasticrun-http */
const char *paths_mlflow(void);           /* elastic-mlflow */
const char *paths_fit(void);              /* elastic-fit */
const char *paths_router(void);           /* elastic-router */

#endif
