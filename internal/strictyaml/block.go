package strictyaml

// block reads the value at the current position, which may be a mapping or a
// sequence in block style, and moves to the next token.
func (p *parser) block(parent int) bool {
	switch {
	case p.entryAhead():
		return p.sequence(p.column(), false)
	case p.keyAhead():
		return p.mapping(p.column())
	}
	return p.inline(parent)
}

func (p *parser) entryAhead() bool { return p.at('-') && p.blankAt(p.pos+1) }

// keyAhead reports whether a key starts here, with its colon on the same line.
func (p *parser) keyAhead() bool {
	if p.pos == len(p.src) {
		return false
	}
	end := p.pos
	switch c := p.src[p.pos]; {
	case c == '?' && p.blankAt(p.pos+1):
		return true
	case c == '"' || c == '\'':
		for end = p.quoteEnd(); end < len(p.src) && isBlank(p.src[end]); {
			end++
		}
	case c == ':' && p.blankAt(p.pos+1):
	case !p.plainAhead(false):
		return false
	default:
		end = p.plainEnd(p.pos, false)
	}
	return end < len(p.src) && p.src[end] == ':' && p.blankAt(end+1)
}

// quoteEnd returns the offset after the closing quote, if it is on this line.
func (p *parser) quoteEnd() int {
	quote := p.src[p.pos]
	for i := p.pos + 1; i < len(p.src) && p.src[i] != '\n'; i++ {
		switch {
		case p.src[i] == '\\' && quote == '"':
			i++
		case p.src[i] == quote && quote == '\'' && i+1 < len(p.src) && p.src[i+1] == quote:
			i++
		case p.src[i] == quote:
			return i + 1
		}
	}
	return len(p.src)
}

// mapping reads the keys at one column.
func (p *parser) mapping(column int) bool {
	if !p.open(p.pos, '{', '}') {
		return false
	}
	for {
		at := p.pos
		if !p.key(column) || !p.memberValue(column, at) {
			return false
		}
		p.endValue()
		if p.ended() || p.column() < column {
			return p.close()
		}
		switch {
		case p.column() > column:
			return p.syntax(p.pos, "this line is indented further than the keys before it")
		case p.entryAhead():
			return p.syntax(p.pos, "expected a key, not a list entry")
		case !p.keyAhead():
			return p.syntax(p.pos, "expected a key followed by a colon and a space")
		}
	}
}

// key reads a key with its colon, all on one line.
func (p *parser) key(parent int) bool {
	at := p.pos
	key, ok := p.keyText(parent, false)
	if !ok || !p.member(at, key) {
		return false
	}
	p.skipBlanks()
	p.pos++ // the colon
	return true
}

// memberValue reads the value after the colon of the key at keyAt in the given
// column.
func (p *parser) memberValue(column, keyAt int) bool {
	p.skipBlanks()
	p.skipComment()
	if p.pos < len(p.src) && !p.at('\n') {
		return p.inline(column)
	}
	if !p.endLine() || !p.next() {
		return false
	}
	switch {
	case p.ended() || p.column() < column:
		return p.null(keyAt)
	case p.column() > column:
		return p.block(column)
	case p.entryAhead(): // a list may have the same indentation as its key
		return p.sequence(column, true)
	}
	return p.null(keyAt)
}

// sequence reads the entries at one column, which may be the column of their key.
func (p *parser) sequence(column int, underKey bool) bool {
	if !p.open(p.pos, '[', ']') {
		return false
	}
	for {
		if !p.entry(column) {
			return false
		}
		p.endValue()
		switch {
		case p.ended() || p.column() < column:
			return p.close()
		case p.column() > column:
			return p.syntax(p.pos, "this line is indented further than the entries before it")
		case !p.entryAhead() && underKey:
			return p.close()
		case !p.entryAhead():
			return p.syntax(p.pos, "expected a list entry that begins with a dash and a space")
		}
	}
}

// entry reads the value after the dash in the given column. It may be a block
// that begins on the same line.
func (p *parser) entry(column int) bool {
	dash := p.pos
	p.pos++
	tabs := p.skipBlanks()
	p.skipComment()
	if p.pos < len(p.src) && !p.at('\n') {
		if tabs && (p.entryAhead() || p.keyAhead()) {
			return p.syntax(dash+1, "a tab cannot indent: use spaces")
		}
		return p.block(column)
	}
	if !p.endLine() || !p.next() {
		return false
	}
	if p.ended() || p.column() <= column {
		return p.null(dash)
	}
	return p.block(column)
}

// inline reads a value that is not a block mapping or sequence, and the rest of
// its line.
func (p *parser) inline(parent int) bool {
	var ok bool
	switch p.src[p.pos] {
	case '|', '>':
		return p.literal(parent) && p.next()
	case '[', '{':
		ok = p.flow(parent)
	case '"', '\'':
		at := p.pos
		text, closed := p.quoted(parent, false)
		ok = closed && p.text(at, text)
	default:
		ok = p.plain(parent, false)
	}
	return ok && p.endLine() && p.next()
}
