/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* mount-internal: a mount, for the files that share its life: mount.c has the list of mounts, and how a mount
 * comes and goes; mount-follow.c changes a mount to a newer volfile; mount-saved.c hands all mounts to a
 * newer program. */
#ifndef KILN_MOUNT_MOUNT_INTERNAL_H
#define KILN_MOUNT_MOUNT_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <urcu/list.h>

#include "event/timer.h"
#include "graph/graph.h"
#include "mount/mount.h"

/* Work for a mount's thread. The thread takes the lowest bit first, but TO_LEAVE before all other bits,
 * because TO_LEAVE ends the mount. */
enum { TO_START = 1, TO_FOLLOW = 2, TO_LEAVE = 4, TO_TIDY = 8 };

struct mount {
    struct cds_list_head link; /* in `mounts_list`, under mounts_lock */
    struct mount_options options;
    char *mountpoint, *words;
    /* fields of the mount's thread: */
    void (*settled)(int status, const char *why, void *arg); /* NULL: not wanted, or called already */
    void *arg;
    struct volfile_digest digest; /* of the newest volfile that the graph has taken over */
    struct cds_list_head old;     /* former graphs with open files */
    struct timer again;           /* armed while there is work, and no thread could be started */

    pthread_mutex_t
        lock; /* guards the fields below; the holder calls graph_pin() and spec_refetch() only */
    pthread_cond_t changed;
    /* the mount's thread alone writes the next two fields, and reads both without the lock */
    struct graph *graph;
    struct spec *spec; /* NULL: the volfile comes from a file */
    unsigned to_do;
    bool is_acting; /* the mount has a thread */
    bool has_news;  /* an event of the bricks other than CHILD_CONNECTING has come */
    bool is_refused;
    struct graph *next; /* graph that will replace `graph`; NULL: none */
    bool is_next_up;    /* the bricks of `next` are connected */
    char *text; /* the newest volfile, not parsed yet; NULL: none */
    size_t text_bytes;
    char failure[1024]; /* reason of the last failure to get a volfile */
    char *current;      /* the volfile of `graph`; of the mount's thread */
    size_t current_bytes;
    struct parcel *saved; /* of an earlier program, until the mount serves; NULL: none */
};

/* A former graph, whose files are still open. */
struct old_graph {
    struct cds_list_head link;
    struct graph *graph;
};

extern pthread_mutex_t mounts_lock; /* taken before a mount's lock */
extern struct cds_list_head mounts_list; /* under mounts_lock */

/* Is the mount told to leave? `lock` is held. */
static inline bool
mount_must_leave(const struct mount *m)
{
    return m->to_do & TO_LEAVE;
}

/* ---- mount.c; all but the first are of the mount's thread ------------------------------------ */

/* Adds work, and wakes the mount's thread, or starts a thread if the mount has none. With `what` 0 only wakes
 * the thread. Any thread; `lock` is held, and let go. If no thread can be started, a timer tries again until
 * a thread runs. Only for TO_START returns the error instead. */
int mount_wake_and_unlock(struct mount *m, unsigned what);
/* NULL with *error: the servers cannot be asked. */
struct spec *mount_ask_servers(struct mount *m, char *error, size_t size);
/* The watch of a mount's graphs; any thread. */
void mount_volume_event(struct graph *g, const struct layer_event *e);
/* Returns the graph of the first volfile; NULL: *error says why. */
struct graph *mount_make_graph(struct mount *m, char *error, size_t size);
/* Sets the mount's first graph. The thread then follows a volfile that has come since the first volfile. */
void mount_publish_graph(struct mount *m, struct graph *g);
/* Drains and frees the graph. */
void mount_end_graph(struct graph *g);
/* Keeps the text of the graph's volfile for a newer program. Takes the text over. */
void mount_keep_text(struct mount *m, char *text, size_t bytes);
/* Copies *o and the mount point. NULL: no memory. Any thread. */
struct mount *mount_new(const struct mount_options *o, const char *mountpoint);
/* Starts the mount's thread. Returns 0 or -errno; after an error the caller frees the mount. Any thread. */
int mount_begin(struct mount *m);
/* Frees a mount that is in no list. Any thread. */
void mount_free(struct mount *m);

/* ---- mount-follow.c: the mount's thread ------------------------------------------------------ */

/* Takes over the newest volfile, with new options, or with other bricks or layers. */
void mount_follow(struct mount *m);
/* Frees the old graphs without open files. */
void mount_tidy(struct mount *m);

/* ---- mount-saved.c: the mount's thread ------------------------------------------------------- */

/* Returns the volfile of the earlier program's graph; NULL with *error. The servers are asked meanwhile; if
 * they have a newer one, the mount follows. */
char *mount_saved_text(struct mount *m, size_t *len, char *error, size_t size);
/* Takes the mount over from the earlier program. */
void mount_take_over(struct mount *m);
/* Frees the state that the earlier program has saved, if there is any. */
void mount_free_saved(struct mount *m);

#endif
