/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* volume: what a volume is: its name, its bricks in order, its options. A plain value: nothing here touches a
 * disk, a brick or a lock. One that others can see is never changed; a changed copy takes its place.
 *
 * Its text is JSON; `doc/kiln.8` and the state directory (state-dir.h) show it:
 *
 *     {"format": 2, "name": "demo", "id": "5f0c...", "status": "started", "replica": 2, "arbiter": 0,
 *      "username": "...", "password": "...",
 *      "bricks": [{"host": "", "path": "/srv/b1", "made": true, "id": 0}, ...], "next_brick": 2,
 *      "coming": [as bricks], "options": {"network.ping-timeout": "10"}}
 */
#ifndef KILN_VOLUMES_VOLUME_H
#define KILN_VOLUMES_VOLUME_H

#include <jansson.h>
#include <stdbool.h>

#include "base/gfid.h"
#include "volumes/problem.h"

#define VOLUME_FORMAT 2 /* 1, without ids and what is coming, is read, too */
#define VOLUME_NAME_MAX 128
#define VOLUME_BRICKS_MAX 1024
#define VOLUME_BRICK_ID_MAX 1000000
#define VOLUME_BRICK_PATH_MAX 1024
#define VOLUME_OPTIONS_MAX 1024
#define VOLUME_VALUE_MAX 8192

enum volume_status {
    VOLUME_CREATING, /* its bricks are being made: undone at the next start */
    VOLUME_CREATED,  /* never started */
    VOLUME_STARTED,
    VOLUME_STOPPED,
};

struct volume_brick {
    char *host; /* as given; "": this machine, by whatever address a client has asked */
    char *path; /* absolute, normal */
    bool made;  /* the folder was not there before it became a brick */
    /* Its number in the names of clients and of pending xattrs. It keeps it when others come or go before it
     * in the list, and what takes its place gets it. */
    unsigned id;
};

struct volume_option {
    char *key, *value;
};

struct volume {
    char *name;
    struct gfid id;
    enum volume_status status;
    unsigned replica; /* 1: files are not replicated */
    bool has_arbiter; /* the last brick of each replica set holds no data */
    struct volume_brick *bricks;
    unsigned brick_count; /* a multiple of replica */
    unsigned next_id;     /* above the id of each brick there has been */
    struct volume_brick *coming; /* folders that are being made into bricks: undone at the next start */
    unsigned coming_count;
    struct volume_option *options; /* those set, by key in order */
    unsigned option_count;
    char username[GFID_TEXT_SIZE], password[GFID_TEXT_SIZE]; /* what the daemon's own clients show */
};

/* All copied. NULL: no memory. A fresh id, username and password. */
struct volume *volume_new(const char *name, unsigned replica, bool has_arbiter);
struct volume *volume_copy(const struct volume *v);
void volume_free(struct volume *v);
/* 0 or -ENOMEM. The brick gets an id that no other has had. */
int volume_add_brick(struct volume *v, const char *host, const char *path, bool made);
/* With all its fields; before the brick at `place`. */
int volume_insert_brick(struct volume *v, unsigned place, const struct volume_brick *b);
int volume_add_coming(struct volume *v, const struct volume_brick *b);
void volume_drop_coming(struct volume *v);
void volume_remove_brick(struct volume *v, unsigned place);
/* Where it is; -1: nowhere. */
int volume_find_brick(const struct volume *v, const char *path);
int volume_set_option(struct volume *v, const char *key, const char *value);
/* False: it was not set. */
bool volume_unset_option(struct volume *v, const char *key);
/* What is set; NULL: nothing. Lent. */
const char *volume_option_of(const struct volume *v, const char *key);

static inline bool
volume_is_arbiter(const struct volume *v, unsigned brick)
{
    return v->has_arbiter && brick % v->replica == v->replica - 1;
}

/* "Created", "Started", "Stopped". */
const char *volume_status_text(enum volume_status status);
/* "Distribute", "Replicate", "Distributed-Replicate". */
const char *volume_type_text(const struct volume *v);

/* Letters, digits, '-' and '_'. 0 or -EINVAL. */
int volume_check_name(const char *name, struct problem *why);
/* Is the name a word of the volfile's grammar? No client can parse the volfile of such a volume. */
bool volume_name_is_keyword(const char *name);
/* The same and no keyword: the name of a volume that is to be made. 0 or -EINVAL. */
int volume_check_new_name(const char *name, struct problem *why);
/* replica, arbiter and the number of bricks go together. 0 or -EINVAL. */
int volume_check_shape(const struct volume *v, struct problem *why);
/* A host's name or address, or "". 0 or -EINVAL. */
int volume_check_host(const char *host, struct problem *why);
/* A brick's path as the state holds it: absolute, without "//", "." and "..", of bytes that a client can ask
 * for. 0 with the normal form in `out` (VOLUME_BRICK_PATH_MAX + 1 bytes), or -EINVAL. */
int volume_check_path(const char *path, char *out, struct problem *why);

/* A new reference; NULL: no memory. */
json_t *volume_to_json(const struct volume *v);
/* Every field is checked. NULL with *why: -EINVAL what is wrong with the text, -EPROTO a newer format,
 * -ENOMEM.
 */
struct volume *volume_from_json(const json_t *json, struct problem *why);

#endif
