/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs of Slurm: what they are, and requests to change or end them (slurm_client.h). */
#include "common/slurm_private.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/admission.h"
#include "lib/names.h"
#include "lib/text.h"

/* A job that is just changing its state cannot be cancelled for a moment. */
#define CANCEL_TRIES 5

/* ---- jobs ------------------------------------------------------------------------------------ */

static enum job_state_kind state_kind(uint32_t state)
{
    if (state & JOB_COMPLETING)
        return JOB_KIND_ENDING;
    switch (state & JOB_STATE_BASE) {
    case JOB_PENDING:
        return JOB_KIND_PENDING;
    case JOB_RUNNING:
        return !(state & JOB_CONFIGURING)  ? JOB_KIND_RUNNING
               : state & JOB_POWER_UP_NODE ? JOB_KIND_BOOTING
                                           : JOB_KIND_STARTING;
    case JOB_SUSPENDED:
        return JOB_KIND_SUSPENDED;
    default:
        return JOB_KIND_ENDED;
    }
}

/* slurm.h has no function for it, and the numbers are part of the protocol: they do not change. */
static const char *base_state(uint32_t state)
{
    static const char *const names[] = {
        [JOB_PENDING] = "PENDING",     [JOB_RUNNING] = "RUNNING",     [JOB_SUSPENDED] = "SUSPENDED",
        [JOB_COMPLETE] = "COMPLETED",  [JOB_CANCELLED] = "CANCELLED", [JOB_FAILED] = "FAILED",
        [JOB_TIMEOUT] = "TIMEOUT",     [JOB_NODE_FAIL] = "NODE_FAIL", [JOB_PREEMPTED] = "PREEMPTED",
        [JOB_BOOT_FAIL] = "BOOT_FAIL", [JOB_DEADLINE] = "DEADLINE",   [JOB_OOM] = "OUT_OF_MEMORY",
    };
    uint32_t base = state & JOB_STATE_BASE;

    return base < sizeof(names) / sizeof(names[0]) ? names[base] : "UNKNOWN";
}

static const char *state_name(uint32_t state)
{
    if (state & JOB_COMPLETING)
        return "COMPLETING";
    if (state & JOB_CONFIGURING)
        return "CONFIGURING";
    return base_state(state);
}

/* Slurm's word for why a job waits, or has ended. */
static void fill_reason(struct job_info *info, slurm_job_info_t *job)
{
    char *word = NULL;

    /* The text overrides the word, for example after a failed launch. */
    if (job->state_desc == NULL)
        word = slurm_compat_reason(job);
    snprintf(info->reason, sizeof(info->reason), "%s",
             job->state_desc != NULL ? job->state_desc
             : word != NULL          ? word
                                     : "");
    free(word);
}

/* Whether list, a comma list, holds the entry. */
static bool list_holds(const char *list, const char *entry)
{
    size_t len = strlen(entry);

    while (*list) {
        size_t next = strcspn(list, ",");

        if (next == len && strncmp(list, entry, len) == 0)
            return true;
        list += list[next] == ',' ? next + 1 : next;
    }
    return false;
}

/* "gpu:a100:5" on 4 nodes becomes "gpu:a100:2" on each, in place. An entry without a count stays as
 * it is. */
static void share_out(char *entry, int nodes)
{
    char *colon = strrchr(entry, ':'), *end = NULL;
    unsigned long count = colon != NULL ? strtoul(colon + 1, &end, 10) : 0;

    if (count > 0 && (*end == '\0' || *end == '('))
        sprintf(colon + 1, "%lu", (count + (unsigned)nodes - 1) / (unsigned)nodes);
}

/* Slurm's list of GRES ("gres:gpu:2,gres/nic:1") in the form of sbatch --gres ("gpu:2,nic:1"), each
 * divided by nodes. --gres and --gpus-per-node together put the same entry there twice. */
static char *gres_option(const char *tres, int nodes)
{
    char *list = strdup(tres), *result = calloc(1, strlen(tres) + 1), *rest = NULL;

    for (char *entry = list != NULL && result != NULL ? strtok_r(list, ",", &rest) : NULL;
         entry != NULL; entry = strtok_r(NULL, ",", &rest)) {
        if (strncmp(entry, "gres:", 5) == 0 || strncmp(entry, "gres/", 5) == 0)
            entry += 5;
        share_out(entry, nodes);
        if (list_holds(result, entry))
            continue;
        if (result[0] != '\0')
            strcat(result, ",");
        strcat(result, entry);
    }
    free(list);
    if (result != NULL && result[0] != '\0')
        return result;
    free(result);
    return NULL;
}

/* The GRES of each node of the job. GPUs that were asked for by job, task or socket are divided
 * among the nodes. GPUs that an exclusive job has only because its nodes have them do not count. */
static char *gres_per_node(const slurm_job_info_t *job, int nodes)
{
    if (job->tres_per_node != NULL)
        return gres_option(job->tres_per_node, 1);
    if (job->gres_total != NULL &&
        (job->tres_per_job != NULL || job->tres_per_task != NULL || job->tres_per_socket != NULL))
        return gres_option(job->gres_total, nodes);
    return NULL;
}

/* The memory of each GPU in a list such as "gres:gpu:700", 0 if there is none. Slurm has no other
 * memory by TRES. */
static uint64_t memory_per_gpu(const char *tres)
{
    const char *colon = tres != NULL ? strrchr(tres, ':') : NULL;

    return colon != NULL ? strtoull(colon + 1, NULL, 10) : 0;
}

static const char *sharing(uint16_t shared)
{
    switch (shared) {
    case JOB_SHARED_OK:
        return "--oversubscribe";
    case JOB_SHARED_USER:
        return "--exclusive=user";
    case JOB_SHARED_MCS:
        return "--exclusive=mcs";
    default:
        return NULL;
    }
}

static void fill_request(struct job_request *request, const slurm_job_info_t *job, int nodes)
{
    if ((request->mem_per_gpu = memory_per_gpu(job->mem_per_tres)) == 0) {
        if (job->pn_min_memory & MEM_PER_CPU)
            request->mem_per_cpu = job->pn_min_memory & ~(uint64_t)MEM_PER_CPU;
        else if (job->pn_min_memory != NO_VAL64)
            request->mem_per_node = job->pn_min_memory;
    }
    request->tmp_disk = job->pn_min_tmp_disk != NO_VAL ? job->pn_min_tmp_disk : 0;
    request->nice = job->nice != NO_VAL && job->nice > NICE_OFFSET ? job->nice - NICE_OFFSET : 0;
    if (job->threads_per_core != NO_VAL16 && job->threads_per_core != INFINITE16)
        request->threads_per_core = job->threads_per_core;
    request->core_spec = job->core_spec == NO_VAL16 || (job->core_spec & CORE_SPEC_THREAD)
                             ? -1
                             : job->core_spec;
    request->sharing = sharing(job->shared);
    if (job->bitflags & GRES_ENFORCE_BIND)
        request->gres_flags = "enforce-binding";
    else if (job->bitflags & GRES_DISABLE_BIND)
        request->gres_flags = "disable-binding";
    request->gres_per_node = gres_per_node(job, nodes);
    request->prefer = slurm_client_copy(job->prefer);
    /* A star marks the user's default, which the extension gets as well. */
    if (job->wckey != NULL && job->wckey[0] != '*')
        request->wckey = slurm_client_copy(job->wckey);
}

static void fill_resources(struct job_info *info, const slurm_job_info_t *job)
{
    int nodes = job->num_nodes > 0 ? (int)job->num_nodes : 1;

    info->num_nodes = (int)job->num_nodes;
    info->cpus_per_node = ((int)job->num_cpus + nodes - 1) / nodes;
    if (job->pn_min_cpus > info->cpus_per_node)
        info->cpus_per_node = job->pn_min_cpus;
    info->exclusive = job->shared == JOB_SHARED_NONE;
    info->billing = job->billable_tres < (double)NO_VAL ? job->billable_tres / nodes : -1;
    fill_request(&info->request, job, nodes);
}

static void fill_job(struct job_info *info, slurm_job_info_t *job)
{
    info->id = job->job_id;
    info->restarts = job->restart_cnt;
    info->uid = job->user_id;
    info->gid = job->group_id;
    info->state = state_kind(job->job_state);
    snprintf(info->state_name, sizeof(info->state_name), "%s", state_name(job->job_state));
    info->base_state = base_state(job->job_state);
    info->name = slurm_client_copy(job->name);
    info->partition = slurm_client_copy(job->partition);
    info->qos = slurm_client_copy(job->qos);
    info->account = slurm_client_copy(job->account);
    info->reservation = slurm_client_copy(job->resv_name);
    info->features = slurm_client_copy(job->features);
    info->comment = slurm_client_copy(job->comment);
    info->admin_comment = slurm_client_copy(job->admin_comment);
    info->nodes = slurm_client_copy(job->nodes);
    info->excluded = slurm_client_copy(job->exc_nodes);
    info->batch_host = slurm_client_copy(job->batch_host);
    info->work_dir = slurm_client_copy(job->work_dir);
    fill_resources(info, job);
    info->submit = job->submit_time;
    info->start = job->start_time;
    info->end = job->end_time;
    info->deadline = job->deadline;
    info->preempt_time = job->preempt_time;
    info->time_limit = job->time_limit == INFINITE || job->time_limit == NO_VAL ? UINT32_MAX
                                                                                : job->time_limit;
    info->time_min = job->time_min == INFINITE || job->time_min == NO_VAL ? 0 : job->time_min;
    if (info->state == JOB_KIND_PENDING ||
        (info->state >= JOB_KIND_ENDING && admission_is_marked(info->comment)))
        fill_reason(info, job); /* last: it may change the record */
}

static void clear_job(struct job_info *info)
{
    free(info->name);
    free(info->partition);
    free(info->qos);
    free(info->account);
    free(info->reservation);
    free(info->features);
    free(info->comment);
    free(info->admin_comment);
    free(info->nodes);
    free(info->excluded);
    free(info->batch_host);
    free(info->request.gres_per_node);
    free(info->request.prefer);
    free(info->request.wckey);
    free(info->work_dir);
}

void job_info_free(struct job_info *info)
{
    job_info_free_list(info, info != NULL ? 1 : 0);
}

void job_info_free_list(struct job_info *list, int count)
{
    for (int i = 0; i < count; i++)
        clear_job(&list[i]);
    free(list);
}

static bool job_is_unknown(int code)
{
    return code == ESLURM_INVALID_JOB_ID;
}

static int load_job(uint32_t job_id, struct job_info **info, struct error *err)
{
    job_info_msg_t *msg = NULL;
    char what[64];

    snprintf(what, sizeof(what), "tell about job %u", job_id);
    if (slurm_compat_load_job(&msg, job_id, QUERY_FLAGS) != SLURM_SUCCESS)
        return job_is_unknown(errno) ? 0 : slurm_client_failed(err, what);
    /* a job array or a heterogeneous job is answered with all its jobs */
    for (uint32_t i = 0; i < msg->record_count && !*info; i++) {
        if (msg->job_array[i].job_id == job_id && (*info = calloc(1, sizeof(**info))))
            fill_job(*info, &msg->job_array[i]);
    }
    slurm_free_job_info_msg(msg);
    return 0;
}

int slurm_client_job(uint32_t job_id, struct job_info **info, struct error *err)
{
    int result;

    *info = NULL;
    slurm_client_enter();
    result = load_job(job_id, info, err);
    slurm_client_leave();
    return result;
}

static int load_jobs(uid_t uid, struct job_info **list, int *count, struct error *err)
{
    job_info_msg_t *msg = NULL;
    int code;

    if (uid == (uid_t)-1)
        code = slurm_load_jobs(0, &msg, QUERY_FLAGS);
    else
        code = slurm_load_job_user(&msg, uid, QUERY_FLAGS);
    if (code != SLURM_SUCCESS)
        return slurm_client_failed(err, "list the jobs");
    *list = calloc(msg->record_count + 1, sizeof(**list));
    if (*list) {
        *count = (int)msg->record_count;
        for (int i = 0; i < *count; i++)
            fill_job(&(*list)[i], &msg->job_array[i]);
    }
    slurm_free_job_info_msg(msg);
    return *list ? 0 : error_set(err, "out of memory");
}

int slurm_client_jobs(uid_t uid, struct job_info **list, int *count, struct error *err)
{
    int result;

    *list = NULL;
    *count = 0;
    slurm_client_enter();
    result = load_jobs(uid, list, count, err);
    slurm_client_leave();
    return result;
}

/* ---- changing -------------------------------------------------------------------------------- */

int slurm_client_requeue(uint32_t job_id, struct error *err)
{
    int result = 0;

    slurm_client_enter();
    if (slurm_compat_requeue(job_id) != SLURM_SUCCESS)
        result = slurm_client_failed(err, "requeue the job");
    slurm_client_leave();
    return result;
}

int slurm_client_complete(uint32_t job_id, int code, struct error *err)
{
    int result = 0;

    slurm_client_enter();
    if (slurm_compat_complete(job_id, (uint32_t)code << 8) != SLURM_SUCCESS &&
        errno != ESLURM_ALREADY_DONE && !job_is_unknown(errno))
        result = slurm_client_failed(err, "end the job");
    slurm_client_leave();
    return result;
}

int slurm_client_stdout(uint32_t job_id, char **path, struct error *err)
{
    job_info_msg_t *msg = NULL;
    char text[PATH_MAX] = "";
    int result = -1;

    *path = NULL;
    slurm_client_enter();
    if (slurm_compat_load_job(&msg, job_id, QUERY_FLAGS) != SLURM_SUCCESS ||
        msg->record_count == 0) {
        slurm_client_failed(err, "find the job");
    } else {
        slurm_get_job_stdout(text, sizeof(text), &msg->job_array[0]);
        if (text[0] == '/' && (*path = strdup(text)) != NULL)
            result = 0;
        else
            error_set(err, "job %u has no output file", job_id);
    }
    slurm_free_job_info_msg(msg);
    slurm_client_leave();
    return result;
}

static int update_job(uint32_t job_id, job_desc_msg_t *change, const char *what, struct error *err)
{
    int result = 0;

    SLURM_COMPAT_SET_JOB(change, job_id);
    slurm_client_enter();
    if (slurm_update_job(change) != SLURM_SUCCESS)
        result = error_set(err, "Slurm cannot set %.120s of job %u: %s", what, job_id,
                           slurm_strerror(errno));
    slurm_client_leave();
    return result;
}

int slurm_client_set_time_min(uint32_t job_id, uint32_t minutes, struct error *err)
{
    job_desc_msg_t change;
    char what[32];

    slurm_init_job_desc_msg(&change);
    change.time_min = minutes;
    snprintf(what, sizeof(what), "TimeMin=%u", minutes);
    return update_job(job_id, &change, what, err);
}

int slurm_client_set_comment(uint32_t job_id, const char *comment, struct error *err)
{
    job_desc_msg_t change;
    char *text = strdup(comment);
    int rc;

    if (text == NULL)
        return error_set(err, "out of memory");
    slurm_init_job_desc_msg(&change);
    change.comment = text;
    rc = update_job(job_id, &change, "the comment", err);
    free(text);
    return rc;
}

/* What the job is to exclude then: a new text. NULL: out of memory. */
static char *excluded_then(const struct job_info *info, char *const *nodes, char *const *no_longer)
{
    char **now = slurm_client_expand(info->excluded);
    char **kept = now != NULL ? names_without(now, no_longer) : NULL;
    char **then = kept != NULL ? names_with(kept, nodes) : NULL;
    char *text = then != NULL ? slurm_client_compress(then, (int)strings_count(then)) : NULL;

    strings_free(now);
    strings_free(kept);
    strings_free(then);
    return text;
}

static int set_excluded(uint32_t job_id, char *text, struct error *err)
{
    job_desc_msg_t change;
    char what[120];

    slurm_init_job_desc_msg(&change);
    change.exc_nodes = text;
    snprintf(what, sizeof(what), "ExcNodeList=%s", text);
    return update_job(job_id, &change, what, err);
}

int slurm_client_stay_off(uint32_t job_id, char *const *nodes, char *const *no_longer,
                          struct error *err)
{
    struct job_info *info;
    char *text;
    int result = 0;

    if (slurm_client_job(job_id, &info, err) != 0)
        return -1;
    if (info != NULL && info->state == JOB_KIND_PENDING) {
        text = excluded_then(info, nodes, no_longer);
        result = text != NULL ? set_excluded(job_id, text, err) : error_set(err, "out of memory");
        free(text);
    }
    job_info_free(info);
    return result;
}

/* ---- cancelling ------------------------------------------------------------------------------ */

static int kill_job(uint32_t job_id)
{
    int code = 0;

    slurm_client_enter();
    if (slurm_compat_kill(job_id, SIGKILL) != SLURM_SUCCESS)
        code = errno;
    slurm_client_leave();
    return code;
}

int slurm_client_cancel(uint32_t job_id, struct error *err)
{
    int code = kill_job(job_id);

    for (int i = 1; i < CANCEL_TRIES && code == ESLURM_TRANSITION_STATE_NO_UPDATE; i++) {
        sleep(1);
        code = kill_job(job_id);
    }
    if (code == 0 || code == ESLURM_ALREADY_DONE || job_is_unknown(code))
        return 0;
    return error_set(err, "Slurm cannot cancel job %u: %s", job_id, slurm_strerror(code));
}

int slurm_client_cancel_extensions(uint32_t base_id, uint32_t restarts, uid_t uid,
                                   struct error *err)
{
    struct job_info *list = NULL;
    int count = 0, cancelled = 0;
    bool broken = false;
    char mark[ADMISSION_NOTE_MAX];

    admission_note(base_id, restarts, NULL, mark, sizeof(mark));
    if (slurm_client_jobs(uid, &list, &count, err) != 0)
        return -1;
    for (int i = 0; i < count; i++) {
        const struct job_info *job = &list[i];

        if (job->uid != uid || !job->comment || strcmp(job->comment, mark) != 0 ||
            job->state == JOB_KIND_ENDED || job->state == JOB_KIND_ENDING)
            continue;
        /* The other extensions are cancelled all the same; the first error is reported. */
        if (slurm_client_cancel(job->id, broken ? NULL : err) == 0)
            cancelled++;
        else
            broken = true;
    }
    job_info_free_list(list, count);
    return broken ? -1 : cancelled;
}
