/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Facts go to the change of worlds, and its actions up to act.c.
 *
 * A fact that is posted while actions are carried out waits in a queue until all of them have been:
 * so nothing is entered twice, and no list changes under a loop. */
#include "agent/leader/post.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/leader/leader_internal.h"
#include "agent/leader/measures.h"
#include "agent/leader/roster.h"
#include "common/log.h"

struct waiting_fact {
    struct change_fact fact;
    char *text; /* NULL: none */
    struct waiting_fact *next;
};

struct post {
    bool acting;                         /* actions are being carried out */
    struct waiting_fact *waiting, **end; /* posted meanwhile, in order */
};

static void enqueue(struct leader *leader, const struct change_fact *fact)
{
    struct waiting_fact *waiting = calloc(1, sizeof(*waiting));

    if (waiting == NULL) {
        log_error("job %u: out of memory", leader->options->job);
        return;
    }
    waiting->fact = *fact;
    if (fact->text != NULL)
        waiting->fact.text = waiting->text = strdup(fact->text);
    *leader->post->end = waiting;
    leader->post->end = &waiting->next;
}

static void feed(struct leader *leader, struct change_fact *fact)
{
    struct change_actions actions = {0};

    fact->now = leader_now(leader);
    if (change_feed(leader->change, fact, &actions) != 0)
        log_error("job %u: out of memory", leader->options->job);
    for (int i = 0; i < actions.count; i++)
        leader->above->act(leader, &actions.list[i]);
    change_actions_clear(&actions);
}

void post_fact(struct leader *leader, struct change_fact fact)
{
    struct post *post = leader->post;

    if (post->acting) {
        enqueue(leader, &fact);
        return;
    }
    post->acting = true;
    feed(leader, &fact);
    while (post->waiting != NULL) {
        struct waiting_fact *first = post->waiting;

        post->waiting = first->next;
        if (post->waiting == NULL)
            post->end = &post->waiting;
        feed(leader, &first->fact);
        free(first->text);
        free(first);
    }
    post->acting = false;
    measures_phase(leader);
    roster_prune(leader);
    leader_set_deadline(leader);
}

/* ---- facts that are posted in several places ------------------------------------------------- */

void post_stop(struct leader *leader, const char *reason)
{
    post_fact(leader, (struct change_fact){.kind = CHANGE_FACT_STOP, .text = reason});
}

void post_fail(struct leader *leader, const char *why)
{
    post_fact(leader, (struct change_fact){.kind = CHANGE_FACT_FAIL, .text = why});
}

void post_reason(struct leader *leader, const char *fmt, ...)
{
    char text[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    post_fact(leader, (struct change_fact){.kind = CHANGE_FACT_REASON, .text = text});
}

/* ---- life ------------------------------------------------------------------------------------ */

struct post *post_create(void)
{
    struct post *post = calloc(1, sizeof(*post));

    if (post != NULL)
        post->end = &post->waiting;
    return post;
}

void post_destroy(struct post *post)
{
    free(post);
}
