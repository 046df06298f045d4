package engine

import (
	"encoding/json"

	"github.com/stepmill/stepmill/internal/run"
	"github.com/stepmill/stepmill/internal/strictjson"
)

// maxFailedOutput limits the stored output of a failed attempt.
const maxFailedOutput = 64 << 10

// storeFailedOutput stores the output that a failure carries, such as the response
// of a server. It masks the output before shortening it, so that no part of a secret
// remains at the end. So that a failure does not cause another one, such output is
// dropped once the run has used half of its state limit.
func (s *runState) storeFailedOutput(p stepRef, value map[string]any) {
	if value == nil {
		return
	}
	step := p.step()
	output, err := strictjson.Encode(value)
	if err == nil {
		output, err = s.hideSelected(p.compiled().Masked, s.secrets.maskOf(step).secrets.JSON(output), nil)
	}
	if err != nil {
		s.log.Error("cannot encode the output of a failed step", "step", step.Path, "error", err)
		return
	}
	output = shorten(output, min(maxFailedOutput, s.limits.OutputBytes))
	if output == nil || s.size+len(output) > s.limits.StateBytes/2 {
		return
	}
	step.Output = output
	s.addSize(len(output))
}

// dropOutput removes the output of an earlier attempt.
func (s *runState) dropOutput(step *run.Step) {
	s.size -= len(step.Output)
	step.Output = nil
}

// shorten returns an object of at most limit bytes: members are replaced by the
// beginning of their text, the largest first, and "truncated" is set to true. It
// returns nil if that is not possible.
func shorten(output json.RawMessage, limit int) json.RawMessage {
	if len(output) <= limit {
		return output
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(output, &members) != nil {
		return nil
	}
	members["truncated"] = json.RawMessage("true")
	for range len(members) {
		name := largest(members)
		text := members[name]
		members[name] = json.RawMessage(`""`)
		rest, err := strictjson.Encode(members)
		if err != nil {
			return nil
		}
		if room := limit - len(rest); room >= 0 {
			members[name] = beginning(text, room)
			shortened, err := strictjson.Encode(members)
			if err != nil {
				return nil
			}
			return shortened
		}
	}
	return nil
}

func largest(members map[string]json.RawMessage) string {
	var name string
	for candidate, value := range members {
		if size := len(value) - len(members[name]); size > 0 || size == 0 && candidate < name {
			name = candidate
		}
	}
	return name
}

// beginning returns the first part of a string, or of the text of another value, as
// a JSON string that has at most room bytes between its quotes.
func beginning(value json.RawMessage, room int) json.RawMessage {
	var text string
	if json.Unmarshal(value, &text) != nil {
		text = string(value)
	}
	for length := room; length > 0; length -= length/8 + 1 {
		encoded, err := strictjson.Encode(run.Clip(text, length))
		if err == nil && len(encoded)-2 <= room {
			return encoded
		}
	}
	return json.RawMessage(`""`)
}
