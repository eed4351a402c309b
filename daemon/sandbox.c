/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "daemon/sandbox.h"

#include <cap-ng.h>
#include <errno.h>
#include <seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <ucontext.h>
#include <unistd.h>

#include "daemon/sandbox-calls.h"
#include "event/worker.h"
#include "log/log.h"

/* glibc has no name for this si_code. */
#ifndef SYS_SECCOMP
#define SYS_SECCOMP 1
#endif

enum { CALLS_MAX = 1024 }; /* numbers of system calls; Linux 6.18 has 470 on each architecture here */

/* Numbers of the calls that libseccomp knows by name: these fail with EPERM, all others with ENOSYS. Written
 * before the filter is there. */
static bool is_known[CALLS_MAX];
static atomic_uint refused[CALLS_MAX], reported[CALLS_MAX];
static atomic_int wake_fd = -1; /* an eventfd that the handler of SIGSYS writes */

static const char *const mode_names[] = {[SANDBOX_ON] = "on", [SANDBOX_LOG] = "log", [SANDBOX_OFF] = "off"};

int
sandbox_mode_parse(const char *text, enum sandbox_mode *mode)
{
    for (size_t i = 0; i < sizeof mode_names / sizeof mode_names[0]; i++) {
        if (strcmp(text, mode_names[i]) == 0) {
            *mode = (enum sandbox_mode)i;
            return 0;
        }
    }
    return -EINVAL;
}

const char *
sandbox_mode_name(enum sandbox_mode mode)
{
    return mode_names[mode];
}

/* ---- capabilities ---------------------------------------------------------------------------- */

/* Returns the capability sets that keep a wanted capability: the sets that have the capability now. Without
 * root, programs get their capabilities by the inheritable set (and the ambient set, which the kernel keeps
 * along with it). */
static unsigned
sets_to_keep(enum sandbox_role role, unsigned capability, bool may_bound)
{
    unsigned sets = may_bound ? CAPNG_BOUNDING_SET : 0;

    if (!capng_have_capability(CAPNG_PERMITTED, capability))
        return 0;
    if (role == SANDBOX_PROGRAMS && capng_have_capability(CAPNG_INHERITABLE, capability))
        sets |= CAPNG_INHERITABLE;
    return sets | CAPNG_EFFECTIVE | CAPNG_PERMITTED;
}

/* Removes all capabilities but the wanted ones, also from the bounding set if CAP_SETPCAP allows. */
static int
drop_capabilities(enum sandbox_role role, struct reason *why)
{
    const int *wanted = sandbox_capabilities(role);
    unsigned kept[CAP_LAST_CAP + 1] = {0};

    if (capng_get_caps_process() < 0)
        return reason_set(why, -EIO, "the capabilities of this process cannot be read");
    bool may_bound = capng_have_capability(CAPNG_EFFECTIVE, CAP_SETPCAP);
    capng_select_t sets = may_bound ? CAPNG_SELECT_BOTH : CAPNG_SELECT_CAPS;

    for (const int *c = wanted; *c >= 0; c++)
        kept[*c] = sets_to_keep(role, (unsigned)*c, may_bound);
    capng_clear(sets);
    for (const int *c = wanted; *c >= 0; c++) {
        if (kept[*c] && capng_update(CAPNG_ADD, kept[*c], (unsigned)*c) < 0)
            return reason_set(why, -EINVAL, "capability %d is unknown to libcap-ng", *c);
    }
    int err = capng_apply(sets);
    return err ? reason_set(why, -EPERM, "capabilities cannot be given up (step %d of libcap-ng)", -err) : 0;
}

/* ---- the filter ------------------------------------------------------------------------------ */

/* Adds the rules of a table. A name that the library does not know is of a newer kernel, or of another
 * architecture: the call has a number in the table, or does not exist here. */
static int
allow_calls(scmp_filter_ctx ctx, const struct sandbox_call *call)
{
    int err = 0;

    for (; call->name && !err; call++) {
        int number = seccomp_syscall_resolve_name(call->name);

        if (number == __NR_SCMP_ERROR)
            number = call->number;
        if (number < 0)
            continue;
        if (call->check.op == 0)
            err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, number, 0);
        else
            err = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, number, 1,
                                   (struct scmp_arg_cmp){call->argument, call->check.op,
                                                         call->check.mask_or_value, call->check.value});
        if (err == -EEXIST) /* another table has the call already */
            err = 0;
    }
    return err;
}

/* The calls that libseccomp knows. */
static void
learn_names(void)
{
    for (int number = 0; number < CALLS_MAX; number++) {
        char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);

        is_known[number] = name != NULL;
        free(name);
    }
}

static bool
is_in_table(int number, const struct sandbox_call *call)
{
    for (; call->name; call++) {
        int found = seccomp_syscall_resolve_name(call->name);

        if (number == (found == __NR_SCMP_ERROR ? call->number : found))
            return true;
    }
    return false;
}

static bool
is_listed(int number, const struct sandbox_call *const *tables)
{
    for (; *tables; tables++) {
        if (is_in_table(number, *tables))
            return true;
    }
    return false;
}

/* Known calls fail with EPERM. A known call with rules about its arguments fails with the default error. */
static int
deny_known_calls(scmp_filter_ctx ctx, const struct sandbox_call *const *tables)
{
    int err = 0;

    for (int number = 0; number < CALLS_MAX && !err; number++) {
        if (is_known[number] && !is_listed(number, tables))
            err = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), number, 0);
    }
    return err;
}

/* glibc makes threads and processes by clone3(2), whose flags are in memory, where no filter can read them.
 * After ENOSYS glibc uses clone(2). This filter does not log, unlike the filter of the programs. */
static int
refuse_clone3(void)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
    int err = ctx ? seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0) : -ENOMEM;

    err = err ? err : seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
    err = err ? err : seccomp_load(ctx);
    if (ctx)
        seccomp_release(ctx);
    return err;
}

static uint32_t
default_action(enum sandbox_role role, enum sandbox_mode mode)
{
    if (mode == SANDBOX_LOG)
        return SCMP_ACT_LOG;
    return role == SANDBOX_PROGRAMS || !SANDBOX_CAN_TRAP ? SCMP_ACT_ERRNO(ENOSYS) : SCMP_ACT_TRAP;
}

static int
load_filter(enum sandbox_role role, enum sandbox_mode mode)
{
    const struct sandbox_call *const *tables = sandbox_tables(role);
    uint32_t action = default_action(role, mode);
    scmp_filter_ctx ctx = seccomp_init(action);
    int err = ctx ? 0 : -ENOMEM;

    for (size_t i = 0; tables[i] && !err; i++)
        err = allow_calls(ctx, tables[i]);
    /* The filter of clone3 has refused the call already, or the call shall run (SANDBOX_LOG). */
    err = err ? err : seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(clone3), 0);
    if (!err && action == SCMP_ACT_ERRNO(ENOSYS))
        err = deny_known_calls(ctx, tables);
    err = err ? err : seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    err = err ? err : seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1);
    /* no slower speculation for the filter's sake */
    err = err ? err : seccomp_attr_set(ctx, SCMP_FLTATR_CTL_SSB, 1);
    err = err ? err : seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a binary tree */
    if (!err && action == SCMP_ACT_ERRNO(ENOSYS))
        err = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_LOG, 1);
    if (!err && mode != SANDBOX_LOG)
        err = refuse_clone3();
    err = err ? err : seccomp_load(ctx);
    if (ctx)
        seccomp_release(ctx);
    return err;
}

/* ---- refusals -------------------------------------------------------------------------------- */

/* Puts -`err` into the register of the call's result. */
static void
set_result(ucontext_t *context, int err)
{
#if defined(__x86_64__)
    context->uc_mcontext.gregs[REG_RAX] = -err;
#elif defined(__aarch64__)
    context->uc_mcontext.regs[0] = (unsigned long long)-err;
#else
    (void)context;
    (void)err;
#endif
}

static void
call_refused(int number, siginfo_t *info, void *context)
{
    const uint64_t one = 1;
    int saved = errno, call = info->si_syscall, fd = atomic_load(&wake_fd);
    bool is_in_range = call >= 0 && call < CALLS_MAX;

    (void)number;
    if (info->si_code != SYS_SECCOMP) /* another process has sent the signal */
        return;
    set_result(context, is_in_range && is_known[call] ? EPERM : ENOSYS);
    if (is_in_range)
        atomic_fetch_add(&refused[call], 1);
    if (fd >= 0) {
        ssize_t n = write(fd, &one, sizeof one);

        (void)n; /* fails if the eventfd is full, and then the worker is awake */
    }
    errno = saved;
}

static int
catch_refusals(void)
{
    struct sigaction act = {.sa_sigaction = call_refused, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigset_t sys;

    sigemptyset(&sys);
    sigaddset(&sys, SIGSYS);
    if (sigprocmask(SIG_UNBLOCK, &sys, NULL) < 0 || sigaction(SIGSYS, &act, NULL) < 0)
        return -errno;
    return 0;
}

static void
report_call(int number, unsigned times)
{
    char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);

    log_event(
        LOG_ERROR, NULL, "sandbox-refused",
        "system call %s (number %d) was refused, because the sandbox (--sandbox) does not allow the call; "
        "refusals until now: %u",
        name ? name : "of a newer kernel", number, times);
    free(name);
}

uint64_t
sandbox_refusals(void)
{
    uint64_t sum = 0;

    for (int number = 0; number < CALLS_MAX; number++)
        sum += atomic_load_explicit(&refused[number], memory_order_relaxed);
    return sum;
}

/* Each call is reported when it is refused first, and once more at the end. */
static void
report_calls(bool is_end)
{
    for (int number = 0; number < CALLS_MAX; number++) {
        unsigned times = atomic_load(&refused[number]), before = atomic_load(&reported[number]);

        if (times > before && (is_end || before == 0) &&
            atomic_compare_exchange_strong(&reported[number], &before, times))
            report_call(number, times);
    }
}

void
sandbox_report(void)
{
    report_calls(true);
}

static void
wake_arrived(struct event_source *src, uint32_t events)
{
    uint64_t count;

    (void)events;
    while (read(src->fd, &count, sizeof count) > 0)
        report_calls(false);
}

static struct event_source wake = {.fd = -1, .fn = wake_arrived};

void
sandbox_watch(void)
{
    wake.fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    int err = wake.fd < 0 ? -errno : event_add(&wake, EPOLLIN);

    if (!err) {
        atomic_store(&wake_fd, wake.fd);
        return;
    }
    log_event(LOG_ERROR, NULL, "sandbox-watch", "refused system calls are logged at the end only: %s",
              strerror(-err));
    if (wake.fd >= 0)
        close(wake.fd);
    wake.fd = -1;
}

void
sandbox_unwatch(void)
{
    if (atomic_exchange(&wake_fd, -1) < 0)
        return;
    event_remove(&wake); /* the descriptor stays open, because a handler of SIGSYS may still write to it */
}

/* ---- start ----------------------------------------------------------------------------------- */

int
sandbox_keep_capabilities(bool keeps)
{
    if (capng_get_caps_process() < 0)
        return -EIO;
    for (int c = 0; c <= CAP_LAST_CAP; c++) {
        bool is_kept = keeps && capng_have_capability(CAPNG_PERMITTED, (unsigned)c);
        capng_act_t act = is_kept ? CAPNG_ADD : CAPNG_DROP;

        if (capng_update(act, CAPNG_INHERITABLE | CAPNG_AMBIENT, (unsigned)c) < 0)
            return -EINVAL;
    }
    return capng_apply(CAPNG_SELECT_CAPS | CAPNG_SELECT_AMBIENT) ? -EPERM : 0;
}

int
sandbox_take_over(void)
{
    learn_names();
    int err = catch_refusals();
    return err ? err : sandbox_keep_capabilities(false);
}

int
sandbox_enter(enum sandbox_role role, enum sandbox_mode mode, struct reason *why)
{
    if (mode == SANDBOX_OFF)
        return 0;
    learn_names();
    int err = mode == SANDBOX_LOG ? 0 : drop_capabilities(role, why);
    if (err)
        return err;
    err = role == SANDBOX_PROGRAMS ? 0 : catch_refusals();
    err = err ? err : load_filter(role, mode);
    if (err)
        return reason_set(why, err,
                          "the kernel or its supervisor does not take the filter of system calls: %s",
                          strerror(-err));
    return 0;
}
