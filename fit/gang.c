/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tasks of a training that is a gang (gang.h). */
#include "fit/gang.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json_get.h"
#include "lib/number.h"
#include "lib/roles.h"

#define GANG_FILE "gang.json"

static int number_of(const char *name, int most, int otherwise)
{
    const char *text = getenv(name);
    int number;

    return text != NULL && number_parse(text, strlen(text), 0, most, &number) == 0 ? number
                                                                                   : otherwise;
}

static const char *text_of(const char *name)
{
    const char *text = getenv(name);

    return text != NULL ? text : "";
}

/* All tasks of a gang are in one job, which may come back from the queue. */
struct gang gang_here(void)
{
    struct gang gang = {.task = number_of("ELASTIC_TASK", ROLES_TASKS_MAX - 1, 0),
                        .tasks = number_of("ELASTIC_TASKS", ROLES_TASKS_MAX, 1),
                        .waited = 1};

    snprintf(gang.start, sizeof(gang.start), "%.20s.%.20s.%.20s", text_of("SLURM_JOB_ID"),
             text_of("SLURM_RESTART_COUNT"), text_of("ELASTIC_START"));
    return gang;
}

struct name {
    char text[64];
};

static struct name name_of(const struct gang *gang, int task)
{
    struct name name;

    if (task > 0)
        snprintf(name.text, sizeof(name.text), "gang.%d.%d", gang->attempt, task);
    else
        snprintf(name.text, sizeof(name.text), "gang.%d.failed", gang->attempt);
    return name;
}

int gang_begin(struct gang *gang, const struct home *home, int64_t id, int attempt,
               const char *staged, struct error *err)
{
    json_object *json = json_object_new_object();

    gang->attempt = attempt;
    gang->waited = 1;
    json_object_object_add(json, "start", json_object_new_string(gang->start));
    json_object_object_add(json, "attempt", json_object_new_int(attempt));
    json_object_object_add(json, "staged", json_object_new_string(staged));
    return home_write(home, id, GANG_FILE, json, err);
}

bool gang_has_failed(const struct gang *gang, const struct home *home, int64_t id,
                     struct error *why)
{
    json_object *json = gang->tasks > 1 ? home_read(home, id, name_of(gang, 0).text, NULL) : NULL;
    const char *text = json_get_string(json, "why");
    int64_t task = 0;

    /* One that cannot be understood says that as well. */
    if (json == NULL && (gang->tasks <= 1 || errno != EINVAL))
        return false;
    json_get_int(json, "task", 0, ROLES_TASKS_MAX, &task);
    error_set(why, "task %" PRId64 ": %s", task, text != NULL ? text : "it has failed");
    json_object_put(json);
    return true;
}

bool gang_is_done(struct gang *gang, const struct home *home, int64_t id)
{
    while (gang->waited < gang->tasks && home_has(home, id, name_of(gang, gang->waited).text))
        gang->waited++;
    return gang->waited >= gang->tasks;
}

bool gang_has_begun(struct gang *gang, const struct home *home, int64_t id, char *staged,
                    size_t size)
{
    json_object *json = home_read(home, id, GANG_FILE, NULL);
    const char *where = json_get_string(json, "staged"), *start = json_get_string(json, "start");
    int64_t attempt = 0;
    bool own = start != NULL && strcmp(start, gang->start) == 0 &&
               json_get_int(json, "attempt", 1, INT32_MAX, &attempt);

    snprintf(staged, size, "%s", where != NULL ? where : "");
    json_object_put(json);
    if (own)
        gang->attempt = (int)attempt;
    return own && !home_has(home, id, name_of(gang, gang->task).text) &&
           !home_has(home, id, name_of(gang, 0).text);
}

int gang_say(const struct gang *gang, const struct home *home, int64_t id, int code,
             const struct error *why, struct error *err)
{
    json_object *json;

    if (code == 0)
        return home_make(home, id, name_of(gang, gang->task).text) || errno == EEXIST
                   ? 0
                   : error_set(err, "fit %" PRId64 ": %s", id, strerror(errno));
    json = json_object_new_object();
    json_object_object_add(json, "task", json_object_new_int(gang->task));
    json_object_object_add(json, "why", json_object_new_string(why->text));
    return home_write(home, id, name_of(gang, 0).text, json, err);
}
