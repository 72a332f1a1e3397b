/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One request after the other over HTTP, in the loop, by libcurl's multi interface.
 *
 * No redirection, and bounds on time and size. For services of the node itself, and so without a
 * proxy, but for requests that are `far`. */
#ifndef ELASTIC_AGENT_MEMBER_HTTP_H
#define ELASTIC_AGENT_MEMBER_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include <uv.h>

struct http;

struct http_request {
    bool put;         /* without a body; else GET */
    const char *post; /* POST of this JSON, which lives until the answer; NULL: none */
    const char *url;
    const char *header; /* "NAME: VALUE"; NULL: none */
    bool far;           /* elsewhere: by the proxies of the environment, and not at once */
    double timeout;     /* seconds for all of it */
    /* The answer ends with its head, however long it is, and so does the connection: a server that
     * serves one after the other is free for others. */
    bool status_only;
};

struct http_answer {
    int status; /* 0: there was no whole answer within the bounds */
    const char *text;
    size_t length;
    const char *etag; /* NULL: none */
};

/* answered() is called from the loop, once for each request. There it may ask anew, or destroy. An
 * answer has at most answer_max bytes. NULL: out of memory, or libcurl cannot be loaded, which is
 * said. */
struct http *http_create(uv_loop_t *loop, size_t answer_max,
                         void (*answered)(const struct http_answer *answer, void *arg), void *arg);

/* While no other request is under way. -1: out of memory; then there is no answer. */
int http_ask(struct http *http, const struct http_request *request);

/* From now on connections are made only to addresses for which allows(address, arg) is true. arg is
 * that of http_create(). */
void http_limit(struct http *http, bool (*allows)(const struct sockaddr *address, void *arg));

/* Without an answer to what is under way. closed(arg) is called from the loop when nothing is left
 * there, and the memory is freed. */
void http_destroy(struct http *http, void (*closed)(void *arg));

#endif
