/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Random lives of a dispersed volume of 2+1, 3+1 or 4+2 bricks in memory. In a life a mount changes files,
 * folders and names while bricks go and return, and dies at any call or ends. Then healers run, which may
 * die, too, or have to do without some bricks. When all bricks are back and a healer has finished:
 *
 *      all bricks have the same names, attributes and counters, no mark, no note and no lock
 *      the names are those before or after the call in which the mount died or which failed, and in all other
 *      ways as the caller was told
 *      any K bricks give the same bytes: those that the caller was told are written. The last bytes of a file
 *      that has grown may be missing after a death (2 seconds; write.c)
 *
 * Each seed gives the same lives. DISPERSE_SEEDS=FROM-TO in the environment runs other seeds than the
 * default ones, DISPERSE_STORY=1 prints the calls. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "xlators/cluster/disperse/test-disperse-file.h"
#include "xlators/cluster/test-children-internal.h"
#include "xlators/cluster/test-notes.h"

/* ---- chance ---------------------------------------------------------------------------------- */

static uint64_t chance_state;

static unsigned
chance(unsigned below)
{
    chance_state = chance_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(chance_state >> 33) % below;
}

static bool tells_story;

static void __attribute__((format(printf, 1, 2)))
story(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    if (tells_story)
        run_say(fmt, ap);
    va_end(ap);
}

/* ---- what the caller was told ---------------------------------------------------------------- */

static const char *const folders[] = {"/a", "/b"};
static const char *const names[] = {"x", "y", "z"};
enum { FOLDERS = 2, NAMES = 3, PATHS = FOLDERS * NAMES, OBJECTS = 12, LEN_MAX = 2048 };

/* `floor`: the size that outlives a death of the mount. */
struct object {
    struct gfid gfid;
    bool is_folder;
    uint32_t mode;
    unsigned len, floor;
    char bytes[LEN_MAX];
};

/* An object of no path has gone. -1: no object. */
struct tree {
    int at[PATHS];
    struct object object[OBJECTS];
};

static struct gfid torn; /* the file of which stripes may be torn */
static uint64_t torn_from, torn_to;
static enum fop uncertain_fop; /* the call that failed or in which the mount died; FOP_null: none */
static unsigned uncertain_path, uncertain_path2;
static struct tree told, old; /* `old`: before the uncertain call, equal to `told` if no call is uncertain */

static const char *
path_text(unsigned path)
{
    static char text[4][STORED_TEXT_MAX];
    static unsigned turn;
    char *to = text[turn++ % 4];

    snprintf(to, STORED_TEXT_MAX, "%s/%s", folders[path / NAMES], names[path % NAMES]);
    return to;
}

static unsigned
links_of(const struct tree *t, int object)
{
    unsigned links = 0;

    for (unsigned p = 0; p < PATHS; p++)
        links += t->at[p] == object;
    return links;
}

static int
object_new(struct tree *t, bool is_folder, const struct gfid *gfid)
{
    int n = 0;

    while (links_of(t, n))
        n++;
    must(n < OBJECTS);
    t->object[n] = (struct object){.gfid = *gfid, .is_folder = is_folder, .mode = 0755};
    return n;
}

/* ---- the volume ------------------------------------------------------------------------------ */

static unsigned count, redundancy;
static unsigned down;   /* bits: children that are away */
static unsigned missed; /* ... that have missed a change since the last heal */

static void
note_lock(unsigned child, const struct gfid *gfid, const char *domain)
{
    static const unsigned char zeros[8];
    int n = store_object_of(&scene.store[child], gfid);
    struct stored_object *o = n >= 0 ? &scene.store[child].object[n] : NULL;
    const struct stored_xattr *x = o ? store_xattr(o, "trusted.ec.dirty") : NULL;

    if (strcmp(domain, "v") == 0)
        note_gfid(child, gfid, x && x->len >= sizeof zeros && memcmp(x->bytes, zeros, sizeof zeros) != 0);
}

/* The slots of removed files are free again. */
static void
sweep_stores(void)
{
    for (unsigned i = 0; i < count; i++) {
        for (unsigned n = 1; n < STORED_OBJECTS_MAX; n++) {
            if (!scene.store[i].object[n].stat.nlink)
                scene.store[i].object[n].stat.mode = 0;
        }
    }
}

static void
bring_up(unsigned i)
{
    scene_child_up(i);
    atomic_fetch_or(&scene.child[i]->brick_facts, BRICK_NAME_NOTES);
}

static void
begin(bool is_healer)
{
    char options[120];

    snprintf(options, sizeof options, " option redundancy %u\n option background-heals 8\n%s", redundancy,
             is_healer ? " option iam-self-heal-daemon on\n" : "");
    scene.takes_sequences = takes_joined;
    scene.stays_down = (1u << count) - 1;
    scene_begin(&cluster_disperse_xlator, options);
    scene.stays_down = 0;
    scene.lie = serve_notes;
    scene.lock_lost = note_lock;
    for (unsigned i = 0; i < count; i++) {
        if (!(down & 1u << i))
            bring_up(i);
    }
    scene_run(0);
}

static void
end(bool dies)
{
    struct disperse *d = scene.graph->top->children[0]->private;

    if (dies) {
        scene_cut();
        atomic_store(&d->is_stopping, true); /* its jobs go with it */
    }
    scene_end();
    sweep_stores();
}

static struct inode *
inode_of_object(const struct object *o)
{
    struct iatt a = {.gfid = o->gfid, .mode = o->is_folder ? S_IFDIR : S_IFREG};

    return inode_link(scene.graph->inodes, NULL, NULL, &a);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static unsigned path, path2; /* of the call */
static unsigned serial; /* of the seed's objects */
static struct gfid new_gfid;
static uint32_t new_mode;

static void
fill_call(struct call_stack *stk)
{
    static char payload[LEN_MAX];
    struct fop_call *c = &stk->call;
    const struct object *o = told.at[path] >= 0 ? &told.object[told.at[path]] : NULL;
    const struct object *target = told.at[path2] >= 0 ? &told.object[told.at[path2]] : NULL;

    c->loc = (struct loc){.parent = scene_inode_of(folders[path / NAMES]), .name = names[path % NAMES]};
    c->loc.inode = o ? inode_of_object(o) : NULL;
    switch (c->fop) {
    case FOP_create:
    case FOP_mkdir:
        c->mode = 0755;
        c->flags = O_RDWR | O_CREAT;
        must(dict_set_gfid(c->xdata, DICT_KEY_GFID_REQ, &new_gfid) == 0);
        break;
    case FOP_rename:
    case FOP_link:
        c->loc2.parent = scene_inode_of(folders[path2 / NAMES]);
        c->loc2.name = names[path2 % NAMES];
        c->loc2.inode = c->fop == FOP_rename && target ? inode_of_object(target) : NULL;
        break;
    case FOP_setattr:
        c->stbuf.mode = new_mode;
        c->valid = SETATTR_MODE;
        break;
    case FOP_truncate:
        c->offset = at;
        break;
    case FOP_readv:
    case FOP_writev:
        c->fd = fd_new_anonymous(c->loc.inode, NULL);
        c->offset = at;
        c->size = (uint32_t)bytes;
        memset(payload, fill_byte, sizeof payload);
        c->payload[0] = (struct iovec){payload, bytes};
        c->payload_count = c->fop == FOP_writev;
        c->payload_bytes = c->fop == FOP_writev ? (uint32_t)bytes : 0;
        break;
    default:
        break;
    }
}

static bool
has_room(const struct tree *t)
{
    unsigned used = 0;

    for (unsigned p = 0; p < PATHS; p++)
        used += t->at[p] >= 0;
    return used < PATHS;
}

/* Chooses a call that is possible. Returns FOP_null: none was found. */
static enum fop
choose_call(void)
{
    static const enum fop fops[] = {FOP_create, FOP_create,   FOP_mkdir,  FOP_writev, FOP_writev, FOP_writev,
                                    FOP_writev, FOP_truncate, FOP_rename, FOP_rename, FOP_rename, FOP_link,
                                    FOP_unlink, FOP_unlink,   FOP_rmdir,  FOP_setattr, FOP_readv};

    for (unsigned tries = 0; tries < 40; tries++) {
        enum fop fop = fops[chance(sizeof fops / sizeof fops[0])];

        path = chance(PATHS);
        path2 = chance(PATHS);
        const struct object *o = told.at[path] >= 0 ? &told.object[told.at[path]] : NULL;
        const struct object *target = told.at[path2] >= 0 ? &told.object[told.at[path2]] : NULL;
        bool makes = fop == FOP_create || fop == FOP_mkdir;
        bool wants_folder = fop == FOP_rmdir;
        bool is_open = fop == FOP_rename || fop == FOP_setattr;

        if (makes ? o != NULL || !has_room(&told) : !o || (!is_open && o->is_folder != wants_folder))
            continue;
        if (fop == FOP_link && target)
            continue;
        bool fits = !target || (target != o && target->is_folder == o->is_folder);
        if (fop == FOP_rename && (path == path2 || !fits))
            continue;
        return fop;
    }
    return FOP_null;
}

static void
apply_write(struct object *o)
{
    memset(o->bytes + at, fill_byte, bytes);
    if (at > o->len)
        memset(o->bytes + o->len, 0, at - o->len);
    o->len = at + bytes > o->len ? (unsigned)(at + bytes) : o->len;
}

static void
apply_truncate(struct object *o)
{
    if (at > o->len)
        memset(o->bytes + o->len, 0, at - o->len);
    o->len = (unsigned)at;
    o->floor = o->floor < o->len ? o->floor : o->len;
}

/* Changes the tree as the call does. */
static void
apply(enum fop fop)
{
    struct object *o = told.at[path] >= 0 ? &told.object[told.at[path]] : NULL;

    switch (fop) {
    case FOP_create:
    case FOP_mkdir:
        told.at[path] = object_new(&told, fop == FOP_mkdir, &new_gfid);
        break;
    case FOP_rename:
        told.at[path2] = told.at[path];
        told.at[path] = -1;
        break;
    case FOP_link:
        told.at[path2] = told.at[path];
        break;
    case FOP_unlink:
    case FOP_rmdir:
        told.at[path] = -1;
        break;
    case FOP_setattr:
        o->mode = new_mode;
        break;
    case FOP_writev:
        apply_write(o);
        break;
    case FOP_truncate:
        apply_truncate(o);
        break;
    default:
        break;
    }
}

static void
sizes_are_sure(void)
{
    for (unsigned n = 0; n < OBJECTS; n++)
        told.object[n].floor = told.object[n].len;
}

static void
holds_end(void)
{
    scene_run(5000);
    if ((unsigned)__builtin_popcount(down | missed) <= redundancy)
        sizes_are_sure();
}

static void
check_read(int ret)
{
    const struct object *o = &told.object[told.at[path]];
    unsigned left = at < o->len ? o->len - (unsigned)at : 0, want = left < bytes ? left : (unsigned)bytes;

    if (ret >= 0 && ((unsigned)ret != want || memcmp(scene.text, o->bytes + at, want) != 0))
        finding_add("READ %s at %u: %d of %u, or other bytes", path_text(path), (unsigned)at, ret, want);
}

static void
note_torn(enum fop fop)
{
    uint64_t stripe = 512 * (count - redundancy), until = fop == FOP_writev ? at + bytes : at + 1;

    if (fop != FOP_writev && fop != FOP_truncate)
        return;
    torn = told.object[told.at[path]].gfid;
    torn_from = at / stripe * stripe;
    torn_to = (until + stripe - 1) / stripe * stripe;
}

/* Makes a call. Returns whether the life goes on: the mount lives, and the call has succeeded. */
static bool
make_call(const struct fault *f)
{
    enum fop fop = choose_call();

    if (fop == FOP_null)
        return true;
    serial++;
    new_gfid = (struct gfid){.b = {0xdd, [14] = (uint8_t)(serial >> 8), [15] = (uint8_t)serial}};
    new_mode = chance(2) ? 0600 : 0755;
    at = fop == FOP_truncate ? chance(LEN_MAX) : chance(3) ? chance(1200) : 0;
    bytes = 1 + chance(800);
    fill_byte = (char)('a' + chance(26));
    story("%s %s %s at %u, %u bytes %c", fop_info[fop].name, path_text(path), path_text(path2), (unsigned)at,
          (unsigned)bytes, fill_byte);
    scene_arm(f, f != NULL);
    old = told;
    int ret = scene_call(fop, fill_call, chance(2) ? 0 : chance(2500));
    bool has_failed = ret < 0, is_change = fop != FOP_readv;

    for (unsigned i = 0; i < count; i++)
        down |= scene.is_up[i] || scene.is_cut ? 0 : 1u << i;
    missed |= is_change ? down : 0;
    scene_arm(NULL, 0);
    if (fop == FOP_readv && !scene.is_cut)
        check_read(ret);
    apply(fop);
    bool may_fail = f || (unsigned)__builtin_popcount(down | missed) > redundancy;
    if (has_failed || scene.is_cut)
        story("... %d%s", ret, scene.is_cut ? ", dead" : "");
    if (has_failed && !may_fail)
        finding_add("%s %s failed: %s", fop_info[fop].name, path_text(path), strerror(-ret));
    if (has_failed || scene.was_dead || scene.is_cut) {
        uncertain_fop = fop;
        uncertain_path = path;
        uncertain_path2 = path2;
        note_torn(fop);
        return false;
    }
    old = told;
    return true;
}

/* ---- a life ---------------------------------------------------------------------------------- */

static void
toggle_child(void)
{
    unsigned i = chance(count);

    if (down & 1u << i) {
        down &= ~(1u << i);
        bring_up(i);
        story("c%u returns", i);
    } else if ((unsigned)__builtin_popcount(down) < redundancy) {
        down |= 1u << i;
        scene_child_down(i);
        story("c%u goes", i);
    }
    scene_run(0);
}

static struct fault
choose_fault(void)
{
    static const enum fault_kind kinds[] = {FAULT_CUT,    FAULT_CUT_AFTER, FAULT_CUT,
                                            FAULT_UNSENT, FAULT_UNANSWERED};
    struct fault f = {.kind = kinds[chance(5)], .at = chance(60), .child = ANY_CHILD};

    if (f.kind == FAULT_UNSENT || f.kind == FAULT_UNANSWERED) {
        f.child = chance(count);
        f.at = chance(12);
    }
    return f;
}

/* Too few good children are left: the others return. */
static void
return_lost(void)
{
    if ((unsigned)__builtin_popcount(down | missed) <= redundancy)
        return;
    for (unsigned i = 0; i < count; i++) {
        if (down & 1u << i)
            bring_up(i);
    }
    down = 0;
}

static void
live(void)
{
    unsigned calls = 1 + chance(6);
    bool lives = true;

    torn = gfid_null;
    uncertain_fop = FOP_null;
    begin(false);
    for (unsigned n = 0; n < calls && lives; n++) {
        struct fault f = choose_fault();

        if (!chance(4))
            toggle_child();
        lives = make_call(n + 1 == calls || !chance(4) ? &f : NULL);
        if (lives && !chance(2))
            holds_end();
    }
    bool dies = scene.is_cut || !chance(3);
    if (dies)
        scene_cut();
    return_lost();
    if (!dies)
        scene_run(10000);
    dies |= atomic_load(&scene.graph->pins) > 1; /* it still owes the bricks a size or stripes */
    if (!dies) {
        torn = gfid_null;
        sizes_are_sure();
        old = uncertain_fop == FOP_null ? told : old;
    }
    story("the mount %s", dies ? "dies" : "ends");
    end(dies);
}

/* ---- heals ----------------------------------------------------------------------------------- */

/* A healer runs for a while: with all children, or not; to the end, or dies. */
static void
heal_a_while(void)
{
    struct fault f = {.kind = chance(2) ? FAULT_CUT : FAULT_CUT_AFTER, .at = chance(300), .child = ANY_CHILD};

    while (chance(2) && down)
        down &= down - 1;
    while (chance(3) == 0 && (unsigned)__builtin_popcount(down) < redundancy)
        down |= 1u << chance(count);
    begin(true);
    if (chance(2))
        scene_arm(&f, 1);
    scene_run(chance(20000));
    story("a healer without %x %s", down, scene.is_cut ? "dies" : "ends");
    end(true);
}

static void
heal_all(void)
{
    down = 0;
    begin(true);
    scene_run(300 * 1000);
}

/* ---- checks ---------------------------------------------------------------------------------- */

static const char *
copies_difference(struct stored_object *a, struct stored_object *b)
{
    if (!a || !b)
        return a == b ? NULL : "missing";
    if (!gfid_equal(&a->stat.gfid, &b->stat.gfid))
        return "other object";
    if (a->stat.mode != b->stat.mode || a->stat.nlink != b->stat.nlink)
        return "mode or links";
    if (S_ISREG(a->stat.mode) && a->stat.size != b->stat.size)
        return "size";
    for (unsigned n = 0; n < a->xattr_count; n++) {
        struct stored_xattr *x = &a->xattr[n], *y = store_xattr(b, x->key);

        if (strcmp(x->key, "trusted.ec.dirty") == 0)
            continue; /* check_marks() */
        if (!y || y->len != x->len || memcmp(x->bytes, y->bytes, x->len) != 0)
            return x->key;
    }
    return NULL;
}

/* A brick has removed what no name leads to. */
static void
check_marks(unsigned child, const struct stored_object *o)
{
    for (unsigned n = 0; o->stat.mode && o->stat.nlink && n < o->xattr_count; n++) {
        const struct stored_xattr *x = &o->xattr[n];

        for (unsigned b = 0; strcmp(x->key, "trusted.ec.dirty") == 0 && b < x->len; b++) {
            if (x->bytes[b])
                finding_add("c%u: %02x..%02x%02x is marked", child, o->stat.gfid.b[0], o->stat.gfid.b[14],
                            o->stat.gfid.b[15]);
        }
    }
}

static void
check_copies(void)
{
    for (unsigned i = 1; i < count; i++) {
        for (unsigned p = 0; p < PATHS + FOLDERS; p++) {
            const char *text = p < PATHS ? path_text(p) : folders[p - PATHS];
            const char *why =
                copies_difference(store_find(&scene.store[0], text), store_find(&scene.store[i], text));

            if (why)
                finding_add("c0 and c%u differ: %s: %s", i, text, why);
        }
    }
    for (unsigned i = 0; i < count; i++) {
        for (unsigned n = 0; n < STORED_OBJECTS_MAX; n++)
            check_marks(i, &scene.store[i].object[n]);
    }
    if (notes_left())
        finding_add("%u notes are left", notes_left());
}

/* Returns the path at which the names on child 0 are not those of the tree; PATHS: there is none. */
static unsigned
other_name(const struct tree *t)
{
    for (unsigned p = 0; p < PATHS; p++) {
        struct stored_object *o = store_find(&scene.store[0], path_text(p));
        const struct object *want = t->at[p] >= 0 ? &t->object[t->at[p]] : NULL;

        if (!o != !want || (o && !gfid_equal(&o->stat.gfid, &want->gfid)))
            return p;
    }
    return PATHS;
}

/* The bytes are those of the newer or of the older contents; a size is possible that a death has kept. */
static bool
are_possible(const struct object *new, const struct object *before, const char *text, unsigned len)
{
    unsigned low = before->floor < new->len ? before->floor : new->len;
    unsigned high = before->len > new->len ? before->len : new->len;

    if (len < low || len > high)
        return false;
    for (unsigned k = 0; k < len; k++) {
        char now = k < new->len ? new->bytes[k] : 0, then = k < before->len ? before->bytes[k] : 0;

        bool is_torn = gfid_equal(&torn, &new->gfid) && k >= torn_from && k < torn_to;

        if (text[k] != now && text[k] != then && !is_torn) {
            story("byte %u is %c, not %c or %c", k, text[k], now, then);
            return false;
        }
    }
    return true;
}

/* Reads without the children of `away`. Returns the length or -errno. */
static int
read_without(unsigned p, unsigned away)
{
    path = path2 = p;
    at = 0;
    bytes = LEN_MAX;
    for (unsigned i = 0; i < count; i++) {
        if (away & 1u << i)
            scene_child_down(i);
    }
    scene_run(0);
    int ret = scene_call(FOP_readv, fill_call, 0);

    for (unsigned i = 0; i < count; i++) {
        if (away & 1u << i)
            bring_up(i);
    }
    scene_run(0);
    return ret;
}

static void
check_contents(unsigned p)
{
    static char first[LEN_MAX];
    struct object *o = &told.object[told.at[p]];
    const struct object *before = &old.object[told.at[p]];
    int len = -1;

    if (!gfid_equal(&before->gfid, &o->gfid))
        before = o;
    for (unsigned away = 0; away < 1u << count; away++) {
        if ((unsigned)__builtin_popcount(away) != redundancy)
            continue;
        int ret = read_without(p, away);

        if (len < 0 && ret >= 0) {
            len = ret;
            memcpy(first, scene.text, (size_t)len);
        }
        if (ret < 0)
            finding_add("READ %s without children %x: %s", path_text(p), away, strerror(-ret));
        else if (ret != len || memcmp(first, scene.text, (size_t)len) != 0)
            finding_add("%s has other bytes without children %x", path_text(p), away);
    }
    if (len >= 0 && !are_possible(o, before, first, (unsigned)len))
        finding_add("%s: %d bytes, not the ones written (%u, %u; %u at least)", path_text(p), len,
                    before->len, o->len, before->floor);
    if (len >= 0) {
        memset(o->bytes, 0, sizeof o->bytes);
        memcpy(o->bytes, first, (size_t)len);
        o->len = o->floor = (unsigned)len;
    }
}

static void
check_modes(void)
{
    for (unsigned p = 0; p < PATHS; p++) {
        struct object *o = told.at[p] >= 0 ? &told.object[told.at[p]] : NULL;
        struct stored_object *stored = o ? store_find(&scene.store[0], path_text(p)) : NULL;
        uint32_t mode = stored ? stored->stat.mode & 07777 : 0;
        const struct object *before = o ? &old.object[told.at[p]] : NULL;

        if (stored && mode != o->mode && (mode != before->mode || !gfid_equal(&before->gfid, &o->gfid)))
            finding_add("%s has the mode %o", path_text(p), mode);
        if (stored)
            o->mode = mode;
    }
}

/* Makes the names that the children have the ones that the caller was told, if an uncertain call may have
 * left them. A half done RENAME of a file may leave both names. A RENAME that is undone may have removed its
 * target, if fewer than K children had the target (heal-move.c). */
static void
take_names(void)
{
    bool is_rename = uncertain_fop == FOP_rename;
    struct tree left[] = {told, old, told, old};

    if (is_rename && !old.object[old.at[uncertain_path]].is_folder)
        left[2].at[uncertain_path] = old.at[uncertain_path];
    if (is_rename)
        left[3].at[uncertain_path2] = -1;
    for (unsigned n = 0; n < 4; n++) {
        if (other_name(&left[n]) < PATHS)
            continue;
        old = n % 2 ? told : old;
        told = left[n];
        return;
    }
}

/* Compares everything, and takes what is there as what the caller was told. */
static void
check_all(void)
{
    check_copies();
    take_names();
    if (other_name(&told) < PATHS) {
        finding_add("%s is neither as before nor as after the last call", path_text(other_name(&told)));
        return;
    }
    check_modes();
    for (unsigned p = 0; p < PATHS && !findings; p++) {
        if (told.at[p] >= 0 && !told.object[told.at[p]].is_folder)
            check_contents(p);
    }
    old = told;
}

/* ---- a seed ---------------------------------------------------------------------------------- */

static struct gfid folder_gfid;

static void
fill_folder(struct call_stack *stk)
{
    stk->call.loc = (struct loc){.parent = inode_root(scene.graph->inodes), .name = folders[path] + 1};
    stk->call.mode = 0755;
    must(dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &folder_gfid) == 0);
}

static void
volume_make(void)
{
    static const struct {
        unsigned count, redundancy;
    } layouts[] = {{3, 1}, {4, 1}, {6, 2}};
    unsigned n = chance(3);

    count = layouts[n].count;
    redundancy = layouts[n].redundancy;
    down = missed = serial = 0;
    scene_clear(count, false);
    memset(note_counts, 0, sizeof note_counts);
    for (unsigned p = 0; p < PATHS; p++)
        told.at[p] = -1;
    begin(false);
    for (path = 0; path < FOLDERS; path++) {
        folder_gfid = (struct gfid){.b = {0xcc, [15] = (uint8_t)(path + 1)}};
        must(scene_call(FOP_mkdir, fill_folder, 0) == 0);
    }
    scene_run(5000);
    end(false);
    old = told;
}

enum { LIVES = 6 };

static void
run_seed(unsigned seed)
{
    chance_state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    findings = 0;
    snprintf(run_text, sizeof run_text, "seed %u", seed);
    volume_make();
    for (unsigned life = 0; life < LIVES && !findings; life++) {
        snprintf(run_text, sizeof run_text, "seed %u, %u children, life %u", seed, count, life);
        live();
        for (unsigned n = chance(4); n; n--)
            heal_a_while();
        heal_all();
        check_all();
        missed = 0;
        scene_run(5000);
        if (store_locks())
            finding_add("locks are left: %s", store_locks_text());
        end(false);
    }
}

START_TEST(lives_of_a_volume_lose_nothing)
{
    const char *seeds = getenv("DISPERSE_SEEDS");
    unsigned from = 1, to = 150, bad = 0;

    tells_story = getenv("DISPERSE_STORY") != NULL;
    if (seeds)
        must(sscanf(seeds, "%u-%u", &from, &to) == 2);
    for (unsigned seed = from; seed <= to; seed++) {
        run_seed(seed);
        bad += findings != 0;
    }
    ck_assert_uint_eq(bad, 0);
}
END_TEST

static void
add_tests(TCase *t)
{
    tcase_add_test(t, lives_of_a_volume_lose_nothing);
}

static Suite *
test_suite(void)
{
    return suite_of_both("disperse-random", add_tests);
}

#include "base/test-main.h"
