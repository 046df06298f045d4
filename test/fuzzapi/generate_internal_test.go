package fuzzapi

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func load(t *testing.T) *Document {
	t.Helper()
	d, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func newGenerator() *generator {
	return &generator{random: rand.New(rand.NewPCG(1, 2)), known: NewKnown("http://127.0.0.1:1")}
}

var someone = &Identity{Name: "someone", Workspace: "first", Credential: func() Field { return Field{"Authorization", "Bearer k"} }}

// TestGeneratedBodiesMatchTheirSchema generates bodies for every operation. Schemas
// have conditions that the generator does not know, so not every body has to match.
func TestGeneratedBodiesMatchTheirSchema(t *testing.T) {
	t.Parallel()
	g := newGenerator()
	for _, op := range load(t).Operations {
		for media, content := range op.Bodies {
			valid, last := 0, error(nil)
			for range 50 {
				value, err := jsonschema.UnmarshalJSON(bytes.NewReader(encode(g.value("", content.At("schema"), 0))))
				if err != nil {
					t.Fatalf("%s: %v", op.ID, err)
				}
				if err := content.At("schema").Validate(value); err != nil {
					last = err
				} else {
					valid++
				}
			}
			if valid < 10 {
				t.Errorf("%s %s: only %d of 50 bodies match, such as: %v", op.ID, media, valid, last)
			}
		}
	}
}

// TestRequestsReachTheirOperation checks that requests without mutations are for the
// operation they were generated from.
func TestRequestsReachTheirOperation(t *testing.T) {
	t.Parallel()
	g, d := newGenerator(), load(t)
	session := &Identity{Name: "session", Session: true, Credential: func() Field { return Field{"Cookie", "c=d"} }}
	for _, op := range d.Operations {
		for _, as := range []*Identity{someone, session} {
			q := g.draft(op, as).finish()
			if found := d.Find(q.Method, q.path()); found != op {
				t.Errorf("%s: %s %s is for %v", op.ID, q.Method, q.Target, found)
			}
			if q.malformed() {
				t.Errorf("%s: %s is malformed", op.ID, q.Target)
			}
		}
	}
}

// TestEveryMutationChangesTheRequest applies each mutation until it has changed a
// request.
func TestEveryMutationChangesTheRequest(t *testing.T) {
	t.Parallel()
	operations := load(t).Operations
	for _, m := range mutations {
		applied := 0
		for seed := range uint64(180) {
			op := operations[seed%uint64(len(operations))]
			fresh := func() (*generator, *draft) {
				g := newGenerator()
				g.random = rand.New(rand.NewPCG(seed, 0))
				d := g.draft(op, someone)
				return g, d
			}
			_, plain := fresh()
			g, changed := fresh()
			if m.apply(g, changed) && !bytes.Equal(plain.finish().wire(), changed.finish().wire()) {
				applied++
			}
		}
		if applied == 0 {
			t.Errorf("%s changed none of 180 requests", m.name)
		}
	}
}

// TestSameSeedSameRequests checks that a run can be repeated.
func TestSameSeedSameRequests(t *testing.T) {
	t.Parallel()
	d := load(t)
	var runs [2][][]byte
	for i := range runs {
		g, f := newGenerator(), &Fuzzer{Identities: []*Identity{someone}}
		for _, op := range d.Operations {
			runs[i] = append(runs[i], f.next(g, op).wire())
		}
	}
	if !slices.EqualFunc(runs[0], runs[1], bytes.Equal) {
		t.Error("the same seed gave other requests")
	}
}

func TestPatterns(t *testing.T) {
	t.Parallel()
	g := newGenerator()
	for range 100 {
		if got := g.matching(`^(ab|c)[0-9]{2}x?$`); len(got) < 3 || len(got) > 5 {
			t.Errorf("%q", got)
		}
	}
}

func TestEncodeAllowsMalformedValues(t *testing.T) {
	t.Parallel()
	got := string(encode(object{{"a", number("1e5")}, {"a", literal("NaN")}, {"b", []any{nil, "x\"", true}}}))
	if want := `{"a":1e5,"a":NaN,"b":[null,"x\"",true]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestShrinkKeepsWhatMatters(t *testing.T) {
	t.Parallel()
	q := &Request{
		Method: "POST", Target: "/x?a=1&b=2&c=3", Header: []Field{{"A", "1"}, {"B", "2"}},
		Body: []byte(`{"keep": {"x": "aaaaaaaa", "y": [1, 2]}, "drop": true}`),
	}
	fails := func(r *Request) bool {
		return json.Valid(r.Body) && bytes.Contains(bytes.ReplaceAll(r.Body, []byte(" "), nil), []byte(`"y":[`)) && r.get("B") != "" && strings.Contains(r.Target, "b=2")
	}
	got := shrink(q, fails)
	if got.Target != "/x?b=2" || len(got.Header) != 1 || string(got.Body) != `{"keep":{"y":[]}}` {
		t.Errorf("got %+v, body %s", got, got.Body)
	}
}
