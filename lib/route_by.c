/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where requests name their model (route_by.h). */
#include "lib/route_by.h"

#include <string.h>

#include "lib/text.h"

bool haproxy_path_ok(const char *path)
{
    return text_made_of(path, "/._-") && path[0] == '/' && strstr(path, "/../") == NULL;
}

bool haproxy_what_ok(enum haproxy_key by, const char *what)
{
    switch (by) {
    case HAPROXY_HEADER:
        return text_made_of(what, "-_");
    case HAPROXY_PATH:
        return haproxy_path_ok(what) && what[strlen(what) - 1] == '/';
    case HAPROXY_JSON:
        return text_made_of(what, "$._-") && strncmp(what, "$.", 2) == 0;
    }
    return false;
}

static const char *const words[] = {
    [HAPROXY_HEADER] = "header",
    [HAPROXY_PATH] = "path",
    [HAPROXY_JSON] = "json",
};

const char *route_by_word(enum haproxy_key by)
{
    return words[by];
}

bool route_by_parse(const char *text, enum haproxy_key *by, const char **what)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        size_t length = strlen(words[i]);

        if (strncmp(text, words[i], length) != 0 || text[length] != ':' ||
            !haproxy_what_ok((enum haproxy_key)i, text + length + 1))
            continue;
        *by = (enum haproxy_key)i;
        *what = text + length + 1;
        return true;
    }
    return false;
}
