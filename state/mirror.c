/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A directory follows a repository of models on S3 (command.h).
 *
 * Who reads the directory looks at it while this goes on: each model is as it was, or as it is, and
 * a version is there before `current` leads to it. What cannot be copied stays as it was, and says
 * why (mirror_files.h). A copy that somebody may use is not removed: the file `used` names those,
 * and was written before this began. So what comes in this run stays, too. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/entry.h"
#include "common/files.h"
#include "common/stop.h"
#include "lib/s3_place.h"
#include "lib/shard_commands.h"
#include "state/command.h"
#include "state/mirror_files.h"
#include "state/mirror_list.h"

#define LOCK_NAME      ".lock"
#define MODEL_FILE_MAX ((size_t)64 << 10)
#define USED_MAX       ((size_t)256 << 20)

struct mirror {
    const char *where, *directory;
    const struct options *options;
    struct s3_place place;
    struct s3 *s3;
    struct mirror_list models;
    char *used;     /* lines MODEL/STATE, with a line break in front; NULL: nothing is removed */
    int64_t copied; /* bytes of all copies; -1: not known so far */
    int failures;
};

/* ---- copies of one model --------------------------------------------------------------------- */

static int copy_model_file(const struct mirror *mirror, const struct mirror_model *model,
                           const char *dir, struct error *err)
{
    char key[S3_KEY_MAX + 1], path[PATH_MAX], *text = NULL;
    size_t len = 0;
    int rc = -1;

    if (model->etag[0] == '\0')
        return mirror_note(dir, STATES_MODEL_FILE, NULL, err);
    snprintf(key, sizeof(key), "%s%s/" STATES_MODEL_FILE, mirror->place.prefix, model->name);
    if (mirror_path(path, dir, STATES_MODEL_FILE, err) == 0 &&
        s3_get_text(mirror->s3, key, MODEL_FILE_MAX, &text, &len, NULL, err) == S3_OK)
        rc = file_replace(path, text, len, 0600, err);
    free(text);
    return rc;
}

/* Is there as much room as the copy of that state needs? */
static int check_room(struct mirror *mirror, const struct state *state, const char *dir,
                      struct error *err)
{
    int64_t most = (int64_t)mirror->options->most << 20, bytes = state->manifest->bytes;

    if (most == 0 || mirror_has(dir, state->name))
        return 0;
    if (mirror->copied < 0)
        mirror->copied = mirror_bytes(mirror->directory);
    if (mirror->copied <= most && bytes <= most - mirror->copied)
        return 0;
    return error_set(err,
                     "%s has %lld MiB, and copies have %lld of at most %d MiB: remove models, or "
                     "allow more (copies-max)",
                     state->name, (long long)(bytes >> 20), (long long)(mirror->copied >> 20),
                     mirror->options->most);
}

/* The copy is there: it counts from now on. */
static int point(const char *dir, const struct state *state, const struct mirror *mirror,
                 struct error *err)
{
    struct place *copies = place_open(dir, mirror->options->limits, err);
    struct states have = {0};
    int rc = copies != NULL ? place_list(copies, &have, err) : -1;

    if (rc == 0 && have.current != state->number)
        rc = place_use(copies, have.current, state, err) == PLACE_OK ? 0 : -1;
    states_clear(&have);
    place_close(copies);
    return rc;
}

static int copy_latest(struct mirror *mirror, struct place *from, const char *dir,
                       struct error *err)
{
    const struct state *latest;
    struct states states;
    int rc;

    if (place_list(from, &states, err) != 0)
        return -1;
    latest = states_latest(&states);
    if (latest == NULL)
        rc = error_set(err, "no version of it is complete");
    else if ((rc = check_room(mirror, latest, dir, err)) == 0) {
        bool fresh = !mirror_has(dir, latest->name);

        rc = pull_state(from, latest, dir, 0, err);
        if (rc == 0 && fresh && mirror->copied >= 0)
            mirror->copied += latest->manifest->bytes;
        if (rc == 0)
            rc = point(dir, latest, mirror, err);
    }
    states_clear(&states);
    return rc;
}

static int copy_model(struct mirror *mirror, const struct mirror_model *model, const char *dir,
                      struct error *err)
{
    struct place *from;
    char where[PATH_MAX];
    int rc = -1;

    snprintf(where, sizeof(where), "s3://%s/%s%s", mirror->place.bucket, mirror->place.prefix,
             model->name);
    from = place_open(where, mirror->options->limits, err);
    if (from != NULL && copy_model_file(mirror, model, dir, err) == 0)
        rc = copy_latest(mirror, from, dir, err);
    place_close(from);
    return rc;
}

/* What cannot be copied is tried again the next time. -1 with err: the directory cannot be
 * written. */
static int refresh(struct mirror *mirror, const struct mirror_model *model, struct error *err)
{
    struct error why = {""};
    char dir[PATH_MAX];

    if (mirror_path(dir, mirror->directory, model->name, err) != 0)
        return -1;
    if (mirror_says(dir, MIRROR_SEEN, model->seen))
        return 0;
    if (copy_model(mirror, model, dir, &why) == 0)
        return mirror_note(dir, STATES_WHY_FILE, NULL, err) == 0
                   ? mirror_note(dir, MIRROR_SEEN, model->seen, err)
                   : -1;
    if (stop_asked())
        return error_set(err, "stopped, or out of time");
    mirror->failures++;
    error_clean(why.text);
    return mirror_note(dir, STATES_WHY_FILE, why.text, err);
}

/* ---- which models there are ------------------------------------------------------------------ */

static int note_gone(const char *name, const char *dir, void *arg, struct error *err)
{
    const struct mirror *mirror = arg;

    if (mirror_list_find(&mirror->models, name) != NULL || mirror_has(dir, STATES_GONE_FILE))
        return 0;
    return mirror_note(dir, STATES_GONE_FILE, "gone", err);
}

static int note_models(struct mirror *mirror, struct error *err)
{
    char dir[PATH_MAX];

    for (size_t i = 0; i < mirror->models.count; i++)
        if (mirror_path(dir, mirror->directory, mirror->models.list[i].name, err) != 0 ||
            dir_make(dir, err) != 0 || mirror_note(dir, STATES_GONE_FILE, NULL, err) != 0)
            return -1;
    if (mirror_each(mirror->directory, note_gone, mirror, err) != 0 ||
        mirror_note(mirror->directory, MIRROR_LISTED, "listed", err) != 0)
        return -1;
    return mirror_note(mirror->directory, STATES_WHY_FILE, NULL, err);
}

/* ---- what is of no use any more -------------------------------------------------------------- */

static bool is_used(const struct mirror *mirror, const char *model, const char *state)
{
    char line[SHARD_NAME_MAX + STATE_NAME_SIZE + 8];

    snprintf(line, sizeof(line), "\n%s/%s\n", model, state);
    return strstr(mirror->used, line) != NULL;
}

static int sweep_states(const struct mirror *mirror, const char *name, const char *dir,
                        bool *in_use, struct error *err)
{
    struct place *copies = place_open(dir, mirror->options->limits, err);
    struct states have = {0};
    const struct state *latest;
    int rc = copies != NULL ? place_list(copies, &have, err) : -1;

    latest = states_latest(&have);
    for (size_t i = 0; rc == 0 && i < have.count; i++) {
        const struct state *state = &have.list[i];

        if (is_used(mirror, name, state->name))
            *in_use = true;
        else if (state != latest)
            rc = place_remove(copies, state, err);
    }
    states_clear(&have);
    place_close(copies);
    return rc;
}

/* Most models have one copy, and need no look at it. */
static bool may_sweep(const char *dir)
{
    DIR *list = opendir(dir);
    const char *name;
    bool partial;
    int count = 0;

    while (list != NULL && (name = entry_next(list)) != NULL)
        count += state_number(name, &partial) > 0;
    if (list != NULL)
        closedir(list);
    return count > 1 || mirror_has(dir, STATES_GONE_FILE);
}

/* What cannot be removed now is removed the next time. */
static int sweep_model(const char *name, const char *dir, void *arg, struct error *err)
{
    const struct mirror *mirror = arg;
    bool in_use = false;

    (void)err;
    if (shard_name_ok(name) && may_sweep(dir) &&
        sweep_states(mirror, name, dir, &in_use, NULL) == 0 && !in_use &&
        mirror_has(dir, STATES_GONE_FILE))
        dir_remove(dir, NULL);
    return 0;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* It is as long as the lists of all shards. */
static int read_used(struct mirror *mirror, struct error *err)
{
    size_t len = 0, total = 0, n;
    FILE *out, *in = fopen(mirror->options->used, "re");
    char piece[65536];

    if (in == NULL)
        return error_set(err, "%s: %s", error_path(mirror->options->used).text, strerror(errno));
    out = open_memstream(&mirror->used, &len);
    if (out != NULL)
        fputc('\n', out);
    while (out != NULL && total < USED_MAX && (n = fread(piece, 1, sizeof(piece), in)) > 0)
        total += fwrite(piece, 1, n, out);
    if (out == NULL || fclose(out) != 0 || ferror(in) || total >= USED_MAX) {
        fclose(in);
        return error_set(err, "%s cannot be read", error_path(mirror->options->used).text);
    }
    fclose(in);
    return 0;
}

static int look(struct mirror *mirror, struct error *err)
{
    if (mirror_list_read(mirror->s3, mirror->place.prefix, &mirror->models, err) == 0 &&
        note_models(mirror, err) == 0)
        return 0;
    mirror_note(mirror->directory, STATES_WHY_FILE, err->text, NULL);
    return -1;
}

static int follow(struct mirror *mirror, struct error *err)
{
    int rc = look(mirror, err);

    /* First, so that there is room. */
    if (rc == 0 && mirror->used != NULL)
        rc = mirror_each(mirror->directory, sweep_model, mirror, err);
    for (size_t i = 0; rc == 0 && i < mirror->models.count; i++)
        rc = refresh(mirror, &mirror->models.list[i], err);
    if (rc == 0 && mirror->failures > 0)
        rc = error_set(err,
                       "%d of %zu models could not be copied; MODEL/" STATES_WHY_FILE " says why",
                       mirror->failures, mirror->models.count);
    return rc;
}

/* One process at a time; and nobody takes an empty directory for a repository without models. */
static int begin(const struct mirror *mirror, struct error *err)
{
    char path[PATH_MAX];
    int fd;

    if (dir_make(mirror->directory, err) != 0 ||
        mirror_path(path, mirror->directory, LOCK_NAME, err) != 0)
        return -1;
    fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0) {
        error_set(err, "%s: %s", error_path(path).text,
                  errno == EWOULDBLOCK ? "another process copies already" : strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    if (mirror_has(mirror->directory, MIRROR_LISTED) ||
        mirror_note(mirror->directory, STATES_WHY_FILE, "it has not been listed so far", err) == 0)
        return fd;
    close(fd);
    return -1;
}

static int open_bucket(struct mirror *mirror, struct s3_account *account, struct error *err)
{
    if (s3_place_parse(mirror->where, &mirror->place, err) != 0 ||
        s3_account_load(account, err) != 0)
        return -1;
    mirror->s3 = s3_open(account, mirror->place.bucket, mirror->options->limits, err);
    return mirror->s3 != NULL ? 0 : -1;
}

int command_mirror(const char *where, const char *directory, const struct options *options,
                   struct error *err)
{
    struct mirror mirror = {
        .where = where, .directory = directory, .options = options, .copied = -1};
    struct s3_account account = {0};
    int fd, rc = -1;

    if (!s3_place_is(where))
        return error_set(err, "%s: write s3://BUCKET/PREFIX; nobody needs a copy of a directory",
                         error_path(where).text);
    fd = begin(&mirror, err);
    if (fd < 0)
        return -1;
    if ((options->used == NULL || read_used(&mirror, err) == 0) &&
        open_bucket(&mirror, &account, err) == 0)
        rc = follow(&mirror, err);
    else
        mirror_note(directory, STATES_WHY_FILE, err->text, NULL);
    mirror_list_clear(&mirror.models);
    s3_close(mirror.s3);
    s3_account_clear(&account);
    free(mirror.used);
    close(fd);
    return rc;
}
