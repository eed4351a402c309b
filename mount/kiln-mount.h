/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* What the parts of kiln-mount share. */
#ifndef KILN_MOUNT_KILN_MOUNT_H
#define KILN_MOUNT_KILN_MOUNT_H

#include <stdbool.h>
#include <stddef.h>

struct graph;

#define MOUNT_XLATOR_OPTIONS_MAX 64

struct mount_options {
    const char *volfile;    /* -f */
    const char *mountpoint; /* as given; see kiln-mount.c */
    const char *source;     /* --fs-name; NULL: the volfile's path */
    const char *log_path;   /* -l */
    const char *log_level;  /* -L */
    const char *pid_path;   /* -p */
    const char *dump_dir;   /* --statedump-dir */
    const char *pools_mode; /* --pools */
    const char *attr_timeout, *entry_timeout, *negative_timeout, *direct_io; /* NULL: mount/fuse's default */
    bool is_foreground, acl, is_read_only;
    const char *xlator_options[MOUNT_XLATOR_OPTIONS_MAX]; /* PATTERN.KEY=VALUE */
    unsigned xlator_option_count;
};

enum { EXIT_OPTION = 64 };

/* Fills *o from the command line. Does not return on --help, --version or a bad option (exit 64). */
void mount_options_parse(struct mount_options *o, int argc, char **argv);

/* volume.c: the graph of the volfile with the mount point on top, built, not started. NULL: *error says why.
 */
struct graph *volume_new(const struct mount_options *o, const char *mountpoint, char *error,
                         size_t error_size);

#endif
