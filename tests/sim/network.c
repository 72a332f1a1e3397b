/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The network: common/link.h between processes of the simulation.
 *
 * Messages of one connection arrive in their order, those of several in any. What is sent while
 * the nodes cannot reach each other waits, as TCP's does. */
#include <stdarg.h>

#include "common/link.h"
#include "tests/sim/sim.h"

#define ATTEMPT    (2 * SECOND) /* until one that is not answered is given up */
#define LINGER     (1 * SECOND)
#define PORT       23000
#define HANDSHAKES 3 /* times a message's way until a connection is open */

struct link_server {
    struct link_server *next_on_node;
    struct host *host;
    uint32_t job, restarts;
    int port;
    bool successor, closed;
    struct link_handlers handlers;
    void *arg;
};

struct packet {
    struct packet *next;
    struct link *to;
    json_object *msg; /* NULL: the end of the connection, or text */
    char *text;       /* where bytes are counted: as it is sent */
    bool reset;       /* … not in order */
};

struct link {
    struct host *host;
    struct link *next_of_host, *peer;
    struct link_server *server; /* of the side that listens; NULL: of the one that connects */
    struct link_handlers handlers;
    void *arg;
    char role[16], address[32];
    char *why;
    bool open, closing, over, peer_closed;
    uint64_t last;                   /* when what has been sent last arrives */
    struct packet *held, **held_end; /* while the way is cut */
    /* Of one that connects. */
    uint32_t job, restarts;
    int port;
    bool once;
    uint64_t deadline, pause;
};

static struct network_options options;
static int next_port;
bool network_count;
void (*network_watch)(const struct host *from, const struct host *to, const char *type,
                      json_object *msg);

void network_begin(const struct network_options *network)
{
    options = *network;
    next_port = PORT;
}

bool network_reaches(const struct node *from, const struct node *to)
{
    return from->up && to->up && (from == to || from->island == to->island);
}

uint64_t network_bytes(const struct host *host)
{
    return host->bytes;
}

static uint64_t delay(const struct host *from, const struct host *to)
{
    if (from->node == to->node)
        return chance_between(20, 100);
    if (chance_percent(options.slow_percent))
        return chance_between(options.delay_least, options.slow_most);
    return chance_between(options.delay_least, options.delay_most);
}

/* ---- packets --------------------------------------------------------------------------------- */

static void end(struct link *link)
{
    if (link->over)
        return;
    link->over = true;
    link->open = false;
    link->handlers.closed(link, link->why != NULL ? link->why : "?", link->arg);
}

static void end_later(void *arg)
{
    end(arg);
}

static void break_link(struct link *link, bool reset)
{
    if (link->over || link->closing)
        return;
    link->closing = true;
    link->peer_closed = !reset;
    link->why = strdup(reset ? "connection reset by peer" : "the peer has closed the connection");
    end(link);
}

static void arrive(void *arg)
{
    struct packet *packet = arg;
    struct link *link = packet->to;
    json_object *msg = packet->msg;
    char *text = packet->text;
    bool reset = packet->reset;

    free(packet);
    if (text != NULL) {
        msg = json_tokener_parse(text);
        free(text);
    }
    if (msg == NULL)
        break_link(link, reset);
    else if (link->open && !link->closing && !link->over)
        link->handlers.message(link, msg, link->arg);
    json_object_put(msg);
}

static void send_packet(struct link *from, struct packet *packet)
{
    struct link *to = packet->to;
    uint64_t when;

    if (!network_reaches(from->host->node, to->host->node)) {
        *from->held_end = packet;
        from->held_end = &packet->next;
        return;
    }
    packet->next = NULL;
    when = clock_now() + delay(from->host, to->host);
    if (when > from->last)
        from->last = when;
    clock_at(from->last, to->host, arrive, packet);
}

static struct packet *packet_to(struct link *to, json_object *msg)
{
    struct packet *packet = calloc(1, sizeof(*packet));

    MUST(packet != NULL);
    packet->to = to;
    packet->msg = msg;
    return packet;
}

static void send_end(struct link *link, bool reset)
{
    struct packet *packet;

    if (link->peer == NULL || link->peer->over)
        return;
    packet = packet_to(link->peer, NULL);
    packet->reset = reset;
    send_packet(link, packet);
}

/* TCP tries again after a while. */
static void send_held(struct link *link)
{
    struct packet *packet = link->held;

    link->held = NULL;
    link->held_end = &link->held;
    if (packet != NULL && network_reaches(link->host->node, link->peer->host->node))
        link->last = clock_now() + chance_between(0, SECOND);
    while (packet != NULL) {
        struct packet *next = packet->next;

        packet->next = NULL;
        send_packet(link, packet);
        packet = next;
    }
}

void network_changed(void)
{
    for (struct host *host = host_list(); host != NULL; host = host->next)
        for (struct link *link = host->links; link != NULL; link = link->next_of_host)
            if (link->held != NULL)
                send_held(link);
}

/* ---- connections ----------------------------------------------------------------------------- */

static struct link *link_new(struct host *host, const struct link_handlers *handlers, void *arg,
                             const char *role)
{
    struct link *link = calloc(1, sizeof(*link));

    MUST(link != NULL);
    link->host = host;
    link->handlers = *handlers;
    link->arg = arg;
    link->held_end = &link->held;
    snprintf(link->role, sizeof(link->role), "%s", role);
    link->next_of_host = host->links;
    host->links = link;
    return link;
}

static void opened(void *arg)
{
    struct link *link = arg;

    if (link->over || link->closing)
        return;
    link->open = true;
    link->handlers.open(link, link->arg);
}

static void fail(struct link *link, const char *why)
{
    if (link->closing)
        return;
    link->closing = true;
    link->why = strdup(why);
    end(link);
}

static void attempt(void *arg);

static void try_again(struct link *link, uint64_t pause, const char *why)
{
    if (link->once || clock_now() + pause >= link->deadline)
        fail(link, why);
    else
        clock_in(pause, link->host, attempt, link);
}

static void unanswered(void *arg)
{
    try_again(arg, 0, "nobody has answered");
}

static struct link_server *find_server(const struct node *node, const struct link *link)
{
    for (struct link_server *each = node->servers; each != NULL; each = each->next_on_node)
        if (!each->closed && each->host->state != HOST_ENDED && each->job == link->job &&
            each->restarts == link->restarts &&
            (link->port != 0 ? each->port == link->port : !each->successor))
            return each;
    return NULL;
}

/* An extension whose calls nobody answers yet (SLOW_NETWORK). */
static bool has_no_way(const struct host *host)
{
    return !host->base && setup_now->slurm.slow == SLOW_NETWORK &&
           clock_now() < host->job->started + setup_now->slurm.slow_time;
}

static void attempt(void *arg)
{
    struct link *link = arg, *other;
    struct node *node = node_named(link->address);
    struct link_server *server = node != NULL ? find_server(node, link) : NULL;

    if (link->closing || link->over)
        return;
    if (clock_now() >= link->deadline) {
        fail(link, "nobody has answered");
        return;
    }
    if (node == NULL || !network_reaches(link->host->node, node) || has_no_way(link->host) ||
        (server != NULL && server->host->state == HOST_STOPPED)) {
        uint64_t left = link->deadline - clock_now();

        clock_in(left < ATTEMPT ? left : ATTEMPT, link->host, unanswered, link);
        return;
    }
    if (server == NULL) {
        link->pause = link->pause == 0         ? 10 * MS
                      : link->pause < 400 * MS ? 2 * link->pause
                                               : 800 * MS;
        try_again(link, link->pause / 2 + chance_between(0, link->pause), "connection refused");
        return;
    }
    if (server->successor && strcmp(link->role, LINK_ROLE_VOTER) != 0) {
        try_again(link, 800 * MS, "does not lead the job");
        return;
    }
    other = link_new(server->host, &server->handlers, server->arg, link->role);
    other->server = server;
    snprintf(other->address, sizeof(other->address), "%s", link->host->node->name);
    other->peer = link;
    link->peer = other;
    other->last = link->last = clock_now() + HANDSHAKES * delay(link->host, server->host);
    clock_at(other->last, server->host, opened, other);
    other->last += delay(link->host, server->host);
    clock_at(other->last, link->host, opened, link);
}

struct link *link_connect(uv_loop_t *loop, const struct link_client_options *client,
                          const struct link_handlers *handlers, void *arg, struct error *err)
{
    struct link *link = link_new(host_of_loop(loop), handlers, arg, client->role);

    (void)err;
    snprintf(link->address, sizeof(link->address), "%s", client->address);
    link->job = client->job_id;
    link->restarts = client->restarts;
    link->port = client->port;
    link->once = client->once;
    link->deadline = clock_now() + (uint64_t)client->timeout_ms * MS;
    clock_in(delay(link->host, link->host), link->host, attempt, link);
    return link;
}

int link_send(struct link *link, json_object *msg)
{
    json_object *copy = NULL;
    const char *type;

    if (!link->open || link->closing || link->over) {
        json_object_put(msg);
        return -1;
    }
    type = json_object_get_string(json_object_object_get(msg, "t"));
    if (network_watch != NULL)
        network_watch(link->host, link->peer->host, type != NULL ? type : "?", msg);
    if (network_count && !link->peer->over) {
        struct packet *packet = packet_to(link->peer, NULL);

        packet->text = strdup(json_object_to_json_string_ext(msg, JSON_C_TO_STRING_PLAIN));
        link->host->bytes += strlen(packet->text);
        json_object_put(msg);
        send_packet(link, packet);
        return 0;
    }
    if (link->peer->over || link->peer->host->state == HOST_ENDED) {
        /* Nobody is there: a node that is up says so. */
        if (network_reaches(link->host->node, link->peer->host->node)) {
            struct packet *packet = packet_to(link, NULL);

            packet->reset = true;
            clock_in(delay(link->host, link->peer->host), link->host, arrive, packet);
        }
        json_object_put(msg);
        return 0;
    }
    MUST(json_object_deep_copy(msg, &copy, NULL) == 0);
    json_object_put(msg);
    send_packet(link, packet_to(link->peer, copy));
    return 0;
}

void link_close(struct link *link, const char *why)
{
    MUST(why != NULL && !link->over);
    if (link->closing)
        return;
    link->closing = true;
    link->why = strdup(why);
    send_end(link, false);
    clock_in(link->held != NULL ? LINGER : 0, link->host, end_later, link);
}

void link_set_arg(struct link *link, void *arg)
{
    link->arg = arg;
}

const char *link_role(const struct link *link)
{
    return link->role;
}

bool link_is_guest(const struct link *link)
{
    (void)link;
    return false;
}

uid_t link_peer_uid(const struct link *link)
{
    (void)link;
    return 1000;
}

const char *link_peer_address(const struct link *link)
{
    return link->address;
}

bool link_peer_closed(const struct link *link)
{
    return link->peer_closed;
}

size_t link_queued(const struct link *link)
{
    (void)link;
    return 0;
}

/* ---- servers --------------------------------------------------------------------------------- */

struct link_server *link_server_create(uv_loop_t *loop, const struct link_server_options *wanted,
                                       const struct link_handlers *handlers, void *arg,
                                       struct error *err)
{
    struct link_server *server = calloc(1, sizeof(*server));

    (void)err;
    MUST(server != NULL);
    server->host = host_of_loop(loop);
    server->job = wanted->job_id;
    server->restarts = wanted->restarts;
    server->port = next_port++;
    server->successor = wanted->successor;
    server->handlers = *handlers;
    server->arg = arg;
    server->next_on_node = server->host->node->servers;
    server->host->node->servers = server;
    return server;
}

int link_server_port(const struct link_server *server)
{
    return server->port;
}

void link_server_admit(struct link_server *server, uid_t uid, bool guest, uint64_t ms)
{
    (void)server;
    (void)uid;
    (void)guest;
    (void)ms;
}

void link_server_lead(struct link_server *server, const struct link_handlers *handlers, void *arg)
{
    server->successor = false;
    server->handlers = *handlers;
    server->arg = arg;
    for (struct link *link = server->host->links; link != NULL; link = link->next_of_host)
        if (link->server == server && !link->over) {
            link->handlers = *handlers;
            link->arg = arg;
        }
}

void link_server_destroy(struct link_server *server)
{
    if (server == NULL || server->closed)
        return;
    server->closed = true;
    for (struct link *link = server->host->links; link != NULL; link = link->next_of_host)
        if (link->server == server && !link->over)
            link_close(link, "the leader ends");
}

/* ---- processes that end ---------------------------------------------------------------------- */

void network_host_gone(struct host *host, bool with_node)
{
    for (struct link *link = host->links; link != NULL; link = link->next_of_host) {
        if (link->over)
            continue;
        link->over = true;
        if (!with_node && !link->closing)
            send_end(link, chance_percent(20));
    }
    for (struct link_server *each = host->node->servers; each != NULL; each = each->next_on_node)
        each->closed = each->closed || each->host == host;
}

bool network_busy(const struct host *host)
{
    for (const struct link *link = host->links; link != NULL; link = link->next_of_host)
        if (!link->over)
            return true;
    for (const struct link_server *each = host->node->servers; each != NULL;
         each = each->next_on_node)
        if (each->host == host && !each->closed)
            return true;
    return false;
}

/* ---- a user ---------------------------------------------------------------------------------- */

static void ignore_open(struct link *link, void *arg)
{
    (void)link;
    (void)arg;
}

static void hear_answer(struct link *link, json_object *msg, void *arg)
{
    (void)arg;
    trace("selastic hears: %s", json_object_get_string(json_object_object_get(msg, "message")));
    link_close(link, "done");
}

static void ignore_end(struct link *link, const char *why, void *arg)
{
    (void)link;
    (void)why;
    (void)arg;
}

void network_ask(struct host *leader, json_object *msg)
{
    static const struct link_handlers handlers = {
        .open = ignore_open, .message = hear_answer, .closed = ignore_end};
    struct link *asks, *asked;

    for (struct link_server *each = leader->node->servers; each != NULL;
         each = each->next_on_node) {
        if (each->host != leader || each->closed || each->successor)
            continue;
        /* From a process of its own on the same node; it needs no identity here. */
        asks = calloc(1, sizeof(*asks));
        MUST(asks != NULL);
        *asks = (struct link){.host = leader, .handlers = handlers, .open = true};
        asks->held_end = &asks->held;
        asked = link_new(leader, &each->handlers, each->arg, LINK_ROLE_CONTROL);
        asked->server = each;
        asked->open = true;
        asked->peer = asks;
        asks->peer = asked;
        link_send(asks, msg);
        return;
    }
    json_object_put(msg);
}
