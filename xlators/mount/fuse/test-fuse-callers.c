/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The supplementary groups of the thread that sends a request: as they are in /proc, groups that change
 * within the 10 ms for which a result counts, a thread that ends, and lack of memory. The groups' age is that
 * of the real clock, so each test holds for a machine that stands still at any place. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/test-must.h"
#include "base/test-root.h"
#include "xlators/cluster/test-children.h"
#include "xlators/mount/fuse/test-kernel.h"

enum { GROUP_BEFORE = 5001, GROUP_NOW = 6001, USER = 1000 };

static unsigned calls, group_count; /* of the calls that are not LOOKUPs of the root */
static gid_t first_group, latest_group;
static bool refuses; /* callers without GROUP_NOW */

static void
note_groups(struct call_stack *stk, int *ret)
{
    const struct caller *c = &stk->caller;

    group_count = c->group_count;
    latest_group = c->group_count ? c->groups[0] : 0;
    first_group = calls++ ? first_group : latest_group;
    if (refuses && latest_group != GROUP_NOW)
        *ret = -EACCES;
}

static void
set_group(gid_t group)
{
    must(setgroups(1, &group) == 0);
}

static void
wait_until_groups_are_old(void)
{
    const struct timespec pause = {.tv_nsec = 12 * 1000 * 1000};

    must(nanosleep(&pause, NULL) == 0);
}

static void
callers_begin(void)
{
    kernel_clear();
    kernel_begin("");
    (void)store_make(0, "/f", S_IFREG | 0644, 3, "contents");
    kernel.uid = kernel.gid = USER;
    kernel.lie = note_groups;
    refuses = false;
}

static int
look_up(void)
{
    uint64_t number;

    calls = 0;
    return kernel_lookup(FUSE_ROOT_ID, "f", &number);
}

/* Sends a LOOKUP of a caller who has had GROUP_BEFORE at a request, mostly less than 10 ms ago. */
static void
gain_group(void)
{
    set_group(GROUP_BEFORE);
    wait_until_groups_are_old();
    refuses = false;
    must(look_up() == 0 && latest_group == GROUP_BEFORE);
    set_group(GROUP_NOW);
    refuses = true;
}

START_TEST(a_caller_has_its_groups)
{
    static const gid_t groups[] = {7001, 7002, 7003};

    callers_begin();
    must(setgroups(3, groups) == 0);
    must(look_up() == 0 && group_count == 3 && latest_group == 7001);
    must(setgroups(0, NULL) == 0);
    wait_until_groups_are_old();
    must(look_up() == 0 && group_count == 0);
    kernel.uid = 0; /* bricks check nothing for root */
    set_group(GROUP_NOW);
    wait_until_groups_are_old();
    must(look_up() == 0 && group_count == 0);
    kernel.uid = USER;
    kernel.pid = 0; /* a process in a namespace that the mount cannot see */
    must(look_up() == 0 && group_count == 0);
    kernel_end();
}
END_TEST

START_TEST(a_refused_call_is_repeated_with_the_groups_of_now)
{
    bool was_repeated = false;

    callers_begin();
    for (int i = 0; i < 100 && !was_repeated; i++) {
        gain_group();
        must(look_up() == 0 && latest_group == GROUP_NOW);
        was_repeated = calls == 2 && first_group == GROUP_BEFORE;
    }
    must(was_repeated);
    kernel_end();
}
END_TEST

START_TEST(a_refused_call_of_a_caller_with_the_same_groups_fails)
{
    callers_begin();
    for (int i = 0; i < 3; i++) {
        gain_group();
        set_group(GROUP_BEFORE);
        must(look_up() == EACCES && calls == 1);
    }
    must(setgroups(0, NULL) == 0);
    wait_until_groups_are_old();
    must(look_up() == EACCES && calls == 1);
    must(look_up() == EACCES && calls == 1);
    kernel_end();
}
END_TEST

START_TEST(a_call_that_sets_the_group_bit_has_the_groups_of_now)
{
    struct fuse_mkdir_in in = {.mode = 02755};

    callers_begin();
    gain_group();
    calls = 0;
    kernel_request(FUSE_MKDIR, FUSE_ROOT_ID);
    kernel_put(&in, sizeof in);
    kernel_put_text("d");
    must(kernel_ask() == 0 && calls == 1 && latest_group == GROUP_NOW);
    kernel_end();
}
END_TEST

START_TEST(a_repetition_without_memory_fails)
{
    unsigned failed = 0;
    bool has_starved = true;

    scene_init_starving();
    callers_begin();
    for (int64_t n = 1; has_starved; n++) {
        gain_group();
        scene_starve(n);
        int err = look_up();

        has_starved = scene_has_starved();
        scene_starve(0);
        must(err == 0 || (has_starved && err == ENOMEM));
        failed += err != 0;
    }
    must(failed > 3);
    kernel_end();
}
END_TEST

START_TEST(a_thread_that_has_ended_has_no_groups)
{
    callers_begin();
    set_group(GROUP_BEFORE);
    pid_t child = fork();

    must(child >= 0);
    while (child == 0)
        (void)pause();
    kernel.pid = (uint32_t)child;
    must(look_up() == 0 && latest_group == GROUP_BEFORE);
    must(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    wait_until_groups_are_old();
    must(look_up() == 0 && group_count == 0);
    kernel_end();
}
END_TEST

static Suite *
test_suite(void)
{
    const TTest *const tests[] = {
        a_caller_has_its_groups,
        a_refused_call_is_repeated_with_the_groups_of_now,
        a_refused_call_of_a_caller_with_the_same_groups_fails,
        a_call_that_sets_the_group_bit_has_the_groups_of_now,
        a_repetition_without_memory_fails,
        a_thread_that_has_ended_has_no_groups,
    };
    Suite *s = suite_create("fuse-callers");
    TCase *t = tcase_create("callers");

    root_or_skip(); /* setgroups(2) */
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(t, tests[i]);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
