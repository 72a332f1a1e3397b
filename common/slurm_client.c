/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Questions and requests to slurmctld through the public libslurm (slurm/slurm.h, nothing else).
 *
 * - libslurm keeps its configuration and its state in globals; it was made for programs with one
 *   thread. One mutex serialises all calls, so that any worker thread may make them.
 * - Queries ask for this cluster only (SHOW_LOCAL): else each would first ask for the federation.
 * - A missing or broken slurm.conf ends the process in libslurm itself ("fatal: ..."): it has no
 *   other way to fail there. */
#include "common/slurm_client.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* slurm.h has a struct of this name too; it is only ever written slurm_job_info_t. */
#define job_info slurm_job_info
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#undef job_info

#include "lib/text.h"

/* What differs between versions of Slurm. */
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(22, 5, 0)
#error "slurm-elastic needs Slurm 22.05 or newer"
#endif
/* A pointer to struct hostlist is hostlist_t before 23.11 and hostlist_t * since. */
typedef struct hostlist hostlist;
/* Flags of a node that can take a job now. Any other, also one that a later version invents, says
 * that it cannot. */
#define NODE_FLAGS_USABLE ((uint32_t)(NODE_STATE_CLOUD | NODE_STATE_DYNAMIC_NORM))

#define QUERY_FLAGS (SHOW_ALL | SHOW_LOCAL)
/* A job that is just changing its state cannot be cancelled for a moment. */
#define CANCEL_TRIES 5

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool initialised;   /* as libslurm's own state, of the whole process */
static char *cluster_name; /* asked for once */

static void enter(void)
{
    pthread_mutex_lock(&mutex);
    if (!initialised)
        slurm_init(NULL);
    initialised = true;
}

static void leave(void)
{
    pthread_mutex_unlock(&mutex);
}

/* After a failed call, before leave(). */
static int failed(struct error *err, const char *what)
{
    return error_set(err, "Slurm cannot %s: %s", what, slurm_strerror(errno));
}

static char *copy(const char *text)
{
    return text && text[0] != '\0' ? strdup(text) : NULL;
}

/* --- Jobs --- */

static enum job_state_kind state_kind(uint32_t state)
{
    if (state & JOB_COMPLETING)
        return JOB_KIND_ENDING;
    switch (state & JOB_STATE_BASE) {
    case JOB_PENDING:
        return JOB_KIND_PENDING;
    case JOB_RUNNING:
        return state & JOB_CONFIGURING ? JOB_KIND_STARTING : JOB_KIND_RUNNING;
    case JOB_SUSPENDED:
        return JOB_KIND_SUSPENDED;
    default:
        return JOB_KIND_ENDED;
    }
}

/* slurm.h has no function for it, and the numbers are part of the protocol: they do not change. */
static const char *state_name(uint32_t state)
{
    static const char *const names[] = {
        [JOB_PENDING] = "PENDING",     [JOB_RUNNING] = "RUNNING",     [JOB_SUSPENDED] = "SUSPENDED",
        [JOB_COMPLETE] = "COMPLETED",  [JOB_CANCELLED] = "CANCELLED", [JOB_FAILED] = "FAILED",
        [JOB_TIMEOUT] = "TIMEOUT",     [JOB_NODE_FAIL] = "NODE_FAIL", [JOB_PREEMPTED] = "PREEMPTED",
        [JOB_BOOT_FAIL] = "BOOT_FAIL", [JOB_DEADLINE] = "DEADLINE",   [JOB_OOM] = "OUT_OF_MEMORY",
    };
    uint32_t base = state & JOB_STATE_BASE;

    if (state & JOB_COMPLETING)
        return "COMPLETING";
    if (state & JOB_CONFIGURING)
        return "CONFIGURING";
    return base < sizeof(names) / sizeof(names[0]) ? names[base] : "UNKNOWN";
}

/* Slurm's word for why a job waits. The only public function that knows the words prints the
 * whole job, and takes the flags off its memory fields as it does so. */
static void fill_reason(struct job_info *info, slurm_job_info_t *job)
{
    char *text = NULL, *begin;
    size_t len = 0;
    FILE *out;

    if (job->state_desc) { /* overrides the word, for example after a failed launch */
        snprintf(info->reason, sizeof(info->reason), "%s", job->state_desc);
        return;
    }
    out = open_memstream(&text, &len);
    if (!out)
        return;
    slurm_print_job_info(out, job, 1);
    fclose(out);
    begin = text ? strstr(text, " Reason=") : NULL;
    if (begin) {
        begin += strlen(" Reason=");
        snprintf(info->reason, sizeof(info->reason), "%.*s", (int)strcspn(begin, " \n"), begin);
    }
    free(text);
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

/* "gpu:a100:5" on 4 nodes is "gpu:a100:2" on each, in place. What has no count stays as it is. */
static void share_out(char *entry, int nodes)
{
    char *colon = strrchr(entry, ':'), *end = NULL;
    unsigned long count = colon ? strtoul(colon + 1, &end, 10) : 0;

    if (count > 0 && (*end == '\0' || *end == '('))
        sprintf(colon + 1, "%lu", (count + (unsigned)nodes - 1) / (unsigned)nodes);
}

/* Slurm's list of GRES ("gres:gpu:2,gres/nic:1") in the form of sbatch --gres ("gpu:2,nic:1"), each
 * divided by nodes. --gres and --gpus-per-node together put the same entry there twice. */
static char *gres_option(const char *tres, int nodes)
{
    char *list = strdup(tres), *result = calloc(1, strlen(tres) + 1), *rest = NULL;

    for (char *entry = list && result ? strtok_r(list, ",", &rest) : NULL; entry;
         entry = strtok_r(NULL, ",", &rest)) {
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
    if (result && result[0] != '\0')
        return result;
    free(result);
    return NULL;
}

/* What each node of the job has. GPUs that were asked for by job, task or socket are divided among
 * the nodes. Those that an exclusive job has only because its nodes have them do not count. */
static char *gres_per_node(const slurm_job_info_t *job, int nodes)
{
    if (job->tres_per_node)
        return gres_option(job->tres_per_node, 1);
    if (job->gres_total && (job->tres_per_job || job->tres_per_task || job->tres_per_socket))
        return gres_option(job->gres_total, nodes);
    return NULL;
}

static void fill_resources(struct job_info *info, const slurm_job_info_t *job)
{
    int nodes = job->num_nodes > 0 ? (int)job->num_nodes : 1;

    info->num_nodes = (int)job->num_nodes;
    info->cpus_per_node = ((int)job->num_cpus + nodes - 1) / nodes;
    if (job->pn_min_cpus > info->cpus_per_node)
        info->cpus_per_node = job->pn_min_cpus;
    if (job->pn_min_memory & MEM_PER_CPU)
        info->mem_per_cpu = job->pn_min_memory & ~(uint64_t)MEM_PER_CPU;
    else
        info->mem_per_node = job->pn_min_memory;
    info->exclusive = job->shared == JOB_SHARED_NONE;
    info->gres_per_node = gres_per_node(job, nodes);
}

static void fill_job(struct job_info *info, slurm_job_info_t *job)
{
    info->id = job->job_id;
    info->restarts = job->restart_cnt;
    info->uid = job->user_id;
    info->gid = job->group_id;
    info->state = state_kind(job->job_state);
    snprintf(info->state_name, sizeof(info->state_name), "%s", state_name(job->job_state));
    info->name = copy(job->name);
    info->partition = copy(job->partition);
    info->qos = copy(job->qos);
    info->account = copy(job->account);
    info->reservation = copy(job->resv_name);
    info->features = copy(job->features);
    info->comment = copy(job->comment);
    info->admin_comment = copy(job->admin_comment);
    info->cluster = copy(job->cluster ? job->cluster : cluster_name);
    info->nodes = copy(job->nodes);
    info->excluded = copy(job->exc_nodes);
    info->batch_host = copy(job->batch_host);
    info->work_dir = copy(job->work_dir);
    fill_resources(info, job);
    info->submit = job->submit_time;
    info->start = job->start_time;
    info->end = job->end_time;
    info->preempt_time = job->preempt_time;
    info->time_limit = job->time_limit == INFINITE || job->time_limit == NO_VAL ? UINT32_MAX
                                                                                : job->time_limit;
    info->time_min = job->time_min == INFINITE || job->time_min == NO_VAL ? 0 : job->time_min;
    if (info->state == JOB_KIND_PENDING)
        fill_reason(info, job); /* last: printing changes the record */
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
    free(info->cluster);
    free(info->nodes);
    free(info->excluded);
    free(info->batch_host);
    free(info->gres_per_node);
    free(info->work_dir);
}

void job_info_free(struct job_info *info)
{
    job_info_free_list(info, info ? 1 : 0);
}

void job_info_free_list(struct job_info *list, int count)
{
    for (int i = 0; i < count; i++)
        clear_job(&list[i]);
    free(list);
}

/* slurm_user may be NULL. */
static int load_site(uid_t *slurm_user, struct error *err)
{
    slurm_conf_t *conf = NULL;

    if (slurm_load_ctl_conf(0, &conf) != SLURM_SUCCESS)
        return failed(err, "tell its configuration");
    if (slurm_user)
        *slurm_user = conf->slurm_user_id;
    if (!cluster_name)
        cluster_name = copy(conf->cluster_name);
    slurm_free_ctl_conf(conf);
    return 0;
}

/* Only the answer to a federation tells a job's cluster. */
static void learn_cluster(void)
{
    if (!cluster_name)
        load_site(NULL, NULL);
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
    if (slurm_load_job(&msg, job_id, QUERY_FLAGS) != SLURM_SUCCESS)
        return job_is_unknown(errno) ? 0 : failed(err, what);
    learn_cluster();
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
    enter();
    result = load_job(job_id, info, err);
    leave();
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
        return failed(err, "list the jobs");
    learn_cluster();
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
    enter();
    result = load_jobs(uid, list, count, err);
    leave();
    return result;
}

/* --- Changing --- */

int slurm_client_requeue(uint32_t job_id, struct error *err)
{
    int result = 0;

    enter();
    if (slurm_requeue(job_id, 0) != SLURM_SUCCESS)
        result = failed(err, "requeue the job");
    leave();
    return result;
}

int slurm_client_complete(uint32_t job_id, int code, struct error *err)
{
    int result = 0;

    enter();
    if (slurm_complete_job(job_id, (uint32_t)code << 8) != SLURM_SUCCESS &&
        errno != ESLURM_ALREADY_DONE && !job_is_unknown(errno))
        result = failed(err, "end the job");
    leave();
    return result;
}

int slurm_client_stdout(uint32_t job_id, char **path, struct error *err)
{
    job_info_msg_t *msg = NULL;
    char text[PATH_MAX] = "";
    int result = -1;

    *path = NULL;
    enter();
    if (slurm_load_job(&msg, job_id, QUERY_FLAGS) != SLURM_SUCCESS || msg->record_count == 0) {
        failed(err, "find the job");
    } else {
        slurm_get_job_stdout(text, sizeof(text), &msg->job_array[0]);
        if (text[0] == '/' && (*path = strdup(text)) != NULL)
            result = 0;
        else
            error_set(err, "job %u has no output file", job_id);
    }
    slurm_free_job_info_msg(msg);
    leave();
    return result;
}

int slurm_client_set_time_min(uint32_t job_id, uint32_t minutes, struct error *err)
{
    job_desc_msg_t change;
    int result = 0;

    slurm_init_job_desc_msg(&change);
    change.job_id = job_id;
    change.time_min = minutes;
    enter();
    if (slurm_update_job(&change) != SLURM_SUCCESS)
        result = error_set(err, "Slurm cannot set TimeMin=%u of job %u: %s", minutes, job_id,
                           slurm_strerror(errno));
    leave();
    return result;
}

/* --- Cancelling --- */

static int kill_job(uint32_t job_id)
{
    int code = 0;

    enter();
    if (slurm_kill_job(job_id, SIGKILL, 0) != SLURM_SUCCESS)
        code = errno;
    leave();
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
    char mark[64];

    snprintf(mark, sizeof(mark), "elastic-extension-of=%u.%u", base_id, restarts);
    if (slurm_client_jobs(uid, &list, &count, err) != 0)
        return -1;
    for (int i = 0; i < count; i++) {
        const struct job_info *job = &list[i];

        if (job->uid != uid || !job->comment || strcmp(job->comment, mark) != 0 ||
            job->state == JOB_KIND_ENDED || job->state == JOB_KIND_ENDING)
            continue;
        /* the others are cancelled all the same; the first error is the one that is told */
        if (slurm_client_cancel(job->id, broken ? NULL : err) == 0)
            cancelled++;
        else
            broken = true;
    }
    job_info_free_list(list, count);
    return broken ? -1 : cancelled;
}

/* --- Nodes --- */

/* This one and the next without the mutex, which another thread may hold for many seconds while slurmctld is down: the leader's loop calls them. A list of
 * our own is nobody else's, and libslurm's lists lock themselves. */
char **slurm_client_expand(const char *expression)
{
    hostlist *list;
    char **names = NULL;
    int count, i = 0;

    list = slurm_hostlist_create(expression ? expression : "");
    count = list ? slurm_hostlist_count(list) : 0;
    names = calloc((size_t)count + 1, sizeof(*names));
    for (; list && names && i < count; i++)
        names[i] = slurm_hostlist_shift(list); /* malloc's */
    if (list)
        slurm_hostlist_destroy(list);
    return names;
}

char *slurm_client_compress(char *const *names, int count)
{
    hostlist *list;
    char *text = NULL;

    list = slurm_hostlist_create(NULL);
    for (int i = 0; list && i < count; i++)
        slurm_hostlist_push_host(list, names[i]);
    if (list) {
        text = slurm_hostlist_ranged_string_malloc(list);
        slurm_hostlist_destroy(list);
    }
    return text;
}

char *slurm_client_node_address(const char *node)
{
    node_info_msg_t *msg = NULL;
    char *name = strdup(node), *address = NULL;

    enter();
    if (name && slurm_load_node_single(&msg, name, QUERY_FLAGS) == SLURM_SUCCESS) {
        if (msg->record_count > 0)
            address = copy(msg->node_array[0].node_addr);
        slurm_free_node_info_msg(msg);
    }
    leave();
    if (!address)
        return name;
    free(name);
    return address;
}

static bool node_is_unwell(const node_info_t *node)
{
    return (node->node_state & (NODE_STATE_DRAIN | NODE_STATE_FAIL)) != 0 ||
           (node->node_state & NODE_STATE_BASE) == NODE_STATE_DOWN;
}

/* One by one: the list of all nodes of a large cluster is long, and asked for by every elastic job. */
int slurm_client_unwell(char *const *nodes, bool *unwell, struct error *err)
{
    int rc = 0;

    enter();
    for (int i = 0; nodes[i] != NULL && rc == 0; i++) {
        node_info_msg_t *msg = NULL;

        unwell[i] = false;
        if (slurm_load_node_single(&msg, nodes[i], QUERY_FLAGS) == SLURM_SUCCESS) {
            unwell[i] = msg->record_count > 0 && node_is_unwell(&msg->node_array[0]);
            slurm_free_node_info_msg(msg);
        } else if (errno != ESLURM_INVALID_NODE_NAME) {
            rc = failed(err, "ask for a node");
        }
    }
    leave();
    return rc;
}

static bool node_is_idle(const node_info_t *node, bool planned)
{
    uint32_t state = node->node_state;

    if (planned)
        state &= ~(uint32_t)NODE_STATE_PLANNED;
    return node->name && (state & NODE_STATE_BASE) == NODE_STATE_IDLE &&
           (state & NODE_STATE_FLAGS & ~NODE_FLAGS_USABLE) == 0;
}

/* node_inx: pairs first, last of indices into all nodes, ended by -1. */
static int count_idle(const partition_info_t *partition, const node_info_msg_t *nodes, bool planned)
{
    int count = 0;

    if (partition->state_up != PARTITION_UP || !partition->node_inx)
        return 0;
    for (const int32_t *pair = partition->node_inx; pair[0] >= 0; pair += 2) {
        for (int32_t i = pair[0]; i <= pair[1] && i < (int32_t)nodes->record_count; i++)
            count += node_is_idle(&nodes->node_array[i], planned);
    }
    return count;
}

static int load_idle(const char *name, bool planned, struct error *err)
{
    partition_info_msg_t *partitions = NULL;
    node_info_msg_t *nodes = NULL;
    int count = -1;

    if (slurm_load_partitions(0, &partitions, QUERY_FLAGS) != SLURM_SUCCESS)
        return failed(err, "list the partitions");
    if (slurm_load_node(0, &nodes, QUERY_FLAGS) != SLURM_SUCCESS) {
        failed(err, "list the nodes");
        slurm_free_partition_info_msg(partitions);
        return -1;
    }
    for (uint32_t i = 0; i < partitions->record_count; i++) {
        if (strcmp(partitions->partition_array[i].name, name) == 0)
            count = count_idle(&partitions->partition_array[i], nodes, planned);
    }
    if (count < 0)
        error_set(err, "Slurm has no partition '%s'", name);
    slurm_free_node_info_msg(nodes);
    slurm_free_partition_info_msg(partitions);
    return count;
}

int slurm_client_idle_nodes(const char *partition, bool planned, struct error *err)
{
    int count;

    enter();
    count = load_idle(partition, planned, err);
    leave();
    return count;
}

/* --- Hardware --- */

static const char *node_state_words(uint32_t state)
{
    static const struct {
        uint32_t flags;
        const char *words;
    } flags[] = {
        {NODE_STATE_POWERED_DOWN | NODE_STATE_POWERING_DOWN | NODE_STATE_POWER_DOWN,
         "powered down"},
        {NODE_STATE_POWERING_UP | NODE_STATE_POWER_UP, "being powered up"},
        {NODE_STATE_FAIL, "failing"},
        {NODE_STATE_DRAIN, "drained"},
        {NODE_STATE_NO_RESPOND, "not responding"},
        {NODE_STATE_REBOOT_ISSUED | NODE_STATE_REBOOT_REQUESTED, "about to reboot"},
        {NODE_STATE_COMPLETING, "completing a job"},
    };

    if ((state & NODE_STATE_BASE) == NODE_STATE_DOWN)
        return "down";
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        if (state & flags[i].flags)
            return flags[i].words;
    switch (state & NODE_STATE_BASE) {
    case NODE_STATE_IDLE:
        return "idle";
    case NODE_STATE_MIXED:
        return "partly in use";
    case NODE_STATE_ALLOCATED:
        return "all of it in use";
    default:
        return "in an unknown state";
    }
}

/* Comma list of names as an array. */
static char **split_names(const char *names)
{
    size_t count = 0;
    char **list, *rest = NULL, *text = strdup(names ? names : "");

    for (const char *s = text; s && *s; s++)
        count += *s == ',';
    list = text ? calloc(count + 2, sizeof(*list)) : NULL;
    count = 0;
    for (char *name = list ? strtok_r(text, ",", &rest) : NULL; name;
         name = strtok_r(NULL, ",", &rest))
        list[count++] = strdup(name);
    free(text);
    return list;
}

static void fill_slurm_node(struct slurm_node *node, const node_info_t *info)
{
    uint32_t base = info->node_state & NODE_STATE_BASE;
    uint32_t flags = info->node_state & NODE_STATE_FLAGS & ~NODE_FLAGS_USABLE &
                     ~(uint32_t)NODE_STATE_PLANNED;
    uint32_t reserved = NODE_STATE_RES | NODE_STATE_MAINT;

    *node = (struct slurm_node){
        .name = copy(info->name),
        .features = copy(info->features),
        .gres = copy(info->gres),
        .partitions = split_names(info->partitions),
        .cpus = info->cpus,
        .sockets = info->sockets,
        .cores = info->cores,
        .threads = info->threads,
        .memory = info->real_memory,
        .ready = (base == NODE_STATE_IDLE || base == NODE_STATE_MIXED) && (flags & ~reserved) == 0,
        .reserved = (flags & reserved) != 0,
        .completing = (base == NODE_STATE_IDLE || base == NODE_STATE_MIXED) &&
                      (flags & ~reserved) == NODE_STATE_COMPLETING,
        .state = node_state_words(info->node_state),
    };
}

/* Partitions that are down take no jobs. */
static void drop_down_partitions(partition_info_msg_t *partitions)
{
    for (uint32_t i = 0; i < partitions->record_count; i++) {
        partition_info_t *partition = &partitions->partition_array[i];

        if (partition->state_up != PARTITION_UP && partition->node_inx)
            partition->node_inx[0] = -1;
    }
}

static int load_nodes(struct slurm_node **list, int *count, struct error *err)
{
    partition_info_msg_t *partitions = NULL;
    node_info_msg_t *nodes = NULL;

    if (slurm_load_partitions(0, &partitions, QUERY_FLAGS) != SLURM_SUCCESS)
        return failed(err, "list the partitions");
    if (slurm_load_node(0, &nodes, QUERY_FLAGS) != SLURM_SUCCESS) {
        failed(err, "list the nodes");
        slurm_free_partition_info_msg(partitions);
        return -1;
    }
    drop_down_partitions(partitions);
    slurm_populate_node_partitions(nodes, partitions);
    *list = calloc((size_t)nodes->record_count + 1, sizeof(**list));
    for (uint32_t i = 0; *list && i < nodes->record_count; i++) {
        const node_info_t *info = &nodes->node_array[i];

        if (info->name && (info->node_state & NODE_STATE_BASE) != NODE_STATE_FUTURE)
            fill_slurm_node(&(*list)[(*count)++], info);
    }
    slurm_free_node_info_msg(nodes);
    slurm_free_partition_info_msg(partitions);
    return *list ? 0 : error_set(err, "out of memory");
}

int slurm_client_nodes(struct slurm_node **list, int *count, struct error *err)
{
    int rc;

    *list = NULL;
    *count = 0;
    enter();
    rc = load_nodes(list, count, err);
    leave();
    return rc;
}

void slurm_node_free_list(struct slurm_node *list, int count)
{
    for (int i = 0; i < count; i++) {
        free(list[i].name);
        free(list[i].features);
        free(list[i].gres);
        strings_free(list[i].partitions);
    }
    free(list);
}

#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(23, 11, 0)
static int load_switches(struct slurm_switch **list, int *count, struct error *err)
{
    topo_info_response_msg_t *msg = NULL;

    if (slurm_load_topo(&msg) != SLURM_SUCCESS)
        return failed(err, "tell its topology");
    *list = calloc((size_t)msg->record_count + 1, sizeof(**list));
    for (uint32_t i = 0; *list && i < msg->record_count; i++) {
        const topo_info_t *info = &msg->topo_array[i];

        (*list)[(*count)++] = (struct slurm_switch){
            .name = strdup(info->name ? info->name : ""),
            .level = info->level,
            .nodes = copy(info->nodes),
            .switches = copy(info->switches),
        };
    }
    slurm_free_topo_info_msg(msg);
    return *list ? 0 : error_set(err, "out of memory");
}
#else
/* The answer is one of several kinds since, which only Slurm's own programs can read. */
static int load_switches(struct slurm_switch **list, int *count, struct error *err)
{
    (void)list;
    (void)count;
    return error_set(err, "Slurm %s tells its topology to its own programs only",
                     SLURM_VERSION_STRING);
}
#endif

int slurm_client_switches(struct slurm_switch **list, int *count, struct error *err)
{
    int rc;

    *list = NULL;
    *count = 0;
    enter();
    rc = load_switches(list, count, err);
    leave();
    return rc;
}

void slurm_switch_free_list(struct slurm_switch *list, int count)
{
    for (int i = 0; i < count; i++) {
        free(list[i].name);
        free(list[i].nodes);
        free(list[i].switches);
    }
    free(list);
}

/* --- The site --- */

int slurm_client_site(uid_t *slurm_user, char **cluster, struct error *err)
{
    int result;

    *cluster = NULL;
    enter();
    result = load_site(slurm_user, err);
    if (result == 0)
        *cluster = copy(cluster_name);
    leave();
    return result;
}
