package fault_test

import (
	"errors"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/fault"
)

func TestFound(t *testing.T) {
	t.Parallel()
	missing := func(id string) error { return fault.New(fault.RunNotFound, "there is no run %q", id) }
	value, broken := 7, errors.New("broken")
	if got, err := fault.Found(&value, nil, missing, "a"); got != 7 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	if _, err := fault.Found[int](nil, nil, missing, "a"); !fault.Is(err, fault.RunNotFound) {
		t.Errorf("%v", err)
	}
	if got, err := fault.Found(&value, broken, missing, "a"); got != 0 || !errors.Is(err, broken) {
		t.Errorf("%d, %v", got, err)
	}
}

// The table of error codes in docs/api.md has one row for each status, with
// exactly the codes that the API returns with it.
func TestDocumentedCodes(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[fault.Code]int{}
	rows := map[int]int{}
	for _, row := range regexp.MustCompile("(?m)^\\| (\\d{3}) \\| (`.+`) \\|$").FindAllStringSubmatch(string(page), -1) {
		status, err := strconv.Atoi(row[1])
		if err != nil {
			t.Fatal(err)
		}
		rows[status]++
		for code := range strings.SplitSeq(row[2], ", ") {
			documented[fault.Code(strings.Trim(code, "`"))] = status
		}
	}
	if diff := cmp.Diff(fault.Codes(), documented); diff != "" {
		t.Errorf("docs/api.md differs from the codes of the API (-codes +docs):\n%s", diff)
	}
	for status, n := range rows {
		if n > 1 {
			t.Errorf("docs/api.md has %d rows for %d", n, status)
		}
	}
}

func TestFieldsReportsEveryField(t *testing.T) {
	t.Parallel()
	name, email := fault.Field("/name", "must not be empty"), fault.Field("/email", "is not an e-mail address")
	if err := fault.Fields(nil, nil); err != nil {
		t.Errorf("without errors: %v", err)
	}
	if err := fault.Fields(nil, name); !errors.Is(err, name) {
		t.Errorf("with one error: %v", err)
	}
	f, ok := fault.As(fault.Fields(email, nil, name))
	if !ok || f.Code != fault.InvalidRequest || f.Message != "/email: is not an e-mail address; /name: must not be empty" {
		t.Errorf("with two errors: %v", f)
	}
	if len(f.Details) != 2 || f.Details[0].Pointer != "/email" || f.Details[1].Pointer != "/name" {
		t.Errorf("details: %v", f.Details)
	}
	if len(email.Details) != 1 {
		t.Errorf("the first error has changed: %v", email.Details)
	}
	for _, other := range []error{errors.New("broken"), fault.New(fault.RunNotFound, "no run")} {
		if err := fault.Fields(name, other, email); !errors.Is(err, other) {
			t.Errorf("an error about no field: got %v, want %v", err, other)
		}
	}
}
