/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What nodes say (node_answers.h):
 *
 *     elastic-node NODE 1/2 {"packages":2,…
 *     elastic-node NODE 2/2 …}
 *     elastic-node NODE error TEXT
 */
#include "cmd/node_answers.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/terminal_text.h"
#include "lib/json_text.h"
#include "lib/number.h"

#define MARK       "elastic-node "
#define PIECE      700 /* bytes of text; name and mark fit into the rest of 1024 */
#define PIECES_MAX 100

static int compare_answers(const void *a, const void *b)
{
    const struct node_answer *x = a, *y = b;
    return strverscmp(x->node, y->node);
}

void node_answers_begin(struct node_answers *answers, char *const *nodes, int count,
                        node_answer_taker *taker, void *owner)
{
    *answers = (struct node_answers){.count = count, .taker = taker, .owner = owner};
    answers->list = text_need(calloc((size_t)count + 1, sizeof(*answers->list)));
    for (int i = 0; i < count; i++)
        answers->list[i].node = text_need(strdup(nodes[i]));
    qsort(answers->list, (size_t)count, sizeof(*answers->list), compare_answers);
}

void node_answers_clear(struct node_answers *answers)
{
    for (int i = 0; i < answers->count; i++) {
        free(answers->list[i].node);
        free(answers->list[i].reason);
        free(answers->list[i].text);
    }
    free(answers->list);
    *answers = (struct node_answers){0};
}

struct node_answer *node_answers_find(const struct node_answers *answers, const char *node)
{
    struct node_answer key = {.node = (char *)node};
    return bsearch(&key, answers->list, (size_t)answers->count, sizeof(*answers->list),
                   compare_answers);
}

void node_answer_fail(struct node_answer *answer, const char *reason)
{
    if (!answer->answered && answer->reason == NULL)
        answer->reason = text_need(strdup(reason));
}

/* ---- lines ----------------------------------------------------------------------------------- */

void node_answer_print(FILE *out, const char *node, json_object *answer)
{
    const char *text = json_object_to_json_string_ext(answer, JSON_C_TO_STRING_PLAIN);
    int pieces = ((int)strlen(text) + PIECE - 1) / PIECE;
    for (int i = 0; i < pieces; i++)
        fprintf(out, MARK "%s %d/%d %.*s\n", node, i + 1, pieces, PIECE, text + (size_t)i * PIECE);
}

void node_answer_print_error(FILE *out, const char *node, const char *reason)
{
    fprintf(out, MARK "%s error %.*s\n", node, PIECE, reason);
}

static void finish(struct node_answers *answers, struct node_answer *answer)
{
    struct error err = {""};
    json_object *json = json_text_parse(answer->text, strlen(answer->text), &err);
    if (json != NULL && answers->taker(answers->owner, answer->node, json, &err) == 0)
        answer->answered = true;
    else
        node_answer_fail(answer, err.text);
    json_object_put(json);
}

/* text: "2/3 …" */
static void take_piece(struct node_answers *answers, struct node_answer *answer, const char *text)
{
    size_t number = strcspn(text, "/ "), of = strcspn(text, " ");
    int piece, pieces;
    if (text[number] != '/' || text[of] != ' ' ||
        number_parse(text, number, 1, PIECES_MAX, &piece) < 0 ||
        number_parse(text + number + 1, of - number - 1, 1, PIECES_MAX, &pieces) < 0)
        return;
    if (answer->answered || piece != answer->pieces + 1) {
        node_answer_fail(answer, "its answer is not complete");
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

void node_answers_take(struct node_answers *answers, const char *line)
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
    struct node_answer *answer = node_answers_find(answers, node);
    if (answer == NULL)
        return;
    if (strncmp(line, error, strlen(error)) == 0)
        node_answer_fail(answer, line + strlen(error));
    else
        take_piece(answers, answer, line);
}

char *node_answer_own_name(void)
{
    const char *node = getenv("SLURMD_NODENAME");
    char name[256] = "";
    if (node != NULL)
        return text_need(strdup(node));
    gethostname(name, sizeof(name) - 1);
    name[strcspn(name, ".")] = '\0';
    return text_need(strdup(name));
}
