/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* volume-options: the keys of `volume set`: what each may be, its default, and which option of which layer it
 * becomes in the volfiles of bricks and clients (spec: management 6.2 to 6.4). One table; a key that tunes
 * several layers has several rows.
 */
#ifndef KILN_VOLUMES_VOLUME_OPTIONS_H
#define KILN_VOLUMES_VOLUME_OPTIONS_H

#include <stdbool.h>

#include "data/option.h"
#include "volumes/problem.h"
#include "volumes/volume.h"

enum volume_side {
    SIDE_BRICK,
    SIDE_CLIENT, /* and the self-heal daemon's layers of the same types */
    SIDE_SELF,   /* no option of a layer: says whether a layer is there, or what this daemon does */
};

struct volume_key {
    const char *key;
    enum volume_side side;
    const char *layer;   /* its type; NULL of SIDE_SELF */
    bool is_written;     /* in the volfile with its default, too */
    struct option check; /* key: the layer's; type, bounds, default */
};

/* The rows, in the order of the table; NULL: no more. */
const struct volume_key *volume_keys(unsigned index);
/* The first row of a key; NULL: there is none. */
const struct volume_key *volume_key_find(const char *key);
/* The key that is spelled most like it, for "did you mean". NULL: none is close. */
const char *volume_key_like(const char *key);

/* May this volume have it? 0, -ENOENT, -EINVAL, with *why. What a brick makes of it is the brick's to say. */
int volume_option_check(const struct volume *v, const char *key, const char *value, struct problem *why);
/* The value that counts: what is set, else the default. "" where there is neither. */
const char *volume_option_value(const struct volume *v, const char *key);
bool volume_option_bool(const struct volume *v, const char *key);
/* The limit of the whole volume in bytes; 0: none. */
uint64_t volume_limit(const struct volume *v);
/* Do its bricks count what folders use? */
bool volume_counts_usage(const struct volume *v);

/* What a new volume has set, as stock's (management 6.5). 0 or -ENOMEM. */
int volume_options_of_new(struct volume *v);

#endif
