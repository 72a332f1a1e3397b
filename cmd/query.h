/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From a job id to the answer of its leader.
 *
 * This is what Slurm knows of the job, who may ask, and where the leader is. */
#ifndef SELASTIC_QUERY_H
#define SELASTIC_QUERY_H

#include <stdbool.h>
#include <sys/types.h>

#include <json-c/json.h>

#include "common/slurm_client.h"
#include "lib/conf.h"
#include "lib/error.h"

struct site {
    struct conf *conf;
    char *cluster;
    uid_t slurm_user;
    int asked;                         /* nodes that Slurm was asked for one by one */
    struct slurm_addresses *addresses; /* of all nodes; NULL: not needed so far */
};

/* Read elastic.conf and ask Slurm. */
struct site *site_create(struct error *err);
void site_destroy(struct site *site);

/* May this process ask the leader of a job of uid? The job's user, root and SlurmUser may, and, one
 * job at a time, Slurm's operators (query_leader). */
bool site_may_ask(const struct site *site, uid_t uid);

/* In err of a job that does not run, before its number and what is to be found by it. */
#define QUERY_HISTORY "; 'selastic history "

enum query_result {
    QUERY_ANSWERED,
    QUERY_UNKNOWN,   /* Slurm does not know the job (any more) */
    QUERY_NOT_THERE, /* the job does not run: it is pending, or has ended */
    QUERY_SILENT,    /* the job runs, but no leader answers */
    QUERY_REFUSED,   /* not permitted, or not a base job */
    QUERY_FAILED,    /* Slurm cannot be asked */
};

struct query {
    struct job_info *info; /* NULL: unknown */
    char **addresses;      /* of its first nodes, if it runs and may be asked */
    json_object *answer;   /* set when answered; {"t": "error"} is an answer, too */
};

/* Ask the leader of a job (the time limit is deadline.h's). request is put in any case. err says
 * what went wrong, in words for the user. */
enum query_result query_leader(struct site *site, uint32_t job_id, json_object *request,
                               struct query *query, struct error *err);
void query_clear(struct query *query);

/* The two halves of query_leader, for who asks again and again. Ask Slurm where the job is:
 * QUERY_ANSWERED if its leader can be asked. What the query was before is forgotten. */
enum query_result query_find(struct site *site, uint32_t job_id, struct query *query,
                             struct error *err);
/* … though the job is another user's: its leader decides what it answers. */
enum query_result query_find_guest(struct site *site, uint32_t job_id, struct query *query,
                                   struct error *err);
bool query_is_found(const struct query *query);
/* Ask the leader of a job that was found, without asking Slurm. request is put in any case. */
enum query_result query_again(struct site *site, json_object *request, struct query *query,
                              struct error *err);

/* query_leader for commands that need the answer and know its type. NULL with err for everything
 * else. It has a site of its own. request is put in any case. */
json_object *query_answer(uint32_t job_id, json_object *request, const char *type,
                          struct error *err);

/* The name of a user, "uid 1234" if it has none. A new string. */
char *user_name(uid_t uid);

/* A job's state directory, as elastic.conf places it. A new string, NULL: not known. */
char *query_state_dir(const struct site *site, const struct job_info *info);

/* The addresses of the first nodes of a hostlist expression, at most max, NULL-terminated. Asks
 * Slurm: for a few nodes one by one, and then once for all that may follow. */
char **node_addresses(struct site *site, const char *nodes, int max);

#endif
