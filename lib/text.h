/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Text in a fixed buffer, built piece by piece; UTF-8; and arrays of strings. */
#ifndef ELASTIC_LIB_TEXT_H
#define ELASTIC_LIB_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Append to the string in buf (size bytes, at least 1). Text that does not fit is left out. Returns
 * buf. */
char *text_append(char *buf, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Bytes of the well-formed UTF-8 sequence (Unicode 15, table 3-7) at the beginning of text, which
 * has len bytes; 0 if there is none. */
size_t text_utf8_length(const char *text, size_t len);
/* The same, and its character. */
size_t text_utf8_decode(const char *text, size_t len, uint32_t *code);

/* Whether a text is only ASCII letters, digits and these other characters. NULL and "": false. */
bool text_made_of(const char *text, const char *others);
/* How many letters have to be changed, added or taken away (Levenshtein) to get from one name to
 * the other; of more than 32 bytes: SIZE_MAX. */
size_t text_distance(const char *a, const char *b);

/* A copy of a NULL-terminated array of strings, NULL if there is none or no memory. */
char **strings_copy(char *const *strings);
/* Without the NULL at the end; 0 for no array. */
size_t strings_count(char *const *strings);
void strings_free(char **strings);
/* The value of an assignment "NAME=value"; NULL if it is of another name. */
const char *assignment_value(const char *assignment, const char *name);
/* The value of the first assignment of that name in a list, which may be NULL; NULL: there is
 * none. */
const char *strings_value(char *const *assignments, const char *name);
/* The same of the first one that has a value which is not empty. */
const char *strings_filled_value(char *const *assignments, const char *name);
/* Copies of "K=V" without those of these names (NULL after the last one). NULL: out of memory. */
char **strings_without(char *const *assignments, const char *const *names);
/* Copies of more at the end of a list, which may be NULL. -1: out of memory. */
int strings_append(char ***list, char *const *more);

#endif
