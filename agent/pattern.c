/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lines by which a worker has failed (pattern.h). */
#include "agent/pattern.h"

#include <regex.h>
#include <stdlib.h>

struct pattern {
    regex_t regex;
};

struct pattern *pattern_create(const char *text, struct error *err)
{
    struct pattern *pattern = calloc(1, sizeof(*pattern));
    char why[160];
    int code;

    if (pattern == NULL) {
        error_set(err, "out of memory");
        return NULL;
    }
    code = regcomp(&pattern->regex, text, REG_EXTENDED | REG_NOSUB);
    if (code == 0)
        return pattern;
    regerror(code, &pattern->regex, why, sizeof(why));
    error_set(err, "%s: not an extended regular expression: %s", error_value(text).text, why);
    free(pattern);
    return NULL;
}

void pattern_destroy(struct pattern *pattern)
{
    if (pattern != NULL)
        regfree(&pattern->regex);
    free(pattern);
}

const char *pattern_feed(const struct pattern *pattern, struct pattern_stream *stream,
                         const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (data[i] != '\n') {
            /* A NUL would end the line for regexec. */
            if (stream->used < PATTERN_LINE - 1)
                stream->line[stream->used++] = data[i] != '\0' ? data[i] : ' ';
            continue;
        }
        stream->line[stream->used] = '\0';
        stream->used = 0;
        /* The rest of the output comes from a worker that has failed. */
        if (regexec(&pattern->regex, stream->line, 0, NULL, 0) == 0)
            return stream->line;
    }
    return NULL;
}
