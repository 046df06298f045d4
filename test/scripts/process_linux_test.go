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
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // gone: ""
	return string(text)
}

// children are the processes that a server has started.
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

// alive tells whether a process still runs; a zombie does not.
func alive(pid int) bool {
	match := stateLine.FindStringSubmatch(status(pid))
	return len(match) == 2 && match[1] != "Z" && match[1] != "X"
}

func environ(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
