/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fuzz target: the file with the prices of pools. What is accepted can be found again. */
#include "tests/fuzz/fuzz.h"

#include "lib/prices.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), *word;
    struct error err = {""};
    struct prices *prices = prices_parse(text, size, &err);

    if (prices == NULL)
        fuzz_check_refusal(&err);
    for (char *at = text; prices != NULL && (word = strsep(&at, " \t\r\n")) != NULL;) {
        const struct price *price = prices_find(prices, word);

        MUST(price == NULL || (price->price >= 0 && price->nodes >= -1));
    }
    prices_destroy(prices);
    free(text);
    return 0;
}
