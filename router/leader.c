/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One leader of a service (leader.h). */
#include "router/leader.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/courier.h"
#include "common/log.h"
#include "lib/json_get.h"
#include "lib/pieces.h"

#define ANSWER_MS 30000 /* a leader waits 20 s for something to change */
#define PAUSE_MS  1000  /* after a refusal */
#define REPEAT_MS 10000

struct leader {
    uv_loop_t *loop;
    struct leader_options options;
    struct leader_place place;
    struct courier *asks, *tells;
    uv_timer_t timer; /* the next question after a refusal */
    struct route_table *table;
    struct pieces pieces; /* of a table that is too large for a message … */
    int64_t piece;        /* … so many have come … */
    int64_t of;           /* … of this revision */
    uint64_t heard, told_at;
    struct error refusal;
    struct question *telling; /* a report that has not been answered; NULL: none */
    char *told;               /* the last one, as a text */
};

static void ask(struct leader *leader);

static void on_timer(uv_timer_t *timer)
{
    ask(timer->data);
}

/* ---- the table ------------------------------------------------------------------------------- */

static void refuse(struct leader *leader, const char *why)
{
    struct error before = leader->refusal;

    error_set(&leader->refusal, "%s", why);
    if (strcmp(before.text, leader->refusal.text) != 0)
        log_error("job %u: %s", leader->place.job, leader->refusal.text);
}

static void take(struct leader *leader, struct route_table *table)
{
    struct error err = {""};

    if (strcmp(table->service, leader->options.service) != 0) {
        error_set(&err, "its table is of service %s", table->service);
        refuse(leader, err.text);
        route_table_destroy(table);
        return;
    }
    leader->refusal.text[0] = '\0';
    if (leader->table != NULL && !route_table_follows(table, leader->table)) {
        route_table_destroy(table);
        return;
    }
    route_table_destroy(leader->table);
    leader->table = table;
}

static void forget_pieces(struct leader *leader)
{
    free(leader->pieces.data);
    leader->pieces = (struct pieces){0};
    leader->piece = 0;
}

/* A piece of a table. One that does not follow begins it anew. */
static void take_piece(struct leader *leader, json_object *answer)
{
    int64_t piece = -1, of = -1;
    struct route_table *table;
    struct error err = {""};
    int rc;

    json_get_int(answer, "piece", 0, INT32_MAX, &piece);
    json_get_int(answer, "revision", 0, INT64_MAX, &of);
    leader->refusal.text[0] = '\0';
    if (piece != leader->piece || (piece > 0 && of != leader->of))
        forget_pieces(leader);
    if (piece != leader->piece)
        return;
    leader->of = of;
    rc = pieces_take(&leader->pieces, answer);
    leader->piece++;
    if (rc == 0 && leader->pieces.len <= ROUTE_TABLE_TEXT_MAX)
        return;
    table = NULL;
    if (rc != 1 || leader->pieces.data == NULL)
        error_set(&err, "its table is damaged, or has more than %d bytes", ROUTE_TABLE_TEXT_MAX);
    else
        table = route_table_parse(leader->pieces.data, leader->pieces.len, &err);
    forget_pieces(leader);
    if (table != NULL)
        take(leader, table);
    else
        refuse(leader, err.text);
}

static void on_table(json_object *answer, void *arg)
{
    struct leader *leader = arg;
    json_object *json = NULL;
    struct route_table *table;
    struct error err = {""};
    const char *type = json_get_string(answer, "t");

    if (answer == NULL) { /* it was lost: it is looked for */
        forget_pieces(leader);
        ask(leader);
        return;
    }
    leader->heard = uv_now(leader->loop);
    if (type != NULL && strcmp(type, "routes") == 0 &&
        json_object_object_get_ex(answer, "piece", NULL)) {
        take_piece(leader, answer);
    } else if (type != NULL && strcmp(type, "routes") == 0 &&
               json_object_object_get_ex(answer, "table", &json)) {
        forget_pieces(leader);
        table = route_table_read(json, &err);
        if (table != NULL)
            take(leader, table);
        else
            refuse(leader, err.text);
    } else {
        const char *message = json_get_string(answer, "message");

        refuse(leader, message != NULL ? message : "it does not know routers");
    }
    leader->options.heard(leader->options.arg);
    if (leader->refusal.text[0] == '\0')
        ask(leader);
    else
        uv_timer_start(&leader->timer, on_timer, PAUSE_MS, 0);
}

static void ask(struct leader *leader)
{
    json_object *question = json_object_new_object();

    json_object_object_add(question, "t", json_object_new_string("routes"));
    json_object_object_add(question, "router", json_object_new_string(leader->options.id));
    json_object_object_add(
        question, "after",
        json_object_new_int64(leader->table != NULL ? leader->table->revision : -1));
    if (leader->piece > 0) {
        json_object_object_add(question, "piece", json_object_new_int64(leader->piece));
        json_object_object_add(question, "revision", json_object_new_int64(leader->of));
    }
    if (courier_ask(leader->asks, question, on_table, leader) == NULL)
        uv_timer_start(&leader->timer, on_timer, PAUSE_MS, 0);
}

/* ---- the report ------------------------------------------------------------------------------ */

static void on_told(json_object *answer, void *arg)
{
    struct leader *leader = arg;

    leader->telling = NULL;
    if (answer == NULL) {
        free(leader->told); /* it may not have arrived */
        leader->told = NULL;
    }
}

void leader_tell(struct leader *leader, json_object *report)
{
    const char *text = json_object_to_json_string(report);
    uint64_t now = uv_now(leader->loop);

    if (leader->telling != NULL || (leader->told != NULL && strcmp(leader->told, text) == 0 &&
                                    now < leader->told_at + REPEAT_MS)) {
        json_object_put(report);
        return;
    }
    free(leader->told);
    leader->told = strdup(text);
    leader->told_at = now;
    leader->telling = courier_ask(leader->tells, report, on_told, leader);
}

/* ---- life ------------------------------------------------------------------------------------ */

static struct courier *courier_to(struct leader *leader, int answer_ms)
{
    struct courier_options options = {
        .job = leader->place.job,
        .restarts = leader->place.restarts,
        .leader_uid = getuid(),
        .conf = leader->options.conf,
        .state_dir = leader->place.state_dir,
        .answer_ms = answer_ms,
    };
    struct courier *courier = courier_create(leader->loop, &options);

    if (courier != NULL)
        courier_find(courier, leader->place.addresses, leader->place.port);
    return courier;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct leader *leader = handle->data;

    leader_place_clear(&leader->place);
    route_table_destroy(leader->table);
    forget_pieces(leader);
    free(leader->told);
    free(leader);
}

struct leader *leader_create(uv_loop_t *loop, const struct leader_options *options,
                             struct leader_place *place)
{
    struct leader *leader = calloc(1, sizeof(*leader));

    if (leader == NULL) {
        leader_place_clear(place);
        return NULL;
    }
    leader->loop = loop;
    leader->options = *options;
    leader->place = *place;
    *place = (struct leader_place){0};
    uv_timer_init(loop, &leader->timer);
    leader->timer.data = leader;
    leader->asks = courier_to(leader, ANSWER_MS);
    leader->tells = courier_to(leader, 0);
    if (leader->asks == NULL || leader->tells == NULL) {
        leader_destroy(leader);
        return NULL;
    }
    ask(leader);
    return leader;
}

void leader_destroy(struct leader *leader)
{
    if (leader == NULL)
        return;
    if (leader->asks != NULL)
        courier_destroy(leader->asks);
    if (leader->tells != NULL)
        courier_destroy(leader->tells);
    uv_close((uv_handle_t *)&leader->timer, on_timer_closed);
}

const struct leader_place *leader_at(const struct leader *leader)
{
    return &leader->place;
}

struct route_table *leader_table(const struct leader *leader)
{
    return leader->table;
}

uint64_t leader_heard(const struct leader *leader)
{
    return leader->heard;
}

const char *leader_refusal(const struct leader *leader)
{
    return leader->refusal.text;
}
