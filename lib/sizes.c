/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Allowed numbers of nodes (sizes.h). */
#include "lib/sizes.h"

#include <stdio.h>
#include <string.h>

#include "lib/number.h"
#include "lib/text.h"

#define RANGE_FORM "write MIN:MAX with 1 <= MIN <= MAX <= 65533"
#define FORMS      "write MIN:MAX such as 2:8, MIN:MAX:STEP such as 2:8:2, or a list such as 2,4,8"
#define LIST_FORM  "write the sizes in ascending order, each once, such as 2,4,8"

/* One number of the text. The message calls it what ("MIN", "a size of the list"). */
static int parse_part(const char *what, const char *text, size_t len, int *value, struct error *err)
{
    char part[SIZES_TEXT_MAX] = "";

    if (number_parse(text, len, 1, SIZES_NODES_MAX, value) == 0)
        return 0;
    if (len == 0)
        return error_set(err, "%s is missing; " FORMS, what);
    text_append(part, sizeof(part), "%.*s", len < sizeof(part) ? (int)len : (int)sizeof(part),
                text);
    return error_set(err,
                     "%s '%s' is not a number of nodes; allowed are whole numbers from 1 to %d",
                     what, error_value(part).text, SIZES_NODES_MAX);
}

/* A STEP that goes past MAX: say which values of MAX it reaches. */
static int step_error(const struct sizes *sizes, int step, struct error *err)
{
    int below = sizes->min + (sizes->max - sizes->min) / step * step;
    int above = below + step;
    char choice[64];

    if (above > SIZES_NODES_MAX)
        snprintf(choice, sizeof(choice), "%d", below);
    else
        snprintf(choice, sizeof(choice), "%d or %d", below, above);
    return error_set(err,
                     "STEP %d does not lead from MIN %d to MAX %d; use a STEP that divides %d, "
                     "or a MAX of %s",
                     step, sizes->min, sizes->max, sizes->max - sizes->min, choice);
}

static int parse_range(const char *text, struct sizes *sizes, struct error *err)
{
    const char *colon = strchr(text, ':'), *second;
    size_t max_len;

    if (parse_part("MIN", text, (size_t)(colon - text), &sizes->min, err) < 0)
        return -1;
    max_len = strcspn(colon + 1, ":");
    if (parse_part("MAX", colon + 1, max_len, &sizes->max, err) < 0)
        return -1;
    if (sizes->min > sizes->max)
        return error_set(err, "MIN %d is larger than MAX %d; " RANGE_FORM, sizes->min, sizes->max);

    sizes->step = 1;
    second = colon + 1 + max_len;
    if (*second == '\0')
        return 0;
    if (strchr(second + 1, ':') != NULL)
        return error_set(err, "there are more than three numbers; write MIN:MAX or MIN:MAX:STEP");
    if (parse_part("STEP", second + 1, strlen(second + 1), &sizes->step, err) < 0)
        return -1;
    if ((sizes->max - sizes->min) % sizes->step != 0)
        return step_error(sizes, sizes->step, err);
    /* One size only: any step would do, and only one is canonical. */
    if (sizes->min == sizes->max)
        sizes->step = 1;
    return 0;
}

static int parse_list(const char *text, struct sizes *sizes, struct error *err)
{
    const char *at = text;

    for (;;) {
        size_t len = strcspn(at, ",");
        int nodes;

        if (parse_part("a size of the list", at, len, &nodes, err) < 0)
            return -1;
        if (sizes->count == SIZES_LIST_MAX)
            return error_set(err, "the list has more than %d sizes; write MIN:MAX:STEP for so many",
                             SIZES_LIST_MAX);
        if (nodes == sizes->max)
            return error_set(err, "size %d is listed twice; " LIST_FORM, nodes);
        if (nodes < sizes->max)
            return error_set(err, "size %d comes after %d; " LIST_FORM, nodes, sizes->max);
        sizes->list[sizes->count++] = nodes;
        sizes->max = nodes;
        if (at[len] == '\0')
            break;
        at += len + 1;
    }
    sizes->min = sizes->list[0];
    return 0;
}

/* "4": exactly so many. What has other characters was meant to be one of the other forms: "2-8". */
static int parse_single(const char *text, struct sizes *sizes, struct error *err)
{
    if (text[strspn(text, "0123456789")] != '\0')
        return error_set(err, "'%s' is not a number of nodes; " FORMS, error_value(text).text);
    if (parse_part("the number", text, strlen(text), &sizes->min, err) < 0)
        return -1;
    sizes->max = sizes->min;
    sizes->step = 1;
    return 0;
}

int sizes_parse(const char *text, struct sizes *sizes, struct error *err)
{
    struct sizes parsed = {0};
    int rc;

    if (text[0] == '\0')
        return error_set(err, "the value is empty; " FORMS);
    if (strpbrk(text, " \t\r\n\v\f") != NULL)
        return error_set(err,
                         "there is a blank in the value; write it without, such as 2:8 or 2,4,8");
    if (strchr(text, ':') != NULL && strchr(text, ',') != NULL)
        return error_set(
            err, "a list and MIN:MAX[:STEP] exclude each other; write either 2,4,8 or 2:8:2");

    if (strchr(text, ':') != NULL)
        rc = parse_range(text, &parsed, err);
    else if (strchr(text, ',') != NULL)
        rc = parse_list(text, &parsed, err);
    else
        rc = parse_single(text, &parsed, err);
    if (rc == 0)
        *sizes = parsed;
    return rc;
}

/* Is it a multiple of nodes? The message names those next to it. */
static int check_multiple(const char *what, int size, int nodes, struct error *err)
{
    int below = size / nodes * nodes, above = below + nodes;
    char choice[64];

    if (size % nodes == 0)
        return 0;
    if (below == 0 || above > SIZES_NODES_MAX)
        snprintf(choice, sizeof(choice), "%d", below == 0 ? above : below);
    else
        snprintf(choice, sizeof(choice), "%d or %d", below, above);
    return error_set(err, "%s %d is not a multiple of %d; use %s", what, size, nodes, choice);
}

int sizes_keep_together(struct sizes *sizes, int nodes, struct error *err)
{
    if (nodes <= 1)
        return 0;
    for (int i = 0; i < sizes->count; i++)
        if (check_multiple("size", sizes->list[i], nodes, err) < 0)
            return -1;
    if (check_multiple("MIN", sizes->min, nodes, err) < 0 ||
        check_multiple("MAX", sizes->max, nodes, err) < 0)
        return -1;
    if (sizes->step > 1)
        return check_multiple("STEP", sizes->step, nodes, err);
    if (sizes->step == 1 && sizes->min < sizes->max)
        sizes->step = nodes;
    return 0;
}

char *sizes_format(const struct sizes *sizes, char *buf, size_t size)
{
    if (size == 0)
        return buf;
    buf[0] = '\0';
    if (sizes->min == 0)
        return buf;
    if (sizes->step > 0)
        text_append(buf, size, "%d:%d", sizes->min, sizes->max);
    if (sizes->step > 1)
        text_append(buf, size, ":%d", sizes->step);
    for (int i = 0; i < sizes->count; i++)
        text_append(buf, size, "%s%d", i > 0 ? "," : "", sizes->list[i]);
    return buf;
}

bool sizes_allowed(const struct sizes *sizes, int nodes)
{
    return nodes > 0 && sizes_floor(sizes, nodes) == nodes;
}

int sizes_floor(const struct sizes *sizes, int nodes)
{
    int found = 0;

    if (sizes->min == 0 || nodes < sizes->min)
        return 0;
    if (nodes >= sizes->max)
        return sizes->max;
    if (sizes->step > 0)
        return nodes - (nodes - sizes->min) % sizes->step;
    for (int i = 0; i < sizes->count && sizes->list[i] <= nodes; i++)
        found = sizes->list[i];
    return found;
}

int sizes_next(const struct sizes *sizes, int nodes)
{
    if (sizes->min == 0 || nodes >= sizes->max)
        return 0;
    if (nodes < sizes->min)
        return sizes->min;
    if (sizes->step > 0)
        return sizes_floor(sizes, nodes) + sizes->step;
    for (int i = 0; i < sizes->count; i++) {
        if (sizes->list[i] > nodes)
            return sizes->list[i];
    }
    return 0;
}
