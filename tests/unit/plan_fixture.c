/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Situations for the tests of lib/plan (plan_fixture.h). */
#include "tests/unit/support.h"

#include "tests/unit/plan_fixture.h"

static struct sizes parse(const char *text)
{
    struct sizes sizes;
    struct error err = {""};

    if (sizes_parse(text, &sizes, &err) != 0)
        fail_msg("%s", err.text);
    return sizes;
}

void scene_init(struct scene *s, const char *sizes)
{
    memset(s, 0, sizeof(*s));
    s->sizes = parse(sizes);
    s->pool = (struct plan_pool){.name = "elastic", .room = SIZES_NODES_MAX};
    s->in = (struct plan_input){
        .now = 1000,
        .sizes = &s->sizes,
        .base_nodes = s->sizes.min,
        .target = s->sizes.max,
        .max_pending = 2,
        .grow_delay = 60,
        .generation_since = -1,
        .setbacks.last = -1,
        .stands_since = -1,
        .pools = &s->pool,
        .pool_count = 1,
        .members = s->members,
        .extensions = s->extensions,
    };
}

void scene_add_members(struct scene *s, uint32_t job, int count, bool in_world)
{
    for (int i = 0; i < count; i++) {
        struct plan_member *m = &s->members[s->in.member_count];

        *m = (struct plan_member){.id = ++s->next_id,
                                  .job = job,
                                  .base = job == 1,
                                  .usable = true,
                                  .position = in_world ? s->in.member_count : -1,
                                  .nodeid = i,
                                  .joined = s->in.now - 100};
        s->in.member_count++;
    }
}

struct plan_extension *scene_add_extension(struct scene *s, uint32_t job, int nodes,
                                           enum plan_extension_state state, double age)
{
    struct plan_extension *ext = &s->extensions[s->in.extension_count++];

    *ext = (struct plan_extension){
        .job = job, .nodes = nodes, .state = state, .since = s->in.now - age, .pool = "elastic"};
    return ext;
}

struct plan_output scene_decide(struct scene *s)
{
    struct plan_output out;

    assert_int_equal(plan_decide(&s->in, &out), 0);
    return out;
}

void scene_request_all(struct scene *s, const char *what, const int *expected)
{
    for (int i = 0;; i++) {
        struct plan_output out = scene_decide(s);

        if (out.submit != expected[i])
            fail_msg("%s: request %d is of %d nodes, expected %d", what, i, out.submit,
                     expected[i]);
        plan_clear(&out);
        if (out.submit == 0)
            break;
        s->in.last_increments = out.submit_increments;
        scene_add_extension(s, (uint32_t)(10 + i), out.submit, PLAN_PENDING, 0);
    }
}

void scene_remove_member(struct scene *s, int i)
{
    memmove(&s->members[i], &s->members[i + 1],
            (size_t)(s->in.member_count - i - 1) * sizeof(s->members[0]));
    s->in.member_count--;
}

void scene_remove_extension(struct scene *s, int i)
{
    for (int k = s->in.member_count - 1; k >= 0; k--)
        if (s->members[k].job == s->extensions[i].job)
            scene_remove_member(s, k);
    memmove(&s->extensions[i], &s->extensions[i + 1],
            (size_t)(s->in.extension_count - i - 1) * sizeof(s->extensions[0]));
    s->in.extension_count--;
}

void scene_drop_extension(struct scene *s, uint32_t job)
{
    for (int i = s->in.extension_count - 1; i >= 0; i--)
        if (s->extensions[i].job == job)
            scene_remove_extension(s, i);
}

int scene_enter_world(struct scene *s, const struct plan_output *out, bool shares)
{
    int holders = 0;

    s->in.generation_since = s->in.now;
    for (int i = 0; i < s->in.member_count; i++) {
        struct plan_member *m = &s->members[i];

        m->position = -1;
        for (int k = 0; k < out->size; k++)
            if (out->order[k] == m->id)
                m->position = k;
        m->has_state = m->has_state && m->position >= 0;
        holders += m->has_state;
        m->has_state = m->position >= 0 && (m->has_state || shares);
    }
    return holders;
}

int scene_add_word(struct scene *s, uint32_t job, const char *word)
{
    int lost = 0;

    for (; *word != '\0' && *word != '!'; word++) {
        struct plan_member *m = &s->members[s->in.member_count];

        scene_add_members(s, job, 1, strchr("HFg", *word) != NULL);
        m->has_state = *word == 'H' || *word == 'g';
        m->usable = *word != 'u';
        m->going = *word == 'g';
        lost += m->going;
    }
    return lost;
}
