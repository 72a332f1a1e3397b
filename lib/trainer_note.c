/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The comment of a trainer's job, and a trainer's name (trainer_note.h). */
#include "lib/trainer_note.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK "elastic-trainer="

/* Where our part begins; NULL: there is none. */
static const char *find(const char *comment)
{
    const char *at = comment;

    while (at != NULL && (at = strstr(at, MARK)) != NULL) {
        if (at == comment || at[-1] == ' ')
            return at;
        at++;
    }
    return NULL;
}

char *trainer_note(const char *comment, const char *service, const char *payer, const char *runner)
{
    const char *ours = find(comment);
    size_t kept = comment == NULL ? 0 : ours != NULL ? (size_t)(ours - comment) : strlen(comment);
    char *text = NULL;

    while (kept > 0 && comment[kept - 1] == ' ')
        kept--;
    if (asprintf(&text, "%.*s%s" MARK "%s%s%s%s%s", (int)kept, comment != NULL ? comment : "",
                 kept > 0 ? " " : "", service, payer != NULL ? " payer=" : "",
                 payer != NULL ? payer : "", payer != NULL && runner != NULL ? " runner=" : "",
                 payer != NULL && runner != NULL ? runner : "") < 0)
        return NULL;
    return text;
}

bool trainer_note_names(const char *comment, const char *service)
{
    const char *ours = find(comment);
    size_t len = strlen(service);

    if (ours == NULL || strncmp(ours + strlen(MARK), service, len) != 0)
        return false;
    return ours[strlen(MARK) + len] == '\0' || ours[strlen(MARK) + len] == ' ';
}

/* Letters, digits and ._- . */
static bool copy(const char *from, size_t len, char to[TRAINER_NAME_MAX])
{
    if (len == 0 || len >= TRAINER_NAME_MAX || from[0] == '-' || from[0] == '.')
        return false;
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)from[i]) && strchr("._-", from[i]) == NULL)
            return false;
    memcpy(to, from, len);
    to[len] = '\0';
    return true;
}

bool trainer_name_read(const char *text, struct trainer_name *name)
{
    const char *at = strchr(text, '@');

    *name = (struct trainer_name){0};
    return copy(text, at != NULL ? (size_t)(at - text) : strlen(text), name->service) &&
           (at == NULL || copy(at + 1, strlen(at + 1), name->user));
}
