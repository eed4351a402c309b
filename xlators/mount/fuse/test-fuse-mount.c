/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The mount itself: options, failures of the system at the start, INIT, errors of the device, events of the
 * bricks, invalidations, changes of options, and the statedump. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <urcu.h>

#include "base/read-section.h"
#include "base/test-must.h"
#include "fs/inode.h"
#include "log/dump.h"
#include "xlators/cluster/test-children.h"
#include "xlators/mount/fuse/fuse-internal.h"
#include "xlators/mount/fuse/fuse.h"
#include "xlators/mount/fuse/test-kernel.h"

extern const struct xlator_type mount_fuse_xlator;

/* ---- options, and the start ------------------------------------------------------------------ */

START_TEST(a_wrong_option_is_named)
{
    static const struct {
        const char *options, *error; /* error: a part of the text; NULL: accepted */
    } cases[] = {
        {"", "expected an absolute path"},
        {" option mountpoint tmp\n", "expected an absolute path"},
        {" option mountpoint /tmp\n option attribute-timeout x\n", "attribute-timeout x"},
        {" option mountpoint /tmp\n option attribute-timeout -1\n", "attribute-timeout -1"},
        {" option mountpoint /tmp\n option entry-timeout 1s\n", "entry-timeout 1s"},
        {" option mountpoint /tmp\n option negative-timeout 2e9\n", "negative-timeout 2e9"},
        {" option mountpoint /tmp\n option kernel-options nodev,wrong\n", "wrong is not known"},
        {" option mountpoint /tmp\n option kernel-options node\n", "node is not known"},
        {" option mountpoint /tmp\n option kernel-options nodev,nosuid,async\n", NULL},
        {" option mountpoint /tmp\n option read-only on\n option attribute-timeout 0.5\n", NULL},
        {" option mountpoint /nonexistent/kiln\n", "start: No such file or directory"},
        {" option takes-over on\n", NULL},
    };

    kernel_clear();
    scene_clear(1, false);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *error = scene_refusal(&mount_fuse_xlator, cases[i].options, true);

        if (!error != !cases[i].error || (error && !strstr(error, cases[i].error)))
            ck_abort_msg("%s: %s", cases[i].options, error ? error : "accepted");
    }
}
END_TEST

START_TEST(an_error_of_the_system_at_the_start_is_returned)
{
    static const char options[] = " option mountpoint /tmp\n";
    int *const calls[] = {&kernel.open_err, &kernel.mount_err, &kernel.session_err};

    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        kernel_clear();
        scene_clear(1, false);
        *calls[i] = EPERM;
        const char *error = scene_refusal(&mount_fuse_xlator, options, true);

        must(error && strstr(error, "start: Operation not permitted"));
        must(!kernel.unmounts); /* nothing was mounted */
        must(!kernel.device || fcntl(kernel.device, F_GETFD) < 0);
    }
}
END_TEST

START_TEST(a_mount_without_memory_is_refused)
{
    bool has_starved = true;

    scene_init_starving();
    kernel_clear();
    scene_clear(1, false);
    must(!scene_refusal(&mount_fuse_xlator, " option mountpoint /tmp\n", true)); /* makes the pools */
    for (int64_t n = 1; has_starved; n++) {
        scene_starve(n);
        const char *error = scene_refusal(&mount_fuse_xlator, " option mountpoint /tmp\n", true);

        has_starved = scene_has_starved();
        scene_starve(0);
        must(error || !has_starved || kernel.unmounts); /* some allocations can be done without */
    }
}
END_TEST

START_TEST(a_device_that_cannot_be_watched_ends_the_mount)
{
    kernel_clear();
    scene_clear(1, false);
    kernel.watch_err = ENOSPC;
    scene_begin_top(&mount_fuse_xlator, " option mountpoint /tmp\n");
    must(kernel.ended == 1 && !kernel.source);
    scene_end();
    must(kernel.unmounts == 1);
}
END_TEST

static int
serve_root(void)
{
    kernel_request(FUSE_GETATTR, FUSE_ROOT_ID);
    kernel_put(&(struct fuse_getattr_in){0}, sizeof(struct fuse_getattr_in));
    return kernel_ask();
}

START_TEST(init_negotiates_the_options)
{
    kernel_clear();
    kernel_begin(" option acl on\n option kernel-writeback-cache on\n");
    must(kernel.init.flags & FUSE_POSIX_ACL && kernel.init.flags & FUSE_DONT_MASK);
    must(kernel.init.flags & FUSE_WRITEBACK_CACHE && kernel.init.flags & FUSE_HANDLE_KILLPRIV_V2);
    must(kernel.init.max_write == FUSE_WRITE_MAX);
    kernel_end();

    kernel_begin(" option handle-killpriv off\n");
    must(!(kernel.init.flags & (FUSE_POSIX_ACL | FUSE_WRITEBACK_CACHE | FUSE_HANDLE_KILLPRIV_V2)));
    kernel_end();

    kernel.init_flags = FUSE_ASYNC_READ; /* an old kernel */
    kernel_begin(" option acl on\n option kernel-writeback-cache on\n");
    must(!(kernel.init.flags & (FUSE_POSIX_ACL | FUSE_WRITEBACK_CACHE | FUSE_HANDLE_KILLPRIV_V2)));
    must(serve_root() == 0);
    kernel_end();
}
END_TEST

/* ---- the device ------------------------------------------------------------------------------ */

START_TEST(an_error_of_the_device_ends_the_mount_once)
{
    static const struct {
        int err;
        unsigned ended;
    } cases[] = {{EINTR, 0}, {ENOENT, 0}, {EAGAIN, 0}, {ENODEV, 1}, {EIO, 1}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        kernel_clear();
        kernel_begin("");
        kernel.read_err = cases[i].err;
        read_section_begin();
        kernel.source->fn(kernel.source, 1);
        read_section_end();
        must(kernel.ended == cases[i].ended);
        must(serve_root() == 0);
        kernel_end();
        must(kernel.ended == cases[i].ended && kernel.unmounts == 1);
    }
    kernel_clear();
    kernel_begin("");
    kernel_hang_up();
    must(kernel.ended == 1);
    kernel_end();
}
END_TEST

/* The device is still readable while a reply is written: another worker begins to read. */
static void
read_in_another_worker(void)
{
    scene_starve(1);
    kernel.source->fn(kernel.source, 1);
}

START_TEST(requests_are_answered_without_memory_for_a_buffer)
{
    scene_init_starving();
    kernel_clear();
    kernel_begin("");
    for (int i = 0; i < 3; i++) {
        fuse_process_end(); /* drops the cached buffers */
        kernel.on_reply = i == 1 ? read_in_another_worker : NULL;
        kernel_request(FUSE_GETXATTR, FUSE_ROOT_ID); /* answered without a call */
        kernel_put(&(struct fuse_getxattr_in){.size = 100}, sizeof(struct fuse_getxattr_in));
        kernel_put_text("glusterfs.gfid.string");
        scene_starve(1);
        must(kernel_ask() == 0);
        must(scene_has_starved());
        must(kernel.modified == (i >= 1)); /* the second worker waits for the reserve */
        scene_starve(0);
        must(serve_root() == 0);
    }
    kernel_end();
}
END_TEST

START_TEST(a_large_write_takes_the_buffer_of_the_device)
{
    static char bytes[100 << 10];
    struct fuse_write_in in = {.size = sizeof bytes};
    struct fault f = {.kind = FAULT_REFUSED, .err = EFBIG};
    uint64_t number, fh;

    kernel_clear();
    kernel_begin("");
    (void)store_make(0, "/f", S_IFREG | 0644, 3, NULL);
    must(kernel_lookup(FUSE_ROOT_ID, "f", &number) == 0);
    must(kernel_open(FUSE_OPEN, number, O_RDWR, &fh) == 0);
    for (int i = 0; i < 6; i++) {
        in.fh = fh;
        scene_arm(&f, 1);
        kernel_request(FUSE_WRITE, number);
        kernel_put(&in, sizeof in);
        kernel_put(bytes, sizeof bytes);
        must(kernel_ask() == EFBIG);
    }
    must(!device_take_buffer(bytes));
    kernel_end();
}
END_TEST

static uint64_t lookups_at_reply;

static void
sum_lookups(struct inode *inode, void *ctx, void *arg)
{
    (void)inode;
    *(uint64_t *)arg += atomic_load(&((struct fuse_node *)ctx)->lookups);
}

static uint64_t
sum_of_lookups(void)
{
    struct xlator *xl = scene.graph->top;
    uint64_t sum = 0;

    inode_table_each(xl->graph->inodes, xl, sum_lookups, &sum);
    return sum;
}

static void *
run_help(void *arg)
{
    rcu_register_thread();
    read_section_begin();
    scene_run_job();
    read_section_end();
    rcu_unregister_thread();
    return arg;
}

/* The worker is stuck in the reply: the watchdog gives its jobs to another worker. */
static void
help_from_another_worker(void)
{
    pthread_t helper;

    must(pthread_create(&helper, NULL, run_help, NULL) == 0);
    must(pthread_join(helper, NULL) == 0);
    lookups_at_reply = sum_of_lookups();
}

START_TEST(another_worker_reads_on_behind_a_stuck_request)
{
    struct fuse_forget_in forget = {.nlookup = 1};
    uint64_t number;

    kernel_clear();
    kernel_begin(" option inside on\n");
    (void)store_make(0, "/f", S_IFREG | 0644, 3, NULL);
    must(kernel_lookup(FUSE_ROOT_ID, "f", &number) == 0 && sum_of_lookups() == 1);
    kernel.on_reply = help_from_another_worker;
    kernel_request(FUSE_GETXATTR, FUSE_ROOT_ID);
    kernel_put(&(struct fuse_getxattr_in){.size = 100}, sizeof(struct fuse_getxattr_in));
    kernel_put_text("glusterfs.gfid.string");
    kernel_queue();
    kernel.is_answered = false;
    kernel_request(FUSE_FORGET, number);
    kernel_put(&forget, sizeof forget);
    kernel_queue();
    kernel_wake();
    must(lookups_at_reply == 0); /* the FORGET was read before the first request had its reply */
    scene_run(0);
    kernel_listen();
    must(kernel.is_answered && kernel.err == 0);
    must(serve_root() == 0);
    kernel_end();
}
END_TEST

START_TEST(a_mount_point_of_another_file_system_is_not_unmounted)
{
    kernel_clear();
    kernel_begin("");
    struct mounted_as *as = &mount_of(scene.graph->top)->mounted_as; /* another mount has the path by now */
    as->device += _i == 0;
    as->id += _i == 1; /* with the same device number */
    kernel_hang_up();
    must(kernel.ended == 1);
    kernel_end();
    must(!kernel.unmounts);
}
END_TEST

START_TEST(a_missing_name_is_cached_for_the_negative_timeout)
{
    uint64_t number;

    kernel_clear();
    kernel_begin(" option negative-timeout 5\n");
    must(kernel_lookup(FUSE_ROOT_ID, "missing", &number) == 0 && number == 0);
    must(((const struct fuse_entry_out *)kernel_answer(sizeof(struct fuse_entry_out)))->entry_valid == 5);
    kernel_end();
    kernel_begin("");
    must(kernel_lookup(FUSE_ROOT_ID, "missing", &number) == ENOENT);
    kernel_end();
}
END_TEST

/* ---- events of the bricks -------------------------------------------------------------------- */

START_TEST(requests_wait_for_the_first_event_of_the_bricks)
{
    kernel_clear();
    scene_clear(1, false);
    kernel.watch_err = EBUSY; /* the event of scene_begin_top() must come to the watch */
    scene_begin_top(&mount_fuse_xlator, " option mountpoint /tmp\n");
    struct fuse_mount *m = mount_of(scene.graph->top);

    must(m->ready_for == FUSE_READY && !device_pause(m));
    kernel.watch_err = 0;
    device_go_on(m);
    must(kernel.source && device_pause(m) && !kernel.source);
    kernel.watch_err = EBUSY;
    device_go_on(m);
    must(!kernel.source && kernel.ended == 1);
    scene_end();
}
END_TEST

START_TEST(an_invalidation_reaches_the_kernel)
{
    uint64_t number, dir;

    kernel_clear();
    kernel_begin(" option cache-invalidation on\n");
    struct gfid file = store_make(0, "/f", S_IFREG | 0644, 3, NULL)->stat.gfid;
    struct gfid other = store_make(0, "/g", S_IFREG | 0644, 4, NULL)->stat.gfid;
    struct gfid root = scene.store[0].object[0].stat.gfid;
    const struct {
        struct gfid *gfid;
        uint32_t flags;
        unsigned notices;
        int64_t from;
    } cases[] = {{&file, 1, 1, -1}, {&file, INVALIDATED_CONTENTS, 1, 0}, {&file, 0x20, 0, 0},
                 {&other, 1, 0, 0}, {&root, 1, 0, 0}};

    (void)store_make(0, "/d", S_IFDIR | 0755, 5, NULL);
    must(kernel_lookup(FUSE_ROOT_ID, "f", &number) == 0);
    must(kernel_lookup(FUSE_ROOT_ID, "d", &dir) == 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        kernel.notices = 0;
        xlator_tell_invalidated(scene.child[0], cases[i].gfid, cases[i].flags);
        kernel_listen();
        must(kernel.notices == cases[i].notices);
        if (kernel.notices)
            must(kernel.notice_number == number && kernel.notice_from == cases[i].from);
    }
    kernel.notices = 0;
    scene_child_down(0); /* invalidations of the brick may be lost */
    kernel_listen();
    must(kernel.notices == 2);
    must(serve_root() == ENOTCONN);
    scene_child_up(0);
    kernel_forget(number, 1);
    xlator_tell_invalidated(scene.child[0], &file, 1);
    kernel.notices = 0;
    kernel_listen();
    must(kernel.notices == 0);
    must(serve_root() == 0);
    kernel_end();
}
END_TEST

START_TEST(events_of_parts_do_not_go_up)
{
    static const enum child_event events[] = {CHILD_SOME_DOWN, CHILD_SOME_UP, CHILD_CONNECTING,
                                              CHILD_REFUSED};
    uint64_t number;

    kernel_clear();
    kernel_begin("");
    (void)store_make(0, "/f", S_IFREG | 0644, 3, NULL);
    must(kernel_lookup(FUSE_ROOT_ID, "f", &number) == 0);
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
        xlator_tell_parent(scene.child[0], events[i]);
    kernel_listen();
    must(kernel.notices == 0); /* without cache-invalidation the timeouts are short */
    must(serve_root() == 0);
    atomic_store(&scene.graph->is_draining, true);
    xlator_tell_parent(scene.child[0], CHILD_DOWN);
    atomic_store(&scene.graph->is_draining, false);
    kernel_end();
}
END_TEST

/* ---- attributes of folders, cached ----------------------------------------------------------- */

static unsigned
calls_of_getattr(uint64_t number)
{
    scene_arm(NULL, 0);
    kernel_request(FUSE_GETATTR, number);
    kernel_put(&(struct fuse_getattr_in){0}, sizeof(struct fuse_getattr_in));
    must(kernel_ask() == 0);
    return scene.calls[0];
}

static int
make_name(uint32_t opcode, uint64_t dir, const char *name)
{
    struct fuse_mkdir_in in = {.mode = 0755};

    kernel_request(opcode, dir);
    if (opcode == FUSE_MKDIR)
        kernel_put(&in, sizeof in);
    kernel_put_text(name);
    return kernel_ask();
}

/* Gives MKDIR the folder's attributes before and after the change, as a brick does. */
static void
add_parent_times(struct call_stack *stk, int *ret)
{
    if (stk->call.fop != FOP_mkdir || *ret < 0)
        return;
    stk->reply.post = store_find(&scene.store[0], "/d")->stat;
    stk->reply.pre = stk->reply.post;
    stk->reply.pre.ctime = stk->reply.pre.mtime = 100;
    stk->reply.pre.nlink--;
    stk->reply.post.ctime = stk->reply.post.mtime = stk->reply.post.ctime + 10;
}

START_TEST(attributes_of_a_folder_are_cached_until_a_change)
{
    uint64_t dir;

    kernel_clear();
    kernel_begin("");
    (void)store_make(0, "/d", S_IFDIR | 0755, 5, NULL);
    must(kernel_lookup(FUSE_ROOT_ID, "d", &dir) == 0);
    must(calls_of_getattr(dir) == 1 && calls_of_getattr(dir) == 0);
    scene.now_ns += 2000000000;
    must(calls_of_getattr(dir) == 1 && calls_of_getattr(dir) == 0);
    /* the folder's times come with the reply to a change of a name */
    kernel.lie = add_parent_times;
    must(make_name(FUSE_MKDIR, dir, "a") == 0);
    must(calls_of_getattr(dir) == 0);
    const struct fuse_attr_out *out = kernel_answer(sizeof *out);
    must(out->attr.ctime == (uint64_t)store_find(&scene.store[0], "/d")->stat.ctime + 10);
    /* without times in the reply, the cache is dropped */
    kernel.lie = NULL;
    must(make_name(FUSE_RMDIR, dir, "a") == 0);
    must(calls_of_getattr(dir) == 1 && calls_of_getattr(dir) == 0);
    must(make_name(FUSE_UNLINK, dir, "none") == ENOENT);
    must(calls_of_getattr(dir) == 1);
    /* an invalidation during GETATTR: the attributes are not cached */
    xlator_tell_invalidated(scene.child[0], &store_find(&scene.store[0], "/d")->stat.gfid, 1);
    must(calls_of_getattr(dir) == 1 && calls_of_getattr(dir) == 0);
    kernel_end();
}
END_TEST

START_TEST(a_look_during_a_change_is_not_cached)
{
    struct fault held = {.kind = FAULT_HELD};
    struct fuse_mkdir_in in = {.mode = 0755};
    uint64_t dir;

    kernel_clear();
    kernel_begin("");
    (void)store_make(0, "/d", S_IFDIR | 0755, 5, NULL);
    must(kernel_lookup(FUSE_ROOT_ID, "d", &dir) == 0);
    scene_arm(&held, 1);
    kernel_request(FUSE_MKDIR, dir);
    kernel_put(&in, sizeof in);
    kernel_put_text("a");
    kernel_send();
    scene_run(0);
    kernel_request(FUSE_GETATTR, dir);
    kernel_put(&(struct fuse_getattr_in){0}, sizeof(struct fuse_getattr_in));
    must(kernel_ask() == 0);
    kernel.is_answered = false;
    scene_release_held(0);
    kernel_listen();
    must(kernel.is_answered && kernel.err == 0);
    must(calls_of_getattr(dir) == 1);
    kernel_end();
}
END_TEST

/* Links the names of LOOKUP's replies, as protocol/client does. */
static void
link_looked_up(struct call_stack *stk, int *ret)
{
    if (stk->call.fop == FOP_lookup && *ret >= 0 && stk->call.loc.name)
        inode_unref(inode_link(stk->xl->graph->inodes, stk->call.loc.parent, stk->call.loc.name,
                               &stk->reply.stat));
}

START_TEST(a_lookup_caches_the_attributes_of_a_known_folder)
{
    uint64_t dir, again;

    kernel_clear();
    kernel_begin("");
    kernel.lie = link_looked_up;
    (void)store_make(0, "/d", S_IFDIR | 0755, 5, NULL);
    must(kernel_lookup(FUSE_ROOT_ID, "d", &dir) == 0);
    must(kernel_lookup(FUSE_ROOT_ID, "d", &again) == 0 && again == dir);
    must(calls_of_getattr(dir) == 0);
    must(make_name(FUSE_RMDIR, FUSE_ROOT_ID, "d") == 0);
    scene_arm(NULL, 0);
    kernel_request(FUSE_GETATTR, dir); /* the attributes of a removed folder are not cached */
    kernel_put(&(struct fuse_getattr_in){0}, sizeof(struct fuse_getattr_in));
    must(kernel_ask() == ESTALE && scene.calls[0] == 1);
    kernel_end();
}
END_TEST

static bool has_time;

/* The brick is told the time of an OPENDIR, which may become the folder's access time (features/utime). */
static void
add_time_to_opendir(struct call_stack *stk, int *ret)
{
    (void)ret;
    stk->caller.time_flags = stk->call.fop == FOP_opendir && has_time;
}

START_TEST(an_opendir_with_a_time_drops_the_cached_attributes)
{
    uint64_t dir, fh;

    kernel_clear();
    kernel_begin("");
    kernel.lie = add_time_to_opendir;
    (void)store_make(0, "/d", S_IFDIR | 0755, 5, NULL);
    must(kernel_lookup(FUSE_ROOT_ID, "d", &dir) == 0);
    must(calls_of_getattr(dir) == 1);
    for (int i = 0; i < 2; i++) {
        has_time = i;
        must(kernel_open(FUSE_OPENDIR, dir, O_RDONLY, &fh) == 0);
        must(kernel_release(FUSE_RELEASEDIR, dir, fh) == 0);
        must(calls_of_getattr(dir) == has_time);
    }
    kernel_end();
}
END_TEST

static int64_t pre_time, post_time;
static uint32_t post_nsec;

/* Gives MKDIR the folder's times before and after the change. */
static void
set_parent_times(struct call_stack *stk, int *ret)
{
    if (stk->call.fop != FOP_mkdir || *ret < 0)
        return;
    stk->reply.pre = stk->reply.post = store_find(&scene.store[0], "/d")->stat;
    stk->reply.pre.ctime = stk->reply.pre.mtime = pre_time;
    stk->reply.post.ctime = stk->reply.post.mtime = post_time;
    stk->reply.post.ctime_nsec = stk->reply.post.mtime_nsec = post_nsec;
}

START_TEST(of_two_changes_of_a_folder_the_later_time_remains)
{
    static const struct {
        int64_t pre, post;
        uint32_t nsec;
        int64_t ctime; /* 0: the brick is asked */
        uint32_t ctime_nsec;
    } cases[] = {
        {100, 9000, 0, 9000, 0}, {100, 8000, 0, 9000, 0}, {100, 9000, 7, 9000, 7}, {100, 9000, 3, 9000, 7},
        {9001, 9002, 0, 0, 0}, /* another client has changed the folder in between */
    };
    uint64_t dir;

    kernel_clear();
    kernel_begin("");
    (void)store_make(0, "/d", S_IFDIR | 0755, 5, NULL);
    must(kernel_lookup(FUSE_ROOT_ID, "d", &dir) == 0);
    must(calls_of_getattr(dir) == 1);
    kernel.lie = set_parent_times;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char name[] = {(char)('a' + i), '\0'};

        pre_time = cases[i].pre;
        post_time = cases[i].post;
        post_nsec = cases[i].nsec;
        must(make_name(FUSE_MKDIR, dir, name) == 0);
        must(calls_of_getattr(dir) == !cases[i].ctime);
        const struct fuse_attr_out *out = kernel_answer(sizeof *out);

        must(!cases[i].ctime || out->attr.ctime == (uint64_t)cases[i].ctime);
        must(!cases[i].ctime || out->attr.ctimensec == cases[i].ctime_nsec);
        must(!cases[i].ctime || out->attr.mtimensec == cases[i].ctime_nsec);
    }
    kernel_end();
}
END_TEST

/* ---- options and state of a running mount ---------------------------------------------------- */

static char *
dump_of_mount(void)
{
    char *text = NULL;
    size_t len;
    struct dump d = {.file = open_memstream(&text, &len)};

    mount_fuse_xlator.dump(scene.graph->top, &d);
    must(fclose(d.file) == 0);
    return text;
}

START_TEST(a_running_mount_takes_new_timeouts)
{
    uint64_t number, fh;

    kernel_clear();
    kernel_begin("");
    (void)store_make(0, "/f", S_IFREG | 0644, 3, NULL);
    must(scene_reconfigure(" option mountpoint /tmp\n option attribute-timeout 7\n") == 0);
    kernel_request(FUSE_GETATTR, FUSE_ROOT_ID);
    kernel_put(&(struct fuse_getattr_in){0}, sizeof(struct fuse_getattr_in));
    must(kernel_ask() == 0);
    must(((const struct fuse_attr_out *)kernel_answer(sizeof(struct fuse_attr_out)))->attr_valid == 7);
    must(scene_reconfigure(" option mountpoint /tmp\n option attribute-timeout later\n") == 0);
    must(mount_of(scene.graph->top)->attr_timeout_s == 7); /* keeps the value and logs the text */
    must(kernel_lookup(FUSE_ROOT_ID, "f", &number) == 0);
    must(kernel_open(FUSE_OPEN, number, O_RDONLY, &fh) == 0);
    char *text = dump_of_mount();

    must(strstr(text, "mountpoint=/tmp\nmounted=1\nopen-files=1\n"));
    free(text);
    must(kernel_release(FUSE_RELEASE, number, fh) == 0);
    kernel_end();
}
END_TEST

START_TEST(a_refused_unmount_does_not_stop_the_end)
{
    kernel_clear();
    kernel_begin("");
    kernel.unmount_err = EINVAL;
    fuse_unmount(scene.graph);
    fuse_unmount(scene.graph);
    must(kernel.unmounts == 1);
    kernel_end();
    must(kernel.unmounts == 1);
}
END_TEST

START_TEST(a_layer_without_a_mount_has_no_state)
{
    static const char options[] = " option mountpoint /tmp\n option takes-over on\n";

    kernel_clear();
    kernel_begin("");
    scene_begin_beside(options);
    char *text = dump_of_mount();

    ck_assert_str_eq(text, "");
    free(text);
    must(scene_reconfigure(options) == 0);
    scene_end_beside(true);
    must(serve_root() == 0);
    kernel_end();
}
END_TEST

static Suite *
test_suite(void)
{
    const TTest *const tests[] = {
        a_wrong_option_is_named,
        an_error_of_the_system_at_the_start_is_returned,
        a_mount_without_memory_is_refused,
        a_device_that_cannot_be_watched_ends_the_mount,
        init_negotiates_the_options,
        an_error_of_the_device_ends_the_mount_once,
        requests_are_answered_without_memory_for_a_buffer,
        a_large_write_takes_the_buffer_of_the_device,
        requests_wait_for_the_first_event_of_the_bricks,
        an_invalidation_reaches_the_kernel,
        events_of_parts_do_not_go_up,
        attributes_of_a_folder_are_cached_until_a_change,
        a_look_during_a_change_is_not_cached,
        a_running_mount_takes_new_timeouts,
        a_refused_unmount_does_not_stop_the_end,
        another_worker_reads_on_behind_a_stuck_request,
        a_missing_name_is_cached_for_the_negative_timeout,
        a_lookup_caches_the_attributes_of_a_known_folder,
        an_opendir_with_a_time_drops_the_cached_attributes,
        of_two_changes_of_a_folder_the_later_time_remains,
        a_layer_without_a_mount_has_no_state,
    };
    Suite *s = suite_create("fuse-mount");
    TCase *t = tcase_create("mount");

    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(t, tests[i]);
    tcase_add_loop_test(t, a_mount_point_of_another_file_system_is_not_unmounted, 0, 2);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
