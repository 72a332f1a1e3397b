/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What answers of a server that trains mean (fit_call.h). */
#include "lib/fit_call.h"

#include <string.h>

#define LINE_MAX_BYTES 300

/* What holds for a status, whoever has asked. Others: it has failed. */
static const struct {
    int status;
    enum fit_call means;
} table[] = {
    {200, FIT_CALL_DONE},
    {201, FIT_CALL_DONE},
    {204, FIT_CALL_DONE},
    {202, FIT_CALL_GOES_ON},
};

static enum fit_call no_answer(bool asked, double silent, struct error *why)
{
    if (asked && silent < FIT_CALL_PATIENCE)
        return FIT_CALL_GOES_ON;
    if (asked)
        error_set(why, "its server has not answered for %.0f s", FIT_CALL_PATIENCE);
    else
        error_set(why, "its server has not answered, and closed the connection");
    return FIT_CALL_FAILED;
}

/* The first line that is not empty. */
static size_t first_line(const char **text, size_t len)
{
    size_t line = 0;

    while (len > 0 && strchr(" \t\r\n", **text) != NULL) {
        ++*text;
        --len;
    }
    while (line < len && line < LINE_MAX_BYTES && (*text)[line] != '\n' && (*text)[line] != '\0')
        line++;
    return line;
}

enum fit_call fit_call_judge(bool asked, int status, const char *text, size_t len, double silent,
                             struct error *why)
{
    size_t line;

    if (status == 0)
        return no_answer(asked, silent, why);
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        if (table[i].status == status)
            return table[i].means;
    line = len > 0 ? first_line(&text, len) : 0;
    error_set(why, "its server answered %d%s%.*s", status, line > 0 ? ": " : "", (int)line,
              line > 0 ? text : "");
    return FIT_CALL_FAILED;
}
