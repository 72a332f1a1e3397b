/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The directory of copies of models (mirror_files.h). */
#include "state/mirror_files.h"

#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/files.h"

#define LINE_MAX_BYTES 4096

int mirror_path(char *path, const char *directory, const char *name, struct error *err)
{
    if (snprintf(path, PATH_MAX, "%s/%s", directory, name) < PATH_MAX)
        return 0;
    return error_set(err, "%s: too long", error_path(directory).text);
}

int mirror_note(const char *dir, const char *name, const char *text, struct error *err)
{
    char path[PATH_MAX], line[LINE_MAX_BYTES];
    int len;

    if (mirror_path(path, dir, name, err) != 0)
        return -1;
    if (text == NULL)
        return unlink(path) == 0 || errno == ENOENT
                   ? 0
                   : error_set(err, "%s: %s", error_path(path).text, strerror(errno));
    len = snprintf(line, sizeof(line), "%.*s\n", (int)sizeof(line) - 2, text);
    return file_replace(path, line, (size_t)len, 0600, err);
}

bool mirror_has(const char *dir, const char *name)
{
    char path[PATH_MAX];

    return mirror_path(path, dir, name, NULL) == 0 && access(path, F_OK) == 0;
}

bool mirror_says(const char *dir, const char *name, const char *text)
{
    char path[PATH_MAX], *line = NULL;
    bool same;

    if (mirror_path(path, dir, name, NULL) == 0)
        line = file_read(path, LINE_MAX_BYTES, NULL, NULL);
    same = line != NULL && strncmp(line, text, strlen(text)) == 0 &&
           strcmp(line + strlen(text), "\n") == 0;
    free(line);
    return same;
}

int64_t mirror_bytes(const char *directory)
{
    char *paths[] = {(char *)(uintptr_t)directory, NULL};
    FTS *tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    int64_t bytes = 0;
    FTSENT *entry;

    while (tree != NULL && (entry = fts_read(tree)) != NULL)
        if (entry->fts_info == FTS_F)
            bytes += (int64_t)entry->fts_statp->st_size;
    if (tree != NULL)
        fts_close(tree);
    return bytes;
}

int mirror_each(const char *directory,
                int (*each)(const char *name, const char *dir, void *arg, struct error *err),
                void *arg, struct error *err)
{
    DIR *list = opendir(directory);
    const char *name;
    char path[PATH_MAX];
    int rc = 0;

    if (list == NULL)
        return error_set(err, "%s: %s", error_path(directory).text, strerror(errno));
    while (rc == 0 && (name = entry_next(list)) != NULL)
        if (name[0] != '.')
            rc = mirror_path(path, directory, name, err) == 0 ? each(name, path, arg, err) : -1;
    closedir(list);
    return rc;
}
