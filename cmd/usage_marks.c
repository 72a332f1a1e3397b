/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which running jobs are elastic (usage_marks.h). A call of libslurm cannot be interrupted, and the
 * accounting can be shown without its answer: so a thread calls. */
#include "cmd/usage_marks.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "cmd/terminal_text.h"

#define ANSWER_S 10

static struct {
    pthread_mutex_t lock;
    pthread_cond_t answer;
    uid_t uid;
    bool answered;
    int rc, count;
    struct job_info *jobs;
    struct error err;
} look = {.lock = PTHREAD_MUTEX_INITIALIZER, .answer = PTHREAD_COND_INITIALIZER};

static void *ask(void *arg)
{
    struct job_info *jobs = NULL;
    struct error err = {""};
    int count = 0, rc = slurm_client_jobs(look.uid, &jobs, &count, &err);

    (void)arg;
    pthread_mutex_lock(&look.lock);
    look.jobs = jobs;
    look.count = count;
    look.rc = rc;
    look.err = err;
    look.answered = true;
    pthread_cond_signal(&look.answer);
    pthread_mutex_unlock(&look.lock);
    return NULL;
}

static int wait_for_answer(struct usage_marks *marks, struct error *err)
{
    struct timespec end;
    int rc = 0;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += ANSWER_S;
    pthread_mutex_lock(&look.lock);
    while (!look.answered && rc == 0)
        rc = pthread_cond_timedwait(&look.answer, &look.lock, &end);
    if (!look.answered)
        rc = error_set(err, "Slurm did not answer within %d s", ANSWER_S);
    else if (look.rc != 0)
        rc = error_set(err, "%s", look.err.text);
    else {
        marks->jobs = look.jobs;
        marks->job_count = look.count;
        rc = 0;
    }
    pthread_mutex_unlock(&look.lock);
    return rc;
}

static int by_job(const void *a, const void *b)
{
    uint32_t x = ((const struct usage_mark *)a)->job, y = ((const struct usage_mark *)b)->job;

    return x < y ? -1 : x > y;
}

int usage_marks_ask(uid_t uid, struct usage_marks *marks, struct error *err)
{
    pthread_t thread;

    *marks = (struct usage_marks){.count = 0};
    look.uid = uid;
    if (pthread_create(&thread, NULL, ask, NULL) != 0)
        return error_set(err, "cannot start a thread");
    pthread_detach(thread);
    if (wait_for_answer(marks, err) != 0)
        return -1;
    marks->list = text_need(calloc((size_t)marks->job_count + 1, sizeof(*marks->list)));
    for (int i = 0; i < marks->job_count; i++)
        if (marks->jobs[i].state != JOB_KIND_ENDED)
            marks->list[marks->count++] = (struct usage_mark){
                marks->jobs[i].id, marks->jobs[i].admin_comment, marks->jobs[i].comment};
    qsort(marks->list, marks->count, sizeof(*marks->list), by_job);
    return 0;
}

void usage_marks_clear(struct usage_marks *marks)
{
    job_info_free_list(marks->jobs, marks->job_count);
    free(marks->list);
    *marks = (struct usage_marks){.count = 0};
}
