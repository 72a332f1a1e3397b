/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The connections of a world, and their end (sockets.h). */
#include "client/sockets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define AGAIN_NS    10000000 /* between two looks for connections, when the world is torn */
#define QUIET_LOOKS 3        /* looks in a row in which nothing has been sent or received */
#define LOOKS_MAX   30       /* looks at most */
/* The same where parts and copies may be under way, which a busy node may hold up. */
#define MORE_QUIET_LOOKS 100
#define MORE_LOOKS_MAX   250
#define CONNECT_MS       100 /* for a connection within this process */

struct inodes {
    ino_t *list;
    size_t count, room;
};

struct sockets {
    _Atomic uint32_t *torn;
    int32_t size;     /* ranks of the world */
    bool is_followed; /* it has ended, and its connections are still in use */
    _Atomic bool over;
    pthread_t thread;
    pthread_mutex_t lock;
    bool formed;
    struct inodes others; /* connections that were there before the world began to form */
    struct inodes own;    /* connections of the world, once it has formed */
    struct inodes met;    /* listening sockets to which all stand-ins have come */
};

/* ---- which sockets --------------------------------------------------------------------------- */

static bool has(const struct inodes *inodes, ino_t inode)
{
    for (size_t i = 0; i < inodes->count; i++)
        if (inodes->list[i] == inode)
            return true;
    return false;
}

static int add(struct inodes *inodes, ino_t inode)
{
    if (inodes->count == inodes->room) {
        size_t room = inodes->room != 0 ? 2 * inodes->room : 64;
        ino_t *list = realloc(inodes->list, room * sizeof(*list));

        if (list == NULL)
            return -1;
        inodes->list = list;
        inodes->room = room;
    }
    inodes->list[inodes->count++] = inode;
    return 0;
}

static bool is_tcp(int fd)
{
    int domain = 0, type = 0;
    socklen_t domain_len = sizeof(domain), type_len = sizeof(type);

    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_len) == 0 &&
           getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) == 0 &&
           (domain == AF_INET || domain == AF_INET6) && type == SOCK_STREAM;
}

/* Call visit with a descriptor of each TCP socket of this process. The descriptor belongs to visit
 * and cannot become another file meanwhile. Returns 0, -1 with errno, or the first result of visit
 * that is not 0. */
static int each_socket(int (*visit)(int fd, ino_t inode, void *arg), void *arg)
{
    DIR *dir = opendir("/proc/self/fd");
    const struct dirent *entry;
    int rc = 0;

    if (dir == NULL)
        return -1;
    while (rc == 0 && (entry = readdir(dir)) != NULL) {
        char *end;
        long number = strtol(entry->d_name, &end, 10);
        struct stat st;
        int fd;

        if (*end != '\0' || end == entry->d_name || number == dirfd(dir))
            continue;
        fd = fcntl((int)number, F_DUPFD_CLOEXEC, 0);
        if (fd < 0)
            continue; /* closed meanwhile */
        if (fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) && is_tcp(fd))
            rc = visit(fd, st.st_ino, arg);
        close(fd);
    }
    closedir(dir);
    return rc;
}

static int note_other(int fd, ino_t inode, void *arg)
{
    struct sockets *sockets = arg;

    (void)fd;
    return add(&sockets->others, inode);
}

static int note_own(int fd, ino_t inode, void *arg)
{
    struct sockets *sockets = arg;

    (void)fd;
    return has(&sockets->others, inode) ? 0 : add(&sockets->own, inode);
}

static bool is_of_world(const struct sockets *sockets, ino_t inode)
{
    return sockets->formed ? has(&sockets->own, inode) : !has(&sockets->others, inode);
}

static bool listens(int fd)
{
    int value = 0;
    socklen_t len = sizeof(value);

    return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &len) == 0 && value != 0;
}

/* ---- those who wait for a connection --------------------------------------------------------- */

/* Connect, say which number, and close. False if the other end takes it not now. */
static bool stand_in(const struct sockaddr_storage *address, socklen_t len, int64_t number)
{
    int fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct pollfd made = {.fd = fd, .events = POLLOUT};
    bool taken;

    if (fd < 0)
        return false;
    taken = (connect(fd, (const struct sockaddr *)address, len) == 0 || errno == EINPROGRESS) &&
            poll(&made, 1, CONNECT_MS) == 1 &&
            send(fd, &number, sizeof(number), MSG_NOSIGNAL) == (ssize_t)sizeof(number);
    close(fd);
    return taken;
}

/* A thread of gloo may wait for a lost rank to connect, and has no way out but a connection: so
 * this process makes those connections itself, and ends them. The gloo of PyTorch 2.1 and later has
 * one listening socket for all ranks, told apart by a number below the world's size that comes
 * first. It ends the process if that socket is shut down. */
static void stand_in_for_all(struct sockets *sockets, int fd, ino_t inode)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof(address);

    if (has(&sockets->met, inode) || getsockname(fd, (struct sockaddr *)&address, &len) != 0)
        return;
    for (int32_t number = 0; number < sockets->size; number++)
        if (!stand_in(&address, len, number))
            return;
    add(&sockets->met, inode);
}

/* ---- their end ------------------------------------------------------------------------------- */

struct look {
    const struct sockets *sockets;
    uint64_t bytes; /* bytes received by either side, since the connections were made */
    uint64_t unread;
};

static int observe(int fd, ino_t inode, void *arg)
{
    struct look *look = arg;
    struct tcp_info info;
    socklen_t len = sizeof(info);
    int unread = 0;

    memset(&info, 0, sizeof(info)); /* an older kernel's is shorter */
    if (!is_of_world(look->sockets, inode) ||
        getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
        return 0;
    look->bytes += info.tcpi_bytes_received + info.tcpi_bytes_acked;
    if (ioctl(fd, FIONREAD, &unread) == 0 && unread > 0)
        look->unread += (uint64_t)unread;
    return 0;
}

static int end_reading(int fd, ino_t inode, void *arg)
{
    if (is_of_world(arg, inode) && !listens(fd))
        shutdown(fd, SHUT_RD);
    return 0;
}

static int end_all(int fd, ino_t inode, void *arg)
{
    struct sockets *sockets = arg;

    if (!is_of_world(sockets, inode))
        return 0;
    if (!listens(fd))
        shutdown(fd, SHUT_RDWR);
    else if (!sockets->formed)
        stand_in_for_all(sockets, fd, inode);
    return 0;
}

static bool wait_for_next_look(const struct sockets *sockets)
{
    const struct timespec again = {.tv_nsec = AGAIN_NS};

    nanosleep(&again, NULL);
    return !atomic_load(&sockets->over);
}

static void visit_all(struct sockets *sockets, int (*visit)(int fd, ino_t inode, void *arg),
                      void *arg)
{
    pthread_mutex_lock(&sockets->lock);
    each_socket(visit, arg);
    pthread_mutex_unlock(&sockets->lock);
}

/* Data on its way arrives first. If a connection ends when a part of a message has arrived, gloo
 * never wakes the thread that waits for the rest. */
static void let_arrive(struct sockets *sockets)
{
    struct look before = {.sockets = sockets}, now;

    const int looks_max = sockets->is_followed ? MORE_LOOKS_MAX : LOOKS_MAX;
    const int enough = sockets->is_followed ? MORE_QUIET_LOOKS : QUIET_LOOKS;

    for (int looks = 0, quiet = 0; looks < looks_max && quiet < enough; looks++) {
        now = (struct look){.sockets = sockets};
        visit_all(sockets, observe, &now);
        quiet = looks > 0 && now.unread == 0 && now.bytes == before.bytes ? quiet + 1 : 0;
        before = now;
        if (!wait_for_next_look(sockets))
            return;
    }
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Gloo never tells a waiting thread that a write to an ended connection has failed. So reading ends
 * first, which gloo takes for the end of all. */
static void *thread_main(void *arg)
{
    struct sockets *sockets = arg;

    while (!atomic_load(&sockets->over) && atomic_load(sockets->torn) == 0)
        syscall(SYS_futex, sockets->torn, FUTEX_WAIT, 0, NULL, NULL, 0);
    if (atomic_load(&sockets->over))
        return NULL;
    let_arrive(sockets);
    visit_all(sockets, end_reading, sockets);
    while (wait_for_next_look(sockets))
        visit_all(sockets, end_all, sockets);
    return NULL;
}

/* Signals are for the worker's own threads. */
static int start_thread(struct sockets *sockets)
{
    sigset_t all, before;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&sockets->thread, NULL, thread_main, sockets);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void destroy(struct sockets *sockets)
{
    free(sockets->others.list);
    free(sockets->own.list);
    free(sockets->met.list);
    pthread_mutex_destroy(&sockets->lock);
    free(sockets);
}

struct sockets *sockets_watch(_Atomic uint32_t *torn, int32_t size)
{
    struct sockets *sockets = calloc(1, sizeof(*sockets));
    int rc;

    if (sockets == NULL)
        return NULL;
    sockets->torn = torn;
    sockets->size = size;
    pthread_mutex_init(&sockets->lock, NULL);
    errno = ENOMEM;
    rc = each_socket(note_other, sockets) == 0 ? start_thread(sockets) : errno;
    if (rc != 0) {
        destroy(sockets);
        errno = rc;
        return NULL;
    }
    return sockets;
}

void sockets_formed(struct sockets *sockets)
{
    pthread_mutex_lock(&sockets->lock);
    /* Without a list of its own connections, the world's are all that were not there before: rather
     * too many than too few. */
    if (!sockets->formed)
        sockets->formed = each_socket(note_own, sockets) == 0;
    pthread_mutex_unlock(&sockets->lock);
}

static void end_thread(struct sockets *sockets)
{
    atomic_store(&sockets->over, true);
    do { /* the thread may have looked at `over` just before, and not be asleep yet */
        const struct timespec moment = {.tv_nsec = 1000000};
        struct timespec until;

        syscall(SYS_futex, sockets->torn, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += moment.tv_nsec;
        if (until.tv_nsec >= 1000000000) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000;
        }
        if (pthread_timedjoin_np(sockets->thread, NULL, &until) == 0)
            break;
    } while (true);
}

bool sockets_follow(struct sockets *sockets, _Atomic uint32_t *torn)
{
    end_thread(sockets);
    atomic_store(&sockets->over, false);
    sockets->torn = torn;
    sockets->is_followed = true;
    if (start_thread(sockets) == 0)
        return true;
    destroy(sockets);
    return false;
}

void sockets_leave(struct sockets *sockets)
{
    if (sockets == NULL)
        return;
    end_thread(sockets);
    destroy(sockets);
}

void sockets_forget(struct sockets *sockets)
{
    if (sockets != NULL)
        destroy(sockets);
}
