/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A place with states: a directory, or a prefix in a bucket of S3. How they lie there is in
 * lib/states.h. */
#ifndef STATE_PLACE_H
#define STATE_PLACE_H

#include "common/s3.h"
#include "lib/error.h"
#include "lib/states.h"

struct place;

/* where: a directory or s3://BUCKET/PREFIX. NULL with err. */
struct place *place_open(const char *where, const struct s3_limits *limits, struct error *err);
/* NULL is accepted. */
void place_close(struct place *place);

/* Where it is, as it was named, without a slash at the end. */
const char *place_where(const struct place *place);

/* All states and the pointer, read and judged. A place that does not exist yet has none. -1 with
 * err; free with states_clear(). */
int place_list(struct place *place, struct states *states, struct error *err);

/* Call each() with the index of each file of the manifest, which puts or takes it on that lane:
 * several threads at one time do so, but for files that are large enough to use all connections. -1
 * with err, after the first failure. */
int place_each_file(struct place *place, const struct state_manifest *manifest,
                    int (*each)(int lane, size_t index, void *arg, struct error *err), void *arg,
                    struct error *err);

/* ---- writing a state ------------------------------------------------------------------------- */

enum place_result { PLACE_OK, PLACE_CLASH, PLACE_FAILED };

/* Begin a state. PLACE_CLASH: somebody else has begun one with this number. */
enum place_result place_begin(struct place *place, int64_t number, struct error *err);

/* Put one file from its beginning. saw() gets its bytes, once and in order. */
int place_put(struct place *place, int lane, const char *name, int fd, int64_t bytes,
              void (*saw)(const void *data, size_t len, void *arg), void *arg, struct error *err);

/* All files are there: make it a state with this manifest. */
int place_finish(struct place *place, const char *manifest, struct error *err);

/* Remove what has been put. */
void place_give_up(struct place *place);

/* ---- others ---------------------------------------------------------------------------------- */

/* Make it the current one. PLACE_CLASH: the current one is not `from` any more (0: there was
 * none). */
enum place_result place_use(struct place *place, int64_t from, const struct state *state,
                            struct error *err);

/* Hand a file of a complete state to the sink. */
int place_take(struct place *place, int lane, const struct state *state,
               const struct state_file *file, const struct s3_sink *sink, struct error *err);

/* Remove a state of any kind. When this fails in between, it is torn. */
int place_remove(struct place *place, const struct state *state, struct error *err);

/* When state number `own` was written, and `keep` complete ones are to stay: remove what may go.
 * What cannot be removed is said on stderr. */
void place_prune(struct place *place, const struct states *states, int keep, int64_t own);

#endif
