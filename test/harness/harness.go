// Package harness runs the real binary for the black-box tests. It builds the binary
// once per test process, or once for all of them, runs servers and commands, calls the
// API over HTTP and records what the processes print. It does not know what is tested.
package harness

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/lane"
)

// Main runs the tests of a package and removes the binaries they built. With -short it
// runs none.
func Main(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("black-box tests run in make test")
		return
	}
	defer func() {
		for _, p := range []*program{&productBuild, &failpointBuild, &plainBuild} {
			p.remove()
		}
	}()
	switch os.Getenv(databaseVariable) {
	case "", "sqlite", "postgres":
	default:
		panic(databaseVariable + " must be sqlite or postgres")
	}
	defer printSkipped()
	m.Run()
}

// SetParallel sets how many parallel tests run at a time, unless -parallel does. Tests
// that mostly wait can be more than there are CPUs. It must be called before Main.
func SetParallel(tests int) {
	if err := flag.Set("test.parallel", strconv.Itoa(tests)); err != nil {
		panic(err)
	}
}

// Environ returns the environment for processes under test: that of the tests without
// Stepmill's settings, plus the given ones.
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

// Seed returns the seed for the random choices of a test: the one from the environment,
// a new one in the long lane, and otherwise always the same.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := lane.Seed()
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
	}
	t.Logf("seed %d (repeat with %s=%[1]d)", seed, seedVariable)
	return seed
}

// Random returns a random source for a seed and a stream number.
func Random(seed uint64, stream int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(stream))) }

// Result is the result of a command.
type Result struct {
	Stdout, Stderr string
	Code           int
	Took           time.Duration
}

// Run runs a command and waits until it exits.
func Run(t testing.TB, env []string, args ...string) Result {
	t.Helper()
	return productBuild.run(t, env, args)
}

// RunWithFailpoint runs a command of the binary that is built with failpoints. See
// Options.Failpoint.
func RunWithFailpoint(t testing.TB, failpoint string, args ...string) Result {
	t.Helper()
	return failpointBuild.run(t, []string{"FP=" + failpoint}, args)
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
	started := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	watchdog := time.AfterFunc(Timeout, func() { _ = cmd.Process.Kill() })
	err = cmd.Wait()
	took := time.Since(started)
	if !watchdog.Stop() {
		t.Fatalf("stepmill %s did not exit\n%s%s", strings.Join(args, " "), stdout.String(), stderr.String())
	}
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return Result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode(), took}
}
