/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When a leader asks Slurm next, and what. Pure: time is a parameter, in seconds.
 *
 * Each question is one request to slurmctld (an RPC), about one job or one node, so that its cost
 * does not depend on what else the cluster or the user has. What the members say by themselves is
 * not asked: that they have joined, that Slurm has sent a signal, that they are gone.
 *
 * - At rest one question is asked in each LOOK_REST seconds: for the nodes of the members in turn,
 *   and now and then for a job.
 * - A job that changes is asked for soon, and then less and less often. Those that take long share
 *   one question in each LOOK_WAIT seconds.
 * - When slurmctld's plugin has told members that a node has changed, all their nodes are asked for
 *   soon: one by one, or as a list if they are more than LOOK_FEW.
 * - When slurmctld is slow all pauses are longer. When it does not answer there is one question,
 *   after pauses that double. */
#ifndef ELASTIC_LOOK_H
#define ELASTIC_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#define LOOK_JOBS_MAX 16 /* jobs in one look */
#define LOOK_CHECKS   3
#define LOOK_REST     40.0  /* seconds between two questions at rest */
#define LOOK_WAIT     40.0  /* … between two for jobs that have been changing for long */
#define LOOK_SETTLED  120.0 /* … between two for the same job at rest */
#define LOOK_JITTER   0.2   /* each pause is up to so much shorter or longer */
#define LOOK_FEW      8
#define LOOK_NEVER    (-1.0)

enum look_phase {
    LOOK_IS_SETTLED,
    LOOK_IS_PENDING,
    LOOK_IS_BOOTING, /* its nodes power up, for minutes */
    LOOK_IS_STARTING,
    LOOK_IS_LEAVING, /* nobody of it is there any more */
};

struct look_job {
    enum look_phase phase;
    double since; /* of the phase, or of the latest event in it */
    double seen;  /* when Slurm has last answered; LOOK_NEVER */
    /* What is known has to be from after each of these moments, once it has come. 0: unused. The
     * first one is urgent: only a moment lies between the look before and this one. */
    double checks[LOOK_CHECKS];
};

/* What has to be remembered. All zero but the seed at the beginning. */
struct look {
    uint32_t seed;
    uint32_t count;      /* looks so far */
    uint32_t turn;       /* … at rest */
    double last;         /* the end of the last look */
    double rest, waited; /* the last question at rest; … for what has been changing for long */
    double latency;      /* of one question, lately */
    int failures;        /* in a row */
};

struct look_input {
    double now;
    const struct look_job *jobs; /* the base is the first; the others are extensions */
    int job_count;
    int node_count; /* of members */
    /* Seconds between two looks at the list of all nodes, instead of one node in turn; 0: none. */
    double drain_look, drain_looked;
    /* So many members have been told that a node of theirs has changed (lib/drain_notices.h), the
     * first of them then. When nodes were last asked for because of that; LOOK_NEVER. */
    int noticed_count;
    double noticed, notice_looked;
    bool list; /* all jobs of the user are to be asked for */
    /* A pending extension may be given less time, from then on; LOOK_NEVER: none. When that was
     * last tried, for any; LOOK_NEVER. Were nodes idle then? If not, it does not start for less
     * time. */
    double relax_since, relaxed;
    bool relax_idle;
    /* Which nodes of a pool are powered down (lib/sleepers.h). An extension has waited for the
     * answer since then; 0: none does. One is pending that stays off them. When that was last
     * asked; 0: never. */
    double power_wanted;
    bool power_pending;
    double power_looked;
};

enum look_nodes { LOOK_NO_NODE, LOOK_NODE_IN_TURN, LOOK_NOTICED_NODES, LOOK_ALL_NODES };

struct look_output {
    double at; /* nothing has to be asked before; not after now: what follows is to be asked now */
    int jobs[LOOK_JOBS_MAX]; /* indices */
    int job_count;
    enum look_nodes nodes;
    bool list, relax, power;
    bool rest, waited; /* for look_asked() */
};

void look_next(const struct look *look, const struct look_input *in, struct look_output *out);

/* The look has been made: with so many questions, in so many seconds. */
void look_asked(struct look *look, const struct look_output *out, double now, int questions,
                double seconds, bool answered);

#endif
