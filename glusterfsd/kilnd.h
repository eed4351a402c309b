/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* What the parts of kilnd's main program share. */
#ifndef KILN_GLUSTERFSD_KILND_H
#define KILN_GLUSTERFSD_KILND_H

#include <stdbool.h>
#include <stdint.h>

#define KILND_BRICKS_MAX 4096

struct kilnd_options {
    const char **volfiles;    /* -f, in order */
    const char **brick_names; /* --brick-name, the n-th belongs to the n-th volfile */
    unsigned volfile_count, brick_name_count;
    const char *log_path;     /* -l */
    const char *log_level;    /* -L */
    const char *pid_path;     /* -p */
    const char *port_path;    /* --port-file */
    const char *dump_dir;     /* --statedump-dir */
    const char *socket_path;  /* -S: a unix socket that serves the same programs */
    const char *pools_mode;   /* --pools */
    bool is_foreground;       /* -N */
    int port;                 /* --brick-port; -1: the volfile's or any */
    const char **xlator_options; /* --xlator-option */
    unsigned xlator_option_count;
};

/* Exit codes (management 1.6). */
enum { EXIT_OPTION = 64, EXIT_PORT_TAKEN = 98 };

/* Fills *o from the command line. Does not return on --help, --version or a bad option (exit 64). */
void options_parse(struct kilnd_options *o, int argc, char **argv);

/* daemon.c. The parent waits here until daemon_ready() and exits with its status. 0 in the child; -errno. */
int daemonise(void);
/* Tells the waiting parent how the start went; `message` is shown on its stderr. Harmless in the foreground. */
void daemon_ready(int exit_status, const char *message);
/* Writes and locks the pid file. 0, -EAGAIN (another daemon holds it), -errno. */
int pidfile_write(const char *path);
void pidfile_remove(void);

/* failing.c: bricks whose storage fails. Called by the main thread.
 * From now on failures of these graphs are acted on; the array's order is kept. Workers must be running. */
struct graph;
void failing_watch(struct graph *const *graphs, unsigned count);
/* After SIGALRM: detaches what is due. False when no brick is left. */
bool failing_run(void);
/* The n-th graph has been detached and freed. */
bool failing_is_gone(unsigned i);
/* No more detaching; waits for those under way. True if one hangs, so that the process can only be ended hard. */
bool failing_end(void);

/* statedump.c: DIR/NAME.PID.dump.SECONDS, complete when it has that name. 0 or -errno (logged). */
int statedump_write(const char *dir, const char *name);

#endif
