/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Is a site the same on all its nodes? What they say of themselves in, findings out. Pure. */
#ifndef ELASTIC_DOCTOR_NODES_H
#define ELASTIC_DOCTOR_NODES_H

#include <stdbool.h>

#include "lib/doctor.h"

/* What a host says of itself. */
struct doctor_node {
    const char *name;
    bool answered;
    const char *release;   /* of selastic */
    const char *conf;      /* a hash of elastic.conf; "" where there is none */
    double time;           /* Unix time of its clock when it looked */
    bool sees_state;       /* a file that this host has made in the directory of job states */
    bool listens;          /* at its port for this */
    const char *peer;      /* the node that it has tried to connect to; NULL: none */
    int port;              /* of the peer */
    const char *unreached; /* why it could not; NULL: it could */
};

/* Compare nodes with this host. began, ended: when the nodes were asked, by this host's clock.
 * state_dir: where the file was made; NULL: none could be made. The findings are added. */
void doctor_compare(const struct doctor_node *here, const struct doctor_node *nodes, int count,
                    double began, double ended, const char *state_dir, struct doctor *doctor);

#endif
