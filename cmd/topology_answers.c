/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What nodes say of themselves (topology_answers.h):
 *
 *     elastic-topology NODE 1/2 {"packages":2,…
 *     elastic-topology NODE 2/2 …}
 *     elastic-topology NODE error TEXT
 */
#include "cmd/topology_answers.h"

#include <stdlib.h>
#include <string.h>

#include "cmd/terminal_text.h"
#include "lib/json_text.h"
#include "lib/number.h"

#define MARK       "elastic-topology "
#define PIECE      700 /* bytes of text; name and mark fit into the rest of 1024 */
#define PIECES_MAX 100

static int compare_answers(const void *a, const void *b)
{
    const struct topology_answer *x = a, *y = b;
    return strverscmp(x->node, y->node);
}

void topology_answers_begin(struct topology_answers *answers, char *const *nodes, int count,
                            struct topology_map *map)
{
    *answers = (struct topology_answers){.count = count, .map = map};
    answers->list = text_need(calloc((size_t)count + 1, sizeof(*answers->list)));
    for (int i = 0; i < count; i++)
        answers->list[i].node = text_need(strdup(nodes[i]));
    qsort(answers->list, (size_t)count, sizeof(*answers->list), compare_answers);
}

void topology_answers_clear(struct topology_answers *answers)
{
    for (int i = 0; i < answers->count; i++) {
        free(answers->list[i].node);
        free(answers->list[i].reason);
        free(answers->list[i].text);
    }
    free(answers->list);
    *answers = (struct topology_answers){0};
}

struct topology_answer *topology_answers_find(const struct topology_answers *answers,
                                              const char *node)
{
    struct topology_answer key = {.node = (char *)node};
    return bsearch(&key, answers->list, (size_t)answers->count, sizeof(*answers->list),
                   compare_answers);
}

void topology_answer_fail(struct topology_answer *answer, const char *reason)
{
    if (!answer->answered && answer->reason == NULL)
        answer->reason = text_need(strdup(reason));
}

/* ---- lines ----------------------------------------------------------------------------------- */

void topology_answer_print(FILE *out, const char *node, const struct machine *machine)
{
    json_object *json = machine_to_json(machine);
    const char *text = json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN);
    int pieces = ((int)strlen(text) + PIECE - 1) / PIECE;
    for (int i = 0; i < pieces; i++)
        fprintf(out, MARK "%s %d/%d %.*s\n", node, i + 1, pieces, PIECE, text + (size_t)i * PIECE);
    json_object_put(json);
}

void topology_answer_print_error(FILE *out, const char *node, const char *reason)
{
    fprintf(out, MARK "%s error %.*s\n", node, PIECE, reason);
}

static void finish(struct topology_answers *answers, struct topology_answer *answer)
{
    struct machine machine;
    struct error err = {""};
    json_object *json = json_text_parse(answer->text, strlen(answer->text), &err);
    if (json != NULL && machine_from_json(json, &machine, &err) == 0) {
        topology_map_set(answers->map, answer->node, &machine);
        answer->answered = true;
    } else {
        topology_answer_fail(answer, err.text);
    }
    json_object_put(json);
}

/* text: "2/3 …" */
static void take_piece(struct topology_answers *answers, struct topology_answer *answer,
                       const char *text)
{
    size_t number = strcspn(text, "/ "), of = strcspn(text, " ");
    int piece, pieces;
    if (text[number] != '/' || text[of] != ' ' ||
        number_parse(text, number, 1, PIECES_MAX, &piece) < 0 ||
        number_parse(text + number + 1, of - number - 1, 1, PIECES_MAX, &pieces) < 0)
        return;
    if (answer->answered || piece != answer->pieces + 1) {
        topology_answer_fail(answer, "its answer is not complete");
        return;
    }
    char *longer = NULL;
    if (asprintf(&longer, "%s%s", answer->text != NULL ? answer->text : "", text + of + 1) < 0)
        longer = NULL;
    free(answer->text);
    answer->text = text_need(longer);
    answer->pieces = piece;
    if (piece == pieces)
        finish(answers, answer);
}

void topology_answers_take(struct topology_answers *answers, const char *line)
{
    static const char error[] = "error ";
    char node[256];
    if (strncmp(line, MARK, strlen(MARK)) != 0)
        return;
    line += strlen(MARK);
    size_t length = strcspn(line, " ");
    if (line[length] != ' ' || length >= sizeof(node))
        return;
    memcpy(node, line, length);
    node[length] = '\0';
    line += length + 1;
    struct topology_answer *answer = topology_answers_find(answers, node);
    if (answer == NULL)
        return;
    if (strncmp(line, error, strlen(error)) == 0)
        topology_answer_fail(answer, line + strlen(error));
    else
        take_piece(answers, answer, line);
}
