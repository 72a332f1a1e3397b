/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The client's side: finding the leader among its candidate ports, and the proof to it.
 *
 * The dialer tries each port at each address, one after the other, and begins again after a pause
 * until the time is up: members of a job start together, and the leader may be the last to be
 * ready. A peer that does not prove to be the leader of this incarnation is passed over, since any
 * user of the node may have taken one of the ports. */
#include "common/link_private.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/log.h"

#define SILENCE_MS     2000
#define PAUSE_FIRST_MS 10
#define PAUSE_MAX_MS   800

/* How much a failure tells the user; the failure that tells most is reported in the end. */
enum { SEVERITY_ABSENT, SEVERITY_STRANGE, SEVERITY_OTHER_JOB, SEVERITY_REFUSED };

struct resolve_job {
    uv_getaddrinfo_t req;
    struct link *link; /* NULL: the result is not wanted any more */
};

struct look_job {
    uv_work_t req;
    struct link *link; /* NULL: the result is not wanted any more */
    char *state_dir, base[24];
    uid_t owner;
    int port;
};

/* ---- time ------------------------------------------------------------------------------------ */

static uint64_t remaining(const struct link *link)
{
    uint64_t now = uv_now(link->loop);

    return link->dialer->deadline > now ? link->dialer->deadline - now : 0;
}

static void set_patience(struct link *link, uint64_t ms)
{
    uint64_t most = remaining(link);

    link_set_timer(link, ms < most ? ms : most);
}

static void give_up(struct link *link)
{
    const struct link_client_options *options = &link->dialer->options;
    char why[LINK_WHY_MAX], port[32] = "";

    if (options->port != 0)
        snprintf(port, sizeof(port), " port %d", options->port);
    snprintf(why, sizeof(why), "no leader of job %u.%u at %.64s%s within %g s: %s", options->job_id,
             options->restarts, options->address, port, options->timeout_ms / 1000.0,
             link->dialer->failure);
    link_end(link, why);
}

static void end_round(struct link *link)
{
    link->dialer->candidate = 0;
    link->dialer->looked = false;
    link->dialer->rounds++;
    link->dialer->pause = true;
}

/* After a port without success. The leader's file is looked at once in a round: as soon as another
 * program has been met at a candidate, or after the last one. */
static void next_port(struct link *link, bool met)
{
    struct dialer *dialer = link->dialer;

    if (dialer->addresses == NULL || dialer->options.port != 0) {
        end_round(link);
        return;
    }
    dialer->candidate = dialer->candidate == LINK_CANDIDATES ? dialer->resume
                                                             : dialer->candidate + 1;
    if (!dialer->looked && (met || dialer->candidate == LINK_CANDIDATES)) {
        dialer->looked = true;
        dialer->resume = dialer->candidate;
        dialer->candidate = LINK_CANDIDATES;
        dialer->published = 0;
    } else if (dialer->candidate == LINK_CANDIDATES) {
        end_round(link);
    }
}

void link_client_timer(struct link *link)
{
    if (link->state == LINK_WAITING) {
        link->dialer->pause = false;
        link_client_next(link);
        return;
    }
    if (link->state == LINK_LOOKING) {
        /* The file system hangs. */
        next_port(link, false);
        link_enter(link, LINK_WAITING);
        link_client_next(link);
        return;
    }
    if (link->state == LINK_AUTH || link->state == LINK_RESOLVING)
        snprintf(link->dialer->failure, sizeof(link->dialer->failure), "%s does not answer",
                 link->state == LINK_AUTH ? "munged" : "the name service");
    else
        link_fail(link, "silent");
    if (remaining(link) == 0)
        give_up(link);
}

/* ---- failures, and what comes next ----------------------------------------------------------- */

void link_client_failed(struct link *link, const char *why)
{
    struct dialer *dialer = link->dialer;

    log_debug("looking for the leader of job %u.%u: %s", dialer->options.job_id,
              dialer->options.restarts, why);
    if (dialer->severity >= dialer->worst) {
        dialer->worst = dialer->severity;
        snprintf(dialer->failure, sizeof(dialer->failure), "%s", why);
    }
    if (dialer->address != NULL)
        dialer->address = dialer->address->ai_next;
    if (dialer->address != NULL)
        return;
    dialer->address = dialer->addresses;
    next_port(link, dialer->severity > SEVERITY_ABSENT);
}

static int port_of_attempt(const struct dialer *dialer)
{
    const struct link_client_options *options = &dialer->options;

    if (options->port != 0)
        return options->port;
    if (dialer->candidate == LINK_CANDIDATES)
        return dialer->published;
    return link_candidate_port(options->job_id, options->restarts, dialer->candidate,
                               options->port_first, options->port_last);
}

/* ---- the handshake --------------------------------------------------------------------------- */

static void fail_at(struct link *link, int severity, const char *why)
{
    link->dialer->severity = severity;
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
    set_patience(link, LINK_HANDSHAKE_MS);
    if (link_transmit(link, msg) != 0 || link_start_reading(link) != 0)
        link_fail(link, "cannot be answered");
}

static void accept_checked(struct link *link, struct auth_job *job)
{
    if (job->failed)
        fail_at(link, SEVERITY_REFUSED, job->err.text);
    else
        link_opened(link, job->key, job->peer_uid);
}

static struct auth_job *job_create(struct link *link, void (*work)(struct auth_job *),
                                   void (*done)(struct link *, struct auth_job *))
{
    const struct link_client_options *options = &link->dialer->options;
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
    job->mine.port = job->theirs.port = port_of_attempt(link->dialer);
    memcpy(job->theirs.nonce, link->nonce, sizeof(link->nonce));
    return job;
}

static void start_job(struct link *link, struct auth_job *job)
{
    link_enter(link, LINK_AUTH);
    link_set_timer(link, remaining(link));
    if (auth_job_run(job) == 0)
        return;
    link->job = NULL;
    auth_job_free(job);
    link_fail(link, "cannot start a worker thread");
}

static void received_challenge(struct link *link, json_object *msg)
{
    struct auth_job *job;

    if (hex_to_bytes(link_field(msg, "nonce"), link->peer_nonce) != 0) {
        link_fail(link, "sent an incomplete challenge");
        return;
    }
    randombytes_buf(link->key, sizeof(link->key));
    job = job_create(link, make_proof, proof_made);
    if (job != NULL)
        start_job(link, job);
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
    if (job == NULL) {
        link_fail(link, "out of memory");
        return;
    }
    job->received = strdup(cred);
    start_job(link, job);
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

/* ---- attempts -------------------------------------------------------------------------------- */

static json_object *hello_new(struct link *link)
{
    const struct link_client_options *options = &link->dialer->options;
    json_object *msg = json_object_new_object();
    char nonce[LINK_NONCE_HEX], base[24];

    randombytes_buf(link->nonce, sizeof(link->nonce));
    sodium_bin2hex(nonce, sizeof(nonce), link->nonce, sizeof(link->nonce));
    link_base(base, sizeof(base), options->job_id, options->restarts);
    json_object_object_add(msg, "t", json_object_new_string("hello"));
    json_object_object_add(msg, "v", json_object_new_int(LINK_VERSION));
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
        link->dialer->severity = SEVERITY_ABSENT;
        link_fail(link, "%s", uv_strerror(status));
        return;
    }
    uv_tcp_nodelay(&link->tcp, 1);
    link_enter(link, LINK_CHALLENGE);
    set_patience(link, SILENCE_MS);
    if (link_transmit(link, hello_new(link)) != 0 || link_start_reading(link) != 0)
        link_fail(link, "cannot start the handshake");
}

static void attempt(struct link *link)
{
    struct dialer *dialer = link->dialer;
    struct sockaddr_storage address;
    int port = port_of_attempt(dialer), code;
    size_t len;

    memcpy(&address, dialer->address->ai_addr, dialer->address->ai_addrlen);
    if (address.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&address)->sin6_port = htons((uint16_t)port);
    else
        ((struct sockaddr_in *)&address)->sin_port = htons((uint16_t)port);
    getnameinfo((struct sockaddr *)&address, dialer->address->ai_addrlen, link->address,
                sizeof(link->address) - 8, NULL, 0, NI_NUMERICHOST);
    len = strlen(link->address);
    snprintf(link->address + len, sizeof(link->address) - len, ":%d", port);
    dialer->severity = SEVERITY_STRANGE;
    link_enter(link, LINK_CONNECTING);
    if (link_reset_frames(link) != 0 || uv_tcp_init(link->loop, &link->tcp) != 0) {
        link_end(link, "out of memory");
        return;
    }
    link->tcp_live = true;
    set_patience(link, SILENCE_MS);
    code = uv_tcp_connect(&dialer->connect, &link->tcp, (struct sockaddr *)&address, connected);
    if (code != 0)
        link_fail(link, "%s", uv_strerror(code));
}

static void resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *addresses)
{
    struct resolve_job *resolve = (struct resolve_job *)req;
    struct link *link = resolve->link;

    free(resolve);
    if (link == NULL) {
        uv_freeaddrinfo(addresses);
        return;
    }
    link->dialer->resolve = NULL;
    link->dialer->addresses = addresses;
    link->dialer->address = addresses;
    if (link->state != LINK_RESOLVING)
        return; /* ends; the addresses are freed with the dialer */
    if (status != 0 || addresses == NULL) {
        link->dialer->severity = SEVERITY_STRANGE;
        link_fail(link, "%s", status != 0 ? uv_strerror(status) : "has no address");
        return;
    }
    link_enter(link, LINK_WAITING);
    link_client_next(link);
}

static void resolve(struct link *link)
{
    struct dialer *dialer = link->dialer;
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct resolve_job *job = calloc(1, sizeof(*job));

    link_enter(link, LINK_RESOLVING);
    link_set_timer(link, remaining(link));
    if (job == NULL || uv_getaddrinfo(link->loop, &job->req, resolved, dialer->options.address,
                                      NULL, &hints) != 0) {
        free(job);
        link_end(link, "cannot look up the leader's address");
        return;
    }
    job->link = link;
    dialer->resolve = job;
}

/* ---- the published port ---------------------------------------------------------------------- */

static void look_work(uv_work_t *req)
{
    struct look_job *look = req->data;

    look->port = link_port_read(look->state_dir, look->base, look->owner);
}

static void look_done(uv_work_t *req, int status)
{
    struct look_job *look = req->data;
    struct link *link = look->link;
    int port = status == 0 ? look->port : 0;

    free(look->state_dir);
    free(look);
    if (link == NULL)
        return;
    link->dialer->look = NULL;
    if (link->state != LINK_LOOKING)
        return;
    link->dialer->published = port;
    if (port == 0)
        next_port(link, false);
    link_enter(link, LINK_WAITING);
    link_client_next(link);
}

/* False: nothing can be looked at now. */
static bool look(struct link *link)
{
    struct dialer *dialer = link->dialer;
    struct look_job *look;

    if (dialer->options.state_dir == NULL || dialer->look != NULL ||
        (look = calloc(1, sizeof(*look))) == NULL)
        return false;
    link_base(look->base, sizeof(look->base), dialer->options.job_id, dialer->options.restarts);
    look->owner = dialer->options.leader_uid;
    look->state_dir = strdup(dialer->options.state_dir);
    look->req.data = look;
    if (look->state_dir == NULL ||
        uv_queue_work(link->loop, &look->req, look_work, look_done) != 0) {
        free(look->state_dir);
        free(look);
        return false;
    }
    look->link = link;
    dialer->look = look;
    link_enter(link, LINK_LOOKING);
    set_patience(link, SILENCE_MS);
    return true;
}

void link_client_next(struct link *link)
{
    struct dialer *dialer = link->dialer;

    if (dialer->candidate == LINK_CANDIDATES && dialer->published == 0 && remaining(link) > 0) {
        if (look(link))
            return;
        next_port(link, false);
    }
    if (remaining(link) == 0) {
        give_up(link);
    } else if (dialer->pause && dialer->options.once) {
        give_up(link);
    } else if (dialer->pause) {
        uint64_t pause = dialer->rounds < 8 ? (uint64_t)PAUSE_FIRST_MS << (dialer->rounds - 1)
                                            : PAUSE_MAX_MS;

        /* So that members do not all dial at the same moment. */
        set_patience(link, pause / 2 + randombytes_uniform((uint32_t)pause));
    } else if (dialer->addresses == NULL) {
        resolve(link);
    } else {
        attempt(link);
    }
}

/* ---- start and end --------------------------------------------------------------------------- */

void dialer_destroy(struct dialer *dialer)
{
    if (dialer == NULL)
        return;
    if (dialer->resolve != NULL) {
        dialer->resolve->link = NULL;
        uv_cancel((uv_req_t *)&dialer->resolve->req);
    }
    if (dialer->look != NULL) {
        dialer->look->link = NULL;
        uv_cancel((uv_req_t *)&dialer->look->req);
    }
    if (dialer->addresses != NULL)
        uv_freeaddrinfo(dialer->addresses);
    free((char *)dialer->options.role);
    free((char *)dialer->options.address);
    free((char *)dialer->options.munge_socket);
    free((char *)dialer->options.state_dir);
    free(dialer);
}

static struct dialer *dialer_create(uv_loop_t *loop, const struct link_client_options *options)
{
    struct dialer *dialer = calloc(1, sizeof(*dialer));

    if (dialer == NULL)
        return NULL;
    dialer->options = *options;
    dialer->options.role = strdup(options->role);
    dialer->options.address = strdup(options->address);
    dialer->options.munge_socket = options->munge_socket != NULL ? strdup(options->munge_socket)
                                                                 : NULL;
    dialer->options.state_dir = options->state_dir != NULL ? strdup(options->state_dir) : NULL;
    if (dialer->options.role == NULL || dialer->options.address == NULL ||
        (options->state_dir != NULL && dialer->options.state_dir == NULL) ||
        (options->munge_socket != NULL && dialer->options.munge_socket == NULL)) {
        dialer_destroy(dialer);
        return NULL;
    }
    uv_update_time(loop);
    dialer->deadline = uv_now(loop) + (uint64_t)(options->timeout_ms > 0 ? options->timeout_ms : 0);
    snprintf(dialer->failure, sizeof(dialer->failure), "nobody has answered");
    return dialer;
}

struct link *link_connect(uv_loop_t *loop, const struct link_client_options *options,
                          const struct link_handlers *handlers, void *arg, struct error *err)
{
    struct dialer *dialer = sodium_init() < 0 ? NULL : dialer_create(loop, options);
    struct link *link = dialer != NULL ? link_new(loop, handlers, arg) : NULL;

    if (link == NULL) {
        dialer_destroy(dialer);
        error_set(err, "cannot connect to %s: out of memory or no random numbers",
                  options->address);
        return NULL;
    }
    link->dialer = dialer;
    dialer->connect.data = link;
    snprintf(link->role, sizeof(link->role), "%s", options->role);
    snprintf(link->address, sizeof(link->address), "%s", options->address);
    link_client_next(link);
    return link;
}
