/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A leader's right to lead, and those who may lead after it (lib/succession.h, doc/takeover.md).
 *
 * Whatever the leader is about to begin (a world, an extension, the end of the job), it asks here first. Each beat that it answers carries its time, which
 * the member sends back with the next: so it knows who has heard from it, and when. */
#include <stdio.h>
#include <string.h>

#include "agent/leader/leader_internal.h"
#include "common/log.h"
#include "lib/json_get.h"

/* Seconds in which none could be made: an end is better than a job that does nothing. */
#define GIVE_UP 120.0
#define RETRY   1.0 /* seconds until a claim is tried again that could not be made */

static bool is_own(const struct leader *leader, const struct leader_member *m)
{
    return m->base && m->nodeid == leader->options->nodeid;
}

static bool is_heard(const struct leader *leader, const struct leader_member *m)
{
    return m->link != NULL && (is_own(leader, m) || leader_now(leader) - m->seen <=
                                                        leader->options->conf->heartbeat_timeout);
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

/* Without touching anything that may be another leader's. */
static void end_without(struct leader *leader, int code)
{
    leader->deposed = leader->cleaned = true;
    leader->exit_code = code;
    leader_set_phase(leader, PHASE_ENDING, 1);
    for (int i = 0; i < leader->member_count; i++)
        if (leader->members[i]->link != NULL)
            link_close(leader->members[i]->link, "this node does not lead the job any more");
    leader_handle_closed(leader);
}

static void depose(struct leader *leader)
{
    log_info("job %u: another node leads term %d: this one follows it", leader->options->job,
             leader->lease.term + 1); /* or has found that nobody leads this one */
    end_without(leader, 0);
}

static void claimed(enum term_file_result result, const char *why, void *arg)
{
    struct leader *leader = arg;

    leader->claim = NULL;
    if (leader->phase == PHASE_ENDING)
        return;
    switch (result) {
    case TERM_FILE_MADE:
        if (leader->unsealed) {
            leader->unsealed = leader->claim_said = false;
            break;
        }
        lease_claimed(&leader->lease);
        log_debug("job %u: leads term %d", leader->options->job, leader->lease.term);
        leader->claim_said = false;
        lease_tell_all(leader);
        break;
    case TERM_FILE_LOST:
        depose(leader);
        return;
    default:
        leader->claim_after = leader_now(leader) + RETRY;
        if (!leader->claim_said) {
            log_error("job %u: nothing can be done until term %d is claimed: %s",
                      leader->options->job, leader->lease.term + 1, why);
            leader->claim_failing = leader_now(leader);
        }
        leader->claim_said = true;
        if (leader_now(leader) - leader->claim_failing > GIVE_UP) {
            log_error("job %u: gave up after %.0f s: %s", leader->options->job, GIVE_UP, why);
            end_without(leader, 1);
            return;
        }
    }
    decide_later(leader, 0);
}

static void claim(struct leader *leader, int term, enum term_file_what what)
{
    const struct leader_options *o = leader->options;

    if (leader->claim != NULL || leader_now(leader) < leader->claim_after)
        return;
    leader->claim = term_file_begin(leader->loop,
                                    &(struct term_file_options){.state_dir = o->state_dir,
                                                                .job = o->job,
                                                                .restarts = o->restarts,
                                                                .step = o->step,
                                                                .node = o->node,
                                                                .term = term,
                                                                .what = what},
                                    claimed, leader);
    if (leader->claim == NULL)
        leader->claim_after = leader_now(leader) + RETRY;
}

/* Of the base and the present world, since the right to lead has lapsed: who was heard before may be lost with the others, and its silence not be
 * noticed yet. */
static bool reaches_more(const struct leader *leader)
{
    int reached = 0, missing = leader->lease.nodes;

    for (int i = 0; i < leader->member_count; i++) {
        const struct leader_member *m = leader->members[i];
        bool is = m->link != NULL && (is_own(leader, m) || m->seen > leader->lease.since);

        reached += is;
        if (m->base)
            missing -= is;
        else
            missing += !is && m->position >= 0;
    }
    return leader->lease.lapsed && reached > missing;
}

bool lease_may_act(struct leader *leader)
{
    bool lost = leader->lost_base;
    enum lease_state state;
    double wait;
    int heard = 0;

    leader->lost_base = false;
    for (int i = 0; i < leader->member_count; i++) {
        struct leader_member *m = leader->members[i];
        bool is = m->base && is_heard(leader, m);

        lost = lost || (m->heard && !is);
        m->heard = is;
        heard += is;
    }
    state = lease_look(&leader->lease, leader_now(leader), heard, lost, reaches_more(leader),
                       &wait);
    if (state == LEASE_HOLDS && !leader->unsealed)
        return true;
    if (leader->unsealed)
        claim(leader, leader->lease.term, TERM_FILE_SEAL);
    else if (state == LEASE_CLAIM)
        claim(leader, leader->lease.term + 1, TERM_FILE_BOTH);
    decide_later(leader, 0.2);
    return false;
}

/* ---- who may lead next ----------------------------------------------------------------------------------------------------- */

void lease_tell_all(struct leader *leader)
{
    for (int i = 0; i < leader->member_count; i++) {
        json_object *msg = leader_message("successors", -1);

        json_object_object_add(msg, "term", json_object_new_int(leader->lease.term));
        json_object_object_add(msg, "successors", json_object_get(leader->successors));
        leader_send(leader->members[i], msg);
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
    size_t count = json_object_array_length(leader->successors), at = 0;
    json_object *place;
    int64_t port;

    if (!m->base || !json_get_int(msg, "port", 1, 65535, &port))
        return;
    while (at < count && nodeid_of(json_object_array_get_idx(leader->successors, at)) != m->nodeid)
        at++;
    if (at == count && count >= SUCCESSORS_MAX)
        return;
    place = json_object_new_object();
    json_object_object_add(place, "nodeid", json_object_new_int(m->nodeid));
    json_object_object_add(place, "address", json_object_new_string(link_peer_address(m->link)));
    json_object_object_add(place, "port", json_object_new_int64(port));
    json_object_array_put_idx(leader->successors, at, place);
    json_object_array_sort(leader->successors, compare_places);
    lease_tell_all(leader);
}

static struct handover handover_of(const struct leader *leader)
{
    return (struct handover){
        .target = leader->target,
        .faults = leader->restarts,
        .counted = recovery_counted(leader->recovery, leader_now(leader)),
    };
}

void lease_tell_handover(struct leader *leader, struct leader_member *m)
{
    struct handover handover = handover_of(leader);
    json_object *msg = leader_message("heritage", -1);

    json_object_object_add(msg, "target", json_object_new_int(handover.target));
    json_object_object_add(msg, "faults", json_object_new_int(handover.faults));
    json_object_object_add(msg, "counted", json_object_new_int(handover.counted));
    leader_send(m, msg);
}

void lease_watch_handover(struct leader *leader)
{
    struct handover now = handover_of(leader), told = leader->told_handover;

    if (now.target == told.target && now.faults == told.faults && now.counted == told.counted)
        return;
    leader->told_handover = now;
    for (int i = 0; i < leader->member_count; i++)
        if (leader->members[i]->base)
            lease_tell_handover(leader, leader->members[i]);
}
