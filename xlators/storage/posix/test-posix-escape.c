/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* No call leaves the brick, and no call reaches another object than the caller named: neither through
 * symlinks whose gfid was a directory's, nor through renames by other clients or by a local user, at any
 * moment of a call.
 *
 * The target is the folder "secret" of the test beside the brick, which no reply may show and no call may
 * change. KILN_ESCAPE_ROUNDS is the number of rounds of each attacked call (400), KILN_ESCAPE_CHANGES the
 * least number of times that another client reuses a gfid meanwhile (0). CK_RUN_CASE=gfids runs that race
 * alone.
 */
#include <pthread.h>
#include <sys/sysmacros.h>

#include "xlators/storage/posix/object/mdata.h"
#include "xlators/storage/posix/test-entry.h"

#define SECRET_TEXT "nobody reads this"

static char secret[64];
static struct stat secret_was;
static long rounds, gfid_changes;

static void
put_file(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, SECRET_TEXT, sizeof SECRET_TEXT - 1), sizeof SECRET_TEXT - 1);
    close(fd);
}

static char *
inside(char path[256], const char *dir, const char *name)
{
    snprintf(path, 256, "%s/%s", dir, name);
    return path;
}

static void
secret_up(void)
{
    char path[256];

    strcpy(secret, "/dev/shm/kiln-secret-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(secret));
    put_file(inside(path, secret, "shadow"));
    ck_assert_int_eq(setxattr(secret, "trusted.secret", "x", 1, 0), 0);
    for (int i = 0; i < 2; i++) { /* the names of directories inside the brick */
        ck_assert_int_eq(mkdir(inside(path, secret, i ? "etc" : "sub"), 0700), 0);
        ck_assert_int_eq(setxattr(path, "trusted.secret", "x", 1, 0), 0);
        strcat(path, "/shadow");
        put_file(path);
    }
    ck_assert_int_eq(stat(secret, &secret_was), 0);
}

static void
one_untouched(const char *dir, nlink_t links)
{
    char path[256], names[256];
    struct stat st;

    ck_assert_int_eq(stat(dir, &st), 0);
    ck_assert_uint_eq(st.st_mode, S_IFDIR | 0700);
    ck_assert_uint_eq(st.st_uid, 0);
    ck_assert_uint_eq(st.st_nlink, links);
    ssize_t n = listxattr(dir, names, sizeof names);
    ck_assert_int_eq(n, sizeof "trusted.secret");
    ck_assert_int_eq(stat(inside(path, dir, "shadow"), &st), 0);
    ck_assert_int_eq(st.st_size, sizeof SECRET_TEXT - 1);
    ck_assert_uint_eq(st.st_mode, S_IFREG | 0600);
    ck_assert_uint_eq(st.st_nlink, 1);
    ck_assert_int_eq(listxattr(path, names, sizeof names), 0);
}

static void
secret_untouched(void)
{
    char path[256];
    struct stat st;

    one_untouched(secret, 4);
    one_untouched(inside(path, secret, "sub"), 2);
    one_untouched(inside(path, secret, "etc"), 2);
    ck_assert_int_eq(stat(secret, &st), 0); /* nothing was made there, not even for a moment */
    ck_assert_int_eq(st.st_mtim.tv_sec, secret_was.st_mtim.tv_sec);
    ck_assert_int_eq(st.st_mtim.tv_nsec, secret_was.st_mtim.tv_nsec);
}

static void
setup(void)
{
    const char *text = getenv("KILN_ESCAPE_ROUNDS"), *more = getenv("KILN_ESCAPE_CHANGES");

    rounds = text ? atol(text) : 400;
    gfid_changes = more ? atol(more) : 0;
    world_setup();
    secret_up();
}

static void
teardown(void)
{
    world_teardown();
    remove_tree(secret);
}

/* ---- calls: of any thread -------------------------------------------------------------------- */

static struct inode *
symlink_as(struct inode *parent, const char *name, const struct gfid *gfid, const char *text)
{
    struct call_stack stk;
    struct inode *inode = NULL;

    call_begin(&stk, FOP_symlink);
    call_loc(&stk.call.loc, parent, name);
    want_gfid(&stk, gfid);
    stk.call.name2 = text;
    if (call_run(&stk) == 0)
        inode = inode_link(w.graph->inodes, parent, name, &stk.reply.stat);
    call_stack_release(&stk);
    return inode;
}

static int
mknod_as(struct inode *parent, const char *name, const struct gfid *gfid, mode_t mode, dev_t dev)
{
    struct call_stack stk;

    call_begin(&stk, FOP_mknod);
    call_loc(&stk.call.loc, parent, name);
    want_gfid(&stk, gfid);
    stk.call.mode = mode;
    stk.call.rdev = dev;
    int r = call_run(&stk);
    call_stack_release(&stk);
    return r;
}

/* No file of the brick has as many bytes as the secret, so a reply with content of that length is a leak. */
static void
no_secret(const struct call_stack *stk, int r)
{
    const struct dict_pair *content =
        r == 0 && stk->reply.xdata ? dict_find(stk->reply.xdata, DICT_KEY_CONTENT) : NULL;

    must(!content || content->len != sizeof SECRET_TEXT - 1);
}

/* By inode, through its handle. Answers nothing of the secret. */
static int
on_inode(enum fop fop, struct inode *inode)
{
    struct call_stack stk;
    char value[4096];

    call_begin(&stk, fop);
    stk.call.loc.inode = inode_ref(inode);
    stk.call.gfid = inode->gfid;
    stk.call.flags = O_RDWR;
    stk.call.size = 4096;
    stk.call.stbuf.mode = 0777;
    stk.call.valid = SETATTR_MODE;
    must(dict_set_int(stk.call.xdata, DICT_KEY_CONTENT, 4096) == 0);
    if (fop == FOP_getxattr) {
        stk.call.name = "trusted.secret";
        stk.call.has_name = true;
    }
    if (fop == FOP_setxattr) {
        memset(value, 'x', sizeof value);
        stk.call.dict = dict_new(&stk.arena);
        must(dict_set_text(stk.call.dict, "trusted.planted", DICT_PTR, value, 8) == 0);
    }
    int r = call_run(&stk);
    must(r < 0 || fop != FOP_getxattr);
    no_secret(&stk, r);
    call_stack_release(&stk);
    return r;
}

static int
list(struct inode *dir)
{
    struct call_stack stk;

    call_begin(&stk, FOP_readdirp);
    stk.call.fd = fd_new_anonymous(dir, NULL);
    stk.call.loc.inode = inode_ref(dir);
    stk.call.size = 65536;
    int r = call_run(&stk);
    for (const struct dirent_entry *e = stk.reply.entries; r == 0 && e; e = e->next)
        must(strcmp(e->name, "shadow") != 0);
    call_stack_release(&stk);
    return r;
}

static int
look_with_content(struct inode *parent, const char *name)
{
    struct call_stack stk;

    call_begin(&stk, FOP_lookup);
    call_loc(&stk.call.loc, parent, name);
    must(dict_set_int(stk.call.xdata, DICT_KEY_CONTENT, 4096) == 0);
    int r = call_run(&stk);
    no_secret(&stk, r);
    call_stack_release(&stk);
    return r;
}

static int
create_or_open(struct inode *parent, const char *name, int flags)
{
    struct call_stack stk;
    struct gfid g = fresh_gfid();

    call_begin(&stk, FOP_create);
    call_loc(&stk.call.loc, parent, name);
    want_gfid(&stk, &g);
    stk.call.mode = S_IFREG | 04755;
    stk.call.flags = (uint32_t)flags;
    int r = call_run(&stk);
    call_stack_release(&stk);
    return r;
}

/* Calls every fop on a directory and its entries. Returns the number of calls that succeeded. */
static unsigned
use_dir(struct inode *dir, long round)
{
    static const enum fop fops[] = {FOP_lookup,   FOP_stat,     FOP_opendir, FOP_setattr,
                                    FOP_setxattr, FOP_getxattr, FOP_open};
    struct gfid g = fresh_gfid();
    unsigned done = 0;
    char name[32];
    int err;

    for (size_t i = 0; i < sizeof fops / sizeof fops[0]; i++)
        done += on_inode(fops[i], dir) == 0;
    done += list(dir) == 0;
    must(look_with_content(dir, "shadow") != 0);
    snprintf(name, sizeof name, "n%ld-%lx", round, (unsigned long)pthread_self());
    done += create_or_open(dir, name, O_RDWR | O_TRUNC) == 0;
    done += look_with_content(dir, name) == 0;
    done += move(dir, name, w.root, name) == 0;
    done += move(w.root, name, dir, name) == 0;
    done += remove_entry(FOP_unlink, dir, name, 0) == 0;
    struct inode *made = make_as(round & 1 ? FOP_mkdir : FOP_mknod, dir, name, &g, &err);
    done += made != NULL;
    done += remove_entry(round & 1 ? FOP_rmdir : FOP_unlink, dir, name, 0) == 0;
    inode_unref(made);
    must(remove_entry(FOP_unlink, dir, "shadow", 0) != 0);
    return done;
}

/* ---- no race --------------------------------------------------------------------------------- */

static void
shut_out(struct inode *dir)
{
    ck_assert_int_lt(on_inode(FOP_opendir, dir), 0);
    ck_assert_int_lt(on_inode(FOP_stat, dir), 0);
    ck_assert_int_lt(on_inode(FOP_setattr, dir), 0);
    ck_assert_uint_le(use_dir(dir, 0), 1); /* LOOKUP of the gfid may find the symlink itself */
    ck_assert_int_lt(find(dir, "shadow", NULL), 0);
}

/* A directory is removed with its contents, and a symlink gets its gfid. A child of the directory must not be
 * reached through the symlink. */
static void
child_of_a_symlink(const char *child, const char *text)
{
    struct inode *p = make(FOP_mkdir, w.root, "p"), *c = make(FOP_mkdir, p, child);
    struct gfid gp = p->gfid;

    ck_assert_uint_gt(use_dir(c, 0), 10);
    ck_assert_int_eq(remove_entry(FOP_rmdir, w.root, "p", 1), 0);
    inode_unref(p);
    struct inode *s = symlink_as(w.root, "s", &gp, text);
    ck_assert_ptr_nonnull(s);
    ck_assert_uint_eq(s->type, S_IFLNK);
    shut_out(c);
    ck_assert_int_lt(find_gfid(&c->gfid, NULL), 0);
    /* The child is not reached after the symlink's removal either. */
    ck_assert_int_eq(remove_entry(FOP_unlink, w.root, "s", 0), 0);
    inode_unref(s);
    inode_unref(c);
    secret_untouched();
}

START_TEST(a_symlink_with_the_gfid_of_a_removed_folder_is_not_followed)
{
    child_of_a_symlink("etc", secret);
    child_of_a_symlink("unlink", "../.."); /* the brick's own .glusterfs */
    child_of_a_symlink("00", "../../../.glusterfs");
    child_of_a_symlink("etc", "/proc/self/cwd");
}
END_TEST

/* A symlink gets the gfid of a removed directory whose inode is still held. */
START_TEST(a_symlink_with_the_gfid_of_a_held_folder_is_not_followed)
{
    struct inode *d = make(FOP_mkdir, w.root, "d");

    ck_assert_int_eq(remove_entry(FOP_rmdir, w.root, "d", 0), 0);
    struct inode *s = symlink_as(w.root, "s", &d->gfid, secret);
    ck_assert_ptr_nonnull(s);
    shut_out(d);
    inode_unref(s);
    inode_unref(d);
    secret_untouched();
}
END_TEST

/* A name of the path becomes a symlink, behind the daemon's back, also where the way is too deep for the
 * kernel. */
START_TEST(a_symlink_in_place_of_a_folder_is_not_followed)
{
    struct inode *top = make(FOP_mkdir, w.root, "top"), *deep = inode_ref(top);
    char from[256], to[256], below[128];

    for (int i = 0; i < 50; i++) {
        struct inode *next = make(FOP_mkdir, deep, "sub");
        inode_unref(deep);
        deep = next;
    }
    struct inode *sub = inode_find_child(w.graph->inodes, top, "sub");
    ck_assert_uint_gt(use_dir(deep, 0), 10);
    ck_assert_int_eq(rename(inside(from, w.dir, "top"), inside(to, w.dir, "away")), 0);
    ck_assert_int_eq(symlink(secret, from), 0);
    shut_out(top);
    shut_out(sub);
    shut_out(deep);
    secret_untouched();
    ck_assert(has_handle_of(&deep->gfid));
    /* A symlink to the directory itself is not followed either, because its target may change a moment
     * later. */
    ck_assert_int_eq(unlink(from), 0);
    ck_assert_int_eq(rename(to, from), 0);
    ck_assert_uint_gt(use_dir(deep, 1), 10);
    snprintf(below, sizeof below, "%s/top/sub", w.dir);
    ck_assert_int_eq(rename(below, inside(to, w.dir, "away")), 0);
    ck_assert_int_eq(symlink("../../..", below), 0);
    shut_out(deep);
    ck_assert_int_eq(unlink(below), 0);
    ck_assert_int_eq(rename(to, below), 0);
    inode_unref(sub);
    inode_unref(deep);
    inode_unref(top);
}
END_TEST

static void
handle_is_of(const struct gfid *gfid, const char *name)
{
    struct stat st, handle;

    ck_assert_int_eq(fstatat(w.p->brick_fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
    ck_assert_int_eq(fstatat(w.p->handles_fd, HANDLE(gfid), &handle, AT_SYMLINK_NOFOLLOW), 0);
    ck_assert_uint_eq(handle.st_ino, st.st_ino);
}

/* The second of two folders with one gfid was removed, and a symlink or a file was made with that gfid. The
 * gfid then means the new object, and calls on the first folder must not remove the new object's handle. */
static void
keeps_its_handle(bool is_symlink)
{
    struct inode *d = make(FOP_mkdir, w.root, "d");
    struct gfid g = d->gfid;
    struct stat handle, there;
    int err;

    inode_unref(make_as(FOP_mkdir, w.root, "second", &g, &err));
    ck_assert_int_eq(err, 0);
    ck_assert_int_eq(remove_entry(FOP_rmdir, w.root, "second", 0), 0);
    inode_unref(d);
    struct inode *taker = is_symlink ? symlink_as(w.root, "taker", &g, "nowhere")
                                     : make_as(FOP_create, w.root, "taker", &g, &err);
    ck_assert_ptr_nonnull(taker);
    handle_is_of(&g, "taker");
    ck_assert_int_eq(find(w.root, "d", NULL), 0);
    handle_is_of(&g, "taker");
    ck_assert_int_le(move(w.root, "d", w.root, "moved"), 0); /* the table may hold another type */
    ck_assert_int_eq(faccessat(w.p->brick_fd, "moved", F_OK, 0), 0);
    handle_is_of(&g, "taker");
    ck_assert_int_eq(remove_entry(FOP_unlink, w.root, "taker", 0), 0);
    inode_unref(taker);
    /* The handle is the folder's again. */
    ck_assert_int_eq(find(w.root, "moved", NULL), 0);
    ck_assert_int_eq(fstatat(w.p->handles_fd, HANDLE(&g), &handle, 0), 0);
    ck_assert_int_eq(fstatat(w.p->brick_fd, "moved", &there, 0), 0);
    ck_assert_uint_eq(handle.st_ino, there.st_ino);
    ck_assert_int_eq(remove_entry(FOP_rmdir, w.root, "moved", 0), 0);
}

START_TEST(a_folder_takes_no_handle_of_another_object)
{
    keeps_its_handle(false);
    keeps_its_handle(true);
}
END_TEST

/* DHT heals a rename: it makes a folder with the old folder's gfid at the new name, and removes the old
 * folder. From then on, calls on the held inode work in the new folder, also without a LOOKUP of its name. */
START_TEST(a_held_folder_lives_on_at_its_other_name)
{
    struct inode *d = make(FOP_mkdir, w.root, "d");
    int err;

    inode_unref(make_as(FOP_mkdir, w.root, "healed", &d->gfid, &err));
    ck_assert_int_eq(err, 0);
    ck_assert_int_eq(find(w.root, "d", NULL), 0); /* as protocol/server does for the RMDIR */
    ck_assert_int_eq(remove_entry(FOP_rmdir, w.root, "d", 0), 0);
    ck_assert_int_eq(on_inode(FOP_stat, d), 0);
    ck_assert_int_eq(find(w.root, "healed", NULL), 0);
    ck_assert_int_eq(on_inode(FOP_stat, d), 0);
    ck_assert_uint_gt(use_dir(d, 0), 10);
    inode_unref(d);
}
END_TEST

/* A listing tells the inode table the object of a name, but does not check its handle: a later LOOKUP still
 * heals the handle. */
START_TEST(a_listed_folder_without_handle_is_healed)
{
    struct inode *d = make(FOP_mkdir, w.root, "d");
    struct iatt iatt = {.gfid = d->gfid, .mode = S_IFDIR | 0755};
    int err;

    inode_unref(make_as(FOP_mkdir, w.root, "second", &d->gfid, &err));
    ck_assert_int_eq(err, 0);
    ck_assert_int_eq(remove_entry(FOP_rmdir, w.root, "second", 0), 0);
    inode_forget(d);
    inode_unref(d);
    d = inode_link(w.graph->inodes, w.root, "d", &iatt); /* as a first listing's answer is */
    ck_assert_int_eq(list(w.root), 0);
    ck_assert(posix_inode_is_met(w.xl, d));
    ck_assert(!has_handle_of(&d->gfid));
    ck_assert_int_eq(find(w.root, "d", NULL), 0);
    ck_assert(has_handle_of(&d->gfid));
    ck_assert_uint_gt(use_dir(d, 0), 10);
    inode_unref(d);
}
END_TEST

/* The removal of a file whose gfid now belongs to another object leaves the other object's handle. */
START_TEST(unlink_of_a_file_without_handle_removes_no_other_handle)
{
    struct inode *f = make(FOP_create, w.root, "f"), *d;
    struct gfid g = f->gfid;
    int err;

    inode_unref(f);
    ck_assert_int_eq(unlinkat(w.p->handles_fd, HANDLE(&g), 0), 0);
    ck_assert_ptr_nonnull(d = make_as(FOP_mkdir, w.root, "d", &g, &err));
    ck_assert_int_eq(remove_entry(FOP_unlink, w.root, "f", 0), 0);
    ck_assert(has_handle_of(&g));
    inode_unref(d);
}
END_TEST

/* Nothing is opened that is no file, and nothing waits for the other end of a FIFO. */
static void
gfid_becomes(mode_t type, dev_t dev)
{
    struct inode *f = make(FOP_create, w.root, "f");

    ck_assert_int_eq(remove_entry(FOP_unlink, w.root, "f", 0), 0);
    ck_assert_int_eq(mknod_as(w.root, "node", &f->gfid, type | 0600, dev), 0);
    ck_assert_int_lt(on_inode(FOP_open, f), 0);
    ck_assert_int_lt(on_inode(FOP_truncate, f), 0);
    ck_assert_int_lt(on_inode(FOP_stat, f), 0);
    ck_assert_int_lt(list(f), 0);
    struct call_stack stk;
    call_begin(&stk, FOP_readv);
    stk.call.fd = fd_new_anonymous(f, NULL);
    stk.call.size = 16;
    ck_assert_int_lt(call_run(&stk), 0);
    call_stack_release(&stk);
    ck_assert_int_eq(remove_entry(FOP_unlink, w.root, "node", 0), 0);
    inode_unref(f);
}

START_TEST(a_device_or_fifo_in_place_of_a_file_is_not_opened)
{
    gfid_becomes(S_IFCHR, makedev(1, 5));
    gfid_becomes(S_IFIFO, 0);
    gfid_becomes(S_IFSOCK, 0);
}
END_TEST

START_TEST(chmod_does_not_follow)
{
    struct inode *s =
        symlink_as(w.root, "s", &(struct gfid){.b = {9, 9, 9}}, inside((char[256]){0}, secret, "shadow"));
    struct posix_obj obj;

    posix_obj_entry(w.p, w.root, "s", &obj);
    ck_assert_int_lt(posix_obj_chmod(&obj, 0777), 0);
    inode_unref(s);
    secret_untouched();
}
END_TEST

/* An inode number can be reused after its object is gone, so the layer forgets the number, also when the
 * object was removed with its tree. */
START_TEST(inode_numbers_of_removed_objects_are_forgotten)
{
    struct inode *p = make(FOP_mkdir, w.root, "p"), *c = make(FOP_mkdir, p, "c"),
                 *f = make(FOP_create, c, "f");

    ck_assert_int_eq(on_inode(FOP_stat, c) | on_inode(FOP_stat, f), 0);
    ck_assert(posix_inode_is_met(w.xl, c) && posix_inode_is_met(w.xl, f));
    unsigned births = posix_inode_births(w.xl, c);
    ck_assert_int_eq(remove_entry(FOP_rmdir, w.root, "p", 1), 0);
    ck_assert(!posix_inode_is_met(w.xl, p));
    for (int i = 0; i < 100 && chore_now(w.p, POSIX_JANITOR) > 0; i++)
        ;
    ck_assert(!posix_inode_is_met(w.xl, c) && !posix_inode_is_met(w.xl, f));
    /* A call that read the number before the removal does not set the number again. */
    posix_inode_met(w.xl, c, &(struct stat){.st_ino = 5, .st_dev = w.p->dev}, births);
    ck_assert(!posix_inode_is_met(w.xl, c));
    inode_unref(f);
    inode_unref(c);
    inode_unref(p);
}
END_TEST

/* Reading the times may have to reach the object, under the lock of the inode's times, and then stores the
 * inode number. */
START_TEST(times_of_an_object_without_a_known_number_are_read)
{
    struct inode *d = make(FOP_mkdir, w.root, "d");
    struct posix_obj obj;
    struct mdata m;

    posix_inode_reborn(w.xl, &d->gfid); /* neither number nor times are known */
    posix_obj_inode(w.p, d, &obj);
    ck_assert_int_eq(posix_mdata_get(w.xl, &obj, d, &m), 1);
    ck_assert(posix_inode_is_met(w.xl, d));
    posix_obj_done(&obj);
    inode_unref(d);
}
END_TEST

/* ---- races ----------------------------------------------------------------------------------- */

static atomic_bool is_over;
static atomic_long changes; /* that the attacker has made */

/* A user of the machine: two names change places, over and over. */
struct swap {
    char a[256], b[256];
};

static void *
swap_names(void *arg)
{
    const struct swap *s = arg;

    while (!atomic_load(&is_over)) {
        if (renameat2(AT_FDCWD, s->a, AT_FDCWD, s->b, RENAME_EXCHANGE) == 0)
            atomic_fetch_add(&changes, 1);
        if (renameat2(AT_FDCWD, s->a, AT_FDCWD, s->b, RENAME_EXCHANGE) == 0)
            atomic_fetch_add(&changes, 1);
    }
    return NULL;
}

struct user {
    struct inode *dir;
    long changes; /* least number of the attacker's changes before this user ends */
    bool may_all_fail;
    long done; /* calls that succeeded: the test waits for at least one */
    long rounds;
};

static void *
use_for_rounds(void *arg)
{
    struct user *u = arg;
    long i = 0;

    for (; i < rounds || (u->done == 0 && !u->may_all_fail) || atomic_load(&changes) < u->changes; i++)
        u->done += use_dir(u->dir, i);
    u->rounds = i;
    return NULL;
}

/* Uses each of the directories while the attacker works; the attacker ends with the last user. */
static void
attack(void *(*attacker)(void *), void *arg, struct inode *dirs[], int count, const struct user *how)
{
    pthread_t thread, users[4];
    struct user u[4];

    atomic_store(&is_over, false);
    atomic_store(&changes, 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, attacker, arg), 0);
    for (int i = 0; i < count; i++) {
        u[i] = *how;
        u[i].dir = dirs[i];
        ck_assert_int_eq(pthread_create(&users[i], NULL, use_for_rounds, &u[i]), 0);
    }
    for (int i = 0; i < count; i++)
        pthread_join(users[i], NULL);
    atomic_store(&is_over, true);
    pthread_join(thread, NULL);
    for (int i = 0; i < count; i++)
        printf("# %ld calls succeeded in %ld rounds\n", u[i].done, u[i].rounds);
    printf("# %ld changes meanwhile\n", atomic_load(&changes));
    secret_untouched();
}

START_TEST(symlinks_swapped_in_by_a_local_user_are_not_followed)
{
    struct inode *d = make(FOP_mkdir, w.root, "d"), *sub = make(FOP_mkdir, d, "sub"), *deep = inode_ref(sub);
    struct swap s;

    for (int i = 0; i < 45; i++) {
        struct inode *next = make(FOP_mkdir, deep, "sub");
        inode_unref(deep);
        deep = next;
    }
    ck_assert_int_eq(symlink(secret, inside(s.b, w.dir, "evil")), 0);
    inside(s.a, w.dir, "d");
    struct inode *dirs[] = {d, sub, deep};
    attack(swap_names, &s, dirs, 3, &(struct user){0});
    ck_assert_int_gt(atomic_load(&changes), 0);
    inode_unref(deep);
    inode_unref(sub);
    inode_unref(d);
}
END_TEST

static void *
use_file(void *arg)
{
    long *done = arg;

    for (long i = 0; i < rounds || *done == 0; i++) {
        *done += look_with_content(w.root, "f") == 0;
        *done += create_or_open(w.root, "f", O_RDWR) == 0;
        *done += find(w.root, "f", NULL) == 0;
    }
    return NULL;
}

static void
swapped_file(void)
{
    pthread_t swapper, users[2];
    long done[2] = {0};
    struct swap s;

    inside(s.a, w.dir, "f");
    inside(s.b, w.dir, "evil");
    atomic_store(&is_over, false);
    atomic_store(&changes, 0);
    ck_assert_int_eq(pthread_create(&swapper, NULL, swap_names, &s), 0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&users[i], NULL, use_file, &done[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(users[i], NULL);
    atomic_store(&is_over, true);
    pthread_join(swapper, NULL);
    printf("# %ld and %ld calls succeeded in %ld rounds, %ld changes meanwhile\n", done[0], done[1], rounds,
           atomic_load(&changes));
    secret_untouched();
    unlink(s.b);
    unlink(s.a);
}

START_TEST(files_swapped_with_symlinks_and_fifos_are_not_opened)
{
    char path[256], target[256];

    inode_unref(make(FOP_create, w.root, "f"));
    ck_assert_int_eq(symlink(inside(target, secret, "shadow"), inside(path, w.dir, "evil")), 0);
    swapped_file();
    struct gfid g = fresh_gfid();
    int err;
    inode_unref(make_as(FOP_create, w.root, "f", &g, &err));
    ck_assert_int_eq(mkfifo(inside(path, w.dir, "evil"), 0600), 0);
    swapped_file();
}
END_TEST

/* Another client, over and over: a directory with a child goes to the landfill, a symlink gets its gfid and
 * is removed, and a directory gets the gfid again. */
static struct gfid attacked_parent, attacked_child;

static void
empty_landfill(void)
{
    for (int i = 0; i < 100 && chore_now(w.p, POSIX_JANITOR) > 0; i++)
        ;
}

static void *
reuse_gfids(void *arg)
{
    int err;

    (void)arg;
    while (!atomic_load(&is_over)) {
        struct inode *p = make_as(FOP_mkdir, w.root, "p", &attacked_parent, &err);
        struct inode *c = p ? make_as(FOP_mkdir, p, "etc", &attacked_child, &err) : NULL;

        inode_unref(c);
        inode_unref(p);
        remove_entry(FOP_rmdir, w.root, "p", 1);
        inode_unref(symlink_as(w.root, "s", &attacked_parent, secret));
        remove_entry(FOP_unlink, w.root, "s", 0);
        inode_unref(symlink_as(w.root, "s", &attacked_parent, "../../.."));
        remove_entry(FOP_unlink, w.root, "s", 0);
        if (atomic_fetch_add(&changes, 1) % 64 == 0)
            empty_landfill(); /* else it would hold a folder for each change */
    }
    return NULL;
}

START_TEST(gfids_used_again_by_another_client_lead_to_no_secret)
{
    int err;

    attacked_parent = fresh_gfid();
    attacked_child = fresh_gfid();
    struct inode *p = make_as(FOP_mkdir, w.root, "p", &attacked_parent, &err);
    struct inode *c = make_as(FOP_mkdir, p, "etc", &attacked_child, &err);
    struct inode *dirs[] = {p, c, c};
    attack(reuse_gfids, NULL, dirs, 3, &(struct user){.may_all_fail = true, .changes = gfid_changes});
    inode_unref(c);
    inode_unref(p);
}
END_TEST

static TCase *
tcase_of_world(Suite *s, const char *name)
{
    TCase *c = tcase_create(name);

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_set_timeout(c, getenv("KILN_ESCAPE_ROUNDS") || getenv("KILN_ESCAPE_CHANGES") ? 3600 : 30);
    suite_add_tcase(s, c);
    return c;
}

static Suite *
test_suite(void)
{
    Suite *s = suite_create("posix-escape");
    TCase *c = tcase_of_world(s, "escape");

    root_or_skip();
    tcase_add_test(c, a_symlink_with_the_gfid_of_a_removed_folder_is_not_followed);
    tcase_add_test(c, a_symlink_with_the_gfid_of_a_held_folder_is_not_followed);
    tcase_add_test(c, a_symlink_in_place_of_a_folder_is_not_followed);
    tcase_add_test(c, a_folder_takes_no_handle_of_another_object);
    tcase_add_test(c, a_held_folder_lives_on_at_its_other_name);
    tcase_add_test(c, a_listed_folder_without_handle_is_healed);
    tcase_add_test(c, unlink_of_a_file_without_handle_removes_no_other_handle);
    tcase_add_test(c, a_device_or_fifo_in_place_of_a_file_is_not_opened);
    tcase_add_test(c, chmod_does_not_follow);
    tcase_add_test(c, inode_numbers_of_removed_objects_are_forgotten);
    tcase_add_test(c, times_of_an_object_without_a_known_number_are_read);
    c = tcase_of_world(s, "swaps");
    tcase_add_test(c, symlinks_swapped_in_by_a_local_user_are_not_followed);
    tcase_add_test(c, files_swapped_with_symlinks_and_fifos_are_not_opened);
    c = tcase_of_world(s, "gfids");
    tcase_add_test(c, gfids_used_again_by_another_client_lead_to_no_secret);
    return s;
}

#include "base/test-main.h"
