package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

const binVariable = "STEPMILL_TEST_PG_BIN"

// packageDirs are the directories, other than PATH, in which packages install
// PostgreSQL.
var packageDirs = []string{
	"/usr/lib/postgresql/*/bin",         // Debian, Ubuntu
	"/usr/pgsql-*/bin",                  // PostgreSQL's own packages for Fedora and others
	"/usr/libexec/postgresql*",          // Alpine
	"/opt/homebrew/opt/postgresql*/bin", // Homebrew
	"/usr/local/opt/postgresql*/bin",
}

// binaries returns the directory of PostgreSQL's programs.
func binaries() (string, error) {
	if dir := os.Getenv(binVariable); dir != "" {
		if !hasServer(dir) {
			return "", fmt.Errorf("%s is %s, which has no initdb and postgres", binVariable, dir)
		}
		return dir, nil
	}
	if program, err := exec.LookPath("initdb"); err == nil && hasServer(filepath.Dir(program)) {
		return filepath.Dir(program), nil
	}
	var found []string
	for _, pattern := range packageDirs {
		dirs, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		found = append(found, slices.DeleteFunc(dirs, func(dir string) bool { return !hasServer(dir) })...)
	}
	if len(found) == 0 {
		return "", errors.New("these tests need PostgreSQL 14 or newer: install the package postgresql (Debian, Ubuntu),\n" +
			"postgresql-server (Fedora), postgresql (Alpine) or postgresql@17 (Homebrew), or set the directory of initdb in " + binVariable)
	}
	return slices.MaxFunc(found, func(a, b string) int { return cmp.Compare(number(a), number(b)) }), nil
}

func hasServer(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.IsDir() {
			return false
		}
	}
	return true
}

var digits = regexp.MustCompile(`\d+`)

// number returns the first number in a text, or 0.
func number(text string) int {
	n, _ := strconv.Atoi(digits.FindString(text))
	return n
}

func majorVersion(ctx context.Context, bin string) (int, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "postgres"), "--version").Output()
	if err != nil {
		return 0, fmt.Errorf("postgres --version: %w", err)
	}
	major := number(string(out))
	if major < 14 {
		return 0, fmt.Errorf("these tests need PostgreSQL 14 or newer; %s has %s", bin, out)
	}
	return major, nil
}
