/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tokens that clients of a router have to show (route_tokens.h). */
#include "lib/route_tokens.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

/* RFC 6750: what can stand behind Bearer. */
static bool is_token(const char *text, size_t length)
{
    if (length < ROUTE_TOKEN_MIN || length > ROUTE_TOKEN_MAX)
        return false;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] >= 0x80 ||
            !(isalnum((unsigned char)text[i]) || strchr("._~+/=-", text[i]) != NULL) ||
            text[i] == '\0')
            return false;
    return true;
}

static void write_digest(FILE *out, const char *token, size_t length)
{
    unsigned char digest[crypto_hash_sha256_BYTES];

    crypto_hash_sha256(digest, (const unsigned char *)token, length);
    for (size_t i = 0; i < sizeof(digest); i++)
        fprintf(out, "%02X", digest[i]);
    fputc('\n', out);
}

static int write_digests(FILE *out, const char *text, size_t length, int *count, struct error *err)
{
    const char *end = text + length;

    *count = 0;
    for (int number = 1; text < end; number++) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t size = (size_t)((stop != NULL ? stop : end) - text);

        if (size > 0 && text[0] != '#') {
            if (!is_token(text, size))
                return error_set(err, "line %d: a token has %d to %d letters, digits and ._~+/=-",
                                 number, ROUTE_TOKEN_MIN, ROUTE_TOKEN_MAX);
            write_digest(out, text, size);
            ++*count;
        }
        text += size + 1;
    }
    return 0;
}

char *route_tokens_digests(const char *text, size_t length, int *count, struct error *err)
{
    char *digests = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&digests, &size);
    int status;

    if (out == NULL) {
        error_set(err, "out of memory");
        return NULL;
    }
    status = write_digests(out, text, length, count, err);
    if (fclose(out) != 0)
        status = error_set(err, "out of memory");
    if (status == 0)
        return digests;
    free(digests);
    return NULL;
}
