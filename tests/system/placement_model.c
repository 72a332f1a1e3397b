/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/placement as a program: what it says about a cluster and its jobs, to compare slurmctld with.
 *
 * Standard input, numbers and sets ("#..#", one character for each node) between blanks:
 *
 *     map NODES SHAPE... LEAF... SWITCHES PARENT...
 *     base MIN MAX IDLE FREE            answers "N" and N sets
 *     extension MIN GROWTH IDLE FREE NODES
 *     keep FREE N and for each job: NODE GROWTH     answers a set
 *     victims NEED N and for each job: JOB KIND PRIORITY START NODES USABLE DISTANCE
 *                                         answers "N" and N jobs
 *     distance A B
 *
 * Each answer is one line. */
#include "lib/placement.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX 1024
#define JOBS_MAX  64

static int shape[NODES_MAX], leaf[NODES_MAX], parent[NODES_MAX];
static struct placement_map map = {.shape = shape, .leaf = leaf, .parent = parent};

static _Noreturn void bad(const char *what)
{
    fprintf(stderr, "placement_model: %s\n", what);
    exit(2);
}

static int read_number(void)
{
    char word[16], *end;
    long number;

    if (scanf("%15s", word) != 1)
        bad("a number is missing");
    number = strtol(word, &end, 10);
    if (*end != '\0' || number < INT32_MIN || number > INT32_MAX)
        bad("no number");
    return (int)number;
}

static int read_count(int most)
{
    int count = read_number();

    if (count < 0 || count > most)
        bad("too many");
    return count;
}

static void read_numbers(int *numbers, int count)
{
    for (int i = 0; i < count; i++)
        numbers[i] = read_number();
}

static void read_set(bool *set)
{
    char text[NODES_MAX + 1];

    if (scanf("%1024s", text) != 1 || strlen(text) != (size_t)map.node_count)
        bad("no set of nodes");
    for (int i = 0; i < map.node_count; i++)
        set[i] = text[i] == '#';
}

static void write_tiers(struct placement_tiers *tiers)
{
    printf("%d", tiers->count);
    for (int i = 0; i < tiers->count; i++) {
        putchar(' ');
        for (int k = 0; k < map.node_count; k++)
            putchar(tiers->tier[i].nodes[k] ? '#' : '.');
    }
    putchar('\n');
    placement_tiers_clear(tiers);
}

static void answer_tiers(bool is_base)
{
    int min = read_number(), more = read_number();
    bool idle[NODES_MAX], unclaimed[NODES_MAX], nodes[NODES_MAX];
    const struct placement_room room = {idle, idle, unclaimed};
    struct placement_tiers tiers;

    read_set(idle);
    read_set(unclaimed);
    if (!is_base)
        read_set(nodes);
    if ((is_base ? placement_base(&map, &room, min, more, &tiers)
                 : placement_extension(&map, &room, nodes, min, more, &tiers)) < 0)
        bad("no memory");
    write_tiers(&tiers);
}

static void answer_keep(void)
{
    struct placement_claim claims[JOBS_MAX];
    bool idle[NODES_MAX];
    int count;

    read_set(idle);
    count = read_count(JOBS_MAX);
    for (int i = 0; i < count; i++) {
        claims[i].node = read_count(map.node_count - 1);
        claims[i].growth = read_number();
    }
    if (placement_keep(&map, claims, count, idle) < 0)
        bad("no memory");
    for (int i = 0; i < map.node_count; i++)
        putchar(idle[i] ? '#' : '.');
    putchar('\n');
}

static void answer_victims(void)
{
    int need = read_number(), count = read_count(JOBS_MAX), order[JOBS_MAX], picked;
    struct placement_candidate list[JOBS_MAX];

    for (int i = 0; i < count; i++) {
        int numbers[7];

        read_numbers(numbers, 7);
        list[i] = (struct placement_candidate){
            .job = (uint32_t)numbers[0],
            .kind = (enum placement_kind)numbers[1],
            .priority = numbers[2],
            .start = numbers[3],
            .nodes = numbers[4],
            .usable = numbers[5],
            .distance = numbers[6],
        };
    }
    picked = placement_victims(list, count, need, order);
    printf("%d", picked);
    for (int i = 0; i < picked; i++)
        printf(" %u", list[order[i]].job);
    putchar('\n');
}

int main(void)
{
    char command[16];

    setvbuf(stdout, NULL, _IOLBF, 0);
    while (scanf("%15s", command) == 1) {
        if (strcmp(command, "map") == 0) {
            map.node_count = read_count(NODES_MAX);
            read_numbers(shape, map.node_count);
            read_numbers(leaf, map.node_count);
            map.switch_count = read_count(NODES_MAX);
            read_numbers(parent, map.switch_count);
        } else if (strcmp(command, "base") == 0) {
            answer_tiers(true);
        } else if (strcmp(command, "extension") == 0) {
            answer_tiers(false);
        } else if (strcmp(command, "keep") == 0) {
            answer_keep();
        } else if (strcmp(command, "victims") == 0) {
            answer_victims();
        } else if (strcmp(command, "distance") == 0) {
            int a = read_count(map.node_count - 1);

            printf("%d\n", placement_distance(&map, a, read_count(map.node_count - 1)));
        } else {
            bad("no such command");
        }
    }
    return 0;
}
