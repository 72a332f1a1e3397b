/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nodes of Slurm, and lists of their names (slurm_client.h). */
#include "common/slurm_private.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/names.h"
#include "lib/slurm_words.h"
#include "lib/text.h"

/* Flags of a node that can take a job now. Every other flag says that the node cannot, also a flag
 * that only a later version of Slurm has. */
#define NODE_FLAGS_USABLE ((uint32_t)(NODE_STATE_CLOUD | NODE_STATE_DYNAMIC_NORM))
#define RANGES_MAX        ((size_t)1 << 26) /* bytes of the names of all nodes */

#define PARTITIONS_KEPT 60  /* seconds */
#define CONF_KEPT       600 /* seconds */
#define REASONS_MOST    4   /* nodes that Slurm is asked for, of one job that has failed */

/* A node that is not up, or not for long. */
#define NODE_FLAGS_ASLEEP                                                                          \
    ((uint32_t)(NODE_STATE_POWERED_DOWN | NODE_STATE_POWERING_DOWN | NODE_STATE_POWER_DOWN |       \
                NODE_STATE_POWERING_UP | NODE_STATE_POWER_UP))

/* ---- nodes ----------------------------------------------------------------------------------- */

/* Without the mutex, as slurm_client_compress(): the leader's loop calls both, and another thread
 * may hold the mutex for many seconds while slurmctld is down. No other thread has this list, and
 * libslurm's lists lock themselves. */
char **slurm_client_expand(const char *expression)
{
    slurm_hostlist *list;
    char **names = NULL;
    int count, i = 0;

    list = slurm_hostlist_create(expression != NULL ? expression : "");
    count = list != NULL ? slurm_hostlist_count(list) : 0;
    names = calloc((size_t)count + 1, sizeof(*names));
    for (; list != NULL && names != NULL && i < count; i++)
        names[i] = slurm_hostlist_shift(list); /* malloc's */
    if (list != NULL)
        slurm_hostlist_destroy(list);
    return names;
}

/* The only form of it that every version of Slurm has in its public header writes into a buffer. */
static char *ranged_string(slurm_hostlist *list)
{
    char *text = NULL;
    ssize_t len = -1;

    for (size_t size = 256; len < 0 && size <= RANGES_MAX; size *= 2) {
        free(text);
        text = malloc(size);
        if (text == NULL)
            return NULL;
        len = slurm_hostlist_ranged_string(list, size, text);
    }
    if (len >= 0)
        return text;
    free(text);
    return NULL;
}

char *slurm_client_compress(char *const *names, int count)
{
    slurm_hostlist *list;
    char *text = NULL;

    list = slurm_hostlist_create(NULL);
    for (int i = 0; list != NULL && i < count; i++)
        slurm_hostlist_push_host(list, names[i]);
    if (list != NULL) {
        text = ranged_string(list);
        slurm_hostlist_destroy(list);
    }
    return text;
}

char *slurm_client_node_address(const char *node)
{
    node_info_msg_t *msg = NULL;
    char *name = strdup(node), *address = NULL;

    slurm_client_enter();
    if (name != NULL && slurm_load_node_single(&msg, name, QUERY_FLAGS) == SLURM_SUCCESS) {
        if (msg->record_count > 0)
            address = slurm_client_copy(msg->node_array[0].node_addr);
        slurm_free_node_info_msg(msg);
    }
    slurm_client_leave();
    if (address == NULL)
        return name;
    free(name);
    return address;
}

static bool node_is_unwell(const node_info_t *node)
{
    return (node->node_state & (NODE_STATE_DRAIN | NODE_STATE_FAIL)) != 0 ||
           (node->node_state & NODE_STATE_BASE) == NODE_STATE_DOWN;
}

/* One node at a time: for the list of all nodes slurmctld takes a lock for writing, and copies
 * all of it. */
int slurm_client_unwell(char *const *nodes, bool *unwell, struct error *err)
{
    int rc = 0;

    slurm_client_enter();
    for (int i = 0; nodes[i] != NULL && rc == 0; i++) {
        node_info_msg_t *msg = NULL;

        unwell[i] = false;
        if (slurm_load_node_single(&msg, nodes[i], QUERY_FLAGS) == SLURM_SUCCESS) {
            unwell[i] = msg->record_count > 0 && node_is_unwell(&msg->node_array[0]);
            slurm_free_node_info_msg(msg);
        } else if (errno != ESLURM_INVALID_NODE_NAME) {
            rc = slurm_client_failed(err, "ask for a node");
        }
    }
    slurm_client_leave();
    return rc;
}

int slurm_client_node_reason(const char *nodes, char *text, size_t size)
{
    char **names = slurm_client_expand(nodes);
    int count = 0;

    text[0] = '\0';
    slurm_client_enter();
    for (; names != NULL && names[count] != NULL && count < REASONS_MOST && text[0] == '\0';
         count++) {
        node_info_msg_t *msg = NULL;

        if (slurm_load_node_single(&msg, names[count], QUERY_FLAGS) != SLURM_SUCCESS)
            continue;
        if (msg->record_count > 0 && msg->node_array[0].reason != NULL)
            snprintf(text, size, "%s", msg->node_array[0].reason);
        slurm_free_node_info_msg(msg);
    }
    slurm_client_leave();
    strings_free(names);
    for (char *at = text; *at != '\0'; at++)
        if (iscntrl((unsigned char)*at))
            *at = ' ';
    return count;
}

/* ---- all nodes ------------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int find_unwell(const node_info_msg_t *msg, char *const *nodes, bool *unwell)
{
    const char **bad = calloc((size_t)msg->record_count + 1, sizeof(*bad));
    size_t count = 0;

    if (bad == NULL)
        return -1;
    for (uint32_t i = 0; i < msg->record_count; i++)
        if (msg->node_array[i].name != NULL && node_is_unwell(&msg->node_array[i]))
            bad[count++] = msg->node_array[i].name;
    qsort(bad, count, sizeof(*bad), compare_names);
    for (int i = 0; nodes[i] != NULL; i++)
        unwell[i] = bsearch(&nodes[i], bad, count, sizeof(*bad), compare_names) != NULL;
    free(bad);
    return 0;
}

int slurm_client_unwell_since(char *const *nodes, bool *unwell, time_t *as_of, bool *changed,
                              struct error *err)
{
    node_info_msg_t *msg = NULL;
    int rc = 0;

    *changed = false;
    slurm_client_enter();
    if (slurm_load_node(*as_of, &msg, QUERY_FLAGS) == SLURM_SUCCESS) {
        *changed = true;
        *as_of = msg->last_update;
        if (find_unwell(msg, nodes, unwell) != 0)
            rc = error_set(err, "out of memory");
        slurm_free_node_info_msg(msg);
    } else if (errno != SLURM_NO_CHANGE_IN_DATA) {
        rc = slurm_client_failed(err, "list the nodes");
    }
    slurm_client_leave();
    return rc;
}

struct slurm_addresses {
    node_info_msg_t *msg;
    node_info_t **sorted;
    size_t count;
};

static int compare_nodes(const void *a, const void *b)
{
    return strcmp((*(node_info_t *const *)a)->name, (*(node_info_t *const *)b)->name);
}

static int load_addresses(struct slurm_addresses *addresses, struct error *err)
{
    if (slurm_load_node(0, &addresses->msg, QUERY_FLAGS) != SLURM_SUCCESS)
        return slurm_client_failed(err, "list the nodes");
    addresses->sorted = calloc((size_t)addresses->msg->record_count + 1, sizeof(node_info_t *));
    if (addresses->sorted == NULL)
        return error_set(err, "out of memory");
    for (uint32_t i = 0; i < addresses->msg->record_count; i++)
        if (addresses->msg->node_array[i].name != NULL)
            addresses->sorted[addresses->count++] = &addresses->msg->node_array[i];
    qsort(addresses->sorted, addresses->count, sizeof(node_info_t *), compare_nodes);
    return 0;
}

struct slurm_addresses *slurm_client_addresses(struct error *err)
{
    struct slurm_addresses *addresses = calloc(1, sizeof(*addresses));
    int rc;

    if (addresses == NULL) {
        error_set(err, "out of memory");
        return NULL;
    }
    slurm_client_enter();
    rc = load_addresses(addresses, err);
    slurm_client_leave();
    if (rc == 0)
        return addresses;
    slurm_addresses_destroy(addresses);
    return NULL;
}

void slurm_addresses_destroy(struct slurm_addresses *addresses)
{
    if (addresses == NULL)
        return;
    free(addresses->sorted);
    slurm_free_node_info_msg(addresses->msg);
    free(addresses);
}

char *slurm_addresses_find(const struct slurm_addresses *addresses, const char *node)
{
    node_info_t key = {.name = (char *)node}, *wanted = &key, **found;

    found = bsearch(&wanted, addresses->sorted, addresses->count, sizeof(*addresses->sorted),
                    compare_nodes);
    return strdup(found != NULL && (*found)->node_addr != NULL ? (*found)->node_addr : node);
}

/* ---- nodes that are free --------------------------------------------------------------------- */

static bool node_is_idle(const node_info_t *node, bool planned)
{
    uint32_t state = node->node_state;

    if (planned)
        state &= ~(uint32_t)NODE_STATE_PLANNED;
    return node->name != NULL && (state & NODE_STATE_BASE) == NODE_STATE_IDLE &&
           (state & NODE_STATE_FLAGS & ~NODE_FLAGS_USABLE) == 0;
}

/* node_inx: pairs first, last of indices into all nodes, ended by -1. */
static int count_idle(const partition_info_t *partition, const node_info_msg_t *nodes, bool planned)
{
    int count = 0;

    if (partition->state_up != PARTITION_UP || partition->node_inx == NULL)
        return 0;
    for (const int32_t *pair = partition->node_inx; pair[0] >= 0; pair += 2) {
        for (int32_t i = pair[0]; i <= pair[1] && i < (int32_t)nodes->record_count; i++)
            count += node_is_idle(&nodes->node_array[i], planned);
    }
    return count;
}

/* Slurm's list of partitions, which hardly ever changes; between slurm_client_enter() and
 * slurm_client_leave(). Kept for the process, as libslurm's own state is: the next question, not
 * within a minute, is whether it has changed. NULL: see err. */
static const partition_info_msg_t *load_partitions(bool *changed, struct error *err)
{
    static partition_info_msg_t *kept;
    static time_t asked;
    partition_info_msg_t *msg = NULL;
    time_t now = time(NULL);

    *changed = false;
    if (kept != NULL && now >= asked && now - asked < PARTITIONS_KEPT)
        return kept;
    asked = now;
    if (slurm_load_partitions(kept != NULL ? kept->last_update : 0, &msg, QUERY_FLAGS) ==
        SLURM_SUCCESS) {
        if (kept != NULL)
            slurm_free_partition_info_msg(kept);
        kept = msg;
        *changed = true;
    } else if (kept == NULL || errno != SLURM_NO_CHANGE_IN_DATA) {
        slurm_client_failed(err, "list the partitions");
        return NULL;
    }
    return kept;
}

static const partition_info_t *find_partition(const partition_info_msg_t *partitions,
                                              const char *name)
{
    for (uint32_t i = 0; i < partitions->record_count; i++)
        if (strcmp(partitions->partition_array[i].name, name) == 0)
            return &partitions->partition_array[i];
    return NULL;
}

/* The last answer, for one caller with one partition. */
struct idle {
    char partition[256];
    bool planned;
    time_t as_of;
    int count;
};

static int load_idle(struct idle *known, const char *name, bool planned, struct error *err)
{
    bool changed = false, same = strcmp(known->partition, name) == 0 && known->planned == planned;
    const partition_info_msg_t *partitions = load_partitions(&changed, err);
    const partition_info_t *partition;
    node_info_msg_t *nodes = NULL;

    if (partitions == NULL)
        return -1;
    if ((partition = find_partition(partitions, name)) == NULL)
        return error_set(err, "Slurm has no partition '%s'", name);
    if (slurm_load_node(same && !changed ? known->as_of : 0, &nodes, QUERY_FLAGS) !=
        SLURM_SUCCESS) {
        if (errno == SLURM_NO_CHANGE_IN_DATA)
            return known->count;
        return slurm_client_failed(err, "list the nodes");
    }
    snprintf(known->partition, sizeof(known->partition), "%s", name);
    known->planned = planned;
    known->as_of = nodes->last_update;
    known->count = count_idle(partition, nodes, planned);
    slurm_free_node_info_msg(nodes);
    return known->count;
}

/* What slurm.conf says of power, asked for now and then; between slurm_client_enter() and
 * slurm_client_leave(). */
struct site_power {
    uint32_t boot_seconds;    /* ResumeTimeout; 0: no limit */
    uint32_t suspend_seconds; /* SuspendTime; 0: nodes stay up */
    bool saves;               /* Slurm powers nodes down, and up for jobs */
    bool obeys;               /* select/elastic_cons_tres obeys the pools' key `wake` */
};

static const struct site_power *load_site_power(struct error *err)
{
    static struct site_power kept;
    static time_t asked; /* 0: never */
    slurm_conf_t *conf = NULL;
    time_t now = time(NULL);

    if (asked != 0 && now >= asked && now - asked < CONF_KEPT)
        return &kept;
    if (slurm_load_ctl_conf(0, &conf) != SLURM_SUCCESS) {
        slurm_client_failed(err, "tell its configuration");
        return asked != 0 ? &kept : NULL;
    }
    asked = now;
    kept = (struct site_power){
        .boot_seconds = conf->resume_timeout == NO_VAL16 || conf->resume_timeout == INFINITE16
                            ? 0
                            : conf->resume_timeout,
        .suspend_seconds = conf->suspend_time < NO_VAL ? conf->suspend_time : 0,
        .saves = conf->resume_program != NULL && conf->resume_program[0] != '\0',
        .obeys = conf->select_type != NULL &&
                 strcmp(conf->select_type, "select/elastic_cons_tres") == 0,
    };
    slurm_free_ctl_conf(conf);
    return &kept;
}

static struct site_power site_power(void)
{
    struct error err;
    const struct site_power *site = load_site_power(&err);

    return site != NULL ? *site : (struct site_power){0};
}

/* What the partition bills of a whole node; Slurm counts CPUs where it has no weights. */
static double billing_of(const partition_info_t *partition)
{
    double billing = -1;

    if (partition->billing_weights_str != NULL && partition->billing_weights_str[0] != '\0' &&
        partition->tres_fmt_str != NULL && partition->total_nodes > 0)
        billing = slurm_words_tres(partition->tres_fmt_str, "billing") / partition->total_nodes;
    return billing;
}

int slurm_client_limits(const char *partition, struct slurm_limits *limits, struct error *err)
{
    const partition_info_msg_t *partitions;
    const partition_info_t *found;
    bool changed;

    *limits = (struct slurm_limits){.minutes = UINT32_MAX, .billing = -1};
    slurm_client_enter();
    partitions = load_partitions(&changed, err);
    found = partitions != NULL ? find_partition(partitions, partition) : NULL;
    if (found != NULL && found->max_time != INFINITE && found->max_time != NO_VAL)
        limits->minutes = found->max_time;
    if (found != NULL && found->resume_timeout == NO_VAL16)
        limits->boot_seconds = site_power().boot_seconds;
    else if (found != NULL && found->resume_timeout != INFINITE16)
        limits->boot_seconds = found->resume_timeout;
    if (found != NULL && found->suspend_time == NO_VAL)
        limits->suspend_seconds = site_power().suspend_seconds;
    else if (found != NULL && found->suspend_time < NO_VAL)
        limits->suspend_seconds = found->suspend_time;
    if (found != NULL)
        limits->billing = billing_of(found);
    slurm_client_leave();
    return partitions != NULL ? 0 : -1;
}

int slurm_client_idle_nodes(const char *partition, bool planned, struct error *err)
{
    static struct idle known; /* between slurm_client_enter() and slurm_client_leave() */
    int count;

    slurm_client_enter();
    count = load_idle(&known, partition, planned, err);
    slurm_client_leave();
    return count;
}

/* ---- nodes that are powered down ------------------------------------------------------------- */

/* The names of a partition's nodes that are up. NULL: out of memory. */
static char **names_up(const partition_info_t *partition, const node_info_msg_t *nodes)
{
    char **names = calloc((size_t)nodes->record_count + 1, sizeof(*names));
    int count = 0;

    if (names == NULL || partition->node_inx == NULL)
        return names;
    for (const int32_t *pair = partition->node_inx; pair[0] >= 0; pair += 2) {
        for (int32_t i = pair[0]; i <= pair[1] && i < (int32_t)nodes->record_count; i++) {
            const node_info_t *node = &nodes->node_array[i];

            if (node->name == NULL || (node->node_state & NODE_FLAGS_ASLEEP) != 0)
                continue;
            if ((names[count++] = strdup(node->name)) == NULL) {
                strings_free(names);
                return NULL;
            }
        }
    }
    return names;
}

static int list_power(const partition_info_t *partition, const node_info_msg_t *nodes,
                      struct slurm_power *power, struct error *err)
{
    char **all = slurm_client_expand(partition->nodes);

    power->up = names_up(partition, nodes);
    power->asleep = all != NULL && power->up != NULL ? names_without(all, power->up) : NULL;
    strings_free(all);
    if (power->asleep != NULL)
        return 0;
    strings_free(power->up);
    power->up = NULL;
    return error_set(err, "out of memory");
}

static int load_power(const char *name, bool obeyed, struct slurm_power *power, struct error *err)
{
    const struct site_power *site = load_site_power(err);
    const partition_info_msg_t *partitions;
    const partition_info_t *partition;
    node_info_msg_t *nodes = NULL;
    bool changed;
    int rc;

    if (site == NULL)
        return -1;
    power->saves = site->saves && !(obeyed && site->obeys);
    if (!power->saves)
        return 0;
    if ((partitions = load_partitions(&changed, err)) == NULL)
        return -1;
    if ((partition = find_partition(partitions, name)) == NULL)
        return error_set(err, "Slurm has no partition '%s'", name);
    if (power->as_of < partitions->last_update)
        power->as_of = 0;
    if (slurm_load_node(power->as_of, &nodes, QUERY_FLAGS) != SLURM_SUCCESS)
        return power->as_of > 0 && errno == SLURM_NO_CHANGE_IN_DATA
                   ? 0
                   : slurm_client_failed(err, "list the nodes");
    power->as_of = nodes->last_update;
    rc = list_power(partition, nodes, power, err);
    slurm_free_node_info_msg(nodes);
    return rc;
}

int slurm_client_power(const char *partition, bool obeyed, struct slurm_power *power,
                       struct error *err)
{
    int rc;

    power->saves = false;
    power->up = power->asleep = NULL;
    slurm_client_enter();
    rc = load_power(partition, obeyed, power, err);
    slurm_client_leave();
    return rc;
}

/* ---- hardware -------------------------------------------------------------------------------- */

static const char *node_state_words(uint32_t state)
{
    static const struct {
        uint32_t flags;
        const char *words;
    } flags[] = {
        {NODE_STATE_POWERED_DOWN | NODE_STATE_POWERING_DOWN | NODE_STATE_POWER_DOWN,
         "powered down"},
        {NODE_STATE_POWERING_UP | NODE_STATE_POWER_UP, "being powered up"},
        {NODE_STATE_FAIL, "failing"},
        {NODE_STATE_DRAIN, "drained"},
        {NODE_STATE_NO_RESPOND, "not responding"},
        {NODE_STATE_REBOOT_ISSUED | NODE_STATE_REBOOT_REQUESTED, "about to reboot"},
        {NODE_STATE_COMPLETING, "completing a job"},
    };

    if ((state & NODE_STATE_BASE) == NODE_STATE_DOWN)
        return "down";
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        if (state & flags[i].flags)
            return flags[i].words;
    switch (state & NODE_STATE_BASE) {
    case NODE_STATE_IDLE:
        return "idle";
    case NODE_STATE_MIXED:
        return "partly in use";
    case NODE_STATE_ALLOCATED:
        return "all of it in use";
    default:
        return "in an unknown state";
    }
}

/* Comma list of names as an array. */
static char **split_names(const char *names)
{
    size_t count = 0;
    char **list, *rest = NULL, *text = strdup(names != NULL ? names : "");

    for (const char *s = text; s != NULL && *s; s++)
        count += *s == ',';
    list = text != NULL ? calloc(count + 2, sizeof(*list)) : NULL;
    count = 0;
    for (char *name = list != NULL ? strtok_r(text, ",", &rest) : NULL; name != NULL;
         name = strtok_r(NULL, ",", &rest))
        list[count++] = strdup(name);
    free(text);
    return list;
}

static void fill_slurm_node(struct slurm_node *node, const node_info_t *info)
{
    uint32_t base = info->node_state & NODE_STATE_BASE;
    uint32_t flags = info->node_state & NODE_STATE_FLAGS & ~NODE_FLAGS_USABLE &
                     ~(uint32_t)NODE_STATE_PLANNED;
    uint32_t reserved = NODE_STATE_RES | NODE_STATE_MAINT;

    *node = (struct slurm_node){
        .name = slurm_client_copy(info->name),
        .features = slurm_client_copy(info->features),
        .gres = slurm_client_copy(info->gres),
        .partitions = split_names(info->partitions),
        .cpus = info->cpus,
        .sockets = info->sockets,
        .cores = info->cores,
        .threads = info->threads,
        .memory = info->real_memory,
        .ready = (base == NODE_STATE_IDLE || base == NODE_STATE_MIXED) && (flags & ~reserved) == 0,
        .reserved = (flags & reserved) != 0,
        .completing = (base == NODE_STATE_IDLE || base == NODE_STATE_MIXED) &&
                      (flags & ~reserved) == NODE_STATE_COMPLETING,
        .state = node_state_words(info->node_state),
    };
}

/* Partitions that are down take no jobs. */
static void drop_down_partitions(partition_info_msg_t *partitions)
{
    for (uint32_t i = 0; i < partitions->record_count; i++) {
        partition_info_t *partition = &partitions->partition_array[i];

        if (partition->state_up != PARTITION_UP && partition->node_inx != NULL)
            partition->node_inx[0] = -1;
    }
}

static int load_nodes(struct slurm_node **list, int *count, struct error *err)
{
    partition_info_msg_t *partitions = NULL;
    node_info_msg_t *nodes = NULL;

    if (slurm_load_partitions(0, &partitions, QUERY_FLAGS) != SLURM_SUCCESS)
        return slurm_client_failed(err, "list the partitions");
    if (slurm_load_node(0, &nodes, QUERY_FLAGS) != SLURM_SUCCESS) {
        slurm_client_failed(err, "list the nodes");
        slurm_free_partition_info_msg(partitions);
        return -1;
    }
    drop_down_partitions(partitions);
    slurm_populate_node_partitions(nodes, partitions);
    *list = calloc((size_t)nodes->record_count + 1, sizeof(**list));
    for (uint32_t i = 0; *list != NULL && i < nodes->record_count; i++) {
        const node_info_t *info = &nodes->node_array[i];

        if (info->name != NULL && (info->node_state & NODE_STATE_BASE) != NODE_STATE_FUTURE)
            fill_slurm_node(&(*list)[(*count)++], info);
    }
    slurm_free_node_info_msg(nodes);
    slurm_free_partition_info_msg(partitions);
    return *list != NULL ? 0 : error_set(err, "out of memory");
}

int slurm_client_nodes(struct slurm_node **list, int *count, struct error *err)
{
    int rc;

    *list = NULL;
    *count = 0;
    slurm_client_enter();
    rc = load_nodes(list, count, err);
    slurm_client_leave();
    return rc;
}

void slurm_node_free_list(struct slurm_node *list, int count)
{
    for (int i = 0; i < count; i++) {
        free(list[i].name);
        free(list[i].features);
        free(list[i].gres);
        strings_free(list[i].partitions);
    }
    free(list);
}
