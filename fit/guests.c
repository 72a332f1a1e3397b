/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Trainings for other users, and what they ask (guests.h). */
#include "fit/guests.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/allowed_users.h"
#include "common/files.h"
#include "fit/s3_box.h"
#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/s3_place.h"
#include "lib/shard_commands.h"
#include "lib/text.h"

#define FORMAT        1
#define OPEN_MAX      64 /* trainings that are not over */
#define OPEN_OF_ONE   8  /* … of one user */
#define LOG_PIECE     ((size_t)32 << 10)
#define TEXT_MAX      4096
#define ARGUMENTS_MAX 1000

struct desk {
    const struct home *guests;
    uid_t uid;
    json_object *message;
    json_object *fit; /* of the service: its programs */
};

int guests_home(const struct home *home, struct home *guests, struct error *err)
{
    if ((size_t)snprintf(guests->dir, sizeof(guests->dir), "%s/guests", home->dir) >=
        sizeof(guests->dir))
        return error_set(err, "%s: too long", error_path(home->dir).text);
    return 0;
}

int guest_uid(const struct home *guests, int64_t id, uid_t *uid, struct error *err)
{
    json_object *run = home_read(guests, id, HOME_RUN_FILE, err);
    int64_t number = -1;
    bool found = json_get_int(run, "uid", 0, UINT32_MAX, &number);

    json_object_put(run);
    *uid = (uid_t)number;
    if (run != NULL && !found)
        error_set(err, "training %" PRId64 " for a guest: it says nothing of the user", id);
    return found ? 0 : -1;
}

char *guest_user(const struct home *guests, int64_t id)
{
    const struct passwd *entry;
    struct error err;
    uid_t uid;

    if (guest_uid(guests, id, &uid, &err) != 0)
        return NULL;
    entry = getpwuid(uid);
    return entry != NULL ? strdup(entry->pw_name) : NULL;
}

int guest_write(const struct home *guests, int64_t id, const char *file, const char *text,
                struct error *err)
{
    return file_replace(home_path(guests, id, file).text, text, strlen(text), 0600, err);
}

/* Who can open keys for S3: the replica that trains has made a key for that. */
static void add_key(json_object *answer, const struct home *guests, int64_t id)
{
    json_object *trainer = home_read(guests, id, HOME_TRAINER_FILE, NULL);

    json_object_object_add(answer, "key", json_from_string(json_get_string(trainer, "key")));
    json_object_put(trainer);
}

/* ---- answers --------------------------------------------------------------------------------- */

static json_object *refusal(const char *code, const char *why)
{
    json_object *answer = json_object_new_object();

    json_object_object_add(answer, "t", json_object_new_string("error"));
    json_object_object_add(answer, "code", json_object_new_string(code));
    json_object_object_add(answer, "message", json_object_new_string(why));
    return answer;
}

static void add_text(json_object *answer, const char *key, const struct desk *desk, int64_t id,
                     const char *file)
{
    char *text = file_read(home_path(desk->guests, id, file).text, TEXT_MAX, NULL, NULL);

    json_object_object_add(answer, key, json_from_string(text));
    free(text);
}

/* What a program prints may be anything; a message is UTF-8. */
static void clean(char *text, size_t len)
{
    for (size_t i = 0, one; i<len; i += one> 0 ? one : 1) {
        one = text_utf8_length(text + i, len - i);
        if (one == 0 || text[i] == '\0')
            text[i] = '?';
    }
}

/* New lines of the log, from where the guest has them. A last line without its end waits. */
static void add_log(json_object *answer, const struct desk *desk, int64_t id)
{
    int fd = open(home_path(desk->guests, id, HOME_LOG_FILE).text, O_RDONLY | O_CLOEXEC);
    char *text = fd >= 0 ? malloc(LOG_PIECE + 1) : NULL;
    int64_t from = 0;
    ssize_t n = 0;

    json_get_int(desk->message, "from", 0, INT64_MAX, &from);
    if (text != NULL && from < GUEST_LOG_MOST)
        n = pread(fd, text, LOG_PIECE, (off_t)from);
    if (n > 0) {
        bool over = home_has(desk->guests, id, HOME_FIT_FILE);

        while (n > 0 && !over && n < (ssize_t)LOG_PIECE && text[n - 1] != '\n')
            n--;
        json_object_object_add(answer, "next", json_object_new_int64(from + n));
        text[n] = '\0';
        clean(text, (size_t)n);
        json_object_object_add(answer, "log", json_object_new_string(text));
    }
    free(text);
    if (fd >= 0)
        close(fd);
}

static json_object *state_of(const struct desk *desk, int64_t id)
{
    json_object *answer = json_object_new_object();

    json_object_object_add(answer, "t", json_object_new_string("fit"));
    json_object_object_add(answer, "number", json_object_new_int64(id));
    json_object_object_add(answer, "ready",
                           json_object_new_boolean(home_has(desk->guests, id, HOME_TRAINER_FILE)));
    json_object_object_add(answer, "begun",
                           json_object_new_boolean(home_has(desk->guests, id, GUEST_BEGIN_FILE)));
    json_object_object_add(answer, "over",
                           json_object_new_boolean(home_has(desk->guests, id, GUEST_OVER_FILE)));
    json_object_object_add(answer, "result", home_read(desk->guests, id, HOME_FIT_FILE, NULL));
    add_key(answer, desk->guests, id);
    add_text(answer, "waits", desk, id, GUEST_WAITS_FILE);
    add_text(answer, "end", desk, id, GUEST_END_FILE);
    return answer;
}

/* ---- fit-ask --------------------------------------------------------------------------------- */

struct asked {
    const char *service;
    int64_t fit;
};

static bool is_asked(const struct desk *desk, int64_t id, const struct asked *asked)
{
    json_object *run = home_read(desk->guests, id, HOME_RUN_FILE, NULL);
    const char *service = json_get_string(run, "service");
    int64_t fit = -1;
    bool same = service != NULL && strcmp(service, asked->service) == 0 &&
                json_get_int(run, "fit", 1, INT64_MAX, &fit) && fit == asked->fit;

    json_object_put(run);
    return same;
}

/* The training of that fit that has not ended; 0: there is none. *open, *own: how many of all, and
 * of this user, are not over. */
static int64_t find(const struct desk *desk, const struct asked *asked, int *open, int *own)
{
    size_t count;
    int64_t *list = home_list(desk->guests, &count, NULL), found = 0;

    *open = *own = 0;
    for (size_t i = 0; list != NULL && i < count; i++) {
        struct error err;
        uid_t uid;

        if (home_has(desk->guests, list[i], GUEST_OVER_FILE))
            continue;
        ++*open;
        if (guest_uid(desk->guests, list[i], &uid, &err) != 0 || uid != desk->uid)
            continue;
        ++*own;
        if (!home_has(desk->guests, list[i], GUEST_END_FILE) && is_asked(desk, list[i], asked))
            found = list[i];
    }
    free(list);
    return found;
}

static json_object *run_of(const struct desk *desk, const struct asked *asked)
{
    json_object *run = json_object_new_object();

    json_object_object_add(run, "format", json_object_new_int(FORMAT));
    json_object_object_add(run, "uid", json_object_new_int64(desk->uid));
    json_object_object_add(run, "service", json_object_new_string(asked->service));
    json_object_object_add(run, "fit", json_object_new_int64(asked->fit));
    return run;
}

static json_object *ask(const struct desk *desk)
{
    struct asked asked = {.service = json_get_string(desk->message, "service")};
    struct error err;
    int open, own;
    int64_t id;

    if (asked.service == NULL || !shard_name_ok(asked.service) ||
        !json_get_int(desk->message, "fit", 1, INT64_MAX, &asked.fit))
        return refusal("wrong", "fit-ask needs service and fit");
    id = find(desk, &asked, &open, &own);
    if (id == 0 && (open >= OPEN_MAX || own >= OPEN_OF_ONE))
        return refusal("busy", "the trainer has enough to do; it is asked again");
    if ((id == 0 && home_add(desk->guests, run_of(desk, &asked), &id, &err) != 0) ||
        guest_write(desk->guests, id, GUEST_LOOKED_FILE, "", &err) != 0)
        return refusal("failed", err.text);
    return state_of(desk, id);
}

/* ---- fit-begin ------------------------------------------------------------------------------- */

static bool is_path(json_object *call, const char *key, bool needed)
{
    const char *path = json_get_string(call, key);
    struct s3_place place;

    if (json_object_object_get(call, key) == NULL)
        return !needed;
    if (path != NULL && s3_place_is(path))
        return s3_place_parse(path, &place, NULL) == 0;
    return path != NULL && path[0] == '/' && strlen(path) < PATH_MAX;
}

static json_object *begin(const struct desk *desk, int64_t id)
{
    json_object *call = json_object_object_get(desk->message, "call"), *begun;
    struct error err;

    if (home_has(desk->guests, id, GUEST_BEGIN_FILE))
        return state_of(desk, id);
    if (!json_object_is_type(call, json_type_object) || !is_path(call, "modelDir", true) ||
        !is_path(call, "previousModelDir", false) || !is_path(call, "trainData", true) ||
        !is_path(call, "targetsData", false))
        return refusal("wrong", "fit-begin needs a call, with paths that begin with /, or s3://");
    begun = json_object_new_object();
    json_object_object_add(begun, "call", json_object_get(call));
    json_object_object_add(begun, "run", json_object_get(json_object_object_get(desk->fit, "run")));
    json_object_object_add(begun, "stage",
                           json_object_get(json_object_object_get(desk->fit, "stage")));
    json_object_object_add(begun, "at", json_object_new_int64((int64_t)time(NULL)));
    json_object_object_add(begun, "limit",
                           json_object_new_double(json_get_double(desk->fit, "fit", GUEST_LIMIT)));
    if (home_write(desk->guests, id, GUEST_BEGIN_FILE, begun, &err) != 0)
        return refusal("failed", err.text);
    return state_of(desk, id);
}

/* ---- fit-look, fit-end ----------------------------------------------------------------------- */

static json_object *look(const struct desk *desk, int64_t id)
{
    const char *keys = json_get_string(desk->message, "keys");
    struct error err;
    json_object *answer;

    if (keys != NULL && strlen(keys) > S3_BOX_MAX)
        return refusal("wrong", "the keys for S3 are too long");
    if ((keys != NULL && guest_write(desk->guests, id, GUEST_KEYS_FILE, keys, &err) != 0) ||
        guest_write(desk->guests, id, GUEST_LOOKED_FILE, "", &err) != 0)
        return refusal("failed", err.text);
    answer = state_of(desk, id);
    add_log(answer, desk, id);
    return answer;
}

static json_object *end(const struct desk *desk, int64_t id)
{
    struct error err;

    if (!home_has(desk->guests, id, GUEST_END_FILE) &&
        guest_write(desk->guests, id, GUEST_END_FILE, "its user has ended it", &err) != 0)
        return refusal("failed", err.text);
    return state_of(desk, id);
}

/* ---- all ------------------------------------------------------------------------------------- */

/* A number of somebody else is answered as one that does not exist. */
static json_object *of_number(const struct desk *desk,
                              json_object *(*answer)(const struct desk *desk, int64_t id))
{
    int64_t id = 0;
    struct error err;
    uid_t uid;

    if (!json_get_int(desk->message, "number", 1, INT64_MAX, &id) ||
        guest_uid(desk->guests, id, &uid, &err) != 0 || uid != desk->uid)
        return refusal("none", "there is no such training of yours");
    return answer(desk, id);
}

static json_object *dispatch(const struct desk *desk)
{
    const char *type = json_get_string(desk->message, "t");

    if (type != NULL && strcmp(type, "fit-ask") == 0)
        return ask(desk);
    if (type != NULL && strcmp(type, "fit-begin") == 0)
        return of_number(desk, begin);
    if (type != NULL && strcmp(type, "fit-look") == 0)
        return of_number(desk, look);
    if (type != NULL && strcmp(type, "fit-end") == 0)
        return of_number(desk, end);
    return refusal("wrong", "known are fit-ask, fit-begin, fit-look and fit-end");
}

json_object *guest_answer(const struct home *guests, json_object *whole)
{
    struct desk desk = {.guests = guests,
                        .message = json_object_object_get(whole, "message"),
                        .fit = json_object_object_get(whole, "fit")};
    char **allow = json_get_strings(whole, "allow", ARGUMENTS_MAX);
    int64_t uid = -1;
    bool allowed;

    if (!json_get_int(whole, "uid", 0, UINT32_MAX, &uid) || desk.message == NULL) {
        strings_free(allow);
        return refusal("wrong", "nobody is known to ask");
    }
    desk.uid = (uid_t)uid;
    allowed = desk.uid == geteuid() || user_is_allowed(desk.uid, allow);
    strings_free(allow);
    return allowed ? dispatch(&desk)
                   : refusal("denied", "the owner of the trainer does not allow you to use it");
}
