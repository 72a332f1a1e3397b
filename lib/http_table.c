/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a server has, as a table (http_table.h). */
#include "lib/http_table.h"

#include <stdio.h>
#include <string.h>

#include "lib/text.h"

/* ---- paths ----------------------------------------------------------------------------------- */

void http_copy_name(char *into, size_t size, struct http_name name)
{
    snprintf(into, size, "%.*s", (int)(name.length < size ? name.length : size),
             name.text != NULL ? name.text : "");
}

/* Does the path, which ends at `end`, have this form? */
static bool matches(const char *form, const char *path, const char *end,
                    struct http_name names[HTTP_NAMES])
{
    int count = 0;

    memset(names, 0, HTTP_NAMES * sizeof(*names));
    for (; *form != '\0'; form++) {
        bool all = form[0] == '*' && form[1] == '*';
        const char *from = path;

        if (*form != '*') {
            if (path == end || *path++ != *form)
                return false;
            continue;
        }
        while (path < end && (all || *path != '/'))
            path++;
        if (path == from || count == HTTP_NAMES)
            return false;
        names[count++] = (struct http_name){from, (size_t)(path - from)};
        form += all;
    }
    return path == end;
}

static bool is_method(const char *method, const char *of_route)
{
    return strcmp(method, of_route) == 0 ||
           (strcmp(method, "HEAD") == 0 && strcmp(of_route, "GET") == 0);
}

int http_find(const struct http_table *table, const char *method, const char *target,
              struct http_target *found, struct error *err)
{
    const char *end = target + strcspn(target, "?");

    *found = (struct http_target){.query = *end == '?' ? end + 1 : end};
    for (size_t i = 0; i < table->count; i++) {
        const struct http_route *route = &table->routes[i];

        if (!matches(route->path, target, end, found->names))
            continue;
        found->route = route;
        if (is_method(method, route->method))
            return 0;
        text_append(found->allow, sizeof(found->allow), "%s%s", found->allow[0] != '\0' ? ", " : "",
                    route->method);
    }
    if (found->route == NULL) {
        error_set(err, "there is no '%s'", error_value(target).text);
        return 404;
    }
    error_set(err, "%s of '%s': allowed %s %s", error_value(method).text, error_value(target).text,
              strchr(found->allow, ',') != NULL ? "are" : "is", found->allow);
    return 405;
}

/* ---- words ----------------------------------------------------------------------------------- */

static size_t word_length(const char *word)
{
    return strcspn(word, " !");
}

static const char *next_word(const char *word)
{
    word += strcspn(word, " ");
    return word + strspn(word, " ");
}

static bool is_word(const char *words, const char *text, size_t length)
{
    for (const char *word = words; word != NULL && *word != '\0'; word = next_word(word))
        if (word_length(word) == length && strncmp(word, text, length) == 0)
            return true;
    return false;
}

/* "is none", "is a", "are a, b": in a buffer. */
static const char *known_words(const char *words, char *text, size_t size)
{
    const char *second = words != NULL ? next_word(words) : "";

    snprintf(text, size, "%s", words == NULL ? "is none" : *second != '\0' ? "are " : "is ");
    for (const char *word = words; word != NULL && *word != '\0'; word = next_word(word))
        text_append(text, size, "%s%.*s", word == words ? "" : ", ", (int)word_length(word), word);
    return text;
}

/* ---- parameters ------------------------------------------------------------------------------ */

bool http_next_parameter(const char **query, struct http_parameter *parameter)
{
    size_t length, name;

    *query += strspn(*query, "&");
    if (**query == '\0')
        return false;
    length = strcspn(*query, "&");
    name = strcspn(*query, "=&");
    parameter->has_value = name < length;
    http_copy_name(parameter->text, sizeof(parameter->text), (struct http_name){*query, length});
    http_copy_name(parameter->name, sizeof(parameter->name), (struct http_name){*query, name});
    http_copy_name(parameter->value, sizeof(parameter->value),
                   (struct http_name){*query + name + parameter->has_value,
                                      length - name - parameter->has_value});
    *query += length;
    return true;
}

int http_parameters(const struct http_target *target,
                    int (*read)(const char *name, const char *value, void *arg, struct error *err),
                    void *arg, struct error *err)
{
    const char *query = target->query, *words = target->route->parameters;
    struct http_parameter is;
    char known[200];

    while (http_next_parameter(&query, &is)) {
        if (!is_word(words, is.name, strlen(is.name)))
            return error_set(err, "parameter '%s' is not known; known here %s",
                             error_value(is.text).text, known_words(words, known, sizeof(known)));
        if (read(is.name, is.value, arg, err) != 0)
            return error_prefix(err, "parameter '%s'", error_value(is.text).text);
    }
    return 0;
}

/* ---- keys of a body -------------------------------------------------------------------------- */

bool http_needs_body(const struct http_route *route)
{
    return route->keys != NULL && strchr(route->keys, '!') != NULL;
}

int http_check_keys(const struct http_route *route, json_object *body, struct error *err)
{
    char known[200];

    json_object_object_foreach (body, name, value) {
        (void)value;
        if (!is_word(route->keys, name, strlen(name)))
            return error_set(err, "key '%s' of the body is not known; known here %s",
                             error_value(name).text,
                             known_words(route->keys, known, sizeof(known)));
    }
    for (const char *word = route->keys; word != NULL && *word != '\0'; word = next_word(word)) {
        char key[64];

        http_copy_name(key, sizeof(key), (struct http_name){word, word_length(word)});
        if (word[word_length(word)] == '!' && json_object_object_get(body, key) == NULL)
            return error_set(err, "the body needs the key '%s'", key);
    }
    return 0;
}
