/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The client's side of one connection: an attempt of a search (link_search.c) connects, and proves
 * itself to a peer that has to prove to be the leader of this incarnation. */
#include "common/link_private.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/release_own.h"

#define SILENCE_MS 2000

static const struct link_client_options *options_of(const struct link *link)
{
    return &link->attempt->search->dialer->options;
}

/* ---- the handshake --------------------------------------------------------------------------- */

static void fail_at(struct link *link, int severity, const char *why)
{
    link->attempt->severity = severity;
    link_fail(link, "%s", why);
}

static void make_proof(struct auth_job *job)
{
    job->failed = credential_make(job->munge_socket, job->leader_uid, &job->mine, &job->made,
                                  &job->err) != 0;
}

static void check_accept(struct auth_job *job)
{
    job->failed = true;
    if (credential_check(job->munge_socket, job->received, &job->theirs, &job->peer_uid,
                         &job->err) != 0)
        return;
    if (job->peer_uid != job->leader_uid) {
        error_set(&job->err, "the answer comes from uid %u, the leader should be uid %u",
                  job->peer_uid, job->leader_uid);
        return;
    }
    session_key(&job->mine, &job->theirs, job->key);
    job->failed = false;
}

static void proof_made(struct link *link, struct auth_job *job)
{
    json_object *msg;

    if (job->failed) {
        fail_at(link, SEVERITY_REFUSED, job->err.text);
        return;
    }
    memcpy(link->key, job->mine.key, sizeof(link->key));
    msg = json_object_new_object();
    json_object_object_add(msg, "t", json_object_new_string("proof"));
    json_object_object_add(msg, "cred", json_object_new_string(job->made));
    link_enter(link, LINK_ACCEPT);
    link_set_timer(link, LINK_HANDSHAKE_MS);
    if (link_transmit(link, msg) != 0 || link_start_reading(link) != 0)
        link_fail(link, "cannot be answered");
}

static void accept_checked(struct link *link, struct auth_job *job)
{
    if (job->failed)
        fail_at(link, SEVERITY_REFUSED, job->err.text);
    else
        link_search_won(link, job->key, job->peer_uid);
}

static struct auth_job *job_create(struct link *link, void (*work)(struct auth_job *),
                                   void (*done)(struct link *, struct auth_job *))
{
    const struct link_client_options *options = options_of(link);
    struct auth_job *job = auth_job_new(link, options->munge_socket, work, done);

    if (job == NULL)
        return NULL;
    job->leader_uid = options->leader_uid;
    snprintf(job->mine.role, sizeof(job->mine.role), "%s", options->role);
    link_base(job->mine.base, sizeof(job->mine.base), options->job_id, options->restarts);
    memcpy(job->mine.nonce, link->peer_nonce, sizeof(link->peer_nonce));
    memcpy(job->mine.key, link->key, sizeof(link->key));
    snprintf(job->theirs.role, sizeof(job->theirs.role), "leader");
    memcpy(job->theirs.base, job->mine.base, sizeof(job->mine.base));
    job->mine.port = job->theirs.port = link->attempt->port;
    memcpy(job->theirs.nonce, link->nonce, sizeof(link->nonce));
    return job;
}

/* The search runs the job. munged may take its time: only the search as a whole ends then. */
static void start_job(struct link *link)
{
    link_enter(link, LINK_AUTH);
    uv_timer_stop(&link->timer);
    link->job_queued = true;
    link_search_run_jobs(link->attempt->search);
}

static void received_challenge(struct link *link, json_object *msg)
{
    if (hex_to_bytes(link_field(msg, "nonce"), link->peer_nonce) != 0) {
        link_fail(link, "sent an incomplete challenge");
        return;
    }
    randombytes_buf(link->key, sizeof(link->key));
    if (job_create(link, make_proof, proof_made) != NULL)
        start_job(link);
    else
        link_fail(link, "out of memory");
}

static void received_accept(struct link *link, json_object *msg)
{
    const char *cred = link_field(msg, "cred");
    struct auth_job *job;

    if (cred == NULL) {
        link_fail(link, "sent an incomplete answer");
        return;
    }
    job = job_create(link, check_accept, accept_checked);
    if (job == NULL || (job->received = strdup(cred)) == NULL)
        link_fail(link, "out of memory");
    else
        start_job(link);
}

/* The reason comes from a peer that has proved nothing, and goes to the user's terminal. */
static void received_refuse(struct link *link, json_object *msg)
{
    const char *reason = link_field(msg, "reason");
    char clean[200] = "", why[256];
    size_t len = 0;

    for (const char *c = reason != NULL ? reason : "no reason given"; *c && len < sizeof(clean) - 1;
         c++)
        clean[len++] = (*c >= ' ' && *c <= '~') ? *c : '?';
    snprintf(why, sizeof(why), "refuses: %s", clean);
    fail_at(link, link->state == LINK_CHALLENGE ? SEVERITY_OTHER_JOB : SEVERITY_REFUSED, why);
}

void link_client_received(struct link *link, json_object *msg)
{
    const char *type = link_field(msg, "t");

    if (type != NULL && strcmp(type, "refuse") == 0)
        received_refuse(link, msg);
    else if (type != NULL && strcmp(type, "challenge") == 0 && link->state == LINK_CHALLENGE)
        received_challenge(link, msg);
    else if (type != NULL && strcmp(type, "accept") == 0 && link->state == LINK_ACCEPT)
        received_accept(link, msg);
    else
        link_fail(link, "does not keep to the handshake");
}

/* ---- the connection -------------------------------------------------------------------------- */

static json_object *hello_new(struct link *link)
{
    const struct link_client_options *options = options_of(link);
    json_object *msg = json_object_new_object();
    char nonce[LINK_NONCE_HEX], base[24];

    randombytes_buf(link->nonce, sizeof(link->nonce));
    sodium_bin2hex(nonce, sizeof(nonce), link->nonce, sizeof(link->nonce));
    link_base(base, sizeof(base), options->job_id, options->restarts);
    json_object_object_add(msg, "t", json_object_new_string("hello"));
    json_object_object_add(msg, "v", json_object_new_int(LINK_VERSION));
    json_object_object_add(msg, "release", json_object_new_string(release_own()->name));
    json_object_object_add(msg, "role", json_object_new_string(options->role));
    json_object_object_add(msg, "base", json_object_new_string(base));
    json_object_object_add(msg, "nonce", json_object_new_string(nonce));
    return msg;
}

static void connected(uv_connect_t *req, int status)
{
    struct link *link = req->data;

    if (link->state != LINK_CONNECTING)
        return; /* given up meanwhile; the handle is being closed */
    if (status != 0) {
        fail_at(link, SEVERITY_ABSENT, uv_strerror(status));
        return;
    }
    uv_tcp_nodelay(link->tcp, 1);
    link_enter(link, LINK_CHALLENGE);
    link_set_timer(link, SILENCE_MS);
    if (link_transmit(link, hello_new(link)) != 0 || link_start_reading(link) != 0)
        link_fail(link, "cannot start the handshake");
}

static void describe(struct link *link)
{
    struct sockaddr_storage *peer = &link->attempt->peer;
    size_t len;

    getnameinfo((struct sockaddr *)peer, sizeof(*peer), link->address, sizeof(link->address) - 8,
                NULL, 0, NI_NUMERICHOST);
    len = strlen(link->address);
    snprintf(link->address + len, sizeof(link->address) - len, ":%d", link->attempt->port);
}

void link_attempt_start(struct link *link)
{
    struct attempt *attempt = link->attempt;
    int code;

    describe(link);
    attempt->severity = SEVERITY_STRANGE;
    attempt->connect.data = link;
    link_enter(link, LINK_CONNECTING);
    if (link_reset_frames(link) != 0 || link_make_stream(link) != 0) {
        link_fail(link, "out of memory");
        return;
    }
    link_set_timer(link, SILENCE_MS);
    code = uv_tcp_connect(&attempt->connect, link->tcp, (struct sockaddr *)&attempt->peer,
                          connected);
    if (code != 0)
        fail_at(link, SEVERITY_ABSENT, uv_strerror(code));
}
