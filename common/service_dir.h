/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The directory of a service, ~/.slurm-elastic/services/NAME: what is kept when its jobs end, and
 * which of its jobs may write there.
 *
 *     record.json    what the service has (lib/service.h)
 *     routes.json    the table of routes, as routers have it
 *     leader.json    the job that runs it, where its leader is, and whether it has ended
 *     next.json      a job that is to have it next, as long as it waits for that
 *     before.json    the job that had it before, as long as that is there
 *     models/        shard_N.json for each shard: what its replicas are to have
 *     terms/N        claims: the job that made the file of the highest number runs the service
 *
 * These functions wait for the file system. */
#ifndef ELASTIC_SERVICE_DIR_H
#define ELASTIC_SERVICE_DIR_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"
#include "lib/service_gone.h"

#define SERVICE_FILE_MAX    ((size_t)64 << 20)
#define SERVICE_RECORD_FILE "record.json"
#define SERVICE_TABLE_FILE  "routes.json"
#define SERVICE_LEADER_FILE "leader.json"
#define SERVICE_NEXT_FILE   "next.json"
#define SERVICE_BEFORE_FILE "before.json"
#define SERVICE_MODELS_DIR  "models"
/* A job that has not written leader.json for so long does not run the service any more. */
#define SERVICE_SILENT 40

/* The directory that holds those of all services, or that of a service. -1 with err: also if there
 * is no service of such a name, as of one with '/' in it. */
int service_dir_all(char *path, size_t size, struct error *err);
int service_dir_path(char *path, size_t size, const char *name, struct error *err);

/* What a job has written of itself in leader.json, next.json or before.json. */
struct service_seen {
    uint32_t job;       /* 0: there is no such file, or nothing in it can be understood */
    double silent;      /* seconds since then, by the clock of the file system */
    bool ended;         /* it has ended */
    bool serves;        /* its table is out */
    uint32_t successor; /* that job may claim the service; 0: none may */
    uint32_t submitted; /* … has been submitted for that */
    uint32_t of;        /* the job whose successor it is; 0: it is none's, or that has gone */
    int64_t end;        /* when its time is over (Unix time); 0: never, or not known */
    int64_t old_end;    /* … that of the job whose successor it is */
};

void service_dir_look(const char *dir, const char *file, struct service_seen *seen);

enum service_claim {
    SERVICE_CLAIMED, /* this job runs the service: term */
    SERVICE_OTHERS,  /* another job does: holder */
    SERVICE_FAILED,  /* err */
};

struct service_claimed {
    int64_t term;
    bool handed;              /* the job that ran it has let this one have it … */
    uint32_t holder;          /* … that job; of OTHERS: the job that runs it */
    struct service_seen seen; /* what the holder has written */
};

/* Make the directory, and claim the service for a job. A job that runs it already
 * has its term again. gone, now: what Slurm has said of the job that runs it. */
enum service_claim service_dir_claim(const char *dir, uint32_t job, const struct service_gone *gone,
                                     double now, struct service_claimed *out, struct error *err);
/* Is that still the highest term? -1 with err: it is not, or that cannot be known. */
int service_dir_check(const char *dir, int64_t term, struct error *err);

#endif
