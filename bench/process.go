package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// process is a server started for the benchmark.
type process struct {
	cmd     *exec.Cmd
	address string
	key     string
	ready   time.Duration
}

// launched holds all servers that were started, so that none outlives the
// benchmark.
var launched []*process

func killAll() {
	for _, p := range launched {
		_ = p.cmd.Process.Kill() // it may have ended already
	}
}

// build compiles a command of this module and returns the path of the binary.
func build(ctx context.Context, dir, pkg string) (string, error) {
	target := filepath.Join(dir, filepath.Base(pkg))
	cmd := exec.CommandContext(ctx, "go", "build", "-o", target, pkg)
	cmd.Stderr = os.Stderr
	return target, cmd.Run()
}

// start starts a server and waits until it prints its address and, if it is
// Stepmill on a new directory, its first key.
func start(ctx context.Context, binary string, args ...string) (*process, error) {
	return launch(ctx, true, binary, args...)
}

// restart starts Stepmill on existing data, whose key was printed before.
func restart(ctx context.Context, binary string, args ...string) (*process, error) {
	return launch(ctx, false, binary, args...)
}

func launch(ctx context.Context, awaitKey bool, binary string, args ...string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, binary, args...)}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	launched = append(launched, p)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		line := lines.Text()
		if _, address, found := strings.Cut(line, "ready at http://"); found {
			p.address, p.ready = address, time.Since(begun)
			if !awaitKey || !strings.HasPrefix(line, "Stepmill") {
				return p, nil
			}
		}
		if strings.HasPrefix(strings.TrimSpace(line), "smk_") {
			p.key = strings.TrimSpace(line)
			return p, nil
		}
	}
	return nil, fmt.Errorf("%s did not start", binary)
}

func addresses(servers []*process) []string {
	list := make([]string, len(servers))
	for i, server := range servers {
		list[i] = server.address
	}
	return list
}

// stop ends the server.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	_ = p.cmd.Wait() // the exit status of a server stopped by a signal does not matter
	return nil
}

// cpu returns the CPU time used so far.
func (p *process) cpu() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	var user, system int64
	_, _ = fmt.Sscan(fields[11], &user)
	_, _ = fmt.Sscan(fields[12], &system)
	const ticksPerSecond = 100
	return time.Duration(user+system) * time.Second / ticksPerSecond
}

// memory returns the resident memory in MiB.
func (p *process) memory() float64 { return p.status("VmRSS:") }

// peakMemory returns the most resident memory so far, in MiB.
func (p *process) peakMemory() float64 { return p.status("VmHWM:") }

// status returns a size that the kernel knows of the process, in MiB.
func (p *process) status(name string) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(status), name)
	var kib float64
	_, _ = fmt.Sscan(after, &kib)
	return kib / 1024
}
