/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The leading node was lost, and with it srun and the batch script: nobody writes down what workers say, and nobody ends the job (doc/takeover.md).
 *
 * A leader that follows another one asks whether srun still listens. If not, the members' output goes through it to the job's output file, and when all is
 * over it tells Slurm that the job has ended. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/leader/leader_internal.h"
#include "agent/srun_port.h"
#include "common/log.h"
#include "common/slurm_queue.h"

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

    leader->looking_for_srun = false;
    if (!srun_look->output_only)
        leader->srun_lost = !srun_look->there;
    if (!srun_look->there && leader->phase != PHASE_ENDING) {
        if (srun_look->fd >= 0) {
            dup2(srun_look->fd, STDOUT_FILENO);
            dup2(srun_look->fd, STDERR_FILENO);
            output_redirect(leader->output);
        }
        log_info("job %u: srun %s: output goes on in %s", srun_look->job,
                 srun_look->output_only ? "does not hear this node any more"
                                        : "is lost with its node",
                 srun_look->fd >= 0 ? srun_look->path : "no file");
        for (int i = 0; i < leader->member_count; i++)
            srun_lost_tell(leader, leader->members[i]);
    }
    if (srun_look->fd >= 0)
        close(srun_look->fd);
    free(srun_look->path);
    free(srun_look->host);
    free(srun_look->port);
    free(srun_look->state_dir);
    free(srun_look);
    if (leader->phase == PHASE_ENDING) {
        if (!leader->srun_lost)
            srun_found(leader);
        leader_handle_closed(leader);
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
    leader->looking_for_srun = true;
    slurm_queue(leader->loop, &srun_look->work);
}

/* ---- the end ------------------------------------------------------------------------------------------------------------------- */

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
    leader->completing = false;
    free(ending);
    leader_handle_closed(leader);
}

bool srun_lost_ends(struct leader *leader)
{
    struct ending *ending;

    if (leader->completing)
        return true;
    if (leader->lease.term > 0 && !leader->deposed && !leader->looked_last) {
        /* If it was there when the node before this one was lost, it may have been lost since; if not, that node may only have been cut off, and be back. */
        leader->looked_last = true;
        srun_lost_look(leader, false);
        return leader->looking_for_srun;
    }
    if ((!leader->srun_lost && !srun_misleads(leader)) || leader->deposed ||
        leader->completed_job || leader->requeue || (ending = calloc(1, sizeof(*ending))) == NULL)
        return false;
    if (!leader->srun_lost)
        log_info("job %u: has ended, and srun would not say so: what the batch script does after "
                 "it is left out",
                 leader->options->job);
    leader->completing = leader->completed_job = true;
    *ending = (struct ending){.work = {.work = end_job, .done = job_ended, .arg = ending},
                              .leader = leader,
                              .job = leader->options->job,
                              .code = leader->exit_code,
                              .since = leader_now(leader)};
    slurm_queue(leader->loop, &ending->work);
    return true;
}
