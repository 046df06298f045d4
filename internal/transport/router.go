package transport

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
)

// routeNode is a node of the tree that finds the endpoint of a request. Each level
// is one element of the path.
type routeNode struct {
	literals  map[string]*routeNode
	parameter *routeNode           // for elements that are no literal here
	endpoints map[string]*Endpoint // by method, of paths that end here
}

// add adds an endpoint below a path such as /v1/runs/{id}.
func (n *routeNode) add(path string, e *Endpoint) {
	for element := range strings.SplitSeq(path[1:], "/") {
		if isParameter(element) {
			if n.parameter == nil {
				n.parameter = &routeNode{}
			}
			n = n.parameter
			continue
		}
		if n.literals == nil {
			n.literals = map[string]*routeNode{}
		}
		if n.literals[element] == nil {
			n.literals[element] = &routeNode{}
		}
		n = n.literals[element]
	}
	if n.endpoints == nil {
		n.endpoints = map[string]*Endpoint{}
	}
	if n.endpoints[e.Method] != nil {
		panic(fmt.Sprintf("there are two routes for %s %s", e.Method, path))
	}
	n.endpoints[e.Method] = e
}

func isParameter(element string) bool { return strings.HasPrefix(element, "{") }

// parameterNames returns the names of the parameters in a path, in order.
func parameterNames(path string) []string {
	var names []string
	for element := range strings.SplitSeq(path, "/") {
		if isParameter(element) {
			names = append(names, strings.Trim(element, "{}"))
		}
	}
	return names
}

// match is the endpoint of a request and the values of its path parameters.
type match struct {
	endpoint *Endpoint // nil if no route matches
	values   []string  // in the order of endpoint.parameters
	// allowed lists the methods that the path has routes for, if the request's
	// method is not among them.
	allowed []string
}

func (m match) value(name string) string {
	return m.values[slices.Index(m.endpoint.parameters, name)]
}

// find returns the endpoint of a request. Elements of the path are compared after
// unescaping, so an escaped slash is part of an element. A path that is not in
// its shortest form, such as //v1, /v1/../x or /v1/, matches nothing: routing it
// would let other paths reach a route than those a proxy in front may check.
func (n *routeNode) find(r *http.Request) match {
	if !strings.HasPrefix(r.URL.Path, "/") || path.Clean(r.URL.Path) != r.URL.Path {
		return match{}
	}
	l := lookup{method: r.Method}
	if l.descend(n, r.URL.EscapedPath()[1:]) {
		return match{endpoint: l.found, values: l.values}
	}
	return match{allowed: l.allowed()}
}

// lookup is one search in the tree.
type lookup struct {
	method string
	found  *Endpoint
	values []string
	// others are the nodes of the path that lack the method.
	others []*routeNode
}

// descend looks for the rest of the path below a node. Literals take precedence
// over parameters; /v1/workflows/import with a method that only
// /v1/workflows/{id} has is found there.
func (l *lookup) descend(n *routeNode, rest string) bool {
	escaped, rest, more := strings.Cut(rest, "/")
	element, err := url.PathUnescape(escaped)
	if err != nil {
		return false
	}
	if next := n.literals[element]; next != nil && l.enter(next, rest, more) {
		return true
	}
	if n.parameter == nil || element == "" {
		return false
	}
	l.values = append(l.values, element)
	if l.enter(n.parameter, rest, more) {
		return true
	}
	l.values = l.values[:len(l.values)-1]
	return false
}

func (l *lookup) enter(n *routeNode, rest string, more bool) bool {
	if more {
		return l.descend(n, rest)
	}
	if l.found = n.endpoint(l.method); l.found == nil && n.endpoints != nil {
		l.others = append(l.others, n)
	}
	return l.found != nil
}

// endpoint returns the endpoint for a method. HEAD is handled like GET.
func (n *routeNode) endpoint(method string) *Endpoint {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	return n.endpoints[method]
}

// allowed returns the methods of the path, for a path that lacks the method.
func (l *lookup) allowed() []string {
	var methods []string
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPatch, http.MethodPut, http.MethodDelete} {
		if slices.ContainsFunc(l.others, func(n *routeNode) bool { return n.endpoint(method) != nil }) {
			methods = append(methods, method)
		}
	}
	return methods
}
