/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A cluster with one elastic job, from its start to its end. */
#include "lib/sizes.h"
#include "tests/sim/sim.h"

#define CLEAN_UP (90 * SECOND) /* after the job's end */

const struct conf *setup_conf;
const struct setup *setup_now;

static struct policy policies[TRAININGS_MAX];
static struct conf *conf;
static struct setup current;

void setup_defaults(struct setup *setup)
{
    struct setup_job *job = &setup->jobs[0];

    *setup = (struct setup){
        .nodes = 6,
        .job_count = 1,
        .heartbeat = 2,
        .newcomer_timeout = 60,
        .max_pending = 2,
        .files_everywhere = true,
        .network = {.delay_least = 200,
                    .delay_most = 2 * MS,
                    .slow_percent = 2,
                    .slow_most = 40 * MS},
        .slurm = {.grace = 30, .down_after = 60},
    };
    *job = (struct setup_job){
        .base = 2,
        .slots = 1,
        .sizes = "2:4",
        .mode = "live",
        .training = {.aware = true,
                     .gate = true,
                     .early_start = true,
                     .total = 60,
                     .step = 500 * MS,
                     .exec = 200 * MS,
                     .load = 800 * MS,
                     .init = 100 * MS,
                     .save = 400 * MS,
                     .leave = 50 * MS,
                     .every = 10},
    };
    snprintf(job->options[job->option_count++], 64, "grow-delay=1");
    snprintf(job->options[job->option_count++], 64, "grace=20");
    snprintf(job->options[job->option_count++], 64, "max-restarts=50");
}

static void set_policy(struct policy *policy, const struct setup_job *job)
{
    struct error err = {""};
    char pools[256] = "";

    policy_clear(policy);
    policy_init(policy);
    policy->now = (double)time(NULL);
    if (policy_set(policy, "elastic", job->sizes, &err) != 0)
        sim_bug(__FILE__, __LINE__, err.text);
    for (int i = 0; i < conf->pool_count; i++)
        snprintf(pools + strlen(pools), sizeof(pools) - strlen(pools), "%s%s", i > 0 ? "," : "",
                 conf->pools[i].name);
    policy_set(policy, "pool", pools, NULL);
    for (int i = 0; i < job->option_count; i++) {
        char name[64], *value;

        snprintf(name, sizeof(name), "%s", job->options[i]);
        value = strchr(name, '=');
        MUST(value != NULL);
        *value++ = '\0';
        if (policy_set(policy, name, value, &err) != 0)
            sim_bug(__FILE__, __LINE__, err.text);
    }
    policy_merge(policy, &conf->defaults);
    policy_defaults(policy);
    if (policy_keep_together(policy, &err) != 0)
        sim_bug(__FILE__, __LINE__, err.text);
}

static void look(void *arg)
{
    cloud_account();
    invariants_look();
    clock_in(SECOND, NULL, look, arg);
}

static enum worker_mode mode_of(const char *name)
{
    return strcmp(name, "live") == 0      ? MODE_LIVE
           : strcmp(name, "restart") == 0 ? MODE_RESTART
                                          : MODE_AUTO;
}

static void submit(void *arg)
{
    struct training *training = arg;
    const struct setup_job *job = &current.jobs[training - trainings];

    training->base = slurm_base(training, job->base, -1);
    training->base->priority = job->priority;
    training->base->limit = job->limit;
}

/* Returns the first node that the next one may have. */
static int start_job(int number, int first_node)
{
    struct setup_job *job = &current.jobs[number];
    struct training *training;

    set_policy(&policies[number], job);
    training = training_add(&job->training);
    training->policy = &policies[number];
    training->slots = job->slots;
    training->mode = mode_of(job->mode);
    training->live = training->mode == MODE_LIVE;
    training->patience = 200 * SECOND;
    if (job->submitted > 0) {
        clock_in(job->submitted, NULL, submit, training);
        return first_node;
    }
    training->base = slurm_base(training, job->base, first_node);
    training->base->priority = job->priority;
    slurm_limit(training->base, job->limit);
    return first_node + job->base;
}

static void configure(const struct setup *setup)
{
    char *text = cloud_conf(setup);
    struct error err = {""};

    conf_destroy(conf);
    conf = conf_parse("elastic.conf", text, strlen(text), &err);
    if (conf == NULL)
        sim_bug(__FILE__, __LINE__, err.text);
    free(text);
    conf->heartbeat_timeout = setup->heartbeat;
    conf->newcomer_timeout = setup->newcomer_timeout;
    conf->max_pending = setup->max_pending;
    conf->drain_look = setup->drain_look;
    for (int i = 0; i < conf->pool_count; i++)
        conf->pools[i].grace = setup->slurm.grace;
    setup_conf = conf;
}

void setup_start(const struct setup *setup, uint64_t seed)
{
    int nodes = setup->nodes;

    current = *setup;
    setup_now = &current;
    configure(setup);
    clock_begin(seed);
    trace_begin();
    network_begin(&setup->network);
    for (int i = 0; i < setup->pool_count; i++)
        nodes += setup->pools[i].nodes;
    host_begin(nodes);
    kernel_begin(setup->files_everywhere);
    slurm_begin(&setup->slurm);
    cloud_begin(setup);
    training_count = 0;
    for (int i = 0, first_node = 0; i < setup->job_count; i++)
        first_node = start_job(i, first_node);
    clock_in(SECOND, NULL, look, NULL);
}

static bool all_have_ended(void)
{
    for (int i = 0; i < training_count; i++)
        if (trainings[i].base == NULL || trainings[i].base->state != SLURM_ENDED)
            return false;
    return true;
}

void setup_finish(uint64_t limit)
{
    uint64_t until = clock_now() + limit;

    while (!all_have_ended() && violation_text()[0] == '\0' && clock_step(until))
        ;
    if (all_have_ended()) {
        until = clock_now() + CLEAN_UP;
        while (violation_text()[0] == '\0' && clock_step(until))
            ;
    }
    if (violation_text()[0] == '\0')
        invariants_end();
}
