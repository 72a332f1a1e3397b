/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which models a server is asked to load, by tables: what it is asked, and what it answers. */
#include "lib/model_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/support.h"

#define PATIENCE 60.0

/* One line of a table: what happens at that time, and what follows. */
struct row {
    double now;
    const char *list;    /* there is this list; NULL: as before */
    const char *request; /* what is asked; NULL: nothing is */
    int status;          /* … and answered; 0: no answer */
    const char *answer;
    const char *state; /* "VERSION/WANTED FAILURES all|some"; NULL: whatever */
    const char *why;   /* a part of it; NULL: whatever */
};

#define OIP_INDEX  "POST /v2/repository/index {}"
#define LORA_INDEX "GET /v1/models"
#define LIST(update, models)                                                                       \
    "{\"shard\": \"shard_1\", \"epoch\": 1, \"update\": " update ", \"models\": [" models "]}"
#define A1          "{\"name\": \"A\", \"version\": \"1\", \"path\": \"/r/A/1\"}"
#define A2          "{\"name\": \"A\", \"version\": \"2\", \"path\": \"/r/A/2\"}"
#define B1          "{\"name\": \"B\", \"version\": \"1\", \"path\": \"/r/B/1\"}"
#define READY(name) "{\"name\": \"" name "\", \"version\": \"1\", \"state\": \"READY\"}"

static const char *text_of(const struct model_load_request *request)
{
    static char text[512];

    snprintf(text, sizeof(text), "%s %s%s%s%s%s%s%s%s%s", request->body != NULL ? "POST" : "GET",
             request->path, request->body != NULL ? " " : "",
             request->body != NULL ? request->body : "", request->link != NULL ? " " : "",
             request->link != NULL ? request->link : "", request->link != NULL ? "->" : "",
             request->link != NULL ? request->target : "", request->unlink != NULL ? " -" : "",
             request->unlink != NULL ? request->unlink : "");
    return text;
}

static void play(enum model_load_api api, const struct row *rows)
{
    struct model_load *m = model_load_create(api, PATIENCE);

    assert_non_null(m);
    for (const struct row *row = rows; row->now > 0; row++) {
        struct model_load_request request;
        struct model_load_state state;
        struct error err;
        char said[80];
        bool asked;

        if (row->list != NULL && model_load_want(m, row->list, strlen(row->list), &err) != 0)
            fail_msg("row %td: %s", row - rows, err.text);
        asked = model_load_next(m, row->now, &request);
        if (row->request == NULL && asked)
            fail_msg("row %td: asks %s", row - rows, text_of(&request));
        if (row->request != NULL && !asked)
            fail_msg("row %td: asks nothing before %g", row - rows, model_load_due(m));
        if (asked) {
            assert_string_equal(text_of(&request), row->request);
            model_load_answered(m, row->now, row->status, row->answer,
                                row->answer != NULL ? strlen(row->answer) : 0);
        }
        state = model_load_state(m);
        snprintf(said, sizeof(said), "%d/%d %d %s", (int)state.version, (int)state.wanted,
                 state.failures, state.has_all ? "all" : "some");
        if (row->state != NULL && strcmp(said, row->state) != 0)
            fail_msg("row %td: %s, not %s", row - rows, said, row->state);
        if (row->why != NULL && strstr(state.why, row->why) == NULL)
            fail_msg("row %td: '%s' does not have '%s'", row - rows, state.why, row->why);
    }
    model_load_destroy(m);
}

/* ---- the protocols --------------------------------------------------------------------------- */

static void test_oip(void **state)
{
    static const struct row rows[] = {
        {1, NULL, NULL, 0, NULL, "0/0 0 some", NULL},
        {1, LIST("7", A1 "," B1), OIP_INDEX, 200, "[" READY("own") "]", "0/7 0 some", NULL},
        {1, NULL, "POST /v2/repository/models/A/load {} A->/r/A/1", 200, "{}", NULL, NULL},
        {1, NULL, "POST /v2/repository/models/B/load {} B->/r/B/1", 200, "", NULL, NULL},
        {1, NULL, OIP_INDEX, 200, "[" READY("own") "," READY("A") "," READY("B") "]", NULL, NULL},
        {1, NULL, NULL, 0, NULL, "7/7 0 all", NULL},
        /* It is looked at again: nothing is to be done. */
        {5, NULL, NULL, 0, NULL, "7/7 0 all", NULL},
        {7, NULL, OIP_INDEX, 200, "[" READY("A") "," READY("B") "]", NULL, NULL},
        {7, NULL, NULL, 0, NULL, "7/7 0 all", NULL},
        /* One model has gone by itself. */
        {20, NULL, OIP_INDEX, 200, "[" READY("A") "]", NULL, NULL},
        {20, NULL, "POST /v2/repository/models/B/load {} B->/r/B/1", 200, "", NULL, NULL},
        {20, NULL, OIP_INDEX, 200, "[" READY("A") "," READY("B") "]", NULL, NULL},
        {20, NULL, NULL, 0, NULL, "7/7 0 all", NULL},
        /* Another version of A, and no B: what goes makes room first. The server's own stays. */
        {21, LIST("9", A2), OIP_INDEX, 200, "[" READY("own") "," READY("A") "," READY("B") "]",
         "7/9 0 some", NULL},
        {21, NULL, "POST /v2/repository/models/B/unload {} -B", 200, "{}", NULL, NULL},
        {21, NULL, "POST /v2/repository/models/A/load {} A->/r/A/2", 200, "{}", NULL, NULL},
        {21, NULL, OIP_INDEX, 200, "[" READY("own") "," READY("A") "]", NULL, NULL},
        {21, NULL, NULL, 0, NULL, "9/9 0 all", NULL},
        {.now = 0},
    };

    (void)state;
    play(MODEL_LOAD_OIP, rows);
}

#define LORA(names)                                                                                \
    "{\"object\": \"list\", \"data\": [{\"id\": \"base\", \"parent\": null}" names "]}"

static void test_lora(void **state)
{
    static const struct row rows[] = {
        {1, LIST("7", A1 "," B1), LORA_INDEX, 200, LORA(""), NULL, NULL},
        {1, NULL, "POST /v1/load_lora_adapter {\"lora_name\":\"A\",\"lora_path\":\"/r/A/1\"}", 200,
         "Success: LoRA adapter 'A' added successfully.", NULL, NULL},
        {1, NULL, "POST /v1/load_lora_adapter {\"lora_name\":\"B\",\"lora_path\":\"/r/B/1\"}", 200,
         "", NULL, NULL},
        {1, NULL, LORA_INDEX, 200, LORA(",{\"id\":\"A\"},{\"id\":\"B\"}"), NULL, NULL},
        {1, NULL, NULL, 0, NULL, "7/7 0 all", NULL},
        /* A name that it has is replaced in place. */
        {2, LIST("7", A2), LORA_INDEX, 200, LORA(",{\"id\":\"A\"},{\"id\":\"B\"}"), NULL, NULL},
        {2, NULL, "POST /v1/unload_lora_adapter {\"lora_name\":\"B\"}", 200, "", NULL, NULL},
        {2, NULL,
         "POST /v1/load_lora_adapter {\"lora_name\":\"A\",\"lora_path\":\"/r/A/2\","
         "\"load_inplace\":true}",
         400,
         "{\"object\":\"error\",\"message\":\"The lora adapter 'A' has already been loaded.\"}",
         NULL, NULL},
        {2, NULL, LORA_INDEX, 200, LORA(",{\"id\":\"A\"}"), NULL, NULL},
        {2, NULL, NULL, 0, NULL, "7/7 1 some",
         "A 2: /v1/load_lora_adapter: HTTP status 400: The lora adapter 'A' has already"},
        {.now = 0},
    };

    (void)state;
    play(MODEL_LOAD_VLLM_LORA, rows);
}

/* ---- failures -------------------------------------------------------------------------------- */

static void test_others_go_on(void **state)
{
    static const struct row rows[] = {
        {1, LIST("7", A1 "," B1), OIP_INDEX, 200, "[]", NULL, NULL},
        {1, NULL, "POST /v2/repository/models/A/load {} A->/r/A/1", 400,
         "{\"error\":\"torn\\nfile\"}", NULL,
         "A 1: /v2/repository/models/A/load: HTTP status 400: torn?file"},
        {1, NULL, "POST /v2/repository/models/B/load {} B->/r/B/1", 200, "", NULL, NULL},
        {1, NULL, OIP_INDEX, 200, "[" READY("B") "]", NULL, NULL},
        {1, NULL, NULL, 0, NULL, "0/7 1 some", NULL},
        /* After a pause of 1 s, 2 s … only A is tried. */
        {1.9, NULL, NULL, 0, NULL, NULL, NULL},
        {2, NULL, OIP_INDEX, 200, "[" READY("B") "]", NULL, NULL},
        {2, NULL, "POST /v2/repository/models/A/load {} A->/r/A/1", 0, NULL, NULL,
         "/v2/repository/models/A/load: no answer"},
        {2, NULL, OIP_INDEX, 200, "[" READY("B") "]", NULL, NULL},
        {2, NULL, NULL, 0, NULL, "0/7 2 some", NULL},
        {3.9, NULL, NULL, 0, NULL, NULL, NULL},
        {4, NULL, OIP_INDEX, 200, "[" READY("B") "]", NULL, NULL},
        {4, NULL, "POST /v2/repository/models/A/load {} A->/r/A/1", 200, "", NULL, NULL},
        {4, NULL, OIP_INDEX, 200, "[" READY("A") "," READY("B") "]", NULL, NULL},
        {4, NULL, NULL, 0, NULL, "7/7 0 all", ""},
        {.now = 0},
    };

    (void)state;
    play(MODEL_LOAD_OIP, rows);
}

/* A server that says it has loaded a model, which it has not. */
static void test_lies(void **state)
{
    static const struct row rows[] = {
        {1, LIST("7", A1), OIP_INDEX, 200, "[]", NULL, NULL},
        {1, NULL, "POST /v2/repository/models/A/load {} A->/r/A/1", 200, "", NULL, NULL},
        {1, NULL, OIP_INDEX, 200,
         "[{\"name\":\"A\",\"state\":\"UNAVAILABLE\",\"reason\":\"no memory\"}]", NULL, NULL},
        {1, NULL, NULL, 0, NULL, "0/7 1 some",
         "A 1: the server does not have it, though it has loaded it: no memory"},
        {.now = 0},
    };

    (void)state;
    play(MODEL_LOAD_OIP, rows);
}

static void test_loads_by_itself(void **state)
{
    static const struct row rows[] = {
        {1, LIST("7", A1), OIP_INDEX, 200, "[]", NULL, NULL},
        {1, NULL, "POST /v2/repository/models/A/load {} A->/r/A/1", 202, "", NULL, NULL},
        {1, NULL, OIP_INDEX, 200, "[{\"name\":\"A\",\"state\":\"LOADING\"}]", NULL, NULL},
        {1, NULL, NULL, 0, NULL, "0/7 0 some", NULL},
        {2, NULL, OIP_INDEX, 200, "[{\"name\":\"A\",\"state\":\"LOADING\"}]", NULL, NULL},
        {2, NULL, NULL, 0, NULL, "0/7 0 some", NULL},
        {62, NULL, OIP_INDEX, 200, "[{\"name\":\"A\",\"state\":\"LOADING\"}]", NULL, NULL},
        {62, NULL, NULL, 0, NULL, "0/7 1 some", "A 1: the server has been loading it for too long"},
        {70, NULL, OIP_INDEX, 200, "[" READY("A") "]", NULL, NULL},
        {70, NULL, NULL, 0, NULL, "7/7 0 all", NULL},
        {.now = 0},
    };

    (void)state;
    play(MODEL_LOAD_OIP, rows);
}

/* ---- what is no answer, and no list ---------------------------------------------------------- */

static void test_garbage(void **state)
{
    static const struct {
        enum model_load_api api;
        int status;
        const char *answer, *why;
    } rows[] = {
        {MODEL_LOAD_OIP, 0, NULL, "/v2/repository/index: no answer"},
        {MODEL_LOAD_OIP, 503, "busy", "/v2/repository/index: HTTP status 503"},
        {MODEL_LOAD_OIP, 302, "", "HTTP status 302"},
        {MODEL_LOAD_OIP, 200, "", "not what the protocol says"},
        {MODEL_LOAD_OIP, 200, "{}", "not what the protocol says"},
        {MODEL_LOAD_OIP, 200, "[1]", "not what the protocol says"},
        {MODEL_LOAD_OIP, 200, "[{\"name\": 1}]", "not what the protocol says"},
        {MODEL_LOAD_OIP, 200, "[],\"more\":[]", "not what the protocol says"},
        {MODEL_LOAD_OIP, 200, "[", "not what the protocol says"},
        {MODEL_LOAD_VLLM_LORA, 200, "[]", "not what the protocol says"},
        {MODEL_LOAD_VLLM_LORA, 200, "{\"data\": {}}", "not what the protocol says"},
        {MODEL_LOAD_VLLM_LORA, 404, "{\"error\": {\"message\": \"no such page\"}}",
         "/v1/models: HTTP status 404: no such page"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row table[] = {
            {1, LIST("7", A1), rows[i].api == MODEL_LOAD_OIP ? OIP_INDEX : LORA_INDEX,
             rows[i].status, rows[i].answer, "0/7 1 some", rows[i].why},
            {1.5, NULL, NULL, 0, NULL, "0/7 1 some", rows[i].why},
            {.now = 0},
        };

        play(rows[i].api, table);
    }
}

static void test_no_list(void **state)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", ""},
        {"[]", ""},
        {"{}", "it needs models, a list, and update, a number"},
        {"{\"update\": -1, \"models\": []}", "it needs models"},
        {"{\"update\": 1, \"models\": {}}", "it needs models"},
        {LIST("1", "1"), "'(none)' (none) is no name and version of a model"},
        {LIST("1", "{\"name\": \"../x\", \"version\": \"1\", \"path\": \"/x\"}"),
         "'../x' 1 is no name"},
        {LIST("1", "{\"name\": \"x\", \"version\": \"1\", \"path\": \"x\"}"),
         "x: 'x' is no absolute path"},
        {LIST("1", A1 "," A2), "A is there twice"},
    };
    struct model_load *m = model_load_create(MODEL_LOAD_OIP, PATIENCE);
    struct model_load_request request;
    struct error err;

    (void)state;
    assert_non_null(m);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(model_load_want(m, rows[i].text, strlen(rows[i].text), &err), -1);
        if (strstr(err.text, rows[i].why) == NULL)
            fail_msg("'%s' does not have '%s'", err.text, rows[i].why);
        assert_false(model_load_next(m, 1, &request));
    }
    model_load_destroy(m);
    model_load_destroy(NULL);
}

/* ---- a server that fails at random ----------------------------------------------------------- */

#define NAMES 6

/* What a server has, and whether it says so. */
struct server {
    int has[NAMES]; /* the version; 0: none */
    int links[NAMES];
    unsigned seed;
    bool well;
};

static unsigned roll(struct server *server, unsigned sides)
{
    server->seed = server->seed * 1103515245 + 12345;
    return (server->seed >> 16) % sides;
}

static int answer(struct server *server, const struct model_load_request *request, char *text,
                  size_t size)
{
    int name = request->path[strlen("/v2/repository/models/")] - 'a';

    text[0] = '\0';
    if (!server->well && roll(server, 4) == 0)
        return roll(server, 2) == 0 ? 0 : 500;
    if (strcmp(request->path, "/v2/repository/index") == 0) {
        size_t at = (size_t)snprintf(text, size, "[{\"name\":\"own\",\"state\":\"READY\"}");

        for (int i = 0; i < NAMES; i++)
            if (server->has[i] > 0)
                at += (size_t)snprintf(text + at, size - at,
                                       ",{\"name\":\"%c\",\"state\":\"READY\"}", 'a' + i);
        snprintf(text + at, size - at, "]");
        return 200;
    }
    assert_in_range(name, 0, NAMES - 1);
    if (request->link != NULL)
        server->links[name] = atoi(strrchr(request->target, '/') + 1);
    server->has[name] = request->unlink != NULL ? 0 : server->links[name];
    /* It may have done it, and nobody hears of that. */
    return !server->well && roll(server, 8) == 0 ? 0 : 200;
}

static void ask_all(struct model_load *m, struct server *server, double *now, int most)
{
    struct model_load_request request;
    char text[1024];

    for (int i = 0; i < most && !(server->well && model_load_state(m).has_all); i++) {
        if (model_load_next(m, *now, &request)) {
            int status = answer(server, &request, text, sizeof(text));

            model_load_answered(m, *now, status, text, strlen(text));
        } else {
            *now = model_load_due(m) + 0.001;
        }
    }
}

static void new_list(struct model_load *m, struct server *server, int *wanted, int update)
{
    char text[2048];
    size_t at = (size_t)snprintf(text, sizeof(text), "{\"update\":%d,\"models\":[", update);
    const char *comma = "";
    struct error err;

    for (int i = 0; i < NAMES; i++) {
        wanted[i] = (int)roll(server, 4);
        if (wanted[i] > 0) {
            at += (size_t)snprintf(text + at, sizeof(text) - at,
                                   "%s{\"name\":\"%c\",\"version\":\"%d\",\"path\":\"/r/%c/%d\"}",
                                   comma, 'a' + i, wanted[i], 'a' + i, wanted[i]);
            comma = ",";
        }
    }
    snprintf(text + at, sizeof(text) - at, "]}");
    if (model_load_want(m, text, strlen(text), &err) != 0)
        fail_msg("%s", err.text);
}

/* Whatever fails, and whenever there is another list: once the server is well it has that list. */
static void test_random(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 300; seed++) {
        struct model_load *m = model_load_create(MODEL_LOAD_OIP, PATIENCE);
        struct server server = {.seed = seed};
        int wanted[NAMES];
        double now = 1;

        assert_non_null(m);
        for (int update = 1; update <= 5; update++) {
            new_list(m, &server, wanted, update);
            ask_all(m, &server, &now, (int)roll(&server, 30));
        }
        server.well = true;
        ask_all(m, &server, &now, 200);
        if (!model_load_state(m).has_all || model_load_state(m).version != 5)
            fail_msg("seed %u: it has not all", seed);
        for (int i = 0; i < NAMES; i++)
            if (server.has[i] != wanted[i])
                fail_msg("seed %u: %c has %d, not %d", seed, 'a' + i, server.has[i], wanted[i]);
        model_load_destroy(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_oip),
        cmocka_unit_test(test_lora),
        cmocka_unit_test(test_others_go_on),
        cmocka_unit_test(test_lies),
        cmocka_unit_test(test_loads_by_itself),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_no_list),
        cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
