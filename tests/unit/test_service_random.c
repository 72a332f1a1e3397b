/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/service, and around it what a job has: replicas that are late, fail, and are started again, a
 * router that is late, files, leaders that die, and jobs that take the service from each other.
 * After each event every request that could come has somebody who answers it. A leader that dies
 * between any two actions has a successor that comes to the same end. */
#include "lib/json_text.h"
#include "lib/service.h"
#include "tests/unit/support.h"

#include <stdbool.h>

#define HISTORIES RANDOM_ROUNDS(60)
#define MODELS    10
#define SHARDS    4
#define CAPACITY  10
#define REPLICAS  600 /* of all shards, with those that are about to go */
#define TABLES    64  /* that the router has not confirmed */
#define HOLD      60  /* seconds for the router to drain a replica */

struct own_replica {
    struct service_replica is;
    int job;
    bool models[MODELS]; /* that it has loaded */
    bool bad, told;      /* it never gets ready; it has been told to end */
    char application;    /* that it was started with */
    bool old;            /* a job in between may have given up its shard */
    double due;          /* when it is ready, has failed, may start, or is gone */
    double loads;        /* in place: when it has loaded the list, or could not; 0: it has it */
};

struct own_shard {
    int list[MODELS]; /* versions; 0: not in the file */
    bool there;
    int64_t version, program; /* of replicas that are started now … */
    char application;         /* … and what they are started with */
    int target;
    bool open; /* the leader has said how many there should be */
};

/* What a table says, read once: it is looked at after each event, and the search for keys and names
 * would take a third of the test's time. */
struct routing {
    int route_count, ready_count;
    struct {
        int model, shard;
    } routes[MODELS];
    struct {
        int list, shard, start; /* list: of this shard; the others are its name */
    } ready[REPLICAS];
};

struct table {
    json_object *json;
    struct routing *routing;
    int job;
    double from, confirmed; /* when it takes effect, when the last request of before has ended */
    bool holds;
};

struct sim {
    uint64_t seed;
    struct service_options options;
    struct service *s;
    char *record, *table; /* as written */
    double now;
    struct own_shard shards[SHARDS + 1];
    struct own_replica replicas[REPLICAS]; /* by id */
    int count, last_id, last_start;
    struct table tables[TABLES]; /* the first one holds */
    int table_count;
    int64_t confirmed;
    bool in_use[MODELS]; /* it is in the repository, with: */
    int version[MODELS];
    bool bad[MODELS];
    bool asks[MODELS]; /* somebody asks for it */
    int carried, cut, room;
    bool calm, even; /* nothing fails; nothing is by chance */
    bool router;     /* there is one */
    char wanted;     /* the application that somebody has applied last; 0: nobody has */
    int job;         /* that has the service … */
    int old_start;   /* … the last start of the job before */
    bool handed;     /* replicas of the job before are there yet */
    bool looked;     /* the repository has been said */
    int handovers, backs;
};

static int roll(struct sim *m, int sides)
{
    return m->even ? 0 : (int)random_below(&m->seed, (uint32_t)sides);
}

static int size_of(int model, int version)
{
    return 1 + (model * 5 + version * 7) % 6;
}

static int ready_of(const struct sim *m, int shard)
{
    int ready = 0;

    for (int i = 0; i < m->count; i++)
        ready += m->replicas[i].job == m->job && m->replicas[i].is.shard == shard &&
                 m->replicas[i].is.state == SERVICE_READY;
    return ready;
}

/* ---- what must hold -------------------------------------------------------------------------- */

static int number_in(const char *name)
{
    return atoi(strchr(name, '_') != NULL ? strchr(name, '_') + 1 : name + 1);
}

static json_object *member(json_object *json, const char *key)
{
    json_object *value = json_object_object_get(json, key);

    assert_non_null(value);
    return value;
}

static struct routing *read_routing(json_object *table)
{
    json_object *routes = member(table, "routes"), *shards = member(table, "shards");
    struct routing *routing = calloc(1, sizeof(*routing));

    assert_non_null(routing);
    for (size_t i = 0; i < json_object_array_length(routes); i++) {
        json_object *route = json_object_array_get_idx(routes, i);

        assert_true(routing->route_count < MODELS);
        routing->routes[routing->route_count].model = number_in(
            json_object_get_string(member(route, "key")));
        routing->routes[routing->route_count++].shard = number_in(
            json_object_get_string(member(route, "shard")));
    }
    for (size_t i = 0; i < json_object_array_length(shards); i++) {
        json_object *one = json_object_array_get_idx(shards, i), *list = member(one, "replicas");
        int shard = number_in(json_object_get_string(member(one, "name")));

        for (size_t k = 0; k < json_object_array_length(list); k++) {
            json_object *replica = json_object_array_get_idx(list, k);
            const char *name = json_object_get_string(member(replica, "name"));
            const char *dot = strchr(name, '.');

            if (strcmp(json_object_get_string(member(replica, "state")), "ready") != 0)
                continue;
            assert_true(routing->ready_count < REPLICAS);
            routing->ready[routing->ready_count].list = shard;
            routing->ready[routing->ready_count].shard = number_in(name);
            routing->ready[routing->ready_count++].start = dot != NULL ? atoi(dot + 1) : -1;
        }
    }
    return routing;
}

/* That replica, as long as it answers. */
static const struct own_replica *replica_named(const struct sim *m, int job, int shard, int start)
{
    for (int i = 0; i < m->count; i++) {
        const struct own_replica *r = &m->replicas[i];

        if (r->job == job && r->is.shard == shard && r->is.start == start &&
            (r->is.state == SERVICE_READY || (r->is.state == SERVICE_LEAVES && !r->told)))
            return r;
    }
    return NULL;
}

/* Whoever gets requests of a shard has the model. now: there is one who does. */
static void check_shard(const struct sim *m, const struct table *of, int model, int shard, bool now)
{
    const struct routing *routing = of->routing;
    int answer = 0;

    for (int i = 0; i < routing->ready_count; i++) {
        const struct own_replica *r;

        if (routing->ready[i].list != shard)
            continue;
        r = replica_named(m, of->job, routing->ready[i].shard, routing->ready[i].start);
        if (r == NULL)
            continue;
        if (!r->models[model])
            fail_msg("at %.1f %s (version %lld, state %d) gets requests for m%d, which it does "
                     "not have; table: %s",
                     m->now, service_replica_name(r->is.shard, r->is.start).text,
                     (long long)r->is.version, (int)r->is.state, model,
                     json_object_to_json_string(of->json));
        answer++;
    }
    if (now && answer == 0)
        fail_msg("at %.1f nobody answers for m%d of shard_%d", m->now, model, shard);
}

static void check_table(const struct sim *m, const struct table *table, bool now)
{
    const struct routing *routing = table->routing;

    for (int i = 0; i < routing->route_count; i++)
        check_shard(m, table, routing->routes[i].model, routing->routes[i].shard, now);
}

/* By the routes that hold there is an answer. What came by routes before finds its model, too. */
static void check(const struct sim *m)
{
    if (m->table_count == 0)
        return;
    for (int i = 0; i < m->table_count && m->tables[i].holds; i++) {
        bool last = i + 1 == m->table_count || !m->tables[i + 1].holds;

        check_table(m, &m->tables[i], last);
    }
}

/* ---- the leader ------------------------------------------------------------------------------ */

static json_object *parse(const char *text)
{
    return text != NULL ? json_text_parse(text, strlen(text), NULL) : NULL;
}

static void lead(struct sim *m)
{
    json_object *record = parse(m->record), *table = parse(m->table);
    struct error err = {""};

    m->options.job = (uint32_t)m->job;
    m->options.application = m->job % 2 != 0 ? "a" : "d"; /* job files differ */
    m->s = service_create(&m->options, record, table, m->now, &err);
    json_object_put(record);
    json_object_put(table);
    assert_string_equal(err.text, "");
    assert_non_null(m->s);
    /* Who asks for the table says its name. */
    assert_true(service_routed(m->s, "r", 0, -1, NULL, m->now));
    m->looked = false;
    if (m->handed && m->tables[m->table_count - 1].job != m->job)
        service_hold(m->s, SERVICE_HOLD_WHOLE);
}

/* One with which no replica gets ready. */
#define BAD_APPLICATION 'c'

static void apply(struct sim *m, char application)
{
    char text[] = {application, '\0'};

    m->wanted = application;
    assert_int_equal(service_apply(m->s, text, m->now), 0);
}

/* The leader has died before it could write down what somebody has applied: he says it again. */
static void apply_again(struct sim *m)
{
    char text[] = "\"to\":\"x\"";

    text[sizeof(text) - 3] = m->wanted;
    if (m->wanted != 0 && (m->record == NULL || strstr(m->record, text) == NULL))
        apply(m, m->wanted);
}

static void remove_replica(struct sim *m, int i)
{
    m->count--;
    memmove(&m->replicas[i], &m->replicas[i + 1], (size_t)(m->count - i) * sizeof(m->replicas[0]));
}

static void say_models(struct sim *m)
{
    struct service_model list[MODELS];
    char names[MODELS][8], keys[MODELS][8], versions[MODELS][12];
    int count = 0;

    if (service_holds(m->s))
        return;
    m->looked = true;
    for (int i = 0; i < MODELS; i++) {
        if (!m->in_use[i])
            continue;
        snprintf(names[i], sizeof(names[i]), "m%d", i);
        snprintf(keys[i], sizeof(keys[i]), "k%d", i);
        snprintf(versions[i], sizeof(versions[i]), "v%d", m->version[i]);
        list[count++] = (struct service_model){
            names[i], versions[i], keys[i], size_of(i, m->version[i]), 0, NULL};
    }
    assert_int_equal(service_models(m->s, list, count, m->now), 0);
}

/* The next leader takes over what runs, and knows nothing of what waits, or was about to end. */
static void crash(struct sim *m)
{
    service_destroy(m->s);
    for (int i = m->count - 1; i >= 0; i--) {
        struct own_replica *r = &m->replicas[i];

        if (r->job != m->job)
            continue;
        if (r->is.state == SERVICE_WAITS || r->told)
            remove_replica(m, i);
        else if (r->is.state == SERVICE_LEAVES)
            r->is.state = SERVICE_READY;
    }
    for (int i = 0; i < m->count; i++)
        m->replicas[i].is.failures = 0;
    for (int shard = 1; shard <= SHARDS; shard++)
        m->shards[shard].open = false;
    lead(m);
    say_models(m);
    apply_again(m);
}

static void lead_anew(struct sim *m)
{
    service_destroy(m->s);
    for (int shard = 1; shard <= SHARDS; shard++) {
        m->shards[shard].open = m->shards[shard].there = false;
        m->shards[shard].target = 0;
    }
    m->wanted = 0; /* its job file may say something else */
    lead(m);
    say_models(m);
}

static int list_own(const struct sim *m, struct service_replica *list)
{
    int count = 0;

    for (int i = 0; i < m->count; i++)
        if (m->replicas[i].job == m->job)
            list[count++] = m->replicas[i].is;
    return count;
}

/* It says no more than which of its replicas are there. */
static void check_frozen(struct sim *m)
{
    struct service_replica list[REPLICAS];
    struct service_actions actions = {0};
    bool again = true;

    service_freeze(m->s, true);
    assert_int_equal(service_run(m->s, m->now, list, list_own(m, list), &actions, &again), 0);
    assert_false(again);
    for (int i = 0; i < actions.count; i++)
        assert_int_equal(actions.list[i].kind, SERVICE_TABLE);
    assert_true(service_deadline(m->s, m->now) == 0);
    service_actions_clear(&actions);
}

/* Another job takes the service. What this one has stays as it is. */
static void hand_over(struct sim *m)
{
    if (m->handed || m->table_count == 0)
        return;
    for (int i = m->count - 1; i >= 0; i--)
        if (m->replicas[i].is.state == SERVICE_WAITS || m->replicas[i].is.state == SERVICE_STARTS ||
            m->replicas[i].told)
            remove_replica(m, i);
    check_frozen(m);
    m->handed = true;
    m->job++;
    m->handovers++;
    m->old_start = m->last_start;
    m->last_start = 0; /* jobs give the same numbers */
    lead_anew(m);
}

/* It dies before its table is out: the job before has the service again. */
static void hand_back(struct sim *m)
{
    if (!m->handed || m->tables[m->table_count - 1].job == m->job)
        return;
    for (int i = m->count - 1; i >= 0; i--)
        if (m->replicas[i].job == m->job)
            remove_replica(m, i);
    m->handed = false;
    m->job--;
    m->backs++;
    m->last_start = m->old_start;
    for (int i = 0; i < m->count; i++) {
        m->replicas[i].old = true;
        if (m->replicas[i].is.state == SERVICE_LEAVES)
            m->replicas[i].due = m->now + HOLD;
    }
    lead_anew(m);
}

/* Routers have left the job before, and it ends. */
static void pass_handover(struct sim *m)
{
    if (!service_holds(m->s) && !m->looked)
        say_models(m);
    if (!m->handed || m->table_count == 0 || m->tables[0].job != m->job || !m->tables[0].holds)
        return;
    for (int i = m->count - 1; i >= 0; i--)
        if (m->replicas[i].job != m->job)
            remove_replica(m, i);
    m->handed = false;
}

static void keep(char **text, const char *now)
{
    free(*text);
    *text = strdup(now);
}

static void set_list(struct sim *m, const struct service_action *action)
{
    struct own_shard *shard = &m->shards[action->shard];
    int size = 0;

    shard->there = true;
    shard->version = action->version;
    shard->program = action->program;
    shard->application = action->text[0];
    memset(shard->list, 0, sizeof(shard->list));
    for (int i = 0; i < action->count; i++) {
        int model = number_in(action->items[i].name);

        shard->list[model] = number_in(action->items[i].version);
        size += size_of(model, shard->list[model]);
    }
    assert_true(size <= CAPACITY);
    /* A program that reads the file may drop at once what it does not name. */
    for (int i = 0; i < m->count; i++) {
        struct own_replica *r = &m->replicas[i];

        for (int model = 0; r->is.shard == action->shard && model < MODELS; model++)
            r->models[model] &= shard->list[model] > 0;
        if (r->is.shard == action->shard && r->is.state == SERVICE_READY)
            r->loads = m->now + 0.3 + roll(m, 4);
    }
}

static void set_table(struct sim *m, const char *text)
{
    double after = m->table_count > 0 ? m->tables[m->table_count - 1].from : m->now;
    struct table *table = &m->tables[m->table_count];

    assert_true(m->table_count < TABLES);
    keep(&m->table, text);
    m->table_count++;
    *table = (struct table){.json = parse(text), .job = m->job};
    assert_non_null(table->json);
    table->routing = read_routing(table->json);
    table->from = (after > m->now ? after : m->now) + 0.1 + roll(m, 3);
    table->confirmed = table->from + 0.1 + roll(m, 3);
}

static void end_replica(struct sim *m, int id)
{
    for (int i = 0; i < m->count; i++) {
        struct own_replica *r = &m->replicas[i];

        if (r->is.id != id)
            continue;
        m->shards[r->is.shard].target--;
        if (r->is.state == SERVICE_WAITS) {
            remove_replica(m, i);
            return;
        }
        r->is.state = SERVICE_LEAVES;
        r->due = m->now + HOLD;
        return;
    }
}

static bool carry_out(struct sim *m, const struct service_actions *actions)
{
    for (int i = 0; i < actions->count; i++) {
        const struct service_action *action = &actions->list[i];

        if (action->kind == SERVICE_SAY)
            continue;
        if (m->carried++ == m->cut || (!m->calm && roll(m, 60) == 0)) {
            crash(m);
            return false;
        }
        switch (action->kind) {
        case SERVICE_RECORD:
            keep(&m->record, action->text);
            break;
        case SERVICE_LIST:
            set_list(m, action);
            break;
        case SERVICE_DROP:
            for (int k = 0; k < m->count; k++)
                assert_false(m->replicas[k].job == m->job && !m->replicas[k].old &&
                             m->replicas[k].is.shard == action->shard &&
                             m->replicas[k].is.state != SERVICE_WAITS);
            m->shards[action->shard] = (struct own_shard){.open = true};
            break;
        case SERVICE_TABLE:
            set_table(m, action->text);
            break;
        case SERVICE_SIZE:
            m->shards[action->shard].target = action->count;
            m->shards[action->shard].open = true;
            break;
        case SERVICE_END:
            end_replica(m, action->id);
            break;
        case SERVICE_SAY:
            break;
        }
        check(m);
    }
    return true;
}

static void run(struct sim *m)
{
    for (bool again = true; again;) {
        struct service_replica list[REPLICAS];
        struct service_actions actions = {0};

        assert_int_equal(service_run(m->s, m->now, list, list_own(m, list), &actions, &again), 0);
        again |= !carry_out(m, &actions);
        service_actions_clear(&actions);
        check(m);
    }
}

/* ---- replicas -------------------------------------------------------------------------------- */

static struct own_replica *add_replica(struct sim *m, int shard)
{
    struct own_replica *r = &m->replicas[m->count];

    assert_true(m->count < REPLICAS);
    m->count++;
    *r = (struct own_replica){.job = m->job,
                              .is = {.shard = shard,
                                     .id = ++m->last_id,
                                     .state = SERVICE_WAITS,
                                     .address = "10.0.0.1",
                                     .port = 8000}};
    return r;
}

/* As lib/reconcile does it: as many as there should be. Those that wait go first. */
static void size_shard(struct sim *m, int shard)
{
    int stay = 0;

    if (!m->shards[shard].open)
        return;
    for (int i = 0; i < m->count; i++)
        stay += m->replicas[i].job == m->job && m->replicas[i].is.shard == shard &&
                m->replicas[i].is.state != SERVICE_LEAVES;
    for (; stay < m->shards[shard].target; stay++)
        add_replica(m, shard);
    for (int state = SERVICE_WAITS; state <= SERVICE_READY; state++)
        for (int i = m->count - 1; i >= 0 && stay > m->shards[shard].target; i--) {
            struct own_replica *r = &m->replicas[i];

            if (r->job != m->job || r->is.shard != shard || (int)r->is.state != state)
                continue;
            stay--;
            if (state == SERVICE_WAITS) {
                remove_replica(m, i);
                continue;
            }
            r->is.state = SERVICE_LEAVES;
            r->due = m->now + HOLD;
        }
}

static void start_replica(struct sim *m, struct own_replica *r)
{
    const struct own_shard *shard = &m->shards[r->is.shard];

    assert_true(shard->there);
    r->is.state = SERVICE_STARTS;
    r->is.start = ++m->last_start;
    r->is.version = shard->version;
    r->is.program = shard->program;
    r->application = shard->application;
    r->is.failed = r->is.spent = false;
    r->is.failures = 0;
    r->loads = 0;
    r->due = m->now + 0.5 + roll(m, 8);
    r->bad = r->application == BAD_APPLICATION || (!m->calm && roll(m, 8) == 0);
    for (int model = 0; model < MODELS; model++) {
        r->models[model] = shard->list[model] > 0;
        r->bad = r->bad || (shard->list[model] > 0 && m->bad[model] &&
                            shard->list[model] == m->version[model]);
    }
}

/* In place: what there is of the list is loaded, whatever else cannot be. */
static bool load(struct sim *m, struct own_replica *r)
{
    const struct own_shard *shard = &m->shards[r->is.shard];
    bool whole = m->calm || roll(m, 8) > 0;

    for (int model = 0; model < MODELS; model++) {
        bool bad = m->bad[model] && shard->list[model] == m->version[model];

        whole = whole && !(shard->list[model] > 0 && bad);
        r->models[model] = shard->list[model] > 0 && (r->models[model] || !bad);
    }
    r->loads = whole ? 0 : m->now + 1;
    if (whole) {
        r->is.version = shard->version;
    } else {
        r->is.tried = shard->version;
        r->is.failures++;
        r->is.why = "no";
    }
    return whole;
}

static int running(const struct sim *m)
{
    int running = 0;

    for (int i = 0; i < m->count; i++)
        running += m->replicas[i].job == m->job && m->replicas[i].is.state != SERVICE_WAITS;
    return running;
}

static void fail_replica(struct sim *m, struct own_replica *r)
{
    r->is.state = SERVICE_WAITS;
    r->is.failed = true;
    r->is.version = 0;
    r->is.spent = roll(m, 4) == 0;
    r->due = m->now + 1;
}

/* It reads the list when it has begun, and each new one. */
static void pass_in_place(struct sim *m)
{
    for (int i = 0; m->options.in_place && i < m->count; i++) {
        struct own_replica *r = &m->replicas[i];

        if (r->is.state == SERVICE_READY && r->loads > 0 && r->loads <= m->now)
            load(m, r);
        if (r->is.state == SERVICE_STARTS && !r->bad && r->due <= m->now && !load(m, r)) {
            r->bad = r->is.failures > 2;
            r->due = m->now + 1;
        }
        check(m);
    }
}

static void pass_replicas(struct sim *m)
{
    for (int shard = 1; shard <= SHARDS; shard++)
        size_shard(m, shard);
    pass_in_place(m);
    for (int i = m->count - 1; i >= 0; i--) {
        struct own_replica *r = &m->replicas[i];

        if (r->job != m->job)
            continue;
        if (r->is.state == SERVICE_LEAVES && !r->told) {
            assert_true(m->now < r->due); /* the router has not taken so long */
            if (service_is_drained(m->s, r->is.id, r->is.start, m->now)) {
                r->told = true;
                r->due = m->now + 0.5;
            }
            check(m);
            continue;
        }
        if (r->due > m->now || r->is.state == SERVICE_READY)
            continue;
        if (r->told)
            remove_replica(m, i);
        else if (r->is.state == SERVICE_STARTS && r->bad)
            fail_replica(m, r);
        else if (r->is.state == SERVICE_STARTS)
            r->is.state = SERVICE_READY;
        else if (!r->is.spent && running(m) < m->room && m->shards[r->is.shard].open)
            start_replica(m, r);
        check(m);
    }
}

/* ---- the router ------------------------------------------------------------------------------ */

/* A report of long ago, about a table of then: nothing of it counts any more. */
static void say_late(struct sim *m)
{
    json_object *names = json_object_new_array();

    for (int i = 0; i < m->count; i++)
        if (m->replicas[i].job == m->job)
            json_object_array_add(
                names,
                json_object_new_string(
                    service_replica_name(m->replicas[i].is.shard, m->replicas[i].is.start).text));
    assert_true(service_routed(m->s, "r", 0, 0, names, m->now));
    json_object_put(names);
}

static void say_routed(struct sim *m)
{
    json_object *drained = json_object_new_array(), *shards, *table;

    if (m->table_count > 0 && m->tables[0].job != m->job) /* it has asked for the table */
        assert_true(service_routed(m->s, "r", 0, -1, NULL, m->now));
    if (m->table_count > 0 && m->tables[0].job != m->job) {
        json_object_put(drained);
        return;
    }
    if (m->table_count == 0 || !m->tables[0].holds) {
        json_object_put(drained);
        return;
    }
    table = m->tables[0].json;
    shards = member(table, "shards");
    for (size_t i = 0; i < json_object_array_length(shards); i++) {
        json_object *list = member(json_object_array_get_idx(shards, i), "replicas");

        for (size_t k = 0; k < json_object_array_length(list); k++) {
            json_object *replica = json_object_array_get_idx(list, k);

            if (strcmp(json_object_get_string(member(replica, "state")), "draining") == 0)
                json_object_array_add(drained, json_object_get(member(replica, "name")));
        }
    }
    m->confirmed = json_object_get_int64(member(table, "epoch"));
    assert_true(service_routed(m->s, "r", m->confirmed,
                               json_object_get_int64(member(table, "revision")), drained, m->now));
    json_object_put(drained);
}

static void say_asked(struct sim *m)
{
    json_object *keys = json_object_new_array();
    char key[8];

    for (int model = 0; model < MODELS; model++) {
        snprintf(key, sizeof(key), "k%d", model);
        if (m->asks[model])
            json_object_array_add(keys, json_object_new_string(key));
    }
    service_asked(m->s, "r", keys, false);
    json_object_put(keys);
}

static void pass_routes(struct sim *m)
{
    for (int i = 0; i < m->table_count; i++) {
        struct table *table = &m->tables[i];

        table->holds = table->holds || table->from <= m->now;
        check(m);
    }
    while (m->table_count > 1 && m->tables[1].holds && m->tables[1].confirmed <= m->now) {
        json_object_put(m->tables[0].json);
        free(m->tables[0].routing);
        memmove(m->tables, m->tables + 1, (size_t)--m->table_count * sizeof(m->tables[0]));
    }
    if (roll(m, 3) == 0)
        say_routed(m);
    if (roll(m, 3) == 0)
        say_asked(m);
    if (roll(m, 10) == 0)
        say_late(m);
}

static void pass(struct sim *m, double seconds)
{
    m->now += seconds;
    pass_routes(m);
    pass_handover(m);
    pass_replicas(m);
    run(m);
}

/* ---- what happens ---------------------------------------------------------------------------- */

static bool is_in_a_list(const struct sim *m, int model)
{
    for (int number = 1; number <= SHARDS; number++)
        if (m->shards[number].list[model] > 0)
            return true;
    return false;
}

static void put(struct sim *m, int model, bool bad)
{
    m->version[model]++;
    m->in_use[model] = true;
    m->bad[model] = bad;
    say_models(m);
}

static void take_away(struct sim *m, int model)
{
    m->in_use[model] = false;
    say_models(m);
}

/* Not the last one: nobody could help that. Nor one that routers may count on, for they have not
 * heard of others. */
static void kill_one(struct sim *m)
{
    int i = m->count > 0 ? roll(m, m->count) : 0;

    if (m->count == 0 || m->replicas[i].is.state != SERVICE_STARTS || m->replicas[i].job != m->job)
        return;
    fail_replica(m, &m->replicas[i]);
}

/* So many in each shard. */
static void say_sessions(struct sim *m, int sessions)
{
    json_object *json = json_object_new_object();
    char name[16];

    for (int shard = 1; shard <= SHARDS; shard++) {
        snprintf(name, sizeof(name), "shard_%d", shard);
        json_object_object_add(json, name, json_object_new_int(sessions));
    }
    service_sessions(m->s, "r", json);
    json_object_put(json);
}

static void disturb(struct sim *m)
{
    int model = roll(m, MODELS);

    switch (roll(m, 19)) {
    case 0:
    case 1:
    case 2:
    case 3:
        put(m, model, !is_in_a_list(m, model) && roll(m, 5) == 0);
        break;
    case 4:
        take_away(m, model);
        break;
    case 5:
        if (roll(m, 3) == 0 && !service_holds(m->s))
            apply(m, (char)('a' + roll(m, 3)));
        break;
    case 6:
        shard_commands_flush(service_brain(m->s));
        break;
    case 7:
        shard_commands_repack(service_brain(m->s));
        break;
    case 8:
        m->room = 8 + roll(m, 10);
        break;
    case 9:
        kill_one(m);
        break;
    case 10:
        crash(m);
        break;
    case 11:
        if (roll(m, 2) == 0)
            hand_over(m);
        break;
    case 12:
        if (roll(m, 2) == 0)
            hand_back(m);
        break;
    case 13:
        say_sessions(m, roll(m, 20));
        break;
    case 14:
    case 15:
        m->asks[model] = !m->asks[model];
        break;
    default:
        break;
    }
    check(m);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* As a text: what each shard has, and where requests go. */
static char *describe(const struct sim *m)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    json_object *routes = member(m->tables[0].json, "routes");

    for (int number = 1; number <= SHARDS; number++) {
        fprintf(out, "shard_%d:", number);
        for (int model = 0; model < MODELS; model++)
            if (m->shards[number].list[model] > 0)
                fprintf(out, " m%d_v%d", model, m->shards[number].list[model]);
        fprintf(out, ", %d ready\n", ready_of(m, number));
    }
    for (int model = 0; model < MODELS; model++)
        for (size_t i = 0; i < json_object_array_length(routes); i++) {
            json_object *route = json_object_array_get_idx(routes, i);

            if (number_in(json_object_get_string(member(route, "key"))) == model)
                fprintf(out, "k%d: %s\n", model, json_object_get_string(member(route, "shard")));
        }
    fclose(out);
    return text;
}

/* All replicas of a shard have its application: that which was applied last, if any. */
static void check_program(const struct sim *m, int number, int models)
{
    struct shard_program program = shard_commands_program(service_brain(m->s), number);

    for (int i = 0; i < m->count; i++) {
        const struct own_replica *r = &m->replicas[i];

        if (r->job != m->job || r->is.shard != number)
            continue;
        assert_int_equal(r->application, program.application[0]);
        assert_int_equal(r->is.program, program.since);
        assert_int_not_equal(r->application, BAD_APPLICATION);
    }
    if (models > 0 && m->wanted != 0 && m->wanted != BAD_APPLICATION)
        assert_true(program.reached && program.application[0] == m->wanted);
    if (models > 0 && m->wanted == BAD_APPLICATION)
        assert_true(program.failed);
}

static void check_end(struct sim *m)
{
    json_object *routes = member(m->tables[0].json, "routes");
    int inside = 0, listed = 0;

    assert_false(service_holds(m->s));
    assert_int_equal(m->table_count, 1);
    for (int i = 0; i < shard_commands_count(service_brain(m->s)); i++) {
        struct shard_model_view view = shard_commands_at(service_brain(m->s), i);

        assert_int_equal(view.routed, view.shard);
        if (view.asleep)
            assert_true(m->options.brain.idle > 0 && !m->asks[number_in(view.key)]);
        else if (view.why[0] == '\0')
            assert_string_equal(view.has, view.version);
        else
            assert_non_null(strstr(view.why, "no shard has so much room"));
        inside += view.shard > 0;
    }
    assert_int_equal(json_object_array_length(routes), inside);
    for (int number = 1; number <= SHARDS; number++) {
        int models = 0, count = 0;

        for (int model = 0; model < MODELS; model++)
            models += m->shards[number].list[model] > 0;
        for (int i = 0; i < m->count; i++)
            count += m->replicas[i].job == m->job && m->replicas[i].is.shard == number;
        listed += models;
        assert_int_equal(count, models > 0 ? m->options.scale.least : 0);
        assert_int_equal(ready_of(m, number), count);
        check_program(m, number, models);
    }
    assert_int_equal(listed, inside);
}

static void begin(struct sim *m, uint64_t seed, bool in_place)
{
    memset(m, 0, sizeof(*m));
    m->seed = seed * 2654435761u + 1;
    m->cut = -1;
    m->now = 1000;
    m->room = 60;
    m->options = (struct service_options){
        .brain = {CAPACITY, SHARDS, 1, seed % 3 == 0 ? 0 : 20, false, seed % 5 < 2 ? 20 : 0},
        .scale = {1 + (int)(seed % 4), 1 + (int)(seed % 4) + (int)(seed % 3), seed % 2 ? 4 : 0, 30},
        .surge = {50, true},
        .unavailable = {50, true},
        .fail_fast = 2,
        .in_place = in_place,
        .name = "adapters",
    };
    m->router = true;
    m->job = 1;
    lead(m);
}

/* Its job ends, and its replicas with it: it asks for nothing, but says that they go. */
static void stop_models(struct sim *m)
{
    struct service_replica list[REPLICAS];
    bool again = true;

    service_stop(m->s);
    for (int turn = 0; turn < 2; turn++) {
        struct service_actions actions = {0};

        for (int i = 0; i < m->count; i++)
            m->replicas[i].is.state = SERVICE_LEAVES;
        assert_int_equal(service_run(m->s, m->now, list, list_own(m, list), &actions, &again), 0);
        assert_false(again);
        assert_true(turn == 0 || actions.count == 0);
        for (int i = 0; i < actions.count; i++)
            assert_int_equal(actions.list[i].kind, SERVICE_TABLE);
        assert_true(service_deadline(m->s, m->now) == 0 || service_deadline(m->s, m->now) > m->now);
        service_actions_clear(&actions);
    }
}

static void end(struct sim *m)
{
    stop_models(m);
    service_destroy(m->s);
    for (int i = 0; i < m->table_count; i++) {
        json_object_put(m->tables[i].json);
        free(m->tables[i].routing);
    }
    free(m->record);
    free(m->table);
}

static void settle(struct sim *m, int passes)
{
    for (int i = 0; i < passes; i++)
        pass(m, 1);
}

/* Nobody asks for anything: all shards go, with their replicas. Then somebody asks for all. */
static void sleep_and_wake(struct sim *m)
{
    if (m->options.brain.idle <= 0)
        return;
    memset(m->asks, 0, sizeof(m->asks));
    settle(m, 100);
    check_end(m);
    assert_int_equal(json_object_array_length(member(m->tables[0].json, "routes")), 0);
    assert_int_equal(json_object_array_length(member(m->tables[0].json, "asleep")),
                     shard_commands_count(service_brain(m->s)));
    assert_int_equal(m->count, 0);
    memset(m->asks, true, sizeof(m->asks));
    settle(m, 100);
    check_end(m);
    for (int i = 0; i < shard_commands_count(service_brain(m->s)); i++)
        assert_false(shard_commands_at(service_brain(m->s), i).asleep);
}

static void test_random(void **state)
{
    int handovers = 0, backs = 0;

    (void)state;
    for (int history = 1; history <= HISTORIES; history++) {
        struct sim m;

        begin(&m, (uint64_t)history, history % 2 == 0);
        for (int event = 0; event < 120; event++) {
            disturb(&m);
            pass(&m, 0.1 * roll(&m, 30));
        }
        m.calm = true;
        m.room = 60;
        if (!service_holds(m.s))
            apply(&m, (char)('a' + history % 2));
        say_sessions(&m, 0);
        for (int model = 0; model < MODELS; model++)
            if (m.bad[model])
                take_away(&m, model);
        settle(&m, 100);
        shard_commands_flush(service_brain(m.s));
        settle(&m, 100);
        check_end(&m);
        sleep_and_wake(&m);
        handovers += m.handovers;
        backs += m.backs;
        end(&m);
    }
    /* Few histories, with sanitizers, may have no way back. */
    assert_true(handovers > HISTORIES / 2 && (HISTORIES < 60 || backs > HISTORIES / 10));
}

/* ---- cut at every point ---------------------------------------------------------------------- */

/* New shards, updates, a move, a model that never gets ready, removals, a shard that goes: each
 * when what was before is at its end. Then another program, and one that never gets ready. */
static char *play(int cut, int *carried, bool in_place)
{
    struct sim m;
    char *text;

    begin(&m, 3, in_place); /* nothing waits for others */
    m.calm = m.even = true;
    m.cut = cut;
    for (int model = 0; model < 6; model++)
        put(&m, model, false);
    settle(&m, 30);
    for (int round = 0; round < 3; round++) {
        for (int model = round; model < 6; model += 2)
            put(&m, model, false);
        settle(&m, 30);
    }
    put(&m, 7, true);
    settle(&m, 30);
    take_away(&m, 1);
    put(&m, 8, false);
    settle(&m, 30);
    take_away(&m, 7);
    take_away(&m, 0);
    take_away(&m, 2);
    settle(&m, 30);
    apply(&m, 'b');
    settle(&m, 30);
    check_end(&m);
    apply(&m, BAD_APPLICATION);
    settle(&m, 60);
    check_end(&m);
    put(&m, 4, false);
    put(&m, 9, false); /* new ones come with the program before */
    put(&m, 6, false);
    settle(&m, 30);
    text = describe(&m);
    check_end(&m);
    *carried = m.carried;
    end(&m);
    return text;
}

/* With --enable-sanitizers, at each fourth point. */
#ifdef __SANITIZE_ADDRESS__
#define CUT_STEP 4
#else
#define CUT_STEP 1
#endif

static void cut_everywhere(bool in_place)
{
    int actions, carried;
    char *whole = play(-1, &actions, in_place);

    assert_true(actions > 60);
    for (int cut = 0; cut < actions; cut += CUT_STEP) {
        char *text = play(cut, &carried, in_place);

        if (strcmp(text, whole) != 0)
            fail_msg("cut before action %d:\n%sinstead of\n%s", cut, text, whole);
        free(text);
    }
    free(whole);
}

static void test_cut(void **state)
{
    (void)state;
    cut_everywhere(false);
}

static void test_cut_in_place(void **state)
{
    (void)state;
    cut_everywhere(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_cut_in_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
