/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A file of a dispersed set of 2+1 bricks on which counters (trusted.ec.version, .size, .dirty, .config) or
 * fragments are any bytes, as a damaged disk, another program or a hostile brick leaves them. Each run draws
 * the bytes from its number; HOSTILE_RUN=N in the environment makes only that run. After each run:
 *
 *      every call has ended, no lock is left, no object leaks
 *      a reply has no more bytes than asked for, and no size above INT64_MAX
 *      counters of one brick only are bad: before and after a heal the file has its contents, and after the
 *      heal no brick has a size above INT64_MAX
 *      the size of one brick is bad, and another brick misses the version of the last change, as after
 *      the death of a client: the same, after a heal, which the fragments decide */
#include <check.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test-must.h"
#include "xlators/cluster/disperse/heal.h"
#include "xlators/cluster/test-children.h"

extern const struct xlator_type cluster_disperse_xlator;

enum { CHILDREN = 3, FILE_BYTES = 1500, RUNS = 6000 };

static const char *const keys[] = {"trusted.ec.version", "trusted.ec.size", "trusted.ec.dirty",
                                   "trusted.ec.config"};
enum { KEYS = sizeof keys / sizeof keys[0], KEY_SIZE = 1 };

static unsigned long long dice;

static unsigned
draw(unsigned below)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(dice >> 33) % below;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static char contents[FILE_BYTES];
static uint64_t offset, bytes;

static struct inode *
file_inode(void)
{
    return scene_inode_of("/f");
}

static void
fill_create(struct call_stack *stk)
{
    struct gfid gfid = {.b = {0xcc, [15] = 9}};

    stk->call.loc = (struct loc){.parent = inode_root(scene.graph->inodes), .name = "f"};
    stk->call.mode = 0644;
    stk->call.flags = O_RDWR | O_CREAT;
    must(dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &gfid) == 0);
}

static void
fill_file(struct call_stack *stk)
{
    stk->call.loc.inode = file_inode();
    stk->call.flags = O_RDWR;
}

static void
fill_name(struct call_stack *stk)
{
    stk->call.loc = (struct loc){.parent = inode_root(scene.graph->inodes), .name = "f"};
}

static void
fill_fd(struct call_stack *stk)
{
    struct inode *inode = file_inode();

    stk->call.fd = scene.fd ? fd_ref(scene.fd) : fd_new_anonymous(inode, NULL);
    inode_unref(inode);
    stk->call.offset = offset;
    stk->call.size = bytes;
}

static void
fill_payload(struct call_stack *stk)
{
    fill_fd(stk);
    stk->call.payload[0] = (struct iovec){contents, bytes};
    stk->call.payload_count = 1;
    stk->call.payload_bytes = bytes;
}

/* ---- a run ----------------------------------------------------------------------------------- */

static void
set_begin(void)
{
    scene_begin(&cluster_disperse_xlator, " option redundancy 1\n option background-heals 8\n");
}

static void
hostile_file_make(void)
{
    for (unsigned i = 0; i < FILE_BYTES; i++)
        contents[i] = (char)(i * 31 + i / 7);
    scene_clear(CHILDREN, false);
    set_begin();
    must(scene_call(FOP_create, fill_create, 0) == 0);
    offset = 0;
    bytes = FILE_BYTES;
    must(scene_call(FOP_writev, fill_payload, 0) == FILE_BYTES);
    must(scene_call(FOP_flush, fill_fd, 0) == 0);
    scene_end();
}

static uint64_t
draw_word(void)
{
    static const uint64_t words[] = {0,
                                     1,
                                     2,
                                     511,
                                     1023,
                                     1024,
                                     FILE_BYTES,
                                     FILE_BYTES + 1,
                                     2048,
                                     UINT64_C(1) << 62,
                                     (UINT64_C(1) << 62) + 1,
                                     INT64_MAX - 1022,
                                     INT64_MAX,
                                     UINT64_C(1) << 63,
                                     UINT64_MAX - 1023,
                                     UINT64_MAX};

    return draw(4) ? words[draw(sizeof words / sizeof words[0])]
                   : draw(1u << 30) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Draws the value of an xattr, of any length up to 24 bytes, most of them whole words. */
static void
draw_counter(unsigned child, unsigned key)
{
    uint64_t value[3] = {htobe64(draw_word()), htobe64(draw_word()), htobe64(draw_word())};
    uint32_t len = draw(4) ? (key == KEY_SIZE ? 8 : 16) : draw(sizeof value + 1);
    struct stored_object *o = store_find(&scene.store[child], "/f");
    struct stored_xattr *x = store_xattr(o, keys[key]);

    if (x && !draw(8))
        *x = o->xattr[--o->xattr_count];
    else
        must(store_set_xattr(o, keys[key], value, len) == 0);
}

static void
draw_fragment(unsigned child)
{
    struct stored_object *o = store_find(&scene.store[child], "/f");
    unsigned n = draw(16);

    for (unsigned i = 0; i < n; i++)
        o->data[draw(1024)] = (unsigned char)draw(256);
    if (draw(2))
        o->stat.size = draw(STORED_DATA_MAX);
}

/* The known contents. */
enum known { NEVER, AFTER_HEAL, ALWAYS };

/* One size is bad, and another brick's version is behind. A bad size may be one that a file of these
 * fragments could have. */
static enum known
damage_size(void)
{
    unsigned child = draw(CHILDREN), behind = (child + 1 + draw(2)) % CHILDREN;
    struct stored_xattr *x = store_xattr(store_find(&scene.store[behind], "/f"), "trusted.ec.version");
    uint64_t version;

    draw_counter(child, KEY_SIZE);
    memcpy(&version, x->bytes, sizeof version);
    version = htobe64(be64toh(version) - 1);
    memcpy(x->bytes, &version, sizeof version);
    return AFTER_HEAL;
}

static enum known
damage(void)
{
    if (!draw(6))
        return damage_size();
    unsigned victims = 1 + draw(3), first = draw(CHILDREN);
    bool with_fragments = draw(4) == 0;

    for (unsigned v = 0; v < victims; v++) {
        unsigned child = (first + v) % CHILDREN, same_dice = draw(2);
        unsigned long long kept = dice;

        for (unsigned k = 0; k < KEYS; k++) {
            if (draw(2))
                draw_counter(child, k);
        }
        if (with_fragments)
            draw_fragment(child);
        dice = same_dice && v + 1 < victims ? kept : dice; /* the next brick has the same bad values */
        if (same_dice)
            (void)draw(2);
    }
    return victims == 1 && !with_fragments ? ALWAYS : NEVER;
}

static void
heal_go(void *inode)
{
    bool was_whole;

    (void)ec_heal_object(scene.graph->top->children[0]->private, inode, HEAL_MARKED, &was_whole);
}

static void
heal_file(void)
{
    struct inode *inode = file_inode();

    if (!inode)
        return;
    must(coro_run(heal_go, inode) == 0);
    scene_run(3000);
    inode_unref(inode);
}

static void
check_size(const char *what, int ret)
{
    if (ret >= 0 && scene.stat.size > INT64_MAX)
        finding_add("%s: size %llu", what, (unsigned long long)scene.stat.size);
}

static void
read_file(bool is_known, const char *when)
{
    offset = 0;
    bytes = STORED_DATA_MAX;
    int ret = scene_call(FOP_readv, fill_fd, 0);

    if (ret > STORED_DATA_MAX)
        finding_add("%s: a read of %d bytes", when, ret);
    check_size("read", ret);
    if (is_known && (ret < FILE_BYTES || memcmp(scene.text, contents, FILE_BYTES) != 0))
        finding_add("%s the file cannot be read, or has other bytes: %d", when, ret);
}

static void
change_file(void)
{
    offset = draw(2000);
    bytes = 1 + draw(FILE_BYTES - 1);
    bytes = offset + bytes > STORED_DATA_MAX ? STORED_DATA_MAX - offset : bytes;
    switch (draw(4)) {
    case 0:
        (void)scene_call(FOP_writev, fill_payload, 0);
        break;
    case 1:
        (void)scene_call(FOP_ftruncate, fill_fd, 0);
        break;
    case 2:
        (void)scene_call(FOP_zerofill, fill_fd, 0);
        break;
    default:
        (void)scene_call(FOP_discard, fill_fd, 0);
    }
}

static void
check_stored_sizes(void)
{
    for (unsigned i = 0; i < CHILDREN; i++) {
        struct stored_xattr *x = store_xattr(store_find(&scene.store[i], "/f"), "trusted.ec.size");
        uint64_t size = 0;

        memcpy(&size, x && x->len >= sizeof size ? x->bytes : (unsigned char *)&size, sizeof size);
        if (be64toh(size) > INT64_MAX)
            finding_add("after the heal c%u has the size %llu", i, (unsigned long long)be64toh(size));
    }
}

static void
run_hostile(unsigned number)
{
    snprintf(run_text, sizeof run_text, "HOSTILE_RUN=%u", number);
    dice = number * UINT64_C(0x9e3779b97f4a7c15) + 1;
    (void)draw(2);
    hostile_file_make();
    enum known known = damage();
    set_begin();
    check_size("lookup", scene_call(FOP_lookup, fill_name, 0));
    check_size("stat", scene_call(FOP_stat, fill_file, 0));
    (void)scene_call(FOP_open, fill_file, 0);
    read_file(known == ALWAYS, "before the heal");
    scene_run(2000);
    heal_file();
    if (known != NEVER) {
        read_file(true, "after the heal");
        scene_run(2000);
        check_stored_sizes();
    }
    for (unsigned n = draw(3); n; n--)
        change_file();
    scene_run(2000);
    heal_file();
    scene_run(5000);
    if (store_locks())
        finding_add("locks are left: %s", store_locks_text());
    scene_end();
}

START_TEST(hostile_counters_and_fragments_are_survived)
{
    const char *only = getenv("HOSTILE_RUN");

    findings = 0;
    for (unsigned n = 0; n < RUNS; n++) {
        if (n % 4 == (unsigned)_i && (!only || strtoul(only, NULL, 10) == n))
            run_hostile(n);
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("disperse-hostile");
    TCase *t = tcase_create("hostile");

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, hostile_counters_and_fragments_are_survived, 0, 4);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
