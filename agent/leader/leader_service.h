/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The service of the job (doc/internals/serve.md): facts for lib/service, and its actions. In a job
 * without a service nothing of this has an effect. */
#ifndef ELASTIC_AGENT_LEADER_LEADER_SERVICE_H
#define ELASTIC_AGENT_LEADER_LEADER_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include <json-c/json.h>

#include "lib/error.h"

struct leader;
struct leader_options;
struct leader_service;

/* NULL: out of memory. */
struct leader_service *leader_service_create(const struct leader_options *options);
void leader_service_destroy(struct leader_service *own); /* accepts NULL */
/* Its timer begins, and ends. */
void leader_service_open(struct leader *leader);
void leader_service_close(struct leader *leader);

bool leader_service_any(const struct leader *leader);
/* Replicas may be others now, or the leader may act by now. */
void leader_service_look(struct leader *leader);
/* The job is about to be over: that is written down. True: it still is being written. */
bool leader_service_busy(const struct leader *leader);

/* ---- what users and routers ask -------------------------------------------------------------- */

/* -1 with err: the service cannot be asked (yet). */
int leader_service_ready(const struct leader *leader, struct error *err);
/* … not even by routers, which may still ask a job that has handed it over. */
int leader_service_routes(const struct leader *leader, struct error *err);
/* The table of routes as it was told last; NULL: none has been. */
const char *leader_service_table(const struct leader *leader, int64_t *revision);
/* A router says what it has, or that it is there (epoch 0, report NULL). */
bool leader_service_routed(struct leader *leader, const char *router, int64_t epoch,
                           int64_t revision, json_object *report);
/* The repository is looked at now. */
void leader_service_apply(struct leader *leader);
void leader_service_flush(struct leader *leader, bool repack);
/* A server says how much its models take (model_load_sizes()); NULL: it does not. */
void leader_service_measured(struct leader *leader, json_object *sizes);
/* The model of that name or key (lib/service.h). */
const char *leader_service_model(const struct leader *leader, const char *name, const char *key,
                                 struct error *err);
/* A model moves to another shard. -1 with err: it cannot. */
int leader_service_move(struct leader *leader, const char *model, int shard, struct error *err);
/* A shard gets these models, NULL after the last, and no others: service_place(). */
int leader_service_place(struct leader *leader, int shard, char *const *models, int *changes,
                         struct error *err);
/* It is served no more, or again. */
int leader_service_withdraw(struct leader *leader, const char *model, struct error *err);
void leader_service_serve(struct leader *leader, const char *model);
/* What `selastic shard` shows. */
void leader_service_describe(struct leader *leader, json_object *into);
/* … and what is counted, as "service"; nothing as long as another job runs it. */
void leader_service_counts(struct leader *leader, json_object *into);

#endif
