/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the tests of selastic's output need (selastic_fixture.h). */
#include "tests/unit/selastic_fixture.h"

#include "cmd/shape.h"
#include "tests/unit/support.h"

const struct render_options terminal = {.width = 80, .now = NOW}, pipe_options = {.now = NOW};

char *read_sample(const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "tests/unit/selastic/%s", name);
    return read_tree_file(path);
}

json_object *read_json(const char *name)
{
    char *text = read_sample(name);
    json_object *object = json_tokener_parse(text);

    assert_non_null(object);
    free(text);
    return object;
}

void assert_golden(char *text, const char *name)
{
    char *expected = read_sample(name);

    assert_string_equal(text, expected);
    free(expected);
    free(text);
}

char *serialize(json_object *object)
{
    char *text = shape_serialize(object, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE);
    char *to = text;

    /* json-c before 0.18 has a line break in an empty array. */
    for (const char *from = text; *from != '\0'; from++) {
        *to++ = *from;
        if (from[0] == '[' && from[1] == '\n' && from[1 + strspn(from + 1, "\n ")] == ']')
            from += strspn(from + 1, "\n ");
    }
    *to = '\0';
    return text;
}

void assert_width(const char *text, size_t width)
{
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");

        if (length > width)
            fail_msg("%zu columns instead of %zu: %.*s", length, width, (int)length, text);
        text += length + 1;
    }
}

void assert_harmless(const char *text)
{
    for (const char *c = text; *c != '\0'; c++)
        if ((*c < ' ' && *c != '\n') || *c == 0x7f)
            fail_msg("control character 0x%02x at %td: %s", (unsigned char)*c, c - text, text);
}
