//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// rule allows a system call. If mask is not 0, the bits of its argument under mask
// must have the given value.
type rule struct {
	number      uint32
	arg         uint32
	mask, value uint32
}

// rules returns the system calls that a process needs to run scripts, frequent ones
// first: those of the Go runtime, and reading and writing the pipes. A few are only
// made by the C library, which the race detector needs.
func rules() []rule {
	return []rule{
		{number: unix.SYS_FUTEX},
		{number: unix.SYS_READ},
		{number: unix.SYS_WRITE},
		{number: unix.SYS_NANOSLEEP},
		{number: unix.SYS_CLOCK_NANOSLEEP},
		{number: unix.SYS_EPOLL_PWAIT},
		{number: unix.SYS_SCHED_YIELD},
		{number: unix.SYS_MADVISE},
		{number: unix.SYS_MUNMAP},
		{number: unix.SYS_MMAP, arg: 2, mask: unix.PROT_EXEC},
		{number: unix.SYS_MPROTECT, arg: 2, mask: unix.PROT_EXEC},
		{number: unix.SYS_GETPID},
		{number: unix.SYS_GETTID},
		// The runtime interrupts its threads with signals. The server runs as the same
		// user, so signals to other processes must fail.
		{number: unix.SYS_TGKILL, mask: ^uint32(0), value: uint32(os.Getpid())},
		{number: unix.SYS_RT_SIGRETURN},
		{number: unix.SYS_RT_SIGPROCMASK},
		{number: unix.SYS_RT_SIGACTION},
		{number: unix.SYS_SIGALTSTACK},
		{number: unix.SYS_CLONE, mask: unix.CLONE_THREAD, value: unix.CLONE_THREAD},
		{number: unix.SYS_SET_ROBUST_LIST},
		{number: unix.SYS_RSEQ},
		{number: unix.SYS_CLOCK_GETTIME},
		{number: unix.SYS_GETRANDOM},
		{number: unix.SYS_RESTART_SYSCALL},
		{number: unix.SYS_CLOSE},
		{number: unix.SYS_EXIT},
		{number: unix.SYS_EXIT_GROUP},
	}
}

// Offsets in the data that a filter sees of a system call. Both architectures are
// little-endian.
const numberOffset, archOffset, argsOffset, argSize = 0, 4, 16, 8

const (
	deny     = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	fallBack = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

// filter returns a program that denies every system call without a rule.
func filter(rules []rule) []unix.SockFilter {
	program := []unix.SockFilter{
		load(archOffset),
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: arch()},
		verdict(deny),
		load(numberOffset),
		// The C library then uses clone, whose flags can be checked.
		jumpUnless(unix.SYS_CLONE3, 1),
		verdict(fallBack),
	}
	for _, r := range rules {
		if r.mask == 0 {
			program = append(program, jumpUnless(r.number, 1), verdict(unix.SECCOMP_RET_ALLOW))
			continue
		}
		program = append(program,
			jumpUnless(r.number, 5),
			load(argsOffset+argSize*r.arg),
			unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: r.mask},
			jumpUnless(r.value, 1),
			verdict(unix.SECCOMP_RET_ALLOW),
			verdict(deny))
	}
	return append(program, verdict(deny))
}

func arch() uint32 {
	if runtime.GOARCH == "arm64" {
		return unix.AUDIT_ARCH_AARCH64
	}
	return unix.AUDIT_ARCH_X86_64
}

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

// jumpUnless skips instructions unless the loaded value is the given one.
func jumpUnless(value uint32, skip uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: skip, K: value}
}

func verdict(action uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
}

// canFilter reports whether the kernel can filter the system calls of all threads: only
// then does it notice that there is no program.
func canFilter() bool { return seccomp(nil) == unix.EFAULT }

// filterSystemCalls installs the filter in all threads, if the kernel has filters.
func filterSystemCalls() error {
	if !canFilter() {
		return nil
	}
	return install(filter(rules()))
}

// install installs a filter in all threads, for good.
func install(program []unix.SockFilter) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// The kernel requires it of this thread, and sets it in the others.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if errno := seccomp(&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}); errno != 0 {
		return fmt.Errorf("filter system calls: %w", errno)
	}
	return nil
}

func seccomp(program *unix.SockFprog) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(program))) //nolint:gosec // the kernel takes an address
	return errno
}
