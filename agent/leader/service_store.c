/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is done with a service's directory, in a thread (service_store.h). */
#include "agent/leader/service_store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/files.h"
#include "common/program.h"
#include "lib/text.h"

#define PROGRAM_MS  60000 /* sbatch retries while slurmctld restarts */
#define PROGRAM_MAX ((size_t)256)

static void task_free(struct service_task *task)
{
    free(task->text);
    strings_free(task->argv);
    free(task->record);
    free(task->table);
    service_found_clear(&task->found);
    free(task);
}

/* NULL with rc 0: there is no such file. */
static char *read_file(struct service_task *task, const char *name)
{
    char path[PATH_MAX + 64], *text;

    snprintf(path, sizeof(path), "%s/%s", task->dir, name);
    text = file_read(path, SERVICE_FILE_MAX, NULL, &task->err);
    if (text == NULL && errno != ENOENT)
        task->rc = -1;
    return text;
}

static void claim(struct service_task *task)
{
    task->claim = service_dir_claim(task->dir, task->job, &task->gone, task->now, &task->claimed,
                                    &task->err);
    task->rc = task->claim == SERVICE_FAILED ? -1 : 0;
    if (task->claim != SERVICE_CLAIMED)
        return;
    task->record = read_file(task, SERVICE_RECORD_FILE);
    if (task->rc == 0)
        task->table = read_file(task, SERVICE_TABLE_FILE);
}

static void write_file(struct service_task *task)
{
    char path[PATH_MAX + 64];

    snprintf(path, sizeof(path), "%s/%s", task->dir, task->name);
    task->rc = task->leads ? service_dir_check(task->dir, task->term, &task->err) : 0;
    if (task->rc != 0) {
        task->claim = SERVICE_OTHERS;
        return;
    }
    if (task->text != NULL)
        task->rc = file_replace(path, task->text, strlen(task->text), 0600, &task->err);
    else if (unlink(path) != 0 && errno != ENOENT)
        task->rc = error_set(&task->err, "%s: %s", error_path(path).text, strerror(errno));
}

static void work(uv_work_t *request)
{
    struct service_task *task = request->data;

    switch (task->kind) {
    case SERVICE_TASK_CLAIM:
        claim(task);
        break;
    case SERVICE_TASK_WRITE:
        write_file(task);
        break;
    case SERVICE_TASK_SCAN:
        task->rc = service_scan(task->repository, task->copies, &task->found, &task->err);
        break;
    case SERVICE_TASK_LOOK:
        service_dir_look(task->dir, task->name, &task->seen);
        break;
    case SERVICE_TASK_PROGRAM:
        task->rc = program_output(task->argv, PROGRAM_MS, PROGRAM_MAX, &task->text, &task->err);
        break;
    }
}

static void after(uv_work_t *request, int status)
{
    struct service_task *task = request->data;

    if (status != 0)
        task->rc = error_set(&task->err, "%s", uv_strerror(status));
    if (task->owner != NULL)
        task->done(task->owner, task);
    task_free(task);
}

int service_task_begin(uv_loop_t *loop, struct service_task *task)
{
    task->work.data = task;
    if (uv_queue_work(loop, &task->work, work, after) == 0)
        return 0;
    task_free(task);
    return -1;
}
