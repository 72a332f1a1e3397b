/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A server is asked to train (server_call.h). */
#include "fit/server_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <curl/curl.h>

#include "common/monotonic.h"
#include "common/tcp_sockets.h"

#define ANSWER_MAX 4096 /* bytes that are kept */
#define CONNECT_MS 5000L
#define LOOK_MS    30000L /* for the answer to a GET */
#define PAUSE_NS   100000000L

struct talk {
    const struct server_call *call;
    const char *address;    /* that has answered, or is tried */
    bool stopped;           /* it is not wanted any more */
    bool foreign;           /* another user listens there */
    int fd;                 /* of the connection, which goes … */
    struct sockaddr_in6 to; /* … there */
    int status;
    char text[ANSWER_MAX];
    size_t length;
};

/* What is too long to keep is read, and forgotten. */
static size_t on_data(char *data, size_t size, size_t count, void *arg)
{
    struct talk *talk = arg;
    size_t bytes = size * count, room = sizeof(talk->text) - talk->length;
    size_t kept = bytes < room ? bytes : room;

    memcpy(talk->text + talk->length, data, kept);
    talk->length += kept;
    return bytes;
}

static int on_progress(void *arg, curl_off_t down, curl_off_t downed, curl_off_t up,
                       curl_off_t upped)
{
    struct talk *talk = arg;

    (void)down;
    (void)downed;
    (void)up;
    (void)upped;
    talk->stopped = talk->stopped || talk->call->unwanted(talk->call->arg);
    return talk->stopped ? 1 : 0;
}

/* Who answers says that a state is good: that must be nobody else's program. What is another user's
 * is not even connected to. */
static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct talk *talk = arg;
    struct sockaddr_in6 *to = &talk->to;

    (void)purpose;
    *to = (struct sockaddr_in6){0};
    memcpy(to, &address->addr, address->addrlen < sizeof(*to) ? address->addrlen : sizeof(*to));
    talk->foreign = tcp_to_ipv6(to) && tcp_listener_at(to) == TCP_STRANGER;
    talk->fd = talk->foreign
                   ? CURL_SOCKET_BAD
                   : socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    return talk->fd;
}

/* Somebody may have come to listen there since. The kernel knows whose the other end is once it is
 * accepted; before that it belongs to who listens, and has done so all the time. */
static int on_connected(void *arg, char *peer, char *own, int peer_port, int own_port)
{
    struct talk *talk = arg;
    enum tcp_listener listener = tcp_listener_at(&talk->to);
    uid_t uid;

    (void)peer;
    (void)own;
    (void)peer_port;
    (void)own_port;
    talk->foreign = tcp_peer_uid(talk->fd, &uid) ? uid != getuid() : listener != TCP_OURS;
    return talk->foreign ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

static void prepare(CURL *easy, struct talk *talk, bool post)
{
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, talk);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_connected);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, talk);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, talk);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, talk);
    curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    if (post) /* its answer may be the end of the training: within.fit is what bounds it */
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, talk->call->body);
    else
        curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, LOOK_MS);
}

/* One request. talk->status is 0 if there was no whole answer. */
static CURLcode ask_at(struct talk *talk, const char *address, bool post)
{
    bool six = strchr(address, ':') != NULL;
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    CURL *easy = curl_easy_init();
    CURLcode rc = CURLE_OUT_OF_MEMORY;
    long status = 0;
    char *url;

    headers = curl_slist_append(headers, "Expect:");
    talk->status = 0;
    talk->length = 0;
    if (asprintf(&url, "http://%s%s%s:%d%s", six ? "[" : "", address, six ? "]" : "",
                 talk->call->port, talk->call->path) < 0)
        url = NULL;
    if (easy != NULL && url != NULL) {
        prepare(easy, talk, post);
        curl_easy_setopt(easy, CURLOPT_URL, url);
        if (post)
            curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
        rc = curl_easy_perform(easy);
        if (rc == CURLE_OK)
            curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    }
    talk->status = (int)status;
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
    free(url);
    return rc;
}

/* A server listens at one of two addresses: where nobody does, no training has begun. */
static void ask(struct talk *talk, bool post)
{
    const char *other = talk->call->address;

    if (talk->address != NULL) {
        ask_at(talk, talk->address, post);
        return;
    }
    talk->address = "127.0.0.1";
    if (ask_at(talk, talk->address, post) != CURLE_COULDNT_CONNECT || other == NULL ||
        strcmp(other, talk->address) == 0)
        return;
    talk->address = other;
    ask_at(talk, talk->address, post);
}

static void wait_a_while(struct talk *talk)
{
    long long until = monotonic_ms() + (long long)(FIT_CALL_PAUSE * 1000);

    while (!talk->stopped && monotonic_ms() < until) {
        struct timespec time = {.tv_nsec = PAUSE_NS};

        nanosleep(&time, NULL);
        talk->stopped = talk->call->unwanted(talk->call->arg);
    }
}

enum fit_call server_call(const struct server_call *call, struct error *why)
{
    struct talk talk = {.call = call};
    long long answered = monotonic_ms();
    enum fit_call judged;
    bool asked = false;

    for (;;) {
        ask(&talk, !asked);
        if (talk.stopped)
            return FIT_CALL_GOES_ON;
        if (talk.foreign) {
            error_set(why, "another user's program listens on port %d", call->port);
            return FIT_CALL_FAILED;
        }
        if (talk.status > 0)
            answered = monotonic_ms();
        judged = fit_call_judge(asked, talk.status, talk.text, talk.length,
                                (double)(monotonic_ms() - answered) / 1000, why);
        if (judged != FIT_CALL_GOES_ON)
            return judged;
        asked = true;
        wait_a_while(&talk);
        if (talk.stopped)
            return FIT_CALL_GOES_ON;
    }
}
