/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* xattr-fill: the keys of a request's xdata select keys of the reply (spec: brick 3.5, 6.1, 6.2).
 *
 * Every key that begins with trusted., user., security. or system. is a pattern for xattr names; some keys
 * ask for other things (counts, the content). Values of the request mean nothing unless said.
 *
 * A stock client's LOOKUP names a dozen xattrs of which two or three exist. So the names are listed once and
 * only what is there is read: one listxattr and a getxattr for each hit; the mdata comes from the inode's
 * context. One key alone is read without a list. (Keeping the names in the inode's context would save the
 * list. It was not done: each place that sets or removes an xattr would have to keep it true, for one system
 * call out of four.)
 */
#ifndef KILN_POSIX_XATTR_FILL_H
#define KILN_POSIX_XATTR_FILL_H

#include "xlators/storage/posix/handle.h"

enum posix_fill_where {
    POSIX_FILL_LOOKUP = 1,
    POSIX_FILL_STAT = 2,     /* stat, setattr: by path */
    POSIX_FILL_READDIRP = 4,
    POSIX_FILL_XATTROP = 8,
    POSIX_FILL_OTHER = 16,   /* getxattr, and all calls by fd */
};

/* A request may have so many patterns (E2BIG). Stock clients send one or two (trusted.pgfid.*), and those of
 * md-cache's xattr-cache-list. */
#define POSIX_PATTERNS_MAX 16

/* Content of files is sent along up to this many bytes a reply. */
#define POSIX_CONTENT_MAX (1u << 20)

struct posix_fill {
    struct xlator *xl;
    const struct dict *asked; /* the request's xdata; NULL: nothing to do */
    struct posix_obj *obj;    /* whose xattrs */
    struct inode *inode;      /* NULL: not known (yet) */
    const struct iatt *iatt;  /* NULL: a stat is made if a key needs one */
    enum posix_fill_where where;
    struct arena *arena;      /* the request's */
    struct dict **reply;      /* made when the first key is found */
    /* whose answer it will be; NULL: the daemon's own. Once it is gone the work ends */
    const struct brick_client *client;
    uint64_t content_room;    /* 0: POSIX_CONTENT_MAX. Counted down, for calls with many objects */
    uint32_t *table;          /* xattr-fill.c's: where the asked keys are, if they are many */
    uint32_t table_mask;
};

/* 0 (also if nothing was found) or -errno: -E2BIG, or -ECANCELED when the client has gone. */
int posix_xattr_fill(struct posix_fill *f);

/* The common case: stk's xdata and reply xdata. */
int posix_xattr_fill_reply(struct xlator *xl, struct call_stack *stk, struct posix_obj *obj,
                           struct inode *inode, const struct iatt *iatt, enum posix_fill_where where);

/* The value of an xattr on the arena. Its length, or -errno. */
ssize_t posix_xattr_value(struct posix_obj *obj, const char *name, struct arena *arena, const void **value);

/* All names of an object's xattrs, each with its NUL, on the arena or in `room` (of room_size). Length, or
 * -errno. */
ssize_t posix_xattr_names(struct posix_obj *obj, char *room, size_t room_size, struct arena *arena,
                          char **names);

/* A value as PTR under `key` (copied; `value` is on the dict's arena). 0 or -errno. */
int posix_dict_add(struct dict *d, const char *key, const void *value, size_t len);

/* An object's ACL as text on the arena; an access ACL that is not there is made from the mode. Its length,
 * -ENODATA, -errno. */
ssize_t posix_acl_text(struct posix_obj *obj, bool is_default, struct arena *arena, char **text);

/* The stored mdata as the 57 bytes of its xattr, from the inode's context if that is warm. 1, 0 (none) or
 * -errno. */
int posix_xattr_mdata(struct xlator *xl, struct posix_obj *obj, struct inode *inode, struct arena *arena,
                      const void **value);

#endif
