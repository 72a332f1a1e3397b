/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shapes of nodes (lib/machine.c, cmd/machine_find.c), of machines that hwloc makes up and of
 * files in machines/. */
#include "tests/unit/support.h"

#include <dirent.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hwloc.h>

#include "cmd/machine_find.h"
#include "common/files.h"
#include "lib/pci.h"
#include "lib/text.h"

/* ---- files ----------------------------------------------------------------------------------- */

static char *read_machine(const char *name)
{
    char path[256];

    snprintf(path, sizeof(path), "tests/unit/machines/%s.xml", name);
    return read_tree_file(path);
}

/* xml with the first `what` after the first `after` replaced; freed and new. */
static char *change(char *xml, const char *after, const char *what, const char *by)
{
    char *at = strstr(xml, after), *changed = NULL;

    assert_non_null(at);
    at = strstr(at, what);
    assert_non_null(at);
    assert_true(asprintf(&changed, "%.*s%s%s", (int)(at - xml), xml, by, at + strlen(what)) > 0);
    free(xml);
    return changed;
}

static struct machine find(const char *description)
{
    struct machine machine;
    struct error err = {""};

    if (machine_find(description, &machine, &err) != 0)
        fail_msg("%s", err.text);
    return machine;
}

static struct machine find_freed(char *xml)
{
    struct machine machine = find(xml);

    free(xml);
    return machine;
}

static void assert_json(const struct machine *machine, const char *expected)
{
    json_object *json = machine_to_json(machine);

    assert_string_equal(json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN), expected);
    json_object_put(json);
}

/* The differences as one text, "; " between them. */
static void assert_differences(const struct machine *machine, const struct machine *usual,
                               const char *expected)
{
    char **lines = machine_differences(machine, usual), text[2048] = "";

    assert_non_null(lines);
    for (int i = 0; lines[i] != NULL; i++) {
        assert_one_line(lines[i]);
        text_append(text, sizeof(text), "%s%s", i > 0 ? "; " : "", lines[i]);
    }
    assert_string_equal(text, expected);
    strings_free(lines);
}

static void test_real_machines(void **state)
{
    static const struct {
        const char *file, *name, *summary;
    } cases[] = {
        {"dual-socket-8gpu", "2x16c-512g-8gpu-",
         "2 packages, 2 NUMA domains, 32 cores, 32 threads, 512 GiB, 8 GPUs, 9 NICs"},
        {"four-numa", "1x32c-256g-4gpu-",
         "1 package, 4 NUMA domains, 32 cores, 32 threads, 256 GiB, 4 GPUs, 2 NICs"},
        {"hybrid", "1x16c-32g-1gpu-",
         "1 package, 1 NUMA domain, 16 cores, 24 threads, 32 GiB, 1 GPU, 1 NIC"},
        {"one-package", "1x4c-16g-", "1 package, 1 NUMA domain, 4 cores, 8 threads, 16 GiB, 1 NIC"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct machine machine = find_freed(read_machine(cases[i].file));
        char name[MACHINE_NAME_MAX], summary[256];

        machine_name(&machine, name, sizeof(name));
        assert_memory_equal(name, cases[i].name, strlen(cases[i].name));
        assert_int_equal(strlen(name), strlen(cases[i].name) + 6);
        assert_string_equal(machine_describe(&machine, summary, sizeof(summary)), cases[i].summary);
    }
}

static void test_descriptions(void **state)
{
    struct machine gpus = find_freed(read_machine("four-numa"));
    struct machine hybrid = find_freed(read_machine("hybrid"));

    (void)state;
    assert_json(&gpus,
                "{\"cpu\":\"AMD EPYC 7543P 32-Core Processor\",\"packages\":1,\"cores\":32,"
                "\"threads\":32,\"l2\":{\"count\":32,\"kib\":512},\"l3\":{\"count\":4,"
                "\"kib\":32768},\"numa\":[{\"count\":4,\"cores\":8,\"threads\":8,"
                "\"memory_mib\":65536}],\"gpus\":["
                "{\"count\":1,\"near\":\"0\",\"model\":\"10de:20b0\",\"link\":31508},"
                "{\"count\":1,\"near\":\"1\",\"model\":\"10de:20b0\",\"link\":31508},"
                "{\"count\":1,\"near\":\"2\",\"model\":\"10de:20b0\",\"link\":31508},"
                "{\"count\":1,\"near\":\"3\",\"model\":\"10de:20b0\",\"link\":31508}],\"nics\":["
                "{\"count\":1,\"near\":\"0\",\"model\":\"15b3:101b\",\"link\":31508},"
                "{\"count\":1,\"near\":\"2\",\"model\":\"15b3:101b\",\"link\":31508}]}");
    assert_int_equal(hybrid.kind_count, 2);
    assert_int_equal(hybrid.kinds[0].threads, 8);  /* slow */
    assert_int_equal(hybrid.kinds[1].threads, 16); /* fast */
}

static void test_synthetic(void **state)
{
    struct machine machine = find(
        "pack:2 numa:1(memory=34359738368) l3:2(size=4194304) core:4 pu:2");
    struct machine bare = find("pu:3"), broken;
    struct error err = {""};

    (void)state;
    assert_json(&machine, "{\"packages\":2,\"cores\":16,\"threads\":32,"
                          "\"l3\":{\"count\":4,\"kib\":4096},\"numa\":[{\"count\":2,\"cores\":8,"
                          "\"threads\":16,\"memory_mib\":32768}]}");
    assert_int_equal(bare.cores, 3); /* hwloc shows none: threads stand for them */
    assert_int_equal(bare.packages, 1);
    assert_int_equal(machine_find("nonsense", &broken, &err), -1);
    assert_string_equal(err.text, "hwloc: the topology cannot be loaded");
    assert_int_equal(machine_find("<nonsense/>", &broken, &err), -1);
    assert_int_equal(machine_find(NULL, &machine, &err), 0);
    assert_true(machine.threads > 0 && machine.cores > 0);
}

/* ---- what is odd ----------------------------------------------------------------------------- */

#define FIRST_GPU "pci_busid=\"0000:07:00.0\""
#define GPU_TYPE  "0302 [10de:20b0]"

static void test_differences(void **state)
{
    struct machine usual = find_freed(read_machine("dual-socket-8gpu"));
    struct machine no_gpu = find_freed(
        change(read_machine("dual-socket-8gpu"), FIRST_GPU, GPU_TYPE, "ff00 [0000:0000]"));
    struct machine other_gpu = find_freed(
        change(read_machine("dual-socket-8gpu"), FIRST_GPU, GPU_TYPE, "0302 [10de:20f1]"));
    struct machine slow = find_freed(change(
        read_machine("dual-socket-8gpu"), "pci_busid=\"0000:94:00.0\"", "31.507692", "15.753846"));
    struct machine no_dimm = find_freed(
        change(read_machine("dual-socket-8gpu"), "type=\"NUMANode\" os_index=\"1\"",
               "local_memory=\"270582939648\"", "local_memory=\"236223201280\""));
    struct machine other = find_freed(read_machine("four-numa"));
    char name[MACHINE_NAME_MAX], odd[MACHINE_NAME_MAX];

    (void)state;
    assert_differences(&usual, &usual, "");
    assert_differences(&no_gpu, &usual, "3 GPUs (10de:20b0) near NUMA domain 0 instead of 4");
    assert_differences(&usual, &no_gpu, "4 GPUs (10de:20b0) near NUMA domain 0 instead of 3");
    assert_differences(&other_gpu, &usual,
                       "3 GPUs (10de:20b0) near NUMA domain 0 instead of 4; "
                       "1 GPU (10de:20f1) near NUMA domain 0 that others have not");
    assert_differences(&slow, &usual,
                       "a NIC near NUMA domain 1 with a link of 15.8 GB/s instead of 31.5 GB/s");
    assert_differences(&no_dimm, &usual,
                       "about 228 GiB of memory instead of 256 GiB in NUMA domain 1");
    assert_differences(&other, &usual,
                       "CPU 'AMD EPYC 7543P 32-Core Processor' instead of "
                       "'AMD EPYC 7343 16-Core Processor'; "
                       "1 package instead of 2; L2 cache: 32 of 512 KiB instead of 32 of 1024 KiB; "
                       "L3 cache: 4 of 32768 KiB instead of 4 of 65536 KiB; "
                       "4 NUMA domains instead of 2; about 256 GiB of memory instead of 512 GiB; "
                       "1 GPU (10de:20b0) near NUMA domain 0 instead of 4; "
                       "1 GPU (10de:20b0) near NUMA domain 1 instead of 4; "
                       "1 NIC (15b3:101b) near NUMA domain 0 instead of 4; "
                       "0 NICs (8086:1563) near NUMA domain 0 instead of 1; "
                       "0 NICs (15b3:101b) near NUMA domain 1 instead of 4; "
                       "1 GPU (10de:20b0) near NUMA domain 2 that others have not; "
                       "1 GPU (10de:20b0) near NUMA domain 3 that others have not; "
                       "1 NIC (15b3:101b) near NUMA domain 2 that others have not");
    machine_name(&usual, name, sizeof(name));
    machine_name(&slow, odd, sizeof(odd));
    assert_string_not_equal(name, odd);
}

/* What differs between nodes that are alike, and must not show. */
static void test_not_odd(void **state)
{
    struct machine usual = find_freed(read_machine("dual-socket-8gpu"));
    char name[MACHINE_NAME_MAX], same[MACHINE_NAME_MAX];
    struct machine machine;
    char *xml;

    (void)state;
    machine_name(&usual, name, sizeof(name));
    /* The kernel has taken 1 GiB more on this one, and a device has another place on the bus. */
    xml = change(read_machine("dual-socket-8gpu"), "type=\"NUMANode\" os_index=\"0\"",
                 "local_memory=\"270582939648\"", "local_memory=\"269509197824\"");
    xml = change(xml, FIRST_GPU, "0000:07:00.0", "0000:13:00.0");
    machine = find_freed(xml);
    assert_differences(&machine, &usual, "");
    machine_name(&machine, same, sizeof(same));
    assert_string_equal(name, same);
    /* A disk more or less. */
    xml = change(read_machine("dual-socket-8gpu"), "pci_busid=\"0000:02:00.0\"", "0108 [144d:a80a]",
                 "0780 [8086:a1ba]");
    machine = find_freed(xml);
    machine_name(&machine, same, sizeof(same));
    assert_string_equal(name, same);
}

static void test_rates(void **state)
{
    struct machine usual = find_freed(read_machine("one-package")), slow = usual;

    (void)state;
    usual.devices[0].rate = 100000;
    slow.devices[0].rate = 10000;
    assert_differences(&slow, &usual, "a NIC with 10.0 Gbit/s instead of 100.0 Gbit/s");
    slow.devices[0].rate = 0;
    assert_differences(&slow, &usual, "a NIC with 0.0 Gbit/s instead of 100.0 Gbit/s");
    slow = usual;
    slow.devices[0].link = 0; /* not known is not slow */
    assert_differences(&slow, &usual, "");
}

/* ---- reducing -------------------------------------------------------------------------------- */

static void test_memory(void **state)
{
    static const struct {
        int64_t mib, expected;
    } cases[] = {
        {-1, 0},
        {0, 0},
        {1, 64},
        {1000, 1024},
        {15500, 15 * 1024 + 512 + 512},
        {31900, 32768},
        {64200, 65536},
        {128600, 131072},
        {257500, 262144},
        {515000, 524288},
        {1031000, 1048576},
        {193100, 196608},
        /* one DIMM of twelve is missing */
        {236000, 245760},
        {177000, 184320},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(machine_round_memory(cases[i].mib), cases[i].expected);
        /* Once rounded it stays. */
        assert_int_equal(machine_round_memory(cases[i].expected), cases[i].expected);
    }
    for (int64_t mib = 1, last = 0; mib < (1 << 22); mib += 997) {
        int64_t rounded = machine_round_memory(mib);

        assert_true(rounded >= mib && rounded >= last &&
                    (rounded - mib) * 1000 <= mib * 75 + 64000);
        last = rounded;
    }
}

static void test_reduce(void **state)
{
    struct machine m = {
        .cpu = "  Some \t \"CPU\"  @\x1b[31m 2 GHz  ",
        .domains = {{8, 16, 65000}, {0, 0, 0}, {8, 16, 65000}, {0, 0, 0}, {0, 0, 90000}},
        .domain_count = 5,
        .devices = {{MACHINE_NIC, 1, 1, 4, 10, 0},
                    {MACHINE_GPU, 1, 2, 4, 10, 0},
                    {MACHINE_GPU, 1, 2, 1, 10, 0},
                    {MACHINE_GPU, 1, 1, 31, 10, 0}},
        .device_count = 4,
        .kind_count = 1,
    };

    (void)state;
    machine_reduce(&m);
    assert_string_equal(m.cpu, "Some CPU @[31m 2 GHz");
    assert_int_equal(m.domain_count, 3);
    assert_int_equal(m.domains[1].memory_mib, 65536);
    assert_int_equal(m.domains[2].memory_mib, 92160);
    assert_int_equal(m.kind_count, 0);
    /* GPUs first, by place; places count what is left. */
    assert_int_equal(m.devices[0].near, 1);
    assert_int_equal(m.devices[1].near, 2);
    assert_int_equal(m.devices[2].near, 7);
    assert_int_equal(m.devices[3].kind, MACHINE_NIC);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static struct machine random_machine(uint64_t *seed)
{
    struct machine m = {.packages = 1 + (int)random_below(seed, 4),
                        .cores = (int)random_below(seed, 65537),
                        .threads = (int)random_below(seed, 65537)};

    snprintf(m.cpu, sizeof(m.cpu), "CPU %u", random_below(seed, 3));
    if (random_below(seed, 3) > 0)
        m.l2 = (struct machine_cache){1 + (int)random_below(seed, 3), 512};
    m.kind_count = (int)random_below(seed, 2) * 2;
    for (int i = 0; i < m.kind_count; i++)
        m.kinds[i] = (struct machine_kind){(int)random_below(seed, 9), (int)random_below(seed, 9)};
    m.domain_count = (int)random_below(seed, MACHINE_DOMAINS_MAX + 1);
    for (int i = 0; i < m.domain_count; i++)
        m.domains[i] = (struct machine_domain){
            (int)random_below(seed, 2), (int)random_below(seed, 2), random_below(seed, 3) * 5000};
    m.device_count = (int)random_below(seed, 12);
    for (int i = 0; i < m.device_count; i++)
        m.devices[i] = (struct machine_device){
            .kind = random_below(seed, 2) ? MACHINE_GPU : MACHINE_NIC,
            .vendor = 0x10de,
            .model = random_below(seed, 3),
            .near = (uint64_t)random_next(seed) << 32 | random_next(seed),
            .link = (int)random_below(seed, 3),
            .rate = (int)random_below(seed, 3),
        };
    machine_reduce(&m);
    return m;
}

static void test_json_both_ways(void **state)
{
    uint64_t seed = 20260711;

    (void)state;
    for (int round = 0; round < 500; round++) {
        struct machine m = random_machine(&seed), back;
        struct error err = {""};
        json_object *json = machine_to_json(&m);

        if (machine_from_json(json, &back, &err) != 0)
            fail_msg("%s", err.text);
        assert_json(&back, json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN));
        assert_differences(&back, &m, "");
        json_object_put(json);
    }
}

static void test_json_refused(void **state)
{
    static const struct {
        const char *json, *message;
    } cases[] = {
        {"[]", "not an object"},
        {"{\"cores\":-1}", "'cores' is not a whole number from 0 to 65536"},
        {"{\"cores\":1.5}", "'cores' is not a whole number from 0 to 65536"},
        {"{\"l3\":{\"count\":\"1\"}}", "'l3': 'count' is not a whole number from 0 to 65536"},
        {"{\"numa\":{}}", "'numa' is not a list"},
        {"{\"numa\":[{\"cores\":1}]}", "'numa': 'count' is missing, or there are more than 64"},
        {"{\"numa\":[{\"count\":65}]}", "'numa': 'count' is missing, or there are more than 64"},
        {"{\"numa\":[{\"count\":64},{\"count\":1}]}",
         "'numa': 'count' is missing, or there are more than 64"},
        {"{\"numa\":[3]}", "'numa': 'count' is missing, or there are more than 64"},
        {"{\"gpus\":[{\"count\":257,\"near\":\"\",\"model\":\"10de:20b0\"}]}",
         "'gpus': 'count' is missing, or there are more than 256"},
        {"{\"gpus\":[{\"count\":1,\"near\":\"64\",\"model\":\"10de:20b0\"}]}",
         "'gpus': 'near' is not a list of NUMA domains below 64 (0-3,6)"},
        {"{\"gpus\":[{\"count\":1,\"near\":\"3-1\",\"model\":\"10de:20b0\"}]}",
         "'gpus': 'near' is not a list of NUMA domains below 64 (0-3,6)"},
        {"{\"gpus\":[{\"count\":1,\"model\":\"10de:20b0\"}]}",
         "'gpus': 'near' is not a list of NUMA domains below 64 (0-3,6)"},
        {"{\"nics\":[{\"count\":1,\"near\":\"0\",\"model\":\"mlx5\"}]}",
         "'nics': 'model' is not PCI's vendor:device (10de:20b0)"},
        {"{\"kinds\":[{},{},{},{},{},{},{},{},{}]}", "'kinds': more than 8"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct machine m;
        struct error err = {""};
        json_object *json = json_tokener_parse(cases[i].json);

        assert_non_null(json);
        assert_int_equal(machine_from_json(json, &m, &err), -1);
        assert_string_equal(err.text, cases[i].message);
        json_object_put(json);
    }
}

/* ---- devices --------------------------------------------------------------------------------- */

static void test_pci(void **state)
{
    (void)state;
    assert_true(pci_is_gpu(0x0302, 0x10de)); /* a GPU without a display */
    assert_true(pci_is_gpu(0x0300, 0x10de)); /* one with */
    assert_true(pci_is_gpu(0x0380, 0x1002));
    assert_true(pci_is_gpu(0x1200, 0x1002));  /* an accelerator */
    assert_false(pci_is_gpu(0x0300, 0x1a03)); /* the console of a server */
    assert_false(pci_is_gpu(0x0300, 0x102b));
    assert_false(pci_is_gpu(0x0300, 0x8086));
    assert_false(pci_is_gpu(0x0108, 0x10de));
    assert_true(pci_is_nic(0x0200));
    assert_true(pci_is_nic(0x0207));
    assert_true(pci_is_nic(0x0c06));
    assert_true(pci_is_ethernet(0x0200));
    assert_false(pci_is_ethernet(0x0207));
    assert_false(pci_is_nic(0x0302));
    assert_false(pci_is_nic(0x0c03));
}

/* Make a file of a directory tree like /sys. */
static void put(const char *root, const char *path, const char *text)
{
    char full[512];
    FILE *file;

    snprintf(full, sizeof(full), "%s/%s", root, path);
    for (char *s = full + strlen(root) + 1; (s = strchr(s, '/')) != NULL; s++) {
        *s = '\0';
        mkdir(full, 0700);
        *s = '/';
    }
    file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void test_links(void **state)
{
    char root[] = "/tmp/elastic-test-sys.XXXXXX";
    struct error err;

    (void)state;
    assert_non_null(mkdtemp(root));
    put(root, "bus/pci/devices/0000:07:00.0/current_link_width", "16\n");
    put(root, "bus/pci/devices/0000:07:00.0/current_link_speed", "2.5 GT/s PCIe\n");
    put(root, "bus/pci/devices/0000:07:00.0/max_link_speed", "16.0 GT/s PCIe\n");
    put(root, "bus/pci/devices/0000:08:00.0/current_link_width", "63\n");
    put(root, "bus/pci/devices/0000:08:00.0/current_link_speed", "Unknown\n");
    put(root, "bus/pci/devices/0000:09:00.0/net/eth0/speed", "100000\n");
    put(root, "bus/pci/devices/0000:09:00.0/net/eth1/speed", "-1\n");
    put(root, "bus/pci/devices/0000:0a:00.0/infiniband/mlx5_0/ports/1/rate",
        "200 Gb/sec (4X HDR)\n");
    put(root, "bus/pci/devices/0000:0a:00.0/net/ib0/speed", "100000\n");
    put(root, "bus/pci/devices/0000:0b:00.0/net/eth2/speed", "-1\n");
    /* As wide as it is, as fast as it can: an idle GPU saves power. */
    assert_int_equal(machine_pci_link(root, "0000:07:00.0", true), 31508);
    assert_int_equal(machine_pci_link(root, "0000:07:00.0", false), 4000);
    assert_int_equal(machine_pci_link(root, "0000:08:00.0", false), 0);
    assert_int_equal(machine_pci_link(root, "0000:ff:00.0", true), 0);
    assert_int_equal(machine_port_rate(root, "0000:09:00.0"), 100000);
    assert_int_equal(machine_port_rate(root, "0000:0a:00.0"), 200000);
    assert_int_equal(machine_port_rate(root, "0000:0b:00.0"), 0);
    assert_int_equal(machine_port_rate(root, "0000:ff:00.0"), 0);
    assert_int_equal(dir_remove(root, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_real_machines),
        cmocka_unit_test(test_descriptions),
        cmocka_unit_test(test_synthetic),
        cmocka_unit_test(test_differences),
        cmocka_unit_test(test_not_odd),
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_reduce),
        cmocka_unit_test(test_json_both_ways),
        cmocka_unit_test(test_json_refused),
        cmocka_unit_test(test_pci),
        cmocka_unit_test(test_links),
    };

    static hwloc_topology_t kept;

    /* hwloc unloads its plugins with the last topology, and what libpciaccess has behind them
     * then counts as lost. */
    assert_int_equal(hwloc_topology_init(&kept), 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
