/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shares of a node's CPUs (agent/workers/binding.c), on machines that hwloc makes up. */
#include "tests/unit/support.h"

#include <stdbool.h>

#include <hwloc.h>

#include "agent/workers/binding.h"
#include "lib/json_get.h"

/* The shares as one text, "0-3 4-7"; "-" when nothing is bound. */
static void split(const char *machine, const char *allowed, int slots, const char *gpus, char *text,
                  size_t size)
{
    struct error err = {""};
    struct binding *binding = binding_create_from(machine, allowed, &err);
    char **lists;
    size_t used = 0;

    assert_string_equal(err.text, "");
    assert_non_null(binding);
    lists = binding_split(binding, slots, gpus);
    snprintf(text, size, "-");
    for (int i = 0; lists != NULL && i <= slots; i++) {
        assert_true((lists[i] != NULL) == (i < slots));
        if (i < slots)
            used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? " " : "", lists[i]);
    }
    strings_free(lists);
    binding_destroy(binding);
}

static void test_shares(void **state)
{
    static const struct {
        const char *machine, *allowed;
        int slots;
        const char *expected;
    } cases[] = {
        {"node:1 core:8 pu:1", NULL, 1, "-"}, /* the whole: nothing to bind */
        {"node:1 core:8 pu:1", NULL, 2, "0-3 4-7"},
        {"node:1 core:8 pu:1", NULL, 8, "0 1 2 3 4 5 6 7"},
        {"node:1 core:8 pu:1", NULL, 9, "-"}, /* fewer cores than workers */
        {"node:1 core:1 pu:2", NULL, 2, "-"}, /* hyperthreads of one core are not shared out */
        {"node:1 core:4 pu:2", NULL, 2, "0-3 4-7"},
        {"node:1 core:4 pu:2", NULL, 4, "0-1 2-3 4-5 6-7"},
        {"node:2 core:4 pu:2", NULL, 2, "0-7 8-15"},
        {"node:2 core:4 pu:2", NULL, 4, "0-3 4-7 8-11 12-15"},
        /* caches: two workers share neither L3 nor NUMA node, four not an L3 */
        {"node:2 l3:2 core:2 pu:1", NULL, 2, "0-3 4-7"},
        {"node:2 l3:2 core:2 pu:1", NULL, 4, "0-1 2-3 4-5 6-7"},
        /* three over two NUMA nodes: none crosses */
        {"node:2 core:4 pu:1", NULL, 3, "0-1 2-3 4-7"},
        /* numbered as most servers do: hyperthreads in the upper half */
        {"node:2 core:2 pu:2(indexes=0,4,1,5,2,6,3,7)", NULL, 2, "0-1,4-5 2-3,6-7"},
        /* no more than Slurm gave */
        {"node:2 core:4 pu:1", "0-3", 2, "0-1 2-3"},
        {"node:2 core:4 pu:1", "2-5", 2, "2-3 4-5"},
        {"node:2 core:4 pu:1", "1,6", 2, "1 6"},
        {"node:2 core:4 pu:1", "7", 2, "-"},
        {"node:2 core:4 pu:2", "0,2,4,6", 4, "0 2 4 6"},
        {"node:1 core:4 pu:2", "0-3", 4, "-"}, /* two cores for four */
        {"node:4 core:16 pu:2", NULL, 8, "0-15 16-31 32-47 48-63 64-79 80-95 96-111 112-127"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[1024];

        split(cases[i].machine, cases[i].allowed, cases[i].slots, NULL, text, sizeof(text));
        if (strcmp(text, cases[i].expected) != 0)
            fail_msg("%s, allowed %s, %d workers: %s, expected %s", cases[i].machine,
                     cases[i].allowed ? cases[i].allowed : "all", cases[i].slots, text,
                     cases[i].expected);
    }
}

/* Whatever the machine and whatever Slurm gave of it: shares are disjoint, not empty, within
 * what was given, and cover whole cores. */
static void test_any_machine(void **state)
{
    static const char *const machines[] = {
        "node:1 core:6 pu:1", "node:2 core:3 pu:2",    "package:2 node:2 l3:2 core:2 pu:2",
        "core:7 pu:1",        "package:3 core:2 pu:4", "node:2 l3:1 core:8 pu:2",
    };
    uint64_t seed = 20240229;

    (void)state;
    for (int round = 0; round < 400; round++) {
        const char *machine = machines[random_below(&seed, COUNT(machines))];
        hwloc_bitmap_t given = hwloc_bitmap_alloc(), all = hwloc_bitmap_alloc(),
                       one = hwloc_bitmap_alloc();
        int slots = 2 + (int)random_below(&seed, 8);
        struct binding *binding;
        char *allowed, **lists;

        for (unsigned cpu = 0; cpu < 6; cpu++)
            if (random_below(&seed, 3) > 0)
                hwloc_bitmap_set(given, cpu);
        hwloc_bitmap_set(given, 2);
        hwloc_bitmap_list_asprintf(&allowed, given);
        binding = binding_create_from(machine, allowed, NULL);
        assert_non_null(binding);
        lists = binding_split(binding, slots, NULL);
        for (int i = 0; lists != NULL && i < slots; i++) {
            assert_int_equal(hwloc_bitmap_list_sscanf(one, lists[i]), 0);
            assert_false(hwloc_bitmap_iszero(one));
            assert_true(hwloc_bitmap_isincluded(one, given));
            assert_false(hwloc_bitmap_intersects(one, all));
            hwloc_bitmap_or(all, all, one);
        }
        if (lists != NULL)
            assert_true(hwloc_bitmap_isequal(all, given));
        strings_free(lists);
        binding_destroy(binding);
        free(allowed);
        hwloc_bitmap_free(given);
        hwloc_bitmap_free(all);
        hwloc_bitmap_free(one);
    }
}

/* ---- GPUs ------------------------------------------------------------------------------------ */

#define PCI_BUS(bus, device)                                                                       \
    "<object type=\"Bridge\" bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"0000:[" bus "-" bus      \
    "]\">"                                                                                         \
    "<object type=\"PCIDev\" pci_busid=\"0000:" bus ":00.0\" pci_type=\"" device                   \
    " [0000:0000] 00\"/></object>"
#define PCI_BUS_LINK(bus, device, link)                                                            \
    "<object type=\"Bridge\" bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"0000:[" bus "-" bus      \
    "]\">"                                                                                         \
    "<object type=\"PCIDev\" pci_busid=\"0000:" bus ":00.0\" pci_type=\"" device                   \
    " [0000:0000] 00\" pci_link_speed=\"" link "\"/></object>"
#define GPU         "0302 [10de:20b0]"
#define CONSOLE     "0300 [1a03:2000]"
#define ACCELERATOR "1200 [1002:740f]"
#define NETWORK     "0200 [15b3:101b]"
#define INFINIBAND  "0207 [15b3:101b]"

/* Put PCI buses under the packages of "package:2 core:4 pu:1", in the XML that hwloc itself
 * writes of it. */
static char *machine_with(const char *first, const char *second)
{
    hwloc_topology_t topology;
    char *xml, *text = NULL, *at, *ends[2];
    int length;

    hwloc_topology_init(&topology);
    assert_int_equal(hwloc_topology_set_synthetic(topology, "package:2 [numa] core:4 pu:1"), 0);
    assert_int_equal(hwloc_topology_load(topology), 0);
    assert_int_equal(hwloc_topology_export_xmlbuffer(topology, &xml, &length, 0), 0);
    /* A package ends where two objects do: that of its last core, and itself. I/O comes last in
     * it. */
    at = strstr(xml, "type=\"Package\" os_index=\"1\"");
    assert_non_null(at);
    while (at > xml && strncmp(at, "</object>", 9) != 0)
        at--;
    ends[0] = at;
    at = strstr(xml, "</topology>");
    for (int i = 0; i < 2; i++)
        do
            at--;
        while (strncmp(at, "</object>", 9) != 0);
    ends[1] = at;
    assert_true(asprintf(&text, "%.*s%s%.*s%s%s", (int)(ends[0] - xml), xml, first,
                         (int)(ends[1] - ends[0]), ends[0], second, ends[1]) > 0);
    hwloc_free_xmlbuffer(topology, xml);
    hwloc_topology_destroy(topology);
    return text;
}

static void test_near_gpus(void **state)
{
    static const struct {
        int slots;
        const char *gpus, *expected;
    } cases[] = {
        {4, "0,1,2,3", "0-1 2-3 4-5 6-7"},
        {4, "2,3,0,1", "4-5 6-7 0-1 2-3"},
        {4, "0,2,1,3", "0-1 4-5 2-3 6-7"},
        {2, "0,2", "0-3 4-7"},
        {2, "3,0", "4-7 0-3"},
        {2, "2,3", "0-3 4-7"},           /* both on one package: half of the CPUs would lie idle */
        {4, "0,1,2", "0-1 2-3 4-5 6-7"}, /* not one for each */
        {4, "2,3,0,9", "0-1 2-3 4-5 6-7"},
        {2, "GPU-8d9e,GPU-77aa", "0-3 4-7"},
        {2, "3-0", "0-3 4-7"},
        {2, "-3,0", "0-3 4-7"},
        {2, "", "0-3 4-7"},
        {2, "3,,0", "0-3 4-7"},
        {2, "99999999999999999999,0", "0-3 4-7"},
        {3, "3,0,1", "4-7 0-1 2-3"},
    };
    char *machine = machine_with(PCI_BUS("01", NETWORK) PCI_BUS("02", GPU) PCI_BUS("03", GPU),
                                 PCI_BUS("81", GPU) PCI_BUS("82", GPU));

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[256];

        split(machine, NULL, cases[i].slots, cases[i].gpus, text, sizeof(text));
        if (strcmp(text, cases[i].expected) != 0)
            fail_msg("GPUs %s, %d workers: %s, expected %s", cases[i].gpus, cases[i].slots, text,
                     cases[i].expected);
    }
    free(machine);
}

/* Slurm gave CPUs of the other package only: no share is empty, and all are used. */
static void test_gpus_far_away(void **state)
{
    char *machine = machine_with(PCI_BUS("02", GPU) PCI_BUS("03", GPU), PCI_BUS("81", GPU));
    char text[256];

    (void)state;
    split(machine, "4-7", 2, "0,1", text, sizeof(text));
    assert_string_equal(text, "4-5 6-7");
    free(machine);
}

/* A server draws its console with a VGA controller that is no GPU; an accelerator is one. */
static void test_what_is_a_gpu(void **state)
{
    char *machine = machine_with(PCI_BUS("01", CONSOLE) PCI_BUS("02", GPU),
                                 PCI_BUS("81", ACCELERATOR) PCI_BUS("82", ACCELERATOR));
    char text[256];

    (void)state;
    split(machine, NULL, 2, "0,1", text, sizeof(text));
    assert_string_equal(text, "0-3 4-7");
    split(machine, NULL, 2, "1,0", text, sizeof(text));
    assert_string_equal(text, "4-7 0-3");
    split(machine, NULL, 3, "2,1,0", text, sizeof(text));
    assert_string_equal(text, "4-5 6-7 0-3");
    free(machine);
}

/* ---- NICs ------------------------------------------------------------------------------------ */

static void test_near_nics(void **state)
{
    static const struct {
        const char *first, *second;
        int slots;
        const char *gpus, *expected;
    } cases[] = {
        {"", PCI_BUS("81", NETWORK), 2, NULL, "4-7 0-3"},
        {"", PCI_BUS("81", NETWORK), 4, NULL, "4-5 6-7 0-1 2-3"},
        {"", PCI_BUS("81", NETWORK), 3, NULL, "4-7 0-1 2-3"},
        {PCI_BUS("02", NETWORK), "", 4, NULL, "0-1 2-3 4-5 6-7"},
        {PCI_BUS("02", NETWORK), PCI_BUS("81", NETWORK), 2, NULL, "0-3 4-7"},
        /* the one that carries the job */
        {PCI_BUS("02", NETWORK), PCI_BUS("81", INFINIBAND), 2, NULL, "4-7 0-3"},
        {PCI_BUS("02", INFINIBAND), PCI_BUS("81", NETWORK), 2, NULL, "0-3 4-7"},
        {PCI_BUS("02", NETWORK), PCI_BUS_LINK("81", NETWORK, "31.5"), 2, NULL, "4-7 0-3"},
        {PCI_BUS_LINK("02", NETWORK, "31.5"), PCI_BUS("81", INFINIBAND), 2, NULL, "4-7 0-3"},
        /* no NIC, and GPUs, which come before */
        {PCI_BUS("02", GPU), PCI_BUS("81", GPU), 2, NULL, "0-3 4-7"},
        {PCI_BUS("02", GPU), PCI_BUS("81", NETWORK) PCI_BUS("82", GPU), 2, "0,1", "0-3 4-7"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *machine = machine_with(cases[i].first, cases[i].second), text[256];

        split(machine, NULL, cases[i].slots, cases[i].gpus, text, sizeof(text));
        if (strcmp(text, cases[i].expected) != 0)
            fail_msg("case %zu: %s, expected %s", i, text, cases[i].expected);
        free(machine);
    }
}

/* Machines as they are. */
static void test_real_machines(void **state)
{
    static const struct {
        const char *file, *allowed;
        int slots;
        const char *gpus, *expected;
    } cases[] = {
        /* the console is before the GPUs on the bus */
        {"dual-socket-8gpu", NULL, 8, "0,1,2,3,4,5,6,7",
         "0-3 4-7 8-11 12-15 16-19 20-23 24-27 28-31"},
        {"dual-socket-8gpu", NULL, 2, "7,0", "16-31 0-15"},
        {"dual-socket-8gpu", "0-7,24-31", 4, "0,1,4,5", "0-3 4-7 24-27 28-31"},
        {"four-numa", NULL, 4, "3,2,1,0", "24-31 16-23 8-15 0-7"},
        /* NICs at domains 0 and 2 */
        {"four-numa", NULL, 4, NULL, "0-7 16-23 8-15 24-31"},
        {"four-numa", NULL, 2, NULL, "0-15 16-31"},
        /* fast cores have two threads, slow ones one: six fast ones, or two and eight slow ones */
        {"hybrid", NULL, 2, NULL, "0-11 12-16,18,20,22,24,26,28,30"},
        {"hybrid", NULL, 2, "0,0", "0-11 12-16,18,20,22,24,26,28,30"},
        {"one-package", NULL, 2, NULL, "0-3 4-7"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char path[256], text[512], *machine;

        snprintf(path, sizeof(path), "tests/unit/machines/%s.xml", cases[i].file);
        machine = read_tree_file(path);
        split(machine, cases[i].allowed, cases[i].slots, cases[i].gpus, text, sizeof(text));
        if (strcmp(text, cases[i].expected) != 0)
            fail_msg("%s, GPUs %s, %d workers: %s, expected %s", cases[i].file,
                     cases[i].gpus != NULL ? cases[i].gpus : "unknown", cases[i].slots, text,
                     cases[i].expected);
        free(machine);
    }
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void test_errors(void **state)
{
    static const struct {
        const char *description, *allowed, *message;
    } cases[] = {
        {"nonsense", NULL, "hwloc: the topology cannot be loaded"},
        {"<nonsense/>", NULL, "hwloc: the topology cannot be loaded"},
        {"core:4 pu:1", "9", "hwloc: no such CPUs"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct error err = {""};

        assert_null(binding_create_from(cases[i].description, cases[i].allowed, &err));
        assert_string_equal(err.text, cases[i].message);
    }
    assert_null(binding_split(NULL, 2, NULL));
    binding_destroy(NULL);
}

static void test_this_machine(void **state)
{
    const struct binding *machine = binding_of_machine();
    char **lists;

    (void)state;
    assert_non_null(machine);
    assert_ptr_equal(binding_of_machine(), machine);
    lists = binding_split(machine, 100000, NULL);
    assert_null(lists);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),        cmocka_unit_test(test_any_machine),
        cmocka_unit_test(test_near_gpus),     cmocka_unit_test(test_gpus_far_away),
        cmocka_unit_test(test_what_is_a_gpu), cmocka_unit_test(test_near_nics),
        cmocka_unit_test(test_real_machines), cmocka_unit_test(test_errors),
        cmocka_unit_test(test_this_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
