/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Units of several nodes, which come and go as a whole (plan.h, --elastic-replica).
 *
 * A unit of a world is made of neighbours in rank order. One that has lost a node is broken: its
 * other nodes are spare, until they make up a unit with others. A unit is made of nodes of one job
 * where that is possible, so that an extension that leaves breaks no other unit. Where a unit is
 * one node, all of this is the order of the world. */
#include "lib/plan_private.h"

#include <stdlib.h>

int plan_unit(const struct plan_input *in)
{
    return in->replica > 1 ? in->replica : 1;
}

int *plan_units_create(const struct plan_input *in)
{
    int last = 0;

    for (int i = 0; i < in->member_count; i++)
        if (in->members[i].position > last)
            last = in->members[i].position;
    return calloc((size_t)(last / plan_unit(in)) + 1, sizeof(int));
}

bool plan_is_counted(const struct plan_input *in, const struct plan_output *out,
                     const struct plan_member *m, uint32_t without)
{
    return plan_is_eligible(in, out, m) && (m->base || m->job != without);
}

void plan_units_count(const struct plan_input *in, const struct plan_output *out, uint32_t without)
{
    int unit = plan_unit(in);

    for (int i = 0; i < in->member_count; i++)
        if (in->members[i].position >= 0)
            out->in_unit[in->members[i].position / unit] = 0;
    for (int i = 0; i < in->member_count; i++)
        if (in->members[i].position >= 0 && plan_is_counted(in, out, &in->members[i], without))
            out->in_unit[in->members[i].position / unit]++;
}

bool plan_is_whole(const struct plan_input *in, const struct plan_output *out,
                   const struct plan_member *m)
{
    int unit = plan_unit(in);

    return m->position >= 0 && out->in_unit[m->position / unit] == unit;
}

static int compare_positions(const void *a, const void *b)
{
    const struct plan_member *x = *(const struct plan_member *const *)a;
    const struct plan_member *y = *(const struct plan_member *const *)b;

    return x->position - y->position;
}

/* Base first, then by job and node. */
static int compare_jobs(const void *a, const void *b)
{
    const struct plan_member *x = *(const struct plan_member *const *)a;
    const struct plan_member *y = *(const struct plan_member *const *)b;

    if (x->base != y->base)
        return x->base ? -1 : 1;
    if (x->job != y->job)
        return x->job < y->job ? -1 : 1;
    return x->nodeid - y->nodeid;
}

/* Members of one job that are left over after whole units go behind all others. `rest` has room for
 * as many. */
static void leave_over(const struct plan_member **list, int count, int unit,
                       const struct plan_member **rest)
{
    int kept = 0, over = 0;

    for (int first = 0, next; first < count; first = next) {
        for (next = first; next < count && list[next]->job == list[first]->job &&
                           list[next]->base == list[first]->base;)
            next++;
        for (int i = first; i < next; i++) {
            if (i < next - (next - first) % unit)
                list[kept++] = list[i];
            else
                rest[over++] = list[i];
        }
    }
    for (int i = 0; i < over; i++)
        list[kept + i] = rest[i];
}

int plan_units_sort(const struct plan_input *in, const struct plan_output *out,
                    const struct plan_member **list, int count)
{
    const struct plan_member **rest = calloc((size_t)count + 1, sizeof(*rest));
    int whole = 0, others = 0;

    if (rest == NULL)
        return -1;
    plan_units_count(in, out, 0);
    for (int i = 0; i < count; i++) {
        if (plan_is_whole(in, out, list[i]))
            list[whole++] = list[i];
        else
            rest[others++] = list[i];
    }
    for (int i = 0; i < others; i++)
        list[whole + i] = rest[i];
    qsort(list, (size_t)whole, sizeof(*list), compare_positions);
    qsort(list + whole, (size_t)others, sizeof(*list), compare_jobs);
    leave_over(list + whole, others, plan_unit(in), rest);
    free(rest);
    return whole;
}
