/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the files of link share: the stream, and the two sides of the handshake. */
#ifndef ELASTIC_LINK_PRIVATE_H
#define ELASTIC_LINK_PRIVATE_H

#include "common/link.h"

#include <netinet/in.h>
#include <sys/queue.h>

#include "common/link_auth.h"
#include "lib/callers.h"
#include "lib/frame.h"
#include "lib/guest_pace.h"

#define LINK_VERSION      2
#define LINK_HANDSHAKE_MS 5000
#define LINK_LINGER_MS    1000
#define LINK_READ_BYTES   65536
#define LINK_ADDRESS_MAX  64
#define LINK_WHY_MAX      512
#define LINK_FAILURE_MAX  256
#define LINK_LOG_EVERY_MS 10000 /* of what a leader does not accept */

enum link_state {
    LINK_SEARCHING,  /* client: attempts are made */
    LINK_CONNECTING, /* attempt */
    LINK_CHALLENGE,  /* attempt: hello is sent */
    LINK_ACCEPT,     /* attempt: proof is sent */
    LINK_HELLO,      /* leader: nothing has been received */
    LINK_PROOF,      /* leader: challenge is sent */
    LINK_AUTH,       /* a worker thread talks to munged; nothing is read */
    LINK_OPEN,
    LINK_CLOSING, /* the queue is being written, messages that arrive are dropped */
    LINK_CLOSED,  /* handles are being closed */
};

#define ADMITTED_MAX 64

/* Users that may control beside the own user, root and SlurmUser. */
struct admitted {
    struct {
        uid_t uid;
        bool guest;
        uint64_t until; /* ms of the loop's clock; 0: nobody */
    } list[ADMITTED_MAX];
    int next;
};

/* A job for a worker thread. The thread touches only the job: the link may be gone when the job is
 * done. */
struct auth_job {
    uv_work_t req;
    struct link *link; /* NULL: the link is gone, and the result is dropped */
    /* The leader whose limit of running jobs counts this job; NULL: none. */
    struct link_server *server;
    void (*work)(struct auth_job *job);
    void (*done)(struct link *link, struct auth_job *job);
    char *munge_socket;
    uid_t own_uid, slurm_user, leader_uid;
    struct admitted admitted; /* as it was when the job began */
    bool stranger;            /* refused, since it is none of the users that may control */
    bool guest;               /* admitted, but as a guest only */
    struct credential mine;   /* what this side proves */
    struct credential theirs; /* what the peer has to prove */
    uid_t peer_uid;
    char *received; /* the peer's credential */
    char *made;     /* this side's credential */
    uint8_t key[LINK_KEY_BYTES];
    bool failed;
    struct error err;
};

TAILQ_HEAD(link_list, link);

/* How much a failure tells the user. */
enum { SEVERITY_ABSENT, SEVERITY_STRANGE, SEVERITY_OTHER_JOB, SEVERITY_REFUSED };

/* The search of a client: which addresses and ports to try, and for how long. */
struct dialer {
    struct link_client_options options; /* strings are copies */
    struct addrinfo *addresses;
    struct resolve_job *resolve; /* in a thread */
    struct link_list attempts;   /* not yet freed, oldest first */
    struct addrinfo *next;       /* address of the next attempt, at candidate `candidate` */
    int candidate;               /* LINK_CANDIDATES: all have had their attempt in this round */
    int rounds;                  /* that are over */
    bool pause;                  /* before or between rounds */
    uint64_t due;                /* when something is to be begun; of the loop's clock, ms */
    uint64_t deadline;
    struct look_job *look; /* in a thread */
    bool looked;           /* in this round */
    uint64_t look_due;     /* when the file is looked at, unless an attempt fails before */
    uint64_t look_until;   /* how long the end of the round waits for it */
    int published;         /* the port that the leader's file names */
    struct addrinfo *published_next; /* address of the next attempt there; NULL: there is none */
    int worst; /* severity of the text in `failure`: the failure that tells most is reported */
    char failure[LINK_FAILURE_MAX];
    char buffer[LINK_READ_BYTES];
};

/* What a link has that is one of the attempts of a search. */
struct attempt {
    struct link *search;
    struct sockaddr_storage peer;
    int port;
    int severity; /* of the failure that comes */
    uv_connect_t connect;
};

struct link {
    uv_loop_t *loop;
    struct link_handlers handlers;
    void *arg;
    bool own_arg; /* link_set_arg() has been called */
    enum link_state state;
    struct link_server *server; /* NULL: client, or adopted */
    struct caller caller;       /* of a server's link */
    struct dialer *dialer;      /* NULL: server, attempt, or adopted */
    struct attempt *attempt;    /* NULL: the link is not one of several attempts */
    char *buffer;               /* of a link that is adopted */
    uv_tcp_t *tcp;              /* NULL: no stream, or it is closed */
    uv_timer_t timer;
    uv_shutdown_t shutdown;
    bool timer_live;
    struct frame_reader *reader;
    struct frame_writer writer;
    struct auth_job *job;
    bool job_queued;  /* waits, not yet given to a thread */
    bool heard;       /* anything at all */
    bool peer_closed; /* the last thing read was the peer's end of file */
    bool authenticated;
    bool announced; /* handlers.open has been called */
    char role[16];
    uid_t peer_uid;
    bool guest;
    char address[LINK_ADDRESS_MAX];
    uint8_t nonce[LINK_NONCE_BYTES]; /* ours */
    uint8_t peer_nonce[LINK_NONCE_BYTES];
    uint8_t key[LINK_KEY_BYTES]; /* client: our half, between proof and accept */
    uint64_t since;              /* when state was entered, ms of the loop's clock */
    char why[LINK_WHY_MAX];
    TAILQ_ENTRY(link) entry; /* server: in pending or open; client: in attempts */
    TAILQ_ENTRY(link) turn;  /* server: waiting for a worker thread */
};

struct link_server {
    uv_loop_t *loop;
    struct link_server_options options;
    char *munge_socket;
    char base[24];
    struct link_handlers handlers;
    void *arg;
    char *state_dir;
    int fd, port;
    bool anywhere; /* the port is none of the candidates */
    uv_poll_t poll;
    uv_timer_t pause;
    int handles; /* not yet closed */
    int links;   /* not yet freed */
    bool closing, paused;
    struct link_list pending; /* not authenticated, oldest first */
    int pending_count;
    struct link_list open;
    struct link_list turns; /* links whose job waits for a thread */
    int jobs;               /* with a thread */
    struct admitted admitted;
    struct guest_pace pace;
    uint64_t logged; /* when a failure was last logged, ms */
    int unlogged;    /* failures since */
    char buffer[LINK_READ_BYTES];
};

/* ---- link.c ---------------------------------------------------------------------------------- */
struct link *link_new(uv_loop_t *loop, const struct link_handlers *handlers, void *arg);
/* Make a stream that is not connected yet. -1: out of memory. */
int link_make_stream(struct link *link);
/* Make a new reader and writer for a connection that begins. */
int link_reset_frames(struct link *link);
void link_enter(struct link *link, enum link_state state);
int link_start_reading(struct link *link);
void link_set_timer(struct link *link, uint64_t ms);
/* Send a frame in whatever state the link is. Takes over msg. */
int link_transmit(struct link *link, json_object *msg);
/* The connection does not work, and ends. If it is an attempt, the search goes on. The text says
 * what the peer did; the peer's address is put before it. */
void link_fail(struct link *link, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Close the handles now. */
void link_end(struct link *link, const char *why);
/* Switch to keyed frames, call handlers.open, and deliver the messages that have arrived
 * meanwhile. */
void link_opened(struct link *link, const uint8_t key[LINK_KEY_BYTES], uid_t peer_uid);
void link_describe_peer(struct link *link);
void link_base(char *base, size_t size, uint32_t job_id, uint32_t restarts);
const char *link_field(json_object *msg, const char *name);
/* The job is run by a worker thread at once. */
int auth_job_run(struct auth_job *job);
void auth_job_free(struct auth_job *job);
struct auth_job *auth_job_new(struct link *link, const char *munge_socket,
                              void (*work)(struct auth_job *),
                              void (*done)(struct link *, struct auth_job *));

/* ---- link_port.c ----------------------------------------------------------------------------- */
/* Both may hang with the file system of state_dir. */
int link_port_write(const char *state_dir, const char *base, int port, struct error *err);
/* 0: there is no such file of that user, or no port in it. */
int link_port_read(const char *state_dir, const char *base, uid_t owner);

/* ---- link_server.c --------------------------------------------------------------------------- */
/* The last of what belongs to it is gone. */
void link_server_free_if_done(struct link_server *server);

/* ---- link_accept.c --------------------------------------------------------------------------- */
/* Begin to accept connections. */
void link_server_accept(struct link_server *server);
void link_server_opened(struct link *link);
/* The link ends: remove it from the server's pending and open links. */
void link_server_leave(struct link *link);
/* The link's handles are closed. */
void link_server_forget(struct link *link);

/* ---- link_judge.c ---------------------------------------------------------------------------- */
void link_server_received(struct link *link, json_object *msg);
/* The link no longer waits for its job. */
void link_server_dequeue(struct link *link);
void link_server_job_ended(struct link_server *server);
/* Log why an unauthenticated link has failed, not more often than people can read. */
void link_server_note(const struct link *link, const char *why);

/* ---- link_search.c --------------------------------------------------------------------------- */
/* Do what is due. */
void link_search_timer(struct link *search);
/* An attempt ends without success. Then link_end() is called with it. */
void link_search_failed(struct link *attempt, const char *why);
/* This attempt has proved to be the leader: the search is over. Frees the attempt's link later. */
void link_search_won(struct link *attempt, const uint8_t key[LINK_KEY_BYTES], uid_t peer_uid);
/* A job of an attempt can be run, or has ended. */
void link_search_run_jobs(struct link *search);
/* The link ends: so do the attempts. */
void link_search_end(struct link *search);
bool link_search_has_attempts(const struct link *link);
/* The attempt's handles are closed. Returns the search, NULL if the link is no attempt. */
struct link *link_attempt_destroy(struct link *link);
void dialer_destroy(struct dialer *dialer);

/* ---- link_client.c --------------------------------------------------------------------------- */
/* Begin to connect; the attempt's peer and port are set. */
void link_attempt_start(struct link *attempt);
void link_client_received(struct link *attempt, json_object *msg);

#endif
