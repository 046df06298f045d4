package receivers_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stepmill/stepmill/test/lane"
	"github.com/stepmill/stepmill/test/receivers"
)

// verifiers returns the samples that can run on this machine.
func verifiers(t *testing.T) map[string]func(*testing.T, []delivery) []bool {
	t.Helper()
	compiled := t.TempDir()
	compile := exec.CommandContext(t.Context(), node(t), "node_modules/typescript/bin/tsc", "--strict", "--target", "es2022",
		"--module", "nodenext", "--types", "node", "--skipLibCheck", "--outDir", compiled, "verify.ts")
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("compile verify.ts: %v\n%s", err, out)
	}
	if err := os.WriteFile(compiled+"/package.json", []byte(`{"type":"module"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	found := map[string]func(*testing.T, []delivery) []bool{
		"verify.go": func(_ *testing.T, cases []delivery) []bool { return verifyEach(cases, verifyGo) },
		"verify.ts": func(t *testing.T, cases []delivery) []bool { return verifyWith(t, cases, node(t), "run.mjs", compiled) },
	}
	if path, err := exec.LookPath("python3"); err == nil {
		found["verify.py"] = func(t *testing.T, cases []delivery) []bool { return verifyWith(t, cases, path, "-B", "run.py") }
	} else {
		t.Log("python3 is missing: skipping verify.py")
	}
	_, noShell := exec.LookPath("sh")
	_, noOpenSSL := exec.LookPath("openssl")
	if noShell == nil && noOpenSSL == nil {
		found["verify.sh"] = func(t *testing.T, cases []delivery) []bool {
			return verifyEach(cases, func(d delivery) bool { return verifyShell(t, d) })
		}
	} else {
		t.Log("sh or openssl is missing: skipping verify.sh")
	}
	return found
}

func verifyEach(cases []delivery, verify func(delivery) bool) []bool {
	out := make([]bool, len(cases))
	for i, d := range cases {
		out[i] = verify(d)
	}
	return out
}

func verifyGo(d delivery) bool {
	header := http.Header{}
	for name, value := range d.Headers {
		header.Set(name, value)
	}
	return receivers.Verify(d.Secret, header, d.Body, time.Unix(d.Now, 0)) == nil
}

func verifyShell(t *testing.T, d delivery) bool {
	t.Helper()
	h := d.Headers
	cmd := exec.CommandContext(t.Context(), "sh", "verify.sh", d.Secret, h["webhook-id"], h["webhook-timestamp"], h["webhook-signature"])
	cmd.Env = append(os.Environ(), "NOW="+strconv.FormatInt(d.Now, 10))
	cmd.Stdin = bytes.NewReader(d.Body)
	out, err := cmd.CombinedOutput()
	var rejected *exec.ExitError
	if err != nil && (!errors.As(err, &rejected) || rejected.ExitCode() != 1) || len(out) > 0 {
		t.Errorf("verify.sh: %v: %s", err, out)
	}
	return err == nil
}

// verifyWith sends all cases to a program and reads its verdicts.
func verifyWith(t *testing.T, cases []delivery, program string, args ...string) []bool {
	t.Helper()
	input, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), os.Stderr
	out, err := cmd.Output()
	var verdicts []bool
	if err == nil {
		err = json.Unmarshal(out, &verdicts)
	}
	if err != nil || len(verdicts) != len(cases) {
		t.Fatalf("%s: %v: %s", program, err, out)
	}
	return verdicts
}

// The samples accept deliveries of the real service, even during a secret rotation and
// with a slightly wrong clock, and reject forgeries and replays.
func TestSamples(t *testing.T) {
	t.Parallel()
	type expectation struct {
		name string
		want bool
	}
	var cases []delivery
	var wants []expectation
	add := func(name string, d delivery, want bool) {
		cases, wants = append(cases, d), append(wants, expectation{name, want})
	}
	for i, d := range deliveries(t) {
		add("genuine", d, true)
		add("with a signature of another secret", d.withHeaders("webhook-signature", "v1,AAAA "+d.Headers["webhook-signature"]), true)
		add("with a signature of another version", d.withHeaders("webhook-signature", d.Headers["webhook-signature"]+" v1a,AAAA"), true)
		seconds, _ := strconv.ParseInt(d.Headers["webhook-timestamp"], 10, 64)
		for offset, want := range map[int64]bool{-301: false, -300: true, 300: true, 301: false} {
			at := d
			at.Now = seconds + offset
			add("verified "+strconv.FormatInt(offset, 10)+" s later", at, want)
		}
		other := d
		other.Secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
		add("another secret", other, false)
		if i > 0 && !lane.Long() {
			continue // one delivery is enough to forge
		}
		for name, forged := range forgeries(d) {
			add(name, forged, false)
		}
	}
	for sample, verify := range verifiers(t) {
		t.Run(sample, func(t *testing.T) {
			for i, got := range verify(t, cases) {
				if got != wants[i].want {
					t.Errorf("%s: accepted is %t, want %t: %+v", wants[i].name, got, wants[i].want, cases[i])
				}
			}
			t.Logf("%s verified %d deliveries", sample, len(cases))
		})
	}
}
