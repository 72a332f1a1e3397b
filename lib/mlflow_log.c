/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Metrics, tags and parameters of a run of MLflow, from what the leader says (mlflow.h).
 *
 * A metric is sent when its value is another one, and once a minute. */
#include "lib/mlflow_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/goodput.h"
#include "lib/json_get.h"
#include "lib/text.h"
#include "lib/when.h"

#define AGAIN       60.0 /* seconds after which the same value is sent again */
#define VALUE_BYTES 2000 /* of a tag. MLflow takes 5000 */
#define PARAM_BYTES 500

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static json_object *member(json_object *object, const char *key)
{
    json_object *value = NULL;

    if (json_object_is_type(object, json_type_object))
        json_object_object_get_ex(object, key, &value);
    return value;
}

static double number(json_object *object, const char *key)
{
    return json_object_is_type(object, json_type_object) ? json_get_double(object, key, NAN) : NAN;
}

static const char *text_of(json_object *object, const char *key)
{
    return json_object_is_type(object, json_type_object) ? json_get_string(object, key) : NULL;
}

/* ---- metrics --------------------------------------------------------------------------------- */

/* What is under way stays. */
static void make_room(struct mlflow *m)
{
    if (json_object_array_length(m->metrics) >= MLFLOW_QUEUE_MAX)
        json_object_array_del_idx(m->metrics, m->sent_metrics, 1);
}

static void put_metric(struct mlflow *m, const char *key, double value, double when, int64_t step)
{
    json_object *one = json_object_new_object();

    make_room(m);
    json_object_object_add(one, "key", json_object_new_string(key));
    json_object_object_add(one, "value", json_object_new_double(value));
    json_object_object_add(one, "timestamp", json_object_new_int64((int64_t)(when * 1000)));
    json_object_object_add(one, "step", json_object_new_int64(step));
    json_object_array_add(m->metrics, one);
}

static bool is_known(const struct mlflow *m, const char *key, double value, double now)
{
    json_object *before = member(m->latest, key);

    return before != NULL &&
           json_object_get_double(json_object_array_get_idx(before, 0)) == value &&
           now - json_object_get_double(json_object_array_get_idx(before, 1)) < AGAIN;
}

static void put_gauge(struct mlflow *m, const char *key, double value, double now, int64_t step)
{
    json_object *latest;

    if (!isfinite(value) || is_known(m, key, value, now))
        return;
    latest = json_object_new_array();
    json_object_array_add(latest, json_object_new_double(value));
    json_object_array_add(latest, json_object_new_double(now));
    json_object_object_add(m->latest, key, latest);
    put_metric(m, key, value, now, step);
}

static double goodput_of(json_object *measures)
{
    json_object *time = member(measures, "time");
    double all = 0, productive = number(time, goodput_names[GOODPUT_PRODUCTIVE]);

    for (int i = 0; i < GOODPUT_USES; i++)
        all += number(time, goodput_names[i]);
    return all > 0 ? productive / all : NAN;
}

/* Of the time since the look before. A leader that follows begins with 0. */
static double speed_of(struct mlflow *m, double steps, double now)
{
    double speed = NAN;

    if (isnan(steps))
        return NAN;
    if (m->looked > 0 && now > m->looked && steps >= m->looked_steps)
        speed = (steps - m->looked_steps) / (now - m->looked);
    m->looked = now;
    m->looked_steps = steps;
    return speed;
}

static void put_gauges(struct mlflow *m, json_object *state, double now)
{
    static const char *const names[][2] = {{"elastic/nodes", "size"},
                                           {"elastic/workers", "world_size"},
                                           {"elastic/generation", "generation"},
                                           {"elastic/failures", "restarts"}};
    double steps = number(state, "steps");
    int64_t step = steps >= 0 && steps < 9e15 ? (int64_t)steps : 0;

    for (size_t i = 0; i < COUNT(names); i++)
        put_gauge(m, names[i][0], number(state, names[i][1]), now, step);
    put_gauge(m, "elastic/goodput", goodput_of(member(state, "measures")), now, step);
    put_gauge(m, "elastic/steps_per_second", speed_of(m, steps, now), now, step);
    put_gauge(m, "elastic/cost", number(member(state, "cost"), "so_far"), now, step);
}

/* ---- tags ------------------------------------------------------------------------------------ */

/* MLflow counts bytes or characters, as its store does: whole characters that are few bytes. */
static json_object *cut(const char *text, size_t max)
{
    size_t len = strlen(text), at = 0, bytes;

    while (at < len && (bytes = text_utf8_length(text + at, len - at)) > 0 && at + bytes <= max)
        at += bytes;
    return json_object_new_string_len(text, (int)at);
}

static void put_tag(struct mlflow *m, const char *key, const char *value)
{
    json_object *known = member(m->events, key), *text;

    if (value == NULL)
        return;
    text = cut(value, VALUE_BYTES);
    if (known != NULL && json_object_equal(known, text)) {
        json_object_put(text);
        return;
    }
    if (known == NULL && json_object_object_length(m->events) >= MLFLOW_EVENTS_MAX) {
        json_object_put(text);
        return;
    }
    json_object_object_add(m->events, key, json_object_get(text));
    json_object_object_add(m->tags, key, text);
}

static void put_number_tag(struct mlflow *m, const char *key, double value)
{
    char text[32];

    if (isnan(value))
        return;
    snprintf(text, sizeof(text), "%.0f", value);
    put_tag(m, key, text);
}

static void put_pools(struct mlflow *m, json_object *state)
{
    json_object *pools = member(state, "pools");
    char text[VALUE_BYTES] = "";

    if (!json_object_is_type(pools, json_type_array))
        return;
    for (size_t i = 0; i < json_object_array_length(pools); i++) {
        const char *name = text_of(json_object_array_get_idx(pools, i), "pool");

        if (name != NULL)
            text_append(text, sizeof(text), "%s%s", text[0] != '\0' ? "," : "", name);
    }
    if (text[0] != '\0')
        put_tag(m, "elastic.pools", text);
}

static void put_tags(struct mlflow *m, json_object *state)
{
    put_tag(m, "elastic.incarnation", text_of(state, "incarnation"));
    put_tag(m, "elastic.sizes", text_of(state, "sizes"));
    put_tag(m, "elastic.phase", text_of(state, "phase"));
    put_tag(m, "elastic.leader", text_of(state, "leader"));
    put_number_tag(m, "elastic.job", number(state, "job"));
    put_number_tag(m, "elastic.nodes", number(state, "size"));
    put_pools(m, state);
}

/* ---- generations: events --------------------------------------------------------------------- */

static void put_generation(struct mlflow *m, json_object *record, const char *incarnation)
{
    const char *kind = text_of(record, "kind"), *reason = text_of(record, "reason");
    double pause = number(record, "pause"), when = number(record, "time");
    char key[80], pause_key[96], text[VALUE_BYTES], began[WHEN_TEXT_MAX];
    int64_t generation, size;

    if (kind == NULL || reason == NULL || !(when > 0 && when < 1e12) ||
        !json_get_int(record, "generation", 1, INT32_MAX, &generation) ||
        !json_get_int(record, "size", 0, INT32_MAX, &size))
        return;
    snprintf(key, sizeof(key), "elastic.event.%.30s.%06d", incarnation, (int)generation);
    snprintf(text, sizeof(text), "%s %.20s: %d node%s: %s",
             when_format((int64_t)when, began, sizeof(began)), kind, (int)size,
             size == 1 ? "" : "s", reason);
    put_tag(m, key, text);
    if (generation > m->seen)
        m->seen = (int)generation;
    snprintf(pause_key, sizeof(pause_key), "%s/pause", key);
    if (!isfinite(pause) || pause < 0 || member(m->latest, pause_key) != NULL ||
        json_object_object_length(m->latest) >= MLFLOW_EVENTS_MAX)
        return;
    json_object_object_add(m->latest, pause_key, json_object_new_boolean(true));
    put_metric(m, "elastic/pause_seconds", pause, when, generation);
}

static void put_history(struct mlflow *m, json_object *state)
{
    json_object *history = member(state, "history");
    const char *incarnation = text_of(state, "incarnation");

    if (!json_object_is_type(history, json_type_array) || incarnation == NULL)
        return;
    for (size_t i = 0; i < json_object_array_length(history); i++)
        put_generation(m, json_object_array_get_idx(history, i), incarnation);
}

/* ---- parameters ------------------------------------------------------------------------------ */

static void put_parameter(json_object *params, const char *key, const char *value)
{
    json_object *one = json_object_new_object();
    char name[80];

    snprintf(name, sizeof(name), "elastic.%.60s", key);
    json_object_object_add(one, "key", json_object_new_string(name));
    json_object_object_add(one, "value", cut(value, PARAM_BYTES));
    json_object_array_add(params, one);
}

/* The options of the job. */
static void note_parameters(struct mlflow *m, json_object *state)
{
    json_object *policy = member(state, "policy");
    const char *user = text_of(state, "user");

    if (m->params != NULL || !json_object_is_type(policy, json_type_object))
        return;
    m->params = json_object_new_array();
    if (user != NULL)
        put_parameter(m->params, "user", user);
    json_object_object_foreach (policy, key, value)
        if (strncmp(key, "mlflow_", strlen("mlflow_")) != 0 &&
            json_object_array_length(m->params) < MLFLOW_TAGS_MAX)
            put_parameter(m->params, key, json_object_get_string(value));
}

void mlflow_take(struct mlflow *m, json_object *state, double now)
{
    note_parameters(m, state);
    put_gauges(m, state, now);
    put_history(m, state);
    put_tags(m, state);
}

int mlflow_seen(const struct mlflow *m)
{
    return m->seen;
}

/* ---- batches --------------------------------------------------------------------------------- */

bool mlflow_log_waits(const struct mlflow *m)
{
    return json_object_array_length(m->metrics) > 0 || json_object_object_length(m->tags) > 0;
}

static json_object *body_of(const struct mlflow *m)
{
    json_object *body = json_object_new_object();

    json_object_object_add(body, "run_id", json_object_new_string(m->run_id));
    return body;
}

static json_object *first_tags(struct mlflow *m)
{
    json_object *list = json_object_new_array();

    json_object_put(m->sent_tags);
    m->sent_tags = json_object_new_object();
    json_object_object_foreach (m->tags, key, value) {
        json_object *one = json_object_new_object();

        if (json_object_array_length(list) >= MLFLOW_TAGS_MAX) {
            json_object_put(one);
            break;
        }
        json_object_object_add(one, "key", json_object_new_string(key));
        json_object_object_add(one, "value", json_object_get(value));
        json_object_array_add(list, one);
        json_object_object_add(m->sent_tags, key, json_object_get(value));
    }
    return list;
}

json_object *mlflow_log_batch(struct mlflow *m)
{
    size_t count = json_object_array_length(m->metrics);
    json_object *body, *metrics;

    if (!mlflow_log_waits(m))
        return NULL;
    m->sent_metrics = count < MLFLOW_BATCH_MAX ? count : MLFLOW_BATCH_MAX;
    metrics = json_object_new_array();
    for (size_t i = 0; i < m->sent_metrics; i++)
        json_object_array_add(metrics, json_object_get(json_object_array_get_idx(m->metrics, i)));
    body = body_of(m);
    json_object_object_add(body, "metrics", metrics);
    json_object_object_add(body, "tags", first_tags(m));
    return body;
}

/* Not before the leader has said what they are. */
json_object *mlflow_log_parameters(struct mlflow *m)
{
    json_object *body;

    if (m->params == NULL)
        return NULL;
    body = body_of(m);
    json_object_object_add(body, "params", json_object_get(m->params));
    return body;
}

/* A tag that has got another value meanwhile still waits. */
void mlflow_log_sent(struct mlflow *m)
{
    json_object_array_del_idx(m->metrics, 0, m->sent_metrics);
    m->sent_metrics = 0;
    if (m->sent_tags != NULL) {
        json_object_object_foreach (m->sent_tags, key, value)
            if (member(m->tags, key) == value)
                json_object_object_del(m->tags, key);
    }
    json_object_put(m->sent_tags);
    m->sent_tags = NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

int mlflow_log_init(struct mlflow *m)
{
    m->metrics = json_object_new_array();
    m->tags = json_object_new_object();
    m->latest = json_object_new_object();
    m->events = json_object_new_object();
    return m->metrics != NULL && m->tags != NULL && m->latest != NULL && m->events != NULL ? 0 : -1;
}

void mlflow_log_clear(struct mlflow *m)
{
    json_object_put(m->metrics);
    json_object_put(m->tags);
    json_object_put(m->params);
    json_object_put(m->sent_tags);
    json_object_put(m->latest);
    json_object_put(m->events);
}
