/* SPDX-License-Identifier: GPL-2.0-or-later */
/* No other process controls this one (untraced.h). */
#include "common/untraced.h"

#include <sys/prctl.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif

void untraced_begin(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer)
    prctl(PR_SET_DUMPABLE, 0); /* the sanitizer looks at its own process in that way */
#endif
}
