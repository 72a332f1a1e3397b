/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rules of what is on a host: plugins, hooks, programs, files, munge, clock (doctor.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/doctor_rules.h"

#define EPILOG_REST   25  /* seconds that the epilog may take beside epilog_flush */
#define PROLOG_MOST   15  /* seconds */
#define MUNGE_SECONDS 300 /* that a credential is valid */
#define SKEW_NOTICED  5

/* ---- plugins --------------------------------------------------------------------------------- */

static void plugin_rule(const struct doctor_plugin *plugin, const char *name, const char *missing,
                        const struct doctor_facts *facts, struct doctor *doctor)
{
    struct doctor_finding *f;
    switch (plugin->state) {
    case DOCTOR_PLUGIN_UNKNOWN:
    case DOCTOR_PLUGIN_GOOD:
        break;
    case DOCTOR_PLUGIN_ABSENT:
        f = doctor_add(doctor, DOCTOR_MISTAKE, "plugin-absent", missing);
        doctor_what(f, "%s is in no directory of PluginDir", name);
        doctor_remedy(f, "in slurm.conf: PluginDir=%s:%s, and restart the daemons", facts->plugins,
                      facts->slurm_plugins);
        break;
    case DOCTOR_PLUGIN_BROKEN:
        f = doctor_add(doctor, DOCTOR_MISTAKE, "plugin-broken", missing);
        doctor_what(f, "%s cannot be loaded: %s", plugin->path, plugin->why);
        doctor_remedy(f, "install slurm-elastic once more on this host");
        break;
    case DOCTOR_PLUGIN_UNSAFE:
        f = doctor_add(doctor, DOCTOR_MISTAKE, "plugin-unsafe",
                       "whoever can change it runs with the rights of Slurm's daemons");
        doctor_what(f, "%s was not loaded: %s", plugin->path, plugin->why);
        doctor_remedy(f, "chown root: and chmod go-w what this names");
        break;
    case DOCTOR_PLUGIN_OTHER:
        f = doctor_add(doctor, DOCTOR_MISTAKE, "plugin-other-slurm", missing);
        doctor_what(f, "%s is for Slurm %s", plugin->path, plugin->why);
        doctor_remedy(f, "install the packages for this Slurm, or: scripts/setup, configure, make");
        break;
    }
}

static void plugins_rule(const struct doctor_facts *facts, struct doctor *doctor)
{
    plugin_rule(&facts->job_submit, "job_submit_elastic.so",
                "slurmctld does not start without a plugin that slurm.conf names", facts, doctor);
    plugin_rule(&facts->select, "select_elastic_cons_tres.so",
                "without it no command and no daemon of Slurm works on this host", facts, doctor);
}

static void spank_rule(const struct doctor_facts *facts, struct doctor *doctor)
{
    static const char no_option[] = "sbatch does not know --elastic here";
    char path[512];
    struct doctor_finding *f;
    if (facts->plugstack_text == NULL)
        return;
    enum doctor_spank_line line = doctor_spank_line(facts->plugstack_text, path, sizeof(path));
    if (line == DOCTOR_SPANK_NONE) {
        f = doctor_add(doctor, DOCTOR_MISTAKE, "spank-not-named", no_option);
        doctor_what(f, "%s does not name spank_elastic.so", facts->plugstack);
        doctor_remedy(f, "add the line: optional %s/spank_elastic.so", facts->plugins);
        return;
    }
    if (line == DOCTOR_SPANK_REQUIRED) {
        f = doctor_add(doctor, DOCTOR_MISTAKE, "spank-required",
                       "where the file is missing nobody can submit, and nodes are drained");
        doctor_what(f, "%s has spank_elastic.so as required", facts->plugstack);
        doctor_remedy(f, "write: optional %s", path);
    }
    if (facts->spank.state == DOCTOR_PLUGIN_ABSENT) {
        f = doctor_add(doctor, DOCTOR_MISTAKE, "spank-absent", no_option);
        doctor_what(f, "%s names %s, which is not there", facts->plugstack, path);
        doctor_remedy(f, "install slurm-elastic on this host, or name %s/spank_elastic.so",
                      facts->plugins);
    } else
        plugin_rule(&facts->spank, "spank_elastic.so", no_option, facts, doctor);
}

/* ---- hooks ----------------------------------------------------------------------------------- */

static void hook_rule(const struct doctor_hook *hook, const char *name, const char *missing,
                      const struct doctor_facts *facts, struct doctor *doctor)
{
    static const char drains[] = "a script that cannot be run drains the node";
    struct doctor_finding *f;
    char setting[256];
    if (!facts->node || facts->config == NULL)
        return;
    if (hook->broken[0] != '\0') {
        f = doctor_add(doctor, DOCTOR_MISTAKE, "hook-broken", drains);
        doctor_what(f, "%s runs %s, a link that leads nowhere", name, hook->broken);
        doctor_remedy(f, "remove it, or: cp --remove-destination %s/elastic-hook %s",
                      facts->libexec, hook->broken);
    } else if (hook->none[0] != '\0') {
        f = doctor_add(doctor, DOCTOR_MISTAKE, "hook-none",
                       "Slurm drains each node where it finds no script to run");
        doctor_what(f, "%s=%s: no file has such a name", name, hook->none);
        doctor_remedy(f, "remove it from slurm.conf, or: cp %s/elastic-hook to such a name",
                      facts->libexec);
    } else if (hook->found[0] == '\0') {
        f = doctor_add(doctor, DOCTOR_MISTAKE, "hook-missing", missing);
        doctor_what(f, "%s (%s) does not start 50-elastic", name,
                    doctor_setting(facts, name, setting, sizeof(setting)));
        doctor_remedy(f,
                      "cp %s/elastic-hook DIRECTORY/50-elastic, with %s=DIRECTORY/* in slurm.conf",
                      facts->libexec, name);
    }
    if (hook->found[0] != '\0' && !hook->executable) {
        f = doctor_add(doctor, DOCTOR_MISTAKE, "hook-mode", drains);
        doctor_what(f, "%s is not executable", hook->found);
        doctor_remedy(f, "chmod 755 %s", hook->found);
    }
}

static void hooks_rule(const struct doctor_facts *facts, struct doctor *doctor)
{
    hook_rule(&facts->prolog, "Prolog",
              "jobs find no directory for snapshots; what killed jobs have left is not saved",
              facts, doctor);
    hook_rule(&facts->epilog, "Epilog",
              "the snapshot of a job that is killed is lost, and its files stay on the node", facts,
              doctor);
}

static void limit_rule(const struct doctor_facts *facts, const char *name, int least,
                       struct doctor *doctor)
{
    int limit = doctor_number(facts, name, 0);
    if (!facts->node || limit == 0 || limit >= least)
        return;
    struct doctor_finding *f = doctor_add(
        doctor, DOCTOR_MISTAKE, "hook-limit",
        "our scripts shorten their waiting to that: snapshots may be saved late or not at all");
    doctor_what(f, "%s=%d", name, limit);
    doctor_remedy(f, "in slurm.conf: %s=%d, or more; then scontrol reconfigure", name, least);
}

static void limits_rule(const struct doctor_facts *facts, struct doctor *doctor)
{
    int flush = facts->conf != NULL ? facts->conf->epilog_flush : 20;
    limit_rule(facts, "PrologEpilogTimeout", flush + EPILOG_REST, doctor);
    limit_rule(facts, "EpilogTimeout", flush + EPILOG_REST, doctor);
    limit_rule(facts, "PrologTimeout", PROLOG_MOST, doctor);
}

/* ---- programs and files ---------------------------------------------------------------------- */

/* Hooks start it with the rights of a user. */
static void mode_rule(const struct doctor_facts *facts, const char *name, int mode,
                      struct doctor *doctor)
{
    struct doctor_finding *f;
    if (mode < 0 || (mode & 06) == 0)
        return;
    f = doctor_add(doctor, DOCTOR_MISTAKE, "program-mode",
                   "a user who may read the program may trace it while it has rights");
    doctor_what(f, "%s/%s has mode %o", facts->libexec, name, (unsigned int)mode);
    doctor_remedy(f, "chmod 711 %s/%s", facts->libexec, name);
}

static void programs_rule(const struct doctor_facts *facts, struct doctor *doctor)
{
    struct doctor_finding *f;
    if (facts->program_missing != NULL) {
        f = doctor_add(doctor, DOCTOR_MISTAKE, "program-missing",
                       "the hooks and the leader start it");
        doctor_what(f, "%s is missing", facts->program_missing);
        doctor_remedy(f, "run make install, or mount the installation, on this host");
    }
    mode_rule(facts, "elastic-flush", facts->flush_mode, doctor);
    mode_rule(facts, "elastic-fit", facts->fit_mode, doctor);
    if (facts->program_writable != NULL) {
        f = doctor_add(doctor, DOCTOR_MISTAKE, "program-writable",
                       "whoever writes it runs as root on the nodes");
        doctor_what(f, "%s can be changed by others than its owner", facts->program_writable);
        doctor_remedy(f, "chmod go-w %s", facts->program_writable);
    }
    if (facts->program_owned != NULL) {
        f = doctor_add(doctor, DOCTOR_MISTAKE, "program-owner",
                       "whoever owns it, or a directory above it, runs as root on the nodes");
        doctor_what(f, "%s belongs to user %u", facts->program_owned, facts->program_owner);
        doctor_remedy(f, "chown root: %s", facts->program_owned);
    }
}

static void grants_rule(const struct doctor_facts *facts, struct doctor *doctor)
{
    const struct doctor_grants *grants = &facts->grants;
    struct doctor_finding *f;
    if (grants->count == 0)
        return;
    f = doctor_add(doctor, DOCTOR_NOTE, "trainer-access",
                   grants->over ? "its time is over, and it could not be taken back"
                                : "it ends with the fit, or with the job of the service");
    doctor_what(f, "fit %d of %s has given %s access to %s%s", grants->fit, grants->service,
                grants->user, grants->path, grants->count > 1 ? ", and others have, too" : "");
    doctor_remedy(f,
                  "selastic fit cancel %s %d; where no job runs the service: setfacl -R -x u:%s %s",
                  grants->service, grants->fit, grants->user, grants->path);
}

/* The one who has moved it there, or the user, knows where it is. */
static void lost_grants_rule(const struct doctor_facts *facts, struct doctor *doctor)
{
    const struct doctor_grants *grants = &facts->grants;
    struct doctor_finding *f;
    if (grants->lost == 0)
        return;
    f = doctor_add(doctor, DOCTOR_NOTE, "trainer-access-lost",
                   "it was moved or replaced meanwhile, or may not be changed, and may still be "
                   "open to that user");
    doctor_what(f, "fit %d of %s could not take back %s's access to %s%s", grants->lost_fit,
                grants->lost_service, grants->lost_user, grants->lost_path,
                grants->lost > 1 ? ", and there is more" : "");
    doctor_remedy(f, "where it is now: setfacl -R -x u:%s PATH; then, or if it is deleted: rm %s",
                  grants->lost_user, grants->grant);
}

static void conf_rule(const struct doctor_facts *facts, struct doctor *doctor)
{
    struct doctor_finding *f;
    switch (facts->conf_state) {
    case DOCTOR_CONF_UNKNOWN:
        return;
    case DOCTOR_CONF_ABSENT:
        f = doctor_add(doctor, DOCTOR_MISTAKE, "conf-absent",
                       "users may take any partition as a pool, without limits");
        doctor_what(f, "there is no %s", facts->conf_path);
        doctor_remedy(f, "cp %s/elastic.conf %s, on all hosts, and edit it", facts->examples,
                      facts->conf_path);
        return;
    case DOCTOR_CONF_UNREADABLE:
        f = doctor_add(doctor, DOCTOR_MISTAKE, "conf-unreadable",
                       "each user's sbatch, elasticrun and selastic read it");
        doctor_what(f, "%s cannot be read: %s", facts->conf_path, facts->conf_error);
        doctor_remedy(f, "chmod 644 %s", facts->conf_path);
        return;
    case DOCTOR_CONF_WRONG:
        f = doctor_add(doctor, DOCTOR_MISTAKE, "conf-wrong", "no elastic job is admitted");
        doctor_what(f, "%s", facts->conf_error);
        doctor_remedy(f, "repair the line, on all hosts; then scontrol reconfigure");
        return;
    case DOCTOR_CONF_GOOD:
        break;
    }
    if (facts->conf->pool_count == 0) {
        f = doctor_add(doctor, DOCTOR_MISTAKE, "conf-no-pool",
                       "users may take any partition as a pool, without limits");
        doctor_what(f, "%s has no pool", facts->conf_path);
        doctor_remedy(f, "add a section: [pool NAME]");
    }
}

static void snapshot_rule(const struct doctor_facts *facts, struct doctor *doctor)
{
    const char *dir = facts->conf != NULL ? facts->conf->snapshot_dir : "/run/slurm-elastic";
    bool own = strcmp(dir, "/run/slurm-elastic") == 0;
    char container[64];
    struct doctor_finding *f;
    if (!facts->node)
        return;
    if (facts->snapshot_state == DOCTOR_SNAPSHOT_UNSAFE) {
        f = doctor_add(doctor, DOCTOR_MISTAKE, "snapshot-unsafe",
                       "it is not used then: there are no snapshots");
        doctor_what(f, "snapshot_dir %s: %s", dir, facts->snapshot_why);
        doctor_remedy(f, "let it and all directories above belong to root, writable by root only");
    } else if (facts->snapshot_state == DOCTOR_SNAPSHOT_ABSENT && !own) {
        f = doctor_add(doctor, DOCTOR_MISTAKE, "snapshot-absent", "there are no snapshots");
        doctor_what(f, "snapshot_dir %s does not exist", dir);
        doctor_remedy(f, "mkdir -m 711 %s, on a tmpfs, at boot", dir);
    }
    doctor_setting(facts, "JobContainerType", container, sizeof(container));
    if (container[0] == '\0') /* of Slurm 25.11 */
        doctor_setting(facts, "NamespaceType", container, sizeof(container));
    if (own && strstr(container, "tmpfs") != NULL &&
        (facts->snapshot_state == DOCTOR_SNAPSHOT_ABSENT ||
         facts->snapshot_state == DOCTOR_SNAPSHOT_THERE)) {
        f = doctor_add(
            doctor, DOCTOR_NOTE, "snapshot-container",
            "a job sees only what was mounted before it: the first one has no snapshots");
        doctor_what(f, "%s, and %s is not mounted", container, dir);
        doctor_remedy(f, "mount it at boot: systemctl enable 'run-slurm\\x2delastic.mount'");
    }
}

/* ---- the rest of the host -------------------------------------------------------------------- */

static void munge_rule(const struct doctor_facts *facts, struct doctor *doctor)
{
    if (facts->munge_error == NULL)
        return;
    struct doctor_finding *f = doctor_add(doctor, DOCTOR_MISTAKE, "munge",
                                          "neither Slurm nor a leader trusts anybody without it");
    doctor_what(f, "munge does not work on this host: %s", facts->munge_error);
    doctor_remedy(f, "start munged, with the key of the cluster");
}

static void clock_rule(const struct doctor_facts *facts, struct doctor *doctor)
{
    double skew = facts->skew < 0 ? -facts->skew : facts->skew;
    if (!facts->knows_skew || skew < SKEW_NOTICED)
        return;
    bool refused = skew >= MUNGE_SECONDS;
    struct doctor_finding *f = doctor_add(
        doctor, refused ? DOCTOR_MISTAKE : DOCTOR_NOTE, "clock",
        refused ? "munge refuses credentials of another time"
                : "deadlines, and the times in histories, are off by that");
    doctor_what(f, "this host's clock is %.0f s %s slurmctld's", skew,
                facts->skew > 0 ? "ahead of" : "behind");
    doctor_remedy(f, "run chronyd or ntpd on all hosts");
}

static void state_rule(const struct doctor_facts *facts, struct doctor *doctor)
{
    struct doctor_finding *f;
    if (facts->state_in_memory != NULL) {
        f = doctor_add(doctor, DOCTOR_MISTAKE, "state-memory",
                       "no other node sees it: no takeover, and checkpoints are lost");
        doctor_what(f, "state_dir %s is on a %s of this host", facts->state_dir,
                    facts->state_in_memory);
        doctor_remedy(f, "in elastic.conf: state_dir = DIRECTORY/%%c-%%j on a shared file system");
    }
    if (facts->state_unsafe != NULL) {
        f = doctor_add(doctor, DOCTOR_MISTAKE, "state-unsafe",
                       "who makes a job's directory in advance keeps the job from starting");
        doctor_what(f, "state_dir %s: other users may write in %s", facts->state_dir,
                    facts->state_unsafe);
        doctor_remedy(f, "in elastic.conf: state_dir = %%h/.slurm-elastic/%%c-%%j (the default)");
    }
    if (facts->state_stranger != NULL) {
        f = doctor_add(doctor, DOCTOR_MISTAKE, "state-stranger", "no job starts below it");
        doctor_what(f, "state_dir %s: another user has made %s", facts->state_dir,
                    facts->state_stranger);
        doctor_remedy(f, "chown root: %s, or whose it should be", facts->state_stranger);
    }
    if (facts->state_missing != NULL) {
        f = doctor_add(doctor, DOCTOR_NOTE, "state-missing",
                       "another user who makes it first keeps jobs from starting");
        doctor_what(f, "state_dir %s: any user may make %s", facts->state_dir,
                    facts->state_missing);
        doctor_remedy(f, "make such a directory for each user beforehand");
    }
}

static void ports_rule(const struct doctor_facts *facts, struct doctor *doctor)
{
    const struct conf *conf = facts->conf;
    if (conf == NULL || facts->local_port_first == 0 || conf->port_last < facts->local_port_first ||
        conf->port_first > facts->local_port_last)
        return;
    struct doctor_finding *f = doctor_add(
        doctor, DOCTOR_NOTE, "ports-ephemeral",
        "the kernel gives these ports to any program: leaders may find their own taken");
    doctor_what(f, "port_range %d-%d overlaps net.ipv4.ip_local_port_range %d-%d", conf->port_first,
                conf->port_last, facts->local_port_first, facts->local_port_last);
    doctor_remedy(f, "in elastic.conf: port_range = A-B outside of it, the same on all hosts");
}

static void libraries_rule(const struct doctor_facts *facts, struct doctor *doctor)
{
    struct doctor_finding *f;
    if (facts->pmix_error != NULL) {
        f = doctor_add(doctor, DOCTOR_NOTE, "pmix",
                       "programs of MPI cannot start in elastic jobs, nor ask for nodes");
        doctor_what(f, "libpmix cannot be loaded: %s", facts->pmix_error);
        doctor_remedy(f, "install it on the nodes (Debian: libpmix2), or --pmix=no");
    }
    if (facts->python_release != NULL && strcmp(facts->python_release, facts->release) != 0) {
        f = doctor_add(
            doctor, DOCTOR_MISTAKE, "python-release",
            "package and library speak to the same elasticrun; only one release is tested");
        doctor_what(f, "Python's slurm_elastic is of release %s, selastic of %s",
                    facts->python_release, facts->release);
        doctor_remedy(f, "install the package of the same release, or remove it from PYTHONPATH");
    }
}

/* PyTorch's stores want libuv since 2.4. Debian builds without it. */
static bool lacks_libuv(const char *release)
{
    int major = 0, minor = 0;
    return release != NULL && strstr(release, "+debian") != NULL &&
           sscanf(release, "%9d.%9d", &major, &minor) == 2 &&
           (major > 2 || (major == 2 && minor >= 4));
}

static void torch_rule(const struct doctor_facts *facts, struct doctor *doctor)
{
    if (!lacks_libuv(facts->torch_release) || facts->libuv_declined)
        return;
    struct doctor_finding *f = doctor_add(
        doctor, DOCTOR_NOTE, "torch-rendezvous",
        "the rendezvous by env:// or tcp:// fails, so restart mode does not start; live mode does");
    doctor_what(f, "PyTorch %s was built without libuv, and wants to use it", facts->torch_release);
    doctor_remedy(f, "in the environment of jobs: USE_LIBUV=0");
}

doctor_rule *const doctor_host_rules[] = {
    plugins_rule,     spank_rule,     hooks_rule,    limits_rule, programs_rule, grants_rule,
    lost_grants_rule, conf_rule,      snapshot_rule, munge_rule,  clock_rule,    state_rule,
    ports_rule,       libraries_rule, torch_rule,    NULL};
