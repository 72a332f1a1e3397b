/* SPDX-License-Identifier: GPL-2.0-or-later */
/* In which shard each model belongs: best fit by free memory. Pure.
 *
 * A shard has room for so many bytes of models. A model that is in a shard stays there, also if
 * others would now fit better: a move is a restart of two shards. Only a model that has grown, and
 * has no room there any more, gets another shard. While it moves, it is in both. The same question
 * always has the same answer. */
#ifndef ELASTIC_SHARD_PLAN_H
#define ELASTIC_SHARD_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#define SHARD_PLAN_SHARDS_MAX 10000
/* No size is larger, so that a sum of a million is a number, too. */
#define SHARD_PLAN_SIZE_MAX (INT64_MAX / 1000000)

struct shard_plan_model {
    const char *name; /* of two with equal sizes the first one has the smaller name */
    int64_t size;     /* bytes that it needs, at least 1 */
    int shard;        /* where it is; 0: in none */
    int64_t present;  /* … and how much it takes there now */
    int to;           /* out: where it belongs; 0: in none, for there is no room */
    bool refused;     /* out: there is no room for it as it should be: to is shard */
};

struct shard_plan_shard {
    int number;     /* 1 to SHARD_PLAN_SHARDS_MAX */
    int64_t leaves; /* taken by models that leave it, and of which no present says so */
    bool closed;    /* no model may come. Its number is taken */
};

struct shard_plan_options {
    int64_t capacity; /* bytes of a shard */
    int max;          /* shards there may be, at most SHARD_PLAN_SHARDS_MAX */
};

/* Fills to and refused of each model. Models that fit where they are stay. The others follow, the
 * largest first: each into the shard with the least room that is enough, of two the one with the
 * smaller number, else into a new one with the smallest free number. The shards that there are come
 * in any order, each once. -1: out of memory. */
int shard_plan(const struct shard_plan_options *options, const struct shard_plan_shard *shards,
               int shard_count, struct shard_plan_model *models, int count);

/* The same, and then as many shards as it can be are emptied: the one with the least in it first,
 * as long as all its models have room in others. Only what fits beside what is there now is moved,
 * so that no move waits for another. -1: out of memory. */
int shard_plan_repack(const struct shard_plan_options *options,
                      const struct shard_plan_shard *shards, int shard_count,
                      struct shard_plan_model *models, int count);

/* How many bytes a model is taken to need: what was measured, else what was said, else 1.2 times
 * its files, else the default. Values of 0 are not known. At most SHARD_PLAN_SIZE_MAX. */
int64_t shard_plan_size(int64_t measured, int64_t given, int64_t files, int64_t otherwise);

#endif
