/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What programs of a job with roles report (role_reports.h).
 *
 * The file may be on a file system that hangs, so a thread writes it. What is reported meanwhile
 * goes with the next text: one fsync is for all of it. */
#include "agent/leader/role_reports.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "agent/leader/leader_internal.h"
#include "agent/leader/lease.h"
#include "common/files.h"
#include "common/log.h"

#define REPORTS_FILE "reports.json"

/* Who is to hear that a report is in the file. */
struct waiter {
    TAILQ_ENTRY(waiter) entry;
    struct link *link;
    int number;
    role_reports_done *done;
};

struct writing {
    uv_work_t work;
    struct leader *leader; /* NULL: it is gone */
    char path[PATH_MAX];
    char *text;
    int rc;
    struct error err;
};

struct role_reports {
    struct reports *reports;
    bool read; /* what a leader before has written */
    TAILQ_HEAD(, waiter) waiters;
    int waiting;
    struct writing *writing; /* NULL: nothing is being written */
};

static void write_file(struct leader *leader);

/* ---- who waits ------------------------------------------------------------------------------- */

static void take_off(struct role_reports *own, struct waiter *waiter)
{
    TAILQ_REMOVE(&own->waiters, waiter, entry);
    own->waiting--;
    free(waiter);
}

/* An answer that cannot be sent may end the link of others: the list is looked at anew. */
static struct waiter *next_told(struct role_reports *own, int last, bool all)
{
    struct waiter *waiter;

    TAILQ_FOREACH (waiter, &own->waiters, entry)
        if (all || waiter->number <= last)
            return waiter;
    return NULL;
}

static void tell(struct leader *leader, const char *trouble)
{
    struct role_reports *own = leader->of_roles.reports;
    int last = reports_last(own->reports);
    struct waiter *waiter;

    while ((waiter = next_told(own, last, trouble != NULL)) != NULL) {
        struct waiter told = *waiter;

        take_off(own, waiter);
        told.done(leader, told.link, told.number, trouble);
    }
}

void role_reports_closed(struct leader *leader, const struct link *link)
{
    struct role_reports *own = leader->of_roles.reports;
    struct waiter *waiter, *next;

    for (waiter = TAILQ_FIRST(&own->waiters); waiter != NULL; waiter = next) {
        next = TAILQ_NEXT(waiter, entry);
        if (waiter->link == link)
            take_off(own, waiter);
    }
}

static bool wait_for(struct role_reports *own, struct link *link, int number,
                     role_reports_done *done)
{
    struct waiter *waiter = own->waiting < REPORTS_PENDING ? calloc(1, sizeof(*waiter)) : NULL;

    if (waiter == NULL)
        return false;
    waiter->link = link;
    waiter->number = number;
    waiter->done = done;
    TAILQ_INSERT_TAIL(&own->waiters, waiter, entry);
    own->waiting++;
    return true;
}

/* ---- the file -------------------------------------------------------------------------------- */

static void work(uv_work_t *request)
{
    struct writing *writing = request->data;

    writing->rc = file_replace(writing->path, writing->text, strlen(writing->text), 0600,
                               &writing->err);
}

static void written(uv_work_t *request, int status)
{
    struct writing *writing = request->data;
    struct leader *leader = writing->leader;
    bool ok = status == 0 && writing->rc == 0;
    struct error why = writing->err;

    free(writing->text);
    free(writing);
    if (leader == NULL)
        return;
    leader->of_roles.reports->writing = NULL;
    reports_written(leader->of_roles.reports->reports, ok);
    if (!ok)
        log_error("job %u: reports are refused: %s", leader->options->job, why.text);
    tell(leader, ok ? NULL : why.text);
    write_file(leader);
    leader_look_at_end(leader, 0);
}

/* NULL: out of memory. */
static struct writing *begin_writing(struct leader *leader)
{
    struct writing *writing = calloc(1, sizeof(*writing));

    if (writing == NULL)
        return NULL;
    writing->leader = leader;
    writing->work.data = writing;
    snprintf(writing->path, sizeof(writing->path), "%s/" REPORTS_FILE, leader->options->state_dir);
    writing->text = reports_text(leader->of_roles.reports->reports);
    if (writing->text != NULL && uv_queue_work(leader->loop, &writing->work, work, written) == 0)
        return writing;
    free(writing->text);
    free(writing);
    return NULL;
}

static bool leads(struct leader *leader)
{
    return leader_has_ended(leader) || lease_may_act(leader);
}

/* Who leads no more leaves the file to the next leader. */
static void write_file(struct leader *leader)
{
    struct role_reports *own = leader->of_roles.reports;

    if (own->writing != NULL || !reports_wait(own->reports))
        return;
    own->writing = leads(leader) ? begin_writing(leader) : NULL;
    if (own->writing != NULL)
        return;
    reports_written(own->reports, false);
    tell(leader, "the file of reports cannot be written now");
}

bool role_reports_busy(const struct leader *leader)
{
    return leader->of_roles.reports->writing != NULL;
}

/* Not before this leader may act: until then another one may write it. */
static void read_once(struct leader *leader)
{
    struct role_reports *own = leader->of_roles.reports;
    char path[PATH_MAX];
    struct error err;
    size_t size;
    char *text;

    if (own->read || !leads(leader))
        return;
    own->read = true;
    snprintf(path, sizeof(path), "%s/%s", leader->options->state_dir, REPORTS_FILE);
    text = file_read(path, REPORTS_FILE_MAX, &size, &err);
    if (text == NULL && errno == ENOENT)
        return;
    if (text == NULL || reports_parse(own->reports, text, size, &err) != 0)
        log_error("job %u: reports of before are lost: %s: %s", leader->options->job, path,
                  err.text);
    free(text);
}

/* ---- what others do -------------------------------------------------------------------------- */

const struct reports *role_reports_list(struct leader *leader)
{
    read_once(leader);
    return leader->of_roles.reports->reports;
}

enum reports_result role_reports_add(struct leader *leader, struct link *link, const char *role,
                                     const char *replica, const char *id, const char *text,
                                     role_reports_done *done, int *number)
{
    struct role_reports *own = leader->of_roles.reports;
    enum reports_result result;

    read_once(leader);
    result = reports_add(own->reports, unix_now(), role, replica, id, text, number);
    if (result == REPORTS_WAITS && !wait_for(own, link, *number, done))
        result = REPORTS_FULL; /* who asks again hears what has become of it */
    write_file(leader);
    return result;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct role_reports *role_reports_create(void)
{
    struct role_reports *own = calloc(1, sizeof(*own));

    if (own == NULL)
        return NULL;
    TAILQ_INIT(&own->waiters);
    own->reports = reports_create();
    if (own->reports == NULL) {
        free(own);
        return NULL;
    }
    return own;
}

void role_reports_destroy(struct role_reports *own)
{
    if (own == NULL)
        return;
    while (!TAILQ_EMPTY(&own->waiters))
        take_off(own, TAILQ_FIRST(&own->waiters));
    if (own->writing != NULL)
        own->writing->leader = NULL;
    reports_destroy(own->reports);
    free(own);
}
