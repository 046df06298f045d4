package expr

// What the pieces of a value weigh in memory, rounded up from what Go uses.
const (
	weightElement = 16  // a slot of a list
	weightBoxed   = 16  // a number or string header behind it
	weightList    = 24  // a list
	weightObject  = 320 // an object of up to eight keys
	weightKey     = 64  // each key beyond
	bytesPerStep  = 32  // text read in the time of one step
)

// machine is the state of one evaluation. It is never shared.
type machine struct {
	env      *Env
	steps    int // left
	memory   int // left
	result   int
	slots    []any   // let variables
	frames   []frame // loops being run, the innermost last
	stack    []any   // arguments of the calls being prepared
	patterns map[string]*regex
}

// frame is what #, #index and #acc mean in one loop.
type frame struct {
	item  any
	index int
	acc   any
}

func newMachine(env *Env, budget Budget) *machine {
	if env == nil {
		env = &Env{}
	}
	b := budget.orDefault()
	return &machine{env: env, steps: b.Steps, memory: b.Memory, result: b.Result}
}

// settle tells what was spent of the budget.
func (m *machine) settle(budget Budget) {
	if budget.Spent != nil {
		*budget.Spent += budget.orDefault().Steps - m.steps
	}
}

// run evaluates one expression. A panic can only be a fault of this package;
// it must cost the one evaluation and not the process.
func (m *machine) run(c *code) (v any, err error) {
	defer func() {
		if r := recover(); r != nil {
			v, err = nil, failf("internal error")
		}
	}()
	if err := m.spend(c.size); err != nil {
		return nil, err
	}
	if len(m.slots) < c.slots {
		m.slots = make([]any, c.slots)
	}
	if len(m.frames) < c.frames {
		m.frames = make([]frame, c.frames)
	}
	m.stack = m.stack[:0]
	return c.root.eval(m)
}

// spend charges n steps.
func (m *machine) spend(n int) error {
	m.steps -= n
	if m.steps < 0 {
		return costf("the expression needs more steps than are allowed")
	}
	return nil
}

// read charges for looking at n bytes of text.
func (m *machine) read(n int) error { return m.spend(n/bytesPerStep + 1) }

// grow charges n bytes of memory. It is called before they are taken.
func (m *machine) grow(n int) error {
	m.memory -= n
	if m.memory < 0 {
		return costf("the expression needs more memory than is allowed")
	}
	return nil
}

// growList charges a list of n elements.
func (m *machine) growList(n int) error {
	return m.grow(weightList + n*weightElement)
}

// growObject charges an object of n keys.
func (m *machine) growObject(n int) error {
	return m.grow(weightObject + max(0, n-8)*weightKey)
}

// write charges n bytes of text and the time to write them.
func (m *machine) write(n int) error {
	if err := m.grow(n); err != nil {
		return err
	}
	return m.read(n)
}

// extend charges n bytes more of a text built piece by piece. They count twice,
// since a buffer that grows leaves its old self behind.
func (m *machine) extend(n int) error {
	if err := m.grow(2 * n); err != nil {
		return err
	}
	return m.read(n)
}

// growText charges a new string of n bytes.
func (m *machine) growText(n int) error { return m.write(weightBoxed + n) }
