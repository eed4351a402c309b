/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* Memory pressure: the settings of the service manager, the events of the kernel, and the reaction of a
 * pool. The kernel's own events come from /proc/pressure; the files of a cgroup from a mount namespace in
 * which the test makes them. tests/pool/pressure does the same with a cgroup that is really short of
 * memory. */
#include "mem/test-mem.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* ---- the service manager --------------------------------------------------------------------- */

static char pressure_file[] = "/tmp/mem-pressure-XXXXXX";

static size_t
pressure_file_is(const char *text)
{
    int fd = open(pressure_file, O_WRONLY | O_TRUNC);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    return (size_t)close(fd);
}

START_TEST(pressure_asks_for_trims)
{
    struct pollfd fds[2];
    char back[64] = "";
    int fd = mkstemp(pressure_file);

    ck_assert_int_ge(fd, 0);
    setenv("MEMORY_PRESSURE_WATCH", pressure_file, 1);
    setenv("MEMORY_PRESSURE_WRITE", "c29tZSAyMDAwMDAgMjAwMDAwMA==", 1);
    ck_assert_int_eq(mem_pressure_open(fds, 2), 2);
    ck_assert_int_eq(pread(fd, back, sizeof(back), 0), 19);
    ck_assert_str_eq(back, "some 200000 2000000"); /* the service manager's text was written */
    ck_assert_int_ge(fds[0].fd, 0);
    if (fds[1].fd >= 0)
        close(fds[1].fd);
    fds[0].revents = fds[1].revents = 0;
    ck_assert_int_eq(mem_pressure_level(fds, 2), 0);
    fds[0].revents = POLLPRI;
    ck_assert_int_eq(mem_pressure_level(fds, 2), 1);
    ck_assert_int_eq(mem_pressure_level(fds, 2), 2); /* and the stall continues */
    fds[0].revents = 0;
    fds[1].fd = open(pressure_file, O_RDONLY);
    pressure_file_is("low 0\nhigh 3\nmax 1\noom 0\n");
    fds[1].revents = POLLPRI;
    ck_assert_int_eq(mem_pressure_level(fds, 2), 2);
    ck_assert_int_eq(mem_pressure_level(fds, 2), 0); /* nothing new */
    pressure_file_is("");
    ck_assert_int_eq(mem_pressure_level(fds, 2), 0);
    fds[1].revents = 0;
    fds[0].revents = POLLERR;
    ck_assert_int_eq(mem_pressure_level(fds, 2), 0);
    ck_assert_int_eq(fds[0].fd, -1); /* not polled again */
    mem_pressure_close(fds, 2);

    setenv("MEMORY_PRESSURE_WRITE", "not base64!", 1);
    ck_assert_int_eq(mem_pressure_open(fds, 2), 2);
    mem_pressure_close(fds, 2);
    setenv("MEMORY_PRESSURE_WATCH", "/dev/null", 1);
    ck_assert_int_eq(mem_pressure_open(fds, 2), 2);
    ck_assert_int_eq(fds[0].fd, -1);
    mem_pressure_close(fds, 2);
    close(fd);
    unlink(pressure_file);
}
END_TEST

/* A fifo stands in for the kernel's file: it cannot raise POLLPRI, but its loss raises POLLHUP, and the
 * sweeper must neither spin nor die. */
START_TEST(sweeper_survives_the_loss_of_its_pressure_file)
{
    char path[] = "/tmp/mem-fifo-XXXXXX";
    struct mem_pool *p = mem_pool_new_fn(100, 0, "fifo");
    int fd;

    ck_assert_ptr_nonnull(mkdtemp(path));
    ck_assert_int_eq(rmdir(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    setenv("MEMORY_PRESSURE_WATCH", path, 1);
    unsetenv("MEMORY_PRESSURE_WRITE");
    mem_pools_set_option("sweep", "5");
    ck_assert_int_eq(mem_pools_init(), 0);
    mem_put(mem_get(p));
    for (fd = -1; fd < 0; usleep(1000))
        fd = open(path, O_WRONLY | O_NONBLOCK); /* once the sweeper has its end open */
    close(fd);
    while (stats(p).bytes_resident)
        usleep(1000);
    mem_pools_fini();
    unlink(path);
}
END_TEST


/* Files that cannot be set up are not watched, without further effect. */
START_TEST(unusable_pressure_files_are_not_watched)
{
    static char long_text[600];
    struct pollfd fds[2];

    setenv("MEMORY_PRESSURE_WATCH", "/dev/full", 1);
    setenv("MEMORY_PRESSURE_WRITE", "c29tZSAyMDAwMDAgMjAwMDAwMA==", 1);
    ck_assert_int_eq(mem_pressure_open(fds, 2), 2);
    ck_assert_int_eq(fds[0].fd, -1); /* it opens, but refuses the write */
    mem_pressure_close(fds, 2);

    memset(long_text, 'A', sizeof(long_text) - 1); /* 449 bytes, where 256 are the limit */
    setenv("MEMORY_PRESSURE_WRITE", long_text, 1);
    ck_assert_int_eq(mem_pressure_open(fds, 2), 2);
    ck_assert_int_ge(fds[0].fd, 0); /* watched, but not written to */
    ck_assert_int_lt(write(fds[0].fd, "x", 1), 0);
    mem_pressure_close(fds, 2);

    setenv("MEMORY_PRESSURE_WATCH", "/nonexistent/file", 1);
    ck_assert_int_eq(mem_pressure_open(fds, 2), 2);
    ck_assert_int_eq(fds[0].fd, -1);
    mem_pressure_close(fds, 2);
}
END_TEST

/* ---- the files of a cgroup ------------------------------------------------------------------- */

static bool
write_to(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    if (fd >= 0)
        close(fd);
    return ok;
}

/* From here on /sys/fs/cgroup is an empty directory of this process alone. False: not allowed here. */
static bool
own_cgroup_directory(void)
{
    char map[64];
    unsigned uid = geteuid(), gid = getegid();

    if (unshare(CLONE_NEWNS | (uid ? CLONE_NEWUSER : 0)) != 0)
        return false;
    if (uid) {
        snprintf(map, sizeof(map), "0 %u 1", uid);
        if (!write_to("/proc/self/setgroups", "deny") || !write_to("/proc/self/uid_map", map))
            return false;
        snprintf(map, sizeof(map), "0 %u 1", gid);
        if (!write_to("/proc/self/gid_map", map))
            return false;
    }
    return mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", "/sys/fs/cgroup", "tmpfs", 0, NULL) == 0;
}

/* Makes the directories down to that of this process's cgroup, and returns its path. */
static void
cgroup_path(const char *root, char *path, size_t n)
{
    char line[2048], *own = NULL;
    FILE *f = fopen("/proc/self/cgroup", "re");

    ck_assert_ptr_nonnull(f);
    while (!own && fgets(line, sizeof(line), f))
        own = strncmp(line, "0::", 3) ? NULL : line + 3;
    fclose(f);
    if (own)
        own[strcspn(own, "\n")] = 0;
    snprintf(path, n, "%s%s/", root, own ? own : "");
    for (char *c = path + 1; *c; c++) {
        if (*c != '/')
            continue;
        *c = 0;
        mkdir(path, 0700);
        *c = '/';
    }
}

START_TEST(new_events_of_the_cgroup_request_level_2)
{
    static const char *const roots[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
    char dir[2500], file[2600], text[64] = "";
    struct pollfd fds[2];

    unsetenv("MEMORY_PRESSURE_WATCH");
    if (!own_cgroup_directory()) {
        printf("skipped: new_events_of_the_cgroup_request_level_2: no mount namespace here: %s\n",
               strerror(errno));
        return;
    }
    cgroup_path(roots[_i], dir, sizeof(dir));
    snprintf(file, sizeof(file), "%smemory.events", dir);
    ck_assert(write_to(file, "low 0\nhigh 1\nmax 2\noom 0\n"));
    snprintf(file, sizeof(file), "%smemory.pressure", dir);
    ck_assert(write_to(file, ""));
    ck_assert_int_eq(mem_pressure_open(fds, 2), 2);
    ck_assert_int_ge(fds[0].fd, 0);
    ck_assert_int_ge(fds[1].fd, 0);
    ck_assert_int_eq(pread(fds[0].fd, text, sizeof(text), 0), 20);
    ck_assert_str_eq(text, "some 200000 2000000"); /* with its NUL, as the kernel requires */
    fds[0].revents = 0;
    fds[1].revents = POLLPRI;
    ck_assert_int_eq(mem_pressure_level(fds, 2), 0); /* earlier events are not new */
    snprintf(file, sizeof(file), "%smemory.events", dir);
    ck_assert(write_to(file, "low 0\nhigh 1\nmax 3\noom 0\n"));
    ck_assert_int_eq(mem_pressure_level(fds, 2), 2);
    mem_pressure_close(fds, 2);

    /* a file that takes no trigger is not watched */
    snprintf(file, sizeof(file), "%smemory.pressure", dir);
    ck_assert_int_eq(unlink(file), 0);
    ck_assert_int_eq(symlink("/dev/full", file), 0);
    ck_assert_int_eq(mem_pressure_open(fds, 2), 2);
    ck_assert_int_eq(fds[0].fd, -1);
    mem_pressure_close(fds, 2);

    /* without it the system's file is used, if the kernel has one that this user may open */
    ck_assert_int_eq(unlink(file), 0);
    ck_assert_int_eq(mem_pressure_open(fds, 2), 2);
    if (fds[0].fd >= 0) {
        snprintf(file, sizeof(file), "/proc/self/fd/%d", fds[0].fd);
        ck_assert_int_gt(readlink(file, text, sizeof(text) - 1), 0);
        ck_assert_str_eq(text, "/proc/pressure/memory");
    }
    mem_pressure_close(fds, 2);
}
END_TEST

/* ---- the kernel's events --------------------------------------------------------------------- */

static int pressed;

static void *
burn(void *arg)
{
    volatile unsigned n = 0;

    (void)arg;
    while (!__atomic_load_n(&pressed, __ATOMIC_RELAXED))
        n++;
    return NULL;
}

/* The sweeper waits for a stall and trims. CPUs are easier to make scarce than memory, and the kernel
 * reports both in the same way: one thread more than there are CPUs must wait. */
START_TEST(a_stall_makes_the_sweeper_trim)
{
    struct mem_pool *p = mem_pool_new_fn(100, 0, "pressed");
    struct mem_process_stats s;
    struct pollfd fds[2];
    pthread_t t[65];
    long n = sysconf(_SC_NPROCESSORS_ONLN) + 1;

    setenv("MEMORY_PRESSURE_WATCH", "/proc/pressure/cpu", 1);
    setenv("MEMORY_PRESSURE_WRITE", "c29tZSAxIDIwMDAwMDAA", 1); /* 1 us in 2 s, and a NUL */
    mem_pressure_open(fds, 2);
    bool can = fds[0].fd >= 0;
    mem_pressure_close(fds, 2);
    if (!can || n > 65) {
        printf("skipped: a_stall_makes_the_sweeper_trim: no /proc/pressure to be watched, or %ld CPUs\n",
               n - 1);
        return;
    }
    mem_pools_set_option("sweep", "0"); /* only pressure can make it act */
    mem_put(mem_get(p));
    ck_assert_int_eq(mem_pools_init(), 0);
    for (long i = 0; i < n; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, burn, NULL), 0);
    do {
        usleep(10000);
        mem_pools_stats(&s);
    } while (!s.trims_pressure); /* or until the test's time is up */
    __atomic_store_n(&pressed, 1, __ATOMIC_RELAXED);
    for (long i = 0; i < n; i++)
        pthread_join(t[i], NULL);
    mem_pools_fini();
    ck_assert_uint_eq(stats(p).cached_hot, 0);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("mem-pressure");
    TCase *t = tcase_create("pressure");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, pressure_asks_for_trims);
    tcase_add_test(t, sweeper_survives_the_loss_of_its_pressure_file);
    tcase_add_test(t, unusable_pressure_files_are_not_watched);
    tcase_add_loop_test(t, new_events_of_the_cgroup_request_level_2, 0, 2);
    tcase_add_test(t, a_stall_makes_the_sweeper_trim);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
