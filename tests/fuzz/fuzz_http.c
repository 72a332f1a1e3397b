/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fuzz target: a request of the HTTP interface, and what leaders answer. The lines are method,
 * target, Host, Origin, If-Match and a body; each further line is an answer of a leader, "-" a lost
 * one. What is accepted is within its limits, each reply is of its one form, and each call has an
 * end. */
#include "tests/fuzz/fuzz.h"

#include "lib/api_call.h"
#include "lib/fit_view.h"
#include "lib/json_get.h"
#include "lib/json_text.h"

#define LINES_MAX 40

enum { METHOD, TARGET, HOST, ORIGIN, IF_MATCH, BODY, ANSWERS };

/* Whatever a leader has said, each line is a comment or a sample. */
static void check_metrics(const char *text)
{
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");

        MUST(text[length] == '\n');
        MUST(strncmp(text, "# ", 2) == 0 || strncmp(text, "elastic_", 8) == 0);
        text += length + 1;
    }
}

/* In OpenAI's form. */
static void check_openai_error(const struct api_reply *reply, json_object *error)
{
    const char *message = json_get_string(error, "message");
    struct error text = {""};

    MUST(message != NULL && reply->status >= 400);
    snprintf(text.text, sizeof(text.text), "%s", message);
    fuzz_check_refusal(&text);
}

/* Whatever elastic-fit prints, there is an answer. */
static void check_fit(struct fit_request *request, char **printed)
{
    char **command = fit_request_command(request, "service");
    size_t count = strings_count(command);

    MUST(count >= 5);
    for (size_t i = 1; i < count; i++)
        MUST(command[i][0] != '\0' && error_is_clean(command[i]));
    MUST(strcmp(command[count - 1 - (request->id > 0)], "service") == 0);
    strings_free(command);
    for (int status = -1; *printed != NULL; printed++, status++) {
        struct api_reply reply = {0};

        fit_view_reply(request, status, *printed, &reply);
        MUST(reply.status >= 200 && reply.status < 600);
        MUST((reply.body == NULL) != (reply.text == NULL));
        api_reply_clear(&reply);
    }
    fit_request_destroy(request);
}

static void check_reply(struct api_reply *reply)
{
    json_object *error = json_object_object_get(reply->body, "error");
    const char *message = json_get_string(reply->body, "message");
    struct error text = {""};

    MUST(reply->status >= 200 && reply->status < 600);
    MUST((reply->body == NULL) != (reply->text == NULL));
    if (error != NULL) {
        check_openai_error(reply, error);
    } else if (reply->body != NULL) {
        MUST(message != NULL && json_object_object_length(reply->body) == 4);
        MUST(json_get_bool(reply->body, "success", false) == (reply->status == 200));
        snprintf(text.text, sizeof(text.text), "%s", message);
        if (reply->status != 200)
            fuzz_check_refusal(&text);
    }
    if (reply->text != NULL)
        check_metrics(reply->text);
    api_reply_clear(reply);
}

static void check_question(const struct api_call *call, const struct api_request *request)
{
    json_object *question = api_call_question(call);
    const char *type = json_get_string(question, "t");

    MUST(type != NULL);
    MUST(api_call_looks(call) == (strcmp(type, "roles") == 0 || strcmp(type, "reports") == 0 ||
                                  strcmp(type, "metrics") == 0 || strcmp(type, "shards") == 0));
    MUST(api_call_looks(call) || api_request_changes(request) || api_request_orders(request) ||
         request->verb == API_REPORT);
    json_object_put(question);
}

static void answer(const struct api_request *request, char **answers)
{
    struct api_call *call = api_call_create(request);
    struct api_reply reply = {0};
    enum api_step step = API_ASK;

    MUST(call != NULL);
    for (; *answers != NULL && step != API_DONE; answers++) {
        json_object *said = json_text_parse(*answers, strlen(*answers), NULL);

        check_question(call, request);
        if (said != NULL)
            step = api_call_answered(call, said, &reply);
        else
            api_call_lost(call);
        json_object_put(said);
    }
    if (step != API_DONE)
        api_call_late(call, &reply);
    check_reply(&reply);
    api_call_destroy(call);
}

/* What has been read once is read again as it is, also from the file of a job. */
static void check_report(const char *text)
{
    struct reports *reports = reports_create(), *again = reports_create();
    char plain[REPORT_MAX + 1], *file;
    int number;

    MUST(report_read(text, strlen(text), plain, NULL) == 0 && strcmp(plain, text) == 0);
    MUST(reports_add(reports, 1, "a", "a-0", "1", text, &number) == REPORTS_WAITS);
    file = reports_text(reports);
    MUST(reports_parse(again, file, strlen(file), NULL) == 0 && reports_last(again) == 1);
    free(file);
    reports_destroy(reports);
    reports_destroy(again);
}

static const char *sent(const char *line)
{
    return line[0] != '\0' ? line : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), *lines[LINES_MAX + 1];
    struct api_request request;
    struct api_reply reply = {0};

    if (fuzz_lines(text, lines, LINES_MAX) >= ANSWERS) {
        const struct api_input input = {
            .method = lines[METHOD],
            .target = lines[TARGET],
            .host = sent(lines[HOST]),
            .origin = sent(lines[ORIGIN]),
            .if_match = sent(lines[IF_MATCH]),
            .id = "1",
            .tcp = size % 2 == 0,
            .body = lines[BODY],
            .body_size = strlen(lines[BODY]),
        };

        if (api_request_read(&input, &request, &reply) != 0) {
            MUST(reply.status >= 400);
            check_reply(&reply);
        } else {
            MUST(request.count >= 0 && request.epoch >= -1);
            MUST(memchr(request.role, '\0', sizeof(request.role)) != NULL);
            MUST(memchr(request.replica, '\0', sizeof(request.replica)) != NULL);
            if (request.verb == API_REPORT)
                check_report(request.report);
            if (request.verb == API_FIT)
                check_fit(request.fit, lines + ANSWERS);
            else if (request.verb != API_HEALTH)
                answer(&request, lines + ANSWERS);
        }
    }
    free(text);
    return 0;
}
