/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rules of Slurm's configuration: versions, plugins that are named, preemption, pools, limits
 * (doctor.h). */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/doctor_rules.h"
#include "lib/slurm_words.h"

#define KILL_WAIT_LEAST 5  /* seconds */
#define JOB_AGE_LEAST   60 /* seconds: a leader looks at each of its jobs every 40 s */
#define NAME_BYTES      128

/* ---- Slurm itself ---------------------------------------------------------------------------- */

static void controller_rule(const struct doctor_facts *facts, struct doctor *doctor)
{
    char version[64];
    struct doctor_finding *f;
    if (facts->config == NULL && facts->config_error != NULL) {
        f = doctor_add(doctor, DOCTOR_MISTAKE, "slurmctld", "nothing else can be said of the site");
        doctor_what(f, "slurmctld does not answer: %s", facts->config_error);
        doctor_remedy(f, "start slurmctld, or set SLURM_CONF");
    }
    doctor_setting(facts, "SLURM_VERSION", version, sizeof(version));
    if (version[0] != '\0' && strcmp(version, facts->built_for) != 0) {
        f = doctor_add(doctor, DOCTOR_MISTAKE, "slurm-version",
                       "plugins are for one version of Slurm, and libslurm may differ");
        doctor_what(f, "slurm-elastic was built for Slurm %s, but slurmctld is %s",
                    facts->built_for, version);
        doctor_remedy(f, "install the packages for Slurm %s, or: scripts/setup, configure, make",
                      version);
    }
}

static void job_submit_rule(const struct doctor_facts *facts, struct doctor *doctor)
{
    char plugins[256];
    if (facts->config == NULL ||
        doctor_has_word(doctor_setting(facts, "JobSubmitPlugins", plugins, sizeof(plugins)),
                        "elastic"))
        return;
    struct doctor_finding *f = doctor_add(
        doctor, DOCTOR_MISTAKE, "job-submit",
        "limits of elastic.conf are not enforced, extensions are not put into their pools");
    doctor_what(f, "JobSubmitPlugins does not name elastic");
    doctor_remedy(f, "in slurm.conf: JobSubmitPlugins=%s%selastic", plugins,
                  plugins[0] != '\0' ? "," : "");
}

static void processes_rule(const struct doctor_facts *facts, struct doctor *doctor)
{
    char proctrack[64], task[128], ram[16], type[128];
    struct doctor_finding *f;
    if (facts->config == NULL)
        return;
    doctor_setting(facts, "ProctrackType", proctrack, sizeof(proctrack));
    doctor_setting(facts, "TaskPlugin", task, sizeof(task));
    doctor_setting(facts, "ConstrainRAMSpace", ram, sizeof(ram));
    doctor_setting(facts, "SelectTypeParameters", type, sizeof(type));
    if (strcmp(proctrack, "proctrack/pgid") == 0) {
        f = doctor_add(doctor, DOCTOR_MISTAKE, "proctrack",
                       "each worker has a session of its own, which Slurm does not find then");
        doctor_what(f, "ProctrackType=%s", proctrack);
        doctor_remedy(f, "in slurm.conf: ProctrackType=proctrack/cgroup");
    }
    if (strstr(task, "cgroup") == NULL && strstr(type, "MEMORY") != NULL) {
        f = doctor_add(doctor, DOCTOR_NOTE, "cgroup-task",
                       "an extension on a shared node may take the memory and cores of other jobs");
        doctor_what(f, "TaskPlugin=%s: nothing keeps a job within its share of a node", task);
        doctor_remedy(f, "in slurm.conf: TaskPlugin=task/cgroup,task/affinity");
    } else if (strstr(type, "MEMORY") != NULL && strcmp(ram, "no") == 0) {
        f = doctor_add(doctor, DOCTOR_NOTE, "cgroup-memory",
                       "an extension on a shared node may take the memory of other jobs");
        doctor_what(f, "cgroup.conf: ConstrainRAMSpace=no, though memory is given to jobs");
        doctor_remedy(f, "in cgroup.conf: ConstrainRAMSpace=yes");
    }
}

static void times_rule(const struct doctor_facts *facts, struct doctor *doctor)
{
    int wait = doctor_number(facts, "KillWait", INT_MAX);
    int age = doctor_number(facts, "MinJobAge", INT_MAX);
    struct doctor_finding *f;
    if (wait < KILL_WAIT_LEAST) {
        f = doctor_add(doctor, DOCTOR_MISTAKE, "kill-wait",
                       "a base that is cancelled, or at its limit, cannot save a checkpoint");
        doctor_what(f, "KillWait=%d", wait);
        doctor_remedy(f, "in slurm.conf: KillWait=30");
    }
    if (age > 0 && age < JOB_AGE_LEAST) {
        f = doctor_add(doctor, DOCTOR_NOTE, "job-age",
                       "a leader does not learn why an extension has ended");
        doctor_what(f, "MinJobAge=%d", age);
        doctor_remedy(f, "in slurm.conf: MinJobAge=300");
    }
}

/* Else the first step of a job on a node brings the variables of its prolog, from the user's own
 * srun. slurmctld's, which our plugin bounds, come with an allocation. */
static void prolog_rule(const struct doctor_facts *facts, struct doctor *doctor)
{
    char flags[128];
    doctor_setting(facts, "PrologFlags", flags, sizeof(flags));
    if (facts->config == NULL || doctor_has_word(flags, "Alloc") ||
        doctor_has_word(flags, "Contain"))
        return;
    struct doctor_finding *f = doctor_add(
        doctor, DOCTOR_NOTE, "prolog-flags",
        "a user's srun chooses the variables of the prolog: so many that each script of "
        "bash there takes half a minute");
    doctor_what(f, "PrologFlags=%s", flags[0] != '\0' ? flags : "(none)");
    doctor_remedy(f, "in slurm.conf: PrologFlags=%s%sAlloc (or Contain)", flags,
                  flags[0] != '\0' ? "," : "");
}

static void private_rule(const struct doctor_facts *facts, struct doctor *doctor)
{
    char data[128];
    struct doctor_finding *f;
    doctor_setting(facts, "PrivateData", data, sizeof(data));
    if (doctor_has_word(data, "nodes") || doctor_has_word(data, "partitions")) {
        f = doctor_add(doctor, DOCTOR_MISTAKE, "private-nodes",
                       "leaders, who are users, see no idle, drained or powered down nodes, and no "
                       "limits of partitions");
        doctor_what(f, "PrivateData=%s", data);
        doctor_remedy(f, "in slurm.conf: PrivateData without nodes and partitions");
    }
    if (doctor_has_word(data, "users")) {
        f = doctor_add(
            doctor, DOCTOR_NOTE, "private-users",
            "operators may not use selastic with jobs of others: root and SlurmUser may");
        doctor_what(f, "PrivateData=%s", data);
        doctor_remedy(f, "in slurm.conf: PrivateData without users, if operators are to");
    }
}

static void accounting_rule(const struct doctor_facts *facts, struct doctor *doctor)
{
    char type[64], flags[128];
    doctor_setting(facts, "AccountingStorageType", type, sizeof(type));
    doctor_setting(facts, "AccountingStoreFlags", flags, sizeof(flags));
    if (strstr(type, "slurmdbd") == NULL || doctor_has_word(flags, "job_comment"))
        return;
    struct doctor_finding *f = doctor_add(doctor, DOCTOR_NOTE, "job-comment",
                                          "sacct cannot tell whose extension a job was");
    doctor_what(f, "AccountingStoreFlags=%s", flags[0] != '\0' ? flags : "(none)");
    doctor_remedy(f, "in slurm.conf: AccountingStoreFlags=%s%sjob_comment", flags,
                  flags[0] != '\0' ? "," : "");
}

/* Ports of slurmctld and slurmd within those of the leaders. */
static void slurm_ports_rule(const struct doctor_facts *facts, struct doctor *doctor)
{
    static const char *const names[] = {"SlurmctldPort", "SlurmdPort"};
    for (size_t i = 0; facts->conf != NULL && i < sizeof(names) / sizeof(*names); i++) {
        int port = doctor_number(facts, names[i], 0);
        if (port < facts->conf->port_first || port > facts->conf->port_last)
            continue;
        struct doctor_finding *f = doctor_add(
            doctor, DOCTOR_MISTAKE, "ports-slurm",
            "a leader that listens there keeps the daemon from starting");
        doctor_what(f, "%s=%d is within port_range %d-%d", names[i], port, facts->conf->port_first,
                    facts->conf->port_last);
        doctor_remedy(f, "in elastic.conf: port_range = A-B without it, the same on all hosts");
    }
}

/* ---- preemption and pools -------------------------------------------------------------------- */

static void preempt_rule(const struct doctor_facts *facts, struct doctor *doctor)
{
    static const char never[] = "extension jobs never leave: other jobs wait for them";
    char type[64], mode[64];
    struct doctor_finding *f;
    if (facts->config == NULL)
        return;
    doctor_setting(facts, "PreemptType", type, sizeof(type));
    doctor_setting(facts, "PreemptMode", mode, sizeof(mode));
    if (strcmp(type, "preempt/none") == 0) {
        f = doctor_add(doctor, DOCTOR_MISTAKE, "preempt-type", never);
        doctor_what(f, "PreemptType=%s", type);
        doctor_remedy(f, "in slurm.conf: PreemptType=preempt/partition_prio (or preempt/qos)");
    } else if (strcmp(mode, "OFF") == 0) {
        f = doctor_add(doctor, DOCTOR_MISTAKE, "preempt-mode", never);
        doctor_what(f, "PreemptMode=%s", mode);
        doctor_remedy(f, "in slurm.conf: PreemptMode=CANCEL");
    }
}

/* A line of partitions with that name: a new string, NULL if there is none. */
static char *partition_line(const struct doctor_facts *facts, const char *name)
{
    for (const char *line = facts->partitions; line != NULL && *line != '\0';) {
        size_t length = strcspn(line, "\n");
        char *copy = strndup(line, length);
        char *found = copy != NULL ? slurm_words_value(copy, "PartitionName") : NULL;
        bool same = found != NULL && strcmp(found, name) == 0;
        free(found);
        if (same)
            return copy;
        free(copy);
        line += length + (line[length] == '\n');
    }
    return NULL;
}

static void value_of(const char *line, const char *key, char *buf, size_t size)
{
    char *value = slurm_words_value(line, key);
    snprintf(buf, size, "%s", value != NULL ? value : "");
    free(value);
}

/* The highest PriorityTier of all partitions. */
static long highest_tier(const struct doctor_facts *facts)
{
    long highest = 0;
    for (const char *line = facts->partitions; line != NULL && *line != '\0';) {
        size_t length = strcspn(line, "\n");
        char *copy = strndup(line, length), tier[32];
        if (copy != NULL) {
            value_of(copy, "PriorityTier", tier, sizeof(tier));
            highest = atol(tier) > highest ? atol(tier) : highest;
        }
        free(copy);
        line += length + (line[length] == '\n');
    }
    return highest;
}

/* How jobs of that partition leave. */
static void pool_preemption(const struct doctor_facts *facts, const struct pool *pool,
                            const char *line, struct doctor *doctor)
{
    char type[64], mode[64], tier[32], grace[32];
    struct doctor_finding *f;
    doctor_setting(facts, "PreemptType", type, sizeof(type));
    value_of(line, "PreemptMode", mode, sizeof(mode));
    value_of(line, "PriorityTier", tier, sizeof(tier));
    value_of(line, "GraceTime", grace, sizeof(grace));
    if (strcmp(type, "preempt/partition_prio") != 0)
        return;
    if (strcmp(mode, "OFF") == 0) {
        f = doctor_add(doctor, DOCTOR_MISTAKE, "pool-preempt-off",
                       "its extension jobs never leave: other jobs wait for them");
        doctor_what(f, "pool %s: partition %s has PreemptMode=OFF", pool->name, pool->partition);
        doctor_remedy(f, "in slurm.conf: PreemptMode=CANCEL for partition %s", pool->partition);
        return;
    }
    if (strstr(mode, "SUSPEND") != NULL || strstr(mode, "GANG") != NULL) {
        f = doctor_add(doctor, DOCTOR_MISTAKE, "pool-preempt-suspend",
                       "a suspended extension holds the whole training still");
        doctor_what(f, "pool %s: partition %s has PreemptMode=%s", pool->name, pool->partition,
                    mode);
        doctor_remedy(f, "in slurm.conf: PreemptMode=CANCEL for partition %s", pool->partition);
    }
    if (atol(tier) >= highest_tier(facts)) {
        f = doctor_add(doctor, DOCTOR_MISTAKE, "pool-tier",
                       "no job is more important than its extensions, so none can take a node");
        doctor_what(f, "pool %s: no partition has a higher PriorityTier than %s (%s)", pool->name,
                    pool->partition, tier);
        doctor_remedy(f, "in slurm.conf: a lower PriorityTier for partition %s", pool->partition);
    }
    if (pool->qos == NULL && atol(grace) == 0) {
        f = doctor_add(doctor, DOCTOR_MISTAKE, "pool-grace",
                       "an extension is killed at once: steps since the last checkpoint are lost");
        doctor_what(f, "pool %s: partition %s has GraceTime=0", pool->name, pool->partition);
        doctor_remedy(f, "in slurm.conf: GraceTime=120 for partition %s", pool->partition);
    } else if (pool->qos == NULL && pool->grace > 0 && atol(grace) < pool->grace) {
        f = doctor_add(doctor, DOCTOR_MISTAKE, "pool-grace-short",
                       "a training that takes its time is killed before it has saved");
        doctor_what(f, "pool %s: grace = %d, but partition %s has GraceTime=%s", pool->name,
                    pool->grace, pool->partition, grace);
        doctor_remedy(f, "in elastic.conf: grace = %s, or less", grace);
    }
}

static void pool_partition(const struct doctor_facts *facts, const struct pool *pool,
                           struct doctor *doctor)
{
    char state[32], data[128], *line = partition_line(facts, pool->partition);
    struct doctor_finding *f;
    if (line == NULL &&
        doctor_has_word(doctor_setting(facts, "PrivateData", data, sizeof(data)), "partitions"))
        return; /* it may be hidden from this user */
    if (line == NULL) {
        f = doctor_add(doctor, DOCTOR_MISTAKE, "pool-partition", "jobs never get a node of it");
        doctor_what(f, "pool %s: there is no partition %s", pool->name, pool->partition);
        doctor_remedy(f,
                      "in elastic.conf: partition = NAME of a partition, or add it to slurm.conf");
        return;
    }
    value_of(line, "State", state, sizeof(state));
    if (strcmp(state, "UP") != 0) {
        f = doctor_add(doctor, DOCTOR_NOTE, "pool-down", "jobs get no node of it");
        doctor_what(f, "pool %s: partition %s is %s", pool->name, pool->partition, state);
        doctor_remedy(f, "scontrol update PartitionName=%s State=UP", pool->partition);
    }
    pool_preemption(facts, pool, line, doctor);
    free(line);
}

/* "NAME|00:02:00|cancel": the fields of the QOS of that name. */
static bool find_row(const char *rows, const char *name, char fields[][NAME_BYTES], int count)
{
    for (const char *line = rows; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        const char *at = line, *end = line + length;
        for (int i = 0; i < count; i++) {
            size_t part = strcspn(at, "|\n");
            snprintf(fields[i], NAME_BYTES, "%.*s",
                     (int)(part < NAME_BYTES ? part : NAME_BYTES - 1), at);
            at += at + part < end ? part + 1 : part;
        }
        if (name == NULL || strcmp(fields[0], name) == 0)
            return true;
        line += length + (line[length] == '\n');
    }
    return false;
}

static void pool_qos(const struct doctor_facts *facts, const struct pool *pool,
                     struct doctor *doctor)
{
    char fields[3][NAME_BYTES], type[64];
    struct doctor_finding *f;
    if (pool->qos == NULL || facts->qos == NULL)
        return;
    if (!find_row(facts->qos, pool->qos, fields, 3)) {
        f = doctor_add(doctor, DOCTOR_MISTAKE, "pool-qos", "each extension of it is refused");
        doctor_what(f, "pool %s: there is no QOS %s", pool->name, pool->qos);
        doctor_remedy(f, "sacctmgr add qos %s", pool->qos);
        return;
    }
    doctor_setting(facts, "PreemptType", type, sizeof(type));
    if (strcmp(type, "preempt/qos") == 0 && strcmp(fields[1], "00:00:00") == 0) {
        f = doctor_add(doctor, DOCTOR_MISTAKE, "qos-grace",
                       "an extension is killed at once: steps since the last checkpoint are lost");
        doctor_what(f, "pool %s: QOS %s has GraceTime=0", pool->name, pool->qos);
        doctor_remedy(f, "sacctmgr modify qos %s set GraceTime=120", pool->qos);
    }
}

static void pools_rule(const struct doctor_facts *facts, struct doctor *doctor)
{
    for (int i = 0; facts->conf != NULL && i < facts->conf->pool_count; i++) {
        const struct pool *pool = &facts->conf->pools[i];
        if (facts->partitions != NULL)
            pool_partition(facts, pool, doctor);
        pool_qos(facts, pool, doctor);
        if (pool->qos != NULL && facts->config != NULL) {
            char type[64];
            doctor_setting(facts, "AccountingStorageType", type, sizeof(type));
            if (strstr(type, "slurmdbd") == NULL) {
                struct doctor_finding *f = doctor_add(
                    doctor, DOCTOR_MISTAKE, "pool-qos-accounting",
                    "QOS are kept in slurmdbd: without it none of them holds");
                doctor_what(f, "pool %s: qos = %s, but AccountingStorageType=%s", pool->name,
                            pool->qos, type[0] != '\0' ? type : "(none)");
                doctor_remedy(f, "in elastic.conf: no qos for pool %s, or run slurmdbd",
                              pool->name);
            }
        }
    }
}

/* ---- the user -------------------------------------------------------------------------------- */

/* The first row of the user's that has such a limit; "" is no limit. */
static void association_rule(const struct doctor_facts *facts, struct doctor *doctor)
{
    static const char *const names[] = {"MaxJobs", "MaxSubmitJobs", "GrpJobs", "GrpSubmitJobs"};
    char fields[5][NAME_BYTES];
    if (facts->association == NULL || !find_row(facts->association, NULL, fields, 5))
        return;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        long limit = fields[i + 1][0] != '\0' ? atol(fields[i + 1]) : LONG_MAX;
        if (limit > 1)
            continue;
        struct doctor_finding *f = doctor_add(
            doctor, DOCTOR_MISTAKE, "association",
            "an extension is a job of its own: an elastic job of this user never grows");
        doctor_what(f, "your association with account %s has %s=%ld", fields[0], names[i], limit);
        doctor_remedy(f, "sacctmgr modify user USER where account=%s set %s=10", fields[0],
                      names[i]);
    }
}

doctor_rule *const doctor_slurm_rules[] = {
    controller_rule, job_submit_rule, processes_rule,   times_rule, prolog_rule,      private_rule,
    accounting_rule, preempt_rule,    slurm_ports_rule, pools_rule, association_rule, NULL};
