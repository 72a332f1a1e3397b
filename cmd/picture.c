/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A job's life as a picture (picture.h).
 *
 * Time goes to the right. From the top: how each world began and how large it was; a row for each
 * node, or a chart of the size where there are too many; steps a second; the changes in words.
 * Names and reasons are foreign text. */
#include "cmd/picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/picture_life.h"
#include "cmd/shape.h"
#include "cmd/svg.h"
#include "cmd/terminal_text.h"
#include "cmd/tick.h"

#define PLOT_WIDTH  780
#define ROWS_MAX    40 /* of more nodes only the number is drawn */
#define ROW         24
#define BAR         16
#define CHART       200 /* height, in place of rows */
#define RATES       64  /* height of the steps a second */
#define STRIP       20
#define TOP         96 /* of the rows */
#define CHANGES_MAX 14 /* lines; the page has them all */
#define NAME_MOST   20 /* characters */
#define REASON_MOST 76
#define TIP_MOST    200  /* of a reason */
#define TABLE_MOST  1000 /* … in the table */
#define TICKS_MAX   10

static const struct {
    const char *kind, *colour;
} kinds[] = {
    {"start", "#6b7f99"}, {"grow", "#3f8f3f"}, {"shrink", "#c9971c"}, {"fault", "#d43d3d"}};
#define OTHER_KIND "#8a8a8a"

static const char *kind_colour(const char *kind)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (strcmp(kinds[i].kind, kind) == 0)
            return kinds[i].colour;
    return OTHER_KIND;
}

struct picture {
    FILE *out;
    const struct life *life;
    double scale; /* pixels a second */
    int left;     /* of the plot */
    int bottom;   /* of what has been drawn */
};

/* ---- parts of the drawing -------------------------------------------------------------------- */

static double x_of(const struct picture *p, double seconds)
{
    return p->left + seconds * p->scale;
}

static double width_of(const struct picture *p, const struct life_part *part)
{
    double width = (part->end - part->begin) * p->scale;
    return width > 1.5 ? width - 0.5 : width > 1 ? width : 1;
}

/* What a pointer that rests on a generation tells. Once for all its bars: their number is that of
 * nodes, and a reason may be long. */
static void put_tip(FILE *out, const struct life_part *part)
{
    fprintf(out, "<title>generation %d, ", part->generation);
    svg_escaped(out, part->kind, NAME_MOST);
    fputs(": ", out);
    svg_escaped(out, part->reason, TIP_MOST);
    if (part->pause > 0)
        fprintf(out, "; pause %.2f s", part->pause);
    fputs("</title>", out);
}

static void put_head(const struct picture *p, const struct picture_options *options)
{
    const struct life *life = p->life;
    char length[64];
    svg_text(p->out, p->left, 26, 15, SVG_START, " font-weight=\"bold\"", options->title, 0);
    svg_begin_text(p->out, p->left, 47, 12, SVG_START, " class=\"summary\"");
    fprintf(p->out, "%s in all; it trained for %.1f %% of the time",
            svg_clock(life->length, length, sizeof(length)), life_goodput(life) * 100);
    if (life->changes > 0)
        fprintf(p->out, "; %d change%s, paused for %.1f s in all", life->changes,
                life->changes == 1 ? "" : "s", life->paused);
    if (life->away >= 1)
        fprintf(p->out, "; away for %s", svg_clock(life->away, length, sizeof(length)));
    fputs("</text>\n", p->out);
}

/* How each world began, and its number of nodes. */
static void put_strip(const struct picture *p)
{
    double free_from = 0; /* to the right of the last number */
    svg_text(p->out, p->left - 8, TOP - 15, 11, SVG_END, " fill=\"#666666\"", "nodes", 0);
    for (int i = 0; i < p->life->count; i++) {
        const struct life_part *part = &p->life->parts[i];
        double x = x_of(p, part->begin), width = width_of(p, part), middle = x + width / 2;
        char size[16];
        int length = snprintf(size, sizeof(size), "%d", part->size);
        fprintf(p->out,
                "<rect class=\"world\" data-generation=\"%d\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" "
                "height=\"%d\" fill=\"%s\">",
                part->generation, x, TOP - 10 - STRIP, width, STRIP, kind_colour(part->kind));
        put_tip(p->out, part);
        fputs("</rect>\n", p->out);
        double half = length * SVG_LETTER / 2.0 + 2;
        if (width < 2 * half || middle - half < free_from)
            continue;
        free_from = middle + half;
        svg_text(p->out, middle, TOP - 15, 13, SVG_MIDDLE,
                 " class=\"size\" font-weight=\"bold\" fill=\"#ffffff\"", size, 0);
    }
}

/* Behind the bars, so first. */
static void put_grid(const struct picture *p, int top, int bottom, bool labels)
{
    double tick = tick_round(p->life->length / TICKS_MAX);
    for (double t = 0; t <= p->life->length; t += tick) {
        char text[64];
        fprintf(p->out, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#dddddd\"/>\n",
                x_of(p, t), top, x_of(p, t), bottom);
        if (labels)
            svg_text(p->out, x_of(p, t), bottom + 14, 11, SVG_MIDDLE, " fill=\"#666666\"",
                     svg_clock(t, text, sizeof(text)), 0);
    }
}

static void begin_bars(const struct picture *p, const struct life_part *part)
{
    fputs("<g>", p->out);
    put_tip(p->out, part);
    fputc('\n', p->out);
}

static void put_bar(const struct picture *p, const struct life_part *part, const char *what,
                    const char *node, int pool, double y, double height)
{
    double x = x_of(p, part->begin), pause = part->pause * p->scale;
    fprintf(p->out, "<rect class=\"%s\" data-generation=\"%d\" data-pool=\"", what,
            part->generation);
    svg_escaped(p->out, p->life->pools[pool], 0);
    if (node != NULL) {
        fputs("\" data-node=\"", p->out);
        svg_escaped(p->out, node, 0);
    }
    fprintf(p->out, "\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n", x, y,
            width_of(p, part), height, svg_colour(pool));
    if (pause >= 0.5)
        fprintf(p->out,
                "<rect class=\"pause\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                "fill=\"#ffffff\" fill-opacity=\"0.65\"/>\n",
                x, y, pause, height);
}

static void put_rows(struct picture *p)
{
    const struct life *life = p->life;
    p->bottom = TOP + life->row_count * ROW;
    put_grid(p, TOP - 6, p->bottom + 4, true);
    for (int row = 0; row < life->row_count; row++)
        svg_text(p->out, p->left - 8, TOP + row * ROW + 16, 12, SVG_END, "",
                 json_object_get_string(json_object_array_get_idx(life->rows, (size_t)row)),
                 NAME_MOST);
    for (int i = 0; i < life->count; i++) {
        const struct life_part *part = &life->parts[i];
        begin_bars(p, part);
        for (int k = 0; k < part->node_count; k++) {
            int row = part->nodes[k];
            put_bar(p, part, "node",
                    json_object_get_string(json_object_array_get_idx(life->rows, (size_t)row)),
                    part->pools[k], TOP + row * ROW + 4, BAR);
        }
        fputs("</g>\n", p->out);
    }
}

/* The nodes of each pool, one above the other. */
static void put_chart(struct picture *p)
{
    const struct life *life = p->life;
    double unit = (double)CHART / (life->size_max > 0 ? life->size_max : 1);
    char most[16];
    p->bottom = TOP + CHART;
    put_grid(p, TOP - 6, p->bottom + 4, true);
    snprintf(most, sizeof(most), "%d", life->size_max);
    svg_text(p->out, p->left - 8, TOP + 8, 12, SVG_END, "", most, 0);
    svg_text(p->out, p->left - 8, TOP + CHART, 12, SVG_END, "", "0", 0);
    for (int i = 0; i < life->count; i++) {
        const struct life_part *part = &life->parts[i];
        double y = TOP + CHART;
        begin_bars(p, part);
        for (int pool = 0; pool < life->pool_count; pool++) {
            int count = 0;
            for (int k = 0; k < part->node_count; k++)
                count += part->pools[k] == pool;
            y -= count * unit;
            if (count > 0)
                put_bar(p, part, "nodes", NULL, pool, y, count * unit);
        }
        fputs("</g>\n", p->out);
    }
}

static void put_rates(struct picture *p)
{
    const struct life *life = p->life;
    int top = p->bottom + 44, bottom = top + RATES;
    if (!(life->rate_max > 0))
        return;
    put_grid(p, top, bottom, false);
    svg_text(p->out, p->left - 8, top + 12, 11, SVG_END, " fill=\"#666666\"", "steps/s", 0);
    for (int i = 0; i < life->count; i++) {
        const struct life_part *part = &life->parts[i];
        double begin = part->begin + part->pause, height = RATES * part->rate / life->rate_max;
        double width = (part->end - begin) * p->scale;
        char rate[32];
        if (part->rate < 0)
            continue;
        fprintf(p->out,
                "<rect class=\"rate\" data-generation=\"%d\" data-rate=\"%.6g\" x=\"%.1f\" "
                "y=\"%.2f\" width=\"%.1f\" height=\"%.2f\" fill=\"#a9bcd3\"/>\n",
                part->generation, part->rate, x_of(p, begin), bottom - height, width, height);
        snprintf(rate, sizeof(rate), "%.3g", part->rate);
        if (width > (double)strlen(rate) * SVG_LETTER + 4)
            svg_text(p->out, x_of(p, begin) + width / 2, bottom - 5, 11, SVG_MIDDLE, "", rate, 0);
    }
    p->bottom = bottom - 14;
}

static double put_key(const struct picture *p, double x, double y, const char *colour,
                      const char *text)
{
    size_t length = strlen(text) < NAME_MOST ? strlen(text) : NAME_MOST;
    fprintf(p->out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", x,
            y - 10, colour);
    svg_text(p->out, x + 17, y, 12, SVG_START, " class=\"key\"", text, NAME_MOST);
    return x + 17 + (double)length * SVG_LETTER + 18;
}

static void put_keys(struct picture *p)
{
    const struct life *life = p->life;
    double x = p->left, y = p->bottom + 44;
    for (int pool = 0; pool < life->pool_count; pool++) {
        if (x > p->left + PLOT_WIDTH - 120) {
            x = p->left;
            y += 20;
        }
        x = put_key(p, x, y, svg_colour(pool), life->pools[pool]);
    }
    svg_text(p->out, x + 6, y, 12, SVG_START, " fill=\"#666666\"", "white: training pauses", 0);
    p->bottom = (int)y;
}

/* A line for each change, the last ones if there are many. */
static void put_changes(struct picture *p, const struct picture_options *options)
{
    const struct life *life = p->life;
    int first = options->html               ? life->count
                : life->count > CHANGES_MAX ? life->count - CHANGES_MAX
                                            : 0;
    double y = p->bottom + 12;
    char text[96];
    if (first > 0 && !options->html) {
        snprintf(text, sizeof(text), "the last %d of %d", CHANGES_MAX, life->count);
        svg_text(p->out, p->left, y += 18, 12, SVG_START, " fill=\"#666666\"", text, 0);
    }
    for (int i = first; i < life->count; i++) {
        const struct life_part *part = &life->parts[i];
        y += 18;
        svg_text(p->out, p->left + 48, y, 12, SVG_END, " fill=\"#666666\"",
                 svg_clock(part->begin, text, sizeof(text)), 0);
        fprintf(p->out, "<rect x=\"%d\" y=\"%.1f\" width=\"10\" height=\"10\" fill=\"%s\"/>\n",
                p->left + 60, y - 9, kind_colour(part->kind));
        svg_text(p->out, p->left + 76, y, 12, SVG_START, "", part->kind, NAME_MOST);
        snprintf(text, sizeof(text), "%d node%s", part->size, part->size == 1 ? "" : "s");
        svg_text(p->out, p->left + 186, y, 12, SVG_END, "", text, 0);
        snprintf(text, sizeof(text), part->pause > 0 ? "%.2f s" : "-", part->pause);
        svg_text(p->out, p->left + 246, y, 12, SVG_END, "", text, 0);
        svg_text(p->out, p->left + 262, y, 12, SVG_START, " class=\"change\"", part->reason,
                 REASON_MOST);
    }
    p->bottom = (int)y;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void put_svg(FILE *out, const struct life *life, const struct picture_options *options)
{
    char *body = NULL;
    size_t size = 0;
    struct picture p = {.out = text_need(open_memstream(&body, &size)), .life = life, .left = 70};
    bool rows = life->row_count > 0 && life->row_count <= ROWS_MAX;
    for (int row = 0; rows && row < life->row_count; row++) {
        json_object *name = json_object_array_get_idx(life->rows, (size_t)row);
        int length = json_object_get_string_len(name);
        int left = (length < NAME_MOST ? length : NAME_MOST) * SVG_LETTER + 24;
        p.left = left > p.left ? left : p.left;
    }
    p.scale = PLOT_WIDTH / life->length;
    put_head(&p, options);
    if (rows)
        put_rows(&p);
    else
        put_chart(&p);
    put_strip(&p);
    put_rates(&p);
    put_keys(&p);
    put_changes(&p, options);
    fclose(p.out);
    text_need(body);
    int width = p.left + PLOT_WIDTH + 40, height = p.bottom + 20;
    svg_whole(out, width, height, body);
    free(body);
}

static void put_table(FILE *out, const struct life *life)
{
    fputs(
        "<table>\n<thead><tr><th>generation<th>after<th>begins by<th>nodes<th>workers<th>pause (s)"
        "<th>steps/s<th class=\"words\">reason</thead>\n<tbody>\n",
        out);
    for (int i = 0; i < life->count; i++) {
        const struct life_part *part = &life->parts[i];
        char text[64];
        fprintf(out, "<tr><td>%d<td>%s<td style=\"box-shadow: inset 5px 0 %s\">", part->generation,
                svg_clock(part->begin, text, sizeof(text)), kind_colour(part->kind));
        svg_escaped(out, part->kind, NAME_MOST);
        fprintf(out, "<td>%d<td>%lld<td>", part->size,
                (long long)field_int(part->json, "workers", 0));
        fprintf(out, part->pause > 0 ? "%.2f<td>" : "-<td>", part->pause);
        fprintf(out, part->rate >= 0 ? "%.3g" : "-", part->rate);
        fputs("<td class=\"words\">", out);
        svg_escaped(out, part->reason, TABLE_MOST);
        fputc('\n', out);
    }
    fputs("</tbody>\n</table>\n", out);
}

static void put_page(FILE *out, const struct life *life, const struct picture_options *options)
{
    svg_begin_page(out, options->title);
    put_svg(out, life, options);
    put_table(out, life);
    svg_end_page(out);
}

char *picture_draw(json_object *generations, const struct picture_options *options)
{
    char *text = NULL;
    size_t size = 0;
    struct life *life = life_create(generations, options->end);
    if (life == NULL)
        return NULL;
    FILE *out = text_need(open_memstream(&text, &size));
    if (options->html)
        put_page(out, life, options);
    else
        put_svg(out, life, options);
    fclose(out);
    life_destroy(life);
    return text_need(text);
}
