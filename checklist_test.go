package stepmill_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const checklist = "docs/security-checklist.md"

var (
	quoted       = regexp.MustCompile("`([^`]+)`")
	quotedFile   = regexp.MustCompile(`^[\w.-]+(/[\w.-]+)+$|^[\w.-]+\.(go|md|sum|yml)$`)
	quotedTest   = regexp.MustCompile(`^(Test|Fuzz)[A-Z]\w*$`)
	checklistRow = regexp.MustCompile(`^\| (.+?) \| (met|partly|not met|not applicable) \| (.+?) \| ?(.*?) ?\|$`)
)

// TestSecurityChecklist checks that the files and tests in the checklist exist,
// and that every requirement has a status and names what is behind it.
func TestSecurityChecklist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(checklist)
	if err != nil {
		t.Fatal(err)
	}
	tests := testFunctions(parseModule(t))
	requirements := false // whether the line belongs to a table of requirements
	for i, line := range strings.Split(string(text), "\n") {
		checkReferences(t, i+1, line, tests)
		row := checklistRow.FindStringSubmatch(line)
		switch {
		case strings.HasPrefix(line, "| requirement |"):
			requirements = true
		case !strings.HasPrefix(line, "|"):
			requirements = false
		case !requirements || strings.HasPrefix(line, "|---"):
		case row == nil:
			t.Errorf("%s:%d: want | requirement | status | how | where |", checklist, i+1)
		case (row[2] == "met" || row[2] == "partly") && !strings.ContainsAny(row[4], "`["):
			t.Errorf("%s:%d: name the test, the code or the page behind this", checklist, i+1)
		}
	}
}

// checkReferences checks the files that a line names, and that each test is in the
// file named before it.
func checkReferences(t *testing.T, number int, line string, tests map[string][]string) {
	t.Helper()
	file := ""
	for _, match := range quoted.FindAllStringSubmatch(line, -1) {
		switch name := match[1]; {
		case quotedTest.MatchString(name):
			if !slices.Contains(tests[file], name) {
				t.Errorf("%s:%d: there is no %s in %q", checklist, number, name, file)
			}
		case quotedFile.MatchString(name):
			file = name
			if _, err := os.Stat(name); err != nil {
				t.Errorf("%s:%d: %v", checklist, number, err)
			}
		}
	}
}

// testFunctions returns the names of the tests and fuzz targets of each file.
func testFunctions(files []source) map[string][]string {
	tests := map[string][]string{}
	for _, f := range files {
		for _, fn := range f.funcs() {
			if fn.Recv == nil && quotedTest.MatchString(fn.Name.Name) {
				tests[f.name] = append(tests[f.name], fn.Name.Name)
			}
		}
	}
	return tests
}
