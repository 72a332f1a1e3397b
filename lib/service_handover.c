/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A job hands its service over (service_handover.h). */
#include "lib/service_handover.h"

#include <stddef.h>

const char *service_handover_word(enum service_handover_state state)
{
    static const char *const words[] = {
        [HANDOVER_FAR] = "far",       [HANDOVER_SUBMITS] = "submits", [HANDOVER_AWAITS] = "awaits",
        [HANDOVER_OFFERS] = "offers", [HANDOVER_HANDED] = "handed",   [HANDOVER_STOPS] = "stops",
    };

    return words[state];
}

void service_handover_init(struct service_handover *handover)
{
    *handover = (struct service_handover){
        .retry = {.first = HANDOVER_FIRST, .max = HANDOVER_PAUSE}};
}

static bool is_announced(const struct service_handover_facts *facts)
{
    return facts->announced > 0 && facts->silent < HANDOVER_SILENT;
}

static bool may_submit(const struct service_handover *handover,
                       const struct service_handover_facts *facts)
{
    bool due = facts->before > 0 && facts->left >= 0 && facts->left <= facts->before;

    return (due || facts->asked) && (facts->left < 0 || facts->left >= HANDOVER_LAST) &&
           facts->now >= handover->retry.after;
}

static enum service_handover_act hand(struct service_handover *handover)
{
    handover->state = HANDOVER_HANDED;
    handover->since = 0;
    return HANDOVER_FREEZE;
}

static enum service_handover_act await_use(struct service_handover *handover,
                                           const struct service_handover_facts *facts)
{
    if (!facts->serves) {
        handover->since = 0;
        return HANDOVER_NOTHING;
    }
    if (handover->since == 0)
        handover->since = facts->now;
    if (!facts->unused && facts->now - handover->since < HANDOVER_LEAVE)
        return HANDOVER_NOTHING;
    handover->state = HANDOVER_STOPS;
    return HANDOVER_STOP;
}

enum service_handover_act service_handover_step(struct service_handover *handover,
                                                const struct service_handover_facts *facts)
{
    switch (handover->state) {
    case HANDOVER_FAR:
    case HANDOVER_SUBMITS:
    case HANDOVER_AWAITS:
        if (facts->claimed)
            return hand(handover);
        if (is_announced(facts)) {
            handover->state = HANDOVER_OFFERS;
            handover->successor = facts->announced;
            return HANDOVER_FREEZE;
        }
        if (handover->state != HANDOVER_FAR || !may_submit(handover, facts))
            return HANDOVER_NOTHING;
        handover->state = HANDOVER_SUBMITS;
        return HANDOVER_SUBMIT;
    case HANDOVER_OFFERS:
        if (facts->claimed)
            return hand(handover);
        if (is_announced(facts) && facts->announced == handover->successor)
            return HANDOVER_NOTHING;
        handover->state = HANDOVER_AWAITS;
        return HANDOVER_WITHDRAW;
    case HANDOVER_HANDED:
        return await_use(handover, facts);
    case HANDOVER_STOPS:
        break;
    }
    return HANDOVER_NOTHING;
}

double service_handover_deadline(const struct service_handover *handover,
                                 const struct service_handover_facts *facts)
{
    double at;

    if (handover->state == HANDOVER_HANDED)
        return handover->since > 0 ? handover->since + HANDOVER_LEAVE : 0;
    if (handover->state != HANDOVER_FAR)
        return 0;
    if (facts->asked && (facts->left < 0 || facts->left >= HANDOVER_LAST))
        return handover->retry.after;
    if (facts->before <= 0 || facts->left < HANDOVER_LAST)
        return 0;
    at = facts->now + facts->left - facts->before;
    return at > handover->retry.after ? at : handover->retry.after;
}

static void fail(struct service_handover *handover, double now)
{
    retry_failed(&handover->retry, now);
    handover->state = HANDOVER_FAR;
    handover->successor = 0;
}

void service_handover_submitted(struct service_handover *handover, uint32_t job, double now)
{
    if (handover->state != HANDOVER_SUBMITS)
        return; /* it has announced itself before */
    if (job == 0) {
        fail(handover, now);
        return;
    }
    handover->state = HANDOVER_AWAITS;
    handover->successor = job;
}

void service_handover_gone(struct service_handover *handover, uint32_t job, double now)
{
    if (handover->state == HANDOVER_AWAITS && handover->successor == job)
        fail(handover, now);
}

void service_handover_back(struct service_handover *handover, double now)
{
    if (handover->state == HANDOVER_HANDED || handover->state == HANDOVER_OFFERS)
        fail(handover, now);
}

enum service_hold service_handover_hold(bool there, double left, double before)
{
    double late = before / 4 < HANDOVER_LAST ? before / 4 : HANDOVER_LAST;

    if (!there)
        return SERVICE_HOLD_NONE;
    return left >= 0 && left <= late ? SERVICE_HOLD_ENOUGH : SERVICE_HOLD_WHOLE;
}
