/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Jobs that ask nodes something (node_steps.h). */
#include "cmd/node_steps.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <uv.h>

#include "cmd/terminal_text.h"
#include "common/slurm_client.h"
#include "lib/text.h"

#define LINE_BYTES 1100 /* the longest line that has a meaning, and some room */
#define KILL_MS    5000 /* for srun to end its job after a request to end */
#define REST_MS    1000 /* for the end of srun's output after srun has ended */
#define ARGS_MAX   32

/* One of srun's output streams, with the part of its present line that has come. */
struct stream {
    struct run *run;
    uv_pipe_t pipe;
    bool errors;
    char line[LINE_BYTES];
    size_t used;
    char chunk[4096];
};

struct run {
    struct asking *asking;
    const struct node_step *step;
    uv_process_t process;
    struct stream out, err;
    char said[LINE_BYTES]; /* the last line on stderr */
    bool running;
};

struct asking {
    uv_loop_t loop;
    const struct node_question *question;
    struct node_answers *answers;
    struct run *runs;
    int count, running;
    uv_timer_t deadline;
    uv_signal_t signals[3];
    bool late, killed;
};

/* ---- output ---------------------------------------------------------------------------------- */

/* "srun: error: n4: task 1: Exited with exit code 1" is about one node; other complaints may be
 * about all. */
static void take_complaint(struct run *run, const char *line)
{
    static const char prefix[] = "srun: error: ";
    const char *about = strncmp(line, prefix, strlen(prefix)) == 0 ? line + strlen(prefix) : "";
    char *node = text_need(strndup(about, strcspn(about, ":")));
    struct node_answer *answer = node_answers_find(run->asking->answers, node);
    if (answer == NULL)
        snprintf(run->said, sizeof(run->said), "%s", line);
    else if (!run->asking->late)
        node_answer_fail(answer, about + strlen(node) + strspn(about + strlen(node), ": "));
    free(node);
}

static void take_line(struct stream *stream)
{
    stream->line[stream->used] = '\0';
    if (!stream->errors)
        node_answers_take(stream->run->asking->answers, stream->line);
    else if (stream->used > 0)
        take_complaint(stream->run, stream->line);
    stream->used = 0;
}

static void allocate(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
    struct stream *stream = handle->data;
    (void)size;
    *buf = uv_buf_init(stream->chunk, sizeof(stream->chunk));
}

static void close_stream(struct stream *stream)
{
    if (stream->run != NULL && !uv_is_closing((uv_handle_t *)&stream->pipe))
        uv_close((uv_handle_t *)&stream->pipe, NULL);
}

static void on_read(uv_stream_t *handle, ssize_t count, const uv_buf_t *buf)
{
    struct stream *stream = handle->data;
    if (count < 0) {
        take_line(stream);
        close_stream(stream);
        return;
    }
    for (ssize_t i = 0; i < count; i++) {
        if (buf->base[i] == '\n')
            take_line(stream);
        else if (stream->used < LINE_BYTES - 1)
            stream->line[stream->used++] = buf->base[i];
    }
}

static void open_stream(struct run *run, struct stream *stream, bool errors)
{
    stream->run = run;
    stream->errors = errors;
    uv_pipe_init(&run->asking->loop, &stream->pipe, 0);
    stream->pipe.data = stream;
}

/* ---- processes ------------------------------------------------------------------------------- */

/* Another process holds the pipes of an srun that has ended. */
static void give_up_output(uv_timer_t *timer)
{
    struct asking *asking = timer->data;
    for (int i = 0; i < asking->count; i++) {
        close_stream(&asking->runs[i].out);
        close_stream(&asking->runs[i].err);
    }
}

/* All sruns have ended: the loop ends as soon as it has read their output. */
static void stop_waiting(struct asking *asking)
{
    uv_timer_start(&asking->deadline, give_up_output, REST_MS, 0);
    uv_unref((uv_handle_t *)&asking->deadline);
    for (size_t i = 0; i < sizeof(asking->signals) / sizeof(*asking->signals); i++)
        uv_close((uv_handle_t *)&asking->signals[i], NULL);
}

static void on_exit_of_run(uv_process_t *process, int64_t status, int signal_number)
{
    struct run *run = process->data;
    struct asking *asking = run->asking;
    (void)status;
    (void)signal_number;
    run->running = false;
    uv_close((uv_handle_t *)process, NULL);
    if (--asking->running == 0)
        stop_waiting(asking);
}

static void signal_all(struct asking *asking, int number)
{
    for (int i = 0; i < asking->count; i++)
        if (asking->runs[i].running)
            uv_process_kill(&asking->runs[i].process, number);
}

/* An srun that is told to end takes its job with it. If srun is killed, the job's time limit
 * remains. */
static void on_deadline(uv_timer_t *timer)
{
    struct asking *asking = timer->data;
    signal_all(asking, asking->late ? SIGKILL : SIGTERM);
    asking->killed = asking->late;
    asking->late = true;
    if (!asking->killed)
        uv_timer_start(timer, on_deadline, KILL_MS, 0);
}

static void on_signal(uv_signal_t *handle, int number)
{
    (void)number;
    on_deadline(&((struct asking *)handle->data)->deadline);
}

/* The environment that srun may see: nothing of a job that selastic is run in, except the account
 * that pays for the job. */
static char **make_environment(void)
{
    static const char *const passed[] = {"PATH",
                                         "HOME",
                                         "USER",
                                         "LOGNAME",
                                         "LANG",
                                         "LD_LIBRARY_PATH",
                                         "SLURM_CONF",
                                         "SLURM_QOS",
                                         "ELASTIC_CONF",
                                         "SLURM_ACCOUNT",
                                         "SLURM_RESERVATION"};
    size_t count = sizeof(passed) / sizeof(*passed), used = 0;
    char **environment = text_need(calloc(count + 1, sizeof(*environment)));
    for (size_t i = 0; i < count; i++) {
        const char *value = getenv(passed[i]);
        if (value != NULL && asprintf(&environment[used++], "%s=%s", passed[i], value) < 0)
            text_need(NULL);
    }
    return environment;
}

/* The command line; strings are new. It asks for as little of a node as possible, and for nothing
 * that would hide a part of it. */
static char **make_command(const struct node_question *question, const struct node_step *step,
                           int timeout, const char *program)
{
    static const char *const fixed[] = {
        "srun",        "--ntasks-per-node=1", "--cpus-per-task=1",    "--mem=1",
        "--gres=none", "--mpi=none",          "--cpu-bind=none",      "--input=none",
        "--chdir=/",   "--no-kill",           "--kill-on-bad-exit=0", "--wait=0"};
    char **argv = text_need(calloc(ARGS_MAX, sizeof(*argv)));
    size_t used = 0, count = sizeof(fixed) / sizeof(*fixed);
    char *nodes = text_need(slurm_client_compress(step->nodes, step->count));
    bool good = true;
    for (size_t i = 0; i < count; i++)
        argv[used++] = text_need(strdup(fixed[i]));
    good = asprintf(&argv[used++], "--job-name=%s", question->job_name) > 0 && good;
    good = asprintf(&argv[used++], "--nodelist=%s", nodes) > 0 && good;
    good = asprintf(&argv[used++], "--nodes=%d", step->count) > 0 && good;
    good = asprintf(&argv[used++], "--ntasks=%d", step->count) > 0 && good;
    good = asprintf(&argv[used++], "--immediate=%d", timeout) > 0 && good;
    good = asprintf(&argv[used++], "--time=%d", timeout / 60 + 1) > 0 && good;
    if (step->partition != NULL)
        good = asprintf(&argv[used++], "--partition=%s", step->partition) > 0 && good;
    argv[used++] = text_need(strdup("--"));
    argv[used++] = text_need(strdup(program));
    for (size_t i = 0; question->words[i] != NULL; i++)
        argv[used++] = text_need(strdup(question->words[i]));
    free(nodes);
    text_need(good ? argv : NULL);
    return argv;
}

static int start(struct run *run, int timeout, const char *program, char **environment)
{
    char **argv = make_command(run->asking->question, run->step, timeout, program);
    open_stream(run, &run->out, false);
    open_stream(run, &run->err, true);
    uv_stdio_container_t stdio[3] = {
        {.flags = UV_IGNORE},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&run->out.pipe},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&run->err.pipe},
    };
    uv_process_options_t options = {
        .exit_cb = on_exit_of_run,
        .file = argv[0],
        .args = argv,
        .env = environment,
        .stdio_count = 3,
        .stdio = stdio,
    };
    run->process.data = run;
    int rc = uv_spawn(&run->asking->loop, &run->process, &options);
    strings_free(argv);
    if (rc == 0) {
        run->running = true;
        uv_read_start((uv_stream_t *)&run->out.pipe, allocate, on_read);
        uv_read_start((uv_stream_t *)&run->err.pipe, allocate, on_read);
        return 0;
    }
    snprintf(run->said, sizeof(run->said), "srun cannot be started: %s", uv_strerror(rc));
    uv_close((uv_handle_t *)&run->out.pipe, NULL);
    uv_close((uv_handle_t *)&run->err.pipe, NULL);
    uv_close((uv_handle_t *)&run->process, NULL);
    return -1;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* The path of this program, which is the same on the nodes. */
static int own_program(char *path, size_t size, struct error *err)
{
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    if (length <= 0)
        return error_set(err, "the path of this program is not known");
    path[length] = '\0';
    return 0;
}

static void watch(struct asking *asking, int timeout)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    uv_timer_init(&asking->loop, &asking->deadline);
    asking->deadline.data = asking;
    uv_timer_start(&asking->deadline, on_deadline, (uint64_t)timeout * 1000, 0);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        uv_signal_init(&asking->loop, &asking->signals[i]);
        asking->signals[i].data = asking;
        uv_signal_start(&asking->signals[i], on_signal, numbers[i]);
    }
}

/* Why nodes have not answered, as far as srun knows. */
static void give_reasons(const struct asking *asking)
{
    for (int i = 0; i < asking->count; i++) {
        const struct run *run = &asking->runs[i];
        for (int k = 0; k < run->step->count; k++) {
            struct node_answer *answer = node_answers_find(asking->answers, run->step->nodes[k]);
            const char *reason = run->said[0] != '\0' ? run->said : "no answer";
            if (answer != NULL)
                node_answer_fail(answer, asking->late ? "no answer in time" : reason);
        }
    }
}

int node_steps_run(const struct node_question *question, const struct node_step *steps, int count,
                   int timeout, struct node_answers *answers, struct error *err)
{
    struct asking asking = {.question = question, .answers = answers, .count = count};
    char program[4096];
    if (own_program(program, sizeof(program), err) < 0)
        return -1;
    if (uv_loop_init(&asking.loop) != 0)
        return error_set(err, "cannot create an event loop");
    asking.runs = text_need(calloc((size_t)count + 1, sizeof(*asking.runs)));
    char **environment = make_environment();
    watch(&asking, timeout);
    for (int i = 0; i < count; i++) {
        asking.runs[i].asking = &asking;
        asking.runs[i].step = &steps[i];
        asking.running += start(&asking.runs[i], timeout, program, environment) == 0;
    }
    if (asking.running == 0)
        stop_waiting(&asking);
    uv_run(&asking.loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&asking.deadline, NULL);
    uv_run(&asking.loop, UV_RUN_DEFAULT);
    uv_loop_close(&asking.loop);
    strings_free(environment);
    give_reasons(&asking);
    free(asking.runs);
    return 0;
}
