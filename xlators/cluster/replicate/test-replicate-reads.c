/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Reads of a replicated volume, with a fault at each call: a read succeeds while a good copy answers, and
 * never returns an accused (pending xattr) copy's contents. Also operations that go to every child: locks of
 * applications and of layers above, flush, fsyncdir, statfs. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "base/test-must.h"
#include "xlators/cluster/replicate/test-replicas.h"

static const struct {
    const char *name;
    unsigned count;
    const char *options;
} shapes[] = {{"2 replicas", 2, ""},
              {"3 replicas", 3, ""},
              {"2 replicas and an arbiter", 3, " option arbiter-count 1\n"}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

/* ---- calls ----------------------------------------------------------------------------------- */

static const char *path;
static const char *xattr_name;
static uint32_t lock_command, lock_type;

static struct inode *
inode_of(const char *name)
{
    for (unsigned i = 0; i < scene.count; i++) {
        struct inode *inode = scene_inode(i, name);

        if (inode)
            return inode;
    }
    return NULL;
}

/* For each kind of call: the object or the fd, and arguments that the call needs. */
static void
fill_object(struct call_stack *stk)
{
    static const uint8_t owner[8] = {7};

    stk->call.loc.inode = inode_of(path);
    if (fop_info[stk->call.fop].traits & FOP_BY_FD)
        stk->call.fd = fd_ref(scene.fd);
    stk->call.size = 4096;
    stk->call.name = xattr_name ? xattr_name : "";
    stk->call.has_name = xattr_name != NULL;
    stk->call.volume = "above";
    stk->call.cmd = lock_command;
    stk->call.type = lock_type;
    stk->call.flock = (struct fop_flock){.type = lock_type};
    stk->caller.lk_owner = (struct lk_owner){.len = sizeof owner, .bytes = owner};
    stk->call.flags = stk->call.fop == FOP_open ? O_RDWR : 0;
}

static int
call_on(enum fop fop, const char *name)
{
    path = name;
    return scene_call(fop, fill_object, 0);
}

/* ---- the volume ------------------------------------------------------------------------------ */

static void
volume_make(size_t shape)
{
    scene_clear(shapes[shape].count, shapes[shape].options[0] != '\0');
    store_make_all("/f", S_IFREG | 0644, 3, "contents");
    store_make_all("/l", S_IFLNK | 0777, 4, "target");
    store_make_all("/d", S_IFDIR | 0755, 5, NULL);
    store_make_all("/d/x", S_IFREG | 0644, 6, "x");
    for (unsigned i = 0; i < scene.count; i++)
        must(store_set_xattr(store_find(&scene.store[i], "/f"), "user.a", "value", 5) == 0);
}

static void
accuse(unsigned by, unsigned whom)
{
    struct changelog c = {.count[CHANGE_DATA] = 1};
    unsigned char bytes[CHANGELOG_BYTES];
    char key[32];

    changelog_put(&c, bytes);
    snprintf(key, sizeof key, "trusted.afr.c%u", whom);
    must(store_set_xattr(store_find(&scene.store[by], "/f"), key, bytes, sizeof bytes) == 0);
}

/* ---- reads ----------------------------------------------------------------------------------- */

static const struct read_case {
    enum fop fop, opened_by;         /* opened_by: the call that makes the fd; null: none is needed */
    const char *path, *xattr, *text; /* text: the answer's text, or NULL */
} reads[] = {
    {FOP_stat, FOP_null, "/f", NULL, NULL},        {FOP_fstat, FOP_open, "/f", NULL, NULL},
    {FOP_readv, FOP_open, "/f", NULL, "contents"}, {FOP_readlink, FOP_null, "/l", NULL, "target"},
    {FOP_access, FOP_null, "/f", NULL, NULL},      {FOP_getxattr, FOP_null, "/f", "user.a", NULL},
    {FOP_fgetxattr, FOP_open, "/f", NULL, NULL},   {FOP_getxattr, FOP_null, "/d", NULL, NULL},
    {FOP_readdirp, FOP_opendir, "/d", NULL, NULL}, {FOP_readdir, FOP_opendir, "/d", NULL, NULL},
    {FOP_open, FOP_null, "/f", NULL, NULL},        {FOP_opendir, FOP_null, "/d", NULL, NULL},
    {FOP_statfs, FOP_null, "/d", NULL, NULL},      {FOP_flush, FOP_open, "/f", NULL, NULL},
    {FOP_fsyncdir, FOP_opendir, "/d", NULL, NULL},
};
enum { READS = sizeof reads / sizeof reads[0] };

static int
run_read(size_t shape, const struct read_case *c, bool is_viewed, const struct fault *f)
{
    volume_make(shape);
    replicas_begin(shapes[shape].options);
    if (is_viewed)
        scene_lookup_all();
    xattr_name = NULL;
    if (c->opened_by != FOP_null)
        must(call_on(c->opened_by, c->path) == 0);
    xattr_name = c->xattr;
    scene_arm(f, f != NULL);
    return call_on(c->fop, c->path);
}

START_TEST(a_read_survives_the_loss_of_one_copy)
{
    const struct read_case *c = &reads[_i];
    unsigned struck = 0;

    for (size_t n = 0; n < SHAPES * 2 * CHILDREN_MAX * 6 * FAULT_CUT; n++) {
        size_t shape = n % SHAPES, rest = n / SHAPES;
        bool is_viewed = rest % 2;
        struct fault f = {.child = rest / 2 % CHILDREN_MAX,
                          .at = rest / 2 / CHILDREN_MAX % 6,
                          .kind = (enum fault_kind)(rest / 2 / CHILDREN_MAX / 6),
                          .err = EIO};

        if (f.child >= shapes[shape].count)
            continue;
        int ret = run_read(shape, c, is_viewed, &f);

        struck += scene.fault[0].has_struck;
        if (ret < 0)
            ck_abort_msg("%s: %s with c%u fault %u at call %u: %s", shapes[shape].name, fop_info[c->fop].name,
                         f.child, f.kind, f.at, strerror(-ret));
        if (c->text &&
            (scene.text_len != strlen(c->text) || memcmp(scene.text, c->text, scene.text_len) != 0))
            ck_abort_msg("%s: %s returns another text", shapes[shape].name, fop_info[c->fop].name);
        if (c->opened_by == FOP_opendir && c->fop != FOP_fsyncdir)
            must(strcmp(scene.names, "x/") == 0);
        scene_end();
    }
    ck_assert_uint_gt(struck, 20); /* the other runs have fewer calls */
}
END_TEST

START_TEST(an_accused_copy_is_never_read)
{
    /* every set of accusations of 3 copies: each copy has contents of its own */
    for (unsigned n = 0; n < 64; n++) {
        static const char *const own[] = {"copy zero", "copy  one", "copy  two"};
        unsigned bits = n, accused = 0;

        scene_clear(3, false);
        for (unsigned i = 0; i < 3; i++)
            (void)store_make(i, "/f", S_IFREG | 0644, 3, own[i]);
        for (unsigned i = 0; i < 3; i++) {
            for (unsigned k = 0; k < 3; k++) {
                if (i == k)
                    continue;
                if (bits & 1) {
                    accuse(i, k);
                    accused |= 1u << k;
                }
                bits >>= 1;
            }
        }
        replicas_begin(" option data-self-heal off\n");
        must(call_on(FOP_open, "/f") == 0);
        int ret = call_on(FOP_readv, "/f");

        if (accused == 7)
            must(ret == -EIO);
        for (unsigned i = 0; i < 3 && accused != 7; i++)
            must(ret == 9 && (!(accused & 1u << i) || memcmp(scene.text, own[i], 9) != 0));
        scene_end();
    }
}
END_TEST

/* ---- locks of layers above ------------------------------------------------------------------- */

static void
lock_and_unlock(size_t shape, enum fop fop, const struct fault *f)
{
    bool is_entry = fop == FOP_entrylk;

    volume_make(shape);
    replicas_begin(shapes[shape].options);
    scene_lookup_all();
    scene_arm(f, f != NULL);
    lock_command = is_entry ? 2 : 1;
    lock_type = FLOCK_WRITE;
    int ret = call_on(fop, "/d");

    if (!f)
        must(ret == 0 && store_locks() == scene.count);
    lock_command = 1;
    lock_type = is_entry ? FLOCK_WRITE : FLOCK_UNLOCK;
    if (ret == 0)
        (void)call_on(fop, "/d");
    lock_command = lock_type = 0;
    if (store_locks())
        ck_abort_msg("%s: c%u fault %u at call %u leaves %s", shapes[shape].name, f ? f->child : 0,
                     f ? f->kind : 0, f ? f->at : 0, store_locks_text());
    scene_end();
}

START_TEST(locks_of_layers_above_are_released_everywhere)
{
    for (size_t shape = 0; shape < SHAPES; shape++) {
        for (unsigned n = 0; n < 2 * shapes[shape].count * 3 * FAULT_CUT; n++) {
            struct fault f = {.child = n / 2 % shapes[shape].count,
                              .at = n / 2 / shapes[shape].count % 3,
                              .kind = (enum fault_kind)(n / 2 / shapes[shape].count / 3),
                              .err = EIO};

            lock_and_unlock(shape, n % 2 ? FOP_entrylk : FOP_inodelk, n < 2 ? NULL : &f);
        }
    }
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("replicate-reads");
    TCase *t = tcase_create("reads");

    tcase_add_loop_test(t, a_read_survives_the_loss_of_one_copy, 0, READS);
    tcase_add_test(t, an_accused_copy_is_never_read);
    tcase_add_test(t, locks_of_layers_above_are_released_everywhere);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
