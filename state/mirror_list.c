/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which models a repository on S3 has (mirror_list.h).
 *
 * One listing of all keys says it, by ETags. The keys of a model come one after the other. */
#include "state/mirror_list.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "lib/shard_commands.h"
#include "lib/states.h"
#include "state/mirror_files.h"

struct reader {
    struct mirror_list *models;
    size_t prefix;
    crypto_generichash_state digest; /* of the last model */
};

/* ---- one model ------------------------------------------------------------------------------- */

static void end_model(struct reader *reader)
{
    unsigned char digest[(MIRROR_SEEN_SIZE - 1) / 2];
    struct mirror_model *model;

    if (reader->models->count == 0)
        return;
    model = &reader->models->list[reader->models->count - 1];
    crypto_generichash_final(&reader->digest, digest, sizeof(digest));
    sodium_bin2hex(model->seen, sizeof(model->seen), digest, sizeof(digest));
}

static int begin_model(struct reader *reader, const char *name, size_t len, struct error *err)
{
    struct mirror_list *models = reader->models;

    end_model(reader);
    if (models->count == models->room) {
        size_t room = models->room > 0 ? 2 * models->room : 64;
        struct mirror_model *more = reallocarray(models->list, room, sizeof(*more));

        if (more == NULL)
            return error_set(err, "out of memory");
        models->list = more;
        models->room = room;
    }
    models->list[models->count] = (struct mirror_model){.name = strndup(name, len)};
    if (models->list[models->count].name == NULL)
        return error_set(err, "out of memory");
    models->count++;
    crypto_generichash_init(&reader->digest, NULL, 0, (MIRROR_SEEN_SIZE - 1) / 2);
    return 0;
}

/* Files of a version do not change once its manifest is there. */
static bool counts(const char *rest)
{
    const char *slash = strchr(rest, '/');

    return slash == NULL || strcmp(slash, "/" STATE_MANIFEST) == 0;
}

static int add_key(const struct s3_entry *entry, void *arg, struct error *err)
{
    struct reader *reader = arg;
    struct mirror_list *models = reader->models;
    const char *key = entry->key + reader->prefix, *slash = strchr(key, '/');
    size_t len = slash != NULL ? (size_t)(slash - key) : 0;
    struct mirror_model *last = models->count > 0 ? &models->list[models->count - 1] : NULL;
    char name[SHARD_NAME_MAX + 1];

    if (len == 0 || len >= sizeof(name))
        return 0;
    memcpy(name, key, len);
    name[len] = '\0';
    if (!shard_name_ok(name))
        return 0;
    if ((last == NULL || strcmp(last->name, name) != 0) && begin_model(reader, name, len, err) != 0)
        return -1;
    last = &models->list[models->count - 1];
    if (strcmp(slash + 1, STATES_MODEL_FILE) == 0)
        memcpy(last->etag, entry->etag, sizeof(last->etag));
    if (counts(slash + 1)) { /* with their ends: no two lists are the same text */
        crypto_generichash_update(&reader->digest, (const unsigned char *)slash, strlen(slash) + 1);
        crypto_generichash_update(&reader->digest, (const unsigned char *)entry->etag,
                                  strlen(entry->etag) + 1);
    }
    return 0;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* "a-b/" comes before "a/" in a listing, and "a" before "a-b" here. */
static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct mirror_model *)a)->name, ((const struct mirror_model *)b)->name);
}

int mirror_list_read(struct s3 *s3, const char *prefix, struct mirror_list *models,
                     struct error *err)
{
    struct reader reader = {.models = models, .prefix = strlen(prefix)};

    *models = (struct mirror_list){0};
    if (s3_list(s3, prefix, false, add_key, &reader, err) != S3_OK) {
        mirror_list_clear(models);
        return -1;
    }
    end_model(&reader);
    if (models->count > 0)
        qsort(models->list, models->count, sizeof(*models->list), compare_names);
    return 0;
}

void mirror_list_clear(struct mirror_list *models)
{
    for (size_t i = 0; i < models->count; i++)
        free(models->list[i].name);
    free(models->list);
    *models = (struct mirror_list){0};
}

static int compare(const void *name, const void *model)
{
    return strcmp(name, ((const struct mirror_model *)model)->name);
}

const struct mirror_model *mirror_list_find(const struct mirror_list *models, const char *name)
{
    return models->count > 0
               ? bsearch(name, models->list, models->count, sizeof(*models->list), compare)
               : NULL;
}
