/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What members say becomes facts of the change of worlds (facts.h). */
#include "agent/leader/facts.h"

#include "agent/leader/leader_internal.h"
#include "agent/leader/leader_roles.h"
#include "agent/leader/pmix_publish.h"
#include "agent/leader/post.h"
#include "agent/leader/report.h"
#include "agent/leader/roster.h"
#include "common/log.h"
#include "lib/json_get.h"

#define UNHEARD_MAX 86400 /* seconds */

static int number_of(json_object *msg, const char *key, int64_t max)
{
    int64_t number = 0;

    json_get_int(msg, key, 0, max, &number);
    return (int)number;
}

/* What many messages have in common. */
static struct change_fact fact_of(enum change_fact_kind kind, const struct leader_member *m,
                                  json_object *msg)
{
    struct change_fact fact = {.kind = kind,
                               .member = m->id,
                               .generation = number_of(msg, "gen", INT32_MAX),
                               .attempt = number_of(msg, "attempt", INT32_MAX),
                               .started = number_of(msg, "started", INT32_MAX),
                               .text = json_get_string(msg, "reason")};

    return fact;
}

static void add_model(struct change_fact *fact, json_object *msg)
{
    fact->live = json_get_bool(msg, "live", false);
    if (!json_get_int(msg, "shape", 0, INT64_MAX, &fact->signature))
        fact->signature = 0;
}

static void add_held(struct change_fact *fact, json_object *msg)
{
    int64_t step = 0;

    json_get_int(msg, "step", 0, INT64_MAX, &step);
    fact->held = (struct change_held){.attached = number_of(msg, "attached", INT32_MAX),
                                      .training = number_of(msg, "training", INT32_MAX),
                                      .running = number_of(msg, "running", INT32_MAX),
                                      .through = number_of(msg, "through", INT32_MAX),
                                      .step = (uint64_t)step};
}

/* ---- the next world -------------------------------------------------------------------------- */

void facts_reserved(struct leader *leader, struct leader_member *m, json_object *msg)
{
    struct change_fact fact = fact_of(CHANGE_FACT_RESERVED, m, msg);
    int64_t port;

    if (!json_get_int(msg, "port", 1, 65535, &port))
        return;
    fact.port = (int)port;
    post_fact(leader, fact);
}

void facts_parked(struct leader *leader, struct leader_member *m, json_object *msg)
{
    struct change_fact fact = fact_of(CHANGE_FACT_PARKED, m, msg);

    add_model(&fact, msg);
    post_fact(leader, fact);
}

void facts_unprepared(struct leader *leader, struct leader_member *m, json_object *msg)
{
    post_fact(leader, fact_of(CHANGE_FACT_UNPREPARED, m, msg));
}

/* ---- the present world ----------------------------------------------------------------------- */

void facts_ready(struct leader *leader, struct leader_member *m, json_object *msg)
{
    post_fact(leader, fact_of(CHANGE_FACT_READY, m, msg));
}

void facts_listening(struct leader *leader, struct leader_member *m, json_object *msg)
{
    post_fact(leader, fact_of(CHANGE_FACT_LISTENING, m, msg));
}

void facts_begun(struct leader *leader, struct leader_member *m, json_object *msg)
{
    log_debug("%s: its workers are there", m->part->node);
    post_fact(leader, fact_of(CHANGE_FACT_BEGUN, m, msg));
}

void facts_stepping(struct leader *leader, struct leader_member *m, json_object *msg)
{
    struct change_fact fact = fact_of(CHANGE_FACT_STEPPING, m, msg);
    int64_t unheard;

    add_model(&fact, msg);
    fact.gate = json_get_bool(msg, "gate", false);
    fact.aware = json_get_bool(msg, "aware", true);
    if (json_get_int(msg, "unheard", 1, UNHEARD_MAX, &unheard))
        fact.unheard = (int)unheard;
    post_fact(leader, fact);
}

void facts_held(struct leader *leader, struct leader_member *m, json_object *msg)
{
    struct change_fact fact = fact_of(CHANGE_FACT_HELD, m, msg);

    add_held(&fact, msg);
    post_fact(leader, fact);
}

/* The rank of a worker of the present world that has ended is known to the leader alone. */
static void note_end_of_rank(struct leader *leader, const struct leader_member *m, json_object *msg,
                             struct change_fact *fact)
{
    fact->rank = world_first_rank(change_world(leader->change), m->part->place) +
                 number_of(msg, "slot", m->part->slots - 1);
    output_end_rank(leader->output, fact->rank);
    pmix_publish_rank_gone(leader, fact->rank);
    log_debug("rank %d on %s ended: code %d, signal %d%s", fact->rank, m->part->node, fact->code,
              fact->signal, fact->told ? ", told" : "");
}

void facts_exit(struct leader *leader, struct leader_member *m, json_object *msg)
{
    struct change_fact fact = fact_of(CHANGE_FACT_EXITED, m, msg);
    char text[512];

    fact.code = number_of(msg, "code", 255);
    fact.signal = number_of(msg, "signal", 255);
    fact.told = json_get_bool(msg, "told", false);
    fact.early = json_get_bool(msg, "early", false);
    fact.stolen = json_get_bool(msg, "stolen", false);
    if (m->part->place >= 0)
        note_end_of_rank(leader, m, msg, &fact);
    if (fact.code != 0 || fact.signal != 0)
        report_failure(m->part->node, &fact, msg, text, sizeof(text));
    fact.text = fact.code != 0 || fact.signal != 0 ? text : NULL;
    post_fact(leader, fact);
}

void facts_drained(struct leader *leader, struct leader_member *m, json_object *msg)
{
    struct change_fact fact = fact_of(CHANGE_FACT_DRAINED, m, msg);

    fact.completed = json_get_bool(msg, "completed", false);
    add_held(&fact, msg);
    post_fact(leader, fact);
}

/* Most beats say nothing that a change of worlds depends on. */
void facts_beat(struct leader *leader, struct leader_member *m, json_object *msg)
{
    struct change_fact fact = fact_of(CHANGE_FACT_BEAT, m, msg);
    int64_t slowest = m->part->slowest;

    fact.moved = m->part->moved;
    json_get_int(msg, "moved", 0, INT64_MAX, &fact.moved);
    json_get_int(msg, "slowest", 0, UINT32_MAX, &slowest);
    fact.slowest = (uint32_t)slowest;
    fact.asks = json_get_bool(msg, "asks", false);
    if (fact.slowest != m->part->slowest || fact.asks || m->part->asks ||
        (m->part->state == CHANGE_DEPARTING && fact.moved != m->part->moved))
        post_fact(leader, fact);
}

void facts_end(struct leader *leader, struct leader_member *m, json_object *msg)
{
    const char *reason = json_get_string(msg, "reason");

    (void)m;
    leader_roles_stop(leader, reason != NULL ? reason : "a program has asked for it");
}
