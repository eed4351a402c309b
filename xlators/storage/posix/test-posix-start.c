/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Start-up checks, and the housekeeping of a brick that runs. */
#include <signal.h>
#include <sys/xattr.h>
#include <time.h>

#include "xlators/storage/posix/test-entry.h"

/* ---- start ----------------------------------------------------------------------------------- */

static bool
starts(const char *dir, const char *volume_id, const char *more)
{
    char error[512] = "";
    struct graph *g = graph_of(dir, volume_id, more, error, sizeof error);

    if (g)
        graph_free(g);
    return g != NULL;
}

START_TEST(starts_only_on_its_own_brick)
{
    struct gfid other = fresh_gfid();
    char dir[64], path[128];

    pools();
    brick_dir(dir);
    ck_assert(starts(dir, VOLUME_ID, ""));
    ck_assert(starts(dir, VOLUME_ID, "")); /* again: nothing is left locked */
    snprintf(path, sizeof path, "%s/.glusterfs/landfill", dir);
    ck_assert_int_eq(access(path, F_OK), 0);
    ck_assert(!starts(dir, GFID(&other), ""));
    ck_assert(!starts(dir, "nonsense", ""));
    ck_assert(!starts("/dev/shm/kiln-no-such-directory", VOLUME_ID, ""));
    ck_assert(!starts(path, VOLUME_ID, "")); /* no volume-id */
    ck_assert(!starts(dir, VOLUME_ID, "option require-mount on\n"));

    ck_assert_int_eq(setxattr(dir, "trusted.gfid", &other, 16, 0), 0);
    ck_assert(!starts(dir, VOLUME_ID, ""));
    ck_assert_int_eq(setxattr(dir, "trusted.gfid", &other, 15, 0), 0);
    ck_assert(!starts(dir, VOLUME_ID, ""));
    ck_assert_int_eq(setxattr(dir, "trusted.gfid", &gfid_root, 16, 0), 0);
    ck_assert(starts(dir, VOLUME_ID, ""));
    ck_assert_int_eq(setxattr(dir, "trusted.glusterfs.volume-id", "short", 5, 0), 0);
    ck_assert(!starts(dir, VOLUME_ID, ""));
    remove_tree(dir);
}
END_TEST

/* The mount point of a disk that is away, to which glusterd has given the volume-id. */
START_TEST(an_emptied_brick_does_not_start)
{
    char dir[64], path[128];

    pools();
    brick_dir(dir);
    snprintf(path, sizeof path, "%s/.glusterfs", dir);
    ck_assert_int_eq(rmdir(path), 0);
    ck_assert(!starts(dir, VOLUME_ID, ""));
    ck_assert_int_eq(access(path, F_OK), -1);
    ck_assert_int_eq(getxattr(dir, "trusted.gfid", path, sizeof path), -1);
    ck_assert_int_eq(mkdir(path, 0600), 0);
    ck_assert(starts(dir, VOLUME_ID, ""));
    remove_tree(dir);
}
END_TEST

START_TEST(root_handle_must_lead_to_the_brick)
{
    char dir[64], path[192];

    pools();
    brick_dir(dir);
    ck_assert(starts(dir, VOLUME_ID, ""));
    snprintf(path, sizeof path, "%s/.glusterfs/00/00/00000000-0000-0000-0000-000000000001", dir);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(symlink("/tmp", path), 0);
    ck_assert(!starts(dir, VOLUME_ID, ""));
    remove_tree(dir);
}
END_TEST

/* The number of handle folders on the brick. */
static unsigned
handle_folders(const char *brick)
{
    char path[128];
    unsigned n = 0;
    struct dirent *e;

    snprintf(path, sizeof path, "%s/.glusterfs", brick);
    DIR *dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    while ((e = readdir(dir)))
        n += strlen(e->d_name) == 2 && strcmp(e->d_name, "..") != 0;
    closedir(dir);
    return n;
}

START_TEST(a_start_makes_no_folders_for_later)
{
    struct gfid gfids[] = {{.b = {0xab, 0xcd, 1}}, {.b = {0xab, 0xcd, 2}}, {.b = {0xab, 0xce, 3}}};
    char dir[64];

    pools();
    brick_dir(dir);
    ck_assert(starts(dir, VOLUME_ID, ""));
    ck_assert_uint_eq(handle_folders(dir), 1); /* of the root's handle */
    remove_tree(dir);

    unsigned before = handle_folders(w.dir);
    for (unsigned i = 0; i < 3; i++) {
        char path[POSIX_HANDLE_SIZE];

        ck_assert_int_eq(posix_handle_make_parents(w.p, posix_handle_path(&gfids[i], path)), 0);
        path[5] = '\0';
        ck_assert_int_eq(faccessat(w.p->handles_fd, path, F_OK, 0), 0);
    }
    ck_assert_uint_eq(handle_folders(w.dir), before + 1);
}
END_TEST

/* The start waits for the process that serves the brick, until a pending SIGTERM ends the wait. */
START_TEST(one_process_a_brick)
{
    sigset_t term;

    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, &term, NULL), 0);
    ck_assert_int_eq(raise(SIGTERM), 0);
    ck_assert(!starts(w.dir, VOLUME_ID, ""));
    ck_assert_int_eq(sigwaitinfo(&term, NULL), SIGTERM);
}
END_TEST

static void
rename_on_disk(const char *from, const char *to)
{
    char old[192], fresh[192];

    snprintf(old, sizeof old, "%s/%s", w.dir, from);
    snprintf(fresh, sizeof fresh, "%s/%s", w.dir, to);
    ck_assert_int_eq(rename(old, fresh), 0);
}

/* A process dies before the rename of a directory, between the rename and that of the handle, and after both;
 * or the directory is moved on by a user of the machine. */
START_TEST(a_directory_whose_rename_was_cut_has_its_handle)
{
    struct inode *place = make(FOP_mkdir, w.root, "place"), *d = make(FOP_mkdir, w.root, "d");
    struct gfid place_gfid = place->gfid, d_gfid = d->gfid;
    struct iatt a;

    ck_assert_int_eq(move(w.root, "d", place, "e"), 0);
    inode_unref(d);
    inode_unref(place);
    for (unsigned cut = 0; cut < 3; cut++) {
        ck_assert_int_eq(posix_handle_note_move(w.p, &d_gfid, &place_gfid, cut == 1 ? "g" : "f"), 0);
        if (cut == 1)
            rename_on_disk("place/e", "place/g");
        brick_down();
        brick_up("");
        ck_assert_int_eq(find_gfid(&d_gfid, &a), 0);
        ck_assert(S_ISDIR(a.mode));
    }
    ck_assert_int_eq(posix_handle_note_move(w.p, &d_gfid, &place_gfid, "f"), 0);
    rename_on_disk("place/g", "elsewhere");
    ck_assert_int_eq(posix_handle_finish_move(w.p), 0);
    ck_assert_int_eq(fsetxattr(w.p->handles_fd, POSIX_XATTR_MOVING_DIR, "short", 5, 0), 0);
    ck_assert_int_eq(posix_handle_finish_move(w.p), -EINVAL);
    brick_down(); /* a note that cannot be read does not keep the brick from its service */
    brick_up("");
}
END_TEST

/* ---- housekeeping ---------------------------------------------------------------------------- */

static int last_event = -1;

static void
note_event(struct graph *g, const struct layer_event *e)
{
    ck_assert_ptr_eq(g, w.graph);
    ck_assert_int_eq(e->kind, EVENT_CHILD);
    last_event = (int)e->change;
}

START_TEST(health_check_writes_and_reads)
{
    char text[64] = "";
    int fd;

    w.graph->watch = note_event;
    ck_assert_uint_eq(chore_now(w.p, POSIX_HEALTH), 30000);
    fd = openat(w.p->handles_fd, "health_check", O_RDONLY);
    ck_assert_int_eq(read(fd, text, sizeof text), 25);
    close(fd);
    ck_assert_str_eq(text + 19, " +0000");
    ck_assert(!atomic_load(&w.p->is_going_down));

    ck_assert_int_eq(unlinkat(w.p->handles_fd, "health_check", 0), 0);
    ck_assert_int_eq(mkdirat(w.p->handles_fd, "health_check", 0755), 0);
    chore_now(w.p, POSIX_HEALTH);
    ck_assert(atomic_load(&w.p->is_going_down));
    ck_assert(!atomic_load(&w.graph->is_child_up));
    ck_assert_int_eq(last_event, CHILD_DOWN);
}
END_TEST

START_TEST(health_check_notices_that_the_brick_was_moved)
{
    char away[80];

    snprintf(away, sizeof away, "%s-away", w.dir);
    ck_assert_int_eq(rename(w.dir, away), 0);
    chore_now(w.p, POSIX_HEALTH);
    ck_assert(atomic_load(&w.p->is_going_down));
    ck_assert_int_eq(rename(away, w.dir), 0);
}
END_TEST

/* With real timers and workers the janitor empties the landfill in the background, and can be stopped in the
 * middle of its work. */
START_TEST(janitor_runs_by_itself)
{
    struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};

    brick_down();
    brick_up("option janitor-sleep-duration 1\n");
    ck_assert_int_eq(workers_start(&(struct worker_options){.min = 1, .max = 2}), 0);
    ck_assert_int_eq(graph_start(w.graph), 0);
    struct inode *d = make(FOP_mkdir, w.root, "d");
    inode_unref(make(FOP_create, d, "f"));
    inode_unref(d);
    ck_assert_int_eq(remove_entry(FOP_rmdir, w.root, "d", 1), 0);
    while (unlinkat(w.p->handles_fd, "landfill", AT_REMOVEDIR) < 0)
        nanosleep(&pause, NULL); /* Check's own time limit ends it */
    graph_stop(w.graph);
    workers_stop();
}
END_TEST

START_TEST(reserve)
{
    struct inode *f = make(FOP_create, w.root, "f");
    struct gfid g = fresh_gfid();
    int err;

    atomic_store(&w.p->is_full, true);
    ck_assert_ptr_null(make_as(FOP_mkdir, w.root, "d", &g, &err));
    ck_assert_int_eq(err, -ENOSPC);
    ck_assert_int_eq(link_to(f, w.root, "g"), -ENOSPC);
    ck_assert_int_eq(move(w.root, "f", w.root, "g"), 0);
    ck_assert_int_eq(remove_entry(FOP_unlink, w.root, "g", 0), 0);
    chore_now(w.p, POSIX_RESERVE); /* /dev/shm is not full */
    inode_unref(make(FOP_create, w.root, "f"));
    inode_unref(f);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("posix-start");
    TCase *start = tcase_create("start"), *chores = tcase_create("chores");

    root_or_skip();
    tcase_add_test(start, starts_only_on_its_own_brick);
    tcase_add_test(start, an_emptied_brick_does_not_start);
    tcase_add_test(start, an_emptied_brick_does_not_start);
    tcase_add_test(start, root_handle_must_lead_to_the_brick);
    suite_add_tcase(s, start);

    tcase_add_checked_fixture(chores, world_setup, world_teardown);
    tcase_add_test(chores, a_start_makes_no_folders_for_later);
    tcase_add_test(chores, one_process_a_brick);
    tcase_add_test(chores, a_directory_whose_rename_was_cut_has_its_handle);
    tcase_add_test(chores, reserve);
    tcase_add_test(chores, health_check_writes_and_reads);
    tcase_add_test(chores, health_check_notices_that_the_brick_was_moved);
    tcase_add_test(chores, janitor_runs_by_itself);
    suite_add_tcase(s, chores);
    return s;
}

#include "base/test-main.h"
