/* SPDX-License-Identifier: GPL-2.0-or-later */
/* States of a place (states.h). */
#include "lib/states.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MIN 6
#define DIGITS_MAX 18

/* ---- names ----------------------------------------------------------------------------------- */

static int64_t read_number(const char *text, size_t len)
{
    int64_t number = 0;

    if (len < DIGITS_MIN || len > DIGITS_MAX)
        return 0;
    for (size_t i = 0; i < len; i++)
        number = 10 * number + (text[i] - '0');
    return number;
}

int64_t state_number(const char *name, bool *partial)
{
    size_t len = strspn(name, "0123456789");

    *partial = strcmp(name + len, STATE_PARTIAL) == 0;
    return *partial || name[len] == '\0' ? read_number(name, len) : 0;
}

void state_name(char name[STATE_NAME_SIZE], int64_t number)
{
    snprintf(name, STATE_NAME_SIZE, "%06" PRId64, number);
}

int64_t state_pointer_number(const char *text, size_t len)
{
    size_t digits = 0;

    while (digits < len && text[digits] >= '0' && text[digits] <= '9')
        digits++;
    if (digits != len && !(digits + 1 == len && text[digits] == '\n'))
        return 0;
    return read_number(text, digits);
}

/* ---- what is there --------------------------------------------------------------------------- */

/* Behind the others: who lists says in which order names come, and that may be any. */
static struct state *append(struct states *states, int64_t number, struct error *err)
{
    /* A server may list names twice. */
    if (states->count == 2 * STATES_MAX) {
        states_sort(states);
        if (states->count > STATES_MAX) {
            error_set(err, "there are more than %d states", STATES_MAX);
            return NULL;
        }
    }
    if (states->count == states->room) {
        size_t room = states->room > 0 ? 2 * states->room : 16;
        struct state *grown = reallocarray(states->list, room, sizeof(*grown));

        if (grown == NULL) {
            error_set(err, "out of memory");
            return NULL;
        }
        states->list = grown;
        states->room = room;
    }
    states->list[states->count] = (struct state){.number = number};
    return &states->list[states->count++];
}

int states_add(struct states *states, const char *name, struct error *err)
{
    bool partial;
    int64_t number = state_number(name, &partial);
    struct state *state;

    if (number == 0)
        return 0;
    state = append(states, number, err);
    if (state == NULL)
        return -1;
    state->kind = partial ? STATE_IS_PARTIAL : STATE_IS_TORN;
    snprintf(state->name, sizeof(state->name), "%.*s", (int)strcspn(name, "."), name);
    return 0;
}

/* Of one number the shorter name first; of one name what has been judged. */
static int in_order(const void *a, const void *b)
{
    const struct state *x = a, *y = b;
    size_t x_len = strlen(x->name), y_len = strlen(y->name);

    if (x->number != y->number)
        return x->number > y->number ? 1 : -1;
    if (x_len != y_len)
        return x_len > y_len ? 1 : -1;
    return (x->manifest == NULL) - (y->manifest == NULL);
}

/* Another name of the number of a state. */
static void merge(struct state *state, struct state *other)
{
    if (strlen(state->name) != strlen(other->name))
        states_judge_torn(state, "there are two names of this number");
    else if (other->kind != STATE_IS_PARTIAL && state->why == NULL)
        state->kind = STATE_IS_TORN;
    state_manifest_destroy(other->manifest);
    free(other->why);
}

void states_sort(struct states *states)
{
    size_t kept = 0;

    if (states->count == 0)
        return;
    qsort(states->list, states->count, sizeof(*states->list), in_order);
    for (size_t i = 1; i < states->count; i++) {
        if (states->list[i].number == states->list[kept].number)
            merge(&states->list[kept], &states->list[i]);
        else
            states->list[++kept] = states->list[i];
    }
    states->count = kept + 1;
}

void states_judge_torn(struct state *state, const char *why)
{
    state_manifest_destroy(state->manifest);
    state->manifest = NULL;
    free(state->why);
    state->kind = STATE_IS_TORN;
    state->why = strdup(why);
}

static int compare_files(const struct state_manifest *manifest,
                         int64_t (*size)(const char *file, void *arg), void *arg, struct error *err)
{
    for (size_t i = 0; i < manifest->count; i++) {
        const struct state_file *file = &manifest->files[i];
        int64_t found = size(file->name, arg);

        if (found < 0)
            return error_set(err, "%s is missing", error_value(file->name).text);
        if (found != file->bytes)
            return error_set(err, "%s has %" PRId64 " bytes of %" PRId64,
                             error_value(file->name).text, found, file->bytes);
    }
    return 0;
}

int states_weigh(struct states *states, const struct state *state, size_t len, struct error *err)
{
    if (state->kind != STATE_IS_COMPLETE)
        return 0;
    if (len > STATES_TEXT_MAX - states->texts)
        return error_set(err, "the manifests of all states have more than %zu MiB",
                         STATES_TEXT_MAX >> 20);
    states->texts += len;
    return 0;
}

void states_judge(struct state *state, const char *text, size_t len,
                  int64_t (*size)(const char *file, void *arg), void *arg)
{
    struct error err = {""};
    struct state_manifest *manifest = state_manifest_parse(text, len, &err);

    if (manifest == NULL)
        error_prefix(&err, "%s", STATE_MANIFEST);
    if (manifest == NULL || compare_files(manifest, size, arg, &err) != 0) {
        state_manifest_destroy(manifest);
        states_judge_torn(state, err.text);
        return;
    }
    state_manifest_destroy(state->manifest);
    state->manifest = manifest;
    state->kind = STATE_IS_COMPLETE;
}

void states_clear(struct states *states)
{
    for (size_t i = 0; i < states->count; i++) {
        state_manifest_destroy(states->list[i].manifest);
        free(states->list[i].why);
    }
    free(states->list);
    *states = (struct states){0};
}

/* ---- decisions ------------------------------------------------------------------------------- */

const struct state *states_find(const struct states *states, int64_t number)
{
    size_t low = 0, high = states->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (states->list[middle].number == number)
            return &states->list[middle];
        if (states->list[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Did a world write it that had been given up? A later world of the same job had written a state
 * with a smaller number. */
static bool is_late(const struct states *states, const struct state *state)
{
    for (size_t i = 0; i < states->count && states->list[i].number < state->number; i++) {
        const struct state *before = &states->list[i];

        if (before->kind != STATE_IS_COMPLETE || !before->manifest->has_key ||
            !state->manifest->has_key || before->manifest->key.job != state->manifest->key.job)
            continue;
        if (before->manifest->key.restarts > state->manifest->key.restarts ||
            (before->manifest->key.restarts == state->manifest->key.restarts &&
             before->manifest->key.generation > state->manifest->key.generation))
            return true;
    }
    return false;
}

const struct state *states_latest(const struct states *states)
{
    const struct state *newest_late = NULL;

    for (size_t i = states->count; i > 0; i--) {
        const struct state *state = &states->list[i - 1];

        if (state->kind != STATE_IS_COMPLETE ||
            (states->current > 0 && state->number > states->current))
            continue;
        if (!is_late(states, state))
            return state;
        if (newest_late == NULL)
            newest_late = state;
    }
    return newest_late;
}

int64_t states_next(const struct states *states)
{
    int64_t last = states->count > 0 ? states->list[states->count - 1].number : 0;

    return last < STATE_NUMBER_MAX ? last + 1 : 0;
}

bool states_may_go(const struct states *states, const struct state *state, int keep, int64_t own)
{
    int newer = 0, needed = state->kind == STATE_IS_PARTIAL ? 1 : keep;

    if (state->number >= own || (states->current > 0 && state->number >= states->current))
        return false;
    for (size_t i = states->count; i > 0 && newer < needed; i--) {
        const struct state *other = &states->list[i - 1];

        if (other->number <= state->number)
            break;
        newer += other->kind == STATE_IS_COMPLETE;
    }
    return newer >= needed;
}

static const struct state *need(const struct states *states, int64_t number, struct error *err)
{
    const struct state *state = states_find(states, number);

    if (state == NULL)
        error_set(err, "there is no state %06" PRId64, number);
    return state;
}

int states_check_remove(const struct states *states, int64_t number, bool force, struct error *err)
{
    const struct state *state = need(states, number, err);

    if (state == NULL)
        return -1;
    if (number == states->current)
        return error_set(err, "%s is the current state: use another one first", state->name);
    if (state->kind == STATE_IS_PARTIAL && !force)
        return error_set(err,
                         "%s is being written, or its writer has died: --force removes it all "
                         "the same",
                         state->name);
    return 0;
}

int states_check_use(const struct states *states, int64_t number, struct error *err)
{
    const struct state *state = need(states, number, err);

    if (state == NULL)
        return -1;
    if (state->kind == STATE_IS_COMPLETE)
        return 0;
    return error_set(err, "%s is not complete: %s", state->name,
                     state->kind == STATE_IS_PARTIAL ? "it is being written, or its writer has died"
                     : state->why != NULL            ? state->why
                                                     : "it has no " STATE_MANIFEST);
}
