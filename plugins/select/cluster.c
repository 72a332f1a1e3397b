/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Nodes, shapes and switches of slurmctld (cluster.h). */
#include "plugins/select/compat.h"

#include "plugins/select/cluster.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/conf_file.h"
#include "common/files.h"
#include "lib/shapes.h"
#include "plugins/select/switches.h"

/* Data, unlike functions, is bound when the plugin is loaded, which clients do as well: weak. */
#pragma weak node_record_count
#pragma weak node_record_table_ptr
#pragma weak slurm_conf

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

static void build_map(void)
{
    int *shape = filled(node_record_count), *leaf = filled(node_record_count), *parent = NULL;
    int switches = 0;

    drop_map();
    if (shape != NULL && leaf != NULL)
        switches = switches_read(leaf, &parent);
    if (parent == NULL) {
        free(shape);
        free(leaf);
        return;
    }
    for (int i = 0; i < node_record_count; i++)
        if (node_record_table_ptr[i] != NULL)
            shape[i] = shapes_of(shapes, node_record_table_ptr[i]->name);
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
    switches_forget();
    shapes_destroy(shapes);
    shapes = NULL;
}

const struct placement_map *cluster_map(void)
{
    return map.node_count > 0 && (map.switch_count > 0 || shapes != NULL) ? &map : NULL;
}

const char *cluster_switch_name(int at)
{
    return switches_name(at);
}

const char *cluster_shape_name(int shape)
{
    return shapes != NULL && shape >= 0 && shape < shapes_count(shapes) ? shapes_name(shapes, shape)
                                                                        : "unknown";
}
