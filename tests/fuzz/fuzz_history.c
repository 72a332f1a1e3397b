/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fuzz target: history.jsonl of a job, as a table, a timeline, a picture and a page. These are
 * ASCII, and no text of the file becomes markup. */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "cmd/history_file.h"
#include "cmd/picture.h"
#include "cmd/render.h"
#include "cmd/shape.h"
#include "cmd/timeline.h"

/* Each '<' begins one of our own elements. */
static void check_markup(const char *text)
{
    static const char *const ours[] = {
        "<svg ",    "</svg>",   "<rect ",   "</rect>", "<text ",
        "</text>",  "<title>",  "</title>", "<line ",  "<!DOCTYPE html>",
        "<html ",   "</html>",  "<head>",   "</head>", "<meta ",
        "<style>",  "</style>", "<body>",   "</body>", "<table>",
        "</table>", "<thead>",  "</thead>", "<tbody>", "</tbody>",
        "<tr>",     "<th>",     "<th ",     "<td>",    "<td ",
        "<g>",      "</g>"};

    for (const char *s = text; *s != '\0'; s++) {
        bool known = *s != '<';

        MUST(*s == '\n' || (*s >= ' ' && *s < 0x7f));
        for (size_t i = 0; !known && i < sizeof(ours) / sizeof(*ours); i++)
            known = strncmp(s, ours[i], strlen(ours[i])) == 0;
        MUST(known);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct history_losses losses;
    json_object *history = history_file_parse(12, text, size, &losses);
    json_object *generations = field_array(history, "generations");
    struct timeline_options drawing = {.width = 80, .max_rows = 40};

    for (int html = 0; html < 2; html++) {
        struct picture_options options = {.title = text, .end = 1700000000, .html = html};
        char *picture = picture_draw(generations, &options);

        MUST((picture == NULL) == (json_object_array_length(generations) == 0));
        if (picture != NULL)
            check_markup(picture);
        free(picture);
    }
    free(timeline_draw(generations, &drawing));
    free(render_history(history, &(struct render_options){.now = 1700000000}));
    json_object_put(history);
    free(text);
    return 0;
}
