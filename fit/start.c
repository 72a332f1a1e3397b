/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic fit start` and `cancel` (command.h). */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/deadline.h"
#include "cmd/query.h"
#include "cmd/service_job.h"
#include "cmd/terminal_text.h"
#include "common/entry.h"
#include "common/files.h"
#include "common/stop.h"
#include "fit/fit_command.h"
#include "fit/home.h"
#include "fit/fit_show.h"
#include "fit/spec.h"
#include "lib/fit_view.h"
#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/shard_commands.h"

#define CONFIG_MAX  ((size_t)1 << 20)
#define CONFIGS_DIR "configs"
#define LOOK_NS     50000000L

/* ---- what is given --------------------------------------------------------------------------- */

/* A path from where the user is, or what a program of the service understands. NULL with err. */
static char *data_of(const char *option, const char *text, struct error *err)
{
    char *path;

    if (strstr(text, "://") != NULL)
        return text_need(strdup(text));
    path = realpath(text, NULL);
    if (path == NULL)
        error_set(err, "--%s=%s: %s; write a path, or URL of a kind that the service gets", option,
                  error_value(text).text, strerror(errno));
    return path;
}

/* The object of the standard input. */
static json_object *input_read(const char *option, struct error *err)
{
    size_t len;
    char *text = entry_text(STDIN_FILENO, CONFIG_MAX, &len, err);
    json_object *input = text != NULL ? json_text_parse(text, len, err) : NULL;

    free(text);
    if (input == NULL)
        error_prefix(err, "--%s=-", option);
    return input;
}

static bool is_order(const struct fit_arguments *arguments, json_object *input)
{
    bool data = false;

    json_object_object_foreach (input, key, value) {
        bool text = json_object_is_type(value, json_type_string);

        if (strcmp(key, "data") == 0 && text)
            data = true;
        else if ((strcmp(key, "targets") != 0 || !text || arguments->targets != NULL) &&
                 (strcmp(key, "config") != 0 || !json_object_is_type(value, json_type_object) ||
                  arguments->config != NULL))
            return false;
    }
    return data;
}

/* What others would see among the arguments. They borrow their texts from what is returned. */
static json_object *order_read(struct fit_arguments *arguments, struct spec_order *order,
                               struct error *err)
{
    json_object *input = input_read("data", err);

    if (input == NULL)
        return NULL;
    if (!is_order(arguments, input)) {
        json_object_put(input);
        error_set(err, "--data=-: an object is expected with data, a text, and perhaps targets, a "
                       "text, and config, an object; none of them as an option, too");
        return NULL;
    }
    arguments->data = json_get_string(input, "data");
    if (arguments->targets == NULL)
        arguments->targets = json_get_string(input, "targets");
    order->config = json_object_get(json_object_object_get(input, "config"));
    return input;
}

/* By a path, or by a name: then it is one of the service's. Or the object itself. */
static json_object *config_of(const struct home *home, const char *text, struct error *err)
{
    const char *dot = strrchr(text, '.');
    char path[PATH_MAX];
    json_object *config;
    size_t len;
    char *read;

    if (strcmp(text, "-") == 0)
        return input_read("config", err);
    if (text[0] == '{') {
        config = json_text_parse(text, strlen(text), err);
        if (config == NULL)
            error_prefix(err, "--config");
        return config;
    }
    if (strchr(text, '/') != NULL || (dot != NULL && strcmp(dot, ".json") == 0))
        snprintf(path, sizeof(path), "%s", text);
    else if (shard_name_ok(text))
        snprintf(path, sizeof(path), "%s/" CONFIGS_DIR "/%s.json", home->dir, text);
    else
        path[0] = '\0';
    if (path[0] == '\0') {
        error_set(err, "--config=%s: write a file, or the name of one in %s/" CONFIGS_DIR,
                  error_value(text).text, error_path(home->dir).text);
        return NULL;
    }
    read = file_read(path, CONFIG_MAX, &len, err);
    config = read != NULL ? json_text_parse(read, len, err) : NULL;
    if (read != NULL && config == NULL)
        error_prefix(err, "--config: %s", error_path(path).text);
    free(read);
    return config;
}

/* The model that is named, or the only one of the service. */
static int choose_model(struct spec_order *order, json_object *service, struct error *err)
{
    json_object *models = json_object_object_get(service, "models");

    if (order->model != NULL)
        return 0;
    if (json_object_is_type(models, json_type_array) && json_object_array_length(models) == 1)
        order->model = json_get_string(json_object_array_get_idx(models, 0), "name");
    return order->model != NULL
               ? 0
               : error_set(err, "service %s has %zu models; write --model=NAME", order->service,
                           json_object_is_type(models, json_type_array)
                               ? json_object_array_length(models)
                               : (size_t)0);
}

/* ---- start ----------------------------------------------------------------------------------- */

/* Until it is over. */
static int await(const struct home *home, int64_t id, struct error *err)
{
    struct home_record record;

    stop_watch(0);
    while (!stop_asked()) {
        struct timespec time = {.tv_nsec = LOOK_NS};

        if (home_record_read(home, id, &record, err) == 0 && fit_is_over(&record.fit))
            break;
        nanosleep(&time, NULL);
    }
    if (stop_asked())
        return error_set(err, "stopped; the fit goes on");
    if (record.fit.status == FIT_SUCCESS)
        return 0;
    return error_set(err, "fit %" PRId64 " has ended as %s: %s", id,
                     fit_status_name(record.fit.status), record.fit.reason);
}

static int say_started(const struct fit_arguments *arguments, const struct home *home,
                       const struct spec_order *order, int64_t id, struct error *err)
{
    int rc = arguments->wait ? await(home, id, err) : 0;

    if (arguments->json) {
        struct fit_arguments shown = *arguments;
        struct error other;

        shown.id = id;
        look_print(&shown, home, &other);
        return rc;
    }
    if (rc == 0)
        printf(arguments->wait ? "fit %" PRId64 " of %s: model %s has been trained, and is served\n"
                               : "fit %" PRId64 " of %s: model %s is to be trained\n",
               id, order->service, order->model);
    return rc;
}

static int start(const struct fit_arguments *arguments, const struct home *home,
                 struct spec_order *order, struct error *err)
{
    uint32_t job;
    json_object *service, *run;
    int64_t id = 0;
    int rc = service_job(order->service, &job, err);

    if (rc != 0)
        return -1;
    deadline_start();
    service = query_answer(job, request_new("shards"), "shards", err);
    rc = service != NULL ? choose_model(order, service, err) : -1;
    run = rc == 0 ? spec_create(order, service, (double)time(NULL), err) : NULL;
    rc = run != NULL ? home_add(home, run, &id, err) : -1;
    if (rc == 0)
        rc = say_started(arguments, home, order, id, err);
    json_object_put(service);
    return rc;
}

/* data and targets are new texts. -1 with err. */
static int read_order(const struct fit_arguments *arguments, const struct home *home,
                      struct spec_order *order, char **data, char **targets, struct error *err)
{
    *data = data_of("data", arguments->data, err);
    if (*data == NULL)
        return -1;
    if (arguments->targets != NULL &&
        (*targets = data_of("targets", arguments->targets, err)) == NULL)
        return -1;
    if (arguments->config != NULL &&
        (order->config = config_of(home, arguments->config, err)) == NULL)
        return -1;
    order->data = *data;
    order->targets = *targets;
    return 0;
}

int fit_start(const struct fit_arguments *given, struct error *err)
{
    struct fit_arguments arguments = *given;
    struct spec_order order = {.service = given->service,
                               .model = given->model,
                               .dataset = given->dataset,
                               .format = given->format,
                               .from = given->from,
                               .trainer = given->trainer};
    char *data = NULL, *targets = NULL;
    json_object *input = NULL;
    struct home home;
    int rc = home_open(&home, given->service, err);

    for (int i = 0; i < 3; i++)
        order.within[i] = given->within[i] > 0 ? &given->within[i] : NULL;
    if (rc == 0 && given->data == NULL)
        rc = error_set(err, "start: needs --data=DATA");
    if (rc == 0 && strcmp(given->data, "-") == 0 &&
        (input = order_read(&arguments, &order, err)) == NULL)
        rc = -1;
    if (rc == 0)
        rc = read_order(&arguments, &home, &order, &data, &targets, err);
    if (rc == 0)
        rc = start(&arguments, &home, &order, err);
    json_object_put(order.config);
    json_object_put(input);
    free(targets);
    free(data);
    return rc;
}

/* ---- cancel ---------------------------------------------------------------------------------- */

int fit_cancel(const struct fit_arguments *arguments, struct error *err)
{
    const char *reason = arguments->reason != NULL ? arguments->reason : "cancelled by its user";
    struct home_record record;
    struct home home;
    struct fit_arguments shown = *arguments;
    int64_t id = arguments->id;
    int rc;

    if (arguments->guests)
        return guest_cancel(arguments, err);
    rc = home_open(&home, arguments->service, err);
    if (rc == 0)
        rc = look_find(&home, &id, err);
    if (rc != 0)
        return rc;
    record = (struct home_record){.fit.status = FIT_INITIAL};
    if (home_record_read(&home, id, &record, err) != 0 && errno != ENOENT)
        return -1;
    if (fit_is_over(&record.fit)) {
        error_set(err, "fit %" PRId64 " is over already: %s", id,
                  fit_status_name(record.fit.status));
        return FIT_EXIT_OVER;
    }
    if (file_replace(home_path(&home, id, HOME_CANCEL_FILE).text, reason, strlen(reason), 0600,
                     err) != 0)
        return -1;
    shown.id = id;
    if (arguments->json)
        return look_print(&shown, &home, err);
    printf("fit %" PRId64 " of %s: is to end\n", id, arguments->service);
    return 0;
}
