/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Text for a terminal: untrusted text made safe, tables, and times in words (terminal_text.h). */
#include "cmd/terminal_text.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

#define CELL_COLUMNS_MAX 512 /* of any cell, however wide the terminal */
#define LAST_COLUMN_MIN  16  /* a narrower last column would be useless: the terminal wraps it */
#define CUT              "..."

void *text_need(void *p)
{
    if (p == NULL) {
        fputs("selastic: out of memory\n", stderr);
        abort();
    }
    return p;
}

/* One printable character, or one byte to be shown as \xHH. */
struct piece {
    size_t bytes;
    int columns;
    bool plain;
};

static struct piece next_piece(const char *text, size_t left)
{
    mbstate_t state = {0};
    wchar_t wide;
    size_t bytes = mbrtowc(&wide, text, left, &state);
    if (bytes == 0 || bytes == (size_t)-1 || bytes == (size_t)-2)
        return (struct piece){.bytes = 1, .columns = 4};
    int columns = wcwidth(wide);
    if (columns <= 0 || !iswprint((wint_t)wide))
        return (struct piece){.bytes = 1, .columns = 4};
    return (struct piece){.bytes = bytes, .columns = columns, .plain = true};
}

int text_columns(const char *text)
{
    size_t left = strlen(text);
    int columns = 0;
    while (left > 0) {
        struct piece piece = next_piece(text, left);
        columns += piece.columns;
        text += piece.bytes;
        left -= piece.bytes;
    }
    return columns;
}

char *text_clean(const char *text, int max)
{
    if (text == NULL)
        return text_need(strdup("-"));
    size_t left = strnlen(text, INT_MAX / 8);
    bool cut = max > 0 && text_columns(text) > max;
    int room = cut ? max - (int)strlen(CUT) : INT_MAX;
    char *clean = text_need(malloc(left * 4 + sizeof(CUT)));
    char *end = clean;
    while (left > 0) {
        struct piece piece = next_piece(text, left);
        if (piece.columns > room)
            break;
        room -= piece.columns;
        if (piece.plain)
            end = mempcpy(end, text, piece.bytes);
        else
            end += sprintf(end, "\\x%02x", (unsigned char)*text);
        text += piece.bytes;
        left -= piece.bytes;
    }
    strcpy(end, cut ? CUT : "");
    return clean;
}

void text_print_wrapped(FILE *out, const char *clean, int indent, int width)
{
    int column = indent;
    while (*clean) {
        size_t blanks = strspn(clean, " ");
        size_t length = blanks + strcspn(clean + blanks, " ");
        char *word = text_need(strndup(clean, length));
        int columns = text_columns(word);
        if (width > 0 && column + columns > width && column > indent) {
            fprintf(out, "\n%*s%s", indent, "", word + blanks);
            column = indent + columns - (int)blanks;
        } else {
            fputs(word, out);
            column += columns;
        }
        free(word);
        clean += length;
    }
}

const char *text_duration(double seconds, char *buf, size_t size)
{
    if (!isfinite(seconds) || seconds < 0 || seconds > 1e12)
        snprintf(buf, size, "-");
    else if (seconds < 9.95)
        snprintf(buf, size, "%.1f s", seconds);
    else if (seconds < 59.5)
        snprintf(buf, size, "%.0f s", seconds);
    else {
        long long s = llround(seconds);
        if (s < 3600)
            snprintf(buf, size, "%lld min %lld s", s / 60, s % 60);
        else if (s < 86400)
            snprintf(buf, size, "%lld h %lld min", s / 3600, s / 60 % 60);
        else
            snprintf(buf, size, "%lld d %lld h", s / 86400, s / 3600 % 24);
    }
    return buf;
}

const char *text_clock(double when, time_t now, char *buf, size_t size)
{
    struct tm at, today;
    time_t whole = isfinite(when) && when > 0 && when < 1e12 ? (time_t)when : 0;
    if (whole <= 0 || localtime_r(&whole, &at) == NULL || localtime_r(&now, &today) == NULL)
        snprintf(buf, size, "-");
    else if (at.tm_year == today.tm_year && at.tm_yday == today.tm_yday)
        strftime(buf, size, "%H:%M:%S", &at);
    else
        strftime(buf, size, "%Y-%m-%d %H:%M:%S", &at);
    return buf;
}

struct table {
    const struct table_column *columns;
    int count;
    char **cells;
    size_t used, room;
};

struct table *table_create(const struct table_column *columns, int count)
{
    struct table *table = text_need(calloc(1, sizeof(*table)));
    table->columns = columns;
    table->count = count;
    for (int i = 0; i < count; i++)
        table_cell(table, columns[i].title);
    return table;
}

void table_destroy(struct table *table)
{
    if (table == NULL)
        return;
    for (size_t i = 0; i < table->used; i++)
        free(table->cells[i]);
    free(table->cells);
    free(table);
}

void table_cell(struct table *table, const char *text)
{
    if (table->used == table->room) {
        table->room = table->room ? table->room * 2 : 64;
        table->cells = text_need(reallocarray(table->cells, table->room, sizeof(char *)));
    }
    table->cells[table->used++] = text_clean(text != NULL && *text ? text : NULL, CELL_COLUMNS_MAX);
}

void table_number(struct table *table, long long number)
{
    char text[32];
    snprintf(text, sizeof(text), "%lld", number);
    table_cell(table, text);
}

static int column_width(const struct table *table, int column)
{
    int width = 0;
    for (size_t i = (size_t)column; i < table->used; i += (size_t)table->count) {
        int columns = text_columns(table->cells[i]);
        if (columns > width)
            width = columns;
    }
    return width;
}

/* The last column of a row: never padded, and cut to the rest of the line. */
static void print_last(FILE *out, const char *cell, int left)
{
    char *cut = text_clean(cell, left);
    fputs(cut, out);
    fputc('\n', out);
    free(cut);
}

void table_print(const struct table *table, FILE *out, int width)
{
    int last = table->count - 1;
    int *widths = text_need(calloc((size_t)table->count, sizeof(int)));
    int before_last = 0;
    for (int i = 0; i < last; i++) {
        widths[i] = column_width(table, i);
        before_last += widths[i] + 2;
    }
    int left = 0;
    if (width > 0)
        left = width - before_last >= LAST_COLUMN_MIN ? width - before_last : LAST_COLUMN_MIN;
    for (size_t i = 0; i + (size_t)last < table->used; i += (size_t)table->count) {
        for (int column = 0; column < last; column++) {
            const char *cell = table->cells[i + (size_t)column];
            int pad = widths[column] - text_columns(cell);
            if (table->columns[column].align == TABLE_RIGHT)
                fprintf(out, "%*s%s  ", pad, "", cell);
            else
                fprintf(out, "%s%*s  ", cell, pad, "");
        }
        print_last(out, table->cells[i + (size_t)last], left);
    }
    free(widths);
}
