/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Votes for the next leader (successor.h).
 *
 *   following ──► seeking ──► claiming ──► leading
 *       ▲            │  ▲         │
 *       └────────────┘  └─────────┘ (another agent has claimed the term)
 *
 * A vote is the join of an agent that has lost its leader; this agent's own vote comes as all
 * others do. A vote counts for as long as its connection lasts. */
#include "agent/successor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/listen.h"
#include "agent/term_file.h"
#include "common/log.h"
#include "lib/json_get.h"
#include "lib/sizes.h"
#include "lib/succession.h"

#define SAID_MAX   64   /* messages of a voter that waits; after its join there is little to say */
#define VOTES_MAX  4096 /* more connections of ours than any job has nodes */
#define FRESH_MS   5000 /* a voter leaves after 6 s */
#define OVERDUE_MS 4000 /* a voter dials all other agents in less than this time */
#define RETRY_MS   1000 /* until a claim that could not be made is tried again */

struct successor {
    uv_loop_t *loop;
    const struct successor_options *options;
    struct link_server *server;
    successor_lead lead;
    void *arg;
    bool seeking;
    char *address; /* of the leader */
    int port;
    int term; /* the last term that is known to have been led, or claimed by another agent */
    struct term_file *claim;
    int claimed;        /* the term of the claim */
    uint64_t term_lost; /* when another agent was found to have claimed the term, or to lead it */
    /* A term that no agent will ever lead: its claimant was lost before it led. */
    int void_term;
    /* A term that this agent has claimed and does not lead, because it had found a leader
     * meanwhile; 0: none. */
    int owned;
    uv_timer_t retry;
    struct vote *votes;
    int count;
};

static json_object *join_of(const struct vote *vote)
{
    return json_object_array_length(vote->said) > 0 ? json_object_array_get_idx(vote->said, 0)
                                                    : NULL;
}

static int term_of(json_object *join)
{
    int64_t term;

    return json_get_int(join, "term", 0, INT32_MAX / 2, &term) ? (int)term : 0;
}

/* A voter that has waited longer than this may have gone elsewhere, and the end of its connection
 * may not have arrived. */
static bool is_fresh(const struct successor *s, const struct vote *vote)
{
    return uv_now(s->loop) - vote->since <= FRESH_MS;
}

/* The number of nodes of the base that have voted; a node counts once. */
static int base_votes(const struct successor *s)
{
    int votes = 0;

    for (int i = 0; i < s->count; i++) {
        json_object *join = join_of(&s->votes[i]);
        const char *node = json_get_string(join, "node");
        bool counted = !json_get_bool(join, "base", false) || node == NULL ||
                       !is_fresh(s, &s->votes[i]);

        for (int k = 0; k < i && !counted; k++) {
            const char *other = json_get_string(join_of(&s->votes[k]), "node");

            counted = json_get_bool(join_of(&s->votes[k]), "base", false) && other != NULL &&
                      is_fresh(s, &s->votes[k]) && strcmp(other, node) == 0;
        }
        votes += !counted;
    }
    return votes;
}

static void send_away(struct successor *s, struct link *link)
{
    json_object *msg = json_object_new_object();

    json_object_object_add(msg, "t", json_object_new_string("redirect"));
    if (s->address != NULL && !s->seeking) {
        json_object_object_add(msg, "address", json_object_new_string(s->address));
        json_object_object_add(msg, "port", json_object_new_int(s->port));
    }
    link_send(link, msg);
    link_close(link, "sent to the leader");
}

static void drop_vote(struct successor *s, int index)
{
    json_object_put(s->votes[index].said);
    s->votes[index] = s->votes[--s->count];
}

static void send_all_away(struct successor *s)
{
    for (int i = 0; i < s->count; i++)
        send_away(s, s->votes[i].link);
}

static void consider(struct successor *s);
static void sealed(enum term_file_result result, const char *why, void *arg);

static void on_retry(uv_timer_t *timer)
{
    consider(timer->data);
}

static void lead(struct successor *s, int term)
{
    struct link_server *server = s->server;

    s->server = NULL;
    s->term = term;
    s->seeking = false;
    s->lead(server, term, s->votes, s->count, s->arg);
    while (s->count > 0)
        drop_vote(s, s->count - 1);
}

static void claimed(enum term_file_result result, const char *why, void *arg)
{
    struct successor *s = arg;

    s->claim = NULL;
    if (result == TERM_FILE_FAILED) {
        log_error("%s: cannot claim term %d of job %u: %s", s->options->node, s->claimed,
                  s->options->job, why);
        uv_timer_start(&s->retry, on_retry, RETRY_MS, 0);
        return;
    }
    if (result == TERM_FILE_MADE) {
        s->owned = s->claimed;
        consider(s);
        return;
    }
    log_info("%s: another node leads term %d of job %u", s->options->node, s->claimed,
             s->options->job);
    if (s->term < s->claimed) {
        s->term = s->claimed;
        s->term_lost = uv_now(s->loop);
    }
    send_all_away(s);
}

/* The term before the one that is to be claimed has been sealed, so that no agent leads it. Or
 * another agent leads it, and has not been found. */
static void sealed(enum term_file_result result, const char *why, void *arg)
{
    struct successor *s = arg;

    s->claim = NULL;
    if (result == TERM_FILE_FAILED) {
        log_error("%s: cannot claim a term of job %u: %s", s->options->node, s->options->job, why);
        uv_timer_start(&s->retry, on_retry, RETRY_MS, 0);
        return;
    }
    s->term_lost = uv_now(s->loop);
    if (result == TERM_FILE_LOST) {
        send_all_away(s);
        return;
    }
    log_info("%s: nobody leads term %d of job %u", s->options->node, s->claimed, s->options->job);
    s->void_term = s->claimed;
    consider(s);
}

/* The last term that was led, as far as the voters know. */
static int known_term(const struct successor *s)
{
    int known = 0;

    for (int i = 0; i < s->count; i++)
        if (join_of(&s->votes[i]) != NULL && term_of(join_of(&s->votes[i])) > known)
            known = term_of(join_of(&s->votes[i]));
    return known;
}

static void begin_claim(struct successor *s, int term, enum term_file_what what)
{
    s->claimed = term;
    s->claim = term_file_begin(s->loop,
                               &(struct term_file_options){.state_dir = s->options->state_dir,
                                                           .job = s->options->job,
                                                           .restarts = s->options->restarts,
                                                           .step = s->options->step,
                                                           .node = s->options->node,
                                                           .term = term,
                                                           .what = what},
                               what == TERM_FILE_SEAL ? sealed : claimed, s);
    if (s->claim == NULL)
        uv_timer_start(&s->retry, on_retry, RETRY_MS, 0);
}

/* Has the agent that has claimed the last term had the time to tell the agents that vote here? Else
 * that agent was lost, too, before it led: then no agent shall lead that term. */
static bool is_overdue(const struct successor *s)
{
    return uv_now(s->loop) - s->term_lost > OVERDUE_MS;
}

/* Are there votes enough? This agent does not claim a term after a term that another agent has
 * claimed, unless a voter has followed that agent, or no agent leads that term. */
static void consider(struct successor *s)
{
    int known = known_term(s);

    if (!s->seeking || s->claim != NULL || s->server == NULL ||
        !succession_may_claim(s->options->base_nodes, base_votes(s)))
        return;
    if (known < s->term && s->void_term == s->term)
        known = s->term;
    if (known < s->term && is_overdue(s)) {
        begin_claim(s, s->term, TERM_FILE_SEAL);
        return;
    }
    if (known < s->term) {
        send_all_away(s);
        return;
    }
    if (s->owned == known + 1) {
        lead(s, s->owned);
        return;
    }
    begin_claim(s, known + 1, TERM_FILE_CLAIM);
}

/* ---- voters ---------------------------------------------------------------------------------- */

static void on_open(struct link *link, void *arg)
{
    struct successor *s = arg;
    struct vote *grown = s->count < VOTES_MAX
                             ? realloc(s->votes, ((size_t)s->count + 1) * sizeof(*grown))
                             : NULL;

    if (grown == NULL) {
        link_close(link, "out of memory");
        return;
    }
    s->votes = grown;
    s->votes[s->count++] = (struct vote){
        .link = link, .said = json_object_new_array(), .since = uv_now(s->loop)};
}

static void on_message(struct link *link, json_object *msg, void *arg)
{
    struct successor *s = arg;
    const char *type = json_get_string(msg, "t");

    for (int i = 0; i < s->count; i++) {
        struct vote *vote = &s->votes[i];

        if (vote->link != link)
            continue;
        if (type == NULL || (join_of(vote) == NULL && strcmp(type, "join") != 0)) {
            link_close(link, "a vote that cannot be understood");
        } else if (!s->seeking) {
            send_away(s, link);
        } else if (json_object_array_length(vote->said) < SAID_MAX && strcmp(type, "out") != 0) {
            json_object_array_add(vote->said, json_object_get(msg));
            if (strcmp(type, "join") == 0)
                consider(s);
        }
        return;
    }
}

static void on_closed(struct link *link, const char *why, void *arg)
{
    struct successor *s = arg;

    (void)why;
    for (int i = 0; i < s->count; i++)
        if (s->votes[i].link == link) {
            drop_vote(s, i);
            return;
        }
}

/* ---- life ------------------------------------------------------------------------------------ */

struct successor *successor_create(uv_loop_t *loop, const struct successor_options *options,
                                   successor_lead handler, void *arg, struct error *err)
{
    static const struct link_handlers handlers = {
        .open = on_open, .message = on_message, .closed = on_closed};
    struct link_server_options server = listen_options(
        options->conf, options->job, options->restarts, options->state_dir, options->slurm_user);
    struct successor *s = calloc(1, sizeof(*s));

    server.successor = true;
    if (s == NULL) {
        error_set(err, "out of memory");
        return NULL;
    }
    s->server = link_server_create(loop, &server, &handlers, s, err);
    if (s->server == NULL) {
        free(s);
        return NULL;
    }
    s->loop = loop;
    s->options = options;
    s->lead = handler;
    s->arg = arg;
    uv_timer_init(loop, &s->retry);
    s->retry.data = s;
    return s;
}

int successor_port(const struct successor *s)
{
    return s->server != NULL ? link_server_port(s->server) : 0;
}

void successor_follow(struct successor *s, const char *address, int port, int term)
{
    free(s->address);
    s->address = address != NULL ? strdup(address) : NULL;
    s->port = port;
    s->seeking = false;
    if (term > s->term)
        s->term = term;
    send_all_away(s);
}

void successor_seek(struct successor *s)
{
    s->seeking = true;
}

static void ignore_link(struct link *link, void *arg)
{
    (void)link;
    (void)arg;
}

static void ignore_message(struct link *link, json_object *msg, void *arg)
{
    (void)link;
    (void)msg;
    (void)arg;
}

static void ignore_end(struct link *link, const char *why, void *arg)
{
    (void)link;
    (void)why;
    (void)arg;
}

static void closed(uv_handle_t *handle)
{
    struct successor *s = handle->data;

    free(s->address);
    free(s->votes);
    free(s);
}

void successor_destroy(struct successor *s)
{
    if (s == NULL)
        return;
    term_file_forget(s->claim);
    while (s->count > 0)
        drop_vote(s, s->count - 1);
    if (s->server != NULL) {
        /* The links of the server end after this one. */
        link_server_lead(s->server,
                         &(struct link_handlers){
                             .open = ignore_link, .message = ignore_message, .closed = ignore_end},
                         NULL);
        link_server_destroy(s->server);
    }
    uv_close((uv_handle_t *)&s->retry, closed);
}
