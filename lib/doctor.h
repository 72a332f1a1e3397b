/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is wrong with a site: facts in, findings out. Pure.
 *
 * A rule is a function of the facts that adds its findings. What is not known (NULL, or as the
 * field says) is no mistake: each user may ask, and sees what users may see. */
#ifndef ELASTIC_DOCTOR_H
#define ELASTIC_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "lib/conf.h"

enum doctor_plugin_state {
    DOCTOR_PLUGIN_UNKNOWN, /* not looked for */
    DOCTOR_PLUGIN_ABSENT,
    DOCTOR_PLUGIN_BROKEN, /* it cannot be loaded: why */
    DOCTOR_PLUGIN_UNSAFE, /* others may have changed it, so it is not loaded here: why */
    DOCTOR_PLUGIN_OTHER,  /* it was built for another Slurm: why is that version */
    DOCTOR_PLUGIN_GOOD,
};

struct doctor_plugin {
    enum doctor_plugin_state state;
    char path[512];
    char why[256];
};

/* A line of plugstack.conf about our plugin. */
enum doctor_spank_line { DOCTOR_SPANK_NONE, DOCTOR_SPANK_OPTIONAL, DOCTOR_SPANK_REQUIRED };

/* The first one in the text of plugstack.conf, and where its plugin is. text NULL: it cannot be
 * read. */
enum doctor_spank_line doctor_spank_line(const char *text, char *path, size_t size);

/* The scripts that Slurm starts as Prolog or Epilog on this node. */
struct doctor_hook {
    char found[512];  /* the one that starts ours; empty: there is none */
    char broken[512]; /* a link that leads nowhere; empty: there is none */
    char none[512];   /* a pattern that no file matches; empty: there is none */
    bool executable;  /* found is */
};

/* Access of trainers of other users that this user has given, and nobody has taken back. */
struct doctor_grants {
    int count;
    /* One of them, whose time is over if there is one. */
    bool over;
    int fit;
    char service[64], user[64], path[512];
    /* What could not be taken back, and one of that; grant: the file that says so. */
    int lost, lost_fit;
    char lost_service[64], lost_user[64], lost_path[512], grant[512];
};

enum doctor_conf_state {
    DOCTOR_CONF_UNKNOWN,
    DOCTOR_CONF_ABSENT,
    DOCTOR_CONF_UNREADABLE,
    DOCTOR_CONF_WRONG, /* conf_error says why */
    DOCTOR_CONF_GOOD,  /* conf is set */
};

/* Where snapshots go. */
enum doctor_snapshot_state {
    DOCTOR_SNAPSHOT_UNKNOWN,
    DOCTOR_SNAPSHOT_ABSENT,
    DOCTOR_SNAPSHOT_UNSAFE, /* snapshot_why: who owns it, or may write */
    DOCTOR_SNAPSHOT_THERE,
    DOCTOR_SNAPSHOT_MOUNTED,
};

struct doctor_facts {
    /* Our installation on this host. */
    const char *built_for;                                    /* the version of Slurm */
    const char *plugins, *slurm_plugins, *libexec, *examples; /* directories */

    /* What Slurm's own programs print. NULL: they were not asked, or did not answer. */
    const char *config;       /* scontrol show config */
    const char *config_error; /* … if it failed */
    const char *partitions;   /* scontrol --oneliner show partition */
    const char *qos;          /* sacctmgr: NAME|GRACETIME|PREEMPTMODE, a line each */
    const char
        *association; /* sacctmgr, of the user: ACCOUNT|MAXJOBS|MAXSUBMIT|GRPJOBS|GRPSUBMIT */

    struct doctor_plugin job_submit, select, spank;
    const char *plugstack;      /* path */
    const char *plugstack_text; /* with that of included files; NULL: it cannot be read */

    bool node; /* this host is a node: a slurmd runs here */
    struct doctor_hook prolog, epilog;
    const char *program_missing; /* path of the first; NULL: all are there */
    /* Programs, plugins, what Slurm starts as Prolog or Epilog, and directories above them: the
     * first that others than its owner can change, and the first of an ordinary user. NULL: none.
     */
    const char *program_writable, *program_owned;
    unsigned int program_owner; /* who that is */
    int flush_mode, fit_mode;   /* of elastic-flush, elastic-fit; -1: not known */

    enum doctor_conf_state conf_state;
    const char *conf_path, *conf_error;
    const struct conf *conf;

    enum doctor_snapshot_state snapshot_state;
    const char *snapshot_why;

    struct doctor_grants grants;

    const char *munge_error; /* NULL: it works, or was not tried */
    bool knows_skew;
    double skew; /* seconds that this host's clock is ahead of slurmctld's */
    int local_port_first, local_port_last; /* of the kernel; 0: not known */
    const char *state_dir;                 /* as expanded for this user; NULL: not known */
    const char *state_in_memory; /* the kind of its file system, if that is memory; else NULL */
    const char *state_unsafe;    /* a directory above it in which other users may write; NULL */
    const char *state_stranger;  /* one above it that another user has made; NULL */
    const char *state_missing;   /* one above it that any user may make yet; NULL */
    const char *pmix_error;      /* libpmix cannot be loaded: why; NULL: it can */
    const char *release,
        *python_release;       /* of selastic, of the package slurm_elastic; NULL: none */
    const char *torch_release; /* of PyTorch; NULL: none */
    bool libuv_declined;       /* USE_LIBUV=0 in the environment */
};

/* The n-th value (n = 0, 1, ...) of a key of slurm.conf in what scontrol shows, without "(null)":
 * of some keys there are several since Slurm 24.05, numbered. False, with an empty string: there is
 * none. */
bool doctor_config_value(const char *config, const char *key, int n, char *buf, size_t size);

enum doctor_level { DOCTOR_NOTE, DOCTOR_MISTAKE };

struct doctor_finding {
    const char *id; /* a constant for programs */
    enum doctor_level level;
    char what[512];
    const char *why; /* it matters; a constant */
    char remedy[512];
};

#define DOCTOR_FINDINGS_MAX 64

struct doctor {
    struct doctor_finding findings[DOCTOR_FINDINGS_MAX];
    int count;
};

/* All rules. With host_only, those that look at this host alone: the others say the same on each
 * host. */
void doctor_examine(const struct doctor_facts *facts, bool host_only, struct doctor *doctor);

int doctor_mistakes(const struct doctor *doctor);

#endif
