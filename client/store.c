/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests to the agent's store (store.h).
 *
 * Each call connects, asks and closes the connection. So threads share nothing, a forked child
 * inherits nothing, and an interrupted call leaves no half of an answer behind. This library needs
 * libc only: so it prints requests itself, and parses answers itself, which are flat JSON objects
 * of strings and integers.
 *
 * The agent can be stopped or killed at any time: no call waits longer than a limit, except a get
 * without a limit. */
#include "client/store.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* Added to a request's own time limit: the agent answers in milliseconds. */
#define ANSWER_MS   15000
#define BUSY_MS     50 /* pause before a request is repeated for which the agent is too busy */
#define FRAME_MAX   ((uint32_t)3 << 20)
#define REQUEST_MAX (STORE_CLIENT_KEY_MAX + 256) /* bytes of a request without its value */

static int64_t now_ms(void)
{
    struct timespec now = {0};

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int fail(struct event_client_error *err, const char *what, const char *why)
{
    event_client_fail(err, "the store of this node: %s%s%s", what, why[0] != '\0' ? ": " : "", why);
    return ELASTIC_ERROR_STORE;
}

/* ---- a connection ---------------------------------------------------------------------------- */

/* The path of a directory can be longer than a socket's address: so the socket is reached through a
 * descriptor of its directory. -1 with errno. */
static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval limit = {.tv_sec = ANSWER_MS / 1000};
    const char *slash = strrchr(path, '/');
    char directory[PATH_MAX];
    int fd = -1, dir = -1, rc = -1, error;

    if (snprintf(directory, sizeof(directory), "%.*s", slash != NULL ? (int)(slash - path) + 1 : 1,
                 slash != NULL ? path : ".") >= (int)sizeof(directory)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    dir = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir >= 0)
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%.64s", dir,
                 slash != NULL ? slash + 1 : path);
        /* Connecting waits while too many other processes connect. */
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
        do
            rc = connect(fd, (struct sockaddr *)&address, sizeof(address));
        while (rc != 0 && errno == EINTR);
    }
    error = errno;
    if (dir >= 0)
        close(dir);
    if (rc != 0 && fd >= 0)
        close(fd);
    errno = error;
    return rc == 0 ? fd : -1;
}

/* Wait until the socket is ready for `what`, but no longer than `until` (INT64_MAX: no limit).
 * False, with errno: it is not ready. */
static bool wait_until(int fd, short what, int64_t until)
{
    struct pollfd ready = {.fd = fd, .events = what};
    int rc;

    do {
        int64_t left = until == INT64_MAX ? -1 : until - now_ms();

        if (until != INT64_MAX && left < 0)
            left = 0;
        rc = poll(&ready, 1, left > INT_MAX ? INT_MAX : (int)left);
    } while (rc < 0 && errno == EINTR);
    if (rc == 0)
        errno = ETIMEDOUT;
    return rc > 0;
}

/* 0, or -1 with errno. */
static int move_bytes(int fd, char *data, size_t len, bool out, int64_t until)
{
    while (len > 0) {
        ssize_t moved = out ? send(fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT)
                            : recv(fd, data, len, MSG_DONTWAIT);

        if (moved > 0) {
            data += moved;
            len -= (size_t)moved;
        } else if (moved == 0) {
            errno = ECONNRESET;
            return -1;
        } else if (errno == EAGAIN) {
            if (!wait_until(fd, out ? POLLOUT : POLLIN, until))
                return -1;
        } else if (errno != EINTR) {
            return -1;
        }
    }
    return 0;
}

static int send_frame(int fd, char *text, size_t len, int64_t until)
{
    uint32_t length = htonl((uint32_t)len);

    return move_bytes(fd, (char *)&length, sizeof(length), true, until) != 0
               ? -1
               : move_bytes(fd, text, len, true, until);
}

/* The answer, NUL-terminated, which the caller frees; NULL with errno. */
static char *receive_frame(int fd, int64_t until)
{
    uint32_t length;
    char *text;

    if (move_bytes(fd, (char *)&length, sizeof(length), false, until) != 0)
        return NULL;
    length = ntohl(length);
    if (length == 0 || length > FRAME_MAX) {
        errno = EPROTO;
        return NULL;
    }
    text = malloc((size_t)length + 1);
    if (text == NULL || move_bytes(fd, text, length, false, until) != 0) {
        free(text);
        return NULL;
    }
    text[length] = '\0';
    return text;
}

/* ---- base64, and the little JSON of an answer ------------------------------------------------ */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static size_t encode(const unsigned char *from, size_t size, char *to)
{
    char *begin = to;

    for (size_t i = 0; i < size; i += 3) {
        uint32_t three = (uint32_t)from[i] << 16;

        three |= i + 1 < size ? (uint32_t)from[i + 1] << 8 : 0;
        three |= i + 2 < size ? from[i + 2] : 0;
        *to++ = digits[three >> 18];
        *to++ = digits[three >> 12 & 63];
        *to++ = i + 1 < size ? digits[three >> 6 & 63] : '=';
        *to++ = i + 2 < size ? digits[three & 63] : '=';
    }
    return (size_t)(to - begin);
}

/* Decode base64. Returns the number of bytes that the text stands for; only as many as fit are
 * stored. SIZE_MAX: the text is not base64. */
static size_t decode(const char *from, size_t len, unsigned char *to, size_t room)
{
    size_t size = 0, padding = 0;
    uint32_t bits = 0;

    for (size_t i = 0; i < len; i++) {
        const char *digit = memchr(digits, from[i], sizeof(digits) - 1);

        padding += from[i] == '=';
        if ((digit == NULL) != (from[i] == '=') || (digit != NULL && padding > 0))
            return SIZE_MAX;
        bits = bits << 6 | (digit != NULL ? (uint32_t)(digit - digits) : 0);
        if (i % 4 != 3)
            continue;
        for (int shift = 16; shift >= 0; shift -= 8, size++)
            if (size < room)
                to[size] = (unsigned char)(bits >> shift);
    }
    return len % 4 != 0 || padding > 2 ? SIZE_MAX : size - padding;
}

/* The text behind a string that begins at text, after its quotation mark; NULL: the string has no
 * end. */
static const char *skip_string(const char *text)
{
    for (text++; *text != '"'; text++) {
        if (*text == '\0' || (*text == '\\' && *++text == '\0'))
            return NULL;
    }
    return text + 1;
}

/* The string of this name in a flat object, in its JSON form; NULL: there is none. */
static const char *find_string(const char *text, const char *name, size_t *len)
{
    size_t name_len = strlen(name);

    for (text = strchr(text, '"'); text != NULL; text = strchr(text, '"')) {
        const char *end = skip_string(text), *value;
        bool found = end != NULL && (size_t)(end - text) == name_len + 2 &&
                     strncmp(text + 1, name, name_len) == 0;

        if (end == NULL)
            return NULL;
        value = end + strspn(end, " \t:");
        end = *value == '"' ? skip_string(value) : value + strcspn(value, ",}");
        if (end == NULL)
            return NULL;
        if (found && *value == '"') {
            *len = (size_t)(end - value) - 2;
            return value + 1;
        }
        text = end;
    }
    return NULL;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Send one request. Returns its answer, which the caller frees; NULL with the reason in err. */
static char *exchange(const struct store_client *store, char *request, size_t len, int64_t until,
                      struct event_client_error *err)
{
    int fd = connect_to(store->path);
    char *answer = NULL;

    if (fd < 0) {
        event_client_fail(err, "the store of this node, %s, cannot be reached: %s", store->path,
                          strerror(errno));
        return NULL;
    }
    if (send_frame(fd, request, len, until) == 0)
        answer = receive_frame(fd, until);
    if (answer == NULL)
        fail(err, errno == ETIMEDOUT ? "elasticrun does not answer" : "no answer",
             errno == ETIMEDOUT ? "" : strerror(errno));
    close(fd);
    return answer;
}

/* The caller's result for an answer's error; 0: the answer has no error. */
static int error_of(const struct store_client *store, const char *answer, const char *key,
                    bool *busy, struct event_client_error *err)
{
    static const char gone[] = "gone", timeout[] = "timeout";
    size_t len = 0, reason_len = 0;
    const char *error = find_string(answer, "error", &len);
    const char *reason = find_string(answer, "reason", &reason_len);

    *busy = error != NULL && len == 4 && strncmp(error, "busy", len) == 0;
    if (error == NULL || *busy)
        return 0;
    if (len == sizeof(timeout) - 1 && strncmp(error, timeout, len) == 0) {
        event_client_fail(err, "nobody has put \"%.200s\" in time", key);
        return ELASTIC_PENDING;
    }
    if (len == sizeof(gone) - 1 && strncmp(error, gone, len) == 0) {
        event_client_fail(err, "the world of generation %d is over", store->generation);
        return ELASTIC_ERROR_GONE;
    }
    event_client_fail(err, "the store does not do it: %.*s",
                      (int)(reason != NULL ? reason_len : len), reason != NULL ? reason : error);
    return ELASTIC_ERROR_STORE;
}

/* Ask until the agent is not too busy. 0 and *answer, which the caller frees, or an error. */
static int ask(const struct store_client *store, char *request, size_t len, const char *key,
               int64_t until, char **answer, struct event_client_error *err)
{
    const struct timespec pause = {.tv_nsec = BUSY_MS * 1000000};
    bool busy;
    int rc;

    for (;;) {
        *answer = exchange(store, request, len, until, err);
        if (*answer == NULL)
            return ELASTIC_ERROR_STORE;
        rc = error_of(store, *answer, key, &busy, err);
        if (rc == 0 && !busy)
            return 0;
        free(*answer);
        *answer = NULL;
        if (rc != 0)
            return rc;
        if (now_ms() >= until)
            return fail(err, "elasticrun is too busy", "");
        nanosleep(&pause, NULL);
    }
}

int store_client_put(const struct store_client *store, const char *key, const void *value,
                     size_t size, struct event_client_error *err)
{
    char *request = malloc(REQUEST_MAX + (size + 2) / 3 * 4), *answer = NULL;
    size_t len;
    int rc;

    if (request == NULL)
        return fail(err, "out of memory", "");
    len = (size_t)snprintf(request, REQUEST_MAX,
                           "{\"id\":1,\"gen\":%d,\"attempt\":%d,\"op\":\"set\",\"key\":\"%s\","
                           "\"value\":\"",
                           store->generation, store->attempt, key);
    len += encode(value, size, request + len);
    memcpy(request + len, "\"}", 2);
    rc = ask(store, request, len + 2, key, now_ms() + ANSWER_MS, &answer, err);
    free(request);
    free(answer);
    return rc;
}

int store_client_get(const struct store_client *store, const char *key, void *value, size_t *size,
                     int timeout_ms, struct event_client_error *err)
{
    char request[REQUEST_MAX], *answer = NULL;
    const char *text;
    size_t len = 0, room = *size;
    int rc;

    /* Without a limit: as long as the world lasts. No %f, which some locales write with a comma. */
    snprintf(
        request, sizeof(request),
        "{\"id\":1,\"gen\":%d,\"attempt\":%d,\"op\":\"get\",\"key\":\"%s\",\"timeout\":%d.%03d}",
        store->generation, store->attempt, key, timeout_ms < 0 ? 1000000000 : timeout_ms / 1000,
        timeout_ms < 0 ? 0 : timeout_ms % 1000);
    rc = ask(store, request, strlen(request), key,
             timeout_ms < 0 ? INT64_MAX : now_ms() + timeout_ms + ANSWER_MS, &answer, err);
    if (rc != 0)
        return rc;
    text = find_string(answer, "value", &len);
    *size = text != NULL ? decode(text, len, value, room) : SIZE_MAX;
    free(answer);
    if (*size == SIZE_MAX) {
        *size = 0;
        return fail(err, "an answer without a value", "");
    }
    if (*size <= room)
        return 0;
    event_client_fail(err, "\"%.200s\" has %zu bytes: there is room for %zu", key, *size, room);
    return ELASTIC_ERROR_ARGUMENT;
}
