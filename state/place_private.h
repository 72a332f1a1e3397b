/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The two kinds of place. */
#ifndef STATE_PLACE_PRIVATE_H
#define STATE_PLACE_PRIVATE_H

#include "state/place.h"

/* The functions are those of place.h. */
struct place_kind {
    void (*close)(void *own);
    int (*list)(void *own, struct states *states, struct error *err);
    enum place_result (*begin)(void *own, int64_t number, struct error *err);
    int64_t alone; /* a larger file takes all lanes */
    int (*put)(void *own, int lane, const char *name, int fd, int64_t bytes,
               void (*saw)(const void *data, size_t len, void *arg), void *arg, struct error *err);
    int (*finish)(void *own, const char *manifest, struct error *err);
    void (*give_up)(void *own);
    enum place_result (*use)(void *own, int64_t from, const struct state *state, struct error *err);
    int (*take)(void *own, int lane, const struct state *state, const struct state_file *file,
                const struct s3_sink *sink, struct error *err);
    int (*remove)(void *own, const struct state *state, struct error *err);
};

extern const struct place_kind place_directory, place_bucket;

/* NULL with err. */
void *place_directory_open(const char *path, struct error *err);
void *place_bucket_open(const char *url, const struct s3_limits *limits, struct error *err);

#endif
