/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The environment of a program that libelastic-shield.so is to protect (shield.h). */
#include "lib/shield.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/text.h"

#define PRELOAD    "LD_PRELOAD"
#define SEPARATORS ": " /* of the names in LD_PRELOAD */

static bool names(const char *preload, const char *library)
{
    size_t len;

    for (; *preload != '\0'; preload += len) {
        preload += strspn(preload, SEPARATORS);
        len = strcspn(preload, SEPARATORS);
        if (len == strlen(library) && strncmp(preload, library, len) == 0)
            return true;
    }
    return false;
}

char **shield_environment(char *const *user, const char *library, pid_t stepd)
{
    char **entries = calloc(3, sizeof(*entries));
    const char *preload = strings_value(user, PRELOAD); /* of several the first one holds */
    bool named;
    int rc;

    if (entries == NULL || stepd <= 1 || strpbrk(library, SEPARATORS) != NULL)
        return entries;
    preload = preload != NULL ? preload : "";
    named = names(preload, library);
    rc = asprintf(&entries[0], PRELOAD "=%s%s%s", preload, named || preload[0] == '\0' ? "" : ":",
                  named ? "" : library);
    if (rc >= 0)
        rc = asprintf(&entries[1], "ELASTIC_SHIELD=%d", (int)stepd);
    else
        entries[0] = NULL;
    if (rc >= 0)
        return entries;
    entries[1] = NULL;
    strings_free(entries);
    return NULL;
}
