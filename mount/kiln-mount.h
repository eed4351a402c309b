/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Declarations that the parts of kiln-mount share: the options of a mount, and the functions that make a
 * graph from a volfile and these options. */
#ifndef KILN_MOUNT_KILN_MOUNT_H
#define KILN_MOUNT_KILN_MOUNT_H

#include <stdbool.h>
#include <stddef.h>

#include "daemon/sandbox.h"
#include "mount/spec.h"

struct graph;
struct volfile;

#define MOUNT_XLATOR_OPTIONS_MAX 64
#define MOUNT_KERNEL_OPTIONS_MAX 16

/* The texts belong to the command line, to a request's packet (shared.h), or to `owned`. */
struct mount_options {
    char *owned[4];
    const char *volfile; /* -f; NULL: from servers */
    const char *servers[SPEC_SERVERS_MAX]; /* -s, in this order */
    unsigned server_count;
    const char *volume;     /* --volfile-id, as it is sent */
    const char *top;        /* --volume-name; NULL: any */
    const char *subdir;     /* --subdir-mount */
    const char *mountpoint; /* as given; see kiln-mount.c */
    const char *source;     /* --fs-name; NULL: the volfile's path, or SERVER:VOLUME */
    const char *log_path;   /* -l */
    const char *log_level;  /* -L */
    const char *pid_path;   /* -p */
    const char *dump_dir;   /* --statedump-dir */
    const char *pools_mode; /* --pools */
    /* NULL: mount/fuse's default */
    const char *attr_timeout, *entry_timeout, *negative_timeout, *hard, *direct_io, *writes_back, *client_pid;
    const char *compound; /* NULL: the default of protocol/client */
    const char *kernel_options[MOUNT_KERNEL_OPTIONS_MAX]; /* --fuse-mountopts */
    unsigned kernel_option_count;
    unsigned server_port;
    const char *inside; /* --inside: management socket of the kilnd that mounts */
    bool is_foreground, acl, is_read_only;
    bool is_upgrade_check; /* --upgrade-check: only names the format of saved state */
    bool is_inside; /* fops to bricks of the mount's own process go as calls */
    bool is_secure_given, is_secure; /* --secure-mgmt; of the process */
    bool is_sandbox_given; /* --sandbox; of the process */
    enum sandbox_mode sandbox;
    bool is_shared;   /* --shared, and mount.kiln by default: join or become the shared process */
    bool is_service;  /* --serve: become the shared process, without a mount on the command line */
    bool is_restored; /* replaces the dead mount of a killed process; waits for the volfile without limit */
    const char *xlator_options[MOUNT_XLATOR_OPTIONS_MAX]; /* PATTERN.KEY=VALUE */
    unsigned xlator_option_count;
};

enum { EXIT_OPTION = 64, EXIT_MOUNTED = 32 };

/* The message for a mount point with a live mount: a printf format that takes the mount point twice. */
#define MOUNTED_ALREADY "%s: a volume is mounted there already; try: umount %s"

/* Fills *o from the command line. Does not return on --help, --version or a bad option. */
void mount_options_parse(struct mount_options *o, int argc, char **argv, int bad_option_status);
void mount_options_free(struct mount_options *o);

/* volume.c: returns the volfile with mount/fuse on top and all options set. NULL: *error says why. */
struct volfile *volume_parse(const struct mount_options *o, const char *mountpoint, const char *text,
                             size_t len, char *error, size_t error_size);
/* Takes such a volfile over. Returns a graph that is built and not started. NULL: *error says why. */
struct graph *mount_graph_new(struct volfile *v, char *error, size_t error_size);
/* Like mount_graph_new(), for a mount point that another graph serves until fuse_switch(). */
struct graph *mount_graph_new_next(struct volfile *v, char *error, size_t error_size);

#endif
