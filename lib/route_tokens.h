/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tokens that clients of a router have to show (Authorization: Bearer TOKEN). Pure. */
#ifndef ELASTIC_ROUTE_TOKENS_H
#define ELASTIC_ROUTE_TOKENS_H

#include <stddef.h>

#include "lib/error.h"

#define ROUTE_TOKENS_TEXT_MAX (1 << 20)
#define ROUTE_TOKEN_MIN       16
#define ROUTE_TOKEN_MAX       256

/* The digests of the tokens in the text of a file, one a line: SHA-256 as haproxy writes it. A new
 * string. NULL with err, which names the line and never the token. Empty lines and those that begin
 * with # do not count. */
char *route_tokens_digests(const char *text, size_t length, int *count, struct error *err);

#endif
