package workflow

import (
	"slices"

	"github.com/stepmill/stepmill/internal/strictjson"
)

// flatStep is a step without its inner steps, with explicit needs and the block
// that it is in.
type flatStep struct {
	step  Step
	block string // the id of the block
	path  string // the ids of all enclosing blocks
}

// flatten lists the steps of a definition, each block before its inner steps.
func flatten(steps []Step, block, path string) []flatStep {
	var out []flatStep
	for i, step := range steps {
		inner := step.Steps
		step.Steps, step.Needs = nil, explicitNeeds(steps, i)
		out = append(out, flatStep{step: step, block: block, path: path})
		below := step.ID
		if path != "" {
			below = path + "." + step.ID
		}
		out = append(out, flatten(inner, step.ID, below)...)
	}
	return out
}

// explicitNeeds returns the effective needs of a step, sorted.
func explicitNeeds(steps []Step, i int) *[]string {
	needs := []string{}
	switch {
	case steps[i].Needs != nil:
		needs = append(needs, *steps[i].Needs...)
		slices.Sort(needs)
	case i > 0:
		needs = append(needs, steps[i-1].ID)
	}
	return &needs
}

// stepMatcher matches the steps of two definitions.
type stepMatcher struct {
	from, to []flatStep
	newID    map[string]string   // by id in from, the id in to
	oldStep  map[string]flatStep // by id in to, the step in from
}

func matchSteps(from, to []flatStep) (*stepMatcher, error) {
	m := &stepMatcher{from: from, to: to, newID: map[string]string{}, oldStep: map[string]flatStep{}}
	later := map[string]bool{}
	for _, now := range to {
		later[now.step.ID] = true
	}
	for _, was := range from {
		if later[was.step.ID] {
			m.pair(was, was.step.ID)
		}
	}
	// Once a renamed block is matched, the next pass can match its steps.
	for {
		found, err := m.renames()
		if err != nil || !found {
			return m, err
		}
	}
}

func (m *stepMatcher) pair(was flatStep, id string) {
	m.newID[was.step.ID], m.oldStep[id] = id, was
}

func (m *stepMatcher) oldOf(now flatStep) (flatStep, bool) {
	was, matched := m.oldStep[now.step.ID]
	return was, matched
}

// renames pairs steps that differ only in their id, if the match is unambiguous:
// exactly one such step was removed from the block and one was added to it.
func (m *stepMatcher) renames() (found bool, err error) {
	type candidates struct{ removed, added []flatStep }
	groups := map[string]*candidates{}
	at := func(p flatStep, block string) (*candidates, error) {
		p.step.ID, p.step.Needs = "", nil
		text, err := strictjson.Encode(p.step)
		key := block + " " + string(text)
		if groups[key] == nil {
			groups[key] = &candidates{}
		}
		return groups[key], err
	}
	for _, was := range m.from {
		block, known := m.newID[was.block]
		if _, matched := m.newID[was.step.ID]; matched || was.block != "" && !known {
			continue
		}
		c, err := at(was, block)
		if err != nil {
			return false, err
		}
		c.removed = append(c.removed, was)
	}
	for _, now := range m.to {
		if _, matched := m.oldOf(now); matched {
			continue
		}
		c, err := at(now, now.block)
		if err != nil {
			return false, err
		}
		c.added = append(c.added, now)
	}
	for _, c := range groups {
		if len(c.removed) == 1 && len(c.added) == 1 {
			m.pair(c.removed[0], c.added[0].step.ID)
			found = true
		}
	}
	return found, nil
}

// moved returns the steps, by their later id, that are in another block or that
// must change position so that the others can keep their order.
func (m *stepMatcher) moved() map[string]bool {
	out, stayed := map[string]bool{}, map[string]bool{}
	later := map[string][]string{} // by block, the pairs that are in that block on both sides
	ids := map[string]string{}
	for _, now := range m.to {
		was, matched := m.oldOf(now)
		if !matched {
			continue
		}
		pair := min(was.step.ID, now.step.ID) + " " + max(was.step.ID, now.step.ID)
		ids[pair], out[now.step.ID] = now.step.ID, true
		if m.newID[was.block] == now.block && (was.block == "") == (now.block == "") {
			stayed[pair] = true
			later[now.block] = append(later[now.block], pair)
		}
	}
	earlier := map[string][]string{}
	for _, was := range m.from {
		id := m.newID[was.step.ID]
		if pair := min(was.step.ID, id) + " " + max(was.step.ID, id); stayed[pair] {
			earlier[m.newID[was.block]] = append(earlier[m.newID[was.block]], pair)
		}
	}
	for block, pairs := range later {
		for _, pair := range longestCommonSubsequence(earlier[block], pairs) {
			delete(out, ids[pair])
		}
	}
	return out
}

// longestCommonSubsequence returns the longest list of names that both lists
// contain in the same order. Among several it picks the alphabetically first, so
// that the order of the arguments does not matter. Both lists must contain the
// same names.
func longestCommonSubsequence(a, b []string) []string {
	position := map[string]int{}
	for i, name := range b {
		position[name] = i
	}
	length, next := make([]int, len(a)+1), make([]int, len(a)+1)
	better := func(i, j int) bool {
		return length[i] > length[j] || length[i] == length[j] && length[i] > 0 && a[i] < a[j]
	}
	start := len(a) // nothing
	for i := len(a) - 1; i >= 0; i-- {
		next[i] = len(a)
		for j := i + 1; j < len(a); j++ {
			if position[a[j]] > position[a[i]] && better(j, next[i]) {
				next[i] = j
			}
		}
		length[i] = length[next[i]] + 1
		if better(i, start) {
			start = i
		}
	}
	var out []string
	for i := start; i < len(a); i = next[i] {
		out = append(out, a[i])
	}
	return out
}
