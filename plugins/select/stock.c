/* SPDX-License-Identifier: GPL-2.0-or-later */
/* select/cons_tres, and all calls that go straight to it (stock.h).
 *
 * It is loaded by dlopen and not linked: it reads its own symbol plugin_id, which our symbol would
 * replace. Where slurmctld has loaded it as well, as it does with all select plugins that it finds,
 * both are the same copy in memory.
 *
 * Commands load this plugin, too. They have the functions of libslurm, which since 24.05 are only
 * those named slurm_*. So init() and fini() need no others, such as plugin_context_create(). */
#include "plugins/select/compat.h"

#include "plugins/select/stock.h"

#define SYMBOL(type, name, parameters, arguments) "select_p_" #name,
static const char *symbols[] = {OURS(SYMBOL) STRAIGHT(SYMBOL)};

_Static_assert(sizeof(symbols) == sizeof(struct stock), "a name for each function");

struct stock stock;
static plugin_handle_t handle = PLUGIN_INVALID_HANDLE;

int stock_load(void)
{
    handle = plugin_load_and_link("select/cons_tres", (int)(sizeof(symbols) / sizeof(symbols[0])),
                                  symbols, (void **)&stock);
    if (handle != PLUGIN_INVALID_HANDLE)
        return SLURM_SUCCESS;
    error("select/elastic_cons_tres: cannot load select/cons_tres");
    return SLURM_ERROR;
}

void stock_unload(void)
{
    if (handle != PLUGIN_INVALID_HANDLE)
        plugin_unload(handle);
    handle = PLUGIN_INVALID_HANDLE;
}

/* select_p_NAME(PARAMETERS), which does no more than to call the one of select/cons_tres. */
#define HAND_ON(type, name, parameters, arguments)                                                 \
    extern type select_p_##name parameters;                                                        \
    type select_p_##name parameters                                                                \
    {                                                                                              \
        return stock.name arguments;                                                               \
    }

STRAIGHT(HAND_ON)
