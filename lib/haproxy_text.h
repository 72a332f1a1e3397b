/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What haproxy is told of a service with shards: its configuration, its map of routes, and commands
 * of its runtime API (2.6). Pure. Nothing that could be read as something else gets into a text:
 * names, addresses and paths are refused, not escaped. */
#ifndef ELASTIC_HAPROXY_TEXT_H
#define ELASTIC_HAPROXY_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"
#include "lib/route_by.h"

/* A payload of a command that is larger than haproxy's buffer (tune.bufsize) is lost without a
 * word. So none is. */
#define HAPROXY_BUFFER 65536
#define HAPROXY_PIECE  8192
/* Of clients, at once. Each has one request at a time, and so two buffers at most; those of
 * HAPROXY_CONNECTIONS are 512 MiB. Those that come later wait in the kernel. */
#define HAPROXY_CONNECTIONS 4096
/* … and of one address: the others are refused, so that places for everybody else are left. */
#define HAPROXY_CLIENT (HAPROXY_CONNECTIONS / 2)
/* Seconds for requests that came by older routes, or to an older worker. */
#define HAPROXY_OLD_MAX 600

struct haproxy_config {
    const char *bind;    /* ADDRESS:PORT */
    const char *socket;  /* path of the runtime API's socket */
    const char *map;     /* path of the file with routes; it is also the map's name */
    enum haproxy_key by; /* where requests carry their key: */
    const char *what;    /* name of a header; what is before it in the path: /v2/models/; a member
                            of the body: $.model */
    const char *health;  /* path that a replica answers with 200 when it is ready */
    const char *tokens;  /* path of the file with digests of tokens (lib/route_tokens.h); NULL:
                            everybody may ask */
    bool on_demand;      /* keys that go nowhere are in the map, too, and who asks is counted */
};

struct haproxy_server {
    const char *name;    /* of the replica */
    const char *address; /* IPv4 or IPv6, as numbers */
    int port;
};

struct haproxy_shard {
    int number;         /* its backend is shard_NUMBER */
    const char *health; /* NULL: that of the configuration */
    const struct haproxy_server *servers;
    int count;
};

struct haproxy_route {
    const char *key;
    int shard; /* 0: it goes nowhere by now */
};

/* The file haproxy.cfg. A new string; NULL with err: something cannot be in it. */
char *haproxy_config_text(const struct haproxy_config *config, const struct haproxy_shard *shards,
                          int count, struct error *err);
/* The file of routes: those that hold when haproxy starts. Likewise. */
char *haproxy_map_text(const struct haproxy_route *routes, int count, struct error *err);

/* ---- the runtime API ------------------------------------------------------------------------- */

enum haproxy_verb {
    HAPROXY_ADD, /* the server is there, in maintenance, and forgotten by a reload */
    HAPROXY_ENABLE,
    HAPROXY_CHECK, /* its health is checked */
    HAPROXY_DRAIN, /* it gets no more requests, ends those that it has, and is checked */
    HAPROXY_READY, /* it gets requests as long as its check succeeds */
    HAPROXY_MAINT,
    HAPROXY_DELETE, /* it has to be in maintenance, without connections */
};

/* One line with its newline. Likewise. Only HAPROXY_ADD needs an address. */
char *haproxy_server_command(enum haproxy_verb verb, const struct haproxy_config *config, int shard,
                             const struct haproxy_server *server, struct error *err);

/* All routes anew, at once: prepare; then each piece; then, if as many entries more are there than
 * before it, commit. */
char *haproxy_prepare(const struct haproxy_config *config, struct error *err);
/* A new array, for strings_free(). Each piece is a command with its payload. */
char **haproxy_pieces(const struct haproxy_config *config, int64_t version,
                      const struct haproxy_route *routes, int count, struct error *err);
char *haproxy_commit(const struct haproxy_config *config, int64_t version, struct error *err);

/* The version in the answer to prepare; -1: there is none. */
int64_t haproxy_version_of(const char *answer);
/* The entries of that map, of all its versions, in the answer to `show map`; -1: there is no such
 * map. */
int64_t haproxy_entries_of(const char *answer, const char *map);

#endif
