/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A rebalance of a file in each state that an earlier attempt, a client or another process leaves behind, on
 * three subvolumes: without a fault, with each allocation failing in turn, with a fault at each call, and
 * with bricks whose replies change meanwhile. After that, and after a further rebalance without faults:
 *
 *      a new mount finds the file by each of its names, with the whole contents, and no lock is left
 *      if nothing interfered, the file is on the hashed subvolume alone, with its mode, and without marks
 *
 * STATE_RUN=TEXT in the environment makes only the run of that text. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test-must.h"
#include "log/log.h"
#include "xlators/cluster/distribute/migrate.h"
#include "xlators/cluster/distribute/rebalance.h"
#include "xlators/cluster/distribute/test-subvolumes.h"
#include "xlators/cluster/test-children.h"

#define LINKTO "trusted.glusterfs.dht.linkto"

enum { SUBVOLUMES = 3, FILE_NUMBER = 10, OTHER_NUMBER = 11, FOLDER_NUMBER = 12, MANY_MS = 600000 };
static const char contents[] = "contents that are moved";

enum state {
    ALONE,              /* the file is on the wrong subvolume */
    LINKED,             /* ... with a linkto file */
    LINKED_ELSEWHERE,   /* ... whose linkto file points to the third subvolume */
    PART_COPIED,        /* a process has died before step 6 */
    COPY_COMPLETE,      /* ... before step 7 */
    SWITCHED,           /* ... after step 7 */
    MARKED_ELSEWHERE,   /* the attempt had the third subvolume as its target, and no copy */
    COPIED_ELSEWHERE,   /* ... with part of a copy */
    COMPLETE_ELSEWHERE, /* ... with a complete copy */
    MARKED_FOR_ITSELF,  /* the xattr linkto names the file's own subvolume */
    MARKED_FOR_NONE,    /* ... or no subvolume of the volume */
    OTHER_FILE,         /* another file has the name on the hashed subvolume */
    REMAINS,            /* in place, with the xattrs of an attempt from the wrong subvolume */
    REMAINS_MARKED,     /* in place, but marked for the third subvolume */
    REMAINS_OF_ITSELF,  /* in place; the xattr linkto names this subvolume */
    REMAINS_FOR_NONE,   /* in place, but marked for no subvolume of the volume */
    STATES
};
static const char *const state_names[STATES] = {
    "alone",           "linked",          "linked elsewhere",     "part copied",        "complete",
    "switched",        "marked elsewhere", "copied elsewhere",    "complete elsewhere", "marked for itself",
    "marked for none", "other file",      "remains",              "remains marked",     "remains of itself",
    "remains for none"};

enum lie {
    NO_LIE,
    VETO_BEFORE,   /* a client could not repeat a change, before step 5 */
    VETO_AT_SWITCH,
    LOCKED,        /* an application has a lock */
    LOCKED_LATE,   /* ... taken during the copying */
    LINKED_LATE,   /* another name comes during the copying */
    GONE_LATE,     /* the name leads to another file during the copying */
    MODE_CHANGES,  /* clients change the mode all the time */
    MARK_LOST,     /* the mark is lost to a change of the mode */
    SIZE_CHANGES,  /* clients change the size all the time */
    DATA_CHANGES,  /* ... or the contents */
    SPARSE,        /* the brick knows of a hole at the end of the file */
    SEEK_FAILS,    /* a sparse file on a brick without SEEK */
    ZEROS,         /* it reads zeros */
    SHORT_WRITES,  /* the brick writes only a part */
    OWNER_CHANGES, /* a client changes the owner just before the switch */
    XATTR_COMES,   /* a client sets an xattr after step 5 */
    XATTR_GOES,    /* ... or removes it */
    FULL,
    LIES
};

static const char *options = "";
static unsigned hashed, source, third;
static uint32_t file_mode;
static enum lie lie_now;
static unsigned lookups, listings; /* of the file, by the rebalance */
static unsigned other_names;       /* the file's names "n0", "n1", ... on its subvolume */
static enum { NAMES_TOLD, NAMES_BROKEN, NAMES_TOO_MANY } names_kind;

/* ---- replies of bricks ----------------------------------------------------------------------- */

static void
put_name(struct dict *d, unsigned n, const char *value)
{
    char key[40];

    snprintf(key, sizeof key, "trusted.gfid2path.%u", n);
    must(dict_set_text(d, key, DICT_PTR, value, (uint32_t)strlen(value) + 1) == 0);
}

/* The brick tells the names of a file if a LOOKUP asks for them. */
static void
tell_names(struct call_stack *stk)
{
    static const char *const broken[] = {"short", "00000000-0000-0000-0000-00000000000x/n0",
                                         "00000000-0000-0000-0000-000000000001/"};
    struct dict *d = reply_xdata(stk);
    char text[80];

    for (unsigned n = 0; names_kind == NAMES_BROKEN && n < sizeof broken / sizeof broken[0]; n++)
        put_name(d, 90 + n, broken[n]);
    unsigned count = names_kind == NAMES_TOO_MANY ? MIGRATE_NAMES_MAX + 2 : other_names;
    put_name(d, 80, "00000000-0000-0000-0000-000000000001/f");
    for (unsigned n = 0; n < count; n++) {
        snprintf(text, sizeof text, "00000000-0000-0000-0000-000000000001/n%u", n);
        put_name(d, n, text);
    }
}

static void
lie_of_lookup(struct call_stack *stk)
{
    bool is_late = ++lookups > 3;

    if (lie_now == VETO_BEFORE)
        must(dict_set_text(reply_xdata(stk), MIGRATE_VETO_KEY, DICT_PTR, "1", 2) == 0);
    if (lie_now == LOCKED || (lie_now == LOCKED_LATE && is_late))
        must(dict_set_int(reply_xdata(stk), DICT_KEY_POSIXLK_COUNT, 1) == 0);
    if (lie_now == LINKED_LATE && is_late)
        stk->reply.stat.nlink++;
    if (lie_now == GONE_LATE && is_late)
        stk->reply.stat.gfid.b[15] ^= 0x40;
}

static void
lie_of_setattr(struct call_stack *stk)
{
    static unsigned n;
    bool is_switch = (stk->call.valid & SETATTR_MODE) && (stk->call.stbuf.mode & 07777) == S_ISVTX;

    if (lie_now == MODE_CHANGES)
        stk->reply.pre.mode ^= ++n & 1 ? 0100 : 0010;
    if (lie_now == VETO_AT_SWITCH && is_switch)
        must(dict_set_text(reply_xdata(stk), MIGRATE_VETO_KEY, DICT_PTR, "1", 2) == 0);
    if (lie_now == OWNER_CHANGES && is_switch)
        stk->reply.pre.uid++;
}

static void
lie_of_read(struct call_stack *stk)
{
    static char other;

    if (lie_now == DATA_CHANGES && stk->reply.payload.iov_len)
        *(char *)stk->reply.payload.iov_base = (char)('a' + (other = (char)(!other)));
    if (lie_now == ZEROS)
        memset(stk->reply.payload.iov_base, 0, stk->reply.payload.iov_len);
}

static void
lie_of_xattrs(struct call_stack *stk, unsigned child)
{
    struct stored_object *o = store_find(&scene.store[child], "/f");

    if (++listings != 2 || !o)
        return;
    if (lie_now == XATTR_COMES)
        must(dict_set_text(stk->reply.dict, "user.late", DICT_PTR, "1", 1) == 0);
    if (lie_now == XATTR_GOES) { /* the attribute is gone from the second listing on */
        struct stored_xattr *x = store_xattr(o, "user.a");

        if (x)
            snprintf(x->key, sizeof x->key, "trusted.afr.gone");
    }
}

static void
answer(unsigned child, struct call_stack *stk, int *ret)
{
    bool is_source = child == source;

    if (lie_now == SEEK_FAILS && stk->call.fop == FOP_seek)
        *ret = -EOPNOTSUPP;
    if (lie_now == FULL && stk->call.fop == FOP_statfs)
        stk->reply.statvfs.f_bavail = stk->reply.statvfs.f_bfree = 0;
    if (*ret < 0)
        return;
    if (stk->call.fop == FOP_lookup && other_names && dict_find_text(stk->call.xdata, "trusted.gfid2path.*"))
        tell_names(stk);
    if (stk->call.fop == FOP_lookup && is_source && stk->call.loc.name &&
        strcmp(stk->call.loc.name, "f") == 0)
        lie_of_lookup(stk);
    if (stk->call.fop == FOP_setattr && is_source)
        lie_of_setattr(stk);
    if (stk->call.fop == FOP_stat && is_source && lie_now == MARK_LOST)
        stk->reply.stat.mode &= ~(uint32_t)S_ISGID;
    if (stk->call.fop == FOP_stat && is_source && lie_now == SIZE_CHANGES)
        stk->reply.stat.size += 1 + stk->reply.stat.size % 2;
    if (is_source && (lie_now == SPARSE || lie_now == SEEK_FAILS))
        stk->reply.stat.blocks = 0;
    if (stk->call.fop == FOP_seek && lie_now == SPARSE && stk->call.cmd == 1)
        stk->reply.offset = stk->call.offset + 4;
    if (stk->call.fop == FOP_readv && is_source)
        lie_of_read(stk);
    if (stk->call.fop == FOP_writev && lie_now == SHORT_WRITES && *ret > 1)
        *ret = 1;
    if (stk->call.fop == FOP_getxattr && is_source && !stk->call.has_name && stk->reply.dict)
        lie_of_xattrs(stk, child);
}

/* ---- states ---------------------------------------------------------------------------------- */

static void
begin_mount(void)
{
    scene_begin(&cluster_distribute_xlator, options);
    (void)scene_call(FOP_lookup, fill_root_inode, 0);
}

static void
point_to(struct stored_object *o, unsigned target)
{
    const char name[] = {target < SUBVOLUMES ? 'c' : 'x', (char)('0' + target), '\0'};

    must(store_set_xattr(o, LINKTO, name, sizeof name) == 0);
}

static struct stored_object *
make_file(unsigned at, const char *path)
{
    struct stored_object *o = store_make(at, path, file_mode, FILE_NUMBER, contents);

    snprintf(o->target, sizeof o->target, "%s", contents);
    o->stat.mtime = 12345;
    must(store_set_xattr(o, "user.a", "value", 5) == 0);
    return o;
}

static void
make_linkto(unsigned at, unsigned target)
{
    point_to(store_make(at, "/f", S_IFREG | S_ISVTX, FILE_NUMBER, NULL), target);
}

static void
mark(struct stored_object *o, unsigned target)
{
    char text[16];

    if (o->stat.mode & (S_ISVTX | S_ISGID)) {
        int len = snprintf(text, sizeof text, "%o", o->stat.mode & 07777);

        must(store_set_xattr(o, MIGRATE_MODE_KEY, text, (uint32_t)len + 1) == 0);
    }
    o->stat.mode |= S_ISVTX | S_ISGID;
    point_to(o, target);
}

/* Makes a copy of the file; `is_complete`: as step 6 leaves the copy. */
static void
make_copy(unsigned at, bool is_complete)
{
    if (!is_complete) {
        make_linkto(at, source);
        return;
    }
    struct stored_object *o = make_file(at, "/f");

    if ((file_mode & (S_ISVTX | S_ISGID)) == (S_ISVTX | S_ISGID)) {
        char text[16];
        int len = snprintf(text, sizeof text, "%o", file_mode & 07777);

        must(store_set_xattr(o, MIGRATE_MODE_KEY, text, (uint32_t)len + 1) == 0);
        o->stat.mode &= ~(uint32_t)(S_ISVTX | S_ISGID);
    }
    point_to(o, source);
}

static const unsigned no_subvolume = SUBVOLUMES + 4;

static void
make_moving(enum state state, struct stored_object *o)
{
    switch (state) {
    case LINKED:
    case LINKED_ELSEWHERE:
        make_linkto(hashed, state == LINKED ? source : third);
        break;
    case PART_COPIED:
    case COPY_COMPLETE:
        mark(o, hashed);
        make_copy(hashed, state == COPY_COMPLETE);
        break;
    case SWITCHED:
        o->stat.mode = S_IFREG | S_ISVTX;
        point_to(o, hashed);
        make_copy(hashed, true);
        break;
    case MARKED_ELSEWHERE:
    case COPIED_ELSEWHERE:
    case COMPLETE_ELSEWHERE:
        mark(o, third);
        if (state != MARKED_ELSEWHERE)
            make_copy(third, state == COMPLETE_ELSEWHERE);
        break;
    case MARKED_FOR_ITSELF:
    case MARKED_FOR_NONE:
        mark(o, state == MARKED_FOR_ITSELF ? source : no_subvolume);
        break;
    case OTHER_FILE:
        (void)store_make(hashed, "/f", S_IFREG | 0600, OTHER_NUMBER, "another file");
        break;
    default:
        break;
    }
}

static void
make_state(enum state state)
{
    scene_clear(SUBVOLUMES, false);
    scene.lie = NULL;
    options = "";
    begin_mount();
    hashed = subvolume_of_hash("f");
    source = (hashed + 1) % SUBVOLUMES;
    third = (hashed + 2) % SUBVOLUMES;
    scene_end();
    if (state < REMAINS) {
        make_moving(state, make_file(source, "/f"));
        for (unsigned n = 0; n < other_names; n++) {
            char path[16];

            snprintf(path, sizeof path, "/n%u", n);
            (void)make_file(source, path);
        }
        return;
    }
    struct stored_object *o = make_file(hashed, "/f");
    if (state == REMAINS_MARKED) {
        source = hashed;
        mark(o, third);
    } else if (state == REMAINS_FOR_NONE) {
        source = hashed;
        mark(o, no_subvolume);
    } else {
        must(store_set_xattr(o, MIGRATE_MODE_KEY, "644", 4) == 0);
        point_to(o, state == REMAINS ? source : hashed);
    }
}

/* ---- runs ------------------------------------------------------------------------------------ */

static struct rebalance_look last;

/* Returns whether the fault has struck, or an allocation has failed. */
static bool
rebalance(enum rebalance_kind kind, const struct fault *f, int64_t starve_at)
{
    bool has_struck;

    begin_mount();
    lookups = listings = 0;
    scene_arm(f, f != NULL);
    scene_starve(starve_at);
    struct rebalancer *r = rebalancer_new(scene.child[0]->parent, kind, 1, NULL, NULL);

    if (r && rebalancer_start(r) == 0) {
        scene_run(5000);
        for (unsigned i = 0; i < scene.count && !scene.is_cut; i++) {
            if (!scene.is_up[i])
                scene_child_up(i);
        }
        if (!scene.is_cut)
            scene_run(MANY_MS);
    }
    has_struck = starve_at ? scene_has_starved() : f && scene.fault[0].has_struck;
    scene_starve(0);
    if (r) {
        rebalancer_look(r, &last);
        rebalancer_stop(r);
        scene_run(MANY_MS);
        rebalancer_free(r);
    }
    if (store_locks() && !scene.is_cut)
        finding_add("locks are left: %s", store_locks_text());
    scene_end();
    return has_struck;
}

static const char *name_now;
static struct iatt found;

static void
fill_name(struct call_stack *stk)
{
    stk->call.loc = (struct loc){.parent = inode_root(scene.graph->inodes), .name = name_now};
}

static void
fill_read(struct call_stack *stk)
{
    stk->call.loc.inode = inode_link(scene.graph->inodes, NULL, NULL, &found);
    stk->call.size = STORED_DATA_MAX;
    stk->call.fd = fd_new_anonymous(stk->call.loc.inode, NULL);
}

static void
check_name(const char *name, const char *when)
{
    name_now = name;
    int ret = scene_call(FOP_lookup, fill_name, 0);

    if (ret < 0 || scene.stat.gfid.b[15] != FILE_NUMBER) {
        finding_add("%s: LOOKUP of %s answers %s, object %u", when, name, strerror(ret < 0 ? -ret : 0),
                    scene.stat.gfid.b[15]);
        return;
    }
    found = scene.stat;
    if (!S_ISREG(file_mode))
        return;
    ret = scene_call(FOP_readv, fill_read, 0);
    if (ret < 0 || scene.text_len != sizeof contents - 1 || memcmp(scene.text, contents, scene.text_len) != 0)
        finding_add("%s: the contents of %s are \"%.*s\" (%d)", when, name, (int)scene.text_len, scene.text,
                    ret);
}

static void
check_found(const char *when)
{
    char name[16];

    begin_mount();
    check_name("f", when);
    for (unsigned n = 0; n < other_names; n++) {
        snprintf(name, sizeof name, "n%u", n);
        check_name(name, when);
    }
    scene_end();
}

static void
check_in_place(void)
{
    for (unsigned i = 0; i < SUBVOLUMES; i++) {
        struct stored_object *o = store_find(&scene.store[i], "/f");

        if (i != hashed && o)
            finding_add("the name is still on c%u, with mode %o", i, o->stat.mode);
        if (i == hashed && (!o || o->stat.mode != file_mode))
            finding_add("c%u has mode %o", i, o ? o->stat.mode : 0);
        if (i == hashed && o && (store_xattr(o, LINKTO) || store_xattr(o, MIGRATE_MODE_KEY)))
            finding_add("c%u has xattrs of a migration", i);
    }
}

/* Rebalances the file in the state, with the fault, then without. Returns whether the fault has struck. */
static bool
run(enum state state, enum rebalance_kind kind, const struct fault *f, int64_t starve_at)
{
    const char *only = getenv("STATE_RUN");
    size_t len = strlen(run_text);

    snprintf(run_text + len, sizeof run_text - len, ", %s, mode %o", state_names[state], file_mode);
    if (only && strcmp(only, run_text) != 0)
        return true;
    make_state(state);
    log_set_level(LOG_CRITICAL);
    scene.lie = answer;
    enum lie lie = lie_now;
    char drained[48];
    if (kind == REBALANCE_DRAIN) {
        snprintf(drained, sizeof drained, " option decommissioned-bricks c%u\n", source);
        options = drained;
    }
    bool has_struck = rebalance(kind, f, starve_at);

    lie_now = NO_LIE;
    bool has_contents = state != OTHER_FILE && lie != SIZE_CHANGES && lie != ZEROS;

    if (has_contents)
        check_found("after the first rebalance");
    (void)rebalance(kind, NULL, 0);
    if (has_contents)
        check_found("after the second rebalance");
    lie_now = lie;
    return has_struck;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static const uint32_t modes[] = {S_IFREG | 0644, S_IFREG | 02750, S_IFREG | 07644};
enum { MODES = sizeof modes / sizeof modes[0] };

START_TEST(a_rebalance_ends_every_state)
{
    findings = 0;
    for (unsigned n = 0; n < STATES * MODES; n++) {
        enum state state = (enum state)(n / MODES);

        file_mode = modes[n % MODES];
        if (state >= REMAINS && file_mode != modes[0])
            continue;
        snprintf(run_text, sizeof run_text, "no fault");
        (void)run(state, REBALANCE_FILES, NULL, 0);
        if (state != OTHER_FILE)
            check_in_place();
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

START_TEST(replies_that_change_lose_no_file)
{
    static const enum state states[] = {ALONE, PART_COPIED, COPY_COMPLETE};

    findings = 0;
    for (unsigned n = 0; n < LIES * 3; n++) {
        lie_now = (enum lie)(n / 3);
        file_mode = modes[0];
        snprintf(run_text, sizeof run_text, "lie %u", lie_now);
        (void)run(states[n % 3], REBALANCE_FILES, NULL, 0);
    }
    lie_now = NO_LIE;
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

START_TEST(a_drain_moves_all_names)
{
    findings = 0;
    for (unsigned n = 0; n < 12; n++) {
        other_names = n % 4;
        names_kind = n / 4 == 1 ? NAMES_BROKEN : n / 4 == 2 ? NAMES_TOO_MANY : NAMES_TOLD;
        file_mode = modes[0];
        snprintf(run_text, sizeof run_text, "%u names, kind %u", other_names, names_kind);
        (void)run(ALONE, REBALANCE_DRAIN, NULL, 0);
        if (names_kind == NAMES_TOLD && store_find(&scene.store[source], "/f"))
            finding_add("the name is still on c%u", source);
    }
    other_names = 0;
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

START_TEST(links_and_devices_move)
{
    static const uint32_t special[] = {S_IFLNK | 0777, S_IFCHR | 0600, S_IFIFO | 0640};

    findings = 0;
    for (unsigned n = 0; n < 3 * LIES; n++) {
        enum state state = n / 3 % 2 ? LINKED : ALONE;
        bool has_struck = true;

        file_mode = special[n % 3];
        for (unsigned at = 0; has_struck; at++) {
            struct fault f = {.child = at % SUBVOLUMES,
                              .at = at / SUBVOLUMES,
                              .kind = (enum fault_kind)((n + at) % FAULT_KINDS),
                              .err = EIO};

            lie_now = (enum lie)(n / 3);
            snprintf(run_text, sizeof run_text, "lie %u, c%u fault %u at call %u", lie_now, f.child, f.kind,
                     f.at);
            has_struck = run(state, REBALANCE_FILES, &f, 0) || at % SUBVOLUMES;
        }
    }
    lie_now = NO_LIE;
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

START_TEST(a_fault_in_any_state_loses_no_file)
{
    enum state state = (enum state)_i;
    bool has_struck[SUBVOLUMES];

    findings = 0;
    file_mode = modes[state % MODES];
    if (state == OTHER_FILE)
        return;
    for (unsigned i = 0; i < SUBVOLUMES; i++) {
        has_struck[i] = true;
        for (unsigned n = 0; has_struck[i]; n++) {
            struct fault f = {.child = i,
                              .at = n,
                              .kind = (enum fault_kind)((n + i) % FAULT_KINDS),
                              .err = n % 2 ? ENOSPC : EIO};

            snprintf(run_text, sizeof run_text, "c%u fault %u at call %u", i, f.kind, n);
            has_struck[i] = run(state, REBALANCE_FILES, &f, 0);
        }
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

START_TEST(lack_of_memory_in_any_state_loses_no_file)
{
    enum state state = (enum state)_i;
    bool has_struck = true;

    findings = 0;
    file_mode = modes[(unsigned)state % MODES];
    if (state == OTHER_FILE)
        return;
    scene_init_starving();
    names_kind = NAMES_TOLD;
    other_names = state == ALONE ? 2 : 0;
    for (unsigned at = 1; has_struck; at++) {
        snprintf(run_text, sizeof run_text, "without memory at allocation %u", at);
        has_struck = run(state, state == ALONE ? REBALANCE_DRAIN : REBALANCE_FILES, NULL, at);
    }
    other_names = 0;
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("migrate-states");
    TCase *t = tcase_create("states");

    tcase_set_timeout(t, 600);
    tcase_add_test(t, a_rebalance_ends_every_state);
    tcase_add_test(t, replies_that_change_lose_no_file);
    tcase_add_test(t, a_drain_moves_all_names);
    tcase_add_test(t, links_and_devices_move);
    tcase_add_loop_test(t, a_fault_in_any_state_loses_no_file, 0, STATES);
    tcase_add_loop_test(t, lack_of_memory_in_any_state_loses_no_file, 0, STATES);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
