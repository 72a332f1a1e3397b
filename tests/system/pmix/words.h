/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The word for a status, the same with every PMIx: NOT-FOUND, as 4.2 says. 5 says
 * PMIX_ERR_NOT_FOUND. */
#ifndef ELASTIC_TESTS_PMIX_WORDS_H
#define ELASTIC_TESTS_PMIX_WORDS_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <pmix.h>

/* OpenPMIx 5 and 6 tell only one process of each node that a collective has failed; the others hear
 * SUCCESS. */
static inline bool failure_is_told_once(void)
{
    return strncmp(PMIx_Get_version(), "OpenPMIx 4.", strlen("OpenPMIx 4.")) != 0;
}

/* Stays until the third call after this one. */
static inline const char *status_word(pmix_status_t status)
{
    static char words[3][64];
    static int last;
    const char *text = PMIx_Error_string(status);
    char *word = words[last = (last + 1) % 3];

    text += strncmp(text, "PMIX_", 5) == 0 ? 5 : 0;
    text += strncmp(text, "ERR_", 4) == 0 ? 4 : 0;
    snprintf(word, sizeof(words[0]), "%s", text);
    for (char *at = word; (at = strchr(at, '_')) != NULL;)
        *at = '-';
    return word;
}

#endif
