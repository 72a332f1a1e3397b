/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a program asks for: more nodes, or to be rid of some (PMIx_Allocation_request). Pure.
 *
 * A request is accepted or refused at once; an accepted one ends later, exactly once, as done, failed or cancelled. They are
 * carried out in the order in which they came: a release that is asked for while the job grows waits until growth has
 * ended, well or not, and is then judged by what there is. Requests to grow that follow each other are carried out together. */
#ifndef ELASTIC_REQUESTS_H
#define ELASTIC_REQUESTS_H

#include <stdbool.h>

#include "lib/error.h"
#include "lib/sizes.h"

#define REQUESTS_MAX      32 /* that have not ended: more is no program that means well */
#define REQUEST_LABEL_MAX 64
#define REQUEST_NODES_MAX 256 /* names in one release */
#define REQUEST_GRANTS    64  /* that are remembered, for who gives back what it got */

enum request_kind { REQUEST_EXTEND, REQUEST_RELEASE };
enum request_state { REQUEST_PENDING, REQUEST_DONE, REQUEST_FAILED, REQUEST_CANCELLED };
enum request_refusal { REQUEST_BAD = -1, REQUEST_NOT_AVAILABLE = -2, REQUEST_NOT_FOUND = -3 };

struct request {
    int number; /* counted from 1 */
    enum request_kind kind;
    enum request_state state;
    char label[REQUEST_LABEL_MAX]; /* the program's name for it, "" if it has none */
    int rank;                      /* who asked */
    int change;                    /* nodes more, or less */
    int goal;                      /* nodes of the job when it is done; 0: not begun */
    char **nodes;                  /* a release by name: NULL-terminated; NULL: whichever */
    double expires;                /* fails if it is not done by then; 0: never */
    char why[200];                 /* it has failed */
};

/* The job at this moment. */
struct request_situation {
    const struct sizes *sizes;
    int base_nodes;
    int size;     /* nodes of the world; 0: there is none */
    bool settled; /* the world runs, and no change is under way */
    char *const
        *held; /* nodes that Slurm counts for the job, those that leave included; NULL-terminated */
    const char *deaf; /* why the job cannot grow at all; NULL: it can */
};

struct requests;

struct requests *requests_create(void);
void requests_destroy(struct requests *requests);

/* What is asked for. Strings are copied. */
struct request_wish {
    int rank;
    const char *label;  /* NULL: none; one that has not ended must have another */
    int nodes;          /* how many; with names: as many as these */
    char *const *names; /* NULL-terminated; NULL: whichever */
    double expires;
};

/* Accept: the number of the request. Or refuse: one of enum request_refusal, and why in err. */
int requests_extend(struct requests *requests, const struct request_situation *now,
                    const struct request_wish *wish, struct error *err);
int requests_release(struct requests *requests, const struct request_situation *now,
                     const struct request_wish *wish, struct error *err);

/* Cancel by number, or by label if number is 0. 0; REQUEST_NOT_FOUND, and why in err. */
int requests_cancel(struct requests *requests, int number, const char *label, struct error *err);

/* How many nodes the request of that number has brought, 0: none, or they have been given back by it, or that is long ago. Once it has been
 * asked, it is given back. */
int requests_take_grant(struct requests *requests, int number);

/* Is there none that has not been taken by requests_ended()? */
bool requests_empty(const struct requests *requests);

/* What is being carried out, NULL: nothing. The job should have ->goal nodes (a request to grow: at least); a release by name: without these. */
const struct request *requests_current(const struct requests *requests);

/* Slurm has refused to let the job grow, or has ended what was about to be its growth: all that grow now fail. */
void requests_growth_failed(struct requests *requests, const char *why);
/* The job ends. */
void requests_fail_all(struct requests *requests, const char *why);
/* End what has been done or has expired, begin what is next. Returns when to look again at the latest (a time like time), 0: no need. */
double requests_update(struct requests *requests, const struct request_situation *now, double time);

/* The next that has ended, for who asked to be told: it is the caller's (request_free). NULL: none. */
struct request *requests_ended(struct requests *requests);
void request_free(struct request *request);

#endif
