/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A job's life as a picture: SVG, or HTML with the SVG in it. Pure: generations in, text out. */
#ifndef SELASTIC_PICTURE_H
#define SELASTIC_PICTURE_H

#include <stdbool.h>

#include <json-c/json.h>

struct picture_options {
    const char *title;
    double end; /* Unix time of the right edge, if the last generation has no end; 0: not known */
    bool html;  /* a page with the picture and a table of all changes */
};

/* A new string. NULL: there is no generation. The generations are those of a history (shape.h). The
 * file needs nothing else: no script, font, image or style of elsewhere. */
char *picture_draw(json_object *generations, const struct picture_options *options);

#endif
