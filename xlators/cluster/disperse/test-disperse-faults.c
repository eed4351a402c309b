/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Every change of a file of a dispersed set of 2+1 bricks, with a fault at each of its calls.
 *
 * For each change the test counts the calls to each child without a fault, and then makes the change again,
 * once for each call and each kind of fault at that call: the child refuses the call, loses the connection
 * before or after it, answers late, or the mount dies. FAULTS_RUN="append, c0 unsent at call 2, mount dies"
 * in the environment makes only that run, and CHILDREN_TRACE=1 prints its calls. After each run:
 *
 *      one fault of a child never makes the change fail
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
#include <unistd.h>

#include "base/test-must.h"
#include "log/log.h"
#include "xlators/cluster/disperse/heal.h"
#include "xlators/cluster/test-children.h"

extern const struct xlator_type cluster_disperse_xlator;

enum { CHILDREN = 3, FILE_BYTES = 1500 };

static const char *const kind_names[] = {"refused", "unsent",     "unanswered",
                                         "late",    "mount dies", "mount dies after"};

/* ---- contents -------------------------------------------------------------------------------- */

struct contents {
    char bytes[STORED_DATA_MAX];
    size_t len;
};

static struct contents before;

static void
contents_write(struct contents *c, size_t at, char byte, size_t len)
{
    memset(c->bytes + at, byte, len);
    c->len = at + len > c->len ? at + len : c->len;
}

static void
contents_cut(struct contents *c, size_t len)
{
    if (len < c->len)
        memset(c->bytes + len, 0, c->len - len);
    c->len = len;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static uint64_t at, bytes;
static char fill_byte;

static struct inode *
file_inode(void)
{
    for (unsigned i = 0; i < CHILDREN; i++) {
        struct inode *inode = scene_inode(i, "/f");

        if (inode)
            return inode;
    }
    return NULL;
}

static void
fill_create(struct call_stack *stk)
{
    struct gfid gfid = {.b = {0xcc, [15] = 9}};

    stk->call.loc = (struct loc){.parent = inode_root(scene.graph->inodes), .name = "f"};
    stk->call.mode = 0644;
    stk->call.flags = O_RDWR | O_CREAT;
    must(dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &gfid) == 0);
}

static void
fill_file(struct call_stack *stk)
{
    stk->call.loc.inode = file_inode();
    stk->call.flags = O_RDWR;
}

static void
fill_fd(struct call_stack *stk)
{
    stk->call.fd = fd_ref(scene.fd);
}

static void
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

static void
fill_size(struct call_stack *stk)
{
    fill_fd(stk);
    stk->call.offset = at;
}

static void
fill_range(struct call_stack *stk)
{
    fill_size(stk);
    stk->call.size = bytes;
}

static void
fill_read(struct call_stack *stk)
{
    struct inode *inode = file_inode();

    stk->call.fd = fd_new_anonymous(inode, NULL);
    inode_unref(inode);
    stk->call.size = STORED_DATA_MAX;
}

static void
fill_write_without_fd(struct call_stack *stk)
{
    static char payload[100];

    fill_read(stk);
    stk->call.offset = 1400;
    stk->call.payload[0] = (struct iovec){payload, sizeof payload};
    stk->call.payload_count = 1;
    stk->call.payload_bytes = stk->call.size = sizeof payload;
}

static int
write_without_fd(void)
{
    return scene_call(FOP_writev, fill_write_without_fd, 0);
}

static void
fill_mode(struct call_stack *stk)
{
    fill_fd(stk);
    stk->call.stbuf.mode = 0600;
    stk->call.valid = SETATTR_MODE;
}

/* ---- changes --------------------------------------------------------------------------------- */

static int
change_part(struct contents *after)
{
    at = 900;
    bytes = 300;
    fill_byte = 'b';
    contents_write(after, at, fill_byte, bytes);
    return scene_call(FOP_writev, fill_payload, 0);
}

static int
change_stripe(struct contents *after)
{
    at = 0;
    bytes = 1024;
    fill_byte = 'c';
    contents_write(after, at, fill_byte, bytes);
    return scene_call(FOP_writev, fill_payload, 0);
}

static int
change_end(struct contents *after)
{
    at = 1400;
    bytes = 900;
    fill_byte = 'd';
    contents_write(after, at, fill_byte, bytes);
    return scene_call(FOP_writev, fill_payload, 0);
}

static int
change_flushed(struct contents *after)
{
    int ret = change_end(after), flushed = scene_call(FOP_flush, fill_fd, 0);

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

static int
change_mode(struct contents *after)
{
    (void)after;
    return scene_call(FOP_fsetattr, fill_mode, 0);
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
    {"truncate", change_cut, false},
    {"truncate to a stripe", change_cut_to_stripe, false},
    {"truncate to more", change_longer, false},
    {"zeros", change_zeros, false},
    {"mode", change_mode, false},
};

/* ---- a run ----------------------------------------------------------------------------------- */

static void
set_begin(bool heals)
{
    char options[128];

    snprintf(options, sizeof options, " option redundancy 1\n option background-heals %d\n", heals ? 8 : 0);
    scene_begin(&cluster_disperse_xlator, options);
}

/* Makes a file of FILE_BYTES, opened in a new mount. */
static void
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

static bool
reads(const struct contents *c)
{
    return scene.text_len == c->len && memcmp(scene.text, c->bytes, c->len) == 0;
}

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
    return c->make(after) < 0 ? -1 : 0;
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

static void
heal_go(void *inode)
{
    bool was_whole;

    (void)ec_heal_object(scene.graph->top->children[0]->private, inode, false, &was_whole);
}

/* Heals the file as the self-heal daemon heals an object of its list. */
static void
heal_file(void)
{
    struct inode *inode = file_inode();

    must(coro_run(heal_go, inode) == 0);
    scene_run(3000);
    inode_unref(inode);
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

/* The mount lives, and heals. */
static void
run_healing(const struct change *c, const struct fault *f)
{
    struct contents after;
    int ret = run_change(c, f, -1, &after);

    if (ret > 0)
        return;
    if (ret < 0 && !scene.is_cut)
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

/* ---- a second change, with other children away ----------------------------------------------- */

static int
change_all_bytes(struct contents *after)
{
    at = 0;
    bytes = FILE_BYTES;
    fill_byte = 'z';
    contents_write(after, at, fill_byte, bytes);
    return scene_call(FOP_writev, fill_payload, 0);
}

/* From here on, no child is healed. Reads give the bytes of the change, or EIO. */
static void
check_no_old_bytes(const struct contents *after)
{
    for (unsigned down = 0; down <= CHILDREN; down++) {
        if (down < CHILDREN)
            scene_child_down(down);
        int ret = scene_call(FOP_readv, fill_read, 0);

        if (ret >= 0 && !reads(after))
            finding_add("without c%u the file has other bytes than written", down);
        if (down < CHILDREN)
            scene_child_up(down);
        scene_run(0);
    }
}

/* A child misses a change and comes back stale, then a good child goes away: no K children are good. A change
 * is refused, and raises no counter of the stale child. */
START_TEST(a_change_without_enough_good_children_raises_no_version)
{
    findings = 0;
    for (unsigned pair = 0; pair < CHILDREN * CHILDREN; pair++) {
        unsigned stale = pair / CHILDREN, away = pair % CHILDREN;
        struct contents after;

        if (stale == away)
            continue;
        snprintf(run_text, sizeof run_text, "c%u stale, c%u away", stale, away);
        file_make(false);
        after = before;
        scene_child_down(stale);
        ck_assert(change_stripe(&after) >= 0);
        scene_run(2000);
        scene_child_up(stale);
        scene_child_down(away);
        scene_run(2000);
        struct stored_object *o = store_find(&scene.store[stale], "/f");
        struct stored_xattr old = *store_xattr(o, "trusted.ec.version");
        struct contents refused = after;
        int ret = _i ? change_mode(&refused) : change_part(&refused);
        if (ret != -EIO)
            finding_add("a change of one good child and a stale one gives %d", ret);
        scene_run(2000);
        if (memcmp(old.bytes, store_xattr(o, "trusted.ec.version")->bytes, old.len) != 0)
            finding_add("the stale child's version has risen");
        scene_child_up(away);
        scene_run(2000);
        check_no_old_bytes(&after);
        scene_run(5000);
        scene_end();
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

/* A mount dies during a change that child `lost` misses; then another mount changes all bytes, while child
 * `away` (CHILDREN: none) is away. Returns false: the mount did not die. */
static bool
run_second_change(unsigned lost, unsigned away, unsigned dies_at)
{
    struct fault f = {.child = ANY_CHILD, .at = dies_at, .kind = FAULT_CUT};
    struct contents after;

    snprintf(run_text, sizeof run_text, "c%u down, mount dies at %u, then c%u down", lost, dies_at, away);
    file_make(false);
    after = before;
    scene_child_down(lost);
    scene_run(0);
    scene_arm(&f, 1);
    (void)change_stripe(&after);
    scene_run(2000);
    bool has_died = scene.is_cut;
    scene.is_cut = true;
    scene_end();
    set_begin(false);
    must(scene_call(FOP_open, fill_file, 0) == 0 || scene_call(FOP_open, fill_file, 0) == -EIO);
    if (away < CHILDREN)
        scene_child_down(away);
    scene_run(2000);
    after = before;
    if (scene.fd && change_all_bytes(&after) >= 0) {
        scene_run(2000);
        if (away < CHILDREN)
            scene_child_up(away);
        scene_run(2000);
        check_no_old_bytes(&after);
    }
    scene_run(5000);
    scene_end();
    return has_died;
}

START_TEST(a_version_of_a_dead_mount_is_met_by_no_later_change)
{
    findings = 0;
    for (unsigned pair = 0; pair < CHILDREN * (CHILDREN + 1); pair++) {
        for (unsigned n = 0; run_second_change(pair / (CHILDREN + 1), pair % (CHILDREN + 1), n); n++)
            ;
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

/* Another client removes the file while this one keeps its lock: the children learn that one after another.
 * An error of the volume would lose the write; a layer that keeps blocks looks for a new file instead. */
START_TEST(a_change_of_a_file_that_is_being_removed_is_stale)
{
    static const enum fop fops[] = {FOP_writev, FOP_readv, FOP_writev};

    for (unsigned gone = 2; gone <= CHILDREN; gone++) {
        for (unsigned n = 0; n < sizeof fops / sizeof fops[0]; n++) {
            file_make(false);
            if (n < 2) /* the lock is held, and the counters are known */
                must(scene_call(FOP_readv, fill_read, 0) >= 0);
            for (unsigned i = 0; i < gone; i++)
                store_find(&scene.store[i], "/f")->stat.nlink = 0;
            int ret = fops[n] == FOP_readv ? scene_call(FOP_readv, fill_read, 0) : write_without_fd();
            ck_assert_msg(ret == -ESTALE, "%u children without the file, case %u: %d", gone, n, ret);
            scene_run(5000);
            scene_end();
        }
    }
}
END_TEST

/* ---- exactly K good children ------------------------------------------------------------------ */

/* Changes half a stripe: fragments of a stripe whose bytes are all the same may be equal for two such
 * stripes. */
static int
change_half_stripe(struct contents *after)
{
    at = 0;
    bytes = 512;
    fill_byte = 'c';
    contents_write(after, at, fill_byte, bytes);
    return scene_call(FOP_writev, fill_payload, 0);
}

/* A mount writes while child `lost` is away, and dies in the next write. All children come up, and another
 * mount heals the file. Both writes have the same bytes, so a write that is half done changes nothing.
 * Returns the result of a read; 1: the mount lived. */
static int
run_death_with_k(unsigned lost, unsigned dies_at)
{
    struct fault f = {.child = ANY_CHILD, .at = dies_at, .kind = FAULT_CUT};
    struct contents after;

    snprintf(run_text, sizeof run_text, "c%u down, mount dies at call %u of the second write", lost, dies_at);
    file_make(false);
    after = before;
    scene_child_down(lost);
    scene_run(0);
    must(change_half_stripe(&after) == 512);
    scene_run(5000);
    scene_arm(&f, 1);
    (void)change_half_stripe(&after);
    scene_run(2000);
    bool has_died = scene.is_cut;
    scene.is_cut = true;
    scene_end();
    set_begin(true);
    heal_file();
    heal_file();
    must(scene_call(FOP_open, fill_file, 0) == 0 || !scene.fd);
    int ret = scene.fd ? scene_call(FOP_readv, fill_read, 0) : -EIO;
    if (ret >= 0 && !reads(&after))
        finding_add("the file has other bytes than written");
    scene_run(5000);
    scene_end();
    return has_died ? ret : 1;
}

START_TEST(a_file_with_exactly_k_good_children_is_healed)
{
    unsigned died = 0;

    findings = 0;
    for (unsigned lost = 0; lost < CHILDREN; lost++) {
        int ret = 0;

        for (unsigned n = 0; ret != 1; n++) {
            ret = run_death_with_k(lost, n);
            died += ret != 1;
            if (ret < 0)
                finding_add("the file cannot be read: %s", strerror(-ret));
        }
    }
    ck_assert_uint_gt(died, 12);
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

/* One of the two good children comes back with an earlier fragment, whose version is between those of the
 * others. No K children have one state: the versions alone would decode garbage, and the times tell. */
START_TEST(an_earlier_fragment_makes_no_file_of_k_children)
{
    struct contents after;

    file_make(false);
    struct stored_object *o = store_find(&scene.store[1], "/f"), earlier = *o;
    after = before;
    scene_child_down(2);
    scene_run(0);
    must(change_half_stripe(&after) == 512);
    scene_run(5000);
    scene_end();
    *o = earlier;
    store_xattr(o, "trusted.ec.version")->bytes[7]++;
    set_begin(true);
    heal_file();
    ck_assert_int_eq(scene_call(FOP_open, fill_file, 0), 0);
    ck_assert_int_eq(scene_call(FOP_readv, fill_read, 0), -EIO);
    scene_run(5000);
    scene_end();
}
END_TEST

/* As a lie: the first child's limit is reached a little before the second's. */
static void
lie_over_quota(unsigned child, struct call_stack *stk, int *ret)
{
    if (child == 0 && stk->call.fop == FOP_writev)
        *ret = -EDQUOT;
}

START_TEST(a_write_over_the_limit_of_one_of_k_children_names_the_limit)
{
    struct contents after;

    file_make(false);
    after = before;
    scene_child_down(2);
    scene_run(0);
    scene.lie = lie_over_quota;
    ck_assert_int_eq(change_half_stripe(&after), -EDQUOT);
    scene.lie = NULL;
    scene_run(5000);
    scene_end();
}
END_TEST

static bool
log_has(const char *path, const char *text)
{
    char line[1024];
    bool has = false;
    FILE *f = fopen(path, "r");

    must(f);
    while (!has && fgets(line, sizeof line, f))
        has = strstr(line, text) != NULL;
    fclose(f);
    return has;
}

/* Another client removes the file before this one writes its counters back. Of a file that more than R
 * children do not have nothing is lost, so the layer neither reports the counters nor heals. */
START_TEST(counters_of_a_file_that_is_being_removed_are_not_reported)
{
    static const struct fault refusals[] = {{.child = 0, .err = EIO}, {.child = 1, .err = EIO}};
    static const char name[] = "disperse-marks-stay";

    for (unsigned gone = 0; gone <= CHILDREN; gone++) {
        char log[] = "/tmp/test-disperse-faults-XXXXXX";
        int fd = mkstemp(log);

        must(fd >= 0 && log_open(log) == 0);
        file_make(true);
        log_set_level(LOG_WARNING);
        must(write_without_fd() >= 0);
        for (unsigned i = 0; i < gone; i++)
            store_find(&scene.store[i], "/f")->stat.nlink = 0;
        scene_arm(refusals, gone ? 0 : 2); /* the counters of a file that exists are reported */
        scene_run(5000);
        ck_assert_msg(log_has(log, name) == !gone, "%u children without the file", gone);
        ck_assert_msg(gone < 2 || scene.calls[ANY_CHILD] == 2 * CHILDREN,
                      "%u children without the file: %u calls", gone, scene.calls[ANY_CHILD]);
        scene_end();
        log_close();
        close(fd);
        unlink(log);
    }
}
END_TEST

static bool
is_zero_xattr(const struct stored_xattr *x)
{
    static const unsigned char zeros[STORED_TEXT_MAX];

    return !x || memcmp(x->bytes, zeros, x->len) == 0;
}

/* While all children are up, a change of names sets no mark before the versions rise in the end. A child that
 * dies then is behind, and the others' index must name the directory. */
START_TEST(a_directory_whose_last_counters_missed_a_child_is_marked)
{
    static const enum fault_kind kinds[] = {FAULT_REFUSED, FAULT_UNSENT, FAULT_UNANSWERED};

    for (unsigned n = 0; n < 3 * CHILDREN; n++) {
        struct fault f = {.child = n % CHILDREN, .kind = kinds[n / CHILDREN], .err = EIO};

        scene_clear(CHILDREN, false);
        set_begin(false);
        must(scene_call(FOP_create, fill_create, 0) == 0);
        must(scene_call(FOP_flush, fill_fd, 0) == 0);
        scene_arm(&f, 1); /* the calls that follow end the directory's lock */
        scene_run(5000);
        for (unsigned i = 0; i < CHILDREN; i++) {
            struct stored_object *root = store_find(&scene.store[i], "/");

            ck_assert_msg(i == f.child || !is_zero_xattr(store_xattr(root, "trusted.ec.version")), "%u, c%u",
                          n, i);
            ck_assert_msg(i == f.child || !is_zero_xattr(store_xattr(root, "trusted.ec.dirty")),
                          "c%u %s: c%u has no mark", f.child, kind_names[f.kind], i);
        }
        scene_end();
    }
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("disperse-faults");
    TCase *t = tcase_create("faults");

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_dead_mount_leaves_no_stale_fragment_that_looks_good, 0,
                        (int)(sizeof changes / sizeof changes[0]));
    tcase_add_loop_test(t, a_file_of_a_dead_mount_is_healed, 0, (int)(sizeof changes / sizeof changes[0]));
    tcase_add_loop_test(t, a_damaged_fragment_of_a_dead_mounts_file_is_healed_from_the_others, 0, 4);
    tcase_add_loop_test(t, one_fault_is_healed, 0, (int)(sizeof changes / sizeof changes[0]));
    tcase_add_loop_test(t, a_change_without_enough_good_children_raises_no_version, 0, 2);
    tcase_add_test(t, a_version_of_a_dead_mount_is_met_by_no_later_change);
    tcase_add_test(t, a_file_with_exactly_k_good_children_is_healed);
    tcase_add_test(t, an_earlier_fragment_makes_no_file_of_k_children);
    tcase_add_test(t, a_write_over_the_limit_of_one_of_k_children_names_the_limit);
    suite_add_tcase(s, t);
    t = tcase_create("directories");
    tcase_add_test(t, a_directory_whose_last_counters_missed_a_child_is_marked);
    suite_add_tcase(s, t);
    t = tcase_create("removals");
    tcase_add_test(t, a_change_of_a_file_that_is_being_removed_is_stale);
    tcase_add_test(t, counters_of_a_file_that_is_being_removed_are_not_reported);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
