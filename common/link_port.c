/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ports of a leader: the candidates, and the file that names the leader's.
 *
 * Any user of the leader's node can take candidates, or all: then the leader listens on any free
 * port. It says where it is in a place where only its user can write. The file is no secret and no
 * proof: what answers there has to prove itself as at any candidate. */
#include "common/link_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/files.h"

#define TEXT_MAX 16

/* splitmix64's finalizer: neighbouring job ids shall not have neighbouring ports. */
static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* start + k * stride modulo the number of ports: all different as long as stride and that number
 * have no common divisor. */
int link_candidate_port(uint32_t job_id, uint32_t restarts, int k, int first, int last)
{
    uint64_t count = last > first ? (uint64_t)(last - first) + 1 : 1;
    uint64_t start = mix(((uint64_t)job_id << 32 | restarts) + 0x9e3779b97f4a7c15u);
    uint64_t stride = 1 + mix(start) % count;

    while (gcd(stride, count) != 1)
        stride++;
    return first + (int)((start % count + (uint64_t)k % count * (stride % count)) % count);
}

int link_port_write(const char *state_dir, const char *base, int port, struct error *err)
{
    char *dir = NULL, *path = NULL, text[TEXT_MAX];
    int len = snprintf(text, sizeof(text), "%d\n", port), result = -1;

    if (asprintf(&dir, "%s/leader", state_dir) < 0)
        dir = NULL;
    if (dir == NULL || asprintf(&path, "%s/%s.port", dir, base) < 0)
        path = NULL;
    if (path == NULL)
        error_set(err, "out of memory");
    else if (dir_make(dir, err) == 0)
        result = file_replace(path, text, (size_t)len, 0600, err);
    free(dir);
    free(path);
    return result;
}

/* A network file system may remember for a while that the name was missing. It asks the server
 * again when the directory is opened. */
static int open_port(const char *state_dir, const char *base)
{
    char *dir = NULL, name[48];
    int at, fd = -1;

    snprintf(name, sizeof(name), "%s.port", base);
    if (asprintf(&dir, "%s/leader", state_dir) < 0)
        return -1;
    at = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    free(dir);
    if (at >= 0)
        fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (at >= 0)
        close(at);
    return fd;
}

int link_port_read(const char *state_dir, const char *base, uid_t owner)
{
    int fd = open_port(state_dir, base), port = 0;
    char text[TEXT_MAX] = "", end;
    struct stat st;
    ssize_t len;

    if (fd < 0)
        return 0;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == owner &&
        (len = read(fd, text, sizeof(text) - 1)) > 0 &&
        (sscanf(text, "%5d%c", &port, &end) != 2 || end != '\n' || port < 1 || port > 65535))
        port = 0;
    close(fd);
    return port;
}
