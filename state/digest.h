/* SPDX-License-Identifier: GPL-2.0-or-later */
/* BLAKE2b of a file that passes piece by piece. */
#ifndef STATE_DIGEST_H
#define STATE_DIGEST_H

#include <stddef.h>

#include <sodium.h>

#include "lib/state_manifest.h"

struct digest {
    crypto_generichash_state state;
};

void digest_begin(struct digest *digest);
/* The callback of place_put(). */
void digest_saw(const void *data, size_t len, void *digest);
void digest_end(struct digest *digest, char hex[STATE_DIGEST_SIZE]);

/* Is it the one of the manifest, or is there none? -1 with err. */
int digest_check(struct digest *digest, const struct state_file *file, struct error *err);

#endif
