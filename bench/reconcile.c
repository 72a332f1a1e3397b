/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What it costs to compare what a job of several programs should have with what it has: reconcile
 * [ROUNDS]. 100 roles with 9901 replicas on 1000 nodes. Prints a line of Markdown for each thing
 * that happens, with the processor time in milliseconds: median, least and most of ROUNDS (default
 * 21). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/reconcile.h"

#define ROLES    100
#define REPLICAS 100 /* of each role but the leading one */
#define NODES    1000
#define ROUNDS   1000 /* at most */

enum what { ALL_START, ALL_READY, NOTHING, NODE_LOST, ALL_HALVED, WHAT_COUNT };

static const char *const names[WHAT_COUNT] = {
    [ALL_START] = "all replicas are placed and started",
    [ALL_READY] = "all say that they are ready",
    [NOTHING] = "nothing has happened",
    [NODE_LOST] = "a node is lost, its replicas start elsewhere",
    [ALL_HALVED] = "each role is halved",
};

static double spent[WHAT_COUNT][ROUNDS];

static double now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static void feed(struct reconcile *r, struct reconcile_actions *out, struct reconcile_fact fact)
{
    if (reconcile_feed(r, &fact, out) != 0)
        abort();
}

static void run(struct reconcile *r, struct reconcile_actions *out, double now)
{
    if (reconcile_run(r, now, out) != 0)
        abort();
}

static void make_roles(struct roles *roles, struct role *list, char (*role_names)[8])
{
    for (int i = 0; i < ROLES; i++) {
        snprintf(role_names[i], sizeof(role_names[i]), "r%d", i);
        list[i] = (struct role){.name = role_names[i], .leads = i == 0, .asks = true};
        list[i].min = i == 0 ? 1 : REPLICAS / 2;
        list[i].max = i == 0 ? 1 : REPLICAS;
        list[i].gang = (struct slots_gang){{1 + i % 3, i % 7 == 0, 100}, 1, 0, false};
        list[i].ready.within = 60;
        list[i].drain.within = 30;
        list[i].restart.max = 3;
        list[i].restart.first_pause = 1;
        list[i].restart.max_pause = 60;
    }
    roles->list = list;
    roles->count = ROLES;
}

static struct reconcile *begin(const struct roles *roles, struct reconcile_actions *out)
{
    struct reconcile_options options = {.roles = roles, .grow_delay = 5, .max_pending = 10};
    struct reconcile *r = reconcile_create(&options);

    if (r == NULL)
        abort();
    for (int i = 1; i <= NODES; i++) {
        struct reconcile_node node = {i, 0, {64, 8, 100000}, true, -1, false};

        feed(r, out, (struct reconcile_fact){.kind = RECONCILE_NODE, .joins = &node});
    }
    feed(r, out, (struct reconcile_fact){.kind = RECONCILE_BASE_DONE});
    for (int i = 1; i < ROLES; i++)
        feed(r, out,
             (struct reconcile_fact){.kind = RECONCILE_SCALE, .role = i, .count = REPLICAS});
    return r;
}

/* Each thing once, in the life of one job. */
static void measure(const struct roles *roles, int round)
{
    struct reconcile_actions out = {0}, started;
    struct reconcile *r = begin(roles, &out);
    double begun[WHAT_COUNT + 1];

    out.count = 0;
    begun[ALL_START] = now_ms();
    run(r, &out, 1);
    begun[ALL_READY] = now_ms();
    started = out;
    out = (struct reconcile_actions){0};
    for (int i = 0; i < started.count; i++)
        feed(r, &out,
             (struct reconcile_fact){.kind = RECONCILE_RUNNING,
                                     .now = 2,
                                     .replica = started.list[i].replica,
                                     .start = started.list[i].start});
    begun[NOTHING] = now_ms();
    run(r, &out, 3);
    begun[NODE_LOST] = now_ms();
    feed(r, &out, (struct reconcile_fact){.kind = RECONCILE_NODE_GONE, .now = 4, .node = 5});
    run(r, &out, 4);
    begun[ALL_HALVED] = now_ms();
    for (int i = 1; i < ROLES; i++)
        feed(r, &out,
             (struct reconcile_fact){
                 .kind = RECONCILE_SCALE, .now = 5, .role = i, .count = REPLICAS / 2});
    run(r, &out, 5);
    begun[WHAT_COUNT] = now_ms();
    for (int what = 0; what < WHAT_COUNT; what++)
        spent[what][round] = begun[what + 1] - begun[what];
    if (reconcile_count(r) != (ROLES - 1) * REPLICAS + 1)
        abort(); /* none has ended so far */
    free(started.list);
    free(out.list);
    reconcile_destroy(r);
}

static int compare(const void *a, const void *b)
{
    const double *one = a, *other = b;

    return (*one > *other) - (*one < *other);
}

int main(int argc, char **argv)
{
    static struct role list[ROLES];
    static char role_names[ROLES][8];
    struct roles roles = {0};
    int rounds = argc > 1 ? atoi(argv[1]) : 21;

    if (rounds < 1 || rounds > ROUNDS) {
        fprintf(stderr, "usage: reconcile [ROUNDS], 1 to %d\n", ROUNDS);
        return 2;
    }
    make_roles(&roles, list, role_names);
    for (int round = 0; round < rounds; round++)
        measure(&roles, round);
    printf("| what | ms | least | most |\n|---|---|---|---|\n");
    for (int what = 0; what < WHAT_COUNT; what++) {
        qsort(spent[what], (size_t)rounds, sizeof(double), compare);
        printf("| %s | %.2f | %.2f | %.2f |\n", names[what], spent[what][rounds / 2],
               spent[what][0], spent[what][rounds - 1]);
    }
    return 0;
}
