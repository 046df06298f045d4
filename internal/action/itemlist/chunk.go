package itemlist

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"

	"github.com/stepmill/stepmill/internal/strictjson"
)

// chunk is what a page adds to the state of a step.
type chunk struct {
	// seen has a hash of each cursor or URL.
	seen []byte
	// items is a JSON array, or nil for none.
	items json.RawMessage
}

const hashLength = 8

func hashPosition(position []byte) string {
	sum := sha256.Sum256(position)
	return base64.RawURLEncoding.EncodeToString(sum[:6])
}

// encode returns the chunk as it is stored: the hashes, then on a new line the items.
func (c chunk) encode() []byte {
	return bytes.Join([][]byte{c.seen, c.items}, []byte("\n"))
}

func decodeChunk(encoded []byte) chunk {
	seen, items, _ := bytes.Cut(encoded, []byte("\n"))
	return chunk{seen, items}
}

func (c chunk) positions() int { return len(c.seen) / hashLength }

// indexOf returns the index of a hash, or -1.
func (c chunk) indexOf(hash string) int {
	for i := range c.positions() {
		if string(c.seen[i*hashLength:(i+1)*hashLength]) == hash {
			return i
		}
	}
	return -1
}

func (c *chunk) add(list []any) error {
	if len(list) == 0 {
		return nil
	}
	encoded, err := strictjson.Encode(list)
	if err != nil {
		return err
	}
	c.items = joinItems(c.items, encoded)
	return nil
}

func joinItems(lists ...json.RawMessage) json.RawMessage {
	joined := []byte("[")
	for _, list := range lists {
		if len(list) <= len("[]") {
			continue
		}
		if len(joined) > 1 {
			joined = append(joined, ',')
		}
		joined = append(joined, list[1:len(list)-1]...)
	}
	return append(joined, ']')
}
