/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fuzz target: a shard's list of models, and what a server answers. Lines with "l:" are lists;
 * others are answers with status 200, "0:" without one, "4:" with status 400. The first line says
 * which API: "vllm-lora", else it is the other one. */
#include "tests/fuzz/fuzz.h"

#include "lib/model_load.h"

#define LINES 200

static void check_request(const struct model_load_request *request)
{
    MUST(request->path[0] == '/' && strchr(request->path, ' ') == NULL);
    MUST(strstr(request->path, "..") == NULL || request->body != NULL);
    MUST(request->link == NULL || strchr(request->link, '/') == NULL);
    MUST(request->unlink == NULL || strchr(request->unlink, '/') == NULL);
    MUST((request->link == NULL) == (request->target == NULL));
    MUST(request->target == NULL || request->target[0] == '/');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), *lines[LINES + 1];
    int count = fuzz_lines(text, lines, LINES);
    bool lora = count > 0 && strcmp(lines[0], "vllm-lora") == 0;
    struct model_load *m = model_load_create(lora ? MODEL_LOAD_VLLM_LORA : MODEL_LOAD_OIP, 10);
    double now = 1;

    MUST(m != NULL);
    for (int i = 1; i < count; i++) {
        const char *line = lines[i];
        struct model_load_request request;
        struct error err = {""};

        if (strncmp(line, "l:", 2) == 0) {
            if (model_load_want(m, line + 2, strlen(line + 2), &err) != 0)
                fuzz_check_refusal(&err);
            continue;
        }
        while (!model_load_next(m, now, &request) && now < 1e6)
            now = model_load_due(m) > now ? model_load_due(m) : 2e6;
        if (now >= 1e6)
            break;
        check_request(&request);
        if (strncmp(line, "0:", 2) == 0)
            model_load_answered(m, now, 0, NULL, 0);
        else if (strncmp(line, "4:", 2) == 0)
            model_load_answered(m, now, 400, line + 2, strlen(line + 2));
        else
            model_load_answered(m, now, 200, line, strlen(line));
        MUST(model_load_state(m).failures <= i);
    }
    model_load_destroy(m);
    free(text);
    return 0;
}
