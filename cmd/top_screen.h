/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `selastic top` shows, and what its keys do. Pure: no terminal, no clock. */
#ifndef SELASTIC_TOP_SCREEN_H
#define SELASTIC_TOP_SCREEN_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <json-c/json.h>

#define TOP_LINE_MAX 1024 /* bytes of a line */

enum top_view {
    TOP_LIST,     /* all jobs */
    TOP_SHOW,     /* one job: selastic show */
    TOP_REPLICAS, /* … selastic replicas */
    TOP_HISTORY,  /* … selastic history */
};

enum top_key {
    TOP_UP,
    TOP_DOWN,
    TOP_PAGE_UP,
    TOP_PAGE_DOWN,
    TOP_FIRST,
    TOP_LAST,
    TOP_OPEN,
    TOP_BACK,
    TOP_KEY_HISTORY,
    TOP_KEY_REPLICAS,
    TOP_KEY_ALL,
    TOP_KEY_QUIT
};

/* A job as it was last seen: for its speed. */
struct top_seen {
    uint32_t job;
    int64_t steps;
    double at, rate; /* seconds; steps a second, < 0: not known */
};

struct top {
    enum top_view view;
    bool all;            /* jobs of all users */
    uint32_t chosen;     /* the job of the cursor; 0: none */
    int first;           /* the line that is on top */
    json_object *list;   /* of `selastic list --json`; NULL: none yet */
    json_object *detail; /* of the chosen job; NULL: none yet */
    char *trouble;       /* why the last look failed; NULL: it did not */
    double looked;       /* Unix time of the last look that succeeded; 0: none */
    struct top_seen *seen;
    int seen_count;
};

void top_clear(struct top *top);

/* What the present view needs has come: JSON of selastic (taken over), or why not. */
void top_take(struct top *top, enum top_view view, uint32_t job, json_object *answer,
              const char *trouble, double now);

/* A key was pressed; height: lines of the terminal. False: the program shall end. */
bool top_press(struct top *top, enum top_key key, int height);

/* What is known of all jobs, as of `selastic list --json` and {"time"}, each job with
 * {"steps_per_s"} (null: not known yet). Where the last look failed: {"time", "error"}. */
json_object *top_json(const struct top *top, double now);

/* A line to be drawn. */
struct top_line {
    char text[TOP_LINE_MAX];
    enum { TOP_PLAIN, TOP_TITLE, TOP_CHOSEN, TOP_BAR } look;
};

/* Fill `height` lines of `width` columns. */
void top_draw(struct top *top, double now, double every, int width, int height,
              struct top_line *lines);

#endif
