/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* xattr-fill: fills the reply with the keys that a request's xdata selects (spec: brick 3.5, 6.1, 6.2).
 *
 * Every key that begins with trusted., user., security. or system. is a pattern for xattr names. Some keys
 * request other data (counts, the content). The values in the request have no meaning except where their
 * comments say so.
 *
 * A stock client's LOOKUP names a dozen xattrs of which two or three exist. So this file lists the names once
 * and reads only existing xattrs: one listxattr and a getxattr for each hit; the mdata comes from the inode's
 * context. A single key is read without a list. (Caching the names in the inode's context would save the
 * list. It was not done, because each place that sets or removes an xattr would have to update the cache, for
 * one system call out of four.)
 */
#ifndef KILN_POSIX_XATTR_FILL_H
#define KILN_POSIX_XATTR_FILL_H

#include "xlators/storage/posix/object/handle.h"

enum posix_fill_where {
    POSIX_FILL_LOOKUP = 1,
    POSIX_FILL_STAT = 2,     /* stat, setattr: by path */
    POSIX_FILL_READDIRP = 4,
    POSIX_FILL_XATTROP = 8,
    POSIX_FILL_OTHER = 16,   /* getxattr, and all calls by fd */
};

/* Bound on the patterns of a request (E2BIG). Stock clients send one or two (trusted.pgfid.*), and those of
 * md-cache's xattr-cache-list. */
#define POSIX_PATTERNS_MAX 16

/* Bound on the bytes of file contents in a reply. */
#define POSIX_CONTENT_MAX (1u << 20)

struct posix_fill {
    struct xlator *xl;
    const struct dict *asked; /* the request's xdata; NULL: nothing to do */
    struct posix_obj *obj;    /* the object with the xattrs */
    struct inode *inode;      /* NULL: not known (yet) */
    const struct iatt *iatt;  /* NULL: a stat is made if a key needs one */
    enum posix_fill_where where;
    struct arena *arena;      /* the request's */
    struct dict **reply;      /* created for the first key */
    /* the client that gets the reply; NULL: the daemon itself. The work ends when the client is gone */
    const struct brick_client *client;
    uint64_t content_room;    /* 0: POSIX_CONTENT_MAX. Decremented, for calls with many objects */
    uint32_t *table;          /* for xattr-fill.c: a hash table of the requested keys, if there are many */
    uint32_t table_mask;
};

/* Returns 0 (also if no key was found) or -errno: -E2BIG, or -ECANCELED when the client is gone. */
int posix_xattr_fill(struct posix_fill *f);

/* The common case: stk's xdata and reply xdata. */
int posix_xattr_fill_reply(struct xlator *xl, struct call_stack *stk, struct posix_obj *obj,
                           struct inode *inode, const struct iatt *iatt, enum posix_fill_where where);

/* Reads the value of an xattr into the arena. Returns its length, or -errno. */
ssize_t posix_xattr_value(struct posix_obj *obj, const char *name, struct arena *arena, const void **value);

/* Lists all names of an object's xattrs, each with its NUL, on the arena or in `room` (of room_size). Returns
 * the length, or -errno. */
ssize_t posix_xattr_names(struct posix_obj *obj, char *room, size_t room_size, struct arena *arena,
                          char **names);

/* Adds a value as PTR under `key` (copied; `value` is on the dict's arena). Returns 0 or -errno. */
int posix_dict_add(struct dict *d, const char *key, const void *value, size_t len);

/* Returns an object's ACL as text on the arena. A missing access ACL is made from the mode. Returns the
 * length, -ENODATA or -errno. */
ssize_t posix_acl_text(struct posix_obj *obj, bool is_default, struct arena *arena, char **text);

/* Returns the stored mdata as the 57 bytes of its xattr, from the inode's context if that is filled. Returns
 * 1, 0 (none) or -errno. */
int posix_xattr_mdata(struct xlator *xl, struct posix_obj *obj, struct inode *inode, struct arena *arena,
                      const void **value);

#endif
