/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A run of MLflow that goes with an elastic job (mlflow.h): requests and answers. What is sent is
 * made in mlflow_log.c. */
#include "lib/mlflow_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/error.h"
#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/text.h"

#define API         "api/2.0/mlflow/"
#define PAUSE_FIRST 5.0 /* seconds after a failure; twice as long each time */
#define PAUSE_MAX   300.0

/* ---- requests -------------------------------------------------------------------------------- */

static void add_text(json_object *body, const char *key, const char *text)
{
    json_object_object_add(body, key, json_object_new_string(text));
}

static json_object *make_experiment(const struct mlflow *m)
{
    json_object *body = json_object_new_object();

    add_text(body, "name", m->experiment);
    return body;
}

/* The identity has only letters that need no quoting (set_identity()). */
static json_object *find_run(const struct mlflow *m)
{
    json_object *body = json_object_new_object(), *ids = json_object_new_array();
    char filter[MLFLOW_IDENTITY_MAX + 64];

    snprintf(filter, sizeof(filter), "tags.`" MLFLOW_TAG_JOB "` = '%s'", m->identity);
    json_object_array_add(ids, json_object_new_string(m->experiment_id));
    json_object_object_add(body, "experiment_ids", ids);
    add_text(body, "filter", filter);
    add_text(body, "run_view_type", "ACTIVE_ONLY");
    json_object_object_add(body, "max_results", json_object_new_int(1));
    return body;
}

static json_object *tag(const char *key, const char *value)
{
    json_object *pair = json_object_new_object();

    add_text(pair, "key", key);
    add_text(pair, "value", value);
    return pair;
}

static json_object *make_run(const struct mlflow *m, double now)
{
    json_object *body = json_object_new_object(), *tags = json_object_new_array();

    json_object_array_add(tags, tag(MLFLOW_TAG_JOB, m->identity));
    json_object_array_add(tags, tag("mlflow.source.name", "slurm-elastic"));
    if (m->user[0] != '\0')
        json_object_array_add(tags, tag("mlflow.user", m->user));
    add_text(body, "experiment_id", m->experiment_id);
    add_text(body, "run_name", m->run_name);
    json_object_object_add(body, "start_time", json_object_new_int64((int64_t)(now * 1000)));
    json_object_object_add(body, "tags", tags);
    return body;
}

static json_object *set_status(const struct mlflow *m, double now)
{
    static const char *const ends[] = {[MLFLOW_FINISHED] = "FINISHED",
                                       [MLFLOW_FAILED] = "FAILED",
                                       [MLFLOW_REQUEUED] = "SCHEDULED"};
    json_object *body = json_object_new_object();

    add_text(body, "run_id", m->run_id);
    add_text(body, "status", m->stage == MLFLOW_RESUME ? "RUNNING" : ends[m->how]);
    if (m->stage == MLFLOW_CLOSE && m->how != MLFLOW_REQUEUED)
        json_object_object_add(body, "end_time", json_object_new_int64((int64_t)(now * 1000)));
    return body;
}

/* RFC 3986: all but letters and digits is escaped, byte by byte. */
static void append_escaped(char *path, size_t size, const char *text)
{
    for (; *text != '\0'; text++) {
        char one[2] = {*text, '\0'};

        if (text_made_of(one, "-_."))
            text_append(path, size, "%s", one);
        else
            text_append(path, size, "%%%02X", (unsigned char)*text);
    }
}

/* What the stage asks: path, and body. False: nothing is there to be sent. */
static bool compose(struct mlflow *m, double now, json_object **body)
{
    char *path = m->path;
    const size_t size = sizeof(m->path);

    path[0] = '\0';
    *body = NULL;
    switch (m->stage) {
    case MLFLOW_CHECK:
        text_append(path, size, API "runs/get?run_id=%s", m->run_id);
        return true;
    case MLFLOW_FIND_EXPERIMENT:
        text_append(path, size, API "experiments/get-by-name?experiment_name=");
        append_escaped(path, size, m->experiment);
        return true;
    case MLFLOW_MAKE_EXPERIMENT:
        text_append(path, size, API "experiments/create");
        *body = make_experiment(m);
        return true;
    case MLFLOW_FIND_RUN:
        text_append(path, size, API "runs/search");
        *body = find_run(m);
        return true;
    case MLFLOW_MAKE_RUN:
        text_append(path, size, API "runs/create");
        *body = make_run(m, now);
        return true;
    case MLFLOW_RESUME:
    case MLFLOW_CLOSE:
        text_append(path, size, API "runs/update");
        *body = set_status(m, now);
        return true;
    case MLFLOW_PARAMETERS:
    case MLFLOW_LOG:
        text_append(path, size, API "runs/log-batch");
        *body = m->stage == MLFLOW_LOG ? mlflow_log_batch(m) : mlflow_log_parameters(m);
        return *body != NULL;
    case MLFLOW_OVER:
        break;
    }
    return false;
}

bool mlflow_next(struct mlflow *m, double now, struct mlflow_request *request)
{
    json_object *body;

    if (m->asked || m->stage == MLFLOW_OVER || (now < m->retry.after && !m->ending))
        return false;
    if (m->stage == MLFLOW_LOG && m->ending && !mlflow_log_waits(m))
        m->stage = MLFLOW_CLOSE;
    if (!compose(m, now, &body))
        return false;
    free(m->body);
    m->body = body != NULL ? strdup(json_object_to_json_string_ext(
                                 body, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE))
                           : NULL;
    json_object_put(body);
    m->asked = true;
    *request = (struct mlflow_request){.path = m->path, .body = m->body};
    return true;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void give_up(struct mlflow *m, const char *why)
{
    error_set(&m->trouble, "%s; the job goes on without MLflow", why);
    m->stage = MLFLOW_OVER;
    m->run_id[0] = '\0';
}

static json_object *member(json_object *object, const char *key)
{
    json_object *value = NULL;

    if (json_object_is_type(object, json_type_object))
        json_object_object_get_ex(object, key, &value);
    return value;
}

static const char *text_of(json_object *object, const char *key)
{
    return json_object_is_type(object, json_type_object) ? json_get_string(object, key) : NULL;
}

/* An id goes into paths, files, and the environment of workers. */
static bool take_id(char *to, size_t size, const char *id)
{
    if (id == NULL || strlen(id) >= size || !text_made_of(id, "-_"))
        return false;
    snprintf(to, size, "%s", id);
    return true;
}

static bool is_active(json_object *of)
{
    const char *stage = text_of(of, "lifecycle_stage");

    return stage == NULL || strcmp(stage, "active") == 0;
}

static void no_sense(struct mlflow *m, double now)
{
    error_set(&m->trouble, "the MLflow server does not answer as one (%s)", m->path);
    retry_failed(&m->retry, now);
}

static void checked(struct mlflow *m, json_object *root, double now)
{
    json_object *info = member(member(root, "run"), "info");

    if (text_of(info, "run_id") == NULL)
        no_sense(m, now);
    else if (is_active(info))
        m->stage = MLFLOW_RESUME;
    else if (m->wanted)
        give_up(m, "the MLflow run that the job is to go on with has been deleted");
    else
        m->stage = MLFLOW_FIND_EXPERIMENT;
}

static void found_experiment(struct mlflow *m, json_object *root, double now)
{
    json_object *experiment = member(root, "experiment");

    if (!take_id(m->experiment_id, sizeof(m->experiment_id), text_of(experiment, "experiment_id")))
        no_sense(m, now);
    else if (is_active(experiment))
        m->stage = MLFLOW_FIND_RUN;
    else
        give_up(m, "the MLflow experiment has been deleted; restore it, or name another one");
}

static void made_experiment(struct mlflow *m, json_object *root, double now)
{
    if (take_id(m->experiment_id, sizeof(m->experiment_id), text_of(root, "experiment_id")))
        m->stage = MLFLOW_FIND_RUN;
    else
        no_sense(m, now);
}

static void found_run(struct mlflow *m, json_object *root)
{
    json_object *runs = member(root, "runs"), *info = NULL;

    if (json_object_is_type(runs, json_type_array) && json_object_array_length(runs) > 0)
        info = member(json_object_array_get_idx(runs, 0), "info");
    m->stage = take_id(m->run_id, sizeof(m->run_id), text_of(info, "run_id")) ? MLFLOW_RESUME
                                                                              : MLFLOW_MAKE_RUN;
}

static void made_run(struct mlflow *m, json_object *root, double now)
{
    json_object *info = member(member(root, "run"), "info");

    if (take_id(m->run_id, sizeof(m->run_id), text_of(info, "run_id")))
        m->stage = MLFLOW_PARAMETERS;
    else
        no_sense(m, now);
}

static void take_answer(struct mlflow *m, json_object *root, double now)
{
    switch (m->stage) {
    case MLFLOW_CHECK:
        checked(m, root, now);
        break;
    case MLFLOW_FIND_EXPERIMENT:
        found_experiment(m, root, now);
        break;
    case MLFLOW_MAKE_EXPERIMENT:
        made_experiment(m, root, now);
        break;
    case MLFLOW_FIND_RUN:
        found_run(m, root);
        break;
    case MLFLOW_MAKE_RUN:
        made_run(m, root, now);
        break;
    case MLFLOW_RESUME:
        m->stage = MLFLOW_PARAMETERS;
        break;
    case MLFLOW_PARAMETERS:
        m->stage = MLFLOW_LOG;
        break;
    case MLFLOW_LOG:
        mlflow_log_sent(m);
        break;
    case MLFLOW_CLOSE:
    case MLFLOW_OVER:
        m->stage = MLFLOW_OVER;
        break;
    }
}

/* It may go well later: nobody answers, the server is busy, or does not know us yet. */
static bool passes(int status)
{
    return status < 400 || status == 401 || status == 403 || status == 408 || status == 429 ||
           status >= 500;
}

static void say_refusal(struct mlflow *m, int status, json_object *root)
{
    const char *said = text_of(root, "message");

    if (status == 0)
        error_set(&m->trouble, "the MLflow server does not answer");
    else
        error_set(&m->trouble, "the MLflow server refuses it (%d%s%s)", status,
                  said != NULL ? ": " : "", said != NULL ? error_value(said).text : "");
}

/* The refusal was to be expected, and is no trouble. */
static void goes_on(struct mlflow *m, enum mlflow_stage stage)
{
    m->trouble.text[0] = '\0';
    m->stage = stage;
}

/* The server will say the same again. */
static void take_refusal(struct mlflow *m, int status)
{
    switch (m->stage) {
    case MLFLOW_CHECK:
        if (m->wanted)
            give_up(m, "the MLflow server has no such run as the job is to go on with");
        else
            goes_on(m, MLFLOW_FIND_EXPERIMENT);
        break;
    case MLFLOW_FIND_EXPERIMENT:
        if (status == 404)
            goes_on(m, MLFLOW_MAKE_EXPERIMENT);
        else
            give_up(m, m->trouble.text);
        break;
    case MLFLOW_MAKE_EXPERIMENT: /* somebody else may just have made it */
        if (m->made_experiment)
            give_up(m, m->trouble.text);
        else
            goes_on(m, MLFLOW_FIND_EXPERIMENT);
        m->made_experiment = true;
        break;
    case MLFLOW_FIND_RUN:
    case MLFLOW_MAKE_RUN:
        give_up(m, m->trouble.text);
        break;
    case MLFLOW_RESUME: /* of a run that goes on, this is no loss */
        m->stage = MLFLOW_PARAMETERS;
        break;
    case MLFLOW_PARAMETERS: /* a run has each of them once */
        goes_on(m, MLFLOW_LOG);
        break;
    case MLFLOW_LOG:
        mlflow_log_sent(m);
        break;
    case MLFLOW_CLOSE:
    case MLFLOW_OVER:
        m->stage = MLFLOW_OVER;
        break;
    }
}

void mlflow_answered(struct mlflow *m, int status, const char *text, size_t len, double now)
{
    bool good = status >= 200 && status < 300;
    json_object *root = text != NULL ? json_text_parse(text, len, NULL) : NULL;

    if (!m->asked)
        return;
    m->asked = false;
    if (good && root == NULL) {
        no_sense(m, now);
    } else if (good) {
        m->trouble.text[0] = '\0';
        retry_reset(&m->retry);
        take_answer(m, root, now);
    } else {
        say_refusal(m, status, root);
        if (passes(status))
            retry_failed(&m->retry, now);
        else
            take_refusal(m, status);
    }
    json_object_put(root);
    if (m->ending && m->retry.after > now)
        m->stage = MLFLOW_OVER; /* nobody waits for another try */
}

/* ---- what others ask ------------------------------------------------------------------------- */

double mlflow_pause(const struct mlflow *m, double now)
{
    return m->stage != MLFLOW_OVER && m->retry.after > now ? m->retry.after - now : -1;
}

const char *mlflow_run(const struct mlflow *m)
{
    return m->run_id[0] != '\0' ? m->run_id : NULL;
}

bool mlflow_confirmed(const struct mlflow *m)
{
    return m->run_id[0] != '\0' && m->stage >= MLFLOW_RESUME;
}

const char *mlflow_trouble(const struct mlflow *m)
{
    return m->trouble.text;
}

bool mlflow_over(const struct mlflow *m)
{
    return m->stage == MLFLOW_OVER;
}

void mlflow_end(struct mlflow *m, enum mlflow_end how, double now)
{
    if (m->ending)
        return;
    m->ending = true;
    m->how = how;
    if (m->retry.after > now)
        m->stage = MLFLOW_OVER; /* the server was away just now */
}

/* ---- life ------------------------------------------------------------------------------------ */

static void set_identity(struct mlflow *m, const char *identity)
{
    snprintf(m->identity, sizeof(m->identity), "%s", identity);
    for (char *c = m->identity; *c != '\0'; c++) {
        char one[2] = {*c, '\0'};

        if (!text_made_of(one, "-_./:"))
            *c = '_';
    }
}

struct mlflow *mlflow_create(const struct mlflow_options *options)
{
    struct mlflow *m = calloc(1, sizeof(*m));

    if (m == NULL)
        return NULL;
    m->retry = (struct retry){.first = PAUSE_FIRST, .max = PAUSE_MAX};
    set_identity(m, options->identity);
    snprintf(m->experiment, sizeof(m->experiment), "%s",
             options->experiment != NULL ? options->experiment : "Default");
    snprintf(m->user, sizeof(m->user), "%s", options->user != NULL ? options->user : "");
    snprintf(m->run_name, sizeof(m->run_name), "%s", options->run_name);
    m->wanted = take_id(m->run_id, sizeof(m->run_id), options->run_id);
    m->stage = m->wanted || take_id(m->run_id, sizeof(m->run_id), options->kept_id)
                   ? MLFLOW_CHECK
                   : MLFLOW_FIND_EXPERIMENT;
    if (mlflow_log_init(m) == 0)
        return m;
    mlflow_destroy(m);
    return NULL;
}

void mlflow_destroy(struct mlflow *m)
{
    if (m == NULL)
        return;
    mlflow_log_clear(m);
    free(m->body);
    free(m);
}
