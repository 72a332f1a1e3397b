/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The credentials of a link's handshake, made and checked with munge.
 *
 * munge proves who speaks, and hides the halves of the connection's key. The nonce proves that the
 * credential is for this receiver and this moment. The port proves that the client has not dialled
 * another program of the leader's node: that cannot listen on the leader's own port. A program of
 * another node can, and hand on what it gets; but it learns no key, so it can only delay the
 * connection or end it.
 *
 * Both functions talk to munged and may block for seconds when munged does not answer: call them
 * from a worker thread. They share no data, so any number may run at once. */
#ifndef ELASTIC_LINK_AUTH_H
#define ELASTIC_LINK_AUTH_H

#include <stdint.h>
#include <sys/types.h>

#include <json-c/json.h>

#include "lib/error.h"

#define LINK_NONCE_BYTES 32
#define LINK_KEY_BYTES   32
#define LINK_NONCE_HEX   (2 * LINK_NONCE_BYTES + 1) /* with the NUL */

/* Of a message. The largest that there is lists some ten thousand replicas or members. */
#define LINK_CONTAINERS_MAX 131072

/* The contents of a credential. */
struct credential {
    char role[16];
    char base[24];                   /* incarnation, "12.0" */
    int port;                        /* the leader's, as the sender knows it */
    uint8_t nonce[LINK_NONCE_BYTES]; /* chosen by the receiver */
    uint8_t key[LINK_KEY_BYTES];     /* the sender's half of the secret */
};

/* Make a credential that only the user `reader` can decode. *text is a new string. socket NULL:
 * munge's default. */
int credential_make(const char *socket, uid_t reader, const struct credential *credential,
                    char **text, struct error *err);

/* Decode text, which has to be encrypted, and compare role, base, port and nonce with those in
 * credential. credential->key and
 * *uid (the user who made the credential) are filled in. A second decode of the same text fails. */
int credential_check(const char *socket, const char *text, struct credential *credential,
                     uid_t *uid, struct error *err);

/* The key of the connection, from both halves of the secret, both nonces, and the base. */
void session_key(const struct credential *client, const struct credential *leader,
                 uint8_t key[LINK_KEY_BYTES]);

/* 64 hexadecimal digits to a nonce or key. -1 for anything else. */
int hex_to_bytes(const char *hex, uint8_t bytes[LINK_NONCE_BYTES]);

/* Parse exactly len bytes of JSON with a NUL behind them, and at most depth - 1 levels of objects
 * and arrays, LINK_CONTAINERS_MAX in all. NULL for anything else. Bytes that are not UTF-8 pass: a
 * user's environment may hold them. */
json_object *json_parse_exact(const char *text, size_t len, int depth);

#endif
