/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A thread that writes files (scribe.h). */
#include "agent/leader/scribe.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/files.h"

#define WAITING_MAX 4096 /* more texts than a job has for hours: the file system hangs */

struct text {
    TAILQ_ENTRY(text) entry;
    uv_work_t work;
    struct scribe *scribe; /* NULL: it is gone */
    char path[PATH_MAX];
    char *text;
    bool appends;
    int rc;
    struct error err;
};

struct scribe {
    uv_loop_t *loop;
    const char *directory;
    void (*wrote)(int rc, const struct error *err, void *arg);
    void *arg;
    TAILQ_HEAD(, text) waiting;
    int count;
    struct text *under_way; /* NULL: nothing is being written */
};

static void text_free(struct text *text)
{
    free(text->text);
    free(text);
}

static void work(uv_work_t *request)
{
    struct text *text = request->data;

    text->rc = text->appends
                   ? file_append(text->path, text->text, &text->err)
                   : file_replace(text->path, text->text, strlen(text->text), 0600, &text->err);
}

static void begin_next(struct scribe *scribe);

static void written(uv_work_t *request, int status)
{
    struct text *text = request->data;
    struct scribe *scribe = text->scribe;

    if (status != 0)
        text->rc = error_set(&text->err, "%s", uv_strerror(status));
    if (scribe != NULL) {
        scribe->under_way = NULL;
        begin_next(scribe);
        scribe->wrote(text->rc, &text->err, scribe->arg);
    }
    text_free(text);
}

static void begin_next(struct scribe *scribe)
{
    struct text *text = TAILQ_FIRST(&scribe->waiting);

    if (text == NULL || scribe->under_way != NULL)
        return;
    TAILQ_REMOVE(&scribe->waiting, text, entry);
    scribe->count--;
    if (uv_queue_work(scribe->loop, &text->work, work, written) == 0)
        scribe->under_way = text;
    else
        text_free(text);
}

/* The one that waits for the same file. NULL: there is none. */
static struct text *waiting_for(const struct scribe *scribe, const struct text *like)
{
    struct text *text;

    TAILQ_FOREACH (text, &scribe->waiting, entry)
        if (!text->appends && strcmp(text->path, like->path) == 0)
            return text;
    return NULL;
}

static void add(struct scribe *scribe, struct text *text)
{
    struct text *old = text->appends ? NULL : waiting_for(scribe, text);

    if (old != NULL) {
        char *newer = text->text;

        text->text = old->text;
        old->text = newer;
        text_free(text);
        return;
    }
    TAILQ_INSERT_TAIL(&scribe->waiting, text, entry);
    scribe->count++;
    begin_next(scribe);
}

static void write_text(struct scribe *scribe, const char *name, char *content, bool appends)
{
    struct text *text = content != NULL && scribe->count < WAITING_MAX ? calloc(1, sizeof(*text))
                                                                       : NULL;
    struct error err;

    if (text == NULL) {
        error_set(&err,
                  content != NULL && scribe->count >= WAITING_MAX
                      ? "%s/%s: the file system has not answered for long"
                      : "%s/%s: out of memory",
                  scribe->directory, name);
        free(content);
        scribe->wrote(-1, &err, scribe->arg);
        return;
    }
    text->work.data = text;
    text->scribe = scribe;
    text->text = content;
    text->appends = appends;
    snprintf(text->path, sizeof(text->path), "%s/%s", scribe->directory, name);
    add(scribe, text);
}

void scribe_replace(struct scribe *scribe, const char *name, char *text)
{
    write_text(scribe, name, text, false);
}

void scribe_append(struct scribe *scribe, const char *name, char *text)
{
    write_text(scribe, name, text, true);
}

bool scribe_busy(const struct scribe *scribe)
{
    return scribe->under_way != NULL;
}

struct scribe *scribe_create(uv_loop_t *loop, const char *directory,
                             void (*wrote)(int rc, const struct error *err, void *arg), void *arg)
{
    struct scribe *scribe = calloc(1, sizeof(*scribe));

    if (scribe == NULL)
        return NULL;
    scribe->loop = loop;
    scribe->directory = directory;
    scribe->wrote = wrote;
    scribe->arg = arg;
    TAILQ_INIT(&scribe->waiting);
    return scribe;
}

void scribe_destroy(struct scribe *scribe)
{
    struct text *text;

    if (scribe == NULL)
        return;
    while ((text = TAILQ_FIRST(&scribe->waiting)) != NULL) {
        TAILQ_REMOVE(&scribe->waiting, text, entry);
        text_free(text);
    }
    if (scribe->under_way != NULL)
        scribe->under_way->scribe = NULL;
    free(scribe);
}
