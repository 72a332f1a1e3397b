/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `selastic top` shows (top_screen.h). The first line says how it stands, the last one which
 * keys there are; between them is the list, or what is known of one job. */
#include "cmd/top_screen.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/render.h"
#include "cmd/render_parts.h"
#include "cmd/replicas.h"
#include "cmd/shape.h"
#include "cmd/terminal_text.h"
#include "lib/json_get.h"

#define FRAME     2 /* lines that are not of the list: the first and the last */
#define WIDTH_MIN 20

void top_clear(struct top *top)
{
    json_object_put(top->list);
    json_object_put(top->detail);
    free(top->trouble);
    free(top->seen);
    *top = (struct top){.view = TOP_LIST};
}

/* ---- what has come --------------------------------------------------------------------------- */

static int count_jobs(const struct top *top)
{
    return top->list != NULL ? (int)field_count(top->list, "jobs") : 0;
}

static json_object *job_at(const struct top *top, int index)
{
    return json_object_array_get_idx(field_array(top->list, "jobs"), (size_t)index);
}

static uint32_t id_of(json_object *job)
{
    return (uint32_t)field_int(job, "job", 0);
}

/* -1: the chosen job is not in the list. */
static int index_of_chosen(const struct top *top)
{
    for (int i = 0; i < count_jobs(top); i++)
        if (id_of(job_at(top, i)) == top->chosen)
            return i;
    return -1;
}

static const struct top_seen *find_seen(const struct top *top, uint32_t job)
{
    for (int i = 0; i < top->seen_count; i++)
        if (top->seen[i].job == job)
            return &top->seen[i];
    return NULL;
}

/* Speeds by the steps of this look and of the one before. Fewer steps: the job began again. */
static void see(struct top *top, double now)
{
    int count = count_jobs(top);
    struct top_seen *seen = text_need(calloc((size_t)count + 1, sizeof(*seen)));

    for (int i = 0; i < count; i++) {
        json_object *job = job_at(top, i);
        const struct top_seen *before = find_seen(top, id_of(job));

        seen[i] = (struct top_seen){id_of(job), field_int(job, "steps", -1), now, -1};
        if (before != NULL && before->steps >= 0 && seen[i].steps >= before->steps &&
            now > before->at)
            seen[i].rate = (double)(seen[i].steps - before->steps) / (now - before->at);
    }
    free(top->seen);
    top->seen = seen;
    top->seen_count = count;
}

/* The cursor stays with its job; if that is gone, it goes to the job in its place. */
static void keep_chosen(struct top *top, int place)
{
    int count = count_jobs(top);

    if (index_of_chosen(top) >= 0)
        return;
    if (place >= count)
        place = count - 1;
    top->chosen = count > 0 ? id_of(job_at(top, place > 0 ? place : 0)) : 0;
}

void top_take(struct top *top, enum top_view view, uint32_t job, json_object *answer,
              const char *trouble, double now)
{
    int place = index_of_chosen(top);

    /* A key may have been pressed meanwhile. */
    if (view != top->view || (view != TOP_LIST && job != top->chosen)) {
        json_object_put(answer);
        return;
    }
    free(top->trouble);
    top->trouble = trouble != NULL ? text_need(strdup(trouble)) : NULL;
    if (answer == NULL)
        return;
    top->looked = now;
    if (view != TOP_LIST) {
        json_object_put(top->detail);
        top->detail = answer;
        return;
    }
    json_object_put(top->list);
    top->list = answer;
    see(top, now);
    keep_chosen(top, place);
}

json_object *top_json(const struct top *top, double now)
{
    json_object *look = text_need(json_object_new_object()), *jobs;

    json_object_object_add(look, "time", shape_double(now));
    if (top->trouble != NULL) {
        json_object_object_add(look, "error", json_object_new_string(top->trouble));
        return look;
    }
    jobs = text_need(json_object_new_array());
    for (int i = 0; i < count_jobs(top); i++) {
        json_object *job = job_at(top, i);
        const struct top_seen *seen = find_seen(top, id_of(job));
        bool known = seen != NULL && seen->rate >= 0;

        json_object_object_add(job, "steps_per_s", known ? shape_double(seen->rate) : NULL);
        json_object_array_add(jobs, json_object_get(job));
    }
    json_object_object_add(look, "jobs", jobs);
    return look;
}

/* ---- keys ------------------------------------------------------------------------------------ */

static void change_view(struct top *top, enum top_view view)
{
    if (view != TOP_LIST && top->chosen == 0)
        return;
    top->view = view;
    top->first = 0;
    json_object_put(top->detail);
    top->detail = NULL;
    free(top->trouble);
    top->trouble = NULL;
}

/* Moves the cursor in the list, the text elsewhere. */
static void move(struct top *top, int lines)
{
    int count = count_jobs(top), index = index_of_chosen(top);

    if (top->view != TOP_LIST) {
        top->first = lines < -top->first ? 0 : top->first + lines;
        return;
    }
    if (count == 0)
        return;
    index = index < 0 ? 0 : index;
    if (lines < -index)
        index = 0;
    else
        index = lines > count - 1 - index ? count - 1 : index + lines;
    top->chosen = id_of(job_at(top, index));
}

bool top_press(struct top *top, enum top_key key, int height)
{
    int page = height > FRAME + 2 ? height - FRAME - 1 : 1;

    switch (key) {
    case TOP_UP:
        move(top, -1);
        break;
    case TOP_DOWN:
        move(top, 1);
        break;
    case TOP_PAGE_UP:
        move(top, -page);
        break;
    case TOP_PAGE_DOWN:
        move(top, page);
        break;
    case TOP_FIRST:
        move(top, -1000000);
        break;
    case TOP_LAST:
        move(top, 1000000);
        break;
    case TOP_OPEN:
        change_view(top, TOP_SHOW);
        break;
    case TOP_KEY_HISTORY:
        change_view(top, TOP_HISTORY);
        break;
    case TOP_KEY_REPLICAS:
        change_view(top, TOP_REPLICAS);
        break;
    case TOP_BACK:
        change_view(top, TOP_LIST);
        break;
    case TOP_KEY_ALL:
        top->all = !top->all;
        change_view(top, TOP_LIST);
        break;
    case TOP_KEY_QUIT:
        return false;
    }
    return true;
}

/* ---- the list -------------------------------------------------------------------------------- */

static const struct table_column columns[] = {
    {"JOB", TABLE_RIGHT},     {"NAME", TABLE_LEFT},   {"USER", TABLE_LEFT},
    {"STATE", TABLE_LEFT},    {"NODES", TABLE_RIGHT}, {"OF", TABLE_LEFT},
    {"STEPS/S", TABLE_RIGHT}, {"COST", TABLE_RIGHT},  {"WAITS FOR", TABLE_LEFT},
};

#define COLUMNS          ((int)(sizeof(columns) / sizeof(columns[0])))
#define NAME_MAX_COLUMNS 14

static void put_number(struct table *table, double value)
{
    char text[32] = "-";

    if (!isnan(value) && value >= 0)
        snprintf(text, sizeof(text), "%.2f", value);
    table_cell(table, text);
}

static void put_short(struct table *table, const char *text)
{
    char *cut = text_clean(text, NAME_MAX_COLUMNS);

    table_cell(table, cut);
    free(cut);
}

static void put_job(struct table *table, const struct top *top, json_object *job)
{
    const struct top_seen *seen = find_seen(top, id_of(job));

    table_number(table, field_int(job, "job", 0));
    put_short(table, json_get_string(job, "name"));
    put_short(table, json_get_string(job, "user"));
    table_cell(table, json_get_string(job, "state"));
    table_number(table, field_int(job, "size", 0));
    table_cell(table, json_get_string(job, "sizes"));
    put_number(table, seen != NULL ? seen->rate : -1);
    put_number(table, field_double(job, "cost"));
    table_cell(table, json_get_string(job, "why"));
}

static char *list_text(const struct top *top, int width)
{
    struct table *table = table_create(columns, COLUMNS);
    char *text = NULL;
    size_t size;
    FILE *out = text_need(open_memstream(&text, &size));

    for (int i = 0; i < count_jobs(top); i++)
        put_job(table, top, job_at(top, i));
    table_print(table, out, width);
    table_destroy(table);
    fclose(out);
    return text_need(text);
}

static char *detail_text(const struct top *top, double now, int width)
{
    const struct render_options options = {.width = width, .now = (time_t)now};

    if (top->detail == NULL)
        return text_need(strdup(top->trouble != NULL ? "" : "asking ..."));
    switch (top->view) {
    case TOP_HISTORY:
        return render_history(top->detail, &options);
    case TOP_REPLICAS:
        return render_replicas(top->detail, &options);
    default:
        return render_state(top->detail, &options);
    }
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void set_line(struct top_line *line, const char *text, size_t length)
{
    if (length >= sizeof(line->text))
        length = sizeof(line->text) - 1;
    memcpy(line->text, text, length);
    line->text[length] = '\0';
    line->look = TOP_PLAIN;
}

static void draw_first(const struct top *top, double now, double every, struct top_line *line)
{
    char clock[40], *why = top->trouble != NULL ? text_clean(top->trouble, 0) : NULL;
    int64_t nodes = 0, pending = 0;

    line->look = TOP_BAR;
    text_clock(top->looked, (time_t)now, clock, sizeof(clock));
    for (int i = 0; i < count_jobs(top); i++) {
        nodes += field_int(job_at(top, i), "size", 0);
        pending += field_int(job_at(top, i), "pending", 0);
    }
    if (why != NULL)
        snprintf(line->text, sizeof(line->text), "%s  %s", clock, why);
    else if (top->view != TOP_LIST)
        snprintf(line->text, sizeof(line->text), "%s  job %u", clock, top->chosen);
    else
        snprintf(line->text, sizeof(line->text),
                 "%s  %s: jobs %d, nodes %lld, pending extensions %lld; every %g s", clock,
                 top->all ? "all users" : "yours", count_jobs(top), (long long)nodes,
                 (long long)pending, every);
    free(why);
}

static void draw_last(const struct top *top, struct top_line *line)
{
    const char *text = top->view == TOP_LIST
                           ? "Enter show  r replicas  h history  a all users or yours  q quit"
                           : "Esc back  Enter show  r replicas  h history  arrows scroll  q quit";

    set_line(line, text, strlen(text));
    line->look = TOP_BAR;
}

static int count_lines(const char *text)
{
    int count = 0;

    for (; *text != '\0'; text++)
        count += *text == '\n' || text[1] == '\0';
    return count;
}

/* So that the cursor is among the rows, and no room is left below the last one. */
static void scroll(struct top *top, int lines, int room, int cursor)
{
    int most = lines > room ? lines - room : 0;

    if (cursor >= 0 && top->first > cursor)
        top->first = cursor;
    if (cursor >= 0 && top->first < cursor - room + 1)
        top->first = cursor - room + 1;
    if (top->first > most)
        top->first = most;
}

/* Of text, without `skip` of its lines. */
static void draw_text(const char *text, int skip, int room, struct top_line *lines)
{
    for (int i = 0; i < skip + room && *text != '\0'; i++) {
        size_t length = strcspn(text, "\n");

        if (i >= skip)
            set_line(&lines[i - skip], text, length);
        text += length + (text[length] == '\n');
    }
}

void top_draw(struct top *top, double now, double every, int width, int height,
              struct top_line *lines)
{
    int room = height - FRAME, cursor;
    char *text, *rows;

    for (int i = 0; i < height; i++)
        lines[i] = (struct top_line){.text = ""};
    if (height <= FRAME + 1 || width < WIDTH_MIN)
        return;
    draw_first(top, now, every, &lines[0]);
    draw_last(top, &lines[height - 1]);
    if (top->view != TOP_LIST) {
        text = detail_text(top, now, width);
        scroll(top, count_lines(text), room, -1);
        draw_text(text, top->first, room, &lines[1]);
        free(text);
        return;
    }
    text = list_text(top, width);
    rows = text + strcspn(text, "\n");
    cursor = index_of_chosen(top);
    set_line(&lines[1], text, (size_t)(rows - text));
    lines[1].look = TOP_TITLE;
    scroll(top, count_jobs(top), room - 1, cursor);
    draw_text(rows + (*rows == '\n'), top->first, room - 1, &lines[2]);
    if (cursor >= 0)
        lines[2 + cursor - top->first].look = TOP_CHOSEN;
    free(text);
}
