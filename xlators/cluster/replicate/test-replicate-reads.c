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

/* For each kind of call: the object or the fd, and arguments that the call needs. */
static void
fill_object(struct call_stack *stk)
{
    static const uint8_t owner[8] = {7};

    stk->call.loc.inode = scene_inode_of(path);
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

/* ---- errors ---------------------------------------------------------------------------------- */

START_TEST(an_error_about_the_object_is_the_answer)
{
    static const struct {
        int err;
        bool is_answer;
    } cases[] = {{ENODATA, true},      {ERANGE, true}, {EACCES, true}, {EPERM, true},   {EINVAL, true},
                 {ENXIO, true},        {ENOENT, false}, {EIO, false},   {ESTALE, false}, {ENAMETOOLONG, true},
                 {EOPNOTSUPP, true}};

    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        const struct fault f = {.child = ANY_CHILD, .kind = FAULT_REFUSED, .err = cases[n].err};
        int ret = run_read(1, &reads[3], true, &f);

        ck_assert_int_eq(ret, cases[n].is_answer ? -cases[n].err : (int)strlen("target"));
        ck_assert_uint_eq(scene.calls[ANY_CHILD], cases[n].is_answer ? 1 : 2);
        scene_end();
    }
}
END_TEST

static void
fill_foreign_fd(struct call_stack *stk)
{
    struct inode *inode = scene_inode_of(path);

    stk->call.fd = fd_new(inode, NULL, O_RDONLY, S_ISDIR(inode->type));
    stk->call.size = 4096;
    inode_unref(inode);
}

START_TEST(an_fd_that_no_open_has_made_is_refused)
{
    volume_make(1);
    replicas_begin("");
    path = "/f";
    ck_assert_int_eq(scene_call(FOP_readv, fill_foreign_fd, 0), -EBADFD);
    path = "/d";
    ck_assert_int_eq(scene_call(FOP_readdir, fill_foreign_fd, 0), -EBADFD);
    scene_end();
}
END_TEST

/* ---- listings -------------------------------------------------------------------------------- */

static uint64_t list_offset;

static void
fill_list(struct call_stack *stk)
{
    stk->call.fd = fd_ref(scene.fd);
    stk->call.offset = list_offset;
    stk->call.size = 4096;
}

static int
list_from(enum fop fop, uint64_t offset)
{
    list_offset = offset;
    return scene_call(fop, fill_list, 0);
}

START_TEST(names_of_the_volume_itself_are_hidden_in_the_root)
{
    scene_clear(3, false);
    store_make_all("/.landfill", S_IFDIR | 0700, 3, NULL);
    store_make_all("/.glusterfs-anonymous-inode-1", S_IFDIR | 0700, 4, NULL);
    store_make_all("/d", S_IFDIR | 0755, 5, NULL);
    store_make_all("/d/.landfill", S_IFDIR | 0755, 6, NULL);
    replicas_begin("");
    must(call_on(FOP_opendir, "/") == 0);
    ck_assert_int_eq(list_from(FOP_readdir, 0), 1);
    ck_assert_str_eq(scene.names, "d/");
    must(call_on(FOP_opendir, "/d") == 0);
    ck_assert_int_eq(list_from(FOP_readdir, 0), 1);
    ck_assert_str_eq(scene.names, ".landfill/");
    scene_end();
}
END_TEST

/* A cookie of one child means nothing to another one. */
START_TEST(a_listing_does_not_go_on_at_another_child)
{
    volume_make(1);
    for (uint8_t n = 0; n < 4; n++)
        store_make_all((const char[]){'/', 'd', '/', (char)('0' + n), '\0'}, S_IFREG | 0644,
                       (uint8_t)(20 + n), NULL);
    replicas_begin(" option read-subvolume c1\n");
    must(call_on(FOP_opendir, "/d") == 0);
    ck_assert_int_eq(list_from(FOP_readdir, 0), 3);
    scene_child_down(1);
    ck_assert_int_eq(list_from(FOP_readdir, scene.next_offset), -ENOTCONN);
    ck_assert_int_eq(list_from(FOP_readdir, 0), 3); /* the beginning does */
    ck_assert_int_eq(list_from(FOP_readdir, scene.next_offset), 2);
    scene_end();
}
END_TEST

/* Lists /d. Returns whether the attributes of x are in the list. */
static bool
list_has_attributes(const char *options, unsigned away, bool is_viewed)
{
    replicas_begin(options);
    if (is_viewed)
        scene_lookup_all();
    if (away < scene.count)
        scene_child_down(away);
    if (is_viewed)
        scene_lookup_all();
    must(call_on(FOP_opendir, "/d") == 0);
    must(list_from(FOP_readdirp, 0) == 1 && scene.listed.mode == (S_IFREG | 0644));
    bool has = scene.listed.nlink == 1;

    must(has == !gfid_is_null(&scene.listed.gfid));
    scene_end();
    return has;
}

START_TEST(attributes_that_a_copy_may_have_wrong_are_not_listed)
{
    volume_make(1);
    ck_assert(list_has_attributes("", CHILDREN_MAX, false));
    ck_assert(!list_has_attributes("", 1, false));
    ck_assert(list_has_attributes("", 1, true)); /* this mount knows that the copy is good */
    accuse(0, 1); /* an object needs a heal */
    ck_assert(!list_has_attributes(" option data-self-heal off\n option read-subvolume c0\n", CHILDREN_MAX,
                                   false));
    volume_make(2);
    replica_accuse("/d", 2, 0, CHANGE_ENTRY);
    replica_accuse("/d", 2, 1, CHANGE_ENTRY); /* so that the arbiter lists, which has no sizes */
    ck_assert(!list_has_attributes(" option arbiter-count 1\n option entry-self-heal off\n", CHILDREN_MAX,
                                   true));
}
END_TEST

/* c1 was away when f was written. Its own index is empty, because only the others accuse it. */
START_TEST(attributes_of_an_accused_copy_are_not_listed)
{
    scene_clear(3, false);
    store_make_all("/f", S_IFREG | 0644, 3, "contents");
    accuse(0, 1);
    accuse(2, 1);
    replicas_begin(" option data-self-heal off\n option read-subvolume c1\n");
    scene_lookup_all();
    must(call_on(FOP_opendir, "/") == 0);
    must(list_from(FOP_readdirp, 0) == 1 && strcmp(scene.names, "f/") == 0);
    ck_assert_msg(gfid_is_null(&scene.listed.gfid), "the attributes of f on c1 are listed");
    scene_end();
}
END_TEST

/* ---- answers of all copies ------------------------------------------------------------------- */

static const char *own_text[CHILDREN_MAX]; /* the value that each child has; NULL: none */
static enum dict_type own_type;

static void
answer_own_text(unsigned i, struct call_stack *stk, int *ret)
{
    if (stk->call.fop != FOP_getxattr || *ret != -ENODATA || !own_text[i])
        return;
    *ret = 0;
    must(dict_set_text(reply_dict(stk), stk->call.name, own_type, own_text[i],
                       (uint32_t)strlen(own_text[i]) + (own_type == DICT_STR)) == 0);
}

static int
get_joined(const char *name, const char *a, const char *b, const char *c)
{
    own_text[0] = a;
    own_text[1] = b;
    own_text[2] = c;
    scene.lie = answer_own_text;
    xattr_name = name;
    int ret = call_on(FOP_getxattr, "/d");

    xattr_name = NULL;
    scene.lie = NULL;
    return ret;
}

static bool
has_text(const char *text)
{
    return scene.text_len == strlen(text) && memcmp(scene.text, text, scene.text_len) == 0;
}

START_TEST(notes_of_all_copies_are_joined)
{
    const char *name = dict_key_text(DICT_KEY_NAME_NOTES);
    const struct fault refusal = {.child = 0, .kind = FAULT_REFUSED, .err = EIO};

    volume_make(1);
    replicas_begin("");
    own_type = DICT_PTR;
    ck_assert(get_joined(name, "aa", NULL, "c") == 3 && has_text("aac"));
    own_type = DICT_UNTYPED;
    ck_assert(get_joined(name, "aa", "b", "c") == 4 && has_text("aabc"));
    ck_assert_int_eq(get_joined(name, NULL, NULL, NULL), -ENODATA);
    own_type = DICT_STR; /* no notes */
    ck_assert_int_eq(get_joined(name, "aa", "b", "c"), -ENODATA);
    own_type = DICT_PTR;
    scene_arm(&refusal, 1);
    ck_assert(get_joined(name, "aa", "b", "c") == 2 && has_text("bc"));
    scene_child_down(1);
    ck_assert(get_joined(name, "aa", "b", "c") == 3 && has_text("aac"));
    scene_child_down(0);
    scene_child_down(2);
    ck_assert_int_eq(get_joined(name, "aa", "b", "c"), -ENOTCONN);
    scene_end();
}
END_TEST

START_TEST(places_of_all_copies_are_joined)
{
    volume_make(1);
    replicas_begin("");
    own_type = DICT_STR;
    ck_assert_int_eq(get_joined("trusted.glusterfs.pathinfo", "<A>", "<B>", "<C>"), 0);
    ck_assert_str_eq(scene.text, "(<REPLICATE:v> <A> <B> <C>)");
    scene_child_down(1);
    ck_assert_int_eq(get_joined("glusterfs.pathinfo", "<A>", "<B>", "<C>"), 0);
    ck_assert_str_eq(scene.text, "(<REPLICATE:v> <A> <C>)");
    scene_end();
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
    tcase_add_test(t, an_error_about_the_object_is_the_answer);
    tcase_add_test(t, an_fd_that_no_open_has_made_is_refused);
    tcase_add_test(t, names_of_the_volume_itself_are_hidden_in_the_root);
    tcase_add_test(t, a_listing_does_not_go_on_at_another_child);
    tcase_add_test(t, attributes_that_a_copy_may_have_wrong_are_not_listed);
    tcase_add_test(t, attributes_of_an_accused_copy_are_not_listed);
    tcase_add_test(t, notes_of_all_copies_are_joined);
    tcase_add_test(t, places_of_all_copies_are_joined);
    tcase_add_test(t, locks_of_layers_above_are_released_everywhere);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
