/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A cluster with one elastic job, from its start to its end. */
#include "lib/sizes.h"
#include "tests/sim/sim.h"

#define CLEAN_UP (90 * SECOND) /* after the job's end */

const struct policy *setup_policy;
const struct conf *setup_conf;
const struct setup *setup_now;

static struct policy policy;
static struct conf *conf;
static struct setup current;

void setup_defaults(struct setup *setup)
{
    *setup = (struct setup){
        .nodes = 6,
        .base = 2,
        .slots = 1,
        .sizes = "2:4",
        .mode = "live",
        .heartbeat = 2,
        .newcomer_timeout = 60,
        .max_pending = 2,
        .files_everywhere = true,
        .training = {.aware = true,
                     .gate = true,
                     .total = 60,
                     .step = 500 * MS,
                     .exec = 200 * MS,
                     .load = 800 * MS,
                     .init = 100 * MS,
                     .save = 400 * MS,
                     .leave = 50 * MS,
                     .every = 10},
        .network = {.delay_least = 200,
                    .delay_most = 2 * MS,
                    .slow_percent = 2,
                    .slow_most = 40 * MS},
        .slurm = {.grace = 30, .down_after = 60},
    };
    snprintf(setup->options[setup->option_count++], 64, "grow-delay=1");
    snprintf(setup->options[setup->option_count++], 64, "grace=20");
    snprintf(setup->options[setup->option_count++], 64, "max-restarts=50");
}

static void set_policy(const struct setup *setup)
{
    struct error err = {""};

    policy_clear(&policy);
    policy_init(&policy);
    if (policy_set(&policy, "elastic", setup->sizes, &err) != 0)
        sim_bug(__FILE__, __LINE__, err.text);
    policy_set(&policy, "pool", "elastic", NULL);
    for (int i = 0; i < setup->option_count; i++) {
        char name[64], *value;

        snprintf(name, sizeof(name), "%s", setup->options[i]);
        value = strchr(name, '=');
        MUST(value != NULL);
        *value++ = '\0';
        if (policy_set(&policy, name, value, &err) != 0)
            sim_bug(__FILE__, __LINE__, err.text);
    }
    policy_merge(&policy, &conf->defaults);
    policy_defaults(&policy);
}

static void look(void *arg)
{
    invariants_look();
    clock_in(SECOND, NULL, look, arg);
}

static enum worker_mode mode_of(const char *name)
{
    return strcmp(name, "live") == 0      ? MODE_LIVE
           : strcmp(name, "restart") == 0 ? MODE_RESTART
                                          : MODE_AUTO;
}

struct job *setup_start(const struct setup *setup, uint64_t seed)
{
    struct job *base;

    current = *setup;
    setup_now = &current;
    if (conf == NULL)
        conf = conf_parse("elastic.conf", "[pool elastic]\n", 15, NULL);
    MUST(conf != NULL);
    conf->heartbeat_timeout = setup->heartbeat;
    conf->newcomer_timeout = setup->newcomer_timeout;
    conf->max_pending = setup->max_pending;
    conf->pools[0].grace = setup->slurm.grace;
    set_policy(setup);
    setup_policy = &policy;
    setup_conf = conf;
    current.training.mode = mode_of(setup->mode);
    current.training.live = current.training.mode == MODE_LIVE;
    clock_begin(seed);
    trace_begin();
    network_begin(&setup->network);
    host_begin(setup->nodes);
    kernel_begin(setup->files_everywhere);
    slurm_begin(&setup->slurm);
    training_begin(&current.training);
    base = slurm_base(setup->base, 0);
    invariants_begin(
        &(struct expectation){.sizes = &policy.sizes, .base = base, .patience = 200 * SECOND});
    clock_in(SECOND, NULL, look, NULL);
    return base;
}

void setup_finish(uint64_t limit)
{
    const struct job *base = invariants_expectation->base;
    uint64_t until = clock_now() + limit;

    while (base->state != SLURM_ENDED && violation_text()[0] == '\0' && clock_step(until))
        ;
    if (base->state == SLURM_ENDED) {
        until = clock_now() + CLEAN_UP;
        while (violation_text()[0] == '\0' && clock_step(until))
            ;
    }
    if (violation_text()[0] == '\0')
        invariants_end();
}
