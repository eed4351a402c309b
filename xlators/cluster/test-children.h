/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A graph with bricks in memory, for unit tests of layers that fan out (cluster/replicate,
 * cluster/distribute).
 *
 * The layer under test stands above layers of the type test/child. Each of them is a brick that keeps its
 * objects in memory: names, attributes, contents, extended attributes with XATTROP, locks. It answers as
 * protocol/client does.
 *
 * The test runs in one thread and on a virtual clock. A call to a child waits in a queue; scene_run()
 * serves the queue, then the jobs that the product posted to workers, then the timers that are due.
 * Between the steps nothing happens, so each run of a scenario makes the same calls in the same order,
 * and a fault can be set at the n-th of them. The linker puts this file's worker_post(), timer_start()
 * and clock_mono_ns() in place of the product's (WRAP_FOR_CHILDREN in
 * xlators/cluster/replicate/local.mk). CHILDREN_TRACE=1 in the environment prints each call.
 *
 * Objects stay when the scene ends (scene_end()) and a new scene begins: a mount that died, and the next
 * mount. */
#ifndef KILN_CLUSTER_TEST_CHILDREN_H
#define KILN_CLUSTER_TEST_CHILDREN_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "fs/fd.h"
#include "graph/graph.h"

enum {
    CHILDREN_MAX = 6,
    STORED_OBJECTS_MAX = 32,
    STORED_NAMES_MAX = 48,
    STORED_XATTRS_MAX = 14,
    STORED_DATA_MAX = 2560,
    STORED_TEXT_MAX = 64,
    STORED_GHOSTS_MAX = 4
};

struct stored_xattr {
    char key[STORED_TEXT_MAX];
    unsigned char bytes[STORED_TEXT_MAX];
    uint32_t len;
};

/* Object 0 is the root. A free slot has the mode 0; a file without a name keeps its slot and has nlink 0. */
struct stored_object {
    struct iatt stat; /* without size for an arbiter */
    unsigned char data[STORED_DATA_MAX]; /* each byte stands for scene.scale bytes */
    char target[STORED_TEXT_MAX]; /* of a symbolic link */
    struct stored_xattr xattr[STORED_XATTRS_MAX];
    unsigned xattr_count;
    bool is_open; /* an fd is open: the gfid finds the object also without a name. Set by tests */
};

struct stored_name {
    bool is_used;
    unsigned dir, object; /* indexes of objects */
    char name[STORED_TEXT_MAX];
};

/* A brick's disk. */
struct store {
    bool is_arbiter;
    int64_t clock; /* time of the next change; calls of the test begin with the same time on all children */
    struct stored_object object[STORED_OBJECTS_MAX];
    struct stored_name name[STORED_NAMES_MAX];
    /* entries of the brick's index without an object; a null gfid: none. The others come from the counters */
    struct gfid index_ghost[STORED_GHOSTS_MAX];
    struct gfid index_folder_ghost[STORED_GHOSTS_MAX]; /* of the index of changed names */
};

enum fault_kind {
    FAULT_REFUSED,    /* the call is not done, and fails with the fault's errno */
    FAULT_UNSENT,     /* the connection ends before the call: not done, ENOTCONN */
    FAULT_UNANSWERED, /* the call is done, then the connection ends: ENOTCONN */
    FAULT_LATE,       /* the call is served after all other calls and jobs */
    FAULT_CUT,        /* the mount dies before the call: all connections end, without an event */
    FAULT_CUT_AFTER,  /* like FAULT_CUT, but the call is done */
    FAULT_KINDS,
    FAULT_HELD /* the call waits in the brick until scene_release_held(). Not in loops over the kinds */
};

/* A fault at a child's call number `at`, counted from 0 at scene_arm(). `child` ANY_CHILD: number `at` of
 * the calls to all children. */
enum { ANY_CHILD = CHILDREN_MAX };
struct fault {
    unsigned child, at;
    enum fault_kind kind;
    int err; /* of FAULT_REFUSED; positive */
    bool has_struck;
};

struct scene {
    struct graph *graph;
    struct graph *beside; /* the graph of before, after scene_begin_beside(); or NULL */
    unsigned count; /* number of children */
    struct xlator *child[CHILDREN_MAX];
    struct store store[CHILDREN_MAX];
    bool is_up[CHILDREN_MAX], is_cut; /* is_cut: the mount is dead */
    unsigned stays_down;              /* bits of children that the next scene_begin() leaves down */
    bool answers_early;               /* the children of the next graph answer changes before they are done */
    bool tells_late;                  /* a child that goes down first fails its calls, then sends the event */
    bool has_pairs; /* the layer's children are replica sets r0 (c0, c1) and r1 (c2, c3) of the bricks */
    const char *pair_options; /* ... with these options, as lines of a volfile; NULL: none */
    uint64_t scale; /* bytes of a file that a stored byte stands for, for files of many blocks; 0: one */
    bool takes_sequences;             /* the children take joined calls in one message; else they get none */
    unsigned sequences;               /* messages with joined calls */
    struct fault fault[2];
    unsigned fault_count;
    unsigned calls[CHILDREN_MAX + 1]; /* since scene_arm(); the last: the calls to all children */
    unsigned answered;                /* calls that children have answered since scene_arm() */
    uint64_t now_ns;                  /* the virtual clock */
    /* A lie of a brick, or NULL: called after the brick has served a call (a lock call: before it waits),
     * changes the reply or *ret. Only lock calls have the result 1. */
    void (*lie)(unsigned child, struct call_stack *stk, int *ret);
    /* NULL; or called for each lock that a connection held when it ended */
    void (*lock_lost)(unsigned child, const struct gfid *gfid, const char *domain);
    int64_t starve_at; /* number of the product's allocation that fails; 0: none. scene_starve() */
    /* of the latest scene_call() */
    bool is_answered;
    bool was_dead; /* ... but the mount had died before */
    int ret; /* result or -errno */
    struct iatt stat;
    char text[STORED_DATA_MAX]; /* readv, readlink, getxattr of a name */
    unsigned text_len;
    char names[512];      /* readdir: the names, each with a '/' behind it */
    uint64_t next_offset; /* readdir: offset of the last name; seek: the result */
    struct iatt listed;   /* readdirp: attributes of the last name */
    struct fd *fd;        /* of a create, open or opendir: a reference of the scene */
};
extern struct scene scene;
extern const struct xlator_type *pair_type; /* of the replica sets of scene.has_pairs */

/* Empties the children's disks; `count` children. The third of three may be an arbiter. */
void scene_clear(unsigned count, bool has_arbiter);
/* Builds a graph of the layer `type` over the children, and lets them come up. `options` are lines of a
 * volfile. `names` of the children are c0, c1, ..., and the layer's name is "v". */
void scene_begin(const struct xlator_type *type, const char *options);
/* As scene_begin(), but without a layer above the layer `type`, which is the graph's top. */
void scene_begin_top(const struct xlator_type *type, const char *options);
/* Returns the reason why such a graph cannot be made or started; NULL: no reason, and the graph is gone. */
const char *scene_refusal(const struct xlator_type *type, const char *options, bool is_top);
/* Gives the running graph these options. Returns 0 or -errno. */
int scene_reconfigure(const char *options);
/* Builds and starts another graph of the same type over the same disks, as scene.graph; the graph of before
 * is scene.beside. scene_end_beside() takes one of the two graphs down; the other is then scene.graph. */
void scene_begin_beside(const char *options);
void scene_end_beside(bool ends_serving);
/* Takes the graph down, and fails the test if it leaks objects. Faults are cleared. */
void scene_end(void);
/* Counts calls from 0, and sets faults. */
void scene_arm(const struct fault *faults, unsigned count);
/* Makes the n-th allocation (from 1) of the product fail; 0: none fails. Bricks and tests have memory. Needs
 * scene_init_starving() before the first scene_begin(), and WRAP_FOR_STARVING in
 * xlators/cluster/replicate/local.mk. scene_has_starved() tells whether an allocation has failed. */
void scene_init_starving(void);
void scene_starve(int64_t n);
bool scene_has_starved(void);
/* Serves the calls that FAULT_HELD has kept; `err` not 0: the calls fail with that errno. */
void scene_release_held(int err);
/* Runs until no call, job or timer that is due within `ms` is left. */
void scene_run(uint64_t ms);
/* Runs one job, also while calls wait, so that the job's calls alternate with these. */
void scene_run_job(void);
/* Brings a child up or down; sends the event. */
void scene_child_up(unsigned i);
void scene_child_down(unsigned i);
/* The mount dies: all connections end, without an event. */
void scene_cut(void);

/* Makes a call at the top of the graph and runs the scene for `ms`. `fill` sets the arguments (may be
 * NULL). Returns scene.ret; fails the test if the call hangs. */
int scene_call(enum fop fop, void (*fill)(struct call_stack *stk), uint64_t ms);
/* Returns a reference to the inode of the object that child i has behind the path ("/a/b"); NULL: none. */
struct inode *scene_inode(unsigned i, const char *path);
/* ... that the first child with such an object has there. */
struct inode *scene_inode_of(const char *path);

/* Looks up the root and every name that a child has, by the graph. */
void scene_lookup_all(void);

/* ---- disks ----------------------------------------------------------------------------------- */

/* Returns the object behind the path; NULL: none. */
struct stored_object *store_find(struct store *s, const char *path);
/* Makes an object on child i, or on all children; `number` gives its gfid. Returns the object on the last
 * child. A file has scene.scale bytes for each of `contents`. */
struct stored_object *store_make(unsigned i, const char *path, uint32_t mode, uint8_t number,
                                 const char *contents);
void store_make_all(const char *path, uint32_t mode, uint8_t number, const char *contents);
/* Returns the xattr; NULL: none. */
struct stored_xattr *store_xattr(struct stored_object *o, const char *key);
int store_set_xattr(struct stored_object *o, const char *key, const void *bytes, uint32_t len);
/* Returns the number of locks that children hold or that wait. */
unsigned store_locks(void);
/* Writes the locks, for messages. */
const char *store_locks_text(void);
/* Returns NULL if both disks have the same tree (contents and sizes only if neither is an arbiter's), or
 * the first difference. Counters (trusted.afr.*) and times are not compared. */
const char *store_difference(struct store *a, struct store *b);

/* ---- findings -------------------------------------------------------------------------------- */

#define RUN_TEXT_BYTES 256
extern char run_text[RUN_TEXT_BYTES]; /* the present run, for messages; the test fills the text in */
extern unsigned findings;             /* number of findings; the test sets the number to 0 */
/* Prints the text behind run_text. */
void run_say(const char *fmt, va_list ap);
/* Counts a finding, and prints the text behind run_text unless 25 findings were printed already. */
void finding_add(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
