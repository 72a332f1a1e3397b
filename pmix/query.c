/* SPDX-License-Identifier: GPL-2.0-or-later */
/* PMIx_Query_info: what is known here of the worlds on this node, and what the leader knows.
 *
 * The library does not tell who asks. So a question without a namespace is about the running world,
 * which is the oldest. The library answers questions about registered data of a namespace by
 * itself, before it asks us. */
#include "pmix/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/json_get.h"

#define LEADER_SECONDS 5

/* One query, and its answers so far. */
struct asked {
    const struct space *space; /* world of the query; NULL: none */
    const pmix_query_t *query;
    json_object *state;  /* the leader's answer; NULL: none */
    json_object *tables; /* the agents' answers about processes, one for each world; NULL: none */
    void *list;          /* of infos */
};

/* ---- about a world --------------------------------------------------------------------------- */

static bool add(struct asked *asked, const char *key, const void *value, pmix_data_type_t type)
{
    return PMIx_Info_list_add(asked->list, key, value, type) == PMIX_SUCCESS;
}

static bool add_number(struct asked *asked, const char *key, int value)
{
    uint32_t number = (uint32_t)value;

    return add(asked, key, &number, PMIX_UINT32);
}

static bool tell_job_size(struct asked *asked, const char *key)
{
    return asked->space != NULL && add_number(asked, key, world_size(asked->space->world));
}

static bool tell_node_count(struct asked *asked, const char *key)
{
    return asked->space != NULL && add_number(asked, key, asked->space->world->node_count);
}

static bool tell_local_size(struct asked *asked, const char *key)
{
    const struct space *space = asked->space;

    return space != NULL && add_number(asked, key, space->world->nodes[space->index].slots);
}

static bool tell_nodes(struct asked *asked, const char *key)
{
    const struct world *world = asked->space != NULL ? asked->space->world : NULL;
    char *text = NULL;
    size_t len;
    FILE *file = world != NULL ? open_memstream(&text, &len) : NULL;
    bool good;

    if (file == NULL)
        return false;
    for (int i = 0; i < world->node_count; i++)
        fprintf(file, "%s%s", i > 0 ? "," : "", world->nodes[i].name);
    good = fclose(file) == 0 && add(asked, key, text, PMIX_STRING);
    free(text);
    return good;
}

/* The data is there, so nothing has gone wrong. */
static bool tell_status(struct asked *asked, const char *key)
{
    pmix_status_t status = PMIX_SUCCESS;

    return asked->space != NULL && add(asked, key, &status, PMIX_STATUS);
}

/* The agents' answer about that world, NULL: none. */
static json_object *answer_about(const struct asked *asked)
{
    int64_t attempt;

    for (size_t i = 0; asked->tables != NULL && i < json_object_array_length(asked->tables); i++) {
        json_object *answer = json_object_array_get_idx(asked->tables, i);

        if (json_get_int(answer, "attempt", 0, INT32_MAX, &attempt) &&
            attempt == asked->space->attempt)
            return answer;
    }
    return NULL;
}

/* The agents' answer about these processes, the first of which has rank `from`. */
static void add_pids(const struct asked *asked, pmix_proc_info_t *info, int from, int count)
{
    json_object *answer = answer_about(asked), *rows = NULL;
    const char *executable = answer != NULL ? json_get_string(answer, "executable") : NULL;

    for (int i = 0; i < count && executable != NULL; i++)
        info[i].executable_name = strdup(executable);
    if (answer == NULL || !json_object_object_get_ex(answer, "processes", &rows) ||
        !json_object_is_type(rows, json_type_array))
        return;
    for (size_t i = 0; i < json_object_array_length(rows); i++) {
        json_object *row = json_object_array_get_idx(rows, i);
        int rank;

        if (!json_object_is_type(row, json_type_array) || json_object_array_length(row) != 3)
            continue;
        rank = json_object_get_int(json_object_array_get_idx(row, 0)) - from;
        if (rank < 0 || rank >= count)
            continue;
        info[rank].pid = json_object_get_int(json_object_array_get_idx(row, 1));
        if (json_object_get_boolean(json_object_array_get_idx(row, 2)))
            info[rank].state = PMIX_PROC_STATE_TERMINATED;
    }
}

/* The processes on these nodes. */
static bool add_procs(struct asked *asked, const char *key, int first, int end)
{
    const struct space *space = asked->space;
    int from = world_first_rank(space->world, first), count = 0, at = 0;
    pmix_data_array_t array;
    pmix_proc_info_t *info;
    bool good;

    for (int i = first; i < end; i++)
        count += space->world->nodes[i].slots;
    PMIX_DATA_ARRAY_CONSTRUCT(&array, (size_t)count, PMIX_PROC_INFO);
    info = array.array;
    if (info == NULL)
        return false;
    for (int i = first; i < end; i++)
        for (int k = 0; k < space->world->nodes[i].slots; k++, at++) {
            PMIX_LOAD_PROCID(&info[at].proc, space->name, (pmix_rank_t)(from + at));
            info[at].hostname = strdup(space->world->nodes[i].name);
            info[at].state = PMIX_PROC_STATE_RUNNING;
        }
    add_pids(asked, info, from, count);
    good = add(asked, key, &array, PMIX_DATA_ARRAY);
    PMIX_DATA_ARRAY_DESTRUCT(&array);
    return good;
}

static bool tell_procs(struct asked *asked, const char *key)
{
    return asked->space != NULL && add_procs(asked, key, 0, asked->space->world->node_count);
}

static bool tell_local_procs(struct asked *asked, const char *key)
{
    return asked->space != NULL &&
           add_procs(asked, key, asked->space->index, asked->space->index + 1);
}

/* ---- about all ------------------------------------------------------------------------------- */

static bool tell_names(struct asked *asked, const char *key)
{
    char *text = NULL;
    size_t len;
    FILE *file = open_memstream(&text, &len);
    bool good;

    if (file == NULL)
        return false;
    for (struct space *space = host.spaces; space != NULL; space = space->next)
        fprintf(file, "%s%s", space != host.spaces ? "," : "", space->name);
    good = fclose(file) == 0 && add(asked, key, text, PMIX_STRING);
    free(text);
    return good;
}

/* For each namespace an array of its name and size. The command is the agent's to know. */
static bool tell_spaces(struct asked *asked, const char *key)
{
    void *all = PMIx_Info_list_start();
    pmix_data_array_t array;
    bool good = true;

    for (struct space *space = host.spaces; good && space != NULL; space = space->next) {
        struct asked one = {.space = space, .list = PMIx_Info_list_start()};

        good = add(&one, PMIX_NSPACE, space->name, PMIX_STRING) &&
               tell_job_size(&one, PMIX_JOB_SIZE) &&
               PMIx_Info_list_convert(one.list, &array) == PMIX_SUCCESS;
        PMIx_Info_list_release(one.list);
        if (good) {
            good = PMIx_Info_list_add(all, PMIX_JOB_INFO_ARRAY, &array, PMIX_DATA_ARRAY) ==
                   PMIX_SUCCESS;
            PMIX_DATA_ARRAY_DESTRUCT(&array);
        }
    }
    if (good && host.spaces != NULL && PMIx_Info_list_convert(all, &array) == PMIX_SUCCESS) {
        good = add(asked, key, &array, PMIX_DATA_ARRAY);
        PMIX_DATA_ARRAY_DESTRUCT(&array);
    } else {
        good = false;
    }
    PMIx_Info_list_release(all);
    return good;
}

/* There are none. */
static bool tell_no_number(struct asked *asked, const char *key)
{
    size_t none = 0;

    return add(asked, key, &none, PMIX_SIZE);
}

static bool tell_nothing(struct asked *asked, const char *key)
{
    return add(asked, key, "", PMIX_STRING);
}

static bool tell_qualifiers(struct asked *asked, const char *key)
{
    return add(asked, key, PMIX_NSPACE "," PMIX_PROCID "," PMIX_ALLOC_REQ_ID, PMIX_STRING);
}

static bool tell_refusal(struct asked *asked, const char *key)
{
    const char *text = NULL;

    for (size_t i = 0; i < asked->query->nqual; i++) {
        const pmix_info_t *info = &asked->query->qualifiers[i];

        if (PMIX_CHECK_KEY(info, PMIX_ALLOC_REQ_ID) && info->value.type == PMIX_STRING &&
            info->value.data.string != NULL)
            text = allocate_refusal(info->value.data.string);
    }
    return text != NULL && add(asked, key, text, PMIX_STRING);
}

static bool tell_keys(struct asked *asked, const char *key);

/* ---- the leader's ---------------------------------------------------------------------------- */

static bool tell_text(struct asked *asked, const char *key, const char *member)
{
    const char *text = asked->state != NULL ? json_get_string(asked->state, member) : NULL;

    return text != NULL && add(asked, key, text, PMIX_STRING);
}

static bool tell_number(struct asked *asked, const char *key, const char *member)
{
    int64_t number;

    return asked->state != NULL && json_get_int(asked->state, member, 0, UINT32_MAX, &number) &&
           add(asked, key, &(uint32_t){(uint32_t)number}, PMIX_UINT32);
}

/* ---- all that can be asked ------------------------------------------------------------------- */

static const struct known {
    const char *key;
    bool (*tell)(struct asked *asked, const char *key);
    /* For keys that the leader answers: the member of its answer, and the function that reads
     * it. */
    bool (*tell_state)(struct asked *asked, const char *key, const char *member);
    const char *member;
} known[] = {
    {PMIX_QUERY_NAMESPACES, tell_names, NULL, NULL},
    {PMIX_QUERY_NAMESPACE_INFO, tell_spaces, NULL, NULL},
    {PMIX_QUERY_JOB_STATUS, tell_status, NULL, NULL},
    {PMIX_QUERY_PROC_TABLE, tell_procs, NULL, NULL},
    {PMIX_QUERY_LOCAL_PROC_TABLE, tell_local_procs, NULL, NULL},
    {PMIX_JOB_SIZE, tell_job_size, NULL, NULL},
    {PMIX_UNIV_SIZE, tell_job_size, NULL, NULL},
    {PMIX_MAX_PROCS, tell_job_size, NULL, NULL},
    {PMIX_NUM_NODES, tell_node_count, NULL, NULL},
    {PMIX_LOCAL_SIZE, tell_local_size, NULL, NULL},
    {PMIX_NODE_SIZE, tell_local_size, NULL, NULL},
    {PMIX_ALLOCATED_NODELIST, tell_nodes, NULL, NULL},
    {PMIX_NODE_LIST, tell_nodes, NULL, NULL},
    {PMIX_QUERY_SUPPORTED_KEYS, tell_keys, NULL, NULL},
    {PMIX_QUERY_SUPPORTED_QUALIFIERS, tell_qualifiers, NULL, NULL},
    {PMIX_QUERY_NUM_PSETS, tell_no_number, NULL, NULL},
    {PMIX_QUERY_PSET_NAMES, tell_nothing, NULL, NULL},
    {PMIX_QUERY_SPAWN_SUPPORT, tell_nothing, NULL, NULL},
    {PMIX_QUERY_DEBUG_SUPPORT, tell_nothing, NULL, NULL},
    {ELASTIC_PMIX_REFUSAL, tell_refusal, NULL, NULL},
    {PMIX_TIME_REMAINING, NULL, tell_number, "time_remaining"},
    {PMIX_QUERY_ALLOC_STATUS, NULL, tell_text, "why_not_more"},
    {"elastic.sizes", NULL, tell_text, "sizes"},
    {"elastic.nodes", NULL, tell_number, "nodes"},
    {"elastic.target", NULL, tell_number, "target"},
    {"elastic.generation", NULL, tell_number, "generation"},
    {"elastic.reason", NULL, tell_text, "reason"},
};

#define KNOWN_COUNT (sizeof(known) / sizeof(known[0]))

static bool tell_keys(struct asked *asked, const char *key)
{
    char text[KNOWN_COUNT * (PMIX_MAX_KEYLEN / 4)] = "";

    for (size_t i = 0; i < KNOWN_COUNT; i++) {
        size_t len = strlen(text);

        snprintf(text + len, sizeof(text) - len, "%s%s", i > 0 ? "," : "", known[i].key);
    }
    return add(asked, key, text, PMIX_STRING);
}

static const struct known *find(const char *key)
{
    for (size_t i = 0; i < KNOWN_COUNT; i++)
        if (strcmp(key, known[i].key) == 0)
            return &known[i];
    return NULL;
}

/* ---- queries --------------------------------------------------------------------------------- */

/* The namespace that the qualifiers name. NULL: no namespace of this node. */
static struct space *space_of(const pmix_query_t *query)
{
    for (size_t i = 0; i < query->nqual; i++) {
        const pmix_info_t *info = &query->qualifiers[i];

        if (PMIX_CHECK_KEY(info, PMIX_NSPACE))
            return info->value.type == PMIX_STRING && info->value.data.string != NULL
                       ? host_space_by_name(info->value.data.string)
                       : NULL;
        if (PMIX_CHECK_KEY(info, PMIX_PROCID))
            return info->value.type == PMIX_PROC && info->value.data.proc != NULL
                       ? host_space_by_name(info->value.data.proc->nspace)
                       : NULL;
    }
    return host_running_space();
}

/* Answer all that is known; parts of it may be missing. */
static void finish(struct call *call, json_object *state)
{
    pmix_status_t status = PMIX_ERR_NOT_SUPPORTED;
    struct asked asked = {.state = state,
                          .tables = call->text != NULL ? json_tokener_parse(call->text) : NULL,
                          .list = PMIx_Info_list_start()};
    size_t wanted = 0, told = 0;
    pmix_data_array_t found = {0};

    for (size_t i = 0; i < call->query_count; i++) {
        char **keys = call->queries[i].keys;

        asked.query = &call->queries[i];
        asked.space = space_of(asked.query);
        for (; keys != NULL && *keys != NULL; keys++, wanted++) {
            const struct known *what = find(*keys);

            if (what == NULL)
                continue;
            status = PMIX_ERR_NOT_FOUND;
            if (what->tell != NULL ? what->tell(&asked, *keys)
                                   : what->tell_state(&asked, *keys, what->member))
                told++;
        }
    }
    if (told > 0 && PMIx_Info_list_convert(asked.list, &found) == PMIX_SUCCESS)
        status = told == wanted ? PMIX_SUCCESS : PMIX_QUERY_PARTIAL_SUCCESS;
    PMIx_Info_list_release(asked.list);
    json_object_put(asked.tables);
    call_answer_info(call, status, found.array, found.size);
    if (found.array != NULL)
        PMIX_DATA_ARRAY_DESTRUCT(&found);
}

static bool is_for_leader(const struct call *call)
{
    for (size_t i = 0; i < call->query_count; i++)
        for (char **key = call->queries[i].keys; key != NULL && *key != NULL; key++) {
            const struct known *what = find(*key);

            if (what != NULL && what->tell_state != NULL)
                return true;
        }
    return false;
}

static void ask_leader(struct call *call)
{
    const struct space *space = host_running_space();

    if (space != NULL && is_for_leader(call))
        exchange_ask(call, space, "state", json_object_new_object(), LEADER_SECONDS, finish);
    else
        finish(call, NULL);
}

/* Is a table of processes asked for? If so, *all: of all nodes. */
static bool wants_table(const pmix_query_t *query, bool *all)
{
    bool here = false;

    *all = false;
    for (char **key = query->keys; key != NULL && *key != NULL; key++) {
        *all = *all || strcmp(*key, PMIX_QUERY_PROC_TABLE) == 0;
        here = here || strcmp(*key, PMIX_QUERY_LOCAL_PROC_TABLE) == 0;
    }
    return here || *all;
}

static json_object *table_message(const struct space *space, bool all)
{
    json_object *msg = json_object_new_object(), *nodes = json_object_new_array();

    for (int i = 0; all && i < space->world->node_count; i++) {
        json_object *node;

        if (i == space->index)
            continue;
        node = json_object_new_object();
        json_object_object_add(node, "node", json_object_new_int(i));
        json_object_array_add(nodes, node);
    }
    json_object_object_add(msg, "list", json_object_new_boolean(true));
    json_object_object_add(msg, "here", json_object_new_boolean(true));
    json_object_object_add(msg, "nodes", nodes);
    return msg;
}

static void on_table(struct call *call, json_object *answer);

/* The agents know the process ids. Their answers are kept with the call, as text, which is freed
 * with the call; call->len is the next query. */
static void ask_agents(struct call *call)
{
    while (call->len < call->query_count) {
        const pmix_query_t *query = &call->queries[call->len++];
        const struct space *space = space_of(query);
        bool all;

        if (space == NULL || !wants_table(query, &all))
            continue;
        exchange_ask(call, space, "processes", table_message(space, all), LEADER_SECONDS, on_table);
        return;
    }
    ask_leader(call);
}

static void on_table(struct call *call, json_object *answer)
{
    json_object *answers = call->text != NULL ? json_tokener_parse(call->text)
                                              : json_object_new_array();

    json_object_array_add(answers, json_object_get(answer));
    free(call->text);
    call->text = strdup(json_object_to_json_string_ext(answers, JSON_C_TO_STRING_PLAIN));
    json_object_put(answers);
    ask_agents(call);
}

void query_answer(struct call *call)
{
    ask_agents(call);
}
