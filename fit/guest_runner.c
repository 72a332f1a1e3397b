/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Trainings for guests, one after the other (guest_runner.h). */
#include "fit/guest_runner.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/files.h"
#include "common/log.h"
#include "fit/training.h"
#include "lib/json_get.h"
#include "lib/roles.h"

#define ASK_PAUSE 2.0
#define KEEP      50 /* trainings that are over */

#define GUEST_BEGINS     600.0 /* seconds with a replica until a training has begun */
#define GUEST_UNREADABLE "what its user has begun cannot be read (" GUEST_BEGIN_FILE ")"
#define GUEST_TOO_LONG   "it takes longer than its owner lets trainings take (within.fit)"

/* ---- whose turn it is ------------------------------------------------------------------------ */

static bool is_over(const struct guest_runner *runner, int64_t id)
{
    return home_has(&runner->home, id, GUEST_OVER_FILE);
}

/* Of those that are over the latest stay. */
static void prune(const struct guest_runner *runner, const int64_t *list, size_t count)
{
    size_t over = 0;

    for (size_t i = count; i-- > 0;)
        if (is_over(runner, list[i]) && ++over > KEEP)
            dir_remove(home_path(&runner->home, list[i], "").text, NULL);
}

/* The one whose turn it was before; else the first that is not over. */
static int choose(struct guest_runner *runner, struct error *err)
{
    size_t count;
    int64_t *list = home_list(&runner->home, &count, err), first = 0;

    if (list == NULL)
        return -1;
    for (size_t i = 0; i < count && runner->id == 0; i++) {
        if (is_over(runner, list[i]))
            continue;
        if (first == 0)
            first = list[i];
        if (home_has(&runner->home, list[i], GUEST_CHOSEN_FILE))
            runner->id = list[i];
    }
    if (runner->id == 0)
        runner->id = first;
    if (count > 2 * KEEP)
        prune(runner, list, count);
    free(list);
    runner->asked = 0;
    return 0;
}

/* ---- its end --------------------------------------------------------------------------------- */

/* How long ago the file was written, as it says itself: the file system may have another clock. One
 * of an older version does not say it. 0: it is not there. */
static double age(const struct guest_runner *runner, const char *file, double now)
{
    json_object *json;
    struct stat st;
    double at;

    if (stat(home_path(&runner->home, runner->id, file).text, &st) != 0)
        return 0;
    json = home_read(&runner->home, runner->id, file, NULL);
    at = json_get_double(json, "at", (double)st.st_mtim.tv_sec);
    json_object_put(json);
    return now - at;
}

/* For how long its user has not asked: as the file does not change, whatever clock its file system
 * has. */
static double silence(struct guest_runner *runner, double now)
{
    struct stat st;

    if (stat(home_path(&runner->home, runner->id, GUEST_LOOKED_FILE).text, &st) != 0)
        return 0;
    if (runner->heard.id != runner->id || runner->heard.at.tv_sec != st.st_mtim.tv_sec ||
        runner->heard.at.tv_nsec != st.st_mtim.tv_nsec) {
        runner->heard.id = runner->id;
        runner->heard.at = st.st_mtim;
        runner->heard.seen = now;
    }
    return now - runner->heard.seen;
}

/* As the owner's job file said when it began: NULL, or why no time is left. A file that cannot be
 * read now, but perhaps later, lets it train as long as one that says nothing. */
static const char *limit_passed(const struct guest_runner *runner, double trains)
{
    json_object *begun = home_read(&runner->home, runner->id, GUEST_BEGIN_FILE, NULL);
    bool broken = begun == NULL && errno == EINVAL;
    double limit = json_get_double(begun, "limit", GUEST_LIMIT);

    json_object_put(begun);
    if (broken)
        return GUEST_UNREADABLE;
    return trains > limit ? GUEST_TOO_LONG : NULL;
}

/* The user of it need not do anything for that: others wait. NULL: it goes on. */
static const char *overdue(struct guest_runner *runner, double now)
{
    const char *why = limit_passed(runner, age(runner, GUEST_BEGIN_FILE, now));

    if (silence(runner, now) > GUEST_SILENT)
        return "its user was not heard of any more";
    if (why != NULL)
        return why;
    if (!home_has(&runner->home, runner->id, GUEST_BEGIN_FILE) &&
        age(runner, HOME_TRAINER_FILE, now) > GUEST_BEGINS)
        return "its user has not begun it";
    return NULL;
}

static bool is_result(const char *why)
{
    return strcmp(why, GUEST_TOO_LONG) == 0 || strcmp(why, GUEST_UNREADABLE) == 0;
}

/* Its user has ended it, or has not been heard for long, or has had enough time, or nobody knows
 * how much. Only the last two are results: else the user may ask once more. */
static bool is_ended(struct guest_runner *runner, double now)
{
    const char *why;
    struct error err, said;

    if (home_has(&runner->home, runner->id, GUEST_END_FILE))
        return true;
    why = overdue(runner, now);
    if (why == NULL)
        return false;
    error_set(&said, "%s", why);
    if (is_result(why) && !home_has(&runner->home, runner->id, HOME_FIT_FILE) &&
        training_say(&runner->home, runner->id, HOME_FIT_FILE, 1, &said, &err) != 0)
        return false;
    return guest_write(&runner->home, runner->id, GUEST_END_FILE, why, &err) == 0;
}

static int finish(struct guest_runner *runner, struct error *err)
{
    struct service_trainer trainer;

    if (service_train(runner->link, ROLES_FIT_ROLE, 0, &trainer, err) != 0)
        return -1;
    if (trainer.there > 0)
        return 0;
    if (guest_write(&runner->home, runner->id, GUEST_OVER_FILE, "", err) != 0)
        return -1;
    log_info("training %" PRId64 " for a guest is over", runner->id);
    runner->id = 0;
    return 0;
}

/* ---- its replica ----------------------------------------------------------------------------- */

static int keep(struct guest_runner *runner, double now, struct error *err)
{
    struct service_trainer trainer;

    if (now < runner->asked + ASK_PAUSE)
        return 0;
    runner->asked = now;
    if (!home_has(&runner->home, runner->id, GUEST_CHOSEN_FILE) &&
        !home_make(&runner->home, runner->id, GUEST_CHOSEN_FILE))
        return error_set(err, "training %" PRId64 " for a guest: %s", runner->id, strerror(errno));
    if (service_train(runner->link, ROLES_FIT_ROLE, 1, &trainer, err) != 0)
        return -1;
    return guest_write(&runner->home, runner->id, GUEST_WAITS_FILE,
                       trainer.there == 0 ? trainer.why : "", err);
}

/* The job's comment names who pays, and who trains. It may come late. Slurm is asked for each: so
 * not for a training that has ended before its turn. */
static void note(struct guest_runner *runner)
{
    char *payer = runner->id != 0 ? guest_user(&runner->home, runner->id) : NULL;
    struct error err;

    runner->noted = runner->id;
    if (service_note(runner->link, runner->service, payer, &err) != 0)
        log_error("%s", err.text);
    free(payer);
}

int guest_runner_look(struct guest_runner *runner, double now, bool *busy, struct error *err)
{
    bool ended;

    if (runner->id == 0 && choose(runner, err) != 0)
        return -1;
    *busy = runner->id != 0;
    ended = *busy && is_ended(runner, now);
    if (!ended && runner->noted != runner->id)
        note(runner);
    if (!*busy)
        return 0;
    return ended ? finish(runner, err) : keep(runner, now, err);
}
