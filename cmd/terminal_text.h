/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Text for a terminal: untrusted text made safe, tables, and times in words. */
#ifndef SELASTIC_TERMINAL_TEXT_H
#define SELASTIC_TERMINAL_TEXT_H

#include <stdio.h>
#include <time.h>

/* Returns p. Ends the program when p is NULL: selastic has nothing to save when memory runs out. */
void *text_need(void *p) __attribute__((returns_nonnull));

/* A new string that is safe to print and at most max columns wide (0: no limit); a longer text is
 * cut with "...". Characters that the locale cannot print, or that have no width of their own,
 * become \xHH for each byte: control characters, escape sequences, bidirectional marks, stacked
 * accents. NULL becomes "-". */
char *text_clean(const char *text, int max) __attribute__((malloc, returns_nonnull));

/* Columns of a cleaned text. */
int text_columns(const char *text);

/* Print a cleaned text whose first line begins at column indent. With width > 0 it goes on in
 * further lines with the same indent, broken at blanks. */
void text_print_wrapped(FILE *out, const char *clean, int indent, int width);

/* "0.3 s", "45 s", "2 min 5 s", "1 h 2 min", "3 d 4 h"; "-" when negative or not a number. */
const char *text_duration(double seconds, char *buf, size_t size);

/* Local time: "10:03:21" on the day of now, else "2026-01-31 10:03:21"; "-" for no time (<= 0). */
const char *text_clock(double when, time_t now, char *buf, size_t size);

struct table_column {
    const char *title;
    enum { TABLE_LEFT, TABLE_RIGHT } align;
};

struct table;

/* columns has count entries and must outlive the table. */
struct table *table_create(const struct table_column *columns, int count);
void table_destroy(struct table *table);

/* The next cell, row by row, from left to right. The text is cleaned. */
void table_cell(struct table *table, const char *text);
void table_number(struct table *table, long long number);

/* Print the title line and the rows. With width > 0 the last column is cut so that no line is
 * longer. */
void table_print(const struct table *table, FILE *out, int width);

#endif
