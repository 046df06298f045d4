package receivers_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stepmill/stepmill/test/harness"
)

// A client of the protocol tus resumes an upload after the server was killed.
func TestTusClient(t *testing.T) {
	t.Parallel()
	node(t) // it also needs the libraries
	dir := t.TempDir()
	s := harness.Start(t, dir)
	key := s.Client.Key
	cmd := exec.CommandContext(t.Context(), "node", "tus.mjs", s.Client.URL+"/v1/files/uploads", key)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	if !lines.Scan() || lines.Text() != "paused" {
		t.Fatalf("got %q", lines.Text())
	}
	s.Kill(t)
	s = harness.Start(t, dir)
	if _, err := fmt.Fprintln(input, s.Client.URL); err != nil {
		t.Fatal(err)
	}
	var result struct {
		URL, SHA256 string
		ResumedAt   int64
	}
	if !lines.Scan() {
		t.Fatalf("no result: %v", lines.Err())
	}
	if err := json.Unmarshal(lines.Bytes(), &result); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if result.ResumedAt < 10<<20 {
		t.Errorf("the upload was resumed at %d", result.ResumedAt)
	}
	id := result.URL[strings.LastIndexByte(result.URL, '/')+1:]
	response, err := s.Client.With(key).Open(t.Context(), http.MethodGet, "/v1/files/"+id, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, response.Body); err != nil || hex.EncodeToString(sum.Sum(nil)) != result.SHA256 {
		t.Errorf("the bytes differ: %v", err)
	}
	if got := response.Header.Get("Content-Disposition"); !strings.Contains(got, "gro%C3%9Fe%20datei.bin") {
		t.Errorf("the name: %s", got)
	}
}
