/* SPDX-License-Identifier: GPL-2.0-or-later */
/* simulate: scenarios and random histories of elastic jobs, in TAP (README.md).
 *
 *   simulate                      all scenarios, and as many histories as `make check` runs
 *   simulate SCENARIO.sim...      these
 *   simulate --histories N [--from SEED]
 *   simulate --seconds S [--from SEED]
 *   simulate --scale AGENTS       what they cost their leader
 *   simulate --seed SEED          one history; of scenarios, with other delays
 *   … --trace                     says all that happens
 *
 * Each scenario, and each batch of histories, runs in a process of its own. */
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sodium.h>

#include "lib/text.h"
#include "tests/sim/sim.h"

/* Histories of `make check`, and those of two faults within one change. With --enable-sanitizers
 * each takes several times as long. */
#ifdef __SANITIZE_ADDRESS__
#define CHECKED       150
#define CHECKED_PAIRS 75
#define CHECKED_POOLS 75
#define CHECKED_UNITS 75
#else
#define CHECKED       9000
#define CHECKED_PAIRS 4000
#define CHECKED_POOLS 4000
#define CHECKED_UNITS 3000
#endif
#define BATCH     100  /* histories of one process */
#define REPORTED  2000 /* … of one line of TAP */
#define KNOWN_MAX 20
#define FAILS_MAX 20 /* that are told of each line */

/* Histories that fail in a way that is known, and why they do: known/histories.txt. */
struct known {
    char pattern[200], reason[200];
    int count;
};

/* What a process says of its work, in memory that both share. */
struct report {
    uint64_t seed, events, virtual_us, done;
    int failed, told, known[KNOWN_MAX];
    uint64_t known_seed[KNOWN_MAX]; /* the first of them */
    struct {
        uint64_t seed;
        char why[400];
    } fails[FAILS_MAX];
};

static struct report *report;
static struct known known_ways[KNOWN_MAX];
static int known_count;
static int tests, tests_failed;

static double seconds_now(void)
{
    struct timespec now = {0};

    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now); /* clock_gettime() tells the virtual time */
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static const char *variable(const char *name)
{
    return strings_value(environ, name); /* getenv() is that of simulated processes */
}

static void read_known(void)
{
    const char *top = variable("top_srcdir");
    char path[PATH_MAX], line[400];
    FILE *file;

    snprintf(path, sizeof(path), "%s/tests/sim/known/histories.txt", top != NULL ? top : ".");
    file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL && known_count < KNOWN_MAX) {
        char *bar = strstr(line, " | ");

        if (line[0] == '#' || bar == NULL)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(known_ways[known_count].pattern, sizeof(known_ways[0].pattern), "%.*s",
                 (int)(bar - line), line);
        snprintf(known_ways[known_count++].reason, sizeof(known_ways[0].reason), "%s", bar + 3);
    }
    if (file != NULL)
        fclose(file);
}

static bool is_known(uint64_t seed, const char *why)
{
    for (int i = 0; i < known_count; i++)
        if (fnmatch(known_ways[i].pattern, why, 0) == 0) {
            if (report->known[i]++ == 0)
                report->known_seed[i] = seed;
            return true;
        }
    return false;
}

static void note_failure(uint64_t seed, const char *why)
{
    report->failed++;
    if (report->told == FAILS_MAX)
        return;
    report->fails[report->told].seed = seed;
    snprintf(report->fails[report->told++].why, sizeof(report->fails[0].why), "%s", why);
}

static void result(bool ok, const char *name, const char *todo)
{
    tests++;
    tests_failed += !ok && todo == NULL;
    printf("%sok %d - %s%s%s\n", ok ? "" : "not ", tests, name,
           todo != NULL ? " # TO"
                          "DO "
                        : "",
           todo != NULL ? todo : "");
    fflush(stdout);
}

/* ---- histories ------------------------------------------------------------------------------- */

static void run_batch(uint64_t first, uint64_t count)
{
    for (uint64_t seed = first; seed < first + count; seed++) {
        char why[600] = "";
        int rc;

        report->seed = seed;
        rc = history_run(seed, why, sizeof(why));
        report->events += clock_events();
        report->virtual_us += clock_now() - 1000 * SECOND;
        report->done++;
        if (rc != 0 && !is_known(seed, why))
            note_failure(seed, why);
    }
}

/* A crash of the product is a finding like any other: the next history goes on after it. */
static void run_apart(uint64_t first, uint64_t end)
{
    while (first < end) {
        pid_t child;
        int status = 0;

        fflush(stdout);
        child = fork();
        if (child == 0) {
            run_batch(first, end - first);
            fflush(stdout);
            _exit(0);
        }
        if (child < 0 || waitpid(child, &status, 0) != child)
            abort();
        if (status == 0)
            return;
        report->done++;
        note_failure(report->seed, "the process has crashed");
        first = report->seed + 1;
    }
}

static uint64_t run_histories(uint64_t first, uint64_t count, double until)
{
    uint64_t from = first, end = first + count;
    char name[160];

    memset(report, 0, sizeof(*report));
    while (from < end && seconds_now() < until) {
        uint64_t next = from + BATCH < end ? from + BATCH : end;

        run_apart(from, next);
        from = next;
    }
    snprintf(name, sizeof(name), "histories %llu to %llu (%llu events, %.0f virtual hours)",
             (unsigned long long)first, (unsigned long long)from - 1,
             (unsigned long long)report->events,
             (double)report->virtual_us / (double)SECOND / 3600);
    result(report->failed == 0, name, NULL);
    for (int i = 0; i < report->told; i++)
        printf("# seed %llu: %s; see it with --seed %llu --trace\n",
               (unsigned long long)report->fails[i].seed, report->fails[i].why,
               (unsigned long long)report->fails[i].seed);
    for (int i = 0; i < known_count; i++)
        if (report->known[i] > 0)
            printf("# known: %d, as --seed %llu: %s\n", report->known[i],
                   (unsigned long long)report->known_seed[i], known_ways[i].reason);
    if (report->failed > 0)
        printf("# %d of %llu failed\n", report->failed, (unsigned long long)report->done);
    return from;
}

/* All histories of one kind, whose seeds begin there. */
static void run_kind(uint64_t first, uint64_t count)
{
    for (uint64_t at = 0, next; at < count; at = next - first)
        next = run_histories(first + at, count - at < REPORTED ? count - at : REPORTED,
                             seconds_now() + 1e9);
}

/* ---- scenarios ------------------------------------------------------------------------------- */

/* "# Known: …" in its first lines says that it does not hold, and why. */
static char *known(const char *path)
{
    FILE *file = fopen(path, "r");
    char line[400], *why = NULL;

    while (file != NULL && why == NULL && fgets(line, sizeof(line), file) != NULL && line[0] == '#')
        if (strncmp(line, "# Known: ", 9) == 0) {
            line[strcspn(line, "\n")] = '\0';
            why = strdup(line + 9);
        }
    if (file != NULL)
        fclose(file);
    return why;
}

static void run_scenario(const char *path, uint64_t seed)
{
    char *todo = known(path), name[PATH_MAX + 700];
    pid_t child;
    int status = 0;

    memset(report, 0, sizeof(*report));
    note_failure(seed, "the process has crashed");
    fflush(stdout);
    child = fork();
    if (child == 0) {
        char why[600] = "";
        int rc = scenario_run(path, seed, why, sizeof(why));

        report->failed = report->told = 0;
        if (rc != 0)
            note_failure(seed, why);
        fflush(stdout);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        abort();
    snprintf(name, sizeof(name), "%s%s%s",
             strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path,
             report->failed > 0 ? ": " : "", report->failed > 0 ? report->fails[0].why : "");
    result(report->failed == 0 && status == 0, name, todo);
    free(todo);
}

static int is_scenario(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);

    return len > 4 && strcmp(entry->d_name + len - 4, ".sim") == 0;
}

static void run_folder(const char *folder, uint64_t seed)
{
    const char *top = variable("top_srcdir");
    struct dirent **entries = NULL;
    char path[PATH_MAX];
    int count;

    snprintf(path, sizeof(path), "%s/tests/sim/%s", top != NULL ? top : ".", folder);
    count = scandir(path, &entries, is_scenario, alphasort);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "%s/tests/sim/%s/%s", top != NULL ? top : ".", folder,
                 entries[i]->d_name);
        run_scenario(path, seed);
        free(entries[i]);
    }
    free(entries);
}

/* ---- the program ----------------------------------------------------------------------------- */

static int show_history(uint64_t seed)
{
    char why[600] = "";
    int rc = history_run(seed, why, sizeof(why));

    printf("%sok 1 - seed %llu%s%s\n1..1\n", rc != 0 ? "not " : "", (unsigned long long)seed,
           rc != 0 ? ": " : "", why);
    return rc != 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"trace", no_argument, NULL, 't'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"histories", required_argument, NULL, 'n'},
                                            {"from", required_argument, NULL, 'f'},
                                            {"scale", required_argument, NULL, 'x'},
                                            {"seconds", required_argument, NULL, 'S'},
                                            {NULL, 0, NULL, 0}};
    uint64_t seed = 0, count = 0, from = 1;
    double seconds = 0, until;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        if (option == 't')
            trace_on = true;
        else if (option == 's')
            seed = strtoull(optarg, NULL, 10);
        else if (option == 'n')
            count = strtoull(optarg, NULL, 10);
        else if (option == 'f')
            from = strtoull(optarg, NULL, 10);
        else if (option == 'x')
            return scale_run(atoi(optarg)) != 0;
        else if (option == 'S')
            seconds = atof(optarg);
        else
            return 2;
    }
    report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    MUST(report != MAP_FAILED && sodium_init() >= 0);
    read_known();
    if (seed != 0 && optind == argc)
        return show_history(seed);
    for (int i = optind; i < argc; i++)
        run_scenario(argv[i], seed != 0 ? seed : 1);
    if (optind == argc && count == 0 && seconds == 0) {
        run_folder("scenarios", 1);
        run_folder("known", 1);
        run_kind(PAIRS_FROM, CHECKED_PAIRS);
        run_kind(POOLS_FROM, CHECKED_POOLS);
        run_kind(UNITS_FROM, CHECKED_UNITS);
        count = CHECKED;
    }
    until = seconds > 0 ? seconds_now() + seconds : seconds_now() + 1e9;
    if (seconds > 0 && count == 0)
        count = UINT64_MAX / 2;
    for (uint64_t end = from + count; from < end && seconds_now() < until;)
        from = run_histories(from, end - from < REPORTED ? end - from : REPORTED, until);
    printf("1..%d\n", tests);
    return tests_failed > 0;
}
