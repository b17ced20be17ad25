package serve

import (
	"context"
	"net"
	"net/netip"
	"sync"
)

// connections are those of a listener. Where there are too many, one without a request
// is closed.
type connections struct {
	net.Listener
	crowd *crowd
}

func newConnections(listener net.Listener, most int) *connections {
	return &connections{Listener: listener, crowd: newCrowd(most)}
}

// Accept waits for a connection.
func (c *connections) Accept() (net.Conn, error) {
	accepted, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	one := &connection{Conn: accepted, crowd: c.crowd}
	one.member = c.crowd.join(addressOf(accepted.RemoteAddr().String()), 1, func() { _ = accepted.Close() })
	return one, nil
}

// connection is one of connections.
type connection struct {
	net.Conn
	crowd  *crowd
	member *member
	once   sync.Once
}

// Close closes it.
func (c *connection) Close() error {
	c.once.Do(func() { c.crowd.leave(c.member) })
	return c.Conn.Close()
}

type connectionKey struct{}

// withConnection has requests know their connection: net/http's ConnContext.
func withConnection(ctx context.Context, conn net.Conn) context.Context {
	if wrapped, ok := conn.(interface{ NetConn() net.Conn }); ok { // of TLS
		conn = wrapped.NetConn()
	}
	if one, ok := conn.(*connection); ok {
		return context.WithValue(ctx, connectionKey{}, one)
	}
	return ctx
}

// underway keeps the connection of a request while it is.
func underway(ctx context.Context) (over func()) {
	one, ok := ctx.Value(connectionKey{}).(*connection)
	if !ok {
		return func() {}
	}
	one.crowd.keep(one.member)
	return func() { one.crowd.free(one.member) }
}

// addressOf is the sender of an address: the address, and of IPv6, where each client
// has very many, the network.
func addressOf(remote string) string {
	const network = 64 // bits
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	address := at.Addr().Unmap()
	if prefix, err := address.WithZone("").Prefix(network); err == nil && address.Is6() {
		return prefix.String()
	}
	return address.String()
}
