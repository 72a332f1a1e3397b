/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The directory of a service (service_dir.h). */
#include "common/service_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/files.h"
#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/number.h"
#include "lib/roles.h"

#define TERMS_DIR   "terms"
#define TERM_MAX    999999999
#define TERM_SIZE   200 /* bytes of such a file */
#define TERMS_KEPT  8
#define CLAIM_TRIES 10

int service_dir_all(char *path, size_t size, struct error *err)
{
    const char *home = getenv("HOME");
    char entry[4096];
    struct passwd pw, *found = NULL;

    if (home == NULL || home[0] != '/') {
        if (getpwuid_r(geteuid(), &pw, entry, sizeof(entry), &found) != 0 || found == NULL)
            return error_set(err, "no home directory is known");
        home = found->pw_dir;
    }
    if ((size_t)snprintf(path, size, "%s/.slurm-elastic/services", home) >= size)
        return error_set(err, "the path of the home directory is too long");
    return 0;
}

int service_dir_path(char *path, size_t size, const char *name, struct error *err)
{
    size_t len;

    if (!role_is_name(name))
        return error_set(err, "'%s' is no name of a service; " ROLE_NAME_FORM,
                         error_value(name).text);
    if (service_dir_all(path, size, err) != 0)
        return -1;
    len = strlen(path);
    if ((size_t)snprintf(path + len, size - len, "/%s", name) >= size - len)
        return error_set(err, "the path of the home directory is too long");
    return 0;
}

/* ---- claims ---------------------------------------------------------------------------------- */

/* The highest number of a claim; 0: there is none; -1 with err. Claims long before are removed. */
static int64_t highest(const char *dir, struct error *err)
{
    char path[PATH_MAX];
    struct dirent *entry;
    int64_t most = 0;
    int term;
    DIR *list;

    snprintf(path, sizeof(path), "%s/" TERMS_DIR, dir);
    list = opendir(path);
    if (list == NULL)
        return error_set(err, "%s: %s", error_path(path).text, strerror(errno));
    while ((entry = readdir(list)) != NULL)
        if (number_parse(entry->d_name, strlen(entry->d_name), 1, TERM_MAX, &term) == 0 &&
            term > most)
            most = term;
    rewinddir(list);
    while ((entry = readdir(list)) != NULL)
        if (number_parse(entry->d_name, strlen(entry->d_name), 1, TERM_MAX, &term) == 0 &&
            term < most - TERMS_KEPT)
            unlinkat(dirfd(list), entry->d_name, 0);
    closedir(list);
    return most;
}

static char *holder(const char *dir, int64_t term, struct error *err)
{
    char path[PATH_MAX], *text;

    snprintf(path, sizeof(path), "%s/" TERMS_DIR "/%" PRId64, dir, term);
    text = file_read(path, TERM_SIZE, NULL, err);
    if (text != NULL)
        text[strcspn(text, "\n")] = '\0';
    return text;
}

/* Seconds since the file was written, by the clock of its file system. */
static double age(const char *dir, const char *path)
{
    char probe[PATH_MAX];
    struct stat then, now;
    double seconds = SERVICE_SILENT;
    int fd;

    snprintf(probe, sizeof(probe), "%s/.now.%ld.%ld", dir, (long)getpid(), (long)gettid());
    fd = open(probe, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && write(fd, "", 1) == 1 && fsync(fd) == 0 && fstat(fd, &now) == 0 &&
        stat(path, &then) == 0)
        seconds = (double)(now.st_mtime - then.st_mtime);
    if (fd >= 0) {
        close(fd);
        unlink(probe);
    }
    return seconds;
}

static uint32_t job_in(json_object *json, const char *key)
{
    int64_t number = 0;

    return json_get_int(json, key, 1, INT32_MAX, &number) ? (uint32_t)number : 0;
}

void service_dir_look(const char *dir, const char *file, struct service_seen *seen)
{
    char path[PATH_MAX], *text;
    json_object *json = NULL;
    size_t len;

    *seen = (struct service_seen){0};
    snprintf(path, sizeof(path), "%s/%s", dir, file);
    text = file_read(path, SERVICE_FILE_MAX, &len, NULL);
    if (text != NULL)
        json = json_text_parse(text, len, NULL);
    free(text);
    seen->job = job_in(json, "job");
    seen->ended = json_get_bool(json, "ended", false);
    seen->serves = json_get_bool(json, "serves", false);
    seen->successor = job_in(json, "successor");
    seen->submitted = job_in(json, "submitted");
    seen->of = job_in(json, "of");
    json_get_int(json, "end", 0, INT64_MAX, &seen->end);
    json_get_int(json, "old-end", 0, INT64_MAX, &seen->old_end);
    json_object_put(json);
    if (seen->job != 0)
        seen->silent = age(dir, path);
}

/* 1: somebody else was faster. */
static int make_claim(const char *dir, int64_t term, const char *job, struct error *err)
{
    char path[PATH_MAX], draft[PATH_MAX];
    int rc;

    snprintf(path, sizeof(path), "%s/" TERMS_DIR "/%" PRId64, dir, term);
    snprintf(draft, sizeof(draft), "%s/" TERMS_DIR "/.%s.%ld", dir, job, (long)getpid());
    if (file_replace(draft, job, strlen(job), 0600, err) != 0)
        return -1;
    rc = link(draft, path); /* whole, or not at all */
    if (rc != 0)
        rc = errno == EEXIST ? 1 : error_set(err, "%s: %s", error_path(path).text, strerror(errno));
    unlink(draft);
    return rc;
}

static bool is_there(const struct service_seen *seen, uint32_t job, const struct service_gone *gone,
                     double now)
{
    return job > 0 && seen->job == job && !seen->ended && seen->silent < SERVICE_SILENT &&
           !service_gone_is(gone, job, seen->silent, now);
}

static enum service_claim claim_once(const char *dir, uint32_t job, const struct service_gone *gone,
                                     double now, struct service_claimed *out, struct error *err,
                                     bool *again)
{
    int64_t last = highest(dir, err), of = 0;
    char *text = last > 0 ? holder(dir, last, err) : NULL, name[16];
    int rc, number;

    *again = false;
    if (last < 0 || (last > 0 && text == NULL))
        return SERVICE_FAILED;
    if (text != NULL && number_parse(text, strlen(text), 1, INT32_MAX, &number) == 0)
        of = number;
    free(text);
    service_dir_look(dir, SERVICE_LEADER_FILE, &out->seen);
    out->holder = (uint32_t)of;
    out->term = last;
    if (of == job)
        return SERVICE_CLAIMED;
    if (is_there(&out->seen, (uint32_t)of, gone, now)) {
        if (out->seen.successor != job)
            return SERVICE_OTHERS;
        out->handed = true;
    }
    snprintf(name, sizeof(name), "%u", job);
    rc = make_claim(dir, last + 1, name, err);
    *again = rc == 1;
    out->term = last + 1;
    return rc == 0 ? SERVICE_CLAIMED : SERVICE_FAILED;
}

enum service_claim service_dir_claim(const char *dir, uint32_t job, const struct service_gone *gone,
                                     double now, struct service_claimed *out, struct error *err)
{
    enum service_claim result = SERVICE_FAILED;
    char path[PATH_MAX];
    bool again = true;

    snprintf(path, sizeof(path), "%s/" TERMS_DIR, dir);
    if (dir_make(dir, err) != 0 || dir_make(path, err) != 0)
        return SERVICE_FAILED;
    snprintf(path, sizeof(path), "%s/" SERVICE_MODELS_DIR, dir);
    if (dir_make(path, err) != 0)
        return SERVICE_FAILED;
    for (int i = 0; again && i < CLAIM_TRIES; i++) {
        *out = (struct service_claimed){0};
        result = claim_once(dir, job, gone, now, out, err, &again);
    }
    if (again)
        error_set(err, "%s: others claim the service again and again", error_path(dir).text);
    return result;
}

int service_dir_check(const char *dir, int64_t term, struct error *err)
{
    int64_t last = highest(dir, err);
    char *of;

    if (last < 0 || last == term)
        return last < 0 ? -1 : 0;
    of = holder(dir, last, NULL);
    error_set(err, "job %s runs the service now", of != NULL ? error_value(of).text : "?");
    free(of);
    return -1;
}
