/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The list of what a trainer has put (put_list.h). */
#include "fit/put_list.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "fit/grant.h"
#include "fit/room.h"
#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/state_manifest.h"

void put_list_begin(struct put_list *list)
{
    unsigned char bytes[(PUT_ATTEMPT_SIZE - 1) / 2];

    randombytes_buf(bytes, sizeof(bytes));
    sodium_bin2hex(list->attempt, sizeof(list->attempt), bytes, sizeof(bytes));
    list->names = json_object_new_array();
}

void put_list_clear(struct put_list *list)
{
    json_object_put(list->names);
    list->names = NULL;
}

char *put_list_text(const struct put_list *list, struct error *err)
{
    json_object *json = json_object_new_object();
    const char *text;
    char *copy = NULL;

    json_object_object_add(json, "attempt", json_object_new_string(list->attempt));
    json_object_object_add(json, "files", json_object_get(list->names));
    text = json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN);
    if (json_object_array_length(list->names) == 0)
        error_set(err, "the training has written no files");
    else if (json_object_array_length(list->names) > ROOM_FILES_MAX ||
             (text != NULL && strlen(text) > PUT_LIST_MAX))
        error_set(err, "the training has written more than %d files, or their names are too long",
                  ROOM_FILES_MAX);
    else if (text == NULL || (copy = strdup(text)) == NULL)
        error_set(err, "out of memory");
    json_object_put(json);
    return copy;
}

/* ---- of others ------------------------------------------------------------------------------- */

/* So many commas are so many values, each of which would need more memory than text. */
static bool is_small(const char *text, size_t len)
{
    size_t commas = 0;

    for (const char *at = text; (at = memchr(at, ',', len - (size_t)(at - text))) != NULL; at++)
        commas++;
    return commas <= ROOM_FILES_MAX;
}

/* What says of a state what is in it, this user writes. */
static int check_name(const char *path, struct error *err)
{
    return path != NULL && state_file_ok(path) &&
                   strncmp(path, GRANT_INCOMING, strlen(GRANT_INCOMING)) != 0
               ? 0
               : error_set(err,
                           "the trainer has written a file of a name that cannot be used: \"%s\"",
                           path != NULL ? error_value(path).text : "");
}

static int understand(json_object *json, struct put_list *list, struct error *err)
{
    const char *attempt = json_get_string(json, "attempt");
    int rc = 0;

    list->names = json_object_get(json_object_object_get(json, "files"));
    if (!json_object_is_type(list->names, json_type_array) || attempt == NULL ||
        strlen(attempt) != PUT_ATTEMPT_SIZE - 1 ||
        strspn(attempt, "0123456789abcdef") != PUT_ATTEMPT_SIZE - 1)
        return error_set(err, PUT_LIST_FILE ": this is no list of at most %d files",
                         ROOM_FILES_MAX);
    memcpy(list->attempt, attempt, PUT_ATTEMPT_SIZE);
    for (size_t i = 0; rc == 0 && i < json_object_array_length(list->names); i++) {
        json_object *name = json_object_array_get_idx(list->names, i);

        rc = check_name(
            json_object_is_type(name, json_type_string) ? json_object_get_string(name) : NULL, err);
    }
    return rc == 0 && json_object_array_length(list->names) == 0
               ? error_set(err, "the training has written no files")
               : rc;
}

int put_list_parse(const char *text, size_t len, struct put_list *list, struct error *err)
{
    json_object *json = is_small(text, len) ? json_text_parse(text, len, err) : NULL;
    int rc;

    *list = (struct put_list){0};
    if (json == NULL)
        return error_set(err, PUT_LIST_FILE ": this is no list of at most %d files",
                         ROOM_FILES_MAX);
    rc = understand(json, list, err);
    json_object_put(json);
    if (rc != 0)
        put_list_clear(list);
    return rc;
}
