/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The plugin in sbatch, salloc and srun (client.h).
 *
 * The client merges command line, environment and policy file, and sends the complete policy along.
 * A user can then edit or remove the file: that does not change a job that waits in the queue. */
#include "config.h"

#include "spank/client.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/conf_file.h"
#include "common/roles_file.h"
#include "lib/conf.h"
#include "lib/policy.h"
#include "lib/roles.h"
#include "lib/roles_site.h"
#include "lib/world_names.h"
#include "spank/environment.h"
#include "spank/options.h"

extern char **environ;

/* It is not enough to return an error. Where plugstack.conf calls the plugin "optional", Slurm
 * ignores the error and submits the job without its policy. Slurm also prints two lines more. */
void client_refuse(const struct error *err)
{
    const char *code = getenv("SLURM_EXIT_ERROR"); /* as sbatch itself does */
    int status = code ? atoi(code) : 0;

    slurm_error("elastic: %s", err->text);
    exit(status > 0 && status < 256 ? status : 1);
}

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* A variable by which Slurm passes on an option or a value of ours. */
static bool is_leftover(const char *entry)
{
    return strchr(entry, '=') &&
           (has_prefix(entry, "_SLURM_SPANK_OPTION_elastic_") ||
            has_prefix(entry, ENVIRONMENT_TRAVEL_PREFIX "_SLURM_SPANK_OPTION_elastic_") ||
            has_prefix(entry, ENVIRONMENT_TRAVEL_PREFIX "ELASTIC_"));
}

/* srun has already copied these variables from its environment to its job control environment. */
static void forget_entry(spank_t sp, const char *entry)
{
    size_t prefix = strlen(ENVIRONMENT_TRAVEL_PREFIX), len = strcspn(entry, "=");
    char *name = strndup(entry, len);

    if (!name)
        return;
    if (has_prefix(name, ENVIRONMENT_TRAVEL_PREFIX))
        spank_job_control_unsetenv(sp, name + prefix);
    unsetenv(name);
    free(name);
}

/* The script of an elastic job can ask for another allocation, which must not get this policy. */
static void forget_outer_policy(void)
{
    if (!getenv(ENVIRONMENT_MARK))
        return;
    unsetenv(ENVIRONMENT_MARK);
    for (const struct policy_option *option = policy_options; option->json; option++)
        unsetenv(option->environment);
    for (const char *const *name = environment_roles; *name; name++)
        unsetenv(*name);
    for (const struct environment_input *input = environment_inputs; input->name; input++) {
        const char *value = getenv(input->name);
        if (value && strcmp(value, input->value) == 0)
            unsetenv(input->name);
    }
}

static void forget_ports(void)
{
    char *names[ROLES_PORTS_MAX];
    int count = world_names_ports(environ, names, ROLES_PORTS_MAX);

    for (int i = 0; i < count; i++) {
        unsetenv(names[i]);
        free(names[i]);
    }
}

/* A worker can ask for another allocation. Its jobs must not be taken for the worker: their
 * programs would save into its checkpoint directory, and the epilog of its job would kill them. */
static void forget_outer_world(void)
{
    if (!getenv(WORLD_NAMES_JOB))
        return;
    for (const char *const *name = world_names; *name; name++)
        if (has_prefix(*name, WORLD_NAMES_OURS))
            unsetenv(*name);
    forget_ports();
}

void client_forget_outer_job(spank_t sp)
{
    size_t i = 0;

    while (environ && environ[i]) {
        if (is_leftover(environ[i]))
            forget_entry(sp, environ[i]); /* removes it, so that the next is at i */
        else
            i++;
    }
    if (spank_context() == S_CTX_ALLOCATOR) {
        forget_outer_policy();
        forget_outer_world();
    }
}

static void set_travelling(const char *name, const char *value)
{
    char travelling[64];

    snprintf(travelling, sizeof(travelling), ENVIRONMENT_TRAVEL_PREFIX "%s", name);
    setenv(travelling, value, 1);
}

static void give(spank_t sp, const char *name, const char *value)
{
    spank_job_control_setenv(sp, name, value, 1);
    setenv(name, value, 1);
    /* sbatch and salloc do this for us, srun does not. */
    set_travelling(name, value);
}

static int send_value(spank_t sp, const struct policy *policy, const struct policy_option *option,
                      struct error *err)
{
    char *text = policy_option_text(policy, option);
    int rc = 0;

    if (!text)
        return error_set(err, "out of memory");
    if (strlen(text) > ENVIRONMENT_VALUE_MAX)
        rc = error_set(err, "%s of the policy file has %zu bytes; a job can carry %d", option->json,
                       strlen(text), ENVIRONMENT_VALUE_MAX);
    else
        give(sp, option->environment, text);
    free(text);
    return rc;
}

static int send_policy(spank_t sp, const struct policy *policy, struct error *err)
{
    for (const struct policy_option *option = policy_options; option->json; option++) {
        if (policy_option_is_set(policy, option) && send_value(sp, policy, option, err) < 0)
            return -1;
    }
    /* The job has the content of the file now, and elasticrun must not read the file again. */
    unsetenv("ELASTIC_CONFIG");
    return 0;
}

/* They are checked already. */
static int send_roles(spank_t sp, const struct roles *roles, struct error *err)
{
    char *text = roles_text(roles, err), nodes[16];

    if (!text)
        return -1;
    snprintf(nodes, sizeof(nodes), "%d", roles->max_nodes);
    give(sp, ROLES_VARIABLE, text);
    give(sp, ROLES_NODES_VARIABLE, nodes);
    free(text);
    return 0;
}

static void mark_job(void)
{
    for (const struct environment_input *input = environment_inputs; input->name; input++)
        setenv(input->name, input->value, 1);
    setenv(ENVIRONMENT_MARK, PACKAGE_VERSION, 1);
}

/* The job carries the content of the file, not its name. */
static int merge_file(struct policy *policy, const char *path, struct error *err)
{
    struct policy file;
    int rc;

    policy_init(&file);
    file.now = policy->now;
    rc = policy_file_load(path, &file, err);
    if (rc == 0)
        policy_merge(policy, &file);
    policy_clear(&file);
    return rc;
}

static int merge_layers(struct policy *policy, const struct options *options, struct error *err)
{
    const char *config = options->config ? options->config : getenv("ELASTIC_CONFIG");

    policy_merge(policy, &options->policy);
    if (policy_from_environment(policy, false, err) < 0 ||
        (config && *config && merge_file(policy, config, err) < 0))
        return -1;
    if (options->roles && policy->sizes.min > 0)
        return error_set(err,
                         "--elastic-roles=%s does not go together with --elastic, nor with "
                         "\"nodes\" of a policy file: the job file says how many replicas "
                         "there are; leave one of them out",
                         error_path(options->roles).text);
    if (!options->roles && policy->sizes.min == 0)
        return error_set(
            err,
            "--%s has no meaning without --elastic=MIN:MAX; add it, or --elastic-roles=FILE, or "
            "\"nodes\" to the policy file",
            options->some);
    return policy_keep_together(policy, err);
}

/* NULL with err. */
static struct roles *load_roles(const struct conf *conf, const char *path, struct error *err)
{
    struct roles *roles = roles_file_load(path, conf->roles_dir, err);

    if (!roles || roles_check_site(roles, conf, err) == 0)
        return roles;
    error_prefix(err, "%s", error_path(path).text);
    roles_destroy(roles);
    return NULL;
}

/* *roles: of the job file; it stays NULL where there is none. */
static int check_site(const struct policy *policy, const char *path, struct roles **roles,
                      struct error *err)
{
    struct conf *conf = conf_file_load(NULL, err);
    int rc = conf ? conf_check_policy(conf, policy, err) : -1;

    if (rc == 0 && path && !(*roles = load_roles(conf, path, err)))
        rc = -1;
    conf_destroy(conf);
    return rc;
}

static int send_extension(spank_t sp, const struct options *options, struct error *err)
{
    char id[16];

    if (options->policy_given)
        return error_set(err,
                         "--elastic-extend=%u goes with --elastic-pool only: an extension has the "
                         "policy of job %u",
                         options->extend, options->extend);
    snprintf(id, sizeof(id), "%u", options->extend);
    spank_job_control_setenv(sp, ENVIRONMENT_EXTEND, id, 1);
    return 0;
}

static int send_base(spank_t sp, const struct options *options, struct error *err)
{
    const char *job_id = getenv("SLURM_JOB_ID");
    struct roles *roles = NULL;
    struct policy policy;
    int rc = -1;

    if (spank_context() == S_CTX_LOCAL && job_id)
        return error_set(
            err,
            "--%s makes a new job elastic, and this srun is a step of job %s; give it to "
            "sbatch or salloc",
            options->some, error_value(job_id).text);
    policy_init(&policy);
    policy.now = options->policy.now;
    if (merge_layers(&policy, options, err) == 0 &&
        check_site(&policy, options->roles, &roles, err) == 0 &&
        policy_check_deadline(&policy, policy.now, err) == 0 &&
        (!roles || send_roles(sp, roles, err) == 0) && send_policy(sp, &policy, err) == 0)
        rc = 0;
    if (rc == 0)
        mark_job();
    roles_destroy(roles);
    policy_clear(&policy);
    return rc;
}

/* Without PrologFlags=Alloc, the first node runs the prolog for the script. Each other node runs it
 * when the first step comes to the node; then this srun tells the prolog what the job is. */
static void tell_prolog(spank_t sp)
{
    const char *sizes = getenv(ENVIRONMENT_MARK) ? getenv(ENVIRONMENT_SIZES) : NULL;
    const char *roles = getenv(ENVIRONMENT_MARK) ? getenv(ENVIRONMENT_ROLES_NODES) : NULL;
    const char *base = getenv("ELASTIC_BASE"); /* of an extension: JOB.RESTARTS */
    char id[16];

    if (sizes) {
        spank_job_control_setenv(sp, ENVIRONMENT_SIZES, sizes, 1);
    } else if (roles) {
        spank_job_control_setenv(sp, ENVIRONMENT_ROLES_NODES, roles, 1);
    } else if (base) {
        snprintf(id, sizeof(id), "%.*s", (int)strspn(base, "0123456789"), base);
        spank_job_control_setenv(sp, ENVIRONMENT_EXTEND, id, 1);
    }
}

/* srun in the script of an elastic job. elasticrun must get the policy also with --export=NONE. If
 * sbatch has that option, it holds for all sruns of the script. */
static void pass_policy_to_step(spank_t sp)
{
    if (spank_context() != S_CTX_LOCAL || !getenv("SLURM_JOB_ID"))
        return;
    tell_prolog(sp);
    if (!getenv(ENVIRONMENT_MARK))
        return;
    for (const struct policy_option *option = policy_options; option->json; option++) {
        const char *value = getenv(option->environment);
        if (value)
            set_travelling(option->environment, value);
    }
    for (const char *const *name = environment_roles; *name; name++)
        if (getenv(*name))
            set_travelling(*name, getenv(*name));
}

int client_send_policy(spank_t sp)
{
    const struct options *options = options_given();
    struct error err;
    int rc;

    if (!options->some) {
        pass_policy_to_step(sp);
        return ESPANK_SUCCESS;
    }
    if (options->extend)
        rc = send_extension(sp, options, &err);
    else
        rc = send_base(sp, options, &err);
    if (rc < 0)
        client_refuse(&err);
    return ESPANK_SUCCESS;
}
