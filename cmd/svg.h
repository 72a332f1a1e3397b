/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pieces of pictures in SVG, and of pages in HTML around them. Pure. Names and reasons in them are
 * foreign text. The files need nothing else: no script, font, image or style of elsewhere. */
#ifndef SELASTIC_SVG_H
#define SELASTIC_SVG_H

#include <stddef.h>
#include <stdio.h>

#define SVG_LETTER 7 /* width of a character of size 12, about */

enum svg_anchor { SVG_START, SVG_MIDDLE, SVG_END };

/* As plain ASCII. most: characters, 0: all. */
void svg_escaped(FILE *out, const char *text, int most);

/* A text at a point; more: further attributes, beginning with a blank, or "". The first only begins
 * it: "</text>" is to follow. */
void svg_begin_text(FILE *out, double x, double y, int size, enum svg_anchor anchor,
                    const char *more);
void svg_text(FILE *out, double x, double y, int size, enum svg_anchor anchor, const char *more,
              const char *text, int most);

/* A colour for each small number. */
const char *svg_colour(int number);

/* "1:05", "2:00:05", "3 d 02:00". Returns buf. */
const char *svg_clock(double seconds, char *buf, size_t size);

/* A picture of that size around its body. */
void svg_whole(FILE *out, int width, int height, const char *body);

/* Around the body of a page. Its policy forbids whatever a hostile text could still ask for. */
void svg_begin_page(FILE *out, const char *title);
void svg_end_page(FILE *out);

#endif
