/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A file of a dispersed set of 2+1 bricks in memory, for unit tests of cluster/disperse: calls, changes, and
 * heals of the file. */
#ifndef KILN_CLUSTER_DISPERSE_TEST_DISPERSE_FILE_H
#define KILN_CLUSTER_DISPERSE_TEST_DISPERSE_FILE_H

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/test-must.h"
#include "xlators/cluster/disperse/heal.h"
#include "xlators/cluster/test-children.h"

extern const struct xlator_type cluster_disperse_xlator;

enum { CHILDREN = 3, FILE_BYTES = 1500 };

/* ---- suites ---------------------------------------------------------------------------------- */

/* The children take joined calls in one message, as kilnd's bricks; else single calls, as stock's. */
static bool takes_joined;

static inline void
take_joined(void)
{
    takes_joined = true;
}

/* Returns a suite of the tests that `add` adds, run with both kinds of children. */
static inline Suite *
suite_of_both(const char *name, void (*add)(TCase *t))
{
    static const char *const kinds[] = {"single calls", "joined calls"};
    Suite *s = suite_create(name);

    for (unsigned kind = 0; kind < 2; kind++) {
        TCase *t = tcase_create(kinds[kind]);

        tcase_set_timeout(t, 60);
        if (kind)
            tcase_add_checked_fixture(t, take_joined, NULL);
        add(t);
        suite_add_tcase(s, t);
    }
    return s;
}

/* ---- contents -------------------------------------------------------------------------------- */

struct contents {
    char bytes[STORED_DATA_MAX];
    size_t len;
};

static struct contents before;

static inline void
contents_write(struct contents *c, size_t at, char byte, size_t len)
{
    memset(c->bytes + at, byte, len);
    c->len = at + len > c->len ? at + len : c->len;
}

static inline void
contents_cut(struct contents *c, size_t len)
{
    if (len < c->len)
        memset(c->bytes + len, 0, c->len - len);
    c->len = len;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static uint64_t at, bytes;
static char fill_byte;

static inline struct inode *
file_inode(void)
{
    return scene_inode_of("/f");
}

static inline void
fill_create(struct call_stack *stk)
{
    struct gfid gfid = {.b = {0xcc, [15] = 9}};

    stk->call.loc = (struct loc){.parent = inode_root(scene.graph->inodes), .name = "f"};
    stk->call.mode = 0644;
    stk->call.flags = O_RDWR | O_CREAT;
    must(dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &gfid) == 0);
}

static inline void
fill_file(struct call_stack *stk)
{
    stk->call.loc.inode = file_inode();
    stk->call.flags = O_RDWR;
}

static inline void
fill_fd(struct call_stack *stk)
{
    stk->call.fd = fd_ref(scene.fd);
}

static inline void
fill_payload(struct call_stack *stk)
{
    static char payload[STORED_DATA_MAX];

    memset(payload, fill_byte, sizeof payload);
    fill_fd(stk);
    stk->call.offset = at;
    stk->call.payload[0] = (struct iovec){payload, bytes};
    stk->call.payload_count = 1;
    stk->call.payload_bytes = stk->call.size = bytes;
}

static inline void
fill_size(struct call_stack *stk)
{
    fill_fd(stk);
    stk->call.offset = at;
}

static inline void
fill_range(struct call_stack *stk)
{
    fill_size(stk);
    stk->call.size = bytes;
}

static inline void
fill_read(struct call_stack *stk)
{
    struct inode *inode = file_inode();

    stk->call.fd = fd_new_anonymous(inode, NULL);
    inode_unref(inode);
    stk->call.size = STORED_DATA_MAX;
}

static inline void
fill_write_without_fd(struct call_stack *stk)
{
    static char payload[100];

    fill_read(stk);
    stk->call.offset = 1400;
    stk->call.payload[0] = (struct iovec){payload, sizeof payload};
    stk->call.payload_count = 1;
    stk->call.payload_bytes = stk->call.size = sizeof payload;
}

static inline int
write_without_fd(void)
{
    return scene_call(FOP_writev, fill_write_without_fd, 0);
}

static inline void
fill_mode(struct call_stack *stk)
{
    fill_fd(stk);
    stk->call.stbuf.mode = 0600;
    stk->call.valid = SETATTR_MODE;
}

/* ---- changes --------------------------------------------------------------------------------- */

/* Writes `size` bytes `byte` at `offset`. */
static inline int
change_bytes(struct contents *after, uint64_t offset, uint64_t size, char byte)
{
    at = offset;
    bytes = size;
    fill_byte = byte;
    contents_write(after, at, byte, size);
    return scene_call(FOP_writev, fill_payload, 0);
}

static inline int
change_part(struct contents *after)
{
    return change_bytes(after, 900, 300, 'b');
}

static inline int
change_stripe(struct contents *after)
{
    return change_bytes(after, 0, 1024, 'c');
}

static inline int
change_mode(struct contents *after)
{
    (void)after;
    return scene_call(FOP_fsetattr, fill_mode, 0);
}

/* ---- mounts and heals ------------------------------------------------------------------------ */

static unsigned set_quorum; /* quorum-count of the next mounts */

static inline void
set_begin(bool heals)
{
    char options[128];

    snprintf(options, sizeof options,
             " option redundancy 1\n option background-heals %d\n option quorum-count %u\n", heals ? 8 : 0,
             set_quorum);
    scene.takes_sequences = takes_joined;
    scene_begin(&cluster_disperse_xlator, options);
}

/* Makes a file of FILE_BYTES, opened in a new mount. */
static inline void
file_make(bool heals)
{
    scene_clear(CHILDREN, false);
    set_begin(heals);
    must(scene_call(FOP_create, fill_create, 0) == 0);
    at = 0;
    bytes = FILE_BYTES;
    fill_byte = 'a';
    must(scene_call(FOP_writev, fill_payload, 0) == FILE_BYTES);
    must(scene_call(FOP_flush, fill_fd, 0) == 0);
    scene_end();
    memset(&before, 0, sizeof before);
    contents_write(&before, 0, 'a', FILE_BYTES);
    set_begin(heals);
    must(scene_call(FOP_open, fill_file, 0) == 0);
}

static inline bool
reads(const struct contents *c)
{
    return scene.text_len == c->len && memcmp(scene.text, c->bytes, c->len) == 0;
}

static inline void
heal_go(void *inode)
{
    bool was_whole;

    (void)ec_heal_object(scene.graph->top->children[0]->private, inode, HEAL_MARKED, &was_whole);
}

/* Heals the file as the self-heal daemon heals an object of its list, when cut off clients had the time to
 * return. */
static inline void
heal_file(void)
{
    struct disperse *d = scene.graph->top->children[0]->private;
    struct inode *inode = file_inode();

    atomic_store(&d->up_ns, clock_mono_ns() - UINT64_C(6) * 1000 * 1000 * 1000);

    must(coro_run(heal_go, inode) == 0);
    scene_run(3000);
    inode_unref(inode);
}

#endif
