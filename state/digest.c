/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Digests of files (digest.h). */
#include "state/digest.h"

#include <string.h>

void digest_begin(struct digest *digest)
{
    crypto_generichash_init(&digest->state, NULL, 0, SNAPSHOT_DIGEST);
}

void digest_saw(const void *data, size_t len, void *arg)
{
    struct digest *digest = arg;

    crypto_generichash_update(&digest->state, data, len);
}

void digest_end(struct digest *digest, char hex[STATE_DIGEST_SIZE])
{
    unsigned char hash[SNAPSHOT_DIGEST];

    crypto_generichash_final(&digest->state, hash, sizeof(hash));
    sodium_bin2hex(hex, STATE_DIGEST_SIZE, hash, sizeof(hash));
}

int digest_check(struct digest *digest, const struct state_file *file, struct error *err)
{
    char hex[STATE_DIGEST_SIZE];

    digest_end(digest, hex);
    if (file->digest[0] == '\0' || strcmp(hex, file->digest) == 0)
        return 0;
    return error_set(err, "%s is not what was written, its BLAKE2b is another",
                     error_path(file->name).text);
}
