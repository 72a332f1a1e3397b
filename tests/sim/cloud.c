/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pools of a site: partitions with nodes of their own, which a cloud makes when Slurm powers them
 * up, as long as it has some. */
#include "lib/conf.h"
#include "tests/sim/sim.h"

#define FAILS_AFTER (2 * SECOND)  /* where the cloud says at once that it has none */
#define RESET_AFTER (90 * SECOND) /* until the site makes a node of the cloud usable again */

static struct setup_pool pools[CLOUD_MAX];
static int pool_count;

int cloud_pools(void)
{
    return pool_count;
}

static int find(const struct setup_pool *list, int count, const char *name)
{
    for (int i = 0; name != NULL && i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            return i;
    return -1;
}

static const struct setup_pool *pool_in(const char *partition)
{
    int i = find(pools, pool_count, partition);

    return i < 0 ? NULL : &pools[i];
}

void cloud_begin(const struct setup *setup)
{
    int next = setup->nodes;

    pool_count = setup->pool_count;
    memcpy(pools, setup->pools, sizeof(pools));
    for (int i = 0; i < node_count(); i++)
        node_at(i)->pool = -1;
    for (int i = 0; i < pool_count; i++)
        for (int k = 0; k < pools[i].nodes; k++) {
            struct node *node = node_at(next++);

            node->pool = i;
            node->asleep = pools[i].boot > 0 || k >= pools[i].nodes - pools[i].asleep;
        }
}

/* ---- elastic.conf, prices -------------------------------------------------------------------- */

char *cloud_conf(const struct setup *setup)
{
    char *text = calloc(1, 4096);

    MUST(text != NULL);
    snprintf(text, 4096, "%s%s", setup->site, setup->pool_count == 0 ? "[pool elastic]\n" : "");
    for (int i = 0; i < setup->pool_count; i++)
        snprintf(text + strlen(text), 4096 - strlen(text), "[pool %s]\n%s", setup->pools[i].name,
                 setup->pools[i].keys);
    return text;
}

const char *cloud_prices(void)
{
    static char text[1024];

    text[0] = '\0';
    for (int i = 0; i < pool_count; i++)
        if (pools[i].price >= 0)
            snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s %g\n", pools[i].name,
                     pools[i].price);
    return text;
}

static double price_of(int i)
{
    const struct pool *pool = conf_pool(setup_conf, pools[i].name);

    if (!conf_has_prices(setup_conf) && pools[i].billing >= 0)
        return pools[i].billing;
    return pools[i].price >= 0 ? pools[i].price : pool->price > 0 ? pool->price : 0;
}

void cloud_account(void)
{
    for (const struct job *job = slurm_jobs(); pool_count > 0 && job != NULL; job = job->next) {
        int i = find(pools, pool_count, job->partition);

        if (i >= 0 && (job->state == SLURM_RUNNING || job->state == SLURM_ENDING))
            job->training->cost += job->count * price_of(i) / 3600;
    }
}

/* ---- what happens to a pool ------------------------------------------------------------------ */

static void set_text(char *to, size_t size, const char *word)
{
    snprintf(to, size, "%s", word);
    for (char *at = to; (at = strchr(at, '_')) != NULL;)
        *at = ' ';
}

/* Nodes of a pool that its cloud has made. */
static int made(int pool)
{
    int count = 0;

    for (int i = 0; i < node_count(); i++)
        count += node_at(i)->pool == pool && !node_at(i)->asleep && node_at(i)->up &&
                 node_at(i)->up_at != NEVER;
    return count;
}

/* What is more than the cloud has left it takes, the last ones first. */
static void take_back(int pool, int lead)
{
    int excess = pools[pool].capacity >= 0 ? made(pool) - pools[pool].capacity : 0;

    for (int i = node_count() - 1; i >= 0 && excess > 0; i--) {
        struct node *node = node_at(i);

        if (node->pool != pool || node->asleep || !node->up || node->taken_at > clock_now())
            continue;
        fault_hurt(node);
        node_reclaim(node, lead);
        excess--;
    }
}

static void change(struct setup_pool *pool, bool running, char **words)
{
    const char *value = words[2] != NULL ? words[2] : "";

    if (strcmp(words[0], "boot") == 0 && running && pool->boot == 0)
        return; /* it has no power saving */
    if (strcmp(words[0], "boot") == 0)
        pool->boot = (uint64_t)(atof(value) * (double)SECOND);
    else if (strcmp(words[0], "asleep") == 0)
        pool->asleep = atoi(value);
    else if (strcmp(words[0], "capacity") == 0)
        pool->capacity = value[0] >= '0' && value[0] <= '9' ? atoi(value) : -1;
    else if (strcmp(words[0], "lacks") == 0)
        pool->fails_fast = strcmp(value, "fast") == 0;
    else if (strcmp(words[0], "refuse") == 0)
        set_text(pool->refusal, sizeof(pool->refusal), value);
    else if (strcmp(words[0], "block") == 0)
        set_text(pool->held, sizeof(pool->held), value);
    else if (strcmp(words[0], "billing") == 0)
        pool->billing = atof(value);
    else
        pool->price = atof(value);
}

bool cloud_do(struct setup_pool *list, int count, char **words)
{
    static const char *const verbs[] = {"boot",   "asleep", "capacity", "lacks",
                                        "refuse", "block",  "price",    "billing"};
    int i = find(list != NULL ? list : pools, list != NULL ? count : pool_count, words[1]);
    bool known = false;

    for (size_t k = 0; k < sizeof(verbs) / sizeof(verbs[0]); k++)
        known = known || strcmp(words[0], verbs[k]) == 0;
    if (i < 0 || !known)
        return false;
    change(list != NULL ? &list[i] : &pools[i], list == NULL, words);
    if (list != NULL)
        return true;
    if (strcmp(words[0], "capacity") == 0 && words[3] != NULL)
        take_back(i, atoi(words[3]));
    slurm_try_soon();
    return true;
}

/* ---- what Slurm does with its nodes ---------------------------------------------------------- */

bool cloud_serves(const struct node *node, const char *partition)
{
    return pool_count == 0 || node->pool == find(pools, pool_count, partition);
}

const char *cloud_refusal(const char *partition)
{
    const struct setup_pool *pool = pool_in(partition);

    return pool != NULL && pool->refusal[0] != '\0' ? pool->refusal : NULL;
}

const char *cloud_held(const char *partition)
{
    const struct setup_pool *pool = pool_in(partition);

    return pool != NULL && pool->held[0] != '\0' ? pool->held : NULL;
}

bool cloud_is_fallback(const char *partition)
{
    const struct pool *pool = conf_pool(setup_conf, partition);

    return pool != NULL && pool->fallback;
}

bool cloud_replaces(const char *partition, const char *other)
{
    const struct pool *pool = conf_pool(setup_conf, partition),
                      *replaced = conf_pool(setup_conf, other);

    return pool != NULL && replaced != NULL && !pool->fallback &&
           (replaced->fallback ||
            (replaced->reclaim && setup_conf->reclaim.advice == CONF_ADVICE_REPLACE));
}

double cloud_billing(const char *partition)
{
    const struct setup_pool *pool = pool_in(partition);

    return pool != NULL ? pool->billing : -1;
}

bool cloud_boots(const char *partition)
{
    const struct setup_pool *pool = pool_in(partition);

    return pool != NULL && pool->boot > 0;
}

bool cloud_saves_power(const char *partition)
{
    const struct setup_pool *pool = pool_in(partition);

    return pool != NULL && (pool->boot > 0 || pool->asleep > 0);
}

void cloud_power_up(struct node *node)
{
    const struct setup_pool *pool = &pools[node->pool];
    bool there = pool->capacity < 0 || made(node->pool) < pool->capacity;

    node->asleep = false;
    node->up_at = there ? clock_now() + pool->boot : NEVER;
}

uint64_t cloud_gives_up(const struct job *job)
{
    const struct setup_pool *pool = pool_in(job->partition);

    return pool != NULL && pool->fails_fast ? FAILS_AFTER : SLURM_RESUME_TIMEOUT * SECOND;
}

static void power_down(struct node *node)
{
    node->asleep = true;
    node->up_at = node->taken_at = 0;
    node->noticed = false;
    node->since = clock_now();
}

static void reset(void *arg)
{
    struct node *node = arg;

    node->down = false;
    power_down(node);
    node_return(node);
    slurm_try_soon();
}

void cloud_failed(struct node *node)
{
    if (node->up_at != NEVER)
        return;
    node->down = true;
    clock_in(RESET_AFTER, NULL, reset, node);
}

void cloud_taken(struct node *node)
{
    if (node->pool >= 0 && pools[node->pool].boot > 0)
        clock_in(RESET_AFTER, NULL, reset, node);
}

static void suspend(void *arg)
{
    struct node *node = arg;

    if (node->job == NULL && node->up && !node->down && !node->asleep &&
        clock_now() >= node->since + CLOUD_SUSPEND * SECOND)
        power_down(node);
}

void cloud_freed(struct node *node, struct training *training)
{
    node->since = clock_now();
    if (node->pool < 0 || pools[node->pool].boot == 0)
        return;
    training->cost += price_of(node->pool) / 3600 * CLOUD_SUSPEND;
    clock_in(CLOUD_SUSPEND * SECOND, NULL, suspend, node);
}
