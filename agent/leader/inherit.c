/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All options of sbatch that request something, and what extensions do with them (inherit.h).
 *
 * A worker on an extension is to find what a worker on the base finds: as many CPUs and GPUs, as
 * much memory. What belongs to the job as a whole, the base has already. */
#include "agent/leader/inherit.h"

#include <stddef.h>

#include "agent/leader/argv.h"
#include "common/slurm_client.h"

#define MB(number) ((unsigned long long)(number))

static void add_account(struct argv *argv, const struct job_info *base)
{
    if (base->account != NULL)
        argv_add(argv, "--account=%s", base->account);
}

static void add_reservation(struct argv *argv, const struct job_info *base)
{
    if (base->reservation != NULL)
        argv_add(argv, "--reservation=%s", base->reservation);
}

static void add_wckey(struct argv *argv, const struct job_info *base)
{
    if (base->request.wckey != NULL)
        argv_add(argv, "--wckey=%s", base->request.wckey);
}

static void add_nice(struct argv *argv, const struct job_info *base)
{
    if (base->request.nice > 0)
        argv_add(argv, "--nice=%u", base->request.nice);
}

static void add_sharing(struct argv *argv, const struct job_info *base)
{
    if (base->exclusive)
        argv_add(argv, "--exclusive");
    else if (base->request.sharing != NULL)
        argv_add(argv, "%s", base->request.sharing);
}

static void add_cpus(struct argv *argv, const struct job_info *base)
{
    if (!base->exclusive && base->cpus_per_node > 0)
        argv_add(argv, "--cpus-per-task=%d", base->cpus_per_node);
}

/* Where CPUs are counted, the count says it. */
static void add_threads(struct argv *argv, const struct job_info *base)
{
    if (base->exclusive && base->request.threads_per_core > 0)
        argv_add(argv, "--threads-per-core=%d", base->request.threads_per_core);
}

static void add_core_spec(struct argv *argv, const struct job_info *base)
{
    if (base->request.core_spec >= 0)
        argv_add(argv, "--core-spec=%d", base->request.core_spec);
}

/* Always one of them: another partition may have another default. */
static void add_memory(struct argv *argv, const struct job_info *base)
{
    const struct job_request *request = &base->request;

    if (request->mem_per_gpu > 0)
        argv_add(argv, "--mem-per-gpu=%lluM", MB(request->mem_per_gpu));
    else if (request->mem_per_cpu > 0)
        argv_add(argv, "--mem-per-cpu=%lluM", MB(request->mem_per_cpu));
    else
        argv_add(argv, "--mem=%lluM", MB(request->mem_per_node));
}

static void add_tmp(struct argv *argv, const struct job_info *base)
{
    if (base->request.tmp_disk > 0)
        argv_add(argv, "--tmp=%uM", base->request.tmp_disk);
}

static void add_gres(struct argv *argv, const struct job_info *base)
{
    if (base->request.gres_per_node != NULL)
        argv_add(argv, "--gres=%s", base->request.gres_per_node);
}

static void add_gres_flags(struct argv *argv, const struct job_info *base)
{
    if (base->request.gres_flags != NULL)
        argv_add(argv, "--gres-flags=%s", base->request.gres_flags);
}

static void add_prefer(struct argv *argv, const struct job_info *base)
{
    if (base->request.prefer != NULL)
        argv_add(argv, "--prefer=%s", base->request.prefer);
}

#define BASE(option, same_as, adds)                                                                \
    {                                                                                              \
        option, INHERIT_BASE, same_as, NULL, adds                                                  \
    }
#define WORLD(option, same_as, adds)                                                               \
    {                                                                                              \
        option, INHERIT_WORLD, same_as, NULL, adds                                                 \
    }
#define OWN(option, reason)                                                                        \
    {                                                                                              \
        option, INHERIT_OWN, NULL, reason, NULL                                                    \
    }
#define NONE(option, reason)                                                                       \
    {                                                                                              \
        option, INHERIT_NONE, NULL, reason, NULL                                                   \
    }
#define ONE_TASK  "an extension has one task on each node: elasticrun"
#define OF_STEPS  "for steps, and the extension has its own"
#define OF_WHOLE  "of the job as a whole: the base has it"
#define WITH_BASE "an extension begins and ends as its base wants"
#define FIXED     "an extension has a fixed number of nodes"
#define PLACE     "about the nodes of one job; the plugin for placement does it"

const struct inherit_option inherit_options[] = {
    /* who */
    BASE("account", NULL, add_account),
    BASE("wckey", NULL, add_wckey),
    BASE("nice", NULL, add_nice),
    BASE("reservation", NULL, add_reservation),
    NONE("uid", "an extension belongs to the user of its base"),
    NONE("gid", "an extension belongs to the user of its base"),
    NONE("mcs-label", "Slurm chooses it by user and account"),
    NONE("priority", "for administrators, and the pool has its own priority"),
    /* where */
    OWN("partition", "of the pool"),
    OWN("qos", "of the pool"),
    OWN("constraint", "of the base and of the pool"),
    OWN("exclude", "nodes of the base and of other extensions, and nodes to stay off"),
    BASE("prefer", NULL, add_prefer),
    NONE("clusters", "an extension is on the cluster of its base"),
    NONE("cluster-constraint", "an extension is on the cluster of its base"),
    NONE("nodelist", "the base has these nodes"),
    NONE("nodefile", "the base has these nodes"),
    NONE("contiguous", PLACE),
    NONE("switches", PLACE),
    NONE("spread-job", PLACE),
    NONE("segment", PLACE),
    NONE("spread-segments", PLACE),
    /* nodes and tasks */
    OWN("nodes", "what the leader asks for"),
    OWN("ntasks-per-node", ONE_TASK),
    NONE("use-min-nodes", FIXED),
    NONE("ntasks", ONE_TASK),
    NONE("ntasks-per-core", ONE_TASK),
    NONE("ntasks-per-gpu", ONE_TASK),
    NONE("ntasks-per-socket", ONE_TASK),
    NONE("overcommit", ONE_TASK),
    NONE("distribution", ONE_TASK),
    NONE("array", "an elastic job is no array"),
    /* of each node */
    WORLD("exclusive", NULL, add_sharing),
    WORLD("oversubscribe", NULL, NULL),
    WORLD("cpus-per-task", NULL, add_cpus),
    WORLD("cpus-per-gpu", "cpus-per-task", NULL),
    WORLD("mincpus", "cpus-per-task", NULL),
    WORLD("threads-per-core", NULL, add_threads),
    WORLD("hint", "threads-per-core", NULL),
    BASE("core-spec", NULL, add_core_spec),
    NONE("thread-spec", "libslurm does not tell it apart from the site's own"),
    NONE("cores-per-socket", "the number of CPUs is asked for; a pool may have a constraint"),
    NONE("sockets-per-node", "the number of CPUs is asked for; a pool may have a constraint"),
    NONE("extra-node-info", "the number of CPUs is asked for; a pool may have a constraint"),
    WORLD("mem", NULL, add_memory),
    WORLD("mem-per-cpu", NULL, NULL),
    WORLD("mem-per-gpu", NULL, NULL),
    BASE("tmp", NULL, add_tmp),
    WORLD("gres", NULL, add_gres),
    WORLD("gpus", "gres", NULL),
    WORLD("gpus-per-node", "gres", NULL),
    WORLD("gpus-per-socket", "gres", NULL),
    WORLD("gpus-per-task", "gres", NULL),
    WORLD("tres-per-task", "gres", NULL),
    BASE("gres-flags", NULL, add_gres_flags),
    NONE("gpu-bind", OF_STEPS),
    NONE("gpu-freq", OF_STEPS),
    NONE("cpu-freq", OF_STEPS),
    NONE("mem-bind", OF_STEPS),
    NONE("network", OF_STEPS),
    NONE("oom-kill-step", OF_STEPS),
    NONE("resv-ports", OF_STEPS),
    NONE("tres-bind", OF_STEPS),
    NONE("power", "of power plugins that Slurm no longer has"),
    NONE("reboot", "for administrators"),
    /* of the job */
    NONE("licenses", OF_WHOLE),
    NONE("bb", OF_WHOLE),
    NONE("bbf", OF_WHOLE),
    NONE("profile", OF_STEPS),
    NONE("acctg-freq", OF_STEPS),
    NONE("container", "elasticrun starts the workers, not Slurm"),
    NONE("container-id", "elasticrun starts the workers, not Slurm"),
    NONE("container-type", "elasticrun starts the workers, not Slurm"),
    NONE("mail-type", "the base's mails are enough"),
    NONE("mail-user", "the base's mails are enough"),
    NONE("wait", "the leader does not wait for sbatch"),
    OWN("job-name", "of the base, with a plus sign"),
    OWN("comment", "names the base"),
    OWN("no-requeue", "always"),
    OWN("no-kill", "always: the leader decides"),
    NONE("requeue", "an extension that is gone is asked for again"),
    /* when */
    OWN("time", "the rest of the base's, or what the pool allows"),
    OWN("begin", "after a shrink"),
    NONE("time-min", "set later where it is needed: backfill gives no more than that"),
    NONE("deadline", WITH_BASE),
    NONE("delay-boot", WITH_BASE),
    NONE("dependency", WITH_BASE),
    NONE("hold", WITH_BASE),
    NONE("signal", "the leader tells the workers"),
    /* what runs */
    OWN("export", "a constructed environment"),
    OWN("chdir", "/"),
    OWN("output", "nowhere: the script writes its log itself"),
    NONE("open-mode", "goes with the output"),
    NONE("error", "goes with the output"),
    NONE("export-file", "a constructed environment"),
    NONE("get-user-env", "a constructed environment"),
    NONE("input", "the base's worker reads it"),
    NONE("propagate", "workers get the limits of the leader's environment"),
    NONE("wrap", "the script is always the same"),
    NONE("ignore-pbs", "the script is always the same"),
    {0},
};

void inherit_add(struct argv *argv, const struct job_info *base, bool world)
{
    for (const struct inherit_option *option = inherit_options; option->name != NULL; option++)
        if (option->add != NULL && (world || option->rule != INHERIT_WORLD))
            option->add(argv, base);
}
