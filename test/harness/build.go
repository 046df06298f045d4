package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
)

const (
	command = "github.com/stepmill/stepmill/cmd/stepmill"
	// binVariable names a directory in which test processes share the binaries they
	// build. An existing binary is not rebuilt, so every run of the tests needs a new
	// directory.
	binVariable = "STEPMILL_TEST_BIN"
)

// program is a binary that is built on first use.
type program struct {
	name  string // of its directory
	tags  string
	plain bool // never with the race detector
	once  sync.Once
	temp  string // removed at the end; empty if the binary is shared
	path  string
	err   error
}

var (
	productBuild = program{name: "product"}
	// failpointBuild dies, panics or pauses at failpoints.
	failpointBuild = program{name: "failpoint", tags: "failpoint"}
	plainBuild     = program{name: "product", plain: true}
)

// Binary returns the path of the program under test. It is built with the race
// detector if the tests are.
func Binary() (string, error) { return productBuild.binary() }

// FailpointBinary returns the path of the program that is built with failpoints.
func FailpointBinary() (string, error) { return failpointBuild.binary() }

// PlainBinary returns the path of the program under test, always built without the race
// detector, which multiplies the memory of a process.
func PlainBinary() (string, error) {
	if !raceEnabled {
		return Binary()
	}
	return plainBuild.binary()
}

// race reports whether the program is built with the race detector.
func (p *program) race() bool { return raceEnabled && !p.plain }

func (p *program) binary() (string, error) {
	p.once.Do(func() { p.path, p.err = p.locate() })
	return p.path, p.err
}

// locate builds the binary, or finds one that another process built.
func (p *program) locate() (string, error) {
	shared := os.Getenv(binVariable)
	if shared == "" {
		dir, err := os.MkdirTemp("", "stepmill-test-")
		if err != nil {
			return "", err
		}
		p.temp = dir
		return p.build(dir)
	}
	name := p.name
	if p.race() {
		name += "-race"
	}
	dir, err := filepath.Abs(filepath.Join(shared, name))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(dir, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if path := filepath.Join(dir, executable()); exists(path) {
		return path, nil
	}
	return p.build(dir)
}

// build compiles the program into a directory.
func (p *program) build(dir string) (string, error) {
	path := filepath.Join(dir, executable())
	args := []string{"build", "-buildvcs=false", "-tags", p.tags, "-o", path}
	if p.race() {
		// Instrumenting the transpiled SQLite engine makes a server several times slower
		// and finds no races of ours.
		args = append(args, "-race", "-gcflags=modernc.org/...=-race=false")
	}
	out, err := exec.Command("go", append(args, command)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", command, err, out)
	}
	return path, nil
}

// remove deletes a binary that is not shared.
func (p *program) remove() {
	if p.temp != "" {
		_ = os.RemoveAll(p.temp)
	}
}

func executable() string {
	if runtime.GOOS == "windows" {
		return "stepmill.exe"
	}
	return "stepmill"
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
