/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the other parts of this installation are.
 *
 * They are found from the place of the running program, so that an installation can be moved. */
#ifndef ELASTIC_PATHS_H
#define ELASTIC_PATHS_H

enum paths_part {
    PATHS_EXTENSION_SCRIPT, /* batch script of extension jobs */
    PATHS_SUCCESSOR_SCRIPT, /* submits the next job of a service */
    PATHS_FLUSH,            /* elastic-flush */
    PATHS_NODE_FAIL,        /* elastic-node-fail; may not be there */
    PATHS_PMIX,             /* elasticrun-pmix */
    PATHS_HTTP,             /* elasticrun-http */
    PATHS_MLFLOW,           /* elastic-mlflow */
    PATHS_FIT,              /* elastic-fit */
    PATHS_ROUTER,           /* elastic-router */
    PATHS_STATE,            /* elastic-state */
    PATHS_PARTS,
};

/* All return strings that live as long as the process. */
const char *paths_of(enum paths_part part);
const char *paths_program(void); /* this elasticrun */
const char *paths_library(void); /* libelastic.so.0, without links and "..": a container can bind
                                  * it */
const char *paths_shield(void);  /* libelastic-shield.so, in the same way; NULL: none */
const char *paths_python(void);  /* the directory that has slurm_elastic; NULL: none */

#endif
