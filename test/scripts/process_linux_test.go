package scripts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	parentLine = regexp.MustCompile(`(?m)^PPid:\s+(\d+)$`)
	stateLine  = regexp.MustCompile(`(?m)^State:\s+(\w)`)
)

func status(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // "" if it has exited
	return string(text)
}

// children returns the child processes of a process.
func children(t *testing.T, parent int) []int {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, path := range paths {
		pid, _ := strconv.Atoi(strings.Split(path, "/")[2])
		if match := parentLine.FindStringSubmatch(status(pid)); len(match) == 2 && match[1] == strconv.Itoa(parent) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// isRunning reports whether a process still runs. A zombie does not.
func isRunning(pid int) bool {
	match := stateLine.FindStringSubmatch(status(pid))
	return len(match) == 2 && match[1] != "Z" && match[1] != "X"
}

// processorTime returns the user CPU time of a process in hundredths of a second.
func processorTime(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	return user
}

func environ(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
