package serve

import (
	"container/list"
	"sync"
)

// crowd bounds the memory of clients whose requests are not complete: bodies that
// arrive, connections without a request. There is always room for one more, for which
// another member has to go: the oldest one of the sender that uses the most, if that is
// more than a share of all, else the oldest of all. A quick client is among the young
// members, and one that stalls is old, whatever its address.
type crowd struct {
	room int

	mu      sync.Mutex
	used    int
	of      map[string]int // what each sender uses
	members *list.List     // of *member, the oldest first
}

// member is one of a crowd.
type member struct {
	sender string
	size   int
	// out makes it go. It is called once at most, and must not call the crowd.
	out  func()
	kept int           // while it is not 0 it need not go
	at   *list.Element // nil once it has gone
}

// largestShare of the room is what one sender may use before its own have to go first:
// an eighth.
const largestShare = 8

func newCrowd(room int) *crowd {
	return &crowd{room: room, of: map[string]int{}, members: list.New()}
}

// join adds a member.
func (c *crowd) join(sender string, size int, out func()) *member {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := &member{sender: sender, out: out}
	one.at = c.members.PushBack(one)
	c.allot(one, size)
	return one
}

// grow gives a member more of the room, and then does what has to be done while it is
// there. It is false for one that had to go.
func (c *crowd) grow(one *member, size int, then func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one.at == nil {
		return false
	}
	c.allot(one, size)
	if one.at == nil {
		return false
	}
	then()
	return true
}

// leave releases what a member uses.
func (c *crowd) leave(one *member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(one)
}

// keep says that a member need not go, until free.
func (c *crowd) keep(one *member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one.kept++
}

// free ends a keep. The member is the youngest then.
func (c *crowd) free(one *member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one.kept--; one.at != nil {
		c.members.MoveToBack(one.at)
	}
}

// allot gives a member more of the room, and removes others for it.
func (c *crowd) allot(one *member, size int) {
	one.size += size
	c.used += size
	c.of[one.sender] += size
	for c.used > c.room {
		last := c.next()
		if last == nil { // all of the others are kept
			last = one
		}
		c.remove(last)
		last.out()
	}
}

// remove takes a member out, once.
func (c *crowd) remove(one *member) {
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

// next is the member that goes next, nil for none.
func (c *crowd) next() *member {
	large, most := "", max(c.room/largestShare, 1)
	for sender, size := range c.of {
		if size > most {
			large, most = sender, size
		}
	}
	var oldest *member
	for at := c.members.Front(); at != nil; at = at.Next() {
		one, _ := at.Value.(*member) // nothing else is put in
		switch {
		case one.kept > 0:
			continue
		case large == "" || one.sender == large:
			return one
		case oldest == nil:
			oldest = one
		}
	}
	return oldest
}
