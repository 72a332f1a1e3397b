/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The release of this program (release_own.h). All of it is in this one object: tests link programs
 * with another one in its place (tests/system/other_release.c). */
#include "config.h"

#include "common/release_own.h"

/* Of the messages between elasticrun, elasticrun-pmix and selastic. */
#define PROTOCOL 1
/* The oldest that this release still speaks. */
#define OLDEST 1

const struct release *release_own(void)
{
    static const struct release own = {PACKAGE_VERSION, PROTOCOL, OLDEST};

    return &own;
}
