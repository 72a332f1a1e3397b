/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests of a program for more or fewer nodes (PMIx_Allocation_request). Pure.
 *
 * A request is accepted or refused at once. An accepted request ends later, exactly once, as done,
 * failed or cancelled. Requests are carried out in the order in which they came. A release that is
 * asked for while the job grows waits until the growth has ended, well or not, and is then judged
 * by the nodes of that moment. Requests to grow that follow each other are carried out together. */
#ifndef ELASTIC_REQUESTS_H
#define ELASTIC_REQUESTS_H

#include <stdbool.h>

#include "lib/error.h"
#include "lib/sizes.h"

#define REQUESTS_MAX      32 /* requests that have not ended: correct programs stay below this */
#define REQUEST_LABEL_MAX 64
#define REQUEST_NODES_MAX 256 /* names in one release */
/* grants that are remembered, for programs that give back what they got */
#define REQUEST_GRANTS 64

enum request_kind { REQUEST_EXTEND, REQUEST_RELEASE };
enum request_state { REQUEST_PENDING, REQUEST_DONE, REQUEST_FAILED, REQUEST_CANCELLED };
enum request_refusal { REQUEST_BAD = -1, REQUEST_NOT_AVAILABLE = -2, REQUEST_NOT_FOUND = -3 };

struct request {
    int number; /* counted from 1 */
    enum request_kind kind;
    enum request_state state;
    char label[REQUEST_LABEL_MAX]; /* the program's name for it, "" if it has none */
    int rank;                      /* of the process that has asked */
    int change;                    /* nodes more, or less */
    int goal;                      /* nodes of the job when the request is done; 0: not begun */
    char **nodes;                  /* a release by name: NULL-terminated; NULL: whichever */
    double expires;                /* the request fails if it is not done by then; 0: never */
    char why[200];                 /* why the request has failed */
};

/* The job at this moment. */
struct request_situation {
    const struct sizes *sizes;
    int base_nodes;
    int size;     /* nodes of the world; 0: there is none */
    bool settled; /* the world runs, and no change is under way */
    /* The nodes that Slurm counts for the job, with those that leave; NULL-terminated. */
    char *const *held;
    const char *deaf; /* why the job cannot grow at all; NULL: it can */
};

struct requests;

struct requests *requests_create(void);
void requests_destroy(struct requests *requests);

/* The contents of a request. Strings are copied. */
struct request_wish {
    int rank;
    /* NULL: none. Two requests that have not ended cannot have the same label */
    const char *label;
    int nodes;          /* number of nodes; with names: the number of names */
    char *const *names; /* NULL-terminated; NULL: whichever */
    double expires;
};

/* Accept the request: its number is returned. Or refuse it: a value of enum request_refusal is
 * returned, and the reason is in err. */
int requests_extend(struct requests *requests, const struct request_situation *now,
                    const struct request_wish *wish, struct error *err);
int requests_release(struct requests *requests, const struct request_situation *now,
                     const struct request_wish *wish, struct error *err);

/* Cancel by number, or by label if number is 0. Returns 0, or REQUEST_NOT_FOUND with the reason in
 * err. */
int requests_cancel(struct requests *requests, int number, const char *label, struct error *err);

/* The number of nodes that the request of that number has brought. 0: none, or the program has
 * already given them back by this number, or the request is too old. The nodes count as given back
 * after this call. */
int requests_take_grant(struct requests *requests, int number);

/* Is there no request that has not been taken by requests_ended()? */
bool requests_empty(const struct requests *requests);

/* The request that is being carried out, NULL: none. The job should have ->goal nodes (for a
 * request to grow: at least). For a release by name: it should not have the named nodes. */
const struct request *requests_current(const struct requests *requests);

/* Slurm has refused to let the job grow, or has ended the growth: all present requests to grow
 * fail. */
void requests_growth_failed(struct requests *requests, const char *why);
/* The job ends. */
void requests_fail_all(struct requests *requests, const char *why);
/* End the requests that are done or have expired, and begin the next. Returns when to look again at
 * the latest (on the clock of `time`), 0: no need. */
double requests_update(struct requests *requests, const struct request_situation *now, double time);

/* The next request that has ended, so that its program can be told. The caller frees it
 * (request_free). NULL: none. */
struct request *requests_ended(struct requests *requests);
void request_free(struct request *request);

#endif
