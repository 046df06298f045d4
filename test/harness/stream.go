package harness

import (
	"bufio"
	"io"
	"iter"
	"strings"
)

// Event is a server-sent event.
type Event struct{ ID, Name, Data string }

// ReadEvents returns the events of a stream until it ends.
func ReadEvents(body io.Reader) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		var e Event
		for lines := bufio.NewScanner(body); lines.Scan(); {
			field, value, _ := strings.Cut(lines.Text(), ": ")
			switch {
			case field == "id":
				e.ID = value
			case field == "event":
				e.Name = value
			case field == "data":
				e.Data = value
			case lines.Text() == "":
				if !yield(e) {
					return
				}
				e = Event{}
			}
		}
	}
}
