/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Characters of foreign text (utf8.h). */
#include "cmd/utf8.h"

#include <stdbool.h>

int utf8_decode(const unsigned char *s, uint32_t *code)
{
    int length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    *code = s[0] & (0xffu >> (length + 1));
    for (int i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (s[i] & 0x3fu);
    }
    bool surrogate = *code >= 0xd800 && *code <= 0xdfff;
    return *code < smallest[length] || *code > 0x10ffff || surrogate ? 0 : length;
}
