/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic top`: the elastic jobs in the terminal, or as a stream of JSON.
 *
 * Slurm and leaders may take seconds to answer. So a thread asks them, by other commands of
 * selastic, which have their time limits. Keys are answered meanwhile. What is shown is decided in
 * top_screen.c. */
#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/terminal_text.h"
#include "cmd/top_screen.h"
#include "common/program.h"
#include "lib/json_text.h"

#define INTERVAL_DEFAULT 5
#define ANSWER_MAX       ((size_t)64 << 20)
#define ANSWER_MS        30000

static json_object *ask(const char *self, enum top_view view, uint32_t job, bool all,
                        struct error *err)
{
    static const char *const names[] = {"list", "show", "replicas", "history"};
    char number[16], *text = NULL;
    char *argv[6] = {(char *)self, (char *)names[view], "--json"};
    json_object *answer = NULL;

    snprintf(number, sizeof(number), "%u", job);
    if (view != TOP_LIST)
        argv[3] = number;
    else if (all)
        argv[3] = "--all";
    if (program_output(argv, ANSWER_MS, ANSWER_MAX, &text, err) == 0)
        answer = json_text_parse(text, strlen(text), err);
    free(text);
    return answer;
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int interval_of(const struct arguments *arguments)
{
    return arguments->interval > 0 ? arguments->interval : INTERVAL_DEFAULT;
}

/* The program itself, for its other commands. */
static const char *find_self(void)
{
    static char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

    self[length > 0 ? length : 0] = '\0';
    return self;
}

/* A line for each look, until nobody reads them. */
static enum exit_status stream(const struct arguments *arguments)
{
    const struct timespec pause = {.tv_sec = interval_of(arguments)};
    struct top top = {.view = TOP_LIST};

    for (;;) {
        struct error err = {""};
        json_object *answer = ask(find_self(), TOP_LIST, 0, arguments->all, &err);

        top_take(&top, TOP_LIST, 0, answer, answer == NULL ? err.text : NULL, now_s());
        print_json(top_json(&top, now_s()), true);
        if (fflush(stdout) != 0)
            break;
        nanosleep(&pause, NULL);
    }
    top_clear(&top);
    return STATUS_FAILED;
}

#ifdef HAVE_NCURSES

#include <pthread.h>

/* ncurses has the wide functions only where this is set. */
#define NCURSES_WIDECHAR 1
#include <curses.h>
#undef timeout

#define KEY_MS    100 /* between two looks at what the thread has brought */
#define LINES_MAX 1000
#define ESCAPE    27
#define ESCAPE_MS 50 /* within which the rest of a key's sequence comes */

/* What the thread shall ask, and what it has got. */
struct look {
    pthread_mutex_t lock;
    pthread_cond_t wish;
    const char *self;
    enum top_view view;
    uint32_t job;
    bool all, wanted;
    bool answered; /* of answered_view and answered_job: */
    enum top_view answered_view;
    uint32_t answered_job;
    json_object *answer;
    char *trouble;
};

/* ---- the thread ------------------------------------------------------------------------------ */

static void *run_thread(void *arg)
{
    struct look *look = arg;

    pthread_mutex_lock(&look->lock);
    for (;;) {
        while (!look->wanted)
            pthread_cond_wait(&look->wish, &look->lock);
        enum top_view view = look->view;
        uint32_t job = look->job;
        bool all = look->all;
        struct error err = {""};
        look->wanted = false;
        pthread_mutex_unlock(&look->lock);
        json_object *answer = ask(look->self, view, job, all, &err);
        pthread_mutex_lock(&look->lock);
        json_object_put(look->answer);
        free(look->trouble);
        look->answer = answer;
        look->trouble = answer == NULL ? text_need(strdup(err.text)) : NULL;
        look->answered = true;
        look->answered_view = view;
        look->answered_job = job;
    }
    return NULL;
}

static void want(struct look *look, const struct top *top)
{
    pthread_mutex_lock(&look->lock);
    look->view = top->view;
    look->job = top->chosen;
    look->all = top->all;
    look->wanted = true;
    pthread_cond_signal(&look->wish);
    pthread_mutex_unlock(&look->lock);
}

/* True: something has come. */
static bool take(struct look *look, struct top *top)
{
    bool answered;

    pthread_mutex_lock(&look->lock);
    answered = look->answered;
    look->answered = false;
    if (answered) {
        top_take(top, look->answered_view, look->answered_job, look->answer, look->trouble,
                 now_s());
        look->answer = NULL;
    }
    pthread_mutex_unlock(&look->lock);
    return answered;
}

/* ---- the terminal ---------------------------------------------------------------------------- */

static int attributes_of(const struct top_line *line)
{
    return line->look == TOP_CHOSEN  ? (int)A_REVERSE
           : line->look == TOP_TITLE ? (int)A_BOLD
           : line->look == TOP_BAR   ? (int)A_BOLD
                                     : (int)A_NORMAL;
}

static void draw_line(int y, int width, const struct top_line *line)
{
    wchar_t wide[TOP_LINE_MAX];
    size_t length = mbstowcs(wide, line->text, TOP_LINE_MAX - 1);

    move(y, 0);
    attrset((attr_t)attributes_of(line));
    clrtoeol();
    if (length != (size_t)-1)
        addnwstr(wide, (int)length < width ? (int)length : width);
    attrset(A_NORMAL);
}

static void draw(struct top *top, double every)
{
    int width = COLS, height = LINES < LINES_MAX ? LINES : LINES_MAX;
    struct top_line *lines = text_need(calloc((size_t)height + 1, sizeof(*lines)));

    top_draw(top, now_s(), every, width, height, lines);
    for (int y = 0; y < height; y++)
        draw_line(y, width, &lines[y]);
    free(lines);
    refresh();
}

static bool read_key(int code, enum top_key *key)
{
    static const struct {
        int code;
        enum top_key key;
    } keys[] = {
        {KEY_UP, TOP_UP},         {'k', TOP_UP},
        {KEY_DOWN, TOP_DOWN},     {'j', TOP_DOWN},
        {KEY_PPAGE, TOP_PAGE_UP}, {KEY_NPAGE, TOP_PAGE_DOWN},
        {' ', TOP_PAGE_DOWN},     {KEY_HOME, TOP_FIRST},
        {KEY_END, TOP_LAST},      {'\n', TOP_OPEN},
        {'\r', TOP_OPEN},         {KEY_ENTER, TOP_OPEN},
        {KEY_RIGHT, TOP_OPEN},    {ESCAPE, TOP_BACK},
        {KEY_LEFT, TOP_BACK},     {KEY_BACKSPACE, TOP_BACK},
        {'h', TOP_KEY_HISTORY},   {'r', TOP_KEY_REPLICAS},
        {'a', TOP_KEY_ALL},       {'q', TOP_KEY_QUIT},
    };

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (keys[i].code == code) {
            *key = keys[i].key;
            return true;
        }
    return false;
}

/* Until a key ends it. */
static void follow(struct look *look, struct top *top, int every)
{
    double next = 0;

    for (;;) {
        enum top_view view = top->view;
        bool all = top->all, changed = false;
        enum top_key key;
        int code = getch();

        if (read_key(code, &key)) {
            if (!top_press(top, key, LINES))
                return;
            changed = true;
            if (view != top->view || all != top->all)
                next = 0;
        }
        if (now_s() >= next || next > now_s() + every) {
            want(look, top);
            next = now_s() + every;
        }
        if (take(look, top) || changed || code == KEY_RESIZE)
            draw(top, every);
    }
}

static void begin_screen(void)
{
    initscr();
    set_escdelay(ESCAPE_MS);
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    curs_set(0);
    wtimeout(stdscr, KEY_MS);
}

static enum exit_status show(const struct arguments *arguments)
{
    static struct look look = {.lock = PTHREAD_MUTEX_INITIALIZER, .wish = PTHREAD_COND_INITIALIZER};
    struct top top = {.all = arguments->all};
    int every = interval_of(arguments);
    pthread_t thread;
    struct error err;
    const char *term = getenv("TERM");

    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || term == NULL || *term == '\0') {
        error_set(&err, "top needs a terminal; for programs there is 'selastic top --json'");
        return failed(&err);
    }
    look.self = find_self();
    if (pthread_create(&thread, NULL, run_thread, &look) != 0) {
        error_set(&err, "cannot start a thread");
        return failed(&err);
    }
    begin_screen();
    draw(&top, every);
    follow(&look, &top, every);
    endwin();
    top_clear(&top);
    /* The thread may be waiting for an answer. What it has started ends within its time limit. */
    return STATUS_OK;
}

#else

static enum exit_status show(const struct arguments *arguments)
{
    struct error err;

    (void)arguments;
    error_set(&err, "this selastic was built without ncurses, which top needs; 'selastic list' and "
                    "'watch' do much the same");
    return failed(&err);
}

#endif

static enum exit_status run(const struct arguments *arguments)
{
    return arguments->json ? stream(arguments) : show(arguments);
}

const struct command top_command = {
    .name = "top",
    .summary = "watch the elastic jobs in the terminal",
    .help = "Usage: selastic top [--all] [--interval S] [--json]\n"
            "\n"
            "Show your elastic jobs: size, allowed sizes, steps per second, costs, and what each\n"
            "waits for. Keys: arrows choose a job, Enter shows it, r its replicas, h its history,\n"
            "Esc goes back, a shows the jobs of all users, q ends.\n"
            "\n"
            "      --all         begin with the jobs of all users\n"
            "      --interval S  look every S seconds, from 2 to 3600 (default 5)\n"
            "      --json        print a line of JSON at each look, until interrupted\n"
            "  -h, --help        print this text\n",
    .run = run,
};
