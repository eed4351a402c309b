/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A call belongs into a table if Kiln or one of its libraries (glibc with its name services, jemalloc,
 * OpenSSL, libfuse, libmicrohttpd, liburcu) uses it. Left out are, among others: mounts and namespaces,
 * modules, kexec, reboot, clocks, ptrace and other access to processes, bpf, perf events, io_uring,
 * userfaultfd, keys, raw I/O, quotas, swap, accounting, the kernel's log and host names. */
#include "daemon/sandbox-calls.h"

#include <linux/capability.h>
#include <net/if.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif
/* glibc 2.41 asks for the size of a terminal by this ioctl; its header excludes other headers. */
#define TCGETS2_NUMBER 0x802c542a

#define CALL(name) {(name), 0, 0, {0, 0, 0}}
/* The numbers from 424 on are the same on all architectures. */
#define NUMBERED(name, number) {(name), (number), 0, {0, 0, 0}}
#define EQUAL(name, argument, value) {(name), 0, (argument), {SCMP_CMP_EQ, (value), 0}}
#define MASKED(name, argument, mask, value) {(name), 0, (argument), {SCMP_CMP_MASKED_EQ, (mask), (value)}}
#define END {NULL, 0, 0, {0, 0, 0}}

#define NAMESPACES                                                                                           \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |            \
     CLONE_NEWNET)
#define WRITE_EXEC (PROT_WRITE | PROT_EXEC)

static const struct sandbox_call of_all[] = {
    /* descriptors and files */
    CALL("access"), CALL("chdir"), CALL("chmod"), CALL("close"), CALL("close_range"), CALL("creat"),
    CALL("dup"), CALL("dup2"), CALL("dup3"), CALL("faccessat"), CALL("faccessat2"), CALL("fadvise64"),
    CALL("fadvise64_64"), CALL("fchdir"), CALL("fchmod"), CALL("fchmodat"), NUMBERED("fchmodat2", 452),
    CALL("fcntl"), CALL("fcntl64"), CALL("fdatasync"), CALL("fgetxattr"), CALL("flistxattr"), CALL("flock"),
    CALL("fstat"), CALL("fstat64"), CALL("fstatat64"), CALL("fstatfs"), CALL("fstatfs64"), CALL("fsync"),
    CALL("ftruncate"), CALL("ftruncate64"), CALL("getcwd"), CALL("getdents"), CALL("getdents64"),
    CALL("getxattr"), NUMBERED("getxattrat", 464), CALL("inotify_add_watch"), CALL("inotify_init1"),
    CALL("inotify_rm_watch"), CALL("lgetxattr"), CALL("link"), CALL("linkat"), CALL("listxattr"),
    NUMBERED("listxattrat", 465), CALL("llistxattr"), CALL("_llseek"), CALL("lseek"), CALL("lstat"),
    CALL("lstat64"), CALL("mkdir"), CALL("mkdirat"), CALL("newfstatat"), CALL("open"), CALL("openat"),
    CALL("openat2"), CALL("pipe"), CALL("pipe2"), CALL("pread64"), CALL("preadv"), CALL("preadv2"),
    CALL("pwrite64"), CALL("pwritev"), CALL("pwritev2"), CALL("read"), CALL("readahead"), CALL("readlink"),
    CALL("readlinkat"), CALL("readv"), CALL("rename"), CALL("renameat"), CALL("renameat2"), CALL("rmdir"),
    CALL("sendfile"), CALL("sendfile64"), CALL("splice"), CALL("stat"), CALL("stat64"), CALL("statfs"),
    CALL("statfs64"), CALL("statx"), CALL("symlink"), CALL("symlinkat"), CALL("sync_file_range"),
    CALL("sync_file_range2"), CALL("tee"), CALL("truncate"), CALL("truncate64"), CALL("umask"),
    CALL("unlink"), CALL("unlinkat"), CALL("utime"), CALL("utimensat"), CALL("utimensat_time64"),
    CALL("utimes"), CALL("vmsplice"), CALL("write"), CALL("writev"),
    /* events */
    CALL("epoll_create"), CALL("epoll_create1"), CALL("epoll_ctl"), CALL("epoll_pwait"),
    CALL("epoll_pwait2"), CALL("epoll_wait"), CALL("eventfd"), CALL("eventfd2"), CALL("poll"),
    CALL("ppoll"), CALL("ppoll_time64"), CALL("pselect6"), CALL("pselect6_time64"), CALL("select"),
    CALL("_newselect"), CALL("signalfd"), CALL("signalfd4"), CALL("timerfd_create"),
    CALL("timerfd_gettime"), CALL("timerfd_gettime64"), CALL("timerfd_settime"), CALL("timerfd_settime64"),
    /* memory */
    CALL("brk"), NUMBERED("cachestat", 451), CALL("get_mempolicy"), CALL("madvise"),
    NUMBERED("map_shadow_stack", 453), CALL("mbind"), CALL("membarrier"), CALL("memfd_create"),
    CALL("mincore"), CALL("mlock"), CALL("mlock2"), CALL("mremap"), NUMBERED("mseal", 462), CALL("msync"),
    CALL("munlock"), CALL("munmap"), CALL("process_madvise"),
    /* threads, time, signals */
    CALL("alarm"), CALL("arch_prctl"), CALL("clock_getres"), CALL("clock_getres_time64"),
    CALL("clock_gettime"), CALL("clock_gettime64"), CALL("clock_nanosleep"), CALL("clock_nanosleep_time64"),
    CALL("exit"), CALL("exit_group"), CALL("futex"), CALL("futex_time64"), NUMBERED("futex_requeue", 456),
    NUMBERED("futex_wait", 455), CALL("futex_waitv"), NUMBERED("futex_wake", 454), CALL("get_robust_list"),
    CALL("getcpu"), CALL("getitimer"), CALL("gettid"), CALL("gettimeofday"), CALL("kill"),
    CALL("nanosleep"), CALL("pause"), CALL("restart_syscall"), CALL("rseq"), CALL("rt_sigaction"),
    CALL("rt_sigpending"), CALL("rt_sigprocmask"), CALL("rt_sigqueueinfo"), CALL("rt_sigreturn"),
    CALL("rt_sigsuspend"), CALL("rt_sigtimedwait"), CALL("rt_sigtimedwait_time64"),
    CALL("rt_tgsigqueueinfo"), CALL("sched_get_priority_max"), CALL("sched_get_priority_min"),
    CALL("sched_getaffinity"), CALL("sched_getattr"), CALL("sched_getparam"), CALL("sched_getscheduler"),
    CALL("sched_setaffinity"), CALL("sched_yield"), CALL("set_robust_list"), CALL("set_tid_address"),
    CALL("setitimer"), CALL("sigaltstack"), CALL("sigreturn"), CALL("tgkill"), CALL("time"),
    CALL("timer_create"), CALL("timer_delete"), CALL("timer_getoverrun"), CALL("timer_gettime"),
    CALL("timer_settime"), CALL("times"), CALL("tkill"),
#ifdef __x86_64__
    /* calls that the kernel itself inserts for probes of bpftrace and perf */
    NUMBERED("uretprobe", 335), NUMBERED("uprobe", 336),
#endif
    /* the process and its children */
    CALL("capget"), CALL("getegid"), CALL("getegid32"), CALL("geteuid"), CALL("geteuid32"), CALL("getgid"),
    CALL("getgid32"), CALL("getgroups"), CALL("getgroups32"), CALL("getpgid"), CALL("getpgrp"),
    CALL("getpid"), CALL("getppid"), CALL("getrandom"), CALL("getresgid"), CALL("getresgid32"),
    CALL("getresuid"), CALL("getresuid32"), CALL("getrlimit"), CALL("getrusage"), CALL("getsid"),
    CALL("getuid"), CALL("getuid32"), CALL("pidfd_open"), CALL("pidfd_send_signal"), CALL("prlimit64"),
    CALL("setrlimit"), CALL("setsid"), CALL("sysinfo"), CALL("ugetrlimit"), CALL("uname"), CALL("wait4"),
    CALL("waitid"), CALL("waitpid"),
    /* sockets */
    CALL("accept"), CALL("accept4"), CALL("bind"), CALL("connect"), CALL("getpeername"),
    CALL("getsockname"), CALL("getsockopt"), CALL("listen"), CALL("recv"), CALL("recvfrom"),
    CALL("recvmmsg"), CALL("recvmmsg_time64"), CALL("recvmsg"), CALL("send"), CALL("sendmmsg"),
    CALL("sendmsg"), CALL("sendto"), CALL("setsockopt"), CALL("shutdown"), CALL("socketpair"),
    EQUAL("socket", 0, AF_UNIX), EQUAL("socket", 0, AF_INET), EQUAL("socket", 0, AF_INET6),
    EQUAL("socket", 0, AF_NETLINK),
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    /* LeakSanitizer stops the process at its end by a tracer, which is a process with the same memory. */
    CALL("clone"), CALL("personality"), CALL("prctl"), CALL("process_vm_readv"), CALL("ptrace"),
#endif
    END,
};

/* Memory is writable or executable, never both, and does not become executable later: no code can be brought
 * in by a write. */
static const struct sandbox_call of_daemons[] = {
    MASKED("mmap", 2, WRITE_EXEC, 0),
    MASKED("mmap", 2, WRITE_EXEC, PROT_WRITE),
    MASKED("mmap", 2, WRITE_EXEC, PROT_EXEC),
    MASKED("mmap2", 2, WRITE_EXEC, 0),
    MASKED("mmap2", 2, WRITE_EXEC, PROT_WRITE),
    MASKED("mmap2", 2, WRITE_EXEC, PROT_EXEC),
    MASKED("mprotect", 2, PROT_EXEC, 0),
    EQUAL("prctl", 0, PR_SET_NAME),
    EQUAL("prctl", 0, PR_GET_NAME),
    EQUAL("prctl", 0, PR_SET_VMA),
    EQUAL("prctl", 0, PR_GET_DUMPABLE),
    EQUAL("prctl", 0, PR_GET_NO_NEW_PRIVS),
    EQUAL("prctl", 0, PR_CAPBSET_READ),
    EQUAL("prctl", 0, PR_SET_THP_DISABLE),
    EQUAL("prctl", 0, PR_SET_TIMERSLACK),
    EQUAL("ioctl", 1, FIONREAD),
    EQUAL("ioctl", 1, FIONBIO),
    EQUAL("ioctl", 1, FIOCLEX),
    EQUAL("ioctl", 1, TIOCOUTQ),
    EQUAL("ioctl", 1, TCGETS), /* isatty(3) */
    EQUAL("ioctl", 1, TCGETS2_NUMBER),
    EQUAL("ioctl", 1, TIOCGWINSZ),
    EQUAL("ioctl", 1, SIOCGIFINDEX), /* scopes of IPv6 addresses */
    EQUAL("ioctl", 1, SIOCGIFNAME),
    EQUAL("ioctl", 1, SIOCGIFCONF),
    MASKED("clone", 0, NAMESPACES | CLONE_THREAD, CLONE_THREAD),
    END,
};

static const struct sandbox_call of_bricks[] = {
    CALL("chown"),
    CALL("chown32"),
    CALL("copy_file_range"),
    CALL("fallocate"),
    CALL("fchown"),
    CALL("fchown32"),
    CALL("fchownat"),
    CALL("fremovexattr"),
    CALL("fsetxattr"),
    CALL("lchown"),
    CALL("lchown32"),
    CALL("lremovexattr"),
    CALL("lsetxattr"),
    CALL("mknod"),
    CALL("mknodat"),
    CALL("removexattr"),
    NUMBERED("removexattrat", 466),
    CALL("setxattr"),
    NUMBERED("setxattrat", 463),
    CALL("sync"),
    CALL("syncfs"),
    END,
};

static const struct sandbox_call of_upgrade[] = {
    CALL("capset"), /* capabilities can only become fewer */
    CALL("execve"),
    EQUAL("prctl", 0, PR_CAP_AMBIENT),
    EQUAL("prctl", 0, PR_GET_SECUREBITS), /* libcap-ng at its start */
    END,
};

static const struct sandbox_call of_mount[] = {
    CALL("mount"),
    CALL("umount2"),
    /* a process that asks whether a mount point is dead, and may hang there (mount/place.c) */
    MASKED("clone", 0, NAMESPACES | CLONE_THREAD, 0),
    EQUAL("ioctl", 1, 0x8004e500), /* FUSE_DEV_IOC_CLONE */
    END,
};

/* Further calls of shells, the core utilities, curl, systemctl and interpreters. Such programs may give up
 * more. */
static const struct sandbox_call of_programs[] = {
    MASKED("clone", 0, NAMESPACES, 0),
    CALL("capset"),
    CALL("execve"),
    CALL("execveat"),
    CALL("fork"),
    CALL("getpmsg"),
    CALL("getpriority"),
    CALL("inotify_init"),
    CALL("ioctl"),
    CALL("ioprio_get"),
    CALL("ioprio_set"),
    CALL("io_cancel"),
    CALL("io_destroy"),
    CALL("io_getevents"),
    CALL("io_setup"),
    CALL("io_submit"),
    CALL("kcmp"),
    CALL("landlock_add_rule"),
    CALL("landlock_create_ruleset"),
    CALL("landlock_restrict_self"),
    CALL("mlockall"),
    CALL("mmap"),
    CALL("mmap2"),
    CALL("mprotect"),
    CALL("mq_getsetattr"),
    CALL("mq_notify"),
    CALL("mq_open"),
    CALL("mq_timedreceive"),
    CALL("mq_timedsend"),
    CALL("mq_unlink"),
    CALL("msgctl"),
    CALL("msgget"),
    CALL("msgrcv"),
    CALL("msgsnd"),
    CALL("munlockall"),
    CALL("name_to_handle_at"),
    CALL("personality"),
    CALL("pkey_alloc"),
    CALL("pkey_free"),
    CALL("pkey_mprotect"),
    CALL("prctl"),
    CALL("remap_file_pages"),
    CALL("sched_rr_get_interval"),
    CALL("sched_setattr"),
    CALL("sched_setparam"),
    CALL("sched_setscheduler"),
    CALL("seccomp"),
    CALL("semctl"),
    CALL("semget"),
    CALL("semop"),
    CALL("semtimedop"),
    CALL("set_mempolicy"),
    CALL("set_thread_area"),
    CALL("setfsgid"),
    CALL("setfsuid"),
    CALL("setgid"),
    CALL("setgroups"),
    CALL("setpgid"),
    CALL("setpriority"),
    CALL("setregid"),
    CALL("setresgid"),
    CALL("setresuid"),
    CALL("setreuid"),
    CALL("setuid"),
    CALL("shmat"),
    CALL("shmctl"),
    CALL("shmdt"),
    CALL("shmget"),
    CALL("vfork"),
    END,
};

const struct sandbox_call *const *
sandbox_tables(enum sandbox_role role)
{
    static const struct sandbox_call *const tables[][6] = {
        [SANDBOX_BRICKS] = {of_all, of_daemons, of_bricks},
        [SANDBOX_VOLUMES] = {of_all, of_daemons, of_bricks, of_upgrade},
        [SANDBOX_PROGRAMS] = {of_all, of_bricks, of_programs},
        [SANDBOX_MOUNT] = {of_all, of_daemons, of_mount, of_upgrade},
        [SANDBOX_HEALER] = {of_all, of_daemons},
        [SANDBOX_INSIDE] = {of_all, of_daemons, of_bricks, of_mount, of_upgrade},
    };

    return tables[role];
}

const int *
sandbox_capabilities(enum sandbox_role role)
{
    static const int of_kilnd[] = {
        CAP_CHOWN,            /* new objects get the client's user as their owner */
        CAP_DAC_OVERRIDE,     /* access-control checks permissions, not the kernel */
        CAP_FOWNER,           /* modes, times, xattrs of other users' files */
        CAP_FSETID,           /* set-gid stays where the client has set it */
        CAP_MKNOD,            /* device files */
        CAP_SETFCAP,          /* security.capability */
        CAP_SYS_ADMIN,        /* trusted.* xattrs */
        CAP_SYS_RESOURCE,     /* the limit of descriptors, memory pressure, the file system's reserve */
        CAP_NET_BIND_SERVICE, /* calls to glusterd and bricks come from a port below 1024 */
        -1};
    static const int of_inside[] = {CAP_CHOWN,    CAP_DAC_OVERRIDE, CAP_FOWNER,       CAP_FSETID,
                                    CAP_MKNOD,    CAP_SETFCAP,      CAP_SYS_ADMIN,    CAP_SYS_RESOURCE,
                                    CAP_NET_BIND_SERVICE, CAP_SYS_PTRACE, -1}; /* kilnd's and kiln-mount's */
    static const int of_kiln_mount[] = {
        CAP_SYS_ADMIN,        /* mount(2) */
        CAP_DAC_OVERRIDE,     /* mount points, logs and statedumps in folders of other users */
        CAP_SYS_PTRACE,       /* groups of a calling process, if /proc is mounted with hidepid */
        CAP_SYS_RESOURCE,     /* the limit of descriptors, memory pressure */
        CAP_NET_BIND_SERVICE, /* calls to bricks come from a port below 1024 */
        -1};
    static const int of_healer[] = {CAP_NET_BIND_SERVICE, CAP_SYS_RESOURCE, -1};

    return role == SANDBOX_MOUNT    ? of_kiln_mount
           : role == SANDBOX_HEALER ? of_healer
           : role == SANDBOX_INSIDE ? of_inside
                                    : of_kilnd;
}
