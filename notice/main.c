/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elastic-notice: is the cloud about to take this node away? Asked once, for the epilog.
 *
 * It runs as root, and knows nothing of jobs: what users say does not count. A program of the site
 * (reclaim_program) is not run, since that is meant to run as the user.
 *
 * An address of the node itself counts only if root listens there: when the site's service is away,
 * any user could listen in its place, and take the node out of service.
 *
 * slurmd waits for it: it ends within LIMIT, and what is not known by then is no notice. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <uv.h>

#include "agent/member/http.h"
#include "common/conf_file.h"
#include "common/local_service.h"
#include "common/stop.h"
#include "lib/notice.h"

#define LIMIT      2.0 /* seconds for all requests */
#define LATE_LIMIT 3   /* seconds after which this process ends in any case */

enum { STATUS_COMES = 0, STATUS_STAYS = 1, STATUS_USAGE = 2 };

static const char help[] =
    "Usage: elastic-notice FILE\n"
    "\n"
    "Asks the service that reclaim in the elastic.conf FILE names whether this node is about to\n"
    "be taken away. The epilog starts it, as root.\n"
    "\n"
    "Exit status: 0 the node is about to be taken away; 1 it is not, or nobody has said so within\n"
    "two seconds; 2 wrong usage, or FILE cannot be read.\n";

struct question {
    uv_loop_t loop;
    uv_timer_t limit;
    struct http *http;
    struct notice known;
    struct local_service service;
    int status;
};

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_REALTIME, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void on_closed(void *arg)
{
    (void)arg;
}

static void end(struct question *q, int status)
{
    q->status = status;
    http_destroy(q->http, on_closed);
    uv_close((uv_handle_t *)&q->limit, NULL);
}

static void ask(struct question *q)
{
    struct notice_request next;
    struct http_request request;
    char *url;

    notice_next(&q->known, now(), &next);
    if (asprintf(&url, "%s%s", next.endpoint, next.path) < 0) {
        end(q, STATUS_STAYS);
        return;
    }
    request = (struct http_request){
        .put = next.put, .url = url, .header = next.header, .timeout = LIMIT};
    if (http_ask(q->http, &request) < 0)
        end(q, STATUS_STAYS);
    free(url);
}

/* Says why not. */
static bool is_trusted(const struct question *q, bool trusted)
{
    if (q->service.of_stranger)
        fprintf(stderr,
                "elastic-notice: a user other than root listens at port %d of this node, which "
                "reclaim names: not asked, not believed\n",
                ntohs(q->service.address.sin6_port));
    return trusted;
}

static bool allows(const struct sockaddr *address, void *arg)
{
    struct question *q = arg;

    return is_trusted(q, local_service_allows(&q->service, address));
}

static void answered(const struct http_answer *given, void *arg)
{
    struct question *q = arg;
    const struct notice_answer answer = {
        .status = given->status, .text = given->text, .length = given->length};
    struct notice_outcome outcome;

    notice_answered(&q->known, now(), &answer, &outcome);
    if (outcome.word[0] != '\0')
        fprintf(stderr, "elastic-notice: %s\n", outcome.word);
    /* It may have gone meanwhile, and another have come. */
    outcome.comes = outcome.comes && is_trusted(q, local_service_is_trusted(&q->service));
    if (outcome.comes || outcome.stays || outcome.pause > 0)
        end(q, outcome.comes ? STATUS_COMES : STATUS_STAYS);
    else
        ask(q); /* that was a token, or a name */
}

static void on_limit(uv_timer_t *timer)
{
    end(timer->data, STATUS_STAYS);
}

static int work(struct conf *conf)
{
    struct question q = {.status = STATUS_STAYS};

    conf->reclaim.advice = CONF_ADVICE_IGNORE;
    if (!notice_is_asked(&conf->reclaim))
        return STATUS_STAYS;
    stop_limit(LATE_LIMIT);
    notice_init(&q.known, &conf->reclaim);
    if (uv_loop_init(&q.loop) != 0)
        return STATUS_STAYS;
    q.http = http_create(&q.loop, NOTICE_ANSWER_MAX, answered, &q);
    if (q.http != NULL) {
        http_limit(q.http, allows);
        uv_timer_init(&q.loop, &q.limit);
        q.limit.data = &q;
        uv_timer_start(&q.limit, on_limit, (uint64_t)(LIMIT * 1000), 0);
        ask(&q);
        uv_run(&q.loop, UV_RUN_DEFAULT);
    }
    uv_loop_close(&q.loop);
    return q.status;
}

int main(int argc, char **argv)
{
    struct error err;
    struct conf *conf;
    int status;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(help, stdout);
        return 0;
    }
    if (argc != 2) {
        fputs("elastic-notice: one file is needed; see elastic-notice --help\n", stderr);
        return STATUS_USAGE;
    }
    conf = conf_file_load(argv[1], &err);
    if (conf == NULL) {
        fprintf(stderr, "elastic-notice: %s\n", err.text);
        return STATUS_USAGE;
    }
    status = work(conf);
    conf_destroy(conf);
    return status;
}
