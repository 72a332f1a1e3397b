/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pieces of pictures (svg.h). */
#include "cmd/svg.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "lib/text.h"

static void put_character(FILE *out, uint32_t code)
{
    static const struct {
        uint32_t code;
        const char *text;
    } entities[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
    for (size_t i = 0; i < sizeof(entities) / sizeof(*entities); i++)
        if (entities[i].code == code) {
            fputs(entities[i].text, out);
            return;
        }
    if (code < 0x7f)
        fputc((int)code, out);
    else
        fprintf(out, "&#x%x;", code);
}

/* Characters that XML does not allow, and those that turn the direction of a line around. */
static bool is_printable(uint32_t code)
{
    return code >= 0x20 && !(code >= 0x7f && code < 0xa0) && code != 0xfffe && code != 0xffff &&
           !(code >= 0x200b && code <= 0x200f) && !(code >= 0x2028 && code <= 0x202e) &&
           !(code >= 0x2060 && code <= 0x206f) && code != 0xfeff;
}

void svg_escaped(FILE *out, const char *text, int most)
{
    int count = 0;
    while (*text != '\0') {
        uint32_t code = 0;
        size_t length = text_utf8_decode(text, strnlen(text, 4), &code);
        if (length == 0 || !is_printable(code))
            code = 0xfffd;
        text += length > 0 ? length : 1;
        if (most > 0 && ++count > most) {
            fputs("&#x2026;", out);
            return;
        }
        put_character(out, code);
    }
}

void svg_begin_text(FILE *out, double x, double y, int size, enum svg_anchor anchor,
                    const char *more)
{
    static const char *const anchors[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%d\"%s%s>", x, y, size, anchors[anchor],
            more);
}

void svg_text(FILE *out, double x, double y, int size, enum svg_anchor anchor, const char *more,
              const char *text, int most)
{
    svg_begin_text(out, x, y, size, anchor, more);
    svg_escaped(out, text, most);
    fputs("</text>\n", out);
}

const char *svg_colour(int number)
{
    static const char *const colours[] = {"#4c78a8", "#f58518", "#54a24b", "#b279a2",
                                          "#eeca3b", "#72b7b2", "#9d755d", "#ff9da6",
                                          "#439894", "#d67195", "#79706e", "#bab0ac"};
    const int count = (int)(sizeof(colours) / sizeof(colours[0]));

    return colours[number < 0 || number >= count ? count - 1 : number];
}

const char *svg_clock(double seconds, char *buf, size_t size)
{
    long long s = (long long)(seconds + 0.5);
    if (s >= 86400)
        snprintf(buf, size, "%lld d %02lld:%02lld", s / 86400, s / 3600 % 24, s / 60 % 60);
    else if (s >= 3600)
        snprintf(buf, size, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(buf, size, "%lld:%02lld", s / 60, s % 60);
    return buf;
}

void svg_whole(FILE *out, int width, int height, const char *body)
{
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d "
            "%d\" font-family=\"sans-serif\" fill=\"#222222\">\n<rect width=\"%d\" height=\"%d\" "
            "fill=\"#ffffff\"/>\n%s</svg>\n",
            width, height, width, height, width, height, body);
}

void svg_begin_page(FILE *out, const char *title)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
          "'unsafe-inline'\">\n<title>",
          out);
    svg_escaped(out, title, 0);
    fputs("</title>\n<style>\nbody { font-family: sans-serif; color: #222222; margin: 1em; }\n"
          "svg { max-width: 100%; height: auto; }\n"
          "table { border-collapse: collapse; font-size: 13px; }\n"
          "th { white-space: nowrap; }\n"
          "th, td { text-align: right; padding: 3px 10px; border-bottom: 1px solid #dddddd; }\n"
          ".words { text-align: left; }\n</style>\n</head>\n<body>\n",
          out);
}

void svg_end_page(FILE *out)
{
    fputs("</body>\n</html>\n", out);
}
