/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What programs of a job with roles report (reports.h). */
#include "lib/reports.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/world.h"

/* ---- one report ------------------------------------------------------------------------------ */

static bool is_printable(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            return false;
    return true;
}

static bool is_key(const char *key)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "_.-";
    size_t length = strlen(key);

    return length > 0 && length <= REPORT_KEY_MAX && strspn(key, allowed) == length;
}

static int check_value(const char *key, json_object *value, int depth, int *keys,
                       struct error *err);

static int check_object(json_object *object, int depth, int *keys, struct error *err)
{
    json_object_object_foreach (object, key, value) {
        if (!is_key(key))
            return error_set(err,
                             "'%s' is no key of a report: up to %d letters, digits, '_', '.' "
                             "and '-' are",
                             error_value(key).text, REPORT_KEY_MAX);
        if (++*keys > REPORT_KEYS_MAX)
            return error_set(err, "a report has at most %d keys", REPORT_KEYS_MAX);
        if (check_value(key, value, depth, keys, err) != 0)
            return -1;
    }
    return 0;
}

static int check_array(const char *key, json_object *array, int depth, int *keys, struct error *err)
{
    for (size_t i = 0; i < json_object_array_length(array); i++)
        if (check_value(key, json_object_array_get_idx(array, i), depth, keys, err) != 0)
            return -1;
    return 0;
}

static int check_value(const char *key, json_object *value, int depth, int *keys, struct error *err)
{
    const enum json_type type = json_object_get_type(value);

    if ((type == json_type_object || type == json_type_array) && ++depth > REPORT_DEPTH_MAX)
        return error_set(err, "%s: a report has at most %d levels of objects and arrays", key,
                         REPORT_DEPTH_MAX);
    switch (type) {
    case json_type_object:
        return check_object(value, depth, keys, err);
    case json_type_array:
        return check_array(key, value, depth, keys, err);
    case json_type_string:
        if (is_printable(json_object_get_string(value), (size_t)json_object_get_string_len(value)))
            return 0;
        return error_set(err, "%s: control characters are not allowed in a report", key);
    default:
        return 0;
    }
}

int report_check(json_object *report, struct error *err)
{
    const char *path = json_get_string(report, "path");
    json_object *size;
    int64_t bytes;
    int keys = 0;

    if (path == NULL || path[0] == '\0' || strlen(path) > REPORT_PATH_MAX)
        return error_set(err, "path: a text of 1 to %d bytes is expected", REPORT_PATH_MAX);
    if (json_object_object_get_ex(report, "size", &size) && size != NULL &&
        !json_get_int(report, "size", 0, INT64_MAX - 1, &bytes))
        return error_set(err, "size: a whole number of bytes is expected");
    return check_object(report, 1, &keys, err);
}

int report_read(const char *text, size_t size, char *into, struct error *err)
{
    json_object *report = json_text_parse(text, size, err);
    const char *plain;
    size_t length;
    int rc = -1;

    if (report == NULL)
        return -1;
    if (report_check(report, err) == 0) {
        plain = json_object_to_json_string_length(
            report, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &length);
        if (length <= REPORT_MAX) {
            memcpy(into, plain, length + 1);
            rc = 0;
        } else {
            error_set(err, "a report has at most %d bytes, not %zu", REPORT_MAX, length);
        }
    }
    json_object_put(report);
    return rc;
}

/* ---- the ring -------------------------------------------------------------------------------- */

struct report {
    int number;
    double time;
    char *role, *replica, *id, *text;
    size_t bytes;
};

struct reports {
    struct report list[REPORTS_MAX + REPORTS_PENDING];
    int count;
    int kept;    /* the first so many are in the file; the others wait */
    int written; /* … so many will be, of which the first `fallen` are in it no more */
    int fallen;
};

static void clear(struct report *report)
{
    free(report->role);
    free(report->replica);
    free(report->id);
    free(report->text);
}

static void drop(struct reports *reports, int first, int count)
{
    for (int i = first; i < first + count; i++)
        clear(&reports->list[i]);
    reports->count -= count;
    memmove(&reports->list[first], &reports->list[first + count],
            (size_t)(reports->count - first) * sizeof(reports->list[0]));
}

static const struct report *find(const struct reports *reports, const char *id)
{
    for (int i = reports->count - 1; i >= 0; i--)
        if (strcmp(reports->list[i].id, id) == 0)
            return &reports->list[i];
    return NULL;
}

/* False: there is no room. */
static bool append(struct reports *reports, const struct report *from)
{
    struct report *report = &reports->list[reports->count];

    if (reports->count == REPORTS_MAX + REPORTS_PENDING)
        return false;
    *report = (struct report){
        .number = from->number,
        .time = from->time,
        .role = strdup(from->role),
        .replica = strdup(from->replica),
        .id = strdup(from->id),
        .text = strdup(from->text),
        .bytes = strlen(from->role) + strlen(from->replica) + strlen(from->id) + strlen(from->text),
    };
    if (report->role == NULL || report->replica == NULL || report->id == NULL ||
        report->text == NULL) {
        clear(report);
        return false;
    }
    reports->count++;
    return true;
}

enum reports_result reports_add(struct reports *reports, double time, const char *role,
                                const char *replica, const char *id, const char *text, int *number)
{
    const struct report *known = find(reports, id);
    struct report report = {
        .time = time,
        .role = (char *)(uintptr_t)role,
        .replica = (char *)(uintptr_t)replica,
        .id = (char *)(uintptr_t)id,
        .text = (char *)(uintptr_t)text,
    };
    int last = reports->count > 0 ? reports->list[reports->count - 1].number : 0;

    if (known != NULL) {
        *number = known->number;
        return known - reports->list < reports->kept ? REPORTS_KEPT : REPORTS_WAITS;
    }
    report.number = *number = last + 1;
    if (last == INT_MAX || reports->count - reports->kept >= REPORTS_PENDING ||
        !append(reports, &report))
        return REPORTS_FULL;
    return REPORTS_WAITS;
}

/* ---- the file -------------------------------------------------------------------------------- */

bool reports_wait(const struct reports *reports)
{
    return reports->count > reports->kept;
}

/* The oldest that have no room beside the others. */
static int count_fallen(const struct reports *reports)
{
    size_t bytes = 0;
    int i = reports->count;

    while (i > 0 && reports->count - i < REPORTS_MAX &&
           bytes + reports->list[i - 1].bytes <= REPORTS_BYTES)
        bytes += reports->list[--i].bytes;
    return i;
}

static void add_text(json_object *object, const char *key, const char *value)
{
    json_object_object_add(object, key, json_object_new_string(value));
}

static json_object *entry_of(const struct report *report)
{
    json_object *entry = json_object_new_object();

    json_object_object_add(entry, "number", json_object_new_int(report->number));
    json_object_object_add(entry, "time", json_object_new_double(report->time));
    add_text(entry, "role", report->role);
    add_text(entry, "replica", report->replica);
    return entry;
}

char *reports_text(struct reports *reports)
{
    json_object *file = json_object_new_object(), *list = json_object_new_array();
    char *text;

    reports->written = reports->count;
    reports->fallen = count_fallen(reports);
    json_object_object_add(file, "version", json_object_new_int(1));
    json_object_object_add(file, "reports", list);
    for (int i = reports->fallen; i < reports->count; i++) {
        json_object *entry = entry_of(&reports->list[i]);

        add_text(entry, "id", reports->list[i].id);
        add_text(entry, "report", reports->list[i].text);
        json_object_array_add(list, entry);
    }
    text = strdup(json_object_to_json_string_ext(file, JSON_C_TO_STRING_PLAIN |
                                                           JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(file);
    return text;
}

void reports_written(struct reports *reports, bool ok)
{
    if (ok) {
        drop(reports, 0, reports->fallen);
        reports->kept = reports->written - reports->fallen;
    } else {
        /* A number is not left out, so that nobody looks for it. */
        drop(reports, reports->kept, reports->count - reports->kept);
    }
    reports->written = reports->fallen = 0;
}

static int parse_entry(struct reports *reports, json_object *entry, int last, struct error *err)
{
    const char *role = json_get_string(entry, "role"), *replica = json_get_string(entry, "replica"),
               *id = json_get_string(entry, "id"), *text = json_get_string(entry, "report");
    char plain[REPORT_MAX + 1];
    struct report report;
    int64_t number;

    if (role == NULL || !world_name_ok(role) || replica == NULL || !world_name_ok(replica) ||
        id == NULL || strlen(id) >= REPORT_ID_MAX || text == NULL ||
        !json_get_int(entry, "number", last + 1, INT_MAX, &number))
        return error_set(err, "entry %d is no report", reports->count);
    if (report_read(text, strlen(text), plain, err) != 0)
        return error_prefix(err, "entry %d", reports->count);
    report = (struct report){
        .number = (int)number,
        .time = json_get_double(entry, "time", 0),
        .role = (char *)(uintptr_t)role,
        .replica = (char *)(uintptr_t)replica,
        .id = (char *)(uintptr_t)id,
        .text = plain,
    };
    return append(reports, &report) ? 0 : error_set(err, "there are too many entries");
}

int reports_parse(struct reports *reports, const char *text, size_t size, struct error *err)
{
    json_object *file = json_text_parse(text, size, err), *list = NULL;
    int rc = 0, last = 0;

    if (file == NULL)
        return -1;
    drop(reports, 0, reports->count);
    json_object_object_get_ex(file, "reports", &list);
    if (!json_object_is_type(list, json_type_array))
        rc = error_set(err, "reports: an array is expected");
    for (size_t i = 0; rc == 0 && i < json_object_array_length(list); i++) {
        rc = parse_entry(reports, json_object_array_get_idx(list, i), last, err);
        last = rc == 0 ? reports->list[reports->count - 1].number : 0;
    }
    if (rc != 0)
        drop(reports, 0, reports->count);
    reports->kept = reports->count;
    json_object_put(file);
    return rc;
}

/* ---- what is shown --------------------------------------------------------------------------- */

int reports_first(const struct reports *reports)
{
    return reports->kept > 0 ? reports->list[0].number : 0;
}

int reports_last(const struct reports *reports)
{
    return reports->kept > 0 ? reports->list[reports->kept - 1].number : 0;
}

void reports_show(const struct reports *reports, int after, json_object *into)
{
    json_object *list = json_object_new_array();
    int first = reports_first(reports);

    for (int i = 0; i < reports->kept; i++) {
        json_object *entry;

        if (reports->list[i].number <= after)
            continue;
        entry = entry_of(&reports->list[i]);
        json_object_object_add(entry, "report", json_tokener_parse(reports->list[i].text));
        json_object_array_add(list, entry);
    }
    json_object_object_add(into, "first", json_object_new_int(first));
    json_object_object_add(into, "last", json_object_new_int(reports_last(reports)));
    json_object_object_add(into, "missed",
                           json_object_new_int(first > after + 1 ? first - after - 1 : 0));
    json_object_object_add(into, "reports", list);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct reports *reports_create(void)
{
    return calloc(1, sizeof(struct reports));
}

void reports_destroy(struct reports *reports)
{
    if (reports != NULL)
        drop(reports, 0, reports->count);
    free(reports);
}
