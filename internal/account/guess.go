package account

import (
	_ "embed"
	"slices"
	"strings"
	"unicode"
)

// commonWords holds words that people often build passwords from.
//
//go:embed common_words.txt
var commonWords string

// productName is a word that everyone who attacks an installation tries.
const productName = "stepmill"

// The bits that each part of a password adds to the estimate of guessBits, and
// the bits that a password must have. The limits on sign-ins allow about 50
// million guesses a year against one account, so half of 2^30 take ten years.
const (
	minGuessBits = 30

	letterBits    = 4 // an unpredictable character
	digitBits     = 3
	endingBits    = 2 // ! or ?, the usual way to satisfy rules about symbols
	separatorBits = 1
	wordBits      = 8 // a common word
	knownBits     = 3 // a part of the user's name or e-mail address, or the product's name
	patternBits   = 5 // a year or a sequence of neighbouring characters
	copyBits      = 3 // a repetition of earlier characters
)

// minPattern is the length from which a sequence or a repetition is one part.
const minPattern = 3

// sequences are walks over the alphabet and over keyboards.
func sequences() []string {
	all := []string{
		"abcdefghijklmnopqrstuvwxyz", "12345678901234567890", "112233445566778899", "!@#$%^&*()",
		"qwertyuiop[]", "asdfghjkl;'", "zxcvbnm,./", "qwertzuiopü", "yxcvbnm,.-", "azertyuiop", "qsdfghjklm",
		"1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik,9ol.0p;/", "zaq1xsw2cde3vfr4bgt5nhy6mju7", "zaq12wsxcde34rfvbgt56yhn",
		"qazwsxedcrfvtgbyhnujm", "q1w2e3r4t5y6u7i8o9p0", "1q2w3e4r5t6y7u8i9o0p", "a1b2c3d4e5f6g7h8i9", "1a2b3c4d5e6f7g8h9i",
	}
	for _, s := range slices.Clone(all) {
		backwards := []rune(s)
		slices.Reverse(backwards)
		all = append(all, string(backwards))
	}
	return all
}

// guessBits estimates how hard a password is to guess for someone who knows the
// words in known. It divides the password into the parts that are easiest to
// guess: common words, known words, sequences, years, repetitions and single
// characters. The result is the sum of their bits.
func guessBits(password string, known []string) int {
	text := []rune(strings.ToLower(password))
	least := make([]int, len(text)+1) // least[i] is the estimate for text[:i]
	for i := range text {
		least[i+1] = least[i] + characterBits(text[i])
	}
	relax := func(from, length, bits int) {
		least[from+length] = min(least[from+length], least[from]+bits)
	}
	common, walks := strings.Fields(commonWords), sequences()
	for i := range text {
		relax(i, 1, characterBits(text[i]))
		for _, word := range common {
			if n := matchWord(text[i:], word); n > 0 {
				relax(i, n, wordBits)
			}
		}
		for _, word := range known {
			if n := matchWord(text[i:], word); n > 0 {
				relax(i, n, knownBits)
			}
		}
		if isYear(text[i:]) {
			relax(i, 4, patternBits)
		}
		for n, longest := minPattern, longestWalk(text[i:], walks); n <= longest; n++ {
			relax(i, n, patternBits)
		}
		for n, longest := minPattern, longestCopy(text, i); n <= longest; n++ {
			relax(i, n, copyBits)
		}
	}
	return least[len(text)]
}

func characterBits(r rune) int {
	switch {
	case unicode.IsSpace(r) || strings.ContainsRune("-_.", r):
		return separatorBits
	case r == '!' || r == '?':
		return endingBits
	case unicode.IsDigit(r):
		return digitBits
	}
	return letterBits
}

// matchWord returns the length of a word if the text begins with it, in plain
// letters or with digits and symbols in their place, and 0 otherwise.
func matchWord(text []rune, word string) int {
	n := 0
	for _, want := range word {
		if n == len(text) || text[n] != want && !strings.ContainsRune(substitutes(want), text[n]) {
			return 0
		}
		n++
	}
	return n
}

// substitutes returns the characters that people write instead of a letter.
func substitutes(letter rune) string {
	switch letter {
	case 'a':
		return "4@"
	case 'b':
		return "8"
	case 'e':
		return "3€"
	case 'g':
		return "69"
	case 'i', 'l':
		return "1!|"
	case 'o':
		return "0"
	case 's':
		return "5$"
	case 't':
		return "7+"
	case 'z':
		return "2"
	}
	return ""
}

func isYear(text []rune) bool {
	if len(text) < 4 || string(text[:2]) != "19" && string(text[:2]) != "20" {
		return false
	}
	return unicode.IsDigit(text[2]) && unicode.IsDigit(text[3])
}

// longestWalk returns how many characters of text follow one of the walks.
func longestWalk(text []rune, walks []string) int {
	longest := 0
	for _, walk := range walks {
		for longest < len(text) && strings.Contains(walk, string(text[:longest+1])) {
			longest++
		}
	}
	return longest
}

// longestCopy returns how many characters from position at on repeat earlier
// ones. The repetition may overlap what it repeats, as in ababab.
func longestCopy(text []rune, at int) int {
	longest := 0
	for from := range at {
		n := 0
		for at+n < len(text) && text[from+n] == text[at+n] {
			n++
		}
		longest = max(longest, n)
	}
	return longest
}

// knownWords returns what an attacker knows about a user and the installation.
func knownWords(email, name string) []string {
	local, domain, _ := strings.Cut(email, "@")
	words := []string{productName, email, local}
	for _, text := range []string{local, domain, strings.ToLower(name)} {
		words = append(words, strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })...)
	}
	return slices.DeleteFunc(words, func(word string) bool { return len(word) < minPattern })
}
