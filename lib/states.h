/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The states of one place: which is the latest, which number is next, what may go. Pure.
 *
 *     current            the state that counts: a link, on S3 an object with the number
 *     000007/            a state; complete with complete.json
 *     000008.partial     a state that is being written, or was when its writer died: a directory;
 *                        on S3 an object that claims the number, while files are put into 000008/
 *
 * A number is never used twice while its state is there. */
#ifndef ELASTIC_STATES_H
#define ELASTIC_STATES_H

#include "lib/state_manifest.h"

#define STATE_POINTER "current"

/* In a repository of models: MODEL/model.json. In one of copies (state/mirror_files.h) also why a
 * model cannot be copied, a line, and that the repository has it no more. */
#define STATES_MODEL_FILE "model.json"
#define STATES_WHY_FILE   ".why"
#define STATES_GONE_FILE  ".gone"
#define STATE_PARTIAL     ".partial"
#define STATE_NAME_SIZE   32
#define STATES_MAX        100000              /* of a place, about */
#define STATES_TEXT_MAX   ((size_t)256 << 20) /* of all their manifests, which stay in memory */

enum state_kind {
    STATE_IS_COMPLETE,
    STATE_IS_PARTIAL,
    STATE_IS_TORN, /* it has a number, and not what a complete one has */
};

struct state {
    int64_t number;
    char name[STATE_NAME_SIZE]; /* without ".partial" */
    enum state_kind kind;
    struct state_manifest *manifest; /* of a complete one */
    char *why;                       /* of a torn one, one line */
};

struct states {
    struct state *list; /* by number, once states_sort() has been called */
    size_t count, room;
    size_t texts;    /* bytes of the manifests of complete ones */
    int64_t current; /* 0: there is no pointer, or one that means nothing */
};

/* The number of a name "000007" (6 to 18 digits) or "000007.partial". 0: it is another name. */
int64_t state_number(const char *name, bool *partial);
void state_name(char name[STATE_NAME_SIZE], int64_t number);

/* The number in a pointer, "000007" with a line break or without. 0: something else. */
int64_t state_pointer_number(const char *text, size_t len);

/* Add what a name says; a name of no state is left out. states_sort() has to follow before anything
 * else is asked. -1 with err: out of memory, or there are too many. */
int states_add(struct states *states, const char *name, struct error *err);
/* Each number once, in order. A state with two names (7 digits and 8) is torn. */
void states_sort(struct states *states);

/* The state has a complete.json with that text, and files with the sizes that size() tells (-1: no
 * such file). It becomes complete or torn. */
void states_judge(struct state *state, const char *text, size_t len,
                  int64_t (*size)(const char *file, void *arg), void *arg);
/* It was judged by a manifest of so many bytes. -1 with err: with it they are too long. */
int states_weigh(struct states *states, const struct state *state, size_t len, struct error *err);
/* It cannot be read, or has no manifest. */
void states_judge_torn(struct state *state, const char *why);

void states_clear(struct states *states);

/* NULL: there is none of this number. */
const struct state *states_find(const struct states *states, int64_t number);

/* The state to go on from: the current one if it is complete, else the newest complete one before
 * it. Without a current one: the newest. A state that a world of a job wrote after a later world of
 * that job had written comes after all others. NULL: none is complete. */
const struct state *states_latest(const struct states *states);

/* The number for a new state: more than all that are there. 0: there is no such number. */
int64_t states_next(const struct states *states);

/* When state number `own` was written, and `keep` complete ones are to stay: may this one go? Never
 * the current one, nor a newer one. */
bool states_may_go(const struct states *states, const struct state *state, int keep, int64_t own);

/* May a user remove it, or make it the current one? -1 with err. */
int states_check_remove(const struct states *states, int64_t number, bool force, struct error *err);
int states_check_use(const struct states *states, int64_t number, struct error *err);

#endif
