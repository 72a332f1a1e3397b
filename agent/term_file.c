/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Making the files of a term (term_file.h).
 *
 * link(2) is atomic on network file systems, too. No process ever looks whether a file is there: a
 * network file system remembers for a while that a name was missing. */
#include "agent/term_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "lib/error.h"

struct term_file {
    uv_work_t req;
    enum term_file_what what;
    char *dir, *path, *seal, *own;
    char text[128];
    enum term_file_result result;
    struct error err;
    void (*done)(enum term_file_result result, const char *why, void *arg); /* NULL: forgotten */
    void *arg;
};

/* The answer to a link() that the server has carried out may have been lost: then the second try
 * has found our own file. */
static bool is_linked(const char *own)
{
    struct stat st;

    return lstat(own, &st) == 0 && st.st_nlink == 2;
}

/* The text in the file only helps people: a full disk must not keep an agent from leading. */
static int write_own(struct term_file *claim)
{
    int fd = open(claim->own, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return -1;
    if (write(fd, claim->text, strlen(claim->text)) < 0)
        log_debug("%s: %s", claim->own, strerror(errno));
    close(fd);
    return 0;
}

static enum term_file_result make(struct term_file *claim, const char *path)
{
    enum term_file_result result = TERM_FILE_FAILED;

    if ((mkdir(claim->dir, 0700) != 0 && errno != EEXIST) ||
        (unlink(claim->own) != 0 && errno != ENOENT) || write_own(claim) != 0) {
        error_set(&claim->err, "%s: %s", claim->own, strerror(errno));
        return TERM_FILE_FAILED;
    }
    if (link(claim->own, path) == 0 || is_linked(claim->own)) {
        result = TERM_FILE_MADE;
    } else {
        if (errno == EEXIST)
            result = TERM_FILE_LOST;
        error_set(&claim->err, "%s: %s", path, strerror(errno));
    }
    unlink(claim->own);
    return result;
}

static void work(uv_work_t *req)
{
    struct term_file *claim = req->data;

    claim->result = TERM_FILE_MADE;
    if (claim->what != TERM_FILE_SEAL)
        claim->result = make(claim, claim->path);
    if (claim->result == TERM_FILE_MADE && claim->what != TERM_FILE_CLAIM)
        claim->result = make(claim, claim->seal);
}

static void destroy(struct term_file *claim)
{
    free(claim->dir);
    free(claim->path);
    free(claim->seal);
    free(claim->own);
    free(claim);
}

static void done(uv_work_t *req, int status)
{
    struct term_file *claim = req->data;

    (void)status;
    if (claim->done != NULL)
        claim->done(claim->result, claim->err.text, claim->arg);
    destroy(claim);
}

struct term_file *term_file_begin(uv_loop_t *loop, const struct term_file_options *options,
                                  void (*handler)(enum term_file_result result, const char *why,
                                                  void *arg),
                                  void *arg)
{
    struct term_file *claim = calloc(1, sizeof(*claim));

    if (claim == NULL)
        return NULL;
    claim->req.data = claim;
    claim->what = options->what;
    claim->done = handler;
    claim->arg = arg;
    snprintf(claim->text, sizeof(claim->text), "%.100s %d\n", options->node, (int)getpid());
    if (asprintf(&claim->dir, "%s/leader", options->state_dir) < 0)
        claim->dir = NULL;
    if (claim->dir == NULL || asprintf(&claim->path, "%s/%u.%u.%s.%d", claim->dir, options->job,
                                       options->restarts, options->step, options->term) < 0)
        claim->path = NULL;
    if (claim->path == NULL || asprintf(&claim->seal, "%s.led", claim->path) < 0)
        claim->seal = NULL;
    if (claim->seal == NULL ||
        asprintf(&claim->own, "%s/.%s.%d", claim->dir, options->node, (int)getpid()) < 0)
        claim->own = NULL;
    if (claim->own != NULL && uv_queue_work(loop, &claim->req, work, done) == 0)
        return claim;
    destroy(claim);
    return NULL;
}

void term_file_forget(struct term_file *claim)
{
    if (claim != NULL)
        claim->done = NULL;
}
