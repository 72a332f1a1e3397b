/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The fits of a service (home.h). */
#include "fit/home.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/files.h"
#include "common/service_dir.h"
#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/states.h"

#define FITS_DIR    "fits"
#define RUNNERS_DIR "runners"
#define FORMAT      1
#define CLASHES_MAX 100

int home_open(struct home *home, const char *service, struct error *err)
{
    char path[PATH_MAX];

    if (service_dir_path(path, sizeof(path), service, err) != 0)
        return -1;
    if (strlen(path) >= sizeof(home->dir))
        return error_set(err, "%s: too long", error_path(path).text);
    strcpy(home->dir, path);
    return 0;
}

struct home_path home_path(const struct home *home, int64_t id, const char *file)
{
    char name[STATE_NAME_SIZE];
    struct home_path path;

    state_name(name, id);
    snprintf(path.text, sizeof(path.text), "%s/" FITS_DIR "/%s%s%.64s", home->dir, name,
             file[0] != '\0' ? "/" : "", file);
    return path;
}

/* ---- files ----------------------------------------------------------------------------------- */

json_object *home_read(const struct home *home, int64_t id, const char *file, struct error *err)
{
    struct home_path path = home_path(home, id, file);
    json_object *json;
    size_t len;
    char *text = file_read(path.text, HOME_FILE_MAX, &len, err);

    if (text == NULL) {
        /* Nobody of here has written that. */
        if (errno == EFBIG)
            errno = EINVAL;
        return NULL;
    }
    json = json_text_parse(text, len, err);
    free(text);
    if (json == NULL) {
        error_prefix(err, "%s", error_path(path.text).text);
        errno = EINVAL;
    }
    return json;
}

/* What home_read() can read again: values that lie deep in each other are many times as long in the
 * form for people. Of json, until it is changed. NULL with err. */
static const char *text_of(json_object *json, const char *file, struct error *err)
{
    static const int forms[] = {JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED,
                                JSON_C_TO_STRING_PLAIN};
    size_t len = 0;

    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
        const char *text = json_object_to_json_string_length(
            json, forms[i] | JSON_C_TO_STRING_NOSLASHESCAPE, &len);

        if (text == NULL) {
            error_set(err, "out of memory");
            return NULL;
        }
        if (len <= HOME_FILE_MAX)
            return text;
    }
    error_set(err, "%s would have %zu bytes; at most %zu are allowed", file, len, HOME_FILE_MAX);
    return NULL;
}

int home_write(const struct home *home, int64_t id, const char *file, json_object *json,
               struct error *err)
{
    const char *text = text_of(json, file, err);
    int rc = text != NULL
                 ? file_replace(home_path(home, id, file).text, text, strlen(text), 0600, err)
                 : -1;

    json_object_put(json);
    return rc;
}

bool home_has(const struct home *home, int64_t id, const char *file)
{
    return access(home_path(home, id, file).text, F_OK) == 0;
}

bool home_make(const struct home *home, int64_t id, const char *file)
{
    int fd = open(home_path(home, id, file).text, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* ---- fits ------------------------------------------------------------------------------------ */

static int by_number(const void *a, const void *b)
{
    int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;

    return one < other ? -1 : one > other;
}

/* The numbers in a directory, sorted. NULL with err. */
static int64_t *numbers_in(const char *path, size_t *count, struct error *err)
{
    size_t room = 16;
    int64_t *list = calloc(room, sizeof(*list));
    DIR *dir = opendir(path);
    struct dirent *entry;

    *count = 0;
    if (dir == NULL && errno != ENOENT) {
        error_set(err, "%s: %s", error_path(path).text, strerror(errno));
        free(list);
        return NULL;
    }
    while (list != NULL && dir != NULL && (entry = readdir(dir)) != NULL) {
        bool partial = false;
        int64_t number = state_number(entry->d_name, &partial);

        if (number == 0 || partial)
            continue;
        if (*count == room) {
            int64_t *more = realloc(list, 2 * room * sizeof(*list));

            if (more == NULL)
                free(list);
            list = more;
            room *= 2;
        }
        if (list != NULL)
            list[(*count)++] = number;
    }
    if (dir != NULL)
        closedir(dir);
    if (list == NULL)
        error_set(err, "out of memory");
    else
        qsort(list, *count, sizeof(*list), by_number);
    return list;
}

int64_t *home_list(const struct home *home, size_t *count, struct error *err)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/" FITS_DIR, home->dir);
    return numbers_in(path, count, err);
}

/* A directory with its file, and then its name: nobody sees one without. */
static int add_from(const struct home *home, const char *draft, int64_t *id, struct error *err)
{
    for (int i = 0; i < CLASHES_MAX; i++) {
        size_t count;
        int64_t *list = home_list(home, &count, err);

        if (list == NULL)
            return -1;
        *id = (count > 0 ? list[count - 1] : 0) + 1;
        free(list);
        if (rename(draft, home_path(home, *id, "").text) == 0)
            return 0;
        if (errno != ENOTEMPTY && errno != EEXIST)
            break;
    }
    return error_set(err, "%s: %s", error_path(draft).text, strerror(errno));
}

int home_add(const struct home *home, json_object *run, int64_t *id, struct error *err)
{
    char draft[PATH_MAX], path[PATH_MAX + 16];
    const char *text = text_of(run, HOME_RUN_FILE, err);
    int rc;

    snprintf(draft, sizeof(draft), "%s/" FITS_DIR, home->dir);
    rc = text != NULL ? dir_make(draft, err) : -1;
    snprintf(draft, sizeof(draft), "%s/" FITS_DIR "/new-%d-%" PRId64, home->dir, (int)getpid(),
             (int64_t)time(NULL));
    snprintf(path, sizeof(path), "%s/" HOME_RUN_FILE, draft);
    if (rc == 0)
        rc = dir_make(draft, err);
    if (rc == 0)
        rc = file_replace(path, text, strlen(text), 0400, err);
    if (rc == 0 && add_from(home, draft, id, err) != 0) {
        dir_remove(draft, NULL);
        rc = -1;
    }
    json_object_put(run);
    return rc;
}

/* ---- the record ------------------------------------------------------------------------------ */

static bool read_status(const char *name, enum fit_status *status)
{
    for (int i = 0; name != NULL && i < FIT_STATUSES; i++)
        if (strcmp(name, fit_status_name((enum fit_status)i)) == 0) {
            *status = (enum fit_status)i;
            return true;
        }
    return false;
}

static bool read_history(json_object *root, struct home_record *record)
{
    json_object *list = json_object_object_get(root, "history");

    if (!json_object_is_type(list, json_type_array) ||
        json_object_array_length(list) > HOME_HISTORY_MAX)
        return false;
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        json_object *one = json_object_array_get_idx(list, i);

        if (!json_object_is_type(one, json_type_object) ||
            !read_status(json_get_string(one, "status"), &record->history[i].status))
            return false;
        record->history[i].at = json_get_double(one, "at", 0);
        record->steps++;
    }
    return true;
}

static void read_pins(json_object *pins, struct home_record *record)
{
    record->pins.partial = pin_read(json_object_object_get(pins, "partial"));
    record->pins.previous = pin_read(json_object_object_get(pins, "previous"));
    record->pins.incoming = pin_read(json_object_object_get(pins, "incoming"));
}

static void add_pin(json_object *pins, const char *key, const struct pin *pin)
{
    json_object *one;

    if (pin->inode == 0)
        return;
    one = json_object_new_object();
    pin_add(one, pin);
    json_object_object_add(pins, key, one);
}

static json_object *pins_of(const struct home_record *record)
{
    json_object *pins = json_object_new_object();

    add_pin(pins, "partial", &record->pins.partial);
    add_pin(pins, "previous", &record->pins.previous);
    add_pin(pins, "incoming", &record->pins.incoming);
    return pins;
}

static int read_record(json_object *root, struct home_record *record, struct error *err)
{
    json_object *fit = json_object_object_get(root, "fit");
    const char *text = json_object_to_json_string_ext(fit, JSON_C_TO_STRING_PLAIN);
    const char *waits = json_get_string(root, "waits"), *attempt = json_get_string(root, "attempt");
    int64_t format;

    if (!json_get_int(root, "format", FORMAT, FORMAT, &format) ||
        !json_get_int(root, "state", 0, STATE_NUMBER_MAX, &record->state) ||
        !json_get_int(root, "previous", 0, STATE_NUMBER_MAX, &record->previous) ||
        !json_get_int(root, "before", 0, STATE_NUMBER_MAX, &record->before) ||
        (json_object_object_get(root, "training") != NULL &&
         !json_get_int(root, "training", 0, STATE_NUMBER_MAX, &record->training)) ||
        (json_object_object_get(root, "stored") != NULL &&
         !json_get_int(root, "stored", 0, STATE_NUMBER_MAX, &record->stored)) ||
        (json_object_object_get(root, "left") != NULL &&
         !json_get_int(root, "left", 0, UINT32_MAX, &record->left)) ||
        !read_history(root, record))
        return error_set(err, "this is no status of a fit");
    record->made = json_get_bool(root, "made", false);
    read_pins(json_object_object_get(root, "pins"), record);
    snprintf(record->waits, sizeof(record->waits), "%s", waits != NULL ? waits : "");
    snprintf(record->attempt, sizeof(record->attempt), "%s", attempt != NULL ? attempt : "");
    return fit_record_parse(text, strlen(text), &record->fit, err);
}

int home_record_read(const struct home *home, int64_t id, struct home_record *record,
                     struct error *err)
{
    json_object *root = home_read(home, id, HOME_STATUS_FILE, err);
    int rc;

    *record = (struct home_record){0};
    if (root == NULL)
        return -1;
    rc = read_record(root, record, err);
    json_object_put(root);
    if (rc != 0) {
        error_prefix(err, "%s", error_path(home_path(home, id, HOME_STATUS_FILE).text).text);
        errno = EINVAL;
    }
    return rc;
}

static void note_status(struct home_record *record)
{
    int last = record->steps - 1;

    if (record->steps == HOME_HISTORY_MAX ||
        (last >= 0 && record->history[last].status == record->fit.status))
        return;
    record->history[record->steps].status = record->fit.status;
    record->history[record->steps++].at = record->fit.since;
}

int home_record_write(const struct home *home, int64_t id, struct home_record *record,
                      struct error *err)
{
    json_object *root = json_object_new_object(), *history = json_object_new_array();
    char *text = fit_record_text(&record->fit);

    note_status(record);
    for (int i = 0; i < record->steps; i++) {
        json_object *one = json_object_new_object();

        json_object_object_add(one, "status",
                               json_object_new_string(fit_status_name(record->history[i].status)));
        json_object_object_add(one, "at", json_object_new_double(record->history[i].at));
        json_object_array_add(history, one);
    }
    json_object_object_add(root, "format", json_object_new_int(FORMAT));
    json_object_object_add(root, "fit", text != NULL ? json_tokener_parse(text) : NULL);
    json_object_object_add(root, "state", json_object_new_int64(record->state));
    json_object_object_add(root, "made", json_object_new_boolean(record->made));
    json_object_object_add(root, "pins", pins_of(record));
    json_object_object_add(root, "previous", json_object_new_int64(record->previous));
    json_object_object_add(root, "before", json_object_new_int64(record->before));
    json_object_object_add(root, "training", json_object_new_int64(record->training));
    json_object_object_add(root, "stored", json_object_new_int64(record->stored));
    json_object_object_add(root, "left", json_object_new_int64(record->left));
    json_object_object_add(root, "attempt", json_object_new_string(record->attempt));
    json_object_object_add(root, "waits", json_object_new_string(record->waits));
    json_object_object_add(root, "history", history);
    free(text);
    return home_write(home, id, HOME_STATUS_FILE, root, err);
}

/* ---- one runner ------------------------------------------------------------------------------ */

static int64_t highest(const struct home *home, struct error *err)
{
    char path[PATH_MAX];
    size_t count;
    int64_t *list, last;

    snprintf(path, sizeof(path), "%s/" FITS_DIR "/" RUNNERS_DIR, home->dir);
    list = numbers_in(path, &count, err);
    if (list == NULL)
        return -1;
    last = count > 0 ? list[count - 1] : 0;
    free(list);
    return last;
}

static void claim_path(const struct home *home, int64_t claim, char path[PATH_MAX])
{
    char name[STATE_NAME_SIZE];

    state_name(name, claim);
    snprintf(path, PATH_MAX, "%s/" FITS_DIR "/" RUNNERS_DIR "/%s", home->dir, name);
}

int home_claim(const struct home *home, int64_t *claim, struct error *err)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/" FITS_DIR "/" RUNNERS_DIR, home->dir);
    if (dir_make(path, err) != 0)
        return -1;
    for (int i = 0; i < CLASHES_MAX; i++) {
        int64_t last = highest(home, err);
        int fd;

        if (last < 0)
            return -1;
        *claim = last + 1;
        claim_path(home, *claim, path);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno == EEXIST)
            continue;
        if (fd < 0)
            break;
        close(fd);
        claim_path(home, *claim - 1, path);
        unlink(path);
        return 0;
    }
    return error_set(err, "%s: %s", error_path(path).text, strerror(errno));
}

bool home_claimed(const struct home *home, int64_t claim)
{
    return highest(home, NULL) == claim;
}
