/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which models a server is asked to load (model_load.h). */
#include "lib/model_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/shard_commands.h"
#include "lib/shard_plan.h"

#define RECHECK      5.0 /* seconds from one look at a server that has all to the next one */
#define LOADING      0.5 /* … while it is loading by itself */
#define PAUSE_FIRST  1.0
#define PAUSE_MOST   30.0
#define REASON_BYTES 160

enum presence { ABSENT, COMES, PRESENT };

struct model {
    char *name;
    char *version, *path; /* wanted; NULL: not any more */
    char *has;            /* path that it has loaded; "": perhaps one; NULL: none by us */
    enum presence there;  /* in the latest index */
    int64_t size;         /* … bytes of memory; 0: it does not say */
    char reason[REASON_BYTES];
    bool tried, failed; /* in this round */
    double comes;       /* it has been on its way since then; 0: it is not */
};

enum phase { PHASE_LOOK, PHASE_ACT };

struct model_load {
    enum model_load_api api;
    double patience, due;
    struct model *models; /* by name */
    int count;
    bool listed; /* there has been a list */
    int64_t version, wanted;
    bool has_all;
    enum phase phase;
    bool acted, failed; /* in this round */
    int failures;
    char why[MODEL_LOAD_WHY];
    struct model *asked; /* NULL: the index is */
    bool unloads;
    char path[64 + SHARD_NAME_MAX];
    char *body;
};

/* ---- the list -------------------------------------------------------------------------------- */

static void clear_model(struct model *model)
{
    free(model->name);
    free(model->version);
    free(model->path);
    free(model->has);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct model *)a)->name, ((const struct model *)b)->name);
}

static struct model *find(const struct model_load *m, const char *name)
{
    const struct model key = {.name = (char *)(uintptr_t)name};

    if (name == NULL || m->count == 0)
        return NULL;
    return bsearch(&key, m->models, (size_t)m->count, sizeof(*m->models), by_name);
}

static int read_model(json_object *said, struct model *model, struct error *err)
{
    const char *name = json_get_string(said, "name"), *version = json_get_string(said, "version");
    const char *path = json_get_string(said, "path");

    if (name == NULL || !shard_name_ok(name) || version == NULL || !shard_name_ok(version))
        return error_set(err, "'%s' %s is no name and version of a model", error_value(name).text,
                         error_value(version).text);
    if (path == NULL || path[0] != '/')
        return error_set(err, "%s: '%s' is no absolute path", name, error_value(path).text);
    model->name = strdup(name);
    model->version = strdup(version);
    model->path = strdup(path);
    return model->name != NULL && model->version != NULL && model->path != NULL
               ? 0
               : error_set(err, "out of memory");
}

static void clear_models(struct model *models, int count)
{
    for (int i = 0; i < count; i++)
        clear_model(&models[i]);
    free(models);
}

/* The new list, with room for all models that there are by now. NULL with err. */
static struct model *read_list(const struct model_load *m, json_object *list, int *count,
                               struct error *err)
{
    size_t said = json_object_array_length(list);
    struct model *models;

    *count = 0;
    if (said > SHARD_COMMANDS_MODELS_MAX) {
        error_set(err, "%zu models are more than %d", said, SHARD_COMMANDS_MODELS_MAX);
        return NULL;
    }
    models = calloc(said + (size_t)m->count + 1, sizeof(*models));
    if (models == NULL)
        error_set(err, "out of memory");
    for (size_t i = 0; models != NULL && i < said; i++) {
        if (read_model(json_object_array_get_idx(list, i), &models[(*count)++], err) == 0)
            continue;
        clear_models(models, *count);
        return NULL;
    }
    if (models == NULL)
        return NULL;
    qsort(models, (size_t)*count, sizeof(*models), by_name);
    for (int i = 1; i < *count; i++) {
        if (strcmp(models[i - 1].name, models[i].name) != 0)
            continue;
        error_set(err, "%s is there twice", models[i].name);
        clear_models(models, *count);
        return NULL;
    }
    return models;
}

/* What the server has been asked for stays known, so that it can be unloaded. */
static void take_list(struct model_load *m, struct model *models, int count)
{
    const struct model_load next = {.models = models, .count = count};

    for (int i = 0; i < m->count; i++) {
        struct model *old = &m->models[i], *kept = find(&next, old->name);

        if (kept == NULL && old->has == NULL) {
            clear_model(old);
            continue;
        }
        if (kept == NULL) {
            kept = &models[count++];
            kept->name = old->name;
            old->name = NULL;
        }
        kept->has = old->has;
        kept->there = old->there;
        old->has = NULL;
        clear_model(old);
    }
    free(m->models);
    m->models = models;
    m->count = count;
    qsort(m->models, (size_t)count, sizeof(*models), by_name);
}

int model_load_want(struct model_load *m, const char *text, size_t len, struct error *err)
{
    json_object *said = json_text_parse(text, len, err), *list = NULL;
    struct model *models = NULL;
    int64_t version = 0;
    int count = 0;

    if (said == NULL)
        return -1;
    if (!json_get_int(said, "update", 0, INT64_MAX, &version) ||
        !json_object_object_get_ex(said, "models", &list) ||
        !json_object_is_type(list, json_type_array))
        error_set(err, "it needs models, a list, and update, a number");
    else
        models = read_list(m, list, &count, err);
    json_object_put(said);
    if (models == NULL)
        return -1;
    take_list(m, models, count);
    m->listed = true;
    m->wanted = version;
    m->has_all = m->acted = m->failed = false;
    m->phase = PHASE_LOOK;
    m->due = 0;
    m->failures = 0;
    m->why[0] = '\0';
    m->asked = NULL;
    return 0;
}

/* ---- a round --------------------------------------------------------------------------------- */

static void fail(struct model_load *m, struct model *model, const char *why)
{
    struct error line;

    m->failed = true;
    if (model == NULL) {
        error_set(&line, "%s", why);
    } else {
        model->failed = true;
        error_set(&line, "%s%s%s: %s", model->name, model->version != NULL ? " " : "",
                  model->version != NULL ? model->version : "", why);
    }
    snprintf(m->why, sizeof(m->why), "%.*s", MODEL_LOAD_WHY - 1, line.text);
}

static double pause_of(int failures)
{
    double pause = PAUSE_FIRST;

    for (int i = 1; i < failures && pause < PAUSE_MOST; i++)
        pause *= 2;
    return pause < PAUSE_MOST ? pause : PAUSE_MOST;
}

static void end_round(struct model_load *m, double now)
{
    bool comes = false;

    for (int i = 0; i < m->count; i++) {
        comes = comes || (m->models[i].path != NULL && m->models[i].comes > 0);
        m->models[i].tried = m->models[i].failed = false;
    }
    if (m->failed) {
        m->failures++;
        m->due = now + pause_of(m->failures);
    } else if (comes) {
        m->due = now + LOADING;
    } else {
        m->has_all = true;
        m->version = m->wanted;
        m->failures = 0;
        m->why[0] = '\0';
        m->due = now + RECHECK;
    }
    m->acted = m->failed = false;
    m->phase = PHASE_LOOK;
}

static bool is_done(const struct model *model)
{
    return model->path == NULL ? model->has == NULL
                               : model->has != NULL && strcmp(model->has, model->path) == 0 &&
                                     model->there == PRESENT;
}

/* Those that are not wanted any more make room first. */
static struct model *next_model(struct model_load *m, bool unload)
{
    for (int i = 0; i < m->count; i++) {
        struct model *model = &m->models[i];

        if ((model->path == NULL) == unload && !is_done(model) && !model->tried && !model->failed &&
            model->comes == 0)
            return model;
    }
    return NULL;
}

/* A server that has said yes, and does not have it, is not asked again in this round. */
static void find_out(struct model_load *m)
{
    for (int i = 0; i < m->count; i++) {
        struct model *model = &m->models[i];
        char why[REASON_BYTES + 80];

        if (model->path == NULL || !model->tried || model->failed || model->there != ABSENT)
            continue;
        snprintf(why, sizeof(why), "the server does not have it, though it has loaded it%s%s",
                 model->reason[0] != '\0' ? ": " : "", model->reason);
        free(model->has);
        model->has = NULL;
        fail(m, model, why);
    }
}

/* ---- requests -------------------------------------------------------------------------------- */

static char *lora_body(const struct model *model, bool unload)
{
    json_object *body = json_object_new_object();
    char *text;

    json_object_object_add(body, "lora_name", json_object_new_string(model->name));
    if (!unload)
        json_object_object_add(body, "lora_path", json_object_new_string(model->path));
    /* Else it refuses a name that it has. */
    if (!unload && model->there == PRESENT)
        json_object_object_add(body, "load_inplace", json_object_new_boolean(true));
    text = strdup(json_object_to_json_string_ext(body, JSON_C_TO_STRING_PLAIN |
                                                           JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(body);
    return text;
}

static bool ask_index(struct model_load *m, struct model_load_request *request)
{
    m->asked = NULL;
    snprintf(m->path, sizeof(m->path),
             m->api == MODEL_LOAD_OIP ? "/v2/repository/index" : "/v1/models");
    if (m->api == MODEL_LOAD_OIP)
        m->body = strdup("{}");
    *request = (struct model_load_request){.path = m->path, .body = m->body};
    return m->api != MODEL_LOAD_OIP || m->body != NULL;
}

static bool ask_model(struct model_load *m, struct model *model, bool unload,
                      struct model_load_request *request)
{
    m->asked = model;
    m->unloads = unload;
    m->acted = true;
    if (m->api == MODEL_LOAD_OIP)
        snprintf(m->path, sizeof(m->path), "/v2/repository/models/%s/%s", model->name,
                 unload ? "unload" : "load");
    else
        snprintf(m->path, sizeof(m->path), "/v1/%s",
                 unload ? "unload_lora_adapter" : "load_lora_adapter");
    m->body = m->api == MODEL_LOAD_OIP ? strdup("{}") : lora_body(model, unload);
    *request = (struct model_load_request){.path = m->path, .body = m->body};
    if (m->api == MODEL_LOAD_OIP && !unload) {
        request->link = model->name;
        request->target = model->path;
    } else if (m->api == MODEL_LOAD_OIP) {
        request->unlink = model->name;
    }
    return m->body != NULL;
}

bool model_load_next(struct model_load *m, double now, struct model_load_request *request)
{
    struct model *model;

    free(m->body);
    m->body = NULL;
    if (!m->listed || now < m->due)
        return false;
    if (m->phase == PHASE_LOOK)
        return ask_index(m, request);
    if ((model = next_model(m, true)) != NULL)
        return ask_model(m, model, true, request);
    if ((model = next_model(m, false)) != NULL)
        return ask_model(m, model, false, request);
    if (m->acted) { /* is it true? */
        m->acted = false;
        m->phase = PHASE_LOOK;
        return ask_index(m, request);
    }
    end_round(m, now);
    return false;
}

double model_load_due(const struct model_load *m)
{
    return m->due;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* The text of an error, as servers say it. */
static const char *error_of(json_object *said)
{
    json_object *inner = NULL;
    const char *text = json_get_string(said, "error");

    if (text == NULL)
        text = json_get_string(said, "message");
    if (text == NULL && json_object_object_get_ex(said, "error", &inner) &&
        json_object_is_type(inner, json_type_object))
        text = json_get_string(inner, "message");
    return text;
}

static void fail_answer(struct model_load *m, struct model *model, int status, const char *text,
                        size_t len)
{
    json_object *said = status != 0 ? json_text_parse(text, len, NULL) : NULL;
    const char *words = said != NULL ? error_of(said) : NULL;
    char why[400];

    if (status == 0)
        snprintf(why, sizeof(why), "%s: no answer", m->path);
    else
        snprintf(why, sizeof(why), "%s: HTTP status %d%s%.200s", m->path, status,
                 words != NULL ? ": " : "", words != NULL ? words : "");
    fail(m, model, why);
    json_object_put(said);
}

static void note(struct model *model, enum presence there, const char *reason)
{
    /* One version of it is enough. */
    if (there > model->there)
        model->there = there;
    snprintf(model->reason, sizeof(model->reason), "%.*s", REASON_BYTES - 1,
             reason != NULL ? reason : "");
}

/* Of CPUs and GPUs together, as a shard's capacity is. */
static void note_size(struct model *model, json_object *usage)
{
    size_t count = json_object_is_type(usage, json_type_array) ? json_object_array_length(usage)
                                                               : 0;

    for (size_t i = 0; i < count; i++) {
        int64_t bytes;

        if (json_get_int(json_object_array_get_idx(usage, i), "byte_size", 0, SHARD_PLAN_SIZE_MAX,
                         &bytes) &&
            model->size <= SHARD_PLAN_SIZE_MAX - bytes)
            model->size += bytes;
    }
}

static enum presence state_of(const char *state)
{
    if (state != NULL && strcmp(state, "READY") == 0)
        return PRESENT;
    return state != NULL && strcmp(state, "LOADING") == 0 ? COMES : ABSENT;
}

static int note_all(struct model_load *m, json_object *list)
{
    const char *key = m->api == MODEL_LOAD_OIP ? "name" : "id";

    for (size_t i = 0; i < json_object_array_length(list); i++)
        if (json_get_string(json_object_array_get_idx(list, i), key) == NULL)
            return -1;
    for (int i = 0; i < m->count; i++) {
        m->models[i].there = ABSENT;
        m->models[i].size = 0;
        m->models[i].reason[0] = '\0';
    }
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *said = json_object_array_get_idx(list, i);
        struct model *model = find(m, json_get_string(said, key));

        if (model == NULL)
            continue;
        note(model, m->api == MODEL_LOAD_OIP ? state_of(json_get_string(said, "state")) : PRESENT,
             json_get_string(said, "reason"));
        note_size(model, json_object_object_get(said, "memory_usage"));
    }
    return 0;
}

/* OIP's is an array, vLLM's an object. A new object; NULL: it is none. */
static json_object *parse_index(const struct model_load *m, const char *text, size_t len)
{
    json_object *said = NULL;
    char *whole = NULL;
    int rc;

    if (m->api == MODEL_LOAD_VLLM_LORA)
        return json_text_parse(text, len, NULL);
    rc = asprintf(&whole, "{\"data\":%.*s}", (int)len, text);
    if (rc > 0)
        said = json_text_parse(whole, (size_t)rc, NULL);
    if (rc >= 0)
        free(whole);
    if (said != NULL && json_object_object_length(said) != 1) {
        json_object_put(said);
        return NULL;
    }
    return said;
}

static void wait_for_those_that_come(struct model_load *m, double now)
{
    for (int i = 0; i < m->count; i++) {
        struct model *model = &m->models[i];

        if (model->path == NULL || model->there != COMES) {
            model->comes = 0;
            continue;
        }
        if (model->comes == 0)
            model->comes = now;
        if (now - model->comes <= m->patience)
            continue;
        model->comes = 0;
        fail(m, model, "the server has been loading it for too long");
    }
}

/* What is unloaded, or was never there. */
static void forget_unwanted(struct model_load *m)
{
    for (int i = 0; i < m->count; i++)
        if (m->models[i].path == NULL && m->models[i].there == ABSENT) {
            free(m->models[i].has);
            m->models[i].has = NULL;
        }
}

/* False: nothing can be said of any model. */
static bool read_index(struct model_load *m, int status, const char *text, size_t len)
{
    json_object *said, *list = NULL;
    bool read;

    if (status < 200 || status >= 300) {
        fail_answer(m, NULL, status, text, len);
        return false;
    }
    said = parse_index(m, text, len);
    read = said != NULL && json_object_object_get_ex(said, "data", &list) &&
           json_object_is_type(list, json_type_array) && note_all(m, list) == 0;
    json_object_put(said);
    if (!read)
        fail(m, NULL, "its list of models is not what the protocol says");
    return read;
}

static void on_index(struct model_load *m, double now, int status, const char *text, size_t len)
{
    if (!read_index(m, status, text, len)) {
        end_round(m, now);
        return;
    }
    wait_for_those_that_come(m, now);
    forget_unwanted(m);
    find_out(m);
    m->phase = PHASE_ACT;
}

static void on_model(struct model_load *m, int status, const char *text, size_t len)
{
    struct model *model = m->asked;

    model->tried = true;
    if (status >= 200 && status < 300) {
        free(model->has);
        model->has = m->unloads ? NULL : strdup(model->path);
        return;
    }
    fail_answer(m, model, status, text, len);
    if (!m->unloads) { /* who has not answered may have loaded it: it is to be unloaded some day */
        free(model->has);
        model->has = strdup("");
    }
}

void model_load_answered(struct model_load *m, double now, int status, const char *text, size_t len)
{
    if (len > MODEL_LOAD_ANSWER_MAX)
        status = 0;
    if (m->asked == NULL)
        on_index(m, now, status, text, len);
    else
        on_model(m, status, text, len);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct model_load_state model_load_state(const struct model_load *m)
{
    return (struct model_load_state){
        .version = m->version,
        .wanted = m->wanted,
        .failures = m->failures,
        .why = m->why,
        .has_all = m->has_all,
    };
}

json_object *model_load_sizes(const struct model_load *m)
{
    json_object *sizes = NULL;

    for (int i = 0; m->has_all && i < m->count; i++) {
        const struct model *model = &m->models[i];
        json_object *one;

        if (model->path == NULL || model->size == 0 || !is_done(model))
            continue;
        if (sizes == NULL)
            sizes = json_object_new_object();
        one = json_object_new_object();
        json_object_object_add(one, "version", json_object_new_string(model->version));
        json_object_object_add(one, "bytes", json_object_new_int64(model->size));
        json_object_object_add(sizes, model->name, one);
    }
    return sizes;
}

struct model_load *model_load_create(enum model_load_api api, double patience)
{
    struct model_load *m = calloc(1, sizeof(*m));

    if (m == NULL)
        return NULL;
    m->api = api;
    m->patience = patience;
    return m;
}

void model_load_destroy(struct model_load *m)
{
    if (m == NULL)
        return;
    clear_models(m->models, m->count);
    free(m->body);
    free(m);
}
