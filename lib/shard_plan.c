/* SPDX-License-Identifier: GPL-2.0-or-later */
/* In which shard each model belongs (shard_plan.h). */
#include "lib/shard_plan.h"

#include <stdlib.h>
#include <string.h>

struct bin {
    int number;
    int64_t used;
    bool closed;
};

/* The shards by number, and those that are open by their room. */
struct bins {
    const struct shard_plan_options *options;
    struct bin **of;     /* by number; NULL: there is no such shard */
    int top, count;      /* largest number that of has room for; how many there are */
    struct bin **sorted; /* the least room first, of two the smaller number */
    int open;
    struct bin *store;
};

static int64_t room_of(const struct bins *bins, const struct bin *bin)
{
    return bins->options->capacity - bin->used;
}

/* Its place among the sorted ones: the first that is not before (room, number). */
static int place_of(const struct bins *bins, int64_t room, int number)
{
    int low = 0, high = bins->open;

    while (low < high) {
        int middle = low + (high - low) / 2;
        const struct bin *bin = bins->sorted[middle];
        int64_t its = room_of(bins, bin);

        if (its < room || (its == room && bin->number < number))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert(struct bins *bins, struct bin *bin)
{
    int place = place_of(bins, room_of(bins, bin), bin->number);

    memmove(&bins->sorted[place + 1], &bins->sorted[place],
            (size_t)(bins->open - place) * sizeof(*bins->sorted));
    bins->sorted[place] = bin;
    bins->open++;
}

static void withdraw(struct bins *bins, const struct bin *bin)
{
    int place = place_of(bins, room_of(bins, bin), bin->number);

    bins->open--;
    memmove(&bins->sorted[place], &bins->sorted[place + 1],
            (size_t)(bins->open - place) * sizeof(*bins->sorted));
}

static struct bin *add_bin(struct bins *bins, int number)
{
    struct bin *bin = &bins->store[bins->count++];

    *bin = (struct bin){.number = number};
    bins->of[number] = bin;
    return bin;
}

static int begin(struct bins *bins, const struct shard_plan_options *options,
                 const struct shard_plan_shard *shards, int shard_count)
{
    int most = shard_count > options->max ? shard_count : options->max;

    *bins = (struct bins){.options = options, .top = most};
    for (int i = 0; i < shard_count; i++)
        if (shards[i].number > bins->top)
            bins->top = shards[i].number;
    bins->of = calloc((size_t)bins->top + 1, sizeof(*bins->of));
    bins->sorted = calloc((size_t)most + 1, sizeof(*bins->sorted));
    bins->store = calloc((size_t)most + 1, sizeof(*bins->store));
    if (bins->of == NULL || bins->sorted == NULL || bins->store == NULL)
        return -1;
    for (int i = 0; i < shard_count; i++) {
        struct bin *bin = add_bin(bins, shards[i].number);

        bin->used = shards[i].leaves;
        bin->closed = shards[i].closed;
    }
    return 0;
}

static void end(struct bins *bins)
{
    free(bins->of);
    free(bins->sorted);
    free(bins->store);
}

/* ---- order ----------------------------------------------------------------------------------- */

/* The largest first. */
static int by_size(const void *a, const void *b)
{
    const struct shard_plan_model *one = *(struct shard_plan_model *const *)a;
    const struct shard_plan_model *other = *(struct shard_plan_model *const *)b;

    if (one->size != other->size)
        return one->size < other->size ? 1 : -1;
    return strcmp(one->name, other->name);
}

/* Those that grow the least first: so the most stay where they are. */
static int by_growth(const void *a, const void *b)
{
    const struct shard_plan_model *one = *(struct shard_plan_model *const *)a;
    const struct shard_plan_model *other = *(struct shard_plan_model *const *)b;
    int64_t growth = one->size - one->present, its = other->size - other->present;

    if (growth != its)
        return growth < its ? -1 : 1;
    return strcmp(one->name, other->name);
}

static void sort(struct shard_plan_model **list, int count,
                 int (*compare)(const void *, const void *))
{
    if (count > 1)
        qsort(list, (size_t)count, sizeof(*list), compare);
}

/* ---- placing --------------------------------------------------------------------------------- */

/* The open shard with the least room that is enough. NULL: there is none. */
static struct bin *best(const struct bins *bins, int64_t size)
{
    int place = place_of(bins, size, 0);

    return place < bins->open ? bins->sorted[place] : NULL;
}

static struct bin *fresh(struct bins *bins, int64_t size, int *after)
{
    if (bins->count >= bins->options->max || size > bins->options->capacity)
        return NULL;
    while (bins->of[*after] != NULL)
        ++*after;
    return add_bin(bins, *after);
}

static void put(struct bins *bins, struct bin *bin, struct shard_plan_model *model)
{
    bin->used += model->size;
    model->to = bin->number;
}

/* Those that shrink or stay as they are keep their place, those that grow where there is room.
 * The others come into list, and keep what they take now. */
static int keep(struct bins *bins, struct shard_plan_model *models, int count,
                struct shard_plan_model **list)
{
    int grown = 0, others = 0;

    for (int i = 0; i < count; i++) {
        struct shard_plan_model *model = &models[i];
        struct bin *bin = model->shard > 0 ? bins->of[model->shard] : NULL;

        model->to = 0;
        model->refused = false;
        if (bin == NULL) {
            list[others++] = model;
        } else if (model->size <= model->present) {
            put(bins, bin, model);
        } else {
            bin->used += model->present;
            list[count - ++grown] = model;
        }
    }
    sort(list + count - grown, grown, by_growth);
    for (int i = count - grown; i < count; i++) {
        struct shard_plan_model *model = list[i];
        struct bin *bin = bins->of[model->shard];

        if (model->size - model->present <= room_of(bins, bin)) {
            bin->used -= model->present;
            put(bins, bin, model);
        } else {
            list[others++] = model;
        }
    }
    return others;
}

static void place(struct bins *bins, struct shard_plan_model **list, int count)
{
    int after = 1;

    for (int i = 0; i < bins->count; i++)
        if (!bins->store[i].closed)
            insert(bins, &bins->store[i]);
    sort(list, count, by_size);
    for (int i = 0; i < count; i++) {
        struct bin *bin = best(bins, list[i]->size);

        if (bin != NULL)
            withdraw(bins, bin);
        else
            bin = fresh(bins, list[i]->size, &after);
        if (bin == NULL) {
            list[i]->to = list[i]->shard;
            list[i]->refused = true;
            continue;
        }
        put(bins, bin, list[i]);
        insert(bins, bin);
    }
}

int shard_plan(const struct shard_plan_options *options, const struct shard_plan_shard *shards,
               int shard_count, struct shard_plan_model *models, int count)
{
    struct shard_plan_model **list = calloc((size_t)count + 1, sizeof(*list));
    struct bins bins;
    int status = begin(&bins, options, shards, shard_count);

    if (list == NULL)
        status = -1;
    if (status == 0)
        place(&bins, list, keep(&bins, models, count, list));
    end(&bins);
    free(list);
    return status;
}

/* ---- repacking ------------------------------------------------------------------------------- */

/* A shard as repacking sees it: its models are a piece of the list that is sorted by shard. */
struct content {
    struct bin *bin;
    int first, count;
    int64_t used; /* before any was emptied */
};

static int by_shard(const void *a, const void *b)
{
    const struct shard_plan_model *one = *(struct shard_plan_model *const *)a;
    const struct shard_plan_model *other = *(struct shard_plan_model *const *)b;

    return one->to != other->to ? (one->to > other->to) - (one->to < other->to) : by_size(a, b);
}

static int by_use(const void *a, const void *b)
{
    const struct content *one = a, *other = b;

    if (one->bin->used != other->bin->used)
        return one->bin->used < other->bin->used ? -1 : 1;
    return other->bin->number - one->bin->number;
}

/* All models of a shard into others, or none. Whatever leaves keeps its place until it is gone, so
 * the shard itself is no choice for others any more. */
static bool empty_shard(struct bins *bins, struct shard_plan_model **list,
                        const struct content *content)
{
    int moved = 0;

    withdraw(bins, content->bin);
    for (; moved < content->count; moved++) {
        struct shard_plan_model *model = list[content->first + moved];
        struct bin *bin = best(bins, model->size);

        if (bin == NULL)
            break;
        withdraw(bins, bin);
        put(bins, bin, model);
        insert(bins, bin);
    }
    if (moved == content->count)
        return true;
    while (moved-- > 0) {
        struct shard_plan_model *model = list[content->first + moved];
        struct bin *bin = bins->of[model->to];

        withdraw(bins, bin);
        bin->used -= model->size;
        insert(bins, bin);
        model->to = content->bin->number;
    }
    insert(bins, content->bin);
    return false;
}

/* Models that move already, or that are refused, bind their shards: those are left alone. */
static int contents_of(const struct bins *bins, struct shard_plan_model **list, int count,
                       struct content *contents)
{
    int found = 0;

    for (int i = 0, next; i < count; i = next) {
        bool bound = list[i]->to == 0 || bins->of[list[i]->to]->closed;

        for (next = i; next < count && list[next]->to == list[i]->to; next++)
            bound = bound || list[next]->refused || list[next]->shard != list[next]->to;
        if (!bound)
            contents[found++] = (struct content){bins->of[list[i]->to], i, next - i,
                                                 bins->of[list[i]->to]->used};
    }
    if (found > 1)
        qsort(contents, (size_t)found, sizeof(*contents), by_use);
    return found;
}

/* What each shard has once shard_plan() has been done, with what leaves it. */
static void fill(struct bins *bins, struct shard_plan_model *models, int count)
{
    for (int i = 0; i < count; i++) {
        struct shard_plan_model *model = &models[i];

        if (model->to > 0 && bins->of[model->to] == NULL)
            add_bin(bins, model->to);
        if (model->to > 0)
            bins->of[model->to]->used += model->refused ? model->present : model->size;
        if (model->shard > 0 && model->shard != model->to)
            bins->of[model->shard]->used += model->present;
    }
    for (int i = 0; i < bins->count; i++)
        if (!bins->store[i].closed)
            insert(bins, &bins->store[i]);
}

int shard_plan_repack(const struct shard_plan_options *options,
                      const struct shard_plan_shard *shards, int shard_count,
                      struct shard_plan_model *models, int count)
{
    struct shard_plan_model **list;
    struct content *contents;
    struct bins bins;
    int status, found;

    if (shard_plan(options, shards, shard_count, models, count) != 0)
        return -1;
    list = calloc((size_t)count + 1, sizeof(*list));
    contents = calloc((size_t)count + 1, sizeof(*contents));
    status = begin(&bins, options, shards, shard_count);
    if (list == NULL || contents == NULL)
        status = -1;
    if (status == 0) {
        for (int i = 0; i < count; i++)
            list[i] = &models[i];
        sort(list, count, by_shard);
        fill(&bins, models, count);
        found = contents_of(&bins, list, count, contents);
        /* What has got models by now stays. The first that cannot be emptied ends it: those after
         * it have more. */
        for (int i = 0; i < found; i++)
            if (contents[i].bin->used == contents[i].used &&
                !empty_shard(&bins, list, &contents[i]))
                break;
    }
    end(&bins);
    free(contents);
    free(list);
    return status;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

int64_t shard_plan_size(int64_t measured, int64_t given, int64_t files, int64_t otherwise)
{
    int64_t size = measured > 0 ? measured : given > 0 ? given : otherwise;

    if (measured <= 0 && given <= 0 && files > 0)
        size = files > SHARD_PLAN_SIZE_MAX / 2 ? SHARD_PLAN_SIZE_MAX : files + (files + 4) / 5;
    return size < SHARD_PLAN_SIZE_MAX ? size : SHARD_PLAN_SIZE_MAX;
}
