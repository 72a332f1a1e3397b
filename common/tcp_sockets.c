/* SPDX-License-Identifier: GPL-2.0-or-later */
/* TCP sockets of other processes, by sock_diag(7) (tcp_sockets.h).
 *
 * /proc/net/tcp says the same, but takes milliseconds of a processor to read: the kernel walks
 * through a hash table that is sized by the machine's memory. It is read only on kernels without
 * the sock_diag module. */
#include "common/tcp_sockets.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PACKET_SIZE 16384

struct question {
    struct nlmsghdr header;
    struct inet_diag_req_v2 request;
};

enum answer { MORE, FOUND, NOT_THERE, CANNOT };

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
        /* An error: "no such socket" and "no such module" are the same. */
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
    return answer;
}

/* Lines "  0: LOCAL:PORT REMOTE:PORT STATE QUEUES TIMER RETRANSMITS UID TIMEOUT INODE …". An IPv4
 * address is written as the machine stores it. Of a longer address the last eight hexadecimal
 * digits are taken. */
static bool find_in_table(const char *table, match matches, void *arg)
{
    FILE *file = fopen(table, "re");
    char line[256];
    bool found = false;

    if (file == NULL)
        return false;
    while (!found && fgets(line, sizeof(line), file) != NULL) {
        unsigned source, source_port, peer, peer_port, state, uid, inode;
        char source_text[33], peer_text[33];
        struct inet_diag_msg socket = {0};

        if (sscanf(line, " %*u: %32[0-9A-Fa-f]:%x %32[0-9A-Fa-f]:%x %x %*s %*s %*s %u %*s %u",
                   source_text, &source_port, peer_text, &peer_port, &state, &uid, &inode) != 7 ||
            strlen(source_text) < 8 || strlen(peer_text) < 8 ||
            sscanf(source_text + strlen(source_text) - 8, "%x", &source) != 1 ||
            sscanf(peer_text + strlen(peer_text) - 8, "%x", &peer) != 1)
            continue;
        socket.idiag_state = (uint8_t)state;
        socket.idiag_uid = uid;
        socket.idiag_inode = inode;
        socket.id.idiag_sport = htons((uint16_t)source_port);
        socket.id.idiag_dport = htons((uint16_t)peer_port);
        socket.id.idiag_src[0] = source;
        socket.id.idiag_dst[0] = peer;
        found = matches(&socket, arg);
    }
    fclose(file);
    return found;
}

struct listening {
    in_port_t port;
    bool ours;
};

/* Found is a stranger: the search ends there. */
static bool stranger_listens(const struct inet_diag_msg *socket, void *arg)
{
    struct listening *wanted = arg;

    if (socket->idiag_state != TCP_LISTEN || socket->id.idiag_sport != wanted->port)
        return false;
    if (socket->idiag_inode == 0 || socket->idiag_uid != getuid())
        return true;
    wanted->ours = true;
    return false;
}

static bool find_stranger(uint8_t family, const char *table, struct listening *wanted)
{
    struct question question = {.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
                                .request.sdiag_family = family,
                                .request.idiag_states = 1U << TCP_LISTEN};
    enum answer answer = find(&question, stranger_listens, wanted);

    return answer == CANNOT ? find_in_table(table, stranger_listens, wanted) : answer == FOUND;
}

enum tcp_listener tcp_listener(int port)
{
    struct listening wanted = {.port = htons((uint16_t)port)};

    if (find_stranger(AF_INET, "/proc/net/tcp", &wanted) ||
        find_stranger(AF_INET6, "/proc/net/tcp6", &wanted))
        return TCP_STRANGER;
    return wanted.ours ? TCP_OURS : TCP_NOBODY;
}

struct end {
    struct inet_diag_sockid id;
    uid_t uid;
};

/* Where there is no such connection, the kernel may answer with the socket that listens at its
 * address. A socket that no process has any more has no inode, and its user is told as 0. */
static bool is_end(const struct inet_diag_msg *socket, void *arg)
{
    struct end *end = arg;

    if (socket->idiag_state == TCP_LISTEN || socket->idiag_inode == 0 ||
        socket->id.idiag_sport != end->id.idiag_sport ||
        socket->id.idiag_dport != end->id.idiag_dport ||
        socket->id.idiag_src[0] != end->id.idiag_src[0] ||
        socket->id.idiag_dst[0] != end->id.idiag_dst[0])
        return false;
    end->uid = socket->idiag_uid;
    return true;
}

bool tcp_peer_uid(int fd, uid_t *uid)
{
    struct question question = {.header.nlmsg_flags = NLM_F_REQUEST,
                                .request.sdiag_family = AF_INET,
                                .request.idiag_states = ~0U};
    struct sockaddr_in own, peer;
    socklen_t own_len = sizeof(own), peer_len = sizeof(peer);
    struct end end = {.uid = (uid_t)-1};

    if (getsockname(fd, (struct sockaddr *)&own, &own_len) != 0 ||
        getpeername(fd, (struct sockaddr *)&peer, &peer_len) != 0 || own.sin_family != AF_INET ||
        peer.sin_family != AF_INET)
        return false;
    end.id = (struct inet_diag_sockid){
        .idiag_sport = peer.sin_port,
        .idiag_dport = own.sin_port,
        .idiag_src = {peer.sin_addr.s_addr},
        .idiag_dst = {own.sin_addr.s_addr},
        .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE},
    };
    question.request.id = end.id;
    if (find(&question, is_end, &end) != FOUND && !find_in_table("/proc/net/tcp", is_end, &end))
        return false;
    *uid = end.uid;
    return true;
}
