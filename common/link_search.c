/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A client's search for the leader among its candidate ports.
 *
 * Any user of the leader's node may have taken some of the ports, or all, and may be silent there
 * or play the beginning of a handshake. So the attempts overlap: a round begins an attempt at each
 * candidate and each address, the next one as soon as an attempt fails, and otherwise STAGGER_MS
 * after the one before. The first peer that proves to be the leader of this incarnation ends all
 * others. As a rule that is the first attempt, and no other is begun.
 *
 * The leader's file of its port spares the way through taken candidates. It is looked at once in a
 * round, beside the attempts: the file system may be slow, and the file may be missing or outdated.
 *
 * Rounds are repeated after a pause until the time is up: members of a job start together, and the
 * leader may be the last to be ready. At no port and address there are two attempts at once. */
#include "common/link_private.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "common/log.h"

#define STAGGER_MS 200
/* As a rule the first candidate has answered by then, and the file is not looked at. */
#define LOOK_MS 50
/* The end of a round waits so long for the file. */
#define LOOK_PATIENCE_MS 200
#define PAUSE_FIRST_MS   10
#define PAUSE_MAX_MS     800
/* All candidates and the published port, at a name's two addresses. */
#define ATTEMPTS_MAX (2 * (LINK_CANDIDATES + 1))

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

/* ---- failures -------------------------------------------------------------------------------- */

static void note_failure(struct dialer *dialer, int severity, const char *why)
{
    log_debug("looking for the leader of job %u.%u: %s", dialer->options.job_id,
              dialer->options.restarts, why);
    if (severity < dialer->worst)
        return;
    dialer->worst = severity;
    snprintf(dialer->failure, sizeof(dialer->failure), "%s", why);
}

static bool is_active(const struct link *attempt)
{
    return attempt->state != LINK_CLOSED;
}

/* Something has happened that the search may go on with. */
static void go_on(struct link *search)
{
    if (!search->dialer->pause)
        search->dialer->due = 0;
    link_set_timer(search, 0);
}

void link_search_failed(struct link *attempt, const char *why)
{
    struct link *search = attempt->attempt->search;

    note_failure(search->dialer, attempt->attempt->severity, why);
    search->dialer->look_due = 0;
    go_on(search);
}

/* What has not answered has failed too. */
static void give_up(struct link *search)
{
    struct dialer *dialer = search->dialer;
    const struct link_client_options *options = &dialer->options;
    char why[LINK_WHY_MAX], port[32] = "";
    struct link *attempt;

    TAILQ_FOREACH (attempt, &dialer->attempts, entry) {
        snprintf(why, sizeof(why), "%s: silent", attempt->address);
        if (attempt->state == LINK_AUTH)
            note_failure(dialer, SEVERITY_REFUSED, "munged does not answer");
        else if (is_active(attempt))
            note_failure(dialer, attempt->attempt->severity, why);
    }
    /* An answer that it gave before tells more. */
    if (dialer->resolve != NULL)
        note_failure(dialer, SEVERITY_ABSENT, "the name service does not answer");
    if (options->port != 0)
        snprintf(port, sizeof(port), " port %d", options->port);
    snprintf(why, sizeof(why), "no leader of job %u.%u at %.64s%s within %g s: %s", options->job_id,
             options->restarts, options->address, port, options->timeout_ms / 1000.0,
             dialer->failure);
    link_end(search, why);
}

/* ---- attempts -------------------------------------------------------------------------------- */

void link_search_run_jobs(struct link *search)
{
    struct link *attempt;

    /* One at a time: if munged hangs it must not take all of libuv's worker threads with it. */
    TAILQ_FOREACH (attempt, &search->dialer->attempts, entry)
        if (attempt->job != NULL && !attempt->job_queued)
            return;
    TAILQ_FOREACH (attempt, &search->dialer->attempts, entry) {
        struct auth_job *job = attempt->job;

        if (!attempt->job_queued)
            continue;
        attempt->job_queued = false;
        if (auth_job_run(job) == 0)
            return;
        attempt->job = NULL;
        auth_job_free(job);
        link_fail(attempt, "cannot start a worker thread");
    }
}

static void set_port(struct sockaddr_storage *address, int port)
{
    if (address->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)address)->sin6_port = htons((uint16_t)port);
    else
        ((struct sockaddr_in *)address)->sin_port = htons((uint16_t)port);
}

static bool is_under_way(const struct dialer *dialer, const struct sockaddr_storage *peer)
{
    const struct link *attempt;

    TAILQ_FOREACH (attempt, &dialer->attempts, entry)
        if (is_active(attempt) && memcmp(&attempt->attempt->peer, peer, sizeof(*peer)) == 0)
            return true;
    return false;
}

/* False: there is one already, or no memory. */
static bool begin_attempt(struct link *search, const struct addrinfo *address, int port)
{
    static const struct link_handlers nobody = {0};
    struct sockaddr_storage peer = {0};
    struct attempt *attempt;
    struct link *link;

    memcpy(&peer, address->ai_addr, address->ai_addrlen);
    set_port(&peer, port);
    if (is_under_way(search->dialer, &peer) || (attempt = calloc(1, sizeof(*attempt))) == NULL)
        return false;
    link = link_new(search->loop, &nobody, NULL);
    if (link == NULL) {
        free(attempt);
        return false;
    }
    attempt->search = search;
    attempt->peer = peer;
    attempt->port = port;
    link->attempt = attempt;
    TAILQ_INSERT_TAIL(&search->dialer->attempts, link, entry);
    link_attempt_start(link);
    return true;
}

struct link *link_attempt_destroy(struct link *link)
{
    struct link *search;

    if (link->attempt == NULL)
        return NULL;
    search = link->attempt->search;
    TAILQ_REMOVE(&search->dialer->attempts, link, entry);
    free(link->attempt);
    return search;
}

bool link_search_has_attempts(const struct link *link)
{
    return link->dialer != NULL && !TAILQ_EMPTY(&link->dialer->attempts);
}

void link_search_won(struct link *attempt, const uint8_t key[LINK_KEY_BYTES], uid_t peer_uid)
{
    struct link *search = attempt->attempt->search;

    search->tcp = attempt->tcp;
    search->tcp->data = search;
    search->reader = attempt->reader;
    search->writer = attempt->writer;
    attempt->tcp = NULL;
    attempt->reader = NULL;
    link_search_end(search);
    link_opened(search, key, peer_uid);
}

/* ---- the leader's address -------------------------------------------------------------------- */

static void begin_round(struct dialer *dialer, uint64_t now)
{
    const struct link_client_options *options = &dialer->options;

    dialer->pause = false;
    dialer->candidate = 0;
    dialer->next = dialer->addresses;
    dialer->looked = options->state_dir == NULL || options->port != 0;
    dialer->look_due = dialer->rounds == 0 ? now + LOOK_MS : now;
}

static void end_round(struct link *search, uint64_t now)
{
    struct dialer *dialer = search->dialer;
    uint64_t pause = dialer->rounds < 7 ? (uint64_t)PAUSE_FIRST_MS << dialer->rounds : PAUSE_MAX_MS;

    dialer->rounds++;
    dialer->pause = true;
    /* So that members do not all dial at the same moment. */
    dialer->due = now + pause / 2 + randombytes_uniform((uint32_t)pause);
}

static void resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *addresses)
{
    struct resolve_job *resolve = (struct resolve_job *)req;
    struct link *search = resolve->link;
    char why[LINK_FAILURE_MAX];

    free(resolve);
    if (search == NULL) {
        uv_freeaddrinfo(addresses);
        return;
    }
    search->dialer->resolve = NULL;
    search->dialer->addresses = addresses;
    search->dialer->due = 0;
    if (status != 0 || addresses == NULL) {
        snprintf(why, sizeof(why), "%.64s: %s", search->dialer->options.address,
                 status != 0 ? uv_strerror(status) : "has no address");
        note_failure(search->dialer, SEVERITY_STRANGE, why);
        end_round(search, uv_now(search->loop));
    }
    link_set_timer(search, 0);
}

/* False: the link has ended. */
static bool resolve(struct link *search)
{
    struct dialer *dialer = search->dialer;
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct resolve_job *job = calloc(1, sizeof(*job));

    if (job == NULL || uv_getaddrinfo(search->loop, &job->req, resolved, dialer->options.address,
                                      NULL, &hints) != 0) {
        free(job);
        link_end(search, "cannot look up the leader's address");
        return false;
    }
    job->link = search;
    dialer->resolve = job;
    dialer->due = dialer->deadline;
    return true;
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
    struct link *search = look->link;
    int port = status == 0 ? look->port : 0;

    free(look->state_dir);
    free(look);
    if (search == NULL)
        return;
    search->dialer->look = NULL;
    search->dialer->published = port;
    search->dialer->published_next = port != 0 ? search->dialer->addresses : NULL;
    go_on(search);
}

static void look(struct link *search, uint64_t now)
{
    struct dialer *dialer = search->dialer;
    struct look_job *look;

    dialer->looked = true;
    if (dialer->look != NULL || (look = calloc(1, sizeof(*look))) == NULL)
        return;
    link_base(look->base, sizeof(look->base), dialer->options.job_id, dialer->options.restarts);
    look->owner = dialer->options.leader_uid;
    look->state_dir = strdup(dialer->options.state_dir);
    look->req.data = look;
    if (look->state_dir == NULL ||
        uv_queue_work(search->loop, &look->req, look_work, look_done) != 0) {
        free(look->state_dir);
        free(look);
        return;
    }
    look->link = search;
    dialer->look = look;
    dialer->look_until = now + LOOK_PATIENCE_MS;
}

/* ---- what comes next ------------------------------------------------------------------------- */

/* The port and address of the next attempt in this round. NULL: there is none. */
static const struct addrinfo *next_peer(struct dialer *dialer, int *port)
{
    const struct link_client_options *options = &dialer->options;
    const struct addrinfo *address = dialer->published_next;

    if (address != NULL) {
        dialer->published_next = address->ai_next;
        *port = dialer->published;
        return address;
    }
    if (dialer->candidate == LINK_CANDIDATES)
        return NULL;
    address = dialer->next;
    *port = options->port != 0
                ? options->port
                : link_candidate_port(options->job_id, options->restarts, dialer->candidate,
                                      options->port_first, options->port_last);
    dialer->next = address->ai_next;
    if (dialer->next == NULL) {
        dialer->next = dialer->addresses;
        dialer->candidate = options->port != 0 ? LINK_CANDIDATES : dialer->candidate + 1;
    }
    return address;
}

static int count_active(const struct dialer *dialer)
{
    const struct link *attempt;
    int count = 0;

    TAILQ_FOREACH (attempt, &dialer->attempts, entry)
        count += is_active(attempt);
    return count;
}

/* All candidates have had their attempt in this round. */
static void round_over(struct link *search, uint64_t now)
{
    struct dialer *dialer = search->dialer;

    if (!dialer->looked)
        look(search, now);
    if (dialer->look != NULL && now < dialer->look_until)
        dialer->due = dialer->look_until;
    else if (!dialer->options.once)
        end_round(search, now);
    else if (count_active(dialer) > 0)
        dialer->due = dialer->deadline;
    else
        give_up(search);
}

/* Begin the attempts that are due. */
static void begin_attempts(struct link *search, uint64_t now)
{
    struct dialer *dialer = search->dialer;
    const struct addrinfo *address;
    int port = 0;

    if (dialer->pause)
        begin_round(dialer, now);
    if (count_active(dialer) >= ATTEMPTS_MAX) {
        dialer->due = now + STAGGER_MS;
        return;
    }
    do
        address = next_peer(dialer, &port);
    while (address != NULL && !begin_attempt(search, address, port));
    if (address == NULL)
        round_over(search, now);
    else if (is_active(TAILQ_LAST(&dialer->attempts, link_list)))
        dialer->due = now + STAGGER_MS;
}

void link_search_timer(struct link *search)
{
    struct dialer *dialer = search->dialer;
    uint64_t now, next;

    uv_update_time(search->loop);
    now = uv_now(search->loop);
    if (now >= dialer->deadline) {
        give_up(search);
        return;
    }
    if (now >= dialer->due) {
        if (dialer->addresses != NULL)
            begin_attempts(search, now);
        else if (dialer->rounds > 0 && dialer->options.once)
            give_up(search);
        else if (!resolve(search))
            return;
    }
    if (search->state != LINK_SEARCHING)
        return;
    if (dialer->addresses != NULL && !dialer->looked && now >= dialer->look_due)
        look(search, now);
    next = dialer->due < dialer->deadline ? dialer->due : dialer->deadline;
    if (dialer->addresses != NULL && !dialer->looked && dialer->look_due < next)
        next = dialer->look_due;
    /* Libuv never gets beyond a timer that sets itself to 0. */
    link_set_timer(search, next > now ? next - now : 1);
}

/* ---- start and end --------------------------------------------------------------------------- */

static void forget_threads(struct dialer *dialer)
{
    if (dialer->resolve != NULL) {
        dialer->resolve->link = NULL;
        uv_cancel((uv_req_t *)&dialer->resolve->req);
    }
    if (dialer->look != NULL) {
        dialer->look->link = NULL;
        uv_cancel((uv_req_t *)&dialer->look->req);
    }
    dialer->resolve = NULL;
    dialer->look = NULL;
}

void link_search_end(struct link *search)
{
    struct link *attempt;

    forget_threads(search->dialer);
    TAILQ_FOREACH (attempt, &search->dialer->attempts, entry)
        link_end(attempt, "the search is over");
}

void dialer_destroy(struct dialer *dialer)
{
    if (dialer == NULL)
        return;
    forget_threads(dialer);
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
    TAILQ_INIT(&dialer->attempts);
    dialer->pause = true; /* before the first round */
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
    snprintf(link->role, sizeof(link->role), "%s", options->role);
    snprintf(link->address, sizeof(link->address), "%s", options->address);
    link_search_timer(link);
    return link;
}
