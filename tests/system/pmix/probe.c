/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A plain PMIx program, without our library: asks as a tool, or as a worker does what workers
 * should not.
 *
 *   probe query KEY[@NAMESPACE]...   "KEY: VALUE" lines, of one query; a worker's or a tool's
 *   probe lookup KEY                 "KEY: VALUE", of a tool
 *   probe unpublish KEY              of a tool
 *   probe MODE... [query...]   one after the other, see below; each prints "MODE RANK: ok", or
 *                              what is wrong */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <pmix.h>
#include <pmix_tool.h>

#include "tests/system/pmix/words.h"

#define CROWD 2000 /* requests of a flood */

static pmix_proc_t self;
static uint32_t size;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void wrong(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

static void wrong(const char *fmt, ...)
{
    va_list ap;

    printf("rank %u: wrong: ", self.rank);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
    fflush(stdout);
    exit(1);
}

static void expect(const char *what, pmix_status_t status, pmix_status_t wanted)
{
    if (status != wanted)
        wrong("%s: %s, not %s", what, status_word(status), status_word(wanted));
}

/* ---- query ----------------------------------------------------------------------------------- */

static void print_value(const char *key, const pmix_value_t *value)
{
    const pmix_data_array_t *array = value->data.darray;

    printf("%s: ", key);
    switch (value->type) {
    case PMIX_STRING:
        printf("%s\n", value->data.string != NULL ? value->data.string : "");
        break;
    case PMIX_UINT32:
        printf("%u\n", value->data.uint32);
        break;
    case PMIX_SIZE:
        printf("%zu\n", value->data.size);
        break;
    case PMIX_STATUS:
        printf("%s\n", status_word(value->data.status));
        break;
    case PMIX_DATA_ARRAY:
        printf("%zu of type %s\n", array->size, PMIx_Data_type_string(array->type));
        for (size_t i = 0; array->type == PMIX_PROC_INFO && i < array->size; i++) {
            const pmix_proc_info_t *info = (const pmix_proc_info_t *)array->array + i;

            printf("  %s %u on %s pid %d state %s\n", info->proc.nspace, info->proc.rank,
                   info->hostname, (int)info->pid, PMIx_Proc_state_string(info->state));
        }
        break;
    default:
        printf("of type %s\n", PMIx_Data_type_string(value->type));
    }
}

static int lookup(const char *key)
{
    pmix_pdata_t found;
    pmix_status_t status;

    PMIX_PDATA_CONSTRUCT(&found);
    PMIX_LOAD_KEY(found.key, key);
    status = PMIx_Lookup(&found, 1, NULL, 0);
    if (status == PMIX_SUCCESS)
        print_value(found.key, &found.value);
    printf("%s\n", status_word(status));
    return status == PMIX_SUCCESS ? 0 : 3;
}

static int unpublish(char *key)
{
    pmix_status_t status = PMIx_Unpublish((char *[]){key, NULL}, NULL, 0);

    printf("%s\n", status_word(status));
    return status == PMIX_SUCCESS ? 0 : 3;
}

static int query(char **words)
{
    size_t count = 0, found_count = 0;
    pmix_query_t *queries;
    pmix_info_t *found = NULL;
    pmix_status_t status;

    while (words[count] != NULL)
        count++;
    PMIX_QUERY_CREATE(queries, count);
    for (size_t i = 0; i < count; i++) {
        char *name = strchr(words[i], '@');

        if (name != NULL) {
            *name++ = '\0';
            PMIX_QUERY_QUALIFIERS_CREATE(&queries[i], 1);
            PMIX_INFO_LOAD(&queries[i].qualifiers[0], PMIX_NSPACE, name, PMIX_STRING);
        }
        PMIX_ARGV_APPEND(status, queries[i].keys, words[i]);
    }
    status = PMIx_Query_info(queries, count, &found, &found_count);
    for (size_t i = 0; found != NULL && i < found_count; i++)
        print_value(found[i].key, &found[i].value);
    printf("%s\n", status_word(status));
    return status == PMIX_SUCCESS ? 0 : 3;
}

/* ---- faults ---------------------------------------------------------------------------------- */

/* Answers that nobody waits for. */
static void on_done(pmix_status_t status, void *arg)
{
    (void)status;
    (void)arg;
}

static void on_value(pmix_status_t status, pmix_value_t *value, void *arg)
{
    (void)status;
    (void)value;
    (void)arg;
}

static void on_info(pmix_status_t status, pmix_info_t *info, size_t count, void *arg,
                    pmix_release_cbfunc_t release, void *release_arg)
{
    (void)status;
    (void)info;
    (void)count;
    (void)arg;
    if (release != NULL)
        release(release_arg);
}

static pmix_status_t fence(const pmix_info_t *info, size_t count)
{
    return PMIx_Fence(NULL, 0, info, count);
}

/* All but rank 1. */
static pmix_status_t fence_of_others(void)
{
    pmix_proc_t *procs;
    size_t count = 0;
    pmix_status_t status;

    PMIX_PROC_CREATE(procs, size);
    for (pmix_rank_t rank = 0; rank < size; rank++)
        if (rank != 1) {
            PMIX_LOAD_PROCID(&procs[count], self.nspace, rank);
            count++; /* not above: a macro */
        }
    status = PMIx_Fence(procs, count, NULL, 0);
    PMIX_PROC_FREE(procs, size);
    return status;
}

/* Rank 1 of the first start is killed inside a fence. */
static void killed(void)
{
    const char *restarts = getenv("TORCHELASTIC_RESTART_COUNT");
    pmix_status_t status;

    if (restarts == NULL)
        wrong("no TORCHELASTIC_RESTART_COUNT");
    if (strcmp(restarts, "0") != 0) {
        expect("fence after the restart", fence(NULL, 0), PMIX_SUCCESS);
        return;
    }
    if (self.rank == 1) {
        expect("PMIx_Fence_nb", PMIx_Fence_nb(NULL, 0, NULL, 0, on_done, NULL), PMIX_SUCCESS);
        nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
        raise(SIGKILL);
    }
    if (self.rank == size - 1) /* never comes: elasticrun ends it before */
        nanosleep(&(struct timespec){.tv_sec = 30}, NULL);
    status = fence(NULL, 0);
    /* It may end well once all others have been ended. Then this process is the next one. */
    if (status == PMIX_SUCCESS)
        nanosleep(&(struct timespec){.tv_sec = 20}, NULL);
    if (status == PMIX_SUCCESS)
        wrong("a fence that rank 1 died in has ended well");
}

/* Rank 1 asks a thousand things while the others have their fences. */
static void flood(void)
{
    pmix_info_t directive;
    pmix_proc_t other;
    pmix_value_t *value;
    pmix_query_t *query;
    char *key = "elastic.nodes";

    if (self.rank != 1) {
        for (int i = 0; i < 50; i++)
            expect("fence beside a flood", fence_of_others(), PMIX_SUCCESS);
        return;
    }
    PMIX_LOAD_PROCID(&other, self.nspace, size - 1);
    PMIX_INFO_LOAD(&directive, PMIX_TIMEOUT, &(int){1}, PMIX_INT);
    for (int i = 0; i < CROWD; i++) {
        PMIx_Notify_event(PMIX_ERR_SYS_OTHER, &self, PMIX_RANGE_NAMESPACE, NULL, 0, NULL, NULL);
        PMIX_QUERY_CREATE(query, 1);
        query->keys = calloc(2, sizeof(*query->keys));
        query->keys[0] = strdup(key);
        expect("PMIx_Query_info_nb", PMIx_Query_info_nb(query, 1, on_info, NULL), PMIX_SUCCESS);
        expect("PMIx_Get_nb", PMIx_Get_nb(&other, "nobody.has.this", &directive, 1, on_value, NULL),
               PMIX_SUCCESS);
    }
    if (PMIx_Get(&other, "nobody.has.this", &directive, 1, &value) == PMIX_SUCCESS)
        wrong("a key that nobody has was found");
}

/* Wrong types and absurd counts. Whatever they are answered, they are, and the next fence works. */
static void malformed(void)
{
    pmix_info_t bad[2];
    pmix_proc_t *procs;
    pmix_value_t *value;
    pmix_proc_t other;
    double begun = now();

    if (self.rank == 0) {
        PMIX_LOAD_PROCID(&other, self.nspace, size - 1);
        PMIX_INFO_LOAD(&bad[0], PMIX_REQUIRED_KEY, NULL, PMIX_STRING);
        PMIX_INFO_LOAD(&bad[1], PMIX_TIMEOUT, &(int){1}, PMIX_INT);
        PMIx_Get(&other, "nobody.has.this", bad, 2, &value);
        PMIX_LOAD_PROCID(&other, "nobody", 7);
        PMIx_Get(&other, "nobody.has.this", &bad[1], 1, &value);
        PMIX_LOAD_PROCID(&other, self.nspace, 4000000000U);
        PMIx_Get(&other, "nobody.has.this", &bad[1], 1, &value);
        /* Processes that do not exist, a thousand of them. */
        PMIX_PROC_CREATE(procs, 1000);
        for (pmix_rank_t rank = 0; rank < 1000; rank++)
            PMIX_LOAD_PROCID(&procs[rank], self.nspace, rank == 0 ? 0 : 100000 + rank);
        if (PMIx_Fence(procs, 1000, &bad[1], 1) == PMIX_SUCCESS)
            wrong("a fence with nobody has ended well");
        PMIX_PROC_FREE(procs, 1000);
    }
    PMIX_INFO_LOAD(&bad[0], PMIX_TIMEOUT, "soon", PMIX_STRING);
    PMIX_INFO_LOAD(&bad[1], PMIX_COLLECT_DATA, "perhaps", PMIX_STRING);
    fence(bad, 2);
    expect("fence after malformed directives", fence(NULL, 0), PMIX_SUCCESS);
    if (now() - begun > 20)
        wrong("that took %.1f s", now() - begun);
}

/* The last two ranks, of another node, come too late. */
static void late(void)
{
    pmix_info_t limit;
    double begun = now();

    PMIX_INFO_LOAD(&limit, PMIX_TIMEOUT, &(int){1}, PMIX_INT);
    if (self.rank < size - 2) {
        pmix_status_t status = fence(&limit, 1);

        if (status != PMIX_SUCCESS || !failure_is_told_once())
            expect("fence with a limit", status, PMIX_ERR_TIMEOUT);
        if (status == PMIX_ERR_TIMEOUT)
            printf("late %u: told\n", self.rank);
        if (now() - begun < 0.9 || now() - begun > 15)
            wrong("a limit of 1 s took %.1f s", now() - begun);
    } else {
        nanosleep(&(struct timespec){.tv_sec = 3}, NULL);
    }
    expect("fence of all", fence(NULL, 0), PMIX_SUCCESS);
}

/* A key that is never published, of a process here and of one on another node. */
static void never(void)
{
    pmix_info_t limit;
    pmix_value_t *value;
    pmix_proc_t other;

    PMIX_INFO_LOAD(&limit, PMIX_TIMEOUT, &(int){2}, PMIX_INT);
    if (self.rank == 0)
        for (pmix_rank_t rank = 1; rank < size; rank += size - 2) {
            double begun = now();

            PMIX_LOAD_PROCID(&other, self.nspace, rank);
            if (PMIx_Get(&other, "never", &limit, 1, &value) == PMIX_SUCCESS)
                wrong("rank %u has published what it has not", rank);
            if (now() - begun > 15)
                wrong("a limit of 2 s for rank %u took %.1f s", rank, now() - begun);
        }
    expect("fence after it", fence(NULL, 0), PMIX_SUCCESS);
}

/* Fences for about 5 s: the time for something to happen outside. */
static void fences(void)
{
    for (int i = 0; i < 25; i++) {
        expect("fence", fence(NULL, 0), PMIX_SUCCESS);
        nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    }
}

/* "job.RANK", "node.RANK" and "world.RANK", for processes so near. */
static void publish(void)
{
    static const struct {
        const char *name;
        pmix_data_range_t range;
    } ranges[] = {
        {"job", PMIX_RANGE_SESSION}, {"node", PMIX_RANGE_LOCAL}, {"world", PMIX_RANGE_NAMESPACE}};
    char key[32], value[32];
    pmix_info_t info[2];

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        snprintf(key, sizeof(key), "%s.%u", ranges[i].name, self.rank);
        snprintf(value, sizeof(value), "of rank %u", self.rank);
        PMIX_INFO_LOAD(&info[0], key, value, PMIX_STRING);
        PMIX_INFO_LOAD(&info[1], PMIX_RANGE, &ranges[i].range, PMIX_DATA_RANGE);
        expect(key, PMIx_Publish(info, 2), PMIX_SUCCESS);
    }
}

static void leave(void)
{
    exit(0); /* without a word to the server */
}

static const struct {
    const char *name;
    void (*run)(void);
} modes[] = {
    {"killed", killed}, {"flood", flood}, {"malformed", malformed}, {"late", late},
    {"never", never},   {"leave", leave}, {"fences", fences},       {"publish", publish},
};

static void run(const char *name)
{
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
        if (strcmp(name, modes[i].name) == 0) {
            modes[i].run();
            printf("%s %u: ok\n", name, self.rank);
            fflush(stdout);
            return;
        }
    wrong("no such mode: %s", name);
}

static int as_worker(char **words)
{
    pmix_proc_t all;
    pmix_value_t *value;

    expect("PMIx_Init", PMIx_Init(&self, NULL, 0), PMIX_SUCCESS);
    PMIX_LOAD_PROCID(&all, self.nspace, PMIX_RANK_WILDCARD);
    expect("PMIX_JOB_SIZE", PMIx_Get(&all, PMIX_JOB_SIZE, NULL, 0, &value), PMIX_SUCCESS);
    size = value->data.uint32;
    for (; *words != NULL; words++) {
        if (strcmp(*words, "query") == 0)
            return query(words + 1);
        run(*words);
    }
    PMIx_Finalize(NULL, 0);
    return 0;
}

int main(int argc, char **argv)
{
    pmix_status_t status;
    int rc;

    if (argc < 2)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (getenv("PMIX_NAMESPACE") != NULL)
        return as_worker(argv + 1);
    if (argc < 3)
        return 2;
    status = PMIx_tool_init(&self, NULL, 0);
    if (status != PMIX_SUCCESS) {
        printf("PMIx_tool_init: %s\n", status_word(status));
        return 4;
    }
    if (strcmp(argv[1], "lookup") == 0)
        rc = lookup(argv[2]);
    else if (strcmp(argv[1], "unpublish") == 0)
        rc = unpublish(argv[2]);
    else
        rc = query(argv + 2);
    PMIx_tool_finalize();
    return rc;
}
