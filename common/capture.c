/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program that is run for what it prints (capture.h). */
#include "common/capture.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/files.h"
#include "common/log.h"

struct look {
    struct look_options options;
    uv_process_t process;
    uv_pipe_t out;
    uv_timer_t limit;
    int handles; /* open ones */
    char *text;
    size_t size;
    int status; /* -1: it has been ended */
    bool cancelled;
};

static void on_closed(uv_handle_t *handle)
{
    struct look *look = handle->data;
    char *text = look->text;

    if (--look->handles > 0)
        return;
    if (look->cancelled)
        free(text);
    else
        look->options.done(text, look->size, look->status, look->options.arg);
    free(look);
}

static void close_once(uv_handle_t *handle)
{
    if (!uv_is_closing(handle))
        uv_close(handle, on_closed);
}

/* Both have to end: what it has left behind may hold the other end of the pipe. */
static void end_part(struct look *look, uv_handle_t *part)
{
    close_once(part);
    if (uv_is_closing((uv_handle_t *)&look->process) && uv_is_closing((uv_handle_t *)&look->out))
        close_once((uv_handle_t *)&look->limit);
}

static void on_exit_of_program(uv_process_t *process, int64_t code, int signal)
{
    struct look *look = process->data;

    if (look->status >= 0)
        look->status = signal != 0 ? -1 : (int)code;
    end_part(look, (uv_handle_t *)process);
}

static void give_up(struct look *look)
{
    look->status = -1;
    if (!uv_is_closing((uv_handle_t *)&look->process))
        uv_process_kill(&look->process, SIGKILL);
}

static void on_limit(uv_timer_t *timer)
{
    struct look *look = timer->data;

    log_error("a look has taken more than %d s, and is ended", look->options.limit_ms / 1000);
    give_up(look);
    end_part(look, (uv_handle_t *)&look->out);
}

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *buffer)
{
    struct look *look = handle->data;
    char *text = look->size + wanted <= look->options.most
                     ? realloc(look->text, look->size + wanted + 1)
                     : NULL;

    if (text != NULL)
        look->text = text;
    *buffer = text != NULL ? uv_buf_init(text + look->size, (unsigned)wanted)
                           : uv_buf_init(NULL, 0);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    struct look *look = stream->data;

    (void)buffer;
    if (count > 0) {
        look->size += (size_t)count;
        look->text[look->size] = '\0';
    } else if (count < 0) {
        if (count == UV_ENOBUFS) {
            log_error("a look has printed more than %zu bytes", look->options.most);
            give_up(look);
        }
        end_part(look, (uv_handle_t *)stream);
    }
}

/* A file with that text, from its beginning; -1: it cannot be made. */
static int input_of(const char *text)
{
    int fd = memfd_create("input", MFD_CLOEXEC);

    if (fd >= 0 && file_write_all(fd, text, strlen(text)) == 0 && lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* input: what it reads; -1: nothing. */
static int spawn(uv_loop_t *loop, struct look *look, int input)
{
    uv_stdio_container_t stdio[3] = {
        {.flags = UV_IGNORE},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&look->out},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
    };
    uv_process_options_t options = {.exit_cb = on_exit_of_program,
                                    .file = look->options.program,
                                    .args = (char **)(uintptr_t)look->options.args,
                                    .stdio_count = 3,
                                    .stdio = stdio};

    if (input >= 0)
        stdio[0] = (uv_stdio_container_t){.flags = UV_INHERIT_FD, .data.fd = input};
    return uv_spawn(loop, &look->process, &options);
}

struct look *look_begin(uv_loop_t *loop, const struct look_options *options)
{
    struct look *look = calloc(1, sizeof(*look));
    int rc, input = look != NULL && options->input != NULL ? input_of(options->input) : -1;

    if (look != NULL && options->input != NULL && input < 0) {
        log_error("%s: %s", options->program, strerror(errno));
        free(look);
        look = NULL;
    }
    if (look == NULL)
        return NULL;
    look->options = *options;
    uv_pipe_init(loop, &look->out, 0);
    uv_timer_init(loop, &look->limit);
    look->process.data = look->out.data = look->limit.data = look;
    look->handles = 3;
    rc = spawn(loop, look, input);
    if (input >= 0)
        close(input);
    if (rc != 0) {
        log_error("%s: %s", options->program, uv_strerror(rc));
        look->cancelled = true;
        close_once((uv_handle_t *)&look->process);
        end_part(look, (uv_handle_t *)&look->out);
        return NULL;
    }
    look->options.program = NULL; /* they are the caller's */
    look->options.args = NULL;
    look->options.input = NULL;
    uv_timer_start(&look->limit, on_limit, (uint64_t)options->limit_ms, 0);
    uv_read_start((uv_stream_t *)&look->out, on_room, on_read);
    return look;
}

void look_cancel(struct look *look)
{
    look->cancelled = true;
    give_up(look);
    end_part(look, (uv_handle_t *)&look->out);
}
