/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What lib/doctor.h wants to know of files (doctor_files.h). */
#include "cmd/doctor_files.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/terminal_text.h"
#include "common/files.h"
#include "common/service_dir.h"
#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/number.h"

#define CONF_MAX   ((size_t)1 << 20)
#define SCRIPT_MAX ((size_t)1 << 20)
#define DEPTH_MAX  4

/* ---- plugstack.conf -------------------------------------------------------------------------- */

static void add_file(FILE *out, const char *path, int depth);

/* "include PATTERN", relative to the file's own directory. */
static void add_included(FILE *out, const char *file, const char *pattern, int depth)
{
    char full[PATH_MAX];
    const char *slash = strrchr(file, '/');
    glob_t found;
    snprintf(full, sizeof(full), "%.*s%s",
             pattern[0] == '/' || slash == NULL ? 0 : (int)(slash - file + 1), file, pattern);
    if (glob(full, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        add_file(out, found.gl_pathv[i], depth + 1);
    globfree(&found);
}

static void add_file(FILE *out, const char *path, int depth)
{
    char *text = file_read(path, CONF_MAX, NULL, NULL), *rest = text, *line, pattern[PATH_MAX];
    while (text != NULL && (line = strsep(&rest, "\n")) != NULL) {
        fprintf(out, "%s\n", line);
        if (depth < DEPTH_MAX && sscanf(line, " include %4095s", pattern) == 1)
            add_included(out, path, pattern, depth);
    }
    free(text);
}

char *doctor_files_plugstack(const char *path)
{
    char *text = NULL;
    size_t size = 0;
    if (access(path, R_OK) != 0 && errno != ENOENT)
        return NULL;
    FILE *out = text_need(open_memstream(&text, &size));
    add_file(out, path, 0);
    fclose(out);
    return text_need(text);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

bool doctor_files_node(void)
{
    DIR *dir = opendir("/proc");
    bool found = false;
    for (const struct dirent *entry; dir != NULL && !found && (entry = readdir(dir)) != NULL;) {
        char path[64], name[32] = "";
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        snprintf(path, sizeof(path), "/proc/%.20s/comm", entry->d_name);
        FILE *file = fopen(path, "re");
        if (file == NULL)
            continue;
        found = fgets(name, sizeof(name), file) != NULL && strcmp(name, "slurmd\n") == 0;
        fclose(file);
    }
    if (dir != NULL)
        closedir(dir);
    return found;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), rest = strlen(end);
    return length >= rest && strcmp(text + length - rest, end) == 0;
}

/* A copy of elastic-hook, or the script of earlier versions: both name what they start. */
static bool starts_ours(const char *file)
{
    static const char name[] = "/slurm-elastic/epilog.d/50-elastic";
    size_t len = 0;
    char *text = file_read(file, SCRIPT_MAX, &len, NULL);
    bool ours = text != NULL && memmem(text, len, name, sizeof(name) - 1) != NULL;
    free(text);
    return ours;
}

/* Ours, a link to it, or what starts it. */
static bool is_ours(const char *file)
{
    char real[PATH_MAX];
    return (realpath(file, real) != NULL &&
            (ends_with(real, "/slurm-elastic/elastic-hook") ||
             ends_with(real, "/slurm-elastic/prolog.d/50-elastic") ||
             ends_with(real, "/slurm-elastic/epilog.d/50-elastic"))) ||
           starts_ours(file);
}

static void look_at_script(const char *file, struct doctor_hook *hook)
{
    struct stat st;
    if (stat(file, &st) != 0) {
        if (errno == ENOENT && hook->broken[0] == '\0')
            snprintf(hook->broken, sizeof(hook->broken), "%s", file);
    } else if (is_ours(file)) {
        snprintf(hook->found, sizeof(hook->found), "%s", file);
        hook->executable = (st.st_mode & S_IXUSR) != 0;
    }
}

/* Would this user see what is there? */
static bool can_look(const char *pattern)
{
    char dir[PATH_MAX], *slash;
    snprintf(dir, sizeof(dir), "%.*s", (int)strcspn(pattern, "*?["), pattern);
    slash = strrchr(dir, '/');
    if (slash == NULL)
        return false;
    slash[slash == dir ? 1 : 0] = '\0';
    return access(dir, R_OK | X_OK) == 0 || errno == ENOENT;
}

void doctor_files_hook(const char *config, const char *name, struct doctor_hook *hook)
{
    char pattern[PATH_MAX];
    *hook = (struct doctor_hook){.executable = false};
    for (int n = 0; doctor_config_value(config, name, n, pattern, sizeof(pattern)); n++) {
        glob_t found;
        int rc = pattern[0] != '\0' ? glob(pattern, 0, NULL, &found) : GLOB_ABORTED;
        if (rc == GLOB_NOMATCH && hook->none[0] == '\0' && can_look(pattern))
            snprintf(hook->none, sizeof(hook->none), "%.500s", pattern);
        if (rc != 0)
            continue;
        for (size_t i = 0; i < found.gl_pathc; i++)
            look_at_script(found.gl_pathv[i], hook);
        globfree(&found);
    }
}

/* ---- programs -------------------------------------------------------------------------------- */

bool doctor_files_missing(const char *libexec, char *path, size_t size)
{
    static const char *const names[] = {"elastic-flush",  "elastic-hook",        "elastic-runs",
                                        "elastic-notice", "epilog.d/50-elastic", "extension.sh"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        snprintf(path, size, "%s/%s", libexec, names[i]);
        if (access(path, X_OK) != 0)
            return true;
    }
    return false;
}

/* ---- who may change them --------------------------------------------------------------------- */

struct risk_search {
    const char *config;
    struct doctor_risk *risk;
};

/* "SlurmdUser = root(0)" */
static bool is_user(const char *config, const char *key, uid_t uid)
{
    char value[128], *number;
    doctor_config_value(config, key, 0, value, sizeof(value));
    number = strrchr(value, '(');
    return number != NULL && strtoul(number + 1, NULL, 10) == uid;
}

static bool is_ordinary(const char *config, uid_t uid)
{
    return config != NULL && uid != 0 && !is_user(config, "SlurmUser", uid) &&
           !is_user(config, "SlurmdUser", uid);
}

/* In a directory with the sticky bit nobody changes what others have there. */
static bool is_writable(const struct stat *st)
{
    if (!S_ISDIR(st->st_mode))
        return (st->st_mode & (S_IWGRP | S_IWOTH)) != 0;
    return (st->st_mode & S_ISVTX) == 0 &&
           ((st->st_mode & S_IWOTH) != 0 || ((st->st_mode & S_IWGRP) != 0 && st->st_gid != 0));
}

static void look_at_one(const struct risk_search *search, const char *path)
{
    struct doctor_risk *risk = search->risk;
    struct stat st;
    if (stat(path, &st) != 0)
        return;
    if (risk->writable[0] == '\0' && is_writable(&st))
        snprintf(risk->writable, sizeof(risk->writable), "%.500s", path);
    if (risk->owned[0] == '\0' && is_ordinary(search->config, st.st_uid)) {
        snprintf(risk->owned, sizeof(risk->owned), "%.500s", path);
        risk->owner = st.st_uid;
    }
}

/* Without links. The file itself may be one, which is in a directory of its own. */
static void look_at_above(const struct risk_search *search, const char *path)
{
    char above[PATH_MAX], real[PATH_MAX], *slash;
    snprintf(above, sizeof(above), "%s", path);
    slash = strrchr(above, '/');
    if (slash == NULL)
        return;
    slash[slash == above ? 1 : 0] = '\0';
    if (realpath(above, real) == NULL)
        return;
    look_at_one(search, real);
    while ((slash = strrchr(real, '/')) != NULL && slash[1] != '\0') {
        slash[slash == real ? 1 : 0] = '\0';
        look_at_one(search, real);
    }
}

static void look_at_all(const struct risk_search *search, const char *pattern)
{
    char real[PATH_MAX];
    glob_t found;
    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        look_at_one(search, found.gl_pathv[i]);
        look_at_above(search, found.gl_pathv[i]);
        if (realpath(found.gl_pathv[i], real) != NULL)
            look_at_above(search, real);
    }
    globfree(&found);
}

static void look_at_hooks(const struct risk_search *search, const char *name)
{
    char pattern[PATH_MAX];
    for (int n = 0; doctor_config_value(search->config, name, n, pattern, sizeof(pattern)); n++)
        look_at_all(search, pattern);
}

bool doctor_files_safe(const char *path, const char *config, char *why, size_t size)
{
    struct doctor_risk risk = {.owner = 0};
    const struct risk_search search = {config, &risk};
    look_at_all(&search, path);
    if (risk.writable[0] != '\0')
        snprintf(why, size, "other users may write in %s", risk.writable);
    else if (risk.owned[0] != '\0' && risk.owner != geteuid())
        snprintf(why, size, "%s belongs to uid %u", risk.owned, (unsigned int)risk.owner);
    else
        return true;
    return false;
}

/* elasticrun is beside selastic. */
void doctor_files_risk(const char *libexec, const char *plugins, const char *config,
                       struct doctor_risk *risk)
{
    const struct risk_search search = {config, risk};
    char own[PATH_MAX], pattern[PATH_MAX + 32], *slash;
    *risk = (struct doctor_risk){.owner = 0};
    const char *const patterns[][2] = {
        {libexec, "/*"}, {libexec, "/*/50-elastic"}, {plugins, "/*elastic*.so"}};
    for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
        snprintf(pattern, sizeof(pattern), "%.4000s%s", patterns[i][0], patterns[i][1]);
        look_at_all(&search, pattern);
    }
    if (realpath("/proc/self/exe", own) != NULL && (slash = strrchr(own, '/')) != NULL) {
        *slash = '\0';
        snprintf(pattern, sizeof(pattern), "%s/*elastic*", own);
        look_at_all(&search, pattern);
    }
    look_at_hooks(&search, "Prolog");
    look_at_hooks(&search, "Epilog");
}

int doctor_files_mode(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (int)(st.st_mode & 07777) : -1;
}

/* ---- snapshots ------------------------------------------------------------------------------- */

/* Root's, and nobody else may rename what is in it. */
static bool is_safe(const struct stat *st)
{
    return st->st_uid == 0 &&
           ((st->st_mode & (S_IWGRP | S_IWOTH)) == 0 || (st->st_mode & S_ISVTX) != 0);
}

enum doctor_snapshot_state doctor_files_snapshot(const char *dir, char *why, size_t size)
{
    char path[PATH_MAX], *slash;
    struct stat st, above;
    bool there = stat(dir, &st) == 0;
    snprintf(path, sizeof(path), "%s", dir);
    do {
        if (stat(path, &above) == 0 && !is_safe(&above)) {
            snprintf(why, size, "%.200s has mode %o and owner %u", path,
                     (unsigned int)(above.st_mode & 07777), above.st_uid);
            return DOCTOR_SNAPSHOT_UNSAFE;
        }
        if (lstat(path, &above) == 0 && S_ISLNK(above.st_mode) && above.st_uid != 0) {
            snprintf(why, size, "%.200s is a link of uid %u", path, above.st_uid);
            return DOCTOR_SNAPSHOT_UNSAFE;
        }
        slash = strrchr(path, '/');
        if (slash != NULL)
            slash[slash == path ? 1 : 0] = '\0';
    } while (slash != NULL && slash != path);
    if (!there)
        return DOCTOR_SNAPSHOT_ABSENT;
    snprintf(path, sizeof(path), "%s/..", dir);
    return stat(path, &above) == 0 && above.st_dev != st.st_dev ? DOCTOR_SNAPSHOT_MOUNTED
                                                                : DOCTOR_SNAPSHOT_THERE;
}

/* ---- access of trainers ---------------------------------------------------------------------- */

/* What it opens: data rather than what was made for the training. */
static const char *path_in(json_object *grant)
{
    json_object *paths = json_object_object_get(grant, "paths");
    const char *path = NULL;
    for (size_t i = 0;
         json_object_is_type(paths, json_type_array) && i < json_object_array_length(paths); i++) {
        json_object *one = json_object_array_get_idx(paths, i);
        const char *reach = json_get_string(one, "reach");
        path = json_get_string(one, "path");
        if (reach != NULL && strcmp(reach, "read") == 0)
            break;
    }
    return path;
}

static void look_at_lost(json_object *grant, const char *file, const char *service, int fit,
                         struct doctor_grants *grants)
{
    json_object *lost = json_object_object_get(grant, "lost");
    size_t count = json_object_is_type(lost, json_type_array) ? json_object_array_length(lost) : 0;
    const char *user = json_get_string(grant, "user"), *path = NULL;
    if (count > 0)
        path = json_get_string(json_object_array_get_idx(lost, 0), "path");
    grants->lost += (int)count;
    if (path == NULL || grants->lost_fit != 0)
        return;
    grants->lost_fit = fit;
    snprintf(grants->lost_service, sizeof(grants->lost_service), "%s", service);
    snprintf(grants->lost_user, sizeof(grants->lost_user), "%s", user != NULL ? user : "somebody");
    snprintf(grants->lost_path, sizeof(grants->lost_path), "%s", path);
    snprintf(grants->grant, sizeof(grants->grant), "%s", file);
}

/* Is anything open? What is no grant may be one that is. */
static bool is_open(json_object *grant)
{
    json_object *paths = json_object_object_get(grant, "paths");
    return !json_object_is_type(paths, json_type_array) || json_object_array_length(paths) > 0;
}

static void look_at_grant(const char *file, time_t now, const char *service, int fit,
                          struct doctor_grants *grants)
{
    size_t length = 0;
    char *text = file_read(file, CONF_MAX, &length, NULL);
    json_object *grant = text != NULL ? json_text_parse(text, length, NULL) : NULL;
    const char *user = json_get_string(grant, "user"), *path = path_in(grant);
    bool over = json_get_double(grant, "until", 0) < (double)now;
    if (text != NULL)
        look_at_lost(grant, file, service, fit, grants);
    if (text != NULL && is_open(grant) && (grants->count++ == 0 || (over && !grants->over))) {
        grants->over = over;
        grants->fit = fit;
        snprintf(grants->service, sizeof(grants->service), "%s", service);
        snprintf(grants->user, sizeof(grants->user), "%s", user != NULL ? user : "somebody");
        snprintf(grants->path, sizeof(grants->path), "%s", path != NULL ? path : file);
    }
    json_object_put(grant);
    free(text);
}

static void look_at_fits(const char *all, const char *service, time_t now,
                         struct doctor_grants *grants)
{
    char path[PATH_MAX];
    DIR *dir;
    int fit;
    snprintf(path, sizeof(path), "%.3000s/%s/fits", all, service);
    dir = opendir(path);
    for (const struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        char file[PATH_MAX];
        if (number_parse(entry->d_name, strlen(entry->d_name), 1, INT_MAX, &fit) != 0)
            continue;
        snprintf(file, sizeof(file), "%.3500s/%s/grant.json", path, entry->d_name);
        look_at_grant(file, now, service, fit, grants);
    }
    if (dir != NULL)
        closedir(dir);
}

void doctor_files_grants(time_t now, struct doctor_grants *grants)
{
    char all[PATH_MAX];
    DIR *dir = service_dir_all(all, sizeof(all), NULL) == 0 ? opendir(all) : NULL;
    *grants = (struct doctor_grants){.count = 0};
    for (const struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;)
        if (entry->d_name[0] != '.')
            look_at_fits(all, entry->d_name, now, grants);
    if (dir != NULL)
        closedir(dir);
}
