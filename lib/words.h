/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A text as words, with the quotes of a shell, and nothing else of it. */
#ifndef ELASTIC_WORDS_H
#define ELASTIC_WORDS_H

#include "lib/error.h"

#define WORDS_MAX_COUNT 256

/* The words of a text, NULL-terminated (strings_free). Blanks separate words. '…' takes all as it
 * is; in "…" and outside, \ takes the next character as it is. NULL with err: a quote or a \ at the
 * end is open, or there are too many words. */
char **words_split(const char *text, struct error *err);

#endif
