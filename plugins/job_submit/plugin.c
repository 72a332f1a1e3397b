/* SPDX-License-Identifier: GPL-2.0-or-later */
/* job_submit/elastic: admission of elastic jobs and their extensions.
 *
 * slurmctld calls this plugin for every job, with its locks held. A job that is neither elastic nor
 * an extension passes at once. lib/admission.c decides; this file translates the request of Slurm
 * for it, and its answer for Slurm. slurmctld frees the strings, so they come from its own
 * allocator (xstrdup).
 *
 * If elastic.conf is wrong, only elastic jobs are refused. */
#include "plugins/slurmctld.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/admission.h"
#include "lib/admitted.h"
#include "lib/number.h"
#include "lib/text.h"
#include "plugins/job_submit/base_job.h"
#include "plugins/job_submit/site.h"
#include "plugins/job_submit/watch.h"

#define MERGED_MAX 100 /* jobs of one --dependency */

const char plugin_name[] = "Admission of elastic jobs";
const char plugin_type[] = "job_submit/elastic";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

/* Slurm passes no pointer of ours to a plugin. */
static struct admitted admitted;

/* Since 23.02 Slurm calls the plugin from several threads at a time. This keeps admitted, and what
 * site_conf() gives. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

extern int init(void);
extern int fini(void);
extern int job_submit(job_desc_msg_t *desc, uint32_t submit_uid, char **err_msg);
extern int job_modify(job_desc_msg_t *desc, struct job_record *record,
                      uint32_t submit_uid WITH_ERROR_TEXT(char **err_msg));

int init(void)
{
    /* A wrong file is in the log from the start. It is no error of the plugin. */
    watch_start(base_job_configured);
    return SLURM_SUCCESS;
}

int fini(void)
{
    watch_stop();
    site_forget();
    return SLURM_SUCCESS;
}

static int number32(uint32_t value)
{
    return value == NO_VAL || value > INT32_MAX ? ADMISSION_UNSET : (int)value;
}

static int number16(uint16_t value)
{
    return value == NO_VAL16 || value == INFINITE16 ? ADMISSION_UNSET : (int)value;
}

static int minutes(uint32_t value)
{
    return value == INFINITE ? ADMISSION_UNLIMITED : number32(value);
}

/* A number in the environment that the batch script will get. */
static int number_in_environment(const job_desc_msg_t *desc, const char *name)
{
    int number;

    for (uint32_t i = 0; desc->environment && i < desc->env_size; i++) {
        const char *entry = desc->environment[i];
        const char *value = entry ? assignment_value(entry, name) : NULL;

        if (value && number_parse(value, strlen(value), 0, INT32_MAX, &number) == 0)
            return number;
    }
    return ADMISSION_UNSET;
}

static void read_request(const job_desc_msg_t *desc, struct admission_request *request)
{
    *request = (struct admission_request){
        .env = {desc->spank_job_env, desc->spank_job_env_size},
        .uid = desc->user_id,
        .array = desc->array_inx != NULL,
        .heterogeneous = desc->het_job_offset != NO_VAL,
        .min_nodes = number32(desc->min_nodes),
        .max_nodes = number32(desc->max_nodes),
        .tasks = number32(desc->num_tasks),
        .tasks_per_node = number16(desc->ntasks_per_node),
        .cpus_per_task = number16(desc->cpus_per_task),
        .min_cpus = number32(desc->min_cpus),
        .requeue = number16(desc->requeue),
        .time_limit = minutes(desc->time_limit),
        .time_min = minutes(desc->time_min),
        .base_left = ADMISSION_UNSET,
        .comment = desc->comment,
        .admin_comment = desc->admin_comment,
        .excluded = desc->exc_nodes,
        .partitions = desc->partition,
        .features = desc->features,
        .now = (double)time(NULL),
        .partition_nodes = ADMISSION_UNSET,
    };
}

static void change_number(uint32_t *field, int value)
{
    if (value == ADMISSION_UNLIMITED)
        *field = INFINITE;
    else if (value != ADMISSION_UNSET)
        *field = (uint32_t)value;
}

static void change_text(char **field, const char *value)
{
    if (!value)
        return;
    xfree(*field);
    *field = xstrdup(value);
}

/* Slurm writes names of nodes in ranges, each name once. */
static void change_nodes(char **field, const char *value)
{
    slurm_hostlist *list;
    char *text;

    if (!value || !*value || !(list = slurm_hostlist_create(value)))
        return;
    slurm_hostlist_uniq(list);
    if ((text = slurm_hostlist_ranged_string_xmalloc(list))) {
        xfree(*field);
        *field = text;
    }
    slurm_hostlist_destroy(list);
}

/* sbatch has already put its own number of tasks into the environment of the script. */
static void change_environment(job_desc_msg_t *desc, const char *name, int value)
{
    size_t len = strlen(name);

    for (uint32_t i = 0; desc->environment && i < desc->env_size; i++) {
        char **entry = &desc->environment[i];
        if (!*entry || strncmp(*entry, name, len) != 0 || (*entry)[len] != '=')
            continue;
        xfree(*entry);
        *entry = xstrdup_printf("%s=%d", name, value);
    }
}

static void change_tasks(job_desc_msg_t *desc, int tasks)
{
    if (tasks == ADMISSION_UNSET)
        return;
    change_number(&desc->num_tasks, tasks);
    change_environment(desc, "SLURM_NTASKS", tasks);
    change_environment(desc, "SLURM_NPROCS", tasks);
}

static void apply(job_desc_msg_t *desc, const struct admission_changes *changes)
{
    change_number(&desc->min_nodes, changes->min_nodes);
    change_number(&desc->max_nodes, changes->max_nodes);
    if (changes->few_nodes)
        desc->bitflags |= USE_MIN_NODES;
    change_tasks(desc, changes->tasks);
    change_number(&desc->min_cpus, changes->min_cpus);
    change_number(&desc->time_limit, changes->time_limit);
    change_number(&desc->time_min, changes->time_min);
    if (changes->kill_on_node_fail != ADMISSION_UNSET)
        desc->kill_on_node_fail = (uint16_t)changes->kill_on_node_fail;
    if (changes->requeue != ADMISSION_UNSET)
        desc->requeue = (uint16_t)changes->requeue;
    change_text(&desc->admin_comment, changes->admin_comment);
    change_text(&desc->name, changes->name);
    change_text(&desc->partition, changes->partition);
    change_text(&desc->qos, changes->qos);
    change_text(&desc->features, changes->features);
    change_nodes(&desc->exc_nodes, changes->excluded);
}

static int error_code(enum admission_refusal refusal)
{
    switch (refusal) {
    case ADMISSION_REFUSE_NODES:
        return ESLURM_INVALID_NODE_COUNT;
    case ADMISSION_REFUSE_KIND:
        return ESLURM_NOT_SUPPORTED;
    case ADMISSION_REFUSE_JOB:
        return ESLURM_INVALID_JOB_ID;
    case ADMISSION_REFUSE_OWNER:
        return ESLURM_ACCESS_DENIED;
    case ADMISSION_REFUSE_SITE:
        return SLURM_ERROR;
    case ADMISSION_REFUSE_VALUE:
        break;
    }
    return EINVAL;
}

/* Slurm's commands show this also where the job is accepted. */
static void tell_user(const char *text, char **err_msg)
{
    if (!err_msg)
        return;
    xfree(*err_msg);
    *err_msg = xstrdup_printf("elastic: %s", text);
}

static int refuse(const job_desc_msg_t *desc, int code, const struct error *err, char **err_msg)
{
    info("job_submit/elastic: refused a job of uid %u: %s", desc->user_id, err->text);
    tell_user(err->text, err_msg);
    return code;
}

/* Slurm refuses longer ones itself, but later. Each word in it would be looked up here, while
 * slurmctld waits. */
#define PARTITION_TEXT_MAX 1024
#define NODES_TEXT_MAX     65536 /* to make each name one takes 35 ms at worst; the square of it */

static int decide_base(const struct conf *conf, const job_desc_msg_t *desc,
                       struct admission_changes *changes, struct error *err)
{
    struct admission_request request;

    if (desc->partition && strlen(desc->partition) > PARTITION_TEXT_MAX)
        return error_set(err, "--partition: more than %d bytes", PARTITION_TEXT_MAX);
    read_request(desc, &request);
    /* A reservation may bring its own partition. */
    if (desc->partition || !desc->reservation)
        request.partition_nodes = base_job_partition_nodes(desc->partition,
                                                           &request.partition_name);
    if (!request.partitions)
        request.partitions = request.partition_name;
    if (admission_has_roles(&request.env))
        request.whole_nodes = base_job_partition_node(request.partitions,
                                                      &request.partition_node) ||
                              desc->shared == JOB_SHARED_NONE;
    return admission_base(conf, &request, changes, err);
}

static int64_t microseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void note(job_desc_msg_t *desc, const char *text)
{
    xstrfmtcat(desc->admin_comment, "%s%s", desc->admin_comment && *desc->admin_comment ? " " : "",
               text);
}

/* For accounting, which keeps no other comment by default (lib/usage). */
static void note_base(job_desc_msg_t *desc, const struct conf *conf,
                      const struct admission_job *base, int pool)
{
    char text[ADMISSION_NOTE_MAX];

    if (!desc->admin_comment || !*desc->admin_comment)
        note(desc,
             admission_note(base->id, base->restarts,
                            pool >= 0 && pool < conf->pool_count ? conf->pools[pool].name : NULL,
                            text, sizeof(text)));
}

/* There is no job yet. The job that there will be can be recognised by what is written here. */
static void remember(job_desc_msg_t *desc, const struct admission_job *base, int pool,
                     const struct admission_changes *changes)
{
    struct admitted_entry entry = {.uid = desc->user_id,
                                   .base = base->id,
                                   .restarts = base->restarts,
                                   .pool = pool,
                                   .nodes = changes->counted};
    char mark[ADMITTED_MARK_MAX];

    if (changes->counted == ADMISSION_UNSET)
        return; /* its base is not elastic for Slurm, and the site has no limit */
    admitted_mark(admitted_add(&admitted, &entry, microseconds()), mark, sizeof(mark));
    note(desc, mark);
}

static int decide_extension(const struct conf *conf, job_desc_msg_t *desc,
                            struct admission_changes *changes, struct error *err)
{
    struct admission_request request;
    struct admission_job base;
    struct admission_siblings siblings;
    int pool, rc;

    read_request(desc, &request);
    request.base_left = number_in_environment(desc, "ELASTIC_BASE_LEFT");
    base_job_find(admission_role(&request.env) == ADMISSION_EXTENSION
                      ? admission_base_of(&request.env)
                      : admission_marked_base(request.comment),
                  time(NULL), &base);
    pool = admission_pool(conf, &request.env, &base);
    base_job_siblings(conf, &base, pool, &admitted, microseconds(), &siblings);
    rc = admission_extension(conf, &request, &base, &siblings, changes, err);
    if (rc == 0) {
        note_base(desc, conf, &base, pool);
        remember(desc, &base, pool, changes);
        admission_shorten(
            &request,
            base_job_most_minutes(changes->partition ? changes->partition : desc->partition,
                                  changes->qos ? changes->qos : desc->qos),
            changes);
    }
    free((char *)siblings.nodes);
    return rc;
}

/* Would the nodes of this job go to an elastic job, or to an extension? */
static bool merges(const job_desc_msg_t *desc)
{
    const char *rest = desc->dependency;
    struct admission_job job;
    uint32_t id;

    for (int i = 0; (rest = admission_merged_into(rest, &id)) != NULL; i++) {
        if (i == MERGED_MAX)
            return true; /* nobody needs so many */
        base_job_find(id, time(NULL), &job);
        if (job.known && job.role != ADMISSION_RIGID)
            return true;
    }
    return false;
}

/* Partitions are known from the first request on; the log has each mistake once for each
 * configuration. */
static void look_at_pools(const struct conf *conf)
{
    static time_t seen;

    if (seen == base_job_configured())
        return;
    seen = base_job_configured();
    for (int i = 0; i < conf->pool_count; i++)
        if (!base_job_partition_exists(conf->pools[i].partition))
            error(
                "job_submit/elastic: elastic.conf: pool %s: there is no partition '%s', so no job "
                "can grow in this pool",
                conf->pools[i].name, error_value(conf->pools[i].partition).text);
}

static int decide(job_desc_msg_t *desc, enum admission_role role, char **err_msg)
{
    struct admission_changes changes;
    const struct conf *conf;
    struct error err;
    int rc;

    if (!(conf = site_conf(base_job_configured(), time(NULL), &err)))
        return refuse(desc, SLURM_ERROR, &err, err_msg);
    look_at_pools(conf);
    if (desc->exc_nodes && strlen(desc->exc_nodes) > NODES_TEXT_MAX) {
        error_set(&err, "--exclude: more than %d bytes", NODES_TEXT_MAX);
        return refuse(desc, EINVAL, &err, err_msg);
    }
    rc = role == ADMISSION_BASE ? decide_base(conf, desc, &changes, &err)
                                : decide_extension(conf, desc, &changes, &err);
    if (rc < 0)
        return refuse(desc, error_code(changes.refusal), &err, err_msg);
    apply(desc, &changes);
    if (changes.warning)
        tell_user(changes.warning, err_msg);
    admission_changes_clear(&changes);
    return SLURM_SUCCESS;
}

int job_submit(job_desc_msg_t *desc, uint32_t submit_uid, char **err_msg)
{
    const struct admission_env env = {desc->spank_job_env, desc->spank_job_env_size};
    enum admission_role role;
    struct error err;
    int rc;

    (void)submit_uid;
    /* First: all else looks at each entry. */
    if (admission_check_env(&env, &err) < 0)
        return refuse(desc, ESLURM_NOT_SUPPORTED, &err, err_msg);
    role = admission_role_of_job(&env, desc->comment);
    if (desc->dependency && merges(desc)) {
        admission_update(&(struct admission_update){.merges = true}, &err);
        return refuse(desc, ESLURM_NOT_SUPPORTED, &err, err_msg);
    }
    if (role == ADMISSION_RIGID)
        return SLURM_SUCCESS;
    pthread_mutex_lock(&mutex);
    rc = decide(desc, role, err_msg);
    pthread_mutex_unlock(&mutex);
    return rc;
}

/* Of an update: "ALL", and what no cluster has, is as many as there are. */
static int nodes_of_update(uint32_t value)
{
    return value != NO_VAL && value > INT32_MAX ? INT32_MAX : number32(value);
}

/* ADMISSION_UNSET: there is no list. One that is too long has more names than any elastic job may
 * have. */
static int count_listed(const char *names)
{
    slurm_hostlist *list;
    int count;

    if (!names || !*names)
        return ADMISSION_UNSET;
    if (strlen(names) > NODES_TEXT_MAX)
        return INT32_MAX;
    if (!(list = slurm_hostlist_create(names)))
        return ADMISSION_UNSET;
    slurm_hostlist_uniq(list);
    count = slurm_hostlist_count(list);
    slurm_hostlist_destroy(list);
    return count;
}

/* Slurm 22.05 shows the user only the code here; so the text goes to the log as well. */
int job_modify(job_desc_msg_t *desc, struct job_record *record,
               uint32_t submit_uid WITH_ERROR_TEXT(char **err_msg))
{
    struct admission_job job;
    struct admission_update update = {.comment = desc->comment};
    struct sizes sizes = {0};
    struct error err;

    if (base_job_is_admin(submit_uid))
        return SLURM_SUCCESS;
    base_job_read(record, time(NULL), &job);
    update.role = job.role;
    update.roles = admission_has_roles(&job.env);
    if (update.role == ADMISSION_BASE && !update.roles &&
        admission_sizes(&job.env, &sizes, &err) < 0)
        return SLURM_SUCCESS; /* submitted before this plugin was there */
    update.pending = job.pending;
    update.needs = desc->num_tasks != NO_VAL || desc->min_cpus != NO_VAL ||
                   desc->max_cpus != NO_VAL || desc->tres_per_job || desc->tres_per_node ||
                   desc->tres_per_socket || desc->tres_per_task;
    update.min_nodes = nodes_of_update(desc->min_nodes);
    /* 0: as many as the partition lets it have. */
    update.max_nodes = desc->max_nodes ? nodes_of_update(desc->max_nodes) : INT32_MAX;
    update.longer = record->time_limit != NO_VAL && record->time_limit != INFINITE &&
                    desc->time_limit != NO_VAL && desc->time_limit > record->time_limit;
    update.listed = update.role != ADMISSION_RIGID ? count_listed(desc->req_nodes)
                                                   : ADMISSION_UNSET;
    update.min = update.roles ? job.node_count : sizes.min;
    update.placement = desc->partition || desc->qos || desc->features;
    update.merges = desc->dependency && merges(desc);
    if (admission_update(&update, &err) == 0)
        return SLURM_SUCCESS;
    info("job_submit/elastic: refused a change of job %u: %s", job.id, err.text);
    tell_user(err.text, ERROR_TEXT(err_msg));
    return UPDATE_REFUSAL(submit_uid == job.uid);
}
