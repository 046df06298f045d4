package integration

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// IconFile is the name of the file with an icon, beside a manifest.
const IconFile = "icon.svg"

const (
	maxIcon  = 2 << 10
	iconSize = "0 0 24 24"
	svgSpace = "http://www.w3.org/2000/svg"
)

// Icon returns the icon, an SVG image, or nil if there is none.
func (i *Integration) Icon() []byte {
	if i.folder == nil {
		return nil
	}
	text, err := fs.ReadFile(i.folder, path.Join(i.ID, IconFile))
	if err != nil {
		return nil
	}
	return text
}

// iconValue is what the value of an attribute of an icon can be. None is an entity, a link or
// a function.
type iconValue struct {
	pattern *regexp.Regexp
	want    string
}

var (
	iconNumber = &iconValue{regexp.MustCompile(`^-?(\d+\.?\d*|\.\d+)$`), "a number without a unit"}
	iconColor  = &iconValue{regexp.MustCompile(`^(none|#[0-9a-fA-F]{3}|#[0-9a-fA-F]{6})$`), "none, or a color such as #3b6ea5"}
	iconPath   = &iconValue{regexp.MustCompile(`^[Mm][MmLlHhVvCcSsQqTtAaZz0-9., \n-]*$`), "path data that begins with M"}
	iconPoints = &iconValue{regexp.MustCompile(`^[0-9., \n-]+$`), "pairs of numbers"}
)

// iconWord is the value of an attribute that must be one of some words.
func iconWord(words ...string) *iconValue {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = regexp.QuoteMeta(word)
	}
	return &iconValue{regexp.MustCompile("^(" + strings.Join(quoted, "|") + ")$"), strings.Join(words, " or ")}
}

// iconStyle has the attributes that every element but svg can have.
var iconStyle = map[string]*iconValue{
	"fill": iconColor, "fill-opacity": iconNumber, "fill-rule": iconWord("nonzero", "evenodd"), "opacity": iconNumber,
	"stroke": iconColor, "stroke-width": iconNumber, "stroke-opacity": iconNumber,
	"stroke-linecap": iconWord("butt", "round", "square"), "stroke-linejoin": iconWord("miter", "round", "bevel"),
}

// iconElements has the elements of an icon with their own attributes.
var iconElements = map[string]map[string]*iconValue{
	"svg":      {"xmlns": iconWord(svgSpace), "viewBox": iconWord(iconSize)},
	"g":        {},
	"path":     {"d": iconPath},
	"rect":     numbers("x", "y", "width", "height", "rx", "ry"),
	"circle":   numbers("cx", "cy", "r"),
	"ellipse":  numbers("cx", "cy", "rx", "ry"),
	"line":     numbers("x1", "y1", "x2", "y2"),
	"polyline": {"points": iconPoints},
	"polygon":  {"points": iconPoints},
}

func numbers(names ...string) map[string]*iconValue {
	out := map[string]*iconValue{}
	for _, name := range names {
		out[name] = iconNumber
	}
	return out
}

// CheckIcon returns the problems of an icon. An icon has simple shapes only, so that it can
// contain nothing that a browser executes, loads or links to.
func CheckIcon(text []byte) Errors {
	c := &iconCheck{text: text}
	if len(text) > maxIcon {
		return Errors{{Message: fmt.Sprintf("has %d bytes: an icon has at most %d KiB", len(text), maxIcon>>10)}}
	}
	if at := bytes.IndexFunc(text, notInIcons); at >= 0 {
		c.failAt(at, "has a character that is not allowed: an icon is printable ASCII without entities")
		return c.errs
	}
	c.elements()
	return c.errs
}

// notInIcons reports whether a character is one that no icon needs. Without entities and
// anything but ASCII, all parsers read an icon alike.
func notInIcons(r rune) bool { return r == '&' || r > '~' || r < ' ' && r != '\n' }

type iconCheck struct {
	text   []byte
	depth  int
	shapes int
	root   bool // there has been one
	errs   Errors
}

func (c *iconCheck) failAt(offset int, format string, args ...any) {
	before := c.text[:offset]
	line := bytes.Count(before, []byte("\n")) + 1
	c.errs = append(c.errs, &Error{Line: line, Column: offset - bytes.LastIndexByte(before, '\n'), Message: fmt.Sprintf(format, args...)})
}

// elements reads the elements until the end or the first mistake in the syntax.
func (c *iconCheck) elements() {
	d := xml.NewDecoder(bytes.NewReader(c.text))
	for {
		start := int(d.InputOffset())
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			c.failAt(int(d.InputOffset()), "is not well-formed XML: %s", syntaxMessage(err))
			return
		}
		switch token := token.(type) {
		case xml.StartElement:
			c.element(start, int(d.InputOffset()), token)
			c.depth++
		case xml.EndElement:
			c.depth--
		case xml.CharData:
			if text := bytes.TrimLeft(token, " \n"); len(text) > 0 {
				c.failAt(start+len(token)-len(text), "has text: an icon has shapes only")
			}
		default:
			c.failAt(start, "has a comment, a declaration or an instruction: an icon has elements only")
		}
	}
	if c.shapes == 0 && len(c.errs) == 0 {
		c.failAt(0, "has no shapes: draw them in an svg element")
	}
}

func syntaxMessage(err error) string {
	if syntax := (*xml.SyntaxError)(nil); errors.As(err, &syntax) {
		return syntax.Msg
	}
	return err.Error()
}

// element checks an element, given where its tag starts and ends.
func (c *iconCheck) element(start, end int, e xml.StartElement) {
	name := e.Name.Local
	own, known := iconElements[name]
	switch {
	case c.depth == 0 && (name != "svg" || c.root):
		c.failAt(start, "the element %s is outside of the svg element: an icon is one svg element", name)
		return
	case !known || c.depth > 0 && name == "svg" || c.depth > 0 && e.Name.Space != svgSpace:
		c.failAt(start, "the element %s is not allowed: use %s", name, strings.Join(innerNames(), ", "))
		return
	}
	c.root = true
	if name != "g" && name != "svg" {
		c.shapes++
	}
	c.attributes(start, end, e, own)
}

// attributes checks the attributes of an element, given those that it can have of its own.
func (c *iconCheck) attributes(start, end int, e xml.StartElement, own map[string]*iconValue) {
	allowed := maps.Clone(own)
	if e.Name.Local != "svg" {
		maps.Copy(allowed, iconStyle)
	}
	seen := map[string]bool{}
	for _, a := range e.Attr {
		at, name := c.attributeAt(start, end, a.Name.Local), a.Name.Local
		if a.Name.Space != "" {
			name = a.Name.Space + ":" + name
		}
		switch value := allowed[name]; {
		case value == nil:
			c.failAt(at, "%s cannot have the attribute %s: it has %s", e.Name.Local, name, strings.Join(slices.Sorted(maps.Keys(allowed)), ", "))
		case seen[name]:
			c.failAt(at, "the attribute %s is there twice", name)
		case !value.pattern.MatchString(a.Value):
			c.failAt(at, "the value of %s is not allowed: it must be %s", name, value.want)
		}
		seen[name] = true
	}
	if e.Name.Local == "svg" && !(seen["xmlns"] && seen["viewBox"]) {
		c.failAt(start, "the element svg needs xmlns=%q and viewBox=%q", svgSpace, iconSize)
	}
}

// attributeAt returns where an attribute is in a tag.
func (c *iconCheck) attributeAt(start, end int, name string) int {
	found := regexp.MustCompile(`[\s:]` + regexp.QuoteMeta(name) + `\s*=`).FindIndex(c.text[start:end])
	if found == nil {
		return start
	}
	return start + found[0] + 1
}

func innerNames() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(iconElements)), func(name string) bool { return name == "svg" })
}
