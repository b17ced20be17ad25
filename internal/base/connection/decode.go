package connection

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"reprise/interpreter/expression"
)

// decoder decodes a map of a connections file, and keeps its first problem.
type decoder struct{ problem *Problem }

// recordProblem records a problem at a path, unless there is one already.
func (d *decoder) recordProblem(path []string, format string, args ...any) {
	if d.problem == nil {
		d.problem = &Problem{Path: path, Message: fmt.Sprintf(format, args...)}
	}
}

// section is a map within an entry.
type section struct {
	d      *decoder
	path   []string // none of the entry itself
	values map[string]any
}

// subsection returns the map at a key; nil if the key is missing. It reports unknown keys.
func (s section) subsection(name string, known ...string) *section {
	value, has := s.values[name]
	if !has {
		return nil
	}
	inner := &section{s.d, append(slices.Clone(s.path), name), nil}
	if inner.values, has = value.(map[string]any); !has || len(inner.values) == 0 {
		s.d.recordProblem(inner.path, "must have a map as %s", inner.keyName(""))
		return nil
	}
	if len(known) > 0 {
		inner.refuseUnknown(known)
	}
	return inner
}

// refuseUnknown reports keys that are not known. The values are not shown: they may be secrets in the wrong place.
func (s section) refuseUnknown(known []string) {
	for _, key := range slices.Sorted(maps.Keys(s.values)) {
		if slices.Contains(known, key) {
			continue
		}
		within, hint := "", ""
		if owner := s.keyName(""); owner != "" {
			within = " in " + owner
		}
		if near := expression.Suggest(key, known); near != "" {
			hint = fmt.Sprintf(" (did you mean %s?)", near)
		}
		s.d.recordProblem(s.pathOf(key), "has an unknown key%s%s, expected one of %s", within, hint, strings.Join(known, ", "))
	}
}

func (s section) pathOf(key string) []string { return append(slices.Clone(s.path), key) }

// keyName returns the name of a key in messages, with the keys that lead to it; for "" the name of the section.
func (s section) keyName(key string) string {
	if key == "" {
		return strings.Join(s.path, ".")
	}
	return strings.Join(s.pathOf(key), ".")
}

func (s section) hasKey(key string) bool { return s.values[key] != nil }

// optionalText returns the text at a key; "" if there is none.
func (s section) optionalText(key string) string {
	text, isText := s.values[key].(string)
	if s.hasKey(key) && (!isText || text == "") {
		s.d.recordProblem(s.pathOf(key), "must have text as %s", s.keyName(key))
	}
	return text
}

// requiredText returns the text at a key, and reports a missing one.
func (s section) requiredText(key string) string {
	text, _ := s.values[key].(string)
	if text == "" {
		s.d.recordProblem(s.pathOf(key), "must have %s, as text", s.keyName(key))
	}
	return text
}

// readTexts returns the words of a text, or the texts of a list.
func (s section) readTexts(key string) []string {
	switch v := s.values[key].(type) {
	case nil:
		return nil
	case string:
		return strings.Fields(v)
	case []any:
		var all []string
		for _, item := range v {
			if text, _ := item.(string); text != "" {
				all = append(all, text)
			}
		}
		if len(all) == len(v) {
			return all
		}
	}
	s.d.recordProblem(s.pathOf(key), "must have a list of texts as %s", s.keyName(key))
	return nil
}

// optionalHost returns the host at a key to which credentials are sent; nil if there is none.
func (s section) optionalHost(key string) *url.URL {
	if !s.hasKey(key) {
		return nil
	}
	text, _ := s.values[key].(string)
	host, err := parseHost(text)
	if err != nil {
		s.d.recordProblem(s.pathOf(key), "must have a URL as %s, such as https://api.example.com", s.keyName(key))
		return nil
	}
	return host
}

// requiredAddress returns the URL at a key, and reports a missing or invalid one. example is part of the message.
func (s section) requiredAddress(key, example string) *url.URL {
	text, _ := s.values[key].(string)
	u, err := url.Parse(text)
	if err != nil || !isHTTPAddress(u) || u.User != nil {
		s.d.recordProblem(s.pathOf(key), "must have a URL as %s, such as %s", s.keyName(key), example)
		return nil
	}
	return u
}
