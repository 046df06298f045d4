// Package harness starts the real binary for the black-box tests: it builds it
// once per test process, runs servers and commands, speaks to the API over HTTP
// and keeps what the processes print. It does not know what is tested.
package harness

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const command = "github.com/stepmill/stepmill/cmd/stepmill"

// program is one that this test process builds when it is first asked for.
type program struct {
	tags string
	once sync.Once
	dir  string
	path string
	err  error
}

var (
	product program
	// fragile dies, panics or pauses where it is told to.
	fragile = program{tags: "failpoint"}
)

// Main runs the tests of a package and removes the binaries they built.
func Main(m *testing.M) {
	defer func() {
		for _, p := range []*program{&product, &fragile} {
			if p.dir != "" {
				_ = os.RemoveAll(p.dir)
			}
		}
	}()
	switch os.Getenv(databaseVariable) {
	case "", "sqlite", "postgres":
	default:
		panic(databaseVariable + " is sqlite or postgres")
	}
	defer report()
	m.Run()
}

// Binary is the path of the program under test. It has the race detector in it
// when the tests have.
func Binary() (string, error) { return product.binary() }

func (p *program) binary() (string, error) {
	p.once.Do(func() { p.path, p.err = p.build() })
	return p.path, p.err
}

func (p *program) build() (string, error) {
	dir, err := os.MkdirTemp("", "stepmill-test-")
	if err != nil {
		return "", err
	}
	p.dir = dir
	path := filepath.Join(dir, "stepmill")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	args := []string{"build", "-buildvcs=false", "-tags", p.tags, "-o", path}
	if raceEnabled {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, command)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", command, err, out)
	}
	return path, nil
}

// Environ is the environment of the processes under test: that of the tests
// without settings of Stepmill, and with the given ones.
func Environ(set ...string) []string {
	var env []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "STEPMILL_") && !strings.HasPrefix(entry, "GORACE=") && !strings.HasPrefix(entry, "FP=") && !strings.HasPrefix(entry, "FP_") {
			env = append(env, entry)
		}
	}
	// A program with the race detector otherwise takes a second to exit.
	return append(append(env, "GORACE=atexit_sleep_ms=0"), set...)
}

const seedVariable = "CRASH_SEED"

// Seed is where the random choices of a test come from: new every time, or the
// one in the environment.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
	}
	t.Logf("seed %d (repeat with %s=%[1]d)", seed, seedVariable)
	return seed
}

// Random makes a source of random choices from a seed and a stream's number.
func Random(seed uint64, stream int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(stream))) }

// Result is how a command ended.
type Result struct {
	Stdout, Stderr string
	Code           int
	Took           time.Duration
}

// Run runs a command of the binary to its end, which must come within a minute.
func Run(t testing.TB, env []string, args ...string) Result {
	t.Helper()
	return product.run(t, env, args)
}

// RunFailing does the same with a binary that fails where it is told to: see
// Options.Fail.
func RunFailing(t testing.TB, fail string, args ...string) Result {
	t.Helper()
	return fragile.run(t, []string{"FP=" + fail}, args)
}

func (p *program) run(t testing.TB, env, args []string) Result {
	t.Helper()
	path, err := p.binary()
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = Environ(env...), &stdout, &stderr
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	guard := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	err = cmd.Wait()
	took := time.Since(begun)
	if !guard.Stop() {
		t.Fatalf("stepmill %s did not end\n%s%s", strings.Join(args, " "), stdout.String(), stderr.String())
	}
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return Result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode(), took}
}

// UnderRace tells whether the servers are built with the race detector.
func UnderRace() bool { return raceEnabled }
