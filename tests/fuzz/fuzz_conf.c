/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fuzz target: elastic.conf. What is accepted is complete, and its own defaults are within its
 * own limits. */
#include "tests/fuzz/fuzz.h"

#include "lib/conf.h"

static void check_pools(const struct conf *conf)
{
    char names[256];

    for (int i = 0; i < conf->pool_count; i++) {
        MUST(conf->pools[i].name[0] != '\0' && conf->pools[i].partition != NULL);
        MUST(conf->pools[i].time_min > 0 && conf->pools[i].grace >= 0);
        MUST(conf->pools[i].price == -1 || conf->pools[i].price >= 0);
        MUST(conf->pools[i].max_resume > 0 && conf->pools[i].max_nodes >= 0);
        MUST(conf_pool(conf, conf->pools[i].name) == &conf->pools[i]);
    }
    conf_pool_names(conf, names, sizeof(names));
    MUST(conf->pool_count == 0 || conf->defaults.pool_count > 0);
}

static void check_conf(const struct conf *conf)
{
    struct error err = {""};
    char *path;

    MUST(conf->max_pending >= 1 && conf->heartbeat_timeout >= 1);
    MUST(conf->port_first >= 1024 && conf->port_last <= 65535);
    MUST(conf->port_last - conf->port_first + 1 >= CONF_PORTS_MIN);
    MUST(conf->pool_backoff_first >= 1 && conf->pool_backoff_first <= conf->pool_backoff_max);
    MUST(conf->state_dir != NULL && conf->snapshot_dir != NULL && conf->snapshot_dir[0] == '/');
    MUST(conf->defaults.grace >= 0 && conf->defaults.fault_wait >= 0);
    MUST(conf_check_policy(conf, &conf->defaults, &err) == 0);
    path = conf_expand(conf->state_dir, "/home/u", "u", "12", "cluster");
    MUST(path != NULL && path[0] == '/' && strstr(path, "12") != NULL);
    free(path);
    check_pools(conf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct error err = {""};
    struct conf *conf = conf_parse("elastic.conf", text, size, &err);

    if (conf != NULL)
        check_conf(conf);
    else
        fuzz_check_refusal(&err);
    conf_destroy(conf);
    free(text);
    return 0;
}
