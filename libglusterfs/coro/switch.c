/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* switch: see switch.h. The saved frame of a switch, lowest address first:
 *
 *   x86-64    mxcsr and x87 control word (8 bytes), r15, r14, r13, r12, rbx, rbp, resume address
 *   aarch64   x19 .. x28, x29 (frame), x30 (resume address), d8 .. d15 */
#include "coro/switch.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef CORO_UCONTEXT

void
switch_point_init(struct switch_point *at, char *low, char *top, void (*entry)(void))
{
    memset(at, 0, sizeof(*at));
    if (getcontext(&at->context) != 0)
        abort(); /* does not fail on any supported system */
    at->context.uc_stack.ss_sp = low;
    at->context.uc_stack.ss_size = (size_t)(top - low);
    at->context.uc_link = NULL;
    makecontext(&at->context, entry, 0);
}

void
switch_stack(struct switch_point *from, const struct switch_point *to)
{
    if (swapcontext(&from->context, &to->context) != 0)
        abort();
}

#elif defined(__x86_64__)

/* Continues with a jump instead of a return, because a return without a matching call is always
 * mispredicted. */
__asm__(".text\n"
        ".globl switch_stack\n"
        ".type switch_stack, @function\n"
        ".p2align 4\n"
        "switch_stack:\n"
        "    .cfi_startproc\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    subq $8, %rsp\n"
        "    stmxcsr (%rsp)\n"
        "    fnstcw 4(%rsp)\n"
        "    movq %rsp, (%rdi)\n"
        "    movq (%rsi), %rsp\n"
        "    ldmxcsr (%rsp)\n"
        "    fldcw 4(%rsp)\n"
        "    addq $8, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    popq %rcx\n"
        "    jmpq *%rcx\n"
        "    .cfi_endproc\n"
        ".size switch_stack, . - switch_stack\n");

void
switch_point_init(struct switch_point *at, char *low, char *top, void (*entry)(void))
{
    uint64_t *sp = (uint64_t *)(void *)((uintptr_t)top & ~(uintptr_t)15);

    (void)low;
    *--sp = 0; /* entry's return address: as after a call, it lies 8 bytes off a multiple of 16 */
    *--sp = (uint64_t)(uintptr_t)entry;
    for (int i = 0; i < 6; i++)
        *--sp = 0;
    *--sp = 0;
    __asm__ volatile("stmxcsr (%0)\n\tfnstcw 4(%0)" : : "r"(sp) : "memory");
    at->sp = sp;
}

#else /* aarch64 */

__asm__(".text\n"
        ".globl switch_stack\n"
        ".type switch_stack, %function\n"
        ".p2align 4\n"
        "switch_stack:\n"
        "    .cfi_startproc\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp, #0]\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    ldr x9, [x1]\n"
        "    mov sp, x9\n"
        "    ldp x19, x20, [sp, #0]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size switch_stack, . - switch_stack\n");

void
switch_point_init(struct switch_point *at, char *low, char *top, void (*entry)(void))
{
    uint64_t *sp = (uint64_t *)(void *)(((uintptr_t)top & ~(uintptr_t)15) - 160);

    (void)low;
    memset(sp, 0, 160);
    sp[11] = (uint64_t)(uintptr_t)entry; /* x30; x29 is 0: the chain of frames ends here */
    at->sp = sp;
}

#endif
