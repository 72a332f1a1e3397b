/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The leading node was lost, and with it srun and the batch script: nobody writes down what workers
 * say, and nobody ends the job (doc/internals/takeover.md).
 *
 * A leader that follows another one asks whether srun still listens. If not, the members' output
 * goes through the leader to the job's output file (srun_notify.c), and when all is over the leader
 * tells Slurm that the job has ended (end.c). */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/leader/leader_internal.h"
#include "agent/leader/srun_lost.h"
#include "agent/srun_port.h"
#include "common/log.h"
#include "common/slurm_queue.h"

struct srun_lost {
    bool lost;    /* there is no srun any more */
    bool looking; /* a look is under way */
};

struct srun_look {
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
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);

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

/* What workers say goes where the members' output is written from now on. */
static void redirect(struct leader *leader, const struct srun_look *srun_look)
{
    if (srun_look->fd >= 0) {
        dup2(srun_look->fd, STDOUT_FILENO);
        dup2(srun_look->fd, STDERR_FILENO);
        output_redirect(leader->output);
    }
    log_info("job %u: srun %s: output goes on in %s", srun_look->job,
             srun_look->output_only ? "does not hear this node any more" : "is lost with its node",
             srun_look->fd >= 0 ? srun_look->path : "no file");
}

static void free_look(struct srun_look *srun_look)
{
    if (srun_look->fd >= 0)
        close(srun_look->fd);
    free(srun_look->path);
    free(srun_look->host);
    free(srun_look->port);
    free(srun_look->state_dir);
    free(srun_look);
}

static void looked(void *arg)
{
    struct srun_look *srun_look = arg;
    struct leader *leader = srun_look->leader;
    bool there = srun_look->there;

    leader->srun_lost->looking = false;
    if (!srun_look->output_only)
        leader->srun_lost->lost = !there;
    if (!there && !leader_has_ended(leader))
        redirect(leader, srun_look);
    free_look(srun_look);
    leader->above->srun_looked(leader, there);
    leader_look_at_end(leader, 0);
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
        .leader = leader,
        .output_only = output_only,
        .job = leader->options->job,
        .host = copy_of("SLURM_SRUN_COMM_HOST"),
        .port = copy_of("SLURM_SRUN_COMM_PORT"),
        .state_dir = strdup(leader->options->state_dir),
        .fd = -1,
    };
    if (slurm_ask(leader->loop, look, looked, srun_look) == 0)
        leader->srun_lost->looking = true;
    else
        free_look(srun_look);
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
