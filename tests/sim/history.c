/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Random histories: a job of random size and speed, and a few things that happen to it, at
 * random times or in the midst of a change. All of them from one seed. */
#include "tests/sim/sim.h"

#define PLANNED_MAX 12
#define LIMIT       (1500 * SECOND)

/* One thing that happens: that long after the so-manieth message of a type, or after the start. */
struct planned {
    const char *type; /* NULL: after the start */
    int wanted, seen;
    uint64_t delay;
    char line[64], undo[64]; /* "": nothing is undone */
    uint64_t undo_after;
    bool base, second, done; /* second: it happens to the second job */
};

static struct planned planned[PLANNED_MAX];
static int planned_count;
static uint64_t seed_now;
/* Of each job: the base has come together, and a world has begun. */
static bool begun[TRAININGS_MAX];
/* … the training is through, or the leader has told its members to end. */
static bool ending[TRAININGS_MAX];

/* ---- what happens ---------------------------------------------------------------------------- */

struct fault {
    const char *line, *undo;
    uint32_t undo_least, undo_most; /* tenths of a second */
    int weight;
    bool base; /* one of the base is lost, or all of it: once, if there are others */
};

static const struct fault faults[] = {
    {"preempt last 5", NULL, 0, 0, 20, false},
    {"preempt last 30", NULL, 0, 0, 5, false},
    {"cancel last", NULL, 0, 0, 3, false},
    {"kill worker any", NULL, 0, 0, 10, false},
    {"exit worker any 1", NULL, 0, 0, 5, false},
    {"stop worker any", NULL, 0, 0, 4, false},
    {"kill agent extension", NULL, 0, 0, 6, false},
    {"stop agent extension", "continue agent @", 5, 80, 4, false},
    {"stop agent base", "continue agent @", 1, 15, 3, false},
    /* Longer, and a base of one node ends the job: known/leader_asleep.sim. */
    {"stop agent leader", "continue agent @", 1, 4, 3, false},
    {"crash extension", "return @", 150, 600, 6, false},
    {"cut extension", "heal @", 5, 400, 5, false},
    {"freeze extension", "thaw @", 5, 80, 3, false},
    {"drain any", "resume @", 50, 300, 4, false},
    {"reclaim extension", NULL, 0, 0, 2, false},
    {"reclaim extension 30", "return @", 310, 600, 2, false},
    {"advise extension", NULL, 0, 0, 1, false},
    {"reclaim base 30", "return @", 310, 600, 3, true},
    {"slurm down", "slurm up", 20, 400, 5, false},
    {"slurm refuses", "slurm accepts", 20, 200, 3, false},
    {"kill agent base", NULL, 0, 0, 5, true},
    {"kill agent leader", NULL, 0, 0, 6, true},
    {"crash base", "return @", 200, 600, 4, true},
    {"crash leader", NULL, 0, 0, 5, true},
    {"cut base", "heal @", 5, 400, 4, true},
    {"cut leader", "heal @", 5, 400, 5, true},
    {"freeze leader", "thaw @", 5, 100, 3, true},
    {"freeze base", "thaw @", 5, 100, 2, true},
    {"hang worker any", NULL, 0, 0, 4, false},
    {"limit last 35", NULL, 0, 0, 3, false},
    {"limit job 20", NULL, 0, 0, 2, true},
    {"requeue job", NULL, 0, 0, 4, true},
    {"cancel job", NULL, 0, 0, 2, true},
};

static const struct fault *draw_fault(bool may_lose_base)
{
    int sum = 0, at;

    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        sum += may_lose_base || !faults[i].base ? faults[i].weight : 0;
    at = (int)chance((uint32_t)sum);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        if (faults[i].base && !may_lose_base)
            continue;
        at -= faults[i].weight;
        if (at < 0)
            return &faults[i];
    }
    return &faults[0];
}

static void draw_when(struct planned *p)
{
    static const char *const types[] = {
        "hold",  "held",     "run_to",  "next",   "start",   "ready",   "stepping",  "prepare",
        "torn",  "exit",     "drained", "parked", "reserve", "welcome", "join",      "leaving",
        "begun", "reserved", "open",    "stop",   "release", "finish",  "successors"};

    if (chance_percent(35)) {
        p->type = NULL;
        p->delay = chance_between(500 * MS, 40 * SECOND);
        return;
    }
    p->type = types[chance(sizeof(types) / sizeof(types[0]))];
    p->wanted = 1 + (int)chance(chance_percent(60) ? 4 : 12);
    p->delay = chance_percent(60) ? chance_between(0, 5 * MS) : chance_between(0, 2 * SECOND);
}

static void plan_fault(struct planned *p, const struct fault *fault)
{
    snprintf(p->line, sizeof(p->line), "%s", fault->line);
    snprintf(p->undo, sizeof(p->undo), "%s", fault->undo != NULL ? fault->undo : "");
    p->undo_after = chance_between(fault->undo_least, fault->undo_most) * 100 * MS;
    p->base = fault->base;
}

/* Two faults within one change, which a preemption or a growth begins: each with each, at each
 * of its messages. */
static void plan_pair(uint64_t number)
{
    static const char *const types[] = {"hold", "held",     "run_to",  "next",
                                        "exit", "stepping", "prepare", "ready"};
    static const uint64_t pauses[] = {0, 3 * MS, 300 * MS};
    const size_t count = sizeof(faults) / sizeof(faults[0]);
    const char *type = types[number % 8];
    const struct fault *first = &faults[number / 8 % count],
                       *second = &faults[number / 8 / count % count];
    uint64_t pause = pauses[number / 8 / count / count % 3];

    memset(planned, 0, sizeof(planned));
    planned_count = 3;
    snprintf(planned[0].line, sizeof(planned[0].line), "preempt last 5");
    planned[0].delay = chance_between(6 * SECOND, 12 * SECOND);
    plan_fault(&planned[1], first);
    planned[1].type = type;
    planned[1].wanted = 2 + (int)chance(6);
    planned[1].delay = chance_between(0, 2 * MS);
    planned[2] = planned[1];
    plan_fault(&planned[2], first->base && second->base ? &faults[0] : second);
    planned[2].delay += pause;
}

static void draw_plan(const struct setup *s)
{
    int base = s->jobs[0].base;
    int count = 1 + (int)chance(chance_percent(70) ? 3 : 6);
    bool lost_base = base < 2;

    memset(planned, 0, sizeof(planned));
    planned_count = 0;
    for (int i = 0; i < count; i++) {
        struct planned *p = &planned[planned_count++];
        const struct fault *fault = draw_fault(!lost_base);

        lost_base = lost_base || fault->base;
        draw_when(p);
        plan_fault(p, fault);
        p->second = s->job_count > 1 && chance_percent(50) && !(fault->base && s->jobs[1].base < 2);
    }
    if (chance_percent(10)) {
        struct planned *p = &planned[planned_count++];

        draw_when(p);
        snprintf(p->line, sizeof(p->line), "resize %d", base + (int)chance(4));
    }
}

/* ---- when ------------------------------------------------------------------------------------ */

/* A name in place of a role, for what undoes it. */
static bool name_target(char *line, const char **undo, char *text, size_t size)
{
    char *words[4] = {NULL}, copy[64], *rest = copy, *word;
    int count = 0;
    const char *name;

    snprintf(copy, sizeof(copy), "%s", line);
    while (count < 4 && (word = strsep(&rest, " ")) != NULL)
        words[count++] = word;
    for (int i = 1; i < count; i++) {
        name = fault_target(words[i]);
        if (name == NULL)
            continue;
        if (name[0] == '\0')
            return false; /* there is none now */
        words[i] = (char *)name;
        if ((*undo)[0] != '\0' && strchr(*undo, '@') != NULL) {
            snprintf(text, size, "%.*s%s", (int)(strchr(*undo, '@') - *undo), *undo, name);
            *undo = text;
        }
    }
    line[0] = '\0';
    for (int i = 0; i < count; i++)
        snprintf(line + strlen(line), 64 - strlen(line), "%s%s", i > 0 ? " " : "", words[i]);
    return true;
}

static void undo(void *arg)
{
    char why[160];

    if (!fault_do(arg, why, sizeof(why)))
        sim_bug(__FILE__, __LINE__, why);
    free(arg);
}

static void happen(void *arg)
{
    struct planned *p = arg;
    const char *back = p->undo, *prefix = p->second ? "second " : "", *rest = prefix;
    const struct training *t = fault_subject(&rest);
    int job = (int)(t - trainings);
    char text[64], line[80], why[160];

    /* Before all have joined there is nobody who could lead instead. An agent that is killed
     * between "finish" and its end leaves nobody who could say how the job has ended. */
    ending[job] = ending[job] || t->committed >= t->total;
    if (p->base && !begun[job]) {
        clock_in(100 * MS, NULL, happen, p);
        return;
    }
    if (strncmp(p->line, "hang", 4) == 0 && t->policy->hang_wait == 0)
        return; /* nobody looks for that */
    if ((p->base && ending[job]) || !name_target(p->line, &back, text, sizeof(text)))
        return;
    snprintf(line, sizeof(line), "%s%s", prefix, p->line);
    if (!fault_do(line, why, sizeof(why)))
        sim_bug(__FILE__, __LINE__, why);
    if (back[0] != '\0')
        clock_in(p->undo_after, NULL, undo, strdup(back));
}

static void on_message(const struct host *from, const struct host *to, const char *type,
                       json_object *msg)
{
    struct training *t = from->job->training;
    int job = (int)(t - trainings);

    invariants_message(from, to, type, msg);
    begun[job] = begun[job] || strcmp(type, "stepping") == 0;
    if (strcmp(type, "finish") == 0) {
        ending[job] = true;
        /* Who is cut off then finds nobody when it is back. */
        t->may_fail |= !network_reaches(from->node, to->node);
    }
    if (trace_on && strcmp(type, "beat") != 0)
        trace("%-5s -> %-5s %s", host_name(from), host_name(to),
              json_object_to_json_string_ext(msg, JSON_C_TO_STRING_PLAIN));
    for (int i = 0; i < planned_count; i++) {
        struct planned *p = &planned[i];

        if (p->done || p->type == NULL || strcmp(p->type, type) != 0 || ++p->seen < p->wanted)
            continue;
        p->done = true;
        clock_in(p->delay, NULL, happen, p);
    }
}

/* ---- the job --------------------------------------------------------------------------------- */

static void draw_sizes(struct setup_job *j)
{
    int more = 1 + (int)chance(4);

    j->base = 1 + (int)chance(3);
    switch (chance(5)) {
    case 0:
        snprintf(j->sizes, sizeof(j->sizes), "%d:%d:2", j->base,
                 j->base + 2 * (1 + (int)chance(2)));
        break;
    case 1:
        snprintf(j->sizes, sizeof(j->sizes), "%d,%d,%d", j->base, j->base + 1, j->base + 3);
        break;
    default:
        snprintf(j->sizes, sizeof(j->sizes), "%d:%d", j->base, j->base + more);
    }
}

static void add_option(struct setup_job *j, const char *name, uint32_t value)
{
    snprintf(j->options[j->option_count++], 64, "%s=%u", name, value);
}

static void draw_job(struct setup_job *j)
{
    struct training *t = &j->training;

    draw_sizes(j);
    snprintf(j->mode, sizeof(j->mode), "%s", chance_percent(55) ? "live" : "restart");
    j->slots = chance_percent(80) ? 1 : 2;
    t->step = chance_between(200 * MS, 1500 * MS);
    t->total = (int64_t)(chance_between(10 * SECOND, 40 * SECOND) / t->step) + 3;
    t->exec = chance_between(20 * MS, 500 * MS);
    t->load = chance_between(50 * MS, 2 * SECOND);
    t->init = chance_between(10 * MS, 300 * MS);
    t->save = chance_between(20 * MS, 1 * SECOND);
    t->every = chance_percent(50) ? (int)chance(20) : 10;
    t->gate = chance_percent(80) || strcmp(j->mode, "live") == 0;
    t->early_start = chance_percent(90);
    add_option(j, "grow-delay", chance(4));
    add_option(j, "snooze", chance(3));
    add_option(j, "fault-wait", 60);
    if (chance_percent(30))
        add_option(j, "hang-wait", 5 + chance(20));
}

/* Another one at once, which may take the first one's extensions. */
static void draw_second(struct setup *s)
{
    struct setup_job *j = &s->jobs[s->job_count++];

    *j = s->jobs[0];
    j->option_count -= j->option_count > 6 ? 4 : 3;
    draw_job(j);
    j->priority = 1;
    j->submitted = chance_percent(70) ? chance_between(1, 20 * SECOND) : 0;
    s->nodes += j->submitted == 0 ? j->base : 0;
}

static void draw_setup(struct setup *s)
{
    setup_defaults(s);
    draw_job(&s->jobs[0]);
    s->nodes = s->jobs[0].base + 3 + (int)chance(4);
    s->network.delay_most = chance_between(300, 5 * MS);
    s->network.slow_percent = chance(5);
    s->network.slow_most = chance_between(10 * MS, 300 * MS);
    s->files_everywhere = chance_percent(70);
    s->slurm.grace = 15 + (int)chance(30);
    if (chance_percent(15))
        draw_second(s);
}

/* ---- pools ----------------------------------------------------------------------------------- */

static void add_key(struct setup_pool *pool, const char *name, uint32_t value)
{
    snprintf(pool->keys + strlen(pool->keys), sizeof(pool->keys) - strlen(pool->keys), "%s = %u\n",
             name, value);
}

static void add_flag(struct setup_pool *pool, const char *name, uint32_t percent)
{
    snprintf(pool->keys + strlen(pool->keys), sizeof(pool->keys) - strlen(pool->keys), "%s = %s\n",
             name, chance_percent(percent) ? "yes" : "no");
}

static void draw_pool(struct setup_pool *pool, const char *name)
{
    *pool = (struct setup_pool){
        .nodes = 1 + (int)chance(4), .capacity = -1, .price = -1, .billing = -1};
    snprintf(pool->name, sizeof(pool->name), "%s", name);
    add_key(pool, "price", 30 * (1 + chance(3)));
    add_key(pool, "max_resume", 1 + chance(3));
    add_flag(pool, "fallback", strcmp(name, "demand") == 0 ? 90 : 0);
    add_flag(pool, "wake", 70);
    add_flag(pool, "reclaim", strcmp(name, "demand") == 0 ? 0 : 80);
    if (chance_percent(30))
        add_key(pool, "max_nodes", 1 + chance(3));
    if (chance_percent(15))
        add_key(pool, "max_time", 1 + chance(3));
    if (chance_percent(70))
        pool->boot = chance_between(SECOND, 25 * SECOND);
    else
        pool->asleep = (int)chance((uint32_t)pool->nodes + 1);
    if (chance_percent(30))
        pool->capacity = (int)chance(3);
    pool->fails_fast = chance_percent(60);
}

static void draw_policy(struct setup_job *j)
{
    j->training.works = chance_percent(60);
    if (j->training.works)
        j->training.total *= 2 + chance(4);
    switch (chance(4)) {
    case 0:
        add_option(j, "fallback", chance(20));
        break;
    case 1:
        snprintf(j->options[j->option_count++], 64, "deadline=now+%useconds", 30 + chance(300));
        break;
    }
    if (chance_percent(20))
        add_option(j, "budget", 1);
    if (chance_percent(20))
        add_option(j, "max-price", 60);
    if (chance_percent(15))
        snprintf(j->options[j->option_count++], 64, "wake=no");
    if (chance_percent(15))
        snprintf(j->options[j->option_count++], 64, "reclaim=shrink");
}

/* What happens to a pool: verb and words, and the words that undo it; NULL: nothing does. */
static const char *const cloud_faults[][3] = {
    {"capacity", " 0 30", " all"},  {"capacity", " 1 5", " all"},
    {"capacity", " 0", " 2 30"},    {"capacity", " all", NULL},
    {"refuse", " no_such_qos", ""}, {"block", " QOSMaxNodePerUserLimit", ""},
    {"boot", " 20", " 5"},          {"price", " 150", " 30"},
    {"lacks", " fast", NULL},
};

static void plan_cloud(struct planned *p, const char *pool)
{
    const char *const *fault = cloud_faults[chance(sizeof(cloud_faults) / sizeof(cloud_faults[0]))];

    draw_when(p);
    snprintf(p->line, sizeof(p->line), "%s %s%s", fault[0], pool, fault[1]);
    if (fault[2] != NULL)
        snprintf(p->undo, sizeof(p->undo), "%s %s%s", fault[0], pool, fault[2]);
    p->undo_after = chance_between(SECOND, 100 * SECOND);
}

static void draw_pools(struct setup *s)
{
    static const char *const names[] = {"spot-a", "demand", "spot-b"};
    int count = 1 + (int)chance(4);
    bool lost_base = chance_percent(60);

    s->job_count = 1;
    s->nodes = s->jobs[0].base + (int)chance(3);
    s->admission = chance_percent(50);
    s->pool_count = 2 + (int)chance(2);
    snprintf(s->site, sizeof(s->site),
             "reclaim=aws\nreclaim_advice=%s\npool_backoff=%u-%u\nprices=/prices\n",
             chance_percent(60) ? "replace" : "ignore", 2 + chance(8), 10 + chance(20));
    for (int i = 0; i < s->pool_count; i++)
        draw_pool(&s->pools[i], names[i]);
    draw_policy(&s->jobs[0]);
    memset(planned, 0, sizeof(planned));
    planned_count = 0;
    for (int i = 0; i < count; i++)
        plan_cloud(&planned[planned_count++], names[chance((uint32_t)s->pool_count)]);
    for (int i = seed_now % 16 == 0 ? 0 : (int)chance(3); i > 0; i--) {
        struct planned *p = &planned[planned_count++];

        draw_when(p);
        plan_fault(p, draw_fault(s->jobs[0].base > 1 && !lost_base));
        lost_base = lost_base || p->base;
    }
}

/* All clouds have their nodes from a moment on: a while later the job has as many as it may. */
#define CALM_FROM  (150 * SECOND)
#define CALM_CHECK (900 * SECOND)

static int to_reach; /* 0: it is no such history */

static int nodes_to_have(const struct setup_pool *pool)
{
    const char *limit = strstr(pool->keys, "max_nodes = ");
    int most = limit != NULL ? atoi(limit + strlen("max_nodes = ")) : pool->nodes;

    if (strstr(pool->keys, "wake = yes") == NULL || strstr(pool->keys, "fallback = yes") != NULL)
        return 0;
    return most < pool->nodes ? most : pool->nodes;
}

static void draw_calm(struct setup *s)
{
    struct setup_job *j = &s->jobs[0];

    s->nodes = j->base = 1 + (int)chance(2);
    snprintf(j->sizes, sizeof(j->sizes), "%d:%d", j->base, j->base + 2 + (int)chance(6));
    j->option_count = 3;
    /* Longer than the patience with requests that wait, or a third pool would never be asked. */
    snprintf(strstr(s->site, "pool_backoff"), 64, "pool_backoff=60-600\nprices=/prices\n");
    if (chance_percent(50))
        add_option(j, "fallback", chance(20));
    j->training.works = false;
    j->training.total = (int64_t)(7 * CALM_CHECK / 5 / j->training.step);
    for (int i = 0; i < planned_count; i++) {
        planned[i].type = NULL;
        planned[i].delay = chance_between(SECOND, 40 * SECOND);
    }
    to_reach = j->base;
    for (int i = 0; i < s->pool_count; i++) {
        struct setup_pool *pool = &s->pools[i];
        struct planned *p = &planned[planned_count++];
        char *life = strstr(pool->keys, "max_time");

        if (life != NULL)
            *life = '\0'; /* it is the last key */
        pool->boot = chance_between(SECOND, 25 * SECOND);
        pool->asleep = 0;
        pool->fails_fast = true;
        *p = (struct planned){.delay = CALM_FROM};
        snprintf(p->line, sizeof(p->line), "capacity %s all", pool->name);
        to_reach += nodes_to_have(pool);
    }
}

static void check_calm(void *arg)
{
    const struct training *t = trainings;
    int wanted = to_reach < t->policy->sizes.max ? to_reach : t->policy->sizes.max;

    (void)arg;
    if (t->size < wanted)
        violation("job %u has %d nodes, and there are %d", t->base->id, t->size, wanted);
}

/* --elastic-replica: two or three nodes are a unit. */
static void draw_units(struct setup *s)
{
    struct setup_job *j = &s->jobs[0];
    int unit = 2 + (int)chance(2);

    s->job_count = 1;
    j->base = unit * (1 + (int)chance(2));
    snprintf(j->sizes, sizeof(j->sizes), "%d:%d", j->base, j->base + unit * (1 + (int)chance(3)));
    add_option(j, "replica", (uint32_t)unit);
    s->nodes = j->base + 2 * unit + (int)chance(4);
    draw_plan(s);
}

static void draw_all(struct setup *s)
{
    to_reach = 0;
    clock_begin(seed_now);
    draw_setup(s);
    if (seed_now >= UNITS_FROM) {
        draw_units(s);
        return;
    }
    if (seed_now >= POOLS_FROM) {
        draw_pools(s);
        if (seed_now % 16 == 0)
            draw_calm(s);
        return;
    }
    if (seed_now < PAIRS_FROM) {
        draw_plan(s);
        return;
    }
    s->job_count = 1;
    s->jobs[0].base = 3;
    snprintf(s->jobs[0].sizes, sizeof(s->jobs[0].sizes), "3:6");
    s->nodes = 8;
    plan_pair(seed_now - PAIRS_FROM);
}

static void say_setup(const struct setup *s)
{
    for (int i = 0; i < s->job_count; i++) {
        const struct setup_job *j = &s->jobs[i];

        trace("seed %llu: %d nodes, base %d, sizes %s, mode %s, %lld steps of %llu ms",
              (unsigned long long)seed_now, s->nodes, j->base, j->sizes, j->mode,
              (long long)j->training.total, (unsigned long long)(j->training.step / MS));
    }
    for (int i = 0; i < s->pool_count; i++)
        trace("pool %s: %d nodes, boot %.1f s, capacity %d, asleep %d, %s", s->pools[i].name,
              s->pools[i].nodes, (double)s->pools[i].boot / (double)SECOND, s->pools[i].capacity,
              s->pools[i].asleep, s->pools[i].keys);
    for (int i = 0; i < s->jobs[0].option_count && s->pool_count > 0; i++)
        trace("option %s", s->jobs[0].options[i]);
    for (int i = 0; i < planned_count; i++)
        trace("planned: %s%s, %.3f s after %s %d; %s", planned[i].second ? "second " : "",
              planned[i].line, (double)planned[i].delay / (double)SECOND,
              planned[i].type != NULL ? planned[i].type : "start", planned[i].wanted,
              planned[i].undo);
}

int history_run(uint64_t seed, char *why, size_t size)
{
    struct setup setup;

    seed_now = seed;
    memset(begun, 0, sizeof(begun));
    memset(ending, 0, sizeof(ending));
    draw_all(&setup);
    setup.notices = seed % 2 == 0;
    network_watch = on_message;
    kernel_history = NULL;
    kernel_said = NULL;
    say_setup(&setup);
    setup_start(&setup, seed ^ UINT64_C(0x5bd1e995));
    for (int i = 0; i < planned_count; i++) {
        if (planned[i].type == NULL)
            clock_in(planned[i].delay, NULL, happen, &planned[i]);
        /* The nodes that could replace a lost one of the base go to the other job. */
        trainings[0].may_fail |= training_count > 1 && planned[i].base && !planned[i].second;
        /* Or no pool has some. */
        if (setup.pool_count > 0 && planned[i].base)
            trainings[0].may_fail = trainings[0].may_wait = true;
    }
    if (to_reach > 0)
        clock_in(CALM_CHECK, NULL, check_calm, NULL);
    setup_finish(to_reach > 0 ? 2 * LIMIT : LIMIT);
    snprintf(why, size, "%s", violation_text());
    return why[0] != '\0' ? -1 : 0;
}
