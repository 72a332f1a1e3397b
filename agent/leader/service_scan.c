/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The repository of a service (service_scan.h). */
#include "agent/leader/service_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/state_list.h"
#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/states.h"

/* More than a service serves: which of them those are is lib/service's to say. */
#define SERVICE_SCAN_MAX (10 * SHARD_COMMANDS_MODELS_MAX)
#define MODEL_FILE_MAX   ((size_t)64 << 10)
#define WHY_MAX          4096

static char *own(const char *text)
{
    return text != NULL ? strdup(text) : NULL;
}

void service_found_clear(struct service_found *found)
{
    for (int i = 0; i < found->count; i++) {
        free((char *)(uintptr_t)found->list[i].name);
        free((char *)(uintptr_t)found->list[i].version);
        free((char *)(uintptr_t)found->list[i].key);
        free((char *)(uintptr_t)found->list[i].why);
    }
    free(found->list);
    *found = (struct service_found){0};
}

/* ---- states of a model ----------------------------------------------------------------------- */

static int64_t size_of(const char *file, void *arg)
{
    struct stat st;

    return fstatat(*(const int *)arg, file, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode)
               ? (int64_t)st.st_size
               : -1;
}

/* ---- a model --------------------------------------------------------------------------------- */

static void read_model_file(int base, struct service_model *model, char *why, size_t size)
{
    struct error err = {""};
    struct stat st;
    json_object *json;
    size_t len;
    char *text;
    int fd = entry_open(base, STATES_MODEL_FILE, S_IFREG, &st, &err);

    if (fd < 0) {
        if (errno != ENOENT)
            snprintf(why, size, STATES_MODEL_FILE ": %s", err.text);
        return;
    }
    text = entry_text(fd, MODEL_FILE_MAX, &len, &err);
    close(fd);
    json = text != NULL ? json_text_parse(text, len, &err) : NULL;
    free(text);
    if (!json_object_is_type(json, json_type_object)) {
        snprintf(why, size, STATES_MODEL_FILE ": %s",
                 err.text[0] != '\0' ? err.text : "it is no map");
    } else {
        json_object_object_foreach (json, key, value) {
            (void)value;
            if (strcmp(key, "key") != 0 && strcmp(key, "bytes") != 0)
                snprintf(why, size, STATES_MODEL_FILE ": '%s' is no key of it; write key or bytes",
                         error_value(key).text);
        }
        if (json_object_object_get(json, "bytes") != NULL &&
            !json_get_int(json, "bytes", 1, INT64_MAX / 1000000, &model->given))
            snprintf(why, size, STATES_MODEL_FILE ": bytes is no number of bytes");
        model->key = own(json_get_string(json, "key"));
        if (json_object_object_get(json, "key") != NULL && model->key == NULL)
            snprintf(why, size, STATES_MODEL_FILE ": key is no text");
    }
    json_object_put(json);
}

static void read_model(int base, struct service_model *model)
{
    struct states states = {0};
    struct error err = {""};
    const struct state *latest = NULL, *newest = NULL;
    char why[sizeof(struct error)] = "";

    read_model_file(base, model, why, sizeof(why));
    if (state_list_read(base, size_of, &states, &err) == 0) {
        latest = states_latest(&states);
        newest = states.count > 0 ? &states.list[states.count - 1] : NULL;
    }
    if (latest != NULL) {
        model->version = own(latest->name);
        model->files = latest->manifest->bytes;
    } else if (why[0] == '\0') {
        snprintf(why, sizeof(why), "no version of it is complete%s%s",
                 newest != NULL && newest->why != NULL ? ": " : "",
                 newest != NULL && newest->why != NULL ? newest->why : "");
    }
    if (why[0] != '\0')
        model->why = own(why);
    states_clear(&states);
}

/* ---- copies of what is on S3 (state/mirror_files.h) ------------------------------------------ */

/* The line of a file that says why something is not as it should be. NULL: there is none. */
static char *read_why(int base)
{
    struct error err = {""};
    struct stat st;
    size_t len;
    char *text = NULL;
    int fd = entry_open_own(base, STATES_WHY_FILE, S_IFREG, &st, &err);

    if (fd < 0)
        return NULL;
    text = entry_text(fd, WHY_MAX, &len, &err);
    close(fd);
    if (text != NULL)
        text[strcspn(text, "\n")] = '\0';
    return text;
}

static bool is_gone(int base)
{
    struct stat st;

    return fstatat(base, STATES_GONE_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- all models ------------------------------------------------------------------------------ */

static struct service_model *add(struct service_found *found)
{
    if (found->count == found->room) {
        int room = found->room > 0 ? 2 * found->room : 16;
        struct service_model *more = realloc(found->list, (size_t)room * sizeof(*more));

        if (more == NULL)
            return NULL;
        found->list = more;
        found->room = room;
    }
    found->list[found->count] = (struct service_model){0};
    return &found->list[found->count++];
}

/* A name that nobody would ask for is not followed: ".git", a file. */
static int look_at(int base, const char *name, struct service_found *found)
{
    struct error err = {""};
    struct service_model *model;
    struct stat st;
    int dir;

    if (name[0] == '.')
        return 0;
    dir = entry_open(base, name, S_IFDIR, &st, &err);
    if (dir < 0 && fstatat(base, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode))
        return 0;
    if (dir >= 0 && is_gone(dir)) {
        close(dir);
        return 0;
    }
    model = found->count < SERVICE_SCAN_MAX ? add(found) : NULL;
    if (model != NULL) {
        model->name = own(name);
        model->why = dir >= 0 ? read_why(dir) : NULL;
        if (model->why == NULL && dir >= 0)
            read_model(dir, model);
        else if (dir < 0)
            model->why = own(err.text);
    }
    if (dir >= 0)
        close(dir);
    return model != NULL && model->name != NULL && (model->version != NULL || model->why != NULL)
               ? 0
               : -1;
}

/* Copies are made by this user. Others may make a directory, or a link, of that name before. */
static int open_repository(const char *repository, bool copies, struct error *err)
{
    struct stat st;
    int fd;

    if (copies)
        return entry_open_own(AT_FDCWD, repository, S_IFDIR, &st, err);
    fd = open(repository, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 ? fd : error_set(err, "%s: %s", error_path(repository).text, strerror(errno));
}

int service_scan(const char *repository, bool copies, struct service_found *found,
                 struct error *err)
{
    int base = open_repository(repository, copies, err), rc = 0;
    const char *name;
    char *why;
    DIR *list;

    *found = (struct service_found){0};
    if (base < 0)
        return -1;
    why = read_why(base);
    if (why != NULL)
        rc = error_set(err, "%s", why);
    free(why);
    list = entry_list(base);
    if (list == NULL)
        rc = error_set(err, "%s: %s", error_path(repository).text, strerror(errno));
    while (rc == 0 && (name = entry_next(list)) != NULL)
        if (look_at(base, name, found) != 0)
            rc = error_set(err, "%s: out of memory, or more than %d directories",
                           error_path(repository).text, SERVICE_SCAN_MAX);
    if (rc == 0 && errno != 0)
        rc = error_set(err, "%s: %s", error_path(repository).text, strerror(errno));
    if (list != NULL)
        closedir(list);
    close(base);
    if (rc != 0)
        service_found_clear(found);
    return rc;
}
