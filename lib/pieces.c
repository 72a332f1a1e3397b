/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bytes in JSON messages (pieces.h). */
#include "lib/pieces.h"

#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "lib/json_get.h"

int bytes_set(json_object *obj, const char *name, const void *data, size_t len)
{
    size_t size = sodium_base64_ENCODED_LEN(len, sodium_base64_VARIANT_ORIGINAL);
    char *text = malloc(size);

    if (text == NULL)
        return -1;
    sodium_bin2base64(text, size, data, len, sodium_base64_VARIANT_ORIGINAL);
    json_object_object_add(obj, name, json_object_new_string(text));
    free(text);
    return 0;
}

int piece_set(json_object *obj, const void *data, size_t len)
{
    return bytes_set(obj, "data", data, len);
}

int pieces_send(json_object *msg, const void *data, size_t len,
                void (*send)(json_object *piece, void *arg), void *arg)
{
    size_t at = 0;
    int rc = 0;

    do {
        size_t part = len - at < PIECE_BYTES ? len - at : PIECE_BYTES;
        json_object *piece = NULL;

        if (json_object_deep_copy(msg, &piece, NULL) != 0 ||
            (part > 0 && piece_set(piece, (const char *)data + at, part) != 0)) {
            json_object_put(piece);
            rc = -1;
            break;
        }
        at += part;
        json_object_object_add(piece, "last", json_object_new_boolean(at == len));
        send(piece, arg);
    } while (at < len);
    json_object_put(msg);
    return rc;
}

int bytes_get(json_object *obj, const char *name, char **data, size_t *len)
{
    const char *text = json_get_string(obj, name);
    size_t text_len = text != NULL ? strlen(text) : 0;

    *data = NULL;
    *len = 0;
    if (text_len == 0)
        return 0;
    *data = malloc(text_len);
    if (*data != NULL && sodium_base642bin((unsigned char *)*data, text_len, text, text_len, NULL,
                                           len, NULL, sodium_base64_VARIANT_ORIGINAL) == 0)
        return 0;
    free(*data);
    *data = NULL;
    *len = 0;
    return -1;
}

int piece_data(json_object *piece, char **data, size_t *len)
{
    return bytes_get(piece, "data", data, len);
}

int pieces_take(struct pieces *pieces, json_object *piece)
{
    char *data, *grown;
    size_t len;

    if (piece_data(piece, &data, &len) != 0)
        return -1;
    if (pieces->len == 0) {
        free(pieces->data);
        pieces->data = data;
    } else if (len > 0) {
        grown = realloc(pieces->data, pieces->len + len);
        if (grown == NULL) {
            free(data);
            return -1;
        }
        memcpy(grown + pieces->len, data, len);
        pieces->data = grown;
        free(data);
    }
    pieces->len += len;
    return json_get_bool(piece, "last", false);
}
