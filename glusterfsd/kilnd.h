/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The parts of kilnd's main program share these options and functions. */
#ifndef KILN_GLUSTERFSD_KILND_H
#define KILN_GLUSTERFSD_KILND_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/daemon.h"
#include "daemon/sandbox.h"
#include "volumes/cluster/cluster.h"

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
    const char *socket_path;  /* -S: where glusterd asks */
    /* -s: glusterd's host, or its socket if the transport is unix; NULL: volfiles are files */
    const char *server;
    const char *volfile_id;   /* --volfile-id */
    int server_port;          /* --volfile-server-port; 0: the usual one */
    bool server_is_unix;      /* --volfile-server-transport=unix */
    const char *ignored[8];   /* options of stock's that mean nothing here, as given */
    unsigned ignored_count;
    const char *config_path;  /* --config; NULL: the default, if it exists */
    const char *management_path; /* --management-socket */
    const char *state_dir;    /* NULL: another program keeps the volumes */
    struct cluster_options shared; /* --store and its options; location NULL: no store */
    int volfile_port;         /* --port; 0: the usual one */
    unsigned hook_deadline_s; /* --hook-deadline; 0: the usual one */
    const char *metrics_address; /* --metrics-address */
    /* The configuration file names the socket, the address: other kilnds of this machine may have them. */
    bool is_socket_shared, is_address_shared;
    bool is_strict;           /* --strict-features */
    bool takes_mounts;        /* --inside-mounts */
    bool no_compound;         /* --no-compound */
    bool is_secure_given, is_secure; /* --secure-mgmt */
    bool is_check;            /* --check */
    bool is_sandbox_given;    /* --sandbox */
    enum sandbox_mode sandbox;
    bool is_upgrade_check;    /* --upgrade-check */
    bool is_foreground;       /* -N */
    int port;                 /* --brick-port; -1: the volfile's or any */
    const char **xlator_options; /* --xlator-option */
    unsigned xlator_option_count;
};

/* Exit codes (management 1.6). */
enum { EXIT_OPTION = 64, EXIT_PORT_TAKEN = 98 };

/* hand-over.c: runs the stock program in this process's place if this process was started as glusterfsd and
 * not for a brick; returns only if it was started for a brick or by another name. First of all. */
void hand_over_to_stock(char **argv);

/* Fills *o from the command line, then from the configuration file (config.h). Does not return on --help,
 * --version or a bad option (exit 64). */
void options_parse(struct kilnd_options *o, int argc, char **argv);
void options_free(struct kilnd_options *o);

#endif
