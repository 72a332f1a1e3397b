/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Keys for S3 in a sealed box (s3_box.h). */
#include "fit/s3_box.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/s3_place.h"
#include "lib/text.h"

#define VARIANT   sodium_base64_VARIANT_ORIGINAL
#define NAME_SIZE (2 * crypto_box_PUBLICKEYBYTES + 1)
#define PLAIN_MAX ((size_t)S3_BOX_MAX * 3 / 4 - crypto_box_SEALBYTES)

struct s3_box_key {
    unsigned char public[crypto_box_PUBLICKEYBYTES], secret[crypto_box_SECRETKEYBYTES];
    char name[NAME_SIZE];
};

struct s3_box_key *s3_box_key_create(void)
{
    struct s3_box_key *key = sodium_malloc(sizeof(*key));

    if (key == NULL)
        return NULL;
    crypto_box_keypair(key->public, key->secret);
    sodium_bin2hex(key->name, sizeof(key->name), key->public, sizeof(key->public));
    return key;
}

void s3_box_key_destroy(struct s3_box_key *key)
{
    sodium_free(key);
}

const char *s3_box_key_name(const struct s3_box_key *key)
{
    return key->name;
}

void s3_box_key_secret(const struct s3_box_key *key, const struct s3_place *place, const char *sid,
                       char secret[S3_BOX_SECRET_SIZE])
{
    unsigned char hash[(S3_BOX_SECRET_SIZE - 1) / 2];
    char text[S3_BUCKET_MAX + S3_PREFIX_MAX + S3_SID_MAX + 16];

    snprintf(text, sizeof(text), "proof %s/%s %s", place->bucket, place->prefix, sid);
    crypto_generichash(hash, sizeof(hash), (const unsigned char *)text, strlen(text), key->secret,
                       sizeof(key->secret));
    sodium_bin2hex(secret, S3_BOX_SECRET_SIZE, hash, sizeof(hash));
}

bool s3_box_key_ok(const char *name)
{
    return strlen(name) == NAME_SIZE - 1 && strspn(name, "0123456789abcdef") == NAME_SIZE - 1;
}

void s3_box_clear(struct s3_box *box)
{
    s3_account_clear(&box->account);
    box->until = 0;
    box->sid[0] = '\0';
}

/* ---- sealing --------------------------------------------------------------------------------- */

static char *seal(const char *plain, const unsigned char *key, struct error *err)
{
    size_t len = strlen(plain), size = len + crypto_box_SEALBYTES;
    unsigned char *sealed = malloc(size);
    char *text = malloc(sodium_base64_encoded_len(size, VARIANT));

    if (sealed != NULL && text != NULL &&
        crypto_box_seal(sealed, (const unsigned char *)plain, len, key) == 0) {
        sodium_bin2base64(text, sodium_base64_encoded_len(size, VARIANT), sealed, size, VARIANT);
    } else {
        error_set(err, "the trainer's key cannot be used");
        free(text);
        text = NULL;
    }
    free(sealed);
    return text;
}

char *s3_box_seal(const struct s3_box *box, const char *key_name, struct error *err)
{
    const struct s3_account *account = &box->account;
    unsigned char key[crypto_box_PUBLICKEYBYTES];
    json_object *json;
    const char *plain;
    size_t len = 0;
    char *text = NULL;

    if (!s3_box_key_ok(key_name) ||
        sodium_hex2bin(key, sizeof(key), key_name, strlen(key_name), NULL, &len, NULL) != 0) {
        error_set(err, "the trainer's key is none");
        return NULL;
    }
    json = json_object_new_object();
    json_object_object_add(json, "key", json_from_string(account->key));
    json_object_object_add(json, "secret", json_from_string(account->secret));
    json_object_object_add(json, "token", json_from_string(account->token));
    json_object_object_add(json, "region", json_from_string(account->region));
    json_object_object_add(json, "endpoint", json_from_string(account->endpoint));
    json_object_object_add(json, "sid", json_object_new_string(box->sid));
    json_object_object_add(json, "until", json_object_new_double(box->until));
    plain = json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN);
    if (plain != NULL && strlen(plain) <= PLAIN_MAX)
        text = seal(plain, key, err);
    else
        error_set(err, "the session credentials are too long");
    json_object_put(json);
    return text;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* NULL where it says none. False: it cannot stand in a header, or a name. */
static bool take(json_object *json, const char *name, char **to)
{
    const char *text = json_get_string(json, name);

    for (const char *c = text; c != NULL && *c != '\0'; c++)
        if (*c <= ' ' || *c > '~')
            return false;
    *to = text != NULL ? strdup(text) : NULL;
    return text == NULL || *to != NULL;
}

static int read_box(const char *plain, size_t len, struct s3_box *box, struct error *err)
{
    struct s3_account *account = &box->account;
    json_object *json = json_text_parse(plain, len, err);
    const char *sid = json_get_string(json, "sid");
    bool good = json != NULL && take(json, "key", &account->key) &&
                take(json, "secret", &account->secret) && take(json, "token", &account->token) &&
                take(json, "region", &account->region) &&
                take(json, "endpoint", &account->endpoint) && account->region != NULL &&
                strpbrk(account->region, "/:@?#.") == NULL &&
                (account->key == NULL) == (account->secret == NULL) &&
                (account->endpoint == NULL || s3_endpoint_ok(account->endpoint));

    good = good && sid != NULL && strlen(sid) <= S3_SID_MAX &&
           (sid[0] == '\0' || text_made_of(sid, ""));
    if (good)
        snprintf(box->sid, sizeof(box->sid), "%s", sid);
    box->until = json_get_double(json, "until", 0);
    json_object_put(json);
    if (good && isfinite(box->until) &&
        (account->source = strdup("the session for this training")) != NULL)
        return 0;
    s3_box_clear(box);
    return error_set(err, "the keys for S3 that have come are none");
}

int s3_box_open(const char *text, const struct s3_box_key *key, struct s3_box *box,
                struct error *err)
{
    unsigned char sealed[S3_BOX_MAX];
    char plain[S3_BOX_MAX];
    const char *end = NULL;
    size_t len = 0;
    int rc;

    *box = (struct s3_box){0};
    if (sodium_base642bin(sealed, sizeof(sealed), text, strlen(text), NULL, &len, &end, VARIANT) !=
            0 ||
        *end != '\0' || len < crypto_box_SEALBYTES ||
        crypto_box_seal_open((unsigned char *)plain, sealed, len, key->public, key->secret) != 0)
        return error_set(err, "the keys for S3 that have come are for another process");
    len -= crypto_box_SEALBYTES;
    plain[len] = '\0';
    rc = read_box(plain, len, box, err);
    explicit_bzero(plain, sizeof(plain));
    return rc;
}
