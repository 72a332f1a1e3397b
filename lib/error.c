/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Errors as one line of text (error.h). */
#include "lib/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "lib/text.h"

#define VALUE_SHOWN 60
#define PATH_SHOWN  160

/* C0, DEL, C1 and the line separators U+2028 and U+2029. */
static bool is_control(const unsigned char *text, size_t length)
{
    if (length == 1)
        return text[0] < 0x20 || text[0] == 0x7f;
    if (length == 2)
        return text[0] == 0xc2 && text[1] < 0xa0;
    return length == 3 && text[0] == 0xe2 && text[1] == 0x80 &&
           (text[2] == 0xa8 || text[2] == 0xa9);
}

void error_clean(char *text)
{
    unsigned char *at = (unsigned char *)text;
    size_t left = strlen(text);

    while (left > 0) {
        size_t length = text_utf8_length((char *)at, left);

        if (length == 0) {
            *at = '?';
            length = 1;
        } else if (is_control(at, length)) {
            memset(at, '?', length);
        }
        at += length;
        left -= length;
    }
}

bool error_is_clean(const char *text)
{
    size_t left = strlen(text), length;

    for (; left > 0; text += length, left -= length) {
        length = text_utf8_length(text, left);
        if (length == 0 || is_control((const unsigned char *)text, length))
            return false;
    }
    return true;
}

/* Copy into the fixed text of err: whole if it fits, else cut before a UTF-8 sequence, with
 * "...". */
static void store(struct error *err, char *text)
{
    static const char dots[] = "...";
    size_t length;

    error_clean(text);
    length = strlen(text);
    if (length >= sizeof(err->text)) {
        length = sizeof(err->text) - sizeof(dots);
        while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
            length--;
        memcpy(text + length, dots, sizeof(dots));
        length += sizeof(dots) - 1;
    }
    memcpy(err->text, text, length + 1);
}

int error_set(struct error *err, const char *fmt, ...)
{
    int saved = errno;
    char text[2 * sizeof(err->text)];
    va_list args;

    if (err == NULL)
        return -1;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    store(err, text);
    errno = saved;
    return -1;
}

int error_prefix(struct error *err, const char *fmt, ...)
{
    int saved = errno;
    char text[2 * sizeof(err->text)];
    va_list args;

    if (err == NULL)
        return -1;
    va_start(args, fmt);
    vsnprintf(text, sizeof(err->text), fmt, args);
    va_end(args);
    text_append(text, sizeof(text), ": %s", err->text);
    store(err, text);
    errno = saved;
    return -1;
}

struct error_value error_value(const char *value)
{
    struct error_value shown = {{0}};

    if (value == NULL)
        value = "(none)";
    text_append(shown.text, sizeof(shown.text), "%.*s%s", VALUE_SHOWN, value,
                strnlen(value, VALUE_SHOWN + 1) > VALUE_SHOWN ? "..." : "");
    error_clean(shown.text);
    return shown;
}

struct error_value error_path(const char *path)
{
    struct error_value shown = {{0}};
    size_t length = strlen(path);
    bool cut = length > PATH_SHOWN;

    text_append(shown.text, sizeof(shown.text), "%s%s", cut ? "..." : "",
                cut ? path + length - PATH_SHOWN : path);
    error_clean(shown.text);
    return shown;
}
