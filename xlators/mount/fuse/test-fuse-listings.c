/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* READDIR and READDIRPLUS: listings in buffers of any size, and entries without attributes. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/test-must.h"
#include "xlators/cluster/test-children.h"
#include "xlators/mount/fuse/fuse-internal.h"
#include "xlators/mount/fuse/test-kernel.h"

enum { LISTED = 9 };

static int
list_once(uint32_t opcode, uint64_t dir, uint64_t fh, uint64_t offset, uint32_t size)
{
    struct fuse_read_in in = {.fh = fh, .offset = offset, .size = size};

    kernel_request(opcode, dir);
    kernel_put(&in, sizeof in);
    return kernel_ask();
}

/* Returns the number of entries of the latest reply and the offset of the last. */
static unsigned
entries_answered(bool is_plus, uint64_t *offset)
{
    size_t head = is_plus ? offsetof(struct fuse_direntplus, dirent) : 0, at = 0;
    unsigned count = 0;

    while (at < kernel.len) {
        struct fuse_dirent d;

        memcpy(&d, kernel.bytes + at + head, FUSE_NAME_OFFSET);
        at += head + FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + d.namelen);
        *offset = d.off;
        count++;
    }
    must(at == kernel.len);
    return count;
}

static uint64_t
folder_begin(uint64_t *fh)
{
    uint64_t dir;

    kernel_begin("");
    (void)store_make(0, "/d", S_IFDIR | 0755, 4, NULL);
    for (unsigned i = 0; i < LISTED; i++) {
        char path[16];

        snprintf(path, sizeof path, "/d/name%u", i);
        (void)store_make(0, path, S_IFREG | 0644, (uint8_t)(10 + i), "x");
    }
    must(kernel_lookup(FUSE_ROOT_ID, "d", &dir) == 0);
    must(kernel_open(FUSE_OPENDIR, dir, O_RDONLY, fh) == 0);
    return dir;
}

START_TEST(a_listing_in_buffers_of_any_size_has_every_name_once)
{
    static const uint32_t sizes[] = {40, 100, 170, 320, 1000, 1 << 20};

    kernel_clear();
    for (unsigned n = 0; n < 2 * sizeof sizes / sizeof sizes[0]; n++) {
        uint64_t fh, dir = folder_begin(&fh), offset = 0;
        uint32_t opcode = n % 2 ? FUSE_READDIRPLUS : FUSE_READDIR, size = sizes[n / 2];
        unsigned total = 0, got;

        if (n % 2 && size < 170) { /* no entry fits */
            must(list_once(opcode, dir, fh, 0, size) == 0 && kernel.len == 0);
        } else {
            do {
                must(list_once(opcode, dir, fh, offset, size) == 0);
                got = entries_answered(n % 2, &offset);
                total += got;
            } while (got);
            must(total == LISTED);
            scene_arm(NULL, 0);
            must(list_once(opcode, dir, fh, offset, size) == 0 && kernel.len == 0);
            must(!scene.calls[0]); /* the end is known */
            must(list_once(opcode, dir, fh, 0, size) == 0 && scene.calls[0] == 1);
        }
        must(kernel_release(FUSE_RELEASEDIR, dir, fh) == 0);
        kernel_end();
    }
}
END_TEST

/* An entry without attributes: the brick could not read them. */
static void
answer_without_gfid(struct call_stack *stk, int *ret)
{
    (void)ret;
    if (stk->call.fop != FOP_readdirp)
        return;
    for (struct dirent_entry *e = stk->reply.entries; e; e = e->next)
        e->iatt = (struct iatt){0};
    if (stk->reply.entries)
        stk->reply.entries->name = "..";
}

START_TEST(an_entry_without_gfid_has_no_number)
{
    kernel_clear();
    uint64_t fh, dir = folder_begin(&fh), offset;

    kernel.lie = answer_without_gfid;
    must(list_once(FUSE_READDIRPLUS, dir, fh, 0, 4096) == 0);
    must(entries_answered(true, &offset) == 3);
    must(((const struct fuse_direntplus *)kernel_answer(sizeof(struct fuse_direntplus)))->entry_out.nodeid ==
         0);
    kernel.write_err = ENOENT;
    must(list_once(FUSE_READDIRPLUS, dir, fh, 0, 4096) == 0);
    kernel.lie = NULL;
    must(list_once(FUSE_READDIRPLUS, dir, fh, 0, 4096) == 0);
    kernel_end();
}
END_TEST
static Suite *
test_suite(void)
{
    Suite *s = suite_create("fuse-listings");
    TCase *t = tcase_create("listings");

    tcase_add_test(t, a_listing_in_buffers_of_any_size_has_every_name_once);
    tcase_add_test(t, an_entry_without_gfid_has_no_number);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
