/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the subcommands of `selastic topology` share (topology_site.h). */
#include "cmd/topology_site.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/deadline.h"
#include "cmd/terminal_text.h"
#include "common/conf_file.h"
#include "common/files.h"
#include "common/log.h"

static int ask_slurm(struct topology_site *site, struct error *err)
{
    struct error unknown = {""};
    deadline_enter_slurm();
    int rc = slurm_client_nodes(&site->nodes, &site->node_count, err);
    if (rc == 0 && slurm_client_switches(&site->switches, &site->switch_count, &unknown) < 0)
        log_info("the tree of switches is not known: %s", unknown.text);
    deadline_leave();
    return rc;
}

static int find_path(struct topology_site *site, const char *path, struct error *err)
{
    if (path != NULL) {
        site->path = text_need(strdup(path));
        return 0;
    }
    struct conf *conf = conf_file_load(NULL, err);
    if (conf == NULL)
        return -1;
    site->path = text_need(conf_file_shapes(conf));
    conf_destroy(conf);
    return 0;
}

static int read_map(struct topology_site *site, bool may_lack, struct error *err)
{
    size_t length;
    char *text = file_read(site->path, TOPOLOGY_FILE_MAX, &length, err);
    if (text == NULL && errno == ENOENT)
        return may_lack ? 0
                        : error_set(err, "there is no %s yet: 'selastic topology collect' makes it",
                                    error_path(site->path).text);
    if (text == NULL)
        return -1;
    int rc = topology_map_parse(&site->map, text, length, slurm_client_expand, err);
    free(text);
    return rc < 0 ? error_prefix(err, "%s", error_path(site->path).text) : 0;
}

int topology_site_load(struct topology_site *site, const char *path, bool may_lack,
                       struct error *err)
{
    *site = (struct topology_site){0};
    if (find_path(site, path, err) == 0 && ask_slurm(site, err) == 0 &&
        read_map(site, may_lack, err) == 0)
        return 0;
    topology_site_clear(site);
    return -1;
}

int topology_site_reload(struct topology_site *site, struct error *err)
{
    slurm_node_free_list(site->nodes, site->node_count);
    deadline_start();
    deadline_enter_slurm();
    int rc = slurm_client_nodes(&site->nodes, &site->node_count, err);
    deadline_leave();
    return rc;
}

void topology_site_clear(struct topology_site *site)
{
    slurm_node_free_list(site->nodes, site->node_count);
    slurm_switch_free_list(site->switches, site->switch_count);
    topology_map_clear(&site->map);
    free(site->path);
    *site = (struct topology_site){0};
}

/* ---- leaves ---------------------------------------------------------------------------------- */

struct place {
    char *node;
    const char *leaf;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return strcmp(x->node, y->node);
}

/* The nodes below each leaf switch, sorted. */
static struct place *find_places(const struct topology_site *site, size_t *count)
{
    struct place *places = NULL;
    *count = 0;
    for (int i = 0; i < site->switch_count; i++) {
        const struct slurm_switch *each = &site->switches[i];
        if (each->level != 0 || each->nodes == NULL)
            continue;
        char **names = text_need(slurm_client_expand(each->nodes));
        for (char **name = names; *name != NULL; name++) {
            if ((*count & (*count + 1)) == 0)
                places = text_need(realloc(places, 2 * (*count + 1) * sizeof(*places)));
            places[(*count)++] = (struct place){*name, each->name};
        }
        free(names);
    }
    if (*count > 0)
        qsort(places, *count, sizeof(*places), compare_places);
    return places;
}

const char **topology_site_leaves(const struct topology_site *site)
{
    const char **leaves = text_need(calloc((size_t)site->node_count + 1, sizeof(*leaves)));
    size_t count;
    struct place *places = find_places(site, &count);
    for (int i = 0; i < site->node_count; i++) {
        struct place key = {site->nodes[i].name, NULL}, *found = NULL;
        if (count > 0)
            found = bsearch(&key, places, count, sizeof(*places), compare_places);
        leaves[i] = found != NULL ? found->leaf : "";
    }
    for (size_t i = 0; i < count; i++)
        free(places[i].node);
    free(places);
    return leaves;
}
