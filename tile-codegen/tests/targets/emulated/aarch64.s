// Calls a kernel as a program without any library: maps the file that the first argument names at MEMORY, and calls `kernel`
// with what the file begins with, 0 in the last place but one. Ends with 0; with 1 where the file can't be mapped, with 2 where the kernel left the stack
// pointer or a register that isn't its own otherwise than it found them (Procedure Call Standard for the Arm 64-bit
// Architecture, 6.1).
    .text
    .globl _start
_start:
    ldr x1, [sp, #16]
    mov x0, #-100                   // AT_FDCWD
    mov x2, #2                      // O_RDWR
    mov x3, #0
    mov x8, #56                     // openat
    svc #0
    mov x19, x0
    mov x1, #0
    mov x2, #2                      // SEEK_END
    mov x8, #62                     // lseek
    svc #0
    mov x1, x0
    movz x20, #0x10, lsl #32        // MEMORY
    mov x0, x20
    mov x2, #3                      // PROT_READ | PROT_WRITE
    mov x3, #0x11                   // MAP_SHARED | MAP_FIXED
    mov x4, x19
    mov x5, #0
    mov x8, #222                    // mmap
    svc #0
    mov x21, #1
    cmp x0, x20
    b.ne 1f
    mov x21, #2
    mov x22, sp
    mov x28, x20
    fmov d8, x20
    fmov d15, x20
    ldp x0, x1, [x20]
    ldp x2, x3, [x20, #16]
    mov x4, #0
    ldr x5, [x20, #32]
    bl kernel
    mov x9, sp
    cmp x9, x22
    b.ne 1f
    cmp x28, x20
    b.ne 1f
    fmov x9, d8
    cmp x9, x20
    b.ne 1f
    fmov x9, d15
    cmp x9, x20
    b.ne 1f
    mov x21, #0
1:
    mov x0, x21
    mov x8, #93                     // exit
    svc #0
