/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What can happen to a job, by a line of words. */
#include <signal.h>

#include "tests/sim/sim.h"

#define WORDS_MAX 6
#define NOTICED   (2 * SECOND) /* job_submit/elastic looks so often */

static struct training *subject = trainings; /* of the line */

struct training *fault_subject(const char **line)
{
    bool second = strncmp(*line, "second ", 7) == 0 && training_count > 1;

    *line += second ? 7 : 0;
    subject = &trainings[second];
    return subject;
}

/* ---- who is meant ---------------------------------------------------------------------------- */

static struct host *agent_on(struct node *node)
{
    for (struct host *host = node->hosts; host != NULL; host = host->next_on_node)
        if (!host->done)
            return host;
    return NULL;
}

static struct host *leader(void)
{
    struct host *found = NULL;

    for (struct host *host = host_list(); host != NULL; host = host->next)
        if (host->base && host->job == subject->base && host->restarts == host->job->restarts &&
            host->term >= 0 && (found == NULL || host->term > found->term))
            found = host;
    return found;
}

static struct job *newest_extension(void)
{
    struct job *found = NULL;

    for (struct job *job = slurm_jobs(); job != NULL; job = job->next)
        if (!job->base && job->training == subject && job->state == SLURM_RUNNING &&
            job->preempted == 0)
            found = job;
    return found;
}

static struct node *any_node(void)
{
    int start = (int)chance((uint32_t)node_count());

    for (int i = 0; i < node_count(); i++) {
        struct node *node = node_at((start + i) % node_count());

        if (agent_on(node) != NULL && agent_on(node)->job->training == subject)
            return node;
    }
    return NULL;
}

/* "n3", "leader", "base" (another of it), "extension", "any". NULL: there is none now. */
static struct node *node_of(const char *word)
{
    struct host *leads = leader();

    if (strcmp(word, "leader") == 0)
        return leads != NULL ? leads->node : NULL;
    if (strcmp(word, "extension") == 0)
        return newest_extension() != NULL ? newest_extension()->nodes[0] : NULL;
    if (strcmp(word, "base") == 0) {
        for (struct host *host = host_list(); host != NULL; host = host->next)
            if (host->base && host->job == subject->base && host != leads && !host->done)
                return host->node;
        return NULL;
    }
    if (strcmp(word, "any") == 0)
        return any_node();
    return node_named(word);
}

const char *fault_target(const char *word)
{
    static const char *const roles[] = {"leader", "base", "extension", "any"};
    struct node *node;

    for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
        if (strcmp(word, roles[i]) == 0) {
            node = node_of(word);
            return node != NULL ? node->name : "";
        }
    return NULL;
}

/* ---- what happens ---------------------------------------------------------------------------- */

void fault_hurt(struct node *node)
{
    for (struct host *host = node->hosts; host != NULL; host = host->next_on_node)
        host->job->training->faults++;
    if (node->job != NULL) {
        node->job->training->faults++;
        node->job->excused = true;
    }
}

static void worker(struct node *node, const char *verb, const char *code, bool next)
{
    struct workers *set = next ? node->sets : workers_on(node);

    if (set == NULL || set->state >= SET_LEAVING || (next && set->state > SET_AT_GATE))
        return;
    /* Before the first step of its life a worker may take any time. */
    if (strcmp(verb, "hang") == 0 && set->slowest == 0)
        return;
    fault_hurt(node);
    if (strcmp(verb, "kill") == 0)
        workers_crash(set, SIGKILL, 0);
    else if (strcmp(verb, "stop") == 0)
        workers_freeze(set);
    else if (strcmp(verb, "hang") == 0)
        workers_hang(set);
    else
        workers_crash(set, 0, code != NULL ? atoi(code) : 1);
}

static void agent(struct node *node, const char *verb)
{
    struct host *host = agent_on(node);

    if (host == NULL)
        return;
    if (strcmp(verb, "continue") == 0) {
        host_continue(host);
        return;
    }
    fault_hurt(node);
    if (strcmp(verb, "kill") == 0)
        host_kill(host);
    else
        host_stop(host);
}

static bool is_one_of(const char *word, const char *list)
{
    size_t len = strlen(word);

    for (const char *at = list; (at = strstr(at, word)) != NULL; at += len)
        if ((at == list || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
            return true;
    return false;
}

/* slurmctld's plugin has seen it: the job that has the node, now, is signalled. */
static void notice(void *arg)
{
    const struct node *node = arg;

    for (struct host *host = host_list(); host != NULL; host = host->next)
        if (node->job != NULL && host->job == node->job && host->node->up && !host->node->frozen)
            host_notice(host);
}

static void set_drained(struct node *node, bool drained)
{
    if (node->drained == drained)
        return;
    node->drained = drained;
    if (!drained)
        slurm_try_soon();
    if (setup_now->notices)
        clock_in(NOTICED, NULL, notice, node);
}

/* By Slurm, for whatever reason: idle for long, another job. */
static void node_power(struct node *node, bool up)
{
    node->asleep = !up;
    node->since = clock_now();
    slurm_try_soon();
}

static void whole_node(struct node *node, const char *verb, const char *seconds)
{
    if (is_one_of(verb, "crash freeze cut squat") || (seconds != NULL && strcmp(verb, "drag") != 0))
        fault_hurt(node);
    if (strcmp(verb, "crash") == 0)
        node_crash(node);
    else if (strcmp(verb, "return") == 0)
        node_return(node);
    else if (strcmp(verb, "freeze") == 0)
        node_freeze(node, true);
    else if (strcmp(verb, "thaw") == 0)
        node_freeze(node, false);
    else if (strcmp(verb, "cut") == 0)
        node_cut(node, 1 + node->number);
    else if (strcmp(verb, "heal") == 0)
        node_cut(node, 0);
    else if (strcmp(verb, "reclaim") == 0)
        node_reclaim(node, seconds != NULL ? atoi(seconds) : 0);
    else if (strcmp(verb, "drag") == 0)
        node->drag = seconds != NULL ? atoi(seconds) : 0;
    else if (strcmp(verb, "advise") == 0)
        node_advise(node);
    else if (strcmp(verb, "mute") == 0)
        node_mute(node);
    else if (strcmp(verb, "squat") == 0)
        node->squatted = true;
    else if (is_one_of(verb, "doze wake"))
        node_power(node, strcmp(verb, "wake") == 0);
    else
        set_drained(node, strcmp(verb, "drain") == 0);
}

static struct job *first_extension(void)
{
    for (struct job *job = slurm_jobs(); job != NULL; job = job->next)
        if (!job->base && job->training == subject)
            return job;
    return NULL;
}

struct job *fault_job(const char *word)
{
    return strcmp(word, "last") == 0    ? newest_extension()
           : strcmp(word, "first") == 0 ? first_extension()
           : strcmp(word, "job") == 0   ? subject->base
                                        : slurm_job((uint32_t)atoi(word));
}

static bool do_to_job(char **words)
{
    struct job *job = fault_job(words[1]);

    if (job == NULL)
        return true;
    if (strcmp(words[0], "preempt") == 0)
        slurm_preempt(job,
                      words[2] != NULL ? (uint64_t)(atof(words[2]) * (double)SECOND) : 20 * SECOND);
    else if (strcmp(words[0], "cancel") == 0)
        slurm_cancel(job);
    else if (strcmp(words[0], "requeue") == 0)
        slurm_requeue(job);
    else if (strcmp(words[0], "limit") == 0) /* so many seconds from now */
        slurm_limit(job, clock_now() - job->started + (uint64_t)atoi(words[2]) * SECOND);
    else
        slurm_forget(job);
    return true;
}

/* As selastic does: "resize 4", "ask show". */
static void ask(char **words)
{
    bool resize = strcmp(words[0], "resize") == 0;
    json_object *msg;

    if (leader() == NULL)
        return;
    msg = json_object_new_object();
    json_object_object_add(msg, "t", json_object_new_string(words[resize ? 0 : 1]));
    if (resize)
        json_object_object_add(msg, "nodes", json_object_new_int(atoi(words[1])));
    network_ask(leader(), msg);
}

static bool do_words(char **words)
{
    struct node *node;

    if (words[0] == NULL || words[1] == NULL)
        return false;
    if (cloud_do(NULL, 0, words))
        return true;
    if (strcmp(words[0], "slurm") == 0 && is_one_of(words[1], "down up")) {
        slurm_down(strcmp(words[1], "down") == 0);
        return true;
    }
    if (strcmp(words[0], "slurm") == 0 && is_one_of(words[1], "refuses accepts")) {
        slurm_refuses = strcmp(words[1], "refuses") == 0;
        return true;
    }
    if (strcmp(words[0], "slurm") == 0 && is_one_of(words[1], "breaks mends")) {
        slurm_breaks = strcmp(words[1], "breaks") == 0; /* whatever extension starts */
        return true;
    }
    if (strcmp(words[0], "slurm") == 0 && is_one_of(words[1], "loses finds")) {
        slurm_loses = strcmp(words[1], "loses") == 0; /* … the nodes of it */
        return true;
    }
    if (is_one_of(words[0], "ask resize")) {
        ask(words);
        return true;
    }
    if (is_one_of(words[0], "preempt cancel requeue limit forget"))
        return do_to_job(words);
    if (is_one_of(words[1], "worker newcomer agent") && words[2] != NULL) {
        node = node_of(words[2]);
        if (node != NULL && strcmp(words[1], "agent") != 0)
            worker(node, words[0], words[3], strcmp(words[1], "newcomer") == 0);
        else if (node != NULL)
            agent(node, words[0]);
        return true;
    }
    if (!is_one_of(words[0],
                   "crash return freeze thaw cut heal reclaim advise drag mute squat drain "
                   "resume doze wake"))
        return false;
    node = node_of(words[1]);
    if (node != NULL)
        whole_node(node, words[0], words[2]);
    return true;
}

bool fault_do(const char *line, char *text, size_t size)
{
    char copy[128], *words[WORDS_MAX + 1] = {NULL}, *rest = copy;
    int count = 0;

    trace("----- %s", line);
    fault_subject(&line);
    snprintf(copy, sizeof(copy), "%s", line);
    for (char *word; count < WORDS_MAX && (word = strsep(&rest, " \t")) != NULL;)
        if (word[0] != '\0')
            words[count++] = word;
    if (do_words(words))
        return true;
    snprintf(text, size, "not understood: %s", line);
    return false;
}
