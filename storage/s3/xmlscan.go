package s3

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// xmlScanner walks through the elements of a small XML document that is wholly in
// memory, without making anything of what nobody asks for. It takes what S3 and
// its relatives send, which is less than XML: no document types, no processing
// instructions but the first line, names and attributes in ASCII. Whatever it
// takes it understands as encoding/xml does; all else is an error.
type xmlScanner struct {
	b    []byte
	at   int
	open [][]byte // names of the elements that are open, with their prefixes
	leaf bool     // the innermost one was written as <name/>
	text []byte   // memory for characters that are not as they stand in b
}

var errXML = errors.New("it is not well-formed XML")

func (x *xmlScanner) fail(what string) error {
	return fmt.Errorf("%w: %s at byte %d", errXML, what, x.at)
}

// reset begins with a document and goes up to its root, whose name it gives.
func (x *xmlScanner) reset(b []byte) (name []byte, err error) {
	*x = xmlScanner{b: bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")), open: x.open[:0], text: x.text[:0]}
	if err := x.declaration(); err != nil {
		return nil, err
	}
	if err := x.blank(); err != nil {
		return nil, err
	}
	return x.start()
}

// declaration passes over <?xml version="1.0" encoding="UTF-8"?>.
func (x *xmlScanner) declaration() error {
	if !x.sees("<?xml") {
		return nil
	}
	end := bytes.Index(x.b, []byte("?>"))
	if end < 0 {
		return x.fail("the first line has no end")
	}
	x.at += len("<?xml")
	for _, name := range []string{"version", "encoding", "standalone"} {
		x.space()
		value, ok, err := x.attribute(name, end)
		if err != nil {
			return err
		}
		if name == "version" && string(value) != "1.0" || name == "encoding" && ok && !bytes.EqualFold(value, []byte("utf-8")) {
			return x.fail("another version or encoding than 1.0 and UTF-8")
		}
	}
	x.space()
	if x.at != end {
		return x.fail("an unknown word in the first line")
	}
	x.at += len("?>")
	return nil
}

// attribute reads name="value" if that name is next, all before end.
func (x *xmlScanner) attribute(name string, end int) (value []byte, ok bool, err error) {
	if !x.sees(name + "=") {
		return nil, false, nil
	}
	x.at += len(name) + 1
	value, err = x.quoted()
	if err == nil && x.at > end {
		err = x.fail("a value has no end")
	}
	return value, true, err
}

// quoted reads a value of an attribute in its quotes. Characters beyond plain
// ASCII and references have no place in those that stores send.
func (x *xmlScanner) quoted() ([]byte, error) {
	if x.at >= len(x.b) || x.b[x.at] != '"' && x.b[x.at] != '\'' {
		return nil, x.fail("a value without quotes")
	}
	quote := x.b[x.at]
	x.at++
	for from := x.at; x.at < len(x.b); x.at++ {
		switch c := x.b[x.at]; {
		case c == quote:
			x.at++
			return x.b[from : x.at-1], nil
		case c == '<' || c == '&' || c < 0x20 || c > 0x7e:
			return nil, x.fail("an odd character in a value")
		}
	}
	return nil, x.fail("a value has no end")
}

func (x *xmlScanner) sees(s string) bool {
	return len(x.b)-x.at >= len(s) && x.b[x.at] == s[0] && string(x.b[x.at:x.at+len(s)]) == s
}

// markup reports whether the next two bytes are '<' and this one.
func (x *xmlScanner) markup(c byte) bool {
	return len(x.b)-x.at >= 2 && x.b[x.at+1] == c && x.b[x.at] == '<'
}

func (x *xmlScanner) space() {
	for x.at < len(x.b) && isSpace(x.b[x.at]) {
		x.at++
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// blank passes over white space and comments.
func (x *xmlScanner) blank() error {
	for {
		x.space()
		if !x.markup('!') || !x.sees("<!--") {
			return nil
		}
		if err := x.comment(); err != nil {
			return err
		}
	}
}

func (x *xmlScanner) comment() error {
	x.at += len("<!--")
	n := bytes.Index(x.b[x.at:], []byte("--"))
	if n < 0 || x.at+n+2 >= len(x.b) || x.b[x.at+n+2] != '>' {
		return x.fail("a comment without an end, or with -- in it")
	}
	x.at += n + len("-->")
	return nil
}

// start reads a start tag, attributes included, and gives the name without its prefix.
func (x *xmlScanner) start() ([]byte, error) {
	if x.at >= len(x.b) || x.b[x.at] != '<' {
		return nil, x.fail("characters where an element was expected")
	}
	x.at++
	name, err := x.name()
	if err != nil {
		return nil, err
	}
	for {
		from := x.at
		x.space()
		switch {
		case x.at < len(x.b) && x.b[x.at] == '>':
			x.at++
		case x.sees("/>"):
			x.at += 2
			x.leaf = true
		case x.at == from:
			return nil, x.fail("a tag has no end")
		default:
			if _, err := x.name(); err != nil {
				return nil, err
			}
			x.space()
			if !x.sees("=") {
				return nil, x.fail("an attribute without a value")
			}
			x.at++
			x.space()
			if _, err := x.quoted(); err != nil {
				return nil, err
			}
			continue
		}
		x.open = append(x.open, name)
		return local(name), nil
	}
}

// name reads the name of an element or attribute.
func (x *xmlScanner) name() ([]byte, error) {
	from, at, colon := x.at, x.at, -1
	for ; at < len(x.b) && nameBytes[x.b[at]]; at++ {
		if x.b[at] == ':' {
			if colon >= 0 {
				return nil, x.fail("no name")
			}
			colon = at
		}
	}
	x.at = at
	// The prefix, if there is one, and the name proper begin with a letter.
	if x.at == from || !isNameStart(x.b[from]) || colon >= 0 && (colon+1 == x.at || !isNameStart(x.b[colon+1])) {
		return nil, x.fail("no name")
	}
	return x.b[from:x.at], nil
}

func isNameStart(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }

// nameBytes may stand in a name behind its first byte.
var nameBytes = func() (in [256]bool) {
	for c := range in {
		in[c] = isNameStart(byte(c)) || c >= '0' && c <= '9' || c == '-' || c == '.' || c == ':'
	}
	return in
}()

func local(name []byte) []byte { return name[bytes.IndexByte(name, ':')+1:] }

// child goes to the next element inside the innermost open one and gives its
// name, or nil when there is none any more and the open one has been closed.
func (x *xmlScanner) child() ([]byte, error) {
	if x.leaf {
		x.leaf = false
		x.open = x.open[:len(x.open)-1]
		return nil, nil
	}
	if err := x.blank(); err != nil {
		return nil, err
	}
	if x.markup('/') {
		return nil, x.end()
	}
	return x.start()
}

// end reads the end tag of the innermost open element.
func (x *xmlScanner) end() error {
	name := x.open[len(x.open)-1]
	x.at += len("</")
	if len(x.b)-x.at < len(name) || string(x.b[x.at:x.at+len(name)]) != string(name) {
		return x.fail("an end tag of another element")
	}
	x.at += len(name)
	x.space()
	if !x.sees(">") {
		return x.fail("an end tag of another element")
	}
	x.at++
	x.open = x.open[:len(x.open)-1]
	return nil
}

// skip passes over all that is left of the innermost open element.
func (x *xmlScanner) skip() error {
	for depth := len(x.open); ; {
		if !x.leaf {
			if _, err := x.characters(); err != nil {
				return err
			}
		}
		if _, err := x.child(); err != nil {
			return err
		}
		if len(x.open) < depth {
			return nil
		}
	}
}

// chars gives the characters of the innermost open element, which has no elements
// in it, and closes it. They are valid until the next call.
func (x *xmlScanner) chars() ([]byte, error) {
	if x.leaf {
		_, err := x.child()
		return nil, err
	}
	text, err := x.characters()
	if err != nil {
		return nil, err
	}
	if !x.markup('/') {
		return nil, x.fail("an element where characters were expected")
	}
	return text, x.end()
}

// characters reads up to the next tag. References are replaced, CDATA sections
// are taken as they are, comments are left out and line ends are made one \n.
func (x *xmlScanner) characters() ([]byte, error) {
	from, at := x.at, x.at
	for at < len(x.b) && plainBytes[x.b[at]] {
		at++
	}
	x.at = at
	if x.at < len(x.b) && x.b[x.at] == '<' && !x.markup('!') {
		return x.b[from:x.at], nil
	}
	x.text = append(x.text[:0], x.b[from:x.at]...)
	for {
		var err error
		switch {
		case x.at == len(x.b):
			return nil, x.fail("the document is cut off")
		case x.sees("<!--"):
			err = x.comment()
		case x.sees("<![CDATA["):
			err = x.cdata()
		case x.b[x.at] == '<':
			return x.text, nil
		default:
			err = x.run()
		}
		if err != nil {
			return nil, err
		}
	}
}

// plainBytes mean what stands there, wherever it stands: printable ASCII but for
// what begins a tag, a reference or the end of a CDATA section.
var plainBytes = func() (plain [256]bool) {
	for c := byte(0x20); c <= 0x7e; c++ {
		plain[c] = c != '<' && c != '&' && c != ']'
	}
	plain['\n'], plain['\t'] = true, true
	return plain
}()

func (x *xmlScanner) cdata() error {
	x.at += len("<![CDATA[")
	n := bytes.Index(x.b[x.at:], []byte("]]>"))
	if n < 0 {
		return x.fail("a CDATA section has no end")
	}
	for end := x.at + n; x.at < end; {
		if err := x.character(); err != nil {
			return err
		}
	}
	x.at += len("]]>")
	return nil
}

// run reads characters and references up to the next '<'.
func (x *xmlScanner) run() error {
	for x.at < len(x.b) && x.b[x.at] != '<' {
		plain := x.at
		for x.at < len(x.b) && plainBytes[x.b[x.at]] {
			x.at++
		}
		if x.at > plain {
			x.text = append(x.text, x.b[plain:x.at]...)
			continue
		}
		var err error
		switch {
		case x.b[x.at] == '&':
			err = x.reference()
		case x.sees("]]>"):
			err = x.fail("an end of a CDATA section that never began")
		default:
			err = x.character()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// character takes over one character.
func (x *xmlScanner) character() error {
	r, n := utf8.DecodeRune(x.b[x.at:])
	if r == utf8.RuneError && n == 1 || !isXML(r) {
		return x.fail("a character that XML does not have")
	}
	x.at += n
	if r == '\r' {
		if x.at < len(x.b) && x.b[x.at] == '\n' {
			return nil // it comes next
		}
		r = '\n'
	}
	x.text = utf8.AppendRune(x.text, r)
	return nil
}

func isXML(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || r >= 0x20 && r <= 0xd7ff || r >= 0xe000 && r <= 0xfffd || r >= 0x10000 && r <= 0x10ffff
}

var named = map[string]rune{"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\''}

// reference takes over &name;, &#1234; or &#x12ab;.
func (x *xmlScanner) reference() error {
	n := bytes.IndexByte(x.b[x.at:min(x.at+12, len(x.b))], ';')
	if n < 0 {
		return x.fail("a reference without an end")
	}
	word := string(x.b[x.at+1 : x.at+n])
	r, ok := named[word]
	if !ok && len(word) > 1 && word[0] == '#' {
		digits, base := word[1:], 10
		if digits[0] == 'x' {
			digits, base = digits[1:], 16
		}
		code, err := strconv.ParseUint(digits, base, 21)
		r, ok = rune(code), err == nil && isXML(rune(code))
	}
	if !ok {
		return x.fail("an unknown reference")
	}
	x.at += n + 1
	x.text = utf8.AppendRune(x.text, r)
	return nil
}

// finish checks that nothing follows the root.
func (x *xmlScanner) finish() error {
	if err := x.blank(); err != nil {
		return err
	}
	if x.at < len(x.b) {
		return x.fail("something follows the end")
	}
	return nil
}
