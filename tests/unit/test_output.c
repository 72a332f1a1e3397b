/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writing workers' output (agent/output.c): into pipes that nobody reads, files, terminals, and
 * what is closed.
 *
 * Each case runs in a child whose stdout and stderr are what the case is about. */
#include "tests/unit/support.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <uv.h>

#include "agent/output.h"

#define LIMIT_SECONDS 120

/* ---- in the child ---------------------------------------------------------------------------- */

struct session {
    uv_loop_t loop;
    struct output *output;
    int drained, done;
    size_t written;
};

static void on_drained(void *arg)
{
    ((struct session *)arg)->drained++;
}

static void on_written(size_t bytes, void *arg)
{
    ((struct session *)arg)->written += bytes;
}

static void on_done(void *arg)
{
    ((struct session *)arg)->done++;
}

/* What goes wrong in a child is told by its exit status: the line. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            _exit((__LINE__) % 250 + 1);                                                           \
    } while (0)

static void begin(struct session *s, bool label)
{
    *s = (struct session){0};
    CHECK(uv_loop_init(&s->loop) == 0);
    s->output = output_create(&s->loop, label, on_drained, s);
    CHECK(s->output != NULL);
}

static void end(struct session *s, int timeout_ms)
{
    output_destroy(s->output, timeout_ms, on_done, s);
    CHECK(s->done == 0); /* from the loop only */
    CHECK(uv_run(&s->loop, UV_RUN_DEFAULT) == 0);
    CHECK(s->done == 1);
    CHECK(uv_loop_close(&s->loop) == 0);
}

static bool put(struct session *s, int rank, int fd, const char *text)
{
    size_t before = s->written;
    bool more = output_write(s->output, rank, fd, text, strlen(text), on_written, s);

    CHECK(s->written == before); /* from the loop only */
    return more;
}

static void case_plain(void)
{
    struct session s;

    begin(&s, false);
    CHECK(put(&s, 0, 1, "one\n"));
    CHECK(put(&s, 1, 2, "err"));
    CHECK(put(&s, 1, 1, "two"));
    CHECK(put(&s, 0, 1, ""));
    output_end_rank(s.output, 1);
    while (s.written < 10)
        uv_run(&s.loop, UV_RUN_ONCE);
    CHECK(put(&s, 0, 1, "three\n"));
    end(&s, 5000);
    CHECK(s.drained == 0);
}

/* The beginning of a line waits for its end, also without labels; a progress bar's does not. */
static void case_begun_lines(void)
{
    struct session s;

    begin(&s, false);
    put(&s, 0, 1, "a\nb");
    put(&s, 1, 1, "x\ny\n");
    put(&s, 0, 1, "c\n");
    put(&s, 1, 1, "\r10 %");
    put(&s, 0, 1, "d\n");
    output_end_rank(s.output, 1);
    end(&s, 5000);
}

/* A leader and the member in its process write to one pipe, and what they are given does not end
 * with lines. */
static void case_two_writers(void)
{
    enum { LINE = 300, LINES = 4000 };
    static char text[2][LINES * LINE + 1];
    struct session s[2];
    size_t at[2] = {0};

    begin(&s[0], false);
    s[1] = (struct session){.output = output_create(&s[0].loop, false, on_drained, &s[1])};
    for (int i = 0; i < LINES; i++)
        for (int w = 0; w < 2; w++) {
            memset(text[w] + i * LINE, 'a' + w, LINE - 1);
            text[w][(i + 1) * LINE - 1] = '\n';
        }
    while (at[0] < LINES * LINE) {
        for (int w = 0; w < 2; w++) {
            size_t left = LINES * LINE - at[w], part = left < 20000 ? left : 20000;

            output_write(s[w].output, w, 1, text[w] + at[w], part, on_written, &s[w]);
            at[w] += part;
        }
        uv_run(&s[0].loop, UV_RUN_NOWAIT);
    }
    while (s[0].written < LINES * LINE || s[1].written < LINES * LINE)
        uv_run(&s[0].loop, UV_RUN_ONCE);
    output_destroy(s[1].output, 5000, on_done, &s[1]);
    end(&s[0], 5000);
    CHECK(s[1].done == 1);
}

/* Streams of replicas have names. A name is forgotten with the end of its stream. */
static void case_names(void)
{
    struct session s;

    begin(&s, true);
    output_label(s.output, 2048, "collector-3");
    output_label(s.output, 2049, "collector-3.1");
    output_label(s.output, 2049, "learner-0");
    output_label(s.output, 2049, "learner-0");
    put(&s, 2048, 1, "a\nb");
    put(&s, 2049, 2, "x\n");
    put(&s, 7, 1, "y\n");
    output_end_rank(s.output, 2048);
    put(&s, 2048, 1, "z\n");
    put(&s, 2049, 1, "at the end");
    end(&s, 5000);
}

static void case_names_without_labels(void)
{
    struct session s;

    begin(&s, false);
    output_label(s.output, 2048, "collector-3");
    put(&s, 2048, 1, "a\n");
    end(&s, 5000);
}

static void case_label(void)
{
    struct session s;

    begin(&s, true);
    put(&s, 0, 1, "a\nb");
    put(&s, 12, 1, "x\n\ny\n");
    put(&s, 0, 2, "err");
    put(&s, 0, 1, "c\n");
    put(&s, 1, 1, "part");
    put(&s, 1, 1, "");
    put(&s, 1, 1, "ial");
    output_end_rank(s.output, 1);
    output_end_rank(s.output, 1);
    put(&s, 2, 1, "at the end");
    while (s.written < 30)
        uv_run(&s.loop, UV_RUN_ONCE);
    end(&s, 5000);
}

/* A line without end is cut at 64 KiB, so that it cannot eat the memory. */
static void case_long_line(void)
{
    static char text[30001];
    struct session s;

    memset(text, 'z', sizeof(text) - 1);
    begin(&s, true);
    for (int i = 0; i < 5; i++)
        put(&s, 3, 1, text);
    end(&s, 5000);
}

/* 10 MB as fast as it is taken: true until the high mark, then silence until drained. */
static void case_pressure(void)
{
    static char text[65537];
    struct session s;
    size_t given = 0;

    memset(text, 'p', sizeof(text) - 1);
    begin(&s, false);
    while (given < 10u << 20) {
        int before = s.drained;

        given += sizeof(text) - 1;
        if (put(&s, 0, 1, text))
            continue;
        CHECK(given - s.written > 1 << 20);
        CHECK(given - s.written < (1 << 20) + 200000);
        while (s.drained == before)
            uv_run(&s.loop, UV_RUN_ONCE);
        CHECK(given - s.written <= 256 << 10);
    }
    CHECK(s.drained > 5);
    while (s.written < given)
        uv_run(&s.loop, UV_RUN_ONCE);
    end(&s, 5000);
}

/* Nobody reads: the loop stays alive, and the end comes when it must. */
static void case_stuck(void)
{
    static char text[65537];
    struct session s;
    uint64_t began;

    memset(text, 's', sizeof(text) - 1);
    begin(&s, false);
    while (put(&s, 0, 1, text))
        uv_run(&s.loop, UV_RUN_NOWAIT);
    for (int i = 0; i < 10; i++)
        uv_run(&s.loop, UV_RUN_NOWAIT);
    began = uv_hrtime();
    end(&s, 200);
    CHECK(uv_hrtime() - began > 150 * 1000000ull);
    CHECK(uv_hrtime() - began < 5000 * 1000000ull);
}

/* What cannot be written is dropped, acknowledged, and lets the producer go on. */
static void case_broken(void)
{
    static char text[65537];
    struct session s;
    size_t given = 0;

    memset(text, 'b', sizeof(text) - 1);
    begin(&s, false);
    for (int i = 0; i < 100; i++) {
        int before = s.drained;

        given += sizeof(text) - 1;
        if (!put(&s, 0, 1, text))
            while (s.drained == before)
                uv_run(&s.loop, UV_RUN_ONCE);
    }
    while (s.written < given)
        uv_run(&s.loop, UV_RUN_ONCE);
    end(&s, 5000);
}

static void case_closed(void)
{
    struct session s = {0};

    CHECK(uv_loop_init(&s.loop) == 0);
    CHECK(close(1) == 0 && close(2) == 0);
    s.output = output_create(&s.loop, false, on_drained, &s);
    put(&s, 0, 1, "lost");
    put(&s, 0, 2, "lost");
    while (s.written < 8)
        uv_run(&s.loop, UV_RUN_ONCE);
    end(&s, 5000);
}

static void case_nothing(void)
{
    struct session s;

    begin(&s, true);
    end(&s, 5000);
}

/* O_NONBLOCK must not come to those who share the descriptor with us. */
static void case_flags(void)
{
    struct session s;

    begin(&s, false);
    put(&s, 0, 1, "x");
    CHECK((fcntl(1, F_GETFL) & O_NONBLOCK) == 0);
    CHECK((fcntl(2, F_GETFL) & O_NONBLOCK) == 0);
    end(&s, 5000);
    CHECK(fcntl(1, F_GETFD) >= 0); /* and it is still open */
}

/* ---- around it ------------------------------------------------------------------------------- */

/* Run a case with these as stdout and stderr; returns its pid. */
static pid_t start_case(void (*body)(void), int out, int err)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    signal(SIGPIPE, SIG_IGN);
    alarm(LIMIT_SECONDS);
    if (dup2(out, 1) != 1 || dup2(err, 2) != 2)
        _exit(251);
    for (int fd = 3; fd < 256; fd++) /* among them the readers' ends */
        close(fd);
    body();
    _exit(0);
}

static void finish_case(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (status != 0)
        fail_msg("the case ended with status %d, signal %d", WEXITSTATUS(status), WTERMSIG(status));
}

/* Everything until end of file. */
static char *read_all(int fd, size_t *total)
{
    char *text = malloc(32u << 20);
    ssize_t got;

    assert_non_null(text);
    *total = 0;
    while ((got = read(fd, text + *total, (32u << 20) - 1 - *total)) > 0)
        *total += (size_t)got;
    text[*total] = '\0';
    close(fd);
    return text;
}

static void run_with_pipes(void (*body)(void), const char *expected_out, const char *expected_err)
{
    int out[2], err[2];
    size_t len;
    char *text;
    pid_t pid;

    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(pipe2(err, O_CLOEXEC), 0);
    pid = start_case(body, out[1], err[1]);
    close(out[1]);
    close(err[1]);
    text = read_all(out[0], &len);
    assert_string_equal(text, expected_out);
    free(text);
    text = read_all(err[0], &len);
    assert_string_equal(text, expected_err);
    free(text);
    finish_case(pid);
}

static void test_plain(void **state)
{
    (void)state;
    run_with_pipes(case_plain, "one\ntwothree\n", "err");
}

static void test_begun_lines(void **state)
{
    (void)state;
    run_with_pipes(case_begun_lines, "a\nx\ny\nbc\n\rd\n10 %", "");
}

static void test_lines_stay_whole(void **state)
{
    int out[2], lines = 0;
    size_t len;
    char *text;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    pid = start_case(case_two_writers, out[1], 2);
    close(out[1]);
    text = read_all(out[0], &len);
    for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1, lines++) {
        assert_int_equal(end - line, 299);
        assert_int_equal(strspn(line, (char[]){*line, '\0'}), 299);
    }
    assert_int_equal(lines, 8000);
    free(text);
    finish_case(pid);
}

static void test_names(void **state)
{
    (void)state;
    run_with_pipes(case_names,
                   "collector-3: a\n7: y\ncollector-3: b\n2048: z\nlearner-0: at the end\n",
                   "learner-0: x\n");
    run_with_pipes(case_names_without_labels, "a\n", "");
}

static void test_label(void **state)
{
    (void)state;
    run_with_pipes(case_label, "0: a\n12: x\n12: \n12: y\n0: bc\n1: partial\n2: at the end\n",
                   "0: err\n");
}

static void test_long_line(void **state)
{
    char *expected = malloc(200000);
    size_t len = 0;

    (void)state;
    len += (size_t)sprintf(expected, "3: ");
    memset(expected + len, 'z', 65536);
    len += 65536;
    len += (size_t)sprintf(expected + len, "\n3: ");
    memset(expected + len, 'z', 65536);
    len += 65536;
    len += (size_t)sprintf(expected + len, "\n3: ");
    memset(expected + len, 'z', 150000 - 2 * 65536);
    len += 150000 - 2 * 65536;
    sprintf(expected + len, "\n");
    run_with_pipes(case_long_line, expected, "");
    free(expected);
}

static void test_nothing(void **state)
{
    (void)state;
    run_with_pipes(case_nothing, "", "");
}

static void test_flags_of_pipes(void **state)
{
    (void)state;
    run_with_pipes(case_flags, "x", "");
}

static void test_pressure(void **state)
{
    int out[2];
    size_t len;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    pid = start_case(case_pressure, out[1], out[1]);
    close(out[1]);
    free(read_all(out[0], &len));
    assert_int_equal(len, 10u << 20);
    finish_case(pid);
}

static void test_stuck_pipe(void **state)
{
    int out[2];

    (void)state;
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    finish_case(start_case(case_stuck, out[1], out[1]));
    close(out[0]);
    close(out[1]);
}

static void test_reader_gone(void **state)
{
    int out[2];

    (void)state;
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    close(out[0]);
    finish_case(start_case(case_broken, out[1], out[1]));
    close(out[1]);
}

static void test_reader_leaves(void **state)
{
    int out[2];
    char some[100];
    pid_t pid;

    (void)state;
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    pid = start_case(case_broken, out[1], out[1]);
    close(out[1]);
    assert_true(read(out[0], some, sizeof(some)) > 0);
    close(out[0]);
    finish_case(pid);
}

static void test_closed(void **state)
{
    (void)state;
    finish_case(start_case(case_closed, 1, 2));
}

static void test_full_disk(void **state)
{
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);

    (void)state;
    assert_true(full >= 0);
    finish_case(start_case(case_broken, full, full));
    close(full);
}

static void test_file(void **state)
{
    static const int flags[] = {0, O_APPEND};

    (void)state;
    for (size_t i = 0; i < COUNT(flags); i++) {
        char path[] = "/tmp/elastic-test-XXXXXX", *text;
        int fd = mkstemp(path), again;
        size_t len;

        assert_int_equal(write(fd, "before\n", 7), 7);
        again = open(path, O_WRONLY | O_CLOEXEC | flags[i]);
        assert_int_equal(lseek(again, 0, SEEK_END), 7);
        finish_case(start_case(case_label, again, again));
        close(again);
        close(fd);
        text = read_all(open(path, O_RDONLY | O_CLOEXEC), &len);
        assert_int_equal(strncmp(text, "before\n0: a\n", 12), 0);
        assert_non_null(strstr(text, "\n0: bc\n"));
        assert_non_null(strstr(text, "\n0: err\n"));
        assert_non_null(strstr(text, "\n2: at the end\n"));
        free(text);
        unlink(path);
    }
}

static void test_large_file(void **state)
{
    char path[] = "/tmp/elastic-test-XXXXXX";
    int fd = mkstemp(path);
    struct stat st;

    (void)state;
    finish_case(start_case(case_pressure, fd, fd));
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_size, 10 << 20);
    close(fd);
    unlink(path);
}

static void test_socket(void **state)
{
    int ends[2];
    size_t len;
    char *text;
    pid_t pid;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    pid = start_case(case_label, ends[1], ends[1]);
    close(ends[1]);
    text = read_all(ends[0], &len);
    assert_non_null(strstr(text, "12: y\n"));
    free(text);
    finish_case(pid);
}

static void test_terminal(void **state)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave;
    size_t len;
    char *text;
    pid_t pid;

    (void)state;
    assert_true(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(slave >= 0);
    pid = start_case(case_label, slave, slave);
    close(slave);
    text = read_all(master, &len); /* EIO once the child has gone */
    assert_non_null(strstr(text, "0: bc\r\n"));
    assert_non_null(strstr(text, "12: y\r\n"));
    free(text);
    finish_case(pid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),       cmocka_unit_test(test_label),
        cmocka_unit_test(test_names),       cmocka_unit_test(test_long_line),
        cmocka_unit_test(test_nothing),     cmocka_unit_test(test_flags_of_pipes),
        cmocka_unit_test(test_pressure),    cmocka_unit_test(test_stuck_pipe),
        cmocka_unit_test(test_reader_gone), cmocka_unit_test(test_reader_leaves),
        cmocka_unit_test(test_closed),      cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_file),        cmocka_unit_test(test_large_file),
        cmocka_unit_test(test_socket),      cmocka_unit_test(test_terminal),
        cmocka_unit_test(test_begun_lines), cmocka_unit_test(test_lines_stay_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
