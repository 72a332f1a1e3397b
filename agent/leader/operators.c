/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Slurm's operators may control a job, and users whom its service allows may have models trained
 * (operators.h).
 *
 * A credential tells the leader a uid, and only slurmctld knows who is an operator. The handshake
 * does not wait for slurmctld: the first try is refused, and selastic tries again. */
#include "agent/leader/operators.h"

#include <stdlib.h>

#include "agent/leader/leader_internal.h"
#include "common/allowed_users.h"
#include "common/log.h"
#include "common/slurm_client.h"
#include "common/slurm_queue.h"
#include "lib/roles.h"
#include "lib/strangers.h"
#include "lib/text.h"

#define ADMITTED_MS 600000 /* then Slurm is asked again */

struct operators {
    struct strangers strangers;
    bool asking;
    bool dropped; /* the leader is gone: to be freed with the answer */
};

struct question {
    struct operators *operators;
    struct leader *leader; /* gone, if the operators are dropped */
    uid_t uid;
    char **allow; /* of the service: who may have models trained; NULL: nobody */
    bool yes, guest;
};

struct operators *operators_create(void)
{
    return calloc(1, sizeof(struct operators));
}

void operators_destroy(struct operators *operators)
{
    if (operators != NULL && operators->asking)
        operators->dropped = true;
    else
        free(operators);
}

static void clear(struct question *question)
{
    strings_free(question->allow);
    free(question);
}

static void ask(void *arg)
{
    struct question *question = arg;
    struct error err = {""};

    if (slurm_client_is_operator(question->uid, &question->yes, &err) != 0)
        log_debug("is uid %u an operator? %s", question->uid, err.text);
    question->guest = !question->yes && user_is_allowed(question->uid, question->allow);
}

static void answered(void *arg)
{
    struct question *question = arg;

    question->operators->asking = false;
    if (question->operators->dropped)
        free(question->operators);
    else if ((question->yes || question->guest) && question->leader->server != NULL)
        link_server_admit(question->leader->server, question->uid, question->guest, ADMITTED_MS);
    clear(question);
}

void operators_stranger(struct leader *leader, uid_t uid)
{
    struct operators *operators = leader->operators;
    const struct roles *roles = leader->options->roles;
    struct question *question;

    if (operators->asking || leader->server == NULL || leader_has_ended(leader) ||
        !strangers_ask(&operators->strangers, uid, leader_now(leader)))
        return;
    question = calloc(1, sizeof(*question));
    if (question == NULL)
        return;
    *question = (struct question){.operators = operators, .leader = leader, .uid = uid};
    if (roles != NULL && roles->fit.allow != NULL)
        question->allow = strings_copy(roles->fit.allow);
    operators->asking = slurm_ask(leader->loop, ask, answered, question) == 0;
    if (!operators->asking)
        clear(question);
}
