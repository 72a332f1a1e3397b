/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/doctor: a good site has no finding, and each misconfiguration has its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/doctor.h"
#include "lib/doctor_nodes.h"
#include "lib/doctor_rules.h"

#define CONFIG                                                                                     \
    "Configuration data as of 2026-11-26T13:15:32\n"                                               \
    "AccountingStorageType   = accounting_storage/slurmdbd\n"                                      \
    "AccountingStoreFlags    = job_comment\n"                                                      \
    "AuthInfo                = (null)\n"                                                           \
    "Epilog                  = /etc/slurm/epilog.d/*\n"                                            \
    "JobContainerType        = job_container/tmpfs\n"                                              \
    "JobSubmitPlugins        = lua,elastic\n"                                                      \
    "KillWait                = 30 sec\n"                                                           \
    "MinJobAge               = 300 sec\n"                                                          \
    "PreemptMode             = CANCEL\n"                                                           \
    "PreemptType             = preempt/partition_prio\n"                                           \
    "PrivateData             = events,jobs,usage\n"                                                \
    "ProctrackType           = proctrack/cgroup\n"                                                 \
    "Prolog                  = /etc/slurm/prolog.d/*\n"                                            \
    "PrologFlags             = Alloc,Contain\n"                                                    \
    "PrologEpilogTimeout     = 65534\n"                                                            \
    "SelectTypeParameters    = CR_CORE_MEMORY\n"                                                   \
    "SlurmctldPort           = 6817\n"                                                             \
    "SlurmdPort              = 6818\n"                                                             \
    "SLURM_VERSION           = 22.05.8\n"                                                          \
    "TaskPlugin              = task/cgroup,task/affinity\n"                                        \
    "ConstrainRAMSpace       = yes\n"

#define PARTITIONS                                                                                 \
    "PartitionName=batch GraceTime=0 PriorityTier=10 PreemptMode=OFF State=UP\n"                   \
    "PartitionName=spot GraceTime=120 PriorityTier=1 PreemptMode=CANCEL State=UP\n"                \
    "PartitionName=second GraceTime=60 PriorityTier=2 PreemptMode=CANCEL State=UP\n"

#define QOS         "normal|00:00:00|cluster\nlow|00:02:00|cancel\n"
#define CONF        "[pool spot]\ngrace = 120\n[pool other]\npartition = second\nqos = low\n"
#define ASSOCIATION "physics|||20|\n"
#define PLUGSTACK   "# ours\noptional /usr/lib/slurm/spank_elastic.so\n"

static struct conf *conf_of(const char *text)
{
    struct error err = {""};
    struct conf *conf = conf_parse("elastic.conf", text, strlen(text), &err);
    if (conf == NULL)
        fail_msg("%s", err.text);
    return conf;
}

static const struct doctor_plugin good_plugin = {DOCTOR_PLUGIN_GOOD, "/usr/lib/slurm/it.so", ""};

static struct doctor_facts good_site(const struct conf *conf)
{
    return (struct doctor_facts){
        .built_for = "22.05.8",
        .plugins = "/usr/lib/slurm",
        .slurm_plugins = "/usr/lib/slurm-wlm",
        .libexec = "/usr/libexec/slurm-elastic",
        .examples = "/usr/share/doc/slurm-elastic/examples",
        .config = CONFIG,
        .partitions = PARTITIONS,
        .qos = QOS,
        .association = ASSOCIATION,
        .job_submit = good_plugin,
        .select = good_plugin,
        .spank = good_plugin,
        .plugstack = "/etc/slurm/plugstack.conf",
        .plugstack_text = PLUGSTACK,
        .node = true,
        .prolog = {"/etc/slurm/prolog.d/50-elastic", "", "", true},
        .epilog = {"/etc/slurm/epilog.d/50-elastic", "", "", true},
        .flush_mode = 0711,
        .fit_mode = 0711,
        .conf_state = DOCTOR_CONF_GOOD,
        .conf_path = "/etc/slurm/elastic.conf",
        .conf = conf,
        .snapshot_state = DOCTOR_SNAPSHOT_MOUNTED,
        .knows_skew = true,
        .skew = -1.5,
        .local_port_first = 32768,
        .local_port_last = 60999,
        .state_dir = "/home/ada/.slurm-elastic/cluster-1",
        .release = "0.1.0",
        .python_release = "0.1.0",
        .torch_release = "2.13.0",
    };
}

#define CHANGE(name, statement)                                                                    \
    static void name(struct doctor_facts *f)                                                       \
    {                                                                                              \
        statement;                                                                                 \
    }

CHANGE(no_answer, f->config = f->partitions = NULL; f->config_error = "Unable to contact")
CHANGE(other_submit, f->job_submit.state = DOCTOR_PLUGIN_OTHER;
       snprintf(f->job_submit.why, sizeof(f->job_submit.why), "21.08.1"))
CHANGE(no_submit_file, f->job_submit.state = DOCTOR_PLUGIN_ABSENT)
CHANGE(broken_select, f->select.state = DOCTOR_PLUGIN_BROKEN;
       snprintf(f->select.why, sizeof(f->select.why), "undefined symbol"))
CHANGE(no_spank_line,
       f->plugstack_text = "optional /usr/lib/other.so\n#optional x/spank_elastic.so\n")
CHANGE(spank_required, f->plugstack_text = "required  /usr/lib/slurm/spank_elastic.so a=b\n")
CHANGE(spank_gone, f->spank.state = DOCTOR_PLUGIN_ABSENT)
CHANGE(spank_broken, f->spank.state = DOCTOR_PLUGIN_BROKEN)
CHANGE(spank_unsafe, f->spank.state = DOCTOR_PLUGIN_UNSAFE)
CHANGE(prolog_missing, f->prolog.found[0] = '\0')
CHANGE(epilog_missing, f->epilog.found[0] = '\0')
CHANGE(epilog_mode, f->epilog.executable = false)
CHANGE(prolog_broken, snprintf(f->prolog.broken, 64, "/etc/slurm/prolog.d/60-gone"))
CHANGE(prolog_none, f->prolog.found[0] = '\0';
       snprintf(f->prolog.none, sizeof(f->prolog.none), "/etc/slurm/prolog.d/*"))
CHANGE(owned, f->program_owned = "/opt/slurm-elastic"; f->program_owner = 1000)
CHANGE(program_missing, f->program_missing = "/usr/libexec/slurm-elastic/elastic-flush")
CHANGE(flush_readable, f->flush_mode = 0755)
CHANGE(granted,
       f->grants = ((struct doctor_grants){
           .count = 2, .fit = 3, .service = "adapters", .user = "anna", .path = "/home/me/data"}))
CHANGE(lost, f->grants = ((struct doctor_grants){.lost = 1,
                                                 .lost_fit = 3,
                                                 .lost_service = "adapters",
                                                 .lost_user = "anna",
                                                 .lost_path = "/data/a",
                                                 .grant = "/home/me/grant.json"}))
CHANGE(fit_readable, f->fit_mode = 0755)
CHANGE(writable, f->program_writable = "/usr/lib/slurm/spank_elastic.so")
CHANGE(no_conf, f->conf = NULL; f->conf_state = DOCTOR_CONF_ABSENT)
CHANGE(secret_conf, f->conf = NULL; f->conf_state = DOCTOR_CONF_UNREADABLE;
       f->conf_error = "Permission denied")
CHANGE(wrong_conf, f->conf = NULL; f->conf_state = DOCTOR_CONF_WRONG;
       f->conf_error = "/etc/slurm/elastic.conf:1: unknown key 'color'")
CHANGE(snapshot_unsafe, f->snapshot_state = DOCTOR_SNAPSHOT_UNSAFE;
       f->snapshot_why = "mode 777, owner 0: /run")
CHANGE(not_mounted, f->snapshot_state = DOCTOR_SNAPSHOT_THERE)
CHANGE(snapshot_absent, f->snapshot_state = DOCTOR_SNAPSHOT_ABSENT)
CHANGE(no_munge, f->munge_error = "connect: No such file or directory")
CHANGE(clock_ahead, f->skew = 42)
CHANGE(clock_wrong, f->skew = -3600)
CHANGE(in_memory, f->state_in_memory = "tmpfs")
CHANGE(state_unsafe, f->state_unsafe = "/scratch")
CHANGE(state_stranger, f->state_stranger = "/scratch/alice")
CHANGE(state_missing, f->state_missing = "/scratch/alice")
CHANGE(ephemeral, f->local_port_first = 1024)
CHANGE(no_pmix, f->pmix_error = "libpmix.so.2: cannot open shared object file")
CHANGE(old_python, f->python_release = "0.0.9")
CHANGE(no_libuv, f->torch_release = "2.6.0+debian")
CHANGE(few_jobs, f->association = "physics|1||||\n")
CHANGE(few_submits, f->association = "physics||1||\n")
CHANGE(no_qos, f->qos = "normal|00:00:00|cluster\n")

static const struct row {
    const char *id;
    const char *config;     /* lines before the good ones: the first one of a key counts */
    const char *partitions; /* in place of the good ones */
    const char *conf;       /* elastic.conf in place of the good one */
    void (*change)(struct doctor_facts *facts);
    enum doctor_level level;
    const char *remedy; /* what it says */
} rows[] = {
    {"slurmctld", NULL, NULL, NULL, no_answer, DOCTOR_MISTAKE, "start slurmctld"},
    {"slurm-version", "SLURM_VERSION=23.02.1\n", NULL, NULL, NULL, DOCTOR_MISTAKE, "Slurm 23.02.1"},
    {"job-submit", "JobSubmitPlugins = lua,elastics\n", NULL, NULL, NULL, DOCTOR_MISTAKE,
     "JobSubmitPlugins=lua,elastics,elastic"},
    {"job-submit", "JobSubmitPlugins = (null)\n", NULL, NULL, NULL, DOCTOR_MISTAKE,
     "JobSubmitPlugins=elastic"},
    {"plugin-absent", NULL, NULL, NULL, no_submit_file, DOCTOR_MISTAKE,
     "PluginDir=/usr/lib/slurm:/usr/lib/slurm-wlm"},
    {"plugin-other-slurm", NULL, NULL, NULL, other_submit, DOCTOR_MISTAKE, "for this Slurm"},
    {"plugin-broken", NULL, NULL, NULL, broken_select, DOCTOR_MISTAKE, "once more"},
    {"spank-not-named", NULL, NULL, NULL, no_spank_line, DOCTOR_MISTAKE,
     "optional /usr/lib/slurm/spank_elastic.so"},
    {"spank-required", NULL, NULL, NULL, spank_required, DOCTOR_MISTAKE,
     "write: optional /usr/lib/slurm/spank_elastic.so"},
    {"spank-absent", NULL, NULL, NULL, spank_gone, DOCTOR_MISTAKE, "on this host"},
    {"plugin-broken", NULL, NULL, NULL, spank_broken, DOCTOR_MISTAKE, "once more"},
    {"plugin-unsafe", NULL, NULL, NULL, spank_unsafe, DOCTOR_MISTAKE, "chmod go-w"},
    {"hook-missing", NULL, NULL, NULL, prolog_missing, DOCTOR_MISTAKE, "Prolog=DIRECTORY/*"},
    {"hook-missing", NULL, NULL, NULL, epilog_missing, DOCTOR_MISTAKE, "Epilog=DIRECTORY/*"},
    {"hook-mode", NULL, NULL, NULL, epilog_mode, DOCTOR_MISTAKE,
     "chmod 755 /etc/slurm/epilog.d/50-elastic"},
    {"hook-broken", NULL, NULL, NULL, prolog_broken, DOCTOR_MISTAKE, "/etc/slurm/prolog.d/60-gone"},
    {"hook-limit", "PrologEpilogTimeout = 10\n", NULL, NULL, NULL, DOCTOR_MISTAKE,
     "PrologEpilogTimeout=45"},
    {"hook-limit", "EpilogTimeout = 50\n", NULL, "epilog_flush = 40\n" CONF, NULL, DOCTOR_MISTAKE,
     "EpilogTimeout=65"},
    {"hook-none", NULL, NULL, NULL, prolog_none, DOCTOR_MISTAKE, "elastic-hook"},
    {"program-owner", NULL, NULL, NULL, owned, DOCTOR_MISTAKE, "chown root: /opt/slurm-elastic"},
    {"program-missing", NULL, NULL, NULL, program_missing, DOCTOR_MISTAKE, "make install"},
    {"program-mode", NULL, NULL, NULL, flush_readable, DOCTOR_MISTAKE, "chmod 711"},
    {"trainer-access", NULL, NULL, NULL, granted, DOCTOR_NOTE,
     "setfacl -R -x u:anna /home/me/data"},
    {"trainer-access-lost", NULL, NULL, NULL, lost, DOCTOR_NOTE, "rm /home/me/grant.json"},
    {"program-mode", NULL, NULL, NULL, fit_readable, DOCTOR_MISTAKE, "elastic-fit"},
    {"program-writable", NULL, NULL, NULL, writable, DOCTOR_MISTAKE, "chmod go-w"},
    {"conf-absent", NULL, NULL, NULL, no_conf, DOCTOR_MISTAKE, "cp "},
    {"conf-unreadable", NULL, NULL, NULL, secret_conf, DOCTOR_MISTAKE, "chmod 644"},
    {"conf-wrong", NULL, NULL, NULL, wrong_conf, DOCTOR_MISTAKE, "repair the line"},
    {"conf-no-pool", NULL, NULL, "max_nodes = 8\n", NULL, DOCTOR_MISTAKE, "[pool NAME]"},
    {"snapshot-unsafe", NULL, NULL, NULL, snapshot_unsafe, DOCTOR_MISTAKE, "belong to root"},
    {"snapshot-absent", NULL, NULL, "snapshot_dir = /snap\n" CONF, snapshot_absent, DOCTOR_MISTAKE,
     "mkdir -m 711 /snap"},
    {"snapshot-container", NULL, NULL, NULL, not_mounted, DOCTOR_NOTE, "at boot"},
    {"snapshot-container", "JobContainerType = (null)\nNamespaceType = namespace/tmpfs\n", NULL,
     NULL, not_mounted, DOCTOR_NOTE, "at boot"},
    {"munge", NULL, NULL, NULL, no_munge, DOCTOR_MISTAKE, "start munged"},
    {"clock", NULL, NULL, NULL, clock_ahead, DOCTOR_NOTE, "chronyd"},
    {"clock", NULL, NULL, NULL, clock_wrong, DOCTOR_MISTAKE, "chronyd"},
    {"state-memory", NULL, NULL, NULL, in_memory, DOCTOR_MISTAKE, "state_dir = DIRECTORY/%c-%j"},
    {"state-unsafe", NULL, NULL, NULL, state_unsafe, DOCTOR_MISTAKE, "%h/.slurm-elastic"},
    {"state-stranger", NULL, NULL, NULL, state_stranger, DOCTOR_MISTAKE,
     "chown root: /scratch/alice"},
    {"state-missing", NULL, NULL, NULL, state_missing, DOCTOR_NOTE, "for each user"},
    {"ports-ephemeral", NULL, NULL, NULL, ephemeral, DOCTOR_NOTE, "port_range"},
    {"ports-slurm", "SlurmdPort=23500\n", NULL, NULL, NULL, DOCTOR_MISTAKE, "port_range"},
    {"pmix", NULL, NULL, NULL, no_pmix, DOCTOR_NOTE, "--pmix=no"},
    {"python-release", NULL, NULL, NULL, old_python, DOCTOR_MISTAKE, "same release"},
    {"torch-rendezvous", NULL, NULL, NULL, no_libuv, DOCTOR_NOTE, "USE_LIBUV=0"},
    {"proctrack", "ProctrackType = proctrack/pgid\n", NULL, NULL, NULL, DOCTOR_MISTAKE,
     "ProctrackType=proctrack/cgroup"},
    {"cgroup-task", "TaskPlugin = task/affinity\n", NULL, NULL, NULL, DOCTOR_NOTE, "TaskPlugin="},
    {"cgroup-memory", "ConstrainRAMSpace = no\n", NULL, NULL, NULL, DOCTOR_NOTE,
     "ConstrainRAMSpace=yes"},
    {"kill-wait", "KillWait = 0 sec\n", NULL, NULL, NULL, DOCTOR_MISTAKE, "KillWait=30"},
    {"job-age", "MinJobAge = 10 sec\n", NULL, NULL, NULL, DOCTOR_NOTE, "MinJobAge=300"},
    {"prolog-flags", "PrologFlags = X11\n", NULL, NULL, NULL, DOCTOR_NOTE, "PrologFlags=X11,Alloc"},
    {"private-nodes", "PrivateData = nodes\n", NULL, NULL, NULL, DOCTOR_MISTAKE, "without nodes"},
    {"private-users", "PrivateData = jobs,users\n", NULL, NULL, NULL, DOCTOR_NOTE, "without users"},
    {"job-comment", "AccountingStoreFlags = (null)\n", NULL, NULL, NULL, DOCTOR_NOTE,
     "AccountingStoreFlags=job_comment"},
    {"preempt-type", "PreemptType = preempt/none\n", NULL, NULL, NULL, DOCTOR_MISTAKE,
     "PreemptType=preempt/partition_prio"},
    {"preempt-mode", "PreemptMode = OFF\n", NULL, NULL, NULL, DOCTOR_MISTAKE, "PreemptMode=CANCEL"},
    {"pool-partition", NULL, NULL, "[pool nowhere]\n", NULL, DOCTOR_MISTAKE, "partition = NAME"},
    {"pool-down", NULL,
     "PartitionName=batch PriorityTier=9\n"
     "PartitionName=spot GraceTime=120 PriorityTier=1 PreemptMode=CANCEL State=DRAIN\n",
     "[pool spot]\n", NULL, DOCTOR_NOTE, "State=UP"},
    {"pool-preempt-off", NULL,
     "PartitionName=batch PriorityTier=9\n"
     "PartitionName=spot GraceTime=120 PriorityTier=1 PreemptMode=OFF State=UP\n",
     "[pool spot]\n", NULL, DOCTOR_MISTAKE, "PreemptMode=CANCEL for partition spot"},
    {"pool-preempt-suspend", NULL,
     "PartitionName=batch PriorityTier=9\n"
     "PartitionName=spot GraceTime=120 PriorityTier=1 PreemptMode=GANG,SUSPEND State=UP\n",
     "[pool spot]\n", NULL, DOCTOR_MISTAKE, "PreemptMode=CANCEL for partition spot"},
    {"pool-tier", NULL,
     "PartitionName=batch PriorityTier=1\n"
     "PartitionName=spot GraceTime=120 PriorityTier=1 PreemptMode=CANCEL State=UP\n",
     "[pool spot]\n", NULL, DOCTOR_MISTAKE, "a lower PriorityTier"},
    {"pool-grace", NULL,
     "PartitionName=batch PriorityTier=9\n"
     "PartitionName=spot GraceTime=0 PriorityTier=1 PreemptMode=CANCEL State=UP\n",
     "[pool spot]\n", NULL, DOCTOR_MISTAKE, "GraceTime=120 for partition spot"},
    {"pool-grace-short", NULL, NULL, "[pool spot]\ngrace = 300\n", NULL, DOCTOR_MISTAKE,
     "grace = 120, or less"},
    {"pool-qos", NULL, NULL, NULL, no_qos, DOCTOR_MISTAKE, "sacctmgr add qos low"},
    {"qos-grace", "PreemptType = preempt/qos\n", NULL, "[pool spot]\nqos = normal\n", NULL,
     DOCTOR_MISTAKE, "sacctmgr modify qos normal"},
    {"pool-qos-accounting", "AccountingStorageType = (null)\n", NULL, NULL, NULL, DOCTOR_MISTAKE,
     "run slurmdbd"},
    {"association", NULL, NULL, NULL, few_jobs, DOCTOR_MISTAKE, "set MaxJobs=10"},
    {"association", NULL, NULL, NULL, few_submits, DOCTOR_MISTAKE, "set MaxSubmitJobs=10"},
};

static void assert_only(const struct doctor *doctor, const struct row *row)
{
    for (int i = 0; i < doctor->count; i++)
        if (strcmp(doctor->findings[i].id, row->id) != 0)
            fail_msg("%s: also %s: %s", row->id, doctor->findings[i].id, doctor->findings[i].what);
    if (doctor->count != 1)
        fail_msg("%s: %d findings", row->id, doctor->count);
    const struct doctor_finding *f = &doctor->findings[0];
    assert_int_equal(f->level, row->level);
    assert_int_equal(doctor_mistakes(doctor), row->level == DOCTOR_MISTAKE);
    if (strstr(f->remedy, row->remedy) == NULL)
        fail_msg("%s: '%s' does not have '%s'", row->id, f->remedy, row->remedy);
    assert_true(f->what[0] != '\0' && f->why[0] != '\0');
    assert_null(strchr(f->what, '\n'));
}

static void test_each_misconfiguration(void **unused)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct row *row = &rows[i];
        struct conf *conf = conf_of(row->conf != NULL ? row->conf : CONF);
        struct doctor_facts facts = good_site(conf);
        struct doctor doctor;
        char config[4096];
        snprintf(config, sizeof(config), "%s%s", row->config != NULL ? row->config : "", CONFIG);
        facts.config = config;
        if (row->partitions != NULL)
            facts.partitions = row->partitions;
        if (row->change != NULL)
            row->change(&facts);
        doctor_examine(&facts, false, &doctor);
        assert_only(&doctor, row);
        conf_destroy(conf);
    }
}

static void test_a_good_site(void **unused)
{
    struct conf *conf = conf_of(CONF);
    struct doctor_facts facts = good_site(conf);
    struct doctor doctor;
    doctor_examine(&facts, false, &doctor);
    if (doctor.count > 0)
        fail_msg("%s: %s", doctor.findings[0].id, doctor.findings[0].what);
    /* Preemption by QOS: the partition says nothing of it. */
    facts.partitions = "PartitionName=spot GraceTime=0 PriorityTier=1 PreemptMode=OFF State=UP\n"
                       "PartitionName=second GraceTime=0 PriorityTier=1 PreemptMode=OFF State=UP\n";
    facts.config = "PreemptType=preempt/qos\nPreemptMode=CANCEL\nJobSubmitPlugins=elastic\n"
                   "AccountingStorageType=accounting_storage/slurmdbd\n"
                   "AccountingStoreFlags=job_comment\nPrologFlags=Alloc\n";
    doctor_examine(&facts, false, &doctor);
    assert_int_equal(doctor.count, 0);
    conf_destroy(conf);
}

/* What a user may not see is no mistake. */
static void test_nothing_is_known(void **unused)
{
    struct doctor_facts facts = {
        .built_for = "22.05.8", .flush_mode = -1, .fit_mode = -1, .release = "0.1.0"};
    struct doctor doctor;
    doctor_examine(&facts, false, &doctor);
    assert_int_equal(doctor.count, 0);
    /* Partitions that are private. */
    struct conf *conf = conf_of(CONF);
    facts = good_site(conf);
    facts.config = "PrivateData=partitions\n" CONFIG;
    facts.partitions = "";
    doctor_examine(&facts, false, &doctor);
    assert_int_equal(doctor.count, 1);
    assert_string_equal(doctor.findings[0].id, "private-nodes");
    conf_destroy(conf);
}

/* A login node has no slurmd: hooks and snapshots are not its concern. */
static void test_login_node(void **unused)
{
    struct conf *conf = conf_of(CONF);
    struct doctor_facts facts = good_site(conf);
    struct doctor doctor;
    facts.node = false;
    facts.prolog = facts.epilog = (struct doctor_hook){.broken = "/etc/slurm/prolog.d/x"};
    facts.snapshot_state = DOCTOR_SNAPSHOT_ABSENT;
    doctor_examine(&facts, false, &doctor);
    assert_int_equal(doctor.count, 0);
    conf_destroy(conf);
}

/* On each node of a cluster only what is that node's. */
static void test_host_only(void **unused)
{
    struct conf *conf = conf_of("[pool nowhere]\n");
    struct doctor_facts facts = good_site(conf);
    struct doctor doctor;
    facts.config = "PreemptType=preempt/none\n" CONFIG;
    facts.skew = 4000;
    doctor_examine(&facts, true, &doctor);
    assert_int_equal(doctor.count, 1);
    assert_string_equal(doctor.findings[0].id, "clock");
    conf_destroy(conf);
}

static void test_many_findings(void **unused)
{
    static char text[8192];
    for (int i = 0; i < 200; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "[pool p%d]\n", i);
    struct conf *conf = conf_of(text);
    struct doctor_facts facts = good_site(conf);
    struct doctor doctor;
    doctor_examine(&facts, false, &doctor);
    assert_int_equal(doctor.count, DOCTOR_FINDINGS_MAX);
    conf_destroy(conf);
}

#define NODE(of, has_answered, its_release, its_conf, its_time, sees)                              \
    {                                                                                              \
        .name = (of), .answered = (has_answered), .release = (its_release), .conf = (its_conf),    \
        .time = (its_time), .sees_state = (sees)                                                   \
    }

static const struct doctor_node here = NODE("this host", true, "0.1.0", "abc", 0, true);
static const struct doctor_node like_here = NODE("n1", true, "0.1.0", "abc", 1000, true);

/* Three nodes; the second one, and the third, are as told. */
static void compare(struct doctor_node odd, const char *state_dir, struct doctor *doctor)
{
    struct doctor_node nodes[] = {like_here, odd, odd};
    nodes[1].name = "n2";
    nodes[2].name = "n3";
    doctor->count = 0;
    doctor_compare(&here, nodes, 3, 999, 1003, state_dir, doctor);
}

static void test_nodes(void **unused)
{
    static const struct {
        struct doctor_node odd;
        const char *id, *what;
    } odd[] = {
        {NODE("", false, NULL, NULL, 0, false), "nodes-silent", "no answer of n2,n3"},
        {NODE("", true, "0.2.0", "abc", 1000, true), "nodes-release",
         "another release of slurm-elastic is on n2,n3"},
        {NODE("", true, "0.1.0", "abd", 1000, true), "nodes-conf", "elastic.conf differs on n2,n3"},
        {NODE("", true, "0.1.0", "", 1000, true), "nodes-no-conf",
         "elastic.conf is missing on n2,n3"},
        {NODE("", true, "0.1.0", "abc", 1009, true), "nodes-clock", "the clock differs on n2,n3"},
        {NODE("", true, "0.1.0", "abc", 993, true), "nodes-clock", "the clock differs on n2,n3"},
        {NODE("", true, "0.1.0", "abc", 1000, false), "nodes-state",
         "the state directory is not shared with n2,n3 (/home/ada/x)"},
    };
    struct doctor doctor;
    compare(like_here, "/home/ada/x", &doctor);
    assert_int_equal(doctor.count, 0);
    for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
        compare(odd[i].odd, "/home/ada/x", &doctor);
        assert_int_equal(doctor.count, 1);
        assert_string_equal(doctor.findings[0].id, odd[i].id);
        assert_string_equal(doctor.findings[0].what, odd[i].what);
    }
    /* Where no file could be made, nothing is known of that. */
    compare(odd[6].odd, NULL, &doctor);
    assert_int_equal(doctor.count, 0);
}

/* n1 has tried n2, and n2 has tried n1. */
static void test_ports(void **unused)
{
    static const struct {
        bool listens, answered;
        const char *conf, *why, *what;
    } tries[] = {
        {true, true, "abc", NULL, NULL},
        {true, true, "abc", "no answer",
         "nodes cannot connect to each other: n1 to n2, port 23001 (no answer)"},
        {false, true, "abc", "Connection refused", NULL}, /* its port was taken */
        {true, true, "abd", "Connection refused", NULL},  /* it has another port_range */
        {true, false, "abc", "Connection refused", NULL},
    };
    for (size_t i = 0; i < sizeof(tries) / sizeof(*tries); i++) {
        struct doctor_node nodes[] = {like_here, like_here};
        struct doctor doctor = {.count = 0};
        nodes[1].name = "n2";
        nodes[0].peer = "n2";
        nodes[0].port = 23001;
        nodes[0].unreached = tries[i].why;
        nodes[1].peer = "n1";
        nodes[0].listens = true;
        nodes[1].listens = tries[i].listens;
        nodes[1].conf = tries[i].conf;
        nodes[1].answered = tries[i].answered;
        doctor_compare(&here, nodes, 2, 999, 1003, NULL, &doctor);
        bool found = false;
        for (int k = 0; k < doctor.count; k++)
            if (strcmp(doctor.findings[k].id, "nodes-ports") == 0) {
                found = true;
                assert_string_equal(doctor.findings[k].what, tries[i].what);
            }
        assert_int_equal(found, tries[i].what != NULL);
    }
}

static void test_texts_of_slurm(void **unused)
{
    struct doctor_facts facts = {.config = "Prolog[0] = /a\nProlog[1]=/b\nPrologFlags=x\nEmpty=\n"
                                           "Null  = (null)\nNoEqual\nLast=1"};
    char buf[8], path[64];
    assert_string_equal(doctor_setting(&facts, "Prolog", buf, sizeof(buf)), "/a");
    assert_true(doctor_config_value(facts.config, "Prolog", 1, buf, sizeof(buf)));
    assert_string_equal(buf, "/b");
    assert_false(doctor_config_value(facts.config, "Prolog", 2, buf, sizeof(buf)));
    assert_string_equal(doctor_setting(&facts, "prologflags", buf, sizeof(buf)), "x");
    assert_string_equal(doctor_setting(&facts, "Empty", buf, sizeof(buf)), "");
    assert_string_equal(doctor_setting(&facts, "Null", buf, sizeof(buf)), "");
    assert_string_equal(doctor_setting(&facts, "NoEqual", buf, sizeof(buf)), "");
    assert_int_equal(doctor_number(&facts, "Last", -1), 1);
    assert_int_equal(doctor_number(&facts, "Prolog", -1), -1);
    assert_true(doctor_has_word("a,b,c", "b") && doctor_has_word("a", "A"));
    assert_false(doctor_has_word("ab,bc", "b") || doctor_has_word("", "b"));
    assert_int_equal(doctor_spank_line("  optional\tspank_elastic.so x\n", path, sizeof(path)),
                     DOCTOR_SPANK_OPTIONAL);
    assert_string_equal(path, "spank_elastic.so");
    /* A user may not be allowed to read it. */
    assert_int_equal(doctor_spank_line(NULL, path, sizeof(path)), DOCTOR_SPANK_NONE);
    assert_int_equal(doctor_spank_line("include x\nignore /x/spank_elastic.so", path, sizeof(path)),
                     DOCTOR_SPANK_NONE);
    assert_string_equal(path, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_misconfiguration),
        cmocka_unit_test(test_a_good_site),
        cmocka_unit_test(test_nothing_is_known),
        cmocka_unit_test(test_login_node),
        cmocka_unit_test(test_host_only),
        cmocka_unit_test(test_many_findings),
        cmocka_unit_test(test_texts_of_slurm),
        cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_ports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
