/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* kiln-mount's command line. Names are those of the stock client; what is not built is refused by name. */
#include <config.h>

#include <argp.h>
#include <stdlib.h>
#include <string.h>

#include "mount/kiln-mount.h"

const char *argp_program_version = PACKAGE_STRING;

enum {
    KEY_ATTR_TIMEOUT = 0x100,
    KEY_ENTRY_TIMEOUT,
    KEY_NEGATIVE_TIMEOUT,
    KEY_DIRECT_IO,
    KEY_ACL,
    KEY_READ_ONLY,
    KEY_FS_NAME,
    KEY_DUMP_DIR,
    KEY_POOLS,
    KEY_XLATOR,
    KEY_PROCESS_NAME,
    KEY_NOT_BUILT,
};

#define NOT_BUILT(long_name) {long_name, KEY_NOT_BUILT, "VALUE", OPTION_ARG_OPTIONAL | OPTION_HIDDEN, NULL, 0}

static const struct argp_option table[] = {
    {"volfile", 'f', "FILE", 0, "the volume, as its client volfile describes it (must be given)", 0},
    {"foreground", 'N', NULL, 0, "do not go into the background", 0},
    {"no-daemon", 0, NULL, OPTION_ALIAS, NULL, 0},
    {"log-file", 'l', "FILE", 0,
     "default: /var/log/glusterfs/MOUNTPOINT.log, standard error in the foreground", 0},
    {"log-level", 'L', "LEVEL", 0, "of the log: TRACE, DEBUG, INFO (default), WARNING, ERROR, CRITICAL, NONE",
     0},
    {"pid-file", 'p', "FILE", 0, "written and locked while the mount is there", 0},
    {"attribute-timeout", KEY_ATTR_TIMEOUT, "SECONDS", 0, "for which the kernel believes attributes (1)", 0},
    {"entry-timeout", KEY_ENTRY_TIMEOUT, "SECONDS", 0, "for which it believes names (1)", 0},
    {"negative-timeout", KEY_NEGATIVE_TIMEOUT, "SECONDS", 0,
     "for which it believes that a name is not there (0)", 0},
    {"direct-io-mode", KEY_DIRECT_IO, "MODE", 0,
     "enable: reads and writes pass the page cache by; disable, auto: not", 0},
    {"acl", KEY_ACL, NULL, 0, "POSIX ACLs", 0},
    {"read-only", KEY_READ_ONLY, NULL, 0, "changes are refused", 0},
    {"fs-name", KEY_FS_NAME, "NAME", 0, "the source that the mount table shows (the volfile's path)", 0},
    {"statedump-dir", KEY_DUMP_DIR, "DIR", 0, "where SIGUSR1 writes (/var/run/gluster)", 0},
    {"pools", KEY_POOLS, "MODE", 0, "memory pools: on, off, poison or trace:K", 0},
    {"xlator-option", KEY_XLATOR, "PATTERN.KEY=VALUE", 0, "over what the volfile says", 0},
    {"process-name", KEY_PROCESS_NAME, "fuse", OPTION_HIDDEN, NULL, 0},
    NOT_BUILT("volfile-server"),
    NOT_BUILT("volfile-id"),
    NOT_BUILT("subdir-mount"),
    NOT_BUILT("shared"),
    NOT_BUILT("kernel-writeback-cache"),
    NOT_BUILT("aux-gfid-mount"),
    NOT_BUILT("worm"),
    NOT_BUILT("selinux"),
    NOT_BUILT("capability"),
    NOT_BUILT("resolve-gids"),
    NOT_BUILT("enable-ino32"),
    NOT_BUILT("lru-limit"),
    NOT_BUILT("reader-thread-count"),
    {"volfile-server-short", 's', "HOST", OPTION_HIDDEN, NULL, 0},
    {0},
};

/* The name of the option that has just been read. */
static const char *
name_given(const struct argp_state *state)
{
    const char *word = state->argv[state->next - 1];

    return word[0] == '-' || state->next < 2 ? word : state->argv[state->next - 2];
}

static void
add_xlator_option(struct mount_options *o, const char *text, struct argp_state *state)
{
    const char *dot = strchr(text, '.'), *equals = dot ? strchr(dot, '=') : NULL;

    if (!equals || !equals[1])
        argp_error(state, "--xlator-option %s: expected PATTERN.KEY=VALUE", text);
    if (o->xlator_option_count == MOUNT_XLATOR_OPTIONS_MAX)
        argp_error(state, "--xlator-option is given more than %d times", MOUNT_XLATOR_OPTIONS_MAX);
    o->xlator_options[o->xlator_option_count++] = text;
}

static const char **
text_option(struct mount_options *o, int key)
{
    switch (key) {
    case 'f': return &o->volfile;
    case 'l': return &o->log_path;
    case 'L': return &o->log_level;
    case 'p': return &o->pid_path;
    case KEY_ATTR_TIMEOUT: return &o->attr_timeout;
    case KEY_ENTRY_TIMEOUT: return &o->entry_timeout;
    case KEY_NEGATIVE_TIMEOUT: return &o->negative_timeout;
    case KEY_DIRECT_IO: return &o->direct_io;
    case KEY_FS_NAME: return &o->source;
    case KEY_DUMP_DIR: return &o->dump_dir;
    case KEY_POOLS: return &o->pools_mode;
    default: return NULL;
    }
}

static error_t
take(int key, char *arg, struct argp_state *state)
{
    struct mount_options *o = state->input;
    const char **text = text_option(o, key);

    if (text) {
        *text = arg;
        return 0;
    }
    switch (key) {
    case 'N':
        o->is_foreground = true;
        break;
    case KEY_ACL:
        o->acl = true;
        break;
    case KEY_READ_ONLY:
        o->is_read_only = true;
        break;
    case KEY_XLATOR:
        add_xlator_option(o, arg, state);
        break;
    case KEY_PROCESS_NAME: /* stock's helper gives it */
        break;
    case 's':
    case KEY_NOT_BUILT:
        argp_error(state, "%s is not built yet", name_given(state));
        break;
    case ARGP_KEY_ARG:
        if (o->mountpoint)
            argp_error(state, "unexpected argument '%s': one mount point", arg);
        o->mountpoint = arg;
        break;
    case ARGP_KEY_END:
        if (!o->volfile)
            argp_error(state, "-f VOLFILE is missing");
        if (!o->mountpoint)
            argp_error(state, "the mount point is missing");
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

void
mount_options_parse(struct mount_options *o, int argc, char **argv)
{
    static const struct argp argp = {
        .options = table,
        .parser = take,
        .args_doc = "MOUNTPOINT",
        .doc = "Mounts the GlusterFS volume that the volfile describes."
               "\vIn the background when the mount is ready. Signals: TERM and INT unmount and exit 0; HUP "
               "reopens the log; USR1 writes a "
               "statedump.\nExit status: 0; 1 it could not be mounted; 64 a bad option.",
    };

    *o = (struct mount_options){0};
    argp_err_exit_status = EXIT_OPTION;
    argp_parse(&argp, argc, argv, 0, NULL, o);
}
