/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writing workers' output without blocking the loop (output.h).
 *
 * Stdout and stderr are sinks. A sink is a queue of chunks, the first of which is being written.
 * Pipes and terminals are written as libuv streams, files by libuv's threads. A sink that fails
 * (the reader has gone, the disk is full) drops all further output, because the loss of output must
 * not stop a training.
 *
 * Other writers have the same pipe: the leader writes what extensions send, its own member what the
 * workers of the node say, and the log its lines. A write of at most PIPE_BUF bytes is never torn,
 * so whole lines are written in pieces of that size. */
#include "agent/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HIGH_MARK      (1024 * 1024)
#define LOW_MARK       (256 * 1024)
#define LINE_MAX_BYTES 65536 /* a longer line is cut */

struct chunk {
    struct chunk *next;
    void (*written)(size_t bytes, void *arg);
    void *arg;
    size_t credit; /* bytes that the caller gave, without labels */
    size_t len, done;
    size_t piece; /* bytes that are being written to a stream */
    char data[];
};

struct sink {
    struct output *output;
    int fd;
    bool file; /* written with uv_fs_write */
    /* fd is another file now. What is being written still goes to the old file. */
    bool redirected;
    bool broken;
    bool writing; /* the head of the queue is under way */
    bool open;    /* the sink has a handle that is not closed yet */
    struct chunk *head, **tail;
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_pipe_t pipe;
        uv_tty_t tty;
    };
    union {
        uv_write_t write;
        uv_fs_t fs;
    };
};

/* The beginning of a line that has not ended yet. */
struct partial {
    struct partial *next;
    int rank, fd;
    size_t len, room;
    char *data;
};

/* What lines of a rank begin with. */
struct label {
    struct label *next;
    int rank;
    char name[];
};

struct output {
    uv_loop_t *loop;
    bool label;
    void (*drained)(void *arg);
    void *arg;
    struct sink sinks[2];
    size_t queued;
    bool above; /* the high mark has been passed and drained not yet called */
    struct partial *partials;
    struct label *labels;
    uv_idle_t idle;   /* runs while swallowed chunks wait to be reported */
    uv_timer_t limit; /* of output_destroy */
    bool ending;
    int handles; /* of idle and limit, to be closed */
    void (*done)(void *arg);
    void *done_arg;
};

static void pump(struct sink *sink);
static void finish_if_empty(struct output *output);

/* ---- one chunk after the other --------------------------------------------------------------- */

/* The head of the queue is out, or given up. */
static void retire(struct sink *sink)
{
    struct output *output = sink->output;
    struct chunk *chunk = sink->head;

    sink->head = chunk->next;
    if (sink->head == NULL)
        sink->tail = &sink->head;
    output->queued -= chunk->len;
    if (chunk->written != NULL && !output->ending)
        chunk->written(chunk->credit, chunk->arg);
    free(chunk);
    if (output->above && output->queued <= LOW_MARK) {
        output->above = false;
        if (output->drained != NULL && !output->ending)
            output->drained(output->arg);
    }
}

static void after_write(uv_write_t *request, int status)
{
    struct sink *sink = request->data;

    sink->writing = false;
    sink->broken |= status < 0;
    sink->head->done += sink->head->piece;
    if (sink->broken || sink->head->done == sink->head->len)
        retire(sink);
    if (sink->redirected) {
        sink->file = true;
        sink->broken = false;
    }
    pump(sink);
    finish_if_empty(sink->output);
}

static void after_file_write(uv_fs_t *request)
{
    struct sink *sink = request->data;
    ssize_t result = request->result;

    uv_fs_req_cleanup(request);
    sink->writing = false;
    if (result < 0 && result != UV_EINTR)
        sink->broken = true;
    else if (result > 0)
        sink->head->done += (size_t)result;
    if (sink->broken || sink->head->done == sink->head->len)
        retire(sink);
    pump(sink);
    finish_if_empty(sink->output);
}

/* Chunks that need no writing are finished from the loop as well, never from inside
 * output_write. */
static void on_idle(uv_idle_t *idle)
{
    struct output *output = idle->data;

    uv_idle_stop(idle);
    for (int i = 0; i < 2; i++) {
        struct sink *sink = &output->sinks[i];

        while (!sink->writing && sink->head != NULL && (sink->broken || sink->head->len == 0))
            retire(sink);
        pump(sink);
    }
    finish_if_empty(output);
}

/* Behind the last line that ends in these bytes; 0: none does. A progress bar ends with \r. */
static size_t end_of_lines(const char *data, size_t len)
{
    while (len > 0 && data[len - 1] != '\n' && data[len - 1] != '\r')
        len--;
    return len;
}

/* Whole lines that no other writer's come into, or the rest of one longer line. */
static size_t next_piece(const struct chunk *chunk)
{
    const char *data = chunk->data + chunk->done;
    size_t left = chunk->len - chunk->done, lines;
    const char *end;

    if (left <= PIPE_BUF)
        return left;
    lines = end_of_lines(data, PIPE_BUF);
    if (lines > 0)
        return lines;
    end = memchr(data, '\n', left);
    return end != NULL ? (size_t)(end - data) + 1 : left;
}

static void pump(struct sink *sink)
{
    struct chunk *chunk = sink->head;
    uv_buf_t buf;
    int rc;

    if (chunk == NULL || sink->writing)
        return;
    if (sink->broken || chunk->len == 0) {
        uv_idle_start(&sink->output->idle, on_idle);
        return;
    }
    buf = uv_buf_init(chunk->data + chunk->done, (unsigned)(chunk->len - chunk->done));
    if (sink->file) {
        sink->fs.data = sink;
        rc = uv_fs_write(sink->output->loop, &sink->fs, sink->fd, &buf, 1, -1, after_file_write);
    } else {
        buf.len = chunk->piece = next_piece(chunk);
        sink->write.data = sink;
        rc = uv_write(&sink->write, &sink->stream, &buf, 1, after_write);
    }
    sink->writing = rc == 0;
    if (rc != 0) {
        sink->broken = true;
        uv_idle_start(&sink->output->idle, on_idle);
    }
}

/* ---- what is queued -------------------------------------------------------------------------- */

static void queue(struct output *output, int fd, const char *data, size_t len, size_t credit,
                  void (*written)(size_t, void *), void *arg)
{
    struct sink *sink = &output->sinks[fd - 1];
    struct chunk *chunk = malloc(sizeof(*chunk) + len);

    if (chunk == NULL)
        return;
    *chunk = (struct chunk){.written = written, .arg = arg, .credit = credit, .len = len};
    if (len > 0)
        memcpy(chunk->data, data, len);
    *sink->tail = chunk;
    sink->tail = &chunk->next;
    output->queued += len;
    output->above |= output->queued > HIGH_MARK;
    pump(sink);
}

static struct partial *find_partial(struct output *output, int rank, int fd)
{
    struct partial *each;

    for (each = output->partials; each != NULL; each = each->next)
        if (each->rank == rank && each->fd == fd)
            break;
    return each;
}

/* Keep the beginning of a line. False when out of memory: then the text is written as it is. */
static bool keep_partial(struct output *output, int rank, int fd, const char *data, size_t len)
{
    struct partial *partial = find_partial(output, rank, fd);
    char *grown;

    if (partial == NULL) {
        partial = calloc(1, sizeof(*partial));
        if (partial == NULL)
            return false;
        *partial = (struct partial){.next = output->partials, .rank = rank, .fd = fd};
        output->partials = partial;
    }
    if (partial->len + len > partial->room) {
        grown = realloc(partial->data, partial->len + len);
        if (grown == NULL)
            return false;
        partial->data = grown;
        partial->room = partial->len + len;
    }
    memcpy(partial->data + partial->len, data, len);
    partial->len += len;
    return true;
}

static void drop_partial(struct output *output, struct partial *partial)
{
    struct partial **link = &output->partials;

    while (*link != partial)
        link = &(*link)->next;
    *link = partial->next;
    free(partial->data);
    free(partial);
}

static struct label **find_label(struct output *output, int rank)
{
    struct label **link = &output->labels;

    while (*link != NULL && (*link)->rank != rank)
        link = &(*link)->next;
    return link;
}

static void drop_label(struct output *output, int rank)
{
    struct label **link = find_label(output, rank), *label = *link;

    if (label == NULL)
        return;
    *link = label->next;
    free(label);
}

void output_label(struct output *output, int rank, const char *name)
{
    const struct label *known = *find_label(output, rank);
    struct label *label;

    if (!output->label || (known != NULL && strcmp(known->name, name) == 0))
        return;
    drop_label(output, rank);
    label = malloc(sizeof(*label) + strlen(name) + 1);
    if (label == NULL)
        return;
    *label = (struct label){.next = output->labels, .rank = rank};
    strcpy(label->name, name);
    output->labels = label;
}

static void put_label(struct output *output, FILE *out, int rank)
{
    const struct label *label = *find_label(output, rank);

    if (label != NULL)
        fprintf(out, "%s: ", label->name);
    else
        fprintf(out, "%d: ", rank);
}

/* Write one labelled line: the part that had been kept, then data, which may be empty. */
static void put_line(struct output *output, FILE *out, int rank, int fd, const char *data,
                     size_t len)
{
    struct partial *partial = find_partial(output, rank, fd);

    put_label(output, out, rank);
    if (partial != NULL) {
        fwrite(partial->data, 1, partial->len, out);
        drop_partial(output, partial);
    }
    fwrite(data, 1, len, out);
    fputc('\n', out);
}

static void put_lines(struct output *output, FILE *out, int rank, int fd, const char *data,
                      size_t len)
{
    const struct partial *partial;
    size_t kept;

    while (len > 0) {
        const char *end = memchr(data, '\n', len);
        size_t part = end != NULL ? (size_t)(end - data) : len;

        partial = find_partial(output, rank, fd);
        kept = partial != NULL ? partial->len : 0;
        if (kept + part > LINE_MAX_BYTES) {
            end = NULL;
            part = LINE_MAX_BYTES - kept;
            put_line(output, out, rank, fd, data, part);
        } else if (end != NULL || !keep_partial(output, rank, fd, data, part)) {
            put_line(output, out, rank, fd, data, part);
        }
        data += part + (end != NULL);
        len -= part + (end != NULL);
    }
}

/* The line that a worker has not ended, as it is. */
static void put_rest(struct output *output, FILE *out, int rank, int fd)
{
    struct partial *partial = find_partial(output, rank, fd);

    fwrite(partial->data, 1, partial->len, out);
    drop_partial(output, partial);
}

/* Without labels: what was kept, then the lines that end in data. The rest is kept. */
static void put_plain(struct output *output, FILE *out, int rank, int fd, const char *data,
                      size_t len)
{
    struct partial *partial = find_partial(output, rank, fd);
    size_t lines = end_of_lines(data, len), kept = partial != NULL && lines == 0 ? partial->len : 0;

    if (kept + len - lines > LINE_MAX_BYTES)
        lines = len;
    if (lines > 0 && partial != NULL)
        put_rest(output, out, rank, fd);
    fwrite(data, 1, lines, out);
    if (lines < len && !keep_partial(output, rank, fd, data + lines, len - lines))
        fwrite(data + lines, 1, len - lines, out);
}

bool output_write(struct output *output, int rank, int fd, const char *data, size_t len,
                  void (*written)(size_t, void *), void *arg)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (out == NULL) {
        queue(output, fd, data, len, len, written, arg);
        return output->queued <= HIGH_MARK;
    }
    if (output->label)
        put_lines(output, out, rank, fd, data, len);
    else
        put_plain(output, out, rank, fd, data, len);
    fclose(out);
    if (size > 0 || written != NULL)
        queue(output, fd, text, size, len, written, arg);
    free(text);
    return output->queued <= HIGH_MARK;
}

void output_end_rank(struct output *output, int rank)
{
    for (int fd = 1; fd <= 2; fd++) {
        char *text = NULL;
        size_t size = 0;
        FILE *out;

        if (find_partial(output, rank, fd) == NULL || (out = open_memstream(&text, &size)) == NULL)
            continue;
        if (output->label)
            put_line(output, out, rank, fd, "", 0);
        else
            put_rest(output, out, rank, fd);
        fclose(out);
        queue(output, fd, text, size, 0, NULL, NULL);
        free(text);
    }
    drop_label(output, rank);
}

void output_redirect(struct output *output)
{
    for (int i = 0; i < 2; i++) {
        struct sink *sink = &output->sinks[i];

        sink->redirected = true;
        sink->file = sink->file || !sink->writing;
        sink->broken = false;
        pump(sink);
    }
}

/* ---- opening --------------------------------------------------------------------------------- */

/* A descriptor of our own for a stream. O_NONBLOCK belongs to the open file, which other processes
 * share (srun's shell, our own log). So a pipe is opened again; a socket cannot be. */
static int own_descriptor(int fd)
{
    char path[32];
    int own;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return own >= 0 ? own : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

static void open_pipe(struct sink *sink)
{
    int own = own_descriptor(sink->fd);

    sink->open = uv_pipe_init(sink->output->loop, &sink->pipe, 0) == 0;
    if (own < 0 || !sink->open || uv_pipe_open(&sink->pipe, own) != 0) {
        sink->broken = true;
        if (own >= 0)
            close(own);
    }
}

static void open_sink(struct output *output, struct sink *sink, int fd)
{
    sink->output = output;
    sink->fd = fd;
    sink->tail = &sink->head;
    switch (uv_guess_handle(fd)) {
    case UV_NAMED_PIPE:
    case UV_TCP:
        open_pipe(sink);
        break;
    case UV_TTY:
        sink->open = uv_tty_init(output->loop, &sink->tty, fd, 0) == 0;
        sink->file = !sink->open;
        break;
    default: /* files, devices, and closed descriptors: writing reports the error */
        sink->file = true;
        break;
    }
    if (sink->open)
        sink->handle.data = output;
}

struct output *output_create(uv_loop_t *loop, bool label, void (*drained)(void *arg), void *arg)
{
    struct output *output = calloc(1, sizeof(*output));

    if (output == NULL)
        return NULL;
    output->loop = loop;
    output->label = label;
    output->drained = drained;
    output->arg = arg;
    uv_idle_init(loop, &output->idle);
    uv_timer_init(loop, &output->limit);
    output->idle.data = output->limit.data = output;
    output->handles = 2;
    for (int fd = 1; fd <= 2; fd++)
        open_sink(output, &output->sinks[fd - 1], fd);
    for (int i = 0; i < 2; i++) {
        output->handles += output->sinks[i].open;
        if (output->sinks[i].open)
            uv_unref(&output->sinks[i].handle);
    }
    uv_unref((uv_handle_t *)&output->limit);
    return output;
}

/* ---- end ------------------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *handle)
{
    struct output *output = handle->data;

    if (--output->handles > 0)
        return;
    for (int i = 0; i < 2; i++)
        while (output->sinks[i].head != NULL)
            retire(&output->sinks[i]);
    while (output->partials != NULL)
        drop_partial(output, output->partials);
    while (output->labels != NULL)
        drop_label(output, output->labels->rank);
    output->done(output->done_arg);
    free(output);
}

/* Close when nothing is left to write, or no time is left. A write to a file cannot be cancelled:
 * its end is waited for. */
static void finish_if_empty(struct output *output)
{
    if (!output->ending || uv_is_closing((uv_handle_t *)&output->idle))
        return;
    for (int i = 0; i < 2; i++) {
        const struct sink *sink = &output->sinks[i];

        if ((sink->head != NULL && !sink->broken) || (sink->file && sink->writing))
            return;
    }
    for (int i = 0; i < 2; i++)
        if (output->sinks[i].open)
            uv_close(&output->sinks[i].handle, on_closed);
    uv_close((uv_handle_t *)&output->idle, on_closed);
    uv_close((uv_handle_t *)&output->limit, on_closed);
}

static void on_limit(uv_timer_t *timer)
{
    struct output *output = timer->data;

    output->sinks[0].broken = output->sinks[1].broken = true;
    finish_if_empty(output);
}

void output_destroy(struct output *output, int timeout_ms, void (*done)(void *arg), void *arg)
{
    for (struct partial *first; (first = output->partials) != NULL;) {
        output_end_rank(output, first->rank);
        if (output->partials == first) /* out of memory */
            drop_partial(output, first);
    }
    output->ending = true;
    output->done = done;
    output->done_arg = arg;
    uv_ref((uv_handle_t *)&output->limit);
    uv_timer_start(&output->limit, on_limit, (uint64_t)timeout_ms, 0);
    /* done is called from the loop, also when all is written already. */
    uv_idle_start(&output->idle, on_idle);
}
