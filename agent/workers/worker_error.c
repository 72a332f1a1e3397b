/* SPDX-License-Identifier: GPL-2.0-or-later */
/* torchrun's error file (worker_error.h; torch/distributed/elastic/multiprocessing/errors names
 * its members). */
#include "agent/workers/worker_error.h"

#include <stdlib.h>
#include <string.h>

#include "common/files.h"
#include "lib/json_get.h"

#define FILE_MAX    (256 * 1024) /* bytes; a message to the leader may have 4 MiB */
#define MESSAGE_MAX 4096

json_object *worker_error_new(const char *message)
{
    json_object *error = json_object_new_object();
    size_t len = strnlen(message, MESSAGE_MAX);

    /* Not in the middle of a character. */
    while (len == MESSAGE_MAX && len > 0 && ((unsigned char)message[len] & 0xc0) == 0x80)
        len--;
    json_object_object_add(error, "message", json_object_new_string_len(message, (int)len));
    json_object_object_add(error, "extra", NULL);
    return error;
}

static json_object *parse(const char *text, size_t len)
{
    struct json_tokener *tokener = json_tokener_new();
    json_object *parsed = NULL;

    if (tokener == NULL)
        return NULL;
    json_tokener_set_flags(tokener, JSON_TOKENER_VALIDATE_UTF8);
    parsed = json_tokener_parse_ex(tokener, text, (int)len);
    json_tokener_free(tokener);
    return parsed;
}

json_object *worker_error_read(const char *path)
{
    size_t len = 0;
    char *text = file_read(path, FILE_MAX, &len, NULL);
    json_object *file, *inner = NULL, *extra = NULL, *error = NULL;
    const char *message;

    if (text == NULL)
        return NULL;
    file = parse(text, len);
    free(text);
    message = json_get_string(file, "message");
    if (message == NULL && json_object_is_type(file, json_type_object) &&
        json_object_object_get_ex(file, "message", &inner)) {
        message = json_get_string(inner, "message");
        if (message != NULL)
            json_object_object_get_ex(inner, "extraInfo", &extra);
    }
    if (message != NULL) {
        error = worker_error_new(message);
        json_object_object_add(error, "extra", json_object_get(extra));
    }
    json_object_put(file);
    return error;
}
