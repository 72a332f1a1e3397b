/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which workers are slower than the others (straggler.h). */
#include "lib/straggler.h"

#include <stdlib.h>
#include <string.h>

#define MAD_TO_SD 1.4826 /* of a normal distribution */

struct rank {
    /* Reported so far, and at the last look that counted. */
    uint64_t steps, looked_steps;
    double seconds, looked_seconds;
    uint32_t slow; /* bit i: in the look before i others */
    double ratio;  /* the mean of the window, as far as it is full */
    double since;  /* it is a straggler; 0: it is none */
};

struct straggler {
    struct rank *ranks;
    double *times, *sorted; /* of a look */
    struct straggler_finding *findings;
    int count, found;
    int looks;      /* in this world, up to the window */
    double begun;   /* this world */
    double counted; /* the first look that has counted; 0: none has */
};

struct straggler *straggler_create(void)
{
    return calloc(1, sizeof(struct straggler));
}

static void forget(struct straggler *s)
{
    free(s->ranks);
    free(s->times);
    free(s->sorted);
    free(s->findings);
    memset(s, 0, sizeof(*s));
}

void straggler_destroy(struct straggler *straggler)
{
    if (straggler == NULL)
        return;
    forget(straggler);
    free(straggler);
}

int straggler_world(struct straggler *straggler, int ranks, double now)
{
    size_t count = ranks > 0 ? (size_t)ranks : 0;

    forget(straggler);
    straggler->ranks = calloc(count + 1, sizeof(*straggler->ranks));
    straggler->times = calloc(count + 1, sizeof(*straggler->times));
    straggler->sorted = calloc(count + 1, sizeof(*straggler->sorted));
    straggler->findings = calloc(count + 1, sizeof(*straggler->findings));
    straggler->begun = now;
    if (straggler->ranks == NULL || straggler->times == NULL || straggler->sorted == NULL ||
        straggler->findings == NULL) {
        forget(straggler);
        return -1;
    }
    straggler->count = (int)count;
    return 0;
}

void straggler_heard(struct straggler *straggler, int rank, uint64_t steps, double seconds)
{
    struct rank *r;

    if (rank < 0 || rank >= straggler->count || !(seconds >= 0))
        return;
    r = &straggler->ranks[rank];
    if (steps < r->steps || seconds < r->seconds) {
        r->looked_steps = steps;
        r->looked_seconds = seconds;
    }
    r->steps = steps;
    r->seconds = seconds;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Sorts values. */
static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), compare);
    return count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* The times of all ranks since the last look; false: one has made no step. */
static bool take_times(struct straggler *s)
{
    for (int i = 0; i < s->count; i++)
        if (s->ranks[i].steps <= s->ranks[i].looked_steps)
            return false;
    for (int i = 0; i < s->count; i++) {
        struct rank *r = &s->ranks[i];

        s->times[i] = (r->seconds - r->looked_seconds) / (double)(r->steps - r->looked_steps);
        r->looked_steps = r->steps;
        r->looked_seconds = r->seconds;
    }
    return true;
}

/* Note which ranks were slow. */
static void compare_times(struct straggler *s)
{
    double middle, deviation, bound;

    memcpy(s->sorted, s->times, (size_t)s->count * sizeof(*s->times));
    middle = median(s->sorted, s->count);
    for (int i = 0; i < s->count; i++)
        s->sorted[i] = s->times[i] > middle ? s->times[i] - middle : middle - s->times[i];
    deviation = MAD_TO_SD * median(s->sorted, s->count);
    bound = STRAGGLER_FACTOR * middle;
    if (bound < middle + STRAGGLER_MADS * deviation)
        bound = middle + STRAGGLER_MADS * deviation;
    if (bound < middle + STRAGGLER_LEAST)
        bound = middle + STRAGGLER_LEAST;
    if (s->looks < STRAGGLER_WINDOW)
        s->looks++;
    for (int i = 0; i < s->count; i++) {
        struct rank *r = &s->ranks[i];
        double ratio = middle > 0 ? s->times[i] / middle : 1;

        r->slow = r->slow << 1 | (s->times[i] > bound);
        r->ratio += (ratio - r->ratio) / s->looks;
    }
}

/* True: other ranks than before. */
static bool find(struct straggler *s, double now)
{
    bool settled = s->looks >= STRAGGLER_WINDOW && now - s->counted >= STRAGGLER_SECONDS,
         other = false;

    s->found = 0;
    for (int i = 0; i < s->count; i++) {
        struct rank *r = &s->ranks[i];
        int slow = __builtin_popcount(r->slow);
        bool found = r->since > 0 ? slow > STRAGGLER_LEAVE : settled && slow >= STRAGGLER_ENTER;

        other = other || found != (r->since > 0);
        if (found != (r->since > 0))
            r->since = found ? now : 0;
        if (found)
            s->findings[s->found++] = (struct straggler_finding){
                .rank = i, .factor = r->ratio, .since = r->since};
    }
    return other;
}

bool straggler_look(struct straggler *straggler, double now)
{
    bool warm = now - straggler->begun >= STRAGGLER_WARM;

    if (straggler->count < STRAGGLER_RANKS || !take_times(straggler) || !warm)
        return false;
    if (straggler->counted == 0)
        straggler->counted = now;
    compare_times(straggler);
    return find(straggler, now);
}

const struct straggler_finding *straggler_found(const struct straggler *straggler, int k)
{
    return k < straggler->found ? &straggler->findings[k] : NULL;
}
