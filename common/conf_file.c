/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elastic.conf, policy files and the environment (conf_file.h). */
#include "common/conf_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/files.h"

#define CONF_FILE_MAX (1024 * 1024) /* bytes */
#define STANDARD_PATH "/etc/slurm/elastic.conf"

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

char *conf_file_beside(const char *slurm_conf, const char *standard)
{
    char *path = beside(slurm_conf, "elastic.conf"), *other;

    if (path == NULL || access(path, F_OK) == 0 || errno != ENOENT || access(standard, F_OK) != 0 ||
        (other = strdup(standard)) == NULL)
        return path;
    free(path);
    return other;
}

char *conf_file_path(void)
{
    const char *own = variable_value("ELASTIC_CONF");
    const char *slurm = variable_value("SLURM_CONF");

    if (own != NULL)
        return strdup(own);
    return slurm != NULL ? conf_file_beside(slurm, STANDARD_PATH) : strdup(STANDARD_PATH);
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

static struct conf *with_path(struct conf *conf, const char *path, bool was_read, struct error *err)
{
    conf->path = strdup(path);
    conf->was_read = was_read;
    if (conf->path != NULL)
        return conf;
    conf_destroy(conf);
    error_set(err, "out of memory");
    return NULL;
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
        return conf != NULL ? with_path(conf, path, true, err) : NULL;
    }
    named = variable_value("ELASTIC_CONF") != NULL && strcmp(path, getenv("ELASTIC_CONF")) == 0;
    /* If a part of the path is no directory, the name is wrong, and the file is not just absent. */
    if (errno != ENOENT || named) {
        error_prefix(err, named ? "ELASTIC_CONF" : "elastic.conf");
        return NULL;
    }
    conf = conf_create();
    if (conf != NULL)
        return with_path(conf, path, false, err);
    error_set(err, "out of memory");
    return NULL;
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

const char *conf_file_used(const struct conf *conf, char *buf, size_t size)
{
    snprintf(buf, size, "%s%s", conf->was_read ? "" : "none: there is no ",
             conf->path != NULL ? conf->path : "elastic.conf");
    return buf;
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
