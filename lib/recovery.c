/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What follows a failure (recovery.h). */
#include "lib/recovery.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/number.h"

/* A node that has been left out. The record is dropped when the node has been in use for as long as
 * it was left out. */
struct suspect {
    char *node;
    double since, length; /* when it was last left out, and for how long */
};

struct recovery {
    struct budget budget;
    double avoid;
    double *failures; /* when the failures that count happened, in order */
    int failure_count, failure_room;
    int counted; /* where all failures count: their number; their times do not matter */
    struct suspect *suspects;
    int suspect_count;
    char *last_failed; /* the node on which the last failure began; NULL: none */
};

/* ---- budget ---------------------------------------------------------------------------------- */

int budget_parse(const char *text, struct budget *budget, struct error *err)
{
    const char *slash = strchr(text, '/');
    size_t len = slash != NULL ? (size_t)(slash - text) : strlen(text);
    struct budget found = {0};

    if (number_parse(text, len, 0, RECOVERY_RESTARTS_MAX, &found.restarts) != 0 ||
        (slash != NULL &&
         number_parse(slash + 1, strlen(slash + 1), 1, INT_MAX, &found.seconds) != 0))
        return error_set(
            err,
            "'%s' is not a number of restarts; write N, from 0 to %d, or N/SECONDS for "
            "N within any so many seconds",
            error_value(text).text, RECOVERY_RESTARTS_MAX);
    *budget = found;
    return 0;
}

char *budget_format(const struct budget *budget, char *text, int size)
{
    if (budget->seconds > 0)
        snprintf(text, (size_t)size, "%d/%d", budget->restarts, budget->seconds);
    else
        snprintf(text, (size_t)size, "%d", budget->restarts);
    return text;
}

bool recovery_is_final(int status)
{
    return status == RECOVERY_STATUS_FINAL || status == 126 || status == 127;
}

struct recovery *recovery_create(const struct budget *budget, double avoid)
{
    struct recovery *recovery = calloc(1, sizeof(*recovery));

    if (recovery != NULL)
        *recovery = (struct recovery){.budget = *budget, .avoid = avoid};
    return recovery;
}

void recovery_destroy(struct recovery *recovery)
{
    if (recovery == NULL)
        return;
    for (int i = 0; i < recovery->suspect_count; i++)
        free(recovery->suspects[i].node);
    free(recovery->suspects);
    free(recovery->failures);
    free(recovery->last_failed);
    free(recovery);
}

/* Failures that are too long ago do not count any more. */
static void forget_failures(struct recovery *recovery, double now)
{
    int old = 0;

    while (old < recovery->failure_count &&
           recovery->failures[old] <= now - recovery->budget.seconds)
        old++;
    recovery->failure_count -= old;
    memmove(recovery->failures, recovery->failures + old,
            (size_t)recovery->failure_count * sizeof(*recovery->failures));
}

bool recovery_count(struct recovery *recovery, double now)
{
    double *grown;

    if (recovery->budget.seconds == 0) {
        recovery->counted += recovery->counted <= recovery->budget.restarts;
        return recovery->counted <= recovery->budget.restarts;
    }
    if (recovery->failure_count > 0)
        forget_failures(recovery, now);
    if (recovery->failure_count >= recovery->budget.restarts)
        return false;
    if (recovery->failure_count == recovery->failure_room) {
        grown = realloc(recovery->failures,
                        (size_t)(recovery->failure_room * 2 + 8) * sizeof(*recovery->failures));
        if (grown == NULL)
            return true; /* without memory a failure is not counted */
        recovery->failures = grown;
        recovery->failure_room = recovery->failure_room * 2 + 8;
    }
    recovery->failures[recovery->failure_count++] = now;
    return true;
}

int recovery_counted(struct recovery *recovery, double now)
{
    if (recovery->failure_count > 0)
        forget_failures(recovery, now);
    return recovery->counted + recovery->failure_count;
}

void recovery_inherit(struct recovery *recovery, int counted, double now)
{
    while (counted-- > 0 && recovery_count(recovery, now))
        continue;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static double left_out(const struct suspect *suspect, double now)
{
    double left = suspect->since + suspect->length - now;

    return left > 0 ? left : 0;
}

static struct suspect *find(const struct recovery *recovery, const char *node)
{
    for (int i = 0; i < recovery->suspect_count; i++)
        if (strcmp(recovery->suspects[i].node, node) == 0)
            return &recovery->suspects[i];
    return NULL;
}

static void forgive(struct recovery *recovery, double now)
{
    int kept = 0;

    for (int i = 0; i < recovery->suspect_count; i++) {
        struct suspect *each = &recovery->suspects[i];

        if (now >= each->since + 2 * each->length)
            free(each->node);
        else
            recovery->suspects[kept++] = *each;
    }
    recovery->suspect_count = kept;
}

static struct suspect *add(struct recovery *recovery, const char *node)
{
    struct suspect *grown = realloc(recovery->suspects, (size_t)(recovery->suspect_count + 1) *
                                                            sizeof(*recovery->suspects));
    char *name = strdup(node);

    if (grown != NULL)
        recovery->suspects = grown;
    if (grown == NULL || name == NULL) {
        free(name);
        return NULL;
    }
    grown[recovery->suspect_count] = (struct suspect){.node = name};
    return &grown[recovery->suspect_count++];
}

void recovery_lost(struct recovery *recovery, const char *node, double now)
{
    struct suspect *suspect;

    if (recovery->avoid <= 0)
        return;
    forgive(recovery, now);
    suspect = find(recovery, node);
    /* The same loss, seen by another observer. */
    if (suspect != NULL && left_out(suspect, now) > 0)
        return;
    if (suspect == NULL)
        suspect = add(recovery, node);
    if (suspect == NULL)
        return;
    suspect->since = now;
    suspect->length = suspect->length == 0 ? recovery->avoid : suspect->length * 2;
    if (suspect->length > RECOVERY_AVOID_MAX)
        suspect->length = RECOVERY_AVOID_MAX;
}

void recovery_shun(struct recovery *recovery, const char *node, double now)
{
    struct suspect *suspect = find(recovery, node);

    if (suspect == NULL)
        suspect = add(recovery, node);
    if (suspect != NULL)
        *suspect = (struct suspect){.node = suspect->node, .since = now, .length = INFINITY};
}

void recovery_failed(struct recovery *recovery, const char *node, int nodes, double now)
{
    bool again = recovery->last_failed != NULL && strcmp(recovery->last_failed, node) == 0;

    free(recovery->last_failed);
    recovery->last_failed = NULL;
    if (nodes < 2)
        return; /* the failure says nothing about the node */
    if (again)
        recovery_lost(recovery, node, now);
    else
        recovery->last_failed = strdup(node);
}

double recovery_avoids(const struct recovery *recovery, const char *node, double now)
{
    const struct suspect *suspect = find(recovery, node);

    return suspect != NULL ? left_out(suspect, now) : 0;
}

char *recovery_excluded(const struct recovery *recovery, double now)
{
    size_t size = 1, used = 0;
    char *text;

    for (int i = 0; i < recovery->suspect_count; i++)
        size += strlen(recovery->suspects[i].node) + 1;
    text = calloc(1, size);
    for (int i = 0; text != NULL && i < recovery->suspect_count; i++)
        if (left_out(&recovery->suspects[i], now) > 0)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used > 0 ? "," : "",
                                     recovery->suspects[i].node);
    return text;
}

const char *recovery_suspect(const struct recovery *recovery, int k)
{
    return k < recovery->suspect_count ? recovery->suspects[k].node : NULL;
}

double recovery_next(const struct recovery *recovery, double now)
{
    double next = 0;

    for (int i = 0; i < recovery->suspect_count; i++) {
        double left = left_out(&recovery->suspects[i], now);

        if (left > 0 && !isinf(left) && (next == 0 || left < next))
            next = left;
    }
    return next;
}
