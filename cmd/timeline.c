/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A job's life as a chart: nodes downwards, time to the right. Pure: generations in, text out.
 *
 * Each generation takes the columns from its start to the start of the next generation. A
 * generation that begins and ends within a column is hidden by the next: the chart shows
 * proportions, the table above it shows numbers. */
#include "cmd/timeline.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/shape.h"
#include "cmd/terminal_text.h"
#include "cmd/tick.h"
#include "lib/number.h"

#define WIDTH_MIN         40
#define LABEL_COLUMNS_MAX 20
#define CHART_ROWS_MAX    10
/* Seconds: keeps hostile times inside the range of the calculation. */
#define SPAN_MAX 1e10

struct drawing {
    json_object *generations;
    int count;
    int *first;          /* column of each generation's start */
    int *until;          /* last column of each generation that ended before the next began */
    int *pause;          /* first column after its pause */
    int *at;             /* generation that each column shows */
    int columns;         /* of the plot */
    int label;           /* columns to the left of the plot */
    double begin, span;  /* Unix time and seconds */
    json_object *nodes;  /* names in order of appearance */
    json_object *row_of; /* name → index in nodes */
};

static json_object *generation(const struct drawing *drawing, int index)
{
    return json_object_array_get_idx(drawing->generations, (size_t)index);
}

static int size_of(const struct drawing *drawing, int index)
{
    int64_t size = field_int(generation(drawing, index), "size", 0);
    return size < 0 ? 0 : size > 65536 ? 65536 : (int)size;
}

/* Names in order of appearance. The base's nodes come first, since they are in the first
 * generation. */
static void collect_nodes(struct drawing *drawing)
{
    drawing->nodes = text_need(json_object_new_array());
    drawing->row_of = text_need(json_object_new_object());
    for (int i = 0; i < drawing->count; i++) {
        json_object *names = field_array(generation(drawing, i), "nodes");
        size_t count = field_count(generation(drawing, i), "nodes");
        for (size_t k = 0; k < count; k++) {
            const char *name = json_object_get_string(json_object_array_get_idx(names, k));
            if (name == NULL || json_object_object_get_ex(drawing->row_of, name, NULL))
                continue;
            size_t row = json_object_array_length(drawing->nodes);
            json_object_object_add(drawing->row_of, name, json_object_new_int64((int64_t)row));
            json_object_array_add(drawing->nodes, json_object_new_string(name));
        }
    }
}

static int column_of(const struct drawing *drawing, double time)
{
    return (int)(number_clamp((time - drawing->begin) / drawing->span, 0, 1) *
                 (drawing->columns - 1));
}

/* Times to columns. A clock that was set back between two generations must not change their
 * order. */
static void place(struct drawing *drawing)
{
    drawing->first = text_need(calloc((size_t)drawing->count, sizeof(int)));
    drawing->until = text_need(calloc((size_t)drawing->count, sizeof(int)));
    drawing->pause = text_need(calloc((size_t)drawing->count, sizeof(int)));
    drawing->at = text_need(calloc((size_t)drawing->columns, sizeof(int)));
    for (int i = 0; i < drawing->count; i++) {
        double time = field_double(generation(drawing, i), "time");
        double pause = field_double(generation(drawing, i), "pause");
        double until = field_double(generation(drawing, i), "until");
        int column = column_of(drawing, time);
        drawing->first[i] = i > 0 && column < drawing->first[i - 1] ? drawing->first[i - 1]
                                                                    : column;
        drawing->until[i] = until >= time ? column_of(drawing, until) : drawing->columns;
        drawing->pause[i] = pause > 0 && i > 0 ? column_of(drawing, time + pause) : 0;
        for (int k = drawing->first[i]; k < drawing->columns; k++)
            drawing->at[k] = i;
    }
}

static void find_span(struct drawing *drawing, double end)
{
    double until = field_double(generation(drawing, drawing->count - 1), "until");
    double last = field_double(generation(drawing, drawing->count - 1), "time");
    drawing->begin = field_double(generation(drawing, 0), "time");
    if (isnan(until))
        until = end;
    if (!(until >= last))
        until = last;
    drawing->span = number_clamp(until - drawing->begin, 1, SPAN_MAX);
}

static void put_label(FILE *out, const struct drawing *drawing, const char *label)
{
    fprintf(out, "%s%*s  ", label, drawing->label - text_columns(label), "");
}

/* A line of the plot without the blanks at its end. */
static void put_line(FILE *out, char *line)
{
    size_t length = strlen(line);
    while (length > 0 && line[length - 1] == ' ')
        line[--length] = '\0';
    fprintf(out, "%s\n", line);
}

/* Write text into the line if a blank is left on both sides. */
static void mark(char *line, int columns, int column, const char *text)
{
    int length = (int)strlen(text);
    if (column + length > columns || (column > 0 && line[column - 1] != ' '))
        return;
    for (int i = 0; i < length; i++)
        if (line[column + i] != ' ')
            return;
    memcpy(line + column, text, (size_t)length);
}

static char *blank_line(const struct drawing *drawing)
{
    char *line = text_need(malloc((size_t)drawing->columns + 1));
    memset(line, ' ', (size_t)drawing->columns);
    line[drawing->columns] = '\0';
    return line;
}

static void put_sizes(FILE *out, const struct drawing *drawing)
{
    char *line = blank_line(drawing);
    char text[16];
    for (int i = 0; i < drawing->count; i++) {
        snprintf(text, sizeof(text), "%d", size_of(drawing, i));
        if (drawing->at[drawing->first[i]] == i)
            mark(line, drawing->columns, drawing->first[i], text);
    }
    put_label(out, drawing, "nodes");
    put_line(out, line);
    free(line);
}

/* Does each node take part in the generation? A table of nodes × generations would be too large for
 * the longest jobs, so one row is made at a time. */
static bool takes_part(const struct drawing *drawing, int index, const char *name)
{
    json_object *names = field_array(generation(drawing, index), "nodes");
    size_t count = field_count(generation(drawing, index), "nodes");
    for (size_t k = 0; k < count; k++) {
        const char *other = json_object_get_string(json_object_array_get_idx(names, k));
        if (other != NULL && strcmp(other, name) == 0)
            return true;
    }
    return false;
}

/* Is a column within the life of the generation that it shows? A requeued job is away for a
 * while. */
static bool alive(const struct drawing *drawing, int column)
{
    return column <= drawing->until[drawing->at[column]];
}

static void put_node(FILE *out, const struct drawing *drawing, const char *name)
{
    char *line = blank_line(drawing);
    int index = -1;
    bool part = false;
    for (int k = 0; k < drawing->columns; k++) {
        if (drawing->at[k] != index) {
            index = drawing->at[k];
            part = takes_part(drawing, index, name);
        }
        if (part && alive(drawing, k))
            line[k] = k == drawing->first[index] ? '|' : k < drawing->pause[index] ? '-' : '=';
    }
    char *label = text_clean(name, LABEL_COLUMNS_MAX);
    put_label(out, drawing, label);
    put_line(out, line);
    free(label);
    free(line);
}

static void put_chart(FILE *out, const struct drawing *drawing)
{
    int top = 1;
    for (int i = 0; i < drawing->count; i++)
        if (size_of(drawing, i) > top)
            top = size_of(drawing, i);
    int rows = top < CHART_ROWS_MAX ? top : CHART_ROWS_MAX;
    for (int row = rows; row >= 1; row--) {
        int level = (top * row + rows - 1) / rows;
        char *line = blank_line(drawing);
        char label[32];
        for (int k = 0; k < drawing->columns; k++)
            if (size_of(drawing, drawing->at[k]) >= level && alive(drawing, k))
                line[k] = '#';
        snprintf(label, sizeof(label), "%*d", drawing->label, level);
        put_label(out, drawing, label);
        put_line(out, line);
        free(line);
    }
}

static void elapsed(double seconds, double span, char *buf, size_t size)
{
    long long s = llround(seconds);
    if (span >= 3600)
        snprintf(buf, size, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(buf, size, "%lld:%02lld", s / 60, s % 60);
}

static void put_axis(FILE *out, const struct drawing *drawing)
{
    char *line = blank_line(drawing);
    /* Room for the labels. */
    double step = tick_round(drawing->span * 12 / drawing->columns);
    char text[32];
    for (double t = 0; t <= drawing->span; t += step) {
        elapsed(t, drawing->span, text, sizeof(text));
        mark(line, drawing->columns, column_of(drawing, drawing->begin + t), text);
    }
    put_label(out, drawing, drawing->span >= 3600 ? "h:m:s" : "m:s");
    put_line(out, line);
    free(line);
}

/* Columns of the labels on the left: the widest name, or number of the chart. */
static int label_columns(const struct drawing *drawing, bool rows)
{
    int columns = (int)strlen("nodes");
    size_t count = rows ? json_object_array_length(drawing->nodes) : 0;
    for (size_t i = 0; i < count; i++) {
        json_object *name = json_object_array_get_idx(drawing->nodes, i);
        int width = text_columns(json_object_get_string(name));
        if (width > columns)
            columns = width;
    }
    return columns < LABEL_COLUMNS_MAX ? columns : LABEL_COLUMNS_MAX;
}

static void draw(FILE *out, struct drawing *drawing, const struct timeline_options *options)
{
    int width = options->width > WIDTH_MIN ? options->width : WIDTH_MIN;
    collect_nodes(drawing);
    size_t nodes = json_object_array_length(drawing->nodes);
    bool rows = nodes > 0 && nodes <= (size_t)options->max_rows;
    drawing->label = label_columns(drawing, rows);
    drawing->columns = width - drawing->label - 2;
    find_span(drawing, options->end);
    place(drawing);
    put_sizes(out, drawing);
    for (size_t i = 0; rows && i < nodes; i++)
        put_node(out, drawing,
                 json_object_get_string(json_object_array_get_idx(drawing->nodes, i)));
    if (!rows)
        put_chart(out, drawing);
    put_axis(out, drawing);
}

char *timeline_draw(json_object *generations, const struct timeline_options *options)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = text_need(open_memstream(&text, &size));
    struct drawing drawing = {.generations = generations};
    drawing.count = generations != NULL ? (int)json_object_array_length(generations) : 0;
    if (drawing.count > 0)
        draw(out, &drawing, options);
    fclose(out);
    free(drawing.first);
    free(drawing.until);
    free(drawing.pause);
    free(drawing.at);
    json_object_put(drawing.nodes);
    json_object_put(drawing.row_of);
    return text_need(text);
}
