package egress

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// class says from where an address can be reached, the most dangerous class last.
type class int

const (
	public    class = iota
	private         // this machine, private networks, and what is reserved: neither is on the Internet
	linkLocal       // the link, where clouds give their metadata, and with it credentials of the machine
)

func (c class) className() string {
	switch c {
	case private:
		return "an address of this machine or a private network"
	case linkLocal:
		return "a link-local address or one of a cloud's metadata"
	}
	return "a public address"
}

// parsePrefixes parses a constant list of prefixes; it panics if one is invalid.
func parsePrefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		all[i] = netip.MustParsePrefix(text)
	}
	return all
}

// The prefixes of each class, from IANA's registries of special-purpose addresses for IPv4 and IPv6 (RFC 6890), with
// the metadata addresses of clouds that are not link-local.
var (
	linkLocalPrefixes = parsePrefixes(
		"169.254.0.0/16", "fe80::/10",
		"fd00:ec2::/32",      // AWS, over IPv6
		"fd20:ce::/32",       // Google Cloud, over IPv6
		"fd00:c1::/32",       // Oracle Cloud, over IPv6
		"100.100.100.200/32", // Alibaba Cloud
		"168.63.129.16/32",   // Azure's wire server
		"192.0.0.192/32",     // Oracle Cloud, of old
	)
	privatePrefixes = parsePrefixes(
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.168.0.0/16",
		"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
		"2001:db8::/32", "3fff::/20",
	)
	// globalIPv6 are the public addresses of IPv6 (RFC 4291, section 2.4); all others are private except those of
	// nat64.
	globalIPv6 = netip.MustParsePrefix("2000::/3")
)

// classOf returns the most dangerous class of an address and of the IPv4 addresses embedded in it.
func classOf(ip netip.Addr) class {
	worst := public
	for _, each := range append(embeddedIn(ip), ip.WithZone("").Unmap()) {
		within := func(prefix netip.Prefix) bool { return prefix.Contains(each) }
		switch {
		case slices.ContainsFunc(linkLocalPrefixes, within):
			return linkLocal
		case slices.ContainsFunc(privatePrefixes, within), each.Is6() && !globalIPv6.Contains(each) && !nat64.Contains(each):
			worst = private
		}
	}
	return worst
}

// IPv6 prefixes whose addresses embed IPv4 addresses.
var (
	nat64      = netip.MustParsePrefix("64:ff9b::/96")    // RFC 6052
	localNAT64 = netip.MustParsePrefix("64:ff9b:1::/48")  // RFC 8215
	sixToFour  = netip.MustParsePrefix("2002::/16")       // RFC 3056
	teredo     = netip.MustParsePrefix("2001::/32")       // RFC 4380
	compatible = netip.MustParsePrefix("::/96")           // RFC 4291, section 2.5.5.1
	translated = netip.MustParsePrefix("::ffff:0:0:0/96") // RFC 2765
)

// embeddedIn returns the IPv4 addresses that an IPv6 address embeds, for each translation and tunnel format; none for
// an IPv4 address.
func embeddedIn(ip netip.Addr) []netip.Addr {
	ip = ip.WithZone("")
	if ip.Unmap().Is4() {
		return nil
	}
	b := ip.As16()
	v4 := func(at int) netip.Addr { return netip.AddrFrom4([4]byte(b[at : at+4])) }
	switch {
	case nat64.Contains(ip), translated.Contains(ip):
		return []netip.Addr{v4(12)}
	case localNAT64.Contains(ip): // the operator chooses the length of the prefix; RFC 6052, section 2.2, skips byte 8
		return []netip.Addr{v4(12), v4(9), netip.AddrFrom4([4]byte{b[6], b[7], b[9], b[10]}), netip.AddrFrom4([4]byte{b[7], b[9], b[10], b[11]})}
	case sixToFour.Contains(ip):
		return []netip.Addr{v4(2)}
	case teredo.Contains(ip):
		return []netip.Addr{v4(4), netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]})}
	case compatible.Contains(ip) && b[12] != 0:
		return []netip.Addr{v4(12)}
	case b[8]&^0x02 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe: // ISATAP, RFC 5214
		return []netip.Addr{v4(12)}
	}
	return nil
}

// normalizeHost returns the name of a host in the form used for comparisons, and its address if it is an IP address
// in any spelling.
func normalizeHost(host string) (string, netip.Addr) {
	if ascii, err := httpguts.PunycodeHostPort(host); err == nil {
		host = ascii
	}
	host = strings.TrimRight(strings.ToLower(strings.Trim(host, "[]")), ".")
	ip, err := netip.ParseAddr(host)
	if err != nil {
		ip = looseIPv4(host)
	}
	if ip.IsValid() {
		ip = ip.Unmap()
		return ip.String(), ip
	}
	return host, netip.Addr{}
}

// looseIPv4 parses an IPv4 address as inet_aton does, which some resolvers and proxies use: one to four numbers, each
// decimal, octal or hexadecimal, the last one for all remaining bytes. The result is invalid for any other name.
func looseIPv4(host string) netip.Addr {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return netip.Addr{}
	}
	var whole uint64
	for i, part := range parts {
		n, ok := looseNumber(part)
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (5 - len(parts))
		}
		if !ok || n >= 1<<bits {
			return netip.Addr{}
		}
		whole = whole<<bits | n
	}
	return netip.AddrFrom4([4]byte{byte(whole >> 24), byte(whole >> 16), byte(whole >> 8), byte(whole)})
}

// looseNumber parses a number as written in C: 127, 0177 or 0x7f.
func looseNumber(text string) (uint64, bool) {
	base, digits := 10, text
	switch {
	case strings.HasPrefix(text, "0x"):
		base, digits = 16, text[2:]
		if digits == "" {
			return 0, true
		}
	case len(text) > 1 && text[0] == '0':
		base, digits = 8, text[1:]
	}
	if strings.ContainsAny(digits, "+-_") {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, base, 64)
	return n, err == nil
}

// Names that lead to private and link-local addresses wherever they are resolved: by standard (RFC 6761, 6762, 8375,
// and .internal, reserved by ICANN), or by use in clouds.
var (
	privateSuffixes = []string{"localhost", "local", "internal", "localdomain", "home.arpa", "lan", "intranet", "corp"}
	metadataNames   = []string{"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal", "metadata.tencentyun.com", "metadata.packet.net", "metadata.platformequinix.com"}
)

// classOfName returns the class of a name that a proxy will resolve. A name without a dot is private.
func classOfName(name string) class {
	if slices.Contains(metadataNames, name) {
		return linkLocal
	}
	if !strings.Contains(name, ".") {
		return private
	}
	for _, suffix := range privateSuffixes {
		if strings.HasSuffix(name, "."+suffix) {
			return private
		}
	}
	return public
}
