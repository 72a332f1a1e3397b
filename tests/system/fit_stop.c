/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For LD_PRELOAD: stops the runner of a fit when it has written that it begins an action. The file
 * $FIT_STOP has the action's name. It becomes $FIT_STOP.at, with the number of the process that is
 * stopped. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool read_file(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "re");
    size_t len = file != NULL ? fread(text, 1, size - 1, file) : 0;

    text[len] = '\0';
    if (file != NULL)
        fclose(file);
    return len > 0;
}

/* Is it the record, and does it say that action? */
static bool is_at(const char *path, const char *action)
{
    static const char file[] = "/status.json", key[] = "\"action\"";
    size_t len = strlen(path), size = strlen(action);
    char text[8192];
    const char *at;

    if (len < sizeof(file) || strcmp(path + len - sizeof(file) + 1, file) != 0 ||
        !read_file(path, text, sizeof(text)) || (at = strstr(text, key)) == NULL)
        return false;
    at += sizeof(key) - 1;
    while (*at == ':' || *at == '"' || isspace((unsigned char)*at))
        at++;
    return strncmp(at, action, size) == 0 && at[size] == '"';
}

static void stop(const char *wanted, int (*put)(const char *, const char *))
{
    char new[4096], at[4096];
    FILE *file;

    snprintf(new, sizeof(new), "%s.new", wanted);
    snprintf(at, sizeof(at), "%s.at", wanted);
    file = fopen(new, "we");
    if (file == NULL)
        return;
    fprintf(file, "%d\n", (int)getpid());
    fclose(file);
    unlink(wanted);
    put(new, at);
    raise(SIGSTOP);
}

int rename(const char *from, const char *to)
{
    int (*real)(const char *, const char *);
    const char *wanted = getenv("FIT_STOP");
    char action[64];
    int rc;

    *(void **)&real = dlsym(RTLD_NEXT, "rename");
    rc = real(from, to);
    if (rc != 0 || wanted == NULL || !read_file(wanted, action, sizeof(action)))
        return rc;
    action[strcspn(action, "\n")] = '\0';
    if (is_at(to, action))
        stop(wanted, real);
    return rc;
}
