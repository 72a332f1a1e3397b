/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which running jobs are elastic (usage_marks.h). A call of libslurm cannot be interrupted, and the
 * accounting can be shown without its answer: so a thread calls. */
#include "cmd/usage_marks.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd/query.h"
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
    /* One that has ended may run in the accounting for a moment longer. */
    for (int i = 0; i < marks->job_count; i++)
        marks->list[marks->count++] = (struct usage_mark){
            marks->jobs[i].id, marks->jobs[i].admin_comment, marks->jobs[i].comment};
    qsort(marks->list, marks->count, sizeof(*marks->list), by_job);
    return 0;
}

static bool has_record(const char *records, const char *separator, uint32_t job)
{
    char first[128];

    snprintf(first, sizeof(first), "%u%s", job, separator);
    for (const char *at = records; (at = strstr(at, first)) != NULL; at++)
        if (at == records || at[-1] == '\n')
            return true;
    return false;
}

/* How long it has had nodes; < 0: it has had none. */
static long long seconds_of(const struct job_info *job, time_t now)
{
    bool ended = job->state == JOB_KIND_ENDED;

    if (job->state == JOB_KIND_UNKNOWN || job->state == JOB_KIND_PENDING || job->num_nodes <= 0 ||
        job->start <= 0 || job->start > now)
        return -1;
    return (long long)(ended || job->state == JOB_KIND_ENDING ? job->end : now) - job->start;
}

static void write_record(FILE *out, const char *separator, const struct job_info *job,
                         long long seconds)
{
    char *user = user_name(job->uid), start[24], elapsed[24], nodes[16], tres[32];
    const char *fields[USAGE_FIELD_COUNT] = {
        user,  job->account, job->partition,     job->base_state, start,    elapsed,
        nodes, tres,         job->admin_comment, job->comment,    job->name};

    snprintf(start, sizeof(start), "%lld", (long long)job->start);
    snprintf(elapsed, sizeof(elapsed), "%lld", seconds);
    snprintf(nodes, sizeof(nodes), "%d", job->num_nodes);
    snprintf(tres, sizeof(tres), "cpu=%d", job->num_nodes * job->cpus_per_node);
    fprintf(out, "%u", job->id);
    for (int i = 0; i + 1 < USAGE_FIELD_COUNT; i++)
        fprintf(out, "%s%s", separator, fields[i] != NULL ? fields[i] : "");
    fputc('\n', out);
    free(user);
}

char *usage_marks_add(const char *records, const char *separator, const struct usage_marks *marks,
                      const char *account, bool alive)
{
    time_t now = time(NULL);
    char *text = NULL;
    size_t size;
    FILE *out = text_need(open_memstream(&text, &size));

    fputs(records, out);
    for (int i = 0; i < marks->job_count; i++) {
        const struct job_info *job = &marks->jobs[i];
        long long seconds = seconds_of(job, now);

        if (seconds < 0 || (alive && job->state == JOB_KIND_ENDED) ||
            (account != NULL && (job->account == NULL || strcmp(job->account, account) != 0)) ||
            has_record(records, separator, job->id))
            continue;
        write_record(out, separator, job, seconds);
    }
    fclose(out);
    return text_need(text);
}

void usage_marks_clear(struct usage_marks *marks)
{
    job_info_free_list(marks->jobs, marks->job_count);
    free(marks->list);
    *marks = (struct usage_marks){.count = 0};
}
