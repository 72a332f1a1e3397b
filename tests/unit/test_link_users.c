/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which users a leader lets in, and as what. Needs root, to be others. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/callers.h"
#include "lib/guest_pace.h"
#include "tests/unit/link_fixture.h"
#include "tests/unit/support.h"

/* What a client of another uid sees: 0 open, 1 refused with a word about the uid, 2 something
 * else. once: it takes the first answer. Else it asks until it is let in. */
static int look_as(uid_t uid, const char *role, uid_t leader_uid, int port, bool once)
{
    struct link_client_options options = client_options(port);
    struct peer peer = {0};
    uv_loop_t loop;
    char about[64];

    uv_loop_init(&loop);
    options.role = role;
    options.leader_uid = leader_uid;
    options.timeout_ms = PATIENCE_MS / 2;
    options.once = once;
    dial(&loop, &options, &peer);
    while (!peer.opened && !peer.closed)
        uv_run(&loop, UV_RUN_ONCE);
    if (peer.opened)
        link_close(peer.link, "enough");
    if (!run_empty(&loop))
        return 4;
    if (peer.opened)
        return 0;
    snprintf(about, sizeof(about), "uid %u may not take part as %s", uid, role);
    return strstr(peer.why, about) ? 1 : 2;
}

/* On a busy machine the leader may be silent for longer than a client waits for one answer: then it
 * is asked again. So the leader may see more links than the client has. */
static int try_as(uid_t uid, const char *role, uid_t leader_uid, int port, int expected)
{
    uint64_t end = uv_hrtime() + PATIENCE_MS / 2 * UINT64_C(1000000);
    int saw = 2;

    if (setgroups(0, NULL) != 0 || setgid(uid) != 0 || setuid(uid) != 0)
        return 3;
    while (saw == 2 && uv_hrtime() < end)
        saw = look_as(uid, role, leader_uid, port, expected == 1);
    return saw;
}

static bool child_has_ended(void *arg)
{
    int *status = arg;

    return status[1] != 0 || (status[1] = waitpid(status[0], &status[2], WNOHANG)) == status[0];
}

#define GUEST_LINKS 8 /* that the leader lets one guest have */

static void wait_for_answer(uv_loop_t *loop, const struct link_client_options *options,
                            struct peer *peer)
{
    dial(loop, options, peer);
    while (!peer->opened && !peer->closed)
        uv_run(loop, UV_RUN_ONCE);
}

/* So many links of a guest are open at once: all that it may have, and one more if that is let in.
 * 254: that one was never refused for this reason. */
static int hold_as(uid_t uid, uid_t leader_uid, int port)
{
    struct link_client_options options = client_options(port);
    uint64_t end = uv_hrtime() + PATIENCE_MS / 2 * UINT64_C(1000000);
    struct peer peers[GUEST_LINKS + 1] = {{0}}, *beyond = &peers[GUEST_LINKS];
    uv_loop_t loop;

    if (setgroups(0, NULL) != 0 || setgid(uid) != 0 || setuid(uid) != 0)
        return 255;
    uv_loop_init(&loop);
    options.role = LINK_ROLE_CONTROL;
    options.leader_uid = leader_uid;
    options.timeout_ms = PATIENCE_MS / 2;
    for (int i = 0; i < GUEST_LINKS; i++) {
        wait_for_answer(&loop, &options, &peers[i]);
        if (!peers[i].opened)
            return i;
    }
    options.once = true;
    do {
        *beyond = (struct peer){0};
        wait_for_answer(&loop, &options, beyond);
    } while (!beyond->opened && strstr(beyond->why, "enough connections") == NULL &&
             uv_hrtime() < end);
    if (!beyond->opened && strstr(beyond->why, "enough connections") == NULL)
        return 254;
    return GUEST_LINKS + beyond->opened;
}

/* Become that user, with a link that is open. */
static struct link *enter_as(uid_t uid, uid_t leader_uid, int port, uv_loop_t *loop,
                             struct peer *peer)
{
    struct link_client_options options = client_options(port);
    struct link *link;

    if (setgroups(0, NULL) != 0 || setgid(uid) != 0 || setuid(uid) != 0)
        _exit(255);
    uv_loop_init(loop);
    options.role = LINK_ROLE_CONTROL;
    options.leader_uid = leader_uid;
    link = dial(loop, &options, peer);
    if (!run_until_opened(loop, peer, 1))
        _exit(254);
    return link;
}

#define TOO_MANY (GUEST_PACE_BURST + 3)

/* Sends so many messages at once, the first one with a pad, and waits for their answers. */
static bool sends(uv_loop_t *loop, struct link *link, struct peer *peer, int count, const char *pad)
{
    int before = peer->messages;

    for (int i = 0; i < count; i++)
        link_send(link, numbered(before + i, i == 0 ? pad : NULL));
    return run_until_messages(loop, peer, before + count);
}

/* As a guest: sends more messages at once than it may, and one that is too large. 0: it has waited
 * for the answers to the former, and has lost its link by the latter. */
static int burden_as(uid_t uid, uid_t leader_uid, int port)
{
    struct peer peer = {0};
    char *pad = calloc(1, FRAME_GUEST_MAX + 1);
    uv_loop_t loop;
    struct link *link = enter_as(uid, leader_uid, port, &loop, &peer);
    uint64_t begin = uv_hrtime();

    memset(pad, 'x', FRAME_GUEST_MAX - 100);
    if (!sends(&loop, link, &peer, TOO_MANY, pad))
        return 1;
    if ((double)(uv_hrtime() - begin) / 1e9 <
        (TOO_MANY - GUEST_PACE_BURST) * GUEST_PACE_SECONDS / 2)
        return 2;
    memset(pad, 'x', FRAME_GUEST_MAX);
    link_send(link, numbered(TOO_MANY, pad));
    if (!run_until_closed(&loop, &peer, 1))
        return 3;
    free(pad);
    return peer.messages == TOO_MANY ? 0 : 4;
}

/* At the pace of a guest their answers would come too late for run_until_messages(). */
#define MANY (GUEST_PACE_BURST + (int)(PATIENCE_MS / 1000 / GUEST_PACE_SECONDS) + 10)

/* As an operator: sends many messages, and one that is too large for a guest. 0: all are
 * answered. */
static int command_as(uid_t uid, uid_t leader_uid, int port)
{
    struct peer peer = {0};
    char *pad = calloc(1, FRAME_GUEST_MAX + 1);
    uv_loop_t loop;
    struct link *link = enter_as(uid, leader_uid, port, &loop, &peer);

    memset(pad, 'x', FRAME_GUEST_MAX);
    if (!sends(&loop, link, &peer, MANY, NULL))
        return 1;
    if (!sends(&loop, link, &peer, 1, pad))
        return 2;
    free(pad);
    return 0;
}

/* What the other user does beside asking for a link in a role. */
#define HOLD    "hold"
#define BURDEN  "burden"
#define COMMAND "command"

static int act_as(uid_t uid, const char *act, uid_t leader_uid, int port, int expected)
{
    if (strcmp(act, HOLD) == 0)
        return hold_as(uid, leader_uid, port);
    if (strcmp(act, BURDEN) == 0)
        return burden_as(uid, leader_uid, port);
    if (strcmp(act, COMMAND) == 0)
        return command_as(uid, leader_uid, port);
    return try_as(uid, act, leader_uid, port, expected);
}

static int fork_as(struct scene *scene, uid_t uid, const char *act, int expected)
{
    int status[3] = {0};
    uv_timer_t timer;
    uid_t own = geteuid();

    status[0] = fork();
    if (status[0] == 0)
        _exit(act_as(uid, act, own, scene->port, expected));
    uv_timer_init(&scene->loop, &timer);
    uv_timer_start(&timer, (uv_timer_cb)(void (*)(void))uv_now, 10, 10);
    /* As long as what it waits for, one after the other. */
    for (int i = 0; i < 3 && !child_has_ended(status); i++)
        run_until(&scene->loop, child_has_ended, status);
    assert_true(child_has_ended(status));
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&scene->loop, UV_RUN_NOWAIT);
    assert_true(WIFEXITED(status[2]));
    return WEXITSTATUS(status[2]);
}

/* Fails unless it sees what is expected. */
static void expect_as(struct scene *scene, uid_t uid, const char *act, int expected)
{
    assert_int_equal(fork_as(scene, uid, act, expected), expected);
}

/* Links that the leader has opened for others than guests, beside that of the good client. */
static int full_links(const struct scene *scene)
{
    return scene->leader.opened - scene->leader.guests - 1;
}

static void test_other_users(void **state)
{
    struct scene *scene = *state;

    expect_as(scene, OTHER_UID, LINK_ROLE_AGENT, 1); /* SlurmUser, but not the job's user */
    expect_as(scene, OTHER_UID - 1, LINK_ROLE_CONTROL, 1);
    assert_int_equal(full_links(scene), 0);
    expect_as(scene, OTHER_UID, LINK_ROLE_CONTROL, 0); /* SlurmUser */
    assert_true(full_links(scene) > 0);
    assert_int_equal(scene->leader.guests, 0);
}

/* An operator of Slurm is let in by its second try, as control only. */
static void test_admitted(void **state)
{
    struct scene *scene = *state;

    scene->leader.admits = scene->server;
    expect_as(scene, OTHER_UID - 1, LINK_ROLE_AGENT, 1);
    assert_int_equal(scene->leader.strangers, 0);
    expect_as(scene, OTHER_UID - 1, LINK_ROLE_CONTROL, 0);
    assert_true(scene->leader.strangers > 0);
    expect_as(scene, OTHER_UID - 1, LINK_ROLE_AGENT, 1);
    /* Many others do not push it out. Later its time is over, and it is a stranger again. */
    scene->leader.admits = NULL;
    for (uid_t uid = 1; uid <= 60; uid++)
        link_server_admit(scene->server, uid, false, 60000);
    expect_as(scene, OTHER_UID - 1, LINK_ROLE_CONTROL, 0);
    link_server_admit(scene->server, OTHER_UID - 1, false, 0);
    expect_as(scene, OTHER_UID - 1, LINK_ROLE_CONTROL, 1);
}

/* One who is let in as a guest is known as one, until it is admitted for all. */
static void test_guest(void **state)
{
    struct scene *scene = *state;

    scene->leader.admits = scene->server;
    scene->leader.admits_guests = true;
    expect_as(scene, OTHER_UID - 1, LINK_ROLE_CONTROL, 0);
    assert_true(scene->leader.guests > 0);
    assert_int_equal(full_links(scene), 0);
    expect_as(scene, OTHER_UID - 1, LINK_ROLE_AGENT, 1);
    assert_int_equal(full_links(scene), 0);
    link_server_admit(scene->server, OTHER_UID - 1, false, 60000);
    expect_as(scene, OTHER_UID - 1, LINK_ROLE_CONTROL, 0);
    assert_true(full_links(scene) > 0);
}

/* They take no more of the leader's descriptors. */
static void test_links_of_a_guest(void **state)
{
    struct scene *scene = *state;

    link_server_admit(scene->server, OTHER_UID - 1, true, 60000);
    expect_as(scene, OTHER_UID - 1, HOLD, GUEST_LINKS);
    assert_int_equal(full_links(scene), 0);
}

/* Its messages are small and few, whatever they are: the leader has something else to do. An
 * operator's are as large and as many as those of the owner. */
static void test_messages_of_a_guest(void **state)
{
    struct scene *scene = *state;

    link_server_admit(scene->server, OTHER_UID - 1, true, 60000);
    expect_as(scene, OTHER_UID - 1, BURDEN, 0);
    assert_int_equal(full_links(scene), 0);
    assert_int_equal(scene->leader.messages, TOO_MANY);
    link_server_admit(scene->server, OTHER_UID - 1, false, 60000);
    expect_as(scene, OTHER_UID - 1, COMMAND, 0);
    assert_int_equal(scene->leader.messages, TOO_MANY + MANY + 1);
}

/* A credential made by another user, as large as a pipe takes at once. */
static void make_as(uid_t uid, int port, const char *nonce, char *text, size_t size)
{
    struct credential credential = {.role = "leader", .port = port};
    struct error err = {0};
    int pipes[2];
    pid_t child;

    snprintf(credential.base, sizeof(credential.base), "%u.0", JOB);
    assert_int_equal(hex_to_bytes(nonce, credential.nonce), 0);
    assert_int_equal(pipe(pipes), 0);
    child = fork();
    if (child == 0) {
        char *made = NULL;

        if (setgid(uid) != 0 || setuid(uid) != 0 ||
            credential_make(munge_socket, 0, &credential, &made, &err) != 0)
            _exit(1);
        _exit(write(pipes[1], made, strlen(made) + 1) < 0);
    }
    close(pipes[1]);
    assert_true(read(pipes[0], text, size) > 0);
    close(pipes[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

/* One call to a port where somebody else listens, and answers with a credential of its own. */
static void call_impostor(struct scene *scene, struct peer *peer)
{
    struct link_client_options options = client_options(0);
    char cred[4096], text[4200];
    struct raw *raw;
    int listener;

    options.port = port_last == scene->port ? port_first : port_last;
    options.once = true;
    listener = listen_at(options.port);
    dial(&scene->loop, &options, peer);
    raw = raw_take_call(&scene->loop, listener);
    close(listener);
    raw_read_hello(raw);
    raw_send_challenge(raw);
    json_object_put(raw_receive(raw)); /* the proof, which only the leader's user could read */
    make_as(OTHER_UID, options.port, raw->nonce, cred, sizeof(cred));
    snprintf(text, sizeof(text), "{\"t\":\"accept\",\"cred\":\"%s\"}", cred);
    raw_send(raw, text);
    assert_true(raw_ended(raw));
    raw_close(raw);
    assert_true(run_until_closed(&scene->loop, peer, 1));
    assert_int_equal(peer->opened, 0);
}

/* Who has taken the leader's port hears the client's nonce, and can make a credential with it: but
 * not as the leader's user. On a busy machine the answer may come too late: then there is one more
 * call. */
static void test_impostor_of_another_user(void **state)
{
    struct scene *scene = *state;
    struct peer peer = {0};

    for (int i = 0; i < 10 && (i == 0 || strstr(peer.why, "silent")); i++) {
        peer_clear(&peer);
        call_impostor(scene, &peer);
    }
    assert_non_null(
        strstr(peer.why, "the answer comes from uid 65534, the leader should be uid 0"));
    peer_clear(&peer);
}

#define FLOOD 300

/* Connections with a hello each. They stay until `hold` ends; then the exit status tells how many
 * the leader has left open. */
static int flood_as(uid_t uid, int port, int ready, int hold)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fds[FLOOD], left = 0;
    char byte = 'x';

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (setgroups(0, NULL) != 0 || setgid(uid) != 0 || setuid(uid) != 0)
        return 255;
    for (int i = 0; i < FLOOD; i++) {
        struct frame_writer writer = {.direction = FRAME_TO_LEADER};
        size_t len = 0;
        char *hello = NULL;
        void *frame;

        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fds[i], (struct sockaddr *)&address, sizeof(address)) != 0 ||
            asprintf(&hello,
                     "{\"t\":\"hello\",\"v\":2,\"role\":\"agent\",\"base\":\"%u.0\","
                     "\"nonce\":\"%064d\"}",
                     JOB, 1) < 0)
            return 255;
        frame = frame_encode(&writer, hello, strlen(hello), &len);
        send(fds[i], frame, len, MSG_NOSIGNAL);
    }
    if (write(ready, &byte, 1) != 1 || read(hold, &byte, 1) != 0)
        return 255;
    for (int i = 0; i < FLOOD; i++) {
        char challenge[256];
        ssize_t got;

        while ((got = recv(fds[i], challenge, sizeof(challenge), MSG_DONTWAIT)) > 0)
            continue;
        left += got < 0 && errno == EAGAIN;
    }
    return left;
}

static pid_t fork_flood(int port, int *hold)
{
    int ready[2], holds[2];
    pid_t child;
    char byte;

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    assert_int_equal(pipe2(holds, O_CLOEXEC), 0);
    child = fork();
    if (child == 0) {
        close(holds[1]);
        _exit(flood_as(OTHER_UID - 1, port, ready[1], holds[0]));
    }
    close(ready[1]);
    close(holds[0]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    *hold = holds[1];
    return child;
}

/* Another user of the node keeps its few places; its other connections do not stand before a
 * member's, and none stays when that is in. */
static void test_flood_of_another_user(void **state)
{
    struct scene *scene = *state;
    struct link_client_options options = client_options(scene->port);
    struct peer peer = {0};
    int hold, status;
    pid_t child = fork_flood(scene->port, &hold);

    dial(&scene->loop, &options, &peer);
    assert_true(run_until_opened(&scene->loop, &peer, 1));
    close(hold);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_in_range(WEXITSTATUS(status), 0, CALLERS_OF_USER);
    assert_int_equal(scene->leader.closed, 0);
    link_close(peer.link, "enough");
    assert_true(run_until_closed(&scene->loop, &peer, 1));
    peer_clear(&peer);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        scene_test(test_other_users),
        scene_test(test_admitted),
        scene_test(test_guest),
        scene_test(test_links_of_a_guest),
        scene_test(test_messages_of_a_guest),
        scene_test(test_impostor_of_another_user),
        scene_test(test_flood_of_another_user),
    };

    if (geteuid() != 0) {
        printf("1..0 # SKIP only root can be another user\n");
        return 0;
    }
    return scene_run(argc, argv, tests);
}
