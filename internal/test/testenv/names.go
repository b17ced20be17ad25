package testenv

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/dns/dnsmessage"
)

// NameServer is a DNS server whose answers the test determines.
type NameServer struct {
	// Lookup returns the addresses of a name, without its trailing dot, for the nth query, counted from 1. No
	// addresses means that the name does not exist.
	Lookup func(name string, n int) []string

	conn  net.PacketConn
	mu    sync.Mutex
	asked map[string]int // by name and type
}

// NewNameServer starts a DNS server and returns a resolver that queries only this server.
func NewNameServer(t testing.TB, lookup func(name string, n int) []string) *net.Resolver {
	t.Helper()
	conn, err := (&net.ListenConfig{}).ListenPacket(context.Background(), "udp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &NameServer{Lookup: lookup, conn: conn, asked: map[string]int{}}
	served := make(chan struct{})
	go func() { defer close(served); s.serveQueries() }()
	t.Cleanup(func() { _ = conn.Close(); <-served })
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func (s *NameServer) serveQueries() {
	buffer := make([]byte, 4096)
	for {
		n, from, err := s.conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		var query dnsmessage.Message
		if query.Unpack(buffer[:n]) != nil || len(query.Questions) != 1 {
			continue
		}
		if answer, err := s.answerQuery(query).Pack(); err == nil {
			_, _ = s.conn.WriteTo(answer, from)
		}
	}
}

// answerQuery returns the response to a query.
func (s *NameServer) answerQuery(query dnsmessage.Message) *dnsmessage.Message {
	question := query.Questions[0]
	name := strings.TrimSuffix(question.Name.String(), ".")
	s.mu.Lock()
	key := question.Type.String() + " " + name
	s.asked[key]++
	addresses := s.Lookup(name, s.asked[key])
	s.mu.Unlock()
	answer := &dnsmessage.Message{
		Header:    dnsmessage.Header{ID: query.ID, Response: true, RecursionDesired: true, RecursionAvailable: true},
		Questions: query.Questions,
	}
	if len(addresses) == 0 {
		answer.RCode = dnsmessage.RCodeNameError
	}
	for _, text := range addresses {
		ip := netip.MustParseAddr(text)
		header := dnsmessage.ResourceHeader{Name: question.Name, Type: dnsmessage.TypeAAAA, Class: dnsmessage.ClassINET}
		var body dnsmessage.ResourceBody = &dnsmessage.AAAAResource{AAAA: ip.As16()}
		if ip.Is4() {
			header.Type, body = dnsmessage.TypeA, &dnsmessage.AResource{A: ip.As4()}
		}
		if header.Type == question.Type {
			answer.Answers = append(answer.Answers, dnsmessage.Resource{Header: header, Body: body})
		}
	}
	return answer
}
