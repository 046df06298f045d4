//go:build amd64 || arm64

package sandbox_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stepmill/stepmill/internal/sandbox"
)

// Modes of the test binary.
const (
	probeForbidden  = "forbidden"
	probeUnfiltered = "unfiltered"
)

// runProbe runs the test binary in a mode. It reports whether there is such a mode.
func runProbe(mode string) bool {
	switch mode {
	case probeForbidden:
		makeForbiddenCalls()
	case probeUnfiltered:
		runUnfiltered()
	default:
		return false
	}
	return true
}

// Every thread of a script process is without privileges, even if the server is root.
func TestProcessesHaveNoPrivileges(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{})
	mustRun(t, pool, "return [...Array(1e5).keys()].map(String).length", "")
	want := map[string]string{
		"NoNewPrivs": "1", "Seccomp": "2",
		"CapInh": none, "CapPrm": none, "CapEff": none, "CapAmb": none,
	}
	if mayDropBoundingSet(t) {
		want["CapBnd"] = none
	}
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pool.Pids()[0]))
	if err != nil || len(threads) < 2 {
		t.Fatalf("%d threads, %v", len(threads), err)
	}
	for _, thread := range threads {
		for field, value := range want {
			if got := statusField(t, thread, field); got != value {
				t.Errorf("%s: %s is %s, want %s", thread, field, got, value)
			}
		}
	}
}

// The server keeps its privileges: it may need them to listen on a low port.
func TestServerKeepsItsPrivileges(t *testing.T) {
	t.Parallel()
	state := func() string {
		const file = "/proc/thread-self/status"
		return statusField(t, file, "NoNewPrivs") + statusField(t, file, "CapBnd") + statusField(t, file, "CapEff")
	}
	before := state()
	mustRun(t, newPool(t, sandbox.Config{}), "return 1", "")
	if after := state(); after != before {
		t.Errorf("got %s, and before the first script %s", after, before)
	}
}

const none = "0000000000000000"

func statusField(t *testing.T, file, field string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`(?m)^` + field + `:\s+(\S+)$`).FindSubmatch(text)
	if match == nil {
		t.Fatalf("%s has no %s", file, field)
	}
	return string(match[1])
}

// mayDropBoundingSet reports whether this process has the capability to do so.
func mayDropBoundingSet(t *testing.T) bool {
	t.Helper()
	effective, err := strconv.ParseUint(statusField(t, "/proc/thread-self/status", "CapEff"), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return effective&(1<<unix.CAP_SETPCAP) != 0
}

func TestForbiddenSystemCallsFail(t *testing.T) {
	t.Parallel()
	output, err := exec.CommandContext(t.Context(), os.Args[0], probeForbidden).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	if len(lines) < 20 {
		t.Errorf("%d system calls were tried", len(lines))
	}
	for _, line := range lines {
		if !strings.HasSuffix(line, ": "+unix.EPERM.Error()) {
			t.Error(line)
		}
	}
}

// makeForbiddenCalls makes system calls as a child that an attacker controls could, and
// prints their errors. Without the filter, most of them would succeed or fail with
// another error.
func makeForbiddenCalls() {
	server, self := uintptr(unix.Getppid()), uintptr(unix.Getpid())
	page := uintptr(os.Getpagesize())
	empty := [1]byte{}
	address := uintptr(unsafe.Pointer(&empty[0]))
	if err := sandbox.Confine(memory); err != nil {
		fmt.Println(err)
		return
	}
	for _, call := range []struct {
		name   string
		number uintptr
		args   [4]uintptr
	}{
		{"execve", unix.SYS_EXECVE, [4]uintptr{address}},
		{"execveat", unix.SYS_EXECVEAT, [4]uintptr{0, address}},
		{"fork", unix.SYS_CLONE, [4]uintptr{uintptr(unix.SIGCHLD)}},
		{"socket", unix.SYS_SOCKET, [4]uintptr{unix.AF_INET, unix.SOCK_STREAM}},
		{"connect", unix.SYS_CONNECT, [4]uintptr{0, address, 1}},
		{"openat", unix.SYS_OPENAT, [4]uintptr{^uintptr(99), address, unix.O_RDONLY}},
		{"openat for writing", unix.SYS_OPENAT, [4]uintptr{^uintptr(99), address, unix.O_WRONLY | unix.O_CREAT}},
		{"unlinkat", unix.SYS_UNLINKAT, [4]uintptr{^uintptr(99), address}},
		{"ptrace", unix.SYS_PTRACE, [4]uintptr{unix.PTRACE_SEIZE, server}},
		{"process_vm_readv", unix.SYS_PROCESS_VM_READV, [4]uintptr{server}},
		{"pidfd_open", unix.SYS_PIDFD_OPEN, [4]uintptr{server}},
		{"kill the server", unix.SYS_KILL, [4]uintptr{server}},
		{"kill its thread", unix.SYS_TGKILL, [4]uintptr{server, server}},
		{"limit the server", unix.SYS_PRLIMIT64, [4]uintptr{server, unix.RLIMIT_CORE, 0, 0}},
		{"mount", unix.SYS_MOUNT, [4]uintptr{address, address, address}},
		{"unshare", unix.SYS_UNSHARE, [4]uintptr{unix.CLONE_NEWUSER}},
		{"setuid", unix.SYS_SETUID, [4]uintptr{0}},
		{"prctl", unix.SYS_PRCTL, [4]uintptr{unix.PR_GET_DUMPABLE}},
		{"seccomp", unix.SYS_SECCOMP, [4]uintptr{unix.SECCOMP_SET_MODE_FILTER}},
		{"bpf", unix.SYS_BPF, [4]uintptr{}},
		{"io_uring_setup", unix.SYS_IO_URING_SETUP, [4]uintptr{1}},
		{"memfd_create", unix.SYS_MEMFD_CREATE, [4]uintptr{address}},
		{"executable memory", unix.SYS_MMAP, [4]uintptr{0, page, unix.PROT_READ | unix.PROT_EXEC, unix.MAP_ANON | unix.MAP_PRIVATE}},
		{"making memory executable", unix.SYS_MPROTECT, [4]uintptr{address &^ (page - 1), page, unix.PROT_READ | unix.PROT_WRITE | unix.PROT_EXEC}},
	} {
		result, _, errno := unix.RawSyscall6(call.number, call.args[0], call.args[1], call.args[2], call.args[3], 0, 0)
		if call.name == "fork" && result == 0 && errno == 0 && uintptr(unix.Getpid()) != self {
			unix.Exit(0)
		}
		fmt.Printf("%s: %v\n", call.name, errno)
	}
}

// On a kernel without seccomp, scripts run, and the log says once what is missing.
func TestWithoutSeccomp(t *testing.T) {
	t.Parallel()
	output, err := exec.CommandContext(t.Context(), os.Args[0], probeUnfiltered).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if got := strings.Count(string(output), "without a filter for system calls"); got != 1 {
		t.Errorf("reported %d times:\n%s", got, output)
	}
	if !strings.HasSuffix(string(output), "output: 3\n") {
		t.Errorf("%s", output)
	}
}

func runUnfiltered() {
	if err := sandbox.HideSeccomp(); err != nil {
		fmt.Println(err)
		return
	}
	program, err := os.Executable()
	if err != nil {
		fmt.Println(err)
		return
	}
	pool := sandbox.New(sandbox.Config{
		Command: []string{program, "sandbox"}, Scripts: 1, Log: slog.New(slog.NewTextHandler(os.Stdout, nil)),
	})
	defer pool.Close()
	for _, input := range []string{"1", "2"} {
		outcome, err := pool.AcquireAndRun(context.Background(), sandbox.Script{Code: addOne, Input: []byte(input)})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("output: %s\n", outcome.Output)
	}
}
