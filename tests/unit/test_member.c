/* SPDX-License-Identifier: GPL-2.0-or-later */
/* agent/member: a node of a job with roles, and a leader that says what the test says. */
#include "tests/unit/support.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sodium.h>

#include "agent/member/member.h"
#include "agent/workers/exec_worker.h"
#include "agent/workers/workers.h"
#include "lib/json_get.h"
#include "tests/unit/link_fixture.h"

#define HEARD_MAX 64

static const char *const ROLES =
    "roles:\n"
    "  server: {leads: yes, run: [sh, -c, 'echo here $ELASTIC_START; : >$ELASTIC_READY_FILE;"
    " exec sleep 1000'], ready: told}\n"
    "  talker: {run: [sh, -c, 'while :; do echo 01234567890123456789012345678901234567; done']}\n";

struct scene_of_member {
    uv_loop_t loop;
    struct link_server *server;
    struct link *link;
    struct conf *conf;
    struct member_options options;
    struct member *member;
    char dir[64];
    json_object *heard[HEARD_MAX];
    int count, joins;
    size_t bytes, of_world;   /* of output: of replicas, of the world */
    char text[256], name[64]; /* the first output, and its label */
    bool acks;                /* all output is written at once */
    int done, code;
    const char *argv;       /* of the world, as JSON; NULL: there is none */
    const char *pre, *post; /* scripts around it, likewise */
};

/* ---- the leader ------------------------------------------------------------------------------ */

static void tell(struct scene_of_member *s, json_object *msg)
{
    assert_non_null(msg);
    assert_int_equal(link_send(s->link, msg), 0);
}

static void tell_text(struct scene_of_member *s, const char *text)
{
    tell(s, json_tokener_parse(text));
}

static void welcome(struct scene_of_member *s)
{
    json_object *msg = json_tokener_parse(
        "{\"t\":\"welcome\",\"protocol\":1,\"oldest\":1,\"env\":[\"PATH=/usr/bin:/"
        "bin\"],"
        "\"cwd\":\"/tmp\",\"state_dir\":\"/tmp\",\"checkpoint_dir\":\"/tmp\",\"umask\":18,"
        "\"min_nodes\":1,\"max_nodes\":2,\"max_restarts\":3,\"term\":1,\"address\":\"127.0.0.1\","
        "\"you\":\"127.0.0.1\",\"successors\":[{\"nodeid\":1,\"address\":\"127.0.0.1\","
        "\"port\":1}]}");

    assert_non_null(msg);
    json_object_object_add(msg, "port", json_object_new_int(link_server_port(s->server)));
    json_object_object_add(msg, "roles", json_object_new_string(ROLES));
    json_object_object_add(msg, "argv",
                           s->argv != NULL ? json_tokener_parse(s->argv) : json_object_new_array());
    if (s->pre != NULL)
        json_object_object_add(msg, "pre_train", json_tokener_parse(s->pre));
    if (s->post != NULL)
        json_object_object_add(msg, "post_train", json_tokener_parse(s->post));
    tell(s, msg);
}

static void start_role(struct scene_of_member *s, int start, const char *role)
{
    char text[512];

    snprintf(text, sizeof(text),
             "{\"t\":\"task_start\",\"replica\":1,\"start\":%d,\"role\":\"%s\",\"name\":\"%s-0\","
             "\"node_index\":0,\"gen\":%d,\"nodes\":\"n1\",\"slots\":\"1\",\"world\":1,"
             "\"restarts\":0,\"kind\":\"start\",\"reason\":\"r\",\"master_addr\":\"127.0.0.1\","
             "\"master_port\":0}",
             start, role, role, start);
    tell_text(s, text);
}

static void start_world(struct scene_of_member *s)
{
    tell_text(s, "{\"t\":\"start\",\"attempt\":1,\"gate\":false,\"node_index\":0,\"gen\":1,"
                 "\"nodes\":\"n1\",\"slots\":\"1\",\"world\":1,\"restarts\":0,"
                 "\"kind\":\"start\",\"reason\":\"r\",\"master_addr\":\"127.0.0.1\","
                 "\"master_port\":20000}");
}

static void take_output(struct scene_of_member *s, json_object *msg)
{
    const char *data = json_get_string(msg, "data"), *name = json_get_string(msg, "name");
    unsigned char bytes[65536];
    size_t len = 0;

    assert_int_equal(sodium_base642bin(bytes, sizeof(bytes), data, strlen(data), NULL, &len, NULL,
                                       sodium_base64_VARIANT_ORIGINAL),
                     0);
    if (s->acks) {
        json_object *ack = json_tokener_parse("{\"t\":\"ack\"}");

        json_object_object_add(ack, "bytes", json_object_new_int64((int64_t)len));
        tell(s, ack);
    }
    if (name == NULL) {
        s->of_world += len;
        return;
    }
    if (s->bytes == 0)
        snprintf(s->text, sizeof(s->text), "%.*s", (int)len, (const char *)bytes);
    s->bytes += len;
    snprintf(s->name, sizeof(s->name), "%s", name);
}

static void on_open(struct link *link, void *arg)
{
    ((struct scene_of_member *)arg)->link = link;
}

static void on_message(struct link *link, json_object *msg, void *arg)
{
    struct scene_of_member *s = arg;
    const char *type = json_get_string(msg, "t");

    (void)link;
    if (strcmp(type, "join") == 0) {
        s->joins++;
        welcome(s);
    } else if (strcmp(type, "out") == 0) {
        take_output(s, msg);
    } else if (strcmp(type, "beat") != 0 && strcmp(type, "silence") != 0) {
        assert_true(s->count < HEARD_MAX);
        s->heard[s->count++] = json_object_get(msg);
    }
}

static void on_closed(struct link *link, const char *why, void *arg)
{
    struct scene_of_member *s = arg;

    (void)why;
    if (s->link == link)
        s->link = NULL;
}

static const struct link_handlers leader_handlers = {
    .open = on_open, .message = on_message, .closed = on_closed};

/* ---- the scene ------------------------------------------------------------------------------- */

static const char *program(void)
{
    return "/proc/self/exe";
}

static void on_done(int code, void *arg)
{
    struct scene_of_member *s = arg;

    s->done++;
    s->code = code;
}

static void begin(struct scene_of_member *s, const char *argv)
{
    const struct link_server_options server = {.job_id = JOB,
                                               .munge_socket = munge_socket,
                                               .port_first = port_first,
                                               .port_last = port_last};
    struct error err = {""};

    *s = (struct scene_of_member){.conf = conf_create(), .argv = argv};
    uv_loop_init(&s->loop);
    snprintf(s->dir, sizeof(s->dir), "/dev/shm/elastic-test-XXXXXX");
    assert_non_null(mkdtemp(s->dir));
    free(s->conf->munge_socket);
    free(s->conf->snapshot_dir);
    s->conf->munge_socket = strdup(munge_socket);
    s->conf->snapshot_dir = strdup(s->dir);
    s->server = link_server_create(&s->loop, &server, &leader_handlers, s, &err);
    assert_non_null(s->server);
    s->options = (struct member_options){
        .node = "n1",
        .job = JOB + 1,
        .nodeid = 1, /* the first one would ask Slurm */
        .slots = 1,
        .base_job = JOB,
        .address = "127.0.0.1",
        .port = link_server_port(s->server),
        .connect_timeout_ms = PATIENCE_MS,
        .conf = s->conf,
        .program = "elasticrun",
        .lib = program,
    };
    s->member = member_create(&s->loop, &s->options, on_done, s, &err);
    if (s->member == NULL)
        fail_msg("%s", err.text);
}

/* The member has ended, and its files are gone. */
static void end(struct scene_of_member *s)
{
    link_server_destroy(s->server);
    assert_true(run_empty(&s->loop));
    assert_int_equal(s->done, 1);
    member_destroy(s->member);
    for (int i = 0; i < s->count; i++)
        json_object_put(s->heard[i]);
    assert_int_equal(rmdir(s->dir), 0);
    conf_destroy(s->conf);
}

/* What is waited for: that many messages of that type, or of others. */
struct wanted {
    struct scene_of_member *scene;
    const char *type;
    int count;
    size_t bytes;
};

static json_object *nth(const struct scene_of_member *s, const char *type, int n)
{
    for (int i = 0; i < s->count; i++)
        if (strcmp(json_get_string(s->heard[i], "t"), type) == 0 && n-- == 0)
            return s->heard[i];
    return NULL;
}

static bool has_come(void *arg)
{
    const struct wanted *wanted = arg;
    const struct scene_of_member *s = wanted->scene;

    if (wanted->type != NULL)
        return nth(s, wanted->type, wanted->count - 1) != NULL;
    return wanted->bytes > 0 ? s->bytes >= wanted->bytes : s->done > 0;
}

static json_object *await(struct scene_of_member *s, const char *type, int count)
{
    assert_true(run_until(&s->loop, has_come, &(struct wanted){s, type, count, 0}));
    return nth(s, type, count - 1);
}

static void await_bytes(struct scene_of_member *s, size_t bytes)
{
    assert_true(run_until(&s->loop, has_come, &(struct wanted){s, NULL, 0, bytes}));
}

static void await_done(struct scene_of_member *s)
{
    assert_true(run_until(&s->loop, has_come, &(struct wanted){s, NULL, 0, 0}));
}

static int64_t number(json_object *msg, const char *key)
{
    int64_t value;

    assert_true(json_get_int(msg, key, INT64_MIN, INT64_MAX, &value));
    return value;
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void test_replica(void **state)
{
    struct scene_of_member s;
    struct member_command command;

    (void)state;
    begin(&s, NULL);
    assert_true(number(await(&s, "room", 1), "cpus") > 0);
    member_command(s.member, &command);
    assert_string_equal(command.roles, ROLES);
    start_role(&s, 3, "server");
    await(&s, "task_ready", 1);
    await_bytes(&s, 1);
    assert_string_equal(s.text, "here 3\n");
    assert_string_equal(s.name, "server-0");
    tell_text(&s, "{\"t\":\"finish\",\"code\":7,\"well\":true}");
    assert_int_equal(number(await(&s, "task_exit", 1), "status"), 128 + SIGTERM);
    await_done(&s);
    assert_int_equal(s.code, 7);
    end(&s);
}

/* The link is lost, and another leader welcomes the node. */
static void test_another_leader(void **state)
{
    struct scene_of_member s;

    (void)state;
    begin(&s, NULL);
    await(&s, "room", 1);
    start_role(&s, 3, "server");
    await(&s, "task_ready", 1);
    link_close(s.link, "a test");
    await(&s, "room", 2);
    assert_int_equal(s.joins, 2);
    assert_null(nth(&s, "task_exit", 0)); /* it knows nothing of that one */
    start_role(&s, 1, "server");
    await(&s, "task_ready", 2);
    tell_text(&s, "{\"t\":\"release\"}");
    await_done(&s);
    assert_int_equal(s.code, 0);
    end(&s);
}

/* For what must not happen. */
static void look_on(struct scene_of_member *s)
{
    const struct timespec nap = {.tv_nsec = 20000000};

    for (int i = 0; i < 10; i++) {
        nanosleep(&nap, NULL);
        uv_run(&s->loop, UV_RUN_NOWAIT);
    }
}

static bool world_has_written(void *arg)
{
    return ((struct scene_of_member *)arg)->of_world == strlen("world\n");
}

/* Nobody writes it: no more is sent. Then somebody does. */
static void test_pressure(void **state)
{
    struct scene_of_member s;
    size_t before;

    (void)state;
    begin(&s, "[\"sh\",\"-c\",\"echo world; exec sleep 1000\"]");
    await(&s, "room", 1);
    start_role(&s, 3, "talker");
    await_bytes(&s, 256 * 1024);
    start_world(&s);
    await(&s, "ready", 1);
    look_on(&s);
    before = s.bytes;
    assert_true(before < 1024 * 1024);
    assert_int_equal(s.of_world, 0);
    s.acks = true;
    tell_text(&s, "{\"t\":\"ack\",\"bytes\":1000000}");
    await_bytes(&s, before + 256 * 1024);
    assert_true(run_until(&s.loop, world_has_written, &s));
    tell_text(&s, "{\"t\":\"release\"}");
    await_done(&s);
    end(&s);
}

/* Neither knows of the other one. The job's end is that of both. */
static void test_a_world_beside(void **state)
{
    struct scene_of_member s;

    (void)state;
    begin(&s, "[\"sleep\",\"1000\"]");
    await(&s, "room", 1);
    start_role(&s, 3, "server");
    start_world(&s);
    await(&s, "ready", 1);
    await(&s, "task_ready", 1);
    tell_text(&s, "{\"t\":\"stop\",\"gen\":1,\"signal\":15,\"grace\":10}");
    await(&s, "drained", 1);
    assert_null(nth(&s, "task_exit", 0));
    tell_text(&s, "{\"t\":\"release\"}");
    await(&s, "task_exit", 1);
    await_done(&s);
    end(&s);
}

/* ---- scripts around training ----------------------------------------------------------------- */

static const char *with_file(char text[400], const char *form, const char *log)
{
    const char *mark = form != NULL ? strstr(form, "%s") : NULL;

    if (mark == NULL)
        return form;
    snprintf(text, 400, "%.*s%s%s", (int)(mark - form), form, log, mark + 2);
    return text;
}

/* "%s" of the texts is a file that they write to. */
static void begin_with_scripts(struct scene_of_member *s, const char *argv, const char *pre,
                               const char *post, char texts[3][400], const char *log)
{
    begin(s, with_file(texts[0], argv, log));
    s->pre = with_file(texts[1], pre, log);
    s->post = with_file(texts[2], post, log);
    await(s, "room", 1);
}

static const char *message_of(json_object *msg)
{
    json_object *error = NULL;

    assert_true(json_object_object_get_ex(msg, "error", &error));
    return json_get_string(error, "message");
}

static void end_scripts(struct scene_of_member *s)
{
    tell_text(s, "{\"t\":\"release\"}");
    await_done(s);
    end(s);
}

static void test_scripts_around_training(void **state)
{
    static const char argv[] = "[\"sh\",\"-c\",\"cat %s\"]",
                      pre[] = "[\"sh\",\"-c\",\"sleep 0.1; echo $0 $ELASTIC_GENERATION "
                              ">>%s\",\"a b\"]",
                      post[] = "[\"sh\",\"-c\",\"echo $1 >>%s\",\"x\",\"it's\"]";
    struct scene_of_member s;
    char log[] = "/dev/shm/elastic-test-log-XXXXXX", texts[3][400], read[100] = "";
    int fd = mkstemp(log);

    (void)state;
    begin_with_scripts(&s, argv, pre, post, texts, log);
    start_world(&s);
    await(&s, "ready", 1);
    await(&s, "drained", 1);
    assert_int_equal(number(await(&s, "exit", 1), "code"), 0);
    assert_int_equal(s.of_world, strlen("a b 1\n"));
    assert_int_equal(pread(fd, read, sizeof(read) - 1, 0), strlen("a b 1\nit's\n"));
    assert_string_equal(read, "a b 1\nit's\n");
    close(fd);
    unlink(log);
    end_scripts(&s);
}

static void test_scripts_that_fail(void **state)
{
    static const struct {
        const char *pre, *post, *message;
        int exits;
    } table[] = {
        {"[\"sh\",\"-c\",\"exit 3\"]", NULL, "--pre-train-script sh ended with exit code 3", 1},
        {"[\"sh\",\"-c\",\"kill -9 $$\"]", NULL, "--pre-train-script sh was ended by signal 9", 1},
        {"[\"/no/such\"]", NULL, "--pre-train-script /no/such: no such file or directory", 1},
        {NULL, "[\"sh\",\"-c\",\"exit 4\"]", "--post-train-script sh ended with exit code 4", 2},
        {NULL, "[\"/no/such\"]", "--post-train-script /no/such: no such file or directory", 2},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        struct scene_of_member s;
        char texts[3][400];
        json_object *exit;

        begin_with_scripts(&s, "[\"true\"]", table[i].pre, table[i].post, texts, "");
        start_world(&s);
        exit = await(&s, "exit", table[i].exits);
        assert_string_equal(message_of(exit), table[i].message);
        assert_int_equal(number(exit, "code"), 1);
        assert_int_equal(number(exit, "started"), 1);
        await(&s, "drained", 1);
        assert_int_equal(nth(&s, "ready", 0) != NULL, table[i].pre == NULL);
        end_scripts(&s);
    }
}

/* The job ends, or the next world is given up, while a script runs: nobody waits for it. */
static void test_scripts_that_are_given_up(void **state)
{
    static const char sleeps[] = "[\"sh\",\"-c\",\"sleep 1000; true\"]";
    struct scene_of_member s;
    char texts[3][400];

    (void)state;
    begin_with_scripts(&s, "[\"true\"]", sleeps, NULL, texts, "");
    start_world(&s);
    end_scripts(&s);

    begin_with_scripts(&s, "[\"true\"]", sleeps, NULL, texts, "");
    tell_text(&s, "{\"t\":\"prepare\",\"attempt\":1,\"node_index\":0,\"gen\":1,"
                  "\"nodes\":\"n1\",\"slots\":\"1\",\"world\":1,\"restarts\":0,"
                  "\"kind\":\"start\",\"reason\":\"r\",\"master_addr\":\"127.0.0.1\","
                  "\"master_port\":20000}");
    tell_text(&s, "{\"t\":\"discard\",\"attempt\":1}");
    tell_text(&s, "{\"t\":\"reserve\",\"gen\":2,\"attempt\":2}");
    await(&s, "reserved", 1);
    assert_null(nth(&s, "unprepared", 0));
    end_scripts(&s);
}

/* A world ends, and has its script, while that for the next one runs. Then the job ends. */
static void test_scripts_of_two_worlds(void **state)
{
    static const char pre[] = "[\"sh\",\"-c\",\"[ $ELASTIC_GENERATION = 1 ] || sleep 1000; true\"]",
                      post[] = "[\"sleep\",\"0.1\"]";
    struct scene_of_member s;
    char texts[3][400];

    (void)state;
    begin_with_scripts(&s, "[\"sleep\",\"1000\"]", pre, post, texts, "");
    start_world(&s);
    await(&s, "ready", 1);
    tell_text(&s, "{\"t\":\"prepare\",\"attempt\":2,\"node_index\":0,\"gen\":2,"
                  "\"nodes\":\"n1\",\"slots\":\"1\",\"world\":1,\"restarts\":0,"
                  "\"kind\":\"start\",\"reason\":\"r\",\"master_addr\":\"127.0.0.1\","
                  "\"master_port\":20000}");
    tell_text(&s, "{\"t\":\"stop\",\"gen\":1,\"signal\":9,\"grace\":10}");
    await(&s, "drained", 1);
    /* This waits for that script, which is given up with it. */
    tell_text(&s, "{\"t\":\"discard\",\"attempt\":2}");
    tell_text(&s, "{\"t\":\"reserve\",\"gen\":3,\"attempt\":3}");
    await(&s, "reserved", 1);
    assert_null(nth(&s, "unprepared", 0));
    end_scripts(&s);
}

/* ---- MASTER_PORT ----------------------------------------------------------------------------- */

/* A program of another user, until it is killed. Sets *port. */
static pid_t begin_stranger(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof(address);
    int ends[2];
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    pid = fork();
    if (pid == 0) {
        int fd = -1;

        /* Another user is not killed with this process unless it says so afterwards. */
        if (setuid(65534) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0)
            fd = socket(AF_INET, SOCK_STREAM, 0);
        if (fd >= 0 && bind(fd, (struct sockaddr *)&address, size) == 0 && listen(fd, 1) == 0 &&
            getsockname(fd, (struct sockaddr *)&address, &size) == 0 &&
            write(ends[1], &address.sin_port, sizeof(address.sin_port)) > 0)
            pause();
        _exit(1);
    }
    assert_int_equal(read(ends[0], &address.sin_port, sizeof(address.sin_port)),
                     sizeof(address.sin_port));
    close(ends[0]);
    close(ends[1]);
    *port = ntohs(address.sin_port);
    return pid;
}

static void test_a_stranger_at_the_port(void **state)
{
    struct scene_of_member s;
    json_object *exit, *msg;
    pid_t stranger;
    int port;

    (void)state;
    if (geteuid() != 0)
        skip(); /* only root can begin a program of another user */
    stranger = begin_stranger(&port);
    begin(&s, "[\"sleep\",\"1000\"]");
    await(&s, "room", 1);
    msg = json_tokener_parse("{\"t\":\"start\",\"attempt\":1,\"gate\":false,\"node_index\":0,"
                             "\"gen\":1,\"nodes\":\"n1\",\"slots\":\"1\",\"world\":1,"
                             "\"restarts\":0,\"kind\":\"start\",\"reason\":\"r\","
                             "\"master_addr\":\"127.0.0.1\"}");
    json_object_object_add(msg, "master_port", json_object_new_int(port));
    tell(&s, msg);
    exit = await(&s, "exit", 1);
    assert_true(json_get_bool(exit, "stolen", false));
    assert_non_null(strstr(message_of(exit), "a program of another user listens on port"));
    await(&s, "drained", 1);
    end_scripts(&s);
    kill(stranger, SIGKILL);
    waitpid(stranger, NULL, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replica),
        cmocka_unit_test(test_another_leader),
        cmocka_unit_test(test_pressure),
        cmocka_unit_test(test_a_world_beside),
        cmocka_unit_test(test_scripts_around_training),
        cmocka_unit_test(test_scripts_that_fail),
        cmocka_unit_test(test_scripts_that_are_given_up),
        cmocka_unit_test(test_scripts_of_two_worlds),
        cmocka_unit_test(test_a_stranger_at_the_port),
    };

    if (argc > 1 && strcmp(argv[1], EXEC_WORKER_OPTION) == 0)
        return workers_exec_shim(argc, argv);
    return scene_run(argc, argv, tests);
}
