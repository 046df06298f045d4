package stepmill_test

import (
	"cmp"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/stepmill/stepmill"

const (
	maxFileLines = 500
	maxFuncLines = 70
	maxMainLines = 30
)

// Groups that the table below names. Nouns are the product's nouns themselves,
// without the concrete actions and the catalog that lists them.
const (
	words = "clock cron duration expr failpoint fault inbound jsonpointer mask news paging signature strictjson strictyaml suggest tally uid"
	nouns = "account action audit auth event gallery idempotency integration node run secret trigger usage vault webhook workflow"
)

// place is where a package stands: what of this module it may import.
// Packages are named by their path under internal/, or with a leading slash by
// their path in the module. A * stands for one element of the path.
type place struct {
	pkg string
	may string
	// stdOnly also forbids every other module.
	stdOnly bool
}

// places is who may import whom. The first entry that matches a package is
// its place. Test files are free to import more.
var places = []place{
	// Words: the vocabulary everything else speaks.
	{pkg: "clock", may: words},
	{pkg: "cron", may: words},
	{pkg: "duration", may: words},
	{pkg: "expr", may: words},
	{pkg: "failpoint", may: words},
	{pkg: "fault", may: words},
	{pkg: "inbound", may: words},
	{pkg: "jsonpointer", may: words},
	{pkg: "mask", may: words},
	{pkg: "news", may: words},
	{pkg: "paging", may: words},
	{pkg: "signature", may: words},
	{pkg: "strictjson", may: words},
	{pkg: "strictyaml", may: words},
	{pkg: "suggest", may: words},
	{pkg: "tally", may: words},
	{pkg: "uid", may: words},

	// Nouns: words, and the nouns they are about.
	{pkg: "account", may: words + " audit auth"},
	{pkg: "action", may: words},
	{pkg: "action/catalog", may: words + " action action/*"},
	{pkg: "action/*", may: words + " action egress sandbox vault"},
	{pkg: "audit", may: words},
	{pkg: "auth", may: words + " audit vault"},
	{pkg: "event", may: words},
	{pkg: "idempotency", may: words + " auth vault"},
	{pkg: "node", may: words + " auth"},
	{pkg: "integration", may: words + " action egress vault"},
	{pkg: "run", may: words + " action audit auth event workflow"},
	{pkg: "secret", may: words + " audit auth vault"},
	{pkg: "trigger", may: words + " action audit auth event run vault workflow"},
	{pkg: "gallery", may: words},
	{pkg: "usage", may: words + " auth"},
	{pkg: "vault", may: words},
	{pkg: "webhook", may: words + " audit auth egress event vault workflow"},
	{pkg: "workflow", may: words + " action audit auth event"},

	// Machinery: the engine knows what an action is, but no action.
	{pkg: "archive", may: words},
	{pkg: "dispatch", may: words + " run"},
	{pkg: "dispatch/local", may: words + " dispatch run"},
	{pkg: "dispatch/river", may: words + " dispatch run"},
	{pkg: "egress", may: words},
	{pkg: "engine", may: words + " " + nouns + " dispatch"},
	{pkg: "membership", may: words + " node run"},
	{pkg: "oidc", may: words + " account egress"},
	{pkg: "ratelimit", may: words},
	{pkg: "sandbox", may: words},
	{pkg: "telemetry", may: words},

	// Edges: the API and the stores know the nouns, not each other.
	{pkg: "api", may: words + " " + nouns + " ratelimit telemetry /openapi"},
	{pkg: "mcp", may: words + " " + nouns + " ratelimit telemetry"},
	{pkg: "store", may: words + " " + nouns + " archive"},
	{pkg: "store/postgres", may: words + " " + nouns + " store"},
	{pkg: "store/sqlite", may: words + " " + nouns + " store"},
	{pkg: "store/storetest", may: words + " " + nouns + " archive store"},

	// Assembly: only app sees everything.
	{pkg: "app", may: "* */* /openapi /web"},
	{pkg: "cli", may: "app config /client"},
	{pkg: "config", may: words},
	{pkg: "/cmd/stepmill", may: "cli"},

	// Outside internal.
	{pkg: "/"},
	{pkg: "/bench", may: "/client /test/postgres"},
	{pkg: "/bench/ceiling"},
	{pkg: "/client", stdOnly: true},
	{pkg: "/openapi"},
	{pkg: "/test/*", may: "/client /openapi /test/*"},
	{pkg: "/web"},
}

// outside lists the folders that are no part of the architecture.
var outside = []string{".git", "bin", "tools", "web/node_modules"}

var vagueNames = []string{"common", "helper", "helpers", "types", "util", "utils"}

func TestArchitecture(t *testing.T) {
	t.Parallel()
	files := parseModule(t)

	t.Run("imports", func(t *testing.T) {
		t.Parallel()
		for _, pkg := range packages(files) {
			if _, ok := placeOf(pkg); !ok {
				t.Errorf("package %s: give it a place in the table of arch_test.go", shown(pkg))
			}
		}
		for _, f := range files {
			if f.test {
				continue
			}
			for _, spec := range f.ast.Imports {
				imported, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					t.Fatal(err)
				}
				if reason := forbidden(f.pkg, imported); reason != "" {
					t.Errorf("%s: %s", f.at(spec.Pos()), reason)
				}
			}
		}
	})

	t.Run("packages say what they own", func(t *testing.T) {
		t.Parallel()
		for _, pkg := range packages(files) {
			if !documented(files, pkg) {
				t.Errorf("package %s has no doc comment (\"// Package %s owns …\")", shown(pkg), path.Base(pkg))
			}
		}
	})

	t.Run("names", func(t *testing.T) {
		t.Parallel()
		for _, f := range files {
			name := strings.TrimSuffix(f.ast.Name.Name, "_test")
			if slices.Contains(vagueNames, name) || slices.Contains(vagueNames, path.Base(f.pkg)) {
				t.Errorf("%s: the package's name says nothing about what is in it", f.name)
			}
		}
	})

	t.Run("size", func(t *testing.T) {
		t.Parallel()
		for _, f := range files {
			if f.name == "cmd/stepmill/main.go" && f.lines > maxMainLines {
				t.Errorf("%s has %d lines; at most %d: what a command does belongs in internal/cli", f.name, f.lines, maxMainLines)
			}
			if f.test || ast.IsGenerated(f.ast) {
				continue
			}
			if f.lines > maxFileLines {
				t.Errorf("%s has %d lines; at most %d", f.name, f.lines, maxFileLines)
			}
			for _, fn := range f.funcs() {
				if n := f.line(fn.End()) - f.line(fn.Pos()) + 1; n > maxFuncLines {
					t.Errorf("%s: %s has %d lines; at most %d", f.at(fn.Pos()), fn.Name.Name, n, maxFuncLines)
				}
			}
		}
	})

	t.Run("no init functions", func(t *testing.T) {
		t.Parallel()
		for _, f := range files {
			for _, fn := range f.funcs() {
				if !f.test && fn.Recv == nil && fn.Name.Name == "init" {
					t.Errorf("%s: init() hides what runs at start; call it from internal/app", f.at(fn.Pos()))
				}
			}
		}
	})
}

// The table is a rule like any other: these are the edges it is there for.
func TestImportTable(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		from, to string
		allowed  bool
	}{
		{"internal/fault", "internal/uid", true},
		{"internal/fault", "internal/run", false},
		{"internal/paging", "github.com/other/module", true},
		{"internal/run", "internal/workflow", true},
		{"internal/workflow", "internal/run", false},
		{"internal/audit", "internal/auth", false},
		{"internal/webhook", "internal/egress", true},
		{"internal/secret", "internal/vault", true},
		{"internal/workflow", "internal/secret", false},
		{"internal/action/wait", "internal/action", true},
		{"internal/action/wait", "internal/action/dataset", false},
		{"internal/action/wait", "internal/store", false},
		{"internal/action/catalog", "internal/action/wait", true},
		{"internal/engine", "internal/action", true},
		{"internal/engine", "internal/action/wait", false},
		{"internal/engine", "internal/action/catalog", false},
		{"internal/engine", "internal/api", false},
		{"internal/engine", "internal/store", false},
		{"internal/dispatch/river", "internal/dispatch", true},
		{"internal/dispatch/river", "internal/dispatch/local", false},
		{"internal/api", "internal/run", true},
		{"internal/api", "openapi", true},
		{"internal/api", "internal/store", false},
		{"internal/api", "internal/engine", false},
		{"internal/api", "internal/dispatch", false},
		{"internal/store", "internal/run", true},
		{"internal/store", "internal/api", false},
		{"internal/store/sqlite", "internal/store", true},
		{"internal/store/sqlite", "internal/store/postgres", false},
		{"internal/store/sqlite", "internal/engine", false},
		{"internal/app", "internal/store/sqlite", true},
		{"internal/app", "web", true},
		{"internal/cli", "internal/app", true},
		{"internal/cli", "client", true},
		{"internal/cli", "internal/store/sqlite", false},
		{"cmd/stepmill", "internal/cli", true},
		{"cmd/stepmill", "internal/app", false},
		{"client", "encoding/json", true},
		{"client", "internal/fault", false},
		{"client", "github.com/other/module", false},
	} {
		imported := tc.to
		if strings.HasPrefix(tc.to, "internal/") || slices.Contains([]string{"client", "openapi", "web"}, tc.to) {
			imported = module + "/" + tc.to
		}
		if reason := forbidden(tc.from, imported); (reason == "") != tc.allowed {
			t.Errorf("%s importing %s: allowed %t, want %t", tc.from, tc.to, reason == "", tc.allowed)
		}
	}
}

// forbidden says why the package may not import what it imports, or "".
func forbidden(pkg, imported string) string {
	p, ok := placeOf(pkg)
	if !ok {
		return "" // reported on its own
	}
	target, ours := strings.CutPrefix(imported+"/", module+"/")
	if !ours {
		if first, _, _ := strings.Cut(imported, "/"); p.stdOnly && strings.Contains(first, ".") {
			return shown(pkg) + " may import only the standard library, not " + imported
		}
		return ""
	}
	target = strings.TrimSuffix(target, "/")
	for may := range strings.FieldsSeq(p.may) {
		if matches(may, target) {
			return ""
		}
	}
	return shown(pkg) + " may not import " + shown(target) + "; of this module it may import: " + cmp.Or(p.may, "nothing")
}

func placeOf(pkg string) (place, bool) {
	i := slices.IndexFunc(places, func(p place) bool { return matches(p.pkg, pkg) })
	if i < 0 {
		return place{}, false
	}
	return places[i], true
}

// matches holds a package's path in the module against a name of the table.
func matches(pattern, pkg string) bool {
	if p, ok := strings.CutPrefix(pattern, "/"); ok {
		pattern = p
	} else {
		pattern = "internal/" + pattern
	}
	ok, err := path.Match(pattern, pkg)
	return ok && err == nil
}

func shown(pkg string) string { return cmp.Or(pkg, module) }

// source is one Go file of the module.
type source struct {
	name  string // slash-separated, from the root
	pkg   string // its folder, "" at the root
	test  bool
	lines int
	fset  *token.FileSet
	ast   *ast.File
}

func (s source) line(p token.Pos) int { return s.fset.Position(p).Line }

func (s source) at(p token.Pos) string { return s.name + ":" + strconv.Itoa(s.line(p)) }

func (s source) funcs() []*ast.FuncDecl {
	var fns []*ast.FuncDecl
	for _, decl := range s.ast.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok {
			fns = append(fns, fn)
		}
	}
	return fns
}

// parseModule reads every Go file, whatever its build constraints.
func parseModule(t *testing.T) []source {
	t.Helper()
	var files []source
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if entry.IsDir() {
			if isOutside(name) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, source{
			name:  name,
			pkg:   strings.TrimPrefix(path.Dir(name), "."),
			test:  strings.HasSuffix(name, "_test.go"),
			lines: strings.Count(string(text), "\n"),
			fset:  fset,
			ast:   file,
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func isOutside(dir string) bool {
	base := path.Base(dir)
	hidden := len(base) > 1 && (base[0] == '.' || base[0] == '_')
	return hidden || base == "testdata" || base == "node_modules" || slices.Contains(outside, dir)
}

func packages(files []source) []string {
	var pkgs []string
	for _, f := range files {
		pkgs = append(pkgs, f.pkg)
	}
	slices.Sort(pkgs)
	return slices.Compact(pkgs)
}

// documented reports whether a file of the package carries its doc comment.
// Where all files are tests, one of them has to.
func documented(files []source, pkg string) bool {
	own := slices.DeleteFunc(slices.Clone(files), func(f source) bool { return f.pkg != pkg })
	testsOnly := !slices.ContainsFunc(own, func(f source) bool { return !f.test })
	return slices.ContainsFunc(own, func(f source) bool {
		switch doc, name := f.ast.Doc.Text(), f.ast.Name.Name; {
		case f.test && !testsOnly:
			return false
		case f.test || name == "main":
			return doc != ""
		default:
			return strings.HasPrefix(doc, "Package "+name+" ")
		}
	})
}

// goMod is what `go mod edit -json` tells of a go.mod file.
type goMod struct {
	Require []struct {
		Path, Version string
		Indirect      bool
	}
	Replace []struct{ Old struct{ Path string } }
	Exclude []struct{ Path, Version string }
}

func (m goMod) version(module string) string {
	for _, r := range m.Require {
		if r.Path == module {
			return r.Version
		}
	}
	return ""
}

// SQLite is C translated to Go against one version of its C library: another
// one compiles, and may corrupt memory.
func TestSQLiteHasTheLibcItWasBuiltFor(t *testing.T) {
	t.Parallel()
	const sqlite, libc = "modernc.org/sqlite", "modernc.org/libc"
	ours := readGoMod(t, "go.mod")
	version := ours.version(sqlite)
	if version == "" {
		t.Fatalf("go.mod does not require %s", sqlite)
	}
	var downloaded struct{ GoMod string }
	goJSON(t, &downloaded, "mod", "download", "-json", sqlite+"@"+version)
	want := readGoMod(t, downloaded.GoMod).version(libc)
	if got := ours.version(libc); got != want || want == "" {
		t.Errorf("go.mod has %s %q, %s %s needs %q: go get %[1]s@%[5]s", libc, got, sqlite, version, want)
	}
}

// `go install` of a released version refuses a module with either.
func TestGoModReplacesAndExcludesNothing(t *testing.T) {
	t.Parallel()
	mod := readGoMod(t, "go.mod")
	for _, r := range mod.Replace {
		t.Errorf("go.mod replaces %s", r.Old.Path)
	}
	for _, e := range mod.Exclude {
		t.Errorf("go.mod excludes %s %s", e.Path, e.Version)
	}
}

func TestDependenciesHaveAReason(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range readGoMod(t, "go.mod").Require {
		if !r.Indirect && !strings.Contains(string(text), "| `"+r.Path+"` |") {
			t.Errorf("CONTRIBUTING.md does not say why %s is needed", r.Path)
		}
	}
}

func readGoMod(t *testing.T, file string) goMod {
	t.Helper()
	var mod goMod
	goJSON(t, &mod, "mod", "edit", "-json", file)
	return mod
}

// goJSON decodes what the go command prints.
func goJSON(t *testing.T, into any, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v", strings.Join(args, " "), err)
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("go %s: %v", strings.Join(args, " "), err)
	}
}
