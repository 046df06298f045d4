package fuzzapi

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxDepth is the depth from which on a generated value has only required members.
const maxDepth = 6

// generator makes values that match schemas.
type generator struct {
	random *rand.Rand
	known  *Known
	// workspace is the one of the caller.
	workspace string
	// edge prefers values at a limit of their schema, and one beyond it.
	edge bool
}

func (g *generator) chance(percent int) bool { return g.random.IntN(100) < percent }

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// value returns a value for a schema. The name is that of the member or parameter.
func (g *generator) value(name string, schema Node, depth int) any {
	switch {
	case schema.has("const"):
		return valueOf(schema.members()["const"])
	case schema.has("enum"):
		return valueOf(pick(g.random, schema.members()["enum"].([]any)))
	case schema.has("x-extensible-enum"):
		return valueOf(pick(g.random, schema.members()["x-extensible-enum"].([]any)))
	}
	for _, choice := range []string{"oneOf", "anyOf"} {
		list := schema.At(choice)
		if list.length() > 0 && !schema.has("properties") {
			return g.value(name, list.Element(g.random.IntN(list.length())), depth+1)
		}
	}
	if list := schema.At("allOf"); list.length() > 0 && !schema.has("type") {
		return g.value(name, list.Element(0), depth+1)
	}
	switch g.typeOf(schema) {
	case "object":
		return g.object(schema, depth)
	case "array":
		return g.array(name, schema, depth)
	case "string":
		return g.text(name, schema)
	case "integer":
		return json.Number(strconv.Itoa(g.integer(schema)))
	case "number":
		return json.Number(strconv.Itoa(g.integer(schema)) + pick(g.random, []string{"", ".5", "e2", ".0"}))
	case "boolean":
		return g.chance(50)
	case "null":
		return nil
	}
	return g.anything(depth)
}

func (g *generator) typeOf(schema Node) string {
	if name := schema.At("type").text(); name != "" {
		return name
	}
	if names := schema.At("type").strings(); len(names) > 0 {
		return pick(g.random, names)
	}
	if schema.has("properties") {
		return "object"
	}
	return ""
}

func (g *generator) object(schema Node, depth int) any {
	required := schema.At("required").strings()
	if list := schema.At("anyOf"); list.length() > 0 { // of which members are required
		required = append(required, list.Element(g.random.IntN(list.length())).At("required").strings()...)
	}
	out := object{}
	properties := schema.At("properties")
	for _, name := range slices.Sorted(maps.Keys(properties.members())) {
		if slices.Contains(required, name) || depth < maxDepth && g.chance(40) {
			out = append(out, member{name, g.value(name, properties.At(name), depth+1)})
		}
	}
	if extra := schema.At("additionalProperties"); depth < maxDepth && extra.value != nil && extra.value != false {
		for range g.random.IntN(4) {
			name := g.word()
			if names := schema.At("propertyNames"); names.value != nil {
				name, _ = g.value("", names, depth+1).(string)
			}
			out = set(out, name, g.value(name, extra, depth+1))
		}
	}
	return g.applyConditions(schema, out, depth)
}

// applyConditions generates the members that depend on a constant, such as the input
// of an action.
func (g *generator) applyConditions(schema Node, out object, depth int) object {
	for i := range schema.At("allOf").length() {
		condition := schema.At("allOf").Element(i)
		if !holds(condition.At("if", "properties"), out) {
			continue
		}
		then := condition.At("then")
		for _, name := range slices.Sorted(maps.Keys(then.At("properties").members())) {
			out = set(out, name, g.value(name, then.At("properties", name), depth+1))
		}
	}
	return out
}

// holds reports whether an object has all the given constants.
func holds(constants Node, out object) bool {
	for name := range constants.members() {
		i := slices.IndexFunc(out, func(m member) bool { return m.name == name })
		if i < 0 || out[i].value != constants.At(name, "const").value {
			return false
		}
	}
	return len(constants.members()) > 0
}

func set(o object, name string, value any) object {
	o = slices.DeleteFunc(o, func(m member) bool { return m.name == name })
	return append(o, member{name, value})
}

func (g *generator) array(name string, schema Node, depth int) any {
	low, high := schema.At("minItems").integer(0), schema.At("maxItems").integer(4)
	n := low + g.random.IntN(max(min(high, low+3)-low, 0)+1)
	if depth >= maxDepth {
		n = low
	}
	if g.edge && g.chance(30) {
		n = max(0, pick(g.random, []int{low - 1, low, high, high + 1}))
	}
	out := []any{}
	seen := map[string]bool{}
	for range n {
		element := g.value(name, schema.At("items"), depth+1)
		text := string(encode(element))
		if schema.At("uniqueItems").value == true && seen[text] && !g.edge {
			continue
		}
		seen[text] = true
		out = append(out, element)
	}
	return out
}

func (g *generator) integer(schema Node) int {
	low, high := schema.At("minimum").integer(-1000), schema.At("maximum").integer(1_000_000)
	if g.edge && g.chance(50) {
		return pick(g.random, []int{low - 1, low, high, high + 1})
	}
	if g.chance(70) {
		return low + g.random.IntN(min(high-low, 20)+1)
	}
	return low + g.random.IntN(high-low+1)
}

func (g *generator) text(name string, schema Node) any {
	if pattern := schema.At("pattern").text(); pattern != "" {
		if id, ok := g.known.withPattern(g.random, pattern, g.workspace); ok && g.chance(80) {
			return id
		}
		return g.matching(pattern)
	}
	switch schema.At("format").text() {
	case "date-time":
		return time.Unix(1_790_000_000+g.random.Int64N(10_000_000), 0).UTC().Format(time.RFC3339)
	case "date":
		return "2026-11-15"
	case "uri":
		return g.known.Receiver + "/" + g.word()
	}
	low, high := schema.At("minLength").integer(0), schema.At("maxLength").integer(1<<20)
	if g.edge && g.chance(50) {
		length := max(0, pick(g.random, []int{low - 1, low, min(high, 5000), min(high+1, 5000)}))
		return strings.Repeat(pick(g.random, []string{"x", "é", "漢"}), length)
	}
	if text, ok := g.known.named(g.random, name, g.workspace); ok && g.chance(80) {
		return text
	}
	text := []rune(pick(g.random, plainTexts))
	for len(text) < low {
		text = append(text, 'a')
	}
	return string(text[:min(len(text), high)])
}

// plainTexts are harmless strings that some member gives a meaning to.
var plainTexts = []string{
	"a", "greet", "Ada Lovelace", "Zoë 漢字 🚂", "2026-11-15T09:30:00Z", "15m", "1h30m", "0 3 * * *", "Europe/Paris", "POST", "true", "1", "12.5",
	"${{ trigger.payload.name }}", "${{ steps.greet.output }}", "trigger.payload.n > 3", "[1, 2, 3]", "${{ secrets.canary }}", "${{ vars.region }}",
	"return {n: 1}", "steps:\n  - id: greet\n    uses: data.set\n    with: {values: {n: 1}}\n", "a@example.com", "correct horse battery", "",
}

func (g *generator) word() string {
	return pick(g.random, []string{"n", "name", "value", "items", "total", "a_b", "x1", "list"})
}

// anything returns a value where the schema allows all of them.
func (g *generator) anything(depth int) any {
	switch n := g.random.IntN(7); {
	case n == 0:
		return nil
	case n == 1:
		return g.chance(50)
	case n == 2:
		return json.Number(strconv.Itoa(g.random.IntN(1000)))
	case n == 3 && depth < maxDepth:
		return []any{g.anything(depth + 1), g.anything(depth + 1)}
	case n >= 4 && depth < maxDepth:
		return object{{"n", g.anything(depth + 1)}, {"name", pick(g.random, plainTexts)}}
	}
	return pick(g.random, plainTexts)
}

// matching returns a text that matches a pattern.
func (g *generator) matching(pattern string) string {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return pattern
	}
	var out strings.Builder
	g.expand(&out, parsed.Simplify())
	return out.String()
}

func (g *generator) expand(out *strings.Builder, re *syntax.Regexp) {
	repeat := func(low, high int) {
		for range low + g.random.IntN(high-low+1) {
			g.expand(out, re.Sub[0])
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		out.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		i := 2 * g.random.IntN(len(re.Rune)/2)
		low, high := re.Rune[i], min(re.Rune[i+1], 0x2fff)
		out.WriteRune(low + g.random.Int32N(max(high-low, 0)+1))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		out.WriteByte('x')
	case syntax.OpConcat, syntax.OpCapture:
		for _, part := range re.Sub {
			g.expand(out, part)
		}
	case syntax.OpAlternate:
		g.expand(out, pick(g.random, re.Sub))
	case syntax.OpStar:
		repeat(0, 4)
	case syntax.OpPlus:
		repeat(1, 4)
	case syntax.OpQuest:
		repeat(0, 1)
	case syntax.OpRepeat:
		repeat(re.Min, max(re.Min, re.Max))
	}
}
