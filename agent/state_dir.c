/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whose the directories are that a job finds (state_dir.h). */
#include "agent/state_dir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/files.h"
#include "common/log.h"

#define ASIDE_TRIES 100
/* In a checkpoint directory, which may be the user's own: not to be seen by ls. */
#define CHECKPOINT_RECORD "." JOB_RECORD_FILE

enum owner { OWNER_NOBODY, OWNER_SELF, OWNER_OTHER };

static char *join(const char *dir, const char *name)
{
    char *path = NULL;

    return asprintf(&path, "%s/%s", dir, name) < 0 ? NULL : path;
}

static bool read_record(const char *dir, const char *name, struct job_record *record)
{
    char *path = join(dir, name), *text;
    struct error err = {""};
    size_t len = 0;
    bool there = false;

    text = path != NULL ? file_read(path, JOB_RECORD_MAX, &len, &err) : NULL;
    if (text != NULL)
        there = job_record_parse(text, len, record, &err) == 0;
    if (text != NULL && !there)
        log_error("%s: %s", path, err.text);
    free(text);
    free(path);
    return there;
}

static int write_record(const char *dir, const char *name, const struct job_record *record,
                        struct error *err)
{
    char *path = join(dir, name), *text = job_record_format(record);
    int rc = -1;

    if (path == NULL || text == NULL)
        error_set(err, "out of memory");
    else
        rc = file_replace(path, text, strlen(text), 0600, err);
    free(path);
    free(text);
    return rc;
}

/* A version without records has left generation.json: a job that has never been requeued finds it
 * only if another job has been there before. */
static bool was_used(const char *dir, struct job_record *record)
{
    char *path = join(dir, "generation.json");
    struct stat st;
    bool used = path != NULL && lstat(path, &st) == 0;

    free(path);
    if (!used)
        return false;
    record->first = st.st_mtime;
    return true;
}

static enum owner owner_of(const char *dir, const struct job_record *job, struct job_record *found)
{
    if (read_record(dir, JOB_RECORD_FILE, found))
        return job_record_is_of(found, job) ? OWNER_SELF : OWNER_OTHER;
    *found = *job;
    found->submit = found->first = 0;
    return job->restarts == 0 && was_used(dir, found) && found->first < job->submit ? OWNER_OTHER
                                                                                    : OWNER_NOBODY;
}

static int move_aside(const char *dir, const struct job_record *old, struct error *err)
{
    char who[160], *aside = NULL;
    int rc = -1;

    for (int try = 1; rc != 0 && try <= ASIDE_TRIES; try++) {
        free(aside);
        aside = job_record_aside(dir, old->first, try);
        if (aside == NULL)
            return error_set(err, "out of memory");
        rc = rename(dir, aside);
        if (rc != 0 && errno != ENOTEMPTY && errno != EEXIST)
            break;
    }
    job_record_describe(old, who, sizeof(who));
    if (rc == 0)
        log_info("%s was of %s: it is %s now, and this job starts without it", dir, who, aside);
    else
        error_set(err, "%s is of %s, and cannot be moved to %s: %s", dir, who, aside,
                  strerror(errno));
    free(aside);
    return rc;
}

/* Terms that an earlier job of this number has claimed would keep this job from leading. */
static int forget_terms(const char *dir, struct error *err)
{
    char *path = join(dir, "leader");
    int rc = path != NULL ? dir_remove(path, err) : error_set(err, "out of memory");

    free(path);
    return rc;
}

static int use_as_told(const char *dir, const struct job_record *old, const struct job_record *job,
                       struct error *err)
{
    char who[160];

    job_record_describe(old, who, sizeof(who));
    log_info("--state-dir=%s was of %s: job %u goes on with what is in it", dir, who, job->job);
    return old->job == job->job ? forget_terms(dir, err) : 0;
}

int state_dir_take(const char *dir, bool named, struct job_record *job, struct error *err)
{
    struct job_record found;
    int rc = named ? dir_make(dir, err) : dir_make_private(dir, err);

    job->first = job->submit;
    if (rc != 0)
        return -1;
    switch (owner_of(dir, job, &found)) {
    case OWNER_SELF:
        job->first = found.first;
        break;
    case OWNER_OTHER:
        rc = named ? use_as_told(dir, &found, job, err) : move_aside(dir, &found, err);
        if (rc == 0 && !named)
            rc = dir_make_private(dir, err);
        break;
    case OWNER_NOBODY:
        break;
    }
    return rc == 0 ? write_record(dir, JOB_RECORD_FILE, job, err) : rc;
}

int state_dir_take_checkpoints(const char *dir, const struct job_record *job, struct error *err)
{
    struct job_record found;
    char who[160];

    if (dir_make(dir, err) != 0)
        return -1;
    if (read_record(dir, CHECKPOINT_RECORD, &found) && !job_record_is_of(&found, job)) {
        job_record_describe(&found, who, sizeof(who));
        log_info("--checkpoint-dir=%s was of %s: job %u goes on with what is in it", dir, who,
                 job->job);
    }
    return write_record(dir, CHECKPOINT_RECORD, job, err);
}
