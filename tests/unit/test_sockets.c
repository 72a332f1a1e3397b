/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The connections of a world (client/sockets.c), with real ones: which are shut down when it is
 * torn, which are not, and when. */
#include "tests/unit/support.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/sockets.h"

#define WAIT_MS  120000 /* for what takes milliseconds when all is well */
#define QUIET_MS 60     /* several looks of the thread */
#define RANKS    3      /* of the world */

struct connection {
    int client, server;
};

static _Atomic uint32_t torn;

static void tear(void)
{
    atomic_store(&torn, 1);
    syscall(SYS_futex, &torn, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static int set_up(void **state)
{
    (void)state;
    atomic_store(&torn, 0);
    return 0;
}

static int listener(int family)
{
    struct sockaddr_in6 address = {.sin6_family = (sa_family_t)family};
    socklen_t len = sizeof(address);
    int listening = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (family == AF_INET)
        ((struct sockaddr_in *)&address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else
        address.sin6_addr = in6addr_loopback;
    assert_int_equal(bind(listening, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(listening, RANKS), 0);
    return listening;
}

static struct connection connection_to(int listening)
{
    struct sockaddr_in6 address;
    socklen_t len = sizeof(address);
    struct connection made;

    assert_int_equal(getsockname(listening, (struct sockaddr *)&address, &len), 0);
    made.client = socket(address.sin6_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(made.client, (struct sockaddr *)&address, len), 0);
    made.server = accept(listening, NULL, NULL);
    assert_true(made.server >= 0);
    return made;
}

/* Two ends in this process, as a world of one node has them. */
static struct connection connection_of(int family)
{
    int listening = listener(family);
    struct connection made = connection_to(listening);

    close(listening);
    return made;
}

static struct connection connection(void)
{
    return connection_of(AF_INET);
}

static void drop(struct connection made)
{
    close(made.client);
    close(made.server);
}

/* Whoever waits there for data gets an end of file. */
static bool is_cut(int fd, int ms)
{
    struct pollfd end = {.fd = fd, .events = POLLIN};
    char byte;

    return poll(&end, 1, ms) == 1 && recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

static void assert_cut(struct connection made)
{
    assert_true(is_cut(made.client, WAIT_MS));
    assert_true(is_cut(made.server, WAIT_MS));
}

static void assert_whole(struct connection made)
{
    char byte = 0;

    assert_false(is_cut(made.client, QUIET_MS));
    assert_int_equal(send(made.server, "x", 1, MSG_NOSIGNAL), 1);
    assert_int_equal(recv(made.client, &byte, 1, 0), 1);
    assert_int_equal(send(made.client, "x", 1, MSG_NOSIGNAL), 1);
    assert_int_equal(recv(made.server, &byte, 1, 0), 1);
}

static void test_those_of_the_world_end(void **state)
{
    struct connection before = connection(), first, second, after;
    struct sockets *sockets = sockets_watch(&torn, RANKS);

    (void)state;
    assert_non_null(sockets);
    first = connection();
    second = connection_of(AF_INET6);
    sockets_formed(sockets);
    after = connection();
    assert_whole(first); /* nothing happens before the word */
    tear();
    assert_cut(first);
    assert_cut(second);
    assert_whole(before);
    assert_whole(after);
    sockets_leave(sockets);
    drop(before);
    drop(first);
    drop(second);
    drop(after);
}

/* The world has ended as planned, and its workers give parts to each other: another word counts. */
static void test_those_of_a_world_that_ended_end_when_the_next_is_torn(void **state)
{
    _Atomic uint32_t before = 0;
    struct sockets *sockets = sockets_watch(&before, RANKS);
    struct connection first = connection(), after;

    (void)state;
    sockets_formed(sockets);
    assert_true(sockets_follow(sockets, &torn));
    after = connection();
    atomic_store(&before, 1);
    syscall(SYS_futex, &before, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    assert_whole(first);
    tear();
    assert_cut(first);
    assert_whole(after);
    sockets_leave(sockets);
    drop(first);
    drop(after);
}

/* Torn while it forms: frameworks go on opening connections, one after the other. */
static void test_new_ones_end_while_it_forms(void **state)
{
    struct connection before = connection(), early;
    int listening = listener(AF_INET); /* later there would be stand-ins */
    struct sockets *sockets = sockets_watch(&torn, RANKS);

    (void)state;
    early = connection();
    tear();
    assert_cut(early);
    for (int i = 0; i < 5; i++) {
        struct connection late = connection_to(listening);

        assert_cut(late);
        drop(late);
    }
    assert_whole(before);
    sockets_leave(sockets);
    /* Out of it: what is opened now is nobody's business. */
    drop(early);
    early = connection();
    assert_whole(early);
    drop(early);
    drop(before);
    close(listening);
}

/* Gloo waits there for each rank, which says its number first. */
static void test_stand_ins_come_for_the_lost_while_it_forms(void **state)
{
    struct sockets *sockets = sockets_watch(&torn, RANKS);
    int listening = listener(AF_INET6);
    struct pollfd more = {.fd = listening, .events = POLLIN};

    (void)state;
    tear();
    for (int64_t rank = 0, number = -1; rank < RANKS; rank++) {
        int end;

        assert_int_equal(poll(&more, 1, WAIT_MS), 1);
        end = accept(listening, NULL, NULL);
        assert_true(end >= 0);
        assert_int_equal(recv(end, &number, sizeof(number), MSG_WAITALL), sizeof(number));
        assert_int_equal(number, rank);
        assert_true(is_cut(end, WAIT_MS));
        close(end);
    }
    assert_int_equal(poll(&more, 1, QUIET_MS), 0); /* each once */
    sockets_leave(sockets);
    close(listening);
}

/* One that listens belongs to a thread of gloo that would end the process. */
static void test_listening_goes_on_in_a_world_that_has_formed(void **state)
{
    struct sockets *sockets = sockets_watch(&torn, RANKS);
    int listening = listener(AF_INET);
    struct pollfd more = {.fd = listening, .events = POLLIN};
    struct connection own = connection_to(listening), after;

    (void)state;
    sockets_formed(sockets);
    tear();
    assert_cut(own);
    assert_int_equal(poll(&more, 1, QUIET_MS), 0);
    after = connection_to(listening);
    assert_whole(after);
    sockets_leave(sockets);
    drop(own);
    drop(after);
    close(listening);
}

/* The word comes before it has begun to form: a worker may enter a world that is torn already. */
static void test_torn_from_the_start(void **state)
{
    int listening = listener(AF_INET);
    struct sockets *sockets;
    struct connection made;

    (void)state;
    tear();
    sockets = sockets_watch(&torn, RANKS);
    made = connection_to(listening);
    assert_cut(made);
    sockets_leave(sockets);
    drop(made);
    close(listening);
}

/* The descriptor's number is another connection's by then, or the socket has several. */
static void test_a_socket_is_known_whatever_its_descriptor(void **state)
{
    struct connection own, after;
    struct sockets *sockets = sockets_watch(&torn, RANKS);
    int copy;

    (void)state;
    own = connection();
    sockets_formed(sockets);
    copy = dup(own.client);
    after = connection();
    /* The numbers change places. */
    assert_int_equal(dup2(after.client, own.client), own.client);
    tear();
    assert_true(is_cut(copy, WAIT_MS));
    assert_true(is_cut(own.server, WAIT_MS));
    assert_whole(after);
    assert_false(is_cut(own.client, 0)); /* now the other one's */
    sockets_leave(sockets);
    close(copy);
    drop(own);
    drop(after);
}

/* Files, pipes, connections to the agent on this node, datagrams and listeners that were there
 * are none of it. */
static void test_other_descriptors_are_left_alone(void **state)
{
    struct sockets *sockets = sockets_watch(&torn, RANKS);
    int pair[2], tube[2], datagrams = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    struct connection own;
    char byte;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(pipe(tube), 0);
    assert_int_equal(bind(datagrams, (struct sockaddr *)&address, len), 0);
    assert_int_equal(getsockname(datagrams, (struct sockaddr *)&address, &len), 0);
    assert_int_equal(connect(datagrams, (struct sockaddr *)&address, len), 0);
    own = connection();
    tear();
    assert_cut(own);
    assert_false(is_cut(pair[0], QUIET_MS));
    assert_int_equal(write(pair[0], "x", 1), 1);
    assert_int_equal(read(pair[1], &byte, 1), 1);
    assert_int_equal(write(tube[1], "x", 1), 1);
    assert_int_equal(read(tube[0], &byte, 1), 1);
    assert_int_equal(send(datagrams, "x", 1, 0), 1);
    assert_int_equal(recv(datagrams, &byte, 1, 0), 1);
    sockets_leave(sockets);
    for (int i = 0; i < 2; i++) {
        close(pair[i]);
        close(tube[i]);
    }
    close(datagrams);
    drop(own);
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int threads(void)
{
    char line[256];
    int count = -1;
    FILE *file = fopen("/proc/self/status", "re");

    while (fgets(line, sizeof(line), file) != NULL)
        if (sscanf(line, "Threads: %d", &count) == 1)
            break;
    fclose(file);
    return count;
}

/* Nobody wakes the thread but leave(), whatever it is about to do. */
static void test_leaving_ends_the_thread(void **state)
{
    int64_t begun = now_ms();
    int before = threads();

    (void)state;
    sockets_leave(NULL);
    for (int i = 0; i < 300; i++) {
        struct sockets *sockets = sockets_watch(&torn, RANKS);
        uint64_t seed = (uint64_t)i + 1;

        assert_non_null(sockets);
        for (uint32_t k = random_below(&seed, 20000); k > 0; k--)
            atomic_load(&torn);
        if (i % 3 == 0)
            sockets_formed(sockets);
        if (i % 5 == 0)
            tear();
        sockets_leave(sockets);
        atomic_store(&torn, 0);
    }
    assert_int_equal(threads(), before);
    assert_true(now_ms() - begun < WAIT_MS);
}

static int open_descriptors(void)
{
    int count = 0;

    for (int fd = 0; fd < 4096; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* A data loader's process has copies of all of it, and no thread. What it does about them is not
 * seen here. */
static void test_a_forked_child_forgets(void **state)
{
    struct sockets *sockets = sockets_watch(&torn, RANKS);
    struct connection own = connection(), late;
    int status = -1;
    pid_t pid;

    (void)state;
    sockets_formed(sockets);
    pid = fork();
    if (pid == 0) {
        sockets_forget(sockets);
        sockets_forget(NULL);
        tear(); /* its own word: the memory is not shared in this test */
        usleep(QUIET_MS * 1000);
        _exit(is_cut(own.client, 0) ? 1 : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_whole(own);
    late = connection();
    tear();
    assert_cut(own);
    assert_whole(late);
    sockets_leave(sockets);
    drop(own);
    drop(late);
}

static void test_many_descriptors(void **state)
{
    enum { MANY = 400 };
    static struct connection before[MANY], own[MANY];
    struct rlimit limit = {4096, 4096};
    struct sockets *sockets;
    int open_before;

    (void)state;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        skip();
    for (int i = 0; i < MANY; i++)
        before[i] = connection();
    open_before = open_descriptors();
    sockets = sockets_watch(&torn, RANKS);
    for (int i = 0; i < MANY; i++)
        own[i] = connection();
    sockets_formed(sockets);
    tear();
    for (int i = 0; i < MANY; i++)
        assert_cut(own[i]);
    for (int i = 0; i < MANY; i++)
        assert_false(is_cut(before[i].client, 0));
    sockets_leave(sockets);
    for (int i = 0; i < MANY; i++)
        drop(own[i]);
    assert_int_equal(open_descriptors(), open_before);
    for (int i = 0; i < MANY; i++)
        drop(before[i]);
}

/* A part of a message has arrived, and waits for whoever reads it; false if this process was
 * kept from looking in time. */
static bool waits_for_reader(bool read_it)
{
    struct sockets *sockets = sockets_watch(&torn, RANKS);
    struct connection own = connection();
    int64_t begun;
    bool early, late;
    char bytes[4];

    sockets_formed(sockets);
    assert_int_equal(send(own.server, "part", sizeof(bytes), MSG_NOSIGNAL), sizeof(bytes));
    assert_false(is_cut(own.server, QUIET_MS));
    begun = now_ms();
    tear();
    early = is_cut(own.server, 2 * QUIET_MS);
    late = now_ms() - begun > 3 * QUIET_MS;
    if (!early && read_it)
        assert_int_equal(recv(own.client, bytes, sizeof(bytes), 0), sizeof(bytes));
    assert_true(is_cut(own.server, WAIT_MS)); /* in the end, even if nobody reads it */
    sockets_leave(sockets);
    atomic_store(&torn, 0);
    drop(own);
    assert_false(early && !late);
    return !late;
}

static void test_what_has_arrived_is_read_first(void **state)
{
    int seen = 0;

    (void)state;
    for (int i = 0; i < 20 && seen < 2; i++)
        seen += waits_for_reader(seen == 0);
    assert_int_equal(seen, 2);
}

/* What a framework does in its own thread meanwhile; its calls fail when the connection is one
 * of the world's. */
static void *open_and_close(void *arg)
{
    atomic_bool *over = arg;

    while (!atomic_load(over)) {
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t len = sizeof(address);
        int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (bind(listening, (struct sockaddr *)&address, len) == 0 && listen(listening, 1) == 0 &&
            getsockname(listening, (struct sockaddr *)&address, &len) == 0)
            (void)!connect(client, (struct sockaddr *)&address, len);
        close(client);
        close(listening);
        usleep(500);
    }
    return NULL;
}

/* … while connections come and go all the time: nobody's descriptor is closed or shut down by
 * mistake. */
static void test_while_others_come_and_go(void **state)
{
    struct connection before = connection();
    int listening = listener(AF_INET);
    atomic_bool over = false;
    struct sockets *sockets;
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, open_and_close, &over), 0);
    for (int i = 0; i < 10; i++) {
        struct connection own;

        sockets = sockets_watch(&torn, RANKS);
        assert_non_null(sockets);
        own = connection_to(listening);
        if (i % 2 == 0)
            sockets_formed(sockets);
        tear();
        assert_cut(own);
        sockets_leave(sockets);
        atomic_store(&torn, 0);
        drop(own);
    }
    atomic_store(&over, true);
    pthread_join(thread, NULL);
    assert_whole(before);
    drop(before);
    close(listening);
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_those_of_the_world_end),
        TEST(test_those_of_a_world_that_ended_end_when_the_next_is_torn),
        TEST(test_new_ones_end_while_it_forms),
        TEST(test_stand_ins_come_for_the_lost_while_it_forms),
        TEST(test_listening_goes_on_in_a_world_that_has_formed),
        TEST(test_torn_from_the_start),
        TEST(test_a_socket_is_known_whatever_its_descriptor),
        TEST(test_other_descriptors_are_left_alone),
        TEST(test_leaving_ends_the_thread),
        TEST(test_a_forked_child_forgets),
        TEST(test_many_descriptors),
        TEST(test_what_has_arrived_is_read_first),
        TEST(test_while_others_come_and_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
