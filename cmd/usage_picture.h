/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What elastic jobs have used, as a picture: SVG, or HTML with the SVG in it. Pure. */
#ifndef SELASTIC_USAGE_PICTURE_H
#define SELASTIC_USAGE_PICTURE_H

#include <stdbool.h>

#include "lib/usage.h"

struct usage_picture_options {
    const char *title;
    bool html;
    uint32_t job; /* only this job; 0: all */
};

/* Above, the nodes of all jobs over time; below, those of each job. A new string. NULL: no job had
 * nodes. */
char *usage_picture(const struct usage *usage, const struct usage_picture_options *options);

#endif
