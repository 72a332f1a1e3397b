/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Another release: takes the place of common/release_own.c in programs that tests mix with the
 * installed ones. ELASTIC_TEST_RELEASE="NAME PROTOCOL OLDEST" says which it is, else it is a later
 * one that speaks what is spoken today. */
#include <stdio.h>
#include <stdlib.h>

#include "common/release_own.h"

const struct release *release_own(void)
{
    static struct release own = {"99.0.0", 1, 1};
    static const char *text;

    if (text == NULL && (text = getenv("ELASTIC_TEST_RELEASE")) != NULL &&
        sscanf(text, "%31s %d %d", own.name, &own.protocol, &own.oldest) != 3)
        abort();
    return &own;
}
