/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What guests ask of the service (fit_desk.h).
 *
 * The answers are in files, and whether a user is allowed may have to be asked of a server of
 * users: both may take their time. So each question goes to a process of its own. It is told the
 * user by the leader, who knows it from the credential of the link. What it is told is no argument:
 * each user of the node can read those. */
#include "agent/leader/fit_desk.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "agent/leader/fit_runner.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/service_shell.h"
#include "agent/paths.h"
#include "common/capture.h"
#include "common/link.h"
#include "lib/json_get.h"
#include "lib/json_text.h"

#define QUESTIONS_MAX 8
#define OF_ONE_MAX    2 /* of one user: others have answers, too */
#define LIMIT_MS      20000
#define TEXT_MOST     ((size_t)256 << 10)
#define QUESTION_MOST ((size_t)100 << 10) /* it comes to lie in the owner's home */

struct question {
    LIST_ENTRY(question) entry;
    struct fit_desk *desk;
    struct leader *leader;
    struct link *link; /* NULL: it is gone */
    uid_t uid;
    struct look *look;
    fit_desk_answer *then;
};

struct fit_desk {
    LIST_HEAD(, question) questions;
    int count;
};

struct fit_desk *fit_desk_create(void)
{
    return calloc(1, sizeof(struct fit_desk));
}

static void forget(struct question *question)
{
    LIST_REMOVE(question, entry);
    question->desk->count--;
    free(question);
}

void fit_desk_close(struct leader *leader)
{
    struct fit_desk *desk = leader->of_roles.service->desk;

    while (desk != NULL && !LIST_EMPTY(&desk->questions)) {
        struct question *question = LIST_FIRST(&desk->questions);

        look_cancel(question->look);
        forget(question);
    }
}

void fit_desk_destroy(struct fit_desk *desk)
{
    free(desk);
}

void fit_desk_closed(struct leader *leader, const struct link *link)
{
    struct leader_service *own = leader->of_roles.service;
    struct question *question;

    if (own == NULL || own->desk == NULL)
        return;
    LIST_FOREACH (question, &own->desk->questions, entry)
        if (question->link == link)
            question->link = NULL;
}

static void on_answer(char *text, size_t size, int status, void *arg)
{
    struct question *question = arg;
    json_object *answer = text != NULL ? json_text_parse(text, size, NULL) : NULL;

    if (question->link != NULL && answer != NULL)
        question->then(question->leader, question->link, json_object_get(answer), NULL);
    else if (question->link != NULL)
        question->then(question->leader, question->link, NULL,
                       status < 0 ? "elastic-fit has not answered in time"
                                  : "elastic-fit of the trainer gives no answer");
    json_object_put(answer);
    free(text);
    forget(question);
}

/* A new text; NULL: out of memory. */
static char *question_text(struct leader *leader, struct link *link, json_object *msg)
{
    json_object *whole = json_object_new_object();
    const char *text;
    char *copy;

    json_object_object_add(whole, "uid", json_object_new_int64(link_peer_uid(link)));
    json_object_object_add(whole, "message", json_object_get(msg));
    fit_runner_describe(leader, whole);
    json_object_object_add(whole, "allow", json_from_strings(leader->options->roles->fit.allow));
    text = json_object_to_json_string_ext(whole, JSON_C_TO_STRING_PLAIN);
    copy = text != NULL ? strdup(text) : NULL;
    json_object_put(whole);
    return copy;
}

static void begin(struct leader *leader, struct link *link, char *text, fit_desk_answer *then)
{
    struct fit_desk *desk = leader->of_roles.service->desk;
    struct question *question = calloc(1, sizeof(*question));
    char *args[] = {"elastic-fit", "desk", leader->options->roles->service, NULL};
    const struct look_options options = {.program = paths_of(PATHS_FIT),
                                         .args = args,
                                         .input = text,
                                         .limit_ms = LIMIT_MS,
                                         .most = TEXT_MOST,
                                         .done = on_answer,
                                         .arg = question};

    if (question != NULL)
        *question = (struct question){
            .desk = desk, .leader = leader, .link = link, .uid = link_peer_uid(link), .then = then};
    if (question != NULL)
        question->look = look_begin(leader->loop, &options);
    if (question == NULL || question->look == NULL) {
        free(question);
        then(leader, link, NULL, "elastic-fit cannot be run on the leader's node");
        return;
    }
    LIST_INSERT_HEAD(&desk->questions, question, entry);
    desk->count++;
}

bool fit_desk_asks(const struct leader *leader, const struct link *link)
{
    const struct leader_service *own = leader->of_roles.service;
    const struct question *question;

    if (own != NULL && own->desk != NULL)
        LIST_FOREACH (question, &own->desk->questions, entry)
            if (question->link == link)
                return true;
    return false;
}

static bool is_busy(const struct fit_desk *desk, uid_t uid)
{
    const struct question *question;
    int own = 0;

    LIST_FOREACH (question, &desk->questions, entry)
        own += question->uid == uid;
    return desk->count >= QUESTIONS_MAX || own >= OF_ONE_MAX;
}

void fit_desk_ask(struct leader *leader, struct link *link, json_object *msg, fit_desk_answer *then)
{
    const struct roles *roles = leader->options->roles;
    struct leader_service *own = leader->of_roles.service;
    char *text;

    if (own == NULL || own->desk == NULL || roles == NULL || roles->fit.run == NULL ||
        roles->fit.allow == NULL) {
        then(leader, link, NULL, "the job is no trainer: it needs a service with allow in fit");
        return;
    }
    if (own->phase != PHASE_SERVES || is_busy(own->desk, link_peer_uid(link))) {
        then(leader, link, NULL, "the trainer is busy; it is to be asked again");
        return;
    }
    text = question_text(leader, link, msg);
    if (text != NULL && strlen(text) <= QUESTION_MOST)
        begin(leader, link, text, then);
    else
        then(leader, link, NULL, "the call is too large for a trainer of somebody else");
    free(text);
}
