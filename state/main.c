/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elastic-state: states of trainings, in directories and on S3.
 *
 * `selastic states` and the Python package start it. It is a program of its own because it waits
 * for foreign servers, and because nothing else of this package speaks to S3. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <sodium.h>

#include "cmd/options.h"
#include "cmd/terminal_text.h"
#include "common/stop.h"
#include "lib/number.h"
#include "state/command.h"

#define KEEP_MAX    1000000
#define SECONDS_MAX 31536000
#define TRIES_MAX   100
#define MIB_MAX     1000000000

enum status { STATUS_OK = 0, STATUS_FAILED = 1, STATUS_USAGE = 2, STATUS_NOTHING = 3 };

static void print_help(void)
{
    printf(
        "Usage: %1$s list PLACE [--json]\n"
        "       %1$s show PLACE [STATE] [--verify] [--json]\n"
        "       %1$s use PLACE STATE [--json]\n"
        "       %1$s rm PLACE STATE [--force] [--json]\n"
        "       %1$s push PLACE DIRECTORY [--keep=N] [--run=NAME] [--json]\n"
        "       %1$s pull PLACE DIRECTORY [--state=STATE] [--keep=N] [--json]\n"
        "       %1$s mirror PLACE DIRECTORY [--most=MIB] [--used=FILE]\n"
        "\n"
        "A place is a directory of states, or s3://BUCKET/PREFIX. For mirror it is one on S3 that\n"
        "has such places, each of a model. The latest state of each is copied.\n"
        "\n"
        "  --keep=N           keep N complete states; the current one always stays (default: all)\n"
        "  --run=NAME         write down by what the state was made\n"
        "  --state=STATE      not the latest complete state, but this one\n"
        "  --most=MIB         copy no more than so many MiB of all models together\n"
        "  --used=FILE        remove copies that are not the latest, and of which the file has no\n"
        "                     line MODEL/STATE (default: none is removed)\n"
        "  --verify           read all files, and compare them with their digests\n"
        "  --force            remove a state, too, that somebody may be writing\n"
        "  --timeout=SECONDS  give up after this time (default: no limit)\n"
        "  --stall=SECONDS    give a connection up that is silent for so long (default: 30)\n"
        "  --tries=N          ask a server N times before it counts as failed (default: 6)\n"
        "  --json             print JSON\n"
        "  --help             print this text\n"
        "\n"
        "Exit status: 0 success, 1 failed, 2 wrong command line, 3 there are no states yet.\n",
        program_invocation_short_name);
}

static const struct {
    const char *name;
    int least, most; /* arguments after the place */
    int (*run)(struct place *place, const struct options *options, struct error *err);
    int (*copy)(struct place *place, const char *directory, const struct options *options,
                struct error *err);
} commands[] = {
    {"list", 0, 0, command_list, NULL}, {"show", 0, 1, command_show, NULL},
    {"use", 1, 1, command_use, NULL},   {"rm", 1, 1, command_remove, NULL},
    {"push", 1, 1, NULL, command_push}, {"pull", 1, 1, NULL, command_pull},
    {"mirror", 1, 1, NULL, NULL}, /* command_mirror() */
};
#define COMMANDS (sizeof(commands) / sizeof(*commands))

struct arguments {
    struct options options;
    struct s3_limits limits;
    int timeout;
    size_t command;
    const char *place, *directory;
};

static const struct option long_options[] = {
    {"keep", required_argument, NULL, 'k'},
    {"run", required_argument, NULL, 'r'},
    {"state", required_argument, NULL, 's'},
    {"most", required_argument, NULL, 'm'},
    {"used", required_argument, NULL, 'u'},
    {"verify", no_argument, NULL, 'v'},
    {"force", no_argument, NULL, 'f'},
    {"json", no_argument, NULL, 'j'},
    {"timeout", required_argument, NULL, 't'},
    {"stall", required_argument, NULL, 'l'},
    {"tries", required_argument, NULL, 'y'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static int read_number(const char *option, int max, int *number, struct error *err)
{
    if (number_parse(optarg, strlen(optarg), 1, max, number) == 0)
        return 0;
    return error_set(err, "--%s=%s: must be a number from 1 to %d", option,
                     error_value(optarg).text, max);
}

static int read_state(const char *text, int64_t *number, struct error *err)
{
    bool partial;

    *number = state_number(text, &partial);
    if (*number > 0)
        return 0;
    return error_set(err, "\"%s\" is no state: a state is named by its number, such as 000007",
                     error_value(text).text);
}

static int read_option(void *to, int option, struct error *err)
{
    struct arguments *arguments = to;
    struct options *options = &arguments->options;

    switch (option) {
    case 'k':
        return read_number("keep", KEEP_MAX, &options->keep, err);
    case 't':
        return read_number("timeout", SECONDS_MAX, &arguments->timeout, err);
    case 'l':
        return read_number("stall", SECONDS_MAX, &arguments->limits.stall, err);
    case 'y':
        return read_number("tries", TRIES_MAX, &arguments->limits.tries, err);
    case 's':
        return read_state(optarg, &options->state, err);
    case 'r':
        options->run = optarg;
        return state_run_ok(optarg)
                   ? 0
                   : error_set(err, "--run=%s: must be one line of at most %d bytes, without '/'",
                               error_value(optarg).text, STATE_RUN_MAX);
    case 'm':
        return read_number("most", MIB_MAX, &options->most, err);
    case 'u':
        options->used = optarg;
        return 0;
    case 'v':
        options->verify = true;
        return 0;
    case 'f':
        options->force = true;
        return 0;
    case 'j':
        options->json = true;
        return 0;
    }
    return 0;
}

static bool is_mirror(size_t command)
{
    return commands[command].run == NULL && commands[command].copy == NULL;
}

static int read_words(struct arguments *arguments, int count, char *const *words, struct error *err)
{
    size_t i = 0;

    if (count == 0)
        return error_set(err, "a command is needed: list, show, use, rm, push, pull or mirror");
    while (i < COMMANDS && strcmp(commands[i].name, words[0]) != 0)
        i++;
    if (i == COMMANDS)
        return error_set(err,
                         "%s: the commands are list, show, use, rm, push, pull and "
                         "mirror",
                         error_value(words[0]).text);
    if (count < 2 + commands[i].least || count > 2 + commands[i].most)
        return error_set(err, "%s: needs a place%s%s; see --help", words[0],
                         commands[i].run == NULL ? " and a directory"
                         : commands[i].least > 0 ? " and a state"
                                                 : "",
                         commands[i].most > commands[i].least ? ", and perhaps a state" : "");
    arguments->command = i;
    arguments->place = words[1];
    if (commands[i].run == NULL)
        arguments->directory = words[2];
    else if (count > 2)
        return read_state(words[2], &arguments->options.state, err);
    return 0;
}

static int read_arguments(struct arguments *arguments, int argc, char **argv, struct error *err)
{
    static const struct options_syntax syntax = {long_options, print_help, read_option};

    *arguments = (struct arguments){.limits = S3_LIMITS};
    if (options_read(argc, argv, &syntax, arguments, err) != 0)
        return -1;
    return read_words(arguments, argc - optind, argv + optind, err);
}

static enum status say(enum status status, const struct error *err)
{
    char *clean = text_clean(err->text, 0); /* it may quote a server, or a state */

    fprintf(stderr, "%s: %s\n", program_invocation_short_name, clean);
    free(clean);
    return status;
}

static int run(const struct arguments *arguments, struct error *err)
{
    struct options options = arguments->options;
    struct place *place;
    int rc = -1;

    options.limits = &arguments->limits;
    if (is_mirror(arguments->command))
        return command_mirror(arguments->place, arguments->directory, &options, err);
    place = place_open(arguments->place, &arguments->limits, err);
    if (place != NULL && commands[arguments->command].copy != NULL)
        rc = commands[arguments->command].copy(place, arguments->directory, &options, err);
    else if (place != NULL)
        rc = commands[arguments->command].run(place, &options, err);
    place_close(place);
    return rc;
}

int main(int argc, char **argv)
{
    struct arguments arguments;
    struct error err = {""};
    int rc;

    setlocale(LC_CTYPE, ""); /* which characters can be printed */
    if (read_arguments(&arguments, argc, argv, &err) != 0)
        return say(STATUS_USAGE, &err);
    umask(077);
    signal(SIGPIPE, SIG_IGN);
    if (sodium_init() < 0) {
        error_set(&err, "libsodium cannot be used");
        return say(STATUS_FAILED, &err);
    }
    stop_watch(arguments.timeout);
    rc = run(&arguments, &err);
    if (rc != 0)
        return say(rc == COMMAND_NOTHING ? STATUS_NOTHING : STATUS_FAILED, &err);
    if (fflush(stdout) == 0)
        return STATUS_OK;
    error_set(&err, "cannot write the output: %s", strerror(errno));
    return say(STATUS_FAILED, &err);
}
