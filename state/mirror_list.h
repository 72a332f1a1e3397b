/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which models a repository on S3 has, and whether they are as they were. */
#ifndef STATE_MIRROR_LIST_H
#define STATE_MIRROR_LIST_H

#include <stddef.h>

#include "common/s3.h"
#include "lib/error.h"

#define MIRROR_SEEN_SIZE 65

struct mirror_model {
    char *name;
    /* The same text: what counts of it is as it was. Digits of a digest. */
    char seen[MIRROR_SEEN_SIZE];
    char etag[S3_ETAG_SIZE]; /* of model.json; "": there is none */
};

struct mirror_list {
    struct mirror_model *list; /* by name, in the order of bytes */
    size_t count, room;
};

/* prefix: "", or with a slash at its end. What has no name of a model is left out. -1 with err. */
int mirror_list_read(struct s3 *s3, const char *prefix, struct mirror_list *models,
                     struct error *err);
void mirror_list_clear(struct mirror_list *models);
/* NULL: there is none of that name. */
const struct mirror_model *mirror_list_find(const struct mirror_list *models, const char *name);

#endif
