/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What bench/pmix measures with a bare PMIx client, in microseconds as rank 0 sees it; a JSON
 * line with every single time but the first ones.
 *
 * pmix_client ROUNDS BYTES */
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WARM_UP 10
/* With each get the library fetches everything that the other process has put so far: few of
 * them, while that is little. */
#define GETS         10
#define GETS_WARM_UP 2

static pmix_proc_t self, all;
static uint32_t size;
static char *bytes;

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void must(const char *what, pmix_status_t status)
{
    if (status == PMIX_SUCCESS)
        return;
    fprintf(stderr, "rank %u: %s: %s\n", self.rank, what, PMIx_Error_string(status));
    exit(1);
}

static void put(const char *key)
{
    pmix_value_t value;

    PMIX_VALUE_LOAD(&value, bytes, PMIX_STRING);
    must("PMIx_Put", PMIx_Put(PMIX_GLOBAL, key, &value));
    must("PMIx_Commit", PMIx_Commit());
    PMIX_VALUE_DESTRUCT(&value);
}

static void fence(bool collect)
{
    pmix_info_t info;

    PMIX_INFO_CONSTRUCT(&info);
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    must("PMIx_Fence", PMIx_Fence(&all, 1, &info, collect ? 1 : 0));
    PMIX_INFO_DESTRUCT(&info);
}

/* The same key each time: what is exchanged does not grow. */
static double one_fence(void)
{
    double begin;

    put("value");
    begin = now_us();
    fence(true);
    return now_us() - begin;
}

static double one_barrier(void)
{
    double begin = now_us();

    fence(false);
    return now_us() - begin;
}

/* A new key of the last rank, which is on another node, and nobody has fetched. */
static double one_get(int round)
{
    pmix_proc_t last = all;
    pmix_value_t *value = NULL;
    char key[32];
    double begin, took;

    snprintf(key, sizeof(key), "get-%d", round);
    put(key);
    fence(false);
    if (self.rank != 0)
        return 0;
    last.rank = size - 1;
    begin = now_us();
    must("PMIx_Get", PMIx_Get(&last, key, NULL, 0, &value));
    took = now_us() - begin;
    PMIX_VALUE_RELEASE(value);
    return took;
}

static void print(const char *name, const double *times, int warm_up, int count, const char *end)
{
    if (self.rank != 0)
        return;
    printf("\"%s\": [", name);
    for (int i = warm_up; i < count; i++)
        printf("%s%.1f", i > warm_up ? ", " : "", times[i]);
    printf("]%s", end);
}

int main(int argc, char **argv)
{
    int rounds = WARM_UP + (argc > 1 ? atoi(argv[1]) : 100);
    size_t length = argc > 2 ? strtoul(argv[2], NULL, 10) : 1024;
    double *times = calloc((size_t)rounds, sizeof(*times));
    pmix_value_t *value = NULL;

    bytes = malloc(length + 1);
    memset(bytes, 'x', length);
    bytes[length] = '\0';
    must("PMIx_Init", PMIx_Init(&self, NULL, 0));
    PMIX_LOAD_PROCID(&all, self.nspace, PMIX_RANK_WILDCARD);
    must("PMIX_JOB_SIZE", PMIx_Get(&all, PMIX_JOB_SIZE, NULL, 0, &value));
    size = value->data.uint32;
    if (self.rank == 0)
        printf("{\"size\": %u, ", size);
    for (int i = 0; i < rounds; i++)
        times[i] = one_fence();
    print("fence", times, WARM_UP, rounds, ", ");
    for (int i = 0; i < rounds; i++)
        times[i] = one_barrier();
    print("barrier", times, WARM_UP, rounds, ", ");
    for (int i = 0; i < GETS; i++)
        times[i] = one_get(i);
    print("get", times, GETS_WARM_UP, GETS, "}\n");
    fence(false);
    must("PMIx_Finalize", PMIx_Finalize(NULL, 0));
    return 0;
}
