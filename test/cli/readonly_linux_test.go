package cli_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stepmill/stepmill/test/harness"
)

// nobody runs the commands if the tests run as root, who can write everywhere.
const nobody = 65534

// In a data directory that is read-only, such as a snapshot of a file system, the audit log
// can be verified and a backup can be taken, also if the server did not stop cleanly. Nothing
// in the directory changes.
func TestReadOnlyDataDirectory(t *testing.T) {
	harness.EmbeddedOnly(t, "the data directory")
	t.Parallel()
	for _, stop := range []string{"clean", "killed"} {
		t.Run(stop, func(t *testing.T) {
			t.Parallel()
			place := publicDir(t)
			dir, temp := filepath.Join(place, "data"), filepath.Join(place, "temp")
			s := harness.Start(t, dir)
			key := s.Key
			const content = "the bytes of a file"
			response, err := s.Open(t.Context(), "POST", "/v1/files?name=a.txt", strings.NewReader(content), "Content-Type", "text/plain")
			if err != nil || response.StatusCode != http.StatusCreated {
				t.Fatalf("upload: %v, %v", response, err)
			}
			_ = response.Body.Close()
			if stop == "clean" {
				s.Stop(t)
			} else {
				s.Kill(t)
			}
			if err := os.Mkdir(temp, 0o777); err != nil {
				t.Fatal(err)
			}
			before := makeReadOnly(t, dir, temp)
			log, err := os.Stat(filepath.Join(dir, "stepmill.db-wal"))
			hasLog := err == nil && log.Size() > 0

			run := func(args ...string) (stdout, stderr string, code int) {
				t.Helper()
				return runAsNobody(t, place, temp, append(args, "--data-dir", dir)...)
			}
			stdout, stderr, code := run("audit", "verify")
			if code != 0 || !strings.Contains(stdout, "intact") || strings.Contains(stderr, "temporary copy") != hasLog {
				t.Errorf("audit verify: exit code %d, %s%s", code, stdout, stderr)
			}
			backup := filepath.Join(temp, "backup.tar")
			stdout, stderr, code = run("backup", backup)
			if code != 0 || !strings.Contains(stderr, "the audit log does not have this backup: "+dir+" is read-only") || strings.Contains(stderr, "temporary copy") != hasLog {
				t.Fatalf("backup: exit code %d, %s%s", code, stdout, stderr)
			}
			stdout, stderr, code = run("keys", "create", "--name=n", "--scope=read")
			if code != 1 || stdout != "" || !strings.Contains(stderr, "read-only; nothing was changed") {
				t.Errorf("keys create: exit code %d, %s%s", code, stdout, stderr)
			}
			if after := listing(t, dir); after != before {
				t.Errorf("the directory was changed from\n%sto\n%s", before, after)
			}
			if left := listing(t, temp); strings.Count(left, "\n") != 2 { // the directory and the backup
				t.Errorf("temporary files are left:\n%s", left)
			}

			restored := filepath.Join(place, "restored")
			if r := harness.Run(t, nil, "restore", backup, "--data-dir", restored); r.Code != 0 {
				t.Fatal(r.Stderr)
			}
			master, err := os.ReadFile(filepath.Join(dir, "master.key"))
			if err == nil {
				err = os.WriteFile(filepath.Join(restored, "master.key"), master, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			again := harness.Start(t, restored)
			var list struct{ Data []struct{ ID string } }
			again.With(key).Expect(t, 200, "GET", "/v1/files", nil).Decode(t, &list)
			if len(list.Data) != 1 {
				t.Fatalf("the backup has %d files", len(list.Data))
			}
			if got := again.With(key).Expect(t, 200, "GET", "/v1/files/"+list.Data[0].ID, nil); string(got.Body) != content {
				t.Errorf("the file contains %q", got.Body)
			}
			again.Stop(t)
		})
	}
}

// publicDir returns a temporary directory with the program, which every user can enter.
func publicDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() { // so that it can be removed
		_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				err = os.Chmod(path, 0o700)
			}
			return err
		})
	})
	binary, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(binary)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "stepmill"), content, 0o755)
	}
	if err == nil {
		err = errors.Join(os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// makeReadOnly makes a data directory read-only and returns its listing. The other
// directory stays writable.
func makeReadOnly(t *testing.T, dir, temp string) string {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Type()&fs.ModeSocket != 0 {
			return err
		}
		mode := os.FileMode(0o444)
		if entry.IsDir() {
			mode = 0o555
		}
		return os.Chmod(path, mode)
	})
	if err == nil {
		err = os.Chmod(temp, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	return listing(t, dir)
}

// listing describes the files of a directory.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			fmt.Fprintln(&out, strings.TrimPrefix(path, dir), info.Mode(), info.Size(), info.ModTime().UnixNano())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func runAsNobody(t *testing.T, place, temp string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, problems bytes.Buffer
	command := exec.CommandContext(t.Context(), filepath.Join(place, "stepmill"), args...)
	command.Env, command.Dir, command.Stdout, command.Stderr = harness.Environ("TMPDIR="+temp), temp, &out, &problems
	if os.Geteuid() == 0 {
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	if err := command.Run(); err != nil && command.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), problems.String(), command.ProcessState.ExitCode()
}
