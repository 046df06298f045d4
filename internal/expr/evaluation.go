package expr

// Memory of the parts of a value, rounded up from what Go uses.
const (
	weightElement = 16  // a slot of a list
	weightBoxed   = 16  // a number or string header behind it
	weightList    = 24  // a list
	weightObject  = 320 // an object of up to eight keys
	weightKey     = 64  // each key beyond
	bytesPerStep  = 32  // text read in the time of one step
)

type evaluation struct {
	env      *Env
	steps    int // left
	memory   int // left
	result   int
	slots    []any   // let variables
	frames   []frame // loops being run, the innermost last
	stack    []any   // arguments of the calls being prepared
	patterns map[string]*regex
	calls    int // of functions that return random values
}

// frame has the values of #, #index and #acc in one loop.
type frame struct {
	item  any
	index int
	acc   any
}

func newEvaluation(env *Env, budget Budget) *evaluation {
	if env == nil {
		env = &Env{}
	}
	b := budget.orDefault()
	return &evaluation{env: env, steps: b.Steps, memory: b.Memory, result: b.Result}
}

// recordSpent adds the used steps to Budget.Spent.
func (m *evaluation) recordSpent(budget Budget) {
	if budget.Spent != nil {
		*budget.Spent += budget.orDefault().Steps - m.steps
	}
}

// run evaluates one expression. A panic is a bug in this package; it must fail
// only this evaluation, not the process.
func (m *evaluation) run(c *code) (v any, err error) {
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

func (m *evaluation) spend(n int) error {
	m.steps -= n
	if m.steps < 0 {
		return costf("the expression exceeds the limit of evaluation steps")
	}
	return nil
}

func (m *evaluation) read(n int) error { return m.spend(n/bytesPerStep + 1) }

// grow charges n bytes of memory. It is called before they are allocated.
func (m *evaluation) grow(n int) error {
	m.memory -= n
	if m.memory < 0 {
		return costf("the expression exceeds the memory limit")
	}
	return nil
}

func (m *evaluation) growList(n int) error {
	return m.grow(weightList + n*weightElement)
}

func (m *evaluation) growObject(n int) error {
	return m.grow(weightObject + max(0, n-8)*weightKey)
}

// write charges for n bytes of text and the time to write them.
func (m *evaluation) write(n int) error {
	if err := m.grow(n); err != nil {
		return err
	}
	return m.read(n)
}

// extend charges for n more bytes of a text that is built piece by piece. They
// count twice, because a growing buffer is copied.
func (m *evaluation) extend(n int) error {
	if err := m.grow(2 * n); err != nil {
		return err
	}
	return m.read(n)
}

// growText charges for a new string of n bytes.
func (m *evaluation) growText(n int) error { return m.write(weightBoxed + n) }
