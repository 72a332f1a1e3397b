/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a stranger or a broken peer can do to a leader: its link ends, nobody else is harmed. */
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <munge.h>
#include <sodium.h>

#include "common/release_own.h"
#include "common/tcp_caller.h"
#include "tests/unit/link_fixture.h"
#include "tests/unit/support.h"

/* --- What can be wrong before the handshake is done ------------------------------------------- */

static void expect_end(struct scene *scene, struct raw *raw)
{
    assert_true(raw_ended(raw));
    raw_close(raw);
    assert_int_equal(scene->leader.opened, 1);
    assert_int_equal(scene->leader.closed, 0); /* nobody hears of what was never let in */
}

static void expect_end_after(struct scene *scene, const void *data, size_t len)
{
    struct raw *raw = raw_connect(&scene->loop, scene->port);

    raw_write(raw, data, len);
    expect_end(scene, raw);
}

static void expect_end_after_frame(struct scene *scene, const char *text)
{
    struct raw *raw = raw_connect(&scene->loop, scene->port);

    raw_send(raw, text);
    expect_end(scene, raw);
}

static void test_garbage(void **state)
{
    struct scene *scene = *state;
    uint8_t noise[100000];

    randombytes_buf(noise, sizeof(noise));
    noise[0] |= 0x80; /* else the length might be one that is allowed */
    expect_end_after(scene, noise, sizeof(noise));
    expect_end_after(scene, "GET / HTTP/1.0\r\n\r\n", 18);
    expect_end_after(scene, "\0\0\0\0", 4);
    expect_end_after(scene, "\0\0\x20\x01", 4); /* one byte more than allowed */
    expect_end_after(scene, "\0\0\0\4\0\0\0\0", 8);
}

static void test_frames_that_are_no_hello(void **state)
{
    struct scene *scene = *state;
    char deep[4001];

    memset(deep, '[', 2000);
    memset(deep + 2000, ']', 2000);
    deep[4000] = '\0';
    expect_end_after_frame(scene, deep);
    expect_end_after_frame(scene, "[]");
    expect_end_after_frame(scene, "17");
    expect_end_after_frame(scene, "null");
    expect_end_after_frame(scene, "{\"t\":\"hello\"");
    expect_end_after_frame(scene, "{} {}");
    expect_end_after_frame(scene, "{}");
    expect_end_after_frame(scene, "{\"t\":17}");
    expect_end_after_frame(scene, "{\"t\":\"beat\"}");
    expect_end_after_frame(scene, "{\"t\":\"proof\",\"cred\":\"MUNGE:x:\"}");
    expect_end_after_frame(scene,
                           "{\"t\":\"hello\",\"v\":2,\"role\":\"agent\",\"base\":\"4711.0\"}");
    expect_end_after_frame(
        scene,
        "{\"t\":\"hello\",\"v\":2,\"role\":\"agent\",\"base\":\"4711.0\",\"nonce\":\"abc\"}");
    expect_end_after_frame(scene,
                           "{\"t\":\"hello\",\"v\":2,\"role\":[],\"base\":{},\"nonce\":null}");
}

static void expect_refusal(struct scene *scene, int version, const char *role, const char *base,
                           const char *reason)
{
    struct raw *raw = raw_connect(&scene->loop, scene->port);
    json_object *msg, *value = NULL;
    char text[256];

    snprintf(text, sizeof(text),
             "{\"t\":\"hello\",\"v\":%d,\"role\":\"%s\",\"base\":\"%s\",\"nonce\":\"%064d\"}",
             version, role, base, 1);
    raw_send(raw, text);
    msg = raw_receive(raw);
    assert_true(json_object_object_get_ex(msg, "reason", &value));
    assert_string_equal(json_object_get_string(value), reason);
    json_object_put(msg);
    expect_end(scene, raw);
}

/* What a later release would say, with fields that this one does not know. */
static void other_release(struct scene *scene, const char *release, const char *begins)
{
    struct raw *raw = raw_connect(&scene->loop, scene->port);
    json_object *msg, *value = NULL;
    char text[256];

    snprintf(text, sizeof(text),
             "{\"t\":\"hello\",\"v\":3,\"new\":{},\"release\":\"%s\",\"role\":\"agent\",\"base\":"
             "\"4711.0\",\"nonce\":\"%064d\"}",
             release, 1);
    raw_send(raw, text);
    msg = raw_receive(raw);
    assert_true(json_object_object_get_ex(msg, "reason", &value));
    assert_ptr_equal(strstr(json_object_get_string(value), begins), json_object_get_string(value));
    assert_true(strlen(json_object_get_string(value)) < 199); /* what a client prints of it */
    json_object_put(msg);
    expect_end(scene, raw);
}

static void test_refused_hellos(void **state)
{
    struct scene *scene = *state;

    for (int version = 0; version <= 3; version++) {
        char reason[200];

        snprintf(reason, sizeof(reason),
                 "release (not said) has version %d of the handshake, release %s here has 2: "
                 "install the same release of slurm-elastic on all nodes",
                 version, release_own()->name);
        if (version != 2)
            expect_refusal(scene, version, "agent", "4711.0", reason);
    }
    other_release(scene, "9.0.0", "release 9.0.0 has version 3 of the handshake, release ");
    other_release(scene, "\\u001b[2J", "release ?[2J has version 3 ");
    expect_refusal(scene, 2, "agent", "4711.1", "this is the leader of job 4711.0");
    expect_refusal(scene, 2, "agent", "04711.0", "this is the leader of job 4711.0");
    expect_refusal(scene, 2, "leader", "4711.0", "the role is none of agent, control and voter");
    expect_refusal(scene, 2, "", "4711.0", "the role is none of agent, control and voter");
}

static void expect_refused_proof(struct scene *scene, struct raw *raw)
{
    assert_false(raw_prove(raw));
    expect_end(scene, raw);
}

static void test_false_proofs(void **state)
{
    struct scene *scene = *state;
    struct raw *raw;

    raw = scene_challenged(scene, "control");
    snprintf(raw->proof.role, sizeof(raw->proof.role), "agent");
    expect_refused_proof(scene, raw);
    raw = scene_challenged(scene, "agent");
    snprintf(raw->proof.role, sizeof(raw->proof.role), "leader");
    expect_refused_proof(scene, raw);
    raw = scene_challenged(scene, "agent");
    snprintf(raw->proof.base, sizeof(raw->proof.base), "4711.1");
    expect_refused_proof(scene, raw);
    raw = scene_challenged(scene, "agent");
    raw->proof.nonce[31] ^= 1;
    expect_refused_proof(scene, raw);
    raw = scene_challenged(scene, "agent");
    raw->cred = strdup("MUNGE:AwQFAAAmXbkt+ZSJ:");
    expect_refused_proof(scene, raw);
    raw = scene_challenged(scene, "agent");
    raw->cred = strdup("");
    expect_refused_proof(scene, raw);
}

/* What a munge that does not encrypt makes of an honest proof. */
static char *make_readable(const struct credential *proof)
{
    char nonce[LINK_NONCE_HEX], key[LINK_NONCE_HEX], *plain = NULL, *cred = NULL;
    munge_ctx_t ctx = munge_ctx_create();
    int len;

    sodium_bin2hex(nonce, sizeof(nonce), proof->nonce, LINK_NONCE_BYTES);
    sodium_bin2hex(key, sizeof(key), proof->key, LINK_KEY_BYTES);
    len = asprintf(&plain,
                   "{\"role\":\"%s\",\"base\":\"%s\",\"port\":%d,\"nonce\":\"%s\",\"key\":\"%s\"}",
                   proof->role, proof->base, proof->port, nonce, key);
    assert_int_equal(munge_ctx_set(ctx, MUNGE_OPT_SOCKET, munge_socket), EMUNGE_SUCCESS);
    assert_int_equal(munge_ctx_set(ctx, MUNGE_OPT_CIPHER_TYPE, MUNGE_CIPHER_NONE), EMUNGE_SUCCESS);
    assert_int_equal(munge_encode(&cred, ctx, plain, len), EMUNGE_SUCCESS);
    munge_ctx_destroy(ctx);
    free(plain);
    return cred;
}

static void test_proof_that_others_can_read(void **state)
{
    struct scene *scene = *state;
    struct raw *raw = scene_challenged(scene, "agent");
    json_object *answer;

    raw->cred = make_readable(&raw->proof);
    raw_send_proof(raw);
    answer = raw_receive(raw);
    assert_non_null(answer);
    assert_non_null(strstr(json_object_to_json_string(answer), "the credential is not encrypted"));
    json_object_put(answer);
    assert_true(raw_ended(raw));
    assert_int_equal(scene->leader.opened, 1);
    raw_close(raw);
}

static void test_proof_used_twice(void **state)
{
    struct scene *scene = *state;
    struct raw *first, *second;

    first = raw_open(&scene->loop, scene->port);
    assert_true(run_until_opened(&scene->loop, &scene->leader, 2));
    second = scene_challenged(scene, "agent");
    second->cred = strdup(first->cred);
    assert_false(raw_prove(second));
    assert_true(raw_ended(second));
    assert_int_equal(scene->leader.opened, 2);
    raw_close(second);
    raw_close(first);
    assert_true(run_until_closed(&scene->loop, &scene->leader, 1));
}

static void test_more_than_the_handshake_allows(void **state)
{
    struct scene *scene = *state;
    struct raw *raw;

    raw = scene_challenged(scene, "agent");
    raw_send(raw, "{\"t\":\"hello\"}"); /* a second one */
    expect_end(scene, raw);
    raw = scene_challenged(scene, "agent");
    raw_send(raw, "{\"t\":\"proof\"}");
    expect_end(scene, raw);
    raw = scene_challenged(scene, "agent");
    raw_send(raw, "{\"t\":\"proof\",\"cred\":[]}");
    expect_end(scene, raw);
}

static void test_a_half_message_and_silence(void **state)
{
    struct scene *scene = *state;
    struct raw *half, *silent;
    uint64_t start = uv_hrtime();

    silent = raw_connect(&scene->loop, scene->port);
    half = raw_connect(&scene->loop, scene->port);
    raw_write(half, "\0\0\0\x40{\"t\":", 9);
    expect_end(scene, half);
    expect_end(scene, silent);
    assert_in_range((uv_hrtime() - start) / 1000000, 4900, 9000);
    half = raw_connect(&scene->loop, scene->port);
    raw_write(half, "\0\0\0\x40{\"t\":", 9);
    shutdown(half->fd, SHUT_WR);
    expect_end(scene, half);
}

/* --- What can be wrong after it --------------------------------------------------------------- */

static void expect_leader_ends(struct scene *scene, struct raw *raw, const char *why)
{
    assert_true(run_until_closed(&scene->loop, &scene->leader, 1));
    if (!strstr(scene->leader.why, why))
        fail_msg("ended with \"%s\", expected \"%s\"", scene->leader.why, why);
    assert_true(raw_ended(raw));
    raw_close(raw);
    assert_int_equal(scene->leader.messages, 0);
}

static void *sealed(struct raw *raw, const char *text, size_t *len)
{
    void *frame = frame_encode(&raw->writer, text, strlen(text), len);

    assert_non_null(frame);
    return frame;
}

static void test_wrong_mac(void **state)
{
    struct scene *scene = *state;
    struct raw *raw;
    uint8_t *frame;
    size_t len;

    raw = raw_open(&scene->loop, scene->port);
    frame = sealed(raw, "{\"t\":\"show\"}", &len);
    frame[len - 3] ^= 1;
    raw_write(raw, frame, len);
    free(frame);
    expect_leader_ends(scene, raw, "does not verify");
}

static void test_wrong_key(void **state)
{
    struct scene *scene = *state;
    struct raw *raw;

    raw = raw_open(&scene->loop, scene->port);
    raw->writer.key[0] ^= 1;
    raw_send(raw, "{\"t\":\"show\"}");
    expect_leader_ends(scene, raw, "does not verify");
}

static void test_wrong_direction(void **state)
{
    struct scene *scene = *state;
    struct raw *raw;

    raw = raw_open(&scene->loop, scene->port);
    raw->writer.direction = FRAME_FROM_LEADER; /* what the leader said, sent back to it */
    frame_writer_set_key(&raw->writer, raw->key);
    raw_send(raw, "{\"t\":\"show\"}");
    expect_leader_ends(scene, raw, "does not verify");
}

static void test_plain_frame_after_the_handshake(void **state)
{
    struct scene *scene = *state;
    struct raw *raw;

    raw = raw_open(&scene->loop, scene->port);
    raw->writer.keyed = false;
    raw_send(raw, "{\"t\":\"show\",\"pad\":\"long enough to be a frame with a MAC\"}");
    expect_leader_ends(scene, raw, "does not verify");
}

static void test_repeated_frame(void **state)
{
    struct scene *scene = *state;
    struct raw *raw;
    void *frame;
    size_t len;

    raw = raw_open(&scene->loop, scene->port);
    frame = sealed(raw, "{\"t\":\"show\"}", &len);
    raw_write(raw, frame, len);
    assert_true(run_until_messages(&scene->loop, &scene->leader, 1));
    scene->leader.messages = 0;
    raw_write(raw, frame, len);
    free(frame);
    expect_leader_ends(scene, raw, "does not verify");
}

static void test_oversized_frame(void **state)
{
    struct scene *scene = *state;
    struct raw *raw;

    raw = raw_open(&scene->loop, scene->port);
    raw_write(raw, "\x10\0\0\0", 4);
    expect_leader_ends(scene, raw, "a frame of 268435456 bytes");
}

static void test_authenticated_nonsense(void **state)
{
    struct scene *scene = *state;
    struct raw *raw;
    char deep[201];

    memset(deep, '[', 100);
    memset(deep + 100, ']', 100);
    deep[200] = '\0';
    raw = raw_open(&scene->loop, scene->port);
    raw_send(raw, deep);
    expect_leader_ends(scene, raw, "not a JSON object");
}

static void test_connection_that_breaks(void **state)
{
    struct scene *scene = *state;
    struct linger hard = {.l_onoff = 1};
    struct raw *raw;

    raw = raw_open(&scene->loop, scene->port);
    assert_true(run_until_opened(&scene->loop, &scene->leader, 2));
    setsockopt(raw->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)); /* close resets */
    raw_close(raw);
    assert_true(run_until_closed(&scene->loop, &scene->leader, 1));
    assert_non_null(strstr(scene->leader.why, "127.0.0.1: lost the connection"));
}

/* --- Many ------------------------------------------------------------------------------------- */

#define IDLE    200
#define PENDING 64 /* as many as a leader keeps */

struct crowd {
    struct raw *idle[IDLE];
    int left;
};

static bool few_are_left(void *arg)
{
    struct crowd *crowd = arg;
    char byte;

    crowd->left = 0;
    for (int i = 0; i < IDLE; i++)
        crowd->left += recv(crowd->idle[i]->fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
    return crowd->left <= PENDING;
}

static void test_idle_connections_stop_nobody(void **state)
{
    struct scene *scene = *state;
    struct link_client_options options = client_options(scene->port);
    struct crowd crowd;
    struct peer peer = {0};
    uint64_t start;

    for (int i = 0; i < IDLE; i++)
        crowd.idle[i] = raw_connect(&scene->loop, scene->port);
    start = uv_hrtime();
    dial(&scene->loop, &options, &peer);
    assert_true(run_until_opened(&scene->loop, &peer, 1));
    assert_true(few_are_left(&crowd)); /* the others were dropped to let it in */
    assert_in_range((uv_hrtime() - start) / 1000000, 0, 3000);
    assert_int_equal(scene->leader.closed, 0);
    for (int i = 0; i < IDLE; i++)
        raw_close(crowd.idle[i]);
    link_close(peer.link, "enough");
    assert_true(run_until_closed(&scene->loop, &peer, 1));
    peer_clear(&peer);
}

static void test_many_at_once(void **state)
{
    struct scene *scene = *state;
    struct link_client_options options = client_options(scene->port);
    struct peer *peers = calloc(200, sizeof(*peers));

    for (int i = 0; i < 200; i++)
        dial(&scene->loop, &options, &peers[i]);
    assert_true(run_until_opened(&scene->loop, &scene->leader, 201));
    for (int i = 0; i < 200; i++) {
        assert_true(run_until_opened(&scene->loop, &peers[i], 1));
        link_close(peers[i].link, "enough");
    }
    assert_true(run_until_closed(&scene->loop, &scene->leader, 200));
    for (int i = 0; i < 200; i++) {
        assert_true(run_until_closed(&scene->loop, &peers[i], 1));
        peer_clear(&peers[i]);
    }
    free(peers);
}

/* A leader whose munged hangs serves those that are in, and lets others in when it answers again.
 */
static void test_leader_whose_munge_hangs(void **state)
{
    struct scene *scene = *state;
    struct raw *raw[5];
    struct error err = {0};

    for (int i = 0; i < 5; i++) {
        raw[i] = scene_challenged(scene, "agent");
        assert_int_equal(
            credential_make(munge_socket, geteuid(), &raw[i]->proof, &raw[i]->cred, &err), 0);
    }
    munged_signal(SIGSTOP);
    for (int i = 0; i < 5; i++)
        raw_send_proof(raw[i]);
    for (int i = 1; i <= 10; i++) {
        link_send(scene->good_link, json_object_new_object());
        assert_true(run_until_messages(&scene->loop, &scene->good, i));
    }
    assert_int_equal(scene->leader.opened, 1);
    munged_signal(SIGCONT);
    for (int i = 0; i < 5; i++) {
        assert_true(raw_accepted(raw[i]));
        raw_close(raw[i]);
    }
    assert_true(run_until_closed(&scene->loop, &scene->leader, 5));
}

static void test_no_descriptor_left(void **state)
{
    struct scene *scene = *state;
    struct rlimit old, few;
    struct raw *raw, *later;
    int spare[64], count = 0;

    raw = raw_connect(&scene->loop, scene->port); /* waits in the kernel */
    getrlimit(RLIMIT_NOFILE, &old);
    few = old;
    few.rlim_cur = 64;
    setrlimit(RLIMIT_NOFILE, &few);
    while (count < 64 && (spare[count] = dup(raw->fd)) >= 0)
        count++;
    link_send(scene->good_link, json_object_new_object());
    assert_true(run_until_messages(&scene->loop, &scene->good, 1)); /* the loop goes on */
    while (count > 0)
        close(spare[--count]);
    setrlimit(RLIMIT_NOFILE, &old);
    raw_hello(raw, "agent"); /* let in after the pause */
    later = raw_open(&scene->loop, scene->port);
    raw_close(later);
    raw_close(raw);
    assert_true(run_until_closed(&scene->loop, &scene->leader, 1));
}

/* --- A kernel that takes long to say whose a connection is ------------------------------------ */

#define CALLS 40

static bool is_slow;
static int asked;

struct caller __real_tcp_caller(int fd);
struct caller __wrap_tcp_caller(int fd);

struct caller __wrap_tcp_caller(int fd)
{
    const struct timespec pause = {.tv_nsec = 2000000};

    if (!is_slow)
        return __real_tcp_caller(fd);
    nanosleep(&pause, NULL);
    asked++;
    return (struct caller){.kind = CALLER_USER, .uid = 1};
}

/* The others of the loop have their turn in between. */
static void test_slow_to_tell_callers(void **state)
{
    struct scene *scene = *state;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)scene->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fds[CALLS];

    for (int i = 0; i < CALLS; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fds[i], (struct sockaddr *)&address, sizeof(address)), 0);
    }
    asked = 0;
    is_slow = true;
    while (asked == 0)
        uv_run(&scene->loop, UV_RUN_ONCE);
    assert_in_range(asked, 1, 4);
    while (asked < CALLS)
        uv_run(&scene->loop, UV_RUN_ONCE);
    is_slow = false;
    for (int i = 0; i < CALLS; i++)
        close(fds[i]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        scene_test(test_garbage),
        scene_test(test_frames_that_are_no_hello),
        scene_test(test_refused_hellos),
        scene_test(test_false_proofs),
        scene_test(test_proof_that_others_can_read),
        scene_test(test_proof_used_twice),
        scene_test(test_more_than_the_handshake_allows),
        scene_test(test_a_half_message_and_silence),
        scene_test(test_wrong_mac),
        scene_test(test_wrong_key),
        scene_test(test_wrong_direction),
        scene_test(test_plain_frame_after_the_handshake),
        scene_test(test_repeated_frame),
        scene_test(test_oversized_frame),
        scene_test(test_authenticated_nonsense),
        scene_test(test_connection_that_breaks),
        scene_test(test_idle_connections_stop_nobody),
        scene_test(test_many_at_once),
        scene_test(test_leader_whose_munge_hangs),
        scene_test(test_no_descriptor_left),
        scene_test(test_slow_to_tell_callers),
    };

    return scene_run(argc, argv, tests);
}
