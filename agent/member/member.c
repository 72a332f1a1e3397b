/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agent half of elasticrun (member.h).
 *
 * A member does what the leader says and decides only two things by itself. When the leader is
 * gone, it looks for the next leader (join.c). When Slurm wants the node, it tells the leader at
 * once. */
#include "agent/member/member_internal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/member/replicas.h"
#include "agent/member/train_script.h"
#include "agent/run_dir.h"
#include "agent/supervise.h"
#include "common/log.h"
#include "lib/json_get.h"

#define FLUSH_MS 2000 /* for the last output before exit */

double member_now(const struct member *m)
{
    return (double)uv_now(m->loop) / 1000.0;
}

json_object *member_message(const char *type)
{
    json_object *msg = json_object_new_object();

    json_object_object_add(msg, "t", json_object_new_string(type));
    return msg;
}

json_object *member_generation_message(const char *type, int generation)
{
    json_object *msg = member_message(type);

    json_object_object_add(msg, "gen", json_object_new_int(generation));
    return msg;
}

void member_send(struct member *m, json_object *msg)
{
    if (m->link != NULL)
        link_send(m->link, msg);
    else
        json_object_put(msg);
}

/* ---- beats, and leaving ---------------------------------------------------------------------- */

/* Without slurmstepd srun hears nothing of this node any more: neither its workers' output nor
 * their end. */
static void say_unwatched(struct member *m)
{
    bool spoiled;
    json_object *msg;

    if (m->leader.unwatched_said || m->options->agent_handover == NULL ||
        !supervise_lost(m->options->agent_handover, &spoiled))
        return;
    log_info("%s: %s: it goes on without", m->options->node,
             spoiled ? "what watches the agent for Slurm was killed" : "its slurmstepd has ended");
    msg = member_message("unwatched");
    json_object_object_add(msg, "spoiled", json_object_new_boolean(spoiled));
    member_send(m, msg);
    m->leader.unwatched_said = true;
}

static void on_beat(uv_timer_t *timer)
{
    struct member *m = timer->data;
    double now = member_now(m);
    bool late = m->beat.last > 0 && now - m->beat.last > 2 * m->beat.interval;
    json_object *msg;

    m->beat.last = now;
    if (m->group != NULL && late)
        workers_forgive_stopped(m->group->workers);
    else if (m->group != NULL)
        workers_end_stopped(m->group->workers, m->heartbeat);
    if (m->replicas != NULL && late)
        replicas_forgive_stopped(m->replicas);
    else if (m->replicas != NULL)
        replicas_end_stopped(m->replicas, m->heartbeat);
    if (m->link == NULL || m->ending || member_seeks(m))
        return;
    /* This process has been asleep, and messages of the leader are still to be read. */
    if (late)
        m->leader.last_heard = now;
    if (!m->welcomed) {
        /* If the leader's node was lost before it could read the join, nothing will ever come, not
         * even the end of the link. */
        if (m->leader.last_heard > 0 &&
            (now - m->leader.last_heard) * 1000 > m->options->connect_timeout_ms)
            link_close(m->link, "the leader does not answer");
        return;
    }
    if (now - m->leader.last_heard > m->heartbeat * MEMBER_PATIENCE) {
        link_close(m->link, "the leader is silent");
        return;
    }
    say_unwatched(m);
    msg = member_generation_message("beat", m->generation);
    json_object_object_add(msg, "seen", json_object_new_int64(m->leader.time));
    json_object_object_add(
        msg, "step",
        json_object_new_int64(m->group != NULL ? (int64_t)workers_step(m->group->workers) : 0));
    if (m->group != NULL) {
        group_add_progress(m->group, msg);
        json_object_object_add(msg, "slowest",
                               json_object_new_int64(workers_slowest(m->group->workers)));
        group_add_own_times(m->group, msg);
        json_object_object_add(msg, "moved",
                               json_object_new_int64(workers_moved(m->group->workers)));
        json_object_object_add(msg, "asks",
                               json_object_new_boolean(workers_ask(m->group->workers)));
    }
    member_send(m, msg);
}

void member_leave(struct member *m, const char *reason)
{
    json_object *msg;

    if (m->leaving || m->ending)
        return;
    m->leaving = true;
    if (!m->welcomed && !m->options->base) {
        /* Not part of anything yet: free the node now. */
        member_end(m, 0);
        return;
    }
    if ((m->leader.last_heard == 0 && m->options->nodeid != 0) || member_seeks(m)) {
        /* There is no leader, and all agents that may become the leader have been told to end,
         * too. */
        member_end(m, m->options->base ? 128 + SIGTERM : 0);
        return;
    }
    msg = member_message("leaving");
    json_object_object_add(msg, "reason", json_object_new_string(reason));
    member_send(m, msg);
}

void member_notice(struct member *m)
{
    m->noticed = true;
    member_notice_welcomed(m);
}

void member_notice_welcomed(struct member *m)
{
    if (!m->noticed || !m->welcomed || m->ending || m->link == NULL || member_seeks(m))
        return;
    m->noticed = false;
    member_send(m, member_message("notice"));
}

void member_pass_signal(struct member *m, int number)
{
    if (m->group != NULL && m->group->workers != NULL)
        workers_pass_signal(m->group->workers, number);
    if (m->next != NULL && m->next->workers != NULL)
        workers_pass_signal(m->next->workers, number);
    if (m->replicas != NULL)
        replicas_pass_signal(m->replicas, number);
}

/* ---- end ------------------------------------------------------------------------------------- */

void member_piece_gone(void *arg)
{
    struct member *m = arg;

    if (--m->open_handles > 0 || !m->ending || m->finished)
        return;
    m->finished = true;
    run_dir_leave(m->run_dir, m->orderly);
    m->done(m->exit_code, m->arg);
}

static void beat_closed(uv_handle_t *handle)
{
    member_piece_gone(handle->data);
}

/* ---- the store ------------------------------------------------------------------------------- */

static int send_store(json_object *msg, void *arg)
{
    struct member *m = arg;

    if (m->link != NULL)
        return link_send(m->link, msg);
    json_object_put(msg);
    return -1;
}

/* Most jobs never use the store: without it this node still does everything else. */
static void open_store(struct member *m)
{
    struct error err = {""};

    m->store = store_server_create(m->loop, m->run_dir, m->options->slots, send_store, m, &err);
    if (m->store != NULL)
        m->open_handles++;
    else
        log_error("%s: no store for torch.distributed: %s", m->options->node, err.text);
}

static void close_store(struct member *m)
{
    if (m->store != NULL)
        store_server_destroy(m->store, member_piece_gone, m);
    m->store = NULL;
}

/* ---- end, and the beginning ------------------------------------------------------------------ */

/* First the workers, then the output, then the link: so the last output of workers is still handed
 * on. */
void member_end(struct member *m, int code)
{
    if (!m->ending)
        m->exit_code = code;
    m->ending = true;
    if (m->next != NULL)
        group_kill(m->next);
    if (m->group != NULL)
        workers_stop(m->group->workers, SIGTERM, MEMBER_FATAL_GRACE);
    if (m->replicas != NULL)
        replicas_stop(m->replicas, SIGTERM, MEMBER_FATAL_GRACE);
    if (m->next != NULL || m->group != NULL || (m->replicas != NULL && replicas_any(m->replicas)))
        return; /* member_drained comes back here */
    if (m->finished || uv_is_closing((uv_handle_t *)&m->beat.timer))
        return;
    uv_close((uv_handle_t *)&m->beat.timer, beat_closed);
    train_script_destroy(m->scripts);
    m->scripts = NULL;
    member_join_end(m);
    member_pmix_end(m);
    member_replicas_end(m);
    close_store(m);
    member_reclaim_end(m);
    if (m->output.own != NULL) {
        m->open_handles++;
        output_destroy(m->output.own, FLUSH_MS, member_piece_gone, m);
        m->output.own = NULL;
    }
    if (m->link != NULL)
        link_close(m->link, "done");
}

void member_drained(struct member *m)
{
    if (m->ending)
        member_end(m, m->exit_code);
}

struct member *member_create(uv_loop_t *loop, const struct member_options *options,
                             void (*done)(int code, void *arg), void *arg, struct error *err)
{
    struct member *m = calloc(1, sizeof(*m));
    const struct leader_places *places = member_join_places(options);

    if (m == NULL) {
        error_set(err, "out of memory");
        return NULL;
    }
    m->loop = loop;
    m->options = options;
    m->done = done;
    m->arg = arg;
    m->reserved.fd = -1;
    snprintf(m->job.id, sizeof(m->job.id), "%u", options->base_job);
    m->heartbeat = options->conf->heartbeat_timeout;
    m->run_dir = run_dir_make(options->conf, options->job, options->restarts, options->node, err);
    if (m->run_dir == NULL ||
        asprintf(&m->incarnation, "%u.%u", options->base_job, options->base_restarts) < 0) {
        m->incarnation = NULL;
        member_destroy(m);
        return NULL;
    }
    if (places == NULL && member_join(m, err) != 0) {
        run_dir_leave(m->run_dir, true);
        member_destroy(m);
        return NULL;
    }
    uv_timer_init(loop, &m->beat.timer);
    m->beat.timer.data = m;
    /* The beat of the leader's own process only says how far its workers are. */
    m->beat.interval = m->heartbeat /
                       (options->base && options->nodeid == 0 && places == NULL ? 2 : 4);
    uv_timer_start(&m->beat.timer, on_beat, (uint64_t)(m->beat.interval * 1000),
                   (uint64_t)(m->beat.interval * 1000));
    m->open_handles++; /* besides the link */
    member_join_begin(m);
    if (places != NULL)
        member_join_seek(m, places);
    open_store(m);
    member_reclaim_begin(m);
    /* The server takes longer to come up than this node to join. An extension hears from its leader
     * whether there is PMIx. */
    if (options->base && options->pmix)
        member_pmix_begin(m);
    return m;
}

void member_command(const struct member *m, struct member_command *command)
{
    *command = (struct member_command){
        .argv = m->job.argv,
        .env = m->job.env,
        .cwd = m->job.cwd,
        .umask = m->job.umask,
        .state_dir = m->job.state_dir,
        .checkpoint_dir = m->job.checkpoint_dir,
        .roles = m->job.roles,
        .address = m->own_address,
        .slurm_user = m->job.slurm_user,
        .handover = m->handover,
    };
}

void member_leader(const struct member *m, const char **address, int *port, int *term)
{
    *address = m->leader.address;
    *port = m->leader.port;
    *term = m->leader.term;
}

void member_destroy(struct member *m)
{
    if (m == NULL)
        return;
    if (m->reserved.fd >= 0)
        close(m->reserved.fd);
    replicas_destroy(m->replicas);
    free(m->job.roles);
    strings_free(m->job.argv);
    strings_free(m->job.env);
    json_object_put(m->job.scale);
    member_join_free(m);
    pattern_destroy(m->job.fail_pattern);
    free(m->job.cwd);
    free(m->job.state_dir);
    free(m->job.checkpoint_dir);
    free(m->job.mlflow_uri);
    free(m->job.mlflow_run);
    free(m->incarnation);
    free(m->run_dir);
    free(m);
}
