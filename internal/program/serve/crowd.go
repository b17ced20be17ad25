package serve

import (
	"container/list"
	"context"
	"net"
	"net/netip"
	"sync"
)

// crowd bounds the memory of clients with incomplete requests: arriving bodies, and connections without a request. A
// new member is always admitted, if necessary by removing another: the oldest of the sender that uses the most, if
// that exceeds its fair share, else the oldest of all. Quick clients are young members, and stalling ones are old,
// whatever their addresses.
type crowd struct {
	room int

	mu      sync.Mutex
	used    int
	of      map[string]int // what each sender uses
	members *list.List     // of *member, the oldest first
}

// crowdMember is a member of a crowd.
type crowdMember struct {
	sender string
	size   int
	// out disconnects the member. It is called at most once, and must not call the crowd.
	out  func()
	pins int           // while it is not 0 it need not go
	at   *list.Element // nil once it has gone
}

// largestShare limits the room of a sender to this fraction (1/8), above which its own members are removed first.
const largestShare = 8

func newCrowd(room int) *crowd {
	return &crowd{room: room, of: map[string]int{}, members: list.New()}
}

// addMember adds a member.
func (c *crowd) addMember(sender string, size int, out func()) *crowdMember {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := &crowdMember{sender: sender, out: out}
	one.at = c.members.PushBack(one)
	c.allotRoom(one, size)
	return one
}

// growMember gives a member more room, and then calls then before the member can be removed. It returns false if the
// member was removed.
func (c *crowd) growMember(one *crowdMember, size int, then func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one.at == nil {
		return false
	}
	c.allotRoom(one, size)
	if one.at == nil {
		return false
	}
	then()
	return true
}

// releaseMember removes a member that has finished.
func (c *crowd) releaseMember(one *crowdMember) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeMember(one)
}

// pinMember exempts a member from removal until unpinMember is called.
func (c *crowd) pinMember(one *crowdMember) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one.pins++
}

// unpinMember ends a pin, and makes the member the youngest.
func (c *crowd) unpinMember(one *crowdMember) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one.pins--; one.at != nil {
		c.members.MoveToBack(one.at)
	}
}

// allotRoom gives a member more room, and removes others to make it.
func (c *crowd) allotRoom(one *crowdMember, size int) {
	one.size += size
	c.used += size
	c.of[one.sender] += size
	for c.used > c.room {
		last := c.nextToRemove()
		if last == nil { // all of the others are kept
			last = one
		}
		c.removeMember(last)
		last.out()
	}
}

// removeMember removes a member, once.
func (c *crowd) removeMember(one *crowdMember) {
	if one.at == nil {
		return
	}
	c.members.Remove(one.at)
	one.at = nil
	c.used -= one.size
	if c.of[one.sender] -= one.size; c.of[one.sender] == 0 {
		delete(c.of, one.sender)
	}
}

// nextToRemove returns the member to remove next; nil if there is none.
func (c *crowd) nextToRemove() *crowdMember {
	large, most := "", max(c.room/largestShare, 1)
	for sender, size := range c.of {
		if size > most {
			large, most = sender, size
		}
	}
	var oldest *crowdMember
	for at := c.members.Front(); at != nil; at = at.Next() {
		one, _ := at.Value.(*crowdMember) // nothing else is put in
		switch {
		case one.pins > 0:
			continue
		case large == "" || one.sender == large:
			return one
		case oldest == nil:
			oldest = one
		}
	}
	return oldest
}

// connections accepts the connections of a listener. If there are too many, one without a request is closed.
type connections struct {
	net.Listener
	crowd *crowd
}

// Accept waits for the next connection.
func (c *connections) Accept() (net.Conn, error) {
	accepted, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	one := &connection{Conn: accepted, crowd: c.crowd}
	one.member = c.crowd.addMember(addressOf(accepted.RemoteAddr().String()), 1, func() { _ = accepted.Close() })
	return one, nil
}

// connection is an accepted connection.
type connection struct {
	net.Conn
	crowd  *crowd
	member *crowdMember
	once   sync.Once
}

// Close closes the connection.
func (c *connection) Close() error {
	c.once.Do(func() { c.crowd.releaseMember(c.member) })
	return c.Conn.Close()
}

type connectionKey struct{}

// withConnection stores the connection in the context of its requests, as net/http's ConnContext.
func withConnection(ctx context.Context, conn net.Conn) context.Context {
	if wrapped, ok := conn.(interface{ NetConn() net.Conn }); ok { // of TLS
		conn = wrapped.NetConn()
	}
	if one, ok := conn.(*connection); ok {
		return context.WithValue(ctx, connectionKey{}, one)
	}
	return ctx
}

// pinConnection exempts the connection of a request from being closed, until over is called.
func pinConnection(ctx context.Context) (over func()) {
	one, ok := ctx.Value(connectionKey{}).(*connection)
	if !ok {
		return func() {}
	}
	one.crowd.pinMember(one.member)
	return func() { one.crowd.unpinMember(one.member) }
}

// addressOf returns the sender for a remote address: the address, or the network for IPv6, where each client has a
// great many addresses.
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
