/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the tests of link need: a munged, peers that count, a scene, raw sockets. */
#ifndef ELASTIC_LINK_FIXTURE_H
#define ELASTIC_LINK_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>

#include <json-c/json.h>
#include <uv.h>

#include "common/link.h"
#include "common/link_auth.h"
#include "lib/frame.h"

#define JOB 4711u
/* For what takes less than a second of processor time, and gets 2 % of a busy processor. */
#define PATIENCE_MS 60000

/* A munged with its own key and socket in a new directory. Returns NULL and a reason when there
 * can be none. */
const char *munged_start(const char **reason);
void munged_stop(void);
void munged_signal(int signal);
/* The directory of the private munged, for more sockets. */
const char *munged_dir(void);

/* One side: handlers that count. */
struct peer {
    int opened, closed, messages;
    char why[512];
    struct link *link; /* the one that was opened last; NULL once it is closed */
    json_object *last; /* the last message, owned */
    bool echo;         /* send each message back */
    int64_t expected;  /* next "n" of a message; messages with "n" must come in order */
    int disordered;
    struct link_server *admits; /* NULL: strangers stay what they are */
    bool admits_guests;         /* … are let in as guests */
    int guests;                 /* that have been let in */
    int strangers;              /* times that one was refused */
    const char *close_on;       /* close the link in the handler of a message with this "t" */
};
extern const struct link_handlers peer_handlers;
void peer_clear(struct peer *peer);

/* Run the loop until done(arg), at most PATIENCE_MS. False: not done by then. */
bool run_until(uv_loop_t *loop, bool (*done)(void *arg), void *arg);
bool run_until_opened(uv_loop_t *loop, struct peer *peer, int count);
bool run_until_closed(uv_loop_t *loop, struct peer *peer, int count);
bool run_until_messages(uv_loop_t *loop, struct peer *peer, int count);
/* Run until nothing is left to do, and close the loop; false if something is left. */
bool run_empty(uv_loop_t *loop);

/* A leader and a good client of it, which must survive whatever a test does to the leader. */
struct scene {
    uv_loop_t loop;
    struct link_server *server;
    int port;
    struct peer leader; /* of all links of the server */
    struct peer good;
    struct link *good_link;
};

#define OTHER_UID 65534 /* the SlurmUser of the scene's leader */

int scene_setup(void **state);
int scene_teardown(void **state);
#define scene_test(f) cmocka_unit_test_setup_teardown(f, scene_setup, scene_teardown)

extern const char *munge_socket;
/* Ports of this process: others may run the same tests at the same time. */
extern int port_first, port_last;

struct link_server *serve(uv_loop_t *loop, uint32_t job, struct peer *peer);
/* For the scene's leader. port 0: look for it. */
struct link_client_options client_options(int port);
struct link *dial(uv_loop_t *loop, const struct link_client_options *options, struct peer *peer);
/* The client finds no leader, and says why. It looks until its time is over, and then tells the
 * best answer. On a busy machine that time may be over before the answer comes: then it gets
 * more. */
void assert_no_leader(uv_loop_t *loop, const struct link_client_options *options, const char *why);
/* A message with "n", and "pad" if that is not NULL. */
json_object *numbered(int64_t number, const char *pad);

/* Where the leader of that job publishes its port. */
void port_path(char path[64], const char *state_dir, uint32_t job);
/* It does so in a thread. */
bool run_until_published(uv_loop_t *loop, const char *state_dir, uint32_t job, int port);
/* Removes dir. The file is there, and nothing beside it. */
void remove_published(const char *state_dir, uint32_t job);

/* Run the tests that match the first argument (with * and ?), or all; none if there is no munged.
 */
#define scene_run(argc, argv, tests)                                                               \
    (scene_begin(argc, argv), scene_end(cmocka_run_group_tests(tests, NULL, NULL)))
void scene_begin(int argc, char **argv);
int scene_end(int failed);

/* --- Raw sockets: a client that knows the bytes, and need not keep to the rules --------------- */
struct raw {
    uv_loop_t *loop; /* runs whenever something is waited for */
    int fd;
    struct frame_reader *reader;
    struct frame_writer writer;
    char nonce[LINK_NONCE_HEX]; /* ours, in the hello */
    uint8_t challenge[LINK_NONCE_BYTES];
    struct credential proof;
    uint8_t key[LINK_KEY_BYTES]; /* of the connection, once it is keyed */
    char *cred;
};
struct raw *raw_connect(uv_loop_t *loop, int port);
/* Around a socket that is connected already. from: what it receives. */
struct raw *raw_around(uv_loop_t *loop, int fd, enum frame_direction from);
void raw_close(struct raw *raw);
void raw_write(struct raw *raw, const void *data, size_t len);
/* One frame, in the mode (plain, keyed) that the connection is in. */
void raw_send(struct raw *raw, const char *text);
/* The next message; NULL when the connection ends first. */
json_object *raw_receive(struct raw *raw);
/* The leader has closed the connection (or does so within PATIENCE_MS). */
bool raw_ended(struct raw *raw);
/* hello and challenge. The base is that of JOB. */
void raw_hello(struct raw *raw, const char *role);
/* Fill in an honest proof; the caller may change it before raw_prove. */
void raw_fill_proof(struct raw *raw, const char *role);
/* Send the proof, made now if raw->cred is not set. */
void raw_send_proof(struct raw *raw);
/* The leader's answer; true when the proof was accepted: the connection is keyed now. */
bool raw_accepted(struct raw *raw);
/* Both. */
bool raw_prove(struct raw *raw);
/* All of it. */
struct raw *raw_open(uv_loop_t *loop, int port);
/* A connection to the scene's leader with its challenge, and an honest proof filled in. */
struct raw *scene_challenged(struct scene *scene, const char *role);

/* --- A false leader --------------------------------------------------------------------------- */

/* A socket that listens on this port. */
int listen_at(int port);
/* The next connection that a client makes to it. */
struct raw *raw_take_call(uv_loop_t *loop, int listener);
/* Its hello; raw->nonce is the client's then. */
void raw_read_hello(struct raw *raw);
void raw_send_challenge(struct raw *raw);

#endif
