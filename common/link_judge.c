/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The leader's side: the handshake with one who wants in, and why one is refused. */
#include "common/link_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sodium.h>

#include "common/log.h"
#include "common/release_own.h"

/* More would not be faster, and if munged hangs it must not take all of libuv's worker threads
 * with it. */
#define JOBS_MAX 2

/* ---- proof and accept, in a worker thread ---------------------------------------------------- */

static bool may_control(struct auth_job *job)
{
    bool found = false;

    if (job->peer_uid == 0 || job->peer_uid == job->slurm_user)
        return true;
    job->guest = true;
    for (int i = 0; i < ADMITTED_MAX; i++)
        if (job->admitted.list[i].until != 0 && job->admitted.list[i].uid == job->peer_uid) {
            found = true;
            job->guest = job->guest && job->admitted.list[i].guest;
        }
    return found;
}

static void judge(struct auth_job *job)
{
    struct error *err = &job->err;
    bool control = strcmp(job->theirs.role, LINK_ROLE_CONTROL) == 0;

    job->failed = true;
    if (credential_check(job->munge_socket, job->received, &job->theirs, &job->peer_uid, err) != 0)
        return;
    if (job->peer_uid != job->own_uid && !(control && may_control(job))) {
        job->stranger = control;
        error_set(err, "uid %u may not take part as %s in a job of uid %u", job->peer_uid,
                  job->theirs.role, job->own_uid);
        return;
    }
    randombytes_buf(job->mine.key, sizeof(job->mine.key));
    if (credential_make(job->munge_socket, job->peer_uid, &job->mine, &job->made, err) != 0)
        return;
    session_key(&job->theirs, &job->mine, job->key);
    job->failed = false;
}

static json_object *handshake_new(const char *type, const char *name, const char *value)
{
    json_object *msg = json_object_new_object();

    json_object_object_add(msg, "t", json_object_new_string(type));
    json_object_object_add(msg, name, json_object_new_string(value));
    return msg;
}

/* The peer is told, so that its program can tell its user. */
static void refuse(struct link *link, const char *why)
{
    if (link_transmit(link, handshake_new("refuse", "reason", why)) != 0)
        link_end(link, why);
    else
        link_close(link, why);
}

static bool has_enough(const struct link_server *server, uid_t guest)
{
    const struct link *link;
    int own = 0, all = 0;

    TAILQ_FOREACH (link, &server->open, entry) {
        own += link->guest && link->peer_uid == guest;
        all += link->guest;
    }
    return !guest_may_connect(own, all);
}

static void judged(struct link *link, struct auth_job *job)
{
    struct link_server *server = link->server;

    if (job->failed) {
        if (job->stranger && server->handlers.stranger != NULL)
            server->handlers.stranger(job->peer_uid, server->arg);
        link_server_note(link, job->err.text);
        refuse(link, job->err.text);
        return;
    }
    if (job->guest && has_enough(server, job->peer_uid)) {
        link_server_note(link, "a guest has enough connections, or all guests together");
        refuse(link, "this user, or all guests together, have enough connections; close some");
        return;
    }
    if (link_transmit(link, handshake_new("accept", "cred", job->made)) != 0) {
        link_end(link, "cannot answer");
        return;
    }
    link->guest = job->guest;
    link_opened(link, job->key, job->peer_uid);
}

void link_server_dequeue(struct link *link)
{
    TAILQ_REMOVE(&link->server->turns, link, turn);
    link->job_queued = false;
}

static void run_jobs(struct link_server *server)
{
    struct link *link;

    while (server->jobs < JOBS_MAX && (link = TAILQ_FIRST(&server->turns)) != NULL) {
        link_server_dequeue(link);
        if (auth_job_run(link->job) == 0) {
            server->jobs++;
        } else {
            struct auth_job *job = link->job;

            link->job = NULL;
            auth_job_free(job);
            link_end(link, "cannot start a worker thread");
        }
    }
}

void link_server_job_ended(struct link_server *server)
{
    server->jobs--;
    run_jobs(server);
    link_server_free_if_done(server);
}

/* ---- the handshake --------------------------------------------------------------------------- */

static void received_hello(struct link *link, json_object *msg)
{
    struct link_server *server = link->server;
    const char *role = link_field(msg, "role"), *base = link_field(msg, "base");
    const char *release = link_field(msg, "release");
    json_object *version = NULL;
    char nonce[LINK_NONCE_HEX], why[200];

    json_object_object_get_ex(msg, "v", &version);
    if (role == NULL || base == NULL ||
        hex_to_bytes(link_field(msg, "nonce"), link->peer_nonce) != 0) {
        link_fail(link, "sent an incomplete hello");
    } else if (json_object_get_int(version) != LINK_VERSION) {
        snprintf(why, sizeof(why),
                 "release %.31s has version %d of the handshake, release %s here has %d: install "
                 "the same release of slurm-elastic on all nodes",
                 release != NULL ? error_value(release).text : "(not said)",
                 json_object_get_int(version), release_own()->name, LINK_VERSION);
        link_server_note(link, why);
        refuse(link, why);
    } else if (strcmp(base, server->base) != 0) {
        /* nothing to log: two jobs may have the same candidate, and members try one after the
         * other */
        snprintf(why, sizeof(why), "this is the leader of job %s", server->base);
        refuse(link, why);
    } else if (strcmp(role, LINK_ROLE_AGENT) != 0 && strcmp(role, LINK_ROLE_CONTROL) != 0 &&
               strcmp(role, LINK_ROLE_VOTER) != 0) {
        refuse(link, "the role is none of " LINK_ROLE_AGENT ", " LINK_ROLE_CONTROL
                     " and " LINK_ROLE_VOTER);
    } else if (server->options.successor && strcmp(role, LINK_ROLE_VOTER) != 0) {
        /* Agents that look for the leader go on to the next candidate. */
        refuse(link, "does not lead the job");
    } else {
        snprintf(link->role, sizeof(link->role), "%s", role);
        randombytes_buf(link->nonce, sizeof(link->nonce));
        sodium_bin2hex(nonce, sizeof(nonce), link->nonce, sizeof(link->nonce));
        link_enter(link, LINK_PROOF);
        if (link_transmit(link, handshake_new("challenge", "nonce", nonce)) != 0)
            link_end(link, "cannot answer");
    }
}

/* Those whose time is not over. */
static struct admitted admitted_now(const struct link_server *server)
{
    struct admitted admitted = server->admitted;

    for (int i = 0; i < ADMITTED_MAX; i++)
        if (admitted.list[i].until <= uv_now(server->loop))
            admitted.list[i].until = 0;
    return admitted;
}

void link_server_admit(struct link_server *server, uid_t uid, bool guest, uint64_t ms)
{
    struct admitted *admitted = &server->admitted;
    int place = admitted->next;

    for (int i = 0; i < ADMITTED_MAX; i++)
        if (admitted->list[i].uid == uid)
            place = i;
    admitted->list[place].uid = uid;
    admitted->list[place].guest = guest;
    admitted->list[place].until = uv_now(server->loop) + ms;
    if (place == admitted->next)
        admitted->next = (place + 1) % ADMITTED_MAX;
}

static void received_proof(struct link *link, json_object *msg)
{
    struct link_server *server = link->server;
    const char *cred = link_field(msg, "cred");
    struct auth_job *job;

    if (cred == NULL) {
        link_fail(link, "sent an incomplete proof");
        return;
    }
    job = auth_job_new(link, server->munge_socket, judge, judged);
    if (job == NULL || (job->received = strdup(cred)) == NULL) {
        link_fail(link, "out of memory");
        return;
    }
    job->server = server;
    job->own_uid = geteuid();
    job->slurm_user = server->options.slurm_user;
    job->admitted = admitted_now(server);
    snprintf(job->theirs.role, sizeof(job->theirs.role), "%s", link->role);
    memcpy(job->theirs.nonce, link->nonce, sizeof(link->nonce));
    snprintf(job->mine.role, sizeof(job->mine.role), "leader");
    memcpy(job->mine.nonce, link->peer_nonce, sizeof(link->peer_nonce));
    memcpy(job->theirs.base, server->base, sizeof(server->base));
    memcpy(job->mine.base, server->base, sizeof(server->base));
    job->theirs.port = job->mine.port = server->port;
    link_enter(link, LINK_AUTH);
    link->job_queued = true;
    TAILQ_INSERT_TAIL(&server->turns, link, turn);
    run_jobs(server);
}

void link_server_received(struct link *link, json_object *msg)
{
    const char *type = link_field(msg, "t");

    if (type != NULL && strcmp(type, "hello") == 0 && link->state == LINK_HELLO)
        received_hello(link, msg);
    else if (type != NULL && strcmp(type, "proof") == 0 && link->state == LINK_PROOF)
        received_proof(link, msg);
    else
        link_fail(link, "does not keep to the handshake");
}

/* A connection without a word, as port scanners make, does not interest the job's user. */
void link_server_note(const struct link *link, const char *why)
{
    struct link_server *server = link->server;
    uint64_t now = uv_now(server->loop);

    log_debug("connection from %s: %s", link->address, why);
    if (!link->heard)
        return;
    if (server->logged != 0 && now - server->logged < LINK_LOG_EVERY_MS) {
        server->unlogged++;
        return;
    }
    log_info("connection from %s not accepted: %s", link->address, why);
    if (server->unlogged > 0)
        log_info("before it %d others were not accepted", server->unlogged);
    server->logged = now;
    server->unlogged = 0;
}
