/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls one function of common/slurm_client.h and prints what it gives, for slurm_client.bats. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/slurm_client.h"
#include "lib/names.h"
#include "lib/text.h"

#define THREADS          8
#define CALLS_PER_THREAD 25

static int say(const struct error *err)
{
    fprintf(stderr, "probe: %s\n", err->text);
    return 1;
}

static const char *kind_name(enum job_state_kind kind)
{
    static const char *const names[] = {
        [JOB_KIND_UNKNOWN] = "unknown", [JOB_KIND_PENDING] = "pending",
        [JOB_KIND_BOOTING] = "booting", [JOB_KIND_STARTING] = "starting",
        [JOB_KIND_RUNNING] = "running", [JOB_KIND_SUSPENDED] = "suspended",
        [JOB_KIND_ENDING] = "ending",   [JOB_KIND_ENDED] = "ended",
    };

    return names[kind];
}

static void print_text(const char *name, const char *value)
{
    printf("%s=%s\n", name, value ? value : "-");
}

static void print_number(const char *name, int64_t value)
{
    printf("%s=%" PRId64 "\n", name, value);
}

static void print_job(const struct job_info *info)
{
    print_number("id", info->id);
    print_number("restarts", info->restarts);
    print_number("uid", info->uid);
    print_number("gid", info->gid);
    print_text("kind", kind_name(info->state));
    print_text("state", info->state_name);
    print_text("reason", info->reason);
    print_text("name", info->name);
    print_text("partition", info->partition);
    print_text("qos", info->qos);
    print_text("account", info->account);
    print_text("reservation", info->reservation);
    print_text("features", info->features);
    print_text("comment", info->comment);
    print_text("admin_comment", info->admin_comment);
    print_text("nodes", info->nodes);
    print_text("excluded", info->excluded);
    print_text("batch_host", info->batch_host);
    print_text("gres_per_node", info->request.gres_per_node);
    print_text("work_dir", info->work_dir);
    print_number("num_nodes", info->num_nodes);
    print_number("cpus_per_node", info->cpus_per_node);
    print_number("mem_per_node", (int64_t)info->request.mem_per_node);
    print_number("mem_per_cpu", (int64_t)info->request.mem_per_cpu);
    print_number("exclusive", info->exclusive);
    printf("billing=%g\n", info->billing);
    print_number("submit", info->submit);
    print_number("start", info->start);
    print_number("end", info->end);
    print_number("preempt_time", info->preempt_time);
    print_number("time_limit", info->time_limit == UINT32_MAX ? -1 : (int64_t)info->time_limit);
    print_number("time_min", info->time_min);
}

static int job(char **args)
{
    struct job_info *info = NULL;
    struct error err = {0};

    if (slurm_client_job((uint32_t)strtoul(args[0], NULL, 10), &info, &err) != 0)
        return say(&err);
    if (info)
        print_job(info);
    else
        printf("unknown\n");
    job_info_free(info);
    return 0;
}

static int jobs(char **args)
{
    struct job_info *list = NULL;
    struct error err = {0};
    int count = 0;

    if (slurm_client_jobs((uid_t)strtol(args[0], NULL, 10), &list, &count, &err) != 0)
        return say(&err);
    for (int i = 0; i < count; i++)
        printf("%u %s %s\n", list[i].id, list[i].state_name, list[i].reason);
    job_info_free_list(list, count);
    return 0;
}

static int expand(char **args)
{
    char **names = slurm_client_expand(args[0]);

    for (char **name = names; *name; name++) {
        printf("%s\n", *name);
        free(*name);
    }
    free(names);
    return 0;
}

static int limits(char **args)
{
    struct slurm_limits limits;
    struct error err = {0};

    if (slurm_client_limits(args[0], &limits, &err) != 0)
        return say(&err);
    print_number("minutes", limits.minutes == UINT32_MAX ? -1 : (int64_t)limits.minutes);
    print_number("boot_seconds", limits.boot_seconds);
    print_number("suspend_seconds", limits.suspend_seconds);
    printf("billing=%g\n", limits.billing);
    return 0;
}

static int compress(char **args)
{
    int count = 0;
    char *text;

    while (args[count])
        count++;
    text = slurm_client_compress(args, count);
    printf("%s\n", text);
    free(text);
    return 0;
}

static int address(char **args)
{
    char *text = slurm_client_node_address(args[0]);

    printf("%s\n", text);
    free(text);
    return 0;
}

static int cancel(char **args)
{
    struct error err = {0};

    return slurm_client_cancel((uint32_t)strtoul(args[0], NULL, 10), &err) == 0 ? 0 : say(&err);
}

static int cancel_extensions(char **args)
{
    struct error err = {0};
    int count = slurm_client_cancel_extensions((uint32_t)strtoul(args[0], NULL, 10),
                                               (uint32_t)strtoul(args[1], NULL, 10),
                                               (uid_t)strtol(args[2], NULL, 10), &err);

    if (count < 0)
        return say(&err);
    printf("%d\n", count);
    return 0;
}

static int site(char **args)
{
    uid_t slurm_user = (uid_t)-1;
    struct error err = {0};
    char *cluster = NULL;

    (void)args;
    if (slurm_client_site(&slurm_user, &cluster, &err) != 0)
        return say(&err);
    printf("%u %s\n", slurm_user, cluster);
    free(cluster);
    return 0;
}

static int print_idle(const char *partition, bool planned)
{
    struct error err = {0};
    int count = slurm_client_idle_nodes(partition, planned, &err);

    if (count < 0)
        return say(&err);
    printf("%d\n", count);
    return 0;
}

static int idle(char **args)
{
    return print_idle(args[0], false);
}

static int idle_or_planned(char **args)
{
    return print_idle(args[0], true);
}

static int set_time_min(char **args)
{
    struct error err = {0};

    if (slurm_client_set_time_min((uint32_t)strtoul(args[0], NULL, 10),
                                  (uint32_t)strtoul(args[1], NULL, 10), &err) != 0)
        return say(&err);
    return 0;
}

static void print_list(const char *name, char **names)
{
    char *text = slurm_client_compress(names, (int)strings_count(names));

    print_text(name, text);
    free(text);
    strings_free(names);
}

static int power(char **args)
{
    struct slurm_power power = {0};
    struct error err;

    if (slurm_client_power(args[0], strcmp(args[1], "obeyed") == 0, &power, &err) != 0)
        return say(&err);
    print_number("saves", power.saves);
    print_list("up", power.up);
    print_list("asleep", power.asleep);
    return 0;
}

static int stay_off(char **args)
{
    char **nodes = slurm_client_expand(args[1]), **no_longer = slurm_client_expand(args[2]);
    struct error err;
    int rc = slurm_client_stay_off((uint32_t)strtoul(args[0], NULL, 10), nodes, no_longer, &err);

    strings_free(nodes);
    strings_free(no_longer);
    return rc == 0 ? 0 : say(&err);
}

static void *ask_often(void *arg)
{
    uint32_t id = *(uint32_t *)arg;
    intptr_t failures = 0;

    for (int i = 0; i < CALLS_PER_THREAD; i++) {
        struct job_info *info = NULL;
        char **names = slurm_client_expand("a[1-3],b");

        if (slurm_client_job(id, &info, NULL) != 0 || !info || info->id != id ||
            strcmp(names[3], "b") != 0)
            failures++;
        job_info_free(info);
        for (int k = 0; names[k]; k++)
            free(names[k]);
        free(names);
    }
    return (void *)failures;
}

static int threads(char **args)
{
    uint32_t id = (uint32_t)strtoul(args[0], NULL, 10);
    pthread_t ids[THREADS];
    intptr_t failures = 0;

    for (int i = 0; i < THREADS; i++)
        pthread_create(&ids[i], NULL, ask_often, &id);
    for (int i = 0; i < THREADS; i++) {
        void *result;

        pthread_join(ids[i], &result);
        failures += (intptr_t)result;
    }
    printf("%d calls, %" PRIdPTR " failures\n", THREADS * CALLS_PER_THREAD, failures);
    return failures == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int args;
        int (*call)(char **args);
    } commands[] = {
        {"job", 1, job},
        {"limits", 1, limits},
        {"jobs", 1, jobs},
        {"expand", 1, expand},
        {"compress", 1, compress},
        {"address", 1, address},
        {"cancel", 1, cancel},
        {"cancel-extensions", 3, cancel_extensions},
        {"site", 0, site},
        {"idle", 1, idle},
        {"idle-or-planned", 1, idle_or_planned},
        {"set-time-min", 2, set_time_min},
        {"power", 2, power},
        {"stay-off", 3, stay_off},
        {"threads", 1, threads},
    };

    for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(argv[1], commands[i].name) == 0 && argc - 2 >= commands[i].args)
            return commands[i].call(argv + 2);
    }
    fprintf(stderr, "Usage: %s COMMAND [ARGUMENT]...; the commands are in its source\n", argv[0]);
    return 2;
}
