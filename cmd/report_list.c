/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs of a job have reported (report_list.h). */
#include "cmd/report_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/shape.h"
#include "cmd/terminal_text.h"
#include "lib/json_get.h"
#include "lib/reports.h"

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_object *copy_entry(json_object *from)
{
    const char *role = json_get_string(from, "role"), *replica = json_get_string(from, "replica");
    json_object *report = json_object_object_get(from, "report"), *entry;

    if (role == NULL || replica == NULL || !json_object_is_type(report, json_type_object) ||
        report_check(report, NULL) != 0)
        return NULL;
    entry = text_need(json_object_new_object());
    json_object_object_add(entry, "number", json_object_new_int64(field_int(from, "number", 0)));
    json_object_object_add(entry, "time", shape_double(field_double(from, "time")));
    json_object_object_add(entry, "role", json_from_string(role));
    json_object_object_add(entry, "replica", json_from_string(replica));
    json_object_object_add(entry, "report", json_object_get(report));
    return entry;
}

static bool is_of(json_object *entry, const char *name)
{
    return name == NULL || strcmp(json_get_string(entry, "role"), name) == 0 ||
           strcmp(json_get_string(entry, "replica"), name) == 0;
}

json_object *reports_of(json_object *answer, const char *name)
{
    static const char *const numbers[] = {"job", "first", "last", "missed"};
    json_object *all = text_need(json_object_new_object());
    json_object *kept = text_need(json_object_new_array()), *list = field_array(answer, "reports");

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        json_object_object_add(all, numbers[i],
                               json_object_new_int64(field_int(answer, numbers[i], 0)));
    for (size_t i = 0; i < field_count(answer, "reports"); i++) {
        json_object *entry = copy_entry(json_object_array_get_idx(list, i));

        if (entry != NULL && is_of(entry, name))
            json_object_array_add(kept, entry);
        else
            json_object_put(entry);
    }
    json_object_object_add(all, "reports", kept);
    return all;
}

/* ---- text ------------------------------------------------------------------------------------ */

/* What it has besides path and size, as JSON. A new string. */
static char *values_of(json_object *report)
{
    json_object *rest = text_need(json_object_new_object());
    char *text;

    json_object_object_foreach (report, key, value) {
        if (strcmp(key, "path") != 0 && strcmp(key, "size") != 0)
            json_object_object_add(rest, key, json_object_get(value));
    }
    text = json_object_object_length(rest) == 0
               ? NULL
               : shape_serialize(rest, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
    json_object_put(rest);
    return text;
}

static void put_line(FILE *out, json_object *entry, const struct render_options *options)
{
    json_object *report = json_object_object_get(entry, "report");
    char *replica = text_clean(json_get_string(entry, "replica"), 0);
    char *path = text_clean(json_get_string(report, "path"), 0), *values = values_of(report);
    int64_t bytes = field_int(report, "size", -1);
    char clock[40], size[24] = "-";

    if (bytes >= 0)
        snprintf(size, sizeof(size), "%" PRId64, bytes);
    fprintf(out, "%6" PRId64 "  %8s  %-16s  %12s  %s%s%s\n", field_int(entry, "number", 0),
            text_clock(field_double(entry, "time"), options->now, clock, sizeof(clock)), replica,
            size, path, values != NULL ? "  " : "", values != NULL ? values : "");
    free(replica);
    free(path);
    free(values);
}

char *render_reports(json_object *reports, bool titles, const struct render_options *options)
{
    json_object *list = field_array(reports, "reports");
    char *text = NULL;
    size_t size;
    FILE *out = text_need(open_memstream(&text, &size));

    if (titles)
        fprintf(out, "%6s  %8s  %-16s  %12s  %s\n", "NUMBER", "TIME", "REPLICA", "SIZE", "PATH");
    for (size_t i = 0; i < field_count(reports, "reports"); i++)
        put_line(out, json_object_array_get_idx(list, i), options);
    fclose(out);
    return text_need(text);
}
