/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keys, region and endpoint (s3_account.h). */
#include "common/s3_account.h"

#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/files.h"
#include "lib/s3_place.h"
#include "lib/s3_profile.h"

#define FILE_MAX       ((size_t)1 << 20)
#define DEFAULT_REGION "us-east-1"
#define REGION_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

/* The two files of profiles; a text is NULL where there is no such file. */
struct profiles {
    const char *name;
    char *credentials_path, *credentials, *config_path, *config;
};

/* ---- files ----------------------------------------------------------------------------------- */

static char *default_path(const char *file)
{
    const char *home = getenv("HOME");
    const struct passwd *entry;
    char *path = NULL;

    if (home == NULL || home[0] == '\0') {
        entry = getpwuid(geteuid());
        home = entry != NULL ? entry->pw_dir : "/nonexistent";
    }
    return asprintf(&path, "%s/.aws/%s", home, file) >= 0 ? path : NULL;
}

/* Somebody whose keys are in the environment may have no right to read the files. */
static bool may_be_unreadable(void)
{
    const char *key = getenv("AWS_ACCESS_KEY_ID");

    return key != NULL && key[0] != '\0';
}

static int read_profiles_file(const char *variable, const char *file, char **path, char **text,
                              struct error *err)
{
    const char *named = getenv(variable);

    *path = named != NULL && named[0] != '\0' ? strdup(named) : default_path(file);
    if (*path == NULL)
        return error_set(err, "out of memory");
    *text = file_read(*path, FILE_MAX, NULL, err);
    if (*text != NULL || errno == ENOENT || errno == ENOTDIR)
        return 0;
    return errno == EACCES && may_be_unreadable() ? 0 : -1;
}

static int read_profiles(struct profiles *profiles, struct error *err)
{
    const char *name = getenv("AWS_PROFILE");

    *profiles = (struct profiles){.name = name != NULL && name[0] != '\0' ? name : "default"};
    if (read_profiles_file("AWS_SHARED_CREDENTIALS_FILE", "credentials",
                           &profiles->credentials_path, &profiles->credentials, err) != 0)
        return -1;
    return read_profiles_file("AWS_CONFIG_FILE", "config", &profiles->config_path,
                              &profiles->config, err);
}

static void clear_profiles(struct profiles *profiles)
{
    if (profiles->credentials != NULL)
        explicit_bzero(profiles->credentials, strlen(profiles->credentials));
    free(profiles->credentials_path);
    free(profiles->credentials);
    free(profiles->config_path);
    free(profiles->config);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* The first of the variables that is set and not empty, a new string. */
static char *from_environment(const char *const *names)
{
    for (; *names != NULL; names++) {
        const char *value = getenv(*names);

        if (value != NULL && value[0] != '\0')
            return strdup(value);
    }
    return NULL;
}

static char *from_profiles(const struct profiles *profiles, const char *key)
{
    char *value = NULL;

    if (profiles->credentials != NULL)
        value = s3_profile_value(profiles->credentials, profiles->name, false, key);
    if (value == NULL && profiles->config != NULL)
        value = s3_profile_value(profiles->config, profiles->name, true, key);
    return value;
}

static int load_keys(struct s3_account *account, const struct profiles *profiles, struct error *err)
{
    static const char *const key_names[] = {"AWS_ACCESS_KEY_ID", NULL};
    static const char *const secret_names[] = {"AWS_SECRET_ACCESS_KEY", NULL};
    static const char *const token_names[] = {"AWS_SESSION_TOKEN", NULL};

    account->key = from_environment(key_names);
    account->secret = from_environment(secret_names);
    if ((account->key == NULL) != (account->secret == NULL))
        return error_set(err, "%s is set and %s is not: an S3 server needs both",
                         account->key != NULL ? key_names[0] : secret_names[0],
                         account->key != NULL ? secret_names[0] : key_names[0]);
    if (account->key != NULL) {
        account->token = from_environment(token_names);
        account->source = strdup("AWS_ACCESS_KEY_ID");
        return account->source != NULL ? 0 : error_set(err, "out of memory");
    }
    account->key = from_profiles(profiles, "aws_access_key_id");
    account->secret = from_profiles(profiles, "aws_secret_access_key");
    account->token = from_profiles(profiles, "aws_session_token");
    if (account->key == NULL || account->secret == NULL)
        return error_set(err,
                         "no keys for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
                         "write profile %s into %s",
                         error_value(profiles->name).text,
                         error_path(profiles->credentials_path).text);
    if (asprintf(&account->source, "profile %s", error_value(profiles->name).text) < 0) {
        account->source = NULL;
        return error_set(err, "out of memory");
    }
    return 0;
}

/* The slash that people write at the end means nothing. */
static int load_endpoint(struct s3_account *account, const struct profiles *profiles,
                         struct error *err)
{
    static const char *const names[] = {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", NULL};
    size_t len;

    account->endpoint = from_environment(names);
    if (account->endpoint == NULL)
        account->endpoint = from_profiles(profiles, "endpoint_url");
    if (account->endpoint == NULL)
        return 0;
    len = strlen(account->endpoint);
    if (len > 0 && account->endpoint[len - 1] == '/')
        account->endpoint[len - 1] = '\0';
    if (!s3_endpoint_ok(account->endpoint))
        return error_set(err,
                         "the endpoint of S3 is \"%s\": it must be http://HOST[:PORT] or "
                         "https://HOST[:PORT]",
                         error_value(account->endpoint).text);
    return 0;
}

static int load_region(struct s3_account *account, const struct profiles *profiles,
                       struct error *err)
{
    static const char *const names[] = {"AWS_REGION", "AWS_DEFAULT_REGION", NULL};

    account->region = from_environment(names);
    if (account->region == NULL)
        account->region = from_profiles(profiles, "region");
    if (account->region == NULL)
        account->region = strdup(DEFAULT_REGION);
    if (account->region == NULL)
        return error_set(err, "out of memory");
    if (strspn(account->region, REGION_LETTERS) != strlen(account->region))
        return error_set(err, "the region of S3 is \"%s\": letters, digits, '-' and '_' only",
                         error_value(account->region).text);
    return 0;
}

/* They go into headers. */
static bool is_visible(const char *text)
{
    for (; text != NULL && *text != '\0'; text++)
        if (*text <= ' ' || *text == 0x7f)
            return false;
    return true;
}

static int load(struct s3_account *account, bool keys, struct error *err)
{
    struct profiles profiles;
    int rc;

    *account = (struct s3_account){0};
    rc = read_profiles(&profiles, err);
    if (rc == 0 && keys)
        rc = load_keys(account, &profiles, err);
    if (rc == 0)
        rc = load_endpoint(account, &profiles, err);
    if (rc == 0)
        rc = load_region(account, &profiles, err);
    if (rc == 0 &&
        !(is_visible(account->key) && is_visible(account->secret) && is_visible(account->token)))
        rc = error_set(err, "a key of %s has a blank or a control character in it",
                       account->source);
    clear_profiles(&profiles);
    if (rc != 0)
        s3_account_clear(account);
    return rc;
}

int s3_account_load(struct s3_account *account, struct error *err)
{
    return load(account, true, err);
}

int s3_account_load_server(struct s3_account *account, struct error *err)
{
    return load(account, false, err);
}

int s3_account_copy(const struct s3_account *account, struct s3_account *to)
{
    char *const from[] = {account->key,    account->secret,   account->token,
                          account->region, account->endpoint, account->source};
    char **const copies[] = {&to->key,    &to->secret,   &to->token,
                             &to->region, &to->endpoint, &to->source};

    for (size_t i = 0; i < sizeof(from) / sizeof(*from); i++) {
        *copies[i] = from[i] != NULL ? strdup(from[i]) : NULL;
        if (*copies[i] == NULL && from[i] != NULL) {
            s3_account_clear(to);
            return -1;
        }
    }
    return 0;
}

void s3_account_clear(struct s3_account *account)
{
    if (account->secret != NULL)
        explicit_bzero(account->secret, strlen(account->secret));
    free(account->key);
    free(account->secret);
    free(account->token);
    free(account->region);
    free(account->endpoint);
    free(account->source);
    *account = (struct s3_account){0};
}
