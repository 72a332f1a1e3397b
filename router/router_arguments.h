/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line of elastic-router. Pure. */
#ifndef ELASTIC_ROUTER_ARGUMENTS_H
#define ELASTIC_ROUTER_ARGUMENTS_H

#include <stdbool.h>

#include "lib/error.h"
#include "lib/haproxy_text.h"

#define ROUTER_LISTEN 64

struct router_arguments {
    bool help, status, json;
    bool wait; /* the service may not be there yet, nor its tokens */
    const char *service;
    char listen[ROUTER_LISTEN]; /* ADDRESS:PORT, as haproxy wants it */
    const char *tokens;         /* a file; NULL: that of the service, if there is one */
    bool no_tokens;             /* everybody may ask */
    enum haproxy_key by;        /* --route-by, if what is not NULL */
    const char *what;
    const char *table, *directory, *run_dir, *haproxy; /* NULL: not said */
};

/* -1 with err: one line that says what would be right. */
int router_arguments_read(int argc, char **argv, struct router_arguments *arguments,
                          struct error *err);

/* ADDRESS:PORT, :PORT or [IPV6]:PORT; without an address it is all of them. */
int router_listen_read(const char *text, char listen[ROUTER_LISTEN], struct error *err);

#endif
