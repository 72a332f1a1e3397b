/* SPDX-License-Identifier: GPL-2.0-or-later */
/* TCP sockets of other processes, by sock_diag(7) (tcp_sockets.h).
 *
 * /proc/net/tcp says the same, but takes milliseconds of a processor to read: the kernel walks
 * through a hash table that is sized by the machine's memory. It is read only on kernels without
 * the sock_diag module. */
#include "common/tcp_sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PACKET_SIZE 16384
#define ASKED_SHARE 20 /* of the time */
#define DEVICES_MAX 16 /* that are asked for one by one */

struct question {
    struct nlmsghdr header;
    struct inet_diag_req_v2 request;
};

/* NO_ENTRY: there is no such socket, or the kernel has no such module. */
enum answer { MORE, FOUND, NOT_THERE, NO_ENTRY, CANNOT };

/* The kernel has answered: it has the module. */
static atomic_bool has_module;

/* Is this the socket that is looked for? */
typedef bool (*match)(const struct inet_diag_msg *socket, void *arg);

static int ask(struct question *question)
{
    int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

    question->header.nlmsg_len = sizeof(*question);
    question->header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    question->request.sdiag_protocol = IPPROTO_TCP;
    if (fd >= 0 && send(fd, question, sizeof(*question), 0) != (ssize_t)sizeof(*question)) {
        close(fd);
        return -1;
    }
    return fd;
}

static enum answer read_packet(const void *packet, size_t size, match matches, void *arg)
{
    const struct nlmsghdr *header = packet;

    for (; NLMSG_OK(header, size); header = NLMSG_NEXT(header, size)) {
        if (header->nlmsg_type == NLMSG_DONE)
            return NOT_THERE;
        if (header->nlmsg_type == NLMSG_ERROR &&
            header->nlmsg_len >= NLMSG_LENGTH(sizeof(struct nlmsgerr)) &&
            ((const struct nlmsgerr *)NLMSG_DATA(header))->error == -ENOENT)
            return NO_ENTRY;
        if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
            header->nlmsg_len < NLMSG_LENGTH(sizeof(struct inet_diag_msg)))
            return CANNOT;
        if (matches(NLMSG_DATA(header), arg))
            return FOUND;
        if (!(header->nlmsg_flags & NLM_F_MULTI))
            return NOT_THERE;
    }
    return MORE;
}

/* The kernel has the answer when it has taken the question, or makes it as it is read: no call
 * waits. */
static enum answer find(struct question *question, match matches, void *arg)
{
    _Alignas(struct nlmsghdr) char packet[PACKET_SIZE];
    enum answer answer = CANNOT;
    int fd = ask(question);
    ssize_t got;

    if (fd < 0)
        return CANNOT;
    do {
        got = recv(fd, packet, sizeof(packet), MSG_DONTWAIT);
        answer = got > 0 ? read_packet(packet, (size_t)got, matches, arg) : CANNOT;
    } while (answer == MORE);
    close(fd);
    if (answer == FOUND || answer == NOT_THERE)
        atomic_store(&has_module, true);
    return answer;
}

/* An address of the table: words of eight hexadecimal digits, as the machine stores them. */
static bool read_address(const char *text, __be32 address[4])
{
    size_t words = strlen(text) / 8;

    if (words != 1 && words != 4)
        return false;
    for (size_t i = 0; i < words; i++)
        if (sscanf(text + 8 * i, "%8x", &address[i]) != 1)
            return false;
    return true;
}

/* Lines "  0: LOCAL:PORT REMOTE:PORT STATE QUEUES TIMER RETRANSMITS UID TIMEOUT INODE …". */
static bool find_in_table(const char *table, match matches, void *arg)
{
    FILE *file = fopen(table, "re");
    char line[256];
    bool found = false;

    if (file == NULL)
        return false;
    while (!found && fgets(line, sizeof(line), file) != NULL) {
        unsigned source_port, peer_port, state, uid, inode;
        char source[33], peer[33];
        struct inet_diag_msg socket = {0};

        if (sscanf(line, " %*u: %32[0-9A-Fa-f]:%x %32[0-9A-Fa-f]:%x %x %*s %*s %*s %u %*s %u",
                   source, &source_port, peer, &peer_port, &state, &uid, &inode) != 7 ||
            !read_address(source, socket.id.idiag_src) || !read_address(peer, socket.id.idiag_dst))
            continue;
        socket.idiag_family = strlen(source) > 8 ? AF_INET6 : AF_INET;
        socket.idiag_state = (uint8_t)state;
        socket.idiag_uid = uid;
        socket.idiag_inode = inode;
        socket.id.idiag_sport = htons((uint16_t)source_port);
        socket.id.idiag_dport = htons((uint16_t)peer_port);
        found = matches(&socket, arg);
    }
    fclose(file);
    return found;
}

/* ---- addresses: those of IPv4 are mapped into IPv6 ------------------------------------------- */

static struct in6_addr mapped(__be32 address)
{
    struct in6_addr in6 = {.s6_addr32 = {0, 0, htonl(0xffff), address}};

    return in6;
}

static struct in6_addr address_of(const struct inet_diag_msg *socket, const __be32 address[4])
{
    struct in6_addr in6 = {
        .s6_addr32 = {address[0], address[1], address[2], address[3]},
    };

    return socket->idiag_family == AF_INET6 ? in6 : mapped(address[0]);
}

bool tcp_to_ipv6(struct sockaddr_in6 *address)
{
    struct sockaddr_in ipv4;

    if (address->sin6_family == AF_INET) {
        memcpy(&ipv4, address, sizeof(ipv4));
        address->sin6_addr = mapped(ipv4.sin_addr.s_addr);
        address->sin6_scope_id = 0;
    }
    return address->sin6_family == AF_INET || address->sin6_family == AF_INET6;
}

/* Any address of the machine: of IPv4, of both kinds. */
static bool is_any(const struct in6_addr *address)
{
    const struct in6_addr ipv4 = mapped(0);

    return IN6_IS_ADDR_UNSPECIFIED(address) || IN6_ARE_ADDR_EQUAL(address, &ipv4);
}

/* ---- who listens ----------------------------------------------------------------------------- */

struct listening {
    in_port_t port;
    const struct in6_addr *address; /* NULL: any */
    uid_t uid;                      /* of whose processes are no strangers */
    bool ours;
};

/* Found is a stranger: the search ends there. */
static bool stranger_listens(const struct inet_diag_msg *socket, void *arg)
{
    struct listening *wanted = arg;
    struct in6_addr address = address_of(socket, socket->id.idiag_src);

    if (socket->idiag_state != TCP_LISTEN || socket->id.idiag_sport != wanted->port ||
        (wanted->address != NULL && !is_any(&address) && !is_any(wanted->address) &&
         !IN6_ARE_ADDR_EQUAL(&address, wanted->address)))
        return false;
    if (socket->idiag_inode == 0 || socket->idiag_uid != wanted->uid)
        return true;
    wanted->ours = true;
    return false;
}

static bool find_stranger(uint8_t family, const char *table, struct listening *wanted)
{
    struct question question = {.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
                                .request.sdiag_family = family,
                                .request.idiag_states = 1U << TCP_LISTEN,
                                /* The kernel leaves out others: any user may have very many. */
                                .request.id.idiag_sport = wanted->port};
    enum answer answer = find(&question, stranger_listens, wanted);

    return answer == CANNOT || answer == NO_ENTRY ? find_in_table(table, stranger_listens, wanted)
                                                  : answer == FOUND;
}

static enum tcp_listener look(struct listening *wanted)
{
    if (find_stranger(AF_INET, "/proc/net/tcp", wanted) ||
        find_stranger(AF_INET6, "/proc/net/tcp6", wanted))
        return TCP_STRANGER;
    return wanted->ours ? TCP_OURS : TCP_NOBODY;
}

enum tcp_listener tcp_listener(int port)
{
    struct listening wanted = {.port = htons((uint16_t)port), .uid = getuid()};

    return look(&wanted);
}

/* A question about the socket with these two ends. */
static struct question ask_for(const struct sockaddr_in6 *own, const struct sockaddr_in6 *peer)
{
    struct question question = {.header.nlmsg_flags = NLM_F_REQUEST, .request.idiag_states = ~0U};
    struct inet_diag_sockid *id = &question.request.id;
    const uint32_t *source = own->sin6_addr.s6_addr32, *target = peer->sin6_addr.s6_addr32;
    bool ipv4 = IN6_IS_ADDR_V4MAPPED(&own->sin6_addr);
    size_t first = ipv4 ? 3 : 0;

    question.request.sdiag_family = ipv4 ? AF_INET : AF_INET6;
    id->idiag_sport = own->sin6_port;
    id->idiag_dport = peer->sin6_port;
    memcpy(id->idiag_src, source + first, sizeof(*source) * (4 - first));
    memcpy(id->idiag_dst, target + first, sizeof(*target) * (4 - first));
    id->idiag_if = own->sin6_scope_id;
    id->idiag_cookie[0] = id->idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    return question;
}

static bool is_listener(const struct inet_diag_msg *socket, void *arg)
{
    struct listening *wanted = arg;

    if (socket->idiag_state != TCP_LISTEN || socket->id.idiag_sport != wanted->port)
        return false;
    wanted->ours = socket->idiag_inode != 0 && socket->idiag_uid == wanted->uid;
    return true;
}

/* A socket that is bound to a device (SO_BINDTODEVICE, which any user may set) is found only by who
 * asks for that device. */
static enum tcp_listener listener_on_device(const struct sockaddr_in6 *address,
                                            struct listening *wanted)
{
    struct sockaddr_in6 nobody = {.sin6_addr = mapped(0)};
    struct if_nameindex *list = if_nameindex();
    int count = 0;
    bool stranger = false, ours = false;

    while (list != NULL && list[count].if_index != 0)
        count++;
    for (int i = 0; i < count && count <= DEVICES_MAX && !stranger; i++) {
        struct question question = ask_for(address, &nobody);

        question.request.id.idiag_if = list[i].if_index;
        if (find(&question, is_listener, wanted) == FOUND) {
            ours = ours || wanted->ours;
            stranger = !wanted->ours;
        }
    }
    if_freenameindex(list);
    if (list == NULL || count > DEVICES_MAX)
        return look(wanted);
    return stranger ? TCP_STRANGER : ours ? TCP_OURS : TCP_NOBODY;
}

/* Where there is no such connection, the kernel answers with the socket that listens: others may
 * listen at other addresses, and at all, without getting it. It finds that in a hash table. Only a
 * kernel that has not answered yet is asked for all that listen: any user may have very many. */
static enum tcp_listener listener_of(const struct sockaddr_in6 *address, uid_t uid)
{
    struct listening wanted = {
        .port = address->sin6_port, .address = &address->sin6_addr, .uid = uid};
    struct sockaddr_in6 nobody = {.sin6_addr = mapped(0)};
    struct question question = ask_for(address, &nobody);
    enum answer answer = find(&question, is_listener, &wanted);

    if (answer == FOUND)
        return wanted.ours ? TCP_OURS : TCP_STRANGER;
    return answer == NO_ENTRY && atomic_load(&has_module) ? listener_on_device(address, &wanted)
                                                          : look(&wanted);
}

enum tcp_listener tcp_listener_at(const struct sockaddr_in6 *address)
{
    return listener_of(address, getuid());
}

enum tcp_listener tcp_root_listener_at(const struct sockaddr_in6 *address)
{
    return listener_of(address, 0);
}

bool tcp_is_local(const struct in6_addr *address)
{
    const struct in6_addr first = mapped(htonl(INADDR_LOOPBACK));
    struct ifaddrs *list = NULL, *entry;
    bool found = is_any(address) || IN6_IS_ADDR_LOOPBACK(address) ||
                 memcmp(address, &first, 13) == 0; /* 127.0.0.0/8 */

    if (!found && getifaddrs(&list) == 0)
        for (entry = list; entry != NULL && !found; entry = entry->ifa_next) {
            struct sockaddr_in6 own = {0};
            int family = entry->ifa_addr != NULL ? entry->ifa_addr->sa_family : AF_UNSPEC;

            if (family != AF_INET && family != AF_INET6)
                continue;
            memcpy(&own, entry->ifa_addr,
                   family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(own));
            found = tcp_to_ipv6(&own) && IN6_ARE_ADDR_EQUAL(&own.sin6_addr, address);
        }
    freeifaddrs(list);
    return found;
}

/* ---- the ends of a connection ---------------------------------------------------------------- */

/* One end may have a socket of IPv4, the other one of both kinds. */
struct end {
    struct sockaddr_in6 own, peer;
    uid_t uid;
};

/* Where there is no such connection, the kernel may answer with the socket that listens at its
 * address. A socket that no process has any more has no inode, and its user is told as 0. */
static bool is_end(const struct inet_diag_msg *socket, void *arg)
{
    struct end *end = arg;
    struct in6_addr own = address_of(socket, socket->id.idiag_src);
    struct in6_addr peer = address_of(socket, socket->id.idiag_dst);

    if (socket->idiag_state == TCP_LISTEN || socket->idiag_inode == 0 ||
        socket->id.idiag_sport != end->own.sin6_port ||
        socket->id.idiag_dport != end->peer.sin6_port ||
        !IN6_ARE_ADDR_EQUAL(&own, &end->own.sin6_addr) ||
        !IN6_ARE_ADDR_EQUAL(&peer, &end->peer.sin6_addr))
        return false;
    end->uid = socket->idiag_uid;
    return true;
}

static enum answer find_end(struct end *end)
{
    struct question question = ask_for(&end->own, &end->peer);

    return find(&question, is_end, end);
}

bool tcp_ends(int fd, struct sockaddr_in6 *own, struct sockaddr_in6 *peer)
{
    socklen_t own_len = sizeof(*own), peer_len = sizeof(*peer);

    return getsockname(fd, (struct sockaddr *)own, &own_len) == 0 &&
           getpeername(fd, (struct sockaddr *)peer, &peer_len) == 0 && tcp_to_ipv6(own) &&
           tcp_to_ipv6(peer);
}

/* Only a kernel that has not answered yet may lack the module. If it knows our end, it would know
 * the other. The tables have all connections of all users, and a peer may reset its own at any
 * moment, so that neither end is found. */
static bool is_answer(enum answer answer, const struct end *end)
{
    struct end ours = {.own = end->peer, .peer = end->own};

    return answer == FOUND || answer == NOT_THERE ||
           (answer == NO_ENTRY && (atomic_load(&has_module) || find_end(&ours) == FOUND));
}

bool tcp_peer_uid(int fd, uid_t *uid)
{
    struct end end = {.uid = (uid_t)-1};
    enum answer answer;
    bool found;

    if (!tcp_ends(fd, &end.peer, &end.own))
        return false;
    answer = find_end(&end);
    found = is_answer(answer, &end) ? answer == FOUND
                                    : find_in_table("/proc/net/tcp", is_end, &end) ||
                                          find_in_table("/proc/net/tcp6", is_end, &end);
    if (found)
        *uid = end.uid;
    return found;
}

uint64_t tcp_pause(uint64_t took, uint64_t least)
{
    uint64_t pause = took / 1000000 * (ASKED_SHARE - 1);

    return pause > least ? pause : least;
}
