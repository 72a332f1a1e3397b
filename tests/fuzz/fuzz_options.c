/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fuzz target: the command lines of elasticrun and selastic, a word a line. The first word
 * decides: elasticrun, or a subcommand of selastic. */
#include "config.h"

#include "tests/fuzz/fuzz.h"

#include "agent/options.h"
#include "cmd/arguments.h"

#define WORDS_MAX 64

static void parse_elasticrun(int count, char **words)
{
    FILE *screen = stdout, *nowhere = fopen("/dev/null", "w");
    struct options options;
    struct error err = {""};
    enum options_result result;

    MUST(nowhere != NULL);
    stdout = nowhere; /* --help */
    result = options_parse(&options, count, words, &err);
    stdout = screen;
    fclose(nowhere);
    if (result == OPTIONS_ERROR)
        fuzz_check_refusal(&err);
    if (result == OPTIONS_RUN && !options.extension)
        MUST(options.argv != NULL && options.argv[0] != NULL);
    options_clear(&options);
}

static void parse_selastic(int count, char **words)
{
    struct arguments arguments;
    struct error err = {""};

    if (arguments_parse(count, words, &arguments, &err) != 0)
        fuzz_check_refusal(&err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), *words[WORDS_MAX + 1];
    int count = fuzz_lines(text, words, WORDS_MAX);

    if (strcmp(words[0], "elasticrun") == 0)
        parse_elasticrun(count, words);
    else
        parse_selastic(count, words);
    free(text);
    return 0;
}
