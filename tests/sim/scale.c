/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a job of many agents costs its leader (bench/scale): CPU of the leading process alone,
 * bytes, virtual time, at links of 1 ms. */
#include <sys/resource.h>

#include "tests/sim/sim.h"

#define REST  (10 * SECOND)
#define LIMIT (300 * SECOND)

static uint64_t held_at; /* when the first was told to hold */

static struct {
    uint64_t cpu, bytes;
} at_hold;

static struct host *leading(void)
{
    for (struct host *host = host_list(); host != NULL; host = host->next)
        if (host->base && host->nodeid == 0)
            return host;
    return NULL;
}

static void on_message(const struct host *from, const struct host *to, const char *type,
                       json_object *msg)
{
    (void)to;
    (void)msg;
    if (held_at != 0 || strcmp(type, "hold") != 0)
        return;
    held_at = clock_now();
    at_hold.cpu = clock_measured();
    at_hold.bytes = network_bytes(from);
}

static bool reach(int generation)
{
    uint64_t until = clock_now() + LIMIT;

    while (trainings[0].newest < generation)
        if (violation_text()[0] != '\0' || !clock_step(until))
            return false;
    return true;
}

static void rest(uint64_t time)
{
    uint64_t until = clock_now() + time;

    while (clock_step(until))
        ;
    clock_reach(until);
}

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

int scale_run(int agents)
{
    struct setup setup;
    struct rusage usage;
    struct host *leader;
    uint64_t before;
    double join, share;

    setup_defaults(&setup);
    setup.nodes = agents + 1;
    setup.jobs[0].base = agents;
    snprintf(setup.jobs[0].sizes, sizeof(setup.jobs[0].sizes), "%d:%d", agents, agents + 1);
    setup.jobs[0].training.total = 1000000;
    setup.jobs[0].training.step = 2 * SECOND;
    setup.jobs[0].training.every = 0;
    setup.network = (struct network_options){.delay_least = MS, .delay_most = MS};
    network_watch = on_message;
    held_at = 0;
    setup_start(&setup, 1);
    slurm_refuses = true;
    network_count = true;
    for (leader = leading(); leader == NULL; leader = leading())
        ;
    clock_measure(leader);
    if (!reach(1))
        return -1;
    rest(5 * SECOND); /* first steps */
    join = seconds(clock_measured());
    before = clock_measured();
    rest(REST);
    share = seconds(clock_measured() - before) / ((double)REST / (double)SECOND);
    slurm_refuses = false;
    if (!reach(2))
        return -1;
    getrusage(RUSAGE_SELF, &usage);
    printf("| %d | %.2f s | %.1f %% | %.3f s | %.2f MB | %.0f | %.0f ms | %ld MB |\n", agents, join,
           100 * share, seconds(clock_measured() - at_hold.cpu),
           (double)(network_bytes(leader) - at_hold.bytes) / 1e6,
           (double)(network_bytes(leader) - at_hold.bytes) / agents,
           (double)(clock_now() - held_at) / (double)MS, usage.ru_maxrss / 1024);
    fflush(stdout);
    return 0;
}
