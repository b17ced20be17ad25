// Package secrets keeps secrets out of what a worker writes: errors, logs, heartbeats, dead letters. It is given the
// secrets and finds them in the forms in which servers, drivers and Python repeat them: unchanged, in base64, in hex,
// and behind mixtures of the escapes of URLs, JSON, HTML and programming languages, several levels deep.
// docs/decisions/0033-forms-of-secrets.md lists the forms and why there are no others;
// docs/concepts/security.md#how-secrets-are-kept-out-of-logs lists what is masked where.
package secrets

import (
	"slices"
	"strings"
	"sync"

	"reprise/interpreter/credential"
	"reprise/interpreter/lists"
)

// Stars replace masked text.
const Stars = credential.Stars

// maxAdded is how many individually added secrets are remembered; the oldest is forgotten first. Tokens expire and
// are fetched again and again, and all would be searched for in each error.
const maxAdded = 256

// Masker masks secrets. It is safe for concurrent use. The zero value has none.
type Masker struct {
	parent *Masker

	mu          sync.Mutex
	connections map[string]*ConnectionSecrets
	added       []addedSecret
	names       []string
	// ready is the masker for all values, built on first use; nil after a value was added.
	ready *masker
}

// addedSecret is a secret that was added individually.
type addedSecret struct {
	value      string
	connection *ConnectionSecrets
}

// masker has the matchers of a set of secrets.
type masker struct{ long, words *matcher }

func newMasker(patterns []pattern) *masker {
	of := func(wanted func(kind) bool) *matcher {
		return newMatcher(slices.DeleteFunc(slices.Clone(patterns), func(p pattern) bool { return !wanted(p.kind) }))
	}
	return &masker{
		long:  of(func(k kind) bool { return k != word }),
		words: of(func(k kind) bool { return k == word }),
	}
}

// With returns a Masker that also masks what s masks. Secrets added to it are not added to s.
func (s *Masker) With() *Masker { return &Masker{parent: s} }

// Add masks values from now on, in every form. It is for secrets that are not configured, such as a fetched token.
func (s *Masker) Add(values ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, value := range values {
		s.addSecret(value)
	}
}

// AddToken is Add for one value. It returns a finder of the value in responses.
func (s *Masker) AddToken(value string) *ConnectionSecrets {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addSecret(value)
}

// addSecret is AddToken with s.mu held.
func (s *Masker) addSecret(value string) *ConnectionSecrets {
	for _, known := range s.added {
		if known.value == value {
			return known.connection
		}
	}
	connection := &ConnectionSecrets{}
	if value != "" {
		connection.secrets = []string{value}
		s.added, s.ready = append(s.added, addedSecret{value, connection}), nil
	}
	if over := len(s.added) - maxAdded; over > 0 && s.parent == nil {
		s.added = slices.Delete(s.added, 0, over)
	}
	return connection
}

// AddNames masks names that appear as separate words. They are less sensitive than secrets, such as user names.
func (s *Masker) AddNames(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if name != "" && !slices.Contains(s.names, name) {
			s.names, s.ready = append(s.names, name), nil
		}
	}
}

// AddConnection masks the secrets of a connection, and returns them. Short secrets and names are not masked: see
// UseConnection.
func (s *Masker) AddConnection(raw string) *ConnectionSecrets {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.connections[raw]; known != nil {
		return known
	}
	if s.connections == nil {
		s.connections = map[string]*ConnectionSecrets{}
	}
	connection := newConnection(raw)
	s.connections[raw], s.ready = connection, nil
	return connection
}

// AddLogin adds credentials of a connection that come from a file or the environment rather than from its configuration.
func (s *Masker) AddLogin(connection *ConnectionSecrets, user, password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if user != "" && !slices.Contains(connection.logins, user) {
		connection.logins = append(connection.logins, user)
	}
	if password == "" || slices.Contains(connection.secrets, password) || slices.Contains(connection.short, password) {
		return
	}
	if s.connections == nil {
		s.connections = map[string]*ConnectionSecrets{}
	}
	if key := "login:" + password; s.connections[key] == nil {
		s.connections[key], s.ready = newConnection("bearer:"+password), nil
	}
}

// namesOf returns the user names of a connection.
func (s *Masker) namesOf(connection *ConnectionSecrets) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Concat(connection.names, connection.logins)
}

// UseConnection masks everything about a connection, including its names and short secrets. It is for what is
// produced while using it.
func (s *Masker) UseConnection(connection *ConnectionSecrets) {
	owner := s
	for owner.parent != nil {
		owner = owner.parent
	}
	s.AddNames(owner.namesOf(connection)...)
	s.Add(connection.short...)
}

func (s *Masker) ownMasker() *masker {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready != nil {
		return s.ready
	}
	var patterns []pattern
	for _, connection := range s.connections {
		patterns = append(patterns, connection.withPatterns().patterns...)
	}
	for _, one := range s.added {
		patterns = append(patterns, one.connection.withPatterns().patterns...)
	}
	for _, name := range s.names {
		if len(name) >= minWord {
			patterns = append(patterns, pattern{text: name, kind: word})
		}
	}
	s.ready = newMasker(patterns)
	return s.ready
}

// allMaskers returns the maskers of the set and of its parents.
func (s *Masker) allMaskers() []*masker {
	var all []*masker
	for ; s != nil; s = s.parent {
		if m := s.ownMasker(); m.long.least > 0 || m.words.least > 0 {
			all = append(all, m)
		}
	}
	return all
}

// MaskText returns a text with all secrets replaced by stars.
func (s *Masker) MaskText(text string) string { return maskText(s.allMaskers(), text) }

// Value returns a JSON value whose texts and keys are masked. v is not changed.
func (s *Masker) Value(v any) any { return maskValue(s.allMaskers(), v) }

func maskValue(maskers []*masker, v any) any {
	switch v := v.(type) {
	case string:
		return maskText(maskers, v)
	case []any:
		return lists.Map(v, func(item any) any { return maskValue(maskers, item) })
	case map[string]any:
		masked := make(map[string]any, len(v))
		for key, item := range v {
			masked[maskText(maskers, key)] = maskValue(maskers, item)
		}
		return masked
	}
	return v
}

// span is a part of a text.
type span struct{ start, end int }

func maskText(maskers []*masker, text string) string {
	if len(maskers) == 0 || len(text) < minWord {
		return text
	}
	var places []span
	read := layer{text: text}
	for depth := 0; ; depth++ {
		unwrapped, wrapped := read.joinLines()
		for _, m := range maskers {
			places = m.addSpans(read, places)
			if wrapped {
				eachMatch(m.long, unwrapped.text, func(start, end int) bool {
					places = append(places, span{unwrapped.originOf(start), unwrapped.originOf(end)})
					return true
				})
			}
		}
		under, changed := read.unescapeOnce()
		if !changed || depth == maxLayers {
			break
		}
		read = under
	}
	return starSpans(text, places)
}

// addSpans adds the parts of the original text that hold secrets.
func (m *masker) addSpans(read layer, places []span) []span {
	add := func(start, end int) bool {
		places = append(places, span{read.originOf(start), read.originOf(end)})
		return true
	}
	eachMatch(m.long, read.text, add)
	eachMatch(m.words, read.text, add)
	m.long.findPieces(read.text, add)
	return places
}

// starSpans replaces the spans, which may overlap, by stars.
func starSpans(text string, places []span) string {
	if len(places) == 0 {
		return text
	}
	slices.SortFunc(places, func(a, b span) int { return a.start - b.start })
	var out strings.Builder
	end := 0
	for i, p := range places {
		if i == 0 || p.start > end {
			out.WriteString(text[end:p.start])
			out.WriteString(Stars)
		}
		end = max(end, p.end)
	}
	out.WriteString(text[end:])
	return out.String()
}

// findPieces finds the beginning of a secret where a text was truncated: at the end of the text or of a line, or
// before an ellipsis. At the start of the text it finds the end of a secret.
func (m *matcher) findPieces(text string, found func(start, end int) bool) {
	for start := 0; start+minSecret <= len(text); {
		end, next := cutEnd(text, start)
		m.findHeads(text[:end], max(start, end-m.longest), found)
		start = next
	}
	for end := min(m.longest, len(text)); end >= minSecret; end-- {
		for _, p := range m.byTail[text[end-minSecret:end]] {
			if strings.HasSuffix(p.text, text[:end]) {
				found(0, end)
				return
			}
		}
	}
}

// findHeads finds the longest beginning of a secret that ends the text, searching from an offset.
func (m *matcher) findHeads(text string, at int, found func(start, end int) bool) {
	for ; at+minSecret <= len(text); at++ {
		if !m.begins[m.slotIndex(text[at], text[at+1])] {
			continue
		}
		for _, p := range m.byHead[text[at:at+minSecret]] {
			if strings.HasPrefix(p.text, text[at:]) {
				found(at, len(text))
				return
			}
		}
	}
}

// cutEnd returns where the text may have been truncated after start: before a line break or an ellipsis, or at its
// end. next is where the next piece begins.
func cutEnd(text string, start int) (end, next int) {
	for i := start; i < len(text); i++ {
		for _, mark := range cuts[text[i]] {
			if strings.HasPrefix(text[i:], mark) {
				return i, i + len(mark)
			}
		}
	}
	return len(text), len(text)
}

// cuts are the marks that follow a truncated text, by their first bytes.
var cuts = [256][]string{'\n': {"\n"}, '\r': {"\r\n"}, '.': {"..."}, 0xe2: {"…"}}
