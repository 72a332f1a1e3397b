/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The shape of a node as JSON (machine.h).
 *
 * Equal parts that stand together are written once, with their number. */
#include "lib/machine.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/json_get.h"
#include "lib/number.h"
#include "lib/text.h"

#define CORES_MAX  65536
#define CACHE_MAX  (1 << 30)          /* KiB */
#define MEMORY_MAX (INT64_C(1) << 40) /* MiB */
#define LINK_MAX   100000000          /* MB/s, Mbit/s */
#define NEAR_TEXT  256

/* ---- writing --------------------------------------------------------------------------------- */

static void add_int(json_object *object, const char *key, int64_t value)
{
    json_object_object_add(object, key, json_object_new_int64(value));
}

static void add_cache(json_object *object, const char *key, struct machine_cache cache)
{
    json_object *json;

    if (cache.count == 0)
        return;
    json = json_object_new_object();
    add_int(json, "count", cache.count);
    add_int(json, "kib", cache.kib);
    json_object_object_add(object, key, json);
}

static json_object *domains_json(const struct machine *m)
{
    json_object *array = json_object_new_array();

    for (int i = 0, count; i < m->domain_count; i += count) {
        const struct machine_domain *d = &m->domains[i];
        json_object *json = json_object_new_object();

        count = 1;
        while (i + count < m->domain_count && d[count].cores == d->cores &&
               d[count].threads == d->threads && d[count].memory_mib == d->memory_mib)
            count++;
        add_int(json, "count", count);
        add_int(json, "cores", d->cores);
        add_int(json, "threads", d->threads);
        add_int(json, "memory_mib", d->memory_mib);
        json_object_array_add(array, json);
    }
    return array;
}

static json_object *kinds_json(const struct machine *m)
{
    json_object *array = json_object_new_array();

    for (int i = 0; i < m->kind_count; i++) {
        json_object *json = json_object_new_object();

        add_int(json, "cores", m->kinds[i].cores);
        add_int(json, "threads", m->kinds[i].threads);
        json_object_array_add(array, json);
    }
    return array;
}

/* "0-3,6" */
static void near_text(uint64_t near, char *text, size_t size)
{
    text[0] = '\0';
    for (int i = 0, last; i < MACHINE_DOMAINS_MAX; i = last + 1) {
        last = i;
        if ((near >> i & 1) == 0)
            continue;
        while (last + 1 < MACHINE_DOMAINS_MAX && (near >> (last + 1) & 1) != 0)
            last++;
        text_append(text, size, last > i ? "%s%d-%d" : "%s%d", text[0] != '\0' ? "," : "", i, last);
    }
}

static json_object *device_json(const struct machine_device *device, int count)
{
    json_object *json = json_object_new_object();
    char near[NEAR_TEXT], model[16];

    near_text(device->near, near, sizeof(near));
    snprintf(model, sizeof(model), "%04x:%04x", device->vendor, device->model);
    add_int(json, "count", count);
    json_object_object_add(json, "near", json_object_new_string(near));
    json_object_object_add(json, "model", json_object_new_string(model));
    if (device->link > 0)
        add_int(json, "link", device->link);
    if (device->rate > 0)
        add_int(json, "rate", device->rate);
    return json;
}

static bool same_device(const struct machine_device *a, const struct machine_device *b)
{
    return a->kind == b->kind && a->near == b->near && a->vendor == b->vendor &&
           a->model == b->model && a->link == b->link && a->rate == b->rate;
}

static json_object *devices_json(const struct machine *m, enum machine_device_kind kind)
{
    json_object *array = json_object_new_array();

    for (int i = 0, count; i < m->device_count; i += count) {
        count = 1;
        while (i + count < m->device_count && same_device(&m->devices[i], &m->devices[i + count]))
            count++;
        if (m->devices[i].kind == kind)
            json_object_array_add(array, device_json(&m->devices[i], count));
    }
    return array;
}

/* Key left out where there is nothing to say. */
static void add_list(json_object *object, const char *key, json_object *list)
{
    if (json_object_array_length(list) > 0)
        json_object_object_add(object, key, list);
    else
        json_object_put(list);
}

json_object *machine_to_json(const struct machine *m)
{
    json_object *object = json_object_new_object();

    if (m->cpu[0] != '\0')
        json_object_object_add(object, "cpu", json_object_new_string(m->cpu));
    add_int(object, "packages", m->packages);
    add_int(object, "cores", m->cores);
    add_int(object, "threads", m->threads);
    add_list(object, "kinds", kinds_json(m));
    add_cache(object, "l2", m->l2);
    add_cache(object, "l3", m->l3);
    add_list(object, "numa", domains_json(m));
    add_list(object, "gpus", devices_json(m, MACHINE_GPU));
    add_list(object, "nics", devices_json(m, MACHINE_NIC));
    return object;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int read_int(json_object *object, const char *key, int64_t max, int64_t *value,
                    struct error *err)
{
    json_object *there = NULL;

    if (!json_object_object_get_ex(object, key, &there)) {
        *value = 0;
        return 0;
    }
    if (!json_get_int(object, key, 0, max, value))
        return error_set(err, "'%s' is not a whole number from 0 to %lld", key, (long long)max);
    return 0;
}

static int read_small(json_object *object, const char *key, int max, int *value, struct error *err)
{
    int64_t wide;

    if (read_int(object, key, max, &wide, err) < 0)
        return -1;
    *value = (int)wide;
    return 0;
}

static int read_cache(json_object *object, const char *key, struct machine_cache *cache,
                      struct error *err)
{
    json_object *json = NULL;

    if (!json_object_object_get_ex(object, key, &json))
        return 0;
    if (read_small(json, "count", CORES_MAX, &cache->count, err) < 0 ||
        read_small(json, "kib", CACHE_MAX, &cache->kib, err) < 0)
        return error_prefix(err, "'%s'", key);
    return 0;
}

/* For each entry of the list under key, if there is one. */
static int read_list(json_object *object, const char *key,
                     int (*entry)(json_object *, struct machine *, struct error *),
                     struct machine *m, struct error *err)
{
    json_object *list = NULL;

    if (!json_object_object_get_ex(object, key, &list))
        return 0;
    if (!json_object_is_type(list, json_type_array))
        return error_set(err, "'%s' is not a list", key);
    for (size_t i = 0; i < json_object_array_length(list); i++)
        if (entry(json_object_array_get_idx(list, i), m, err) < 0)
            return error_prefix(err, "'%s'", key);
    return 0;
}

static int read_kind(json_object *json, struct machine *m, struct error *err)
{
    struct machine_kind *kind = &m->kinds[m->kind_count];

    if (m->kind_count == MACHINE_KINDS_MAX)
        return error_set(err, "more than %d", MACHINE_KINDS_MAX);
    m->kind_count++;
    return read_small(json, "cores", CORES_MAX, &kind->cores, err) < 0 ||
                   read_small(json, "threads", CORES_MAX, &kind->threads, err) < 0
               ? -1
               : 0;
}

static int read_count(json_object *json, int there, int max, int *count, struct error *err)
{
    int64_t value;

    if (!json_get_int(json, "count", 1, max, &value) || value > max - there)
        return error_set(err, "'count' is missing, or there are more than %d", max);
    *count = (int)value;
    return 0;
}

static int read_domain(json_object *json, struct machine *m, struct error *err)
{
    struct machine_domain domain;
    int count = 0;

    if (read_count(json, m->domain_count, MACHINE_DOMAINS_MAX, &count, err) < 0 ||
        read_small(json, "cores", CORES_MAX, &domain.cores, err) < 0 ||
        read_small(json, "threads", CORES_MAX, &domain.threads, err) < 0 ||
        read_int(json, "memory_mib", MEMORY_MAX, &domain.memory_mib, err) < 0)
        return -1;
    for (int i = 0; i < count; i++)
        m->domains[m->domain_count++] = domain;
    return 0;
}

static int read_near(const char *text, uint64_t *near)
{
    *near = 0;
    while (text != NULL && *text != '\0') {
        size_t part = strcspn(text, ","), dash = strcspn(text, "-,");
        int first, last;

        if (number_parse(text, dash, 0, MACHINE_DOMAINS_MAX - 1, &first) < 0)
            return -1;
        last = first;
        if (dash < part && number_parse(text + dash + 1, part - dash - 1, first,
                                        MACHINE_DOMAINS_MAX - 1, &last) < 0)
            return -1;
        for (int i = first; i <= last; i++)
            *near |= UINT64_C(1) << i;
        text += part + (text[part] == ',');
    }
    return text != NULL ? 0 : -1;
}

static int read_model(const char *text, struct machine_device *device)
{
    char rest;

    return text != NULL && strlen(text) == 9 &&
                   sscanf(text, "%4x:%4x%c", &device->vendor, &device->model, &rest) == 2
               ? 0
               : -1;
}

static int read_device(json_object *json, struct machine *m, enum machine_device_kind kind,
                       struct error *err)
{
    struct machine_device device = {.kind = kind};
    int count = 0;

    if (read_count(json, m->device_count, MACHINE_DEVICES_MAX, &count, err) < 0 ||
        read_small(json, "link", LINK_MAX, &device.link, err) < 0 ||
        read_small(json, "rate", LINK_MAX, &device.rate, err) < 0)
        return -1;
    if (read_near(json_get_string(json, "near"), &device.near) < 0)
        return error_set(err, "'near' is not a list of NUMA domains below %d (0-3,6)",
                         MACHINE_DOMAINS_MAX);
    if (read_model(json_get_string(json, "model"), &device) < 0)
        return error_set(err, "'model' is not PCI's vendor:device (10de:20b0)");
    for (int i = 0; i < count; i++)
        m->devices[m->device_count++] = device;
    return 0;
}

static int read_gpu(json_object *json, struct machine *m, struct error *err)
{
    return read_device(json, m, MACHINE_GPU, err);
}

static int read_nic(json_object *json, struct machine *m, struct error *err)
{
    return read_device(json, m, MACHINE_NIC, err);
}

int machine_from_json(json_object *object, struct machine *m, struct error *err)
{
    const char *cpu;

    *m = (struct machine){0};
    if (!json_object_is_type(object, json_type_object))
        return error_set(err, "not an object");
    cpu = json_get_string(object, "cpu");
    snprintf(m->cpu, sizeof(m->cpu), "%s", cpu != NULL ? cpu : "");
    if (read_small(object, "packages", CORES_MAX, &m->packages, err) < 0 ||
        read_small(object, "cores", CORES_MAX, &m->cores, err) < 0 ||
        read_small(object, "threads", CORES_MAX, &m->threads, err) < 0 ||
        read_cache(object, "l2", &m->l2, err) < 0 || read_cache(object, "l3", &m->l3, err) < 0 ||
        read_list(object, "kinds", read_kind, m, err) < 0 ||
        read_list(object, "numa", read_domain, m, err) < 0 ||
        read_list(object, "gpus", read_gpu, m, err) < 0 ||
        read_list(object, "nics", read_nic, m, err) < 0)
        return -1;
    machine_reduce(m);
    return 0;
}
