/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Profiles of AWS (s3_profile.h). A library for INI files would not know the blocks of indented
 * lines, which are no values of the profile. */
#include "lib/s3_profile.h"

#include <stddef.h>
#include <string.h>

#define BLANKS " \t\r"

struct piece {
    const char *text;
    size_t len;
};

static struct piece trim(const char *text, size_t len)
{
    while (len > 0 && strchr(BLANKS, text[len - 1]) != NULL && text[len - 1] != '\0')
        len--;
    while (len > 0 && strchr(BLANKS, *text) != NULL && *text != '\0') {
        text++;
        len--;
    }
    return (struct piece){text, len};
}

static bool is(struct piece piece, const char *word)
{
    return piece.len == strlen(word) && memcmp(piece.text, word, piece.len) == 0;
}

static bool is_section(struct piece line, const char *profile, bool config)
{
    static const char prefix[] = "profile";
    size_t len = sizeof(prefix) - 1;
    struct piece name;

    if (line.len < 2 || line.text[line.len - 1] != ']')
        return false;
    name = trim(line.text + 1, line.len - 2);
    if (config && name.len > len && memcmp(name.text, prefix, len) == 0 &&
        strchr(BLANKS, name.text[len]) != NULL)
        name = trim(name.text + len, name.len - len);
    return is(name, profile);
}

char *s3_profile_value(const char *text, const char *profile, bool config, const char *key)
{
    bool inside = false;

    while (*text != '\0') {
        size_t len = strcspn(text, "\n");
        struct piece line = trim(text, len);
        const char *equals = line.len > 0 ? memchr(line.text, '=', line.len) : NULL;
        bool indented = line.text != text;

        if (line.len > 0 && line.text[0] == '[') {
            inside = is_section(line, profile, config);
        } else if (inside && !indented && equals != NULL && line.text[0] != '#' &&
                   line.text[0] != ';' && is(trim(line.text, (size_t)(equals - line.text)), key)) {
            struct piece value = trim(equals + 1, line.len - (size_t)(equals + 1 - line.text));

            return value.len > 0 ? strndup(value.text, value.len) : NULL;
        }
        text += len + (text[len] == '\n');
    }
    return NULL;
}
