/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The release that this program is of, and the protocols that it speaks (lib/release.h). */
#ifndef ELASTIC_RELEASE_OWN_H
#define ELASTIC_RELEASE_OWN_H

#include "lib/release.h"

const struct release *release_own(void);

#endif
