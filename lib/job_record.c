/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whose a directory is (job_record.h). */
#include "lib/job_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "lib/json_get.h"
#include "lib/json_text.h"

char *job_record_format(const struct job_record *record)
{
    json_object *obj = json_object_new_object();
    char *text = NULL;

    json_object_object_add(obj, "cluster", json_object_new_string(record->cluster));
    json_object_object_add(obj, "job", json_object_new_int64(record->job));
    json_object_object_add(obj, "user", json_object_new_string(record->user));
    json_object_object_add(obj, "restarts", json_object_new_int64(record->restarts));
    json_object_object_add(obj, "submit", json_object_new_int64(record->submit));
    json_object_object_add(obj, "first_submit", json_object_new_int64(record->first));
    if (asprintf(&text, "%s\n", json_object_to_json_string_ext(obj, JSON_C_TO_STRING_SPACED)) < 0)
        text = NULL;
    json_object_put(obj);
    return text;
}

int job_record_parse(const char *text, size_t len, struct job_record *record, struct error *err)
{
    json_object *obj = json_text_parse(text, len, err);
    const char *cluster = json_get_string(obj, "cluster"), *user = json_get_string(obj, "user");
    int64_t job, restarts, submit, first;
    int rc = -1;

    if (obj == NULL)
        return -1;
    if (cluster == NULL || user == NULL || !json_get_int(obj, "job", 1, UINT32_MAX, &job) ||
        !json_get_int(obj, "restarts", 0, UINT32_MAX, &restarts) ||
        !json_get_int(obj, "submit", 0, INT64_MAX, &submit) ||
        !json_get_int(obj, "first_submit", 0, INT64_MAX, &first)) {
        error_set(err, "it is no record of a job: cluster, job, user, restarts, submit and "
                       "first_submit must be there");
    } else {
        *record = (struct job_record){.job = (uint32_t)job,
                                      .restarts = (uint32_t)restarts,
                                      .submit = (time_t)submit,
                                      .first = (time_t)first};
        snprintf(record->cluster, sizeof(record->cluster), "%s", cluster);
        snprintf(record->user, sizeof(record->user), "%s", user);
        rc = 0;
    }
    json_object_put(obj);
    return rc;
}

bool job_record_is_of(const struct job_record *record, const struct job_record *job)
{
    if (record->job != job->job || strcmp(record->cluster, job->cluster) != 0 ||
        strcmp(record->user, job->user) != 0)
        return false;
    /* A time that Slurm has not told proves nothing, and checkpoints are worth more. */
    if (record->restarts == job->restarts)
        return record->submit == job->submit || record->submit == 0 || job->submit == 0;
    return record->restarts < job->restarts;
}

void job_record_describe(const struct job_record *record, char *text, size_t size)
{
    struct tm tm;
    char when[32] = "?";

    if (localtime_r(&record->first, &tm) != NULL)
        strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
    snprintf(text, size, "job %u of %s, submitted %s", record->job, error_value(record->user).text,
             when);
}

char *job_record_aside(const char *dir, time_t submit, int try)
{
    size_t len = strlen(dir);
    char when[32] = "?", *path;
    struct tm tm;
    int rc;

    while (len > 1 && dir[len - 1] == '/')
        len--;
    if (localtime_r(&submit, &tm) != NULL)
        strftime(when, sizeof(when), "%Y%m%dT%H%M%S", &tm);
    if (try > 1)
        rc = asprintf(&path, "%.*s.old-%s-%d", (int)len, dir, when, try);
    else
        rc = asprintf(&path, "%.*s.old-%s", (int)len, dir, when);
    return rc < 0 ? NULL : path;
}
