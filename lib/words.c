/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A text as words (words.h). */
#include "lib/words.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/text.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

/* The word at *text, into room for all that is left of it. -1: it has no end. */
static int take_word(const char **text, char *word)
{
    char quote = '\0';
    const char *at = *text;

    for (; *at != '\0' && (quote != '\0' || !is_blank(*at)); at++) {
        if (quote == '\0' && (*at == '\'' || *at == '"'))
            quote = *at;
        else if (*at == quote)
            quote = '\0';
        else if (*at == '\\' && quote != '\'') {
            if (*++at == '\0')
                return -1;
            *word++ = *at;
        } else {
            *word++ = *at;
        }
    }
    *word = '\0';
    *text = at;
    return quote == '\0' ? 0 : -1;
}

static int split(const char *text, char *room, char **words, struct error *err)
{
    for (int count = 0;; count++) {
        while (is_blank(*text))
            text++;
        if (*text == '\0')
            return 0;
        if (count == WORDS_MAX_COUNT)
            return error_set(err, "there are more than %d words", WORDS_MAX_COUNT);
        if (take_word(&text, room) != 0)
            return error_set(err, "a quote or a \\ is open at its end");
        words[count] = strdup(room);
        if (words[count] == NULL)
            return error_set(err, "out of memory");
    }
}

char **words_split(const char *text, struct error *err)
{
    char **words = calloc(WORDS_MAX_COUNT + 1, sizeof(*words));
    char *room = malloc(strlen(text) + 1);

    if (words == NULL || room == NULL) {
        error_set(err, "out of memory");
        free(words);
        free(room);
        return NULL;
    }
    if (split(text, room, words, err) != 0) {
        strings_free(words);
        words = NULL;
    }
    free(room);
    return words;
}
