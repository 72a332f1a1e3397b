/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The agents hear that the leader cannot start, wherever it has to listen. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/farewell.h"
#include "tests/unit/link_fixture.h"

static void *say_farewell(void *options)
{
    farewell(options);
    return NULL;
}

/* Another user has taken all of the leader's ports. */
static void test_all_candidates_taken(void **state)
{
    struct scene *scene = *state;
    char dir[] = "/tmp/elastic-test-farewell-XXXXXX", munge[128];
    struct conf conf = {.munge_socket = munge, .port_first = port_first, .port_last = port_last};
    struct farewell_options options = {
        .job = JOB + 1, .conf = &conf, .state_dir = dir, .others = 1, .timeout_ms = PATIENCE_MS};
    struct link_client_options client = client_options(0);
    json_object *join = json_object_new_object();
    struct peer peer = {0};
    int squatters[LINK_CANDIDATES];
    pthread_t thread;

    assert_non_null(mkdtemp(dir));
    snprintf(munge, sizeof(munge), "%s", munge_socket);
    for (int k = 0; k < LINK_CANDIDATES; k++)
        squatters[k] = listen_at(link_candidate_port(JOB + 1, 0, k, port_first, port_last));
    assert_int_equal(pthread_create(&thread, NULL, say_farewell, &options), 0);
    client.job_id = JOB + 1;
    client.state_dir = dir;
    dial(&scene->loop, &client, &peer);
    assert_true(run_until_opened(&scene->loop, &peer, 1));
    json_object_object_add(join, "t", json_object_new_string("join"));
    json_object_object_add(join, "base", json_object_new_boolean(true));
    link_send(peer.link, join);
    assert_true(run_until_closed(&scene->loop, &peer, 1));
    assert_int_equal(peer.messages, 1);
    assert_non_null(strstr(json_object_to_json_string(peer.last), "finish"));
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (int k = 0; k < LINK_CANDIDATES; k++)
        close(squatters[k]);
    remove_published(dir, JOB + 1);
    peer_clear(&peer);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        scene_test(test_all_candidates_taken),
    };

    return scene_run(argc, argv, tests);
}
