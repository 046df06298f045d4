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
	maxMethods   = 60
)

// Groups of packages that the table below refers to. The domain packages are
// named after the product's concepts; the concrete actions and types of triggers,
// and the catalogs that list them, are not among them.
const (
	base   = "clock counter credcache cron decimal descriptor etag expr failpoint fairqueue fault jsonpath jsonpointer listfile locale lru mask paging pubsub release search signature strictjson strictyaml suggest txn typeschema uid"
	domain = "account action audit auth connection event file idempotency integration node ownintegration run secret state subscription table template trigger usage vault webhook workflow"
)

// rule lists the packages of this module that a package may import. Packages
// are named by their path under internal/, or with a leading slash by their path
// in the module. A * matches one path element.
type rule struct {
	pkg string
	may string
}

// rules says which package may import which. The first entry that matches a
// package applies. Test files may import more.
var rules = []rule{
	// Base packages, which every other package may use.
	{pkg: "clock", may: base},
	{pkg: "credcache", may: base},
	{pkg: "cron", may: base},
	{pkg: "decimal", may: base},
	{pkg: "descriptor", may: base},
	{pkg: "etag", may: base},
	{pkg: "expr", may: base},
	{pkg: "failpoint", may: base},
	{pkg: "fairqueue", may: base},
	{pkg: "fault", may: base},
	{pkg: "fault/faulttest", may: "fault"},
	{pkg: "jsonpath", may: base},
	{pkg: "jsonpointer", may: base},
	{pkg: "listfile", may: base},
	{pkg: "locale", may: base},
	{pkg: "lru", may: base},
	{pkg: "mask", may: base},
	{pkg: "pubsub", may: base},
	{pkg: "paging", may: base},
	{pkg: "release", may: base},
	{pkg: "search", may: base},
	{pkg: "signature", may: base},
	{pkg: "strictjson", may: base},
	{pkg: "strictyaml", may: base},
	{pkg: "suggest", may: base},
	{pkg: "counter", may: base},
	{pkg: "txn", may: base},
	{pkg: "typeschema", may: base},
	{pkg: "uid", may: base},

	// Domain packages: base packages, and the domain packages they build on.
	{pkg: "account", may: base + " audit auth"},
	{pkg: "action", may: base + " auth egress state table"},
	{pkg: "action/actiontest", may: base + " action"},
	{pkg: "action/catalog", may: base + " action action/* integration operation"},
	{pkg: "action/itemlist", may: base + " action"},
	{pkg: "action/pages", may: base + " action action/itemlist action/transfer egress"},
	{pkg: "action/transfer", may: base + " action egress"},
	{pkg: "action/*", may: base + " action action/itemlist action/pages action/transfer egress sandbox state table vault"},
	{pkg: "audit", may: base},
	{pkg: "auth", may: base + " audit vault"},
	{pkg: "connection", may: base + " action audit auth digest egress event integration vault"},
	{pkg: "event", may: base},
	{pkg: "file", may: base + " audit auth blob"},
	{pkg: "idempotency", may: base + " auth vault"},
	{pkg: "node", may: base + " auth"},
	{pkg: "ownintegration", may: base + " audit auth integration integration/openapi"},
	{pkg: "run", may: base + " action audit auth event file workflow"},
	{pkg: "secret", may: base + " audit auth vault"},
	{pkg: "state", may: base + " auth expr table"},
	{pkg: "table", may: base + " audit auth"},
	{pkg: "subscription", may: base + " action auth connection integration operation run trigger trigger/service vault workflow"},
	{pkg: "trigger", may: base + " action audit auth event integration run vault workflow"},
	{pkg: "trigger/catalog", may: base + " integration operation trigger trigger/*"},
	{pkg: "trigger/service", may: base + " action integration integration/authoring operation trigger trigger/poll workflow"},
	{pkg: "trigger/*", may: base + " action audit auth event file run trigger workflow"},
	{pkg: "template", may: base + " workflow"},
	{pkg: "integration", may: base + " egress /integrations"},
	{pkg: "integration/authoring", may: base + " integration operation/replay /integrations"},
	{pkg: "integration/openapi", may: base + " egress integration"},
	{pkg: "integration/reference", may: base + " integration operation operation/replay"},
	{pkg: "operation", may: base + " action action/itemlist action/pages action/transfer egress integration"},
	{pkg: "operation/replay", may: base + " action egress integration operation"},
	{pkg: "usage", may: base + " auth"},
	{pkg: "vault", may: base},
	{pkg: "webhook", may: base + " audit auth egress event vault workflow"},
	{pkg: "workflow", may: base + " action audit auth event file"},

	// Machinery: the engine knows what an action is, but no concrete action.
	{pkg: "archive", may: base},
	{pkg: "backup", may: base + " blob"},
	{pkg: "blob", may: base},
	{pkg: "blob/blobtest", may: base + " blob /test/lane"},
	{pkg: "blob/*", may: base + " blob"},
	{pkg: "adminsocket", may: base},
	{pkg: "cluster", may: base + " auth cluster/* database dispatch dispatch/local node ratelimit run runqueue store store/postgres telemetry webhook"},
	{pkg: "cluster/heartbeat", may: base + " node run"},
	{pkg: "cluster/peer", may: base},
	{pkg: "cluster/river", may: base + " database dispatch run store/postgres"},
	{pkg: "database", may: base},
	{pkg: "digest", may: base},
	{pkg: "dispatch", may: base + " run"},
	{pkg: "dispatch/local", may: base + " dispatch run"},
	{pkg: "egress", may: base},
	{pkg: "engine", may: base + " " + domain + " dispatch"},
	{pkg: "oidc", may: base + " account egress"},
	{pkg: "ratelimit", may: base},
	{pkg: "runqueue", may: base + " auth database run"},
	{pkg: "sandbox", may: base},
	{pkg: "telemetry", may: base},

	// Edges: the API and the stores know the domain, not each other.
	{pkg: "api", may: base + " " + domain + " operation ratelimit transport trigger/webhook /openapi"},
	{pkg: "transport", may: base + " account auth idempotency ratelimit usage"},
	{pkg: "store", may: base + " " + domain + " archive blob database runqueue store/migrations"},
	{pkg: "store/migrations"},
	{pkg: "store/postgres", may: base + " " + domain + " database store store/migrations"},
	{pkg: "store/postgrestest", may: "clock cluster/river store/postgres /test/postgres"},
	{pkg: "store/sqlite", may: base + " " + domain + " database store store/migrations"},
	{pkg: "store/sqlitetest", may: base + " " + domain + " store store/sqlite"},
	{pkg: "store/storetest", may: base + " " + domain + " archive blob database runqueue store store/migrations /test/lane"},

	// Assembly: only app imports everything.
	{pkg: "app", may: "* */* /openapi /web"},
	{pkg: "cli", may: "app config"},
	{pkg: "config", may: base},
	{pkg: "/cmd/stepmill", may: "cli"},

	// Outside internal.
	{pkg: "/"},
	{pkg: "/bench", may: "/test/postgres"},
	{pkg: "/bench/ceiling"},
	{pkg: "/integrations"},
	{pkg: "/openapi", may: "strictyaml"},
	{pkg: "/test/*", may: "/openapi /test/*"},
	{pkg: "/web"},
}

// outside lists the folders that are not part of the architecture.
var outside = []string{".git", "bin", "test/oracles/google", "tools", "web/node_modules"}

var vagueNames = []string{"common", "helper", "helpers", "types", "util", "utils"}

func TestArchitecture(t *testing.T) {
	t.Parallel()
	files := parseModule(t)

	t.Run("imports", func(t *testing.T) {
		t.Parallel()
		for _, pkg := range packages(files) {
			if _, ok := ruleFor(pkg); !ok {
				t.Errorf("package %s: add it to the table in arch_test.go", shown(pkg))
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

	t.Run("every rule matches a package", func(t *testing.T) {
		t.Parallel()
		pkgs := packages(files)
		for _, r := range rules {
			if !slices.ContainsFunc(pkgs, func(pkg string) bool { return matches(r.pkg, pkg) }) {
				t.Errorf("there is no package %s: remove it from the table in arch_test.go", r.pkg)
			}
		}
		for name := range strings.FieldsSeq(base + " " + domain) {
			if !slices.Contains(pkgs, "internal/"+name) {
				t.Errorf("there is no package internal/%s: remove it from its group in arch_test.go", name)
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
				t.Errorf("%s: rename the package after what is in it", f.name)
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

	t.Run("methods", func(t *testing.T) {
		t.Parallel()
		counts := map[string]int{}
		for _, f := range files {
			for _, fn := range f.funcs() {
				if receiver := receiverType(fn); !f.test && ast.IsExported(receiver) {
					counts[f.pkg+"."+receiver]++
				}
			}
		}
		for name, n := range counts {
			if n > maxMethods {
				t.Errorf("%s has %d methods; at most %d", name, n, maxMethods)
			}
		}
	})

	t.Run("app asks about its database once", func(t *testing.T) {
		t.Parallel()
		for _, f := range files {
			if f.pkg != "internal/app" || f.test {
				continue
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				name, homes := databaseQuestion(n)
				if homes != nil && !slices.Contains(homes, path.Base(f.name)) {
					t.Errorf("%s: %s belongs in %s: make what differs a method of location or backend", f.at(n.Pos()), name, strings.Join(homes, ", "))
				}
				return true
			})
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

// databaseQuestion returns what in a node of the syntax depends on the kind of database,
// and the files of internal/app in which it may be.
func databaseQuestion(n ast.Node) (name string, homes []string) {
	switch n := n.(type) {
	case *ast.SelectorExpr:
		of, _ := n.X.(*ast.Ident)
		switch {
		case n.Sel.Name == "Shared", of != nil && of.Name == "data" && n.Sel.Name == "URL":
			return n.Sel.Name, []string{"location.go"}
		case of != nil && of.Name == "cluster" && n.Sel.Name == "Join":
			return "cluster.Join", []string{"shared.go"}
		case of != nil && of.Name == "cluster" && n.Sel.Name == "NewSingle":
			return "cluster.NewSingle", []string{"embedded.go"}
		}
	case *ast.Ident:
		switch n.Name {
		case "directory", "embeddedBackend":
			return n.Name, []string{"embedded.go", "location.go"}
		case "sharedDatabase", "sharedBackend":
			return n.Name, []string{"shared.go", "location.go"}
		}
	case *ast.ImportSpec:
		if imported := strings.Trim(n.Path.Value, `"`); imported == module+"/internal/store/postgres" || imported == module+"/internal/cluster/river" {
			return imported, []string{"shared.go"}
		}
	}
	return "", nil
}

// TestImportTable checks the edges that the table is there for.
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
		{"internal/action/httprequest", "internal/action/transfer", true},
		{"internal/action/transfer", "internal/action/httprequest", false},
		{"internal/action/itemlist", "internal/action/transfer", false},
		{"internal/action/pages", "internal/action/httprequest", false},
		{"internal/action/catalog", "internal/action/wait", true},
		{"internal/engine", "internal/action", true},
		{"internal/engine", "internal/action/wait", false},
		{"internal/engine", "internal/action/catalog", false},
		{"internal/engine", "internal/api", false},
		{"internal/engine", "internal/store", false},
		{"internal/cluster", "internal/store/postgres", true},
		{"internal/cluster", "internal/engine", false},
		{"internal/cluster", "internal/api", false},
		{"internal/cluster/heartbeat", "internal/store/postgres", false},
		{"internal/cluster/river", "internal/dispatch", true},
		{"internal/cluster/river", "internal/dispatch/local", false},
		{"internal/store/postgres", "internal/cluster/peer", false},
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
		{"internal/cli", "internal/store/sqlite", false},
		{"cmd/stepmill", "internal/cli", true},
		{"cmd/stepmill", "internal/app", false},
	} {
		imported := tc.to
		if strings.HasPrefix(tc.to, "internal/") || slices.Contains([]string{"openapi", "web"}, tc.to) {
			imported = module + "/" + tc.to
		}
		if reason := forbidden(tc.from, imported); (reason == "") != tc.allowed {
			t.Errorf("%s importing %s: allowed %t, want %t", tc.from, tc.to, reason == "", tc.allowed)
		}
	}
}

// forbidden returns why the package may not import the other, or "" if it may.
func forbidden(pkg, imported string) string {
	p, ok := ruleFor(pkg)
	if !ok {
		return "" // reported elsewhere
	}
	target, ours := strings.CutPrefix(imported+"/", module+"/")
	if !ours {
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

func ruleFor(pkg string) (rule, bool) {
	i := slices.IndexFunc(rules, func(r rule) bool { return matches(r.pkg, pkg) })
	if i < 0 {
		return rule{}, false
	}
	return rules[i], true
}

// matches reports whether a package's path in the module matches a name in the
// table.
func matches(pattern, pkg string) bool {
	if p, ok := strings.CutPrefix(pattern, "/"); ok {
		pattern = p
	} else {
		pattern = "internal/" + pattern
	}
	ok, err := path.Match(pattern, pkg)
	return ok && err == nil
}

// receiverType returns the name of the type that a method belongs to, or "" for a function.
func receiverType(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	of := fn.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	switch generic := of.(type) {
	case *ast.IndexExpr:
		of = generic.X
	case *ast.IndexListExpr:
		of = generic.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name
	}
	return ""
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

// parseModule parses every Go file, whatever its build constraints.
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

// documented reports whether a file of the package has the package comment. In a
// package with only test files, it may be in one of those.
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

// goMod is the output of `go mod edit -json`.
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
