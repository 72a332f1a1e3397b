/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One question to a socket of haproxy (talk.h). */
#include "router/talk.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct talk {
    uv_pipe_t pipe;
    uv_timer_t timer;
    uv_connect_t connect;
    uv_write_t write;
    uv_shutdown_t shutdown;
    int open; /* handles */
    bool over;
    char *command, *answer;
    size_t length, room;
    talk_done *done;
    void *arg;
};

static void on_handle_closed(uv_handle_t *handle)
{
    struct talk *talk = handle->data;

    if (--talk->open > 0)
        return;
    free(talk->command);
    free(talk->answer);
    free(talk);
}

static void finish(struct talk *talk, const char *why)
{
    if (talk->over)
        return;
    talk->over = true;
    if (talk->done != NULL)
        talk->done(why == NULL ? talk->answer : NULL, why, talk->arg);
    uv_close((uv_handle_t *)&talk->pipe, on_handle_closed);
    uv_close((uv_handle_t *)&talk->timer, on_handle_closed);
}

void talk_cancel(struct talk *talk)
{
    talk->done = NULL;
    finish(talk, "cancelled");
}

static void on_timer(uv_timer_t *timer)
{
    finish(timer->data, "no answer in time");
}

/* One byte more than libuv may fill, for the NUL. */
static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct talk *talk = handle->data;

    if (talk->room - talk->length < suggested + 1 && talk->room < TALK_ANSWER_MAX) {
        size_t room = 2 * talk->room + suggested + 1;
        char *answer = realloc(talk->answer, room);

        if (answer != NULL) {
            talk->answer = answer;
            talk->room = room;
        }
    }
    *buffer = uv_buf_init(
        talk->answer + talk->length,
        (unsigned int)(talk->room > talk->length + 1 ? talk->room - talk->length - 1 : 0));
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    struct talk *talk = stream->data;

    (void)buffer;
    if (count > 0) {
        talk->length += (size_t)count;
        talk->answer[talk->length] = '\0';
        if (memchr(talk->answer + talk->length - count, '\0', (size_t)count) != NULL)
            finish(talk, "the answer has a byte that is no text");
    } else if (count == UV_ENOBUFS) {
        finish(talk, "the answer is too long");
    } else if (count == UV_EOF) {
        finish(talk, NULL);
    } else if (count < 0) {
        finish(talk, uv_strerror((int)count));
    }
}

static void on_shutdown(uv_shutdown_t *request, int status)
{
    (void)request;
    (void)status; /* haproxy may have answered and gone already */
}

static void on_written(uv_write_t *request, int status)
{
    struct talk *talk = request->data;

    if (!talk->over && status != 0)
        finish(talk, uv_strerror(status));
}

static void on_connected(uv_connect_t *request, int status)
{
    struct talk *talk = request->data;
    uv_buf_t buffer = uv_buf_init(talk->command, (unsigned int)strlen(talk->command));

    if (talk->over)
        return;
    if (status == 0)
        status = uv_write(&talk->write, (uv_stream_t *)&talk->pipe, &buffer, 1, on_written);
    if (status == 0)
        status = uv_shutdown(&talk->shutdown, (uv_stream_t *)&talk->pipe, on_shutdown);
    if (status == 0)
        status = uv_read_start((uv_stream_t *)&talk->pipe, on_room, on_read);
    if (status != 0)
        finish(talk, uv_strerror(status));
}

struct talk *talk_begin(uv_loop_t *loop, const char *socket, const char *command, int timeout_ms,
                        talk_done *done, void *arg)
{
    struct talk *talk = calloc(1, sizeof(*talk));

    if (talk == NULL)
        return NULL;
    talk->command = strdup(command);
    talk->answer = calloc(1, 1);
    talk->room = 1;
    if (talk->command == NULL || talk->answer == NULL) {
        free(talk->command);
        free(talk->answer);
        free(talk);
        return NULL;
    }
    talk->done = done;
    talk->arg = arg;
    talk->open = 2;
    uv_pipe_init(loop, &talk->pipe, 0);
    uv_timer_init(loop, &talk->timer);
    talk->pipe.data = talk->timer.data = talk->connect.data = talk->write.data = talk;
    uv_timer_start(&talk->timer, on_timer, (uint64_t)timeout_ms, 0);
    uv_pipe_connect(&talk->connect, &talk->pipe, socket, on_connected);
    return talk;
}
