/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How the subcommands of selastic print. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/shape.h"
#include "cmd/terminal_text.h"
#include "common/files.h"
#include "common/log.h"
#include "common/release_own.h"

#define WIDTH_DEFAULT 80
#define WIDTH_MAX     1000

int terminal_width(void)
{
    struct winsize window;
    if (!isatty(STDOUT_FILENO))
        return 0;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) < 0 || window.ws_col < 1)
        return WIDTH_DEFAULT;
    return window.ws_col < WIDTH_MAX ? window.ws_col : WIDTH_MAX;
}

void print_text(char *text)
{
    fputs(text, stdout);
    free(text);
}

void print_json(json_object *object, bool one_line)
{
    int flags = JSON_C_TO_STRING_NOSLASHESCAPE |
                (one_line ? JSON_C_TO_STRING_SPACED : JSON_C_TO_STRING_PRETTY);
    char *json = shape_serialize(object, flags);
    puts(json);
    free(json);
    json_object_put(object);
}

enum exit_status failed(const struct error *err)
{
    /* The text may quote a leader, or a name that another user has chosen. */
    char *clean = text_clean(err->text, 0);
    log_error("%s", clean);
    free(clean);
    return STATUS_FAILED;
}

json_object *request_new(const char *type)
{
    json_object *request = text_need(json_object_new_object());
    json_object_object_add(request, "t", json_object_new_string(type));
    release_write(request, release_own());
    return request;
}

static mode_t own_umask(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return mask;
}

int write_text(const char *path, char *text, struct error *err)
{
    if (strcmp(path, "-") == 0) {
        print_text(text);
        return fflush(stdout) == 0 ? 0 : error_set(err, "standard output: %s", strerror(errno));
    }
    int rc = file_replace(path, text, strlen(text), 0666 & ~own_umask(), err);
    free(text);
    return rc;
}
