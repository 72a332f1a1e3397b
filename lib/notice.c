/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Notices of clouds that take a node away (notice.h). */
#include "lib/notice.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/number.h"
#include "lib/text.h"

#define ANSWER_LIMIT  3.0   /* seconds */
#define SLOW_LIMIT    125.0 /* Azure: the first request starts the service, in up to two minutes */
#define LONG_POLL     60    /* GCP answers after that time if nothing changes */
#define LEAST_POLL    1.0   /* one that has answered sooner with nothing new does not wait */
#define TOKEN_SECONDS 21600 /* the longest that AWS and Alibaba give */
#define TEXT_OF(n)    #n
#define SECONDS_OF(n) TEXT_OF(n)
#define TOKEN_MARGIN  60.0    /* a token is renewed so long before its end */
#define PAUSE         5.0     /* between two requests */
#define SILENT_MAX    3       /* requests without an answer before a word is said */
#define FAR_AWAY      86400.0 /* a node works on until a moment that is further away */
#define STALE         3600.0  /* a machine that is there so long after its end was started again */
#define ADVICE_LIFE   86400.0 /* what was likely soon so long ago is as likely as for other nodes */
#define TOKEN_PATH    "/latest/api/token"
#define AZURE_NAME    "/metadata/instance/compute/name?api-version=2021-02-01&format=text"

enum verdict {
    QUIET,   /* the node stays */
    COMES,   /* it goes */
    TOKEN,   /* a token is missing, or too old */
    REFUSED, /* the service does not tell */
    UNCLEAR, /* an answer that is none */
    SILENT,  /* no answer, or one that will be another one soon */
};

struct reading {
    enum verdict verdict;
    double left; /* < 0: the service does not say when */
};

struct service {
    const char *name, *endpoint, *path, *header;
    const char *token_ttl, *token_header; /* NULL: it wants no token */
    double lead;                          /* seconds from a notice to the end, if all goes well */
    double pause;
    bool none_is_404;
    struct reading (*read)(const struct notice *notice, const char *text, size_t length,
                           double now);
    /* NULL: it gives no advice. */
    const char *advice_path;
    struct reading (*read_advice)(const char *text, size_t length, double now);
};

/* ---- moments --------------------------------------------------------------------------------- */

/* Fields of a date by a pattern, in which each letter stands for a digit of its field. Other
 * characters stand for themselves. */
static bool read_fields(const char *text, const char *pattern, struct tm *fields)
{
    const struct {
        char letter;
        int *field, min, max;
    } table[] = {{'Y', &fields->tm_year, 1970, 9999}, {'M', &fields->tm_mon, 1, 12},
                 {'D', &fields->tm_mday, 1, 31},      {'h', &fields->tm_hour, 0, 23},
                 {'m', &fields->tm_min, 0, 59},       {'s', &fields->tm_sec, 0, 60}};
    size_t length = strlen(pattern), run;

    if (strnlen(text, length) < length)
        return false;
    for (size_t i = 0; i < length; i += run) {
        size_t k = 0;

        run = strspn(pattern + i, (char[]){pattern[i], '\0'});
        while (k < sizeof(table) / sizeof(table[0]) && table[k].letter != pattern[i])
            k++;
        if (k == sizeof(table) / sizeof(table[0])) {
            if (strncmp(text + i, pattern + i, run) != 0)
                return false;
        } else if (number_parse(text + i, run, table[k].min, table[k].max, table[k].field) < 0) {
            return false;
        }
    }
    return true;
}

static bool read_month(const char *text, int *month)
{
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

    for (int i = 0; i < 12; i++) {
        if (strncmp(text, names + (size_t)3 * (size_t)i, 3) == 0) {
            *month = i + 1;
            return true;
        }
    }
    return false;
}

bool notice_time(const char *text, double *when)
{
    struct tm fields = {0};
    double east = 0; /* seconds */
    size_t length = strlen(text);

    if (read_fields(text, "YYYY-MM-DDThh:mm:ss", &fields)) {
        const char *rest = text + strlen("YYYY-MM-DDThh:mm:ss");

        if (*rest == '.')
            rest += 1 + strspn(rest + 1, "0123456789");
        if (strcmp(rest, "Z") != 0)
            return false;
    } else if (length == 19 && read_fields(text, "YYYY-MM-DD hh:mm:ss", &fields)) {
        east = 8 * 3600;
    } else if (length != 29 || strcmp(text + 25, " GMT") != 0 || text[3] != ',' ||
               !read_fields(text + 5, "DD ", &fields) || !read_month(text + 8, &fields.tm_mon) ||
               !read_fields(text + 11, " YYYY hh:mm:ss", &fields)) {
        return false;
    }
    fields.tm_year -= 1900;
    fields.tm_mon--;
    *when = (double)timegm(&fields) - east;
    return true;
}

/* A notice for that moment, where the text tells one. A moment that has just passed is now. One
 * that is far away will be a notice when it is near. (No clock is wrong by so much: munge, and so
 * Slurm, bears five minutes.) */
static struct reading comes_at(const char *text, double now)
{
    double when;

    if (text == NULL || !notice_time(text, &when))
        return (struct reading){COMES, -1};
    if (when < now - STALE || when > now + FAR_AWAY)
        return (struct reading){QUIET, -1};
    return (struct reading){COMES, when > now ? when - now : 0};
}

/* ---- answers --------------------------------------------------------------------------------- */

/* The text without blanks around it, as a string; NULL if it does not fit or contains NUL. */
static const char *word_of(const char *text, size_t length, char *buf, size_t size)
{
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        length--;
    while (length > 0 && isspace((unsigned char)*text)) {
        text++;
        length--;
    }
    if (length >= size || memchr(text, '\0', length) != NULL)
        return NULL;
    memcpy(buf, text, length);
    buf[length] = '\0';
    return buf;
}

/* {"action": "terminate", "time": "2026-11-22T08:22:00Z"} */
static struct reading read_aws(const struct notice *notice, const char *text, size_t length,
                               double now)
{
    json_object *object = json_text_parse(text, length, NULL);
    const char *action = object != NULL ? json_get_string(object, "action") : NULL;
    struct reading reading = {UNCLEAR, -1};

    (void)notice;
    if (action != NULL && strcmp(action, "hibernate") == 0)
        reading = (struct reading){COMES, 0}; /* it has begun */
    else if (action != NULL && (strcmp(action, "terminate") == 0 || strcmp(action, "stop") == 0))
        reading = comes_at(json_get_string(object, "time"), now);
    json_object_put(object);
    return reading;
}

static struct reading read_gcp(const struct notice *notice, const char *text, size_t length,
                               double now)
{
    char buf[8];
    const char *word = word_of(text, length, buf, sizeof(buf));

    (void)notice;
    (void)now;
    if (word != NULL && strcmp(word, "FALSE") == 0)
        return (struct reading){QUIET, -1};
    return (struct reading){word != NULL && strcmp(word, "TRUE") == 0 ? COMES : UNCLEAR, -1};
}

static bool is_named(json_object *event, const char *name)
{
    json_object *list;

    if (!json_object_object_get_ex(event, "Resources", &list) ||
        !json_object_is_type(list, json_type_array))
        return false;
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *resource = json_object_array_get_idx(list, i);

        if (json_object_is_type(resource, json_type_string) &&
            strcasecmp(json_object_get_string(resource), name) == 0)
            return true;
    }
    return false;
}

/* Freeze is over in seconds, the other events take the node. */
static bool takes_the_node(json_object *event)
{
    static const char *const types[] = {"Preempt", "Terminate", "Reboot", "Redeploy"};
    const char *type = json_get_string(event, "EventType"),
               *status = json_get_string(event, "EventStatus");

    if (type == NULL ||
        (status != NULL && strcmp(status, "Scheduled") != 0 && strcmp(status, "Started") != 0))
        return false;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(type, types[i]) == 0)
            return true;
    return false;
}

/* Events of all machines of a scale set. NotBefore is empty when an event has begun. */
static struct reading read_azure(const struct notice *notice, const char *text, size_t length,
                                 double now)
{
    json_object *object = json_text_parse(text, length, NULL), *events;
    struct reading first = {UNCLEAR, -1};

    if (object != NULL && json_object_object_get_ex(object, "Events", &events) &&
        json_object_is_type(events, json_type_array)) {
        first.verdict = QUIET;
        for (size_t i = 0; i < json_object_array_length(events); i++) {
            json_object *event = json_object_array_get_idx(events, i);
            const char *when;
            struct reading reading;

            if (!json_object_is_type(event, json_type_object) || !takes_the_node(event) ||
                !is_named(event, notice->name))
                continue;
            when = json_get_string(event, "NotBefore");
            reading = comes_at(when, now);
            if (when != NULL && when[0] == '\0')
                reading.left = 0;
            if (reading.verdict != COMES)
                continue;
            if (first.verdict != COMES || (reading.left >= 0 && reading.left < first.left) ||
                first.left < 0)
                first = reading;
        }
    }
    json_object_put(object);
    return first;
}

/* Only the moment. */
static struct reading read_moment(const struct notice *notice, const char *text, size_t length,
                                  double now)
{
    char buf[64];
    const char *word = word_of(text, length, buf, sizeof(buf));
    double when;

    (void)notice;
    if (word == NULL || !notice_time(word, &when))
        return (struct reading){UNCLEAR, -1};
    return comes_at(word, now);
}

static struct reading read_site(const struct notice *notice, const char *text, size_t length,
                                double now)
{
    const char *wanted = notice->conf->answer;

    (void)now;
    return (struct reading){
        wanted == NULL || memmem(text, length, wanted, strlen(wanted)) != NULL ? COMES : QUIET, -1};
}

/* ---- advice ---------------------------------------------------------------------------------- */

/* {"noticeTime": "2026-11-22T08:22:00Z"}: when the advice was given. */
static struct reading advice_of_aws(const char *text, size_t length, double now)
{
    json_object *object = json_text_parse(text, length, NULL);
    const char *moment = object != NULL ? json_get_string(object, "noticeTime") : NULL;
    struct reading reading = {UNCLEAR, -1};
    double when;

    if (moment != NULL && notice_time(moment, &when) && when <= now + FAR_AWAY)
        reading.verdict = when >= now - ADVICE_LIFE ? COMES : QUIET;
    json_object_put(object);
    return reading;
}

/* Machines with GPUs cannot be moved: they are stopped, about an hour after this answer. That is no
 * notice: the service names no moment, and a node that is left at once would stand idle so long. */
static struct reading advice_of_gcp(const char *text, size_t length, double now)
{
    char buf[64];
    const char *word = word_of(text, length, buf, sizeof(buf));

    (void)now;
    if (word == NULL)
        return (struct reading){UNCLEAR, -1};
    if (strcmp(word, "NONE") == 0 || strcmp(word, "MIGRATE_ON_HOST_MAINTENANCE") == 0)
        return (struct reading){QUIET, -1};
    return (struct reading){strcmp(word, "TERMINATE_ON_HOST_MAINTENANCE") == 0 ? COMES : UNCLEAR,
                            -1};
}

/* ---- services -------------------------------------------------------------------------------- */

static const struct service services[] = {
    /* An address of the site. */
    [CONF_CLOUD_NONE] =
        {.name = "reclaim_url", .lead = -1, .pause = PAUSE, .none_is_404 = true, .read = read_site},
    [CONF_CLOUD_AWS] = {.name = "aws",
                        .endpoint = "http://169.254.169.254",
                        .path = "/latest/meta-data/spot/instance-action",
                        .token_ttl = "X-aws-ec2-metadata-token-ttl-seconds: " SECONDS_OF(
                            TOKEN_SECONDS),
                        .token_header = "X-aws-ec2-metadata-token",
                        .lead = 120,
                        .pause = PAUSE,
                        .none_is_404 = true,
                        .read = read_aws,
                        .advice_path = "/latest/meta-data/events/recommendations/rebalance",
                        .read_advice = advice_of_aws},
    [CONF_CLOUD_GCP] = {.name = "gcp",
                        .endpoint = "http://169.254.169.254",
                        .path = "/computeMetadata/v1/instance/preempted",
                        .header = "Metadata-Flavor: Google",
                        .lead = 30,
                        .pause = 1,
                        .read = read_gcp,
                        .advice_path = "/computeMetadata/v1/instance/maintenance-event",
                        .read_advice = advice_of_gcp},
    [CONF_CLOUD_AZURE] = {.name = "azure",
                          .endpoint = "http://169.254.169.254",
                          .path = "/metadata/scheduledevents?api-version=2020-07-01",
                          .header = "Metadata: true",
                          .lead = 30,
                          .pause = 1,
                          .read = read_azure},
    [CONF_CLOUD_ALIBABA] = {.name = "alibaba",
                            .endpoint = "http://100.100.100.200",
                            .path = "/latest/meta-data/instance/spot/termination-time",
                            .token_ttl = "X-aliyun-ecs-metadata-token-ttl-seconds: " SECONDS_OF(
                                TOKEN_SECONDS),
                            .token_header = "X-aliyun-ecs-metadata-token",
                            .lead = 300,
                            .pause = PAUSE,
                            .none_is_404 = true,
                            .read = read_moment},
    [CONF_CLOUD_TENCENT] = {.name = "tencent",
                            .endpoint = "http://metadata.tencentyun.com",
                            .path = "/latest/meta-data/spot/termination-time",
                            .lead = 120,
                            .pause = PAUSE,
                            .none_is_404 = true,
                            .read = read_moment},
};

static const struct service *service_of(const struct conf_reclaim *conf)
{
    return &services[conf->cloud];
}

const char *notice_source(const struct conf_reclaim *conf)
{
    return service_of(conf)->name;
}

bool notice_is_asked(const struct conf_reclaim *conf)
{
    return conf->cloud != CONF_CLOUD_NONE || conf->url != NULL;
}

void notice_init(struct notice *notice, const struct conf_reclaim *conf)
{
    *notice = (struct notice){.conf = conf};
}

static bool wants_token(const struct notice *notice)
{
    return service_of(notice->conf)->token_ttl != NULL && notice->token[0] == '\0';
}

static bool wants_name(const struct notice *notice)
{
    return notice->conf->cloud == CONF_CLOUD_AZURE && notice->name[0] == '\0';
}

static bool wants_advice(const struct notice *notice)
{
    return notice->advice.turn && !wants_token(notice) && !wants_name(notice);
}

void notice_next(struct notice *notice, double now, struct notice_request *request)
{
    const struct conf_reclaim *conf = notice->conf;
    const struct service *service = service_of(conf);

    if (now >= notice->token_ends - TOKEN_MARGIN)
        notice->token[0] = '\0';
    notice->polled = -1;
    *request = (struct notice_request){
        .endpoint = conf->endpoint != NULL ? conf->endpoint : service->endpoint,
        .path = service->path,
        .header = service->header,
        .timeout = ANSWER_LIMIT,
    };
    if (conf->cloud == CONF_CLOUD_NONE) {
        request->endpoint = conf->url;
        request->path = "";
        request->header = conf->header;
    } else if (wants_token(notice)) {
        request->put = true;
        request->path = TOKEN_PATH;
        request->header = service->token_ttl;
    } else if (wants_name(notice)) {
        request->path = AZURE_NAME;
    } else if (wants_advice(notice)) {
        request->path = service->advice_path;
        request->header = service->token_ttl != NULL ? notice->token : service->header;
    } else if (service->token_ttl != NULL) {
        request->header = notice->token;
    } else if (conf->cloud == CONF_CLOUD_AZURE && !notice->asked) {
        request->timeout = SLOW_LIMIT;
    } else if (notice->etag[0] != '\0') {
        /* It answers at once if anything has changed since that answer. */
        snprintf(notice->path, sizeof(notice->path),
                 "%s?wait_for_change=true&timeout_sec=%d&last_etag=%s", service->path, LONG_POLL,
                 notice->etag);
        request->path = notice->path;
        notice->polled = now;
        request->timeout = LONG_POLL + ANSWER_LIMIT;
    }
}

/* A word that may stand in a header or an address. */
static bool is_plain(const char *word)
{
    for (const char *at = word; *at != '\0'; at++)
        if (!isgraph((unsigned char)*at) || strchr("&?#%\"<>\\", *at) != NULL)
            return false;
    return word[0] != '\0';
}

static struct reading keep_token(struct notice *notice, double now, const char *word)
{
    if (word == NULL || !is_plain(word))
        return (struct reading){UNCLEAR, -1};
    snprintf(notice->token, sizeof(notice->token), "%s: %s", service_of(notice->conf)->token_header,
             word);
    notice->token_ends = now + TOKEN_SECONDS;
    return (struct reading){QUIET, -1};
}

static struct reading keep_name(struct notice *notice, const char *word)
{
    if (word == NULL || word[0] == '\0')
        return (struct reading){UNCLEAR, -1};
    snprintf(notice->name, sizeof(notice->name), "%s", word);
    return (struct reading){QUIET, -1};
}

static void keep_etag(struct notice *notice, const char *etag)
{
    notice->etag[0] = '\0';
    if (notice->conf->cloud == CONF_CLOUD_GCP && etag != NULL && is_plain(etag) &&
        strlen(etag) < sizeof(notice->etag))
        snprintf(notice->etag, sizeof(notice->etag), "%s", etag);
}

static struct reading read_status(const struct notice *notice, int status)
{
    const struct service *service = service_of(notice->conf);
    bool token = service->token_ttl != NULL && !wants_token(notice);

    if (status == 404 && service->none_is_404 && !wants_token(notice))
        return (struct reading){QUIET, -1};
    if (token && !notice->renews && (status == 401 || status == 403))
        return (struct reading){TOKEN, -1};
    if (status >= 300 && status < 500 && status != 408 && status != 410 && status != 429)
        return (struct reading){REFUSED, -1};
    return (struct reading){SILENT, -1};
}

static struct reading read_answer(struct notice *notice, double now,
                                  const struct notice_answer *answer)
{
    const struct service *service = service_of(notice->conf);
    char buf[200]; /* longer than any name of a machine, or token */

    if (answer->status != 200)
        return read_status(notice, answer->status);
    if (wants_token(notice))
        return keep_token(notice, now, word_of(answer->text, answer->length, buf, sizeof(buf)));
    if (wants_name(notice))
        return keep_name(notice, word_of(answer->text, answer->length, buf, sizeof(buf)));
    if (wants_advice(notice))
        return service->read_advice(answer->text, answer->length, now);
    notice->asked = true;
    keep_etag(notice, answer->etag);
    return service->read(notice, answer->text, answer->length, now);
}

static void say_once(struct notice *notice, enum verdict verdict, int status, bool of_advice,
                     struct notice_outcome *outcome)
{
    const struct service *service = service_of(notice->conf);
    const char *address = notice->conf->cloud == CONF_CLOUD_NONE ? notice->conf->url
                          : notice->conf->endpoint != NULL       ? notice->conf->endpoint
                                                                 : service->endpoint;
    char *word = outcome->word;
    const size_t size = sizeof(outcome->word);

    notice->silent = verdict == SILENT ? notice->silent + 1 : 0;
    if ((notice->told && !of_advice) || verdict == QUIET || verdict == COMES || verdict == TOKEN ||
        (verdict == SILENT && (notice->told || notice->silent < SILENT_MAX)))
        return;
    of_advice = of_advice && verdict != SILENT; /* it does not answer at all */
    notice->told = notice->told || !of_advice;
    outcome->of_advice = of_advice;
    text_append(word, size, "%s",
                of_advice ? "nobody will advise to replace this node (reclaim_advice): "
                          : "nobody will say when this node is taken away (reclaim): ");
    if (verdict == REFUSED)
        text_append(word, size, "%s at %s refuses, with HTTP status %d", service->name,
                    error_value(address).text, status);
    else if (verdict == UNCLEAR)
        text_append(word, size, "what %s answers at %s is not understood", service->name,
                    error_value(address).text);
    else
        text_append(word, size, "%s does not answer at %s", service->name,
                    error_value(address).text);
}

/* The pause after a question that was answered in order. */
static double pause_of(const struct notice *notice, double now)
{
    bool waits = notice->polled < 0 || now >= notice->polled + LEAST_POLL;

    return notice->etag[0] != '\0' && waits ? 0 : service_of(notice->conf)->pause;
}

static void advice_answered(struct notice *notice, double now, enum verdict verdict,
                            struct notice_outcome *outcome)
{
    outcome->advised = verdict == COMES;
    notice->advice.over = verdict == COMES || verdict == REFUSED || verdict == UNCLEAR;
    notice->advice.turn = verdict == TOKEN;
    outcome->pause = verdict == TOKEN ? 0 : verdict == SILENT ? PAUSE : pause_of(notice, now);
}

/* Advice is asked for after each answer that is no notice. */
static void question_answered(struct notice *notice, double now, const struct reading *reading,
                              struct notice_outcome *outcome)
{
    const struct service *service = service_of(notice->conf);

    outcome->comes = reading->verdict == COMES;
    outcome->stays = reading->verdict == QUIET;
    if (outcome->comes)
        outcome->left = reading->left >= 0 ? reading->left : service->lead;
    if (!outcome->stays) {
        notice->etag[0] = '\0';
        return;
    }
    notice->advice.turn = notice->conf->advice == CONF_ADVICE_REPLACE && !notice->advice.over &&
                          service->read_advice != NULL;
    outcome->pause = notice->advice.turn ? 0 : pause_of(notice, now);
}

void notice_answered(struct notice *notice, double now, const struct notice_answer *answer,
                     struct notice_outcome *outcome)
{
    bool asks_for_more = wants_token(notice) || wants_name(notice), advice = wants_advice(notice);
    struct reading reading = read_answer(notice, now, answer);

    *outcome = (struct notice_outcome){.left = -1, .pause = PAUSE};
    say_once(notice, reading.verdict, answer->status, advice, outcome);
    if (asks_for_more)
        outcome->pause = reading.verdict == QUIET ? 0 : PAUSE;
    else if (advice)
        advice_answered(notice, now, reading.verdict, outcome);
    else
        question_answered(notice, now, &reading, outcome);
    if (reading.verdict == TOKEN) {
        notice->token[0] = '\0';
        outcome->pause = 0;
    }
    if (!asks_for_more)
        notice->renews = reading.verdict == TOKEN;
}
