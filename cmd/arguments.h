/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line of each subcommand of selastic. Pure. */
#ifndef SELASTIC_ARGUMENTS_H
#define SELASTIC_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/wait_rule.h"
#include "lib/error.h"

#define SCALES_MAX 16 /* roles in one `selastic scale` */

/* ROLE=N, ROLE=+K or ROLE=-K. */
struct scale {
    const char *text; /* as it was written */
    int role_length;  /* of its beginning: the role */
    bool relative;    /* replicas is a difference */
    int replicas;
};

enum endpoints_format {
    ENDPOINTS_TEXT,
    ENDPOINTS_JSON,
    ENDPOINTS_HOSTS,
    ENDPOINTS_PROMETHEUS,
    ENDPOINTS_HAPROXY
};

enum topology_action { TOPOLOGY_COLLECT, TOPOLOGY_SHOW, TOPOLOGY_CHECK, TOPOLOGY_DESCRIBE };

struct arguments {
    bool help;
    bool json;
    bool all;                        /* list, top, usage: everybody's jobs */
    int interval;                    /* top, exporter: seconds between two looks; 0: as usual */
    const char *group;               /* list: only of this group; NULL: all */
    bool timeline;                   /* history: draw a chart */
    double watch;                    /* show, roles, replicas: seconds between two looks, 0: once */
    const char *svg, *html;          /* history, usage: write a picture, a page; NULL: do not */
    const char *title;               /* of them; NULL: a usual one */
    const char *user;                /* history: the job's owner, NULL: ask Slurm, else oneself;
                                      * usage: only of this user */
    const char *account;             /* usage: only of this account */
    const char *since, *until;       /* usage: as for sacct; NULL: 30 days, now */
    const char *state_dir;           /* history: read this directory */
    bool dry_run;                    /* clean: remove nothing */
    int days;                        /* clean: of rest */
    uint32_t job_id;                 /* 0: the subcommand takes none */
    bool relative;                   /* resize: nodes is a difference */
    int nodes;                       /* resize */
    const char *role;                /* replicas, endpoints: only of this role; NULL: of all */
    const char *replica;             /* fail, remove */
    const char *service;             /* shard, apply, …: instead of a job; NULL: none */
    const char *model;               /* move … */
    int shard;                       /* … to that shard */
    char **models;                   /* place: NULL after the last … */
    bool keys;                       /* … these are their keys */
    const char *name;                /* logs, reports: of a role, a replica or a task; NULL: all */
    bool follow;                     /* logs, reports */
    int after;                       /* reports: a number */
    int port;                        /* proxy, 0: any; exporter */
    struct scale scales[SCALES_MAX]; /* scale */
    int scale_count;
    enum endpoints_format format; /* endpoints */
    enum topology_action action;  /* topology; the following are for it */
    /* Of shapes, to be read or written; NULL: the file that elastic.conf names. plan: the job
     * file. apply: the same; NULL: none. */
    const char *file;
    const char *hostlist;  /* collect: only from these nodes */
    const char *partition; /* collect: with jobs in this partition; plan: whose nodes */
    int timeout;           /* collect, exporter: seconds */
    struct wait_goal goal; /* wait */
    int wait_seconds;      /* wait: 0: for ever */
    bool pieces;           /* describe: for collect */
    bool here;             /* doctor: only this host */
    const char *address;   /* exporter: a number */
    int jobs;              /* exporter: that are asked */
    bool once;             /* exporter: print, and end */
    const char *peers;     /* doctor --here: nodes that it connects to; NULL: none */
    const char *token;     /* doctor --here: a file that it looks for; NULL: none */
};

/* Parse the arguments of a subcommand. argv[0] is its name ("list", "show", "topology"), and argv
 * ends with NULL. The order of argv changes, the strings stay where they are.
 * -1 with a message that says what would be right. */
int arguments_parse(int argc, char **argv, struct arguments *arguments, struct error *err);

/* -1: there is no such subcommand. The message names those that there are. */
int arguments_unknown(const char *name, struct error *err);

#endif
