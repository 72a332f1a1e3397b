/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What single words of a command line mean (argument_values.h). */
#include "cmd/argument_values.h"

#include <arpa/inet.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/number.h"
#include "lib/roles.h"
#include "lib/sizes.h"
#include "lib/text.h"

#define WATCH_DEFAULT  2
#define WATCH_MAX      3600
#define INTERVAL_LEAST 2
#define PORT_LEAST     1024
#define JOBS_MAX       1000
#define DAYS_MAX       3650
#define JOB_ID_MAX     0x03ffffff /* Slurm's MAX_JOB_ID: beyond are federation bits */

int value_job(const char *text, uint32_t *job_id, struct error *err)
{
    int id;
    if (number_parse(text, strlen(text), 1, JOB_ID_MAX, &id) < 0)
        return error_set(err,
                         "'%s' is not a job id; give the number that squeue shows (of an array's "
                         "task: squeue -o %%A)",
                         error_value(text).text);
    *job_id = (uint32_t)id;
    return 0;
}

int value_size(const char *text, bool *relative, int *nodes, struct error *err)
{
    bool sign = *text == '+' || *text == '-';
    int n;
    if (number_parse(text + sign, strlen(text + sign), 1, SIZES_NODES_MAX, &n) < 0)
        return error_set(err,
                         "'%s' is not a size; give a number of nodes from 1 to %d (6) or a "
                         "difference (+2, -2)",
                         error_value(text).text, SIZES_NODES_MAX);
    *relative = sign;
    *nodes = *text == '-' ? -n : n;
    return 0;
}

bool value_is_name(const char *text, size_t length)
{
    return length > 0 && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") >= length &&
           *text >= 'a' && *text <= 'z';
}

int value_role(const char *text, const char **role, struct error *err)
{
    if (!value_is_name(text, strlen(text)))
        return error_set(err, "'%s' is not a role; give its name (collector)",
                         error_value(text).text);
    *role = text;
    return 0;
}

int value_replica(const char *text, const char **replica, struct error *err)
{
    const char *dash = strrchr(text, '-');
    int index;
    if (dash == NULL || !value_is_name(text, (size_t)(dash - text)) ||
        number_parse(dash + 1, strlen(dash + 1), 0, INT_MAX, &index) < 0)
        return error_set(err, "'%s' is not a replica; give its name (collector-3)",
                         error_value(text).text);
    *replica = text;
    return 0;
}

/* The name of a role may have '-' and digits, so "collector-2" could be one. */
int value_scale(const char *text, struct scale *scale, struct error *err)
{
    size_t role = strcspn(text, "=");
    const char *size = text + role + (text[role] == '=');
    bool sign = *size == '+' || *size == '-';
    int n;
    if (!value_is_name(text, role) || text[role] == '\0')
        return error_set(err,
                         "'%s' is not a change of a role; give ROLE=N (collector=8), ROLE=+K "
                         "(collector=+2) or ROLE=-K (collector=-2)",
                         error_value(text).text);
    if (number_parse(size + sign, strlen(size + sign), sign, ROLES_REPLICAS_MAX, &n) < 0)
        return error_set(err,
                         "'%s' is not a number of replicas; give one from 0 to %d (8) or a "
                         "difference (+2, -2)",
                         error_value(size).text, ROLES_REPLICAS_MAX);
    *scale = (struct scale){text, (int)role, sign, *size == '-' ? -n : n};
    return 0;
}

int value_watch(const char *text, double *seconds, struct error *err)
{
    char *end = NULL;
    *seconds = text != NULL ? strtod(text, &end) : WATCH_DEFAULT;
    if (text != NULL && (end == text || *end || !(*seconds >= 0.5 && *seconds <= WATCH_MAX)))
        return error_set(err, "--watch=%s is not allowed; give seconds from 0.5 to %d",
                         error_value(text).text, WATCH_MAX);
    return 0;
}

int value_timeout(const char *text, int most, int *seconds, struct error *err)
{
    if (number_parse(text, strlen(text), 1, most, seconds) < 0)
        return error_set(err, "--timeout=%s is not allowed; give seconds from 1 to %d",
                         error_value(text).text, most);
    return 0;
}

int value_port(const char *text, int *port, struct error *err)
{
    if (number_parse(text, strlen(text), PORT_LEAST, UINT16_MAX, port) < 0)
        return error_set(err, "--port=%s is not allowed; give a port from %d to %d",
                         error_value(text).text, PORT_LEAST, UINT16_MAX);
    return 0;
}

int value_address(const char *text, const char **address, struct error *err)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    if (inet_pton(AF_INET, text, bytes) != 1 && inet_pton(AF_INET6, text, bytes) != 1)
        return error_set(err,
                         "--address=%s is not allowed; give the number of an address, such as "
                         "127.0.0.1 or ::",
                         error_value(text).text);
    *address = text;
    return 0;
}

int value_jobs(const char *text, int *jobs, struct error *err)
{
    if (number_parse(text, strlen(text), 1, JOBS_MAX, jobs) < 0)
        return error_set(err, "--jobs=%s is not allowed; give a number of jobs from 1 to %d",
                         error_value(text).text, JOBS_MAX);
    return 0;
}

int value_after(const char *text, int *after, struct error *err)
{
    if (number_parse(text, strlen(text), 0, INT_MAX, after) < 0)
        return error_set(err, "--after=%s is not allowed; give the number of a report, or 0",
                         error_value(text).text);
    return 0;
}

int value_days(const char *text, int *days, struct error *err)
{
    if (number_parse(text, strlen(text), 1, DAYS_MAX, days) < 0)
        return error_set(err, "--older-than=%s is not allowed; give days from 1 to %d",
                         error_value(text).text, DAYS_MAX);
    return 0;
}

int value_format(const char *text, enum endpoints_format *format, struct error *err)
{
    static const char *const names[] = {[ENDPOINTS_TEXT] = "text",
                                        [ENDPOINTS_JSON] = "json",
                                        [ENDPOINTS_HOSTS] = "hosts",
                                        [ENDPOINTS_PROMETHEUS] = "prometheus",
                                        [ENDPOINTS_HAPROXY] = "haproxy"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(text, names[i]) == 0) {
            *format = (enum endpoints_format)i;
            return 0;
        }
    return error_set(err,
                     "--format=%s is not allowed; give text, json, hosts, prometheus or haproxy",
                     error_value(text).text);
}

int value_who(const char *text, const char **name, struct error *err)
{
    if (!text_made_of(text, "_.@-"))
        return error_set(err, "'%s' is no name of a user or an account", error_value(text).text);
    *name = text;
    return 0;
}

int value_time(const char *text, const char **time, struct error *err)
{
    if (!text_made_of(text, "-+:/."))
        return error_set(err,
                         "'%s' is no time; give one in the form of sacct, such as 2026-11-01, "
                         "2026-11-01T08:00 or now-7days",
                         error_value(text).text);
    *time = text;
    return 0;
}

int value_interval(const char *text, int *seconds, struct error *err)
{
    if (number_parse(text, strlen(text), INTERVAL_LEAST, WATCH_MAX, seconds) == 0)
        return 0;
    return error_set(err, "--interval=%s: give seconds from %d to %d", error_value(text).text,
                     INTERVAL_LEAST, WATCH_MAX);
}
