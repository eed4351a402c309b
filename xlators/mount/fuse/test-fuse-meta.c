/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The folder .meta: every object of the tree, requests that would change the tree, numbers that became stale,
 * requests that are too short, buffers that are too small, and lack of memory. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/test-must.h"
#include "xlators/cluster/test-children.h"
#include "xlators/mount/fuse/fuse-internal.h"
#include "xlators/mount/fuse/test-kernel.h"

static char path[1024]; /* of the object that the test looks at, for messages */
static unsigned folders, files, links;
static char seen[16384]; /* the paths */

static struct fuse_attr
attr_of(uint64_t number)
{
    kernel_request(FUSE_GETATTR, number);
    kernel_put(&(struct fuse_getattr_in){0}, sizeof(struct fuse_getattr_in));
    must(kernel_ask() == 0);
    return ((const struct fuse_attr_out *)kernel_answer(sizeof(struct fuse_attr_out)))->attr;
}

static int
meta_read(uint32_t opcode, uint64_t number, uint64_t offset, uint32_t size)
{
    struct fuse_read_in in = {.offset = offset, .size = size};

    kernel_request(opcode, number);
    kernel_put(&in, sizeof in);
    return kernel_ask();
}

/* Returns the text of a file of .meta, until the next call. */
static const char *
text_of(uint64_t number)
{
    static char text[8192];

    must(meta_read(FUSE_READ, number, 0, sizeof text - 1) == 0);
    memcpy(text, kernel.bytes, kernel.len);
    text[kernel.len] = '\0';
    return text;
}

static uint64_t
find(const char *names)
{
    char copy[256], *rest = copy, *name;
    uint64_t number = FUSE_ROOT_ID;

    snprintf(copy, sizeof copy, "%s", names);
    while ((name = strsep(&rest, "/"))) {
        if (kernel_lookup(number, name, &number))
            ck_abort_msg("%s: no %s", names, name);
    }
    return number;
}

static void walk(uint64_t dir, unsigned depth);

static void
look_at(uint64_t number, unsigned depth)
{
    uint32_t mode = attr_of(number).mode;
    uint64_t fh;

    snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s\n", path);
    if (S_ISDIR(mode)) {
        folders++;
        must(kernel_open(FUSE_OPENDIR, number, O_RDONLY, &fh) == 0);
        walk(number, depth + 1);
        must(kernel_release(FUSE_RELEASEDIR, number, fh) == 0);
        return;
    }
    if (S_ISLNK(mode)) {
        links++;
        kernel_request(FUSE_READLINK, number);
        must(kernel_ask() == 0 && kernel.len > 0);
        return;
    }
    files++;
    must(kernel_open(FUSE_OPEN, number, O_RDONLY, &fh) == 0);
    must(kernel_open(FUSE_OPEN, number, O_RDWR, &fh) == EPERM);
    (void)text_of(number);
    size_t len = kernel.len;

    must(meta_read(FUSE_READ, number, 1, 2) == 0 && kernel.len <= 2);
    must(meta_read(FUSE_READ, number, len, 100) == 0 && kernel.len == 0);
    must(meta_read(FUSE_READ, number, UINT64_MAX, 100) == 0 && kernel.len == 0);
}

/* Reads the folder with a buffer for a few entries, and looks at each. */
static void
walk(uint64_t dir, unsigned depth)
{
    size_t head = depth % 2 ? offsetof(struct fuse_direntplus, dirent) : 0;
    uint64_t offset = 0;

    must(depth < 8);
    for (;;) {
        struct fuse_dirent d;
        char name[256];
        uint64_t number;

        must(meta_read(head ? FUSE_READDIRPLUS : FUSE_READDIR, dir, offset, 400) == 0);
        if (!kernel.len)
            return;
        memcpy(&d, kernel.bytes + head, FUSE_NAME_OFFSET);
        memcpy(name, kernel.bytes + head + FUSE_NAME_OFFSET, d.namelen);
        name[d.namelen] = '\0';
        offset = d.off;
        size_t len = strlen(path);

        snprintf(path + len, sizeof path - len, "/%s", name);
        must(kernel_lookup(dir, name, &number) == 0);
        must(d.ino == number);
        look_at(number, depth);
        path[len] = '\0';
    }
}

START_TEST(the_tree_can_be_walked)
{
    char graph[64];
    uint64_t number;

    kernel_clear();
    kernel_begin(" option attribute-timeout 2\n option entry-timeout 3\n option entry-timeout 4\n");
    snprintf(path, sizeof path, ".meta");
    must(kernel_lookup(FUSE_ROOT_ID, ".meta", &number) == 0 && number % 2 == 1);
    look_at(number, 0);
    ck_assert_uint_eq(folders, 10);
    ck_assert_uint_eq(links, 3);
    must(strstr(seen, "\n.meta/root/options/entry-timeout\n") && strstr(seen, "\n.meta/logging/loglevel\n"));
    snprintf(graph, sizeof graph, ".meta/graphs/c0-%d", (int)getpid());
    must(strstr(seen, graph));
    ck_assert_str_eq(text_of(find(".meta/root/type")), "mount/fuse\n");
    ck_assert_str_eq(text_of(find(".meta/root/options/attribute-timeout")), "2\n");
    ck_assert_str_eq(text_of(find(".meta/root/options/entry-timeout")), "4\n");
    must(strstr(text_of(find(".meta/root/private")), "mountpoint = /tmp\n"));
    must(kernel_lookup(find(".meta/graphs"), "none", &number) == ENOENT);
    must(kernel_lookup(find(".meta/version"), "none", &number) == ENOENT);
    kernel_end();
}
END_TEST

START_TEST(the_volfile_is_readable_by_root_only)
{
    char name[128];

    kernel_clear();
    kernel_begin("");
    snprintf(name, sizeof name, ".meta/graphs/c0-%d/volfile", (int)getpid());
    uint64_t number = find(name);

    must((attr_of(number).mode & 07777) == 0400);
    must(strstr(text_of(number), "volume v\n    type mount/fuse\n    option mountpoint /tmp\n"));
    must(strstr(text_of(number), "    subvolumes c0\nend-volume\n"));
    must(strstr(text_of(find(".meta/cmdline")), "test-fuse-meta"));
    kernel_end();
}
END_TEST

START_TEST(new_options_are_shown_and_old_numbers_become_stale)
{
    kernel_clear();
    kernel_begin(" option attribute-timeout 2\n");
    uint64_t before = find(".meta/root/options/attribute-timeout"), top = find(".meta");

    must(scene_reconfigure(" option mountpoint /tmp\n option attribute-timeout 9\n") == 0);
    must(meta_read(FUSE_READ, before, 0, 100) == ESTALE);
    must((attr_of(top).mode & S_IFMT) == S_IFDIR); /* the folder itself stays */
    ck_assert_str_eq(text_of(find(".meta/root/options/attribute-timeout")), "9\n");
    must(scene_reconfigure(" option mountpoint /tmp\n option attribute-timeout 8\n") == 0);
    ck_assert_str_eq(text_of(find(".meta/root/options/attribute-timeout")), "8\n");
    kernel_end();
}
END_TEST

START_TEST(options_without_memory_are_those_of_before)
{
    bool is_old = false;

    scene_init_starving();
    kernel_clear();
    for (int64_t n = 1; n < 60 && !is_old; n++) {
        kernel_begin(" option attribute-timeout 2\n");
        scene_starve(n);
        int err = scene_reconfigure(" option mountpoint /tmp\n option attribute-timeout 9\n");

        scene_starve(0);
        const char *text = text_of(find(".meta/root/options/attribute-timeout"));

        is_old = !err && strcmp(text, "2\n") == 0;
        kernel_end();
    }
    must(is_old);
}
END_TEST

/* ---- requests that are refused --------------------------------------------------------------- */

static void
change_put(uint32_t opcode, uint64_t dir, const void *args, size_t size, const char *name, const char *name2)
{
    kernel_request(opcode, dir);
    kernel_put(args, size);
    if (name)
        kernel_put_text(name);
    if (name2)
        kernel_put_text(name2);
}

START_TEST(the_tree_cannot_be_changed)
{
    uint64_t file;

    kernel_clear();
    kernel_begin("");
    (void)store_make(0, "/f", S_IFREG | 0644, 3, NULL);
    must(kernel_lookup(FUSE_ROOT_ID, "f", &file) == 0);
    uint64_t top = find(".meta"), root = FUSE_ROOT_ID;
    struct fuse_mknod_in mknod_in = {.mode = S_IFREG | 0644};
    struct fuse_mkdir_in mkdir_in = {.mode = 0755};
    struct fuse_create_in create_in = {.flags = O_RDWR, .mode = 0644};
    struct fuse_link_in link_meta = {.oldnodeid = find(".meta/version")}, link_file = {.oldnodeid = file};
    struct fuse_rename_in to_root = {.newdir = root}, to_meta = {.newdir = top};
    struct fuse_rename2_in to_root2 = {.newdir = root};
    const struct {
        uint32_t opcode;
        uint64_t dir;
        const void *args;
        size_t size;
        const char *name, *name2;
        int err;
    } cases[] = {
        {FUSE_MKNOD, root, &mknod_in, sizeof mknod_in, ".meta", NULL, EPERM},
        {FUSE_MKNOD, top, &mknod_in, sizeof mknod_in, "new", NULL, EPERM},
        {FUSE_MKDIR, root, &mkdir_in, sizeof mkdir_in, ".meta", NULL, EPERM},
        {FUSE_CREATE, root, &create_in, sizeof create_in, ".meta", NULL, EPERM},
        {FUSE_CREATE, top, &create_in, sizeof create_in, "x", NULL, EPERM},
        {FUSE_SYMLINK, root, NULL, 0, ".meta", "target", EPERM},
        {FUSE_UNLINK, top, NULL, 0, "version", NULL, EPERM},
        {FUSE_RMDIR, root, NULL, 0, ".meta", NULL, EPERM},
        {FUSE_LINK, root, &link_meta, sizeof link_meta, "new", NULL, EPERM},
        {FUSE_LINK, root, &link_file, sizeof link_file, ".meta", NULL, EPERM},
        {FUSE_LINK, top, &link_file, sizeof link_file, "x", NULL, EPERM},
        {FUSE_LINK, root, &link_file, sizeof link_file, "new", NULL, 0},
        {FUSE_RENAME, root, &to_root, sizeof to_root, ".meta", "new", EPERM},
        {FUSE_RENAME, root, &to_root, sizeof to_root, "f", ".meta", EPERM},
        {FUSE_RENAME, root, &to_meta, sizeof to_meta, "f", "x", EPERM},
        {FUSE_RENAME2, root, &to_root2, sizeof to_root2, "f", ".meta", EPERM},
        {FUSE_RENAME2, root, &to_root2, sizeof to_root2, "f", "g", 0},
        {FUSE_SETATTR, top, &(struct fuse_setattr_in){.valid = FATTR_MODE}, sizeof(struct fuse_setattr_in),
         NULL, NULL, EPERM},
        {FUSE_GETXATTR, top, &(struct fuse_getxattr_in){.size = 10}, sizeof(struct fuse_getxattr_in),
         "user.a", NULL, ENODATA},
        {FUSE_LISTXATTR, top, &(struct fuse_getxattr_in){.size = 0}, sizeof(struct fuse_getxattr_in), NULL,
         NULL, 0},
        {FUSE_LISTXATTR, top, &(struct fuse_getxattr_in){.size = 10}, sizeof(struct fuse_getxattr_in), NULL,
         NULL, 0},
        {FUSE_ACCESS, top, &(struct fuse_access_in){0}, sizeof(struct fuse_access_in), NULL, NULL, 0},
        {FUSE_FLUSH, top, &(struct fuse_flush_in){0}, sizeof(struct fuse_flush_in), NULL, NULL, 0},
        {FUSE_STATFS, top, NULL, 0, NULL, NULL, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        change_put(cases[i].opcode, cases[i].dir, cases[i].args, cases[i].size, cases[i].name,
                   cases[i].name2);
        int err = kernel_ask();

        if (err != cases[i].err)
            ck_abort_msg("case %zu (opcode %u): errno %d", i, cases[i].opcode, err);
    }
    kernel_end();
}
END_TEST

START_TEST(a_short_request_is_refused)
{
    static const uint32_t opcodes[] = {FUSE_READ,    FUSE_READDIR, FUSE_READDIRPLUS, FUSE_OPEN,
                                       FUSE_OPENDIR, FUSE_LOOKUP,  FUSE_LISTXATTR};

    kernel_clear();
    kernel_begin("");
    uint64_t top = find(".meta");

    for (size_t i = 0; i < sizeof opcodes / sizeof opcodes[0]; i++) {
        kernel_request(opcodes[i], top);
        kernel_put("", 1);
        must(kernel_ask() == EINVAL);
    }
    kernel_forget(top, 3); /* without a reply */
    kernel.is_answered = false;
    kernel_listen();
    must(!kernel.is_answered);
    /* names that end before they begin */
    change_put(FUSE_RENAME, FUSE_ROOT_ID, "\0\0\0\0\0\0\0", 8, NULL, NULL);
    struct fuse_in_header in = {.opcode = FUSE_RENAME, .nodeid = FUSE_ROOT_ID};
    char bytes[sizeof in + 8] = {0};

    memcpy(bytes, &in, sizeof in);
    must(!meta_answers(mount_of(scene.graph->top), bytes, sizeof bytes));
    must(!meta_answers(mount_of(scene.graph->top), bytes, sizeof in - 1));
    must(!meta_answers(mount_of(scene.graph->top), bytes, sizeof in));
    in.opcode = FUSE_LINK;
    memcpy(bytes, &in, sizeof in);
    must(!meta_answers(mount_of(scene.graph->top), bytes, sizeof bytes));
    kernel_end();
}
END_TEST

START_TEST(a_wrong_number_is_stale)
{
    static const uint64_t numbers[] = {3, 1 | 31u << 1, 1 | 1u << 1 | 0x3fffull << 6, UINT64_MAX,
                                       1 | 2u << 1 | 7ull << 40};

    kernel_clear();
    kernel_begin("");
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        kernel_request(FUSE_GETATTR, numbers[i]);
        int err = kernel_ask();

        if (err != ESTALE && numbers[i] != 3)
            ck_abort_msg("number %llx: errno %d", (unsigned long long)numbers[i], err);
    }
    kernel_end();
}
END_TEST

/* An object that the tree does not have: an option or a subvolume beyond the last. */
START_TEST(an_item_beyond_the_last_is_empty)
{
    kernel_clear();
    kernel_begin("");
    uint64_t option = find(".meta/root/options/mountpoint"), child = find(".meta/root/subvolumes/0");

    ck_assert_str_eq(text_of(option + (500ull << 20)), "\n");
    (void)attr_of(option + (500ull << 20));
    kernel_request(FUSE_READLINK, child + (500ull << 20));
    must(kernel_ask() == 0 && kernel.len == 0);
    must(meta_read(FUSE_READ, find(".meta"), 0, 100) == 0 && kernel.len == 0); /* a folder has no text */
    kernel_end();
}
END_TEST

START_TEST(lack_of_memory_is_an_errno)
{
    bool has_starved = true;

    scene_init_starving();
    kernel_clear();
    kernel_begin("");
    uint64_t version = find(".meta/version"), top = find(".meta");

    for (int64_t n = 1; has_starved; n++) {
        scene_starve(n);
        int err = meta_read(FUSE_READ, version, 0, 100);

        has_starved = scene_has_starved();
        scene_starve(0);
        must(err == 0 || (has_starved && err == ENOMEM));
        must(meta_read(FUSE_READ, version, 0, 100) == 0);
    }
    scene_starve(1);
    must(meta_read(FUSE_READDIR, top, 0, 4096) == ENOMEM);
    scene_starve(0);
    kernel.write_err = EINVAL;
    must(meta_read(FUSE_READDIR, top, 0, 4096) == 0);
    kernel.write_err = ENOENT;
    must(meta_read(FUSE_READDIR, top, 0, 4096) == 0);
    kernel.write_err = 0;
    kernel_end();
}
END_TEST

static Suite *
test_suite(void)
{
    const TTest *const tests[] = {
        the_tree_can_be_walked,
        the_volfile_is_readable_by_root_only,
        new_options_are_shown_and_old_numbers_become_stale,
        options_without_memory_are_those_of_before,
        the_tree_cannot_be_changed,
        a_short_request_is_refused,
        a_wrong_number_is_stale,
        an_item_beyond_the_last_is_empty,
        lack_of_memory_is_an_errno,
    };
    Suite *s = suite_create("fuse-meta");
    TCase *t = tcase_create("meta");

    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(t, tests[i]);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
