/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic clean`: remove the state directories of jobs that are over.
 *
 * What may go is decided in lib/leftover. This file finds out what is there. */
#include <dirent.h>
#include <errno.h>
#include <fts.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/deadline.h"
#include "cmd/query.h"
#include "cmd/render.h"
#include "cmd/terminal_text.h"
#include "common/files.h"
#include "lib/leftover.h"

#define CHECKPOINT_RECORD "." JOB_RECORD_FILE

struct clean {
    const struct arguments *arguments;
    struct leftover_site site;
    char *parent;  /* where the state directories are */
    char *pattern; /* of their names */
    json_object *list;
    bool failed;
};

/* ---- what is in a directory ------------------------------------------------------------------ */

struct tree {
    struct leftover found;
    int64_t bytes;
};

static void add_record(struct tree *tree, const FTSENT *entry, bool own)
{
    struct leftover *found = &tree->found;
    struct job_record record;
    size_t len = 0;
    char *text = file_read(entry->fts_accpath, JOB_RECORD_MAX, &len, NULL);

    if (text == NULL || job_record_parse(text, len, &record, NULL) < 0) {
        found->complete = false;
    } else {
        found->records = text_need(
            realloc(found->records, (size_t)(found->record_count + 1) * sizeof(*found->records)));
        found->records[found->record_count] = found->records[0];
        found->records[own ? 0 : found->record_count] = record;
        found->record_count++;
        found->owned |= own;
    }
    free(text);
}

static void look_at(struct tree *tree, const FTSENT *entry, dev_t device)
{
    switch (entry->fts_info) {
    case FTS_DP:
        return;
    case FTS_DNR:
    case FTS_ERR:
    case FTS_NS:
        tree->found.complete = false;
        return;
    default:
        break;
    }
    tree->bytes += (int64_t)entry->fts_statp->st_blocks * 512;
    if (entry->fts_statp->st_mtime > tree->found.changed)
        tree->found.changed = entry->fts_statp->st_mtime;
    if (entry->fts_statp->st_dev != device)
        tree->found.complete = false;
    if (entry->fts_level == 1 && strcmp(entry->fts_name, JOB_RECORD_FILE) == 0)
        add_record(tree, entry, true);
    else if (strcmp(entry->fts_name, CHECKPOINT_RECORD) == 0)
        add_record(tree, entry, false);
}

static void look_through(char *path, struct tree *tree)
{
    char *roots[] = {path, NULL};
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
    dev_t device = 0;
    FTSENT *entry;

    *tree = (struct tree){.found = {.complete = walk != NULL}};
    if (walk == NULL)
        return;
    while (errno = 0, (entry = fts_read(walk)) != NULL) {
        if (entry->fts_level == 0 && entry->fts_info == FTS_D)
            device = entry->fts_statp->st_dev;
        look_at(tree, entry, device);
    }
    tree->found.complete &= errno == 0;
    fts_close(walk);
}

/* ---- one after the other --------------------------------------------------------------------- */

static const char *act(struct clean *clean, const char *path, bool may_go, struct error *err)
{
    if (!may_go)
        return "kept";
    if (clean->arguments->dry_run)
        return "would remove";
    if (dir_remove(path, err) == 0)
        return "removed";
    clean->failed = true;
    return "failed";
}

static void clean_one(struct clean *clean, char *path)
{
    json_object *entry = text_need(json_object_new_object());
    struct error err = {""};
    struct tree tree;
    char why[256];

    look_through(path, &tree);
    bool may_go = leftover_may_go(&clean->site, &tree.found, why, sizeof(why));
    const char *action = act(clean, path, may_go, &err);
    json_object_object_add(entry, "directory", json_object_new_string(path));
    json_object_object_add(
        entry, "job", tree.found.owned ? json_object_new_int64(tree.found.records[0].job) : NULL);
    json_object_object_add(entry, "changed", json_object_new_int64(tree.found.changed));
    json_object_object_add(entry, "bytes", json_object_new_int64(tree.bytes));
    json_object_object_add(entry, "action", json_object_new_string(action));
    json_object_object_add(entry, "why", json_object_new_string(err.text[0] ? err.text : why));
    json_object_array_add(clean->list, entry);
    free(tree.found.records);
}

/* A directory of this user, and no link to one. */
static bool is_own_directory(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

static int clean_all(struct clean *clean, struct error *err)
{
    struct dirent **names = NULL;
    int count = scandir(clean->parent, &names, NULL, versionsort);

    if (count < 0 && errno == ENOENT)
        return 0;
    if (count < 0)
        return error_set(err, "cannot list %s: %s", error_path(clean->parent).text,
                         strerror(errno));
    for (int i = 0; i < count; i++) {
        char *path = NULL;

        if (asprintf(&path, "%s/%s", clean->parent, names[i]->d_name) < 0)
            path = NULL;
        text_need(path);
        if (leftover_is_named(clean->pattern, names[i]->d_name) && is_own_directory(path))
            clean_one(clean, path);
        free(path);
        free(names[i]);
    }
    free(names);
    return 0;
}

/* ---- where they are, and what Slurm knows ---------------------------------------------------- */

/* state_dir of elastic.conf, cut behind its last '/'. */
static int find_places(struct clean *clean, const struct site *site, const struct passwd *self,
                       struct error *err)
{
    char *path = conf_expand(site->conf->state_dir, self->pw_dir, self->pw_name, LEFTOVER_JOB,
                             site->cluster);
    char *slash = strrchr(text_need(path), '/');
    const char *job = strstr(path, LEFTOVER_JOB);

    if (slash == NULL || slash == path || job < slash || strstr(job + 1, LEFTOVER_JOB) != NULL) {
        free(path);
        return error_set(err,
                         "state_dir = %s of elastic.conf has not exactly one %%j, in its last "
                         "part: remove the directories by hand",
                         error_path(site->conf->state_dir).text);
    }
    *slash = '\0';
    clean->pattern = text_need(strdup(slash + 1));
    clean->parent = path;
    return 0;
}

static int find_known(struct clean *clean, struct error *err)
{
    struct job_info *jobs = NULL;
    int count = 0;
    deadline_enter_slurm();
    int result = slurm_client_jobs(geteuid(), &jobs, &count, err);
    deadline_leave();
    if (result < 0)
        return -1;
    uint32_t *known = text_need(calloc((size_t)count + 1, sizeof(*known)));
    for (int i = 0; i < count; i++)
        known[i] = jobs[i].id;
    clean->site.known = known;
    clean->site.known_count = count;
    job_info_free_list(jobs, count);
    return 0;
}

static int clean_site(struct clean *clean, const struct site *site, struct error *err)
{
    const struct passwd *self = getpwuid(geteuid());

    if (self == NULL || site->cluster == NULL)
        return error_set(err, "%s is not known",
                         self == NULL ? "your home directory" : "the name of the cluster");
    char *user = text_need(strdup(self->pw_name));
    clean->site.cluster = site->cluster;
    clean->site.user = user;
    int result = find_places(clean, site, self, err);
    if (result == 0)
        result = find_known(clean, err);
    if (result == 0)
        result = clean_all(clean, err);
    free((uint32_t *)clean->site.known);
    free(clean->pattern);
    free(clean->parent);
    free(user);
    return result;
}

static enum exit_status run(const struct arguments *arguments)
{
    struct error err;
    struct clean clean = {
        .arguments = arguments,
        .site = {.now = time(NULL), .days = arguments->days},
        .list = text_need(json_object_new_array()),
    };
    deadline_start();
    struct site *site = site_create(&err);
    int result = site != NULL ? clean_site(&clean, site, &err) : -1;
    site_destroy(site);
    if (result < 0) {
        json_object_put(clean.list);
        return failed(&err);
    }
    json_object *object = text_need(json_object_new_object());
    json_object_object_add(object, "directories", clean.list);
    if (arguments->json) {
        print_json(object, false);
    } else {
        struct render_options options = {.width = terminal_width(), .now = clean.site.now};
        print_text(render_clean(object, &options));
        json_object_put(object);
    }
    return clean.failed ? STATUS_FAILED : STATUS_OK;
}

const struct command clean_command = {
    .name = "clean",
    .summary = "remove state directories of jobs that are over",
    .help = "Usage: selastic clean [--dry-run] [--older-than DAYS] [--json]\n"
            "\n"
            "Remove your state directories, with their checkpoints, of jobs that Slurm does not\n"
            "know any more. Directories that you have named otherwise stay.\n"
            "\n"
            "      --dry-run          remove nothing, only say what would be removed\n"
            "      --older-than DAYS  only what has not changed in so many days (1 to 3650,\n"
            "                         default 30)\n"
            "      --json             print JSON\n"
            "  -h, --help             print this text\n",
    .run = run,
};
