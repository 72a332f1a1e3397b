/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A leader's right to lead, and those that may lead after it (lib/succession.h,
 * doc/internals/takeover.md).
 *
 * Before the leader begins anything (a world, an extension, the end of the job), it asks here. Each
 * answer to a beat carries the leader's time, which the member sends back with its next beat. So
 * the leader knows which members have heard from it, and when. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/leader/leader_internal.h"
#include "agent/leader/lease.h"
#include "agent/leader/planning.h"
#include "agent/leader/post.h"
#include "agent/leader/roster.h"
#include "agent/successor.h"
#include "agent/term_file.h"
#include "common/log.h"
#include "lib/json_get.h"
#include "lib/succession.h"

/* Seconds in which none could be made: an end is better than a job that does nothing. */
#define GIVE_UP 120.0
/* Times heartbeat_timeout for others to claim the lead: they notice after three. */
#define PATIENCE 6
#define RETRY    1.0 /* seconds until a claim is tried again that could not be made */

struct leader_lease {
    struct lease right;      /* to lead, for the present term */
    json_object *successors; /* those that may lead next: nodeid, address, port */
    struct term_file *claim; /* under way; NULL: none is */
    bool unsealed;           /* the present term: nothing may be done before it is sealed */
    double claim_after;      /* not to be tried before */
    double claim_failing;    /* since when claims cannot be made */
    bool claim_said;         /* the user has been told why it fails */
    bool lost_base;          /* a node of the base, since the lease was looked at */
    bool deposed;            /* another node leads */
};

static bool is_heard(const struct leader *leader, const struct leader_member *m)
{
    return m->link != NULL &&
           (roster_is_own(leader, m) ||
            leader_now(leader) - m->seen <= leader->options->conf->heartbeat_timeout);
}

void lease_beat(struct leader *leader, struct leader_member *m, json_object *msg)
{
    int64_t seen;
    json_object *answer = leader_message("beat", -1);

    if (json_get_int(msg, "seen", 0, INT64_MAX, &seen) && (double)seen / 1000 > m->seen &&
        (double)seen / 1000 <= leader_now(leader))
        m->seen = (double)seen / 1000;
    json_object_object_add(answer, "now",
                           json_object_new_int64((int64_t)(leader_now(leader) * 1000)));
    leader_send(m, answer);
}

static void give_up(struct leader *leader, int code)
{
    leader->lease->deposed = true;
    post_fact(leader, (struct change_fact){.kind = CHANGE_FACT_DEPOSED, .code = code});
}

static void depose(struct leader *leader)
{
    log_info("job %u: another node leads term %d: this one follows it", leader->options->job,
             leader->lease->right.term + 1); /* or has found that nobody leads this one */
    give_up(leader, 0);
}

static void tell_all(struct leader *leader);

static void claimed(enum term_file_result result, const char *why, void *arg)
{
    struct leader *leader = arg;

    leader->lease->claim = NULL;
    if (leader_has_ended(leader))
        return;
    switch (result) {
    case TERM_FILE_MADE:
        if (leader->lease->unsealed) {
            leader->lease->unsealed = leader->lease->claim_said = false;
            break;
        }
        lease_claimed(&leader->lease->right);
        log_debug("job %u: leads term %d", leader->options->job, leader->lease->right.term);
        leader->lease->claim_said = false;
        tell_all(leader);
        break;
    case TERM_FILE_LOST:
        depose(leader);
        return;
    default:
        leader->lease->claim_after = leader_now(leader) + RETRY;
        if (!leader->lease->claim_said) {
            log_error("job %u: nothing can be done until term %d is claimed: %s",
                      leader->options->job, leader->lease->right.term + 1, why);
            leader->lease->claim_failing = leader_now(leader);
        }
        leader->lease->claim_said = true;
        if (leader_now(leader) - leader->lease->claim_failing > GIVE_UP) {
            log_error("job %u: gave up after %.0f s: %s", leader->options->job, GIVE_UP, why);
            give_up(leader, 1);
            return;
        }
    }
    planning_later(leader, 0);
}

static void claim(struct leader *leader, int term, enum term_file_what what)
{
    const struct leader_options *o = leader->options;

    if (leader->lease->claim != NULL || leader_now(leader) < leader->lease->claim_after)
        return;
    leader->lease->claim = term_file_begin(leader->loop,
                                           &(struct term_file_options){.state_dir = o->state_dir,
                                                                       .job = o->job,
                                                                       .restarts = o->restarts,
                                                                       .step = o->step,
                                                                       .node = o->node,
                                                                       .term = term,
                                                                       .what = what},
                                           claimed, leader);
    if (leader->lease->claim == NULL)
        leader->lease->claim_after = leader_now(leader) + RETRY;
}

/* Of the base and the present world, since the right to lead has lapsed. A member that was heard
 * before may be lost with the others, and its silence not be noticed yet. */
static bool reaches_more(const struct leader *leader)
{
    int reached = 0, missing = leader->lease->right.nodes;

    for (int i = 0; i < roster_count(leader); i++) {
        const struct leader_member *m = roster_at(leader, i);
        bool is = m->link != NULL &&
                  (roster_is_own(leader, m) || m->seen > leader->lease->right.since);

        reached += is;
        if (m->part->base)
            missing -= is;
        else
            missing += !is && m->part->place >= 0;
    }
    return leader->lease->right.lapsed && reached > missing;
}

bool lease_may_act(struct leader *leader)
{
    bool lost = leader->lease->lost_base;
    enum lease_state state;
    double wait;
    int heard = 0;

    leader->lease->lost_base = false;
    for (int i = 0; i < roster_count(leader); i++) {
        struct leader_member *m = roster_at(leader, i);
        bool is = m->part->base && is_heard(leader, m);

        lost = lost || (m->heard && !is);
        m->heard = is;
        heard += is;
    }
    state = lease_look(&leader->lease->right, leader_now(leader), heard, lost, reaches_more(leader),
                       &wait);
    if (state == LEASE_HOLDS && !leader->lease->unsealed)
        return true;
    if (leader->lease->unsealed)
        claim(leader, leader->lease->right.term, TERM_FILE_SEAL);
    else if (state == LEASE_CLAIM)
        claim(leader, leader->lease->right.term + 1, TERM_FILE_BOTH);
    planning_later(leader, 0.2);
    return false;
}

/* ---- who may lead next ----------------------------------------------------------------------- */

static void tell_all(struct leader *leader)
{
    for (int i = 0; i < roster_count(leader); i++) {
        json_object *msg = leader_message("successors", -1);

        json_object_object_add(msg, "term", json_object_new_int(leader->lease->right.term));
        json_object_object_add(msg, "successors", json_object_get(leader->lease->successors));
        leader_send(roster_at(leader, i), msg);
    }
}

static int64_t nodeid_of(json_object *place)
{
    int64_t nodeid = -1;

    json_get_int(place, "nodeid", 0, INT32_MAX, &nodeid);
    return nodeid;
}

static int compare_places(const void *a, const void *b)
{
    int64_t left = nodeid_of(*(json_object *const *)a), right = nodeid_of(*(json_object *const *)b);

    return (left > right) - (left < right);
}

/* One that is lost stays in the list: it may only have been cut off from us. */
void lease_listens(struct leader *leader, struct leader_member *m, json_object *msg)
{
    size_t count = json_object_array_length(leader->lease->successors), at = 0;
    json_object *place;
    int64_t port;

    if (!m->part->base || !json_get_int(msg, "port", 1, 65535, &port))
        return;
    while (at < count &&
           nodeid_of(json_object_array_get_idx(leader->lease->successors, at)) != m->part->nodeid)
        at++;
    if (at == count && count >= SUCCESSORS_MAX)
        return;
    place = json_object_new_object();
    json_object_object_add(place, "nodeid", json_object_new_int(m->part->nodeid));
    json_object_object_add(place, "address", json_object_new_string(link_peer_address(m->link)));
    json_object_object_add(place, "port", json_object_new_int64(port));
    json_object_array_put_idx(leader->lease->successors, at, place);
    json_object_array_sort(leader->lease->successors, compare_places);
    tell_all(leader);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct leader_lease *lease_create(const struct leader_options *options)
{
    struct leader_lease *lease = calloc(1, sizeof(*lease));

    if (lease == NULL)
        return NULL;
    lease->successors = json_object_new_array();
    lease->right.nodes = options->base_nodes;
    lease->right.settle = options->conf->heartbeat_timeout / 2.0;
    lease->right.patience = PATIENCE * options->conf->heartbeat_timeout;
    return lease;
}

void lease_destroy(struct leader_lease *lease)
{
    if (lease == NULL)
        return;
    term_file_forget(lease->claim);
    json_object_put(lease->successors);
    free(lease);
}

void lease_inherit(struct leader *leader, int term)
{
    leader->lease->right.term = term;
    leader->lease->unsealed = true;
}

int lease_term(const struct leader *leader)
{
    return leader->lease->right.term;
}

bool lease_deposed(const struct leader *leader)
{
    return leader->lease->deposed;
}

json_object *lease_successors(const struct leader *leader)
{
    return leader->lease->successors;
}

void lease_member_lost(struct leader *leader, const struct leader_member *m)
{
    leader->lease->lost_base = leader->lease->lost_base || m->part->base;
}
