/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/procfs.h"
#include "base/test-child.h"

static char place[64]; /* a file with contents that a test chooses */

static void
setup(void)
{
    strcpy(place, "/tmp/test-procfs-XXXXXX");
    int fd = mkstemp(place);

    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void
teardown(void)
{
    unlink(place);
}

static void
says(const char *text)
{
    int fd = open(place, O_WRONLY | O_TRUNC);

    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

START_TEST(statm_grows_with_touched_memory)
{
    struct procfs f = PROCFS_FILE("/proc/self/statm");
    struct procfs_statm before, after;

    ck_assert_int_eq(procfs_statm(&f, &before), 0);
    void *memory =
        mmap(NULL, 32 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    ck_assert_ptr_ne(memory, MAP_FAILED);
    ck_assert_int_eq(procfs_statm(&f, &after), 0);
    ck_assert_uint_ge(after.resident, before.resident + (30 << 20));
    ck_assert_uint_ge(after.size, after.resident);
    ck_assert_uint_ge(after.resident, after.shared);
    ck_assert_uint_eq(f.opens, 1);
    munmap(memory, 32 << 20);
    procfs_close(&f);
}
END_TEST

START_TEST(a_process_name_with_a_bracket_does_not_shift_the_fields)
{
    struct procfs f = PROCFS_FILE("/proc/self/stat");
    struct procfs_stat s;

    ck_assert_int_eq(pthread_setname_np(pthread_self(), "a ) R 1 (2"), 0);
    ck_assert_int_eq(procfs_stat(&f, &s), 0);
    ck_assert_int_eq(s.parent, getppid());
    ck_assert_int_eq(s.state, 'R');
    ck_assert_uint_ge(s.threads, 1);
    ck_assert_uint_gt(s.start, 0);
    ck_assert_uint_gt(s.minor_faults, 0);
    procfs_close(&f);

    struct procfs numbers = PROCFS_FILE(place);

    says("7 (x) S 3 1 1 -1 -1 4 10 11 12 13 14 15 -16 -17 -18 -19 20 21 22 23 24\n");
    ck_assert_int_eq(procfs_stat(&numbers, &s), 0);
    ck_assert_int_eq(s.state, 'S');
    ck_assert_int_eq(s.parent, 3);
    ck_assert_uint_eq(s.minor_faults, 10);
    ck_assert_uint_eq(s.major_faults, 12);
    ck_assert_uint_eq(s.user, 14);
    ck_assert_uint_eq(s.system, 15);
    ck_assert_uint_eq(s.threads, 20);
    ck_assert_uint_eq(s.start, 22);
    procfs_close(&numbers);
}
END_TEST

START_TEST(named_fields_are_read_in_any_order)
{
    struct procfs status = PROCFS_FILE("/proc/self/status"), memory = PROCFS_FILE("/proc/meminfo");
    struct procfs numbers = PROCFS_FILE("/proc/self/stat");
    struct procfs_stat s;
    struct procfs_field own[] = {{.key = "Pid:"}, {.key = "VmRSS:"}, {.key = "Threads:"}};
    struct procfs_field all[] = {
        {.key = "MemFree:"}, {.key = "MemTotal:"}, {.key = "NoSuchThing:", .value = 7}};

    ck_assert_int_eq(procfs_fields(&status, own, 3), 3);
    ck_assert_uint_eq(own[0].value, (uint64_t)getpid());
    ck_assert_uint_gt(own[1].value, 0);
    ck_assert_int_eq(procfs_stat(&numbers, &s), 0);
    ck_assert_uint_eq(own[2].value, s.threads); /* a sanitizer may have a thread */
    procfs_close(&numbers);
    ck_assert_int_eq(procfs_fields(&memory, all, 3), 2); /* not in the order of the file */
    ck_assert_uint_gt(all[1].value, all[0].value);
    ck_assert_uint_eq(all[2].value, 7);
    procfs_close(&status);
    procfs_close(&memory);
}
END_TEST

START_TEST(fields_are_whole_words_at_line_starts)
{
    struct procfs_field f[] = {{.key = "max", .value = 1}, {.key = "high", .value = 2}};

    ck_assert_uint_eq(procfs_parse_fields("low 3\nmaximum 4\n max 5\nhigh 6\nmax 7", f, 2), 2);
    ck_assert_uint_eq(f[0].value, 7);
    ck_assert_uint_eq(f[1].value, 6);
    f[0].value = 1;
    ck_assert_uint_eq(procfs_parse_fields("max\nmax x\nma", f, 1), 0);
    /* a number that is too large */
    ck_assert_uint_eq(procfs_parse_fields("max 18446744073709551616\n", f, 1), 0);
    ck_assert_uint_eq(f[0].value, 1);
    ck_assert_uint_eq(procfs_parse_fields("max 18446744073709551615\n", f, 1), 1);
    ck_assert_uint_eq(f[0].value, UINT64_MAX);
    ck_assert_uint_eq(procfs_parse_fields("", f, 2), 0);
}
END_TEST

START_TEST(processor_time_load_and_pressure_are_read)
{
    struct procfs stat = PROCFS_FILE("/proc/stat"), load = PROCFS_FILE("/proc/loadavg"),
                  p = PROCFS_FILE(place);
    struct procfs_cpu c1, c2;
    struct procfs_load l;
    struct procfs_pressure stall;

    ck_assert_int_eq(procfs_cpu(&stat, &c1), 0);
    ck_assert_int_eq(procfs_cpu(&stat, &c2), 0);
    ck_assert_uint_ge(c2.user + c2.system + c2.idle, c1.user + c1.system + c1.idle);
    ck_assert_uint_gt(c1.user + c1.system, 0);
    ck_assert_int_eq(procfs_load(&load, &l), 0);
    ck_assert_uint_ge(l.runnable, 1);
    ck_assert_uint_ge(l.threads, l.runnable);

    says("some avg10=7.89 avg60=3.36 avg300=13.04 total=4150024623\nfull avg10=0.50 avg60=100.00 avg300=0.00 "
         "total=9\n");
    ck_assert_int_eq(procfs_pressure(&p, &stall), 0);
    ck_assert_uint_eq(stall.some.average_10s, 789);
    ck_assert_uint_eq(stall.some.average_300s, 1304);
    ck_assert_uint_eq(stall.some.total_us, 4150024623);
    ck_assert_uint_eq(stall.full.average_60s, 10000);
    ck_assert_uint_eq(stall.full.total_us, 9);
    says("some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n");
    ck_assert_int_eq(procfs_pressure(&p, &stall), 0);
    ck_assert_uint_eq(stall.some.total_us, 5);
    ck_assert_uint_eq(stall.full.total_us, 0);
    procfs_close(&stat);
    procfs_close(&load);
    procfs_close(&p);
}
END_TEST

START_TEST(memory_pressure_is_read_or_refused_with_a_known_errno)
{
    struct procfs f = PROCFS_FILE("/proc/pressure/memory");
    struct procfs_pressure p;
    int err = procfs_pressure(&f, &p);

    ck_assert(err == 0 || err == -ENOENT || err == -EOPNOTSUPP || err == -EACCES);
    procfs_close(&f);
}
END_TEST

START_TEST(other_text_is_refused)
{
    static const char *const bad[] = {"",
                                      "x",
                                      "1",
                                      "cpu",
                                      "cpu  1 2 3",
                                      "some",
                                      "some avg10=",
                                      "1 (x",
                                      "1 (x)",
                                      "1 (x) ",
                                      "0.1 0.2 0.3",
                                      "0.123 0.2 0.3 1/2",
                                      "some avg10=1.2 avg60=0.00 avg300=0.00 total=1"};
    struct procfs f = PROCFS_FILE(place);
    struct procfs_statm statm;
    struct procfs_stat stat;
    struct procfs_cpu cpu;
    struct procfs_load load;
    struct procfs_pressure pressure;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        says(bad[i]);
        ck_assert_int_eq(procfs_statm(&f, &statm), -EBADMSG);
        ck_assert_int_eq(procfs_stat(&f, &stat), -EBADMSG);
        ck_assert_int_eq(procfs_cpu(&f, &cpu), -EBADMSG);
        ck_assert_int_eq(procfs_load(&f, &load), -EBADMSG);
        ck_assert_int_eq(procfs_pressure(&f, &pressure), -EBADMSG);
    }
    procfs_close(&f);
}
END_TEST

START_TEST(long_files_are_cut_and_ended)
{
    char text[8000], buf[16];
    struct procfs f = PROCFS_FILE(place);
    struct procfs_field late = {.key = "late", .value = 3};

    memset(text, 'x', sizeof text);
    strcpy(text + sizeof text - 8, "\nlate 4");
    says(text);
    ck_assert_int_eq(procfs_read(&f, buf, sizeof buf), 15);
    ck_assert_uint_eq(strlen(buf), 15);
    ck_assert_int_eq(procfs_fields(&f, &late, 1), 0);
    ck_assert_uint_eq(late.value, 3);
    procfs_close(&f);
}
END_TEST

START_TEST(a_child_of_fork_reads_about_itself)
{
    struct procfs f = PROCFS_FILE("/proc/self/stat");
    struct procfs_stat s;

    ck_assert_int_eq(procfs_stat(&f, &s), 0);
    pid_t me = getpid(), child = test_fork();

    if (child == 0) {
        int err = procfs_stat(&f, &s);

        _exit(err == 0 && s.parent == me && f.opens == 2 ? 0 : 1);
    }
    int status;

    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(procfs_stat(&f, &s), 0); /* the parent's descriptor is still open */
    ck_assert_int_eq(s.parent, getppid());
    ck_assert_uint_eq(f.opens, 1);
    procfs_close(&f);
}
END_TEST

START_TEST(an_open_file_needs_no_further_descriptor)
{
    struct procfs before = PROCFS_FILE("/proc/self/statm"), later = PROCFS_FILE("/proc/self/statm");
    struct procfs_statm m;
    struct rlimit limit, none;

    ck_assert_int_eq(procfs_open(&before), 0);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    int kept = procfs_statm(&before, &m), fresh = procfs_statm(&later, &m);

    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_int_eq(kept, 0);
    ck_assert_int_eq(fresh, -EMFILE);
    ck_assert_int_eq(procfs_statm(&later, &m), 0); /* as soon as descriptors are free again */
    procfs_close(&before);
    procfs_close(&later);
}
END_TEST

START_TEST(an_ended_process_is_esrch)
{
    char path[64];
    struct procfs f = PROCFS_FILE(path);
    struct procfs_stat s;
    pid_t child = test_fork();

    if (child == 0) {
        pause();
        _exit(0);
    }
    snprintf(path, sizeof path, "/proc/%d/stat", (int)child);
    ck_assert_int_eq(procfs_stat(&f, &s), 0);
    ck_assert_int_eq(s.parent, getpid());
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert_int_eq(procfs_stat(&f, &s), -ESRCH);
    ck_assert_int_eq(f.is_open, 0);
    /* The path is opened again, unless the number was reused meanwhile. */
    ck_assert_int_eq(procfs_stat(&f, &s), -ENOENT);
    procfs_close(&f);
}
END_TEST

START_TEST(groups_are_read_from_a_status_file)
{
    struct procfs f = PROCFS_FILE(place);
    uint32_t groups[4];

    says("Name:\tGroups: 7\nTgid:\t1\nGroups:\t4 24 4294967294 \nNStgid:\t99\n");
    ck_assert_int_eq(procfs_groups(&f, groups, 4), 3);
    ck_assert_uint_eq(groups[0], 4);
    ck_assert_uint_eq(groups[2], 4294967294u);
    ck_assert_int_eq(procfs_groups(&f, groups, 2), 2);
    says("Groups:\t \nNStgid:\t99\n");
    ck_assert_int_eq(procfs_groups(&f, groups, 4), 0);
    says("Name:\tno more");
    ck_assert_int_eq(procfs_groups(&f, groups, 4), -EBADMSG);
    says("Groups:\t4 2"); /* cut inside a number: the number is not used */
    ck_assert_int_eq(procfs_groups(&f, groups, 4), 1);
    ck_assert_uint_eq(f.opens, 1);
    procfs_close(&f);
}
END_TEST

START_TEST(a_missing_path_is_enoent)
{
    struct procfs f = PROCFS_FILE("/proc/no-such-file"), d = PROCFS_FILE("/proc/self");
    struct procfs_statm m;

    ck_assert_int_eq(procfs_statm(&f, &m), -ENOENT);
    ck_assert_int_eq(procfs_statm(&d, &m), -EISDIR);
    procfs_close(&d);
    procfs_close(&d); /* a second close has no effect */
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("procfs");
    TCase *t = tcase_create("procfs");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, statm_grows_with_touched_memory);
    tcase_add_test(t, a_process_name_with_a_bracket_does_not_shift_the_fields);
    tcase_add_test(t, named_fields_are_read_in_any_order);
    tcase_add_test(t, fields_are_whole_words_at_line_starts);
    tcase_add_test(t, processor_time_load_and_pressure_are_read);
    tcase_add_test(t, memory_pressure_is_read_or_refused_with_a_known_errno);
    tcase_add_test(t, other_text_is_refused);
    tcase_add_test(t, long_files_are_cut_and_ended);
    tcase_add_test(t, a_child_of_fork_reads_about_itself);
    tcase_add_test(t, an_open_file_needs_no_further_descriptor);
    tcase_add_test(t, an_ended_process_is_esrch);
    tcase_add_test(t, groups_are_read_from_a_status_file);
    tcase_add_test(t, a_missing_path_is_enoent);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
