/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nodes connect to each other (doctor_ports.h). Nothing is sent: whoever connects is heard. */
#include "cmd/doctor_ports.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cmd/node_answers.h"
#include "cmd/terminal_text.h"
#include "common/link.h"
#include "common/monotonic.h"
#include "common/slurm_client.h"
#include "lib/number.h"
#include "lib/text.h"

#define PATIENCE_MS 8000 /* tasks of a step do not begin at the same moment */
#define AGAIN_MS    100  /* after a refusal: the other one may not listen yet */
#define CANDIDATES  16   /* as many nodes may be on one host, as in a testbed */

struct attempt {
    int listener, fd; /* -1: none */
    bool heard, reached;
    long long again; /* monotonic_ms(); 0: now */
    int error;
};

/* Nodes on one host have different ports. */
static int port_of(int index, const struct conf *conf)
{
    const char *job = getenv("SLURM_JOB_ID");
    int id;

    if (job == NULL || number_parse(job, strlen(job), 1, INT32_MAX, &id) != 0)
        return 0;
    return link_candidate_port((uint32_t)id, 0, index % CANDIDATES, conf->port_first,
                               conf->port_last);
}

static int listen_at(int port)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), off = 0, on = 1;

    if (fd >= 0 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
        bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static struct addrinfo *resolve(const char *node, int port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    char *address = slurm_client_node_address(node), service[16];

    snprintf(service, sizeof(service), "%d", port);
    if (address == NULL || getaddrinfo(address, service, &hints, &list) != 0)
        list = NULL;
    free(address);
    return list;
}

static void begin_attempt(struct attempt *attempt, const struct addrinfo *to)
{
    attempt->fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (attempt->fd >= 0 && connect(attempt->fd, to->ai_addr, to->ai_addrlen) != 0 &&
        errno != EINPROGRESS) {
        attempt->error = errno;
        close(attempt->fd);
        attempt->fd = -1;
    }
    attempt->again = monotonic_ms() + AGAIN_MS;
}

static void end_attempt(struct attempt *attempt)
{
    socklen_t size = sizeof(attempt->error);

    if (getsockopt(attempt->fd, SOL_SOCKET, SO_ERROR, &attempt->error, &size) != 0)
        attempt->error = errno;
    attempt->reached = attempt->error == 0;
    close(attempt->fd);
    attempt->fd = -1;
}

static void hear(struct attempt *attempt)
{
    int fd = accept4(attempt->listener, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        return;
    attempt->heard = true;
    close(fd);
}

/* Until both have been heard of, or time is over. */
static void try_until(struct attempt *attempt, const struct addrinfo *to, long long end)
{
    long long now;

    while ((now = monotonic_ms()) < end &&
           !(attempt->reached && (attempt->heard || attempt->listener < 0))) {
        struct pollfd fds[] = {{.fd = attempt->listener, .events = POLLIN},
                               {.fd = attempt->fd, .events = POLLOUT}};

        if (!attempt->reached && attempt->fd < 0 && now >= attempt->again)
            begin_attempt(attempt, to);
        fds[1].fd = attempt->fd;
        if (poll(fds, 2, AGAIN_MS) <= 0)
            continue;
        if (fds[0].revents != 0)
            hear(attempt);
        if (fds[1].revents != 0)
            end_attempt(attempt);
    }
}

static const char *find_fault(struct attempt *attempt, const struct addrinfo *to)
{
    if (to == NULL)
        return "its address is not known";
    try_until(attempt, to, monotonic_ms() + PATIENCE_MS);
    if (attempt->reached)
        return NULL;
    return attempt->fd >= 0 || attempt->error == 0 ? "no answer" : strerror(attempt->error);
}

void doctor_ports_try(const char *nodes, const struct conf *conf, struct doctor_ports *ports)
{
    char **names = slurm_client_expand(nodes), *own = node_answer_own_name();
    int count = (int)strings_count(names), index = 0;
    struct attempt attempt = {.listener = -1, .fd = -1};
    struct addrinfo *to;

    *ports = (struct doctor_ports){.peer = NULL};
    while (index < count && strcmp(names[index], own) != 0)
        index++;
    if (index < count && count > 1 && port_of(0, conf) > 0) {
        attempt.listener = listen_at(port_of(index, conf));
        index = (index + 1) % count;
        ports->listens = attempt.listener >= 0;
        ports->peer = text_need(strdup(names[index]));
        ports->port = port_of(index, conf);
        to = resolve(ports->peer, ports->port);
        ports->why = find_fault(&attempt, to);
        if (to != NULL)
            freeaddrinfo(to);
        if (attempt.listener >= 0)
            close(attempt.listener);
        if (attempt.fd >= 0)
            close(attempt.fd);
    }
    free(own);
    strings_free(names);
}

void doctor_ports_clear(struct doctor_ports *ports)
{
    free(ports->peer);
    ports->peer = NULL;
}
