/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parts of a training (training.h). */
#include "fit/training.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int training_here(const struct home *home, int64_t id, const char *key, struct error *err)
{
    json_object *here = json_object_new_object();
    char host[256] = "";

    gethostname(host, sizeof(host) - 1);
    json_object_object_add(here, "node", json_object_new_string(host));
    json_object_object_add(here, "pid", json_object_new_int(getpid()));
    json_object_object_add(here, "at", json_object_new_int64((int64_t)time(NULL)));
    if (key != NULL)
        json_object_object_add(here, "key", json_object_new_string(key));
    return home_write(home, id, HOME_TRAINER_FILE, here, err);
}

bool training_attempt(const struct home *home, int64_t id, int *attempt)
{
    for (*attempt = 1; *attempt <= TRAINING_ATTEMPTS; (*attempt)++) {
        char file[24];

        snprintf(file, sizeof(file), "attempt.%d", *attempt);
        if (home_make(home, id, file))
            return true;
        if (errno != EEXIST)
            return false;
    }
    errno = EEXIST;
    return false;
}

int training_say(const struct home *home, int64_t id, const char *file, int code,
                 const struct error *why, struct error *err)
{
    json_object *json = json_object_new_object();

    json_object_object_add(json, "exit", json_object_new_int(code));
    json_object_object_add(json, "why", json_object_new_string(why->text));
    return home_write(home, id, file, json, err);
}

int training_scratch(char path[PATH_MAX], struct error *err)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(path, PATH_MAX, "%.3900s/elastic-fit-XXXXXX",
             tmp != NULL && tmp[0] == '/' ? tmp : "/tmp");
    if (mkdtemp(path) != NULL)
        return 0;
    error_set(err, "%s: %s", error_path(path).text, strerror(errno));
    path[0] = '\0';
    return -1;
}

void training_add(struct training_added *added, const char *name, const char *value)
{
    if (value == NULL || added->count == TRAINING_ADDED_MAX)
        return;
    if (asprintf(&added->list[added->count], "%s=%s", name, value) < 0)
        added->list[added->count] = NULL;
    else
        added->count++;
}

void training_added_clear(struct training_added *added)
{
    for (int i = 0; i < added->count; i++)
        free(added->list[i]);
}
