/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PMIx_Log: lines on stdout or stderr, which the agent writes as if the worker had written them.
 *
 * There is no other channel. */
#include <stdlib.h>
#include <string.h>

#include "lib/json_get.h"
#include "lib/pieces.h"
#include "pmix/host.h"

#define LOG_BYTES_MAX ((size_t)1 << 20) /* bytes in one call */

static int fd_of(const pmix_info_t *info)
{
    if (PMIX_CHECK_KEY(info, PMIX_LOG_STDOUT))
        return 1;
    return PMIX_CHECK_KEY(info, PMIX_LOG_STDERR) ? 2 : -1;
}

/* Whole lines. */
static int add_line(json_object *lines, int fd, const char *text)
{
    json_object *line = json_object_new_object();
    size_t len = strlen(text);
    char *copy = malloc(len + 1);
    int rc = -1;

    if (copy != NULL) {
        memcpy(copy, text, len);
        copy[len] = '\n';
        rc = piece_set(line, copy, len > 0 && text[len - 1] == '\n' ? len : len + 1);
    }
    free(copy);
    json_object_object_add(line, "fd", json_object_new_int(fd));
    json_object_array_add(lines, line);
    return rc;
}

static bool wants_one(const struct call *call)
{
    for (size_t i = 0; i < call->directive_count; i++)
        if (PMIX_CHECK_KEY(&call->directives[i], PMIX_LOG_ONCE))
            return PMIX_INFO_TRUE(&call->directives[i]);
    return false;
}

/* Collect all lines that can be written. *left: a line cannot; *bytes: the size of all that can. */
static pmix_status_t collect(const struct call *call, json_object *lines, bool *left, size_t *bytes)
{
    bool one = wants_one(call);

    *left = false;
    *bytes = 0;
    for (size_t i = 0; i < call->info_count; i++) {
        const pmix_info_t *info = &call->info[i];
        int fd = fd_of(info);

        if (fd < 0) {
            *left = !one;
            continue;
        }
        if (info->value.type != PMIX_STRING || info->value.data.string == NULL)
            return PMIX_ERR_BAD_PARAM;
        *bytes += strlen(info->value.data.string);
        if (*bytes > LOG_BYTES_MAX)
            return PMIX_ERR_OUT_OF_RESOURCE;
        if (add_line(lines, fd, info->value.data.string) != 0)
            return PMIX_ERR_NOMEM;
        if (one)
            break;
    }
    return json_object_array_length(lines) > 0 ? PMIX_SUCCESS : PMIX_ERR_NOT_SUPPORTED;
}

static pmix_status_t status_of(json_object *answer)
{
    const char *error = json_get_string(answer, "error");

    if (error == NULL)
        return PMIX_SUCCESS;
    return strcmp(error, "busy") == 0 ? PMIX_ERR_RESOURCE_BUSY : PMIX_ERROR;
}

static void on_logged(struct call *call, json_object *answer)
{
    asked_end(call);
    call_answer(call, status_of(answer));
}

static void on_logged_in_part(struct call *call, json_object *answer)
{
    pmix_status_t status = status_of(answer);

    asked_end(call);
    call_answer(call, status == PMIX_SUCCESS ? PMIX_ERR_PARTIAL_SUCCESS : status);
}

void log_lines(struct call *call)
{
    struct space *space = host_space_by_name(call->source.nspace);
    json_object *lines = json_object_new_array(), *msg;
    pmix_status_t status = PMIX_ERR_NOT_SUPPORTED;
    bool left = false;
    size_t bytes = 0;

    if (space != NULL)
        status = collect(call, lines, &left, &bytes);
    if (status == PMIX_SUCCESS && !asked_begin(call, space, bytes))
        status = PMIX_ERR_RESOURCE_BUSY;
    if (status != PMIX_SUCCESS) {
        json_object_put(lines);
        call_answer(call, status);
        return;
    }
    msg = json_object_new_object();
    json_object_object_add(msg, "rank", json_object_new_int64(call->source.rank));
    json_object_object_add(msg, "lines", lines);
    exchange_ask(call, space, "log", msg, 0, left ? on_logged_in_part : on_logged);
}
