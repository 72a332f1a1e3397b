/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The leading node was lost, and with it srun and the batch script: nobody writes down what workers
 * say, and nobody ends the job (doc/internals/takeover.md).
 *
 * A leader that follows another one asks whether srun still listens. If not, the members' output
 * goes through the leader to the job's output file, and when all is over the leader tells Slurm
 * that the job has ended. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/leader/end.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/lease.h"
#include "agent/leader/requeue.h"
#include "agent/leader/roster.h"
#include "agent/leader/srun.h"
#include "agent/srun_port.h"
#include "common/log.h"
#include "common/slurm_queue.h"

struct srun_lost {
    bool lost;        /* there is no srun any more */
    bool looking;     /* a look is under way */
    bool looked_last; /* the last look, when all was over, has begun */
    bool completing;  /* Slurm is being told that the job has ended */
    bool completed;   /* … or has been */
};

struct srun_look {
    struct slurm_work work;
    struct leader *leader;
    uint32_t job;
    char *host, *port, *state_dir;
    bool output_only;
    bool there; /* srun is */
    int fd;     /* the job's output file, -1: none could be opened */
    char *path;
};

/* Only a regular file: whatever else there is (a pipe, a device) went with its reader. */
static int open_output(const char *path)
{
    struct stat st;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);

    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        return -1;
    }
    return fd;
}

static void look(void *arg)
{
    struct srun_look *srun_look = arg;
    struct error err = {""};

    srun_look->there = !srun_look->output_only &&
                       srun_port_answers(srun_look->host, srun_look->port);
    if (srun_look->there)
        return;
    if (slurm_client_stdout(srun_look->job, &srun_look->path, &err) == 0)
        srun_look->fd = open_output(srun_look->path);
    else
        log_debug("%s", err.text);
    if (srun_look->fd >= 0)
        return;
    free(srun_look->path);
    if (asprintf(&srun_look->path, "%s/output.log", srun_look->state_dir) < 0)
        srun_look->path = NULL;
    else
        srun_look->fd = open_output(srun_look->path);
}

void srun_lost_tell(struct leader *leader, struct leader_member *m)
{
    if (m->base && !srun_reads(leader, m))
        leader_send(m, leader_message("forward", -1));
}

static void looked(void *arg)
{
    struct srun_look *srun_look = arg;
    struct leader *leader = srun_look->leader;

    leader->srun_lost->looking = false;
    if (!srun_look->output_only)
        leader->srun_lost->lost = !srun_look->there;
    if (!srun_look->there && !leader_has_ended(leader)) {
        if (srun_look->fd >= 0) {
            dup2(srun_look->fd, STDOUT_FILENO);
            dup2(srun_look->fd, STDERR_FILENO);
            output_redirect(leader->output);
        }
        log_info("job %u: srun %s: output goes on in %s", srun_look->job,
                 srun_look->output_only ? "does not hear this node any more"
                                        : "is lost with its node",
                 srun_look->fd >= 0 ? srun_look->path : "no file");
        for (int i = 0; i < roster_count(leader); i++)
            srun_lost_tell(leader, roster_at(leader, i));
    }
    if (srun_look->fd >= 0)
        close(srun_look->fd);
    free(srun_look->path);
    free(srun_look->host);
    free(srun_look->port);
    free(srun_look->state_dir);
    free(srun_look);
    if (leader_has_ended(leader)) {
        if (!leader->srun_lost->lost)
            srun_found(leader);
        end_look(leader);
    }
}

static char *copy_of(const char *name)
{
    const char *value = getenv(name);

    return value != NULL ? strdup(value) : NULL;
}

void srun_lost_look(struct leader *leader, bool output_only)
{
    struct srun_look *srun_look = calloc(1, sizeof(*srun_look));

    if (srun_look == NULL)
        return;
    *srun_look = (struct srun_look){
        .work = {.work = look, .done = looked, .arg = srun_look},
        .leader = leader,
        .output_only = output_only,
        .job = leader->options->job,
        .host = copy_of("SLURM_SRUN_COMM_HOST"),
        .port = copy_of("SLURM_SRUN_COMM_PORT"),
        .state_dir = strdup(leader->options->state_dir),
        .fd = -1,
    };
    leader->srun_lost->looking = true;
    slurm_queue(leader->loop, &srun_look->work);
}

/* ---- the end --------------------------------------------------------------------------------- */

#define END_AGAIN_MS 5000
#define END_LIMIT    3600.0 /* seconds: the nodes are the job's until Slurm hears of it */

struct ending {
    struct slurm_work work;
    struct leader *leader;
    uint32_t job;
    int code;
    double since;
    struct error err;
    bool done, said;
};

static void end_job(void *arg)
{
    struct ending *ending = arg;

    ending->done = slurm_client_complete(ending->job, ending->code, &ending->err) == 0;
}

static void job_ended(void *arg)
{
    struct ending *ending = arg;
    struct leader *leader = ending->leader;

    if (!ending->done && leader_now(leader) - ending->since < END_LIMIT) {
        if (!ending->said)
            log_info("job %u: has ended, and tells Slurm as soon as it can: %s", ending->job,
                     ending->err.text);
        ending->said = true;
        slurm_queue_after(leader->loop, &ending->work, END_AGAIN_MS);
        return;
    }
    if (!ending->done)
        log_error("job %u: has ended, and cannot tell Slurm: %s", ending->job, ending->err.text);
    leader->srun_lost->completing = false;
    free(ending);
    end_look(leader);
}

bool srun_lost_ends(struct leader *leader)
{
    struct ending *ending;

    if (leader->srun_lost->completing)
        return true;
    if (lease_term(leader) > 0 && !lease_deposed(leader) && !leader->srun_lost->looked_last) {
        /* An srun that was there when the node before this one was lost may have been lost since.
         * If it was not there, that node may only have been cut off, and be back. */
        leader->srun_lost->looked_last = true;
        srun_lost_look(leader, false);
        return leader->srun_lost->looking;
    }
    if ((!leader->srun_lost->lost && !srun_misleads(leader)) || lease_deposed(leader) ||
        leader->srun_lost->completed || requeue_wanted(leader) ||
        (ending = calloc(1, sizeof(*ending))) == NULL)
        return false;
    if (!leader->srun_lost->lost)
        log_info("job %u: has ended, and srun would not say so: what the batch script does after "
                 "it is left out",
                 leader->options->job);
    leader->srun_lost->completing = leader->srun_lost->completed = true;
    *ending = (struct ending){.work = {.work = end_job, .done = job_ended, .arg = ending},
                              .leader = leader,
                              .job = leader->options->job,
                              .code = leader->exit_code,
                              .since = leader_now(leader)};
    slurm_queue(leader->loop, &ending->work);
    return true;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct srun_lost *srun_lost_create(void)
{
    return calloc(1, sizeof(struct srun_lost));
}

void srun_lost_destroy(struct srun_lost *lost)
{
    free(lost);
}

bool srun_is_lost(const struct leader *leader)
{
    return leader->srun_lost->lost;
}

bool srun_is_looked_for(const struct leader *leader)
{
    return leader->srun_lost->looking;
}
