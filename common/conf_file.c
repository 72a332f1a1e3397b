/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elastic.conf, policy files and the environment (conf_file.h). */
#include "common/conf_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/files.h"

#define CONF_FILE_MAX (1024 * 1024) /* bytes */

/* A variable that is set to something, else NULL. */
static const char *variable_value(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* The file of that name in the directory of path. */
static char *beside(const char *path, const char *file)
{
    const char *slash = strrchr(path, '/');
    size_t dir = slash != NULL ? (size_t)(slash - path) + 1 : 0, len = strlen(file) + 1;
    char *name = malloc(dir + len);

    if (name == NULL)
        return NULL;
    memcpy(name, path, dir);
    memcpy(name + dir, file, len);
    return name;
}

char *conf_file_path(void)
{
    const char *own = variable_value("ELASTIC_CONF");
    const char *slurm = variable_value("SLURM_CONF");

    if (own != NULL)
        return strdup(own);
    return slurm != NULL ? beside(slurm, "elastic.conf") : strdup("/etc/slurm/elastic.conf");
}

char *conf_file_shapes(const struct conf *conf)
{
    char *path, *shapes = NULL;

    if (conf != NULL && conf->shapes_file != NULL)
        return strdup(conf->shapes_file);
    path = conf_file_path();
    if (path != NULL)
        shapes = beside(path, "elastic-shapes.json");
    free(path);
    return shapes;
}

static struct conf *load(const char *path, struct error *err)
{
    size_t len;
    char *text = file_read(path, CONF_FILE_MAX, &len, err);
    struct conf *conf;
    bool named;

    if (text != NULL) {
        conf = conf_parse(path, text, len, err);
        free(text);
        return conf;
    }
    named = variable_value("ELASTIC_CONF") != NULL && strcmp(path, getenv("ELASTIC_CONF")) == 0;
    /* If a part of the path is no directory, the name is wrong, and the file is not just absent. */
    if (errno != ENOENT || named) {
        error_prefix(err, named ? "ELASTIC_CONF" : "elastic.conf");
        return NULL;
    }
    conf = conf_create();
    if (conf == NULL)
        error_set(err, "out of memory");
    return conf;
}

struct conf *conf_file_load(const char *path, struct error *err)
{
    char *standard = NULL;
    struct conf *conf;

    if (path == NULL)
        path = standard = conf_file_path();
    if (path == NULL) {
        error_set(err, "out of memory");
        return NULL;
    }
    conf = load(path, err);
    free(standard);
    return conf;
}

int policy_file_load(const char *path, struct policy *policy, struct error *err)
{
    size_t len;
    char *text = file_read(path, POLICY_FILE_MAX, &len, err);
    int rc = -1;

    if (text == NULL)
        return error_prefix(err, "policy file");
    rc = policy_parse_json(policy, text, len, err);
    if (rc < 0)
        error_prefix(err, "policy file %s", error_path(path).text);
    free(text);
    return rc;
}

int policy_from_environment(struct policy *policy, bool with_sizes, struct error *err)
{
    for (const struct policy_option *option = policy_options; option->json != NULL; option++) {
        const char *value = variable_value(option->environment);

        if (value == NULL || option->option == NULL || policy_option_is_set(policy, option) ||
            (option->kind == POLICY_KIND_SIZES && !with_sizes))
            continue;
        if (policy_option_set(policy, option, value, err) < 0)
            return error_prefix(err, "%s=%s", option->environment, error_value(value).text);
    }
    return 0;
}
