/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The HTTP interface of a job with roles: what a client sends, as a request.
 *
 * One table has the paths and methods, the parameters and keys that each takes. What is not in it
 * is refused. Pure. */
#ifndef ELASTIC_API_REQUEST_H
#define ELASTIC_API_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include <json-c/json.h>

#include "lib/di_request.h"
#include "lib/error.h"
#include "lib/fit_request.h"
#include "lib/metrics_text.h"
#include "lib/reports.h"
#include "lib/role_needs.h"

#define API_BODY_MAX   (1 << 20) /* bytes */
#define API_ROLE_MAX   40        /* bytes of the name of a role; longer ones are cut */
#define API_NAME_MAX   80        /* … of a replica */
#define API_REASON_MAX 200
#define API_MODEL_MAX  140 /* … of a model */
#define API_KEY_MAX    270

enum api_verb {
    API_HEALTH,    /* is elasticrun-http there? */
    API_METRICS,   /* text for Prometheus */
    API_ROLES,     /* all roles */
    API_ROLE,      /* one of them */
    API_REPLICAS,  /* of a role */
    API_REPLICA,   /* one of them */
    API_SCALE,     /* a role is to have so many replicas */
    API_ADD,       /* … so many more */
    API_REMOVE,    /* a replica goes, and its role is smaller by it */
    API_FAIL,      /* a replica is of no use: it is replaced */
    API_REPORT,    /* what a replica has made lies there (reports.h) */
    API_REPORTS,   /* what they have reported, as soon as there is more */
    API_ENDPOINTS, /* where ready replicas can be reached */
    API_WATCH,     /* everything, as soon as it is of another epoch */
    API_SERVICES,  /* the service of the job, in short */
    API_SHARDS,    /* its shards and models */
    API_APPLY,     /* it looks at its repository */
    API_FLUSH,     /* … and does at once what waits */
    API_REPACK,    /* … so that it needs fewer shards */
    API_HAND_OVER, /* its next job is submitted */
    API_PROGRAM,   /* its shards get another program */
    API_MODELS,    /* its models */
    API_MODEL,     /* one of them */
    API_PLACE,     /* a shard is to have these models, and no others */
    API_PUT_MODEL, /* it is served, in that shard if one is named */
    API_WITHDRAW,  /* it is not served, whatever the repository has */
    API_ROUTES,    /* the keys of its models, and where their requests go */
    API_ROUTE,     /* one of them */
    API_DI,        /* of a client of DI-orchestrator (di_request.h) */
    API_FIT,       /* trainings of the service (fit_request.h) */
};

/* What has come in. Texts that the client has not sent are NULL. */
struct api_input {
    const char *method;
    const char *target;   /* as it came: "/v1/roles?x=1" */
    const char *host;     /* header Host */
    const char *origin;   /* header Origin: a web page has made the client send it */
    const char *if_match; /* header If-Match */
    const char *accept;   /* header Accept */
    const char *id;       /* of 1 to REPORT_ID_MAX - 1 bytes, which no other request has */
    bool tcp;             /* it has come by TCP: a browser may have sent it */
    const char *body;
    size_t body_size;
};

struct api_request {
    enum api_verb verb;
    char role[API_ROLE_MAX];    /* "": all */
    char replica[API_NAME_MAX]; /* "": none is named */
    char model[API_MODEL_MAX];  /* of a service: its name … */
    char key[API_KEY_MAX];      /* … or what its requests carry */
    int count;               /* of SCALE and ADD; of PUT_MODEL: a shard, 0: whichever; of PLACE */
    struct role_needs needs; /* of ADD: those of the new replicas */
    int epoch;               /* of If-Match, or `after` of WATCH and REPORTS; -1: any */
    enum metrics_format format; /* of METRICS */
    char reason[API_REASON_MAX];
    char id[REPORT_ID_MAX]; /* of REPORT */
    /* Of REPORT: JSON, as report_read() writes it. Of PLACE: an array of names, or of keys. Of
     * PROGRAM: a command, an array. */
    char report[REPORT_MAX + 1];
    bool keys;               /* … it has keys */
    struct di_request *di;   /* of DI: api_call_create() takes it over */
    struct fit_request *fit; /* of FIT: for fit_request_destroy() */
};

/* An answer to the client. */
struct api_reply {
    int status;        /* of HTTP */
    json_object *body; /* {"success", "code", "message", "data"} */
    /* In place of body: of HEALTH, and of METRICS, which lacks metrics_end(). NULL: none. */
    char *text;
    enum metrics_format format; /* of it */
    char allow[40];             /* with status 405: header Allow */
    int epoch;                  /* header ETag; -1: none */
};

/* Read a request. -1 with reply, if nobody has to be asked to refuse it. */
int api_request_read(const struct api_input *input, struct api_request *request,
                     struct api_reply *reply);

/* Does it wait for news, for as long as it may? */
bool api_request_watches(const struct api_request *request);
/* Does it tell the service to do something, which it may be told again? */
bool api_request_orders(const struct api_request *request);
/* Does it change the job? */
bool api_request_changes(const struct api_request *request);

/* A refusal with that status, or a success with status 200: data is taken over, NULL: null. */
void api_reply_set(struct api_reply *reply, int status, json_object *data, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void api_reply_clear(struct api_reply *reply);

/* Does a header Host name this machine, by a name that no foreign name server answers for? */
bool api_request_is_loopback(const char *host);

/* Is a header Origin that of a page from elsewhere than the header Host? NULL: there is none. */
bool api_request_is_foreign(const char *host, const char *origin);

#endif
