package pubsub

// Signal sends on a channel with a buffer of one without blocking. If a signal is
// already pending, it does nothing: the receiver reads all changes anyway.
func Signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
