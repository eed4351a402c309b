/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Mounting: by kiln-mount where it is, called as mount(8) calls its helpers; else by the stock client. */
#include <errno.h>
#include <limits.h>
#include <mntent.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cli/kiln.h"

/* as <linux/limits.h> says, which is in the way of others */
#ifndef XATTR_NAME_MAX
#define XATTR_NAME_MAX 255
#endif
#define HELPER "/sbin/mount.glusterfs"

/* The type of what is mounted on this folder; NULL: nothing. To be freed. */
static char *
type_mounted_at(const char *dir)
{
    char *path = realpath(dir, NULL), *type = NULL;
    FILE *f = path ? setmntent("/proc/self/mounts", "r") : NULL;
    const struct mntent *m;

    while (f && (m = getmntent(f))) {
        if (strcmp(m->mnt_dir, path) != 0)
            continue;
        free(type); /* the last one is on top */
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

/* Where clients ask for the volfile of a volume that is started. 0 or an exit status. */
static int
find_port(const char *name, long long *port)
{
    json_t *answer;
    int status = ask("volume-mount", json_pack("{ss}", "name", name), &answer);

    if (!status)
        *port = json_integer_value(json_object_get(answer, "port"));
    json_decref(answer);
    return status;
}

/* mount(8)'s words; `more`: further options, or NULL. False: too long. */
struct mount_words {
    char source[256], options[1024];
};

static bool
put_words(struct mount_words *w, const char *name, long long port, const char *more)
{
    snprintf(w->source, sizeof w->source, "localhost:/%s", name);
    return snprintf(w->options, sizeof w->options, "server-port=%lld%s%s", port, more ? "," : "",
                    more ? more : "") < (int)sizeof w->options;
}

static bool
has_helper(int *status)
{
    if (access(HELPER, X_OK) == 0)
        return true;
    *status = refuse(KILN_REFUSED, "the stock client", "apt install glusterfs-client", HELPER " is missing");
    return false;
}

/* Kiln's client lies beside this program, where both are installed and where both are built. */
static bool
find_own_client(char *path, size_t size)
{
    static const char name[] = "kiln-mount";
    ssize_t n = readlink("/proc/self/exe", path, size);

    while (n > 0 && n < (ssize_t)size && path[n - 1] != '/')
        n--;
    if (n <= 0 || (size_t)n + sizeof name > size)
        return false;
    memcpy(path + n, name, sizeof name);
    return access(path, X_OK) == 0;
}

int
mount_volume(const struct verb *v, int argc, char **argv)
{
    struct mount_words words;
    char own[PATH_MAX];
    long long port = 0;
    struct stat st;
    int status = KILN_DONE;

    if (argc > 2 && (argc != 4 || strcmp(argv[2], "-o") != 0))
        return usage(v, "'%s': expected -o OPTIONS, or nothing", argv[2]);
    if (stat(argv[1], &st) < 0 || !S_ISDIR(st.st_mode))
        return refuse(KILN_REFUSED, "a folder to mount on", NULL, "%s is no folder", argv[1]);
    bool is_own = find_own_client(own, sizeof own);
    if ((!is_own && !has_helper(&status)) || (status = find_port(argv[0], &port)))
        return status;
    if (!put_words(&words, argv[0], port, argc > 3 ? argv[3] : NULL))
        return refuse(KILN_USAGE, NULL, NULL, "the options are too long");
    char *const helper[] = {"mount.kiln", words.source, argv[1], "-o", words.options, NULL};
    char *const command[] = {"mount", "-t", "glusterfs", "-o", words.options, words.source, argv[1], NULL};
    if (is_own)
        return run(own, helper);
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

/* ---- clear-locks: a question that only a client can ask -------------------------------------- */

/* Runs it and waits. True: it ended with status 0. */
static bool
ran_well(char *const *argv)
{
    pid_t pid;
    int status;

    if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ))
        return false;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return false;
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The bricks clear the locks when they are asked for this xattr, and answer with what they have done. */
static int
clear_on_mount(const char *dir, const char *path, const char *key)
{
    char where[PATH_MAX], answer[65536];

    if (snprintf(where, sizeof where, "%s%s", dir, path) >= (int)sizeof where)
        return refuse(KILN_REFUSED, NULL, NULL, "the path is too long");
    ssize_t n = lgetxattr(where, key, answer, sizeof answer - 1);
    if (n < 0)
        return refuse(KILN_REFUSED, "a path of the volume, such as /dir/file", NULL, "%s: %s", path,
                      strerror(errno));
    answer[n] = '\0';
    if (!kiln_options.is_json) {
        printf("%s\n", answer);
        return KILN_DONE;
    }
    json_t *json = json_pack("{ss ss}", "path", path, "cleared", answer);
    int status = json ? show_json(json) : KILN_REFUSED;
    json_decref(json);
    return status;
}

int
on_own_mount(const char *name, int (*fn)(const char *dir, void *arg), void *arg)
{
    char dir[] = "/run/kiln-mount.XXXXXX";
    struct mount_words words;
    long long port = 0;
    int status = KILN_DONE;

    if (!has_helper(&status) || (status = find_port(name, &port)))
        return status;
    if (!put_words(&words, name, port, NULL) || !mkdtemp(dir))
        return refuse(KILN_REFUSED, NULL, NULL, "no folder to mount on: %s", strerror(errno));
    char *const mount[] = {"mount", "-t", "glusterfs", "-o", words.options, words.source, dir, NULL};
    char *const umount[] = {"umount", dir, NULL};
    if (!ran_well(mount)) {
        (void)rmdir(dir);
        return refuse(KILN_REFUSED, NULL, NULL, "volume %s could not be mounted here", name);
    }
    status = fn(dir, arg);
    if (!ran_well(umount) || rmdir(dir) < 0)
        return refuse(KILN_REFUSED, NULL, NULL, "%s stays mounted", dir);
    return status;
}

/* What clear_on_mount() is to do. */
struct clearing {
    const char *path, *key;
};

static int
clear_it(const char *dir, void *arg)
{
    const struct clearing *c = arg;

    return clear_on_mount(dir, c->path, c->key);
}

static bool
is_one_of(const char *word, const char *a, const char *b, const char *c)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

/* NAME PATH kind blocked|granted|all inode|entry|posix [RANGE] */
int
clear_locks(const struct verb *v, int argc, char **argv)
{
    char key[512];

    if (argv[1][0] != '/')
        return usage(v, "'%s': expected a path from the volume's root, /...", argv[1]);
    if (strcmp(argv[2], "kind") != 0)
        return usage(v, "'%s': expected the word kind", argv[2]);
    if (!is_one_of(argv[3], "blocked", "granted", "all"))
        return usage(v, "'%s': expected blocked, granted or all", argv[3]);
    if (!is_one_of(argv[4], "inode", "entry", "posix"))
        return usage(v, "'%s': expected inode, entry or posix", argv[4]);
    if (snprintf(key, sizeof key, "glusterfs.clrlk.t%s.k%s%s%s", argv[4], argv[3], argc > 5 ? "." : "",
                 argc > 5 ? argv[5] : "") > XATTR_NAME_MAX)
        return usage(v, "'%s' is too long", argv[5]);
    return on_own_mount(argv[0], clear_it, &(struct clearing){argv[1], key});
}
