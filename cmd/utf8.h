/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Characters of foreign text. Pure. */
#ifndef SELASTIC_UTF8_H
#define SELASTIC_UTF8_H

#include <stdint.h>

/* Decode a UTF-8 sequence (RFC 3629) of 2 to 4 bytes. Returns its length, 0 when it is none. */
int utf8_decode(const unsigned char *s, uint32_t *code);

#endif
