package engine

// SetMaxSteps changes how many steps a run executes at most. It must be called
// before the engine runs anything.
func (e *Engine) SetMaxSteps(n int) { e.maxSteps = n }
