// Package egress decides which addresses the tools of a worker may connect to. An address is checked after its name
// is resolved and before anything is sent, so that neither an unusual spelling nor a DNS response bypasses the check.
// docs/how-to/egress.md explains the rules.
package egress

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
)

// Variable is the environment variable that names the file of rules.
const Variable = "REPRISE_EGRESS"

// Policy is the set of rules of a worker. It is immutable. A nil policy means LocalPolicy.
type Policy struct {
	private, public bool // whether addresses of the class may be connected to without an allow
	allow, deny     []rule
	// Resolver resolves names; nil for the default one.
	Resolver *net.Resolver
}

// LocalPolicy returns the policy of workers on their user's machine: private addresses are allowed, link-local ones are
// not.
func LocalPolicy() *Policy { return &Policy{private: true, public: true} }

// RemotePolicy returns the policy of workers that run playbooks of others: only public addresses are allowed.
func RemotePolicy() *Policy { return &Policy{public: true} }

// HostMatcher reports whether a connection of the operator names host:port. Attempts that use the connection may
// reach it. The text is normalized; see NameOf.
type HostMatcher func(hostPort string) bool

// NoConnection is the HostMatcher of attempts that use no connection.
func NoConnection(string) bool { return false }

// OwnConnection is the HostMatcher of a tool that only connects to addresses of its connection.
func OwnConnection(string) bool { return true }

// DeniedError is the error if connecting to an address is not allowed. Its text says what to change.
type DeniedError struct {
	// Address is host:port as it was requested.
	Address string
	message string
}

func (e *DeniedError) Error() string { return e.message }

// Dial returns a function that connects like dialer, but only to allowed addresses. For others, the error is or wraps
// a *DeniedError.
func (p *Policy) Dial(dialer *net.Dialer, named HostMatcher) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		rules, own := p.orLocal(), *dialer
		if rules.Resolver != nil {
			own.Resolver = rules.Resolver
		}
		if network == "unix" {
			return own.DialContext(ctx, network, address)
		}
		to, err := parseDestination(address)
		if err != nil {
			return nil, err
		}
		if err := rules.checkBeforeDNS(to, named); err != nil {
			return nil, err
		}
		own.ControlContext = func(_ context.Context, _, resolved string, _ syscall.RawConn) error {
			return rules.checkResolved(to, resolved, named)
		}
		return own.DialContext(ctx, network, address)
	}
}

// CheckProxied checks an address that a proxy will resolve, so that only its name is known. The error is a
// *DeniedError.
func (p *Policy) CheckProxied(address string, named HostMatcher) error {
	to, err := parseDestination(address)
	if err != nil {
		return err
	}
	if rules := p.orLocal(); to.ip.IsValid() {
		return rules.checkAddress(to, to.ip, named)
	}
	return p.orLocal().checkName(to, named)
}

// CheckNamed checks an address host:port that a connection names against deny. The error is a *DeniedError.
func (p *Policy) CheckNamed(address string) error {
	to, err := parseDestination(address)
	if err != nil {
		return err
	}
	return p.orLocal().checkBeforeDNS(to, OwnConnection)
}

// DNSResolver returns the resolver to use; nil for the default one.
func (p *Policy) DNSResolver() *net.Resolver { return p.orLocal().Resolver }

func (p *Policy) orLocal() *Policy {
	if p == nil {
		return LocalPolicy()
	}
	return p
}

// destination is the address of a request.
type destination struct {
	text string // host:port as it was requested
	name string // of the host, normalized; of an IP address its usual text
	port string
	ip   netip.Addr // of a host that is an IP address in any spelling, invalid for a name
}

// parseDestination parses host:port.
func parseDestination(address string) (destination, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return destination{}, fmt.Errorf("the address %q cannot be read: %w", address, err)
	}
	name, ip := normalizeHost(host)
	return destination{text: address, name: name, port: normalizePort(port), ip: ip}, nil
}

// normalizePort returns a port without leading zeros, which the system ignores.
func normalizePort(port string) string {
	if number, err := strconv.ParseUint(port, 10, 16); err == nil {
		return strconv.FormatUint(number, 10)
	}
	return port
}

// NameOf returns host:port with the host in the form used for comparisons: lower case, ASCII, no final dot.
func NameOf(host, port string) string {
	name, _ := normalizeHost(host)
	return net.JoinHostPort(name, normalizePort(port))
}

func (d destination) hostPort() string { return net.JoinHostPort(d.name, d.port) }

// checkBeforeDNS applies the rules that need only the name: deny, and IP addresses in spellings that only some
// resolvers accept.
func (p *Policy) checkBeforeDNS(d destination, named HostMatcher) error {
	if d.ip.IsValid() {
		return p.checkAddress(d, d.ip, named)
	}
	if rule, denied := matchRule(p.deny, d, netip.Addr{}); denied {
		return p.deniedByRule(d, netip.Addr{}, rule)
	}
	return nil
}

// checkResolved checks ip:port, to which the name of a request was resolved.
func (p *Policy) checkResolved(d destination, resolved string, named HostMatcher) error {
	at, err := netip.ParseAddrPort(resolved)
	if err != nil {
		return &DeniedError{Address: d.text, message: fmt.Sprintf("%s is resolved to %q, which is not an IP address", d.text, resolved)}
	}
	return p.checkAddress(d, at.Addr(), named)
}

// checkAddress applies the rules in this order: deny, allow by address, link-local, allow by name, the connection,
// the class.
func (p *Policy) checkAddress(d destination, ip netip.Addr, named HostMatcher) error {
	if rule, denied := matchRule(p.deny, d, ip); denied {
		return p.deniedByRule(d, ip, rule)
	}
	if matchAddress(p.allow, d.port, ip) {
		return nil
	}
	class := classOf(ip)
	if class == linkLocal {
		return p.deniedByClass(d, ip, class)
	}
	if _, allowed := matchRule(p.allow, d, ip); allowed || named(d.hostPort()) || p.reachesClass(class) {
		return nil
	}
	return p.deniedByClass(d, ip, class)
}

// checkName applies the rules to a name whose address is not known. An allow by name includes link-local names.
func (p *Policy) checkName(d destination, named HostMatcher) error {
	if rule, denied := matchRule(p.deny, d, netip.Addr{}); denied {
		return p.deniedByRule(d, netip.Addr{}, rule)
	}
	if _, allowed := matchRule(p.allow, d, netip.Addr{}); allowed {
		return nil
	}
	class := classOfName(d.name)
	if class != linkLocal && (named(d.hostPort()) || p.reachesClass(class)) {
		return nil
	}
	return p.deniedByClass(d, netip.Addr{}, class)
}

// reachesClass reports whether addresses of a class are allowed without a rule.
func (p *Policy) reachesClass(c class) bool {
	return c == public && p.public || c == private && p.private
}

// describeAddress returns the requested address, followed by the IP address if that differs.
func (d destination) describeAddress(ip netip.Addr) string {
	if ip.IsValid() && ip.Unmap().String() != strings.Trim(strings.TrimSuffix(d.text, ":"+d.port), "[]") {
		return fmt.Sprintf("%s (%s)", d.text, ip)
	}
	return d.text
}

func (p *Policy) deniedByRule(d destination, ip netip.Addr, by rule) error {
	return &DeniedError{Address: d.text, message: fmt.Sprintf("the worker may not connect to %s, which %q under deny in its egress file excludes",
		d.describeAddress(ip), by.text)}
}

func (p *Policy) deniedByClass(d destination, ip netip.Addr, c class) error {
	key := d.hostPort()
	if c == linkLocal && ip.IsValid() {
		key = net.JoinHostPort(ip.WithZone("").Unmap().String(), d.port)
	}
	or := ""
	if c != linkLocal {
		or = ", or name the host in a connection that the step uses"
	}
	return &DeniedError{Address: d.text, message: fmt.Sprintf(
		"the worker may not connect to %s, %s; to permit it, add %q to allow in the worker's egress file (--egress, %s)%s",
		d.describeAddress(ip), c.className(), key, Variable, or)}
}
