/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reading members of a JSON object that came from outside (json_get.h). */
#include "lib/json_get.h"

#include <stdlib.h>
#include <string.h>

static json_object *member(json_object *obj, const char *key, json_type type)
{
    json_object *value = NULL;

    if (!json_object_is_type(obj, json_type_object) || !json_object_object_get_ex(obj, key, &value))
        return NULL;
    return json_object_is_type(value, type) ? value : NULL;
}

static const char *clean_string(json_object *value)
{
    const char *text = json_object_get_string(value);

    return strlen(text) == (size_t)json_object_get_string_len(value) ? text : NULL;
}

const char *json_get_string(json_object *obj, const char *key)
{
    json_object *value = member(obj, key, json_type_string);

    return value != NULL ? clean_string(value) : NULL;
}

bool json_get_int(json_object *obj, const char *key, int64_t min, int64_t max, int64_t *value)
{
    json_object *number = member(obj, key, json_type_int);
    int64_t got;

    if (number == NULL)
        return false;
    got = json_object_get_int64(number);
    if (got < min || got > max)
        return false;
    *value = got;
    return true;
}

double json_get_double(json_object *obj, const char *key, double fallback)
{
    json_object *number = member(obj, key, json_type_double);

    if (number == NULL)
        number = member(obj, key, json_type_int);
    return number != NULL ? json_object_get_double(number) : fallback;
}

bool json_get_bool(json_object *obj, const char *key, bool fallback)
{
    json_object *value = member(obj, key, json_type_boolean);

    return value != NULL ? json_object_get_boolean(value) : fallback;
}

char **json_get_strings(json_object *obj, const char *key, int max)
{
    json_object *array = member(obj, key, json_type_array);
    size_t count = array != NULL ? json_object_array_length(array) : 0;
    char **strings;

    if (array == NULL || count > (size_t)max)
        return NULL;
    strings = calloc(count + 1, sizeof(*strings));
    for (size_t i = 0; strings != NULL && i < count; i++) {
        json_object *item = json_object_array_get_idx(array, i);
        const char *text = json_object_is_type(item, json_type_string) ? clean_string(item) : NULL;

        if (text == NULL || (strings[i] = strdup(text)) == NULL) {
            strings_free(strings);
            return NULL;
        }
    }
    return strings;
}

json_object *json_from_string(const char *text)
{
    return text != NULL ? json_object_new_string(text) : NULL;
}

json_object *json_from_strings(char *const *strings)
{
    json_object *array = json_object_new_array();

    for (char *const *s = strings; s != NULL && *s != NULL; s++)
        json_object_array_add(array, json_object_new_string(*s));
    return array;
}
