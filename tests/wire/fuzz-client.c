/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Runs libFuzzer on kiln-mount's decoders of foreign bytes, beyond the messages of fuzz-codec.c: layouts of
 * folders, pending counts of replicas, cookies of folders, glusterd's answers about ports, the packets of a
 * shared mount, and fragments and counters of dispersed files. The first byte selects the decoder.
 *
 * Checks invariants of any input: a new layout has no holes, an accused copy is no source of a heal, and the
 * data that K fragments decode to encode to these fragments.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "graph/dir-offset.h"
#include "mem/mem-pool.h"
#include "mount/mount.h"
#include "mount/shared.h"
#include "rpc/xdr/portmap-program.h"
#include "xlators/cluster/disperse/disperse-internal.h"
#include "xlators/cluster/distribute/layout.h"
#include "xlators/cluster/replicate/changelog.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* fuzz-client runs the packets of shared.c without the mounts behind them. */
int
mounts_add(const struct mount_options *o, const char *mountpoint, char *words,
           void (*settled)(int status, const char *why, void *arg), void *arg)
{
    (void)o;
    (void)mountpoint;
    (void)words;
    (void)settled;
    (void)arg;
    return -1;
}

struct input {
    const uint8_t *at, *end;
};

static uint8_t
next(struct input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

static uint32_t
next_word(struct input *in)
{
    uint32_t word = 0;

    for (int i = 0; i < 4; i++)
        word = word << 8 | next(in);
    return word;
}

/* Returns at most `max` bytes, in an allocation of exactly that size, to be freed. */
static uint8_t *
next_bytes(struct input *in, size_t max, size_t *n)
{
    *n = next(in) % (max + 1);
    *n = *n < (size_t)(in->end - in->at) ? *n : (size_t)(in->end - in->at);
    uint8_t *copy = calloc(1, *n ? *n : 1);

    memcpy(copy, in->at, *n);
    in->at += *n;
    return copy;
}

#define MUST(holds)                                                                                          \
    do {                                                                                                     \
        if (!(holds))                                                                                        \
            abort();                                                                                         \
    } while (0)

/* ---- layouts --------------------------------------------------------------------------------- */

enum { CHILDREN_MAX = 20 };

static void
write_and_read(const struct layout *l, unsigned i)
{
    struct layout *again = layout_new(l->count, 0);
    uint8_t bytes[LAYOUT_BYTES];

    layout_write(&l->of[i], bytes);
    layout_read(again, i, bytes, sizeof bytes);
    MUST(again->of[i].err == 0 && again->of[i].start == l->of[i].start && again->of[i].stop == l->of[i].stop);
    layout_unref(again);
}

/* Assigns the layout. Every hash then belongs to exactly one child, if any child is usable. */
static void
assign(struct layout *l, struct input *in)
{
    uint16_t order[CHILDREN_MAX];
    uint32_t weights[CHILDREN_MAX];
    struct layout_flaws flaws;
    unsigned usable = 0;

    for (unsigned i = 0; i < l->count; i++) {
        order[i] = (uint16_t)i;
        weights[i] = next(in) & 1 ? next_word(in) : 1 + next(in) % 4u;
        usable += (l->of[i].err == 0 || l->of[i].err == LAYOUT_NO_XATTR) && weights[i];
    }
    struct layout_plan plan = {order, weights, next_word(in), next(in) % (CHILDREN_MAX + 1), next_word(in)};
    layout_assign(l, &plan);
    layout_check(l, &flaws);
    MUST(!usable || (!flaws.holes && !flaws.overlaps));
    for (unsigned i = 0; i < l->count; i++) {
        if (!l->of[i].err)
            write_and_read(l, i);
    }
    MUST(!usable || layout_find(l, next_word(in)) >= 0);
}

static void
run_layout(struct input *in)
{
    struct layout *l = layout_new(1 + next(in) % CHILDREN_MAX, 0), *same = layout_ref(l);
    struct layout *nobody = layout_new(l->count, 0);
    struct layout_flaws flaws;

    for (unsigned i = 0; i < l->count; i++) {
        uint8_t how = next(in);
        size_t n;
        uint8_t *bytes = how % 4 == 1 ? NULL : next_bytes(in, 20, &n);

        if (how % 4 == 0)
            layout_failed(l, i, 1 + how);
        else
            layout_read(l, i, bytes, bytes ? n : 0);
        free(bytes);
    }
    layout_settle(l);
    layout_check(l, &flaws);
    MUST(flaws.missing + flaws.no_xattr + flaws.away + flaws.other <= l->count && layout_equal(l, l));
    for (int i = 0; i < 4; i++) {
        uint32_t hash = next_word(in);
        int at = layout_find(l, hash);

        MUST(at < l->count && (at >= 0 || flaws.holes));
        MUST(at < 0 ||
             (!layout_range_is_empty(&l->of[at]) && l->of[at].start <= hash && hash <= l->of[at].stop));
    }
    assign(l, in);
    (void)layout_equal(l, nobody);
    layout_unref(nobody);
    layout_unref(same);
    layout_unref(l);
}

/* ---- counts ---------------------------------------------------------------------------------- */

static void
take_counts(struct input *in, struct changelog *out)
{
    unsigned char again[CHANGELOG_BYTES];
    size_t n;
    uint8_t *bytes = next_bytes(in, 16, &n);

    changelog_get(out, bytes, n);
    changelog_put(out, again);
    MUST(memcmp(again, bytes, n < sizeof again ? n : sizeof again) == 0);
    free(bytes);
}

static void
judge(const struct replica *r, unsigned count, enum change what, int arbiter)
{
    child_set accused = changelog_accused(r, count, what);
    child_set readable = changelog_readable(r, count, what, arbiter);
    struct direction d;

    MUST(!(readable & accused) && !(readable & ~CHILDREN(count)));
    changelog_direction(r, count, what, &d);
    MUST(!(d.sources & accused) && !(d.sources & d.sinks) && !(d.sinks & ~accused));
    for (enum quorum_type type = QUORUM_NONE; type <= QUORUM_FIXED; type++)
        MUST(!quorum_is_met(&(struct quorum){type, 0}, count, 0));
    if (readable)
        MUST(readable & CHILD(replica_choose(readable, count, &(struct gfid){{(uint8_t)accused}})));
}

static void
run_changelog(struct input *in)
{
    struct replica r[REPLICAS_MAX] = {0};
    unsigned count = 2 + next(in) % (REPLICAS_MAX - 1);
    int arbiter = next(in) & 1 ? (int)count - 1 : -1;

    for (unsigned i = 0; i < count; i++) {
        uint8_t how = next(in);

        r[i].is_there = how & 1;
        r[i].is_bad = how & 2;
        r[i].is_locked = how & 4;
        r[i].is_file = how & 8;
        r[i].size = how & 16 ? next_word(in) : 0;
        if (how & 32)
            take_counts(in, &r[i].dirty);
        for (unsigned k = 0; k < count && how & 64; k++)
            take_counts(in, &r[i].about[k]);
    }
    for (enum change what = 0; what < CHANGES; what++)
        judge(r, count, what, arbiter);
    int a = next(in), b = next(in), worse = replica_worse_errno(a, b);
    MUST(worse == a || worse == b);
}

/* ---- cookies --------------------------------------------------------------------------------- */

static void
run_cookies(struct input *in)
{
    unsigned bricks = 1 + next_word(in) % 1024, brick = next_word(in) % bricks, again;
    uint64_t cookie = (uint64_t)next_word(in) << 32 | next_word(in);
    uint64_t joined = dir_offset_join(cookie, brick, bricks);

    (void)dir_offset_split(joined, bricks, &again);
    MUST(again < bricks);
    (void)dir_offset_split(cookie, bricks, &again); /* nobody has put it together */
    MUST(again < bricks);
}

/* ---- ports ----------------------------------------------------------------------------------- */

static void
run_portmap(struct input *in)
{
    struct arena arena = {0};
    size_t n;
    uint8_t which = next(in), *bytes = next_bytes(in, 255, &n);
    struct port_by_brick_reply port;
    struct portmap_reply reply;
    struct portmap_sign sign;
    char out[PORTMAP_BRICK_MAX + 64];
    struct xdr x, to;

    xdr_init(&x, bytes, n, &arena);
    xdr_init(&to, out, sizeof out, NULL);
    if (which % 3 == 0) {
        xdr_get_port_by_brick_reply(&x, &port);
        if (!x.error)
            xdr_put_port_by_brick_reply(&to, &port);
    } else if (which % 3 == 1) {
        xdr_get_portmap_sign(&x, &sign);
        if (!x.error)
            xdr_put_portmap_sign(&to, &sign);
    } else {
        xdr_get_portmap_reply(&x, &reply);
    }
    MUST(!to.error);
    arena_release(&arena);
    free(bytes);
}

/* ---- packets --------------------------------------------------------------------------------- */

/* "namespace=" of this process, without which nothing is taken, and the input. */
static void
run_packet(struct input *in)
{
    char head[128] = "namespace=", *packet, again[8192];
    bool is_here = next(in) & 1;
    ssize_t len = readlink("/proc/self/ns/mnt", head + 10, sizeof head - 12);
    size_t size = (size_t)(in->end - in->at), n = is_here && len > 0 ? 10 + (size_t)len + 1 : 0;
    const char *mountpoint, *word;
    struct mount_options o;

    packet = malloc(n + size ? n + size : 1);
    memcpy(packet, head, n);
    memcpy(packet + n, in->at, size);
    if (shared_decode(packet, n + size, &o, &mountpoint, &word) == 0) {
        int bytes = shared_encode(&o, mountpoint, again, sizeof again);
        struct mount_options back;

        MUST(bytes > 0 && shared_decode(again, (size_t)bytes, &back, &mountpoint, &word) == 0);
        MUST(back.server_count == o.server_count && back.xlator_option_count == o.xlator_option_count);
    } else {
        MUST(strlen(word) <= n + size + 16);
    }
    free(packet);
}

/* ---- dispersed files ------------------------------------------------------------------------- */

/* Decodes K fragments of any bytes with each set of instructions. */
static void
run_fragments(struct input *in)
{
    unsigned data = 2 + next(in) % (CODEC_DATA_MAX - 1), count = data + 1 + next(in) % (data - 1);
    size_t stripes = 1 + next(in) % 2, len = stripes * CODEC_CHUNK;
    const unsigned char *fragment[CODEC_DATA_MAX];
    unsigned index[CODEC_DATA_MAX], first = next(in);
    uint8_t *all = malloc(data * len), *out = malloc(data * len), *again = malloc(CODEC_FRAGMENTS_MAX * len);
    struct codec_plan plan;

    for (size_t i = 0; i < data * len; i++)
        all[i] = in->at < in->end ? next(in) : (uint8_t)(i >> 3);
    for (unsigned i = 0; i < data; i++) {
        index[i] = (first + i) % count;
        fragment[i] = all + i * len;
    }
    codec_plan_make(&plan, data, index);
    for (enum codec_cpu cpu = CODEC_PORTABLE; cpu <= codec_best(); cpu++) {
        codec_use(cpu);
        codec_decode(&plan, fragment, stripes, out);
        codec_encode(data, (1u << count) - 1, out, stripes, again);
        for (unsigned i = 0; i < data; i++)
            MUST(memcmp(again + index[i] * len, fragment[i], len) == 0);
    }
    free(all);
    free(out);
    free(again);
}

/* An xattr of any length and type in place of a counter. */
static void
run_counters(struct input *in)
{
    struct arena arena = {0};
    uint64_t words[2] = {1, 1}, want = 0;
    size_t n;
    uint8_t how = next(in), *bytes = next_bytes(in, 24, &n);
    struct dict *d = dict_new(&arena);

    if (how % 4 == 1)
        MUST(dict_set_text_int(d, "trusted.ec.size", how) == 0);
    else if (how % 4)
        MUST(dict_set_text(d, "trusted.ec.size", how % 4 == 2 ? DICT_PTR : DICT_STR, bytes, (uint32_t)n) ==
             0);
    ec_get_words(d, "trusted.ec.size", words);
    for (unsigned i = 0; i < 8 && how % 4 > 1 && n >= 8; i++)
        want = want << 8 | bytes[i];
    MUST(words[0] == want && (n >= 16 || words[1] == want) && ec_get_size(d) <= INT64_MAX);
    arena_release(&arena);
    free(bytes);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return mem_pools_init() || arena_pools_init() || dict_pools_init() || layout_pools_init();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const runs[])(struct input *) = {run_layout, run_changelog, run_cookies, run_portmap,
                                                   run_packet, run_fragments, run_counters};
    struct input in = {data + 1, data + size};

    if (size > 0)
        runs[data[0] % (sizeof runs / sizeof runs[0])](&in);
    return 0;
}
