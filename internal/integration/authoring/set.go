// Package authoring is for people who write manifests of integrations: it finds manifests
// on disk, checks them and runs their tests. It changes nothing and makes no requests.
package authoring

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/stepmill/stepmill/integrations"
	"github.com/stepmill/stepmill/internal/integration"
	"github.com/stepmill/stepmill/internal/operation/replay"
)

// The files of an integration.
const (
	manifestFile   = "integration.yaml"
	testsFile      = "tests.yaml"
	recordingsFile = "recordings.json"
)

// Set is a set of integrations that are checked together. It is not safe for concurrent
// use.
type Set struct {
	sources []*source
	builtin *integration.Catalog
	// nearby has integrations beside those of the set, whose connections they share.
	nearby map[string]*source
}

type source struct {
	// dir is the folder, and path how it is shown; both are "" for files that are part of
	// the product.
	dir, path string
	files     fs.FS
	manifest  string // the name of the manifest in the folder
	folder    string // the name that the folder must have, "" for any

	linted    bool
	result    *integration.Integration
	problems  integration.Errors
	blockedBy *source // the one whose connections it uses, if that has problems
}

// Builtin returns the integrations that are part of the product.
func Builtin() (*Set, error) {
	found, err := fs.Glob(integrations.Files, "*/"+manifestFile)
	if err != nil {
		return nil, err
	}
	set, err := newSet()
	if err != nil {
		return nil, err
	}
	for _, file := range found {
		folder := filepath.Dir(file)
		files, err := fs.Sub(integrations.Files, folder)
		if err != nil {
			return nil, err
		}
		set.sources = append(set.sources, &source{path: folder, files: files, manifest: manifestFile, folder: folder})
	}
	return set, nil
}

// BuiltinTests returns the tests of an integration that is part of the product.
func BuiltinTests(id string) (*replay.Tests, error) {
	text, err := fs.ReadFile(integrations.Files, id+"/"+testsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return &replay.Tests{}, nil
	}
	if err != nil {
		return nil, err
	}
	return replay.Parse(text)
}

// Open returns the integrations at the paths: manifests, folders with one, or folders of
// such folders.
func Open(paths []string) (*Set, error) {
	set, err := newSet()
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		found, err := find(path)
		if err != nil {
			return nil, err
		}
		for _, one := range found {
			if !slices.ContainsFunc(set.sources, func(s *source) bool { return s.dir == one.dir && s.manifest == one.manifest }) {
				set.sources = append(set.sources, one)
			}
		}
	}
	return set, nil
}

func newSet() (*Set, error) {
	builtin, err := integration.Builtin()
	if err != nil {
		return nil, err
	}
	return &Set{builtin: builtin, nearby: map[string]*source{}}, nil
}

func find(path string) ([]*source, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no file or folder %s", path)
	case err != nil:
		return nil, err
	case !info.IsDir():
		one, err := open(filepath.Dir(path), filepath.Base(path))
		return []*source{one}, err
	case isFile(filepath.Join(path, manifestFile)):
		one, err := open(path, manifestFile)
		return []*source{one}, err
	}
	found, err := fs.Glob(os.DirFS(path), "*/"+manifestFile)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s has no manifests: it needs an %s, or folders with one", path, manifestFile)
	}
	var out []*source
	for _, file := range found {
		one, err := open(filepath.Join(path, filepath.Dir(file)), manifestFile)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// open returns the integration with a manifest in a folder. Only a manifest with the usual
// name has to be in a folder with its id.
func open(path, manifest string) (*source, error) {
	dir, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	out := &source{dir: dir, path: path, files: os.DirFS(dir), manifest: manifest}
	if manifest == manifestFile {
		out.folder = filepath.Base(dir)
	}
	return out, nil
}

func (s *source) shown(file string) string { return filepath.Join(s.path, file) }

// lint returns the integration unless its manifest is not valid, and its problems.
func (s *Set) lint(one *source) (*integration.Integration, integration.Errors) {
	if one.linted {
		return one.result, one.problems
	}
	one.linted = true // before it is: manifests cannot share each other's connections
	text, err := fs.ReadFile(one.files, one.manifest)
	if err != nil {
		one.problems = integration.Errors{{Message: err.Error()}}
	} else {
		one.result, one.problems = integration.Lint(text, one.folder, func(id string) (*integration.Integration, bool) { return s.provider(one, id) })
	}
	if one.blockedBy != nil {
		s.blame(one)
	}
	one.problems = one.problems.In(one.shown(one.manifest))
	return one.result, one.problems
}

// blame replaces the problem that an integration cannot use the connections of another one
// because of the problems of that one.
func (s *Set) blame(one *source) {
	at := slices.IndexFunc(one.problems, func(e *integration.Error) bool { return e.Pointer == "/connection/of" })
	switch {
	case at < 0:
	case slices.Contains(s.sources, one.blockedBy): // its problems are reported anyway
		one.problems = slices.Delete(one.problems, at, at+1)
	default:
		one.problems[at].Message = "its connections cannot be used before the problems of " + one.blockedBy.dir + " are solved"
	}
}

// provider returns the integration whose connections another one uses: one of the set, one
// in the folder beside it, or one that is part of the product.
func (s *Set) provider(of *source, id string) (*integration.Integration, bool) {
	var local *source
	if at := slices.IndexFunc(s.sources, func(one *source) bool { return one.folder == id }); at >= 0 {
		local = s.sources[at]
	} else if of.dir != "" {
		local = s.beside(filepath.Join(filepath.Dir(of.dir), filepath.Base(id)))
	}
	if local == nil {
		return s.builtin.Find(id)
	}
	found, _ := s.lint(local)
	if found == nil && len(local.problems) > 0 {
		of.blockedBy = local
	}
	return found, found != nil
}

// beside returns the integration in a folder, nil if there is none.
func (s *Set) beside(dir string) *source {
	if !isFile(filepath.Join(dir, manifestFile)) {
		return nil
	}
	if s.nearby[dir] == nil {
		one, err := open(dir, manifestFile)
		if err != nil {
			return nil
		}
		s.nearby[dir] = one
	}
	return s.nearby[dir]
}

// tests returns the tests of an integration, nil if it has none or if they cannot be read.
// They are beside a manifest with the usual name.
func (s *source) tests() (*replay.Tests, integration.Errors) {
	text, err := fs.ReadFile(s.files, testsFile)
	if errors.Is(err, fs.ErrNotExist) || s.manifest != manifestFile {
		return nil, nil
	}
	var out *replay.Tests
	if err == nil {
		out, err = replay.Parse(text)
	}
	return out, integration.AsErrors(err).In(s.shown(testsFile))
}

// recordings returns those of an integration, nil if it has none or if they cannot be read.
func (s *source) recordings() (*replay.Recordings, integration.Errors) {
	text, err := fs.ReadFile(s.files, recordingsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out *replay.Recordings
	if err == nil {
		out, err = replay.ParseRecordings(text)
	}
	return out, integration.AsErrors(err).In(s.shown(recordingsFile))
}
