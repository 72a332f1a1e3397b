/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The actions of a fit at a trainer of another user (steps_multi.h). */
#include "fit/steps_multi.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/files.h"
#include "common/log.h"
#include "common/stop.h"
#include "fit/foreign.h"
#include "fit/grant.h"
#include "fit/guests.h"
#include "fit/new_state.h"
#include "fit/s3_box.h"
#include "fit/s3_foreign.h"
#include "fit/s3_left.h"
#include "lib/json_get.h"
#include "lib/s3_place.h"
#include "lib/states.h"

#define LOOK_PAUSE   1.0    /* seconds between two questions to the trainer */
#define SILENT_PAUSE 3.0    /* … more, if it has not answered */
#define SPARE        3600.0 /* seconds by which a grant may outlive the limits of its fit */

/* ---- the trainer ----------------------------------------------------------------------------- */

static enum trainer_said ask(struct steps *steps, json_object *request, json_object **answer,
                             struct error *err)
{
    return trainer_link_ask(steps->trainer, request, answer, err);
}

static json_object *request_of(const char *type)
{
    json_object *request = json_object_new_object();

    json_object_object_add(request, "t", json_object_new_string(type));
    return request;
}

static json_object *numbered(const struct steps *steps, const char *type)
{
    json_object *request = request_of(type);

    json_object_object_add(request, "number", json_object_new_int64(steps->record->training));
    return request;
}

static bool too_soon(struct steps *steps, double now, struct error *err)
{
    if (now < steps->asked + LOOK_PAUSE) {
        error_set(err, "%s", steps->why);
        return true;
    }
    steps->asked = now;
    return false;
}

/* It waits, and the record says for what. */
static enum step waits(struct steps *steps, const char *why, struct error *err)
{
    snprintf(steps->why, sizeof(steps->why), "%.255s", why);
    error_set(err, "%s", steps->why);
    return STEP_WAITS;
}

/* What has come instead of an answer. */
static enum step without(struct steps *steps, enum trainer_said said, struct error *err)
{
    struct error why = *err;

    steps->asked += SILENT_PAUSE; /* the next question may be one to Slurm */
    return said == TRAINER_REFUSES ? STEP_FAILED : waits(steps, why.text, err);
}

/* The replica that trains now, for which keys for S3 are sealed. */
static void take_key(struct steps *steps, json_object *answer)
{
    const char *key = json_get_string(answer, "key");

    snprintf(steps->key, sizeof(steps->key), "%.71s", key != NULL && s3_box_key_ok(key) ? key : "");
}

/* Once more with the number that the trainer has now. */
enum step multi_ensure(struct steps *steps, double now, struct error *err)
{
    json_object *request, *answer;
    enum trainer_said said;
    const char *why;
    int64_t number = 0;

    if (too_soon(steps, now, err))
        return STEP_WAITS;
    request = request_of("fit-ask");
    json_object_object_add(request, "service", json_object_new_string(steps->spec->service));
    json_object_object_add(request, "fit", json_object_new_int64(steps->id));
    said = ask(steps, request, &answer, err);
    if (said != TRAINER_ANSWERS)
        return without(steps, said, err);
    json_get_int(answer, "number", 1, STATE_NUMBER_MAX, &number);
    if (number != steps->record->training) {
        steps->record->training = number;
        if (steps->save(steps, err) != 0)
            return STEP_WAITS;
    }
    take_key(steps, answer);
    if (json_get_bool(answer, "ready", false) && steps->s3 != NULL && steps->key[0] == '\0') {
        error_set(err, "the trainer takes no keys for S3: its version is an older one");
        return STEP_FAILED;
    }
    if (json_get_bool(answer, "ready", false))
        return STEP_DONE;
    why = json_get_string(answer, "waits");
    return waits(steps, why != NULL && why[0] != '\0' ? why : "a place at the trainer", err);
}

/* ---- access ---------------------------------------------------------------------------------- */

/* A directory, or a place on S3. */
static struct home_path incoming(const struct steps *steps)
{
    struct home_path place = s3_grant_incoming(steps->spec, steps->id, steps->record->state);
    struct new_state_path partial = new_state_path(steps->spec->place, steps->record->state, false);
    struct home_path path;

    if (place.text[0] != '\0')
        return place;
    snprintf(path.text, sizeof(path.text), "%.4060s/" GRANT_INCOMING, partial.text);
    return path;
}

/* "": there is none. */
static struct home_path previous(const struct steps *steps)
{
    struct home_path place = s3_grant_previous(steps->spec, steps->record->previous);

    if (place.text[0] == '\0' && steps->record->previous > 0)
        snprintf(place.text, sizeof(place.text), "%s",
                 new_state_path(steps->spec->place, steps->record->previous, true).text);
    return place;
}

/* NULL where it is none, or on S3. */
static const char *file_of(const char *text)
{
    return text != NULL && text[0] != '\0' && !s3_place_is(text) ? text : NULL;
}

/* One that the record does not know has to be empty, as a crash leaves it. */
static bool make_at(int partial, bool known)
{
    return mkdirat(partial, GRANT_INCOMING, 0700) == 0 ||
           (errno == EEXIST && !known && unlinkat(partial, GRANT_INCOMING, AT_REMOVEDIR) == 0 &&
            mkdirat(partial, GRANT_INCOMING, 0700) == 0);
}

/* A name that nobody else has, or can take before: what stays of a fit of another service in this
 * repository is not in the way. */
static int choose_left(struct steps *steps, struct error *err)
{
    uint32_t number = 0;

    if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
        return error_set(err, "getrandom: %s", strerror(errno));
    steps->record->left = number;
    return 0;
}

static int make_in(struct steps *steps, int partial, struct error *err)
{
    struct pin *pin = &steps->record->pins.incoming;
    bool made = make_at(partial, pin->inode != 0);
    struct stat st;

    if ((!made && errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR) ||
        fstatat(partial, GRANT_INCOMING, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return error_set(err, "%s: %s", error_path(incoming(steps).text).text, strerror(errno));
    if (made) {
        *pin = pin_of(&st);
        return choose_left(steps, err) == 0 ? steps->save(steps, err) : -1;
    }
    return pin->inode != 0 && pin_is_dir(&st, pin)
               ? 0
               : error_set(err, "%s: it is another one than the fit has made",
                           error_path(incoming(steps).text).text);
}

static int make_incoming(struct steps *steps, struct error *err)
{
    struct new_state state = steps_new_state(steps);
    int rc, partial = new_state_open(&state, err);

    if (partial < 0)
        return -1;
    rc = make_in(steps, partial, err);
    close(partial);
    return rc;
}

/* Another process may be at work there: then it waits. */
static enum step give_order(struct steps *steps, const struct grant_order *order, struct error *err)
{
    if (grant_give(steps->home, steps->id, order, err) == 0)
        return STEP_DONE;
    return errno == EAGAIN ? STEP_WAITS : STEP_FAILED;
}

static enum step give_files(struct steps *steps, double now, struct error *err)
{
    const struct fit_limits *limits = &steps->spec->limits;
    struct home_path to = incoming(steps), from = previous(steps);
    const struct passwd *entry;
    struct grant_order order = {
        .user = steps->spec->trainer.user,
        .read = {{.path = file_of(json_get_string(steps->spec->json, "trainData")),
                  .data = steps->spec->data[0]},
                 {.path = file_of(json_get_string(steps->spec->json, "targetsData")),
                  .data = steps->spec->data[1]},
                 {.path = file_of(from.text), .pin = &steps->record->pins.previous}},
        .write = file_of(to.text),
        .made = &steps->record->pins.incoming,
        .job = steps->job,
        .restarts = steps->restarts,
        .cluster = steps->cluster,
        .claim = steps->claim,
        .until = now + limits->start + limits->fit + limits->target + SPARE,
    };

    if (order.read[0].path == NULL && order.read[1].path == NULL && order.read[2].path == NULL &&
        order.write == NULL)
        return STEP_DONE;
    entry = getpwnam(order.user);
    if (entry == NULL) {
        error_set(err, "there is no user %s", order.user);
        return STEP_FAILED;
    }
    order.uid = entry->pw_uid;
    if (order.write != NULL && make_incoming(steps, err) != 0)
        return STEP_FAILED;
    return entry->pw_uid != geteuid() ? give_order(steps, &order, err) : STEP_DONE;
}

enum step multi_grant(struct steps *steps, double now, struct error *err)
{
    struct error why;
    enum step step;

    if (steps->s3 != NULL && steps->key[0] != '\0' &&
        s3_grant_give(steps->s3, steps->record, steps->key, now, err) != 0)
        return STEP_FAILED;
    step = give_files(steps, now, err);
    why = *err;
    return step == STEP_WAITS ? waits(steps, why.text, err) : step;
}

/* ---- the training ---------------------------------------------------------------------------- */

static json_object *call_of(const struct steps *steps)
{
    struct home_path from = previous(steps);
    json_object *call = spec_call(steps->spec, incoming(steps).text,
                                  from.text[0] != '\0' ? from.text : NULL, NULL);

    json_object_object_del(call, "stagedDir");
    return call;
}

static enum step begin(struct steps *steps, struct error *err)
{
    json_object *request = numbered(steps, "fit-begin"), *answer;
    enum trainer_said said;

    json_object_object_add(request, "call", call_of(steps));
    said = ask(steps, request, &answer, err);
    if (said != TRAINER_ANSWERS)
        return without(steps, said, err);
    steps->asked = 0;
    return waits(steps, "", err);
}

static int64_t log_size(const struct steps *steps)
{
    struct stat st;

    return stat(home_path(steps->home, steps->id, HOME_LOG_FILE).text, &st) == 0
               ? (int64_t)st.st_size
               : 0;
}

/* The trainer says as much as it likes. False: nothing is added. */
static bool add_log(const struct steps *steps, json_object *answer)
{
    const char *text = json_get_string(answer, "log");
    int64_t room = GUEST_LOG_MOST - log_size(steps);
    size_t len = text != NULL ? strlen(text) : 0;
    int fd;

    if (len == 0 || room <= 0)
        return false;
    fd = open(home_path(steps->home, steps->id, HOME_LOG_FILE).text,
              O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return false;
    file_write_all(fd, text, (int64_t)len < room ? len : (size_t)room);
    close(fd);
    return true;
}

/* The trainer does not know of it any more, or has ended it, as it had not heard of us: it trains
 * once more, as a training that has lost its node does. */
static enum step once_more(struct steps *steps, double now, struct error *err)
{
    steps->asked = 0;
    return multi_ensure(steps, now, err) == STEP_FAILED ? STEP_FAILED : STEP_WAITS;
}

static enum step understand(struct steps *steps, json_object *answer, double now, struct error *err)
{
    json_object *result = json_object_object_get(answer, "result");
    const char *why = json_get_string(result, "why"), *place = json_get_string(answer, "waits");
    bool more = add_log(steps, answer);
    int64_t code = -1;

    take_key(steps, answer);
    if (more)
        steps->asked = 0;
    if (json_object_is_type(result, json_type_object)) {
        json_get_int(result, "exit", 0, 255, &code);
        if (code == 0)
            return more ? waits(steps, "", err) : STEP_DONE;
        error_set(err, "the training: %.400s",
                  why != NULL && why[0] != '\0' ? why : "it has failed");
        return STEP_FAILED;
    }
    if (json_get_string(answer, "end") != NULL)
        return once_more(steps, now, err);
    if (!json_get_bool(answer, "begun", false))
        return begin(steps, err);
    return waits(steps, place != NULL ? place : "", err);
}

/* New keys for S3 go with the question, if the replica needs some. Else err says why they do not:
 * what gives them may be back later. */
static bool add_keys(struct steps *steps, json_object *request, double now, struct error *err)
{
    char *box = steps->s3 != NULL && steps->key[0] != '\0'
                    ? s3_grant_box(steps->s3, steps->record, steps->key, now, err)
                    : NULL;
    bool new;

    if (box != NULL)
        json_object_object_add(request, "keys", json_object_new_string(box));
    new = box != NULL;
    free(box);
    return new;
}

/* Another run of the job may have taken the access back at its end, or its epilog may do so later:
 * it is given once more. */
enum step multi_fit(struct steps *steps, double now, struct error *err)
{
    struct error why = {""};
    json_object *request, *answer;
    enum trainer_said said;
    enum step step;
    bool keys;

    if (!steps->granted || !grant_is_open(steps->home, steps->id)) {
        step = give_files(steps, now, err);
        if (step == STEP_FAILED)
            return step;
        steps->granted = step == STEP_DONE;
    }
    if (too_soon(steps, now, err))
        return STEP_WAITS;
    request = numbered(steps, "fit-look");
    json_object_object_add(request, "from", json_object_new_int64(log_size(steps)));
    keys = add_keys(steps, request, now, &why);
    said = ask(steps, request, &answer, err);
    if (keys && said == TRAINER_ANSWERS)
        s3_grant_delivered(steps->s3, steps->key);
    if (said == TRAINER_FORGETS)
        return once_more(steps, now, err);
    if (said != TRAINER_ANSWERS)
        return without(steps, said, err);
    step = understand(steps, answer, now, err);
    return step == STEP_WAITS && why.text[0] != '\0' ? waits(steps, why.text, err) : step;
}

/* ---- its result ------------------------------------------------------------------------------ */

/* What is in an open directory: its path may lead elsewhere by now. name ".": the directory. */
static struct home_path below(int dir, const char *name)
{
    struct home_path path;

    snprintf(path.text, sizeof(path.text), "/proc/self/fd/%d/%s", dir, name);
    return path;
}

/* What a copy that was broken off has left. */
static int clear_partial(int partial, struct error *err)
{
    DIR *list = entry_list(partial);
    const char *name;
    int rc = 0;

    if (list == NULL)
        return error_set(err, "%s", strerror(errno));
    while (rc == 0 && (name = entry_next(list)) != NULL)
        if (strcmp(name, GRANT_INCOMING) != 0 && unlinkat(partial, name, 0) != 0 && errno == EISDIR)
            rc = dir_remove(below(partial, name).text, err);
    closedir(list);
    return rc;
}

/* Out of the way of this fit, and of the next one. */
static struct home_path left_place(const struct steps *steps)
{
    struct home_path path;

    snprintf(path.text, sizeof(path.text), "%.4000s/" GRANT_INCOMING "-%" PRId64 "-%08" PRIx64,
             steps->spec->place, steps->id, (uint64_t)steps->record->left);
    return path;
}

#define STOP_PAUSE 1.0 /* seconds between two looks whether it is to be given up */

struct taking {
    const struct steps *steps;
    double looked;
};

/* Nobody else looks at the time, and at `cancel`, while files are copied. */
static bool stops_taking(void *arg)
{
    struct taking *taking = arg;
    const struct steps *steps = taking->steps;
    double now = (double)time(NULL);

    if (stop_was_asked())
        return true;
    if (now < taking->looked + STOP_PAUSE)
        return false;
    taking->looked = now;
    return home_has(steps->home, steps->id, HOME_CANCEL_FILE) || now > steps->record->fit.deadline;
}

/* It has been taken: if this process ends meanwhile, nobody takes once more what is left of it. */
static int remove_taken(struct taking *taking, int partial, struct error *err)
{
    const struct steps *steps = taking->steps;
    const struct dir_removal how = {.is = pin_is_dir,
                                    .is_arg = &steps->record->pins.incoming,
                                    .stops = stops_taking,
                                    .stops_arg = taking};
    struct home_path left = left_place(steps);

    if (renameat(partial, GRANT_INCOMING, AT_FDCWD, left.text) != 0 && errno != ENOENT)
        return error_set(err, "%s: %s", error_path(incoming(steps).text).text, strerror(errno));
    return dir_remove_so(left.text, &how, err);
}

/* … and all files are here. */
static int take_files(struct taking *taking, int partial, struct error *err)
{
    const struct passwd *entry = getpwnam(taking->steps->spec->trainer.user);
    const struct home_path to = below(partial, "."), files = below(partial, GRANT_INCOMING);
    struct foreign foreign = {.stops = stops_taking, .arg = taking};

    if (access(files.text, F_OK) != 0)
        return remove_taken(taking, partial, err);
    if (entry == NULL)
        return error_set(err, "there is no user %s", taking->steps->spec->trainer.user);
    foreign.owner = entry->pw_uid;
    return clear_partial(partial, err) == 0 && foreign_take(files.text, to.text, &foreign, err) == 0
               ? remove_taken(taking, partial, err)
               : -1;
}

/* A step that waits is followed by a look at `cancel` and at the time. */
static enum step take(struct steps *steps, int partial, struct error *err)
{
    struct home_path from = incoming(steps);
    struct taking taking = {.steps = steps};

    if (s3_place_is(from.text))
        return clear_partial(partial, err) == 0 &&
                       s3_foreign_take(from.text, below(partial, ".").text, err) == 0
                   ? STEP_DONE
                   : STEP_FAILED;
    if (take_files(&taking, partial, err) == 0)
        return STEP_DONE;
    taking.looked = 0;
    return stops_taking(&taking) ? waits(steps, "", err) : STEP_FAILED;
}

/* Nobody else has access any more. Then all files become this user's. */
enum step multi_complete(struct steps *steps, double now, struct error *err)
{
    struct new_state state = steps_new_state(steps);
    enum step step;
    char run[64];
    int partial;

    snprintf(run, sizeof(run), "fit %" PRId64 " of %.24s", steps->id, steps->spec->service);
    if (grant_revoke(steps->home, steps->id, steps->claim, err) != 0)
        return STEP_FAILED;
    if (new_state_check(&state, err) != 0) {
        partial = new_state_open(&state, err);
        if (partial < 0)
            return STEP_FAILED;
        step = take(steps, partial, err);
        close(partial);
        if (step != STEP_DONE)
            return step;
        if (new_state_finish(&state, run, err) != 0 || new_state_check(&state, err) != 0)
            return STEP_FAILED;
    }
    steps->asked = 0;
    multi_revoke(steps, now, err); /* if that waits, the clean-up has it done */
    return STEP_DONE;
}

/* A directory that the trainer's user has made there, and that is not empty, only that user can
 * remove: it stays, out of the way of the next fit. Where that user has mounted something, only the
 * directory above can be renamed: that one does, then. */
int multi_leave(struct steps *steps, struct error *err)
{
    struct new_state_path partial = new_state_path(steps->spec->place, steps->record->state, false);
    struct home_path to = left_place(steps);
    struct new_state state = steps_new_state(steps);
    int dir = s3_place_is(incoming(steps).text) ? -1 : new_state_open(&state, NULL);
    bool left = dir >= 0 && (renameat(dir, GRANT_INCOMING, AT_FDCWD, to.text) == 0 ||
                             (errno != ENOENT && rename(partial.text, to.text) == 0));

    if (dir >= 0)
        close(dir);
    if (!left)
        return -1; /* err is as it was */
    log_error("fit %" PRId64 ": %s; it stays as %s", steps->id, err->text,
              error_path(to.text).text);
    return 0;
}

/* ---- the end of access ----------------------------------------------------------------------- */

/* What a trainer has put, and nobody has taken; and, in the clean-up, which has no limit, what
 * those of earlier fits have put later. */
static enum step clear_incoming(const struct steps *steps, double now, struct error *err)
{
    struct home_path place = s3_grant_incoming(steps->spec, steps->id, steps->record->state);

    if (place.text[0] == '\0')
        return STEP_DONE;
    if (steps->record->made && s3_foreign_clear(place.text, err) != 0)
        return STEP_FAILED;
    if (steps->record->fit.action == FIT_DO_REVOKE)
        s3_left_clear(steps->home, now);
    return STEP_DONE;
}

/* Whatever is in the way of the one has the other end all the same; err is the first failure. */
static int end_access(struct steps *steps, double now, struct error *err)
{
    struct error why;
    bool files = grant_revoke(steps->home, steps->id, steps->claim, err) == 0;

    if (steps->s3 == NULL || s3_grant_revoke(steps->s3, now, &why) == 0)
        return files ? 0 : -1;
    if (files)
        *err = why;
    return -1;
}

/* An open file outlives an ACL: the replica that has it open has to end, too. */
enum step multi_revoke(struct steps *steps, double now, struct error *err)
{
    json_object *answer;
    enum trainer_said said;
    struct error why;

    if (end_access(steps, now, err) != 0) {
        if (steps->record->training != 0 && !too_soon(steps, now, &why))
            ask(steps, numbered(steps, "fit-end"), &answer, &why);
        return STEP_FAILED;
    }
    if (steps->record->training == 0)
        return clear_incoming(steps, now, err);
    if (too_soon(steps, now, err))
        return STEP_WAITS;
    said = ask(steps, numbered(steps, "fit-end"), &answer, err);
    if (said == TRAINER_FORGETS || said == TRAINER_REFUSES || now > steps->began + TRAINER_SILENCE)
        return clear_incoming(steps, now, err);
    if (said != TRAINER_ANSWERS)
        return without(steps, said, err);
    return json_get_bool(answer, "over", false) ? clear_incoming(steps, now, err)
                                                : waits(steps, "the end of the trainer", err);
}
