package strictjson_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stepmill/stepmill/internal/strictjson"
)

// color rejects some values with its own message.
type color struct{ name string }

func (c *color) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, &c.name); err != nil {
		return err
	}
	if c.name == "beige" {
		return errors.New("beige is not a color")
	}
	return nil
}

// shape has an UnmarshalJSON that uses this package.
type shape struct {
	Sides  int   `json:"sides"`
	Points []int `json:"points"`
}

func (s *shape) UnmarshalJSON(data []byte) error {
	type plain shape
	if err := strictjson.Decode(data, (*plain)(s)); err != nil {
		return fmt.Errorf("decode shape: %w", err)
	}
	return nil
}

type step struct {
	ID    string   `json:"id"`
	Needs []string `json:"needs,omitempty"`
}

type document struct {
	State      string                       `json:"state"`
	WorkflowID *string                      `json:"workflow_id"`
	Enabled    bool                         `json:"enabled"`
	Count      int                          `json:"count"`
	Small      int8                         `json:"small"`
	Port       uint16                       `json:"port"`
	Big        uint64                       `json:"big"`
	Ratio      float64                      `json:"ratio"`
	Single     float32                      `json:"single"`
	Number     json.Number                  `json:"number"`
	At         time.Time                    `json:"at"`
	Until      *time.Time                   `json:"until"`
	Blob       []byte                       `json:"blob"`
	Addr       netip.Addr                   `json:"addr"`
	Color      color                        `json:"color"`
	Shape      shape                        `json:"shape"`
	Steps      []step                       `json:"steps"`
	ByName     map[string]step              `json:"by_name"`
	Raw        json.RawMessage              `json:"raw"`
	Free       any                          `json:"free"`
	Input      map[string]any               `json:"input"`
	Patch      strictjson.Optional[step]    `json:"patch"`
	Title      strictjson.Optional[string]  `json:"title"`
	Due        strictjson.Optional[*[]step] `json:"due"`
}

type shapeTest struct {
	in   string
	want []string // pointer, two spaces, message
}

func (test shapeTest) run(t *testing.T) {
	t.Parallel()
	var got []string
	for _, e := range problems(t, strictjson.Decode([]byte(test.in), new(document))) {
		if e.Kind != strictjson.Shape {
			t.Errorf("kind of %v is %v", e, e.Kind)
		}
		got = append(got, e.Pointer+"  "+e.Message)
	}
	if diff := cmp.Diff(test.want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestShapeOfTheDocument(t *testing.T) {
	t.Parallel()
	for _, test := range []shapeTest{
		{`[]`, []string{"  must be an object, not an array"}},
		{`null`, []string{"  must be an object, not null"}},
		{`"x"`, []string{"  must be an object, not a string"}},
	} {
		t.Run(test.in, test.run)
	}
}

func TestUnknownFields(t *testing.T) {
	t.Parallel()
	for _, test := range []shapeTest{
		{`{"stat":"x"}`, []string{`/stat  unknown field "stat" (did you mean "state"?)`}},
		{`{"State":"x"}`, []string{`/State  unknown field "State" (did you mean "state"?)`}},
		{`{"workflowId":"x"}`, []string{`/workflowId  unknown field "workflowId" (did you mean "workflow_id"?)`}},
		{`{"zzz":[{"state":1}]}`, []string{`/zzz  unknown field "zzz"`}},
		{`{"steps":[{},{"id":"a","Id":"b"}]}`, []string{`/steps/1/Id  unknown field "Id" (did you mean "id"?)`}},
		{`{"by_name":{"a/b":{"x~y":1}}}`, []string{`/by_name/a~1b/x~0y  unknown field "x~y"`}},
		{`{"patch":{"ids":"a"}}`, []string{`/patch/ids  unknown field "ids" (did you mean "id"?)`}},
		{`{"due":[{"need":[]}]}`, []string{`/due/0/need  unknown field "need" (did you mean "needs"?)`}},
	} {
		t.Run(test.in, test.run)
	}
}

func TestWrongTypes(t *testing.T) {
	t.Parallel()
	for _, test := range []shapeTest{
		{`{"state":1}`, []string{"/state  must be a string, not a number"}},
		{`{"state":null}`, []string{"/state  must be a string, not null"}},
		{`{"state":true}`, []string{"/state  must be a string, not a boolean"}},
		{`{"state":{"a":1}}`, []string{"/state  must be a string, not an object"}},
		{`{"workflow_id":[1]}`, []string{"/workflow_id  must be a string, not an array"}},
		{`{"enabled":"true"}`, []string{"/enabled  must be a boolean, not a string"}},
		{`{"enabled":null}`, []string{"/enabled  must be a boolean, not null"}},
		{`{"count":"1"}`, []string{"/count  must be an integer, not a string"}},
		{`{"ratio":"1"}`, []string{"/ratio  must be a number, not a string"}},
		{`{"number":"1"}`, []string{"/number  must be a number, not a string"}},
		{`{"steps":null}`, []string{"/steps  must be an array, not null"}},
		{`{"steps":{}}`, []string{"/steps  must be an array, not an object"}},
		{`{"steps":[null]}`, []string{"/steps/0  must be an object, not null"}},
		{`{"steps":[{"needs":["a",1]}]}`, []string{"/steps/0/needs/1  must be a string, not a number"}},
		{`{"by_name":[]}`, []string{"/by_name  must be an object, not an array"}},
		{`{"by_name":{"a":null}}`, []string{"/by_name/a  must be an object, not null"}},
		{`{"input":null}`, []string{"/input  must be an object, not null"}},
		{`{"input":[1]}`, []string{"/input  must be an object, not an array"}},
		{`{"title":1}`, []string{"/title  must be a string, not a number"}},
		{`{"patch":{"id":null}}`, []string{"/patch/id  must be a string, not null"}},
	} {
		t.Run(test.in, test.run)
	}
}

func TestNumberRanges(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("1", 101)
	for _, test := range []shapeTest{
		{`{"count":1.5}`, []string{"/count  must be an integer, without a fraction or exponent"}},
		{`{"count":1e400}`, []string{"/count  must be an integer, without a fraction or exponent"}},
		{`{"count":9223372036854775808}`, []string{"/count  must be between -9223372036854775808 and 9223372036854775807"}},
		{`{"small":128}`, []string{"/small  must be between -128 and 127"}},
		{`{"port":-1}`, []string{"/port  must be between 0 and 65535"}},
		{`{"port":65536}`, []string{"/port  must be between 0 and 65535"}},
		{`{"big":18446744073709551616}`, []string{"/big  must be between 0 and 18446744073709551615"}},
		{`{"ratio":1e400}`, []string{"/ratio  number is out of range"}},
		{`{"single":1e39}`, []string{"/single  number is out of range"}},
		{`{"free":[-1e400]}`, []string{"/free/0  number is out of range"}},
		{`{"raw":{"a":1e400}}`, []string{"/raw/a  number is out of range"}},
		{`{"count":` + long + `}`, []string{"/count  number is too long (more than 100 characters)"}},
		{`{"raw":[` + long + `]}`, []string{"/raw/0  number is too long (more than 100 characters)"}},
	} {
		t.Run(test.in, test.run)
	}
}

func TestTypesWithMethods(t *testing.T) {
	t.Parallel()
	for _, test := range []shapeTest{
		{`{"at":"yesterday"}`, []string{"/at  must be an RFC 3339 time"}},
		{`{"at":"2026-01-02"}`, []string{"/at  must be an RFC 3339 time"}},
		{`{"at":1767312000}`, []string{"/at  must be an RFC 3339 time, not a number"}},
		{`{"at":null}`, []string{"/at  must be an RFC 3339 time, not null"}},
		{`{"until":"2026-02-30T00:00:00Z"}`, []string{"/until  must be an RFC 3339 time"}},
		{`{"blob":"%"}`, []string{"/blob  must be base64 text"}},
		{`{"blob":[1]}`, []string{"/blob  must be a string, not an array"}},
		{`{"addr":"1.2.3"}`, []string{`/addr  ParseAddr("1.2.3"): IPv4 address too short`}},
		{`{"color":"beige"}`, []string{"/color  beige is not a color"}},
		{`{"color":1}`, []string{"/color  must be a string, not a number"}},
		{`{"shape":{"sides":"x","points":[1,"2"],"a":0}}`, []string{
			"/shape/sides  must be an integer, not a string",
			"/shape/points/1  must be an integer, not a string",
			`/shape/a  unknown field "a"`,
		}},
	} {
		t.Run(test.in, test.run)
	}
}

func TestNUL(t *testing.T) {
	t.Parallel()
	for _, test := range []shapeTest{
		{`{"state":"a\u0000b"}`, []string{"/state  contains a NUL character"}},
		{`{"raw":{"a":["\u0000"]}}`, []string{"/raw/a/0  contains a NUL character"}},
		{`{"free":{"a\u0000":1}}`, []string{"/free  a key contains a NUL character"}},
	} {
		t.Run(test.in, test.run)
	}
}

func TestSeveralErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []shapeTest{
		{`{"state":1,"x":2,"steps":[{"id":3},{"id":"a"},5],"color":"beige","at":"x"}`, []string{
			"/state  must be a string, not a number",
			`/x  unknown field "x"`,
			"/steps/0/id  must be a string, not a number",
			"/steps/2  must be an object, not a number",
			"/color  beige is not a color",
			"/at  must be an RFC 3339 time",
		}},
	} {
		t.Run(test.in, test.run)
	}
}

func TestShapePosition(t *testing.T) {
	t.Parallel()
	in := "{\n  \"state\": 5,\n  \"shape\": {\"sides\": \"x\",\n    \"points\": 1}, \"nope\": 1,\n \"at\": \"ä\"\n}"
	var got [][2]int
	for _, e := range problems(t, strictjson.Decode([]byte(in), new(document))) {
		got = append(got, [2]int{e.Line, e.Column})
	}
	// The errors inside shape come from a nested decoder.
	if diff := cmp.Diff([][2]int{{2, 12}, {3, 22}, {4, 15}, {4, 19}, {5, 8}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	err := strictjson.Decode([]byte(`{"state":1,"steps":[2]}`), new(document))
	const want = "/state: must be a string, not a number; /steps/0: must be an object, not a number"
	if err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	err = fmt.Errorf("read the body: %w", strictjson.Check([]byte("[\n1 2]")))
	var first *strictjson.Error
	if !errors.As(err, &first) {
		t.Fatalf("no *Error in %v", err)
	}
	if want := "line 2, column 3: unexpected character '2', expected a comma or ]"; first.Error() != want {
		t.Errorf("got %q, want %q", first, want)
	}
	if got := first.Kind.String() + " " + strictjson.Shape.String(); got != "syntax shape" {
		t.Errorf("kinds are %q", got)
	}
}

func TestLongNamesAreTruncated(t *testing.T) {
	t.Parallel()
	key := strings.Repeat("ä", 500)
	errs := problems(t, strictjson.Decode([]byte(`{"`+key+`":1}`), new(document)))
	want := `unknown field "` + strings.Repeat("ä", 64) + `"…`
	if errs[0].Message != want || errs[0].Pointer != "/"+key {
		t.Errorf("got %+v", errs[0])
	}
}

// viaStd has an UnmarshalJSON that uses encoding/json.
type viaStd[T any] struct{ value T }

func (v *viaStd[T]) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, &v.value) }

// TestMessagesHideGoTypes checks that messages do not contain names of Go types.
func TestMessagesHideGoTypes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   string
		dst  any
		want string
	}{
		{`1`, new(viaStd[bool]), "must be a boolean, not a number"},
		{`true`, new(viaStd[uint8]), "must be an integer, not a boolean"},
		{`1.5`, new(viaStd[int]), "must be an integer, not a number"},
		{`[]`, new(viaStd[float64]), "must be a number, not an array"},
		{`{}`, new(viaStd[[]int]), "must be an array, not an object"},
		{`"x"`, new(viaStd[map[string]int]), "must be an object, not a string"},
		{`{"id":1}`, new(viaStd[step]), "id must be a string, not a number"},
		{`1`, new(viaStd[error]), "must be another type, not a number"},
	}
	for _, test := range tests {
		errs := problems(t, strictjson.Decode([]byte(test.in), test.dst))
		if len(errs) != 1 || errs[0].Message != test.want {
			t.Errorf("%s into %T: got %q, want %q", test.in, test.dst, errs, test.want)
		}
	}
}
