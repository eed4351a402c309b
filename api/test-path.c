/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Paths on a brick in memory lead to the right objects; each failing call to the brick fails the walk and
 * leaves no reference (scene_end() counts objects). */
#include <check.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "api/api-internal.h"
#include "base/test-must.h"
#include "coro/coroutine.h"
#include "xlators/cluster/test-children.h"

extern const struct xlator_type features_shard_xlator;

/* The engine and the volume that request.c asks for. */
bool
engine_is_here(void)
{
    return true;
}

struct graph *
volume_pin(struct glfs *fs)
{
    (void)fs;
    return NULL;
}

/* ---- one walk -------------------------------------------------------------------------------- */

static struct glfs volume;

struct path_walk {
    struct request r;
    const char *path;
    int how;
    bool is_done;
    int err;
    struct place place;
    char real[PATH_MAX];
};

static void
walk_main(void *arg)
{
    struct path_walk *w = arg;

    w->err = place_find(&w->r, w->path, w->how, &w->place, w->real);
    w->is_done = true;
}

static struct glfs_object start;

static struct path_walk *
walk_from(const struct glfs_object *at, const char *path, int how)
{
    static struct path_walk w;
    struct coroutine *c = NULL;

    w = (struct path_walk){.r = {.fs = &volume, .graph = scene.graph, .at = at}, .path = path, .how = how};
    must(coroutine_new(coro_stacks(), walk_main, &w, &c) == 0);
    coroutine_resume(c);
    scene_run(100);
    ck_assert_msg(w.is_done, "the walk to %s hangs", path ? path : "an object");
    return &w;
}

static struct path_walk *
walk_to(const char *path, int how)
{
    return walk_from(NULL, path, how);
}

static void
setup(void)
{
    pthread_mutex_init(&volume.lock, NULL);
    scene_clear(1, false);
    scene_begin(&features_shard_xlator, "    option shard-block-size 16\n");
    store_make_all("/d", S_IFDIR | 0755, 2, NULL);
    store_make_all("/d/e", S_IFDIR | 0755, 3, NULL);
    store_make_all("/d/e/f", S_IFREG | 0644, 4, "text");
    store_make_all("/d/up", S_IFLNK | 0777, 5, "../d/e");
    store_make_all("/abs", S_IFLNK | 0777, 6, "/d/up/f");
    store_make_all("/loop", S_IFLNK | 0777, 7, "loop");
    store_make_all("/dead", S_IFLNK | 0777, 8, "nowhere");
    place_release(&walk_to("/", 0)->place); /* the layer's own calls follow the first call */
    scene_run(10000);
}

static void
teardown(void)
{
    free(volume.cwd);
    volume.cwd = NULL;
    scene_end();
    pthread_mutex_destroy(&volume.lock);
}

/* ---- where paths lead ------------------------------------------------------------------------ */

static const struct path_case {
    const char *path;
    int how, err;
    uint8_t object; /* number of the object; 1: the root, 0: none */
    const char *name;
} cases[] = {
    {"/", 0, 0, 1, ""},
    {"//.//", 0, 0, 1, ""},
    {"/..", 0, 0, 1, ""},
    {"/d", 0, 0, 2, "d"},
    {"/d/e/", 0, 0, 3, "e"},
    {"d/./e//f", 0, 0, 4, "f"},
    {"/d/e/..", 0, 0, 2, "d"},
    {"/d/e/../../d/e/f", 0, 0, 4, "f"},
    {"/d/up", 0, 0, 5, "up"},
    {"/d/up", PLACE_FOLLOW, 0, 3, "e"},
    {"/d/up/", 0, 0, 3, "e"},
    {"/d/up/f", 0, 0, 4, "f"},
    {"/d/up/..", 0, 0, 2, "d"},
    {"/abs", 0, 0, 6, "abs"},
    {"/abs", PLACE_FOLLOW, 0, 4, "f"},
    {"/loop", 0, 0, 7, "loop"},
    {"/loop", PLACE_FOLLOW, -ELOOP, 0, ""},
    {"/loop/x", 0, -ELOOP, 0, ""},
    {"/dead", PLACE_FOLLOW, -ENOENT, 0, "nowhere"},
    {"/d/new", 0, -ENOENT, 0, "new"},
    {"/d/e/f/x", 0, -ENOTDIR, 0, ""},
    {"/d/e/f/", 0, -ENOTDIR, 0, ""},
    {"/d/e/f/..", 0, -ENOTDIR, 0, ""},
    {"", 0, -EINVAL, 0, ""},
    {"/d/e/f", PLACE_NAME, 0, 0, "f"},
    {"/d/new", PLACE_NAME, 0, 0, "new"},
    {"/d/up", PLACE_NAME, 0, 0, "up"},
    {"/", PLACE_NAME, -EBUSY, 0, ""},
    {"/d/.", PLACE_NAME, -EINVAL, 0, ""},
    {"/d/..", PLACE_NAME, -EBUSY, 0, ""},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static unsigned
number_of(const struct inode *inode)
{
    return inode ? inode->gfid.b[15] : 0;
}

START_TEST(paths_lead_to_objects)
{
    const struct path_case *c = &cases[_i];
    struct path_walk *w = walk_to(c->path, c->how);

    ck_assert_msg(w->err == c->err, "%s: %s", c->path, strerror(-w->err));
    ck_assert_uint_eq(number_of(w->place.inode), c->object);
    if (*c->name)
        ck_assert_str_eq(w->place.name, c->name);
    place_release(&w->place);
}
END_TEST

/* Paths that begin at an object, by the object's number. 9: no object has the gfid. */
static const struct object_case {
    uint8_t at;
    const char *path; /* NULL: the object itself */
    int how, err;
    uint8_t object, parent;
} object_cases[] = {
    {1, "d/e", 0, 0, 3, 2},
    {2, NULL, 0, 0, 2, 0},
    {2, "e/f", 0, 0, 4, 3},
    {2, "up/f", 0, 0, 4, 3},
    {2, "new", PLACE_NAME, 0, 0, 2},
    {2, "new", 0, -ENOENT, 0, 2},
    {4, NULL, 0, 0, 4, 0},
    {4, NULL, PLACE_KNOWN, 0, 4, 0},
    {4, "x", 0, -ENOTDIR, 0, 0},
    {5, NULL, PLACE_FOLLOW, 0, 5, 0},
    {9, NULL, 0, -ESTALE, 0, 0},
    {9, NULL, PLACE_KNOWN, -ESTALE, 0, 0},
    {9, "x", 0, -ESTALE, 0, 0},
};
enum { OBJECT_CASES = sizeof object_cases / sizeof object_cases[0] };

START_TEST(paths_begin_at_objects)
{
    const struct object_case *c = &object_cases[_i];

    start = (struct glfs_object){.fs = &volume, .gfid = {{c->at == 1 ? 0 : 0xbb, [15] = c->at}}};
    for (int round = 0; round < 2; round++) { /* at first the graph does not know the object */
        struct path_walk *w = walk_from(&start, c->path, c->how);

        ck_assert_msg(w->err == c->err, "%s", strerror(-w->err));
        ck_assert_uint_eq(number_of(w->place.inode), c->object);
        ck_assert_uint_eq(number_of(w->place.parent), c->parent);
        place_release(&w->place);
    }
}
END_TEST

/* A missing last name can be made: its directory is known. A missing directory is not. */
START_TEST(a_missing_last_name_has_a_directory)
{
    struct path_walk *w = walk_to("/d/up/new", 0);

    ck_assert_int_eq(w->err, -ENOENT);
    ck_assert_uint_eq(number_of(w->place.parent), 3);
    place_release(&w->place);
    w = walk_to("/d/new/newer", 0);
    ck_assert_int_eq(w->err, -ENOENT);
    ck_assert_ptr_null(w->place.parent);
    place_release(&w->place);
}
END_TEST

START_TEST(the_real_path_has_no_links)
{
    struct path_walk *w = walk_to("/d/e/../up/./f", PLACE_FOLLOW);

    ck_assert_str_eq(w->real, "/d/e/f");
    place_release(&w->place);
}
END_TEST

START_TEST(relative_paths_begin_at_the_working_directory)
{
    volume.cwd = strdup("/d/e");
    struct path_walk *w = walk_to("f", 0);

    ck_assert_uint_eq(number_of(w->place.inode), 4);
    place_release(&w->place);
    w = walk_to("../e", 0);
    ck_assert_uint_eq(number_of(w->place.inode), 3);
    place_release(&w->place);
    w = walk_to("/d", 0);
    ck_assert_uint_eq(number_of(w->place.inode), 2);
    place_release(&w->place);
}
END_TEST

START_TEST(long_paths_and_names_are_refused)
{
    char path[PATH_MAX + 10];

    memset(path, 'x', sizeof path);
    path[0] = '/';
    path[FOP_NAME_MAX + 2] = '\0';
    ck_assert_int_eq(walk_to(path, 0)->err, -ENAMETOOLONG);
    memset(path, '/', sizeof path);
    path[PATH_MAX + 9] = '\0';
    ck_assert_int_eq(walk_to(path, 0)->err, -ENAMETOOLONG);
}
END_TEST

START_TEST(a_failing_call_fails_the_walk)
{
    const struct path_case *c = &cases[_i];

    scene_arm(NULL, 0);
    place_release(&walk_to(c->path, c->how)->place);
    unsigned calls = scene.calls[0];

    for (unsigned at = 0; at < calls; at++) {
        const struct fault fault = {.at = at, .kind = FAULT_REFUSED, .err = EIO};

        scene_arm(&fault, 1);
        struct path_walk *w = walk_to(c->path, c->how);

        ck_assert_msg(w->err == -EIO, "%s, call %u: %s", c->path, at, strerror(-w->err));
        ck_assert_ptr_null(w->place.parent);
        ck_assert_ptr_null(w->place.inode);
    }
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("path");
    TCase *c = tcase_create("paths");

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_loop_test(c, paths_lead_to_objects, 0, CASES);
    tcase_add_loop_test(c, paths_begin_at_objects, 0, OBJECT_CASES);
    tcase_add_test(c, a_missing_last_name_has_a_directory);
    tcase_add_test(c, the_real_path_has_no_links);
    tcase_add_test(c, relative_paths_begin_at_the_working_directory);
    tcase_add_test(c, long_paths_and_names_are_refused);
    tcase_add_loop_test(c, a_failing_call_fails_the_walk, 0, CASES);
    suite_add_tcase(s, c);
    return s;
}

#include "base/test-main.h"
