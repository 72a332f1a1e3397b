/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which models a server of a shard is asked to load and to unload, over its own HTTP API. Pure.
 *
 * There are two such APIs:
 *
 *   oip        the model repository extension of the Open Inference Protocol: index, load, unload.
 *              The server loads a model by its name from a directory of its own. There each name is
 *              a link to the version that the list says.
 *   vllm-lora  vLLM's /v1/load_lora_adapter and unload_lora_adapter; /v1/models is its index
 *
 * The caller says which list there is, asks what is to be asked next, and says what was answered.
 * A round asks for the index, unloads, loads, and asks for the index again: a server that only says
 * that it has a model is found out. Models that this start of the server has not been asked for are
 * its own, and are never unloaded. */
#ifndef ELASTIC_MODEL_LOAD_H
#define ELASTIC_MODEL_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <json-c/json.h>

#include "lib/error.h"

/* Words of the key `load`, from 1. */
enum model_load_api { MODEL_LOAD_OIP = 1, MODEL_LOAD_VLLM_LORA };

#define MODEL_LOAD_ANSWER_MAX (16 << 20) /* bytes of an answer that is read */
#define MODEL_LOAD_WHY        320

struct model_load;

/* patience: seconds that a server may be loading a model. NULL: out of memory. */
struct model_load *model_load_create(enum model_load_api api, double patience);
void model_load_destroy(struct model_load *m); /* accepts NULL */

/* The text of a shard's file (agent/leader/service_text.c). -1 with err: it is none, and the list
 * before goes on. Not while a request is under way. */
int model_load_want(struct model_load *m, const char *text, size_t len, struct error *err);

/* A request; strings live until the next call. */
struct model_load_request {
    const char *path; /* of the URL */
    const char *body; /* of a POST; NULL: a GET */
    /* OIP, a model is to be loaded: in the server's directory this name has to be a link to target
     * before. NULL: none */
    const char *link, *target;
    /* … has been unloaded: the link may go. NULL: none */
    const char *unlink;
};

/* What is to be asked now, one request after the other. False: nothing, before the time
 * model_load_due(). */
bool model_load_next(struct model_load *m, double now, struct model_load_request *request);
double model_load_due(const struct model_load *m);
/* To the latest request. status 0: there was no answer. */
void model_load_answered(struct model_load *m, double now, int status, const char *text,
                         size_t len);

struct model_load_state {
    int64_t version; /* of the shard: it has all models of that update; 0: of none so far */
    int64_t wanted;  /* … of the list that there is */
    int failures;    /* rounds of that list in which something has failed */
    const char *why; /* … the latest: one line; "": none has */
    bool has_all;    /* of that list */
};

struct model_load_state model_load_state(const struct model_load *m);

/* How much memory the server says that its models take: {"A": {"version": "1", "bytes": 5}}, once
 * it has all of the list. A new object; NULL: it says nothing. OIP: "memory_usage" of a model in
 * the index, in the form of the protocol's statistics: [{"byte_size": 5}]. */
json_object *model_load_sizes(const struct model_load *m);

#endif
