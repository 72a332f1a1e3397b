/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the fuzz targets share. Each is one file with LLVMFuzzerTestOneInput, linked either with
 * libFuzzer (scripts/fuzz) or with replay.c (make check). */
#ifndef ELASTIC_FUZZ_H
#define ELASTIC_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A property that must hold for every input; a finding like any crash if it does not. */
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);         \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* The input as a string of exactly its size, so that a byte too far is seen. Caller frees. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    MUST(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

/* Every refusal is one line that says something. */
static inline void fuzz_check_refusal(const struct error *err)
{
    MUST(err->text[0] != '\0');
    for (const char *c = err->text; *c != '\0'; c++)
        MUST((unsigned char)*c >= ' ' && *c != 0x7f);
}

/* Cut text into lines, in place. Returns how many, at most max; lines[count] is NULL. */
static inline int fuzz_lines(char *text, char **lines, int max)
{
    int count = 0;

    for (char *line; count < max && (line = strsep(&text, "\n")) != NULL;)
        lines[count++] = line;
    lines[count] = NULL;
    return count;
}

#endif
