/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What programs of tests write down: a log, and a number in a file. */
#ifndef ELASTIC_TESTS_PMIX_NOTES_H
#define ELASTIC_TESTS_PMIX_NOTES_H

#include <stdarg.h>
#include <stdio.h>

static FILE *log_file; /* NULL: says nothing */

__attribute__((format(printf, 1, 2))) static inline void say(const char *fmt, ...)
{
    va_list ap;

    if (log_file == NULL)
        return;
    va_start(ap, fmt);
    vfprintf(log_file, fmt, ap);
    va_end(ap);
    fputc('\n', log_file);
    fflush(log_file);
}

/* The number in a file; 0: there is none, -1: something else is. */
static inline long number_load(const char *path)
{
    FILE *file = fopen(path, "r");
    long number = 0;

    if (file != NULL && fscanf(file, "%ld", &number) != 1)
        number = -1;
    if (file != NULL)
        fclose(file);
    return number;
}

static inline void number_save(const char *path, long number)
{
    char temporary[4200];
    FILE *file;

    snprintf(temporary, sizeof(temporary), "%s.new", path);
    file = fopen(temporary, "w");
    fprintf(file, "%ld\n", number);
    fclose(file);
    rename(temporary, path);
}

#endif
