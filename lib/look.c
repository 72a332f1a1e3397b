/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When Slurm is asked (look.h). */
#include "lib/look.h"

#include <math.h>
#include <string.h>

#define GAP        0.5  /* seconds between two looks, whatever changes */
#define GAP_URGENT 0.05 /* … when Slurm takes something back */
#define SOON       1.0  /* the first look at a new phase of a job */
#define SLOWEST    20.0 /* seconds between two looks at a job that starts or leaves */
#define LONG       30.0 /* seconds after which a change takes long */
/* Seconds between two looks at jobs whose nodes power up. A preempted one holds its nodes until it
 * is cancelled: Slurm signals nobody, and forgets the grace time. */
#define BOOTING     5.0
#define FAILED      2.0 /* seconds after the first look without an answer */
#define FAILED_MAX  60.0
#define RELAX_FIRST 20.0 /* seconds between two attempts to be content with less time */
#define RELAX_PAUSE 30.0 /* … where no nodes were idle, and more and more */
#define RELAX_MAX   180.0
#define POWER       30.0 /* seconds between two looks at which nodes are powered down */
#define GATHER      0.3  /* seconds in which all agents of a job have got their signal */
#define NOTICED     5.0  /* seconds between two looks because of notices */
#define GOOD        0.2  /* seconds for an answer of a slurmctld that has time */
#define PACE_MAX    10.0
#define REST_TURNS  3 /* at rest each third question may be for a job */

static uint32_t mix(uint32_t x)
{
    x ^= x >> 16;
    x *= UINT32_C(0x7feb352d);
    x ^= x >> 15;
    x *= UINT32_C(0x846ca68b);
    return x ^ (x >> 16);
}

/* From 1 - LOOK_JITTER to 1 + LOOK_JITTER; the same until the next look. */
static double jitter(const struct look *look, uint32_t what)
{
    uint32_t number = mix(look->seed + mix(look->count + mix(what)));

    return 1 - LOOK_JITTER + 2 * LOOK_JITTER * number / UINT32_MAX;
}

/* All pauses are so many times longer. */
static double pace(const struct look *look)
{
    double times = look->latency / GOOD;

    return times < 1 ? 1 : times > PACE_MAX ? PACE_MAX : times;
}

static double within(double value, double least, double most)
{
    return value < least ? least : value > most ? most : value;
}

/* The first moment after which nothing is known. INFINITY: there is none. */
static double next_check(const struct look_job *job)
{
    double next = INFINITY;

    for (int i = 0; i < LOOK_CHECKS; i++)
        if (job->checks[i] > 0 && job->checks[i] > job->seen && job->checks[i] < next)
            next = job->checks[i];
    return next;
}

static bool takes_long(const struct look_job *job)
{
    return job->phase != LOOK_IS_SETTLED && job->phase != LOOK_IS_BOOTING &&
           job->seen - job->since >= LONG;
}

static int count_booting(const struct look_input *in)
{
    int count = 0;

    for (int i = 0; i < in->job_count; i++)
        count += in->jobs[i].phase == LOOK_IS_BOOTING;
    return count;
}

/* When this job is to be asked for because it changes. INFINITY: it does not. */
static double change_due(const struct look *look, const struct look_input *in, int index)
{
    const struct look_job *job = &in->jobs[index];
    double known = job->seen - job->since; /* how old the phase was at the last look */
    double pause = job->phase == LOOK_IS_PENDING ? within(known * 0.6, 5, LOOK_WAIT)
                   : job->phase == LOOK_IS_BOOTING
                       ? within(known / 3, 1, BOOTING * count_booting(in))
                       : within(known / 3, 1, SLOWEST);

    if (job->phase == LOOK_IS_SETTLED)
        return INFINITY;
    if (known < 0)
        return job->since + SOON;
    return job->seen + pause * pace(look) * jitter(look, (uint32_t)index);
}

static void add_job(struct look_output *out, int index)
{
    if (out->job_count < LOOK_JOBS_MAX)
        out->jobs[out->job_count++] = index;
}

static void later(struct look_output *out, double at)
{
    if (at < out->at)
        out->at = at;
}

/* What changes, and what must be known by now. */
static void look_at_changes(const struct look *look, const struct look_input *in,
                            struct look_output *out)
{
    double slot = look->waited + LOOK_WAIT * pace(look) * jitter(look, UINT32_MAX);
    int longest = -1;

    for (int i = 0; i < in->job_count; i++) {
        const struct look_job *job = &in->jobs[i];
        double check = next_check(job), due = change_due(look, in, i);
        bool waits = takes_long(job);

        if (i == 0 && job->seen < 0)
            check = in->now; /* nothing is known of the base */
        if (waits && due < slot && look->waited > 0)
            due = slot;
        later(out, check < due ? check : due);
        if (check <= in->now || (!waits && due <= in->now))
            add_job(out, i);
        else if (due <= in->now && (longest < 0 || job->seen < in->jobs[longest].seen))
            longest = i;
    }
    if (longest >= 0) {
        add_job(out, longest);
        out->waited = true;
    }
}

/* One question: for a node, or for a job that has not been asked for in a long time. */
static void look_at_rest(const struct look *look, const struct look_input *in,
                         struct look_output *out)
{
    double at = look->rest + LOOK_REST * pace(look) * jitter(look, UINT32_MAX - 1);
    bool nodes = in->node_count > 0 && in->drain_look <= 0;
    int oldest = -1;

    for (int i = 0; i < in->job_count; i++)
        if (in->jobs[i].phase == LOOK_IS_SETTLED &&
            (oldest < 0 || in->jobs[i].seen < in->jobs[oldest].seen))
            oldest = i;
    if (oldest < 0 && !nodes)
        return;
    if (!nodes && in->jobs[oldest].seen + LOOK_SETTLED > at)
        at = in->jobs[oldest].seen + LOOK_SETTLED;
    later(out, at);
    if (at > in->now || out->job_count > 0 || (nodes && out->nodes != LOOK_NO_NODE))
        return;
    out->rest = true;
    if (oldest >= 0 && in->jobs[oldest].seen + LOOK_SETTLED <= in->now &&
        (!nodes || look->turn % REST_TURNS == 0))
        add_job(out, oldest);
    else
        out->nodes = nodes ? LOOK_NODE_IN_TURN : LOOK_NO_NODE;
}

static void look_at_all_nodes(const struct look *look, const struct look_input *in,
                              struct look_output *out)
{
    double least = 1 - LOOK_JITTER / 2, pause = in->drain_look * pace(look);
    double at = in->drain_looked + pause * (least + (jitter(look, UINT32_MAX - 2) - 1) / 2);

    if (in->drain_look <= 0 || in->node_count == 0)
        return;
    if (in->drain_looked < 0)
        at = in->now;
    later(out, at);
    if (at <= in->now)
        out->nodes = LOOK_ALL_NODES;
}

static void look_at_noticed(const struct look *look, const struct look_input *in,
                            struct look_output *out)
{
    double at = in->noticed + GATHER;

    if (in->noticed_count == 0)
        return;
    if (in->notice_looked >= 0 && at < in->notice_looked + NOTICED * pace(look))
        at = in->notice_looked + NOTICED * pace(look);
    later(out, at);
    if (at <= in->now && out->nodes != LOOK_ALL_NODES)
        out->nodes = in->noticed_count > LOOK_FEW ? LOOK_ALL_NODES : LOOK_NOTICED_NODES;
}

static void look_at_time(const struct look *look, const struct look_input *in,
                         struct look_output *out)
{
    double pause = in->relax_idle
                       ? RELAX_FIRST
                       : within(2 * (in->relaxed - in->relax_since), RELAX_PAUSE, RELAX_MAX);
    double at = in->relaxed < in->relax_since
                    ? in->relax_since
                    : in->relaxed + pause * pace(look) * jitter(look, UINT32_MAX - 3);

    if (in->relax_since < 0)
        return;
    later(out, at);
    out->relax = at <= in->now;
}

static void look_at_power(const struct look *look, const struct look_input *in,
                          struct look_output *out)
{
    double pause = POWER * pace(look) * (jitter(look, UINT32_MAX - 5) + LOOK_JITTER);
    double at = in->power_wanted > in->power_looked ? in->power_wanted : in->power_looked + pause;

    if (in->power_wanted <= in->power_looked && !in->power_pending)
        return;
    later(out, at);
    out->power = at <= in->now;
}

/* A slurmctld that has just come back is not to be asked by everybody for everything. */
static double after_failures(const struct look *look)
{
    double pause = FAILED;

    for (int i = 1; i < look->failures && pause < FAILED_MAX; i++)
        pause *= 2;
    return look->last + within(pause, FAILED, FAILED_MAX) * jitter(look, UINT32_MAX - 4);
}

/* Has Slurm taken something back since the last look? What it says why is wanted before the next
 * world is formed. */
static bool is_urgent(const struct look *look, const struct look_input *in)
{
    for (int i = 0; i < in->job_count; i++)
        if (in->jobs[i].checks[0] > look->last && in->jobs[i].checks[0] <= in->now)
            return true;
    return false;
}

void look_next(const struct look *look, const struct look_input *in, struct look_output *out)
{
    double gap = is_urgent(look, in) ? GAP_URGENT : GAP;
    double earliest = look->failures > 0 ? after_failures(look)
                      : look->count > 0  ? look->last + gap * pace(look)
                                         : in->now;

    memset(out, 0, sizeof(*out));
    out->at = INFINITY;
    if (in->now < earliest) {
        out->at = earliest;
        return;
    }
    if (in->list) {
        out->list = true;
        out->at = in->now;
    }
    look_at_changes(look, in, out);
    if (look->failures > 0 && out->job_count > 1)
        out->job_count = 1;
    if (look->failures > 0 && out->job_count > 0)
        return;
    look_at_all_nodes(look, in, out);
    look_at_noticed(look, in, out);
    look_at_time(look, in, out);
    look_at_power(look, in, out);
    look_at_rest(look, in, out);
}

void look_asked(struct look *look, const struct look_output *out, double now, int questions,
                double seconds, bool answered)
{
    double each = questions > 0 ? seconds / questions : seconds;

    look->count++;
    look->last = now;
    if (out->rest) {
        look->rest = now;
        look->turn++;
    }
    if (out->waited)
        look->waited = now;
    look->failures = answered ? 0 : look->failures + 1;
    if (answered)
        look->latency = each > look->latency ? each : (look->latency + each) / 2;
}
