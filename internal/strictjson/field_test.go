package strictjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/strictjson"
)

type (
	Base struct {
		ID   int `json:"id"`
		Kind int `json:"kind"`
		Name int
		Only int `json:"only,omitempty"`
	}
	Other struct {
		Kind  int `json:"kind"`
		Name  int
		Extra int
	}
	Tagged struct {
		Renamed int `json:"Name"`
	}
	hiddenBase struct {
		Seen   int `json:"seen"`
		unseen int //nolint:unused // the decoder must not see it
	}
	Loop struct {
		*Loop
		Depth int `json:"depth"`
	}
	Word   string
	Shadow struct { // the outer id wins
		*Base
		ID int `json:"id"`
	}
	Mixed struct {
		hiddenBase
		Word
		Base   `json:"base"`
		Skip   int `json:"-"`
		Dash   int `json:"-,"` //nolint:staticcheck // a field that is named -
		Plain  int
		hidden int //nolint:unused // the decoder must not see it
	}
	Twice struct { // the same type twice at one depth
		viaA
		viaB
	}
	viaA  struct{ Plain }
	viaB  struct{ Plain }
	Plain struct{ Extra int }
	Timed struct { // has the promoted methods of time.Time
		time.Time
	}
	TwoTimed struct { // ambiguous methods are not promoted
		Start
		End
	}
	Start struct{ time.Time }
	End   struct{ time.Time }
)

// TestFields checks that the scan and encoding/json resolve keys to the same
// fields.
func TestFields(t *testing.T) {
	t.Parallel()
	names := []string{
		"id", "kind", "Name", "only", "Extra", "seen", "unseen", "depth", "Loop", "Base", "base", "Other", "Tagged",
		"hiddenBase", "Word", "Skip", "-", "Dash", "Plain", "hidden", "Time", "Start", "End", "wall", "nothing", "",
	}
	embed := func(types ...reflect.Type) reflect.Type {
		var fields []reflect.StructField
		for _, t := range types {
			fields = append(fields, reflect.StructField{Name: t.Name(), Type: t, Anonymous: true})
		}
		return reflect.StructOf(fields)
	}
	base, other, tagged := reflect.TypeFor[Base](), reflect.TypeFor[Other](), reflect.TypeFor[Tagged]()
	for _, typ := range []reflect.Type{
		base, embed(base, other), embed(base, other, tagged), embed(tagged, base), reflect.TypeFor[Shadow](), reflect.TypeFor[Mixed](),
		reflect.TypeFor[Twice](), reflect.TypeFor[Loop](), reflect.TypeFor[Timed](), reflect.TypeFor[TwoTimed](),
	} {
		for _, name := range names {
			for _, v := range []string{`1`, `"x"`, `{}`, `"2026-01-02T03:04:05Z"`} {
				in := fmt.Sprintf(`{%q:%s}`, name, v)
				mine, std := reflect.New(typ), reflect.New(typ)
				err := strictjson.Decode([]byte(in), mine.Interface())
				d := json.NewDecoder(strings.NewReader(in))
				d.DisallowUnknownFields()
				stdErr := d.Decode(std.Interface())
				if (err == nil) != (stdErr == nil) && !otherCase(err) {
					t.Errorf("%s into %s: %v, but encoding/json says %v", in, typ, err, stdErr)
				}
				if err == nil && !reflect.DeepEqual(mine.Elem().Interface(), std.Elem().Interface()) {
					t.Errorf("%s into %s: %v, want %v", in, typ, mine.Elem(), std.Elem())
				}
			}
		}
	}
}

// otherCase reports whether the name differs only in case from a known one, which
// encoding/json accepts and this package does not.
func otherCase(err error) bool {
	errs, ok := errors.AsType[strictjson.Errors](err)
	if !ok || len(errs) != 1 {
		return false
	}
	key := strings.TrimPrefix(errs[0].Pointer, "/")
	_, suggestion, ok := strings.Cut(errs[0].Message, "did you mean ")
	return ok && strings.EqualFold(suggestion, fmt.Sprintf("%q?)", key))
}

func TestManyFields(t *testing.T) {
	t.Parallel()
	fields := make([]reflect.StructField, 100)
	in := &bytes.Buffer{}
	for i := range fields {
		fields[i] = reflect.StructField{
			Name: fmt.Sprintf("F%d", i), Type: reflect.TypeFor[int](),
			Tag: reflect.StructTag(fmt.Sprintf(`json:"f%d"`, i)),
		}
		fmt.Fprintf(in, `,"f%d":%d`, i, i)
	}
	typ := reflect.StructOf(fields)
	doc := "{" + strings.TrimPrefix(in.String(), ",")
	v := reflect.New(typ)
	if err := strictjson.Decode([]byte(doc+"}"), v.Interface()); err != nil {
		t.Fatal(err)
	}
	if got := v.Elem().Field(99).Int(); got != 99 {
		t.Errorf("last field is %d", got)
	}
	for _, i := range []int{0, 63, 64, 99} {
		err := strictjson.Decode([]byte(fmt.Sprintf(`%s,"f%d":1}`, doc, i)), reflect.New(typ).Interface())
		got := problems(t, err)[0].Message
		if diff := cmp.Diff(fmt.Sprintf(`duplicate key "f%d"`, i), got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
