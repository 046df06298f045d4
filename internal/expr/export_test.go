package expr

import "strings"

// Explains reports whether explanations covers a message of the parser.
func Explains(message string) bool {
	for _, one := range explanations {
		if strings.HasPrefix(message, one.begins) {
			return true
		}
	}
	return false
}
