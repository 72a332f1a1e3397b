/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic logs`: the output of a job, or the lines of one role or replica in it. */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cmd/as_owner.h"
#include "cmd/command.h"
#include "cmd/deadline.h"
#include "cmd/logs.h"
#include "common/log.h"
#include "common/slurm_client.h"

#define PAUSE_NS  300000000L /* between two looks at the file */
#define ASK_EVERY 10         /* looks between two questions to Slurm */

/* Slurm that does not answer for a while is no end of the job. */
static bool has_ended(uint32_t job_id)
{
    struct job_info *info = NULL;
    struct error err;
    bool ended = slurm_client_job(job_id, &info, &err) == 0 &&
                 (info == NULL || info->state == JOB_KIND_ENDED);

    job_info_free(info);
    return ended;
}

/* The job's user. */
static int find_owner(uint32_t job_id, uid_t *uid, gid_t *gid, struct error *err)
{
    struct job_info *info = NULL;
    int rc = slurm_client_job(job_id, &info, err);

    if (rc == 0 && info == NULL)
        rc = error_set(err, "Slurm knows no job %u (any more)", job_id);
    if (rc == 0) {
        *uid = info->uid;
        *gid = info->gid;
    }
    job_info_free(info);
    return rc;
}

static void follow(FILE *file, struct logs *logs, uint32_t job_id)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    bool ended = false;

    for (int look = 1; logs_print(logs, file, ended, stdout) == 0 && !ended; look++) {
        nanosleep(&pause, NULL);
        ended = look % ASK_EVERY == 0 && has_ended(job_id);
    }
}

/* Of anything else the end would never come. NULL with err. */
static FILE *open_regular(const char *path, struct error *err)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    FILE *file = NULL;

    if (fd < 0 || fstat(fd, &st) != 0)
        error_set(err, "%s: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        error_set(err, "%s: is no regular file", path);
    else if ((file = fdopen(fd, "r")) == NULL)
        error_set(err, "%s: %s", path, strerror(errno));
    if (file == NULL && fd >= 0)
        close(fd);
    return file;
}

/* The path is what the job's user has said. */
static FILE *open_as_owner(const char *path, uid_t uid, gid_t gid, struct error *err)
{
    const struct passwd *entry = getpwuid(uid);
    struct as_owner owner;
    FILE *file;

    if (geteuid() == 0 && entry == NULL) {
        error_set(err, "uid %u has no entry in the user database", uid);
        return NULL;
    }
    if (as_owner_begin(&owner, entry != NULL ? entry->pw_name : NULL, uid, gid, err) < 0)
        return NULL;
    file = open_regular(path, err);
    if (as_owner_end(&owner, err) < 0 && file != NULL) {
        fclose(file);
        file = NULL;
    }
    return file;
}

static int find_file(struct logs *logs, uint32_t job_id, FILE **file, struct error *err)
{
    char *path = NULL;
    uid_t uid = 0;
    gid_t gid = 0;

    deadline_enter_slurm();
    int rc = find_owner(job_id, &uid, &gid, err);
    if (rc == 0)
        rc = slurm_client_stdout(job_id, &path, err);
    deadline_leave();
    /* Another user's job may write what takes over a terminal. */
    logs->clean = isatty(STDOUT_FILENO) && uid != geteuid();
    if (rc == 0) {
        *file = open_as_owner(path, uid, gid, err);
        rc = *file != NULL ? 0 : -1;
    }
    free(path);
    return rc;
}

static enum exit_status run(const struct arguments *arguments)
{
    struct logs logs = {.name = arguments->name, .json = arguments->json};
    struct error err;
    FILE *file = NULL;

    deadline_start();
    if (find_file(&logs, arguments->job_id, &file, &err) != 0)
        return failed(&err);
    if (arguments->follow)
        follow(file, &logs, arguments->job_id);
    else
        logs_print(&logs, file, true, stdout);
    if (logs.name != NULL && !logs.found)
        log_info("no line in the output of job %u is of '%s'", arguments->job_id,
                 error_value(logs.name).text);
    fclose(file);
    return STATUS_OK;
}

const struct command logs_command = {
    .name = "logs",
    .summary = "print the output of a job, a role or a replica",
    .help = "Usage: selastic logs JOB [ROLE|REPLICA] [--follow] [--json]\n"
            "\n"
            "Print the output of a job from the file that sbatch has given it. With a role\n"
            "(collector), a replica (collector-3) or a task of a gang (pair-0.1): only its\n"
            "lines, which begin with its name. Slurm must still know the job. On a terminal,\n"
            "control characters of another user's job are shown as \\xHH.\n"
            "\n"
            "  -f, --follow     go on as more is written, until the job has ended\n"
            "      --json       print a JSON object for each line\n"
            "  -h, --help       print this text\n",
    .run = run,
};
