package testenv

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Proxy forwards connections between a client and a server, and can cut them.
type Proxy struct {
	target   string
	listener net.Listener

	mu    sync.Mutex
	isCut bool
	open  map[net.Conn]bool
}

// NewProxy forwards connections to target, host:port, until the test ends.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen for what goes to %s: %v", target, err)
	}
	p := &Proxy{target: target, listener: listener, open: map[net.Conn]bool{}}
	go p.acceptClients()
	t.Cleanup(func() {
		_ = listener.Close()
		p.Cut()
	})
	return p
}

// Address returns the address at which the proxy listens, host:port.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

func (p *Proxy) acceptClients() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.forwardClient(client)
	}
}

// forwardClient forwards between a client and the server until either side, or a cut, ends it.
func (p *Proxy) forwardClient(client net.Conn) {
	server, err := net.Dial("tcp", p.target)
	if err != nil || !p.registerOpen(client, server) {
		_ = client.Close()
		if err == nil {
			_ = server.Close()
		}
		return
	}
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_ = client.Close()
			_ = server.Close()
		})
	}
	both.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, client)
	delete(p.open, server)
}

// registerOpen registers connections for a cut. During a cut it returns false.
func (p *Proxy) registerOpen(connections ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isCut {
		return false
	}
	for _, c := range connections {
		p.open[c] = true
	}
	return true
}

// Cut closes all connections and refuses new ones.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isCut = true
	for c := range p.open {
		_ = c.Close()
	}
}

// Mend accepts connections again.
func (p *Proxy) Mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isCut = false
}
