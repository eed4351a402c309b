/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <stddef.h>

#include "cli/kiln.h"

const struct verb verbs[] = {
    {"create", "NAME [replica N [arbiter 1]] [HOST:]PATH... [size SIZE]", "Make a volume of these folders",
     "Each folder must be empty, or missing in a folder that is there; it is made then.\n"
     "replica N: each N folders, in this order, hold the same files. replica 3 arbiter 1: the third of each "
     "three\n"
     "holds names and counters only. HOST is a name of this machine; without it clients use the address at "
     "which\n"
     "they have found kilnd. size: the limit of the volume, as for kiln limit.",
     2, -1, volume_create},
    {"start", "NAME [force]", "Serve a volume, now and after each start of kilnd",
     "force: go on without bricks that do not start; of a volume that is started, try those again.", 1, 2,
     volume_start},
    {"stop", "NAME", "Serve it no more", NULL, 1, 1, volume_stop},
    {"delete", "NAME", "Forget a volume that is stopped",
     "The folders of its bricks stay as they are, with the files.", 1, 1, volume_delete},
    {"info", "[NAME]", "What volumes are: bricks, options", NULL, 0, 1, volume_info},
    {"list", "", "The names of the volumes", NULL, 0, 0, volume_list},
    {"status", "[NAME]", "Which bricks are served, and where", NULL, 0, 1, volume_status},
    {"heal", "NAME [full | info [summary|split-brain] | statistics]",
     "Heal what bricks have missed, or show it",
     "The self-heal daemon looks for itself every ten minutes, and when a brick comes. Without a word: at\n"
     "once, what the bricks know that others have missed. full: every file of the volume is compared.\n"
     "info: what bricks have missed. statistics: when the daemon has looked, and what it has done.",
     1, 3, volume_heal},
    {"check", "NAME", "Whether the bricks of a stopped volume are whole",
     "Each object must have a gfid, and a handle that leads to it. Reads only. The exit status is 1 when one "
     "has not.",
     1, 1, volume_check},
    {"profile", "NAME [start|stop|info|slow]", "What bricks have done, and how long it took",
     "Figures are always kept: start and stop set diagnostics.latency-measurement and "
     "diagnostics.count-fop-hits, for "
     "gluster's\nwords and for clients. Without a word, and with info: the figures since the bricks were "
     "attached.\n"
     "slow: the slowest calls of each brick in the last ten minutes, and what their time went to: in the\n"
     "worker, being read or behind others that came with it, in the brick's queue, behind locks, in the\n"
     "disk (and all else), and until the reply had left.",
     1, 2, volume_profile},
    {"set", "NAME KEY VALUE [KEY VALUE]...", "Set options; mounted clients take them over",
     "All of them are set, or none. kiln volume get NAME all shows the keys.", 3, -1, volume_set},
    {"get", "NAME KEY|all", "The value of an option that counts", NULL, 2, 2, volume_get},
    {"reset", "NAME [KEY|all]", "Take options back to their defaults", NULL, 1, 2, volume_reset},
    {"limit", "NAME SIZE|none", "Limit what all files of a volume may use",
     "SIZE is bytes, or as 500M, 10G, 2T. Writes beyond it fail with EDQUOT; df on a mount shows limit and "
     "usage.\n"
     "Files of before count, too. kiln status shows both.",
     2, 2, volume_limit},
    {"quota", "NAME [list | set PATH SIZE | remove PATH]", "Limits of folders",
     "PATH is from the volume's root. Files in the folder count for the folder alone, and not for the "
     "volume or\n"
     "the folder around it. remove takes the limit away; the usage is counted on.",
     1, 4, volume_quota},
    {"mount", "NAME DIR [-o OPTIONS]", "Mount a volume here", NULL, 2, 4, mount_volume},
    {"umount", "DIR", "Unmount it", NULL, 1, 1, umount_volume},
    {"clear-locks", "NAME PATH kind blocked|granted|all inode|entry|posix [RANGE]",
     "Take locks of a file away",
     "PATH is from the volume's root. RANGE is WHENCE,START-LENGTH, of entry locks a name. Who waited is "
     "refused; who "
     "held one\ndoes not hear of it.",
     5, 6, volume_clear_locks},
    {"statedump", "", "Have kilnd write down what it holds", NULL, 0, 0, statedump},
    {"add-brick", "NAME [replica N [arbiter 1]] [HOST:]PATH...", "Give a volume more bricks",
     "Folders as for create: further sets, or with replica N more copies of each file, the first for the\n"
     "first set. New folders use new sets at once, old ones keep their places. New copies are healed.",
     2, -1, volume_add_brick},
    {"remove-brick", "NAME [replica N] BRICK...", "Take bricks from a volume, if no data would have to move",
     "Sets without files, or with replica N a copy of each set, when the copies are equal. The folders stay.",
     2, -1, volume_remove_brick},
    {"replace-brick", "NAME BRICK [HOST:]PATH [commit force]",
     "Have another folder take the place of a brick",
     "Of a replicated volume that is started. The new brick is healed from the others of its set.", 3, 5,
     volume_replace_brick},
    {"reset-brick", "NAME BRICK start | NAME BRICK BRICK commit [force]", "Use a brick's path for a new disk",
     "start: the brick is served no more. commit: its folder, which is empty or missing now, is a new\n"
     "brick and is healed from the others of its set.",
     3, 5, volume_reset_brick},
    {"bench", "NAME [SECONDS]", "What a volume does here, beside a bare folder",
     "Small files, 4 KiB and 128 KiB, one call at a time, each for SECONDS (2): by a mount of its own, with\n"
     "kiln-mount where it is installed, and in a folder beside the first brick. Both need up to\n"
     "512 MiB, which are freed again.",
     1, 2, bench},
    {"top", "[--once]", "What bricks, operations and clients do now",
     "Each second anew, in a terminal; b, f, c, w: bricks, operations, clients, the slowest calls; s, r: "
     "sorted\n"
     "by; q: the end. "
     "--once: the figures of one second, and done; so it is with --json.",
     0, -1, top},
    {"pools", "[mount DIR] [set OPTION VALUE | trim [soft|hard]]",
     "Memory pools: figures, options, and memory given back now",
     "Of kilnd, or with mount DIR of the kiln-mount that serves DIR. Options: sweep (the period N of the "
     "sweeper,\n"
     "as 10s; memory that was idle for 2N is given back), release drop|keep (empty spans), cap (bytes "
     "cached, as "
     "64M),\n"
     "stacks age|drop|keep (those of coroutines). They last until the process ends; --pool-option sets them "
     "at\n"
     "its start. trim soft: all that is cached goes; hard: also free pages between live objects, and what "
     "malloc\n"
     "keeps.",
     0, 6, pools},
    {"explain", "FILE", "What a statedump means: what waits on what, where memory is",
     "FILE is what kiln statedump has had written, or an answer of /statedump.json; - is standard input.\n"
     "kilnd is not asked.",
     1, 1, explain},
    {"completion", "bash|zsh", "Print a script that completes kiln's words",
     "For bash: kiln completion bash >/etc/bash_completion.d/kiln", 1, 1, completion},
    {0},
};
