/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Every change of a file of a dispersed set of 2+1 bricks, with a fault at each of its calls.
 *
 * For each change the test counts the calls to each child without a fault, and then makes the change again,
 * once for each call and each kind of fault at that call: the child refuses the call, loses the connection
 * before or after it, answers late, or the mount dies. FAULTS_RUN="append, c0 unsent at call 2, mount dies"
 * in the environment makes only that run, and CHILDREN_TRACE=1 prints its calls. After each run:
 *
 *      one fault of a child never makes the change fail; with a quorum-count of all children it may fail
 *      with EIO, and after the heal all children have the change, or none has it
 *      "mount dies": the mount also dies, at each of the calls to any child. A new mount that does not heal
 *      reads a change that was reported as done before, from all three children, and from each two children
 *      reads it or answers EIO, never anything else
 *      a mount that heals, after such a death, leaves equal counters, and each two children give the same
 *      bytes: those of the change, if it was reported as done
 *      "heals": all children come up, and the mount heals: each two children give the new contents, versions
 *      and sizes of all children are equal, and no lock is left. A dirty mark may stay where only the reply
 *      to the last XATTROP was lost; the brick's index names the file then */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xlators/cluster/disperse/test-disperse-file.h"

static const char *const kind_names[] = {"refused", "unsent",     "unanswered",
                                         "late",    "mount dies", "mount dies after"};

/* ---- changes --------------------------------------------------------------------------------- */

static int
change_end(struct contents *after)
{
    return change_bytes(after, 1400, 900, 'd');
}

static int
change_flushed(struct contents *after)
{
    int ret = change_end(after), flushed = scene_call(FOP_flush, fill_fd, 0);

    return ret < 0 ? ret : flushed;
}

static void
fill_close(struct call_stack *stk)
{
    fill_fd(stk);
    stk->call.hint.kind = HINT_FLUSH_OF_MOUNT;
}

static int
change_closed(struct contents *after)
{
    int ret = change_end(after), flushed = scene_call(FOP_flush, fill_close, 0);

    return ret < 0 ? ret : flushed;
}

static int
change_cut(struct contents *after)
{
    at = 700;
    contents_cut(after, at);
    return scene_call(FOP_ftruncate, fill_size, 0);
}

static int
change_cut_to_stripe(struct contents *after)
{
    at = 1024;
    contents_cut(after, at);
    return scene_call(FOP_ftruncate, fill_size, 0);
}

static int
change_longer(struct contents *after)
{
    at = 2100;
    contents_cut(after, at);
    return scene_call(FOP_ftruncate, fill_size, 0);
}

static int
change_zeros(struct contents *after)
{
    at = 100;
    bytes = 1200;
    memset(after->bytes + at, 0, bytes);
    return scene_call(FOP_zerofill, fill_range, 0);
}

static const struct change {
    const char *name;
    int (*make)(struct contents *after);
    bool is_size_recorded_late; /* an extension without FLUSH may be lost with the mount */
} changes[] = {
    {"write of a part", change_part, false},
    {"write of a stripe", change_stripe, false},
    {"append", change_end, true},
    {"append and flush", change_flushed, false},
    {"append and close", change_closed, false},
    {"truncate", change_cut, false},
    {"truncate to a stripe", change_cut_to_stripe, false},
    {"truncate to more", change_longer, false},
    {"zeros", change_zeros, false},
    {"mode", change_mode, false},
};

/* ---- a run ----------------------------------------------------------------------------------- */

/* Reads with all children, and with each one down. */
static void
check_reads(const struct contents *after, bool may_fail)
{
    for (unsigned down = 0; down <= CHILDREN; down++) {
        if (down < CHILDREN)
            scene_child_down(down);
        int ret = scene_call(FOP_readv, fill_read, 0);

        if (ret < 0 && !(may_fail && down < CHILDREN && ret == -EIO))
            finding_add("without c%u the file cannot be read: %s", down, strerror(-ret));
        else if (ret >= 0 && !reads(after))
            finding_add("without c%u the file has %u bytes, or others than written", down, scene.text_len);
        if (down < CHILDREN)
            scene_child_up(down);
        scene_run(0);
    }
}

static void
check_counters(void)
{
    static const char *const keys[] = {"trusted.ec.version", "trusted.ec.size"};

    for (size_t k = 0; k < 2; k++) {
        struct stored_xattr *first = store_xattr(store_find(&scene.store[0], "/f"), keys[k]);

        for (unsigned i = 0; i < CHILDREN; i++) {
            struct stored_xattr *x = store_xattr(store_find(&scene.store[i], "/f"), keys[k]);

            if (!x || !first || memcmp(x->bytes, first->bytes, x->len) != 0)
                finding_add("%s of c%u is not that of c0", keys[k], i);
        }
    }
}

static const char *only; /* FAULTS_RUN */

/* dies_at: number of the call at which the mount dies; -1: it lives. Returns 1: not the wanted run. */
static int
run_change(const struct change *c, const struct fault *f, int dies_at, struct contents *after)
{
    struct fault both[2] = {{.child = ANY_CHILD, .at = (unsigned)dies_at, .kind = FAULT_CUT}};
    char dies[32];

    snprintf(dies, sizeof dies, "mount dies at %d", dies_at);
    snprintf(run_text, sizeof run_text, "%s, c%u %s at call %u, %s", c->name, f ? f->child : 9,
             f ? kind_names[f->kind] : "no fault", f ? f->at : 0, dies_at < 0 ? "heals" : dies);
    if (only && strcmp(only, run_text) != 0)
        return 1;
    file_make(dies_at < 0);
    *after = before;
    if (f)
        both[1] = *f;
    scene_arm(dies_at < 0 ? both + 1 : both, (dies_at >= 0) + (f != NULL));
    int ret = c->make(after);

    return ret < 0 ? ret : 0;
}

/* The mount dies at a call to any child, or after the last one. */
static void
run_dying_at(const struct change *c, const struct fault *f, unsigned dies_at)
{
    struct contents after;
    int ret = run_change(c, f, (int)dies_at, &after);

    if (ret > 0)
        return;
    bool is_reported = ret == 0 && !scene.was_dead;
    if (ret < 0 && !scene.was_dead)
        finding_add("the change fails");
    scene.is_cut = true;
    scene_end();
    set_begin(false);
    if (is_reported && !c->is_size_recorded_late)
        check_reads(&after, true);
    scene_end();
}

enum { CALLS_MAX = 30 }; /* of a change, to all children */

static void
run_dying(const struct change *c, const struct fault *f)
{
    for (unsigned n = 0; n < CALLS_MAX; n++)
        run_dying_at(c, f, n);
}

/* Each two children give the same bytes. */
static void
check_pairs(void)
{
    struct contents first = {.len = 0};

    for (unsigned down = 0; down < CHILDREN; down++) {
        scene_child_down(down);
        int ret = scene_call(FOP_readv, fill_read, 0);

        if (ret < 0)
            finding_add("after the heal, without c%u the file cannot be read: %s", down, strerror(-ret));
        else if (down && !reads(&first))
            finding_add("after the heal, without c%u the file has other bytes than without c0", down);
        first.len = scene.text_len;
        memcpy(first.bytes, scene.text, scene.text_len);
        scene_child_up(down);
        scene_run(0);
    }
}

/* The mount dies, and another one heals the file. */
static void
run_healing_after_death(const struct change *c, const struct fault *f)
{
    if (f)
        return;
    for (unsigned n = 0; n < CALLS_MAX; n++) {
        struct contents after;
        int ret = run_change(c, f, (int)n, &after);

        if (ret > 0)
            continue;
        bool is_reported = ret == 0 && !scene.was_dead;
        scene.is_cut = true;
        scene_end();
        set_begin(true);
        heal_file();
        check_counters();
        check_pairs();
        if (is_reported && !c->is_size_recorded_late)
            check_reads(&after, false);
        scene_run(5000); /* the hold of the reads ends */
        if (store_locks())
            finding_add("locks are left: %s", store_locks_text());
        scene_end();
    }
}

/* A fault of a child may make a change fail only if the change needs all children. */
static bool
is_failure_allowed(int ret)
{
    return scene.is_cut || (set_quorum && ret == -EIO);
}

/* A change that failed was made on all children or on none. */
static void
find_contents(struct contents *after)
{
    if (scene_call(FOP_readv, fill_read, 0) >= 0 && reads(&before))
        *after = before;
}

/* The mount lives, and heals. */
static void
run_healing(const struct change *c, const struct fault *f)
{
    struct contents after;
    int ret = run_change(c, f, -1, &after);

    if (ret > 0)
        return;
    if (ret < 0 && !is_failure_allowed(ret))
        finding_add("the change fails");
    scene_run(2000); /* the hold ends */
    bool has_died = scene.is_cut;
    scene_arm(NULL, 0);
    if (has_died) {
        scene_end();
        set_begin(true);
    }
    for (unsigned i = 0; i < CHILDREN; i++) {
        if (!scene.is_up[i])
            scene_child_up(i);
    }
    scene_run(2000);
    (void)scene_call(FOP_stat, fill_file, 3000);
    (void)scene_call(FOP_stat, fill_file, 3000);
    if (!has_died) {
        check_counters();
        if (ret < 0)
            find_contents(&after);
        check_reads(&after, false);
    }
    scene_run(5000);
    if (store_locks())
        finding_add("locks are left: %s", store_locks_text());
    scene_end();
}

static void
run_all_faults(const struct change *c, void (*run)(const struct change *c, const struct fault *f))
{
    unsigned calls[CHILDREN_MAX + 1];
    struct contents after;

    if (run_change(c, NULL, -1, &after) == 0) {
        scene_run(2000);
        memcpy(calls, scene.calls, sizeof calls);
        scene_end();
    } else {
        for (unsigned i = 0; i <= CHILDREN_MAX; i++)
            calls[i] = 40; /* only one run is wanted */
    }
    run(c, NULL);
    for (unsigned i = 0; i < CHILDREN; i++) {
        for (unsigned n = 0; n < calls[i]; n++) {
            for (unsigned kind = 0; kind < FAULT_KINDS; kind++) {
                struct fault f = {.child = i, .at = n, .kind = (enum fault_kind)kind, .err = ENOSPC};

                run(c, &f);
            }
        }
    }
}

START_TEST(a_dead_mount_leaves_no_stale_fragment_that_looks_good)
{
    findings = 0;
    only = getenv("FAULTS_RUN");
    run_all_faults(&changes[_i], run_dying);
    ck_assert_msg(findings == 0, "%s: %u findings", changes[_i].name, findings);
}
END_TEST

START_TEST(a_file_of_a_dead_mount_is_healed)
{
    findings = 0;
    only = getenv("FAULTS_RUN");
    run_healing_after_death(&changes[_i], NULL);
    ck_assert_msg(findings == 0, "%s: %u findings", changes[_i].name, findings);
}
END_TEST

START_TEST(one_fault_is_healed)
{
    findings = 0;
    only = getenv("FAULTS_RUN");
    run_all_faults(&changes[_i], run_healing);
    ck_assert_msg(findings == 0, "%s: %u findings", changes[_i].name, findings);
}
END_TEST

START_TEST(one_fault_under_a_quorum_of_all_is_healed)
{
    findings = 0;
    only = getenv("FAULTS_RUN");
    set_quorum = CHILDREN;
    run_all_faults(&changes[_i], run_healing);
    set_quorum = 0;
    ck_assert_msg(findings == 0, "%s: %u findings", changes[_i].name, findings);
}
END_TEST

/* ---- a damaged fragment ---------------------------------------------------------------------- */

enum { UNTOUCHED = 1024 }; /* bytes of the stripes that these changes leave alone */

/* The mount dies, and child `damaged` has lost its fragment's bytes, as after a power failure. Another mount
 * heals the file: the other two fragments give all stripes that the change did not touch. */
static void
run_damaged(const struct change *c, unsigned damaged, unsigned dies_at)
{
    struct contents after;
    int ret = run_change(c, NULL, (int)dies_at, &after);

    if (ret > 0)
        return;
    bool is_reported = ret == 0 && !scene.was_dead && !c->is_size_recorded_late;
    scene.is_cut = true;
    scene_end();
    snprintf(run_text, sizeof run_text, "%s, mount dies at %u, c%u loses its bytes", c->name, dies_at,
             damaged);
    struct stored_object *o = store_find(&scene.store[damaged], "/f");
    memset(o->data, 0, sizeof o->data);
    o->stat.size = 0;
    set_begin(true);
    heal_file();
    heal_file(); /* without a dirty mark a read of the first heal meets the fragment */
    for (unsigned down = 0; down <= CHILDREN; down++) {
        if (down < CHILDREN)
            scene_child_down(down);
        ret = scene_call(FOP_readv, fill_read, 0);
        if (ret < UNTOUCHED || memcmp(scene.text, before.bytes, UNTOUCHED) != 0)
            finding_add("without c%u a stripe that was not written is lost: %d", down, ret);
        else if (is_reported && !reads(&after))
            finding_add("without c%u the change is lost", down);
        if (down < CHILDREN)
            scene_child_up(down);
        scene_run(2000);
    }
    scene_run(5000);
    scene_end();
}

START_TEST(a_damaged_fragment_of_a_dead_mounts_file_is_healed_from_the_others)
{
    static const struct change outside[] = {
        {"append", change_end, true},
        {"append and flush", change_flushed, false},
        {"truncate to a stripe", change_cut_to_stripe, false},
        {"truncate to more", change_longer, false},
    };

    findings = 0;
    only = getenv("FAULTS_RUN");
    for (unsigned damaged = 0; damaged < CHILDREN; damaged++) {
        for (unsigned n = 0; n < CALLS_MAX; n++)
            run_damaged(&outside[_i], damaged, n);
    }
    ck_assert_msg(findings == 0, "%s: %u findings", outside[_i].name, findings);
}
END_TEST

/* ---- bytes behind the size ------------------------------------------------------------------- */

static void
fill_allocation(struct call_stack *stk)
{
    fill_range(stk);
    stk->call.flags = 0;
}

/* Extensions that leave a hole between the old end, 1500, and the place they begin at. */
static int
extend_by_write_in_stripe(struct contents *after)
{
    return change_bytes(after, 1900, 10, 'e');
}

static int
extend_by_write_behind(struct contents *after)
{
    return change_bytes(after, 2100, 10, 'e');
}

static int
extend_by_truncate_in_stripe(struct contents *after)
{
    at = 1900;
    contents_cut(after, at);
    return scene_call(FOP_ftruncate, fill_size, 0);
}

static int
extend_by_allocation(struct contents *after)
{
    at = 2100;
    bytes = 300;
    contents_cut(after, at + bytes);
    return scene_call(FOP_fallocate, fill_allocation, 0);
}

static int
extend_by_zeros(struct contents *after)
{
    at = 2048;
    bytes = 300;
    contents_cut(after, at + bytes);
    return scene_call(FOP_zerofill, fill_range, 0);
}

static const struct change extensions[] = {
    {"write in the last stripe", extend_by_write_in_stripe, false},
    {"write behind the last stripe", extend_by_write_behind, false},
    {"truncate in the last stripe", extend_by_truncate_in_stripe, false},
    {"truncate to more", change_longer, false},
    {"allocation", extend_by_allocation, false},
    {"zeros", extend_by_zeros, false},
};
enum { EXTENSIONS = sizeof extensions / sizeof extensions[0] };

/* Before the extension: nothing; a STAT, which takes the lock; a heal; a child goes. */
enum { ALONE, AFTER_STAT, AFTER_HEAL, WITHOUT_CHILD, WAYS };

/* A mount appends `len` bytes, and dies before it records the new size. The next mount extends the file. */
static void
run_extension(const struct change *c, size_t len, unsigned way)
{
    struct contents after;

    snprintf(run_text, sizeof run_text, "%zu bytes left behind the size, way %u: %s", len, way, c->name);
    file_make(false);
    after = before;
    must(change_bytes(&after, FILE_BYTES, len, 'd') == (int)len);
    scene.is_cut = true;
    scene_end();
    set_begin(way == AFTER_HEAL);
    if (way == AFTER_HEAL)
        heal_file();
    must(scene_call(FOP_open, fill_file, 0) == 0);
    if (way == AFTER_STAT)
        must(scene_call(FOP_stat, fill_file, 0) == 0);
    if (way == WITHOUT_CHILD)
        scene_child_down(0);
    after = before;
    if (c->make(&after) < 0)
        finding_add("the extension fails");
    (void)scene_call(FOP_readv, fill_read, 0);
    if (!reads(&after))
        finding_add("the file has %u bytes, or others than zeros in the hole", scene.text_len);
    scene_run(2000);
    if (way == WITHOUT_CHILD)
        scene_child_up(0);
    heal_file();
    heal_file();
    check_counters();
    check_pairs();
    check_reads(&after, false);
    scene_run(5000);
    scene_end();
}

START_TEST(an_extension_shows_no_bytes_of_a_dead_mount)
{
    static const size_t lengths[] = {200, 548, 700};

    findings = 0;
    for (unsigned n = 0; n < 3 * WAYS; n++)
        run_extension(&extensions[_i], lengths[n / WAYS], n % WAYS);
    ck_assert_msg(findings == 0, "%s: %u findings", extensions[_i].name, findings);
}
END_TEST

/* ---- a heal that a child refuses ------------------------------------------------------------- */

static bool
is_behind(unsigned child)
{
    const char *key = "trusted.ec.version";
    const struct stored_xattr *mine = store_xattr(store_find(&scene.store[child], "/f"), key);
    const struct stored_xattr *wanted = store_xattr(store_find(&scene.store[0], "/f"), key);

    return memcmp(mine->bytes, wanted->bytes, sizeof(uint64_t)) != 0;
}

/* Child 2 has missed a change, and refuses call `n` of its heal. Returns false: the heal has fewer calls. */
static bool
run_refused_heal(unsigned n)
{
    struct fault f = {.child = 2, .at = n, .kind = FAULT_REFUSED, .err = EIO};
    static const unsigned char zeros[sizeof(uint64_t)];
    struct contents after;

    snprintf(run_text, sizeof run_text, "c2 refuses call %u of its heal", n);
    file_make(false);
    after = before;
    scene_child_down(2);
    scene_run(0);
    must(change_stripe(&after) >= 0);
    scene_run(2000);
    scene_end();
    set_begin(false);
    scene_arm(&f, 1);
    heal_file();
    bool is_over = scene.calls[2] <= n;
    for (unsigned i = 0; i < 2; i++) {
        const struct stored_xattr *dirty = store_xattr(store_find(&scene.store[i], "/f"), "trusted.ec.dirty");

        if (is_behind(2) && (!dirty || memcmp(dirty->bytes, zeros, sizeof zeros) == 0))
            finding_add("c2 is behind, and the mark of c%u has gone", i);
    }
    scene_run(5000);
    scene_end();
    return !is_over;
}

START_TEST(a_child_that_refuses_its_heal_stays_marked)
{
    findings = 0;
    for (unsigned n = 0; run_refused_heal(n); n++)
        ;
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

/* ---- an extension that never pauses ---------------------------------------------------------- */

enum { APPENDS = 12, APPEND_BYTES = 20, APPEND_MS = 300 };

/* A program appends all the time, and the mount dies; `reads_on`: the program has only read for a while. */
static void
run_steady(bool reads_on)
{
    struct contents after;

    snprintf(run_text, sizeof run_text, "appends all the time%s", reads_on ? ", then reads" : "");
    file_make(false);
    after = before;
    for (unsigned i = 0; i < APPENDS; i++) {
        must(change_bytes(&after, FILE_BYTES + i * APPEND_BYTES, APPEND_BYTES, 'f') == APPEND_BYTES);
        scene_run(APPEND_MS);
    }
    for (unsigned i = 0; reads_on && i < APPENDS; i++)
        (void)scene_call(FOP_readv, fill_read, APPEND_MS);
    scene.is_cut = true;
    scene_end();
    set_begin(false);
    (void)scene_call(FOP_readv, fill_read, 0);
    size_t lost = after.len - scene.text_len, seconds = reads_on ? 0 : 2;
    if (lost * APPEND_MS > seconds * 1000 * APPEND_BYTES ||
        memcmp(scene.text, after.bytes, scene.text_len) != 0)
        finding_add("%zu bytes are lost, or others are there", lost);
    scene_run(5000);
    scene_end();
}

START_TEST(a_mount_that_dies_loses_the_extensions_of_two_seconds_at_most)
{
    findings = 0;
    run_steady(false);
    run_steady(true);
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

/* ---- synchronous writes ---------------------------------------------------------------------- */

static void
fill_synchronous(struct call_stack *stk)
{
    fill_payload(stk);
    stk->call.flags = O_DSYNC;
}

/* Writes behind the end, the last of them synchronous; then the mount dies. */
START_TEST(a_synchronous_write_has_its_size_on_the_bricks)
{
    static const struct {
        uint64_t at, bytes;
    } writes[] = {{FILE_BYTES, 100}, {1400, 300}, {2100, 50}, {0, 20}, {FILE_BYTES, 10}};
    struct contents after;

    findings = 0;
    for (unsigned n = 0; n < 2 * sizeof writes / sizeof writes[0]; n++) {
        bool was_grown = n % 2;

        snprintf(run_text, sizeof run_text, "write %u", n);
        file_make(false);
        after = before;
        if (was_grown)
            must(change_bytes(&after, FILE_BYTES, 300, 'g') == 300);
        at = writes[n / 2].at;
        bytes = writes[n / 2].bytes;
        fill_byte = 'h';
        contents_write(&after, at, 'h', bytes);
        must(scene_call(FOP_writev, fill_synchronous, 0) == (int)bytes);
        scene.is_cut = true;
        scene_end();
        set_begin(false);
        (void)scene_call(FOP_readv, fill_read, 0);
        if (scene.text_len < at + bytes || memcmp(scene.text, after.bytes, scene.text_len) != 0)
            finding_add("the file has %u bytes", scene.text_len);
        scene_run(5000);
        scene_end();
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

/* ---- lost bricks ----------------------------------------------------------------------------- */

/* A mount has left fragments that are longer than the size. It may live, and come back with the size: the
 * heal waits until the children are up for five seconds. */
START_TEST(a_marked_file_waits_for_clients_that_may_return)
{
    struct contents after;

    file_make(false);
    after = before;
    must(change_end(&after) >= 0);
    scene.is_cut = true;
    scene_end();
    set_begin(false);
    const struct stored_object *o = store_find(&scene.store[0], "/f");
    uint64_t left = o->stat.size;
    struct inode *inode = file_inode();

    must(coro_run(heal_go, inode) == 0);
    scene_run(1000);
    inode_unref(inode);
    ck_assert_uint_eq(o->stat.size, left);
    heal_file();
    ck_assert_uint_lt(o->stat.size, left);
    scene_end();
}
END_TEST

/* All children restart before the size of an extension is on their disks; then the program pauses, closes,
 * asks for the size, or writes on. */
enum { THEN_PAUSES, THEN_CLOSES, THEN_ASKS, THEN_WRITES, THEN_EXTENDS, AFTER_RESTARTS };

START_TEST(an_extension_outlives_a_restart_of_all_children)
{
    struct contents after;

    findings = 0;
    for (unsigned n = 0; n < AFTER_RESTARTS; n++) {
        snprintf(run_text, sizeof run_text, "way %u after the restart", n);
        file_make(false);
        after = before;
        must(change_end(&after) >= 0);
        for (unsigned i = 0; i < CHILDREN; i++)
            scene_child_down(i);
        scene_run(2000);
        for (unsigned i = 0; i < CHILDREN; i++)
            scene_child_up(i);
        if (n == THEN_CLOSES && scene_call(FOP_flush, fill_close, 0) != 0)
            finding_add("the file cannot be closed");
        if (n == THEN_ASKS && (scene_call(FOP_stat, fill_file, 0) != 0 || scene.stat.size != after.len))
            finding_add("the size is %llu", (unsigned long long)scene.stat.size);
        if (n == THEN_WRITES && change_part(&after) < 0)
            finding_add("a write fails");
        if (n == THEN_EXTENDS && change_bytes(&after, 2400, 50, 'i') < 0)
            finding_add("an extension fails");
        scene_run(n == THEN_CLOSES ? 0 : 3000);
        scene.is_cut = true;
        scene_end();
        set_begin(false);
        (void)scene_call(FOP_readv, fill_read, 0);
        if (!reads(&after))
            finding_add("the file has %u bytes of %zu, or others", scene.text_len, after.len);
        scene_run(5000);
        scene_end();
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

/* One child is down, and another one is lost during a write. A layer above may repeat a call after ENOTCONN,
 * but not after EIO. */
START_TEST(a_change_that_loses_too_many_children_is_not_connected)
{
    static const struct fault lost = {.child = 0, .kind = FAULT_UNANSWERED};
    struct contents after;

    for (unsigned n = 0; n < 3; n++) {
        file_make(false);
        after = before;
        scene_child_down(2);
        scene_run(0);
        must(change_part(&after) >= 0);
        scene_arm(&lost, 1);
        int ret = n == 0 ? change_part(&after) : n == 1 ? change_cut(&after) : change_mode(&after);
        ck_assert_msg(ret == -ENOTCONN, "change %u: %d", n, ret);
        scene_arm(NULL, 0);
        scene_child_up(0);
        scene_run(5000);
        scene_end();
    }
}
END_TEST

/* Two of three children are lost in a write, after it or before it; then all are back. */
static bool
run_torn(unsigned n, unsigned way)
{
    struct fault f[2] = {{.child = way % 3, .at = n, .kind = way & 4 ? FAULT_UNANSWERED : FAULT_UNSENT},
                         {.child = (way % 3 + 1) % 3,
                          .at = n,
                          .kind = way & 8 ? FAULT_UNANSWERED : FAULT_UNSENT}};
    struct contents after, is;

    snprintf(run_text, sizeof run_text, "two children are lost at call %u, way %u", n, way);
    file_make(false);
    after = before;
    scene_arm(f, 2);
    (void)change_part(&after);
    bool has_struck = scene.fault[0].has_struck || scene.fault[1].has_struck;
    scene_arm(NULL, 0);
    scene_run(500);
    for (unsigned i = 0; i < CHILDREN; i++) {
        if (!scene.is_up[i])
            scene_child_up(i);
    }
    for (unsigned away = 0; away <= CHILDREN; away++) {
        if (away < CHILDREN)
            scene_child_down(away);
        scene_run(0);
        int ret = scene_call(FOP_readv, fill_read, 3000);
        is = before;
        if (scene.text_len > 1000 && scene.text[1000] == after.bytes[1000])
            memcpy(is.bytes, after.bytes, 1024);
        if (scene.text_len > 1100 && scene.text[1100] == after.bytes[1100])
            memcpy(is.bytes + 1024, after.bytes + 1024, before.len - 1024);
        if (ret < 0 ? away == CHILDREN : !reads(&is)) /* one child away and one behind are too many */
            finding_add("%d, or other bytes than those before or after the write, %u away", ret, away);
        if (away < CHILDREN)
            scene_child_up(away);
        (void)scene_call(FOP_readv, fill_read, 3000); /* mends before a healer comes */
        heal_file();
    }
    scene_end();
    return has_struck;
}

START_TEST(a_write_that_loses_the_children_keeps_the_bytes_beside_it)
{
    findings = 0;
    for (unsigned way = 0; way < 16; way++) {
        if (way % 4 == 3)
            continue;
        for (unsigned n = 0; run_torn(n, way); n++)
            ;
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

static void
add_tests(TCase *t)
{
    tcase_add_loop_test(t, a_dead_mount_leaves_no_stale_fragment_that_looks_good, 0,
                        (int)(sizeof changes / sizeof changes[0]));
    tcase_add_loop_test(t, a_file_of_a_dead_mount_is_healed, 0, (int)(sizeof changes / sizeof changes[0]));
    tcase_add_loop_test(t, a_damaged_fragment_of_a_dead_mounts_file_is_healed_from_the_others, 0, 4);
    tcase_add_loop_test(t, one_fault_is_healed, 0, (int)(sizeof changes / sizeof changes[0]));
    tcase_add_loop_test(t, one_fault_under_a_quorum_of_all_is_healed, 0,
                        (int)(sizeof changes / sizeof changes[0]));
    tcase_add_loop_test(t, an_extension_shows_no_bytes_of_a_dead_mount, 0, EXTENSIONS);
    tcase_add_test(t, a_child_that_refuses_its_heal_stays_marked);
    tcase_add_test(t, a_mount_that_dies_loses_the_extensions_of_two_seconds_at_most);
    tcase_add_test(t, a_synchronous_write_has_its_size_on_the_bricks);
    tcase_add_test(t, an_extension_outlives_a_restart_of_all_children);
    tcase_add_test(t, a_marked_file_waits_for_clients_that_may_return);
    tcase_add_test(t, a_change_that_loses_too_many_children_is_not_connected);
    tcase_add_test(t, a_write_that_loses_the_children_keeps_the_bytes_beside_it);
}

static Suite *
test_suite(void)
{
    return suite_of_both("disperse-faults", add_tests);
}

#include "base/test-main.h"
