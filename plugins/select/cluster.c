/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nodes, shapes and switches of slurmctld (cluster.h). */
#include "config.h"

#include "src/common/slurm_xlator.h"

#include "src/common/log.h"
#include "src/common/node_conf.h"
#include "src/common/read_config.h"
#include "src/common/slurm_topology.h"
#include "src/slurmctld/slurmctld.h"

#include "plugins/select/cluster.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/conf_file.h"
#include "common/files.h"
#include "lib/shapes.h"

/* Data, unlike functions, is bound when the plugin is loaded, which clients do as well: weak. */
#pragma weak node_record_count
#pragma weak node_record_table_ptr
#pragma weak slurm_conf
#pragma weak switch_record_cnt
#pragma weak switch_record_table

#define NAME "select/elastic_cons_tres"

/* Slurm's plugin calls have no cookie. They are made under slurmctld's locks. */
static struct placement_map map; /* node_count 0: none */
static struct shapes *shapes;
static struct error problem; /* with the file; said once */

/* job_submit/elastic reports mistakes in elastic.conf; here only the path is needed. */
static char *shapes_path(void)
{
    struct error err;
    struct conf *conf = conf_file_load(NULL, &err);
    char *path = conf_file_shapes(conf);

    conf_destroy(conf);
    return path;
}

/* The shapes in the file at path. NULL with err. err is empty where there is no file: then there
 * are no shapes. */
static struct shapes *load_shapes(const char *path, struct error *err)
{
    struct shapes *loaded = NULL;
    size_t len;
    char *text = file_read(path, SHAPES_FILE_MAX, &len, err);

    if (text != NULL && (loaded = shapes_parse(text, len, err)) == NULL)
        error_prefix(err, "%s", error_path(path).text);
    else if (text == NULL && errno == ENOENT)
        err->text[0] = '\0';
    free(text);
    return loaded;
}

/* A site whose file is broken goes on without shapes. */
static void read_shapes(void)
{
    struct error err = {""};
    char *path = shapes_path();

    shapes_destroy(shapes);
    shapes = path != NULL ? load_shapes(path, &err) : NULL;
    if (shapes != NULL)
        verbose(NAME ": %s: %d shapes of %d nodes", path, shapes_count(shapes),
                shapes_nodes(shapes));
    else if (err.text[0] != '\0' && strcmp(err.text, problem.text) != 0)
        error(NAME ": %s; nodes count as all alike until it is repaired and 'scontrol reconfigure' "
                   "is run",
              err.text);
    else if (path != NULL && err.text[0] == '\0')
        verbose(NAME ": there is no %s: nodes count as all alike", path);
    problem = err;
    free(path);
}

static void drop_map(void)
{
    free((int *)(uintptr_t)map.shape);
    free((int *)(uintptr_t)map.leaf);
    free((int *)(uintptr_t)map.parent);
    map = (struct placement_map){0};
}

static int *filled(int count)
{
    int *array = malloc(((size_t)count + 1) * sizeof(*array));

    for (int i = 0; array != NULL && i < count; i++)
        array[i] = PLACEMENT_NONE;
    return array;
}

/* A node on two leaf switches counts for the first. */
static void read_switches(int *leaf, int *parent)
{
    for (int i = 0; i < switch_record_cnt; i++) {
        const switch_record_t *at = &switch_record_table[i];

        for (int k = 0; k < at->num_switches; k++)
            if (at->switch_index[k] < switch_record_cnt)
                parent[at->switch_index[k]] = i;
        if (at->level != 0 || at->node_bitmap == NULL)
            continue;
        for (int node = 0; node < node_record_count && node < bit_size(at->node_bitmap); node++)
            if (bit_test(at->node_bitmap, node) && leaf[node] == PLACEMENT_NONE)
                leaf[node] = i;
    }
}

static void build_map(void)
{
    int switches = switch_record_table != NULL ? switch_record_cnt : 0;
    int *shape = filled(node_record_count), *leaf = filled(node_record_count);
    int *parent = filled(switches);

    drop_map();
    if (shape == NULL || leaf == NULL || parent == NULL) {
        free(shape);
        free(leaf);
        free(parent);
        return;
    }
    for (int i = 0; i < node_record_count; i++)
        if (node_record_table_ptr[i] != NULL)
            shape[i] = shapes_of(shapes, node_record_table_ptr[i]->name);
    if (switches > 0)
        read_switches(leaf, parent);
    map = (struct placement_map){node_record_count, shape, leaf, switches, parent};
}

void cluster_update(void)
{
    build_map();
}

void cluster_read(void)
{
    read_shapes();
    build_map();
}

void cluster_forget(void)
{
    drop_map();
    shapes_destroy(shapes);
    shapes = NULL;
}

const struct placement_map *cluster_map(void)
{
    return map.node_count > 0 && (map.switch_count > 0 || shapes != NULL) ? &map : NULL;
}

const char *cluster_switch_name(int at)
{
    if (at < 0 || at >= switch_record_cnt || switch_record_table[at].name == NULL)
        return "?";
    return switch_record_table[at].name;
}

const char *cluster_shape_name(int shape)
{
    return shapes != NULL && shape >= 0 && shape < shapes_count(shapes) ? shapes_name(shapes, shape)
                                                                        : "unknown";
}
