/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elastic-fit: trainings of the models of a service (doc/internals/fit.md).
 *
 * `selastic fit` becomes it. The leader of a service starts it as the runner of the fits, and it is
 * the program of the replica that trains. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <locale.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sodium.h>

#include "cmd/command.h"
#include "cmd/options.h"
#include "cmd/terminal_text.h"
#include "common/monotonic.h"
#include "fit/fit_command.h"
#include "fit/grant.h"
#include "lib/fit.h"
#include "lib/fit_view.h"
#include "lib/number.h"
#include "lib/states.h"

#define WITHIN_MAX (366 * 86400.0)

static void print_help(void)
{
    printf(
        "Usage: %1$s start SERVICE --data=DATA [OPTION]...\n"
        "       %1$s show SERVICE [FIT] [--json]\n"
        "       %1$s list SERVICE [--json]\n"
        "       %1$s log SERVICE [FIT] [--json]\n"
        "       %1$s cancel SERVICE [FIT] [--reason=TEXT] [--json]\n"
        "       %1$s list SERVICE --guests [--json]\n"
        "       %1$s cancel SERVICE GUEST --guests [--reason=TEXT] [--json]\n"
        "\n"
        "A fit trains a model of a service, in the job of the service or at a trainer of another\n"
        "user, and has its result served.\n"
        "Without FIT, which is a number, the latest one is meant.\n"
        "\n"
        "  --model=MODEL      which model (default: the only one of the service)\n"
        "  --data=DATA        what it is trained on: a path, or what the stage program gets;\n"
        "                     -: data, targets and config are an object on the standard input\n"
        "  --targets=DATA     the targets, if they are elsewhere\n"
        "  --dataset=NAME     the name of the data (default: the end of its path)\n"
        "  --format=FORMAT    the format of the data, passed on as it is\n"
        "  --config=FILE      JSON for the training; a name without .json: of the service;\n"
        "                     or the JSON object itself; -: the standard input\n"
        "  --from=STATE       not the latest state is passed on, but this one, or none\n"
        "  --trainer=SERVICE@USER\n"
        "                     who trains it: a service of another user that allows it\n"
        "  --within=WHAT=TIME start, fit or target: how long that may take, such as fit=2h\n"
        "  --wait             wait until the fit is over\n"
        "  --reason=TEXT      why it is cancelled, up to 300 bytes\n"
        "  --guests           trainings for other users, whom the service allows them\n"
        "  --json             print JSON; a failure is {\"error\": TEXT}\n"
        "  --help             print this text\n"
        "\n"
        "Exit status: 0 success, 1 failed, 2 wrong command line, 3 no such fit, 4 it is over\n"
        "already.\n",
        program_invocation_short_name);
}

static const struct {
    const char *name;
    bool id;      /* a second argument may say which fit */
    bool of_user; /* access that is over is taken back */
    bool program; /* others may be a program and its arguments */
    int (*run)(const struct fit_arguments *arguments, struct error *err);
} commands[] = {
    {"start", false, true, false, fit_start},  {"show", true, true, false, fit_show},
    {"list", false, true, false, fit_list},    {"log", true, true, false, fit_log},
    {"cancel", true, true, false, fit_cancel}, {"run", false, false, false, fit_run},
    {"train", false, false, true, fit_train},  {"become", false, false, true, fit_become},
    {"desk", false, false, false, fit_desk},   {"revoke", false, false, false, fit_revoke},
};
#define COMMANDS (sizeof(commands) / sizeof(*commands))

static const struct option long_options[] = {
    {"model", required_argument, NULL, 'm'},    {"data", required_argument, NULL, 'd'},
    {"targets", required_argument, NULL, 't'},  {"dataset", required_argument, NULL, 'n'},
    {"format", required_argument, NULL, 'f'},   {"config", required_argument, NULL, 'c'},
    {"from", required_argument, NULL, 'F'},     {"within", required_argument, NULL, 'w'},
    {"wait", no_argument, NULL, 'W'},           {"reason", required_argument, NULL, 'r'},
    {"job", required_argument, NULL, 'J'},      {"json", no_argument, NULL, 'j'},
    {"trainer", required_argument, NULL, 'T'},  {"guests", no_argument, NULL, 'g'},
    {"restarts", required_argument, NULL, 'R'}, {"cluster", required_argument, NULL, 'C'},
    {"call", required_argument, NULL, 'l'},     {"port", required_argument, NULL, 'p'},
    {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0},
};

/* "fit=2h". */
static int read_within(struct fit_arguments *arguments, const char *text, struct error *err)
{
    static const char *const names[] = {"start", "fit", "target"};
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
    const char *equals = strchr(text, '=');
    char *end = NULL;
    double value = equals != NULL && equals[1] >= '0' && equals[1] <= '9' ? strtod(equals + 1, &end)
                                                                          : -1;

    for (int i = 0; value > 0 && i < 3; i++) {
        if (strlen(names[i]) != (size_t)(equals - text) ||
            strncmp(text, names[i], strlen(names[i])) != 0)
            continue;
        for (size_t k = 0; k < sizeof(units) / sizeof(units[0]); k++)
            if (strcmp(end, units[k].unit) == 0 && value * units[k].seconds <= WITHIN_MAX) {
                arguments->within[i] = value * units[k].seconds;
                return 0;
            }
    }
    return error_set(
        err,
        "--within=%s: write start=, fit= or target= and a time such as 30s, 10m, 2h or "
        "1d",
        error_value(text).text);
}

static int read_from(struct fit_arguments *arguments, const char *text, struct error *err)
{
    bool partial;

    arguments->from = text;
    if (strcmp(text, "none") == 0 || (state_number(text, &partial) > 0 && !partial))
        return 0;
    return error_set(err, "--from=%s: write the name of a state, such as 000007, or none",
                     error_value(text).text);
}

static int read_option(void *to, int option, struct error *err)
{
    struct fit_arguments *arguments = to;
    int job;

    switch (option) {
    case 'm':
        arguments->model = optarg;
        return 0;
    case 'd':
        arguments->data = optarg;
        return 0;
    case 't':
        arguments->targets = optarg;
        return 0;
    case 'n':
        arguments->dataset = optarg;
        return 0;
    case 'f':
        arguments->format = optarg;
        return 0;
    case 'c':
        arguments->config = optarg;
        return 0;
    case 'F':
        return read_from(arguments, optarg, err);
    case 'w':
        return read_within(arguments, optarg, err);
    case 'T':
        arguments->trainer = optarg;
        return 0;
    case 'g':
        arguments->guests = true;
        return 0;
    case 'R':
        if (number_parse(optarg, strlen(optarg), 0, INT32_MAX, &arguments->restarts) != 0)
            return error_set(err, "--restarts=%s: must be a number", error_value(optarg).text);
        return 0;
    case 'W':
        arguments->wait = true;
        return 0;
    case 'r':
        arguments->reason = optarg;
        return strlen(optarg) <= FIT_CANCEL_MAX
                   ? 0
                   : error_set(err, "--reason has %zu bytes; %d is the most", strlen(optarg),
                               FIT_CANCEL_MAX);
    case 'j':
        arguments->json = true;
        return 0;
    case 'C':
        arguments->cluster = optarg[0] != '\0' ? optarg : NULL;
        return 0;
    case 'l':
        arguments->call = optarg;
        return 0;
    case 'p':
        if (number_parse(optarg, strlen(optarg), 1, 65535, &arguments->port) != 0)
            return error_set(err, "--port=%s: must be the number of a port",
                             error_value(optarg).text);
        return 0;
    case 'J':
        if (number_parse(optarg, strlen(optarg), 1, INT32_MAX, &job) != 0)
            return error_set(err, "--job=%s: must be the number of a job",
                             error_value(optarg).text);
        arguments->job = (uint32_t)job;
        return 0;
    }
    return 0;
}

static int read_words(struct fit_arguments *arguments, size_t *command, int count,
                      char *const *words, struct error *err)
{
    int id = 0;

    *command = 0;
    while (count > 0 && *command < COMMANDS && strcmp(commands[*command].name, words[0]) != 0)
        ++*command;
    if (count == 0 || *command == COMMANDS)
        return error_set(err, "%s%sthe commands are start, show, list, log and cancel",
                         count > 0 ? error_value(words[0]).text : "", count > 0 ? ": " : "");
    if (commands[*command].run == fit_revoke && count == 1)
        return 0;
    if (commands[*command].program && count > 2) {
        arguments->program = words + 2;
        count = 2;
    }
    if (commands[*command].run == fit_become && arguments->program == NULL)
        return error_set(err, "become: needs a service and a program");
    if (count < 2 || count > 2 + (commands[*command].id ? 1 : 0))
        return error_set(err, "%s: needs a service%s; see --help", words[0],
                         commands[*command].id ? ", and perhaps the number of a fit" : "");
    arguments->service = words[1];
    if (count == 3 && number_parse(words[2], strlen(words[2]), 1, INT32_MAX, &id) != 0)
        return error_set(err, "'%s' is no fit: a fit has a number", error_value(words[2]).text);
    arguments->id = id;
    return 0;
}

static int read_arguments(struct fit_arguments *arguments, size_t *command, int argc, char **argv,
                          struct error *err)
{
    static const struct options_syntax syntax = {long_options, print_help, read_option};

    *arguments = (struct fit_arguments){0};
    if (options_read(argc, argv, &syntax, arguments, err) != 0)
        return -1;
    return read_words(arguments, command, argc - optind, argv + optind, err);
}

static void say_as_json(const struct error *err)
{
    json_object *json = json_object_new_object();

    json_object_object_add(json, "error", json_object_new_string(err->text));
    print_json(json, true);
}

/* ---- access that is over --------------------------------------------------------------------- */

#define REVOKE_WAIT_MS 10000 /* for what is taken back before a command … */
#define REVOKE_LIMIT   600   /* … and seconds that it may go on after that */

/* In a process of its own, with nothing of the terminal's. What it says goes to the other one. */
static _Noreturn void take_back(int out)
{
    struct error err = {""};
    int taken, null = open("/dev/null", O_RDWR | O_CLOEXEC);

    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    alarm(REVOKE_LIMIT);
    if (grant_revoke_all(NULL, (double)time(NULL), &taken, &err) != 0)
        fprintf(stderr, "%s: access of trainers cannot be taken back: %s\n",
                program_invocation_short_name, err.text);
    _exit(0);
}

/* Until it has ended, or the time is over: a file system may never answer. */
static void wait_for_it(int fd, pid_t pid)
{
    long long end = monotonic_ms() + REVOKE_WAIT_MS, left;
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    char text[1024];
    ssize_t length = -1;

    while (length != 0 && (left = end - monotonic_ms()) > 0)
        if (poll(&polled, 1, (int)left) > 0 && (length = read(fd, text, sizeof(text))) > 0)
            fwrite(text, 1, (size_t)length, stderr);
    if (length == 0)
        waitpid(pid, NULL, 0);
    else
        fprintf(stderr,
                "%s: access of trainers that is over is not taken back yet: a file system does not "
                "answer, or it is much; that goes on\n",
                program_invocation_short_name);
}

static void take_back_what_is_over(void)
{
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return;
    pid = fork();
    if (pid == 0)
        take_back(ends[1]);
    close(ends[1]);
    if (pid > 0)
        wait_for_it(ends[0], pid);
    close(ends[0]);
}

/* ---- the program ----------------------------------------------------------------------------- */

static int say(const struct fit_arguments *arguments, int status, const struct error *err)
{
    char *clean = text_clean(err->text, 0);

    if (arguments->json)
        say_as_json(err);
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, clean);
    free(clean);
    return status;
}

int main(int argc, char **argv)
{
    struct fit_arguments arguments;
    struct error err = {""};
    size_t command;
    int rc;

    setlocale(LC_CTYPE, "");
    if (read_arguments(&arguments, &command, argc, argv, &err) != 0)
        return say(&arguments, FIT_EXIT_USAGE, &err);
    umask(077);
    signal(SIGPIPE, SIG_IGN);
    if (sodium_init() < 0) {
        error_set(&err, "libsodium cannot be used");
        return say(&arguments, FIT_EXIT_FAILED, &err);
    }
    if (commands[command].of_user)
        take_back_what_is_over();
    rc = commands[command].run(&arguments, &err);
    if (rc != 0)
        return say(&arguments, rc > 0 ? rc : FIT_EXIT_FAILED, &err);
    if (fflush(stdout) == 0)
        return FIT_EXIT_OK;
    error_set(&err, "cannot write the output: %s", strerror(errno));
    return say(&arguments, FIT_EXIT_FAILED, &err);
}
