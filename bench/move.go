package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// move measures the time and memory needed to move finished runs of three steps
// to another data directory.
func move(ctx context.Context, dir string, runs int) error {
	binary, err := build(ctx, dir, "./cmd/stepmill")
	if err != nil {
		return err
	}
	from, to, file := filepath.Join(dir, "data"), filepath.Join(dir, "moved"), filepath.Join(dir, "export.gz")
	server, err := start(ctx, binary, "serve", "--listen", "127.0.0.1:0", "--data-dir", from, "--log-level", "warn")
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := firstError(startConcurrently(server, threeSteps, runs), server.stop()); err != nil {
		return err
	}
	fmt.Printf("%-44s %9s %9s %9s %9s %9s\n", fmt.Sprintf("stepmill, %d runs in %.0f s", runs, time.Since(begun).Seconds()), "rows", "s", "CPU s", "rows/s", "peak MiB")
	if err := timed(ctx, "export", binary, "export", file, "--data-dir", from); err != nil {
		return err
	}
	if err := timed(ctx, "import", binary, "import", file, "--data-dir", to, "--master-key-file", filepath.Join(from, "master.key")); err != nil {
		return err
	}
	for _, name := range []string{filepath.Join(from, "stepmill.db"), file, filepath.Join(to, "stepmill.db")} {
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		fmt.Printf("%-44s %9.0f MiB\n", name, float64(info.Size())/(1<<20))
	}
	return nil
}

var rowCount = regexp.MustCompile(`(\d+) rows`)

// timed measures a command that prints how many rows it moved.
func timed(ctx context.Context, name, binary string, args ...string) error {
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Stderr = os.Stderr
	begun := time.Now()
	out, err := cmd.Output()
	took := time.Since(begun).Seconds()
	match := rowCount.FindSubmatch(out)
	if err != nil || match == nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	rows, err := strconv.ParseFloat(string(match[1]), 64)
	if err != nil {
		return err
	}
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	fmt.Printf("%-44s %9.0f %9.1f %9.1f %9.0f %9.0f\n", name, rows, took, used.Seconds(), rows/took, peak(cmd.ProcessState))
	return nil
}
