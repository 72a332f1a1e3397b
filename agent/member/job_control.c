/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PMIx_Job_control: signals from a program to processes of its world (member_internal.h).
 *
 * The processes may be on this node and on other nodes. A program may also ask for their process
 * ids. The PMIx server knows which ranks are on which node. The agents of other nodes are asked
 * through the leader, as relays, with a number of ours instead of the server's number. Each agent
 * signals only workers of that world that it has started itself. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "agent/member/member_internal.h"
#include "common/log.h"
#include "lib/json_get.h"

#define CONTROLS_MAX 64 /* questions that wait for other nodes */

/* A question that is not answered yet. */
struct job_control {
    int64_t number, id; /* ours, the server's */
    int attempt;
    int waiting;        /* nodes that have not answered */
    int done, missing;  /* processes that were signalled, and processes that were missing */
    json_object *table; /* [rank, pid, ended]…; NULL: signals */
    struct job_control *next;
};

static struct workers *workers_of_attempt(struct member *m, int64_t attempt)
{
    if (m->group != NULL && m->group->started == attempt)
        return m->group->workers;
    return m->next != NULL && m->next->started == attempt ? m->next->workers : NULL;
}

/* Signal the ranks in msg; all ranks here if msg names none. */
static void signal_here(struct member *m, int64_t attempt, json_object *msg,
                        struct job_control *sum)
{
    struct workers *workers = workers_of_attempt(m, attempt);
    json_object *ranks = NULL;
    bool forced = json_get_bool(msg, "forced", false);
    int64_t number;
    int done;

    if (!json_get_int(msg, "signal", 1, 64, &number) || !workers_may_signal((int)number))
        return;
    if (!json_object_object_get_ex(msg, "ranks", &ranks)) {
        sum->done += workers != NULL ? workers_signal(workers, -1, (int)number, forced) : 0;
        return;
    }
    if (!json_object_is_type(ranks, json_type_array))
        return;
    for (size_t i = 0; i < json_object_array_length(ranks); i++) {
        int rank = json_object_get_int(json_object_array_get_idx(ranks, i));

        done = workers != NULL && rank >= 0 ? workers_signal(workers, rank, (int)number, forced)
                                            : 0;
        sum->done += done;
        sum->missing += done == 0;
    }
}

static void list_here(struct member *m, int64_t attempt, json_object *table)
{
    struct workers *workers = workers_of_attempt(m, attempt);
    struct worker_process process;

    for (int i = 0; workers != NULL && workers_process(workers, i, &process); i++) {
        json_object *row = json_object_new_array();

        json_object_array_add(row, json_object_new_int(process.rank));
        json_object_array_add(row, json_object_new_int(process.pid));
        json_object_array_add(row, json_object_new_boolean(process.ended));
        json_object_array_add(table, row);
    }
}

static void do_here(struct member *m, int64_t attempt, json_object *msg, struct job_control *sum)
{
    if (sum->table != NULL)
        list_here(m, attempt, sum->table);
    else
        signal_here(m, attempt, msg, sum);
}

static void answer_error(struct member *m, const struct job_control *control, const char *error)
{
    json_object *reply = json_object_new_object();

    json_object_object_add(reply, "error", json_object_new_string(error));
    pmix_answer(m->pmix.server, control->attempt, control->id, reply);
}

/* Takes the table over. */
static void answer(struct member *m, const struct job_control *control)
{
    json_object *reply = NULL;

    if (control->table != NULL) {
        reply = json_object_new_object();
        json_object_object_add(reply, "processes", control->table);
        json_object_object_add(reply, "executable", json_object_new_string(m->job.argv[0]));
        pmix_answer(m->pmix.server, control->attempt, control->id, reply);
    } else if (control->done == 0) {
        answer_error(m, control, "nothing");
    } else if (control->missing > 0) {
        answer_error(m, control, "part");
    } else {
        pmix_answer(m->pmix.server, control->attempt, control->id, NULL);
    }
}

static void send_relay(struct member *m, int64_t attempt, int64_t to, const char *what,
                       int64_t number, json_object *msg)
{
    json_object_object_add(msg, "t", json_object_new_string("relay"));
    json_object_object_add(msg, "attempt", json_object_new_int64(attempt));
    json_object_object_add(msg, "to", json_object_new_int64(to));
    json_object_object_add(msg, "what", json_object_new_string(what));
    json_object_object_add(msg, "control", json_object_new_int64(number));
    member_send(m, msg);
}

/* Ask the other nodes. Returns how many were asked. */
static int ask_others(struct member *m, int attempt, json_object *msg, int64_t number)
{
    static const char *const copied[] = {"signal", "forced", "list"};
    json_object *nodes = NULL, *value;
    int asked = 0;

    if (!json_object_object_get_ex(msg, "nodes", &nodes) ||
        !json_object_is_type(nodes, json_type_array))
        return 0;
    for (size_t i = 0; i < json_object_array_length(nodes); i++) {
        json_object *node = json_object_array_get_idx(nodes, i), *relay;
        int64_t place;

        if (!json_get_int(node, "node", 0, INT32_MAX, &place))
            continue;
        relay = json_object_new_object();
        for (size_t k = 0; k < sizeof(copied) / sizeof(copied[0]); k++)
            if (json_object_object_get_ex(msg, copied[k], &value))
                json_object_object_add(relay, copied[k], json_object_get(value));
        if (json_object_object_get_ex(node, "ranks", &value))
            json_object_object_add(relay, "ranks", json_object_get(value));
        send_relay(m, attempt, place, "control", number, relay);
        asked++;
    }
    return asked;
}

/* A program that ends all its processes ends its job. Tell the leader before the first process has
 * ended. */
static void end_job(struct member *m, json_object *msg)
{
    json_object *end = member_message("end");
    int64_t rank = -1;
    char reason[64] = "a tool has asked for it";

    if (json_get_int(msg, "rank", 0, INT32_MAX, &rank))
        snprintf(reason, sizeof(reason), "rank %d has asked for it", (int)rank);
    json_object_object_add(end, "reason", json_object_new_string(reason));
    member_send(m, end);
}

void member_job_control(struct member *m, int attempt, json_object *msg)
{
    struct job_control sum = {.attempt = attempt}, *control;
    int count = 0;

    if (!json_get_int(msg, "id", 0, INT64_MAX, &sum.id))
        return;
    sum.table = json_get_bool(msg, "list", false) ? json_object_new_array() : NULL;
    for (const struct job_control *each = m->controls.waiting; each != NULL; each = each->next)
        count++;
    control = count < CONTROLS_MAX ? malloc(sizeof(*control)) : NULL;
    if (control == NULL) {
        json_object_put(sum.table);
        answer_error(m, &sum, "busy");
        return;
    }
    if (json_get_bool(msg, "end", false)) {
        end_job(m, msg);
        if (json_get_bool(msg, "forced", false)) {
            free(control);
            pmix_answer(m->pmix.server, attempt, sum.id, NULL);
            return; /* the leader sees to the rest, as when Slurm ends the job */
        }
    }
    sum.number = ++m->controls.number;
    sum.waiting = ask_others(m, attempt, msg, sum.number);
    if (json_get_bool(msg, "here", false))
        do_here(m, attempt, msg, &sum);
    if (sum.waiting == 0) {
        free(control);
        answer(m, &sum);
        return;
    }
    *control = sum;
    control->next = m->controls.waiting;
    m->controls.waiting = control;
}

/* Another node's question. */
static void on_control(struct member *m, json_object *msg, int64_t number, int64_t attempt)
{
    struct job_control sum = {0};
    json_object *reply = json_object_new_object();
    int64_t from = -1;

    if (json_get_bool(msg, "list", false))
        sum.table = json_object_new_array();
    json_get_int(msg, "from", 0, INT32_MAX, &from);
    do_here(m, attempt, msg, &sum);
    if (sum.table != NULL)
        json_object_object_add(reply, "processes", sum.table);
    json_object_object_add(reply, "done", json_object_new_int(sum.done));
    json_object_object_add(reply, "missing", json_object_new_int(sum.missing));
    send_relay(m, attempt, from, "controlled", number, reply);
}

/* The answer of another node to our question. */
static void on_controlled(struct member *m, json_object *msg, int64_t number)
{
    struct job_control **at = &m->controls.waiting, *control;
    json_object *table = NULL;
    int64_t done = 0, missing = 0;

    while (*at != NULL && (*at)->number != number)
        at = &(*at)->next;
    control = *at;
    if (control == NULL)
        return;
    if (json_get_int(msg, "done", 0, INT32_MAX, &done) &&
        json_get_int(msg, "missing", 0, INT32_MAX, &missing)) {
        control->done += (int)done;
        control->missing += (int)missing;
    } else {
        control->missing++; /* that node is lost */
    }
    if (control->table != NULL && json_object_object_get_ex(msg, "processes", &table) &&
        json_object_is_type(table, json_type_array))
        for (size_t i = 0; i < json_object_array_length(table); i++)
            json_object_array_add(control->table,
                                  json_object_get(json_object_array_get_idx(table, i)));
    if (--control->waiting > 0)
        return;
    *at = control->next;
    answer(m, control);
    free(control);
}

bool member_job_control_relay(struct member *m, const char *type, json_object *msg)
{
    const char *what = json_get_string(msg, "what");
    int64_t number, attempt;

    if (type == NULL || strcmp(type, "relay") != 0 || what == NULL ||
        !json_get_int(msg, "control", 0, INT64_MAX, &number))
        return false;
    if (strcmp(what, "control") != 0)
        on_controlled(m, msg, number);
    else if (json_get_int(msg, "attempt", 0, INT32_MAX, &attempt))
        on_control(m, msg, number, attempt);
    return true;
}

void member_job_control_gone(struct member *m, int attempt)
{
    struct job_control **at = &m->controls.waiting;

    while (*at != NULL) {
        struct job_control *control = *at;

        if (attempt >= 0 && control->attempt != attempt) {
            at = &control->next;
            continue;
        }
        *at = control->next;
        json_object_put(control->table);
        free(control);
    }
}
