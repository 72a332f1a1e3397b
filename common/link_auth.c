/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The credentials of a link's handshake, made and checked with munge. */
#include "common/link_auth.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <munge.h>
#include <sodium.h>

#include "lib/json_get.h"
#include "lib/json_text.h"

/* Long enough for clocks that differ a little, short for a credential that serves one handshake. */
#define CREDENTIAL_SECONDS 60
#define CREDENTIAL_DEPTH   2

int hex_to_bytes(const char *hex, uint8_t bytes[LINK_NONCE_BYTES])
{
    size_t len = 0;

    if (hex == NULL || strlen(hex) != LINK_NONCE_HEX - 1)
        return -1;
    if (sodium_hex2bin(bytes, LINK_NONCE_BYTES, hex, LINK_NONCE_HEX - 1, NULL, &len, NULL) != 0)
        return -1;
    return len == LINK_NONCE_BYTES ? 0 : -1;
}

json_object *json_parse_exact(const char *text, size_t len, int depth)
{
    json_tokener *tokener;
    json_object *value;

    if (text == NULL || len > INT_MAX - 1 || !json_text_has_few(text, len, LINK_CONTAINERS_MAX) ||
        (tokener = json_tokener_new_ex(depth)) == NULL)
        return NULL;
    /* The NUL behind the text is passed too: it tells the parser that nothing follows. A NUL
     * within the text would do the same, hence the look at where it stopped. */
    value = json_text_strict(tokener, 0, text, len + 1);
    if (json_tokener_get_error(tokener) != json_tokener_success ||
        json_tokener_get_parse_end(tokener) < len) {
        json_object_put(value);
        value = NULL;
    }
    json_tokener_free(tokener);
    return value;
}

void session_key(const struct credential *client, const struct credential *leader,
                 uint8_t key[LINK_KEY_BYTES])
{
    static const char purpose[] = "slurm-elastic link";
    crypto_generichash_state state;

    /* Only the last part has no fixed length. */
    crypto_generichash_init(&state, NULL, 0, LINK_KEY_BYTES);
    crypto_generichash_update(&state, (const uint8_t *)purpose, sizeof(purpose));
    crypto_generichash_update(&state, client->key, LINK_KEY_BYTES);
    crypto_generichash_update(&state, leader->key, LINK_KEY_BYTES);
    crypto_generichash_update(&state, leader->nonce, LINK_NONCE_BYTES);
    crypto_generichash_update(&state, client->nonce, LINK_NONCE_BYTES);
    crypto_generichash_update(&state, (const uint8_t *)client->base, strlen(client->base));
    crypto_generichash_final(&state, key, LINK_KEY_BYTES);
    sodium_memzero(&state, sizeof(state));
}

static int munge_failed(struct error *err, const char *what, munge_ctx_t ctx, munge_err_t code)
{
    const char *text = munge_ctx_strerror(ctx);
    char host[64] = "this host";

    gethostname(host, sizeof(host) - 1);
    return error_set(err, "munge on %s cannot %s a credential: %s", host, what,
                     text != NULL ? text : munge_strerror(code));
}

static munge_ctx_t context_create(const char *socket, struct error *err)
{
    munge_ctx_t ctx = munge_ctx_create();

    if (ctx == NULL) {
        error_set(err, "munge: out of memory");
        return NULL;
    }
    if (socket != NULL && munge_ctx_set(ctx, MUNGE_OPT_SOCKET, socket) != EMUNGE_SUCCESS) {
        munge_failed(err, "use the socket for", ctx, EMUNGE_BAD_ARG);
        munge_ctx_destroy(ctx);
        return NULL;
    }
    return ctx;
}

static json_object *payload_new(const struct credential *credential)
{
    char nonce[LINK_NONCE_HEX], key[LINK_NONCE_HEX];
    json_object *payload = json_object_new_object();

    sodium_bin2hex(nonce, sizeof(nonce), credential->nonce, LINK_NONCE_BYTES);
    sodium_bin2hex(key, sizeof(key), credential->key, LINK_KEY_BYTES);
    json_object_object_add(payload, "role", json_object_new_string(credential->role));
    json_object_object_add(payload, "base", json_object_new_string(credential->base));
    json_object_object_add(payload, "port", json_object_new_int(credential->port));
    json_object_object_add(payload, "nonce", json_object_new_string(nonce));
    json_object_object_add(payload, "key", json_object_new_string(key));
    sodium_memzero(key, sizeof(key));
    return payload;
}

int credential_make(const char *socket, uid_t reader, const struct credential *credential,
                    char **text, struct error *err)
{
    munge_ctx_t ctx = context_create(socket, err);
    json_object *payload;
    const char *plain;
    size_t len = 0;
    munge_err_t code;

    *text = NULL;
    if (ctx == NULL)
        return -1;
    payload = payload_new(credential);
    plain = json_object_to_json_string_length(payload, JSON_C_TO_STRING_PLAIN, &len);
    code = munge_ctx_set(ctx, MUNGE_OPT_UID_RESTRICTION, reader);
    if (code == EMUNGE_SUCCESS)
        code = munge_ctx_set(ctx, MUNGE_OPT_TTL, CREDENTIAL_SECONDS);
    if (code == EMUNGE_SUCCESS)
        code = munge_encode(text, ctx, plain, (int)len);
    if (code != EMUNGE_SUCCESS)
        munge_failed(err, "make", ctx, code);
    json_object_put(payload);
    munge_ctx_destroy(ctx);
    return code == EMUNGE_SUCCESS ? 0 : -1;
}

static const char *payload_string(json_object *payload, const char *name)
{
    json_object *value = NULL;

    if (!json_object_object_get_ex(payload, name, &value) ||
        !json_object_is_type(value, json_type_string))
        return "";
    return json_object_get_string(value);
}

static int payload_check(json_object *payload, struct credential *credential, struct error *err)
{
    uint8_t nonce[LINK_NONCE_BYTES];
    int64_t port;

    if (!json_object_is_type(payload, json_type_object))
        return error_set(err, "the credential does not hold what a handshake needs");
    if (strcmp(payload_string(payload, "role"), credential->role) != 0)
        return error_set(err, "the credential is not one of role %s", credential->role);
    if (strcmp(payload_string(payload, "base"), credential->base) != 0)
        return error_set(err, "the credential is for another job than %s", credential->base);
    if (!json_get_int(payload, "port", 1, 65535, &port) || port != credential->port)
        return error_set(err,
                         "the credential is not for port %d: a program in between relays the "
                         "connection",
                         credential->port);
    if (hex_to_bytes(payload_string(payload, "nonce"), nonce) != 0 ||
        sodium_memcmp(nonce, credential->nonce, sizeof(nonce)) != 0)
        return error_set(err, "the credential is not for this connection (wrong nonce)");
    if (hex_to_bytes(payload_string(payload, "key"), credential->key) != 0)
        return error_set(err, "the credential has no key of %d bytes", LINK_KEY_BYTES);
    return 0;
}

/* The key of the connection is made of what both credentials hold. */
static int cipher_check(munge_ctx_t ctx, struct error *err)
{
    int cipher = MUNGE_CIPHER_DEFAULT;

    if (munge_ctx_get(ctx, MUNGE_OPT_CIPHER_TYPE, &cipher) != EMUNGE_SUCCESS ||
        cipher != MUNGE_CIPHER_NONE)
        return 0;
    return error_set(err, "the credential is not encrypted (munge's cipher \"none\"), so others "
                          "can read the connection's key: the sender's munge has to encrypt");
}

int credential_check(const char *socket, const char *text, struct credential *credential,
                     uid_t *uid, struct error *err)
{
    munge_ctx_t ctx = context_create(socket, err);
    void *plain = NULL;
    int len = 0, result = -1;
    munge_err_t code;

    if (ctx == NULL)
        return -1;
    code = munge_decode(text, ctx, &plain, &len, uid, NULL);
    if (code != EMUNGE_SUCCESS) {
        munge_failed(err, "decode", ctx, code);
    } else if (cipher_check(ctx, err) == 0) {
        json_object *payload = json_parse_exact(plain, len > 0 ? (size_t)len : 0, CREDENTIAL_DEPTH);

        result = payload_check(payload, credential, err);
        json_object_put(payload);
    }
    if (plain != NULL)
        sodium_memzero(plain, (size_t)len);
    free(plain); /* also set after some errors */
    munge_ctx_destroy(ctx);
    return result;
}
