/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <stddef.h>

#include "cli/kiln.h"

const struct verb verbs[] = {
    {"create",
     "NAME [replica N [arbiter 1] | disperse N [redundancy R]] [sets N | [HOST:]PATH...] [size SIZE]",
     "Create a volume of these folders",
     "Each folder must be empty, or missing in an existing folder; kilnd then creates it.\n"
     "replica N: each group of N folders, in this order, holds the same files.\n"
     "replica 3 arbiter 1: the third folder of each group holds names and counters only.\n"
     "disperse N redundancy R: files are dispersed over each group of N folders, of which any R may be lost\n"
     "(disperse-data K redundancy R is the same with N = K + R; R is a third of N unless given).\n"
     "HOST is a name of this machine. Without HOST clients use the address at which they reached kilnd.\n"
     "With a store (kilnd --store) HOST is a host of kiln host list; without HOST the folder is this "
     "host's.\n"
     "size: the limit of the volume, as for kiln volume limit.\n"
     "Without PATH, with a store: kilnd chooses hosts and folders below their brick roots, by free space, "
     "for N\n"
     "sets (1); size is then the free space that each brick must have.",
     1, -1, volume_create, false},
    {"start", "NAME [force]", "Serve a volume, now and after each start of kilnd",
     "force: start although some bricks cannot start; on a started volume, retry the bricks that are "
     "offline.",
     1, 2, volume_start, false},
    {"stop", "NAME", "Stop serving a volume", NULL, 1, 1, volume_stop, false},
    {"delete", "NAME", "Delete the definition of a stopped volume",
     "The folders of the bricks keep their files.", 1, 1, volume_delete, false},
    {"info", "[NAME]", "Show type, bricks and options of volumes", NULL, 0, 1, volume_info, false},
    {"list", "", "List the names of all volumes", NULL, 0, 0, volume_list, false},
    {"status", "[NAME]", "Show which bricks are online, and their port", NULL, 0, 1, volume_status, false},
    {"heal", "NAME [full | info [summary|split-brain] | statistics | split-brain RULE]",
     "Start a heal, or show pending and finished heals",
     "The self-heal daemon checks the bricks every ten minutes and when a brick returns. heal without a "
     "word\n"
     "makes it heal the entries of the bricks' indices now. full: compare every file of the volume.\n"
     "info: show pending entries. statistics: show runs of the self-heal daemon and their results.\n"
     "split-brain: keep one copy and heal the others from it. RULE: bigger-file FILE, latest-mtime FILE, or\n"
     "source-brick HOST:BRICK [FILE]. FILE: a path from the volume's root, or gfid:UUID.",
     1, 5, volume_heal, false},
    {"check", "NAME", "Check the bricks of a stopped volume",
     "Each file and folder must have a gfid, and a gfid handle that leads to it. The check only reads.\n"
     "The exit status is 1 if a brick has a fault.",
     1, 1, volume_check, false},
    {"profile", "NAME [start|stop|info|slow]", "Show calls and latencies of each brick",
     "kilnd always collects the figures. start and stop only set diagnostics.latency-measurement and\n"
     "diagnostics.count-fop-hits, for compatibility with gluster. Without a word, and with info: the "
     "figures\n"
     "since the start of the bricks. slow: the slowest calls of each brick in the last ten minutes, and the\n"
     "time that each spent with the worker (reading, or behind calls that arrived with it), in the queue of\n"
     "the brick, behind locks, at the disk (and everything else), and until its reply was sent.",
     1, 2, volume_profile, false},
    {"set", "NAME KEY VALUE [KEY VALUE]... [--force]", "Set options; mounted clients apply them",
     "kilnd sets all of them, or none. kiln volume get NAME all shows the keys. tls on stands for server.ssl "
     "on\n"
     "client.ssl on: encrypt the volume; its bricks start anew. A list of auth.allow or auth.reject that\n"
     "would disconnect clients needs --force. NAME all: options of kilnd's memory pools, as kiln pools set.",
     3, -1, volume_set, false},
    {"get", "NAME KEY|all", "Show the effective value of an option", NULL, 2, 2, volume_get, false},
    {"reset", "NAME [KEY|all]", "Return options to their defaults", NULL, 1, 2, volume_reset, false},
    {"limit", "NAME SIZE|none", "Limit the bytes that all files of a volume use",
     "SIZE is a number of bytes, or has a unit: 500M, 10G, 2T. Writes beyond the limit fail with EDQUOT.\n"
     "df on a mount and kiln volume status show limit and usage. Existing files count too.",
     2, 2, cli_limit, false},
    {"quota", "NAME [list | set PATH SIZE | remove PATH]", "Manage limits of folders",
     "PATH starts at the root of the volume. Files in the folder count for the folder only, not for the "
     "volume\n"
     "or an outer folder that has a limit. remove removes the limit; kilnd keeps counting the usage.",
     1, 4, volume_quota, false},
    {"mount", "NAME DIR [-o OPTIONS]", "Mount a volume on this machine", NULL, 2, 4, mount_volume, true},
    {"umount", "DIR", "Unmount a volume", NULL, 1, 1, umount_volume, true},
    {"clear-locks", "NAME PATH kind blocked|granted|all inode|entry|posix [RANGE]", "Remove locks of a file",
     "PATH starts at the root of the volume. RANGE is WHENCE,START-LENGTH, or for entry locks a name.\n"
     "Waiting requests fail; the holder of a removed lock gets no notice.",
     5, 6, volume_clear_locks, false},
    {"statedump", "", "Make kilnd write a statedump", NULL, 0, 0, statedump, true},
    {"add-brick", "NAME [replica N [arbiter 1]] [HOST:]PATH...", "Add bricks to a volume",
     "Folders as for create. They form additional sets or, with replica N, additional copies of each set; "
     "the\n"
     "first copy goes to the first set. New folders use new sets at once; existing folders after a "
     "rebalance.\n"
     "The self-heal daemon fills new copies.",
     2, -1, cli_add_brick, false},
    {"rebalance", "NAME [fix-layout] start|status|stop", "Spread files over all bricks",
     "After add-brick: gives each folder a layout over all sets, and moves files to the set of their name.\n"
     "fix-layout: only the layouts, so that new files use all sets. Mounts may read and write meanwhile.\n"
     "kiln volume set NAME cluster.rebal-throttle lazy|normal|aggressive: 1, 8 or 32 files at a time.",
     2, 4, volume_rebalance, false},
    {"remove-brick", "NAME BRICK... start|status|stop|commit | NAME [replica N] BRICK... force",
     "Remove bricks",
     "start: move the files of whole sets to the other sets. commit: remove the sets after that. stop: keep "
     "them.\n"
     "force: remove sets without files or, with replica N, copies of each set while the remaining copies "
     "are\n"
     "complete. The folders stay.",
     2, -1, cli_remove_brick, false},
    {"replace-brick", "NAME BRICK [HOST:]PATH [commit force]", "Replace a brick by a new folder",
     "The volume must be replicated and started. The self-heal daemon fills the new brick from its set.", 3,
     5, volume_replace_brick, false},
    {"reset-brick", "NAME BRICK start | NAME BRICK BRICK commit [force]",
     "Replace the disk of a brick and keep its path",
     "start: take the brick offline. commit: make a brick of its folder, which must be empty or missing; "
     "the\n"
     "self-heal daemon fills it from the other bricks of its set.",
     3, 5, volume_reset_brick, false},
    {"bench", "NAME [SECONDS]", "Measure a volume on this machine, and a plain folder for comparison",
     "Small files, and blocks of 4 KiB and 128 KiB, one call at a time, each for SECONDS (2). kiln mounts "
     "the\n"
     "volume for this, with kiln-mount if it is installed, and compares with a folder beside the first "
     "brick.\n"
     "Each of the two needs up to 512 MiB, which kiln frees again.",
     1, 2, bench, true},
    {"top", "[--once]", "Show the load of bricks, operations and clients",
     "Refreshes every second. Keys: v, b, f, c, w, n, m select volumes, bricks, operations, clients, "
     "slowest\n"
     "calls, missing features, hosts of a store (a host that does not answer is a row that says so); / shows "
     "only\n"
     "rows with a text; s sorts by the next column, r reverses the order; ? shows help, q quits.\n"
     "--once or --json: print the figures of one second and exit.",
     0, -1, top, true},
    {"pools", "[mount DIR] [set OPTION VALUE | trim [soft|hard]]",
     "Show memory pools, change their options, or return memory now",
     "The pools of kilnd, or with mount DIR those of the kiln-mount that serves DIR. Options: sweep (period "
     "of\n"
     "the sweeper, as 10s; memory that is idle for two periods returns to the system), release drop|keep\n"
     "(empty spans), cap (bound of cached bytes, as 64M), stacks age|drop|keep (coroutine stacks). They "
     "last\n"
     "until the process ends; --pool-option sets them at its start. trim soft: return all cached objects;\n"
     "hard: also free pages between objects in use, and free memory of malloc.",
     0, 6, pools, true},
    {"upgrade", "[PROGRAM | --rolling [PROGRAM] | mounts [PID]...]",
     "Run a newer kilnd or kiln-mount in place of the running one, without an interruption",
     "kilnd runs PROGRAM, or the file that it was started from, which a package may have replaced. Process "
     "id,\n"
     "connections, open files and locks stay; clients wait for a moment. Connections with TLS are made "
     "anew.\n"
     "If the new program does not start, the running one serves on.\n"
     "--rolling: each host of a store in turn, after all bricks are online and healed; see kiln job list.\n"
     "mounts: each kiln-mount of this machine, or those with these process ids, runs the present file at\n"
     "its program's path. Mount points, open files and locks stay.",
     0, -1, upgrade, true},
    {"tls", "init [NAME [ADDRESS]...] | cert NAME FOLDER [ADDRESS]... | take FILE",
     "Make or install certificates for encrypted volumes and for hosts",
     "init: make an authority in /etc/kiln/tls, and this machine's certificate of it where GlusterFS and "
     "Kiln\n"
     "look for it (/usr/lib/ssl, with links in /etc/ssl); NAME is its name, by default the host's. cert:\n"
     "make the certificate of another host in FOLDER; copy its three files to /usr/lib/ssl of that host, on\n"
     "Debian 13 to /etc/ssl. Then for each volume: kiln volume set VOLUME tls on. take: install the "
     "certificate\n"
     "of a file of kiln host add. ADDRESS: more names and addresses of the host, for its etcd.",
     1, -1, tls, true},
    {"host", "list | add HOST ADDRESS [FILE] | drain HOST | remove HOST",
     "Show, add, drain or remove hosts that share a store",
     "A host registers itself when its kilnd starts with --store and --host. add: issue the host's "
     "certificate, by\n"
     "the authority of kiln tls init of this machine, into FILE (HOST.pem); from the first add on, hosts "
     "prove\n"
     "themselves by such certificates, and others are refused. drain: replace its bricks by bricks on other "
     "hosts.\n"
     "remove: the host must be down and have no brick.",
     1, 4, host, true},
    {"job", "list | stop JOB", "Show or stop long work over several hosts", NULL, 1, 2, job, true},
    {"store", "move etcd://HOST:PORT HOST [PASSWORD-FILE] | move DIR | export [FILE] | import FILE",
     "Move the volumes of this machine to an etcd and back, or write them to a file",
     "move: the volumes of this kilnd go to an etcd, in which this machine becomes host HOST, or from an "
     "etcd of\n"
     "this host alone to the state folder DIR. kilnd compares all volumes, and is then to be started anew.\n"
     "export, import: write the definitions of all volumes to a file, or take them over.\n"
     "The file has the passwords of the volumes. import: volumes that kilnd does not have are stopped "
     "volumes of\n"
     "it afterwards; their bricks must exist.",
     1, 4, store, true},
    {"import", "glusterd [DIR]", "Take over the volumes of a stock glusterd",
     "glusterd must be stopped, with its bricks, on all hosts. DIR (/var/lib/glusterd) is only read. The "
     "volumes\n"
     "keep bricks, ids, passwords and options; options that Kiln does not have are listed.",
     1, 2, import, true},
    {"export", "glusterd DIR [HOST]", "Write the volumes for a stock glusterd, and show the way back to it",
     "DIR is made. glusterd takes the files with ids, passwords, bricks and options; kiln prints the steps.\n"
     "HOST: the name of this machine, for bricks without a host.",
     2, 3, export, true},
    {"explain", "FILE", "Explain a statedump: waiting calls, locks, use of memory",
     "FILE is a file that kiln statedump wrote, or an answer of /statedump.json; - is standard input.\n"
     "The verb needs no kilnd.",
     1, 1, explain, true},
    {"completion", "bash|zsh", "Print a script for command completion in the shell",
     "For bash: kiln completion bash >/etc/bash_completion.d/kiln", 1, 1, completion, true},
    {0},
};
