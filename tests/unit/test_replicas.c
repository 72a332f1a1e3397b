/* SPDX-License-Identifier: GPL-2.0-or-later */
/* agent/member/replicas: what the leader orders, real processes, and what the leader hears. */
#include "tests/unit/workers_fixture.h"

#include <dirent.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/member/replicas.h"
#include "common/roles_file.h"
#include "lib/json_get.h"
#include "lib/role_task.h"

#define MESSAGES_MAX 32

static const char *const ROLES =
    "shared: ./data\n"
    "roles:\n"
    "  lead: {leads: yes, ports: [a, b], run: [sh, -c, 'while test -e stay; do sleep 0.02;"
    " done; echo out; echo why >&2; exit 3']}\n"
    "  pair: {run: [sh, -c, 'echo $ELASTIC_PORT_B {task}; exec sleep 1000'], tasks: 2,\n"
    "         ports: [a, b]}\n"
    "  told: {run: [sh, -c, ': >$ELASTIC_READY_FILE; trap \"exit 5\" USR1; while :; do sleep 0.02;"
    " done'],\n"
    "         ready: {told: yes, every: 100ms}}\n"
    "  gpu: {run: [sh, -c, 'echo gpus=$CUDA_VISIBLE_DEVICES; exec sleep 1000'], gpus: 1, tasks: "
    "2}\n"
    "  no-gpu: {run: [sh, -c, 'echo gpus=${CUDA_VISIBLE_DEVICES-none}.$SLURM_JOB_GPUS']}\n"
    "  half: {run: [sh, -c, 'test {task} = 1 || exit 0; exec sleep 1000'], gpus: 1, tasks: 2}\n"
    "  mute: {run: [sleep, '1000'], ready: {told: yes, every: 100ms}}\n"
    "  where: {run: [sh, -c, 'echo $ELASTIC_REPLICA $ELASTIC_SHARED_DIR']}\n"
    "  api: {run: [sh, -c, 'echo $ELASTIC_API $ELASTIC_API_SOCKET'], api: yes}\n"
    "  no-api: {run: [sh, -c, 'echo none$ELASTIC_API']}\n"
    "  deaf: {run: [sh, -c, 'trap \"\" TERM; echo deaf; while :; do sleep 0.02; done']}\n"
    "  train: {kind: world, gpus: 2, api: yes, run: [train]}\n"
    "  missing: {run: [/nonexistent/program]}\n"
    "  checked: {run: [sh, -c, 'sleep 0.1; >checked.$ELASTIC_START; exec sleep 1000'],\n"
    "            ready: {exec: [test, -e, 'checked.7'], every: 100ms}}\n"
    "  idle: {run: [sleep, '1000'], ports: [a, b]}\n"
    "  two: {run: [sleep, '1000'], ports: [a, b], tasks: 2, ready: {tcp: yes, every: 100ms}}\n"
    "  closer: {run: [python3, -c, 'import os, socket, time;"
    " at = (\"127.0.0.1\", int(os.environ[\"ELASTIC_PORT_A\"])); s = socket.create_server(at);"
    " any(time.sleep(0.02) or os.path.exists(\"go\") for _ in range(10000)); s.close();"
    " open(\"closed\", \"w\"); time.sleep(1000)'], ports: [a, b],"
    " ready: {tcp: yes, every: 100ms}}\n"
    "  web: {run: [sleep, '1000'], ports: [a, b], ready: {tcp: yes, every: 100ms}}\n"
    "  later: {run: [sh, -c, 'while ! test -e go; do sleep 0.02; done; : >$ELASTIC_READY_FILE;"
    " exec sleep 1000'], ports: [a, b], ready: {told: yes, every: 100ms}}\n"
    "  server: {run: [sh, -c, 'while ! test -e go; do sleep 0.02; done; echo in use >&2; exit"
    " 1'], ports: [a, b], ready: {told: yes}}\n"
    "  never: {run: [sh, -c, 'while ! test -e go; do sleep 0.02; done; exit 93'], ports: [a, b],"
    " ready: {told: yes}}\n"
    "  talker: {run: [sh, -c, 'while :; do echo 0123456789012345678901234567890123456789; "
    "done']}\n";

struct scene {
    struct run *run;
    struct replicas *all;
    json_object *heard[MESSAGES_MAX];
    int count;
    char output[4096], name[64];
    size_t bytes;
    int stream, ended, none;
    bool no_api; /* there can be none */
};

/* What Slurm says of the node. */
static char *const node_env[] = {"PATH=/usr/bin:/bin",      "SLURM_CPUS_ON_NODE=4",
                                 "SLURM_MEM_PER_NODE=1000", "CUDA_VISIBLE_DEVICES=5,7,9",
                                 "SLURM_JOB_GPUS=5,7,9",    NULL};

static void describe(struct workers_options *options, void *arg)
{
    struct scene *s = arg;

    *options = s->run->options;
    options->cwd = s->run->dir;
    options->own_env = node_env;
}

static void hear(json_object *msg, void *arg)
{
    struct scene *s = arg;

    assert_true(s->count < MESSAGES_MAX);
    s->heard[s->count++] = msg;
}

static void on_output(const char *name, int stream, int fd, const char *data, size_t len, void *arg)
{
    struct scene *s = arg;
    size_t used = strlen(s->output), room = sizeof(s->output) - 1 - used;

    s->bytes += len;
    s->stream = stream;
    snprintf(s->name, sizeof(s->name), "%s", name);
    if (fd == 1)
        strncat(s->output, data, len < room ? len : room);
}

static void on_output_ended(int stream, void *arg)
{
    (void)stream;
    ((struct scene *)arg)->ended++;
}

static void on_none(void *arg)
{
    ((struct scene *)arg)->none++;
}

static int open_api(const char **url, const char **socket, struct error *err, void *arg)
{
    if (((struct scene *)arg)->no_api)
        return error_set(err, "no HTTP interface: no port");
    *url = "http://127.0.0.1:1";
    *socket = "/r/api";
    return 0;
}

static char *text_of_roles(void)
{
    struct error err = {""};
    struct roles *roles = roles_text_read(ROLES, &err);
    char *text = roles != NULL ? roles_text(roles, &err) : NULL;

    if (text == NULL)
        fail_msg("%s", err.text);
    roles_destroy(roles);
    return text;
}

static void begin(struct scene *s)
{
    static const struct replicas_hooks hooks = {
        .describe = describe,
        .send = hear,
        .output = on_output,
        .output_ended = on_output_ended,
        .api = open_api,
        .none = on_none,
    };
    struct error err = {""};
    char *text = text_of_roles();

    *s = (struct scene){.run = run_create(1)};
    s->all = replicas_create(&s->run->loop, text, node_env, &hooks, s, &err);
    free(text);
    assert_string_equal(err.text, "");
}

static void end(struct scene *s)
{
    char shared[128];

    replicas_destroy(s->all);
    snprintf(shared, sizeof(shared), "%s/data", s->run->dir);
    rmdir(shared);
    for (int i = 0; i < s->count; i++)
        json_object_put(s->heard[i]);
    run_destroy(s->run); /* no file is left */
}

/* The n-th message of that type, from 0; NULL: it has not come. */
static json_object *heard(struct scene *s, const char *type, int n)
{
    for (int i = 0; i < s->count; i++)
        if (strcmp(json_get_string(s->heard[i], "t"), type) == 0 && n-- == 0)
            return s->heard[i];
    return NULL;
}

static json_object *await(struct scene *s, const char *type, int n)
{
    AWAIT(s->run, heard(s, type, n) != NULL);
    return heard(s, type, n);
}

static void assert_number(json_object *msg, const char *key, int64_t expected)
{
    int64_t value;

    assert_true(json_get_int(msg, key, INT64_MIN, INT64_MAX, &value));
    assert_int_equal(value, expected);
}

static void assert_exit(json_object *msg, int task, int status, const char *text)
{
    assert_number(msg, "task", task);
    assert_number(msg, "status", status);
    assert_string_equal(json_get_string(msg, "text"), text);
}

static void tell(struct scene *s, const char *type, const char *fields)
{
    char text[1024];
    json_object *msg;

    snprintf(text, sizeof(text), "{\"t\":\"%s\",%s}", type, fields);
    msg = json_tokener_parse(text);
    assert_non_null(msg);
    assert_true(replicas_on_message(s->all, type, msg));
    json_object_put(msg);
}

/* On this node alone. */
static void start_role(struct scene *s, int start, const char *role, int tasks)
{
    char text[512];

    snprintf(text, sizeof(text),
             "\"replica\":9,\"start\":%d,\"role\":\"%s\",\"name\":\"%s-3\",\"node_index\":0,"
             "\"gen\":%d,\"nodes\":\"node1\",\"slots\":\"%d\",\"world\":%d,\"restarts\":0,"
             "\"kind\":\"start\",\"reason\":\"r\",\"master_addr\":\"127.0.0.1\",\"master_port\":0",
             start, role, role, start, tasks, tasks);
    tell(s, "task_start", text);
}

static void kill_all(struct scene *s)
{
    replicas_stop(s->all, SIGKILL, 0);
    AWAIT(s->run, !replicas_any(s->all));
}

static void test_room(void **state)
{
    struct scene s;
    json_object *room;

    (void)state;
    begin(&s);
    replicas_welcomed(s.all, "127.0.0.1");
    room = heard(&s, "room", 0);
    assert_non_null(room);
    assert_number(room, "cpus", 4);
    assert_number(room, "gpus", 3);
    assert_number(room, "memory", 1000);
    end(&s);
}

static void test_start_and_end(void **state)
{
    struct scene s;
    json_object *running, *ended;

    (void)state;
    begin(&s);
    start_role(&s, 1048577, "lead", 1);
    assert_int_equal(s.count, 0);
    start_role(&s, 1048577, "lead", 1); /* it is here */
    running = await(&s, "task_running", 0);
    assert_number(running, "replica", 9);
    assert_number(running, "start", 1048577);
    ended = await(&s, "task_exit", 0);
    assert_number(ended, "start", 1048577);
    assert_exit(ended, 0, 3, "why");
    AWAIT(s.run, s.none > 0);
    assert_string_equal(s.output, "out\n");
    assert_string_equal(s.name, "lead-3");
    assert_int_equal(s.stream, role_task_stream(1048577, 0));
    assert_int_equal(s.ended, 1);
    assert_int_equal(s.count, 2);
    end(&s);
}

static int port_in(json_object *msg, size_t task, size_t port)
{
    json_object *ports;

    assert_true(json_object_object_get_ex(msg, "ports", &ports));
    ports = json_object_array_get_idx(ports, task);
    assert_int_equal(json_object_array_length(ports), 2);
    return json_object_get_int(json_object_array_get_idx(ports, port));
}

static void test_ports(void **state)
{
    struct scene s;
    json_object *running;
    char first[32], second[32];

    (void)state;
    begin(&s);
    start_role(&s, 4, "pair", 2);
    running = await(&s, "task_running", 0);
    assert_int_not_equal(port_in(running, 0, 0), port_in(running, 0, 1));
    assert_int_not_equal(port_in(running, 0, 1), port_in(running, 1, 1));
    assert_int_equal(port_in(running, 1, 0), port_in(running, 0, 0) + 1); /* in a row */
    snprintf(first, sizeof(first), "%d 0\n", port_in(running, 0, 1));
    snprintf(second, sizeof(second), "%d 1\n", port_in(running, 1, 1));
    AWAIT(s.run, strstr(s.output, first) != NULL && strstr(s.output, second) != NULL);
    assert_int_equal(s.stream / 1024, 4);
    assert_true(strcmp(s.name, "pair-3.0") == 0 || strcmp(s.name, "pair-3.1") == 0);
    tell(&s, "task_kill", "\"replica\":9,\"start\":4");
    await(&s, "task_exit", 1);
    assert_number(heard(&s, "task_exit", 0), "status", 128 + SIGKILL);
    assert_number(heard(&s, "task_exit", 1), "status", 128 + SIGKILL);
    AWAIT(s.run, !replicas_any(s.all));
    end(&s);
}

/* The other half of the gang is elsewhere, and waits for the port. */
static void test_gang_of_two_nodes(void **state)
{
    static const char *const fields =
        "\"replica\":9,\"start\":4,\"role\":\"pair\",\"name\":\"pair-0\",\"node_index\":%d,"
        "\"gen\":4,\"nodes\":\"node1,node2\",\"slots\":\"1,1\",\"world\":2,\"restarts\":0,"
        "\"kind\":\"start\",\"reason\":\"r\",\"master_addr\":\"127.0.0.1\",\"master_port\":%d";
    char text[512];
    struct scene s;

    (void)state;
    for (int index = 0; index < 2; index++) {
        begin(&s);
        snprintf(text, sizeof(text), fields, index, index * 20000);
        tell(&s, "task_start", text);
        assert_int_equal(s.count, 1 - index); /* at once, or not at all */
        if (index == 0)
            assert_non_null(heard(&s, "task_port", 0));
        await(&s, "task_running", 0);
        kill_all(&s);
        assert_exit(heard(&s, "task_exit", 0), index, 128 + SIGKILL, "ended by signal 9");
        end(&s);
    }
}

static void test_drain(void **state)
{
    struct scene s;

    (void)state;
    begin(&s);
    start_role(&s, 4, "told", 1);
    await(&s, "task_ready", 0);
    tell(&s, "task_drain", "\"replica\":9,\"start\":4,\"signal\":10,\"within\":30"); /* SIGUSR1 */
    assert_exit(await(&s, "task_exit", 0), 0, 5, "ended with 5");
    AWAIT(s.run, s.none > 0);
    assert_null(heard(&s, "task_unready", 0));
    end(&s);
}

static void test_drain_a_deaf_one(void **state)
{
    struct scene s;

    (void)state;
    begin(&s);
    start_role(&s, 4, "deaf", 1);
    AWAIT(s.run, s.output[0] != '\0');
    tell(&s, "task_drain", "\"replica\":9,\"start\":4,\"signal\":15,\"within\":0.2");
    assert_exit(await(&s, "task_exit", 0), 0, 128 + SIGKILL, "ended by signal 9");
    AWAIT(s.run, s.none > 0);
    end(&s);
}

static void test_what_is_not_here(void **state)
{
    static const char *const types[] = {"task_drain", "task_kill"};
    struct scene s;

    (void)state;
    for (size_t i = 0; i < COUNT(types); i++) {
        begin(&s);
        start_role(&s, 4, "told", 1);
        tell(&s, types[i], "\"replica\":9,\"start\":3");
        assert_exit(heard(&s, "task_exit", 0), -1, -1, "none of its tasks is here");
        assert_number(heard(&s, "task_exit", 0), "start", 3);
        await(&s, "task_ready", 0);
        kill_all(&s);
        end(&s);
    }
}

static void test_gpus(void **state)
{
    struct scene s;

    (void)state;
    begin(&s);
    start_role(&s, 4, "gpu", 2);
    AWAIT(s.run, strstr(s.output, "gpus=5\n") != NULL && strstr(s.output, "gpus=7\n") != NULL);
    start_role(&s, 5, "gpu", 2);
    assert_exit(heard(&s, "task_exit", 0), 0, 126,
                "it needs 1 GPU, and 0 of the 3 of this node are free");
    assert_exit(heard(&s, "task_exit", 1), 1, 126,
                "it needs 1 GPU, and 0 of the 3 of this node are free");
    tell(&s, "task_kill", "\"replica\":9,\"start\":4");
    await(&s, "task_exit", 3);
    AWAIT(s.run, !replicas_any(s.all));
    s.output[0] = '\0';
    start_role(&s, 6, "no-gpu", 1);
    AWAIT(s.run, strcmp(s.output, "gpus=.\n") == 0);
    kill_all(&s);
    end(&s);
}

static const char *role_variable(const struct workers_options *options, const char *name)
{
    size_t length = strlen(name);

    for (char *const *env = options->place.role; *env != NULL; env++)
        if (strncmp(*env, name, length) == 0 && (*env)[length] == '=')
            return *env + length + 1;
    return NULL;
}

/* The world shares a node of the base with replicas, GPUs too. */
static void test_world(void **state)
{
    struct workers_options options = {0};
    struct error err = {""};
    struct scene s;

    (void)state;
    begin(&s);
    tell(&s, "world_room", "\"gpus\":2");
    assert_int_equal(replicas_describe_world(s.all, true, &options, &err), 0);
    assert_string_equal(role_variable(&options, "ELASTIC_ROLE"), "train");
    assert_string_equal(role_variable(&options, "ELASTIC_API"), "http://127.0.0.1:1");
    assert_string_equal(role_variable(&options, "CUDA_VISIBLE_DEVICES"), "5,7");
    assert_non_null(options.own_env);
    assert_string_equal(options.own_env[0], node_env[0]);
    start_role(&s, 4, "gpu", 2);
    assert_exit(heard(&s, "task_exit", 0), 0, 126,
                "it needs 1 GPU, and 0 of the 3 of this node are free");
    /* Its next workers have the same GPUs, whatever is said since. */
    tell(&s, "world_room", "\"gpus\":1");
    assert_int_equal(replicas_describe_world(s.all, true, &options, &err), 0);
    assert_string_equal(role_variable(&options, "CUDA_VISIBLE_DEVICES"), "5,7");
    /* When it is over they are free; another one may begin. */
    tell(&s, "world_room", "\"gpus\":0,\"over\":true");
    tell(&s, "world_room", "\"gpus\":3");
    assert_int_equal(replicas_describe_world(s.all, true, &options, &err), 0);
    assert_string_equal(role_variable(&options, "CUDA_VISIBLE_DEVICES"), "5,7,9");
    kill_all(&s);
    end(&s);
}

/* A node of its extensions is the world's alone. */
static void test_world_elsewhere(void **state)
{
    struct workers_options options = {0};
    struct error err = {""};
    struct scene s;

    (void)state;
    begin(&s);
    assert_int_equal(replicas_describe_world(s.all, false, &options, &err), 0);
    assert_string_equal(role_variable(&options, "ELASTIC_ROLE"), "train");
    assert_null(role_variable(&options, "CUDA_VISIBLE_DEVICES"));
    assert_null(options.own_env);
    end(&s);
}

static void test_world_without_its_needs(void **state)
{
    struct workers_options options = {0};
    struct error err = {""};
    struct scene s;

    (void)state;
    begin(&s);
    tell(&s, "world_room", "\"gpus\":4");
    assert_int_equal(replicas_describe_world(s.all, true, &options, &err), -1);
    assert_string_equal(err.text, "it needs 4 GPUs, and 3 of the 3 of this node are free");
    s.no_api = true;
    assert_int_equal(replicas_describe_world(s.all, false, &options, &err), -1);
    assert_string_equal(err.text, "no HTTP interface: no port");
    end(&s);
}

/* A task gives its GPUs back, while others of its gang have theirs. */
static void test_gpus_of_one_task(void **state)
{
    struct scene s;

    (void)state;
    begin(&s);
    start_role(&s, 4, "half", 2);
    assert_exit(await(&s, "task_exit", 0), 0, 0, "");
    start_role(&s, 5, "gpu", 2);
    AWAIT(s.run, strstr(s.output, "gpus=5\n") != NULL && strstr(s.output, "gpus=9\n") != NULL);
    kill_all(&s);
    end(&s);
}

/* What another start has left says nothing of this one. */
static void test_stale_ready_file(void **state)
{
    struct scene s;
    char path[128];
    FILE *file;

    (void)state;
    begin(&s);
    snprintf(path, sizeof(path), "%s/replica-9.4-0.ready", s.run->dir);
    file = fopen(path, "we");
    assert_non_null(file);
    fclose(file);
    start_role(&s, 4, "mute", 1);
    await(&s, "task_running", 0);
    for (int i = 0; i < 10; i++)
        assert_true(run_turn(s.run));
    assert_null(heard(&s, "task_ready", 0));
    kill_all(&s);
    end(&s);
}

static void test_environment(void **state)
{
    struct scene s;
    char expected[128];

    (void)state;
    begin(&s);
    start_role(&s, 4, "where", 1);
    await(&s, "task_exit", 0);
    snprintf(expected, sizeof(expected), "where-3 %s/./data\n", s.run->dir);
    assert_string_equal(s.output, expected);
    assert_exit(heard(&s, "task_exit", 0), 0, 0, "");
    kill_all(&s);
    end(&s);
}

static void test_api(void **state)
{
    struct scene s;

    (void)state;
    begin(&s);
    start_role(&s, 4, "api", 1);
    assert_exit(await(&s, "task_exit", 0), 0, 0, "");
    assert_string_equal(s.output, "http://127.0.0.1:1 /r/api\n");
    s.output[0] = '\0';
    start_role(&s, 5, "no-api", 1);
    assert_exit(await(&s, "task_exit", 1), 0, 0, "");
    assert_string_equal(s.output, "none\n");
    s.no_api = true;
    start_role(&s, 6, "api", 1);
    assert_exit(await(&s, "task_exit", 2), 0, 126, "no HTTP interface: no port");
    kill_all(&s);
    end(&s);
}

static void test_shared(void **state)
{
    struct scene s;
    char path[128];
    struct stat st;
    FILE *file;

    (void)state;
    begin(&s);
    snprintf(path, sizeof(path), "%s/data", s.run->dir);
    start_role(&s, 4, "where", 1);
    await(&s, "task_exit", 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(rmdir(path), 0);
    file = fopen(path, "w"); /* in its place */
    assert_non_null(file);
    fclose(file);
    start_role(&s, 5, "where", 1);
    assert_number(await(&s, "task_exit", 1), "status", 126);
    assert_non_null(
        strstr(json_get_string(heard(&s, "task_exit", 1), "text"), "data: is no directory"));
    unlink(path);
    kill_all(&s);
    end(&s);
}

static void test_not_executable(void **state)
{
    struct scene s;

    (void)state;
    begin(&s);
    start_role(&s, 4, "missing", 1);
    assert_exit(await(&s, "task_exit", 0), 0, 127,
                "/nonexistent/program: No such file or directory");
    AWAIT(s.run, s.none > 0);
    assert_null(heard(&s, "task_running", 0));
    end(&s);
}

static void test_unusable(void **state)
{
    struct scene s;

    (void)state;
    begin(&s);
    start_role(&s, 4, "nobody", 1);
    assert_exit(heard(&s, "task_exit", 0), -1, -1, "no role of replicas is called 'nobody'");
    start_role(&s, 5, "pair", 1);
    assert_exit(heard(&s, "task_exit", 1), -1, -1, "1 tasks for a gang of 2");
    tell(&s, "task_start", "\"replica\":9,\"start\":6,\"role\":\"lead\"");
    assert_exit(heard(&s, "task_exit", 2), -1, -1, "it has no name");
    tell(&s, "task_start", "\"replica\":0,\"start\":6"); /* of whom? */
    assert_int_equal(s.count, 3);
    assert_false(replicas_any(s.all));
    end(&s);
}

static void test_probe(void **state)
{
    struct scene s;
    char path[128];

    (void)state;
    begin(&s);
    start_role(&s, 7, "checked", 1);
    assert_number(await(&s, "task_ready", 0), "task", 0);
    snprintf(path, sizeof(path), "%s/checked.7", s.run->dir);
    assert_int_equal(unlink(path), 0);
    assert_string_equal(json_get_string(await(&s, "task_unready", 0), "text"),
                        "its command ended with 1");
    kill_all(&s);
    end(&s);
}

/* What goes on under it: replicas that are here as a whole. */
static void test_another_leader(void **state)
{
    struct scene s;
    json_object *list, *said;
    int before;

    (void)state;
    begin(&s);
    start_role(&s, 4, "pair", 2);
    start_role(&s, 5, "told", 1);
    await(&s, "task_running", 1);
    await(&s, "task_ready", 0);
    before = s.count;
    replicas_welcomed(s.all, "127.0.0.1");
    assert_int_equal(s.count, before + 1);
    assert_true(json_object_object_get_ex(await(&s, "room", 0), "replicas", &list));
    assert_int_equal(json_object_array_length(list), 2);
    said = json_object_array_get_idx(list, 0); /* the newest first */
    assert_string_equal(json_get_string(said, "name"), "told-3");
    assert_string_equal(json_get_string(said, "role"), "told");
    assert_number(said, "replica", 9);
    assert_number(said, "start", 5);
    assert_true(json_get_bool(said, "running", false));
    assert_string_equal(json_object_to_json_string_ext(json_object_object_get(said, "ready"),
                                                       JSON_C_TO_STRING_PLAIN),
                        "[true]");
    said = json_object_array_get_idx(list, 1);
    assert_int_equal(json_object_array_length(json_object_object_get(said, "ports")), 2);
    tell(&s, "task_kill", "\"replica\":9,\"start\":5");
    assert_exit(await(&s, "task_exit", 0), 0, 128 + SIGKILL, "ended by signal 9");
    kill_all(&s);
    end(&s);
}

/* What is ending, or is on other nodes, too, is killed without a word before the leader hears. */
static void test_another_leader_and_what_cannot_go_on(void **state)
{
    struct scene s;
    int before;

    (void)state;
    begin(&s);
    start_role(&s, 5, "told", 1);
    await(&s, "task_ready", 0);
    tell(&s, "task_start",
         "\"replica\":10,\"start\":6,\"role\":\"pair\",\"name\":\"pair-3\",\"node_index\":0,"
         "\"gen\":6,\"nodes\":\"node[1-2]\",\"slots\":\"1(x2)\",\"world\":2,\"restarts\":0,"
         "\"kind\":\"start\",\"reason\":\"r\",\"master_addr\":\"127.0.0.1\",\"master_port\":7");
    await(&s, "task_running", 1);
    start_role(&s, 7, "talker", 1);
    await(&s, "task_running", 2);
    tell(&s, "task_drain", "\"replica\":9,\"start\":7,\"signal\":18,\"within\":30");
    before = s.count;
    replicas_welcomed(s.all, "127.0.0.1");
    assert_int_equal(s.count, before); /* not while they are there */
    assert_int_equal(
        json_object_array_length(json_object_object_get(await(&s, "room", 0), "replicas")), 1);
    assert_int_equal(s.count, before + 1);
    assert_true(replicas_any(s.all));
    kill_all(&s);
    end(&s);
}

/* The leader before may not have heard how the job ends. */
static void test_another_leader_after_the_end(void **state)
{
    struct scene s;
    json_object *said;

    (void)state;
    begin(&s);
    start_role(&s, 4, "told", 1);
    await(&s, "task_ready", 0);
    start_role(&s, 5, "lead", 1);
    await(&s, "task_exit", 0);
    replicas_welcomed(s.all, "127.0.0.1");
    assert_true(json_object_object_get_ex(await(&s, "room", 0), "result", &said));
    assert_string_equal(json_get_string(said, "name"), "lead-3");
    assert_number(said, "start", 5);
    assert_number(said, "status", 3);
    kill_all(&s);
    end(&s);

    begin(&s); /* it is killed: this is no end of the job */
    start_role(&s, 4, "mute", 1);
    start_role(&s, 5, "lead", 1);
    tell(&s, "task_kill", "\"replica\":9,\"start\":5");
    await(&s, "task_exit", 0);
    replicas_welcomed(s.all, "127.0.0.1");
    assert_false(json_object_object_get_ex(await(&s, "room", 0), "result", &said));
    kill_all(&s);
    end(&s);
}

static void test_pressure(void **state)
{
    struct scene s;
    size_t bytes;

    (void)state;
    begin(&s);
    replicas_pause_output(s.all, true);
    start_role(&s, 4, "talker", 1);
    await(&s, "task_running", 0);
    for (int i = 0; i < 10; i++)
        assert_true(run_turn(s.run));
    assert_int_equal(s.bytes, 0);
    replicas_pause_output(s.all, false);
    AWAIT(s.run, s.bytes > 200000);
    replicas_pause_output(s.all, true);
    bytes = s.bytes;
    for (int i = 0; i < 10; i++)
        assert_true(run_turn(s.run));
    assert_int_equal(s.bytes, bytes);
    replicas_stop(s.all, SIGTERM, 10);
    assert_exit(await(&s, "task_exit", 0), 0, 128 + SIGTERM, "ended by signal 15");
    AWAIT(s.run, s.none > 0);
    start_role(&s, 5, "told", 1); /* no more */
    assert_false(replicas_any(s.all));
    end(&s);
}

/* ---- strangers at the ports ------------------------------------------------------------------ */

/* A program of another user that listens there, until steal_end(). */
static pid_t steal(const char *address, int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int pipes[2];
    char ready;
    pid_t pid;

    assert_int_equal(inet_pton(AF_INET, address, &at.sin_addr), 1);
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        int fd = setgid(65534) == 0 && setuid(65534) == 0 ? socket(AF_INET, SOCK_STREAM, 0) : -1;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, 5) == 0 &&
            write(pipes[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    close(pipes[1]);
    assert_int_equal(read(pipes[0], &ready, 1), 1);
    close(pipes[0]);
    return pid;
}

static void steal_end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* A case with a stranger, on a node of this address. */
static void begin_at(struct scene *s, const char *address)
{
    if (geteuid() != 0)
        skip(); /* steal() could not become another user */
    begin(s);
    replicas_welcomed(s->all, address);
}

static void assert_lost(json_object *msg, int task, int status, int port)
{
    char text[80];

    snprintf(text, sizeof(text), "a program of another user listens on its port %d", port);
    assert_exit(msg, task, status, text);
    assert_true(json_get_bool(msg, "lost", false));
}

/* Tasks look whether it is there. */
static void put_file(struct scene *s, const char *name, bool there)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", s->run->dir, name);
    if (there)
        close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    else
        unlink(path);
}

static bool file_is_there(const struct scene *s, const char *name)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", s->run->dir, name);
    return access(path, F_OK) == 0;
}

/* The probe would find the stranger. It never gets ready, and is to be started again, which costs
 * nothing. */
static void test_a_stranger_has_the_port(void **state)
{
    struct scene s;
    pid_t thief;
    int port;

    (void)state;
    begin_at(&s, "127.0.0.1");
    start_role(&s, 4, "web", 1);
    port = port_in(await(&s, "task_running", 0), 0, 0);
    thief = steal("127.0.0.1", port);
    AWAIT(s.run, !replicas_any(s.all));
    assert_null(heard(&s, "task_exit", 0)); /* not at once */
    assert_lost(await(&s, "task_exit", 0), 0, 128 + SIGKILL, port);
    assert_null(heard(&s, "task_ready", 0));
    steal_end(thief);
    end(&s);
}

/* Its clients would go on to talk to the stranger. */
static void test_a_stranger_follows(void **state)
{
    struct scene s;
    pid_t thief;
    int port;

    (void)state;
    begin_at(&s, "127.0.0.1");
    start_role(&s, 4, "closer", 1);
    port = port_in(await(&s, "task_running", 0), 0, 0);
    await(&s, "task_ready", 0);
    put_file(&s, "go", true);
    AWAIT(s.run, file_is_there(&s, "closed"));
    thief = steal("127.0.0.1", port);
    assert_lost(await(&s, "task_exit", 0), 0, 128 + SIGKILL, port);
    put_file(&s, "go", false);
    put_file(&s, "closed", false);
    steal_end(thief);
    end(&s);
}

/* Any user can do that to any program which does not listen at all its ports: without a probe, and
 * with one that does not ask the port. Nobody is told the port meanwhile. */
static void test_a_stranger_at_a_port_without_use(void **state)
{
    static const char *const roles[] = {"idle", "later"};

    (void)state;
    for (size_t i = 0; i < COUNT(roles); i++) {
        struct scene s;
        pid_t thief;
        int port;

        begin_at(&s, "127.0.0.1");
        put_file(&s, "go", true);
        start_role(&s, 4, roles[i], 1);
        port = port_in(await(&s, "task_running", 0), 0, 1);
        thief = steal("127.0.0.1", port);
        assert_int_equal(port_in(await(&s, "task_running", 1), 0, 1), 0);
        assert_int_not_equal(port_in(heard(&s, "task_running", 1), 0, 0), 0);
        steal_end(thief);
        assert_int_equal(port_in(await(&s, "task_running", 2), 0, 1), port);
        assert_null(heard(&s, "task_exit", 0));
        put_file(&s, "go", false);
        kill_all(&s);
        end(&s);
    }
}

/* Nobody is told to connect there. */
static void test_a_stranger_at_another_address(void **state)
{
    struct scene s;
    pid_t elsewhere, thief;
    int port;

    (void)state;
    begin_at(&s, "127.0.0.1");
    start_role(&s, 4, "idle", 1);
    elsewhere = steal("127.0.0.2", port_in(await(&s, "task_running", 0), 0, 0));
    start_role(&s, 5, "web", 1);
    port = port_in(await(&s, "task_running", 1), 0, 0);
    thief = steal("127.0.0.1", port);
    assert_lost(await(&s, "task_exit", 0), 0, 128 + SIGKILL, port);
    assert_null(heard(&s, "task_exit", 1));
    assert_null(heard(&s, "task_running", 2));
    assert_true(replicas_any(s.all));
    steal_end(thief);
    steal_end(elsewhere);
    kill_all(&s);
    end(&s);
}

static void test_a_stranger_has_a_port_of_a_gang(void **state)
{
    struct scene s;
    pid_t thief;
    int port;

    (void)state;
    begin_at(&s, "127.0.0.1");
    start_role(&s, 4, "two", 2);
    port = port_in(await(&s, "task_running", 0), 1, 0);
    thief = steal("127.0.0.1", port);
    AWAIT(s.run, !replicas_any(s.all));
    /* The leader orders the end of a replica that has just ended; the job's end does not wait. */
    tell(&s, "task_kill", "\"replica\":9,\"start\":4");
    assert_exit(heard(&s, "task_exit", 0), -1, -1, "none of its tasks is here");
    replicas_stop(s.all, SIGTERM, 10);
    for (int i = 1; i <= 2; i++) {
        int64_t task;

        assert_true(json_get_int(heard(&s, "task_exit", i), "task", 0, 1, &task));
        assert_lost(heard(&s, "task_exit", i), (int)task, 128 + SIGKILL, port);
    }
    steal_end(thief);
    end(&s);
}

/* A program that cannot listen ends by itself. */
static void test_a_program_finds_a_stranger(void **state)
{
    static const char *const strangers[] = {"127.0.0.1", "127.0.0.2"};

    (void)state;
    for (size_t i = 0; i < COUNT(strangers); i++) {
        struct scene s;
        pid_t thief;
        int port;

        begin_at(&s, "127.0.0.3");
        start_role(&s, 4, "server", 1);
        port = port_in(await(&s, "task_running", 0), 0, 1);
        thief = steal(strangers[i], port);
        put_file(&s, "go", true);
        assert_lost(await(&s, "task_exit", 0), 0, 1, port);
        start_role(&s, 5, "server", 1); /* nobody is there */
        assert_exit(await(&s, "task_exit", 1), 0, 1, "in use");
        assert_false(json_get_bool(heard(&s, "task_exit", 1), "lost", false));
        put_file(&s, "go", false);
        start_role(&s, 6, "never", 1); /* it is never to be started again */
        steal_end(thief);
        thief = steal("127.0.0.1", port_in(await(&s, "task_running", 2), 0, 1));
        put_file(&s, "go", true);
        assert_exit(await(&s, "task_exit", 2), 0, 93, "ended with 93");
        assert_false(json_get_bool(heard(&s, "task_exit", 2), "lost", false));
        put_file(&s, "go", false);
        steal_end(thief);
        kill_all(&s);
        end(&s);
    }
}

/* The leading one has not ended by itself: the next leader is not told that the job is over. */
static void test_a_stranger_at_the_leading_replica(void **state)
{
    struct scene s;
    json_object *said;
    pid_t thief;

    (void)state;
    begin_at(&s, "127.0.0.1");
    put_file(&s, "stay", true);
    start_role(&s, 4, "lead", 1);
    thief = steal("127.0.0.1", port_in(await(&s, "task_running", 0), 0, 0));
    put_file(&s, "stay", false);
    AWAIT(s.run, !replicas_any(s.all));
    replicas_welcomed(s.all, "127.0.0.1");
    assert_false(json_object_object_get_ex(await(&s, "room", 1), "result", &said));
    steal_end(thief);
    end(&s);
}

/* It may have one elsewhere, or later. */
static void test_no_port(void **state)
{
    struct rlimit files, none;
    struct scene s;

    (void)state;
    begin(&s);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    none = (struct rlimit){.rlim_cur = 3, .rlim_max = files.rlim_max};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
        if (i == 0)
            start_role(&s, 4, "idle", 1); /* MASTER_PORT */
        else
            tell(&s, "task_start",
                 "\"replica\":9,\"start\":5,\"role\":\"idle\",\"name\":\"idle-3\",\"node_index\":0,"
                 "\"gen\":5,\"nodes\":\"node1\",\"slots\":\"1\",\"world\":1,\"restarts\":0,"
                 "\"kind\":\"start\",\"reason\":\"r\",\"master_addr\":\"127.0.0.1\","
                 "\"master_port\":7");
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    }
    assert_false(replicas_any(s.all));
    assert_int_equal(s.count, 0);
    assert_number(await(&s, "task_exit", 0), "task", -1);
    assert_number(await(&s, "task_exit", 1), "status", 1);
    assert_true(json_get_bool(heard(&s, "task_exit", 1), "lost", false));
    end(&s);
}

/* In the middle of everything. */
static void test_destroy(void **state)
{
    struct scene s;

    (void)state;
    begin(&s);
    start_role(&s, 4, "pair", 2);
    start_role(&s, 5, "told", 1);
    start_role(&s, 6, "talker", 1);
    await(&s, "task_ready", 0);
    end(&s);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_room),
        cmocka_unit_test(test_start_and_end),
        cmocka_unit_test(test_ports),
        cmocka_unit_test(test_gang_of_two_nodes),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_drain_a_deaf_one),
        cmocka_unit_test(test_what_is_not_here),
        cmocka_unit_test(test_gpus),
        cmocka_unit_test(test_world),
        cmocka_unit_test(test_world_elsewhere),
        cmocka_unit_test(test_world_without_its_needs),
        cmocka_unit_test(test_gpus_of_one_task),
        cmocka_unit_test(test_stale_ready_file),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_api),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_not_executable),
        cmocka_unit_test(test_unusable),
        cmocka_unit_test(test_probe),
        cmocka_unit_test(test_another_leader),
        cmocka_unit_test(test_another_leader_and_what_cannot_go_on),
        cmocka_unit_test(test_another_leader_after_the_end),
        cmocka_unit_test(test_pressure),
        cmocka_unit_test(test_a_stranger_has_the_port),
        cmocka_unit_test(test_a_stranger_follows),
        cmocka_unit_test(test_a_stranger_at_a_port_without_use),
        cmocka_unit_test(test_a_stranger_at_another_address),
        cmocka_unit_test(test_a_stranger_has_a_port_of_a_gang),
        cmocka_unit_test(test_a_program_finds_a_stranger),
        cmocka_unit_test(test_a_stranger_at_the_leading_replica),
        cmocka_unit_test(test_no_port),
        cmocka_unit_test(test_destroy),
    };

    run_dispatch(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
