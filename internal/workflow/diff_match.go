package workflow

import (
	"slices"

	"github.com/stepmill/stepmill/internal/strictjson"
)

// placed is a step by itself: without the steps inside it, with needs written
// out, and with the block that it is in.
type placed struct {
	step  Step
	block string // the id of the block
	path  string // the ids of all blocks around it
}

// outline lists the steps of a definition, a block before what is in it.
func outline(steps []Step, block, path string) []placed {
	var out []placed
	for i, step := range steps {
		inner := step.Steps
		step.Steps, step.Needs = nil, writtenNeeds(steps, i)
		out = append(out, placed{step: step, block: block, path: path})
		below := step.ID
		if path != "" {
			below = path + "." + step.ID
		}
		out = append(out, outline(inner, step.ID, below)...)
	}
	return out
}

// writtenNeeds are the needs of a step as if they had been given, sorted.
func writtenNeeds(steps []Step, i int) *[]string {
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

// matching says which step of one definition is which of another.
type matching struct {
	from, to []placed
	forward  map[string]string // by id in from, the id in to
	backward map[string]placed // by id in to, the step in from
}

func matchSteps(from, to []placed) (*matching, error) {
	m := &matching{from: from, to: to, forward: map[string]string{}, backward: map[string]placed{}}
	later := map[string]bool{}
	for _, now := range to {
		later[now.step.ID] = true
	}
	for _, was := range from {
		if later[was.step.ID] {
			m.pair(was, was.step.ID)
		}
	}
	// A block that was renamed lets its steps be found in the next pass.
	for {
		found, err := m.renames()
		if err != nil || !found {
			return m, err
		}
	}
}

func (m *matching) pair(was placed, id string) {
	m.forward[was.step.ID], m.backward[id] = id, was
}

func (m *matching) before(now placed) (placed, bool) {
	was, kept := m.backward[now.step.ID]
	return was, kept
}

// renames pairs steps that differ in nothing but their id, where there is no
// doubt: one such step left the block and one came into it.
func (m *matching) renames() (found bool, err error) {
	type candidates struct{ gone, come []placed }
	alike := map[string]*candidates{}
	at := func(p placed, block string) (*candidates, error) {
		p.step.ID, p.step.Needs = "", nil
		text, err := strictjson.Encode(p.step)
		key := block + " " + string(text)
		if alike[key] == nil {
			alike[key] = &candidates{}
		}
		return alike[key], err
	}
	for _, was := range m.from {
		block, known := m.forward[was.block]
		if _, kept := m.forward[was.step.ID]; kept || was.block != "" && !known {
			continue
		}
		c, err := at(was, block)
		if err != nil {
			return false, err
		}
		c.gone = append(c.gone, was)
	}
	for _, now := range m.to {
		if _, kept := m.before(now); kept {
			continue
		}
		c, err := at(now, now.block)
		if err != nil {
			return false, err
		}
		c.come = append(c.come, now)
	}
	for _, c := range alike {
		if len(c.gone) == 1 && len(c.come) == 1 {
			m.pair(c.gone[0], c.come[0].step.ID)
			found = true
		}
	}
	return found, nil
}

// moved tells which steps, by their later id, stand in another block, or have
// to change their place so that the others can keep theirs.
func (m *matching) moved() map[string]bool {
	out, stayed := map[string]bool{}, map[string]bool{}
	later := map[string][]string{} // by block, the pairs that are in it on both sides
	ids := map[string]string{}
	for _, now := range m.to {
		was, kept := m.before(now)
		if !kept {
			continue
		}
		pair := min(was.step.ID, now.step.ID) + " " + max(was.step.ID, now.step.ID)
		ids[pair], out[now.step.ID] = now.step.ID, true
		if m.forward[was.block] == now.block && (was.block == "") == (now.block == "") {
			stayed[pair] = true
			later[now.block] = append(later[now.block], pair)
		}
	}
	earlier := map[string][]string{}
	for _, was := range m.from {
		id := m.forward[was.step.ID]
		if pair := min(was.step.ID, id) + " " + max(was.step.ID, id); stayed[pair] {
			earlier[m.forward[was.block]] = append(earlier[m.forward[was.block]], pair)
		}
	}
	for block, pairs := range later {
		for _, pair := range longestCommon(earlier[block], pairs) {
			delete(out, ids[pair])
		}
	}
	return out
}

// longestCommon is the longest list of names that stands in both lists in the
// same order; of several the first in the alphabet, so that it does not matter
// which list comes first. The lists have the same names.
func longestCommon(a, b []string) []string {
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
