/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a fit is to do (spec.h). */
#include "fit/spec.h"

#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fit/grant.h"
#include "fit/s3_grant.h"
#include "lib/json_get.h"
#include "lib/s3_place.h"
#include "lib/shard_commands.h"
#include "lib/states.h"

#define FORMAT       1
#define LIMIT_MAX    (366 * 86400.0)
#define ARGUMENT_MAX 1000
#define URL_MAX      2048

#define GRANT_TIME     900.0
#define GRANT_TIME_MAX 86400.0

static const char *const limits[] = {"start", "fit", "target"};
/* Of data and targets, for a trainer of another user. */
static const char *const inode_keys[2] = {"dataInode", "targetsInode"};
static const char *const born_keys[2] = {"dataBorn", "targetsBorn"};

/* ---- writing --------------------------------------------------------------------------------- */

static void add_text(json_object *to, const char *key, const char *text)
{
    json_object_object_add(to, key, json_from_string(text));
}

static json_object *dataset_json(const struct spec_order *order)
{
    json_object *dataset = json_object_new_object();
    const char *name = order->dataset != NULL ? order->dataset : strrchr(order->data, '/');

    add_text(dataset, "id", order->data);
    add_text(dataset, "name", name == NULL ? order->data : name[0] == '/' ? name + 1 : name);
    add_text(dataset, "format", order->format);
    return dataset;
}

/* The model of the service; and the bucket of its states, where they are on S3 (url). */
static json_object *target_json(const struct spec_order *order, const char *url)
{
    json_object *target = json_object_new_object();
    struct s3_place place;

    add_text(target, "id", order->model);
    add_text(target, "name", order->service);
    if (url != NULL && s3_place_parse(url, &place, NULL) == 0)
        add_text(target, "bucket", place.bucket);
    return target;
}

static json_object *limits_json(const struct spec_order *order, json_object *fit)
{
    json_object *json = json_object_new_object();

    for (int i = 0; i < 3; i++)
        json_object_object_add(json, limits[i],
                               json_object_new_double(order->within[i] != NULL
                                                          ? *order->within[i]
                                                          : json_get_double(fit, limits[i], 3600)));
    return json;
}

static void add_copy(json_object *to, const char *key, json_object *from)
{
    json_object_object_add(to, key, json_object_get(json_object_object_get(from, key)));
}

/* Of whom; "" if it trains itself. -1 with err. */
static int choose_trainer(const struct spec_order *order, json_object *fit,
                          struct trainer_name *name, struct error *err)
{
    const char *trainer = order->trainer != NULL ? order->trainer : json_get_string(fit, "trainer");
    const struct passwd *entry = getpwuid(geteuid());

    *name = (struct trainer_name){0};
    if (trainer == NULL)
        return 0;
    if (!trainer_name_read(trainer, name))
        return error_set(err,
                         "--trainer=%s: write the name of a service, and whose it is, as "
                         "SERVICE@USER",
                         error_value(trainer).text);
    if (name->user[0] == '\0' && entry != NULL)
        snprintf(name->user, sizeof(name->user), "%s", entry->pw_name);
    if (getpwnam(name->user) == NULL)
        return error_set(err, "--trainer=%s: there is no user %s", error_value(trainer).text,
                         name->user);
    return 0;
}

/* A trainer of another user opens what is this user's, and nothing else. */
static int check_data(const char *option, const char *path, struct pin_data *data,
                      struct error *err)
{
    if (path == NULL)
        return 0;
    if (s3_place_is(path))
        return 0; /* s3_grant_check() */
    if (strstr(path, "://") != NULL)
        return error_set(err, "--%s=%s: a trainer of another user opens files, and s3://", option,
                         error_value(path).text);
    return grant_check(path, data, err) == 0 ? 0 : error_prefix(err, "--%s", option);
}

static int check_stage(const struct spec_order *order, json_object *fit,
                       const struct trainer_name *trainer, struct pin_data data[2],
                       struct error *err)
{
    if (trainer->user[0] != '\0')
        return check_data("data", order->data, &data[0], err) == 0
                   ? check_data("targets", order->targets, &data[1], err)
                   : -1;
    if (strstr(order->data, "://") != NULL && json_object_object_get(fit, "stage") == NULL)
        return error_set(err,
                         "--data=%s: the service has no program that gets it; its job file needs "
                         "stage in fit",
                         error_value(order->data).text);
    return 0;
}

/* Who trains, and who pays for it: the account of the trainer's job does, for that user. */
static void add_trainer(json_object *json, const struct trainer_name *trainer,
                        const struct pin_data data[2])
{
    const struct passwd *entry = getpwuid(geteuid());
    json_object *one = json_object_new_object();

    add_text(one, "service", trainer->service);
    add_text(one, "user", trainer->user);
    json_object_object_add(json, "trainer", one);
    add_text(json, "payer", entry != NULL ? entry->pw_name : NULL);
    add_text(json, "runner", trainer->user);
    for (int i = 0; i < 2; i++) {
        json_object_object_add(json, inode_keys[i], json_object_new_int64(data[i].inode));
        json_object_object_add(json, born_keys[i], json_object_new_int64(data[i].born));
    }
}

/* Each model has a prefix of its own. */
static int states_url(char *url, size_t size, const char *states, const char *model,
                      struct error *err)
{
    size_t len = strlen(states);
    struct s3_place where;

    while (len > 0 && states[len - 1] == '/')
        len--;
    snprintf(url, size, "%.*s/%s", (int)len, states, model);
    return s3_place_parse(url, &where, err);
}

/* What is on S3 a trainer can be let at. */
static int check_s3(json_object *json, struct error *err)
{
    const struct spec spec = {.json = json,
                              .states = json_get_string(json, "states"),
                              .grant = json_get_string(json, "grant")};

    return s3_grant_is_needed(&spec) ? s3_grant_check(&spec, err) : 0;
}

json_object *spec_create(const struct spec_order *order, json_object *service, double now,
                         struct error *err)
{
    json_object *fit = json_object_object_get(service, "fit"), *json;
    const char *repository = json_get_string(service, "repository"), *states;
    char place[PATH_MAX], real[PATH_MAX], url[URL_MAX];
    struct trainer_name trainer;
    struct pin_data data[2] = {{0}};

    if (!json_object_is_type(fit, json_type_object) || repository == NULL) {
        error_set(err,
                  "service %s has no training; its job file needs fit: {run: […]}, fit: {role: "
                  "NAME}, or fit: {trainer: SERVICE@USER}",
                  error_value(order->service).text);
        return NULL;
    }
    if (choose_trainer(order, fit, &trainer, err) != 0)
        return NULL;
    if (trainer.user[0] == '\0' && json_object_object_get(fit, "run") == NULL &&
        json_object_object_get(fit, "role") == NULL) {
        error_set(err, "service %s has no training of its own; write --trainer=SERVICE@USER",
                  error_value(order->service).text);
        return NULL;
    }
    states = json_get_string(fit, "states");
    if (!shard_name_ok(order->model)) {
        error_set(err,
                  "--model=%s: a model has up to %d letters, digits and ._-, a letter or digit "
                  "first",
                  error_value(order->model).text, SHARD_NAME_MAX - 1);
        return NULL;
    }
    if (check_stage(order, fit, &trainer, data, err) != 0)
        return NULL;
    /* A trainer of another user follows no links. */
    if (trainer.user[0] != '\0' && realpath(repository, real) != NULL)
        repository = real;
    snprintf(place, sizeof(place), "%.3000s/%s", repository, order->model);
    if (states != NULL && states_url(url, sizeof(url), states, order->model, err) != 0)
        return NULL;
    json = json_object_new_object();
    json_object_object_add(json, "format", json_object_new_int(FORMAT));
    add_text(json, "mode", trainer.user[0] != '\0' ? "multi" : "single");
    if (trainer.user[0] != '\0')
        add_trainer(json, &trainer, data);
    add_text(json, "service", order->service);
    add_text(json, "model", order->model);
    add_text(json, "place", place);
    json_object_object_add(json, "states", states != NULL ? json_object_new_string(url) : NULL);
    add_text(json, "from", order->from);
    add_copy(json, "run", fit);
    add_copy(json, "role", fit);
    add_copy(json, "world", fit);
    add_copy(json, "stage", fit);
    add_copy(json, "keep", fit);
    add_copy(json, "grant", fit);
    add_copy(json, "grantTime", fit);
    json_object_object_add(json, "within", limits_json(order, fit));
    add_text(json, "trainData", order->data);
    add_text(json, "targetsData", order->targets);
    json_object_object_add(json, "config", json_object_get(order->config));
    json_object_object_add(json, "datasetInfo", dataset_json(order));
    json_object_object_add(json, "targetServiceInfo",
                           target_json(order, states != NULL ? url : NULL));
    json_object_object_add(json, "user", json_object_new_int64(getuid()));
    json_object_object_add(json, "created", json_object_new_double(now));
    if (trainer.user[0] == '\0' || check_s3(json, err) == 0)
        return json;
    json_object_put(json);
    return NULL;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool read_limits(json_object *json, struct fit_limits *to)
{
    json_object *within = json_object_object_get(json, "within");
    double *fields[] = {&to->start, &to->fit, &to->target};

    if (!json_object_is_type(within, json_type_object))
        return false;
    for (int i = 0; i < 3; i++) {
        *fields[i] = json_get_double(within, limits[i], -1);
        if (!(*fields[i] > 0 && *fields[i] <= LIMIT_MAX))
            return false;
    }
    return true;
}

/* False: the run is of mode multi, and names no trainer; or of no mode. */
static bool read_mode(struct spec *spec)
{
    const char *mode = json_get_string(spec->json, "mode");
    json_object *trainer = json_object_object_get(spec->json, "trainer");
    const char *service = json_get_string(trainer, "service");
    const char *user = json_get_string(trainer, "user");
    char text[2 * TRAINER_NAME_MAX];

    spec->mode = mode != NULL && strcmp(mode, "multi") == 0 ? FIT_MULTI : FIT_SINGLE;
    if (spec->mode == FIT_SINGLE)
        return (spec->run != NULL && spec->run[0] != NULL) || spec->role != NULL;
    if (service == NULL || user == NULL)
        return false;
    snprintf(text, sizeof(text), "%.63s@%.63s", service, user);
    return trainer_name_read(text, &spec->trainer);
}

int spec_read(const struct home *home, int64_t id, struct spec *spec, struct error *err)
{
    struct s3_place where;
    int64_t keep = 0;

    *spec = (struct spec){.json = home_read(home, id, HOME_RUN_FILE, err)};
    if (spec->json == NULL)
        return -1;
    spec->service = json_get_string(spec->json, "service");
    spec->model = json_get_string(spec->json, "model");
    spec->place = json_get_string(spec->json, "place");
    spec->states = json_get_string(spec->json, "states");
    spec->from = json_get_string(spec->json, "from");
    spec->grant = json_get_string(spec->json, "grant");
    spec->grant_time = json_get_double(spec->json, "grantTime", GRANT_TIME);
    if (!(spec->grant_time >= 1 && spec->grant_time <= GRANT_TIME_MAX))
        spec->grant_time = GRANT_TIME;
    spec->role = json_get_string(spec->json, "role");
    spec->world = spec->role != NULL && json_get_bool(spec->json, "world", false);
    spec->run = json_get_strings(spec->json, "run", ARGUMENT_MAX);
    spec->stage = json_get_strings(spec->json, "stage", ARGUMENT_MAX);
    json_get_int(spec->json, "keep", 0, INT_MAX, &keep);
    spec->keep = (int)keep;
    for (int i = 0; i < 2; i++) {
        json_get_int(spec->json, inode_keys[i], 0, INT64_MAX, &spec->data[i].inode);
        json_get_int(spec->json, born_keys[i], 0, INT64_MAX, &spec->data[i].born);
    }
    if (spec->service != NULL && spec->model != NULL && shard_name_ok(spec->model) &&
        spec->place != NULL && spec->place[0] == '/' &&
        (spec->states == NULL || s3_place_parse(spec->states, &where, err) == 0) &&
        read_mode(spec) && read_limits(spec->json, &spec->limits))
        return 0;
    spec_clear(spec);
    return error_set(err, "%s: this is no run of a fit",
                     error_path(home_path(home, id, HOME_RUN_FILE).text).text);
}

void spec_clear(struct spec *spec)
{
    strings_free(spec->run);
    strings_free(spec->stage);
    json_object_put(spec->json);
    *spec = (struct spec){0};
}

json_object *spec_call(const struct spec *spec, const char *model_dir, const char *previous_dir,
                       const char *staged)
{
    static const char *const same[] = {"trainData", "targetsData", "config", "datasetInfo",
                                       "targetServiceInfo"};
    json_object *call = json_object_new_object();

    add_text(call, "modelDir", model_dir);
    add_text(call, "previousModelDir", previous_dir);
    for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++)
        add_copy(call, same[i], spec->json);
    add_text(call, "stagedDir", staged);
    return call;
}
