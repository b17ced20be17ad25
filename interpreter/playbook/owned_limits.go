package playbook

import (
	"bytes"
	"time"

	"gopkg.in/yaml.v3"

	"reprise/interpreter/source"
	"reprise/interpreter/yamltree"
)

// OwnedLimit is a rate limit of the operator.
type OwnedLimit struct {
	Requests int // 0: only MaxPause is said
	Per      time.Duration
	MaxPause time.Duration // 0: the default
}

// OwnedLimits reads a file of the operator: a map of keys to rate limits, in the
// words of rate_limit. They may be used if no diagnostic is an error.
func OwnedLimits(file *source.File) (map[string]OwnedLimit, source.Diagnostics) {
	limits := map[string]OwnedLimit{}
	if len(bytes.TrimSpace(file.Bytes())) == 0 {
		return limits, nil
	}
	d := &decoder{problems: problems{file: file}, broken: map[*yaml.Node]bool{}}
	if root := d.parse(); root != nil && d.inspect(root) {
		if root.Kind != yaml.MappingNode {
			d.errorf(position(root), codeWrongType, "rate limits must be a map of keys to limits, such as api.example.com: {requests: 20}, not %s",
				describeYAML(root))
		} else {
			for key, value := range yamltree.Pairs(root) {
				limits[key.Value] = d.ownedLimit(value, key.Value)
			}
		}
	}
	d.found.Sort()
	return limits, d.found
}

// ownedLimitSection is an entry of the operator's file of rate limits. It is no
// part of the language.
var ownedLimitSection = sectionOf(section{name: "rate limit"}, []keyOf[OwnedLimit]{
	accept(key{name: "requests", doc: "how many requests"}, asInteger(func(l *OwnedLimit, n int) { l.Requests = n }).from(1)),
	accept(key{name: "per", doc: "in which time; default 1s"},
		asLimit(func(l *OwnedLimit, v time.Duration) { l.Per = v }).or(time.Second)),
	accept(key{name: "max_pause", doc: "how long an answer that asks for patience holds back the others; default 5m"},
		asLimit(func(l *OwnedLimit, v time.Duration) { l.MaxPause = v })),
})

func (d *decoder) ownedLimit(n *yaml.Node, key string) OwnedLimit {
	limit := OwnedLimit{Per: time.Second}
	f, ok := d.fields(n, ownedLimitSection, key)
	if !ok {
		return limit
	}
	d.words(f, &limit, at{})
	if f.get("requests") == nil && limit.MaxPause == 0 {
		d.errorf(position(n), codeMissingKey, "%s needs \"requests\", \"max_pause\" or both", key)
	}
	return limit
}
