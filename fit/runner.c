/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Carries out the fits of a service (runner.h). */
#include "fit/runner.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/files.h"
#include "common/log.h"
#include "common/stop.h"
#include "fit/grant.h"
#include "fit/guest_runner.h"
#include "fit/steps.h"

#define END_LOOK      0.5 /* seconds between two looks whether a fit is to end */
#define CLEAN_LIMIT   120 /* seconds of one try of an action of the clean-up */
#define LEAVE_SECONDS 10  /* for S3 at the end of this process */

struct runner {
    struct home home;
    struct service_link *link;
    int64_t claim;
    int64_t id; /* of the fit under way; 0: none */
    struct spec spec;
    struct home_record record;
    struct steps steps;
    enum fit_action last; /* that was carried out */
    int64_t over;         /* all fits up to this one are */
    double looked;        /* whether the fit is to end */
    double tried;         /* when the action of the clean-up began once more */
    bool broken_off;      /* the action has ended because it is, or took too long */
    uint32_t job, restarts;
    const char *cluster;
    bool trains; /* for guests */
    struct guest_runner guests;
};

static double unix_time(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- the record ------------------------------------------------------------------------------ */

static int save(struct steps *steps, struct error *err)
{
    struct runner *runner = steps->arg;

    if (!home_claimed(&runner->home, runner->claim))
        return error_set(err, "another process runs the fits of this service now");
    return home_record_write(&runner->home, runner->id, &runner->record, err);
}

/* What has been decided holds once it is written. */
static int tell(struct runner *runner, const struct fit_fact *fact, struct error *err)
{
    struct home_record before = runner->record;
    enum fit_status status = before.fit.status;

    if (!fit_tell(&runner->record.fit, fact, unix_time()))
        return 0;
    if (runner->record.fit.action != before.fit.action)
        runner->record.waits[0] = '\0';
    if (save(&runner->steps, err) != 0) {
        runner->record = before;
        return -1;
    }
    if (runner->record.fit.status != status)
        log_info("fit %" PRId64 " of %s: %s%s%s", runner->id, runner->spec.model,
                 fit_status_name(runner->record.fit.status),
                 runner->record.fit.reason[0] != '\0' ? ": " : "", runner->record.fit.reason);
    return 0;
}

static int note_waits(struct runner *runner, const char *why, struct error *err)
{
    if (strncmp(runner->record.waits, why, sizeof(runner->record.waits) - 1) == 0)
        return 0;
    snprintf(runner->record.waits, sizeof(runner->record.waits), "%.255s", why);
    return save(&runner->steps, err);
}

/* ---- a fit ----------------------------------------------------------------------------------- */

static void clear_steps(struct runner *runner)
{
    trainer_link_destroy(runner->steps.trainer);
    s3_grant_destroy(runner->steps.s3);
    runner->steps.trainer = NULL;
    runner->steps.s3 = NULL;
}

/* Its training may have no previous status. */
static int open_fit(struct runner *runner, int64_t id, struct error *err)
{
    int rc;

    runner->id = id;
    rc = spec_read(&runner->home, id, &runner->spec, err);
    if (rc == 0 && home_record_read(&runner->home, id, &runner->record, err) != 0) {
        rc = errno == ENOENT ? 0 : -1;
        runner->record = (struct home_record){
            .fit = fit_begin(runner->spec.mode, &runner->spec.limits, unix_time())};
    }
    clear_steps(runner);
    runner->steps = (struct steps){
        .home = &runner->home,
        .link = runner->link,
        .trainer = rc == 0 && runner->spec.mode == FIT_MULTI
                       ? trainer_link_create(&runner->spec.trainer)
                       : NULL,
        .s3 = rc == 0 && runner->spec.mode == FIT_MULTI && s3_grant_is_needed(&runner->spec)
                  ? s3_grant_create(&runner->home, id, &runner->spec)
                  : NULL,
        .job = runner->job,
        .restarts = runner->restarts,
        .cluster = runner->cluster,
        .claim = runner->claim,
        .id = id,
        .spec = &runner->spec,
        .record = &runner->record,
        .save = save,
        .arg = runner,
        .began = unix_time(),
    };
    runner->last = runner->record.fit.action;
    if (rc == 0 && runner->spec.mode == FIT_MULTI &&
        (runner->steps.trainer == NULL ||
         (s3_grant_is_needed(&runner->spec) && runner->steps.s3 == NULL)))
        rc = error_set(err, "out of memory");
    if (rc == 0 && !fit_is_over(&runner->record.fit))
        rc = save(&runner->steps, err);
    return rc;
}

static void close_fit(struct runner *runner)
{
    clear_steps(runner);
    spec_clear(&runner->spec);
    runner->id = 0;
}

/* A fit that cannot be read is left alone, and said once. */
static int find_fit(struct runner *runner, struct error *err)
{
    size_t count;
    int64_t *list = home_list(&runner->home, &count, err);

    if (list == NULL)
        return -1;
    for (size_t i = 0; i < count && runner->id == 0; i++) {
        if (list[i] <= runner->over)
            continue;
        if (open_fit(runner, list[i], err) != 0) {
            if (!home_claimed(&runner->home, runner->claim)) {
                free(list);
                return -1;
            }
            log_error("fit %" PRId64 ": %s", list[i], err->text);
        } else if (!fit_is_over(&runner->record.fit)) {
            break;
        }
        runner->over = list[i];
        close_fit(runner);
    }
    free(list);
    return 0;
}

static int look_for_cancel(struct runner *runner, struct error *err)
{
    struct fit_fact fact = {.kind = FIT_FACT_CANCEL};
    char *reason;
    int rc;

    if (!home_has(&runner->home, runner->id, HOME_CANCEL_FILE))
        return 0;
    reason = file_read(home_path(&runner->home, runner->id, HOME_CANCEL_FILE).text, FIT_CANCEL_MAX,
                       NULL, NULL);
    fact.reason = reason;
    rc = tell(runner, &fact, err);
    free(reason);
    return rc;
}

/* Somebody wants the fit to end, or its time is over, while an action goes on that waits for S3.
 * What is copied before it begins takes the time that it needs. */
static bool is_to_end(void *arg)
{
    struct runner *runner = arg;
    const struct fit *fit = &runner->record.fit;
    double now = unix_time();

    if (now < runner->looked + END_LOOK && now >= runner->looked)
        return false;
    runner->looked = now;
    runner->broken_off = (fit->deadline > 0 && now > fit->deadline &&
                          fit->action != FIT_DO_PREPARE) ||
                         home_has(&runner->home, runner->id, HOME_CANCEL_FILE);
    return runner->broken_off;
}

/* The clean-up ends for no reason, but other actions of it have their turn. */
static bool takes_too_long(void *arg)
{
    struct runner *runner = arg;

    runner->broken_off = unix_time() > runner->tried + CLEAN_LIMIT;
    return runner->broken_off;
}

/* A trainer that has not heard anything for that long has ended the training by itself. This
 * process may have begun since: each question may have ended the one before. */
static void leave_silent(struct runner *runner)
{
    const struct fit *fit = &runner->record.fit;

    if (runner->steps.trainer != NULL && fit->action == FIT_DO_REVOKE && fit->ended > 0 &&
        unix_time() > fit->ended + TRAINER_SILENCE)
        trainer_link_leave(runner->steps.trainer);
}

static enum step carry_out(struct runner *runner, struct error *why)
{
    enum step step;

    runner->broken_off = false;
    runner->tried = unix_time();
    stop_when(runner->record.fit.cleaning ? takes_too_long : is_to_end, runner);
    step = steps_run(&runner->steps, unix_time(), why);
    stop_when(NULL, NULL);
    if (runner->broken_off)
        stop_watch(0);
    return step;
}

/* A clean-up that does not go on is written when it says something else. */
static int act(struct runner *runner, struct error *err)
{
    struct fit *fit = &runner->record.fit;
    struct fit_fact fact = {.action = fit->action};
    struct error why = {""};
    enum step step;

    if (fit->action != runner->last) {
        runner->last = fit->action;
        runner->steps.began = unix_time();
        runner->steps.flushed = runner->steps.trained = runner->steps.asked = 0;
        runner->steps.why[0] = '\0';
    }
    leave_silent(runner);
    step = carry_out(runner, &why);
    if (step == STEP_FAILED && ((runner->broken_off && !fit->cleaning) || stop_was_asked()))
        return 0; /* the fit ends for another reason; or this process does */
    if (step == STEP_WAITS)
        return note_waits(runner, why.text, err);
    fact.kind = step == STEP_DONE ? FIT_FACT_DONE : FIT_FACT_FAILED;
    fact.reason = why.text;
    fact.count = runner->steps.count;
    if (step == STEP_FAILED && fit->cleaning && strcmp(fit->trouble, why.text) == 0)
        return 0;
    return tell(runner, &fact, err);
}

static int work(struct runner *runner, struct error *err)
{
    const struct fit *fit = &runner->record.fit;
    struct fit_fact time = {.kind = FIT_FACT_TIME};

    if (look_for_cancel(runner, err) != 0 || tell(runner, &time, err) != 0 || act(runner, err) != 0)
        return -1;
    if (!fit_is_over(fit))
        return 0;
    if (fit->status == FIT_SUCCESS)
        steps_prune(&runner->steps);
    runner->over = runner->id;
    close_fit(runner);
    return 0;
}

/* ---- all of them ----------------------------------------------------------------------------- */

struct runner *runner_create(const struct runner_options *options)
{
    struct runner *runner = calloc(1, sizeof(*runner));

    if (runner == NULL)
        return NULL;
    runner->home = *options->home;
    runner->link = options->link;
    runner->claim = options->claim;
    runner->job = options->job;
    runner->restarts = options->restarts;
    runner->cluster = options->cluster;
    runner->guests = (struct guest_runner){
        .link = options->link, .service = options->guests, .noted = -1};
    runner->trains = options->guests != NULL &&
                     guests_home(options->home, &runner->guests.home, NULL) == 0;
    return runner;
}

void runner_destroy(struct runner *runner)
{
    if (runner == NULL)
        return;
    clear_steps(runner);
    spec_clear(&runner->spec);
    free(runner);
}

/* Guests and fits of the service have the replica that trains in turn. */
static int look_for_guests(struct runner *runner, enum runner_sees *sees, struct error *err)
{
    bool busy = false;
    int rc;

    if (!home_claimed(&runner->home, runner->claim))
        return error_set(err, "another process runs the fits of this service now");
    rc = guest_runner_look(&runner->guests, unix_time(), &busy, err);
    *sees = busy ? RUNNER_WAITS : RUNNER_IDLE;
    return rc;
}

/* This process was asked to end. What S3 takes for it has its own time. */
void runner_leave(struct runner *runner)
{
    struct error err;

    if (runner->id == 0 || !home_claimed(&runner->home, runner->claim))
        return;
    if (grant_revoke(&runner->home, runner->id, runner->claim, &err) != 0)
        log_error("fit %" PRId64 ": %s", runner->id, err.text);
    if (runner->steps.s3 == NULL)
        return;
    stop_watch(LEAVE_SECONDS);
    if (s3_grant_revoke(runner->steps.s3, unix_time(), &err) != 0)
        log_error("fit %" PRId64 ": %s", runner->id, err.text);
}

/* What is done at once is followed by the next action at once. */
int runner_look(struct runner *runner, enum runner_sees *sees, struct error *err)
{
    int rc = runner->id == 0 && runner->guests.id == 0 ? find_fit(runner, err) : 0;
    enum fit_action action;

    *sees = runner->id != 0 ? RUNNER_WAITS : RUNNER_IDLE;
    if (rc == 0 && runner->id == 0 && runner->trains)
        return look_for_guests(runner, sees, err);
    for (int i = 0; rc == 0 && runner->id != 0 && i < FIT_ACTIONS; i++) {
        action = runner->record.fit.action;
        rc = work(runner, err);
        if (rc == 0 && runner->id != 0 && runner->record.fit.action == action)
            break;
        *sees = RUNNER_MOVED;
    }
    return rc;
}
