/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A service of the site that may be at an address of this machine (local_service.h). */
#include "common/local_service.h"

#include <string.h>

#include "common/tcp_sockets.h"

bool local_service_is_trusted(struct local_service *service)
{
    const struct sockaddr_in6 *address = &service->address;
    enum tcp_listener listener;

    service->of_stranger = false;
    if (address->sin6_port == 0)
        return true;
    listener = tcp_listener_at(address);
    if (listener == TCP_STRANGER)
        listener = tcp_root_listener_at(address);
    service->of_stranger = listener == TCP_STRANGER;
    return listener == TCP_OURS;
}

bool local_service_allows(struct local_service *service, const struct sockaddr *address)
{
    struct sockaddr_in6 local = {0};

    memcpy(&local, address,
           address->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(local));
    if (!tcp_to_ipv6(&local))
        return false;
    service->address = (struct sockaddr_in6){0};
    if (tcp_is_local(&local.sin6_addr))
        service->address = local;
    return local_service_is_trusted(service);
}
