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

/* Seconds since that job has written leader.json; -1: it has ended, or never has. The clock is the
 * one of the file system. */
static double silent_for(const char *dir, const char *job)
{
    char path[PATH_MAX], probe[PATH_MAX];
    struct stat then, now;
    json_object *json = NULL;
    char *text;
    size_t len;
    double seconds = -1;
    int64_t number;
    char of[32] = "";
    int fd;

    snprintf(path, sizeof(path), "%s/" SERVICE_LEADER_FILE, dir);
    snprintf(probe, sizeof(probe), "%s/.now.%ld", dir, (long)getpid());
    text = file_read(path, SERVICE_FILE_MAX, &len, NULL);
    if (text != NULL)
        json = json_text_parse(text, len, NULL);
    free(text);
    if (json_get_int(json, "job", 1, INT32_MAX, &number))
        snprintf(of, sizeof(of), "%" PRId64, number);
    fd = open(probe, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && strcmp(of, job) == 0 && !json_get_bool(json, "ended", false) &&
        write(fd, "", 1) == 1 && fsync(fd) == 0 && fstat(fd, &now) == 0 && stat(path, &then) == 0)
        seconds = (double)(now.st_mtime - then.st_mtime);
    if (fd >= 0) {
        close(fd);
        unlink(probe);
    }
    json_object_put(json);
    return seconds;
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

static enum service_claim claim_once(const char *dir, const char *job, int64_t *term, char *other,
                                     size_t size, struct error *err, bool *again)
{
    int64_t last = highest(dir, err);
    char *of = last > 0 ? holder(dir, last, err) : NULL;
    double silent;
    int rc;

    *again = false;
    if (last < 0 || (last > 0 && of == NULL))
        return SERVICE_FAILED;
    if (of != NULL && strcmp(of, job) == 0) {
        *term = last;
        free(of);
        return SERVICE_CLAIMED;
    }
    silent = of != NULL ? silent_for(dir, of) : -1;
    if (silent >= 0 && silent < SERVICE_SILENT) {
        snprintf(other, size, "%s", of);
        free(of);
        return SERVICE_OTHERS;
    }
    free(of);
    rc = make_claim(dir, last + 1, job, err);
    *again = rc == 1;
    *term = last + 1;
    return rc == 0 ? SERVICE_CLAIMED : SERVICE_FAILED;
}

enum service_claim service_dir_claim(const char *dir, const char *job, int64_t *term, char *other,
                                     size_t size, struct error *err)
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
    for (int i = 0; again && i < CLAIM_TRIES; i++)
        result = claim_once(dir, job, term, other, size, err, &again);
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
