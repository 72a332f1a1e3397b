/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Notices of clouds that take a node away: what their metadata services are asked, and what the
 * answers mean.
 *
 * Advice to replace a node is asked for as well, where conf says so. It is no notice: the cloud may
 * leave the node there, and says nothing of when it will be taken.
 *
 * Pure: notice_next() says what to ask, notice_answered() takes the answer. Times are seconds since
 * 1970, because services name the moment.
 *
 * Sources: AWS spot-instance-termination-notices, rebalance-recommendations and IMDSv2; GCP
 * create-use-spot and gpu-host-maintenance; Azure scheduled events 2020-07-01; Alibaba Cloud
 * create-a-preemptible-instance; Tencent Cloud 213/32487. */
#ifndef ELASTIC_NOTICE_H
#define ELASTIC_NOTICE_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/conf.h"

/* Bytes. An answer that is longer is none: status 0. */
#define NOTICE_ANSWER_MAX 65536

struct notice_request {
    bool put; /* else GET */
    /* The address is both, one after the other. They live until the next answer. */
    const char *endpoint, *path;
    const char *header; /* "NAME: VALUE"; NULL: none */
    double timeout;     /* seconds for all of it */
};

struct notice_answer {
    int status; /* of HTTP; 0: there was no answer */
    const char *text;
    size_t length;
    const char *etag; /* NULL: none */
};

/* What is known of a service; to be set up with notice_init(). */
struct notice {
    const struct conf_reclaim *conf;
    char token[512]; /* a header line; "": none */
    double token_ends;
    bool renews; /* the last answer has refused a token */
    bool asked;  /* the service has answered once */
    char name[256], etag[64], path[512];
    double polled; /* since when the service may wait with its answer; < 0: it may not */
    int silent;    /* requests in a row without an answer */
    bool told;     /* that the service is of no use */
    struct {
        bool turn; /* the next request asks for it */
        bool over; /* it has been given, or never will be */
    } advice;
};

struct notice_outcome {
    bool comes;     /* the node will be taken away */
    double left;    /* … in so many seconds; < 0: not known */
    bool stays;     /* the service has just said that nobody takes the node */
    bool advised;   /* the node had better be replaced. Said once */
    double pause;   /* seconds until the next request */
    char word[320]; /* for the log: the service is of no use. Said once; "": nothing to say */
    bool of_advice; /* … for advice */
};

/* Does conf name a service? Else there is nothing to ask. */
bool notice_is_asked(const struct conf_reclaim *conf);

/* conf must outlive the notice. */
void notice_init(struct notice *notice, const struct conf_reclaim *conf);
void notice_next(struct notice *notice, double now, struct notice_request *request);
void notice_answered(struct notice *notice, double now, const struct notice_answer *answer,
                     struct notice_outcome *outcome);

/* The word for where a notice has come from, for the log. */
const char *notice_source(const struct conf_reclaim *conf);

/* A moment as services write it: "2026-11-22T08:22:00Z" (with a fraction or without), "Mon, 19 Sep
 * 2016 18:29:47 GMT", or "2018-08-18 12:05:33" in Tencent's time zone, which is UTC+8. */
bool notice_time(const char *text, double *when);

#endif
