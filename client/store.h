/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests of a worker to the store on which the processes of its world meet.
 *
 * See doc/internals/protocol.md, "The store's socket". */
#ifndef ELASTIC_CLIENT_STORE_H
#define ELASTIC_CLIENT_STORE_H

#include <stddef.h>

#include "client/event.h"

#define STORE_CLIENT_KEY_MAX   1024              /* bytes of a key */
#define STORE_CLIENT_VALUE_MAX ((size_t)1 << 20) /* and of a value */

/* The store: the socket's path, and the start of a world. */
struct store_client {
    const char *path;
    int generation;
    int attempt;
};

/* elastic_put() and elastic_get() with valid arguments. Each call has a connection of its own. They
 * return what those functions return; on errors the reason is in err. */
int store_client_put(const struct store_client *store, const char *key, const void *value,
                     size_t size, struct event_client_error *err);
int store_client_get(const struct store_client *store, const char *key, void *value, size_t *size,
                     int timeout_ms, struct event_client_error *err);

#endif
