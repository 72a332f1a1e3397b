/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Text in a fixed buffer, UTF-8, and arrays of strings (text.h). */
#include "lib/text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *text_append(char *buf, size_t size, const char *fmt, ...)
{
    size_t used = strnlen(buf, size);
    va_list args;

    if (used >= size)
        return buf;
    va_start(args, fmt);
    vsnprintf(buf + used, size - used, fmt, args);
    va_end(args);
    return buf;
}

size_t text_utf8_length(const char *text, size_t len)
{
    const unsigned char *bytes = (const unsigned char *)text;
    unsigned char low = 0x80, high = 0xbf;
    size_t length;

    if (len == 0)
        return 0;
    if (bytes[0] < 0x80)
        return 1;
    if (bytes[0] < 0xc2 || bytes[0] > 0xf4)
        return 0;
    length = bytes[0] < 0xe0 ? 2 : bytes[0] < 0xf0 ? 3 : 4;
    if (length > len)
        return 0;
    /* No overlong forms, surrogates, or values above U+10FFFF. */
    if (bytes[0] == 0xe0)
        low = 0xa0;
    else if (bytes[0] == 0xed)
        high = 0x9f;
    else if (bytes[0] == 0xf0)
        low = 0x90;
    else if (bytes[0] == 0xf4)
        high = 0x8f;
    if (bytes[1] < low || bytes[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++) {
        if (bytes[i] < 0x80 || bytes[i] > 0xbf)
            return 0;
    }
    return length;
}

size_t text_utf8_decode(const char *text, size_t len, uint32_t *code)
{
    const unsigned char *bytes = (const unsigned char *)text;
    size_t length = text_utf8_length(text, len);

    if (length == 0)
        return 0;
    *code = length == 1 ? bytes[0] : bytes[0] & (0xffu >> (length + 1));
    for (size_t i = 1; i < length; i++)
        *code = *code << 6 | (bytes[i] & 0x3fu);
    return length;
}

bool text_made_of(const char *text, const char *others)
{
    if (text == NULL || text[0] == '\0')
        return false;
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;

        if (byte >= 0x80 || !(isalnum(byte) || strchr(others, byte) != NULL))
            return false;
    }
    return true;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t text_distance(const char *a, const char *b)
{
    size_t lengths[2] = {strlen(a), strlen(b)}, row[33];

    if (lengths[0] > 32 || lengths[1] > 32)
        return SIZE_MAX;
    for (size_t k = 0; k <= lengths[1]; k++)
        row[k] = k;
    for (size_t i = 1; i <= lengths[0]; i++) {
        size_t before = row[0];

        row[0] = i;
        for (size_t k = 1; k <= lengths[1]; k++) {
            size_t change = before + (a[i - 1] != b[k - 1] ? 1 : 0);

            before = row[k];
            row[k] = least(change, least(row[k], row[k - 1]) + 1);
        }
    }
    return row[lengths[1]];
}

size_t strings_count(char *const *strings)
{
    size_t count = 0;

    while (strings != NULL && strings[count] != NULL)
        count++;
    return count;
}

char **strings_copy(char *const *strings)
{
    size_t count = strings_count(strings);
    char **copy = strings != NULL ? calloc(count + 1, sizeof(*copy)) : NULL;

    for (size_t i = 0; copy != NULL && i < count; i++)
        if ((copy[i] = strdup(strings[i])) == NULL) {
            strings_free(copy);
            return NULL;
        }
    return copy;
}

void strings_free(char **strings)
{
    for (char **s = strings; s != NULL && *s != NULL; s++)
        free(*s);
    free(strings);
}

const char *assignment_value(const char *assignment, const char *name)
{
    size_t len = strlen(name);

    return strncmp(assignment, name, len) == 0 && assignment[len] == '=' ? assignment + len + 1
                                                                         : NULL;
}

const char *strings_value(char *const *assignments, const char *name)
{
    for (; assignments != NULL && *assignments != NULL; assignments++) {
        const char *value = assignment_value(*assignments, name);

        if (value != NULL)
            return value;
    }
    return NULL;
}

const char *strings_filled_value(char *const *assignments, const char *name)
{
    for (; assignments != NULL && *assignments != NULL; assignments++) {
        const char *value = assignment_value(*assignments, name);

        if (value != NULL && value[0] != '\0')
            return value;
    }
    return NULL;
}

static bool has_one_of(const char *assignment, const char *const *names)
{
    for (; *names != NULL; names++)
        if (assignment_value(assignment, *names) != NULL)
            return true;
    return false;
}

char **strings_without(char *const *assignments, const char *const *names)
{
    char **kept = calloc(strings_count(assignments) + 1, sizeof(*kept));
    size_t count = 0;

    for (; kept != NULL && assignments != NULL && *assignments != NULL; assignments++) {
        if (has_one_of(*assignments, names))
            continue;
        kept[count] = strdup(*assignments);
        if (kept[count++] == NULL) {
            strings_free(kept);
            return NULL;
        }
    }
    return kept;
}

int strings_append(char ***list, char *const *more)
{
    size_t count = strings_count(*list);
    char **copies = strings_copy(more), **grown;

    if (copies == NULL)
        return more == NULL ? 0 : -1;
    grown = realloc(*list, (count + strings_count(more) + 1) * sizeof(*grown));
    if (grown == NULL) {
        strings_free(copies);
        return -1;
    }
    memcpy(grown + count, copies, (strings_count(copies) + 1) * sizeof(*grown));
    free(copies);
    *list = grown;
    return 0;
}
