/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the workers of a world do together: they meet, and make steps that are complete when all
 * have made them. */
#include "tests/sim/sim.h"

#define JITTER (3 * MS) /* between the nodes at a boundary */

struct meeting {
    struct meeting *next;
    struct training *training;
    uint32_t restarts; /* of the job */
    int generation, attempt, nodes, arrived, begun;
    struct workers **members; /* by their place; NULL: not there (any more) */
    bool forming, formed, broken, waits, noticed;
    int64_t base;  /* steps that had been made before */
    int64_t round; /* … and in this world */
    char kind[16];
};

struct training trainings[TRAININGS_MAX];
int training_count;

struct training *training_add(const struct training *settings)
{
    struct training *training = &trainings[training_count++];

    MUST(training_count <= TRAININGS_MAX);
    free(training->world_file);
    free(training->ledger);
    *training = *settings;
    training_begin_incarnation(training);
    return training;
}

/* Its workers know nothing of those before, but for a checkpoint. */
void training_begin_incarnation(struct training *training)
{
    training->meetings = NULL;
    training->newest = training->size = 0;
    training->places = NULL;
    training->made = 0;
    training->newest_at = training->progress = clock_now();
    memset(&training->acts, 0, sizeof(training->acts));
    training->acts.term = -1;
}

static bool complete(const struct meeting *meeting)
{
    const struct node *first;

    for (int i = 0; i < meeting->nodes; i++)
        if (meeting->members[i] == NULL || !workers_runs(meeting->members[i]))
            return false;
    first = meeting->members[0]->host->node;
    for (int i = 1; i < meeting->nodes; i++)
        if (!network_reaches(first, meeting->members[i]->host->node))
            return false;
    return true;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void at_boundary(void *arg)
{
    struct workers *set = arg;

    if (set->meeting != NULL && set->state == SET_STEPPING)
        workers_boundary(set);
}

/* Somebody has left between two steps: all others are in the next one, which never ends. */
static bool waits_for_leaver(const struct meeting *meeting)
{
    int present = 0;

    for (int i = 0; i < meeting->nodes; i++)
        present += meeting->members[i] != NULL;
    return meeting->formed && meeting->broken && meeting->begun > 0 && meeting->begun >= present;
}

static void note_loss(struct meeting *meeting)
{
    bool lost = meeting->broken;

    meeting->waits = meeting->waits || waits_for_leaver(meeting);
    for (int i = 0; i < meeting->nodes && !lost; i++) {
        const struct workers *set = meeting->members[i];

        for (int k = 0; set != NULL && k < set->count; k++)
            lost = lost || set->list[k].ended;
    }
    if (!lost || !meeting->waits || meeting->noticed)
        return;
    meeting->broken = true;
    for (int i = 0; i < meeting->nodes; i++)
        if (meeting->members[i] != NULL && (!meeting->noticed || chance_percent(50))) {
            meeting->noticed = true;
            workers_peer_lost(meeting->members[i]);
        }
}

static void finish_step(void *arg)
{
    struct meeting *meeting = arg;

    meeting->waits = meeting->broken || !complete(meeting);
    if (meeting->waits) {
        note_loss(meeting);
        return;
    }
    meeting->round++;
    invariants_committed(meeting->training, meeting->restarts, meeting->generation,
                         meeting->base + meeting->round);
    for (int i = 0; i < meeting->nodes; i++) {
        struct workers *set = meeting->members[i];

        set->have = meeting->base + meeting->round;
        clock_in(chance_between(0, JITTER), NULL, at_boundary, set);
    }
}

void meeting_begun_step(struct meeting *meeting)
{
    uint64_t step = meeting->training->step /
                    (uint64_t)(meeting->training->works ? meeting->nodes : 1);
    int drag = 100; /* of the slowest */

    if (++meeting->begun < meeting->nodes) {
        note_loss(meeting);
        return;
    }
    meeting->begun = 0;
    for (int i = 0; i < meeting->nodes; i++)
        if (meeting->members[i] != NULL && node_drag(meeting->members[i]->host->node) > drag)
            drag = node_drag(meeting->members[i]->host->node);
    step = step * (uint64_t)drag / 100;
    clock_in(step / 2 + chance_between(0, step / 2), NULL, finish_step, meeting);
}

/* ---- meeting --------------------------------------------------------------------------------- */

static void form(void *arg)
{
    struct meeting *meeting = arg;
    int64_t best = -1;

    meeting->forming = false;
    if (meeting->formed || meeting->broken || !complete(meeting))
        return;
    for (int i = 0; i < meeting->nodes; i++)
        if (meeting->members[i]->have > best)
            best = meeting->members[i]->have;
    meeting->formed = true;
    meeting->base = best >= 0 ? best : meeting->training->checkpoint;
    if (meeting->generation > meeting->training->newest)
        invariants_units(meeting->training, meeting->members, meeting->nodes);
    invariants_formed(meeting->training, meeting->generation, meeting->kind, meeting->nodes,
                      meeting->base, best);
    for (int i = 0; i < meeting->nodes; i++)
        workers_meet(meeting->members[i], meeting->base);
}

static void try_form(struct meeting *meeting)
{
    if (meeting->formed || meeting->forming || meeting->broken ||
        meeting->arrived < meeting->nodes || !complete(meeting))
        return;
    meeting->forming = true;
    clock_in(meeting->training->init, NULL, form, meeting);
}

static struct meeting *find(const struct workers *set, int generation, int attempt, int nodes)
{
    struct training *training = set->training;
    struct meeting *meeting = training->meetings;

    while (meeting != NULL && (meeting->generation != generation || meeting->attempt != attempt ||
                               meeting->restarts != set->host->restarts_of_base))
        meeting = meeting->next;
    if (meeting != NULL)
        return meeting;
    meeting = calloc(1, sizeof(*meeting));
    MUST(meeting != NULL);
    meeting->members = calloc((size_t)nodes, sizeof(struct workers *));
    MUST(meeting->members != NULL);
    meeting->training = training;
    meeting->restarts = set->host->restarts_of_base;
    meeting->generation = generation;
    meeting->attempt = attempt;
    meeting->nodes = nodes;
    memcpy(meeting->kind, set->kind, sizeof(meeting->kind));
    meeting->next = training->meetings;
    training->meetings = meeting;
    return meeting;
}

struct meeting *meeting_arrive(struct workers *set, int generation, int attempt, int index,
                               int nodes)
{
    struct meeting *meeting = find(set, generation, attempt, nodes);

    if (meeting->nodes != nodes || index >= nodes || meeting->members[index] != NULL) {
        violation("generation %d: %s is its node %d of %d, others know it otherwise", generation,
                  host_name(set->host), index, nodes);
        return meeting;
    }
    meeting->members[index] = set;
    meeting->arrived++;
    set->meeting = meeting;
    try_form(meeting);
    return meeting;
}

void meeting_leave(struct meeting *meeting, struct workers *set)
{
    if (set->index < meeting->nodes && meeting->members[set->index] == set)
        meeting->members[set->index] = NULL;
    if (!set->list[0].ended && set->state != SET_STEPPING && set->state != SET_MEETING)
        return;
    meeting->broken = meeting->broken || set->list[0].ended || !meeting->formed;
}

static void look_again(void *arg)
{
    (void)arg;
    for (int i = 0; i < training_count; i++)
        for (struct meeting *meeting = trainings[i].meetings; meeting != NULL;
             meeting = meeting->next) {
            try_form(meeting);
            note_loss(meeting);
            if (meeting->waits && !meeting->broken)
                finish_step(meeting);
        }
}

void training_changed(void)
{
    clock_in(0, NULL, look_again, NULL);
}
