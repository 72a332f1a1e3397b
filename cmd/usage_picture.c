/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What elastic jobs have used (usage_picture.h). Time goes to the right. Nodes of each pool stand
 * one above the other. */
#include "cmd/usage_picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd/svg.h"
#include "cmd/terminal_text.h"
#include "cmd/tick.h"

#define WIDTH      780
#define LEFT       190
#define TOP        70
#define CHART      160 /* height of the nodes of all jobs */
#define ROW        34  /* of a job */
#define BAR        28
#define ROWS_MAX   60 /* those with most node hours */
#define POOLS_MAX  12 /* the last one stands for all others */
#define TICKS_MAX  8
#define LABEL_MOST 24
#define TITLE_MOST 80

/* A moment at which the number of nodes of a pool changes. */
struct edge {
    double at;
    int pool, nodes;
};

struct row {
    const struct usage_job *job;
    double hours;
};

struct drawing {
    FILE *out;
    struct row *rows;
    int row_count, left_out;
    struct edge *edges;
    size_t edge_count;
    const char *pools[POOLS_MAX];
    int pool_count;
    double begin, end, scale;
};

/* ---- what there is --------------------------------------------------------------------------- */

static int pool_number(struct drawing *d, const char *name)
{
    for (int i = 0; i < d->pool_count; i++)
        if (strcmp(d->pools[i], name) == 0)
            return i;
    if (d->pool_count == POOLS_MAX)
        return POOLS_MAX - 1;
    d->pools[d->pool_count] = d->pool_count == POOLS_MAX - 1 ? "others" : name;
    return d->pool_count++;
}

static int most_first(const void *a, const void *b)
{
    double x = ((const struct row *)a)->hours, y = ((const struct row *)b)->hours;
    return x > y ? -1 : x < y;
}

static int earliest_first(const void *a, const void *b)
{
    const struct usage_job *x = ((const struct row *)a)->job, *y = ((const struct row *)b)->job;
    if (x->start < y->start || x->start > y->start)
        return x->start < y->start ? -1 : 1;
    return x->job < y->job ? -1 : x->job > y->job;
}

static int by_time(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;
    if (x->at < y->at || x->at > y->at)
        return x->at < y->at ? -1 : 1;
    return x->nodes < y->nodes ? -1 : x->nodes > y->nodes; /* nodes go before others come */
}

/* The edges of a job, behind those that there are. */
static void add_edges(struct drawing *d, const struct usage_job *job)
{
    for (int i = 0; i < job->span_count; i++) {
        const struct usage_span *span = &job->spans[i];
        int pool = pool_number(d, job->parts[span->part].pool);
        d->edges[d->edge_count++] = (struct edge){span->begin, pool, span->nodes};
        d->edges[d->edge_count++] = (struct edge){span->end, pool, -span->nodes};
        d->begin = fmin(d->begin, span->begin);
        d->end = fmax(d->end, span->end);
    }
}

static void collect(struct drawing *d, const struct usage *usage, uint32_t only)
{
    size_t spans = 0;
    d->rows = text_need(calloc((size_t)usage->count + 1, sizeof(*d->rows)));
    for (int i = 0; i < usage->count; i++) {
        const struct usage_job *job = &usage->jobs[i];
        if (job->span_count == 0 || (only != 0 && job->job != only))
            continue;
        spans += (size_t)job->span_count;
        d->rows[d->row_count++] = (struct row){job, usage_sum(job).node_s / 3600};
    }
    d->edges = text_need(calloc(2 * spans + 1, sizeof(*d->edges)));
    d->begin = INFINITY;
    d->end = -INFINITY;
    pool_number(d, USAGE_BASE);
    for (int i = 0; i < d->row_count; i++)
        add_edges(d, d->rows[i].job);
}

static void choose_rows(struct drawing *d)
{
    qsort(d->rows, (size_t)d->row_count, sizeof(*d->rows), most_first);
    if (d->row_count > ROWS_MAX) {
        d->left_out = d->row_count - ROWS_MAX;
        d->row_count = ROWS_MAX;
    }
    qsort(d->rows, (size_t)d->row_count, sizeof(*d->rows), earliest_first);
}

/* ---- drawing --------------------------------------------------------------------------------- */

static double x_of(const struct drawing *d, double at)
{
    return LEFT + (at - d->begin) * d->scale;
}

static int most_nodes(const struct edge *edges, size_t count)
{
    int most = 0, now = 0;
    for (size_t i = 0; i < count; i++) {
        now += edges[i].nodes;
        most = now > most ? now : most;
    }
    return most;
}

/* From one edge to the next, a bar for each pool. job 0: of all jobs. */
static void put_bars(const struct drawing *d, const struct edge *edges, size_t count, uint32_t job,
                     int bottom, int height)
{
    int nodes[POOLS_MAX] = {0}, most = most_nodes(edges, count);
    for (size_t i = 0; i + 1 < count; i++) {
        double x = x_of(d, edges[i].at), width = x_of(d, edges[i + 1].at) - x, y = bottom;
        nodes[edges[i].pool] += edges[i].nodes;
        for (int pool = 0; pool < d->pool_count && width > 0; pool++) {
            double part = (double)height * nodes[pool] / most;
            if (nodes[pool] <= 0)
                continue;
            y -= part;
            fprintf(d->out, "<rect class=\"nodes\" data-job=\"%u\" data-nodes=\"%d\" data-pool=\"",
                    job, nodes[pool]);
            svg_escaped(d->out, d->pools[pool], 0);
            fprintf(d->out,
                    "\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"/>\n", x, y,
                    width, part, svg_colour(pool));
        }
    }
}

static void put_grid(const struct drawing *d, int bottom)
{
    double length = d->end - d->begin, tick = tick_round(length / TICKS_MAX);
    time_t first = (time_t)d->begin;
    struct tm local;
    char text[32];
    double offset = localtime_r(&first, &local) != NULL ? (double)local.tm_gmtoff : 0;
    /* Marks at round times of the day. */
    for (double at = ceil((d->begin + offset) / tick) * tick - offset; at <= d->end; at += tick) {
        time_t moment = (time_t)at;
        fprintf(d->out, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#dddddd\"/>\n",
                x_of(d, at), TOP - 6, x_of(d, at), bottom);
        if (localtime_r(&moment, &local) == NULL)
            continue;
        if (tick < 60)
            strftime(text, sizeof(text), "%H:%M:%S", &local);
        else if (tick < 86400)
            strftime(text, sizeof(text), "%m-%d %H:%M", &local);
        else
            strftime(text, sizeof(text), "%Y-%m-%d", &local);
        svg_text(d->out, x_of(d, at), bottom + 14, 11, SVG_MIDDLE, " fill=\"#666666\"", text, 0);
    }
}

static void put_all(const struct drawing *d)
{
    char text[32];
    qsort(d->edges, d->edge_count, sizeof(*d->edges), by_time);
    snprintf(text, sizeof(text), "%d", most_nodes(d->edges, d->edge_count));
    svg_text(d->out, LEFT - 8, TOP + 10, 12, SVG_END, " class=\"most\"", text, 0);
    svg_text(d->out, LEFT - 8, TOP + CHART, 12, SVG_END, "", "0 nodes", 0);
    put_bars(d, d->edges, d->edge_count, 0, TOP + CHART, CHART);
}

/* edges has room for those of the job. */
static void put_job(struct drawing *d, const struct row *row, int top, struct edge *edges)
{
    const struct usage_job *job = row->job;
    struct drawing own = *d;
    char text[160];
    own.edges = edges;
    own.edge_count = 0;
    add_edges(&own, job);
    qsort(edges, own.edge_count, sizeof(*edges), by_time);
    snprintf(text, sizeof(text), "%u %s", job->job, job->name);
    svg_text(d->out, LEFT - 8, top + 13, 12, SVG_END, " class=\"job\"", text, LABEL_MOST);
    snprintf(text, sizeof(text), "%s, at most %d", job->user, most_nodes(edges, own.edge_count));
    svg_text(d->out, LEFT - 8, top + 26, 11, SVG_END, " fill=\"#666666\"", text, LABEL_MOST);
    put_bars(d, edges, own.edge_count, job->job, top + BAR, BAR);
}

static void put_keys(const struct drawing *d, int y)
{
    double x = LEFT;
    for (int pool = 0; pool < d->pool_count; pool++) {
        if (x > LEFT + WIDTH - 100) {
            x = LEFT;
            y += 18;
        }
        fprintf(d->out, "<rect x=\"%.1f\" y=\"%d\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", x,
                y - 10, svg_colour(pool));
        svg_text(d->out, x + 17, y, 12, SVG_START, " class=\"key\"", d->pools[pool], LABEL_MOST);
        x += 17 + 18 + SVG_LETTER * (double)strnlen(d->pools[pool], LABEL_MOST);
    }
}

static void put_head(const struct drawing *d, const struct usage_picture_options *options)
{
    char text[96];
    double hours = 0;
    for (int i = 0; i < d->row_count; i++)
        hours += d->rows[i].hours;
    svg_text(d->out, LEFT, 26, 15, SVG_START, " font-weight=\"bold\"", options->title, TITLE_MOST);
    snprintf(text, sizeof(text), "%d elastic job%s, %.2f node hours%s", d->row_count + d->left_out,
             d->row_count + d->left_out == 1 ? "" : "s", hours,
             d->left_out > 0 ? " of those that are listed" : "");
    svg_text(d->out, LEFT, 47, 12, SVG_START, " class=\"summary\"", text, 0);
}

static void put_svg(struct drawing *d, FILE *out, const struct usage_picture_options *options)
{
    int first = TOP + CHART + 40, keys;
    char *body = NULL;
    size_t size = 0;
    struct edge *edges = text_need(calloc(d->edge_count + 1, sizeof(*edges)));
    d->out = text_need(open_memstream(&body, &size));
    d->scale = WIDTH / fmax(d->end - d->begin, 1);
    keys = first + d->row_count * ROW + 24;
    put_head(d, options);
    put_grid(d, TOP + CHART);
    put_all(d);
    for (int i = 0; i < d->row_count; i++)
        put_job(d, &d->rows[i], first + i * ROW, edges);
    put_keys(d, keys);
    fclose(d->out);
    free(edges);
    svg_whole(out, LEFT + WIDTH + 40, keys + 30 + 18 * (d->pool_count / 6), text_need(body));
    free(body);
}

char *usage_picture(const struct usage *usage, const struct usage_picture_options *options)
{
    struct drawing d = {.row_count = 0};
    char *text = NULL;
    size_t size = 0;
    collect(&d, usage, options->job);
    if (d.row_count > 0) {
        FILE *out = text_need(open_memstream(&text, &size));
        choose_rows(&d);
        if (options->html)
            svg_begin_page(out, options->title);
        put_svg(&d, out, options);
        if (options->html)
            svg_end_page(out);
        fclose(out);
        text_need(text);
    }
    free(d.rows);
    free(d.edges);
    return text;
}
