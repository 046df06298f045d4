package sandbox_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/sandbox"
)

const marker = "MARKER"

// memoryStorage keeps files in memory.
type memoryStorage struct {
	given   [][]byte
	opened  []int
	created []createdFile
	aborted int
	largest int // write
	// failAt makes creating fail after so many bytes, with err.
	failAt int
	err    error
}

type createdFile struct{ Name, Type, Content string }

func (s *memoryStorage) Open(_ context.Context, index int) (io.ReadCloser, error) {
	s.opened = append(s.opened, index)
	if s.failAt == 0 && s.err != nil {
		return nil, s.err
	}
	return io.NopCloser(bytes.NewReader(s.given[index])), nil
}

func (s *memoryStorage) Create(_ context.Context, name, mediaType string) (sandbox.FileWriter, error) {
	return &memoryWriter{storage: s, file: createdFile{Name: name, Type: mediaType}}, nil
}

type memoryWriter struct {
	storage  *memoryStorage
	file     createdFile
	finished bool
}

func (w *memoryWriter) Write(data []byte) (int, error) {
	w.storage.largest = max(w.storage.largest, len(data))
	w.file.Content += string(data)
	if w.storage.err != nil && len(w.file.Content) > w.storage.failAt {
		return 0, w.storage.err
	}
	return len(data), nil
}

func (w *memoryWriter) Finish() error {
	w.finished = true
	w.storage.created = append(w.storage.created, w.file)
	return nil
}

func (w *memoryWriter) Abort() {
	if !w.finished {
		w.storage.aborted++
	}
}

// withFiles returns a script whose input is a list of files.
func withFiles(code string, contents ...string) (sandbox.Script, *memoryStorage) {
	storage := &memoryStorage{}
	files := sandbox.Files{Marker: marker, Storage: storage}
	var input []string
	for i, content := range contents {
		sum := sha256.Sum256([]byte(content))
		input = append(input, marker+strconv.Itoa(i))
		storage.given = append(storage.given, []byte(content))
		files.Given = append(files.Given, sandbox.File{
			Name: fmt.Sprintf("%d.txt", i), Type: "text/plain", Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:]),
		})
	}
	encoded, _ := json.Marshal(input)
	return sandbox.Script{Code: code, Input: encoded, Files: files, Limit: 2 * time.Minute}, storage
}

func TestFilesOfAScript(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{})
	const abcHash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	for _, tc := range []struct {
		code    string
		files   []string
		want    string
		opened  []int
		created []createdFile
	}{
		{code: "const [f] = input; return [f.name, f.type, f.size, f.sha256, f instanceof File, String(f)]", files: []string{"abc"}, want: `["0.txt","text/plain",3,"` + abcHash + `",true,"[object File]"]`},
		{code: "return await input[1].text()", files: []string{"a", "zwei"}, want: `"zwei"`, opened: []int{1}},
		{code: "return [...await input[0].bytes()]", files: []string{"\x00\xff\r\n"}, want: `[0,255,13,10]`, opened: []int{0}},
		{code: "return (await input[0].bytes()) instanceof Uint8Array", files: []string{"\x00"}, want: `true`, opened: []int{0}},
		{code: "return (await input[0].json()).a", files: []string{"\ufeff" + `{"a": [1]}`}, want: `[1]`, opened: []int{0}},
		{code: "return await input[0].text()", files: []string{"\ufeffä\xff€"}, want: `"ä�€"`, opened: []int{0}},
		{code: "return [await input[0].text(), input[0].size]", files: []string{""}, want: `["",0]`},
		{code: "return (await Promise.all(input.map(f => f.text()))).join('|')", files: []string{"a", "b", "c"}, want: `"a|b|c"`, opened: []int{0, 1, 2}},
		{code: "try { await input[0].json() } catch (e) { return e instanceof SyntaxError }", files: []string{"{"}, want: `true`, opened: []int{0}},
		{code: "return input.map(f => f.size)", files: []string{strings.Repeat("x", 200_000)}, want: `[200000]`},
		{code: "const b = await input[0].bytes(); return b.every((x, i) => x === i % 251)", files: []string{pattern(200_000)}, want: `true`, opened: []int{0}},
		// Files in the output are found by identity.
		{code: "return {a: [{b: input[1]}], c: input[0], d: input[1]}", files: []string{"a", "b"}, want: `{"a":[{"b":"MARKER1"}],"c":"MARKER0","d":"MARKER1"}`},
		{code: "return input[0]", files: []string{"a"}, want: `"MARKER0"`},
		{code: "return {'$file': 'file_1', name: 'x', size: 1}", files: []string{"a"}, want: `{"$file":"file_1","name":"x","size":1}`},
		{code: "return [JSON.stringify(input), Object.keys(input[0]), {...input[0]}]", files: []string{"a"}, want: `["[{}]",[],{}]`},
		{code: "return [Object.create(File.prototype), new Proxy(input[0], {})]", files: []string{"a"}, want: `[{},{}]`},
		// New files.
		{
			code: "return {f: new File(['a', new Uint8Array([98]), new Uint8Array([99, 100, 101]).buffer, 'ä'], 'n.csv', {type: 'text/csv'})}",
			want: `{"f":"MARKER0"}`, created: []createdFile{{"n.csv", "text/csv", "abcdeä"}},
		},
		{
			code: "const f = new File(input, 'all'); const g = new File([f, f], 'g'); return [input[0], g, f, g]", files: []string{"x", "yz"},
			want: `["MARKER0","MARKER2","MARKER3","MARKER2"]`, opened: []int{0, 1}, created: []createdFile{{"g", "", "xyzxyz"}, {"all", "", "xyz"}},
		},
		{code: "new File(['unused'], 'u'); return 1", want: `1`},
		{code: "return new File([new Uint8Array([1, 2, 3, 4]).subarray(1, 3)], 's')", want: `"MARKER0"`, created: []createdFile{{"s", "", "\x02\x03"}}},
		{code: "return new File(new Set(['a', 'b']), 's')", want: `"MARKER0"`, created: []createdFile{{"s", "", "ab"}}},
		{code: "return new File([pattern.repeat(2e5)], 's')", want: `"MARKER0"`, created: []createdFile{{"s", "", strings.Repeat("ab", 200_000)}}},
		{
			code: "const b = new Uint8Array([97]); const f = new File([b], 's'); b[0] = 98; (await f.bytes())[0] = 99; return [f, await f.text(), f.size, f.type, f.name]",
			want: `["MARKER0","a",1,"","s"]`, created: []createdFile{{"s", "", "a"}},
		},
		{code: "return new File(['abc'], 's').sha256", want: `"` + abcHash + `"`},
		{code: "class Report extends File { get title() { return this.name + '!' } }; const r = new Report(['x'], 'r'); return [r, r.title, r instanceof File]", want: `["MARKER0","r!",true]`, created: []createdFile{{"r", "", "x"}}},
		{code: "File = 1; return [File, typeof input[0].text]", files: []string{"a"}, want: `[1,"function"]`},
		{code: "const File = 2; return File", want: `2`},
		{code: "return [typeof File, File.name, File.length, Object.keys(globalThis).includes('File')]", want: `["function","File",0,false]`},
	} {
		script, storage := withFiles("const pattern = 'ab';"+tc.code, tc.files...)
		outcome, err := pool.AcquireAndRun(t.Context(), script)
		if err != nil {
			t.Errorf("%s\n%v", tc.code, err)
			continue
		}
		if diff := cmp.Diff(tc.want, string(outcome.Output)); diff != "" {
			t.Errorf("%s\n%s", tc.code, diff)
		}
		if diff := cmp.Diff(tc.opened, storage.opened); diff != "" {
			t.Errorf("%s\nopened %s", tc.code, diff)
		}
		if diff := cmp.Diff(tc.created, storage.created); diff != "" {
			t.Errorf("%s\ncreated %s", tc.code, diff)
		}
		if storage.aborted > 0 || storage.largest > 64<<10 {
			t.Errorf("%s\n%d aborted, writes of up to %d bytes", tc.code, storage.aborted, storage.largest)
		}
	}
}

func pattern(size int) string {
	out := make([]byte, size)
	for i := range out {
		out[i] = byte(i % 251)
	}
	return string(out)
}

func TestFilesInTheLog(t *testing.T) {
	t.Parallel()
	script, _ := withFiles("console.log('got', input[0], {f: new File(['x'], 'n')})", "abc")
	outcome, err := newPool(t, sandbox.Config{}).AcquireAndRun(t.Context(), script)
	if err != nil {
		t.Fatal(err)
	}
	want := `got {"name":"0.txt","type":"text/plain","size":3} {"f":{"name":"n","type":"","size":1}}`
	if len(outcome.Lines) != 1 || outcome.Lines[0].Text != want {
		t.Errorf("%+v", outcome.Lines)
	}
}

// Limits are exceptions that a script can catch, and nothing remains of its files.
func TestFileLimits(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{})
	const quarter = memory / 4
	for _, tc := range []struct {
		code    string
		size    int64
		message string
	}{
		{"await input[0].text()", quarter + 1, fmt.Sprintf(`RangeError: the file "0.txt" has %d bytes; a script can read files of up to %d`, quarter+1, quarter)},
		{"await input[0].bytes()", 1 << 40, "a script can read files of up to"},
		{"new File(input, 'n')", 1 << 40, "a script can read files of up to"},
		{fmt.Sprintf("new File([new ArrayBuffer(%d)], 'n')", quarter+1), 0, fmt.Sprintf("RangeError: new File: a file that a script creates can have up to %d bytes", quarter)},
		{"const b = new ArrayBuffer(1e6); new File((function* () { for (;;) yield b })(), 'n')", 0, "can have up to"},
		{fmt.Sprintf("for (let i = 0; i < %d; i++) await input[0].bytes()", sandbox.MaxReads+1), 1, "has read files 1000 times"},
		{"for (let i = 0; i < 257; i++) await input[0].bytes()", 1 << 20, "more than 268435456 bytes of files in total"},
		{fmt.Sprintf("return Array.from({length: %d}, () => new File([], 'n'))", sandbox.MaxCreated+1), 0, "the script returned 101 new files; the limit is 100"},
		{"new File(['a'], 'x'.repeat(2000))", 0, "the name can have up to 1024 bytes"},
		{"new File(['a'], 'n', {type: 'é'.repeat(600)})", 0, "the type can have up to 1024 bytes"},
		{"new File('abc', 'n')", 0, "TypeError: new File: the first argument must be a list"},
		{"new File()", 0, "the first argument must be a list"},
		{"new File(['a'])", 0, "TypeError: new File: the name must be a string"},
		{"new File([1], 'n')", 0, "a part must be a string, a Uint8Array, an ArrayBuffer or a File"},
		{"new File([{}], 'n')", 0, "a part must be"},
		{"new File([new Float64Array(2)], 'n')", 0, "a part must be"},
		{"new File([new Proxy(new Uint8Array(2), {})], 'n')", 0, "a part must be"},
		{"new File({}, 'n')", 0, "TypeError"},
		{"File.prototype.name", 0, "TypeError: this is not a File"},
		{"await File.prototype.text.call({})", 0, "TypeError: this is not a File"},
		{"new File([], 'n', {get type() { throw new Error('mine') }})", 0, "Error: mine"},
	} {
		script, storage := withFiles(tc.code, "")
		script.Files.Given[0].Size = tc.size
		storage.given[0] = make([]byte, min(tc.size, 1<<20))
		outcome, err := pool.AcquireAndRun(t.Context(), script)
		failure, ok := errors.AsType[*sandbox.Failure](err)
		if !ok || !strings.Contains(failure.Message, tc.message) {
			t.Errorf("%s\ngave %s, %v", tc.code, outcome.Output, err)
		}
		if ok && failure.Kind != sandbox.Exception && failure.Kind != sandbox.TooLarge {
			t.Errorf("%s\nended by %s", tc.code, failure.Kind)
		}
		if len(storage.created) > 0 {
			t.Errorf("%s\ncreated %v", tc.code, storage.created)
		}
	}
}

// A script can read a text of the largest size, in characters that take two bytes.
func TestScriptsCanReadFilesUpToTheirLimit(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{})
	script, _ := withFiles("return [(await input[0].text()).length, (await input[0].bytes()).length]", strings.Repeat("é", memory/8))
	outcome, err := pool.AcquireAndRun(t.Context(), script)
	if want := fmt.Sprintf("[%d,%d]", memory/8, memory/4); err != nil || string(outcome.Output) != want {
		t.Errorf("%s, %v", outcome.Output, err)
	}
}

// Without a storage, files can be used but not returned.
func TestFilesWithoutAStorage(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{})
	if got := mustRun(t, pool, "return await new File(['a', 'b'], 'n').text()", ""); got != `"ab"` {
		t.Error(got)
	}
	failure, _ := mustFail(t, pool, "return new File(['a'], 'n')", time.Minute)
	if !strings.Contains(failure.Message, "files cannot be returned here") {
		t.Error(failure)
	}
}

// The error of a storage ends the script and is returned. Nothing remains of the file
// that was being created.
func TestStorageErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is full")
	for _, tc := range []struct {
		code   string
		failAt int
	}{
		{"try { await input[0].text() } catch (e) {}", 0},
		{"return [new File(['small'], 's'), new File([new Uint8Array(1e6)], 'l')]", 100_000},
	} {
		pool := newPool(t, sandbox.Config{})
		script, storage := withFiles("console.log('begun');"+tc.code, "abc")
		storage.err, storage.failAt = broken, tc.failAt
		outcome, err := pool.AcquireAndRun(t.Context(), script)
		if !errors.Is(err, broken) || len(outcome.Lines) != 1 {
			t.Errorf("%s\n%v, %v", tc.code, err, outcome)
		}
		if tc.failAt > 0 && storage.aborted != 1 {
			t.Errorf("%d files were aborted", storage.aborted)
		}
		if got := mustRun(t, pool, "return 2", ""); got != "2" {
			t.Error(got)
		}
	}
}

// A file that is shorter than recorded ends the script.
func TestTruncatedFile(t *testing.T) {
	t.Parallel()
	script, storage := withFiles("return await input[0].text()", "abc")
	storage.given[0] = []byte("ab")
	_, err := newPool(t, sandbox.Config{}).AcquireAndRun(t.Context(), script)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

// slowStorage blocks until the context ends.
type slowStorage struct{ memoryStorage }

func (s *slowStorage) Open(ctx context.Context, _ int) (io.ReadCloser, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestReadingCountsAsTimeOfTheScript(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{})
	mustRun(t, pool, "return 1", "")
	script, _ := withFiles("await input[0].text()", "abc")
	script.Files.Storage, script.Limit = &slowStorage{}, 300*time.Millisecond
	_, err := pool.AcquireAndRun(t.Context(), script)
	if failure, ok := errors.AsType[*sandbox.Failure](err); !ok || failure.Kind != sandbox.Timeout {
		t.Error(err)
	}
}

// Whatever a script does to its realm, only files that it was given or has created
// leave it, and only by identity.
func TestHostileScriptsCannotForgeFiles(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{})
	for _, code := range []string{
		"return ['MARKER', '0', 0, {index: 0}, {\"$file\": 'file_1'}].map(String)",
		"JSON.stringify = () => '\"MARKER0\"'; return {}",
		"JSON.parse = () => File; Map.prototype.get = WeakMap.prototype.get = () => input[0]; Map = WeakMap = null; return {}",
		"Object.prototype.toJSON = function () { return this instanceof File ? 'MARKER0' : this }; return {}",
		"for (const k of ['name', 'type', 'size', 'sha256', 'text']) Object.defineProperty(Object.prototype, k, {get() { return 'MARKER0' }}); return {}",
		"Object.setPrototypeOf(Object.prototype.constructor.prototype.constructor, File); return {}",
		"const seen = []; Object.defineProperty(Array.prototype, '0', {set(v) { seen.push(v) }, get() { return 'x' }}); return {seen: String(seen)}",
		"const seen = []; for (const k of ['index', 'marker', 'files', '']) Object.defineProperty(Object.prototype, k, {set(v) { seen.push(String(v)) }, get() { return undefined }, configurable: true}); JSON.stringify(input); return {seen}",
		"String.prototype[Symbol.iterator] = Array.prototype[Symbol.iterator] = () => ({next: () => ({done: true})}); return {a: 1}",
		"const g = Object.getOwnPropertyDescriptor(File.prototype, 'name').get; const o = Object.create(input[0]); let r = 'none'; try { r = g.call(o) } catch (e) {} return {r, o}",
		"const text = []; const real = input[0]; return {get a() { text.push(JSON.stringify(real)); return 1 }, get b() { return text.join() }}",
		"const keys = []; const walk = (o, depth) => { if (depth > 3 || o === null || typeof o !== 'object' && typeof o !== 'function') return; for (const k of Reflect.ownKeys(o)) { keys.push(String(k)); try { walk(o[k], depth + 1) } catch (e) {} } }; walk(input[0], 0); walk(File, 0); return keys.join()",
		"return Function.prototype.toString.call(File) + Function.prototype.toString.call(input[0].text) + File.prototype.text.name + new Error().stack",
		"try { File.call(input[0], ['x'], 'n'); Reflect.construct(File, [['x'], 'n'], Object) } catch (e) { return String(e) } return {}",
		"const f = await new Promise(done => done(input[0])); return {name: f.name, same: f === input[0]}",
		"input[0].then = (done) => done('MARKER0'.slice(0, 5)); return 1",
	} {
		script, storage := withFiles(code, "the first", "the second")
		outcome, err := pool.AcquireAndRun(t.Context(), script)
		if err != nil {
			if _, ok := errors.AsType[*sandbox.Failure](err); !ok {
				t.Errorf("%s\n%v", code, err)
			}
			continue
		}
		var value any
		if err := json.Unmarshal(outcome.Output, &value); err != nil {
			t.Fatal(err)
		}
		// These scripts return no file. One that writes the marker itself, which it
		// could only guess, is not a leak.
		if strings.Contains(string(outcome.Output), marker) && !strings.Contains(code, marker) {
			t.Errorf("%s\nlearned the marker: %s", code, outcome.Output)
		}
		if len(storage.opened)+len(storage.created) > 0 {
			t.Errorf("%s\nopened %v, created %v", code, storage.opened, storage.created)
		}
	}
}

// A script does not see files of the script before it in the same process.
func TestFilesAreIsolatedBetweenScripts(t *testing.T) {
	t.Parallel()
	pool := newPool(t, sandbox.Config{})
	first, _ := withFiles("globalThis.kept = input[0]; File.prototype.kept = input[0]; File.kept = new File(['x'], 'x'); return await input[0].text()", "secret")
	if _, err := pool.AcquireAndRun(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	second, storage := withFiles("return [typeof kept, typeof File.kept, typeof File.prototype.kept, await input[0].text()]", "mine")
	outcome, err := pool.AcquireAndRun(t.Context(), second)
	if want := `["undefined","undefined","undefined","mine"]`; err != nil || string(outcome.Output) != want {
		t.Errorf("%s, %v", outcome.Output, err)
	}
	if len(storage.opened) != 1 || len(pool.Pids()) != 1 {
		t.Errorf("opened %v, processes %v", storage.opened, pool.Pids())
	}
}

// frame returns a frame of the protocol.
func frame(kind byte, body string) string {
	header := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)))
	return string(header) + body
}

// A child that is under full control of an attacker gets no other bytes than those of
// the given files, within the limits.
func TestServerDoesNotTrustTheChildWithFiles(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, says := range map[string]string{
		"unknown file":     frame('o', `{"index": 1}`),
		"negative file":    frame('o', `{"index": -1}`),
		"file by id":       frame('o', `{"index": "file_1"}`),
		"too many reads":   strings.Repeat(frame('o', `{"index": 0}`), sandbox.MaxReads+1),
		"bytes of no file": frame('d', "abc"),
		"long name":        frame('n', `{"name": "`+strings.Repeat("x", 2000)+`"}`),
		"too many files":   strings.Repeat(frame('n', `{"name": "x"}`), sandbox.MaxCreated+1),
		"no JSON":          frame('n', `{`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := newPool(t, sandbox.Config{Command: []string{program, "liar", strconv.Quote(says)}})
			script, storage := withFiles("return 1", "abc")
			_, err := pool.AcquireAndRun(t.Context(), script)
			if failure, ok := errors.AsType[*sandbox.Failure](err); !ok || failure.Kind != sandbox.Lost {
				t.Error(err)
			}
			if len(storage.opened) > sandbox.MaxReads || len(storage.created) > sandbox.MaxCreated || len(pool.Pids()) > 0 {
				t.Errorf("opened %d, created %d, processes %v", len(storage.opened), len(storage.created), pool.Pids())
			}
		})
	}
}
