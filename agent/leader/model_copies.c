/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copies of the models of a repository on S3 (model_copies.h).
 *
 * One run of the process follows the other, with a look at the directory in between: so the
 * versions that the process is told to keep are all that a look can have found before. */
#include "agent/leader/model_copies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <uv.h>

#include "agent/leader/leader_internal.h"
#include "agent/leader/lease.h"
#include "agent/leader/service_process.h"
#include "agent/leader/service_shell.h"
#include "agent/paths.h"
#include "common/files.h"
#include "common/log.h"
#include "lib/s3_place.h"
#include "lib/service.h"

struct model_copies {
    struct service_process *process; /* NULL: there is none */
    double due;
    bool known;   /* it has ended once */
    bool scanned; /* … and the directory has been looked at since */
    bool asked;   /* somebody wants it now */
};

struct model_copies *model_copies_create(void)
{
    struct model_copies *copies = calloc(1, sizeof(*copies));

    if (copies != NULL)
        copies->scanned = true;
    return copies;
}

void model_copies_destroy(struct model_copies *copies)
{
    free(copies);
}

bool model_copies_any(const struct leader *leader)
{
    const struct roles *roles = leader->options->roles;

    return roles != NULL && roles->models.repository != NULL &&
           s3_place_is(roles->models.repository);
}

/* ---- its end --------------------------------------------------------------------------------- */

/* What has gone wrong is in the directory, for the look at it. */
static void on_end(struct leader *leader, int64_t code, int sig)
{
    struct leader_service *own = leader->of_roles.service;

    log_debug("job %u: elastic-state mirror has ended (status %d, signal %d)", leader->options->job,
              (int)code, sig);
    own->copies->process = NULL;
    own->copies->known = true;
    own->copies->due = leader_now(leader) + leader->options->roles->models.every;
    own->scan_now = true;
    service_run_in(leader, 0);
}

static void end(struct model_copies *copies)
{
    service_process_end(copies->process);
    copies->process = NULL;
    copies->scanned = copies->scanned || !copies->known; /* else a look comes first */
}

void model_copies_close(struct leader *leader)
{
    struct model_copies *copies = leader->of_roles.service->copies;

    service_process_close(copies->process);
    copies->process = NULL;
}

/* ---- its beginning --------------------------------------------------------------------------- */

/* A file in memory with the versions that have to stay. -1: it cannot be made. */
static int open_used(const struct leader_service *own)
{
    char *text = service_used(own->service);
    int fd = text != NULL ? memfd_create("used", MFD_CLOEXEC) : -1;

    if (fd >= 0 && (file_write_all(fd, text, strlen(text)) != 0 || lseek(fd, 0, SEEK_SET) != 0)) {
        close(fd);
        fd = -1;
    }
    free(text);
    return fd;
}

/* The keys are in its environment, or in files of the user. */
static struct service_process *spawn(struct leader *leader, int used, int *rc)
{
    const struct leader_service *own = leader->of_roles.service;
    const struct roles *roles = leader->options->roles;
    char most[40];
    const char *args[] = {"elastic-state",
                          "mirror",
                          roles->models.repository,
                          own->repository,
                          "--used",
                          "/dev/stdin",
                          roles->models.copies_max > 0 ? most : NULL,
                          NULL};
    uv_stdio_container_t stdio[] = {
        {.flags = UV_INHERIT_FD, .data.fd = used},
        {.flags = UV_IGNORE},
        {.flags = UV_IGNORE},
    };
    uv_process_options_t options = {
        .file = paths_of(PATHS_STATE),
        .args = (char **)args,
        .stdio_count = 3,
        .stdio = stdio,
    };

    snprintf(most, sizeof(most), "--most=%lld", (long long)roles->models.copies_max);
    return service_process_start(leader, &options, on_end, rc);
}

static void start(struct leader *leader)
{
    struct model_copies *copies = leader->of_roles.service->copies;
    int rc = UV_ENOMEM, used = open_used(leader->of_roles.service);

    copies->due = leader_now(leader) + leader->options->roles->models.every;
    copies->asked = false;
    if (used >= 0) {
        copies->process = spawn(leader, used, &rc);
        close(used);
    }
    if (rc == 0)
        copies->scanned = false;
    else
        log_error("job %u: %s: %s; models of S3 stay as they are", leader->options->job,
                  paths_of(PATHS_STATE), uv_strerror(rc));
}

void model_copies_look(struct leader *leader)
{
    struct leader_service *own = leader->of_roles.service;
    struct model_copies *copies = own->copies;
    bool wanted = own->phase == PHASE_SERVES && !own->ended && !service_holds(own->service) &&
                  !leader_has_ended(leader) && !lease_deposed(leader);

    if (!model_copies_any(leader))
        return;
    if (!wanted)
        end(copies);
    else if (copies->process == NULL && copies->scanned &&
             (copies->asked || leader_now(leader) >= copies->due))
        start(leader);
    if (wanted && copies->process == NULL && copies->scanned)
        service_run_in(leader, copies->due - leader_now(leader));
}

/* ---- looks at the directory ------------------------------------------------------------------ */

void model_copies_ask(struct leader *leader)
{
    leader->of_roles.service->copies->asked = true;
}

bool model_copies_known(const struct leader *leader)
{
    return !model_copies_any(leader) || leader->of_roles.service->copies->known;
}

bool model_copies_asked(const struct leader *leader)
{
    const struct model_copies *copies = leader->of_roles.service->copies;

    return copies->asked || copies->process != NULL;
}

bool model_copies_run(const struct leader *leader)
{
    return leader->of_roles.service->copies->process != NULL;
}

void model_copies_scanned(struct leader *leader)
{
    leader->of_roles.service->copies->scanned = true;
}
