/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A service of the site that may be at an address of this machine.
 *
 * While such a service is away, any user may listen in its place. So only root is believed there,
 * and the user who asks. */
#ifndef ELASTIC_LOCAL_SERVICE_H
#define ELASTIC_LOCAL_SERVICE_H

#include <stdbool.h>
#include <netinet/in.h>
#include <sys/socket.h>

struct local_service {
    /* The service's address, if it is one of this machine; port 0: it is not. */
    struct sockaddr_in6 address;
    bool of_stranger; /* another user listened there, when it was looked at last */
};

/* May this address be asked? service remembers it. */
bool local_service_allows(struct local_service *service, const struct sockaddr *address);

/* May the answer be believed? Whoever has listened may have gone meanwhile, and another come. */
bool local_service_is_trusted(struct local_service *service);

#endif
