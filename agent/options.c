/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elasticrun's command line (options.h). */
#include "agent/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/pattern.h"
#include "common/log.h"
#include "common/release_own.h"
#include "lib/roles.h"
#include "lib/s3_place.h"
#include "lib/text.h"
#include "lib/world.h"
#include "lib/words.h"

static const char usage_head[] =
    "Usage: srun elasticrun [OPTIONS] COMMAND [ARGS...]\n"
    "       srun elasticrun [OPTIONS] script.py [ARGS...]      (as torchrun)\n"
    "       srun elasticrun [OPTIONS] -m MODULE [ARGS...]\n"
    "       srun elasticrun [OPTIONS] --roles=FILE\n"
    "       srun elasticrun [OPTIONS]                 (in a job with a job file)\n"
    "\n"
    "Run an elastic data-parallel job: workers on every node of the job, restarted in a\n"
    "larger or smaller world as Slurm gives and takes nodes.\n"
    "\n"
    "Size and policy (usually given to sbatch; see sbatch --help):\n";

/* The options of the policy stand between these texts. */
static const char usage_tail[] =
    "  --elastic-config=FILE           the same as JSON, and scale_config\n"
    "\n"
    "Several programs:\n"
    "  --roles=FILE                    run the roles of this job file (YAML or JSON) on the\n"
    "                                  nodes of the step; see `selastic plan`\n"
    "\n"
    "Workers:\n"
    "  --nproc-per-node=N|auto|gpu|cpu workers on each node (tasks per node of srun,\n"
    "                                  else GPUs, else 1)\n"
    "  --max-restarts=N[/SECONDS]      restarts after failures, within any so many seconds (3);\n"
    "                                  resizes do not count\n"
    "  --fail-pattern=REGEX            a worker that writes such a line has failed\n"
    "  --pre-train-script=FILE         run FILE on each node before workers are started there\n"
    "  --post-train-script=FILE        run FILE on each node after its workers have ended\n"
    "  --pre-train-args=WORDS, --post-train-args=WORDS\n"
    "                                  the arguments of these, with quotes as in a shell\n"
    "  --label                         prefix each line of output with the rank\n"
    "  --bind=auto|none                bind each worker to its share of the node (auto)\n"
    "  --mode=auto|live|restart        how workers get from one world to the next: auto, those\n"
    "                                  of a script that uses slurm_elastic.live keep running;\n"
    "                                  live, and the job ends if they cannot; restart, all are\n"
    "                                  started anew\n"
    "  --early-start=auto|no           start the next workers before the old ones leave, if\n"
    "                                  the script waits for its turn (auto)\n"
    "  --pmix=auto|no                  a PMIx server for the workers, as MPI needs (auto)\n"
    "  --state-dir=DIR                 state of the job, on a shared file system\n"
    "  --checkpoint-dir=DIR            ELASTIC_CHECKPOINT_DIR (STATE_DIR/checkpoint), or\n"
    "                                  s3://BUCKET/PREFIX\n"
    "  -m, --module                    COMMAND is a Python module\n"
    "  --no-python                     do not put python before script.py\n"
    "  --help, --version\n"
    "\n"
    "torchrun's --nnodes, --node-rank, --rdzv-*, --master-*, --standalone are accepted:\n"
    "size and rendezvous come from Slurm; --tee, --redirects and --log-dir, too: output\n"
    "goes where srun's goes.\n";

#define USAGE_INDENT 34 /* columns before a help text */
#define USAGE_WIDTH  90 /* columns of a line, as in the texts above */

enum {
    /* Any option of the policy; its name tells which one. */
    OPT_POLICY = 256,
    OPT_CONFIG,
    OPT_ROLES,
    OPT_NPROC,
    OPT_MAX_RESTARTS,
    OPT_FAIL_PATTERN,
    OPT_LABEL,
    OPT_BIND,
    OPT_EARLY_START,
    OPT_MODE,
    OPT_PMIX,
    OPT_STATE_DIR,
    OPT_CHECKPOINT_DIR,
    OPT_NO_PYTHON,
    OPT_PRE_TRAIN,
    OPT_PRE_TRAIN_ARGS,
    OPT_POST_TRAIN,
    OPT_POST_TRAIN_ARGS,
    OPT_EXTENSION,
    OPT_IGNORED,
    OPT_IGNORED_OUTPUT,
    OPT_HELP,
    OPT_VERSION,
};

/* All options but those of the policy. */
static const struct option own_options[] = {
    {"elastic-config", required_argument, NULL, OPT_CONFIG},
    {"roles", required_argument, NULL, OPT_ROLES},
    {"nproc-per-node", required_argument, NULL, OPT_NPROC},
    {"nproc_per_node", required_argument, NULL, OPT_NPROC},
    {"max-restarts", required_argument, NULL, OPT_MAX_RESTARTS},
    {"max_restarts", required_argument, NULL, OPT_MAX_RESTARTS},
    {"fail-pattern", required_argument, NULL, OPT_FAIL_PATTERN},
    {"pre-train-script", required_argument, NULL, OPT_PRE_TRAIN},
    {"pre-train-args", required_argument, NULL, OPT_PRE_TRAIN_ARGS},
    {"post-train-script", required_argument, NULL, OPT_POST_TRAIN},
    {"post-train-args", required_argument, NULL, OPT_POST_TRAIN_ARGS},
    {"label", no_argument, NULL, OPT_LABEL},
    {"bind", required_argument, NULL, OPT_BIND},
    {"early-start", required_argument, NULL, OPT_EARLY_START},
    {"mode", required_argument, NULL, OPT_MODE},
    {"pmix", required_argument, NULL, OPT_PMIX},
    {"state-dir", required_argument, NULL, OPT_STATE_DIR},
    {"checkpoint-dir", required_argument, NULL, OPT_CHECKPOINT_DIR},
    {"module", no_argument, NULL, 'm'},
    {"no-python", no_argument, NULL, OPT_NO_PYTHON},
    {"no_python", no_argument, NULL, OPT_NO_PYTHON},
    {"extension", no_argument, NULL, OPT_EXTENSION},
    {"nnodes", required_argument, NULL, OPT_IGNORED},
    {"node-rank", required_argument, NULL, OPT_IGNORED},
    {"node_rank", required_argument, NULL, OPT_IGNORED},
    {"rdzv-backend", required_argument, NULL, OPT_IGNORED},
    {"rdzv_backend", required_argument, NULL, OPT_IGNORED},
    {"rdzv-endpoint", required_argument, NULL, OPT_IGNORED},
    {"rdzv_endpoint", required_argument, NULL, OPT_IGNORED},
    {"rdzv-id", required_argument, NULL, OPT_IGNORED},
    {"rdzv_id", required_argument, NULL, OPT_IGNORED},
    {"rdzv-conf", required_argument, NULL, OPT_IGNORED},
    {"rdzv_conf", required_argument, NULL, OPT_IGNORED},
    {"master-addr", required_argument, NULL, OPT_IGNORED},
    {"master_addr", required_argument, NULL, OPT_IGNORED},
    {"master-port", required_argument, NULL, OPT_IGNORED},
    {"master_port", required_argument, NULL, OPT_IGNORED},
    {"monitor-interval", required_argument, NULL, OPT_IGNORED},
    {"monitor_interval", required_argument, NULL, OPT_IGNORED},
    {"start-method", required_argument, NULL, OPT_IGNORED},
    {"start_method", required_argument, NULL, OPT_IGNORED},
    {"standalone", no_argument, NULL, OPT_IGNORED},
    {"tee", required_argument, NULL, OPT_IGNORED_OUTPUT},
    {"redirects", required_argument, NULL, OPT_IGNORED_OUTPUT},
    {"log-dir", required_argument, NULL, OPT_IGNORED_OUTPUT},
    {"log_dir", required_argument, NULL, OPT_IGNORED_OUTPUT},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
};
#define OWN_OPTIONS (sizeof(own_options) / sizeof(own_options[0]))
#define OPTIONS_MAX (OWN_OPTIONS + POLICY_OPTIONS_MAX)

/* For getopt_long: own_options, the options of the policy, and zeros as the last entry. */
static void list_options(struct option list[OPTIONS_MAX + 1])
{
    size_t count = OWN_OPTIONS;

    memcpy(list, own_options, sizeof(own_options));
    for (const struct policy_option *option = policy_options; option->json != NULL; option++) {
        if (option->option != NULL)
            list[count++] = (struct option){option->option, required_argument, NULL, OPT_POLICY};
    }
    list[count] = (struct option){0};
}

/* Print a text behind the first column columns of a line, in lines that are indented like it. */
static void print_wrapped(const char *text, int column)
{
    while (*text != '\0') {
        int len = (int)strcspn(text, " ");

        if (column > USAGE_INDENT && column + 1 + len > USAGE_WIDTH) {
            printf("\n%*s", USAGE_INDENT, "");
            column = USAGE_INDENT;
        }
        column += printf("%s%.*s", column > USAGE_INDENT ? " " : "", len, text);
        text += len + strspn(text + len, " ");
    }
    putchar('\n');
}

static void print_option(const struct policy_option *option)
{
    char *builtin = policy_option_default(option), text[512];
    int column = printf("  --%s=%s", option->option, option->argument);

    column += printf("%*s", column < USAGE_INDENT ? USAGE_INDENT - column : 1, "");
    snprintf(text, sizeof(text), builtin != NULL ? "%s (%s)" : "%s", option->help, builtin);
    print_wrapped(text, column);
    free(builtin);
}

static void print_usage(void)
{
    fputs(usage_head, stdout);
    for (const struct policy_option *option = policy_options; option->json != NULL; option++) {
        if (option->option != NULL)
            print_option(option);
    }
    fputs(usage_tail, stdout);
}

static int parse_count(const char *name, const char *text, int min, int max, int *value,
                       struct error *err)
{
    char *end;
    long number;

    errno = 0;
    number = strtol(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || number < min ||
        number > max)
        return error_set(err, "--%s=%s: must be a whole number from %d to %d", name, text, min,
                         max);
    *value = (int)number;
    return 0;
}

static int parse_nproc(struct options *o, const char *text, struct error *err)
{
    if (strcmp(text, "auto") == 0)
        o->nproc_kind = NPROC_AUTO;
    else if (strcmp(text, "gpu") == 0)
        o->nproc_kind = NPROC_GPU;
    else if (strcmp(text, "cpu") == 0)
        o->nproc_kind = NPROC_CPU;
    else if (parse_count("nproc-per-node", text, 1, WORLD_SLOTS_MAX, &o->nproc, NULL) == 0)
        o->nproc_kind = NPROC_NUMBER;
    else
        return error_set(
            err, "--nproc-per-node=%s: must be a whole number from 1 to %d, auto, gpu or cpu", text,
            WORLD_SLOTS_MAX);
    return 0;
}

/* One of two words: on or off. */
static int parse_either(const char *option, const char *text, const char *on, const char *off,
                        bool *value, struct error *err)
{
    if (strcmp(text, on) != 0 && strcmp(text, off) != 0)
        return error_set(err, "--%s=%s: must be %s or %s", option, text, on, off);
    *value = strcmp(text, on) == 0;
    return 0;
}

static int parse_mode(struct options *o, const char *text, struct error *err)
{
    static const char *const words[] = {
        [MODE_AUTO] = "auto", [MODE_LIVE] = "live", [MODE_RESTART] = "restart"};

    for (int mode = MODE_AUTO; mode <= MODE_RESTART; mode++) {
        if (strcmp(text, words[mode]) == 0) {
            o->mode = (enum worker_mode)mode;
            return 0;
        }
    }
    return error_set(err, "--mode=%s: must be auto, live or restart", text);
}

static int parse_pattern(struct options *o, const char *text, struct error *err)
{
    struct pattern *pattern = text[0] != '\0' ? pattern_create(text, err) : NULL;

    if (text[0] == '\0')
        return error_set(err, "--fail-pattern=: every line would match; leave it out instead");
    if (pattern == NULL)
        return error_prefix(err, "--fail-pattern");
    pattern_destroy(pattern);
    o->fail_pattern = text;
    return 0;
}

/* The command as elasticrun executes it. Python runs a script or a module, as under torchrun. */
static int build_argv(struct options *o, char **args, bool module, bool no_python,
                      struct error *err)
{
    size_t count = strings_count(args), at = 0, len;
    const char *python = getenv("PYTHON_EXEC");
    bool script;

    if (args[0] == NULL)
        return error_set(err, "no command to run; try: srun elasticrun python train.py (elasticrun "
                              "--help shows more)");
    o->argv = calloc(count + 4, sizeof(*o->argv));
    if (o->argv == NULL)
        return error_set(err, "out of memory");
    len = strlen(args[0]);
    script = !no_python && !module && len > 3 && strcmp(args[0] + len - 3, ".py") == 0;
    if (module || script) {
        o->argv[at++] = strdup(python != NULL && python[0] != '\0' ? python : "python3");
        o->argv[at++] = strdup("-u");
        if (module)
            o->argv[at++] = strdup("-m");
    }
    for (size_t i = 0; i < count; i++)
        o->argv[at++] = strdup(args[i]);
    return 0;
}

/* argv of a script around training. */
static int build_script(char ***argv, const char *when, const char *file, const char *args,
                        struct error *err)
{
    char **words;

    if (file == NULL && args == NULL)
        return 0;
    if (file == NULL)
        return error_set(err, "--%s-train-args=%s goes with --%s-train-script only", when,
                         error_value(args).text, when);
    words = words_split(args != NULL ? args : "", err);
    if (words == NULL)
        return error_prefix(err, "--%s-train-args", when);
    if (strings_append(argv, (char *[]){(char *)(uintptr_t)file, NULL}) != 0 ||
        strings_append(argv, words) != 0) {
        strings_free(words);
        return error_set(err, "out of memory");
    }
    strings_free(words);
    return 0;
}

/* A job file leaves nothing to be run beside it. */
static int take_command(struct options *o, char **args, bool module, bool no_python,
                        struct error *err)
{
    const char *text = getenv(ROLES_VARIABLE);

    if (o->roles == NULL && text != NULL && text[0] != '\0')
        o->roles_text = text;
    if (o->roles == NULL && o->roles_text == NULL)
        return build_argv(o, args, module, no_python, err);
    if (args[0] == NULL)
        return 0;
    if (o->roles != NULL)
        return error_set(err, "%s: --roles=%s says what to run; leave the command out", args[0],
                         o->roles);
    return error_set(err,
                     "%s: the job file of `sbatch --elastic-roles` says what to run; leave the "
                     "command out",
                     args[0]);
}

static int parse_one(struct options *o, int code, const char *name, struct error *err)
{
    switch (code) {
    case OPT_POLICY:
        return policy_set(&o->policy, name, optarg, err);
    case OPT_CONFIG:
        o->config = optarg;
        return 0;
    case OPT_ROLES:
        if (optarg[0] == '\0')
            return error_set(err, "--roles=: must be the name of a job file");
        o->roles = optarg;
        return 0;
    case OPT_NPROC:
        return parse_nproc(o, optarg, err);
    case OPT_MAX_RESTARTS:
        if (policy_option_set(&o->policy, policy_find("max-restarts"), optarg, err) != 0)
            return error_prefix(err, "--max-restarts=%s", optarg);
        return 0;
    case OPT_FAIL_PATTERN:
        return parse_pattern(o, optarg, err);
    case OPT_PRE_TRAIN:
    case OPT_POST_TRAIN:
        if (optarg[0] == '\0')
            return error_set(err, "--%s=: must be the name of a file", name);
        *(code == OPT_PRE_TRAIN ? &o->scripts.pre : &o->scripts.post) = optarg;
        return 0;
    case OPT_PRE_TRAIN_ARGS:
        o->scripts.pre_args = optarg;
        return 0;
    case OPT_POST_TRAIN_ARGS:
        o->scripts.post_args = optarg;
        return 0;
    case OPT_LABEL:
        o->label = true;
        return 0;
    case OPT_BIND:
        return parse_either("bind", optarg, "auto", "none", &o->bind, err);
    case OPT_EARLY_START:
        return parse_either("early-start", optarg, "auto", "no", &o->early_start, err);
    case OPT_MODE:
        return parse_mode(o, optarg, err);
    case OPT_PMIX:
        return parse_either("pmix", optarg, "auto", "no", &o->pmix, err);
    case OPT_STATE_DIR:
        o->state_dir = optarg;
        return 0;
    case OPT_CHECKPOINT_DIR:
        o->checkpoint_dir = optarg;
        return s3_place_is(optarg) ? s3_place_parse(optarg, &(struct s3_place){0}, err) : 0;
    case OPT_EXTENSION:
        o->extension = true;
        return 0;
    case OPT_IGNORED:
        if (getenv("SLURM_PROCID") == NULL || strcmp(getenv("SLURM_PROCID"), "0") == 0)
            log_info("--%s is not needed: size and rendezvous come from Slurm", name);
        return 0;
    case OPT_IGNORED_OUTPUT:
        log_info("--%s has no effect: output goes where srun's goes", name);
        return 0;
    default:
        return error_set(err, "bad option; see elasticrun --help");
    }
}

enum options_result options_parse(struct options *o, int argc, char **argv, struct error *err)
{
    struct option list[OPTIONS_MAX + 1];
    bool module = false, no_python = false;
    int code, index;

    memset(o, 0, sizeof(*o));
    policy_init(&o->policy);
    o->policy.now = (double)time(NULL);
    o->bind = o->early_start = o->pmix = true;
    o->mode = MODE_AUTO;
    list_options(list);
    opterr = 0;
    optind = 0; /* GNU: start over, also in the middle of a word */
    while (index = -1, (code = getopt_long(argc, argv, "+m", list, &index)) != -1) {
        if (code == 'm') {
            module = true;
        } else if (code == OPT_NO_PYTHON) {
            no_python = true;
        } else if (code == OPT_HELP) {
            print_usage();
            return OPTIONS_DONE;
        } else if (code == OPT_VERSION) {
            printf("elasticrun %s\n", release_own()->name);
            return OPTIONS_DONE;
        } else if (code == '?') {
            error_set(err, "%s: unknown option, or its value is missing; see elasticrun --help",
                      argv[optind - 1]);
            return OPTIONS_ERROR;
        } else if (parse_one(o, code, index >= 0 ? list[index].name : "", err) != 0) {
            return OPTIONS_ERROR;
        }
    }
    if (build_script(&o->pre_train, "pre", o->scripts.pre, o->scripts.pre_args, err) != 0 ||
        build_script(&o->post_train, "post", o->scripts.post, o->scripts.post_args, err) != 0)
        return OPTIONS_ERROR;
    return o->extension || take_command(o, argv + optind, module, no_python, err) == 0
               ? OPTIONS_RUN
               : OPTIONS_ERROR;
}

void options_clear(struct options *o)
{
    policy_clear(&o->policy);
    for (char **arg = o->argv; arg != NULL && *arg != NULL; arg++)
        free(*arg);
    free(o->argv);
    strings_free(o->pre_train);
    strings_free(o->post_train);
}
