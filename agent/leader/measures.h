/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is counted for metrics since this leader leads: time, changes, pauses, questions to
 * slurmctld. A takeover and a requeue begin at 0, as counters of Prometheus may. */
#ifndef ELASTIC_AGENT_LEADER_MEASURES_H
#define ELASTIC_AGENT_LEADER_MEASURES_H

#include <stdint.h>

#include <json-c/json.h>

struct leader;
struct measures;

/* NULL: out of memory. */
struct measures *measures_create(void);
void measures_destroy(struct measures *measures);

/* The phase of the change of worlds may be another one now. */
void measures_phase(struct leader *leader);
/* A world of that kind has begun. */
void measures_world(struct leader *leader, const char *kind);
/* The first step of a world has come so many seconds after the world before was held. */
void measures_pause(struct leader *leader, double seconds);
/* The program reports its progress in the world of that generation. */
void measures_progress(struct leader *leader, int generation, int64_t done);
/* sbatch has been started. */
void measures_submitted(struct leader *leader);
/* A new object, as lib/metrics.c reads it. */
json_object *measures_json(struct leader *leader);

#endif
