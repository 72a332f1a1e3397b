/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a client of DI-orchestrator v1alpha1 sends (compat: di-engine), as a request. Pure.
 *
 * Only the leader knows whether the job has this interface. So a request that is refused goes to
 * the leader, too: with another job its path is not there. */
#ifndef ELASTIC_DI_REQUEST_H
#define ELASTIC_DI_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#define DI_NAME_MAX 80 /* bytes of a name; longer ones are cut, and are nobody's */
#define DI_KINDS    2

enum di_verb {
    DI_LIST,
    DI_ADD,
    DI_REMOVE,
    DI_FAIL,
    DI_REFUSED, /* status and message say why */
};

/* The keys "collectors" and "learners" of a body. */
enum di_kind { DI_COLLECTORS, DI_LEARNERS };

/* What replicas should have, in all their tasks. 0: nothing is said. */
struct di_size {
    double cpus, gpus, memory; /* memory in bytes */
};

struct di_request {
    enum di_verb verb;
    const char *path;
    int status;
    char message[300];
    /* "": it is not said */
    char namespace[DI_NAME_MAX], coordinator[DI_NAME_MAX], aggregator[DI_NAME_MAX];
    char name[DI_NAME_MAX];
    int replicas[DI_KINDS]; /* of ADD and REMOVE */
    struct di_size sizes[DI_KINDS];
    char **names; /* of FAIL: each once, NULL after the last; NULL: none */
};

/* Does it belong to this interface? target as it came: "/v1alpha1/replicas?namespace=1". */
bool di_request_is(const char *target);

/* A new request, for a target that belongs to it. NULL: out of memory. */
struct di_request *di_request_read(const char *method, const char *target, const char *body,
                                   size_t size);
void di_request_destroy(struct di_request *request); /* accepts NULL */

/* Does it change the job? */
bool di_request_changes(const struct di_request *request);

#endif
