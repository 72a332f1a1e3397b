/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elastic-runs: what prolog and epilog do with the run directories of a node.
 *
 * It runs as root, and what it finds was made by users. It looks at names and owners only; all else
 * is done by elastic-flush, with the rights of the user. So a file system of a user's own that
 * never answers holds up that process alone, and how many of these there are is bounded (slot.h).
 *
 * slurmd waits for it: it ends within its limit, and its exit status says only what it found. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/stop.h"
#include "flush/end.h"
#include "flush/place.h"
#include "flush/sweep.h"
#include "lib/number.h"

enum { STATUS_FOUND = 0, STATUS_ERROR = 1, STATUS_USAGE = 2, STATUS_NONE = 3 };

#define RUNS_MAX    16        /* runs of a job whose directories are looked for */
#define SECONDS_MAX 3600      /* for epilog_flush */
#define LATE        4         /* seconds after the limit in which this process ends in any case */
#define AGE_MAX     100000000 /* seconds; more than snapshot_keep may have */

struct options {
    bool epilog, make;
    gid_t gid;
    int limit, age; /* seconds */
    struct snapshot_run run;
    char **places;
    int place_count;
};

static const char help[] =
    "Usage: elastic-runs prolog --gid=GID --limit=SECONDS --age=SECONDS [--make] RUN PLACE...\n"
    "       elastic-runs epilog --gid=GID --limit=SECONDS --age=SECONDS RUN PLACE...\n"
    "\n"
    "Flushes and removes run directories in the places (snapshot_dir, /dev/shm). RUN is the name "
    "of\n"
    "the run directory of this run of the job, elastic-UID-JOB.RESTARTS-NODE. Prolog and epilog\n"
    "start it, as root.\n"
    "\n"
    "  prolog   those of earlier runs of the job; then, in the background, those that jobs which\n"
    "           have ended have left on this node\n"
    "  epilog   those of this run and of earlier ones; if one stays, in the background those that\n"
    "           other jobs have left, too\n"
    "\n"
    "  --gid=GID        the group of the job\n"
    "  --limit=SECONDS  do not wait longer for the job's own; their flush goes on\n"
    "  --age=SECONDS    remove what could not be flushed and is so old\n"
    "  --make           make the directory RUN in the first place\n"
    "  --help           print this\n"
    "\n"
    "Prints one line for each directory of the job. Exit status: 0 the job had directories;\n"
    "3 it had none; 1 an error; 2 wrong usage.\n";

/* ---- options --------------------------------------------------------------------------------- */

static int parse_gid(gid_t *gid, struct error *err)
{
    char *end;
    unsigned long long number = strtoull(optarg, &end, 10);

    if (optarg[0] < '0' || optarg[0] > '9' || *end != '\0' || number >= UINT32_MAX)
        return error_set(err, "--gid=%s: must be the number of a group", error_value(optarg).text);
    *gid = (gid_t)number;
    return 0;
}

static int parse_number(const char *name, int max, int *value, struct error *err)
{
    if (number_parse(optarg, strlen(optarg), 0, max, value) == 0)
        return 0;
    return error_set(err, "--%s=%s: must be a number from 0 to %d", name, error_value(optarg).text,
                     max);
}

static int parse_option(int option, struct options *options, struct error *err)
{
    switch (option) {
    case 'g':
        return parse_gid(&options->gid, err);
    case 'l':
        return parse_number("limit", SECONDS_MAX, &options->limit, err);
    case 'a':
        return parse_number("age", AGE_MAX, &options->age, err);
    case 'm':
        options->make = true;
        return 0;
    default:
        return error_set(err, "unknown option, or one without its value; see elastic-runs --help");
    }
}

static int parse_words(int count, char **words, struct options *options, struct error *err)
{
    if (count < 3 || (strcmp(words[0], "prolog") != 0 && strcmp(words[0], "epilog") != 0))
        return error_set(err, "prolog or epilog, a run and a place are needed; see "
                              "elastic-runs --help");
    options->epilog = strcmp(words[0], "epilog") == 0;
    options->places = words + 2;
    options->place_count = count - 2 < PLACES_MAX ? count - 2 : PLACES_MAX;
    return snapshot_run_parse(words[1], &options->run, err);
}

static int parse_options(int argc, char **argv, struct options *options, struct error *err)
{
    static const struct option known[] = {
        {"gid", required_argument, NULL, 'g'}, {"limit", required_argument, NULL, 'l'},
        {"age", required_argument, NULL, 'a'}, {"make", no_argument, NULL, 'm'},
        {"help", no_argument, NULL, 'h'},      {NULL, 0, NULL, 0},
    };
    int option;

    opterr = 0;
    options->gid = (gid_t)-1;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            exit(STATUS_FOUND);
        }
        if (parse_option(option, options, err) != 0)
            return -1;
    }
    if (options->gid == (gid_t)-1)
        return error_set(err, "--gid is missing; see elastic-runs --help");
    return parse_words(argc - optind, argv + optind, options, err);
}

/* ---- a job ----------------------------------------------------------------------------------- */

/* A place that is not there is none. One that is not safe is not used either. */
static void open_places(const struct options *options, struct place places[PLACES_MAX])
{
    for (int i = 0; i < PLACES_MAX; i++) {
        struct error err;

        places[i].fd = -1;
        if (i < options->place_count && place_open(&places[i], options->places[i], &err) != 0 &&
            errno != ENOENT)
            printf("not used: %s\n", err.text);
    }
}

/* The names of the last runs are known: whoever fills a place with others keeps nobody waiting.
 * (After a requeue by hand Slurm tells the epilog the number of the next run already.) */
static int find_runs(const struct options *options, const struct place places[PLACES_MAX],
                     struct place_run found[PLACES_MAX * RUNS_MAX])
{
    uint32_t last = options->run.restarts;
    int count = 0;

    for (int i = 0; i < PLACES_MAX; i++)
        for (uint32_t back = options->epilog ? 0 : 1; back < RUNS_MAX && back <= last; back++) {
            struct place_run *run = &found[count];

            run->run = options->run;
            run->run.restarts = last - back;
            run->place = i;
            place_name(run->name, &run->run);
            count += place_has(&places[i], &run->run);
        }
    return count;
}

static int work(const struct options *options)
{
    struct place_run found[PLACES_MAX * RUNS_MAX];
    struct place places[PLACES_MAX];
    struct snapshot_run run = options->run;
    struct error err = {""};
    bool stays = false;
    int count;

    stop_limit(options->limit + LATE);
    open_places(options, places);
    count = find_runs(options, places, found);
    if (count > 0)
        stays = end_runs(places, found, count, options->gid, options->limit, options->age);
    if (options->make &&
        (places[0].fd < 0 || place_make(&places[0], &options->run, options->gid, &err) != 0))
        printf("no run directory: %s\n", places[0].fd < 0 ? "there is no place for it" : err.text);
    fflush(stdout);
    /* What a job leaves counts together with what the user's others have left. What a job has that
     * begins is not looked at. */
    run.job = options->epilog ? 0 : run.job;
    if (stays || !options->epilog)
        sweep_in_background(places, &run, options->age);
    return count > 0 ? STATUS_FOUND : STATUS_NONE;
}

int main(int argc, char **argv)
{
    struct options options = {0};
    struct error err = {""};

    umask(077);
    if (parse_options(argc, argv, &options, &err) == 0)
        return work(&options);
    fprintf(stderr, "elastic-runs: %s\n", err.text);
    return STATUS_USAGE;
}
