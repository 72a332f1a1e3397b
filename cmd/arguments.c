/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line of each subcommand of selastic. Pure. */
#include "cmd/arguments.h"

#include <ctype.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cmd/argument_values.h"
#include "lib/number.h"
#include "lib/shard_commands.h"
#include "lib/shard_plan.h"
#include "lib/text.h"

#define TIMEOUT_DEFAULT  60
#define TIMEOUT_MAX      3600
#define WAIT_MAX         (30 * 24 * 3600)
#define DAYS_DEFAULT     30
#define SERVICE_NAME_MAX 31

/* Of the exporter. */
#define EXPORTER_PORT        9842
#define EXPORTER_JOBS        50
#define EXPORTER_INTERVAL    15
#define EXPORTER_TIMEOUT     10
#define EXPORTER_TIMEOUT_MAX 600

enum {
    OPTION_HELP = 'h',
    OPTION_FOLLOW = 'f',
    OPTION_WHOSE = 'u',
    OPTION_ACCOUNT = 'A',
    OPTION_JSON = 256,
    OPTION_ALL,
    OPTION_GROUP,
    OPTION_TIMELINE,
    OPTION_WATCH,
    OPTION_USER,
    OPTION_STATE_DIR,
    OPTION_FILE,
    OPTION_NODES,
    OPTION_PARTITION,
    OPTION_TIMEOUT,
    OPTION_PIECES,
    OPTION_DRY_RUN,
    OPTION_OLDER_THAN,
    OPTION_ROLE,
    OPTION_FORMAT,
    OPTION_PORT,
    OPTION_AFTER,
    OPTION_SIZE,
    OPTION_STEP,
    OPTION_STATE,
    OPTION_ENDED,
    OPTION_WAIT_TIMEOUT,
    OPTION_SVG,
    OPTION_HTML,
    OPTION_TITLE,
    OPTION_HERE,
    OPTION_PEERS,
    OPTION_TOKEN,
    OPTION_JOB,
    OPTION_SINCE,
    OPTION_INTERVAL,
    OPTION_UNTIL,
    OPTION_ADDRESS,
    OPTION_JOBS,
    OPTION_EXPORTER_TIMEOUT,
    OPTION_ONCE,
    OPTION_KEYS
};

#define JSON                                                                                       \
    {                                                                                              \
        "json", no_argument, NULL, OPTION_JSON                                                     \
    }
#define HELP                                                                                       \
    {                                                                                              \
        "help", no_argument, NULL, OPTION_HELP                                                     \
    }
#define END                                                                                        \
    {                                                                                              \
        NULL, 0, NULL, 0                                                                           \
    }

static const struct option list_options[] = {{"all", no_argument, NULL, OPTION_ALL},
                                             {"group", required_argument, NULL, OPTION_GROUP},
                                             JSON,
                                             HELP,
                                             END};
static const struct option top_options[] = {{"all", no_argument, NULL, OPTION_ALL},
                                            {"interval", required_argument, NULL, OPTION_INTERVAL},
                                            JSON,
                                            HELP,
                                            END};
static const struct option look_options[] = {
    {"watch", optional_argument, NULL, OPTION_WATCH}, JSON, HELP, END};
static const struct option wait_options[] = {
    {"size", required_argument, NULL, OPTION_SIZE},
    {"step", required_argument, NULL, OPTION_STEP},
    {"state", required_argument, NULL, OPTION_STATE},
    {"ended", no_argument, NULL, OPTION_ENDED},
    {"timeout", required_argument, NULL, OPTION_WAIT_TIMEOUT},
    JSON,
    HELP,
    END};
static const struct option order_options[] = {JSON, HELP, END};
static const struct option place_options[] = {
    {"keys", no_argument, NULL, OPTION_KEYS}, JSON, HELP, END};
static const struct option apply_options[] = {
    {"file", required_argument, NULL, OPTION_FILE}, JSON, HELP, END};
static const struct option logs_options[] = {
    {"follow", no_argument, NULL, OPTION_FOLLOW}, JSON, HELP, END};
static const struct option reports_options[] = {{"after", required_argument, NULL, OPTION_AFTER},
                                                {"follow", no_argument, NULL, OPTION_FOLLOW},
                                                JSON,
                                                HELP,
                                                END};
static const struct option proxy_options[] = {
    {"port", required_argument, NULL, OPTION_PORT}, HELP, END};
static const struct option exporter_options[] = {
    {"address", required_argument, NULL, OPTION_ADDRESS},
    {"port", required_argument, NULL, OPTION_PORT},
    {"jobs", required_argument, NULL, OPTION_JOBS},
    {"interval", required_argument, NULL, OPTION_INTERVAL},
    {"timeout", required_argument, NULL, OPTION_EXPORTER_TIMEOUT},
    {"once", no_argument, NULL, OPTION_ONCE},
    HELP,
    END};
static const struct option endpoints_options[] = {
    {"role", required_argument, NULL, OPTION_ROLE},
    {"format", required_argument, NULL, OPTION_FORMAT},
    JSON,
    HELP,
    END};
static const struct option history_options[] = {
    {"timeline", no_argument, NULL, OPTION_TIMELINE},
    {"svg", required_argument, NULL, OPTION_SVG},
    {"html", required_argument, NULL, OPTION_HTML},
    {"title", required_argument, NULL, OPTION_TITLE},
    {"user", required_argument, NULL, OPTION_USER},
    {"state-dir", required_argument, NULL, OPTION_STATE_DIR},
    JSON,
    HELP,
    END};

static const struct option usage_options[] = {{"all", no_argument, NULL, OPTION_ALL},
                                              {"user", required_argument, NULL, OPTION_WHOSE},
                                              {"account", required_argument, NULL, OPTION_ACCOUNT},
                                              {"since", required_argument, NULL, OPTION_SINCE},
                                              {"until", required_argument, NULL, OPTION_UNTIL},
                                              {"svg", required_argument, NULL, OPTION_SVG},
                                              {"html", required_argument, NULL, OPTION_HTML},
                                              {"title", required_argument, NULL, OPTION_TITLE},
                                              JSON,
                                              HELP,
                                              END};
static const struct option clean_options[] = {
    {"dry-run", no_argument, NULL, OPTION_DRY_RUN},
    {"older-than", required_argument, NULL, OPTION_OLDER_THAN},
    JSON,
    HELP,
    END};
static const struct option plan_options[] = {
    {"partition", required_argument, NULL, OPTION_PARTITION}, JSON, HELP, END};
static const struct option doctor_options[] = {
    {"here", no_argument, NULL, OPTION_HERE},
    {"token", required_argument, NULL, OPTION_TOKEN}, /* of doctor_step.c */
    {"peers", required_argument, NULL, OPTION_PEERS}, /* of doctor_step.c */
    {"pieces", no_argument, NULL, OPTION_PIECES},     /* of doctor_step.c */
    {"nodes", required_argument, NULL, OPTION_NODES},
    {"partition", required_argument, NULL, OPTION_PARTITION},
    {"timeout", required_argument, NULL, OPTION_TIMEOUT},
    {"job", required_argument, NULL, OPTION_JOB},
    JSON,
    HELP,
    END};
static const struct option topology_options[] = {HELP, END};
static const struct option collect_options[] = {
    {"output", required_argument, NULL, OPTION_FILE},
    {"nodes", required_argument, NULL, OPTION_NODES},
    {"partition", required_argument, NULL, OPTION_PARTITION},
    {"timeout", required_argument, NULL, OPTION_TIMEOUT},
    JSON,
    HELP,
    END};
static const struct option shapes_options[] = {
    {"file", required_argument, NULL, OPTION_FILE}, JSON, HELP, END};
static const struct option describe_options[] = {
    {"pieces", no_argument, NULL, OPTION_PIECES}, JSON, HELP, END};

/* ---- operands: as many as the syntax allows -------------------------------------------------- */

static int take_file(struct arguments *arguments, char **operands, int count, struct error *err)
{
    (void)count;
    (void)err;
    arguments->file = operands[0];
    return 0;
}

static int take_job(struct arguments *arguments, char **operands, int count, struct error *err)
{
    (void)count;
    return value_job(operands[0], &arguments->job_id, err);
}

static int take_job_if(struct arguments *arguments, char **operands, int count, struct error *err)
{
    return count > 0 ? take_job(arguments, operands, count, err) : 0;
}

/* A job, or the name of a service: no job id is one. */
static int take_service(struct arguments *arguments, char **operands, int count, struct error *err)
{
    const char *word = operands[0];
    if (isdigit((unsigned char)word[0]))
        return take_job(arguments, operands, count, err);
    if (strlen(word) > SERVICE_NAME_MAX || !value_is_name(word, strlen(word)))
        return error_set(err, "'%s' is not a job id, nor the name of a service",
                         error_value(word).text);
    arguments->service = word;
    return 0;
}

static int take_model(struct arguments *arguments, char **operands, int count, struct error *err)
{
    if (take_service(arguments, operands, count, err) < 0)
        return -1;
    if (!shard_name_ok(operands[1]))
        return error_set(err, "'%s' is not the name of a model", error_value(operands[1]).text);
    arguments->model = operands[1];
    return 0;
}

/* 2, or shard_2. */
static int take_shard(struct arguments *arguments, const char *word, struct error *err)
{
    const char *shard = word + (strncmp(word, "shard_", 6) == 0 ? 6 : 0);

    if (number_parse(shard, strlen(shard), 1, SHARD_PLAN_SHARDS_MAX, &arguments->shard) != 0)
        return error_set(err, "'%s' is not a shard; write a number from 1 to %d, or shard_1",
                         error_value(word).text, SHARD_PLAN_SHARDS_MAX);
    return 0;
}

/* A service, a model, and the shard that it moves to. */
static int take_move(struct arguments *arguments, char **operands, int count, struct error *err)
{
    return take_model(arguments, operands, count, err) < 0
               ? -1
               : take_shard(arguments, operands[2], err);
}

/* A service, a shard, and the models that it is to have, or their keys. */
static int take_place(struct arguments *arguments, char **operands, int count, struct error *err)
{
    if (take_service(arguments, operands, count, err) < 0 ||
        take_shard(arguments, operands[1], err) < 0)
        return -1;
    for (int i = 2; i < count; i++)
        if (arguments->keys ? !shard_key_ok(operands[i]) : !shard_name_ok(operands[i]))
            return error_set(err, "'%s' is not the %s of a model", error_value(operands[i]).text,
                             arguments->keys ? "key" : "name");
    arguments->models = operands + 2;
    return 0;
}

static int take_size(struct arguments *arguments, char **operands, int count, struct error *err)
{
    if (take_job(arguments, operands, count, err) < 0)
        return -1;
    return value_size(operands[1], &arguments->relative, &arguments->nodes, err);
}

static int take_role(struct arguments *arguments, char **operands, int count, struct error *err)
{
    if (take_job(arguments, operands, count, err) < 0)
        return -1;
    return count > 1 ? value_role(operands[1], &arguments->role, err) : 0;
}

static int take_replica(struct arguments *arguments, char **operands, int count, struct error *err)
{
    if (take_job(arguments, operands, count, err) < 0)
        return -1;
    return value_replica(operands[1], &arguments->replica, err);
}

/* The name at the beginning of lines of output. */
static int take_name(struct arguments *arguments, char **operands, int count, struct error *err)
{
    const char *name = count > 1 ? operands[1] : NULL;
    if (take_job(arguments, operands, count, err) < 0)
        return -1;
    arguments->name = name;
    if (name == NULL || value_is_name(name, strcspn(name, ".")))
        return 0;
    return error_set(err,
                     "'%s' is not a role or replica; give its name (collector, collector-3), or "
                     "that of a task (pair-0.1)",
                     error_value(name).text);
}

static int take_reporter(struct arguments *arguments, char **operands, int count, struct error *err)
{
    if (take_job(arguments, operands, count, err) < 0)
        return -1;
    if (count == 1)
        return 0;
    arguments->name = operands[1];
    if (value_is_name(arguments->name, strlen(arguments->name)))
        return 0;
    return error_set(err, "'%s' is not a role or replica; give its name (collector, collector-3)",
                     error_value(arguments->name).text);
}

static int take_scales(struct arguments *arguments, char **operands, int count, struct error *err)
{
    if (take_job(arguments, operands, count, err) < 0)
        return -1;
    for (int i = 1; i < count; i++)
        if (value_scale(operands[i], &arguments->scales[arguments->scale_count++], err) < 0)
            return -1;
    return 0;
}

static const struct syntax {
    const char *name;
    const char *operands; /* for messages */
    int least, most;      /* operands; least -1: an action */
    int (*take)(struct arguments *, char **, int, struct error *); /* NULL: there are none */
    const struct option *options;
} syntaxes[] = {
    {"list", "no arguments besides options", 0, 0, NULL, list_options},
    {"top", "no arguments besides options", 0, 0, NULL, top_options},
    {"show", "one argument: JOB", 1, 1, take_job, look_options},
    {"wait", "one argument: JOB", 1, 1, take_job, wait_options},
    {"resize", "two arguments: JOB and N, +K or -K", 2, 2, take_size, order_options},
    {"history", "one argument: JOB", 1, 1, take_job, history_options},
    {"roles", "one argument: JOB", 1, 1, take_job, look_options},
    {"replicas", "one or two arguments: JOB and ROLE", 1, 2, take_role, look_options},
    {"scale", "JOB and then one to 16 changes: ROLE=N, ROLE=+K or ROLE=-K", 2, 1 + SCALES_MAX,
     take_scales, order_options},
    {"fail", "two arguments: JOB and REPLICA", 2, 2, take_replica, order_options},
    {"remove", "two arguments: JOB and REPLICA", 2, 2, take_replica, order_options},
    {"endpoints", "one argument: JOB", 1, 1, take_job, endpoints_options},
    {"logs", "one or two arguments: JOB and ROLE or REPLICA", 1, 2, take_name, logs_options},
    {"reports", "one or two arguments: JOB and ROLE or REPLICA", 1, 2, take_reporter,
     reports_options},
    {"proxy", "at most one argument: JOB", 0, 1, take_job_if, proxy_options},
    {"usage", "at most one argument: JOB", 0, 1, take_job_if, usage_options},
    {"exporter", "no arguments besides options", 0, 0, NULL, exporter_options},
    {"services", "no arguments besides options", 0, 0, NULL, order_options},
    {"shard", "one argument: JOB or SERVICE", 1, 1, take_service, look_options},
    {"apply", "one argument: JOB or SERVICE", 1, 1, take_service, apply_options},
    {"flush", "one argument: JOB or SERVICE", 1, 1, take_service, order_options},
    {"repack", "one argument: JOB or SERVICE", 1, 1, take_service, order_options},
    {"move", "three arguments: JOB or SERVICE, MODEL, SHARD", 3, 3, take_move, order_options},
    {"place", "JOB or SERVICE, SHARD, and then one or more: MODEL", 3, INT_MAX, take_place,
     place_options},
    {"withdraw", "two arguments: JOB or SERVICE, MODEL", 2, 2, take_model, order_options},
    {"serve", "two arguments: JOB or SERVICE, MODEL", 2, 2, take_model, order_options},
    {"handover", "one argument: JOB or SERVICE", 1, 1, take_service, order_options},
    {"clean", "no arguments besides options", 0, 0, NULL, clean_options},
    {"plan", "one argument: FILE", 1, 1, take_file, plan_options},
    {"states", NULL, 0, 0, NULL, NULL}, /* elastic-state reads them */
    {"fit", NULL, 0, 0, NULL, NULL},    /* elastic-fit reads them */
    {"router", NULL, 0, 0, NULL, NULL}, /* elastic-router reads them */
    {"doctor", "no arguments besides options", 0, 0, NULL, doctor_options},
    {"topology", "an action first: collect, show, check or describe", -1, -1, NULL,
     topology_options},
};

/* By enum topology_action. */
static const struct syntax actions[] = {
    {"topology collect", "no arguments besides options", 0, 0, NULL, collect_options},
    {"topology show", "no arguments besides options", 0, 0, NULL, shapes_options},
    {"topology check", "no arguments besides options", 0, 0, NULL, shapes_options},
    {"topology describe", "no arguments besides options", 0, 0, NULL, describe_options},
};

/* ---- options --------------------------------------------------------------------------------- */

static int take_option(struct arguments *arguments, int option, const char *value,
                       struct error *err)
{
    switch (option) {
    case OPTION_HELP:
        arguments->help = true;
        return 0;
    case OPTION_JSON:
        arguments->json = true;
        return 0;
    case OPTION_FOLLOW:
        arguments->follow = true;
        return 0;
    case OPTION_ALL:
        arguments->all = true;
        return 0;
    case OPTION_GROUP:
        arguments->group = value;
        return 0;
    case OPTION_TIMELINE:
        arguments->timeline = true;
        return 0;
    case OPTION_SVG:
        arguments->svg = value;
        return 0;
    case OPTION_HTML:
        arguments->html = value;
        return 0;
    case OPTION_TITLE:
        arguments->title = value;
        return 0;
    case OPTION_USER:
        arguments->user = value;
        return 0;
    case OPTION_WHOSE:
        return value_who(value, &arguments->user, err);
    case OPTION_ACCOUNT:
        return value_who(value, &arguments->account, err);
    case OPTION_SINCE:
        return value_time(value, &arguments->since, err);
    case OPTION_UNTIL:
        return value_time(value, &arguments->until, err);
    case OPTION_STATE_DIR:
        arguments->state_dir = value;
        return 0;
    case OPTION_WATCH:
        return value_watch(value, &arguments->watch, err);
    case OPTION_PORT:
        return value_port(value, &arguments->port, err);
    case OPTION_AFTER:
        return value_after(value, &arguments->after, err);
    case OPTION_FILE:
        arguments->file = value;
        return 0;
    case OPTION_NODES:
        arguments->hostlist = value;
        return 0;
    case OPTION_PARTITION:
        arguments->partition = value;
        return 0;
    case OPTION_TIMEOUT:
        return value_timeout(value, TIMEOUT_MAX, &arguments->timeout, err);
    case OPTION_WAIT_TIMEOUT:
        return value_timeout(value, WAIT_MAX, &arguments->wait_seconds, err);
    case OPTION_SIZE:
        return wait_goal_size(&arguments->goal, value, err);
    case OPTION_STEP:
        return wait_goal_step(&arguments->goal, value, err);
    case OPTION_STATE:
        return wait_goal_state(&arguments->goal, value, err);
    case OPTION_ENDED:
        arguments->goal.ended = true;
        return 0;
    case OPTION_DRY_RUN:
        arguments->dry_run = true;
        return 0;
    case OPTION_OLDER_THAN:
        return value_days(value, &arguments->days, err);
    case OPTION_PIECES:
        arguments->pieces = true;
        return 0;
    case OPTION_HERE:
        arguments->here = true;
        return 0;
    case OPTION_PEERS:
        arguments->peers = value;
        return 0;
    case OPTION_TOKEN:
        arguments->token = value;
        return 0;
    case OPTION_JOB:
        return value_job(value, &arguments->job_id, err);
    case OPTION_ADDRESS:
        return value_address(value, &arguments->address, err);
    case OPTION_JOBS:
        return value_jobs(value, &arguments->jobs, err);
    case OPTION_INTERVAL:
        return value_interval(value, &arguments->interval, err);
    case OPTION_EXPORTER_TIMEOUT:
        return value_timeout(value, EXPORTER_TIMEOUT_MAX, &arguments->timeout, err);
    case OPTION_ONCE:
        arguments->once = true;
        return 0;
    case OPTION_KEYS:
        arguments->keys = true;
        return 0;
    case OPTION_ROLE:
        return value_role(value, &arguments->role, err);
    case OPTION_FORMAT:
        return value_format(value, &arguments->format, err);
    default:
        return -1;
    }
}

/* Getopt would take -2 for an option: move a difference out of its sight. Returns the difference,
 * or NULL. */
static char *take_difference(int *argc, char **argv)
{
    for (int i = 1; i < *argc && strcmp(argv[i], "--") != 0; i++) {
        if (argv[i][0] != '-' || !isdigit((unsigned char)argv[i][1]))
            continue;
        char *difference = argv[i];
        memmove(argv + i, argv + i + 1, (size_t)(*argc - i) * sizeof(*argv));
        --*argc;
        return difference;
    }
    return NULL;
}

static bool is_option(const struct option *options, int value)
{
    while (options->name != NULL && options->val != value)
        options++;
    return options->name != NULL;
}

/* "topology" of "topology show". */
static struct error_value first_word(const char *name)
{
    struct error_value word = {""};
    snprintf(word.text, sizeof(word.text), "%.*s", (int)strcspn(name, " "), name);
    return word;
}

static int parse_options(const struct syntax *syntax, int argc, char **argv,
                         struct arguments *arguments, struct error *err)
{
    const char *letters = is_option(syntax->options, OPTION_FOLLOW)  ? ":hf"
                          : is_option(syntax->options, OPTION_WHOSE) ? ":hu:A:"
                                                                     : ":h";
    int option;
    optind = 0; /* glibc: begin again */
    opterr = 0;
    while ((option = getopt_long(argc, argv, letters, syntax->options, NULL)) != -1) {
        const char *word = argv[optind - 1], letter[] = {'-', (char)optopt, '\0'};
        if (option == ':')
            return error_set(err, "option '%s' needs a value", error_value(word).text);
        if (option == '?' && is_option(syntax->options, optopt))
            return error_set(err, "option '%s' takes no value", error_value(word).text);
        /* A word of several letters ("-xy"): getopt is not behind it yet. */
        if (option == '?')
            return error_set(err, "unknown option '%s' of '%s'; see 'selastic %s --help'",
                             error_value(optopt != 0 ? letter : word).text, syntax->name,
                             first_word(syntax->name).text);
        if (take_option(arguments, option, optarg, err) < 0)
            return -1;
    }
    return 0;
}

static int parse_operands(const struct syntax *syntax, char **operands, int count,
                          struct arguments *arguments, struct error *err)
{
    if (count < syntax->least || count > syntax->most)
        return error_set(err, "'%s' takes %s", syntax->name, syntax->operands);
    return syntax->take != NULL ? syntax->take(arguments, operands, count, err) : 0;
}

/* The syntax of the action that argv[1] names. NULL with err if argv[1] names no action. */
static const struct syntax *find_action(const char *word, struct arguments *arguments,
                                        struct error *err)
{
    for (size_t i = 0; i < sizeof(actions) / sizeof(*actions); i++)
        if (strcmp(word, strchr(actions[i].name, ' ') + 1) == 0) {
            arguments->action = (enum topology_action)i;
            return &actions[i];
        }
    error_set(err, "unknown action '%s' of 'topology'; actions: collect, show, check, describe",
              error_value(word).text);
    return NULL;
}

/* What others call it. */
static const char *const other_words[][2] = {
    {"status", "show"}, {"info", "show"}, {"why", "show"},    {"ls", "list"},
    {"ps", "list"},     {"jobs", "list"}, {"size", "resize"}, {"log", "logs"},
};

int arguments_unknown(const char *name, struct error *err)
{
    char known[512] = "", nearest[128] = "";
    for (size_t i = 0; i < sizeof(other_words) / sizeof(*other_words); i++)
        if (strcmp(name, other_words[i][0]) == 0)
            text_append(nearest, sizeof(nearest), "'%s'", other_words[i][1]);
    for (size_t i = 0; nearest[0] == '\0' && i < sizeof(syntaxes) / sizeof(*syntaxes); i++)
        if (strlen(name) > 2 && text_distance(name, syntaxes[i].name) == 1)
            text_append(nearest, sizeof(nearest), "'%s'", syntaxes[i].name);
    if (nearest[0] != '\0')
        return error_set(err, "unknown command '%s'; did you mean %s? 'selastic --help' lists all",
                         error_value(name).text, nearest);
    for (size_t i = 0; i < sizeof(syntaxes) / sizeof(*syntaxes); i++)
        text_append(known, sizeof(known), "%s, ", syntaxes[i].name);
    return error_set(err, "unknown command '%s'; commands: %shelp", error_value(name).text, known);
}

static int check_doctor(const struct arguments *arguments, struct error *err)
{
    if ((arguments->job_id != 0) + arguments->here + (arguments->hostlist != NULL) > 1)
        return error_set(err, "'doctor' takes one of --job, --here and --nodes");
    if (arguments->token != NULL && !arguments->here)
        return error_set(err, "'doctor' takes --token with --here");
    if (arguments->peers != NULL && !arguments->here)
        return error_set(err, "'doctor' takes --peers with --here");
    if (arguments->pieces && !arguments->here)
        return error_set(err, "'doctor' takes --pieces with --here");
    if (arguments->partition != NULL && arguments->hostlist == NULL)
        return error_set(err, "'doctor' takes --partition with --nodes");
    return 0;
}

static int check_endpoints(const struct arguments *arguments, struct error *err)
{
    if (arguments->json && arguments->format != ENDPOINTS_TEXT &&
        arguments->format != ENDPOINTS_JSON)
        return error_set(err, "'endpoints' takes --json, or another --format");
    return 0;
}

int arguments_parse(int argc, char **argv, struct arguments *arguments, struct error *err)
{
    const struct syntax *syntax = NULL;
    *arguments = (struct arguments){.timeout = TIMEOUT_DEFAULT, .days = DAYS_DEFAULT};
    for (size_t i = 0; i < sizeof(syntaxes) / sizeof(*syntaxes); i++)
        if (strcmp(argv[0], syntaxes[i].name) == 0)
            syntax = &syntaxes[i];
    if (syntax == NULL)
        return arguments_unknown(argv[0], err);
    if (syntax->options == exporter_options) {
        arguments->address = "127.0.0.1";
        arguments->port = EXPORTER_PORT;
        arguments->jobs = EXPORTER_JOBS;
        arguments->interval = EXPORTER_INTERVAL;
        arguments->timeout = EXPORTER_TIMEOUT;
    }
    if (syntax->least < 0 && argc > 1 && argv[1][0] != '-') {
        syntax = find_action(argv[1], arguments, err);
        if (syntax == NULL)
            return -1;
        argc--;
        argv++;
    }
    char *difference = syntax->most > 1 ? take_difference(&argc, argv) : NULL;
    if (parse_options(syntax, argc, argv, arguments, err) < 0)
        return -1;
    if (arguments->help)
        return 0;
    if (difference != NULL) {
        argv[argc++] = difference; /* where it was taken from there is room */
        argv[argc] = NULL;
    }
    if (parse_operands(syntax, argv + optind, argc - optind, arguments, err) < 0)
        return -1;
    if (syntax->options == wait_options)
        return wait_goal_check(&arguments->goal, err);
    if (syntax->options == endpoints_options)
        return check_endpoints(arguments, err);
    return syntax->options == doctor_options ? check_doctor(arguments, err) : 0;
}
