/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* kiln mount, kiln umount, and the temporary mounts of other verbs. The command runs kiln-mount, if
 * installed, with the arguments that mount(8) gives to helpers; else the stock client mounts. */
#include <errno.h>
#include <limits.h>
#include <mntent.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/own-program.h"
#include "cli/kiln.h"

#define HELPER "/sbin/mount.glusterfs"

/* Returns the type of the file system that is mounted on this folder; NULL: none. The caller frees the
 * text. */
static char *
type_mounted_at(const char *dir)
{
    char *path = realpath(dir, NULL), *type = NULL;
    FILE *f = path ? setmntent("/proc/self/mounts", "r") : NULL;
    const struct mntent *m;

    while (f && (m = getmntent(f))) {
        if (strcmp(m->mnt_dir, path) != 0)
            continue;
        free(type); /* the last entry of the table is on top */
        type = strdup(m->mnt_type);
    }
    if (f)
        endmntent(f);
    free(path);
    return type;
}

static int
run(const char *program, char *const *argv)
{
    execvp(program, argv);
    return refuse(KILN_REFUSED, NULL, NULL, "%s cannot be run: %s", program, strerror(errno));
}

/* Finds the port where clients ask for the volfile of a started volume, to mount on `dir`; NULL: not known.
 * Returns 0 or an exit status. */
static int
find_port(const char *name, const char *dir, long long *port)
{
    json_t *answer;
    char *path = dir ? realpath(dir, NULL) : NULL; /* NULL for a dead mount point: no brick is there */
    int status = ask("volume-mount", json_pack("{ss ss*}", "name", name, "dir", path), &answer);

    free(path);

    if (!status)
        *port = json_integer_value(json_object_get(answer, "port"));
    json_decref(answer);
    return status;
}

/* Words of mount(8)'s command line. */
struct mount_words {
    char source[256], options[1024];
};

/* Makes the words. `more`: further options, or NULL. Returns false if the options are too long. */
static bool
put_words(struct mount_words *w, const char *name, long long port, const char *more)
{
    snprintf(w->source, sizeof w->source, "localhost:/%s", name);
    return snprintf(w->options, sizeof w->options, "server-port=%lld%s%s", port, more ? "," : "",
                    more ? more : "") < (int)sizeof w->options;
}

/* Names the kilnd that this command asks, for the option `inside`. Returns false if the options are too
 * long. */
static bool
name_inside(struct mount_words *w)
{
    static const char word[] = ",inside";
    char *at = w->options, *next;
    char rest[sizeof w->options];

    while ((at = strstr(at, word))) {
        next = at + sizeof word - 1;
        if (!*next || *next == ',')
            break;
        at = next;
    }
    if (!at)
        return true;
    snprintf(rest, sizeof rest, "%s", next);
    size_t used = (size_t)(next - w->options);
    return snprintf(next, sizeof w->options - used, "=%s%s", kiln_options.socket, rest) <
           (int)(sizeof w->options - used);
}

static bool
has_helper(int *status)
{
    if (access(HELPER, X_OK) == 0)
        return true;
    *status = refuse(KILN_REFUSED, "Kiln's client, or the stock one", "apt install kiln-client",
                     "neither kiln-mount nor " HELPER " is here");
    return false;
}

/* Kiln's client lies in the folder of this program, where both are installed and where both are built. */
static bool
find_own_client(char path[PATH_MAX])
{
    return own_program_beside(path, "kiln-mount") == 0 && access(path, X_OK) == 0;
}

int
mount_volume(const struct verb *v, int argc, char **argv)
{
    struct mount_words words;
    char own[PATH_MAX], make[PATH_MAX + 16];
    long long port = 0;
    struct stat st;
    int status = KILN_DONE;

    snprintf(make, sizeof make, "mkdir -p %s", argv[1]);
    if (argc > 2 && (argc != 4 || strcmp(argv[2], "-o") != 0))
        return usage(v, "'%s': expected -o OPTIONS, or nothing", argv[2]);
    bool is_there = stat(argv[1], &st) == 0, is_dead = !is_there && errno == ENOTCONN;
    if (!is_dead && (!is_there || !S_ISDIR(st.st_mode)))
        return refuse(KILN_REFUSED, "a folder to mount on", is_there ? NULL : make, "%s %s", argv[1],
                      is_there ? "is no folder" : "does not exist");
    bool is_own = find_own_client(own);
    if ((!is_own && !has_helper(&status)) || (status = find_port(argv[0], argv[1], &port)))
        return status;
    if (!put_words(&words, argv[0], port, argc > 3 ? argv[3] : NULL))
        return refuse(KILN_USAGE, NULL, NULL, "the options are too long");
    if (!name_inside(&words))
        return refuse(KILN_USAGE, NULL, NULL, "the options are too long");
    char *const helper[] = {"mount.kiln", words.source, argv[1], "-o", words.options, NULL};
    char *const command[] = {"mount", "-t", "glusterfs", "-o", words.options, words.source, argv[1], NULL};
    if (is_own)
        return run(own, helper);
    if (is_dead) /* kiln-mount unmounts a dead mount without help */
        (void)umount2(argv[1], MNT_DETACH | UMOUNT_NOFOLLOW);
    fprintf(stderr, "kiln: kiln-mount is not installed: the stock client mounts\n");
    return run(command[0], command);
}

int
umount_volume(const struct verb *v, int argc, char **argv)
{
    char *type = type_mounted_at(argv[0]);
    bool is_ours = type && strcmp(type, "fuse.glusterfs") == 0;

    (void)v;
    (void)argc;
    free(type);
    if (!is_ours)
        return refuse(KILN_REFUSED, "the folder of a mount", "findmnt -t fuse.glusterfs",
                      "no volume is mounted on %s", argv[0]);
    char *const command[] = {"umount", argv[0], NULL};
    return run(command[0], command);
}

/* ---- a mount of kiln's own ------------------------------------------------------------------- */

/* Runs the program and waits for its end. Returns true if the exit status was 0. */
static bool
ran_well(const char *program, char *const *argv)
{
    pid_t pid;
    int status;

    if (posix_spawnp(&pid, program, NULL, NULL, argv, environ))
        return false;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return false;
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The client logs to /dev/null: the client prints errors of the mounting on stderr, and later errors reach
 * the verb as results of system calls. */
static bool
mount_own(const char *name, long long port, char *dir)
{
    struct mount_words words;
    char own[PATH_MAX];
    bool is_own = find_own_client(own);

    if (!put_words(&words, name, port, is_own ? "noshared,log-file=/dev/null" : "log-file=/dev/null"))
        return false;
    char *const helper[] = {"mount.kiln", words.source, dir, "-o", words.options, NULL};
    char *const command[] = {"mount", "-t", "glusterfs", "-o", words.options, words.source, dir, NULL};
    return is_own ? ran_well(own, helper) : ran_well(command[0], command);
}

int
on_own_mount(const char *name, int (*fn)(const char *dir, void *arg), void *arg)
{
    char dir[] = "/run/kiln-mount.XXXXXX", own[PATH_MAX];
    long long port = 0;
    int status = KILN_DONE;

    if ((!find_own_client(own) && !has_helper(&status)) ||
        (status = find_port(name, NULL, &port)))
        return status;
    if (!mkdtemp(dir))
        return refuse(KILN_REFUSED, NULL, NULL, "no folder to mount on: %s", strerror(errno));
    if (!mount_own(name, port, dir)) {
        (void)rmdir(dir);
        return refuse(KILN_REFUSED, NULL, NULL, "volume %s could not be mounted here", name);
    }
    char *const umount[] = {"umount", dir, NULL};
    status = fn(dir, arg);
    if (!ran_well(umount[0], umount) || rmdir(dir) < 0)
        return refuse(KILN_REFUSED, NULL, NULL, "%s stays mounted", dir);
    return status;
}
