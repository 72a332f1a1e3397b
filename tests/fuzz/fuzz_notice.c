/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fuzz target: answers of the metadata services of clouds. The first byte is the service, and
 * whether it is asked for advice. An answer is a digit for the status, a byte for its length, its
 * text, and a line for the ETag. */
#include "tests/fuzz/fuzz.h"

#include "lib/notice.h"

static void check_line(const char *text)
{
    for (const char *c = text; text != NULL && *c != '\0'; c++)
        MUST((unsigned char)*c >= ' ' && *c != 0x7f);
}

static void check_request(const struct notice_request *request)
{
    MUST(request->endpoint != NULL && request->path != NULL && request->timeout > 0);
    MUST(strpbrk(request->path, " \t") == NULL);
    check_line(request->path);
    check_line(request->header);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int statuses[] = {0, 200, 302, 401, 403, 404, 429, 500, 200, 200};
    struct conf_reclaim conf = {.url = "http://a/", .header = "A: b", .answer = "x"};
    char *text = fuzz_text(data, size), *at = text + 1, *end = text + size;
    struct notice notice;
    double now = 1474309787; /* just before the moment in Azure's example */
    int words = 0, advised = 0;

    if (size > 0) {
        conf.cloud = (enum conf_cloud)((unsigned char)text[0] % (CONF_CLOUD_TENCENT + 1));
        conf.advice = (unsigned char)text[0] >= 128 ? CONF_ADVICE_REPLACE : CONF_ADVICE_IGNORE;
    }
    notice_init(&notice, &conf);
    while (end - at >= 2) {
        struct notice_answer answer = {.status = statuses[(unsigned char)at[0] % 10]};
        size_t length = (unsigned char)at[1], left = (size_t)(end - at) - 2;
        struct notice_request request;
        struct notice_outcome outcome;

        at += 2;
        length = length == 255 || length > left ? left : length;
        answer.text = at;
        answer.length = length;
        at += length;
        if (end - at > 1 && memchr(at, '\n', (size_t)(end - at)) != NULL)
            answer.etag = strsep(&at, "\n");
        notice_next(&notice, now, &request);
        check_request(&request);
        notice_answered(&notice, now, &answer, &outcome);
        check_line(outcome.word);
        words += outcome.word[0] != '\0';
        advised += outcome.advised;
        MUST(words <= (conf.advice == CONF_ADVICE_REPLACE ? 2 : 1) && outcome.pause >= 0);
        MUST(advised <= (conf.advice == CONF_ADVICE_REPLACE ? 1 : 0));
        MUST(!outcome.comes || (!outcome.advised && !outcome.stays));
        MUST(outcome.left == -1 || (outcome.comes && outcome.left >= 0 && outcome.left <= 86400));
        now += 1 + outcome.pause;
    }
    free(text);
    return 0;
}
