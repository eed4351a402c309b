/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* index above a storage that can only add to counters, with its directories in a temporary folder. */
#include "xlators/features/test-layers.h"

#include <dirent.h>
#include <endian.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "xlators/features/index/index-internal.h"

extern const struct xlator_type features_index_xlator;

#define DIRTY "trusted.afr.dirty"
#define PENDING "trusted.afr.v-client-1"

static char handles[64]; /* the brick's .glusterfs */
static char base[80];    /* the index's directory in it */
static struct inode *root, *file, *dir;
static int32_t dirty[3], pending[3];
static bool answers_later;
static int storage_fails; /* the -errno of each XATTROP; 0: it succeeds */
static int others_fail;   /* the same for the calls that are no XATTROP and no LOOKUP */
static atomic_int in_storage, xattrops, max_in_storage, others;

struct later {
    struct worker_job job;
    struct call_stack *stk;
};

static void
add(struct call_stack *stk, const char *key, int32_t *counters)
{
    const struct dict_pair *p = dict_find_text(stk->call.dict, key);
    uint32_t be[3];

    if (!p)
        return;
    memcpy(be, p->v.bytes, sizeof be);
    for (int i = 0; i < 3; i++) {
        counters[i] += (int32_t)be32toh(be[i]);
        be[i] = htobe32((uint32_t)counters[i]);
    }
    ck_assert_int_eq(dict_set_text(reply_dict(stk), key, DICT_PTR, be, sizeof be), 0);
}

static void
apply(struct call_stack *stk)
{
    int n = atomic_fetch_add(&in_storage, 1) + 1;

    if (n > atomic_load(&max_in_storage))
        atomic_store(&max_in_storage, n);
    atomic_fetch_add(&xattrops, 1);
    add(stk, DIRTY, dirty);
    add(stk, PENDING, pending);
    stk->reply.op_ret = 0;
    atomic_fetch_sub(&in_storage, 1);
}

static void
answer_later(struct worker_job *job)
{
    struct later *l = caa_container_of(job, struct later, job);

    apply(l->stk);
    call_stack_unwind(l->stk);
    free(l);
}

static xl_verdict
bottom(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    if (stk->call.fop == FOP_lookup) {
        if (gfid_equal(&stk->call.gfid, &file->gfid))
            stk->reply.stat = (struct iatt){.gfid = file->gfid, .mode = S_IFREG};
        else
            return -ENOENT;
        stk->reply.op_ret = 0;
        return XL_DONE;
    }
    if (stk->call.fop != FOP_xattrop) {
        atomic_fetch_add(&others, 1);
        if (others_fail)
            return others_fail;
        stk->reply.op_ret = 0;
        return XL_DONE;
    }
    if (storage_fails)
        return storage_fails;
    if (!answers_later) {
        apply(stk);
        return XL_DONE;
    }
    struct later *l = calloc(1, sizeof *l);
    l->stk = stk;
    l->job.run = answer_later;
    worker_post_any(&l->job);
    return XL_OWNED;
}

static void
start_brick(void)
{
    const char *const options[] = {"index-base", base, "xattrop-dirty-watchlist", "trusted.afr.dirty",
                                   "xattrop-pending-watchlist", "trusted.other., trusted.afr.v-", NULL};

    bench_setup(&features_index_xlator, options, bottom);
    root = inode_root(bench_graph.inodes);
    file = bench_inode("f", 1, S_IFREG);
    dir = bench_inode("d", 2, S_IFDIR);
}

static void
stop_brick(void)
{
    inode_unref(root);
    inode_unref(file);
    inode_unref(dir);
    while (atomic_load(&bench_graph.pins) > 1) /* a removal in the background */
        sched_yield();
    bench_teardown();
}

static void
setup(void)
{
    /* a tmpfs, where the cookie of a removed file leads back to the beginning */
    strcpy(handles, "/dev/shm/kiln-test-index-XXXXXX");
    if (!mkdtemp(handles)) {
        strcpy(handles, "/tmp/kiln-test-index-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(handles));
    }
    snprintf(base, sizeof base, "%s/indices", handles);
    start_brick();
}

static void
teardown(void)
{
    char command[128];

    stop_brick();
    snprintf(command, sizeof command, "rm -rf %s", handles);
    ck_assert_int_eq(system(command), 0);
}

static const char *
at(const char *fmt_dir, const char *name)
{
    static char path[4][512];
    static int turn;
    char *p = path[turn++ % 4];

    snprintf(p, 512, "%s/%s/%s", base, fmt_dir, name);
    return p;
}

static bool
exists(const char *where, const char *name)
{
    struct stat st;

    return lstat(at(where, name), &st) == 0;
}

static bool
has(const char *where, const struct inode *inode)
{
    return exists(where, GFID(&inode->gfid));
}

static struct bench_call *
xattrop_of(struct inode *inode, const char *key, int32_t data, int32_t metadata, int32_t entry)
{
    struct bench_call *call = bench_call(FOP_xattrop, NULL);
    uint32_t be[3] = {htobe32((uint32_t)data), htobe32((uint32_t)metadata), htobe32((uint32_t)entry)};

    call->stk->call.loc.inode = inode_ref(inode);
    call->stk->call.dict = dict_new(&call->stk->arena);
    if (key)
        dict_set_text(call->stk->call.dict, key, DICT_PTR, be, sizeof be);
    return call;
}

static struct bench_call *
xattrop(struct inode *inode, const char *key, int32_t delta)
{
    return xattrop_of(inode, key, delta, 0, 0);
}

static struct bench_call *
xattrop_words(struct inode *inode, int32_t data, int32_t metadata, int32_t entry)
{
    return xattrop_of(inode, PENDING, data, metadata, entry);
}

START_TEST(entries_follow_counters)
{
    ck_assert_int_eq(bench_run(xattrop(file, DIRTY, 1)), 0);
    ck_assert(has("dirty", file) && !has("xattrop", file));
    ck_assert_int_eq(bench_run(xattrop(file, PENDING, 2)), 0);
    ck_assert(has("dirty", file) && has("xattrop", file));
    ck_assert_int_eq(bench_run(xattrop(file, PENDING, 0)), 0); /* a read: the counter is still set */
    ck_assert(has("xattrop", file));
    ck_assert_int_eq(bench_run(xattrop(file, PENDING, -2)), 0);
    ck_assert(!has("xattrop", file) && has("dirty", file));
    ck_assert_int_eq(bench_run(xattrop(file, DIRTY, -1)), 0);
    ck_assert(!has("dirty", file));
    /* a counter of another volume */
    ck_assert_int_eq(bench_run(xattrop(file, "trusted.afr.w-client-0", 1)), 0);
    ck_assert(!has("xattrop", file));
    struct bench_call *call = xattrop(file, PENDING, 1);
    call->stk->call.flags = 4; /* get-and-set */
    ck_assert_int_eq(bench_run(call), 0);
    ck_assert(!has("xattrop", file));
}
END_TEST

START_TEST(reading_zero_removes_a_stale_entry)
{
    ck_assert_int_eq(bench_run(xattrop(file, PENDING, 1)), 0);
    stop_brick();
    memset(pending, 0, sizeof pending); /* as if the object was healed in another way */
    start_brick();
    ck_assert(has("xattrop", file));
    ck_assert_int_eq(index_count(bench_xl, index_dir_names[INDEX_XATTROP]), 1);
    ck_assert_int_eq(bench_run(xattrop(file, PENDING, 0)), 0);
    ck_assert(!has("xattrop", file));
}
END_TEST

START_TEST(a_removed_object_leaves_no_entry)
{
    static const int gone[] = {-ENOENT, -ESTALE};

    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) {
        storage_fails = gone[i];
        ck_assert_int_ne(bench_run(xattrop(file, DIRTY, 1)), 0);
        ck_assert_int_ne(bench_run(xattrop(file, PENDING, 1)), 0);
        ck_assert(!has("dirty", file) && !has("xattrop", file));
    }
    /* After another error the storage may have counted. */
    storage_fails = -EIO;
    ck_assert_int_ne(bench_run(xattrop(file, DIRTY, 1)), 0);
    ck_assert(has("dirty", file));
    storage_fails = 0;
}
END_TEST

START_TEST(xattrops_of_one_inode_run_one_at_a_time)
{
    enum { N = 200 };
    struct bench_call *calls[N];

    answers_later = true;
    for (int i = 0; i < N; i++) {
        calls[i] = xattrop(file, DIRTY, i % 2 ? -1 : 1);
        bench_wind(calls[i]);
    }
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(bench_result(calls[i]), 0);
        bench_free(calls[i]);
    }
    ck_assert_int_eq(atomic_load(&max_in_storage), 1);
    ck_assert_int_eq(atomic_load(&xattrops), N);
    ck_assert(!has("dirty", file));
}
END_TEST

static struct gfid
virtual_gfid(const char *name)
{
    struct bench_call *call = bench_call(FOP_getxattr, NULL);
    struct gfid gfid;

    call->stk->call.loc.inode = inode_ref(root);
    call->stk->call.name = name;
    bench_wind(call);
    ck_assert_int_eq(bench_result(call), 16);
    ck_assert_int_eq(dict_get_gfid(call->stk->reply.dict, dict_key_find(name, strlen(name)), &gfid), 0);
    bench_free(call);
    return gfid;
}

/* A nameless lookup. Links the inode of the reply, as protocol/server does. */
static struct inode *
lookup_gfid(struct gfid gfid, int64_t *type)
{
    struct bench_call *call = bench_call(FOP_lookup, NULL);

    call->stk->call.gfid = gfid;
    call->stk->call.xdata = dict_new(&call->stk->arena);
    dict_set_int(call->stk->call.xdata, DICT_KEY_INDEX_TYPE_REQ, 1);
    bench_wind(call);
    ck_assert_int_eq(bench_result(call), 0);
    ck_assert_uint_eq(call->stk->reply.stat.flags, IATT_FLAGS_VIRTUAL);
    if (type)
        ck_assert_int_eq(dict_get_int(call->stk->reply.xdata, DICT_KEY_INDEX_TYPE_RSP, type), 0);
    struct inode *inode = inode_link(bench_graph.inodes, NULL, NULL, &call->stk->reply.stat);
    bench_free(call);
    return inode;
}

static struct bench_call *
entry(enum fop fop, struct inode *parent, const char *name, uint32_t flags)
{
    struct bench_call *call = bench_call(fop, NULL);

    call->stk->call.loc.parent = inode_ref(parent);
    call->stk->call.loc.name = arena_dup(&call->stk->arena, name, strlen(name));
    call->stk->call.flags = flags;
    return call;
}

/* Lists all names in batches of `size` bytes. Returns their number, without "." and "..". */
static int
list(struct inode *inode, uint64_t size, bool wants_types, char names[][GFID_TEXT_SIZE], uint32_t *types)
{
    struct bench_call *call = bench_call(FOP_opendir, NULL);
    uint64_t offset = 0;
    int n = 0;

    call->stk->call.loc.inode = inode_ref(inode);
    bench_wind(call);
    ck_assert_int_eq(bench_result(call), 0);
    struct fd *fd = fd_ref(call->stk->reply.fd);
    bench_free(call);
    for (bool at_end = false; !at_end;) {
        call = bench_call(FOP_readdir, NULL);
        call->stk->call.fd = fd_ref(fd);
        call->stk->call.size = size;
        call->stk->call.offset = offset;
        if (wants_types) {
            call->stk->call.xdata = dict_new(&call->stk->arena);
            dict_set_int(call->stk->call.xdata, DICT_KEY_GET_GFID_TYPE, 1);
        }
        bench_wind(call);
        int got = bench_result(call);
        ck_assert_int_ge(got, 0);
        at_end = call->stk->reply.op_errno == ENOENT;
        ck_assert(at_end || got > 0);
        for (struct dirent_entry *e = call->stk->reply.entries; e; e = e->next, got--) {
            offset = e->off;
            if (e->name[0] == '.')
                continue;
            snprintf(names[n], GFID_TEXT_SIZE, "%s", e->name);
            types[n++] = e->type;
        }
        ck_assert_int_eq(got, 0);
        bench_free(call);
    }
    fd_unref(fd);
    return n;
}

START_TEST(the_virtual_directories_list_objects_with_counters)
{
    char names[8][GFID_TEXT_SIZE];
    uint32_t types[8];
    int64_t type;
    struct inode *v = lookup_gfid(virtual_gfid("glusterfs.xattrop_index_gfid"), &type);
    int before;

    ck_assert_int_eq(type, 1);
    ck_assert_int_eq(bench_run(entry(FOP_lookup, v, GFID(&file->gfid), 0)), -ENOENT);
    ck_assert_int_eq(bench_run(xattrop(file, PENDING, 1)), 0);
    ck_assert_int_eq(bench_run(xattrop(dir, PENDING, 1)), 0);
    /* a stale base file */
    close(open(at("xattrop", "xattrop-11111111-2222-3333-4444-555555555555"), O_CREAT | O_WRONLY, 0));
    ck_assert_int_eq(list(v, 4096, true, names, types), 2);
    ck_assert(types[0] + types[1] == 8 + 4);
    ck_assert(!exists("xattrop", "xattrop-11111111-2222-3333-4444-555555555555"));
    ck_assert_int_eq(list(v, 300, false, names, types), 2); /* one entry per call */
    ck_assert_int_eq(bench_run(entry(FOP_lookup, v, GFID(&file->gfid), 0)), 0);
    ck_assert_int_eq(bench_run(entry(FOP_unlink, v, "no-gfid", 0)), -ENOENT);
    struct bench_call *call = entry(FOP_unlink, v, GFID(&file->gfid), 0);
    call->stk->caller.uid = 1000;
    ck_assert_int_eq(bench_run(call), -EACCES);
    ck_assert_int_eq(bench_run(entry(FOP_unlink, v, GFID(&file->gfid), 0)), 0);
    ck_assert(!has("xattrop", file));
    ck_assert_int_eq(bench_run(entry(FOP_unlink, v, GFID(&file->gfid), 0)), -ENOENT);
    ck_assert_int_eq(bench_run(xattrop(file, PENDING, 1)), 0); /* the layer knows that the entry is gone */
    ck_assert(has("xattrop", file));

    before = atomic_load(&others);
    call = bench_call(FOP_stat, NULL);
    call->stk->call.loc.inode = inode_ref(v);
    ck_assert_int_eq(bench_run(call), -ENOENT);
    ck_assert_int_eq(bench_run(entry(FOP_mkdir, v, "x", 0)), -ENOENT);
    ck_assert_int_eq(atomic_load(&others), before);
    inode_unref(v);
}
END_TEST

START_TEST(listings_have_the_types_of_objects_outside_of_memory)
{
    char names[8][GFID_TEXT_SIZE];
    uint32_t types[8];
    struct inode *v = lookup_gfid(virtual_gfid("glusterfs.xattrop_index_gfid"), NULL);
    struct gfid gone = {.b = {9}};

    ck_assert_int_eq(bench_run(xattrop(file, PENDING, 1)), 0);
    ck_assert_int_eq(index_entry_add(bench_xl, INDEX_XATTROP, &gone), 0);
    ck_assert_int_eq(list(v, 4096, true, names, types), 2);
    for (int i = 0; i < 2; i++)
        ck_assert_uint_eq(types[i], strcmp(names[i], GFID(&gone)) ? 8 : 0);
    inode_unref(v);
}
END_TEST

START_TEST(a_listing_survives_removals)
{
    enum { N = 500 };
    static char names[N + 8][GFID_TEXT_SIZE];
    static uint32_t types[N + 8];
    struct inode *v = lookup_gfid(virtual_gfid("glusterfs.xattrop_index_gfid"), NULL);

    for (int i = 0; i < N; i++) {
        struct gfid g = {.b = {1, (uint8_t)(i >> 8), (uint8_t)i}};

        ck_assert_int_eq(index_entry_add(bench_xl, INDEX_XATTROP, &g), 0);
    }
    ck_assert_int_eq(list(v, 1000, false, names, types), N);
    ck_assert_int_eq(index_count(bench_xl, index_dir_names[INDEX_XATTROP]), N);

    struct bench_call *call = bench_call(FOP_opendir, NULL);
    call->stk->call.loc.inode = inode_ref(v);
    bench_wind(call);
    ck_assert_int_eq(bench_result(call), 0);
    struct fd *fd = fd_ref(call->stk->reply.fd);
    bench_free(call);
    uint64_t offset = 0;
    int removed = 0;
    for (bool at_end = false; !at_end;) {
        call = bench_call(FOP_readdir, NULL);
        call->stk->call.fd = fd_ref(fd);
        call->stk->call.size = 2000;
        call->stk->call.offset = offset;
        bench_wind(call);
        ck_assert_int_ge(bench_result(call), 0);
        at_end = call->stk->reply.op_errno == ENOENT;
        for (struct dirent_entry *e = call->stk->reply.entries; e; e = e->next) {
            offset = e->off;
            if (e->name[0] != '.') {
                ck_assert_int_eq(bench_run(entry(FOP_unlink, v, e->name, 0)), 0);
                removed++;
            }
        }
        bench_free(call);
    }
    fd_unref(fd);
    ck_assert_int_eq(removed, N);
    ck_assert_int_eq(index_count(bench_xl, index_dir_names[INDEX_XATTROP]), 0);
    inode_unref(v);
}
END_TEST

/* Lists as heal info does: from the cookie of the last entry on until a reply is empty. After a restart, that
 * cookie may lead to the old base file, which the first listing removes. */
START_TEST(listing_behind_the_last_entry_is_empty)
{
    int names = 0, rounds = 0;

    ck_assert_int_eq(bench_run(xattrop(file, PENDING, 1)), 0);
    stop_brick();
    start_brick();
    struct inode *v = lookup_gfid(virtual_gfid("glusterfs.xattrop_index_gfid"), NULL);
    uint64_t offset = 0;
    for (int got = 1; got; rounds++) {
        struct bench_call *call = bench_call(FOP_opendir, NULL);
        call->stk->call.loc.inode = inode_ref(v);
        bench_wind(call);
        ck_assert_int_eq(bench_result(call), 0);
        struct fd *fd = fd_ref(call->stk->reply.fd);
        bench_free(call);
        call = bench_call(FOP_readdir, NULL);
        call->stk->call.fd = fd;
        call->stk->call.size = 4096;
        call->stk->call.offset = offset;
        bench_wind(call);
        got = bench_result(call);
        for (struct dirent_entry *e = call->stk->reply.entries; e; e = e->next) {
            offset = e->off;
            names += e->name[0] != '.';
        }
        bench_free(call);
        ck_assert_int_lt(rounds, 10);
    }
    ck_assert_int_eq(names, 1);
    inode_unref(v);
}
END_TEST

static struct bench_call *
change(enum dict_key key, const char *name)
{
    struct bench_call *call = xattrop(dir, PENDING, 0);

    call->stk->call.xdata = dict_new(&call->stk->arena);
    if (name)
        dict_set_str(call->stk->call.xdata, key, name);
    else
        dict_set_int(call->stk->call.xdata, key, 1);
    return call;
}

static struct inode *
lookup_subdir(struct inode *v)
{
    struct bench_call *call = entry(FOP_lookup, v, GFID(&dir->gfid), 0);

    bench_wind(call);
    ck_assert_int_eq(bench_result(call), 0);
    struct inode *inode = inode_link(bench_graph.inodes, v, GFID(&dir->gfid), &call->stk->reply.stat);
    bench_free(call);
    return inode;
}

START_TEST(changed_names_are_listed_below_their_directory)
{
    char names[8][GFID_TEXT_SIZE];
    uint32_t types[8];
    int64_t type;
    struct inode *v = lookup_gfid(virtual_gfid("glusterfs.xattrop_entry_changes_gfid"), &type), *sub;

    ck_assert_int_eq(type, 2);
    ck_assert_int_eq(bench_run(change(DICT_KEY_XATTROP_ENTRY_CREATE, "n1")), 0);
    ck_assert_int_eq(bench_run(change(DICT_KEY_XATTROP_ENTRY_CREATE, "n2")), 0);
    ck_assert_int_eq(bench_run(change(DICT_KEY_XATTROP_ENTRY_CREATE, "n2")), 0);
    ck_assert_int_eq(bench_run(change(DICT_KEY_XATTROP_ENTRY_CREATE, "../../x")), -EINVAL);
    ck_assert_int_eq(bench_run(change(DICT_KEY_XATTROP_ENTRY_CREATE, "..")), -EINVAL);
    ck_assert(has("entry-changes", dir));
    sub = lookup_subdir(v);
    ck_assert_int_eq(list(sub, 4096, true, names, types), 2);
    ck_assert_int_eq(bench_run(entry(FOP_lookup, sub, "n1", 0)), 0);
    ck_assert_int_eq(bench_run(entry(FOP_lookup, sub, "n3", 0)), -ENOENT);
    ck_assert_int_eq(bench_run(entry(FOP_unlink, sub, "n1", 0)), 0);
    ck_assert_int_eq(bench_run(change(DICT_KEY_XATTROP_ENTRY_DELETE, "n2")), 0);
    ck_assert_int_eq(list(sub, 4096, true, names, types), 0);
    ck_assert_int_eq(bench_run(change(DICT_KEY_XATTROP_PURGE_INDEX, NULL)), 0);
    ck_assert(!has("entry-changes", dir));
    ck_assert_int_eq(bench_run(entry(FOP_lookup, sub, "n1", 0)), -ENOENT);

    /* A name that was recorded during the heal stays, because the counter says that the directory still needs
     * healing. */
    ck_assert_int_eq(bench_run(change(DICT_KEY_XATTROP_ENTRY_CREATE, "n1")), 0);
    ck_assert_int_eq(bench_run(xattrop(dir, PENDING, 1)), 0);
    ck_assert_int_eq(bench_run(change(DICT_KEY_XATTROP_PURGE_INDEX, NULL)), 0);
    ck_assert(has("entry-changes", dir));
    ck_assert_int_eq(bench_run(entry(FOP_lookup, sub, "n1", 0)), 0);
    ck_assert_int_eq(bench_run(xattrop(dir, PENDING, -1)), 0);

    /* Attributes that wait for healing keep no names: the heal of attributes does not remove names. */
    ck_assert_int_eq(bench_run(xattrop_words(dir, 0, 1, 0)), 0);
    ck_assert_int_eq(bench_run(change(DICT_KEY_XATTROP_PURGE_INDEX, NULL)), 0);
    ck_assert(!has("entry-changes", dir) && has("xattrop", dir));
    ck_assert_int_eq(bench_run(xattrop_words(dir, 0, -1, 1)), 0);
    ck_assert_int_eq(bench_run(change(DICT_KEY_XATTROP_ENTRY_CREATE, "n1")), 0);
    ck_assert_int_eq(bench_run(change(DICT_KEY_XATTROP_PURGE_INDEX, NULL)), 0);
    ck_assert(has("entry-changes", dir));
    ck_assert_int_eq(bench_run(xattrop_words(dir, 0, 0, -1)), 0);

    for (uint32_t i = 0; i < 3; i++) { /* with contents: renamed, then removed in the background */
        ck_assert_int_eq(bench_run(change(DICT_KEY_XATTROP_ENTRY_CREATE, "n1")), 0);
        ck_assert_int_eq(i ? bench_run(entry(FOP_rmdir, v, GFID(&dir->gfid), i - 1))
                           : bench_run(change(DICT_KEY_XATTROP_PURGE_INDEX, NULL)),
                         0);
        ck_assert(!has("entry-changes", dir));
    }
    while (atomic_load(&bench_graph.pins) > 1)
        sched_yield();
    ck_assert_int_eq(index_count(bench_xl, index_dir_names[INDEX_ENTRY_CHANGES]), 0);
    inode_unref(sub);
    inode_unref(v);
}
END_TEST

/* Winds RMDIR of `folder`, or a RENAME that replaces it. */
static int
remove_folder(enum fop fop, struct inode *folder)
{
    struct bench_call *call = entry(fop, root, "folder", 0);
    struct loc *loc = fop == FOP_rename ? &call->stk->call.loc2 : &call->stk->call.loc;

    loc->inode = inode_ref(folder);
    if (fop == FOP_rename) {
        loc->parent = inode_ref(root);
        loc->name = "other";
    }
    return bench_run(call);
}

START_TEST(a_removed_folder_leaves_no_changed_names)
{
    static const enum fop removals[] = {FOP_rmdir, FOP_rename};

    for (size_t i = 0; i < sizeof removals / sizeof removals[0]; i++) {
        ck_assert_int_eq(bench_run(change(DICT_KEY_XATTROP_ENTRY_CREATE, "n1")), 0);
        others_fail = -ENOTEMPTY;
        ck_assert_int_eq(remove_folder(removals[i], dir), -ENOTEMPTY);
        ck_assert(has("entry-changes", dir));
        others_fail = 0;
        ck_assert_int_eq(remove_folder(removals[i], file), 0);
        ck_assert(has("entry-changes", dir));
        ck_assert_int_eq(remove_folder(removals[i], dir), 0);
        ck_assert(!has("entry-changes", dir));
        ck_assert_int_eq(remove_folder(removals[i], dir), 0); /* without changes */
    }
    /* A folder with a handle has been made anew at another place: the names may be of that one. */
    char command[256];
    const uint8_t *b = dir->gfid.b;
    snprintf(command, sizeof command, "cd %s && mkdir -p %02x/%02x && touch %02x/%02x/%s", handles, b[0],
             b[1], b[0], b[1], GFID(&dir->gfid));
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_eq(bench_run(change(DICT_KEY_XATTROP_ENTRY_CREATE, "n1")), 0);
    ck_assert_int_eq(remove_folder(FOP_rmdir, dir), 0);
    ck_assert(has("entry-changes", dir));
    storage_fails = -ESTALE;
    ck_assert_int_eq(bench_run(change(DICT_KEY_XATTROP_ENTRY_CREATE, "n2")), -ESTALE);
    ck_assert(has("entry-changes", dir));
    storage_fails = 0;
    snprintf(command, sizeof command, "rm %s/%02x/%02x/%s", handles, b[0], b[1], GFID(&dir->gfid));
    ck_assert_int_eq(system(command), 0);

    /* A name that is recorded after the removal does not stay either. */
    storage_fails = -ESTALE;
    ck_assert_int_eq(bench_run(change(DICT_KEY_XATTROP_ENTRY_CREATE, "n1")), -ESTALE);
    ck_assert(!has("entry-changes", dir));
    storage_fails = -EIO;
    ck_assert_int_eq(bench_run(change(DICT_KEY_XATTROP_ENTRY_CREATE, "n1")), -EIO);
    ck_assert(has("entry-changes", dir));
    storage_fails = 0;
}
END_TEST

static int64_t
link_count(struct inode *inode)
{
    struct bench_call *call = bench_call(FOP_lookup, NULL);
    int64_t n = -1;

    call->stk->call.loc.inode = inode_ref(inode);
    /* storage returns ENOENT: the reply has the count nevertheless */
    call->stk->call.gfid = (struct gfid){.b = {77}};
    call->stk->call.xdata = dict_new(&call->stk->arena);
    dict_set_str(call->stk->call.xdata, DICT_KEY_LINK_COUNT, "glusterfs.xattrop_index_count");
    bench_wind(call);
    ck_assert_int_eq(bench_result(call), -ENOENT);
    ck_assert_int_eq(dict_get_int(call->stk->reply.xdata, DICT_KEY_LINK_COUNT, &n), 0);
    bench_free(call);
    return n;
}

START_TEST(the_link_count_counts_objects_with_pending_counters)
{
    ck_assert_int_eq(link_count(dir), 0);
    ck_assert_int_eq(bench_run(xattrop(file, DIRTY, 1)), 0);
    ck_assert_int_eq(link_count(dir), 0);
    ck_assert_int_eq(bench_run(xattrop(file, PENDING, 1)), 0);
    ck_assert_int_eq(link_count(dir), 1);
    stop_brick();
    start_brick();
    ck_assert_int_eq(link_count(dir), 1);
    ck_assert_int_eq(bench_run(xattrop(file, PENDING, -1)), 0);
    ck_assert_int_eq(link_count(dir), 0);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("index");
    TCase *t = tcase_create("index");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, entries_follow_counters);
    tcase_add_test(t, reading_zero_removes_a_stale_entry);
    tcase_add_test(t, a_removed_object_leaves_no_entry);
    tcase_add_test(t, xattrops_of_one_inode_run_one_at_a_time);
    tcase_add_test(t, the_virtual_directories_list_objects_with_counters);
    tcase_add_test(t, listings_have_the_types_of_objects_outside_of_memory);
    tcase_add_test(t, a_listing_survives_removals);
    tcase_add_test(t, listing_behind_the_last_entry_is_empty);
    tcase_add_test(t, changed_names_are_listed_below_their_directory);
    tcase_add_test(t, a_removed_folder_leaves_no_changed_names);
    tcase_add_test(t, the_link_count_counts_objects_with_pending_counters);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
