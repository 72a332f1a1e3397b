/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program without MPI or Python that lives on through worlds of several sizes.
 *
 *     cc -o worlds worlds.c -lelastic
 *     srun elasticrun ./worlds STEPS MILLISECONDS [DIRECTORY]
 *
 * Each step sums over UNITS units of work, which the workers share, and takes the sum into a
 * state that all of them have. In each world they meet by elastic_put() and elastic_get(),
 * connect to rank 0, and whoever lacks the newest state gets it. In DIRECTORY each process
 * writes a line for each of its steps: step, rank, workers, its first unit and the one behind
 * its last, the state. Alone it does the same in one process. */
#include <elastic.h>

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define UNITS       1000
#define WORKERS_MAX 1024
#define PATIENCE_MS 30000 /* for the others to come */

/* What training would call parameters and optimizer. */
struct state {
    int64_t step; /* that have been made; -1: of a process that has only begun */
    uint64_t value;
};

static struct state state = {.step = -1};
static struct elastic_world world = {.size = 1};
static int peers[WORKERS_MAX]; /* sockets: of rank 0 to all others, of these to rank 0 in [0] */
static int peer_count;
static char fast[4096]; /* the file's name */

/* ---- the others of this world ---------------------------------------------------------------- */

static int send_all(int fd, const void *data, size_t len)
{
    for (const char *at = data; len > 0;) {
        ssize_t sent = send(fd, at, len, MSG_NOSIGNAL);

        if (sent <= 0)
            return -1;
        at += sent;
        len -= (size_t)sent;
    }
    return 0;
}

static int receive_all(int fd, void *data, size_t len)
{
    return recv(fd, data, len, MSG_WAITALL) == (ssize_t)len ? 0 : -1;
}

static void hang_up(void)
{
    while (peer_count > 0)
        close(peers[--peer_count]);
}

/* Of this host, as far as it knows. */
static struct in_addr own_address(void)
{
    struct addrinfo hints = {.ai_family = AF_INET}, *found = NULL;
    struct in_addr address = {.s_addr = htonl(INADDR_LOOPBACK)};
    char name[256] = "";

    gethostname(name, sizeof(name) - 1);
    if (getaddrinfo(name, NULL, &hints, &found) == 0) {
        struct sockaddr_in in;

        memcpy(&in, found->ai_addr, sizeof(in));
        address = in.sin_addr;
        freeaddrinfo(found);
    }
    return address;
}

/* Rank 0: tell the others where to come, and wait for them. */
static int invite(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    struct pollfd caller = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .events = POLLIN};
    socklen_t len = sizeof(address);
    int rc = -1;

    if (bind(caller.fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
        listen(caller.fd, world.size) == 0 &&
        getsockname(caller.fd, (struct sockaddr *)&address, &len) == 0) {
        address.sin_addr = own_address();
        rc = elastic_put("address", &address, sizeof(address));
    }
    while (rc == 0 && peer_count < world.size - 1) {
        if (poll(&caller, 1, PATIENCE_MS) == 1)
            peers[peer_count++] = accept(caller.fd, NULL, NULL);
        else
            rc = -1;
    }
    close(caller.fd);
    return rc;
}

static int join(void)
{
    struct sockaddr_in address;
    size_t size = sizeof(address);

    if (elastic_get("address", &address, &size, PATIENCE_MS) != 0)
        return -1;
    peers[peer_count++] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return connect(peers[0], (struct sockaddr *)&address, sizeof(address));
}

/* All get the newest state. (It has a few bytes here: a large one would go to those only that
 * lack it.) */
static int share_state(void)
{
    struct state theirs;
    int rc = 0;

    for (int i = 0; i < peer_count && rc == 0 && world.rank == 0; i++) {
        rc = receive_all(peers[i], &theirs, sizeof(theirs));
        if (rc == 0 && theirs.step > state.step)
            state = theirs;
    }
    if (world.rank == 0 && state.step < 0)
        state.step = 0; /* nobody has begun */
    for (int i = 0; i < peer_count && rc == 0; i++)
        rc = send_all(peers[i], &state, sizeof(state));
    if (rc == 0 && world.rank > 0)
        rc = receive_all(peers[0], &state, sizeof(state));
    return rc;
}

/* The sum over all workers. */
static int sum_up(uint64_t *sum)
{
    uint64_t theirs;
    int rc = 0;

    if (world.rank > 0)
        return send_all(peers[0], sum, sizeof(*sum)) == 0 ? receive_all(peers[0], sum, sizeof(*sum))
                                                          : -1;
    for (int i = 0; i < peer_count && rc == 0; i++) {
        rc = receive_all(peers[i], &theirs, sizeof(theirs));
        *sum += rc == 0 ? theirs : 0;
    }
    for (int i = 0; i < peer_count && rc == 0; i++)
        rc = send_all(peers[i], sum, sizeof(*sum));
    return rc;
}

/* ---- the work -------------------------------------------------------------------------------- */

static uint64_t work(uint64_t unit)
{
    unit *= UINT64_C(0x9e3779b97f4a7c15);
    return unit ^ unit >> 29;
}

static void slow_down(int milliseconds)
{
    struct timespec pause = {milliseconds / 1000, milliseconds % 1000 * 1000000L};

    if (fast[0] == '\0' || access(fast, F_OK) != 0)
        nanosleep(&pause, NULL);
}

static int one_step(FILE *log, int milliseconds)
{
    uint64_t begin = (uint64_t)(state.step * UNITS), sum = 0;
    uint64_t first = begin + (uint64_t)(UNITS * world.rank / world.size);
    uint64_t end = begin + (uint64_t)(UNITS * (world.rank + 1) / world.size);

    for (uint64_t unit = first; unit < end; unit++)
        sum += work(unit);
    slow_down(milliseconds);
    if (sum_up(&sum) != 0)
        return -1;
    state.value = state.value * 31 + sum;
    if (log != NULL)
        fprintf(log, "%lld %d %d %llu %llu %016llx\n", (long long)state.step, world.rank,
                world.size, (unsigned long long)first, (unsigned long long)end,
                (unsigned long long)state.value);
    state.step++;
    return 0;
}

/* Connect to the others and get the newest state. Connections that are opened in here are shut
 * down when a worker is lost, so that nobody waits on one for ever. */
static int meet(void)
{
    int rc;

    if (world.size > WORKERS_MAX)
        return -1;
    elastic_world_forms();
    rc = world.size == 1 ? 0 : world.rank == 0 ? invite() : join();
    elastic_world_formed();
    if (rc == 0)
        rc = share_state();
    if (rc == 0 && world.rank == 0)
        printf("generation %d: %d workers, from step %lld\n", world.generation, world.size,
               (long long)state.step);
    return rc;
}

/* Steps, until this world or the work ends. 1: it is the world; -1: the others cannot be
 * reached. */
static int live(FILE *log, int64_t steps, int milliseconds)
{
    int rc = meet();

    while (rc == 0 && state.step < steps) {
        rc = one_step(log, milliseconds);
        if (rc == 0 && state.step < steps)
            rc = elastic_event_test(NULL);
    }
    if (rc == 0)
        rc = elastic_finish(NULL); /* a change that has begun comes before the end */
    /* Connections tell of a loss sooner than elasticrun, or it is none. */
    return rc < 0 && elastic_torn(-1) == 1 ? 1 : rc;
}

static FILE *open_log(const char *directory)
{
    char path[4096];
    FILE *log;

    snprintf(fast, sizeof(fast), "%s/fast", directory);
    snprintf(path, sizeof(path), "%s/%d", directory, (int)getpid());
    log = fopen(path, "w");
    if (log == NULL) {
        perror(path);
        exit(1);
    }
    setvbuf(log, NULL, _IOLBF, 0);
    return log;
}

int main(int argc, char **argv)
{
    FILE *log = argc > 3 ? open_log(argv[3]) : NULL;
    int64_t steps = argc > 2 ? strtoll(argv[1], NULL, 10) : -1;
    int milliseconds = argc > 2 ? atoi(argv[2]) : 0, rc;

    if (steps < 0) {
        fprintf(stderr, "usage: worlds STEPS MILLISECONDS [DIRECTORY]\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    elastic_live();
    if (elastic_init() < 0) {
        fprintf(stderr, "worlds: %s\n", elastic_error());
        return 1;
    }
    elastic_world(&world); /* else it is the one of one process, as above */
    for (;;) {
        rc = live(log, steps, milliseconds);
        hang_up();
        if (rc != 1)
            break;
        rc = elastic_next_world(
            &world, elastic_torn(0) == 1 ? -1 : 0); /* after an event it is named already */
        if (rc != 1) {
            fprintf(stderr, "worlds: no next world: %s\n", elastic_error());
            return 1; /* a real program saves here, and is started anew */
        }
        if (world.size == 0)
            return 0;
    }
    if (rc != 0) {
        fprintf(stderr, "worlds: the others cannot be reached: %s\n", elastic_error());
        return 1;
    }
    if (world.rank == 0)
        printf("%lld steps, state %016llx\n", (long long)state.step,
               (unsigned long long)state.value);
    return 0;
}
