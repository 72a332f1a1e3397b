/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parts of a training (training.h). */
#include "fit/training.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/files.h"
#include "fit/new_state.h"
#include "lib/json_get.h"

#define SCRATCH       "elastic-fit-"
#define SCRATCH_TRIES 3

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

struct attempt_file {
    char name[24];
};

static struct attempt_file attempt_file(int attempt)
{
    struct attempt_file file;

    snprintf(file.name, sizeof(file.name), "attempt.%d", attempt);
    return file;
}

bool training_attempt(const struct home *home, int64_t id, int *attempt)
{
    for (*attempt = 1; *attempt <= TRAINING_ATTEMPTS; (*attempt)++) {
        if (home_make(home, id, attempt_file(*attempt).name))
            return true;
        if (errno != EEXIST)
            return false;
    }
    errno = EEXIST;
    return false;
}

bool training_is_followed(const struct home *home, int64_t id, int attempt)
{
    return home_has(home, id, attempt_file(attempt + 1).name);
}

bool training_is_wanted(const struct fit *fit)
{
    return fit->dedicated && !fit->cleaning && !fit_is_over(fit);
}

int training_find(const struct home *home, int64_t *id, struct spec *spec,
                  struct home_record *record, struct error *err)
{
    size_t count;
    int64_t *list = home_list(home, &count, err);
    int rc = list != NULL ? 0 : -1;

    *id = 0;
    while (rc == 0 && *id == 0 && count-- > 0) {
        if (home_record_read(home, list[count], record, NULL) != 0 ||
            !training_is_wanted(&record->fit))
            continue;
        rc = spec_read(home, list[count], spec, err);
        if (rc == 0)
            *id = list[count];
    }
    free(list);
    return rc;
}

static json_object *result(int code, const char *why)
{
    json_object *json = json_object_new_object();

    json_object_object_add(json, "exit", json_object_new_int(code));
    json_object_object_add(json, "why", json_object_new_string(why));
    return json;
}

int training_say(const struct home *home, int64_t id, const char *file, int code,
                 const struct error *why, struct error *err)
{
    return home_write(home, id, file, result(code, why->text), err);
}

int training_done(const struct home *home, int64_t id, const char *attempt, struct error *err)
{
    json_object *json = result(0, "");

    json_object_object_add(json, "attempt", json_object_new_string(attempt));
    return home_write(home, id, HOME_FIT_FILE, json, err);
}

/* ---- what it is told ------------------------------------------------------------------------- */

struct call_file {
    char name[NEW_STATE_ATTEMPT_MAX + 16];
};

static struct call_file call_file(const char *attempt)
{
    struct call_file file;

    snprintf(file.name, sizeof(file.name), "call-%.*s.json", NEW_STATE_ATTEMPT_MAX, attempt);
    return file;
}

int training_call(const struct home *home, int64_t id, const struct spec *spec,
                  const struct home_record *record, const char *attempt, struct error *err)
{
    struct new_state_path to = new_state_attempt_path(spec->place, record->state, attempt);
    struct new_state_path from = new_state_path(spec->place, record->previous, true);
    struct call_file file = call_file(attempt);

    return home_has(home, id, file.name)
               ? 0
               : home_write(home, id, file.name,
                            spec_call(spec, to.text, record->previous > 0 ? from.text : NULL, NULL),
                            err);
}

/* ---- directories for copies ------------------------------------------------------------------ */

static const char *scratch_root(void)
{
    const char *tmp = getenv("TMPDIR");

    return tmp != NULL && tmp[0] == '/' ? tmp : "/tmp";
}

/* -1: it is in use, or another one's. */
static int lock_scratch(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;

    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
        flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* A sweep may be faster than the lock of a new directory. */
int training_scratch_make(struct training_scratch *scratch, struct error *err)
{
    for (int i = 0; i < SCRATCH_TRIES; i++) {
        snprintf(scratch->path, sizeof(scratch->path), "%.3900s/" SCRATCH "XXXXXX", scratch_root());
        if (mkdtemp(scratch->path) == NULL)
            break;
        scratch->lock = lock_scratch(AT_FDCWD, scratch->path);
        if (scratch->lock >= 0 && access(scratch->path, F_OK) == 0)
            return 0;
        if (scratch->lock >= 0)
            close(scratch->lock);
        rmdir(scratch->path); /* the sweep has it, or no lock is to be had there */
    }
    error_set(err, "%s: %s", error_path(scratch->path).text, strerror(errno));
    scratch->path[0] = '\0';
    return -1;
}

void training_scratch_remove(struct training_scratch *scratch)
{
    if (scratch->path[0] == '\0')
        return;
    dir_remove(scratch->path, NULL);
    if (scratch->lock >= 0)
        close(scratch->lock);
    scratch->path[0] = '\0';
}

void training_scratch_sweep(void)
{
    DIR *list = opendir(scratch_root());
    struct dirent *entry;
    char path[PATH_MAX];

    while (list != NULL && (entry = readdir(list)) != NULL) {
        int lock = -1;

        if (strncmp(entry->d_name, SCRATCH, strlen(SCRATCH)) == 0)
            lock = lock_scratch(dirfd(list), entry->d_name);
        if (lock < 0)
            continue;
        snprintf(path, sizeof(path), "%.3800s/%s", scratch_root(), entry->d_name);
        dir_remove(path, NULL);
        close(lock);
    }
    if (list != NULL)
        closedir(list);
}

/* ---- variables ------------------------------------------------------------------------------- */

void training_add(struct training_added *added, const char *name, const char *value)
{
    if (value == NULL || added->count == TRAINING_ADDED_MAX)
        return;
    if (asprintf(&added->list[added->count], "%s=%s", name, value) < 0)
        added->list[added->count] = NULL;
    else
        added->count++;
}

struct training_added training_environment(const struct home *home, int64_t id,
                                           const struct spec *spec,
                                           const struct home_record *record, const char *attempt,
                                           const char *staged)
{
    struct new_state_path to = new_state_attempt_path(spec->place, record->state, attempt);
    struct new_state_path from = new_state_path(spec->place, record->previous, true);
    struct training_added added = {0};
    char number[24];

    snprintf(number, sizeof(number), "%" PRId64, id);
    training_add(&added, "ELASTIC_FIT", home_path(home, id, call_file(attempt).name).text);
    training_add(&added, "ELASTIC_FIT_ID", number);
    training_add(&added, "ELASTIC_MODEL_DIR", to.text);
    training_add(&added, "ELASTIC_PREVIOUS_MODEL_DIR", record->previous > 0 ? from.text : NULL);
    training_add(&added, "ELASTIC_TRAIN_DATA", json_get_string(spec->json, "trainData"));
    training_add(&added, "ELASTIC_TARGETS_DATA", json_get_string(spec->json, "targetsData"));
    if (home_has(home, id, HOME_CONFIG_FILE))
        training_add(&added, "ELASTIC_FIT_CONFIG", home_path(home, id, HOME_CONFIG_FILE).text);
    training_add(&added, "ELASTIC_STAGED", staged[0] != '\0' ? staged : NULL);
    return added;
}

void training_added_clear(struct training_added *added)
{
    for (int i = 0; i < added->count; i++)
        free(added->list[i]);
}
