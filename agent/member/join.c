/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a member comes to its leader, and to the next leader when that is lost
 * (doc/internals/takeover.md).
 *
 *   joining ──► following ──► seeking ──► following     another leader, or the same again
 *      │                         │
 *      └───────► end ◄───────────┘ (nobody leads for too long)
 *
 * A member that seeks has told its live workers that their world is torn. These workers wait, with
 * their state, for the world that another leader forms. Workers that are not live cannot go on, and
 * end. The member dials the old leader and then each successor, again and again. A successor that
 * has a leader sends the member there. A successor that has lost its leader, too, keeps the member
 * waiting as a voter. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/member/member_internal.h"
#include "agent/srun_port.h"
#include "agent/supervise.h"
#include "common/log.h"
#include "common/release_own.h"
#include "common/slurm_client.h"
#include "common/slurm_queue.h"
#include "lib/json_get.h"
#include "lib/sizes.h"
#include "lib/tree_order.h"

#define DIAL_MS  1500 /* for an agent to answer */
#define VOTE_MS  6000 /* for an agent to become, or find, the leader */
#define ROUND_MS 300  /* pause when all have been tried */
/* The most that is added to the pause after a vote without a result: voters that dial in the same
 * order at the same time would never meet. */
#define SPREAD_MS  6000
#define BASE_LIMIT 60.0 /* seconds without a leader */
/* Seconds, if this node is cut off. Slurm calls the node down after 300 as a rule, and later kills
 * what it finds there: this is less. */
#define CUT_LIMIT 200.0
/* Seconds for an agent that was killed, and started again: if all
 * agents were killed, there is no leader to find. */
#define AGAIN_LIMIT 20.0
#define CUT_LOOK    10.0 /* seconds between two checks whether this node is cut off */
/* Seconds for an extension: its nodes may be needed by nobody, since a base that is over is silent,
 * too. */
#define EXTENSION_LIMIT 15.0
#define OLD_LEADER      (-1)

/* ---- what follows a join --------------------------------------------------------------------- */

/* Slurm's signal is lost when it comes before our handlers exist: so ask Slurm about our own job.
 * The first agent of the job asks: if it is too late for that one, all leave with it. */
struct preempt_check {
    struct member *member;
    uint32_t job;
    bool preempted;
};

static void preempt_ask(void *arg)
{
    struct preempt_check *check = arg;
    struct job_info *info = NULL;
    struct error err;

    if (slurm_client_job(check->job, &info, &err) == 0 && info != NULL)
        check->preempted = info->preempt_time != 0;
    job_info_free(info);
}

static void preempt_answer(void *arg)
{
    struct preempt_check *check = arg;
    struct member *m = check->member;

    if (check->preempted && !m->leaving && !m->ending)
        member_leave(m, "preempted");
    free(check);
    member_piece_gone(m);
}

static void check_preempted(struct member *m)
{
    struct preempt_check *check;

    if (m->options->base || m->options->nodeid != 0 || (check = calloc(1, sizeof(*check))) == NULL)
        return;
    check->member = m;
    check->job = m->options->job;
    if (slurm_ask(m->loop, preempt_ask, preempt_answer, check) != 0)
        free(check);
    else
        m->open_handles++;
}

/* The leader is gone without a word: extensions that it has asked for must not stay in the queue.
 * Each remaining member of the base does this. */
static void sweep_work(void *arg)
{
    const struct member *m = arg;
    const struct member_options *options = m->options;
    struct error err;

    if (slurm_client_cancel_extensions(options->base_job, options->base_restarts, getuid(), &err) <
        0)
        log_debug("cancelling extensions: %s", err.text);
}

static void cancel_extensions(struct member *m)
{
    if (slurm_ask(m->loop, sweep_work, member_piece_gone, m) == 0)
        m->open_handles++;
}

/* ---- dialling -------------------------------------------------------------------------------- */

static void add_group(const struct member *m, json_object *join)
{
    const struct group *group = m->group;
    json_object *said;

    if (group == NULL)
        return;
    said = world_to_json(group->world);
    json_object_object_add(said, "started", json_object_new_int(group->started));
    json_object_object_add(said, "live",
                           json_object_new_boolean(m->seek.torn && workers_live(group->workers)));
    json_object_object_add(said, "stateful", json_object_new_boolean(group->stateful));
    json_object_object_add(said, "through",
                           json_object_new_boolean(workers_through(group->workers)));
    json_object_object_add(said, "shape",
                           json_object_new_int64((int64_t)workers_signature(group->workers)));
    json_object_object_add(said, "slowest", json_object_new_int64(workers_slowest(group->workers)));
    json_object_object_add(join, "group", said);
}

static void send_join(struct member *m)
{
    json_object *msg = member_message("join");
    char switches[TREE_PATH_MAX];

    release_write(msg, release_own());
    json_object_object_add(msg, "node", json_object_new_string(m->options->node));
    json_object_object_add(msg, "job", json_object_new_int64(m->options->job));
    json_object_object_add(msg, "restarts", json_object_new_int64(m->options->restarts));
    json_object_object_add(msg, "base", json_object_new_boolean(m->options->base));
    json_object_object_add(msg, "nodeid", json_object_new_int(m->options->nodeid));
    json_object_object_add(msg, "slots", json_object_new_int(m->options->slots));
    json_object_object_add(
        msg, "switches",
        json_object_new_string(tree_path(getenv("SLURM_TOPOLOGY_ADDR"),
                                         getenv("SLURM_TOPOLOGY_ADDR_PATTERN"), switches)));
    if (!m->options->base && getenv("ELASTIC_EXTENSION_ROLE") != NULL)
        json_object_object_add(msg, "role",
                               json_object_new_string(getenv("ELASTIC_EXTENSION_ROLE")));
    json_object_object_add(msg, "pid", json_object_new_int(getpid()));
    json_object_object_add(msg, "leaving", json_object_new_boolean(m->leaving));
    json_object_object_add(msg, "term", json_object_new_int(m->leader.term));
    json_object_object_add(msg, "gen", json_object_new_int(m->generation));
    json_object_object_add(msg, "completed", json_object_new_int(m->completed));
    add_group(m, msg);
    member_send(m, msg);
}

static void on_time(uv_timer_t *timer);

static void on_open(struct link *link, void *arg)
{
    struct member *m = arg;

    (void)link;
    m->leader.last_heard = member_now(m);
    send_join(m);
    if (m->seek.active)
        uv_timer_start(&m->seek.timer, on_time, VOTE_MS, 0);
    if (!m->welcomed)
        check_preempted(m);
}

static void on_closed(struct link *link, const char *why, void *arg);

static const struct link_handlers handlers = {
    .open = on_open, .message = member_on_message, .closed = on_closed};

static int dial(struct member *m, const char *role, const char *address, int port, int timeout_ms,
                bool once, struct error *err)
{
    const struct member_options *o = m->options;
    struct link_client_options client = {
        .role = role,
        .job_id = o->base_job,
        .restarts = o->base_restarts,
        .leader_uid = getuid(),
        .munge_socket = o->conf->munge_socket,
        .address = address,
        .port = port,
        .port_first = o->conf->port_first,
        .port_last = o->conf->port_last,
        .state_dir = o->state_dir,
        .timeout_ms = timeout_ms,
        .once = once,
    };

    m->link = link_connect(m->loop, &client, &handlers, m, err);
    if (m->link == NULL)
        return -1;
    m->open_handles++;
    return 0;
}

int member_join(struct member *m, struct error *err)
{
    return dial(m, LINK_ROLE_AGENT, m->options->address, m->options->port,
                m->options->connect_timeout_ms, false, err);
}

/* ---- seeking --------------------------------------------------------------------------------- */

static void forget_redirect(struct member *m)
{
    free(m->seek.address);
    m->seek.address = NULL;
}

/* To an extension a base that has finished looks like this. */
static void nothing_to_do(const struct member *m, const char *why)
{
    log_info("%s: no leader of job %u answers (%s): nothing to do", m->options->node,
             m->options->base_job, why);
}

static void give_up(struct member *m)
{
    m->seek.active = false;
    uv_timer_stop(&m->seek.timer);
    if (m->options->base || m->welcomed)
        log_error("%s: no other node leads job %u.%u", m->options->node, m->options->base_job,
                  m->options->base_restarts);
    else
        nothing_to_do(m, "it is not led any more");
    /* Other members of the base may have found a leader. Extensions without a leader end by
     * themselves, or with the job. This node cannot tell how the training goes on elsewhere. */
    member_end(m, m->options->base && !m->seek.cut_off ? 1 : 0);
}

/* The job may well go on without a node from which not even srun can be reached. */
static bool is_cut_off(struct member *m)
{
    double now = member_now(m);

    if (m->options->base && now - m->seek.looked >= CUT_LOOK) {
        m->seek.looked = now;
        m->seek.cut_off = getenv("SLURM_SRUN_COMM_HOST") != NULL &&
                          !srun_port_answers(getenv("SLURM_SRUN_COMM_HOST"),
                                             getenv("SLURM_SRUN_COMM_PORT"));
    }
    return m->seek.cut_off;
}

static bool has_sought_enough(struct member *m)
{
    double seconds = member_now(m) - m->seek.since;
    double limit = !m->options->base ? EXTENSION_LIMIT : m->welcomed ? BASE_LIMIT : AGAIN_LIMIT;

    return seconds > limit && (!is_cut_off(m) || seconds > CUT_LIMIT);
}

static uint64_t pause_ms(struct member *m)
{
    uint32_t number = 0;

    if (m->seek.voted && uv_random(NULL, NULL, &number, sizeof(number), 0, NULL) == 0)
        number %= SPREAD_MS;
    m->seek.voted = false;
    return ROUND_MS + number;
}

static void dial_next(struct member *m)
{
    const struct leader_place *place;
    struct error err = {""};
    double early = m->seek.vote_after - member_now(m);
    int rc;

    if (m->ending)
        return;
    if (has_sought_enough(m)) {
        give_up(m);
        return;
    }
    if (early > 0 && m->seek.address == NULL && m->seek.target != OLD_LEADER) {
        uv_timer_start(&m->seek.timer, on_time, (uint64_t)(early * 1000) + 1, 0);
        return;
    }
    if (m->seek.address != NULL) {
        rc = dial(m, LINK_ROLE_AGENT, m->seek.address, m->seek.port, DIAL_MS, true, &err);
        forget_redirect(m);
    } else if (m->seek.target == OLD_LEADER) {
        m->seek.target++;
        rc = dial(m, LINK_ROLE_AGENT, m->leader.address, m->leader.port, DIAL_MS, true, &err);
    } else if (m->seek.target < m->successors.count) {
        place = &m->successors.list[m->seek.target++];
        rc = dial(m, LINK_ROLE_VOTER, place->address, place->port, DIAL_MS, true, &err);
    } else {
        m->seek.target = OLD_LEADER;
        uv_timer_start(&m->seek.timer, on_time, pause_ms(m), 0);
        return;
    }
    if (rc != 0) {
        log_debug("%s", err.text);
        uv_timer_start(&m->seek.timer, on_time, ROUND_MS, 0);
    }
}

static void on_time(uv_timer_t *timer)
{
    struct member *m = timer->data;

    if (!m->seek.active)
        return;
    if (m->link == NULL) {
        dial_next(m);
        return;
    }
    m->seek.voted = m->options->base;
    link_close(m->link, "it does not lead");
}

/* Stop the workers, or tell them that their world is torn. A leader that is found learns about them
 * from the join. */
static void leave_world(struct member *m)
{
    member_drop_next(m);
    member_pmix_forget(m);
    m->output.unacked = 0;
    m->seek.torn = m->group != NULL && workers_live(m->group->workers);
    if (m->seek.torn)
        workers_tear(m->group->workers, "the leader is lost");
    else if (m->group != NULL && !workers_through(m->group->workers))
        workers_stop(m->group->workers, SIGTERM, MEMBER_FATAL_GRACE);
    if (m->output.paused)
        member_pause_output(m, false);
}

/* For the agent that is started in place of this agent. */
static void remember(struct member *m)
{
    struct agent_handover *agent_handover = m->options->agent_handover;
    struct leader_places *places;

    if (agent_handover == NULL || m->leader.address == NULL)
        return;
    places = &agent_handover->places;
    agent_handover->known = false;
    agent_handover->term = m->leader.term;
    places->count = 0;
    leader_places_add(places, m->leader.address, m->leader.port);
    for (int i = 0; i < m->successors.count; i++)
        leader_places_add(places, m->successors.list[i].address, m->successors.list[i].port);
    agent_handover->known = true;
}

const struct leader_places *member_join_places(const struct member_options *options)
{
    if (options->agent_handover != NULL && options->agent_handover->starts > 1)
        return &options->agent_handover->places;
    return options->leaders != NULL && options->leaders->count > 1 ? options->leaders : NULL;
}

void member_join_seek(struct member *m, const struct leader_places *places)
{
    if (m->options->agent_handover != NULL) {
        log_info("%s: its agent was killed, and is started again", m->options->node);
        m->leader.term = m->options->agent_handover->term;
        uv_update_time(m->loop); /* files of the killed agent had to be saved first */
    }
    m->leader.address = strdup(places->list[0].address);
    m->leader.port = places->list[0].port;
    for (int i = 1; i < places->count; i++)
        leader_places_add(&m->successors, places->list[i].address, places->list[i].port);
    m->seek.active = true;
    m->seek.since = member_now(m);
    m->seek.target = OLD_LEADER;
    dial_next(m);
}

/* The connection may have ended at this side only. Then the leader counts on this node until it has
 * not heard from it for heartbeat_timeout. */
static void seek(struct member *m, const char *why, bool leader_knows)
{
    m->seek.vote_after = leader_knows ? 0 : m->leader.last_heard + m->heartbeat;
    log_info("%s: lost the leader of job %u: %s", m->options->node, m->options->base_job, why);
    m->seek.active = true;
    m->seek.since = member_now(m);
    m->seek.cut_off = m->seek.voted = false;
    m->seek.target = OLD_LEADER;
    leave_world(m);
    if (m->options->hooks.lost != NULL)
        m->options->hooks.lost(m->options->hooks.arg);
    dial_next(m);
}

static void on_closed(struct link *link, const char *why, void *arg)
{
    struct member *m = arg;

    m->link = NULL;
    if (m->store != NULL)
        store_server_lost(m->store);
    if (m->ending) {
        /* nothing to do */
    } else if (m->seek.active) {
        uv_timer_stop(&m->seek.timer);
        dial_next(m);
    } else if (m->welcomed && !m->leaving && m->successors.count > 0) {
        seek(m, why, link_peer_closed(link));
    } else {
        /* A leader that ends well says finish or release first. */
        if (m->welcomed || m->options->base)
            log_error("%s: lost the leader: %s", m->options->node, why);
        else
            nothing_to_do(m, why);
        if (m->options->base && m->welcomed)
            cancel_extensions(m);
        member_end(m, m->options->base ? 1 : 0);
    }
    member_piece_gone(m);
}

void member_join_redirect(struct member *m, json_object *msg)
{
    const char *address = json_get_string(msg, "address");
    int64_t port;

    if (!m->seek.active || m->link == NULL)
        return;
    forget_redirect(m);
    if (address != NULL && json_get_int(msg, "port", 1, 65535, &port)) {
        m->seek.address = strdup(address);
        m->seek.port = (int)port;
    }
    link_close(m->link, "it does not lead");
}

/* ---- the leader and its successors ----------------------------------------------------------- */

static void read_successors(struct member *m, json_object *msg)
{
    json_object *list = NULL;
    size_t count;

    if (!json_object_object_get_ex(msg, "successors", &list) ||
        !json_object_is_type(list, json_type_array))
        return;
    count = json_object_array_length(list);
    m->successors.count = 0;
    for (size_t i = 0; i < count && i < SUCCESSORS_MAX; i++) {
        json_object *each = json_object_array_get_idx(list, i);
        const char *address = json_get_string(each, "address");
        int64_t port;

        if (address != NULL && json_get_int(each, "port", 1, 65535, &port))
            leader_places_add(&m->successors, address, (int)port);
    }
}

void member_join_successors(struct member *m, json_object *msg)
{
    int64_t term;

    if (json_get_int(msg, "term", 0, INT32_MAX / 2, &term))
        m->leader.term = (int)term;
    read_successors(m, msg);
    remember(m);
    member_listens(m); /* the successor's term may have changed */
}

void member_join_welcomed(struct member *m, json_object *msg)
{
    const char *address = json_get_string(msg, "address");
    const char *own = json_get_string(msg, "you");
    int64_t term = 0, port = 0, slurm_user;
    bool found = m->seek.active;

    json_get_int(msg, "term", 0, INT32_MAX / 2, &term);
    if (found && term < m->leader.term) {
        link_close(m->link, "it leads an earlier term");
        return;
    }
    m->seek.active = false;
    uv_timer_stop(&m->seek.timer);
    if (address != NULL && json_get_int(msg, "port", 1, 65535, &port)) {
        free(m->leader.address);
        m->leader.address = strdup(address);
        m->leader.port = (int)port;
    }
    if (own != NULL) {
        free(m->own_address);
        m->own_address = strdup(own);
    }
    if (json_get_int(msg, "slurm_user", 0, UINT32_MAX - 1, &slurm_user))
        m->job.slurm_user = (uid_t)slurm_user;
    m->leader.term = (int)term;
    m->leader.time = 0;    /* times of another leader's clock */
    m->output.unacked = 0; /* nobody will write the output that was on its way */
    if (m->output.paused && m->output.own == NULL)
        member_pause_output(m, false);
    read_successors(m, msg);
    if (found)
        log_info("%s: joins the leader of term %d at %s", m->options->node, m->leader.term,
                 m->leader.address);
    /* The new leader's world cannot use them. It has been told of those that are through. */
    if (found && m->group != NULL && !json_get_bool(msg, "keep", false) &&
        !workers_through(m->group->workers))
        workers_stop(m->group->workers, SIGKILL, 0);
    m->leader.said_port = 0;
    m->leader.unwatched_said = false;
    remember(m);
    member_listens(m);
}

void member_listens(struct member *m)
{
    json_object *msg;
    int port;

    if (m->options->hooks.followed == NULL || m->seek.active || !m->welcomed || m->ending)
        return;
    port = m->options->hooks.followed(m, m->options->hooks.arg);
    if (port == 0 || port == m->leader.said_port)
        return;
    m->leader.said_port = port;
    msg = member_message("listen");
    json_object_object_add(msg, "port", json_object_new_int(port));
    member_send(m, msg);
}

bool member_seeks(const struct member *m)
{
    return m->seek.active;
}

void member_join_begin(struct member *m)
{
    uv_timer_init(m->loop, &m->seek.timer);
    m->seek.timer.data = m;
    m->open_handles++;
}

static void timer_closed(uv_handle_t *handle)
{
    member_piece_gone(handle->data);
}

void member_join_end(struct member *m)
{
    m->seek.active = false;
    uv_close((uv_handle_t *)&m->seek.timer, timer_closed);
}

void member_join_free(struct member *m)
{
    forget_redirect(m);
    free(m->leader.address);
    free(m->own_address);
}
