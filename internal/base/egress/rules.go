package egress

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"reprise/interpreter/expression"
)

// rule is an entry of allow or deny: a range, an address or a host name, with or without a port.
type rule struct {
	text   string
	prefix netip.Prefix // of an address or a range, invalid for a name
	name   string       // normalized
	within bool         // *.name: every host below the name
	port   string       // "" for any
}

// matchName reports whether the rule matches the name of a request.
func (t rule) matchName(d destination) bool {
	switch {
	case t.prefix.IsValid() || d.ip.IsValid():
		return false
	case t.within:
		return strings.HasSuffix(d.name, "."+t.name)
	}
	return t.name == d.name
}

// matchIP reports whether the rule includes an address. A NAT64 address counts as the IPv4 address it leads to.
func (t rule) matchIP(ip netip.Addr) bool {
	if !t.prefix.IsValid() || !ip.IsValid() {
		return false
	}
	ip = ip.WithZone("").Unmap()
	if nat64.Contains(ip) && t.prefix.Contains(embeddedIn(ip)[0]) {
		return true
	}
	return t.prefix.Contains(ip)
}

// hasPort reports whether the rule applies to a port.
func (t rule) hasPort(port string) bool { return t.port == "" || t.port == port }

// matchRule returns the first rule that matches a request by name or address. ip is invalid if it is not known.
func matchRule(rules []rule, d destination, ip netip.Addr) (rule, bool) {
	at := slices.IndexFunc(rules, func(t rule) bool { return t.hasPort(d.port) && (t.matchName(d) || t.matchIP(ip)) })
	if at < 0 {
		return rule{}, false
	}
	return rules[at], true
}

// matchAddress reports whether a rule includes an address, whatever its name.
func matchAddress(rules []rule, port string, ip netip.Addr) bool {
	return slices.ContainsFunc(rules, func(t rule) bool { return t.hasPort(port) && t.matchIP(ip) })
}

// parseRule parses an entry of a list; nil if it is invalid.
func parseRule(text string) *rule {
	if prefix, err := netip.ParsePrefix(text); err == nil {
		if prefix.Addr().Is4In6() && prefix.Bits() >= 96 {
			prefix = netip.PrefixFrom(prefix.Addr().Unmap(), prefix.Bits()-96)
		}
		return &rule{text: text, prefix: prefix.Masked()}
	}
	host, port, hasPort := text, "", false
	if _, err := netip.ParseAddr(text); err != nil {
		if h, p, err := net.SplitHostPort(text); err == nil {
			host, port, hasPort = h, p, true
		}
	}
	if number, err := strconv.ParseUint(port, 10, 16); hasPort && (err != nil || number == 0) {
		return nil
	}
	found := &rule{text: text, port: normalizePort(port)}
	host, found.within = strings.CutPrefix(host, "*.")
	name, ip := normalizeHost(host)
	switch {
	case ip.IsValid() && !found.within:
		found.prefix = netip.PrefixFrom(ip.WithZone(""), ip.BitLen())
	case ip.IsValid() || !isHostName(name):
		return nil
	}
	found.name = name
	return found
}

// isHostName reports whether a name consists of valid labels (RFC 1123, and _, which private networks use), the last
// one with a letter.
func isHostName(name string) bool {
	if last := name[strings.LastIndexByte(name, '.')+1:]; !strings.ContainsFunc(last, func(r rune) bool { return r >= 'a' && r <= 'z' }) {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || strings.ContainsFunc(label, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
		}) {
			return false
		}
	}
	return true
}

// Problem is a mistake in a file of rules.
type Problem struct {
	// Path are the keys that lead to the mistake; items of lists by their index.
	Path    []string
	Message string
}

func (p *Problem) Error() string { return p.Message }

// keys are the keys of a file of rules.
var keys = []string{"private", "public", "allow", "deny"}

// Parse parses the value of a file of rules: {private: deny, allow: [10.2.0.0/16, "api.internal:443"], deny: […]}.
// usual has the defaults. The error is a *Problem.
func Parse(value any, usual *Policy) (*Policy, error) {
	values, isMap := value.(map[string]any)
	if value != nil && !isMap {
		return nil, &Problem{Message: "must be a map of private, public, allow and deny, such as {allow: [10.2.0.0/16]}"}
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if slices.Contains(keys, key) {
			continue
		}
		hint := ""
		if near := expression.Suggest(key, keys); near != "" {
			hint = fmt.Sprintf(" (did you mean %s?)", near)
		}
		return nil, &Problem{[]string{key}, fmt.Sprintf("unknown key %q%s, expected one of %s", key, hint, strings.Join(keys, ", "))}
	}
	p := *usual
	var err error
	if p.private, err = readClass(values, "private", p.private); err != nil {
		return nil, err
	}
	if p.public, err = readClass(values, "public", p.public); err != nil {
		return nil, err
	}
	if p.allow, err = readRules(values, "allow"); err != nil {
		return nil, err
	}
	if p.deny, err = readRules(values, "deny"); err != nil {
		return nil, err
	}
	return &p, nil
}

// readClass reads "allow" or "deny" at a key.
func readClass(values map[string]any, key string, usual bool) (bool, error) {
	value, has := values[key]
	if !has {
		return usual, nil
	}
	if value != "allow" && value != "deny" {
		return false, &Problem{[]string{key}, fmt.Sprintf("%s must be allow or deny", key)}
	}
	return value == "allow", nil
}

// readRules reads a list of rules.
func readRules(values map[string]any, key string) ([]rule, error) {
	value, has := values[key]
	items, isList := value.([]any)
	if has && value != nil && !isList {
		return nil, &Problem{[]string{key}, fmt.Sprintf(`%s must be a list, such as [10.2.0.0/16, "api.internal:443"]`, key)}
	}
	var all []rule
	for i, item := range items {
		text, _ := item.(string)
		one := parseRule(text)
		if one == nil {
			return nil, &Problem{[]string{key, strconv.Itoa(i)}, fmt.Sprintf(
				`%s has an entry that is not a range, an address or a host: expected one such as 10.2.0.0/16, "10.2.0.5:443", api.internal, "api.internal:443" or "*.corp.example.com"`, key)}
		}
		all = append(all, *one)
	}
	return all, nil
}
